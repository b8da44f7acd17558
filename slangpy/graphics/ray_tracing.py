"""Ray-tracing pipelines: programs of ray generation, miss, hit and callable entry points; and shader tables of them."""

from __future__ import annotations

from typing import Any

from .. import _native
from ..compiler.kernel import check_program
from ..compiler.modules.reload import follow, source_changed
from ..compiler.ray_pipeline import check_payloads, compile_pipeline

__all__ = ["RayTracingPipeline", "create_ray_tracing_pipeline", "create_shader_table"]


class RayTracingPipeline:
    """A program and its hit groups, made by `Device.create_ray_tracing_pipeline`.

    Compiled when made, or at the first use with `defer_target_compilation`; again after a hot reload.
    """

    def __init__(self, device: Any, desc: _native.RayTracingPipelineDesc) -> None:
        device._require_ray_tracing("create_ray_tracing_pipeline")
        check_program("create_ray_tracing_pipeline", device, desc.program)
        if not desc.program.entry_point_names:
            raise ValueError(
                "create_ray_tracing_pipeline: the program has no entry point; link ray generation, miss and hit entry "
                "points with link_program()"
            )
        self._device = device
        self._program = desc.program
        self._desc = desc
        self._label: str = desc.label or ", ".join(desc.program.entry_point_names)
        self._compiled: Any = None
        self._layout: Any = None
        self._generation: Any = None
        self._used_slots: tuple[int, ...] | None = None
        follow(device, desc.program.session)
        self._check_generation()
        if not desc.defer_target_compilation:
            self._compile()

    @property
    def device(self) -> Any:
        return self._device

    @property
    def program(self) -> Any:
        return self._program

    @property
    def desc(self) -> _native.RayTracingPipelineDesc:
        """What it was made with. Changes have no effect on the pipeline."""
        return self._desc

    @property
    def label(self) -> str:
        return self._label

    @property
    def compiled_pipeline(self) -> _native.CompiledRayTracingPipeline:
        """The native pipeline of the sources as they are now; compiles at the first use."""
        if self._device._state.watcher is not None:
            source_changed(self._device)
        return self._compile()

    @property
    def used_slots(self) -> tuple[int, ...] | None:
        """The resources, by their place in the layout, that the code uses: the others need no value. None where that is
        not known."""
        self._compile()
        return self._used_slots

    @property
    def layout(self) -> Any:
        """How the parameters of all entry points are bound, as plain data."""
        self._check_generation()
        return self._layout

    @property
    def native_handle(self) -> _native.NativeHandle:
        return self._compile().native_handle

    def _check_generation(self) -> None:
        generation = self._program.generation
        if self._generation != generation:
            layout = self._program.pipeline_layout()
            self._device._check_ray_tracing_pipeline(self._desc, layout)
            check_payloads("create_ray_tracing_pipeline", self._program, self._desc)
            self._layout = layout
            self._compiled = None
            self._generation = generation

    def _compile(self) -> _native.CompiledRayTracingPipeline:
        self._check_generation()
        if self._compiled is None:
            self._compiled, self._used_slots = compile_pipeline(
                self._device, self._program, self._desc, self._layout, self._label
            )
        return self._compiled

    def __repr__(self) -> str:
        return (
            f"RayTracingPipeline(\n  label = {self._label!r},\n"
            f"  entry_points = {list(self._program.entry_point_names)}\n)"
        )


def create_ray_tracing_pipeline(device: Any, *args: Any, **kwargs: Any) -> RayTracingPipeline:
    """Takes the fields of `RayTracingPipelineDesc`, one of these or a dict."""
    return RayTracingPipeline(device, _native._ray_tracing_pipeline_desc(*args, **kwargs))


def create_shader_table(device: Any, *args: Any, **kwargs: Any) -> _native.ShaderTable:
    """Takes the fields of `ShaderTableDesc`, one of these or a dict."""
    device._require_ray_tracing("create_shader_table")
    desc = _native._shader_table_desc(*args, **kwargs)
    check_program("create_shader_table", device, desc.program)
    return device._create_shader_table(desc, desc.program.pipeline_layout())
