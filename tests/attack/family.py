"""What tells one attack from the other: how cases are drawn, cut up and printed, and which module runs them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from .nodes import Program
from .shrink import Rules


class Case(Protocol):
    """Programs that run in one call, and all that this call needs. It goes to a process of its own as it is."""

    seed: int
    programs: list[Program]

    @property
    def count(self) -> int: ...

    def counts(self) -> dict[str, int]:
        """What is counted of a run, for the record: `masked` are rows that are not compared, after what the family's
        `expected` found."""
        ...

    def made(self) -> dict[str, str]:
        """How the call is made, for the record."""
        ...


@dataclass(frozen=True)
class Family:
    """`worker` names the module that has `begin`, `expected` and `Runner` for its cases."""

    worker: str
    known: frozenset[str]  # constructs that only few batches draw
    draw: Callable[[int, int, frozenset[str], str], Any]  # seed, programs, without, route
    part: Callable[[Any, list[int]], Any]  # some of the programs with the numbers that they had
    again: Callable[[Any, list[Program]], Any]  # other programs, called in the same way
    text: Callable[[Any, list[Program]], str]
    rules: Rules
    lacking: Callable[[str], frozenset[str]] = lambda device: frozenset()  # constructs that a device has not
    stages: Callable[[Any], tuple[str, ...]] = lambda case: ()  # of a long run's case; none: all
