"""Training loops on devices with debug layers, whose first backward calls are checked: later passes run the same kernels as
without the check, and no kernel reads a gradient that it was not given."""

from __future__ import annotations

import itertools
import warnings
from functools import cache
from typing import Any

import numpy as np
import pytest
from tiers import gate

import slangpy as spy

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.needs_kernels

SOURCE = """
import slangpy;
[Differentiable] float cubic(float a, float b, float c, float d, float x) { return ((a * x + b) * x + c) * x + d; }
[Differentiable] void cubic_out(float a, float b, float c, float d, float x, out float y) { y = cubic(a, b, c, d, x); }
struct Curve : IDifferentiable { float a; float b; float c; float d; }
[Differentiable] float along(Curve k, float x) { return cubic(k.a, k.b, k.c, k.d, x); }
[Differentiable] float at(int i, float a, float b, float c, float d, ITensor<float, 1> x) { return cubic(a, b, c, d, x[i]); }
"""
START = (0.5, -1.25, 2.0, 0.75)
STEPS = 4


@cache
def module_of(where: str) -> Any:
    device = spy.create_torch_device(type=spy.DeviceType[where], enable_hot_reload=False, enable_debug_layers=True)
    assert device.check_gradients
    return spy.Module.load_from_source(device, "checked_loops", SOURCE)


def returned(m: Any, ks: list[Any], x: Any) -> Any:
    return m.cubic(*ks, x)


def written(m: Any, ks: list[Any], x: Any) -> Any:
    y = torch.empty_like(x)
    m.cubic_out(*ks, x, y)
    return y


def by_fields(m: Any, ks: list[Any], x: Any) -> Any:
    return m.along(dict(zip("abcd", ks, strict=True)), x)


def picked(m: Any, ks: list[Any], x: Any) -> Any:
    return m.at(spy.grid((x.shape[0],)), *ks, x)


def gradients(ks: list[float], x: np.ndarray) -> tuple[list[float], np.ndarray]:
    """Of the mean square of the results, in float64."""
    a, b, c, d = ks
    seed = 2 * (((a * x + b) * x + c) * x + d) / x.size
    return [float(np.sum(seed * x**power)) for power in (3, 2, 1, 0)], seed * ((3 * a * x + 2 * b) * x + c)


@pytest.mark.parametrize(
    ("form", "shape", "with_x"),
    gate(
        itertools.product([returned, written, by_fields, picked], [(), (1,)], [False, True]),
        lambda case: (case[1] == ()) == case[2],
    ),
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_loop(where: str, form: Any, shape: tuple[int, ...], with_x: bool) -> None:
    m = module_of(where)
    ks = [torch.nn.Parameter(torch.full(shape, value, device=where)) for value in START]
    x = torch.linspace(-1, 1, 101, device=where, requires_grad=with_x)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for step in range(STEPS):
            form(m, ks, x).square().mean().backward()
            by_k, by_x = gradients([k.item() for k in ks], x.detach().cpu().double().numpy())
            np.testing.assert_allclose([k.grad.item() for k in ks], by_k, rtol=2e-5, err_msg=f"step {step}")
            if with_x:
                np.testing.assert_allclose(x.grad.cpu().numpy(), by_x, rtol=2e-4, atol=1e-7)
                x.grad = None
            with torch.no_grad():
                for k in ks:
                    k -= 0.1 * k.grad
                    k.grad = None


def test_pairs(where: str) -> None:
    """The same with gradients that the caller attaches, and forward mode between the backward calls."""
    m = module_of(where)
    x = torch.linspace(-1, 1, 101, device=where)
    by_k, _ = gradients(list(START), x.cpu().double().numpy())
    seed = 2 * m.cubic(*START, x) / x.numel()
    for _ in range(STEPS):
        pairs = [spy.diff_pair(torch.tensor([v], device=where), torch.zeros(1, device=where)) for v in START]
        m.cubic.bwds(*pairs, x, _result=spy.diff_pair(None, seed))
        np.testing.assert_allclose([pair.grad.item() for pair in pairs], by_k, rtol=2e-5)
        tangents = [spy.diff_pair(torch.tensor([v], device=where), torch.ones(1, device=where)) for v in START]
        pushed = spy.diff_pair(torch.empty_like(x), torch.empty_like(x))
        m.cubic.fwds(*tangents, x, _result=pushed)
        np.testing.assert_allclose(pushed.grad.cpu(), ((x + 1) * x * x + x + 1).cpu(), rtol=1e-5)


@pytest.mark.parametrize("wanted", [False, True])
def test_numbers_of_the_host_beside_a_gpu(where: str, wanted: bool) -> None:
    """They are moved, and so are their gradients, those of the check included."""
    m = module_of(where)
    ks = [torch.tensor(value, requires_grad=wanted or i > 0) for i, value in enumerate(START)]
    x = torch.linspace(-1, 1, 101, device=where)
    by_k, _ = gradients(list(START), x.cpu().double().numpy())
    for _ in range(2):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            m.cubic(*ks, x).square().mean().backward()
        for k, expected in zip(ks, by_k, strict=True):
            assert k.grad is None or k.grad.item() == pytest.approx(expected, rel=2e-5)
            assert (k.grad is not None) == k.requires_grad
            k.grad = None


IN_PLACE = """
[Differentiable] void evens(int i, IRWTensor<float, 1> x) { x[2 * i] = x[2 * i] * x[2 * i]; }
[Differentiable] void twice(int i, IRWTensor<float, 1> x) { x[i] = x[i] * x[i]; x[i] = 3 * x[i] * x[i]; }
[Differentiable] void split(float x, out float a, out float b) { a = x * x; b = 3 * x; }
"""


def test_what_one_call_does_not_say_is_no_alarm(where: str) -> None:
    """Tensors that the function reads and writes, of which it leaves some alone, and references that many invocations write."""
    device = module_of(where).device
    m = spy.Module.load_from_source(device, "checked_in_place", IN_PLACE)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name in ("evens", "twice"):
            leaf = torch.arange(5.0, device=where).add(1).requires_grad_()
            x = leaf * 1
            m[name](spy.grid((3,)), x)
            x.sum().backward()
        tensor = spy.Tensor.from_numpy(device, np.float32([1, 2, 3])).with_grads()
        a = spy.Tensor.zeros(device, (3,), "float").with_grads()
        a.grad.copy_from_numpy(np.ones(3, np.float32))
        m.split.bwds(tensor, a, spy.floatRef())
        np.testing.assert_allclose(tensor.grad.to_numpy(), [2, 4, 6])
