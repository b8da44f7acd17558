"""Columns and carets of diagnostics are those of the user's text where a line was rewritten."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from slangpy import SlangCompileError


@pytest.mark.parametrize(
    "source",
    [
        "[Differentiable] float f(float a, float3 v) { int k = 0; while (k < 3) { k++; v = a * v; } return ?nope; }",
        "[Differentiable]\nfloat f(float a)\n{\n    float s = 0;\n        [MaxIters(3)] while (s < 3) s += ?nope + 1; return s;\n}",
        "[Differentiable] float f(float a) { float s = 0; for (int i = 0; i < 3; i++) "
        "{ do { if (a > 1) continue; s += a; } while (false); s += ?nope; } return s; }",
        "[Differentiable] float f(float a, float3 w)\n{\n    w = a * w; a = ?nope * w.x; w = a * w; return w.x; }",
        "[Differentiable] float f(float a, float3 w)\n{\n    float s = 0;\n    for (int i = 0; i < 3; i++) // moved\n"
        "    {\n        float x = a * w.y;\n        s += x * ?nope; s -= a;\n    }\n    return s;\n}",
        "[Differentiable] float f(float a)\n{\n    float s = 0, t = 0;\n    for (int i = 0; i < 3; i++)\n"
        "        for (int j = 0; j < 3; j++) { t += a; s += a * j * ?nope; }\n    return s * t;\n}",
    ],
)
def test_columns(new_session: Callable[..., Any], source: str) -> None:
    before, _, behind = source.partition("?")
    with pytest.raises(SlangCompileError) as caught:
        new_session("cpp").load_module_from_source("columns", before + behind)
    line, column = before.count("\n") + 1, len(before) - (before.rfind("\n") + 1)
    lines = str(caught.value).split("\n")
    at = next(i for i, text in enumerate(lines) if "undefined identifier" in text) + 1
    assert lines[at].strip() == f"--> columns:{line}:{column + 1}"
    quoted = (before + behind).split("\n")[line - 1].lstrip()
    assert lines[at + 2].endswith(f"| {quoted}")
    assert lines[at + 3].index("^") == lines[at + 2].index("nope")
