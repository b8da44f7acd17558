"""The table that errors and `explain` print: each argument with its parameter and bound type."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from .records import Argument, Value, Vectorized


def _summary(value: Value, shapes: Sequence[Any]) -> str:
    if value.kind in ("array", "tensor", "list", "texture", "texture_view") and 0 <= value.leaf < len(shapes):
        shape = tuple(shapes[value.leaf])
        if len(shape) == len(value.shape):
            value = replace(value, details={**value.details, "shape": shape})
    return value.summary()


def table(
    arguments: tuple[Argument, ...],
    plan: Vectorized | None,
    gradients: dict[str, str] | None = None,
    shapes: Sequence[Any] = (),
    accepts: Sequence[str] = (),
) -> str:
    """One line per argument: name, Python type and shape, Slang parameter, bound type, dimensions, mapping.

    gradients: what a backward call does with each leaf's gradient, by ident; one more column.
    accepts: what stands in each argument's place where no plan could be made.
    shapes: of the leaves in the call at hand; a plan has those of the call for which it was made.
    """
    rows = [("argument", "value", "parameter", "bound type", "dims", "call dims", "gradient" if gradients else "")]
    if plan is None:
        for i, argument in enumerate(arguments):
            name, text = argument.name or f"[{argument.position}]", _summary(argument.value, shapes)
            rows.append((name, text, accepts[i] if accepts else "", "", "", "", ""))
    else:
        for placed in plan.placed:
            binding = placed.binding
            parameter = next(p for p in plan.resolved.parameters if p.name == placed.parameter)
            text = _summary(binding.value, shapes) if binding.value is not None else ""
            rows.append(
                (
                    placed.path,
                    text,
                    f"{parameter.io} {parameter.type_name}",
                    binding.type_name,
                    str(binding.dims),
                    str(list(placed.map)),
                    (gradients or {}).get(placed.ident, ""),
                )
            )
    widths = [max(len(row[i]) for row in rows) for i in range(7)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=False)).rstrip() for row in rows
    )
