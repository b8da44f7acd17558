"""What a forward-mode call reads and writes for each leaf: tangents, kept where backward calls keep gradients."""

from __future__ import annotations

from typing import Any

from ..bind.base import TENSOR
from ..records import Derivative, Parameter, Placed, Vectorized
from .gradients import NONE, takes_part


def tangents(plan: Vectorized) -> dict[str, Derivative]:
    """By leaf ident. Raises for read-write tensors with two tangents, and for types without tangents."""
    if plan.result_mode in ("texture", "custom") and plan.resolved.return_type.differentiable:
        raise NotImplementedError(
            f"fwds of '{plan.resolved.call_name}': a {plan.result_mode} result cannot hold a tangent; use "
            "_result='tensor' or pass a Tensor with gradients"
        )
    parameters = {p.name: p for p in plan.resolved.parameters}
    return {placed.ident: _of_leaf(parameters[placed.parameter], placed) for placed in plan.placed}


def has_tangent(found: dict[str, Derivative]) -> bool:
    """Whether any input has a tangent."""
    return any(d.seed for d in found.values())


def _of_leaf(parameter: Parameter, placed: Placed) -> Derivative:
    binding, value = placed.binding, placed.binding.value
    if value is None or not takes_part(parameter, placed):
        return NONE
    if binding.rank >= 0:
        return _of_tensor(parameter, placed)
    if binding.marshall is not None and binding.marshall.has_derivative:
        raise NotImplementedError(
            f"{placed.path}: tangents of registered types are not available yet; use get_this() that returns tensors "
            "with gradients"
        )
    gives, takes = parameter.io in ("in", "inout"), parameter.io in ("out", "inout", "return")
    if value.kind == "diff_pair":
        if not value.details["needs_grad"]:
            return NONE
        derivative = binding.type.derivative.full_name
        return Derivative(derivative, "value" if gives else "", "pair" if takes else "", forward=True)
    return _of_views(value.details, gives, takes)


def _of_tensor(parameter: Parameter, placed: Placed) -> Derivative:
    """Whole tensors carry their tangents into the function."""
    binding, value = placed.binding, placed.binding.value
    assert value is not None
    if binding.view.startswith("DiffTensorView<"):
        raise NotImplementedError(
            f"{placed.path}: a DiffTensorView has no tangents; declare DiffTensor<T, D> or IDiffTensor<T, D>"
        )
    found = TENSOR.match(binding.type_name)
    assert found is not None
    interface, access, diff, _, _ = found.groups()
    declared = TENSOR.match(parameter.type_name) is not None  # else a field of a struct
    if not (interface or diff) or (declared and parameter.no_diff):
        return NONE
    details = value.details
    if access == "RW" and details.get("grad_in") and details.get("grad_out") and not details["shared_grad"]:
        raise RuntimeError(
            f"{placed.path}: a forward-mode call needs one tangent of a read-write tensor, because what is stored may be "
            "loaded again, but grad_in and grad_out are different tensors; attach one with with_grads()"
        )
    return _of_views(details, access in ("", "RW"), access in ("W", "RW"))


def _of_views(details: dict[str, Any], gives: bool, takes: bool) -> Derivative:
    """Tangents are read from grad_in and written to grad_out; one that is alone (or shared) serves as both."""
    has_in, has_out = bool(details.get("grad_in")), bool(details.get("grad_out"))
    if not (has_in or has_out):
        return NONE
    target = "go" if has_out else "gi"
    seed = "gi" if has_in and not (takes and details["shared_grad"]) else "go"
    types = {"gi": details.get("grad_in_type", ""), "go": details.get("grad_out_type", "")}
    return Derivative(
        types[target], "view" if gives else "", "view" if takes else "", seed, target, types[seed], forward=True
    )


__all__ = ["has_tangent", "tangents"]
