"""Dicts may leave out buffers, textures and samplers of their struct that the function does not use."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from calls_support import array, plain, source

import slangpy as spy

pytestmark = pytest.mark.needs_kernels

SOURCE = """
import slangpy;
struct Inner { StructuredBuffer<float> other; float q; }
struct Scene
{
    float a; StructuredBuffer<float> table; Inner inner; float3 v;
    float value() { return a + inner.q; }
    float look(int i) { return table[i]; }
}
float helper(Scene s) { Scene t = s; t.a += 1; return t.a; }
float direct(Scene s) { return s.a * 2; }
float copies(Scene s, bool b) { Scene t = s; if (b) t.v = float3(1); return helper(t) + s.value() + t.v.x; }
float pair(Scene s[2]) { return s[0].a + s[1].value(); }
float looks(Scene s, int i) { return s.look(i); }
float deep(Scene s, int i) { return s.inner.other[i]; }
void writes(inout Scene s, float x) { s.a = x; }
"""


@pytest.fixture
def m(device: Any) -> Any:
    return source(device, "left_out_resources", SOURCE)


CALLS: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "direct": (lambda m: m.direct({"a": 2.0}), 4),
    "vectorised": (lambda m: m.direct({"a": array(3)}), [0, 2, 4]),
    "copies": (lambda m: m.copies({"a": 2.0, "v": spy.float3(3)}, True), 3 + 2 + 1),
    "nested": (lambda m: m.copies({"a": 2.0, "v": spy.float3(3), "inner": {"q": 5.0}}, False), 3 + 7 + 3),
    "method": (lambda m: m.Scene.value({"a": 2.0}), 2),
    "array": (lambda m: m.pair([{"a": 2.0}, {"a": 4.0}]), 6),
    "empty": (lambda m: m.direct({}), 0),
}


@pytest.mark.parametrize("name", CALLS)
def test_what_is_not_used_may_be_left_out(m: Any, name: str) -> None:
    call, expected = CALLS[name]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert plain(call(m)) == expected
    assert not [w for w in caught if "table" in str(w.message) or "other" in str(w.message)]  # they are no zeros


def test_outputs(m: Any) -> None:
    a = spy.floatRef(1.0)
    m.writes({"a": a}, 5.0)
    assert a.value == 5


def test_what_is_used_is_needed(m: Any, device: Any) -> None:
    with pytest.raises(spy.ResolveException, match="field 'table' is a resource, which has no default: pass one"):
        m.looks({"a": 2.0}, 1)
    with pytest.raises(spy.ResolveException, match=r"field 'inner\.other' is a resource"):
        m.deep({"a": 2.0}, 1)
    buffer = device.create_buffer(data=np.arange(4, dtype=np.float32), usage=spy.BufferUsage.shader_resource)
    assert m.looks({"a": 2.0, "table": buffer}, 3) == 3 and m.deep({"inner": {"other": buffer}}, 2) == 2
