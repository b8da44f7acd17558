"""The errors of planning a call, by their older path."""

from ..errors import KernelGenException as KernelGenException, ResolveException as ResolveException

__all__ = ["KernelGenException", "ResolveException"]
