"""Deterministic backward calls: the same bits in every run, and the right sums."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from gradcheck import check, load, seeded, tensor, with_grad

import slangpy as spy

pytestmark = [pytest.mark.needs_kernels, pytest.mark.one]
RNG = np.random.default_rng(5)
RUNS = 20


@pytest.fixture
def m(device: Any) -> Iterator[Any]:
    assert device.deterministic is False
    device.deterministic = True
    yield load(device)
    device.deterministic = False


def runs(call: Any) -> np.ndarray:
    """The bits of the first of many runs, which the others must equal."""
    first = call()
    for _ in range(RUNS - 1):
        assert call().tobytes() == first.tobytes()
    return first


def uneven(*shape: int) -> np.ndarray:
    """Numbers whose float32 sums depend on the order."""
    return (RNG.standard_normal(shape) * 10.0 ** RNG.integers(-4, 5, shape)).astype(np.float32)


def test_scattered_is_exact(device, m):
    n = 3000
    at = RNG.integers(0, 7, n).astype(np.int32)
    x, seed = RNG.random(7, np.float32), uneven(n)
    tx, ts = tensor(device, x), seeded(device, seed)
    ta = spy.Tensor.from_numpy(device, at)

    def call() -> np.ndarray:
        t = tx.with_grads()
        m.gather.bwds(spy.grid((n,)), ta, t, _result=ts)
        return t.grad.to_numpy()

    got = runs(call)
    # x[i] * x[i] is differentiated as two reads: each term is a product rounded to float32
    terms = (seed * x[at]).astype(np.float64)
    want = [np.float32(math.fsum(np.concatenate([terms[at == k]] * 2))) for k in range(7)]
    np.testing.assert_array_max_ulp(got, np.array(want, np.float32), 1)


def test_scattered_matrix_product(device, m):
    rows, columns = 41, 13
    w, b, x, seed = uneven(rows, columns), uneven(rows), uneven(columns), uneven(rows)
    tw, tb, tx, ty = tensor(device, w), tensor(device, b), tensor(device, x), seeded(device, seed)

    def call() -> np.ndarray:
        grads = [tw.with_grads(), tb.with_grads(), tx.with_grads()]
        m.linear.bwds(spy.grid((rows,)), *grads, ty)
        return np.concatenate([t.grad.to_numpy().ravel() for t in grads])

    got = runs(call)
    s = seed.astype(np.float64)
    check(got[: w.size].reshape(w.shape), s[:, None] * x)
    check(got[w.size : w.size + rows], s)
    check(got[w.size + rows :], s @ w)


@pytest.mark.parametrize(
    ("shape", "call_shape"),
    [((1,), (5000,)), ((3,), (2000, 3)), ((1025,), (9, 1025)), ((7, 1), (300, 7, 5)), ((500, 1), (500, 4))],
)
def test_broadcast(device, m, shape, call_shape):
    a, x, seed = uneven(*shape), uneven(*call_shape), uneven(*call_shape)
    ta, tx, ty = tensor(device, a), tensor(device, x), seeded(device, seed)

    def call() -> np.ndarray:
        t = ta.with_grads()
        m.power.bwds(t, tx, _result=ty)
        return t.grad.to_numpy()

    got = runs(call)
    whole = 2 * a.astype(np.float64) * x * seed
    axes = tuple(i for i, n in enumerate((1,) * (len(call_shape) - len(shape)) + shape) if n == 1)
    check(got, np.sum(whole, axis=axes, keepdims=True).reshape(shape))


def test_diff_pair(device, m):
    x, seed = uneven(4000), uneven(4000)
    tx, ty = tensor(device, x), seeded(device, seed)

    def call() -> np.ndarray:
        a = spy.diffPair(2.0)
        m.polynomial.bwds(a, 1.0, 1.0, tx, _result=ty)
        return np.array([a.grad], np.float32)

    check(runs(call), [np.sum(seed.astype(np.float64) * x.astype(np.float64) ** 2)])


def test_accumulates_and_keeps_the_rest(device, m):
    t = with_grad(device, [1.0, 2.0, 3.0, 4.0])
    t.grad.copy_from_numpy(np.array([10, -0.0, 30, 40], np.float32))
    at = spy.Tensor.from_numpy(device, np.array([0, 0, 3], np.int32))
    for _ in range(2):
        m.gather.bwds(spy.grid((3,)), at, t, _result=seeded(device, [1, 1, 1]))
    assert t.grad.to_numpy().tolist() == [18, 0, 30, 56]
    assert np.signbit(t.grad.to_numpy()[1])  # nothing was added to it, not even zero


def test_views_and_shared_storage(device, m):
    base = with_grad(device, np.arange(12))
    at = spy.Tensor.from_numpy(device, np.array([0, 1, 1], np.int32))
    m.gather.bwds(spy.grid((3,)), at, base[8::-2], _result=seeded(device, [1, 1, 1]))
    expected = np.zeros(12)
    expected[8], expected[6] = 16, 24
    check(base.grad, expected)
    m.power.bwds(base[:1], base[1:2], _result=seeded(device, np.ones(500)))  # one buffer, two sums
    check(base.grad[:2], [0, 0])
    base.grad.clear()
    m.power.bwds(base[2:3], base[2:3], _result=seeded(device, np.ones(500)))  # x^3 through two arguments
    check(base.grad[2:3], [500 * 12])


def test_structs(device, m):
    n = 300
    rays = spy.Tensor.zeros(device, (2,), m.Ray)
    cursor = rays.cursor()
    for i in range(2):
        cursor[i].write({"t": i + 1.0, "uv": (2.0, 3.0)})
    cursor.apply()
    seed = seeded(device, uneven(n, 2))

    def call() -> np.ndarray:
        t = rays.with_grads()
        m.energy.bwds(t, _result=seed)
        grads = [t.grad.cursor()[i].read() for i in range(2)]
        return np.array([[g["t"], g["uv"].x, g["uv"].y] for g in grads], np.float32)

    total = np.sum(seed.grad.to_numpy().astype(np.float64), axis=0)
    check(runs(call), total[:, None] * np.array([[2, 3, 2], [4, 3, 2]]))


def test_mixed_struct(device, m):
    bundle = spy.Tensor.zeros(device, (1,), m.Bundle)
    cursor = bundle.cursor()
    cursor[0].write({"main": {"t": 2.0, "uv": (1.0, 3.0)}, "energy": 1.5, "weight": 0.5})
    cursor.apply()
    seed = seeded(device, np.full(37, 0.1))

    def call() -> Any:
        t = bundle.with_grads()
        m.of_bundle.bwds(spy.Tensor.from_numpy(device, np.zeros(37, np.int32)), t, _result=seed)
        return t.grad.cursor()[0].read()

    g = call()
    one = float(np.float32(0.1))
    assert g["energy"] == pytest.approx(37 * 3 * one, rel=1e-12)
    assert g["weight"] == float(np.float16(37 * 3 * one))
    assert g["main"]["t"] == pytest.approx(37 * 4 * one, rel=1e-6)
    for _ in range(5):
        assert repr(call()) == repr(g)


def test_double(device, m):
    x, seed = RNG.standard_normal(3), RNG.standard_normal((700, 3)) * 10.0 ** RNG.integers(-100, 100, (700, 3))
    tx, ty = tensor(device, x, "double"), seeded(device, seed, "double")

    def call() -> np.ndarray:
        t = tx.with_grads()
        m.polynomial_f64.bwds(t, 1.0, 1.0, 1.0, _result=ty)
        return t.grad.to_numpy()

    want = [math.fsum(seed[:, k]) for k in range(3)]
    np.testing.assert_allclose(runs(call), want, rtol=1e-13)


def test_half_is_rounded_once(device, m):
    x, seed = np.full(1, 0.5), np.full(3000, 0.1)
    at = spy.Tensor.from_numpy(device, np.zeros(3000, np.int32))
    t = with_grad(device, x, "half")
    m.of_half.bwds(at, t, _result=seeded(device, seed, "half"))
    term = float(np.float16(np.float16(0.1) * np.float16(0.5)))
    assert float(t.grad.to_numpy()[0]) == float(np.float16(6000 * term))


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_infinities(device, m, value):
    t = with_grad(device, [1.0, 1.0])
    at = spy.Tensor.from_numpy(device, np.array([0, 0, 1], np.int32))
    m.gather.bwds(spy.grid((3,)), at, t, _result=seeded(device, [1, value, 1]))
    np.testing.assert_array_equal(t.grad.to_numpy(), np.array([value, 2], np.float32))


def test_tiny_and_huge(device, m):
    at = spy.Tensor.from_numpy(device, np.array([0, 0, 0, 1, 1, 2, 2], np.int32))
    seed = [3e38, 3e38, -6e38 / 2, 1e-30, 1e-30, 3e38, 3e38]
    t = with_grad(device, [0.5, 0.5, 1.0])
    m.gather.bwds(spy.grid((7,)), at, t, _result=seeded(device, seed))
    got = t.grad.to_numpy()
    check(got[0], 3e38)  # the sum of the first two alone would overflow
    check(got[1], 2e-30)
    assert got[2] == np.inf


def test_recorded(device, m):
    t = with_grad(device, [1.0, 2.0])
    at = spy.Tensor.from_numpy(device, np.array([0, 0, 1], np.int32))
    encoder = device.create_command_encoder()
    m.gather.bwds.append_to(encoder, spy.grid((3,)), at, t, _result=seeded(device, [1, 1, 1]))
    commands = encoder.finish()
    for _ in range(2):
        device.submit_command_buffer(commands)
    assert t.grad.to_numpy().tolist() == [8, 8]


def test_is_part_of_the_key(device, m):
    t, y = with_grad(device, [1.0]), seeded(device, np.ones(50))
    at = spy.Tensor.from_numpy(device, np.zeros(50, np.int32))
    ordered = m.gather.bwds.debug_build_call_data(spy.grid((50,)), at, t, _result=y)
    device.deterministic = False
    free = m.gather.bwds.debug_build_call_data(spy.grid((50,)), at, t, _result=y)
    assert "_spy_sum_mode" in ordered.code
    assert "_spy_sum_mode" not in free.code
    m.gather.bwds(spy.grid((50,)), at, t, _result=y)
    assert t.grad.to_numpy().tolist() == [100]


def test_own_addition_is_refused(device, m):
    counted = spy.Tensor.zeros(device, (1,), m.Counted).with_grads()
    with pytest.raises(ValueError, match="x: struct Counted brings its own atomicAdd.*deterministic"):
        m.of_counted.bwds(spy.grid((1,)), counted, _result=seeded(device, [1]))


def test_explain(device, m):
    a, t, y = with_grad(device, [1.0]), with_grad(device, np.ones(9)), seeded(device, np.ones(9))
    text = m.power.bwds.explain(a, t, _result=y)
    lines = {line.split()[0]: line for line in text.splitlines()[1:5]}
    assert "gradients: deterministic" in text
    assert lines["x"].endswith("reduced") and lines["y"].endswith("direct") and lines["_result"].endswith("read")
    at = spy.Tensor.from_numpy(device, np.zeros(9, np.int32))
    device.deterministic = False
    text = m.gather.bwds.explain(spy.grid((9,)), at, t, _result=y)
    assert "deterministic" not in text and "gradients: in any order" in text and "scattered" in text
