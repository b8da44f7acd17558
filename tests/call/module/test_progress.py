"""Compiling that takes over a second says so on stderr."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import slangpy as spy
from slangpy.plan import kernels

SLOW = '#!/bin/sh\nsleep "$SECONDS_TO_SLEEP"\nexec c++ "$@"\n'
PROGRAM = """
import sys
import slangpy as spy
device = spy.Device(type="cpu")
module = spy.Module.load_from_source(device, "slow", "[Differentiable] float square(float x) { return x * x; }")
def call():
    pair = spy.diffPair(3.0)
    module.square.bwds(pair, _result=spy.diffPair(0.0, 1.0))
    print(pair.grad)
if "--quiet" in sys.argv:
    with spy.progress(False):
        call()
else:
    call()
"""


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """A compiler that takes its time."""
    compiler = tmp_path / "slow-c++"
    compiler.write_text(SLOW)
    compiler.chmod(0o755)
    cache = tmp_path / "cache"
    return {**os.environ, "CXX": str(compiler), "SECONDS_TO_SLEEP": "1.3", "SLANGPY_CACHE_DIR": str(cache), "SLANGPY_PROGRESS": ""}


def run(environment: dict[str, str], *args: str, program: str = PROGRAM) -> Any:
    command = [sys.executable, "-c", program, *args]
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=True)


LOADING = r"(?:slangpy: loading slow \.\.\. \d+\.\d s\n)?"  # on a busy machine
LINE = LOADING + r"slangpy: compiling slow::square\.bwds for cpu \.\.\. \d+\.\d s\n"


def test_one_line_with_the_time(environment: dict[str, str]) -> None:
    done = run(environment)
    assert done.stdout == "6.0\n"
    assert re.fullmatch(LINE, done.stderr), done.stderr
    again = run(environment)  # from the cache
    assert (again.stdout, again.stderr) == ("6.0\n", "")


@pytest.mark.parametrize(("args", "changes"), [(["--quiet"], {}), ([], {"SLANGPY_PROGRESS": "0"}), ([], {"SECONDS_TO_SLEEP": "0"})])
def test_silence(environment: dict[str, str], args: list[str], changes: dict[str, str]) -> None:
    environment = {**environment, **changes}
    if changes.get("SECONDS_TO_SLEEP"):
        environment["SLANGPY_COMPILE_IN_PROCESS"] = "1"
    done = run(environment, *args)
    assert done.stdout == "6.0\n"
    allowed = f"{LOADING}(?:{LINE})?" if changes.get("SECONDS_TO_SLEEP") else "" if changes else LOADING
    assert done.stderr == "" or re.fullmatch(allowed, done.stderr)


def test_terminals_show_one_line_that_changes(environment: dict[str, str]) -> None:
    leader, follower = pty.openpty()
    process = subprocess.Popen([sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, stderr=follower, env=environment)
    os.close(follower)
    text = b""
    while True:
        try:
            part = os.read(leader, 4096)
        except OSError:  # Linux says so where the other end is closed
            break
        if not part:
            break
        text += part
    os.close(leader)
    assert process.wait() == 0
    assert process.stdout is not None
    process.stdout.close()
    told = re.sub(r"^slangpy: loading slow [^\n]*\n", "", text.decode()).strip()
    lines = told.split("\r")
    assert len(lines) >= 3 and "\n" not in told
    assert all(line.startswith("slangpy: compiling slow::square.bwds for cpu ...") for line in lines)


def test_failures_say_so(environment: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "slow-c++").write_text("#!/bin/sh\nsleep 1.3\necho no >&2\nexit 1\n")
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, env=environment, check=False)
    assert done.returncode != 0
    assert re.search(r"slangpy: compiling slow::square\.bwds for cpu \.\.\. (\(.*\) )?\d+\.\d s, failed\n", done.stderr), done.stderr


def test_the_setting() -> None:
    with spy.progress(True):
        with spy.progress(False):
            assert spy.config.config.progress is False
        assert spy.config.config.progress is True


def test_a_compiler_that_is_not_there_is_named(environment: dict[str, str]) -> None:
    done = run({**environment, "CXX": "/not/there/c++ -O1", "SLANGPY_PROGRESS": "0"})
    assert done.stdout == "6.0\n"
    assert "RuntimeWarning: the environment's CXX names '/not/there/c++', which is no program" in done.stderr


def test_derivatives_that_take_long_say_why(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[tuple[str, Any]] = []
    monkeypatch.setattr(kernels, "compiling", lambda what, why: said.append((what, why())) or nullcontext())
    device = spy.Device(type=spy.DeviceType.cpu)
    module = spy.Module.load_from_source(device, "why", "[Differentiable] float square(float x) { return x * x; }")
    x = spy.Tensor.from_numpy(device, np.ones(3, np.float32)).with_grads(zero=True)
    y = module.square(x, _result="tensor").with_grads()
    module.square.bwds(x, _result=y)
    assert said[0] == ("compiling why::square for cpu", "")
    assert said[-1][0] == "compiling why::square.bwds for cpu" and "split long functions" in said[-1][1]


def test_the_first_use_of_ziglang_says_why_it_takes_long(environment: dict[str, str], tmp_path: Path) -> None:
    compiler = (tmp_path / "slow-c++").rename(tmp_path / "ziglang-c++")
    program = f"import slangpy.compiler.progress as line\nline._LONG = 1.5\n{PROGRAM}"
    done = run({**environment, "CXX": str(compiler), "SECONDS_TO_SLEEP": "2.5"}, program=program)
    assert done.stdout == "6.0\n"
    why = r"\(the first use of ziglang builds its C\+\+ library, once, which takes minutes\) \d+\.\d s\n"
    assert re.search(r"slangpy: compiling slow::square\.bwds for cpu \.\.\. " + why, done.stderr), done.stderr


ENDLESS = """
import signal, sys, threading, time
import slangpy as spy
import slangpy.compiler.progress as line
line._LONG = 1.5
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell in the background has it ignored
device = spy.Device(type="cpu")
steps = "".join(f"if (x > {k * 0.02}f) {{ v = v * w + x; w = w * x - v; }}\\n" for k in range(40))
module = spy.Module.load_from_source(device, "endless", f'''
[Differentiable] float square(float x) {{ return x * x; }}
[Differentiable] float many(float x)
{{
    float v = x, w = 1;
    {steps}
    return v * w;
}}
[Differentiable] float outer(float x) {{ return many(square(x)); }}
''')
def grad(function):
    pair = spy.diffPair(3.0)
    function.bwds(pair, _result=spy.diffPair(0.0, 1.0))
    return pair.grad
begin = 0.0
def stop():
    global begin
    begin = time.monotonic()
    signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
threading.Timer(3.5, stop).start()
try:
    grad(module.outer)
except KeyboardInterrupt:
    print("stopped" if time.monotonic() - begin < 2 else "stopped late")
print(grad(module.square))
"""


def test_what_takes_long_says_what_to_split_and_can_be_stopped(tmp_path: Path) -> None:
    environment = {**os.environ, "SLANGPY_CACHE_DIR": str(tmp_path), "SLANGPY_PROGRESS": ""}
    done = subprocess.run([sys.executable, "-c", ENDLESS], capture_output=True, text=True, env=environment, check=True, timeout=120)
    assert done.stdout.split() == ["stopped", "6.0"], done.stderr
    assert "'many' (line 3) has " in done.stderr and "40 conditions; put a few of its conditions into" in done.stderr
