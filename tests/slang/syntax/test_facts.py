"""What one parse of a module's sources tells planning."""

from __future__ import annotations

import pytest

from slangpy._slang import SourceFacts

pytestmark = pytest.mark.null

SOURCE = """
static float kept = 0;
static const int N = 3;
[BackwardDerivative(back)] [Differentiable]
float f(inout float3 x, no_diff float w, out S s)
{
    [MaxIters(N + 1)] for (int i = 0; i < n; i++) { kept += g(x.y, i); }
    [ForceUnroll] for (int i = 0; i < 2; i++) x[i] = M::twice<int>(i);
    s.a = 1;
    return helper;
}
void back(inout DifferentialPair<float> x, float d);
struct S { float a; [mutating] void grow(float by) { a += by; } property float helper { get { while (true) { } } } }
float g(float x, int i) { return x; }
float odd(float x) { return x; NEXT += ; }
#define NEXT deep(1)
float deep(float x) { do { x--; } while (x > 0); return x; }
"""


def test_functions() -> None:
    found = {facts.name: facts for facts in SourceFacts(SOURCE).functions()}
    assert list(found) == ["f", "back", "grow", "g", "odd", "deep"]
    f = found["f"]
    assert [(p.name, p.type, p.direction, p.is_no_diff) for p in f.parameters] == [
        ("x", "float3", "inout", False), ("w", "float", "in", True), ("s", "S", "out", False),
    ]  # fmt: skip
    assert f.attributes == ["BackwardDerivative(back)", "Differentiable"] and f.derivatives == [
        ("BackwardDerivative", "back")
    ]
    assert [(loop.is_unrolled, loop.max_iters) for loop in f.loops] == [(False, "N + 1"), (True, "")]
    assert f.calls == ["g", "twice"] and f.statics == ["kept"] and f.writes == ["kept", "x", "s"]
    assert f.has_body and f.is_understood and not f.is_mutating and not found["back"].has_body
    assert found["grow"].is_mutating and found["grow"].owner == "S" and found["grow"].writes == ["a"]
    assert not found["odd"].is_understood


def test_what_is_reached() -> None:
    facts = SourceFacts(SOURCE)
    assert facts.reached_words("odd") >= {"odd", "deep", "do", "x"} and "kept" not in facts.reached_words("odd")
    assert facts.reached_words("missing") == frozenset() == facts.reached_words("back")
    assert {name: facts.may_loop(name) for name in ("f", "g", "grow", "odd", "deep", "missing")} == {
        "f": True, "g": False, "grow": False, "odd": True, "deep": True, "missing": True,
    }  # fmt: skip
    assert facts.words() >= {"kept", "NEXT", "deep", "mutating"} and "kept = 0" not in facts.words()
    assert facts.no_diff_types() == {"float"}


def test_loops_that_unroll_are_none() -> None:
    assert not SourceFacts("int f() { int s = 0; [unroll] for (int i = 0; i < 3; i++) s++; return s; }").may_loop("f")
    # a property that loops
    assert SourceFacts("struct S { property int p { get { while (true) { } } } int f() { return p; } }").may_loop("f")
    assert SourceFacts("#define EACH for (int i = 0; i < 3; i++)\nint f() { int s = 0; EACH s++; return s; }").may_loop(
        "f"
    )


@pytest.mark.parametrize(
    ("text", "keeps"),
    [
        ("static int a; #if A\nint f() {\n#else\nint f(int i) {\n#endif\n return a; }", True),  # not understood
        ("#if A\nstatic int a;\nint f() { return ++a; }\n#endif\n", True),
        ("static int a; int f() { int[3] b; b[a] = a + 1; return b[a] == a; }", False),
        ("static int a; int f() { return \"a++\" == x ? 1 : a; } // a++", False),
        ("static int a; void g(inout int x); void f() { g(a); }", True),
        ("static int a; void g(int x); void f() { g(a); }", False),  # it is seen that g only reads
        ("static int a; void f() { bwd_diff(g)(a); }", True),
        ("struct S { static int a; void f() { This.a++; } }", True),
    ],
)  # fmt: skip
def test_statics(text: str, keeps: bool) -> None:
    assert SourceFacts(text).keeps_statics() is keeps


@pytest.mark.parametrize(
    ("body", "uses"),
    [
        ("return x[0] + x[1] * x.size(0);", {"reads"}),
        ("x[0] = 1;", {"stores"}),
        ("x.store(0, x.load(1));", {"reads", "stores"}),
        ("x[i].y += 1;", {"reads", "stores"}),
        ("fill(x[0]);", {"reads", "stores"}),  # an out parameter
        ("InterlockedAdd(x[0], 1);", {"unknown"}),
        ("sin(x[0]);", {"reads"}),
        ("inner(x, 2);", {"stores"}),
        ("let y = x; y[0] = 1;", {"unknown"}),
        ("return y.x[0];", set()),
        ("// x[0] = 1", set()),
        ("x[0] = + ;", {"unknown"}),
        ("(x)[0] = 1;", {"stores"}),
        ("x.diff[0];", {"gradient"}),
        ("x.InterlockedAdd(0, 1);", {"unknown"}),
        ("if (x[0] == 1) x.load<int>(2);", {"reads"}),
    ],
)
def test_uses_of_views(body: str, uses: set[str]) -> None:
    source = f"void fill(out float v) {{ }} void inner(TensorView<float> a, int n) {{ a[n] = 1; }} void f(TensorView<float> x, int i) {{ {body}\n }}"
    assert SourceFacts(source).view_uses("f", 0) == uses
    assert SourceFacts(source, ["x"]).view_uses("f", 0) == {"unknown"}


def test_what_is_passed_to_derivatives() -> None:
    facts = SourceFacts(
        "void f(DiffTensorView x, DiffTensorView y) { bwd_diff(g)(1, x); x.size(0); y[0] = 1; bwd_diff(g)(y, 1); }"
    )
    assert facts.differentiates("f", 0) == [("g", 1)] and facts.differentiates("f", 1) is None
