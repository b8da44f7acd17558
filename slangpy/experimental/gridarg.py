"""`grid` by its older path."""

from ..generators import GridArg as GridArg, grid as grid

__all__ = ["GridArg", "grid"]
