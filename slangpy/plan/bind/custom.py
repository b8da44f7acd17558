"""Values of registered classes: what their marshalls of `slangpy.bindings` say, as bindings."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ...bindings.boundvariable import BoundVariable
from ...bindings.codegen import CodeGenBlock
from ...bindings.enums import AccessType
from ...bindings.marshall import BindContext, CursorMarshall, Marshall, ReturnContext
from ...bindings.typeregistry import get_or_create_type
from ...errors import BoundVariableException
from ...reflection import SlangType
from ..records import Argument, Binding, Placed, Value, Vectorized
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
    stored, code = _stored(marshall, bind_context, bound, context)
    if isinstance(marshall, CursorMarshall):  # written whole, by its own method
        return Binding("value", value, type_.full_name, type_, stored=stored, marshall=marshall, code=code)
    return Binding(
        "custom", value, type_.full_name, type_, bound.call_dimensionality, (), stored,
        cost=(0, 1 if bound.call_dimensionality else 0), marshall=marshall, code=code,
    )  # fmt: skip


def bind_result(result_class: type, return_type: SlangType, rank: int, context: Context) -> Binding:
    """How the result of a call is stored in an object that the marshall of a registered class makes.

    Raises BoundVariableException when the class does not take results of this type.
    """
    bind_context = BindContext(context.layout, context.module, rank)
    marshall = get_or_create_type(context.layout, result_class, ReturnContext(return_type, bind_context))
    if type(marshall).create_output is Marshall.create_output:
        raise NotImplementedError(
            f"_result: {type(marshall).__name__} does not make results: override create_output, or pass an instance of "
            f"{result_class.__name__} as _result"
        )
    if return_type.full_name not in {t.full_name for t in _types(marshall, bind_context, return_type)}:
        raise BoundVariableException(
            f"_result: {result_class.__name__} does not match slang type {return_type.full_name}"
        )
    bound = BoundVariable(marshall, return_type, AccessType.write)
    bound.call_dimensionality = rank
    stored, code = _stored(marshall, bind_context, bound, context)
    return Binding("custom", None, return_type.full_name, return_type, rank, (), stored, marshall=marshall, code=code)


def _stored(
    marshall: Marshall, bind_context: BindContext, bound: BoundVariable, context: Context
) -> tuple[str, CodeGenBlock]:
    """The Slang type that a marshall stores, and the text that it adds to the kernel."""
    code = CodeGenBlock()
    marshall.gen_calldata(code, bind_context, bound)
    stored = bound.calldata_type_name
    if not stored:
        raise BoundVariableException(
            f"{type(marshall).__name__}.gen_calldata must call binding.gen_calldata_type_name(cgb, type_name)"
        )
    if context.find(stored) is None and not code.lines and not code.imports:
        raise BoundVariableException(f"{type(marshall).__name__}.gen_calldata: could not find type '{stored}'")
    return stored, code


def reduced(value: Value, dims: int, context: Context) -> SlangType | None:
    """What is left of a value for a generic parameter when `map` spreads `dims` of its dimensions."""
    marshall, bind_context = _marshall(value, context)
    return marshall.reduce_type(bind_context, dims)


def _candidates(value: Value, pattern: Any, context: Context) -> list[SlangType]:
    wrapped = context.layout.wrap(pattern)
    if wrapped is None:
        return []
    marshall, bind_context = _marshall(value, context)
    return _types(marshall, bind_context, wrapped)


def mentions_custom(arguments: tuple[Argument, ...]) -> bool:
    """Whether a marshall takes part, whose decisions no file can keep."""
    return any(_mentions(argument.value) for argument in arguments)


def _mentions(value: Value) -> bool:
    return value.kind == "custom" or any(_mentions(child) for _, child in value.fields)


def release(arguments: tuple[Argument, ...]) -> None:
    """Drops the values that planning looked at: a plan must not keep the first caller's objects."""
    for argument in arguments:
        _release(argument.value)


def _release(value: Value) -> None:
    if value.kind == "custom":
        value.details.pop("object", None)
    for _, child in value.fields:
        _release(child)


def with_class(plan: Vectorized, result_class: type, context: Any) -> Vectorized:
    """The plan with its result stored by the marshall of a registered class."""
    binding = bind_result(result_class, plan.resolved.return_type, plan.call_rank, context)
    dims = tuple(range(plan.call_rank))
    result = Placed("_result", binding, dims, False, True, "return", -1, f"a{len(plan.placed)}")
    return replace(plan, placed=(*plan.placed, result), result=result)


register(("custom",), _bind, _candidates)
