"""Arrays that functions copy, exchange and set to zero as a whole: what is written to one never shows in another.

The Vulkan device lets a copy take the place of its source where nothing needs both (whole_arrays.cpp)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import slangpy as spy

pytestmark = pytest.mark.needs_kernels

SOURCE = """
struct Held { float of[6]; int used; }
float filled(float x, int i, int n)
{
    float a[6] = {};
    for (int k = 0; k < 6; k++) a[(k * n + i) % 6] += x + k;
    float b[6] = a;
    for (int k = 0; k < n; k++) b[(i + k) % 6] *= 2;
    return b[0] + 10 * b[i % 6] + 100 * b[5];
}
float both(float x, int i, int n)
{
    float a[6] = {};
    for (int k = 0; k < 6; k++) a[(k * n + i) % 6] += x + k;
    float b[6] = a;
    for (int k = 0; k < n; k++) { b[(i + k) % 6] += 1; a[(i + 2 * k) % 6] += 3; }
    return a[i % 6] + 10 * b[i % 6] + 100 * a[n % 6] + 1000 * b[n % 6];
}
float looped(float x, int i, int n)
{
    float a[6] = {};
    for (int k = 0; k < 6; k++) a[k] = x + k;
    float total = 0;
    for (int k = 0; k < n; k++)
    {
        float b[6] = a;
        for (int j = 0; j < 3; j++) b[(i + j) % 6] += k + 1;
        a[(i + k) % 6] += b[(i + 1) % 6];
        total += b[(k + i) % 6];
    }
    return total + 10 * a[i % 6];
}
float branched(float x, int i, int n)
{
    float a[6] = {}, b[6] = {};
    for (int k = 0; k < 6; k++) { a[(k + n) % 6] = x + k; b[k] = 2 * k; }
    if (n % 2 == 1) { b = a; b[i % 6] += 5; }
    for (int k = 0; k < n; k++) b[(i * k) % 6] += 1;
    return b[i % 6] + 10 * b[2] + (i % 2 == 1 ? 100 * a[i % 6] : 0);
}
float exchanged(float x, int i, int n)
{
    float a[6] = {}, b[6] = {};
    for (int k = 0; k < 6; k++) { a[(k + i) % 6] = x + k; b[(k * 5) % 6] = 2 * k; }
    for (int k = 0; k < n; k++) { float t[6] = a; a = b; b = t; a[(i + k) % 6] += 1; }
    return a[i % 6] + 10 * b[i % 6] + 100 * a[0];
}
float kept(float x, int i, int n)
{
    float a[6] = {};
    for (int k = 0; k < 6; k++) a[(k * n + i) % 6] += x + k;
    float t[6] = a;
    float s = 0;
    if (i % 2 == 1) s = a[n % 6];
    for (int k = 0; k < n; k++) s += a[(i * k) % 6];
    float b[6] = t;
    for (int k = 0; k < n; k++) b[(i + k) % 6] += s;
    return b[i % 6] + 10 * b[n % 6];
}
float later(float x, int i, int n)
{
    float a[6] = {}, b[6] = {};
    for (int k = 0; k < 6; k++) a[(k * n + i) % 6] += x + k;
    float t[6] = a;
    for (int k = 0; k < n; k++) b[(i + k) % 6] += a[k % 6];
    if (i % 3 == 1) a[i % 6] += 7;
    for (int k = 0; k < n % 3; k++) a[(k + n) % 6] += b[(k + i) % 6];
    b = t;
    for (int k = 0; k < n; k++) b[(2 * k + i) % 6] += 1;
    return a[i % 6] + 10 * b[i % 6] + 100 * a[n % 6] + 1000 * b[n % 6];
}
float nested(float x, int i, int n)
{
    float a[3][2] = {};
    Held h = {};
    for (int k = 0; k < 6; k++) { a[(k * n) % 3][k % 2] += x + k; h.of[(k + i) % 6] = k; h.used++; }
    float b[3][2] = a;
    Held g = h;
    for (int k = 0; k < n; k++) { b[(i + k) % 3] = a[(i * k) % 3]; g.of[k % 6] += b[k % 3][i % 2]; }
    return b[i % 3][n % 2] + 10 * g.of[i % 6] + 100 * g.used + 1000 * h.of[n % 6];
}
float zeros(float x, int i, int n)
{
    float a[30] = {};
    int b[6][50] = {};
    for (int k = 0; k < n; k++) { a[(i * 7 + k) % 30] += x; b[(i + k) % 6][(k * 13) % 50] += k; }
    float total = 0;
    for (int k = 0; k < 30; k++) total += (k % 3 + 1) * a[k];
    for (int k = 0; k < 300; k++) total += (k % 5) * b[k / 50][k % 50];
    return total;
}
"""


def start(x: float, i: int, n: int) -> list[float]:
    a = [0.0] * 6
    for k in range(6):
        a[(k * n + i) % 6] += x + k
    return a


def filled(x: float, i: int, n: int) -> float:
    b = start(x, i, n)
    for k in range(n):
        b[(i + k) % 6] *= 2
    return b[0] + 10 * b[i % 6] + 100 * b[5]


def both(x: float, i: int, n: int) -> float:
    a = start(x, i, n)
    b = list(a)
    for k in range(n):
        b[(i + k) % 6] += 1
        a[(i + 2 * k) % 6] += 3
    return a[i % 6] + 10 * b[i % 6] + 100 * a[n % 6] + 1000 * b[n % 6]


def looped(x: float, i: int, n: int) -> float:
    a, total = [x + k for k in range(6)], 0.0
    for k in range(n):
        b = list(a)
        for j in range(3):
            b[(i + j) % 6] += k + 1
        a[(i + k) % 6] += b[(i + 1) % 6]
        total += b[(k + i) % 6]
    return total + 10 * a[i % 6]


def branched(x: float, i: int, n: int) -> float:
    a, b = [0.0] * 6, [2.0 * k for k in range(6)]
    for k in range(6):
        a[(k + n) % 6] = x + k
    if n % 2 == 1:
        b = list(a)
        b[i % 6] += 5
    for k in range(n):
        b[(i * k) % 6] += 1
    return b[i % 6] + 10 * b[2] + (100 * a[i % 6] if i % 2 == 1 else 0)


def exchanged(x: float, i: int, n: int) -> float:
    a, b = [0.0] * 6, [0.0] * 6
    for k in range(6):
        a[(k + i) % 6] = x + k
        b[(k * 5) % 6] = 2 * k
    for k in range(n):
        a, b = b, a
        a[(i + k) % 6] += 1
    return a[i % 6] + 10 * b[i % 6] + 100 * a[0]


def kept(x: float, i: int, n: int) -> float:
    a = start(x, i, n)
    s = a[n % 6] if i % 2 == 1 else 0.0
    for k in range(n):
        s += a[(i * k) % 6]
    b = list(a)
    for k in range(n):
        b[(i + k) % 6] += s
    return b[i % 6] + 10 * b[n % 6]


def later(x: float, i: int, n: int) -> float:
    a, b = start(x, i, n), [0.0] * 6
    t = list(a)
    for k in range(n):
        b[(i + k) % 6] += a[k % 6]
    if i % 3 == 1:
        a[i % 6] += 7
    for k in range(n % 3):
        a[(k + n) % 6] += b[(k + i) % 6]
    b = t
    for k in range(n):
        b[(2 * k + i) % 6] += 1
    return a[i % 6] + 10 * b[i % 6] + 100 * a[n % 6] + 1000 * b[n % 6]


def nested(x: float, i: int, n: int) -> float:
    a, h = [[0.0, 0.0] for _ in range(3)], [0.0] * 6
    for k in range(6):
        a[(k * n) % 3][k % 2] += x + k
        h[(k + i) % 6] = k
    b, g = [list(row) for row in a], list(h)
    for k in range(n):
        b[(i + k) % 3] = list(a[(i * k) % 3])
        g[k % 6] += b[k % 3][i % 2]
    return b[i % 3][n % 2] + 10 * g[i % 6] + 600 + 1000 * h[n % 6]


def zeros(x: float, i: int, n: int) -> float:
    a, b = [0.0] * 30, [[0] * 50 for _ in range(6)]
    for k in range(n):
        a[(i * 7 + k) % 30] += x
        b[(i + k) % 6][(k * 13) % 50] += k
    return sum((k % 3 + 1) * v for k, v in enumerate(a)) + sum((k % 5) * b[k // 50][k % 50] for k in range(300))


@pytest.mark.parametrize("size", (1, 33))
@pytest.mark.parametrize("model", (filled, both, looped, branched, exchanged, kept, later, nested, zeros), ids=lambda f: f.__name__)
def test_copies(device: Any, model: Callable[[float, int, int], float], size: int) -> None:
    """Whole numbers, so that the results are exact; `n` and `i` differ from one invocation to the next."""
    module = spy.Module.load_from_source(device, "whole_arrays", SOURCE)
    rng = np.random.default_rng(size)
    x = rng.integers(-5, 6, size).astype(np.float32)
    i, n = (rng.integers(0, high, size).astype(np.int32) for high in (12, 8))
    found = getattr(module, model.__name__)(x, i, n, _result="numpy")
    expected = [model(float(a), int(b), int(c)) for a, b, c in zip(x, i, n, strict=True)]
    np.testing.assert_array_equal(found, np.asarray(expected, np.float32))


def test_gradient_with_large_records(device: Any) -> None:
    """Two nested loops record hundreds of numbers, which are handed from the forward to the backward pass."""
    source = """
    [Differentiable] float chained(float4 x, float4 y)
    {
        float total = 0;
        [MaxIters(3)] for (int i = 0; i < 3; i++)
        {
            float4 held[3] = { x, y, x * y };
            [MaxIters(3)] for (int k = 0; k < 3; k++)
                held[k] = held[k] * 0.5f + held[(k + 1) % 3] * x[i] + y[k];
            total += held[i][i] * held[2 - i][i];
        }
        return total;
    }
    """
    module = spy.Module.load_from_source(device, "whole_arrays_gradient", source)
    rng = np.random.default_rng(3)
    values = [rng.uniform(-1, 1, (5, 4)).astype(np.float32) for _ in range(2)]
    arguments = [spy.Tensor.from_numpy(device, v, target_slang_dtype="float4").with_grads() for v in values]
    weights = rng.uniform(0.5, 1, 5).astype(np.float32)
    result = spy.Tensor.from_numpy(device, np.zeros(5, np.float32)).with_grads(spy.Tensor.from_numpy(device, weights))
    module.chained.bwds(*arguments, _result=result)

    def chained(x: Any, y: Any) -> Any:
        total = 0.0
        for i in range(3):
            held = [x, y, x * y]
            for k in range(3):
                held[k] = held[k] * 0.5 + held[(k + 1) % 3] * x[:, i : i + 1] + y[:, k : k + 1]
            total = total + held[i][:, i] * held[2 - i][:, i]
        return total

    exact = [v.astype(np.float64) for v in values]
    for position, argument in enumerate(arguments):
        for column in range(4):
            step = np.zeros((5, 4))
            step[:, column] = 1e-5
            ends = [[v + sign * step if p == position else v for p, v in enumerate(exact)] for sign in (1, -1)]
            slope = (chained(*ends[0]) - chained(*ends[1])) / 2e-5 * weights
            np.testing.assert_allclose(argument.grad.to_numpy()[:, column], slope, rtol=2e-4, atol=1e-4)


def test_arrays_that_a_driver_refuses(device: Any) -> None:
    """NVIDIA's driver says VK_ERROR_UNKNOWN; the message must say why, and name the loop."""
    if device.info.type != spy.DeviceType.vulkan or not any(name in device.info.adapter_name for name in ("NVIDIA", "llvmpipe")):
        pytest.skip("NVIDIA's and Mesa's processor driver for Vulkan alone are given no such kernels")
    source = """
    [Differentiable] float deep(float3 x, int n)
    {
        [MaxIters(24)] for (int i = 0; i < n; i++)
            [MaxIters(24)] for (int k = 0; k < n; k++)
                [MaxIters(24)] for (int m = 0; m < n; m++)
                    x = sin(x.yzx * x + x.x);
        return x.x + x.y * x.z;
    }
    """
    module = spy.Module.load_from_source(device, "deep_loops", source)
    x = spy.Tensor.from_numpy(device, np.full((3, 3), 0.4, np.float32), target_slang_dtype="float3").with_grads()
    y = spy.Tensor.from_numpy(device, np.zeros(3, np.float32)).with_grads(spy.Tensor.from_numpy(device, np.ones(3, np.float32)))
    with pytest.raises(RuntimeError, match=r"bytes in variables.*lower \[MaxIters\(n\)\].*loop in line 6, in 'deep': up to 13824"):
        module.deep.bwds(x, 2, _result=y)
