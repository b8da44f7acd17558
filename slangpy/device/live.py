"""`LiveCode`: for programs that go on while their sources are edited."""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable
from typing import Any

from slangpy._native import Device as NativeDevice
from slangpy.compiler.modules.reload import ShaderHotReloadEvent, source_changed

from ..base.own_names import own_names

_log = logging.getLogger("slangpy")


class _Count:
    """Of the reloads of a device, which holds this and not the `LiveCode`."""

    def __init__(self) -> None:
        self.reloads = 0

    def __call__(self, event: ShaderHotReloadEvent) -> None:
        del event
        self.reloads += 1


@own_names
class LiveCode:
    """Applies changes of a device's sources between frames, and tells as text what is wrong with them.

    What does not compile leaves the old code running. What compiles may still fail where it is called (a function that
    has gone, a parameter too many): after a reload, `attempt` keeps such errors instead of raising them.
    """

    def __init__(self, device: Any) -> None:
        if not isinstance(device, NativeDevice):
            raise TypeError(f"LiveCode: 'device' must be a Device, got {device!r}")
        self._device: Any = device
        self._count = _Count()
        self._good = 0
        """Reloads at the last attempt that was good; less than now: what fails may be the new code's fault."""
        self._failure = ""
        callbacks = self._device._callbacks.reload
        weakref.finalize(self, callbacks.unregister, callbacks.register(self._count)).atexit = False

    @property
    def reloads(self) -> int:
        """How often code was replaced since this was made."""
        return self._count.reloads

    @property
    def error(self) -> str:
        """What the compiler says of the sources as they are, and why the last attempt failed; "" where all is well."""
        errors = sorted(set(self._device._state.reload_errors.values()))
        return "\n".join([*errors, self._failure] if self._failure else errors)

    def refresh(self) -> bool:
        """Applies changes of source files now; True when code was replaced. Costs one system call where none changed, and
        does nothing on devices without hot reload."""
        return source_changed(self._device)

    def attempt(self, function: Callable[[], Any]) -> bool:
        """Calls it. False: it failed with code that was replaced since the last time that it did not, and `error` says
        why (logged once). Other exceptions come out."""
        try:
            function()
        except Exception as error:
            if self._count.reloads == self._good:
                raise
            text = str(error) or type(error).__name__
            if text != self._failure:
                _log.error("the code that was reloaded fails: %s", text)
            self._failure = text
            return False
        self._good = self._count.reloads
        self._failure = ""
        return True


__all__ = ["LiveCode"]
