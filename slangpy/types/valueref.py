"""`ValueRef` by its older path."""

from .._native import ValueRef as ValueRef
from ..refs import floatRef as floatRef, intRef as intRef

__all__ = ["ValueRef", "floatRef", "intRef"]
