"""Dialogs for files, by zenity or tkinter: each in a process of its own, which may have its own event loop."""

from __future__ import annotations

import enum
import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from .typed import sequence, text

_CANCELLED = 1
"""What zenity and tk_dialog.py return then; zenity returns it without a display, too, and complains."""


class Kind(enum.Enum):
    """By tkinter's names."""

    open = "askopenfilename"
    save = "asksaveasfilename"
    folder = "askdirectory"


@dataclass(frozen=True)
class FileDialogFilter:
    """Files that a dialog shows: `FileDialogFilter("Images", "*.png;*.jpg")`. pattern: patterns of names, by semicolons."""

    name: str
    pattern: str

    def __post_init__(self) -> None:
        text("FileDialogFilter 'name'", self.name)
        text("FileDialogFilter 'pattern'", self.pattern)

    @property
    def patterns(self) -> list[str]:
        return [part.strip() for part in self.pattern.split(";") if part.strip()]


def ask(function: str, kind: Kind, filters: Sequence[FileDialogFilter]) -> Path | None:
    """What the user chose. function: for messages."""
    for number, chosen in enumerate(sequence(f"{function} 'filters'", filters, object)):
        if not isinstance(chosen, FileDialogFilter) or not chosen.patterns:
            raise TypeError(f'{function}: filters[{number}]: expected FileDialogFilter("Images", "*.png;*.jpg"), got {chosen!r}')
    if sys.platform == "linux" and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        raise RuntimeError(f"{function}: no display was found ({displays()}): take the path from the command line or input()")
    done = subprocess.run(_command(function, kind, filters), capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode == 0:
        path = done.stdout.removesuffix("\n")
        return Path(path) if path else None
    if done.returncode == _CANCELLED and "display" not in done.stderr.lower():
        return None
    raise RuntimeError(f"{function}: {done.args[0]} failed ({done.returncode}, {displays()}): {done.stderr.strip()}")


def displays() -> str:
    """Which displays the environment names."""
    return ", ".join(f"{name} is {os.environ.get(name) or 'not set'}" for name in ("DISPLAY", "WAYLAND_DISPLAY"))


def _command(function: str, kind: Kind, filters: Sequence[FileDialogFilter]) -> list[str]:
    """Of the first program that there is."""
    if sys.platform == "linux" and (program := shutil.which("zenity")):
        return [program, *_zenity(kind, filters)]
    if importlib.util.find_spec("tkinter") is None:
        names = "zenity or tkinter" if sys.platform == "linux" else "tkinter"
        raise RuntimeError(f"{function}: needs {names}; none is installed (on Debian: apt-get install zenity)")
    words = [word for each in filters for word in (each.name, ";".join(each.patterns))]
    # Isolated: the script's folder has modules with names of Python's own.
    return [sys.executable, "-I", str(Path(__file__).with_name("tk_dialog.py")), kind.value, *words]


def _zenity(kind: Kind, filters: Sequence[FileDialogFilter]) -> list[str]:
    words = {Kind.open: [], Kind.save: ["--save", "--confirm-overwrite"], Kind.folder: ["--directory"]}[kind]
    return ["--file-selection", *words, *(f"--file-filter={each.name} | {' '.join(each.patterns)}" for each in filters)]
