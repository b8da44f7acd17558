"""Opening, closing and describing devices."""

from __future__ import annotations

import gc
import subprocess
import sys

import pytest

import slangpy as spy
from slangpy.device import (
    create_buffer,
    create_device,
    current_device,
    pop_current_device,
    push_current_device,
)


def test_info(device: spy.Device, device_type: spy.DeviceType) -> None:
    assert device.info.type is device_type
    assert device.info.adapter_name
    assert device.info.timestamp_frequency > 0
    assert tuple(device.info.limits.max_compute_thread_group_size)[0] >= 64
    assert device.desc.type is device_type
    for text in (repr(device), repr(device.info), repr(device.info.limits), repr(device.desc)):
        assert text.count("\n") > 3
    for feature in device.features:
        assert device.has_feature(feature)
    assert device.supported_shader_model.name.startswith("sm_6_")


def test_unknown_field_lists_known() -> None:
    with pytest.raises(TypeError, match="unknown field 'colour'.*enable_print"):
        spy.Device(colour=1)
    with pytest.raises(TypeError, match="'type'"):
        spy.Device(type=3)


def test_desc_and_dict(device_type: spy.DeviceType) -> None:
    for argument in ({"type": device_type, "label": "x"}, spy.DeviceDesc(type=device_type, label="x")):
        device = spy.Device(argument)
        assert device.desc.label == "x"
        device.close()


def test_fields_by_position(device_type: spy.DeviceType) -> None:
    device = spy.Device(device_type, False)
    assert device.desc.type is device_type
    buffer = device.create_buffer(0, 3, 4, label="positional")
    assert (buffer.size, buffer.struct_size, buffer.desc.label) == (12, 4, "positional")
    assert device.create_fence(5, False).current_value == 5
    assert device.create_query_pool(spy.QueryType.timestamp, 3).count == 3
    assert spy.BufferDesc(16, usage=spy.BufferUsage.shared).size == 16
    if device_type is not spy.DeviceType.cpu:
        texture = device.create_texture(spy.TextureType.texture_1d, spy.Format.r8_unorm, 8, mip_count=2)
        assert (texture.width, texture.create_view(spy.Format.r8_uint, mip=1).desc.format) == (8, spy.Format.r8_uint)
        assert device.create_sampler(spy.TextureFilteringMode.point).desc.min_filter is spy.TextureFilteringMode.point
    with pytest.raises(TypeError, match="'size' is given by position and by name"):
        device.create_buffer(4, size=4)
    with pytest.raises(TypeError, match="after a BufferDesc or dict, fields are given by name"):
        device.create_buffer({"size": 4}, 4)
    with pytest.raises(TypeError, match="create_fence takes at most 2 arguments"):
        device.create_fence(1, False, 3)
    with pytest.raises(TypeError, match="create_buffer 'size'"):
        device.create_buffer(None)
    device.close()


def test_defaults_of_the_descriptor() -> None:
    desc = spy.DeviceDesc()
    unset = ("adapter_luid", "compiler_options", "module_cache_path", "shader_cache_path", "existing_device_handles",
             "additional_vulkan_instance_extensions", "additional_vulkan_device_extensions")  # fmt: skip
    assert [getattr(desc, name) for name in unset] == [None] * len(unset)
    assert (desc.shader_cache_size, desc.label, desc.enable_hot_reload) == (134217728, "", True)
    counts = desc.bindless_options
    assert (counts.buffer_count, counts.texture_count, counts.sampler_count) == (1024, 1024, 128)
    handles = [spy.NativeHandle.from_cuda_stream(3)]
    assert spy.DeviceDesc(existing_device_handles=handles).existing_device_handles[0] == handles[0]


def test_missing_types_say_what_opens() -> None:
    for name in ("metal", "wgpu"):
        with pytest.raises(NotImplementedError, match="cpu"):
            spy.Device(type=spy.DeviceType[name])
    if not spy.Device.enumerate_adapters(spy.DeviceType.cuda):
        with pytest.raises(RuntimeError, match="can be opened here: cpu"):
            spy.Device(type=spy.DeviceType.cuda)


def test_override(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLANGPY_DEVICE_TYPE_OVERRIDE", "NULL")
    device = create_device(spy.DeviceType.cpu)
    assert device.info.type is spy.DeviceType.null
    device.close()
    monkeypatch.setenv("SLANGPY_DEVICE_TYPE_OVERRIDE", "toaster")
    device = create_device(spy.DeviceType.cpu)
    assert device.info.type is spy.DeviceType.cpu
    device.close()


def test_automatic_opens_something() -> None:
    device = create_device()
    assert device.info.type is not spy.DeviceType.null
    device.close()


def test_close(device_type: spy.DeviceType) -> None:
    device = spy.Device(type=device_type)
    seen = []
    ids = {}

    def second(d: spy.Device) -> None:
        seen.append(("second", d is device))
        d.unregister_device_close_callback(ids["second"])
        d.close()

    device.register_device_close_callback(lambda d: seen.append(("first", d is device)))
    ids["second"] = device.register_device_close_callback(second)
    buffer = device.create_buffer(size=16)
    assert device in spy.Device.get_created_devices()
    device.close()
    device.close()
    assert seen == [("first", True), ("second", True)]
    assert device.is_closed
    assert device not in spy.Device.get_created_devices()
    calls = [
        lambda: device.create_buffer(size=4),
        lambda: device.wait(),
        lambda: device.create_command_encoder(),
        lambda: device.report_heaps(),
        lambda: device.slang_session,
        lambda: buffer.to_numpy(),
        lambda: buffer.device_address,
        lambda: device.register_device_close_callback(print),
    ]
    for call in calls:
        with pytest.raises(RuntimeError, match="device is closed"):
            call()
    assert buffer.device is device and buffer.size == 16
    calls.clear()
    gc.collect()


def test_drop_in_any_order(device_type: spy.DeviceType) -> None:
    for order in range(4):
        device = spy.Device(type=device_type)
        buffer = device.create_buffer(size=64)
        encoder = device.create_command_encoder()
        encoder.clear_buffer(buffer)
        commands = encoder.finish()
        device.submit_command_buffer(commands)
        pop_current_device()
        if order == 0:
            device.close()
            del commands, buffer, encoder, device
        elif order == 1:
            del device, encoder, buffer
            gc.collect()
            assert commands.device.info.type is device_type
            commands.device.close()
        elif order == 2:
            del buffer, commands, encoder
            device.close()
        else:
            del commands, encoder
            owner = buffer.device
            del device
            assert buffer.device is owner
            owner.close()
        gc.collect()


def test_current_device(device_type: spy.DeviceType) -> None:
    first = spy.Device(type=device_type)
    second = spy.Device(type=device_type)
    assert current_device() is second
    with first as entered:
        assert entered is first and current_device() is first
        assert create_buffer(size=4).device is first
    assert not first.is_closed
    assert current_device() is second
    second.close()
    assert current_device() is first
    push_current_device(first)
    assert pop_current_device() is first
    first.close()


def test_current_device_is_per_thread() -> None:
    import threading

    errors = []

    def body() -> None:
        for call in (current_device, pop_current_device):
            try:
                call()
            except RuntimeError as error:
                errors.append(str(error))

    thread = threading.Thread(target=body)
    thread.start()
    thread.join()
    assert "No current device" in errors[0]
    assert "No device to pop" in errors[1]


def test_heaps_and_live_objects(device: spy.Device) -> None:
    before = sum(r.total_mem_usage for r in device.report_heaps())
    buffer = device.create_buffer(size=1 << 20, label="big one")
    assert sum(r.total_mem_usage for r in device.report_heaps()) >= before
    assert any("big one" in text for text in device._live_objects())
    assert buffer.memory_usage.device + buffer.memory_usage.host >= 1 << 20


def test_adapters() -> None:
    adapters = spy.Device.enumerate_adapters(spy.DeviceType.cpu)
    assert len(adapters) == 1 and len(adapters[0].luid) == 16
    assert spy.Device.enumerate_adapters(spy.DeviceType.metal) == []


def test_exit_is_quiet(device_type: spy.DeviceType) -> None:
    code = f"""
import slangpy as spy
device = spy.Device(type=spy.DeviceType.{device_type.name})
buffer = device.create_buffer(size=64)
device.register_device_close_callback(lambda d: print("closing"))
class Cycle: pass
c = Cycle(); c.self = c; c.buffer = buffer; c.device = device; device._cycle = c
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "closing\n"
    assert done.stderr == ""


def test_interop_needs_support(device: spy.Device, device_type: spy.DeviceType) -> None:
    if device_type is spy.DeviceType.cuda:
        pytest.skip("the CUDA device is its own partner")
    assert not device.supports_cuda_interop
    with pytest.raises(RuntimeError, match="does not support CUDA interop"):
        device.sync_to_cuda()
    with device.cuda_context_scope():
        pass
