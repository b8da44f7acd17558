"""Exceptions of slangpy. `spec/calls.md` section 8 says which failure raises which."""

from __future__ import annotations

__all__ = [
    "CallError",
    "ResolveException",
    "BoundVariableException",
    "ShapeError",
    "KernelGenException",
    "SlangCompileError",
    "CompilerDiedError",
    "NameNotFoundError",
]


class SlangCompileError(RuntimeError):
    """Slang rejected a program; the text holds its diagnostics with file, line and column."""


class CompilerDiedError(SlangCompileError):
    """The Slang compiler crashed, or was stopped because it took more time or memory than a compile may.

    reason: "crash", "timeout", "memory" or "killed". source_file: where the source that did it was kept, or None.
    """

    def __init__(self, text: str, reason: str = "crash", source_file: str | None = None) -> None:
        super().__init__(text)
        self.reason = reason
        self.source_file = source_file


class NameNotFoundError(KeyError, ValueError):
    """`cursor["name"]` and the like: there is nothing of that name."""

    __str__ = ValueError.__str__  # KeyError's would quote the text


class CallError(Exception):
    """Base of what a call of a Slang function raises for arguments that do not fit."""


class ResolveException(CallError, ValueError):
    """The arguments match no signature of the function, or more than one."""


class BoundVariableException(CallError, ValueError):
    """A value cannot be an argument, or cannot follow its explicit mapping."""


class ShapeError(CallError, ValueError, RuntimeError):
    """Ranks or sizes of arguments do not fit their parameters or each other."""


class KernelGenException(CallError, ValueError):
    """A kernel could not be generated for a call that was resolved."""
