"""The class that says how values of a Python class reach kernels."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .._native import Shape
from .codegen import CodeGenBlock
from .enums import CallMode

if TYPE_CHECKING:
    from ..reflection import SlangProgramLayout, SlangType
    from .boundvariable import BoundVariable
    from .boundvariableruntime import BoundVariableRuntime


@dataclass(frozen=True)
class BindContext:
    """What a marshall may ask while a call is planned."""

    layout: SlangProgramLayout
    module: Any = None
    call_dimensionality: int = 0
    """Dimensions of the call, where they are known: when a marshall for the result is made."""


@dataclass(frozen=True)
class ReturnContext:
    """What a factory is given instead of a value when its class is asked for as a result."""

    slang_type: SlangType
    bind_context: BindContext


@dataclass(frozen=True)
class CallContext:
    """What a marshall may ask while a call runs."""

    device: Any
    call_shape: Shape
    call_mode: CallMode


class Marshall:
    """Base of the marshalls of your classes. `slang_type` is the Slang type that carries the value in the kernel."""

    has_derivative: bool = False
    is_writable: bool = False
    match_call_shape: bool = False
    concrete_shape: Any = None

    def __init__(self, layout: SlangProgramLayout) -> None:
        self.layout = layout
        self.slang_type: SlangType | None = None

    def get_shape(self, value: Any, /) -> Any:
        """Container dimensions of a value: -1 where it takes the size of the call."""
        del value
        return Shape() if self.concrete_shape is None else Shape(self.concrete_shape)

    def resolve_types(self, context: BindContext, bound: SlangType, /) -> Sequence[SlangType] | None:
        """Types that one invocation may receive where the parameter has type `bound`; None when there are none."""
        found = self.resolve_type(context, bound)
        return None if found is None else [found]

    def resolve_type(self, context: BindContext, bound: SlangType, /) -> SlangType | None:
        """The older form of `resolve_types`."""
        del context, bound
        return self.slang_type

    def resolve_dimensionality(self, context: BindContext, binding: BoundVariable, target: SlangType, /) -> int | None:
        """Dimensions that the argument adds to the call; None: rank of the value less the rank of the target."""
        del context, binding, target
        return None

    def reduce_type(self, context: BindContext, dims: int, /) -> SlangType | None:
        """The type left when `dims` dimensions are spread over the call."""
        del context
        type_ = self.slang_type
        for _ in range(dims):
            type_ = type_.element_type if type_ is not None else None
        return type_

    def gen_calldata(self, cgb: CodeGenBlock, context: BindContext, binding: BoundVariable, /) -> None:
        """States the stored type with `binding.gen_calldata_type_name(cgb, name)`."""
        del context
        if self.slang_type is None:
            raise ValueError(f"{type(self).__name__}: set slang_type in __init__, or override gen_calldata")
        binding.gen_calldata_type_name(cgb, self.slang_type.full_name)

    def create_calldata(self, context: CallContext, binding: BoundVariableRuntime, value: Any, /) -> Any:
        """The stored data: a dict of the fields of the stored type.

        By default no field is written, which is for types that `gen_calldata` names.
        """
        del context, binding, value
        if type(self).gen_calldata is Marshall.gen_calldata:
            raise NotImplementedError(
                f"{type(self).__name__} must override create_calldata: it returns the stored fields"
            )
        return {}

    def read_calldata(self, context: CallContext, binding: BoundVariableRuntime, value: Any, data: Any, /) -> None:
        """Called after a call that wrote the value; `data` is what `create_calldata` returned."""
        del context, binding, value, data

    def create_output(self, context: CallContext, binding: BoundVariableRuntime, /) -> Any:
        """The object that a call of shape `context.call_shape` stores its result in, through `create_calldata`."""
        del context, binding
        raise NotImplementedError(
            f"{type(self).__name__} does not make results: override create_output, or pass an instance as _result"
        )

    def read_output(self, context: CallContext, binding: BoundVariableRuntime, data: Any, /) -> Any:
        """What the call returns for `data`, the object that `create_output` made: by default that object."""
        del context, binding
        return data

    def create_dispatchdata(self, value: Any, /) -> Any:
        """The value as raw dispatch takes it."""
        return value


class CursorMarshall(Marshall):
    """Of classes whose values are one value of one Slang type, written by their own `write_to_cursor(cursor)`."""

    def __init__(
        self, layout: SlangProgramLayout, type_name: str, imports: Sequence[str], accepted: re.Pattern[str] | None
    ) -> None:
        super().__init__(layout)
        self.slang_type = layout.find_type_by_name(type_name)
        self._name, self._imports, self._accepted = type_name, imports, accepted

    def resolve_types(self, context: BindContext, bound: SlangType) -> Sequence[SlangType] | None:
        del context
        if bound.kind in ("generic_type_parameter", "interface", "none"):
            return None if self.slang_type is None else [self.slang_type]
        own = self.slang_type.full_name if self.slang_type is not None else self._name
        accepted = self._accepted is not None and self._accepted.fullmatch(bound.full_name) is not None
        return [bound] if bound.full_name == own or accepted else None

    def resolve_dimensionality(self, context: BindContext, binding: BoundVariable, target: SlangType) -> int:
        del context, binding, target
        return 0

    def gen_calldata(self, cgb: CodeGenBlock, context: BindContext, binding: BoundVariable) -> None:
        del context
        for name in self._imports:
            cgb.add_import(name)
        binding.gen_calldata_type_name(cgb, binding.vector_type.full_name)
