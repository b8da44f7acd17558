"""Views whose elements are not neighbours, in calls of one invocation and in others that look as if all were dense."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import slangpy as spy

pytestmark = pytest.mark.needs_kernels

MANY = 33
"""Parameters: more than a variant key has room for."""
SOURCE = f"""
[Differentiable] float4 same(float4 x) {{ return x; }}
void copy(float4 x, out float4 y) {{ y = x; }}
float twice(float x) {{ return 2 * x; }}
[Differentiable] float times(float x, float y) {{ return x * y; }}
float many({", ".join(f"float p{k}" for k in range(MANY))}) {{ return {" + ".join(f"{k + 1} * p{k}" for k in range(MANY))}; }}
void many_out(float x, {", ".join(f"out float p{k}" for k in range(MANY))}) {{ {" ".join(f"p{k} = x + {k};" for k in range(MANY))} }}
"""


@pytest.fixture
def m(device: Any) -> Any:
    return spy.Module.load_from_source(device, "strided_ones", SOURCE)


def wrapped(device: Any, kind: str, base: np.ndarray) -> Any:
    if kind == "torch":
        tensor = pytest.importorskip("torch").from_numpy(base)
        return tensor.cuda() if device.info.type is spy.DeviceType.cuda else tensor
    return spy.Tensor.from_numpy(device, base) if kind == "tensor" else base


def host(value: Any) -> np.ndarray:
    if hasattr(value, "cpu"):
        value = value.cpu()
    return value.to_numpy() if isinstance(value, spy.Tensor) else np.asarray(value)


@pytest.mark.parametrize("kind", ["numpy", "tensor", "torch"])
@pytest.mark.parametrize("lead", [(1,), (1, 1), (2,), (1, 3)])
def test_one_column(device: Any, m: Any, kind: str, lead: tuple[int, ...]) -> None:
    values = np.arange(8 * int(np.prod(lead)), dtype=np.float32).reshape(*lead, 4, 2)
    for column in (0, 1):
        base = wrapped(device, kind, values.copy())
        got = m.same(base[..., column], _result="numpy")
        np.testing.assert_array_equal(got, values[..., column])
        m.copy(np.arange(4, dtype=np.float32), base[..., column])
        expected = values.copy()
        expected[..., column] = np.arange(4)
        np.testing.assert_array_equal(host(base), expected)


@pytest.mark.parametrize("kind", ["numpy", "tensor"])
def test_one_reversed(device: Any, m: Any, kind: str) -> None:
    values = np.arange(24, dtype=np.float32).reshape(1, 24)
    base = wrapped(device, kind, values.copy())
    np.testing.assert_array_equal(m.same(base[:, 12:4:-2], _result="numpy"), values[:, 12:4:-2])
    m.copy(np.float32([1, 2, 3, 4]), base[:, 12:4:-2])
    values[:, 12:4:-2] = [1, 2, 3, 4]
    np.testing.assert_array_equal(host(base), values)


def test_gradients_of_one(device: Any, m: Any) -> None:
    primal, grad, seed = (
        spy.Tensor.from_numpy(device, np.arange(8, dtype=np.float32).reshape(1, 4, 2) * k) for k in (1, 10, 100)
    )
    x = primal[..., 0].with_grads(grad_out=grad[..., 1])
    m.same.bwds(x, _result=primal[..., 1].with_grads(grad_in=seed[..., 0]))
    expected = np.arange(8, dtype=np.float32).reshape(1, 4, 2) * 10
    expected[..., 1] += np.arange(8).reshape(1, 4, 2)[..., 0] * 100
    np.testing.assert_array_equal(grad.to_numpy(), expected)


@pytest.mark.parametrize("last", [(), (1,), (40,)])
def test_more_leaves_than_the_key_holds(device: Any, m: Any, last: tuple[int, ...]) -> None:
    """Those without a class of their own stand still or advance like any other."""
    rng = np.random.default_rng(3)
    arrays = [rng.integers(0, 9, 40).astype(np.float32) for _ in range(MANY - 2)]
    arrays += [rng.integers(0, 9, last).astype(np.float32) for _ in range(2)]
    expected = sum((k + 1) * np.broadcast_to(a, 40) for k, a in enumerate(arrays))
    np.testing.assert_array_equal(m.many(*arrays, _result="numpy"), expected)
    tensors = [spy.Tensor.from_numpy(device, a) for a in arrays if a.ndim]
    np.testing.assert_array_equal(m.many(*tensors, *arrays[len(tensors) :], _result="numpy"), expected)


def test_more_outputs_than_the_key_holds(device: Any, m: Any) -> None:
    """Those at the end begin in the middle of 16 bytes, and beside them nothing is touched."""
    x = spy.Tensor.from_numpy(device, np.arange(41, dtype=np.float32))
    bases = [spy.Tensor.zeros(device, 48, float) for _ in range(MANY)]
    m.many_out(x, *(base[4 if k < 30 else 3 :][:41] for k, base in enumerate(bases)))
    for k, base in enumerate(bases):
        first = 4 if k < 30 else 3
        expected = np.zeros(48, np.float32)
        expected[first : first + 41] = np.arange(41) + k
        np.testing.assert_array_equal(base.to_numpy(), expected)


@pytest.mark.parametrize("step", [1, 2, 3, -2, 5, 6, 9])
def test_steps_within_an_element(m: Any, step: int) -> None:
    """Windows of bytes that begin within one another: kernels work on a copy, whose steps are its own.

    Bytes are such that every window is a normal number: some GPUs make others zero."""
    data = np.random.default_rng(3).integers(0x3D, 0x43, 256).astype(np.uint8)
    x = np.lib.stride_tricks.as_strided(data[60:64].view(np.float32), (7,), (step,))
    np.testing.assert_array_equal(m.twice(x, _result="numpy"), 2 * x)


def test_one_gradient_reached_in_two_orders(device: Any, m: Any) -> None:
    """The sums of a matrix and of its transpose meet in other invocations, though both are one view."""
    values = np.random.default_rng(5).integers(-4, 5, (131, 131)).astype(np.float32)
    x = spy.Tensor.from_numpy(device, values).with_grads()
    seed = spy.Tensor.from_numpy(device, np.ones((131, 131), np.float32))
    out = spy.Tensor.zeros(device, (131, 131), float).with_grads(grad_in=seed)
    m.times.map((0, 1), (1, 0)).bwds(x, x, _result=out)
    np.testing.assert_array_equal(x.grad.to_numpy(), 2 * values.T)
