"""Functions of Slang's core module, and functions that share a name with one, in one session after another."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

import slangpy as spy

# Each session's types are freed and written over before the next session asks about the same functions.
PROGRAM = """
import gc
import numpy as np
import slangpy as spy

SOURCE = '''
import slangpy;
T any<T>(TensorView<T> x) { return x[1]; }
T flo<T : IFloat>(T x) { return x; }
vector<T, N> same<T : IFloat, let N : int>(vector<T, N> a, vector<T, N> b) { return a; }
'''
for i in range(6):
    device = spy.create_device(spy.DeviceType.null, enable_hot_reload=False)
    module = spy.Module.load_from_source(device, "named_as_core", SOURCE)
    for dtype in (np.float32, np.int32):
        module.any(spy.Tensor.from_numpy(device, np.arange(6, dtype=dtype)))
    for value in (1.5, 2, spy.float3(1)):
        module.flo(value) if value != spy.float3(1) else module.same(value, value)
    module = None
    device.close()
    device = None
    gc.collect()
print("ended")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="MALLOC_PERTURB_ is glibc's")
def test_types_of_ended_sessions_are_not_read() -> None:
    """Slang specialises core functions in a session of its own, which outlives the types that it was asked with."""
    environment = {**os.environ, "MALLOC_PERTURB_": "165"}
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, timeout=300
    )
    assert ended.returncode == 0 and ended.stdout == "ended\n", (ended.returncode, ended.stderr[-3000:])


@pytest.mark.needs_kernels
def test_core_functions_and_their_namesakes(device) -> None:
    text = """
T any<T>(T x) { return x; }
float lerp(float a) { return a * 2; }
float min(float a, float b) { return a + b; }
struct Pair { float a, b; }
Pair max(Pair x, Pair y) { return { max(x.a, y.a), max(x.b, y.b) }; }
"""
    module = spy.Module.load_from_source(device, "namesakes", text)
    x = np.random.default_rng(0).standard_normal(33).astype(np.float32)
    with pytest.raises(spy.ResolveException, match="Ambiguous call"):  # as the compiler takes Slang's any(float)
        module.any(2.5)
    np.testing.assert_allclose(module.lerp(x, _result="numpy"), x * 2, rtol=1e-6)
    np.testing.assert_allclose(module.min(x, -2 * x, _result="numpy"), -x, rtol=1e-6)
    assert module.max({"a": 1, "b": 4}, {"a": 2, "b": 3}) == {"a": 2, "b": 4}
    np.testing.assert_allclose(module.abs(x, _result="numpy"), np.abs(x))


@pytest.mark.needs_kernels
def test_core_functions_of_vectors_and_matrices(device) -> None:
    module = spy.Module.load_from_source(device, "core_only", "float own(float x) { return x; }")
    rng = np.random.default_rng(1)
    a = rng.standard_normal((31, 3)).astype(np.float32)
    lengths = module.length.map("float3")(a, _result="numpy")
    np.testing.assert_allclose(lengths, np.linalg.norm(a.astype(np.float64), axis=1), rtol=1e-5)
    m = rng.standard_normal((5, 2, 3)).astype(np.float32)
    np.testing.assert_allclose(module.transpose.map("float2x3")(m, _result="numpy"), m.swapaxes(1, 2))


@pytest.mark.needs_kernels
@pytest.mark.one
def test_of_equals_the_own_function_is_meant(device: spy.Device) -> None:
    text = "float mul(float a, float b) { return a * b + 1; }\nT lerp<T : IFloat>(T a, int b) { return a; }"
    m = spy.Module.load_from_source(device, "named_mul", text)
    for value in ([1.0, 2.0, 3.0], spy.float3(1, 2, 3), np.float32([1, 2, 3])):
        assert m.mul(value, 2.0).to_numpy().tolist() == [3, 5, 7]
    assert m.mul(2.0, 3.0) == 7.0 and m.lerp(2.0, 1) == 2.0
