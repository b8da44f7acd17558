"""Arguments in C++ code of kernels, which the entry point gets by their address.

Any store could change what lies there, so that a C++ compiler would read all of it again after each. A copy that has no address
cannot change: types do not have to tell what stores may change (strict aliasing), which they could not where one buffer has two
element types.
"""

from __future__ import annotations

import re

_ENTRY = re.compile(
    rb"^(?:static )?void (\w+)\(void\* \w+, void\* (entryPointParams_\d+), void\* \w+\)\n\{\n", re.MULTILINE
)
_ARGUMENT = re.compile(rb"\(slang_bit_cast<(EntryPointParams_\d+)\*>\((entryPointParams_\d+)\)\)->")

_LARGE_FOR_A_CALL, _LARGE_FOR_A_THREAD = 4096, 256
"""Bytes of arguments that are not copied: for each block of a call, or for each thread of a kernel."""


def with_local_arguments(code: bytes) -> bytes:
    """Code whose entry point has its arguments in a variable."""
    entry = _ENTRY.search(code)
    used = _ARGUMENT.search(code, entry.end()) if entry else None
    if entry is None or used is None or used[2] != entry[2]:
        return code
    large = _LARGE_FOR_A_CALL if entry[1] == b"__spy_main" else _LARGE_FOR_A_THREAD
    copied = b"    _spy_Arguments<%(type)s, (sizeof(%(type)s) > %(large)d)>::type _spy_arguments = *slang_bit_cast<%(type)s*>(%(from)s);\n"
    copied %= {b"type": used[1], b"large": large, b"from": used[2]}
    return code[: entry.end()] + copied + code[entry.end() :].replace(used[0], b"_spy_arguments.")


__all__ = ["with_local_arguments"]
