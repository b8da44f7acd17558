"""Texts of errors that users search for, call by call."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from device_kernels import RW, TEXTURE_RW

import slangpy as spy

SOURCE = """
struct S { float3 a; int b; };
StructuredBuffer<S> g;
interface IFoo { int f(); };
struct Foo1 : IFoo { int f() { return 1; } };
struct Foo2 : IFoo { int f() { return 2; } };
[shader("compute")] [numthreads(1, 1, 1)] void go(RWStructuredBuffer<S> r) { r[0].b = g[0].b; }
[shader("compute")] [numthreads(1, 1, 1)] void generic<T : IFoo>(RWStructuredBuffer<int> r) { T t; r[0] = t.f(); }
"""


class Bench:
    """What the calls work on, made when asked for."""

    def __init__(self, device: spy.Device) -> None:
        self.device = device
        self.buffer = device.create_buffer(size=32, usage=RW)
        self.small = device.create_buffer(size=16, usage=RW)
        self.upload = device.create_buffer(size=64, memory_type=spy.MemoryType.upload)
        self.read_back = device.create_buffer(size=64, memory_type=spy.MemoryType.read_back)
        self.module = device.load_module_from_source("spec_errors", SOURCE)
        self.encoder = device.create_command_encoder()

    @property
    def program(self) -> Any:
        return self.device.link_program([self.module], [self.module.entry_point("go")])

    @property
    def layout(self) -> Any:
        layout = self.module.layout
        return layout.get_type_layout(layout.find_type_by_name("StructuredBuffer<S>"))

    @property
    def texture(self) -> Any:
        return self.create_texture(width=4, height=2, format=spy.Format.rgba32_float, usage=TEXTURE_RW)

    @property
    def create_texture(self) -> Any:
        return self.device.create_texture

    @property
    def cursor(self) -> Any:
        return spy.BufferCursor(self.device.info.type, self.layout.element_type_layout, 2)

    def link(self, *conformances: Any) -> Any:
        return self.device.link_program([self.module], [self.module.entry_point("go", list(conformances))])


F32 = spy.Format.rgba32_float
CALLS: list[tuple[str, Callable[[Bench], Any], type[Exception], str]] = [
    ("size_and_count", lambda b: b.device.create_buffer(size=4, element_count=1), ValueError,
     "Only one of 'size' or 'element_count' must be set."),
    ("struct_size_and_layout", lambda b: b.device.create_buffer(element_count=1, struct_size=4, resource_type_layout=b.layout),
     ValueError, "Only one of 'struct_size' or 'resource_type_layout' must be set."),
    ("count_alone", lambda b: b.device.create_buffer(element_count=4), ValueError,
     "'element_count' can only be used with 'struct_size' or 'resource_type_layout' set."),
    ("data_size", lambda b: b.device.create_buffer(size=4095, data=np.zeros(4096, np.uint8)), ValueError,
     "Invalid data size (got 4096 bytes, expected 4095 bytes)"),
    ("no_size", lambda b: b.device.create_buffer(), ValueError, "no size"),
    ("read_upload", lambda b: b.upload.to_numpy(), RuntimeError, "Cannot read data from buffer with memory type 'upload'."),
    ("write_read_back", lambda b: b.read_back.copy_from_numpy(np.zeros(4, np.uint8)), RuntimeError,
     "Cannot write data to buffer with memory type 'read_back'."),
    ("too_much", lambda b: b.buffer.copy_from_numpy(np.zeros(100, np.float32)), ValueError,
     "numpy array is larger than the buffer (400 > 32)"),
    ("shared_handle", lambda b: b.buffer.shared_handle, RuntimeError, "shared"),
    ("texture_format", lambda b: b.create_texture(width=4), ValueError, "Invalid texture format."),
    ("texture_1d", lambda b: b.create_texture(type=spy.TextureType.texture_1d, width=4, height=2, format=F32), ValueError,
     "Invalid dimensions (width=4, height=2, depth=1) for 1D texture."),
    ("texture_array", lambda b: b.create_texture(width=4, array_length=3, format=F32), ValueError,
     "Invalid array length (3) for non-array texture."),
    ("texture_rank", lambda b: b.texture.copy_from_numpy(np.zeros(4, np.float32)), ValueError,
     "numpy array has wrong number of dimensions (expected 3)"),
    ("texture_shape", lambda b: b.texture.copy_from_numpy(np.zeros((4, 2, 4), np.float32)), ValueError,
     "numpy array has wrong shape (expected [2, 4, 4])"),
    ("texture_dtype", lambda b: b.texture.copy_from_numpy(np.zeros((2, 4, 4), np.int32)), (ValueError, TypeError), "dtype"),
    ("layer", lambda b: b.texture.to_numpy(layer=1), (IndexError, ValueError), '"layer" must be less than 1'),
    ("mip", lambda b: b.texture.to_numpy(mip=1), (IndexError, ValueError), '"mip" must be less than 1'),
    ("view_mip", lambda b: b.texture.create_view(mip=3), (IndexError, ValueError), "'mip' out of range"),
    ("copy_range", lambda b: b.encoder.copy_buffer(b.small, 0, b.buffer, 0, 32), (IndexError, ValueError),
     "must be less than or equal 16"),
    ("copy_overlap", lambda b: b.encoder.copy_buffer(b.buffer, 0, b.buffer, 4, 8), ValueError, "overlap"),
    ("upload_range", lambda b: b.encoder.upload_buffer_data(b.small, 8, np.zeros(16, np.uint8)), (IndexError, ValueError),
     "upload would exceed the size of the destination buffer"),
    ("finished", lambda b: (b.encoder.finish(), b.encoder.clear_buffer(b.buffer)), RuntimeError, "Command encoder is finished"),
    ("submit_encoder", lambda b: b.device.submit_command_buffer(b.encoder), TypeError, "finish()"),
    ("query_count", lambda b: b.device.create_query_pool(count=2).get_results(1, 2), IndexError, "'count' out of range"),
    ("query_index", lambda b: b.device.create_query_pool(count=2).get_results(3, 1), IndexError, "'index' out of range"),
    ("fence_timeout", lambda b: b.device.create_fence().wait(5, timeout_ns=1000), TimeoutError, "5"),
    ("no_module", lambda b: b.device.load_module("nope"), spy.SlangCompileError, 'Failed to load slang module "nope"'),
    ("other_source", lambda b: b.device.load_module_from_source("spec_errors", "int x;"), spy.SlangCompileError,
     "already loaded with different source"),
    ("no_entry_point", lambda b: b.module.entry_point("zz"), ValueError, 'Entry point "zz" not found'),
    ("no_interface", lambda b: b.link(("INone", "S")), ValueError, 'Interface type "INone" not found'),
    ("no_type", lambda b: b.link(("IFoo", "Foo3")), ValueError, 'Type "Foo3" not found'),
    ("type_twice", lambda b: b.link(("IFoo", "Foo1"), ("IFoo", "Foo1")), ValueError,
     'Duplicate type conformance entry for interface type "IFoo" and type "Foo1"'),
    ("id_twice", lambda b: b.link(spy.TypeConformance("IFoo", "Foo1", 0), spy.TypeConformance("IFoo", "Foo2", 0)), ValueError,
     'Duplicate type id 0 for interface type "IFoo"'),
    ("specialize", lambda b: b.module.entry_point("generic").specialize([spy.SpecializationArg.from_type("X")]), ValueError,
     'Specialization type "X" not found'),
    ("shader_field", lambda b: spy.ShaderCursor(b.device.create_root_shader_object(b.program))["zz"], Exception,
     'Field "zz" not found.'),
    ("cursor_index", lambda b: b.cursor[9], IndexError, "9"),
    ("cursor_vector", lambda b: b.cursor[0].write({"a": [1, 2]}), ValueError, "a: sequence has wrong dimension."),
    ("cursor_count", lambda b: b.cursor.write_from_numpy({"b": np.zeros(3, np.int32)}), ValueError,
     "First dimension of ndarray (3) does not match the size of destination buffer (2)"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "kind", "text"), [row[1:] for row in CALLS], ids=[row[0] for row in CALLS])
def test_error(device: spy.Device, call: Callable[[Bench], Any], kind: Any, text: str) -> None:
    bench = Bench(device)
    with pytest.raises(kind, match=re.escape(text)) as caught:
        call(bench)
    assert ".cpp" not in str(caught.value)


def test_current_device(device_type: spy.DeviceType) -> None:
    """A stack of each thread; `with` neither opens nor closes."""
    import threading

    first = spy.Device(type=device_type, enable_hot_reload=False)
    second = spy.Device(type=device_type, enable_hot_reload=False)
    assert spy.current_device() is second
    with first as entered:
        assert entered is first is spy.current_device()
        assert spy.create_buffer(size=4, usage=RW).device is first
    assert spy.current_device() is second and not first.is_closed
    second.close()
    assert spy.current_device() is first
    spy.push_current_device(first)
    assert spy.pop_current_device() is first
    texts: list[str] = []

    def elsewhere() -> None:
        for call in (spy.current_device, spy.pop_current_device):
            try:
                call()
            except RuntimeError as error:
                texts.append(str(error))

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert "No current device" in texts[0] and "No device to pop" in texts[1]
    first.close()


def test_callbacks_of_close(device_type: spy.DeviceType) -> None:
    device = spy.Device(type=device_type, enable_hot_reload=False)
    seen: list[Any] = []

    def first(closing: spy.Device) -> None:
        assert closing is device and not device.is_closed
        device.unregister_device_close_callback(number)
        device.close()  # does nothing
        seen.append("first")

    number = device.register_device_close_callback(first)
    device.register_device_close_callback(lambda _: seen.append("second"))
    dropped = device.register_device_close_callback(lambda _: seen.append("never"))
    device.unregister_device_close_callback(dropped)
    device.unregister_device_close_callback(dropped)  # without effect
    device.close()
    device.close()
    assert seen == ["first", "second"]


def test_callbacks_of_recordings(device: spy.Device) -> None:
    submitted: list[Any] = []
    discarded: list[Any] = []
    numbers = (
        device.register_command_recording_submitted_callback(submitted.append),
        device.register_command_recording_discarded_callback(discarded.append),
    )
    buffers = [device.create_command_encoder().finish() for _ in range(3)]
    ids = [buffer.recording_id for buffer in buffers]
    assert len(set(ids)) == 3
    submit_id = device.submit_command_buffers(buffers[:2])
    device.wait_for_submit(submit_id)
    assert device.is_submit_finished(submit_id)
    del buffers
    assert [(event.id, event.submit_id, event.device) for event in submitted] == [
        (i, submit_id, device) for i in ids[:2]
    ]
    assert [event.id for event in discarded] == ids[2:]
    device.unregister_command_recording_submitted_callback(numbers[0])
    device.unregister_command_recording_discarded_callback(numbers[1])
    later = device.submit_command_buffer(device.create_command_encoder().finish())
    assert later > submit_id and len(submitted) == 2


def test_fence_values(device: spy.Device) -> None:
    fence = device.create_fence(initial_value=3)
    assert (fence.current_value, fence.signaled_value) == (3, 3)
    assert fence.signal() == 4 and fence.signal(9) == 9
    fence.wait()
    fence.wait(7)
    with pytest.raises(ValueError, match="only counts up"):
        fence.signal(5)
    empty = device.create_command_encoder().finish()
    device.submit_command_buffers([empty], wait_fences=[fence], signal_fences=[fence])
    fence.wait(10)
    device.submit_command_buffers([empty], signal_fences=[fence], signal_fence_values=[20])
    fence.wait()
    assert fence.current_value == fence.signaled_value == 20
    assert spy.Fence.AUTO == spy.Fence.TIMEOUT_INFINITE == 2**64 - 1


def test_native_handles(device: spy.Device) -> None:
    handles = device.native_handles
    assert len(handles) == 3
    expected = {
        spy.DeviceType.vulkan: ["VkInstance", "VkPhysicalDevice", "VkDevice"],
        spy.DeviceType.cuda: ["CUdevice", "CUcontext", "undefined"],
    }.get(device.info.type)
    if expected is not None:
        assert [handle.type.name for handle in handles] == expected
        assert handles[1] and hash(handles[1]) == hash(device.native_handles[1])
        assert handles[1] == device.native_handles[1]
    unset = spy.NativeHandle()
    assert not unset and unset.type is spy.NativeHandleType.undefined
    stream = spy.NativeHandle.from_cuda_stream(5)
    assert stream and (stream.type, stream.value) == (spy.NativeHandleType.CUstream, 5)


def test_existing_handles(device: spy.Device) -> None:
    """A second device on the first one's objects, which it does not own."""
    if device.info.type not in (spy.DeviceType.vulkan, spy.DeviceType.cuda):
        pytest.skip("no native objects")
    handles = list(device.native_handles)
    second = spy.Device(type=device.info.type, existing_device_handles=handles, enable_hot_reload=False)
    assert [handle.value for handle in second.native_handles][:2] == [handle.value for handle in handles][:2]
    data = np.arange(100, dtype=np.uint32)
    assert np.array_equal(second.create_buffer(data=data, usage=RW).to_numpy().view(np.uint32), data)
    second.close()
    assert np.array_equal(device.create_buffer(data=data, usage=RW).to_numpy().view(np.uint32), data)
    with pytest.raises(ValueError, match="existing_device_handles"):
        spy.Device(type=device.info.type, existing_device_handles=[spy.NativeHandle(spy.NativeHandleType.VkQueue, 8)])
