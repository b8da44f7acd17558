"""The compiler that gets ready while a device opens: for whom it does, and what cannot go wrong by it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.needs_kernels, pytest.mark.one]

OPEN = """
import sys
import slangpy as spy
assert "slangpy._slang" not in sys.modules
device = spy.Device(type=sys.argv[1])
print("slangpy._slang" in sys.modules)
"""

FORK = """
import os
import numpy as np
import slangpy as spy
device = spy.Device(type="cpu")
child = os.fork()  # Slang is starting
module = spy.Module.load_from_source(device, "forked", "float f(float x) { return x + 1; }")
assert module.f(np.ones(3, np.float32), _result="numpy").tolist() == [2, 2, 2]
if child:
    assert os.waitpid(child, 0)[1] == 0
"""

NO_COMPILER = """
import sys
import slangpy as spy
sys.modules["slangpy._slang"] = None  # its import fails
device = spy.Device(type="cpu")
assert spy.Tensor.zeros(device, (3,), "float").to_numpy().tolist() == [0, 0, 0]
try:
    spy.Module.load_from_source(device, "m", "float f(float x) { return x; }").f(1.0)
except ImportError as error:
    print("_slang" in str(error))
"""

NO_HASH = """
import threading
import slangpy as spy
from slangpy.compiler import early, package_files
def fail():
    raise OSError("no library")
package_files._hash_library = fail
device = spy.Device(type="cpu")
for thread in threading.enumerate():
    if thread.name == "slangpy-early":
        thread.join()
try:
    spy.Module.load_from_source(device, "m", "float f(float x) { return x; }")
except OSError as error:
    print(error)
"""


def run(folder: Path, text: str, *arguments: str, name: str = "program.py", **environment: str) -> str:
    """Runs a program with the cache of a folder; returns what it printed. It must end by itself, and silently."""
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(text)
    # Python 3.12 warns of each fork beside threads.
    variables = {**os.environ, "SLANGPY_CACHE_DIR": str(folder / "cache"), "PYTHONWARNINGS": "ignore::DeprecationWarning", **environment}
    command = [sys.executable, str(folder / name), *arguments]
    done = subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and not done.stderr, done.stderr
    return done.stdout.strip()


def test_a_program_starts_it_once(tmp_path: Path) -> None:
    """At its first run and with another type of device; not for a device that runs nothing; again without a cache."""
    assert run(tmp_path, OPEN, "null") == "False"
    assert run(tmp_path, OPEN, "cpu") == "True"
    assert run(tmp_path, OPEN, "cpu") == "False"
    assert run(tmp_path, OPEN, "cpu", name="another.py") == "True"
    assert run(tmp_path, OPEN, "cpu", SLANGPY_DISABLE_CACHE="1") == "True"


def test_kernels_made_beforehand(tmp_path: Path) -> None:
    assert run(tmp_path, OPEN, "cpu", SLANGPY_CACHE_SHARED="1") == "False"
    assert run(tmp_path, OPEN, "cpu", SLANGPY_SHIPPED_CACHE=str(tmp_path / "shipped")) == "False"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_fork_while_it_starts(tmp_path: Path) -> None:
    run(tmp_path, FORK)


def test_failures_come_at_the_first_use(tmp_path: Path) -> None:
    assert run(tmp_path, NO_COMPILER) == "True"
    assert run(tmp_path, NO_HASH, name="hashes.py") == "no library"
