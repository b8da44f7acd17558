"""Plants faults one at a time, runs the tests that should see each, and prints which survive.

    python tools/seeded_faults.py --check                       every fault still fits the sources (a test of the gate, too)
    python tools/seeded_faults.py --out build/faults.json       all, as the gate runs the tests; goes on where it stopped
    python tools/seeded_faults.py --everywhere --only NAME      one, with every test on every device

Works on a copy of the committed sources in build/faults, built with -O1; takes the Python that runs it, which needs what the
tests need. After a change of the suite, no fault may survive that was caught before.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

from seeded_faults_table import FAULTS, Fault

ROOT = Path(__file__).resolve().parent.parent
WORK = ROOT / "build" / "faults"


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


def prepare() -> None:
    """A clean copy of what is committed, built."""
    if not (WORK / ".git").exists():
        subprocess.run(["git", "worktree", "add", "--detach", "--force", str(WORK)], cwd=ROOT, check=True)
    subprocess.run(["git", "checkout", "-q", "-f", head()], cwd=WORK, check=True)
    if not (WORK / "build" / "dev" / "build.ninja").exists():
        options = [
            "-DSPY_DEVELOP=ON",
            "-DCMAKE_BUILD_TYPE=None",
            "-DCMAKE_CXX_FLAGS=-O1",
            f"-DPython_EXECUTABLE={sys.executable}",
        ]
        launcher = shutil.which("ccache")
        options += [f"-DCMAKE_CXX_COMPILER_LAUNCHER={launcher}"] if launcher else []
        subprocess.run(["cmake", "-G", "Ninja", "-S", ".", "-B", "build/dev", *options], cwd=WORK, check=True)
    if not build():
        raise SystemExit("the sources do not build without a fault")


def head() -> str:
    return subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.strip()


def build() -> bool:
    return (
        subprocess.run(["ninja", "-C", "build/dev"], cwd=WORK, stdout=subprocess.DEVNULL, check=False).returncode == 0
    )


def run(fault: Fault, everywhere: bool) -> dict[str, object]:
    """Plants one fault and runs its tests until one fails."""
    path, start = WORK / fault.file, time.perf_counter()
    original = path.read_text(encoding="utf-8")
    path.write_text(original.replace(fault.old, fault.new), encoding="utf-8")
    cache = WORK / "build" / "cache"
    shutil.rmtree(cache, ignore_errors=True)
    environment = {
        **os.environ,
        "PYTHONPATH": str(WORK),
        "SLANGPY_CACHE_DIR": str(cache),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    environment.setdefault("SLANGPY_TEST_DEVICES", "null,cpu,vulkan")
    environment["SLANGPY_TEST_ALL"] = "1" if everywhere else "0"
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-n", "2", "--dist", "loadfile", "-p", "no:cacheprovider"]
    seen = "does not build"
    try:
        if not fault.is_native or build():
            tests = [f"tests/{test}" for test in fault.tests]
            done = subprocess.run(
                [*command, *tests], cwd=WORK, env=environment, capture_output=True, text=True, check=False
            )
            failed = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
            seen = (failed or [f"exit code {done.returncode}"])[0][:200] if done.returncode else ""
    finally:
        path.write_text(original, encoding="utf-8")
    return {"name": fault.name, "area": fault.area, "seen_by": seen, "seconds": round(time.perf_counter() - start, 1)}


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
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "faults.json")
    given = parser.parse_args()
    wrong = misfits(ROOT)
    if wrong or given.check:
        print("\n".join(wrong) or f"{len(FAULTS)} faults fit")
        raise SystemExit(bool(wrong))
    records = json.loads(given.out.read_text()) if given.out.exists() and not given.only else []
    done = {record["name"] for record in records}
    prepare()
    for fault in FAULTS:
        if fault.name in done or (given.only and fault.name not in given.only):
            continue
        records.append(run(fault, given.everywhere))
        print(f"{records[-1]['name']:40} {records[-1]['seen_by'] or 'SURVIVES'}", flush=True)
        given.out.write_text(json.dumps(records, indent=1) + "\n")
    print(table(records))


if __name__ == "__main__":
    main()
