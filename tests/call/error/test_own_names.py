"""Attributes that objects do not have: setting one says what is meant, instead of keeping a value that nothing reads."""

from __future__ import annotations

import enum
import importlib
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import slangpy as spy

pytestmark = [pytest.mark.null]

CODE = """
float scale;
extern static const int STEPS = 2;
static float kept;
struct S { float a; float twice() { return 2 * a; } }
float f(float x) { return x * scale * STEPS; }
"""


class Subject(NamedTuple):
    device: Any
    module: Any


@pytest.fixture(scope="module")
def s() -> Any:
    device = spy.create_device("null")
    yield Subject(device, spy.Module.load_from_source(device, "own", CODE))
    device.close()


class Wrong(NamedTuple):
    make: Callable[[Subject], Any]
    name: str
    words: tuple[str, ...]


def _tensor(s: Subject) -> spy.Tensor:
    return spy.Tensor.zeros(s.device, (2,), "float")


def _texture(s: Subject) -> spy.Texture:
    return s.device.create_texture(format=spy.Format.rgba32_float, width=2, height=2, usage=spy.TextureUsage.shader_resource)


WRONG = [
    Wrong(lambda s: s.module, "scale", ("Module", "'scale' is a global", "function.set({'scale': value})")),
    Wrong(lambda s: s.module, "sclae", ("did you mean 'scale'?", "function.set({'scale': value})")),
    Wrong(lambda s: s.module, "STEPS", ("'STEPS' is a constant", "function.constants({'STEPS': value})")),
    Wrong(lambda s: s.module, "kept", ("'kept' is static", "its value is in the source")),
    Wrong(lambda s: s.module, "S", ("'S' is a type of the source",)),
    Wrong(lambda s: s.module, "f", ("'f' is a function of the source",)),
    Wrong(lambda s: s.module, "optoins", ("did you mean options?",)),
    Wrong(lambda s: s.module, "zzzz", ("those that can: device, link, logger, name, options",)),
    Wrong(lambda s: s.module.f, "scale", ("own::f", "'scale' is a global", "function.set({'scale': value})")),
    Wrong(lambda s: s.module.f, "set", ("own::f: a FunctionNode is not changed", "f = module.f.set(...)")),
    Wrong(lambda s: s.module.f, "group", ("own::f", ".map(), .set(), .constants()")),
    Wrong(lambda s: s.module.S, "a", ("'a' is a field", "InstanceList")),
    Wrong(lambda s: s.module.S, "other", ("'S' is a type of the source",)),
    Wrong(lambda s: s.device, "determinstic", ("Device", "did you mean deterministic?")),
    Wrong(_tensor, "grad_inn", ("Tensor", "did you mean grad_in?")),
    Wrong(_texture, "widht", ("Texture has no attribute 'widht'",)),
    Wrong(lambda s: s.device.create_buffer(size=16), "name", ("Buffer has no attribute 'name'",)),
    Wrong(lambda s: s.device.create_sampler(), "filter", ("Sampler has no attribute 'filter'",)),
    Wrong(lambda s: spy.ValueRef(1), "valeu", ("ValueRef", "did you mean value?")),
    Wrong(lambda s: spy.DiffPair(1.0, 2.0), "gard", ("DiffPair", "did you mean grad?")),
    Wrong(lambda s: spy.SlangCompilerOptions(), "include_path", ("did you mean include_paths?",)),
    Wrong(lambda s: spy.TensorDesc(), "shpae", ("did you mean shape?",)),
    Wrong(lambda s: spy.Bitmap(np.zeros((2, 2, 3), np.uint8)), "srgb", ("those that can: srgb_gamma",)),
]


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: f"{wrong.words[0].split()[0]}-{wrong.name}")
def test_what_is_not_there_is_refused(wrong: Wrong, s: Subject) -> None:
    subject = wrong.make(s)
    with pytest.raises(AttributeError) as error:
        setattr(subject, wrong.name, 3.0)
    assert all(word in str(error.value) for word in wrong.words), str(error.value)


def test_what_is_there_is_set(s: Subject) -> None:
    tensor = _tensor(s)
    tensor.grad_in = _tensor(s)
    assert tensor.grad_in is not None
    reference = spy.ValueRef(1)
    reference.value = 2
    assert reference.value == 2
    logger, s.module.logger = s.module.logger, None
    assert s.module.logger is None
    s.module.logger = logger


class Named(spy.InstanceList):
    """A user's own class: its attributes are its own business."""


def test_subclasses_of_users_are_free(s: Subject) -> None:
    named: Any = Named(s.module.S)
    named.label = "mine"
    assert named.label == "mine"

    class Mine(spy.Tensor):
        pass

    mine: Any = Mine(s.device, "float", (2,))
    mine.label = "mine"
    assert mine.label == "mine"


PUBLIC = ("slangpy", "slangpy.ui", "slangpy.neural", "slangpy.rays", "slangpy.images", "slangpy.window", "slangpy.window.app")
FREE = {
    # read by their own attribute methods, made to be derived from, or records that only the package makes
    "CallSite", "LoggerOutput", "ConsoleLoggerOutput", "FileLoggerOutput", "PythonLoggerOutput", "progress", "SHA1", "Timer",
    "BoxFilter", "TentFilter", "GaussianFilter", "MitchellFilter", "LanczosFilter", "Notice",
    "GamepadEvent", "GamepadState", "KeyboardEvent", "MouseEvent", "BufferCursor", "Kernel", "PreparedLaunch", "TorchPair",
    "CompiledRayTracingPipeline", "CompiledRenderPipeline",
}  # fmt: skip


def test_every_public_class_refuses() -> None:
    """A class with room for attributes has a __setattr__ that knows its own."""
    free = set()
    for path in PUBLIC:
        module = importlib.import_module(path)
        for name in dir(module):
            found = getattr(module, name, None) if name[0] != "_" else None
            if not isinstance(found, type) or found.__module__.partition(".")[0] != "slangpy":
                continue
            if issubclass(found, (enum.Enum, BaseException)) or not found.__dictoffset__:
                continue
            if found.__setattr__ is object.__setattr__:
                free.add(found.__name__)
    assert free <= FREE, sorted(free - FREE)


@pytest.mark.one
@pytest.mark.needs_kernels
def test_a_value_that_does_not_fit_names_the_function(device: Any) -> None:
    module = spy.Module.load_from_source(device, "own", CODE)
    with pytest.raises(TypeError, match=r"own::f: scale: expected a number for float, got 'x' \(str\)"):
        module.f.set({"scale": "x"})(1.0)
    assert module.f.set({"scale": 3.0})(1.0) == 6
