"""`AtomicTensor.set` and `setv` add, as when they were the only spelling: programs of that time sum gradients with them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from calls_support import source

import slangpy as spy

pytestmark = pytest.mark.needs_kernels

SOURCE = """
import slangpy;
void braces(int i, AtomicTensor<float, 1> t) { t.set({ i % 2 }, 1.0f); }
void index(int i, AtomicTensor<int, 1> t) { t.set(uint(i % 2), 1); t.setv(i % 2, 1); }
void indices(int i, AtomicTensor<float2, 2> t) { t.set(1, i % 2, float2(1, 2)); }
void reversed(int i, AtomicTensor<float, 2> t) { t.setv(int2(i % 2, 1), 1.0f); }
void arrays(int i, AtomicTensor<float, 2> t) { int at[2] = { 1, i % 2 }; t.set(at, 1.0f); t.setv(at, 1.0f); }
void none(int i, AtomicTensor<float, 0> t) { t.set(1.0f); }
void plain(int i, RWTensor<float, 1> t) { t.set(uint(i % 2), 1.0f); t.setv(0u, 5.0f); t.store(1, 7.0f); }
void stored(int i, AtomicTensor<float, 1> t) { t.store(i % 2, 1.0f); t[i % 2] = 2.0f; }
"""
ADDED = {
    "braces": ((2,), "float", [32, 32]),
    "index": ((2,), "int", [64, 64]),
    "indices": ((2, 2), "float2", [[[0, 0], [0, 0]], [[32, 64], [32, 64]]]),
    "reversed": ((2, 2), "float", [[0, 0], [32, 32]]),
    "arrays": ((2, 2), "float", [[0, 0], [64, 64]]),
    "none": ((), "float", 64),
    "plain": ((2,), "float", [5, 7]),
    "stored": ((2,), "float", [2, 2]),
}


@pytest.mark.parametrize("name", ADDED)
@pytest.mark.filterwarnings("ignore")  # the compiler says that they are deprecated
def test_forms(device: Any, name: str) -> None:
    m = source(device, "atomic_set", SOURCE)
    shape, dtype, expected = ADDED[name]
    t = spy.Tensor.zeros(device, shape or (1,), dtype).reshape(shape)
    getattr(m, name)(spy.grid((64,)), t)
    assert np.asarray(t.to_numpy()).tolist() == expected


def test_contexts_take_thread_ids_as_braces(device: Any) -> None:
    m = source(
        device,
        "context_braces",
        """
import slangpy;
struct Ramp { float start; void __slangpy_load(ContextND<1> c, out float v) { v = start + c.call_id[0] + 10 * c.thread_id.x; } }
int none(uint3 tid) { Context0D c = { tid }; return c.thread_id.x + 10 * c.thread_id.z; }
float one(uint3 tid, int i) { ContextND<1> c = { tid, { i } }; Ramp r = { 1.0 }; float v; r.__slangpy_load(c, v); return v; }
int two(uint3 tid) { ContextND<2> c = { tid }; c.call_id = { 1, 2 }; ContextND<2> e = {}; return c.call_id[1] + c.thread_id.y + e.call_id[1]; }
""",
    )
    assert m.none(spy.uint3(1, 2, 3)) == 31 and m.one(spy.uint3(1, 2, 3), 5) == 16 and m.two(spy.uint3(1, 2, 3)) == 4
