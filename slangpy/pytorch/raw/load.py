"""loadModule, and its caches: live modules in the process, records of files on disk."""

from __future__ import annotations

import copyreg
import os
import sys
import threading
import time
import warnings
from collections.abc import Callable
from typing import Any

from slangpy.base import libslang
from slangpy.base.keywords import checked_keywords
from slangpy.base.locks import new_lock, new_rlock
from slangpy.compiler.cache import cache, digest
from slangpy.compiler.package_files import library_hash, planner_hash
from slangpy.config import config
from slangpy.errors import SlangWarning
from slangpy.pytorch.raw.devices import KIND, Programs
from slangpy.pytorch.raw.entry_points import HostFunction
from slangpy.pytorch.raw.headers import included_files
from slangpy.pytorch.raw.kernel import Kernel
from slangpy.pytorch.raw.module import KernelModule
from slangpy.pytorch.raw.options import LoadOptions, make_options
from slangpy.pytorch.raw.plain_records import record_from_plain, record_to_plain
from slangpy.pytorch.raw.program import ModuleRecord, compile_program

_KIND = "kernels"
_ATTEMPTS = 3
"""At a file that is saved again while it is compiled."""
_live: dict[LoadOptions, tuple[dict[str, tuple[Any, ...]], dict[str, Any], KernelModule]] = {}
_busy: dict[LoadOptions, threading.RLock] = {}
_guard = new_lock()


@checked_keywords
def loadModule(
    fileName: str | os.PathLike[str],
    skipSlang: Any = None,
    verbose: bool = False,
    defines: Any = {},  # noqa: B006
    includePaths: Any = [],  # noqa: B006
    skipNinjaCheck: Any = False,
    slangGenLineInfo: bool = True,
    cudaFastMath: bool = True,
    cudaGenLineInfo: bool = True,
    extraSlangFlags: Any = [],  # noqa: B006
    extraCudaFlags: Any = [],  # noqa: B006
) -> KernelModule:
    """Compiles a Slang file of kernels (`[AutoPyBindCUDA] [CudaKernel]`, `TensorView`, `[TorchEntryPoint]`).

    Kernels are attributes: `m.square(input=x, output=y).launchRaw(blockSize=(32, 1, 1), gridSize=(2, 1, 1))`, with
    derivatives `m.square.bwd` and `m.square.fwd`. They run where their tensors lie, on CUDA or the CPU.

    defines: dict of macros. includePaths: folders for `import` and `#include`, after that of the file. verbose: writes a
    line for each step to stderr. cudaFastMath: approximate arithmetic on CUDA, on by default. skipSlang and
    skipNinjaCheck have no effect. Raises FileNotFoundError, or CompileError with the compiler's messages.
    """
    for name, value, usual in (("skipSlang", skipSlang, None), ("skipNinjaCheck", skipNinjaCheck, False)):
        if value is not usual:
            warnings.warn(f"loadModule: '{name}' has no effect; leave it out", DeprecationWarning, stacklevel=2)
    options = make_options(
        fileName,
        verbose,
        defines,
        includePaths,
        slangGenLineInfo,
        cudaFastMath,
        cudaGenLineInfo,
        extraSlangFlags,
        extraCudaFlags,
    )
    return _load_locked(options, _logger(options, verbose))


def _load_locked(options: LoadOptions, log: Callable[[str], None]) -> KernelModule:
    with _guard:
        lock = _busy.setdefault(options, new_rlock())
    with lock:
        return _load(options, log)


def _logger(options: LoadOptions, verbose: bool) -> Callable[[str], None]:
    if not verbose:
        return lambda text: None
    name = os.path.basename(options.path)
    return lambda text: print(f"[slangpy] {name}: {text}", file=sys.stderr)


def _load(options: LoadOptions, log: Callable[[str], None]) -> KernelModule:
    known = _live.get(options)
    if known is not None:
        stamps, inputs, module = known
        changed = _changed(stamps, inputs)
        if not changed:
            return module
        log(f"rebuilding: {os.path.basename(changed)} changed")
    key = digest(repr(options), planner_hash(), library_hash(), config.rewrites)
    start = time.perf_counter()
    stored = cache.read(_KIND, key)
    if stored is not None and _is_current(stored["inputs"]):
        record = record_from_plain(stored["record"])
        inputs = stored["inputs"]
        log(f"cached ({len(inputs['files'])} files checked, {(time.perf_counter() - start) * 1e3:.0f} ms)")
    else:
        record, inputs = _compile(options, log)
        cache.write(_KIND, key, {"record": record_to_plain(record), "inputs": inputs})
    _warn(options, record)
    module = KernelModule(options.path, record, Programs(record, options, log))
    _live[options] = (_stamps(inputs), inputs, module)
    return module


def _compile(options: LoadOptions, log: Callable[[str], None]) -> tuple[ModuleRecord, dict[str, Any]]:
    for left in reversed(range(_ATTEMPTS)):
        record, session = compile_program(options, log)
        inputs = _inputs(session, options, record.program)
        if not left or _has_read(session, inputs):
            return record, inputs
    raise AssertionError("the last attempt returns")


def _has_read(session: Any, inputs: dict[str, Any]) -> bool:
    """Whether the files still are what the compiler has read: one that was saved meanwhile would pass for compiled."""
    return all(
        _hash(path, libslang._content_hash) == known for path, known in session.read_files.items() if path in inputs["files"]
    )


def _warn(options: LoadOptions, record: ModuleRecord) -> None:
    notes = list(record.warnings)
    bad = [f"{kernel.name}: {kernel.trouble}" for kernel in record.kernels if kernel.trouble]
    if bad:
        notes.append("these kernels cannot be called:\n  " + "\n  ".join(bad))
    if notes:
        warnings.warn(f"{options.path}: " + "\n".join(notes), SlangWarning, stacklevel=5)


# --- what a record was made of


def _hash(path: str, of: Callable[[bytes], str] = digest) -> str:
    try:
        with open(path, "rb") as file:
            return of(file.read())
    except OSError:
        return ""


def _inputs(session: Any, options: LoadOptions, program: str) -> dict[str, Any]:
    """Contents of the files read, headers of `__requirePrelude` among them, and the paths where others were looked for."""
    files = {options.path, *session.read_files, *included_files(program, options.search_paths)}
    missing = set(session.missing_files) - files
    return {"files": {path: _hash(path) for path in sorted(files)}, "missing": sorted(missing)}


def _is_current(inputs: dict[str, Any]) -> bool:
    return all(_hash(path) == known for path, known in inputs["files"].items()) and not any(
        map(os.path.exists, inputs["missing"])
    )


def _stamp(path: str) -> tuple[Any, ...]:
    try:
        info = os.stat(path)
    except OSError:
        return ()
    return (info.st_size, info.st_mtime_ns, info.st_ino)


def _stamps(inputs: dict[str, Any]) -> dict[str, tuple[Any, ...]]:
    return {path: _stamp(path) for path in inputs["files"]}


def _changed(stamps: dict[str, tuple[Any, ...]], inputs: dict[str, Any]) -> str:
    """A file that is another than when the module was loaded; empty when there is none."""
    for path, stamp in stamps.items():
        now = _stamp(path)
        if now != stamp:
            if _hash(path) != inputs["files"][path]:
                return path
            stamps[path] = now
    return next((path for path in inputs["missing"] if os.path.exists(path)), "")


# --- pickles say which file was loaded, and how


def _load_again(options: LoadOptions) -> KernelModule:
    if not os.path.isfile(options.path):
        raise FileNotFoundError(f"loadModule: there is no file {options.path}, which a pickle names")
    return _load_locked(options, _logger(options, False))


def _item_of(options: LoadOptions, name: str, derivative: str) -> Any:
    item = _load_again(options)._items.get(name)
    if item is None:
        raise AttributeError(f"{options.path} has no '{name}', which a pickle names")
    return getattr(item, derivative) if derivative else item


def _reduce_module(module: KernelModule) -> Any:
    return _load_again, (module._programs.options,)


def _reduce_kernel(kernel: Kernel) -> Any:
    return _item_of, (kernel._programs.options, kernel.__name__, kernel._derivative)


def _reduce_host_function(function: HostFunction) -> Any:
    return _item_of, (function._options, function.__name__, "")


copyreg.pickle(KernelModule, _reduce_module)
copyreg.pickle(Kernel, _reduce_kernel)
copyreg.pickle(HostFunction, _reduce_host_function)


# --- forgetting


def clearSessionShaderCache() -> None:
    """Forgets the modules of this process; the next loadModule looks at the disk. Modules that are in use go on working."""
    with _guard:
        _live.clear()
        _busy.clear()


def clearPersistentShaderCache() -> None:
    """Removes what loadModule has stored on disk."""
    for kind in (_KIND, KIND):
        cache.remove(kind)


def clearShaderCaches() -> None:
    """Both of the others."""
    clearSessionShaderCache()
    clearPersistentShaderCache()


__all__ = ["clearPersistentShaderCache", "clearSessionShaderCache", "clearShaderCaches", "loadModule"]
