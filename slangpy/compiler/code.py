"""Target code of linked programs, and the memory of those that the Slang compiler dies of."""

from __future__ import annotations

import logging
import os
import re
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ..base import libslang
from ..base.folders import LIBRARY
from ..config import config
from ..errors import CompilerDiedError, SlangCompileError
from .cache import cache_of
from .text.hlsl import check_hlsl_parameters

_KIND = "died"
_NO_TYPE = re.compile(
    r"unhandled type for C/C\+\+ emit|disallowed element type '(?:BFloat16|FloatE4M3|FloatE5M2)'"
)
"""What Slang 2026.12 says, the first as an internal error, of types that it has no C++ for."""
_NOT_UNROLLED = "E40020"
_refused: dict[str, str] = {}
"""What Slang said of programs with loops that it cannot unroll, by their content: it takes half a minute to find out."""
_REMEMBERED = ("crash", "timeout", "memory")
_MOST_PLACES = 5
"""Of suspects that a message shows."""
_log = logging.getLogger("slangpy")


def target_code(device: Any, program: Any, entry_point: int, label: str, generated: str = "") -> bytes:
    """The code of an entry point of `program` (a ShaderProgram) for `device`.

    label: what messages call it. generated: source that was made for it, kept beside the user's when the compiler dies.
    Raises CompilerDiedError when the compiler crashes or has to be stopped, and SlangCompileError where it cannot unroll a
    loop; that is remembered in the disk cache, and not tried again before the sources, the options, the compiler or the
    limits change. Raises NotImplementedError for types and stages that the device's language lacks.
    """
    _check_target(device, program, entry_point, label)
    cache = cache_of(device)
    if _refused or cache.count(_KIND):  # seldom: most programs compile
        _raise_known(cache, program.content_key(entry_point), label)
    try:
        return program.code(entry_point)
    except CompilerDiedError as error:
        record = {
            "reason": error.reason,
            "text": str(error),
            "limit": _limit(error.reason),
            "file": _keep_source(program, label, generated, str(error)),
            "places": _suspects(program),
        }
        if error.reason in _REMEMBERED:
            key = program.content_key(entry_point)
            record["entry"] = str(cache.folder / _KIND / key)
            cache.write(_KIND, key, record)
        raise _error(label, record) from None
    except SlangCompileError as error:
        if _NOT_UNROLLED in str(error):
            raise _not_unrolled(cache, program.content_key(entry_point), str(error)) from None
        if not _NO_TYPE.search(str(error)):
            raise
        raise NotImplementedError(
            f"{label} uses a type that Slang cannot write for this device: C++ code of the cpu device has no vectors and "
            "matrices of BFloat16 and of floats of 8 bits; use an array or a struct of them or vectors of float there, or a "
            "cuda device"
        ) from None


def _check_target(device: Any, program: Any, entry_point: int, label: str) -> None:
    """Raises for what crashes Slang."""
    if device.compile_target.format == "cpp" and program.stages[entry_point] != "compute":
        raise NotImplementedError(
            f"{label}: a {device.info.type.name} device neither draws nor traces rays: its code is C++, which has no "
            f"{program.stages[entry_point]} shaders; use a Vulkan or Direct3D 12 device: create_device(type=...)"
        )
    if device.compile_target.format == "hlsl":
        check_hlsl_parameters(program.binding_layout(entry_point), label)


def _raise_known(cache: Any, key: str, label: str) -> None:
    """Raises what was found out of a program before."""
    known = cache.read(_KIND, key)
    if key in _refused or (known is not None and known["reason"] == "refused"):
        raise SlangCompileError(_refused.get(key) or known["text"])
    if known is not None and not _allows_more(known):
        raise _error(label, known, again=True)


def _not_unrolled(cache: Any, key: str, text: str) -> SlangCompileError:
    """The error with what to do about it; it is remembered."""
    if "diff.meta.slang" in text:
        text += "\nSlang cannot compile [Differentiable] functions with arrays of unknown size; declare the size, such as float x[4]"
    else:
        text += (
            "\nSlang unrolls inner loops first, and cannot when their bounds depend on the counter of a loop around them, or are "
            "known only at run time: write [MaxIters(n)] instead of [ForceUnroll] on such an inner loop, with n as large as its most trips"
        )
    _refused[key] = text
    cache.write(_KIND, key, {"reason": "refused", "text": text})
    return SlangCompileError(text)


def _limit(reason: str) -> float:
    return {"timeout": config.compile_timeout, "memory": float(config.compile_memory)}.get(reason, 0.0)


def _allows_more(record: dict[str, Any]) -> bool:
    """Whether the limit that stopped the compiler has been raised since; zero is none."""
    limit = _limit(record["reason"])
    return limit != record["limit"] and (limit == 0 or 0 < record["limit"] < limit)


def _error(label: str, record: dict[str, Any], again: bool = False) -> CompilerDiedError:
    text = f"{label}: {record['text']}"
    if again:
        text += " when this kernel was compiled before"
    if record["file"]:
        text += f". The source is kept in {record['file']}"
    if record.get("places"):
        text += ". It may have been this:\n" + "\n".join(record["places"]) + "\n"
        text += "These are faults of the compiler, not of Python; docs/compiler-faults.md has a list"
    elif record["reason"] == "crash":
        text += (
            ". This is a fault of the compiler, not of Python: write the function another way; docs/compiler-faults.md has a list of "
            "what is known to cause it"
        )
    if again:
        text += f". It is not tried again before the source changes; to try now, delete {record['entry']}"
    return CompilerDiedError(text, record["reason"], record["file"])


def _suspects(program: Any) -> list[str]:
    """Places in the sources of a program that the compiler has been seen to crash on, with what to write instead."""
    texts = {name: text for name, text in _sources(program.modules, {}).items() if not name.startswith(LIBRARY)}
    places = [place for name, text in texts.items() for place in libslang.suspects(text, name)]
    return list(dict.fromkeys(places))[:_MOST_PLACES]


def _sources(modules: Iterable[Any], seen: dict[str, str]) -> dict[str, str]:
    """Name -> text of the modules of a program, and of the files that they are made of."""
    for module in modules:
        if module.is_composed:
            _sources(module.source_modules, seen)
            continue
        if module.source is not None:
            seen.setdefault(module.name, module.source)
        for path in module.dependencies:
            if os.path.isfile(path) and Path(path).suffix == ".slang":
                seen.setdefault(path, Path(path).read_text("utf-8", "replace"))
    return seen


def _keep_source(program: Any, label: str, generated: str, why: str) -> str | None:
    """A file with all source of a program, for whoever looks into it."""
    library = LIBRARY
    texts = {} if not generated else {"the generated kernel": generated}
    known = set(texts.values())
    for name, text in _sources(program.modules, {}).items():
        if text not in known and not name.startswith(library):
            texts[name] = text
    try:
        handle, path = tempfile.mkstemp(prefix="slangpy-", suffix=".slang")
        with open(handle, "w", encoding="utf-8") as file:
            file.write(f"// {label}: {why}\n")
            file.writelines(f"\n// ---- {name}\n{text}\n" for name, text in texts.items())
    except OSError as error:
        _log.warning("%s: the source could not be kept: %s", label, error)
        return None
    return path
