"""What the tests of functional calls share: modules that are loaded once per device, and small arrays."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import slangpy as spy

FOLDER = Path(__file__).parent


@cache
def load(device: Any, name: str) -> spy.Module:
    """The module `calls_<name>.slang`, one per device."""
    return spy.Module.load_from_file(device, FOLDER / f"calls_{name}.slang")


def source(device: Any, name: str, text: str, **options: Any) -> spy.Module:
    return spy.Module.load_from_source(device, name, text, **options)


def array(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    """0, 1, 2, ... in row-major order."""
    return np.arange(int(np.prod(shape)), dtype=dtype).reshape(shape)


def tensor(device: Any, *shape: int, dtype: Any = np.float32) -> spy.Tensor:
    """A tensor holding 0, 1, 2, ..."""
    return spy.Tensor.from_numpy(device, array(*shape, dtype=dtype))


def tensor_of(device: Any, values: Any, dtype: Any = np.float32) -> spy.Tensor:
    return spy.Tensor.from_numpy(device, np.array(values, dtype=dtype))


def typed(device: Any, values: Any, type_: Any, dtype: Any = np.float32) -> spy.Tensor:
    """A tensor of a vector, matrix, array or struct type (a Struct)."""
    return spy.Tensor.from_numpy(device, np.array(values, dtype=dtype), target_slang_dtype=type_)


def plain(value: Any) -> Any:
    """Results as lists and Python values, to compare with literals."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, spy.Tensor):
        return value.to_numpy().tolist()
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if hasattr(value, "element_type") and hasattr(value, "__len__"):
        return [plain(v) for v in value]
    return value
