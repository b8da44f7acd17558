"""Where the package's files are."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, cast

PACKAGE = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
LIBRARY = os.path.join(PACKAGE, "slang")
"""Folder of the Slang library that comes with the package."""
LIBRARY_PATH = Path(LIBRARY)


def working_folder() -> str:
    """The folder that relative paths begin at: where it was removed meanwhile, one in which nothing is found."""
    try:
        return os.getcwd()
    except OSError:
        return os.path.join(os.sep, "removed working folder")


def absolute(path: str) -> str:
    """os.path.abspath, also where the working folder was removed."""
    return os.path.normpath(os.path.join(working_folder(), path))


def file_path(what: str, path: Any, name: str = "path") -> str:
    """Of a str or a PathLike. name: the argument's."""
    if not isinstance(path, (str, os.PathLike)):
        raise TypeError(f"{what} '{name}': expected a str or a path, got {_shown(path)}")
    return str(os.fspath(cast("str | os.PathLike[str]", path)))


def _shown(value: Any) -> str:
    text = repr(value)
    kind = type(value).__name__
    return f"{text} ({kind})" if len(text) <= 80 and "\n" not in text else f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}"


def path_list(paths: Any, function: str) -> list[str]:
    """Folders as text. One path alone is a list of one: a str is no list of its letters."""
    if isinstance(paths, (str, os.PathLike)):
        paths = (paths,)
    if not isinstance(paths, Iterable):
        raise TypeError(f"{function} 'include_paths': expected a list of paths, got {paths!r} ({type(paths).__name__})")
    found: list[str] = []
    for path in cast("Iterable[Any]", paths):
        found.append(file_path(function, path, "include_paths"))
    return found
