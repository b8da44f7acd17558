"""The Slang text of a kernel: one structure with all stored arguments, and an entry point that loads, calls, stores.

The writers, each on top of the ones before it: emit_state, emit_elements and emit_fields, emit_values, tables and
emit_textures, emit_leaves, emit_forward, emit_backward and emit_forward_mode; emit_loops puts their lines into loops."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from .emit_forward_mode import ForwardModeWriter
from .emit_loops import LoopWriter
from .emit_second_order import SecondOrderWriter
from .groups import position_lines
from .ir import Derivative, Options, Vectorized
from .text import import_statement, indent
from .variants import Shape


def emit(
    plan: Vectorized, grads: dict[str, Derivative], options: Options, shape: Shape, imports: list[str],
    capabilities: Iterable[str] = (), result_format: str = "",
) -> str:  # fmt: skip
    """Complete source of the generated module; its entry point is `_spy_main`. `result_format`: of a texture result."""
    if options.fwds:
        shape = replace(shape, width=1)
    return _Writer(plan, grads, options, shape, imports, frozenset(capabilities), result_format).text()


class _Writer(SecondOrderWriter, ForwardModeWriter, LoopWriter):
    def text(self) -> str:
        for placed in self.plan.placed:
            self._declare(placed)
        self._declare_result()
        if self.options.second:
            wrapper = self._emit_second_order()
        elif self.options.bwds:
            wrapper = self._emit_backward()
        elif self.options.fwds:
            wrapper = self._emit_forward_mode()
        else:
            wrapper = []
            if self.shape.width > 1:
                self.in_wide = True
                self._emit_forward()
                self.wide_body, self.body, self.hoisted, self.row, self.in_wide = self.body, [], [], [], False
            self._emit_forward()
        self.body = self._over_places(self.body)
        if self.plan.positions:
            self.body = [*position_lines(self.rank, self.plan.tile), *self.body]
        added = [p.binding.code for p in self.plan.placed if p.binding.code is not None]
        imports = [*self.imports, *(name for code in added for name in code.imports), *self._texture_imports()]
        lines = [import_statement(name) for name in dict.fromkeys(imports)]
        lines += list(self.options.preludes)
        lines += list(dict.fromkeys("\n".join(code.lines) for code in added if code.lines))
        lines += self._library_settings()
        if self._checks_bounds():
            lines.append("export static const bool _spy_check_bounds = true;")
        lines += self.aliases
        lines.append("struct _spy_Call")
        lines.append("{")
        lines += [f"    {f};" for f in self._header() + self.fields]
        lines.append("}")
        lines += wrapper
        lines += self._entry_point()
        return "\n".join(lines) + "\n"

    def _header(self) -> list[str]:
        header = ["int64_t _total", "int64_t _block", "int64_t _flags", f"int64_t _shape[{max(self.rank, 1)}]"]
        if self.options.bwds:
            header.append("int64_t _period")
        if self._checks_bounds():
            header.append("uint64_t _bounds")
        return [*header, "uint64_t _redirects"] if any(g.sums is not None for g in self.grads.values()) else header

    def _entry_point(self) -> list[str]:
        extra = "".join(f", {p}" for p in self.extra)
        if self.shape.cpu:
            head = f"void _spy_main(uint3 _group : SV_GroupID, uniform _spy_Call _call{extra})"
            body = [*self._redirect(), *self._cpu_loop()]
            return ['[shader("compute")]', "[numthreads(1, 1, 1)]", head, "{", *indent(body), "}"]
        head = (
            f"void _spy_main(uint3 _group : SV_GroupID, uint _thread : SV_GroupIndex, uniform _spy_Call _call{extra})"
        )
        size = self.shape.group_size
        return [
            '[shader("compute")]', f"[numthreads({size}, 1, 1)]", head, "{", *indent([*self._redirect(), *self._gpu_body()]), "}",
        ]  # fmt: skip
