"""Kernels whose groups cover a patch: part of two dimensions of the call.

The threads of a warp lie side by side in the dimension along which results are stored. A thread has several elements, which
share what it computes of the other dimensions. Views whose neighbours lie along the patch's other dimension are loaded
that way by the whole group, and read from its memory.
"""

from __future__ import annotations

from ..slang_text import indent
from ..trampoline import Kernel, Wide
from ..trampoline.variant import Patch


class PatchLoops:
    """The index code of such a kernel. `_x0` and `_y0` are where the patch begins, `_k` counts a thread's elements."""

    def __init__(self, kernel: Kernel, wide: Wide, patch: Patch) -> None:
        self.kernel, self.wide, self.patch = kernel, wide, patch
        self.rank = kernel.facts.rank
        self.others = [dim for dim in range(self.rank) if dim not in (patch.x, patch.y)]
        # functions that pick elements may be long: their compiler decides whether it repeats them
        self.unroll = "" if kernel.facts.takes_tensors else "[ForceUnroll] "

    def gpu(self) -> list[str]:
        """The body of one thread."""
        patch, wide = self.patch, self.wide
        fast = [*wide.loads, *self._each([*self._place(), *wide.body]), *self._each(wide.stores)]
        slow = [*self._place(), f"if ({self._inside('_c')})", "{", *indent(self.kernel.body), "}"]
        return [
            f"int _lane = int(_thread & {patch.LANES - 1}), _warp = int(_thread / {patch.LANES});",
            f"int _x0 = int(_group.x) * {patch.size[0]}, _y0 = int(_group.y) * {patch.size[1]};",
            f"bool _full = _x0 + {patch.size[0]} <= {self._size(patch.x)} && _y0 + {patch.size[1]} <= {self._size(patch.y)};",
            *self._batch(),
            *self.kernel.hoisted,
            *self.kernel.row,
            *(self._fetch() if patch.crossed else []),
            *self._either(fast, slow),
        ]

    def _either(self, full: list[str], element: list[str]) -> list[str]:
        """`full` where the whole patch is inside of the call, else `element` for each of a thread's elements."""
        return ["if (_full)", "{", *indent(full), "}", "else", "{", *indent(self._each(element, "[loop] ")), "}"]

    def _size(self, dim: int) -> str:
        return f"int(_call._shape[{dim}])"

    def _each(self, lines: list[str], attribute: str | None = None) -> list[str]:
        attribute = self.unroll if attribute is None else attribute
        return [f"{attribute}for (int _k = 0; _k < {self.patch.EACH}; _k++)", "{", *indent(lines), "}"] if lines else []

    def _inside(self, index: str) -> str:
        return " && ".join(f"{index}{dim} < {self._size(dim)}" for dim in (self.patch.x, self.patch.y))

    def _batch(self) -> list[str]:
        """The call indices outside of the patch."""
        if len(self.others) < 2:
            return [f"int _c{dim} = int(_group.z);" for dim in self.others]
        first, second = self.others
        return [
            f"int _c{first} = int(_spy_quotient(_group.z, _call._divisor[{second}]));",
            f"int _c{second} = int(_group.z) - _c{first} * {self._size(second)};",
        ]

    def _place(self) -> list[str]:
        """The call indices of element `_k`, its flat index, and where it lies in the group's memory."""
        patch = self.patch
        below = f" + _k * {patch.WARPS}" if patch.crossed else ""
        beside = "" if patch.crossed else f" + _k * {patch.LANES}"
        flat = "_c0"
        for dim in range(1, self.rank):
            flat = f"({flat}) * {self._size(dim)} + _c{dim}"
        lines = [f"int _c{patch.x} = _x0 + _lane{beside};", f"int _c{patch.y} = _y0 + _warp{below};", f"int _i = {flat};"]
        return [*lines, f"int _from = _lane * {patch.size[1] + 1} + _warp{below};"] if patch.crossed else lines

    def _fetch(self) -> list[str]:
        """The group's part of crossed views: here neighbouring threads differ in y."""
        patch = self.patch
        own = f"_warp + _k * {patch.WARPS}"
        place = [
            *(f"int _s{dim} = _c{dim};" for dim in self.others),
            f"int _s{patch.x} = _x0 + {own};",
            f"int _s{patch.y} = _y0 + _lane;",
            f"int _to = ({own}) * {patch.size[1] + 1} + _lane;",
        ]
        checked = [*place, f"if ({self._inside('_s')})", "{", *indent(self.kernel.fetch), "}"]
        full = self._each([*place, *self.kernel.fetch], "[ForceUnroll] ")
        return [*self._either(full, checked), "GroupMemoryBarrierWithGroupSync();"]
