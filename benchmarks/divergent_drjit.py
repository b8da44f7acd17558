"""Kernels of divergent.slang in Dr.Jit's LLVM backend, for cpu_divergent.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import drjit as dr
import numpy as np
from drjit.llvm import Array2f, Array3f, Bool, Float, Int, TensorXf, Texture2f
from drjit.llvm.ad import Float as Tracked, Int as TrackedInt


@dr.syntax
def mandelbrot(x: Any, y: Any, most: int) -> Any:
    a, b, i, left = dr.zeros(Float, dr.width(x)), dr.zeros(Float, dr.width(x)), dr.zeros(Int, dr.width(x)), dr.full(Bool, True, dr.width(x))
    while left & (i < most):
        a, b = a * a - b * b + x, 2 * a * b + y
        left = a * a + b * b <= 4
        i = dr.select(left, i + 1, i)
    return i


def scene(p: Any) -> Any:
    q = abs(p) - 0.5
    box = dr.norm(dr.maximum(q, 0)) + dr.minimum(dr.maximum(q.x, dr.maximum(q.y, q.z)), 0)
    return dr.minimum(box, dr.norm(p - Array3f(0.6, 0.2, 0.1)) - 0.5)


@dr.syntax
def march(x: Any, y: Any, most: int) -> Any:
    direction = dr.normalize(Array3f(x, y, 1.5))
    t, glow, found = dr.zeros(Float, dr.width(x)), dr.zeros(Float, dr.width(x)), dr.full(Float, -2, dr.width(x))
    i, left = dr.zeros(Int, dr.width(x)), dr.full(Bool, True, dr.width(x))
    while left & (i < most):
        h = scene(Array3f(0, 0, -3) + direction * t)
        if h < 0.001:
            found = t + glow
            left = Bool(False)
        else:
            if h < 0.1:
                glow += 0.01
            t += h
            if t > 10:
                found = -1 - glow
                left = Bool(False)
        i += 1
    return found


@dr.syntax
def escape(c: Any, d: Any, most: int) -> Any:
    x, y, total, n = Float(c), Float(d), dr.zeros(Float, dr.width(c)), dr.zeros(Int, dr.width(c))
    left = dr.full(Bool, True, dr.width(c))
    while left & (n < most):
        n += 1
        r = x * x + y * y
        if r < 0.01:
            x += 0.3
        else:
            if x < 0:
                x = -x
                total += 1
            elif y < 0:
                y = -y
                total += 0.5
                left = total <= 20
            if left:
                step = x * x - y * y - 0.7
                y = 2 * x * y + 0.27
                x = step
                if r > 16:
                    left = Bool(False)
                else:
                    total += r
    return total + Float(n)


@dr.syntax
def shade(x: Any, y: Any, most: int, picture: Any) -> Any:
    direction = dr.normalize(Array3f(0.1 * x, 0.1 * y, 1))
    t, id, i = dr.zeros(Float, dr.width(x)), dr.zeros(Int, dr.width(x)), dr.zeros(Int, dr.width(x))
    hit, left = dr.full(Bool, False, dr.width(x)), dr.full(Bool, True, dr.width(x))
    while left & (i < most):
        p = Array3f(x, y, -3) + direction * t
        a, b = dr.norm(p) - 0.5, dr.norm(p - Array3f(0.8, 0.1, 0)) - 0.3
        id = dr.select(a < b, Int(0), Int(1))
        d = dr.minimum(a, b)
        if d < 0.001:
            hit = Bool(True)
            left = Bool(False)
        else:
            t += d
            left = t <= 10
        i += 1
    first = picture.eval(Array2f(x, y), hit & (id == 0))[0]
    second = t + picture.eval(Array2f(y, x), hit & (id != 0))[1]
    return dr.select(hit, dr.select(id == 0, first, second), t)


@dr.syntax
def bumps(x: Any, y: Any, most: int, picture: Any) -> Any:
    direction, start = dr.normalize(Array3f(0.1 * x, 0.1 * y, 1)), Array3f(x, y, -3)
    t, i, left = dr.zeros(Float, dr.width(x)), dr.zeros(Int, dr.width(x)), dr.full(Bool, True, dr.width(x))
    while left & (i < most):
        p = start + direction * t
        d = dr.norm(p) - 0.8 - 0.1 * picture.eval(Array2f(p.x, p.y), left)[0]
        left = (d >= 0.001) & (t <= 10)
        if left:
            t += 0.7 * d
            i += 1
    return t + Float(i)


@dr.syntax
def iterated(x: Any, most: int) -> Any:
    y, i, left = Tracked(x), dr.zeros(TrackedInt, dr.width(x)), dr.full(dr.mask_t(x), True, dr.width(x))
    while dr.hint(left & (i < most), max_iterations=32):
        y = y * y * 0.5 + x
        left = y <= 4
        i += 1
    return y


def gradient(x: np.ndarray, most: int) -> Callable[[], Any]:
    def run() -> Any:
        at = Tracked(x)
        dr.enable_grad(at)
        dr.backward(iterated(at, most))
        found = dr.grad(at)
        dr.eval(found)
        dr.sync_thread()
        return found

    return run


def forward(function: Callable[..., Any], points: np.ndarray, *others: Any) -> Callable[[], Any]:
    x, y = Float(np.ascontiguousarray(points[:, 0])), Float(np.ascontiguousarray(points[:, 1]))

    def run() -> Any:
        found = function(x, y, *others)
        dr.eval(found)
        dr.sync_thread()
        return found

    return run


def runs(points: np.ndarray, steps: dict[str, int], picture: np.ndarray, threads: int) -> dict[str, Callable[[], Any]]:
    dr.set_thread_count(threads)
    texture = Texture2f(TensorXf(picture), wrap_mode=dr.WrapMode.Repeat)
    found = {f.__name__: forward(f, points, steps[f.__name__]) for f in (mandelbrot, march, escape)}
    found["shade"] = forward(shade, points, steps["shade"], texture)
    found["bumps"] = forward(bumps, points, steps["bumps"], texture)
    found["iterated.bwds"] = gradient(np.ascontiguousarray(points[:, 0]), steps["iterated.bwds"])
    return found
