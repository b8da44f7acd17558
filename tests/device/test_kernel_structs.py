"""Whole structs copied by raw kernels: between buffers, from uniforms, constant buffers and parameter blocks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from device_kernels import RW, kernel

import slangpy as spy

pytestmark = pytest.mark.needs_kernels

SOURCE = """
struct Inner { float2 v; int n; }
struct Item { float a; Inner inner[2]; float3x2 m; int64_t q; bool b; half h; uint16_t s; uint8_t c; double d; }
ParameterBlock<Item> block;
Item made(Item from) { Item i = from; i.a = -i.a; return i; }
[shader("compute")] [numthreads(1, 1, 1)]
void main(StructuredBuffer<Item> x, RWStructuredBuffer<Item> y, uniform Item u, ConstantBuffer<Item> cb)
{
    y[0] = x[1];
    y[1] = u;
    y[2] = cb;
    y[3] = block;
    y[4] = made(x[0]);
    Item local[2] = {x[0], u};
    y[5] = local[y[0].inner[0].n & 1];
    y[6].inner[1] = u.inner[0];
    y[6].m = cb.m;
}"""


def item(seed: int) -> dict[str, Any]:
    r = np.random.default_rng(seed)
    inner = [{"v": [float(x) for x in r.integers(-9, 9, 2)], "n": int(r.integers(0, 9))} for _ in range(2)]
    return {
        "a": float(r.integers(-9, 9)), "inner": inner, "m": r.integers(-9, 9, (3, 2)).astype(float).tolist(),
        "q": int(r.integers(-(2**40), 2**40)), "b": bool(r.integers(0, 2)), "h": float(r.integers(0, 99)) / 4,
        "s": int(r.integers(0, 2**16)), "c": int(r.integers(0, 2**8)), "d": float(r.random()),
    }  # fmt: skip


def plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: plain(field) for name, field in value.items()}
    if isinstance(value, (bool, int, float)):
        return value
    return value.to_numpy().tolist() if hasattr(value, "to_numpy") else [plain(v) for v in value]


def test_whole_structs(device: spy.Device) -> None:
    k = kernel(device, SOURCE)
    layout = k.program.layout.get_type_layout(k.program.layout.find_type_by_name("StructuredBuffer<Item>"))
    values = [item(seed) for seed in range(5)]
    x = device.create_buffer(element_count=2, resource_type_layout=layout, usage=RW)
    y = device.create_buffer(element_count=7, resource_type_layout=layout, usage=RW)
    cursor = spy.BufferCursor(layout.element_type_layout, x)
    for i in range(2):
        cursor[i].write(values[i])
    cursor.apply()
    k.dispatch(1, x=x, y=y, u=values[2], cb=values[3], vars={"block": values[4]})
    got = [plain(element.read()) for element in spy.BufferCursor(layout.element_type_layout, y)]
    assert got[0] == values[1] and got[1] == values[2] and got[2] == values[3] and got[3] == values[4]
    assert got[4] == {**values[0], "a": -values[0]["a"]}
    assert got[5] == (values[2] if values[1]["inner"][0]["n"] & 1 else values[0])
    assert got[6]["inner"][1] == values[2]["inner"][0] and got[6]["m"] == values[3]["m"]
