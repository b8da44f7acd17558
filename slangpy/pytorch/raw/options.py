"""The options of loadModule: checked, and as the compilers take them."""

from __future__ import annotations

import math
import os
import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

_NAME = re.compile(r"[A-Za-z_]\w*\Z")
_SOURCES = (".slang", ".hlsl", ".glsl", ".cu", ".c", ".cpp", ".slang-module")
_OURS = ("-target", "-o", "-entry", "-stage", "-depfile")


@dataclass(frozen=True)
class LoadOptions:
    """What decides how a file is compiled."""

    path: str  # absolute
    defines: tuple[tuple[str, str], ...] = ()
    include_paths: tuple[str, ...] = ()
    line_info: bool = True
    fast_math: bool = True
    cuda_line_info: bool = True
    slang_flags: tuple[str, ...] = ()
    cuda_flags: tuple[str, ...] = ()
    float_mode: str = "default"  # of Slang

    @property
    def folder(self) -> str:
        return os.path.dirname(self.path)

    @property
    def checks_bounds(self) -> bool:
        """Whether kernels on CUDA stop at indices outside of their views."""
        flags = " ".join(self.cuda_flags).replace("-D ", "-D").split(" ")
        return any(flag.split("=")[0] == "-DSPY_BOUNDS_CHECK" for flag in flags)

    @property
    def search_paths(self) -> tuple[str, ...]:
        return (self.folder, *self.include_paths)


def make_options(
    fileName: Any,
    verbose: Any,
    defines: Any,
    includePaths: Any,
    slangGenLineInfo: Any,
    cudaFastMath: Any,
    cudaGenLineInfo: Any,
    extraSlangFlags: Any,
    extraCudaFlags: Any,
) -> LoadOptions:
    for name, value in (
        ("verbose", verbose),
        ("slangGenLineInfo", slangGenLineInfo),
        ("cudaFastMath", cudaFastMath),
        ("cudaGenLineInfo", cudaGenLineInfo),
    ):
        if not isinstance(value, (bool, int)):
            raise TypeError(f"loadModule: '{name}' must be a bool, got {value!r}")
    slang_flags, folders, float_mode = _slang_flags(_texts("extraSlangFlags", extraSlangFlags))
    return LoadOptions(
        _path(fileName),
        _defines(defines),
        (*(os.path.abspath(p) for p in _texts("includePaths", includePaths, paths=True)), *folders),
        bool(slangGenLineInfo),
        bool(cudaFastMath),
        bool(cudaGenLineInfo),
        slang_flags,
        _cuda_flags(_texts("extraCudaFlags", extraCudaFlags)),
        float_mode,
    )


def _path(value: Any) -> str:
    if not isinstance(value, (str, os.PathLike)):
        raise TypeError(f"loadModule: 'fileName' must be a str or a path, got {value!r}")
    path = os.path.abspath(os.fspath(value))
    if not isinstance(path, str):
        raise TypeError(f"loadModule: 'fileName' must be text, got {value!r}")
    if not os.path.isfile(path):
        raise FileNotFoundError(f"loadModule: there is no file {path}")
    return str(Path(path).resolve())


def _defines(values: Any) -> tuple[tuple[str, str], ...]:
    if not isinstance(values, Mapping):
        raise TypeError(f"loadModule: 'defines' must be a dict of names and values, got {values!r}")
    return tuple((name, _define(name, value)) for name, value in values.items())


def _define(name: Any, value: Any) -> str:
    if not isinstance(name, str) or not _NAME.match(name):
        raise ValueError(f"loadModule: 'defines' has the name {name!r}, which is not an identifier")
    if value is None or isinstance(value, (bool, np.bool_)):
        return "1" if value is None or value else "0"
    if isinstance(value, str):
        return value
    if hasattr(value, "__index__"):
        return str(value.__index__())
    if isinstance(value, float) or (hasattr(value, "__float__") and getattr(value, "ndim", 0) == 0):
        number = float(value)
        if not math.isfinite(number):
            raise ValueError(f"loadModule: 'defines' gives {name} the value {number}, which is not a finite number")
        return repr(number)
    raise TypeError(
        f"loadModule: 'defines' gives {name} a {type(value).__name__}; expected int, float, bool, str or None"
    )


def _texts(name: str, values: Any, paths: bool = False) -> tuple[str, ...]:
    if isinstance(values, (str, bytes)) or not isinstance(values, Sequence):
        raise TypeError(f"loadModule: '{name}' must be a list of str, got {values!r}")
    for value in values:
        if not isinstance(value, str) and not (paths and isinstance(value, os.PathLike)):
            raise TypeError(f"loadModule: '{name}' must be a list of str, got {value!r} in it")
    return tuple(str(os.fspath(value)) if paths else value for value in values)


_FLOAT_MODE = ("-fp-mode", "-floating-point-mode")


def _slang_flags(flags: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...], str]:
    """Those for the compiler's parser; the folders of `-I`; and the mode of `-fp-mode`, which the parser takes only beside a
    target, which is ours."""
    kept: list[str] = []
    folders: list[str] = []
    mode = "default"
    before = ""
    for flag in flags:
        value, before = before, flag
        if value == "-I" or (flag.startswith("-I") and flag != "-I"):
            folders.append(os.path.abspath(flag if value == "-I" else flag[2:]))
        elif value in _FLOAT_MODE:
            if flag not in ("default", "fast", "precise"):
                raise ValueError(
                    f"loadModule: 'extraSlangFlags' has '{value} {flag}'; the modes are default, fast and precise"
                )
            mode = flag
        elif flag not in ("-I", *_FLOAT_MODE):
            _check_flag(flag, value)
            kept.append(flag)
    if before in ("-I", *_FLOAT_MODE):
        raise ValueError(f"loadModule: 'extraSlangFlags' ends with '{before}', which needs a value")
    return tuple(kept), tuple(folders), mode


def _check_flag(flag: str, before: str) -> None:
    is_input = flag.endswith(_SOURCES) and not flag.startswith("-") and before != "-D"
    if flag in _OURS or flag.startswith("-dump") or is_input:
        raise ValueError(f"loadModule: 'extraSlangFlags' has '{flag}', which loadModule decides itself; leave it out")


_ALONE = ("--expt-relaxed-constexpr", "--extended-lambda", "-expt-relaxed-constexpr", "-extended-lambda", "-keep", "--keep",
          "-allow-unsupported-compiler", "--allow-unsupported-compiler", "-w", "-O0", "-O1", "-O2", "-O3")  # fmt: skip
_WITH_VALUE = ("--threads", "-t", "-Xcompiler", "--compiler-options", "-ccbin")
_WARNED = ("-gencode", "--generate-code", "-arch", "--gpu-architecture", "-code", "--gpu-code", "-l", "-L")


_LINKED = re.compile(r"-L\S+|-l(?!ineinfo\b)\S+")


def _cuda_flags(flags: tuple[str, ...]) -> tuple[str, ...]:
    """As NVRTC takes them: what nvcc alone knows is dropped."""
    kept: list[str] = []
    skip = False
    for at, flag in enumerate(flags):
        if skip:
            skip = False
            continue
        name = flag.split("=")[0]
        separate = "=" not in flag and at + 1 < len(flags)
        if flag in _ALONE or re.fullmatch(r"-t\d+|-Xcompiler=.*", flag):
            continue
        if name in _WITH_VALUE:
            skip = separate
            continue
        if name in _WARNED or _LINKED.fullmatch(flag):
            warnings.warn(f"loadModule: 'extraCudaFlags': {flag} is ignored; code is made for the device at hand and links nothing",
                          UserWarning, stacklevel=5)  # fmt: skip
            skip = separate and flag in _WARNED
            continue
        kept.append(flag)
    return tuple(kept)
