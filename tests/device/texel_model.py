"""What the bytes of each format mean, in NumPy: texels as (count, 4) doubles or integers, missing channels 0, 0, 0, 1."""

from __future__ import annotations

from typing import Any

import numpy as np

import slangpy as spy

Array = np.ndarray[Any, Any]


def to_linear(v: Array) -> Array:
    return np.where(v <= 0.04045, v / 12.92, ((np.maximum(v, 0) + 0.055) / 1.055) ** 2.4)


def to_srgb(v: Array) -> Array:
    return np.where(v <= 0.0031308, v * 12.92, 1.055 * np.maximum(v, 0) ** (1 / 2.4) - 0.055)


def order(name: str) -> list[int]:
    """Which channel lies first, second, ... in memory."""
    return [2, 1, 0, 3] if name.startswith("b") else [0, 1, 2, 3]


def words(format: spy.Format, texels: Array) -> dict[int, Array]:
    """The bits of each channel that the format has, by channel; texels: bytes."""
    info = spy.get_format_info(format)
    raw = np.frombuffer(np.ascontiguousarray(texels).tobytes(), np.uint8).reshape(-1, info.bytes_per_block)
    bits = np.unpackbits(raw, axis=1, bitorder="little").astype(np.uint64)
    found, at = {}, 0
    for place, size in enumerate(info.channel_bit_count):
        if size and place < info.channel_count:
            weights = np.uint64(1) << np.arange(size, dtype=np.uint64)
            found[order(info.name)[place]] = (bits[:, at : at + size] * weights).sum(1)
            at += size
    return found


def decode(format: spy.Format, texels: Array, curve: bool = True) -> Array:
    """curve: light of sRGB formats, else the stored fractions."""
    info = spy.get_format_info(format)
    kind = info.type.name
    result = np.zeros(
        (len(next(iter(words(format, texels).values()))), 4), np.int64 if kind in ("uint", "sint") else np.float64
    )
    result[:, 3] = 1
    for channel, values in words(format, texels).items():
        size = info.channel_bit_count[order(info.name).index(channel)]
        result[:, channel] = _number(kind, size, values)
    if kind == "unorm_srgb" and curve:
        result[:, :3] = to_linear(result[:, :3])
    return result


def _number(kind: str, size: int, values: Array) -> Array:
    signed = values.astype(np.int64) - ((values >> np.uint64(size - 1)).astype(np.int64) << size)
    if kind in ("uint", "sint"):
        return signed if kind == "sint" else values.astype(np.int64)
    if kind == "snorm":
        return np.maximum(signed / (2 ** (size - 1) - 1), -1)
    if kind != "float":
        return values / (2.0**size - 1)
    if size >= 16:
        return values.astype(f"u{size // 8}").view(f"f{size // 8}").astype(np.float64)
    return (values << np.uint64(10 - (size - 5))).astype(np.uint16).view(np.float16).astype(np.float64)


def limits(format: spy.Format, expected: Array) -> tuple[Array, Array]:
    """What numbers become in a format at best, and how far from it they may be stored; in stored fractions for sRGB."""
    info = spy.get_format_info(format)
    kind = info.type.name
    wanted, close = expected.copy(), np.zeros_like(expected)
    for channel in range(4):
        place = order(info.name).index(channel)
        size = info.channel_bit_count[place] if place < info.channel_count else 0
        values = wanted[:, channel]
        if size == 0:
            wanted[:, channel] = float(channel == 3)
        elif kind == "float":
            mantissa = {32: 21, 16: 10}.get(size, size - 5)  # between texels of 32-bit floats: some roundings
            values = np.maximum(values, 0) if size < 16 else values
            wanted[:, channel] = values
            close[:, channel] = np.abs(values) * 2.0**-mantissa + (1e-6 if size == 32 else 2.0 ** (-14 - mantissa))
        else:
            most = 2.0 ** (size - (kind == "snorm")) - 1
            values = np.clip(values, -1 if kind == "snorm" else 0, 1)
            wanted[:, channel] = to_srgb(values) if kind == "unorm_srgb" and channel < 3 else values
            close[:, channel] = (0.5 + 3e-6 * most + 0.01) / most
    return wanted, close


def along(a: Array, size: int, axis: int, nearest: bool) -> Array:
    """One axis in another size: the nearest texels, or means of two, clamped at the edges."""
    source = a.shape[axis]
    centre = (np.arange(size) + 0.5) * source / size
    if nearest:
        exact = (2 * np.arange(size) + 1) * source // (2 * size)
        return a.take(exact, axis)
    position = np.maximum(centre - 0.5, 0)
    first = np.minimum(position.astype(int), source - 1)
    weight = (position - first).reshape([size if i == axis else 1 for i in range(a.ndim)])
    return a.take(first, axis) * (1 - weight) + a.take(np.minimum(first + 1, source - 1), axis) * weight


def scaled(a: Array, size: tuple[int, ...], nearest: bool = False) -> Array:
    """All axes but the last, which is that of channels."""
    for axis, length in enumerate(size):
        a = along(a, length, axis, nearest)
    return a
