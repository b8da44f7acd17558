"""Which function a call means: arguments are placed on parameters, bound to types, and overloads are ranked.

The steps are in resolve_target, resolve_generic, resolve_bind and resolve_rank."""

from __future__ import annotations

import difflib
import re
from typing import Any

from ...errors import BoundVariableException, ResolveException, UnmappedNone
from ...reflection import SlangType
from ..bind.base import TENSOR, optional_of, split_element
from ..map_entries import too_many_mapped
from ..records import Argument, Options, Resolved, Value
from .bind import Attempt
from .generic import try_overload
from .maps import map_entry
from .rank import best_of, by_position, by_sizes, by_slang, check_arrays, failure, misfit
from .target import Declared, Target, parameters_of, place

MARK = "; mark it [Differentiable] in the Slang source"
KEYWORDS = ("_result", "_this", "_append_to", "_thread_count")
"""What calls take beside the function's parameters."""


def resolve(target: Target, arguments: tuple[Argument, ...], options: Options) -> tuple[Resolved, bool, bool]:
    """The one function and binding that fits, and whether sizes of lists and sizes of containers decided it.

    Raises ResolveException, ShapeError or BoundVariableException.
    """
    _check_mapped(arguments, options)
    _check_names(target, arguments)
    _check_values(target, arguments, options)
    _check_entry_point(target)
    if len(options.map_args) > sum(a.name is None for a in arguments):
        raise too_many_mapped(len(options.map_args), sum(a.name is None for a in arguments))
    overloads = target.overloads
    attempts: list[tuple[Any, list[Attempt]]] = []
    for overload in overloads:
        attempts.append((overload, try_overload(target, overload, arguments, options)))
    found = [(o, a) for o, tries in attempts for a in tries if a.resolved is not None]
    sized = any(a.size_dependent for _, tries in attempts for a in tries)
    if not found:
        if error := misfit(attempts):
            raise error
        _check_values(target, arguments, options, strict=True)
        if (options.bwds or options.fwds) and _none_differentiable(target, overloads, arguments, options):
            raise _not_differentiable(target)
        raise failure(attempts)
    check_arrays(target, attempts, found)
    found = by_position(found)
    found, shaped = by_sizes(found)
    shaped |= any(a.shape_dependent for _, tries in attempts for a in tries)
    best = best_of(target, by_slang(target, found))
    resolved = best.resolved
    assert resolved is not None
    _check_outputs(target, resolved)
    if (options.bwds or options.fwds) and not resolved.differentiable:
        raise _not_differentiable(target)
    return resolved, sized or shaped, shaped


_UNSEEN = re.compile(r"(Optional|Tuple|DifferentialPair|Conditional|String|NativeString)\b")
"""Types of Slang's core library of whose content reflection tells nothing."""


def _unseen(type_: SlangType) -> str:
    """The part of a type that the host cannot read; empty where it can read all."""
    element, _ = split_element(type_)
    if _UNSEEN.match(element.full_name) and not any(element.fields):
        return element.full_name
    inner = element.fields.values() if element.kind == "struct" else ()
    return next(filter(None, (_unseen(field.type) for field in inner)), "")


def _check_outputs(target: Target, resolved: Resolved) -> None:
    """A call returns what has a layout that the host knows."""
    type_ = resolved.return_type
    if type_ is not None and (type_.kind in ("resource", "sampler_state") or TENSOR.match(type_.full_name)):
        raise ResolveException(
            f"'{target.name}' returns a {type_.full_name}, which a call cannot return: make it a parameter and write into that"
        )
    outputs = [(f"{p.name} is", p.type) for p in resolved.parameters if p.io in ("out", "inout") and not p.binding.pair]
    for what, written in [*outputs, *([] if type_ is None else [(f"'{target.name}' returns", type_)])]:
        part = _unseen(written)
        if part:
            inside = "" if part == written.full_name else f", with {part} in it"
            raise ResolveException(
                f"{what} {written.full_name}{inside}, which the host cannot read: use a struct with its parts as fields"
            )


def _not_differentiable(target: Target) -> ResolveException:
    return ResolveException(f"Could not call function '{target.name}': Function is not differentiable" + MARK)


def _none_differentiable(
    target: Target, overloads: list[Any], arguments: tuple[Argument, ...], options: Options
) -> bool:
    """Whether arguments fit the parameters of overloads by number, none of which has a derivative."""
    fitting = [o for o in overloads if not place(target, o, arguments, options)[2]]
    return bool(fitting) and not any(target.may_differentiate(o) for o in fitting)


def _check_entry_point(target: Target) -> None:
    if target.module is None or target.struct is not None:
        return
    if target.name in {entry.name for entry in target.module._compiled.main.entry_points}:
        raise ResolveException(
            f"'{target.name}' is an entry point: run it with .dispatch(thread_count, ...) instead of calling it"
        )


def _check_mapped(arguments: tuple[Argument, ...], options: Options) -> None:
    for argument in arguments:
        name = argument.name or f"argument {argument.position}"
        if argument.value.kind == "none" and map_entry(options, name, argument) is not None:
            raise UnmappedNone(
                f"Explicit vectorization raised exception: NotImplementedError: {name} is None, which has no dimensions "
                "and no type; pass a value"
            )


def _check_names(target: Target, arguments: tuple[Argument, ...]) -> None:
    """Keywords of calls that are spelt wrong (`_reslt`, `result`): what follows them says nothing."""
    named = [a.name for a in arguments if a.name is not None and a.name not in KEYWORDS]
    if not named:
        return
    known = {p.name for overload in target.overloads for p in parameters_of(target, overload)}
    for name in named:
        if name in known:
            continue
        close = difflib.get_close_matches(name if name.startswith("_") else f"_{name}", KEYWORDS, 1)
        own = difflib.get_close_matches(name, known, 1)
        if close and not own:
            raise ResolveException(f"No parameter named '{name}'; did you mean {close[0]}?")


def _check_values(target: Target, arguments: tuple[Argument, ...], options: Options, strict: bool = False) -> None:
    """BoundVariableException for values that no parameter takes. strict: also for those that few take, None and text."""
    declared = [parameters_of(target, overload) for overload in target.overloads] if strict else []
    try:
        for index, argument in enumerate(arguments):
            types = _types_at(declared, argument, index)
            _check_value(argument.value, argument.name or f"argument {argument.position}", types, strict)
    except BoundVariableException:
        if (options.bwds or options.fwds) and _none_differentiable(target, target.overloads, arguments, options):
            raise _not_differentiable(target) from None
        raise


def _types_at(declared: list[list[Declared]], argument: Argument, index: int) -> list[SlangType]:
    """The types of the parameter that an argument goes to, one for each overload."""
    if argument.name is None:
        return [parameters[index].type for parameters in declared if index < len(parameters)]
    return [parameter.type for parameters in declared for parameter in parameters if parameter.name == argument.name]


_NEAREST = {
    "str": "a number", "complex": "a float2", "ndarray": "an array of numbers", "set": "a list", "frozenset": "a list",
    "generator": "a list, list(values)", "map": "a list, list(values)", "filter": "a list, list(values)",
    "zip": "a list, list(values)", "dict_values": "a list, list(values)", "dict_keys": "a list, list(values)",
    "FunctionNode": "what the function returns when it is called", "type": "an instance of the class",
    "Struct": "a value of the type, made by calling it, or a dict of its fields", "bytes": "an array, np.frombuffer(...)",
}  # fmt: skip


def _nearest(value: Value, types: list[SlangType]) -> str:
    """What a call takes in the place of a value that it does not."""
    kinds = {type_.kind for type_ in types}
    if value.python_type == "str" and kinds == {"sampler_state"}:
        return "a Sampler, device.create_sampler(...)"
    if value.python_type == "str" and kinds == {"resource"}:
        return f"what {types[0].full_name} stands for, such as a Texture, Buffer or Tensor"
    return _NEAREST.get(value.python_type, "a number, list, dict, numpy array or Tensor")


def _check_value(value: Value, path: str, types: list[SlangType], strict: bool) -> None:
    kinds = {type_.kind for type_ in types}
    if (value.kind == "none" and any(map(optional_of, types))) or (kinds == {"enum"} and "text" in value.details):
        return  # fits, or the type says better why not
    if value.kind == "none" and strict:
        raise BoundVariableException(f"{path}: Unsupported type None; leave the argument out or pass a value")
    if value.kind in ("value_ref", "diff_pair") and value.fields[0][1].kind == "none":
        return  # an output of any type
    if value.kind == "unsupported" and (strict or "text" not in value.details):
        reason = value.details.get("reason", "")
        if reason == "structured":
            raise BoundVariableException(
                f"{path}: Structured numpy dtype {value.details.get('dtype')} cannot be an argument; "
                "use Tensor.from_numpy(device, array, target_slang_dtype=...)"
            )
        if reason == "torch":
            raise NotImplementedError(
                f"{path}: torch tensors are not accepted yet; pass tensor.numpy() or a slangpy.Tensor"
            )
        detail = f" with dtype {value.details['dtype']}" if reason == "dtype" and "dtype" in value.details else ""
        if reason == "dict keys":
            raise BoundVariableException(f"{path}: Unsupported type dict with keys that are not strings; use field names")
        raise BoundVariableException(
            f"{path}: Unsupported type {value.python_type}{detail}; nearest supported: {_nearest(value, types)}"
        )
    for name, child in value.fields:
        step = "" if name is None or value.kind in ("value_ref", "diff_pair") else name
        inner = [type_.fields[name].type for type_ in types if type_.kind == "struct" and name in type_.fields]
        _check_value(child, path + (step if step.startswith("[") else f".{step}" if step else ""), inner, strict)
