"""`spy.check_gradients`: right functions pass, wrong ones are found, and the cause is named."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from gradcheck import load, same, tensor

import slangpy as spy

pytestmark = [pytest.mark.needs_kernels, pytest.mark.one]
RNG = np.random.default_rng(19)

WRONG = """import slangpy;
[BackwardDerivative(cube_bwd)]
float cube(float x) { return x * x * x; }
void cube_bwd(inout DifferentialPair<float> x, float d) { x = diffPair(x.p, 2 * x.p * x.p * d); }
[Differentiable] [BackwardDerivative(square_bwd)] [ForwardDerivative(square_fwd)]
float square(float x) { return x * x; }
void square_bwd(inout DifferentialPair<float> x, float d) { x = diffPair(x.p, 2 * x.p * d); }
DifferentialPair<float> square_fwd(DifferentialPair<float> x) { return diffPair(x.p * x.p, 3 * x.p * x.d); }
[Differentiable] float uses_square(float x, float y) { return square(x) + y; }
[Differentiable] float mixed(float x, float y) { return y * y + cube(x); }
[Differentiable] float loses(float x, float y) { return x * y + detach(y); }
[Differentiable] float grow(float x, int n)
{
    float y = x;
    [MaxIters(40)] for (int i = 0; i < 3; i++)
        y = y * x;
    // [MaxIters(1)] is not code
    [MaxIters(4)]
    for (int i = 0; i < n; i++)
        y = sin(y) + y * x;
    return y;
}
[Differentiable] void twice(int i, ITensor<float, 1> x, IWTensor<float, 1> y) { y[i] = 2 * x[i] + detach(x[i]); }
[Differentiable] float jump(float x) { return x > 0.5f ? 10 * x : 0; }
[Differentiable] float constant(float x, float y) { return y; }
[Differentiable] float noisy(float x) { return 1e8f + x; }
struct Scale { float k; [Differentiable] [NoDiffThis] float of(float x) { return k * x * x; } };
[Differentiable] float texel(float x, Texture2D<float> t) { return x; }
"""


@pytest.fixture
def m(device):
    return load(device)


@cache
def wrong_module(device: spy.Device) -> spy.Module:
    return spy.Module.load_from_source(device, "wrong_gradients", WRONG)


@pytest.fixture
def wrong(device):
    return wrong_module(device)


def f32(*shape):
    return RNG.uniform(-1, 1, shape).astype(np.float32)


def passes(function, *args, **kwargs):
    """A check that passes, compares both directions, and is sure of all rows."""
    report = spy.check_gradients(function, *args, **kwargs)
    assert report
    assert report.ok
    assert not report.unsure, report
    assert all(row.fwds is not None for row in report.table), report
    assert any(abs(row.numeric) > 1e-3 for row in report.table), report
    return report


def fails(function, *args, **kwargs):
    with pytest.raises(spy.GradientError) as error:
        spy.check_gradients(function, *args, **kwargs)
    assert isinstance(error.value, AssertionError)
    report = error.value.report
    assert str(report) == str(error.value)
    assert not report
    return report


# --- right functions
def test_values(device, m):
    report = passes(m.polynomial, 2.0, 8, -1, f32(3))
    assert sorted(row.name for row in report.table) == ["a", "b", "c", "x[0]", "x[1]", "x[2]"]
    assert report.evaluations > 0
    assert max(row.error for row in report.table) < 1e-3
    passes(m.polynomial, f32(4, 1), f32(3), f32(1), tensor(device, f32(4, 3)), _result="tensor")
    passes(m.power.map((0,), (1,)), f32(2), f32(3))


@pytest.mark.parametrize(("dtype", "error"), [(np.float16, 2e-2), (np.float32, 1e-3), (np.float64, 1e-8)])
def test_precisions(m, dtype, error):
    f = {2: m.polynomial_f16, 4: m.polynomial, 8: m.polynomial_f64}[np.dtype(dtype).itemsize]
    report = passes(f, 2.0, 8.0, -1.0, RNG.uniform(-1, 1, 6).astype(dtype))
    assert report.rtol == {2: 5e-2, 4: 2e-3, 8: 1e-6}[np.dtype(dtype).itemsize]
    assert max(row.error for row in report.table) < error


def test_views(device, m):
    x = tensor(device, RNG.uniform(-1, 1, (4, 6)))
    kept = x.to_numpy()
    for view in (x[::2, 1], x[::-1].permute(1, 0), x[1:2].broadcast_to((3, 6)), x.view((4, 5), (6, 1))):
        passes(m.power, view, 0.5)
    report = passes(m.power, tensor(device, [0.5]).broadcast_to((4,)), tensor(device, [1, 2, 3, 4]))
    assert [row.numeric for row in report.table if row.argument == "x"] != []
    assert sum(row.argument == "x" for row in report.table) == 1  # one stored number
    same(x, kept)


def test_vectors_matrices_arrays(device, m):
    passes(m.scale3, tensor(device, f32(4, 3), element="float3"), spy.float1(2.0)[0])
    passes(m.dot3, spy.float3(1, 2, 3), spy.float3(4, 5, 6))
    passes(m.transform, f32(2, 3, 3), f32(2, 3))
    report = passes(m.transform, spy.float3x3(f32(3, 3)), spy.float3(1, 2, 3))
    assert "m[1, 2]" in [row.name for row in report.table]
    passes(m.weighted, [1.0, 2.0, 3.0, 4.0], f32(3))
    passes(m.pick, f32(2, 2, 3, 2), 0.5)


def test_outputs(device, m):
    x = tensor(device, [1, 2, 3])
    passes(m.grow, x, f32(3))
    same(x, [1, 2, 3])
    passes(m.split, f32(3), np.zeros(3, np.float32), tensor(device, [0, 0, 0]))
    passes(m.split, 2.0, spy.floatRef(), spy.diffPair())
    passes(m.polynomial, 2.0, 8.0, -1.0, f32(3), _result=np.zeros(3, np.float32))
    passes(m.grow, spy.diffPair(3.0, 7.0), 5.0)


def test_structs(device, m):
    passes(m.energy, {"t": f32(3), "uv": f32(3, 2)})
    passes(m.energy, spy.diffPair({"_type": "Ray", "t": 2.0, "uv": (3.0, 4.0)}))
    rays = spy.Tensor.empty(device, (3,), m.Ray)
    cursor = rays.cursor()
    for i in range(3):
        cursor[i].write({"t": i + 1.0, "uv": (2.0, 3.0 + i)})
    cursor.apply()
    report = passes(m.energy, rays[::-1])
    assert "r[0].uv[1]" in [row.name for row in report.table]
    passes(m.shift, rays, 0.5)
    passes(m.Quadratic.step, {"a": 1.5, "b": spy.diffPair(2.0)}, 3.0)
    quadratic = spy.InstanceList(m.Quadratic, {"a": f32(3), "b": 2.0})
    passes(quadratic.eval, f32(3))


@pytest.mark.nightly
def test_more_views_and_structs(device, m):
    x = tensor(device, RNG.uniform(-1, 1, (4, 6)))
    for view in (x[::-1], x.permute(1, 0), x[:, None]):
        passes(m.power, view, 0.5)
    passes(m.scale3, f32(4, 3), f32(4))
    passes(m.energy, {"_type": "Ray", "t": 2.0, "uv": spy.float2(3, 4)})
    passes(m.spread, f32(2), 0.5)
    passes(m.Quadratic.eval, {"a": f32(3), "b": 2.0}, f32(3))


def test_bundle(device, m):
    b = spy.Tensor.empty(device, (2,), m.Bundle)
    c = b.cursor()
    for i in range(2):
        ray = {"t": 0.5 + i, "uv": (1.0, 0.25)}
        c[i].write({"main": ray, "sides": [ray, ray], "weight": 0.5, "energy": 1.5, "m": [[1, 2, 3], [4, 5, 6]],
                    "tail": [0.5, 0.25], "id": 3})  # fmt: skip
    c.apply()
    report = passes(m.weigh, b, samples=64)
    names = [row.name for row in report.table]
    assert {"b[1].sides.uv[1, 0]", "b[0].energy", "b[0].m[1, 2]"} <= set(names)
    assert not any(name.endswith(".id") for name in names)


def test_tensor_parameters(device, m):
    grid = spy.grid((2,))
    passes(m.linear, grid, f32(2, 3), f32(2), tensor(device, f32(3)), tensor(device, [0, 0]))
    passes(m.gather, spy.grid((5,)), np.array([0, 1, 1, 3, 0], np.int32), f32(4))
    state = tensor(device, [1, 2, 3])
    passes(m.square_it, spy.grid((3,)), state)
    same(state, [1, 2, 3])
    passes(m.forms, grid, f32(2, 3), np.zeros((2, 3), np.float32))
    passes(m.rank0, np.array(2, np.float32), np.zeros((), np.float32))
    passes(m.of_any, spy.grid((2, 2)), RNG.standard_normal((2, 2)))
    passes(m.Model.row, {"_type": "Model", "w": tensor(device, f32(2, 2)), "bias": 3.0}, spy.grid((2,)))


@pytest.mark.nightly
def test_more_tensor_parameters(device, m):
    """Forms whose kinds of parameters the test above has in others."""
    passes(m.sq, spy.grid((4,)), f32(4))
    passes(m.triple, spy.grid((3,)), tensor(device, f32(3)), tensor(device, [0, 0, 0]))
    passes(m.total, f32(2, 3))


def test_large_inputs_are_sampled(device, m):
    report = passes(m.power, f32(100, 7), f32(7), samples=5)
    names = [row.name for row in report.table]
    assert len(names) == 2 * (5 + 1)
    assert "x along a random direction" in names
    other = spy.check_gradients(m.power, f32(100, 7), f32(7), samples=5, seed=1)
    assert {row.name for row in other.table} != set(names)


def test_fixed_step(m):
    loose = spy.check_gradients(m.cube, 0.5, eps=0.2, rtol=1e-3, raise_on_error=False)
    assert loose.table[0].numeric == pytest.approx(((0.7**3) - (0.3**3)) / 0.4 * np.sign(loose.table[0].numeric), rel=1)
    exact = spy.check_gradients(m.polynomial, 2.0, 8.0, -1.0, f32(3), eps=1e-2)
    assert exact.ok
    assert exact.evaluations == 2 * 6


def test_attached_gradients_are_left_alone(device, m):
    x = tensor(device, [1, 2, 3]).with_grads()
    x.grad.copy_from_numpy(np.array([5, 6, 7], np.float32))
    y = tensor(device, [9, 9, 9]).with_grads()
    p = spy.diffPair(2.0, 4.0)
    passes(m.polynomial, p, 8.0, -1.0, x, _result=y)
    same(x.grad, [5, 6, 7])
    same(y, [9, 9, 9])
    same(y.grad, [0, 0, 0])
    assert (p.primal, p.grad) == (2.0, 4.0)


def test_torch(m):
    torch = pytest.importorskip("torch")
    if m.device.info.type is spy.DeviceType.cuda:
        pytest.skip("CPU tensors")
    x = torch.linspace(-1, 1, 5, requires_grad=True)
    passes(m.polynomial, 2.0, 8.0, -1.0, x)
    passes(m.polynomial_f64, 2.0, 8.0, -1.0, torch.linspace(-1, 1, 3, dtype=torch.float64))
    passes(m.grow, torch.ones(3), torch.tensor([1.0, 2.0, 3.0]))
    passes(m.power, torch.rand(3, 4).t(), torch.rand(3))
    assert x.grad is None


# --- wrong functions
def test_wrong_backward_derivative_is_named(wrong):
    report = fails(wrong.mixed, f32(3) + 2, 0.5)
    assert {row.argument for row in report.wrong} == {"x"}
    assert {row.wrong for row in report.wrong} == {("bwds",)}
    row = report.wrong[0]
    assert row.bwds == pytest.approx(row.numeric * 2 / 3, rel=1e-3)
    assert row.error == pytest.approx(1 / 3, rel=1e-2)
    text = str(report)
    assert "line 2: the custom backward derivative 'cube_bwd' is wrong; without it, bwds is right" in text
    assert "fwds was not checked" in text
    assert text.index("x[") < text.index("\ny ")  # the worst first
    assert "wrong bwds" in text


def test_wrong_forward_derivative_is_named(wrong):
    x, y = f32(3) + 2, f32(3)
    report = fails(wrong.uses_square, x, y)
    again = spy.check_gradients(wrong.uses_square, x, y, raise_on_error=False)
    assert not again.ok
    assert str(again) == str(report)
    assert {row.wrong for row in report.wrong} == {("fwds",)}
    assert {row.argument for row in report.wrong} == {"x"}
    assert report.notes == ["line 5: the custom forward derivative 'square_fwd' is wrong; without it, fwds is right"]


def test_lost_derivatives(wrong):
    report = fails(wrong.loses, f32(3), f32(3))
    assert {row.argument for row in report.wrong} == {"y"}
    assert {row.wrong for row in report.wrong} == {("bwds", "fwds")}
    report = fails(wrong.twice, spy.grid((3,)), f32(3), np.zeros(3, np.float32))
    assert len(report.wrong) == 3


def test_loop_beyond_max_iters(wrong):
    passes(wrong.grow, f32(3) * 0.5, 4)
    if wrong.device.info.type is not spy.DeviceType.cpu:
        return  # what a GPU finds past its array of states may be right
    report = fails(wrong.grow, np.array([0.1, 0.3, 0.5, 0.9, 1.1, 1.3, -0.7, -1.2], np.float32), 7)
    assert all("bwds" in row.wrong for row in report.wrong)
    assert "bwds failed" in report.notes[0]
    assert report.notes[-1:] == [
        "line 18: the loop takes more trips than [MaxIters(4)] says; with [MaxIters(68)] bwds is right"
    ]


def test_files_are_named_by_line(device, tmp_path):
    (tmp_path / "check_helper.slang").write_text("[Differentiable] float helper(float x) { return x * x; }")
    path = tmp_path / "check_file.slang"
    path.write_text(
        "import check_helper;\n// cube\n[BackwardDerivative(bad)] float cube(float x) { return x * x * x; }\n"
        "void bad(inout DifferentialPair<float> x, float d) { x = diffPair(x.p, d); }\n"
        "[Differentiable] float f(float x) { return helper(x) * cube(x); }\n"
    )
    report = fails(spy.Module.load_from_file(device, path).f, f32(3) + 2)
    assert any(note.startswith("line 3: the custom backward derivative 'bad' is wrong") for note in report.notes)


# --- what cannot be told
def test_a_jump_is_stepped_around(wrong):
    report = spy.check_gradients(wrong.jump, np.array([0.3, 0.7, 0.501], np.float32))
    assert report.ok
    assert [abs(row.numeric) > 1 for row in sorted(report.table, key=lambda row: row.name)] == [False, True, True]


def test_noise_is_not_an_error(wrong):
    report = spy.check_gradients(wrong.noisy, 0.5)
    assert report.ok
    assert [row.state for row in report.table] == ["unsure"]
    assert "1 unsure" in str(report)
    assert "too rough to check anything" in str(report)


def test_constants_are_mentioned(wrong):
    report = spy.check_gradients(wrong.constant, 1.0, 2.0)
    assert report.ok
    assert "nothing depends on x" in report.notes


def test_errors(device, m, wrong):
    with pytest.raises(ValueError, match="check_gradients: gradients::plain is not differentiable"):
        spy.check_gradients(m.plain, 1.0)
    with pytest.raises(ValueError, match=r"pass the function itself, not gradients::power\.bwds"):
        spy.check_gradients(m.power.bwds, 1.0, 1.0)
    with pytest.raises(ValueError, match="samples must be at least 1, got 0"):
        spy.check_gradients(m.power, 1.0, 1.0, samples=0)
    with pytest.raises(spy.ShapeError, match="Shape mismatch"):
        spy.check_gradients(m.power, f32(3), f32(4))
    only = spy.Module.load_from_source(
        device,
        "nothing_to_check",
        "[Differentiable] int f(float x) { return 1; } [Differentiable] float g(int n) { return n; }",
    )
    with pytest.raises(ValueError, match="f has no differentiable output"):
        spy.check_gradients(only.f, 1.0)
    with pytest.raises(ValueError, match="g has no differentiable input"):
        spy.check_gradients(only.g, 1)
