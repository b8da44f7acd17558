"""Packed arguments, by their older path."""

from typing import Any

from ..packed import pack as pack

__all__ = ["PackedArg", "pack"]


class PackedArg:
    """What `pack` will return; not available yet."""

    def __init__(self, module: Any, python_object: Any) -> None:
        pack(module, python_object)
