"""Methods of `Device` about commands: callbacks and submission. `slangpy.device` hands them on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from slangpy import _native
from slangpy._native import CommandBuffer, CommandQueueType, Device, Fence, NativeHandle


@dataclass(frozen=True)
class CommandRecordingEvent:
    """What the callbacks about command buffers are given. `submit_id` is 0 for discarded ones."""

    device: Device
    id: int
    command_buffer: CommandBuffer | None
    submit_id: int


def _register(device: Device, kind: str, callback: Callable[[Any], Any]) -> int:
    if device.is_closed:
        raise RuntimeError("device is closed")
    if not callable(callback):
        raise TypeError(f"expected a function as callback, got {callback!r}")
    state = device.__dict__
    state["_state_next_id"] += 1
    state[f"_state_{kind}_callbacks"][state["_state_next_id"]] = callback
    return state["_state_next_id"]


def _unregister(device: Device, kind: str, id: int) -> None:
    if device.__dict__.get(f"_state_{kind}_callbacks", {}).pop(id, None) is None:
        raise ValueError(f"no {kind} callback is registered under id {id}")


def _register_device_close_callback(device: Device, callback: Callable[[Device], Any]) -> int:
    return _register(device, "close", callback)


def _unregister_device_close_callback(device: Device, id: int) -> None:
    _unregister(device, "close", id)


def _register_command_recording_submitted_callback(device: Device, callback: Callable[[Any], Any]) -> int:
    return _register(device, "submitted", callback)


def _unregister_command_recording_submitted_callback(device: Device, id: int) -> None:
    _unregister(device, "submitted", id)


def _register_command_recording_discarded_callback(device: Device, callback: Callable[[Any], Any]) -> int:
    return _register(device, "discarded", callback)


def _unregister_command_recording_discarded_callback(device: Device, id: int) -> None:
    _unregister(device, "discarded", id)


def _discarded(device: Device, recording_id: int) -> None:
    """Called by the native layer when recorded commands are dropped without having been submitted."""
    callbacks = device.__dict__.get("_state_discarded_callbacks")
    if callbacks:
        event = CommandRecordingEvent(device, recording_id, None, 0)
        for callback in list(callbacks.values()):
            callback(event)


def check_queue(function: str, queue: Any) -> None:
    """There is one queue."""
    if queue is not None and not isinstance(queue, CommandQueueType):
        raise TypeError(f"{function}: 'queue' must be a CommandQueueType, got {queue!r}")


def _submit_command_buffer(
    device: Device,
    command_buffer: CommandBuffer,
    queue: CommandQueueType = CommandQueueType.graphics,
    cuda_stream: NativeHandle | None = None,
) -> int:
    return _submit_command_buffers(device, [command_buffer], queue=queue, cuda_stream=cuda_stream)


def _submit_command_buffers(
    device: Device,
    command_buffers: Sequence[CommandBuffer],
    wait_fences: Sequence[Fence] = (),
    wait_fence_values: Sequence[int] = (),
    signal_fences: Sequence[Fence] = (),
    signal_fence_values: Sequence[int] = (),
    queue: CommandQueueType = CommandQueueType.graphics,
    cuda_stream: NativeHandle | None = None,
) -> int:
    check_queue("submit", queue)
    stream = NativeHandle() if cuda_stream is None else cuda_stream
    id = _native._submit(
        device,
        command_buffers,
        wait_fences,
        wait_fence_values,
        signal_fences,
        signal_fence_values,
        stream,
    )
    callbacks = device.__dict__.get("_state_submitted_callbacks")
    if callbacks:
        for command_buffer in command_buffers:
            event = CommandRecordingEvent(device, command_buffer.recording_id, command_buffer, id)
            for callback in list(callbacks.values()):
                callback(event)
    return id
