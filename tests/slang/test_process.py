"""What needs a process of its own: Ctrl-C in a compile, fork, leaving while the compiler starts."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest
from drawn import MANY

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
os.write(1, (m.layout.find_function_by_name("h").name + "\\n").encode())
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
    for _ in range(min(4 * MANY, 20)):
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


LIMITED = """
import os, sys, threading
import numpy as np
import slangpy as spy
from slangpy import _slang
LIMIT
try:
    device = spy.Device(type="cpu")
    module = spy.Module.load_from_source(device, "limited", "float twice(float x) { for (int i = 0; i < 9; i++) x += 1; return 2 * x - 18; }")
    assert module.twice(np.arange(100000, dtype=np.float32), _result="numpy")[70000] == 140000
    print("right")
except (RuntimeError, MemoryError) as error:
    print("refused:", error)
"""
NO_THREADS = """
import ctypes
seccomp = ctypes.CDLL(None, use_errno=True)
class Filter(ctypes.Structure):
    _fields_ = [("code", ctypes.c_ushort), ("jt", ctypes.c_ubyte), ("jf", ctypes.c_ubyte), ("k", ctypes.c_uint)]
class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filters", ctypes.POINTER(Filter))]
# no clone() of threads (CLONE_THREAD), and no clone3(), which the C library then does not use
rules = [(0x20, 0, 0, 0), (0x15, 0, 1, 435), (0x06, 0, 0, 0x50026), (0x15, 0, 3, 56), (0x20, 0, 0, 16),
         (0x45, 0, 1, 0x10000), (0x06, 0, 0, 0x5000B), (0x06, 0, 0, 0x7FFF0000)]
filters = (Filter * len(rules))(*(Filter(*rule) for rule in rules))
program = Program(len(rules), filters)
assert seccomp.prctl(38, 1, 0, 0, 0) == 0
if seccomp.prctl(22, 2, ctypes.byref(program), 0, 0) != 0:
    print("no filters here")
    os._exit(0)
"""
needs_filters = pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() != "x86_64", reason="a filter of system calls, for Linux on x86-64"
)


@needs_filters
def test_the_process_ends_where_no_thread_can_be_started(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LIMITED.replace("LIMIT", NO_THREADS)],
        env={**os.environ, "SLANGPY_CACHE_DIR": str(tmp_path), "SLANGPY_COMPILE_IN_PROCESS": "1"},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    if "no filters here" in done.stdout:
        pytest.skip(done.stdout)
    assert done.returncode == 0, done.stderr
    assert "cannot start the thread of the Slang compiler" in done.stdout, done.stdout + done.stderr


@needs_filters
def test_kernels_run_on_the_threads_that_there_are(tmp_path: Path) -> None:
    """Those of the pool cannot be started: the caller does all the work."""
    script = LIMITED.replace("LIMIT", "").replace("    assert", NO_THREADS.replace("\n", "\n    ") + "\n    assert", 1)
    script = script.replace('    module =', '    warm = spy.Module.load_from_source(device, "warm", "int one(int x) { return 1; }").one(2)\n    module =')
    for _ in range(2):  # the second time the kernel is there already
        done = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=False,
            env={**os.environ, "SLANGPY_CACHE_DIR": str(tmp_path), "SLANGPY_COMPILE_IN_PROCESS": "1", "SLANGPY_CPU_THREADS": "4"},
        )  # fmt: skip
        if "no filters here" in done.stdout:
            pytest.skip(done.stdout)
        assert done.returncode == 0, done.stderr
    assert "right" in done.stdout, done.stdout + done.stderr
