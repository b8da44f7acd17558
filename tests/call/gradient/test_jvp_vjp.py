"""`spy.jvp` and `spy.vjp`: arrays in, arrays out, against torch.func and closed forms."""

from __future__ import annotations

import numpy as np
import pytest
from gradcheck import check, load, same, tensor

import slangpy as spy

pytestmark = [pytest.mark.needs_kernels, pytest.mark.one]
RNG = np.random.default_rng(17)
ONES = np.ones(4, np.float32)


@pytest.fixture
def m(device):
    return load(device)


def f32(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def test_numpy(m):
    x = np.arange(4, dtype=np.float32)
    y, d = spy.jvp(m.polynomial, (2, 8, -1, x), (1.0, None, None, ONES))
    assert isinstance(y, np.ndarray)
    same(y, [-1, 9, 23, 41])
    same(d, [8, 13, 20, 29])
    y, (da, db, dc, dx) = spy.vjp(m.polynomial, (2.0, 8.0, -1.0, x), ONES)
    same(y, [-1, 9, 23, 41])
    assert (da, db, dc) == (14.0, 6.0, 4.0)
    same(dx, [8, 12, 16, 20])
    same(x, [0, 1, 2, 3])


def test_numbers_and_vectors(m):
    assert spy.jvp(m.polynomial, (2.0, 8.0, -1.0, 3.0), (1, 0, None, 1)) == (41.0, 29.0)
    y, grads = spy.vjp(m.polynomial, (2.0, 8.0, -1.0, 3.0), 1.0)
    assert (y, grads) == (41.0, (9.0, 3.0, 1.0, 20.0))
    y, d = spy.jvp(m.dot3, (spy.float3(1, 2, 3), spy.float3(4, 5, 6)), (spy.float3(1, 0, 0), None))
    assert (y, d) == (32.0, 4.0)
    _, (a, b) = spy.vjp(m.dot3, (spy.float3(1, 2, 3), spy.float3(4, 5, 6)), 2.0)
    assert list(a) == [8, 10, 12]
    assert list(b) == [2, 4, 6]


def test_tensors_stay_on_the_device(device, m):
    x = tensor(device, [0, 1, 2, 3])
    y, d = spy.jvp(m.polynomial, (2, 8, -1, x), (None, None, None, tensor(device, ONES)))
    assert isinstance(y, spy.Tensor)
    assert isinstance(d, spy.Tensor)
    same(d, [8, 12, 16, 20])
    y, grads = spy.vjp(m.polynomial, (2, 8, -1, x), tensor(device, 2 * ONES))
    assert isinstance(grads[3], spy.Tensor)
    same(grads[3], [16, 24, 32, 40])
    with pytest.raises(RuntimeError, match="no grad"):
        _ = x.grad


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_types_and_views(m, dtype):
    f = {2: m.polynomial_f16, 4: m.polynomial, 8: m.polynomial_f64}[np.dtype(dtype).itemsize]
    whole, tangent = RNG.uniform(-1, 1, (2, 6, 8)).astype(dtype)
    x, d, a = whole[::-2, 1::3], tangent[::-2, 1::3], RNG.uniform(-1, 1, (3, 1)).astype(dtype)
    y, dy = spy.jvp(f, (a, 8, -1, x), (None, None, None, d))
    v, dv, w = (t.astype(np.float64) for t in (x, d, a))
    tolerance = {2: 3e-3, 4: 1e-6, 8: 1e-14}[np.dtype(dtype).itemsize]
    assert y.dtype == dy.dtype == dtype
    check(dy, (2 * w * v + 8) * dv, tolerance)
    _, (da, _, _, dx) = spy.vjp(f, (a, 8, -1, x), d)
    assert da.dtype == dx.dtype == dtype
    check(dx, (2 * w * v + 8) * dv, tolerance)
    check(da, np.sum(v * v * dv, axis=1, keepdims=True), tolerance * 3)


def test_outputs_in_parameters(m):
    x, y = f32(5), f32(5)
    kept = x.copy()
    value, d = spy.jvp(m.grow, (x, y), (np.ones(5), None))
    same(x, kept)
    check(value, x * y)
    check(d, y)
    value, (dx, dy) = spy.vjp(m.grow, (x, y), 2 * np.ones(5))
    check(value, x * y)
    check(dx, 2 * y)
    check(dy, 2 * x)
    same(x, kept)
    out = np.zeros(5, np.float32)
    (square, cube), (dsquare, dcube) = spy.jvp(m.split, (x, out, out), (np.ones(5), None, None))
    check(square, x * x)
    check(cube, x**3)
    check(dsquare, 2 * x)
    check(dcube, 3 * x * x)
    _, (dx, _, _) = spy.vjp(m.split, (x, out, out), (None, np.ones(5)))
    check(dx, 3 * x * x)


def test_tensor_parameters(device, m):
    w, b, x, out = f32(2, 3), f32(2), f32(3), np.zeros(2, np.float32)
    arguments = (spy.grid((2,)), w, b, x, out)
    y, d = spy.jvp(m.linear, arguments, (None, None, None, np.array([1, 0, 2]), None))
    check(y, w @ x + b)
    check(d, w @ [1, 0, 2])
    y, (grid, dw, db, dx, _) = spy.vjp(m.linear, arguments, np.array([1, 10]))
    assert grid is None
    check(dw, np.outer([1, 10], x))
    check(db, [1, 10])
    check(dx, w.T @ [1, 10])
    y, d = spy.jvp(m.sq, (spy.grid((3,)),), (None,), x=tensor(device, x).with_grads(grad_in=tensor(device, [1, 1, 1])))
    check(d, 2 * x)


def test_structs(m):
    t, uv = f32(4), f32(4, 2)
    y, d = spy.jvp(m.energy, ({"t": t, "uv": uv},), ({"t": np.ones(4)},))
    check(y, t * t + uv[:, 0] * uv[:, 1])
    check(d, 2 * t)
    _, (grads,) = spy.vjp(m.energy, ({"_type": "Ray", "t": t, "uv": spy.float2(3, 4)},), ONES)
    check(grads["t"], 2 * t)
    assert list(grads["uv"]) == [16, 12]
    y, d = spy.jvp(m.spread, (np.array([2, 3], np.float32), 5.0), (np.array([1, 0]), None))
    assert d["t"].tolist() == [5, 0]


def test_cotangents_of_structs_are_dicts(m):
    """As the tangents that jvp gives of them; fields that are left out are zero."""
    a, b = np.array([2, 3], np.float32), np.array([5, 7], np.float32)
    y, pull = spy.vjp(m.spread, (a, b), {"t": np.array([1, 10]), "uv": np.ones((2, 2))})
    _, tangent = spy.jvp(m.spread, (a, b), (np.ones(2), None))
    check(pull[0], tangent["t"] * [1, 10] + tangent["uv"].sum(1))
    _, only = spy.vjp(m.spread, (a, b), {"uv": np.ones((2, 2))})
    check(only[0], tangent["uv"].sum(1))
    one, (da, db) = spy.vjp(m.spread, (2.0, 5.0), {"_type": "Ray", "t": 1.0, "uv": spy.float2(1, 1)})
    check([da, db, one["t"]], [tangent["t"][0] + tangent["uv"][0].sum(), spy.vjp(m.spread, (a, b), {
        "t": np.array([1, 0]), "uv": np.array([[1, 1], [0, 0]])})[1][1][0], y["t"][0]])  # fmt: skip
    with pytest.raises(ValueError, match="vjp: the result has no field 'w'; its fields are t, uv"):
        spy.vjp(m.spread, (a, b), {"w": a})
    with pytest.raises(ValueError, match=r"the result\['t'\] has shape \[2\], its cotangent \[3\]"):
        spy.vjp(m.spread, (a, b), {"t": np.zeros(3)})
    with pytest.raises(TypeError, match=r"the result is a struct; its cotangent must be a dict .*'t', 'uv'.*got float"):
        spy.vjp(m.spread, (2.0, 5.0), 1.0)


def test_numbers_that_are_written(m):
    """A number in the place of an output gets the function's value, and a gradient of zero: nothing read it."""
    outputs, gradients = spy.vjp(m.split, (2.0, 0.5, 0.25), (1.0, 10.0))
    assert outputs == (4.0, 8.0) and gradients == (4 + 10 * 12, 0, 0)
    assert spy.vjp(m.grow, (2.0, 3.0), 1.0) == (6.0, (3.0, 2.0))
    for transform, other in ((spy.vjp, [1.0, 1.0]), (spy.jvp, (None, None, None))):
        for place in ([1.0, 2.0], spy.pack(m, 1.0)):
            with pytest.raises(TypeError, match=r"split writes primal 1, and a (list|PackedArg) cannot be written"):
                transform(m.split, (np.ones(2, np.float32), place, np.zeros(2, np.float32)), other)


@pytest.mark.parametrize("wrong", [{"x": 1.0}, "a", object(), [None]])
def test_cotangents_that_are_no_numbers(m, wrong):
    with pytest.raises(TypeError, match=r"vjp: the result is float32 of shape \[\]; its cotangent must be a number"):
        spy.vjp(m.power, (3.0, 1.0), wrong)


def test_torch_cotangents_that_are_no_numbers(m):
    torch = pytest.importorskip("torch")
    if m.device.info.type is spy.DeviceType.cuda:
        pytest.skip("CPU tensors")
    with pytest.raises(TypeError, match=r"a dict cannot be the tangent or cotangent of a torch tensor of torch.float32"):
        spy.vjp(m.power, (torch.ones(3), 1.0), {"x": 1.0})


def test_torch(m):
    torch = pytest.importorskip("torch")
    if m.device.info.type is spy.DeviceType.cuda:
        pytest.skip("CPU tensors")
    generator = torch.Generator().manual_seed(1)
    a, x, da, dx, seed = torch.randn(5, 6, generator=generator).unbind()
    f = lambda a, x: a * x * x + 8 * x - 1  # noqa: E731
    expected = torch.func.jvp(f, (a, x), (da, dx))
    got = spy.jvp(m.polynomial, (a, 8, -1, x), (da, None, None, dx))
    torch.testing.assert_close(got, expected)
    value, pull = torch.func.vjp(f, a, x)
    got_value, grads = spy.vjp(m.polynomial, (a, 8, -1, x), seed)
    torch.testing.assert_close(got_value, value)
    torch.testing.assert_close((grads[0], grads[3]), pull(seed))


def test_matrices_against_torch(m):
    torch = pytest.importorskip("torch")
    a, v, da, dv, seed = f32(4, 3, 3), f32(4, 3), f32(4, 3, 3), f32(4, 3), f32(4, 3)
    y, d = spy.jvp(m.transform, (a, v), (da, dv))
    f = lambda a, v: torch.einsum("nrc,nc->nr", a, v)  # noqa: E731
    ty, td = torch.func.jvp(f, (torch.tensor(a), torch.tensor(v)), (torch.tensor(da), torch.tensor(dv)))
    check(y, ty.numpy())
    check(d, td.numpy())
    _, pull = torch.func.vjp(f, torch.tensor(a), torch.tensor(v))
    _, (ga, gv) = spy.vjp(m.transform, (a, v), seed)
    for got, want in zip((ga, gv), pull(torch.tensor(seed)), strict=True):
        check(got, want.numpy())


def test_errors(device, m):
    x = np.zeros(4, np.float32)
    with pytest.raises(ValueError, match="2 primals need as many tangents, got 1"):
        spy.jvp(m.power, (x, 1.0), (x,))
    with pytest.raises(ValueError, match=r"jvp: primal 0 has shape \[4\], its tangent \[3\]"):
        spy.jvp(m.power, (x, 1.0), (np.zeros(3), None))
    with pytest.raises(TypeError, match="primal 0 is a GridArg|primal 0 is a .*no derivative"):
        spy.jvp(m.sq, (spy.grid((4,)), x), (x, None))
    with pytest.raises(TypeError, match="primals must be a list or tuple of arguments, got ndarray"):
        spy.vjp(m.power, x, x)
    with pytest.raises(ValueError, match="has 2 outputs, got 1 cotangents"):
        spy.vjp(m.split, (x, x, x), [x])
    with pytest.raises(ValueError, match="leave _result out"):
        spy.jvp(m.power, (x, 1.0), (x, None), _result="numpy")
    with pytest.raises(ValueError, match=r"primal 0 has no field 'w'; its fields are t, uv"):
        spy.jvp(m.energy, ({"t": x, "uv": spy.float2(1)},), ({"w": x},))
    with pytest.raises(spy.ResolveException, match="Function is not differentiable"):
        spy.jvp(m.plain, (x,), (x,))
    with pytest.raises(ValueError, match="jvp: pass the function itself"):
        spy.jvp(m.power.bwds, (x, 1.0), (x, None))
