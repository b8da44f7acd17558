"""Sources that are cut, mixed and torn: the parser ends, and its pieces are still the source."""

from __future__ import annotations

import random
import time

import pytest
from drawn import MANY, SEED
from test_sources import check_round_trip, slang_files

from slangpy._slang import syntax_opaque, syntax_tree, syntax_variables

pytestmark = pytest.mark.null

SIGNS = [
    *"{}()[]<>;,:?=\"'.ä", "/*", "*/", "//", "\\\n", "#if A\n", "\n#endif\n", "\n#else\n", "\n#define X {\n", " X ", " for (", " if (",
    " do ", " struct ", " operator ", " => ", " __generic<", "::",
]  # fmt: skip


def run(source: str) -> None:
    begin = time.perf_counter()
    syntax_opaque(source)
    syntax_variables(source)
    check_round_trip(source)
    assert time.perf_counter() - begin < 5


@pytest.mark.parametrize("seed", range(SEED * 1000, SEED * 1000 + 4))
def test_changed_sources(seed: int) -> None:
    draw = random.Random(seed)
    sources = [path.read_text("utf-8") for path in slang_files()]
    for _ in range(60 * MANY):
        source = draw.choice(sources)
        begin = draw.randrange(len(source) + 1)
        source = source[begin : begin + draw.randrange(6000)]
        for _ in range(draw.randrange(6)):
            at = draw.randrange(len(source) + 1)
            source = source[:at] + draw.choice([draw.choice(SIGNS), ""]) + source[at + draw.randrange(3) :]
        run(source)


@pytest.mark.parametrize("seed", range(SEED * 1000, SEED * 1000 + 2))
def test_random_signs(seed: int) -> None:
    draw = random.Random(seed)
    words = [*SIGNS, *"ax1+-*& int return no_diff (int) f< [A] let extension".split()]
    for _ in range(60 * MANY):
        run(" ".join(draw.choice(words) for _ in range(draw.randrange(200))))


@pytest.mark.parametrize(
    "piece",
    ["(", "{", "[", "a<", "f(", "-", "a?", "(a)", "if (a) ", "do ", "{ int x = ", "(x) => ", "a[", "A<B<", "#if A\n"],
)
def test_deep_sources(piece: str) -> None:
    for text in (piece * 20000, "void f() { " + piece * 20000, "void f() { x = " + piece * 5000 + "1; }"):
        run(text)


def test_long_chains() -> None:
    chain = "if (a) x; " + "else if (a) x; " * 5000
    assert syntax_opaque(f"void f() {{ {chain} }}") == []
    assert syntax_opaque("void f() { x = " + " + ".join(["a"] * 20000) + "; }") == []
    assert syntax_opaque("void f() { x = a" + "[0].b" * 20000 + "; }") == []
    assert syntax_tree("") == "(file)"
