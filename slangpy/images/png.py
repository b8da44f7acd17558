"""PNG files of 8 and 16 bits, without a package: pictures in notebooks and what is saved (ISO/IEC 15948)."""

from __future__ import annotations

import struct
import zlib

import numpy as np

from .scalars import Array

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_COLOUR_TYPES = {1: 0, 2: 4, 3: 2, 4: 6}
"""Grey, grey and alpha, RGB, RGB and alpha, by their channels."""


def _chunk(name: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))


def _filtered(rows: Array, pixel: int) -> Array:
    """Rows of bytes, each with its filter in front: itself (0), less the pixel before (1) or less the row above (2),
    whichever has the smallest differences."""
    left, above = rows.copy(), rows.copy()
    left[:, pixel:] -= rows[:, :-pixel]
    above[1:] -= rows[:-1]
    choices = np.stack([rows, left, above])
    cost = np.minimum(choices, 0 - choices).sum(2, dtype=np.int64)  # of differences modulo 256
    chosen = cost.argmin(0)
    best = choices[chosen, np.arange(len(rows))]
    return np.concatenate([chosen[:, None].astype(np.uint8), best], axis=1)


def encode_png(pixels: Array, level: int = 6) -> bytes:
    """pixels: (height, width, 1 to 4 channels) of uint8 or uint16. level: of compression, 0 to 9."""
    height, width, channels = pixels.shape
    size = pixels.dtype.itemsize
    rows = np.ascontiguousarray(pixels, pixels.dtype.newbyteorder(">")).view(np.uint8).reshape(height, -1)
    header = struct.pack(">IIBBBBB", width, height, 8 * size, _COLOUR_TYPES[channels], 0, 0, 0)
    body = zlib.compress(_filtered(rows, channels * size).tobytes(), level)
    return _SIGNATURE + _chunk(b"IHDR", header) + _chunk(b"IDAT", body) + _chunk(b"IEND", b"")
