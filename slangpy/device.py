"""What devices do in Python: opening and closing, the current device, callbacks, and the way to the program layer.

The class `Device` is native. Its methods that need not be native call the function of the same name with a leading
underscore in this file; the state that these need is kept in the attributes of the device object.
"""

from __future__ import annotations

import atexit
import shlex
import sys
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from slangpy import _native
from slangpy._native import (
    Buffer,
    CommandBuffer,
    CommandQueueType,
    Device,
    DeviceDesc,
    DeviceType,
    Feature,
    Fence,
    NativeHandle,
    NativeHandleType,
    Texture,
)
from slangpy.config import config
from slangpy.log import log_info, log_warn

__all__ = [
    "ALL_LAYERS",
    "ALL_MIPS",
    "SHADER_PATH",
    "CommandRecordingEvent",
    "MemoryUsage",
    "ShaderCacheStats",
    "compose_modules",
    "create_buffer",
    "create_command_encoder",
    "create_compute_kernel",
    "create_compute_pipeline",
    "create_device",
    "create_fence",
    "create_query_pool",
    "create_root_shader_object",
    "create_sampler",
    "create_shader_object",
    "create_slang_session",
    "create_texture",
    "current_device",
    "get_cuda_current_context_native_handles",
    "link_program",
    "load_module",
    "load_module_from_source",
    "load_program",
    "pop_current_device",
    "push_current_device",
]

ALL_MIPS = _native.ALL_MIPS
ALL_LAYERS = _native.ALL_LAYERS

SHADER_PATH = str(Path(__file__).parent / "slang")
"""Folder of the Slang library that comes with the package."""

_open_devices: weakref.WeakSet[Device] = weakref.WeakSet()
_thread_state = threading.local()
_cpu_configured = False


@dataclass(frozen=True)
class MemoryUsage:
    """Bytes that a resource holds on the device and on the host."""

    device: int
    host: int


@dataclass(frozen=True)
class ShaderCacheStats:
    """`entry_count` kernels lie in the disk cache; the counts of hits and misses are those of one device object."""

    entry_count: int
    hit_count: int
    miss_count: int


@dataclass(frozen=True)
class CommandRecordingEvent:
    """What the callbacks about command buffers are given. `submit_id` is 0 for discarded ones."""

    device: Device
    id: int
    command_buffer: CommandBuffer | None
    submit_id: int


# --- opening


def create_device(
    type: DeviceType = DeviceType.automatic,
    enable_debug_layers: bool = False,
    adapter_luid: Sequence[int] | None = None,
    include_paths: Sequence[str | Path] = (),
    enable_cuda_interop: bool = False,
    enable_print: bool = False,
    enable_hot_reload: bool = True,
    enable_compilation_reports: bool = False,
    existing_device_handles: Sequence[NativeHandle] | None = None,
    bindless_options: Any = None,
    label: str = "",
) -> Device:
    """Opens a device: the best there is for `automatic` (CUDA, D3D12, Vulkan on hardware, CPU).

    The package's Slang folder and then `include_paths` are searched for modules. The environment variable
    SLANGPY_DEVICE_TYPE_OVERRIDE, a name of `DeviceType`, replaces `type`. RuntimeError says what is missing when a type
    given cannot be opened.
    """
    override = config.device_type_override
    if override in DeviceType.__members__:
        type = DeviceType[override]
    return Device(
        type=type,
        enable_debug_layers=enable_debug_layers,
        adapter_luid=adapter_luid,
        compiler_options={"include_paths": [SHADER_PATH, *map(str, include_paths)]},
        enable_cuda_interop=enable_cuda_interop,
        enable_print=enable_print,
        enable_hot_reload=enable_hot_reload,
        enable_compilation_reports=enable_compilation_reports,
        existing_device_handles=existing_device_handles,
        bindless_options=bindless_options,
        label=label,
    )


def _configure_cpu() -> None:
    """Tells the CPU backend which compilers to try and how many threads to use."""
    compilers = [[name] for name in ("g++", "clang++", "c++")]
    if config.cxx:
        compilers.insert(0, shlex.split(config.cxx))
    if sys.executable and _has_ziglang():
        compilers.append([sys.executable, "-m", "ziglang", "c++"])
    _native._configure_cpu(threads=config.cpu_threads, compilers=compilers)


def _configure_cuda() -> None:
    """Tells the CUDA backend where NVRTC may be: pip packages, torch's copy, a toolkit."""
    if hasattr(_native, "_set_nvrtc_search_paths"):
        _native._set_nvrtc_search_paths(nvrtc_folders())


def nvrtc_folders() -> list[str]:
    """Folders that may hold NVRTC, best first."""
    from importlib.util import find_spec

    folders: list[str] = []
    nvidia = find_spec("nvidia")
    for root in nvidia.submodule_search_locations or [] if nvidia is not None else []:
        folders += [str(path) for path in sorted(Path(root).iterdir()) if path.is_dir()]
    torch = find_spec("torch")
    if torch is not None and torch.origin:
        folders.append(str(Path(torch.origin).parent))
    return folders + list(config.cuda_folders)


def _has_ziglang() -> bool:
    from importlib.util import find_spec

    return find_spec("ziglang") is not None


def _opening() -> None:
    """Called by `Device(...)` before it opens anything."""
    global _cpu_configured
    if not _cpu_configured:
        _cpu_configured = True
        _configure_cpu()
        _configure_cuda()


def _opened(device: Device, desc: DeviceDesc) -> None:
    """Called by `Device(...)` with each new device."""
    state = device.__dict__
    state["_state_desc"] = desc
    state["_state_close_callbacks"] = {}
    state["_state_submitted_callbacks"] = {}
    state["_state_discarded_callbacks"] = {}
    state["_state_next_id"] = 0
    _open_devices.add(device)
    push_current_device(device)


def _desc(device: Device) -> DeviceDesc:
    return device.__dict__["_state_desc"]


# --- closing


def _close(device: Device) -> None:
    state = device.__dict__
    if device.is_closed or state.get("_state_closing"):
        return
    state["_state_closing"] = True
    failure: BaseException | None = None
    try:
        device.wait()
    except RuntimeError as error:  # a kernel's fault
        failure = error
    except BaseException:  # Ctrl-C: the device stays open
        del state["_state_closing"]
        raise
    for number in list(state["_state_close_callbacks"]):
        callback = state["_state_close_callbacks"].get(number)
        if callback is None:
            continue
        try:
            callback(device)
        except Exception as error:
            failure = failure or error
    _open_devices.discard(device)
    stack = _stack()
    if stack and stack[-1] is device:
        stack.pop()
    for name in [n for n in state if n not in ("_state_desc", "_state_closing")]:
        del state[name]
    try:
        device._close()
    except Exception as error:
        failure = failure or error
    if failure is not None:
        raise failure


@atexit.register
def _close_all() -> None:
    for device in list(_open_devices):
        try:
            device.close()
        except Exception as error:
            log_warn(f"closing {device.info.adapter_name} at exit: {error}")
    _stack().clear()


def _get_created_devices() -> list[Device]:
    return list(_open_devices)


def _report_live_objects() -> None:
    for device in _open_devices:
        lines = [f"{device.info.adapter_name}: {len(device._live_objects())} live objects"]
        log_info("\n  ".join(lines + device._live_objects()))


# --- current device


def _stack() -> list[Device]:
    if not hasattr(_thread_state, "stack"):
        _thread_state.stack = []
    return _thread_state.stack


def push_current_device(device: Device) -> None:
    """Makes `device` the current one of this thread."""
    if not isinstance(device, Device):
        raise TypeError(f"push_current_device: expected a Device, got {device!r}")
    _stack().append(device)


def pop_current_device() -> Device:
    """Takes the current device off this thread's stack and returns it."""
    if not _stack():
        raise RuntimeError("No device to pop: push_current_device() was not called on this thread")
    return _stack().pop()


def current_device() -> Device:
    """The device that was pushed or created last on this thread."""
    if not _stack():
        raise RuntimeError("No current device: create one, or use `with device:`, on this thread")
    return _stack()[-1]


def ___enter__(device: Device) -> Device:
    push_current_device(device)
    return device


def ___exit__(device: Device, *args: Any) -> None:
    stack = _stack()
    for i in reversed(range(len(stack))):
        if stack[i] is device:
            del stack[i]
            return


def _on_current(name: str, doc: str) -> Callable[..., Any]:
    def function(*args: Any, **kwargs: Any) -> Any:
        return getattr(current_device(), name)(*args, **kwargs)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


create_buffer = _on_current("create_buffer", "`Device.create_buffer` of the current device.")
create_texture = _on_current("create_texture", "`Device.create_texture` of the current device.")
create_sampler = _on_current("create_sampler", "`Device.create_sampler` of the current device.")
create_fence = _on_current("create_fence", "`Device.create_fence` of the current device.")
create_query_pool = _on_current("create_query_pool", "`Device.create_query_pool` of the current device.")
create_command_encoder = _on_current("create_command_encoder", "`Device.create_command_encoder` of the current device.")
create_slang_session = _on_current("create_slang_session", "`Device.create_slang_session` of the current device.")
load_module = _on_current("load_module", "`Device.load_module` of the current device.")
load_module_from_source = _on_current(
    "load_module_from_source", "`Device.load_module_from_source` of the current device."
)
compose_modules = _on_current("compose_modules", "`Device.compose_modules` of the current device.")
link_program = _on_current("link_program", "`Device.link_program` of the current device.")
load_program = _on_current("load_program", "`Device.load_program` of the current device.")
create_compute_pipeline = _on_current(
    "create_compute_pipeline", "`Device.create_compute_pipeline` of the current device."
)
create_compute_kernel = _on_current("create_compute_kernel", "`Device.create_compute_kernel` of the current device.")
create_root_shader_object = _on_current(
    "create_root_shader_object", "`Device.create_root_shader_object` of the current device."
)
create_shader_object = _on_current("create_shader_object", "`Device.create_shader_object` of the current device.")


# --- information


def _features(device: Device) -> list[Feature]:
    return [Feature[name] for name in device._feature_names if name in Feature.__members__]


def _has_feature(device: Device, feature: Feature) -> bool:
    if not isinstance(feature, Feature):
        raise TypeError(f"has_feature: expected a Feature, got {feature!r}")
    return feature.name in device._feature_names


def _supported_shader_model(device: Device) -> Any:
    from slangpy.session import ShaderModel

    names = set(device._feature_names)
    models = [m for m in ShaderModel if m.name in names]
    return max(models, key=lambda m: m.value, default=ShaderModel.sm_6_0)


def _get_timestamp_calibration(device: Device) -> Any:
    raise NotImplementedError("get_timestamp_calibration is not implemented; compare timestamps of one query pool")


def _memory_usage(resource: Buffer | Texture) -> MemoryUsage:
    size = resource.size if isinstance(resource, Buffer) else resource._memory_bytes
    on_host = resource.device.type in (DeviceType.cpu, DeviceType.null)
    on_host = on_host or resource.desc.memory_type is not _native.MemoryType.device_local
    return MemoryUsage(device=0 if on_host else size, host=size if on_host else 0)


def get_cuda_current_context_native_handles() -> list[NativeHandle]:
    """CUDA device and context of the calling thread; RuntimeError when there is none."""
    import ctypes

    try:
        cuda = ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
    except OSError:
        raise RuntimeError("No current CUDA context found. The CUDA driver is not installed.") from None
    context, device = ctypes.c_void_p(), ctypes.c_int()
    if cuda.cuCtxGetCurrent(ctypes.byref(context)) != 0 or not context.value:
        raise RuntimeError("No current CUDA context found.")
    cuda.cuCtxGetDevice(ctypes.byref(device))
    return [
        NativeHandle(NativeHandleType.CUdevice, device.value),
        NativeHandle(NativeHandleType.CUcontext, context.value),
    ]


@contextmanager
def _cuda_context_scope(device: Device) -> Iterator[None]:
    if device.type is not DeviceType.cuda:
        yield
        return
    import ctypes

    cuda = ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
    before = ctypes.c_void_p()
    cuda.cuCtxGetCurrent(ctypes.byref(before))
    device.set_cuda_context_current()
    try:
        yield
    finally:
        cuda.cuCtxSetCurrent(before)


# --- callbacks


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


# --- submission


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
    del queue  # there is one
    stream = NativeHandle() if cuda_stream is None else cuda_stream
    id = _native._submit(
        device,
        command_buffers,
        list(wait_fences),
        wait_fence_values,
        list(signal_fences),
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


# --- memory of buffers


@contextmanager
def _mapped(buffer: Buffer) -> Iterator[memoryview]:
    view = buffer.map()
    try:
        yield view
    finally:
        buffer.unmap()


def _buffer_to_torch(
    buffer: Buffer, type: Any = None, shape: Sequence[int] = (), strides: Sequence[int] = (), offset: int = 0
) -> Any:
    import torch  # pyright: ignore[reportMissingImports]

    dtype = _torch_dtype(torch, type)
    flat = torch.from_dlpack(_native._export_bytes(buffer))
    usable = buffer.size // dtype.itemsize * dtype.itemsize
    typed = flat[:usable].view(dtype)
    if offset < 0 or offset > typed.numel():
        raise ValueError(f"to_torch: 'offset' ({offset}) is outside of the buffer's {typed.numel()} elements")
    if not shape:
        if strides:
            raise ValueError("to_torch: 'strides' can only be given with 'shape'")
        return typed[offset:]
    sizes = [int(n) for n in shape]
    steps = [int(n) for n in strides] if strides else [0] * len(sizes)
    if len(steps) != len(sizes):
        raise ValueError(f"to_torch: 'strides' has {len(steps)} entries, 'shape' {len(sizes)}")
    if not strides:
        step = 1
        for i in reversed(range(len(sizes))):
            steps[i], step = step, step * sizes[i]
    last = offset + sum((n - 1) * s for n, s in zip(sizes, steps, strict=True))
    if min(sizes) < 0 or min(steps) < 0 or (0 not in sizes and last >= typed.numel()):
        raise ValueError(f"to_torch: shape {sizes} with strides {steps} does not fit {typed.numel()} elements")
    return torch.as_strided(typed, sizes, steps, offset)


def _torch_dtype(torch: Any, type: Any) -> Any:
    if type is None:
        return torch.uint8
    if isinstance(type, torch.dtype):
        return type
    name = getattr(type, "name", str(type)).rstrip("_")
    dtype = torch.uint8 if name == "void" else getattr(torch, name, None)
    if not isinstance(dtype, torch.dtype):
        raise TypeError(f"to_torch: 'type' must be a DataType or a torch dtype, got {type!r}")
    return dtype


# --- the program layer


def _torch_device(device: Device) -> Any:
    try:
        import torch  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise ImportError(f"Device.torch_device needs torch: pip install torch ({error})") from None
    if device.info.type == DeviceType.cuda:
        return torch.device("cuda", device._cuda_index)
    return torch.device("cpu")  # graphics devices copy


def _slang_session(device: Device) -> Any:
    if device.is_closed:
        raise RuntimeError("device is closed")
    state = device.__dict__
    if "_state_session" not in state:
        desc = device.desc
        state["_state_session"] = _new_session(device, desc.compiler_options, True, desc.module_cache_path)
    return state["_state_session"]


def _new_session(device: Device, options: Any, add_default_include_paths: bool, cache_path: Any) -> Any:
    from slangpy import session

    return session.create_session(device, options, add_default_include_paths, cache_path)


def _create_slang_session(
    device: Device, compiler_options: Any = None, add_default_include_paths: bool = True, cache_path: Any = None
) -> Any:
    if device.is_closed:
        raise RuntimeError("device is closed")
    return _new_session(device, compiler_options, add_default_include_paths, cache_path)


def _load_module(device: Device, name: str) -> Any:
    return device.slang_session.load_module(name)


def _load_module_from_source(device: Device, name: str, source: str, path: Any = None) -> Any:
    return device.slang_session.load_module_from_source(name, source, path)


def _compose_modules(device: Device, name: str, modules: Any, type_conformances: Any = ()) -> Any:
    return device.slang_session.compose_modules(name, modules, type_conformances)


def _link_program(device: Device, modules: Any, entry_points: Any, link_options: Any = None) -> Any:
    return device.slang_session.link_program(modules, entry_points, link_options)


def _load_program(
    device: Device, module_name: str, entry_point_names: Any, additional_source: Any = None, link_options: Any = None
) -> Any:
    return device.slang_session.load_program(module_name, entry_point_names, additional_source, link_options)


def _create_compute_pipeline(
    device: Device, program: Any, defer_target_compilation: bool = False, label: str | None = None
) -> Any:
    from slangpy import kernel

    return kernel.create_compute_pipeline(device, program, defer_target_compilation, label)


def _create_compute_kernel(device: Device, program: Any) -> Any:
    from slangpy import kernel

    return kernel.create_compute_kernel(device, program)


def _create_root_shader_object(device: Device, program: Any) -> Any:
    from slangpy import kernel

    return kernel.create_root_shader_object(device, program)


def _create_shader_object(device: Device, type_layout: Any) -> Any:
    from slangpy import kernel

    return kernel.create_shader_object(device, type_layout)


# --- hot reload, printing, reports


def _reload_all_programs(device: Device) -> None:
    from slangpy.reload import reload_changed

    device.slang_session.reload()
    reload_changed(device, force=True)


def _hot_reload_check(device: Device) -> None:
    from slangpy.reload import reload_changed

    reload_changed(device)


def _set_hot_reload_delay(device: Device, delay_ms: int) -> None:
    # Checks cost one system call and wait for nothing, so there is no delay to keep; the value is only checked.
    if delay_ms < 0:
        raise ValueError(f"set_hot_reload_delay: expected milliseconds >= 0, got {delay_ms}")


def _register_shader_hot_reload_callback(device: Device, callback: Callable[[Any], Any]) -> int:
    state = device.__dict__
    state.setdefault("_state_reload_callbacks", {})
    return _register(device, "reload", callback)


def _unregister_shader_hot_reload_callback(device: Device, id: int) -> None:
    _unregister(device, "reload", id)


def _shader_cache_stats(device: Device) -> ShaderCacheStats:
    """Kernels in the disk cache, and how many of this device's came from it or had to be compiled."""
    if device.is_closed:
        raise RuntimeError("device is closed")
    from slangpy.cache import cache

    compiled, created = device._kernel_counts
    return ShaderCacheStats(
        entry_count=cache.count("kernel"), hit_count=max(created - compiled, 0), miss_count=compiled
    )


def _report_step(device: Device, step: str, label: str, seconds: float, size: int) -> None:
    """Called by the native layer after each step of building a kernel, where compilation reports are enabled."""
    reports = device.__dict__.setdefault("_state_reports", [])
    last = next((report for report in reversed(reports) if report["label"] == label), None)
    if last is None or last["pipeline_time"] is not None:  # complete: this begins another kernel
        last = {
            "label": label, "type": "compute", "code_generation_time": 0.0,
            "downstream_time": 0.0, "pipeline_time": None, "is_cached": True, "source_size": 0, "code_size": 0,
        }  # fmt: skip
        reports.append(last)
    if step == "pipeline":
        last["pipeline_time"] = seconds
        last["code_size"] = size
    else:
        last[f"{step}_time"] += seconds
        last["source_size"] = size
        last["is_cached"] = last["is_cached"] and step != "downstream"


def _get_compilation_reports(device: Device) -> list[dict[str, Any]]:
    """One dict for each kernel built since the device was opened, times in seconds and sizes in bytes."""
    if device.is_closed:
        raise RuntimeError("device is closed")
    if not device.desc.enable_compilation_reports:
        raise RuntimeError("get_compilation_reports: open the device with enable_compilation_reports=True")
    return [dict(report) for report in device.__dict__.get("_state_reports", ())]


def _flush_print_to_string(device: Device) -> str:
    """What kernels have printed since the last flush; waits for them."""
    from slangpy.printing import flush

    return flush(device)


def _flush_print(device: Device) -> None:
    for line in _flush_print_to_string(device).splitlines():
        log_info(line)
