"""Image files, through OpenImageIO, which reads and writes all of their formats; PNG is written without it."""

from __future__ import annotations

import enum
import os
import re
import struct
from pathlib import Path
from typing import Any

import numpy as np

from ..base.optional import find_package
from .dds import starts_dds
from .png import encode_png
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
_TYPES = {"uint8": "uint8", "uint16": "uint16", "uint32": "uint", "float16": "half", "float32": "float"}
"""Names of NumPy's types in OpenImageIO."""


def _package(path: str) -> Any:
    found = find_package("OpenImageIO")
    if found is None:
        raise ImportError(f"{path}: image files other than written png need OpenImageIO: pip install slangpy[images]")
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


def format_of(path: str, format: FileFormat = FileFormat.auto) -> FileFormat:
    """RuntimeError for extensions of no format."""
    if format not in (FileFormat.auto, FileFormat.unknown):
        return format
    extension = os.path.splitext(path)[1].lstrip(".").lower()
    name = _EXTENSIONS.get(extension, extension)
    if name not in FileFormat.__members__ or FileFormat[name] < FileFormat.png:
        known = ", ".join(item.name for item in FileFormat if item >= FileFormat.png)
        raise RuntimeError(f"{path}: no image format has the extension '{extension}'; known: {known}")
    return FileFormat[name]


class ImageFileNotFoundError(FileNotFoundError, RuntimeError):
    """Programs written for shader-slang/slangpy catch it as a RuntimeError."""


def read_image(path: str, format: FileFormat) -> tuple[Array, list[str], bool]:
    """Pixels (height, width, channels), names of the channels, and whether they follow the curve of sRGB."""
    if not os.path.isfile(path):
        raise ImageFileNotFoundError(f"{os.path.abspath(path)}: no such image file")
    if starts_dds(path):
        return _read(path, "dds")
    kind = _format_of_content(path)
    if kind is None and FileFormat(format) in (FileFormat.auto, FileFormat.unknown) and _is_other(path):
        return _read(path, "")
    return _read(path, (kind or format_of(path, FileFormat(format))).name)


def _is_other(path: str) -> bool:
    """Whether it is a file of none of our formats that OpenImageIO reads all the same, such as tif or webp."""
    extension = os.path.splitext(path)[1].lstrip(".").lower()
    if _EXTENSIONS.get(extension, extension) in FileFormat.__members__:
        return False
    return _package(path).ImageInput.open(path) is not None


def write_image(
    path: str, format: FileFormat, pixels: Array, names: list[str], srgb_gamma: bool, quality: int
) -> None:  # fmt: skip
    kind = format_of(path, format)
    if pixels.size == 0:
        raise RuntimeError(f"{path}: an image without pixels cannot be written, got {pixels.shape[1]} x {pixels.shape[0]}")
    try:
        _write(path, kind, pixels, names, quality)
    except OSError as error:
        raise RuntimeError(f"{path}: cannot be written as {kind.name}: {error}") from error


def _write(path: str, kind: FileFormat, pixels: Array, names: list[str], quality: int) -> None:
    _check(path, kind, pixels, names)
    if kind == FileFormat.png:
        with open(path, "wb") as file:
            file.write(encode_png(pixels, 6 if quality < 0 else min(quality, 9)))
        return
    if pixels.shape[2] in _WITHOUT_ALPHA.get(kind, ()):
        pixels = pixels[:, :, :-1]
    package = _package(path)
    spec = package.ImageSpec(pixels.shape[1], pixels.shape[0], pixels.shape[2], _TYPES[pixels.dtype.name])
    spec["oiio:UnassociatedAlpha"] = 1
    if kind == FileFormat.exr:
        spec.channelnames, spec["compression"] = tuple(names), "zip"
    elif kind == FileFormat.jpg:
        spec["Compression"], spec["jpeg:subsampling"] = f"jpeg:{100 if quality < 0 else max(1, min(quality, 100))}", "4:4:4"
    output = package.ImageOutput.create(_PLUGINS.get(kind.name, kind.name))
    if not output.open(path, spec) or not output.write_image(np.ascontiguousarray(pixels)) or not output.close():
        raise OSError(output.geterror())


def _check(path: str, kind: FileFormat, pixels: Array, names: list[str]) -> None:
    """RuntimeError for pixels that a format does not hold."""
    dtype, count = pixels.dtype, pixels.shape[2]
    if kind == FileFormat.exr:
        if dtype.name not in ("float16", "float32", "uint32"):
            raise RuntimeError(f"{path}: exr files hold float16, float32 and uint32, got {dtype}; use convert() first")
    elif kind == FileFormat.hdr:
        if names != ["R", "G", "B"] or dtype != np.float32:
            raise RuntimeError(f"{path}: hdr files hold RGB of float32, got channels {names} of {dtype}; use convert() first")
    elif count not in _COLOUR or not (dtype == np.uint8 or (dtype == np.uint16 and kind == FileFormat.png)):
        more = " or uint16" if kind == FileFormat.png else ""
        raise RuntimeError(
            f"{path}: {kind.name} files hold 1 to 4 channels of uint8{more}, got {count} of {dtype}; use convert() first, "
            "as in bitmap.convert(component_type=\"uint8\", srgb_gamma=True), write exr, or call save_image(path, array)"
        )


_WITHOUT_ALPHA = {FileFormat.jpg: (2, 4), FileFormat.bmp: (2,)}
"""Numbers of channels of which a format leaves out the last."""
_PLUGINS = {"exr": "openexr", "jpg": "jpeg", "tga": "targa"}


def _read(path: str, kind: str) -> tuple[Array, list[str], bool]:
    """kind: a name of FileFormat, dds, or nothing for any other. dds: the largest mip of the first image, without its
    block compression."""
    package = _package(path)
    wanted = package.ImageSpec()
    wanted["oiio:UnassociatedAlpha"] = 1
    reader = package.ImageInput.open(path, wanted)
    if reader is None:
        raise RuntimeError(f"{path}: cannot be read as {kind}: {package.geterror()}")
    if kind and reader.format_name() != _PLUGINS.get(kind, kind):
        raise RuntimeError(f"{path}: cannot be read as {kind}: its content is damaged, or of another format")
    spec = reader.spec()
    pixels = reader.read_image(0, 0, 0, spec.nchannels, spec.format)
    reader.close()
    if pixels is None:
        raise RuntimeError(f"{path}: cannot be read as {kind}: {reader.geterror()}")
    if not _ENDS.get(kind, _any_end)(path):
        raise RuntimeError(f"{path}: cannot be read as {kind}: the file ends within the image")
    names = list(spec.channelnames)
    if reader.format_name() == "openexr":
        ordered = _in_order(names)
        return np.ascontiguousarray(pixels[:, :, [names.index(name) for name in ordered]]), ordered, False
    if kind == "hdr" or pixels.shape[2] not in _COLOUR:
        return pixels, names, False
    srgb = pixels.dtype == np.uint8 and (kind != "dds" or "srgb" in str(spec.getattribute("oiio:ColorSpace")))
    return pixels, _COLOUR[pixels.shape[2]], srgb


# --- files that OpenImageIO reads to their end and fills up in silence
def _any_end(path: str) -> bool:
    del path
    return True


def _has_end_of_jpeg(path: str) -> bool:
    """A marker of the end after the last one that begins a scan: pictures within the file's header have both."""
    data = Path(path).read_bytes()
    return data.rfind(b"\xff\xd9") > data.rfind(b"\xff\xda")


def _has_end_of_targa(path: str) -> bool:
    """Truevision, TGA File Format Specification 2.0, 1991: a header, a name, a palette, and the pixels, in packets of a
    byte with their number, its first bit set where one pixel stands for all, if the kind is 8 or more."""
    data = Path(path).read_bytes()
    name_size, has_palette, kind, _, palette_length, palette_bits, _, _, width, height, bits = struct.unpack_from("<3B2HB4HB", data)
    at = 18 + name_size + (palette_length * (palette_bits + 7 >> 3) if has_palette else 0)
    size, left = bits + 7 >> 3, width * height
    if kind < 8:
        return at + left * size <= len(data)
    while left > 0 and at < len(data):
        count = (data[at] & 127) + 1
        at += 1 + (size if data[at] & 128 else count * size)
        left -= count
    return left <= 0 and at <= len(data)


_ENDS = {"jpg": _has_end_of_jpeg, "tga": _has_end_of_targa}


# --- EXR
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
