"""Texels that calls write, and textures as results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from calls_support import array, load, tensor
from texture_support import (
    FORMATS_IN_GATE,
    LAYERS,
    READ,
    SIZES,
    WRITE,
    F,
    T,
    decode,
    encode,
    filled,
    host_dtype,
    layers_of,
    made,
    plain_formats,
    random_texels,
    supports,
)
from tiers import gate

import slangpy as spy

pytestmark = pytest.mark.needs_kernels

Resolve, Shape = spy.ResolveException, spy.ShapeError


@pytest.fixture
def m(device: Any) -> Any:
    return load(device, "textures")


# --- writing


@pytest.mark.elsewhere(
    "rgba32_float", "rg16_float", "r32_uint", "rgba16_sint", "rgba8_unorm", "r16_snorm", "rgba8_unorm_srgb"
)
@pytest.mark.parametrize("format_", gate(plain_formats(), lambda f: f.name in FORMATS_IN_GATE), ids=lambda f: f.name)
def test_stores_convert_to_the_format(device: Any, m: Any, format_: Any) -> None:
    if not supports(device, format_, spy.FormatSupport.shader_uav_store):
        pytest.skip("format cannot be stored")
    info = spy.get_format_info(format_)
    texture = made(device, T.texture_2d, format_, (3, 5))
    dtype = host_dtype(format_)
    channels = [info.channel_count] if info.channel_count > 1 else [1]
    if info.type in (spy.FormatType.uint, spy.FormatType.sint):
        values = random_texels(format_, (3, 5, *channels)).astype(np.uint32 if dtype.kind == "u" else np.int32)
    else:
        values = (np.random.default_rng(2).random((3, 5, *channels)) * 3 - 1.5).astype(np.float32)
        values.reshape(-1)[:4] = (0, 1, -1, 0.5)
    given = m.any_vector.map(
        "vector<" + {"u": "uint", "i": "int", "f": "float"}[values.dtype.kind] + f",{channels[0]}>"
    )
    assert given(values, _result=texture) is texture
    expected = encode(format_, values.astype(np.float64) if values.dtype.kind == "f" else values)
    got = texture.to_numpy().reshape(expected.shape)
    if dtype.kind == "f":
        np.testing.assert_allclose(got, expected, rtol=2e-3 if dtype.itemsize == 2 else 1e-6)
    else:  # a tie may go either way
        off = 0 if info.type in (spy.FormatType.uint, spy.FormatType.sint) else 1
        assert np.max(np.abs(got.astype(np.int64) - expected.astype(np.int64))) <= off
        assert np.mean(got != expected) < 0.2  # drivers round halves either way
    again = m.any_vector(texture, _result="numpy")
    np.testing.assert_allclose(again, decode(format_, got), rtol=1e-6, atol=4e-3 if info.is_srgb_format() else 1e-6)


@pytest.mark.parametrize(
    "format_",
    gate(
        [F.rgba32_float, F.rgba16_float, F.rgba8_unorm, F.rgba16_snorm, F.rgb10a2_unorm, F.bgra8_unorm],
        lambda format_: format_ in (F.rgba16_float, F.rgb10a2_unorm, F.bgra8_unorm),
    ),
)
def test_inout_reads_and_writes_the_texel(device: Any, m: Any, format_: Any) -> None:
    if not supports(device, format_, spy.FormatSupport.shader_uav_store | spy.FormatSupport.shader_uav_load):
        pytest.skip("format cannot be stored")
    values = np.random.default_rng(5).random((3, 4, 4)).astype(np.float32)
    texture = made(device, T.texture_2d, format_, (3, 4))
    m.any_vector(spy.Tensor.from_numpy(device, values, target_slang_dtype="float4"), _result=texture)
    before = m.any_vector(texture, _result="numpy")
    step = {F.rgb10a2_unorm: 1 / 3, F.rgba8_unorm: 1 / 255, F.bgra8_unorm: 1 / 255}.get(format_, 1e-3)
    np.testing.assert_allclose(before, values, atol=step)
    m.halve4(texture)
    np.testing.assert_allclose(m.any_vector(texture, _result="numpy"), before / 2, atol=step)


@pytest.mark.elsewhere("rgba8_unorm")
@pytest.mark.parametrize(
    "type_", [T.texture_1d, T.texture_1d_array, T.texture_2d, T.texture_2d_array, T.texture_3d], ids=lambda t: t.name
)
@pytest.mark.parametrize("format_", [F.rgba32_float, F.rgba8_unorm], ids=lambda f: f.name)
def test_every_type_is_written(device: Any, m: Any, type_: Any, format_: Any) -> None:
    size = SIZES[type_]
    texture, data = filled(device, type_, size, format_, array_length=LAYERS.get(type_, 1))
    m.halve4(texture)
    expected = encode(format_, decode(format_, data) / 2)
    np.testing.assert_allclose(
        layers_of(texture).astype(np.float64), expected, atol=0 if format_ is F.rgba32_float else 1
    )


def test_writing_to_mips_and_layers_leaves_the_rest(device: Any, m: Any) -> None:
    texture = made(device, T.texture_2d_array, F.rgba32_float, (6, 8), array_length=4, mip_count=3)
    base, half = random_texels(F.rgba32_float, (4, 6, 8, 4)), random_texels(F.rgba32_float, (4, 3, 4, 4), 1)
    for layer in range(4):
        texture.copy_from_numpy(base[layer], layer=layer)
        texture.copy_from_numpy(half[layer], layer=layer, mip=1)
        texture.copy_from_numpy(np.full((1, 2, 4), 7, np.float32), layer=layer, mip=2)
    m.add1(texture.create_view(mip=1, mip_count=1, layer=1, layer_count=2))
    half[1:3] += 1
    np.testing.assert_array_equal(layers_of(texture), base)
    np.testing.assert_array_equal(layers_of(texture, 1), half)
    np.testing.assert_array_equal(layers_of(texture, 2), 7)
    m.ramp(spy.grid((6, 8)), texture)  # every layer
    rows, columns = np.mgrid[0:6, 0:8]
    np.testing.assert_array_equal(layers_of(texture)[..., 0], np.broadcast_to(columns, (4, 6, 8)))
    np.testing.assert_array_equal(layers_of(texture)[..., 1], np.broadcast_to(rows, (4, 6, 8)))
    np.testing.assert_array_equal(layers_of(texture, 1), half)


@pytest.mark.parametrize("type_", [T.texture_1d, T.texture_1d_array, T.texture_3d], ids=lambda t: t.name)
def test_views_of_other_types_are_written(device: Any, m: Any, type_: Any) -> None:
    size = {T.texture_3d: (4, 6, 8)}.get(type_, (8,))
    texture = made(device, type_, F.rg32_float, size, array_length=LAYERS.get(type_, 1), mip_count=2)
    level = tuple(s // 2 for s in size)
    base = random_texels(F.rg32_float, (texture.layer_count, *size, 2))
    for layer in range(texture.layer_count):
        texture.copy_from_numpy(base[layer], layer=layer)
        texture.copy_from_numpy(np.full((*level, 2), 5, np.float32), layer=layer, mip=1)
    first = texture.layer_count - 1
    m.halve2(texture.create_view(mip=1, layer=first))
    expected = np.full((texture.layer_count, *level, 2), 5.0)
    expected[first:] = 2.5
    np.testing.assert_array_equal(layers_of(texture, 1), expected)
    np.testing.assert_array_equal(layers_of(texture), base)


def test_stores_that_lose_nothing_need_no_convert(device: Any, m: Any) -> None:
    texture = made(device, T.texture_1d, F.rgba16_float, (4,))
    m.put_half(array(4), texture)
    np.testing.assert_array_equal(texture.to_numpy(), np.repeat(array(4)[:, None], 4, 1))
    small = made(device, T.texture_1d, F.r32_uint, (4,))
    m.put_int(np.array([1, -1, 2, 3], np.int32), small)
    np.testing.assert_array_equal(small.to_numpy(), np.array([1, -1, 2, 3], np.int32).view(np.uint32))
    with pytest.raises(Resolve):
        m.put_int(array(4, dtype=np.int32), made(device, T.texture_1d, F.r32_float, (4,)))


def test_dict_outputs(device: Any, m: Any) -> None:
    color, weight = made(device, T.texture_1d, F.rgba8_unorm, (4,)), tensor(device, 4)
    m.put_pixel(np.array([0, 0.2, 0.6, 1], np.float32), {"color": color, "weight": weight})
    np.testing.assert_array_equal(color.to_numpy()[:, 0], [0, 51, 153, 255])
    np.testing.assert_allclose(weight.to_numpy(), [0, 0.6, 1.8, 3], rtol=1e-6)


def test_read_only_textures_are_not_written(device: Any, m: Any) -> None:
    texture, _ = filled(device, T.texture_2d, (3, 4), usage=READ)
    for call in (
        lambda: m.add1(texture),
        lambda: m.ramp(spy.grid((3, 4)), texture),
        lambda: m.twice4(array(3, 4, 4), _result=texture),
        lambda: m.add1(texture.create_view(layer=0)),
    ):
        with pytest.raises(Resolve, match="Cannot write to read-only texture"):
            call()
    cube, _ = filled(device, T.texture_cube, (4, 4), usage=READ)
    with pytest.raises(Resolve, match="read only"):
        m.add1(cube)
    if supports(device, F.rgba8_unorm_srgb, spy.FormatSupport.shader_uav_store):
        return
    view = made(device, T.texture_2d, F.rgba8_unorm, (3, 4)).create_view(format=F.rgba8_unorm_srgb)
    for call in (lambda: m.add1(view), lambda: m.store(spy.grid((3, 4)), spy.float4(1), view)):
        with pytest.raises(Resolve, match="does not store rgba8_unorm_srgb"):
            call()


def test_one_texture_as_input_and_output(device: Any, m: Any) -> None:
    texture, data = filled(device, T.texture_2d, (3, 4))
    m.twice4(texture, _result=texture)
    np.testing.assert_array_equal(texture.to_numpy(), 2 * data[0])
    a, first = filled(device, T.texture_2d, (3, 4), F.r32_float)
    b, second = filled(device, T.texture_2d, (3, 4), F.r32_float, seed=9)
    m.swap(a, b)
    np.testing.assert_array_equal(a.to_numpy(), second[0])
    np.testing.assert_array_equal(b.to_numpy(), first[0])


def test_the_texture_takes_part_in_the_shape(device: Any, m: Any) -> None:
    texture = made(device, T.texture_2d, F.rgba32_float, (3, 4))
    with pytest.raises(Shape, match="Shape mismatch"):
        m.twice4(array(5, 4), _result=texture)
    m.twice4(array(4, 4), _result=texture)  # broadcast over the rows
    np.testing.assert_array_equal(texture.to_numpy(), np.broadcast_to(2 * array(4, 4), (3, 4, 4)))
    m.twice4.map(v=(0, 1), _result=(1, 0))(
        v=texture, _result=(turned := made(device, T.texture_2d, F.rgba32_float, (4, 3)))
    )
    np.testing.assert_array_equal(turned.to_numpy(), np.broadcast_to(4 * array(4, 1, 4), (4, 3, 4)))


def test_recorded_calls(device: Any, m: Any) -> None:
    texture, data = filled(device, T.texture_2d, (3, 4))
    out = made(device, T.texture_2d, F.rgba32_float, (3, 4), data=np.zeros((3, 4, 4), np.float32))
    encoder = device.create_command_encoder()
    m.twice4.append_to(encoder, texture, _result=out)
    m.add1.append_to(encoder, out)
    np.testing.assert_array_equal(out.to_numpy(), np.zeros((3, 4, 4)))
    device.submit_command_buffer(encoder.finish())
    np.testing.assert_array_equal(out.to_numpy(), 2 * data[0] + 1)
    encoder = device.create_command_encoder()
    assert m.twice4.return_type("texture").append_to(encoder, texture) is None
    device.submit_command_buffer(encoder.finish())


# --- textures as results

RESULTS = {
    "r_float": (F.r32_float, lambda i: i + 0.5), "r_float2": (F.rg32_float, lambda i: (i, -i)),
    "r_float4": (F.rgba32_float, lambda i: (i, -i, 1, 2)), "r_half": (F.r16_float, lambda i: i + 0.5),
    "r_half2": (F.rg16_float, lambda i: (i, -i)), "r_half4": (F.rgba16_float, lambda i: (i, -i, 1, 2)),
    "r_uint": (F.r32_uint, lambda i: i + 3000000000), "r_uint4": (F.rgba32_uint, lambda i: (i, 1, 2, 3)),
    "r_int": (F.r32_sint, lambda i: -i), "r_int2": (F.rg32_sint, lambda i: (-i, i)),
    "r_u16": (F.r16_uint, lambda i: i + 60000), "r_u16x4": (F.rgba16_uint, lambda i: (i, 1, 2, 65535)),
    "r_i16": (F.r16_sint, lambda i: -i - 30000), "r_u8": (F.r8_uint, lambda i: i + 200),
    "r_i8x2": (F.rg8_sint, lambda i: (-i, i)),
}  # fmt: skip


@pytest.mark.elsewhere("r_float2", "r_half4", "r_u16", "r_i8x2")
@pytest.mark.parametrize("name", RESULTS)
def test_result_formats(device: Any, m: Any, name: str) -> None:
    format_, expected = RESULTS[name]
    numbers = array(2, 3, dtype=np.int32)
    result = m[name](numbers, _result="texture")
    assert isinstance(result, spy.Texture) and result.format is format_ and result.type is T.texture_2d
    assert (result.width, result.height) == (3, 2)
    got = result.to_numpy()
    assert got.dtype == host_dtype(format_)
    values = [[expected(int(i)) for i in row] for row in numbers]
    np.testing.assert_array_equal(got, np.array(values, dtype=got.dtype))


def test_result_types_by_rank(device: Any, m: Any) -> None:
    for shape, type_ in (((4,), T.texture_1d), ((2, 4), T.texture_2d), ((3, 2, 4), T.texture_3d)):
        numbers = array(*shape, dtype=np.int32)
        for result in (
            m.r_float4(numbers, _result="texture"),
            m.r_float4(numbers, _result=spy.Texture),
            m.r_float4.return_type("texture")(numbers),
            m.r_float4.return_type(spy.Texture)(numbers),
        ):
            assert result.type is type_
            assert result.desc.usage & (READ | WRITE) == READ | WRITE
            np.testing.assert_array_equal(result.to_numpy()[..., 0], numbers)
    result = m.twice4(result, _result="texture")  # from texture to texture
    np.testing.assert_array_equal(result.to_numpy()[..., 0], 2 * numbers)


def test_three_components_where_the_device_stores_them(device: Any, m: Any) -> None:
    numbers = array(4, dtype=np.int32)
    if supports(device, F.rgb32_float, spy.FormatSupport.shader_uav_store):
        assert m.r_float3(numbers, _result="texture").format is F.rgb32_float
        return
    with pytest.raises(Resolve, match="can't be used as a texel type here.*rgb32_float"):
        m.r_float3(numbers, _result="texture")


@pytest.mark.one
@pytest.mark.parametrize("name", ["r_double", "r_bool", "r_int64", "r_half3", "r_matrix", "r_struct", "r_array"])
def test_results_that_are_no_texels(device: Any, m: Any, name: str) -> None:
    with pytest.raises(Resolve, match=f"'{name}'.*can't be used as a texel type"):
        m[name](array(4, dtype=np.int32), _result="texture")


def test_ranks_that_no_texture_has(device: Any, m: Any) -> None:
    for value in (1, array(1, 1, 1, 4, dtype=np.int32)):
        with pytest.raises(Resolve, match="call must be 1-D to 3-D"):
            m.r_float4(value, _result="texture")
    with pytest.raises(ValueError, match="no sizes of 0"):
        m.r_float4(array(0, dtype=np.int32), _result="texture")
    assert m.put_pixel(1.0, {}, _result="texture") is None  # void: text is ignored
