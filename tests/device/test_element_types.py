"""One buffer under two element types: what is stored through one is read through the other."""

from __future__ import annotations

import numpy as np
import pytest
from device_kernels import RW

import slangpy as spy

pytestmark = pytest.mark.needs_kernels

TWO = 0x40000000
"""The bits of 2.0f."""
BUFFERS = {
    "floats": ("RWStructuredBuffer<float> b", "b[0] = 2.0;", TWO),
    "vectors": ("RWStructuredBuffer<float4> b", "b[0] = float4(2.0);", TWO),
    "structs": ("RWStructuredBuffer<Pair> b", "Pair p = { 2.0, 1.0 }; b[0] = p;", TWO),
    "fields": ("RWStructuredBuffer<Pair> b", "b[0].x = 2.0;", TWO),
    "doubles": ("RWStructuredBuffer<uint64_t> b", "b[0] = 7;", 7),
    "bytes": ("RWByteAddressBuffer b", "b.Store<float>(0, 2.0);", TWO),
}
POINTERS = {
    "floats": ("float* b", "b[0] = 2.0;", TWO),
    "vectors": ("float4* b", "b[0] = float4(2.0);", TWO),
    "fields": ("Pair* b", "b.x = 2.0;", TWO),
    "halves": ("uint16_t* b", "b[1] = 7;", 7 << 16 | 1),
}


def module(device: spy.Device, name: str, forms: dict[str, tuple[str, str, int]], first: str) -> spy.Module:
    functions = (
        f"uint {form}({first}, {parameter}) {{ a[0] = 1; {store} return a[0]; }}\n"
        for form, (parameter, store, _) in forms.items()
    )
    return spy.Module.load_from_source(device, name, "struct Pair { float x, y; }\n" + "".join(functions))


def test_buffers(device: spy.Device) -> None:
    if device.type is spy.DeviceType.vulkan:
        pytest.skip("Vulkan bindings of one buffer are not for this")
    functions = module(device, "two_types_of_buffers", BUFFERS, "RWStructuredBuffer<uint> a")
    data = device.create_buffer(size=64, usage=RW)
    assert {form: getattr(functions, form)(data, data) for form in BUFFERS} == {
        form: bits for form, (_, _, bits) in BUFFERS.items()
    }


def test_pointers(device: spy.Device) -> None:
    if device.type is spy.DeviceType.d3d12:
        pytest.skip("HLSL has no pointers")
    functions = module(device, "two_types_of_pointers", POINTERS, "uint* a")
    data = device.create_buffer(size=64, usage=RW)
    address = data.device_address
    assert {form: getattr(functions, form)(address, address) for form in POINTERS} == {
        form: bits for form, (_, _, bits) in POINTERS.items()
    }


def test_arguments_of_any_size() -> None:
    """Small arguments are copied, large ones read where they lie: beyond 256 bytes for a thread, 4096 for a call."""
    device = spy.Device(type="cpu")
    source = "".join(
        f"float sum{n}(double v[{n}], int i) {{ float s = 0; "
        f"for (int k = 0; k < {n}; k++) s += float(v[k]) * (k + i); return s; }}\n"
        for n in (3, 40, 520)
    )
    functions = spy.Module.load_from_source(device, "arguments_of_any_size", source)
    for n in (3, 40, 520):  # 24, 320 and 4160 bytes; the C++ compiler takes long for arrays of many elements
        values = np.arange(n, dtype=np.float32) % 7
        got = getattr(functions, f"sum{n}")(values.tolist(), np.arange(5, dtype=np.int32), _result="numpy")
        np.testing.assert_allclose(got, [(values * (np.arange(n) + i)).sum() for i in range(5)], rtol=1e-5)
