"""Render pipelines: programs of a vertex (or mesh) and a fragment entry point, with the fixed functions around them."""

from __future__ import annotations

from typing import Any

from .. import _native
from ..compiler.kernel import compile_stage
from ..compiler.text.globals_used import all_used_slots
from .program_pipeline import ProgramPipeline

__all__ = ["RenderPipeline", "create_render_pipeline"]


class RenderPipeline(ProgramPipeline[_native.RenderPipelineDesc, _native.CompiledRenderPipeline]):
    """A program and its state, made by `Device.create_render_pipeline`.

    Compiled when made, or at the first use with `defer_target_compilation`; again after a hot reload.
    """

    def __init__(self, device: Any, desc: _native.RenderPipelineDesc) -> None:
        call = "create_render_pipeline"
        device._require_feature("rasterization", call)
        super().__init__(call, device, desc, "a vertex and a fragment entry point")

    def _check(self, layout: Any) -> None:
        self._device._check_render_pipeline(self._desc, layout)

    def _build(self) -> tuple[_native.CompiledRenderPipeline, tuple[int, ...] | None]:
        names = self._program.entry_point_names
        stages = [compile_stage(self._device, self._program, i, name) for i, name in enumerate(names)]
        code = [executable for executable, _ in stages]
        compiled = self._device._create_render_pipeline(self._desc, self._layout, code, self._label)
        format = self._device.compile_target.format
        used = [all_used_slots(text, format, self._layout) for _, text in stages]
        known = [slots for slots in used if slots is not None]
        return compiled, tuple(sorted(set().union(*known))) if len(known) == len(used) else None

    def __repr__(self) -> str:
        return (
            f"RenderPipeline(\n  label = {self._label!r},\n  entry_points = {list(self._program.entry_point_names)}\n)"
        )


def create_render_pipeline(device: Any, *args: Any, **kwargs: Any) -> RenderPipeline:
    """Takes the fields of `RenderPipelineDesc`, one of these or a dict."""
    return RenderPipeline(device, _native._render_pipeline_desc(*args, **kwargs))
