"""f.prepare(...) with torch tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import slangpy as spy

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.needs_kernels

SOURCE = """
float add(float a, float b) { return a + b; }
[Differentiable] float square(float x, float s) { return s * x * x; }
void scale(inout float x, float s) { x *= s; }
"""


def module_of(device: spy.Device) -> spy.Module:
    return spy.Module.load_from_source(device, "prepared_torch", SOURCE)


def place_of(device: spy.Device) -> str:
    """Where torch tensors lie that the device uses in place; skips where there is no such place."""
    if device.info.type == spy.DeviceType.cuda:
        return "cuda"
    if device.info.type != spy.DeviceType.cpu:
        pytest.skip("torch tensors are copied for this device")
    return "cpu"


def random(device: spy.Device, *shape: int) -> Any:
    return torch.randn(*shape).to(place_of(device))


def test_pointers_by_name(device: spy.Device) -> None:
    x, y = random(device, 3, 4), random(device, 3, 4)
    prepared = module_of(device).add.prepare(x, 1.0)
    first = prepared()
    torch.testing.assert_close(first, x + 1)
    x += 1
    assert prepared() is first
    torch.testing.assert_close(first, x + 1)
    torch.testing.assert_close(prepared(a=y, b=2.0), y + 2)
    with pytest.raises(ValueError, match=r"argument a: expected a torch tensor of float with shape \[3, 4\]"):
        prepared(a=random(device, 4, 3))
    with pytest.raises(TypeError, match="argument a: expected a torch tensor of float.*got a torch tensor of double"):
        prepared(a=y.double())
    with pytest.raises(ValueError, match="strides of the same kind"):
        prepared(a=random(device, 4, 3).T)
    torch.testing.assert_close(prepared(), y + 2)


def test_autograd_is_refused(device: spy.Device) -> None:
    x = random(device, 5)
    module = module_of(device)
    leaf = x.clone().requires_grad_()
    with pytest.raises(NotImplementedError, match=r"argument a requires grad.*pass a\.detach\(\)"):
        module.add.prepare(leaf, 1.0)
    prepared = module.add.prepare(x, 1.0)
    with pytest.raises(NotImplementedError, match=r"argument a requires grad.*pass a\.detach\(\)"):
        prepared(a=leaf)
    torch.testing.assert_close(prepared(a=leaf.detach()), x + 1)


def test_autograd_hears_of_what_is_written(device: spy.Device) -> None:
    """A tensor that torch saved for its backward pass, and that a launch overwrites, is an error there."""
    x, w = random(device, 5), random(device, 5).requires_grad_()
    prepared = module_of(device).add.prepare(x, 1.0)
    product = (prepared() * w).sum()
    prepared()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        product.backward()
    scale = module_of(device).scale.prepare(x, 2.0)
    product = (x * w).sum()
    scale()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        product.backward()


def test_backward_by_hand(device: spy.Device) -> None:
    x, seed = random(device, 200), random(device, 200)
    grad = torch.zeros_like(x)
    out = spy.diff_pair(None, seed)
    backward = module_of(device).square.bwds.prepare(spy.diff_pair(x, grad), 3.0, _result=out)
    backward()
    torch.testing.assert_close(grad, 6 * x * seed)
    backward()
    torch.testing.assert_close(grad, 12 * x * seed)
    other = torch.zeros_like(x)
    backward(x=spy.diff_pair(seed, other))
    torch.testing.assert_close(other, 6 * seed * seed)
    torch.testing.assert_close(grad, 12 * x * seed)


def test_given_results(device: spy.Device) -> None:
    x, out, other = random(device, 6), random(device, 6), random(device, 6)
    prepared = module_of(device).add.prepare(x, 1.0, _result=out)
    assert prepared() is out
    assert prepared(_result=other) is other
    torch.testing.assert_close(other, x + 1)
    with pytest.raises(RuntimeError, match="memory location"):
        prepared(_result=x[:1].expand(6))


def test_another_device_is_refused(device: spy.Device) -> None:
    if device.info.type != spy.DeviceType.cuda:
        pytest.skip("tensors of a GPU and of the host meet on a CUDA device only")
    prepared = module_of(device).add.prepare(random(device, 4), 1.0)
    with pytest.raises(ValueError, match="argument a is a CPU tensor"):
        prepared(a=torch.ones(4))


def test_in_a_graph(device: spy.Device) -> None:
    if device.info.type != spy.DeviceType.cuda:
        pytest.skip("CUDA graphs")
    x, y = random(device, 64), random(device, 64)
    prepared = module_of(device).add.prepare(x, 1.0)
    result = prepared()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        prepared()
        result.mul_(2)
        prepared.set(a=y)
    x.fill_(3.0)
    graph.replay()
    torch.cuda.synchronize()
    np.testing.assert_allclose(result.cpu().numpy(), np.full(64, 8.0))
