"""What each step of building a kernel cost, where a device keeps compilation reports."""

from __future__ import annotations

import time
import weakref
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Built:
    """What one kernel took; all times in seconds, `started` and `ended` in nanoseconds of one clock."""

    label: str
    entry_point: str
    program: weakref.ref[Any] | None
    """None for kernels of functional calls, which their device holds."""
    started: int
    seconds: dict[str, float] = field(default_factory=dict)
    ended: int = 0
    size: int = 0

    def time(self, *steps: str) -> float:
        return sum(self.seconds.get(step, 0.0) for step in steps)

    @property
    def is_cached(self) -> bool:
        return "downstream" not in self.seconds


def report_step(
    device: Any, step: str, label: str, seconds: float, size: int, program: Any = None, entry_point: str = ""
) -> None:  # fmt: skip
    """Called after each step of building a kernel, where compilation reports are enabled; the last one is "pipeline"."""
    reports = device._state.reports
    last = next((report for report in reversed(reports) if report.label == label), None)
    now = time.perf_counter_ns()
    if last is None or last.ended:  # this begins another kernel
        owner = weakref.ref(program) if program is not None else None
        last = Built(label, entry_point or label, owner, now - int(seconds * 1e9))
        reports.append(last)
    last.seconds[step] = last.seconds.get(step, 0.0) + seconds
    if step == "pipeline":
        last.ended = now
    last.size = size or last.size
