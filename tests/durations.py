"""How long the tests take: measured by a run, kept as data, and the order of the next run.

    SLANGPY_TEST_DURATIONS=build/durations.json pytest    # conftest.py takes this module as a plugin
    python tests/durations.py show build/durations.json   # the costliest files, device by device
    python tests/durations.py keep build/durations.json   # into tests/durations.json, which orders the next run

Seconds are those of the clock, for setup, test and teardown together, with as many processes as the run had. `machine` says how
fast the machine was: seconds for ten million turns of an empty Python loop before the first test; and what each tier took.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest

KEPT = Path(__file__).with_name("durations.json")
TIERS = ("each", "null", "one")
"""A test that says `one` itself may be of another tier, so that comes last."""
LONG = 2.0
"""Seconds from which a test is kept by name."""
UNKNOWN = 0.15
"""Seconds for each test of a file that no run has measured yet."""
DEVICE = re.compile(r"\[(?:.*-)?(null|cpu|vulkan|cuda|d3d12)(?:-.*)?\]$", re.DOTALL)


def speed() -> float:
    """Seconds for ten million turns of an empty loop."""
    start = time.perf_counter()
    for _ in range(10_000_000):
        pass
    return time.perf_counter() - start


class Recorder:
    """A pytest plugin of the process that reports: adds up the phases of each test, and writes them at the end."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.tiers: dict[str, float] = dict.fromkeys(TIERS, 0.0)
        self.speed = speed()
        self.start = time.perf_counter()

    def pytest_runtest_logreport(self, report: Any) -> None:
        """One phase of one test has ended, here or in a process of pytest-xdist."""
        self.seconds[report.nodeid] += report.duration
        tier = next((name for name in TIERS if name in report.keywords), None)  # conftest.py marks each test
        if tier is not None:
            self.tiers[tier] += report.duration

    def pytest_sessionfinish(self) -> None:
        """Writes all that ran."""
        machine = {
            "loop_s": round(self.speed, 3),
            "cores": os.cpu_count(),
            "run_s": round(time.perf_counter() - self.start, 1),
            "tiers_s": {tier: round(spent) for tier, spent in self.tiers.items()},
        }
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text(json.dumps(summary(self.seconds, machine), indent=1) + "\n")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Several processes take the longest files first, as the kept record says: a long one at the end would keep one process
    busy while the others have nothing to do. (xdist's own order, which goes by the number of tests alone, is
    switched off by --no-loadscope-reorder.)"""
    if not os.environ.get("PYTEST_XDIST_WORKER"):
        return
    known = kept_seconds()
    tests_of = Counter(item.path for item in items)
    seconds = {
        path: known.get(path.relative_to(config.rootpath).as_posix(), UNKNOWN * tests)
        for path, tests in tests_of.items()
    }
    items.sort(key=lambda item: (-seconds[item.path], item.path))


def summary(seconds: dict[str, float], machine: dict[str, Any]) -> dict[str, Any]:
    """The record of a run: files with their seconds by device ("any" where a test names none), and each test."""
    files: dict[str, dict[str, float]] = {}
    for name, spent in seconds.items():
        path, found = name.partition("::")[0], DEVICE.search(name)
        row = files.setdefault(path, {})
        device = found[1] if found else "any"
        row[device] = row.get(device, 0.0) + spent
    costliest = sorted(files, key=lambda path: -sum(files[path].values()))
    return {
        "machine": machine,
        "files": {
            path: {device: round(spent, 2) for device, spent in sorted(files[path].items())} for path in costliest
        },
        "tests": {name: round(spent, 3) for name, spent in sorted(seconds.items(), key=lambda item: -item[1])},
    }


def keep(record: dict[str, Any]) -> None:
    """Puts a run's record in place of the kept one, without the tests that are short."""
    long = {name: spent for name, spent in record["tests"].items() if spent >= LONG}
    files, tests = (
        ",\n".join(f"{json.dumps(name)}: {json.dumps(value)}" for name, value in rows.items())
        for rows in (record["files"], long)
    )
    KEPT.write_text(
        f'{{"machine": {json.dumps(record["machine"])},\n"files": {{\n{files}\n}},\n"tests": {{\n{tests}\n}}}}\n'
    )


def kept_seconds() -> dict[str, float]:
    """Seconds of each file, by its path below the repository, as the last kept run had them."""
    if not KEPT.exists():
        return {}
    return {path: sum(row.values()) for path, row in json.loads(KEPT.read_text())["files"].items()}


def show(record: dict[str, Any], top: int) -> None:
    """Prints the costliest files, and what each device took."""
    totals: defaultdict[str, float] = defaultdict(float)
    for row in record["files"].values():
        for device, spent in row.items():
            totals[device] += spent
    print("machine", record["machine"])
    print(
        "all    ",
        {device: round(spent) for device, spent in sorted(totals.items())},
        "sum",
        round(sum(totals.values())),
    )
    for path, row in list(record["files"].items())[:top]:
        print(f"{sum(row.values()):8.1f}  {path}  {row}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("show", "keep"))
    parser.add_argument("record", type=Path)
    parser.add_argument("--top", type=int, default=40)
    given = parser.parse_args()
    record = json.loads(given.record.read_text())
    if given.what == "keep":
        keep(record)
    else:
        show(record, given.top)


if __name__ == "__main__":
    main()
