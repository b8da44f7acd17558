"""Slang types as callables: constructors, methods, nested types."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Any

from .base import libslang
from .base.absent import absent
from .base.own_names import own_names
from .base.shared import Shared
from .compiler.modules.reload import source_changed
from .function import FunctionCore, FunctionNode
from .inspection import names_in
from .plan.addresses import holds_objects
from .reflection import SlangType

if TYPE_CHECKING:
    from ._native import Shape
    from .module import Module


@own_names
class Struct(Shared):
    """A Slang type of a module. `S(...)` constructs, `S.method(this, ...)` calls, `S.Inner` is a nested type."""

    module: Module
    type: SlangType

    def __init__(self, module: Module, type_: SlangType) -> None:
        self.module = module
        self.type = type_
        self._children: dict[str, Any] = {}
        self._epoch = module.layout.epoch

    @property
    def struct(self) -> SlangType:
        """The type, as reflection sees it."""
        return self.type

    @property
    def name(self) -> str:
        """Name without generic arguments."""
        return self.type.name

    @property
    def full_name(self) -> str:
        """Name with generic arguments."""
        return self.type.full_name

    @property
    def fields(self) -> dict[str, Any]:
        """Fields by name."""
        return self.type.fields

    @property
    def shape(self) -> Shape:
        """Sizes of an array or vector; empty for a struct."""
        return self.type.shape

    @property
    def num_dims(self) -> int:
        """Number of those sizes."""
        return self.type.num_dims

    @property
    def element_type(self) -> Struct | None:
        """Type of an element; of a struct the struct itself."""
        element = self.type.element_type
        return None if element is None else Struct(self.module, element)

    @property
    def differentiable(self) -> bool:
        """Whether the type is IDifferentiable."""
        return self.type.differentiable

    @property
    def derivative(self) -> Struct | None:
        """Type of its derivative."""
        derivative = self.type.derivative
        return None if derivative is None else Struct(self.module, derivative)

    @property
    def is_generic(self) -> bool:
        """Whether generic arguments are missing."""
        return self.type.is_generic

    @property
    def buffer_layout(self) -> Any:
        """Offsets and sizes in a buffer."""
        return self.type.buffer_layout

    @property
    def uniform_layout(self) -> Any:
        """Offsets and sizes among uniforms."""
        return self.type.uniform_layout

    @property
    def type_reflection(self) -> Any:
        """The compiler's own reflection of the type."""
        return self.type.type_reflection

    @property
    def vector_type_name(self) -> str:
        """Name of the vector type of that many components."""
        return self.type.full_name

    @property
    def device(self) -> Any:
        """The device of its module."""
        return self.module.device

    @property
    def session(self) -> Any:
        """The session that loaded its module."""
        return self.module.session

    @property
    def device_module(self) -> Any:
        """The compiler's module."""
        return self.module.device_module

    def as_struct(self) -> Struct:
        """This struct."""
        return self

    def as_func(self) -> FunctionNode:
        """Raises ValueError: a struct is no function."""
        raise ValueError("Cannot convert a struct to a function")

    def _find_method(self, name: str) -> FunctionNode | None:
        """The method of that name, or None."""
        reflection = self.module.layout.reflect_method(self.type, name)
        if reflection is None:
            return None
        return FunctionNode.of(self.module, FunctionCore(self.module, name, self.type))

    def _is_static(self, name: str) -> bool:
        """Whether no method of that name takes `this`."""
        reflection = self.module.layout.reflect_method(self.type, name)
        if reflection is None:
            return False
        overloads = [o for o in reflection.overloads if o is not None] if reflection.is_overloaded else [reflection]
        return all(overload.has_modifier(libslang.ModifierID.static) for overload in overloads)

    def _follow(self) -> None:
        """Forgets what was found in code that was replaced."""
        epoch = self.module.layout.epoch
        if epoch != self._epoch:
            self._epoch = epoch
            self._children.clear()

    def try_get_child(self, name: str) -> Any:
        """Nested type, else method, else None."""
        self._follow()
        if self._children.get(name) is None:
            nested = self.module.layout.find_type_by_name(f"{self.full_name}.{name}")
            self._children[name] = Struct(self.module, nested) if nested is not None else self._find_method(name)
        return self._children[name]

    __iter__ = None  # names are looked up, not counted
    __contains__ = None

    def __getitem__(self, name: str) -> Any:
        if name == "__init":
            return self._constructor()
        child = self.try_get_child(name)
        if child is None and source_changed(self.module.device):
            child = self.try_get_child(name)
        if child is None:
            raise absent(lambda: self._absent(name))
        return child

    def _absent(self, name: str) -> str:
        text = f"Struct '{self.name}' has no method or sub-type named '{name}'"
        if self.type.kind == "enum":
            return f"{text}; it is an enum: pass its values as numbers, or as members of a Python enum.IntEnum"
        if name in self.fields:
            return f"{text}; that is a field, which values have: dicts, or an InstanceList of the struct"
        close = difflib.get_close_matches(name, names_in(self), 1)
        return f"{text}; did you mean {close[0]}?" if close else text

    def __getattr__(self, name: str) -> Any:
        if name.startswith(("__", "_repr_", "_ipython_")) and name != "__init":
            raise AttributeError(name)
        try:
            return self[name]
        except AttributeError:
            if hasattr(self.type, name):  # what only types of its kind have: num_elements, rows, ...
                return getattr(self.type, name)
            raise

    def _instead_of(self, name: str) -> str:
        """What is to be written in place of `Struct.name = value`."""
        if name in self.fields:
            return f"'{name}' is a field, which values have: {{'{name}': value}} as argument, or an InstanceList of the struct"
        return f"'{self.full_name}' is a type of the source, which is changed there"

    def _constructor(self) -> FunctionNode:
        return FunctionNode.of(self.module, FunctionCore(self.module, "$init", self.type, is_constructor=True))

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Constructs one value per invocation, as any function call. Of a struct with tensors, buffers or textures in it
        comes a dict that holds those given: memory has no place for them."""
        return self._members(args, kwargs) if self._holds_objects else self._constructor()(*args, **kwargs)

    @property
    def _holds_objects(self) -> bool:
        """Whether it has fields for tensors, buffers or textures, and no constructor of its own."""
        self._follow()
        if "" not in self._children:
            has_own = holds_objects(self.type) and not self._constructor().core.target().member_wise
            self._children[""] = holds_objects(self.type) and not has_own
        return bool(self._children[""])

    def _members(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """The fields as given: by position, then by name."""
        fields = self.type.fields
        names, given = list(fields), f"{self.module.name}::{self.name}"
        if len(args) > len(names):
            raise TypeError(f"{given}: got {len(args)} values for {len(names)} fields: {', '.join(names)}")
        values = dict(zip(names, args, strict=False))
        for name, value in kwargs.items():
            if name not in fields or name in values:
                what = "is given twice" if name in values else f"is no field; its fields are {', '.join(names)}"
                raise TypeError(f"{given}: '{name}' {what}; the fields are kept in a dict, without a call")
            values[name] = value
        for reflection in self.type.type_reflection.fields:
            if reflection.name not in values:
                values.update(_default(given, reflection, fields[reflection.name].type))
        return {"_type": self.full_name, **{name: values[name] for name in names if name in values}}

    def __dir__(self) -> list[str]:
        return list(dict.fromkeys([*names_in(self), *(name for name in super().__dir__() if not name.startswith("_"))]))

    def __repr__(self) -> str:
        return f"Struct(name='{self.full_name}')"


def _default(struct: str, field: Any, type_: SlangType) -> dict[str, Any]:
    """What a field that was left out holds: its default as far as reflection tells it, or nothing, which is zero."""
    for value in (field.default_int, field.default_float):
        if value is not None:
            return {field.name: value}
    if field.has_default or holds_objects(type_):
        raise ValueError(f"{struct}: field '{field.name}' ({type_.full_name}) needs a value; pass {field.name}=...")
    return {field.name: 0} if type_.kind in ("scalar", "enum") else {}
