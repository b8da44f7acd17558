"""Counts the tests that run on each device and writes the counts into benchmarks/results/test_runs.json.

    python tools/support_table.py [--devices null,cpu,vulkan] [--tests tests/device tests/call]

Each device gets a pytest run of its own, with the other devices left out; only tests that take a device are counted.
Devices that the machine lacks keep the row they had.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from run_tests import Counts, add_report

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results" / "test_runs.json"


def adapters() -> dict[str, str]:
    """Name of the first adapter of each device type that can be opened here."""
    from slangpy import Device, DeviceType

    found = {}
    for name in ("null", "cpu", "vulkan", "cuda", "d3d12"):
        listed = Device.enumerate_adapters(DeviceType[name])
        if listed:
            found[name] = listed[0].name
    return found


def run(device: str, folders: list[str]) -> Counts:
    """The tests of one device."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        tests = [str(ROOT / path) for path in folders]
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}", *tests]
        # Not in the checkout, whose slangpy/ would hide the installed package.
        subprocess.run(command, cwd=folder, env={**os.environ, "SLANGPY_TEST_DEVICES": device}, check=False)
        counts = Counts()
        add_report(report, device, counts)
    return counts


def write(rows: dict[str, dict[str, str | int]]) -> None:
    """Replaces the rows given, keeps the others."""
    record = json.loads(RESULTS.read_text(encoding="utf-8"))
    kept = {row["device"]: row for row in record["device_counts"]}
    record["device_counts"] = list({**kept, **rows}.values())
    RESULTS.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--devices", default="", help="device types, by comma; default: all that open here")
    parser.add_argument("--tests", nargs="+", default=["tests/device", "tests/call", "tests/pytorch", "tests/tools"])
    options = parser.parse_args()
    known = adapters()
    wanted = [name for name in options.devices.split(",") if name] or list(known)
    missing = [name for name in wanted if name not in known]
    if missing:
        parser.error(f"no such device here: {', '.join(missing)}; there are: {', '.join(known)}")
    rows: dict[str, dict[str, str | int]] = {}
    any_failed = False
    for name in wanted:
        counts = run(name, options.tests)
        total = counts.passed + counts.skipped + counts.failed
        rows[name] = {
            "device": name, "adapter": known[name], "tests": total,
            "passed": counts.passed, "skipped": counts.skipped, "failed": counts.failed,
        }  # fmt: skip
        any_failed = any_failed or counts.failed > 0
    write(rows)
    return 1 if any_failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
