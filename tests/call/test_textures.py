"""Textures as arguments and results: texel by texel, whole, and on devices that have none (spec/values.md 9)."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from calls_support import array, load, tensor

import slangpy as spy

pytestmark = pytest.mark.needs_kernels

F = spy.Format
T = spy.TextureType
READ = spy.TextureUsage.shader_resource
WRITE = spy.TextureUsage.unordered_access
Resolve, Bound, Shape = spy.ResolveException, spy.BoundVariableException, spy.ShapeError


@pytest.fixture
def m(device: Any) -> Any:
    if device.type is spy.DeviceType.cpu:
        pytest.skip("the cpu device has no textures; test_cpu_* say so")
    return load(device, "textures")


def made(device: Any, type_: Any, format_: Any, size: tuple[int, ...], usage: Any = READ | WRITE, **fields: Any) -> Any:
    """A texture of a size as NumPy has it: slowest first, without layers."""
    sizes = dict(zip(("width", "height", "depth"), reversed(size), strict=False))
    return device.create_texture(type=type_, format=format_, usage=usage, **sizes, **fields)


def layers_of(texture: Any, mip: int = 0) -> np.ndarray:
    return np.stack([texture.to_numpy(layer=k, mip=mip) for k in range(texture.layer_count)])


def filled(
    device: Any, type_: Any, size: tuple[int, ...], format_: Any = F.rgba32_float, seed: int = 0, **fields: Any
) -> Any:
    """A texture with random texels, and those: (layers, *size, channels)."""
    texture = made(device, type_, format_, size, **fields)
    info = spy.get_format_info(format_)
    channels = [info.channel_count] if info.channel_count > 1 else []
    data = random_texels(format_, (texture.layer_count, *size, *channels), seed)
    for layer in range(texture.layer_count):
        texture.copy_from_numpy(data[layer], layer=layer)
    return texture, data


def host_dtype(format_: Any) -> np.dtype:
    info = spy.get_format_info(format_)
    kind = {"float_": "f", "uint": "u", "unorm": "u", "unorm_srgb": "u", "sint": "i", "snorm": "i"}[name_of(info.type)]
    return np.dtype(f"{kind}{info.channel_bit_count[0] // 8}")


def name_of(kind: Any) -> str:
    return {"float": "float_"}.get(kind.name, kind.name)


def random_texels(format_: Any, shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    rng, dtype = np.random.default_rng(seed), host_dtype(format_)
    if dtype.kind == "f":
        return (rng.random(shape) * 8 - 4).astype(dtype)
    limits = np.iinfo(dtype)
    return rng.integers(limits.min, limits.max, shape, dtype, endpoint=True)


def decode(format_: Any, data: np.ndarray) -> np.ndarray:
    """What a kernel reads where the host stores `data`: float64, uint32 or int32."""
    kind = name_of(spy.get_format_info(format_).type)
    if kind in ("uint", "sint"):
        return data.astype(np.uint32 if kind == "uint" else np.int32)
    if kind == "float_":
        return data.astype(np.float64)
    value = np.maximum(data / np.iinfo(data.dtype).max, -1.0)
    if kind == "unorm_srgb":  # alpha is linear
        linear = np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)
        value = np.concatenate([linear[..., :3], value[..., 3:]], axis=-1)
    return value


def encode(format_: Any, values: np.ndarray) -> np.ndarray:
    """What the host finds where a kernel stored `values`."""
    kind, dtype = name_of(spy.get_format_info(format_).type), host_dtype(format_)
    if kind in ("unorm", "snorm", "unorm_srgb"):
        clamped = np.clip(values, 0.0 if dtype.kind == "u" else -1.0, 1.0)
        if kind == "unorm_srgb":
            curve = np.where(clamped <= 0.0031308, 12.92 * clamped, 1.055 * clamped ** (1 / 2.4) - 0.055)
            clamped = np.concatenate([curve[..., :3], clamped[..., 3:]], axis=-1)
        return np.rint(clamped * np.iinfo(dtype).max).astype(dtype)
    return values.astype(dtype)


def supports(device: Any, format_: Any, what: Any) -> bool:
    return (device.get_format_support(format_) & what) == what


def plain_formats() -> list[Any]:
    """Formats whose texels NumPy arrays hold channel by channel, in the order of the kernel's components."""
    found = []
    for format_ in F:
        if format_ is F.undefined:
            continue
        info = spy.get_format_info(format_)
        if info.is_compressed or info.is_depth or not info.has_equal_channel_bits() or info.name.startswith("b"):
            continue
        if info.channel_bit_count[0] in (8, 16, 32):
            found.append(format_)
    return found


SIZES = {T.texture_1d: (5,), T.texture_1d_array: (5,), T.texture_2d: (3, 4), T.texture_2d_array: (3, 4),
         T.texture_3d: (2, 3, 4), T.texture_cube: (4, 4), T.texture_cube_array: (2, 2)}  # fmt: skip
LAYERS = {T.texture_1d_array: 3, T.texture_2d_array: 3, T.texture_cube_array: 2}


def seen(type_: Any, data: np.ndarray) -> np.ndarray:
    """The layers of a texture as a call sees them."""
    if type_ is T.texture_cube_array:
        return data.reshape(-1, 6, *data.shape[1:])
    return data if type_ in LAYERS or type_ is T.texture_cube else data[0]


# --- reading


@pytest.mark.parametrize("type_", SIZES, ids=lambda t: t.name)
def test_every_type_is_read_texel_by_texel(device: Any, m: Any, type_: Any) -> None:
    usage = READ if "cube" in type_.name else READ | WRITE
    texture, data = filled(device, type_, SIZES[type_], usage=usage, array_length=LAYERS.get(type_, 1))
    expected = 2 * seen(type_, data)
    result = m.twice4(texture, _result="numpy")
    assert result.shape == expected.shape
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("format_", plain_formats(), ids=lambda f: f.name)
def test_texel_types_of_formats(device: Any, m: Any, format_: Any) -> None:
    if not supports(device, format_, spy.FormatSupport.shader_load | spy.FormatSupport.texture):
        pytest.skip("format not supported")
    texture, data = filled(device, T.texture_2d, (3, 5), format_, usage=READ)
    info = spy.get_format_info(format_)
    expected = decode(format_, data[0])
    scalar = {"u": "u", "i": "i"}.get(expected.dtype.kind, "float")
    result = m.any_vector(texture, _result="numpy")
    rounding = 4e-3 if info.is_srgb_format() else 1e-6
    if info.channel_count == 1:
        assert result.shape == (3, 5, 1)
        function = m.twice1 if scalar == "float" else m["same_" + scalar + "1"]
        plain = function(texture, _result="numpy")
        np.testing.assert_allclose(plain, expected * (2 if scalar == "float" else 1), rtol=1e-6, atol=rounding)
        expected = expected[..., None]
    np.testing.assert_allclose(result, expected, rtol=1e-6, atol=rounding)
    assert result.dtype == {"u": np.uint32, "i": np.int32}.get(scalar, np.float32)


@pytest.mark.parametrize("type_", SIZES, ids=lambda t: t.name)
def test_views_show_their_mip_and_layers(device: Any, m: Any, type_: Any) -> None:
    size = tuple(2 * s + 1 for s in SIZES[type_]) if "cube" not in type_.name else (8, 8)
    layered = LAYERS.get(type_, 1)
    texture = made(device, type_, F.rg32_float, size, READ, array_length=layered, mip_count=2)
    level = tuple(max(1, s >> 1) for s in size)
    data = random_texels(F.rg32_float, (texture.layer_count, *level, 2))
    for layer in range(texture.layer_count):
        texture.copy_from_numpy(data[layer], layer=layer, mip=1)
    np.testing.assert_array_equal(m.twice2(texture.create_view(mip=1), _result="numpy"), 2 * seen(type_, data))
    if layered > 1:
        first = 6 if type_ is T.texture_cube_array else 1
        view = texture.create_view(mip=1, layer=first)
        np.testing.assert_array_equal(m.twice2(view, _result="numpy"), 2 * seen(type_, data[first:]))
        one = texture.create_view(mip=1, layer=first, layer_count=6 if first == 6 else 1)
        np.testing.assert_array_equal(
            m.twice2(one, _result="numpy"), 2 * seen(type_, data[first : first + (6 if first == 6 else 1)])
        )


def test_a_view_has_its_own_format(device: Any, m: Any) -> None:
    texture, data = filled(device, T.texture_2d, (3, 4), F.r32_uint, usage=READ)
    view = texture.create_view(format=F.rgba8_uint)
    np.testing.assert_array_equal(m.same_u1(texture, _result="numpy"), data[0])
    np.testing.assert_array_equal(m.same_u4(view, _result="numpy"), data[0].view(np.uint8).reshape(3, 4, 4))


def test_broken_cube_array_view(device: Any, m: Any) -> None:
    texture, _ = filled(device, T.texture_cube_array, (2, 2), usage=READ, array_length=2)
    with pytest.raises(ValueError, match="no multiple of 6"):
        m.twice4(texture.create_view(layer=1))
    cube, data = filled(device, T.texture_cube, (2, 2), usage=READ)
    two = m.twice4(cube.create_view(layer=1, layer_count=2), _result="numpy")
    np.testing.assert_array_equal(two, 2 * data[1:3])


def test_broadcasting_and_maps(device: Any, m: Any) -> None:
    texture, data = filled(device, T.texture_2d, (3, 4))
    column, row_texels = filled(device, T.texture_2d, (1, 4), F.r32_float, seed=1)
    t = data[0].astype(np.float64)
    sums = t @ np.array([1, 2, 4, 8])
    s = np.arange(4, dtype=np.float32)
    np.testing.assert_allclose(m.weigh(texture, s, _result="numpy"), sums * s, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(
        m.weigh(texture, tensor(device, 2, 1, 1), _result="numpy"), [0 * sums, sums], rtol=1e-5, atol=1e-5
    )
    np.testing.assert_allclose(m.weigh(texture, column, _result="numpy"), sums * row_texels[0], rtol=1e-5, atol=1e-5)
    turned = m.twice4.map((1, 0))(texture, _result="numpy")
    np.testing.assert_array_equal(turned, 2 * data[0].transpose(1, 0, 2))
    outer = m.mix1.map((0, 1), (2, 3))(column, column, _result="numpy")
    one = row_texels[0].astype(np.float64)
    np.testing.assert_allclose(outer, one[:, :, None, None] + 10 * one[None, None], rtol=1e-5, atol=1e-5)
    square, values = filled(device, T.texture_2d, (4, 4), F.r32_float)
    np.testing.assert_array_equal(m.twice1.map((0, 0))(square, _result="numpy"), 2 * np.diagonal(values[0]))
    with pytest.raises(ValueError, match="Explicit vectorization raised exception"):
        m.twice4.map((0,))(texture)
    with pytest.raises(Shape, match="Shape mismatch"):
        m.weigh(texture, array(5))


def test_dict_fields_and_two_textures(device: Any, m: Any) -> None:
    texture, data = filled(device, T.texture_2d, (3, 4))
    weight, weights = filled(device, T.texture_2d, (3, 4), F.r16_float, seed=4)
    expected = (data[0, ..., 0] + 10 * data[0, ..., 1]) * weights[0]
    got = m.shade({"color": texture, "weight": weight}, _result="numpy")
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)
    got = m.shade.map({"color": (1, 0)})({"color": texture, "weight": 2.0}, _result="numpy")
    np.testing.assert_allclose(got, 2 * (data[0, ..., 0] + 10 * data[0, ..., 1]).T, rtol=1e-5, atol=1e-5)


def test_sizes_are_not_in_the_key(device: Any, m: Any) -> None:
    plans = set()
    for size in ((3, 4), (1, 1), (16, 3)):
        texture, data = filled(device, T.texture_2d, size)
        np.testing.assert_array_equal(m.twice4(texture, _result="numpy"), 2 * data[0])
        plans.add(m.twice4.debug_build_call_data(texture))
    assert len(plans) == 1
    plans.add(m.twice4.debug_build_call_data(texture.create_view(layer=0)))
    other, _ = filled(device, T.texture_2d, (3, 4), F.rgba16_float)
    plans.add(m.twice4.debug_build_call_data(other))
    assert len(plans) == 3


def test_generic_parameters(device: Any, m: Any) -> None:
    texture, data = filled(device, T.texture_2d, (3, 4), usage=READ)
    np.testing.assert_array_equal(m.any_float(texture, _result="numpy"), 2 * data[0])
    np.testing.assert_array_equal(m.any_number(texture, _result="numpy"), data[0])
    with pytest.raises(Resolve, match="Ambiguous call"):
        m.any_value(texture)
    np.testing.assert_array_equal(m.any_value.map((0, 1))(texture, _result="numpy"), data[0])
    np.testing.assert_array_equal(m.any_value.map("float4")(texture, _result="numpy"), data[0])


def test_whole_is_preferred_to_texels(device: Any, m: Any) -> None:
    texture, data = filled(device, T.texture_2d, (3, 4))
    np.testing.assert_array_equal(list(m.either(texture)), 100 * data[0, 0, 0])
    array_texture, data = filled(device, T.texture_2d_array, (3, 4), array_length=2)
    np.testing.assert_array_equal(m.either(array_texture, _result="numpy"), data)


def test_conversion_of_texels(device: Any, m: Any) -> None:
    texture, data = filled(device, T.texture_2d, (3, 4), F.rgba16_float)
    with pytest.raises(Resolve, match=re.escape("texels of rgba16_float are vector<float,4>")):
        m.of_half(texture)
    with pytest.raises(Resolve):
        m.of_half.convert("safe")(texture)  # float to half may lose digits
    np.testing.assert_array_equal(m.of_half.convert("any")(texture, _result="numpy"), data[0])
    ints, values = filled(device, T.texture_2d, (3, 4), F.r16_sint)
    with pytest.raises(Resolve):
        m.twice1(ints)
    with pytest.raises(Resolve):
        m.twice1.convert("safe")(ints)
    np.testing.assert_array_equal(m.twice1.convert("any")(ints, _result="numpy"), 2.0 * values[0])


def test_what_texels_do_not_bind_to(device: Any, m: Any) -> None:
    texture, _ = filled(device, T.texture_2d, (3, 4))
    two, _ = filled(device, T.texture_2d, (3, 4), F.rg32_float)
    for function in (m.twice3, m.twice1, m.same_u4, m.twice2):
        with pytest.raises(Resolve, match=re.escape("texels of rgba32_float are vector<float,4>")):
            function(texture)
    with pytest.raises(Resolve, match=re.escape("texels of rg32_float are vector<float,2>")):
        m.twice4(two)
    with pytest.raises(Resolve, match="does not match slang type Pixel"):
        m.shade(texture)
    depth = made(device, T.texture_2d, F.d32_float_s8_uint, (3, 4), READ)
    with pytest.raises(Resolve, match="stencil"):
        m.twice1(depth.create_view(aspect=spy.TextureAspect.stencil_only))
    with pytest.raises(Resolve, match="shader_resource"):
        m.twice4(made(device, T.texture_2d, F.rgba32_float, (3, 4), spy.TextureUsage.copy_source))


def test_textures_without_shader_resource_are_read_through_unordered_access(device: Any, m: Any) -> None:
    texture, data = filled(device, T.texture_2d, (3, 4), usage=WRITE)
    np.testing.assert_array_equal(m.twice4(texture, _result="numpy"), 2 * data[0])


def test_groups_and_packed_textures(device: Any, m: Any) -> None:
    texture, data = filled(device, T.texture_2d, (5, 7))
    np.testing.assert_array_equal(m.twice4.call_group_shape((2, 4))(texture, _result="numpy"), 2 * data[0])
    result = m.twice4.call_group_shape((2, 4))(texture, _result="texture")
    np.testing.assert_array_equal(result.to_numpy(), 2 * data[0])
    packed = spy.pack(m, texture)
    np.testing.assert_array_equal(m.twice4(packed, _result="numpy"), 2 * data[0])
    np.testing.assert_array_equal(m.fetch(spy.grid((5, 7)), packed, _result="numpy"), data[0])
    with pytest.raises(Resolve, match="read-only"):
        m.add1(packed)


# --- writing


def storable_formats() -> list[Any]:
    return plain_formats()


@pytest.mark.parametrize("format_", storable_formats(), ids=lambda f: f.name)
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
    "format_", [F.rgba32_float, F.rgba16_float, F.rgba8_unorm, F.rgba16_snorm, F.rgb10a2_unorm, F.bgra8_unorm]
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


# --- whole textures


def test_whole_textures(device: Any, m: Any) -> None:
    texture, data = filled(device, T.texture_2d, (3, 4))
    at = spy.grid((3, 4))
    np.testing.assert_array_equal(m.fetch(at, texture, _result="numpy"), data[0])
    np.testing.assert_array_equal(m.fetch_float(at, texture, _result="numpy"), data[0, ..., 0])  # fewer components
    np.testing.assert_array_equal(m.fetch_any(at, texture, _result="numpy"), data[0])
    values = random_texels(F.rgba32_float, (3, 4, 4), 8)
    m.store(at, values, texture)
    np.testing.assert_array_equal(texture.to_numpy(), values)
    m.store_any(at, spy.Tensor.from_numpy(device, values[::-1].copy(), target_slang_dtype="float4"), texture)
    np.testing.assert_array_equal(texture.to_numpy(), values[::-1])
    volume, texels = filled(device, T.texture_3d, (2, 3, 4))
    np.testing.assert_array_equal(m.fetch_3d(spy.grid((2, 3, 4)), volume, _result="numpy"), texels[0])
    line, texels = filled(device, T.texture_1d, (5,))
    np.testing.assert_array_equal(m.fetch_1d(spy.grid((5,)), line, _result="numpy"), texels[0])


@pytest.mark.parametrize("format_", [F.rgba32_float, F.rgba8_unorm, F.rgba16_float], ids=lambda f: f.name)
def test_whole_textures_of_other_formats_are_read_and_written(device: Any, m: Any, format_: Any) -> None:
    texture = made(device, T.texture_2d, format_, (3, 4))
    m.twice4(np.full((1, 1, 4), 0.125, np.float32), _result=texture)
    if device.type is spy.DeviceType.cuda and format_ is not F.rgba32_float:
        with pytest.raises((ValueError, NotImplementedError), match=format_.name):
            m.increment(spy.grid((3, 4)), texture)  # surfaces hold bare bits
        return
    m.increment(spy.grid((3, 4)), texture)
    np.testing.assert_allclose(m.any_vector(texture, _result="numpy"), 0.5, atol=3e-3)


def test_arrays_of_writable_textures(device: Any, m: Any) -> None:
    for formats in ((F.rgba32_float, F.rgba32_float), (F.rgba32_float, F.rgba16_float)):
        two = [made(device, T.texture_2d, format_, (3, 4)) for format_ in formats]
        if device.type is spy.DeviceType.cuda and formats[1] is F.rgba16_float:
            with pytest.raises(ValueError, match="rgba16_float"):  # surfaces hold bare bits
                m.store_both(spy.grid((3, 4)), two)
            continue
        m.store_both(spy.grid((3, 4)), two)
        np.testing.assert_array_equal(two[0].to_numpy(), 0.5)
        np.testing.assert_array_equal(two[1].to_numpy(), 1)


def test_whole_views(device: Any, m: Any) -> None:
    texture, data = filled(device, T.texture_2d_array, (3, 4), array_length=3, mip_count=2)
    np.testing.assert_array_equal(m.fetch_array(spy.grid((3, 3, 4)), texture, _result="numpy"), data)
    one = texture.create_view(layer=2, layer_count=1)
    np.testing.assert_array_equal(m.fetch(spy.grid((3, 4)), one, _result="numpy"), data[2])
    with pytest.raises(Resolve, match="dimension"):
        m.fetch(spy.grid((3, 4)), texture)
    assert m.size_of(texture.create_view(layer=0, layer_count=1, mip=1)) == spy.uint2(2, 1)


def test_arrays_structs_and_samplers(device: Any, m: Any) -> None:
    three = [filled(device, T.texture_2d, (3, 4), seed=k) for k in range(3)]
    which = np.array([[0], [1], [2]], np.int32)
    got = m.pick(spy.grid((3, 4)), which, [t for t, _ in three], _result="numpy")
    np.testing.assert_array_equal(got, np.stack([data[0, k] for k, (_, data) in enumerate(three)]))
    with pytest.raises(Resolve, match="2 elements, the parameter takes 3"):
        m.pick(spy.grid((3, 4)), 0, [t for t, _ in three][:2])
    texture, data = filled(device, T.texture_2d, (2, 2))
    edge = spy.TextureAddressingMode.clamp_to_edge
    sampler = device.create_sampler(address_u=edge, address_v=edge)
    middle = data[0].astype(np.float64).mean(axis=(0, 1))
    np.testing.assert_allclose(
        m.sample(spy.float2(0.5), texture, sampler, _result="numpy"), middle, rtol=1e-4, atol=1e-5
    )
    material = {"albedo": texture, "smp": sampler, "gain": 2.0}
    got = m.shade_material(np.full((5, 2), 0.5, np.float32), material, _result="numpy")
    np.testing.assert_allclose(got, np.broadcast_to(2 * middle, (5, 4)), rtol=1e-4, atol=1e-5)
    with pytest.raises(Resolve, match="SamplerState"):
        m.sample(spy.float2(0.5), sampler, texture)
    cube = made(device, T.texture_cube, F.rgba32_float, (2, 2), READ)
    for face in range(6):
        cube.copy_from_numpy(np.full((2, 2, 4), face, np.float32), layer=face)
    axes = np.array([[1, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0], [0, 0, 1], [0, 0, -1]], np.float32)
    np.testing.assert_array_equal(m.fetch_cube(axes, cube, sampler, _result="numpy")[:, 0], range(6))


WRONG = [
    ("fetch", T.texture_3d, F.rgba32_float, READ, "dimension"),
    ("fetch", T.texture_1d, F.rgba32_float, READ, "dimension"),
    ("fetch", T.texture_2d, F.rgba32_uint, READ, "texels of rgba32_uint are vector<uint,4>, expected vector<float,4>"),
    ("fetch_uint", T.texture_2d, F.r32_sint, READ, "texels of r32_sint are int, expected uint"),
    ("fetch_int", T.texture_2d, F.r32_uint, READ, "texels of r32_uint are uint, expected int"),
    ("fetch_int", T.texture_2d, F.r8_unorm, READ, "texels of r8_unorm are float, expected int"),
    ("fetch", T.texture_2d, F.rgba32_float, WRITE, "lacks TextureUsage.shader_resource"),
    ("fetch_ms", T.texture_2d, F.rgba32_float, READ, "dimension"),
]


@pytest.mark.parametrize(("name", "type_", "format_", "usage", "text"), WRONG)
def test_whole_textures_that_do_not_fit(
    device: Any, m: Any, name: str, type_: Any, format_: Any, usage: Any, text: str
) -> None:
    texture = made(device, type_, format_, {T.texture_1d: (4,), T.texture_3d: (2, 4, 4)}.get(type_, (4, 4)), usage)
    with pytest.raises(Resolve, match=re.escape(text)) as error:
        m[name](spy.grid((4, 4)), texture)
    assert f"textures::{name}" in str(error.value) and f"Texture<{type_.name[8:]}, {format_.name}>" in str(error.value)


def test_whole_textures_for_writing_need_the_usage(device: Any, m: Any) -> None:
    texture = made(device, T.texture_2d, F.rgba32_float, (4, 4), READ)
    with pytest.raises(Resolve, match=re.escape("lacks TextureUsage.unordered_access")):
        m.store(spy.grid((4, 4)), spy.float4(1), texture)


def test_textures_of_another_device(device: Any, m: Any) -> None:
    other = spy.Device(type=device.type, enable_hot_reload=False)
    try:
        texture, _ = filled(other, T.texture_2d, (3, 4))
        sampler, buffer = other.create_sampler(), other.create_buffer(size=16, usage=spy.BufferUsage.unordered_access)
        own, _ = filled(device, T.texture_2d, (3, 4))
        for call in (
            lambda: m.twice4(texture),
            lambda: m.fetch(spy.grid((3, 4)), texture.create_view(mip=0)),
            lambda: m.twice4(own, _result=texture),
            lambda: m.sample(spy.float2(0), own, sampler),
            lambda: m.at(buffer, 0),
        ):
            with pytest.raises(ValueError, match="another device"):
                call()
    finally:
        other.close()


def test_explain_shows_textures(device: Any, m: Any) -> None:
    texture, _ = filled(device, T.texture_2d_array, (3, 4), array_length=2)
    lines = spy.explain(m.twice4, texture.create_view(mip=0)).splitlines()
    row = next(line for line in lines if line.startswith("v "))
    assert re.split(r"  +", row) == [
        "v", "TextureView<2d_array, rgba32_float> [2, 3, 4]", "in vector<float,4>", "vector<float,4>", "3", "[0, 1, 2]",
    ]  # fmt: skip


# --- gradients


def test_a_texture_is_a_constant_of_gradients(device: Any, m: Any) -> None:
    texture, data = filled(device, T.texture_2d, (3, 4))
    w = tensor(device, 4).with_grads()
    seeds = np.random.default_rng(6).random((3, 4)).astype(np.float32)
    result = m.weighted(texture, w).with_grads()
    result.grad.copy_from_numpy(seeds)
    m.weighted.bwds(texture, w, _result=result)
    t, x = data[0].astype(np.float64), np.arange(4, dtype=np.float64)
    expected = (seeds * (2 * x * t[..., 0] + t[..., 1])).sum(axis=0)
    np.testing.assert_allclose(w.grad.to_numpy(), expected, rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(texture.to_numpy(), data[0])
    w.grad.clear()
    m.looked_up.bwds(spy.grid((3, 4)), texture, w, _result=result)
    np.testing.assert_allclose(w.grad.to_numpy(), (seeds * 2 * x * t[..., 0]).sum(axis=0), rtol=1e-4, atol=1e-4)
    with pytest.raises(Resolve, match="_result has no gradient"):
        m.weighted.bwds(texture, w, _result=made(device, T.texture_2d, F.r32_float, (3, 4)))


def test_torch_tensors_beside_textures(device: Any, m: Any) -> None:
    torch = pytest.importorskip("torch")
    texture, data = filled(device, T.texture_2d, (3, 4))
    where = "cuda" if device.type is spy.DeviceType.cuda else "cpu"
    w = torch.arange(4.0, device=where).requires_grad_()
    t, x = data[0].astype(np.float64), np.arange(4, dtype=np.float64)
    result = m.weighted(texture, w)
    assert isinstance(result, torch.Tensor)
    expected = x * x * t[..., 0] + x * t[..., 1]
    np.testing.assert_allclose(result.detach().cpu().numpy(), expected, rtol=1e-4, atol=1e-4)
    result.sum().backward()
    np.testing.assert_allclose(w.grad.cpu().numpy(), (2 * x * t[..., 0] + t[..., 1]).sum(axis=0), rtol=1e-4, atol=1e-4)
    made_of = m.weighted(texture, w.detach(), _result="texture")
    np.testing.assert_allclose(made_of.to_numpy(), expected, rtol=1e-4, atol=1e-4)
    with pytest.raises(RuntimeError, match="requires grad"):
        m.weighted(texture, w, _result="texture")


# --- the cpu device


def test_cpu_has_no_textures() -> None:
    cpu = spy.Device(type=spy.DeviceType.cpu, enable_hot_reload=False)
    null = spy.Device(type=spy.DeviceType.null, enable_hot_reload=False)
    try:
        m = load(cpu, "textures")
        text = "Texture2D<float4> t; float glob(float x) { return x + t[int2(0)].x; }"
        of_global = spy.Module.load_from_source(cpu, "of_global", text)
        texture = made(null, T.texture_2d, F.rgba32_float, (3, 4))
        calls = [
            lambda: cpu.create_texture(width=4, height=4, format=F.rgba32_float),
            lambda: cpu.create_sampler(),
            lambda: m.r_float4(array(4, dtype=np.int32), _result="texture"),
            lambda: m.r_float4(array(4, dtype=np.int32), _result=spy.Texture),
            lambda: m.r_float4.return_type("texture")(array(4, dtype=np.int32)),
            lambda: m.twice4(texture),
            lambda: m.twice4(texture.create_view(mip=0)),
            lambda: m.fetch(spy.grid((3, 4)), texture),
            lambda: m.shade({"color": texture, "weight": 1.0}),
            lambda: m.pick(spy.int2(0), 0, [texture] * 3),
            lambda: m.twice4(array(3, 4, 4), _result=texture),
            lambda: m.weighted.bwds(texture, 1.0, _result=spy.floatDiffPair()),
            lambda: m.raw_fetch.dispatch([1, 1, 1], t=texture, o=spy.Tensor.empty(cpu, (4,), float)),
            lambda: m.raw_fetch.dispatch([1, 1, 1], t=None, o=spy.Tensor.empty(cpu, (4,), float)),
            lambda: of_global.glob.set(t=texture)(1.0),
            lambda: spy.explain(m.twice4, texture),
        ]
        for call in calls:
            with pytest.raises(NotImplementedError, match="cuda or vulkan"):
                call()
    finally:
        cpu.close()
        null.close()
