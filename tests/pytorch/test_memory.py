"""Many passes through calls in the graph keep nothing (benchmarks/torch_memory.py with fewer calls)."""

from __future__ import annotations

import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")

from torch_support import HERE, torch_devices  # noqa: E402


@pytest.mark.parametrize("kind", torch_devices())
def test_flat(kind: str) -> None:
    script = HERE.parents[1] / "benchmarks" / "torch_memory.py"
    command = [sys.executable, str(script), "--device", kind, "--calls", "5000", "--allowed", "4"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
