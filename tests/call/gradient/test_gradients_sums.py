"""Gradients of broadcast arguments: accuracy of large sums, partial broadcasting, groups of any size."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from gradcheck import check, load, seeded, tensor, with_grad

import slangpy as spy

pytestmark = [
    pytest.mark.needs_kernels,
    pytest.mark.elsewhere(
        "random", "test_float3", "shape1", "shape5", "shape8", "test_partial_broadcast_of_several_arguments", "250",
        "half_struct", "test_broadcast_half_beyond_periods", "vector3-half3-shape1-result1-300001",
        "pair-half[2]-shape5-result5-300001", "shape1-call1", "test_broadcast_struct_with_halves",
    ),
]  # fmt: skip
RNG = np.random.default_rng(11)
SOFTWARE = spy.Feature.software_device


@pytest.fixture
def m(device):
    return load(device)


def size_for(device):
    return 2**18 if device.info.type == spy.DeviceType.vulkan else 2**24


@pytest.mark.parametrize("kind", ["random", "constant"])
def test_scalar(device, m, kind):
    n = size_for(device)
    x = RNG.random(n, np.float32) if kind == "random" else np.full(n, 0.1, np.float32)
    seed = RNG.random(n, np.float32) if kind == "random" else np.full(n, 0.3, np.float32)
    y, a, b = seeded(device, seed), with_grad(device, [2]), spy.diffPair(8.0)
    m.polynomial.bwds(a, b, -1, tensor(device, x), _result=y)
    x64, s64 = x.astype(np.float64), seed.astype(np.float64)
    check(a.grad, [np.sum(s64 * x64**2)])
    check(b.grad, np.sum(s64 * x64))


def test_float3(device, m):
    v, s = RNG.random((2**14, 3), np.float32), np.full(1, 0.5, np.float32)
    scale, seed = with_grad(device, s), RNG.random((2**14, 3), np.float32)
    m.scale3.bwds(tensor(device, v, element="float3"), scale, _result=seeded(device, seed, element="float3"))
    check(scale.grad, [np.sum(seed.astype(np.float64) * v.astype(np.float64) ** 2)])


def test_half_is_rounded_once(device, m):
    a = with_grad(device, [1.0], "half")
    m.polynomial_f16.bwds(
        a, 0.0, 0.0, tensor(device, np.ones(1000), "half"), _result=seeded(device, np.full(1000, 0.1), "half")
    )
    assert float(a.grad.to_numpy()[0]) == float(np.float16(1000 * float(np.float16(0.1))))


# (shape of the argument, shape of the call)
PARTIAL = [
    ((3,), (20000, 3)), ((1024,), (50, 1024)), ((1000,), (64, 1000)), ((1025,), (20, 1025)), ((7, 1), (300, 7, 5)),
    ((500, 1), (500, 40)), ((3000, 1), (3000, 64)), ((1, 4, 1, 6), (9, 4, 3, 6)), ((5, 1, 3), (5, 200, 3)), ((1, 2), (1, 2)), ((4, 1, 1), (4, 3, 50)),
]  # fmt: skip


@pytest.mark.parametrize(("shape", "call"), PARTIAL)
def test_partial_broadcast(device, m, shape, call):
    a, x, seed = RNG.random(shape, np.float32), RNG.random(call, np.float32), RNG.random(call, np.float32)
    ta, tx, ty = with_grad(device, a), with_grad(device, x), seeded(device, seed)
    m.power.bwds(ta, tx, _result=ty)
    x64, s64 = x.astype(np.float64), seed.astype(np.float64)
    whole = 2 * a.astype(np.float64) * x64 * s64
    padded = (1,) * (len(call) - len(shape)) + shape
    axes = tuple(i for i, n in enumerate(padded) if n == 1)
    check(ta.grad, np.sum(whole, axis=axes, keepdims=True).reshape(shape))
    check(tx.grad, a.astype(np.float64) ** 2 * s64)


def test_partial_broadcast_of_several_arguments(device, m):
    shapes = ((6,), (4, 1), (1, 1), (70, 1, 6))
    call = (70, 4, 6)
    values = [RNG.random(s, np.float32) for s in shapes]
    seed = RNG.random(call, np.float32)
    tensors = [with_grad(device, v) for v in values]
    m.polynomial.bwds(*tensors, _result=seeded(device, seed))
    a, b, _, x = (v.astype(np.float64) for v in values)
    s = seed.astype(np.float64)
    for t, whole in zip(tensors, (s * x * x, s * x, s, s * (2 * a * x + b)), strict=True):
        padded = (1,) * (3 - t.ndim) + tuple(t.shape)
        axes = tuple(i for i, n in enumerate(padded) if n == 1)
        check(t.grad, np.sum(whole + np.zeros(call), axis=axes, keepdims=True).reshape(tuple(t.shape)))


def test_partial_broadcast_of_vectors_and_structs(device, m):
    n, c = 400, 3
    v, s, seed = RNG.random((c, 3)), RNG.random((n, c)), RNG.random((n, c, 3))
    for element in (None, "float3"):
        tv = with_grad(device, v, element=element)
        m.scale3.bwds(tv, tensor(device, s), _result=seeded(device, seed, element="float3"))
        check(tv.grad, np.sum(2 * v * s[:, :, None] * seed, axis=0))
    rays = spy.Tensor.zeros(device, (c,), m.Ray).with_grads()
    cursor = rays.cursor()
    for i in range(c):
        cursor[i].write({"t": i + 1.0, "uv": (2.0, 3.0)})
    cursor.apply()
    m.energy.bwds(rays, _result=seeded(device, np.ones((n, c))))
    grads = [rays.grad.cursor()[i].read() for i in range(c)]
    assert [[g["t"], *g["uv"]] for g in grads] == [[2 * (i + 1) * n, 3 * n, 2 * n] for i in range(c)]


def test_views_of_broadcast_arguments(device, m):
    a = with_grad(device, np.arange(12).reshape(3, 4))
    x, seed = RNG.random((500, 3)), RNG.random((500, 3))
    m.power.bwds(a[:, 2][::-1], tensor(device, x), _result=seeded(device, seed))
    expected = np.zeros((3, 4))
    expected[::-1, 2] = np.sum(2 * np.array([10, 6, 2]) * x * seed, axis=0)
    check(a.grad, expected)


@pytest.mark.parametrize("size", [1, 32, 96, 250, 1024])
def test_group_sizes(device, m, size):
    limit = (
        device.info.limits.max_compute_work_group_invocations
        if hasattr(device.info.limits, "max_compute_work_group_invocations")
        else 1024
    )
    if size > limit:
        pytest.skip(f"groups of this device have at most {limit} threads")
    x, seed = RNG.random((500, 3)), RNG.random((500, 3))
    a, b = with_grad(device, [2]), with_grad(device, [1, 2, 3])
    m.polynomial.thread_group_size((size, 1, 1)).bwds(a, b, -1, tensor(device, x), _result=seeded(device, seed))
    check(a.grad, [np.sum(x * x * seed)])
    check(b.grad, np.sum(x * seed, axis=0))


@pytest.mark.parametrize("name", ["of_half", "half_struct", "half_explicit"])
def test_gathered_half_is_rounded_once(device, m, name):
    """Thousands of terms far below half a unit of the sum: atomic additions in half would lose them."""
    n, seed = 3000, float(np.float16(0.1))
    x = with_grad(device, [1.0, 2.0], "half")
    x.grad.copy_from_numpy(np.array([8, 16], np.float16))
    at = spy.Tensor.from_numpy(device, np.arange(n, dtype=np.int32) % 2)
    if name == "half_struct":
        pairs = spy.Tensor.zeros(device, (1,), m.HalfPair).with_grads()
        m.half_struct.bwds(
            spy.Tensor.from_numpy(device, np.zeros(n, np.int32)), pairs, _result=seeded(device, [seed] * n)
        )
        got = pairs.grad.cursor()[0].read()
        assert [got["wide"], got["pair"].x, got["pair"].y] == [
            pytest.approx(n * seed, rel=1e-6), float(np.float16(n * seed)), float(np.float16(2 * n * seed)),
        ]  # fmt: skip
        return
    m[name].bwds(at, x, _result=seeded(device, [seed] * n, "half"))
    terms = [2 * float(np.float16(seed * k)) if name == "of_half" else float(np.float16(seed * k)) for k in (1, 2)]
    want = [float(np.float16(before + n // 2 * term)) for before, term in zip((8, 16), terms, strict=True)]
    assert x.grad.to_numpy().tolist() == want


def test_broadcast_half_beyond_periods(device, m):
    """A pattern that repeats too late for registers: added by each invocation."""
    shape, call = (2000, 1), (2000, 64)
    seed = np.full(call, 0.1, np.float16)
    a = with_grad(device, np.ones(shape), "half")
    m.power_f16.bwds(a, tensor(device, np.ones(call), "half"), _result=seeded(device, seed, "half"))
    assert set(a.grad.to_numpy().ravel().tolist()) == {float(np.float16(64 * float(np.float16(0.1))))}


HALVES = """
import slangpy;
[Differentiable] half scalar(half a, half x) { return a * x; }
[Differentiable] half3 vector3(half3 a, half x) { return a * x; }
[Differentiable] half2x2 matrix2(half2x2 a, half x) { return a * x; }
[Differentiable] half pair(half a[2], half x) { return a[0] * x + a[1] * x; }
[Differentiable] half2 vectors(half2 a[2], half x) { return a[0] * x + a[1] * x; }
struct Mixed : IDifferentiable { half a; float b; half3 c; double d; half2 e[2]; half2x2 m; };
[Differentiable] float mixed(Mixed v, float x)
{
    return x * (float(v.a) + v.b + float(v.c.y) + float(v.d) + float(v.e[1].x) + float(v.m[1].y));
}
[Differentiable] float converted(float a, half x) { return a * x; }
"""


@cache
def load_halves(device):
    return spy.Module.load_from_source(device, "gradient_sums_halves", HALVES)


@pytest.fixture
def halves(device):
    return load_halves(device)


@pytest.mark.parametrize("n", [33, 300_001])
@pytest.mark.parametrize(
    ("name", "element", "shape", "result"),
    [
        ("scalar", "half", (1,), ()), ("vector3", "half3", (1, 3), (3,)), ("vector3", "half", (3,), (3,)),
        ("matrix2", "half2x2", (1, 2, 2), (2, 2)), ("matrix2", "half", (2, 2), (2, 2)),
        ("pair", "half[2]", (1, 2), ()), ("pair", "half", (2,), ()), ("vectors", "half2", (2, 2), (2,)),
        ("vectors", "half2[2]", (1, 2, 2), (2,)),
    ],
)  # fmt: skip
def test_broadcast_half_of_many_groups(device, halves, name, element, shape, result, n):
    """Sums of all groups in float32, rounded once: the first 64 groups alone are beyond where half still counts."""
    if n > 33 and name != "scalar" and device.info.type is spy.DeviceType.vulkan and device.has_feature(SOFTWARE):
        n = 50_001  # 196 groups
    seed = np.full((n, *result), 0.001, np.float16)
    x = RNG.random(n).astype(np.float16)
    values = np.ones(shape, np.float16)
    a = spy.Tensor.from_numpy(device, values, target_slang_dtype=element).with_grads()
    halves[name].bwds(a, tensor(device, x, "half"), _result=seeded(device, seed, "half"))
    term = (seed[0].astype(np.float64).ravel()[0] * x.astype(np.float64)).astype(np.float16)
    want = np.full(shape, term.astype(np.float64).sum())
    got = a.grad.to_numpy()
    assert got.shape == shape and got.dtype == np.float16
    np.testing.assert_allclose(got.astype(np.float64), want, rtol=2**-11 + 1e-5)


@pytest.mark.parametrize("shape", [(3,), (5, 1)])
def test_periodic_half(device, halves, shape):
    call = (5, 40_000) if shape == (5, 1) else (60_000, 3)
    seed, x = np.full(call, 0.001, np.float16), RNG.random(call).astype(np.float16)
    a = with_grad(device, np.ones(shape), "half")
    halves.scalar.bwds(a, tensor(device, x, "half"), _result=seeded(device, seed, "half"))
    terms = (seed.astype(np.float64) * x.astype(np.float64)).astype(np.float16).astype(np.float64)
    axis = 1 if shape == (5, 1) else 0
    np.testing.assert_allclose(
        a.grad.to_numpy().astype(np.float64), terms.sum(axis=axis).reshape(shape), rtol=2**-11 + 1e-5
    )


def test_float_gradient_of_broadcast_half(device, halves):
    """The gradient that is kept in float32 has float32's precision."""
    n = 100_000
    x = RNG.random(n).astype(np.float16)
    a = spy.Tensor.from_numpy(device, np.ones(1, np.float16))
    a = a.with_grads(grad_out=spy.Tensor.zeros(device, (1,), "float"))
    halves.scalar.bwds(a, tensor(device, x, "half"), _result=seeded(device, np.full(n, 0.5), "half"))
    check(a.grad, [np.sum(0.5 * x.astype(np.float64))])


def test_half_gradient_of_converted_float(device, halves):
    n = 100_000
    x = RNG.random(n).astype(np.float16)
    a = with_grad(device, [1.0], "half")
    halves.converted.convert("safe").bwds(a, tensor(device, x, "half"), _result=seeded(device, np.full(n, 0.01)))
    want = np.sum(np.float64(np.float32(0.01)) * x.astype(np.float64))
    np.testing.assert_allclose(a.grad.to_numpy().astype(np.float64), [want], rtol=2**-11 + 1e-5)


def test_half_pair(device, halves):
    n = 100_000
    x = RNG.random(n).astype(np.float16)
    a = spy.diffPair(spy.float16_t(1.0))
    halves.scalar.bwds(a, tensor(device, x, "half"), _result=seeded(device, np.full(n, 0.01), "half"))
    terms = (np.float64(np.float16(0.01)) * x.astype(np.float64)).astype(np.float16)
    assert float(a.grad) == pytest.approx(terms.astype(np.float64).sum(), rel=2**-11 + 1e-5)


@pytest.mark.parametrize("shape", [(1,), (3,)])
def test_broadcast_struct_with_halves(device, halves, shape):
    """Each part in its own precision: halves as float32 sums of all groups, rounded once."""
    call = (50_000,) if shape == (1,) else (20_000, 3)
    x = RNG.random(call).astype(np.float32) * 0.01
    v = spy.Tensor.zeros(device, shape, halves.Mixed).with_grads()
    halves.mixed.bwds(v, tensor(device, x), _result=seeded(device, np.ones(call)))
    terms = x.astype(np.float64)
    rounded = x.astype(np.float16).astype(np.float64)  # what reaches a half on its way through the function
    for i in range(shape[0]):
        part = (Ellipsis, i) if len(call) == 2 else Ellipsis
        got = v.grad.cursor()[i].read()
        assert got["b"] == pytest.approx(terms[part].sum(), rel=1e-5)
        assert got["d"] == pytest.approx(terms[part].sum(), rel=1e-6)
        for value in (got["a"], got["c"].y, got["e"][1].x, got["m"][1][1]):
            assert float(value) == pytest.approx(rounded[part].sum(), rel=2**-11 + 1e-5)
        assert [float(got["c"].x), float(got["e"][0].x), float(got["m"][0][0])] == [0, 0, 0]
