"""Indices in braces: `x.load({row, col})`, in dimension order, of integers of any type."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from calls_support import plain, source, tensor, tensor_of, typed

import slangpy as spy

pytestmark = pytest.mark.needs_kernels
SOURCE = """
import slangpy;
[Differentiable] float load(int i, ITensor<float, 2> x) { return x.load({ i, 0 }) * x.load({ uint64_t(i), 1u }); }
[Differentiable] float load_once(int i, DiffTensor<float, 2> x) { return x.load_once({ i, 0 }) * 3; }
[Differentiable] float load_uniform(int i, DiffTensor<float, 2> x) { return x.load_uniform({ 0, 0 }) * 3; }
[Differentiable] void store(int i, float v, IWTensor<float, 2> y) { y.store({ i, 0 }, v * v); y.store({ i, 1 }, v); }
void count(int i, RWTensor<int, 1> y)
{
    y.store({ i }, y.load({ i }) + 1);
    int64_t a[1] = { i };
    y.store(a, y.load(a) * 2);
}
void add(int i, AtomicTensor<float, 2> y) { y.add({ 0, i }, 2.0f); }
float3 vectors(int i, Tensor<float3, 2> x) { return x.load({ i, 1 }); }
float arrays(int i, RWTensor<float[3], 1> x) { x.store({ i }, { 1, 2, 3 }); return x.load({ i })[2]; }
T behind<T, X : ITensor<T, 2>>(X x, int i) { return x.load({ i, 1 }); }
float before(int i, RWTensor<float, 2> x) { x.set({ i, 0 }, 5); return x.get({ i, 0 }) + x.get({ i, 1 }); }
"""


@pytest.fixture
def m(device: Any) -> Any:
    return source(device, "index_braces", SOURCE)


def seeded(device: Any, *shape: int) -> spy.Tensor:
    y = spy.Tensor.zeros(device, shape, "float").with_grads()
    y.grad.copy_from_numpy(np.ones(shape, np.float32))
    return y


def test_loads(device: Any, m: Any) -> None:
    x = tensor_of(device, [[1, 2], [3, 4]])
    assert plain(m.load(range(2), x)) == [2, 12] and plain(m.load(range(2), x.T)) == [3, 8]
    assert plain(m.behind(x, range(2))) == [2, 4] == plain(m.behind(x.to_numpy(), range(2)))
    assert plain(m.vectors(range(2), typed(device, np.arange(12).reshape(2, 2, 3), "float3"))) == [[3, 4, 5], [9, 10, 11]]


def test_stores(device: Any, m: Any) -> None:
    y = spy.Tensor.zeros(device, (2, 2), "float")
    m.store(range(2), tensor_of(device, [2, 3]), y)
    assert plain(y) == [[4, 2], [9, 3]]
    counts = tensor(device, 3, dtype=np.int32)
    m.count(range(3), counts)
    assert plain(counts) == [2, 4, 6]
    assert plain(m.arrays(range(2), spy.Tensor.zeros(device, (2,), "float[3]"))) == [3, 3]
    sums = spy.Tensor.zeros(device, (1, 2), "float")
    m.add(np.array([0, 1, 1], np.int32), sums)
    assert plain(sums) == [[2, 4]]


def test_gradients(device: Any, m: Any) -> None:
    x = tensor_of(device, [[1, 2], [3, 4]]).with_grads()
    for name, expected in (("load", [[2, 1], [4, 3]]), ("load_once", [[3, 0], [3, 0]]), ("load_uniform", [[6, 0], [0, 0]])):
        x.grad.clear()
        m[name].bwds(range(2), x, _result=seeded(device, 2))
        assert plain(x.grad) == expected
    v = tensor_of(device, [2, 3]).with_grads()
    m.store.bwds(range(2), v, seeded(device, 2, 2))
    assert plain(v.grad) == [5, 7]


def test_spellings_of_before(device: Any, m: Any) -> None:
    x = tensor_of(device, [[1, 2], [3, 4]])
    assert plain(m.before(range(2), x)) == [7, 9] and plain(x) == [[5, 2], [5, 4]]
