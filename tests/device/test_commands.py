"""Encoders, submission, fences, queries."""

from __future__ import annotations

import re

import numpy as np
import pytest

import slangpy as spy


def run(device: spy.Device, record) -> int:
    encoder = device.create_command_encoder()
    record(encoder)
    return device.submit_command_buffer(encoder.finish())


def test_copies(device: spy.Device) -> None:
    a = device.create_buffer(data=np.arange(8, dtype=np.uint32))
    b = device.create_buffer(size=32)

    def record(e: spy.CommandEncoder) -> None:
        e.copy_buffer(b, 8, a, 0, 16)
        e.fill_buffer(b, 0x01020304, (24, 7))
        e.upload_buffer_data(b, 0, np.array([7], np.uint32))

    run(device, record)
    expected = np.zeros(8, np.uint32)
    expected[2:6] = np.arange(4)
    expected[0] = 7
    expected[6] = 0x01020304
    expected[7] = 0x00020304
    assert np.array_equal(b.to_numpy().view(np.uint32), expected)
    run(device, lambda e: e.clear_buffer(b, spy.BufferRange(8, 8)))
    expected[2:4] = 0
    assert np.array_equal(b.to_numpy().view(np.uint32), expected)
    run(device, lambda e: e.clear_buffer(b))
    assert not b.to_numpy().any()


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda e, b: e.copy_buffer(b, 0, b, 32, 20), "must be less than or equal 16"),
        (lambda e, b: e.copy_buffer(b, 0, b, 64, 1), "must be less than or equal 48"),
        (lambda e, b: e.copy_buffer(b, 8, b, 0, 16), "overlap"),
        (lambda e, b: e.upload_buffer_data(b, 40, np.zeros(9, np.uint8)), "upload would exceed the size"),
        (lambda e, b: e.fill_buffer(b, 1, (2, 4)), "multiple of 4"),
        (lambda e, b: e.clear_buffer(b, (0, 49)), "must be less than or equal 48"),
        (lambda e, b: e.pop_debug_group(), "no debug group"),
    ],
)
def test_range_errors(device: spy.Device, call, text: str) -> None:
    buffer = device.create_buffer(size=48)
    with pytest.raises(Exception, match=re.escape(text)):
        call(device.create_command_encoder(), buffer)


def test_encoder_states(device: spy.Device) -> None:
    buffer = device.create_buffer(size=16)
    encoder = device.create_command_encoder()
    with encoder.begin_compute_pass() as compute_pass:
        with pytest.raises(RuntimeError, match="pass is open"):
            encoder.clear_buffer(buffer)
        with pytest.raises(RuntimeError, match="no pipeline"):
            compute_pass.dispatch([1, 1, 1])
        compute_pass.push_debug_group("inside", (1, 0, 0))
        compute_pass.pop_debug_group()
    with pytest.raises(RuntimeError, match="has ended"):
        compute_pass.dispatch([1, 1, 1])
    encoder.push_debug_group("open")
    with pytest.raises(RuntimeError, match="not popped"):
        encoder.finish()
    encoder.pop_debug_group()
    encoder.global_barrier()
    commands = encoder.finish()
    for call in (lambda: encoder.finish(), lambda: encoder.clear_buffer(buffer), lambda: encoder.begin_compute_pass()):
        with pytest.raises(RuntimeError, match="Command encoder is finished"):
            call()
    with pytest.raises(TypeError, match=r"finish\(\)"):
        device.submit_command_buffer(encoder)
    with pytest.raises(TypeError, match="expected a CommandBuffer"):
        device.submit_command_buffer(3)
    first = device.submit_command_buffer(commands)
    second = device.submit_command_buffer(commands)
    assert second > first
    device.wait_for_submit(second)
    assert device.is_submit_finished(first)
    with pytest.raises(ValueError, match="nothing was submitted"):
        device.wait_for_submit(second + 100)


def test_with_block_submits(device: spy.Device) -> None:
    buffer = device.create_buffer(size=16)
    with device.create_command_encoder() as encoder:
        with encoder.begin_compute_pass():
            pass
        encoder.fill_buffer(buffer, 0x01020304)
    assert "finished = True" in repr(encoder)
    assert buffer.to_numpy().view(np.uint32).tolist() == [0x01020304] * 4

    with device.create_command_encoder() as finished:
        commands = finished.finish()  # who finishes it submits it
    assert device.submit_command_buffer(commands) > 0

    with pytest.raises(KeyError), device.create_command_encoder() as broken:
        broken.fill_buffer(buffer, 7)
        raise KeyError("nothing is submitted")
    assert "finished = False" in repr(broken)
    assert buffer.to_numpy().view(np.uint32).tolist() == [0x01020304] * 4


def test_callbacks(device: spy.Device) -> None:
    handles = []
    run(device, lambda e: e.execute_callback(handles.append))
    device.wait()
    assert len(handles) == 1 and isinstance(handles[0], spy.NativeHandle)

    def bad(handle: spy.NativeHandle) -> None:
        raise KeyError("from the callback")

    with pytest.raises(KeyError, match="from the callback"):
        run(device, lambda e: e.execute_callback(bad))


def test_recording_events(device: spy.Device) -> None:
    submitted, discarded = [], []
    s = device.register_command_recording_submitted_callback(submitted.append)
    d = device.register_command_recording_discarded_callback(discarded.append)
    encoder = device.create_command_encoder()
    number = encoder.recording_id
    commands = encoder.finish()
    submit_id = device.submit_command_buffer(commands)
    assert [(e.id, e.submit_id, e.device is device) for e in submitted] == [(number, submit_id, True)]
    del encoder, commands, submitted[:]
    assert discarded == []
    dropped = device.create_command_encoder()
    number = dropped.recording_id
    buffer = dropped.finish()
    del dropped, buffer
    assert [e.id for e in discarded] == [number]
    device.unregister_command_recording_submitted_callback(s)
    device.unregister_command_recording_discarded_callback(d)
    device.unregister_command_recording_discarded_callback(d)  # without effect


def test_fence(device: spy.Device) -> None:
    fence = device.create_fence(initial_value=3)
    assert (fence.current_value, fence.signaled_value) == (3, 3)
    assert fence.desc.initial_value == 3
    assert fence.signal() == 4
    assert fence.signal(10) == 10
    fence.wait()
    fence.wait(10)
    with pytest.raises(ValueError, match="only counts up"):
        fence.signal(10)
    with pytest.raises(TimeoutError, match="did not reach 11"):
        fence.wait(11, timeout_ns=1_000_000)
    buffer = device.create_buffer(size=16)
    encoder = device.create_command_encoder()
    encoder.fill_buffer(buffer, 5)
    commands = encoder.finish()
    device.submit_command_buffers([commands], wait_fences=[fence], signal_fences=[fence])
    fence.wait()
    assert fence.current_value == fence.signaled_value == 11
    device.submit_command_buffers([commands], [fence], [spy.Fence.AUTO], [fence], [20])
    fence.wait(20)
    assert fence.current_value == 20
    with pytest.raises(ValueError, match="signal_fence_values"):
        device.submit_command_buffers([commands], signal_fences=[fence], signal_fence_values=[30, 31])
    assert device.create_fence({"initial_value": 2}).current_value == 2


def test_timestamps(device: spy.Device) -> None:
    if not device.has_feature(spy.Feature.timestamp_query):
        pytest.skip("no timestamps")
    pool = device.create_query_pool(type=spy.QueryType.timestamp, count=4)
    results = device.create_buffer(size=32)

    def record(e: spy.CommandEncoder) -> None:
        e.write_timestamp(pool, 0)
        e.write_timestamp(pool, 1)
        e.resolve_query(pool, 0, 2, results, 8)

    device.wait_for_submit(run(device, record))
    ticks = pool.get_results(0, 2)
    assert 0 < ticks[0] <= ticks[1]
    assert pool.get_result(1) == ticks[1]
    seconds = pool.get_timestamp_results(0, 2)
    assert seconds[1] == pytest.approx(ticks[1] / device.info.timestamp_frequency)
    assert results.to_numpy().view(np.uint64)[1:3].tolist() == ticks
    with pytest.raises(IndexError, match="'index' out of range"):
        pool.get_result(4)
    with pytest.raises(IndexError, match="'count' out of range"):
        pool.get_results(3, 2)
    with pytest.raises(IndexError):
        device.create_command_encoder().write_timestamp(pool, 4)
    with pytest.raises(ValueError, match="count"):
        device.create_query_pool(spy.QueryType.timestamp, 0)
    pool.reset()
    for read in (lambda: pool.get_result(0), lambda: pool.get_timestamp_results(0, 2)):
        with pytest.raises(RuntimeError, match="query 0 has no result"):
            read()
    with pytest.raises(ValueError, match="at most 1048576"):
        device.create_query_pool(spy.QueryType.timestamp, 1 << 31)


def test_ids_that_were_not_given_out(device: spy.Device) -> None:
    newest = device.submit_command_buffer(device.create_command_encoder().finish())
    device.wait_for_submit(newest)
    assert device.is_submit_finished(newest) and not device.is_submit_finished(newest + 1000)
    with pytest.raises(ValueError, match="nothing was submitted under id"):
        device.wait_for_submit(newest + 1000)


def test_wrong_types_in_submissions(device: spy.Device) -> None:
    commands = device.create_command_encoder().finish()
    with pytest.raises(TypeError, match="'wait_fences': expected Fences, got None"):
        device.submit_command_buffers([commands], wait_fences=[None])  # type: ignore[list-item]
    with pytest.raises(TypeError, match="'signal_fences'"):
        device.submit_command_buffers([commands], signal_fences=[commands])  # type: ignore[list-item]
    with pytest.raises(TypeError, match="'queue': expected a CommandQueueType"):
        device.submit_command_buffer(commands, queue=3)  # type: ignore[arg-type]
    with pytest.raises(RuntimeError, match="shared=True"):
        device.create_fence().shared_handle


def test_texture_state_is_a_hint(device: spy.Device, device_type: spy.DeviceType) -> None:
    texture = device.create_texture(
        width=4, height=4, format=spy.Format.r8_unorm, usage=spy.TextureUsage.shader_resource
    )
    encoder = device.create_command_encoder()
    encoder.set_texture_state(texture, spy.ResourceState.general)
    encoder.set_texture_state(texture, {"layer": 0, "mip": 0}, spy.ResourceState.general)
    encoder.set_texture_state(texture=texture, state=spy.ResourceState.general)
    with pytest.raises(TypeError):
        encoder.set_texture_state(texture)  # type: ignore[call-overload]
    with pytest.raises(IndexError, match="mip"):
        encoder.set_texture_state(texture, {"mip": 3}, spy.ResourceState.general)


def test_range_errors_name_both_limits(device: spy.Device) -> None:
    a, b = device.create_buffer(size=16), device.create_buffer(size=64)
    for size in (17, 32):
        with pytest.raises(IndexError, match="must be less than or equal 16"):
            device.create_command_encoder().copy_buffer(b, 0, a, 0, size)
    with pytest.raises(IndexError, match="less than or equal 8.*less than or equal 16, the buffer's size"):
        device.create_command_encoder().copy_buffer(b, 0, a, 8, 16)


def test_cuda_stream_elsewhere_is_an_error(device: spy.Device, device_type: spy.DeviceType) -> None:
    if device_type is spy.DeviceType.cuda:
        pytest.skip("has streams")
    commands = device.create_command_encoder().finish()
    with pytest.raises(ValueError, match="cuda_stream"):
        device.submit_command_buffer(commands, cuda_stream=spy.NativeHandle.from_cuda_stream(1))
