"""What backward calls refuse, and what they say."""

from __future__ import annotations

import numpy as np
import pytest
from calls_support import source
from gradcheck import load, same, seeded, tensor, with_grad

import slangpy as spy

pytestmark = [pytest.mark.needs_kernels, pytest.mark.one]


@pytest.fixture
def m(device):
    return load(device)


def test_not_differentiable(device, m):
    with pytest.raises(
        spy.ResolveException, match="Could not call function 'plain': Function is not differentiable"
    ) as error:
        m.plain.bwds(with_grad(device, [1, 2]), _result=seeded(device, [1, 1]))
    assert "gradients::plain" in str(error.value)


def test_result_is_needed(device, m):
    x = with_grad(device, [1, 2])
    for arguments in ((x, 1.0), (x, 1.0, None)):
        with pytest.raises(spy.ResolveException, match=r"(?s)_result.*gradient|gradient.*_result"):
            m.power.bwds(*arguments[:2], _result=None)
    with pytest.raises(spy.ResolveException, match=r"_result has no gradient.*Tensor<float>.*with_grads"):
        m.power.bwds(x, 1.0, _result=tensor(device, [1, 2]))
    with pytest.raises(spy.ResolveException, match=r"_result"):
        m.power.bwds(x, 1.0, _result=np.zeros(2, np.float32))


def test_loop_beyond_max_iters(device, m):
    """Slang keeps too few states. On the CPU that is noticed, and no memory is overrun."""
    x = with_grad(device, [1.1, 1.2])
    m.iterate.bwds(x, 8, _result=seeded(device, [1, 1]))
    np.testing.assert_allclose(x.grad.to_numpy(), 9 * np.array([1.1, 1.2]) ** 8, rtol=1e-5)
    if device.info.type is not spy.DeviceType.cpu:
        return
    for trips in (12, 100000):
        with pytest.raises(RuntimeError, match=r"gradients::iterate\.bwds: a backward derivative indexed.*\[MaxIters\(n\)\]"):
            m.iterate.bwds(x, trips, _result=seeded(device, [1, 1]))
    x.grad.clear()
    m.iterate.bwds(x, 1, _result=seeded(device, [1, 1]))  # the kernel is none the worse
    np.testing.assert_allclose(x.grad.to_numpy(), [2.2, 2.4], rtol=1e-5)


def test_backward_of_backward(m):
    with pytest.raises(ValueError, match="bwds"):
        _ = m.power.bwds.bwds


def test_gradient_checks(device, m):
    x = tensor(device, [1, 2])
    with pytest.raises(ValueError, match="Invalid element type of output gradient for tensor of type float"):
        x.with_grads(grad_out=tensor(device, [1, 2], "int"))
    with pytest.raises(ValueError, match=r"\[3\]"):
        x.with_grads(grad_in=tensor(device, [1, 2, 3]))
    with pytest.raises(RuntimeError, match="No derivative type found for int"):
        tensor(device, [1, 2], "int").with_grads()


def test_no_storage_warns_once_per_key(device, m):
    f = m.power.map((0,), (0,)).bwds
    result = seeded(device, [1, 1])
    with pytest.warns(RuntimeWarning, match="storage"):
        f(tensor(device, [1, 2]), tensor(device, [1, 2]), _result=result)


def test_values_without_storage_are_constants(device, m):
    x = with_grad(device, [1, 2])
    m.polynomial.bwds(np.array([1, 2], np.float32), [1.0, 2.0], spy.floatRef(3.0), x, _result=seeded(device, [1, 1]))
    same(x.grad, [3, 10])


def test_shapes_that_clash(device, m):
    with pytest.raises(spy.ShapeError, match="Shape mismatch"):
        m.power.bwds(with_grad(device, [1, 2, 3]), 1.0, _result=seeded(device, [1, 1]))
    x = with_grad(device, [1, 2])
    m.power.bwds(x, 1.0, _result=seeded(device, [1, 1]))
    same(x.grad, [2, 4])


LOOP = """
import slangpy;
[Differentiable] float total(ITensor<float, 1> x)
{
    float s = 0;
    for (uint i = 0; i < x.shape[0]; i++)
        s = s * 0.5 + x[i];
    return s;
}
"""


def test_loop_without_a_bound(device):
    with pytest.raises(spy.SlangCompileError, match=r"(?s)30510.*\[MaxIters\(n\)\].*\[ForceUnroll\]"):
        module = spy.Module.load_from_source(device, "endless", LOOP)
        module.total.bwds(with_grad(device, [1, 2]), _result=spy.diffPair(0.0, 1.0))


def test_unsupported_atomic_element(device):
    source = "import slangpy;\nvoid f(int i, AtomicTensor<int8_t, 1> x) { x.add(0, int8_t(i)); }\n"
    module = spy.Module.load_from_source(device, "small_atomics", source)
    x = spy.Tensor.zeros(device, (1,), "int8_t")
    with pytest.raises(ValueError, match="int8_t cannot be added atomically"):
        module.f(spy.grid((3,)), x)


NO_DIFF = """
#define AROUND(k, x) float3(k, x, k)
#define SET(v, k) v.x = k
[Differentiable] float fails(float x, no_diff float k) { float3 v = AROUND(k, x); return dot(v, v * x); }
[Differentiable] float sets(float x, no_diff float k) { float3 v = x; SET(v, k); return dot(v, v * x); }
[Differentiable] float remainder(float x) { return x % 0.3f; }
[Differentiable] float works(float x, no_diff float k)
{
    float3 v = float3(detach(k), x, detach(k));
    return dot(v, v * x);
}
"""


def test_internal_errors_say_the_way_round(device):
    """Slang 2026.12 cannot make the derivative where no_diff values are components of vectors; macros stay as they are."""
    module = spy.Module.load_from_source(device, "no_diff_parts", NO_DIFF)
    pair = spy.diffPair(0.7)
    module.fails.bwds(pair, 0.3, _result=spy.diffPair(0.0, 1.0))
    assert pair.grad == pytest.approx(2 * 0.3**2 + 3 * 0.7**2, rel=1e-5)
    assert module.works.fwds(spy.diffPair(0.7, 1.0), 0.3).grad == pytest.approx(pair.grad, rel=1e-5)
    with pytest.raises(
        ValueError, match=r"(?s)no_diff_parts::fails: Slang failed inside.*detach\(value\).*compiler-faults\.md"
    ):
        module.fails.fwds(spy.diffPair(0.7, 1.0), 0.3)
    with pytest.raises(ValueError, match=r"(?s)no_diff_parts::sets: Slang failed inside.*detach\(value\).*diffValueType"):
        module.sets.bwds(spy.diffPair(0.7), 0.3, _result=spy.diffPair(0.0, 1.0))
    assert module.remainder(0.7) == pytest.approx(0.1, abs=1e-6)
    with pytest.raises(ValueError, match=r"(?s)no_diff_parts::remainder: Slang failed inside.*write fmod\(a, b\)"):
        module.remainder.bwds(spy.diffPair(0.7), _result=spy.diffPair(0.0, 1.0))


def test_plans_from_disk_warn_too(device, m):
    """What a second process finds on disk: another module of the same code on a device of its own."""
    del m
    for _ in range(2):
        module = source(device, "warned", SEEDLESS)
        x = with_grad(device, [1, 2])
        with pytest.warns(RuntimeWarning) as caught:
            module.mixed.bwds(x, 1, _result=1.0)
        texts = [str(w.message) for w in caught]
        assert any("_result has no gradient" in text for text in texts)
        assert any("loses the share of one" in text for text in texts)
        assert {w.filename for w in caught} == {__file__}
        del module


SEEDLESS = """
#define AT(v, i) v[i]
[Differentiable] float pick(float v[2], int n) { return AT(v, n % 2) * AT(v, 0); }
[Differentiable] float mixed(float x, int n)
{
    float a[2] = { x, x };
    return pick(a, n);
}
"""


def test_two_names_of_one_gradient(device):
    """What is read is what is added to, whether one tensor or two over the same memory."""
    text = """import slangpy;
[Differentiable] void twice(int i, IRWTensor<float, 1> x) { x[i] = x[i] * 2; }
[Differentiable] void grow(inout float x) { x = x * 2; }
"""
    m = source(device, "one_gradient", text)
    shared = tensor(device, [1, 1, 1, 1])
    x = tensor(device, [1, 2, 3, 4]).with_grads(grad_in=shared, grad_out=shared.view((4,)))
    with pytest.raises(RuntimeError, match="x: an inout param"):
        m.twice.bwds(spy.grid((4,)), x)
    with pytest.raises(RuntimeError, match="x: an inout param"):
        m.grow.bwds(x)
    halves = tensor(device, [1, 1, 1, 1, 0, 0, 0, 0])
    apart = tensor(device, [1, 2, 3, 4]).with_grads(grad_in=halves[:4], grad_out=halves[4:])
    m.grow.bwds(apart)
    same(halves, [1, 1, 1, 1, 2, 2, 2, 2])


def test_tensors_without_a_place_for_gradients_are_named(device: spy.Device) -> None:
    text = "import slangpy;\n[Differentiable] float f(Tensor<float, 1> w, int i) { return w[i]; }"
    f = spy.Module.load_from_source(device, "gradients_plain", text).f
    weights, seed = spy.Tensor.ones(device, (3,), "float"), spy.diffPair(0.0, 1.0)
    with pytest.warns(RuntimeWarning, match=r"no gradient reaches w: a Tensor<float, 1> .* declare it ITensor<float, 1>"):
        f.bwds(weights.with_grads(), 1, _result=seed)
    with pytest.warns(RuntimeWarning, match="no argument has storage"):
        f.bwds(weights, 1, _result=seed)
