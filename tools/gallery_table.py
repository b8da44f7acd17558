"""Writes what the pictures of docs/gallery.md took, between its markers, from benchmarks/results/gallery.json.

python tools/gallery_table.py
"""

from __future__ import annotations

import json
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "gallery.md"
RUN = ROOT / "benchmarks" / "results" / "gallery.json"
BEGIN, END = "<!-- times: written by tools/gallery_table.py -->", "<!-- end of times -->"
HEAD = ["| picture | made by | processor time |", "|---|---|---|"]


def with_table(text: str) -> str:
    """The page with the times of the stored run."""
    programs = json.loads(RUN.read_text("utf-8"))["programs"]
    rows = [f"| {name} | `{run['command']}` | {run['processor_seconds']:g} s |" for name, run in programs.items()]
    before, rest = text.split(BEGIN, 1)
    after = rest.split(END, 1)[1]
    return before + "\n".join([f"{BEGIN}\n", *HEAD, *rows, f"\n{END}"]) + after


if __name__ == "__main__":
    PAGE.write_text(with_table(PAGE.read_text("utf-8")), "utf-8")
