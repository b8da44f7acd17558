"""Ray-tracing pipelines: programs of ray generation, miss, hit and callable entry points; and shader tables of them."""

from __future__ import annotations

from typing import Any

from .. import _native
from ..compiler.kernel import check_program
from ..compiler.ray_pipeline import check_payloads, compile_pipeline
from .program_pipeline import ProgramPipeline

__all__ = ["RayTracingPipeline", "create_ray_tracing_pipeline", "create_shader_table"]


class RayTracingPipeline(ProgramPipeline[_native.RayTracingPipelineDesc, _native.CompiledRayTracingPipeline]):
    """A program and its hit groups, made by `Device.create_ray_tracing_pipeline`.

    Compiled when made, or at the first use with `defer_target_compilation`; again after a hot reload.
    """

    def __init__(self, device: Any, desc: _native.RayTracingPipelineDesc) -> None:
        call = "create_ray_tracing_pipeline"
        device._require_ray_tracing(call)
        super().__init__(call, device, desc, "ray generation, miss and hit entry points")

    def _check(self, layout: Any) -> None:
        self._device._check_ray_tracing_pipeline(self._desc, layout)
        check_payloads("create_ray_tracing_pipeline", self._program, self._desc)

    def _build(self) -> tuple[_native.CompiledRayTracingPipeline, _native.UsedParameters]:
        return compile_pipeline(self._device, self._program, self._desc, self._layout, self._label)

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
