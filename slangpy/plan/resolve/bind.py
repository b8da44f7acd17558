"""One try of a call: each placed argument bound to its parameter's type, or the reason why one cannot be."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from ...base import libslang
from ...errors import KernelGenException
from ...reflection import SlangType
from ..bind import Context, NoMatch, RankTooSmall, bind, candidates
from ..bind.aggregate import is_plain, is_writable
from ..bind.array import torch_advice
from ..bind.base import converts_whole, number_cost
from ..records import Argument, Binding, Options, Parameter, Resolved, Value
from ..slang_text import slang_name
from .maps import MapMismatch, check_map, map_entry, mapped_type, unknown_map_type
from .target import Declared, Target, mentions_generic, parameters_of


@dataclass
class Attempt:
    """What came of one way to bind a call: `resolved`, or why not."""

    resolved: Resolved | None = None
    reason: str = ""
    rank_error: str = ""
    map_error: str = ""
    is_misplaced: bool = False  # arguments are too many, too few or of other names
    content_error: str = ""  # fields or components of the value are not those of the type
    type_name: str = ""  # of the parameter where a candidate type failed
    dims: tuple[int, ...] = ()
    size_dependent: bool = False
    shape_dependent: bool = False


def bind_all(
    target: Target,
    function: Any,
    placed: dict[str, Argument],
    result: Argument | None,
    options: Options,
    types: dict[str, SlangType] | None = None,
    generic: frozenset[str] = frozenset(),
) -> Attempt:
    """Binds placed arguments; `types`: what a generic was specialised with, `generic`: its open parameters."""
    attempt = Attempt()
    parameters: list[Parameter] = []
    known = parameters_of(target, function)
    last = max((i for i, declared in enumerate(known) if declared.name in placed), default=-1)
    for index, (name, type_, io, no_diff, _) in enumerate(known):
        argument = placed.get(name)
        if argument is None:
            if index > last:
                continue  # left to Slang's default value
            given = _default(attempt, target, function, known[index])
            if given is None:
                return attempt
            parameters.append(given)
            continue
        if types and name in types and mentions_generic(type_):
            type_ = types[name]
        context = target.context(options)
        entry = map_entry(options, name, argument)
        binding = _attempt_bind(attempt, argument.value, type_, io, entry, context, name, index)
        attempt.size_dependent |= context.size_dependent
        if binding is None:
            return attempt
        generality = 2 if type_.kind == "interface" else 1 if name in generic else 0
        if type_.kind == "interface":
            type_ = binding.type  # calls are statically typed
        parameters.append(
            Parameter(name, type_, type_.full_name, io, no_diff, binding, argument, name == "this", generality)
        )
    return _finish(target, function, parameters, result, options, attempt)


def _default(attempt: Attempt, target: Target, function: Any, declared: Declared) -> Parameter | None:
    """An omitted parameter before a given one: its default as a literal, or None with the reason in `attempt`."""
    name, type_ = declared.name, declared.type
    literal = _default_literal(target, function, name, type_)
    if not literal:
        attempt.reason = (
            f"Parameter '{name}' not specified, and its default value cannot be read because a later argument is "
            "given: pass it"
        )
        return None
    bound = Binding("literal", None, type_.full_name, type_, stored=literal)
    return Parameter(name, type_, type_.full_name, declared.io, True, bound, None)


def _default_literal(target: Target, function: Any, name: str, type_: SlangType) -> str:
    """Slang text of a literal default value; empty when reflection does not tell it."""
    parameter = next((p for p in function.parameters if p.name == name), None)
    if parameter is None or not parameter.has_default:
        return ""
    if parameter.default_int is not None and type_.scalar:
        return f"{type_.full_name}({parameter.default_int}ll)"
    if parameter.default_float is not None and type_.scalar:
        return f"{type_.full_name}({float(parameter.default_float)!r})"
    if target.member_wise and target.struct is not None:
        stated = any(f.name == name and f.has_default for f in target.struct.type_reflection.fields)
        zero = {"scalar": "(0)", "vector": "(0)", "matrix": "(0)", "struct": "()"}.get(type_.kind)
        return slang_name(type_.full_name) + zero if zero and not stated else ""
    return ""


def _attempt_bind(
    attempt: Attempt, value: Value, type_: SlangType, io: str, entry: Any, context: Context, name: str, index: int
) -> Binding | None:
    """The binding, or None with the reason in `attempt`."""
    where = f"Argument {index} could not be resolved" if name != "_result" else "_result could not be resolved"
    try:
        return _bind_one(value, type_, io, entry, context, name)
    except MapMismatch as error:
        attempt.map_error = attempt.reason = str(error)
    except RankTooSmall as error:
        attempt.rank_error = attempt.reason = f"{where}: {name}: {error}"
        attempt.type_name = type_.full_name
    except NoMatch as error:
        attempt.reason = f"{where}: {name}: {error}{torch_advice(value, type_, name)}"
    except KernelGenException as error:
        attempt.content_error = attempt.reason = str(error)
    return None


def _bind_one(value: Value, type_: SlangType, io: str, entry: Any, context: Context, name: str) -> Binding:
    wanted = mapped_type(entry)
    if entry is not None and io == "in" and context.convert == "none":
        context.convert = "any"  # who maps an argument states what it is read as; Slang converts that at the call
    if type_.kind == "interface":
        type_ = _for_interface(value, type_, context, wanted, name)
    writes = io != "in"
    context.writable = writes and is_writable(value)
    context.reads = io != "out"
    stated = None
    if wanted and wanted != type_.full_name:
        stated = context.find(wanted)
        if stated is None:
            raise unknown_map_type(wanted, name, context)
        if stated.full_name != type_.full_name and not (io == "in" and converts_whole(stated, type_, context)):
            raise NoMatch(
                f"the mapped type '{wanted}' ({stated.full_name}) does not match slang type {type_.full_name}"
            )
    binding = bind(value, type_, context)
    if wanted:  # what the value is read as says how near an overload is, not what the value holds
        kind = (
            0 if stated is None or stated.full_name == type_.full_name else 1 + number_cost(stated.scalar, type_.scalar)
        )
        binding = replace(binding, cost=(kind, binding.cost[1]))
    if entry is not None:
        check_map(binding, entry, name)
    return binding


def _for_interface(value: Value, type_: SlangType, context: Context, wanted: str, name: str) -> SlangType:
    """The concrete type that a value has for an interface parameter."""
    found = candidates(value, type_.type_reflection, context)
    if wanted:
        stated = context.find(wanted)
        if stated is None:
            raise unknown_map_type(wanted, name, context)
        found = [stated]
    if not found:
        hint = ": give the dict a _type" if value.kind == "dict" else ""
        raise NoMatch(f"{value.summary()} does not match slang type {type_.full_name}{hint}")
    fitting = [t for t in found if context.layout.native.is_sub_type(t.type_reflection, type_.type_reflection)]
    if not fitting:
        names = ", ".join(t.full_name for t in found)
        raise NoMatch(f"{value.summary()} does not match slang type {type_.full_name}: {names} does not conform to it")
    return fitting[0]


def _finish(
    target: Target, function: Any, parameters: list[Parameter], result: Argument | None, options: Options, attempt: Attempt
) -> Attempt:  # fmt: skip
    """The record of a call whose arguments are all bound, `_result` among them."""
    return_type = target.struct if target.is_constructor else target.layout.wrap(function.return_type)
    return_name = return_type.full_name if return_type is not None else "void"
    if result is not None:
        if return_name == "void":
            attempt.reason = f"'{target.name}' returns nothing, but _result was given"
            return attempt
        assert return_type is not None
        if options.bwds and is_plain(result.value):  # in the place of the result, but nothing that holds a gradient
            nothing = Binding("literal", None, return_name, return_type)
            parameters.append(Parameter("_result", return_type, return_name, "return", False, nothing, None))
        else:
            bound = _bind_result(target, return_type, result, options, attempt)
            if bound is None:
                return attempt
            parameters.append(Parameter("_result", return_type, return_name, "return", False, bound, result))
    attempt.resolved = Resolved(
        function,
        target.name,
        tuple(parameters),
        return_type,
        return_name,
        _call_kind(target, function),
        target.struct.full_name if target.struct is not None else "",
        target.may_differentiate(function),
    )
    attempt.dims = tuple(leaf.dims for p in parameters for leaf in p.binding.leaves())
    return attempt


def _bind_result(
    target: Target, return_type: SlangType, result: Argument, options: Options, attempt: Attempt
) -> Binding | None:
    if not is_writable(result.value):
        attempt.reason = (
            f"_result could not be resolved: {result.value.summary()} cannot hold a result; pass a Tensor, an array, "
            "a ValueRef or a dict of such"
        )
        return None
    context = target.context(options, writable=not options.bwds)
    if context.convert == "none" and not options.bwds:
        context.convert = "any"  # as where Slang stores a value of one type in a variable of another
    entry = dict(options.map_kwargs).get("_result")
    bound = _attempt_bind(attempt, result.value, return_type, "out", entry, context, "_result", -1)
    attempt.size_dependent |= context.size_dependent
    return bound


def _call_kind(target: Target, function: Any) -> str:
    if target.is_constructor:
        return "constructor"
    if target.struct is None:
        return "function"
    return "static" if function.has_modifier(libslang.ModifierID.static) else "method"
