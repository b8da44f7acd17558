"""Gradients of torch tensors that a function reads and writes in place through a tensor parameter."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch_support import device_of  # noqa: E402

import slangpy as spy  # noqa: E402

SOURCE = """
[Differentiable] void evens(int i, IRWTensor<float, 1> x) { x[2 * i] = x[2 * i] * x[2 * i]; }
[Differentiable] void evens_explicit(int i, RWDiffTensor<float, 1> x) { x[2 * i] = x[2 * i] * x[2 * i]; }
[Differentiable] void twice(int i, IRWTensor<float, 1> x) { x[i] = x[i] * x[i]; x[i] = 3 * x[i] * x[i]; }
[Differentiable] void reads_back(int i, IRWTensor<float, 1> x, IWTensor<float, 1> y)
{
    x[i] = x[i] * x[i];
    y[i] = x[i] * 2;
}
[Differentiable] void overwrites(int i, ITensor<float, 1> a, IRWTensor<float, 1> x) { x[i] = a[i]; x[i] = a[i] * a[i]; }
[Differentiable] void leaves_alone(int i, IRWTensor<float, 1> x, IWTensor<float, 1> y) { y[i] = x[i] * x[i]; }
[Differentiable] void halves(int i, IRWTensor<half, 1> x) { x[2 * i] = x[2 * i] * x[2 * i]; }
"""


@cache
def module_of_device(device: Any) -> Any:
    return spy.Module.load_from_source(device, "torch_in_place", SOURCE)


@pytest.fixture(params=["in place", "copied"])
def m(request: pytest.FixtureRequest, where: str) -> Any:
    """On the device that shares torch's memory, and on Vulkan, which copies."""
    if request.param == "in place":
        return module_of_device(device_of(where))
    if where != "cpu" or not spy.Device.enumerate_adapters(spy.DeviceType.vulkan):
        pytest.skip("no other device takes these tensors")
    return module_of_device(_vulkan())


@cache
def _vulkan() -> Any:
    return spy.create_device(spy.DeviceType.vulkan)


def values(where: str, count: int = 5, dtype: Any = torch.float32) -> tuple[Any, Any]:
    """A leaf and a tensor of the graph with its values."""
    leaf = (torch.arange(count, device=where) + 1).to(dtype).requires_grad_()
    return leaf, leaf * 1


@pytest.mark.parametrize("name", ["evens", "evens_explicit"])
def test_what_is_never_stored_passes_its_gradient(m, where, name):
    leaf, x = values(where)
    m[name](spy.grid((3,)), x)
    assert x.tolist() == [1, 2, 9, 4, 25]
    seed = torch.tensor([1.0, 10, 100, 1000, 10000], device=where)
    x.backward(seed)
    assert leaf.grad.tolist() == [2, 10, 600, 1000, 100000]
    assert seed.tolist() == [1, 10, 100, 1000, 10000]


def test_a_second_store_hides_the_first(m, where):
    leaf, x = values(where, 3)
    m.twice(spy.grid((3,)), x)
    assert x.tolist() == [3, 48, 243]
    x.sum().backward()
    assert leaf.grad.tolist() == [12, 96, 324]  # 3 x^4
    a = torch.tensor([2.0, 3], device=where, requires_grad=True)
    leaf, x = values(where, 2)
    m.overwrites(spy.grid((2,)), a, x)
    x.sum().backward()
    assert a.grad.tolist() == [4, 6]
    assert leaf.grad.tolist() == [0, 0]


def test_a_load_of_what_was_stored(m, where):
    leaf, x = values(where, 2)
    y = torch.empty(2, device=where)
    m.reads_back(spy.grid((2,)), x, y)
    (x.sum() + 10 * y.sum()).backward()
    assert leaf.grad.tolist() == [42, 84]


def test_nothing_stored(m, where):
    leaf, x = values(where, 2)
    y = torch.empty(2, device=where)
    m.leaves_alone(spy.grid((2,)), x, y)
    (5 * x.sum() + y.sum()).backward()
    assert leaf.grad.tolist() == [7, 9]


def test_only_another_output_is_used(m, where):
    leaf, x = values(where, 2)
    y = torch.empty(2, device=where)
    m.leaves_alone(spy.grid((2,)), x, y)
    y.sum().backward()
    assert leaf.grad.tolist() == [2, 4]


def test_half(m, where):
    leaf, x = values(where, 3, torch.float16)
    m.halves(spy.grid((2,)), x)
    x.backward(torch.tensor([1.0, 10, 100], device=where, dtype=torch.float16))
    assert leaf.grad.dtype == torch.float16
    assert leaf.grad.tolist() == [2, 10, 600]


def test_repeated_and_deterministic(m, where):
    leaf, x = values(where)
    m.evens(spy.grid((3,)), x)
    m.reads_back(spy.grid((5,)), x, torch.empty(5, device=where))
    torch.use_deterministic_algorithms(True)
    for _ in range(2):
        (grad,) = torch.autograd.grad(x.sum(), [leaf], retain_graph=True)
        assert grad.tolist() == [4, 4, 108, 8, 500]
