"""`read_buffer`, `write_buffer`, `accumulate_buffer` count elements from the start of the storage; raw kernels too."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

import slangpy as spy

pytestmark = pytest.mark.needs_kernels
SOURCE = """
float read(int i, Tensor<float, 1> x) { return x.read_buffer(i); }
float read_interface(int i, ITensor<float, 1> x) { return x.read_buffer(i); }
float both(int i, RWTensor<float, 1> x) { return x.read_buffer(i) * 100 + x[i]; }
void write(int i, WTensor<float, 1> x) { x.write_buffer(i, 100 + i); x[i] = 200 + i; }
void write_interface(int i, IWTensor<float, 1> x) { x.write_buffer(i, 100 + i); }
void write_both(int i, IRWTensor<float, 2> x) { x.write_buffer(i, x.read_buffer(i) + 1000); }
void add(int i, AtomicTensor<float, 1> x) { x.accumulate_buffer(i, 10); x.add(i, 1); }
[BackwardDerivative(own_bwd)] float own(int i, DiffTensor<float, 1> x) { return x._primal.read_buffer(i); }
void own_bwd(int i, DiffTensor<float, 1> x, float d) { x._grad_out.accumulate_buffer(i, d); }
float row(int i, Tensor<float, 1> x) { return x.read_buffer(i) * 100 + x[i]; }
"""
RAW = """
import slangpy;
[shader("compute")] [numthreads(1, 1, 1)]
void copy(uint3 i : SV_DispatchThreadID, uniform Tensor<float, 2> x, uniform RWTensor<float, 2> y)
{
    y[i.y, i.x] = x[i.y, i.x] + 100 * x.read_buffer(i.x);
}
"""


@cache
def load(device: Any) -> Any:
    return spy.Module.load_from_source(device, "storage_index", SOURCE)


@pytest.fixture
def m(device: Any) -> Any:
    return load(device)


def base(device: Any) -> Any:
    return spy.Tensor.from_numpy(device, np.arange(8, dtype=np.float32))


@pytest.mark.parametrize("name", ["read", "read_interface"])
def test_read(device, m, name):
    x = base(device)
    i = spy.grid((3,))
    np.testing.assert_array_equal(m[name](i, x[4:], _result="numpy"), [0, 1, 2])
    np.testing.assert_array_equal(m[name](i, x[6::-2], _result="numpy"), [0, 1, 2])
    np.testing.assert_array_equal(m[name](i, x, _result="numpy"), [0, 1, 2])
    np.testing.assert_array_equal(m[name](i, np.arange(8, dtype=np.float32), _result="numpy"), [0, 1, 2])


def test_read_write(device, m):
    np.testing.assert_array_equal(m.both(spy.grid((3,)), base(device)[5:1:-1], _result="numpy"), [5, 104, 203])


def test_write(device, m):
    x = base(device)
    m.write(spy.grid((2,)), x[4:])
    np.testing.assert_array_equal(x.to_numpy(), [100, 101, 2, 3, 200, 201, 6, 7])
    m.write_interface(spy.grid((2,)), x[7:])
    assert x.to_numpy()[:2].tolist() == [100, 101]
    m.write_both(spy.grid((1,)), x.reshape(2, 4)[1:])
    assert x.to_numpy()[0] == 1100


def test_atomic(device, m):
    x = base(device)
    m.add(spy.grid((2,)), x[4:])
    np.testing.assert_array_equal(x.to_numpy(), [10, 11, 2, 3, 5, 6, 6, 7])


def test_gradient(device, m):
    x = base(device).with_grads()
    y = spy.Tensor.from_numpy(device, np.ones(2, np.float32)).with_grads()
    y.grad.copy_from_numpy(np.array([3, 4], np.float32))
    m.own.bwds(spy.grid((2,)), x[4:], _result=y)
    np.testing.assert_array_equal(x.grad.to_numpy(), [3, 4, 0, 0, 0, 0, 0, 0])


def test_rows_of_a_vectorised_call(device, m):
    x = base(device).reshape(2, 4)
    np.testing.assert_array_equal(m.row(spy.grid((2,)), x, _result="numpy"), [0, 105])
    np.testing.assert_array_equal(m.row(spy.grid((2,)), x[:, 1:], _result="numpy"), [1, 106])


def test_raw_kernel_takes_views(device):
    loaded = device.load_module_from_source("storage_index_raw", RAW)
    kernel = device.create_compute_kernel(device.link_program([loaded], [loaded.entry_point("copy")]))
    x, y = base(device).reshape(2, 4), spy.Tensor.zeros(device, (3, 3), "float")
    kernel.dispatch((2, 2, 1), x=x[:, 2:], y=y[1:, ::2])
    np.testing.assert_array_equal(y.to_numpy(), [[0, 0, 0], [2, 0, 103], [6, 0, 107]])
