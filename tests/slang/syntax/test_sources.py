"""Every Slang source of the repository, through the parser: what it does not understand is listed here."""

from __future__ import annotations

import ast
import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from slangpy._slang import syntax_opaque, syntax_pieces

pytestmark = pytest.mark.null

ROOT = Path(__file__).resolve().parents[3]
MACROS = "what stands there is a macro of declarations or statements"
SPLIT = "an #if parts heads and statements"
EXCEPTED = {
    "tests/call/gradient/odd/macros.slang": MACROS,
    "tests/call/gradient/odd/texts.slang": SPLIT,
    "slangpy/slang/accessors.slang": MACROS,
    "slangpy/slang/atomics.slang": MACROS,
    "slangpy/slang/difftensor.slang": MACROS + ", of which some open the brace of a function",
    "slangpy/slang/exact.slang": MACROS,
    "slangpy/slang/reduce.slang": MACROS,
    "slangpy/slang/slangpy_host.slang": MACROS,
    "slangpy/slang/slangpy_narrow.slang": MACROS,
    "slangpy/slang/slangpy_resample.slang": MACROS,
    "slangpy/slang/tensor.slang": MACROS,
    "slangpy/slang/tensor_view.slang": MACROS,
}


def files(*patterns: str) -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", *patterns], cwd=ROOT, capture_output=True, text=True, timeout=60
    ).stdout.split()
    return [ROOT / name for name in listed]


def slang_files() -> list[Path]:
    return files("*.slang")


def snippets() -> Iterator[tuple[str, str]]:
    """Strings of the tests that look like whole sources, and the examples of the documentation."""
    for path in files("tests/*.py", "examples/*.py"):
        if "syntax" in path.parts:
            continue
        tree = ast.parse(path.read_text("utf-8"))
        in_template = {id(value) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for value in node.values}
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in in_template:
                text = node.value
                is_source = re.match(
                    r"\s*(?:\[|(?:public |import |struct |interface |float|int|void|half|double|#))", text
                )
                if is_source and re.search(r"\)\s*\{", text) and "%" not in text and "$" not in text:
                    yield f"{path.relative_to(ROOT)}:{node.lineno}", text
    for path in files("*.md"):
        for found in re.finditer(r"```(?:slang|hlsl)\n(.*?)```", path.read_text("utf-8"), re.DOTALL):
            yield f"{path.relative_to(ROOT)}:{found.start()}", found[1]


def test_all_files_are_understood() -> None:
    unknown = {}
    for path in slang_files():
        name = str(path.relative_to(ROOT))
        source = path.read_text("utf-8")
        opaque = syntax_opaque(source)
        parts = [source.encode()[begin:end].decode() for begin, end, _ in opaque]
        if EXCEPTED.get(name) == SPLIT:
            assert any(is_split for _, _, is_split in opaque), name
        elif name in EXCEPTED:
            macros = set(re.findall(r"#define\s+(\w+)", source))
            assert parts and any(re.match(r"\w+", part) and re.match(r"\w+", part)[0] in macros for part in parts), name  # type: ignore[index]
        elif parts:
            unknown[name] = parts
    assert not unknown


def test_raw_strings_are_one_token() -> None:
    for text in ("#ifdef A\nint x;\n#else\nint y;\n#endif", "}} ' \\", '#define A(x) \\\n  x; "quoted"'):
        source = f'void f() {{ g(R"({text})"); h(1); }}\nvoid k() {{ g(R"end({text})")end"); int R = 1; R++; }}\n'
        assert not syntax_opaque(source), source
    assert syntax_opaque('void f() { g(R"(no end); }\nvoid h() { }')


OTHER_LANGUAGES = re.compile(
    r"extern \"C\"|__attribute__|__global__|\{\{|from slangpy|load_module_from_source|spy\.|import (?:sys|os|gc|slangpy as|numpy)|%%slang|auto g = \["
)
ODD = {
    "?nope": "no Slang, on purpose",
    "return x +;": "no Slang, on purpose",
    "return k(x) + ;": "no Slang, on purpose",
    "return x * ;": "no Slang, on purpose",
    "float more() { return ;": "no Slang, on purpose",
    "int more() { return ;": "no Slang, on purpose",
    "return 1 }": "no Slang, on purpose",
    "struct NAME CONFORMS": "a macro stands for the bases of a struct",
    "struct Own CONFORMS": "a macro stands for the bases of a struct",
    "]@": "a template",
    "OPEN\n": "a template",
    "AGAIN(b && c)": "a macro of a loop",
    "ATTRIBUTE for (int i": "a template",
}


def unknown_parts(text: str) -> list[str]:
    """What is not understood, but for invocations of macros: as declarations or, where tests show those, as statements."""
    macros = set(re.findall(r"#\s*define\s+(\w+)", text))
    readings: list[list[str]] = []
    for source in (text, f"void f() {{ {text} }}"):
        parts = [source.encode()[begin:end].decode() for begin, end, is_split in syntax_opaque(source) if not is_split]
        readings.append([part for part in parts if not macros & set(re.findall(r"\w+", part))])
    return min(readings, key=len)


def test_snippets_are_understood() -> None:
    texts = [
        (name, text)
        for name, text in snippets()
        if not OTHER_LANGUAGES.search(text) and text.count("{") == text.count("}")
    ]
    unknown = {name: unknown_parts(text) for name, text in texts if not any(odd in text for odd in ODD)}
    assert len(texts) > 400
    assert not {name: parts for name, parts in unknown.items() if parts}


def test_tokens_and_trivia_are_the_source() -> None:
    sources = [path.read_bytes().decode("utf-8") for path in slang_files()] + [text for _, text in snippets()]
    for source in sources:
        check_round_trip(source)


def check_round_trip(source: str) -> None:
    at = 0
    for begin, end, _ in syntax_pieces(source):
        assert begin == at and end > begin
        at = end
    assert at == len(source.encode())


@pytest.mark.parametrize(
    ("source", "kinds"),
    [
        ("a+=1", ["word", "sign", "number"]),
        ("a // b {\r\nc", ["word", "space", "comment", "space", "word"]),
        ('"a\\"{" \'{\'', ["string", "space", "string"]),
        ("a \\\r\n b", ["word", "space", "continuation", "space", "word"]),
        ("/* a\n */ #define X 1 \\\n 2\nb", ["comment", "space", "directive", "space", "word"]),
        ("# if A // c", ["directive"]),
        ("#if 0\n{ ' \n#endif\na", ["directive", "hidden", "directive", "space", "word"]),
        ("a.x .5 1.x 1.0f 1e-3 0x1Fu", None),
        ("\ufeffa", ["space", "word"]),
        ("größe", ["word"]),
        ("x::y->z<<=2", ["word", "sign", "word", "sign", "word", "sign", "number"]),
    ],
)
def test_pieces(source: str, kinds: list[str] | None) -> None:
    check_round_trip(source)
    if kinds is not None:
        assert [kind for _, _, kind in syntax_pieces(source)] == kinds


HALVES = """
float before(float x) { return x; }
#if A
void f() {
#else
void f(int i) {
#endif
    float y = 1;
}
float after(float x) { if (x > 0) { return 1; } return x; }
"""


@pytest.mark.parametrize(
    ("source", "cut"),
    [
        (HALVES, "void f() {"),
        (
            "void a() { }\nvoid f() {\n#ifdef A\n if (x) {\n#endif\n y;\n#ifdef A\n }\n#endif\n}\nvoid b() { }",
            "if (x) {",
        ),
        ("void f() { x = 1\n#if A\n + 2\n#endif\n; y = 2; }\nvoid b() { }", "x = 1"),
        ("void f(int a\n#if A\n, int b\n#endif\n) { }\nvoid b() { }", "(int a"),
        ("#if A\nvoid f() { x; \n#else\nvoid f() { y;\n#endif\n}\nvoid b() { }", "void f"),
        ("void f() { if (a) x;\n#if A\nelse y;\n#endif\nz; }\nvoid b() { }", "if (a) x"),
    ],
)
def test_halves_of_an_if_spoil_what_holds_them_alone(source: str, cut: str) -> None:
    parts = [source[begin:end] for begin, end, _ in syntax_opaque(source)]
    assert any(part.startswith(cut) for part in parts)
    assert not any("after" in part or "void b()" in part or "before" in part or "void a()" in part for part in parts)


def test_whole_statements_in_both_halves_are_read() -> None:
    source = "void f() {\n#if A\n x = 1;\n if (a) { y; }\n#elif B\n x = 2;\n#else\n x = 3;\n#endif\n}\n#if 0\nvoid g( {\n#endif\n"
    assert syntax_opaque(source) == []


def test_parsing_takes_linear_time(capsys: pytest.CaptureFixture[str]) -> None:
    text = "\n".join(path.read_text("utf-8") for path in files("tests/call/*.slang", "examples/*.slang"))
    lines = text.split("\n")
    for count in (1500, 6000):
        source = "\n".join((lines * (count // len(lines) + 1))[:count])
        begin = time.perf_counter()
        syntax_opaque(source)
        with capsys.disabled():
            print(f"\n{count} lines: {(time.perf_counter() - begin) * 1e3:.1f} ms")
