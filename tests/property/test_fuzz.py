"""Random Python values at every kind of parameter: errors are named, nothing crashes, hangs or leaks.

A failure prints how to repeat one call."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from drawn import MANY, SEED

import slangpy as spy

pytestmark = pytest.mark.one

CHILD = Path(__file__).with_name("fuzz_child.py")
CASES = {"null": 1500, "cpu": 1000 if MANY == 1 else 2500}
"""Calls; 2000 on other devices. The nightly run draws ten times 2500 on the CPU, anew each night."""
SECONDS = 580 * MANY


@pytest.mark.slow
@pytest.mark.nightly_on("null")  # what is bound, and how a refusal reads, the CPU device shows as well
def test_random_values(device_type: spy.DeviceType, tmp_path: Path) -> None:
    cases, seed = CASES.get(device_type.name, 2000) * MANY, SEED
    notes = tmp_path / "case"
    command = [sys.executable, str(CHILD), device_type.name, str(seed), str(cases), str(notes)]
    environment = {**os.environ, "SLANGPY_CACHE_DIR": str(tmp_path / "cache"), "TMPDIR": str(tmp_path)}
    try:
        done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=SECONDS)
        code, output = done.returncode, done.stdout + done.stderr
    except subprocess.TimeoutExpired as expired:
        code, output = None, f"not done after {SECONDS} s\n{expired.output or ''}"
    case = notes.read_text().strip() if notes.exists() else "none"
    again = f"python {CHILD} {device_type.name} {seed} 1 /tmp/case {case}"
    if code is None or code not in (0, 1):
        pytest.fail(f"exit code {code} in case {case}; alone: {again}\n{output[-6000:]}", pytrace=False)
    if code == 1:
        pytest.fail(f"seed {seed}; one case alone: python {CHILD} {device_type.name} {seed} 1 /tmp/case CASE\n{output[:9000]}",
                    pytrace=False)  # fmt: skip
    assert "warning[" not in output, f"generated code has warnings:\n{output[-3000:]}"
