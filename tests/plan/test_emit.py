"""The text of kernels, from keys written by hand; whole kernels are kept in tests/golden."""

from __future__ import annotations

from typing import Any

import pytest

from slangpy.plan.kernels import default_variant, kernel_source

from .keys import array, grid, module, number, plan, request, tensor


def text(node: Any, *given: Any, key: int | None = None, mode: str = "auto") -> str:
    asked, planned = request(node, *given, mode=mode), plan(node, *given, mode=mode)
    found = default_variant(asked, planned) if key is None else key
    return kernel_source(asked, planned, node.module._compiled, found)


def fields(source: str) -> list[str]:
    """The declarations of the call structure."""
    begin = source.index("struct _spy_Call")
    return [line.strip(" ;") for line in source[begin : source.index("\n}", begin)].splitlines()[2:]]


def test_fields_of_the_call():
    assert fields(text(module().poly, number(), number("int"), tensor(5))) == [
        "int64_t _total", "int64_t _block", "int64_t _flags", "int64_t _shape[1]",
        "float a0", "float a1", "_spy_Storage<float> a2", "int a2_lead[1]", "_spy_Storage<_spy_R> _out", "int _out_lead[1]",
    ]  # fmt: skip


def test_equal_keys_have_equal_kernels():
    sizes = [text(module().poly, number(), number(), array(n), key=0) for n in (4, 4000000)]
    assert sizes[0] == sizes[1]
    assert text(module().poly, number(), number(), array(4), key=0) == sizes[0]


@pytest.mark.parametrize(("target", "loop"), [("cpp", "for ("), ("spirv", "SV_GroupThreadID")])
def test_targets_have_their_loops(target: str, loop: str):
    assert loop in text(module(target).poly, number(), number(), array(5))


def test_variants():
    call = module().poly, number(), number(), tensor(5)
    assert "_spy_main" in text(*call, key=0)
    assert "cast<float4>" in text(*call)  # contiguous: 16-byte accesses
    assert "cast<float4>" not in text(*call, key=0)


def test_generators_are_computed():
    source = text(module().place, grid(4, 5))
    assert "int64_t a0_offset[2]" in fields(source) and "int64_t a0_stride[2]" in fields(source)


def test_backward_calls_differentiate_the_function():
    source = text(module().poly.bwds, number(), number(), tensor(5, grads=True), tensor(5, grads=True))
    assert "bwd_diff(" in source and "_spy_Storage<float> a2_go" in fields(source)
    assert "no_diff float _p_a" in source and "no_diff float _p_x" not in source


def test_forward_mode_differentiates_the_function():
    assert "fwd_diff(" in text(module().poly.fwds, number(), number(), tensor(5, grads=True))


def test_preludes_and_constants_stand_first():
    source = text(module().plain.prelude("// mine"), number())
    assert source.index("// mine") < source.index("struct _spy_Call")
