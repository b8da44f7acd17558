"""The net under derivatives: `device.check_gradients` compares the first run of each kind of backward call."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import slangpy as spy

pytestmark = [pytest.mark.needs_kernels, pytest.mark.one]

SOURCE = """
import slangpy;

struct Pair : IDifferentiable { float a; float b; }

[Differentiable] float right(float a, float b) { return sin(a) * b + a * a; }
[Differentiable] float field(Pair p, float b) { return p.a * p.b * b; }
[Differentiable] void store(int i, ITensor<float, 1> x, IWTensor<float, 1> y) { y[i] = x[i] * x[i]; }

[BackwardDerivative(doubled_bwd)] [ForwardDerivative(doubled_fwd)] float doubled(float x) { return 2 * x; }
void doubled_bwd(inout DifferentialPair<float> x, float d) { x = diffPair(x.p, 3 * d); }
DifferentialPair<float> doubled_fwd(DifferentialPair<float> x) { return diffPair(2 * x.p, 2 * x.d); }
[Differentiable] float wrong(float k, float x) { return k * k * doubled(x); }

#define MEAN(name, quotient) [Differentiable] float3 name(float3 x) { \\
    float3 n = 0; float d = 0; \\
    for (int i = 0; i < 3; i++) { float w = exp(-x.x * i); n += x * w * i; d += w; } \\
    return quotient; }
MEAN(mean, n / d)
MEAN(mean_cast, n / float3(d))

[BackwardDerivative(cube_bwd)] float cube(float x) { return x * x * x; }
void cube_bwd(inout DifferentialPair<float> x, float d) { x = diffPair(x.p, 3 * x.p * x.p * d); }
[BackwardDerivative(bad_cube_bwd)] float bad_cube(float x) { return x * x * x; }
void bad_cube_bwd(inout DifferentialPair<float> x, float d) { x = diffPair(x.p, 2 * x.p * x.p * d); }

[BackwardDerivative(bad_fwd_bwd)] [ForwardDerivative(bad_fwd_fwd)] float bad_forward(float x) { return 2 * x; }
void bad_fwd_bwd(inout DifferentialPair<float> x, float d) { x = diffPair(x.p, 2 * d); }
DifferentialPair<float> bad_fwd_fwd(DifferentialPair<float> x) { return diffPair(2 * x.p, 5 * x.d); }
"""


@pytest.fixture
def m(device: Any) -> Iterator[Any]:
    before = device.check_gradients
    device.check_gradients = True
    yield spy.Module.load_from_source(device, "first_run", SOURCE)
    device.check_gradients = before


def with_grad(device: Any, values: list[float]) -> Any:
    return spy.Tensor.from_numpy(device, np.array(values, np.float32)).with_grads()


def seeded(device: Any, values: list[float]) -> Any:
    result = spy.Tensor.zeros(device, (len(values),), "float").with_grads()
    result.grad.copy_from_numpy(np.array(values, np.float32))
    return result


def test_right_derivatives_pass_in_silence(device, m):
    """And gradients are those of one call: what is checked are copies."""
    a, b = with_grad(device, [0.3, 0.5, 1.0]), spy.diffPair(2.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        m.right.bwds(a, b, _result=seeded(device, [1, 2, 3]))
        m.field.bwds({"a": a, "b": 3.0}, 2.0, _result=seeded(device, [1, 1, 1]))
        x, y = with_grad(device, [1.0, -2.0, 3.0]), with_grad(device, [0, 0, 0])
        y.grad.copy_from_numpy(np.ones(3, np.float32))
        m.store.bwds(spy.grid((3,)), x, y)
    xs = np.array([0.3, 0.5, 1.0])
    expected = np.array([1, 2, 3]) * (np.cos(xs) * 2 + 2 * xs) + 6
    np.testing.assert_allclose(a.grad.to_numpy(), expected, rtol=1e-5)
    assert b.grad == pytest.approx(np.sum(np.array([1, 2, 3]) * np.sin(xs)), rel=1e-5)
    np.testing.assert_allclose(x.grad.to_numpy(), [2, -4, 6], rtol=1e-6)
    assert y.grad.to_numpy().tolist() == [1, 1, 1]


def test_wrong_derivatives_warn_once(device, m):
    x = with_grad(device, [0.3, 0.5])
    with pytest.warns(
        RuntimeWarning, match=r"first_run::wrong\.bwds: the gradient by x is wrong.*forward mode.*differences"
    ) as seen:
        m.wrong.bwds(2.0, x, _result=seeded(device, [1, 1]))
    assert len(seen) == 1  # none for k
    numbers = [float(word.rstrip(".,")) for word in str(seen[0].message).split() if word.lstrip("-")[:1].isdigit()]
    assert numbers[0] / numbers[1] == pytest.approx(1.5, rel=1e-4)
    np.testing.assert_allclose(x.grad.to_numpy(), [12, 12])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        m.wrong.bwds(2.0, x, _result=seeded(device, [1, 1]))
    np.testing.assert_allclose(x.grad.to_numpy(), [24, 24])


def test_differences_where_there_is_no_forward_mode(device, m):
    x = with_grad(device, [0.5, 0.75])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        m.cube.bwds(x, _result=seeded(device, [1, 1]))
    with pytest.warns(RuntimeWarning, match=r"bad_cube\.bwds: the gradient by x is wrong: [^,]*, but differences"):
        m.bad_cube.bwds(x, _result=seeded(device, [1, 1]))


def test_a_wrong_forward_mode_is_no_fault_of_the_gradient(device, m):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        m.bad_forward.bwds(with_grad(device, [0.5]), _result=seeded(device, [1]))


def test_what_slang_differentiates_wrongly(device, m):
    """Slang loses the scalar that a loop has changed where a vector is divided by it (docs/compiler-faults.md)."""

    def pair() -> Any:
        return spy.diffPair(spy.float3(0.3, 0.7, -0.2), spy.float3(0))

    ones = spy.diffPair(spy.float3(0), spy.float3(1, 1, 1))
    if device.type is spy.DeviceType.d3d12:  # DXC sees that the code reads what nobody wrote
        with pytest.raises(spy.SlangCompileError, match="uninitialized"):
            m.mean.bwds(pair(), _result=ones)
        return
    with pytest.warns(RuntimeWarning, match=r"mean\.bwds: the gradient by x is wrong"):
        m.mean.bwds(pair(), _result=ones)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        m.mean_cast.bwds(pair(), _result=ones)


def test_off_at_first(device, m):
    device.check_gradients = False
    assert device.check_gradients is False
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        m.wrong.bwds(2.0, with_grad(device, [0.3, 0.5]), _result=seeded(device, [1, 1]))


TORCH = """
import torch, warnings, slangpy as spy
device = spy.create_torch_device() if torch.cuda.is_available() else spy.create_device(type=spy.DeviceType.cpu)
assert device.check_gradients
module = spy.Module.load_from_source(device, "first_run", SOURCE)
x = torch.tensor([0.3, 0.5], device=device.torch_device, requires_grad=True)
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    module.wrong(2.0, x).sum().backward()
    module.right(x, 2.0).sum().backward()
print([str(w.message).split(":")[2] for w in seen], x.grad.tolist())
"""


def test_environment_and_torch():
    """The setting of the environment; backward passes of torch's graph are checked too."""
    pytest.importorskip("torch")
    code = f"SOURCE = {SOURCE!r}\n{TORCH}"
    run = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "SLANGPY_CHECK_GRADIENTS": "1"}, capture_output=True, text=True,
        timeout=300, check=True,
    )  # fmt: skip
    assert "wrong.bwds" in run.stdout and "right.bwds" not in run.stdout, run.stdout + run.stderr


def test_the_result_by_position_is_checked_too(device, m):
    x, y = with_grad(device, [0.5, 1.0]), seeded(device, [1.0, 2.0])
    with pytest.warns(RuntimeWarning, match=r"wrong\.bwds: the gradient by .* is wrong"):
        m.wrong.bwds(2.0, x, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        m.right.bwds(x, 2.0, y)
