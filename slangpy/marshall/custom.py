"""Values of registered classes: what their marshalls of `slangpy.bindings` say, as bindings."""

from __future__ import annotations

from typing import Any

from ..bindings.boundvariable import BoundVariable
from ..bindings.codegen import CodeGenBlock
from ..bindings.enums import AccessType
from ..bindings.marshall import BindContext, Marshall
from ..bindings.typeregistry import get_or_create_type
from ..call.ir import Binding, Value
from ..errors import BoundVariableException
from ..reflection import SlangType
from .base import Context, no_match, register


def _marshall(value: Value, context: Context) -> tuple[Marshall, BindContext]:
    instance = value.details["object"]
    return get_or_create_type(context.layout, type(instance), instance), BindContext(context.layout, context.module)


def _types(marshall: Marshall, context: BindContext, bound: SlangType) -> list[SlangType]:
    found = list(marshall.resolve_types(context, bound) or ())
    for type_ in found:
        if not isinstance(type_, SlangType):
            raise BoundVariableException(
                f"{type(marshall).__name__}.resolve_types must return Slang types, got {type(type_).__name__}; does "
                "the module have the type that it looks up?"
            )
    return found


def _dimensions(marshall: Marshall, context: BindContext, bound: BoundVariable, value: Value, target: SlangType) -> int:
    dims = marshall.resolve_dimensionality(context, bound, target)
    if dims is None:
        own = len(marshall.slang_type.shape) if marshall.slang_type is not None else 0
        dims = len(tuple(marshall.get_shape(value.details["object"]))) + own - len(target.shape)
    if not isinstance(dims, int) or dims < 0:
        raise no_match(value, target, f"{type(marshall).__name__} gives it {dims} dimensions")
    return dims


def _bind(value: Value, type_: SlangType, context: Context) -> Binding:
    marshall, bind_context = _marshall(value, context)
    if type_.full_name not in {t.full_name for t in _types(marshall, bind_context, type_)}:
        raise no_match(value, type_)
    if context.writable and not marshall.is_writable:
        raise no_match(value, type_, f"read-only: is_writable of {type(marshall).__name__} is False")
    access = AccessType.readwrite if context.reads else AccessType.write
    bound = BoundVariable(marshall, type_, access if context.writable else AccessType.read)
    bound.call_dimensionality = _dimensions(marshall, bind_context, bound, value, type_)
    code = CodeGenBlock()
    marshall.gen_calldata(code, bind_context, bound)
    stored = bound.calldata_type_name
    if not stored:
        raise BoundVariableException(
            f"{type(marshall).__name__}.gen_calldata must call binding.gen_calldata_type_name(cgb, type_name)"
        )
    if context.find(stored) is None and not code.lines and not code.imports:
        raise BoundVariableException(f"{type(marshall).__name__}.gen_calldata: could not find type '{stored}'")
    return Binding(
        "custom", value, type_.full_name, type_, bound.call_dimensionality, (), stored,
        cost=(0, 1 if bound.call_dimensionality else 0), marshall=marshall, code=code,
    )  # fmt: skip


def _candidates(value: Value, pattern: Any, context: Context) -> list[SlangType]:
    wrapped = context.layout.wrap(pattern)
    if wrapped is None:
        return []
    marshall, bind_context = _marshall(value, context)
    return _types(marshall, bind_context, wrapped)


register(("custom",), _bind, _candidates)
