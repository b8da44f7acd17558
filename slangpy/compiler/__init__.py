"""From a linked program to target code."""

from .code import target_code

__all__ = ["target_code"]
