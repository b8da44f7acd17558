"""Backward calls over values: broadcasting, DiffPair, inout, out, element types, views (spec: gradients)."""

from __future__ import annotations

import numpy as np
import pytest
from gradcheck import check, finite_difference, load, same, seeded, tensor, with_grad

import slangpy as spy
from slangpy.config import config

pytestmark = [
    pytest.mark.needs_kernels,
    pytest.mark.elsewhere(
        "test_polynomial", "test_diff_pair_is_summed_and_replaced", "test_inout", "test_out_parameters",
        "test_expanded_inputs", "test_zero_size", "test_reversed_and_strided_views",
        "test_overlapping_views_of_one_tensor", "half", "double", "test_matrices", "test_nested_arrays_of_vectors",
        "test_append_to",
    ),
]  # fmt: skip
ONES = np.ones(4, np.float32)
RNG = np.random.default_rng(3)


@pytest.fixture
def m(device):
    return load(device)


# --- worked examples
def test_polynomial(device, m):
    x = with_grad(device, [0, 1, 2, 3])
    y = m.polynomial(2, 8, -1, x).with_grads()
    y.grad.copy_from_numpy(ONES)
    assert m.polynomial.bwds(2, 8, -1, x, _result=y) is None
    same(x.grad, [8, 12, 16, 20])
    m.polynomial.bwds(2, 8, -1, x, y)
    same(x.grad, [16, 24, 32, 40])
    same(x, [0, 1, 2, 3])
    x.grad.clear()
    same(x.grad, [0, 0, 0, 0])


def test_diff_pair_is_summed_and_replaced(device, m):
    y = seeded(device, ONES)
    a = spy.diffPair(2.0, 123.0)
    m.polynomial.bwds(a, 8, -1, tensor(device, [0, 1, 2, 3]), _result=y)
    assert a.grad == 14.0
    p = spy.diffPair(3.0, 0.0)
    m.polynomial.bwds(2, 8, -1, p, spy.diffPair(0.0, 1.0))
    assert p.grad == 20.0
    assert p.primal == 3.0


def test_diff_pair_without_grad_is_left_alone(device, m):
    a, b = spy.diffPair(2.0, 5.0, needs_grad=False), spy.diffPair(8.0)
    m.polynomial.bwds(a, b, -1, tensor(device, [1, 2]), _result=seeded(device, [1, 1]))
    assert a.grad == 5.0
    assert b.grad == 3.0


def test_diff_pair_forward(device, m):
    assert m.polynomial(spy.diffPair(2.0), 8, -1, 3.0) == 41.0


def test_diff_pair_of_vector_and_list(device, m):
    v = spy.diffPair(spy.float3(1, 2, 3))
    m.dot3.bwds(v, tensor(device, [[1, 2, 3], [10, 20, 30]]), _result=seeded(device, [1, 2]))
    same(list(v.grad), [21, 42, 63])
    a = spy.diffPair([1.0, 2.0, 3.0, 4.0])
    m.weighted.bwds(a, tensor(device, [2, 3]), _result=seeded(device, [1, 10]))
    same(a.grad, [32, 64, 96, 128])


def test_inout(device, m):
    ones, zeros = tensor(device, ONES), tensor(device, 0 * ONES)
    x = tensor(device, [0, 1, 2, 3]).with_grads(grad_in=ones, grad_out=zeros)
    w = with_grad(device, [5, 5, 5, 5])
    m.grow.bwds(x, w)
    same(x.grad_out, [5, 5, 5, 5])
    same(x.grad_in, ONES)
    same(w.grad, [0, 1, 2, 3])
    same(x, [0, 1, 2, 3])


def test_inout_diff_pair(device, m):
    x, w = spy.diffPair(3.0, 2.0), spy.diffPair(5.0)
    m.grow.bwds(x, w)
    assert x.grad == 10.0
    assert w.grad == 6.0
    assert x.primal == 3.0


def test_out_parameters(device, m):
    a = with_grad(device, [1, 2, 3])
    square, cube = seeded(device, [1, 1, 1]), seeded(device, [1, 10, 100])
    m.split.bwds(a, square, cube)
    same(a.grad, [2 + 3, 4 + 120, 6 + 2700])
    same(square, [77, 77, 77])
    same(square.grad, [1, 1, 1])


def test_out_without_gradient_counts_as_zero(device, m):
    a = with_grad(device, [1, 2, 3])
    m.split.bwds(a, tensor(device, [0, 0, 0]), seeded(device, [1, 1, 1]))
    same(a.grad, [3, 12, 27])
    same_again = with_grad(device, [1, 2, 3])
    m.split.bwds(same_again, spy.floatRef(), seeded(device, [1, 1, 1]))
    same(same_again.grad, [3, 12, 27])


def test_gradients_are_part_of_the_key(device, m):
    y = seeded(device, ONES)
    a, x = tensor(device, [1, 2, 3, 4]), with_grad(device, [0, 1, 2, 3])
    m.polynomial.bwds(a, 8, -1, x, _result=y)
    a = a.with_grads()
    m.polynomial.bwds(a, 8, -1, x.detach(), _result=y)
    same(a.grad, [0, 1, 4, 9])
    same(x.grad, [8, 8 + 4, 8 + 12, 8 + 24])


# --- broadcasting
def test_expanded_inputs(device, m):
    x = with_grad(device, [[1, 2, 3], [4, 5, 6]])
    a, b, c = with_grad(device, [2]), with_grad(device, [[1], [2]]), with_grad(device, [1, 2, 3])
    seed = np.array([[1, 2, 3], [4, 5, 6]], np.float64)
    m.polynomial.bwds(a, b, c, x, _result=seeded(device, seed))
    xs = np.arange(1, 7, dtype=np.float64).reshape(2, 3)
    check(a.grad, [np.sum(seed * xs**2)])
    check(b.grad, np.sum(seed * xs, axis=1, keepdims=True))
    check(c.grad, np.sum(seed, axis=0))
    check(x.grad, seed * (4 * xs + np.array([[1], [2]])))


def test_broadcast_view_adds_up_in_the_small_tensor(device, m):
    x = with_grad(device, [3])
    m.power.bwds(x.broadcast_to((4,)), 1.0, _result=seeded(device, ONES))
    same(x.grad, [24])


def test_gradient_of_a_broadcast_view_has_its_shape(device, m):
    x = tensor(device, [3]).broadcast_to((4,)).with_grads()
    m.power.bwds(x, tensor(device, [1, 2, 3, 4]), _result=seeded(device, ONES))
    same(x.grad, [6, 12, 18, 24])


def test_zero_size(device, m):
    x, a = with_grad(device, np.zeros((0, 3))), spy.diffPair(2.0, 5.0)
    m.polynomial.bwds(a, 8, -1, x, _result=seeded(device, np.zeros((0, 3))))
    assert x.grad.shape == (0, 3)
    assert a.grad == 0.0


def test_map(device, m):
    a, b = with_grad(device, [1, 2]), with_grad(device, [1, 2, 3])
    seed = np.array([[1, 2, 3], [4, 5, 6]], np.float64)
    m.power.map((0,), (1,)).bwds(a, b, _result=seeded(device, seed))
    check(a.grad, np.sum(seed * 2 * np.array([[1], [2]]) * np.array([1, 2, 3]), axis=1))
    check(b.grad, np.sum(seed * np.array([[1], [4]]), axis=0))


# --- views
def test_views(device, m):
    x = with_grad(device, np.arange(8))
    m.power.bwds(x[4:], 1.0, _result=seeded(device, ONES))
    same(x.grad, [0, 0, 0, 0, 8, 10, 12, 14])


def test_reversed_and_strided_views(device, m):
    x = with_grad(device, np.arange(8))
    m.power.bwds(x[::-2], 1.0, _result=seeded(device, [1, 2, 3, 4]))
    same(x.grad, [0, 8, 0, 18, 0, 20, 0, 14])


def test_transposed_view(device, m):
    values = RNG.standard_normal((3, 5))
    seed = RNG.standard_normal((5, 3))
    x = with_grad(device, values)
    m.power.bwds(x.permute(1, 0), 1.0, _result=seeded(device, seed))
    check(x.grad, (2 * values.astype(np.float32).T * seed.astype(np.float32)).T)


def test_overlapping_views_of_one_tensor(device, m):
    n = 5000
    values = RNG.standard_normal(n).astype(np.float32)
    x = with_grad(device, values)
    m.power.bwds(x[1:], x[:-1], _result=seeded(device, np.ones(n - 1)))
    expected = np.zeros(n)
    v = values.astype(np.float64)
    expected[1:] += 2 * v[1:] * v[:-1]
    expected[:-1] += v[1:] ** 2
    check(x.grad, expected)


def test_sliding_window(device, m):
    n = 3000
    x = with_grad(device, np.arange(n) % 7)
    m.power.bwds(x.view((n - 2, 3), (1, 1)), 0.5, _result=seeded(device, np.ones((n - 2, 3))))
    count = np.full(n, 3.0)
    count[[0, -1]], count[[1, -2]] = 1, 2
    check(x.grad, (np.arange(n) % 7) * count)


WINDOWS = "[Differentiable] float power(float x, float y) { return pow(x, 2) * y; }"
GENERAL, LINEAR = 0, 1
"""Bits 3 and 4 of a variant's key: how its kernel finds elements of the first argument, and so whether it adds to one that other
invocations add to."""


def test_windows_that_share_their_ends(device, monkeypatch):
    """A stride that is just what the dimensions below it reach. A plain addition there loses a number now and then; which
    kernel is chosen shows it each time."""
    monkeypatch.setattr(config, "cache_enabled", False)  # which knows the variants of other processes
    n = 2000
    values = np.arange(2 * n + 1) % 5
    power = spy.Module.load_from_source(device, "windows", WINDOWS).power.bwds
    x, y = with_grad(device, values), seeded(device, np.ones((n, 3)))

    def chosen(*arguments):
        variants = power.debug_build_call_data(*arguments, _result=y).kernels.variants
        return {key >> 3 & 3 for key in variants}

    windows, rows = x.view((n, 3), (2, 1)), with_grad(device, np.ones((n, 3)))
    power(windows, 0.5, _result=y)
    count = np.ones(2 * n + 1)
    count[2:-1:2] = 2
    check(x.grad, values * count)
    assert chosen(windows, 0.5) == {GENERAL}
    power(rows, 0.5, _result=y)
    check(rows.grad, np.ones((n, 3)))
    assert chosen(rows, 0.5) == {GENERAL, LINEAR}


def test_one_tensor_twice(device, m):
    x = with_grad(device, [1, 2, 3, 4])
    m.power.bwds(x, x, _result=seeded(device, ONES))
    same(x.grad, [3, 12, 27, 48])
    x.grad.clear()
    m.power.bwds(x, x[::-1], _result=seeded(device, ONES))
    v = np.array([1, 2, 3, 4.0])
    same(x.grad, 2 * v * v[::-1] + v[::-1] ** 2)


# --- element types
@pytest.mark.parametrize(("dtype", "tolerance"), [("float", 1e-5), ("double", 1e-12), ("half", 2e-3)])
def test_scalar_types(device, m, dtype, tolerance):
    f = {"float": m.polynomial, "double": m.polynomial_f64, "half": m.polynomial_f16}[dtype]
    values, seed = RNG.uniform(-1, 1, 100), RNG.uniform(-1, 1, 100)
    x, a = with_grad(device, values, dtype), with_grad(device, [2.0], dtype)
    b = spy.diffPair(8.0)
    y = seeded(device, seed, dtype)
    f.bwds(a, b, -1, x, _result=y)
    v, s = (np.asarray(t.to_numpy(), np.float64) for t in (x, y.grad))
    check(x.grad, s * (4 * v + 8), tolerance)
    check(a.grad, [np.sum(s * v * v)], tolerance)
    check(b.grad, np.sum(s * v), tolerance * 4)


def test_types_of_gradients_are_part_of_the_key(device, m):
    y = seeded(device, ONES, "half")
    for kind in ("half", "float", "half"):
        grad = tensor(device, [0, 0, 0, 0], kind)
        x = tensor(device, [1, 2, 3, 4], "half").with_grads(grad_in=grad, grad_out=grad)
        m.polynomial_f16.bwds(2, 8, -1, x, _result=y)
        same(grad, [12, 16, 20, 24])


def test_gradients_of_two_types(device):
    m = spy.Module.load_from_source(
        device, "two_types", """import slangpy;
        [Differentiable] void grow(inout half x, half y) { x = x * y; }
        [Differentiable] void square(int i, IRWTensor<half, 1> x) { x[i] = x[i] * x[i]; }""",
    )  # fmt: skip
    for kinds in (("half", "float"), ("float", "half")):
        read, added = tensor(device, [1, 2, 4], kinds[0]), tensor(device, [0, 0, 0], kinds[1])
        x = tensor(device, [1, 2, 3], "half").with_grads(grad_in=read, grad_out=added)
        m.grow.bwds(x, 5.0)
        same(added, [5, 10, 20])
        same(read, [1, 2, 4])
        x = tensor(device, [1, 2, 3], "half").with_grads(grad_in=read, grad_out=tensor(device, [0, 0, 0], kinds[1]))
        m.square.bwds(spy.grid((3,)), x)
        same(x.grad_out, [2, 8, 24])
        x = tensor(device, [1, 2, 3], "half").with_grads(grad_in=read, grad_out=added)
        m.grow.fwds(x, 5.0)
        same(added, [5, 10, 20])
        same(read, [1, 2, 4])


def test_half_with_a_float_gradient(device, m):
    x = tensor(device, [1, 2, 3, 4], "half")
    x = x.with_grads(grad_out=tensor(device, [0, 0, 0, 0]))
    m.polynomial_f16.bwds(2, 8, -1, x, _result=seeded(device, ONES, "half"))
    same(x.grad_out, [12, 16, 20, 24])
    one = tensor(device, [1], "half").with_grads(grad_out=tensor(device, [0]))
    m.polynomial_f16.bwds(2, 8, -1, one, _result=seeded(device, np.full(4000, 0.5), "half"))
    same(one.grad_out, [24000])


def test_vectors(device, m):
    v, s, seed = RNG.standard_normal((6, 3)), RNG.standard_normal(6), RNG.standard_normal((6, 3))
    expected_v, expected_s = 2 * v * s[:, None] * seed, np.sum(v * v * seed, axis=1)
    for element in (None, "float3"):  # a float tensor with a last dimension of 3 serves too
        tv, ts = with_grad(device, v, element=element), with_grad(device, s)
        m.scale3.bwds(tv, ts, _result=seeded(device, seed, element=element))
        check(tv.grad, expected_v)
        check(ts.grad, expected_s)


def test_broadcast_vectors(device, m):
    v, s, seed = np.array([1.0, 2, 3]), RNG.standard_normal(500), RNG.standard_normal((500, 3))
    whole, spread = with_grad(device, [v], element="float3"), with_grad(device, v)
    m.scale3.bwds(whole, tensor(device, s), _result=seeded(device, seed, element="float3"))
    m.scale3.bwds(spread, tensor(device, s), _result=seeded(device, seed, element="float3"))
    expected = np.sum(2 * v * s[:, None] * seed, axis=0)
    check(whole.grad, [expected])
    check(spread.grad, expected)


def test_matrices(device, m):
    a, v, seed = RNG.standard_normal((4, 3, 3)), RNG.standard_normal((4, 3)), RNG.standard_normal((4, 3))
    for elements in ((None, None), ("float3x3", "float3")):
        ta, tv = with_grad(device, a, element=elements[0]), with_grad(device, v, element=elements[1])
        m.transform.bwds(ta, tv, _result=seeded(device, seed, element="float3"))
        check(ta.grad, seed[:, :, None] * v[:, None, :])
        check(tv.grad, np.einsum("nr,nrc->nc", seed, a))
    shared = with_grad(device, a[:1], element="float3x3")
    m.transform.bwds(shared, tensor(device, v, element="float3"), _result=seeded(device, seed, element="float3"))
    check(shared.grad, np.sum(seed[:, :, None] * v[:, None, :], axis=0, keepdims=True))


def test_arrays(device, m):
    a, w, seed = RNG.standard_normal((5, 4)), RNG.standard_normal(5), RNG.standard_normal(5)
    k = np.array([1, 2, 3, 4.0])
    for element in (None, "float[4]"):
        ta, tw = with_grad(device, a, element=element), with_grad(device, w)
        m.weighted.bwds(ta, tw, _result=seeded(device, seed))
        check(ta.grad, (seed * w)[:, None] * k)
        check(tw.grad, seed * (a @ k))
    shared = with_grad(device, a[0])
    m.weighted.bwds(shared, tensor(device, w), _result=seeded(device, seed))
    check(shared.grad, np.sum((seed * w)[:, None] * k, axis=0))


def test_nested_arrays_of_vectors(device, m):
    a, w = RNG.standard_normal((2, 2, 3, 2)), RNG.standard_normal(2)
    expected = np.zeros_like(a)
    expected[:, 1, 2, 1] = w
    expected[:, 0, 1, 0] = 2 * a[:, 0, 1, 0]
    for element in (None, "float2", "float2[3][2]"):
        ta = with_grad(device, a, element=element)
        m.pick.bwds(ta, tensor(device, w), _result=seeded(device, [1, 1]))
        check(ta.grad.to_numpy().reshape(a.shape), expected)


# --- functions
def test_no_diff_and_integers(device, m):
    k, x = with_grad(device, [1, 2, 3]), with_grad(device, [1, 1, 1])
    m.detached.bwds(k, x, tensor(device, [2, 2, 2], "int"), _result=seeded(device, [1, 1, 1]))
    same(k.grad, [0, 0, 0])
    same(x.grad, [2, 4, 6])


def test_generic_function(device, m):
    x = with_grad(device, [1, 2, 3], "double")
    m.power.bwds(x, tensor(device, [1, 1, 1], "double"), _result=seeded(device, [1, 1, 1], "double"))
    same(x.grad, [2, 4, 6])
    v = with_grad(device, [[1, 2], [3, 4]], element="float2")
    m.scaled.bwds(v, _result=seeded(device, [1, 1]))
    same(v.grad, [[4, 8], [12, 16]])
    m["scaled<2>"].bwds(v, _result=seeded(device, [1, 1]))
    same(v.grad, [[8, 16], [24, 32]])


def test_loop(device, m):
    x = with_grad(device, [1, 2, 3])
    m.iterate.bwds(x, 3, _result=seeded(device, [1, 1, 1]))
    same(x.grad, [4, 32, 108])


def test_custom_derivative_is_used(device, m):
    x = with_grad(device, [1, 2])
    m.cube.bwds(x, _result=seeded(device, [1, 1]))
    same(x.grad, [1003, 1012])


def test_finite_differences(device, m):
    a, b, x = RNG.standard_normal(3), RNG.standard_normal((4, 1)), RNG.standard_normal((4, 3))
    seed = RNG.standard_normal((4, 3))
    ta, tb, tx = with_grad(device, a), with_grad(device, b), with_grad(device, x)
    m.polynomial.bwds(ta, tb, 0.5, tx, _result=seeded(device, seed))
    f = lambda a, b, x: a * x * x + b * x + 0.5  # noqa: E731
    check(ta.grad, finite_difference(lambda v: f(v, b, x), a, seed))
    check(tb.grad, finite_difference(lambda v: f(a, v, x), b, seed))
    check(tx.grad, finite_difference(lambda v: f(a, b, v), x, seed))


def test_append_to(device, m):
    x = with_grad(device, [1, 2, 3])
    encoder = device.create_command_encoder()
    m.power.bwds.append_to(encoder, x, 1.0, _result=seeded(device, [1, 1, 1]))
    same(x.grad, [0, 0, 0])
    device.submit_command_buffer(encoder.finish())
    same(x.grad, [2, 4, 6])
    encoder = device.create_command_encoder()
    with pytest.raises(ValueError, match="read back"):
        m.power.bwds.append_to(encoder, spy.diffPair(1.0), 1.0, _result=seeded(device, [1, 1, 1]))


def test_diff_pair_halves():
    from slangpy.values.references import PrimType

    pair = spy.diffPair(spy.float2(1, 2))
    assert list(pair.get(PrimType.derivative)) == [0, 0]
    pair.set(PrimType.primal, 3.0)
    assert pair.get(PrimType.primal) == pair.primal == 3.0
    assert "3.0" in repr(pair)
    assert spy.diffPair().primal == spy.diffPair().grad == 0.0
    assert spy.floatDiffPair(2.0).grad == 1.0
