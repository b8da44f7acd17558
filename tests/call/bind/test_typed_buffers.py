"""Buffer<T> and RWBuffer<T>: elements that a format says how to read and write."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import slangpy as spy

pytestmark = pytest.mark.needs_kernels

U, F = spy.BufferUsage, spy.Format

RAW = """
Buffer<float> a;
Buffer<float4> b;
RWBuffer<uint> o;
RWBuffer<float4> q;
RWStructuredBuffer<uint> counts;
[shader("compute")]
[numthreads(32, 1, 1)]
void main(uint3 t : SV_DispatchThreadID)
{
    uint i = t.x;
    if (i == 0)
    {
        a.GetDimensions(counts[0]);
        q.GetDimensions(counts[1]);
    }
    uint before = o[i];
    o[i] = before + uint(a[i] * 2) + uint(a.Load(int(i)));
    o[i] += 2;
    q[i] = b[i] * 2 + q.Load(int(i));
    q[i].y = 5;
}
"""
CALLED = """
float at(Buffer<float> values, int i) { return values[i]; }
float4 four_at(Buffer<float4> values, int i) { return values.Load(i); }
uint4 whole_at(Buffer<uint4> values, int i) { return values[i]; }
int whole_of(Buffer<int> values, int i) { return values[i]; }
uint count(Buffer<float> values) { uint n; values.GetDimensions(n); return n; }
void put(RWBuffer<float4> values, int i, float4 v) { values[i] = v; }
void add(RWBuffer<uint> values, int i, uint v) { InterlockedAdd(values[i % 2], v); }
"""


@pytest.fixture
def m(device: Any) -> Any:
    _without_cuda(device)
    return spy.Module(device.load_module_from_source("typed_buffers_called", CALLED))


def _without_cuda(device: Any) -> None:
    if device.info.type not in (spy.DeviceType.cpu, spy.DeviceType.vulkan):
        pytest.skip("typed buffers: cpu and vulkan")


def made(device: Any, data: np.ndarray, format: Any) -> Any:
    usage = U.shader_resource | U.unordered_access
    buffer = device.create_buffer(size=data.nbytes, format=format, usage=usage)
    buffer.copy_from_numpy(data)
    return buffer


def test_a_raw_kernel(device: Any) -> None:
    _without_cuda(device)
    module = device.load_module_from_source("typed_buffers_raw", RAW)
    program = device.link_program([module], [module.entry_point("main")])
    a, b = np.arange(20, dtype=np.float32), np.arange(80, dtype=np.uint8)
    o, q = np.arange(20, dtype=np.uint32), np.ones(80, np.float32)
    arguments = {
        "a": made(device, a, F.r32_float),
        "b": made(device, b, F.rgba8_unorm),
        "o": made(device, o, F.r32_uint),
        "q": made(device, q, F.rgba32_float),
        "counts": made(device, np.zeros(2, np.uint32), F.undefined),
    }
    device.create_compute_kernel(program).dispatch([32, 1, 1], vars=arguments)  # 12 threads are outside
    assert arguments["counts"].to_numpy().view(np.uint32).tolist() == [20, 20]
    assert arguments["o"].to_numpy().view(np.uint32).tolist() == (o + 3 * np.arange(20) + 2).tolist()
    expected = b.astype(np.float64).reshape(20, 4) / 255 * 2 + 1
    expected[:, 1] = 5
    got = arguments["q"].to_numpy().view(np.float32).reshape(20, 4)
    np.testing.assert_allclose(got, expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("format", "dtype", "scale"),
    [
        (F.r32_float, np.float32, 1),
        (F.r16_float, np.float16, 1),
        (F.r8_unorm, np.uint8, 255),
        (F.r16_unorm, np.uint16, 65535),
        (F.r8_snorm, np.int8, 127),
    ],
)
def test_reads_by_format(device: Any, m: Any, format: Any, dtype: Any, scale: int) -> None:
    data = np.arange(36, dtype=np.float64).astype(dtype)
    got = m.at(made(device, data, format), np.arange(40, dtype=np.int32), _result="numpy")
    expected = np.append(data.astype(np.float64) / scale, np.zeros(4))  # outside: 0
    np.testing.assert_allclose(got, expected, rtol=1e-6)


def test_whole_numbers(device: Any, m: Any) -> None:
    bytes_ = made(device, np.arange(16, dtype=np.uint8), F.rgba8_uint)
    assert [int(m.whole_at(bytes_, 2)[c]) for c in range(4)] == [8, 9, 10, 11]
    assert m.whole_of(made(device, np.array([5, -7], np.int16), F.r16_sint), 1) == -7


def test_channels_that_the_format_lacks(device: Any, m: Any) -> None:
    v = m.four_at(made(device, np.array([2, 3, 4, 5], np.float32), F.rg32_float), 1)
    assert [v.x, v.y, v.z, v.w] == [4, 5, 0, 1]


def test_counts(device: Any, m: Any) -> None:
    assert m.count(made(device, np.zeros(1, np.float32), F.r32_float)) == 1
    assert m.count(made(device, np.zeros(7, np.float32), F.r32_float)) == 7


def test_writes_by_format(device: Any, m: Any) -> None:
    target = made(device, np.zeros(16, np.uint8), F.rgba8_unorm)
    values = np.array([[0, 0.25, 1, 2], [-1, 0.75, 0.1, 1]], np.float64)
    m.put(target, np.array([1, 3], np.int32), values.astype(np.float32))
    expected = np.zeros((4, 4))
    expected[[1, 3]] = np.clip(values, 0, 1) * 255
    np.testing.assert_allclose(target.to_numpy().view(np.uint8).reshape(4, 4), expected, atol=0.51)


def test_atomics(device: Any, m: Any) -> None:
    target = made(device, np.zeros(2, np.uint32), F.r32_uint)
    m.add(target, np.arange(1000, dtype=np.int32), np.arange(1000, dtype=np.uint32))
    assert target.to_numpy().view(np.uint32).tolist() == [249500, 250000]


def test_a_buffer_without_a_format(device: Any, m: Any) -> None:
    with pytest.raises(ValueError, match="created with a format"):
        m.at(made(device, np.zeros(4, np.float32), F.undefined), 0)


def test_a_struct_of_that_name(device: Any) -> None:
    source = "struct Buffer<T> { T x; }\nfloat twice(float x) { Buffer<float> b; b.x = x; return b.x * 2; }"
    module = spy.Module(device.load_module_from_source("typed_buffers_own", source))
    assert module.twice(4.0) == 8
    source = "struct Buffer { float x; }\nfloat thrice(Buffer b) { return b.x * 3; }"
    module = spy.Module(device.load_module_from_source("typed_buffers_plain", source))
    assert module.thrice({"x": 4.0}) == 12


def test_slangs_own_type_is_refused_on_the_cpu(device: Any) -> None:
    if device.info.type != spy.DeviceType.cpu:
        pytest.skip("the cpu device alone")
    source = "float4 at(Buffer v) { return v[0]; }"
    with pytest.raises((NotImplementedError, spy.ResolveException, RuntimeError)):
        module = spy.Module(device.load_module_from_source("typed_buffers_bare", source))
        module.at(made(device, np.zeros(4, np.float32), F.rgba32_float))


def test_a_generic_struct_of_that_name(device: spy.Device) -> None:
    """The kernel of a call names the user's type, which an imported module declares."""
    source = "struct Buffer<T : __BuiltinFloatingPointType> { T x; T y; }\nfloat f(Buffer<float> b) { return b.x + 2 * b.y; }"
    assert spy.Module.load_from_source(device, "own_generic_buffer", source).f({"x": 1.0, "y": 2.0}) == 5
