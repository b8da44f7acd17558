"""Memory and order shared between a Vulkan device and CUDA (spec: native handles and CUDA interop)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from device_kernels import RW, kernel

import slangpy as spy

SHARED = RW | spy.BufferUsage.shared
DOUBLE = """
[shader("compute")] [numthreads(64, 1, 1)]
void main(uint3 tid : SV_DispatchThreadID, RWStructuredBuffer<float> x, uniform uint n) { if (tid.x < n) x[tid.x] *= 2; }
"""
FUNCTIONS = """
[Differentiable] float poly(float a, float x) { return a * x * x + x; }
void scale(inout float x, float by) { x *= by; }
int3 shift(int3 v, int by) { return v + by; }
float total(ITensor<float, 1> x) { float sum = 0; for (uint i = 0; i < x.shape[0]; ++i) sum += x[i]; return sum; }
"""


# --- devices without it


def _luid(device: spy.Device) -> Any:
    adapters = spy.Device.enumerate_adapters(device.info.type)
    return next(adapter.luid for adapter in adapters if adapter.name == device.info.adapter_name)


def test_refused(device: spy.Device) -> None:
    if device.info.type is spy.DeviceType.cuda:
        pytest.skip("is CUDA")
    assert device.supports_cuda_interop is False
    for sync in (device.sync_to_cuda, device.sync_to_device):
        with pytest.raises(RuntimeError, match="Device does not support CUDA interop"):
            sync(0)
    stream = spy.NativeHandle.from_cuda_stream(1)
    empty = device.create_command_encoder().finish()
    with pytest.raises(ValueError, match="enable_cuda_interop=True"):
        device.submit_command_buffer(empty, cuda_stream=stream)


def test_cuda_needs_no_flag(device: spy.Device) -> None:
    if device.info.type is not spy.DeviceType.cuda:
        pytest.skip("not CUDA")
    assert device.supports_cuda_interop is True


def test_no_matching_adapter(device: spy.Device) -> None:
    """The error names the adapter and what CUDA has, or what CUDA lacks."""
    if device.info.type is not spy.DeviceType.vulkan or not device.has_feature(spy.Feature.software_device):
        pytest.skip("no software Vulkan device")
    with pytest.raises(RuntimeError, match="enable_cuda_interop: ") as caught:
        spy.Device(type=spy.DeviceType.vulkan, enable_cuda_interop=True, adapter_luid=_luid(device))
    if spy.Device.enumerate_adapters(spy.DeviceType.cuda):
        assert device.info.adapter_name in str(caught.value)
        assert spy.Device.enumerate_adapters(spy.DeviceType.cuda)[0].name in str(caught.value)
    else:
        assert "CUDA is not available" in str(caught.value)


def test_shared_handle(device: spy.Device) -> None:
    if device.info.type is not spy.DeviceType.vulkan:
        pytest.skip("exports nothing")
    plain = device.create_buffer(size=64, usage=RW)
    with pytest.raises(RuntimeError, match="usage flag shared"):
        _ = plain.shared_handle
    with pytest.raises(
        (RuntimeError, ImportError), match="Device does not support CUDA interop|BufferUsage.shared|torch"
    ):
        plain.to_torch()
    buffer = device.create_buffer(data=np.arange(16, dtype=np.float32), usage=SHARED)
    handle = buffer.shared_handle
    assert handle.type is spy.NativeHandleType.file_descriptor
    os.fstat(handle.value)  # open
    assert buffer.shared_handle == handle
    assert buffer.to_numpy().view(np.float32).tolist() == list(range(16))
    del buffer
    with pytest.raises(OSError):
        os.fstat(handle.value)


# --- devices with it


@pytest.fixture(scope="module")
def torch() -> Any:
    module = pytest.importorskip("torch")
    if not module.cuda.is_available():
        pytest.skip("torch without CUDA")
    return module


@pytest.fixture
def shared(torch: Any) -> Iterator[spy.Device]:
    """A Vulkan device on the GPU that torch uses."""
    del torch
    names = os.environ.get("SLANGPY_TEST_DEVICES", "vulkan,cuda")
    if "vulkan" not in names and "cuda" not in names:
        pytest.skip("neither vulkan nor cuda is under test")
    try:
        device = spy.Device(type=spy.DeviceType.vulkan, enable_cuda_interop=True, enable_hot_reload=False)
    except RuntimeError as error:
        pytest.skip(str(error))
    yield device
    device.close()


def test_both_see_the_memory(shared: spy.Device, torch: Any) -> None:
    assert shared.supports_cuda_interop
    double = kernel(shared, DOUBLE)
    n = 100_003
    buffer = shared.create_buffer(size=4 * n, struct_size=4, usage=SHARED)
    view = buffer.to_torch(torch.float32)
    assert view.is_cuda and view.shape == (n,)
    expected = torch.rand(n, device="cuda")
    for stream in (torch.cuda.current_stream(), torch.cuda.Stream(), torch.cuda.Stream()):
        with torch.cuda.stream(stream):
            stream.wait_stream(torch.cuda.default_stream())
            view.copy_(expected)
            shared.sync_to_cuda(stream.cuda_stream)
            double.dispatch([n, 1, 1], x=buffer, n=n)
            double.dispatch([n, 1, 1], x=buffer, n=n)
            shared.sync_to_device(stream.cuda_stream)
            got = view.clone()
        stream.synchronize()
        assert torch.equal(got, expected * 4)
    assert np.array_equal(buffer.to_numpy().view(np.float32), (expected * 4).cpu().numpy())


def test_order_without_host(shared: spy.Device, torch: Any) -> None:
    """A hundred turns back and forth after work that is under way for a while."""
    double = kernel(shared, DOUBLE)
    buffer = shared.create_buffer(size=4, struct_size=4, usage=SHARED)
    view = buffer.to_torch(torch.float32)
    first, second = torch.cuda.Stream(), torch.cuda.Stream()
    torch.cuda.synchronize()
    value = torch.ones(1, device="cuda")
    with torch.cuda.stream(first):
        first.wait_stream(torch.cuda.default_stream())
        torch.cuda._sleep(50_000_000)
        view.copy_(value)
    expected = 1.0
    for i in range(100):
        stream = second if i % 2 else first
        with torch.cuda.stream(stream):
            stream.wait_stream(first if i % 2 else second)
            view.add_(1)
            shared.sync_to_cuda(stream.cuda_stream)
            double.dispatch([1, 1, 1], x=buffer, n=1)
            shared.sync_to_device(stream.cuda_stream)
            view.mul_(0.5)
        expected = (expected + 1) * 2 * 0.5
    torch.cuda.synchronize()
    assert view.item() == expected


def test_on_a_stream(shared: spy.Device, torch: Any) -> None:
    """`cuda_stream` orders a dispatch against the stream on both sides."""
    double = kernel(shared, DOUBLE)
    buffer = shared.create_buffer(size=4 * 64, struct_size=4, usage=SHARED)
    view = buffer.to_torch(torch.float32)
    stream = torch.cuda.Stream()
    handle = spy.NativeHandle.from_cuda_stream(stream.cuda_stream)
    with torch.cuda.stream(stream):
        torch.cuda._sleep(20_000_000)
        view.fill_(3)
        double.dispatch([64, 1, 1], x=buffer, n=64, cuda_stream=handle)
        encoder = shared.create_command_encoder()
        double.dispatch([64, 1, 1], x=buffer, n=64, command_encoder=encoder)
        shared.submit_command_buffer(encoder.finish(), cuda_stream=handle)
        view.add_(1)
    stream.synchronize()
    assert view.tolist() == [13.0] * 64


def test_calls(shared: spy.Device, torch: Any) -> None:
    m = spy.Module.load_from_source(shared, "interop_calls", FUNCTIONS)
    for n in (1, 1000, 1_000_003):
        x = torch.randn(n, device="cuda")
        got = m.poly(2.0, x)
        assert got.is_cuda and torch.allclose(got, 2 * x * x + x)
    x = torch.randn(64, 32, device="cuda")
    assert torch.allclose(m.poly(x.t(), x.t()), x.t() ** 3 + x.t())  # packed on the way
    version, other = x._version, x.clone()
    m.scale(x, torch.full((64, 1), 3.0, device="cuda"))
    assert torch.equal(x, other * 3) and x._version > version
    strided = torch.randn(10, 10, device="cuda")
    other = strided.clone()
    m.scale(strided[::2, 1::3], 2.0)
    other[::2, 1::3] *= 2
    assert torch.equal(strided, other)
    v = torch.arange(30, dtype=torch.int32, device="cuda").reshape(10, 3)
    version = v._version
    assert torch.equal(m.shift(v, 5), v + 5) and v._version == version
    x = torch.randn(257, device="cuda")
    assert float(m.total(x)) == pytest.approx(float(x.double().sum()), rel=1e-4, abs=1e-4)
    out = torch.zeros(257, device="cuda")
    m.poly(1.0, x, _result=out)
    assert torch.allclose(out, x * x + x)


def test_calls_on_streams(shared: spy.Device, torch: Any) -> None:
    m = spy.Module.load_from_source(shared, "interop_streams", FUNCTIONS)
    x = torch.randn(1 << 16, device="cuda")
    torch.cuda.synchronize()
    results = []
    for _ in range(8):
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            torch.cuda._sleep(1_000_000)
            y = x.clone()
            for _ in range(10):
                m.scale(y, 1.5)
            results.append(y)
        stream.synchronize()
    for y in results:
        assert torch.allclose(y, x * 1.5**10)


def test_autograd(shared: spy.Device, torch: Any) -> None:
    m = spy.Module.load_from_source(shared, "interop_autograd", FUNCTIONS)
    x = torch.randn(100, device="cuda", requires_grad=True)
    a = torch.tensor(1.5, device="cuda", requires_grad=True)
    weights = torch.randn(100, device="cuda")
    (m.poly(a, x) * weights).sum().backward()
    reference_x, reference_a = x.detach().clone().requires_grad_(), a.detach().clone().requires_grad_()
    ((reference_a * reference_x**2 + reference_x) * weights).sum().backward()
    assert x.grad is not None and a.grad is not None
    assert torch.allclose(x.grad, reference_x.grad, rtol=1e-5, atol=1e-5)  # so is this where they nearly cancel
    assert torch.allclose(a.grad, reference_a.grad, rtol=1e-4, atol=1e-4)  # a sum of terms of both signs


def test_refused_tensors(shared: spy.Device, torch: Any) -> None:
    m = spy.Module.load_from_source(shared, "interop_refused", FUNCTIONS)
    x = torch.randn(4, device="cuda")
    encoder = shared.create_command_encoder()
    with pytest.raises(NotImplementedError, match="command encoder"):
        m.scale(x, 2.0, _append_to=encoder)
    if torch.cuda.device_count() > 1:
        with pytest.raises(ValueError, match="shares memory with cuda:"):
            m.poly(1.0, x.to("cuda:1"))


def test_lifetime(shared: spy.Device, torch: Any) -> None:
    view = None
    for i in range(200):
        view = shared.create_buffer(size=4096, usage=SHARED).to_torch(torch.uint8)
        view.fill_(i % 256)
        assert int(view[0]) == i % 256
    before = shared.report_heaps()
    del view
    assert (
        sum(heap.num_allocations for heap in shared.report_heaps()) < sum(heap.num_allocations for heap in before) + 1
    )
    kept = shared.create_buffer(size=4096, usage=SHARED).to_torch(torch.uint8)
    kept.fill_(7)
    shared.close()
    assert int(kept.sum()) == 7 * 4096  # the memory lives as long as torch's view


def test_copies(shared: spy.Device, torch: Any) -> None:
    double = kernel(shared, DOUBLE)
    buffer = shared.create_buffer(size=4 * 64, struct_size=4, usage=SHARED)
    source = torch.rand(64, device="cuda")
    spy.copy_torch_tensor_to_buffer(source, buffer)
    double.dispatch([64, 1, 1], x=buffer, n=64)
    target = torch.empty(64, device="cuda")
    spy.copy_buffer_to_torch_tensor(buffer, target)
    assert torch.equal(target, source * 2)


def test_torch_device(torch: Any) -> None:
    if not spy.Device.enumerate_adapters(spy.DeviceType.vulkan):
        pytest.skip("no Vulkan")
    luids = [adapter.luid for adapter in spy.Device.enumerate_adapters(spy.DeviceType.vulkan)]
    if spy.Device.enumerate_adapters(spy.DeviceType.cuda)[torch.cuda.current_device()].luid not in luids:
        pytest.skip("the GPU has no Vulkan driver")
    device = spy.create_torch_device(type=spy.DeviceType.vulkan, enable_hot_reload=False)
    assert device.info.type is spy.DeviceType.vulkan and device.supports_cuda_interop
    device.close()
