"""The second-order half of generated kernels: the reverse derivative of a forward derivative.

The function goes into a wrapper that gives one number, its results weighted with their gradients. The wrapper takes
structs and arrays apart, because Slang 2026.12 ends the process on the reverse derivative of a forward derivative of
what takes them whole. `_spy_tangent` is the derivative of that number along the tangents, and bwd_diff of it is called.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from .accumulate import Part
from .emit_backward import BackwardWriter
from .gradients import NONE
from .ir import Parameter
from .second_order import part_name, parts_in
from .text import indent, slang_name


@dataclass
class _Lists:
    """What the two wrappers take, and what is passed: to the forward derivative, and to bwd_diff."""

    inner: list[str] = field(default_factory=list)
    outer: list[str] = field(default_factory=list)
    tangents: list[str] = field(default_factory=list)
    duals: list[str] = field(default_factory=list)
    passed: list[str] = field(default_factory=list)
    passed_tangents: list[str] = field(default_factory=list)
    before: list[str] = field(default_factory=list)

    def constant(self, kind: str, name: str, value: str, is_differentiable: bool = True) -> None:
        """A parameter that nothing is differentiated by."""
        declared = f"{'no_diff ' if is_differentiable else ''}{kind} {name}"
        self.inner.append(declared)
        self.outer.append(declared)
        self.duals.append(name)
        self.passed.append(value)


class SecondOrderWriter(BackwardWriter):
    """What second-order calls add to the parts of backward ones."""

    def _emit_second_order(self) -> list[str]:
        """Fills the kernel's body around bwd_diff of fwd_diff; returns the wrappers of the user's function."""
        resolved, lists = self.plan.resolved, _Lists()
        parameters = [p for p in resolved.parameters if p.io != "return"]
        result = next(p for p in resolved.parameters if p.io == "return")
        for parameter in parameters:
            if self._takes_part(parameter):
                self._active_parameter(parameter, lists)
            else:
                constant = parameter.binding.type.differentiable
                self._constant_parameter(parameter, lists, bool(constant))
        sum_, number = self._weighted(result, lists)
        call = self._call_expression([f"_p_{p.name}" for p in parameters])
        arguments = ", ".join([*lists.passed, *lists.passed_tangents, f"{number}(1)"])
        self.body.append(f"bwd_diff(_spy_tangent)({arguments});")
        for parameter in parameters:
            if self._wants_gradient(parameter):
                self._collect(parameter)
                self._accumulate(parameter)
        return [
            "[Differentiable]", f"{number} _spy_function({', '.join(lists.inner)})", "{", *indent(lists.before),
            f"    let _r = {call};", f"    return {sum_};", "}",
            "[Differentiable]", f"{number} _spy_tangent({', '.join([*lists.outer, *lists.tangents])})", "{",
            f"    return fwd_diff(_spy_function)({', '.join(lists.duals)}).d;", "}",
        ]  # fmt: skip

    def _takes_part(self, parameter: Parameter) -> bool:
        """Whether a parameter has a tangent or memory for a gradient."""
        if parameter.no_diff or not parameter.binding.type.differentiable:
            return False
        grads = [self.grads.get(p.ident, NONE) for p in self.leaves.get(parameter.name, [])]
        return any(grad.seed or grad.target for grad in grads)

    def _constant_parameter(self, parameter: Parameter, lists: _Lists, is_differentiable: bool) -> None:
        kind, name = slang_name(parameter.binding.type_name), f"_p_{parameter.name}"
        lists.constant(kind, name, self._argument_value(parameter), is_differentiable)

    def _active_parameter(self, parameter: Parameter, lists: _Lists) -> None:
        kind, name = slang_name(parameter.binding.type_name), f"_p_{parameter.name}"
        primal = f"_x_{parameter.name}"
        parts = self._parts(parameter)
        self.body.append(f"{kind} {primal} = {self._argument_value(parameter)};")
        tangent = self._seed(parameter)
        if parts[0].path:
            lists.constant(kind, f"{name}_whole", primal)
            lists.before.append(f"{kind} {name} = {name}_whole;")
        for part in parts:
            self._active_part(parameter, part, tangent, lists)

    def _active_part(self, parameter: Parameter, part: Part, tangent: str, lists: _Lists) -> None:
        kind = slang_name(part.type.full_name)
        name = part_name(f"_p_{parameter.name}", part.path)
        primal, pair = f"_x_{parameter.name}{part.path}", part_name(f"_d_{parameter.name}_of", part.path)
        if part.path:
            lists.before.append(f"_p_{parameter.name}{part.path} = {name};")
        lists.inner.append(f"{kind} {name}")
        lists.tangents.append(f"no_diff {kind} {name}_tangent")
        lists.duals.append(f"DifferentialPair<{kind}>({name}, {name}_tangent)")
        lists.passed_tangents.append(tangent + part.path)
        if self._wants_gradient(parameter):
            lists.outer.append(f"{kind} {name}")
            self.body.append(f"DifferentialPair<{kind}> {pair} = diffPair({primal});")
            lists.passed.append(pair)
        else:
            lists.outer.append(f"no_diff {kind} {name}")
            lists.passed.append(primal)

    def _weighted(self, result: Parameter, lists: _Lists) -> tuple[str, str]:
        """The sum of the results, each times its incoming gradient, and the scalar type that it has."""
        parts = self._parts(result)
        number = "double" if any(part.type.scalar == "double" for part in parts) else "float"
        seed = self._seed(result)
        terms: list[str] = []
        for part in parts:
            weight = part_name("_w", part.path)
            lists.constant(slang_name(part.type.full_name), weight, seed + part.path)
            terms.append(_product(part, weight, f"_r{part.path}", number))
        return " + ".join(terms), number

    def _parts(self, parameter: Parameter) -> list[Part]:
        parts = parts_in(parameter.binding.type)
        assert parts is not None  # second_derivatives checks
        return parts

    def _collect(self, parameter: Parameter) -> None:
        """The gradients of the parts as one gradient, where `_accumulate` looks for it."""
        kind, name = self._named(parameter), f"_g_{parameter.name}"
        self.body.append(f"{kind}.Differential {name} = {kind}.dzero();")
        for part in self._parts(parameter):
            pair = part_name(f"_d_{parameter.name}_of", part.path)
            self.body.append(f"{name}{part.path} = {pair}.d;")
        self.body.append(
            f"DifferentialPair<{kind}> _d_{parameter.name} = DifferentialPair<{kind}>(_x_{parameter.name}, {name});"
        )


def _product(part: Part, weight: str, value: str, number: str) -> str:
    """The sum of the products of components. Slang's dot() ends the process where one side is no_diff."""
    places = [""]
    for count in part.type.shape:
        places = [f"{place}[{k}]" for place in places for k in range(count)]
    return " + ".join(f"{number}({weight}{place}) * {number}({value}{place})" for place in places)


__all__ = ["SecondOrderWriter"]
