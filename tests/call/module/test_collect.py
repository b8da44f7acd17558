"""What nobody holds any more goes away: modules with their kernels, modified functions with their values."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from calls_support import array, source, tensor

import slangpy as spy

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
    with pytest.raises(RuntimeError, match="no call has run with this plan since its code was made"):
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
