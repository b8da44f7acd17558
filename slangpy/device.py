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
from pathlib import Path
from typing import Any

from slangpy import _native
from slangpy._native import (
    Device,
    DeviceDesc,
    DeviceType,
    Feature,
    NativeHandle,
    NativeHandleType,
)
from slangpy.census import Census
from slangpy.config import config
from slangpy.device_commands import (
    CommandRecordingEvent as CommandRecordingEvent,
    _discarded as _discarded,
    _register as _register,
    _register_command_recording_discarded_callback as _register_command_recording_discarded_callback,
    _register_command_recording_submitted_callback as _register_command_recording_submitted_callback,
    _register_device_close_callback as _register_device_close_callback,
    _submit_command_buffer as _submit_command_buffer,
    _submit_command_buffers as _submit_command_buffers,
    _unregister as _unregister,
    _unregister_command_recording_discarded_callback as _unregister_command_recording_discarded_callback,
    _unregister_command_recording_submitted_callback as _unregister_command_recording_submitted_callback,
    _unregister_device_close_callback as _unregister_device_close_callback,
)
from slangpy.device_memory import (
    MemoryUsage as MemoryUsage,
    _buffer_to_torch as _buffer_to_torch,
    _mapped as _mapped,
    _memory_usage as _memory_usage,
    _torch_dtype as _torch_dtype,
)
from slangpy.device_programs import (
    _compose_modules as _compose_modules,
    _create_compute_kernel as _create_compute_kernel,
    _create_compute_pipeline as _create_compute_pipeline,
    _create_root_shader_object as _create_root_shader_object,
    _create_shader_object as _create_shader_object,
    _create_slang_session as _create_slang_session,
    _link_program as _link_program,
    _load_module as _load_module,
    _load_module_from_source as _load_module_from_source,
    _load_program as _load_program,
    _new_session as _new_session,
    _slang_session as _slang_session,
    _torch_device as _torch_device,
)
from slangpy.device_reports import (
    ShaderCacheStats as ShaderCacheStats,
    ShaderHotReloadEvent as ShaderHotReloadEvent,
    _flush_print as _flush_print,
    _flush_print_to_string as _flush_print_to_string,
    _get_compilation_reports as _get_compilation_reports,
    _hot_reload_check as _hot_reload_check,
    _register_shader_hot_reload_callback as _register_shader_hot_reload_callback,
    _reload_all_programs as _reload_all_programs,
    _report_step as _report_step,
    _set_hot_reload_delay as _set_hot_reload_delay,
    _shader_cache_stats as _shader_cache_stats,
    _unregister_shader_hot_reload_callback as _unregister_shader_hot_reload_callback,
)
from slangpy.log import log_info, log_warn
from slangpy.reload import code_lock

__all__ = [
    "ALL_LAYERS",
    "ALL_MIPS",
    "SHADER_PATH",
    "CommandRecordingEvent",
    "MemoryUsage",
    "ShaderCacheStats",
    "ShaderHotReloadEvent",
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

_open_devices = Census(16)
_LAST_PATIENCE = 1.0
"""Seconds that the end of the interpreter waits for a call that is being planned."""
_thread_state = threading.local()
_cpu_configured = False


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
    _reload_before_cells()
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


_in_notebook = False


def _reload_before_cells() -> None:
    """In a notebook kernel: changed modules are replaced before each cell runs."""
    global _in_notebook
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None and not _in_notebook else None
    if shell is None or not hasattr(shell, "kernel"):
        return
    _in_notebook = True

    def check(*_: Any) -> None:
        for device in _get_created_devices():
            if not device.is_closed:
                device.hot_reload_check()

    shell.events.register("pre_run_cell", check)


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
    stack = _stack()
    stack[:] = [entry for entry in stack if _device_of(entry) is not None]
    stack.append(weakref.ref(device))
    _open_devices.add(device)


def _desc(device: Device) -> DeviceDesc:
    return device.__dict__["_state_desc"]


def _checks_gradients(device: Device) -> bool:
    chosen = device.__dict__.get("_state_check_gradients")
    return (config.check_gradients or _desc(device).enable_debug_layers) if chosen is None else chosen


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
    if _top() is device:
        _stack().pop()
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
    # Not let go of: a daemon thread that began to plan a call now would be ended in the midst of native code. One that is
    # compiling may take long, and sleeps when it comes back.
    code_lock.acquire(timeout=_LAST_PATIENCE)
    for device in _get_created_devices():
        try:
            device.close()
        except Exception as error:
            log_warn(f"closing {device.info.adapter_name} at exit: {error}")
    _stack().clear()


def _get_created_devices() -> list[Device]:
    return _open_devices.items()


def _report_live_objects() -> None:
    for device in _get_created_devices():
        lines = [f"{device.info.adapter_name}: {len(device._live_objects())} live objects"]
        log_info("\n  ".join(lines + device._live_objects()))


# --- current device


_Entry = Device | weakref.ref[Device]
"""A device that was pushed, or one that was opened here: that alone must not keep it."""


def _stack() -> list[_Entry]:
    if not hasattr(_thread_state, "stack"):
        _thread_state.stack = []
    return _thread_state.stack


def _device_of(entry: _Entry) -> Device | None:
    return entry() if isinstance(entry, weakref.ref) else entry


def _top() -> Device | None:
    """The current device; takes those off the stack that nobody holds any more."""
    stack = _stack()
    while stack:
        device = _device_of(stack[-1])
        if device is not None:
            return device
        stack.pop()
    return None


def push_current_device(device: Device) -> None:
    """Makes `device` the current one of this thread."""
    if not isinstance(device, Device):
        raise TypeError(f"push_current_device: expected a Device, got {device!r}")
    _stack().append(device)


def pop_current_device() -> Device:
    """Takes the current device off this thread's stack and returns it."""
    device = _top()
    if device is None:
        raise RuntimeError("No device to pop: push_current_device() was not called on this thread")
    _stack().pop()
    return device


def current_device() -> Device:
    """The device that was pushed or created last on this thread. A created one counts while somebody holds it."""
    device = _top()
    if device is None:
        raise RuntimeError("No current device: create one and keep it, or use `with device:`, on this thread")
    return device


def ___enter__(device: Device) -> Device:
    push_current_device(device)
    return device


def ___exit__(device: Device, *args: Any) -> None:
    stack = _stack()
    for i in reversed(range(len(stack))):
        if _device_of(stack[i]) is device:
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
