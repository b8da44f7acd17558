"""Images, logs and keys in the forms in which programs use them: names of arguments, options as dicts, files of every kind of pixel,
lines of logs, the numbers of keys."""

from __future__ import annotations

import logging
import re
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import slangpy as spy
from slangpy.images.structs import DataType

B = spy.Bitmap
P, C = B.PixelFormat, B.ComponentType
CHANNELS = {P.y: 1, P.ya: 2, P.r: 1, P.rg: 2, P.rgb: 3, P.rgba: 4}


@pytest.fixture(autouse=True)
def _files(request: pytest.FixtureRequest) -> None:
    """What writes files needs the package for them."""
    if "tmp_path" in request.fixturenames:
        pytest.importorskip("OpenImageIO")


def numbers(dtype: Any, *shape: int) -> np.ndarray[Any, Any]:
    return (np.random.default_rng(3).random(shape) * 250).astype(dtype)


# --- resampling into an image
def test_resample_into_a_target() -> None:
    """The filter is the second argument then, or named."""
    image = B(numbers(np.float32, 9, 8, 3))
    kernel = spy.LanczosFilter()
    expected = np.asarray(image.resample(4, 5, kernel))
    sides = (spy.FilterBoundaryCondition.zero, spy.FilterBoundaryCondition.one)
    with_sides = np.asarray(image.resample(width=4, height=5, filter=kernel, bc=sides, clamp=(10.0, 90.0)))
    assert not np.array_equal(expected, np.asarray(image.resample(4, 5, spy.BoxFilter())))
    assert not np.array_equal(expected, with_sides)
    target = B(P.rgb, C.float32, 4, 5)
    image.resample(target, kernel)
    assert np.array_equal(np.asarray(target), expected)
    image.resample(target=target, filter=kernel, bc=sides, clamp=(10.0, 90.0))
    assert np.array_equal(np.asarray(target), with_sides)
    image.resample(target, kernel, sides, (10.0, 90.0))
    assert np.array_equal(np.asarray(target), with_sides)
    same = B(P.rgb, C.float32, 8, 9)
    image.resample(same, kernel)  # of the same size: a copy
    assert same == image


def test_targets_that_do_not_fit() -> None:
    image = B(numbers(np.float32, 4, 4, 3))
    with pytest.raises(RuntimeError, match="target has float16, expected float32"):
        image.resample(B(P.rgb, C.float16, 2, 2), spy.BoxFilter())
    with pytest.raises(RuntimeError, match="target has 1 channels, expected 3"):
        image.resample(B(P.y, C.float32, 2, 2), spy.BoxFilter())
    with pytest.raises(TypeError, match="'target' must be a Bitmap, got int"):
        image.resample(target=3)  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="height"):
        image.resample(3)  # type: ignore[call-overload]


def test_members_of_filters() -> None:
    assert spy.LanczosFilter(2).lobes == 2 and spy.GaussianFilter().stddev == 0.5
    assert (spy.MitchellFilter().b, spy.MitchellFilter().c) == pytest.approx((1 / 3, 1 / 3))
    names = ["clamp", "repeat", "mirror", "zero", "one"]
    assert [item.name for item in spy.FilterBoundaryCondition] == names


# --- bitmaps and files
def test_bitmaps_by_names(tmp_path: Path) -> None:
    empty = B(
        pixel_format=P.rgb,
        component_type=C.uint8,
        width=3,
        height=2,
        channel_count=0,
        channel_names=[],
        srgb_gamma=None,
    )
    assert empty.srgb_gamma and (empty.width, empty.height, empty.channel_count) == (3, 2, 3)
    empty.srgb_gamma = False
    assert not empty.srgb_gamma
    given = B(data=numbers(np.uint8, 2, 3, 3), pixel_format=P.rgb, channel_names=None, srgb_gamma=None)
    given.write(path=tmp_path / "a.png", format=B.FileFormat.auto, quality=-1)
    assert B(path=tmp_path / "a.png") == given == B.read_multiple(paths=[str(tmp_path / "a.png")])[0]


def test_arrays_of_another_byte_order(tmp_path: Path) -> None:
    values = numbers(np.float32, 3, 4, 3)
    swapped = B(values.astype(">f4"))
    assert swapped == B(values) and np.asarray(swapped).dtype.isnative
    swapped.write(tmp_path / "a.exr")
    assert np.array_equal(np.asarray(B(tmp_path / "a.exr")), values)


KINDS = [
    *[("exr", dtype, kind) for dtype in (np.float16, np.float32, np.uint32) for kind in CHANNELS],
    *[("bmp", np.uint8, kind) for kind in (P.y, P.rgb, P.rgba)],
    *[(name, np.uint8, kind) for name in ("tga", "png") for kind in (P.y, P.ya, P.rgb, P.rgba)],
    *[("png", np.uint16, kind) for kind in (P.y, P.rgb, P.rgba)],
]


@pytest.mark.parametrize(("name", "dtype", "kind"), KINDS)
def test_files_keep_every_kind_of_pixel(tmp_path: Path, name: str, dtype: Any, kind: Any) -> None:
    image = B(numbers(dtype, 5, 7, CHANNELS[kind]), kind)
    image.write(tmp_path / f"a.{name}")
    found = B(tmp_path / f"a.{name}")
    assert found.pixel_format == kind and found.channel_names == image.channel_names
    assert found.component_type == image.component_type and np.array_equal(np.asarray(found), np.asarray(image))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.uint32])
@pytest.mark.parametrize(
    "names",
    [[], ["A", "B", "C", "D"], ["a.R", "a.G", "a.B", "b.X", "b.Y"], [f"layer.{i}" for i in range(3)], ["d9", "d11"]],
)
def test_exr_keeps_the_order_of_channels(tmp_path: Path, dtype: Any, names: list[str]) -> None:
    """Files sort channels by name, where C10 is before C2, and B before R."""
    image = B(numbers(dtype, 3, 4, len(names) or 12), P.multi_channel, names)
    image.write(tmp_path / "a.exr")
    found = B(tmp_path / "a.exr")
    assert found.channel_names == image.channel_names and np.array_equal(np.asarray(found), np.asarray(image))


def test_dds_files(tmp_path: Path) -> None:
    """Read by what they begin with; block compression is undone."""
    pillow = pytest.importorskip("PIL.Image")
    pixels = numbers(np.uint8, 8, 12, 4)
    pillow.fromarray(pixels).save(tmp_path / "plain.dds")
    found = B(tmp_path / "plain.dds")
    assert found.pixel_format == P.rgba and np.array_equal(np.asarray(found), pixels) and not found.srgb_gamma
    flat = np.tile(np.array([255, 0, 255, 255], np.uint8), (8, 12, 1))
    for name in ("DXT1", "DXT5"):
        pillow.fromarray(flat).save(tmp_path / f"{name}.dds", pixel_format=name)
        assert np.array_equal(np.asarray(B(tmp_path / f"{name}.dds")), flat)
    (tmp_path / "bad.dds").write_bytes(b"DDS and nothing that follows is right")
    with pytest.raises(RuntimeError, match=r"bad\.dds: cannot be read as dds"):
        B(tmp_path / "bad.dds")


@pytest.mark.parametrize(
    ("name", "dtype"),
    [("png", np.uint8), ("png", np.uint16), ("jpg", np.uint8), ("hdr", np.float32), ("exr", np.float32)],
)
def test_what_cannot_be_written(tmp_path: Path, caplog: pytest.LogCaptureFixture, name: str, dtype: Any) -> None:
    """RuntimeError for every format; what fails later is logged."""
    path = tmp_path / "missing" / f"a.{name}"
    with pytest.raises(RuntimeError, match=rf"a\.{name}"):
        B(numbers(dtype, 2, 2, 3)).write(path)
    with pytest.raises(RuntimeError, match="without pixels cannot be written, got 0 x 3"):
        B(numbers(dtype, 3, 0, 3)).write(tmp_path / f"a.{name}")
    with caplog.at_level(logging.ERROR, "slangpy"):
        with pytest.raises(RuntimeError, match=rf"a\.{name}"):
            B(numbers(dtype, 2, 2, 3)).write_async(path).result(timeout=60)
        for _ in range(600):  # callbacks run after those who wait have been woken
            if caplog.messages:
                break
            time.sleep(0.01)
    assert len(caplog.messages) == 1
    assert caplog.messages[0].startswith("write_async: ") and f"a.{name}" in caplog.messages[0]


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: B(np.zeros((2, 2, 0), np.float32)), r"expected an array .* got shape \(2, 2, 0\)"),
        (lambda: B(np.zeros((2, 2), bool)), "of bool"),
        (lambda: B(P.multi_channel, C.uint8, 2, 2), "channel_count or channel_names"),
        (lambda: B(np.zeros((2, 2, 5), np.float32)).convert(P.rgb), r"none of the channels \['C0', .* gives \['R'"),
        (lambda: B(np.zeros((2, 2, 2), np.float32), channel_names=["u", "v"]).convert(P.y), "none of the channels"),
        (lambda: spy.TentFilter(-1), "radius must be greater than 0"),
    ],
)
def test_errors_are_both(make: Any, text: str) -> None:
    """RuntimeError as there, and the class that says more."""
    for kind in (RuntimeError, ValueError):
        with pytest.raises(kind, match=text):
            make()


# --- records
@pytest.mark.parametrize("source", list(DataType))
def test_numbers_of_every_type_convert(source: DataType) -> None:
    """As they are, and normalized from 0 to the largest value."""
    struct_, flags = spy.DataStruct, spy.DataStruct.Flags
    for target in DataType:
        for flag in (flags.none, flags.normalized):
            whole = [struct_.is_integer(kind) and flag != flags.none for kind in (source, target)]
            last = [np.iinfo(k.name).max if w else 1 for k, w in zip((source, target), whole, strict=True)]
            first, second = (struct_().append(name="x", type=k, flags=flag) for k in (source, target))
            data = np.array([0, last[0]], source.name).tobytes()
            got = np.frombuffer(spy.DataStructConverter(src=first, dst=second).convert(data), target.name)
            assert got.tolist() == [0, last[1]], (source, target, flag)


# --- textures
def test_options_of_textures() -> None:
    options = spy.TextureLoader.Options({"load_as_srgb": False, "allocate_mips": True})
    assert not options.load_as_srgb and options.allocate_mips and options.load_as_normalized and options.extend_alpha
    assert not options.generate_mips and options.ya_handling == spy.TextureLoader.YAHandling.expand_to_rgba
    options.generate_mips = True
    assert options.generate_mips and not spy.TextureLoader.Options().generate_mips
    assert spy.TextureLoader.Options(generate_mips=True, load_as_srgb=False, allocate_mips=True) == options
    with pytest.raises(TypeError, match="no option 'srgb'"):
        spy.TextureLoader.Options({"srgb": True})
    with pytest.raises(TypeError, match="expected a dict"):
        spy.TextureLoader.Options(True)  # type: ignore[arg-type]


def test_textures_by_names(device: spy.Device, tmp_path: Path) -> None:
    loader = spy.TextureLoader(device)
    image = B(numbers(np.uint8, 4, 6, 4))
    path = tmp_path / "a.png"
    image.write(path)
    textures = [loader.load_texture(bitmap=image), loader.load_texture(path=path, options=loader.Options())]
    textures += loader.load_textures(bitmaps=[image]) + loader.load_textures(paths=[path], options=[{}])
    layers = loader.load_texture_array(paths=[path, path], options={})
    assert layers.array_length == 2 == loader.load_texture_array(bitmaps=[image, image]).array_length
    assert len(textures) == 4 and {t.format for t in [*textures, layers]} == {spy.Format.rgba8_unorm_srgb}
    if device.info.type is not spy.DeviceType.null:
        for texture in textures:
            assert texture.to_bitmap() == image
        assert layers.to_bitmap(layer=1, mip=0) == image
    with pytest.raises(TypeError, match="Bitmap or the path"):
        loader.load_texture()


def test_alpha_is_added_where_a_device_lacks_rgb(device: spy.Device) -> None:
    loader = spy.TextureLoader(device)
    bytes_ = loader.load_texture(B(numbers(np.uint8, 4, 6, 3)))
    assert bytes_.format == spy.Format.rgba8_unorm_srgb  # no device has three channels of 8 bits
    with pytest.raises(ValueError, match="3 channels of uint8; leave extend_alpha True"):
        loader.load_texture(B(numbers(np.uint8, 4, 6, 3)), {"extend_alpha": False})
    values = numbers(np.float32, 4, 6, 3)
    support = device.get_format_support(spy.Format.rgb32_float)
    needed = spy.FormatSupport.texture | spy.FormatSupport.shader_load
    for more, usage in (
        (spy.FormatSupport.none, spy.TextureUsage.shader_resource),
        (spy.FormatSupport.shader_uav_store, spy.TextureUsage.shader_resource | spy.TextureUsage.unordered_access),
    ):
        texture = loader.load_texture(B(values), {"usage": usage})
        serves = support & (needed | more) == needed | more
        assert texture.format == (spy.Format.rgb32_float if serves else spy.Format.rgba32_float)
        assert texture.desc.usage & usage == usage
        if device.info.type is not spy.DeviceType.null:
            texels = texture.to_numpy()
            assert np.array_equal(texels[:, :, :3], values) and (texels[:, :, 3:] == 1).all()


def test_mips_of_srgb_images(device: spy.Device) -> None:
    """Means of light, though devices cannot write such formats from kernels."""
    pixels = np.zeros((2, 4, 4), np.uint8)
    pixels[0, ::2], pixels[1, 1::2], pixels[:, :, 3] = 255, 255, 255
    texture = spy.TextureLoader(device).load_texture(B(pixels), {"generate_mips": True})
    assert texture.format == spy.Format.rgba8_unorm_srgb and texture.mip_count == 3
    if device.info.type is not spy.DeviceType.null:
        for mip, width in ((1, 2), (2, 1)):
            found = np.asarray(texture.to_bitmap(mip=mip)).reshape(width, 4).astype(int)
            assert np.abs(found - [188, 188, 188, 255]).max() <= 1


def test_dds_textures(device: spy.Device, tmp_path: Path) -> None:
    pillow = pytest.importorskip("PIL.Image")
    pixels = numbers(np.uint8, 8, 4, 4)
    pillow.fromarray(pixels).save(tmp_path / "a.dds")
    texture = spy.TextureLoader(device).load_texture(tmp_path / "a.dds")
    assert texture.format == spy.Format.bgra8_unorm and (texture.width, texture.height) == (4, 8)
    if device.info.type is not spy.DeviceType.null:
        assert np.array_equal(np.asarray(texture.to_bitmap()), pixels)


# --- logs and keys
LINES = [
    "[DEBUG] (one) a",
    "[INFO] (one) b",
    "[WARN] (one) c",
    "[ERROR] (one) d",
    "[FATAL] (one) e",
    "bare",
    "[WARN] (two) f",
]


def test_lines_of_logs(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Files and the console get the same lines; a logger may be renamed."""
    logger = spy.Logger(spy.LogLevel.debug, "one", use_default_outputs=False)
    logger.add_file_output(path=tmp_path / "log.txt")
    logger.add_console_output(colored=False)
    for write, text in zip((logger.debug, logger.info, logger.warn, logger.error, logger.fatal), "abcde", strict=True):
        write(text)
    logger.log(spy.LogLevel.none, "bare")
    logger.name = "two"
    logger.warn("f")
    assert (tmp_path / "log.txt").read_text(encoding="utf-8").splitlines() == LINES
    captured = capfd.readouterr()
    assert (captured.err or captured.out).splitlines() == LINES
    order = [spy.LogLevel[name] for name in ("none", "debug", "info", "warn", "error", "fatal")]
    assert order == sorted(order) and order[2] < order[3] and order[3] >= spy.LogLevel.warn


def test_members_of_the_platform() -> None:
    platform = spy.platform
    assert platform.display_scale_factor == 1.0 and platform.executable_directory == platform.executable_path.parent
    assert platform.executable_name == platform.executable_path.name
    for folder in (platform.app_data_directory, platform.project_directory, platform.runtime_directory):
        assert isinstance(folder, Path) and folder.is_absolute()
    assert platform.runtime_directory.parent == platform.project_directory == platform.project_directory()
    assert type(platform.project_directory()) is type(Path()) and (platform.project_directory() / "slangpy").is_dir()


PRINTABLE = """
space 32 apostrophe 39 comma 44 minus 45 period 46 slash 47 key0 48 key1 49 key2 50 key3 51 key4 52 key5 53 key6 54
key7 55 key8 56 key9 57 semicolon 59 equal 61 a 65 b 66 c 67 d 68 e 69 f 70 g 71 h 72 i 73 j 74 k 75 l 76 m 77 n 78 o 79
p 80 q 81 r 82 s 83 t 84 u 85 v 86 w 87 x 88 y 89 z 90 left_bracket 91 backslash 92 right_bracket 93 grave_accent 96
world_1 161 world_2 162
"""
OTHERS = """
escape tab enter backspace insert delete right left down up page_up page_down home end caps_lock scroll_lock num_lock
print_screen pause f1 f2 f3 f4 f5 f6 f7 f8 f9 f10 f11 f12 keypad0 keypad1 keypad2 keypad3 keypad4 keypad5 keypad6
keypad7 keypad8 keypad9 keypad_del keypad_divide keypad_multiply keypad_subtract keypad_add keypad_enter keypad_equal
left_shift left_control left_alt left_super right_shift right_control right_alt right_super menu unknown
"""


def test_numbers_of_keys() -> None:
    expected = {name: int(number) for name, number in re.findall(r"(\w+) (-?\d+)", PRINTABLE)}
    expected |= {name: 256 + i for i, name in enumerate(OTHERS.split())}
    assert {item.name: item.value for item in spy.KeyCode} == expected
