"""Formats and textures."""

from __future__ import annotations

import re

import numpy as np
import pytest

import slangpy as spy

F = spy.Format
T = spy.TextureType


@pytest.fixture
def textured(device: spy.Device, device_type: spy.DeviceType) -> spy.Device:
    return device


def test_format_info() -> None:
    info = spy.get_format_info(F.rgb32_float)
    assert (info.bytes_per_block, info.channel_count, info.channel_bit_count) == (12, 3, [32, 32, 32, 0])
    assert (info.dxgi_format, info.vk_format, info.name) == (6, 106, "rgb32_float")
    assert info.is_float_format() and info.has_equal_channel_bits() and not info.is_compressed
    depth = spy.get_format_info(F.d32_float_s8_uint)
    assert (depth.bytes_per_block, depth.channel_count, depth.channel_bit_count) == (8, 2, [32, 8, 0, 0])
    assert depth.is_depth and depth.is_stencil and depth.is_depth_stencil()
    block = spy.get_format_info(F.bc1_unorm_srgb)
    assert (block.block_width, block.bytes_per_block) == (4, 8)
    assert block.is_compressed and block.is_srgb_format()
    channels = spy.FormatChannels.r | spy.FormatChannels.g
    assert spy.get_format_info(F.rgb10a2_unorm).get_channel_bits(channels) == 20
    for fmt in F:
        assert spy.get_format_info(fmt).format is fmt
        assert spy.get_format_info(fmt).name == fmt.name


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"width": 4}, "Invalid texture format."),
        (
            {"type": T.texture_1d, "width": 4, "height": 2, "format": F.r32_float},
            "Invalid dimensions (width=4, height=2, depth=1) for 1D texture.",
        ),
        (
            {"width": 4, "height": 4, "array_length": 3, "format": F.r32_float},
            "Invalid array length (3) for non-array texture.",
        ),
        ({"width": 4, "height": 4, "mip_count": 4, "format": F.r32_float}, "Invalid mip count (4)"),
        ({"width": 1 << 20, "height": 4, "format": F.r32_float}, "limit"),
        ({"wide": 4}, "unknown field 'wide'"),
    ],
)
def test_errors(textured: spy.Device, fields: dict, text: str) -> None:
    with pytest.raises((ValueError, TypeError), match=re.escape(text)):
        textured.create_texture(**fields)


def test_properties(textured: spy.Device) -> None:
    texture = textured.create_texture(
        type=T.texture_2d_array,
        width=9,
        height=4,
        array_length=3,
        mip_count=spy.ALL_MIPS,
        format=F.rgba8_unorm,
        usage=spy.TextureUsage.shader_resource,
    )
    assert (texture.mip_count, texture.layer_count, texture.subresource_count) == (4, 3, 12)
    assert [texture.get_mip_width(i) for i in range(4)] == [9, 4, 2, 1]
    assert tuple(texture.get_mip_size(1)) == (4, 2, 1)
    assert texture.desc.mip_count == 4 and texture.format is F.rgba8_unorm
    layout = texture.get_subresource_layout(0, 1)
    assert (layout.row_pitch, layout.size_in_bytes, layout.row_count) == (36, 144, 4)
    assert texture.get_subresource_layout(0, 256).row_pitch == 256
    assert texture.device is textured


@pytest.mark.parametrize(
    ("fields", "shape", "dtype"),
    [
        ({"type": T.texture_1d, "width": 5, "format": F.r32_float}, (5,), np.float32),
        ({"width": 4, "height": 2, "format": F.rgba32_float}, (2, 4, 4), np.float32),
        ({"width": 4, "height": 2, "format": F.rg16_float}, (2, 4, 2), np.float16),
        ({"width": 4, "height": 2, "format": F.rgba8_unorm}, (2, 4, 4), np.uint8),
        ({"width": 4, "height": 2, "format": F.r32_sint}, (2, 4), np.int32),
        ({"type": T.texture_3d, "width": 4, "height": 2, "depth": 3, "format": F.r32_uint}, (3, 2, 4), np.uint32),
        ({"type": T.texture_cube, "width": 4, "height": 4, "format": F.r32_float}, (4, 4), np.float32),
    ],
)
def test_round_trip(textured: spy.Device, fields: dict, shape: tuple, dtype: type) -> None:
    texture = textured.create_texture(**fields, usage=spy.TextureUsage.shader_resource)
    data = np.random.default_rng(1).integers(0, 100, shape).astype(dtype)
    last = texture.layer_count - 1
    texture.copy_from_numpy(data, layer=last)
    back = texture.to_numpy(layer=last)
    assert back.dtype == dtype and np.array_equal(back, data)
    with pytest.raises(ValueError, match="wrong number of dimensions"):
        texture.copy_from_numpy(data[None])
    with pytest.raises(ValueError, match="wrong shape"):
        texture.copy_from_numpy(np.concatenate([data, data]))
    with pytest.raises(ValueError, match="dtype"):
        texture.copy_from_numpy(data.astype(np.complex64))
    with pytest.raises(IndexError, match='"mip" must be less than 1'):
        texture.to_numpy(mip=1)
    with pytest.raises(IndexError, match='"layer" must be less than'):
        texture.to_numpy(layer=last + 1)


def test_initial_data_and_packed(textured: spy.Device) -> None:
    data = np.arange(8, dtype=np.float32).reshape(2, 4)
    texture = textured.create_texture(width=4, height=2, format=F.r32_float, data=data)
    assert np.array_equal(texture.to_numpy(), data)


def test_copies(textured: spy.Device) -> None:
    data = np.arange(64, dtype=np.float32).reshape(8, 8)
    a = textured.create_texture(width=8, height=8, mip_count=2, format=F.r32_float, data=data)
    b = textured.create_texture(width=8, height=8, format=F.r32_float)
    buffer = textured.create_buffer(size=1024)
    encoder = textured.create_command_encoder()
    encoder.upload_texture_data(a, 0, 1, np.full((4, 4), 5, np.float32))
    encoder.upload_texture_data(b, 0, 0, np.zeros((8, 8), np.float32))
    encoder.copy_texture(b, 0, 0, (2, 2, 0), a, 0, 0, (0, 0, 0), (4, 3, 1))
    encoder.copy_texture_to_buffer(buffer, 0, 1024, 32, a, 0, 0)
    encoder.copy_buffer_to_texture(a, 0, 1, (0, 0, 0), buffer, 0, 1024, 32, (4, 4, 1))
    textured.submit_command_buffer(encoder.finish())
    expected = np.zeros((8, 8), np.float32)
    expected[2:5, 2:6] = data[:3, :4]
    assert np.array_equal(b.to_numpy(), expected)
    assert np.array_equal(a.to_numpy(mip=1), data[:4, :4])
    with pytest.raises(IndexError, match="extent"):
        textured.create_command_encoder().copy_texture(b, 0, 0, (2, 2, 0), a, 0, 0, (0, 0, 0), (8, 3, 1))
    with pytest.raises(ValueError, match="expected 64"):
        textured.create_command_encoder().upload_texture_data(a, 0, 1, np.zeros(3, np.float32))


def test_clear(textured: spy.Device) -> None:
    usage = spy.TextureUsage.shader_resource | spy.TextureUsage.unordered_access
    texture = textured.create_texture(width=4, height=2, format=F.rgba32_float, usage=usage)
    encoder = textured.create_command_encoder()
    encoder.clear_texture_float(texture, clear_value=(1, 2, 3, 4))
    with pytest.raises(ValueError, match="clear_texture_float"):
        encoder.clear_texture_uint(texture)
    textured.submit_command_buffer(encoder.finish())
    assert np.array_equal(texture.to_numpy(), np.broadcast_to(np.array([1, 2, 3, 4], np.float32), (2, 4, 4)))


def test_views(textured: spy.Device) -> None:
    texture = textured.create_texture(
        type=T.texture_2d_array,
        width=8,
        height=8,
        array_length=3,
        mip_count=3,
        format=F.r32_float,
        usage=spy.TextureUsage.shader_resource,
    )
    view = texture.create_view(layer=1, mip=1, label="part")
    part = view.subresource_range
    assert (part.layer, part.layer_count, part.mip, part.mip_count) == (1, 2, 1, 2)
    assert view.texture is texture and view.label == "part" and view.device is textured
    view = texture.create_view({"subresource_range": {"layer": 2, "layer_count": 9}})
    assert view.subresource_range.layer_count == 1
    with pytest.raises(IndexError, match="'mip' out of range"):
        texture.create_view(mip=3)


def test_sampler(textured: spy.Device) -> None:
    edge = spy.TextureAddressingMode.clamp_to_edge
    sampler = textured.create_sampler(address_u=edge, border_color=(0, 0, 0, 1), label="s")
    assert sampler.desc.address_u is edge
    assert sampler.desc.border_color == (0, 0, 0, 1)
    assert sampler.desc.min_filter is spy.TextureFilteringMode.linear
