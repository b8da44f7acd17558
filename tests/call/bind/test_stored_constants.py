"""Constants that are stored to several components at once, against NumPy. Slang writes their values without brackets there."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

import slangpy as spy
from slangpy.compiler.text.stores import with_whole_stores
from slangpy.testing import CudaCodegen, nvrtc_available

K, L, F = np.array([7, -3], np.int32), np.array([1, 4, -2], np.int32), np.array([1.5, -2.25], np.float32)
W = np.array([2, 7, 1, 8], np.float32)
HEAD = """
static const int2 K = int2(3, -1) + int2(4, -2);
static const int3 L = int3(1, 4, -2);
static const float2 F = float2(0.75f, -1.125f) * 2;
static const float4 W = float4(1, 6, 0, 7) + 1;
static const int2x2 M = int2x2(1, 2, 3, 4) + int2x2(2, 2, 2, 2);
static const int N = 2 + K.x;
void store(inout int2 v, int n) { v.yx = K | 8; v.x += n; }
"""


@dataclass(frozen=True)
class Row:
    """What is stored (Slang) in a variable of a type that holds n, and what that is (NumPy)."""

    type: str
    swizzle: str
    slang: str
    numpy: np.ndarray


ROWS = [
    Row("int2", "yx", "K + 1", K + 1),
    Row("int2", "yx", "1 - K", 1 - K),
    Row("int2", "xy", "(K | 1) * K", (K | 1) * K),
    Row("int2", "yx", "~K * (K | 1)", ~K * (K | 1)),
    Row("int2", "yx", "K - (K - (K - 2))", K - (K - (K - 2))),
    Row("int2", "yx", "(K ^ 5) & ~(K + 2)", (K ^ 5) & ~(K + 2)),
    Row("int2", "yx", "-K", -K),
    Row("int2", "yx", "~K", ~K),
    Row("int2", "yx", "-(K | 3)", -(K | 3)),
    Row("int2", "yx", "K << 2", K << 2),
    Row("int2", "yx", "K >> 1", K >> 1),
    Row("int2", "yx", "K / 2", np.array([3, -1])),
    Row("int2", "yx", "K % 4", np.array([3, -3])),
    Row("int2", "yx", "5", np.array([5, 5])),
    Row("int2", "yx", "int2(5) + int2(K.x)", np.array([12, 12])),
    Row("int2", "yx", "int2(F) + K", np.array([8, -5])),
    Row("int2", "yx", "K.yx * 3", K[::-1] * 3),
    Row("int2", "yx", "N * K", 9 * K),
    Row("int2", "yx", "select(K > 0, K, K + 2)", np.where(K > 0, K, K + 2)),
    Row("int2", "yx", "max(K, 1) + 2", np.maximum(K, 1) + 2),
    Row("int2", "yx", "M[1] + K", np.array([5, 6]) + K),
    Row("int2", "yx", "K", K),
    Row("int3", "zx", "K * K", K * K),
    Row("int3", "zyx", "L * L - 1", L * L - 1),
    Row("int3", "yz", "L.zx + K", L[[2, 0]] + K),
    Row("int4", "wxz", "L << L.y", L << 4),
    Row("uint2", "yx", "uint2(K) >> 20u", K.astype(np.uint32) >> 20),
    Row("bool2", "yx", "K < int2(7, 0)", K < [7, 0]),
    Row("bool2", "yx", "!(K < int2(7, 0))", ~(K < [7, 0])),
    Row("bool2", "yx", "K > 0 && F > 0", (K > 0) & (F > 0)),
    Row("float2", "yx", "F * 2 - float2(K)", F * 2 - K),
    Row("float2", "yx", "-F / 4", -F / 4),
    Row("float2", "yx", "N * F", 9 * F),
    Row("float4", "wzyx", "W * W + 1", W * W + 1),
    Row("float4", "zw", "W.xz - F", W[[0, 2]] - F),
    Row("float3", "zxy", "W.xyz + W.w", W[:3] + 8),
    Row("double2", "yx", "double2(F) * 3", F * 3),
    Row("int64_t2", "yx", "int64_t2(K) * 3", K * 3),
    Row("int16_t2", "yx", "int16_t2(K) * int16_t(3)", K * 3),
    Row("half2", "yx", "half2(F) + half(1)", F + 1),
    Row("float2", "yx", "mul(float2x2(1, 2, 3, 4), F) + 1", np.array([[1, 2], [3, 4]]) @ F + 1),
]


def expected(row: Row, n: int) -> list[float]:
    size = int(row.type[-1])
    value = np.full(size, n != 0 if "bool" in row.type else n, np.float64)
    value[["xyzw".index(component) for component in row.swizzle]] = row.numpy
    return [*value, *[0.0] * (4 - size)]


def source(rows: list[Row]) -> str:
    constants = "".join(f"static const {r.type[:-1]}{len(r.swizzle)} C{i} = {r.slang};\n" for i, r in enumerate(rows))
    lines = []
    for i, row in enumerate(rows):
        lines.append(f"    {row.type} v{i} = {row.type}({row.type[:-1]}(n)); v{i}.{row.swizzle} = C{i};")
        lines += [f"    r[{4 * i + k}] = float(v{i}[{k}]);" for k in range(int(row.type[-1]))]
    body = "\n".join(lines)
    return f"{HEAD}{constants}float[{4 * len(rows)}] stored(int n)\n{{\n    float r[{4 * len(rows)}] = {{}};\n{body}\n    return r;\n}}\n"


LACKS = {"hlsl": ("int16_t", "half", "double"), "spirv": ("select", "K < ", "K > 0")}
"""What devices lack: Slang writes no SPIR-V of constants that are made by comparisons."""

OTHERS = """
struct S { int2 a[2]; int2x2 m; }
static const int2 C = K * (K | 1);
float[16] others(int n, int at)
{
    float r[16] = {};
    S s = {};
    s.a[at].yx = C;
    s.m[at].yx = C;
    s.m._m01_m10 = C;
    int2 v = n;
    store(v, n);
    int2 copy = C;
    int2 w = n;
    w.yx = copy;
    int3 z = n;
    z.zx = n > 2 ? C : C;
    int2 numbers = n;                      // no constant: what is written there is right
    numbers.y = N * K.x; numbers.x = N * K.y;
    r = { s.a[0].x, s.a[0].y, s.a[1].x, s.a[1].y, s.m[0].x, s.m[0].y, s.m[1].x, s.m[1].y, v.x, v.y, w.x, w.y, z.x, z.z,
          numbers.x, numbers.y };
    return r;
}
"""


@pytest.mark.needs_kernels
def test_values(device: spy.Device) -> None:
    lacks = LACKS.get(device.compile_target.format, ())
    rows = [row for row in ROWS if not any(part in f"{row.type} {row.slang}" for part in lacks)]
    module = spy.Module.load_from_source(device, "stored_constants", source(rows) + OTHERS)
    got = np.asarray(module.stored(-3)).reshape(-1, 4)
    for row, values in zip(rows, got, strict=True):
        assert values.tolist() == expected(row, -3), row
    c = (K * (K | 1)).tolist()
    x, y = (K | 8).tolist()
    want = [0, 0, c[1], c[0], 0, c[0], c[1], c[0], y + 3, x, c[1], c[0], c[1], c[0], 9 * -3, 9 * 7]
    assert list(module.others(3, 1)) == want


@pytest.mark.null
@pytest.mark.skipif(not nvrtc_available(), reason="NVRTC is not installed")
def test_cuda_code() -> None:
    generator = CudaCodegen("sm_80")
    module = generator.load_from_source("stored_constants_cuda", source(ROWS) + OTHERS)
    generator.build(module.stored, -3)
    generator.build(module.others, 3, 1)


@pytest.mark.null
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a + int(1).?", "(a + int(1)).?"),
        ("n * a.?", "n * a.?"),
        ("n * (a | b).?", "n * (a | b).?"),
        ("a * n * b.?", "(a * n * b).?"),
        ("- a.?", "- a.?"),
        ("(Vector<int32_t, 2> )int(5).?", "((Vector<int32_t, 2> )int(5)).?"),
        ("(int32_t)a.?", "(int32_t)a.?"),
        ("f_0(a).? * b.?", "f_0(a).? * b.?"),
        ("n << 2.?", "(n << 2).?"),
        ("a.x * b.?", "a.x * b.?"),
        ("unknown * b.?", "unknown * b.?"),
        ("'", "'"),
    ],
)
def test_text(before: str, after: str) -> None:
    """What a number times a vector is, is left; `?` stands for the components."""
    head = b"Vector<int32_t, 2>  a = b_0; Vector<int32_t, 2>  b = a; int32_t n = 3;\n"

    def stores(value: str) -> bytes:
        return head + f"    v.y = {value.replace('?', 'x')};\n    v.x = {value.replace('?', 'y')};\n".encode()

    assert with_whole_stores(stores(before)) == stores(after)
