"""The class of devices: what needs no native code stands here, the rest is inherited."""

from __future__ import annotations

import atexit
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from os import PathLike
from typing import TYPE_CHECKING, Any

from slangpy import _native
from slangpy._native import (
    CommandBuffer,
    CommandQueueType,
    DeviceDesc,
    DeviceType,
    Feature,
    Fence,
    NativeHandle,
    Surface,
)
from slangpy.base.checks import check_queue
from slangpy.base.keywords import call_with_fields
from slangpy.base.optional import torch_for
from slangpy.base.shared import Shared
from slangpy.base.typed import named_member
from slangpy.compiler import early, kernel
from slangpy.compiler.modules.reload import ShaderHotReloadEvent, code_lock, reload_all, reload_changed
from slangpy.compiler.reports import report_step
from slangpy.compiler.session import ShaderModel, SlangSessionDesc, create_session
from slangpy.config import config
from slangpy.device import cuda, current, printing, reports
from slangpy.device.backends import configure_backends
from slangpy.device.commands import CommandRecordingEvent
from slangpy.device.coop_vec import CoopVecMatrices
from slangpy.device.log import log_info, log_warn, log_warn_once
from slangpy.device.profile import Profile
from slangpy.device.state import DeviceCallbacks, DeviceState
from slangpy.device.surface import create_surface
from slangpy.graphics.pipeline import RenderPipeline, create_render_pipeline
from slangpy.graphics.ray_tracing import RayTracingPipeline, create_ray_tracing_pipeline, create_shader_table

if TYPE_CHECKING:
    from typing_extensions import Self


def device_type(name: str) -> DeviceType:
    """The type that a name such as "cpu" stands for, or "cuda:0" of torch, which is the first adapter."""
    plain, colon, index = name.lower().partition(":")
    found = DeviceType.__members__.get(plain)
    if found is not None and colon and index != "0":
        raise ValueError(
            f"Device 'type': {name!r}: adapters are chosen by adapter_luid, such as "
            f"create_device('{plain}', adapter_luid=Device.enumerate_adapters('{plain}')[{index or 0}].luid)"
        )
    if found is None:
        known = ", ".join(f'"{known}"' for known in DeviceType.__members__)
        raise ValueError(f"Device 'type': {name!r} is no type of device; known: {known}")
    return found


_LAST_PATIENCE = 1.0
"""Seconds that the end of the interpreter waits for a call that is being planned."""


class Device(CoopVecMatrices, Shared):
    """Runs kernels and owns memory. Takes the fields of `DeviceDesc`, one of these or a dict.

    RuntimeError says what is missing when the device cannot be opened. `create_device` opens the best there is.
    """

    _desc: DeviceDesc
    _state: DeviceState
    _callbacks: DeviceCallbacks
    _check_gradients: bool | None
    _is_closing: bool

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        configure_backends()
        if isinstance(kwargs.get("type"), str):
            kwargs["type"] = device_type(kwargs["type"])
        elif args and isinstance(args[0], str):
            args = (device_type(args[0]), *args[1:])
        desc = _native._device_desc(*args, **kwargs)
        early.expect_compiler(desc)
        self = super().__new__(cls, desc)  # pyright: ignore[reportCallIssue]: stubs have no __new__
        self._desc = desc
        self._state = DeviceState()
        self._callbacks = DeviceCallbacks()
        self._check_gradients = None
        self._is_closing = False
        current.note_opened(self)
        if missing := desc.enable_debug_layers and _native._missing_layer(self.info.type):
            log_warn_once(f"enable_debug_layers has no effect: {missing}")
        return self

    # --- properties

    @property
    def desc(self) -> DeviceDesc:
        """The fields it was opened with."""
        return self._desc

    @property
    def features(self) -> list[Feature]:
        """What the device can do."""
        self._check_open()
        return [Feature[name] for name in self._feature_names if name in Feature.__members__]

    def has_feature(self, feature: Feature | str) -> bool:
        """Whether the device can do what `feature` names."""
        self._check_open()
        return named_member("has_feature 'feature'", Feature, feature).name in self._feature_names

    @property
    def supported_shader_model(self) -> ShaderModel:
        """The highest shader model that kernels may use."""
        self._check_open()
        names = set(self._feature_names)
        models = [model for model in ShaderModel if model.name in names]
        return max(models, key=lambda model: model.value, default=ShaderModel.sm_6_0)

    @property
    def check_gradients(self) -> bool:
        """Whether the first run of each new kind of backward call is compared with forward mode and, where they differ,
        with differences; RuntimeWarning where its gradients are wrong. It compiles and runs more. At first off, unless
        debug layers are on or the environment has SLANGPY_CHECK_GRADIENTS=1."""
        if self._check_gradients is None:
            return config.check_gradients or self._desc.enable_debug_layers
        return self._check_gradients

    @check_gradients.setter
    def check_gradients(self, on: bool) -> None:
        self._check_gradients = bool(on)

    @property
    def torch_device(self) -> Any:
        """The torch.device whose tensors calls take."""
        self._check_open()
        return _torch_device(self)

    @staticmethod
    def get_created_devices() -> list[Device]:
        """Open devices."""
        return current.open_devices.items()

    @staticmethod
    def report_live_objects() -> None:
        """Logs what is alive on each open device."""
        for device in Device.get_created_devices():
            lines = [f"{device.info.adapter_name}: {len(device._live_objects())} live objects"]
            log_info("\n  ".join(lines + device._live_objects()))

    # --- opening and closing

    def close(self) -> None:
        """Waits, runs the close callbacks, frees everything. A second call does nothing."""
        if self.is_closed or self._is_closing:
            return
        self._is_closing = True
        failure: BaseException | None = None
        try:
            self.wait()
        except RuntimeError as error:  # a kernel's fault
            failure = error
        except BaseException:  # Ctrl-C: the device stays open
            self._is_closing = False
            raise
        for profile in list(self._state.profiles):
            profile._finish()
        failed = self._callbacks.close.run_all(self)
        current.note_closing(self)
        shower = self._state.shower
        self._state = DeviceState()
        self._callbacks.clear()
        try:
            self._close()
            if shower is not None:
                shower.close()
        except Exception as error:
            failed = failed or error
        failure = failure or failed
        if failure is not None:
            raise failure

    def register_device_close_callback(self, callback: Callable[[Device], Any]) -> int:
        """callback(device) runs at the start of close(); returns an id."""
        self._check_open()
        return self._callbacks.close.register(callback)

    def unregister_device_close_callback(self, id: int) -> None:
        """Removes what `register_device_close_callback` was given."""
        self._check_open()
        self._callbacks.close.unregister(id)

    def __enter__(self) -> Self:
        """Pushes the device on the current-device stack."""
        self._check_open()
        current.push_current_device(self)
        return self

    def __exit__(self, *args: Any) -> None:
        current.leave(self)

    def cuda_context_scope(self) -> AbstractContextManager[None]:
        """Makes the CUDA context current inside `with`; no effect off CUDA."""
        self._check_open()
        return cuda.context_scope(self)

    # --- commands

    def submit_command_buffer(
        self,
        command_buffer: CommandBuffer,
        queue: CommandQueueType | str = CommandQueueType.graphics,
        cuda_stream: NativeHandle | None = None,
    ) -> int:
        """Returns the id of the submission."""
        check_queue("submit", queue)
        number = self._submit_one(command_buffer, cuda_stream)
        if self._callbacks.submitted.functions:
            self._callbacks.submitted.run(CommandRecordingEvent(self, command_buffer.recording_id, command_buffer, number))
        return number

    def submit_command_buffers(
        self,
        command_buffers: Sequence[CommandBuffer],
        wait_fences: Sequence[Fence] = (),
        wait_fence_values: Sequence[int] = (),
        signal_fences: Sequence[Fence] = (),
        signal_fence_values: Sequence[int] = (),
        queue: CommandQueueType | str = CommandQueueType.graphics,
        cuda_stream: NativeHandle | None = None,
    ) -> int:
        """Fence values may be Fence.AUTO or left out. Returns the id of the submission."""
        check_queue("submit", queue)
        number = self._submit(command_buffers, wait_fences, wait_fence_values, signal_fences, signal_fence_values, cuda_stream)
        if self._callbacks.submitted.functions:
            for buffer in command_buffers:
                self._callbacks.submitted.run(CommandRecordingEvent(self, buffer.recording_id, buffer, number))
        return number

    def register_command_recording_submitted_callback(self, callback: Callable[[CommandRecordingEvent], Any]) -> int:
        """callback(event) after a command buffer was submitted: device, id, command_buffer, submit_id."""
        self._check_open()
        return self._callbacks.submitted.register(callback)

    def unregister_command_recording_submitted_callback(self, id: int) -> None:
        """Removes what the function that registers was given."""
        self._check_open()
        self._callbacks.submitted.unregister(id)

    def register_command_recording_discarded_callback(self, callback: Callable[[CommandRecordingEvent], Any]) -> int:
        """callback(event) when a command buffer is dropped without having been submitted."""
        self._check_open()
        return self._callbacks.discarded.register(callback)

    def unregister_command_recording_discarded_callback(self, id: int) -> None:
        """Removes what the function that registers was given."""
        self._check_open()
        self._callbacks.discarded.unregister(id)

    def _note_discarded(self, recording_id: int) -> None:
        """Native code calls this when recorded commands are dropped without having been submitted."""
        if self._callbacks.discarded:
            self._callbacks.discarded.run(CommandRecordingEvent(self, recording_id, None, 0))

    # --- programs

    @property
    def slang_session(self) -> Any:
        """The default session."""
        self._check_open()
        if self._state.session is None:
            desc = self._desc
            self._state.session = create_session(self, desc.compiler_options, True, desc.module_cache_path, True)
            self._state.sessions.add(self._state.session)
        return self._state.session

    def create_slang_session(
        self,
        compiler_options: Any = None,
        add_default_include_paths: bool = True,
        cache_path: str | PathLike[str] | None = None,
    ) -> Any:
        """Another session."""
        self._check_open()
        desc = SlangSessionDesc.of(compiler_options, add_default_include_paths, cache_path)
        session = create_session(self, desc.compiler_options, desc.add_default_include_paths, desc.cache_path)
        self._state.sessions.add(session)
        return session

    def load_module(self, *args: Any, **kwargs: Any) -> Any:
        """load_module(module_name): loads a Slang module by name or path."""
        return self.slang_session.load_module(*args, **kwargs)

    def load_module_from_source(self, *args: Any, **kwargs: Any) -> Any:
        """load_module_from_source(module_name, source, path=None): loads a module from text."""
        return self.slang_session.load_module_from_source(*args, **kwargs)

    def compose_modules(self, name: str, modules: Sequence[Any], type_conformances: Sequence[Any] = ()) -> Any:
        """One module of several."""
        return self._session_of(modules).compose_modules(name, modules, type_conformances)

    def link_program(self, modules: Sequence[Any], entry_points: Sequence[Any], link_options: Any = None) -> Any:
        """A program of modules and entry points. SlangCompileError where they do not fit."""
        return self._session_of(modules).link_program(modules, entry_points, link_options)

    def _session_of(self, modules: Sequence[Any]) -> Any:
        """That of the first module, which must be the others', too: the code of a `slangpy.Module` is not in the default
        session."""
        first = next(iter(modules), None) if isinstance(modules, (list, tuple)) else None
        session = getattr(getattr(first, "device_module", first), "session", None)
        if session is None or session.device is not self:
            return self.slang_session
        if session is not self._state.session:
            self._check_open()
            self._state.sessions.add(session)  # so that its programs are reloaded, too
        return session

    def load_program(
        self,
        module_name: str,
        entry_point_names: Sequence[str],
        additional_source: str | None = None,
        link_options: Mapping[str, Any] | Any = None,
    ) -> Any:
        """Loads a module and links a program of the entry points that are named."""
        return self.slang_session.load_program(module_name, entry_point_names, additional_source, link_options)

    def create_compute_pipeline(
        self, program: Any, defer_target_compilation: bool = False, label: str | None = None
    ) -> kernel.ComputePipeline:
        """A pipeline of a program with one compute entry point. Takes its arguments as one dict, too."""
        self._check_open()
        if isinstance(program, Mapping):
            return call_with_fields(self.create_compute_pipeline, program)
        return kernel.create_compute_pipeline(self, program, defer_target_compilation, label)

    def create_compute_kernel(self, program: Any) -> kernel.ComputeKernel:
        """A kernel of a program with one compute entry point; its `dispatch` sets parameters by name. Takes its argument as one
        dict, too."""
        self._check_open()
        if isinstance(program, Mapping):
            return call_with_fields(self.create_compute_kernel, program)
        return kernel.create_compute_kernel(self, program)

    def create_render_pipeline(self, *args: Any, **kwargs: Any) -> RenderPipeline:
        """create_render_pipeline(program, input_layout=None, primitive_topology=triangle_list, targets=[],
        depth_stencil=None, rasterizer=None, multisample=None, defer_target_compilation=False, label=None), or one
        `RenderPipelineDesc` or dict. ValueError names the vertex input, target or field that is wrong."""
        self._check_open()
        return create_render_pipeline(self, *args, **kwargs)

    def create_ray_tracing_pipeline(self, *args: Any, **kwargs: Any) -> RayTracingPipeline:
        """create_ray_tracing_pipeline(program, hit_groups, max_recursion=0, max_ray_payload_size=0,
        max_attribute_size=8, flags=none, defer_target_compilation=False, label=None)

        A program of ray generation, miss, hit and callable entry points. ValueError names what does not fit.
        """
        return create_ray_tracing_pipeline(self, *args, **kwargs)

    def create_shader_table(self, *args: Any, **kwargs: Any) -> _native.ShaderTable:
        """create_shader_table(program, ray_gen_entry_points=[], miss_entry_points=[], hit_group_names=[],
        callable_entry_points=[])

        The place of a name in its list is the index by which shaders call it. Empty names call nothing.
        """
        return create_shader_table(self, *args, **kwargs)

    def create_surface(self, window: Any) -> Surface:
        """Of a `Window`, which it keeps open, or a `WindowHandle`. Needs the feature `surface`; cpu and cuda devices show
        images through a vulkan device, which is opened for it: they are copied over the host. NotImplementedError on others.
        """
        self._check_open()
        layers = self._desc.enable_debug_layers
        return create_surface(self, window, lambda: Device(type=DeviceType.vulkan, enable_debug_layers=layers))

    def create_root_shader_object(self, program: Any) -> Any:
        """An object that holds the parameters of a program."""
        self._check_open()
        return kernel.create_root_shader_object(self, program)

    def create_shader_object(self, type_layout: Any) -> Any:
        """An object that holds the fields of a struct or parameter block."""
        self._check_open()
        return kernel.create_shader_object(self, type_layout)

    # --- hot reload

    def hot_reload_check(self) -> None:
        """Applies changes of source files now."""
        self._check_open()
        reload_changed(self)

    def set_hot_reload_delay(self, delay_ms: int) -> None:
        """The value is only checked: a look at the files costs one system call and waits for nothing."""
        self._check_open()
        if not isinstance(delay_ms, (int, float)):
            raise TypeError(f"set_hot_reload_delay: 'delay_ms' must be a number of milliseconds, got {delay_ms!r}")
        if not delay_ms >= 0:
            raise ValueError(f"set_hot_reload_delay: 'delay_ms' must be at least 0, got {delay_ms}")

    def reload_all_programs(self) -> None:
        """Builds all code again, changed or not, and then calls each of the reload callbacks once. Reflection objects
        that were taken before are invalid from then on; modules, programs and kernels stay usable."""
        self._check_open()
        reload_all(self)

    def register_shader_hot_reload_callback(self, callback: Callable[[ShaderHotReloadEvent], Any]) -> int:
        """Calls `callback` with a ShaderHotReloadEvent after each reload."""
        self._check_open()
        return self._callbacks.reload.register(callback)

    def unregister_shader_hot_reload_callback(self, id: int) -> None:
        """Removes what `register_shader_hot_reload_callback` was given."""
        self._check_open()
        self._callbacks.reload.unregister(id)

    def _note_reloaded(self, event: ShaderHotReloadEvent) -> None:
        """After changed modules have been replaced."""
        self._callbacks.reload.run(event)

    # --- printing and reports

    def wait(self) -> None:
        """Until all work is done; with `enable_print`, what kernels printed is then on `sys.stdout`. Raises the fault of
        a kernel."""
        super().wait()
        self._show_printed()

    def wait_for_idle(self, queue: CommandQueueType | str = CommandQueueType.graphics) -> None:
        """Waits until the device has done all that was submitted."""
        super().wait_for_idle(queue)
        self._show_printed()

    def _show_printed(self) -> None:
        if self.desc.enable_print and not self.is_closed:
            printing.echo(self)

    def flush_print(self) -> None:
        """Waits, writes what kernels have printed to `sys.stdout` and logs it. wait() and close() write it, too."""
        self._check_open()
        printing.echo(self)
        for line in printing.flush(self).splitlines():
            log_info(line)

    def flush_print_to_string(self) -> str:
        """Waits, then returns what kernels have printed since the last flush."""
        self._check_open()
        return printing.flush(self)

    def profile(self) -> Profile:
        """`with device.profile() as p:` measures each kernel and copy that is submitted in the block, whoever submits it;
        the end waits for the device. `print(p)`, `p.events`, `p.save("trace.json")`. Blocks may nest and overlap."""
        self._check_open()
        return Profile(self)

    @property
    def shader_cache_stats(self) -> reports.ShaderCacheStats:
        """entry_count, hit_count, miss_count."""
        self._check_open()
        return reports.shader_cache_stats(self)

    def get_compilation_reports(self) -> list[dict[str, Any]]:
        """One dict for each program that was made ready to run since the device was opened.

        Durations are in seconds, `start_time` and `end_time` in nanoseconds of one clock, `cache_size` in bytes of code.
        `is_cached`: the code came from the disk cache. `alive`: the program still exists.
        """
        return reports.all_reports(self)

    def _report_step(self, step: str, label: str, seconds: float, size: int) -> None:
        """Native code calls this after each of its steps of building a kernel."""
        report_step(self, step, label, seconds, size)

    def _program_report(self, program: Any) -> dict[str, Any]:
        """What `ShaderProgram.get_compilation_report` returns."""
        return reports.program_report(program)


def _torch_device(device: Device) -> Any:
    torch = torch_for("Device.torch_device")
    if device.supports_cuda_interop:
        return torch.device("cuda", device._cuda_index)
    return torch.device("cpu")  # graphics devices without CUDA copy


@atexit.register
def _close_all() -> None:
    # Not let go of: a daemon thread that began to plan a call now would be ended in the midst of native code. One that is
    # compiling may take long, and sleeps when it comes back.
    code_lock.acquire(timeout=_LAST_PATIENCE)
    for device in Device.get_created_devices():
        try:
            device.close()
        except Exception as error:
            log_warn(f"closing {device.info.adapter_name} at exit: {error}")
    current.stack().clear()
