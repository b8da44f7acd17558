"""Backward calls with structs: tensors of them, dicts of fields, methods, and atomic addition of every element type."""

from __future__ import annotations

import numpy as np
import pytest
from gradcheck import check, load, same, seeded, tensor, with_grad

import slangpy as spy

pytestmark = [pytest.mark.needs_kernels, pytest.mark.one]
RNG = np.random.default_rng(7)


@pytest.fixture
def m(device):
    return load(device)


def rays(device, m, values):
    t = spy.Tensor.empty(device, (len(values),), m.Ray)
    c = t.cursor()
    for i, (time, uv) in enumerate(values):
        c[i].write({"t": time, "uv": uv})
    c.apply()
    return t.with_grads()


def read(t):
    c = t.cursor()
    return [c[i].read() for i in range(len(t))]


def ray_grads(t):
    return [[r["t"], *r["uv"]] for r in read(t.grad)]


# --- tensors of structs
def test_rays(device, m):
    r = rays(device, m, [(1, (2, 3)), (2, (2, 3))])
    e = m.energy(r, _result="tensor").with_grads()
    same(e, [7, 10])
    e.grad.copy_from_numpy(np.ones(2, np.float32))
    m.energy.bwds(r, _result=e)
    assert ray_grads(r) == [[2, 3, 2], [4, 3, 2]]
    m.energy.bwds(r, _result=e)
    assert ray_grads(r) == [[4, 6, 4], [8, 6, 4]]


def test_broadcast_struct(device, m):
    r = rays(device, m, [(1, (2, 3))])
    m.energy.bwds(r, _result=seeded(device, [1] * 300))
    assert ray_grads(r) == [[600, 900, 600]]


def test_struct_views(device, m):
    r = rays(device, m, [(1, (2, 3)), (2, (4, 5)), (3, (6, 7))])
    m.energy.bwds(r[::-2], _result=seeded(device, [1, 10]))
    assert ray_grads(r) == [[20, 30, 20], [0, 0, 0], [6, 7, 6]]


def test_struct_result(device, m):
    a, b = with_grad(device, [2, 3]), with_grad(device, [5, 7])
    out = m.spread(a, b).with_grads()
    c = out.grad.cursor()
    c[0].write({"t": 1, "uv": (10, 100)})
    c[1].write({"t": 2, "uv": (0, 1)})
    c.apply()
    m.spread.bwds(a, b, _result=out)
    same(a.grad, [5 + 40, 14])
    same(b.grad, [2 + 300, 6 + 3])


def test_struct_inout(device, m):
    r = rays(device, m, [(2, (3, 4))]).detach()
    r = r.with_grads(
        grad_in=rays(device, m, [(1, (10, 100))]).detach(), grad_out=rays(device, m, [(0, (0, 0))]).detach()
    )
    by = with_grad(device, [5])
    m.shift.bwds(r, by)
    # t' = t by, uv' = uv t': dt = (1 + 10 * 3 + 100 * 4) by, d uv = (10, 100) t by, d by = (1 + 430) t
    assert [[x["t"], *x["uv"]] for x in read(r.grad_out)] == [[431 * 5, 100, 1000]]
    same(by.grad, [862])


BUNDLE = {
    "main": {"t": 2.0, "uv": (3.0, 4.0)}, "sides": [{"t": 5.0, "uv": (6.0, 7.0)}, {"t": 8.0, "uv": (9.0, 10.0)}],
    "weight": 0.5, "energy": 1.5, "m": [[1, 2, 3], [4, 5, 6]], "tail": [7.0, 8.0], "id": 9,
}  # fmt: skip


def bundles(device, m, count):
    t = spy.Tensor.empty(device, (count,), m.Bundle)
    c = t.cursor()
    for i in range(count):
        c[i].write(BUNDLE)
    c.apply()
    return t.with_grads()


def check_bundle(grad, scale):
    assert grad["main"]["t"] == 4 * scale
    assert list(grad["main"]["uv"]) == [0, 0.5 * scale]
    assert grad["sides"][0]["t"] == 9 * scale
    assert list(grad["sides"][1]["uv"]) == [5 * scale, 0]
    assert grad["weight"] == 4 * scale
    assert grad["energy"] == 3 * scale
    assert np.array(grad["m"]).tolist() == [[6 * scale, 0, 0], [0, 0, scale]]
    assert list(grad["tail"]) == [0, 3 * scale]
    assert "id" not in grad


@pytest.mark.parametrize("kind", ["owned", "broadcast", "gathered"])
def test_bundle(device, m, kind):
    seed = seeded(device, [1, 2, 4])
    if kind == "owned":
        b = bundles(device, m, 3)
        m.weigh.bwds(b, _result=seed)
        for grad, scale in zip(read(b.grad), (1, 2, 4), strict=True):
            check_bundle(grad, scale)
    elif kind == "broadcast":
        b = bundles(device, m, 1)
        m.weigh.bwds(b, _result=seed)
        check_bundle(read(b.grad)[0], 7)
    else:
        b = bundles(device, m, 3)
        m.of_bundle.bwds(spy.grid((3,)), b, _result=seed)
        for grad, scale in zip(read(b.grad), (1, 2, 4), strict=True):
            check_bundle(grad, scale)


def test_atomic_tensor_of_structs_and_arrays(device, m):
    b, a = bundles(device, m, 1).grad, tensor(device, [[0, 0, 0]], element="float[3]")
    b = spy.Tensor.zeros(device, (1,), m.Bundle)
    m.scatter(spy.grid((100,)), b, a)
    got = read(b)[0]
    assert got["main"]["t"] == 100
    assert list(got["sides"][1]["uv"]) == [0, 200]
    assert got["weight"] == 50
    assert got["energy"] == 25
    assert np.array(got["m"])[1, 2] == 300
    assert list(got["tail"]) == [400, 0]
    assert got["id"] == 500
    same(a, [[100, 200, 300]])


def test_own_atomic_add_wins(device, m):
    t = spy.Tensor.zeros(device, (3,), m.Counted).with_grads()
    m.of_counted.bwds(spy.grid((3,)), t, _result=seeded(device, [1, 10, 100]))
    assert [c["sum"] for c in read(t.grad)] == [102, 120, 300]


# --- dicts
def test_dict_of_fields(device, m):
    t, uv = with_grad(device, [1, 2]), with_grad(device, [[2, 3], [2, 3]])
    m.energy.bwds({"t": t, "uv": uv}, _result=seeded(device, [1, 1]))
    same(t.grad, [2, 4])
    same(uv.grad, [[3, 2], [3, 2]])


def test_dict_fields_are_independent(device, m):
    t = with_grad(device, [1, 2])
    m.energy.bwds({"t": t, "uv": spy.float2(2, 3)}, _result=seeded(device, [1, 10]))
    same(t.grad, [2, 40])
    pair = spy.diffPair(spy.float2(2, 3))
    m.energy.bwds({"_type": "Ray", "t": t, "uv": pair}, _result=seeded(device, [1, 10]))
    same(list(pair.grad), [33, 22])
    same(t.grad, [4, 80])


def test_dict_with_nested_fields(device, m):
    side = with_grad(device, [8.0, 9.0])
    b = {"main": {"t": with_grad(device, [1, 2]), "uv": tensor(device, [[3, 4], [5, 6]])}, "weight": side}
    with pytest.raises(spy.ResolveException):
        m.weigh.bwds(b, _result=seeded(device, [1, 1]))  # a float tensor is no half
    b["weight"] = with_grad(device, [8.0, 9.0], "half")
    m.weigh.bwds(b, _result=seeded(device, [1, 1]))
    same(b["main"]["t"].grad, [2, 4])
    same(b["weight"].grad, [4, 6])


def test_dict_result(device, m):
    a, b = with_grad(device, [2, 3]), with_grad(device, [5, 7])
    m.spread.bwds(a, b, _result={"t": seeded(device, [1, 2])})
    same(a.grad, [5, 14])
    same(b.grad, [2, 6])
    m.spread.bwds(a, b, _result={"t": seeded(device, [1, 2]), "uv": seeded(device, [[10, 100], [0, 1]])})
    same(a.grad, [5 + 45, 28])


def test_diff_pair_of_a_dict(device, m):
    r = spy.diffPair({"_type": "Ray", "t": 2.0, "uv": spy.float2(3, 4)})
    m.energy.bwds(r, _result=seeded(device, [1, 10]))
    assert r.grad["t"] == 44
    assert list(r.grad["uv"]) == [44, 33]
    out = spy.diffPair({"_type": "Ray"}, {"_type": "Ray", "t": 1.0, "uv": spy.float2(10, 100)})
    a = spy.diffPair(2.0)
    m.spread.bwds(a, 5.0, _result=out)
    assert a.grad == 5 + 40


# --- methods
def test_method(device, m):
    q = {"a": spy.diffPair(2.0), "b": with_grad(device, [3, 3])}
    x = with_grad(device, [1, 2])
    m.Quadratic.eval.bwds(q, x, _result=seeded(device, [1, 10]))
    assert q["a"].grad == 41
    same(q["b"].grad, [1, 20])
    same(x.grad, [7, 110])
    q = spy.diffPair({"_type": "Quadratic", "a": 2.0, "b": 3.0})
    m.Quadratic.eval.bwds(_this=q, x=x.detach(), _result=seeded(device, [1, 10]))
    assert q.grad["a"] == 41
    assert q.grad["b"] == 21


def test_method_of_a_plain_struct(device, m):
    x = with_grad(device, [1, 2])
    m.Fixed.eval.bwds({"k": 3.0}, x, _result=seeded(device, [1, 1]))
    same(x.grad, [6, 12])


def test_mutating_method(device, m):
    def both(values, grad_in):
        return tensor(device, values).with_grads(grad_in=tensor(device, grad_in), grad_out=tensor(device, [0, 0]))

    q = {"a": both([2, 3], [1, 10]), "b": both([5, 7], [100, 1000])}
    by = with_grad(device, [4, 6])
    m.Quadratic.step.bwds(q, by)
    # a' = a by, b' = b + a': da = (ga + gb) by, db = gb, d by = (ga + gb) a
    same(q["a"].grad_out, [101 * 4, 1010 * 6])
    same(q["b"].grad_out, [100, 1000])
    same(by.grad, [202, 3030])
    same(q["a"], [2, 3])


def test_static_method(device, m):
    x = with_grad(device, [1, 2])
    m.Quadratic.twice.bwds(x, _result=seeded(device, [1, 1]))
    same(x.grad, [4, 8])


def test_struct_with_a_tensor_field(device, m):
    w, bias = with_grad(device, [[1, 2], [3, 4]]), spy.diffPair(5.0)
    m.Model.row.bwds({"w": w, "bias": bias}, spy.grid((2,)), _result=seeded(device, [1, 10]))
    same(w.grad, [[2, 1], [40, 30]])
    assert bias.grad == 110
    check(bias.grad, 110.0)
