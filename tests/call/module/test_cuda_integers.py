"""Generated CUDA computes integers as Slang does: seen in what NVRTC makes of it, without a GPU. With one, tests/device/test_integers.py
runs it."""

from __future__ import annotations

import os
import re
from typing import Any

import integer_forms as forms
import numpy as np
import pytest

from slangpy.compiler.text.wrapping import wrapping
from slangpy.config import config
from slangpy.testing import CudaCodegen, nvrtc_available

needs_nvrtc = pytest.mark.skipif(
    not nvrtc_available() and not os.environ.get("SLANGPY_TEST_REQUIRE_NVRTC"), reason="NVRTC is not installed"
)


@pytest.fixture(autouse=True)
def no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels that disk has are not compiled, and show no code."""
    monkeypatch.setattr(config, "cache_enabled", False)


class Ptx(CudaCodegen):
    """Keeps the PTX of the last kernel."""

    text = ""

    def compile(self, source: bytes, entry_point_name: str, *, label: str = "", **options: Any) -> bytes:
        code = super().compile(source, entry_point_name, label=label, **options)
        self.text = code.decode("ascii", "replace")
        return code


def ptx(source: str, name: str, *arguments: Any) -> str:
    codegen = Ptx("compute_80")
    module = codegen.load_from_source(f"integers_{abs(hash(source)):x}", source)
    codegen.build(getattr(module, name), *arguments, _result="numpy")
    return codegen.text


@needs_nvrtc
@pytest.mark.parametrize("name", forms.TYPES)
def test_all_forms_compile(name: str) -> None:
    assert ".entry" in ptx(forms.source(name, forms.forms(name, matrices=True)), "all", *forms.values(name))


OVERFLOWS = {
    "a + 1 > a ? 7 : 8": "7",
    "a - 1 < a ? 7 : 8": "7",
    "(a * 2) / 2": "a",
    "abs(a) < 0 ? 7 : 8": "8",
    "-a == a ? 7 : 8": "a == 0 ? 7 : 8",
    "(int3(a, 2, 3) + int3(1)).x > a ? 7 : 8": "7",
    "(-int2(a, 2)).x == a ? 7 : 8": "a == 0 ? 7 : 8",
}
"""Expressions, and what they are where no sum overflows."""


@needs_nvrtc
@pytest.mark.parametrize("text", OVERFLOWS)
def test_nothing_is_concluded_from_overflow(text: str) -> None:
    codes = [
        re.findall(r"^\t(?!//).*;", ptx(f"int f(int a) {{ return {form}; }}", "f", np.zeros(5, np.int32)), re.MULTILINE)
        for form in (text, OVERFLOWS[text])
    ]
    assert codes[0] != codes[1]


TEXTS = {
    "    return a_0 + b_0;\n": "    return a_0 + _spy_wrap + b_0;\n",
    "    return - a_0;\n": "    return _spy_minus(a_0);\n",
    "    x_0 = - a_0.x * ~p_0->y_0[int(2)];\n": "    x_0 = _spy_minus(a_0.x) * _spy_wrap * _spy_inverse(p_0->y_0[int(2)]);\n",
    "    x_0 = int(- - a_0) - - b_0;\n": "    x_0 = int(_spy_minus(_spy_minus(a_0))) - _spy_wrap - _spy_minus(b_0);\n",
    "    x_0 = (Vector<int32_t, 3> )- a_0;\n": "    x_0 = (Vector<int32_t, 3> )_spy_minus(a_0);\n",
    "    x_0 = - (Vector<int32_t, 3> )f_0(a_0);\n": "    x_0 = _spy_minus((Vector<int32_t, 3> )f_0(a_0));\n",
    "    x_0 = ~Matrix<int, 2, 2> (a_0).rows[int(0)];\n": "    x_0 = _spy_inverse(Matrix<int, 2, 2> (a_0).rows[int(0)]);\n",
    "    S_0 * p_0 = q_0 + i_0;\n": "    S_0 * p_0 = q_0 + _spy_wrap + i_0;\n",
    "    float * p_0;\n": "    float * p_0;\n",
    "    *p_0 = *p_0 * *(q_0 + int(1));\n": "    *p_0 = *p_0 * _spy_wrap * *(q_0 + int(1));\n",
    "static int f_0(int * p_0, S_0 * q_0)\n": "static int f_0(int * p_0, S_0 * q_0)\n",
    "    p_0->x_0 = int(-1) << b_0; // a - b\n": "    p_0->x_0 = int(-1) << _spy_wrap << b_0; // a - b\n",
    '    printf("a - b", 1.0e-05f);\n#define A a * b\n': '    printf("a - b", 1.0e-05f);\n#define A a * b\n',
    "    auto g = [](float * p, int n) { return p[n]; };\n": "    auto g = [](float * p, int n) { return p[n]; };\n",
}  # fmt: skip


@pytest.mark.parametrize("text", TEXTS)
def test_text(text: str) -> None:
    assert wrapping(text.encode()).decode() == TEXTS[text]
