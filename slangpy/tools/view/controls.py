"""Which functions are functions of a pixel, and what their other parameters are set by. Nothing is run here."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ... import _native
from ...compiler.modules.loaded import declared_names
from ...function import FunctionNode
from ...plan.resolve.target import Declared, parameters_of

Value = Any
"""bool, int, float or a vector of the package."""

PIXELS = ("vector<uint,2>", "vector<int,2>", "vector<float,2>")
RESULTS = ("vector<float,4>", "vector<float,3>", "float")
GIVEN = {"time": ("float",), "mouse": PIXELS, "resolution": PIXELS}
"""Parameters that the viewer sets by itself, with the types that they may have."""
_SCALARS = {"float": float, "int": int, "uint": int, "bool": bool}
_UNRANGED = {"float": (0.0, 1.0), "int": (0.0, 10.0), "uint": (0.0, 10.0), "bool": (0.0, 1.0)}
_VALUES = {"float": (-math.inf, math.inf), "int": (-(2.0**31), 2.0**31 - 1), "uint": (0.0, 2.0**31 - 1), "bool": (0.0, 1.0)}
"""Those that widgets hold."""
_FARTHEST = 2.0**30
"""That sliders of integers reach, by ImGui."""


@dataclass(frozen=True)
class Control:
    """A parameter that its user sets. scalar: float, int, uint or bool; count: 1, or of the numbers of a vector."""

    name: str
    scalar: str
    count: int
    low: float
    high: float
    default: Value
    is_known: bool = True
    """Whether the function begins with the default. Else it has one that reflection does not tell (`true`, an expression),
    which holds until the user sets another."""

    @property
    def type_name(self) -> str:
        return self.scalar if self.count == 1 else f"{self.scalar}{self.count}"

    def value(self, numbers: Sequence[Any]) -> Value:
        return _value(self.scalar, self.count, numbers)


@dataclass(frozen=True)
class PixelFunction:
    """pixel, result: names of types. given: (name, type) of what the viewer sets by itself."""

    name: str
    pixel: str
    result: str
    given: tuple[tuple[str, str], ...]
    controls: tuple[Control, ...]


class DoesNotFit(ValueError):
    """Why a function is no function of a pixel."""


def functions_of(module: Any) -> tuple[list[PixelFunction], list[str]]:
    """Those of a module that are functions of a pixel, and of the others, "name: why not"."""
    found, others = [], []
    for name in dict.fromkeys(declared_names(module._compiled.main)):
        node = getattr(module, name, None)
        if not isinstance(node, FunctionNode) or name.startswith("_spy_"):
            continue
        try:
            found.append(_pixel_function(name, node.core.target()))
        except DoesNotFit as error:
            others.append(f"{name}: {error}")
    return found, others


def choose(file: str, functions: Sequence[PixelFunction], others: Sequence[str], name: str | None) -> PixelFunction:
    """ValueError where none fits, several do and none was named, or the named one is not there."""
    if name is not None:
        for function in functions:
            if function.name == name:
                return function
        reason = next((line for line in others if line.startswith(f"{name}: ")), f"{name}: there is no such function")
        listed = ", ".join(f.name for f in functions) or "none"
        raise ValueError(f"view: {file}: {reason}; functions of a pixel: {listed}")
    if len(functions) > 1:
        raise ValueError(
            f"view: {file} has several functions of a pixel: {', '.join(f.name for f in functions)}; choose one with --function"
        )
    if not functions:
        listed = "".join(f"\n  {line}" for line in others) or "\n  it declares no function"
        raise ValueError(f"view: {file} has no function of a pixel, as `float4 f(uint2 pixel)` is one:{listed}")
    return functions[0]


def parse_settings(function: PixelFunction, settings: Iterable[str]) -> dict[str, Value]:
    """Values of `name=value`, numbers of vectors with commas between them. ValueError names what is wrong."""
    controls = {control.name: control for control in function.controls}
    for name, type_name in function.given:
        if name != "resolution":
            scalar, count = _shape(type_name)
            controls[name] = Control(name, scalar, count, 0, 0, None)
    found = {}
    for setting in settings:
        name, equals, text = setting.partition("=")
        if not equals:
            raise ValueError(f"view: --set {setting}: expected name=value")
        if name == "resolution":
            raise ValueError("view: --set resolution: the resolution is the size of the picture; use --size")
        if name not in controls:
            listed = ", ".join(f"{c.name} ({c.type_name})" for c in controls.values()) or "none"
            raise ValueError(f"view: --set {name}: {function.name} has no such parameter; it has: {listed}")
        found[name] = _parse(controls[name], text)
    return found


def _parse(control: Control, text: str) -> Value:
    words = {"true": 1.0, "false": 0.0} if control.scalar == "bool" else {}
    try:
        numbers = [words[part] if part in words else float(part) for part in text.split(",")]
    except ValueError:
        numbers = []
    whole = control.scalar == "float" or all(n.is_integer() for n in numbers)
    least, most = _VALUES[control.scalar]
    allowed = all(least <= n <= most for n in numbers)
    if len(numbers) == 1:
        numbers *= control.count
    if len(numbers) != control.count or not whole or not allowed:
        example = "true or false" if control.scalar == "bool" else ",".join(["1"] * control.count)
        raise ValueError(f"view: --set {control.name}={text}: the parameter is {control.type_name}; write it as {example}")
    return control.value(numbers)


# --- reflection


def _pixel_function(name: str, target: Any) -> PixelFunction:
    overloads = target.overloads
    if len(overloads) != 1:
        raise DoesNotFit(f"it is overloaded ({len(overloads)} functions)")
    function = overloads[0]
    declared = parameters_of(target, function)
    pixel = next((p.type.full_name for p in declared if p.name == "pixel"), None)
    if pixel is None:
        raise DoesNotFit("it has no parameter named pixel")
    if pixel not in PIXELS:
        raise DoesNotFit(f"its pixel is {_plain(pixel)}, not uint2, int2 or float2")
    result = target.layout.wrap(function.return_type).full_name if function.return_type is not None else "void"
    if result not in RESULTS:
        raise DoesNotFit(f"it returns {_plain(result)}, not float, float3 or float4")
    given, controls = [], []
    for parameter, reflection in zip(declared, function.parameters, strict=True):
        if parameter.io != "in":
            raise DoesNotFit(f"{parameter.name} is {parameter.io}")
        if parameter.name in GIVEN:
            given.append((parameter.name, _given(parameter)))
        elif parameter.name != "pixel":
            controls.append(_control(parameter, reflection))
    return PixelFunction(name, pixel, result, tuple(given), tuple(controls))


def _given(parameter: Declared) -> str:
    type_name, allowed = parameter.type.full_name, GIVEN[parameter.name]
    if type_name not in allowed:
        listed = " or ".join(_plain(name) for name in allowed)
        raise DoesNotFit(f"{parameter.name}, which the viewer sets, is {_plain(type_name)}, not {listed}")
    return type_name


def _control(parameter: Declared, reflection: Any) -> Control:
    name, type_name = parameter.name, parameter.type.full_name
    scalar, count = _shape(type_name)
    if not scalar:
        raise DoesNotFit(
            f"{name} is {_plain(type_name)}, which no slider sets; bool, and float, int and uint with their vectors have one"
        )
    attributes = {a.name: [a.argument_value_float(i) for i in range(a.argument_count)] for a in reflection.user_attributes}
    start = attributes.get("Default", [None])[0]
    if start is None and reflection.has_default:
        start = reflection.default_float if reflection.default_float is not None else reflection.default_int
    is_known = start is not None or not reflection.has_default
    low, high = _UNRANGED[scalar]
    if start is not None and scalar != "bool":
        low, high = min(low, 2.0 * start), max(high, 2.0 * start)
    if "Range" in attributes:
        low, high = attributes["Range"]
        if not low < high or not math.isfinite(high - low):
            raise DoesNotFit(f"[Range({low:g}, {high:g})] of {name} is no range from less to more")
        if start is not None and not low <= start <= high:
            raise DoesNotFit(f"the default {start:g} of {name} is outside of its [Range({low:g}, {high:g})]")
    if scalar in ("int", "uint"):
        if "Range" in attributes and max(-low, high) > _FARTHEST:
            raise DoesNotFit(f"[Range({low:g}, {high:g})] of {name} is wider than sliders of integers reach, {_FARTHEST:.0f}")
        low, high = max(low, -_FARTHEST), min(high, _FARTHEST)
    if scalar == "uint" and low < 0:
        raise DoesNotFit(f"[Range({low:g}, {high:g})] of {name}, a uint, begins below 0")
    middle = 0.0 if scalar == "bool" else (low + high) / 2
    default = _value(scalar, count, [middle if start is None else start] * count)
    return Control(name, scalar, count, low, high, default, is_known)


def _shape(type_name: str) -> tuple[str, int]:
    """("float", 3) of vector<float,3>; ("", 0) of what no slider sets."""
    for scalar in _SCALARS:
        if type_name == scalar:
            return scalar, 1
        for count in (2, 3, 4):
            if scalar != "bool" and type_name == f"vector<{scalar},{count}>":
                return scalar, count
    return "", 0


def _plain(type_name: str) -> str:
    scalar, count = _shape(type_name)
    return type_name if count < 2 else f"{scalar}{count}"


def _value(scalar: str, count: int, numbers: Sequence[Any]) -> Value:
    parts = [_SCALARS[scalar](number) for number in numbers]
    return parts[0] if count == 1 else getattr(_native, f"{scalar}{count}")(*parts)


def value_of(type_name: str, numbers: Sequence[Any]) -> Value:
    """Numbers as a value of a type that `GIVEN` or `PIXELS` name."""
    scalar, count = _shape(type_name)
    return _value(scalar, count, numbers[:count])
