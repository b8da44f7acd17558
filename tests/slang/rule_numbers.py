"""Values, gradients and tangents of functions `float f(float a, float b, float3 v, int n)`, for test_rewrite_rules.py; as a program,
those of one rule's fault, for a process of its own."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import slangpy as spy

FOLDER = Path(__file__).parent / "rules"
ALONG = (0.3, -0.5, 0.2, 0.7, -0.4)
"""The direction of tangents: by a, b and the components of v."""


@dataclass(frozen=True)
class Numbers:
    """What one function gives at one place; `gradient` by a, b and the components of v."""

    value: float
    gradient: tuple[float, ...]
    tangent: float

    def is_near(self, other: Numbers) -> bool:
        mine, others = ([*x.gradient, x.value, x.tangent] for x in (self, other))
        return np.allclose(mine, others, rtol=2e-4, atol=2e-4)


def source_of(rule: str) -> str:
    return (FOLDER / rule / "fault.slang").read_text("utf-8")


def inputs_of(rule: str) -> tuple[float, float, list[float], int]:
    stored = json.loads((FOLDER / rule / "numbers.json").read_text("utf-8"))
    return stored["a"], stored["b"], stored["v"], stored["n"]


def right_of(rule: str) -> Numbers:
    """What is stored: of the formulas in test_rewrite_rules.py."""
    stored = json.loads((FOLDER / rule / "numbers.json").read_text("utf-8"))
    return Numbers(stored["value"], tuple(stored["gradient"]), float(np.dot(stored["gradient"], ALONG)))


def _call(names: Sequence[str]) -> str:
    """A function that calls all of them, each with its own n."""
    calls = "\n".join(f"    r[{k}] = {name}(a, b, v, n[{k}]);" for k, name in enumerate(names))
    count = len(names)
    return (
        f"\n[Differentiable] float[{count}] all_of_them(float a, float b, float3 v, int n[{count}])\n"
        f"{{\n    float r[{count}];\n{calls}\n    return r;\n}}\n"
    )


def numbers_of(device: spy.Device, rules: Sequence[str]) -> list[Numbers]:
    """Those of the faults of some rules, by one kernel for values, one for gradients and one for tangents: row k of the
    inputs asks for function k."""
    count = len(rules)
    names = [rule.replace("-", "_") for rule in rules]
    source = "\n".join(source_of(rule) for rule in rules) + _call(names)
    function = spy.Module.load_from_source(device, "rules_" + names[0], source).all_of_them
    places = [inputs_of(rule) for rule in rules]
    n = [place[3] for place in places]
    inputs: list[Any] = [np.array([place[k] for place in places], np.float32) for k in range(3)]
    tensors = [spy.Tensor.from_numpy(device, x).with_grads() for x in inputs]
    result = spy.Tensor.zeros(device, (count,), f"float[{count}]").with_grads()
    function(*tensors, n, _result=result)
    values = np.diagonal(result.to_numpy())
    result.grad.copy_from_numpy(np.eye(count, dtype=np.float32))
    function.bwds(*tensors, n, _result=result)
    gradients = np.column_stack([tensor.grad.to_numpy().reshape(count, -1) for tensor in tensors])
    for tensor, along in zip(tensors, (ALONG[0], ALONG[1], ALONG[2:]), strict=True):
        tensor.grad.copy_from_numpy(np.broadcast_to(np.float32(along), tensor.grad.to_numpy().shape).copy())
    moved = spy.Tensor.zeros(device, (count,), f"float[{count}]").with_grads()
    function.fwds(*tensors, n, _result=moved)
    assert np.allclose(np.diagonal(moved.to_numpy()), values, rtol=1e-4, atol=1e-4, equal_nan=True), "the value of fwds"
    tangents = np.diagonal(moved.grad.to_numpy())
    return [Numbers(float(values[k]), tuple(gradients[k].tolist()), float(tangents[k])) for k in range(count)]


if __name__ == "__main__":
    opened = spy.create_device(type=sys.argv[2])
    found = numbers_of(opened, [sys.argv[1]])[0]
    print(json.dumps([found.value, found.gradient, found.tangent]))
