"""What needs a process of its own: Ctrl-C in a compile, fork, leaving while the compiler starts."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

import slangpy

START = """
from slangpy import _slang
s = _slang.SlangSession("cpp")
keep = s.load_module_from_source("keep", "int g() { return 1; }")
"""


def run(script: str) -> str:
    assert slangpy.__file__
    path = os.pathsep.join([str(Path(slangpy.__file__).parent.parent), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_a_compile_can_be_interrupted() -> None:
    output = run(
        START
        + """
import _thread, signal, threading
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell in the background has it ignored
body = "".join(f"x = x * {i}.0 + sin(x);" for i in range(4000))
m = s.load_module_from_source("m", "[Differentiable] float f(float x) {" + body + "return x; }"
    '[shader("compute")] [numthreads(1, 1, 1)] void go(RWStructuredBuffer<float> o)'
    "{ var p = diffPair(o[0], 1.0); for (int j = 0; j < 10; j++) { bwd_diff(f)(p, o[j]); } o[1] = p.d; }")
program = s.link([m], [m.entry_point("go")])
threading.Timer(0.2, _thread.interrupt_main).start()
try:
    program.code()
except KeyboardInterrupt:
    print("interrupted")
del program, m
again = s.load_module_from_source("again", "import keep; int h() { return g(); }")
print(again.layout.find_function_by_name("h").name, s.generation)
"""
    )
    # the process that generated code was ended; nothing here had to be built anew
    assert output.split() == ["interrupted", "h", "0"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_fork() -> None:
    output = run(
        START
        + """
import os
child = os.fork()
m = s.load_module_from_source("m", "import keep; int h() { return g(); }")
print(m.layout.find_function_by_name("h").name, flush=True)
if child == 0:
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
"""
    )
    assert output.split() == ["h", "h"]


def test_leaving_while_the_compiler_starts() -> None:
    run("from slangpy import _slang\n_slang.start_background()")


DAEMONS = """
import sys, threading, time
import numpy as np
import slangpy as spy
device = spy.create_device(type=spy.DeviceType.cpu)
def work(k):
    for n in range(10000):
        m = spy.Module.load_from_source(device, f"m{k}_{n}", f"float f(float x) {{ return x * x + {k} + {n}; }}")
        m.f(np.arange(3, dtype=np.float32))
for k in range(2):
    threading.Thread(target=work, args=(k,), daemon=True).start()
time.sleep(float(sys.argv[1]))
"""


@pytest.mark.slow
def test_leaving_while_daemon_threads_compile(tmp_path: Path) -> None:
    """Such a thread is never ended inside of native code, which would abort the process. It may still get to say that
    its device is closed, or begin to."""
    assert slangpy.__file__
    path = os.pathsep.join([str(Path(slangpy.__file__).parent.parent), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path, "SLANGPY_CACHE_DIR": str(tmp_path)}
    random = Random(7)
    for _ in range(10):
        done = subprocess.run(
            [sys.executable, "-c", DAEMONS, str(random.uniform(0.0, 1.5))],
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        for word in ("terminate", "Fatal", "Critical", "Aborted"):
            assert word not in done.stderr
