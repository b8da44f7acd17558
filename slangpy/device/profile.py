"""`with device.profile() as p`: what the device ran meanwhile, and how long it took."""

from __future__ import annotations

import html
import json
from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from slangpy import _native

from ..base.own_names import own_names

if TYPE_CHECKING:
    from typing_extensions import Self

    from slangpy.device.device import Device


class ProfileEvent(NamedTuple):
    """One launch or copy."""

    name: str
    """Label of the kernel, as "module::function"; of a copy, the encoder's method."""
    start: float
    """Seconds after the first event began."""
    duration: float
    """Seconds, by the device's clock."""
    shape: tuple[int, ...]
    """Of the call; of a raw dispatch its threads, of a copy its bytes or texels. Empty for indirect dispatches."""


@dataclass(frozen=True)
class ProfileRow:
    """All launches of one name; times in seconds."""

    name: str
    launches: int
    total: float
    min: float
    max: float
    share: float
    """Of the total of all names; 0 where that is 0."""

    @property
    def mean(self) -> float:
        """Seconds of a launch, on average."""
        return self.total / self.launches


_COLUMNS = ("function", "launches", "total", "mean", "min", "max", "share")


@own_names
class Profile:
    """Times of what a device ran in the block of `with device.profile() as p:`, for reading after its end.

    Each launch and copy stands between two timestamps of the device: CUDA events, timestamps of Vulkan and D3D12, the
    host's clock on the CPU device. Where the work of several threads or streams overlaps, so do its times.
    """

    def __init__(self, device: Device) -> None:
        self._device = device
        info = device.info
        self._kind, self._adapter = info.type.name, info.adapter_name
        self._first: int | None = None
        self._events: tuple[ProfileEvent, ...] | None = None
        self._lost = 0

    # --- measuring

    def __enter__(self) -> Self:
        if self._first is not None or self._events is not None:
            raise RuntimeError("profile: this one has been used; each device.profile() measures one block")
        self._first = self._device._start_profile()
        self._device._state.profiles.append(self)
        return self

    def __exit__(self, kind: type[BaseException] | None, *args: Any) -> None:
        try:
            self._finish()
        except Exception:
            if kind is None:  # else the block's own exception says more
                raise

    def _finish(self) -> None:
        """Waits for the device and takes what was measured. A second call does nothing."""
        first, self._first = self._first, None
        if first is None:
            return
        profiles = self._device._state.profiles
        if self in profiles:
            profiles.remove(self)
        read = False
        events: list[Any] = []
        try:
            if not self._device.is_closed:
                _native.Device.wait(self._device)
                read = True
        finally:
            try:
                events, self._lost = self._device._stop_profile(first, read)
            finally:
                self._events = tuple(ProfileEvent(*event) for event in events)

    # --- what was measured

    @property
    def events(self) -> tuple[ProfileEvent, ...]:
        """In the order in which they began. RuntimeError before the end of the block."""
        if self._events is None:
            raise RuntimeError(
                "profile: nothing was measured yet; read it after the end of `with device.profile() as p:`"
            )
        return self._events

    @property
    def rows(self) -> list[ProfileRow]:
        """One for each name, the longest total first."""
        times: dict[str, list[float]] = {}
        for event in self.events:
            times.setdefault(event.name, []).append(event.duration)
        whole = sum(map(sum, times.values()))
        rows = [
            ProfileRow(name, len(own), sum(own), min(own), max(own), sum(own) / whole if whole else 0.0)
            for name, own in times.items()
        ]
        return sorted(rows, key=lambda row: -row.total)

    def _notes(self) -> list[str]:
        total = sum(row.total for row in self.rows)
        notes = [f"{len(self.events)} launches and copies, {_time(total)} on {self._adapter} ({self._kind})"]
        if self._kind == "null":
            notes.append("the null device runs no kernel: their times are zero")
        if self._lost:
            notes.append(f"{self._lost} more could not be measured: the device had no memory for their timestamps")
        return notes

    def table(self) -> str:
        """A line for each name: launches, total, mean, shortest and longest time, share of the total."""
        lines = [_COLUMNS, *map(_cells, self.rows)]
        widths = [max(len(line[i]) for line in lines) for i in range(len(_COLUMNS))]
        notes = self._notes()
        return "\n".join(notes + ["  ".join(_aligned(line, widths)).rstrip() for line in lines])

    def __str__(self) -> str:
        return repr(self) if self._events is None else self.table()

    def __repr__(self) -> str:
        state = "not started" if self._first is None else "measuring"
        return f"Profile({self._kind}, {state if self._events is None else f'{len(self._events)} launches'})"

    def _repr_html_(self) -> str:
        if self._events is None:
            return f"<pre>{html.escape(repr(self))}</pre>"
        head = "".join(f"<th>{name}</th>" for name in _COLUMNS)
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in _cells(row)) + "</tr>" for row in self.rows
        )
        notes = "<br>".join(map(html.escape, self._notes()))
        return f"<p>{notes}</p><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"

    # --- for other programs

    def chrome_trace(self) -> dict[str, Any]:
        """Chrome's trace event format, which Perfetto (ui.perfetto.dev) and chrome://tracing open: complete events ("X"),
        times in microseconds. What overlaps stands in rows of its own."""
        lanes: list[float] = []  # ends of the rows
        events: list[dict[str, Any]] = []
        for event in self.events:
            end = event.start + event.duration
            lane = next((i for i, free in enumerate(lanes) if free <= event.start), len(lanes))
            lanes[lane:] = [end, *lanes[lane + 1 :]]
            events.append({
                "name": event.name, "cat": "device", "ph": "X", "ts": event.start * 1e6, "dur": event.duration * 1e6,
                "pid": 1, "tid": lane + 1, "args": {"shape": list(event.shape)},
            })  # fmt: skip
        names = [_metadata("process_name", 0, f"{self._adapter} ({self._kind})")]
        names += [_metadata("thread_name", lane + 1, f"slangpy {lane + 1}") for lane in range(len(lanes))]
        return {"traceEvents": names + events, "displayTimeUnit": "ns"}

    def save(self, path: str | PathLike[str]) -> None:
        """Writes `chrome_trace()` as JSON."""
        Path(path).write_text(json.dumps(self.chrome_trace()), encoding="utf-8")


def _metadata(kind: str, row: int, name: str) -> dict[str, Any]:
    return {"name": kind, "ph": "M", "pid": 1, "tid": row, "args": {"name": name}}


def _time(seconds: float) -> str:
    return (
        f"{seconds * 1e6:.2f} us"
        if seconds < 1e-3
        else f"{seconds * 1e3:.3f} ms"
        if seconds < 1
        else f"{seconds:.3f} s"
    )


def _cells(row: ProfileRow) -> tuple[str, ...]:
    times = map(_time, (row.total, row.mean, row.min, row.max))
    return (row.name, str(row.launches), *times, f"{row.share:.1%}")


def _aligned(line: Sequence[str], widths: Sequence[int]) -> list[str]:
    return [line[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(line[1:], widths[1:], strict=True))]


__all__ = ["Profile", "ProfileEvent", "ProfileRow"]
