"""DDS files as textures: written here byte by byte, with formats, mips, layers and faces; and what is wrong with others."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import slangpy as spy
from slangpy.images.dds import NoFormatError, read_dds

F, T = spy.Format, spy.TextureType
Array = np.ndarray[Any, Any]


def levels(format: spy.Format, size: tuple[int, int, int], mips: int, layers: int, seed: int = 0) -> list[list[bytes]]:
    """Random bytes for each layer and mip: of blocks of BC1 and BC4, opaque colours."""
    info, generator = spy.get_format_info(format), np.random.default_rng(seed)
    found = []
    for _ in range(layers):
        found.append([])
        for mip in range(mips):
            width, height, depth = (max(1, length >> mip) for length in size)
            count = -(-width // info.block_width) * -(-height // info.block_height) * depth
            found[-1].append(generator.integers(0, 120, count * info.bytes_per_block, np.uint8).tobytes())
    return found


def header(size: tuple[int, int, int], mips: int, pixel: tuple[Any, ...], caps2: int = 0) -> bytes:
    """pixel: flags, code, bits, masks."""
    width, height, depth = size
    start = struct.pack("<7I44x", 124, 0x1007, height, width, 0, depth, mips)
    return b"DDS " + start + struct.pack("<2I4s5I", 32, *pixel) + struct.pack("<5I", 0x1000, caps2, 0, 0, 0)


def dx10(format: spy.Format, size: tuple[int, int, int], mips: int, dimension: int, misc: int, count: int) -> bytes:
    start = header(size, mips, (4, b"DX10", 0, 0, 0, 0, 0))
    return start + struct.pack("<5I", spy.get_format_info(format).dxgi_format, dimension, misc, count, 0)


def write(path: Path, start: bytes, texels: list[list[bytes]]) -> Path:
    path.write_bytes(start + b"".join(level for layer in texels for level in layer))
    return path


def assert_same(texture: spy.Texture, texels: list[list[bytes]]) -> None:
    assert (texture.layer_count, texture.mip_count) == (len(texels), len(texels[0]))
    if texture.device.info.type is not spy.DeviceType.null:
        for layer, mips in enumerate(texels):
            for mip, level in enumerate(mips):
                assert texture.to_numpy(layer=layer, mip=mip).tobytes() == level


CASES = [
    (F.bc1_unorm, (16, 8, 1), 5, 3, 0, 1, T.texture_2d),
    (F.bc7_unorm_srgb, (12, 20, 1), 1, 3, 0, 1, T.texture_2d),
    (F.bc3_unorm_srgb, (8, 8, 1), 4, 3, 0, 3, T.texture_2d_array),
    (F.bc5_unorm, (8, 8, 1), 2, 3, 4, 1, T.texture_cube),
    (F.rgba16_float, (4, 4, 1), 3, 3, 4, 2, T.texture_cube_array),
    (F.rgba8_unorm, (4, 6, 3), 2, 4, 0, 1, T.texture_3d),
    (F.r16_unorm, (7, 1, 1), 3, 2, 0, 1, T.texture_1d),
    (F.rg32_uint, (5, 3, 1), 1, 3, 0, 1, T.texture_2d),
]


@pytest.mark.parametrize(("format", "size", "mips", "dimension", "misc", "count", "kind"), CASES)
def test_textures(
    device: spy.Device, tmp_path: Path, format: Any, size: Any, mips: int, dimension: int, misc: int, count: int, kind: Any
) -> None:  # fmt: skip
    """Nothing of a file is changed."""
    texels = levels(format, size, mips, count * (6 if misc else 1))
    path = write(tmp_path / "a.dds", dx10(format, size, mips, dimension, misc, count), texels)
    texture = spy.TextureLoader(device).load_texture(path)
    assert texture.type == kind and texture.format == format
    assert (texture.width, texture.height, texture.depth) == size
    assert_same(texture, texels)


OLDER = [
    ((4, b"DXT1", 0, 0, 0, 0, 0), F.bc1_unorm),
    ((4, b"DXT5", 0, 0, 0, 0, 0), F.bc3_unorm),
    ((4, b"ATI2", 0, 0, 0, 0, 0), F.bc5_unorm),
    ((4, struct.pack("<I", 113), 0, 0, 0, 0, 0), F.rgba16_float),
    ((0x41, b"\0\0\0\0", 32, 0xFF, 0xFF00, 0xFF0000, 0xFF000000), F.rgba8_unorm),
    ((0x41, b"\0\0\0\0", 32, 0xFF0000, 0xFF00, 0xFF, 0xFF000000), F.bgra8_unorm),
    ((0x40, b"\0\0\0\0", 32, 0xFF0000, 0xFF00, 0xFF, 0xFF000000), F.bgrx8_unorm),
    ((0x20000, b"\0\0\0\0", 8, 0xFF, 0, 0, 0), F.r8_unorm),
]


@pytest.mark.parametrize(("pixel", "format"), OLDER)
@pytest.mark.one
def test_older_headers(device: spy.Device, tmp_path: Path, pixel: Any, format: Any) -> None:
    texels = levels(format, (8, 4, 1), 2, 6)
    path = write(tmp_path / "a.dds", header((8, 4, 1), 2, pixel), texels[:1])
    texture = spy.TextureLoader(device).load_texture(path)
    assert texture.format == format and texture.type == T.texture_2d
    assert_same(texture, texels[:1])
    texels = levels(format, (8, 8, 1), 2, 6)
    cube = write(tmp_path / "b.dds", header((8, 8, 1), 2, pixel, 0xFE00), texels)
    texture = spy.TextureLoader(device).load_texture(cube)
    assert texture.type == T.texture_cube
    assert_same(texture, texels)


def test_options(device: spy.Device, tmp_path: Path) -> None:
    pytest.importorskip("OpenImageIO")
    loader = spy.TextureLoader(device)
    texels = levels(F.bc1_unorm_srgb, (8, 8, 1), 1, 1)
    path = write(tmp_path / "a.dds", dx10(F.bc1_unorm_srgb, (8, 8, 1), 1, 3, 0, 1), texels)
    assert loader.load_texture(path, {"load_as_srgb": False}).format == F.bc1_unorm
    assert loader.load_texture(path, {"allocate_mips": True}).mip_count == 4
    made = loader.load_texture(path, {"generate_mips": True})  # blocks are not written by devices
    assert made.format == F.rgba8_unorm_srgb and made.mip_count == 4
    plain_texels = levels(F.rgba8_unorm_srgb, (8, 4, 1), 1, 1)
    plain = write(tmp_path / "b.dds", dx10(F.rgba8_unorm_srgb, (8, 4, 1), 1, 3, 0, 1), plain_texels)
    made = loader.load_texture(plain, {"generate_mips": True})
    assert made.mip_count == 4 and made.desc.usage & spy.TextureUsage.render_target
    if device.info.type is not spy.DeviceType.null:
        assert made.to_numpy(mip=2).any() and made.to_numpy().tobytes() == plain_texels[0][0]
    second = write(
        tmp_path / "c.dds", dx10(F.bc1_unorm_srgb, (8, 8, 1), 1, 3, 0, 1), levels(F.bc1_unorm_srgb, (8, 8, 1), 1, 1, 5)
    )
    layers = loader.load_texture_array([path, second])
    assert layers.type == T.texture_2d_array and layers.format == F.bc1_unorm_srgb
    if device.info.type is not spy.DeviceType.null:
        assert [layers.to_numpy(layer=i).tobytes() for i in range(2)] == [
            loader.load_texture(item).to_numpy().tobytes() for item in (path, second)
        ]
    with pytest.raises(ValueError, match="all bitmaps to have the same dimensions and format"):
        loader.load_texture_array([path, plain])


@pytest.mark.needs_kernels
def test_blocks_as_openimageio_decodes_them(device: spy.Device, tmp_path: Path) -> None:
    pytest.importorskip("OpenImageIO")
    for format, close in ((F.bc1_unorm, 2), (F.bc3_unorm, 2), (F.bc7_unorm, 1), (F.bc4_unorm, 2)):
        path = write(tmp_path / "a.dds", dx10(format, (12, 8, 1), 1, 3, 0, 1), levels(format, (12, 8, 1), 1, 1))
        decoded = np.asarray(spy.TextureLoader(device).load_texture(path).to_bitmap()).astype(int)
        expected = np.asarray(spy.Bitmap(path)).astype(int)
        assert decoded.shape == expected.shape and np.abs(decoded - expected).max() <= close, format.name


@pytest.mark.null
def test_damaged_files(tmp_path: Path) -> None:
    good = dx10(F.bc1_unorm, (8, 8, 1), 1, 3, 0, 1)
    cases = [
        (good + b"\0" * 31, r"cannot be read as dds: it ends within mip 0 of layer 0"),
        (good[:100], "cannot be read as dds: "),
        (b"DDS " + b"\0" * 200, "its header is damaged"),
        (dx10(F.bc1_unorm, (8, 8, 1), 9, 3, 0, 1) + b"\0" * 500, "it has 9 mips of 8 x 8 x 1 texels"),
        (dx10(F.bc1_unorm, (0, 8, 1), 1, 3, 0, 1), "it has 1 mips of 0 x 8 x 1 texels"),
        (dx10(F.bc1_unorm, (8, 8, 1), 1, 3, 0, 2**31) + b"\0" * 64, "it ends within mip 0 of layer 2"),
        (header((8, 8, 1), 1, (4, b"DXT1", 0, 0, 0, 0, 0), 0x600) + b"\0" * 500, "a cube without some of its faces"),
    ]  # fmt: skip
    for data, message in cases:
        (tmp_path / "a.dds").write_bytes(data)
        with pytest.raises(RuntimeError, match=message):
            read_dds(str(tmp_path / "a.dds"))
    unknown = [
        (header((8, 8, 1), 1, (4, b"UYVY", 0, 0, 0, 0, 0)), r"textures have no format b'UYVY'"),
        (header((8, 8, 1), 1, (0x40, b"\0\0\0\0", 24, 0xFF0000, 0xFF00, 0xFF, 0)), "no format of 24 bits with the masks 0xff0000"),
        (header((8, 8, 1), 1, (4, b"DX10", 0, 0, 0, 0, 0)) + struct.pack("<5I", 107, 3, 0, 1, 0), "the DXGI number 107"),
    ]  # fmt: skip
    for data, message in unknown:
        (tmp_path / "a.dds").write_bytes(data)
        with pytest.raises(NoFormatError, match=message):
            read_dds(str(tmp_path / "a.dds"))


def test_formats_that_textures_have_not(device: spy.Device, tmp_path: Path) -> None:
    """They are read as bitmaps: 24 bits of blue, green and red."""
    pytest.importorskip("OpenImageIO")
    start = header((5, 3, 1), 1, (0x40, b"\0\0\0\0", 24, 0xFF0000, 0xFF00, 0xFF, 0))
    texels = levels(F.r8_unorm, (15, 3, 1), 1, 1)
    path = write(tmp_path / "a.dds", start, texels)
    texture = spy.TextureLoader(device).load_texture(path)
    assert texture.format in (F.rgba8_unorm, F.rgba8_unorm_srgb)
    if device.info.type is not spy.DeviceType.null:
        pixels = np.frombuffer(texels[0][0], np.uint8).reshape(3, 5, 3)
        assert np.array_equal(texture.to_numpy()[..., :3], pixels[..., ::-1])
