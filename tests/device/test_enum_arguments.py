"""Every public function and class that takes a member of an enum takes its name, and says what a wrong name is near to."""

from __future__ import annotations

import enum
import importlib
import inspect
import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pytest

import slangpy as spy
from slangpy.base.arguments import _parameters
from slangpy.images import DataStruct, TextureLoader
from slangpy.images.bitmap import PixelFormat
from slangpy.images.loader import YAHandling
from slangpy.images.structs import DataType, FieldFlags
from slangpy.values.references import floatDiffPair
from slangpy.window.events import GamepadState, KeyboardEvent, KeyModifierFlags, MouseEvent

pytestmark = pytest.mark.null
MODULES = [importlib.import_module(f"slangpy{name}") for name in ("", ".device", ".images", ".rays", ".ui", ".window")]


class Taken(NamedTuple):
    """A parameter that is a member of an enum."""

    owner: str
    function: str
    parameter: str
    kind: type[enum.Enum]
    annotation: str


def signatures(function: Any) -> Iterator[list[tuple[str, str]]]:
    """Names and annotations of the parameters."""
    for row in getattr(function, "__nb_signature__", None) or ():
        yield [(parameter.name, parameter.annotation) for parameter in _parameters(row[0])]
    if inspect.isfunction(function):
        yield [(name, str(parameter.annotation)) for name, parameter in inspect.signature(function).parameters.items()]


@cache
def taken() -> list[Taken]:
    """All of the package's public functions, constructors and methods, once."""
    kinds, found = {}, {}
    for module in MODULES:
        kinds |= {n: c for n, c in vars(module).items() if isinstance(c, type) and issubclass(c, enum.Enum)}
    pattern = re.compile(rf"\b({'|'.join(kinds)})\b")

    def note(owner: str, name: str, function: Any) -> None:
        function = function.__func__ if isinstance(function, (staticmethod, classmethod)) else function
        for parameter, annotation in (pair for row in signatures(function) for pair in row):
            kind = pattern.search(annotation)
            if kind:
                found[owner, name, parameter] = Taken(owner, name, parameter, kinds[kind[1]], annotation)

    for module in MODULES:
        for name, item in vars(module).items():
            if name.startswith("_") or name in kinds:
                continue
            if not isinstance(item, type):
                note("", name, item)
            elif item.__module__.startswith("slangpy"):
                for method in dir(item):
                    if not method.startswith("_") or method == "__init__":
                        note(item.__name__, method, inspect.getattr_static(item, method))
    return list(found.values())


SAME_AS = {
    ("Device", "__init__"): "DeviceDesc",
    ("Device", "create_acceleration_structure"): "AccelerationStructureDesc",
    ("Device", "get_acceleration_structure_sizes"): "AccelerationStructureBuildDesc",
    ("Device", "create_buffer"): "BufferDesc",
    ("Device", "create_texture"): "TextureDesc",
    ("Device", "create_sampler"): "SamplerDesc",
    ("Device", "create_query_pool"): "QueryPoolDesc",
    ("Texture", "create_view"): "TextureViewDesc",
    ("RenderPassEncoder", "set_render_state"): "RenderState",
    ("Surface", "configure"): "SurfaceConfig",
    ("Bitmap", "load_from_numpy"): "Bitmap",
    ("Bitmap", "load_from_file"): "Bitmap",
}
"""Functions that take the fields of a class."""
GIVEN = {
    ("LoggerOutput", "write"): "the logger hands a member to it",
    ("ConsoleLoggerOutput", "write"): "the same",
    ("FileLoggerOutput", "write"): "the same",
    ("PythonLoggerOutput", "write"): "the same",
    ("Generator", "__init__"): "the functions of slangpy.generators make it",
    ("Window", "__init__"): "tests/windows has it; it needs a display",
    ("InputText", "__init__"): "tests/ui has it: most of the flags are refused",
}


def texture(device: Any) -> Any:
    return device.create_texture(width=4, height=4, format="rgba8_unorm", usage="shader_resource | render_target")


def struct_of(device: Any) -> Any:
    source = "struct S { float x; }\nRWStructuredBuffer<S> rows;"
    layout = device.load_module_from_source("members_of_enums", source).layout
    return layout.get_type_layout(layout.find_type_by_name("RWStructuredBuffer<S>")).element_type_layout


def logged(**given: Any) -> list[Any]:
    """What an output is told."""
    lines: list[Any] = []

    class Output(spy.LoggerOutput):
        def write(self, level: spy.LogLevel, name: str, msg: str) -> None:
            lines.append((level, msg))

    logger = spy.Logger(use_default_outputs=False)
    logger.add_output(Output())
    for _ in range(2):
        logger.log(**{"level": spy.LogLevel.warn, "msg": "said"} | given)
    return lines


def global_log(**given: Any) -> bool:
    return spy.log(**{"level": spy.LogLevel.none, "msg": ""} | given) is None


CALLS: dict[tuple[str, str, str], tuple[str, Callable[[Any, Any], Any]]] = {
    ("FormatInfo", "get_channel_bits", "channels"): ("g", lambda d, v: spy.get_format_info("rgba8_unorm").get_channel_bits(v)),
    ("", "get_format_info", "format"): ("rgba32_float", lambda d, v: spy.get_format_info(v).format),
    ("", "create_device", "type"): ("null", lambda d, v: spy.create_device(v).info.type),
    ("", "log", "level"): ("debug", lambda d, v: global_log(level=v)),
    ("", "log", "frequency"): ("once", lambda d, v: global_log(frequency=v)),
    ("Logger", "log", "level"): ("error", lambda d, v: logged(level=v)),
    ("Logger", "log", "frequency"): ("once", lambda d, v: logged(frequency=v)),
    ("NativeHandle", "__init__", "type"): ("CUstream", lambda d, v: spy.NativeHandle(v, 3)),
    ("BufferCursor", "__init__", "device_type"): ("cpu", lambda d, v: spy.BufferCursor(v, struct_of(d), 2).element_count),
    ("Device", "create_command_encoder", "queue"): ("graphics", lambda d, v: d.create_command_encoder(v).queue),
    ("Device", "wait_for_idle", "queue"): ("graphics", lambda d, v: d.wait_for_idle(v)),
    ("Device", "submit_command_buffer", "queue"): (
        "graphics", lambda d, v: d.submit_command_buffer(d.create_command_encoder().finish(), v) > 0,
    ),
    ("Device", "submit_command_buffers", "queue"): (
        "graphics", lambda d, v: d.submit_command_buffers([d.create_command_encoder().finish()], queue=v) > 0,
    ),
    ("Device", "create_coop_vec_matrix_desc", "layout"): (
        "column_major", lambda d, v: d.create_coop_vec_matrix_desc(4, 8, v, spy.DataType.float16).layout,
    ),
    ("Device", "create_coop_vec_matrix_desc", "element_type"): (
        "float16", lambda d, v: d.create_coop_vec_matrix_desc(4, 8, "row_major", v).size,
    ),
    ("Device", "get_coop_vec_matrix_size", "layout"): ("row_major", lambda d, v: d.get_coop_vec_matrix_size(4, 8, v, "float16")),
    ("Device", "get_coop_vec_matrix_size", "element_type"): (
        "float32", lambda d, v: d.get_coop_vec_matrix_size(4, 8, "row_major", v),
    ),
    ("Device", "enumerate_adapters", "type"): ("null", lambda d, v: len(d.enumerate_adapters(v))),
    ("Device", "get_format_support", "format"): ("r8_unorm", lambda d, v: d.get_format_support(v)),
    ("Device", "has_feature", "feature"): ("rasterization", lambda d, v: d.has_feature(v)),
    ("CommandEncoder", "blit", "filter"): (
        "point", lambda d, v: d.create_command_encoder().blit(texture(d), texture(d), v),
    ),
    ("CommandEncoder", "copy_acceleration_structure", "mode"): (
        "clone", lambda d, v: d.create_command_encoder().copy_acceleration_structure(*structures(d), v),
    ),
    ("CommandEncoder", "set_buffer_state", "state"): (
        "copy_source", lambda d, v: d.create_command_encoder().set_buffer_state(d.create_buffer(size=4, usage="shared"), v),
    ),
    ("CommandEncoder", "set_texture_state", "state"): (
        "copy_source", lambda d, v: d.create_command_encoder().set_texture_state(texture(d), v),
    ),
    ("DiffPair", "get", "kind"): ("derivative", lambda d, v: floatDiffPair(2.0, 3.0).get(v)),
    ("DiffPair", "set", "kind"): ("primal", lambda d, v: floatDiffPair(2.0, 3.0).set(v, 5.0)),
    ("Bitmap", "convert", "pixel_format"): ("y", lambda d, v: pixels().convert(v).pixel_format),
    ("Bitmap", "convert", "component_type"): ("float32", lambda d, v: pixels().convert(component_type=v).component_type),
    ("DataStruct", "append", "type"): ("int16", lambda d, v: DataStruct().append("x", v)[0].type),
    ("DataStruct", "append", "flags"): ("normalized", lambda d, v: DataStruct().append("x", "int16", v)[0].flags),
    ("GamepadState", "is_button_down", "button"): ("a", lambda d, v: GamepadState().is_button_down(v)),
    ("KeyboardEvent", "has_modifier", "modifier"): ("ctrl", lambda d, v: KeyboardEvent(mods="ctrl").has_modifier(v)),  # type: ignore[arg-type]
    ("MouseEvent", "has_modifier", "modifier"): ("ctrl", lambda d, v: MouseEvent(mods="ctrl").has_modifier(v)),  # type: ignore[arg-type]
    **{
        ("DataStruct", name, "type"): ("int16", lambda d, v, name=name: getattr(DataStruct, name)(v))
        for name in ("is_float", "is_integer", "is_signed", "is_unsigned", "type_range", "type_size")
    },
    # --- whose annotations are Any, or which are called with any arguments
    ("Tensor", "zeros", "usage"): ("unordered_access", lambda d, v: spy.Tensor.zeros(d, (3,), "float", usage=v).usage),
    ("Tensor", "empty", "memory_type"): ("upload", lambda d, v: spy.Tensor.empty(d, (3,), "float", memory_type=v).memory_type),
    ("Options", "__init__", "usage"): ("render_target", lambda d, v: TextureLoader.Options(usage=v).usage),
    ("Options", "__init__", "ya_handling"): ("preserve_as_rg", lambda d, v: TextureLoader.Options(ya_handling=v).ya_handling),
    ("Bitmap", "__init__", "pixel_format"): ("rgb", lambda d, v: spy.Bitmap(v, "uint8", 4, 3).pixel_format),
    ("Bitmap", "__init__", "component_type"): ("int16", lambda d, v: spy.Bitmap("rgb", v, 4, 3).component_type),
    ("Bitmap", "__init__", "pixel_format of an array"): ("rgb", lambda d, v: spy.Bitmap(np.zeros((2, 2, 3)), v).pixel_format),
    ("Logger", "level", ""): ("error", lambda d, v: changed(spy.Logger(), "level", v)),
    ("SlangCompilerOptions", "optimization", ""): ("high", lambda d, v: compiler_options(v)),
}  # fmt: skip
"""A name, and what a member changes."""


def pixels() -> spy.Bitmap:
    return spy.Bitmap(np.ones((2, 3, 3), np.uint8))


def structures(device: Any) -> list[Any]:
    return [device.create_acceleration_structure(size=256) for _ in range(2)]


def changed(thing: Any, name: str, value: Any) -> Any:
    setattr(thing, name, value)
    return getattr(thing, name)


def compiler_options(value: Any) -> Any:
    """As a device reads them, from a dict and as attributes."""
    options = spy.SlangCompilerOptions()
    options.optimization = value
    read = [spy.SlangCompilerOptions.of(given).optimization for given in (options, {"optimization": value})]
    assert read[0] is read[1]
    return read[0]


@pytest.fixture(scope="module")
def null() -> spy.Device:
    return spy.Device(type="null")


def check(kind: type[enum.Enum], name: str, call: Callable[[Any], Any]) -> None:
    """A name does what its member does; others raise. What the null device does not have, it does not have by name."""
    try:
        expected = call(kind[name])
    except (NotImplementedError, ValueError) as error:
        assert isinstance(error, NotImplementedError) or "was never built" in str(error)
        with pytest.raises(type(error), match=re.escape(str(error))):
            call(name)
    else:
        assert repr(call(name)) == repr(expected)
    for wrong in (name + "x", f"{name} | {name}x" if issubclass(kind, enum.Flag) else f"{name}x"):
        with pytest.raises((TypeError, ValueError), match=rf"{kind.__name__} such as .*, got '{re.escape(wrong)}'|no type of device"):
            call(wrong)
    with pytest.raises((TypeError, ValueError), match=rf"{kind.__name__}|no type of device"):
        call("~")
    if issubclass(kind, enum.Flag):
        other = next(n for n in kind.__members__ if n not in (name, "none", "vertex_buffer"))
        assert repr(call(f"{name} | {other}")) == repr(call(f"{other}|{name}")) == repr(call(kind[name] | kind[other]))


def test_all_are_tried() -> None:
    """What is new gets a row, or stands with the reason why it has none."""
    missing = []
    for item in taken():
        place = (item.owner, item.function)
        if place in SAME_AS:
            named = {t.parameter: t for t in taken() if t.owner == SAME_AS[place] and t.function == "__init__"}
            same = named.get(item.parameter)
            if same is None and (SAME_AS[place], "__init__", item.parameter) not in CALLS:
                missing.append(f"{'.'.join(place)} {item.parameter}: {SAME_AS[place]} has no such field")
        elif place not in GIVEN and (*place, item.parameter) not in CALLS and item.function != "__init__":
            missing.append(f"{'.'.join(place)} {item.parameter}: {item.kind.__name__}")
    assert not missing, "\n".join(missing)
    assert len(taken()) > 150
    assert {(o, f) for o, f, _ in CALLS} | set(SAME_AS) | set(GIVEN) >= {(t.owner, t.function) for t in taken() if t.function != "__init__"}


@pytest.mark.parametrize("row", CALLS, ids=".".join)
def test_calls(row: tuple[str, str, str], null: spy.Device) -> None:
    kinds: dict[Any, Any] = {(t.owner, t.function, t.parameter): t.kind for t in taken()}
    kinds |= {
        ("Options", "__init__", "usage"): spy.TextureUsage, ("Options", "__init__", "ya_handling"): YAHandling,
        ("Tensor", "zeros", "usage"): spy.BufferUsage, ("Tensor", "empty", "memory_type"): spy.MemoryType,
        ("Logger", "level", ""): spy.LogLevel, ("SlangCompilerOptions", "optimization", ""): spy.SlangOptimizationLevel,
        ("DataStruct", "append", "flags"): FieldFlags,
        **{(owner, "has_modifier", "modifier"): KeyModifierFlags for owner in ("KeyboardEvent", "MouseEvent")},
    }  # fmt: skip
    images = {"pixel_format": PixelFormat, "pixel_format of an array": PixelFormat, "component_type": DataType, "type": DataType}
    kind = images[row[2]] if row[0] in ("Bitmap", "DataStruct") and row[2] in images else kinds[row]
    name, call = CALLS[row]
    check(kind, name, lambda value: call(null, value))


FIELDS = [
    t for t in taken()
    if t.function == "__init__" and (t.owner, t.function) not in SAME_AS | GIVEN and (*t[:2], t.parameter) not in CALLS
]  # fmt: skip


@pytest.mark.parametrize("item", FIELDS, ids=lambda t: f"{t.owner}.{t.parameter}")
def test_fields(item: Taken) -> None:
    """Of descriptors, options, events and widgets: when they are made, and set afterwards."""
    cls = next(getattr(module, item.owner) for module in MODULES if hasattr(module, item.owner))
    name = list(item.kind.__members__)[-1]
    check(item.kind, name, lambda value: getattr(cls(**{item.parameter: value}), item.parameter))
    if not item.owner.startswith("Slang") and item.parameter in dir(cls()):
        check(item.kind, name, lambda value: changed(cls(), item.parameter, value))
