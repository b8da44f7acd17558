"""What pipelines have in common: the native object of a program's sources as they are."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from .. import _native
from ..base.not_called import not_called
from ..base.own_names import own_names
from .modules.reload import follow, source_changed

Compiled = TypeVar("Compiled")


@own_names
@not_called("a pass takes it: bind_pipeline(pipeline)")
class Pipeline(Generic[Compiled]):
    """Compiled when made, or at the first use with `defer_target_compilation`; again after a hot reload."""

    def __init__(self, device: Any, program: Any, label: str, defer_target_compilation: bool) -> None:
        self._device = device
        self._program = program
        self._label = label
        self._compiled: Compiled | None = None
        self._layout: Any = None
        self._generation: Any = None
        self._used: _native.UsedParameters | None = None
        follow(device, program.session)
        if not defer_target_compilation:
            self.compiled()

    @property
    def device(self) -> Any:
        """The device that runs it."""
        return self._device

    @property
    def program(self) -> Any:
        """The program that it was made of."""
        return self._program

    @property
    def label(self) -> str:
        """Name for tools."""
        return self._label

    @property
    def used(self) -> _native.UsedParameters:
        """What the compiled code uses of the parameters: the rest needs no value."""
        self.compiled()
        assert self._used is not None
        return self._used

    @property
    def layout(self) -> Any:
        """How the parameters are bound, as plain data."""
        self._check_generation()
        return self._layout

    @property
    def native_handle(self) -> Any:
        """The driver's object."""
        compiled: Any = self.compiled()
        return compiled.native_handle

    def _newest(self) -> Compiled:
        """The native object of the sources as they are now."""
        if self._device._state.watcher is not None:
            source_changed(self._device)
        return self.compiled()

    def _newest_parts(self) -> tuple[Compiled, Any, _native.UsedParameters | None]:
        """What _newest() gives, and the layout and the used parameters of its code."""
        return self._newest(), self._layout, self._used

    def compiled(self) -> Compiled:
        """The native object, of the code for which `layout` was read last."""
        if self._compiled is None or self._generation != self._program.generation:
            self._check_generation()
            if self._compiled is None:
                self._compiled, self._used = self._build()
        return self._compiled

    def _check_generation(self) -> None:
        generation = self._program.generation
        if self._generation != generation:
            self._layout = self._read_layout()
            self._compiled = None
            self._generation = generation

    def _read_layout(self) -> Any:
        """How the program's parameters are bound now. Raises ValueError where the pipeline cannot be made with that."""
        raise NotImplementedError

    def _build(self) -> tuple[Compiled, _native.UsedParameters]:
        """The native object, and what its code uses of the parameters."""
        raise NotImplementedError
