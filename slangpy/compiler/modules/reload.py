"""Hot reload: source files that changed take effect before the next call."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ... import _native
from ...base import libslang
from ...base.census import Census
from ...base.locks import new_rlock
from .files import imported_paths
from .loaded import foreign_links, new_session

_log = logging.getLogger("slangpy")

code_lock = new_rlock()
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
    _open_watcher(module.device)


def _open_watcher(device: Any) -> Any:
    """What watches the sources of a device; None where hot reload is off."""
    state = device._state
    if device.desc.enable_hot_reload and state.watcher is None:
        state.watcher = _native.FileWatcher()
    return state.watcher


def follow(device: Any, session: Any) -> None:
    """Lets the programs of a user's session take part: the files that it has read are watched from now on. Those that
    changed since they were read are read again."""
    if session not in device._state.sessions.items() or _open_watcher(device) is None:
        return
    watch(device, list(session.read_files))
    if _is_outdated(session):
        reload_changed(device)


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
    """Compiles what was made of files that have changed; True when anything was replaced.

    A module that does not compile (or is linked with one that does not) keeps its old code, as do all programs of a
    user's session when one of its files does not compile; the error is logged once.
    """
    with code_lock:  # no plan is made of code that is being replaced
        sessions: list[Any] = []
        for session in device._state.sessions.items():
            if _is_outdated(session):
                sessions.append(session)
            else:  # its files may have their earlier contents again
                device._state.reload_errors.pop(session, None)
        modules = modules_of(device)
        outdated = any(module._is_outdated() for module in modules)
        if (not sessions and not outdated) or not _replace(device, sessions, modules if outdated else []):
            return False
    device._note_reloaded(ShaderHotReloadEvent(device))
    return True


def reload_all(device: Any) -> None:
    """Builds everything again from the sources as they are now, changed or not: sessions with what was loaded and linked
    in them, and the modules of functional calls. What does not compile keeps its old code, and the error is logged."""
    with code_lock:
        _replace(device, device._state.sessions.items(), modules_of(device))
    device._note_reloaded(ShaderHotReloadEvent(device))


def _is_outdated(session: Any) -> bool:
    """Whether a file differs from what the session has read."""
    return any(_hash_now(path) != known for path, known in session.read_files.items())


def _hash_now(path: str) -> str:
    """As the session's `read_files` has it; "" where the file is gone."""
    try:
        return libslang._content_hash(Path(path).read_bytes())
    except OSError:
        return ""


def _replace(device: Any, sessions: list[Any], modules: list[Any]) -> bool:
    """Builds sessions of users again, and compiles modules of functional calls in a new one; False when nothing could
    be replaced."""
    errors: dict[Any, str] = {}
    replaced = [_rebuild(device, session, errors) for session in sessions]
    replacements: list[tuple[Any, Any]] = []
    if modules:
        session = new_session(device)
        replacements = _compile(device, modules, session, errors)
        if replacements:
            device._state.functional_session = session
    for module, main in replacements:
        module._replace(main)
    _report(device, [*sessions, *modules], errors)
    return any(replaced) or bool(replacements)


def _rebuild(device: Any, session: Any, errors: dict[Any, str]) -> bool:
    """Loads and links all of a user's session again; False when that failed and everything is as it was."""
    for module in modules_of(device):
        if module._is_loaded_in(session):  # kernels made of the old code need not compile with the new one
            module._drop_kernels()
    try:
        session.reload()
        done = True
    except RuntimeError as error:  # as for modules: SlangCompileError, or an operation that the device lacks
        errors[session] = str(error)
        done = False
    paths = list(session.read_files)
    if not done:  # what stands in the way may be a file that was never read
        paths += [str(path) for source in paths for path in imported_paths(device, Path(source))]
    watch(device, paths)
    return done


def _session_of(module: Any, session: Any) -> Any:
    """What a module is compiled in anew: one with its macros, that of modules which no other session has, or `session`."""
    if module._defines:
        return new_session(module.device, module._defines)
    foreign = foreign_links(module.link)
    return foreign[0].session if foreign else session


def _report(device: Any, tried: list[Any], errors: dict[Any, str]) -> None:
    """Keeps the errors of what was tried, and those of what was not, and logs what is new."""
    known = device._state.reload_errors
    said = set(known.values())
    fresh = [error for error in dict.fromkeys(errors.values()) if error not in said]
    if fresh:
        _log.error("hot reload failed, the old code keeps running:\n%s", "\n".join(fresh))
    for origin in tried:
        known.pop(origin, None)
    known.update(errors)


def _compile(device: Any, modules: list[Any], session: Any, errors: dict[Any, str]) -> list[tuple[Any, Any]]:
    """What the compiler makes of the sources as they are now, in a session of its own."""
    compiled: dict[Any, Any] = {}
    for module in modules:
        module._note_files()
        try:
            compiled[module] = module._load_in(_session_of(module, session))
        except RuntimeError as error:  # SlangCompileError, or an operation that the device lacks
            errors[module] = str(error)
            module._watch_imports()
    return [(module, main) for module, main in compiled.items() if _is_complete(module, compiled, modules)]


def _is_complete(module: Any, compiled: dict[Any, Any], modules: list[Any]) -> bool:
    """Whether a module and all that it is linked with compiled."""
    # Not a function inside of _compile: one that calls itself is a cycle, which would keep the session that it sees.
    return module in compiled and all(_is_complete(item, compiled, modules) for item in module.link if item in modules)
