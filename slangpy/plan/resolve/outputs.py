"""A torch tensor that a call writes has the type of what is written: torch's in-place operations never change it."""

from __future__ import annotations

from typing import Any

from ...errors import ResolveException
from ..bind.base import display
from ..records import Options


def check_torch_outputs(resolved: Any, options: Options) -> None:
    """Raises ResolveException for an output tensor of another dtype than the parameter (unless `convert` is set)."""
    if options.convert != "none" or options.bwds:
        return
    for parameter in resolved.parameters:
        value, type_ = parameter.binding.value, parameter.type
        if parameter.io not in ("out", "inout", "return") or value is None or not value.details.get("torch"):
            continue
        scalar = getattr(type_, "scalar", "")
        if scalar and parameter.binding.rank < 0 and value.details.get("scalar") != scalar:
            raise ResolveException(
                f"{parameter.name}: {value.summary()} does not match slang type {display(type_)}: a tensor that is written "
                f"needs the dtype of {scalar}"
            )
