"""How values of a type are summed and added atomically: its parts, and the hook that the Slang library asks for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...errors import ResolveException
from ...reflection import SlangType
from ..slang_text import indent, slang_name

ATOMIC_SCALARS = ("int", "uint", "int64_t", "uint64_t", "half", "float", "double")
MAX_PARTS = 64
"""Parts that a sum is kept in registers for; larger elements are added to memory by each invocation."""


@dataclass(frozen=True)
class Part:
    """A scalar, vector or matrix inside an element: where, and its type."""

    path: str
    type: SlangType

    def widened(self, scalar: str) -> str:
        """The type of the same shape with components of another scalar type."""
        shape = self.type.shape
        if not shape:
            return scalar
        if len(shape) == 1:
            return f"vector<{scalar},{shape[0]}>"
        return f"matrix<{scalar},{shape[0]},{shape[1]}>"


def parts_of(type_: SlangType) -> list[Part] | None:
    """The floating-point parts of a gradient type; None when there are too many or one is no float."""
    found = _parts(type_, "")
    return found if found is not None and len(found) <= MAX_PARTS else None


def _parts(type_: SlangType, path: str) -> list[Part] | None:
    if type_.kind in ("scalar", "vector", "matrix"):
        return [Part(path, type_)] if type_.scalar in ("half", "float", "double") else None
    if type_.kind == "array":
        count, element = type_.shape[0], type_.element_type
        if element is None or not 0 <= count <= MAX_PARTS:
            return None
        children = [(f"{path}[{k}]", element) for k in range(count)]
    elif type_.kind == "struct":
        children = [(f"{path}.{name}", field.type) for name, field in type_.fields.items()]
    else:
        return None
    found: list[Part] = []
    for child_path, child in children:
        inner = _parts(child, child_path)
        if inner is None or len(found) + len(inner) > MAX_PARTS:
            return None
        found += inner
    return found


def byte_offsets(type_: SlangType) -> list[int]:
    """Where the parts of a stored element begin, in the order of `parts_of`."""
    if type_.kind == "array":
        element, step = type_.element_type, type_.element_layout.element_stride
        assert element is not None
        return [k * step + offset for k in range(type_.shape[0]) for offset in byte_offsets(element)]
    if type_.kind == "struct":
        starts = {field["name"]: field["offset"] for field in type_.element_layout.fields}
        return [starts[name] + offset for name, field in type_.fields.items() for offset in byte_offsets(field.type)]
    return [0]


def has_half(type_: SlangType) -> bool:
    """Whether a part of a gradient type is stored in half precision."""
    return any(part.type.scalar == "half" for part in parts_of(type_) or ())


def sum_type(type_: SlangType) -> SlangType:
    """The type that sums of a gradient type end in: float for half. Structs stay as they are."""
    if type_.scalar != "half":
        return type_
    return SlangType(type_.full_name.replace("half", "float"), source=type_.program)


def atomic_hook(types: list[SlangType]) -> list[str]:
    """Text of `_spy_KernelHook` for the element types that are no scalar or vector; empty when there are none.

    Raises ResolveException for elements with parts that cannot be added atomically.
    """
    cases: dict[str, list[str]] = {}
    for type_ in types:
        _add_case(type_, cases)
    if not cases:
        return []
    lines = [
        "struct _spy_AtomicHook : _spy_IAtomicHook",
        "{",
        "    static bool add<_G>(_spy_Storage<_G> to, _G v)",
        "    {",
    ]
    for name, statements in cases.items():
        lines += [f"        if (_G is {name})", "        {", *indent(indent(indent(statements)))]
        lines += ["            return true;", "        }"]
    lines += ["        return false;", "    }", "}"]
    return [*lines, "export struct _spy_KernelHook : _spy_IAtomicHook = _spy_AtomicHook;"]


def _add_case(type_: SlangType, cases: dict[str, list[str]]) -> None:
    name = slang_name(type_.full_name)
    if name in cases:
        return
    if type_.kind in ("scalar", "vector", "matrix"):
        if type_.scalar not in ATOMIC_SCALARS:
            raise ResolveException(
                f"elements of type {name} cannot be added atomically; the types that can are structs, arrays, matrices "
                f"and vectors of {', '.join(ATOMIC_SCALARS)}"
            )
        if type_.kind == "matrix":
            cases[name] = [f"_spy_atomic_add_parts<{name}, _G>(to, v);"]
    elif type_.kind == "array":
        _add_array(type_, name, cases)
    elif type_.kind == "struct":
        _add_struct(type_, name, cases)
    else:
        raise ResolveException(f"elements of type {name} cannot be added atomically")


def _add_array(type_: SlangType, name: str, cases: dict[str, list[str]]) -> None:
    element = type_.element_type
    assert element is not None
    if type_.scalar in ATOMIC_SCALARS:
        cases[name] = [f"_spy_atomic_add_parts<{name}, _G>(to, v);"]
        return
    _add_case(element, cases)
    kind, stride = slang_name(element.full_name), type_.element_layout.element_stride
    cases[name] = [
        f"let d = reinterpret<{name}>(v);",
        f"[ForceUnroll] for (uint k = 0; k < {type_.shape[0]}; k++)",
        f"    _spy_atomic_add<{kind}>(to.part<{kind}>(k * {stride}), d[k]);",
    ]


def _own_addition(function: Any, name: str) -> str:
    """The call of a struct's own addition: by pointer, else by buffer and address."""
    overloads = function.overloads if function.is_overloaded else [function]
    by_buffer = all(o.parameters[0].type.full_name == "RWByteAddressBuffer" for o in overloads if o is not None)
    memory = "_spy_AtomicMemory__(uint64_t(to._ptr))" if by_buffer else f"Ptr<{name}>(uint64_t(to._ptr))"
    return f"{name}.atomicAdd({memory}, 0u, reinterpret<{name}>(v));"


def _add_struct(type_: SlangType, name: str, cases: dict[str, list[str]]) -> None:
    program = type_.program
    own = program.reflect_method(type_, "atomicAdd") if program is not None else None
    if own is not None:
        cases[name] = [_own_addition(own, name)]
        return
    offsets = {field["name"]: field["offset"] for field in type_.element_layout.fields}
    lines = [f"let d = reinterpret<{name}>(v);"]
    for field_name, field in type_.fields.items():
        _add_case(field.type, cases)
        kind = slang_name(field.type.full_name)
        lines.append(f"_spy_atomic_add<{kind}>(to.part<{kind}>({offsets[field_name]}), d.{field_name});")
    cases[name] = lines


__all__ = ["Part", "atomic_hook", "byte_offsets", "has_half", "parts_of", "sum_type"]
