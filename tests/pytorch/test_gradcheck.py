"""torch.autograd.gradcheck on functions of float64, with default tolerances."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
from tiers import gate

torch = pytest.importorskip("torch")

from torch_support import HERE, device_of  # noqa: E402

import slangpy as spy  # noqa: E402

FULL, ONE = (3, 2), (1,)
SHAPES: dict[str, tuple[tuple[int, ...], ...]] = {
    "poly": (ONE, (2,), (3, 1), FULL), "product": (FULL, (2,)), "quotient": (FULL, FULL), "sine": (FULL,),
    "cosine": (FULL,), "exponential": (FULL,), "logarithm": (FULL,), "root": (FULL,), "power": (FULL, ONE),
    "tangent": (FULL,), "sigmoid": (FULL,), "gauss": (FULL, ONE), "branch": (FULL,), "selected": (FULL, (2,)),
    "loop": (FULL,), "dot3": ((4, 3), (3,)), "crossed": ((4, 3), (4, 3)), "unit": ((4, 3),), "turned": ((4,), (4, 2)),
    "trace2": ((3, 2, 2),), "elements": ((3, 4),), "nested": (FULL, (3, 1)), "lerped": (FULL, FULL, ()),
    "own": (FULL,), "total": ((3, 4),),
}  # fmt: skip


@cache
def functions(where: str) -> Any:
    return spy.Module.load_from_file(device_of(where), HERE / "torch_gradcheck.slang")


def inputs(shapes: tuple[tuple[int, ...], ...], where: str) -> list[Any]:
    generator = torch.Generator().manual_seed(5)
    return [
        (torch.rand(s, generator=generator, dtype=torch.float64) + 0.5).to(where).requires_grad_(True) for s in shapes
    ]


IN_GATE = ("poly", "quotient", "power", "branch", "selected", "loop", "crossed", "unit", "turned", "trace2", "elements", "nested", "own", "total")
"""The others are single functions of Slang's, whose derivatives other tests compare."""


@pytest.mark.parametrize("name", gate(SHAPES, lambda name: name in IN_GATE))
def test_returned(where: str, name: str) -> None:
    function = getattr(functions(where), name)
    assert torch.autograd.gradcheck(function, inputs(SHAPES[name], where))


def test_out(where: str) -> None:
    def call(x: Any) -> Any:
        square, cube = torch.empty_like(x), torch.empty_like(x)
        functions(where).pair(x, square, cube)
        return square, cube

    assert torch.autograd.gradcheck(call, inputs((FULL,), where))


def test_inout(where: str) -> None:
    def call(x: Any, y: Any) -> Any:
        v = x * 1
        functions(where).grow(v, y)
        return v

    assert torch.autograd.gradcheck(call, inputs((FULL, ONE), where))


def test_transposed(where: str) -> None:
    assert torch.autograd.gradcheck(lambda x: functions(where).sine(x.T), inputs((FULL,), where))
