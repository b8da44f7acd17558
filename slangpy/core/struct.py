"""`Struct` by its older path."""

from ..struct import Struct as Struct

__all__ = ["Struct"]
