"""The Slang text of a kernel: one structure with all stored arguments, and an entry point that loads, calls, stores."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from ..marshall.base import SIZES, TENSOR
from ..reflection import SlangType
from .emit_backward import GENERAL, LINEAR, UNIFORM, BackwardWriter, group_limit
from .emit_forward_mode import ForwardModeWriter
from .emit_textures import TextureWriter
from .gradients import NONE
from .groups import TileLoops, position_lines
from .ir import Derivative, Options, Parameter, Placed, Vectorized
from .tables import TableWriter
from .text import (
    import_statement,
    indent as _indent,
    product as _product,
    slang_name as _slang_name,
    stored_name as _stored_name,
)
from .zeros import zero_missing


@dataclass(frozen=True)
class Shape:
    """What a variant key says: see VariantKey in src/native/call/plan.h."""

    flat: bool
    wide: bool
    classes: dict[str, int]
    cpu: bool
    group_size: int = 256
    width: int = 1  # consecutive elements of one thread, moved by one wide access


def classed(placed: Placed) -> bool:
    """Whether the run-time access class of a leaf decides its code."""
    return placed.binding.kind in ("view", "packed")


def decode_variant(key: int, plan: Vectorized, cpu: bool, group_size: int) -> Shape:
    classes: dict[str, int] = {}
    position = 0
    for placed in sorted(plan.placed, key=lambda p: p.leaf):
        if classed(placed):
            bits = key >> (3 + 2 * position) & 3 if position < 30 else GENERAL
            classes[placed.ident] = bits
            position += 1
    width = vector_width(plan) if key & 4 else 1
    if cpu and key & 1 and streams(plan, classes):
        width = 64 // SIZES[plan.resolved.return_type_name]
    return Shape(bool(key & 1), bool(key & 2), classes, cpu, group_size, width)


def streams(plan: Vectorized, classes: dict[str, int]) -> bool:
    """Whether a flat CPU kernel has one scalar result that may be written around the caches."""
    if plan.resolved.return_type_name not in SIZES or vector_width(plan) == 1:
        return False
    if any(p.writes and p is not plan.result for p in plan.placed):
        return False
    if plan.result_mode in ("tensor", "numpy", "torch"):
        return True
    result = plan.result
    if result is None or not result.writes or result.path != "_result" or result.binding.kind != "view":
        return False
    return classes.get(result.ident) == LINEAR and result.binding.stored == plan.resolved.return_type_name


def vector_width(plan: Vectorized) -> int:
    """Elements that one thread of a flat GPU kernel handles at once; 1 where the arguments do not allow it."""
    sizes: set[int] = set()
    if plan.tile or plan.positions:
        return 1
    for placed in plan.placed:
        binding = placed.binding
        if binding.kind in ("reference", "resource", "custom", "texel", "table", "select") or binding.rank >= 0:
            return 1
        if placed.writes and not placed.map:  # one element for all invocations
            return 1
        if binding.kind in ("view", "packed"):
            if placed.map and (binding.inner or binding.stored not in SIZES or binding.stored == "bool"):
                return 1
            sizes.add(SIZES.get(binding.stored, 0))
    if plan.result_mode == "texture":
        return 1
    if plan.result_mode in ("tensor", "numpy", "torch"):
        name = plan.resolved.return_type_name
        if name not in SIZES or name == "bool":
            return 1
        sizes.add(SIZES[name])
    return {1: 4, 2: 4, 4: 4, 8: 2}.get(max(sizes, default=0), 1)


def emit(
    plan: Vectorized, grads: dict[str, Derivative], options: Options, shape: Shape, imports: list[str],
    capabilities: Iterable[str] = (), result_format: str = "",
) -> str:  # fmt: skip
    """Complete source of the generated module; its entry point is `_spy_main`. `result_format`: of a texture result."""
    if options.fwds:
        shape = replace(shape, width=1)
    return _Writer(plan, grads, options, shape, imports, frozenset(capabilities), result_format).text()


class _Writer(BackwardWriter, ForwardModeWriter, TextureWriter, TableWriter):
    def __init__(
        self, plan: Vectorized, grads: dict[str, Derivative], options: Options, shape: Shape, imports: list[str],
        capabilities: frozenset[str], result_format: str,
    ) -> None:  # fmt: skip
        self.capabilities, self.result_format = capabilities, result_format
        self.plan, self.grads, self.options, self.shape, self.imports = plan, grads, options, shape, imports
        self.rank = plan.call_rank
        self.fields: list[str] = []
        self.aliases: list[str] = []
        self.extra: list[str] = []  # entry point parameters besides the call structure
        self.hoisted: list[str] = []
        self.row: list[str] = []
        self.body: list[str] = []
        self.after: list[str] = []
        self.wide_loads: list[str] = []
        self.wide_stores: list[str] = []
        self.wide_body: list[str] = []
        self.in_wide = False
        self.index = "int64_t" if shape.wide or shape.cpu else "int"
        self.tiles = TileLoops(plan.tile, self.index) if plan.tile else None
        self.thread = "_d" if plan.tile else "_i"  # counts invocations as they are dispatched
        self.bases: dict[str, str] = {}
        self.leaves: dict[str, list[Placed]] = {}
        for placed in plan.placed:
            self.leaves.setdefault(placed.parameter, []).append(placed)

    # --- assembly
    def text(self) -> str:
        for placed in self.plan.placed:
            self._declare(placed)
        self._declare_result()
        if self.options.bwds:
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

    def _checks_bounds(self) -> bool:
        return self.options.check_bounds and any(p.binding.rank >= 0 for p in self.plan.placed)

    def _entry_point(self) -> list[str]:
        extra = "".join(f", {p}" for p in self.extra)
        if self.shape.cpu:
            head = f"void _spy_main(uint3 _group : SV_GroupID, uniform _spy_Call _call{extra})"
            body = [*self._redirect(), *self._cpu_loop()]
            return ['[shader("compute")]', "[numthreads(1, 1, 1)]", head, "{", *_indent(body), "}"]
        head = (
            f"void _spy_main(uint3 _group : SV_GroupID, uint _thread : SV_GroupIndex, uniform _spy_Call _call{extra})"
        )
        size = self.shape.group_size
        return [
            '[shader("compute")]', f"[numthreads({size}, 1, 1)]", head, "{", *_indent([*self._redirect(), *self._gpu_body()]), "}",
        ]  # fmt: skip

    def _flat_group(self) -> str:
        return "int64_t(_group.x) + int64_t(_group.y) * 0xffffffffll"

    def _cpu_loop(self) -> list[str]:
        lines = [
            f"int64_t _first = ({self._flat_group()}) * _call._block;",
            "int64_t _last = min(_first + _call._block, _call._total);",
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
            lines += [*_indent(self.row), *_indent(self.body), "}"]
        else:
            last = self.rank - 1
            lines += ["for (int64_t _i = _first; _i < _last;)", "{"]
            lines += _indent(self._split("_i"))
            lines += [
                f"    int64_t _stop = min(_last, _i + _call._shape[{last}] - _c{last});",
                *_indent(self.row),
                f"    for (; _i < _stop; _i++, _c{last}++)",
                "    {",
                *_indent(_indent(self.body)),
                "    }",
                "}",
            ]
        return lines + self.after

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

    def _streaming_loop(self) -> list[str]:
        """Large results: computed in small pieces that are written around the caches."""
        width = self.shape.width
        return [
            "int64_t _at = _first;",
            "if (_call._flags != 0)",
            f"    for (; _at + {width} <= _last; _at += {width})",
            "    {",
            *_indent(_indent(self.wide_loads)),
            f"        for (int _k = 0; _k < {width}; _k++)",
            "        {",
            "            int64_t _i = _at + _k;",
            *_indent(_indent(_indent(self._call_index() + self.wide_body))),
            "        }",
            *_indent(_indent(self.wide_stores)),
            "    }",
        ]

    def _call_index(self) -> list[str]:
        return [f"{self.index} _c0 = _i;"] if self.rank == 1 else []

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
            *_indent(self.wide_loads),
            f"    [ForceUnroll] for (int _k = 0; _k < {width}; _k++)",
            "    {",
            f"        {kind} _i = _begin + _k;",
            *_indent(_indent(self._call_index() + self.wide_body)),
            "    }",
            *_indent(self.wide_stores),
            "}",
            "else",
            "{",
            f"    for ({kind} _i = _begin; _i < {kind}(_call._total); _i++)",
            "    {",
            *_indent(_indent(self._call_index() + self.body)),
            "    }",
            "}",
        ]

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
            *_indent(lines + self.row + self.body),
            "}",
            *self.after,
        ]

    # --- stored arguments
    def _declare(self, placed: Placed) -> None:
        binding, ident = placed.binding, placed.ident
        if placed.element:
            return  # declared with the first element
        self.aliases.append(f"typealias _spy_T_{ident} = {_slang_name(binding.type_name)};")
        grad = self.grads.get(ident, NONE)
        if binding.kind in ("view", "packed"):
            self._declare_view(ident, binding.stored, len(placed.map), len(binding.inner), binding.rank)
            for view in grad.views:
                self._declare_view(
                    f"{ident}_{view}", grad.view_type(view), len(placed.map), len(binding.inner), binding.rank
                )
        elif binding.kind == "value":
            self.fields.append(f"{_slang_name(binding.stored)} {ident}")
        elif binding.kind == "reference":
            if binding.pair:
                self._declare_pair(placed)
                return
            if placed.reads:
                self.fields.append(f"_spy_T_{ident} {ident}")
            if grad.seed == "value":
                self.fields.append(f"_spy_T_{ident}.Differential {ident}_seed")
            if placed.writes or grad.target == "reference":
                kind = f"_spy_T_{ident}.Differential" if grad.target == "reference" else f"_spy_T_{ident}"
                self.fields.append(f"TensorStorage<{kind}> {ident}_out")
            if grad.target == "pair":
                self.fields.append(f"TensorStorage<_spy_T_{ident}.Differential> {ident}_tangent")
        elif binding.kind == "generator":
            self._declare_generator(placed)
        elif binding.kind == "custom":
            self.fields.append(f"{_slang_name(binding.stored)} {ident}")
            if placed.map:
                self.fields.append(f"int64_t {ident}_stride[{len(placed.map)}]")
        elif binding.kind == "table":
            self._declare_table(placed)
        elif binding.kind == "select":
            self._declare_select(placed)
        elif binding.kind == "pointer":
            self.fields.append(f"_spy_T_{ident} {ident}")
        elif binding.kind == "resource":
            self._declare_resource(placed)
        elif binding.kind == "texel":
            self._declare_texels(placed)

    def _declare_view(self, name: str, element: str, lead: int, inner: int, rank: int) -> None:
        self.fields.append(f"TensorStorage<{_stored_name(element)}> {name}")
        if lead:
            self.fields.append(f"int {name}_lead[{lead}]")
        if inner or rank >= 0:
            self.fields.append(f"int {name}_inner[{max(inner, 1)}]")
        if rank >= 0:
            self.fields.append(f"uint {name}_shape[{max(rank, 1)}]")
            self.fields.append(f"int64_t {name}_first")

    def _declare_pair(self, placed: Placed) -> None:
        """A DiffPair for a DifferentialPair: both halves stored, and written back together."""
        ident = placed.ident
        self.aliases.append(f"typealias _spy_H_{ident} = {_slang_name(placed.binding.stored)};")
        if placed.reads:
            self.fields += [f"_spy_H_{ident} {ident}", f"_spy_H_{ident}.Differential {ident}_seed"]
        if placed.writes and not self.options.bwds:
            self.fields.append(f"TensorStorage<_PairParts<_spy_H_{ident}>> {ident}_out")

    def _declare_generator(self, placed: Placed) -> None:
        ident, value = placed.ident, placed.binding.value
        assert value is not None
        kind = value.details["generator"]
        if kind in ("range", "grid"):
            self.fields += [f"int64_t {ident}_offset[{len(placed.map)}]", f"int64_t {ident}_stride[{len(placed.map)}]"]
        elif kind in ("wang_hash", "rand_float"):
            self.fields += [f"uint {ident}_seed", f"uint {ident}_warmup"]
            if kind == "rand_float":
                self.fields += [f"float {ident}_min", f"float {ident}_max"]

    def _declare_result(self) -> None:
        plan = self.plan
        if plan.result_mode == "texture":
            self._declare_texture_result()
        if plan.result_mode in ("value", "tensor", "numpy", "torch"):
            self.aliases.append(f"typealias _spy_R = {_slang_name(plan.resolved.return_type_name)};")
            self.fields.append("TensorStorage<_spy_R> _out")
            if plan.result_mode != "value" and self.rank:
                self.fields.append(f"int _out_lead[{self.rank}]")
            if self.options.fwds and plan.resolved.return_type.differentiable:
                self.fields.append("TensorStorage<_spy_R.Differential> _out_tangent")

    # --- offsets
    def _base(self, name: str) -> str:
        return self.bases.get(name, "_call")

    def _class(self, placed: Placed) -> int:
        if placed.ident in self.bases:
            return GENERAL
        return self.shape.classes.get(placed.ident, UNIFORM)

    def _offset(self, placed: Placed, name: str) -> str:
        """Expression of the element offset of this invocation in the view `name` of a leaf."""
        access = self._class(placed)
        if access == UNIFORM or not placed.map:
            return "0"
        if self.shape.flat:
            count = 1
            for size in placed.binding.inner:
                count *= size
            return "int64_t(_i)" if count == 1 else f"int64_t(_i) * {count}"
        return self._strided(name + "_lead", placed.map)

    def _strided(self, strides: str, dims: tuple[int, ...], index: str = "_c") -> str:
        last = self.rank - 1
        split_rows = self.shape.cpu and self.rank > 1 and index == "_c" and strides[:-5] not in self.bases
        terms, row_terms = [], []
        for position, dim in enumerate(dims):
            term = f"int64_t({index}{dim}) * int64_t({self._base(strides[:-5])}.{strides}[{position}])"
            (terms if dim == last or not split_rows else row_terms).append(term)
        if not row_terms:
            return " + ".join(terms) or "0"
        base = f"_row_{strides}"
        declaration = f"int64_t {base} = {' + '.join(row_terms)};"
        if declaration not in self.row:
            self.row.append(declaration)
        return " + ".join([base, *terms])

    def _inner_stride(self, placed: Placed, name: str, position: int) -> str:
        if not self.shape.flat or self._class(placed) == UNIFORM:
            return f"int64_t({self._base(name)}.{name}_inner[{position}])"
        count = 1
        for size in placed.binding.inner[position + 1 :]:
            count *= size
        return str(count)

    # --- loads and stores of elements
    def _components(self, type_: SlangType, stored: str) -> list[int]:
        return [] if type_.full_name == stored else list(type_.shape)

    def _load(
        self, placed: Placed, name: str, storage_type: str, target: str, lines: list[str], type_: SlangType
    ) -> None:
        """Statements that fill the variable `target` (declared here) from a view."""
        offset = self._offset(placed, name)
        lines.append(f"int64_t _o_{name} = {offset};")
        lines.append(f"{_typename(placed, type_)} {target};")
        self._transfer(placed, name, target, type_, f"_o_{name}", 0, lines, storage_type, load=True)

    def _transfer(
        self, placed: Placed, name: str, var: str, type_: SlangType, offset: str, position: int, lines: list[str],
        stored: str, load: bool, add: str = "",
    ) -> None:  # fmt: skip
        """Copies between `var` and memory, one stored element at a time."""
        if position == len(placed.binding.inner):
            lines.append(self._element(name, var, type_, offset, stored, load, add))
        elif type_.kind == "array":
            k = f"_k{position}"
            stride = self._inner_stride(placed, name, position)
            lines.append(f"[ForceUnroll] for (int {k} = 0; {k} < {type_.shape[0]}; {k}++)")
            lines.append("{")
            inner: list[str] = []
            element = type_.element_type
            assert element is not None
            self._transfer(
                placed,
                name,
                f"{var}[{k}]",
                element,
                f"{offset} + {k} * {stride}",
                position + 1,
                inner,
                stored,
                load,
                add,
            )
            lines += _indent(inner) + ["}"]
        else:
            self._transfer_components(placed, name, var, type_, offset, position, lines, stored, load, add)

    def _transfer_components(
        self, placed: Placed, name: str, var: str, type_: SlangType, offset: str, position: int, lines: list[str],
        stored: str, load: bool, add: str,
    ) -> None:  # fmt: skip
        scalar = SlangType(type_.scalar, source=type_.program)
        sizes = type_.shape
        strides = [self._inner_stride(placed, name, position + k) for k in range(len(sizes))]
        for flat in range(_product(sizes)):
            indices = [flat] if len(sizes) == 1 else [flat // sizes[1], flat % sizes[1]]
            at = offset + "".join(f" + {i} * {s}" for i, s in zip(indices, strides, strict=False) if i)
            component = var + "".join(f"[{i}]" for i in indices)
            lines.append(self._element(name, component, scalar, at, stored, load, add))

    def _element(self, name: str, var: str, type_: SlangType, at: str, stored: str, load: bool, add: str) -> str:
        storage = f"{self._base(name)}.{name}"
        if stored == "BFloat16":
            return _narrow_element(storage, var, type_, at, load, add)
        same = stored == type_.full_name
        if load:
            value = f"{storage}.read({at})"
            return f"{var} = {value if same else f'{_slang_name(type_.full_name)}({value})'};"
        value = var if same else f"{_slang_name(stored)}({var})"
        if add == "near":
            return f"_spy_atomic_add_near<{_slang_name(stored)}>({storage}, {at}, {value});"
        if add == "atomic":
            return f"_spy_atomic_add<{_slang_name(stored)}>({storage}.at({at}), {value});"
        if add == "plain":
            return f"{storage}.write({at}, {storage}.read({at}) + {value});"
        return f"{storage}.write({at}, {value});"

    # --- values of leaves
    def _leaf_value(self, placed: Placed) -> str:
        """Expression of a leaf's primal; statements go where they are cheapest."""
        binding, ident = placed.binding, placed.ident
        if binding.kind == "value":
            if binding.widen:
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

    def _wide_load(self, placed: Placed) -> str:
        """One component of the neighbours that were loaded together."""
        ident, stored = placed.ident, placed.binding.stored
        kind = f"vector<{stored},{self.shape.width}>"
        self.wide_loads.append(f"{kind} _w_{ident} = _call.{ident}.cast<{kind}>().read(_q);")
        self.body.append(f"_spy_T_{ident} _v_{ident} = _spy_T_{ident}(_w_{ident}[_k]);")
        return f"_v_{ident}"

    def _wide_store(self, name: str, stored: str, value: str, loaded: bool) -> None:
        if self.shape.cpu:
            self.wide_loads.append(f"{stored} _w_{name}[{self.shape.width}];")
            self.body.append(f"_w_{name}[_k] = {stored}({value});")
            self.wide_stores.append(f"_spy_stream<{stored}, {self.shape.width}>(_call.{name}.at(_at), _w_{name});")
            return
        kind = f"vector<{stored},{self.shape.width}>"
        if not loaded:
            self.wide_loads.append(f"{kind} _w_{name};")
        self.body.append(f"_w_{name}[_k] = {stored}({value});")
        self.wide_stores.append(f"_call.{name}.cast<{kind}>().write(_q, _w_{name});")

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
                self._fill_view(placed, name, f"{var}.{field}", lines)
        return var

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
            value = f"_Gradient<{rank}>.none()"
            if name:
                storage = f"_call.{name}.at({self._offset(placed, name)})"
                kept = grad.view_type(name[-2:])
                wide = ", true" if kept == "float" and placed.binding.stored == "half" else ""
                value = f"_Gradient<{rank}>.of<{_slang_name(kept)}>({storage}, _call.{name}_inner{wide})"
            lines.append(f"{var}.{field} = {value};")
        if access == "W":
            lines.append(f"{var}._discard = {'true' if self.options.bwds or not placed.writes else 'false'};")

    def _fill_view(self, placed: Placed, name: str, var: str, lines: list[str]) -> None:
        base = self._base(name)
        lines.append(f"{var}._data = {base}.{name}.at(-{base}.{name}_first);")
        lines.append(f"{var}._offset = {base}.{name}_first + {self._offset(placed, name)};")
        lines.append(f"{var}._shape = {base}.{name}_shape;")
        lines.append(f"{var}._strides = {base}.{name}_inner;")

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
            f"ContextND<{len(placed.map)}> _x_{ident};",
            f"_x_{ident}.thread_id = uint3(uint({self.thread}), 0, 0);",
        ]
        for k, dim in enumerate(placed.map):
            lines.append(f"_x_{ident}.call_id[{k}] = int(int64_t(_c{dim}) * _call.{ident}_stride[{k}]);")
        if not placed.map:
            lines.append(f"_x_{ident}.call_id[0] = 0;")
        self.body += lines

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
            first = f"{_slang_name(binding.stored)}({self.thread})"
            return f"{name}(" + ", ".join([first, "0", "0"][:count]) + ")"
        if kind == "call_id":
            parts = [f"_c{dim}" for dim in range(self.rank)]
        else:
            parts = [
                f"(_call.{ident}_offset[{k}] + _call.{ident}_stride[{k}] * int64_t(_c{dim}))"
                for k, dim in enumerate(placed.map)
            ]
        scalar = _slang_name(binding.stored)
        if type_.kind == "vector":
            parts = parts[::-1] + ["0"] * (count - len(parts))
        if type_.kind == "scalar":
            return f"{scalar}({parts[0] if parts else '0'})"
        inner = ", ".join(f"{scalar}({part})" for part in parts)
        if type_.kind == "vector":
            return f"{name}({inner})"
        self.body.append(f"{name} _v_{ident} = {{ {inner} }};")
        return f"_v_{ident}"

    # --- forward
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
        self.body.append(f"{_slang_name(parameter.type_name)} {var};")
        if parameter.io != "out":
            self.body.extend(zero_missing(var, parameter.binding))
            for placed in leaves:
                if not placed.element:
                    path = placed.path[len(parameter.name) :]
                    path = path.rpartition("[")[0] if placed.binding.array_type else path
                    self.body.append(f"{var}{path} = {self._leaf_value(placed)};")
        return var

    def _call_expression(self, names: list[str]) -> str:
        resolved = self.plan.resolved
        if resolved.kind == "method":
            return f"{names[0]}.{resolved.call_name}({', '.join(names[1:])})"
        if resolved.kind == "static":
            return f"{_slang_name(resolved.struct_name)}.{resolved.call_name}({', '.join(names)})"
        if resolved.kind == "constructor":
            return f"{_slang_name(resolved.struct_name)}({', '.join(names)})"
        return f"{resolved.call_name}({', '.join(names)})"

    def _store_parameter(self, parameter: Parameter, var: str) -> None:
        for placed in self.leaves.get(parameter.name, []):
            binding = placed.binding
            if not placed.writes or binding.rank >= 0 or binding.kind not in ("view", "reference", "custom", "texel"):
                continue
            path = placed.path[len(parameter.name) :]
            self._store_leaf(placed, var + path)

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


def _narrow_element(storage: str, var: str, type_: SlangType, at: str, load: bool, add: str) -> str:
    """An element stored as BFloat16: read as float, summed in float, rounded when it is stored."""
    if load:
        return f"{var} = {_slang_name(type_.full_name)}({storage}.read({at}).value());"
    if add in ("near", "atomic"):
        return f"_spy_atomic_add_bf16({storage}.at({at}), float({var}));"
    value = f"{storage}.read({at}).value() + float({var})" if add else f"float({var})"
    return f"{storage}.write({at}, _BFloat16({value}));"


def _typename(placed: Placed, type_: SlangType) -> str:
    return f"_spy_T_{placed.ident}" if type_ is placed.binding.type else _slang_name(type_.full_name)


__all__ = ["emit", "decode_variant", "classed", "Shape", "Any"]
