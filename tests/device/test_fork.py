"""A process forks while devices are open, as multiprocessing and torch's data loaders do."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

import slangpy as spy

pytestmark = [pytest.mark.needs_kernels, pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")]

PROGRAM = """
import os, sys
import numpy as np
import slangpy as spy

kind = spy.DeviceType[sys.argv[1]]
device = spy.create_device(kind)
module = spy.Module.load_from_source(device, "forks", '''
    float square(float x) { return x * x; }
    float cube(float x) { return x * x * x; }
''')
x = spy.Tensor.from_numpy(device, np.arange(1000003, dtype=np.float32))
y = module.square(x)
device.wait()  # threads of a driver that work while the process forks may keep their locks in the child
software = device.has_feature(spy.Feature.software_device)
sys.stdout.flush()

def attempt(what):
    try:
        return what()
    except RuntimeError as error:
        return "spawn" in str(error) and "fork" in str(error)

child = os.fork()
if child == 0:
    print("planned before", attempt(lambda: module.square(x).to_numpy()[1000].item()))
    print("new", attempt(lambda: module.cube(x).to_numpy()[100].item()))
    print("read", attempt(lambda: y.to_numpy()[1000].item()))
    if software:  # a driver for hardware need not begin in a fork of a process that uses it
        other = spy.create_device(kind)
        again = spy.Module.load_from_source(other, "child", "float half_of(float x) { return x / 2; }")
        print("own device", again.half_of(9.0))
    del x, y, module
    device.close()
    sys.exit(7)
print("child left with", os.waitpid(child, 0)[1] >> 8)
print("parent goes on", module.cube(x).to_numpy()[100].item())
"""


def test_fork(device) -> None:
    kind = device.info.type.name
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, kind], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    works = kind == "cpu"  # threads and a compiler; other devices say what to do instead
    expected = [f"planned before {1e6 if works else True}", f"new {1e6 if works else True}",
                f"read {1e6 if works else True}", "own device 4.5", "child left with 7",
                "parent goes on 1000000.0"]  # fmt: skip
    if not device.has_feature(spy.Feature.software_device):
        expected.remove("own device 4.5")
    assert done.stdout.splitlines() == expected


LOCKED = """
import os, signal, threading
import slangpy as spy
from slangpy.base import locks
from slangpy.compiler.modules.reload import code_lock

device = spy.create_device(spy.DeviceType.cpu)
module = spy.Module.load_from_source(device, "locked", "float half_of(float x) { return x / 2; }")
taken, done = threading.Event(), threading.Event()

def hold():
    others = [lock for lock in locks._made if lock is not code_lock]
    with code_lock:
        for lock in others:
            lock.acquire()
        taken.set()
        done.wait()
        for lock in others:
            lock.release()

holder = threading.Thread(target=hold)
holder.start()
taken.wait()
child = os.fork()
if child == 0:
    signal.alarm(60)
    print(module.half_of(3.0), flush=True)
    os._exit(7)
done.set()
holder.join()
print("child left with", os.waitpid(child, 0)[1] >> 8, module.half_of(5.0))
"""


def test_locks_of_other_threads_are_open_in_a_child() -> None:
    """Another thread may be planning a call when the process forks; it does not exist in the child."""
    done = subprocess.run([sys.executable, "-c", LOCKED], capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout.splitlines() == ["1.5", "child left with 7 2.5"], done.stdout + done.stderr
