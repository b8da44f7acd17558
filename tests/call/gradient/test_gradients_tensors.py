"""Backward calls through tensor parameters: the list of section "differentiable tensors" of the specification."""

from __future__ import annotations

import numpy as np
import pytest
from gradcheck import check, finite_difference, load, same, seeded, tensor, with_grad

import slangpy as spy

pytestmark = [
    pytest.mark.needs_kernels,
    pytest.mark.elsewhere(
        "test_with_grads", "test_polynomial", "test_in_place", "test_linear_layer", "test_gather",
        "test_views_of_tensor_arguments", "test_rank_8", "test_half_elements", "test_vector_matrix_and_array_elements",
        "test_each_type_of_gradient_has_its_own_kernel",
    ),
]  # fmt: skip
ONES = np.ones(4, np.float32)
RNG = np.random.default_rng(5)


@pytest.fixture
def m(device):
    return load(device)


# --- with_grads
@pytest.mark.parametrize("arguments", [{}, {"zero": True}])
def test_with_grads(device, arguments):
    t = tensor(device, [[1, 2], [3, 4]]).with_grads(**arguments)
    assert t.grad_in is t.grad_out
    assert t.grad is t.grad_out
    assert t.grad.shape == (2, 2)
    same(t.grad, np.zeros((2, 2)))


def test_ones(device):
    same(spy.Tensor.ones(device, shape=(4,), dtype=float), ONES)


# --- the polynomial
@pytest.mark.parametrize("name", ["poly_tensors", "poly_plain_names"])
def test_polynomial(device, m, name):
    f = m[name]
    x = with_grad(device, [1, 2, 3, 4])
    result = spy.Tensor.empty_like(x)
    arguments = {"idx": spy.grid(x.shape), "a": 2, "b": 8, "c": -1, "x": x}
    f(**arguments, result=result)
    same(result, [9, 23, 41, 63])
    same(x.grad, [0, 0, 0, 0])
    result = result.with_grads()
    result.grad.storage.copy_from_numpy(ONES)
    f.bwds(**arguments, result=result)
    same(x.grad, [12, 16, 20, 24])
    same(result, [9, 23, 41, 63])
    same(result.grad, ONES)
    f.bwds(**arguments, result=result)
    same(x.grad, [24, 32, 40, 48])
    x.grad.clear()
    same(x.grad, [0, 0, 0, 0])


def _results(device, m, x):
    yield m.polynomial(2, 8, -1, x, _result="tensor")
    yield m.polynomial.return_type(spy.Tensor)(2, 8, -1, x)
    made = spy.Tensor(device, element_type=m.float, shape=(4,))
    m.polynomial(2, 8, -1, x, _result=made)
    yield made
    made = spy.Tensor.empty_like(x)
    m.polynomial(2, 8, -1, x, _result=made)
    yield made


def test_result_containers(device, m):
    x = tensor(device, [1, 2, 3, 4])
    for result in _results(device, m, x):
        same(result, [9, 23, 41, 63])
        result, x = result.with_grads(), x.with_grads()
        result.grad.copy_from_numpy(ONES)
        m.polynomial.bwds(2, 8, -1, x, _result=result)
        same(x.grad, [12, 16, 20, 24])


def test_scalar_parameters_of_a_tensor_function_get_gradients(device, m):
    x, y = tensor(device, [1, 2, 3, 4]), seeded(device, [1, 2, 3, 4])
    a, b = spy.diffPair(2.0), with_grad(device, [8])
    m.poly_tensors.bwds(spy.grid((4,)), a, b, -1, x, y)
    assert a.grad == 100.0
    same(b.grad, [30])


def test_missing_gradients(device, m):
    x = with_grad(device, [1, 2, 3, 4])
    m.poly_tensors.bwds(spy.grid((4,)), 2, 8, -1, x, tensor(device, [5, 5, 5, 5]))  # no output gradient: zero
    same(x.grad, [0, 0, 0, 0])
    a = spy.diffPair(2.0)
    m.poly_tensors.bwds(spy.grid((4,)), a, 8, -1, tensor(device, [1, 2, 3, 4]), seeded(device, ONES))
    assert a.grad == 30.0
    y = tensor(device, [5, 5, 5, 5])
    with pytest.warns(RuntimeWarning, match="storage"):
        m.poly_plain_names.bwds(spy.grid((4,)), 2, 8, 3, tensor(device, [1, 2, 3, 4]), y)
    same(y, [5, 5, 5, 5])


def test_numpy_arguments(device, m):
    values, y = np.array([1, 2, 3, 4], np.float32), np.full(4, 5, np.float32)
    a = spy.diffPair(2.0)
    m.poly_tensors.bwds(spy.grid((4,)), a, 8, -1, values, seeded(device, ONES))
    assert a.grad == 30.0
    x = with_grad(device, values)
    m.poly_tensors.bwds(spy.grid((4,)), 2, 8, -1, x, y)
    same(y, [5, 5, 5, 5])


# --- in place
def test_in_place(device, m):
    ones, zeros = spy.Tensor.ones(device, (4,), float), spy.Tensor.zeros(device, (4,), float)
    x = tensor(device, [1, 2, 3, 4]).with_grads(grad_in=ones, grad_out=zeros)
    m.double_it(spy.grid((4,)), x)
    same(x, [2, 4, 6, 8])
    same(x.grad_in, ONES)
    same(x.grad_out, [0, 0, 0, 0])
    m.double_it.bwds(spy.grid((4,)), x)
    same(x.grad_in, ONES)
    same(x.grad_out, [2, 2, 2, 2])


def test_nonlinear_in_place(device, m):
    for f, factor in ((m.square_it, 2), (m.halve, 1)):
        x = tensor(device, [1, 2, 3, 4]).with_grads(
            grad_in=tensor(device, [1, 10, 100, 1000]), grad_out=tensor(device, [0, 0, 0, 0])
        )
        f.bwds(spy.grid((4,)), x)
        same(x.grad_out, factor * np.array([1, 20, 300, 4000]))


def test_shared_gradient_of_an_in_place_parameter_is_refused(device, m):
    x = with_grad(device, [1, 2, 3, 4])
    for f in (m.double_it, m.square_it, m.halve):
        with pytest.raises(RuntimeError, match="inout param"):
            f.bwds(spy.grid((4,)), x)
    with pytest.raises(RuntimeError, match="inout param"):
        m.grow.bwds(x, 2.0)


# --- concrete types
def test_custom_activation(device, m):
    x = with_grad(device, [-1, 0.25, 0.5, 2])
    y = m.smoothstep_of(spy.grid((4,)), x)
    same(y, [0, 0.15625, 0.5, 1])
    y = y.with_grads()
    y.grad.copy_from_numpy(ONES)
    m.smoothstep_of.bwds(spy.grid((4,)), x, _result=y)
    same(x.grad, [0, 1.125, 1.5, 0])
    same(m.smoothstep_of(spy.grid((4,)), x.detach()), [0, 0.15625, 0.5, 1])


def test_concrete_types_want_gradients(device, m):
    x, y = tensor(device, [1, 2, 3, 4]), tensor(device, [0, 0, 0, 0])
    m.triple(spy.grid((4,)), x, y)
    same(y, [3, 6, 9, 12])
    with pytest.raises(spy.ResolveException, match="x: .*requires a tensor with an associated output gradient"):
        m.triple.bwds(spy.grid((4,)), x, y)
    with pytest.raises(spy.ResolveException, match="y: .*requires a tensor with an associated input gradient"):
        m.triple.bwds(spy.grid((4,)), x.with_grads(), y)
    with pytest.raises(spy.ResolveException, match="requires a tensor with an associated output gradient"):
        m.halve.bwds(spy.grid((4,)), x.with_grads(grad_in=y))
    x, y = x.with_grads(), seeded(device, [1, 2, 3, 4])
    m.triple.bwds(spy.grid((4,)), x, y)
    same(x.grad, [3, 6, 9, 12])
    same(y, [77, 77, 77, 77])


# --- layers
def test_linear_layer(device, m):
    w, b, x = with_grad(device, [[1, 2, 3], [4, 5, 6]]), with_grad(device, [0.5, -0.5]), with_grad(device, [1, 0, -1])
    y = spy.Tensor.empty(device, (2,), float).with_grads()
    m.linear(spy.grid(shape=(2,)), w, b, x, y)
    same(y, [-1.5, -2.5])
    y.grad.copy_from_numpy(np.array([1, 2], np.float32))
    m.linear.bwds(spy.grid(shape=(2,)), w, b, x, y)
    same(w.grad, [[1, 0, -1], [2, 0, -2]])
    same(b.grad, [1, 2])
    same(x.grad, [9, 12, 15])


def test_linear_layer_with_one_gradient(device, m):
    w, b, x = tensor(device, [[1, 2, 3], [4, 5, 6]]), tensor(device, [0.5, -0.5]), with_grad(device, [1, 0, -1])
    m.linear.bwds(spy.grid((2,)), w, b, x, seeded(device, [1, 2]))
    same(x.grad, [9, 12, 15])


def test_linear_layer_against_float64(device, m):
    w, b, x, seed = (RNG.standard_normal(s) for s in ((7, 16), 7, 16, 7))
    tw, tb, tx = with_grad(device, w), with_grad(device, b), with_grad(device, x)
    m.linear.bwds(spy.grid((7,)), tw, tb, tx, seeded(device, seed))
    check(tw.grad, np.outer(seed, x))
    check(tb.grad, seed)
    check(tx.grad, w.T @ seed)
    check(tx.grad, finite_difference(lambda v: w @ v + b, x, seed))


def test_scale_rows(device, m):
    mat, s = with_grad(device, [[1, 2], [3, 4]]), with_grad(device, [10, 20])
    y = spy.Tensor.empty_like(mat)
    m.scale_rows(spy.grid((2,)), mat, s, y)
    same(y, [[10, 20], [60, 80]])
    y = y.with_grads()
    y.grad.copy_from_numpy(np.ones((2, 2), np.float32))
    m.scale_rows.bwds(spy.grid((2,)), mat, s, y)
    same(mat.grad, [[10, 10], [20, 20]])
    same(s.grad, [3, 7])


def test_vectorised_over_leading_dimensions(device, m):
    x = with_grad(device, [[1, 2, 3], [4, 5, 6]])
    m.total.bwds(x, _result=seeded(device, [1, 10]))
    same(x.grad, [[2, 4, 6], [80, 100, 120]])


# --- reads of one element add up
def test_interface_parameters_propagate(device, m):
    x = with_grad(device, [1, 2, 3, 4])
    m.sq.bwds(spy.grid((4,)), x, _result=seeded(device, ONES))
    same(x.grad, [2, 4, 6, 8])


def test_gather(device, m):
    at = RNG.integers(0, 10, 1000)
    x, seed = RNG.standard_normal(10), RNG.standard_normal(1000)
    tx = with_grad(device, x)
    m.gather.bwds(spy.grid((1000,)), tensor(device, at, "int"), tx, _result=seeded(device, seed))
    expected = np.zeros(10)
    np.add.at(expected, at, 2 * x[at] * seed)
    check(tx.grad, expected)


def test_views_of_tensor_arguments(device, m):
    x = with_grad(device, np.arange(8))
    m.sq.bwds(spy.grid((4,)), x[4:], _result=seeded(device, ONES))
    same(x.grad, [0, 0, 0, 0, 8, 10, 12, 14])
    x.grad.clear()
    m.sq.bwds(spy.grid((4,)), x[::-2], _result=seeded(device, [1, 2, 3, 4]))
    same(x.grad, [0, 8, 0, 18, 0, 20, 0, 14])
    one = with_grad(device, [3])
    m.sq.bwds(spy.grid((4,)), one.broadcast_to((4,)), _result=seeded(device, ONES))
    same(one.grad, [24])


# --- index forms
def test_index_forms(device, m):
    x = RNG.standard_normal((2, 3))
    seed, ys = RNG.standard_normal(2), RNG.standard_normal((2, 3))

    def f(v):
        out, y = np.zeros(2), np.zeros((2, 3))
        for i in range(2):
            s = v[i, 1] ** 2 + v[i, 1] + v[1, 0] + v[1, 0]
            out[i], y[i, 0], y[i, 1], y[i, 2] = s, s, 2 * s, 3 * s
        return np.sum(out * seed) + np.sum(y * ys)

    tx = with_grad(device, x)
    m.forms.bwds(spy.grid((2,)), tx, seeded(device, ys), _result=seeded(device, seed))
    check(tx.grad, finite_difference(f, x), 1e-4)


def test_ranks(device, m):
    x = np.arange(1, 13, dtype=np.float64).reshape(2, 3, 2)
    tx = with_grad(device, x)
    m.rank3.bwds(spy.grid((3,)), tx, _result=seeded(device, [1, 2, 3]))
    expected = np.zeros_like(x)
    for i in range(3):
        expected[0, i, 1] += (i + 1) * x[1, i, 0]
        expected[1, i, 0] += (i + 1) * x[0, i, 1]
    same(tx.grad, expected)
    zero = with_grad(device, 3.0)
    m.rank0.bwds(zero, seeded(device, 5.0))
    same(zero.grad, 30.0)


def test_rank_8(device, m):
    x = RNG.standard_normal((2,) * 8)
    tx, y = with_grad(device, x), seeded(device, np.ones((2,) * 8))
    m.rank8.bwds(spy.grid((2,)), tx, y, _result=seeded(device, [1, 1]))

    def f(v):
        return sum(4 * v[0, 1, k, 1, 0, 1, 0, 1] * v[0, 1, 1, 1, 0, k, 0, 1] for k in range(2))

    check(tx.grad, finite_difference(f, x), 1e-5)


def test_generic_element_and_rank(device, m):
    x = with_grad(device, [[1, 2], [3, 4]], "double")
    m["of_any<double, 2>"].bwds(spy.grid((2, 2)), x, _result=seeded(device, [[1, 1], [1, 10]], "double"))
    same(x.grad, [[2, 4], [6, 80]])
    h = with_grad(device, [1, 2], "half")
    m["of_any<half, 1>"].bwds(spy.grid((2,)), h, _result=seeded(device, [1, 1], "half"))
    same(h.grad, [2, 4])


def test_sample(device, m):
    x = with_grad(device, np.arange(12).reshape(3, 4))
    uv = spy.diffPair(spy.float2(0.5, 0.5))
    m.looked.bwds(uv, x, _result=spy.diffPair(0.0, 1.0))
    expected = np.zeros((3, 4))
    expected[1, 2] = expected[2, 2] = 0.5
    same(x.grad, expected)
    same(list(uv.grad), [4, 12])


# --- element types
def test_half_elements(device, m):
    x = with_grad(device, [1, 2, 3, 4], "half")
    m.of_half.bwds(spy.grid((4,)), x, _result=seeded(device, ONES, "half"))
    same(x.grad, [2, 4, 6, 8])
    wide = tensor(device, [1, 2, 3, 4], "half").with_grads(grad_out=tensor(device, [0, 0, 0, 0]))
    m.of_half.bwds(spy.grid((4,)), wide, _result=seeded(device, ONES, "half"))
    same(wide.grad_out, [2, 4, 6, 8])


def test_vector_matrix_and_array_elements(device, m):
    v, seed = RNG.standard_normal((4, 3)), RNG.standard_normal((4, 3))
    tv = with_grad(device, v, element="float3")
    m.of_float3.bwds(spy.grid((4,)), tv, _result=seeded(device, seed, element="float3"))
    check(tv.grad, 2 * v * seed)
    a = RNG.standard_normal((4, 2, 3))
    ta = with_grad(device, a, element="float2x3")
    m.of_matrix.bwds(spy.grid((4,)), ta, _result=seeded(device, ONES))
    expected = np.zeros_like(a)
    expected[:, 1, 1], expected[:, 0, 0] = a[:, 0, 0], a[:, 1, 1]
    check(ta.grad, expected)
    tb = with_grad(device, v, element="float[3]")
    m.of_array.bwds(spy.grid((4,)), tb, _result=seeded(device, ONES))
    check(tb.grad, np.stack([v[:, 2], 0 * v[:, 0], v[:, 0]], axis=1))


# --- the gradient that a tensor has
def test_vectors_of_a_wider_tensor_add_to_their_gradient(device):
    """Parameters that take a dimension of the tensor: what its gradient holds stays."""
    f = spy.Module.load_from_source(device, "squares", "[Differentiable] float squares(float3 v) { return dot(v, v); }")
    values = RNG.standard_normal((33, 3)).astype(np.float32)
    x = with_grad(device, values)
    x.grad.copy_from_numpy(np.full((33, 3), 5, np.float32))
    seed = RNG.standard_normal(33)
    f.squares.bwds(x, _result=seeded(device, seed))
    check(x.grad, 5 + 2 * values.astype(np.float64) * seed[:, None])


@pytest.mark.parametrize("order", [("half", "float"), ("float", "half")])
def test_each_type_of_gradient_has_its_own_kernel(device, order):
    if not device.has_feature(spy.Feature.half):
        pytest.skip("no half on this device")
    name = "of_" + "_".join(order)
    m = spy.Module.load_from_source(device, name, "[Differentiable] half square(half x) { return x * x; }")
    for dtype in order:
        gradient = spy.Tensor.zeros(device, (9,), dtype=dtype)
        x = tensor(device, np.arange(9), "half").with_grads(grad_out=gradient)
        m.square.bwds(x, _result=seeded(device, np.ones(9), "half"))
        same(gradient, 2.0 * np.arange(9))


def test_a_gradient_of_another_shape_is_refused(device, m):
    x, other = with_grad(device, [1, 2, 3, 4]), tensor(device, np.zeros(3))
    with pytest.raises(ValueError, match=r"Invalid shape of output gradient: Expected .4.*, received .3"):
        x.grad_out = other
    spy.Tensor.__mro__[-2].grad_out.__set__(x, other)  # past that check: nothing is written beyond the gradient
    with pytest.raises(ValueError, match=r"the grad_out of argument x has shape .3., but its tensor has shape .4."):
        m.power.bwds(x, 0.5, _result=seeded(device, ONES))
