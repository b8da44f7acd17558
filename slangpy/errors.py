"""Exceptions of slangpy."""

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
    "CompileError",
    "TensorError",
    "SlangWarning",
    "NativeIndexError",
    "NativeTypeError",
    "NativeValueError",
]


class SlangCompileError(RuntimeError):
    """Slang rejected a program; the text holds its diagnostics with file, line and column."""


CompileError = SlangCompileError
"""The name that it has in the loadModule API, where NVRTC and the host's compiler raise it, too."""


class CompilerDiedError(SlangCompileError):
    """The Slang compiler crashed, or was stopped because it took more time or memory than a compile may.

    reason: "crash", "timeout", "memory" or "killed". source_file: where the source that did it was kept, or None.
    """

    def __init__(self, text: str, reason: str = "crash", source_file: str | None = None) -> None:
        super().__init__(text)
        self.reason = reason
        self.source_file = source_file


class NativeValueError(ValueError, RuntimeError):
    """A value that the native layer refused. Programs written for shader-slang/slangpy catch it as a RuntimeError."""


class NativeTypeError(TypeError, RuntimeError):
    """A value of a type that the native layer refused; also a RuntimeError, as above."""


class NativeIndexError(IndexError, RuntimeError):
    """An index that the native layer refused; also a RuntimeError, as above."""


class NativeOverflowError(OverflowError, ValueError, RuntimeError):
    """A number that does not fit where the native layer had to put it: a wrong value, too, and as above."""


PLAIN_ERRORS = (
    ValueError, TypeError, RuntimeError, NotImplementedError, NativeValueError, NativeTypeError, NativeIndexError,
    NativeOverflowError,
)  # fmt: skip
"""Classes that say nothing but what they are: the text may be told again with more in front."""


class NameNotFoundError(KeyError, ValueError, RuntimeError):
    """`cursor["name"]` and the like: there is nothing of that name."""

    __str__ = ValueError.__str__  # KeyError's would quote the text


class CallError(Exception):
    """Base of what a call of a Slang function raises for arguments that do not fit."""


class ResolveException(CallError, ValueError):
    """The arguments match no signature of the function, or more than one."""


class BoundVariableException(CallError, ValueError):
    """A value cannot be an argument, or cannot follow its explicit mapping."""


class UnmappedNone(BoundVariableException, NotImplementedError):
    """`map` was asked to spread None."""


class ShapeError(CallError, ValueError, RuntimeError):
    """Ranks or sizes of arguments do not fit their parameters or each other."""


class KernelGenException(CallError, ValueError):
    """A kernel could not be generated for a call that was resolved."""


class TensorError(RuntimeError):
    """A tensor that cannot be the view that a kernel takes: wrong device, element type, layout, rank or size."""


class SlangWarning(UserWarning):
    """Warnings of the Slang compiler about a module, and kernels of it that cannot be called."""
