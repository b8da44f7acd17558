"""Views whose elements lie more than 2^31 apart, over memory of which only the pages that are touched exist."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import slangpy as spy

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.needs_kernels, pytest.mark.one]

FAR = 2**31
STEP = 2**30
"""Four elements this far apart: an offset of 32 bits would wrap to elements that are there, before the view's first."""
WAYS: dict[str, Callable[[np.ndarray], Any]] = {"numpy": lambda view: view, "torch": torch.from_numpy}


@pytest.fixture
def module(device: spy.Device) -> Any:
    return spy.Module.load_from_source(device, "far_views", "uint8_t next(uint8_t x) { return uint8_t(x + 1); }")


@pytest.fixture(scope="module")
def memory() -> np.ndarray:
    return np.zeros(FAR + 3 * STEP + 1, np.uint8)


@pytest.mark.parametrize("way", WAYS)
def test_elements_far_apart(module: Any, memory: np.ndarray, way: str) -> None:
    if way == "torch" and module.device.info.type == spy.DeviceType.cuda:
        pytest.skip("torch tensors of the host")
    view = memory[FAR::STEP]
    view[...] = [1, 2, 3, 4]
    assert module.next(WAYS[way](view), _result="numpy").tolist() == [2, 3, 4, 5]
    module.next(WAYS[way](view), _result=WAYS[way](view))
    assert view.tolist() == [2, 3, 4, 5]
    assert memory[[0, STEP]].tolist() == [0, 0]


@pytest.mark.parametrize("way", WAYS)
def test_strides_beyond_32_bits(module: Any, memory: np.ndarray, way: str) -> None:
    if module.device.has_feature(spy.Feature.hardware_device):
        pytest.skip("a GPU gets a copy of what lies in the host's memory")
    with pytest.raises(ValueError, match=r"argument x has a stride of 2147483648 elements.*pass a contiguous copy"):
        module.next(WAYS[way](memory[::FAR]))
