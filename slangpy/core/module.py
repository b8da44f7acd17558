"""`Module` by its older path."""

from ..module import Module as Module

__all__ = ["Module"]
