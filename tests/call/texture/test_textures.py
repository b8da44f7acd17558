"""Textures as arguments, one texel per invocation."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from calls_support import FOLDER, array, load, tensor
from texture_support import (
    FORMATS_IN_GATE,
    LAYERS,
    READ,
    SIZES,
    WRITE,
    F,
    T,
    decode,
    filled,
    made,
    plain_formats,
    random_texels,
    seen,
    supports,
)
from tiers import gate

import slangpy as spy

pytestmark = pytest.mark.needs_kernels

Resolve, Shape = spy.ResolveException, spy.ShapeError


@pytest.fixture
def m(device: Any) -> Any:
    return load(device, "textures")


@pytest.mark.parametrize("type_", SIZES, ids=lambda t: t.name)
def test_every_type_is_read_texel_by_texel(device: Any, m: Any, type_: Any) -> None:
    usage = READ if "cube" in type_.name else READ | WRITE
    texture, data = filled(device, type_, SIZES[type_], usage=usage, array_length=LAYERS.get(type_, 1))
    expected = 2 * seen(type_, data)
    result = m.twice4(texture, _result="numpy")
    assert result.shape == expected.shape
    np.testing.assert_array_equal(result, expected)


@pytest.mark.elsewhere(
    "rgba32_float", "rg16_float", "r32_uint", "rgba16_sint", "rgba8_unorm", "r16_snorm", "rgba8_unorm_srgb"
)
@pytest.mark.parametrize("format_", gate(plain_formats(), lambda f: f.name in FORMATS_IN_GATE), ids=lambda f: f.name)
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


PACKED = [  # format, one texel as bits, what kernels see
    (F.bgra8_unorm, 0xFF804020, (0x80 / 255, 0x40 / 255, 0x20 / 255, 1)),
    (F.rgb10a2_unorm, 1023 | 511 << 10 | 2 << 30, (1, 511 / 1023, 0, 2 / 3)),
    (F.r11g11b10_float, 0x3C0 | 0x400 << 11 | 0x1C0 << 22, (1, 2, 0.5)),
    (F.rgb9e5_ufloat, 256 | 128 << 9 | 511 << 18 | 16 << 27, (1, 0.5, 511 / 256)),
    (F.b5g6r5_unorm, 31 << 11 | 32 << 5 | 3, (1, 32 / 63, 3 / 31)),
    (F.bgr5a1_unorm, 1 << 15 | 31 << 10 | 16 << 5 | 3, (1, 16 / 31, 3 / 31, 1)),
    (F.bgra4_unorm, 15 << 12 | 15 << 8 | 8 << 4 | 3, (1, 8 / 15, 3 / 15, 1)),
    (F.bc1_unorm, 0xF800 | 0x07E0 << 16, (1, 0, 0, 1)),  # the first colour of a block, everywhere
]


@pytest.mark.parametrize(("format_", "bits", "expected"), PACKED, ids=lambda v: getattr(v, "name", ""))
def test_packed_and_compressed_formats(device: Any, m: Any, format_: Any, bits: int, expected: Any) -> None:
    if not supports(device, format_, spy.FormatSupport.shader_load | spy.FormatSupport.texture):
        pytest.skip("format not supported")
    info = spy.get_format_info(format_)
    raw = np.frombuffer(bits.to_bytes(info.bytes_per_block, "little"), np.uint8)
    size = (info.block_height, info.block_width) if info.is_compressed else (2, 3)
    data = np.tile(raw, size[0] * size[1] // (info.block_height * info.block_width))
    if info.has_equal_channel_bits() and not info.is_compressed and info.channel_bit_count[0] % 8 == 0:
        data = data.reshape(*size, info.channel_count)
    texture = made(device, T.texture_2d, format_, size, READ, data=data)
    got = m.any_vector(texture, _result="numpy")
    np.testing.assert_allclose(got, np.broadcast_to(expected, (*size, len(expected))), atol=4e-3)  # some go by 8 bits


def test_depth_is_read_as_float(device: Any, m: Any) -> None:
    if not supports(device, F.d32_float, spy.FormatSupport.shader_load | spy.FormatSupport.texture):
        pytest.skip("format not supported")
    data = np.linspace(0, 1, 12, dtype=np.float32).reshape(3, 4)
    texture = made(device, T.texture_2d, F.d32_float, (3, 4), READ, data=data)
    np.testing.assert_array_equal(m.twice1(texture, _result="numpy"), 2 * data)


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


STORED = """
import json, sys
import numpy as np, slangpy as spy
from slangpy.plan import compile as stage
device = spy.Device(type=spy.DeviceType[sys.argv[1]], enable_hot_reload=False)
m = spy.Module.load_from_file(device, sys.argv[2])
usage = spy.TextureUsage.shader_resource | spy.TextureUsage.unordered_access
data = np.arange(48, dtype=np.float32).reshape(3, 4, 4)
texture = device.create_texture(width=4, height=3, format=spy.Format.rgba32_float, usage=usage, data=data)
result = m.twice4(texture, _result="texture")
m.add1(result)
ok = np.array_equal(result.to_numpy(), 2 * data + 1) and np.array_equal(m.fetch(spy.grid((3, 4)), texture, _result="numpy"), data)
print(json.dumps([bool(ok), stage.builds, "libslang" in open("/proc/self/maps").read()]))
"""


@pytest.mark.one
def test_plans_with_textures_come_from_the_disk(device: Any, m: Any, tmp_path: Any) -> None:
    def run() -> list[Any]:
        environment = {**os.environ, "SLANGPY_CACHE_DIR": str(tmp_path)}
        environment.pop("SLANGPY_DISABLE_CACHE", None)
        command = [sys.executable, "-c", STORED, device.type.name, str(FOLDER / "calls_textures.slang")]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout.splitlines()[-1])

    assert run() == [True, 3, True]
    assert run() == [True, 0, False]


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
    if supports(device, F.d32_float_s8_uint, spy.FormatSupport.texture):
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
