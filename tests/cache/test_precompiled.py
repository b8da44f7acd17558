"""The header that GCC keeps of the text in front of CPU kernels: made once, used by all, never needed."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import slangpy as spy
from slangpy.compiler.text import precompiled

GCC = shutil.which("g++")
pytestmark = pytest.mark.skipif(GCC is None or sys.platform != "linux", reason="needs GCC")

PROGRAM = """
import sys
import numpy as np
import slangpy as spy

device = spy.Device(type=spy.DeviceType.cpu)
x = np.linspace(0, 1, 33, dtype=np.float32)
for i in map(int, sys.argv[1:]):
    module = spy.Module.load_from_source(device, f"m{i}", f"float f(float x) {{ return sin(x) + {i}; }}")
    assert np.allclose(module.f(x, _result="numpy"), np.sin(x) + i)
"""


@pytest.fixture
def run(tmp_path: Path):
    """Compiles kernels of those numbers in a new process; the compiler's arguments, a line for each."""
    log, wrapper = tmp_path / "log", tmp_path / "logged-g++"
    wrapper.write_text(f'#!/bin/sh\necho "$@" >> {log}\nexec {GCC} "$@"\n')
    wrapper.chmod(0o755)

    def run(*numbers: int) -> list[str]:
        log.write_text("")
        environment = {**os.environ, "CXX": str(wrapper), "SLANGPY_CACHE_DIR": str(tmp_path / "cache")}
        command = [sys.executable, "-c", PROGRAM, *map(str, numbers)]
        subprocess.run(command, env=environment, check=True, timeout=300)
        return log.read_text().splitlines()

    return run


def headers(tmp_path: Path) -> list[Path]:
    return list((tmp_path / "cache").glob("*/prelude/*"))


def test_one_header_serves_all(run, tmp_path: Path) -> None:
    first = run(1, 2, 3, 4)
    assert ["-include" in line for line in first] == [False, False, False, True, True]
    assert [" c++-header " in line for line in first] == [False, False, True, False, False]
    assert len(headers(tmp_path)) == 1
    later = run(5)
    assert len(later) == 1 and "-include" in later[0]
    # What the disk holds may be cut, or not GCC's: the next process makes it anew, or does without.
    header = headers(tmp_path)[0]
    header.write_bytes(header.read_bytes()[:1000])
    assert "-include" not in run(6)[0]


def test_leaves_no_folder(run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir(0o700)
    monkeypatch.setenv("TMPDIR", str(temporary))
    run(1, 2, 3)
    assert headers(tmp_path) and not list(temporary.iterdir())


def test_header_that_gcc_refuses(device_of_cpu, monkeypatch: pytest.MonkeyPatch) -> None:
    """Code behind a header that is not one compiles without it; an error is that of the whole source."""
    monkeypatch.setattr(precompiled, "_header", lambda *_: "/nowhere/header.h")
    module = spy.Module.load_from_source(device_of_cpu, "behind", "float g(float x) { return 3 * x; }")
    assert module.g(2.0) == 6.0
    broken = spy.Module.load_from_source(
        device_of_cpu, "broken", 'float h(float x) { __intrinsic_asm "no_such_function($0)"; }'
    )
    with pytest.raises(RuntimeError, match="no_such_function"):
        broken.h(1.0)


@pytest.fixture
def device_of_cpu():
    device = spy.Device(type=spy.DeviceType.cpu)
    yield device
    device.close()
