"""The loops of kernels: from the index of a thread or block to call indices, around the lines that the writers left."""

from __future__ import annotations

from .emit_backward import group_limit
from .emit_state import KernelState
from .text import indent


class LoopWriter(KernelState):
    """Entry points of each shape: over blocks on the CPU, one or several invocations per thread elsewhere."""

    def _split(self, flat: str) -> list[str]:
        """Call indices _c0 ... from the flat index."""
        kind = self.index
        if self.rank == 0:
            return []
        if self.rank == 1:
            return [f"{kind} _c0 = {flat};"]
        lines = [f"{kind} _rest = {flat};"]
        for dim in range(self.rank - 1, 0, -1):
            size = f"{kind}(_call._shape[{dim}])"
            lines += [f"{kind} _c{dim} = _rest % {size};", f"_rest = _rest / {size};"]
        return [*lines, f"{kind} _c0 = _rest;"]

    def _call_index(self) -> list[str]:
        return [f"{self.index} _c0 = _i;"] if self.rank == 1 else []

    # --- CPU
    def _cpu_loop(self) -> list[str]:
        lines = [
            f"int64_t _first = ({self._flat_group()}) * _call._block;",
            "int64_t _last = _first + _call._block;",
            "if (_last > _call._total) _last = _call._total;",
            *self.hoisted,
        ]
        if self.tiles is not None:
            return [*lines, *self.tiles.cpu(self.row, self.body), *self.after]
        if self.shape.flat or self.rank <= 1:
            begin = "_first"
            if self.shape.width > 1:
                begin = "_at"
                lines += self._streaming_loop()
            lines += [f"for (int64_t _i = {begin}; _i < _last; _i++)", "{"]
            if self.rank == 1:
                lines.append("    int64_t _c0 = _i;")
            lines += [*indent(self.row), *indent(self.body), "}"]
        else:
            last = self.rank - 1
            lines += ["for (int64_t _i = _first; _i < _last;)", "{"]
            lines += indent(self._split("_i"))
            lines += [
                f"    int64_t _stop = _i + _call._shape[{last}] - _c{last};",
                "    if (_stop > _last) _stop = _last;",
                *indent(self.row),
                f"    for (; _i < _stop; _i++, _c{last}++)",
                "    {",
                *indent(indent(self.body)),
                "    }",
                "}",
            ]
        return lines + self.after

    def _streaming_loop(self) -> list[str]:
        """Large results: computed in small pieces that are written around the caches."""
        width = self.shape.width
        return [
            "int64_t _at = _first;",
            "if (_call._flags != 0)",
            f"    for (; _at + {width} <= _last; _at += {width})",
            "    {",
            *indent(indent(self.wide_loads)),
            f"        for (int _k = 0; _k < {width}; _k++)",
            "        {",
            "            int64_t _i = _at + _k;",
            *indent(indent(indent(self._call_index() + self.wide_body))),
            "        }",
            *indent(indent(self.wide_stores)),
            "    }",
        ]

    def _flat_group(self) -> str:
        return "int64_t(_group.x) + int64_t(_group.y) * 0xffffffffll"

    # --- GPU
    def _gpu_body(self) -> list[str]:
        if self.tiles is not None:
            strides = group_limit(self.plan, self.grads, self.shape) > 0
            return self.tiles.gpu(self.hoisted, self.row + self.body, self.after, strides)
        if self.shape.width > 1:
            return self._wide_body()
        if group_limit(self.plan, self.grads, self.shape):
            return self._striding_body()
        size = self.shape.group_size
        kind = self.index
        lines = [
            f"{kind} _i = ({kind}(_group.x) + {kind}(_group.y) * {kind}(_call._block)) * {size} + {kind}(_thread);",
            f"if (_i >= {kind}(_call._total)) return;",
        ]
        if not self.shape.flat:
            lines += self._split("_i")
        elif self.rank == 1:
            lines.append(f"{kind} _c0 = _i;")
        return lines + self.hoisted + self.row + self.body + self.after

    def _wide_body(self) -> list[str]:
        """Each thread moves `width` neighbours with one access each; the last thread may have fewer."""
        size, kind, width = self.shape.group_size, self.index, self.shape.width
        return [
            f"{kind} _q = ({kind}(_group.x) + {kind}(_group.y) * {kind}(_call._block)) * {size} + {kind}(_thread);",
            f"{kind} _begin = _q * {width};",
            f"if (_begin >= {kind}(_call._total)) return;",
            *self.hoisted,
            f"if (_begin + {width} <= {kind}(_call._total))",
            "{",
            *indent(self.wide_loads),
            f"    [ForceUnroll] for (int _k = 0; _k < {width}; _k++)",
            "    {",
            f"        {kind} _i = _begin + _k;",
            *indent(indent(self._call_index() + self.wide_body)),
            "    }",
            *indent(self.wide_stores),
            "}",
            "else",
            "{",
            f"    for ({kind} _i = _begin; _i < {kind}(_call._total); _i++)",
            "    {",
            *indent(indent(self._call_index() + self.body)),
            "    }",
            "}",
        ]

    def _striding_body(self) -> list[str]:
        """All threads live to the end, where groups sum: each handles every `_stride`-th invocation."""
        size, kind = self.shape.group_size, self.index
        unsigned = "uint64_t" if self.shape.wide else "uint"
        lines = [f"{kind} _i = {kind}(_n);"]
        if not self.shape.flat:
            lines += self._split("_i")
        elif self.rank == 1:
            lines.append(f"{kind} _c0 = _i;")
        return [
            f"{unsigned} _stride = {unsigned}(_call._block) * {size};",
            *self.hoisted,
            f"for ({unsigned} _n = _group.x * {size} + _thread; _n < {unsigned}(_call._total); _n += _stride)",
            "{",
            *indent(lines + self.row + self.body),
            "}",
            *self.after,
        ]
