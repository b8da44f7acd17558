"""F: what the CPU device cannot run is refused with the name of the operation; what it can run gives other devices' numbers."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

import numpy as np
import pytest

import slangpy as spy

RW = spy.BufferUsage.shader_resource | spy.BufferUsage.unordered_access
ENTRY = '[shader("compute")] [numthreads(1, 1, 1)] void go(uint3 t : SV_DispatchThreadID, '


@pytest.fixture
def cpu(device: spy.Device) -> Iterator[spy.Device]:
    if device.info.type is not spy.DeviceType.cpu:
        pytest.skip("about the CPU device")
    yield device


def kernel(device: spy.Device, body: str) -> spy.ComputeKernel:
    module = device.load_module_from_source(f"f_{zlib.crc32(body.encode())}", ENTRY + body)
    return device.create_compute_kernel(device.link_program([module], [module.entry_point("go")]))


REFUSED = {
    "cudaBlockIdx": "RWStructuredBuffer<uint> y) { y[t.x] = cudaBlockIdx().x; }",
    "cudaThreadIdx": "RWStructuredBuffer<uint> y) { y[t.x] = cudaThreadIdx().x; }",
    "InterlockedAdd": "RWByteAddressBuffer y) { uint old; y.InterlockedAdd(0, 1, old); }",
    "InterlockedMax": "RWByteAddressBuffer y) { uint old; y.InterlockedMax(0, 1, old); }",
    "CommittedStatus": "RWStructuredBuffer<uint> y) { RayQuery<0> q; y[t.x] = q.CommittedStatus(); }",
}


@pytest.mark.parametrize("name", REFUSED)
def test_kernels_are_refused_by_operation(cpu: spy.Device, name: str) -> None:
    with pytest.raises(RuntimeError, match=rf"function 'go' uses {name}, which the cpu device cannot run; .*cuda"):
        kernel(cpu, REFUSED[name])


CALLS = """
uint block(int i) { return cudaBlockIdx().x + i; }
uint thread(int i) { return cudaThreadIdx().x + i; }
void count(int i, RWByteAddressBuffer y) { uint old; y.InterlockedAdd(0, i, old); }
int fine(int i) { return 2 * i; }
"""


@pytest.mark.parametrize(
    ("name", "operation"), [("block", "cudaBlockIdx"), ("thread", "cudaThreadIdx"), ("count", "InterlockedAdd")]
)
def test_calls_are_refused_by_operation(cpu: spy.Device, name: str, operation: str) -> None:
    """The function of the user is named, and others of the module stay callable."""
    module = spy.Module.load_from_source(cpu, "f_calls", CALLS)
    more = [cpu.create_buffer(size=16, usage=RW)] if name == "count" else []
    with pytest.raises(RuntimeError, match=rf"{name}: the function uses {operation}, which the cpu device cannot run"):
        getattr(module, name)(spy.grid((3,)), *more)
    assert module.fine(spy.grid((3,)), _result="numpy").tolist() == [0, 2, 4]


COUNTS = """RWStructuredBuffer<uint> y, Texture2D<float4> image, SamplerState smp)
{
    uint before;
    InterlockedAdd(y[0], 3u, before);
    InterlockedMax(y[1], 7u);
    y[2] = before;
    y[3] = uint(image.SampleLevel(smp, float2(0.5), 0).x * 100);
}"""


@pytest.mark.needs_kernels
def test_textures_samplers_and_atomics(device: spy.Device) -> None:
    """Those of buffers of numbers, images and samplers are as on other devices."""
    image = device.create_texture(
        format=spy.Format.rgba32_float,
        width=2,
        height=2,
        usage=spy.TextureUsage.shader_resource,
        data=np.repeat(np.array([0.0, 1.0, 1.0, 0.0], np.float32), 4).reshape(2, 2, 4),
    )
    y = device.create_buffer(size=16, struct_size=4, usage=RW, data=np.array([4, 2, 0, 0], np.uint32))
    kernel(device, COUNTS).dispatch([1, 1, 1], y=y, image=image, smp=device.create_sampler())
    assert y.to_numpy().view(np.uint32).tolist() == [7, 7, 4, 50]
