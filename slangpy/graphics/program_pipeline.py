"""What pipelines of several entry points have in common."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from .. import _native
from ..compiler.kernel import check_program
from ..compiler.pipeline import Pipeline

Desc = TypeVar("Desc", _native.RenderPipelineDesc, _native.RayTracingPipelineDesc)
Compiled = TypeVar("Compiled", _native.CompiledRenderPipeline, _native.CompiledRayTracingPipeline)


class ProgramPipeline(Pipeline[Compiled], Generic[Desc, Compiled]):
    """Compiled when made, or at the first use with `defer_target_compilation`; again after a hot reload."""

    def __init__(self, call: str, device: Any, desc: Desc, entry_points: str) -> None:
        """call, entry_points: what messages name."""
        check_program(call, device, desc.program)
        if not desc.program.entry_point_names:
            raise ValueError(f"{call}: the program has no entry point; link {entry_points} with link_program()")
        self._desc = desc
        label: str = desc.label or ", ".join(desc.program.entry_point_names)
        super().__init__(device, desc.program, label, desc.defer_target_compilation)
        self._check_generation()

    @property
    def desc(self) -> Desc:
        """Its description. Changes have no effect on the pipeline."""
        return self._desc

    @property
    def compiled_pipeline(self) -> Compiled:
        """The native pipeline of the sources as they are now; compiles at the first use."""
        return self._newest()

    def _read_layout(self) -> Any:
        layout = self._program.pipeline_layout()
        self._check(layout)
        return layout

    def _check(self, layout: Any) -> None:
        """Raises ValueError where the desc does not fit the program's layout."""
        raise NotImplementedError
