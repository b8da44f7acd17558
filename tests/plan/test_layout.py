"""What native code is told of a plan. The layout of the arguments is written by hand: 16 bytes for each field."""

from __future__ import annotations

import marshal
import re
from types import SimpleNamespace
from typing import Any

import pytest

from slangpy.plan.kernels import default_variant, kernel_source
from slangpy.plan.layout import specification
from slangpy.plan.specification import (
    Element,
    GeneratorSpec,
    PackedSpec,
    ReferenceSpec,
    ResultSpec,
    SkipSpec,
    Specification,
    ValueSpec,
    ViewSpec,
)
from slangpy.plan.store import pack_spec, unpack_spec

from .keys import array, grid, module, number, numbers, plan, request, tensor
from .test_emit import fields

STEP = 16


def spec_of(node: Any, *given: Any, mode: str = "auto") -> Specification:
    asked, planned = request(node, *given, mode=mode), plan(node, *given, mode=mode)
    source = kernel_source(asked, planned, node.module._compiled, default_variant(asked, planned))
    names = [re.sub(r"\[\d+\]$", "", field.split()[-1]) for field in fields(source)]
    call = [{"name": name, "offset": i * STEP, "type": f"type of {name}"} for i, name in enumerate(names)]
    parameters = re.findall(r"uniform [\w<>]+ (a\d+)", source)
    entry = SimpleNamespace(
        fields=[
            {"name": "_call", "offset": 0, "type": SimpleNamespace(fields=call)},
            *({"name": name, "offset": 0, "slot": i, "type": None} for i, name in enumerate(parameters)),
        ],
        size=len(names) * STEP,
    )
    layout = SimpleNamespace(entry_point=entry, entry_point_slot=3, globals=None)
    return specification(asked, planned, layout, lambda type_: f"layout of {type_.full_name}")


def test_offsets_are_those_of_the_layout():
    spec = spec_of(module().poly, number(), number("int"), tensor(5))
    assert spec.argument_size == 10 * STEP
    assert (spec.offsets.total, spec.offsets.shape, spec.offsets.period) == (0, 3 * STEP, -1)
    a, b, x = (leaf.kind for leaf in spec.leaves)
    assert a == ValueSpec((4 * STEP, "type of a0"))
    assert b == ValueSpec((5 * STEP, "type of a1"))
    assert x == ViewSpec(((6 * STEP, 7 * STEP, -1, -1, -1), None, None), Element("float", 4))
    assert spec.leaves[2].map == (0,) and spec.leaves[2].classed


@pytest.mark.parametrize(
    ("given", "kind"),
    [(number(), ValueSpec), (array(5), ViewSpec), (numbers(5), PackedSpec), ([number()], ReferenceSpec)],
)
def test_every_kind_is_told(given: Any, kind: type):
    leaf = spec_of(module().plain, given).leaves[0]
    assert (type(leaf.kind), leaf.name, leaf.type) == (kind, "x", "float")


def test_generators():
    assert spec_of(module().place, grid(4, 5)).leaves[0].kind == GeneratorSpec(80, 96, -1, -1, -1, "int")


def test_parts_of_structs_are_leaves():
    leaves = spec_of(module().lit, {"color": array(5, 3), "power": number()}, number()).leaves
    assert [(type(leaf.kind), leaf.name) for leaf in leaves] == [
        (SkipSpec, ""), (ViewSpec, "light.color"), (ValueSpec, "light.power"), (ValueSpec, "x"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("mode", "given", "kind"),
    [("auto", number(), ReferenceSpec), ("auto", array(5), ViewSpec), ("numpy", array(5), ViewSpec)],
)
def test_results(mode: str, given: Any, kind: type):
    result = spec_of(module().plain, given, mode=mode).result
    assert result.leaf is not None and type(result.leaf.kind) is kind
    assert result.element == "layout of float"
    assert result.dtype == ("float32" if mode == "numpy" else None)


def test_backward_calls():
    spec = spec_of(module().poly.bwds, number(), number(), tensor(5, grads=True), tensor(5, grads=True))
    assert spec.result == ResultSpec("none") and not spec.notes.warnings
    x = spec.leaves[2].kind
    assert isinstance(x, ViewSpec)
    assert [view is not None for view in x.views] == [True, False, True]
    assert spec.offsets.period > 0


def test_forward_calls_say_what_carries_gradients():
    spec = spec_of(module().half_known, tensor(5), tensor(5))
    assert [leaf.carries for leaf in spec.leaves] == [False, True]
    assert spec.result.carries


def test_disk_gives_back_the_same_records():
    spec = spec_of(module().poly.bwds, number(), numbers(5), tensor(5, grads=True), tensor(5, grads=True))
    plain = marshal.dumps(pack_spec(spec))
    assert unpack_spec(marshal.loads(plain)) == spec
