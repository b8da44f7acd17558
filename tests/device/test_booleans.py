"""Numbers as conditions: true where they are not 0, nan included."""

from __future__ import annotations

import numpy as np
import pytest
from device_kernels import RW

import slangpy as spy

pytestmark = pytest.mark.needs_kernels

TYPES = {"double": np.float64, "float": np.float32, "int64_t": np.int64, "uint": np.uint32}
KERNEL = """
RWStructuredBuffer<double> numbers;
RWStructuredBuffer<uint> results;
[shader("compute")] [numthreads(1, 1, 1)] void main(uint3 id : SV_DispatchThreadID)
{
    results[id.x] = bool(numbers[id.x]) ? 1 : 2;
}
"""


@pytest.mark.parametrize("name", TYPES)
def test_conversions(device: spy.Device, name: str) -> None:
    if device.type is spy.DeviceType.d3d12 and name == "double":
        pytest.skip("not every device has doubles")
    source = f"""
    typealias T = {name};
    int f(T x)
    {{
        int r = bool(x) ? 1 : 0;
        if (bool(x)) r += 2;
        if (!bool(x)) r += 4;
        if (bool(x) && x > T(0)) r += 8;
        bool3 v = bool3(vector<T, 3>(x, T(1), T(0)));
        return r + (v.x ? 16 : 0) + (v.y ? 32 : 0) + (v.z ? 64 : 0);
    }}
    """
    module = spy.Module.load_from_source(device, f"booleans_{name}", source)
    numbers = [0, 1, 2, 3] if name == "uint" else [0, 1, -1, 5]
    if name == "double":
        numbers += [-0.0, 1e-300, np.nan, np.inf]
    x = np.array(numbers, TYPES[name])
    expected = [1 + 2 + 16 + 32 + (8 if v > 0 else 0) if v != 0 else 4 + 32 for v in x]
    assert module.f(x, _result="numpy").tolist() == expected


@pytest.mark.parametrize("level", ["default", "none"])
def test_conversion_at_each_level_of_optimization(device: spy.Device, level: str) -> None:
    if device.type is spy.DeviceType.d3d12:
        pytest.skip("not every device has doubles")
    module = device.load_module_from_source(f"booleans_{level}", KERNEL)
    options = {"optimization": getattr(spy.SlangOptimizationLevel, level)}
    program = device.link_program([module], [module.entry_point("main")], link_options=options)
    numbers = device.create_buffer(data=np.array([0.0, 1e-300, np.nan, -0.0]), usage=RW)
    results = device.create_buffer(data=np.zeros(4, np.uint32), usage=RW)
    device.create_compute_kernel(program).dispatch([4, 1, 1], vars={"numbers": numbers, "results": results})
    assert results.to_numpy().view(np.uint32).tolist() == [2, 1, 1, 2]
