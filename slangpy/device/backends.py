"""What the backends are told before the first device is opened: compilers, threads, where NVRTC may be."""

from __future__ import annotations

import shlex
import shutil
import sys
import warnings
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from slangpy import _native
from slangpy.config import config


@cache
def configure_backends() -> None:
    """Once, before anything is opened."""
    configure_cpu()
    configure_cuda()


def configure_cpu() -> None:
    """Tells the CPU backend which compilers to try and how many threads to use."""
    compilers = [[name] for name in ("g++", "clang++", "c++")]
    if config.cxx:
        compilers.insert(0, shlex.split(config.cxx))
        if compilers[0] and shutil.which(compilers[0][0]) is None:
            warnings.warn(
                f"the environment's CXX names {compilers[0][0]!r}, which is no program; kernels of CPU devices are compiled "
                "by the first of g++, clang++ and c++ that is there",
                RuntimeWarning,
                stacklevel=5,
            )
    if sys.executable and find_spec("ziglang") is not None:
        compilers.append([sys.executable, "-m", "ziglang", "c++"])
    _native._configure_cpu(threads=config.cpu_threads, compilers=compilers, wave_lanes=config.cpu_wave_lanes)


def configure_cuda() -> None:
    """Tells the CUDA backend where NVRTC may be: pip packages, torch's copy, a toolkit."""
    if hasattr(_native, "_set_nvrtc_search_paths"):
        _native._set_nvrtc_search_paths(nvrtc_folders())


def nvrtc_folders() -> list[str]:
    """Folders that may hold NVRTC, best first."""
    folders: list[str] = []
    nvidia = find_spec("nvidia")
    for root in nvidia.submodule_search_locations or [] if nvidia is not None else []:
        folders += [str(path) for path in sorted(Path(root).iterdir()) if path.is_dir()]
    torch = find_spec("torch")
    if torch is not None and torch.origin:
        folders.append(str(Path(torch.origin).parent))
    return folders + list(config.cuda_folders)
