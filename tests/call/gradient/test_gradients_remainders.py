"""fmod(x, y) is x - n y with a whole n: its tangent is dx - n dy, in both modes, for all floats, vectors and matrices."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiers import gate

import slangpy as spy
from slangpy.testing import CudaCodegen, nvrtc_available

SOURCE = """
[Differentiable] float f_float(float x, float y) { return fmod(x, y); }
[Differentiable] half f_half(half x, half y) { return fmod(x, y); }
[Differentiable] T general<T : __BuiltinFloatingPointType>(T x, T y) { return fmod(x, y); }
[Differentiable] float f_generic(float x, float y) { return general(x, y); }
[Differentiable] float f_vector(float x, float y) { return fmod(float3(1, x, x), float3(y, y, 1)).y; }
[Differentiable] float f_matrix(float x, float y) { return fmod(float2x3(x, x, x, x, x, x), float2x3(y, y, y, y, y, y))[1][2]; }
#define WRAP(a, b) fmod(a, b)
[Differentiable] float f_macro(float x, float y) { return WRAP(x, y); }
[Differentiable] float f_loop(float x, float y)
{
    float sum = 0;
    [MaxIters(3)] for (int i = 0; i < 3; i++) sum += fmod(x * i, y);
    return sum;
}
[Differentiable] float f_literals(float x, float y) { return fmod(x, 3) + fmod(7.5, y); }
[Differentiable] float3 f_float3(float3 x, float3 y) { return fmod(x, y); }
"""
DOUBLE = """
[Differentiable] double f_double(double x, double y) { return fmod(x, y); }
[Differentiable] double f_double2(double x, double y) { return fmod(double2(x, 1), double2(y, y)).x; }
"""
KERNEL = """
[AutoPyBindCUDA] [CUDAKernel] [Differentiable]
void rest(DiffTensorView x, DiffTensorView y, DiffTensorView out)
{
    uint i = (cudaBlockIdx() * cudaBlockDim() + cudaThreadIdx()).x;
    if (i >= x.size(0)) return;
    out[i] = fmod(x[i], y[i]);
}
"""
RNG = np.random.default_rng(7)
X = np.concatenate([RNG.uniform(-9, 9, 37), [7.5, -7.5, 7.5, -7.5, 0.25, 3.0, 0.0]])
Y = np.concatenate([RNG.uniform(0.5, 3, 37) * RNG.choice([-1, 1], 37), [2, 2, -2, -2, 3, 1.5, 2]])

NAMES = ["float", "half", "generic", "vector", "matrix", "macro", "loop", "literals", "double", "double2"]


def expected(name: str, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The value and its derivatives by x and y, in float64."""
    x, y = x.astype(np.float64), y.astype(np.float64)
    pieces = [(x, 1.0, y, 1.0)]
    if name == "loop":
        pieces = [(x * i, float(i), y, 1.0) for i in range(3)]
    if name == "literals":
        pieces = [(x, 1.0, np.full_like(x, 3), 0.0), (np.full_like(x, 7.5), 0.0, y, 1.0)]
    value, by_x, by_y = np.zeros_like(x), np.zeros_like(x), np.zeros_like(x)
    for a, da, b, db in pieces:
        rest = np.fmod(a, b)
        value, by_x, by_y = value + rest, by_x + da, by_y - db * np.round((a - rest) / b)
    return value, by_x, by_y


def dtype_of(name: str) -> Any:
    return np.float16 if name == "half" else np.float64 if name.startswith("double") else np.float32


def module_for(device: Any, name: str) -> Any:
    source = DOUBLE if name.startswith("double") else SOURCE
    return spy.Module.load_from_source(device, "remainders_double" if source is DOUBLE else "remainders", source)


def with_grads(device: Any, values: np.ndarray, grad: np.ndarray | None = None) -> Any:
    made = spy.Tensor.from_numpy(device, values).with_grads()
    if grad is not None:
        made.grad.copy_from_numpy(grad)
    return made


@pytest.mark.needs_kernels
@pytest.mark.elsewhere("half", "matrix")
@pytest.mark.parametrize("name", NAMES)
def test_both_modes(device: Any, name: str) -> None:
    dtype = dtype_of(name)
    x, y = X.astype(dtype), Y.astype(dtype)
    function = module_for(device, name)["f_" + name]
    value, by_x, by_y = expected(name, x, y)
    near = {np.float16: 2e-2, np.float32: 2e-5, np.float64: 1e-12}[dtype]
    np.testing.assert_allclose(function(x, y, _result="numpy"), value, atol=near)
    xs, ys, out = with_grads(device, x), with_grads(device, y), with_grads(device, np.zeros_like(x), np.full_like(x, 2))
    function.bwds(xs, ys, _result=out)
    np.testing.assert_allclose(xs.grad.to_numpy(), 2 * by_x, rtol=near)
    np.testing.assert_allclose(ys.grad.to_numpy(), 2 * by_y, rtol=near)
    dx, dy = np.ones_like(x), np.full_like(x, -0.5)
    pushed = with_grads(device, np.zeros_like(x))
    function.fwds(with_grads(device, x, dx), with_grads(device, y, dy), _result=pushed)
    np.testing.assert_allclose(pushed.to_numpy(), value, atol=near)
    np.testing.assert_allclose(pushed.grad.to_numpy(), by_x - 0.5 * by_y, rtol=near, atol=near)


@pytest.mark.needs_kernels
def test_strided_vectors(device: Any) -> None:
    m = module_for(device, "float3")
    wide = np.zeros((2, 12, 3), np.float32)
    wide[0], wide[1] = X[:36].reshape(12, 3), Y[:36].reshape(12, 3)
    base = with_grads(device, wide)
    x, y = base[0][::2], base[1][::2]
    out = with_grads(device, np.zeros((6, 3), np.float32), np.ones((6, 3), np.float32))
    m.f_float3.bwds(x, y, _result=out)
    value, by_x, by_y = expected("float3", wide[0, ::2], wide[1, ::2])
    grad = base.grad.to_numpy()
    np.testing.assert_allclose(m.f_float3(x, y, _result="numpy"), value, atol=1e-5)
    np.testing.assert_allclose(grad[0, ::2], by_x)
    np.testing.assert_allclose(grad[1, ::2], by_y)
    assert not grad[:, 1::2].any()


@pytest.mark.needs_kernels
def test_a_function_of_that_name_comes_first(device: Any) -> None:
    source = """
    [Differentiable] float fmod(float x, float y) { return x * y; }
    [Differentiable] float f(float x, float y) { return fmod(x, y); }
    """
    m = spy.Module.load_from_source(device, "remainders_own", source)
    x, y = spy.diffPair(3.0), spy.diffPair(5.0)
    m.f.bwds(x, y, _result=spy.diffPair(0.0, 1.0))
    assert (m.f(3.0, 5.0), x.grad, y.grad) == (15, 5, 3)


@pytest.mark.needs_kernels
def test_second_derivatives(device: Any) -> None:
    """d/dx of x fmod(x, y): the remainder's own derivatives are constant between its jumps."""
    torch = pytest.importorskip("torch")
    if device.info.type is not spy.DeviceType.cpu:
        pytest.skip("torch tensors of the host")
    m = spy.Module.load_from_source(
        device, "remainders_second", "[Differentiable] float f(float x, float y) { return x * fmod(x, y); }"
    )
    x, y = (torch.tensor(v.astype(np.float32), requires_grad=True) for v in (X[:37], Y[:37]))
    (by_x,) = torch.autograd.grad(m.f(x, y).sum(), x, create_graph=True)
    by_xx, by_xy = torch.autograd.grad(by_x.sum(), (x, y))
    n = np.trunc(X[:37] / Y[:37])
    np.testing.assert_allclose(by_x.detach(), 2 * X[:37] - n * Y[:37], atol=1e-4)
    np.testing.assert_allclose(by_xx, np.full(37, 2.0))
    np.testing.assert_allclose(by_xy, -n)


def test_kernels_of_load_module(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    path = tmp_path / "remainders_kernel.slang"
    path.write_text(KERNEL)
    module = spy.loadModule(str(path))
    x, y = (torch.tensor(v.astype(np.float32)) for v in (X, Y))
    out, by_x, by_y = torch.zeros_like(x), torch.zeros_like(x), torch.zeros_like(y)
    launch = {"blockSize": (32, 1, 1), "gridSize": (2, 1, 1)}
    module.rest(x=x, y=y, out=out).launchRaw(**launch)
    module.rest.bwd(x=(x, by_x), y=(y, by_y), out=(out, torch.ones_like(out))).launchRaw(**launch)
    for found, wanted in zip((out, by_x, by_y), expected("float", X, Y), strict=True):
        np.testing.assert_allclose(found, wanted, atol=1e-5)


@pytest.mark.skipif(not nvrtc_available(), reason="NVRTC is not installed")
@pytest.mark.parametrize("name", gate(["float", "half", "matrix", "float3", "double2"], lambda name: name in ("half", "matrix", "double2")))
def test_cuda_code(name: str) -> None:
    target = CudaCodegen("sm_80")
    cpu = spy.Device(type=spy.DeviceType.cpu, enable_hot_reload=False)
    shape = (4, 3) if name == "float3" else (4,)
    values = np.ones(shape, dtype_of(name))
    function = module_for(target, name)["f_" + name]
    for mode in (function.bwds, function.fwds):
        x, y, out = (with_grads(cpu, values) for _ in range(3))
        assert target.build(mode, x, y, _result=out).kernels.variants
    cpu.close()
