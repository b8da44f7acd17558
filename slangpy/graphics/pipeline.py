"""Render pipelines: programs of a vertex (or mesh) and a fragment entry point, with the fixed functions around them."""

from __future__ import annotations

from typing import Any

from .. import _native
from ..compiler.kernel import compile_stages
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

    def _build(self) -> tuple[_native.CompiledRenderPipeline, _native.UsedParameters]:
        code, used = compile_stages(self._device, self._program, self._layout, self._label)
        return self._device._create_render_pipeline(self._desc, self._layout, code, self._label), used

    def __repr__(self) -> str:
        return (
            f"RenderPipeline(\n  label = {self._label!r},\n  entry_points = {list(self._program.entry_point_names)}\n)"
        )


def create_render_pipeline(device: Any, *args: Any, **kwargs: Any) -> RenderPipeline:
    """Takes the fields of `RenderPipelineDesc`, one of these or a dict."""
    return RenderPipeline(device, _native._render_pipeline_desc(*args, **kwargs))
