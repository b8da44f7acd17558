"""The forward-mode half of generated kernels: Slang's fwd_diff around the call, tangents read before, written after."""

from __future__ import annotations

from .emit_forward import ForwardWriter
from .gradients import NONE
from .ir import Derivative, Parameter, Placed
from .text import indent, slang_name
from .variants import UNIFORM


class ForwardModeWriter(ForwardWriter):
    """What forward-mode calls add to the parts of plain ones."""

    def _emit_forward_mode(self) -> list[str]:
        """Fills the kernel's body around fwd_diff; returns the differentiable wrapper of the user's function."""
        resolved = self.plan.resolved
        parameters = [p for p in resolved.parameters if p.io != "return"]
        signature: list[str] = []
        before: list[str] = []
        passed = [self._dual_parameter(p, signature, before) for p in parameters]
        call = self._call_expression([f"_p_{p.name}" for p in parameters])
        dual = f"fwd_diff(_spy_function)({', '.join(passed)});"
        returns = resolved.return_type_name != "void"
        has_tangent = returns and bool(resolved.return_type.differentiable)
        self.body.append(f"let {'_dual' if has_tangent else '_r'} = {dual}" if returns else dual)
        if has_tangent:
            self.body.append("let _r = _dual.p;")
        for parameter in parameters:
            if parameter.io != "in":
                self._store_dual(parameter)
        self._store_result()
        if has_tangent:
            self._store_result_tangent()
        statement = f"return {call};" if returns else f"{call};"
        return [
            "[ForwardDifferentiable]", f"{slang_name(resolved.return_type_name)} _spy_function({', '.join(signature)})", "{",
            *indent(before), f"    {statement}", "}",
        ]  # fmt: skip

    # --- parameters
    def _is_dual(self, parameter: Parameter) -> bool:
        """Whether a parameter is passed with a tangent. Inputs that nobody gave one are constants."""
        if parameter.no_diff or parameter.binding.rank >= 0 or not parameter.binding.type.differentiable:
            return False
        return parameter.io != "in" or any(self._grad(p).seed for p in self._values(parameter))

    def _values(self, parameter: Parameter) -> list[Placed]:
        """The leaves of a parameter without whole tensors, which carry their tangents themselves."""
        return [p for p in self.leaves.get(parameter.name, []) if p.binding.rank < 0]

    def _grad(self, placed: Placed) -> Derivative:
        return self.grads.get(placed.ident, NONE)

    def _dual_parameter(self, parameter: Parameter, signature: list[str], before: list[str]) -> str:
        """Adds a parameter to the wrapper; gives what fwd_diff is passed for it."""
        binding = parameter.binding
        name, kind = f"_p_{parameter.name}", slang_name(binding.type_name)
        is_whole = binding.rank >= 0 or binding.kind == "resource"
        io = "" if is_whole else {"in": "", "out": "out ", "inout": "inout "}[parameter.io]
        if not self._is_dual(parameter):
            constant = "no_diff " if binding.type.differentiable else ""
            signature.append(f"{constant}{io}{kind} {name}")
            return self._plain_argument(parameter, is_whole)
        signature.append(f"{io}{kind} {name}")
        pair = f"_d_{parameter.name}"
        if parameter.io == "out":
            self.body.append(f"DifferentialPair<{kind}> {pair};")
            return pair
        value, tangent = self._argument_value(parameter), self._tangent_of(parameter)
        self.body.append(f"DifferentialPair<{kind}> {pair} = DifferentialPair<{kind}>({value}, {tangent});")
        return pair

    def _plain_argument(self, parameter: Parameter, is_whole: bool) -> str:
        value = "" if parameter.io == "out" and not is_whole else self._argument_value(parameter)
        if parameter.io == "in" or is_whole:
            return value
        var = f"_x_{parameter.name}"
        self.body.append(f"{slang_name(parameter.binding.type_name)} {var}{f' = {value}' if value else ''};")
        return var

    def _tangent_of(self, parameter: Parameter) -> str:
        """A variable with the tangent of an input; zero where none is attached."""
        kind, var = self._named(parameter), f"_t_{parameter.name}"
        leaves = self._values(parameter)
        hoists = all(self._is_constant(placed) for placed in leaves)
        lines = self.hoisted if hoists else self.body
        lines.append(f"{kind}.Differential {var} = {kind}.dzero();")
        for placed in leaves:
            grad = self._grad(placed)
            target = var + placed.path[len(parameter.name) :]
            if grad.seed == "value":
                lines.append(f"{target} = _call.{placed.ident}_seed;")
            elif grad.seed == "view":
                self._read_tangent(placed, grad, target, lines)
        return var

    def _is_constant(self, placed: Placed) -> bool:
        """Whether the tangent of a leaf is the same in every invocation."""
        grad = self._grad(placed)
        if grad.target or placed.writes:
            return False
        return grad.seed != "view" or self._class(placed) == UNIFORM or not placed.map

    def _read_tangent(self, placed: Placed, grad: Derivative, target: str, lines: list[str]) -> None:
        view = f"{placed.ident}_{grad.seed_view}"
        derivative = placed.binding.type.derivative
        assert derivative is not None
        lines.append(f"int64_t _o_{view} = {self._offset(placed, view)};")
        lines.append(f"_spy_T_{placed.ident}.Differential _g_{placed.ident};")
        self._transfer(
            placed, view, f"_g_{placed.ident}", derivative, f"_o_{view}", 0, lines, grad.seed_type, load=True
        )
        lines.append(f"{target} = _g_{placed.ident};")

    # --- outputs
    def _store_dual(self, parameter: Parameter) -> None:
        """Stores a written parameter, and its tangent where there is memory for it."""
        if parameter.binding.rank >= 0 or parameter.binding.kind == "resource":
            return
        if not self._is_dual(parameter):
            self._store_parameter(parameter, f"_x_{parameter.name}")
            return
        pair = f"_d_{parameter.name}"
        self._store_parameter(parameter, f"{pair}.p")
        self._store_tangents(self._values(parameter), f"{pair}.d", len(parameter.name))

    def _store_tangents(self, leaves: list[Placed], value: str, skip: int) -> None:
        for placed in leaves:
            grad, path = self._grad(placed), placed.path[skip:]
            if grad.target == "pair":
                self.body.append(f"_call.{placed.ident}_tangent.write(0, {value}{path});")
            elif grad.target == "view":
                self._write_tangent(placed, grad, value + path)

    def _write_tangent(self, placed: Placed, grad: Derivative, value: str) -> None:
        view, var = f"{placed.ident}_{grad.target_view}", f"_w_{placed.ident}"
        derivative = placed.binding.type.derivative
        assert derivative is not None
        at = f"_at_{view}"
        self.body.append(f"_spy_T_{placed.ident}.Differential {var} = {value};")
        self.body.append(f"int64_t {at} = {self._offset(placed, view)};")
        self._transfer(placed, view, var, derivative, at, 0, self.body, grad.grad_type, load=False)

    def _store_result_tangent(self) -> None:
        mode = self.plan.result_mode
        if mode == "leaf":
            self._store_tangents(self.leaves.get("_result", []), "_dual.d", len("_result"))
        elif mode == "value":
            self.body.append("_call._out_tangent.write(0, _dual.d);")
        elif self.shape.flat:
            self.body.append("_call._out_tangent.write(int64_t(_i), _dual.d);")
        else:
            at = self._strided("_out_lead", tuple(range(self.rank))) if self.rank else "0"
            self.body.append(f"_call._out_tangent.write({at}, _dual.d);")


__all__ = ["ForwardModeWriter"]
