"""Small pieces of Slang text that the writers of kernels share."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache

_SCALAR = r"\b(bool|u?int(?:8_t|16_t|64_t)?|half|float|double)"
_VECTOR = re.compile(rf"\bvector<{_SCALAR}, ?([1-4])>")
_MATRIX = re.compile(rf"\bmatrix<{_SCALAR}, ?([1-4]), ?([1-4])>")
_FILE_SCOPE = re.compile(r"_spy_(?:Call|R|function|[THPX]_\w+)")


def entry_point(inputs: str, extra: str = "", in_memory: bool = False) -> list[str]:
    """The head of a kernel, up to its body. `inputs`: what the device gives it; `extra`: resources beside `_call`.

    in_memory: Direct3D 12, whose constant buffers pad arrays: the arguments lie in memory, laid out as elsewhere.
    """
    if in_memory:
        return [
            f"void _spy_main({inputs}{extra}, ByteAddressBuffer _spy_calls)",
            "{",
            "    _spy_Call _call = _spy_Call._of(_spy_calls);",
        ]
    return [f"void _spy_main({inputs}, uniform _spy_Call _call{extra})", "{"]


def from_memory(in_memory: bool) -> list[str]:
    """What `_spy_Call` has besides its fields where arguments lie in memory: a function that loads them, because Slang
    moves loads that it sees into functions that take arrays, and dies of some."""
    return ["    static _spy_Call _of(ByteAddressBuffer from) { return from.Load<_spy_Call>(0); }"] if in_memory else []


def indent(lines: list[str]) -> list[str]:
    return ["    " + line for line in lines]


def product(sizes: tuple[int, ...]) -> int:
    count = 1
    for size in sizes:
        count *= size
    return count


@cache
def slang_name(full_name: str) -> str:
    """A spelling that means the same type whatever a user's module declares: a global may be called `vector`."""
    short = _MATRIX.sub(r"\1\2x\3", _VECTOR.sub(r"\1\2", full_name))
    return global_name(short)


def global_name(name: str) -> str:
    """Names in Slang text that begin as those of the kernel do, past which `::` looks."""
    return re.sub(r"(?<![\w.:])(?=_\w)", "::", name)


def vector_name(scalar: str, count: int) -> str:
    return slang_name(f"vector<{scalar},{count}>")


def avoid_names(text: str, declared: Iterable[str]) -> str:
    """The kernel's own names outside of functions, renamed where the user's modules declare one of them."""
    if not any(_FILE_SCOPE.fullmatch(name) for name in declared):
        return text
    return re.sub(rf"(?<![\w.:])({_FILE_SCOPE.pattern})\b", r"\1_kernel", text)


def stored_name(full_name: str) -> str:
    """The type that memory holds for an element type. No target computes with BFloat16, and Slang has no C++ for it."""
    return "_spy_BFloat16" if full_name == "BFloat16" else slang_name(full_name)
