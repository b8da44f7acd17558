"""Elements whose reverse derivative Slang 2026.12 loses in silence (src/native/slang/lost_shares.h). Most such reads become
calls before the compiler sees them; what is left, by macros for example, is warned of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...compiler.modules.facts import mended_facts_of
from .forward_check import last_of, reached, survey_of

if TYPE_CHECKING:
    from ..._slang import LostShare


def lost_share_warnings(module: Any, name: str, label: str) -> list[str]:
    """What to tell of function `name`, or of one that it calls, for each of the faulty pairs that it has."""
    return [
        f"{label}.bwds: '{found.function}' uses '{found.first}' and '{found.second}' of one value '{found.variable}'. "
        "Where both are the same element, Slang 2026.12 loses the share of one in the reverse derivative, without an "
        "error. Read the element with the run-time index in a separate function, '[Differentiable] T pick(V v, int i) "
        "{ return v[i]; }'; a copy of the variable does not help. SLANGPY_CHECK_GRADIENTS=1 checks the numbers; see "
        "'What stays faulty' in docs/compiler-faults.md"
        for found in lost_shares(module, name)
    ]


def lost_shares(module: Any, name: str) -> list[LostShare]:
    """The faulty pairs in a function and in those that it calls and Slang differentiates; the first of each variable."""
    survey, mended = survey_of(module), mended_facts_of(module._compiled)
    own = [function for function in reached(last_of(name), survey) if function not in survey.custom]
    return [found for function in own for found in mended.lost_shares(function)]


__all__ = ["lost_share_warnings", "lost_shares"]
