"""Each fault that tools/seeded_faults.py plants stands in the sources as they are: whoever changes such a line mends the table."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).resolve().parents[2] / "tools" / "seeded_faults.py"


@pytest.mark.null
def test_every_fault_fits() -> None:
    done = subprocess.run([sys.executable, str(TOOL), "--check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
