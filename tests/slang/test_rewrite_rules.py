"""The faults of Slang in the table of rules: with its rule, each gives the right numbers; without, Slang is still wrong.

rules/<fault>/ holds the fault's source, the text after the rule, and inputs with the right numbers, which are those of the
formulas below. `python tests/slang/test_rewrite_rules.py` writes numbers.json and after.slang of all, for a reader to look at.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import cache
from math import exp, fmod, sin, tanh
from pathlib import Path
from typing import Any

import pytest
from rule_numbers import FOLDER, Numbers, inputs_of, numbers_of, right_of, source_of

import slangpy as spy
from slangpy._slang import rewrite_alone
from slangpy.compiler.rewrites import rules
from slangpy.config import config

Vector = Sequence[float]
INPUTS: tuple[float, float, list[float], int] = (0.9, 0.6, [0.7, 0.4, 1.3], 2)


def _trips(a: float, b: float, v: Vector, n: int) -> float:
    x = v[0]
    for _ in range(n):
        x = sin(x * a) + b
    return x


def _left_early(a: float, b: float, v: Vector, n: int) -> float:
    x = v[0]
    for _ in range(n):
        x = sin(x * a) + b
        if x > 1.2:
            break
    return x


def _branches(a: float, b: float, v: Vector, n: int) -> float:
    x, v = [v[2] * a, v[0] * a, v[1] * a], list(v)
    if a > b:
        v[1] *= b
    else:
        x[2] += tanh(a * x[2])
    return x[1] * x[2] + v[0] * v[1]


def _parts(a: float, b: float, v: Vector, n: int) -> float:
    x, y = a * b, b
    return x * y + x * y * x


def _terms(a: float, b: float, v: Vector, n: int) -> float:
    return (b + sum(sin(a * i) ** 2 * -b if i % 2 else sin(a * i) * v[1] for i in range(3 * n))) * v[0]


def _outs(a: float, b: float, v: Vector, n: int) -> float:
    x, c, s = v[0], 0.0, 0.0
    for i in range(4):
        c = sin(a * v[1]) * x
        if i % 2:
            c *= b
        x = v[0] * c if i == 1 else v[0]
        s += a * a if i % 2 else 0.0
    return c + s


def _conditions(a: float, b: float, v: Vector, n: int) -> float:
    x, d = v[0], 0.0
    for i in range(4):
        d = sin(a * v[1] * x)
        if i % 2:
            d = sin(v[2] * x)
        x = d if i % 2 else d * v[0]
    return sin(a * v[0]) * b + d * x


def _chain(a: float, b: float, v: Vector, n: int) -> float:
    x = v[0]
    for _ in range(13):
        x = sin(exp(-x) + a) * v[1] + b
    return x


FORMULAS: dict[str, Callable[[float, float, Vector, int], float]] = {
    "no-diff-calls": lambda a, b, v, n: a * INPUTS[1] ** 2 + b,  # what has no derivative is constant
    "assignments-in-expressions": lambda a, b, v, n: v[0] * (v[1] * a) + v[0] * a * v[1] * a,
    "fall-through": lambda a, b, v, n: v[0] * a * b + v[1],
    "accumulations": _terms,
    "steps-in-conditions": _trips,
    "run-time-counters": _trips,
    "endless-loops": _trips,
    "nested-loops": lambda a, b, v, n: _trips(a, b, v, 10),
    "do-counters": _trips,
    "do-continue": lambda a, b, v, n: v[0] * b,
    "while-loops": _left_early,
    "no-diff-values": lambda a, b, v, n: 0.6 * b + a * b * b * b,
    "unset-tangents": lambda a, b, v, n: 0.5 * a + b,
    "scalar-operands": lambda a, b, v, n: a * v[0] * a * v[1] + a * v[2] * b,
    "calls-before-loops": lambda a, b, v, n: a + 3 * 0.5 * b,
    "calls-in-loops": _outs,
    "calls-in-conditions": _conditions,
    "elements-after-loops": lambda a, b, v, n: 3 * b * a + 3 * a - a * a,
    "elements-in-branches": lambda a, b, v, n: 3 * a + 2 * b * 2 * a,
    "aliasing-elements": lambda a, b, v, n: (v[0] * v[0] + v[1] * v[1] + v[2] * v[1]) * a,
    "parts-of-elements": _parts,
    "parts-before-loops": lambda a, b, v, n: v[2] * b * b + a**3 * (b + 1) + 2 * a**3,
    "parts-in-branches": _branches,
    "equal-indices": lambda a, b, v, n: a * b * v[1] + a * v[2],
    "long-chains": _chain,
    "switch-on-calls": lambda a, b, v, n: (v[0] * b * a * a + v[2] * a) * v[1] * b,
    "returns-in-loops": lambda a, b, v, n: (sin(v[0]) * a + v[1] * v[1] * b) * b * v[2],
    "fmod-gradient": lambda a, b, v, n: fmod(a * 3, b) + b * v[0],
}
"""What the function in fault.slang is, in Python."""
RULES = {fault: fault for fault in FORMULAS} | {fault: "parts" for fault in FORMULAS if fault.startswith("parts-")}
RULES |= dict.fromkeys(("calls-in-loops", "calls-in-conditions"), "calls-before-loops")
"""The rule against a fault."""
OTHERS = {"cyclic-imports", "method-derivatives", "second-derivatives"}
"""Rules with tests of their own below."""


def _right(formula: Callable[[float, float, Vector, int], float]) -> dict[str, Any]:
    """Value and central differences, in double."""
    a, b, v, n = INPUTS
    at = [a, b, *v]

    def value(k: int, h: float) -> float:
        moved = [x + h * (i == k) for i, x in enumerate(at)]
        return formula(moved[0], moved[1], moved[2:], n)

    h = 1e-6
    gradient = [round((value(k, h) - value(k, -h)) / (2 * h), 7) for k in range(len(at))]
    return {"a": a, "b": b, "v": v, "n": n, "value": round(value(0, 0), 7), "gradient": gradient}


@pytest.mark.null
@pytest.mark.parametrize("rule", FORMULAS)
def test_numbers_are_those_of_the_formula(rule: str) -> None:
    stored = json.loads((FOLDER / rule / "numbers.json").read_text("utf-8"))
    right = _right(FORMULAS[rule])
    assert stored["value"] == pytest.approx(right["value"], abs=1e-6)
    assert stored["gradient"] == pytest.approx(right["gradient"], abs=1e-6)
    assert inputs_of(rule) == INPUTS


@pytest.mark.null
@pytest.mark.parametrize("rule", FORMULAS)
def test_the_text_after_the_rule(rule: str) -> None:
    after = (FOLDER / rule / "after.slang").read_text("utf-8")
    assert rewrite_alone(source_of(rule), [RULES[rule]]) == after
    assert after != source_of(rule)


@pytest.mark.null
def test_each_rule_has_a_proof() -> None:
    assert {path.name for path in FOLDER.iterdir() if path.is_dir()} == FORMULAS.keys() | OTHERS
    assert {rule.name for rule in rules()} == set(RULES.values()) | OTHERS


@cache
def _with_rules(device: spy.Device) -> dict[str, Numbers]:
    return dict(zip(FORMULAS, numbers_of(device, list(FORMULAS)), strict=True))


@pytest.mark.one
@pytest.mark.needs_kernels
@pytest.mark.parametrize("rule", FORMULAS)
def test_right_with_the_rule(device: spy.Device, rule: str) -> None:
    assert _with_rules(device)[rule].is_near(right_of(rule)), (_with_rules(device)[rule], right_of(rule))


SHOWN_ON = {"unset-tangents": "vulkan"}
"""Where a fault shows; the others do on the CPU device, too."""


def _without(rule: str, device: str) -> Numbers | str:
    """What a process of its own gives without the rule, or why it gives nothing."""
    command = [sys.executable, str(Path(__file__).with_name("rule_numbers.py")), rule, device]
    environment = {**os.environ, "SLANGPY_REWRITES": f"-{RULES[rule]}"}
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    except subprocess.TimeoutExpired:
        assert rule in ENDLESS_WITHOUT, f"no end without the rule {rule}"
        return ENDLESS
    if done.returncode:
        return done.stderr
    value, gradient, tangent = json.loads(done.stdout.splitlines()[-1])
    return Numbers(value, tuple(gradient), tangent)


ENDLESS = "it takes minutes to compile"
ENDLESS_WITHOUT = ("long-chains",)
REFUSALS = (
    ENDLESS,
    "SlangCompileError",
    "CompilerDiedError",
    "KernelGenException",
    "AssertionError: the value of fwds",
    "beyond its end",
)


@pytest.mark.nightly
@pytest.mark.parametrize("rule", FORMULAS)
def test_wrong_without_the_rule(rule: str) -> None:
    device = SHOWN_ON.get(rule, "cpu")
    if not spy.Device.enumerate_adapters(spy.DeviceType[device]):
        pytest.skip(f"there is no {device} device")
    found = _without(rule, device)
    if isinstance(found, str):
        assert any(text in found for text in REFUSALS), found
    else:
        assert not found.is_near(right_of(rule)), f"{rule}: mended in this Slang: set until"


@pytest.mark.one
@pytest.mark.needs_kernels
def test_cyclic_imports(device: spy.Device) -> None:
    module = spy.Module.load_from_file(device, FOLDER / "cyclic-imports" / "fault.slang")
    assert module.cyclic_imports(0.5) == 2 * 0.5 * 3 + 1


@pytest.mark.nightly
def test_cyclic_imports_without_the_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(config, "rewrites", "-cyclic-imports")
    device = spy.create_device(type="cpu")
    try:
        spy.Module.load_from_file(device, FOLDER / "cyclic-imports" / "fault.slang")
    except spy.SlangCompileError:
        return
    pytest.fail("cyclic-imports: mended in this Slang: set until")


SWITCHED = """struct S : IDifferentiable { float k; [Differentiable] int m() { return int(k); } int p() { return 1; } };
[Differentiable] int f(float x) { return int(x); }
[Differentiable] int g<T : IFloat>(T x) { return 1; }
[Differentiable] int operator+(S s, S t) { return 1; }
int plain(float x) { return 1; }
[Differentiable] float h(float x, S s, int k)
{
    let l = (float y) => f(y);
    switch (VALUE) { case 1: return x; }
    return x * x;
}
"""


@pytest.mark.null
@pytest.mark.parametrize(
    ("value", "changes"),
    [("f(x)", True), ("(f(x))", True), ("g(x)", True), ("g<float>(x)", True), ("s.m()", True), ("s + s", True),
     ("l(x)", True), ("plain(x)", False), ("s.p()", False), ("no_diff f(x)", False), ("f(x) & 3", False), ("-f(x)", False),
     ("int(x)", False), ("k", False), ("f(x) == 1 ? 2 : 3", False)],
)  # fmt: skip
def test_values_of_a_switch(value: str, changes: bool) -> None:
    source = SWITCHED.replace("VALUE", value)
    text = rewrite_alone(source, ["switch-on-calls"])
    assert (text != source) == changes
    assert not changes or re.search(rf"switch \(_spy_called_\w+\({re.escape(value)}\)\) {{", text)


METHODS = FOLDER / "method-derivatives"


@pytest.mark.null
def test_the_text_after_method_derivatives() -> None:
    after = (METHODS / "after.slang").read_text("utf-8")
    assert rewrite_alone((METHODS / "fault.slang").read_text("utf-8"), ["method-derivatives"]) == after


@pytest.mark.null
@pytest.mark.parametrize(
    "source",
    [
        "struct S : IDifferentiable { float k; [Differentiable] float m(float x) { return k * x; } }",  # by k, too
        "struct S { float k; [Differentiable] float m(float x) { return k; } } extension S : IDifferentiable { }",
        "struct S { [Differentiable] float m(float x) { return x; } [Differentiable] float m(float2 x) { return x.x; } }",
        "struct S { float k; [Differentiable] [mutating] float m(float x) { k += 1; return x; } }",
        "struct S { [Differentiable] T m<T : IFloat>(T x) { return x; } }",
        "struct S { struct T { float x; } [Differentiable] float m(T x) { return x.x; } }",
        "struct S { float m(float x) { return x; } }",
        "namespace n { struct S { [Differentiable] float m(float x) { return x; } } }\nusing namespace n;",
        "struct S { [Differentiable] float m(float x) { return x; } }\n#define s t\n",
        "struct S { [Differentiable] float m(float x) { return x; } } float f(float x) { return fwd_diff(make().m)(diffPair(x)).d; }",
        "import a; float f(S s, float x) { return fwd_diff(s.m)(diffPair(x)).d; }",
    ],
)
def test_other_methods_stay(source: str) -> None:
    if "fwd_diff" not in source:
        source += "\nfloat f(S s, float x) { return fwd_diff(s.m)(diffPair(x)).d; }"
    assert rewrite_alone(source, ["method-derivatives"]) == source


@pytest.mark.one
@pytest.mark.needs_kernels
def test_method_derivatives(device: spy.Device) -> None:
    a, b = INPUTS[:2]
    module = spy.Module.load_from_source(device, "method_derivatives", (METHODS / "fault.slang").read_text("utf-8"))
    right = [2 * (2 * a * b * 1.0 + a * a * 0.5), 3 * 2 * a * b, 3 * a * a]
    assert list(module.method_derivatives(a, b)) == pytest.approx(right, rel=1e-5)


@pytest.mark.nightly
def test_method_derivatives_without_the_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(config, "rewrites", "-method-derivatives")
    try:
        spy.Module.load_from_file(spy.create_device(type="cpu"), METHODS / "fault.slang")
    except spy.CompilerDiedError:
        return
    pytest.fail("method-derivatives: mended in this Slang: set until")


def _second(device: spy.Device) -> float:
    torch = pytest.importorskip("torch")
    module = spy.Module.load_from_file(device, FOLDER / "second-derivatives" / "fault.slang")
    a, b = (torch.tensor([x], dtype=torch.float32, requires_grad=True) for x in INPUTS[:2])
    y = module.second_derivatives(a, b)
    (once,) = torch.autograd.grad(y, a, torch.ones_like(y), create_graph=True)
    return float(torch.autograd.grad(once, a, torch.ones_like(once))[0])


@pytest.mark.one
@pytest.mark.needs_kernels
def test_second_derivatives(device: spy.Device) -> None:
    a, b = INPUTS[:2]
    assert _second(device) == pytest.approx(6 * a * b * b, rel=1e-4)  # of a * (a * b) * b * a


@pytest.mark.nightly
def test_second_derivatives_without_the_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(config, "rewrites", "-second-derivatives")
    try:
        found = _second(spy.create_device(type="cpu"))
    except NotImplementedError:
        return
    assert found != pytest.approx(6 * INPUTS[0] * INPUTS[1] ** 2, rel=1e-4), (
        "second-derivatives: mended in this Slang: set until"
    )


def _write() -> None:
    for rule, formula in FORMULAS.items():
        (FOLDER / rule / "numbers.json").write_text(json.dumps(_right(formula)) + "\n", encoding="utf-8")
        (FOLDER / rule / "after.slang").write_text(rewrite_alone(source_of(rule), [RULES[rule]]), encoding="utf-8")


if __name__ == "__main__":
    _write()
