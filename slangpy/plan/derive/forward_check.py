"""Functions with a custom backward derivative only. Slang refuses `fwd_diff` of such a function itself, but where
another function calls it, Slang 2026.12 silently takes its value and its tangent for zero. So the sources are asked.
Which overload a call means they do not show: a name is refused where any overload lacks a forward derivative.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...compiler.modules.facts import known_facts_of
from ...compiler.modules.sources import texts_of
from ...errors import ResolveException

if TYPE_CHECKING:
    from ..._slang import FunctionFacts

_DIFFERENTIABLE = {"Differentiable", "ForwardDifferentiable", "BackwardDifferentiable"}
_MODIFIERS = {"in", "out", "inout", "const", "uniform", "no_diff", "borrow"}

Overload = tuple[str, tuple[str, ...]]
"""A function by name and by the types of its parameters, as they are written."""


@dataclass(frozen=True)
class Survey:
    """What sources say of the derivatives of their functions."""

    lacking: frozenset[Overload]
    """Functions with a custom backward derivative and no forward one."""
    derived: frozenset[str]
    """Functions that Slang differentiates itself, through everything that they call."""
    given: frozenset[Overload]
    """Functions with a forward derivative."""
    custom: frozenset[str]
    """Functions with a custom derivative of any kind."""
    calls: dict[str, list[tuple[tuple[str, ...], list[str]]]]
    """The parameter types and the callees of each function of a name that has a body."""


def check_forward(module: Any, name: str, types: tuple[str, ...]) -> None:
    """ResolveException when a function is, or calls, one that has a custom backward derivative only. types: of its
    parameters."""
    survey = survey_of(module)
    if not survey.lacking:
        return
    called = (name.partition("<")[0], tuple(_bare(type_) for type_ in types))
    lacking = {function for function, _ in survey.lacking}
    name = called[0]
    is_lacking = called in survey.lacking or (name in lacking and not any(name == given for given, _ in survey.given))
    culprit = name if is_lacking else _lacking_callee(called, survey, lacking)
    if culprit:
        through = "" if culprit == name else f" (called by '{name}')"
        raise ResolveException(
            f"Could not call fwds of '{name}': '{culprit}'{through} has a custom backward derivative only; give it a "
            "forward one with [ForwardDerivative(function)], or add [Differentiable], which lets Slang derive it"
        )


def custom_derivative(module: Any, name: str) -> str:
    """The first function with a custom derivative that function `name` is or calls, directly or not; empty: none."""
    survey = survey_of(module)
    return _reach(name.partition("<")[0], survey, survey.custom) if survey.custom else ""


def hides_derivatives(module: Any) -> bool:
    """Whether some of the sources are not at hand."""
    return None in texts_of(module._compiled)


def survey_of(module: Any) -> Survey:
    """What the sources of a module that are at hand say of its functions; kept with its code."""
    loaded = module._compiled
    known: Survey | None = getattr(loaded, "_survey", None)
    if known is None:
        known = loaded._survey = _survey(known_facts_of(loaded).functions)
    return known


def _survey(functions: Iterable[FunctionFacts]) -> Survey:
    derived: set[str] = set()
    custom: set[str] = set()
    lacking: set[Overload] = set()
    given: set[Overload] = set()
    calls: dict[str, list[tuple[tuple[str, ...], list[str]]]] = {}
    for facts in functions:
        overload = (facts.name, _types(facts))
        own = {attribute for attribute, _ in facts.derivatives} & {"ForwardDerivative", "BackwardDerivative"}
        if own:
            custom.add(facts.name)
        is_derived = not _DIFFERENTIABLE.isdisjoint(facts.attributes)
        if "ForwardDerivative" in own or is_derived:
            given.add(overload)
        elif own:
            lacking.add(overload)
        if is_derived and "ForwardDerivative" not in own:
            derived.add(facts.name)
        if facts.has_body:
            calls.setdefault(facts.name, []).append((overload[1], facts.calls))
    for facts in functions:  # once all functions are known
        for attribute, name in facts.derivatives:
            if attribute in ("ForwardDerivativeOf", "BackwardDerivativeOf"):
                name = last_of(name)
                custom.add(name)
                (given if attribute.startswith("Forward") else lacking).update(_meant(name, _types(facts), calls))
    return Survey(frozenset(lacking - given), frozenset(derived), frozenset(given), frozenset(custom), calls)


def _meant(name: str, pairs: tuple[str, ...], calls: dict[str, list[tuple[tuple[str, ...], list[str]]]]) -> set[Overload]:
    """The overloads that a derivative with such parameters names: it begins with theirs, as pairs."""
    known = [types for types, _ in calls.get(name, ())]
    meant = [types for types in known if types == pairs[: len(types)]] if len(known) > 1 else known
    return {(name, types) for types in meant or [pairs]}


def last_of(name: str) -> str:
    """`f` of `space::S.f<int>`."""
    return name.partition("<")[0].replace(".", ":").rpartition(":")[2].strip()


def _types(facts: FunctionFacts) -> tuple[str, ...]:
    return tuple(_bare(parameter.type) for parameter in facts.parameters)


def _bare(type_: str) -> str:
    """A type without modifiers and spaces; of a pair, the type that it is of."""
    bare = "".join(word for word in type_.split() if word not in _MODIFIERS)
    pair = "DifferentialPair<"
    return bare[len(pair) : -1] if bare.startswith(pair) and bare.endswith(">") else bare


def _lacking_callee(called: Overload, survey: Survey, lacking: set[str]) -> str:
    """The first name that a function calls, directly or not, of which an overload lacks a forward derivative; empty: none."""
    name, types = called
    if name not in survey.derived:
        return ""
    known = survey.calls.get(name, ())
    bodies = [calls for own, calls in known if own == types] or [calls for _, calls in known]
    for callee in sorted({callee for calls in bodies for callee in calls} & (lacking | survey.derived)):
        found = callee if callee in lacking else _reach(callee, survey, lacking)
        if found:
            return found
    return ""


def _reach(name: str, survey: Survey, wanted: Set[str]) -> str:
    """The first of the `wanted` functions that `name` is or calls, directly or not; empty: none.

    Calls in `no_diff` count: Slang gives zero for those too where a function has no forward derivative.
    """
    return next((found for found in reached(name, survey, wanted) if found in wanted), "")


def reached(name: str, survey: Survey, also: Set[str] = frozenset()) -> Iterator[str]:
    """A function, and those that it calls, directly or not, which Slang differentiates itself or which are in `also`."""
    seen: set[str] = set()
    waiting = [name]
    while waiting:
        current = waiting.pop()
        if current in seen:
            continue
        seen.add(current)
        yield current
        if current in survey.derived:
            called = {callee for _, calls in survey.calls.get(current, ()) for callee in calls}
            waiting += sorted(called & (also | survey.derived))


__all__ = ["Survey", "check_forward", "custom_derivative", "hides_derivatives", "last_of", "reached", "survey_of"]
