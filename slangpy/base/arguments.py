"""What was wrong with the arguments of a native function, told from the signatures that the binding layer lists."""

from __future__ import annotations

import difflib
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_SIGNATURE = re.compile(r"^    \d+\. (.*)$", re.MULTILINE)
_SHOWN = 100
"""Characters of a value, at most."""
_CLOSING = {"(": ")", "[": "]", "{": "}"}


@dataclass(frozen=True)
class _Parameter:
    """One of a signature. star: `*args` or `**kwargs`."""

    name: str
    annotation: str
    has_default: bool
    star: str


@dataclass(frozen=True)
class _Problem:
    """place: of the parameter, so that the signature that came furthest is told; whole: without a name of the function."""

    place: int
    text: str


def explain_arguments(name: str, message: str, given: Sequence[Any], keys: Sequence[str]) -> str:
    """A message that names the argument. name: the function's, of a setter the property's (after a point); message: of the
    binding layer; given: all values but `self`, of which the last have the names `keys`."""
    signatures = [_parameters(text) for text in _SIGNATURE.findall(message)]
    positional, named = list(given[: len(given) - len(keys)]), dict(zip(keys, given[len(given) - len(keys) :], strict=True))
    owner, _, function = name.rpartition(".")
    said = owner.rpartition(".")[2] if function == "__init__" else name if function.startswith("__") else function
    if message.startswith("():") or not signatures:  # a setter
        return f"{name}: {_expected(signatures[0][-1].annotation if signatures else 'object', given[-1] if given else None)}"
    problems = [_problem(said, parameters, positional, named) for parameters in signatures]
    worst = max(problems, key=lambda problem: problem.place)
    if len(signatures) == 1:
        return worst.text
    forms = "; ".join(f"{said}({_shown_parameters(parameters)})" for parameters in signatures)
    return f"{worst.text}; it takes {forms}"


def _parameters(signature: str) -> list[_Parameter]:
    """Of `name(self, a: int, b: object = None) -> None`, without `self` and the marks `*` and `/`."""
    begin = signature.index("(") + 1
    end = next(at for at, depth in _depths(signature) if at >= begin and depth == 0)
    found: list[_Parameter] = []
    for part in _split(signature[begin:end], ","):
        part = part.strip()
        if not part or part in ("*", "/", "self"):
            continue
        star = part[: len(part) - len(part.lstrip("*"))]
        left, _, default = _cut(part[len(star) :], "=")
        name, _, annotation = left.partition(":")
        found.append(_Parameter(name.strip(), annotation.strip() or "object", bool(default) or bool(star), star))
    return found


def _depths(text: str) -> Iterator[tuple[int, int]]:
    """Places of brackets, and how many are open after each; those in quotes do not count."""
    depth, quote = 0, ""
    for at, letter in enumerate(text):
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"":
            quote = letter
        elif letter in _CLOSING:
            depth += 1
            yield at, depth
        elif letter in _CLOSING.values():
            depth -= 1
            yield at, depth


def _split(text: str, separator: str) -> list[str]:
    """At separators outside of brackets and quotes."""
    parts, depth, quote = [""], 0, ""
    for letter in text:
        if letter == separator and not depth and not quote:
            parts.append("")
            continue
        parts[-1] += letter
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"":
            quote = letter
        else:
            depth += (letter in _CLOSING) - (letter in _CLOSING.values())
    return parts


def _cut(text: str, separator: str) -> tuple[str, str, str]:
    """At the first separator outside of brackets and quotes."""
    parts = _split(text, separator)
    return parts[0], separator, separator.join(parts[1:]).strip()


def _problem(function: str, parameters: list[_Parameter], positional: list[Any], named: dict[str, Any]) -> _Problem:
    by_place = [parameter for parameter in parameters if not parameter.star]
    names = [parameter.name for parameter in by_place]
    stars = {parameter.star for parameter in parameters}
    shown = _shown_parameters(parameters)
    if len(positional) > len(by_place) and "*" not in stars:
        plural = "" if len(by_place) == 1 else "s"
        takes = f"{len(by_place)} argument{plural} ({shown})" if by_place else "no arguments"
        return _Problem(0, f"{function}: takes {takes}, got {len(positional)}")
    for key in named:
        if key in names[: len(positional)]:
            return _Problem(0, f"{function} '{key}': given twice, by position and by name")
        if key not in names and "**" not in stars:
            close = difflib.get_close_matches(key, names, 1)
            advice = f"did you mean '{close[0]}'?" if close else f"it takes {f'({shown})' if shown else 'none'}"
            return _Problem(0, f"{function}: unknown argument '{key}'; {advice}")
    values = {**dict(zip(names, positional, strict=False)), **named}
    for place, parameter in enumerate(by_place, 1):
        if parameter.name not in values and not parameter.has_default:
            return _Problem(place, f"{function}: argument '{parameter.name}' is missing; it takes ({shown})")
    for place, parameter in enumerate(by_place, 1):
        if parameter.name in values and accepts(parameter.annotation, values[parameter.name]) is False:
            return _Problem(place, f"{function} '{parameter.name}': {_expected(parameter.annotation, values[parameter.name])}")
    return _unclear(function, by_place, values)


def _unclear(function: str, parameters: list[_Parameter], values: Mapping[str, Any]) -> _Problem:
    """All types look right, as far as can be told from here."""
    asked = [parameter for parameter in parameters if parameter.name in values]
    open_ = [p for p in asked if accepts(p.annotation, values[p.name]) is None]
    if len(open_) == 1:
        return _Problem(len(parameters), f"{function} '{open_[0].name}': {_expected(open_[0].annotation, values[open_[0].name])}")
    given = ", ".join(f"{p.name}={_shown(values[p.name])}" for p in asked)
    return _Problem(len(parameters), f"{function}: expected ({_shown_parameters(parameters)}), got ({given})")


def _expected(annotation: str, value: Any) -> str:
    return f"expected {_nice(annotation)}, got {_shown(value)}"


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN and "\n" not in text else f"a {type(value).__name__}"


_WORDS = {"int": "an int", "float": "a number", "str": "a str", "bool": "a bool", "object": "an object", "bytes": "bytes"}


def _nice(annotation: str) -> str:
    """For people: without modules, `|` as `or`."""
    parts = [part.strip() for part in _split(annotation, "|")]
    return " or ".join(_WORDS.get(part) or _with_article(re.sub(r"\b(?:\w+\.)+(?=\w)", "", part)) for part in parts)


def _with_article(name: str) -> str:
    return name if name == "None" else f"an {name}" if name[0] in "AEIOUaeiou" else f"a {name}"


def _shown_parameters(parameters: list[_Parameter]) -> str:
    return ", ".join(parameter.star + parameter.name for parameter in parameters)


_CHECKS: dict[str, Callable[[Any], bool]] = {
    "object": lambda value: True,
    "typing.Any": lambda value: True,
    "None": lambda value: value is None,
    "int": lambda value: hasattr(value, "__index__"),
    "float": lambda value: hasattr(value, "__float__") or hasattr(value, "__index__"),
    "str": lambda value: isinstance(value, str),
    "bool": lambda value: isinstance(value, bool) or type(value).__name__ == "bool_",
    "bytes": lambda value: isinstance(value, bytes),
    "list": lambda value: isinstance(value, list),
    "tuple": lambda value: isinstance(value, tuple),
    "dict": lambda value: isinstance(value, dict),
    "type": lambda value: isinstance(value, type),
    "Sequence": lambda value: hasattr(value, "__len__") and hasattr(value, "__getitem__") and not isinstance(value, (str, dict)),
    "Mapping": lambda value: isinstance(value, Mapping),
    "Callable": callable,
}
"""By the name of a type, without its module and arguments."""


def accepts(annotation: str, value: Any) -> bool | None:
    """Whether a value is of a type, as the binding layer writes it; None where that cannot be told."""
    parts = [part.strip() for part in _split(annotation, "|")]
    if len(parts) > 1:
        answers = [accepts(part, value) for part in parts]
        return True if True in answers else None if None in answers else False
    plain, bracket, _ = annotation.partition("[")
    check = _CHECKS.get(plain) or _CHECKS.get(plain.rpartition(".")[2])
    if check is not None:
        return None if bracket and check(value) else check(value)
    module, _, name = plain.rpartition(".")
    found = getattr(sys.modules.get(module), name, None)
    return isinstance(value, found) if isinstance(found, type) else None


__all__ = ["accepts", "explain_arguments"]
