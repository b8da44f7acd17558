"""Kernels of divergent.slang in numba, without fast arithmetic and on one thread, for cpu_divergent.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit

F = np.float32


@njit
def mandelbrot(x: Any, y: Any, most: int, out: Any) -> None:
    for k in range(x.size):
        a, b, i = F(0), F(0), 0
        while i < most:
            a, b = a * a - b * b + x[k], F(2) * a * b + y[k]
            if a * a + b * b > F(4):
                break
            i += 1
        out[k] = i


@njit(inline="always")
def scene(x: Any, y: Any, z: Any) -> Any:
    a, b, c = abs(x) - F(0.5), abs(y) - F(0.5), abs(z) - F(0.5)
    u, v, w = max(a, F(0)), max(b, F(0)), max(c, F(0))
    box = np.sqrt(u * u + v * v + w * w) + min(max(a, max(b, c)), F(0))
    x, y, z = x - F(0.6), y - F(0.2), z - F(0.1)
    return min(box, np.sqrt(x * x + y * y + z * z) - F(0.5))


@njit
def march(x: Any, y: Any, most: int, out: Any) -> None:
    for k in range(x.size):
        scale = F(1) / np.sqrt(x[k] * x[k] + y[k] * y[k] + F(2.25))
        dx, dy, dz = x[k] * scale, y[k] * scale, F(1.5) * scale
        t, glow, found = F(0), F(0), F(-2)
        for _ in range(most):
            h = scene(dx * t, dy * t, F(-3) + dz * t)
            if h < F(0.001):
                found = t + glow
                break
            if h < F(0.1):
                glow += F(0.01)
            t += h
            if t > F(10):
                found = F(-1) - glow
                break
        out[k] = found


@njit
def escape(c: Any, d: Any, most: int, out: Any) -> None:
    for k in range(c.size):
        x, y, total, n = c[k], d[k], F(0), 0
        while n < most:
            n += 1
            r = x * x + y * y
            if r < F(0.01):
                x += F(0.3)
                continue
            if x < 0:
                x = -x
                total += F(1)
            elif y < 0:
                y = -y
                total += F(0.5)
                if total > F(20):
                    break
            x, y = x * x - y * y - F(0.7), F(2) * x * y + F(0.27)
            if r > F(16):
                break
            total += r
        out[k] = total + F(n)


def runs(points: np.ndarray, steps: dict[str, int]) -> dict[str, Callable[[], Any]]:
    x, y = np.ascontiguousarray(points[:, 0]), np.ascontiguousarray(points[:, 1])

    def forward(function: Callable[..., None]) -> Callable[[], Any]:
        out = np.zeros(x.size, np.float32)

        def run() -> Any:
            function(x, y, steps[function.__name__], out)
            return out

        return run

    return {f.__name__: forward(f) for f in (mandelbrot, march, escape)}
