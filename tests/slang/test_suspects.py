"""What messages after a crash of the compiler point at: construct, line, and what to write instead."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import slangpy as spy
from slangpy._slang import suspects

METHOD = """
struct S { float k; [Differentiable] float m(float x) { return k * x; } }
float f(S s, float x) { return fwd_diff(s.m)(diffPair(x, 1.0)).d; }
"""
INNER = """
[Differentiable] float g(float x) { return x * x; }
[Differentiable] float f(float x) { var p = diffPair(x); bwd_diff(g)(p, 1.0); return p.d; }
"""
DERIVED = """
interface A : IDifferentiable { [Differentiable] float a(float y); }
interface B : A { [Differentiable] float b(float y); }
struct S : B {
    float x;
    [Differentiable] float a(float y) { return x * y; }
    [Differentiable] float b(float y) { return 2 * x * y; }
}
[Differentiable] float f(float x) { S s; s.x = x; B v = s; return v.a(x) + v.b(x); }
"""
LOOP = """
static const float LEAST = 0.1;
[Differentiable] float f(float a, float b)
{
    if (b > 0.6) {
        [MaxIters(4)] for (int i = 0; a < 0.9; i++) { b *= a; if (LEAST < 1) return max(b, a); b += 1; }
    }
    return b;
}
"""
NESTED = "[Differentiable] float f(float x) { " + "if (x > 1) { " * 30 + "return x;" + " }" * 30 + " return 1; }"


@pytest.fixture(scope="module")
def cpu_device() -> Any:
    return spy.create_device(type=spy.DeviceType.cpu)


@pytest.mark.null
@pytest.mark.parametrize(
    ("source", "line", "marked", "advice"),
    [
        (METHOD, 3, "fwd_diff(s.m)", "write a function with the object as a parameter"),
        (INNER, 3, "bwd_diff(g)", "give `f` a derivative of its own"),
        (DERIVED, 9, "v = s", "make the function generic, `<T : B>`"),
        ("uint f(int s) {\n return reinterpret<uint, int>(s); }", 2, "reinterpret<uint, int>(s)", "bit_cast<To>(value)"),
        (NESTED, 1, "return x;", "in 30 branches and loops"),
        ("bool f(float2x3 a, float2x3 b) {\n return all(a < b); }", 2, "a < b", "compare row by row"),
        ("float f(half2x2 a) {\n let c = a * a == a; return 1; }", 2, "a * a == a", "compare row by row"),
        ("float f(float a) { bwd_diff((float x) => x)(a, 1.0); return a; }", 1, "bwd_diff((float x) => x)", "a name"),
        ("[ForwardDerivative(nope)] float f(float a) { return a; }", 1, "ForwardDerivative(nope)", "a function `nope`"),
    ],
)
def test_places(source: str, line: int, marked: str, advice: str) -> None:
    (found,) = suspects(source, "file.slang")
    text = source.split("\n")[line - 1]
    assert found.startswith(f" --> file.slang:{line}:{text.index(marked) + 1}\n") and text in found, found
    assert " " + "^" * len(marked) + " " in found and advice in found, found


@pytest.mark.null
@pytest.mark.parametrize(
    "source",
    [
        "struct S { static float m(float x) { return x; } }\nfloat f(float x) { return fwd_diff(S::m)(diffPair(x)).d; }",
        "// fwd_diff(s.m)\nfloat f() { return 1; }",
        "bool f(float2x3 a, float2x3 b) { return all(a[0] < b[1]); }",
        "bool f(int2x3 a, int2x3 b) { return all(a < b); }",
        INNER.replace("[Differentiable] float f", "float f"),
        INNER.replace("[Differentiable] float f", "[Differentiable] [BackwardDerivative(h)] float f"),
        DERIVED.replace("interface B : A", "interface B : IDifferentiable"),
        DERIVED.replace("[Differentiable] float f", "float f"),
        NESTED.replace("if (x > 1) { " * 30, "if (x > 1) { " * 3),
        NESTED.replace("[Differentiable]", ""),
        LOOP.replace("LEAST < 1", "a < 1"),
        LOOP.replace("return max(b, a)", "break"),
        LOOP.replace("if (b > 0.6) {", "{"),
        LOOP.replace("[Differentiable]", ""),
    ],
)
def test_what_compiles_is_none(source: str) -> None:
    assert suspects(source, "file.slang") == []


@pytest.mark.one
@pytest.mark.needs_kernels
def test_a_kernel_that_kills_the_compiler_names_the_place(cpu_device: Any) -> None:
    module = spy.Module.load_from_source(cpu_device, "inner_derivative", INNER)
    with pytest.raises(spy.CompilerDiedError, match="It may have been this:\n --> inner_derivative:3:58\n"):
        module.f.bwds(spy.diffPair(3.0, 0.0), spy.diffPair(0.0, 1.0))
    with pytest.raises(spy.CompilerDiedError, match=r"(?s)compiled before.*inner_derivative:3:58\n.*BackwardDerivative"):
        module.f.bwds(spy.diffPair(3.0, 0.0), spy.diffPair(0.0, 1.0))


@pytest.mark.one
def test_a_source_that_kills_the_compiler_names_the_place(cpu_device: Any) -> None:
    with pytest.raises(spy.CompilerDiedError, match=r"(?s)it may have been this:\n --> by_method:3:32\n.*by_m"):
        spy.Module.load_from_source(cpu_device, "by_method", METHOD.replace("struct S", "struct S : IDifferentiable"))


@pytest.mark.one
@pytest.mark.needs_kernels
def test_the_ways_round_work(cpu_device: Any) -> None:
    source = """
    struct S { float k; [Differentiable] float m(float x) { return k * x * x; } }
    [Differentiable] float by_m(no_diff S self, float x) { return self.m(x); }
    float method(float x) { S s = { 2 }; return fwd_diff(by_m)(s, diffPair(x, 1.0)).d; }
    uint bits(int s) { return bit_cast<uint>(s); }
    interface A : IDifferentiable { [Differentiable] float a(float y); }
    interface B : A { [Differentiable] float b(float y); }
    struct C : B {
        float x;
        [Differentiable] float a(float y) { return x * y; }
        [Differentiable] float b(float y) { return 2 * x * y; }
    }
    [Differentiable] float both<T : B>(T v, float y) { return v.a(y) + v.b(y); }
    [Differentiable] float through(float x) { C c; c.x = x; return both(c, x); }
    float slope(float x) { var p = diffPair(x); bwd_diff(through)(p, 1.0); return p.d; }
    """
    module = spy.Module.load_from_source(cpu_device, "ways_round", source)
    assert module.method(3.0) == 12 and module.bits(-1) == 2**32 - 1 and module.slope(3.0) == 18


COMPARISONS = """
bool2x3 less(float2x3 a, float2x3 b) { return a < b; }
int same(half2x2 a) { let c = a == a; return c[0][0] ? 1 : 0; }
bool2x3 rows(float2x3 a, float2x3 b) { bool2x3 c; for (int i = 0; i < 2; i++) c[i] = a[i] < b[i]; return c; }
bool3x2 turned(bool2x3 a) { return transpose(a); }
"""


@pytest.mark.needs_kernels
def test_comparing_matrices_does_not_end_the_process(device: spy.Device) -> None:
    m = spy.Module.load_from_source(device, "comparisons", COMPARISONS)
    a, b = np.float32([[1, 2, 3], [4, 5, 6]]), np.float32([[2, 2, 2], [5, 5, 7]])
    assert np.array_equal(m.rows(a, b, _result="numpy"), a < b)
    if device.info.type == spy.DeviceType.vulkan:
        for call in (lambda: m.less(a, b), lambda: m.same(np.ones((2, 2), np.float16))):
            with pytest.raises(spy.CompilerDiedError, match=r"(?s)comparisons:\d.*compare row by row"):
                call()
        with pytest.raises(RuntimeError, match=r"turned' transposes a matrix of bool.*one of int"):
            m.turned(a > 2)
        assert np.array_equal(m.rows(b, a, _result="numpy"), b < a)
    else:
        assert np.array_equal(m.less(a, b, _result="numpy"), a < b)
        assert np.array_equal(m.turned(a > 2, _result="numpy"), (a > 2).T)
