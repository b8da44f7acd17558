"""Values that are made rather than loaded: tensors for tensor parameters, generators, registered classes."""

from __future__ import annotations

from ..marshall.base import TENSOR
from .emit_elements import ElementWriter
from .gradients import NONE
from .ir import Placed
from .text import slang_name


class ValueWriter(ElementWriter):
    """Expressions for the leaves whose stored form is not the value itself."""

    # --- tensors
    def _tensor(self, placed: Placed) -> str:
        """A tensor parameter: its view moved to this invocation's part."""
        binding, ident = placed.binding, placed.ident
        lines = self.body if placed.map or ident in self.bases else self.hoisted
        var = f"_v_{ident}"
        found = TENSOR.match(binding.type_name)
        assert found is not None
        interface, access, diff, _, _ = found.groups()
        if interface:
            lines.append(f"_spy_T_{ident} {var};")
            self._fill_view(placed, ident, var, lines)
            self._fill_gradients(placed, access, var, lines)
            return var
        lines.append(f"_spy_T_{ident} {var} = {{}};")
        primal = f"{var}._primal" if diff else var
        self._fill_view(placed, ident, primal, lines)
        if self.options.bwds and access == "W":
            lines.append(f"{primal}._data = {{}};")
        for field, name in self._gradient_members(placed):
            if name:
                cast = self._fill_wide(placed, name, f"{var}.{field.replace('grad_', '')}_wide", lines)
                self._fill_view(placed, name, f"{var}.{field}", lines, cast)
        return var

    def _fill_wide(self, placed: Placed, name: str, flag: str, lines: list[str]) -> str:
        """Says where the gradient of halves is kept in float; gives the cast to the type that the tensor names."""
        kept = self.grads[placed.ident].view_type(name[-2:])
        if kept != "float" or placed.binding.stored != "half":
            return ""
        lines.append(f"{flag} = true;")
        return ".cast<half>()"

    def _gradient_members(self, placed: Placed) -> tuple[tuple[str, str], tuple[str, str]]:
        """The members of tensor types that hold gradients (forward mode: tangents), with the views that fill them."""
        grad = self.grads.get(placed.ident, NONE)
        read = f"{placed.ident}_{grad.seed_view}" if grad.seed else ""
        written = f"{placed.ident}_{grad.target_view}" if grad.target else ""
        return ("_grad_in", written if grad.forward else read), ("_grad_out", read if grad.forward else written)

    def _fill_gradients(self, placed: Placed, access: str, var: str, lines: list[str]) -> None:
        """The gradients of the types behind the interface names, absent ones included."""
        rank = placed.binding.rank
        grad = self.grads.get(placed.ident, NONE)
        for field, name in self._gradient_members(placed):
            if field == ("_grad_out" if access == "W" else "_grad_in" if access == "" else ""):
                continue
            value = f"_spy_Gradient<{rank}>.none()"
            if name:
                storage = f"_call.{name}.at({self._offset(placed, name)})"
                kept = grad.view_type(name[-2:])
                wide = ", true" if kept == "float" and placed.binding.stored == "half" else ""
                value = f"_spy_Gradient<{rank}>.of<{slang_name(kept)}>({storage}, _call.{name}_inner{wide})"
            lines.append(f"{var}.{field} = {value};")
        if access == "W":
            lines.append(f"{var}._discard = {'true' if self.options.bwds or not placed.writes else 'false'};")

    def _fill_view(self, placed: Placed, name: str, var: str, lines: list[str], cast: str = "") -> None:
        base = self._base(name)
        lines.append(f"{var}._data = {base}.{name}.at(-{base}.{name}_first){cast};")
        lines.append(f"{var}._offset = {base}.{name}_first + {self._offset(placed, name)};")
        lines.append(f"{var}._shape = {base}.{name}_shape;")
        lines.append(f"{var}._strides = {base}.{name}_inner;")

    # --- registered classes
    def _custom(self, placed: Placed) -> str:
        """A value of a registered class, loaded by the function of its stored type."""
        ident = placed.ident
        self.body.append(f"_spy_T_{ident} _v_{ident};")
        if placed.reads:
            self._custom_context(placed)
            self.body.append(f"_call.{ident}.__slangpy_load(_x_{ident}, _v_{ident});")
        return f"_v_{ident}"

    def _custom_context(self, placed: Placed) -> None:
        """Where in its own dimensions the argument is; sizes of 1 are spread by a step of 0."""
        ident = placed.ident
        lines = [
            f"_spy_Context<{len(placed.map)}> _x_{ident};",
            f"_x_{ident}.thread_id = uint3(uint({self.thread}), 0, 0);",
        ]
        for k, dim in enumerate(placed.map):
            lines.append(f"_x_{ident}.call_id[{k}] = int(int64_t(_c{dim}) * _call.{ident}_stride[{k}]);")
        if not placed.map:
            lines.append(f"_x_{ident}.call_id[0] = 0;")
        self.body += lines

    # --- generators
    def _generator(self, placed: Placed) -> str:
        binding, ident = placed.binding, placed.ident
        value = binding.value
        assert value is not None
        kind = value.details["generator"]
        type_ = binding.type
        count = type_.shape[0] if type_.kind in ("vector", "array") else 1
        name = f"_spy_T_{ident}"
        if kind in ("wang_hash", "rand_float"):
            bounds = f", _call.{ident}_min, _call.{ident}_max" if kind == "rand_float" else ""
            suffix = f"_vector<{count}>" if type_.kind == "vector" else ""
            return f"{name}(_spy_{kind}{suffix}(uint(_i), _call.{ident}_seed, _call.{ident}_warmup{bounds}))"
        if kind == "thread_id":
            if type_.kind == "scalar":
                return f"{name}({self.thread})"
            first = f"{slang_name(binding.stored)}({self.thread})"
            return f"{name}(" + ", ".join([first, "0", "0"][:count]) + ")"
        if kind == "call_id":
            parts = [f"_c{dim}" for dim in range(self.rank)]
        else:
            parts = [
                f"(_call.{ident}_offset[{k}] + _call.{ident}_stride[{k}] * int64_t(_c{dim}))"
                for k, dim in enumerate(placed.map)
            ]
        scalar = slang_name(binding.stored)
        if type_.kind == "vector":
            parts = parts[::-1] + ["0"] * (count - len(parts))
        if type_.kind == "scalar":
            return f"{scalar}({parts[0] if parts else '0'})"
        inner = ", ".join(f"{scalar}({part})" for part in parts)
        if type_.kind == "vector":
            return f"{name}({inner})"
        self.body.append(f"{name} _v_{ident} = {{ {inner} }};")
        return f"_v_{ident}"
