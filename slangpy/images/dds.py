"""DDS files as they lie on disk: formats, mips, layers and faces, with block compression kept.

The layout is that of "Programming Guide for DDS" and "DDS_HEADER_DXT10" of Microsoft's documentation.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from .._native import Format, TextureType, get_format_info

_MAGIC = b"DDS "
_HEADER = struct.Struct("<7I44x8I5I")
_DX10 = struct.Struct("<5I")
_HAS_ALPHA, _HAS_FOURCC = 0x1, 0x4
_IS_CUBE, _ALL_FACES, _IS_VOLUME = 0x200, 0xFC00, 0x200000
_CUBE_OF_DX10 = 0x4
_DIMENSION_1D, _DIMENSION_3D = 2, 4

_FOURCC = {
    b"DXT1": "bc1_unorm", b"DXT2": "bc2_unorm", b"DXT3": "bc2_unorm", b"DXT4": "bc3_unorm", b"DXT5": "bc3_unorm",
    b"ATI1": "bc4_unorm", b"BC4U": "bc4_unorm", b"BC4S": "bc4_snorm", b"ATI2": "bc5_unorm", b"BC5U": "bc5_unorm",
    b"BC5S": "bc5_snorm", struct.pack("<I", 36): "rgba16_unorm", struct.pack("<I", 110): "rgba16_snorm",
    struct.pack("<I", 111): "r16_float", struct.pack("<I", 112): "rg16_float", struct.pack("<I", 113): "rgba16_float",
    struct.pack("<I", 114): "r32_float", struct.pack("<I", 115): "rg32_float", struct.pack("<I", 116): "rgba32_float",
}  # fmt: skip
"""Codes of files without the newer header; numbers are those of Direct3D 9."""
_MASKS: dict[tuple[int, ...], str] = {
    (32, 0xFF, 0xFF00, 0xFF0000, 0xFF000000): "rgba8_unorm",
    (32, 0xFF0000, 0xFF00, 0xFF, 0xFF000000): "bgra8_unorm",
    (32, 0xFF0000, 0xFF00, 0xFF, 0): "bgrx8_unorm",
    (32, 0xFFFF, 0xFFFF0000, 0, 0): "rg16_unorm",
    (16, 0xF800, 0x7E0, 0x1F, 0): "b5g6r5_unorm",
    (16, 0x7C00, 0x3E0, 0x1F, 0x8000): "bgr5a1_unorm",
    (16, 0xF00, 0xF0, 0xF, 0xF000): "bgra4_unorm",
    (16, 0xFF, 0, 0, 0xFF00): "rg8_unorm",
    (16, 0xFFFF, 0, 0, 0): "r16_unorm",
    (8, 0xFF, 0, 0, 0): "r8_unorm",
}
"""Bits of a texel and of its red, green, blue and alpha."""


@dataclass(frozen=True)
class DdsPart:
    """The bytes of one mip of one layer."""

    layer: int
    mip: int
    data: memoryview


@dataclass(frozen=True)
class DdsImage:
    """layers: array elements, six for each cube. parts: layer by layer, from the largest mip on."""

    type: TextureType
    format: Format
    width: int
    height: int
    depth: int
    layers: int
    mips: int
    parts: list[DdsPart]

    def kind(self) -> tuple[object, ...]:
        """What the files of one texture array have in common."""
        return self.type, self.format, self.width, self.height, self.depth, self.layers, self.mips


class NoFormatError(RuntimeError):
    """A file is right, but no texture has its format."""


class _Unknown(ValueError):
    """The same, without the path."""


def starts_dds(path: str) -> bool:
    with open(path, "rb") as file:
        return file.read(4) == _MAGIC


def read_dds(path: str) -> DdsImage:
    """RuntimeError for files that are damaged; NoFormatError for formats that textures have not."""
    with open(path, "rb") as file:
        data = memoryview(file.read())
    try:
        return _read(data)
    except _Unknown as error:
        raise NoFormatError(f"{path}: {error}") from error
    except (struct.error, ValueError) as error:
        raise RuntimeError(f"{path}: cannot be read as dds: {error}") from error


def _read(data: memoryview) -> DdsImage:
    header = _HEADER.unpack_from(data, 4)
    if header[0] != _HEADER.size:
        raise ValueError("its header is damaged")
    size, mips = (header[3], header[2], header[5]), max(1, header[6])
    flags, fourcc, caps2 = header[8], struct.pack("<I", header[9]), header[16]
    is_cube, dimension = bool(caps2 & _IS_CUBE), _DIMENSION_3D if caps2 & _IS_VOLUME else 0
    layers, at = 6 if is_cube else 1, 4 + _HEADER.size
    if flags & _HAS_FOURCC and fourcc == b"DX10":
        number, dimension, misc, count, _ = _DX10.unpack_from(data, at)
        is_cube, at = bool(misc & _CUBE_OF_DX10), at + _DX10.size
        format_, layers = _by_dxgi(number), max(1, count) * (6 if is_cube else 1)
    elif is_cube and caps2 & _ALL_FACES != _ALL_FACES:
        raise ValueError("it is a cube without some of its faces")
    elif flags & _HAS_FOURCC:
        format_ = _by_fourcc(fourcc)
    else:
        format_ = _by_masks((*header[10:14], header[14] if flags & _HAS_ALPHA else 0))
    kind = _type_of(dimension, is_cube, layers)
    size = (size[0], size[1], max(1, size[2]) if kind == TextureType.texture_3d else 1)
    return DdsImage(kind, format_, *size, layers, mips, _parts(data, at, format_, size, layers, mips))


def _by_fourcc(code: bytes) -> Format:
    if code not in _FOURCC:
        raise _Unknown(f"textures have no format {code!r}")
    return Format[_FOURCC[code]]


def _by_masks(masks: tuple[int, ...]) -> Format:
    if masks not in _MASKS:
        raise _Unknown(f"textures have no format of {masks[0]} bits with the masks {', '.join(map(hex, masks[1:]))}")
    return Format[_MASKS[masks]]


def _by_dxgi(number: int) -> Format:
    for item in Format:
        if number and get_format_info(item).dxgi_format == number:
            return item
    raise _Unknown(f"textures have no format with the DXGI number {number}")


def _type_of(dimension: int, is_cube: bool, layers: int) -> TextureType:
    if dimension == _DIMENSION_3D:
        return TextureType.texture_3d
    if is_cube:
        return TextureType.texture_cube if layers == 6 else TextureType.texture_cube_array
    if dimension == _DIMENSION_1D:
        return TextureType.texture_1d if layers == 1 else TextureType.texture_1d_array
    return TextureType.texture_2d if layers == 1 else TextureType.texture_2d_array


def _parts(
    data: memoryview, at: int, format: Format, size: tuple[int, int, int], layers: int, mips: int
) -> list[DdsPart]:  # fmt: skip
    info = get_format_info(format)
    if min(size) < 1 or mips > max(size).bit_length():
        raise ValueError(f"it has {mips} mips of {' x '.join(map(str, size))} texels")
    parts: list[DdsPart] = []
    for layer in range(layers):
        for mip in range(mips):
            width, height, depth = (max(1, length >> mip) for length in size)
            blocks = -(-width // info.block_width) * -(-height // info.block_height)
            end = at + blocks * depth * info.bytes_per_block
            if end > len(data):
                raise ValueError(f"it ends within mip {mip} of layer {layer}")
            parts.append(DdsPart(layer, mip, data[at:end]))
            at = end
    return parts
