"""Values of `extern static const` names: read from Python, and written as Slang with the type that is declared."""

from __future__ import annotations

import re
from typing import Any

from ..base import libslang
from ..base.scalars import FLOATS, INTEGERS, NARROW_SIZES, SIZES
from ..compiler.modules.facts import known_facts_of
from ..compiler.modules.sources import texts_of
from ..errors import KernelGenException
from ..reflection import _VECTOR

Constant = tuple[str, tuple[Any, ...]]
"""Kind ("bool", "int", "float" or a vector class of values) and the numbers."""


def read_constant(name: str, value: Any) -> Constant:
    """A Python value as part of a key. Raises KernelGenException for anything but numbers and vectors."""
    if hasattr(value, "item") and getattr(value, "shape", None) == ():
        value = value.item()
    for kind in (bool, int, float):
        if isinstance(value, kind):
            return kind.__name__, (kind(value),)
    kind = type(value).__name__
    if hasattr(value, "element_type") and kind[-1:] in "1234" and not hasattr(value, "get_row"):
        parts = [read_constant(name, part) for part in value]
        return parts[0][0], tuple(number for _, numbers in parts for number in numbers)
    raise KernelGenException(f"constant '{name}' must be an int, float or bool (or a vector of them), got {kind}")


def merged_constants(
    known: tuple[tuple[str, Constant], ...], given: dict[str, Any] | None, named: dict[str, Any]
) -> tuple[tuple[str, Constant], ...]:
    """`known` constants and those of a dict or of keywords, which win."""
    if given is not None and named:
        raise ValueError("constants accepts either a dict or keywords, not both")
    if given is None:
        by_name = named.get("constants")  # what the parameter is called, by which programs pass the dict
        given = by_name if len(named) == 1 and isinstance(by_name, dict) else named
    if not isinstance(given, dict):
        raise ValueError(f"constants requires a dict of name to value, got {type(given).__name__}")
    return tuple(sorted({**dict(known), **{name: read_constant(name, value) for name, value in given.items()}}.items()))


def render_constants(loaded: Any, label: str, constants: tuple[tuple[str, Constant], ...]) -> list[str]:
    """Definitions for the generated module. Raises ValueError for names that the program does not declare."""
    if not constants:
        return []
    declared = _declared(loaded)
    lines: list[str] = []
    for name, (_, numbers) in constants:
        if name not in declared:
            known = ", ".join(sorted(other for other in declared if not other.startswith("_spy_"))) or "none"
            hidden = "; modules in binary form tell theirs only where they are linked (link=[...])"
            unknown = hidden if None in texts_of(loaded) else ""
            advice = f"declare it as `extern static const int {name} = 1;`"
            raise ValueError(f"{label}: no constant named '{name}' is declared extern; there are: {known}{unknown}; {advice}")
        type_name = declared[name]
        lines.append(f"export static const {type_name} {name} = {_value_text(label, name, type_name, numbers)};")
    return lines


def _declared(loaded: Any) -> dict[str, str]:
    """Type names of the `extern static const` variables of the program's modules and of what they import."""
    known = getattr(loaded, "_extern_constants", None)
    if known is None:
        known = {}
        for module in loaded.modules:
            _collect(module.module_decl, known)
        for name, type_name in known_facts_of(loaded).extern_constants.items():  # reflection tells of a module's own only
            known.setdefault(name, _full_name(type_name))
        loaded._extern_constants = known
    return known


def _full_name(type_name: str) -> str:
    short = re.match(r"^(\w+?)([234])$", type_name)
    return f"vector<{short.group(1)},{short.group(2)}>" if short and short.group(1) in SIZES else type_name


def _collect(decl: Any, found: dict[str, str]) -> None:
    for child in decl.children:
        kind = child.kind.name.rstrip("_")
        if kind == "variable" and child.has_modifier(libslang.ModifierID.extern):
            found.setdefault(child.name, child.as_variable().type.full_name)


def _value_text(label: str, name: str, type_name: str, numbers: tuple[Any, ...]) -> str:
    vector = _VECTOR.match(type_name)
    scalar, count = (vector.group(1), int(vector.group(2))) if vector else (type_name, 1)
    if scalar in NARROW_SIZES and vector is None and len(numbers) == 1:
        return f"{scalar}({_float_text('float', float(numbers[0]))})"
    if scalar not in SIZES or len(numbers) not in (1, count):
        raise ValueError(f"{label}: constant '{name}' is declared as {type_name}, got {len(numbers)} numbers")
    parts = ", ".join(_number(label, name, scalar, number) for number in numbers)
    return f"{type_name}({parts})" if vector else parts


def _number(label: str, name: str, scalar: str, value: Any) -> str:
    if scalar == "bool":
        if not isinstance(value, bool):
            raise ValueError(f"{label}: constant '{name}' is declared as bool, got {value!r}")
        return str(value).lower()
    if scalar in FLOATS:
        return _float_text(scalar, float(value))
    assert scalar in INTEGERS
    if value != int(value):
        raise ValueError(f"{label}: constant '{name}' is declared as {scalar}, got {value!r}: round it first")
    bits = SIZES[scalar] * 8
    low, high = (0, 2**bits - 1) if scalar.startswith("u") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    if not low <= value <= high:
        raise OverflowError(f"{label}: constant '{name}' is declared as {scalar} ({low} to {high}), got {value!r}")
    return f"{scalar}({int(value)}{'ull' if scalar.startswith('u') else 'll'})"


def _float_text(scalar: str, value: float) -> str:
    if value != value:
        return f"{scalar}(0.0f / 0.0f)"
    if value in (float("inf"), float("-inf")):
        return f"{scalar}({'' if value > 0 else '-'}1.0f / 0.0f)"
    suffix = {"half": "h", "float": "f", "double": "l"}[scalar]
    return repr(value) + suffix
