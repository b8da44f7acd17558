"""Exceptions of slangpy. `spec/calls.md` section 8 says which failure raises which."""

from __future__ import annotations

__all__ = [
    "CallError",
    "ResolveException",
    "BoundVariableException",
    "ShapeError",
    "KernelGenException",
    "SlangCompileError",
    "NameNotFoundError",
]


class SlangCompileError(RuntimeError):
    """Slang rejected a program; the text holds its diagnostics with file, line and column."""


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
