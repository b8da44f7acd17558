"""Runs each test file in a process of its own, several at a time, device type by device type, and counts the results.

    python tools/run_tests.py --devices cuda,vulkan --jobs 8 --timeout 120 --out build/tests tests/device tests/call

A file that crashes or outlasts its time costs that file alone: it is reported with what it last ran, and its process
has by then printed where each thread stood. Writes `counts.json` and one log per file into the folder given.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path


@dataclass
class Counts:
    """Test cases of one device type, those whose name carries it; and how many others (of any device) passed."""

    passed: int = 0
    skipped: int = 0
    failed: int = 0
    others: int = 0
    names: list[str] = field(default_factory=list)  # of what failed


def test_files(paths: Iterable[str]) -> list[Path]:
    """The files in the order in which they start, none twice: a long one named first does not end last."""
    found: list[Path] = []
    for text in paths:
        path = Path(text)
        found += sorted(path.rglob("test_*.py")) if path.is_dir() else [path]
    return list(dict.fromkeys(found))


def add_report(report: Path, device: str, counts: Counts) -> None:
    """Adds the cases of one JUnit report that take the device."""
    taken = re.compile(rf"\[(.*-)?{device}(-.*)?\]$", re.DOTALL)
    for case in ElementTree.parse(report).iter("testcase"):
        name = case.get("name", "")
        ours = bool(taken.search(name))
        if case.find("failure") is not None or case.find("error") is not None:
            counts.failed += ours
            counts.names.append(f"{case.get('classname')}::{name}")
        elif case.find("skipped") is not None:
            counts.skipped += ours
        else:
            counts.passed += ours
            counts.others += not ours


def run_file(path: Path, device: str, out: Path, timeout: float) -> tuple[Path, str]:
    """Runs one file; gives its report and what went wrong with the process itself ("" if nothing did)."""
    stem = f"{device}-{path.parent.name}-{path.stem}"
    report, log = out / f"{stem}.xml", out / f"{stem}.log"
    command = [sys.executable, "-X", "faulthandler", "-m", "pytest", "-v", "-p", "no:cacheprovider"]
    command += ["-o", f"faulthandler_timeout={max(timeout / 2, 10)}", f"--junitxml={report}", str(path)]
    with log.open("wb") as stream:
        child = subprocess.Popen(
            command, stdout=stream, stderr=subprocess.STDOUT, env={**os.environ, "SLANGPY_TEST_DEVICES": device}
        )
        try:
            code = child.wait(timeout)
        except subprocess.TimeoutExpired:
            child.send_signal(signal.SIGABRT)  # its fault handler prints all stacks
            try:
                child.wait(5)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
            code = None
    if report.exists():
        return report, ""
    lines = [line for line in log.read_text(errors="replace").splitlines() if "::" in line]
    last = lines[-1] if lines else "nothing"
    return report, f"{'outlasted its time' if code is None else f'ended with {code}'} after: {last}"


def run_device(paths: list[Path], device: str, out: Path, options: argparse.Namespace) -> tuple[Counts, list[str]]:
    counts, broken = Counts(), []

    def run(path: Path) -> tuple[Path, Path, str]:
        return path, *run_file(path, device, out, options.timeout)

    with ThreadPoolExecutor(options.jobs) as pool:
        results = list(pool.map(run, [path for path in paths if path.name not in options.alone]))
    results += map(run, [path for path in paths if path.name in options.alone])
    for path, report, problem in results:
        if problem:
            broken.append(f"{path} [{device}] {problem}")
        else:
            add_report(report, device, counts)
    return counts, broken


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tests", nargs="+", help="files, or folders to search")
    parser.add_argument("--devices", required=True, help="device types, by comma")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--alone", nargs="*", default=[], help="names of files beside which no other may run")
    parser.add_argument("--timeout", type=float, default=180.0, help="seconds for one file")
    parser.add_argument("--out", type=Path, default=Path("build/tests"))
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    out = options.out.resolve()
    summary, bad = {}, False
    for device in options.devices.split(","):
        start = time.monotonic()
        counts, broken = run_device(test_files(options.tests), device, out, options)
        summary[device] = {**asdict(counts), "broken": broken}
        bad = bad or bool(broken) or bool(counts.names)
        for name in counts.names:
            print(f"FAILED {name}")
        for line in broken:
            print(f"BROKEN {line}")
        seconds, elsewhere = round(time.monotonic() - start), len(counts.names) - counts.failed
        print(
            f"{device}: {counts.passed} passed, {counts.skipped} skipped, {counts.failed} failed; without a device "
            f"{counts.others} passed, {elsewhere} failed; {len(broken)} files broken; {seconds} s"
        )
    (out / "counts.json").write_text(json.dumps(summary, indent=1))
    return int(bad)


if __name__ == "__main__":
    raise SystemExit(main())
