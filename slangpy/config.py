"""Process-wide switches, and the only reader of the environment."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, field
from pathlib import Path

from . import _native


def _flag(name: str) -> bool:
    return os.environ.get(name, "").strip().lower() in ("1", "true", "yes", "on")


def _is_off(name: str) -> bool:
    return os.environ.get(name, "").strip().lower() in ("0", "false", "no", "off")


def _hide_frames() -> None:
    """Errors of calls end at the user's own line, unless the frames inside of the package are asked for."""
    folder = os.path.dirname(os.path.abspath(__file__)) + os.sep
    _native._hide_frames("" if _flag("SLANGPY_FULL_TRACEBACK") else folder)


_hide_frames()


def _paths(*names: str) -> tuple[str, ...]:
    return tuple(path for path in (os.environ.get(name, "").strip() for name in names) if path)


def _number(name: str) -> int:
    text = os.environ.get(name, "").strip()
    return int(text) if text.isdigit() else 0


def _folder(name: str) -> str:
    """A folder that the environment names; empty unless it is absolute, as the standard of the XDG variables has it."""
    path = os.environ.get(name, "")
    return path if os.path.isabs(path) else ""


def _home() -> Path:
    try:
        return Path.home()
    except RuntimeError:  # a user without a name, as containers have them: a path that is not absolute is not used
        return Path("~")


def _seconds(name: str, default: float) -> float:
    try:
        return max(0.0, float(os.environ.get(name, "")))
    except ValueError:
        return default


def _default_compile_memory() -> int:
    """Bytes: what SLANGPY_COMPILE_MEMORY says in MiB (0: any), else three quarters of the machine's memory."""
    text = os.environ.get("SLANGPY_COMPILE_MEMORY", "").strip()
    if text.isdigit():
        return int(text) << 20
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 4 * 3
    except (AttributeError, ValueError, OSError):
        return 0


def _default_cache_dir() -> Path:
    override = os.environ.get("SLANGPY_CACHE_DIR")
    if override:  # a relative one is refused: it would lead into whatever folder one is in
        return _home() / override[2:] if override.startswith("~/") else Path(override)
    if sys.platform == "win32":
        base = _folder("LOCALAPPDATA") or str(_home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = str(_home() / "Library" / "Caches")
    else:
        base = _folder("XDG_CACHE_HOME") or str(_home() / ".cache")
    return Path(base) / "slangpy"


def _shipped_cache() -> Path | None:
    given = os.environ.get("SLANGPY_SHIPPED_CACHE", "").strip()
    return Path(given) if given else None


def _default_data_dir() -> Path:
    if sys.platform == "win32":
        base = _folder("LOCALAPPDATA") or str(_home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = str(_home() / "Library" / "Application Support")
    else:
        base = _folder("XDG_DATA_HOME") or str(_home() / ".local" / "share")
    return Path(base) / "slangpy"


@dataclass
class Config:
    """Settings read at import; the `set_…` functions change them at run time."""

    print_generated_shaders: bool = field(default_factory=lambda: _flag("SLANGPY_PRINT_GENERATED_SHADERS"))
    dump_generated_shaders: bool = field(default_factory=lambda: _flag("SLANGPY_DUMP_GENERATED_SHADERS"))
    dump_slang_intermediates: bool = field(default_factory=lambda: _flag("SLANGPY_DUMP_SLANG_INTERMEDIATES"))
    check_bounds: bool = field(default_factory=lambda: _flag("SLANGPY_CHECK_BOUNDS"))
    check_gradients: bool = field(default_factory=lambda: _flag("SLANGPY_CHECK_GRADIENTS"))
    cache_dir: Path = field(default_factory=_default_cache_dir)
    data_dir: Path = field(default_factory=_default_data_dir)
    cache_enabled: bool = field(default_factory=lambda: not _flag("SLANGPY_DISABLE_CACHE"))
    cache_size: int = 1 << 30
    cache_shared: bool = field(default_factory=lambda: _flag("SLANGPY_CACHE_SHARED"))
    """Whether a cache that root owns is used as well: one that an administrator made for all, who only read it."""
    shipped_cache: Path | None = field(default_factory=_shipped_cache)
    """Folder of a cache that came with a program, which is read where the user's own has nothing, and never written."""
    cxx: str = field(default_factory=lambda: os.environ.get("CXX", "").strip())
    cuda_folders: tuple[str, ...] = field(default_factory=lambda: _paths("CUDA_HOME", "CUDA_PATH"))
    cpu_threads: int = field(default_factory=lambda: _number("SLANGPY_CPU_THREADS"))
    cpu_wave_lanes: int = field(default_factory=lambda: _number("SLANGPY_CPU_WAVE_LANES") or 1)
    """Lanes of a wave on CPU devices: 1, or 32 for kernels that assume the warps of CUDA."""
    cpu_lanes: bool = field(default_factory=lambda: not _is_off("SLANGPY_CPU_LANES"))
    """Whether kernels of CPU devices run many invocations at once where their loops end at different times. Devices look when
    they first compile."""
    progress: bool = field(default_factory=lambda: os.environ.get("SLANGPY_PROGRESS", "").strip() != "0")
    """Whether compiling that takes over a second says so on stderr."""
    compile_in_process: bool = field(default_factory=lambda: _flag("SLANGPY_COMPILE_IN_PROCESS"))
    compile_timeout: float = field(default_factory=lambda: _seconds("SLANGPY_COMPILE_TIMEOUT", 600.0))
    """Seconds that generating the code of one kernel may take; 0: any."""
    compile_memory: int = field(default_factory=_default_compile_memory)
    """Bytes that it may take; 0: any."""
    rewrites: str = field(default_factory=lambda: os.environ.get("SLANGPY_REWRITES", "").strip())
    """Which faults of Slang sources are rewritten for: "" all, "0" none, "-name,-name" all but these."""
    compile_fault: str = field(default_factory=lambda: os.environ.get("SLANGPY_TEST_COMPILE_FAULT", ""))
    """For tests: the compiler's process does "crash", "hang" or takes "memory" instead of answering; "compare" has both
    processes do the work, and fails where they differ."""

    @property
    def device_type_override(self) -> str:
        """Name that replaces the `type` of `create_device`, or empty."""
        return os.environ.get("SLANGPY_DEVICE_TYPE_OVERRIDE", "").strip().lower()


config = Config()


def set_print_generated_shaders(enabled: bool) -> None:
    """Prints each generated kernel to stdout when it is built."""
    config.print_generated_shaders = bool(enabled)


def set_dump_generated_shaders(enabled: bool) -> None:
    """Writes each generated kernel to `.temp/` in the working folder."""
    config.dump_generated_shaders = bool(enabled)


def set_check_bounds(enabled: bool) -> None:
    """Checks each index into a tensor parameter of a call: IndexError with the index and the shape. Costs time: off at
    first, unless the environment has SLANGPY_CHECK_BOUNDS=1. Calls that are recorded skip what lies outside."""
    config.check_bounds = bool(enabled)
    _native._set_check_bounds(config.check_bounds)


def set_shipped_cache(folder: str | os.PathLike[str] | None) -> None:
    """Reads kernels from a folder that `python -m slangpy cache export` wrote, where the user's own cache has none; None:
    from nowhere else. An absolute path; at first what SLANGPY_SHIPPED_CACHE says."""
    if folder is not None and not os.path.isabs(folder):
        raise ValueError(f"set_shipped_cache: expected an absolute path, got {os.fspath(folder)!r}")
    config.shipped_cache = None if folder is None else Path(folder)


def set_dump_slang_intermediates(enabled: bool) -> None:
    """Writes the target code of each generated kernel to `.temp/` in the working folder."""
    config.dump_slang_intermediates = bool(enabled)


def set_allow_torch_fallback(enabled: bool) -> None:
    """Accepted for compatibility; has no effect."""
    del enabled
