"""Long lives: code reloaded, modules and devices dropped, calls made, many times over, with flat memory.

Short forms; the long ones of drawn.py are 120 reloads, 5 000 modules, 500 devices and a million calls.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from drawn import LONG

import slangpy as spy

# What is done, how often before memory is first measured, how often after (short, long), and by how many MiB it may
# have grown: a reload that leaked cost 54 MiB, a module 2.5, a device 0.2 to 8.7, a call of ten values a few hundred bytes.
CASES = {
    "reloads": (4, 8, 120, 160),
    "modules": (60, 80, 5000, 140),
    "devices": (30, 60, 500, 40),
    "calls": (5000, 20000, 1_000_000, 16),
}


@pytest.mark.one
@pytest.mark.nightly_on("null")  # the CPU device keeps all that the null device keeps, and its kernels
@pytest.mark.parametrize("what", ["reloads", "modules"])
def test_memory_of_sources_is_flat(device_type: spy.DeviceType, what: str, tmp_path: Path) -> None:
    check(device_type, what, tmp_path)


@pytest.mark.elsewhere("devices")
@pytest.mark.parametrize("what", ["devices", "calls"])
def test_memory_is_flat(device_type: spy.DeviceType, what: str, tmp_path: Path) -> None:
    check(device_type, what, tmp_path)


def check(device_type: spy.DeviceType, what: str, tmp_path: Path) -> None:
    if not sys.platform.startswith("linux"):
        pytest.skip("resident memory is read from /proc")
    warm, short, long, most = CASES[what]
    child = subprocess.run(
        [sys.executable, str(Path(__file__).parent.parent / "living_child.py"), what, device_type.name, str(warm),
         str(long if LONG else short)],
        env={**os.environ, "SLANGPY_CACHE_DIR": str(tmp_path)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert child.returncode == 0, child.stderr
    (memory_before, threads_before), (memory, threads) = json.loads(child.stdout)
    print(f"{device_type.name} {what}: {memory_before} -> {memory} MiB, {threads_before} -> {threads} threads")
    assert memory - memory_before < most, child.stdout
    assert threads - threads_before < 40, child.stdout  # a dozen devices may be between two collections of garbage
