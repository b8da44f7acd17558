"""Elements written at two indices of one value: the reverse derivative of Slang 2026.12 used a name that it did not declare
(C++, CUDA), or ended in an internal error (SPIR-V). Sources are changed before it sees them."""

from __future__ import annotations

import pytest
from gradient_forms import check_forms

import slangpy as spy

pytestmark = pytest.mark.one

LOOP = "[MaxIters(4)] for (int i = 0; i < n + 1; i++)"
M = "float2x2 m = float2x2(v.xy, v.yz);"
T = "float3x3 t = float3x3(v, v.yzx, v.zxy * b);"
A = "float m[2][2] = { { v.x, v.y }, { a, v.z } };"
R = "return m[0][0] * m[0][1] + m[1][1] * m[1][0] * a;"
R3 = "return m[0][0][1] * m[1][0][1] + m[0][1][0] * m[1][1][1] * a + m[0][0][0] * m[1][1][0];"
THREE = "float2x2 m[2] = { float2x2(v.xy, v.yz), float2x2(v.zx, v.yy * a) };"
FORMS = {
    "set": f"int k = n - 1; {M} m[k][k] = a * b; {R}",
    "added to": f"int k = n - 1; {M} m[k][k] += a * b; m[k][k] *= b; {R}",
    "its own value": f"int k = n - 1; {M} m[k][k] = m[k][k] * a; {R}",
    "stepped": f"int k = n - 1; {M} ++m[k][k]; m[k][k]--; m[k][k] *= a; {R}",
    "out": f"int k = n - 1; {M} put(a, m[k][k]); {R}",
    "inout": f"int k = n - 1; {M} change(a, m[k][k]); {R}",
    "a macro": f"int k = n - 1; {M} CHANGE(a, m[k][k]); {R}",
    "read beside": f"int k = n - 1; {M} float x = m[k][k]; m[k][k] = a * x; m[0][1] *= m[k][k] + x; {R}",
    "swapped": f"int k = n - 1; {M} float x = m[k][k]; m[k][k] = m[1 - k][1 - k]; m[1 - k][1 - k] = x * a; {R}",
    "array": f"int k = n - 1; {A} m[k][k] = a * b; {R}",
    "vectors": f"int k = n - 1; float2 m[2] = {{ v.xy, v.yz }}; m[k][k] = a * b; {R}",
    "structs": "int k = n - 1; S m[2] = { { v.xy, { a, b } }, { v.yz, { b, a } } }; m[k].p[k] = a * b; m[n].q[n] *= a; "
    "return m[0].p[0] * m[1].p[1] * m[1].q[1] + m[0].q[1] * m[0].p[1];",
    "three": f"int k = n - 1; {THREE} m[k][k][k] = a * b; {R3}",
    "the outer two": f"int k = n - 1; {THREE} m[k][n][k] = a * b; {R3}",
    "the inner two": f"int k = n - 1; {THREE} m[n][k][k] = a * b; {R3}",
    "rows": f"int k = n - 1; {THREE} m[k][k] = v.xy * a; m[n * n][n * n].x = b; {R3}",
    "sums": f"int k = n - 1; {M} m[k + 1][k + 1] = a * b; m[(n + 1) % 2][(n + 1) % 2] *= a; {R}",
    "brackets": f"int k = n - 1; {M} m[(k)][k] = a * b; {R}",
    "a copy": f"int k = n - 1, j = k; {M} m[k][j] = a * b; {R}",
    "the same sum": f"int k = n - 1; {M} m[k][n - 1] = a * b; {R}",
    "unsigned": f"uint k = uint(n) - 1; {M} m[k][k] = a * b; {R}",
    "other integers": f"int64_t k = n - 1; int16_t j = int16_t(n * n); {M} m[k][k] = a * b; m[j][j] *= a; {R}",
    "a bool": f"bool k = n > 3; {M} m[int(k)][int(k)] = a * b; {R}",
    "components": f"uint2 k = uint2(n - 1, n); {M} m[k.x][k.x] = a * b; {R}",
    "elements": f"int k[2] = {{ n - 1, n }}; {M} m[k[0]][k[0]] = a * b; {R}",
    "a function": f"{M} m[less(n)][less(n)] = a * b; {R}",
    "capitals": f"int K = n - 1; {M} m[K][K] = a * b; {R}",
    "parameters": f"{M} m[n][n] = a * b; {R}",
    "a loop": f"{M} {LOOP} m[i][i] = m[i][i] * a + b; {R}",
    "a loop that stays one": f"{M} [unroll] for (int i = 0; i < 2; i++) m[i][i] = m[i][i] * a + b; {R}",
    "a loop of 3": f"{T} [MaxIters(4)] for (int i = 0; i < n + 2; i++) {{ t[i][i] = sin(t[i][i] * a); t[i][(i + 1) % 3] *= b; }} "
    "return t[0][0] * t[1][1] + t[2][2] * t[0][1] + t[1][2];",
    "a unit matrix": "float4x4 u = float4x4(0.0f); [MaxIters(4)] for (int i = 0; i < 4; i++) { int j = i; u[i][j] = v[i % 3]; } "
    "return u[0][0] * u[1][1] + u[2][2] * u[3][3] * a;",
    "two loops": f"{M} {LOOP} [MaxIters(4)] for (int j = 0; j < 2; j++) m[i][j] = m[i][j] * a + b; {R}",
    "while": f"{M} int i = 0; [MaxIters(4)] while (i < n + 1) {{ m[i][i] *= a; i++; }} {R}",
    "branches": f"int k = n - 1; {M} if (a > 0.0f) {{ if (n > 3) m[k][k] = b; else m[k][k] = a * b; }} {R}",
    "switch": f"{M} switch (n) {{ case 1: {{ int k = n - 1; m[k][k] = a * b; break; }} default: m[0][0] = b; }} {R}",
    "after others": f"int k = n - 1; {M} m[0][1] = a; m[n][k] *= b; m[k][k] = a * b; m[k][n] += a; {R}",
    "parameter of a function": f"{M} m = filled(m, a, n); {R}",
    "generic": f"{M} fill(m, a, n); {R}",
    "method": f"G g; g.m = float2x2(v.xy, v.yz); g.fill(a, n); {M} m *= g.m; {R}",
    "subscript": f"G g; g.m = float2x2(v.xy, v.yz); g[n - 1] = a * b; {M} m *= g.m; {R}",
    "method of an element": "int k = n - 1; P m[2][2]; m[0][0].x = v.x; m[0][1].x = v.y; m[1][0].x = v.z; m[1][1].x = b; m[k][k].step(a); "
    "return m[0][0].x * m[0][1].x + m[1][0].x * m[1][1].x;",
}  # fmt: skip
HEAD = """
struct S : IDifferentiable { float2 p; float q[2]; }
struct P : IDifferentiable { float x; [Differentiable] [mutating] void step(float a) { x = sin(x * a); } }
struct G : IDifferentiable
{
    float2x2 m;
    [Differentiable] [mutating] void fill(float a, int n) { int k = n * n; m[k][k] = a; this.m[k][k] += a * m[k][k]; }
    __subscript(int n) -> float
    {
        [Differentiable] get { return m[n][n]; }
        [Differentiable] set { int k = n * 2; m[k][k] = newValue; }
    }
}
#define CHANGE(a, x) change(a, x)
[ForceInline] int less(int n) { return n - 1; }
[Differentiable] void put(float a, out float x) { x = a * a; }
[Differentiable] void change(float a, inout float x) { x = x * a; }
[Differentiable] float2x2 filled(float2x2 m, float a, int n) { int k = n * n; m[k][k] = a * m[k][k]; return m; }
[Differentiable] void fill<let N : int>(inout matrix<float, N, N> m, float a, int n) { int k = n * n; m[k][k] = a * m[k][k]; }
"""


@pytest.mark.needs_kernels
@pytest.mark.filterwarnings("ignore:.* uses 'm.k..k.':RuntimeWarning")  # of the macro
def test_gradients(device: spy.Device) -> None:
    check_forms(device, "diagonals", HEAD, FORMS)
