"""Bitmaps, records, filters and textures of images."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import slangpy as spy
from slangpy.images import (
    Bitmap,
    BoxFilter,
    DataStruct,
    DataStructConverter,
    FilterBoundaryCondition,
    GaussianFilter,
    LanczosFilter,
    MitchellFilter,
    TentFilter,
    TextureLoader,
)
from slangpy.images.loader import Options, texture_to_bitmap

T, F, P, C = DataStruct.Type, DataStruct.Flags, Bitmap.PixelFormat, Bitmap.ComponentType


@pytest.fixture(autouse=True)
def _files(request: pytest.FixtureRequest) -> None:
    """What writes files needs the package for them."""
    if "tmp_path" in request.fixturenames:
        pytest.importorskip("OpenImageIO")


def test_struct_layout() -> None:
    s = DataStruct().append("a", T.uint8).append("b", T.float32).append("c", T.float16)
    assert [(f.name, f.type, f.offset, f.size) for f in s] == [
        ("a", T.uint8, 0, 1), ("b", T.float32, 4, 4), ("c", T.float16, 8, 2),
    ]  # fmt: skip
    assert s.size == 12 and s.alignment == 4 and s[1] is s.field("b") and s[1].default_value == 0.0 and len(s) == 3
    packed = DataStruct(pack=True).append("a", T.uint8).append("b", T.float32)
    assert packed.size == 5 and packed.alignment == 1 and packed[1].offset == 1
    assert DataStruct.type_size(T.int64) == 8 and DataStruct.type_range(T.int8) == (-128.0, 127.0)
    assert DataStruct.is_integer(T.uint16) and DataStruct.is_unsigned(T.uint16) and not DataStruct.is_float(T.uint16)
    assert DataStruct.is_float(T.float64) and DataStruct.is_signed(T.float64) and int(F.default) == 4
    with pytest.raises(RuntimeError, match='Field "x" not found'):
        s.field("x")


def convert(source: DataStruct, target: DataStruct, data: bytes) -> bytes:
    return DataStructConverter(source, target).convert(data)


def test_conversion_rounds_and_saturates() -> None:
    floats = DataStruct().append("x", T.float32)
    signed = DataStruct().append("x", T.int8)
    data = struct.pack("4f", -0.55, 3.4, 300.0, -1e9)
    assert np.frombuffer(convert(floats, signed, data), np.int8).tolist() == [-1, 3, 127, -128]
    wide = DataStruct().append("x", T.int64)
    unsigned = DataStruct().append("x", T.uint64)
    assert struct.unpack("2Q", convert(wide, unsigned, struct.pack("2q", -5, 2**62 + 1))) == (0, 2**62 + 1)
    assert struct.unpack("q", convert(floats, wide, struct.pack("f", 1e30))) == (2**63 - 1,)


def test_conversion_of_meaning() -> None:
    """normalized, srgb_gamma, byte order."""
    byte = DataStruct().append("x", T.uint8, F.normalized)
    number = DataStruct().append("x", T.float32)
    assert struct.unpack("3f", convert(byte, number, bytes([0, 51, 255]))) == pytest.approx((0, 0.2, 1))
    assert convert(number, byte, struct.pack("3f", 0.2, 2.0, -1.0)) == bytes([51, 255, 0])
    signed = DataStruct().append("x", T.int8, F.normalized)
    assert struct.unpack("2f", convert(signed, number, struct.pack("2b", 127, -127))) == pytest.approx((1, -1))
    srgb = DataStruct().append("x", T.uint8, F.normalized | F.srgb_gamma)
    assert struct.unpack("f", convert(srgb, number, bytes([188])))[0] == pytest.approx(0.5029, abs=1e-4)
    assert convert(number, srgb, struct.pack("f", 0.5029)) == bytes([188])
    big = DataStruct(byte_order=DataStruct.ByteOrder.big_endian).append("x", T.float32)
    assert convert(number, big, struct.pack("f", 1.5)) == struct.pack(">f", 1.5)


def test_conversion_of_fields() -> None:
    """By name, blended, missing."""
    source = DataStruct().append("r", T.float32).append("g", T.float32)
    swapped = DataStruct().append("g", T.float32).append("r", T.float32)
    assert struct.unpack("2f", convert(source, swapped, struct.pack("2f", 1, 2))) == (2, 1)
    mixed = DataStruct().append("v", T.float32, F.none, 0.0, [(0.25, "r"), (0.5, "g")])
    assert struct.unpack("f", convert(source, mixed, struct.pack("2f", 4, 2))) == (2,)
    more = DataStruct().append("a", T.float32, F.default, 7.0).append("r", T.float32)
    assert struct.unpack("2f", convert(source, more, struct.pack("2f", 1, 2))) == (7, 1)
    with pytest.raises(RuntimeError, match=r'Field "b" not found in source struct\.'):
        DataStructConverter(source, DataStruct().append("b", T.float32))
    with pytest.raises(RuntimeError, match="not whole records"):
        convert(source, swapped, b"123")


def picture(dtype: Any = np.uint8, channels: int = 3, height: int = 6, width: int = 9) -> np.ndarray[Any, Any]:
    values = np.random.default_rng(1).random((height, width, channels))
    return (values * 250).astype(dtype) if np.dtype(dtype).kind in "iu" else values.astype(dtype)


def test_bitmap_members() -> None:
    bitmap = Bitmap(P.rgba, C.float32, 4, 3)
    assert (bitmap.width, bitmap.height, bitmap.pixel_count, bitmap.channel_count) == (4, 3, 12, 4)
    assert bitmap.bytes_per_pixel == 16 and bitmap.buffer_size == 192 and bitmap.has_alpha() and not bitmap.empty()
    assert bitmap.channel_names == ["R", "G", "B", "A"] and not bitmap.srgb_gamma and np.asarray(bitmap).max() == 0
    np.asarray(bitmap)[1, 2] = (1, 2, 3, 4)  # a view
    assert np.asarray(bitmap)[1, 2].tolist() == [1, 2, 3, 4]
    bitmap.vflip()
    assert np.asarray(bitmap)[1, 2].tolist() == [1, 2, 3, 4]
    np.asarray(bitmap)[0, 0] = 9
    bitmap.vflip()
    assert np.asarray(bitmap)[2, 0].tolist() == [9] * 4
    bitmap.clear()
    assert np.asarray(bitmap).max() == 0 and bitmap.pixel_format == P.rgba and bitmap.component_type == C.float32
    assert Bitmap(P.multi_channel, C.uint8, 2, 2, 5).channel_count == 5 and Bitmap(P.r, C.uint8, 0, 2).empty()
    with pytest.raises(TypeError, match="Bitmap"):
        Bitmap(3.0)


def test_bitmap_of_arrays() -> None:
    array = picture()
    assert np.array_equal(np.asarray(Bitmap(array)), array) and Bitmap(array).pixel_format == P.rgb
    strided = array[::2, ::-1]
    assert np.array_equal(np.asarray(Bitmap(strided)), strided)
    grey = Bitmap(array[:, :, 0])
    assert grey.pixel_format == P.y and np.asarray(grey).shape == (6, 9) and grey.srgb_gamma
    named = Bitmap(picture(channels=2), channel_names=["depth", "id"])
    assert named.pixel_format == P.multi_channel and named.channel_names == ["depth", "id"]
    assert Bitmap(array) == Bitmap(array) and Bitmap(array) != Bitmap(array[::-1]) and Bitmap(array) != 3
    parts = dict(Bitmap(picture(channels=4), channel_names=["a.R", "a.G", "a.B", "b.Y"]).split())
    assert parts["a"].pixel_format == P.rgb and parts["b"].pixel_format == P.y
    with pytest.raises(ValueError, match="rgba"):
        Bitmap(array, P.rgba)


def test_bitmap_conversion() -> None:
    array = np.array([[[0, 127, 255], [255, 255, 255]]], np.uint8)
    linear = Bitmap(array, srgb_gamma=False).convert(component_type=C.float32)
    assert np.asarray(linear) == pytest.approx(array / 255)
    light = Bitmap(array).convert(P.rgba, C.float32, False)
    assert np.asarray(light)[0, 0] == pytest.approx([0, 0.2122, 1, 1], abs=1e-4)
    assert Bitmap(array).convert(component_type=C.float32).convert(component_type=C.uint8) == Bitmap(array)
    grey = light.convert(P.y)
    assert np.asarray(grey)[0] == pytest.approx([0.7152 * 0.2122 + 0.0722, 1.0], abs=1e-4)
    assert np.asarray(light.convert(component_type=C.uint16))[0, 1].tolist() == [65535] * 4


@pytest.mark.parametrize(
    ("name", "dtype", "channels"),
    [("exr", np.float16, 3), ("exr", np.float32, 4), ("exr", np.uint32, 1), ("bmp", np.uint8, 3), ("bmp", np.uint8, 4), ("tga", np.uint8, 3),
     ("tga", np.uint8, 4), ("png", np.uint8, 1), ("png", np.uint8, 3), ("png", np.uint8, 4), ("png", np.uint16, 3),
     ("png", np.uint16, 1), ("png", np.uint16, 4)],
)  # fmt: skip
def test_files(tmp_path: Path, name: str, dtype: Any, channels: int) -> None:
    bitmap = Bitmap(picture(dtype, channels))
    bitmap.write(tmp_path / f"image.{name}")
    found = Bitmap(tmp_path / f"image.{name}")
    assert found.pixel_format == bitmap.pixel_format and found.component_type == bitmap.component_type
    assert np.array_equal(np.asarray(found), np.asarray(bitmap))


def test_files_that_lose(tmp_path: Path) -> None:
    smooth = (np.linspace(0, 1, 32)[:, None, None] * np.linspace(0, 200, 16)[None, :, None] * np.ones(3)).astype(
        np.uint8
    )
    Bitmap(smooth).write(tmp_path / "a.jpg")
    assert np.abs(np.asarray(Bitmap(tmp_path / "a.jpg")).astype(int) - smooth).max() <= 4
    bright = picture(np.float32) * 20
    Bitmap(bright).write(tmp_path / "a.hdr")
    assert np.abs(np.asarray(Bitmap(tmp_path / "a.hdr")) - bright).max() <= 20 / 128
    for level in (0, 9):
        Bitmap(smooth).write(tmp_path / f"{level}.png", quality=level)
    assert (tmp_path / "0.png").stat().st_size > (tmp_path / "9.png").stat().st_size


def test_files_of_any_name(tmp_path: Path) -> None:
    bitmap = Bitmap(picture(np.uint8, 3))
    bitmap.write(tmp_path / "image.bin", Bitmap.FileFormat.png)
    assert Bitmap(tmp_path / "image.bin") == bitmap
    (tmp_path / "other.bin").write_bytes(b"nothing that is known")
    with pytest.raises(RuntimeError, match=r"no image format has the extension 'bin'; known: png"):
        Bitmap(tmp_path / "other.bin")


def test_many_files(tmp_path: Path) -> None:
    bitmap = Bitmap(picture(np.float32, 6), channel_names=["a.B", "a.G", "a.R", "b.X", "b.Y", "z"])
    bitmap.write(tmp_path / "many.exr")
    found = Bitmap(tmp_path / "many.exr")
    assert found.pixel_format == P.multi_channel and sorted(found.channel_names) == sorted(bitmap.channel_names)
    for name in bitmap.channel_names:
        mine, its = bitmap.channel_names.index(name), found.channel_names.index(name)
        assert np.array_equal(np.asarray(found)[:, :, its], np.asarray(bitmap)[:, :, mine])
    small = Bitmap(picture())
    small.write_async(tmp_path / "later.png").result()
    assert Bitmap.read_multiple([tmp_path / "later.png"] * 3) == [small] * 3


def test_bad_files(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="no such image file"):
        Bitmap(tmp_path / "missing.png")
    with pytest.raises(RuntimeError, match="extension"):
        Bitmap(picture()).write(tmp_path / "a.xyz")
    for name in ("png", "exr", "hdr", "jpg"):
        (tmp_path / f"bad.{name}").write_bytes(b"this is no image, but text that is long enough for a header")
        with pytest.raises(RuntimeError, match="cannot be read"):
            Bitmap(tmp_path / f"bad.{name}")
    with pytest.raises(RuntimeError, match=r"convert\(\) first"):
        Bitmap(picture(np.float32)).write(tmp_path / "a.png")


def test_filters() -> None:
    box, tent, gauss, mitchell, lanczos = BoxFilter(), TentFilter(), GaussianFilter(), MitchellFilter(), LanczosFilter()
    assert [f.radius for f in (box, tent, gauss, mitchell, lanczos)] == [0.5, 1, 2, 2, 3]
    assert tent.eval(0.25) == 0.75 and tent.eval(2) == 0 and box.eval(0.4) == 1 and box.eval(0.6) == 0
    assert mitchell.eval(0) == pytest.approx(8 / 9) and mitchell.eval(1) == pytest.approx(1 / 18)
    assert lanczos.eval(0) == 1 and lanczos.eval(1) == pytest.approx(0) and lanczos.eval(3.5) == 0
    assert gauss.eval(0.5) == pytest.approx(np.exp(-0.5) - np.exp(-8))
    with pytest.raises(ValueError, match="radius"):
        TentFilter(0)


def test_resampling() -> None:
    values = picture(np.float32, 3, 8, 8)
    bitmap = Bitmap(values)
    half = np.asarray(bitmap.resample(4, 4, BoxFilter()))
    assert half == pytest.approx(values.reshape(4, 2, 4, 2, 3).mean(axis=(1, 3)), abs=1e-6)
    larger = np.asarray(bitmap.resample(16, 24, BoxFilter()))
    assert np.array_equal(larger, values.repeat(3, axis=0).repeat(2, axis=1))  # the nearest pixel
    assert bitmap.resample(8, 8, LanczosFilter()) == bitmap
    flat = Bitmap(np.full((5, 7, 1), 0.5, np.float32))
    for kernel in (TentFilter(), GaussianFilter(), MitchellFilter(), LanczosFilter()):
        assert np.asarray(flat.resample(3, 11, kernel)) == pytest.approx(np.full((11, 3), 0.5), abs=1e-6)
    line = Bitmap(np.array([[0.0, 1.0]], np.float32))
    assert np.asarray(line.resample(4, 1, TentFilter()))[0] == pytest.approx([0, 0.25, 0.75, 1])
    target = Bitmap(P.rgb, C.float32, 4, 4)
    assert bitmap.resample(target, filter=BoxFilter()) is target and np.array_equal(np.asarray(target), half)
    limited = np.asarray(bitmap.resample(4, 4, BoxFilter(), clamp=(0.4, 0.6)))
    assert limited.min() >= np.float32(0.4) and limited.max() <= np.float32(0.6)


@pytest.mark.parametrize("size", [3, 7, 8, 13])
def test_no_pixel_is_lost(size: int) -> None:
    """Whatever the sizes, also where a new pixel's centre lies on the border of two, every pixel has weights."""
    flat = Bitmap(np.full((1, size, 1), 0.5, np.float32))
    for width in range(1, 120):
        for kernel in (BoxFilter(), TentFilter(0.3), TentFilter(), GaussianFilter()):
            assert np.asarray(flat.resample(width, 1, kernel)) == pytest.approx(np.full((1, width), 0.5), abs=1e-6)
        nearest = np.minimum(((np.arange(width) + 0.5) * size / width).astype(int), size - 1)
        row = Bitmap(np.arange(size, dtype=np.float32)[None])
        if width >= size:
            assert (
                np.abs(np.asarray(row.resample(width, 1, BoxFilter()))[0] - nearest).max() <= 1
            )  # a tie may go either way


@pytest.mark.parametrize(
    ("condition", "first"), [("clamp", 1.0), ("repeat", 1.75), ("mirror", 1.25), ("zero", 0.75), ("one", 1.0)]
)
def test_what_lies_beside(condition: str, first: float) -> None:
    line = Bitmap(np.array([[1.0, 2.0, 3.0, 4.0]], np.float32))
    bc = (FilterBoundaryCondition[condition], FilterBoundaryCondition.clamp)
    got = np.asarray(line.resample(8, 1, TentFilter(), bc))
    assert got[0, 0] == pytest.approx(first)


def test_what_does_not_resample() -> None:
    with pytest.raises(RuntimeError, match="float"):
        Bitmap(picture()).resample(2, 2)
    with pytest.raises(RuntimeError, match="cannot make"):
        Bitmap(picture(np.float32)).resample(0, 2)
    with pytest.raises(RuntimeError, match="cannot make"):
        Bitmap(P.rgb, C.float32, 0, 0).resample(2, 2)


@pytest.mark.parametrize(
    ("dtype", "channels", "options", "expected"),
    [(np.uint8, 3, {}, "rgba8_unorm_srgb"), (np.uint8, 3, {"load_as_srgb": False}, "rgba8_unorm"),
     (np.uint8, 4, {"load_as_normalized": False}, "rgba8_unorm_srgb"), (np.uint8, 3, {"load_as_normalized": False}, "rgba8_unorm_srgb"),
     (np.uint8, 4, {"load_as_normalized": False, "load_as_srgb": False}, "rgba8_uint"),
     (np.uint8, 1, {"load_as_normalized": False}, "r8_uint"), (np.float32, 3, {"generate_mips": True}, "rgba32_float"),
     (np.float16, 3, {"generate_mips": True}, "rgba16_float"), (np.uint8, 1, {}, "r8_unorm"),
     (np.float32, 4, {}, "rgba32_float"), (np.float16, 2, {"ya_handling": TextureLoader.YAHandling.preserve_as_rg}, "rg16_float"), (np.uint16, 1, {}, "r16_unorm")],
)  # fmt: skip
def test_textures(device: spy.Device, dtype: Any, channels: int, options: Any, expected: str) -> None:
    array = picture(dtype, channels)
    texture = TextureLoader(device).load_texture(Bitmap(array), options)
    assert texture.format.name == expected and (texture.width, texture.height) == (9, 6)
    if device.info.type is not spy.DeviceType.null:
        assert np.array_equal(texture.to_numpy().reshape(6, 9, -1)[:, :, :channels], array)
        again = texture_to_bitmap(texture)
        assert np.array_equal(np.asarray(again).reshape(6, 9, -1)[:, :, :channels], array)


def test_texture_files_and_arrays(device: spy.Device, tmp_path: Path) -> None:
    loader = TextureLoader(device)
    pictures = [picture(), picture()[::-1]]
    paths = [tmp_path / f"{i}.png" for i in range(2)]
    for path, array in zip(paths, pictures, strict=True):
        Bitmap(array).write(path)
    layers = loader.load_texture_array(paths, {"usage": spy.TextureUsage.shader_resource})
    assert layers.array_length == 2
    each = loader.load_textures(paths, Options(allocate_mips=True))
    assert [t.mip_count for t in each] == [4, 4]
    if device.info.type is not spy.DeviceType.null:
        for i, array in enumerate(pictures):
            assert np.array_equal(layers.to_numpy(layer=i)[:, :, :3], array)
            assert np.array_equal(each[i].to_numpy(mip=0)[:, :, :3], array)
    with pytest.raises(ValueError, match="Texture array requires all bitmaps to have the same dimensions and format"):
        loader.load_texture_array([Bitmap(picture()), Bitmap(picture(height=3))])
    with pytest.raises(TypeError, match="no option 'srgb'"):
        loader.load_texture(paths[0], {"srgb": True})
    with pytest.raises(TypeError, match="Bitmap or the path"):
        loader.load_texture(3.0)


def test_luminance_and_alpha(device: spy.Device) -> None:
    bitmap = Bitmap(picture(np.float32, 2), P.ya)
    loader = TextureLoader(device)
    assert loader.load_texture(bitmap).format.name == "rgba32_float"
    kept = loader.load_texture(bitmap, {"ya_handling": loader.YAHandling.preserve_as_rg})
    assert kept.format.name == "rg32_float"
