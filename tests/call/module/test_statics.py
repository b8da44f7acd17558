"""Variables that are `static` and not constant: each element finds them as they begin, however many a thread handles."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from calls_support import source, tensor_of

import slangpy as spy
from slangpy.compiler.modules.facts import TextFacts

INNER = "static int before = 10;\nint next() { return ++before; }"
COUNTS = """
import slangpy;
import statics_inner;
static int counter = 0;
static float2 pair = float2(1, 2);
static int table[3] = { 1, 2, 3 };
static const int HUNDRED = 100;
T total<T : __BuiltinIntegerType>(T n)
{
    static T sum = T(5);
    sum = sum + n;
    return sum;
}
[ForceInline] int inlined() { return ++counter; }
int count(int n)
{
    static int local = 5;
    int last = 10;
    for (int i = 0; i < n; i++)
    {
        inlined();
        local++;
        pair *= 2;
        table[i % 3] += i;
        last = next();
    }
    return counter + 10 * local + HUNDRED * total<int>(n) + 1000 * int(pair.x) + 20000 * table[0] + 100000 * last;
}
void own(uint dispatchThreadID, RWTensor<int, 1> counts)
{
    for (int i = 0; i < 3 && dispatchThreadID < counts.shape[0]; i++)
        counts[dispatchThreadID] = inlined();
}
"""
DERIVATIVES = """
static float kept = 0;
static float done = 0;
[BackwardDerivative(scaled_back)] [ForwardDerivative(scaled_forward)]
float scaled(float x, float w, float a) { return w * a * x * x; }
void scaled_back(inout DifferentialPair<float> x, inout DifferentialPair<float> w, inout DifferentialPair<float> a, float g)
{
    kept += x.p;
    x = diffPair(x.p, 2 * w.p * a.p * kept * g);
    w = diffPair(w.p, a.p * kept * kept * g);
    a = diffPair(a.p, w.p * kept * kept * g);
}
DifferentialPair<float> scaled_forward(DifferentialPair<float> x, DifferentialPair<float> w, DifferentialPair<float> a)
{
    done += x.p;
    return diffPair(w.p * a.p * done * done, 2 * w.p * a.p * done * x.d + a.p * done * done * w.d + w.p * done * done * a.d);
}
"""


def counted(n: int) -> int:
    """What `count` gives where it begins anew."""
    table = 1 + sum(i for i in range(n) if i % 3 == 0)
    return n + 10 * (5 + n) + 100 * (5 + n) + 1000 * 2**n + 20000 * table + 100000 * (10 + n)


def expected(n: np.ndarray) -> np.ndarray:
    return np.array([counted(i) for i in n.ravel().tolist()], np.int32).reshape(n.shape)


@pytest.fixture
def counts(device: Any) -> spy.Module:
    source(device, "statics_inner", INNER)
    return source(device, "statics_counts", COUNTS)


@pytest.mark.needs_kernels
@pytest.mark.parametrize("size", [0, 1, 3, 31, 33, 1003])
def test_each_element_begins_anew(counts: spy.Module, size: int) -> None:
    n = np.arange(size, dtype=np.int32) % 5
    np.testing.assert_array_equal(counts.count(n, _result="numpy"), expected(n))


@pytest.mark.needs_kernels
def test_forms_of_calls(device: Any, counts: spy.Module) -> None:
    n = np.arange(15, dtype=np.int32) % 5
    crossed = np.arange(60, dtype=np.int32).reshape(12, 5).T % 7 % 5
    np.testing.assert_array_equal(counts.count(crossed, _result="numpy"), expected(crossed))
    given, result = tensor_of(device, n, np.int32), tensor_of(device, np.zeros(15), np.int32)
    prepared = counts.count.prepare(given, _result=result)
    for _ in range(2):
        prepared()
        np.testing.assert_array_equal(result.to_numpy(), expected(n))
    recorded = tensor_of(device, np.zeros(15), np.int32)
    encoder = device.create_command_encoder()
    counts.count.append_to(encoder, given, _result=recorded)
    device.submit_command_buffer(encoder.finish())
    np.testing.assert_array_equal(recorded.to_numpy(), expected(n))
    assert counts.count(3) == counted(3)


@pytest.mark.needs_kernels
def test_large_calls(device: Any, counts: spy.Module) -> None:
    """Results that the CPU writes around its caches, and blocks of several threads."""
    n = np.arange((1 << 22) + 3, dtype=np.int32) % 5
    given, result = tensor_of(device, n, np.int32), tensor_of(device, np.zeros(n.size), np.int32)
    counts.count(given, _result=result)
    np.testing.assert_array_equal(result.to_numpy(), np.array([counted(i) for i in range(5)], np.int32)[n])


@pytest.mark.needs_kernels
def test_own_kernels(device: Any, counts: spy.Module) -> None:
    """A thread of a kernel that is dispatched as it is has one invocation."""
    result = tensor_of(device, np.zeros(70), np.int32)
    counts.own.dispatch([70, 1, 1], counts=result)
    np.testing.assert_array_equal(result.to_numpy(), np.full(70, 3))


@pytest.fixture
def derivatives(device: Any) -> spy.Module:
    return source(device, "statics_derivatives", DERIVATIVES)


@pytest.mark.needs_kernels
@pytest.mark.parametrize("rows", [1, 7, 100001])
def test_gradients(device: Any, derivatives: spy.Module, rows: int) -> None:
    """Of elements (x), of an argument that repeats (w), and of one that all elements share (a), which groups sum."""
    rng = np.random.default_rng(rows)
    x, w, a, g = (rng.uniform(0.5, 1.5, shape) for shape in ((rows, 3), (3,), (1, 1), (rows, 3)))
    given = [tensor_of(device, value).with_grads() for value in (x, w, a)]
    result = tensor_of(device, np.zeros((rows, 3))).with_grads(grad_in=tensor_of(device, g))
    derivatives.scaled.bwds(*given, _result=result)
    found = [value.grad.to_numpy() for value in given]
    np.testing.assert_allclose(found[0], 2 * w * a * x * g, rtol=2e-6)
    np.testing.assert_allclose(found[1], (a * x * x * g).sum(0), rtol=1e-5)
    np.testing.assert_allclose(found[2], [[(w * x * x * g).sum()]], rtol=1e-5)


@pytest.mark.needs_kernels
def test_gradients_of_torch_tensors(device: Any, derivatives: spy.Module) -> None:
    torch = pytest.importorskip("torch")
    where = device.torch_device or torch.device("cpu")
    rng = np.random.default_rng(0)
    values = [rng.uniform(0.5, 1.5, shape) for shape in ((33, 3), (3,))]
    x, w = (torch.tensor(v, dtype=torch.float32, device=where, requires_grad=True) for v in values)
    y = derivatives.scaled(x, w, 2.0)
    y.sum().backward()
    np.testing.assert_allclose(x.grad.cpu(), 4 * values[0] * values[1], rtol=2e-6)
    np.testing.assert_allclose(w.grad.cpu(), (2 * values[0] ** 2).sum(0), rtol=1e-5)


@pytest.mark.needs_kernels
def test_forward_derivatives(device: Any, derivatives: spy.Module) -> None:
    x, d = np.linspace(0.5, 1.5, 33), np.linspace(1, 2, 33)
    step = 1e-6
    slope = 3 * 2 * ((x + step) ** 2 - (x - step) ** 2) / (2 * step)
    _, tangent = spy.jvp(derivatives.scaled, (tensor_of(device, x), 3.0, 2.0), (tensor_of(device, d), None, None))
    np.testing.assert_allclose(tangent.to_numpy(), slope * d, rtol=1e-5)


@pytest.mark.parametrize(
    "text, keeps",
    [
        ("static int a; int f() { return a++; }", True),
        ("static int a = 3, b[2] = { 1, 2 };\nint f() { b [1] = 2; return a; }", True),
        ("static var a : int = 3; void f() { a -= 1; }", True),
        ("struct S { static int count = 0; } void f() { S.count <<= 1; }", True),
        ("static int[4 * 2] a; int f(int i) { return ++a[i]; }", True),
        ("static N.S<float, 3> s; void f() { s.x.y[3].z = 1; }", True),
        ("static S s; void f() { s.step(); }", True),
        ("static uint2 seed; float f() { return random(0, seed); }", True),
        ("float f(float x)\n{\n    static\n    float last = 0;\n    last = x;\n    return last;\n}", True),
        ("#define OWN static\nOWN int a;", True),
        ("#define COUNT a++\nstatic int a = 0; int f() { return COUNT; }", True),
        ("import slangpy_print; void f(int i) { set_print_enabled(i == 0); }", True),
        ("static const int a = 3; const static int b = 4; static  const float c[2] = { 1, 2 };", False),
        ("static let a = 3; export static const int b = 2;", False),
        ("static float3 light = float3(0, 1, 0); float f(float3 n) { return dot(n, light) + light.x; }", False),
        ("static int a = 3; bool f(int n) { return n <= a && a == n || float(a) > 1; }", False),
        ("struct S { static float f(float x) { return x; } static bool operator==(S a, S b) { return true; } }", False),
        ("// static int a;\n/* static int b = 0; */ void f() { int a = 0; a++; printf(\"static int a;\"); }", False),
        ("groupshared int a[32]; static groupshared int b; void f() { b = 1; }", False),
    ],
)  # fmt: skip
def test_what_counts(text: str, keeps: bool) -> None:
    assert TextFacts(text).keeps_statics is keeps
