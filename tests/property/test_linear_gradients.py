"""Gradients of random programs of copies, sums and calls that write, known exactly (linear_programs.py).

More of them: SLANGPY_TEST_LINEAR_PROGRAMS=5000 pytest tests/property/test_linear_gradients.py -s

Copies of whole structs (copies_of_structs=True) are wrong more often; docs/compiler-faults.md."""

from __future__ import annotations

import numpy as np
import pytest
from drawn import SEED
from linear_programs import HEAD, program
from tiers import gate

import slangpy as spy

pytestmark = [pytest.mark.needs_kernels, pytest.mark.one]
COUNT = 300
BATCH = 12


def wrong_programs(device: spy.Device, seeds: list[int], copies_of_structs: bool) -> dict[int, str]:
    """Seeds of the programs with a wrong value or gradient. One call runs all: a row of it weighs one program alone."""
    programs = [program(seed, f"p{k}", copies_of_structs) for k, seed in enumerate(seeds)]
    count = len(programs)
    terms = " + ".join(f"g[{k}] * p{k}(a, b, c, n)" for k in range(count))
    batch = f"[Differentiable] float batch(float a, float b, float c, int n, no_diff float g[{count}]) {{ return {terms}; }}"
    source = HEAD + "".join(text for text, _ in programs) + batch
    module = spy.Module.load_from_source(device, f"linear_{seeds[0]}", source)
    rows = 4 * count
    rng = np.random.default_rng(seeds[0])
    values = [rng.integers(-8, 8, rows).astype(np.float32) for _ in range(3)]
    inputs = [spy.Tensor.from_numpy(device, v).with_grads(zero=True) for v in values]
    n = np.tile(np.arange(4, dtype=np.int32), count)
    weights = spy.Tensor.from_numpy(device, np.repeat(np.eye(count, dtype=np.float32), 4, 0))
    result = spy.Tensor.from_numpy(device, np.zeros(rows, np.float32)).with_grads()
    result.grad.copy_from_numpy(np.ones(rows, np.float32))
    expected = np.concatenate([gradients for _, gradients in programs])
    got = module.batch(*inputs, n, weights, _result="numpy")
    wrong = {seeds[i // 4]: "value" for i in np.nonzero(got != (expected * np.stack(values, 1)).sum(1))[0]}
    module.batch.bwds(*inputs, n, weights, _result=result)
    gradients = np.stack([x.grad.to_numpy() for x in inputs], 1)
    for i in np.nonzero((gradients != expected).any(1))[0]:
        wrong[seeds[i // 4]] = f"n = {i % 4}: gradient {gradients[i].tolist()}, right is {expected[i].tolist()}"
    return wrong


@pytest.mark.parametrize("first", gate([0, 1060, 2000], lambda first: first == 1060))
def test_gradients_are_exact(device: spy.Device, first: int) -> None:
    assert wrong_programs(device, list(range(first, first + BATCH)), copies_of_structs=False) == {}


@pytest.mark.nightly
def test_many(device: spy.Device) -> None:
    wrong: dict[int, str] = {}
    for first in range(10_000 * SEED, 10_000 * SEED + COUNT, BATCH):
        wrong |= wrong_programs(device, list(range(first, first + BATCH)), copies_of_structs=False)
    for seed, what in wrong.items():
        print(f"{seed}: {what}\n{program(seed, 'f', False)[0]}")
    assert len(wrong) <= COUNT / 200, f"{len(wrong)} of {COUNT}"
