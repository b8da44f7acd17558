"""Trees of chosen sources, each as it has to be read."""

from __future__ import annotations

import pytest

from slangpy._slang import SourceFacts, syntax_tree

pytestmark = pytest.mark.null

_BEFORE = "(file (function f (modifiers) void - (parameters) - (wheres) (block "
_AFTER = ")))"


def statement(text: str) -> str:
    """The tree of what stands in a function."""
    tree: str = syntax_tree(f"void f() {{ {text} }}")
    assert tree.startswith(_BEFORE), tree
    return tree[len(_BEFORE) : -len(_AFTER)]


def declaration(text: str) -> str:
    tree: str = syntax_tree(text)
    return tree.removeprefix("(file ")[:-1]


EXPRESSIONS = {
    # precedence
    "a + b * c - d": "(binary - (binary + a (binary * b c)) d)",
    "a = b = c": "(assign = a (assign = b c))",
    "a ? b : c ? d : e": "(conditional a b (conditional c d e))",
    "x = a ? b : c": "(assign = x (conditional a b c))",
    "a || b && c | d ^ e & f == g": "(binary || a (binary && b (binary | c (binary ^ d (binary & e (binary == f g))))))",
    "a << b + c >> d": "(binary >> (binary << a (binary + b c)) d)",
    "a >= b >> c": "(binary >= a (binary >> b c))",
    "a >>= b": "(assign >>= a b)",
    "-a.x++": "(prefix - (postfix ++ (member x a)))",
    "!a && ~b == -c": "(binary && (prefix ! a) (binary == (prefix ~ b) (prefix - c)))",
    "-(-a)": "(prefix - (paren (prefix - a)))",
    "a, b = c, d": "(binary , (binary , a (assign = b c)) d)",
    "x is float && y": "(binary && (binary is x float) y)",
    # generics against comparisons
    "f<int>(x)": "(call (generic_use f int) x)",
    "f<int, 2 * N>(x) + 1": "(binary + (call (generic_use f int (binary * 2 N)) x) 1)",
    "a < b && c > d": "(binary && (binary < a b) (binary > c d))",
    "a < b ? c : d > (e)": "(conditional (binary < a b) c (binary > d (paren e)))",
    "g(a < b, c)": "(call g (binary < a b) c)",
    "g(a < b, c > (d))": "(call g (call (generic_use a b c) d))",
    "A<B<C>>::make(x)": "(call (member make (generic_use A (generic_use B C))) x)",
    "A<B<C<2>>>(x)": "(call (generic_use A (generic_use B (generic_use C 2))) x)",
    "a < b": "(binary < a b)",
    "i < n - 1": "(binary < i (binary - n 1))",
    "x = a < (b > c)": "(assign = x (binary < a (paren (binary > b c))))",
    "Ptr<float*>(p)": "(call (generic_use Ptr (postfix * float)) p)",
    "f<no_diff float>(x)": "(call (generic_use f (prefix no_diff float)) x)",
    # casts
    "(float)x * y": "(binary * (cast float x) y)",
    "(float)-x": "(cast float (prefix - x))",
    "(x) - y": "(binary - (paren x) y)",
    "(T)(a + b)": "(cast T (paren (binary + a b)))",
    "(float[2])x": "(cast (index float 2) x)",
    "(int)(x) % 2": "(binary % (cast int (paren x)) 2)",
    "(a.b)": "(paren (member b a))",
    "(a + b) * c": "(binary * (paren (binary + a b)) c)",
    "(float3)0": "(cast float3 0)",
    # lists, parts, calls
    "x = { {1, 2}, a.x, }": "(assign = x (list (list 1 2) (member x a)))",
    "v.xy += m[0][i].zw": "(assign += (member xy v) (member zw (index (index m 0) i)))",
    "t[i, j] = u[{1, 2}]": "(assign = (index t i j) (index u (list 1 2)))",
    "s.q[i].x.bump(a)()": "(call (call (member bump (member x (index (member q s) i))) a))",
    "p->q.r": "(member r (member q p))",
    "1.xxx * 2.0f": "(binary * (member xxx 1) 2.0f)",
    "t.0 + 1.5e-3 + .5 + 0xFFu": "(binary + (binary + (binary + (member 0 t) 1.5e-3) .5) 0xFFu)",
    "no_diff f(x) * g(y)": "(binary * (prefix no_diff (call f x)) (call g y))",
    "bwd_diff(f)(p, 1)": "(call (call bwd_diff f) p 1)",
    "*p = &a - b & c": "(assign = (prefix * p) (binary & (binary - (prefix & a) b) c))",
    'print("{ ( //", \'}\')': '(call print "{ ( //" \'}\')',
    "g((int x, inout T y) => x + y)": "(call g (lambda (parameters (parameter (modifiers) int (declarator x (dimensions) - -)) "
    "(parameter (modifiers (modifier inout)) T (declarator y (dimensions) - -))) (binary + x y)))",
    "g((int x) => { return x; }, 2)": "(call g (lambda (parameters (parameter (modifiers) int (declarator x (dimensions) - -))) "
    "(block (return x))) 2)",
}  # fmt: skip


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_expressions(text: str) -> None:
    found = statement(f"{text};")
    assert found == f"(expression {EXPRESSIONS[text]})"
    assert statement(f"return {text};") == f"(return {EXPRESSIONS[text]})"


def test_one_number_and_swizzle_signs() -> None:
    # `1.x` is a part of 1, `1.f` and `1.e5` are numbers
    assert statement("y = 1.x + 1.f + 1.e5;") == "(expression (assign = y (binary + (binary + (member x 1) 1.f) 1.e5)))"


STATEMENTS = {
    "float x = 1, y[2], z;": "(variables (modifiers) float (declarator x (dimensions) - 1) (declarator y (dimensions 2) - -) "
    "(declarator z (dimensions) - -))",
    "const float[2] x = {1, 2};": "(variables (modifiers (modifier const)) (index float 2) (declarator x (dimensions) - (list 1 2)))",
    "let x = a < b;": "(variables (modifiers (modifier let)) - (declarator x (dimensions) - (binary < a b)))",
    "var x : Array<float, 2>;": "(variables (modifiers (modifier var)) - (declarator x (dimensions) (generic_use Array float 2) -))",
    "S<T>.U s;": "(variables (modifiers) (member U (generic_use S T)) (declarator s (dimensions) - -))",
    "float* p = &x;": "(variables (modifiers) (postfix * float) (declarator p (dimensions) - (prefix & x)))",
    "S s(1, a);": "(variables (modifiers) S (declarator s (dimensions) - (list 1 a)))",
    "unsigned int n = 1;": "(variables (modifiers) int (declarator n (dimensions) - 1))",
    "static groupshared float g[4];": "(variables (modifiers (modifier static) (modifier groupshared)) float "
    "(declarator g (dimensions 4) - -))",
    "if (a) b; else if (c) d; else { }": "(if (modifiers) a (expression b) (if (modifiers) c (expression d) (block)))",
    "if (let x = o) g(x);": "(if (modifiers) (variables (modifiers (modifier let)) - (declarator x (dimensions) - o)) "
    "(expression (call g x)) -)",
    "[branch] if (a) b;": "(if (modifiers (attribute branch)) a (expression b) -)",
    "[MaxIters(N + 1)] [loop] for (int i = 0, j = 1; i < n; i++, --j) { }": "(for (modifiers (attribute MaxIters (binary + N 1)) "
    "(attribute loop)) (variables (modifiers) int (declarator i (dimensions) - 0) (declarator j (dimensions) - 1)) (binary < i n) "
    "(binary , (postfix ++ i) (prefix -- j)) (block))",
    "for (;;) ;": "(for (modifiers) - - - (expression -))",
    "for (i = 0; ; ) x++;": "(for (modifiers) (expression (assign = i 0)) - - (expression (postfix ++ x)))",
    "while (a) if (b) break; else continue;": "(while (modifiers) a (if (modifiers) b (break break) (continue)))",
    "do x--; while (x > 0);": "(do (modifiers) (expression (postfix -- x)) (binary > x 0))",
    "outer: for (;;) { break outer; }": "(label outer (for (modifiers) - - - (block (break outer))))",
    "defer { x = 1; }": "(defer (block (expression (assign = x 1))))",
    "defer g();": "(defer (expression (call g)))",
    "switch (a) { case 1: case E.B: x; break; default: { return; } }": "(switch (modifiers) a (block (case 1) (case (member B E)) "
    "(expression x) (break break) (case -) (block (return -))))",
    "__target_switch { case cpp: x; }": "(switch (modifiers) - (block (case cpp) (expression x)))",
    '__intrinsic_asm "a; } $0";': "(expression (code))",
    "spirv_asm { OpNop; };": "(expression (code))",
    "discard; return;": "(discard) (return -)",
    "struct Q { int a; } Q q;": "(type Q (modifiers) - - (bases) (wheres) (members (variables (modifiers) int "
    "(declarator a (dimensions) - -)))) (variables (modifiers) Q (declarator q (dimensions) - -))",
    # what is not understood is one node, and the rest is read
    "a = 1; x = + * ; b = 2;": "(expression (assign = a 1)) (opaque) (expression (assign = b 2))",
    "let [a, b] = g(); c;": "(opaque) (expression c)",
    "if (a b) { c; } d = 1;": "(opaque) (expression (assign = d 1))",
}  # fmt: skip


@pytest.mark.parametrize("text", STATEMENTS)
def test_statements(text: str) -> None:
    assert statement(text) == STATEMENTS[text]


DECLARATIONS = {
    "import a.b;": "(import (modifiers) a)",
    'namespace n::m { static const int k = 2; }': "(namespace n (modifiers) (members (variables (modifiers (modifier static) "
    "(modifier const)) int (declarator k (dimensions) - 2))))",
    "[Differentiable] public T g<T : I & J, let N : int>(inout T x[N], no_diff float y = 1) where T : K { return x; }":
    "(function g (modifiers (attribute Differentiable) (modifier public)) T (generics (generic T (binary & I J) -) (generic N int -)) "
    "(parameters (parameter (modifiers (modifier inout)) T (declarator x (dimensions N) - -)) "
    "(parameter (modifiers (modifier no_diff)) float (declarator y (dimensions) - 1))) - (wheres (where T K)) (block (return x)))",
    "__generic<T> T g(T x);": "(function g (modifiers (generics (generic T - -))) T - (parameters (parameter (modifiers) T "
    "(declarator x (dimensions) - -))) - (wheres) -)",
    "func g(x : int, y : float2 = {1, 2}) -> float;": "(function g (modifiers (modifier func)) - - (parameters (parameter (modifiers) - "
    "(declarator x (dimensions) int -)) (parameter (modifiers) - (declarator y (dimensions) float2 (list 1 2)))) float (wheres) -)",
    "float4 main(float2 uv : TEXCOORD0) : SV_Target { }": "(function main (modifiers) float4 - (parameters (parameter (modifiers) float2 "
    "(declarator uv (dimensions) TEXCOORD0 -))) - (wheres) (block))",
    "struct S<T> : I, J<T> { property float p { get { return q; } set(v) { q = v; } } }": "(type S (modifiers) (generics (generic T - -)) - "
    "(bases I (generic_use J T)) (wheres) (members (property p (modifiers) float - (accessors (accessor get (modifiers) (parameters) "
    "(block (return q))) (accessor set (modifiers) (parameters (parameter (modifiers) - (declarator v (dimensions) - -))) "
    "(block (expression (assign = q v))))))))",
    "struct S { property p : float { get; } }": "(type S (modifiers) - - (bases) (wheres) (members (property p (modifiers) - float "
    "(accessors (accessor get (modifiers) (parameters) -)))))",
    "struct S { __subscript(int i) -> float { get { return 1; } [mutating] set; } }": "(type S (modifiers) - - (bases) (wheres) (members "
    "(subscript (modifiers) - (parameters (parameter (modifiers) int (declarator i (dimensions) - -))) float (wheres) (accessors "
    "(accessor get (modifiers) (parameters) (block (return 1))) (accessor set (modifiers (attribute mutating)) (parameters) -)))))",
    "struct S { __init(int a) { } S operator+(S o); float operator[](int i); }": "(type S (modifiers) - - (bases) (wheres) (members "
    "(function __init (modifiers) - - (parameters (parameter (modifiers) int (declarator a (dimensions) - -))) - (wheres) (block)) "
    "(function + (modifiers) S - (parameters (parameter (modifiers) S (declarator o (dimensions) - -))) - (wheres) -) "
    "(function [ (modifiers) float - (parameters (parameter (modifiers) int (declarator i (dimensions) - -))) - (wheres) -)))",
    "extension<T> Foo<T> : IBar { }": "(type extension (modifiers) (generics (generic T - -)) (generic_use Foo T) (bases IBar) (wheres) "
    "(members))",
    "interface I { associatedtype D : J; static const int n; }": "(type I (modifiers) - - (bases) (wheres) (members (alias D (modifiers) - "
    "(bases J) - (dimensions) (wheres)) (variables (modifiers (modifier static) (modifier const)) int (declarator n (dimensions) - -))))",
    "enum class E : int { A = 1, B, }": "(type E (modifiers) - - (bases int) (wheres) (members (enum_case A (modifiers) 1) "
    "(enum_case B (modifiers) -)))",
    "typedef float3 V[2];": "(alias V (modifiers) - (bases) float3 (dimensions 2) (wheres))",
    "typealias W<T> = Array<T, 2>;": "(alias W (modifiers) (generics (generic T - -)) (bases) (generic_use Array T 2) (dimensions) (wheres))",
    "cbuffer C : register(b0) { float4 x; }": "(type C (modifiers) - - (bases (call register b0)) (wheres) (members (variables (modifiers) "
    "float4 (declarator x (dimensions) - -))))",
    "[[vk::binding(1, 0)]] RWTexture2D<float> t : register(u0);": "(variables (modifiers (attribute binding 1 0)) "
    "(generic_use RWTexture2D float) (declarator t (dimensions) (call register u0) -))",
    "public __extern_cpp int g();": "(function g (modifiers (modifier public) (modifier __extern_cpp)) int - (parameters) - (wheres) -)",
    "func g<T, let N : int = 3>(x : vector<T, N>) -> T where T : I where U == V;": "(function g (modifiers (modifier func)) - (generics "
    "(generic T - -) (generic N int 3)) (parameters (parameter (modifiers) - (declarator x (dimensions) (generic_use vector T N) -))) T "
    "(wheres (where T I) (where U V)) -)",
    "extern struct S : I = T;": "(type S (modifiers (modifier extern)) - - (bases I) (wheres) -)",
    # macros in the place of modifiers
    "DIFF float g(float x);": "(function g (modifiers (modifier DIFF)) float - (parameters (parameter (modifiers) float "
    "(declarator x (dimensions) - -))) - (wheres) -)",
    "#define D [Differentiable]\nD float g();": "(function g (modifiers (modifier D)) float - (parameters) - (wheres) -)",
    "__prefix C operator-(C x);": "(function - (modifiers (modifier __prefix)) C - (parameters (parameter (modifiers) C "
    "(declarator x (dimensions) - -))) - (wheres) -)",
    # comments and strings with brackets; CRLF; continued lines
    "int a /* } { */ = 1; // {\r\nint b = \\\r\n2;\r\n": "(variables (modifiers) int (declarator a (dimensions) - 1)) "
    "(variables (modifiers) int (declarator b (dimensions) - 2))",
    # what is not understood
    "int a; } int b;": "(variables (modifiers) int (declarator a (dimensions) - -)) (opaque) (variables (modifiers) int "
    "(declarator b (dimensions) - -))",
}  # fmt: skip


@pytest.mark.parametrize("text", DECLARATIONS)
def test_declarations(text: str) -> None:
    assert declaration(text) == DECLARATIONS[text]


@pytest.mark.parametrize(
    ("macro", "use", "expected"),
    [
        ("NEXT continue", "NEXT;", "(opaque)"),
        ("SET(v) v = 1", "SET(x);", "(opaque)"),
        ("STEP(v) v++", "STEP(x);", "(opaque)"),
        ("HALF a + b", "y = HALF * 2;", "(opaque)"),
        ("FOR(i) for (int i = 0; i < 3; i++)", "FOR(k) { x; }", "(opaque) (block (expression x))"),
        ("A(x) B(x)\n#define B(x) x = 1", "A(y);", "(opaque)"),
        ("N 4", "y = N;", "(expression (assign = y N))"),
        ("SQ(x) ((x) * (x))", "y = SQ(a + b);", "(expression (assign = y (call SQ (binary + a b))))"),
        ("M -1", "y = M * M;", "(expression (assign = y (binary * M M)))"),
        ("REAL float", "REAL y = 1;", "(variables (modifiers) REAL (declarator y (dimensions) - 1))"),
        ("LOOP [MaxIters(3)]", "LOOP while (a) b;", "(while (modifiers (modifier LOOP)) a (expression b))"),
    ],
)
def test_macros_stand_for_what_they_say(macro: str, use: str, expected: str) -> None:
    tree = syntax_tree(f"#define {macro}\nvoid f() {{ {use} }}")
    assert tree == _BEFORE + expected + _AFTER


def test_macros_with_brackets_spoil_their_function_alone() -> None:
    source = "#define BEGIN {\n#define END return 1; }\nint f() BEGIN x = 1; END\nint g() { y = 2; END\nint h() { return 3; }"
    assert "(function h (modifiers) int - (parameters) - (wheres) (block (return 3)))" in syntax_tree(source)
    assert "function f" not in syntax_tree(source) and "function g" not in syntax_tree(source)


TORN = "void broken( { ]\n"


@pytest.mark.parametrize(
    ("source", "whole"),
    [
        (f"#if A\n{TORN}#else\nint f() {{ return 1; }}\n#endif\nint g() {{ return 2; }}", "fg"),
        (f"#if A\n{TORN}#elif B\nint f() {{ return 1; }}\n#else\n#error }}\n#endif\nint g() {{ return 2; }}", "fg"),
        (f"#if A\n{TORN}#endif\nint g() {{ return 2; }}", "g"),
        ("#if A\nnamespace n {\n#endif\nint f() { return 1; }\n#if A\n}\n#endif\nint g() { return 2; }", "fg"),
        ("#if A\nint f() {\n#else\nint f(int a) {\n#endif\nreturn 1; }\nint g() { return 2; }", "g"),
        (f"#if A\n{TORN}#endif\n#if B\nint f() {{\n#else\nint f(int a) {{\n#endif\nreturn 1; }}\nint g() {{ return 2; }}", "g"),
    ],
)
def test_torn_branches_spoil_nothing_else(source: str, whole: str) -> None:
    facts = SourceFacts(source)
    assert {function.name for function in facts.functions() if function.is_understood} == set(whole)
