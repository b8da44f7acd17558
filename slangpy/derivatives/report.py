"""What a gradient check found."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass, field

SHOWN = 12


@dataclass(frozen=True)
class Row:
    """One derivative: of sum(weight * output) by one number of an argument, or along one direction."""

    argument: str
    index: str
    bwds: float
    fwds: float | None
    """None where forward mode is not available."""
    numeric: float
    uncertainty: float
    """Of `numeric`, as far as it can be told from different steps."""
    error: float
    """The larger deviation of `bwds` and `fwds` from `numeric`, relative to the larger magnitude."""
    state: str
    """ "ok", "wrong", or "unsure": the deviation is within three times the uncertainty, but not within the tolerance."""
    wrong: tuple[str, ...] = ()
    """Which of "bwds" and "fwds" deviate."""

    @property
    def name(self) -> str:
        return self.argument + self.index


@dataclass
class GradientReport:
    """The result of `check_gradients`. True where no derivative is wrong; printed, it shows the worst."""

    function: str
    table: list[Row] = field(default_factory=list)
    """All derivatives that were compared, the worst first."""
    notes: list[str] = field(default_factory=list)
    """What was not compared, and what the cause of a deviation was found to be."""
    rtol: float = 0.0
    evaluations: int = 0

    @property
    def ok(self) -> bool:
        """Whether nothing deviates."""
        return not self.wrong

    @property
    def wrong(self) -> list[Row]:
        """The rows that deviate."""
        return [row for row in self.table if row.state == "wrong"]

    @property
    def unsure(self) -> list[Row]:
        """The rows of which the finite differences are too rough to tell."""
        return [row for row in self.table if row.state == "unsure"]

    def __bool__(self) -> bool:
        return self.ok

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"

    def __str__(self) -> str:
        wrong, unsure = len(self.wrong), len(self.unsure)
        head = f"{self.function}: {len(self.table)} derivatives, {wrong} wrong"
        if unsure:
            head += f", {unsure} unsure (differences too rough)"
        lines = [f"{head}; tolerance {self.rtol:g}"]
        shown = self.table[: max(SHOWN, min(wrong, 2 * SHOWN))]
        if shown:
            lines += _format([("argument", "bwds", "fwds", "numeric", "error", ""), *map(_cells, shown)])
        if len(self.table) > len(shown):
            lines.append(f"... and {len(self.table) - len(shown)} with smaller errors")
        return "\n".join(lines + [f"- {note}" for note in self.notes])

    __repr__ = __str__


def _cells(row: Row) -> tuple[str, ...]:
    fwds = "-" if row.fwds is None else f"{row.fwds:.7g}"
    state = "" if row.state == "ok" else f"{row.state} {'+'.join(row.wrong)}".strip()
    return row.name, f"{row.bwds:.7g}", fwds, f"{row.numeric:.7g}", f"{row.error:.1e}", state


def _format(rows: Sequence[tuple[str, ...]]) -> list[str]:
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


class GradientError(AssertionError):
    """`check_gradients` found a wrong derivative; `report` has the details."""

    def __init__(self, report: GradientReport) -> None:
        super().__init__(str(report))
        self.report = report


__all__ = ["GradientError", "GradientReport", "Row"]
