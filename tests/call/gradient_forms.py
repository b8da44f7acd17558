"""Many forms of one construct in one module: one kernel for the values of many, one for the gradients, one for the tangents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import slangpy as spy

AT_ONCE = {spy.DeviceType.vulkan: 12}
"""Forms in one kernel; elsewhere all. The time that LLVM takes in Mesa 22.3 grows with the square of a kernel's size."""


def source_of_forms(head: str, forms: Mapping[str, str], at_once: int) -> str:
    """Each form is a body that returns a float; `part0`, `part1` and so on call `at_once` of them each, so that a result
    has one number of each."""
    functions = [
        f"[Differentiable] float f{k}(float a, float b, float3 v, int n)\n{{\n    {body}\n}}\n" for k, body in enumerate(forms.values())
    ]
    for part, first in enumerate(range(0, len(forms), at_once)):
        count = min(at_once, len(forms) - first)
        calls = "".join(f"r[{k}] = f{first + k}(a, b, v, n); " for k in range(count))
        functions.append(
            f"[Differentiable] float[{count}] part{part}(float a, float b, float3 v, int n) {{ float r[{count}]; {calls}return r; }}\n"
        )
    return f"{head}{''.join(functions)}"


def check_forms(
    device: spy.Device, name: str, head: str, forms: Mapping[str, str], n: int | Sequence[int] = 1, seed: int = 5
) -> None:
    """Values, gradients and tangents against differences of the same source in double on the CPU device.

    Row k of the inputs asks for the derivatives of function k; each value of `n` has inputs of its own.
    """
    rng = np.random.default_rng(seed)
    at_once = AT_ONCE.get(device.info.type, len(forms))
    module = spy.Module.load_from_source(device, name, source_of_forms(head, forms, at_once))
    exact = spy.Module.load_from_source(
        spy.Device(type=spy.DeviceType.cpu),
        f"{name}_double",
        source_of_forms(head, forms, len(forms)).replace("float", "double").replace("0f", "0"),
    ).part0
    for number in (n,) if isinstance(n, int) else n:
        inputs = [rng.uniform(0.2, 0.9, (len(forms), *shape)) for shape in ((), (), (3,))]
        along = [rng.uniform(-1, 1, x.shape) for x in inputs]
        wanted = _wanted(exact, inputs, along, number)
        for part, first in enumerate(range(0, len(forms), at_once)):
            rows = slice(first, first + at_once)
            got = _of_part(device, getattr(module, f"part{part}"), [x[rows] for x in inputs], [d[rows] for d in along], number)
            assert got.keys() == wanted.keys()
            for what in wanted:
                _assert_same(got[what], wanted[what][rows], f"{name}, n = {number}: {what}", list(forms)[rows])


def _wanted(exact: Any, inputs: list[np.ndarray], along: list[np.ndarray], n: int) -> dict[str, np.ndarray]:
    def values(inputs: list[np.ndarray]) -> np.ndarray:
        return np.diagonal(exact(*inputs, n, _result="numpy"))

    def derivative(directions: list[np.ndarray]) -> np.ndarray:
        ends = [values([x + h * d for x, d in zip(inputs, directions, strict=True)]) for h in (1e-6, -1e-6)]
        return (ends[0] - ends[1]) / 2e-6

    wanted = {"value": values(inputs), "value of fwds": values(inputs), "tangent": derivative(along)}
    for k, what in enumerate("abv"):
        for at in np.ndindex(*inputs[k].shape[1:]):
            marks = [np.zeros(x.shape) for x in inputs]
            marks[k][(slice(None), *at)] = 1
            wanted[f"gradient of {what}{list(at)}"] = derivative(marks)
    return wanted


def _of_part(device: spy.Device, function: Any, inputs: list[np.ndarray], along: list[np.ndarray], n: int) -> dict[str, np.ndarray]:
    """What the functions of one kernel give: values, gradients by each input, and tangents along a direction."""
    count = len(inputs[0])
    tensors = [spy.Tensor.from_numpy(device, x.astype(np.float32)).with_grads() for x in inputs]
    weights = spy.Tensor.from_numpy(device, np.eye(count, dtype=np.float32))
    result = spy.Tensor.zeros(device, (count, count), "float")
    function(*tensors, n, _result=result)
    got = {"value": np.diagonal(result.to_numpy())}
    function.bwds(*tensors, n, _result=result.with_grads(weights, weights))
    for tensor, what in zip(tensors, "abv", strict=True):
        gradient = tensor.grad.to_numpy()
        got |= {f"gradient of {what}{list(at)}": gradient[(slice(None), *at)] for at in np.ndindex(*gradient.shape[1:])}
    for tensor, d in zip(tensors, along, strict=True):
        tensor.grad.copy_from_numpy(d.astype(np.float32))
    moved = spy.Tensor.zeros(device, (count, count), "float").with_grads()
    function.fwds(*tensors, n, _result=moved)
    return {**got, "value of fwds": np.diagonal(moved.to_numpy()), "tangent": np.diagonal(moved.grad.to_numpy())}


def _assert_same(got: np.ndarray, want: np.ndarray, what: str, forms: list[str]) -> None:
    wrong = {name: (got[k], want[k]) for k, name in enumerate(forms) if not abs(got[k] - want[k]) < 2e-4 * (1 + abs(want[k]))}
    assert not wrong, f"{what}: {wrong}"
