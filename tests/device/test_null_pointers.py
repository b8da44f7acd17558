"""Kernels that read or write through a null pointer: an error on the CPU, and never the end of the process."""

from __future__ import annotations

import faulthandler
import signal
import subprocess
import sys
import threading
from typing import Any

import numpy as np
import pytest

import slangpy as spy

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="faults are watched on Linux")

SOURCE = """
struct Node { float value; float3 place; int many[1000]; };
float* anywhere;

float read(float* p) { return *p; }
float member(Node* p, int i) { return p.place.y + p.many[i]; }
void write(float* p, float v) { *p = v; }
void add(float* p, int n) { InterlockedAdd(*(uint*)p, uint(n)); }
float global() { return *anywhere; }
float asked(float* p) { return p == nullptr ? -1 : *p; }
float some(int i, float* p) { return i % 1000 == 777 ? *p : i; }
[Differentiable] float scaled(float x, no_diff float* p) { return x * p[0]; }

groupshared float row[64];
[shader("compute")] [numthreads(64, 1, 1)]
void group(uint3 at : SV_DispatchThreadID, uint i : SV_GroupIndex, uniform float* p, uniform float* q, uniform uint which)
{
    row[i] = p[at.x];
    GroupMemoryBarrierWithGroupSync();
    float other = row[63 - i];
    if (at.x == which) other += *q;
    GroupMemoryBarrierWithGroupSync();
    p[at.x] = other;
}
"""
MESSAGE = "a null pointer was read or written through; pass a Buffer, a Tensor or an address for it"


@pytest.fixture(scope="module")
def module() -> Any:
    return spy.Module.load_from_source(spy.create_device(type="cpu"), "null_pointers", SOURCE)


def tensor(module: Any, *numbers: float) -> spy.Tensor:
    return spy.Tensor.from_numpy(module.device, np.array(numbers, np.float32))


@pytest.mark.parametrize("name, more", [("read", ()), ("member", (999,)), ("write", (2.0,)), ("add", (1,)), ("scaled", ())])
def test_functions(module: Any, name: str, more: tuple[Any, ...]) -> None:
    arguments = (1.0, 0) if name == "scaled" else (0, *more)
    for _ in range(3):
        with pytest.raises(RuntimeError, match=f"^null_pointers::{name}: {MESSAGE}"):
            module[name](*arguments)
    assert module.read(tensor(module, 5)) == 5


def test_globals(module: Any) -> None:
    with pytest.raises(RuntimeError, match=f"^null_pointers::global: {MESSAGE}"):
        module["global"].set(anywhere=None)()
    assert module["global"].set(anywhere=tensor(module, 7))() == 7


def test_pointers_that_are_asked_first(module: Any) -> None:
    assert module.asked(0) == -1 and module.asked(tensor(module, 3)) == 3


def test_gradients(module: Any) -> None:
    x, result = tensor(module, 1, 2, 3).with_grads(), tensor(module, 1, 1, 1).with_grads()
    with pytest.raises(RuntimeError, match=f"^null_pointers::scaled.bwds: {MESSAGE}"):
        module.scaled.bwds(x, 0, _result=result)
    result.grad.copy_from_numpy(np.ones(3, np.float32))
    x.grad.clear()
    module.scaled.bwds(x, tensor(module, 4), _result=result)
    assert x.grad.to_numpy().tolist() == [4, 4, 4]


def test_one_thread_of_many(module: Any) -> None:
    """On whatever thread of the pool: the next launch of the same kernel is whole."""
    ids = np.arange(1 << 18, dtype=np.int32)
    pointer = tensor(module, 9)
    for _ in range(3):
        with pytest.raises(RuntimeError, match=MESSAGE):
            module.some(ids, 0)
        expected = np.where(ids % 1000 == 777, 9, ids)
        assert np.array_equal(module.some(ids, pointer, _result="numpy"), expected)


def test_groups(module: Any) -> None:
    """A thread that waits for others, each of which has a stack of its own."""
    numbers = np.arange(640, dtype=np.float32)
    for _ in range(3):
        given, one = spy.Tensor.from_numpy(module.device, numbers), tensor(module, 1000)
        with pytest.raises(RuntimeError, match=MESSAGE):
            module.group.dispatch(640, p=given, q=0, which=70)
        given.copy_from_numpy(numbers)
        module.group.dispatch(640, p=given, q=one, which=70)
        expected = numbers.reshape(10, 64)[:, ::-1].reshape(-1).copy()
        expected[70] += 1000
        assert np.array_equal(given.to_numpy(), expected)


def test_threads_of_python(module: Any) -> None:
    wrong: list[Any] = []

    def work(seed: int) -> None:
        pointer = tensor(module, seed)
        for _ in range(50):
            try:
                wrong.append(module.read(0))
            except RuntimeError as error:
                if MESSAGE not in str(error):
                    wrong.append(error)
            if module.read(pointer) != seed:
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


BESIDE = """
import ctypes, faulthandler, sys
if "before" in sys.argv: faulthandler.enable()
import slangpy as spy
m = spy.Module.load_from_source(spy.create_device(type="cpu"), "beside_faults", "float read(float* p) { return *p; }")
if "after" in sys.argv: faulthandler.enable()
for _ in range(3):
    try: m.read(0)
    except RuntimeError as error: print("error", flush=True)
if "own" in sys.argv: ctypes.string_at(0)
if "wild" in sys.argv: m.read(1 << 45)
print("end")
"""


@pytest.mark.parametrize("handler", ["none", "before", "after"])
@pytest.mark.parametrize("fault", ["", "own", "wild"])
def test_other_faults_stay_as_they_were(handler: str, fault: str) -> None:
    """Those of other code and at other addresses, with Python's own handler or without."""
    run = subprocess.run([sys.executable, "-c", BESIDE, handler, fault], capture_output=True, text=True, timeout=300)
    assert run.stdout.startswith("error\nerror\nerror\n"), run.stderr
    if not fault:
        assert run.returncode == 0 and run.stdout.endswith("end\n")
        return
    assert run.returncode == -signal.SIGSEGV and "end" not in run.stdout
    assert ("Fatal Python error: Segmentation fault" in run.stderr) == (handler != "none")


def test_this_process_has_a_handler() -> None:
    """pytest enables it: the tests above ran beside it."""
    assert faulthandler.is_enabled()
