"""The files and texts that modules are made of, and how the compiler is given them."""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..._native import imports_in, words_in
from ...base.folders import absolute, working_folder
from ...errors import CompilerDiedError, SlangCompileError
from ..cache import digest
from ..library import load_parts
from ..session import SlangCompilerOptions
from ..session_state import state_of


def include_paths(device: Any) -> list[str]:
    options = SlangCompilerOptions.given(device.desc.compiler_options)
    return [os.fspath(p) for p in options.get("include_paths", [])]


def text_modules(device: Any) -> dict[str, str]:
    """Sources of modules made of text by the name that `import` knows them by: the last of each name."""
    return device._state.text_modules


def load_text_modules(device: Any, session: Any, name: str, text: str, importers: frozenset[str] = frozenset()) -> None:
    """Loads the modules made of text that a module imports: a known manifest had spared them the compiler."""
    importers |= {name}
    words = words_in(" ".join(asked for _, asked in imports_in(text)))
    for other, source in list(text_modules(device).items()):  # other threads add some
        if other in words and other not in importers and other not in state_of(session).sources:
            load_text_modules(device, session, other, source, importers)
            load_source(session, other, source)


def imports_of(text: str) -> list[str]:
    """What a text imports or includes, as it is written there."""
    return list(dict.fromkeys(name for word, name in imports_in(text) if word != "implementing"))


def imported_paths(device: Any, path: Path) -> list[Path]:
    """Where the files may lie, found or not, that a file and its imports ask for."""
    folders = [*include_paths(device), working_folder()]
    found: dict[Path, None] = {}
    wanted = [path]
    while wanted:
        file = wanted.pop()
        for name in imports_of(file.read_text("utf-8", "replace") if file.is_file() else ""):
            plain = name.strip('"<>')
            relative = plain if plain != name and "." in plain else plain.replace(".", "/") + ".slang"
            asked = [Path(folder, relative).resolve() for folder in (file.parent, *folders)]
            wanted += [candidate for candidate in asked if candidate not in found]
            found.update(dict.fromkeys(asked))
    return list(found)


def find_file(device: Any, name: str) -> Path:
    names = [name] if name.endswith(".slang") else [name + ".slang", name]
    folders = [""] if os.path.isabs(name) else [*include_paths(device), working_folder(), *_calling_folder()]
    for folder in folders:
        for candidate in names:
            path = Path(folder, candidate)
            if path.is_file():
                return path.resolve()
    if any(sign in name for sign in "{};\n"):
        raise SlangCompileError(
            "load_from_file: 'path' is Slang source, not the name of a file; write load_from_source(device, name, source)"
        )
    tried = shown_folders(folders) or name
    raise SlangCompileError(f'Failed to load slang module "{name}": no such file (looked in {tried})')


def shown_folders(folders: Iterable[str]) -> str:
    """Folders for a message: each once, and those that there are not are told."""
    unique = dict.fromkeys(str(Path(folder)) for folder in folders if folder)
    return ", ".join(folder if os.path.isdir(folder) else f"{folder} (does not exist)" for folder in unique)


@contextmanager
def naming_folders(device: Any) -> Iterator[None]:
    """Adds the folders of the include path to the error of a module that imports what is not there."""
    try:
        yield
    except CompilerDiedError:
        raise
    except SlangCompileError as error:
        if "cannot open file '" not in str(error):
            raise
        folders = shown_folders([*include_paths(device), working_folder()])
        raise SlangCompileError(f"{error}\nlooked in the folder of the file that imports it, {folders}") from None


def check_source(name: Any, source: Any) -> None:
    """For `load_from_source`: a name and a text that stand in each other's place, and a path in that of the text."""
    for what, given in (("name", name), ("source", source)):
        if not isinstance(given, str):
            raise TypeError(f"load_from_source: '{what}' must be a str, got {given!r} ({type(given).__name__})")
    if any(sign in name for sign in "{};\n") and not any(sign in source for sign in "{};"):
        raise ValueError(
            "load_from_source: 'name' holds Slang source and 'source' a name; write load_from_source(device, name, source)"
        )
    if source.endswith(".slang") and not any(sign in source for sign in "{};\n"):
        raise ValueError(f"load_from_source: 'source' is the path '{source}'; write load_from_file(device, path)")


def _calling_folder() -> list[str]:
    """The folder of the Python file whose code called this package."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "slangpy":
        frame = frame.f_back
    file = frame.f_globals.get("__file__") if frame is not None else None
    return [os.path.dirname(absolute(file))] if isinstance(file, str) else []


def file_hash(path: str) -> str:
    try:
        return digest(Path(path).read_bytes())
    except OSError:
        return ""


_attempts = itertools.count(1)


def load_path(session: Any, path: Path) -> Any:
    """Loads a file. Slang keeps what it has of a file that did not compile, so another attempt takes another name."""
    failed = state_of(session).failed_paths
    if path not in failed:
        try:
            if path.suffix == ".slang" and path.is_file():
                load_parts(session, path.read_text("utf-8", "replace"), "", str(path))
            return session.load_module(str(path))
        except SlangCompileError:
            failed.add(path)
            raise
    source = path.read_text(encoding="utf-8")
    stamp = f"{digest(source)[:12]}_{next(_attempts)}"
    return session.load_module_from_source(f"{path.stem}_{stamp}", source, f"{path.with_suffix('')}_{stamp}.slang")


def load_source(session: Any, name: str, source: str) -> Any:
    """Loads text under its name; a different text, or one that did not compile before, gets a name of its own."""
    known, failed = state_of(session).sources, state_of(session).failed_sources
    stamp = digest(source)[:12]
    if (name, stamp) in failed:
        stamp = f"{stamp}_{next(_attempts)}"
    elif known.setdefault(name, source) == source:
        try:
            load_parts(session, source, name, name)
            return session.load_module_from_source(name, source, name)
        except Exception as error:
            if "already loaded with different source" not in str(error):  # it was, without this function
                failed.add((name, stamp))
                raise
    # Slang knows modules by name and by path, so both must be new; the path is what messages show.
    try:
        return session.load_module_from_source(f"{name}_{stamp}", source, f"{name} ({stamp})")
    except SlangCompileError as error:
        failed.add((name, digest(source)[:12]))
        text = str(error).replace(f"{name}_{stamp}", name)
        if isinstance(error, CompilerDiedError):
            raise CompilerDiedError(text, error.reason, error.source_file) from None
        raise SlangCompileError(text) from None
