"""Differentiable kernels: the primal, both derivatives, and what each does with gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

SOURCE = """
[AutoPyBindCUDA] [CUDAKernel] [Differentiable]
void square(DiffTensorView input, DiffTensorView output)
{
    uint3 at = cudaThreadIdx() + cudaBlockIdx() * cudaBlockDim();
    if (at.x >= input.size(0)) return;
    output[at.x] = input[at.x] * input[at.x];
}
[AutoPyBindCUDA] [CudaKernel] void plain(TensorView<float> input, TensorView<float> output)
{
    uint i = cudaThreadIdx().x + cudaBlockIdx().x * cudaBlockDim().x;
    if (i < input.size(0)) output[i] = input[i] * input[i];
}
[AutoPyBindCUDA] [CudaKernel] [Differentiable] void mix(DiffTensorView a, no_diff float k, DiffTensorView b)
{
    uint i = cudaThreadIdx().x;
    if (i < a.size(0)) b[i] = a[0] * k + a[i];
}
[AutoPyBindCUDA] [CudaKernel] [Differentiable] void once(DiffTensorView a, DiffTensorView b)
{
    uint i = cudaThreadIdx().x;
    if (i >= a.size(0)) return;
    let v = a.loadOnce(i);
    b.storeOnce(i, v * v);
}
"""
ONE = {"blockSize": (32, 1, 1), "gridSize": (1, 1, 1)}


def row(values: Any, place: str) -> Any:
    return torch.tensor(values, dtype=torch.float32, device=place)


def test_views_equal_bit_for_bit(load: Any, place: str) -> None:
    m = load(SOURCE)
    x = torch.randn(1024, device=place)
    y = torch.full((2000,), 7.0, device=place)
    m.plain(input=x, output=y).launchRaw(blockSize=(32, 1, 1), gridSize=(64, 1, 1))
    assert torch.equal(y[:1024], x * x) and bool((y[1024:] == 7).all())


@pytest.mark.parametrize("form", ["tensor", "tuple", "named"])
def test_primal_forms(load: Any, place: str, form: str) -> None:
    m = load(SOURCE)
    wrap = {"tensor": lambda t: t, "tuple": lambda t: (t,), "named": lambda t: m.DiffTensorView(t)}[form]
    x, y = torch.arange(6, dtype=torch.float32, device=place), torch.empty(6, device=place)
    m.square(input=wrap(x), output=wrap(y)).launchRaw(**ONE)
    assert y.tolist() == [0, 1, 4, 9, 16, 25]


def test_backward_accumulates_and_consumes(load: Any, place: str) -> None:
    m = load(SOURCE)
    x, y = torch.arange(6, dtype=torch.float32, device=place), torch.zeros(6, device=place)
    gx = torch.zeros_like(x)
    for factor in (1, 2):
        gy = torch.ones_like(x)
        m.square.bwd(input=(x, gx), output=(y, gy)).launchRaw(**ONE)
        assert gx.tolist() == [2 * factor * i for i in range(6)]
        assert gy.tolist() == [0] * 6 and y.tolist() == [0, 1, 4, 9, 16, 25]


def test_forward(load: Any, place: str) -> None:
    m = load(SOURCE)
    x, tangent = row([1, 2, 3, 4], place), row([1, 0, 0, 1], place)
    y, out = torch.zeros(4, device=place), torch.zeros(4, device=place)
    m.square.fwd(input=(x, tangent), output=(y, out)).launchRaw(**ONE)
    assert y.tolist() == [1, 4, 9, 16] and out.tolist() == [2, 0, 0, 8]


def test_backward_with_named_tuples(load: Any, place: str) -> None:
    m = load(SOURCE)
    x, gx = row([1, 2, 3, 4], place), torch.zeros(4, device=place)
    y, gy = torch.zeros(4, device=place), row([1, 0, 1, 0], place)
    m.square.bwd(input=m.DiffTensorView(x, gx), output=m.DiffTensorView(y, gy)).launchRaw(**ONE)
    assert gx.tolist() == [2, 0, 6, 0]


def test_loads_add_to_what_is_there(load: Any, place: str) -> None:
    m = load(SOURCE)
    a, ga = row([0, 1, 2, 3], place), torch.full((4,), 5.0, device=place)
    b, gb = torch.zeros(4, device=place), row([1, 2, 3, 4], place)
    m.mix.bwd(a=(a, ga), k=10, b=(b, gb)).launchRaw(**ONE)
    assert ga.tolist() == [106, 7, 8, 9]


def test_once_overwrites_and_keeps(load: Any, place: str) -> None:
    m = load(SOURCE)
    a, ga = row([0, 1, 2, 3], place), torch.full((4,), 5.0, device=place)
    b, gb = torch.zeros(4, device=place), row([1, 2, 3, 4], place)
    m.once.bwd(a=(a, ga), b=(b, gb)).launchRaw(**ONE)
    assert ga.tolist() == [0, 4, 12, 24] and gb.tolist() == [1, 2, 3, 4]


def test_autograd_function(load: Any, place: str) -> None:
    m = load(SOURCE)

    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            y = torch.empty_like(x)
            m.square(input=x, output=y).launchRaw(**ONE)
            ctx.save_for_backward(x, y)
            return y

        @staticmethod
        def backward(ctx: Any, gradient: Any) -> Any:  # type: ignore[override]
            x, y = ctx.saved_tensors
            assert gradient.stride() == (0,)
            gx = torch.zeros_like(x)
            m.square.bwd(input=(x, gx), output=(y, gradient)).launchRaw(**ONE)
            return gx

    x = row([3, 4], place).requires_grad_()
    Square.apply(x).sum().backward()
    assert x.grad.tolist() == [6, 8]


def test_missing_gradients(load: Any, place: str) -> None:
    m = load(SOURCE)
    x, y = torch.ones(4096, device=place), torch.zeros(4096, device=place)
    for wrong in (x, (x,), m.DiffTensorView(x)):
        with pytest.raises(ValueError, match=r"`square\.bwd`: `input` has no gradient tensor; pass `\(tensor, torch\.zeros_like"):
            m.square.bwd(input=wrong, output=(y, torch.ones_like(y)))
    guard = torch.zeros(4096, device=place)
    m.mix.bwd(a=(x[:4], None), k=1, b=(y[:4], torch.ones(4, device=place))).launchRaw(**ONE)
    gx = torch.zeros_like(x)
    m.square.bwd(input=(x, gx), output=(y, None)).launch(4096)
    assert bool((gx == 0).all()) and bool((guard == 0).all())


@pytest.mark.parametrize("wrong", [[1], (1, 2, 3), {"value": 1}, None, 3])
def test_what_is_no_diff_tensor_view(load: Any, place: str, wrong: Any) -> None:
    m = load(SOURCE)
    if isinstance(wrong, tuple):
        wrong = (torch.ones(3),) * 3
    with pytest.raises(ValueError, match=r"square: input: expected a tensor, \(tensor,\), \(tensor, gradient\)"):
        m.square(input=wrong, output=torch.ones(3))


def test_gradient_of_another_shape_or_type(load: Any, place: str) -> None:
    m = load(SOURCE)
    x = torch.ones(4, device=place)
    with pytest.raises(RuntimeError, match=r"input\.grad: the gradient has the shape \(5,\), its tensor \(4,\)"):
        m.square.bwd(input=(x, torch.zeros(5, device=place)), output=(x, x))
    with pytest.raises(RuntimeError, match=r"input\.grad: expected float32.*float64"):
        m.square.bwd(input=(x, torch.zeros(4, device=place, dtype=torch.float64)), output=(x, x))


def test_plain_kernels_have_no_derivative(load: Any) -> None:
    m = load(SOURCE)
    with pytest.raises(ValueError, match=r"`plain` has no backward derivative: mark it \[Differentiable\]"):
        m.plain.bwd


def test_numpy_arrays(load: Any) -> None:
    m = load(SOURCE)
    x, y = np.arange(5, dtype=np.float32), np.zeros(5, np.float32)
    m.plain(x, y).launchRaw(32, 1)
    assert y.tolist() == [0, 1, 4, 9, 16]
