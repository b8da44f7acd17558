"""Paths of values: `a.b[1].c`, with `[*]` for all entries of a list."""

from __future__ import annotations


def steps_of(path: str) -> list[str]:
    """`.b[1].c` as "b", "[1]", "c"."""
    return [step for step in path.replace("[", ".[").split(".") if step]
