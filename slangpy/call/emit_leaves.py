"""Each leaf of a call by its kind: its fields, its value, and how it is stored back."""

from __future__ import annotations

from ..marshall.base import fixed_size
from .ir import Placed
from .struct_arrays import holder
from .tables import TableWriter
from .text import slang_name
from .variants import UNIFORM


class LeafWriter(TableWriter):
    """The one place that tells the kinds of bindings apart."""

    def _declare(self, placed: Placed) -> None:
        binding, ident = placed.binding, placed.ident
        if placed.held:
            return self._declare_holder(placed)
        if placed.element:
            return  # declared with the first element
        self.aliases.append(f"typealias _spy_T_{ident} = {slang_name(binding.type_name)};")
        if binding.kind in ("view", "packed"):
            self._declare_views(placed)
        elif binding.kind == "value":
            self.fields.append(f"{slang_name(binding.stored)} {ident}")
        elif binding.kind == "reference":
            if binding.pair:
                self._declare_pair(placed)
            else:
                self._declare_reference(placed)
        elif binding.kind == "generator":
            self._declare_generator(placed)
        elif binding.kind == "custom":
            self.fields.append(f"{slang_name(binding.stored)} {ident}")
            if placed.map:
                self.fields.append(f"int64_t {ident}_stride[{len(placed.map)}]")
        elif binding.kind == "table":
            self._declare_table(placed)
        elif binding.kind == "select":
            self._declare_select(placed)
        elif binding.kind == "pick":
            self._declare_pick(placed)
        elif binding.kind == "pointer":
            self.fields.append(f"_spy_T_{ident} {ident}")
        elif binding.kind == "resource":
            self._declare_resource(placed)
        elif binding.kind == "texel":
            self._declare_texels(placed)

    def _declare_holder(self, placed: Placed) -> None:
        """An array of structs with resources. Vulkan's drivers know no variables that those could be gathered in."""
        parameter = next(p for p in self.plan.resolved.parameters if p.name == placed.parameter)
        line = f"uniform {slang_name(parameter.type_name)} {holder(parameter.name)}"
        if line not in self.extra:
            self.extra.append(line)

    def _declare_result(self) -> None:
        plan = self.plan
        if plan.result_mode == "texture":
            self._declare_texture_result()
        if plan.result_mode in ("value", "tensor", "numpy", "torch"):
            self.aliases.append(f"typealias _spy_R = {slang_name(fixed_size(plan.resolved.return_type_name))};")
            self.fields.append("_spy_Storage<_spy_R> _out")
            if plan.result_mode != "value" and self.rank:
                self.fields.append(f"int _out_lead[{self.rank}]")
            if self.options.fwds and plan.resolved.return_type.differentiable:
                self.fields.append("_spy_Storage<_spy_R.Differential> _out_tangent")

    def _leaf_value(self, placed: Placed) -> str:
        """Expression of a leaf's primal; statements go where they are cheapest."""
        binding, ident = placed.binding, placed.ident
        if binding.kind == "value":
            if binding.widen or binding.stored != binding.type_name:
                return f"_spy_T_{ident}(_call.{ident})"
            return f"_call.{ident}"
        if binding.pair:
            half = f"_spy_H_{ident}"
            value = f"_call.{ident}, _call.{ident}_seed" if placed.reads else f"{half}.dzero(), {half}.dzero()"
            return f"diffPair({value})"
        if binding.kind == "reference":
            return f"_call.{ident}" if placed.reads else "{}"
        if binding.kind == "generator":
            return self._generator(placed)
        if binding.kind == "pointer":
            return f"_call.{ident}"
        if binding.kind == "custom":
            return self._custom(placed)
        if binding.kind == "table":
            return self._table(placed)
        if binding.kind == "select":
            return self._select(placed)
        if binding.kind == "pick":
            return self._pick(placed)
        if binding.kind == "literal":
            return binding.stored
        if binding.kind == "resource":
            return ident
        if binding.kind == "texel":
            return self._texel_value(placed)
        if binding.rank >= 0:
            return self._tensor(placed)
        uniform = self._class(placed) == UNIFORM and not placed.writes
        if self.in_wide and not uniform and not self.shape.cpu:
            return self._wide_load(placed)
        lines = self.hoisted if uniform else self.body
        self._load(placed, ident, binding.stored, f"_v_{ident}", lines, binding.type)
        return f"_v_{ident}"

    def _store_leaf(self, placed: Placed, var: str) -> None:
        binding, ident = placed.binding, placed.ident
        if binding.pair:
            self.body.append(f"_call.{ident}_out.write(0, {{ {var}.p, {var}.d }});")
            return
        if binding.kind == "reference":
            self.body.append(f"_call.{ident}_out.write(0, {var});")
            return
        if binding.kind == "custom":
            if not placed.reads:
                self._custom_context(placed)
            self.body.append(f"_call.{ident}.__slangpy_store(_x_{ident}, {var});")
            return
        if binding.kind == "texel":
            self._store_texel(placed, var)
            return
        if self.in_wide:
            self._wide_store(ident, binding.stored, var, placed.reads)
            return
        if not placed.reads:
            self.body.append(f"int64_t _o_{ident} = {self._offset(placed, ident)};")
        elif self._class(placed) == UNIFORM and not placed.writes:
            return
        self._transfer(placed, ident, var, binding.type, f"_o_{ident}", 0, self.body, binding.stored, load=False)

    def _store_result(self) -> None:
        mode = self.plan.result_mode
        if mode == "value":
            self.body.append("_call._out.write(0, _r);")
        elif mode in ("tensor", "numpy", "torch"):
            if self.in_wide:
                self._wide_store("_out", self.plan.resolved.return_type_name, "_r", False)
                return
            if self.shape.flat:
                at = "int64_t(_i)"
            else:
                at = self._strided("_out_lead", tuple(range(self.rank))) if self.rank else "0"
            self.body.append(f"_call._out.write({at}, _r);")
        elif mode == "texture":
            self._store_texture_result()
        elif mode in ("leaf", "custom"):
            for placed in self.leaves.get("_result", []):
                if placed.writes:
                    self._store_leaf(placed, "_r" + placed.path[len("_result") :])
