"""Calls whose arguments are views over one memory, against NumPy with all inputs copied first."""

from __future__ import annotations

import random
from functools import cache
from typing import Any

import numpy as np
import pytest
from drawn import MANY, SEED
from strided import Layout, host_view, tensor_view

import slangpy as spy

pytestmark = [pytest.mark.needs_kernels, pytest.mark.slow]

CASES = 80 * MANY
"""Calls for each kind of container."""
ITEMS = 120
SOURCE = """
void mix(float a, float b, out float c, inout float d) { c = 2 * a - b; d = d + a; }
float sum(float a, float b) { return a + b; }
float3 turn(float3 a) { return a.yzx; }
"""


@cache
def module_of(device: Any) -> Any:
    return spy.Module.load_from_source(device, "shared_memory_property", SOURCE)


def draw_view(rng: random.Random, shape: tuple[int, ...], writes: bool) -> Layout:
    """A view somewhere in the memory; one in eight of those written overlaps itself."""
    while True:
        order = rng.sample(range(len(shape)), len(shape))
        strides = [0] * len(shape)
        step = 1
        for dim in order:
            strides[dim] = rng.choice((1, 1, -1)) * step * rng.choice((1, 1, 1, 2))
            step = abs(strides[dim]) * shape[dim] + rng.choice((0, 0, 0, 1))
        if not writes or rng.random() < 0.12:
            dim = rng.randrange(len(shape))
            strides[dim] = rng.choice((strides[dim], strides[dim], 0, 1, 2))
        low = sum(min(0, (size - 1) * s) for size, s in zip(shape, strides, strict=True))
        high = sum(max(0, (size - 1) * s) for size, s in zip(shape, strides, strict=True))
        if high - low < ITEMS:
            return Layout(shape, tuple(strides), rng.randint(-low, ITEMS - 1 - high), ITEMS)


def places(layout: Layout) -> list[int]:
    return host_view(np.arange(ITEMS), layout).ravel().tolist()


def overlaps_itself(layout: Layout) -> bool:
    found = places(layout)
    return len(set(found)) < len(found)


def draw_call(rng: random.Random) -> tuple[str, list[Layout], list[Layout]]:
    """A function with the views that it reads only, and those that it writes."""
    function = rng.choice(("mix", "mix", "sum", "turn"))
    shape = rng.choice(((7,), (33,), (4, 5), (1, 6), (3, 2)))
    if function == "turn":
        return function, [draw_view(rng, (*shape[-1:], 3), False)], [draw_view(rng, (*shape[-1:], 3), True)]
    reads = []
    for _ in range(2):
        part = shape[-1:] if rng.random() < 0.2 else tuple(1 if rng.random() < 0.1 else size for size in shape)
        reads.append(draw_view(rng, part, False))
    written = [draw_view(rng, shape, True) for _ in range(2 if function == "mix" else 1)]
    if rng.random() < 0.3:  # the same view once more, which is no reason for a copy
        reads[rng.randrange(2)] = written[-1]
    return function, reads, written


def expected_of(function: str, base: np.ndarray, reads: list[Layout], written: list[Layout]) -> np.ndarray:
    inputs = [host_view(base, layout).copy() for layout in reads]
    result = base.copy()
    if function == "mix":
        last = host_view(base, written[1]).copy() + inputs[0]
        host_view(result, written[0])[...] = 2 * inputs[0] - inputs[1]
        host_view(result, written[1])[...] = last
    elif function == "sum":
        host_view(result, written[0])[...] = inputs[0] + inputs[1]
    else:
        host_view(result, written[0])[...] = inputs[0][..., [1, 2, 0]]
    return result


def run_case(device: Any, kind: str, case: int) -> None:
    rng = random.Random(f"{SEED}:{kind}:{case}")
    function, reads, written = draw_call(rng)
    content = np.random.default_rng(case).integers(-99, 100, ITEMS).astype(np.float32)
    base: Any = content.copy() if kind == "numpy" else spy.Tensor.from_numpy(device, content)
    view = host_view if kind == "numpy" else tensor_view
    arguments = [view(base, layout) for layout in (*reads, *written)]
    keywords: dict[str, Any] = {} if function == "mix" else {"_result": arguments.pop()}
    refused = any(overlaps_itself(layout) for layout in written)
    meet = len(written) == 2 and written[0] != written[1] and set(places(written[0])) & set(places(written[1]))
    refused = refused or (kind != "numpy" and bool(meet))
    encoder = device.create_command_encoder() if kind == "recorded" else None
    if encoder is not None:
        keywords["_append_to"] = encoder
    call = getattr(module_of(device), function)
    if refused:
        with pytest.raises(ValueError, match=r"share memory|both written and overlap"):
            call(*arguments, **keywords)
    else:
        call(*arguments, **keywords)
    if encoder is not None:
        device.submit_command_buffer(encoder.finish())
    got = base if kind == "numpy" else base.to_numpy()
    expected = content if refused else expected_of(function, content, reads, written)
    wrong = np.flatnonzero(got != expected).tolist()
    assert not wrong, f"{function} of {reads} into {written}: at {wrong}"


@pytest.mark.parametrize("kind", ["numpy", "tensor", "recorded"])
def test_overlap(device: Any, kind: str) -> None:
    for case in range(CASES):
        try:
            run_case(device, kind, case)
        except Exception as error:
            raise AssertionError(f"run_case(device, {kind!r}, {case})\n{error}") from error
