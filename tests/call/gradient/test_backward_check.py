"""Reads of one variable by a run-time index and another: Slang loses a share of the gradient. Sources are rewritten, and
where they cannot be, the first call warns."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import slangpy as spy

pytestmark = [pytest.mark.needs_kernels, pytest.mark.one]

PICKS = """
import slangpy;
[Differentiable] float pick(float v[3], int i) { return v[i]; }
[Differentiable] float pick(float3 v, int i) { return v[i]; }
[Differentiable] float3 pick(float3x3 v, int i) { return v[i]; }
[Differentiable] void put(float a, out float x) { x = a * a; }
[Differentiable] void change<T>(vector<T, 3> w, float a, inout float x) { x *= a; }
"""
ARRAY, VECTOR, MATRIX = "float v[3]", "float3 v", "float3x3 v"
MENDED = [
    (ARRAY, "return v[n % 3] + sin(v[0]) * a;"),
    (ARRAY, "return sin(v[LAST]) * a + v[n % 3];"),
    (ARRAY, "return v[n % 3] + sin(v[n % 2]) * a;"),
    (ARRAY, "float w[3] = v; return w[n % 3] + sin(v[0]) * a;"),
    (ARRAY, "float s = v[n % 3]; [ForceUnroll] for (int i = 0; i < 3; i++) s += sin(v[i]) * a; return s;"),
    (ARRAY, "float s = v[n % 3]; [MaxIters(3)] for (int i = 0; i < 3; i++) s += sin(v[0]) * a; return s;"),
    (ARRAY, "if (n > 5) return a; return v[n % 3] + sin(v[0]) * a;"),
    (ARRAY, "v[0] += v[n % 3] * a; return v[0] * a + v[1];"),
    (ARRAY, "float q = v[n % 3]; v[1] = a; return q * a + v[0];"),
    (VECTOR, "return v[n % 3] + sin(v[0] * a);"),
    (VECTOR, "float q = v[n % 3]; v.x += sin(a); return q * a + v.x;"),
    (VECTOR, "float3 w = v; float q = w[n % 3]; v.x += sin(a); return q * a + v.x;"),
    (MATRIX, "return v[n % 3].x * a + v[0][0];"),
    (MATRIX, "return v[0][n % 3] * a + v[0][0];"),
    (MATRIX, "float3x3 w = v * a; return w[n % 3].x + w[0][0];"),
]
LOOPS = [
    "x[n % 2] -= x[i] * b;",
    "x[n % 2] = x[n % 2] - x[i] * b;",
    "float t = x[i]; x[n % 2] -= t * b;",
    "x[i] += x[n % 2] * b;",
    "x[n % 2] *= x[i];",
    "x[n % 2] += x[1] * b;",
    "put(x, n % 2, x[n % 2] - x[i] * b);",
    "s += sin(x[i]) * b + x[n % 2]; x[0] = s;",
    "s += sin(x[i]) * b + x[n % 2]; x[n % 2] = s;",
    "s += x[n % 2]; x[i] += b;",
    "s += x[0]; x[i] += b * s;",
    "s += x[i]; x[0] += b * s;",
    "[MaxIters(2)] for (int j = 0; j < 2; j++) x[j] += x[i] * b;",
    "x[(i + 1) % 2] += x[i] * b;",
    "if (n > 0) s += x[i]; x[n % 2] += b * s;",
]
"""Bodies of a loop that reads and writes elements of one variable."""
RIGHT = [
    (ARRAY, "return pick(v, n % 3) + sin(v[0]) * a;"),
    (ARRAY, "return pick(v, n % 3) + sin(v[n % 2]) * a;"),
    (VECTOR, "float q = pick(v, n % 3); v.x += sin(a); return q * a + v.x;"),
    (MATRIX, "return pick(v, n % 3).x * a + v[0][0];"),
    (ARRAY, "return v[0] + sin(v[0]) * a + v[1] * v[0];"),
    (ARRAY, "return v[n % 3] + sin(v[n % 3]) * a;"),
    (ARRAY, "float s = 0; [MaxIters(3)] for (int i = 0; i < 3; i++) s += sin(v[i]) * v[0] * a; return s;"),
    (ARRAY, "float s = 0; [MaxIters(3)] for (int i = 0; i < 3; i++) s += sin(v[i]) * a; return s + v[0];"),
    (ARRAY, "float s = 0; if (n < 1) s = v[n % 3] * a; else s = v[0]; return s;"),
    (ARRAY, "return a > 0 ? v[n % 3] * a : v[0];"),
    (ARRAY, "float w[3]; w[0] = v[0] * a; w[1] = v[1]; w[2] = v[2]; return w[n % 3] + sin(w[0]);"),
    (VECTOR, "return v[n % 3] + sin(v.x * a);"),
    (VECTOR, "v.x += sin(a); float q = v[n % 3]; return q * a + v.x;"),
    (MATRIX, "return v[0][n % 3] * a + v[1][0] * v[2][1];"),
    (MATRIX, "put(a, v[n % 3][n % 2]); return v[0][0] * a + v[1][1];"),
    (ARRAY, "change(float3(a, 1, 2), a, v[n % 3]); return v[0] * a + v[1];"),
    (ARRAY, "++v[n % 3]; return v[0] * a + v[1];"),
]


@pytest.fixture(scope="module")
def cpu_device() -> Any:
    return spy.create_device(type=spy.DeviceType.cpu)


def groups(cases: list[tuple[str, str]]) -> list[Any]:
    """Bodies of one kind of parameter: their kernels are compiled once."""
    return [
        pytest.param(kind, [body for other, body in cases if other == kind], id=kind) for kind in (ARRAY, VECTOR, MATRIX)
    ]


def gradients(device: Any, kind: str, bodies: list[str]) -> tuple[bool, list[str]]:
    """Whether the reverse derivative of a weighted sum of functions is right for some run-time indices, and the warnings
    of its first call. A share that one of them loses is missing in the sum."""
    source = f"{PICKS}static const int LAST = 2;\n"
    for i, body in enumerate(bodies):
        source += f"[Differentiable] float f{i}({kind}, float a, int n) {{ {body} }}\n"
    terms = " + ".join(f"{1 + 0.5 * i} * f{i}(v, a, n)" for i in range(len(bodies)))
    source += f"[Differentiable] float f({kind}, float a, int n) {{ return {terms}; }}"
    module = spy.Module.load_from_source(device, "mixed_indices", source)
    value = np.arange(1, 10, dtype=np.float32).reshape(3, 3) / 7
    given = {ARRAY: value[0].tolist(), VECTOR: spy.float3(*value[0]), MATRIX: spy.float3x3(value)}[kind]
    right = True
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for n in (0, 1, 2):
            report = spy.check_gradients(module.f, given, 0.7, n, raise_on_error=False)
            right = right and not any("bwds" in row.wrong for row in report.wrong)
    return right, [str(w.message) for w in seen if "loses the share" in str(w.message)]


@pytest.mark.parametrize(("kind", "bodies"), groups(MENDED))
def test_pairs_are_mended(cpu_device, kind, bodies):
    assert gradients(cpu_device, kind, bodies) == (True, [])


@pytest.mark.parametrize("declared", ["float x[2] = { a, 1.27f * b };", "float2 x = float2(a, 1.27f * b);"])
def test_loops_are_mended(cpu_device, declared):
    put = "[Differentiable] void put(inout {} v{}, int i, float e) {{ v[i] = e; }}\n"
    source = put.format("float", "[2]") if "[" in declared else put.format("float2", "")
    for number, body in enumerate(LOOPS):
        source += (
            f"[Differentiable] float f{number}(float a, float b, int n) {{ {declared} float s = a; "
            f"[MaxIters(2)] for (int i = 0; i < 2; i++) {{ {body} }} return x[1] * a + x[0] + s * b; }}\n"
        )
    for first in range(0, len(LOOPS), 5):
        terms = " + ".join(f"{1 + 0.5 * i} * f{first + i}(a, b, n)" for i in range(5))
        source += f"[Differentiable] float sum{first}(float a, float b, int n) {{ return {terms}; }}\n"
    module = spy.Module.load_from_source(cpu_device, f"mixed_loops_{'[' in declared}", source)
    for first in range(0, len(LOOPS), 5):
        for n in (0, 1):
            report = spy.check_gradients(module[f"sum{first}"], 0.7, 0.3, n, raise_on_error=False)
            assert not any("bwds" in row.wrong for row in report.wrong), (LOOPS[first : first + 5], n, str(report))


def test_mended_on_each_device(device):
    source = "[Differentiable] float f(float v[3], float a, int n) { return v[n % 3] + sin(v[0]) * a; }"
    module = spy.Module.load_from_source(device, "mixed_each", source)
    v = spy.Tensor.from_numpy(device, np.array([[0.1, 0.2, 0.3]], np.float32)).with_grads()
    y = spy.Tensor.from_numpy(device, np.zeros(1, np.float32)).with_grads(
        grad_in=spy.Tensor.from_numpy(device, np.ones(1, np.float32))
    )
    module.f.bwds(v, 2.0, 0, _result=y)
    np.testing.assert_allclose(v.grad.to_numpy(), [[1 + 2 * np.cos(0.1), 0, 0]], rtol=1e-5)


@pytest.mark.parametrize("kind", ["float v[N]", "vector<float, N> v"])
def test_sizes_of_generics_are_mended(cpu_device, kind):
    source = (
        f"[Differentiable] float g<let N : int>({kind}, int n) {{ return v[n % N] + sin(v[0]); }}\n"
        f"[Differentiable] float f({kind.replace('N', '3')}, int n) {{ return g(v, n); }}"
    )
    module = spy.Module.load_from_source(cpu_device, "mixed_generics", source)
    value = [0.1, 0.2, 0.3] if "[" in kind else spy.float3(0.1, 0.2, 0.3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert spy.check_gradients(module.f, value, 0)


@pytest.mark.parametrize(("kind", "bodies"), groups(RIGHT))
def test_right_ones_are_silent(cpu_device, kind, bodies):
    assert gradients(cpu_device, kind, bodies) == (True, [])


def warned(device: Any, source: str, *args: Any) -> list[str]:
    module = spy.Module.load_from_source(device, "mixed_indices", "import slangpy;\n" + source)
    x = spy.Tensor.from_numpy(device, np.arange(33, dtype=np.float32)).with_grads()
    y = module.f(*args, x).with_grads()
    before, device.check_gradients = device.check_gradients, False  # debug layers ask for the check of the numbers
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        module.f.bwds(*args, x, _result=y)
        module.f.bwds(*args, x, _result=y)
    device.check_gradients = before
    return [str(w.message) for w in seen]


def test_what_is_called_is_searched_and_told_once(device):
    """What macros read is not changed; it is searched in methods, too."""
    called = (
        "#define AT(v, i) v[i]\n"
        "struct S : IDifferentiable { float k; "
        "[Differentiable] float g(float v[2], int n) { return AT(v, n % 2) * AT(v, 0); } }\n"
    )
    body = "S s = { x }; float w[2] = { x, x }; return s.g(w, n);"
    seen = warned(device, f"{called}[Differentiable] float f(int n, float x) {{ {body} }}", 0)
    assert len(seen) == 1 and "'g' uses 'AT(v, n % 2)' and 'AT(v, 0)' of one value 'v'" in seen[0], seen


def test_default_functions_of_interfaces_are_mended(device):
    source = (
        "interface I : IDifferentiable { [Differentiable] float g(float v[2], int n) { return v[n % 2] * v[0]; } }\n"
        "struct S : I { float k; }\n"
        "[Differentiable] float f(int n, float x) { S s = { x }; float w[2] = { x, 2 * x }; return s.g(w, n); }"
    )
    assert warned(device, source, 0) == []
    module = spy.Module.load_from_source(device, "mixed_defaults", source)
    x = spy.Tensor.from_numpy(device, np.linspace(0.5, 2, 33, dtype=np.float32)).with_grads()
    ones = spy.Tensor.from_numpy(device, np.ones(33, np.float32))
    module.f.bwds(0, x, _result=module.f(0, x).with_grads(grad_in=ones))
    np.testing.assert_allclose(x.grad.to_numpy(), 2 * x.to_numpy(), rtol=1e-5)


@pytest.mark.parametrize(
    "body",
    [
        "float t[2] = { 1, 2 }; int k[2] = { 0, 1 }; return x * t[n % 2] * k[n % 2] * k[0];",
        "static const float t[2] = { 1, 2 }; return x * (t[n % 2] + t[0]);",
        "float t[2]; fill(t); return x * (t[n % 2] + t[0]);",
    ],
)
def test_other_variables_are_silent(device, body):
    fill = "[Differentiable] void fill(out float t[2]) { t[0] = 1; t[1] = 2; }\n"
    assert warned(device, f"{fill}[Differentiable] float f(int n, float x) {{ {body} }}", 1) == []


def test_tensors_lie_in_memory(device):
    source = "[Differentiable] float f(int i, ITensor<float, 1> t, float x) { return t[i % 2] * t[0] * x; }"
    given = spy.Tensor.from_numpy(device, np.array([2, 3], np.float32)).with_grads()
    assert warned(device, source, 1, given) == []
