"""`DiffPair` by its older path."""

from .._native import DiffPair as DiffPair
from ..refs import diffPair as diffPair, floatDiffPair as floatDiffPair

__all__ = ["DiffPair", "diffPair", "floatDiffPair"]
