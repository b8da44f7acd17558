"""Many forms of one construct in one module: one kernel for the values of all, one for the gradients, one for the tangents."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

import slangpy as spy


def source_of_forms(head: str, forms: Mapping[str, str]) -> str:
    """Each form is a body that returns a float; `all` calls them, so that a result has one number of each."""
    functions = [
        f"[Differentiable] float f{k}(float a, float b, float3 v, int n)\n{{\n    {body}\n}}\n" for k, body in enumerate(forms.values())
    ]
    calls = "".join(f"r[{k}] = f{k}(a, b, v, n); " for k in range(len(forms)))
    return (
        f"{head}{''.join(functions)}[Differentiable] float[{len(forms)}] all(float a, float b, float3 v, int n) "
        f"{{ float r[{len(forms)}]; {calls}return r; }}"
    )


def check_forms(device: spy.Device, name: str, source: str, forms: Mapping[str, str], n: int = 1, seed: int = 5) -> None:
    """Values, gradients and tangents against differences of the same source in double on the CPU device.

    Row k of the call asks for the derivatives of function k.
    """
    count = len(forms)
    rng = np.random.default_rng(seed)
    inputs = [rng.uniform(0.2, 0.9, (count, *shape)) for shape in ((), (), (3,))]
    along = [rng.uniform(-1, 1, x.shape) for x in inputs]
    module = spy.Module.load_from_source(device, name, source)
    exact = spy.Module.load_from_source(
        spy.Device(type=spy.DeviceType.cpu), f"{name}_double", source.replace("float", "double").replace("0f", "0")
    ).all

    def derivative(directions: list[np.ndarray]) -> np.ndarray:
        ends = [exact(*(x + h * d for x, d in zip(inputs, directions, strict=True)), n, _result="numpy") for h in (1e-6, -1e-6)]
        return np.diagonal(ends[0] - ends[1]) / 2e-6

    tensors = [spy.Tensor.from_numpy(device, x.astype(np.float32)).with_grads() for x in inputs]
    weights = spy.Tensor.from_numpy(device, np.eye(count, dtype=np.float32))
    result = spy.Tensor.zeros(device, (count, count), "float")
    module.all(*tensors, n, _result=result)
    wanted = np.diagonal(exact(*inputs, n, _result="numpy"))
    _assert_same(np.diagonal(result.to_numpy()), wanted, "value", forms)
    module.all.bwds(*tensors, n, _result=result.with_grads(weights, weights))
    for tensor, x, what in zip(tensors, inputs, "abv", strict=True):
        for at in np.ndindex(*x.shape[1:]):
            mark = np.zeros(x.shape)
            mark[(slice(None), *at)] = 1
            want = derivative([mark if y is x else np.zeros(y.shape) for y in inputs])
            _assert_same(tensor.grad.to_numpy()[(slice(None), *at)], want, f"gradient of {what}{list(at)}", forms)
    for tensor, d in zip(tensors, along, strict=True):
        tensor.grad.copy_from_numpy(d.astype(np.float32))
    moved = spy.Tensor.zeros(device, (count, count), "float").with_grads()
    module.all.fwds(*tensors, n, _result=moved)
    _assert_same(np.diagonal(moved.to_numpy()), wanted, "value of fwds", forms)
    _assert_same(np.diagonal(moved.grad.to_numpy()), derivative(along), "tangent", forms)


def _assert_same(got: np.ndarray, want: np.ndarray, what: str, forms: Mapping[str, str]) -> None:
    wrong = {name: (got[k], want[k]) for k, name in enumerate(forms) if not abs(got[k] - want[k]) < 2e-4 * (1 + abs(want[k]))}
    assert not wrong, f"{what}: {wrong}"
