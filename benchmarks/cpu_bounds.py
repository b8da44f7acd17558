"""What checked indices cost on the CPU device: the same calls with and without, alternating in one run.

    python benchmarks/cpu_bounds.py [--seconds 2]

Elementwise calls are not checked: their indices are in range by construction. Inputs are random; results are compared.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import slangpy as spy

SOURCE = """
import slangpy;
float polynomial(float a, float x) { return a * x * x + x; }
float3 turned(float3x3 m, float3 v) { return mul(m, v); }
float row_sum(int i, Tensor<float, 2> x)
{
    float s = 0;
    for (int k = 0; k < x.shape[1]; k++)
        s += x[i, k];
    return s;
}
float gather(Tensor<float, 1> x, int i) { return x[i]; }
void stencil(int2 p, Tensor<float, 2> x, RWTensor<float, 2> y)
{
    if (p.x < 1 || p.y < 1 || p.x >= int(x.shape[0]) - 1 || p.y >= int(x.shape[1]) - 1)
        return;
    y[p] = 0.25f * (x[p.x - 1, p.y] + x[p.x + 1, p.y] + x[p.x, p.y - 1] + x[p.x, p.y + 1]);
}
float layer(Tensor<float, 1> w, float x[8])
{
    float y = 0;
    for (int k = 0; k < 8; k++)
        y += w[k] * x[k];
    return y;
}

[shader("compute")] [numthreads(64, 1, 1)]
void scaled(uint3 t: SV_DispatchThreadID, uniform uint n, StructuredBuffer<float> a, RWStructuredBuffer<float> b)
{
    if (t.x < n)
        b[t.x] = a[t.x] * 2 + 1;
}
"""
COUNT = 1 << 22


def cases(device: Any) -> dict[str, tuple[Callable[[], Any], Callable[[], np.ndarray]]]:
    """Calls, and what they have computed."""
    rng = np.random.default_rng(1)
    m = spy.Module.load_from_source(device, "cpu_bounds", SOURCE)

    def tensor(*shape: int, dtype: str = "float") -> Any:
        return spy.Tensor.from_numpy(device, rng.random(shape, np.float32), target_slang_dtype=dtype)

    x, matrix = tensor(COUNT), rng.random((3, 3), np.float32)
    v, image = tensor(COUNT // 4, 3, dtype="float3"), tensor(2048, 2048)
    index = spy.Tensor.from_numpy(device, rng.integers(0, 1 << 20, COUNT).astype(np.int32))
    weights, inputs = tensor(8), tensor(COUNT // 8, 8, dtype="float[8]")
    out, rows, turned = tensor(COUNT), tensor(2048), tensor(COUNT // 4, 3, dtype="float3")
    smooth, sums = spy.Tensor.zeros(device, (2048, 2048), "float"), tensor(COUNT // 8)
    usage = spy.BufferUsage.shader_resource | spy.BufferUsage.unordered_access
    a = device.create_buffer(struct_size=4, usage=usage, data=rng.random(COUNT, np.float32))
    b = device.create_buffer(size=4 * COUNT, struct_size=4, usage=usage)
    kernel = device.create_compute_kernel(
        m.session.link_program([m.device_module], [m.device_module.entry_point("scaled")])
    )
    transform = spy.float3x3(matrix.ravel().tolist())
    grid, lines = spy.grid((2048, 2048)), spy.grid((2048,))
    return {
        "elementwise": (lambda: m.polynomial(2.0, x, _result=out), out.to_numpy),
        "matrix times vector": (lambda: m.turned(transform, v, _result=turned), turned.to_numpy),
        "row sums": (lambda: m.row_sum(lines, image, _result=rows), rows.to_numpy),
        "gather": (lambda: m.gather(x, index, _result=out), out.to_numpy),
        "stencil": (lambda: m.stencil(grid, image, smooth), smooth.to_numpy),
        "dense layer": (lambda: m.layer(weights, inputs, _result=sums), sums.to_numpy),
        "compute kernel": (lambda: kernel.dispatch([COUNT, 1, 1], n=COUNT, a=a, b=b), b.to_numpy),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=2.0)
    options = parser.parse_args()
    checked = cases(spy.Device(type=spy.DeviceType.cpu))
    plain = cases(spy.Device(spy.DeviceDesc(type=spy.DeviceType.cpu, bounds_checks=False)))
    print(f"{'call':22} {'checked ms':>11} {'plain ms':>9} {'ratio':>6}")
    for name in checked:
        times: tuple[list[float], list[float]] = ([], [])
        end = time.perf_counter() + options.seconds
        while time.perf_counter() < end or len(times[0]) < 5:
            for kept, (call, _) in zip(times, (checked[name], plain[name]), strict=True):
                start = time.perf_counter()
                call()
                kept.append(time.perf_counter() - start)
        assert np.array_equal(checked[name][1](), plain[name][1]()), name
        with_checks, without = (statistics.median(kept) * 1e3 for kept in times)
        print(f"{name:22} {with_checks:11.2f} {without:9.2f} {with_checks / without:6.2f}")


if __name__ == "__main__":
    main()
