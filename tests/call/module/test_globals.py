"""Globals of a module: every kind of value for `set`, and what is never set."""

from __future__ import annotations

import enum
import warnings
from typing import Any

import numpy as np
import pytest
from calls_support import array, plain, source, tensor

import slangpy as spy

pytestmark = [
    pytest.mark.needs_kernels,
    pytest.mark.elsewhere(
        "test_numbers", "vector0", "grid0", "test_arrays", "rows0", "test_nested_arrays", "test_structs_and_blocks",
        "test_blocks_with_resources", "test_buffers", "test_tensors", "test_tensors_in_blocks_and_arrays",
        "test_a_recorded_call_needs_them_too", "test_textures_and_samplers", "of_scene-arguments3-scene.data",
    ),
]  # fmt: skip

SOURCE = """
enum Mode { off, on = 5 }
struct Light { float power; float3 tint; }
struct Scene { float scale; StructuredBuffer<float> data; Light light; }
uniform bool flag; uniform int whole; uniform uint positive; uniform float number; uniform half short_number;
uniform int64_t big; uniform double precise;
uniform Mode mode; uniform float3 tri; uniform int2 pair; uniform float2x3 grid; uniform float table[4]; uniform float3 rows[2];
uniform int nested[2][3]; uniform Light one;
ParameterBlock<Light> block; ConstantBuffer<Light> constant; ParameterBlock<Scene> scene;
StructuredBuffer<float> data; RWStructuredBuffer<float> sink; ByteAddressBuffer raw; StructuredBuffer<float> many[2];
uniform Tensor<float, 2> field; uniform RWTensor<float, 1> target;
struct Parts { Tensor<float, 1> first; int count; }
ParameterBlock<Parts> parts; uniform Parts loose; uniform DiffTensor<float, 1> slope; uniform Tensor<float, 1> both[2];
struct Own { StructuredBuffer<float> _data; int _shape; };
uniform Own own;

double numbers() { return whole + 10 * double(positive) + 100 * number + 1000 * short_number + double(big) + precise + (flag ? 0.5 : 0); }
int mode_value() { return int(mode); }
float vectors() { return tri.x + 10 * tri.y + 100 * tri.z + 1000 * pair.x + 10000 * pair.y; }
float3 grid_row(int i) { return grid[i]; }
float table_at(int i) { return table[i]; }
float rows_at(int i, int k) { return rows[i][k]; }
int nested_at(int i, int k) { return nested[i][k]; }
float structs(int i)
{
    if (i == 0) return one.power + 10 * one.tint.y;
    if (i == 1) return block.power + 10 * block.tint.y;
    return constant.power + 10 * constant.tint.y;
}
float of_scene(int i) { return scene.scale * scene.data[i] + scene.light.tint.z; }
float read(int i) { return data[i]; }
float read_raw(int i) { return asfloat(raw.Load(4 * i)); }
float read_many(int k, int i) { return many[k][i]; }
void write(int i, float x) { sink[i] = x; }
float field_at(int i, int k) { return field[i, k]; }
void put(int i, float x) { target[i] = x; }
float of_parts(int i) { return parts.first[i] + parts.count; }
float of_loose(int i) { return loose.first[i]; }
int count_of_loose() { return loose.count; }
float of_slope(int i) { return slope[i]; }
float of_both(int i, int k) { return both[i][k]; }
int of_own() { return own._shape; }
float untouched(float x) { return x + number; }
"""
TEXTURES = """
Texture2D<float4> image; SamplerState linear_sampler; RWTexture2D<float> canvas;
float4 texel(int2 at) { return image[at]; }
float4 sampled(float2 uv) { return image.SampleLevel(linear_sampler, uv, 0); }
void paint(int2 at, float x) { canvas[at] = x; }
float none(float x) { return x; }
"""


@pytest.fixture
def module(device: Any) -> Any:
    return source(device, "spec_globals", SOURCE)


class Mode(enum.IntEnum):
    off = 0
    on = 5


def test_numbers(module: Any) -> None:
    values = {
        "flag": True,
        "whole": -3,
        "positive": 2,
        "number": 0.5,
        "short_number": 2.0,
        "big": 2**40,
        "precise": 0.25,
    }
    assert module.numbers.set(values)() == -3 + 20 + 50 + 2000 + 2**40 + 0.25 + 0.5
    scalars = {"whole": np.int16(-3), "positive": np.uint8(2), "number": np.float64(0.5), "precise": 1}
    assert module.numbers.set(scalars)() == -3 + 20 + 50 + 1


@pytest.mark.parametrize("value", [Mode.on, 5, np.int32(5)])
def test_enums(module: Any, value: Any) -> None:
    assert module.mode_value.set(mode=value)() == 5


@pytest.mark.parametrize("vector", [spy.float3(1, 2, 3), [1, 2, 3], (1.0, 2.0, 3.0), np.array([1, 2, 3], np.float32)])
@pytest.mark.parametrize("pair", [spy.int2(4, 5), [4, 5], np.array([4, 5], np.int32)])
def test_vectors(module: Any, vector: Any, pair: Any) -> None:
    assert module.vectors.set(tri=vector, pair=pair)() == 54321


@pytest.mark.parametrize("grid", [spy.float2x3(0, 1, 2, 3, 4, 5), array(2, 3), [[0, 1, 2], [3, 4, 5]]])
def test_matrices(module: Any, grid: Any) -> None:
    assert plain(module.grid_row.set(grid=grid)(1)) == [3, 4, 5]


@pytest.mark.parametrize("values", [[1, 2, 3, 4], (1.0, 2.0, 3.0, 4.0), np.array([1, 2, 3, 4], np.float32)])
def test_arrays(module: Any, values: Any) -> None:
    assert [module.table_at.set(table=values)(i) for i in range(4)] == [1, 2, 3, 4]


@pytest.mark.parametrize("rows", [array(2, 3), [[0, 1, 2], [3, 4, 5]], [spy.float3(0, 1, 2), spy.float3(3, 4, 5)]])
def test_arrays_of_vectors(module: Any, rows: Any) -> None:
    assert [module.rows_at.set(rows=rows)(i, k) for i in range(2) for k in range(3)] == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("values", [np.arange(6, dtype=np.int32).reshape(2, 3), [[0, 1, 2], [3, 4, 5]]])
def test_nested_arrays(module: Any, values: Any) -> None:
    assert [module.nested_at.set(nested=values)(i, k) for i in range(2) for k in range(3)] == [0, 1, 2, 3, 4, 5]


def test_structs_and_blocks(module: Any) -> None:
    light = {"power": 3.0, "tint": spy.float3(1, 2, 3)}
    for i, name in enumerate(("one", "block", "constant")):
        assert module.structs.set({name: light})(i) == 23
        assert module.structs.set({name: {"tint": [0, 1, 0]}})(i) == 10  # the rest reads as zero


def test_parts_are_kept_from_earlier_sets(module: Any) -> None:
    node = module.structs.set({"block": {"power": 3.0, "tint": spy.float3(1, 2, 3)}})
    assert node.set(block={"power": 1.0})(1) == 21
    assert node(1) == 23


def test_blocks_with_resources(module: Any, device: Any) -> None:
    data = tensor(device, 4)
    values = {"scale": 2.0, "data": data.storage, "light": {"tint": spy.float3(0, 0, 100)}}
    assert module.of_scene.set(scene=values)(3) == 106
    assert module.of_scene.set(scene={**values, "data": data})(3) == 106


def test_buffers(module: Any, device: Any) -> None:
    data, out = tensor(device, 4), spy.Tensor.zeros(device, (4,), dtype="float")
    for given in (data.storage, data):
        assert module.read.set(data=given)(2) == 2
        assert module.read_raw.set(raw=given)(3) == 3
    module.write.set(sink=out.storage)([0, 2], [5.0, 6.0])
    assert plain(out) == [5, 0, 6, 0]
    many = module.read_many.set(many=[data, out])
    assert [many(k, i) for k in range(2) for i in range(3)] == [0, 1, 2, 5, 0, 6]


def test_tensors(module: Any, device: Any) -> None:
    field, out = tensor(device, 2, 3), spy.Tensor.zeros(device, (4,), dtype="float")
    assert module.field_at.set(field=field)(1, 2) == 5
    assert module.field_at.set(field=field.permute(1, 0))(2, 1) == 5  # a view, through its strides
    assert [module.field_at.set(field=field[1:, 1:])(0, i) for i in range(2)] == [4, 5]  # and from its first element on
    module.put.set(target=out)([0, 3], [1.0, 2.0])
    assert plain(out) == [1, 0, 0, 2]


def test_functions_are_asked_each_time(module: Any) -> None:
    asked: list[Any] = []

    def values(context: Any) -> dict[str, Any]:
        asked.append(context)
        return {"number": float(len(asked))}

    node = module.untouched.set(values)
    assert [node(0.0) for _ in range(3)] == [1, 2, 3]


def test_numbers_never_set_read_as_zero(module: Any) -> None:
    assert module.untouched(2.0) == 2
    assert module.numbers() == 0
    assert module.structs(1) == 0 and module.vectors() == 0
    assert module.untouched.set(whole=3)(2.0) == 2


@pytest.mark.parametrize(
    ("name", "arguments", "missing"),
    [("read", (1,), "data"), ("read_raw", (1,), "raw"), ("write", (1, 2.0), "sink"), ("of_scene", (1,), "scene.data"),
     ("field_at", (0, 0), "field"), ("put", (0, 1.0), "target"), ("of_parts", (0,), "parts.first"),
     ("of_loose", (0,), "loose.first"), ("of_slope", (0,), "slope"), ("of_both", (0, 0), "both[0]")],
)  # fmt: skip
def test_a_resource_never_set_raises(module: Any, name: str, arguments: Any, missing: str) -> None:
    for node in (module[name], module[name].set(number=1.0), module[name].write(lambda cursor: None)):
        with pytest.raises(RuntimeError) as raised:
            node(*arguments)
        text = str(raised.value)
        assert f"spec_globals::{name}" in text and f"'{missing}'" in text and ".set(" in text


def test_each_element_of_an_array_of_resources_is_needed(module: Any, device: Any) -> None:
    node = module.read_many.write(lambda cursor: cursor["many"][0].write(tensor(device, 3).storage))
    with pytest.raises(RuntimeError, match=r"many\[1\]"):
        node(0, 1)


def test_tensors_in_blocks_and_arrays(module: Any, device: Any) -> None:
    data = tensor(device, 3)
    assert module.of_parts.set(parts={"first": data, "count": 10})(2) == 12
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert module.count_of_loose.set(loose={"count": 4})() == 4  # the tensor beside it is not read
    with pytest.raises(RuntimeError, match=r"both\[1\]"):
        module.of_both.write(lambda cursor: cursor["both"][0].write(data))(0, 1)
    assert module.of_both.set(both=[data, data[1:]])(1, 1) == 2
    assert module.of_slope.set(slope=data)(2) == 2
    assert module.of_own.set(own={"_shape": 3})() == 3  # a struct of the user's


def test_a_recorded_call_needs_them_too(module: Any, device: Any) -> None:
    encoder = device.create_command_encoder()
    with pytest.raises(RuntimeError, match="'data'"):
        module.read.append_to(encoder, 1)


def test_resources_of_other_functions_are_not_needed(module: Any) -> None:
    assert module.mode_value.set(mode=5)() == 5
    assert module.untouched([1.0, 2.0]).to_numpy().tolist() == [1, 2]


@pytest.mark.parametrize(
    ("values", "error", "text"),
    [
        ({"nope": 1}, ValueError, "no global named 'nope'"),
        ({"one": {"glow": 1}}, ValueError, "glow"),
        ({"whole": 1.5}, ValueError, "whole"),
        ({"positive": -1}, OverflowError, "positive"),
        ({"table": [1, 2]}, ValueError, "table"),
        ({"tri": [1, 2]}, (ValueError, TypeError), "tri"),
        ({"number": "text"}, TypeError, "number"),
        ({"data": 3.0}, TypeError, "data"),
    ],
)
def test_wrong_values(module: Any, values: Any, error: Any, text: str) -> None:
    with pytest.raises(error, match=text):
        module.untouched.set(values)(1.0)


def test_tensors_of_the_wrong_kind(module: Any, device: Any) -> None:
    with pytest.raises(ValueError, match="has 2 dimensions"):
        module.field_at.set(field=tensor(device, 3))(0, 0)
    with pytest.raises(ValueError, match="takes elements of float"):
        module.field_at.set(field=tensor(device, 2, 3, dtype=np.int32))(0, 0)
    with pytest.raises(ValueError, match="contiguous"):
        module.read.set(data=tensor(device, 4)[::2])(0)


def test_textures_and_samplers(device: Any) -> None:
    if device.info.type != spy.DeviceType.vulkan:
        pytest.skip("textures are tested on Vulkan")
    module = source(device, "spec_globals_textures", TEXTURES)
    usage = spy.TextureUsage.shader_resource | spy.TextureUsage.unordered_access
    host = array(2, 2, 4)
    image = device.create_texture(format=spy.Format.rgba32_float, width=2, height=2, usage=usage, data=host)
    assert plain(module.texel.set(image=image)(spy.int2(1, 0))) == [4, 5, 6, 7]
    sampler = device.create_sampler(
        min_filter=spy.TextureFilteringMode.linear, mag_filter=spy.TextureFilteringMode.linear
    )
    found = module.sampled.set(image=image, linear_sampler=sampler)(spy.float2(0.5, 0.5))
    np.testing.assert_allclose(plain(found), host.reshape(-1, 4).mean(0), rtol=1e-6)
    canvas = device.create_texture(format=spy.Format.r32_float, width=3, height=2, usage=usage)
    module.paint.set(canvas=canvas)([spy.int2(0, 1), spy.int2(2, 0)], [5.0, 7.0])
    assert canvas.to_numpy()[1, 0] == 5 and canvas.to_numpy()[0, 2] == 7
    assert module.none(2.0) == 2
    with pytest.raises(RuntimeError, match="'linear_sampler'"):
        module.sampled.set(image=image)(spy.float2(0.5, 0.5))
    with pytest.raises(RuntimeError, match="'image'"):
        module.texel(spy.int2(0, 0))


def test_set_takes_values_that_hold_themselves(device: Any) -> None:
    """They are refused by the call, as arguments are; copying them ends."""
    module = spy.Module.load_from_source(device, "holds_itself", "uniform float scale; float f(float x) { return x * scale; }")
    knot: dict[str, Any] = {}
    knot.update({name: [knot, knot] for name in "abcdefgh"})
    with pytest.raises((ValueError, TypeError, RuntimeError)):
        module.f.set(scale=knot)(1.0)


NAMESAKES = """
struct Node { float3 place; float scale; };
float* place; RWTensor<float, 1> data; uniform float scale; uniform float gain;
namespace inner { float* place; float get() { return *place; } }
struct Amplifier { float gain; float apply(float x) { return gain * x; } }
#define READ (*place)

float members(Node n) { return n.place.y * n.scale; }
float parameter(float data) { return data * 2; }
float local(float x) { float data = x, scale = 2; return data * scale; }
float before(float x) { float r = data[0]; float data = x; return data + r; }
float in_block(float x) { { float data = x; x += data; } return x + data[0]; }
float by_macro(float x) { return x + READ; }
float by_function(float x) { return x + inner::get(); }
float in_namespace(float x) { return x + *inner::place; }
float value(float x) { return scale * x; }
"""


@pytest.fixture
def namesakes(device: Any) -> Any:
    return spy.Module.load_from_source(device, "globals_namesakes", NAMESAKES)


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_fields_parameters_and_variables_with_the_name_of_a_global(namesakes: Any) -> None:
    assert namesakes.members({"place": (1, 2, 3), "scale": 4}) == 8
    assert namesakes.parameter(2.0) == 4 and namesakes.local(2.0) == 4
    assert namesakes.Amplifier.apply({"gain": 2.0}, 3.0) == 6


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("name", ["before", "in_block", "by_macro", "by_function", "in_namespace"])
def test_a_global_beside_its_namesake(namesakes: Any, name: str) -> None:
    kind = "data" if name in ("before", "in_block") else "place"
    with pytest.raises(RuntimeError, match=f"global '{kind}' .* was never set"):
        namesakes[name](1.0)


def test_a_value_that_was_never_set(namesakes: Any) -> None:
    with pytest.warns(RuntimeWarning, match="scale was never set: the function reads zeros"):
        assert namesakes.value(1.0) == 0
