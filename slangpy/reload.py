"""Hot reload: source files that changed take effect before the next call (spec/calls.md 1.6)."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Any

from . import _native
from .census import Census

if TYPE_CHECKING:
    from .module import Module

_log = logging.getLogger("slangpy")

code_lock = threading.RLock()
"""Held while a call is planned and while code is replaced."""


def register(module: Module) -> None:
    """Lets a module take part in the reloads of its device."""
    state = module.device.__dict__
    state.setdefault("_state_modules", Census(32)).add(module)
    desc = state.get("_state_desc")
    if getattr(desc, "enable_hot_reload", False) and state.get("_state_watcher") is None:
        state["_state_watcher"] = _native.FileWatcher()


def watch(device: Any, paths: list[str]) -> None:
    """Watches source files, where the device has hot reload."""
    watcher = device.__dict__.get("_state_watcher")
    if watcher is not None:
        for path in paths:
            watcher.watch(path)


def source_changed(device: Any) -> bool:
    """Looks at the files now, for a name that was not found; True when code was replaced."""
    watcher = device.__dict__.get("_state_watcher")
    return watcher is not None and watcher.changed() and reload_changed(device)


def reload_changed(device: Any, force: bool = False) -> bool:
    """Compiles modules whose files have changed; True when anything was replaced.

    A module that does not compile (or is linked with one that does not) keeps its old code; the error is logged once.
    """
    with code_lock:  # no plan is made of code that is being replaced
        census = device.__dict__.get("_state_modules")
        modules = census.items() if census is not None else []
        if not force and not any(module.is_outdated() for module in modules):
            return False
        from .device_reports import ShaderHotReloadEvent
        from .module import new_session

        session = new_session(device)
        replacements = _compile(device, modules, session)
        if not replacements:
            return False
        device.__dict__["_state_functional_session"] = session
        for module, main in replacements:
            module.replace(main)
    for callback in list(device.__dict__.get("_state_reload_callbacks", {}).values()):
        callback(ShaderHotReloadEvent(device))
    return True


def _compile(device: Any, modules: list[Module], session: Any) -> list[tuple[Module, Any]]:
    """What the compiler makes of the sources as they are now, in a session of its own."""
    compiled: dict[Module, Any] = {}
    errors: list[str] = []
    for module in modules:
        module.note_files()
        try:
            compiled[module] = module.load_in(session)
        except RuntimeError as error:  # SlangCompileError, or an operation that the device lacks
            errors.append(str(error))
            module.watch_imports()
    known = device.__dict__.setdefault("_state_reload_errors", set())
    fresh = [error for error in dict.fromkeys(errors) if error not in known]
    if fresh:
        _log.error("hot reload failed, the old code keeps running:\n%s", "\n".join(fresh))
    known.clear()
    known.update(errors)
    return [(module, main) for module, main in compiled.items() if _is_complete(module, compiled, modules)]


def _is_complete(module: Module, compiled: dict[Module, Any], modules: list[Module]) -> bool:
    """Whether a module and all that it is linked with compiled."""
    # Not a function inside of _compile: one that calls itself is a cycle, which would keep the session that it sees.
    return module in compiled and all(_is_complete(item, compiled, modules) for item in module.link if item in modules)
