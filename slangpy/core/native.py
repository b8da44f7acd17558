"""Names of the native part, by their older path."""

from typing import Any

from .._native import Shape as Shape
from ..bindings.enums import AccessType as AccessType, CallMode as CallMode

__all__ = ["AccessType", "CallMode", "NativeCallRuntimeOptions", "Shape"]


class NativeCallRuntimeOptions:
    """Not available: what a call runs with is stated by modifiers of the function."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        del args, kwargs
        raise NotImplementedError(
            "NativeCallRuntimeOptions is not available; use the function's modifiers: set(), cuda_stream(), append_to()"
        )
