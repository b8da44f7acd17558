"""Plants faults one at a time, runs the tests that should see each, and says which survive.

    python tools/seeded_faults.py --check                       every fault still fits the sources (a test of the gate, too)
    python tools/seeded_faults.py --out build/faults.json       all, as the gate runs the tests; goes on where it stopped
    python tools/seeded_faults.py --everywhere --only NAME      one, with every test on every device
    python tools/seeded_faults.py --jobs 8 --seconds 540        eight at a time, and no new one once 540 s are over
    python tools/seeded_faults.py --keep "16 cores, one H100"   what is known into benchmarks/results/seeded_faults.json

SLANGPY_TEST_DEVICES says which devices take part (default null,cpu,vulkan). Works on copies of the sources in build/faults
with one build at -O1 for all of them; takes the Python that runs it, which needs pytest; with pytest-xdist each fault has
two processes.

The test that saw a fault last time runs first. A test that fails with a fault is tried without it: if it fails there too,
it proves nothing on this machine, is named, and left out. Each fault is written to --out as soon as it is known:

    caught       a test fails with the fault and passes without
    survives     all tests passed
    not shown    they passed, but on this machine none of them ran, or the one that saw the fault last time did not
    outlasted    the tests were not done after --limit seconds

After a change of the suite, no fault may survive that was caught before.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import queue
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path

from seeded_faults_table import FAULTS, Fault

ROOT = Path(__file__).resolve().parent.parent
WORK = ROOT / "build" / "faults"
KEPT = ROOT / "benchmarks" / "results" / "seeded_faults.json"
DEVICES = os.environ.get("SLANGPY_TEST_DEVICES") or "null,cpu,vulkan"
DEVICE = re.compile(r"\[(?:.*-)?(null|cpu|vulkan|cuda|d3d12)(?:-.*)?\]$", re.DOTALL)
SHORT = 60.0  # seconds for a single test
HIDDEN = (".ci", ".github", ".clang-format", ".clang-tidy", ".gitignore", ".pre-commit-config.yaml")


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


def copy_sources(target: Path) -> None:
    """The sources as they stand, without what was built; what was taken out of them since is taken out there."""

    def left_out(folder: str, names: list[str]) -> list[str]:
        hidden = {name for name in names if name.startswith(".") and name not in HIDDEN}
        built = {name for name in names if name in ("build", "dist", "__pycache__") or name.endswith(".so")}
        return [*(hidden | built)] if Path(folder) == ROOT else [*({n for n in hidden if "cache" in n} | built - {"build"})]

    target.mkdir(parents=True, exist_ok=True)
    for old in [path for path in target.iterdir() if path.name != "build"]:
        shutil.rmtree(old) if old.is_dir() and not old.is_symlink() else old.unlink()
    shutil.copytree(ROOT, target, ignore=left_out, symlinks=True, dirs_exist_ok=True)


class Native:
    """The one build of the native modules, in which one fault at a time stands."""

    path = WORK / "native"
    marker = WORK / "planted"  # names the files that had a fault since the last build without one

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.planted: tuple[Path, str] | None = None

    def prepare(self) -> None:
        """Builds the sources as they stand; what did not change is not built again."""
        copy_sources(self.path)
        if self.marker.exists():
            for name in self.marker.read_text().split():
                (self.path / name).touch()
        options = ["-DSPY_DEVELOP=ON", "-DCMAKE_BUILD_TYPE=None", "-DCMAKE_CXX_FLAGS=-O1"]
        options += ["-DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON", f"-DPython_EXECUTABLE={sys.executable}"]
        launcher = shutil.which("ccache")
        options += [f"-DCMAKE_CXX_COMPILER_LAUNCHER={launcher}"] if launcher else []
        configure = ["cmake", "-G", "Ninja", "-S", ".", "-B", "build/dev", *options]
        subprocess.run(configure, cwd=self.path, check=True, stdout=subprocess.DEVNULL)
        if not self._build():
            raise SystemExit("the sources do not build without a fault")
        self.marker.unlink(missing_ok=True)

    def _build(self) -> bool:
        command = ["ninja", "-C", "build/dev"]
        done = subprocess.run(command, cwd=self.path, capture_output=True, text=True, check=False)
        if done.returncode:
            print(done.stdout[-2000:], file=sys.stderr)
            return False
        built = self.path / "build" / "dev"
        for path in [*built.glob("_*.so"), built / "_slang_worker"]:  # a build copies only what it has linked
            if path.exists():
                shutil.copy2(path, self.path / "slangpy" / path.name)
        return True

    def put_into(self, folder: Path, fault: Fault) -> bool:
        """Copies modules with the fault there; False where it does not build."""
        with self.lock:
            if self.planted is not None:
                self.planted[0].write_text(self.planted[1], encoding="utf-8")
            path = self.path / fault.file
            self.planted = path, path.read_text(encoding="utf-8")
            with self.marker.open("a") as file:
                file.write(f"{fault.file}\n")
            path.write_text(self.planted[1].replace(fault.old, fault.new), encoding="utf-8")
            if not self._build():
                return False
            copy_modules(self.path, folder)
        return True


def copy_modules(source: Path, target: Path) -> None:
    """New files under the old names: a process that has the old ones mapped keeps them."""
    for path in [*(source / "slangpy").glob("*.so"), source / "slangpy" / "_slang_worker"]:
        if path.exists():
            temporary = target / "slangpy" / f"{path.name}.new"
            shutil.copy2(path, temporary)
            temporary.replace(target / "slangpy" / path.name)


@dataclass
class Report:
    """What a run of pytest said before it ended, or was ended."""

    code: int | None  # None: it was ended
    failed: list[str]
    skipped: dict[str, str]
    passed: set[str]


class Copy:
    """A copy of the sources in which one fault at a time stands, or none."""

    def __init__(self, name: str) -> None:
        self.path = WORK / name
        self.has_clean_modules = True

    def pytest(self, tests: Iterable[str], out: list[str], limit: float, label: str, everywhere: bool) -> Report:
        """Runs tests until one fails, without those in `out`, for `limit` seconds at most."""
        report = WORK / "logs" / f"{label}.tsv"
        cache = WORK / "cache" / label
        shutil.rmtree(cache, ignore_errors=True)
        report.unlink(missing_ok=True)
        path = [str(self.path), str(self.path / "tools"), *filter(None, [os.environ.get("PYTHONPATH")])]
        environment = {
            "OMP_NUM_THREADS": "2",
            **os.environ,
            "PYTHONPATH": os.pathsep.join(path),
            "SLANGPY_CACHE_DIR": str(cache),
            "SLANGPY_TEST_DEVICES": DEVICES,
            "PYTHONDONTWRITEBYTECODE": "1",
            "SLANGPY_TEST_ALL": "1" if everywhere else "0",
            "SEEDED_FAULTS_REPORT": str(report),
        }
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-p", "seeded_faults_report"]
        command += ["-o", f"faulthandler_timeout={max(limit / 2, 30):.0f}", "--continue-on-collection-errors"]
        if importlib.util.find_spec("xdist"):
            command += ["-n", "2", "--dist", "loadfile", "--max-worker-restart=0"]
        command += [f"--deselect={name}" if "::" in name else f"--ignore={name}" for name in out]
        with (WORK / "logs" / f"{label}.log").open("wb") as log:
            child = subprocess.Popen(
                [*command, *tests], cwd=self.path, env=environment, stdout=log, stderr=log, start_new_session=True
            )
            try:
                code: int | None = child.wait(max(limit, 1))
            except subprocess.TimeoutExpired:
                os.killpg(child.pid, signal.SIGKILL)
                child.wait()
                code = None
        shutil.rmtree(cache, ignore_errors=True)
        return read_report(report, code)


def read_report(path: Path, code: int | None) -> Report:
    report = Report(code, [], {}, set())
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    for line in lines:
        outcome, name, reason = (line.split("\t") + ["", ""])[:3]
        if outcome == "failed":
            report.failed.append(name)
        elif outcome == "skipped":
            report.skipped[name] = reason
        elif outcome == "passed":
            report.passed.add(name)
    return report


@dataclass
class Results:
    """What is known so far, kept in a file."""

    path: Path
    without: list[str] = field(default_factory=list)  # tests that fail on this machine without a fault, too
    records: list[dict[str, object]] = field(default_factory=list)

    @classmethod
    def load(cls, path: Path) -> Results:
        if not path.exists():
            return cls(path)
        known = json.loads(path.read_text())
        return cls(path, known["without"] or [], known["records"])

    def keep(self) -> None:
        """Puts a whole file in place of the last one."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        temporary = self.path.with_suffix(".new")
        temporary.write_text(json.dumps({"without": self.without, "records": self.records}, indent=1) + "\n")
        temporary.replace(self.path)


def kept_tests() -> dict[str, str]:
    """The test that saw each fault last time, where it has a name."""
    faults = json.loads(KEPT.read_text())["faults"] if KEPT.exists() else []
    return {row["fault"]: row["seen_by"] for row in faults if "::" in str(row["seen_by"])}


class Search:
    """Runs of faults, several at a time."""

    def __init__(self, results: Results, given: argparse.Namespace) -> None:
        self.results, self.given = results, given
        self.end = time.monotonic() + given.seconds
        self.native, self.clean = Native(), Copy("clean")
        self.free: queue.SimpleQueue[Copy] = queue.SimpleQueue()
        self.kept = kept_tests()

    def prepare(self, jobs: int, is_native: bool) -> None:
        """Builds the native modules if a fault needs that, or if the checkout has none."""
        (WORK / "logs").mkdir(parents=True, exist_ok=True)
        modules = ROOT
        if is_native or not [*(ROOT / "slangpy").glob("_native*.so")]:
            self.native.prepare()
            modules = self.native.path
        for copy in [self.clean, *(Copy(str(number)) for number in range(jobs))]:
            copy_sources(copy.path)
            copy_modules(modules, copy.path)
            if copy is not self.clean:
                self.free.put(copy)

    def run(self, fault: Fault) -> dict[str, object] | None:
        """Plants one fault and runs its tests until one fails; None where the time for all was over first."""
        if time.monotonic() >= self.end:
            return None
        copy, start = self.free.get(), time.monotonic()
        path = copy.path / fault.file
        original = path.read_text(encoding="utf-8")
        try:
            if fault.is_native:
                copy.has_clean_modules = False
                found = self.native.put_into(copy.path, fault)
            else:
                if not copy.has_clean_modules:
                    copy_modules(self.clean.path, copy.path)
                    copy.has_clean_modules = True
                path.write_text(original.replace(fault.old, fault.new), encoding="utf-8")
                found = True
            record = self.look(fault, copy) if found else {"outcome": "does not build"}
        finally:
            path.write_text(original, encoding="utf-8")
            self.free.put(copy)
        if record is None:
            return None
        seconds = round(time.monotonic() - start, 1)
        return {"name": fault.name, "area": fault.area, "seen_by": "", "devices": DEVICES, **record, "seconds": seconds}

    def look(self, fault: Fault, copy: Copy) -> dict[str, object] | None:
        """Which test sees the fault: the one of last time, else all that are named for it."""
        limit = time.monotonic() + self.given.limit
        label = re.sub(r"\W+", "_", fault.name)
        last = self.kept.get(fault.name, "").partition("[")[0]
        if last and (copy.path / last.partition("::")[0]).exists():
            record = self.until_seen([last], fault, copy, limit, f"{label}_first")
            if record is None or record["outcome"] in ("caught", "outlasted"):
                return record
        tests = [f"tests/{test}" for test in fault.tests]
        return self.until_seen(tests, fault, copy, limit, label)

    def until_seen(self, tests: list[str], fault: Fault, copy: Copy, limit: float, label: str) -> dict[str, object] | None:
        everywhere = self.given.everywhere
        while True:
            left = min(limit, self.end) - time.monotonic()
            report = copy.pytest(tests, self.results.without, left, label, everywhere)
            failed = report.failed
            if not failed and report.code not in (None, 0, 5):
                if label.endswith("_first"):  # its test has another name now
                    break
                failed = tests  # pytest itself came to grief
            if not failed:
                break
            for name in dict.fromkeys(failed):
                left = min(limit, self.end) - time.monotonic()
                alone = self.clean.pytest([name], [], max(left, SHORT), f"{label}_without", everywhere)
                if alone.code == 0 and alone.passed:
                    return {"outcome": "caught", "seen_by": name}
                if alone.code is None:
                    return None if limit > self.end else {"outcome": "outlasted", "why": f"{name}, without the fault"}
            if failed is tests:
                return {"outcome": "not shown", "why": f"pytest ends with {report.code} without the fault, too"}
            self.results.without = sorted({*self.results.without, *failed})
            self.results.keep()
            print("fails without a fault, too:", *dict.fromkeys(failed), sep="\n  ", flush=True)
        if report.code is None:
            return None if limit > self.end else {"outcome": "outlasted", "why": f"{self.given.limit:.0f} s"}
        return passed_all(fault, report, self.kept.get(fault.name, ""))


def passed_all(fault: Fault, report: Report, last: str) -> dict[str, object]:
    """A fault that no test saw survives, unless what saw it last time, or all of its tests, did not run here."""
    device = DEVICE.search(last)
    if not report.passed:
        reasons = Counter(report.skipped.values()).most_common(3)
        return {"outcome": "not shown", "why": "no test ran: " + "; ".join(f"{text} ({n})" for text, n in reasons)}
    if last in report.skipped:
        return {"outcome": "not shown", "why": f"{last} saw it last time, and is skipped here: {report.skipped[last]}"}
    if device is not None and device[1] not in DEVICES.split(","):
        return {"outcome": "not shown", "why": f"{last} saw it last time, and {device[1]} is not under test here"}
    return {"outcome": "survives", "why": f"{len(report.passed)} tests passed, {len(report.skipped)} skipped"}


def table(records: list[dict[str, object]]) -> str:
    """Counts by area, and by name what was not caught."""
    lines = []
    for area, number in Counter(str(record["area"]) for record in records).items():
        caught = sum(bool(r["seen_by"]) for r in records if r["area"] == area)
        lines.append(f"{area:12} {caught:3} of {number:3} caught")
    for record in records:
        if not record["seen_by"]:
            lines.append(f"{str(record.get('outcome', 'survives')).upper()}: {record['name']} ({record.get('why', '')})")
    return "\n".join([*lines, f"{len(records)} of {len(FAULTS)} faults are tried"])


def keep_table(results: Results, machine: str) -> None:
    """What is known now in place of what was kept; a fault that was not shown here stays as it was."""
    old = {row["fault"]: row for row in json.loads(KEPT.read_text())["faults"]} if KEPT.exists() else {}
    new = {str(r["name"]): r for r in results.records if r.get("outcome", "caught") in ("caught", "survives")}
    rows = []
    for fault in FAULTS:
        if fault.name in new:
            rows.append({"fault": fault.name, "area": fault.area, "seen_by": new[fault.name]["seen_by"]})
        elif fault.name in old:
            rows.append(old[fault.name])
    KEPT.write_text(json.dumps({"script": "python tools/seeded_faults.py", "machine": machine, "faults": rows}, indent=1) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--only", nargs="*", default=[], help="names of faults")
    parser.add_argument("--everywhere", action="store_true")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--limit", type=float, default=900, help="seconds for the tests of one fault")
    parser.add_argument("--seconds", type=float, default=1e9, help="seconds for all; what is not done then is done by the next run")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "faults.json")
    parser.add_argument("--keep", metavar="MACHINE", help="runs nothing")
    given = parser.parse_args()
    wrong = misfits(ROOT)
    if wrong or given.check:
        print("\n".join(wrong) or f"{len(FAULTS)} faults fit")
        raise SystemExit(bool(wrong))
    unknown = set(given.only) - {fault.name for fault in FAULTS}
    if unknown:
        parser.error(f"no faults of these names: {', '.join(sorted(unknown))}")
    results = Results.load(given.out)
    if given.keep is not None:
        keep_table(results, given.keep)
        return
    results.records = [record for record in results.records if record["name"] not in given.only]
    done = {record["name"] for record in results.records}
    waiting = [fault for fault in FAULTS if fault.name in (given.only or {f.name for f in FAULTS} - done)]
    if waiting:
        run_all(waiting, results, given)
    print(table(results.records))


def run_all(waiting: list[Fault], results: Results, given: argparse.Namespace) -> None:
    jobs = min(given.jobs, len(waiting))
    search = Search(results, given)
    search.prepare(jobs, any(fault.is_native for fault in waiting))
    print(f"{len(waiting)} faults on {DEVICES}", flush=True)
    with ThreadPoolExecutor(jobs) as pool:
        for finished in as_completed([pool.submit(search.run, fault) for fault in waiting]):
            record = finished.result()
            if record is None:
                continue
            results.records.append(record)
            results.keep()
            print(f"{record['seconds']:6} s  {record['name']:45} {record['seen_by'] or record['outcome']}", flush=True)


if __name__ == "__main__":
    main()
