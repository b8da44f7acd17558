"""Forward-mode calls over values: what carries tangents, what comes back, element types, views, structs."""

from __future__ import annotations

import numpy as np
import pytest
from gradcheck import check, load, same, tensor, with_grad
from tiers import gate

import slangpy as spy

pytestmark = [
    pytest.mark.needs_kernels,
    pytest.mark.elsewhere(
        "test_new_tensor", "test_given_result", "test_out_parameters", "test_inout", "test_broadcast", "test_views", "half",
        "test_struct_tensors", "transform", "test_append_to", "test_large_and_empty",
    ),
]
RNG = np.random.default_rng(11)
X, D = [0, 1, 2, 3], [1, 10, 100, 1000]
VALUE, TANGENT = [-1, 9, 23, 41], [8, 120, 1600, 20000]  # of 2 x^2 + 8 x - 1


@pytest.fixture
def m(device):
    return load(device)


def dual(device, values, tangent, dtype="float", element=None):
    """A tensor with its tangent."""
    result = tensor(device, values, dtype, element)
    return result.with_grads(grad_in=tensor(device, tangent, dtype, element))


def empty(device, shape, dtype="float"):
    """An output with room for its tangent; what is in it does not matter."""
    result = with_grad(device, np.full(shape, 77), dtype)
    result.grad.copy_from_numpy(np.full_like(result.to_numpy(), 55))
    return result


# --- what comes back
def test_new_tensor(device, m):
    y = m.polynomial.fwds(2, 8, -1, dual(device, X, D))
    assert isinstance(y, spy.Tensor)
    same(y, VALUE)
    same(y.grad, TANGENT)
    assert y.grad_in is y.grad_out
    named = m.polynomial.fwds(a=2, b=8, c=-1, x=dual(device, X, D), _result="tensor")
    same(named.grad, TANGENT)
    chosen = m.polynomial.return_type(spy.Tensor).fwds(2, 8, -1, dual(device, X, D))
    same(chosen.grad, TANGENT)


def test_numpy(device, m):
    for result in ("numpy", np.ndarray):
        y, d = m.polynomial.fwds(2, 8, -1, dual(device, X, D), _result=result)
        assert y.dtype == d.dtype == np.float32
        same(y, VALUE)
        same(d, TANGENT)
    y, d = m.scale3.fwds(spy.float3(1, 2, 3), dual(device, [1, 2], [1, 10]), _result="numpy")
    same(y, [[1, 4, 9], [2, 8, 18]])
    same(d, [[1, 4, 9], [10, 40, 90]])


def test_rank_0(device, m):
    y = m.polynomial.fwds(spy.diffPair(2.0, 10.0), 8, -1, spy.diffPair(3.0, 1.0))
    assert isinstance(y, spy.DiffPair)
    assert (y.primal, y.grad) == (41.0, 110.0)
    v = m.scale3.fwds(spy.diffPair(spy.float3(1, 2, 3), spy.float3(1, 0, 10)), 2.0)
    assert list(v.primal) == [2, 8, 18]
    assert list(v.grad) == [4, 0, 120]


def test_given_result(device, m):
    y = empty(device, 4)
    assert m.polynomial.fwds(2, 8, -1, dual(device, X, D), _result=y) is y
    same(y, VALUE)
    same(y.grad, TANGENT)
    plain = tensor(device, [0, 0, 0, 0])
    assert m.polynomial.fwds(2, 8, -1, dual(device, X, D), _result=plain) is plain
    same(plain, VALUE)
    array = np.zeros(4, np.float32)
    assert m.polynomial.fwds(2, 8, -1, dual(device, X, D), _result=array) is array
    same(array, VALUE)
    pair = spy.diffPair()
    assert m.polynomial.fwds(2, 8, -1, spy.diffPair(3.0, 1.0), _result=pair) is pair
    assert (pair.primal, pair.grad) == (41.0, 20.0)
    unwanted = spy.diffPair(0.0, 5.0, needs_grad=False)
    m.polynomial.fwds(2, 8, -1, spy.diffPair(3.0, 1.0), _result=unwanted)
    assert (unwanted.primal, unwanted.grad) == (41.0, 5.0)


def test_input_and_its_tangent_stay(device, m):
    x = dual(device, X, D)
    m.polynomial.fwds(2, 8, -1, x)
    same(x, X)
    same(x.grad, D)


def test_result_without_derivative(device):
    m = spy.Module.load_from_source(
        device, "fwds_int", "[Differentiable] int steps(float x, out float y) { y = x * x; return int(x) + 1; }"
    )
    y = empty(device, 3)
    r = m.steps.fwds(dual(device, [1, 2, 3], [1, 1, 10]), y, _result="numpy")
    assert isinstance(r, np.ndarray)
    same(r, [2, 3, 4])
    same(y, [1, 4, 9])
    same(y.grad, [2, 4, 60])


# --- tangents of inputs
def test_several_inputs_add_up(device, m):
    a, b, x = RNG.standard_normal((3, 50))
    da, db, dx = RNG.standard_normal((3, 50))
    y = m.polynomial.fwds(dual(device, a, da), dual(device, b, db), 0.5, dual(device, x, dx))
    check(y, a * x * x + b * x + 0.5)
    check(y.grad, da * x * x + db * x + (2 * a * x + b) * dx)


def test_missing_tangents_are_zero(device, m):
    x = spy.diffPair(3.0, 1.0, needs_grad=False)
    with pytest.warns(RuntimeWarning, match="no argument has a tangent"):
        y = m.polynomial.fwds(np.array([2, 3], np.float32), 8, -1, x)
    same(y, [41, 50])
    same(y.grad, [0, 0])
    y = m.polynomial.fwds(np.array([2, 3], np.float32), spy.diffPair(8.0, 1.0), -1, x)
    same(y.grad, [3, 3])


def test_grad_in_is_read_and_grad_out_is_written(device, m):
    x = tensor(device, X).with_grads(grad_in=tensor(device, D), grad_out=tensor(device, [5, 5, 5, 5]))
    same(m.polynomial.fwds(2, 8, -1, x).grad, TANGENT)
    same(x.grad_out, [5, 5, 5, 5])
    only_out = tensor(device, X).with_grads(grad_out=tensor(device, D))
    same(m.polynomial.fwds(2, 8, -1, only_out).grad, TANGENT)
    y = tensor(device, X).with_grads(grad_in=tensor(device, [5, 5, 5, 5]), grad_out=tensor(device, [6, 6, 6, 6]))
    m.polynomial.fwds(2, 8, -1, x, _result=y)
    same(y.grad_in, [5, 5, 5, 5])
    same(y.grad_out, TANGENT)
    only_in = tensor(device, X).with_grads(grad_in=tensor(device, [5, 5, 5, 5]))
    m.polynomial.fwds(2, 8, -1, x, _result=only_in)
    same(only_in.grad_in, TANGENT)


def test_no_diff_and_integers(device, m):
    k, x = dual(device, [1, 2, 3], [100, 100, 100]), dual(device, [1, 1, 1], [1, 2, 3])
    y = m.detached.fwds(k, x, tensor(device, [2, 2, 2], "int"))
    same(y, [2, 4, 6])
    same(y.grad, [2, 8, 18])


def test_list_of_pairs_and_dict(device, m):
    y = m.weighted.fwds([1.0, 2.0, 3.0, 4.0], spy.diffPair(2.0, 1.0))
    assert (y.primal, y.grad) == (60.0, 30.0)
    a = spy.diffPair([1.0, 2.0, 3.0, 4.0], [1.0, 0.0, 0.0, 10.0])
    y = m.weighted.fwds(a, tensor(device, [2, 3]))
    same(y, [60, 90])
    same(y.grad, [82, 123])


# --- outputs
def test_out_parameters(device, m):
    square, cube = empty(device, 3), empty(device, 3)
    assert m.split.fwds(dual(device, [1, 2, 3], [1, 10, 100]), square, cube) is None
    same(square, [1, 4, 9])
    same(square.grad, [2, 40, 600])
    same(cube, [1, 8, 27])
    same(cube.grad, [3, 120, 2700])
    r, p = spy.floatRef(), spy.diffPair()
    m.split.fwds(spy.diffPair(3.0, 1.0), r, p)
    assert r.value == 9.0
    assert (p.primal, p.grad) == (27.0, 27.0)


def test_arrays_as_results(device):
    text = """
    [Differentiable] float[3] powers(float x) { float r[3] = { x, x * x, x * x * x }; return r; }
    [Differentiable] void out_powers(float x, out float r[3]) { r = powers(x); }
    """
    m = spy.Module.load_from_source(device, "fwds_arrays", text)
    x, value, tangent = dual(device, [2, 3], [1, 10]), [[2, 4, 8], [3, 9, 27]], [[1, 4, 12], [10, 60, 270]]
    y, d = m.powers.fwds(x, _result="numpy")
    same(y, value)
    same(d, tangent)
    out = empty(device, (2, 3))
    m.out_powers.fwds(x, out)
    same(out, value)
    same(out.grad, tangent)
    assert m.powers.fwds(spy.diffPair(2.0, 1.0)).grad == [1, 4, 12]


def test_inout(device, m):
    w = dual(device, [5, 6, 7, 8], [1, 0, 2, 0])
    x = with_grad(device, X)
    x.grad.copy_from_numpy(np.array(D, np.float32))
    m.grow.fwds(x, w)
    same(x, [0, 6, 14, 24])
    same(x.grad, [5, 60, 704, 8000])
    tangent, out = tensor(device, D), tensor(device, [5, 5, 5, 5])
    x = tensor(device, X).with_grads(grad_in=tangent, grad_out=out)
    m.grow.fwds(x, w)
    same(tangent, D)
    same(out, [5, 60, 704, 8000])
    p = spy.diffPair(3.0, 2.0)
    m.grow.fwds(p, spy.diffPair(5.0, 10.0))
    assert (p.primal, p.grad) == (15.0, 40.0)


def test_inout_without_tangent(device, m):
    x = tensor(device, [1, 2])
    m.grow.fwds(x, dual(device, [5, 6], [1, 1]))
    same(x, [5, 12])


# --- shapes
def test_broadcast(device, m):
    a, b, x = RNG.standard_normal(3), RNG.standard_normal((4, 1)), RNG.standard_normal((4, 3))
    da, db, dx = RNG.standard_normal(3), RNG.standard_normal((4, 1)), RNG.standard_normal((4, 3))
    c = spy.diffPair(0.5, 7.0)
    y = m.polynomial.fwds(dual(device, a, da), dual(device, b, db), c, dual(device, x, dx))
    check(y, a * x * x + b * x + 0.5)
    check(y.grad, da * x * x + db * x + 7 + (2 * a * x + b) * dx)
    one = dual(device, [2], [3])
    same(m.power.fwds(one, tensor(device, [[1, 2], [3, 4]])).grad, [[12, 24], [36, 48]])


def test_tangent_of_a_broadcast_view(device, m):
    x = tensor(device, [3]).broadcast_to((4,)).with_grads()
    x.grad.copy_from_numpy(np.array(D, np.float32))
    same(m.power.fwds(x, tensor(device, [1, 2, 3, 4])).grad, [6, 120, 1800, 24000])


def test_views(device, m):
    values, tangent = RNG.standard_normal((5, 7)), RNG.standard_normal((5, 7))
    for view in (np.s_[1:4], np.s_[::-2, ::3], np.s_[:, None, 2:5]):
        x = dual(device, values, tangent)[view]
        y = empty(device, (6, *values[view].shape))[2]
        m.power.fwds(x, 1.0, _result=y)
        check(y, values[view] ** 2)
        check(y.grad, 2 * values[view] * tangent[view])
    x = dual(device, values, tangent).permute(1, 0)
    check(m.power.fwds(x, 1.0).grad, (2 * values * tangent).T)
    other_strides = tensor(device, values).with_grads(grad_in=tensor(device, tangent.T).permute(1, 0))
    check(m.power.fwds(other_strides, 1.0).grad, 2 * values * tangent)
    y = tensor(device, values).with_grads(grad_in=tensor(device, tangent.T).permute(1, 0))
    m.power.fwds(other_strides, 1.0, _result=y)
    check(y.grad, 2 * values * tangent)


def test_map(device, m):
    a, b = dual(device, [1, 2], [1, 10]), dual(device, [1, 2, 3], [0, 1, 0])
    y = m.power.map((0,), (1,)).fwds(a, b)
    same(y, [[1, 2, 3], [4, 8, 12]])
    same(y.grad, [[2, 4 + 1, 6], [40, 80 + 4, 120]])


def test_call_groups(device, m):
    v, d = RNG.standard_normal((2, 5, 7))
    y = m.power.call_group_shape((2, 2)).fwds(dual(device, v, d), 1.0)
    check(y, v * v)
    check(y.grad, 2 * v * d)


def test_large_and_empty(device, m):
    n = 100003
    v, d = RNG.uniform(-1, 1, (2, n)).astype(np.float32)
    y = m.power.fwds(dual(device, v, d), 1.0)
    check(y.grad, 2 * v.astype(np.float64) * d)
    y = m.power.fwds(dual(device, np.zeros((0, 3)), np.zeros((0, 3))), 1.0)
    assert y.shape == y.grad.shape == (0, 3)
    pair = spy.diffPair(1.0, 2.0)
    m.grow.fwds(dual(device, np.zeros(0), np.zeros(0)), pair)
    assert (pair.primal, pair.grad) == (1.0, 2.0)


# --- element types
@pytest.mark.parametrize(("dtype", "tolerance"), [("float", 1e-6), ("double", 1e-14), ("half", 2e-3)])
def test_scalar_types(device, m, dtype, tolerance):
    f = {"float": m.polynomial, "double": m.polynomial_f64, "half": m.polynomial_f16}[dtype]
    x = dual(device, RNG.uniform(-1, 1, 100), RNG.uniform(-1, 1, 100), dtype)
    a = spy.diffPair(2.0, 0.25)
    y = f.fwds(a, 8, -1, x)
    v, d = (np.asarray(t.to_numpy(), np.float64) for t in (x, x.grad))
    assert y.grad.dtype.full_name == dtype
    check(y, 2 * v * v + 8 * v - 1, tolerance)
    check(y.grad, 0.25 * v * v + (4 * v + 8) * d, tolerance)


def test_half_with_a_float_tangent(device, m):
    x = tensor(device, [1, 2, 3, 4], "half").with_grads(grad_in=tensor(device, [1, 0.5, 0.25, 0]))
    y = tensor(device, [0, 0, 0, 0], "half").with_grads(grad_out=tensor(device, [9, 9, 9, 9]))
    m.polynomial_f16.fwds(2, 8, -1, x, _result=y)
    same(y.grad_out, [12, 8, 5, 0])


def test_vectors_matrices_arrays(device, m):
    v, dv, s, ds = RNG.standard_normal((6, 3)), RNG.standard_normal((6, 3)), *RNG.standard_normal((2, 6))
    for element in (None, "float3"):  # a float tensor with a last dimension of 3 serves too
        y = m.scale3.fwds(dual(device, v, dv, element=element), dual(device, s, ds))
        check(y.grad, 2 * v * dv * s[:, None] + v * v * ds[:, None])
    a, da = RNG.standard_normal((2, 6, 3, 3))
    for elements in ((None, None), ("float3x3", "float3")):
        out = empty(device, (6, 3))
        m.transform.fwds(
            dual(device, a, da, element=elements[0]), dual(device, v, dv, element=elements[1]), _result=out
        )
        check(out, np.einsum("nrc,nc->nr", a, v))
        check(out.grad, np.einsum("nrc,nc->nr", da, v) + np.einsum("nrc,nc->nr", a, dv))
    w, dw, k = RNG.standard_normal((5, 4)), RNG.standard_normal((5, 4)), np.array([1, 2, 3, 4.0])
    for element in (None, "float[4]"):
        check(m.weighted.fwds(dual(device, w, dw, element=element), 2.0).grad, 2 * dw @ k)
    one = m.transform.fwds(dual(device, a[:1], da[:1], element="float3x3"), spy.float3(1, 2, 3))
    check(one.grad, np.einsum("nrc,c->nr", da[:1], [1, 2, 3]))


# --- structs
def rays(device, m, values):
    t = spy.Tensor.empty(device, (len(values),), m.Ray)
    c = t.cursor()
    for i, (time, uv) in enumerate(values):
        c[i].write({"t": time, "uv": uv})
    c.apply()
    return t


def read(t):
    c = t.cursor()
    return [[r["t"], *r["uv"]] for r in (c[i].read() for i in range(len(t)))]


def test_struct_tensors(device, m):
    r = rays(device, m, [(1, (2, 3)), (2, (4, 5))]).with_grads(grad_in=rays(device, m, [(1, (0, 0)), (0, (1, 10))]))
    e = m.energy.fwds(r)
    same(e, [7, 24])
    same(e.grad, [2, 45])
    x = m.spread.fwds(dual(device, [2, 3], [1, 0]), dual(device, [5, 7], [0, 1]))
    assert read(x) == [[10, 4, 15], [21, 9, 21]]
    assert read(x.grad) == [[5, 4, 0], [3, 0, 3]]
    values, grads = m.spread.fwds(dual(device, [2, 3], [1, 0]), 5.0, _result="numpy")
    assert values["t"].tolist() == [10, 15]
    assert grads["t"].tolist() == [5, 0]
    r = rays(device, m, [(2, (3, 4))]).with_grads(grad_in=rays(device, m, [(1, (0, 1))]))
    m.shift.fwds(r, dual(device, [5], [1]))  # t by, uv t by: dt = 5 + 2, duv = (0, 1) 10 + uv 7
    assert read(r) == [[10, 30, 40]]
    assert read(r.grad) == [[7, 21, 38]]


def test_struct_fields(device, m):
    t, u = dual(device, [1, 2], [1, 0]), dual(device, [[2, 3], [4, 5]], [[0, 0], [1, 10]])
    same(m.energy.fwds({"t": t, "uv": u}).grad, [2, 45])
    same(m.energy.fwds({"t": t, "uv": (2.0, 3.0)}).grad, [2, 0])
    p = spy.diffPair({"_type": "Ray", "t": 2.0, "uv": (3.0, 4.0)}, {"t": 1.0, "uv": (0.0, 10.0)})
    assert m.energy.fwds(p).grad == 34.0
    r = m.spread.fwds(spy.diffPair(2.0, 1.0), spy.diffPair(5.0, 10.0))
    assert (r.primal["t"], list(r.primal["uv"])) == (10, [4, 15])
    assert (r.grad["t"], list(r.grad["uv"])) == (25, [4, 30])
    out = {"t": empty(device, 2), "uv": empty(device, (2, 2))}
    m.spread.fwds(dual(device, [2, 3], [1, 0]), 5.0, _result=out)
    same(out["t"].grad, [5, 0])
    same(out["uv"].grad, [[4, 0], [0, 0]])


NO_DIFF_FIELDS = """
struct Part : IDifferentiable { float a; no_diff float b; int c; };
struct Whole : IDifferentiable { Part one; Part two; float2 v; };
[Differentiable] float use_part(Part p) { return p.a * p.a * p.b * p.c; }
[Differentiable] float use_whole(Whole w) { return w.one.a * w.two.b + w.v.x * w.v.y; }
"""


def test_no_diff_fields(device):
    m = spy.Module.load_from_source(device, "fwds_no_diff_fields", NO_DIFF_FIELDS)
    a, b = spy.diffPair(2.0, 1.0), spy.diffPair(3.0, 100.0)
    y = m.use_part.fwds({"a": a, "b": b, "c": 2})
    assert (y.primal, y.grad) == (24.0, 24.0)
    m.use_part.bwds({"a": a, "b": b, "c": 2}, _result=spy.diffPair(0.0, 1.0))
    assert (a.grad, b.grad) == (24.0, 100.0)
    one = {"a": dual(device, [2, 3], [1, 0]), "b": 5.0, "c": 1}
    two = {"a": 1.0, "b": dual(device, [4, 5], [100, 100]), "c": 1}
    whole = {"one": one, "two": two, "v": dual(device, [[1, 2], [3, 4]], [[0, 1], [1, 0]])}
    same(m.use_whole.fwds(whole).grad, [4 + 1, 0 + 4])
    assert spy.check_gradients(m.use_whole, whole)


def test_methods(device, m):
    this = {"a": dual(device, [1, 2], [1, 0]), "b": spy.diffPair(3.0, 100.0)}
    y = m.Quadratic.eval.fwds(this, dual(device, [2, 3], [0, 1]))
    same(y, [10, 27])
    same(y.grad, [4 + 200, 300 + 15])
    this = {"a": spy.diffPair(2.0, 1.0), "b": spy.diffPair(3.0, 10.0)}
    m.Quadratic.step.fwds(this, spy.diffPair(5.0, 100.0))
    assert (this["a"].primal, this["a"].grad) == (10.0, 205.0)
    assert (this["b"].primal, this["b"].grad) == (13.0, 215.0)
    same(m.Quadratic.twice.fwds(dual(device, [1, 2], [1, 1])).grad, [4, 8])
    same(m.Fixed.eval.fwds({"k": 3.0}, dual(device, [1, 2], [1, 1])).grad, [6, 12])


# --- functions
def test_generics(device, m):
    y = m.power.fwds(dual(device, [1, 2, 3], [1, 1, 1], "double"), tensor(device, [1, 1, 1], "double"))
    same(y.grad, [2, 4, 6])
    v = dual(device, [[1, 2], [3, 4]], [[1, 0], [0, 1]], element="float2")
    same(m.scaled.fwds(v).grad, [4, 16])
    same(m["scaled<2>"].fwds(v).grad, [4, 16])


def test_loop_longer_than_max_iters(device, m):
    """MaxIters sizes what a backward call keeps; forward mode keeps nothing."""
    y = m.iterate.fwds(dual(device, [1, 1.5], [1, 1]), 20)
    check(y.grad, [21, 21 * 1.5**20])


def test_custom_forward_derivative(device):
    m = spy.Module.load_from_source(
        device, "fwds_custom",
        """
        [ForwardDerivative(square_fwd)] float square(float x) { return x * x; }
        DifferentialPair<float> square_fwd(DifferentialPair<float> x) { return diffPair(x.p * x.p, 1000 * x.d); }
        [BackwardDerivative(both_bwd)] [ForwardDerivative(both_fwd)] float both(float x) { return x * x; }
        void both_bwd(inout DifferentialPair<float> x, float d) { x = diffPair(x.p, 5 * d); }
        DifferentialPair<float> both_fwd(DifferentialPair<float> x) { return diffPair(x.p * x.p, 7 * x.d); }
        [Differentiable] float user(float x) { return both(x) + x; }
        """,
    )  # fmt: skip
    assert m.square.fwds(spy.diffPair(3.0, 1.0)).grad == 1000.0
    assert m.both.fwds(spy.diffPair(3.0, 1.0)).grad == 7.0
    assert m.user.fwds(spy.diffPair(3.0, 1.0)).grad == 8.0
    x = spy.diffPair(3.0)
    m.both.bwds(x, spy.diffPair(0.0, 1.0))
    assert x.grad == 5.0


# Each: function, arguments with tangents, arguments of the backward call (made anew), by the same arrays.
DUALITY = gate(
    ["polynomial", "scale3", "transform", "weighted", "pick", "power"], lambda name: name in ("polynomial", "transform", "pick")
)
SHAPES = {
    "polynomial": ([(3,), (4, 1), (1,), (4, 3)], (4, 3)), "scale3": ([(5, 3), (1,)], (5, 3)), "power": ([(1,), (6,)], (6,)),
    "transform": ([(2, 3, 3), (2, 3)], (2, 3)), "weighted": ([(4,), (5,)], (5,)), "pick": ([(3, 2, 3, 2), (3,)], (3,)),
}  # fmt: skip


@pytest.mark.parametrize("name", DUALITY)
def test_agrees_with_the_backward_call(device, m, name):
    """u . (J v) = (J^T u) . v"""
    shapes, out = SHAPES[name]
    values, directions = [[RNG.standard_normal(s) for s in shapes] for _ in range(2)]
    seed = RNG.standard_normal(out)
    y = m[name].fwds(*[dual(device, v, d) for v, d in zip(values, directions, strict=True)])
    forward = np.sum(y.grad.to_numpy().reshape(out) * seed)
    inputs = [with_grad(device, v) for v in values]
    result = with_grad(device, np.zeros(out))
    result.grad.copy_from_numpy(seed.astype(np.float32))
    m[name].bwds(*inputs, _result=result)
    backward = sum(np.sum(t.grad.to_numpy() * d) for t, d in zip(inputs, directions, strict=True))
    assert abs(forward - backward) < 1e-4 * max(abs(forward), 1)


# --- plans
def test_plans_are_kept_apart_and_on_disk(device, tmp_path):
    path = tmp_path / "fwds_disk.slang"
    path.write_text("[Differentiable] float2 pair(float x) { return float2(x * x, 3 * x); }")
    for again in range(2):
        m = spy.Module.load_from_file(device, path)
        x = dual(device, [1, 2], [1, 10])
        y = m.pair.fwds(x)
        same(y, [[1, 3], [4, 6]])
        same(y.grad, [[2, 3], [40, 30]])
        same(m.pair(x), [[1, 3], [4, 6]])
        assert m.pair.fwds(spy.diffPair(3.0, 1.0)).grad == spy.float2(6, 3)
        if again:
            assert m.pair.fwds.debug_build_call_data(x)._planned is None  # restored without the compiler
            assert m.pair.fwds.debug_build_call_data(x).call_mode == "fwds"
    x.grad.copy_from_numpy(np.array([0, 1], np.float32))
    same(y := m.pair.fwds(x), [[1, 3], [4, 6]])
    same(y.grad, [[0, 0], [4, 3]])


def test_append_to(device, m):
    encoder = device.create_command_encoder()
    x, y = dual(device, [1, 2, 3], [1, 1, 10]), empty(device, 3)
    m.power.fwds.append_to(encoder, x, 1.0, _result=y)
    same(y.grad, [55, 55, 55])
    device.submit_command_buffer(encoder.finish())
    same(y, [1, 4, 9])
    same(y.grad, [2, 4, 60])
    encoder = device.create_command_encoder()
    m.power.fwds.append_to(encoder, x, 1.0)  # the result is dropped
    device.submit_command_buffer(encoder.finish())
    with pytest.raises(ValueError, match="read back"):
        m.power.fwds.append_to(device.create_command_encoder(), spy.diffPair(1.0, 1.0), 1.0, _result=spy.diffPair())


# --- torch
def test_torch(device, m):
    torch = pytest.importorskip("torch")
    if device.info.type is spy.DeviceType.cuda:
        pytest.skip("tests/pytorch has the CUDA tensors")
    x, d = torch.tensor(X, dtype=torch.float32), torch.tensor(D, dtype=torch.float32)
    y = m.polynomial.fwds(2, 8, -1, spy.diff_pair(x, d))
    assert y.primal.tolist() == VALUE
    assert y.grad.tolist() == TANGENT
    only = spy.diff_pair(None, torch.zeros(4))
    m.polynomial.fwds(2, 8, -1, spy.diff_pair(x, d), _result=only)
    assert only.grad.tolist() == TANGENT
    out = spy.diff_pair(torch.zeros(4), torch.zeros(4))
    m.polynomial.fwds(2, 8, -1, spy.diff_pair(x, d), _result=out)
    assert (out.primal.tolist(), out.grad.tolist()) == (VALUE, TANGENT)
    square, cube = spy.diff_pair(torch.zeros(4), None), spy.diff_pair(torch.zeros(4), torch.zeros(4))
    m.split.fwds(spy.diff_pair(x, d), square.primal, cube)
    assert square.primal.tolist() == [0, 1, 4, 9]
    assert cube.grad.tolist() == [0, 30, 1200, 27000]
    state = spy.diff_pair(x.clone(), d.clone())
    m.grow.fwds(state, 3.0)
    assert (state.primal.tolist(), state.grad.tolist()) == ([0, 3, 6, 9], [3, 30, 300, 3000])
    grown = torch.tensor(X, dtype=torch.float32, requires_grad=True)
    assert not m.polynomial.fwds(2, 8, -1, spy.diff_pair(grown, d)).primal.requires_grad


def test_torch_agrees_with_torch_func(device, m):
    torch = pytest.importorskip("torch")
    if device.info.type is spy.DeviceType.cuda:
        pytest.skip("tests/pytorch has the CUDA tensors")
    a, x, da, dx = torch.randn(4, 6, generator=torch.Generator().manual_seed(0)).unbind()
    primal, tangent = torch.func.jvp(lambda a, x: a * x * x + 8 * x - 1, (a, x), (da, dx))
    y = m.polynomial.fwds(spy.diff_pair(a, da), 8, -1, spy.diff_pair(x, dx))
    torch.testing.assert_close(y.primal, primal)
    torch.testing.assert_close(y.grad, tangent)


# --- errors
def test_errors(device, m):
    x = dual(device, [1, 2], [1, 1])
    for expression in ("m.power.fwds.fwds", "m.power.fwds.bwds", "m.power.bwds.fwds"):
        with pytest.raises(ValueError, match=r"gradients::power: \wwds of \wwds is not available"):
            eval(expression)
    with pytest.raises(spy.ResolveException, match="Could not call function 'plain': Function is not differentiable"):
        m.plain.fwds(x)
    with pytest.raises(spy.ShapeError, match="Shape mismatch"):
        m.power.fwds(x, tensor(device, [1, 2, 3]))


def test_lists_of_tensors_have_no_gradients(device, m):
    xs = [dual(device, [1, 2], [1, 1]), dual(device, [3, 4], [1, 1])]
    same(m.power([x.detach() for x in xs], 1.0), [[1, 4], [9, 16]])
    with pytest.raises(NotImplementedError, match="entries of a list are not available yet; put them into one Tensor"):
        m.power.fwds(xs, 1.0)
    with pytest.raises(NotImplementedError, match="entries of a list"):
        m.power.bwds(xs, 1.0, _result=empty(device, (2, 2)))


def test_backward_derivative_only(device, m):
    x = dual(device, [1, 2], [1, 1])
    with pytest.raises(spy.ResolveException, match="'cube' has a custom backward derivative only.*ForwardDerivative"):
        m.cube.fwds(x)
    other = spy.Module.load_from_source(
        device, "fwds_backward_only",
        """
        [BackwardDerivative(cube_bwd)]
        float cube(float x) { return x * x * x; }
        void cube_bwd(inout DifferentialPair<float> x, float d) { x = diffPair(x.p, 3 * x.p * x.p * d); }
        [BackwardDerivative(fifth_bwd)] [Differentiable] float fifth(float x) { return x * x * x * x * x; }
        void fifth_bwd(inout DifferentialPair<float> x, float d) { x = diffPair(x.p, 5 * x.p * x.p * x.p * x.p * d); }
        float hidden(float x) { return cube(x); } // not differentiated: its value is right
        [Differentiable] float inner(float x) { return /* never cube() */ x + cube(x); }
        [Differentiable] float outer(float x) { if (x > 0) { return inner(x); } return x; }
        [Differentiable] float fine(float x) { return fifth(x) + no_diff hidden(x); } // not cube(x)
        """,
    )  # fmt: skip
    for name in ("inner", "outer"):
        with pytest.raises(spy.ResolveException, match=rf"'cube' \(called by '{name}'\) has a custom backward"):
            other[name].fwds(x)
    y = other.fine.fwds(x)
    same(y, [2, 40])
    same(y.grad, [5, 80])


OVERLOADS = """
import slangpy;
[BackwardDerivative(cube_bwd)] float cube(float x) { return x * x * x; }
void cube_bwd(inout DifferentialPair<float> x, float d) { x = diffPair(x.p, 3 * x.p * x.p * d); }
[Differentiable] float cube(float x, float k) { return k * x * x * x; }
[Differentiable] float2 cube(float2 x) { return float2(cube(x.x), cube(x.y)); }
[Differentiable] float inner(float x) { return x + cube(x); }
[Differentiable] float by_two(float x) { return cube(x, 2.0); }
[Differentiable] float vectors(float x) { return cube(float2(x, 1)).x; }

float square(float x) { return x * x; }
float square(float x, float k) { return k * x * x; }
[BackwardDerivativeOf(square)] void square_bwd(inout DifferentialPair<float> x, float d) { x = diffPair(x.p, 2 * x.p * d); }
[BackwardDerivativeOf(square)]
void square_bwd_k(inout DifferentialPair<float> x, inout DifferentialPair<float> k, float d)
{
    x = diffPair(x.p, 2 * k.p * x.p * d);
    k = diffPair(k.p, x.p * x.p * d);
}
[ForwardDerivativeOf(square)]
DifferentialPair<float> square_fwd(DifferentialPair<float> x) { return diffPair(x.p * x.p, 2 * x.p * x.d); }
[Differentiable] float squared(float x) { return square(x, 3.0); }

[BackwardDerivative(both_bwd)] [ForwardDerivative(both_fwd)] float both(float x) { return 2 * x; }
void both_bwd(inout DifferentialPair<float> x, float d) { x = diffPair(x.p, 2 * d); }
DifferentialPair<float> both_fwd(DifferentialPair<float> x) { return diffPair(2 * x.p, 2 * x.d); }
[Differentiable] float both(float x, float k) { return k * x; }
[Differentiable] float fine(float x) { return both(x) + both(x, 3.0); }
"""


def test_overloads_of_which_one_has_a_backward_derivative_only(device):
    """Slang would take its value for zero: what calls the name is refused, and so is the overload itself."""
    m = spy.Module.load_from_source(device, "fwds_overloads", OVERLOADS)
    x = dual(device, [1, 2], [1, 1])
    for name, culprit in (("inner", "cube"), ("by_two", "cube"), ("vectors", "cube"), ("squared", "square")):
        with pytest.raises(spy.ResolveException, match=rf"'{culprit}' \(called by '{name}'\) has a custom backward deriv"):
            m[name].fwds(x)
    with pytest.raises(spy.ResolveException, match="'cube' has a custom backward derivative only"):
        m.cube.fwds(x)
    y = m.cube.fwds(x, 2.0)  # this overload calls no other
    same(y.grad, [6, 24])
    y = m.fine.fwds(x)
    same(y, [5, 10])
    same(y.grad, [5, 5])
