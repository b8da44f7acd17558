"""Every container, above all empty ones, for every kind of parameter: it works or says why not, and nothing crashes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import slangpy as spy

pytestmark = pytest.mark.one

CHILD = Path(__file__).with_name("container_child.py")


def test_every_container_for_every_parameter(device_type: spy.DeviceType, tmp_path: Path) -> None:
    if device_type not in (spy.DeviceType.cpu, spy.DeviceType.vulkan):
        pytest.skip("the devices that tests have everywhere")
    notes = tmp_path / "case"
    environment = {**os.environ, "SLANGPY_CACHE_DIR": str(tmp_path / "cache")}
    done = subprocess.run(
        [sys.executable, str(CHILD), device_type.name, str(notes)],
        env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=500,
    )  # fmt: skip
    case = notes.read_text().splitlines()[0] if notes.exists() else "none"
    assert done.returncode == 0, (
        f"exit code {done.returncode}, last case {case!r}; alone: python {CHILD} {device_type.name} /tmp/case '{case}'\n"
        f"{(done.stdout + done.stderr)[-8000:]}"
    )
