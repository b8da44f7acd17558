"""What nobody holds any more goes away: modules with their kernels, modified functions with their values."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from calls_support import array, source, tensor

import slangpy as spy
from slangpy import module as module_file

SOURCE = "uniform float k; struct S { float a; };\nfloat f(float x) { return x * k; }\nfloat sum(float v[2]) { return v[0]; }"


def objects(device: spy.Device, kind: str) -> int:
    gc.collect()
    device.wait()
    gc.collect()
    return sum(kind in line for line in device._live_objects())  # type: ignore[attr-defined]


def test_a_dropped_module_takes_its_plans_and_kernels_along(device: spy.Device) -> None:
    before = objects(device, "Kernel")
    module = source(device, "collected", SOURCE)
    module.f.set(k=2.0)(array(3))
    module.f.set(k=2.0).map((0,))(tensor(device, 3))
    module.sum([1.0, 2.0])  # a plan that depends on sizes stands under two keys
    module.sum([[1.0, 2.0]])
    assert objects(device, "Kernel") > before
    gone = weakref.ref(module)
    del module
    assert objects(device, "Kernel") == before
    assert gone() is None


def test_a_plan_outlives_nothing_but_itself(device: spy.Device) -> None:
    module = source(device, "collected_view", SOURCE)
    view = module.f.debug_build_call_data(array(3))
    module.f(array(3))
    assert tuple(view.last_call_shape) == (3,)
    module.on_hot_reload()
    with pytest.raises(RuntimeError, match="this plan was dropped"):
        view.last_call_shape
    assert module.f.set(k=3.0)(array(3), _result="numpy").tolist() == [0, 3, 6] or device.type is spy.DeviceType.null


def leaks() -> dict[str, Callable[[Any, Any], Any]]:
    def reference(module: Any, value: Any) -> None:
        loop = spy.ValueRef(value)
        loop.value = [loop, value]

    def pair(module: Any, value: Any) -> None:
        loop = spy.DiffPair(0.0, value)
        loop.primal = [loop]

    return {
        "set": lambda m, t: m.f.set(k=t),
        "set by function": lambda m, t: m.f.set(lambda context: {"k": t}),
        "bind": lambda m, t: m.f.set(k=1.0).bind(t),
        "write": lambda m, t: m.f.write(lambda cursor: None, t),
        "call": lambda m, t: m.f(t),
        "reference": reference,
        "pair": pair,
        "pack": lambda m, t: spy.pack(m, {"_type": "S", "a": t}),
    }


@pytest.mark.parametrize("name", list(leaks()))
def test_values_are_let_go(device: spy.Device, name: str) -> None:
    module = source(device, f"collected_{name.replace(' ', '_')}", SOURCE)
    module.f(tensor(device, 3))
    before = objects(device, "uffer")
    for _ in range(5):
        leaks()[name](module, spy.Tensor.from_numpy(device, np.ones(3, np.float32)))
    assert objects(device, "uffer") <= before


# --- the compiler's share


def test_modules_of_different_sessions_work_together(fresh_device: spy.Device, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module_file, "_SESSION_LOADS", 2)
    device = fresh_device
    body = "struct Item { float a; float twice() { return a * 2; } };\nfloat half_of(float x) { return x / 2; }"
    first = source(device, "session_first", body)
    others = [source(device, f"session_{i}", f"float f(float x) {{ return x * {i}; }}") for i in range(6)]
    assert len({id(m.session) for m in others}) > 1 and others[-1].session is not first.session
    importing = source(device, "session_importing", "import session_first;\nfloat g(Item i) { return i.twice(); }")
    linking = source(device, "session_linking", "float h(float x) { return x + 1; }", link=[first, others[-1]])
    raw = source(device, "session_raw", "float r(float x) { return x - 1; }", link=[first.device_module])
    items = spy.Tensor.from_numpy(device, array(3).view([("a", "f4")]), target_slang_dtype=first.Item)
    results = [
        importing.g(items, _result="numpy"),
        importing.g({"_type": first.Item, "a": array(3)}, _result="numpy"),
        linking.h(array(3), _result="numpy"),
        first.half_of(array(3), _result="numpy"),
        others[5].f(array(3), _result="numpy"),
        raw.r(array(3), _result="numpy"),
    ]
    if device.type is not spy.DeviceType.null:
        assert [r.tolist() for r in results] == [[0, 2, 4], [0, 2, 4], [1, 2, 3], [0, 0.5, 1], [0, 5, 10], [-1, 0, 1]]


MANY = """
import gc, sys
import numpy as np
import slangpy as spy

def resident():
    return int(open("/proc/self/statm").read().split()[1]) * 4096 / 2**20

device = spy.Device(type=spy.DeviceType.null, compiler_options={}, enable_hot_reload=False)
for i in range(300):
    text = f"struct P {{ float x; }}; float f(float a) {{ return a * {i}; }} float g(P p) {{ return p.x; }}"
    spy.Module.load_from_source(device, f"passing_{i}", text).f(np.ones(4, np.float32))
    if i in (0, 149, 299):
        gc.collect()
        print(f"{resident():.0f}", flush=True)
"""


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="resident memory is read from /proc")
def test_passing_modules_leave_the_compiler(tmp_path: Any) -> None:
    """300 modules, each called once and dropped: 2.7 MiB each stayed when they shared a session."""
    environment = {**os.environ, "SLANGPY_CACHE_DIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", MANY], env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    first, middle, last = (float(line) for line in done.stdout.split())
    assert last - middle < 100 and last - first < 400, (first, middle, last)
