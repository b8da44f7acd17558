"""Plants faults one at a time, runs the tests that should see each, and prints which survive.

    python tools/seeded_faults.py --check                       every fault still fits the sources (a test of the gate, too)
    python tools/seeded_faults.py --out build/faults.json       all, as the gate runs the tests; goes on where it stopped
    python tools/seeded_faults.py --everywhere --only NAME      one, with every test on every device
    python tools/seeded_faults.py --jobs 8                      eight at a time, each with two processes and a build of its own

Works on copies of the sources in build/faults, built with -O1; takes the Python that runs it, which needs what the tests need.
After a change of the suite, no fault may survive that was caught before.
"""

from __future__ import annotations

import argparse
import json
import os
import queue
import re
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path

from seeded_faults_table import FAULTS, Fault

ROOT = Path(__file__).resolve().parent.parent
FAILED = re.compile("(FAILED|ERROR) ")


def misfits(root: Path) -> list[str]:
    """Faults whose text does not stand exactly once in its file."""
    found = []
    for fault in FAULTS:
        path = root / fault.file
        number = path.read_text(encoding="utf-8").count(fault.old) if path.exists() else 0
        if number != 1 or fault.old == fault.new:
            found.append(f"{fault.name}: {number} times in {fault.file}")
        found += [f"{fault.name}: no {test}" for test in fault.tests if not (root / "tests" / test).exists()]
    return found


class Copy:
    """A copy of the sources with a build of its own, in which one fault at a time stands."""

    def __init__(self, number: int) -> None:
        self.path = ROOT / "build" / "faults" / str(number)

    def prepare(self) -> None:
        """Takes the sources as they stand, and builds them. What did not change is not built again."""
        self.path.mkdir(parents=True, exist_ok=True)
        for old in [file for file in self.path.rglob("*.py") if "build" not in file.relative_to(self.path).parts]:
            old.unlink()  # what was taken out since
        left_out = shutil.ignore_patterns("build", ".*cache*", ".git", ".venv*", "__pycache__", "*.so")
        shutil.copytree(ROOT, self.path, ignore=left_out, symlinks=True, dirs_exist_ok=True)
        options = ["-DSPY_DEVELOP=ON", "-DCMAKE_BUILD_TYPE=None", "-DCMAKE_CXX_FLAGS=-O1"]
        options += ["-DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON", f"-DPython_EXECUTABLE={sys.executable}"]
        launcher = shutil.which("ccache")
        options += [f"-DCMAKE_CXX_COMPILER_LAUNCHER={launcher}"] if launcher else []
        configure = ["cmake", "-G", "Ninja", "-S", ".", "-B", "build/dev", *options]
        subprocess.run(configure, cwd=self.path, check=True, stdout=subprocess.DEVNULL)
        if not self.build():
            raise SystemExit("the sources do not build without a fault")

    def build(self) -> bool:
        command = ["ninja", "-C", "build/dev"]
        done = subprocess.run(command, cwd=self.path, capture_output=True, text=True, check=False)
        if done.returncode:
            print(done.stdout[-2000:], file=sys.stderr)
        return done.returncode == 0

    def run(self, fault: Fault, everywhere: bool, left_out: Iterable[str]) -> dict[str, object]:
        """Plants one fault and runs its tests until one fails."""
        path, start = self.path / fault.file, time.perf_counter()
        original = path.read_text(encoding="utf-8")
        path.write_text(original.replace(fault.old, fault.new), encoding="utf-8")
        seen = "does not build"
        try:
            if not fault.is_native or self.build():
                options = ["-x", "-n", "2", *(f"--deselect={name}" for name in left_out)]
                seen = next(iter(self.failures(fault.tests, everywhere, options)), "")
        finally:
            path.write_text(original, encoding="utf-8")
            if fault.is_native:
                self.build()
        seconds = round(time.perf_counter() - start, 1)
        return {"name": fault.name, "area": fault.area, "seen_by": seen, "seconds": seconds}

    def failures(self, tests: Iterable[str], everywhere: bool, options: Iterable[str]) -> list[str]:
        """The tests that fail, as pytest names them; none where all pass."""
        cache = self.path / "build" / "cache"
        shutil.rmtree(cache, ignore_errors=True)
        environment = {
            **os.environ,
            "PYTHONPATH": str(self.path),
            "SLANGPY_CACHE_DIR": str(cache),
            "PYTHONDONTWRITEBYTECODE": "1",
            "SLANGPY_TEST_ALL": "1" if everywhere else "0",
        }
        environment.setdefault("SLANGPY_TEST_DEVICES", "null,cpu,vulkan")
        command = [sys.executable, "-m", "pytest", "-q", "--dist", "loadfile", "-p", "no:cacheprovider", *options]
        command += [f"tests/{test}" for test in tests]
        done = subprocess.run(command, cwd=self.path, env=environment, capture_output=True, text=True, check=False)
        failed = [line.split(" ", 1)[1].split(" - ")[0] for line in done.stdout.splitlines() if FAILED.match(line)]
        return failed or ([f"exit code {done.returncode}"] if done.returncode else [])


@dataclass
class Results:
    """What is known so far, kept in a file."""

    path: Path
    without: list[str] | None = None  # tests that fail on this machine without a fault: they prove nothing
    records: list[dict[str, object]] = field(default_factory=list)

    @classmethod
    def load(cls, path: Path) -> Results:
        return cls(path, **json.loads(path.read_text())) if path.exists() else cls(path)

    def keep(self) -> None:
        self.path.write_text(json.dumps({"without": self.without, "records": self.records}, indent=1) + "\n")


def table(records: list[dict[str, object]]) -> str:
    """Counts by area, and the survivors by name."""
    lines = []
    for area, number in Counter(str(record["area"]) for record in records).items():
        caught = sum(bool(r["seen_by"]) for r in records if r["area"] == area)
        lines.append(f"{area:12} {caught:3} of {number:3} caught")
    survivors = [str(r["name"]) for r in records if not r["seen_by"]]
    return "\n".join([*lines, f"survivors: {', '.join(survivors) or 'none'}"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--everywhere", action="store_true")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "faults.json")
    given = parser.parse_args()
    wrong = misfits(ROOT)
    if wrong or given.check:
        print("\n".join(wrong) or f"{len(FAULTS)} faults fit")
        raise SystemExit(bool(wrong))
    results = Results.load(given.out)
    results.records = [record for record in results.records if record["name"] not in given.only]
    done = {record["name"] for record in results.records}
    waiting = [fault for fault in FAULTS if fault.name in (given.only or {f.name for f in FAULTS} - done)]
    if waiting:
        run_all(waiting, results, given.jobs, given.everywhere)
    print(table(results.records))


def run_all(waiting: list[Fault], results: Results, jobs: int, everywhere: bool) -> None:
    first, *others = copies = [Copy(number) for number in range(min(jobs, len(waiting)))]
    free: queue.SimpleQueue[Copy] = queue.SimpleQueue()
    for copy in copies:
        free.put(copy)

    def run_one(fault: Fault) -> dict[str, object]:
        copy = free.get()
        try:
            return copy.run(fault, everywhere, results.without or [])
        finally:
            free.put(copy)

    with ThreadPoolExecutor(jobs) as pool:
        first.prepare()
        list(pool.map(Copy.prepare, others))
        if results.without is None:
            tests = sorted({test for fault in FAULTS for test in fault.tests})
            results.without = first.failures(tests, everywhere, ["-n", str(2 * jobs)])
            results.keep()
            print("without a fault, these fail:", *results.without or ["none"], sep="\n  ", flush=True)
        for finished in as_completed([pool.submit(run_one, fault) for fault in waiting]):
            record = finished.result()
            results.records.append(record)
            results.keep()
            print(f"{record['name']:40} {record['seen_by'] or 'SURVIVES'}", flush=True)


if __name__ == "__main__":
    main()
