"""Sizes of 1 beside call dimensions of size 1: such an argument has one element, however many invocations read it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from calls_support import array, source, tensor

pytestmark = [
    pytest.mark.needs_kernels,
    pytest.mark.elsewhere(
        "large0-small0", "large3-small3",
    ),
]  # fmt: skip

SOURCE = """
float add(float a, float b) { return a + b; }
float first(float a, float2 b) { return a + b.x; }
void put(inout float a, float b) { a = b; }
[Differentiable] float product(float a, float b) { return a * b; }
"""
CALLS = [
    ((2, 1), (1,)),
    ((2, 1), (1, 1)),
    ((3, 1, 1), (1,)),
    ((1, 4, 1), (1, 1)),
    ((2, 1, 3), (1, 3)),
    ((2, 1, 3), (1, 1, 1)),
]


@pytest.mark.parametrize(("large", "small"), CALLS)
@pytest.mark.parametrize("as_tensor", [False, True])
def test_one_element_for_all(device: Any, large: tuple[int, ...], small: tuple[int, ...], as_tensor: bool) -> None:
    module = source(device, "broadcast_ones", SOURCE)
    make = (lambda *s: tensor(device, *s)) if as_tensor else array
    expected = array(*large) + array(*small)
    assert np.array_equal(module.add(make(*large), make(*small), _result="numpy"), expected)
    assert np.array_equal(module.add(make(*small), make(*large), _result="numpy"), expected)
    assert np.array_equal(
        module.first(make(*large), make(*small, 2), _result="numpy"), array(*large) + array(*small, 2)[..., 0]
    )
    written = array(*large)
    module.put(written, make(*small))
    assert np.array_equal(written, np.broadcast_to(array(*small), large))


@pytest.mark.parametrize(("large", "small"), CALLS)
def test_its_gradient_is_the_sum(device: Any, large: tuple[int, ...], small: tuple[int, ...]) -> None:
    module = source(device, "broadcast_ones", SOURCE)
    a, b = tensor(device, *large).with_grads(), tensor(device, *small).with_grads()
    result = module.product(a, b).with_grads()
    result.grad.copy_from_numpy(np.ones(large, np.float32))
    module.product.bwds(a, b, _result=result)
    axes = tuple(range(len(large) - len(small))) + tuple(
        i + len(large) - len(small) for i, size in enumerate(small) if size == 1
    )
    assert np.array_equal(b.grad.to_numpy(), array(*large).sum(axis=axes).reshape(small))
    assert np.array_equal(a.grad.to_numpy(), np.broadcast_to(array(*small), large))
