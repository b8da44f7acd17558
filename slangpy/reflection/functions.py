"""Functions, their parameters and the fields of structs, in the types of the layout that they were found in."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..base import libslang

if TYPE_CHECKING:
    from . import SlangProgramLayout, SlangType

_GONE = "invalidated by a reload"


class IOType(enum.Enum):
    """Direction of a parameter."""

    none = 0
    inn = 1
    out = 2
    inout = 3


class _Variable:
    """What parameters and fields have in common."""

    def __init__(self, layout: Any, reflection: Any) -> None:
        self._layout = layout
        self.reflection = reflection
        """The compiler's own reflection."""

    @property
    def name(self) -> str:
        return self.reflection.name

    @property
    def type(self) -> SlangType:
        return self._layout.wrap(self.reflection.type)

    @property
    def has_default(self) -> bool:
        return self.reflection.has_default

    @property
    def modifiers(self) -> set[str]:
        """Names of its modifiers: "nodiff", "inout", ..."""
        return {modifier.name for modifier in libslang.ModifierID if self.reflection.has_modifier(modifier)}

    def has_modifier(self, modifier: Any) -> bool:
        """modifier: a `ModifierID`, or its name."""
        wanted = next((m for m in libslang.ModifierID if m == modifier or m.name == modifier), None)
        if wanted is None:
            known = ", ".join(m.name for m in libslang.ModifierID)
            raise ValueError(f"has_modifier: expected a ModifierID or one of {known}, got {modifier!r}")
        return self.reflection.has_modifier(wanted)

    @property
    def no_diff(self) -> bool:
        return self.has_modifier("nodiff")

    @property
    def io_type(self) -> IOType:
        """Whether a call reads it, writes it, or both."""
        if self.has_modifier("inout"):
            return IOType.inout
        return IOType.out if self.has_modifier("out") else IOType.inn

    @property
    def differentiable(self) -> bool:
        return not self.no_diff and self.type.differentiable

    @property
    def derivative(self) -> SlangType | None:
        """Type of its derivative, or None."""
        return self.type.derivative if self.differentiable else None

    @property
    def declaration(self) -> str:
        """As Slang would have it: "inout float3 x"."""
        prefix = {IOType.inout: "inout ", IOType.out: "out "}.get(self.io_type, "")
        return f"{'no_diff ' if self.no_diff else ''}{prefix}{self.type.full_name} {self.name}"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.declaration if self.reflection.is_valid else _GONE})"


class SlangField(_Variable):
    """A field of a struct."""


class SlangParameter(_Variable):
    """A parameter of a function."""

    def __init__(self, layout: Any, reflection: Any, index: int) -> None:
        super().__init__(layout, reflection)
        self.index = index


class SlangFunction:
    """A function or method. One of several overloads has parameters; all of them together only have `overloads`."""

    def __init__(
        self, layout: SlangProgramLayout, reflection: Any, this_type: SlangType | None = None, overloads: Sequence[Any] = ()
    ) -> None:  # fmt: skip
        self._layout = layout
        self._overloads = list(overloads)
        self.reflection = reflection
        self.this_type = this_type
        """The struct that a method belongs to."""

    @property
    def name(self) -> str:
        return self.reflection.name

    @property
    def full_name(self) -> str:
        """With the generic arguments where they are known: "foo<float>"."""
        generic = self.reflection.generic
        if generic is None or generic.name != self.name:
            return self.name
        types = [generic.concrete_type(name) for name in generic.type_parameters]
        if any(found is None or found.kind.name == "generic_type_parameter" for found in types):
            return self.name
        values = [str(generic.concrete_value(name)) for name in generic.value_parameters]
        return f"{self.name}<{', '.join([found.full_name for found in types] + values)}>"

    @property
    def is_overloaded(self) -> bool:
        return bool(self._overloads) or self.reflection.is_overloaded

    @property
    def overloads(self) -> list[SlangFunction]:
        """Functions of this name, where there are several; else empty."""
        found = self._overloads or self.reflection.overloads
        return [SlangFunction(self._layout, item, self.this_type) for item in found if item is not None]

    @property
    def return_type(self) -> SlangType | None:
        """None where it is overloaded."""
        return None if self._overloads else self._layout.wrap(self.reflection.return_type)

    @property
    def have_return_value(self) -> bool:
        type_ = self.return_type
        return type_ is not None and type_.full_name != "void"

    @property
    def parameters(self) -> tuple[SlangParameter, ...]:
        found = [] if self._overloads else self.reflection.parameters
        return tuple(SlangParameter(self._layout, item, index) for index, item in enumerate(found))

    def has_modifier(self, modifier: Any) -> bool:
        """modifier: a `ModifierID`, or its name."""
        ids = libslang.ModifierID
        return self.reflection.has_modifier(getattr(ids, modifier) if isinstance(modifier, str) else modifier)

    @property
    def differentiable(self) -> bool:
        return self.has_modifier("differentiable")

    @property
    def mutating(self) -> bool:
        return self.has_modifier("mutating")

    @property
    def static(self) -> bool:
        return self.has_modifier("static")

    @property
    def is_constructor(self) -> bool:
        return self.name == "$init"

    def specialize_with_arg_types(self, types: Sequence[Any]) -> SlangFunction | None:
        """The overload, with its generics filled in, that a call with arguments of these types selects; None when there
        is none. types: Slang types, of this layer or the compiler's."""
        reflected = [self._layout.reflection_of(type_, "specialize_with_arg_types") for type_ in types]
        for item in self._overloads or (self.reflection,):
            found = item.specialize_with_arg_types(reflected)
            if found is not None and not found.is_overloaded:
                return SlangFunction(self._layout, found, self.this_type)
        return None

    def __repr__(self) -> str:
        if not self.reflection.is_valid:
            return f"SlangFunction({_GONE})"
        if self.is_overloaded:
            return f"SlangFunction({self.name}, {len(self.overloads)} overloads)"
        returned = self.return_type.full_name if self.return_type is not None else "void"
        return f"SlangFunction({returned} {self.full_name}({', '.join(p.declaration for p in self.parameters)}))"
