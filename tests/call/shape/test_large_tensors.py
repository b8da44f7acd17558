"""Tensors of more than 2^31 elements of one byte: every access needs 64-bit indices. Takes 5 GB of memory."""

from __future__ import annotations

import numpy as np
import pytest

import slangpy as spy

pytestmark = [pytest.mark.needs_kernels, pytest.mark.nightly]

COUNT = 2**31 + 1003
ROWS, COLUMNS = 46349, 46337  # 2147673613 elements: beyond 2^31 too
SOURCE = """
import slangpy;
uint8_t plus(uint8_t x, uint8_t y) { return uint8_t(x + y); }
uint8_t high(int64_t i) { return uint8_t(i >> 24); }
uint8_t gather(int64_t i, Tensor<uint8_t, 1> t) { return t[i]; }
uint8_t gather2(int2 i, Tensor<uint8_t, 2> t) { return t[i]; }
void scatter(int64_t i, uint8_t v, RWTensor<uint8_t, 1> t) { t[i] = v; }
uint8_t low(int2 i) { return uint8_t(i.x * 7 + i.y); }
"""


@pytest.fixture
def module(device):
    if device.info.type is spy.DeviceType.vulkan:
        pytest.skip("this device's buffers end at 4 GiB, its dispatches before")
    return spy.Module.load_from_source(device, "large_tensors", SOURCE)


def indices(count: int) -> np.ndarray:
    """Both ends, both sides of 2^31, and 1000 places between."""
    middle = np.random.default_rng().integers(0, count, 1000)
    return np.concatenate([[0, 1, 2**31 - 1, 2**31, count - 1], middle]).astype(np.int64)


def test_one_dimension(device, module):
    places = indices(COUNT)
    x = spy.Tensor.empty(device, (COUNT,), "uint8_t")
    x.storage.copy_from_numpy(np.full(1 << 20, 0xA5, np.uint8))
    module.high(spy.grid((COUNT,)), _result=x)
    expected = (places >> 24).astype(np.uint8)
    np.testing.assert_array_equal(module.gather(places, x, _result="numpy"), expected)
    y = spy.Tensor.empty(device, (COUNT,), "uint8_t")
    module.plus(x, 3, _result=y)
    np.testing.assert_array_equal(module.gather(places, y, _result="numpy"), expected + np.uint8(3))
    np.testing.assert_array_equal(y[2**31 - 3 :].to_numpy()[:7], np.full(7, 3 + 127, np.uint8) + [0, 0, 0, 1, 1, 1, 1])
    module.scatter(np.array([COUNT - 1, 2**31 + 5], np.int64), 77, y)
    assert [y[COUNT - 1].item(), y[2**31 + 5].item(), y[5].item()] == [77, 77, 3]


def test_two_dimensions_strided(device, module):
    x = spy.Tensor.empty(device, (ROWS, COLUMNS), "uint8_t")
    module.low(spy.grid((ROWS, COLUMNS)), _result=x)
    rng = np.random.default_rng()
    places = np.stack([rng.integers(0, COLUMNS, 1000), rng.integers(0, ROWS, 1000)], axis=-1).astype(np.int32)
    places[:2] = [[0, 0], [COLUMNS - 1, ROWS - 1]]  # as vectors are: the last dimension first
    expected = (places[:, 0] * 7 + places[:, 1]).astype(np.uint8)
    np.testing.assert_array_equal(module.gather2(places, x, _result="numpy"), expected)
    turned = spy.Tensor.empty(device, (COLUMNS, ROWS), "uint8_t")
    module.plus(x.T, 1, _result=turned)
    np.testing.assert_array_equal(module.gather2(places[:, ::-1], turned, _result="numpy"), expected + np.uint8(1))


def test_dimension_beyond_32_bits(device):
    """More than a parameter of tensor type can say: refused, and nothing is read."""
    m = spy.Module.load_from_source(device, "large_shape", SOURCE)
    small = spy.Tensor.zeros(device, (4,), "uint8_t")
    wide = small.view((1,)).broadcast_to((2**32,))
    with pytest.raises(ValueError, match=r"argument t has a dimension of 4294967296 elements.*pass parts"):
        m.gather(0, wide)


def test_elements_far_apart(device, module):
    """A view whose offsets would wrap, in 32 bits, to elements before its first."""
    x = spy.Tensor.zeros(device, (2**31 + 3 * 2**30 + 1,), "uint8_t")
    view = x[2**31 :: 2**30]
    module.plus(np.arange(1, 5, dtype=np.uint8), 1, _result=view)
    assert [x[2**31 + i * 2**30].item() for i in range(4)] == [2, 3, 4, 5]
    assert [x[0].item(), x[2**30].item()] == [0, 0]
    assert module.plus(view, 1, _result="numpy").tolist() == [3, 4, 5, 6]
