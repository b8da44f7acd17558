"""Buffers: size rules, memory types, host access."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest

import slangpy as spy
from slangpy import _native

RW = spy.BufferUsage.shader_resource | spy.BufferUsage.unordered_access


def test_sizes(device: spy.Device) -> None:
    assert device.create_buffer(size=12).size == 12
    buffer = device.create_buffer(element_count=3, struct_size=20, label="three")
    assert (buffer.size, buffer.struct_size, buffer.label, buffer.desc.label) == (60, 20, "three", "three")
    assert device.create_buffer({"size": 4, "struct_size": 4}).struct_size == 4
    assert device.create_buffer(spy.BufferDesc(size=8)).size == 8
    assert device.create_buffer(desc={"size": 8}, label="both").desc.label == "both"
    assert buffer.desc.usage == spy.BufferUsage.none
    assert repr(buffer).startswith("Buffer(\n")


@pytest.mark.parametrize(
    ("fields", "error", "text"),
    [
        ({"size": 4, "element_count": 1}, ValueError, "Only one of 'size' or 'element_count' must be set."),
        (
            {"element_count": 1},
            ValueError,
            "'element_count' can only be used with 'struct_size' or 'resource_type_layout' set.",
        ),
        (
            {"size": 4095, "data": np.zeros(4096, np.uint8)},
            ValueError,
            "Invalid data size (got 4096 bytes, expected 4095 bytes)",
        ),
        ({}, ValueError, "no size"),
        ({"size": -1}, ValueError, "out of range"),
        ({"size": 1.5}, TypeError, "expected an int"),
        ({"size": 4, "usage": 3}, TypeError, "'usage'"),
        ({"sice": 4}, TypeError, "unknown field 'sice'; known fields: size, element_count"),
        ({"data": [1, 2, 3]}, TypeError, "expected a contiguous NumPy array"),
        ({"data": np.zeros((4, 4))[:, ::2]}, ValueError, "C-contiguous"),
        ({"size": 4, "resource_type_layout": 7}, TypeError, "expected a type layout"),
        ({"element_count": 1 << 62, "struct_size": 8}, OverflowError, "64-bit"),
    ],
)
def test_errors(device: spy.Device, fields: dict, error: type, text: str) -> None:
    with pytest.raises(error, match=re.escape(text)):
        device.create_buffer(**fields)


def test_struct_size_or_layout(device: spy.Device) -> None:
    layout = _native._make_type_layout(kind="struct", name="S", size=24)
    with pytest.raises(ValueError, match="Only one of 'struct_size' or 'resource_type_layout' must be set"):
        device.create_buffer(element_count=2, struct_size=4, resource_type_layout=layout)
    with pytest.raises(TypeError, match="must be the layout of a structured buffer, got that of S"):
        device.create_buffer(element_count=2, resource_type_layout=layout)


def test_out_of_memory(device: spy.Device) -> None:
    with pytest.raises((MemoryError, ValueError), match=str(1 << 60)):
        device.create_buffer(size=1 << 60)


@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32", "int64"])
def test_round_trip(device: spy.Device, dtype: str) -> None:
    data = np.arange(24).astype(dtype).reshape(4, 6)
    buffer = device.create_buffer(data=data, usage=RW)
    assert buffer.to_numpy().dtype == np.uint8
    assert np.array_equal(buffer.to_numpy().view(dtype).reshape(4, 6), data)
    buffer.copy_from_numpy(data[:2] * 2)
    assert np.array_equal(buffer.to_numpy().view(dtype).reshape(4, 6)[:2], data[:2] * 2)
    assert np.array_equal(buffer.to_numpy().view(dtype).reshape(4, 6)[2:], data[2:])


def test_copy_errors(device: spy.Device) -> None:
    buffer = device.create_buffer(size=32)
    with pytest.raises(ValueError, match=re.escape("numpy array is larger than the buffer (400 > 32)")):
        buffer.copy_from_numpy(np.zeros(100, np.float32))
    with pytest.raises(ValueError, match="C-contiguous"):
        buffer.copy_from_numpy(np.zeros(8, np.float32)[::2])
    with pytest.raises(TypeError, match="NumPy array"):
        buffer.copy_from_numpy(3)


def test_format_shapes(device: spy.Device) -> None:
    buffer = device.create_buffer(size=24, format=spy.Format.rgb32_float)
    buffer.copy_from_numpy(np.arange(6, dtype=np.float32))
    assert buffer.to_numpy().shape == (2, 3)
    assert buffer.to_numpy().dtype == np.float32
    assert device.create_buffer(size=8, format=spy.Format.r16_uint).to_numpy().dtype == np.uint16
    assert device.create_buffer(size=8, format=spy.Format.r16_uint).to_numpy().shape == (4,)


def test_new_memory_is_zero(device: spy.Device) -> None:
    for size in (4, 7, 4099):
        assert not device.create_buffer(size=size).to_numpy().any()


@pytest.mark.parametrize("validation", [True, False])
def test_reused_memory_is_zero(device_type: spy.DeviceType, validation: bool) -> None:
    """With the checks off, too: they change no result."""
    device = spy.Device(type=device_type, enable_rhi_validation=validation, enable_hot_reload=False)
    sizes = (3, 4, 4099, 1 << 20, (64 << 20) + 5)
    for _ in range(3):
        used = [device.create_buffer(data=np.full(size, 255, np.uint8)) for size in sizes]
        assert all(buffer.to_numpy().min() == 255 for buffer in used)
        used.clear()
        device.wait()
        for size in sizes:
            assert not device.create_buffer(size=size).to_numpy().any(), size
    device.close()


def test_memory_types(device: spy.Device) -> None:
    up = device.create_buffer(size=16, memory_type=spy.MemoryType.upload)
    down = device.create_buffer(size=16, memory_type=spy.MemoryType.read_back)
    with pytest.raises(RuntimeError, match="Cannot read data from buffer with memory type 'upload'."):
        up.to_numpy()
    with pytest.raises(RuntimeError, match="Cannot write data to buffer with memory type 'read_back'."):
        down.copy_from_numpy(np.zeros(4, np.float32))
    up.copy_from_numpy(np.arange(4, dtype=np.float32))
    encoder = device.create_command_encoder()
    encoder.copy_buffer(down, 0, up, 0, 16)
    device.submit_command_buffer(encoder.finish())
    assert np.array_equal(down.to_numpy().view(np.float32), np.arange(4, dtype=np.float32))


def test_map(device: spy.Device) -> None:
    up = device.create_buffer(size=16, memory_type=spy.MemoryType.upload)
    down = device.create_buffer(size=16, memory_type=spy.MemoryType.read_back)
    with up.mapped() as view:
        view[:] = bytes(range(16))
    view = up.map()
    with pytest.raises(RuntimeError, match="mapped already"):
        up.map()
    view[0] = 99
    up.unmap()
    with pytest.raises(RuntimeError, match="not mapped"):
        up.unmap()
    encoder = device.create_command_encoder()
    encoder.copy_buffer(down, 0, up, 0, 16)
    device.submit_command_buffer(encoder.finish())
    with down.mapped() as view:
        assert view.readonly
        assert bytes(view) == bytes([99, *range(1, 16)])
    with pytest.raises(RuntimeError, match="device_local"):
        device.create_buffer(size=4).map()


def test_dlpack_shares_memory(fresh_device: spy.Device, device_type: spy.DeviceType) -> None:
    buffer = fresh_device.create_buffer(data=np.arange(4, dtype=np.float32))
    if device_type not in (spy.DeviceType.cpu, spy.DeviceType.null):
        pytest.skip("not host memory")
    array = np.from_dlpack(buffer)
    assert array.dtype == np.uint8 and array.shape == (16,)
    del buffer
    fresh_device.close()
    assert np.array_equal(array.view(np.float32), np.arange(4, dtype=np.float32))


def test_to_torch(device: spy.Device, device_type: spy.DeviceType) -> None:
    torch = pytest.importorskip("torch")
    buffer = device.create_buffer(data=np.arange(12, dtype=np.float32))
    if device_type in (spy.DeviceType.vulkan, spy.DeviceType.d3d12):
        with pytest.raises(RuntimeError, match="does not support CUDA interop"):
            buffer.to_torch()
        return
    assert buffer.to_torch().dtype == torch.uint8
    tensor = buffer.to_torch(torch.float32, shape=[2, 3], offset=2)
    assert tensor.tolist() == [[2, 3, 4], [5, 6, 7]]
    tensor[0, 0] = 50
    assert buffer.to_numpy().view(np.float32)[2] == 50
    with pytest.raises(ValueError, match="does not fit"):
        buffer.to_torch(torch.float32, shape=[5, 3])


def test_shared_handle_needs_flag(device: spy.Device) -> None:
    with pytest.raises(RuntimeError, match="shared"):
        _ = device.create_buffer(size=4).shared_handle


def test_objects_of_another_device(device_type: spy.DeviceType) -> None:
    one, two = spy.Device(type=device_type), spy.Device(type=device_type)
    a, b = one.create_buffer(size=16), two.create_buffer(size=16)
    assert a.device is one and b.device is two
    encoder = one.create_command_encoder()
    with pytest.raises(ValueError, match="another device"):
        encoder.copy_buffer(a, 0, b, 0, 16)
    commands = two.create_command_encoder().finish()
    with pytest.raises(ValueError, match="another device"):
        one.submit_command_buffer(commands)
    two.close()
    one.close()


def test_methods_of_what_is_no_buffer(device: spy.Device) -> None:
    never_made = spy.Buffer.__new__(spy.Buffer)
    for call in (spy.Buffer.map, spy.Buffer.unmap):
        for wrong in (5, "x", device, never_made):
            with warnings.catch_warnings(), pytest.raises(TypeError, match="expected a Buffer"):
                warnings.simplefilter("ignore")  # nanobind's own, of what was never made
                call(wrong)
