"""Failures of the surroundings: no compiler, no cache folder, damaged cache entries, many processes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import sys, logging
logging.basicConfig(level=logging.WARNING, stream=sys.stderr)
import numpy as np
import slangpy as spy
device = spy.create_device(type=spy.DeviceType.cpu, enable_hot_reload=False)
module = spy.Module.load_from_source(device, "process", "float f(float x) { return x * 3; }")
print("RESULT", module.f(np.arange(3, dtype=np.float32), _result="numpy").tolist())
from slangpy.plan import compile as stage
print("BUILDS", stage.builds, "COMPILER", "slangpy._slang" in sys.modules)
"""


def run(cache: Path, program: str = PROGRAM, **environment: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "SLANGPY_CACHE_DIR": str(cache), **environment}
    env.pop("CXX", None)
    return subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, timeout=120)


def test_a_second_process_needs_no_compiler(tmp_path: Path) -> None:
    first = run(tmp_path)
    assert "RESULT [0.0, 3.0, 6.0]" in first.stdout, first.stderr
    second = run(tmp_path)
    assert "RESULT [0.0, 3.0, 6.0]" in second.stdout, second.stderr
    assert "BUILDS 0 COMPILER False" in second.stdout


IMPORTS = """
import os, sys
import slangpy as spy
device = spy.create_device(type=spy.DeviceType.cpu, enable_hot_reload=False)
load = spy.Module.load_from_source
load(device, "process_base", "int base() { return %s; }" % os.environ["BASE"])
load(device, "process_middle", "__exported import process_base; int middle() { return base() * 10; }")
module = load(device, "process_user", "import process_middle; int user(int x) { return x + middle(); }")
print("RESULT", module.user(1))
if "MORE" in os.environ:
    print("MORE", module.user([1, 2]).to_numpy().tolist())
print("COMPILER", "slangpy._slang" in sys.modules)
"""


def test_modules_of_text_that_import_each_other(tmp_path: Path) -> None:
    """A plan on disk belongs to the texts of all modules; a new plan finds those that no plan had needed to compile."""
    assert "RESULT 51" in run(tmp_path, IMPORTS, BASE="5").stdout
    again = run(tmp_path, IMPORTS, BASE="5")
    assert "RESULT 51" in again.stdout and "COMPILER False" in again.stdout, again.stderr
    assert "RESULT 71" in run(tmp_path, IMPORTS, BASE="7").stdout
    more = run(tmp_path, IMPORTS, BASE="7", MORE="1")
    assert "RESULT 71" in more.stdout and "MORE [71, 72]" in more.stdout, more.stderr


def test_no_cpp_compiler(tmp_path: Path) -> None:
    program = (
        PROGRAM.replace("x * 3", "x * 4")
        .replace('print("RESULT"', 'try:\n    print("RESULT"', 1)
        .replace(".tolist())\n", ".tolist())\nexcept RuntimeError as error:\n    print('CAUGHT', error)\n", 1)
    )
    result = run(tmp_path, program, PATH="/nonexistent")
    assert result.returncode == 0, result.stderr
    if "RESULT" in result.stdout:
        pytest.skip("a C++ compiler is installed as a Python package")
    assert "CAUGHT" in result.stdout and "compiler" in result.stdout
    assert "g++" in result.stdout or "ziglang" in result.stdout


@pytest.mark.parametrize("kind", ["file", "missing_parent"])
def test_unusable_cache_folder(tmp_path: Path, kind: str) -> None:
    blocker = tmp_path / "blocker"
    blocker.write_text("not a folder")
    result = run(blocker if kind == "file" else blocker / "below")
    assert "RESULT [0.0, 3.0, 6.0]" in result.stdout, result.stderr
    assert "cache folder" in result.stderr


@pytest.mark.parametrize("damage", ["empty", "cut", "flipped", "text"])
def test_damaged_cache_entries(tmp_path: Path, damage: str) -> None:
    assert "RESULT" in run(tmp_path).stdout
    files = [path for path in tmp_path.rglob("*") if path.is_file() and "/library/" not in str(path)]
    assert files
    for path in files:
        data = bytearray(path.read_bytes())
        if damage == "empty":
            data = bytearray()
        elif damage == "cut":
            data = data[: len(data) // 2]
        elif damage == "flipped":
            data[-1:] = bytes(byte ^ 0xFF for byte in data[-1:])
        else:
            data = bytearray(b"not what was stored")
        path.write_bytes(data)
    result = run(tmp_path)
    assert "RESULT [0.0, 3.0, 6.0]" in result.stdout, result.stderr
    again = run(tmp_path)
    assert "BUILDS 0 COMPILER False" in again.stdout


def test_processes_share_an_empty_cache(tmp_path: Path) -> None:
    env = {**os.environ, "SLANGPY_CACHE_DIR": str(tmp_path)}
    running = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for _ in range(3)
    ]
    for process in running:
        output, errors = process.communicate(timeout=120)
        assert "RESULT [0.0, 3.0, 6.0]" in output, errors


def test_disabled_cache(tmp_path: Path) -> None:
    result = run(tmp_path, SLANGPY_DISABLE_CACHE="1")
    assert "RESULT [0.0, 3.0, 6.0]" in result.stdout, result.stderr
    assert not any(path.is_file() for path in tmp_path.rglob("*"))
