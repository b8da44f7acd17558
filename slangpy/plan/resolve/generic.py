"""The tries of one overload: a generic is specialised with each combination of types that its arguments may have."""

from __future__ import annotations

import itertools
import re
from typing import Any

from ...reflection import SlangType
from ..bind import Context, candidates
from ..bind.base import TENSOR_NAME
from ..bind.custom import reduced
from ..declared import stated_generic
from ..records import Argument, Options, Value
from .bind import Attempt, bind_all
from .maps import map_entry, mapped_type, unknown_map_type
from .target import Declared, Target, mentions_generic, parameters_of, place


def try_overload(target: Target, function: Any, arguments: tuple[Argument, ...], options: Options) -> list[Attempt]:
    placed, result, reason = place(target, function, arguments, options)
    if reason:
        return [Attempt(reason=reason, is_misplaced=True)]
    if function.generic is None or not _is_open(target):
        return [bind_all(target, function, placed, result, options)]
    return _try_generic(target, function, placed, result, options)


def _is_open(target: Target) -> bool:
    """Whether a generic still needs its arguments (f<4> has them)."""
    return "<" not in target.name


def _try_generic(
    target: Target, function: Any, placed: dict[str, Argument], result: Argument | None, options: Options
) -> list[Attempt]:
    context = target.context(options)
    declared = parameters_of(target, function)
    generic = frozenset(p.name for p in declared if mentions_generic(p.type))
    choices: dict[str, list[SlangType]] = {}
    for name, type_, *_ in declared:
        if name == "this" or name not in placed:
            continue
        entry = map_entry(options, name, placed[name])
        choices[name] = _concrete_choices(placed[name].value, type_, entry, context, name, function.generic)
        if not choices[name] and _is_empty(placed[name].value):
            choices[name] = _choices_of_others(name, type_, declared, placed, context)
        if not choices[name]:
            text = (
                f"Argument {name} could not be resolved: {placed[name].value.summary()} does not match slang type "
                f"{type_.full_name}{_open_hint(placed[name].value, type_, target, function.generic)}"
            )
            return [Attempt(reason=text, size_dependent=context.size_dependent)]
    attempts: list[Attempt] = []
    seen: set[tuple[str, ...]] = set()
    for types in itertools.product(*choices.values()):
        arguments = [t.type_reflection for t in types]
        special = None if target.is_constructor else function.specialize_with_arg_types(arguments)
        if special is None:
            special = _inferred(target, function, declared, dict(zip(choices, types, strict=True)))
        if special is None:
            continue
        attempt = bind_all(target, special, placed, result, options, dict(zip(choices, types, strict=True)), generic)
        attempt.size_dependent |= context.size_dependent
        attempt.shape_dependent |= context.shape_dependent
        if attempt.resolved is not None:
            signature = tuple(p.type_name + str(p.binding.dims) for p in attempt.resolved.parameters)
            if signature in seen:
                continue
            seen.add(signature)
        attempts.append(attempt)
    return attempts or [Attempt(reason=_none_fits(target, choices, function.generic), size_dependent=context.size_dependent)]


def _inferred(target: Target, function: Any, declared: list[Declared], types: dict[str, SlangType]) -> Any:
    """A generic constructor, or a generic method of a generic struct: the compiler's reflection does not infer their
    arguments. None where the parameters do not tell all of them, or they do not fit."""
    struct = target.struct
    is_method = struct is not None and "<" in struct.full_name and not target.reflection.is_overloaded
    if struct is None or not (target.is_constructor or is_method):
        return None
    told: dict[str, str] = {}
    for parameter in declared:
        if parameter.name in types and mentions_generic(parameter.type):
            found = re.fullmatch(_pattern(parameter.type.full_name, function.generic, told), types[parameter.name].full_name)
            if found is None:
                return None
            told.update(found.groupdict())
    names = [*function.generic.type_parameters, *function.generic.value_parameters]
    if any(name not in told for name in names) or not _conform(target, function.generic, told):
        return None
    if target.is_constructor:
        return function  # the kernel calls it with values of `types`
    return target.layout.reflect_method(struct, f"{target.name}<{', '.join(told[name] for name in names)}>")


def _pattern(text: str, generic: Any, told: dict[str, str]) -> str:
    """What matches the types that a declared type stands for: `vector<T,N>` all vectors."""
    values = set(generic.value_parameters)
    seen: set[str] = set()
    pattern = ""
    for word in re.split(r"(\w+)", text):
        if word not in values and word not in generic.type_parameters:
            pattern += re.escape(word)
        elif word in told:
            pattern += re.escape(told[word])
        elif word in seen:
            pattern += f"(?P={word})"
        else:
            seen.add(word)
            pattern += f"(?P<{word}>{r'[0-9]+' if word in values else '.+'})"
    return pattern


def _conform(target: Target, generic: Any, told: dict[str, str]) -> bool:
    native = target.layout.native
    return all(
        native.is_sub_type(target.layout.require_type_by_name(told[name]).type_reflection, constraint)
        for name in generic.type_parameters
        for constraint in generic.constraints(name)
    )


def _none_fits(target: Target, choices: dict[str, list[SlangType]], generic: Any) -> str:
    tried = itertools.islice(itertools.product(*choices.values()), 8)
    shown = ", ".join("(" + ", ".join(t.full_name for t in types) + ")" for types in tried)
    text = f"could not match the function signature; types tried: {shown}"
    constraints = [
        f"{name} must conform to {constraint.full_name}"
        for name in generic.type_parameters
        for constraint in generic.constraints(name)
    ]
    text = f"{text}; {', '.join(constraints)}" if constraints else text
    return f"{text}; where arguments do not tell them all, name them: {_stated(target, generic)}"


def _stated(target: Target, generic: Any) -> str:
    owner = target.struct.full_name if target.struct is not None else ""
    return stated_generic(target.module, target.name, generic, owner)


def _open_hint(value: Value, type_: SlangType, target: Target, generic: Any) -> str:
    if value.kind == "dict" and not value.details.get("_type"):
        return ": give the dict a _type"
    if _is_empty(value):
        return ": no other argument tells the type; let the reference hold a value of it"
    if value.kind == "generator" and value.details["dims"] < 1:
        return f": it has no size of its own; give {value.details['generator']} one, or name the type with .map()"
    if type_.kind == "pointer":
        return ": its type is told by a Tensor only"
    if value.kind in ("tensor", "array"):
        stated = _stated(target, generic)
        return f": its sizes cannot be told from the element type; write {stated}, or name the type with .map()"
    return ""


def _concrete_choices(
    value: Value, type_: SlangType, entry: Any, context: Context, name: str, generic: Any = None
) -> list[SlangType]:
    wanted = mapped_type(entry)
    if wanted:
        found = context.find(wanted)
        if found is None:
            raise unknown_map_type(wanted, name, context)
        return [found]
    if not mentions_generic(type_):
        return [type_]
    if entry is not None and entry[0] == "dims" and value.kind == "custom":
        left = reduced(value, len(entry[1]), context)
        return [left] if left is not None else []
    return candidates(value, _tensor_constraint(type_, generic) or type_.type_reflection, context)


def _is_empty(value: Value) -> bool:
    """Whether a value is a reference that holds None: an output of any type."""
    return value.kind in ("value_ref", "diff_pair") and value.fields[0][1].kind == "none"


def _choices_of_others(
    name: str, type_: SlangType, declared: list[Declared], placed: dict[str, Argument], context: Context
) -> list[SlangType]:
    """What a parameter may be whose value does not tell: the types of an argument of the same declared type."""
    for other in declared:
        if other.name in placed and other.name != name and other.type.full_name == type_.full_name:
            found = candidates(placed[other.name].value, type_.type_reflection, context)
            if found:
                return found
    return []


def _tensor_constraint(type_: SlangType, generic: Any) -> Any:
    """The tensor interface that a type parameter asks for: its arguments bind as if the parameter named it."""
    if generic is None or type_.full_name not in generic.type_parameters:
        return None
    found = generic.constraints(type_.full_name)
    return next((c for c in found if TENSOR_NAME.match(c.full_name.partition("<")[0])), None)
