"""Where programs run: folders, memory and the screen."""

from __future__ import annotations

import mmap
import sys
from dataclasses import dataclass
from pathlib import Path

from ..config import config
from .folders import PACKAGE


class _Folder(type(Path())):
    """A path that may be called as well: programs ask for `project_directory()`, others for the value."""

    def __call__(self) -> Path:
        return Path(self)


display_scale_factor: float = 1.0
"""There are no windows, so nothing is scaled."""

executable_path: Path = Path(sys.executable)
executable_directory: Path = executable_path.parent
executable_name: str = executable_path.name
home_directory: Path = Path.home()
runtime_directory: Path = Path(PACKAGE)
project_directory: _Folder = _Folder(runtime_directory.parent)
app_data_directory: Path = Path(config.data_dir)
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
