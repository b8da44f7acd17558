"""Slang types and functions as Python sees them.

A type is known by its full name and, once the compiler has been asked, by its reflection. Types that come back
from a plan on disk know their memory layout and ask the compiler only for what the layout does not say.
"""

from __future__ import annotations

import importlib
import re
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from .._native import Shape
from ..base.scalars import SCALARS
from .functions import (
    IOType as IOType,
    SlangField as SlangField,
    SlangFunction as SlangFunction,
    SlangParameter as SlangParameter,
)
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
    TypeBase,
    UnknownType as UnknownType,
    VectorType as VectorType,
    VoidType as VoidType,
    attribute,
    declared_name,
    generic_arguments,
    resource_dims,
)

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


def _is_scalar(type_: SlangType) -> bool:
    """Whether the name is a scalar's. A struct may be called BFloat16: Slang's core module has the name, too."""
    if type_.full_name not in SCALARS:
        return False
    if not SCALARS[type_.full_name].is_narrow or type_._source is None:
        return True
    type_._follow_reload()
    return (type_._layout or type_.type_reflection).kind.name == "scalar"


class SlangType(TypeBase):
    """A Slang type of one device. Equal full names compare equal."""

    def __init__(self, full_name: str, layout: Any = None, source: Any = None, reflection: Any = None) -> None:
        self.full_name = full_name
        self._layout = layout
        self._source = source
        self._reflection = reflection
        self._fields: dict[str, Any] | None = None
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
        """The declared name: "vector" of `vector<float,3>`, "Inner" of `Outer.Inner`, "Array" of arrays."""
        return declared_name(self.full_name)

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
        self._reflection = self._fields = None

    def _follow_reload(self) -> None:
        """Forgets what code said that has been replaced: it belongs to another session of the compiler."""
        epoch = getattr(self._source, "epoch", 0)
        if epoch != self._epoch:
            self._epoch = epoch
            self._reflection = self._layout = self._fields = None

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

    def reflected_layout(self) -> Any:
        """The compiler's `TypeLayoutReflection` of one element in a StructuredBuffer; asks the compiler."""
        self._follow_reload()
        if self._source is None:
            raise RuntimeError(f"type {self.full_name} has no program to be reflected from")
        native = self._source.native
        return native.get_type_layout(native.find_type_by_name(f"StructuredBuffer<{self.full_name}>")).element_type_layout

    @property
    def buffer_layout(self) -> BufferLayout:
        layout = self.element_layout
        return BufferLayout(layout.size, layout.stride, layout.alignment, layout)

    uniform_layout = buffer_layout

    # --- structure
    @property
    def kind(self) -> str:
        if _is_scalar(self):
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
        if _is_scalar(self):
            return self.full_name
        found = _VECTOR.match(self.full_name) or _MATRIX.match(self.full_name)
        if found:
            return found.group(1)
        element = self.element_type if self.full_name.endswith("]") else None
        return element.scalar if element is not None else ""

    @property
    def shape(self) -> Shape:
        """Sizes of the components: () for scalars and structs, (n,), (r, c), (n,) + shape of the element."""
        return Shape(self._sizes())

    def _sizes(self) -> tuple[int, ...]:
        found = _VECTOR.match(self.full_name)
        if found:
            return (int(found.group(2)),)
        found = _MATRIX.match(self.full_name)
        if found:
            return (int(found.group(2)), int(found.group(3)))
        if self.full_name.endswith("]"):
            counts = self.full_name[self.full_name.rindex("[") + 1 : -1]
            element = self.element_type
            return (int(counts) if counts.isdigit() else -1,) + (element._sizes() if element is not None else ())
        return ()

    @property
    def num_dims(self) -> int:
        """Dimensions of the components; of textures, those of the texels and their components."""
        return len(self._sizes()) if "Texture" not in self.full_name else resource_dims(self)

    def _related(self, full_name: str, reflection: Any = None) -> SlangType:
        """Another type of the same program: there, one object stands for it."""
        if isinstance(self._source, SlangProgramLayout):
            return self._source.intern(full_name, reflection)
        return SlangType(full_name, source=self._source, reflection=reflection)

    @property
    def element_type(self) -> SlangType | None:
        found = _VECTOR.match(self.full_name) or _MATRIX.match(self.full_name)
        if found and _VECTOR.match(self.full_name):
            return self._related(found.group(1))
        if found:
            return self._related(f"vector<{found.group(1)},{found.group(3)}>")
        if self.full_name.endswith("]"):
            return self._related(self.full_name[: self.full_name.rindex("[")])
        if _is_scalar(self):
            return None
        if self.full_name.endswith("ByteAddressBuffer"):
            return self._related("uint8_t")
        element = self.type_reflection.element_type or self.type_reflection.resource_result_type
        return None if element is None else self._related(element.full_name, element)

    @property
    def fields(self) -> dict[str, Any]:
        """Fields of a struct by name: objects with `.name .type .modifiers`."""
        if self.kind != "struct":
            return {}
        self._follow_reload()
        if self._fields is None:  # planning asks once for each leaf
            owner = self._source if hasattr(self._source, "wrap") else _Wrapper(self._source)
            self._fields = {field.name: SlangField(owner, field) for field in self.type_reflection.fields}
        return dict(self._fields)

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
        return self._related(derivative.full_name, derivative)


class _Wrapper:
    """Makes types of reflection for a program that keeps none."""

    def __init__(self, source: Any) -> None:
        self._source = source

    def wrap(self, reflection: Any) -> SlangType:
        return SlangType(reflection.full_name, source=self._source, reflection=reflection)


_ENUM_NAMES = {"int8": "int8_t", "int16": "int16_t", "int32": "int", "int64": "int64_t", "uint8": "uint8_t",
            "uint16": "uint16_t", "uint32": "uint", "uint64": "uint64_t", "float16": "half", "float32": "float",
            "float64": "double", "bfloat16": "BFloat16"}  # fmt: skip
"""Slang's names of TypeReflection.ScalarType."""


class SlangProgramLayout:
    """Names of one module and all it imports. Everything is looked up when first asked for."""

    def __init__(
        self, layout: Callable[[], Any], own: Callable[[], Any] | None = None, follow: Callable[[], None] | None = None
    ) -> None:
        """own: layout of the module by itself, where names that it shares with our library mean its own. follow: resets this
        where another compiler has taken the place of the one that loaded the module."""
        self._get_layout = layout
        self._get_own = own
        self._follow = follow
        self._types: dict[str, SlangType | None] = {}
        self._reflected: dict[int, weakref.ref[SlangType]] = {}
        self._epoch = 0

    def __repr__(self) -> str:
        return f"SlangProgramLayout(is_valid={self.is_valid}, generation={self.generation})"

    @property
    def epoch(self) -> int:
        """How often the code that the names stand for was replaced."""
        if self._follow is not None:
            self._follow()
        return self._epoch

    def reset(self) -> None:
        """Forgets all types: the code is being replaced."""
        self._epoch += 1
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
        return self.intern(reflection.full_name, reflection)

    def intern(self, name: str, reflection: Any = None) -> SlangType:
        """The one object that stands for the type of a full name."""
        known = self._types.get(name)
        if known is None:
            known = self._types.setdefault(name, SlangType(name, source=self, reflection=reflection))
        assert known is not None
        return known

    def find_type_by_name(self, name: str) -> SlangType | None:
        return self.wrap(self.find_reflection(name))

    def require_type_by_name(self, name: str) -> SlangType:
        found = self.find_type_by_name(name)
        if found is None:
            raise ValueError(f"Could not find type '{name}'")
        return found

    # --- functions, as the compiler reflects them
    def reflect_function(self, name: str) -> Any:
        """The compiler's reflection of a function, or None."""
        found = self.native.find_function_by_name(name)
        # A type that two modules declare looks overloaded too, but by nothing that can be called.
        if found is not None and found.is_overloaded and all(overload is None for overload in found.overloads):
            return None
        return found

    def reflect_method(self, type_: SlangType, name: str) -> Any:
        """The compiler's reflection of a method, or None."""
        try:
            return self.native.find_function_by_name_in_type(type_.type_reflection, name)
        except ValueError:  # it belongs to another session: the modules of a device are not all of one
            if type_.program is self:
                raise
            own = self.require_type_by_name(type_.full_name)
            return self.native.find_function_by_name_in_type(own.type_reflection, name)

    # --- functions, in the types of this layout
    def find_function(self, reflection: Any, this_type: SlangType | None = None) -> SlangFunction | None:
        """The function of a reflection that the compiler gave."""
        return None if reflection is None else SlangFunction(self, reflection, this_type)

    def find_function_by_name(self, name: str) -> SlangFunction | None:
        return self.find_function(self.reflect_function(name))

    def require_function_by_name(self, name: str) -> SlangFunction:
        found = self.find_function_by_name(name)
        if found is None:
            raise ValueError(f"Could not find function '{name}'")
        return found

    def find_function_by_name_in_type(self, type_: Any, name: str) -> SlangFunction | None:
        """A method of a struct; "$init" finds its constructors."""
        owner = self._type_of(type_, "find_function_by_name_in_type")
        if name in ("$init", "__init"):
            made = self._own(owner).type_reflection.constructors
            return SlangFunction(self, made[0], owner, made if len(made) > 1 else ()) if made else None
        return self.find_function(self.reflect_method(owner, name), owner)

    def require_function_by_name_in_type(self, type_: Any, name: str) -> SlangFunction:
        found = self.find_function_by_name_in_type(type_, name)
        if found is None:
            owner = self._type_of(type_, "require_function_by_name_in_type")
            raise ValueError(f"Could not find function '{name}' in type '{owner.full_name}'")
        return found

    # --- types
    def _type_of(self, value: Any, function: str) -> SlangType:
        """The type that an argument means: a SlangType, a Struct, a name, or the compiler's reflection."""
        type_ = self.require_type_by_name(value) if isinstance(value, str) else getattr(value, "struct", value)
        if isinstance(type_, SlangType):
            return type_
        if hasattr(type_, "full_name") and hasattr(type_, "kind"):
            return self.intern(type_.full_name, type_)
        raise TypeError(f"{function}: expected a Slang type, a Struct or the name of a type, got {value!r}")

    def _own(self, type_: SlangType) -> SlangType:
        return type_ if type_.program is self else self.require_type_by_name(type_.full_name)

    def reflection_of(self, value: Any, function: str) -> Any:
        """The compiler's reflection of a type, in the session of this layout."""
        return self._own(self._type_of(value, function)).type_reflection

    def find_type(self, reflection: Any) -> SlangType | None:
        """The type of a reflection that the compiler gave."""
        return self.wrap(reflection)

    def get_resolved_generic_args(self, type_: Any) -> list[SlangType | int] | None:
        """The arguments of a generic type: a type for each type argument, an int for each value; None for other types."""
        arguments = generic_arguments(self._type_of(type_, "get_resolved_generic_args").full_name)
        if arguments is None:
            return None
        bools = {"true": 1, "false": 0}
        return [
            bools[text] if text in bools else int(text) if text.lstrip("-").isdigit() else self.require_type_by_name(text)
            for text in arguments
        ]

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


def __getattr__(name: str) -> Any:
    if name == "lookup":  # needs NumPy
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module 'slangpy.reflection' has no attribute {name!r}")
