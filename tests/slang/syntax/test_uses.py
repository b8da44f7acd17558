"""What names mean, and what functions do with their variables."""

from __future__ import annotations

import pytest

from slangpy._slang import syntax_indices, syntax_meanings, syntax_types, syntax_uses, syntax_variables

pytestmark = pytest.mark.null


def uses(
    body: str, before: str = "", parameters: str = "", imports: list[str] | None = None
) -> list[tuple[str, str, str]]:
    """(variable, access, path) in a function of that body."""
    found: list[tuple[str, str, str]] = syntax_uses(f"{before}\nvoid f({parameters}) {{ {body} }}", "f", imports or [])[
        "uses"
    ]
    return found


SCOPES = """
static float g;
struct S<T> {
    float q;
    void m(float a) { float q2 = q + this.q + a; { float a = 1; q = a; } q = a; }
    float q_of() { return g; }
}
extension S<float> { void more() { q = 1; } }
void f(no_diff float x, inout float3 y[2], in out S<int> s, out half h, constref int c)
{
    const int n = 2;
    for (int x = 0; x < n; x++) { y[x] = 1; }
    let l = x;
    groupshared float t;
    g = (float x) => x;
}
"""


def declared_at(name: str, nth: int) -> int:
    """Where the declaration of a name stands that is the nth of `type name`."""
    at = -1
    for _ in range(nth):
        at = SCOPES.index(f"float {name}", at + 1)
    return at + len("float ")


def test_names_mean_the_innermost_declaration() -> None:
    meanings = [meaning for _, meaning in syntax_meanings(SCOPES, "a")]
    outer, inner = declared_at("a", 1), declared_at("a", 2)
    assert meanings == [outer, inner, outer]
    field = declared_at("q;", 1)
    assert [meaning for _, meaning in syntax_meanings(SCOPES, "q")] == [field] * 4
    assert [meaning for _, meaning in syntax_meanings(SCOPES, "g")] == [declared_at("g;", 1)] * 2
    parameter, counter, of_lambda = declared_at("x,", 1), SCOPES.index("int x") + 4, declared_at("x)", 1)
    assert [meaning for _, meaning in syntax_meanings(SCOPES, "x")] == [counter] * 3 + [parameter, of_lambda]


def test_what_is_known_of_variables() -> None:
    found = syntax_variables(SCOPES)
    assert found["g"] == ("global", "float", "in", "static ")
    assert found["q"] == ("field", "float", "in", "")
    assert found["y"] == ("parameter", "float3", "inout", "array ")
    assert found["s"] == ("parameter", "S<int>", "inout", "")
    assert found["h"] == ("parameter", "half", "out", "")
    assert found["c"] == ("parameter", "int", "in", "")
    assert found["n"] == ("local", "int", "in", "const ")
    assert found["l"] == ("local", "", "in", "const ")
    assert found["t"] == ("local", "float", "in", "groupshared ")
    assert found["T"][0] == "generic"


def test_two_declarations_in_one_scope_are_doubtful() -> None:
    found = syntax_variables("void f() {\n#if A\nfloat x;\n#else\nhalf x;\n#endif\n{ int y; } { int y; } }")
    assert found["x"][3] == "doubtful " and found["y"][3] == ""


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("x = y;", [("x", "written", "x"), ("y", "read", "y")]),
        ("x += 1; x++; --x;", [("x", "updated", "x")] * 3),
        ("x.xy = 1;", [("x", "written", "x.xy")]),
        ("s.q[y].x += 1;", [("s", "updated", "s.q[y].x"), ("y", "read", "y")]),
        ("(s.q)[0].x = y;", [("s", "written", "(s.q)[0].x"), ("y", "read", "y")]),
        ("fill(x, y);", [("x", "by_reference", "x"), ("y", "read", "y")]),
        ("fill(s.q[1], y + x);", [("s", "by_reference", "s.q[1]"), ("y", "read", "y"), ("x", "read", "x")]),
        ("fill(x, y, 1);", [("x", "read", "x"), ("y", "by_reference", "y")]),
        ("nowhere(x, y * 2);", [("x", "unknown", "x"), ("y", "read", "y")]),
        ("sin(x); float3(x, y, 0); min<float>(x, y);", [("x", "read", "x"), ("x", "read", "x"), ("y", "read", "y"),
                                                        ("x", "read", "x"), ("y", "read", "y")]),
        ("matrix<float, 1, 2>(x, y); float[1](x);", [("x", "read", "x"), ("y", "read", "y"), ("x", "read", "x")]),
        ("sincos(x, y, z);", [("x", "read", "x"), ("y", "by_reference", "y"), ("z", "by_reference", "z")]),
        ("s.bump(x); s.look(); s.q[0].odd();", [("s", "by_reference", "s"), ("x", "read", "x"), ("s", "read", "s"),
                                                ("s", "unknown", "s.q[0]")]),
        ("s.q.getCount(); sizeof(x); s.q.push(y);", [("s", "read", "s.q"), ("x", "read", "x"), ("s", "unknown", "s.q"),
                                                     ("y", "unknown", "y")]),
        ("bwd_diff(fill)(x, y);", [("x", "unknown", "x"), ("y", "unknown", "y")]),
        ("float *p = &x;", [("p", "declared", "p = &x"), ("x", "unknown", "x")]),
        ("S t = {x}; Own(y);", [("t", "declared", "t = {x}"), ("x", "read", "x"), ("y", "read", "y")]),
        ("y = x = z;", [("y", "written", "y"), ("x", "written", "x"), ("z", "read", "z")]),
    ],
)  # fmt: skip
def test_uses(body: str, expected: list[tuple[str, str, str]]) -> None:
    before = (
        "struct P { float x; } struct Own { float a; } struct S { P q[2]; [mutating] void bump(float a) { } void look() { } }\n"
        "void fill(out float a, float b) { } void fill(float a, inout float b, int n) { }"
    )
    assert uses(body, before, "float3 x, float y, float z, inout S s") == expected


def test_fields_by_this_and_by_name_are_one_variable() -> None:
    source = "struct S { int n; float v; [mutating] void f() { n--; this.n += 1; this.v = n; other(this); } }"
    assert syntax_uses(source, "f")["uses"] == [
        ("n", "updated", "n"), ("n", "updated", "this.n"), ("v", "written", "this.v"), ("n", "read", "n"), ("this", "unknown", "this"),
    ]  # fmt: skip


def test_imports_say_what_calls_write() -> None:
    imported = ["void theirs(inout float x, float y) { }"]
    assert uses("theirs(a, a);", "", "float a") == [("a", "unknown", "a")] * 2
    assert uses("theirs(a, a);", "", "float a", imported) == [("a", "by_reference", "a"), ("a", "read", "a")]


def test_macros_may_do_anything_to_what_they_name() -> None:
    assert uses("float acc = 0; y = TOTAL;", "#define TOTAL (acc)", "float y") == [
        ("acc", "declared", "acc = 0"), ("y", "written", "y"), ("acc", "unknown", "TOTAL"),
    ]  # fmt: skip


@pytest.mark.parametrize("macro", ["max(a, b) ((a) = (b), 1)", "max(a, b) other(a, b)"])
def test_macros_are_not_the_functions_that_they_hide(macro: str) -> None:
    assert ("x", "unknown", "x") in uses("y = max(x, y);", f"#define {macro}", "float x, float y") or not syntax_uses(
        f"#define {macro}\nvoid f(float x, float y) {{ y = max(x, y); }}", "f"
    )["understood"]


def test_loops() -> None:
    body = """
    float s = 0, r = 1; int k = 9;
    [MaxIters(N + 1)] for (int i = n; i > 0; i--) {
        float t = a * i;
        s += t;
        [ForceUnroll] for (int j = 0; j < 3; j++) { v[j] = t; }
        while (k > 0) { k--; if (k == 2) continue; t = k; }
    }
    do { r = s; } while (s < 0);
    for (; k < 4; k += 2) { }"""
    found = syntax_uses(f"float f(int n, float a, inout float v[3]) {{ {body} return s; }}", "f")
    assert found["loops"] == [
        (False, "N + 1", "i", ["v", "s", "k", "i"]),
        (True, "", "j", ["v", "j"]),
        (False, "", "", ["k"]),
        (False, "", "", []),
        (False, "", "k", ["k"]),
    ]
    assert found["exits"] == [("continue;", "while"), ("return s;", "")]
    assert found["understood"]


def test_exits() -> None:
    body = """
    outer: for (;;) {
        switch (n) { case 1: break; case 2: continue; }
        while (true) { if (n) break outer; else break; }
        let g = (int x) => { return x; };
        discard;
    }
    return;"""
    assert syntax_uses(f"void f(int n) {{ {body} }}", "f")["exits"] == [
        ("break;", "switch"), ("continue;", "for"), ("break outer;", "for"), ("break;", "while"), ("discard;", ""), ("return;", ""),
    ]  # fmt: skip


def test_indices_meet() -> None:
    body = """
    for (int i = 0; i < n; i++) {
        x[i] = x[i + 1] * x[k] + x[(i) + 1];
        int j = i; x[j] = 1; x[j - 1] = 2;
        while (k > 0) { k--; x[m] = 1; }
        x[2] = x[3];
    }
    [ForceUnroll] for (int u = 0; u < 3; u++) { const int w = 2 * u; x[w] = x[u]; }"""
    found = syntax_indices(f"void f(int n, int k, int m, inout float x[9]) {{ {body} }}", "f", "x")
    assert found["x[i]", "x[i + 1]"] == "never"
    assert found["x[i + 1]", "x[(i) + 1]"] == "same"
    assert found["x[i]", "x[k]"] == "possible"
    assert found["x[j]", "x[j - 1]"] == "never"
    assert found["x[i]", "x[j]"] == "possible"
    assert found["x[2]", "x[3]"] == "never"
    known = {name: found[name] for name in ("i", "k", "m", "2", "w", "u", "j")}
    assert known == {"i": (False, False), "k": (False, False), "m": (False, True), "2": (True, True), "w": (True, True),
                     "u": (True, True), "j": (False, False)}  # fmt: skip


def test_parts_meet() -> None:
    found = syntax_indices(
        "void f(inout S s, int i) { s.a.x = s.b.x; s.v.xy = s.v.z; s.v.rg = s.v.yz; s.m[i].q = s.m[i]; }", "f", "s"
    )
    assert found["s.a.x", "s.b.x"] == "never"
    assert found["s.v.xy", "s.v.z"] == "never"
    assert found["s.v.xy", "s.v.rg"] == "same"
    assert found["s.v.xy", "s.v.yz"] == "possible"
    assert found["s.m[i].q", "s.m[i]"] == "possible"


@pytest.mark.parametrize("body", ["NEXT;", "x = + ;", "x = 1\n#if A\n + 2\n#endif\n;"])
def test_what_is_not_understood_is_said(body: str) -> None:
    source = f"#define NEXT continue\nvoid f(float x) {{ for (;;) {{ {body} }} }} void g(float x) {{ x = 1; }}"
    assert not syntax_uses(source, "f")["understood"]
    assert syntax_uses(source, "g")["understood"]


def test_types_of_paths() -> None:
    imported = "struct Far : IDifferentiable { float2 w[3]; } typedef float4 Colour; typealias Trio = Far[3];"
    source = """
    interface J : IDifferentiable { }
    struct Near : J { Far far; Colour c; int n; Array<half, 2> h; }
    struct Holder { StructuredBuffer<float> b; }
    enum E { A }
    void f<T : IFloat, let N : int, U>(Near s, Colour c, Trio t, Holder o, T g, U u, J j, float m[2][3], matrix<float, 2, 3> p, E e,
                                       float* q, Elsewhere w, bool3 b, float2x3 r)
    {
        let l = 1;
        s; s.far; s.far.w; s.far.w[0]; s.far.w[0].x; s.c; s.n; s.h; s.h[1]; c; c.xy; t; t[0]; o; g; u; j; m; m[0]; m[0][1]; p; p[0]; e;
        q; w; b; b.x; l; r[0].y;
    }"""
    assert syntax_types(source, "f", [imported]) == {
        "s": "structure differentiable", "s.far": "structure differentiable", "s.far.w": "array float differentiable",
        "s.far.w[0]": "vector float differentiable", "s.far.w[0].x": "scalar float differentiable", "s.c": "vector float differentiable",
        "s.n": "scalar discrete", "s.h": "array float differentiable", "s.h[1]": "scalar float differentiable",
        "c": "vector float differentiable", "c.xy": "vector float differentiable", "t": "array differentiable",
        "t[0]": "structure differentiable", "o": "memory", "g": "generic differentiable", "u": "generic", "j": "interface differentiable",
        "m": "array float differentiable", "m[0]": "array float differentiable", "m[0][1]": "scalar float differentiable",
        "p": "matrix float differentiable", "p[0]": "vector float differentiable", "e": "scalar discrete", "q": "memory",
        "w": "unknown", "b": "vector discrete", "b.x": "scalar discrete", "l": "scalar discrete", "r[0].y": "scalar float differentiable",
    }  # fmt: skip


def test_types_of_values() -> None:
    values = {
        "a": ("v.xy * 2", "vector float differentiable"), "b": ("2 * n + n", "scalar discrete"), "c": ("n < 2.5", "scalar discrete"),
        "d": ("sin(x) * 2 + n", "scalar float differentiable"), "e": ("sin(v)", "unknown"), "g": ("dot(v, v)", "scalar float differentiable"),
        "h": ("n > 0 ? s : made(x)", "structure differentiable"), "i": ("float2[2](v.xy, v.yz)", "array float differentiable"),
        "j": ("(n, made(x).q[1])", "scalar float differentiable"), "k": ("s + s", "unknown"), "l": ("twice(x)", "unknown"),
        "m": ("(half)n", "scalar float differentiable"), "o": ("-x + 1", "scalar float differentiable"), "p": ("d + e", "unknown"),
        "r": ("x * v", "vector float differentiable"), "t": ("0xEF", "scalar discrete"), "u": ("diffPair(x, x)", "unknown"),
    }  # fmt: skip
    declared = " ".join(f"let {name} = {value};" for name, (value, _) in values.items())
    source = f"""
    struct S : IDifferentiable {{ float2 q; }}
    S made(float x) {{ }}
    float twice(float x) {{ }} float2 twice(float2 x) {{ }}
    void f(S s, float x, float3 v, int n) {{ {declared} {"; ".join(values)}; }}"""
    found = syntax_types(source, "f", [])
    assert {name: found[name] for name in values} == {name: type for name, (_, type) in values.items()}
