"""Which function a call means: arguments are placed on parameters, bound to types, and overloads are ranked."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import Any

from ..errors import BoundVariableException, ResolveException, ShapeError
from ..marshall import Context, NoMatch, RankTooSmall, bind, candidates
from ..marshall.aggregate import is_writable
from ..marshall.base import TENSOR, TENSOR_NAME, close_names
from ..marshall.custom import reduced
from ..marshall.scalar import components_shape
from ..reflection import SlangProgramLayout, SlangType
from .ir import Argument, Binding, Options, Parameter, Resolved, Value

MAX_CALL_DIMS = 16


@dataclass(frozen=True)
class Target:
    """A function by name, and the struct it belongs to."""

    layout: SlangProgramLayout
    name: str
    reflection: Any
    struct: SlangType | None = None
    is_constructor: bool = False
    module: Any = None

    def context(self, options: Options, writable: bool = False) -> Context:
        return Context(self.layout, options.convert or "none", writable, module=self.module)


@dataclass
class _Attempt:
    resolved: Resolved | None = None
    reason: str = ""
    rank_error: str = ""
    map_error: str = ""
    type_name: str = ""  # of the parameter where a candidate type failed
    dims: tuple[int, ...] = ()
    size_dependent: bool = False


def resolve(target: Target, arguments: tuple[Argument, ...], options: Options) -> tuple[Resolved, bool, bool]:
    """The one function and binding that fits, and whether sizes of lists and sizes of containers decided it.

    Raises ResolveException, ShapeError or BoundVariableException.
    """
    _check_values(arguments)
    _check_entry_point(target)
    if len(options.map_args) > sum(a.name is None for a in arguments):
        raise ValueError("Too many arguments supplied for explicit vectorization")
    reflection = target.reflection
    # A name that is also one of Slang's own (`linear`) is overloaded with what is no function.
    overloads = [o for o in reflection.overloads if o is not None] if reflection.is_overloaded else [reflection]
    attempts: list[tuple[Any, list[_Attempt]]] = []
    for overload in overloads:
        attempts.append((overload, _try_overload(target, overload, arguments, options)))
    found = [(o, a) for o, tries in attempts for a in tries if a.resolved is not None]
    sized = any(a.size_dependent for _, tries in attempts for a in tries)
    if not found:
        raise _failure(attempts)
    _check_arrays(target, attempts, found)
    found = _by_position(found)
    found, shaped = _by_sizes(found)
    best = _best(found)
    resolved = best.resolved
    assert resolved is not None
    type_ = resolved.return_type
    if type_ is not None and (type_.kind in ("resource", "sampler_state") or TENSOR.match(type_.full_name)):
        raise ResolveException(
            f"'{target.name}' returns a {type_.full_name}, which a call cannot return: write into a parameter"
        )
    if (options.bwds or options.fwds) and not resolved.differentiable:
        raise ResolveException(f"Could not call function '{target.name}': Function is not differentiable")
    return resolved, sized or shaped, shaped


def _check_entry_point(target: Target) -> None:
    if target.module is None or target.struct is not None:
        return
    if target.name in {entry.name for entry in target.module.loaded.main.entry_points}:
        raise ResolveException(
            f"'{target.name}' is an entry point: run it with .dispatch(thread_count, ...) instead of calling it"
        )


def _check_values(arguments: tuple[Argument, ...]) -> None:
    for argument in arguments:
        _check_value(argument.value, argument.name or f"argument {argument.position}")


def _check_value(value: Value, path: str) -> None:
    if value.kind == "none":
        raise BoundVariableException(f"{path}: Unsupported type None; leave the argument out or pass a value")
    if value.kind in ("value_ref", "diff_pair") and value.fields[0][1].kind == "none":
        return  # an output of any type
    if value.kind == "unsupported":
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
        nearest = {"str": "a number", "complex": "a float2", "ndarray": "an array of numbers", "set": "a list"}
        if reason == "dict keys":
            raise BoundVariableException(f"{path}: Unsupported type dict with keys that are no strings")
        raise BoundVariableException(
            f"{path}: Unsupported type {value.python_type}{detail}; nearest supported: "
            f"{nearest.get(value.python_type, 'a number, list, dict, numpy array or Tensor')}"
        )
    for name, child in value.fields:
        step = "" if name is None or value.kind in ("value_ref", "diff_pair") else name
        _check_value(child, path + (step if step.startswith("[") else f".{step}" if step else ""))


# --- placement ---------------------------------------------------------------------------------------------------


def _parameters(target: Target, function: Any) -> list[tuple[str, SlangType, str, bool, bool]]:
    """(name, type, io, no_diff, has default) of each parameter, `this` first."""
    from .. import _slang

    m = _slang.ModifierID
    found: list[tuple[str, SlangType, str, bool, bool]] = []
    if target.struct is not None and not target.is_constructor and not function.has_modifier(m.static):
        io = "inout" if function.has_modifier(m.mutating) else "in"
        found.append(("this", target.struct, io, False, False))
    for parameter in function.parameters:
        if parameter.has_modifier(m.inout):
            io = "inout"
        elif parameter.has_modifier(m.out):
            io = "out"
        else:
            io = "in"
        type_ = target.layout.wrap(parameter.type)
        assert type_ is not None
        found.append((parameter.name, type_, io, _is_no_diff(parameter, type_), parameter.has_default))
    return found


def _is_no_diff(parameter: Any, type_: SlangType) -> bool:
    """Whether a parameter is declared no_diff. Slang itself marks all of tensor type; their sources say it otherwise."""
    from .. import _slang

    if TENSOR.match(type_.full_name) and hasattr(parameter, "user_attributes"):
        return any(attribute.name == "_nd_" for attribute in parameter.user_attributes)
    return parameter.has_modifier(_slang.ModifierID.nodiff)


def _place(
    target: Target, function: Any, arguments: tuple[Argument, ...], options: Options
) -> tuple[dict[str, Argument], Argument | None, str]:
    """Arguments by parameter name, `_result`, or the reason why they cannot be placed."""
    parameters = _parameters(target, function)
    names = [p[0] for p in parameters]
    placed: dict[str, Argument] = {}
    result: Argument | None = None
    positional = [a for a in arguments if a.name is None]
    returns = (function.return_type is not None and function.return_type.full_name != "void") or target.is_constructor
    if options.bwds and returns and len(positional) == len(names) + 1 - sum(a.name in names for a in arguments):
        if not any(a.name == "_result" for a in arguments):
            result = positional.pop()
    if len(positional) > len(names):
        return {}, None, f"Too many arguments: expected {len(names)}, got {len(positional)}"
    for name, argument in zip(names, positional, strict=False):
        placed[name] = argument
    for argument in arguments:
        if argument.name is None:
            continue
        if argument.name == "_result":
            result = argument
        elif argument.name not in names:
            return {}, None, f"No parameter named '{argument.name}'; the parameters are {', '.join(names) or 'none'}"
        elif argument.name in placed:
            return {}, None, f"Parameter '{argument.name}' specified multiple times"
        else:
            placed[argument.name] = argument
    missing = [p[0] for p in parameters if p[0] not in placed and not p[4]]
    if missing:
        return {}, None, f"Parameter '{missing[0]}' not specified"
    return placed, result, ""


# --- binding -----------------------------------------------------------------------------------------------------


def _try_overload(target: Target, function: Any, arguments: tuple[Argument, ...], options: Options) -> list[_Attempt]:
    placed, result, reason = _place(target, function, arguments, options)
    if reason:
        return [_Attempt(reason=reason)]
    if function.generic is None or not _is_open(target, function):
        return [_bind_all(target, function, placed, result, options)]
    return _try_generic(target, function, placed, result, options)


def _is_open(target: Target, function: Any) -> bool:
    """Whether a generic still needs its arguments (f<4> has them)."""
    return "<" not in target.name


def _try_generic(
    target: Target, function: Any, placed: dict[str, Argument], result: Argument | None, options: Options
) -> list[_Attempt]:
    context = target.context(options)
    choices: list[list[SlangType]] = []
    names: list[str] = []
    parameters = _parameters(target, function)
    generic = frozenset(name for name, type_, *_ in parameters if _mentions_generic(type_))
    for name, type_, _, _, _ in parameters:
        if name == "this" or name not in placed:
            continue
        names.append(name)
        entry = _map_entry(options, name, placed[name])
        found = _concrete_choices(placed[name].value, type_, entry, context, name, function.generic)
        if not found:
            text = (
                f"Argument {name} could not be resolved: {placed[name].value.describe()} does not match slang type "
                f"{type_.full_name}{_open_hint(placed[name].value, type_)}"
            )
            return [_Attempt(reason=text, size_dependent=context.size_dependent)]
        choices.append(found)
    attempts: list[_Attempt] = []
    seen: set[tuple[str, ...]] = set()
    tried: list[str] = []
    for types in itertools.product(*choices):
        tried.append("(" + ", ".join(t.full_name for t in types) + ")")
        special = function.specialize_with_arg_types([t.type_reflection for t in types])
        if special is None:
            continue
        attempt = _bind_all(target, special, placed, result, options, dict(zip(names, types, strict=False)), generic)
        attempt.size_dependent |= context.size_dependent
        if attempt.resolved is not None:
            signature = tuple(p.type_name + str(p.binding.dims) for p in attempt.resolved.parameters)
            if signature in seen:
                continue
            seen.add(signature)
        attempts.append(attempt)
    if not attempts:
        attempts.append(
            _Attempt(
                reason=f"could not match the function signature; types tried: {', '.join(tried[:8])}",
                size_dependent=context.size_dependent,
            )
        )
    return attempts


def _open_hint(value: Value, type_: SlangType) -> str:
    if value.kind == "dict" and not value.details.get("_type"):
        return ": give the dict a _type"
    if value.kind in ("tensor", "array"):
        return ": its sizes cannot be told from the element type; name the type with .map()"
    return ""


def mapped_type(entry: Any) -> str:
    """Name of the type that a map entry states; empty when it states none."""
    if entry is None or entry[0] == "dims":
        return ""
    if entry[0] == "type":
        return entry[1]
    inner = dict(entry[1]).get("$type")
    return inner[1] if inner is not None else ""


def unknown_map_type(type_name: str, parameter: str, context: Context) -> BoundVariableException:
    close = close_names(type_name, context)
    hint = f"; did you mean {', '.join(close)}?" if close else ""
    return BoundVariableException(
        f"Explicit vectorization raised exception: unknown type name '{type_name}' for parameter {parameter}{hint}"
    )


def _concrete_choices(
    value: Value, type_: SlangType, entry: Any, context: Context, name: str, generic: Any = None
) -> list[SlangType]:
    wanted = mapped_type(entry)
    if wanted:
        found = context.find(wanted)
        if found is None:
            raise unknown_map_type(wanted, name, context)
        return [found]
    if not _mentions_generic(type_):
        return [type_]
    if entry is not None and entry[0] == "dims" and value.kind == "custom":
        left = reduced(value, len(entry[1]), context)
        return [left] if left is not None else []
    return candidates(value, _tensor_constraint(type_, generic) or type_.type_reflection, context)


def _tensor_constraint(type_: SlangType, generic: Any) -> Any:
    """The tensor interface that a type parameter asks for: its arguments bind as if the parameter named it."""
    if generic is None or type_.full_name not in generic.type_parameters:
        return None
    found = generic.constraints(type_.full_name)
    return next((c for c in found if TENSOR_NAME.match(c.full_name.partition("<")[0])), None)


def _mentions_generic(type_: SlangType) -> bool:
    reflection = type_.type_reflection
    kind = reflection.kind.name.rstrip("_")
    if kind in ("generic_type_parameter", "interface", "none"):
        return True
    if kind in ("vector", "matrix", "array"):
        count_known = reflection.element_count > 0 if kind != "matrix" else reflection.row_count > 0
        element = reflection.element_type
        if not count_known or element is None:
            return True
        return _mentions_generic(SlangType(element.full_name, source=type_.program, reflection=element))
    if kind in ("struct", "resource") and "<" in type_.full_name:
        return type_.program.find_reflection(type_.full_name) is None
    return bool(reflection.is_generic)


def _map_entry(options: Options, name: str, argument: Argument | None) -> Any:
    by_name = dict(options.map_kwargs)
    if name in by_name:
        return by_name[name]
    if argument is not None and argument.name is None and argument.position < len(options.map_args):
        return options.map_args[argument.position]
    return None


def _bind_all(
    target: Target,
    function: Any,
    placed: dict[str, Argument],
    result: Argument | None,
    options: Options,
    types: dict[str, SlangType] | None = None,
    generic: frozenset[str] = frozenset(),
) -> _Attempt:
    attempt = _Attempt()
    parameters: list[Parameter] = []
    known = _parameters(target, function)
    last = max((i for i, (name, *_) in enumerate(known) if name in placed), default=-1)
    for index, (name, type_, io, no_diff, _) in enumerate(known):
        argument = placed.get(name)
        if argument is None:
            if index < last:
                literal = _default_literal(target, function, name, type_)
                if not literal:
                    attempt.reason = (
                        f"Parameter '{name}' not specified, and its default value cannot be read because a later "
                        "argument is given: pass it"
                    )
                    return attempt
                bound = Binding("literal", None, type_.full_name, type_, stored=literal)
                parameters.append(Parameter(name, type_, type_.full_name, io, True, bound, None))
            continue  # left to Slang's default value
        if types and name in types and _mentions_generic(type_):
            type_ = types[name]
        context = target.context(options)
        entry = _map_entry(options, name, argument)
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


def _attempt_bind(
    attempt: _Attempt, value: Value, type_: SlangType, io: str, entry: Any, context: Context, name: str, index: int
) -> Binding | None:
    """The binding, or None with the reason in `attempt`."""
    where = f"Argument {index} could not be resolved" if name != "_result" else "_result could not be resolved"
    try:
        return _bind_one(value, type_, io, entry, context, name)
    except _MapMismatch as error:
        attempt.map_error = attempt.reason = str(error)
    except RankTooSmall as error:
        attempt.rank_error = attempt.reason = f"{where}: {name}: {error}"
        attempt.type_name = type_.full_name
    except NoMatch as error:
        attempt.reason = f"{where}: {name}: {error}"
    return None


class _MapMismatch(NoMatch):
    """A binding that `map` does not describe; another candidate type may."""


def _default_literal(target: Target, function: Any, name: str, type_: SlangType) -> str:
    """Slang text of a literal default value; empty when reflection does not tell it."""
    parameter = next((p for p in function.parameters if p.name == name), None)
    if parameter is None or not parameter.has_default:
        return ""
    if parameter.default_int is not None and type_.scalar:
        return f"{type_.full_name}({parameter.default_int}ll)"
    if parameter.default_float is not None and type_.scalar:
        return f"{type_.full_name}({float(parameter.default_float)!r})"
    is_field = isinstance(function, MemberWise)
    return f"{type_.full_name}(0)" if is_field and type_.kind in ("scalar", "vector", "matrix") else ""


class MemberWise:
    """The constructor that Slang gives structs without `__init`: one parameter per field, all with defaults."""

    generic = None
    is_overloaded = False
    return_type = None

    def __init__(self, parameters: list[Any]) -> None:
        self.overloads: list[Any] = []
        self.name = "__init"
        self.parameters = parameters

    def has_modifier(self, modifier: Any) -> bool:
        del modifier
        return False


def _bind_one(value: Value, type_: SlangType, io: str, entry: Any, context: Context, name: str) -> Binding:
    wanted = mapped_type(entry)
    if type_.kind == "interface":
        type_ = _behind_interface(value, type_, context, wanted, name)
    writes = io != "in"
    context.writable = writes and is_writable(value)
    context.reads = io != "out"
    if wanted and wanted != type_.full_name:
        found = context.find(wanted)
        if found is None:
            raise unknown_map_type(wanted, name, context)
        if found.full_name != type_.full_name:
            raise NoMatch(f"the mapped type '{wanted}' ({found.full_name}) does not match slang type {type_.full_name}")
    binding = bind(value, type_, context)
    if entry is not None:
        _check_map(binding, entry, name)
    return binding


def _behind_interface(value: Value, type_: SlangType, context: Context, wanted: str, name: str) -> SlangType:
    """The concrete type that a value has behind an interface parameter."""
    found = candidates(value, type_.type_reflection, context)
    if wanted:
        stated = context.find(wanted)
        if stated is None:
            raise unknown_map_type(wanted, name, context)
        found = [stated]
    if not found:
        hint = ": give the dict a _type" if value.kind == "dict" else ""
        raise NoMatch(f"{value.describe()} does not match slang type {type_.full_name}{hint}")
    fitting = [t for t in found if context.layout.native.is_sub_type(t.type_reflection, type_.type_reflection)]
    if not fitting:
        names = ", ".join(t.full_name for t in found)
        raise NoMatch(f"{value.describe()} does not match slang type {type_.full_name}: {names} does not conform to it")
    return fitting[0]


def _check_map(binding: Binding, entry: Any, name: str) -> None:
    kind, content = entry[0], entry[1]
    prefix = "Explicit vectorization raised exception: "
    if kind == "dict":
        if binding.kind != "struct":
            raise _MapMismatch(f"{prefix}parameter {name} is mapped by fields, but it is no struct")
        children = dict(binding.fields)
        for field, inner in content:
            if field == "$type":
                continue
            if field not in children:
                raise BoundVariableException(
                    f"{prefix}parameter {name} maps field '{field}', but the value has {sorted(children) or 'no fields'}"
                )
            if inner is not None:
                _check_map(children[field], inner, f"{name}.{field}")
        return
    if kind != "dims":
        return
    if any(index < 0 for index in content):
        raise BoundVariableException(f"{prefix}parameter {name} maps to a negative call dimension: {content}")
    if any(index >= MAX_CALL_DIMS for index in content):
        raise BoundVariableException(f"{prefix}parameter {name} maps to call dimension {max(content)}; calls have 16")
    if binding.kind == "struct":
        raise BoundVariableException(f"{prefix}parameter {name} is a struct: map its fields with a dict")
    if len(content) != binding.dims:
        value = binding.value
        text = value.describe() if value is not None else name
        raise _MapMismatch(
            f"{prefix}parameter {name} maps {len(content)} dimensions {content}, but {text} bound to "
            f"{binding.type_name} has {binding.dims} to map"
        )


def _finish(
    target: Target,
    function: Any,
    parameters: list[Parameter],
    result: Argument | None,
    options: Options,
    attempt: _Attempt,
) -> _Attempt:
    from .. import _slang

    m = _slang.ModifierID
    if target.is_constructor:
        return_type: SlangType | None = target.struct
    else:
        return_type = target.layout.wrap(function.return_type)
    return_name = return_type.full_name if return_type is not None else "void"
    if result is not None:
        if return_name == "void":
            attempt.reason = f"'{target.name}' returns nothing, but _result was given"
            return attempt
        assert return_type is not None
        if not is_writable(result.value):
            attempt.reason = (
                f"_result could not be resolved: {result.value.describe()} cannot hold a result; pass a Tensor, an array, "
                "a ValueRef or a dict of such"
            )
            return attempt
        context = target.context(options, writable=not options.bwds)
        entry = dict(options.map_kwargs).get("_result")
        bound = _attempt_bind(attempt, result.value, return_type, "out", entry, context, "_result", -1)
        attempt.size_dependent |= context.size_dependent
        if bound is None:
            return attempt
        parameters.append(Parameter("_result", return_type, return_name, "return", False, bound, result))
    static = target.struct is not None and function.has_modifier(m.static)
    kind = (
        "constructor"
        if target.is_constructor
        else "static"
        if static
        else "method"
        if target.struct is not None
        else "function"
    )
    attempt.resolved = Resolved(
        function,
        target.name,
        tuple(parameters),
        return_type,
        return_name,
        kind,
        target.struct.full_name if target.struct is not None else "",
        function.has_modifier(m.differentiable),
    )
    attempt.dims = tuple(leaf.dims for p in parameters for leaf in p.binding.leaves())
    return attempt


# --- choice ------------------------------------------------------------------------------------------------------


def _check_arrays(target: Target, attempts: list[tuple[Any, list[_Attempt]]], found: list[Any]) -> None:
    """A generic array that a value could fill in two ways stays ambiguous, whatever the value's rank."""
    for overload, tries in attempts:
        fitting = [a for a in tries if a.resolved is not None]
        close = [a for a in tries if a.rank_error and a.type_name.endswith("]")]
        arrays = any(p.type.kind.name.rstrip("_") == "array" for p in overload.parameters)
        if fitting and close and arrays and len(found) == len(fitting):
            raise _ambiguous(fitting, [a.type_name for a in close])


def _best(found: list[tuple[Any, _Attempt]]) -> _Attempt:
    if len(found) == 1:
        return found[0][1]
    by_overload: dict[int, list[_Attempt]] = {}
    for overload, attempt in found:
        by_overload.setdefault(id(overload), []).append(attempt)
    for attempts in by_overload.values():
        if len({a.dims for a in attempts}) > 1:
            raise _ambiguous([a for _, a in found])
    scored = [(_costs(attempt), attempt) for _, attempt in found]
    for cost, attempt in scored:
        others = [other for c, other in scored if other is not attempt for other in [c]]
        if all(all(a <= b for a, b in zip(cost, other, strict=False)) and cost != other for other in others):
            return attempt
    raise _ambiguous([a for _, a in found])


def _costs(attempt: _Attempt) -> tuple[int, ...]:
    assert attempt.resolved is not None
    costs: list[int] = []
    for parameter in attempt.resolved.parameters:
        spread = max((leaf.dims for leaf in parameter.binding.leaves()), default=0)
        costs.append((parameter.binding.cost[0] * 64 + spread) * 4 + parameter.generality)
    by_value = any(parameter.generality == 1 for parameter in attempt.resolved.parameters)
    costs.append(1 if attempt.resolved.function.generic is not None and not by_value else 0)
    return tuple(costs)


def _by_position(found: list[tuple[Any, _Attempt]]) -> list[tuple[Any, _Attempt]]:
    """Without the bindings whose call_id has more or fewer components than the call has dimensions."""
    if len(found) == 1:
        return found
    exact = []
    for overload, attempt in found:
        assert attempt.resolved is not None
        leaves = [leaf for p in attempt.resolved.parameters for leaf in p.binding.leaves()]
        rank = max((leaf.dims for leaf in leaves), default=0)
        positions = [
            leaf for leaf in leaves if leaf.value is not None and leaf.value.details.get("generator") == "call_id"
        ]
        if all(
            (leaf.type.shape or (max(rank, 1),))[0] == rank or (not leaf.type.shape and rank <= 1) for leaf in positions
        ):
            exact.append((overload, attempt))
    return exact or found


def _by_sizes(found: list[tuple[Any, _Attempt]]) -> tuple[list[tuple[Any, _Attempt]], bool]:
    """Without the overloads whose trailing sizes a value does not have, where overloads demand different ones."""
    if len({id(overload) for overload, _ in found}) < 2:
        return found, False
    demands = []
    for _, attempt in found:
        assert attempt.resolved is not None
        leaves = [leaf for p in attempt.resolved.parameters for leaf in p.binding.leaves()]
        demands.append([leaf for leaf in leaves if leaf.kind in ("view", "packed") and leaf.value is not None])
    if len({tuple(leaf.inner for leaf in leaves) for leaves in demands}) < 2:
        return found, False
    fitting = {
        id(overload)
        for (overload, _), leaves in zip(found, demands, strict=True)
        if all(_has_sizes(leaf) for leaf in leaves)
    }
    return [item for item in found if id(item[0]) in fitting] or found, True


def _has_sizes(leaf: Binding) -> bool:
    assert leaf.value is not None
    shape = components_shape(leaf.value)
    trailing = shape[len(shape) - len(leaf.inner) :]
    return all(want in (-1, got) for got, want in zip(trailing, leaf.inner, strict=False))


def _ambiguous(attempts: list[_Attempt], others: list[str] | None = None) -> ResolveException:
    lines = [signature(a.resolved) for a in attempts if a.resolved is not None] + (others or [])
    return ResolveException(
        "Ambiguous call: more than one candidate fits:\n  "
        + "\n  ".join(dict.fromkeys(lines))
        + "\nsay which by .map(), for instance .map((0,)) for elements or .map(()) for the whole value"
    )


def signature(resolved: Resolved) -> str:
    inner = ", ".join(f"{p.io} {p.type_name} {p.name}" for p in resolved.parameters if p.io != "return")
    return f"{resolved.return_type_name} {resolved.call_name}({inner})"


def _failure(attempts: list[tuple[Any, list[_Attempt]]]) -> Exception:
    all_tries = [a for _, tries in attempts for a in tries]
    if len(all_tries) == 1:
        attempt = all_tries[0]
        if attempt.map_error:
            return BoundVariableException(attempt.map_error)
        return ShapeError(attempt.rank_error) if attempt.rank_error else ResolveException(attempt.reason)
    if all_tries and all(a.map_error for a in all_tries):
        return BoundVariableException(all_tries[0].map_error)
    if all_tries and all(a.rank_error for a in all_tries):
        return ShapeError(all_tries[0].rank_error)
    lines = []
    for overload, tries in attempts:
        names = ", ".join(f"{p.type.full_name} {p.name}" for p in overload.parameters)
        for attempt in tries:
            lines.append(f"{overload.name}({names}): {attempt.reason}")
    return ResolveException("could not match the function signature of any overload:\n  " + "\n  ".join(lines))


def with_position(arguments: list[Argument]) -> tuple[Argument, ...]:
    return tuple(replace(argument, position=i) for i, argument in enumerate(arguments))
