"""What a backward call reads and accumulates for each leaf. The only stage that forward and backward calls differ in."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ...compiler.modules.facts import says_no_diff
from ...errors import ResolveException
from ..bind.base import TENSOR
from ..paths import steps_of
from ..records import Binding, Derivative, Parameter, Placed, Value, Vectorized
from .sums import own_addition, sums_of, target_type

NONE = Derivative()
_LISTED = "gradients of the entries of a list are not available yet; put them into one Tensor"
CONTAINERS = ("tensor", "array", "list", "buffer", "texture", "texture_view")
"""Kinds of `_result` that must bring a gradient; plain values need not."""


def differentiable(parameter: Parameter) -> bool:
    """Whether a parameter takes part in differentiation as a value."""
    return not parameter.no_diff and parameter.binding.type.differentiable


def derivatives(plan: Vectorized, deterministic: bool = False) -> dict[str, Derivative]:
    """By leaf ident. Raises for gradients that are missing, shared where two are needed, or that cannot be ordered."""
    found: dict[str, Derivative] = {}
    by_path = {p.parameter: [] for p in plan.placed}  # type: dict[str, list[Placed]]
    constants = any(p.binding.value is not None and p.binding.value.details.get("torch") for p in plan.placed)
    for placed in plan.placed:
        by_path[placed.parameter].append(placed)
    for parameter in plan.resolved.parameters:
        if parameter.binding.pair:
            raise NotImplementedError(
                f"{parameter.name}: Slang cannot differentiate a function with a parameter of type "
                f"{parameter.binding.type_name}; pass the value and its gradient as two parameters"
            )
        for placed in by_path.get(parameter.name, []):
            grad = _of_leaf(parameter, placed, constants)
            if deterministic and grad.target:
                _check_order(placed, grad)
            sums = sums_of(placed, grad, deterministic)
            found[placed.ident] = replace(grad, sums=sums) if sums is not None else grad
    _check_result(plan, found)
    return found


def _check_order(placed: Placed, grad: Derivative) -> None:
    """In deterministic calls every addition must be one that the library can order."""
    type_ = target_type(placed, grad)
    owner = own_addition(type_) if type_ is not None else ""
    if owner:
        raise ResolveException(
            f"{placed.path}: struct {owner} brings its own atomicAdd, whose order a deterministic call cannot control; "
            "remove it (the addition is derived from the fields) or set device.deterministic = False"
        )


def takes_part(parameter: Parameter, placed: Placed) -> bool:
    """Whether a leaf may have a derivative: a whole tensor, or a value that is differentiated with its parameter."""
    if placed.binding.value is None:
        return False
    _refuse_listed(placed)
    return placed.binding.rank >= 0 or _is_dual(parameter, placed)


def _is_dual(parameter: Parameter, placed: Placed) -> bool:
    return differentiable(parameter) and placed.binding.type.differentiable and _in_derivative(parameter, placed)


def _of_leaf(parameter: Parameter, placed: Placed, constants: bool) -> Derivative:
    """constants: a tensor without gradient is one, as in torch; else it is refused where a gradient is declared."""
    binding, value = placed.binding, placed.binding.value
    if value is None or not takes_part(parameter, placed):
        return NONE
    if binding.rank >= 0:
        return _of_tensor(parameter, placed, constants)
    if binding.marshall is not None and binding.marshall.has_derivative:
        if parameter.io == "in" and placed.path == parameter.name:
            return Derivative(by_load=True)
        raise NotImplementedError(
            f"{placed.path}: registered types take gradients as whole input parameters only, not as fields or outputs; "
            "use get_this() that returns tensors with gradients"
        )
    derivative = binding.type.derivative.full_name
    seeds, takes = parameter.io in ("out", "inout", "return"), parameter.io in ("in", "inout")
    details = value.details
    if value.kind == "diff_pair":
        target = "reference" if takes and details["needs_grad"] else ""
        return Derivative(derivative, "value" if seeds else "", target)
    if details.get("grad_in") or details.get("grad_out"):
        if parameter.io == "inout" and details["shared_grad"]:
            raise RuntimeError(
                f"{placed.path}: an inout param reads grad_in and adds to grad_out, so they must be different "
                "tensors; attach them with with_grads(grad_in=..., grad_out=...)"
            )
        return Derivative(
            details.get("grad_out_type", ""),
            "view" if seeds and details["grad_in"] else "",
            "view" if takes and details["grad_out"] else "",
            seed_type=details.get("grad_in_type", ""),
        )
    return NONE


def _refuse_listed(placed: Placed) -> None:
    """The entries of a list of containers have no gradients: NotImplementedError when one has."""
    value = placed.binding.value
    if placed.binding.kind == "table" and value is not None and _keeps_gradient(value):
        raise NotImplementedError(f"{placed.path}: {_LISTED}")


def _keeps_gradient(value: Value) -> bool:
    found = value.details.get("grad_in") or value.details.get("grad_out")
    return bool(found) or any(_keeps_gradient(child) for _, child in value.fields)


def _in_derivative(parameter: Parameter, placed: Placed) -> bool:
    """Whether a part of a struct has a gradient: fields that say no_diff are no part of `Differential`."""
    type_ = parameter.binding.type
    for step in steps_of(placed.path[len(parameter.name) :]):
        if step.startswith("["):
            type_ = type_.element_type
        elif type_.kind == "struct":
            field = type_.fields[step]
            if "nodiff" in field.modifiers or not field.type.differentiable:
                return False
            derivative = type_.derivative
            if derivative is not None and step not in derivative.fields:
                raise NotImplementedError(
                    f"{placed.path}: {type_.full_name}.Differential has no field '{step}'; name its fields like the "
                    "struct's, or pass the struct in a Tensor with gradients"
                )
            type_ = field.type
        else:
            return True  # a component
        if type_ is None:
            return True
    return True


def _of_view(placed: Placed, value: Value, constants: bool) -> Derivative:
    """DiffTensorView has one gradient, of float, or of double where the view is: loads add to it, stores read and zero it."""
    details = value.details
    if not placed.binding.view.startswith("Diff"):
        return NONE
    if placed.binding.kind == "table":
        raise NotImplementedError(f"{placed.path}: {_LISTED}")
    has_in, has_out = bool(details.get("grad_in")), bool(details.get("grad_out"))
    if has_in and has_out and not (details["shared_grad"] or details.get("one_gradient")):
        raise RuntimeError(
            f"{placed.path}: DiffTensorView has a single diff field, but Tensor has distinct grad_in and grad_out tensors."
        )
    if not has_in and not has_out:
        if constants:
            return NONE
        raise ResolveException(
            f"{placed.path}: {placed.binding.view} requires a tensor with an associated gradient; "
            "attach one with with_grads()"
        )
    stored = details["grad_out_type"] if has_out else details["grad_in_type"]
    if stored != "float" and not stored == placed.binding.stored == "double":
        raise ResolveException(
            f"{placed.path}: the gradient of a {placed.binding.view} is float, but the tensor's is {stored}; attach "
            "one with with_grads(grad_out=...)"
        )
    if has_out:
        return Derivative(stored, "", "view")
    return Derivative("", "view", "", seed_type=stored)


def _of_tensor(parameter: Parameter, placed: Placed, constants: bool) -> Derivative:
    """Whole tensors carry their gradients into the function."""
    binding, value = placed.binding, placed.binding.value
    assert value is not None
    if binding.view:
        return _of_view(placed, value, constants)
    found = TENSOR.match(binding.type_name)
    assert found is not None
    interface, access, diff, _, _ = found.groups()
    declared = TENSOR.match(parameter.type_name) is not None  # else a field of a struct
    if not (interface or diff) or (declared and parameter.no_diff):
        return NONE
    has_in = bool(value.details.get("grad_in"))
    has_out = bool(value.details.get("grad_out"))
    if diff and not interface and not (constants and not has_in and not has_out):
        if access in ("", "RW") and not has_out:
            raise ResolveException(
                f"{parameter.name}: {binding.type_name} requires a tensor with an associated output gradient; "
                "attach one with with_grads()"
            )
        if access in ("W", "RW") and not has_in:
            raise ResolveException(
                f"{parameter.name}: {binding.type_name} requires a tensor with an associated input gradient; "
                "attach one with with_grads()"
            )
    if access == "RW" and has_in and has_out and value.details["shared_grad"]:
        raise RuntimeError(
            f"{placed.path}: an inout param reads grad_in and adds to grad_out, so they must be different tensors; "
            "attach them with with_grads(grad_in=..., grad_out=...)"
        )
    seed = "view" if access in ("W", "RW") and has_in else ""
    target = "view" if access in ("", "RW") and has_out else ""
    details = value.details
    return Derivative(details.get("grad_out_type", ""), seed, target, seed_type=details.get("grad_in_type", ""))


def carriers(plan: Vectorized) -> set[int]:
    """Leaves of a forward call through which gradients may flow."""
    parameters = {p.name: p for p in plan.resolved.parameters}
    return {p.leaf for p in plan.placed if p.leaf >= 0 and _carries(parameters.get(p.parameter), p)}


def _carries(parameter: Parameter | None, placed: Placed) -> bool:
    return parameter is not None and placed.binding.kind == "view" and flows(parameter, placed)


def flows(parameter: Parameter, placed: Placed) -> bool:
    """Whether derivatives flow through a leaf, whatever holds it."""
    binding = placed.binding
    if binding.rank >= 0:
        found = TENSOR.match(binding.type_name)
        assert found is not None
        interface, _, diff, element, _ = found.groups()
        type_ = binding.type.program.find_type_by_name(element)
        if TENSOR.match(parameter.type_name) and parameter.no_diff:
            return False
        return bool(interface or diff) and type_ is not None and type_.differentiable
    return _is_dual(parameter, placed)


def lost_gradients(plan: Vectorized, module: Any) -> list[tuple[Placed, str]]:
    """Leaves of a differentiable function that no gradient reaches only because a struct lacks `: IDifferentiable`; and
    that struct. Slang reflects parameters of such types as no_diff: the source says whether the user wrote that."""
    if not plan.resolved.differentiable:
        return []
    parameters = {p.name: p for p in plan.resolved.parameters}
    found = []
    for placed in plan.placed:
        parameter = parameters.get(placed.parameter)
        name = "" if parameter is None or parameter.is_this else _undifferentiable(parameter, placed)
        if name and not says_no_diff(module, name):
            found.append((placed, name))
    return found


def _undifferentiable(parameter: Parameter, placed: Placed) -> str:
    type_: Any = parameter.binding.type
    if placed.binding.rank >= 0 or not placed.binding.type.differentiable or (parameter.no_diff and type_.differentiable):
        return ""
    for step in steps_of(placed.path[len(parameter.name) :]):
        while type_ is not None and type_.kind == "array":  # lists of dicts: the path names fields alone
            type_ = type_.element_type
        if type_ is None or type_.kind != "struct":
            return ""
        if not type_.differentiable:
            return type_.full_name
        if step not in type_.fields or "nodiff" in type_.fields[step].modifiers:
            return ""
        type_ = type_.fields[step].type
    return ""


def _check_result(plan: Vectorized, found: dict[str, Derivative]) -> None:
    resolved = plan.resolved
    if resolved.return_type_name == "void" or not resolved.return_type.differentiable:
        return
    results = [p for p in plan.placed if p.path == "_result" or p.path.startswith("_result.")]
    if not results and any(p.name == "_result" for p in resolved.parameters):
        return  # a plain value: there is no incoming gradient
    if not results:
        raise ResolveException(
            f"bwds of '{resolved.call_name}' needs the gradient of its result: pass _result=tensor.with_grads()"
        )
    held = next((p.binding.value for p in results if p.binding.value and p.binding.value.kind in CONTAINERS), None)
    if held is not None and not any(found[p.ident].seed for p in results):
        raise ResolveException(
            f"bwds of '{resolved.call_name}': _result has no gradient to read: it is {held.summary()}; attach one with "
            "with_grads() or pass a DiffPair"
        )


def lacks_seed(plan: Vectorized, found: dict[str, Derivative]) -> bool:
    """Whether `_result` is a plain value, which has no gradient to read: all gradients are zero then."""
    results = [p for p in plan.placed if p.path == "_result" or p.path.startswith("_result.")]
    return bool(results) and plan.resolved.return_type.differentiable and not any(found[p.ident].seed for p in results)


def has_storage(found: dict[str, Derivative]) -> bool:
    return any(d.target or d.by_load for d in found.values())


__all__ = [
    "Derivative",
    "Binding",
    "carriers",
    "derivatives",
    "differentiable",
    "flows",
    "has_storage",
    "lost_gradients",
    "lacks_seed",
    "takes_part",
]
