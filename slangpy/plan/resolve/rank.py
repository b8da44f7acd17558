"""Which of the tries that fit a call means, and the error where none or several do."""

from __future__ import annotations

from collections import Counter
from typing import Any

from ...errors import BoundVariableException, KernelGenException, ResolveException, ShapeError
from ..bind.temporary import components_shape
from ..declared import generic_parameters, own_functions
from ..records import Binding, Resolved
from .bind import Attempt
from .target import Target


def check_arrays(target: Target, attempts: list[tuple[Any, list[Attempt]]], found: list[Any]) -> None:
    """A generic array that a value could fill in two ways stays ambiguous, whatever the value's rank."""
    for overload, tries in attempts:
        fitting = [a for a in tries if a.resolved is not None]
        close = [a for a in tries if a.rank_error and a.type_name.endswith("]")]
        arrays = any(p.type.kind.name.rstrip("_") == "array" for p in overload.parameters)
        if fitting and close and arrays and len(found) == len(fitting):
            raise _ambiguous(fitting, [a.type_name for a in close])


def by_position(found: list[tuple[Any, Attempt]]) -> list[tuple[Any, Attempt]]:
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


def by_sizes(found: list[tuple[Any, Attempt]]) -> tuple[list[tuple[Any, Attempt]], bool]:
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


def by_slang(target: Target, found: list[tuple[Any, Attempt]]) -> list[tuple[Any, Attempt]]:
    """One for all overloads that are the same call with the same types, where Slang's own rule picks one of those.

    The kernel calls by name: `max` for floating-point numbers and `max` for all that compares are one call of floats.
    Kept is that of an overload which takes the values in one way only, where there is one."""
    ways = Counter(id(overload) for overload, _ in found)
    groups: dict[Any, list[tuple[Any, Attempt]]] = {}
    for overload, attempt in found:
        resolved = attempt.resolved
        assert resolved is not None
        types = tuple((p.name, p.type_name, p.io, p.no_diff) for p in resolved.parameters)
        key = types, attempt.dims, resolved.return_type_name, resolved.kind
        groups.setdefault(key, []).append((overload, attempt))
    kept: list[tuple[Any, Attempt]] = []
    for group in groups.values():
        one = len(group) == 1 or _decided(target, group)
        kept += [min(group, key=lambda item: ways[id(item[0])])] if one else group
    return kept


def _decided(target: Target, group: list[tuple[Any, Attempt]]) -> bool:
    resolved = group[0][1].resolved
    assert resolved is not None
    if target.is_constructor:  # of those that are equal but for being generic, Slang takes the one that is not
        functions = [attempt.resolved.function for _, attempt in group if attempt.resolved is not None]
        return sum(function.generic is None for function in functions) == 1
    types = [p.type.type_reflection for p in resolved.parameters if p.io != "return" and not p.is_this]
    return target.reflection.is_overloaded and target.reflection.specialize_with_arg_types(types) is not None


def best_of(target: Target, found: list[tuple[Any, Attempt]]) -> Attempt:
    try:
        return _best_of(found)
    except ResolveException:  # who names a function like one of Slang's own means the one that is the module's
        own = [function for function in own_functions(target) if function is not None]
        kept = [(overload, attempt) for overload, attempt in found if overload in own]
        if not kept or len(kept) == len(found):
            raise
        return _best_of(kept)


def _best_of(found: list[tuple[Any, Attempt]]) -> Attempt:
    if len(found) == 1:
        return found[0][1]
    by_overload: dict[int, list[Attempt]] = {}
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


def _costs(attempt: Attempt) -> tuple[int, ...]:
    assert attempt.resolved is not None
    costs: list[int] = []
    for parameter in attempt.resolved.parameters:
        spread = max((leaf.dims for leaf in parameter.binding.leaves()), default=0)
        costs.append((parameter.binding.cost[0] * 64 + spread) * 4 + parameter.generality)
    by_value = any(parameter.generality == 1 for parameter in attempt.resolved.parameters)
    costs.append(1 if attempt.resolved.function.generic is not None and not by_value else 0)
    return tuple(costs)


def _ambiguous(attempts: list[Attempt], others: list[str] | None = None) -> ResolveException:
    lines = [signature(a.resolved) for a in attempts if a.resolved is not None] + (others or [])
    return ResolveException(
        "Ambiguous call: more than one candidate fits:\n  "
        + "\n  ".join(dict.fromkeys(lines))
        + "\nsay which by .map(), for instance .map((0,)) for elements or .map(()) for the whole value"
    )


def signature(resolved: Resolved) -> str:
    shown = [f"{p.io} {p.type_name} {p.name}" for p in resolved.parameters if p.io != "return"]
    given = {p.name for p in resolved.parameters}
    shown += [f"{p.type.full_name} {p.name} = ..." for p in resolved.function.parameters if p.name not in given]
    return f"{resolved.return_type_name} {_shown(resolved.call_name)}({', '.join(shown)})"


def _shown(name: str) -> str:
    """A constructor as the source names it."""
    return "__init" if name == "$init" else name


def misfit(attempts: list[tuple[Any, list[Attempt]]]) -> KernelGenException | None:
    """The error of values whose fields or components are not those of the parameter, in every overload that has parameters
    for them."""
    placed = [(overload, tries) for overload, tries in attempts if not tries[0].is_misplaced]
    if len(placed) == 1:
        return next((KernelGenException(a.content_error) for a in placed[0][1] if a.content_error), None)
    if placed and all(a.content_error for _, tries in placed for a in tries):
        return KernelGenException(_reasons(placed))
    return None


def failure(attempts: list[tuple[Any, list[Attempt]]]) -> Exception:
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
    return ResolveException(_reasons(attempts))


def _reasons(attempts: list[tuple[Any, list[Attempt]]]) -> str:
    """Each overload, and why it was not taken."""
    lines = []
    for overload, tries in attempts:
        names = ", ".join(f"{p.type.full_name} {p.name}" for p in overload.parameters)
        for attempt in tries:
            lines.append(f"{_shown(overload.name)}{generic_parameters(overload.generic)}({names}): {attempt.reason}")
    return "could not match the function signature of any overload:\n  " + "\n  ".join(lines)
