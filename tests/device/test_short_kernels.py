"""CPU kernels are compiled with what they use of the text in front of them, and with all of it where that is not enough."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import slangpy as spy
from slangpy.compiler.text.short import short_text

GCC = shutil.which("g++")
pytestmark = pytest.mark.skipif(GCC is None or sys.platform != "linux", reason="needs GCC")

PROGRAM = """
import sys
import numpy as np
import slangpy as spy

device = spy.Device(type=spy.DeviceType.cpu)
exec(sys.argv[1])
"""

CASES = {
    "numbers": """
m = spy.Module.load_from_source(device, "m", "float f(float x) { return sin(x) + pow(x, 2) + fmod(x, 3); }")
x = np.linspace(0, 1, 33, dtype=np.float32)
assert np.allclose(m.f(x, _result="numpy"), np.sin(x) + x**2 + np.fmod(x, 3), atol=1e-5)
""",
    "doubles": """
m = spy.Module.load_from_source(device, "m", "double f(double x) { return exp(x) + log10(x + 1) + (isnan(x) ? 1 : 0); }")
x = np.linspace(0, 1, 33)
assert np.allclose(m.f(x, _result="numpy"), np.exp(x) + np.log10(x + 1))
""",
    "vectors": """
m = spy.Module.load_from_source(device, "m", "float f(float3 a, int3 b) { return dot(a * 2.0f + float3(b), a) + (any(b > 1) ? 1 : 0); }")
a, b = np.float32([[1, 2, 3], [4, 5, 6]]), np.int32([[0, 1, 1], [2, 0, 0]])
assert m.f(a, b, _result="numpy").tolist() == [((a[i] * 2 + b[i]) * a[i]).sum() + i for i in range(2)]
""",
    "matrices": """
m = spy.Module.load_from_source(device, "m", "float3 f(float3x3 a, float3 b) { return mul(a + a, b); }")
a, b = np.arange(9, dtype=np.float32).reshape(3, 3), np.float32([1, 2, 3])
assert np.allclose(np.array(m.f(spy.float3x3(a), spy.float3(*b)))[:3], 2 * a @ b)
""",
    "halves": """
m = spy.Module.load_from_source(device, "m", "half3 f(half3 a) { return a * half3(2.0h) + a; }")
assert m.f(np.float16([[1, 2, 3]]), _result="numpy").tolist() == [[3, 6, 9]]
""",
    "gradients": """
m = spy.Module.load_from_source(device, "m", '''[Differentiable] float f(float3 x)
{ float s = 1; [MaxIters(4)] for (int i = 0; i < 3; i++) s *= x[i]; return s; }''')
x = spy.Tensor.from_numpy(device, np.float32([[2, 3, 4]])).with_grads()
y = m.f(x).with_grads()
y.grad.copy_from_numpy(np.float32([1]))
m.f.bwds(x, _result=y)
assert np.allclose(x.grad.to_numpy(), [[12, 8, 6]])
""",
    "textures": """
m = spy.Module.load_from_source(device, "m", "float4 f(Texture2D<float4> t, SamplerState s, float2 at) { return t.SampleLevel(s, at, 0); }")
t = device.create_texture(format=spy.Format.rgba32_float, width=2, height=2, usage=spy.TextureUsage.shader_resource,
                          data=np.ones((2, 2, 4), np.float32))
s = device.create_sampler()
assert m.f(t, s, np.float32([[0.5, 0.5]]), _result="numpy").tolist() == [[1, 1, 1, 1]]
""",
    "groups": """
m = device.load_module_from_source("m", '''
groupshared int total;
[shader("compute")] [numthreads(33, 1, 1)] void main(uint3 id: SV_GroupThreadID, uniform RWStructuredBuffer<int> o)
{
    if (id.x == 0) total = 0;
    GroupMemoryBarrierWithGroupSync();
    InterlockedAdd(total, int(id.x));
    GroupMemoryBarrierWithGroupSync();
    o[id.x] = total + WaveActiveSum(1);
}''')
p = device.link_program([m], [m.entry_point("main")])
o = device.create_buffer(element_count=33, struct_size=4, usage=spy.BufferUsage.unordered_access)
device.create_compute_kernel(p).dispatch([33, 1, 1], o=o)
assert o.to_numpy().view(np.int32).tolist() == [33 * 16 + 1] * 33
""",
    "constants": """
m = spy.Module.load_from_source(device, "m", "static const float3 c = float3(1, 2, 3) * 2.0; float3 f(float3 x) { return x * c; }")
assert m.f(np.float32([[1, 1, 1]]), _result="numpy").tolist() == [[2, 4, 6]]
""",
}

WHOLE = """
m = spy.Module.load_from_source(device, "m", 'float f(float x) { __intrinsic_asm "CALL"; }')
x = np.linspace(-1, 1, 33, dtype=np.float32)
"""


@pytest.fixture
def run(tmp_path: Path):
    """Runs a text in a new process; the arguments of each start of the compiler."""
    log, wrapper, temporary = tmp_path / "log", tmp_path / "logged-g++", tmp_path / "temporary"
    wrapper.write_text(f'#!/bin/sh\necho "$@" >> {log}\nexec {GCC} "$@"\n')
    wrapper.chmod(0o755)
    temporary.mkdir(0o700)

    def run(text: str) -> list[str]:
        log.write_text("")
        variables = {"CXX": str(wrapper), "SLANGPY_CACHE_DIR": str(tmp_path / "cache"), "TMPDIR": str(temporary)}
        subprocess.run([sys.executable, "-c", PROGRAM, text], env={**os.environ, **variables}, check=True, timeout=300)
        assert not list(temporary.iterdir())
        begun = " -c "  # before the text was known: test_compile_ahead.py
        return [line for line in log.read_text().splitlines() if begun not in line]

    return run


@pytest.mark.parametrize("case", CASES)
def test_short_text_is_enough(case: str, run) -> None:
    starts = run(CASES[case])
    assert starts and all("-nostdlib" in line for line in starts)


def test_functions_that_need_the_headers(run) -> None:
    """`sin` of a float is another function with the headers of C++ than without; `cbrt` is none without."""
    starts = run(WHOLE.replace("CALL", "sin($0)") + 'assert np.allclose(m.f(x, _result="numpy"), np.sin(x))')
    assert len(starts) == 1 and "-nostdlib" not in starts[0]
    starts = run(WHOLE.replace("CALL", "cbrt($0)") + 'assert np.allclose(m.f(x, _result="numpy"), np.cbrt(x))')
    assert ["-nostdlib" in line for line in starts] == [True, False]


def test_errors_are_those_of_the_whole_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    device = spy.Device(type=spy.DeviceType.cpu)
    module = spy.Module.load_from_source(
        device, "broken", 'float h(float x) { __intrinsic_asm "no_such_function($0)"; }'
    )
    with pytest.raises(RuntimeError, match="no_such_function"):
        module.h(1.0)
    [kept] = tmp_path.glob("slangpy-*/kernel.cpp")
    assert b"#include <math.h>" in kept.read_bytes()
    device.close()


def test_text_without_a_prelude_stays_as_it_is() -> None:
    assert short_text(b"int f() { return 1; }") is None
