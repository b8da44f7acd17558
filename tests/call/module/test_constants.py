"""Constants of a module: vectors, matrices, structs and tables, made of literals, casts, other constants and functions.

CUDA's compiler fills no variable at run time, so what Slang emits for some of them is mended; see cuda/constants.h."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from calls_support import source
from tiers import gate

import slangpy as spy
from slangpy import _native
from slangpy.base import libslang
from slangpy.testing import CudaCodegen, nvrtc_available

pytestmark = pytest.mark.one

ROOT = float(np.sqrt(np.float32(3)))
# declarations, expression of `float3 x` (components 0..5), what it is
CASES: dict[str, tuple[str, str, Any]] = {
    "splat": ("static const float3 c = float3(2);", "x * c", lambda x: 2 * x),
    "cast": ("static const int3 i = int3(1, 2, 3); static const float3 c = float3(i);", "x * c", lambda x: x * [1, 2, 3]),
    "function": ("static const float3 c = normalize(float3(int3(0, 3, 4)));", "x * c", lambda x: x * [0, 0.6, 0.8]),
    "chain": (
        "static const int3 a = int3(2); static const float3 b = float3(a); static const float3 c = b * b + float3(a);"
        "static const float3 d[2] = { c, b };",
        "x * c + d[int(x.x) % 2]",
        lambda x: 6 * x + np.where(int(x[0]) % 2, 2, 6),
    ),
    "table": (
        "static const float3 c[3] = { float3(1, 2, 3), float3(4), float3(int3(5, 6, 7)) };",
        "c[int(x.x) % 3]",
        lambda x: np.array([[1, 2, 3], [4, 4, 4], [5, 6, 7]])[int(x[0]) % 3],
    ),
    "table_of_functions": (
        "static const float c[3] = { 1, 2, sqrt(3.0) };",
        "x * c[int(x.x) % 3]",
        lambda x: x * [1, 2, ROOT][int(x[0]) % 3],
    ),
    "tables": (
        "static const float2 c[2][2] = { { float2(1), float2(2, 3) }, { float2(int2(4)), float2(5) } };",
        "x * c[int(x.x) % 2][int(x.y) % 2].y",
        lambda x: x * np.array([[1, 3], [4, 5]])[int(x[0]) % 2, int(x[1]) % 2],
    ),
    "matrix": (
        "static const float2x2 c[2] = { float2x2(1), float2x2(1, 2, 3, 4) * 2 };",
        "x * c[int(x.x) % 2][1].x",
        lambda x: x * [1, 6][int(x[0]) % 2],
    ),
    "struct": (
        "struct S { float a; float3 b; int c[2]; }; static const S c = { sin(2.0), float3(int3(3)), { 1, 2 } };",
        "c.a * x + c.b + c.c[int(x.x) % 2]",
        lambda x: np.sin(2.0) * x + 3 + [1, 2][int(x[0]) % 2],
    ),
    "structs": (
        "struct S { float a; float3 b; }; static const S c[2] = { { sin(2.0), float3(3) }, { 2, float3(1) } };",
        "c[int(x.x) % 2].a * x + c[1].b",
        lambda x: [np.sin(2.0), 2][int(x[0]) % 2] * x + 1,
    ),
    "passed": (
        "static const float3 c[2] = { float3(1), sqrt(float3(3)) };"
        "[noinline] float3 g(float3 t[2], int i) { return t[i % 2] + t[(i + 1) % 2]; }",
        "x * g(c, int(x.x))",
        lambda x: x * (1 + ROOT),
    ),
    "copied": (
        "static const float c[2] = { 1, sqrt(3.0) };"
        "float3 g(float3 x) { float t[2] = c; t[int(x.x) % 2] += 1; return x * t[0] + t[1]; }",
        "g(x)",
        lambda x: x * (1 + (int(x[0]) + 1) % 2) + ROOT + int(x[0]) % 2,
    ),
    "mixed": (
        "static const int3 d = int3(7, 8, 9) % 4; static const float3 c[2] = { -float3(1, 2, 3) * 2, 6 / float3(3) };",
        "c[int(x.x) % 2] + d",
        lambda x: np.array([[-2, -4, -6], [2, 2, 2]])[int(x[0]) % 2] + [3, 0, 1],
    ),
    "small": (
        "static const int16_t4 g = int16_t4(int4(-3)); static const int8_t2 e = int8_t2(1, -2);"
        "static const uint8_t d[2] = { 3, 255 }; static const bool b[2] = { true, false };",
        "(b[int(x.x) % 2] ? x : -x) * d[int(x.x) % 2] + float(g.w) + float(e.y)",
        lambda x: (x, -x)[int(x[0]) % 2] * [3, 255][int(x[0]) % 2] - 5,
    ),
    "wide": (
        "static const int64_t2 d = int64_t2(int2(3)); static const int64_t c[2] = { -5, 1ll << 20 };",
        "x * float(c[int(x.x) % 2]) + float(d.x)",
        lambda x: x * [-5, 2**20][int(x[0]) % 2] + 3,
    ),
    "local": (
        "float3 g(float3 x) { static const float3 t[2] = { float3(int3(4)), float3(-2.5e-1) }; return t[int(x.x) % 2]; }",
        "g(x)",
        lambda x: np.full(3, [4, -0.25][int(x[0]) % 2]),
    ),
    "generic": (
        "struct G<T : IFloat> { static const vector<T, 3> c = vector<T, 3>(T(2)); static const T t[2] = { T(1), T(3) }; }",
        "x * G<float>.c * G<float>.t[int(x.x) % 2]",
        lambda x: 2 * x * [1, 3][int(x[0]) % 2],
    ),
    "half": (
        "static const half3 c = half3(float3(int3(1, 2, 3))); static const half4 e = half4(half(0.1)) * half(2);"
        "static const half2 d[2] = { half2(half(1.0 / 3.0)), half2(65504, 6.0e-8) }; static const half z[2] = { half(0.0), half(-0.0) };",
        "x * float3(c) + float(d[int(x.x) % 2].x) + float(d[int(x.x) % 2].y) + float(e.w) / float(z[int(x.x) % 2] + half(1))",
        lambda x: x * [1, 2, 3]
        + [2 * float(np.float16(1 / 3)), 65504 + float(np.float16(6e-8))][int(x[0]) % 2]
        + 2 * float(np.float16(0.1)),
    ),
}  # fmt: skip


def text_of(name: str) -> str:
    declarations, expression, _ = CASES[name]
    return f"{declarations}\nfloat3 f(float3 x) {{ return {expression}; }}"


@pytest.mark.needs_kernels
@pytest.mark.parametrize("name", CASES)
def test_values(device: spy.Device, name: str) -> None:
    if name == "half" and not device.has_feature(spy.Feature.half):
        pytest.skip("no half on this device")
    if name == "small" and device.type is spy.DeviceType.d3d12:
        pytest.skip("no 8-bit integers in HLSL")
    f = source(device, f"constants_{name}", text_of(name)).f
    x = np.arange(18, dtype=np.float32).reshape(6, 3)
    np.testing.assert_allclose(f(x, _result="numpy"), [CASES[name][2](row) for row in x], rtol=1e-5)


@pytest.mark.skipif(not nvrtc_available(), reason="NVRTC is not installed")
@pytest.mark.parametrize("name", gate(CASES, lambda name: name in ("splat", "table_of_functions", "structs", "mixed", "small", "half")))
def test_compile_with_nvrtc(name: str) -> None:
    codegen = CudaCodegen("sm_80")
    module = codegen.load_from_source(f"cuda_constants_{name}", text_of(name))
    assert codegen.build(module.f, np.zeros((4, 3), np.float32)).pipeline[:4] == b"\x7fELF"


@pytest.mark.skipif(not nvrtc_available(), reason="NVRTC is not installed")
def test_tables_stay_in_memory() -> None:
    """A table of constants is filled by the compiler: no thread fills one of its own. Its last value is in the code."""
    code = CudaCodegen("sm_80")
    text = "static const float3 c[3] = { float3(1, 2, 3), float3(4), float3(5, 6, 31337.25) };"
    module = code.load_from_source("cuda_table", f"{text}\nfloat3 f(float3 x) {{ return x * c[int(x.x) % 3]; }}")
    view = code.build(module.f, np.zeros((4, 3), np.float32))
    row = np.array([4, 4, 4, 5, 6, 31337.25], np.float32).tobytes()
    assert row in view.pipeline


@pytest.mark.skipif(not nvrtc_available(), reason="NVRTC is not installed")
def test_what_is_no_constant() -> None:
    """Names in strings, comments and macros are left alone, and variables that need no value."""
    text = b"""
// __device__ static const int3 _S1 = make_int3(
/* __device__ static const int3 _S2 = f(; */
#define WORDS __device__ static const int _S3 = f(
__device__ static const char * const words = "__device__ static const int _S4 = f(;";
__device__ int count;
__device__ inline int g() { return 3; }
__device__ static const int _S5 = g();
extern "C" __global__ void k(int * out, const char ** w) { *out = _S5 + count; *w = "_S5"; *w = words; }
"""
    with pytest.raises(RuntimeError, match="failed to compile"):
        _native.cuda_compile(text.replace(b"g();", b"h();"), "k", "sm_80")
    prelude = libslang.prelude("cuda").encode()
    assert _native.cuda_compile(prelude + text, "k", "sm_80")[:4] == b"\x7fELF"
