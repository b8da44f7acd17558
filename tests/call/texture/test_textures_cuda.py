"""Kernels with textures compile for CUDA without a GPU, and what surfaces hold is packed as the formats ask."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiers import gate

import slangpy as spy
from slangpy.testing import CudaCodegen, nvrtc_available

F, T = spy.Format, spy.TextureType
RW = spy.TextureUsage.shader_resource | spy.TextureUsage.unordered_access
SOURCE = (Path(__file__).parent.parent / "calls_textures.slang").read_text()

needs_nvrtc = pytest.mark.skipif(
    not nvrtc_available() and not os.environ.get("SLANGPY_TEST_REQUIRE_NVRTC"), reason="NVRTC is not installed"
)


class Values:
    """Textures of the null device: planning looks at their descriptions only."""

    def __init__(self) -> None:
        self.device = spy.Device(type=spy.DeviceType.null, enable_hot_reload=False)

    def __call__(self, format_: Any, type_: Any = T.texture_2d, usage: Any = RW, **fields: Any) -> spy.Texture:
        sizes = {"width": 4} if "1d" in type_.name else {"width": 4, "height": 4}
        return self.device.create_texture(type=type_, format=format_, usage=usage, **{**sizes, **fields})


@pytest.fixture(scope="module")
def values() -> Iterator[Values]:
    made = Values()
    yield made
    made.device.close()


@pytest.fixture(scope="module")
def m() -> Any:
    return CudaCodegen("sm_80").load_from_source("textures", SOURCE)


CALLS = {
    "load": lambda m, t: (m.twice4, (t(F.rgba32_float),), {}),
    "load_view": lambda m, t: (m.twice4, (t(F.rgba8_unorm, mip_count=2).create_view(mip=1),), {}),
    "load_1d": lambda m, t: (m.twice1, (t(F.r16_float, T.texture_1d),), {}),
    "load_1d_array": lambda m, t: (m.twice2, (t(F.rg8_snorm, T.texture_1d_array, array_length=3),), {}),
    "load_array": lambda m, t: (m.same_u4, (t(F.rgba16_uint, T.texture_2d_array, array_length=3),), {}),
    "load_3d": lambda m, t: (m.same_i2, (t(F.rg8_sint, T.texture_3d),), {}),
    "load_cube": lambda m, t: (m.twice4, (t(F.rgba32_float, T.texture_cube),), {}),
    "load_cube_array": lambda m, t: (m.twice4, (t(F.rgba32_float, T.texture_cube_array, array_length=2),), {}),
    "load_surface": lambda m, t: (m.twice4, (t(F.rgba8_unorm, usage=spy.TextureUsage.unordered_access),), {}),
    "inout": lambda m, t: (m.halve4, (t(F.rgba16_float),), {}),
    "inout_array": lambda m, t: (m.halve4, (t(F.rgba8_snorm, T.texture_2d_array, array_length=2),), {}),
    "inout_1d_array": lambda m, t: (m.halve4, (t(F.rgba16_unorm, T.texture_1d_array, array_length=2),), {}),
    "inout_3d": lambda m, t: (m.halve4, (t(F.rgba32_float, T.texture_3d, depth=2),), {}),
    "struct": lambda m, t: (m.shade, ({"color": t(F.rgba8_unorm), "weight": t(F.r32_float)},), {}),
    "out_struct": lambda m, t: (m.put_pixel, (1.0, {"color": t(F.rgba8_unorm_srgb), "weight": t(F.r16_snorm)}), {}),
    "mapped": lambda m, t: (m.twice4.map((1, 0)), (t(F.rgba32_float),), {}),
    "result": lambda m, t: (m.twice4, (t(F.rgba8_unorm),), {"_result": "texture"}),
    "result_half": lambda m, t: (m.r_half4, (np.zeros((2, 3), np.int32),), {"_result": "texture"}),
    "result_u16": lambda m, t: (m.r_u16, (np.zeros(3, np.int32),), {"_result": "texture"}),
    "result_i8": lambda m, t: (m.r_i8x2, (np.zeros((1, 2, 3), np.int32),), {"_result": "texture"}),
    "whole": lambda m, t: (m.fetch, (spy.grid((4, 4)), t(F.rgba8_unorm)), {}),
    "whole_store": lambda m, t: (m.store, (spy.grid((4, 4)), spy.float4(1), t(F.rgba32_float)), {}),
    "whole_store_u8": lambda m, t: (m.store_u8, (spy.grid((4, 4)), 1, t(F.r8_uint)), {}),
    "whole_store_half": lambda m, t: (m.store_half, (spy.grid((4, 4)), spy.float4(1), t(F.rgba16_float)), {}),
    "array_store": lambda m, t: (m.store_both, (spy.grid((4, 4)), [t(F.rgba32_float)] * 2), {}),
    "array": lambda m, t: (m.pick, (spy.grid((4, 4)), 1, [t(F.rgba32_float)] * 3), {}),
    "struct_array": lambda m, t: (m.blend, (spy.grid((4, 4)), {"layers": [t(F.rgba32_float)] * 2, "gain": 1.0}), {}),
    "sampled": lambda m, t: (m.sample, (spy.float2(0.5), t(F.rgba16_float), t.device.create_sampler()), {}),
    "bwds": lambda m, t: (m.weighted.bwds, (t(F.rgba32_float), spy.diffPair(1.0), spy.diffPair(0.0, 1.0)), {}),
}  # fmt: skip


REPEATED = (
    "load_1d", "load_1d_array", "load_array", "load_cube", "inout_1d_array", "inout_array", "out_struct", "result_u16", "whole_store_half",
    "array", "mapped",
)  # fmt: skip
"""Calls whose texture differs from that of another in its type or its format alone."""
SURFACES = (
    "r8_snorm", "rg8_uint", "rgba8_unorm", "rgba8_unorm_srgb", "rg16_sint", "rgba16_unorm", "r16_float", "rgba16_float", "r32_float",
    "rg32_uint", "rgba32_float",
)  # fmt: skip
"""Each width, each number of channels and each conversion."""


@needs_nvrtc
@pytest.mark.parametrize("name", gate(CALLS, lambda name: name not in REPEATED))
def test_kernel_compiles(m: Any, values: Values, name: str) -> None:
    function, args, kwargs = CALLS[name](m, values)
    view = m.device.build(function, *args, **kwargs)
    assert view.pipeline[:4] == b"\x7fELF"


def storable() -> list[Any]:
    found = []
    for format_ in F:
        info = spy.get_format_info(format_)
        bits = info.channel_bit_count[0]
        plain = info.has_equal_channel_bits() and not info.is_depth and not info.is_compressed
        if plain and bits in (8, 16, 32) and info.channel_count != 3 and not info.name.startswith("b"):
            found.append(format_)
    return found


@needs_nvrtc
@pytest.mark.parametrize("format_", gate(storable(), lambda f: f.name in SURFACES), ids=lambda f: f.name)
def test_surfaces_hold_what_the_format_stores(m: Any, values: Values, format_: Any) -> None:
    """Loads and stores of writable textures move whole texels of the format."""
    info = spy.get_format_info(format_)
    texel = {spy.FormatType.uint: "u", spy.FormatType.sint: "i"}.get(info.type, "f")
    names = {"f": "float", "u": "uint", "i": "int"}
    texture = values(format_)
    data = np.zeros((4, 4, info.channel_count), {"f": np.float32, "u": np.uint32, "i": np.int32}[texel])
    view = m.device.build(m.any_vector.map(f"vector<{names[texel]},{info.channel_count}>"), data, _result=texture)
    layout = view.kernels.first.layout
    slot = next(slot for slot in layout.slots if slot["writable"])
    assert slot["channels"] == info.channel_count
    sizes = {"float32": 4, "float16": 2, "int8": 1, "uint8": 1, "int16": 2, "uint16": 2, "int32": 4, "uint32": 4}
    assert sizes[slot["scalar"].name] * 8 == info.channel_bit_count[0]
    assert slot["scalar"].name.startswith("float") == (info.type is spy.FormatType.float)


REFUSED = {
    "unorm": lambda m, t: (m.store, spy.float4(1), t(F.rgba8_unorm)),
    "half": lambda m, t: (m.store, spy.float4(1), t(F.rgba16_float)),
    "small": lambda m, t: (m.store_uint, 1, t(F.r8_uint)),
    "wide": lambda m, t: (m.store_uint, 1, t(F.rgba32_uint)),
}


@pytest.mark.parametrize("name", REFUSED)
def test_surfaces_do_not_convert_whole_textures(m: Any, values: Values, name: str) -> None:
    """Slang's stores to surfaces copy bits, so a texture of another format would be overrun."""
    function, value, texture = REFUSED[name](m, values)
    with pytest.raises(spy.ResolveException, match=f"does not convert texels of {texture.format.name} in RWTextures"):
        m.device.build(function, spy.grid((4, 4)), value, texture)
    with pytest.raises(spy.ResolveException, match="does not convert texels of rgba16_float"):
        m.device.build(m.store_both, spy.grid((4, 4)), [values(F.rgba32_float), values(F.rgba16_float)])


CONVERTING = """
[format("rgba16f")] RWTexture2D<float4> image;
void put(int2 p, float4 v, RWTexture2D<float4> t) { t[p] = v; image[p] = 2 * v; }
"""


@needs_nvrtc
def test_kernels_say_which_surfaces_they_convert_for(values: Values) -> None:
    """Slang converts where the format is stated beside the store: for the global here, not for the parameter."""
    device = CudaCodegen("sm_80")
    put = device.load_from_source("converting", CONVERTING).put
    code = device.build(put, spy.grid((4, 4)), spy.float4(1), values(F.rgba32_float)).pipeline
    assert b"_spy_converts_image" in code
    assert code.count(b"_spy_converts_") == code.count(b"_spy_converts_image")


PACKING = """
import slangpy_texture;
int to_unorm8(float v) { return int(uint(_spy_to_unorm8(v))); }
int to_unorm16(float v) { return int(uint(_spy_to_unorm16(v))); }
int to_snorm8(float v) { return int(_spy_to_snorm8(v)); }
int to_snorm16(float v) { return int(_spy_to_snorm16(v)); }
int to_srgb8(float v) { return int(uint(_spy_to_srgb8(v))); }
float from_unorm8(int v) { return _spy_from_unorm8(uint8_t(v)); }
float from_unorm16(int v) { return _spy_from_unorm16(uint16_t(v)); }
float from_snorm8(int v) { return _spy_from_snorm8(int8_t(v)); }
float from_snorm16(int v) { return _spy_from_snorm16(int16_t(v)); }
float from_srgb8(int v) { return _spy_from_srgb8(uint8_t(v)); }
"""
MOST = {"unorm8": (0, 255), "unorm16": (0, 65535), "snorm8": (-127, 127), "snorm16": (-32767, 32767)}


@pytest.fixture
def packing(device: Any) -> Any:
    if not device.has_feature(spy.Feature.int16):
        pytest.skip("needs 16-bit integers")
    return spy.Module.load_from_source(device, "packing", PACKING)


@pytest.mark.needs_kernels
@pytest.mark.parametrize("name", MOST)
def test_packing_of_normalised_components(packing: Any, name: str) -> None:
    least, most = MOST[name]
    rng = np.random.default_rng(3)
    given = np.concatenate([rng.random(1000) * 4 - 2, [0, 1, -1, 0.5, np.inf, -np.inf]]).astype(np.float32)
    exact = np.clip(given.astype(np.float64), least / most, 1) * most
    got = packing[f"to_{name}"](given, _result="numpy")
    assert np.max(np.abs(got - exact)) < 0.51
    np.testing.assert_array_equal(packing[f"to_{name}"](np.full(3, np.nan, np.float32), _result="numpy"), 0)
    stored = np.arange(least - (least < 0), most + 1, dtype=np.int32)
    back = packing[f"from_{name}"](stored, _result="numpy")
    np.testing.assert_allclose(back, np.maximum(stored / most, -1.0), rtol=1e-6)
    np.testing.assert_array_equal(packing[f"to_{name}"](back, _result="numpy"), np.maximum(stored, -most))


@pytest.mark.needs_kernels
def test_packing_of_srgb(packing: Any) -> None:
    stored = np.arange(256, dtype=np.int32)
    value = stored / 255
    linear = np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)
    got = packing.from_srgb8(stored, _result="numpy")
    np.testing.assert_allclose(got, linear, rtol=2e-5)
    np.testing.assert_array_equal(packing.to_srgb8(got, _result="numpy"), stored)
    np.testing.assert_array_equal(packing.to_srgb8(np.array([-1, 2], np.float32), _result="numpy"), [0, 255])
