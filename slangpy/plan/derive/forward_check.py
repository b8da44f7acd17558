"""Functions with a custom backward derivative only. Slang refuses `fwd_diff` of such a function itself, but where
another function calls it, Slang 2026.12 silently takes its value and its tangent for zero. So the sources are searched.
Which overload a call means they do not show: a name is refused where any overload lacks a forward derivative.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Set
from dataclasses import dataclass, field
from typing import Any

from ...base import libslang
from ...compiler.modules.sources import texts_of
from ...errors import ResolveException

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:[^\"\\\n]|\\.)*\"", re.S)
_ATTRIBUTES = re.compile(r"((?:\[[^\[\]{};]*\]\s*)+)([^;{}()=]*?)(\w+)\s*(?:<[^;{}()]*>)?\s*\(")
_DERIVATIVE_OF = re.compile(r"\[\s*(Backward|Forward)DerivativeOf\(\s*([\w.:]+)")
_MACRO = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)\(([\w\s,]*)\)((?:\\\n|[^\n])*)", re.M)
_CALL = re.compile(r"(\w+)\s*(?:<[^;{}()]*>)?\s*\(")
_PAIR = re.compile(r"^DifferentialPair<(.*)>$")

Overload = tuple[str, tuple[str, ...]]
"""A function by name and by the types of its parameters, as they are written."""


@dataclass
class Survey:
    lacking: set[Overload] = field(default_factory=set)
    """Functions with a custom backward derivative and no forward one."""
    derived: set[str] = field(default_factory=set)
    """Functions that Slang differentiates itself, through everything that they call."""
    given: set[Overload] = field(default_factory=set)
    """Functions with a forward derivative."""
    custom: set[str] = field(default_factory=set)
    """Functions with a custom derivative of any kind."""
    definitions: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    """Parameters and body of each function of a name."""
    indexing: dict[str, set[int]] = field(default_factory=dict)
    """Macros that read elements of their parameters, `#define AT(v, i) v[i]`: the places of these parameters."""

    def body(self, name: str) -> str:
        return "".join(body for _, body in self.definitions.get(name, ()))


def check_forward(module: Any, name: str, types: tuple[str, ...]) -> None:
    """ResolveException when a function is, or calls, one that has a custom backward derivative only. types: of its
    parameters."""
    survey = survey_of(module)
    if not survey.lacking:
        return
    called = (name.split("<")[0], tuple(_bare(type_) for type_ in types))
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
    return _reach(name.split("<")[0], survey, survey.custom) if survey.custom else ""


def hides_derivatives(module: Any) -> bool:
    """Whether some of the sources are not at hand."""
    return None in texts_of(module._compiled)


def survey_of(module: Any) -> Survey:
    """What the sources of a module say of its functions; kept with its code."""
    loaded = module._compiled
    known = getattr(loaded, "_forward_survey", None)
    if known is None:
        known = Survey()
        rules = ["elements-that-meet"]  # what it changes needs no warning
        texts = [_COMMENT.sub(" ", libslang.rewrite_alone(text, rules)) for text in filter(None, texts_of(loaded))]
        for text in texts:
            _scan(text, known)
        for text in texts:  # once all functions are known
            _scan_derivatives_of(text, known)
        known.lacking -= known.given
        loaded._forward_survey = known
    return known


def _scan(text: str, survey: Survey) -> None:
    for name, parameters, body in _MACRO.findall(text):
        places = {at for at, word in enumerate(parameters.split(",")) if re.search(rf"(?<![\w.]){word.strip() or ' '}\s*\)?\s*\[", body)}
        if places:
            survey.indexing[name] = places
    for match in _ATTRIBUTES.finditer(text):
        attributes, name = match.group(1), match.group(3)
        overload = (name, _types_at(text, match.end() - 1))
        if re.search(r"\b(?:Forward|Backward)Derivative\(", attributes):
            survey.custom.add(name)
        if re.search(r"\bForwardDerivative\(", attributes):
            survey.given.add(overload)
        elif re.search(r"\[\s*(?:Forward|Backward)?Differentiable\s*\]", attributes):
            survey.given.add(overload)
            survey.derived.add(name)
        elif re.search(r"\bBackwardDerivative\(", attributes):
            survey.lacking.add(overload)
    for match in _CALL.finditer(text):
        name, opening = match.group(1), _body_at(text, match.end() - 1)
        if opening >= 0:
            parameters = text[match.end() : closing(text, match.end() - 1, "(", ")") - 1]
            body = text[opening : closing(text, opening, "{", "}")]
            survey.definitions.setdefault(name, []).append((parameters, body))


def _scan_derivatives_of(text: str, survey: Survey) -> None:
    """Derivatives that name their function: [BackwardDerivativeOf(f)]. They begin with its parameters, as pairs."""
    for match in _DERIVATIVE_OF.finditer(text):
        direction, name = match.group(1), re.split(r"[.:]", match.group(2))[-1]
        survey.custom.add(name)
        head = _CALL.search(text, text.find("]", match.end()))
        if head is None:
            continue
        pairs = _types_at(text, head.end() - 1)
        known = [tuple(_types(parameters)) for parameters, _ in survey.definitions.get(name, ())]
        meant = [types for types in known if types == pairs[: len(types)]] if len(known) > 1 else known
        found = {(name, types) for types in meant or [pairs]}
        if direction == "Backward":
            survey.lacking |= found
        else:
            survey.given |= found


def _types_at(text: str, parenthesis: int) -> tuple[str, ...]:
    """The types of the parameters that begin at a parenthesis."""
    return tuple(_types(text[parenthesis + 1 : closing(text, parenthesis, "(", ")") - 1]))


def _types(parameters: str) -> Iterator[str]:
    depth, start = 0, 0
    for at, letter in enumerate(parameters + ","):
        depth += (letter in "<([{") - (letter in ">)]}")
        if letter == "," and depth == 0:
            declared = re.sub(r"=.*", "", parameters[start:at], flags=re.S)
            start = at + 1
            found = re.match(r"(.*?)\s*\b\w+\s*((?:\[[^\]]*\]\s*)*)$", declared.strip(), re.S)
            if found:
                yield _bare(found.group(1) + found.group(2))


def _bare(type_: str) -> str:
    """A type without modifiers and spaces; of a pair, the type that it is of."""
    words = re.sub(r"\b(?:in|out|inout|const|uniform|no_diff|borrow)\b", " ", type_)
    bare = re.sub(r"\s+", "", words)
    found = _PAIR.match(bare)
    return found.group(1) if found else bare


def closing(text: str, at: int, opens: str, closes: str) -> int:
    depth = 0
    for position in range(at, len(text)):
        depth += (text[position] == opens) - (text[position] == closes)
        if depth == 0:
            return position + 1
    return len(text)


def _body_at(text: str, parenthesis: int) -> int:
    """Where the body of a definition opens whose parameters do so at `parenthesis`; -1: it is a call or declaration."""
    after = closing(text, parenthesis, "(", ")")
    found = re.compile(r"\s*(?:->[^;{}()]*|where[^;{}()]*|:\s*\w+)?\s*\{").match(text, after)
    return found.end() - 1 if found else -1


def _lacking_callee(called: Overload, survey: Survey, lacking: set[str]) -> str:
    """The first name that a function calls, directly or not, of which an overload lacks a forward derivative; empty: none."""
    name, types = called
    if name not in survey.derived:
        return ""
    known = survey.definitions.get(name, ())
    bodies = [body for parameters, body in known if tuple(_types(parameters)) == types] or [body for _, body in known]
    for callee in sorted(set(_CALL.findall("".join(bodies))) & (lacking | survey.derived)):
        found = callee if callee in lacking else _reach(callee, survey, lacking)
        if found:
            return found
    return ""


def _reach(name: str, survey: Survey, wanted: set[str]) -> str:
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
            called = set(_CALL.findall(survey.body(current)))
            waiting += sorted(called & (also | survey.derived))


__all__ = ["Survey", "check_forward", "closing", "custom_derivative", "hides_derivatives", "reached", "survey_of"]
