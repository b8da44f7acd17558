"""Writes the table of docs/performance.md, between its markers, from the runs in benchmarks/results.

python tools/performance_table.py
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "performance.md"
RESULTS = ROOT / "benchmarks" / "results"
BEGIN, END = "<!-- figures: written by tools/performance_table.py -->", "<!-- end of figures -->"
HEAD = ["| program | time | of the copy | others, times as long |", "|---|---|---|---|"]


def _run(name: str) -> dict[str, Any]:
    return json.loads((RESULTS / f"{name}.json").read_text("utf-8"))


def _time(microseconds: float) -> str:
    """Three digits, in the unit that fits."""
    return f"{microseconds:.3g} µs" if microseconds < 1000 else f"{microseconds / 1000:.3g} ms"


def _peers(ratios: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {ratio:.2f}" for name, ratio in ratios.items())


def _gpu_rows() -> Iterator[str]:
    run = _run("h200")
    yield f"| **{run['machine']['adapter']}**, {run['count']:,} floats unless said | | | |"
    for figure in run["figures"]:
        share = f"{figure['of_copy']:.2f}" if "of_copy" in figure else ""
        yield f"| {figure['name']} | {_time(figure['seconds']['slangpy'] * 1e6)} | {share} | {_peers(figure['ratios'])} |"


def _slangpy_rows() -> Iterator[str]:
    """Beside shader-slang's package, by the best of each one's runs."""
    run = _run("peer_slangpy")
    yield f"| **beside {run['peer']}**, {run['machine']} | | | |"
    for row in run["microseconds"]:
        ours, theirs = min(row["this package"]), min(row["slangpy 0.43.1"])
        yield f"| {row['program']} | {_time(ours)} | | slangpy 0.43.1 {theirs / ours:.2f} |"


def _cpu_rows() -> Iterator[str]:
    run = _run("cpu")
    yield f"| **CPU device**, {run['machine']} | | | |"
    for row in run["rows"]:
        ratios = {name: took / row["microseconds"] for name, took in row["peers"].items()}
        yield f"| {row['program']} | {_time(row['microseconds'])} | | {_peers(ratios)} |"


def with_table(text: str) -> str:
    """The page with the rows of the runs that are stored."""
    before, rest = text.split(BEGIN, 1)
    after = rest.split(END, 1)[1]
    table = "\n".join([*HEAD, *_gpu_rows(), *_slangpy_rows(), *_cpu_rows()])
    return f"{before}{BEGIN}\n\n{table}\n\n{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(with_table(PAGE.read_text("utf-8")), "utf-8")
