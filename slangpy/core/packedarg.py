"""Packed arguments, by their older path."""

from ..packed import PackedArg as PackedArg, pack as pack

__all__ = ["PackedArg", "pack"]
