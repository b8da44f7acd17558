"""The call itself: variables for its parameters, the call, and the stores of what it wrote."""

from __future__ import annotations

from ..marshall.views import view_argument
from .emit_leaves import LeafWriter
from .ir import Parameter, Placed
from .struct_arrays import holder, spread
from .text import global_name, slang_name
from .zeros import zero_missing


class ForwardWriter(LeafWriter):
    """What plain calls are made of; backward and forward mode use its parts."""

    def _emit_forward(self) -> None:
        arguments: list[tuple[Parameter, str]] = []
        for parameter in self.plan.resolved.parameters:
            if parameter.io == "return":
                continue
            arguments.append((parameter, self._argument(parameter)))
        call = self._call_expression([name for _, name in arguments])
        returns = self.plan.resolved.return_type_name != "void"
        self.body.append(f"{'let _r = ' if returns else ''}{call};")
        for parameter, name in arguments:
            if parameter.io != "in":
                self._store_parameter(parameter, name)
        self._store_result()

    def _argument(self, parameter: Parameter) -> str:
        """Declares the variable of one parameter and gives its name (or an expression for plain inputs)."""
        leaves = self.leaves.get(parameter.name, [])
        var = f"_p_{parameter.name}"
        whole = len(leaves) == 1 and leaves[0].path == parameter.name
        if whole:
            placed = leaves[0]
            if parameter.io == "in" and not parameter.is_this:
                return self._leaf_value(placed)
            if placed.binding.rank >= 0 or placed.binding.kind == "resource":
                return self._leaf_value(placed)
            if parameter.io == "out":
                self.body.append(f"_spy_T_{placed.ident} {var};")
            else:
                value = self._leaf_value(placed)
                self.body.append(f"_spy_T_{placed.ident} {var} = {value};")
            return var
        if leaves and leaves[0].binding.array_type and leaves[0].path == parameter.name + "[0]":
            return leaves[0].ident  # an array of resources
        given = f" = {holder(parameter.name)}" if any(p.held for p in leaves) else ""
        self.body.append(f"{slang_name(parameter.type_name)} {var}{given};")
        if parameter.io != "out":
            self.body.extend(zero_missing(var, parameter.binding))
            for placed in leaves:
                if not placed.held:
                    self.body += self._fill(var, parameter, placed)
        return var

    def _fill(self, var: str, parameter: Parameter, placed: Placed) -> list[str]:
        """Statements that put the value of a leaf into its part of a parameter's variable."""
        if placed.element:
            return []  # assigned with the first element
        path = placed.path[len(parameter.name) :]
        value = self._leaf_value(placed)
        if placed.binding.array_type:
            path = path.rpartition("[")[0]
        return spread(f"{var}{path}", value, placed.binding.type)

    def _argument_value(self, parameter: Parameter) -> str:
        leaves = self.leaves.get(parameter.name, [])
        if len(leaves) == 1 and leaves[0].path == parameter.name:
            return self._leaf_value(leaves[0])
        return self._argument(parameter)

    def _named(self, parameter: Parameter) -> str:
        """A name of the parameter's type that `.Differential` may follow."""
        kind = slang_name(parameter.binding.type_name)
        if not kind.endswith("]"):
            return kind
        name = f"_spy_P_{parameter.name.lstrip('_')}"
        alias = f"typealias {name} = {kind};"
        if alias not in self.aliases:
            self.aliases.append(alias)
        return name

    def _call_expression(self, names: list[str]) -> str:
        resolved = self.plan.resolved
        parameters = [p for p in resolved.parameters if p.io != "return"]
        names = [view_argument(p.type_name, p.binding, n) for p, n in zip(parameters, names, strict=True)]
        if resolved.kind == "method":
            return f"{names[0]}.{resolved.call_name}({', '.join(names[1:])})"
        if resolved.kind == "static":
            return f"{slang_name(resolved.struct_name)}.{resolved.call_name}({', '.join(names)})"
        if resolved.kind == "constructor":
            return f"{slang_name(resolved.struct_name)}({', '.join(names)})"
        return f"{global_name(resolved.call_name)}({', '.join(names)})"

    def _store_parameter(self, parameter: Parameter, var: str) -> None:
        for placed in self.leaves.get(parameter.name, []):
            binding = placed.binding
            if not placed.writes or binding.rank >= 0 or binding.kind not in ("view", "reference", "custom", "texel"):
                continue
            path = placed.path[len(parameter.name) :]
            self._store_leaf(placed, var + path)
