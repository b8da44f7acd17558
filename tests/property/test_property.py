"""Random functions, called with random arguments in every form, against their evaluation in NumPy.

A case is plain data: `run_case(device, Case(...))` with the printed Case repeats a failure.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from functools import cache
from typing import Any

import grammar
import numpy as np
import pytest
from arguments import LAYOUTS, Passer, Slot, draw_input, draw_output, spread, unpack
from drawn import MANY, SEED
from hypothesis import HealthCheck, Phase, given, settings, strategies as st

import slangpy as spy
from slangpy.testing import CudaCodegen, nvrtc_available

pytestmark = [pytest.mark.needs_kernels, pytest.mark.slow, pytest.mark.one]

SIZES = (0, 1, 2, 3, 3, 5, 7, 16, 33)
IN_GATE = MANY == 1
PLANS = 2
"""Ways of passing its arguments, for each function: each is a kernel or several."""


@dataclass(frozen=True)
class Case:
    function: int
    plan: int
    sizes: tuple[int, int, int]
    layout: str
    seed: int


@dataclass(frozen=True)
class Plan:
    """How the arguments of a function are passed; what decides its kernels."""

    rank: int
    slots: tuple[Slot, ...]
    result: Any  # None, "numpy", "tensor" or a Slot

    def all_slots(self) -> list[Slot]:
        return [*self.slots, *([self.result] if isinstance(self.result, Slot) else [])]


def draw_plan(function: grammar.Function, number: int) -> Plan:
    rng = random.Random(f"{SEED}:{function.name}:{number}")
    rank = rng.choice((0, 1, 1, 2, 2, 3))
    slots = []
    for parameter in function.parameters:
        if parameter.io == "in":
            slots.append(draw_input(rng, parameter.type, rank))
        else:
            slots.append(draw_output(rng, parameter.type, rank))
    result: Any = None
    if function.result is not None:
        result = rng.choice((None, None, "numpy", "numpy", "tensor", "slot"))
        if result == "slot":
            result = draw_output(rng, function.result, rank)
    return Plan(rank, tuple(slots), result)


@cache
def functions(count: int) -> list[grammar.Function]:
    return grammar.draw_functions(SEED, count)


@cache
def runnable(device: Any) -> frozenset[str]:
    """Scalar types that the device has."""
    found = set()
    for scalar in set(grammar.SCALARS):
        text = f"{scalar.name} probe({scalar.name} x) {{ return x; }}"
        module = spy.Module.load_from_source(device, f"probe_{scalar.name}", text)
        try:
            module.probe(np.zeros(2, scalar.dtype))
        except RuntimeError as error:
            if scalar.name in ("float", "int", "uint", "bool"):
                raise
            assert "device" in str(error), error  # it says what the device lacks
            continue
        found.add(scalar.name)
    return frozenset(found)


def is_cpu(device: Any) -> bool:
    return device.type is spy.DeviceType.cpu


@cache
def loaded(device: Any) -> tuple[Any, list[grammar.Function]]:
    count = (25 if IN_GATE or not is_cpu(device) else 40) * MANY
    drawn = [f for f in functions(count) if f.scalars() <= runnable(device)]
    module = spy.Module.load_from_source(device, f"drawn_{SEED}", grammar.module_source(drawn))
    return module, drawn


def arguments(passer: Passer, function: grammar.Function, plan: Plan) -> tuple[list[Any], dict[str, Any]]:
    """(argument, values) for each parameter, and what says where the result goes."""
    made = [passer.make(slot, p.type, p.io != "in") for p, slot in zip(function.parameters, plan.slots, strict=True)]
    if isinstance(plan.result, Slot):
        return made, {"_result": passer.make(plan.result, function.result, True)[0]}
    return made, {"_result": plan.result} if plan.result is not None else {}


def run_case(device: Any, case: Case) -> None:
    """One call, compared with NumPy."""
    module, drawn = loaded(device)
    function = drawn[case.function % len(drawn)]
    plan = draw_plan(function, case.plan)
    sizes = case.sizes[: plan.rank]
    if any(slot.has_lists() for slot in plan.all_slots()):
        sizes = tuple(size or 2 for size in sizes)  # a list without elements has no rank
    passer = Passer(device, module, sizes, case.layout, case.seed)
    made, keywords = arguments(passer, function, plan)
    result = plan.result
    leads = [lead for slot in plan.all_slots() for lead in slot.leads(sizes)]
    call = np.broadcast_shapes(*leads) if leads else ()
    shown = f"{case}\n{plan}\nsizes {sizes}, call shape {call}\n{function.source}"
    try:
        got = module[function.name](*[argument for argument, _ in made], **keywords)
    except Exception as error:
        raise AssertionError(f"{shown}\n{type(error).__name__}: {error}") from error
    env = {
        p.name: spread(p.type, values, slot, call)
        for p, slot, (_, values) in zip(function.parameters, plan.slots, made, strict=True)
        if p.io != "out"
    }
    expected = function.evaluate(env, call)
    for p, slot, (argument, _) in zip(function.parameters, plan.slots, made, strict=True):
        if p.io != "in" and 0 not in call:
            compare(passer.read(slot, p.type, argument), expected[p.name], f"{p.name} of\n{shown}")
        elif p.io == "in" and slot.kind == "numpy":
            compare(
                np.asarray(argument).astype(p.type.scalar.dtype),
                made[function.parameters.index(p)][1],
                f"input {shown}",
            )
    if function.result is None:
        assert got is None, shown
        return
    if isinstance(result, Slot):
        got = passer.read(result, function.result, keywords["_result"])
        if 0 in call:
            return
    elif call and result is None:
        assert isinstance(got, spy.Tensor) and tuple(got.shape) == call, shown
    elif result is not None:
        assert isinstance(got, np.ndarray if result == "numpy" else spy.Tensor), shown
    compare(unpack(function.result, got) if not isinstance(got, dict) or not isinstance(result, Slot) else got,
            expected["return"], f"the result of\n{shown}")  # fmt: skip


def compare(got: Any, expected: Any, what: str) -> None:
    if isinstance(expected, dict):
        for name, inner in expected.items():
            compare(got[name], inner, f"field {name} of {what}")
        return
    assert got.dtype == expected.dtype, f"{got.dtype} for {expected.dtype} in {what}"
    np.testing.assert_array_equal(got, expected, err_msg=what)


def cases(device: Any) -> Any:
    _, drawn = loaded(device)
    size = st.sampled_from(SIZES)
    return st.builds(
        Case, st.integers(0, len(drawn) - 1), st.integers(0, PLANS - 1), st.tuples(size, size, size),
        st.sampled_from(LAYOUTS), st.integers(0, 2**32 - 1),
    )  # fmt: skip


def test_calls_equal_numpy(device: spy.Device) -> None:
    count = (160 if IN_GATE else 350 if is_cpu(device) else 250) * MANY
    options = settings(
        max_examples=count, deadline=None, database=None, derandomize=SEED == 1, phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck), print_blob=True,
    )  # fmt: skip

    @options
    @given(cases(device))
    def check(case: Case) -> None:
        run_case(device, case)

    check()


def test_a_wrong_value_is_noticed(device: spy.Device, monkeypatch: pytest.MonkeyPatch) -> None:
    """One component of the expected results is off by one unit of float32."""
    _, drawn = loaded(device)
    number, function = next(((i, f) for i, f in enumerate(drawn) if f.result is grammar.FLOAT), (0, None))
    if function is None:
        pytest.skip("none of the drawn functions returns a number")  # most seeds draw some
    evaluate = grammar.Function.evaluate

    def wrong(self: grammar.Function, env: dict[str, Any], call_shape: tuple[int, ...]) -> dict[str, Any]:
        found = evaluate(self, env, call_shape)
        if self == function:
            found["return"] = np.nextafter(found["return"], np.float32(np.inf), dtype=np.float32)
        return found

    case = Case(number, 0, (2, 3, 2), LAYOUTS[0], 1)
    run_case(device, case)
    monkeypatch.setattr(grammar.Function, "evaluate", wrong)
    with pytest.raises(AssertionError, match="the result of"):
        run_case(device, case)


@pytest.mark.skipif(not nvrtc_available(), reason="NVRTC is not installed")
def test_drawn_functions_compile_for_cuda() -> None:
    count = 12 if IN_GATE else 20 * MANY
    device = spy.Device(type=spy.DeviceType.null, compiler_options={}, enable_hot_reload=False)  # of the arguments
    codegen = CudaCodegen("sm_80")
    source = grammar.module_source(functions(count))
    host = spy.Module.load_from_source(device, "drawn_for_cuda", source)
    module = codegen.load_from_source("drawn_for_cuda", source)
    for function in functions(count):
        plan = draw_plan(function, 0)
        passer = Passer(device, host, (3, 2, 5)[: plan.rank], LAYOUTS[0], 1)
        made, keywords = arguments(passer, function, plan)
        codegen.build(module[function.name], *[argument for argument, _ in made], **keywords)
    device.close()
