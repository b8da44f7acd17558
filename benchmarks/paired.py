"""An older build of this package beside a newer one, on the CPU: instructions of warm calls by form, and times of kernels.

    python benchmarks/paired.py --before FOLDER --now FOLDER [--rounds 9] [--only host,kernels] [--rows list,torch] [--keep FILE.json]

Each folder holds a package that `pip install --no-deps --target FOLDER .` made. Rows of calls are those of host_rows.py, counted
by callgrind. Kernels are the programs of `python -m benchmarks` and those of cpu_divergent.py, on one thread: a process of each
package takes its turn in --rounds rounds, the older first in every other one; after three, others take their places. A time is
processor time of one call, the least of all rounds; `spread` is how far the medians of both halves of the rounds lie apart, the
larger of both packages. What the programs of `python -m benchmarks` computed is compared with NumPy before it is timed. A row
that only one package can run has no ratio. Exit status 1 where a row takes more than 3 % more than before.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
MOST = 1.03
DIVERGENT = ("mandelbrot", "march", "escape", "shade", "iterated.bwds", "walk", "lookup", "newton", "wide", "polynomial", "sines", "gcd")
COUNT, SIZE = 1 << 20, 256
ROUNDS_OF_A_PROCESS = 3
"""Where its memory lies decides up to a third of what some rows take, as long as the process lives."""
BATCH = 0.02
"""Seconds that a row is timed for in a round."""


def with_package(folder: str) -> dict[str, str]:
    """The environment of processes that import the package in `folder`."""
    return {**os.environ, "PYTHONPATH": str(Path(folder).resolve())}


# --- kernels: one process of each package


def kernels() -> dict[str, Callable[[], Callable[[], Any]]]:
    """By name: what gives a call that was made once, and computed what NumPy does."""
    sys.path.append(str(HERE.parent))  # behind the package that is measured
    import cpu_divergent
    import numpy as np

    import slangpy as spy
    from benchmarks.programs import Bench, Program, programs
    from slangpy.config import config

    config.cpu_threads = 1
    bench = Bench(spy.create_device(type=spy.DeviceType.cpu), None, None, COUNT, np.random.default_rng(1))
    y, x = np.meshgrid(np.linspace(-1.5, 1.5, SIZE), np.linspace(-2, 1, SIZE), indexing="ij")
    points = np.stack([x.ravel(), y.ravel()], -1).astype(np.float32)

    def checked(make: Callable[[Bench], Program]) -> Callable[[], Any]:
        program = make(bench)
        program.calls["slangpy"]()
        error = program.check()
        assert error <= program.tolerance, f"error {error}"
        return program.calls["slangpy"]

    def divergent(name: str) -> Callable[[], Any]:
        return cpu_divergent.ours(spy.DeviceType.cpu, points, {name: cpu_divergent.STEPS[name]})[name]

    found = {name: partial(checked, make) for name, make in programs(bench).items()}
    return {**found, **{f"divergent, {name}": partial(divergent, name) for name in DIVERGENT}}


def child() -> None:
    """Answers each name on a line with the seconds of one call, or what went wrong."""
    rows = kernels()
    calls: dict[str, tuple[Callable[[], Any], int]] = {}
    print(json.dumps(list(rows)), flush=True)
    for line in sys.stdin:
        name = line.rstrip("\n")
        try:
            if name not in calls:
                call = rows[name]()
                begun = time.process_time()
                call()
                calls[name] = call, max(1, round(BATCH / max(time.process_time() - begun, 1e-6)))
            call, count = calls[name]
            begun = time.process_time()
            for _ in range(count):
                call()
            answer: Any = (time.process_time() - begun) / count
        except Exception as problem:  # the other rows are wanted all the same
            answer = f"{type(problem).__name__}: {problem}"[:200]
        print(json.dumps(answer), flush=True)


class Side:
    """A process with one of the packages."""

    def __init__(self, folder: str) -> None:
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self.process = subprocess.Popen([sys.executable, __file__, "--child"], env=with_package(folder), text=True, **pipes)
        self.names: list[str] = self._answer()

    def _answer(self) -> Any:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"a process of the kernels ended with {self.process.wait()}")
        return json.loads(line)

    def ask(self, name: str) -> float | str:
        assert self.process.stdin is not None
        self.process.stdin.write(name + "\n")
        self.process.stdin.flush()
        return self._answer()

    def end(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def timed_kernels(before: str, now: str, rounds: int, wanted: list[str]) -> list[dict[str, Any]]:
    times: dict[str, dict[str, list[Any]]] = {}
    sides: dict[str, Side] = {}
    for number in range(rounds):
        if number % ROUNDS_OF_A_PROCESS == 0:
            for side in sides.values():
                side.end()
            sides = {"before": Side(before), "now": Side(now)}
        names = [name for name in sides["now"].names if name in sides["before"].names and any(part in name for part in wanted)]
        for name in names:
            row = times.setdefault(name, {"before": [], "now": []})
            for side in ("before", "now") if number % 2 == 0 else ("now", "before"):
                row[side].append(sides[side].ask(name))
        print(f"# round {number + 1} of {rounds}", file=sys.stderr, flush=True)
    for side in sides.values():
        side.end()
    return [row_of(name, found) for name, found in times.items()]


def row_of(name: str, found: dict[str, list[Any]]) -> dict[str, Any]:
    row: dict[str, Any] = {"row": name}
    for side, times in found.items():
        problems = [t for t in times if isinstance(t, str)]
        row[side] = None if problems else round(1e6 * min(times), 2)
        if problems:
            row[f"{side} failed"] = problems[0]
    if row["before"] and row["now"]:
        row["ratio"] = round(row["now"] / row["before"], 3)
        row["spread"] = round(max(spread(times) for times in found.values()), 3)
    return row


def spread(times: list[float]) -> float:
    if len(times) < 2:
        return 0.0
    halves = [statistics.median(times[start::2]) for start in (0, 1)]
    return abs(halves[0] - halves[1]) / min(halves)


# --- calls: callgrind


def counted(package: str, only: str, calls: int) -> dict[str, int]:
    """By row: of the package in a folder, or as `host_rows.py --keep` wrote them into a file."""
    if package.endswith(".json"):
        return json.loads(Path(package).read_text())["instructions a call"]
    print(f"# calls of the package in {package}", file=sys.stderr, flush=True)
    with tempfile.TemporaryDirectory() as folder:
        kept = Path(folder, "rows.json")
        command = [sys.executable, str(HERE / "host_rows.py"), "--only", only, "--calls", str(calls), "--keep", str(kept)]
        subprocess.run(command, env=with_package(package), check=True, stdout=subprocess.DEVNULL)
        return counted(str(kept), only, calls)


def counted_calls(before: str, now: str, only: str, calls: int) -> list[dict[str, Any]]:
    old, new = (counted(package, only, calls) for package in (before, now))
    return [
        {"row": name, "before": old.get(name), "now": cost, **({"ratio": round(cost / old[name], 3)} if name in old else {})}
        for name, cost in new.items()
    ]  # fmt: skip


# --- all of it


def show(title: str, rows: list[dict[str, Any]], unit: str) -> list[str]:
    """Prints a table; gives the rows that are slower."""
    print(f"{title:40}{'before':>12}{'now':>12}  now/before   ({unit})")
    for row in rows:
        numbers = "".join(f"{row[side]:12.1f}" if row[side] is not None else f"{'-':>12}" for side in ("before", "now"))
        noise = f"  spread {row['spread']:.3f}" if "spread" in row else ""
        print(f"{row['row']:40}{numbers}  {row.get('ratio', float('nan')):8.3f}{noise}")
        print(*(f"    {side}: {row[f'{side} failed']}\n" for side in ("before", "now") if f"{side} failed" in row), sep="", end="")
    return [f"{row['row']} {row['ratio']:.3f}" for row in rows if row.get("ratio", 0) > MOST]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", help="folder with the older package; of calls, also a file of host_rows.py --keep")
    parser.add_argument("--now", help="the same of the newer package")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--calls", type=int, default=200, help="calls that are counted of each row")
    parser.add_argument("--only", default="host,kernels", help="host, kernels or both")
    parser.add_argument("--rows", default="", help="parts of names of rows, with commas between them")
    parser.add_argument("--names", default="before,now", help="what --keep calls the two, as names of commits")
    parser.add_argument("--keep", type=Path, help="where the rows go as JSON")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child()
        return
    if not options.before or not options.now:
        parser.error("--before and --now are needed: folders made by `pip install --no-deps --target FOLDER .`")
    slower, kept = [], {}
    if "host" in options.only.split(","):
        kept["instructions a call"] = counted_calls(options.before, options.now, options.rows, options.calls)
        slower += show("call", kept["instructions a call"], "instructions")
    if "kernels" in options.only.split(","):
        kept["kernels"] = timed_kernels(options.before, options.now, options.rounds, options.rows.split(","))
        slower += show("kernel", kept["kernels"], "us of processor time, one thread")
    print(f"more than {MOST - 1:.0%} above before: {', '.join(slower) or 'none'}")
    if options.keep:
        before = json.loads(options.keep.read_text()) if options.keep.exists() else {}
        names = dict(zip(("before", "now"), options.names.split(","), strict=True))
        about = {"script": "python benchmarks/paired.py", "builds": names, "rounds": options.rounds, "elements": COUNT}
        options.keep.write_text(json.dumps({**before, **about, **kept}, indent=1) + "\n")
    sys.exit(1 if slower else 0)


if __name__ == "__main__":
    main()
