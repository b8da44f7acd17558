"""Where the elements of views lie, and the statements that load and store them."""

from __future__ import annotations

from ..reflection import SlangType
from .emit_state import KernelState
from .ir import Placed
from .text import indent, product, slang_name, vector_name
from .variants import UNIFORM


class ElementWriter(KernelState):
    """Offsets into views, and copies between views and variables."""

    # --- offsets
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
            lines += indent(inner) + ["}"]
        else:
            self._transfer_components(placed, name, var, type_, offset, position, lines, stored, load, add)

    def _transfer_components(
        self, placed: Placed, name: str, var: str, type_: SlangType, offset: str, position: int, lines: list[str],
        stored: str, load: bool, add: str,
    ) -> None:  # fmt: skip
        scalar = SlangType(type_.scalar, source=type_.program)
        sizes = type_.shape
        strides = [self._inner_stride(placed, name, position + k) for k in range(len(sizes))]
        for flat in range(product(sizes)):
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
            return f"{var} = {value if same else f'{slang_name(type_.full_name)}({value})'};"
        if add == "summed" and "half" in stored:
            return f"_spy_add_summed<{slang_name(stored)}>({storage}.at({at}), {var});"
        value = var if same else f"{slang_name(stored)}({var})"
        if add == "near":
            return f"_spy_atomic_add_near<{slang_name(stored)}>({storage}, {at}, {value});"
        if add in ("atomic", "summed"):
            return f"_spy_atomic_add<{slang_name(stored)}>({storage}.at({at}), {value});"
        if add == "plain":
            return f"{storage}.write({at}, {storage}.read({at}) + {value});"
        return f"{storage}.write({at}, {value});"

    # --- neighbours that one thread moves together
    def _wide_load(self, placed: Placed) -> str:
        """One component of the neighbours that were loaded together."""
        ident, stored = placed.ident, placed.binding.stored
        kind = vector_name(stored, self.shape.width)
        self.wide_loads.append(f"{kind} _w_{ident} = _call.{ident}.cast<{kind}>().read(_q);")
        self.body.append(f"_spy_T_{ident} _v_{ident} = _spy_T_{ident}(_w_{ident}[_k]);")
        return f"_v_{ident}"

    def _wide_store(self, name: str, stored: str, value: str, loaded: bool) -> None:
        if self.shape.cpu:
            self.wide_loads.append(f"{stored} _w_{name}[{self.shape.width}];")
            self.body.append(f"_w_{name}[_k] = {stored}({value});")
            self.wide_stores.append(f"_spy_stream<{stored}, {self.shape.width}>(_call.{name}.at(_at), _w_{name});")
            return
        kind = vector_name(stored, self.shape.width)
        if not loaded:
            self.wide_loads.append(f"{kind} _w_{name};")
        self.body.append(f"_w_{name}[_k] = {stored}({value});")
        self.wide_stores.append(f"_call.{name}.cast<{kind}>().write(_q, _w_{name});")


def _narrow_element(storage: str, var: str, type_: SlangType, at: str, load: bool, add: str) -> str:
    """An element stored as BFloat16: read as float, summed in float, rounded when it is stored."""
    if load:
        return f"{var} = {slang_name(type_.full_name)}({storage}.read({at}).value());"
    if add in ("near", "atomic", "summed"):
        return f"_spy_atomic_add_bf16({storage}.at({at}), float({var}));"
    value = f"{storage}.read({at}).value() + float({var})" if add else f"float({var})"
    return f"{storage}.write({at}, _spy_BFloat16({value}));"


def _typename(placed: Placed, type_: SlangType) -> str:
    return f"_spy_T_{placed.ident}" if type_ is placed.binding.type else slang_name(type_.full_name)
