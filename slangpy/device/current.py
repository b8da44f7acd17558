"""The devices that are open, and the current one of a thread."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from typing import Any

from slangpy import _native
from slangpy.base.census import Census

open_devices = Census(16)
_thread_state = threading.local()

_Entry = Any
"""A device that was pushed, or a weak reference to one that was opened here: that alone must not keep it."""


def stack() -> list[_Entry]:
    """The devices of this thread, the current one last."""
    if not hasattr(_thread_state, "stack"):
        _thread_state.stack = []
    return _thread_state.stack


def _device_of(entry: _Entry) -> Any:
    return entry() if isinstance(entry, weakref.ref) else entry


def top() -> Any:
    """The current device; takes those off the stack that nobody holds any more."""
    entries = stack()
    while entries:
        device = _device_of(entries[-1])
        if device is not None:
            return device
        entries.pop()
    return None


def note_opened(device: _native.Device) -> None:
    """A device becomes the current one of the thread that opened it."""
    entries = stack()
    entries[:] = [entry for entry in entries if _device_of(entry) is not None]
    entries.append(weakref.ref(device))
    open_devices.add(device)


def note_closing(device: _native.Device) -> None:
    open_devices.discard(device)
    if top() is device:
        stack().pop()


def leave(device: _native.Device) -> None:
    """Takes the newest entry of a device off the stack."""
    entries = stack()
    for i in reversed(range(len(entries))):
        if _device_of(entries[i]) is device:
            del entries[i]
            return


def push_current_device(device: _native.Device) -> None:
    """Makes `device` the current one of this thread."""
    if not isinstance(device, _native.Device):
        raise TypeError(f"push_current_device: expected a Device, got {device!r}")
    stack().append(device)


def pop_current_device() -> Any:
    """Takes the current device off this thread's stack and returns it."""
    device = top()
    if device is None:
        raise RuntimeError("No device to pop: push_current_device() was not called on this thread")
    stack().pop()
    return device


def current_device() -> Any:
    """The device that was pushed or created last on this thread. A created one counts while somebody holds it."""
    device = top()
    if device is None:
        raise RuntimeError("No current device: create one and keep it, or use `with device:`, on this thread")
    return device


def _on_current(name: str) -> Callable[..., Any]:
    def function(*args: Any, **kwargs: Any) -> Any:
        return getattr(current_device(), name)(*args, **kwargs)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"`Device.{name}` of the current device."
    return function


create_buffer = _on_current("create_buffer")
create_texture = _on_current("create_texture")
create_sampler = _on_current("create_sampler")
create_fence = _on_current("create_fence")
create_query_pool = _on_current("create_query_pool")
create_command_encoder = _on_current("create_command_encoder")
create_slang_session = _on_current("create_slang_session")
load_module = _on_current("load_module")
load_module_from_source = _on_current("load_module_from_source")
compose_modules = _on_current("compose_modules")
link_program = _on_current("link_program")
load_program = _on_current("load_program")
create_compute_pipeline = _on_current("create_compute_pipeline")
create_compute_kernel = _on_current("create_compute_kernel")
create_root_shader_object = _on_current("create_root_shader_object")
create_shader_object = _on_current("create_shader_object")
create_render_pipeline = _on_current("create_render_pipeline")
create_coop_vec_matrix_desc = _on_current("create_coop_vec_matrix_desc")
get_coop_vec_matrix_size = _on_current("get_coop_vec_matrix_size")
convert_coop_vec_matrix = _on_current("convert_coop_vec_matrix")
convert_coop_vec_matrices = _on_current("convert_coop_vec_matrices")
create_input_layout = _on_current("create_input_layout")
create_acceleration_structure = _on_current("create_acceleration_structure")
create_acceleration_structure_instance_list = _on_current("create_acceleration_structure_instance_list")
get_acceleration_structure_sizes = _on_current("get_acceleration_structure_sizes")
create_shader_table = _on_current("create_shader_table")
get_format_support = _on_current("get_format_support")
get_timestamp_calibration = _on_current("get_timestamp_calibration")
create_ray_tracing_pipeline = _on_current("create_ray_tracing_pipeline")
create_surface = _on_current("create_surface")
get_compilation_reports = _on_current("get_compilation_reports")
