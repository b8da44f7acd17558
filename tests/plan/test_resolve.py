"""Which function a key means, and what each argument is bound to."""

from __future__ import annotations

from typing import Any

import pytest

from slangpy.errors import BoundVariableException, KernelGenException, ResolveException
from slangpy.plan.records import Options, Resolved
from slangpy.plan.resolve import resolve

from .keys import arguments, array, grid, module, number, numbers, tensor


def resolved(name: str, *given: Any, options: Options = Options(), **named: Any) -> Resolved:  # noqa: B008 - frozen
    target = getattr(module(), name).core.target()
    return resolve(target, arguments(*given, **named), options)[0]


@pytest.mark.parametrize(
    ("given", "kind", "type_name", "dims"),
    [
        (number(), "value", "float", 0),
        (number("int"), "value", "float", 0),
        (array(5), "view", "float", 1),
        (array(2, 5), "view", "float", 2),
        (tensor(5), "view", "float", 1),
        (numbers(5), "packed", "float", 1),
        ([number()], "reference", "float", 0),
    ],
)
def test_kinds_of_leaves(given: Any, kind: str, type_name: str, dims: int):
    binding = resolved("plain", given).parameters[0].binding
    assert (binding.kind, binding.type_name, binding.dims) == (kind, type_name, dims)


def test_vectors_take_the_last_dimension():
    normal, amount = resolved("shade", array(5, 3), number()).parameters[:2]
    assert (normal.binding.kind, normal.binding.dims, normal.binding.inner) == ("view", 1, (3,))
    assert normal.binding.stored == "float"
    assert amount.binding.dims == 0


def test_structs_are_bound_by_field():
    light = resolved("lit", {"color": array(5, 3), "power": number()}, number()).parameters[0].binding
    assert light.kind == "struct"
    assert [(name, child.kind, child.dims) for name, child in light.fields] == [("color", "view", 1), ("power", "value", 0)]


@pytest.mark.parametrize(
    ("given", "type_name"), [(number(), "float"), (number("int"), "int"), (array(5, 3), "vector<float,3>"), (array(5, scalar="int"), "int")]
)
def test_overloads(given: Any, type_name: str):
    assert resolved("over", given).parameters[0].type_name == type_name


def test_generics_take_the_type_of_the_value():
    assert resolved("generic", tensor(5, type_name="double")).parameters[0].type_name == "double"
    assert resolved("generic", array(5, scalar="uint")).return_type_name == "uint"


def test_names_and_defaults():
    found = resolved("poly", x=array(5), a=number(), b=number("int"))
    assert [p.binding.kind for p in found.parameters] == ["value", "value", "view"]
    assert [p.name for p in resolved("with_default", number()).parameters] == ["x"]


def test_whole_tensors_and_generators():
    values = resolved("looked", tensor(8), array(5, scalar="int")).parameters[0].binding
    assert (values.kind, values.rank, values.dims) == ("view", 1, 0)
    cell = resolved("place", grid(4, 5)).parameters[0].binding
    assert (cell.kind, cell.dims) == ("generator", 2)


@pytest.mark.parametrize(
    ("name", "given", "error", "text"),
    [
        ("plain", (), ResolveException, "Parameter 'x' not specified"),
        ("plain", (number(), number()), ResolveException, "Too many arguments: expected 1, got 2"),
        ("plain", (("none", "NoneType", {}),), BoundVariableException, "Unsupported type None"),
        ("lit", ({"colour": number()}, number()), KernelGenException, "struct Light has no field 'colour'"),
    ],
)
def test_refusals_say_why(name: str, given: tuple[Any, ...], error: type, text: str):
    with pytest.raises(error, match=text):
        resolved(name, *given)


def test_only_differentiable_functions_have_backward_calls():
    with pytest.raises(ResolveException, match="not differentiable"):
        resolved("plain", number(), options=Options(bwds=True))
    found = resolved("poly", number(), number(), tensor(5, grads=True), tensor(5, grads=True), options=Options(bwds=True))
    assert [p.io for p in found.parameters] == ["in", "in", "in", "return"]
