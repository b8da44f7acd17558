"""Slang types and functions as Python sees them (spec/calls.md 1.5).

A type is known by its full name and, once the compiler has been asked, by its reflection. Types that come back
from a plan on disk know their memory layout and ask the compiler only for what the layout does not say.
"""

from __future__ import annotations

import re
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from .kinds import (
    ArrayType as ArrayType,
    ByteAddressBufferType as ByteAddressBufferType,
    DifferentialPairType as DifferentialPairType,
    InterfaceType as InterfaceType,
    MatrixType as MatrixType,
    PointerType as PointerType,
    SamplerStateType as SamplerStateType,
    ScalarType as ScalarType,
    StructType as StructType,
    StructuredBufferType as StructuredBufferType,
    TensorType as TensorType,
    TextureType as TextureType,
    UnknownType as UnknownType,
    VectorType as VectorType,
    VoidType as VoidType,
    attribute,
)

_SCALARS = {
    "bool": 1, "int8_t": 1, "int16_t": 2, "int": 4, "int64_t": 8, "uint8_t": 1, "uint16_t": 2, "uint": 4,
    "uint64_t": 8, "half": 2, "float": 4, "double": 8,
}  # fmt: skip
_FLOATS = ("half", "float", "double")
_VECTOR = re.compile(r"^vector<([\w.]+), ?(\d+)>$")
_MATRIX = re.compile(r"^matrix<([\w.]+), ?(\d+), ?(\d+)(?:, ?\d+)?>$")


@dataclass(frozen=True)
class BufferLayout:
    """Size, stride and alignment in bytes of a type in a buffer; `reflection` is the native layout."""

    size: int
    stride: int
    alignment: int
    reflection: Any


class SlangType:
    """A Slang type of one device. Equal full names compare equal."""

    def __init__(self, full_name: str, layout: Any = None, source: Any = None, reflection: Any = None) -> None:
        self.full_name = full_name
        self._layout = layout
        self._source = source
        self._reflection = reflection
        self._epoch = getattr(source, "epoch", 0)
        if reflection is not None:
            self._held_by_source()

    # --- identity
    def __eq__(self, other: object) -> bool:
        return isinstance(other, SlangType) and other.full_name == self.full_name

    def __hash__(self) -> int:
        return hash(self.full_name)

    def __repr__(self) -> str:
        return f'refl::Type(full_name="{self.full_name}", kind={self.kind}, shape={list(self.shape)})'

    @property
    def name(self) -> str:
        return self.type_reflection.name if self._reflection is not None else self.full_name

    # --- compiler side
    @property
    def type_reflection(self) -> Any:
        """The compiler's reflection of the type; asks the compiler when it must."""
        self._follow_reload()
        if self._reflection is None:
            if self._source is None:
                raise RuntimeError(f"type {self.full_name} has no program to be reflected from")
            self._reflection = self._source.find_reflection(self.full_name)
            if self._reflection is None:
                raise RuntimeError(f"type {self.full_name} does not exist in its program any more")
            self._held_by_source()
        return self._reflection

    def _held_by_source(self) -> None:
        if isinstance(self._source, SlangProgramLayout):
            self._source.note(self)

    def forget(self) -> None:
        """Lets go of the compiler's reflection, which holds the whole session that it is of."""
        self._reflection = None

    def _follow_reload(self) -> None:
        """Forgets what code said that has been replaced: it belongs to another session of the compiler."""
        epoch = getattr(self._source, "epoch", 0)
        if epoch != self._epoch:
            self._epoch = epoch
            self._reflection = self._layout = None

    @property
    def program(self) -> Any:
        return self._source

    @property
    def element_layout(self) -> Any:
        """Native layout of one element in a buffer."""
        self._follow_reload()
        if self._layout is None:
            self._layout = self._source.find_element_layout(self.type_reflection)
        return self._layout

    @property
    def buffer_layout(self) -> BufferLayout:
        layout = self.element_layout
        return BufferLayout(layout.size, layout.stride, layout.alignment, layout)

    uniform_layout = buffer_layout

    # --- structure
    @property
    def kind(self) -> str:
        if self.full_name in _SCALARS:
            return "scalar"
        if _VECTOR.match(self.full_name):
            return "vector"
        if _MATRIX.match(self.full_name):
            return "matrix"
        if self.full_name.endswith("]"):
            return "array"
        return self.type_reflection.kind.name.rstrip("_")

    @property
    def scalar(self) -> str:
        """Name of the scalar type of a scalar, vector, matrix or array of such; empty for others."""
        if self.full_name in _SCALARS:
            return self.full_name
        found = _VECTOR.match(self.full_name) or _MATRIX.match(self.full_name)
        if found:
            return found.group(1)
        element = self.element_type if self.full_name.endswith("]") else None
        return element.scalar if element is not None else ""

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the components: () for scalars and structs, (n,), (r, c), (n,) + shape of the element."""
        found = _VECTOR.match(self.full_name)
        if found:
            return (int(found.group(2)),)
        found = _MATRIX.match(self.full_name)
        if found:
            return (int(found.group(2)), int(found.group(3)))
        if self.full_name.endswith("]"):
            counts = self.full_name[self.full_name.rindex("[") + 1 : -1]
            element = self.element_type
            return (int(counts) if counts.isdigit() else -1,) + (element.shape if element is not None else ())
        return ()

    @property
    def num_dims(self) -> int:
        return len(self.shape)

    @property
    def element_type(self) -> SlangType | None:
        found = _VECTOR.match(self.full_name) or _MATRIX.match(self.full_name)
        if found and _VECTOR.match(self.full_name):
            return SlangType(found.group(1), source=self._source)
        if found:
            return SlangType(f"vector<{found.group(1)},{found.group(3)}>", source=self._source)
        if self.full_name.endswith("]"):
            return SlangType(self.full_name[: self.full_name.rindex("[")], source=self._source)
        if self.full_name in _SCALARS:
            return None
        element = self.type_reflection.element_type
        return None if element is None else SlangType(element.full_name, source=self._source, reflection=element)

    @property
    def fields(self) -> dict[str, Any]:
        """Fields of a struct by name: objects with `.name .type .modifiers`."""
        if self.kind != "struct":
            return {}
        return {field.name: Field(self, field) for field in self.type_reflection.fields}

    @property
    def is_generic(self) -> bool:
        return self.kind == "struct" and self.type_reflection.is_generic

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return attribute(self, name)

    # --- derivatives
    @property
    def differentiable(self) -> bool:
        if self.scalar:
            return self.scalar in _FLOATS
        return bool(self.type_reflection.differentiable)

    @property
    def derivative(self) -> SlangType | None:
        """T.Differential, or None for types without derivative."""
        if not self.differentiable:
            return None
        if self.scalar:
            return self
        derivative = self.type_reflection.derivative
        return SlangType(derivative.full_name, source=self._source, reflection=derivative)


class Field:
    """A field of a struct."""

    def __init__(self, owner: SlangType, reflection: Any) -> None:
        self.name: str = reflection.name
        self._owner = owner
        self._reflection = reflection

    @property
    def type(self) -> SlangType:
        found = self._reflection.type
        return SlangType(found.full_name, source=self._owner.program, reflection=found)

    @property
    def modifiers(self) -> set[str]:
        from .. import _slang

        return {m.name for m in _slang.ModifierID if self._reflection.has_modifier(m)}


_ENUM_NAMES = {"int8": "int8_t", "int16": "int16_t", "int32": "int", "int64": "int64_t", "uint8": "uint8_t",
            "uint16": "uint16_t", "uint32": "uint", "uint64": "uint64_t", "float16": "half", "float32": "float",
            "float64": "double"}  # fmt: skip
"""Slang's names of TypeReflection.ScalarType."""


class SlangProgramLayout:
    """Names of one module and all it imports. Everything is looked up when first asked for."""

    def __init__(self, layout: Callable[[], Any], own: Callable[[], Any] | None = None) -> None:
        """own: layout of the module by itself, where names that it shares with our library mean its own."""
        self._get_layout = layout
        self._get_own = own
        self._types: dict[str, SlangType | None] = {}
        self._reflected: dict[int, weakref.ref[SlangType]] = {}
        self.epoch = 0
        """How often the code behind the names was replaced."""

    def reset(self) -> None:
        """Forgets all types: the code is being replaced."""
        self.epoch += 1
        self._types.clear()
        for known in list(self._reflected.values()):
            type_ = known()
            if type_ is not None:
                type_.forget()

    def note(self, type_: SlangType) -> None:
        """Remembers a type that holds reflection: users keep types, in tensors say, for longer than code lives."""
        key, known = id(type_), self._reflected
        known[key] = weakref.ref(type_, lambda _: known.pop(key, None))

    @property
    def native(self) -> Any:
        return self._get_layout()

    @property
    def is_valid(self) -> bool:
        return self.native.is_valid

    @property
    def generation(self) -> int:
        """Grows at each reload."""
        return self.epoch

    def find_reflection(self, name: str) -> Any:
        found = self.native.find_type_by_name(name)
        return self._get_own().find_type_by_name(name) if found is None and self._get_own is not None else found

    def find_element_layout(self, reflection: Any) -> Any:
        return self.native.element_layout(reflection)

    def wrap(self, reflection: Any) -> SlangType | None:
        """The SlangType of a compiler reflection."""
        if reflection is None:
            return None
        name = reflection.full_name
        known = self._types.get(name)
        if known is None:
            known = self._types[name] = SlangType(name, source=self, reflection=reflection)
        return known

    def find_type_by_name(self, name: str) -> SlangType | None:
        return self.wrap(self.find_reflection(name))

    def require_type_by_name(self, name: str) -> SlangType:
        found = self.find_type_by_name(name)
        if found is None:
            raise ValueError(f"Could not find type '{name}'")
        return found

    def find_function_by_name(self, name: str) -> Any:
        found = self.native.find_function_by_name(name)
        # A type that two modules declare looks overloaded too, but by nothing that can be called.
        if found is not None and found.is_overloaded and all(overload is None for overload in found.overloads):
            return None
        return found

    def require_function_by_name(self, name: str) -> Any:
        found = self.find_function_by_name(name)
        if found is None:
            raise ValueError(f"Could not find function '{name}'")
        return found

    def find_function_by_name_in_type(self, type_: SlangType, name: str) -> Any:
        try:
            return self.native.find_function_by_name_in_type(type_.type_reflection, name)
        except ValueError:  # it belongs to another session: the modules of a device are not all of one
            if type_.program is self:
                raise
            own = self.require_type_by_name(type_.full_name)
            return self.native.find_function_by_name_in_type(own.type_reflection, name)

    def scalar_type(self, scalar: Any) -> SlangType:
        name = getattr(scalar, "name", str(scalar)).rstrip("_")
        return self.require_type_by_name(_ENUM_NAMES.get(name, name))

    def vector_type(self, scalar: Any, size: int) -> SlangType:
        return self.require_type_by_name(f"vector<{self.scalar_type(scalar).full_name},{size}>")

    def matrix_type(self, scalar: Any, rows: int, cols: int) -> SlangType:
        return self.require_type_by_name(f"matrix<{self.scalar_type(scalar).full_name},{rows},{cols}>")

    def array_type(self, element: SlangType, size: int) -> SlangType:
        return self.require_type_by_name(f"{element.full_name}[{size}]")

    def tensor_type(self, element: SlangType, dims: int, access: str = "read", kind: str = "tensor") -> SlangType:
        prefix = {"read": "", "write": "W", "read_write": "RW"}[access]
        base = {"tensor": "Tensor", "interface": "Tensor", "difftensor": "DiffTensor", "primal": "PrimalTensor",
                "atomic": "AtomicTensor"}[kind]  # fmt: skip
        letter = "I" if kind == "interface" else ""
        return self.require_type_by_name(f"{letter}{prefix}{base}<{element.full_name}, {dims}>")

    def __iter__(self) -> Iterator[SlangType]:
        return iter([t for t in list(self._types.values()) if t is not None])


def __getattr__(name: str) -> Any:  # the compiler's part is loaded when it is asked for
    if name == "lookup":  # needs NumPy
        import importlib

        return importlib.import_module(f"{__name__}.{name}")
    if name == "SlangFunction":
        from .. import _slang

        return _slang.FunctionReflection
    raise AttributeError(f"module 'slangpy.reflection' has no attribute {name!r}")
