"""Loops that end at different times on the CPU device: the same bits with lanes and without."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import slangpy as spy
from slangpy.compiler import executable
from slangpy.compiler.text.lanes import with_lanes
from slangpy.compiler.text.short import short_text
from slangpy.config import config

pytestmark = [pytest.mark.one, pytest.mark.needs_kernels]

SOURCE = """
import slangpy;
int mandelbrot(float2 c, int most)
{
    float2 z = float2(0);
    int i = 0;
    for (; i < most; i++)
    {
        z = float2(z.x * z.x - z.y * z.y, 2 * z.x * z.y) + c;
        if (dot(z, z) > 4)
            break;
    }
    return i;
}
float scene(float3 p)
{
    float3 q = abs(p) - float3(0.5);
    return min(length(max(q, 0)) + min(max(q.x, max(q.y, q.z)), 0), length(p - float3(0.6, 0.2, 0.1)) - 0.5);
}
float march(float2 c, int most)
{
    float3 direction = normalize(float3(c, 1.5));
    float t = 0, glow = 0;
    for (int i = 0; i < most; i++)
    {
        float h = scene(float3(0, 0, -3) + direction * t);
        if (h < 0.001)
            return t + glow;
        if (h < 0.1)
            glow += 0.01;
        t += h;
        if (t > 10)
            return -1 - glow;
    }
    return -2;
}
float escape(float2 c, int most)
{
    float x = c.x, y = c.y, sum = 0;
    int n = 0;
    while (n < most)
    {
        n++;
        float r = x * x + y * y;
        if (r < 0.01) { x += 0.3; continue; }
        if (x < 0) { x = -x; sum += 1; }
        else if (y < 0) { y = -y; sum += 0.5; if (sum > 20) break; }
        float next = x * x - y * y - 0.7;
        y = 2 * x * y + 0.27;
        x = next;
        if (r > 16)
            break;
        sum += r;
    }
    return sum + n;
}
int collatz(int start, int most)
{
    int n = start, steps = 0, odd = 0;
    while (n != 1 && n != 0 && steps < most)
    {
        bool is_odd = (n & 1) != 0;
        for (int k = 0; k < (n & 3); k++)
            odd += is_odd ? n % (k + 2) : 100 / (n + k);
        n = is_odd ? 3 * n + 1 : n >> 1;
        steps++;
    }
    return steps * 1000 + odd;
}
float guarded(int start, int most, Tensor<float, 1> table)
{
    float sum = 0;
    for (int i = start; i < most; i += 3)
    {
        if (i < 0)
            continue;
        if (i >= int(table.shape[0]))
            return sum;
        sum = sum * 0.5 + sin(table[i]);
    }
    return -sum;
}
int counted(int start, int most, RWTensor<int, 1> seen)
{
    int n = start;
    for (; n < most; n += 7)
        seen[n & 3] = n;
    return n;
}
"""


@pytest.fixture(scope="module")
def results() -> Iterator[dict[str, list[np.ndarray]]]:
    """By function, without lanes and with."""
    rng = np.random.default_rng(3)
    points = rng.uniform(-2, 2, (333, 2)).astype(np.float32)
    points[:3] = [[np.nan, 0], [np.inf, 1], [0, 0]]
    starts, table = rng.integers(-50, 400, 333).astype(np.int32), rng.normal(size=61).astype(np.float32)
    found: dict[str, list[np.ndarray]] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(config, "cache_enabled", False)
        patch.setattr(executable, "compile_kernel", compile_strictly)
        for lanes in (False, True):
            patch.setattr(config, "cpu_lanes", lanes)
            device = spy.Device(type=spy.DeviceType.cpu)
            module = spy.Module.load_from_source(device, "lanes", SOURCE)
            for name in ("mandelbrot", "march", "escape"):
                found.setdefault(name, []).append(getattr(module, name)(points, 100, _result="numpy"))
            found.setdefault("collatz", []).append(module.collatz(starts, 60, _result="numpy"))
            tensor = spy.Tensor.from_numpy(device, table)
            found.setdefault("guarded", []).append(module.guarded(starts, 90, tensor, _result="numpy"))
            seen = spy.Tensor.from_numpy(device, np.zeros(4, np.int32))
            found.setdefault("counted", []).append(module.counted(starts, 90, seen, _result="numpy"))
            device.close()
    yield found


TAKEN: list[str] = []


def compile_strictly(device: spy.Device, text: bytes, entry_point: str, label: str, **options: object) -> bytes:
    """As usual, but what has lanes has to compile."""
    made = with_lanes(text) if config.cpu_lanes else None
    if made is not None:
        TAKEN.append(label.split("::")[-1])
    short = short_text(made or text)
    assert short is not None
    return device.compile(short, entry_point, label=label, **options)


@pytest.mark.parametrize("name", ["mandelbrot", "march", "escape", "collatz", "guarded", "counted"])
def test_same_bits(results: dict[str, list[np.ndarray]], name: str) -> None:
    plain, lanes = results[name]
    assert plain.tobytes() == lanes.tobytes()
    assert len(np.unique(plain)) > 12


def test_what_has_lanes(results: dict[str, list[np.ndarray]]) -> None:
    """Functions that index a tensor, or store, are left as they are."""
    assert TAKEN == ["mandelbrot", "march", "escape", "collatz"]


def test_values(results: dict[str, list[np.ndarray]]) -> None:
    """Against NumPy."""
    rng = np.random.default_rng(3)
    c = rng.uniform(-2, 2, (333, 2)).astype(np.float32)[3:].astype(np.float64) @ [1, 1j]
    z, count, left = np.zeros_like(c), np.zeros(c.shape, int), np.ones(c.shape, bool)
    for _ in range(100):
        z[left] = z[left] ** 2 + c[left]
        left &= abs(z) <= 2
        count += left
    assert np.mean(results["mandelbrot"][1][3:] == count) > 0.97, "rounding moves few"
