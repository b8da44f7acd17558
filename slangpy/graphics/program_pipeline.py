"""What pipelines of several entry points have in common: one native pipeline for the sources as they are."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from .. import _native
from ..base.own_names import own_names
from ..compiler.kernel import check_program
from ..compiler.modules.reload import follow, source_changed

Desc = TypeVar("Desc", _native.RenderPipelineDesc, _native.RayTracingPipelineDesc)
Compiled = TypeVar("Compiled", _native.CompiledRenderPipeline, _native.CompiledRayTracingPipeline)


@own_names
class ProgramPipeline(Generic[Desc, Compiled]):
    """Compiled when made, or at the first use with `defer_target_compilation`; again after a hot reload."""

    def __init__(self, call: str, device: Any, desc: Desc, entry_points: str) -> None:
        """call, entry_points: what messages name."""
        check_program(call, device, desc.program)
        if not desc.program.entry_point_names:
            raise ValueError(f"{call}: the program has no entry point; link {entry_points} with link_program()")
        self._device = device
        self._program = desc.program
        self._desc = desc
        self._label: str = desc.label or ", ".join(desc.program.entry_point_names)
        self._compiled: Compiled | None = None
        self._layout: Any = None
        self._generation: Any = None
        self._used: _native.UsedParameters | None = None
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
    def desc(self) -> Desc:
        """Its description. Changes have no effect on the pipeline."""
        return self._desc

    @property
    def label(self) -> str:
        return self._label

    @property
    def compiled_pipeline(self) -> Compiled:
        """The native pipeline of the sources as they are now; compiles at the first use."""
        if self._device._state.watcher is not None:
            source_changed(self._device)
        return self._compile()

    @property
    def used(self) -> _native.UsedParameters:
        """What the code uses of the parameters: the rest needs no value."""
        self._compile()
        assert self._used is not None
        return self._used

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
            self._check(layout)
            self._layout = layout
            self._compiled = None
            self._generation = generation

    def _compile(self) -> Compiled:
        self._check_generation()
        if self._compiled is None:
            self._compiled, self._used = self._build()
        return self._compiled

    def _check(self, layout: Any) -> None:
        """Raises ValueError where the desc does not fit the program's layout."""
        raise NotImplementedError

    def _build(self) -> tuple[Compiled, _native.UsedParameters]:
        """The native pipeline, and what its code uses of the parameters."""
        raise NotImplementedError
