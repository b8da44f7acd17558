"""The second-order half of generated kernels: the reverse derivative of a forward derivative.

The function goes into a wrapper that gives one number, its results weighted with their gradients. The wrapper takes
structs and arrays apart, because Slang 2026.12 ends the process on the reverse derivative of a forward derivative of
what takes them whole. `_spy_tangent` is the derivative of that number along the tangents, and bwd_diff of it is called.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ..derive.accumulate import Part
from ..derive.gradients import NONE
from ..derive.second_order import part_name, parts_in
from ..records import Parameter
from ..slang_text import indent, slang_name
from ..trampoline import Kernel
from .backward import accumulate, seed_of, wants_gradient
from .forward import argument_value, call_expression, named_type


@dataclass
class _Lists:
    """What the two wrappers take, and the arguments of the calls: `duals` of the forward derivative, the others of bwd_diff."""

    inner: list[str] = field(default_factory=list)
    outer: list[str] = field(default_factory=list)
    tangents: list[str] = field(default_factory=list)
    duals: list[str] = field(default_factory=list)
    arguments: list[str] = field(default_factory=list)
    tangent_arguments: list[str] = field(default_factory=list)
    before: list[str] = field(default_factory=list)

    def constant(self, kind: str, name: str, value: str, is_differentiable: bool = True) -> None:
        """A parameter that nothing is differentiated by."""
        declared = f"{'no_diff ' if is_differentiable else ''}{kind} {name}"
        self.inner.append(declared)
        self.outer.append(declared)
        self.duals.append(name)
        self.arguments.append(value)


def emit_second_order(kernel: Kernel) -> list[str]:
    """Fills the kernel's body around bwd_diff of fwd_diff; returns the wrappers of the user's function."""
    resolved, lists = kernel.facts.plan.resolved, _Lists()
    parameters = [p for p in resolved.parameters if p.io != "return"]
    result = next(p for p in resolved.parameters if p.io == "return")
    for parameter in parameters:
        if _takes_part(kernel, parameter):
            _active_parameter(kernel, parameter, lists)
        else:
            constant = parameter.binding.type.differentiable
            _constant_parameter(kernel, parameter, lists, bool(constant))
    sum_, number = _weighted(kernel, result, lists)
    call = call_expression(kernel, [f"_p_{p.name}" for p in parameters])
    every = ", ".join([*lists.arguments, *lists.tangent_arguments, f"{number}(1)"])
    kernel.body.append(f"bwd_diff(_spy_tangent)({every});")
    for parameter in parameters:
        if wants_gradient(kernel, parameter):
            _collect(kernel, parameter)
            accumulate(kernel, parameter)
    return [
        "[Differentiable]", f"{number} _spy_function({', '.join(lists.inner)})", "{", *indent(lists.before),
        f"    let _r = {call};", f"    return {sum_};", "}",
        "[Differentiable]", f"{number} _spy_tangent({', '.join([*lists.outer, *lists.tangents])})", "{",
        f"    return fwd_diff(_spy_function)({', '.join(lists.duals)}).d;", "}",
    ]  # fmt: skip


def _takes_part(kernel: Kernel, parameter: Parameter) -> bool:
    """Whether a parameter has a tangent or memory for a gradient."""
    if parameter.no_diff or not parameter.binding.type.differentiable:
        return False
    grads = [kernel.facts.grads.get(p.ident, NONE) for p in kernel.facts.leaves.get(parameter.name, [])]
    return any(grad.seed or grad.target for grad in grads)


def _constant_parameter(kernel: Kernel, parameter: Parameter, lists: _Lists, is_differentiable: bool) -> None:
    kind, name = slang_name(parameter.binding.type_name), f"_p_{parameter.name}"
    lists.constant(kind, name, argument_value(kernel, parameter), is_differentiable)


def _active_parameter(kernel: Kernel, parameter: Parameter, lists: _Lists) -> None:
    kind, name = slang_name(parameter.binding.type_name), f"_p_{parameter.name}"
    primal = f"_x_{parameter.name}"
    parts = _parts(kernel, parameter)
    kernel.body.append(f"{kind} {primal} = {argument_value(kernel, parameter)};")
    tangent = seed_of(kernel, parameter)
    if parts[0].path:
        lists.constant(kind, f"{name}_whole", primal)
        lists.before.append(f"{kind} {name} = {name}_whole;")
    for part in parts:
        _active_part(kernel, parameter, part, tangent, lists)


def _active_part(kernel: Kernel, parameter: Parameter, part: Part, tangent: str, lists: _Lists) -> None:
    kind = slang_name(part.type.full_name)
    name = part_name(f"_p_{parameter.name}", part.path)
    primal, pair = f"_x_{parameter.name}{part.path}", part_name(f"_d_{parameter.name}_of", part.path)
    if part.path:
        lists.before.append(f"_p_{parameter.name}{part.path} = {name};")
    lists.inner.append(f"{kind} {name}")
    lists.tangents.append(f"no_diff {kind} {name}_tangent")
    lists.duals.append(f"DifferentialPair<{kind}>({name}, {name}_tangent)")
    lists.tangent_arguments.append(tangent + part.path)
    if wants_gradient(kernel, parameter):
        lists.outer.append(f"{kind} {name}")
        kernel.body.append(f"DifferentialPair<{kind}> {pair} = diffPair({primal});")
        lists.arguments.append(pair)
    else:
        lists.outer.append(f"no_diff {kind} {name}")
        lists.arguments.append(primal)


def _weighted(kernel: Kernel, result: Parameter, lists: _Lists) -> tuple[str, str]:
    """The sum of the results, each times its incoming gradient, and the scalar type that it has."""
    parts = _parts(kernel, result)
    number = "double" if any(part.type.scalar == "double" for part in parts) else "float"
    seed = seed_of(kernel, result)
    terms: list[str] = []
    for part in parts:
        weight = part_name("_w", part.path)
        lists.constant(slang_name(part.type.full_name), weight, seed + part.path)
        terms.append(_product(part, weight, f"_r{part.path}", number))
    return " + ".join(terms), number


def _parts(kernel: Kernel, parameter: Parameter) -> list[Part]:
    parts = parts_in(parameter.binding.type)
    assert parts is not None  # second_derivatives checks
    return parts


def _collect(kernel: Kernel, parameter: Parameter) -> None:
    """The gradients of the parts as one gradient, where `_accumulate` looks for it."""
    kind, name = named_type(kernel, parameter), f"_g_{parameter.name}"
    kernel.body.append(f"{kind}.Differential {name} = {kind}.dzero();")
    for part in _parts(kernel, parameter):
        pair = part_name(f"_d_{parameter.name}_of", part.path)
        kernel.body.append(f"{name}{part.path} = {pair}.d;")
    kernel.body.append(
        f"DifferentialPair<{kind}> _d_{parameter.name} = DifferentialPair<{kind}>(_x_{parameter.name}, {name});"
    )


def _product(part: Part, weight: str, value: str, number: str) -> str:
    """The sum of the products of components. Slang's dot() ends the process where one side is no_diff."""
    places = [""]
    for count in part.type.shape:
        places = [f"{place}[{k}]" for place in places for k in range(count)]
    return " + ".join(f"{number}({weight}{place}) * {number}({value}{place})" for place in places)
