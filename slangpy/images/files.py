"""Image files, through the packages that know their formats."""

from __future__ import annotations

import enum
import os
import re
import struct
from typing import Any

import numpy as np

from ..base.optional import find_package
from .scalars import Array


class FileFormat(enum.IntEnum):
    """Formats of image files; `auto` goes by the extension, `unknown` is none."""

    unknown = 0
    auto = 1
    png = 2
    jpg = 3
    bmp = 4
    tga = 5
    hdr = 6
    exr = 7

    __str__ = enum.Enum.__str__


_EXTENSIONS = {"jpeg": "jpg"}
_COLOUR = {1: ["Y"], 2: ["Y", "A"], 3: ["R", "G", "B"], 4: ["R", "G", "B", "A"]}
_PILLOW = {FileFormat.png: "PNG", FileFormat.jpg: "JPEG", FileFormat.bmp: "BMP", FileFormat.tga: "TGA"}


def _package(name: str, path: str) -> Any:
    found = find_package(name)
    if found is None:
        raise ImportError(f"{path}: reading and writing images needs packages that are missing: pip install slangpy[images]")
    return found


_BEGINS = {
    b"\x89PNG": FileFormat.png, b"\xff\xd8\xff": FileFormat.jpg, b"BM": FileFormat.bmp, b"#?": FileFormat.hdr,
    b"\x76\x2f\x31\x01": FileFormat.exr,
}  # fmt: skip


def _format_of_content(path: str) -> FileFormat | None:
    """How a file begins says its format, whatever its name."""
    with open(path, "rb") as file:
        begin = file.read(4)
    return next((kind for start, kind in _BEGINS.items() if begin.startswith(start)), None)


def _is_dds(path: str) -> bool:
    with open(path, "rb") as file:
        return file.read(4) == b"DDS "


def _format_of(path: str, format: FileFormat) -> FileFormat:
    if format not in (FileFormat.auto, FileFormat.unknown):
        return format
    extension = os.path.splitext(path)[1].lstrip(".").lower()
    name = _EXTENSIONS.get(extension, extension)
    if name not in FileFormat.__members__ or FileFormat[name] < FileFormat.png:
        known = ", ".join(item.name for item in FileFormat if item >= FileFormat.png)
        raise RuntimeError(f"{path}: no image format has the extension '{extension}'; known: {known}")
    return FileFormat[name]


def read_image(path: str, format: FileFormat) -> tuple[Array, list[str], bool]:
    """Pixels (height, width, channels), names of the channels, and whether they follow the curve of sRGB."""
    if not os.path.isfile(path):
        raise RuntimeError(f"{path}: no such image file")
    if _is_dds(path):
        return _read_dds(path)
    kind = _format_of_content(path) or _format_of(path, FileFormat(format))
    try:
        if kind == FileFormat.exr:
            return _read_exr(path)
        if kind == FileFormat.hdr:
            return _read_hdr(path)
        return _read_pillow(path)
    except (OSError, ValueError, SyntaxError, RuntimeError) as error:
        raise RuntimeError(f"{path}: cannot be read as {kind.name}: {error}") from error


def write_image(
    path: str, format: FileFormat, pixels: Array, names: list[str], srgb_gamma: bool, quality: int
) -> None:  # fmt: skip
    kind = _format_of(path, format)
    if pixels.size == 0:
        raise RuntimeError(f"{path}: an image without pixels cannot be written, got {pixels.shape[1]} x {pixels.shape[0]}")
    try:
        _write(path, kind, pixels, names, quality)
    except OSError as error:
        raise RuntimeError(f"{path}: cannot be written as {kind.name}: {error}") from error


def _write(path: str, kind: FileFormat, pixels: Array, names: list[str], quality: int) -> None:
    if kind == FileFormat.exr:
        return _write_exr(path, pixels, names)
    if kind == FileFormat.hdr:
        return _write_hdr(path, pixels, names)
    if pixels.dtype == np.uint16 and kind == FileFormat.png:
        return _write_png16(path, pixels, quality)
    if pixels.dtype != np.uint8 or pixels.shape[2] not in _COLOUR:
        more = " or uint16" if kind == FileFormat.png else ""
        raise RuntimeError(
            f"{path}: {kind.name} files hold 1 to 4 channels of uint8{more}, got {pixels.shape[2]} of {pixels.dtype}; use "
            "convert() first, or write exr"
        )
    _write_pillow(path, kind, pixels, quality)


# --- Pillow
def _read_pillow(path: str) -> tuple[Array, list[str], bool]:
    with _package("PIL.Image", path).open(path) as image:
        if image.format == "PNG" and _png_bits(path) == 16:
            return _read_png16(path)
        if image.mode in ("P", "PA", "1", "CMYK", "YCbCr"):
            image = image.convert("RGBA" if "transparency" in image.info or image.mode == "PA" else "RGB")
        pixels = np.asarray(image)
    pixels = pixels[:, :, None] if pixels.ndim == 2 else pixels
    return np.ascontiguousarray(pixels), _COLOUR[pixels.shape[2]], True


def _read_dds(path: str) -> tuple[Array, list[str], bool]:
    """The largest mip of the first image of a DDS file, without its block compression."""
    try:
        with _package("PIL.Image", path).open(path, formats=["DDS"]) as image:
            if str(getattr(image, "pixel_format", "")).startswith("BC6H"):
                raise RuntimeError("its BC6H texels go beyond 1, which 8 bits do not hold; convert it to exr")
            srgb = "gamma" in image.info
            image = image.convert("RGBA") if image.mode == "P" else image
            pixels = np.asarray(image)
    except (OSError, ValueError, SyntaxError, RuntimeError, struct.error) as error:
        raise RuntimeError(f"{path}: cannot be read as dds: {error}") from error
    pixels = pixels[:, :, None] if pixels.ndim == 2 else pixels
    return np.ascontiguousarray(pixels), _COLOUR[pixels.shape[2]], srgb


def _write_pillow(path: str, kind: FileFormat, pixels: Array, quality: int) -> None:
    if kind == FileFormat.bmp and pixels.shape[2] == 4:
        return _write_opencv(path, pixels, [])  # with the header that says that there is alpha
    if kind in (FileFormat.jpg, FileFormat.bmp) and pixels.shape[2] in (2, 4):
        pixels = pixels[:, :, :-1]  # these have no alpha
    shaped = np.ascontiguousarray(pixels if pixels.shape[2] > 1 else pixels[:, :, 0])
    options: dict[str, Any] = {}
    if kind == FileFormat.jpg:
        options = {"quality": 100 if quality < 0 else quality, "subsampling": 0}
    elif kind == FileFormat.png and quality >= 0:
        options = {"compress_level": min(quality, 9)}
    _package("PIL.Image", path).fromarray(shaped).save(path, _PILLOW[kind], **options)


# --- 16-bit PNG and Radiance, which Pillow does not keep whole: OpenCV, whose channels are B, G, R, A
_BGR = {1: [0], 2: [0, 1], 3: [2, 1, 0], 4: [2, 1, 0, 3]}


def _png_bits(path: str) -> int:
    with open(path, "rb") as file:
        return file.read(25)[24]


def _read_opencv(path: str) -> Array:
    pixels = _package("cv2", path).imread(path, -1)
    if pixels is None:
        raise ValueError("its content is damaged")
    pixels = pixels[:, :, None] if pixels.ndim == 2 else pixels
    return np.ascontiguousarray(pixels[:, :, _BGR[pixels.shape[2]]])


def _write_opencv(path: str, pixels: Array, options: list[int]) -> None:
    if not _package("cv2", path).imwrite(path, np.ascontiguousarray(pixels[:, :, _BGR[pixels.shape[2]]]), options):
        raise RuntimeError(f"{path}: cannot be written")


def _read_png16(path: str) -> tuple[Array, list[str], bool]:
    pixels = _read_opencv(path)
    return pixels, _COLOUR[pixels.shape[2]], False


def _write_png16(path: str, pixels: Array, quality: int) -> None:
    if pixels.shape[2] not in (1, 3, 4):
        raise RuntimeError(f"{path}: png files of 16 bits hold 1, 3 or 4 channels, got {pixels.shape[2]}")
    level = _package("cv2", path).IMWRITE_PNG_COMPRESSION
    _write_opencv(path, pixels, [] if quality < 0 else [level, min(quality, 9)])


def _read_hdr(path: str) -> tuple[Array, list[str], bool]:
    return _read_opencv(path), ["R", "G", "B"], False


def _write_hdr(path: str, pixels: Array, names: list[str]) -> None:
    if names[:3] != ["R", "G", "B"] or pixels.dtype != np.float32:
        raise RuntimeError(f"{path}: hdr files hold RGB of float32, got channels {names} of {pixels.dtype}")
    _write_opencv(path, pixels[:, :, :3], [])


# --- OpenEXR
def _in_order(names: list[str]) -> list[str]:
    """Channels, which files sort by name: group by group, colours as R, G, B, Y, A, others by their names and numbers."""
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault(name.rpartition(".")[0], []).append(name)
    ordered: list[str] = []
    for prefix in sorted(groups):
        lasts = [name.rpartition(".")[2] for name in groups[prefix]]
        colours = set(lasts) <= set("RGBYA")
        ordered += sorted(groups[prefix], key=_colour if colours else _numbered)
    return ordered


def _colour(name: str) -> int:
    return "RGBYA".index(name[-1])


def _numbered(name: str) -> list[tuple[int, str]]:
    """C2 comes before C10."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", name)]


def _read_exr(path: str) -> tuple[Array, list[str], bool]:
    with _package("OpenEXR", path).File(path, separate_channels=True) as file:
        channels = {name: channel.pixels for name, channel in file.channels().items()}
    names = _in_order(list(channels))
    return np.stack([channels[name] for name in names], axis=2), names, False


def _write_exr(path: str, pixels: Array, names: list[str]) -> None:
    if pixels.dtype.name not in ("float16", "float32", "uint32"):
        raise RuntimeError(f"{path}: exr files hold float16, float32 and uint32, got {pixels.dtype}; use convert() first")
    package = _package("OpenEXR", path)
    header = {"compression": package.ZIP_COMPRESSION, "type": package.scanlineimage}
    planes = {name: np.ascontiguousarray(pixels[:, :, i]) for i, name in enumerate(names)}
    with package.File(header, planes) as file:
        file.write(path)
