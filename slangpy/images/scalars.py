"""Numbers of one type as those of another: ranges, rounding, and the sRGB curve (IEC 61966-2-1)."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def to_linear(values: Array) -> Array:
    """What sRGB values from 0 to 1 mean as light."""
    safe = np.maximum(values, 0.0)
    return np.where(values <= 0.04045, values / 12.92, ((safe + 0.055) / 1.055) ** 2.4)


def to_srgb(values: Array) -> Array:
    """The sRGB values of light from 0 to 1."""
    safe = np.maximum(values, 0.0)
    return np.where(values <= 0.0031308, values * 12.92, 1.055 * safe ** (1 / 2.4) - 0.055)


def read_normalized(values: Array) -> Array:
    """Integers as fractions of their largest value, in double."""
    return values.astype(np.float64) / np.iinfo(values.dtype).max


def store(values: Array, dtype: Any, normalized: bool = False) -> Array:
    """Doubles (or integers) as `dtype`: integers are rounded to the nearest, halves away from zero, and saturate."""
    wanted = np.dtype(dtype)
    if wanted.kind == "f":
        with np.errstate(over="ignore"):  # infinity, as in every conversion of floats
            return values.astype(wanted)
    info = np.iinfo(wanted)
    if values.dtype.kind in "iu" and not normalized:
        low = max(int(info.min), int(np.iinfo(values.dtype).min))
        high = min(int(info.max), int(np.iinfo(values.dtype).max))
        return np.clip(values, low, high).astype(wanted)
    scaled = np.asarray(values, np.float64) * (info.max if normalized else 1)
    scaled = np.trunc(scaled + np.copysign(0.5, scaled))
    # the largest 64-bit integers are no doubles: they are set where the value reaches them
    high, low = scaled >= float(info.max), scaled <= float(info.min)
    with np.errstate(invalid="ignore"):
        stored = np.where(high | low | np.isnan(scaled), 0.0, scaled).astype(wanted)
    stored[high], stored[low] = info.max, info.min
    return stored
