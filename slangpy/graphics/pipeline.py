"""Render pipelines: programs of a vertex (or mesh) and a fragment entry point, with the fixed functions around them."""

from __future__ import annotations

from typing import Any

from .. import _native
from ..compiler.kernel import check_program, compile_stage
from ..compiler.modules.reload import follow, source_changed
from ..compiler.text.globals_used import all_used_slots

__all__ = ["RenderPipeline", "create_render_pipeline"]


class RenderPipeline:
    """A program and its state, made by `Device.create_render_pipeline`.

    Compiled when made, or at the first use with `defer_target_compilation`; again after a hot reload.
    """

    def __init__(self, device: Any, desc: _native.RenderPipelineDesc) -> None:
        device._require_feature("rasterization", "create_render_pipeline")
        check_program("create_render_pipeline", device, desc.program)
        if not desc.program.entry_point_names:
            raise ValueError(
                "create_render_pipeline: the program has no entry point; link a vertex and a fragment entry point with "
                "link_program()"
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
    def desc(self) -> _native.RenderPipelineDesc:
        """What it was made with. Changes have no effect on the pipeline."""
        return self._desc

    @property
    def label(self) -> str:
        return self._label

    @property
    def compiled_pipeline(self) -> _native.CompiledRenderPipeline:
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
            self._device._check_render_pipeline(self._desc, layout)
            self._layout = layout
            self._compiled = None
            self._generation = generation

    def _compile(self) -> _native.CompiledRenderPipeline:
        self._check_generation()
        if self._compiled is None:
            names = self._program.entry_point_names
            stages = [compile_stage(self._device, self._program, i, name) for i, name in enumerate(names)]
            code = [executable for executable, _ in stages]
            self._compiled = self._device._create_render_pipeline(self._desc, self._layout, code, self._label)
            format = self._device.compile_target.format
            used = [all_used_slots(text, format, self._layout) for _, text in stages]
            known = [slots for slots in used if slots is not None]
            self._used_slots = tuple(sorted(set().union(*known))) if len(known) == len(used) else None
        return self._compiled

    def __repr__(self) -> str:
        return (
            f"RenderPipeline(\n  label = {self._label!r},\n  entry_points = {list(self._program.entry_point_names)}\n)"
        )


def create_render_pipeline(device: Any, *args: Any, **kwargs: Any) -> RenderPipeline:
    """Takes the fields of `RenderPipelineDesc`, one of these or a dict."""
    return RenderPipeline(device, _native._render_pipeline_desc(*args, **kwargs))
