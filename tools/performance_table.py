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


FORMS = (
    "numbers", "two Tensors", "NumPy array", "dict", "InstanceList", "map", "view made each time", "texture", "result NumPy", "bwds",
    "prepared", "recorded", "list of 16 Tensors", "list of 64 Tensors", "list of 64 dicts",
)  # fmt: skip


def _form_rows() -> Iterator[str]:
    """One warm call of four elements by form, beside shader-slang's package."""
    run = _run("host_rows_peer")
    rows = {row["row"]: row for row in run["rows"]}
    yield f"| **one warm call by form**, {run['machine']} | | | |"
    for name in FORMS:
        row = rows[name]
        yield f"| {name} | {_time(row['us'])} | | slangpy 0.43.1 {row['ratio']:.2f} |"


def _network_rows() -> Iterator[str]:
    run = next(run for run in _run("networks")["runs"] if run["device"] == "cuda")
    yield f"| **network of 4 layers of 64**, {run['samples']:,} inputs, {run['dtype']}, one H100 | | | |"
    ours = run["milliseconds"]["slangpy.neural"]
    for name, took in ours.items():
        ratios = {peer: times[name] / took for peer, times in run["milliseconds"].items() if peer != "slangpy.neural"}
        yield f"| {name if name == 'forward' else 'forward and backward'} | {_time(1000 * took)} | | {_peers(ratios)} |"


def _ray_rows() -> Iterator[str]:
    run = next(run for run in _run("rays")["runs"] if "CUDA by hand" in run.get("meshes", {}).get("sphere", {}))
    yield f"| **{run['rays']:,} rays, {run['triangles']:,} triangles**, one H100 | | | |"
    for mesh, packages in run["meshes"].items():
        for kind in ("camera", "random", "shadow"):
            took = run["rays"] / packages["slangpy"][kind]
            yield f"| {mesh}, {kind} rays | {_time(took)} | | CUDA by hand {packages['slangpy'][f'{kind}, beside CUDA by hand']:.2f} |"


def _many_gpu_rows() -> Iterator[str]:
    run = _run("many_gpus")["runs"][0]
    yield f"| **training step under DistributedDataParallel**, {run['gpus']} H100 | | | |"
    for row in run["milliseconds"]:
        ours = row["slangpy, together"]
        yield f"| {row['weights']:,} weights a GPU | {_time(1000 * ours)} | | torch {row['torch, together'] / ours:.2f} |"


def with_table(text: str) -> str:
    """The page with the rows of the runs that are stored."""
    before, rest = text.split(BEGIN, 1)
    after = rest.split(END, 1)[1]
    parts = (_gpu_rows, _slangpy_rows, _form_rows, _network_rows, _ray_rows, _many_gpu_rows, _cpu_rows)
    table = "\n".join([*HEAD, *(row for part in parts for row in part())])
    return f"{before}{BEGIN}\n\n{table}\n\n{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(with_table(PAGE.read_text("utf-8")), "utf-8")
