"""What backward and forward-mode calls do with the gradient of each argument."""

from __future__ import annotations

from typing import Any

import pytest

from slangpy.errors import ResolveException
from slangpy.plan.planner import lacks_storage, warnings_of
from slangpy.plan.records import Derivative

from .keys import array, module, number, plan, request, tensor


def derived(node: Any, *given: Any) -> dict[str, Derivative]:
    """By the path of the argument."""
    planned = plan(node, *given)
    paths = {p.ident: p.path for p in planned.vectorized.placed}
    return {paths[ident]: grad for ident, grad in planned.derivatives.items()}


def test_forward_calls_have_none():
    assert plan(module().poly, number(), number(), tensor(5, grads=True)).derivatives == {}


def test_targets_and_the_seed():
    found = derived(module().poly.bwds, number(), number(), tensor(5, grads=True), tensor(5, grads=True))
    assert {path: (g.seed, g.target) for path, g in found.items()} == {
        "a": ("", ""), "b": ("", ""), "x": ("", "view"), "_result": ("view", ""),
    }  # fmt: skip
    assert (found["x"].grad_type, found["x"].target_view) == ("float", "go")
    assert (found["_result"].seed_view, found["_result"].seed_type) == ("gi", "float")


def test_tensors_without_gradients_get_none():
    found = derived(module().poly.bwds, number(), number(), tensor(5), tensor(5, grads=True))
    assert found["x"].target == ""


def test_no_diff_parameters_take_no_part():
    grads = tensor(5, grads=True)
    found = derived(module().half_known.bwds, grads, grads, grads)
    assert (found["a"].target, found["x"].target) == ("", "view")


def test_outputs_are_seeds():
    grads = tensor(5, grads=True)
    found = derived(module().split.bwds, grads, grads, number())
    assert (found["x"].target, found["low"].seed) == ("view", "view")


def test_gathered_tensors_are_views():
    found = derived(module().gather.bwds, tensor(8, grads=True), array(5, scalar="int"), tensor(5, grads=True))
    assert found["values"].target == "view" and found["index"].target == ""


def test_forward_mode_reads_tangents():
    found = derived(module().poly.fwds, number(), number(), tensor(5, grads=True))
    assert found["x"].seed == "view" and found["x"].forward


@pytest.mark.parametrize(("grads", "expected"), [(False, True), (True, False)])
def test_a_derivative_needs_memory(grads: bool, expected: bool):
    given = (number(), number(), tensor(5, grads=grads), tensor(5, grads=True))
    assert lacks_storage(request(module().poly.bwds, *given), plan(module().poly.bwds, *given)) is expected


def test_a_result_without_a_gradient_is_told():
    given = (number(), number(), tensor(5, grads=True))
    for result, expected in ((number(), 1), (tensor(5, grads=True), 0)):
        function = module().poly.bwds
        told = warnings_of(request(function, *given, result), plan(function, *given, result))
        assert sum("_result has no gradient to read" in text for text in told) == expected
    with pytest.raises(ResolveException, match="_result has no gradient to read"):
        plan(module().poly.bwds, *given, tensor(5))
