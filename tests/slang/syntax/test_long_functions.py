"""A function of thousands of statements: what is known of it takes time in proportion."""

from __future__ import annotations

import time

import pytest

from slangpy._slang import SourceFacts

pytestmark = pytest.mark.null


def source(count: int) -> str:
    """In one loop: a variable that it carries, an index, an element and a condition by it, over and over."""
    lines = [
        f"const int k{i} = {i} % 7; s{i} += v[k{i}] * x; v[k{i}] = s{i}; if (s{i} > {i}) {{ s{i} -= 1; }}" for i in range(count // 5)
    ]
    declared = "\n".join(f"float s{i} = x;" for i in range(count // 5))
    body = "\n".join(lines)
    return f"float f(float x, int n) {{ float v[7]; {declared}\n[MaxIters(4)] for (int i = 0; i < n; i++) {{ {body} }} return s0; }}"


def test_times_of_long_functions() -> None:
    for count in (750, 1500, 3000, 6000):
        begin = time.perf_counter()
        facts = SourceFacts(source(count))
        parsed = time.perf_counter()
        (f,) = facts.functions()
        told = time.perf_counter()
        assert f.is_understood and len(f.loops) == 1 and facts.lost_shares("f") == []
        print(
            f"{count} statements: {1e3 * (parsed - begin):.1f} ms to parse, {1e3 * (told - parsed):.1f} for the functions, "
            f"{1e3 * (time.perf_counter() - told):.1f} for lost shares"
        )
