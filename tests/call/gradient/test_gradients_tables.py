"""Which types parameters are bound to in backward calls, and what elements they consume: row by row."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from gradcheck import same, seeded, tensor, with_grad

import slangpy as spy

pytestmark = [pytest.mark.needs_kernels, pytest.mark.one]
SOURCE = """
import slangpy;
[Differentiable] float many(int i, ITensor<float, 1> xs[3]) { return xs[0][i] * xs[1][i] + xs[2][i] * xs[2][i]; }
[Differentiable] float many_explicit(int i, DiffTensor<float, 1> xs[2]) { return xs[0][i] * xs[1][i]; }
float many_plain(int i, Tensor<float, 1> xs[3]) { return xs[0][i] + xs[1][i] + xs[2][i]; }
void many_written(int i, RWTensor<float, 1> xs[2]) { xs[1][i] = xs[0][i] * 2; }
void many_atomic(int i, AtomicTensor<float, 1> xs[2]) { xs[i % 2].add(0, 1.f); }
[Differentiable] float read<X : ITensor<float, 1>>(int i, X x) { return x[i] * x[0]; }
[Differentiable] void write<X : IWTensor<float, 1>>(int i, X x, float v) { x[i] = v * v; }
[Differentiable] void change<X : IRWTensor<float, 1>>(int i, X x) { x[i] = x[i] * x[i]; }
[Differentiable] float diff_constraint<X : IDiffTensor<float, 1>>(int i, X x) { return x[i] * x[i]; }
[Differentiable] float vectors(float3 v) { return dot(v, v); }
[Differentiable] float matrices(float2x2 m) { return determinant(m); }
[Differentiable] float arrays(float a[4]) { return a[0] * a[0] + a[1] + a[2] + a[3]; }
[Differentiable] float nested_arrays(float a[2][3]) { return a[1][2] * a[0][1]; }
[Differentiable] float arrays_of_vectors(float2 a[3]) { return a[2].y * a[0].x; }
[Differentiable] float primal(int i, PrimalTensor<float, 1> x, ITensor<float, 1> y) { return x[i] * y[i]; }
[Differentiable] float plain(int i, Tensor<float, 1> x, IDiffTensor<float, 1> y) { return x[i] * y[i]; }
struct Pair : IDifferentiable { ITensor<float, 1> a; DiffTensor<float, 1> b; float c; };
[Differentiable] float in_struct(int i, Pair p) { return p.a[i] * p.b[i] * p.c; }
[Differentiable] void outputs(float x, out float3 y, inout float2 z) { y = float3(x, x * x, 1); z = z * x; }
"""
TWO = spy.grid((2,))


@cache
def load(device: Any) -> Any:
    return spy.Module.load_from_source(device, "gradient_tables", SOURCE)


@pytest.fixture
def m(device: Any) -> Any:
    return load(device)


def test_arrays_of_tensors(device, m):
    xs = [with_grad(device, v) for v in ([1, 2], [3, 4], [5, 6])]
    same(m.many(TWO, xs, _result="numpy"), [28, 44])
    m.many.bwds(TWO, xs, _result=seeded(device, [1, 1]))
    for x, expected in zip(xs, ([3, 4], [1, 2], [10, 12]), strict=True):
        same(x.grad, expected)
    first = with_grad(device, [1, 2])
    m.many.bwds(TWO, [first, tensor(device, [3, 4]), tensor(device, [5, 6])], _result=seeded(device, [1, 1]))
    same(first.grad, [3, 4])
    m.many_explicit.bwds(TWO, xs[:2], _result=seeded(device, [10, 10]))
    same(xs[0].grad, [33, 44])


def test_arrays_of_other_tensors(device, m):
    xs = [tensor(device, v) for v in ([1, 2], [3, 4], [5, 6])]
    same(m.many_plain(TWO, xs, _result="numpy"), [9, 12])
    m.many_written(TWO, xs[:2])
    same(xs[1], [2, 4])
    sums = [tensor(device, [0, 0]), tensor(device, [0, 0])]
    m.many_atomic(spy.grid((5,)), sums)
    assert [t.to_numpy().tolist() for t in sums] == [[3, 0], [2, 0]]


@pytest.mark.parametrize(("name", "expected"), [("read", [10, 3]), ("diff_constraint", [6, 8])])
def test_read_constraint(device, m, name, expected):
    x = with_grad(device, [3, 4])
    m[name].bwds(TWO, x, _result=seeded(device, [1, 1]))
    same(x.grad, expected)
    with pytest.warns(RuntimeWarning, match="no argument has storage"):
        m[name].bwds(TWO, tensor(device, [3, 4]), _result=seeded(device, [1, 1]))


def test_write_constraints(device, m):
    v = with_grad(device, [3, 4])
    m.write.bwds(TWO, seeded(device, [1, 10]), v)
    same(v.grad, [6, 80])
    y = tensor(device, [0, 0])
    m.write(TWO, y, v)
    same(y, [9, 16])
    x = tensor(device, [3, 4]).with_grads(tensor(device, [1, 10]), tensor(device, [0, 0]))
    m.change.bwds(TWO, x)
    same(x.grad_out, [6, 80])


@pytest.mark.parametrize(
    ("name", "shape", "values", "gradients"),
    [
        ("vectors", (2, 3), [5, 50], [[0, 2, 4], [6, 8, 10]]),
        ("matrices", (2, 2, 2), [-2, -2], [[[3, -2], [-1, 0]], [[7, -6], [-5, 4]]]),
        ("arrays", (2, 4), [6, 34], [[0, 1, 1, 1], [8, 1, 1, 1]]),
        ("nested_arrays", (2, 2, 3), [5, 77], [[[0, 5, 0], [0, 0, 1]], [[0, 11, 0], [0, 0, 7]]]),
        ("arrays_of_vectors", (2, 3, 2), [0, 66], [[[5, 0], [0, 0], [0, 0]], [[11, 0], [0, 0], [0, 6]]]),
    ],
)
def test_consumed_dimensions(device, m, name, shape, values, gradients):
    x = with_grad(device, np.arange(np.prod(shape)).reshape(shape))
    same(m[name](x, _result="numpy"), values)
    m[name].bwds(x, _result=seeded(device, [1, 1]))
    same(x.grad, gradients)


@pytest.mark.parametrize("name", ["primal", "plain"])
def test_types_without_gradients(device, m, name):
    x, y = with_grad(device, [1, 2]), with_grad(device, [3, 4])
    m[name].bwds(TWO, x, y, _result=seeded(device, [1, 1]))
    same(x.grad, [0, 0])
    same(y.grad, [1, 2])


def test_tensors_in_a_struct(device, m):
    a, b, c = with_grad(device, [1, 2]), with_grad(device, [3, 4]), with_grad(device, [2])
    m.in_struct.bwds(TWO, {"a": a, "b": b, "c": c}, _result=seeded(device, [1, 1]))
    same(a.grad, [6, 8])
    same(b.grad, [2, 4])
    same(c.grad, [11])


def test_all_directions_in_one_call(device, m):
    x, y = with_grad(device, [2, 3]), seeded(device, np.ones((2, 3)), element="float3")
    z = tensor(device, [[1, 2], [3, 4]], element="float2")
    z = z.with_grads(
        tensor(device, [[1, 1], [1, 1]], element="float2"), tensor(device, np.zeros((2, 2)), element="float2")
    )
    before = [y.to_numpy(), z.to_numpy()]
    m.outputs.bwds(x, y, z)
    same(x.grad, [8, 14])
    same(z.grad_out, [[2, 2], [3, 3]])
    same(y, before[0])
    same(z, before[1])
