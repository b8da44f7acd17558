"""Enumerations that values and parameters are described with."""

from ..bindings.enums import IOType as IOType
from ..refs import PrimType as PrimType

__all__ = ["IOType", "PrimType"]
