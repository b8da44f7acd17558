"""Functions with a custom backward derivative only. Slang refuses `fwd_diff` of such a function itself, but where
another function calls it, Slang 2026.12 silently takes its value and its tangent for zero. So the sources are searched.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Set
from dataclasses import dataclass, field
from typing import Any

from ...base import libslang
from ...compiler.modules.sources import texts_of
from ...errors import ResolveException

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:[^\"\\\n]|\\.)*\"", re.S)
_ATTRIBUTES = re.compile(r"((?:\[[^\[\]{};]*\]\s*)+)([^;{}()=]*?)(\w+)\s*(?:<[^;{}()]*>)?\s*\(")
_DERIVATIVE_OF = re.compile(r"\[\s*(Backward|Forward)DerivativeOf\(\s*([\w.:]+)")
_MACRO = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)\(([\w\s,]*)\)((?:\\\n|[^\n])*)", re.M)
_CALL = re.compile(r"(\w+)\s*(?:<[^;{}()]*>)?\s*\(")


@dataclass
class Survey:
    lacking: set[str] = field(default_factory=set)
    """Functions with a custom backward derivative and no forward one."""
    derived: set[str] = field(default_factory=set)
    """Functions that Slang differentiates itself, through everything that they call."""
    given: set[str] = field(default_factory=set)
    """Functions with a forward derivative."""
    custom: set[str] = field(default_factory=set)
    """Functions with a custom derivative of any kind."""
    definitions: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    """Parameters and body of each function of a name."""
    indexing: dict[str, set[int]] = field(default_factory=dict)
    """Macros that read elements of their parameters, `#define AT(v, i) v[i]`: the places of these parameters."""

    def body(self, name: str) -> str:
        return "".join(body for _, body in self.definitions.get(name, ()))


def check_forward(module: Any, name: str) -> None:
    """ResolveException when function `name` is, or calls, one that has a custom backward derivative only."""
    survey = survey_of(module)
    name = name.split("<")[0]
    culprit = _reach(name, survey, survey.lacking) if survey.lacking else ""
    if culprit:
        through = "" if culprit == name else f" (called by '{name}')"
        raise ResolveException(
            f"Could not call fwds of '{name}': '{culprit}'{through} has a custom backward derivative only; give it a "
            "forward one with [ForwardDerivative(function)], or add [Differentiable], which lets Slang derive it"
        )


def custom_derivative(module: Any, name: str) -> str:
    """The first function with a custom derivative that function `name` is or calls, directly or not; empty: none."""
    survey = survey_of(module)
    return _reach(name.split("<")[0], survey, survey.custom) if survey.custom else ""


def hides_derivatives(module: Any) -> bool:
    """Whether some of the sources are not at hand."""
    return None in texts_of(module._compiled)


def survey_of(module: Any) -> Survey:
    """What the sources of a module say of its functions; kept with its code."""
    loaded = module._compiled
    known = getattr(loaded, "_forward_survey", None)
    if known is None:
        known = Survey()
        for text in filter(None, texts_of(loaded)):
            _scan(_COMMENT.sub(" ", libslang.rewrite_paths(libslang.rewrite_reads(text))), known)
        known.lacking -= known.given
        loaded._forward_survey = known
    return known


def _scan(text: str, survey: Survey) -> None:
    for name, parameters, body in _MACRO.findall(text):
        places = {at for at, word in enumerate(parameters.split(",")) if re.search(rf"(?<![\w.]){word.strip() or ' '}\s*\)?\s*\[", body)}
        if places:
            survey.indexing[name] = places
    for attributes, _, name in _ATTRIBUTES.findall(text):
        if re.search(r"\b(?:Forward|Backward)Derivative\(", attributes):
            survey.custom.add(name)
        if re.search(r"\bForwardDerivative\(", attributes):
            survey.given.add(name)
        elif re.search(r"\[\s*(?:Forward|Backward)?Differentiable\s*\]", attributes):
            survey.given.add(name)
            survey.derived.add(name)
        elif re.search(r"\bBackwardDerivative\(", attributes):
            survey.lacking.add(name)
    for direction, target in _DERIVATIVE_OF.findall(text):
        function = re.split(r"[.:]", target)[-1]
        survey.custom.add(function)
        (survey.lacking if direction == "Backward" else survey.given).add(function)
    for match in _CALL.finditer(text):
        name, opening = match.group(1), _body_at(text, match.end() - 1)
        if opening >= 0:
            parameters = text[match.end() : closing(text, match.end() - 1, "(", ")") - 1]
            body = text[opening : closing(text, opening, "{", "}")]
            survey.definitions.setdefault(name, []).append((parameters, body))


def closing(text: str, at: int, opens: str, closes: str) -> int:
    depth = 0
    for position in range(at, len(text)):
        depth += (text[position] == opens) - (text[position] == closes)
        if depth == 0:
            return position + 1
    return len(text)


def _body_at(text: str, parenthesis: int) -> int:
    """Where the body of a definition opens whose parameters do so at `parenthesis`; -1: it is a call or declaration."""
    after = closing(text, parenthesis, "(", ")")
    found = re.compile(r"\s*(?:->[^;{}()]*|where[^;{}()]*|:\s*\w+)?\s*\{").match(text, after)
    return found.end() - 1 if found else -1


def _reach(name: str, survey: Survey, wanted: set[str]) -> str:
    """The first of the `wanted` functions that `name` is or calls, directly or not; empty: none.

    Calls in `no_diff` count: Slang gives zero for those too where a function has no forward derivative.
    """
    return next((found for found in reached(name, survey, wanted) if found in wanted), "")


def reached(name: str, survey: Survey, also: Set[str] = frozenset()) -> Iterator[str]:
    """A function, and those that it calls, directly or not, which Slang differentiates itself or which are in `also`."""
    seen: set[str] = set()
    waiting = [name]
    while waiting:
        current = waiting.pop()
        if current in seen:
            continue
        seen.add(current)
        yield current
        if current in survey.derived:
            called = set(_CALL.findall(survey.body(current)))
            waiting += sorted(called & (also | survey.derived))


__all__ = ["Survey", "check_forward", "closing", "custom_derivative", "hides_derivatives", "reached", "survey_of"]
