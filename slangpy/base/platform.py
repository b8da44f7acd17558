"""Where programs run: folders, memory and the screen."""

from __future__ import annotations

import mmap
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..config import config
from .dialogs import FileDialogFilter as FileDialogFilter, Kind, ask
from .folders import PACKAGE


class _Folder(type(Path())):
    """A path that may be called as well: programs ask for `project_directory()`, others for the value."""

    def __call__(self) -> Path:
        return Path(self)


class _Text(str):
    """The same of a text."""

    def __call__(self) -> str:
        return str(self)


class _Number(float):
    """The same of a number."""

    def __call__(self) -> float:
        return float(self)


display_scale_factor: _Number = _Number(1.0)
"""Texts and pictures are not scaled."""

executable_path: _Folder = _Folder(sys.executable)
executable_directory: _Folder = _Folder(executable_path.parent)
executable_name: _Text = _Text(executable_path.name)
home_directory: _Folder = _Folder(Path.home())
runtime_directory: _Folder = _Folder(PACKAGE)
project_directory: _Folder = _Folder(runtime_directory.parent)
app_data_directory: _Folder = _Folder(config.data_dir)
page_size: int = mmap.PAGESIZE


@dataclass(frozen=True)
class MemoryStats:
    """Bytes of this process in memory, now and at most."""

    rss: int
    peak_rss: int


def memory_stats() -> MemoryStats:
    """What this process holds in memory; zeros where the system does not tell."""
    status = Path("/proc/self/status")
    if not status.is_file():
        return MemoryStats(0, 0)
    found = {line.split(":")[0]: line.split()[1] for line in status.read_text().splitlines() if line.startswith("Vm")}
    return MemoryStats(int(found.get("VmRSS", 0)) * 1024, int(found.get("VmHWM", 0)) * 1024)


def open_file_dialog(filters: Sequence[FileDialogFilter] = ()) -> Path | None:
    """Asks the user for a file that exists; None if no file was chosen. filters: kinds of files, one of which is shown.

    The dialog is zenity's where that is installed (Linux), else tkinter's. RuntimeError where there is neither, or no
    display. This waits for the user.
    """
    return ask("open_file_dialog", Kind.open, filters)


def save_file_dialog(filters: Sequence[FileDialogFilter] = ()) -> Path | None:
    """Asks the user for a file to write to, and whether one that exists may be overwritten; else as `open_file_dialog`.
    Nothing is written."""
    return ask("save_file_dialog", Kind.save, filters)


def choose_folder_dialog() -> Path | None:
    """Asks the user for a folder; else as `open_file_dialog`."""
    return ask("choose_folder_dialog", Kind.folder, ())
