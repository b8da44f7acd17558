"""Checked indices: IndexError with the index and the shape, and memory outside is left alone."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest
from gradcheck import same, seeded, tensor, with_grad

import slangpy as spy

pytestmark = pytest.mark.needs_kernels
SOURCE = """
[Differentiable] float read(int i, ITensor<float, 1> x) { return x[i] * x[i]; }
float plain(int2 i, Tensor<float, 2> x) { return x[i]; }
[Differentiable] float explicit(int i, DiffTensor<float, 1> x) { return x[i] * 2; }
void write(int i, IWTensor<float, 1> y) { y[i] = i; }
[Differentiable] void store(int i, ITensor<float, 1> x, IWTensor<float, 1> y) { y[i] = x[0] * i; }
void change(int i, RWTensor<float, 2> x) { x[i, i] = x[i, i] + 1; }
void add(int i, AtomicTensor<float, 1> x) { x.add(i, 1.f); }
float total(ITensor<float, 1> row, int n) { float s = 0; for (int i = 0; i < n; i++) s += row[i]; return s; }
"""


@cache
def load(device: Any) -> Any:
    return spy.Module.load_from_source(device, "checked_indices", SOURCE)


@pytest.fixture
def m(device: Any) -> Iterator[Any]:
    spy.set_check_bounds(True)
    yield load(device)
    spy.set_check_bounds(False)


def ints(device: Any, *values: int) -> Any:
    return spy.Tensor.from_numpy(device, np.array(values, np.int32))


def test_inside_is_silent(device, m):
    x = with_grad(device, [1, 2, 3])
    same(m.read(spy.grid((3,)), x, _result="numpy"), [1, 4, 9])
    m.read.bwds(spy.grid((3,)), x, _result=seeded(device, [1, 1, 1]))
    same(x.grad, [2, 4, 6])


@pytest.mark.parametrize("at", [-1, 3, 2**31 - 1, -(2**31)])
def test_read(device, m, at):
    with pytest.raises(
        IndexError, match=rf"read: index \[{at}\] is outside of a tensor of shape \[3\] \(argument x\); 2 accesses"
    ):
        m.read(ints(device, 0, at, 2), tensor(device, [1, 2, 3]))
    same(m.read(ints(device, 0), tensor(device, [1, 2, 3]), _result="numpy"), [1])  # the next call is not affected


def test_index_and_shape_are_in_dimension_order(device, m):
    with pytest.raises(IndexError, match=r"index \[2, 1\] is outside of a tensor of shape \[2, 5\]"):
        m.plain(
            spy.Tensor.from_numpy(device, np.array([[1, 2]], np.int32), target_slang_dtype="int2"),
            tensor(device, np.zeros((2, 5))),
        )


def test_views_guard_their_neighbours(device, m):
    base = tensor(device, np.arange(6))
    with pytest.raises(IndexError, match=r"index \[2\] is outside of a tensor of shape \[2\].*2 accesses"):
        m.write(ints(device, 2, 0, 2), base[1:3])
    same(base, [0, 0, 2, 3, 4, 5])
    with pytest.raises(IndexError, match=r"shape \[2, 2\]"):
        m.change(ints(device, 0, 2), base.reshape(2, 3)[:, :2])
    same(base, [1, 0, 2, 3, 4, 5])
    with pytest.raises(IndexError, match=r"shape \[3\]"):
        m.add(ints(device, 0, 3), base[::2])
    same(base, [2, 0, 2, 3, 4, 5])


@pytest.mark.parametrize("name", ["read", "explicit"])
def test_gradients(device, m, name):
    x = with_grad(device, np.ones(6))
    with pytest.raises(IndexError, match=r"index \[4\] is outside of a tensor of shape \[3\]"):
        m[name].bwds(ints(device, 0, 4), x[1:4], _result=seeded(device, [1, 1]))
    same(x.grad, [0, 2, 0, 0, 0, 0])


def test_seeds(device, m):
    x, y = with_grad(device, [2]), seeded(device, [1, 10, 100])
    with pytest.raises(IndexError, match=r"index \[2\] is outside of a tensor of shape \[2\]"):
        m.store.bwds(spy.grid((3,)), x, y[:2])
    same(x.grad, [10])


def test_rows_and_empty_tensors(device, m):
    rows = tensor(device, np.ones((4, 3)))
    same(m.total(rows, 3, _result="numpy"), [3] * 4)
    with pytest.raises(
        IndexError, match=r"index \[3\] is outside of a tensor of shape \[3\] \(argument row\); 4 accesses"
    ):
        m.total(rows, 4)
    with pytest.raises(IndexError, match=r"index \[0\] is outside of a tensor of shape \[0\]"):
        m.read(ints(device, 0), tensor(device, np.zeros(0)))


def test_recorded_calls_skip_what_lies_outside(device, m):
    base = tensor(device, np.arange(4))
    encoder = device.create_command_encoder()
    m.write.append_to(encoder, ints(device, 0, 2), base[1:3])
    device.submit_command_buffer(encoder.finish())
    same(base, [0, 0, 2, 3])


def test_off_by_default_but_on_the_cpu(device):
    view = load(device).read.debug_build_call_data(spy.grid((3,)), tensor(device, [1, 2, 3]))
    assert ("_spy_check_bounds" in view.code) == (device.info.type is spy.DeviceType.cpu)
