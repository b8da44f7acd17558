"""What test_living.py measures in a process of its own: living_child.py <what> <device type> <warm> <count>."""

from __future__ import annotations

import ctypes
import gc
import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import slangpy as spy


def status() -> tuple[int, int]:
    """Resident MiB and threads of this process, free memory given back to the system."""
    if gc.isenabled():
        gc.collect()  # what hangs in cycles goes when the interpreter likes, and a device may hold much
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
    lines = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(lines["VmRSS"].split()[0]) // 1024, int(lines["Threads"])


def opened(kind: spy.DeviceType) -> spy.Device:
    return spy.create_device(kind)


def reloads(kind: spy.DeviceType) -> Callable[[int], Any]:
    gc.disable()  # what a reload replaces goes at once, not when garbage is collected
    path = Path(tempfile.mkdtemp()) / "living.slang"
    text = "struct S { float a; float two() { return a * 2; } }\nfloat f(S s, float x) { return s.a + x * FACTOR; }"
    path.write_text(text.replace("FACTOR", "1"))
    module = spy.Module.load_from_file(opened(kind), path)
    kept: list[Any] = []

    def step(i: int) -> None:
        path.write_text(text.replace("FACTOR", f"{i + 2}"))
        view = module.f.debug_build_call_data({"a": 1.0}, 1.0)
        assert f"{i + 2}" in text.replace("FACTOR", f"{i + 2}") and view.code
        # these follow the code, and keep nothing of what was replaced
        kept.append((module.f, module.S, module.S.two, spy.Tensor.empty(module.device, (1,), module.S)))

    return step


def modules(kind: spy.DeviceType) -> Callable[[int], Any]:
    device = opened(kind)
    stamp = time.time_ns()  # no plan on disk spares the compiler
    kept = spy.Module.load_from_source(device, "living_kept", "struct K { float a; }\nfloat k(K x) { return x.a; }")

    def step(i: int) -> None:
        text = f"// {stamp}\nstruct S {{ float a; }}\nfloat f(S s, float x) {{ return x * s.a; }}"
        module = spy.Module.load_from_source(device, f"living_{i}", text)
        assert module.f.debug_build_call_data({"a": 1.0}, 2.0).code
        assert kept.k.debug_build_call_data({"a": 1.0}).code

    return step


def devices(kind: spy.DeviceType) -> Callable[[int], Any]:
    def step(i: int) -> None:
        device = opened(kind)
        data = np.ones(100, np.float32)
        device.create_buffer(data=data, usage=spy.BufferUsage.shader_resource)
        if i % 2:
            module = spy.Module.load_from_source(device, "living", "float f(float x) { return x * 2; }")
            got = module.f(data, _result="numpy")
            assert kind is spy.DeviceType.null or got.tolist() == [2.0] * 100
        assert spy.current_device() is device

    return step


SOURCE = """
struct S { float a; float3 b; }
float add(float a, float b) { return a + b; }
[Differentiable] float square(float x) { return x * x; }
float of_struct(S s, float3 v) { return s.a + dot(s.b, v); }
float sum(float v[4]) { return v[0] + v[1] + v[2] + v[3]; }
void fill(int i, out float o) { o = i; }
uniform float k;
float scaled(float x) { return x * k; }
"""


def calls(kind: spy.DeviceType) -> Callable[[int], Any]:
    device = opened(kind)
    m = spy.Module.load_from_source(device, "living_calls", SOURCE)
    x = spy.Tensor.from_numpy(device, np.ones(33, np.float32)).with_grads()
    y = spy.Tensor.from_numpy(device, np.ones(33, np.float32)).with_grads()
    kinds: list[Callable[[int], Any]] = [
        lambda i: m.add(np.arange(31, dtype=np.float32), float(i), _result="numpy"),
        lambda i: m.add(x, y),
        lambda i: m.square.bwds(x, _result=y),
        lambda i: m.of_struct({"a": float(i), "b": [1, 2, 3]}, spy.float3(1, 2, 3)),
        lambda i: m.sum([1.0, 2.0, 3.0, float(i)]),
        lambda i: m.fill(i, spy.floatRef()),
        lambda i: m.scaled.set(k=float(i))(x),
        lambda i: m.scaled.set({"k": float(i)}).map((0,))(np.ones(i % 7 + 1, np.float32), _result="numpy"),
        lambda i: m.add.return_type("numpy")(x, 1.0),
        lambda i: m.square(spy.Tensor.from_numpy(device, np.ones((1, i % 5 + 1), np.float32))),
    ]
    return lambda i: kinds[i % len(kinds)](i)


def main(what: str, kind: str, warm: int, count: int) -> None:
    step = {"reloads": reloads, "modules": modules, "devices": devices, "calls": calls}[what](spy.DeviceType[kind])
    for i in range(warm):
        step(i)
    before = status()
    for i in range(warm, warm + count):
        step(i)
    print(json.dumps([before, status()]))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
