"""Hot reload: source files that changed take effect before the next call."""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass
from typing import Any

from .. import _native
from ..census import Census
from .loaded import new_session

_log = logging.getLogger("slangpy")

code_lock = threading.RLock()
"""Held while a call is planned and while code is replaced."""


@dataclass(frozen=True)
class ShaderHotReloadEvent:
    """What the callbacks about hot reload are given, after changed modules have been replaced."""

    device: Any


def register(module: Any) -> None:
    """Lets a module take part in the reloads of its device."""
    state = module.device._state
    if state.modules is None:
        state.modules = Census(32)
    state.modules.add(module)
    if module.device.desc.enable_hot_reload and state.watcher is None:
        state.watcher = _native.FileWatcher()


def modules_of(device: Any) -> list[Any]:
    """The living modules of a device."""
    modules = device._state.modules
    return [] if modules is None else modules.items()


def watch(device: Any, paths: list[str]) -> None:
    """Watches source files, where the device has hot reload."""
    watcher = device._state.watcher
    if watcher is not None:
        for path in paths:
            watcher.watch(path)


def source_changed(device: Any) -> bool:
    """Looks at the files now, for a name that was not found; True when code was replaced."""
    watcher = device._state.watcher
    return watcher is not None and watcher.changed() and reload_changed(device)


def reload_changed(device: Any) -> bool:
    """Compiles modules whose files have changed; True when anything was replaced.

    A module that does not compile (or is linked with one that does not) keeps its old code; the error is logged once.
    """
    with code_lock:  # no plan is made of code that is being replaced
        modules = _modules(device)
        if not any(module.is_outdated() for module in modules) or not _replace(device, modules):
            return False
    device._note_reloaded(ShaderHotReloadEvent(device))
    return True


def reload_all(device: Any) -> None:
    """Builds everything again from the sources as they are now, changed or not: sessions with what was loaded and linked
    in them, and the modules of functional calls. What does not compile keeps its old code, and the error is logged."""
    with code_lock:
        for session in device._state.sessions.items():
            try:
                session.reload()
            except RuntimeError as error:  # as for modules: SlangCompileError, or an operation that the device lacks
                _log.error("hot reload failed, the old code keeps running:\n%s", error)
        modules = _modules(device)
        if modules:
            _replace(device, modules)
    device._note_reloaded(ShaderHotReloadEvent(device))


def _modules(device: Any) -> list[Any]:
    census = device._state.modules
    return census.items() if census is not None else []


def _replace(device: Any, modules: list[Any]) -> bool:
    """Compiles modules in a new session; False when there is none that could be replaced."""
    session = new_session(device)
    replacements = _compile(device, modules, session)
    if not replacements:
        return False
    device._state.functional_session = session
    for module, main in replacements:
        module.replace(main)
    return True


def _compile(device: Any, modules: list[Any], session: Any) -> list[tuple[Any, Any]]:
    """What the compiler makes of the sources as they are now, in a session of its own."""
    compiled: dict[Any, Any] = {}
    errors: list[str] = []
    for module in modules:
        module.note_files()
        try:
            own = new_session(device, module.defines) if module.defines else session
            compiled[module] = module.load_in(own)
        except RuntimeError as error:  # SlangCompileError, or an operation that the device lacks
            errors.append(str(error))
            module.watch_imports()
    known = device._state.reload_errors
    fresh = [error for error in dict.fromkeys(errors) if error not in known]
    if fresh:
        _log.error("hot reload failed, the old code keeps running:\n%s", "\n".join(fresh))
    known.clear()
    known.update(errors)
    return [(module, main) for module, main in compiled.items() if _is_complete(module, compiled, modules)]


def _is_complete(module: Any, compiled: dict[Any, Any], modules: list[Any]) -> bool:
    """Whether a module and all that it is linked with compiled."""
    # Not a function inside of _compile: one that calls itself is a cycle, which would keep the session that it sees.
    return module in compiled and all(_is_complete(item, compiled, modules) for item in module.link if item in modules)
