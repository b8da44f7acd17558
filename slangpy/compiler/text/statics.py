"""Variables of threads in C++ code of kernels, of which one thread runs many invocations.

Slang makes them fields of a local variable of the entry point. Generated kernels say where the fields have their first values,
and where an invocation begins (plan/emit/library.py).
"""

from __future__ import annotations

import re

_KEEP = b"_spy_keep_statics();"
_RESET = b"_spy_reset_statics();"
_CONTEXT = re.compile(rb"^    (KernelContext_\d+) (kernelContext_\d+);$", re.MULTILINE)


def with_statics(code: bytes) -> bytes:
    """Code in which each invocation begins with the first values. Those that Slang gives none are 0."""
    if _KEEP not in code:
        return code
    context = _CONTEXT.search(code)
    if context is None:  # the kernel reaches none
        return code.replace(_KEEP, b"").replace(_RESET, b"")
    kind, name = context.groups()
    code = code[: context.start()] + b"    %s %s = {};" % (kind, name) + code[context.end() :]
    return code.replace(_KEEP, b"const %s _spy_first = %s;" % (kind, name)).replace(_RESET, b"%s = _spy_first;" % name)


__all__ = ["with_statics"]
