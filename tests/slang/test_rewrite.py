"""The text changes made before Slang sees a source or a name."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from slangpy._slang import rewrite_alone, rewrite_constraints, sanitize_name


def _by(*rules: str) -> Callable[[str], str]:
    return lambda source: rewrite_alone(source, list(rules))


rewrite_loops = _by("nested-loops", "do-continue", "while-loops")
rewrite_counters = _by("steps-in-conditions", "run-time-counters")
rewrite_call_outputs = _by("calls-before-loops", "elements-after-loops")
rewrite_detached = _by("no-diff-values")
rewrite_diagonals = _by("equal-indices")
rewrite_elements = _by("elements-in-branches")
rewrite_parts = _by("parts")
rewrite_paths = _by("aliasing-elements")
rewrite_scalars = _by("scalar-operands")
rewrite_sequences = _by("assignments-in-expressions")
inline_differentiable = _by("second-derivatives")


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("void f<T : ITensor<float, 1>>(T t);", "void f<T : iTensor<float, 1>>(T t);"),
        ("struct A : IRWTensor<float, 2> {}", "struct A : iRWTensor<float, 2> {}"),
        ("struct A : IFoo, IDiffTensor<T, D>, IWTensor<T, D> {}", "struct A : IFoo, iDiffTensor<T, D>, iWTensor<T, D> {}"),
        ("void f<T : IFoo & IWDiffTensor<T, 1>>();", "void f<T : IFoo & iWDiffTensor<T, 1>>();"),
        ("T f<T>(T t) where T : IRWDiffTensor<float, 1> {}", "T f<T>(T t) where T : iRWDiffTensor<float, 1> {}"),
        ("void f<T : /* : */ ITensor<float, 1>>();", "void f<T : /* : */ iTensor<float, 1>>();"),
        ("interface I { associatedtype D : ITensor<float, 1>; }", "interface I { associatedtype D : iTensor<float, 1>; }"),
        ("void f<T : G<ITensor<float, 1>>, U : ITensor<float, 1>>();", "void f<T : G<ITensor<float, 1>>, U : iTensor<float, 1>>();"),
    ],
)
def test_constraints_are_renamed(source: str, expected: str) -> None:
    assert rewrite_constraints(source) == expected


@pytest.mark.parametrize(
    "source",
    [
        "void f(ITensor<float, 1> t, IRWTensor<float, 1> u) {}",
        "void main(uint3 tid : SV_DispatchThreadID, ITensor<float, 1> t) {}",
        "void f<T : IFoo>(T a, ITensor<float, 1> b);",
        "void f(int n) { switch (n) { case 0: ITensor<float, 1> a = b; default: ITensor<float, 1> a = b; } }",
        "void f() { x = c ? ITensor<float, 1>(a) : ITensor<float, 1>(b); }",
        "// T : ITensor<float, 1>",
        "/* T : ITensor */ ITensor<float, 1> a;",
        'void f() { printf("T : ITensor"); }',
        "slangpy::ITensor<float, 1> a;",
        "void f() { if (a && ITensor<float, 1>.ok) {} }",
        "struct S : IFoo { ITensor<float, 1> t; }",
        "void f<T : IFoo, let D : int>(ITensor<float, D> t);",
        "struct T : ITensorLike, MyITensor, ITensors {}",
        "void f() { if (a < b && c > d) { ITensor<float, 1> t; } }",
    ],
)
def test_everything_else_stays(source: str) -> None:
    assert rewrite_constraints(source) == source


def test_length_is_kept() -> None:
    source = "struct A : ITensor<float, 1>, IWTensor<float, 1>\n{\n  'unterminated\n /* also"
    assert len(rewrite_constraints(source)) == len(source)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("float*", "Ptr<float>"),
        ("Foo **", "Ptr<Ptr<Foo>>"),
        ("float*[3]", "Ptr<float>[3]"),
        ("Gen<float*, 3>", "Gen<Ptr<float>, 3>"),
        ("Gen<int, Foo<T>*>", "Gen<int, Ptr<Foo<T>>>"),
        ("float[2*3]", "float[2*3]"),
        (" float3 ", "float3"),
        ("ns::f<4>", "ns::f<4>"),
        ("ns . A<B>.C[ ]", "ns . A<B>.C[ ]"),
        ("Gen<-1, 2 + -N, E.P>[3-1]", "Gen<-1, 2 + -N, E.P>[3-1]"),
        ("operator+", "operator+"),
        ("Gen<2*3, N*2>", "Gen<2*3, N*2>"),
        ("Gen<float *, A<B>**>", "Gen<Ptr<float>, Ptr<Ptr<A<B>>>>"),
        ("sample", "sample"),
        ("float[sizeof(P)]", "float[sizeof(P)]"),
    ],
)
def test_names(name: str, expected: str) -> None:
    assert sanitize_name(name).replace(", ", ",") == expected.replace(", ", ",")


BAD_NAMES = ["", " ", "*", "Gen<", "Gen>", "float[", "f(1)", "float,int", "a;b", "(float)", "1+2"]
CRASHES = ["S<1+>", "S<in>", "S<a.>", "S<a:b>", "S<1 2>", "a.b<c d>", "/*", "Gen</*>", "S::<built-in x>"]
SUMS = ["P + P", "-P", "W<--1>", "W<+E>", "P[!4u]", "W<true + 1>", "float[float*]", "Gen<float[2] + 1>"]
KEYWORDS = [
    "s::operator*",
    "true<float>",
    "this<1>",
    "none<none>",
    "Tensor<float, static>",
    "new",
    "__first<float>",
    "__getAddress.x",
    "operator",
]
LONG = [
    "W<" * 500 + "float" + ">" * 500,
    "float" + "[2]" * 500,
    "P" + ".P" * 500,
    "Q<" + "- " * 500 + "1>",
    "float" + "*" * 500,
]
MISREAD = ["int x", "vector<float f,3>", "float[in]", "Gen<no_diff float>", "Gen<int>x", "Gen<>", "Gen<a, >", "a."]


@pytest.mark.parametrize("name", BAD_NAMES + CRASHES + SUMS + KEYWORDS + LONG + MISREAD)
def test_names_slang_must_not_see(name: str) -> None:
    assert sanitize_name(name) == ""


BY_ADDRESS = "static void atomicAdd(RWByteAddressBuffer b, uint a, S v) { if (a > 0) { b.Store(a, 1); } /* } */ }"


def test_addition_by_address_gets_a_pointer_form() -> None:
    """The type of the parameter keeps its length; what is added follows the closing brace."""
    source = f"struct S {{ {BY_ADDRESS} }};\nint after;"
    got = rewrite_constraints(source)
    renamed = BY_ADDRESS.replace("RWByteAddressBuffer", "_spy_AtomicMemory__")
    assert got.startswith(f"struct S {{ {renamed} static void atomicAdd(This* _buf, uint _element, This _value) {{")
    assert got.endswith("} };\nint after;")


@pytest.mark.parametrize(
    "source",
    [
        "void atomicAdd(RWByteAddressBuffer b, uint a, S v) {}",
        "// static void atomicAdd(RWByteAddressBuffer b, uint a, S v) {}",
        "static void add(RWByteAddressBuffer b, uint a, S v) { atomicAdd(b, a); }",
    ],
)
def test_other_functions_keep_their_buffers(source: str) -> None:
    assert rewrite_constraints(source) == source


def test_structs_that_have_both_forms_get_no_third() -> None:
    both = f"struct S {{ static void atomicAdd(This* p, uint i, This v) {{}} {BY_ADDRESS} }};"
    assert rewrite_constraints(both) == both.replace("RWByteAddressBuffer", "_spy_AtomicMemory__")


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("while (i < 3) { x(); }", "for (; i < 3;){ x(); }"),
        ("while(i<3){x();}", "for(; i<3;){x();}"),
        ("while ( a(b, (c)) ) x();", "for (;  a(b, (c));) x();"),
        ("while /* why */ (a) // (b)\n{ }", "for /* why */ (; a;)// (b)\n{ }"),
        ("[MaxIters(4)]\nwhile\n(a\n && b)\n{ }", "[MaxIters(4)]\nfor\n(; a\n && b;)\n{ }"),
        ("while (a) while (b) x();", "for (; a;)for (; b;)x();"),
        ("if (a) while (b) { } else while (c) { }", "if (a) for (; b;){ } else for (; c;){ }"),
        ("do while (a) x(); while (b);", "do for (; a;)x(); while (b);"),
        (
            "[MaxIters(2)] do { if (a) continue; x(); } while (b // why\n && c);\ny();",
            "[MaxIters(2)] AGAIN(b && c) { if (a) continue; x(); } \n\ny();",
        ),
        ("if (a) do continue; while (b(c)); else x();", "if (a) AGAIN(b(c)) continue;  else x();"),
        ("do { do { continue; } while (a); } while (b);", "do { AGAIN(a) { continue; }  } while (b);"),
        (
            "do { while (a) { continue; } if (b) { continue; } } while (c);",
            "AGAIN(c) { for (; a;){ continue; } if (b) { continue; } } ",
        ),
    ],
)
def test_while_becomes_for(source: str, expected: str) -> None:
    changed = rewrite_loops(f"void f() {{ {source} }}")
    expected = re.sub(
        r"AGAIN(\(\S* ?\S* ?\S*?\)) ", r"for (bool _spy_again = true; _spy_again; _spy_again = \1)", expected
    )
    assert changed.replace(" ", "") == f"voidf(){{{expected}}}".replace(" ", "")
    assert changed.count("\n") == source.count("\n")


def test_columns_behind_a_while_stay() -> None:
    source = "void f() {\n    while (i < 3) { here(); }\n}\n"
    assert rewrite_loops(source).index("here") == source.index("here")


@pytest.mark.parametrize(
    "source",
    [
        "do { x(); } while (a);",
        "do x(); while (a);",
        "do { do { x(); } while (a); } while (b);",
        "do { for (;;) { continue; } } while (b);",
        "do { continue; }\n#if A\nwhile (a);\n#else\nwhile (b);\n#endif\n",
        "while (a());",
        "FOO(do { x(); } while (0))",
        "#define LOOP while (a) {\n#define LONG \\\n while (a) {\n",
        "// while (a) { }\n/* while (a) { } */",
        'printf("while (a) { }");',
        "int while_ = meanwhile (a);",
        "while (a { }",
        "#if A\nwhile (a) {\n#else\nwhile (b) {\n#endif\n}",
        "while (let x = next()) { x(); }",
        "while (a) { UNKNOWN; }",
    ],
)
def test_other_loops_stay(source: str) -> None:
    inside = f"void f() {{\n{source}\n}}\n"
    assert rewrite_loops(inside) == inside


@pytest.mark.parametrize("end", ["while (false);", "while (0);", "while\n(false)\n;"])
def test_do_once_with_continue_becomes_for(end: str) -> None:
    source = "[Differentiable] float f() { if (a) do { if (b) continue; x(); } " + end + " else y(); }"
    name = "_spy_once_12"  # the token
    expected = source.replace("do {", f"for (int {name} = 0; {name} < 1; {name}++) {{")
    for sign in (";", "(", ")", "false", "0", "while"):
        head, tail = expected.split("x(); }")
        expected = head + "x(); }" + tail.replace(sign, "", 1)
    changed = rewrite_loops(source)
    assert changed.count("\n") == source.count("\n")
    assert changed.split() == expected.split()
    for stays in (
        source.replace("continue", "break"),
        source.replace("do {", "{"),
        source.replace("[Differentiable]", ""),
    ):
        assert "once" not in rewrite_loops(stays)


def limits(source: str) -> list[str]:
    """What [MaxIters] says, in order."""
    return re.findall(
        r"MaxIters\(((?:[^()]|\([^()]*\))*)\)", rewrite_loops("[Differentiable] float f() {" + source + "}")
    )


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("for (int i = 0; i < 3; i++) for (int k = 0; k < 4; k++) x();", ["4"]),  # Slang counts the second itself
        ("[MaxIters(2)] while (a) { [MaxIters(3)] while (b) { } }", ["3", "3"]),
        ("for (int i = 0; i < 3; i++) for (int k = 0; k < 3; k++) x();", []),
        ("for (int i = 9; i >= 0; i -= 2) for (int k = 1; 6 >= k; k = k + 1) x();", []),  # not a count that is known
        ("for (int i = 9; i >= 0; i -= 2) { for (int k = 1; 4 > k; ++k) x(); }", ["5"]),
        ("for (int i = 0; i < 3; i++) [ForceUnroll] for (int k = 0; k < 4; k++) x();", []),
        ("for (int i = 0; i < 3; i++) { } for (int k = 0; k < 4; k++) x();", []),
        ("for (int i = 0; i < n; i++) for (int k = 0; k < 4; k++) x();", []),
        ("for (int i = 0; i < 3; i++) { i += x(); for (int k = 0; k < 4; k++) { } }", []),
        ("for (int i = 0; i < 0x3u; i++) [MaxIters(2 * (1 + 1))] do { } while (a);", ["4", "2 * (1 + 1)"]),
        ("for (uint i = 0; i < ROWS; i++) for (uint k = 0; k < COLUMNS; k++) x();", ["(ROWS) + (COLUMNS)"] * 2),
        ("for (int i = 0; i < ROWS; i++) for (int k = 0; k < 1 << BITS; k++) x();", ["(ROWS) + (1 << BITS)"] * 2),
    ],
)
def test_nested_loops_get_room(source: str, expected: list[str]) -> None:
    assert limits(source) == expected


def test_room_for_long_loops() -> None:
    """Long loops get the sizes in which Slang indexes the arrays, not the square."""
    inner = "for (int i = 0; i < 3; i++) for (int k = 0; k < 100; k++) x();"
    assert limits(inner) == ["100", "3"]
    outer = "for (int i = 0; i < 100; i++) for (int k = 0; k < 3; k++) x();"
    assert limits(outer) == ["100"]


def test_room_inside_loops_that_may_vanish() -> None:
    """The compiler may see that the outer loop runs once; the inner loop's states then have one dimension."""
    inner = "[MaxIters(20)] for (int k = 0; k < n; k++) x();"
    assert limits(f"int i = 0; [MaxIters(2)] do {{ {inner} }} while (i++ < 1);") == ["20", "20"]
    assert limits(f"int i = 0; [MaxIters(2)] for (; i < 1;) {{ {inner} i++; }}") == ["20", "20"]
    assert limits(f"[MaxIters(2)] do {{ {inner} }} while (false);") == ["20", "20"]
    assert limits(f"int i = 0; [MaxIters(2)] do {{ {inner} }} while (y < n && (i++ < 1));") == ["20", "20"]
    assert limits(f"int i = 0; [MaxIters(2)] for (;;) {{ if (!((i < 1) && y < n)) break; {inner} }}") == ["20", "20"]
    assert limits(f"int i = 0; [MaxIters(2)] do {{ {inner} }} while (i + n < 1 && y < n);") == ["20", "2"]
    assert limits(f"[MaxIters(2)] for (int i = 0; i < n; i++) {inner}") == ["20", "2"]
    assert limits(f"[MaxIters(2)] do {{ {inner} }} while (n > 5);") == ["20", "2"]
    assert limits(f"[MaxIters(2)] while (true) {{ {inner} break; }}") == ["20", "2"]


def test_lengths_by_name() -> None:
    source = "static const int N = 2 + 1;\n#define M (N * 2)\n"
    body = "[Differentiable] float f() { for (int i = 0; i < N; i++) for (int k = 0; k < M; k++) x(); }"
    assert "[MaxIters(6)] for (int i" in rewrite_loops(source + body).replace("\n", " ")
    assert rewrite_loops("int N;\n" + source + body) == "int N;\n" + source + body  # which N is meant is not clear


def test_names_mean_what_they_mean_there() -> None:
    """The N of another function says nothing; a constant of a value that is computed is none."""
    loops = "for (int i = 0; i < N; i++) for (int k = 0; k < 4; k++) x();"
    assert limits(f"const int N = 3; {loops} }} float g(int N) {{ return N;") == ["4"]
    assert limits(f"const int N = n * 2; {loops}") == []
    assert limits(f"int N = 3; {loops}") == []
    assert limits(f"}} [Differentiable] float g<let N : int = 2>() {{ {loops.replace('4', 'KS')}") == ["(N) + (KS)"] * 2
    assert limits(f"\n#if A\n#define N 2\n#else\n#define N 3\n#endif\n{loops}") == []
    assert limits(f"\n#define TWICE (2 * M)\n#define N (TWICE - 1)\n#define M 3\n{loops}") == ["5"]


def test_only_differentiable_sources_get_limits() -> None:
    source = "float f() { for (int i = 0; i < 3; i++) for (int k = 0; k < 4; k++) x(); }"
    assert rewrite_loops(source) == source


def test_diagnostics_quote_what_the_user_wrote(new_session) -> None:
    source = "[Differentiable] float f(float x)\n{\n    [MaxIters(3)]\n    while (undefined_name < 3) { x += 1; }\n    return x;\n}\n"
    with pytest.raises(RuntimeError) as error:
        new_session().load_module_from_source("quoted", source, "quoted.slang")
    assert "quoted.slang:4:" in str(error.value) and "| while (undefined_name < 3) { x += 1; }" in str(error.value)


_MARK = "[__unsafeForceInlineEarly]"


@pytest.mark.parametrize(
    "source",
    [
        "[Differentiable]@ float f(float x) { return x * x; }",
        "[ Differentiable ]@\n[MaxIters(3)]\nT f<T : IFloat, let N : int>(vector<T, N> x) where T : IOther\n{ return x; }",
        "[BackwardDifferentiable]@ public float f(float x = 1.0f) { return x; }",
        "struct S { [Differentiable]@ [mutating] void f(float k) { x = k; } [Differentiable]@ __init(float k) { x = k; } }",
        "struct S { property y : float { [Differentiable]@ get { return x; } } }",
        "struct S { [Differentiable]@ float at(float x) { return inner.at(x); } }",  # of another value
    ],
)
def test_inlines_differentiable(source: str) -> None:
    assert inline_differentiable(source.replace("@", "")) == source.replace("@", _MARK)


@pytest.mark.parametrize(
    "source",
    [
        "float f(float x) { return x; }",
        "interface I { [Differentiable] float f(float x); }",
        "[Differentiable] float f(float x, int n) { if (n == 0) return x; return f(x * x, n - 1); }",
        "struct S { [Differentiable] float f(int n) { return this.f(n - 1); } }",
        "[Differentiable] float _spy_function(float x) { return x; }",
        "// [Differentiable] float f(float x) { return x; }\n/* [Differentiable] float f() {} */",
        'static const String s = "[Differentiable] float f() { }";',
        "[DifferentiableStuff] float f(float x) { return x; }",
        "[Differentiable] float f(float x) {",
        "[Differentiable",
        "[Differentiable] float f(",
    ],
)
def test_inlines_nothing_else(source: str) -> None:
    assert inline_differentiable(source).replace(_MARK, "") == source
    assert _MARK not in inline_differentiable(source) or source.endswith("{")


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("float d = 1; for (;;) d += a; v = v * d;", "float d = 1; for (;;) d += a; v = v * (-(-d));"),
        ("float d = 1; for (;;) d += a; v *= d;", "float d = 1; for (;;) d += a; v *= (-(-d));"),
        ("float d = 1; for (;;) d += a; v = (d) / v;", "float d = 1; for (;;) d += a; v = ((-(-d))) / v;"),
        ("half d; while (c) step(d); v = d * v;", "half d; while (c) step(d); v = (-(-d)) * v;"),
        ("for (;;) a = 2; v = v / a;", "for (;;) a = 2; v = v / (-(-a));"),
        ("float d = 1; d += a; v = v * d;", "float d = 1; d += a; v = v * (-(-d));"),
        ("v = v + a - d;", "v = v + (-(-a)) - d;"),
        ("v = v * (true ? a : 2); v += c ? a : 1;", "v = v * (true ? (-(-a)) : 2); v += c ? (-(-a)) : 1;"),
        (
            "v = (c ? (a) : e ? 1 : a) * v; v = w(c ? a : 1);",
            "v = (c ? ((-(-a))) : e ? 1 : (-(-a))) * v; v = w(c ? a : 1);",
        ),
        (
            "float2 q = {a, 1}; v += q.x * q[1] * v * q.yx.x;",
            "float2 q = {a, 1}; v += (-(-(q.x * q[1]))) * v * (-(-q.yx.x));",
        ),
        (
            "float q[2] = {a, 1}; q[0] += w(q[1]); v = q[1] - v;",
            "float q[2] = {a, 1}; q[0] += w(q[1]); v = (-(-q[1])) - v;",
        ),
        ("S s; s.k = a; v = v + s.k * s.other - s.k.x;", "S s; s.k = a; v = v + (-(-s.k)) * s.other - (-(-s.k.x));"),
        (
            "var b = a; let c = b * 2; var d = w(a); v = b * v * c * d;",
            "var b = a; let c = b * 2; var d = w(a); v = (-(-b)) * v * (-(-c)) * d;",
        ),
        ("v = float2(a, 1).x * v * float2(1, a).xy;", "v = (-(-float2(a, 1).x)) * v * float2(1, a).xy;"),
        ("v += q.x; q.x = a; v -= q.x; v *= (c, q.x);", "v += q.x; q.x = a; v -= q.x; v *= (c, q.x);"),
        ("v -= a; v += (a); a++;", "v -= (-(-a)); v += ((-(-a))); a++;"),
        ("v = float(a) * v; return a * w(a + 1);", "v = float((-(-a))) * v; return (-(-a)) * w(a + 1);"),
    ],
)
def test_scalars_beside_vectors(body: str, expected: str) -> None:
    head = "struct S {{ float k; int n; T other; }} [Differentiable] void f(float a, inout float3 v) {{ {} }}"
    assert rewrite_scalars(head.format(body)) == head.format(expected)


@pytest.mark.parametrize(
    "body",
    [
        "float d = 1; d += a * a - d; return sin(a) * d;",  # no vector
        "int d = 1; for (;;) d += 1; v = v * d;",
        "float d = 1; for (;;) d *= a; d /= a;",
        "float d = 1; for (;;) d += a; v = v * s.d * e.x * e[0] * d(1);",
        "float d = 1; for (;;) d += a; float *e; float* d;",
        "float d = 1; for (;;) d += a; // v * d",
        "float d = 1; for (;;) d += a; x = 3 * d++;",
        "float d = 1; for (;;) { d += a; ",
    ],
)
def test_other_scalars_stay(body: str) -> None:
    source = f"[Differentiable] void f(float a, inout float3 v) {{ {body} }}\nvoid g(S d) {{ for (;;) d = d * d; }}"
    assert rewrite_scalars(source) == source
    assert rewrite_scalars("void f(float d, float3 v) { for (;;) d = 2; v = v * d; }").count("-") == 0


OUTS = "[Differentiable] void g(float x, inout float y) {} float h(float x) {} float o(float x, out float y) {} void s(inout S y) {}\n"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("float c; g(a, c); for (;;) a += c;", "float c; g(a, c); c = -(-c); for (;;) a += c;"),
        (
            "float c; int i = g(a, c) + 1; while (b) a += c;",
            "float c; int i = g(a, c) + 1; c = -(-c); while (b) a += c;",
        ),
        (
            "C c; if (g(a, c.d) > 0) { do a += c.d; while (b); }",
            "C c; if (g(a, c.d) > 0) { c.d = -(-c.d); do a += c.d; while (b); }",
        ),
        (
            "float2 c; if (b) g(a, c[1]); else { g(1, c[k]); } for (;;) {}",
            "float2 c; if (b) { g(a, c[1]); c[1] = -(-c[1]); } else { g(1, c[k]); c[k] = -(-c[k]); } for (;;) {}",
        ),
        ("float3 c; unknown(c); for (;;) {}", "float3 c; unknown(c); c = -(-c); for (;;) {}"),
        (
            "vector<half, 3> c; unknown(c, c.x); for (;;) {}",
            "vector<half, 3> c; unknown(c, c.x); c = -(-c); for (;;) {}",
        ),
        (  # an element that a call writes after a loop
            "float2 c = a; for (;;) { b += c.x; } g(a, c.y);",
            "float2 c = a; for (;;) { b += c.x; } c = -(-c); g(a, c.y);",
        ),
        ("float2 c; sincos(a, b, c.x); for (;;) {}", "float2 c; sincos(a, b, c.x); b = -(-b); c.x = -(-c.x); for (;;) {}"),
        ("if (b) g(a, b); else b = 1; for (;;) {}", "if (b) { g(a, b); b = -(-b); } else b = 1; for (;;) {}"),
        (
            "[MaxIters(2)] do g(a, b); while (b); for (;;) {}",
            "[MaxIters(2)] do { g(a, b); b = -(-b); } while (b); for (;;) {}",
        ),
        ("float2 c = { g(a, b), 1 }; for (;;) {}", "float2 c = { g(a, b), 1 }; b = -(-b); for (;;) {}"),
        # in a loop with branches, what a call writes without reading it
        ("for (;;) { o(a, b); if (a) b = 1; }", "for (;;) { o(a, b); b = -(-b); if (a) b = 1; }"),
        ("for (;;) if (a) o(a, b); else b = 1;", "for (;;) if (a) { o(a, b); b = -(-b); } else b = 1;"),
        ("for (;;) { float c = o(a, b), d = a ? b : c; }", "for (;;) { float c = o(a, b), d = a ? b : c; b = -(-b); }"),
        ("for (;;) { float c; sincos(a, b, c); if (a) b = 1; }", "for (;;) { float c; sincos(a, b, c); b = -(-b); c = -(-c); if (a) b = 1; }"),
        ("for (;;) { float c[2]; o(a, c[0]); g(a, b); if (a) b = 1; }", "for (;;) { float c[2]; o(a, c[0]); g(a, b); if (a) b = 1; }"),
        ("for (;;) { o(a, b); a += b; }", "for (;;) { o(a, b); a += b; }"),
    ],
)
def test_what_calls_write_before_loops(body: str, expected: str) -> None:
    head = "[Differentiable] void f(float a, float b) {{ {} }}"
    assert rewrite_call_outputs(OUTS + head.format(body)) == OUTS + head.format(expected)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("for (;;) { if (o(a, b) > 0) b = 1; }", "for (;;) { if (FIRST(o(a, b), b = -(-b)) > 0) b = 1; }"),
        ("for (; k && (o(a, b)) > 0;) b = 1;", "for (; k && (FIRST(o(a, b), b = -(-b))) > 0;) b = 1;"),
        ("for (;;) { b = o(a, b) > 0 ? a : b; }", "for (;;) { b = FIRST(o(a, b), b = -(-b)) > 0 ? a : b; }"),
        ("for (;; o(a, b), (o(a, b))) { switch (o(a, b)) {} }", "for (;; o(a, b), (o(a, b))) { switch (FIRST(o(a, b), b = -(-b))) {} }"),
        ("if (o(a, b) > 0) for (;;) a += b;", "if (FIRST(o(a, b), b = -(-b)) > 0) for (;;) a += b;"),
        ("for (;;) { if (two(a, b) > 0) b = 1; }", "for (;;) { if (FIRST(FIRST(two(a, b), a = -(-a)), b = -(-b)) > 0) b = 1; }"),
    ],
)
def test_what_calls_write_in_conditions(body: str, expected: str) -> None:
    head = OUTS + "float two(out float x, out float y) {}\n"
    line = "[Differentiable] void f(float a, float b, int k) "
    got = rewrite_call_outputs(head + line + "{ " + body + " }")
    name = re.search(r"_spy_first_\w+", got)
    assert name
    declared = "T FIRST<T, U>(T v, U u) { return v; } [Differentiable] T FIRST<T : IDifferentiable, U>(T v, no_diff U u) { return v; } "
    assert got.replace(name[0], "FIRST") == head + declared + line + "{ " + expected + " }"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("float c[2]; unknown(c); for (;;) {}", "float c[2]; unknown(c); c = SAME(c); for (;;) {}"),
        ("S c; s(c); for (;;) {}", "S c; s(c); c = SAME(c); for (;;) {}"),
        ("S c[2]; s(c[k + 1]); for (;;) {}", "S c[2]; s(c[k + 1]); c[k + 1] = SAME(c[k + 1]); for (;;) {}"),
        ("D c; s(c.d[0].e); for (;;) {}", "D c; s(c.d[0].e); c.d[0].e = SAME(c.d[0].e); for (;;) {}"),
        ("D<float> c = a; c.d.grow(a); for (;;) {}", "D<float> c = a; c.d.grow(a); c.d = SAME(c.d); for (;;) {}"),
        ("var c = d; s<D<3>, 2>(c); for (;;) {}", "var c = d; s<D<3>, 2>(c); c = SAME(c); for (;;) {}"),
        ("S b = a, c = a; s(c); for (;;) {}", "S b = a, c = a; s(c); c = SAME(c); for (;;) {}"),
    ],
)
def test_structs_and_arrays_that_calls_write_before_loops(body: str, expected: str) -> None:
    head = OUTS + "struct T { [mutating] void grow(float a) { } }\n"
    line = "[Differentiable] void f(float a) "
    got = rewrite_call_outputs(head + line + "{ " + body + " }")
    name = re.search(r"_spy_same_\w+", got)
    assert name
    declared = "T SAME<T>(T v) { return v; } [Differentiable] T SAME<T : IDifferentiable>(T v) { return v; } "
    assert got.replace(name[0], "SAME") == head + declared + line + "{ " + expected + " }"


def test_parts_of_this_that_calls_write() -> None:
    head = OUTS + "float t; struct S { D d; D e, f; const D c; "
    text = "[Differentiable] [mutating] void g() { s(d); s(f); s(c); s(t); s(this); s(this.d); e.grow(); grow(); for (;;) {} }"
    got = rewrite_call_outputs(head + text + " [mutating] void grow() {} }")
    for part in ("d", "f", "this.d", "e"):
        assert re.search(rf" {part} = _spy_same_\w+\({part}\);", got), part
    assert got.count(" = _spy_same_") == 4
    # in front of the struct, since the function is of no type
    assert got.startswith(OUTS + "float t; T _spy_same_")


PATHS = "struct E : IDifferentiable { float z[4]; } struct B : IDifferentiable { float z[4]; E q[2]; int k[4]; float w; } struct H { B b; Tensor<float, 1> t; }\n"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("for (int i;;i++) a = x[i] * x[2 * i];", "for (int i;;i++) a = PICK(x, int(i)) * PICK(x, int(2 * i));"),
        ("a = x[n] + x[0];", "a = PICK(x, int(n)) + x[0];"),
        ("B b; a = b.z[n] + b.z[0];", "B b; a = PICK(b.z, int(n)) + b.z[0];"),
        ("B b; a = b.q[n].z[0] + b.q[0].z[0];", "B b; a = PICK(PICK(b.q, int(n)).z, int(0)) + b.q[0].z[0];"),
        ("for (int i;;i++) a = x[i] * x[i + n];", "for (int i;;i++) a = PICK(x, int(i)) * PICK(x, int(i + n));"),
        ("a = x[n]; n = 2; a += x[n];", "a = PICK(x, int(n)); n = 2; a += PICK(x, int(n));"),
        ("float3 v; a = v[n]; v.x += a;", "float3 v; a = PICK(v, int(n)); v.x = v.x + ( a);"),
    ],
)
def test_reads_that_may_meet(body: str, expected: str) -> None:
    line = "[Differentiable] void f(float a, float x[4], int n) {{ {} }}"
    got = rewrite_paths(PATHS + line.format(body))
    pick = re.search(r"_spy_pick_\w+", got)
    assert pick and got.count("\n") == 1
    assert got.replace(pick[0], "PICK").endswith(" { return v[i]; } " + line.format(expected))


@pytest.mark.parametrize(
    "body",
    [
        "for (int i;;i++) a = x[i] * x[i + 1] - x[i - 1];",  # neighbours never meet
        "for (int i;;i++) a = x[i] * x[i] + x[0];",
        "a = x[n]; for (int i;;i++) a += x[i];",
        "a = x[N] + x[0];",
        "float3 v; a = v[n]; v.y = a;",
        "[ForceUnroll] for (int i;;i++) { int k = 2 * i; a = x[i] * x[2 * i] + x[k] + x[0]; }",
        "B b; a = b.k[n] + b.k[0]; H h; a = h.t[n] + h.t[0]; a = b.w[n] + b.w[0];",
        "int y[3]; a = y[n] + y[0]; a = g[n] + g[0]; B b; x[n] = b.z[n];",
        "S s; a = s[n] + s[0]; a = t[n] + t[0];",
    ],
)
def test_reads_that_stay(body: str) -> None:
    text = f"{PATHS}RWBuffer<float> g;\n[Differentiable] void f(float a, float x[4], int n, float *t) {{ {body} }}"
    assert rewrite_paths(text) == text


@pytest.mark.parametrize(
    "body",
    [
        "float c; g(a, c);",  # no loop
        "for (;;) { float c; g(a, c); }",  # none after it
        "float c = sin(a); c = h(a) + h(c); for (;;) {}",  # nothing is written
        "float c; unknown(c + 1, float2(c, c), -c); for (;;) {}",
        "const float c = a; unknown(c); for (;;) {}",
        "float c; { S c; unknown(c); } for (;;) {}",  # the name of two
        "float c[2]; sin(c); unknown(c[0]); int d[2]; unknown(d); for (;;) {}",
        "S c; unknown(c, c.x); const float d[2] = e; unknown(d); for (;;) {}",
        "S c; s(c); c.method(a);",
        "g(a, c[i++]); g(a, c[k()]); for (;;) {}",
        "for (;;) { S c; } g(a, c.y); float2 d = a; g(d.x, b);",
        "for (float c = g(a, b); ; ) a += b; while (b) {}",
        "g(a, b); for (;;) { ",  # brackets do not match
    ],
)
def test_what_calls_leave_stays(body: str) -> None:
    source = OUTS + f"[Differentiable] void f(float a, float b) {{ {body} }}"
    assert rewrite_call_outputs(source) == source


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("if (n) { v.y = w.y; }", "if (n) { { v = -(-v); v.y = w.y; } }"),
        (
            "if (n) v[1] += f(w[0]); else v.xy *= w;",
            "if (n) { v = -(-v); v[1] += f(w[0]); } else { v = -(-v); v.xy *= w; }",
        ),
        ("if (n) return; half2x2 m; m[0][1]++;", "if (n) return; half2x2 m; { m = -(-m); m[0][1]++; }"),
        ("if (n) { ++v.y; --v; }", "if (n) { { v = -(-v); ++v.y; } --v; }"),
        (
            "var a = 2 * v.zyx; var i = int3(1, 2, 3); if (n) { a.y = 1; i.y = 2; }",
            "var a = 2 * v.zyx; var i = int3(1, 2, 3); if (n) { { a = -(-a); a.y = 1; } i.y = 2; }",
        ),
        ("switch (n) { case 1: v.y = 2; }", "switch (n) { case 1: { v = -(-v); v.y = 2; } }"),
        (
            "v.x = a; for (;;) { a += v.y; } v.y = w.y;",
            "v.x = a; for (;;) { a += v.y; } { v = -(-v); v.y = w.y; v = -(-v); }",
        ),
        (
            "v.x = a; for (;;) { float2 u; u.x = a; u.y = v.x; a += dot(a * u, u); }",
            "v.x = a; for (;;) { float2 u; { u = -(-u); u.x = a; } { u = -(-u); u.y = v.x; u = -(-u); } a += dot(a * u, u); }",
        ),
        (  # the other branch, which gives an element to a call
            "if (n) { v.y = w.y; } else { f(w.x, v.x); }",
            "if (n) { { v = -(-v); v.y = w.y; } } else { v = -(-v); f(w.x, v.x); }",
        ),
        (
            "if (n) { v.y = 1; } else { f(v.x, a > v.x); }",
            "if (n) { { v = -(-v); v.y = 1; } } else { v = -(-v); f(v.x, a > v.x); }",
        ),
        (
            "if (n) { float2 w; v.y = 1; } else if (v.x) { f(v.x); } else { float2 v; f(v.x); }",
            "if (n) { float2 w; { v = -(-v); v.y = 1; } } else if (v.x) { v = -(-v); f(v.x); } else { float2 v; f(v.x); }",
        ),
    ],
)
def test_elements_written_beside_branches_and_behind_loops(body: str, expected: str) -> None:
    head = "[Differentiable] void f(int n, float3 w, inout float3 v) {{ {} }}"
    assert rewrite_elements(head.format(body)) == head.format(expected)


@pytest.mark.parametrize(
    "body",
    [
        "v.y = w.y;",  # no branch
        "v.y = w.y; for (;;) { a += v.y; }",  # none, and no loop before
        "if (v.y == w.y) { v = w; a = v.y; }",
        "if (n) { s.q.y = 1; other.y = 2; }",  # not of this function
        "if (n) { int3 i; i.y = 2; float h[3]; h[0] = 1; }",
        "for (v.y = 0; v.y < 2; v.y += 1) { if (n) v.f(2); }",
        "float x = v.y = 2; if (n) x = 1;",
        "if (n) { v.y = 2; ",  # brackets do not match
    ],
)
def test_other_elements_stay(body: str) -> None:
    source = f"[Differentiable] void f(int n, float3 w, inout float3 v) {{ {body} }}"
    assert rewrite_elements(source) == source


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("v.y = a; for (;;) { v = v + a; }", "v.y = a; v = -(-v); for (;;) { v = v + a; }"),
        ("v[n] += a; [MaxIters(4)] for (;;) v.x = a;", "v[n] += a; v = -(-v); [MaxIters(4)] for (;;) v.x = a;"),
        ("change(a, v.y); while (n) { change(a, v); }", "change(a, v.y); v = -(-v); while (n) { change(a, v); }"),
        ("for (;;) { v.y = a; for (;;) { v.x = a; } }", "for (;;) { v.y = a; v = -(-v); for (;;) { v.x = a; } }"),
        (
            "v.y = a; if (n) for (;;) v = w; else do { v = w; } while (n);",
            "v.y = a; v = -(-v); if (n) for (;;) v = w; else do { v = w; } while (n);",
        ),
        (
            "v.y = a; switch (n) { case 1: for (;;) v = w; case A::B: for (;;) v = w; }",
            "v.y = a; v = -(-v); switch (n) { case 1: for (;;) v = w; case A::B: for (;;) v = w; }",
        ),
        ("v.y = a; outer: for (;;) { v = w; }", "v.y = a; v = -(-v); outer: for (;;) { v = w; }"),
        ("S s; S t; s[1] = a; for (;;) t = s;", "S s; S t; s[1] = a; s = same(s); for (;;) t = s;"),
        ("S s; S t; SET(a); for (;;) t = s;", "S s; S t; SET(a); s = same(s); for (;;) t = s;"),
        ("S s; s.p.x = a; for (;;) s = next(s);", "S s; s.p.x = a; s = same(s); for (;;) s = next(s);"),
        ("S s; s.p.x = a; for (;;) { s.step(a); }", "S s; s.p.x = a; s = same(s); for (;;) { s.step(a); }"),
        (
            "float h[3]; h[0] = a; for (;;) { h = turn(h); }",
            "float h[3]; h[0] = a; h = same(h); for (;;) { h = turn(h); }",
        ),
    ],
)
def test_elements_written_before_loops_that_change_the_variable(body: str, expected: str) -> None:
    types = "#define SET(a) set(s, a)\nvoid set(inout S s, float a) { } struct S : IDifferentiable { float2 p; [mutating] void step(float a) { } } void change(float a, inout float2 c) { } "
    head = "[Differentiable] void f(int n, float a, float2 w, inout float2 v) "
    got = rewrite_parts(f"{types}{head}{{ {body} }}")
    name = re.search(r"_spy_same_\w+", got)
    same = name[0] if name else "same"
    functions = f"T {same}<T>(T v) {{ return v; }} [Differentiable] T {same}<T : IDifferentiable>(T v) {{ return v; }} "
    expected = expected.replace("same(", f"{same}(")
    assert got == f"{types}{functions if name else ''}{head}{{ {expected} }}"


@pytest.mark.parametrize(
    "body",
    [
        "v = w; for (;;) { v = v + w; }",  # no element
        "for (;;) { v = v + w; } v.y = a;",  # later
        "v.y = a; [ForceUnroll] for (;;) { v = v + w; }",
        "int2 i; s.q.y = a; for (;;) { s.q = w; t.v = w; }",  # not of this function
        "float h[3]; h[0] = a; for (;;) { h[1] = h[0]; }",
        "const float2 u = w; for (;;) { f(sin(v), float2(v)); } v.y = a;",
        "S s; S t; for (;;) t = s; SET(a);",
        "v.y = a; for (;;) { v = w; ",  # brackets do not match
    ],
)
def test_loops_behind_no_elements_stay(body: str) -> None:
    source = f"[Differentiable] void f(int n, float a, float2 w, inout float2 v) {{ {body} }}"
    assert rewrite_parts(source) == source


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("m[k][k] = a;", "m[k][APART(k)] = a;"),
        ("m[(k)][k] += a; m[k][k].x--;", "m[(k)][APART(k)] += a; m[k][APART(k)].x--;"),
        ("++m[k + 1][k + 1];", "++m[k + 1][APART(k + 1)];"),
        ("s.r[k].q[k] *= a; this.m[n % 2][n % 2] = a;", "s.r[k].q[APART(k)] *= a; this.m[n % 2][APART(n % 2)] = a;"),
        ("change(a, m[k][k]);", "change(a, m[k][APART(k)]);"),
        ("MACRO(a, m[k][k]);", "MACRO(a, m[k][APART(k)]);"),
        ("s.r[k].p[k].step(a);", "s.r[k].p[APART(k)].step(a);"),
        ("t[k][k][k] = a;", "t[k][APART(k)][-(-(APART(k)))] = a;"),
        ("t[0][k][k] = t[1][k][k]; t[k][1][k] = a;", "t[0][k][APART(k)] = t[1][k][k]; t[k][1][APART(k)] = a;"),
        ("int j = k; m[k][j] = a;", "int j = k; m[k][APART(j)] = a;"),
        ("int K = k; m[K][K] = a;", "int K = k; m[K][APART(K)] = a;"),
        ("m[k][q[k][k]] = a;", "m[k][APART(q[k][k])] = a;"),
        ("for (int i = 0; i < n; i++) m[i][i] = a;", "for (int i = 0; i < n; i++) m[i][APART(i)] = a;"),
        (
            "for (int i = 0;; i++) for (int j = 0;;) { j = i; m[i][j] = a; }",
            "for (int i = 0;; i++) for (int j = 0;;) { j = i; m[i][APART(j)] = a; }",
        ),
        ("var u = uint2(n); b = m[u.x][u.x] = a;", "var u = uint2(n); b = m[u.x][APART(u.x)] = a;"),
    ],
)
def test_elements_written_at_two_indices_of_one_value(body: str, expected: str) -> None:
    types = "struct S { [mutating] void step(float a) { } } void change(float a, inout float c) { } "
    head = f"{types}[Differentiable] void f(int n, int k, float a, inout float2x2 m) "
    expected = re.sub(r"APART\(([^()]*)\)", r"-(-int(\1))", expected)
    assert rewrite_diagonals(f"{head}{{ {body} }}") == f"{head}{{ {expected} }}"


@pytest.mark.parametrize(
    "body",
    [
        "a = m[k][k]; if (m[k][k] == a) a = look(m[k][k], sin(m[k][k]));",  # reads
        "m[1][1] = a; m[N][N] = a; m[k][0] = a; m[k] = a; m[k].x = a;",
        "m[k][k + 1] = a; m[k - 1][k] *= a; m[k + 1][k - 1] += a;",  # never the same
        "for (int i = 0; i < n; i++) for (int j = i; j < n; j++) m[i][j] = a;",
        "[ForceUnroll] for (int i = 0; i < 2; i++) m[i][i] = a;",
        "D d; d[e][e] = a; float x = 1; c[x][x] = a;",  # of types that int() may not take
        "m[k][k] = a; ]",  # brackets do not match
    ],
)
def test_other_writes_stay(body: str) -> None:
    source = (
        f"float look(float a, float b) {{ }} [Differentiable] void f(int n, int k, E e, inout float2x2 m) {{ {body} }}"
    )
    assert rewrite_diagonals(source) == source
    assert rewrite_diagonals("void f(int k, inout float2x2 m) { m[k][k] = 1; }").count("-") == 0


def test_accessors_write_at_two_indices_of_one_value() -> None:
    source = "struct S { __subscript(int k) -> float { [Differentiable] get { return m[k][k]; } [Differentiable] set { m[k][k] = newValue; } } }"
    assert rewrite_diagonals(source) == source.replace("m[k][k] =", "m[k][-(-int(k))] =")


def test_diagnostics_of_elements_at_two_indices_quote_what_the_user_wrote(new_session) -> None:
    source = "[Differentiable] float f(float2x2 m, int k)\n{\n    m[k][k] = undefined_name;\n    return m[0][0];\n}\n"
    with pytest.raises(RuntimeError) as error:
        new_session().load_module_from_source("diagonal", source, "diagonal.slang")
    assert "diagonal.slang:3:15" in str(error.value) and "| m[k][k] = undefined_name;" in str(error.value)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("c[0].x = a; c[1] = c[0];", "c[0].x = a; c = same(c); c[1] = c[0]; c = same(c);"),
        ("c[0][k] += a; c[1] = c[0] * a;", "c[0][k] += a; c = same(c); c[1] = c[0] * a; c = same(c);"),
        ("if (k > 0) c[0].x = a; else c[1].y = a; c[1] = c[0];", "if (k > 0) { c[0].x = a; c = same(c); } else { c[1].y = a; c = same(c); } c[1] = c[0]; c = same(c);"),
        ("switch (k) { case 0: c[0].x++; default: c[1] = c[0]; }", "switch (k) { case 0: c[0].x++; c = same(c); default: c[1] = c[0]; c = same(c); }"),
        ("for (int i = 0; i < k; i++) { c[1] = c[0]; c[0].x = a; }", "for (int i = 0; i < k; i++) { c[1] = c[0]; c = same(c); c[0].x = a; c = same(c); }"),
        ("change(a, c[0].x); c[1] = k > 0 ? c[0] : c[1];", "change(a, c[0].x); c = same(c); c[1] = k > 0 ? c[0] : c[1]; c = same(c);"),
        ("S s[2]; s[0].p.x = a; s[1].step(a);", "S s[2]; s[0].p.x = a; s = same(s); s[1].step(a); s = same(s);"),
        ("float m[2][2]; m[0][1] = a; m[1] = m[0];", "float m[2][2]; m[0][1] = a; m = same(m); m[1] = m[0]; m = same(m);"),
        ("Two d; d[0].x = a; d[1] = d[0];", "Two d; d[0].x = a; d = same(d); d[1] = d[0]; d = same(d);"),
    ],
)  # fmt: skip
def test_arrays_of_which_elements_are_written_in_part(body: str, expected: str) -> None:
    types = "struct S { float2 p; [mutating] void step(float a) { } } typedef float2 Two[2]; void change(float a, inout float c) { } "
    head = "[Differentiable] void f(int k, float a, inout float2 c[2]) "
    got = rewrite_parts(f"{types}{head}{{ {body} }}")
    name = re.search(r"_spy_same_\w+", got)
    assert name is not None
    same = name[0]
    functions = f"T {same}<T>(T v) {{ return v; }} [Differentiable] T {same}<T : IDifferentiable>(T v) {{ return v; }} "
    assert got == f"{types}{functions}{head}{{ {expected.replace('same(', f'{same}(')} }}"


@pytest.mark.parametrize(
    "body",
    [
        "c[0].x = a; c[0].y = a; c[1].x = a;",  # parts only
        "c[1] = c[0]; c[0].x = a;",  # no whole element after it
        "c[k].x = a; c[1] = c[0];",  # the compiler does not know the index
        "for (int i = 0; i < k; i++) { c[i].x = a; c[1] = c[0]; }",
        "const float2 d[2] = c; f(d[0].x); c[1] = d[0];",
        "float2 d = c[0]; d.x = a; c[1] = d;",
        "c[0].x = a; c[1] = c[0]; ]",  # brackets do not match
    ],
)
def test_arrays_that_are_written_otherwise_stay(body: str) -> None:
    source = f"[Differentiable] void f(int k, float a, inout float2 c[2]) {{ {body} }}"
    assert rewrite_parts(source) == source
    assert rewrite_parts("void f(inout float2 c[2]) { c[0].x = 1; c[1] = c[0]; }").count("same") == 0


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("if (k > 0) v.x = a; else w.y = a;", "if (k > 0) { v.x = a; v = -(-v); } else { w.y = a; w = -(-w); }"),
        ("v[k] = a; if (k > 0) { v = w; w *= a; }", "v[k] = a; v = -(-v); if (k > 0) { v = w; w *= a; }"),
        ("if (k > 0) { ++v.x; } v.y = a;", "if (k > 0) { ++v.x; v = -(-v); } v.y = a;"),
        ("if (k > 0) change(a, v.x);", "if (k > 0) { change(a, v.x); v = -(-v); }"),
        ("S s, t; if (k > 0) s.p.x = a; else t = s;", "S s, t; if (k > 0) { s.p.x = a; s = same(s); } else t = s;"),
        ("S s; Same t; t = s; if (k > 0) s.step(a); s.p.x = a;", "S s; Same t; t = s; if (k > 0) s.step(a); s.p.x = a;"),
        ("Two s; Two t; switch (k) { case 0: s[0].p.x = a; break; default: t = s; }", "Two s; Two t; switch (k) { case 0: s[0].p.x = a; s = same(s); break; default: t = s; }"),
        ("float x[2], y[2]; for (int i = 0; i < k; i++) { x[i] = a; if (k > 0) y[i] = a; }", "float x[2], y[2]; for (int i = 0; i < k; i++) { x[i] = a; x = same(x); if (k > 0) { y[i] = a; y = same(y); } }"),
        ("float x[2], y[2]; for (int i = 0; i < k; i++) { y = x; x[i] = a; }", "float x[2], y[2]; for (int i = 0; i < k; i++) { y = x; x[i] = a; x = same(x); }"),
        ("S s, t; s.p.x = a; s.p.y = a; if (k > 0) t = s;", "S s, t; s.p.x = a; s.p.y = a; s = same(s); if (k > 0) t = s;"),
        ("int2 x, y; y.x = 1; while (k > 0) x.x = k--;", "int2 x, y; y.x = 1; y = same(y); while (k > 0) x.x = k--;"),
    ],
)  # fmt: skip
def test_variables_that_are_written_in_part_where_branches_meet(body: str, expected: str) -> None:
    types = "struct S { float2 p; [mutating] void step(float a) { } } typedef S Same; typedef S Two[2]; void change(float a, inout float c) { } "
    head = "[Differentiable] void f(int k, float a, float2 v, inout float2 w) "
    got = rewrite_parts(f"{types}{head}{{ {body} }}")
    name = re.search(r"_spy_same_\w+", got)
    same = name[0] if name else ""
    functions = (
        f"T {same}<T>(T v) {{ return v; }} [Differentiable] T {same}<T : IDifferentiable>(T v) {{ return v; }} "
        if name
        else ""
    )
    assert got == f"{types}{functions}{head}{{ {expected.replace('same(', f'{same}(')} }}"


def test_generated_kernels_stay() -> None:
    source = "typedef float3 _spy_T_a; [Differentiable] void f(int k) { _spy_T_a a; if (k > 0) k = 1; a[0] = 1; for (; k > 0; k--) { a[1] = 2; } }"
    assert rewrite_elements(source) == source


def test_objects_that_are_written_in_part_where_branches_meet() -> None:
    head, body = "[mutating] void f(int k, S s)", "{ if (k > 0) p = 1; else s.p = 2; }"
    got = rewrite_parts(f"struct S {{ float p; [Differentiable] {head} {body} }}")
    assert (
        re.sub(r"_spy_same_\w+", "same", got[got.index(head) :])
        == f"{head} {{ if (k > 0) {{ p = 1; this = same(this); }} else {{ s.p = 2; s = same(s); }} }} }}"
    )


@pytest.mark.parametrize(
    "body",
    [
        "v.x = a; w.y = a;",  # no branch
        "if (k > 0) w = v; v.x = a;",  # no branch after it
        "S s; if (k > 0) s.p.x = a;",  # nothing else of the type
        "B s, t; t = s; if (k > 0) s.p.x = a;",  # holds a buffer
        "float x[2], y[2]; for (int i = 0; i < k; i++) { x[i] = a; y[i] = a; }",  # no branch in the loop
        "float x[2], y[4]; Unknown u, t; t = u; if (k > 0) u.x = a;",
        "if (k > 0) return v.x = a;",
    ],
)
def test_variables_that_are_written_otherwise_stay(body: str) -> None:
    types = "struct S { float2 p; } struct B { float2 p; RWStructuredBuffer<float> b; } "
    source = f"{types}[Differentiable] void f(int k, float a, float2 v, inout float2 w) {{ {body} }}"
    assert rewrite_parts(source) == source
    plain = source.replace("[Differentiable] ", "/* Differentiable */ ")
    assert rewrite_parts(plain) == plain


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("v.x = a, c[1] = c[0];", "v.x = a; c[1] = c[0];"),
        ("if (k > 0) v.x = a, ++k; else f(a), v.y = a;", "if (k > 0) { v.x = a; ++k; } else { f(a); v.y = a; }"),
        ("(v.x = a);", " v.x = a ;"),
        ("(c[0]).x = a; a = (c[k]).y;", " c[0] .x = a; a =  c[k] .y;"),
        ("if (k > 0) (v).x = a; else (v.y) += a;", "if (k > 0)  v .x = a; else  v.y  += a;"),
        ("a = v.x = k;", "v.x = k; a = v.x;"),
        ("a += (v.x *= k);", "v.x *= k ; a += v.x;"),
        ("float d = c[0].y = a;", "c[0].y = a; float d = c[0].y;"),
        ("for (;;) a = v.x = k;", "for (;;) { v.x = k; a = v.x; }"),
        ("v.x = a, (a = v.y = k);", "v.x = a;  v.y = k ; a = v.y;"),
        ("(v.x = a, v.y = k);", " v.x = a; v.y = k ;"),
        ("v.x = a = c[1].y = k;", "c[1].y = k; v.x = a = c[1].y;"),
        ("a = (v.x = k, a);", "a = (v.x = k, a);"),
        ("a = v.x = k, v.y = a;", "v.x = k; a = v.x; v.y = a;"),
        ("while (k > 0) k--, v.x = a;", "while (k > 0) { k--; v.x = a; }"),
        ("static float d = v.x = a; const float e = a, f = v.x = a;", "static float d = v.x = a; const float e = a, f = v.x = a;"),
    ],
)
def test_assignments_inside_expressions(body: str, expected: str) -> None:
    head = "[Differentiable] void f(int k, float a, inout float2 v, inout float2 c[2]) "
    assert rewrite_sequences(f"{head}{{ {body} }}") == f"{head}{{ {expected} }}"


@pytest.mark.parametrize(
    "body",
    [
        "float d = a, e = k; float2 g[2] = { v, v }, h;",
        "S<float, 2> s; vector<float, 2> u, w;",
        "for (k = 0, a = 1; k < 2; k++, v.x = a) g(a, k);",
        "return a, k;",
        "if ((v.x = a) > 0) a = b;",
        "a = (float)k; (f)(a); v = (float2)(c[0]).x; a = (float).5;",
        "a = (v.x + 1); v = (v); a = f((v.x = k), 1);",
        "v[k] = v.x = a; c[k = 1].x = v.x == a; a = c[k++].x = 1;",
        "a = k > 0 ? v.x : v.y;",
    ],
)
def test_other_expressions_stay(body: str) -> None:
    source = f"[Differentiable] void f(int k, float a, inout float2 v, inout float2 c[2]) {{ {body} }}"
    assert rewrite_sequences(source) == source
    assert (
        rewrite_sequences("void f(inout float2 v) { v.x = 1, v.y = 2; }")
        == "void f(inout float2 v) { v.x = 1, v.y = 2; }"
    )


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("x = dot(float2(c, x), float2(1, c));", "x = dot(float2(detach(c), x), float2(1, detach(c)));"),
        (
            "float2x2 m = matrix<float, 2, 2>(c, x, c * 2, -c);",
            "float2x2 m = matrix<float, 2, 2>(detach(c), x, c * 2, -c);",
        ),
        ("float d = c; d = c; x = c + max(c, x);", "float d = detach(c); d = detach(c); x = c + max(c, x);"),
        ("float d = x, e = c; d += c; d = +c; d = -c;", "float d = x, e = detach(c); d += c; d = +detach(c); d = -c;"),
        ("float r[2] = { c, x }, q[] = { x, (c) };", "float r[2] = { detach(c), x }, q[] = { x, (detach(c)) };"),
        (
            "float r[2][2] = { g, { c, c * 2 } }; r[1] = g;",
            "float r[2][2] = { detach(g), { detach(c), c * 2 } }; r[1] = detach(g);",
        ),
        ("var r = float[2](c, g[0]); r[c > x] = c;", "var r = float[2](detach(c), g[0]); r[c > x] = detach(c);"),
        (
            "x = x > c ? c : x == c ? x : c; x = (float)c;",
            "x = x > c ? detach(c) : x == c ? x : detach(c); x = (float)detach(c);",
        ),
        (
            "float4 v = float4(k, k); x = dot(k, c) * f(c, k);",
            "float4 v = float4(detach(k), detach(k)); x = dot(k, c) * f(c, k);",
        ),
        (
            "if (c > 0) { float d = s.p; } S t = s, u = { c };",
            "if (c > 0) { float d = s.p; } S t = detach(s), u = { detach(c) };",
        ),
        ("c = x; c = c; x = float2(c, x).x;", "c = x; c = (-(-c)); x = float2((-(-c)), x).x;"),
        ("do c = x; while (x < c); x = float2(c, x).x;", "do c = x; while (x < c); x = float2((-(-c)), x).x;"),
        ("c++; g[0] = x; float r[2] = g; s.p = c; S t = s;", "c++; g[0] = x; float r[2] = g; s.p = (-(-c)); S t = s;"),
        ("M n = m; int j = i; int l[2] = { i, 1 };", "M n = m; int j = i; int l[2] = { i, 1 };"),
        ("float3 v = u; v = float3(c);", "float3 v = detach(u); v = float3(detach(c));"),
        ("(c) = x; for (x = c; x < c; x++) ;", "(c) = x; for (x = (-(-c)); x < c; x++) ;"),
        ("float2 v = float2(k.x, c.x);", "float2 v = float2(k.x, c.x);"),
        (
            "{ float c = x; x = length(float2(c, x)); } x = float2(c, x).y;",
            "{ float c = x; x = length(float2(c, x)); } x = float2(detach(c), x).y;",
        ),
        ("for (float c = 0; c < 2; c++) x += float2(c, x).x;", "for (float c = 0; c < 2; c++) x += float2(c, x).x;"),
        ("float b, c = x; x += float2(c, x).x;", "float b, c = x; x += float2(c, x).x;"),
    ],
)
def test_no_diff_components(body: str, expected: str) -> None:
    head = (
        "interface I : IDifferentiable {} struct S : J, I { float p; } struct M { float p; } struct G<T : IDifferentiable> { T p; } "
        "[Differentiable] void f(inout float x, no_diff float c, no_diff float2 k, no_diff float g[2], no_diff S s, no_diff M m, "
        "no_diff int i, no_diff vector<float, 3> u, no_diff G<float> h, no_diff out float o, float z) "
    )
    assert rewrite_detached(f"{head}{{ {body} }}") == f"{head}{{ {expected} }}"
    plain = head.replace("[Differentiable]", "")
    assert rewrite_detached(f"{plain}{{ {body} }}") == f"{plain}{{ {body} }}"
    others = "G<float> t = h; o = z; float3 v = float3(o, z, z); m = m; return c;"
    assert rewrite_detached(f"{head}{{ {others} }}") == f"{head}{{ {others} }}"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("for (int i = n; i > 0; i--) s += i;", "for (int i = n; i > 0; ) { s += i; i--; }"),
        ("for (int i = -n; i < 0; i++) { s += i; }", "for (int i = -n; i < 0; ) { s += i; i++; }"),
        ("for (; i > 0; i = i / 2) if (c) continue;", "for (; i > 0; ) { if (c) { i = i / 2; continue; } i = i / 2; }"),
        ("for (int i = 0, j = n; i < j; i++, --j) { }", "for (int i = 0, j = n; i < j; ) { i++; --j; }"),
        (
            "for (int i = n; i > 0; i--) [MaxIters(2)] for (int j = i; j < n; j++) { while (c) { continue; } continue; }",
            "for (int i = n; i > 0; ) { [MaxIters(2)] for (int j = i; j < n; ) { while (c) { continue; } { j++; continue; } j++; } i--; }",
        ),
        ("while (i-- > 0) s += i;", "while (i > 0) { i--; s += i; }"),
        ("while (++i) { s += i; }", "while ((i + 1) != 0) { i++; s += i; }"),
        ("for (int i = n; --i >= 0;) s += i;", "for (int i = n; (i - 1) >= 0;) { i--; s += i; }"),
        ("while (i-- > 0) s += i; s += i;", "while (i > 0) { i--; s += i; } i--; s += i;"),
        ("while (i-- > 0) break; s += i;", "while (i > 0) { i--; { i++; break; } } i--; s += i;"),
        (
            "while (i-- > 0) [MaxIters(2)] while (c-- > 0) s += i;",
            "while (i > 0) { i--; { [MaxIters(2)] while (c > 0) { c--; s += i; } c--; } }",
        ),
        ("while (i-- > 0) { if (c) break; } s += i;", "while (i > 0) { i--; if (c) { i++; break; } } i--; s += i;"),
        ("for (int i = n; i > 0; /* why */ i //\n --\n) s += i;", "for (int i = n; i > 0; /* why */ \n\n) { s += i; i --; }"),
    ],
)
def test_counters(body: str, expected: str) -> None:
    head = "[Differentiable] float f(int n, int i, int c) {{ float s; [MaxIters(4)] {} return s; }}"
    assert rewrite_counters(head.format(body)) == head.format(expected)


@pytest.mark.parametrize(
    "body",
    [
        "for (int i = 0; i < n; i++) s += i;",
        "for (int i = -1, j = n; i < j; i++) s += i;",
        "for (int i = n; i > 0;) { i--; }",
        "for (int i = n; i > 0; step(i)) s += i;",
        "for (int i = n; i > 0; i--) { int i = 2; s += i; }",
        "for (int i = n; i > 0; i--) { defer { s += i; } }",
        "for (int i = n; i > 0; i -= k) { int k = 2; s += i; }",
        "for (int i = n; i > 0; i--) { UNKNOWN; }",
        "while (i-- > 0) { int i = 2; }",
        "while (i-- > change(i)) s += 1;",
        "outer: while (i-- > 0) { while (c) break outer; } s += i;",
        "while (i-- > 0 && s < 3) s += 1;",
        "while (i-- > i / 2) s += 1;",
        "do { s += 1; } while (i-- > 0);",
        "for (int i = n; i > 0; i--) {",
    ],
)
def test_other_counters_stay(body: str) -> None:
    for source in (
        f"[Differentiable] float f(int n, int i, int k) {{ float s; [MaxIters(4)] {body} return s; }}",
        f"float f(int n, int i, int k) {{ [MaxIters(4)] {body} for (int i = n; i > 0; i--) {{}} }}",
        "[Differentiable] float f(int n) { [ForceUnroll] for (int i = n; i > 0; i--) {} for (int i = n; i > 0; i--) {} }",
    ):
        assert rewrite_counters(source) == source


def test_only_functions_that_are_understood() -> None:
    loop = "[MaxIters(4)] for (int i = n; i > 0; i--) { if (n) continue; }"
    understood = f"[Differentiable] void g(int n) {{ {loop} }}\n"
    macro = f"#define NEXT continue\n[Differentiable] void f(int n) {{ {loop.replace('continue', 'NEXT')} }}\n"
    split = f"#if A\n[Differentiable] void f(int n) {{\n#else\n[Differentiable] void f(int n, int m) {{\n#endif\n{loop} }}\n"
    hidden = "#define BY (k)\n[Differentiable] void f(int n, int k) { [MaxIters(4)] for (int i = n; i > 0; i -= BY) { int k = 2; } }\n"
    changed = rewrite_counters(understood)
    assert changed != understood
    for source in (macro, split, hidden):
        assert rewrite_counters(source + understood) == source + changed
