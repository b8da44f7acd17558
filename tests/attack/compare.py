"""Runs a case on a device and says where it differs from what is expected."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

import slangpy as spy

from .cases import ROWS, Case
from .expected import Expected, expected
from .failure import Failure
from .graphs import Inputs, frozen_in, run_graph
from .nodes import INPUTS
from .print_slang import batch_text

__all__ = ["Failure", "Runner", "begin", "expected"]

# How exact a device's sin, exp and the like are: a factor on what noise of 1e-6 does, and a part of the value itself.
EXACT = {"cpu": (4.0, 3e-5), "cuda": (8.0, 5e-5), "vulkan": (60.0, 2e-4)}


def begin() -> None:
    """A process that compares needs no threads of torch's."""
    torch.set_num_threads(1)


# What takes least time to compile, on devices that can do without optimization. Lanes have an attack of their own.
QUICK: dict[str, list[dict[str, Any]]] = {
    "cpu": [{"optimization": spy.SlangOptimizationLevel.none, "cpu_lanes": False}],
    # Older NVRTC does not know it. Without optimization by ptxas, a thread needs so much memory that 16 processes have no room.
    "cuda": [{"downstream_args": ["--Ofast-compile=max"]}, {}],
}


def open_quick(name: str) -> spy.Device:
    """A device with the first of the options that its compiler knows."""
    for own in QUICK[name]:
        device = spy.Device(type=spy.DeviceType[name], compiler_options=own, enable_hot_reload=False)
        if own is QUICK[name][-1]:
            break
        try:
            spy.Module.load_from_source(device, "attack_options", "float f(float x) { return x; }").f(1.0)
            break
        except Exception:  # of whatever kind an unknown option is
            device.close()
    return device


class Runner:
    """One open device. `report` hears of each stage before it begins."""

    def __init__(self, name: str, optimized: bool, report: Callable[[str], None]):
        self.name = name
        self.report = report
        self.device = self.open(optimized)
        self.place = "cuda" if name == "cuda" else "cpu"
        self.count = 0

    def open(self, optimized: bool) -> spy.Device:
        return spy.Device(type=spy.DeviceType[self.name], enable_hot_reload=False) if optimized else open_quick(self.name)

    def run(self, case: Case, want: Expected, stages: tuple[str, ...] = ()) -> list[Failure]:
        self.count += 1
        self.report("compile")
        source = batch_text(case.programs, case.mode)
        try:
            module = spy.Module.load_from_source(self.device, f"attack_{self.count}_{case.seed}", source)
        except Exception as error:
            return [Failure("error", "compile", -1, str(error))]
        steps = {"torch": self._torch} if case.route == "torch" else {"value": self._value, "bwds": self._bwds, "fwds": self._fwds}
        failures: list[Failure] = []
        for stage, step in steps.items():
            if stages and stage not in stages:
                continue
            self.report(stage)
            try:
                failures += step(module, case, want)
            except Exception as error:
                failures.append(Failure("error", stage, -1, f"{type(error).__name__}: {error}"))
        return failures

    # ---- the three calls

    def _call(self, function: Any, case: Case, given: dict[str, Any], result: Any, target: Any) -> Any:
        """Calls with the inputs by name; `result` for a batch that returns, `target` for one that writes."""
        named = {name: value for name, value in given.items() if not name.startswith("s.")}
        named["s"] = {"p": given["s.p"], "q": given["s.q"]}
        if case.mode == "return":
            return function(**named, _result=result)
        function(**named, r=target)
        return target

    def _arrays(self, case: Case) -> dict[str, np.ndarray]:
        return {name: layout.view(layout.base_of(case.arrays[name])) for name, layout in case.layouts.items()}

    def _value(self, module: Any, case: Case, want: Expected) -> list[Failure]:
        target = case.start.copy() if case.mode == "inout" else np.zeros_like(case.start)
        y = self._call(module.batch, case, self._arrays(case), "numpy", target)
        return self._compare_rows(case, "wrong value", "value", _diagonal(y), want.values[0], want.value_slack[0])

    def _tensors(self, case: Case, gradients: dict[str, np.ndarray] | None) -> dict[str, Any]:
        made: dict[str, Any] = {}
        for given in INPUTS:
            layout = case.layouts[given.name]
            base = spy.Tensor.from_numpy(self.device, layout.base_of(case.arrays[given.name]))
            if given.differentiable:
                grad = spy.Tensor.from_numpy(self.device, layout.base_of(gradients[given.name])) if gradients else None
                base = base.with_grads(grad, grad) if grad is not None else base.with_grads()
            made[given.name] = layout.view(base)
        return made

    def _result(self, case: Case, value: np.ndarray, seed: np.ndarray) -> Any:
        tensor = spy.Tensor.from_numpy(self.device, value)
        grads = [spy.Tensor.from_numpy(self.device, array) for array in (seed, np.zeros_like(seed))]
        return tensor.with_grads(grads[0], grads[1]) if case.mode == "inout" else tensor.with_grads(grads[0], grads[0])

    def _bwds(self, module: Any, case: Case, want: Expected) -> list[Failure]:
        seed = np.zeros_like(case.start)
        for k in range(case.count):
            seed[k, :, k] = case.weights[0, k]
        given = self._tensors(case, None)
        result = self._result(case, case.start, seed)
        self._call(module.batch.bwds, case, given, result, result)
        got = {name: tensor.grad.to_numpy() for name, tensor in given.items() if tensor.grad_out is not None}
        if case.mode == "inout":
            got["r"] = result.grad_out.to_numpy()
        return self._compare_gradients(case, "bwds", got, want)

    def _fwds(self, module: Any, case: Case, want: Expected) -> list[Failure]:
        assert want.tangent is not None and want.tangent_slack is not None
        given = self._tensors(case, case.tangents)
        result = self._result(case, case.start, np.ascontiguousarray(case.start[::-1]))
        self._call(module.batch.fwds, case, given, result, result)
        failures = self._compare_rows(case, "wrong value", "fwds", _diagonal(result.to_numpy()), want.values[0], want.value_slack[0])
        tangent = _diagonal((result.grad_out if case.mode == "inout" else result.grad).to_numpy())
        return failures + self._compare_rows(case, "wrong tangent", "fwds", tangent, want.tangent, want.tangent_slack)

    def _torch(self, module: Any, case: Case, want: Expected) -> list[Failure]:
        leaves: Inputs = {}
        views: Inputs = {}
        for given in INPUTS:
            layout = case.layouts[given.name]
            forward = tuple(slice(None) if part.step == -1 else part for part in layout.index)  # torch has no negative strides
            base = torch.tensor(case.arrays[given.name], device=self.place)
            leaf = torch.empty(layout.shape, dtype=base.dtype, device=self.place)
            view = leaf[forward].permute(layout.order)
            view.copy_(base)
            needs = given.differentiable and not frozen_in(case.graph, given.name)
            views[given.name] = view.requires_grad_() if needs else view
        leaves = views
        if case.mode == "inout":
            leaves["r"] = torch.tensor(case.start, device=self.place, requires_grad=True)
        at = torch.arange(case.count, device=self.place)

        def f(inputs: Inputs) -> torch.Tensor:
            inputs = dict(inputs)
            start = inputs.pop("r", None)
            target = start.clone() if start is not None else torch.zeros(case.start.shape, device=self.place)
            y = self._call(module.batch, case, inputs, None, target)
            return y[at, :, at]

        weights = torch.tensor(case.weights, device=self.place)
        values, gradients = run_graph(case.graph, f, leaves, weights)
        failures: list[Failure] = []
        for call, value in enumerate(values):
            failures += self._compare_rows(case, "wrong value", "torch", value.detach().cpu().numpy(), want.values[call], want.value_slack[call])
        got = {name: gradients[name].cpu().numpy() if name in gradients else np.zeros(tuple(leaf.shape))
               for name, leaf in leaves.items() if leaf.requires_grad}  # fmt: skip
        return failures + self._compare_gradients(case, "torch", got, want)

    # ---- comparing

    def _compare_rows(self, case: Case, kind: str, stage: str, got: np.ndarray, want: np.ndarray, slack: np.ndarray) -> list[Failure]:
        factor, part = EXACT[self.name]
        allowed = factor * slack + part * (1 + np.abs(want))
        wrong = ~(np.abs(got - want) <= allowed) & (case.weights[0] != 0)
        return [
            Failure(kind, stage, k, f"row {r}: expected {want[k, r]:.7g}, got {got[k, r]:.7g} (allowed {allowed[k, r]:.1e})")
            for k, r in _first_of_each(wrong)
        ]

    def _compare_gradients(self, case: Case, stage: str, got: dict[str, np.ndarray], want: Expected) -> list[Failure]:
        factor, part = EXACT[self.name]
        sizes = np.ones((case.count, ROWS))
        for name, gradient in want.gradients.items():
            if name == "r" or len(case.shapes[name]) == 2:
                flat = np.abs(gradient).reshape(*gradient.shape[:2], -1).max(-1)
                sizes = np.maximum(sizes, flat)
        total = float(sizes.sum())
        failures: dict[int, Failure] = {}
        for name, gradient in want.gradients.items():
            whole = gradient.shape[:2] == (case.count, ROWS)
            size = sizes.reshape(case.count, ROWS, *[1] * (gradient.ndim - 2)) if whole else total
            allowed = factor * want.gradient_slack[name] + part * (size + np.abs(gradient))
            wrong = ~(np.abs(got[name] - gradient) <= allowed)
            if not wrong.any():
                continue
            for place in np.argwhere(wrong):
                at = tuple(place)
                text = f"gradient of {name}{list(map(int, at))}: expected {gradient[at]:.7g}, got {got[name][at]:.7g} (allowed {allowed[at]:.1e})"
                failures.setdefault(int(at[0]) if whole else -1, Failure("wrong gradient", stage, int(at[0]) if whole else -1, text))
        if len(failures) > 1:  # the broadcast inputs got the wrong gradient from a program that is named by another input
            failures.pop(-1, None)
        return list(failures.values())


def _diagonal(y: Any) -> np.ndarray:
    array = np.asarray(y)
    at = np.arange(array.shape[0])
    return array[at, :, at]


def _first_of_each(wrong: np.ndarray) -> list[tuple[int, int]]:
    return [(int(k), int(np.argmax(wrong[k]))) for k in range(len(wrong)) if wrong[k].any()]
