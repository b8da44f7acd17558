"""What a second-order call reads and accumulates for each leaf.

For y = f(x) with the gradient g = J(x)^T w, a cotangent u of g gives x the gradient of <w, J(x) u>. So an input may have
a tangent u (`grad_in`) and memory for its gradient (`grad_out`), and the result has w (`grad_in`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

from ..bind.base import TENSOR
from ..bind.views import VIEW
from ..records import Derivative, Parameter, Placed, Vectorized
from .accumulate import Part
from .forward_check import custom_derivative
from .gradients import NONE, _check_order, differentiable, takes_part
from .sums import sums_of

MAX_PARTS = 256
_FLOATS = ("half", "float", "double")


def second_derivatives(plan: Vectorized, module: Any, deterministic: bool) -> dict[str, Derivative]:
    """By leaf ident. Raises NotImplementedError, with the reason, for functions that have no second derivative."""
    resolved = plan.resolved
    name = custom_derivative(module, resolved.call_name)
    if name:
        raise _refusal(f"'{name}' has a custom derivative, which Slang would ignore")
    for parameter in resolved.parameters:
        _check_parameter(parameter)
    parameters = {p.name: p for p in resolved.parameters}
    found: dict[str, Derivative] = {}
    for placed in plan.placed:
        grad = _of_leaf(parameters[placed.parameter], placed)
        if deterministic and grad.target:
            _check_order(placed, grad)
        sums = sums_of(placed, grad, deterministic)
        found[placed.ident] = replace(grad, sums=sums) if sums is not None else grad
    return found


def _refusal(reason: str) -> NotImplementedError:
    return NotImplementedError(
        f"second derivatives (create_graph=True) do not reach into this function: {reason}; see docs/gradients.md"
    )


def _check_parameter(parameter: Parameter) -> None:
    name, kind = parameter.name, parameter.type_name
    if parameter.io in ("out", "inout"):
        raise _refusal(f"it writes its parameter '{name}'")
    if parameter.binding.rank >= 0 or TENSOR.match(kind) or VIEW.match(kind):
        raise _refusal(f"it indexes its parameter '{name}' of type {kind} itself")
    if parameter.binding.pair:
        raise _refusal(f"its parameter '{name}' is of type {parameter.binding.type_name}")
    if any(leaf.rank >= 0 for leaf in parameter.binding.leaves()):
        raise _refusal(f"its parameter '{name}' holds a tensor that it indexes itself")
    if differentiable(parameter) and parts_in(parameter.binding.type) is None:
        raise _refusal(f"its parameter '{name}' of type {kind} is not made of at most {MAX_PARTS} differentiable numbers "
                       "whose derivatives have the same field names")  # fmt: skip


def _of_leaf(parameter: Parameter, placed: Placed) -> Derivative:
    binding, value = placed.binding, placed.binding.value
    if value is None or not takes_part(parameter, placed):
        return NONE
    if binding.marshall is not None and binding.marshall.has_derivative:
        raise _refusal(f"'{placed.path}' is of a class that is registered with slangpy and loads its values itself")
    details = value.details
    if not details.get("torch"):
        return NONE
    has_in, has_out = bool(details.get("grad_in")), bool(details.get("grad_out"))
    is_input = parameter.io == "in"
    seed = "view" if has_in and not (is_input and details["shared_grad"]) else ""
    target = "view" if has_out and is_input else ""
    return Derivative(details.get("grad_out_type", ""), seed, target, seed_type=details.get("grad_in_type", ""))


@dataclass(frozen=True)
class _Walk:
    """Collects the floating-point parts that a type shares with its derivative."""

    found: list[Part]

    def visit(self, primal: Any, derivative: Any, path: str) -> bool:
        if len(self.found) > MAX_PARTS or primal is None or derivative is None or primal.kind != derivative.kind:
            return False
        if derivative.kind in ("scalar", "vector", "matrix"):
            self.found.append(Part(path, derivative))
            return derivative.scalar in _FLOATS and primal.full_name == derivative.full_name
        if derivative.kind == "array":
            count = derivative.shape[0]
            return 0 <= count == primal.shape[0] and all(
                self.visit(primal.element_type, derivative.element_type, f"{path}[{k}]")
                for k in range(min(count, MAX_PARTS + 1))
            )
        if derivative.kind != "struct":
            return False
        fields = primal.fields
        return all(
            name in fields and self.visit(fields[name].type, field.type, f"{path}.{name}")
            for name, field in derivative.fields.items()
        )


def parts_in(type_: Any) -> list[Part] | None:
    """The scalars, vectors and matrices of a type that have derivatives; None when it has others or too many."""
    walk = _Walk([])
    whole = walk.visit(type_, type_.derivative, "")
    return walk.found if whole and 0 < len(walk.found) <= MAX_PARTS else None


def part_name(prefix: str, path: str) -> str:
    """The name of a variable for one part of a value."""
    return prefix + re.sub(r"\W+", "_", path).rstrip("_")


__all__ = ["part_name", "parts_in", "second_derivatives"]
