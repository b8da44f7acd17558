"""Pictures of tensors, textures and arrays in files, beside Pillow and the formula of sRGB."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import slangpy as spy
from slangpy.images.png import encode_png

Array = np.ndarray[Any, Any]
P, C = spy.Bitmap.PixelFormat, spy.Bitmap.ComponentType


def numbers(shape: tuple[int, ...], seed: int = 0) -> Array:
    return np.random.default_rng(seed).uniform(-0.1, 1.1, shape).astype(np.float32)


def stored(values: Array) -> Array:
    """Light as bytes with the curve of sRGB (IEC 61966-2-1), before rounding; a last channel of two or four is alpha."""
    clipped = np.clip(values.astype(np.float64), 0, 1)
    curve = np.where(clipped <= 0.0031308, clipped * 12.92, 1.055 * clipped ** (1 / 2.4) - 0.055)
    if values.ndim == 3 and values.shape[2] in (2, 4):
        curve[..., -1] = clipped[..., -1]
    return curve * 255


def read(path: Path) -> Array:
    with pytest.importorskip("PIL.Image").open(path) as image:
        return np.asarray(image)


def sample(dtype: Any, channels: int) -> Array:
    """Ramps, which rows and columns predict, and noise, which nothing does."""
    top = np.iinfo(dtype).max
    ramp = np.add.outer(np.arange(33) * 3, np.arange(31) * 5)[:, :, None] * np.arange(1, channels + 1) * (top // 255)
    pixels = ramp.astype(dtype)
    pixels[5:9] = np.random.default_rng(1).integers(0, top, (4, 31, channels), dtype, endpoint=True)
    return pixels


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_png_of_bytes(channels: int) -> None:
    image, pixels = pytest.importorskip("PIL.Image"), sample(np.uint8, channels)
    for part in (pixels, pixels[:1], pixels[:, :1], pixels[:1, :1]):
        for level in (0, 6, 9):
            assert np.array_equal(np.asarray(image.open(io.BytesIO(encode_png(part, level)))).reshape(part.shape), part)
    assert len(encode_png(pixels[10:])) < pixels[10:].size / 2, "ramps are predicted"


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_png_of_16_bits(tmp_path: Path, channels: int) -> None:
    pytest.importorskip("OpenImageIO")
    pixels = sample(np.uint16, channels)
    (tmp_path / "a.png").write_bytes(encode_png(pixels))
    assert np.array_equal(np.asarray(spy.Bitmap(tmp_path / "a.png")).reshape(pixels.shape), pixels)


def test_arrays(tmp_path: Path) -> None:
    for channels in ((), (1,), (2,), (3,), (4,)):
        values = numbers((9, 7, *channels))
        spy.save_image(tmp_path / "a.png", values)
        expected = stored(values).reshape(read(tmp_path / "a.png").shape)
        assert np.abs(read(tmp_path / "a.png") - expected).max() <= 0.501
        spy.save_image(tmp_path / "b.png", values.astype(np.float64), srgb=False)
        plain = np.clip(values, 0, 1).reshape(expected.shape) * 255
        assert np.abs(read(tmp_path / "b.png") - plain).max() <= 0.501
        as_is = (np.clip(values, 0, 1) * 255).astype(np.uint8)
        for srgb in (None, True, False):
            spy.save_image(tmp_path / "c.png", as_is, srgb)
            assert np.array_equal(read(tmp_path / "c.png"), as_is.reshape(expected.shape))
    spy.save_image(str(tmp_path / "nan.png"), np.array([[np.nan, np.inf, -np.inf]], np.float32))
    assert read(tmp_path / "nan.png").tolist() == [[0, 255, 0]]


def test_other_formats(tmp_path: Path) -> None:
    """Floats stay light in exr and hdr, and so do bytes; jpg, bmp and tga are as png."""
    pytest.importorskip("OpenImageIO")
    values = np.clip(numbers((8, 8, 4)), 0, 1)
    for name in ("bmp", "tga", "jpg"):
        spy.save_image(tmp_path / f"a.{name}", np.tile(values[:1, :1], (8, 8, 1)))
        got = read(tmp_path / f"a.{name}")
        expected = stored(np.tile(values[:1, :1], (8, 8, 1)))[..., : got.shape[2]]
        assert got.shape[2] == (4 if name == "tga" else 3)  # Pillow shows no alpha of bmp
        assert np.abs(got - expected).max() <= (3 if name == "jpg" else 0.501)
    for dtype in (np.float16, np.float32, np.float64):
        spy.save_image(tmp_path / "a.exr", values.astype(dtype))
        found = spy.Bitmap(tmp_path / "a.exr")
        assert found.component_type == (C.float16 if dtype == np.float16 else C.float32)
        assert np.array_equal(np.asarray(found), values.astype(dtype).astype(np.asarray(found).dtype))
    as_bytes = np.rint(stored(values)).astype(np.uint8)
    spy.save_image(tmp_path / "b.exr", as_bytes)
    assert np.abs(np.asarray(spy.Bitmap(tmp_path / "b.exr")) - values).max() < 0.005
    for pixels in (values, values[:, :, 0]):
        spy.save_image(tmp_path / "a.hdr", pixels)
        found = np.asarray(spy.Bitmap(tmp_path / "a.hdr"))
        assert np.abs(found - (pixels[:, :, :3] if pixels.ndim == 3 else pixels[:, :, None])).max() < 1 / 128
    many = numbers((4, 4, 7))
    spy.save_image(tmp_path / "many.exr", many)
    assert np.array_equal(np.asarray(spy.Bitmap(tmp_path / "many.exr")), many)
    deep = sample(np.uint16, 3)
    spy.save_image(tmp_path / "deep.png", deep)
    assert np.array_equal(np.asarray(spy.Bitmap(tmp_path / "deep.png")), deep)


@pytest.mark.needs_kernels
def test_tensors(device: spy.Device, tmp_path: Path) -> None:
    for dtype, channels in (("float", ()), ("float3", (3,)), ("half4", (4,)), ("float2", (2,))):
        values = numbers((9, 7, *channels)).astype(np.float16 if "half" in dtype else np.float32)
        tensor = spy.Tensor.from_numpy(device, values, target_slang_dtype=dtype)
        tensor.save(tmp_path / "a.png")
        assert np.abs(read(tmp_path / "a.png") - stored(values)).max() <= 0.501
        tensor[::2, ::-1].with_grads().save(str(tmp_path / "a.png"), srgb=False)
        assert (
            np.abs(read(tmp_path / "a.png") - np.clip(values[::2, ::-1].astype(np.float32), 0, 1) * 255).max() <= 0.501
        )
        bitmap = spy.Bitmap(tensor)
        kind = {(): P.y, (2,): P.ya, (3,): P.rgb, (4,): P.rgba}[channels]
        assert bitmap.pixel_format == kind and np.array_equal(np.asarray(bitmap), values) and not bitmap.srgb_gamma
    plain = spy.Tensor.from_numpy(device, numbers((5, 6, 3)))  # three axes of float
    plain.save(tmp_path / "b.png")
    assert np.abs(read(tmp_path / "b.png") - stored(plain.to_numpy())).max() <= 0.501
    with pytest.raises(TypeError, match=r"a tensor of matrix<float,2,2> is no picture"):
        spy.Tensor.zeros(device, (3, 4), "float2x2").save(tmp_path / "c.png")


def test_torch_tensors(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    values = numbers((5, 6, 3))
    for tensor in (torch.tensor(values, requires_grad=True), torch.tensor(values).permute(2, 0, 1).permute(1, 2, 0)):
        assert np.array_equal(np.asarray(spy.Bitmap(tensor)), values)
        spy.save_image(tmp_path / "a.png", tensor)
        assert np.abs(read(tmp_path / "a.png") - stored(values)).max() <= 0.501
    assert np.abs(np.asarray(spy.Bitmap(torch.tensor(values).bfloat16())) - values).max() < 0.01
    assert spy.Bitmap(torch.zeros(4, 4, 3, dtype=torch.uint8)).srgb_gamma
    with pytest.raises(ValueError, match=r"got \(3, 5, 6\); channels come last: permute the axes to \(1, 2, 0\)"):
        spy.save_image(tmp_path / "a.png", torch.tensor(values).permute(2, 0, 1))


@pytest.mark.needs_kernels
def test_textures(device: spy.Device, tmp_path: Path) -> None:
    """Floats are light; bytes are as stored; packed and compressed formats are decoded."""
    F, U = spy.Format, spy.TextureUsage
    values = numbers((6, 8, 4))
    texture = device.create_texture(format=F.rgba32_float, width=8, height=6, usage=U.shader_resource, data=values)
    texture.save(tmp_path / "a.png")
    assert np.abs(read(tmp_path / "a.png") - stored(values)).max() <= 0.501
    texture.save(str(tmp_path / "a.png"), srgb=False)
    assert np.abs(read(tmp_path / "a.png") - np.clip(values, 0, 1) * 255).max() <= 0.501
    as_bytes = np.random.default_rng(2).integers(0, 256, (6, 8, 4), np.uint8)
    able = [format for format in F if device.get_format_support(format) & spy.FormatSupport.shader_load]
    for format in {F.rgba8_unorm, F.rgba8_unorm_srgb, F.bgra8_unorm, F.bgra8_unorm_srgb} & {*able}:
        texture = device.create_texture(
            format=format,
            width=8,
            height=6,
            usage=U.shader_resource,
            type=spy.TextureType.texture_2d_array,
            array_length=2,
            mip_count=2,
        )
        texture.copy_from_numpy(as_bytes, layer=1)
        texture.copy_from_numpy(as_bytes[:3, :4].copy(), layer=1, mip=1)
        for mip, part in ((0, as_bytes), (1, as_bytes[:3, :4])):
            texture.save(tmp_path / "b.png", layer=1, mip=mip)
            expected = part[..., [2, 1, 0, 3]] if format.name.startswith("b") else part
            assert np.array_equal(read(tmp_path / "b.png"), expected)
    if F.rgb10a2_unorm in able:
        packed = device.create_texture(format=F.rgb10a2_unorm, width=2, height=1, usage=U.shader_resource)
        packed.copy_from_numpy(np.array([0xFFFFFFFF, 0x000003FF], np.uint32).view(np.uint8))
        assert np.asarray(packed.to_bitmap()).tolist() == [[[65535] * 4, [65535, 0, 0, 0]]]
    if F.bc1_unorm_srgb in able:
        blocks = device.create_texture(format=F.bc1_unorm_srgb, width=6, height=4, usage=U.shader_resource)
        blocks.copy_from_numpy(np.frombuffer(b"\x00\xf8\xe0\x07\0\0\0\0" * 2, np.uint8))
        blocks.save(tmp_path / "c.png")
        assert np.array_equal(read(tmp_path / "c.png"), np.tile(np.array([255, 0, 0, 255], np.uint8), (4, 6, 1)))
    volume = device.create_texture(
        type=spy.TextureType.texture_3d, format=F.r32_float, width=2, height=2, depth=2, usage=U.shader_resource
    )
    with pytest.raises(ValueError, match="to_bitmap: expected a 2-D texture, got texture_3d"):
        volume.save(tmp_path / "d.png")


def test_bitmaps(tmp_path: Path) -> None:
    """By what they say of their numbers."""
    values = numbers((4, 5, 3))
    spy.save_image(tmp_path / "a.png", spy.Bitmap(values))
    assert np.abs(read(tmp_path / "a.png") - stored(values)).max() <= 0.501
    curved = spy.Bitmap(values, srgb_gamma=True)
    spy.save_image(tmp_path / "a.png", curved)
    assert np.abs(read(tmp_path / "a.png") - np.clip(values, 0, 1) * 255).max() <= 0.501
    both = spy.Bitmap(values[:, :, :2], P.rg)  # no grey and alpha
    spy.save_image(tmp_path / "a.png", both)
    assert np.abs(read(tmp_path / "a.png")[..., :2] - stored(values)[..., :2]).max() <= 0.501
    assert (read(tmp_path / "a.png")[..., 2] == 0).all()


def test_what_notebooks_show() -> None:
    image = pytest.importorskip("PIL.Image")
    values = numbers((9, 7, 3))
    shown = np.asarray(image.open(io.BytesIO(spy.Bitmap(values)._repr_png_() or b"")))
    assert np.abs(shown - stored(values)).max() <= 0.501
    as_bytes = sample(np.uint8, 4)
    assert np.array_equal(np.asarray(image.open(io.BytesIO(spy.Bitmap(as_bytes)._repr_png_() or b""))), as_bytes)
    large = spy.Bitmap(np.zeros((3000, 10), np.uint8))._repr_png_()
    assert image.open(io.BytesIO(large or b"")).size == (4, 1000)
    assert spy.Bitmap(numbers((4, 4, 5)))._repr_png_() is None and spy.Bitmap(P.rgb, C.uint8, 0, 3)._repr_png_() is None


def test_members() -> None:
    pixels = sample(np.uint8, 4)
    bitmap = spy.Bitmap.load_from_numpy(pixels)
    assert bitmap == spy.Bitmap(pixels) and spy.Bitmap(pixels[:, :, :2]).pixel_format == P.ya
    fields, flags = bitmap.pixel_struct, spy.DataStruct.Flags
    assert [(f.name, f.type, f.offset) for f in fields] == [(n, C.uint8, i) for i, n in enumerate("RGBA")]
    assert [f.flags for f in fields] == [flags.normalized | flags.srgb_gamma] * 3 + [flags.normalized]
    assert fields.size == bitmap.bytes_per_pixel
    light = spy.Bitmap(numbers((2, 2, 3))).pixel_struct
    assert light.size == 12 and {f.flags for f in light} == {flags.none}
    grey = spy.Bitmap(np.full((1, 1), 0.5, np.float32)).convert(component_type=C.uint8, srgb_gamma=True)
    assert np.asarray(grey)[0, 0] == 188


def test_load_from_file(tmp_path: Path) -> None:
    pytest.importorskip("OpenImageIO")
    pixels = sample(np.uint8, 3)
    spy.save_image(tmp_path / "a.png", pixels)
    assert spy.Bitmap.load_from_file(tmp_path / "a.png") == spy.Bitmap(pixels)
    pytest.importorskip("PIL.Image").fromarray(pixels).save(tmp_path / "a.tif")  # one of the formats that are only read
    assert spy.Bitmap(tmp_path / "a.tif") == spy.Bitmap(pixels)


@pytest.mark.null
def test_png_needs_no_package(tmp_path: Path) -> None:
    program = f"""
import sys
sys.modules["OpenImageIO"] = sys.modules["PIL"] = None
import numpy as np, slangpy as spy
spy.save_image({str(tmp_path / "a.png")!r}, np.zeros((2, 3, 3), np.float32))
try:
    spy.save_image({str(tmp_path / "a.jpg")!r}, np.zeros((2, 3, 3), np.float32))
except ImportError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert "a.jpg: image files other than written png need OpenImageIO: pip install slangpy[images]" in done.stdout, (
        done.stderr
    )
    assert (tmp_path / "a.png").is_file() and not (tmp_path / "a.jpg").exists()


@pytest.mark.null
def test_errors(tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    cases: list[tuple[Any, type[Exception], str]] = [
        (3, TypeError, r"save_image: .*a\.png: expected a Bitmap, a Texture, a Tensor or an array, got int"),
        (np.zeros((3, 64, 64), np.float32), ValueError, r"got \(3, 64, 64\); channels come last: permute the axes"),
        (np.zeros((2, 4, 4, 3), np.float32), ValueError, r"got \(2, 4, 4, 3\); take the pictures of a batch one by one"),
        (np.zeros(5, np.float32), ValueError, r"expected the shape \(height, width\) or .*got \(5,\)$"),
        (np.zeros((0, 5), np.float32), ValueError, r"got \(0, 5\)"),
        (np.zeros((4, 4), bool), ValueError, "numbers of bool are no colours; use floats from 0 to 1, or uint8"),
        (np.zeros((4, 4), np.complex64), ValueError, "numbers of complex64 are no colours"),
        (np.zeros((4, 4), np.int32), ValueError, "pixels of int32 are no colours"),
    ]  # fmt: skip
    for data, kind, message in cases:
        with pytest.raises(kind, match=message):
            spy.save_image(path, data)
    for name in ("a.xyz", "a"):
        with pytest.raises(
            RuntimeError, match=r"no image format has the extension '\w*'; known: png, jpg, bmp, tga, hdr, exr"
        ):
            spy.save_image(tmp_path / name, np.zeros((4, 4), np.float32))
    with pytest.raises(RuntimeError, match=r"missing/a\.png: cannot be written as png"):
        spy.save_image(tmp_path / "missing" / "a.png", np.zeros((4, 4), np.float32))
    with pytest.raises(TypeError, match="Bitmap: expected a PixelFormat, an array, a tensor or a path, got dict"):
        spy.Bitmap({})
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("kind", ["tga", "rle.tga", "png", "jpg", "bmp"])
def test_files_that_end_within_the_image(tmp_path: Path, kind: str) -> None:
    """Never a picture whose rest was made up. Whole files may be followed by anything."""
    pytest.importorskip("OpenImageIO")
    image = pytest.importorskip("PIL.Image").fromarray(np.arange(31 * 33 * 3, dtype=np.uint32).astype(np.uint8).reshape(31, 33, 3) // 40)
    path = tmp_path / f"whole.{kind}"
    image.save(path, **({"compression": "tga_rle"} if kind == "rle.tga" else {}))
    whole = path.read_bytes()
    expected = np.asarray(spy.Bitmap(path))
    assert expected.shape == (31, 33, 3)
    path.write_bytes(whole + b"and more")
    assert np.array_equal(np.asarray(spy.Bitmap(path)), expected)
    footer = whole.find(b"\0\0\0\0\0\0\0\0TRUEVISION")
    end = footer if footer >= 0 else len(whole)
    for kept in (end - 1 - (kind == "png") * 12, end * 3 // 4, end // 2):
        path.write_bytes(whole[:kept])
        with pytest.raises(RuntimeError, match=f"cannot be read as {kind[-3:]}: "):
            spy.Bitmap(path)
