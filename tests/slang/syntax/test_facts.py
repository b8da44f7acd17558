"""What one parse of a module's sources tells planning."""

from __future__ import annotations

import pytest

import slangpy as spy
from slangpy._slang import SourceFacts
from slangpy.base import libslang
from slangpy.compiler.modules.facts import has_statics, may_loop, says_no_diff, sees_threads
from slangpy.plan.constants import render_constants
from slangpy.plan.derive.backward_check import lost_shares
from slangpy.plan.derive.forward_check import check_forward, custom_derivative

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


def test_uses_of_a_type() -> None:
    text = """
    typealias Plain = V<int, 2>;
    typealias Any<let N : int> = V<int, N>;
    struct Has { typealias Inner = V<float, 3>; V<half, 4> member; int get() { return 1; } }
    #define HIDDEN V<int, 5>
    int plain(Plain x) { return x.a; }
    int any() { Any<4> x; return x.a; }
    int has(Has x) { return x.get(); }
    int by(W<V<int, 6>> x) { return plain(x); }
    int hidden() { HIDDEN x; return x.a; }
    int none(int x) { return x; }
    """
    facts = SourceFacts(text)
    assert {name: facts.reached_uses(name, "V") for name in ("plain", "any", "has", "by", "hidden", "none", "missing")} == {
        "plain": [("V<int,2>", "Plain")],
        "any": [("V<int,N>", "")],
        "has": [("V<float,3>", "Inner"), ("V<half,4>", "")],
        "by": [("V<int,2>", "Plain"), ("V<int,6>", "")],
        "hidden": [("V", "")],
        "none": [],
        "missing": [],
    }


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
        ("bwd_diff(inner)(p, x[0]);", {"reads"}),  # as an argument that is no pair
        ("fwd_diff(sin)(DifferentialPair<float>(x[0], 1)) + countbits(x[1]);", {"reads"}),
        ("fwd_diff(inner)(x[0]);", {"unknown"}),
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


def test_defaults_that_name_others() -> None:
    source = """
        static const float K = 2;
        float f(float a, float b = K,
                float c = (a + 1), float d = sizeof(int)) { return a; }
        struct S { static const int N = 1; float x; float y = x; float z = N; float g(float a = this.x, float b = N) { return a; } }
        float h(float a = 1) { return a; }
    """
    found = {name: SourceFacts(source).dependent_defaults(name) for name in ("f", "S", "g", "h", "none")}
    assert found == {"f": [("c", 4)], "S": [("y", 5)], "g": [("a", 5)], "h": [], "none": []}


def test_what_is_passed_to_derivatives() -> None:
    facts = SourceFacts(
        "void f(DiffTensorView x, DiffTensorView y) { bwd_diff(g)(1, x); x.size(0); y[0] = 1; bwd_diff(g)(y, 1); }"
    )
    assert facts.differentiates("f", 0) == [("g", 1)] and facts.differentiates("f", 1) is None


def test_calls_that_macros_hide_are_known() -> None:
    text = "float g(float x) { return x; } float h(float x) { return x; }\n#define TWICE(x) g(x) + g(x)\n"
    text += "float f(float x) { float y = TWICE(x); return y + sin(x); } float k(float x) { return x + ; h(x); }"
    found = {facts.name: facts.calls for facts in SourceFacts(text).functions()}
    assert found["f"] in (["g", "sin"], ["g"]) and "g" in found["f"] and found["k"] == ["h"]


def test_types_of_parameters_are_plain() -> None:
    (f,) = SourceFacts("void f(inout DifferentialPair< float3 > x, float v [2][ N ], const int n) { }").functions()
    assert [p.type for p in f.parameters] == ["DifferentialPair<float3>", "float[2][N]", "int"]


def test_constants_from_outside() -> None:
    text = "extern static const int N = 1; static const int M = 2; // extern static const int C;\n"
    text += "namespace a { extern static const vector<float, 3> V; } export static const int E = 1;"
    assert SourceFacts(text).extern_constants() == [("N", "int"), ("V", "vector<float,3>")]


def test_comments_above() -> None:
    text = "/// no\n\n/// one\n// two\n[A]\nfloat f(float x); /** three\n */ float g(); struct S { }\n/// four\n#if A\nint h();"
    facts = SourceFacts(text)
    assert facts.comments_above(6, 7) == ["/// one", "// two"]
    assert facts.comments_above(7, 11) == ["/** three\n */"] and facts.comments_above(7, 23) == []
    assert facts.comments_above(10, 5) == [] == facts.comments_above(99, 1)


@pytest.mark.parametrize(
    ("parameter", "body", "pair"),
    [
        ("float v[3]", "return v[n % 3] + v[0];", ("v[n%3]", "v[0]")),
        ("float v[3]", "float w[3] = v; return w[n] + v[0];", ("w[n]", "v[0]")),
        ("float v[3]", "return v[1] + v[0];", None),
        ("float v[3]", "return v[n] + v[n];", None),
        ("float v[3]", "if (n > 1) { return v[n]; } return v[0];", None),
        ("float v[3]", "float s = v[n]; for (int i = 0; i < 3; i++) { s += v[0]; } return s;", ("v[n]", "v[0]")),
        ("float v[3]", "return a > 0 ? v[n] : v[0];", None),
        ("float v[3]", "float q = v[n]; v[1] += a; return q + v[1];", ("v[n]", "v[1]")),
        ("float v[3]", "float q = v[n]; put(v[1]); return q + v[1];", ("v[n]", "v[1]")),
        ("float v[3]", "float q = v[n]; set(v[1]); return q + v[1];", None),
        ("float3 v", "float q = v[n]; v.x += a; return q + v.x;", ("v[n]", "v.x")),
        ("float3 v", "return v[n] + v.x;", None),
        ("float3x3 v", "return v[0][n] + v[1][0];", None),
        ("float3x3 v", "return v[0][n] + v[0][0];", ("v[0][n]", "v[0][0]")),
        ("no_diff float v[3]", "return v[n] + v[0];", None),
        ("int v[3]", "return v[n] + v[0];", None),
        ("Tensor<float, 1> v", "return v[n] + v[0];", None),
        ("float v[3]", "return AT(v, n) + AT(v, 0);", ("AT(v, n)", "AT(v, 0)")),
        ("float v[3]", "return AT(v, K) + AT(v, 0);", None),
        ("float v[3]", "return v[n] + v[0]; // NOT(", ("v[n]", "v[0]")),
    ],
)
def test_lost_shares(parameter: str, body: str, pair: tuple[str, str] | None) -> None:
    source = "#define AT(v, i) v[i]\nvoid put(inout float x) { } void set(out float x) { x = 1; }\n"
    facts = SourceFacts(f"{source}float f({parameter}, float a, int n) {{ {body}\n }}")
    found = [(share.function, share.variable, share.first, share.second) for share in facts.lost_shares("f")]
    assert found == ([] if pair is None else [("f", "v", *pair)]) and facts.lost_shares("g") == []


def test_a_source_is_parsed_once(device: spy.Device, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever planning asks; once more where the rules have changed it, and only for what is asked of that."""
    parsed: list[str] = []

    def counted(text: str) -> SourceFacts:
        parsed.append(text)
        return SourceFacts(text)

    monkeypatch.setattr(libslang, "SourceFacts", counted, raising=False)
    text = "extern static const int N = 2;\n[BackwardDerivative(b)] float h(float x) { return x; }\n"
    text += "void b(inout DifferentialPair<float> x, float d) { }\n[Differentiable] float f(float x) { return x * h(x); }"
    module = spy.Module.load_from_source(device, "parsed_once", text)
    with pytest.raises(spy.ResolveException, match="'h' .called by 'f'. has a custom backward derivative only"):
        check_forward(module, "f", ("float",))
    assert custom_derivative(module, "f") == "h" and says_no_diff(module, "double") is False
    assert not may_loop(module, "f") and not has_statics(module, ()) and not sees_threads(module, ())
    (line,) = render_constants(module._compiled, "f", (("N", ("int", (3,))),))
    assert line == "export static const int N = int(3ll);"
    assert lost_shares(module, "f") == lost_shares(module, "f") == []
    assert [text in one for one in parsed] == [True, True]


@pytest.mark.parametrize(("lane", "sees"), [("WaveGetLaneIndex()", True), ("7", False)])
def test_facts_know_the_macros_of_the_session(lane: str, sees: bool) -> None:
    source = "uint f(uint x) { return x + LANE; }"
    device = spy.Device(type=spy.DeviceType.null)
    module = spy.Module.load_from_source(device, f"lanes_{sees}", source, defines={"LANE": lane})
    assert sees_threads(module, ()) is sees
