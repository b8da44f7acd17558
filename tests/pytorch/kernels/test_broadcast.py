"""Tensors with strides of 0, such as the `grad_output` of `y.sum()`: where kernels only read, they are taken as they are."""

from __future__ import annotations

from typing import Any

import pytest

from . import test_host_functions

torch = pytest.importorskip("torch")

SEED = "float seed(TensorView<float> dy, uint2 i) { return dy.load(i); }\n"
SOURCE = test_host_functions.SQUARE.replace("dy[i]", "seed(dy, i)").replace("[CudaKernel] void bwd", SEED + "[CudaKernel] void bwd") + """
[AutoPyBindCUDA] [CudaKernel] [Differentiable]
void square(DiffTensorView input, DiffTensorView output)
{
    uint3 at = cudaThreadIdx() + cudaBlockIdx() * cudaBlockDim();
    if (at.x >= input.size(0)) return;
    output[at.x] = input[at.x] * input[at.x];
}
[CudaKernel] void square_backward(DiffTensorView input, DiffTensorView output) { bwd_diff(square)(input, output); }
[AutoPyBindCUDA] [CudaKernel] [Differentiable]
void keeps(DiffTensorView a, DiffTensorView b) { uint i = cudaThreadIdx().x; b.storeOnce(i, a.loadOnce(i) * 3); }
[AutoPyBindCUDA] [CudaKernel] [Differentiable]
void grows(DiffTensorView a, no_diff float k) { uint i = cudaThreadIdx().x; a[i] = a[i] * k; }
struct Rays { TensorView<float> t; TensorView<float3> d; };
[CudaKernel] void shade(Rays rays, TensorView<float> y) { uint i = cudaThreadIdx().x; y[i] = rays.t[i] * rays.d[i].y; }
[CudaKernel] void clear(TensorView<float> x) { uint i = cudaThreadIdx().x; x[i] = 0; }
[CudaKernel] void count(TensorView<float> x, uint i) { float old; x.InterlockedAdd(i, 1.0, old); }
"""
ONE = {"blockSize": (4, 1, 1), "gridSize": (1, 1, 1)}


def ones(place: str, *shape: int) -> Any:
    return torch.ones((), device=place).expand(shape)


def test_sums_of_host_functions(load: Any, place: str) -> None:
    m = load(SOURCE)

    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return m.square_fwd(x)

        @staticmethod
        def backward(ctx: Any, grad_output: Any) -> Any:  # type: ignore[override]
            return m.square_bwd(ctx.saved_tensors[0], grad_output)

    x = torch.randn(37, 5, device=place, requires_grad=True)
    loss = Square.apply(x).sum()
    loss.backward()
    assert torch.equal(x.grad, 2 * x.detach())


@pytest.mark.parametrize("name", ["square.bwd", "square_backward"])
def test_the_consumed_gradient_of_an_output_is_copied(load: Any, place: str, name: str) -> None:
    m = load(SOURCE)
    kernel = m.square.bwd if name == "square.bwd" else m.square_backward
    x, gx, seed = torch.tensor([1.0, 2, 3], device=place), torch.zeros(3, device=place), ones(place, 3)
    kernel(input=(x, gx), output=(torch.zeros_like(x), seed)).launchRaw(**ONE)
    assert gx.tolist() == [2, 4, 6] and seed.tolist() == [1, 1, 1]


def test_what_is_only_read_is_taken_as_it_is(load: Any, place: str) -> None:
    m = load(SOURCE)
    y, x = torch.zeros(4, device=place), torch.tensor([3.0], device=place).expand(4)
    m.square(input=x, output=y).launchRaw(**ONE)
    assert y.tolist() == [9] * 4
    tangent = torch.zeros(4, device=place)
    m.square.fwd(input=(x, ones(place, 4)), output=(y, tangent)).launchRaw(**ONE)
    assert tangent.tolist() == [6] * 4
    ga = torch.zeros(4, device=place)
    m.keeps.bwd(a=(x, ga), b=(y, ones(place, 4))).launchRaw(**ONE)
    assert ga.tolist() == [3] * 4
    rays = m.Rays(torch.arange(4.0, device=place), torch.tensor([1.0, 2, 3], device=place).expand(4, 3))
    m.shade(rays, y).launchRaw(**ONE)
    assert y.tolist() == [0, 2, 4, 6]


REFUSED = {
    "output": lambda m, t, s: m.square(input=t, output=s),
    "gradient of an input": lambda m, t, s: m.square.bwd(input=(t, s), output=(t, t)),
    "tangent of an output": lambda m, t, s: m.square.fwd(input=(t, t), output=(t, s)),
    "gradient of what is read and written": lambda m, t, s: m.grows.bwd(a=(t, s), k=2.0),
    "by hand": lambda m, t, s: m.square_backward(input=(t, s), output=(t, t)),
    "stored": lambda m, t, s: m.clear(s),
    "atomic": lambda m, t, s: m.count(s, 0),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_may_be_written_is_refused(load: Any, place: str, name: str) -> None:
    m, t = load(SOURCE), torch.zeros(4, device=place)
    with pytest.raises(RuntimeError, match=r"may write to it; pass tensor\.contiguous\(\)"):
        REFUSED[name](m, t, ones(place, 4))
