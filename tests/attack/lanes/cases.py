"""Cases of other families, which run with lanes and without."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from ..cases import Case as GradientCase
from ..family import Family
from ..forward.cases import Case as ForwardCase
from ..nodes import Program


@dataclass
class LaneCase:
    """lanes, loops: how many programs were computed for many elements at once, and had loops that lanes leave one by one."""

    inner: ForwardCase | GradientCase
    lanes: int = 0
    loops: int = 0

    @property
    def seed(self) -> int:
        return self.inner.seed

    @property
    def programs(self) -> list[Any]:
        return self.inner.programs

    @property
    def count(self) -> int:
        return self.inner.count

    def made(self) -> dict[str, str]:
        return self.inner.made()

    def counts(self) -> dict[str, int]:
        return {"lanes": self.lanes, "loops": self.loops}


def lane_family(of: Family, draw: Callable[[int, int, frozenset[str], str], LaneCase]) -> Family:
    def part(case: LaneCase, places: list[int]) -> LaneCase:
        return LaneCase(of.part(case.inner, places))

    def again(case: LaneCase, programs: list[Program]) -> LaneCase:
        return LaneCase(of.again(case.inner, programs))

    def text(case: LaneCase, programs: list[Program]) -> str:
        return of.text(case.inner, programs)

    return replace(of, worker=f"{__package__}.compare", draw=draw, part=part, again=again, text=text, stages=lambda case: ())
