"""What a case must give, in float64, and how far float32 may be from it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from .cases import ROWS, Case
from .graphs import Inputs, frozen_in, run_graph
from .nodes import INPUTS
from .reference import Machine, values_of

NOISE = 1e-6  # of an operation, when it is asked how much errors grow
CHAOS = 3e-4  # errors that grow to more than this part of a value go on growing: no tolerance fits, and the row is left out


class Reference:
    """The batch as a function of torch tensors, with noise if it is set."""

    def __init__(self, case: Case):
        self.case = case
        self.machines = [Machine(program) for program in case.programs]
        self.noise, self.seed = 0.0, 0
        self.traces: list[list[bool]] = []

    def begin(self, noise: float, seed: int) -> None:
        self.noise, self.seed, self.traces = noise, seed, []

    def __call__(self, inputs: Inputs) -> torch.Tensor:
        case = self.case
        rows = case.count * ROWS
        columns = {}
        for given in INPUTS:
            value = inputs[given.name].expand(case.count, ROWS, *given.shape)
            columns[given.name] = value.reshape(rows, *given.shape).unbind(0)
        start = inputs["r"].reshape(rows, case.count) if "r" in inputs else None
        results = []
        for at in range(rows):
            k, r = divmod(at, ROWS)
            if not case.weights[0, k, r]:
                results.append(0 * columns["a"][at])  # a result of its inputs, also where no row is compared
                self.traces.append([])
                continue
            machine = self.machines[k]
            value = machine.run(values_of({name: column[at] for name, column in columns.items()}), self.noise, self.seed + at)
            value = torch.as_tensor(value, dtype=torch.float64)
            results.append(value + 0.5 * torch.sin(start[at, k]) if start is not None else value)
            self.traces.append(machine.trace)
        return torch.stack(results).reshape(case.count, ROWS)


@dataclass
class Expected:
    values: list[np.ndarray]  # of each call, (K, R)
    gradients: dict[str, np.ndarray]
    tangent: np.ndarray | None  # (K, R)
    value_slack: list[np.ndarray]  # by how much noise changes each number
    gradient_slack: dict[str, np.ndarray]
    tangent_slack: np.ndarray | None


def expected(case: Case) -> Expected:
    """Runs the reference; rows in which noise changes a decision, or grows without bound, get the weight 0."""
    reference = Reference(case)
    for _ in range(3):
        runs = [_run(case, reference, noise, seed) for noise, seed in ((0.0, 0), (1e-4, 1000), (NOISE, 2000), (NOISE, 3000))]
        decided = _mask(case, [run[3] for run in runs])
        if not _mask_chaos(case, runs[0][0], [run[0] for run in runs[2:]]) and not decided:
            break
    exact, _, *noisy = runs

    def slack(pick: int, key: object) -> np.ndarray:
        return np.maximum.reduce([np.abs(run[pick][key] - exact[pick][key]) for run in noisy])  # type: ignore[index]

    gradients = {name: exact[1][name] for name in exact[1]}
    tangent, tangent_slack = exact[2], None
    if tangent is not None:
        tangent_slack = np.maximum.reduce([np.abs(run[2] - tangent) for run in noisy])  # type: ignore[operator]
    return Expected(exact[0], gradients, tangent, [slack(0, at) for at in range(len(exact[0]))],
                    {name: slack(1, name) for name in gradients}, tangent_slack)  # fmt: skip


def _run(case: Case, reference: Reference, noise: float, seed: int):
    reference.begin(noise, seed)
    per_row = case.route != "torch"
    leaves: Inputs = {}
    for given in INPUTS:
        array = case.arrays[given.name]
        if per_row:
            array = np.broadcast_to(array, (case.count, ROWS, *given.shape))
        leaf = torch.tensor(array.astype(np.int64 if given.name == "n" else np.float64))
        leaf.requires_grad_(given.differentiable and not (not per_row and frozen_in(case.graph, given.name)))
        leaves[given.name] = leaf
    if case.mode == "inout":
        leaves["r"] = torch.tensor(case.start.astype(np.float64), requires_grad=True)
    weights = torch.tensor(case.weights.astype(np.float64))
    if not per_row:
        values, gradients = run_graph(case.graph, reference, leaves, weights)
        return ([value.detach().numpy() for value in values], _filled(gradients, leaves), None, reference.traces)
    y = reference(leaves)
    if y.requires_grad:
        y.sum().backward()
    rows = {name: leaf.grad.numpy() for name, leaf in leaves.items() if leaf.grad is not None}
    tangent = np.zeros((case.count, ROWS))
    for name, gradient in rows.items():
        along = case.tangents[name] if name != "r" else case.start[::-1]
        tangent += (gradient * along).reshape(case.count, ROWS, -1).sum(-1)
    scaled = {name: _reduced(case, name, gradient) for name, gradient in rows.items()}
    leaves = {name: torch.tensor(case.arrays[name]) if name != "r" else leaf for name, leaf in leaves.items() if leaf.requires_grad}
    filled = {name: scaled.get(name, np.zeros(leaf.shape)) for name, leaf in leaves.items()}
    return [y.detach().numpy()], filled, tangent, reference.traces


def _reduced(case: Case, name: str, rows: np.ndarray) -> np.ndarray:
    """Gradients of each row, weighted, and added up where an input is broadcast."""
    weights = case.weights[0].astype(np.float64)
    weights = weights.reshape(case.count, ROWS, *[1] * (rows.ndim - 2))
    rows = np.where(weights == 0, 0, rows * weights)  # what is left out may be infinite
    if name == "r":
        return rows
    lead = case.shapes[name]
    padded = (1,) * (2 - len(lead)) + lead
    axes = tuple(axis for axis in (0, 1) if padded[axis] == 1 and rows.shape[axis] != 1)
    rows = rows.sum(axis=axes, keepdims=True) if axes else rows
    return rows.reshape(case.arrays[name].shape)


def _filled(gradients: Inputs, leaves: Inputs) -> dict[str, np.ndarray]:
    return {name: gradients[name].numpy() if name in gradients else np.zeros(leaf.shape)
            for name, leaf in leaves.items() if leaf.requires_grad}  # fmt: skip


def _mask(case: Case, traces: list[list[list[bool]]]) -> bool:
    """Takes rows out whose decisions differ; whether there were any."""
    rows = case.count * ROWS
    found = False
    for at in range(len(traces[0])):
        k, r = divmod(at % rows, ROWS)
        if case.weights[0, k, r] and any(trace[at] != traces[0][at] for trace in traces[1:]):
            case.weights[:, k, r] = 0
            found = True
    return found


def _mask_chaos(case: Case, exact: list[np.ndarray], noisy: list[list[np.ndarray]]) -> bool:
    """Takes rows out whose value noise moves far; whether there were any."""
    found = np.zeros((case.count, ROWS), bool)
    for values in noisy:
        for got, want in zip(values, exact, strict=True):
            found |= ~(np.abs(got - want) <= CHAOS * (1 + np.abs(want)))
    found &= case.weights[0] != 0
    case.weights[:, found] = 0
    return bool(found.any())
