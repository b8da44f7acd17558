"""Fifty mistakes more, of the second day: modifiers, dispatches, memory, cursors, encoders, torch, kernels, scenes, networks,
widgets. Each message names the function, the parameter, what came, what is expected and what to write."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from mistake import Mistake

import slangpy as spy
from slangpy import neural, rays, ui

pytestmark = [pytest.mark.needs_kernels, pytest.mark.one]

CODE = """
struct P { float3 at; float w; };
struct Pair { P a[2]; int k; };
struct M { float k; [mutating] void grow() { k += 1; } float get(float x) { return k * x; } static float zero() { return 0; } };
interface IShape { float area(); }
struct Square : IShape { float s; float area() { return s * s; } };
[Differentiable] float square(float x) { return x * x; }
[Differentiable] float add(float a, float b) { return a + b; }
float3 vec(float3 v) { return v; }
float mat(float3x3 m) { return m[0][0]; }
float use(P p) { return p.w; }
float arr(float a[4]) { return a[0]; }
float area(IShape s) { return s.area(); }
void store(RWTensor<float, 1> t, int i, float v) { t[i] = v; }
float texel(int2 at, Texture2D<float4> t) { return t[at].x; }
void paint(int2 at, RWTexture2D<float4> t) { t[at] = 1; }
int8_t small(int8_t x) { return x; }
float2 place(float2 uv) { return uv; }
P g;
float k[3];
[shader("compute")] [numthreads(32, 1, 1)]
void entry(uint3 tid : SV_DispatchThreadID, uniform RWStructuredBuffer<float> b, uniform uint n, uniform P p) { if (tid.x < n) b[tid.x] = p.w; }
"""
X = np.arange(6, dtype=np.float32)
V = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0]], np.float32)
TRIANGLES = np.array([[0, 1, 2]], np.int32)
READ, WRITE = spy.TextureUsage.shader_resource, spy.TextureUsage.unordered_access


class Subject(NamedTuple):
    """What the mistakes are made with."""

    device: Any
    module: Any
    tensor: spy.Tensor

    def buffer(self, **fields: Any) -> Any:
        usage = spy.BufferUsage.shader_resource | spy.BufferUsage.unordered_access
        return self.device.create_buffer(**{"size": 64, "usage": usage, **fields})

    def texture(self, **fields: Any) -> Any:
        return self.device.create_texture(
            **{"format": spy.Format.rgba32_float, "width": 4, "height": 4, "usage": READ | WRITE, **fields}
        )

    def cursor(self, name: str = "P", count: int = 2) -> Any:
        return spy.BufferCursor(spy.DeviceType.cpu, self.module[name].buffer_layout.reflection, count)

    def encoder(self) -> Any:
        return self.device.create_command_encoder()

    def scene(self, **options: Any) -> rays.Scene:
        return rays.Scene(self.device, rays.Mesh(V, TRIANGLES), **options)

    def network(self, **options: Any) -> neural.Network:
        return neural.Network(self.device, 2, 1, **{"width": 8, **options})


@pytest.fixture(scope="module")
def subjects() -> dict[int, Subject]:
    return {}


@pytest.fixture
def s(device: Any, subjects: dict[int, Subject]) -> Subject:
    """One for each device: the mistakes share it."""
    if id(device) not in subjects:
        module = spy.Module.load_from_source(device, "second", CODE)
        subjects[id(device)] = Subject(device, module, spy.Tensor.from_numpy(device, X))
    return subjects[id(device)]


def _finished(s: Subject) -> Any:
    encoder = s.encoder()
    encoder.finish()
    return encoder


def _trained(s: Subject, rate: Any) -> Any:
    optimiser: Any = neural.Adam(s.network())
    optimiser.rate = rate
    optimiser.step()


NO_FIT = spy.ResolveException
MISTAKES: dict[str, Mistake] = {
    # arguments
    "a method without its object": Mistake(lambda s: s.module.M.get(2.0), NO_FIT, ("second::M.get", "Parameter 'x'", "the first argument of a method is 'this', a value of M")),
    "a number for an object": Mistake(lambda s: s.module.M.grow(1.0), NO_FIT, ("second::M.grow", "this: float", "{'k': ...}")),
    "a vector of four": Mistake(lambda s: s.module.vec(spy.float4(1)), NO_FIT, ("v: float4", "vector<float,3>", "shape [4]", "[3]")),
    "a matrix of four": Mistake(lambda s: s.module.mat(spy.float4x4.identity()), NO_FIT, ("m: float4x4", "shape [4, 4]", "[3, 3]")),
    "a vector of ints": Mistake(lambda s: s.module.vec(spy.int3(1)), NO_FIT, ("v: int3", "components are int", 'convert="safe"')),
    "an array too long": Mistake(lambda s: s.module.arr(np.ones(5, np.float32)), spy.ShapeError, ("second::arr", "a of shape [5]", "takes 4")),
    "a list too short": Mistake(lambda s: s.module.arr([1.0, 2.0, 3.0]), spy.ShapeError, ("second::arr", "a: list [3]", "float[4]")),
    "a shape without its type": Mistake(lambda s: s.module.area({"s": 2.0}), NO_FIT, ("s: dict{s}", "IShape", "_type")),
    "a shape of another type": Mistake(lambda s: s.module.area({"_type": "P", "w": 1.0}), NO_FIT, ("P does not conform to it",)),
    "a type misspelt": Mistake(lambda s: s.module.area({"_type": "Sqare", "s": 1.0}), spy.BoundVariableException, ("'Sqare'", "did you mean Square")),
    "300 in eight bits": Mistake(lambda s: s.module.small(300), OverflowError, ("second::small", "argument x: 300", "-128 to 127")),
    "a nan for an int": Mistake(lambda s: s.module.small(float("nan")), ValueError, ("second::small", "argument x: nan", "not an integer")),
    "a list to write": Mistake(lambda s: s.module.store([1.0, 2.0], 0, 1.0), NO_FIT, ("t: list [2]", "pass a Tensor or a NumPy array")),
    "a view to write": Mistake(lambda s: s.module.store(np.broadcast_to(np.float32(0), (6,)), 0, 1.0), NO_FIT, ("t: ndarray<float> [6]", "read-only", "flags.writeable")),
    "dates": Mistake(lambda s: s.module.square(np.array(["2020-01-01"], "datetime64[D]")), spy.BoundVariableException, ("argument 0", "datetime64", "array of numbers")),
    "masked": Mistake(lambda s: s.module.square(np.ma.masked_array(X, X > 2)), spy.BoundVariableException, ("argument 0", "masked", "filled(value)")),
    "a volume for an image": Mistake(
        lambda s: s.module.texel((0, 0), s.texture(type=spy.TextureType.texture_3d, depth=4)), NO_FIT, ("t: Texture<3d", "Texture2D", "pass a texture of that type")
    ),
    "an image that is read only": Mistake(lambda s: s.module.paint((0, 0), s.texture(usage=READ)), NO_FIT, ("t: Texture<2d", "TextureUsage.unordered_access")),
    "random numbers of three": Mistake(lambda s: s.module.place(spy.rand_float(0, 1, 3)), spy.KernelGenException, ("second::place", "rand_float of 3 components", "2 components")),
    "a tensor of another device": Mistake(
        lambda s: s.module.square(spy.Tensor.zeros(spy.create_device("null"), (6,), "float")), ValueError, ("second::square", "argument x", "another device (null)", "from_numpy(device")
    ),
    # modifiers
    "more maps than arguments": Mistake(lambda s: s.module.square.map((0,), (1,))(X), ValueError, ("second::square", "map has 2 entries", "1 positional argument", "map(x=(0,))")),
    "a map of a number": Mistake(lambda s: s.module.square.map(0), ValueError, ("second::square: map", "0", "write map((0,))")),
    "a map of a half": Mistake(lambda s: s.module.square.map((0.5,)), ValueError, ("second::square: map", "(0.5,)", "ints")),
    "a map of no parameter": Mistake(lambda s: s.module.square.map(y=(0,))(X), ValueError, ("second::square", "'y' in map", "_result, x")),
    "a number for set": Mistake(lambda s: s.module.square.set(3), ValueError, ("second::square: Set requires a dict", "got int")),
    "a dict for write": Mistake(lambda s: s.module.square.write({"a": 1}), ValueError, ("second::square: write", "f(cursor)", "got dict", "set() takes values")),
    "a list too short for a global": Mistake(lambda s: s.module.square.set(k=[1.0])(X), ValueError, ("second::square: k", "Expected 3", "got 1")),
    "a field that a global lacks": Mistake(lambda s: s.module.square.set(g={"q": 1.0})(X), ValueError, ("second::square: g", "no field 'q'", "at, w")),
    "a number for constants": Mistake(lambda s: s.module.square.constants(3), ValueError, ("second::square: constants", "dict", "got int")),
    "one size for a group": Mistake(lambda s: s.module.square.thread_group_size(32), TypeError, ("second::square: thread_group_size", "(32, 1, 1)", "got 32")),
    "a number for Slang text": Mistake(lambda s: s.module.square.prelude(3), TypeError, ("second::square: prelude", "Slang text", "got int")),
    "an interface alone": Mistake(lambda s: s.module.square.type_conformances(["IShape"]), ValueError, ("second::square", "(interface name, type name)", "'IShape'")),
    "a conversion that is none": Mistake(lambda s: s.module.square.convert("all"), ValueError, ("second::square: convert", "'safe'", "got 'all'")),
    "a number for a stream": Mistake(lambda s: s.module.square.cuda_stream(0), ValueError, ("second::square: Expected a CUDA stream handle", "got int", "from_cuda_stream")),
    "a tile too large": Mistake(lambda s: s.module.square.call_group_shape((64, 64))(np.ones((2, 2), np.float32)), spy.KernelGenException, ("call_group_shape [64, 64]", "4096", "1024")),
    "a result kept as a list": Mistake(lambda s: s.module.square.return_type(list)(X), ValueError, ("second::square", "'list'", "'numpy'")),
    "a name that a prepared call lacks": Mistake(lambda s: s.module.add.prepare(s.tensor, s.tensor).set(c=1.0), TypeError, ("second::add: set", "no argument 'c'", "a, b")),
    "a path to link": Mistake(
        lambda s: spy.Module.load_from_source(s.device, "linked", "float f() { return 1; }", link="other.slang"), TypeError, ("Module 'linked'", "'link'", "'other.slang'", "load_from_file(device, path)")
    ),
    "macros by another name": Mistake(lambda s: spy.loadModule("k.slang", define={"A": 1}), TypeError, ("loadModule()", "'define'", "did you mean 'defines'?", "includePaths")),  # type: ignore
    # dispatches, encoders, memory
    "a dispatch backwards": Mistake(lambda s: s.module.entry.dispatch(-1), ValueError, ("dispatch", "'thread_count'", "got -1")),
    "a dispatch in four dimensions": Mistake(lambda s: s.module.entry.dispatch((1, 1, 1, 1)), ValueError, ("'thread_count'", "one to three", "(1, 1, 1, 1)")),
    "a number for a struct": Mistake(lambda s: s.module.entry.dispatch(4, b=s.buffer(), n=1, p=3.0), TypeError, ("second::entry: p", "dict for P", "3.0 (float)")),
    "an array to fill": Mistake(lambda s: s.module.entry.dispatch(4, b=X, n=1, p={"w": 1.0}), ValueError, ("second::entry", "'b'", "pass a Tensor")),
    "a call after the end": Mistake(lambda s: s.module.square.append_to(_finished(s), X, _result=s.tensor), RuntimeError, ("second::square", "finished", "new command encoder")),
    "an encoder submitted": Mistake(lambda s: s.device.submit_command_buffer(s.encoder()), TypeError, ("submit", "CommandEncoder", "finish()")),
    "a copy past the end": Mistake(lambda s: s.encoder().copy_buffer(s.buffer(), 0, s.buffer(), 60, 32), IndexError, ("copy_buffer 'src'", "size (32)", "64")),
    "a texture of no format": Mistake(lambda s: s.device.create_texture(width=4, height=4), ValueError, ("create_texture", "slangpy.Format")),
    "too many mips": Mistake(lambda s: s.texture(mip_count=20), ValueError, ("create_texture", "mip count (20)", "at most 3")),
    "texels of three channels": Mistake(lambda s: s.texture(data=np.zeros((4, 4, 3), np.float32)), ValueError, ("create_texture 'data'", "(4, 4, 3)", "[4, 4, 4]")),
    "a filter misspelt": Mistake(lambda s: s.device.create_sampler(min_filter="linaer"), TypeError, ("create_sampler 'min_filter'", "TextureFilteringMode.linear", "'linaer'")),
    "a size as text": Mistake(lambda s: s.buffer(size="64"), TypeError, ("create_buffer 'size'", "an int", "'64' (str)")),
    "pixels by a wrong name": Mistake(lambda s: spy.Bitmap(np.zeros((2, 2, 3), np.uint8)).convert("rgbx"), ValueError, ("Bitmap.convert 'pixel_format'", "such as rgb", "'rgbx'")),  # type: ignore
    "a callback that is none": Mistake(lambda s: s.device.register_shader_hot_reload_callback(3), TypeError, ("'callback'", "a function", "got 3")),
    # cursors
    "a field misspelt": Mistake(lambda s: s.cursor()[0].ww, AttributeError, ("P has no field 'ww'", "at, w")),
    "an element too far": Mistake(lambda s: s.cursor()[5], IndexError, ("Element 5", "2 elements")),
    "text for a field": Mistake(lambda s: setattr(s.cursor()[0], "w", "x"), TypeError, ("w: expected a number for float", "'x' (str)")),
    "an array of one": Mistake(lambda s: s.cursor("Pair")[0].write({"a": [{"w": 1.0}]}), ValueError, ("a: ", "Expected 2", "got 1")),
    # scenes
    "points of the plane": Mistake(lambda s: rays.Mesh(V[:, :2], TRIANGLES), ValueError, ("Mesh: vertices", "(n, 3)", "(3, 2)")),
    "a vertex that is not there": Mistake(lambda s: rays.Scene(s.device, rays.Mesh(V, TRIANGLES + 7)), ValueError, ("Mesh 0", "vertices [7, 8, 9]", "3")),
    "a file that is not there": Mistake(lambda s: rays.load("/is/not/there.obj"), FileNotFoundError, ("rays.load: 'path'", "/is/not/there.obj")),
    "a file that is no mesh": Mistake(lambda s: rays.load(__file__), ValueError, ("rays.load", Path(__file__).name, "cannot be read by trimesh")),
    "a scene of a file's name": Mistake(lambda s: rays.Scene(s.device, "bunny.obj"), TypeError, ("Scene: items", "got str", "from_trimesh")),  # type: ignore
    "a scene that keeps nothing": Mistake(lambda s: s.scene().refit(V), RuntimeError, ("Scene.refit", "updatable=True")),
    # networks
    "an activation misspelt": Mistake(lambda s: s.network(activation="relo"), ValueError, ("Network: activation", "relu", "'relo'")),
    "inputs of three columns": Mistake(lambda s: s.network()(np.zeros((4, 3), np.float32)), ValueError, ("Network: x", "(n, 2)", "(4, 3)")),
    "text for inputs": Mistake(lambda s: s.network()("x"), TypeError, ("Network: x", "(n, 2)", "'x'")),
    "text for a rate": Mistake(lambda s: _trained(s, "fast"), ValueError, ("Adam.step: rate", "above 0", "'fast'")),
    # widgets
    "a label for a parent": Mistake(lambda s: ui.SliderFloat("x"), TypeError, ("SliderFloat 'parent'", "a widget", "'x'")),  # type: ignore
    "text for a slider": Mistake(lambda s: ui.SliderFloat(ui.Screen(), "x", value="a"), TypeError, ("SliderFloat 'value'", "a number", "'a'")),
    "one text for items": Mistake(lambda s: ui.ComboBox(ui.Screen(), "x", items="abc"), TypeError, ("ComboBox 'items'", "list of texts", "write ['abc']")),
    "a callback of a button": Mistake(lambda s: ui.Button(ui.Screen(), "x", callback=3), TypeError, ("Button 'callback'", "a function or None", "got 3")),  # type: ignore
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_message(name: str, s: Subject) -> None:
    if "trimesh" in "".join(MISTAKES[name].words) + name or "rays.load" in MISTAKES[name].words[0]:
        pytest.importorskip("trimesh")
    with pytest.raises(MISTAKES[name].kind) as error:
        MISTAKES[name].make(s)
    text = str(error.value)
    assert all(word in text for word in MISTAKES[name].words), text


def test_there_are_fifty() -> None:
    assert len(MISTAKES) >= 50


def test_formats_by_name(s: Subject) -> None:
    image: Any = spy.Bitmap(np.zeros((2, 2, 3), np.uint8))
    assert image.convert("rgba").pixel_format == spy.Bitmap.PixelFormat.rgba


def test_what_widgets_set_they_declare() -> None:
    slider = ui.SliderFloat(ui.Screen(), "x", value=1.0, min=0, max=2)
    slider.max = 3
    assert slider.max == 3
    for kind in (ui.DragInt, ui.InputFloat, ui.ListBox, ui.InputText, ui.CheckBox, ui.ProgressBar, ui.Text):
        kind(ui.Screen())
