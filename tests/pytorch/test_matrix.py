"""Calls against the same formula in torch: layouts, scalar types, forms of output, orders of calls, backward passes."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from tiers import gate  # noqa: E402
from torch_support import DTYPES, check, polynomial, template_of  # noqa: E402

import slangpy as spy  # noqa: E402

# leaf shape, and the view of it that a call is given
LAYOUTS = {
    "contiguous": ((3, 4), lambda t: t),
    "transposed": ((4, 3), lambda t: t.T),
    "sliced": ((5, 6), lambda t: t[1:4, 2:]),
    "step 2": ((6, 8), lambda t: t[::2, ::2]),
    "expanded": ((1, 4), lambda t: t.expand(3, 4)),
    "0-d": ((), lambda t: t),
    "size 0": ((0, 4), lambda t: t),
    "size 1": ((1, 1), lambda t: t),
}
FORMS = ("return", "result", "out", "inout", "whole")
GRADS = {"a": (True, False), "x": (False, True), "both": (True, True), "neither": (False, False)}
BACKWARD = ("one", "retained twice", "two graphs")


def run_slang(module: Any, form: str, a: Any, x: Any) -> Any:
    if form == "return":
        return module.poly(a, 8, -1, x)
    if form == "inout":
        v = x * 1 if x.is_contiguous() else (x.T * 1).T if x.T.is_contiguous() else x + 0
        module.poly_inout(a, 8, -1, v)
        return v
    y = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if form == "result":
        assert module.poly(a, 8, -1, x, _result=y) is y
    elif form == "out":
        assert module.poly_out(a, 8, -1, x, y) is None
    else:
        module.poly_whole(spy.grid(tuple(x.shape)), a, 8, -1, x, y)
    return y


def leaves(layout: str, dtype: Any, where: str, grads: tuple[bool, bool]) -> tuple[Any, Any]:
    shape, _ = LAYOUTS[layout]
    generator = torch.Generator().manual_seed(1)
    x = (torch.rand(shape, generator=generator, dtype=torch.float64) + 0.5).to(where, dtype)
    a = torch.tensor(1.5, dtype=dtype, device=where)
    if layout != "0-d":
        a = a.reshape(1)
    return a.requires_grad_(grads[0]), x.requires_grad_(grads[1])


def gradients(output: Any, passes: str, inputs: list[Any]) -> list[Any]:
    seed = torch.linspace(0.5, 1, max(output.numel(), 1), dtype=output.dtype, device=output.device)
    seed = seed[: output.numel()].reshape(output.shape)
    wanted = [t for t in inputs if t.requires_grad]
    if passes == "retained twice":
        torch.autograd.grad(output, wanted, seed, retain_graph=True)
    return list(torch.autograd.grad(output, wanted, seed))


def one_case(
    module: Any, where: str, layout: str, dtype: Any, form: str, grads: tuple[bool, bool], passes: str
) -> None:
    a, x = leaves(layout, dtype, where, grads)
    view = LAYOUTS[layout][1]
    output = run_slang(module, form, a, view(x))
    expected = polynomial(a, view(x))
    check(output.detach(), expected.detach())
    assert output.requires_grad == any(grads)
    if not any(grads):
        return
    if passes == "two graphs":
        other = run_slang(module, form, a, view(x))
        for actual, wanted in zip(
            gradients(other, passes, [a, x]), gradients(polynomial(a, view(x)), passes, [a, x]), strict=True
        ):
            check(actual, wanted)
    for actual, wanted in zip(gradients(output, passes, [a, x]), gradients(expected, passes, [a, x]), strict=True):
        check(actual, wanted)


def in_gate(case: tuple[str, str]) -> bool:
    """All layouts of what is returned; of the other forms, those that other kernels serve than contiguous ones."""
    layout, form = case
    return form == "return" or layout in ("contiguous", "transposed", "expanded", "0-d")


@pytest.mark.parametrize(("layout", "form"), gate(itertools.product(LAYOUTS, FORMS), in_gate))
def test_float(where: str, layout: str, form: str) -> None:
    if form == "whole" and layout == "0-d":
        pytest.skip("the whole tensor has two dimensions")
    module = template_of(where, "float")
    for grads, passes in itertools.product(GRADS.values(), BACKWARD):
        for order in ((grads, (False, False)), ((False, False), grads)):
            for each in order:
                one_case(module, where, layout, torch.float32, form, each, passes)


IN_GATE = {"half": ("return", "inout", "whole"), "double": ("result", "out")}


@pytest.mark.parametrize(
    ("scalar", "layout", "form"),
    gate(
        itertools.product(("half", "double"), LAYOUTS, FORMS),
        lambda case: case[2] in IN_GATE[case[0]] and case[1] in ("contiguous", "transposed", "expanded"),
    ),
)
def test_other_scalars(where: str, scalar: str, layout: str, form: str) -> None:
    if form == "whole" and layout == "0-d":
        pytest.skip("the whole tensor has two dimensions")
    module = template_of(where, scalar)
    one_case(module, where, layout, DTYPES[scalar], form, (False, False), "one")
    one_case(module, where, layout, DTYPES[scalar], form, (True, True), "retained twice")
    one_case(module, where, layout, DTYPES[scalar], form, (False, True), "two graphs")


@pytest.mark.parametrize("layout", gate(LAYOUTS, lambda layout: layout in ("contiguous", "transposed", "0-d", "size 0")))
def test_bfloat16(where: str, layout: str) -> None:
    """Read as float with convert="safe"; gradients are bfloat16, rounded once."""
    function = template_of(where, "float").poly.convert("safe")
    view = LAYOUTS[layout][1]
    for grads, passes in itertools.product(GRADS.values(), BACKWARD):
        a, x = leaves(layout, torch.bfloat16, where, grads)
        output = function(a, 8, -1, view(x))
        expected = polynomial(a.float(), view(x).float())
        check(output.detach(), expected.detach())
        assert output.requires_grad == any(grads)
        if any(grads):
            wanted = [t.float().detach().requires_grad_(t.requires_grad) for t in (a, x)]
            reference = gradients(polynomial(wanted[0], view(wanted[1])), passes, wanted)
            for actual, exact in zip(gradients(output, passes, [a, x]), reference, strict=True):
                check(actual, exact.to(torch.bfloat16))


@pytest.mark.parametrize("form", ("result", "out", "inout"))
def test_bfloat16_written(where: str, form: str) -> None:
    """Stored with convert="safe", rounded once, in the graph as all that is written."""
    module = template_of(where, "float", "safe")
    for layout, grads in itertools.product(("contiguous", "transposed", "0-d", "size 0"), GRADS.values()):
        one_case(module, where, layout, torch.bfloat16, form, grads, "retained twice")


def test_eight_bits_are_not_written(where: str) -> None:
    module = template_of(where, "float", "safe")
    y = torch.zeros(3, dtype=torch.float8_e5m2, device=where)
    with pytest.raises(spy.ResolveException, match="read-only: the call works on a copy.*floats of 8 bits.*pass a float32 tensor"):
        module.poly(1, 8, -1, torch.ones(3, device=where), _result=y)


@pytest.mark.parametrize("scalars", gate([(["half", "float"],), (list(DTYPES),)], lambda case: len(case[0]) == 2), ids=["two", "all"])
def test_interleaved(where: str, scalars: list[str]) -> None:
    """200 calls in random order of what requires grad, under which mode, in which dtype and layout."""
    import random

    source = random.Random(3)
    for _ in range(200):
        scalar = source.choice(scalars)
        grads = source.choice(list(GRADS.values()))
        layout = source.choice(["contiguous", "transposed"])
        form = source.choice(FORMS)
        module = template_of(where, scalar)
        if source.random() < 0.3:
            a, x = leaves(layout, DTYPES[scalar], where, grads)
            with source.choice((torch.no_grad, torch.inference_mode))():
                output = run_slang(module, form, a, LAYOUTS[layout][1](x))
            assert not output.requires_grad and output.grad_fn is None
        else:
            one_case(module, where, layout, DTYPES[scalar], form, grads, source.choice(BACKWARD))
