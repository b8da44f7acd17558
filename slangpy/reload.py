"""Hot reload: source files that changed take effect before the next call (spec/calls.md 1.6)."""

from __future__ import annotations

import logging
import threading
import weakref
from typing import TYPE_CHECKING, Any

from . import _native

if TYPE_CHECKING:
    from .module import Module

_log = logging.getLogger("slangpy")
_lock = threading.RLock()


def register(module: Module) -> None:
    """Lets a module take part in the reloads of its device."""
    state = module.device.__dict__
    state.setdefault("_state_modules", weakref.WeakSet()).add(module)
    desc = state.get("_state_desc")
    if getattr(desc, "enable_hot_reload", False) and state.get("_state_watcher") is None:
        state["_state_watcher"] = _native.FileWatcher()


def watch(device: Any, paths: list[str]) -> None:
    """Watches source files, where the device has hot reload."""
    watcher = device.__dict__.get("_state_watcher")
    if watcher is not None:
        for path in paths:
            watcher.watch(path)


def reload_changed(device: Any, force: bool = False) -> bool:
    """Compiles modules whose files have changed; True when anything was replaced.

    When the new source does not compile, the error is logged once and the old code keeps running.
    """
    with _lock:
        modules = list(device.__dict__.get("_state_modules", ()))
        if not force and not any(module.is_outdated() for module in modules):
            return False
        from .module import new_session

        session = new_session(device)
        replacements: list[tuple[Module, Any]] = []
        try:
            for module in modules:
                replacements.append((module, module.load_in(session)))
        except RuntimeError as error:  # SlangCompileError, or an operation that the device lacks
            if device.__dict__.get("_state_reload_error") != str(error):
                device.__dict__["_state_reload_error"] = str(error)
                _log.error("hot reload failed, the old code keeps running:\n%s", error)
            for module in modules:
                module.accept_files()
            return False
        device.__dict__["_state_functional_session"] = session
        device.__dict__["_state_reload_error"] = None
        for module, main in replacements:
            module.replace(main)
        callbacks = device.__dict__.get("_state_reload_callbacks")
        if callbacks:
            from .device_reports import ShaderHotReloadEvent

            for callback in list(callbacks.values()):
                callback(ShaderHotReloadEvent(device))
        return True
