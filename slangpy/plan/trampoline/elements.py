"""Where the elements of views lie, and the statements that load and store them."""

from __future__ import annotations

from ...reflection import SlangType
from ..records import Placed
from ..slang_text import indent, product, slang_name, vector_name
from . import Kernel
from .variant import UNIFORM


def offset_of(kernel: Kernel, placed: Placed, name: str) -> str:
    """Expression of the element offset of this invocation in the view `name` of a leaf."""
    access = kernel.access_of(placed)
    if access == UNIFORM or not placed.map:
        return "0"
    if kernel.facts.variant.flat:
        count = 1
        for size in placed.binding.inner:
            count *= size
        return "int64_t(_i)" if count == 1 else f"int64_t(_i) * {count}"
    return strided(kernel, name + "_lead", placed.map)


def strided(kernel: Kernel, strides: str, dims: tuple[int, ...], index: str = "_c") -> str:
    last = kernel.facts.rank - 1
    split_rows = kernel.facts.variant.cpu and kernel.facts.rank > 1 and index == "_c" and strides[:-5] not in kernel.bases
    terms, row_terms = [], []
    if kernel.facts.variant.near and strides[:-5] not in kernel.bases:
        near = (f"int({index}{dim}) * _call.{strides}[{position}]" for position, dim in enumerate(dims))
        return f"int64_t({' + '.join(near) or '0'})"
    for position, dim in enumerate(dims):
        term = f"int64_t({index}{dim}) * int64_t({kernel.base_of(strides[:-5])}.{strides}[{position}])"
        (terms if dim == last or not split_rows else row_terms).append(term)
    if not row_terms:
        return " + ".join(terms) or "0"
    base = f"_row_{strides}"
    declaration = f"int64_t {base} = {' + '.join(row_terms)};"
    if declaration not in kernel.row:
        kernel.row.append(declaration)
    return " + ".join([base, *terms])


def _inner_stride(kernel: Kernel, placed: Placed, name: str, position: int) -> str:
    if not kernel.facts.variant.flat or kernel.access_of(placed) == UNIFORM:
        return f"int64_t({kernel.base_of(name)}.{name}_inner[{position}])"
    count = 1
    for size in placed.binding.inner[position + 1 :]:
        count *= size
    return str(count)


def load_element(
    kernel: Kernel, placed: Placed, name: str, storage_type: str, target: str, lines: list[str], type_: SlangType
) -> None:
    """Statements that fill the variable `target` (declared here) from a view."""
    offset = offset_of(kernel, placed, name)
    lines.append(f"int64_t _o_{name} = {offset};")
    lines.append(f"{_typename(placed, type_)} {target};")
    transfer(kernel, placed, name, target, type_, f"_o_{name}", 0, lines, storage_type, load=True)


def transfer(
    kernel: Kernel, placed: Placed, name: str, var: str, type_: SlangType, offset: str, position: int,
    lines: list[str], stored: str, load: bool, add: str = "",
) -> None:  # fmt: skip
    """Copies between `var` and memory, one stored element at a time."""
    if position == 0 and not add and _is_packed(kernel, placed, name, type_, stored):
        whole = f"{kernel.base_of(name)}.{name}.at({offset}).cast<{slang_name(type_.full_name)}>()"
        lines.append(f"{var} = {whole}.read(0);" if load else f"{whole}.write(0, {var});")
    elif position == len(placed.binding.inner):
        lines.append(_element(kernel, name, var, type_, offset, stored, load, add))
    elif type_.kind == "array":
        k = f"_k{position}"
        stride = _inner_stride(kernel, placed, name, position)
        lines.append(f"[ForceUnroll] for (int {k} = 0; {k} < {type_.shape[0]}; {k}++)")
        lines.append("{")
        inner: list[str] = []
        element = type_.element_type
        assert element is not None
        transfer(
            kernel,
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
        _transfer_components(kernel, placed, name, var, type_, offset, position, lines, stored, load, add)


def _is_packed(kernel: Kernel, placed: Placed, name: str, type_: SlangType, stored: str) -> bool:
    """Whether arrays of scalars lie in memory as in a variable: CUDA then moves 16 bytes at a time (`_spy_by_16`)."""
    if not (kernel.facts.on_cuda and kernel.facts.variant.flat) or kernel.access_of(placed) == UNIFORM:
        return False
    if placed.binding.inner != tuple(type_.shape) or type_.kind != "array":
        return False
    while type_.kind == "array":
        assert type_.element_type is not None
        type_ = type_.element_type
    return type_.kind == "scalar" and type_.full_name == stored and stored != "bool"


def _transfer_components(
    kernel: Kernel, placed: Placed, name: str, var: str, type_: SlangType, offset: str, position: int,
    lines: list[str], stored: str, load: bool, add: str,
) -> None:  # fmt: skip
    scalar = SlangType(type_.scalar, source=type_.program)
    sizes = tuple(type_.shape)
    strides = [_inner_stride(kernel, placed, name, position + k) for k in range(len(sizes))]
    for flat in range(product(sizes)):
        indices = [flat] if len(sizes) == 1 else [flat // sizes[1], flat % sizes[1]]
        at = offset + "".join(f" + {i} * {s}" for i, s in zip(indices, strides, strict=False) if i)
        component = var + "".join(f"[{i}]" for i in indices)
        lines.append(_element(kernel, name, component, scalar, at, stored, load, add))


def _element(kernel: Kernel, name: str, var: str, type_: SlangType, at: str, stored: str, load: bool, add: str) -> str:
    storage = f"{kernel.base_of(name)}.{name}"
    if stored == "BFloat16":
        if type_.full_name == stored and not add and kernel.facts.variant.cpu:
            storage += f".cast<{stored}>()"  # bit for bit
        else:
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


def shared_load(kernel: Kernel, placed: Placed) -> str:
    """An element that the group loads together with those of its other threads."""
    ident, patch = placed.ident, kernel.facts.variant.patch
    assert patch is not None
    kernel.shared.append(f"groupshared _spy_T_{ident} _spy_X_{ident}[{patch.size[0] * (patch.size[1] + 1)}];")
    kernel.fetch += [
        f"int64_t _f_{ident} = {strided(kernel, f'{ident}_lead', placed.map, '_s')};",
        f"_spy_T_{ident} _e_{ident};",
    ]
    type_, stored = placed.binding.type, placed.binding.stored
    transfer(kernel, placed, ident, f"_e_{ident}", type_, f"_f_{ident}", 0, kernel.fetch, stored, load=True)
    kernel.fetch.append(f"_spy_X_{ident}[_to] = _e_{ident};")
    kernel.body.append(f"_spy_T_{ident} _v_{ident} = _spy_X_{ident}[_from];")
    return f"_v_{ident}"


def wide_load(kernel: Kernel, placed: Placed) -> str:
    """One component of the neighbours that were loaded together."""
    wide = kernel.wide
    assert wide is not None
    ident, stored = placed.ident, placed.binding.stored
    kind = vector_name(stored, kernel.facts.variant.width)
    wide.loads.append(f"{kind} _w_{ident} = _call.{ident}.cast<{kind}>().read(_q);")
    kernel.body.append(f"_spy_T_{ident} _v_{ident} = _spy_T_{ident}(_w_{ident}[_k]);")
    return f"_v_{ident}"


def wide_store(kernel: Kernel, name: str, stored: str, value: str, loaded: bool) -> None:
    """Keeps what is written to neighbours until all are there."""
    wide = kernel.wide
    assert wide is not None
    if kernel.facts.variant.cpu:
        wide.loads.append(f"{stored} _w_{name}[{kernel.facts.variant.width}];")
        kernel.body.append(f"_w_{name}[_k] = {stored}({value});")
        wide.stores.append(f"_spy_stream<{stored}, {kernel.facts.variant.width}>(_call.{name}.at(_at), _w_{name});")
        return
    kind = vector_name(stored, kernel.facts.variant.width)
    if not loaded:
        wide.loads.append(f"{kind} _w_{name};")
    kernel.body.append(f"_w_{name}[_k] = {stored}({value});")
    wide.stores.append(f"_call.{name}.cast<{kind}>().write(_q, _w_{name});")


def keep(kernel: Kernel, name: str, type_name: str, value: str, at: str) -> tuple[str, str]:
    """Keeps what is written to one of several elements, and where; gives both as the lines of `stores` name them."""
    wide, width = kernel.wide, kernel.facts.variant.width
    assert wide is not None
    wide.loads += [f"{type_name} _kept_{name}[{width}];", f"int64_t _at_{name}[{width}];"]
    kernel.body += [f"_kept_{name}[_k] = {value};", f"_at_{name}[_k] = {at};"]
    return f"_kept_{name}[_k]", f"_at_{name}[_k]"


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
