"""Compute pipelines and kernels: one linked entry point, run with arguments by name."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterable, Mapping
from functools import partial
from operator import index
from typing import Any

from .. import _native
from ..base.checks import check_queue
from ..base.not_called import not_called
from ..base.own_names import own_names
from ..errors import NativeValueError
from .code import target_code
from .executable import make_executable
from .pipeline import Pipeline
from .progress import compiling, why_slow
from .reports import report_step
from .text.literals import remember
from .text.tensors_used import used_parameters

__all__ = [
    "ComputeKernel",
    "ComputePipeline",
    "create_compute_kernel",
    "create_compute_pipeline",
    "create_root_shader_object",
    "create_shader_object",
]


_NO_STREAM = _native.NativeHandle()

RASTER_STAGES = frozenset(("vertex", "hull", "domain", "geometry", "fragment", "mesh", "amplification"))
"""Stages of render pipelines."""
RAY_STAGES = frozenset(("ray_generation", "miss", "closest_hit", "any_hit", "intersection", "callable"))
"""Stages of ray-tracing pipelines."""


def compile_kernel(device: Any, program: Any, entry_point: int, layout: Any, label: str) -> tuple[Any, bytes]:
    """A linked entry point as the device's executable kernel, through the disk cache, and the target code of it."""
    code, text = compile_entry_point(device, program, entry_point, layout, label)
    return device.create_kernel(code, layout, label), text


def compile_entry_point(device: Any, program: Any, entry_point: int, layout: Any, label: str) -> tuple[bytes, bytes]:
    """One entry point of a kernel or pipeline: what the device takes, and the target code."""
    start = time.perf_counter()
    with compiling(f"compiling {label} for {device.info.type.name}", partial(why_slow, device)):
        text = target_code(device, program, entry_point, label)
        remember(device, program)
        if device.desc.enable_compilation_reports:
            name, seconds = program.entry_point_names[entry_point], time.perf_counter() - start
            report_step(device, "code_generation", label, seconds, 0, program, name)
        return make_executable(device, text, layout, label, _compile_options(program)).code, text


def compile_stages(device: Any, program: Any, layout: Any, label: str) -> tuple[list[bytes], _native.UsedParameters]:
    """The entry points of a pipeline as the device takes them, and what they use of the parameters."""
    stages = [
        compile_entry_point(device, program, i, program.binding_layout(i), name)
        for i, name in enumerate(program.entry_point_names)
    ]
    return [code for code, _ in stages], used_parameters(device, [text for _, text in stages], layout, label)


def _compile_options(program: Any) -> dict[str, Any]:
    """What the downstream compiler is told: the program's link options, else those of its session."""
    return {
        "downstream_args": list(program.downstream_args),
        "float_mode": program.floating_point_mode,
        "optimization": program.optimization,
        "debug_info": program.debug_info != 0,
    }


def root_layout(program: Any) -> Any:
    """How the parameters of a program are bound: those of all entry points of a pipeline that draws or traces rays, else
    of the first."""
    joined = (RASTER_STAGES | RAY_STAGES) & set(program.stages)
    return program.pipeline_layout() if joined else program.binding_layout(0)


def check_program(function: str, device: Any, program: Any) -> None:
    """TypeError unless it is what link_program() returns; ValueError for one that is made for another device."""
    if not hasattr(program, "binding_layout") or not hasattr(program, "entry_point_names"):
        raise TypeError(f"{function}: 'program' must be a ShaderProgram (link_program() makes one), got {program!r}")
    check_own_code(f"{function}: the program", device, program)


def check_own_code(what: str, device: Any, code: Any) -> None:
    """ValueError unless a module or program is of a session of this device: others may be for another target."""
    owner = code.session.device
    if owner is not None and owner is not device:
        if str(owner.info.adapter_name) == str(device.info.adapter_name) and owner.info.type == device.info.type:
            raise NativeValueError(
                f"{what} belongs to another device than the one it is used with: both are {device.info.api_name} devices "
                f"({device.info.adapter_name}), made by two calls of create_device; load and link it with that one"
            )
        raise NativeValueError(
            f"{what} belongs to another device ({owner.info.type.name}, {owner.info.adapter_name}) than the one it is used "
            f"with ({device.info.type.name}, {device.info.adapter_name}); load and link it with that one"
        )


@not_called("a pass takes it, compute_pass.bind_pipeline(pipeline); create_compute_kernel(program).dispatch(...) needs none")
class ComputePipeline(Pipeline[Any]):
    """The first entry point of a program in executable form.

    Compiled when made, or at the first use with `defer_target_compilation`; again after a hot reload.
    """

    def __init__(
        self, device: Any, program: Any, defer_target_compilation: bool = False, label: str | None = None
    ) -> None:
        check_program("create_compute_pipeline", device, program)
        names = list(program.entry_point_names)
        if not names:
            raise ValueError("create_compute_pipeline: the program has no entry point; link one with link_program()")
        if program.stages[0] in RASTER_STAGES | RAY_STAGES:
            kind = "render" if program.stages[0] in RASTER_STAGES else "ray_tracing"
            raise ValueError(
                f"create_compute_pipeline: '{names[0]}' is a {program.stages[0]} entry point; make a "
                f"{kind.replace('_', '-')} pipeline of it with create_{kind}_pipeline()"
            )
        super().__init__(device, program, label or names[0], defer_target_compilation)

    @property
    def kernel(self) -> Any:
        """The native kernel of the sources as they are now; compiles at the first use."""
        return self._newest()

    @property
    def thread_group_size(self) -> Any:
        """Threads of a group in x, y and z: `uint3`."""
        return _native.uint3(*self.layout.group_size)

    def _read_layout(self) -> Any:
        return self._program.binding_layout(0)

    def _build(self) -> tuple[Any, _native.UsedParameters]:
        kernel, code = compile_kernel(self._device, self._program, 0, self._layout, self._label)
        return kernel, used_parameters(self._device, [code], self._layout, self._label)

    def __repr__(self) -> str:
        return f"ComputePipeline(\n  label = {self._label!r},\n  thread_group_size = {self.thread_group_size}\n)"


@own_names
@not_called("kernel.dispatch(thread_count, name=value, ...) runs it")
class ComputeKernel:
    """A program whose first entry point is run by `dispatch`."""

    def __init__(self, device: Any, program: Any) -> None:
        check_program("create_compute_kernel", device, program)
        self._pipeline = ComputePipeline(device, program, defer_target_compilation=True)
        self._device = device
        self._validate: bool = device.desc.enable_rhi_validation

    @property
    def device(self) -> Any:
        """The device that runs it."""
        return self._device

    @property
    def program(self) -> Any:
        """The program that it was made of."""
        return self._pipeline.program

    @property
    def pipeline(self) -> ComputePipeline:
        """The compiled pipeline; compiles it where that has not happened yet."""
        return self._pipeline

    @property
    def reflection(self) -> Any:
        """A cursor over the parameters of the program."""
        return self._pipeline.program.reflection

    def dispatch(
        self,
        thread_count: Any,
        vars: Mapping[str, Any] | None = None,
        command_encoder: Any = None,
        queue: Any = None,
        cuda_stream: Any = None,
        query_pool: Any = None,
        query_index_before: int = 0,
        query_index_after: int = 0,
        **kwargs: Any,
    ) -> None:
        """Runs the kernel and returns without waiting.

        `thread_count` counts threads: up to three ints, or one; rounded up to whole groups, so kernels test bounds.
        `kwargs` set parameters of the entry point, `vars` globals (dicts for blocks). A name that the kernel lacks
        gives a RuntimeWarning, a resource that it uses and nobody set a RuntimeError. Unset uniforms are zero. With
        `command_encoder` it is only recorded; with `query_pool` timestamps stand around it; `cuda_stream`: a NativeHandle.
        """
        threads = _thread_count(thread_count)
        stream = _NO_STREAM if cuda_stream is None else cuda_stream
        if queue is not None or command_encoder is not None:
            _check_targets(queue, command_encoder, stream)
        kernel, layout, used = self._pipeline._newest_parts()
        root = self._bind(layout, used, vars, kwargs)
        if 0 in threads:
            return
        if command_encoder is None and query_pool is None:
            root._dispatch(kernel, threads, stream)
            return
        encoder = command_encoder or self._device.create_command_encoder()
        if query_pool is not None:
            encoder.write_timestamp(query_pool, query_index_before)
        with encoder.begin_compute_pass() as compute_pass:
            compute_pass.bind_pipeline(self._pipeline, root)
            compute_pass.dispatch(threads)
        if query_pool is not None:
            encoder.write_timestamp(query_pool, query_index_after)
        if command_encoder is None:
            self._device.submit_command_buffer(encoder.finish(), cuda_stream=stream)

    def _bind(self, layout: Any, used: Any, variables: Mapping[str, Any] | None, arguments: dict[str, Any]) -> Any:
        if variables is not None and not isinstance(variables, Mapping):
            raise TypeError(
                f"dispatch 'vars': expected a dict of globals, got {type(variables).__name__}; parameters of the entry point go by "
                "name: dispatch(thread_count, name=value)"
            )
        root = _native.ShaderObject(self._device, layout)
        if arguments or variables:
            self._write(_native.ShaderCursor(root), variables, arguments)
        root._check_used(used, self._validate)
        return root

    def _write(self, cursor: Any, variables: Mapping[str, Any] | None, arguments: dict[str, Any]) -> None:
        entry_point = cursor.find_entry_point(0)
        if arguments:
            unknown = entry_point._write_known(arguments)
            if unknown:
                self._warn_unknown(unknown, entry_point._fields, cursor._fields, "vars")
        if variables:
            unknown = cursor._write_known(dict(variables))
            if unknown:
                self._warn_unknown(unknown, cursor._fields, entry_point._fields, "keyword arguments")

    def _warn_unknown(self, unknown: Iterable[str], known: list[str], others: list[str], other_way: str) -> None:
        for name in unknown:
            hint = f"; it is set through {other_way}" if name in others else ""
            parameters = ", ".join(known) or "none"
            text = f"{self._pipeline.label}: no parameter '{name}'{hint}. Parameters here: {parameters}"
            warnings.warn(text, RuntimeWarning, stacklevel=5)

    def __repr__(self) -> str:
        return f"ComputeKernel(\n  entry_point = {self._pipeline.label!r}\n)"


def _check_targets(queue: Any, encoder: Any, stream: Any) -> None:
    check_queue("dispatch", queue)
    if encoder is None:
        return
    if not isinstance(encoder, _native.CommandEncoder):
        raise TypeError(f"dispatch: 'command_encoder' must be a CommandEncoder, got {encoder!r}")
    if stream:
        raise ValueError(
            "dispatch: 'cuda_stream' cannot be used with 'command_encoder'; pass it to submit_command_buffer()"
        )


def _thread_count(value: Any) -> list[int]:
    """Three counts; missing ones are 1."""
    if type(value) in (list, tuple) and len(value) == 3:  # the usual form, told from others in little time
        x, y, z = value
        if type(x) is int and type(y) is int and type(z) is int and x >= 0 and y >= 0 and z >= 0:
            return [x, y, z]
    try:
        counts = [index(n) for n in value] if hasattr(value, "__len__") else [index(value)]
    except TypeError:
        raise TypeError(f"dispatch: 'thread_count' must be an int or up to three ints, got {value!r}") from None
    if not 1 <= len(counts) <= 3 or min(counts) < 0:
        raise ValueError(f"dispatch: 'thread_count' must be one to three counts of at least 0, got {value!r}")
    return counts + [1] * (3 - len(counts))


def create_compute_pipeline(
    device: Any, program: Any, defer_target_compilation: bool = False, label: str | None = None
) -> ComputePipeline:
    """The first entry point of `program` in executable form."""
    return ComputePipeline(device, program, defer_target_compilation, label)


def create_compute_kernel(device: Any, program: Any) -> ComputeKernel:
    """A kernel for the first entry point of `program`, compiled at first use."""
    return ComputeKernel(device, program)


def create_root_shader_object(device: Any, program: Any) -> Any:
    """Empty values for all parameters of the program: of its first entry point, or of all those of a render pipeline."""
    check_program("create_root_shader_object", device, program)
    return _native.ShaderObject(device, root_layout(program))


def create_shader_object(device: Any, layout: Any) -> Any:
    """Empty values for the contents of a parameter block.

    `layout` is a type layout or a reflection cursor, of the block or of its contents.
    """
    return _native.ShaderObject(device, layout)
