"""Every kind of element from views of every stride, above all where calls have dimensions of size 1 or 0.


A failure shows the arguments of `run_case` that repeat it. All numbers are small integers, so that results are exact.
"""

from __future__ import annotations

import importlib.util
import itertools
import random
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest
from drawn import MANY, SEED
from strided import Memory, draw_layout
from tiers import gate

import slangpy as spy

pytestmark = [pytest.mark.needs_kernels, pytest.mark.slow, pytest.mark.one]

CASES = 10
"""Calls for each kind of element, kind of call, and way to pass the arguments."""
PLANS = MANY
"""Ways to pass the arguments, each with its kernels."""
HAS_TORCH = importlib.util.find_spec("torch") is not None
SIZES = (0, 1, 1, 1, 1, 2, 3, 5)

BLOCKS = {
    "float": (),
    "float3": (3,),
    "float1": (1,),
    "float2x3": (2, 3),
    "array": (3,),
    "vectors": (2, 2),
    "single": (1,),
}
"""Kinds of element, with the sizes that each consumes."""
FIELDS = {**{kind: {"": shape} for kind, shape in BLOCKS.items()}, "struct": {"a": (2,), "b": (2, 3), "c": ()}}
"""The containers that an element is made of."""

SOURCE = """
typealias array = float[3];
typealias vectors = float2[2];
typealias single = float[1];
struct Mixed : IDifferentiable { float2 a; float3 b[2]; float c; }
"""
SIMPLE = """
[Differentiable] $T mul_$N($T x, $T w) { return x * w; }
[Differentiable] void out_$N($T x, $T w, out $T y, inout $T z) { y = x * w; z = z + x; }
"""
ARRAYS = """
[Differentiable] $T mul_$N($T x, $T w)
{
    $T y;
    [ForceUnroll] for (int k = 0; k < $K; k++) y[k] = x[k] * w[k];
    return y;
}
[Differentiable] void out_$N($T x, $T w, out $T y, inout $T z)
{
    [ForceUnroll] for (int k = 0; k < $K; k++) { y[k] = x[k] * w[k]; z[k] = z[k] + x[k]; }
}
"""
STRUCT = """
[Differentiable] Mixed mul_struct(Mixed x, Mixed w)
{
    Mixed y;
    y.a = x.a * w.a;
    y.b = { x.b[0] * w.b[0], x.b[1] * w.b[1] };
    y.c = x.c * w.c;
    return y;
}
[Differentiable] void out_struct(Mixed x, Mixed w, out Mixed y, inout Mixed z)
{
    y = mul_struct(x, w);
    z.a = z.a + x.a;
    z.b = { z.b[0] + x.b[0], z.b[1] + x.b[1] };
    z.c = z.c + x.c;
}
"""


def source() -> str:
    text = SOURCE
    for kind in BLOCKS:
        is_array = kind in ("array", "vectors", "single")
        name = "vector<float, 1>" if kind == "float1" else kind
        count = str(BLOCKS[kind][0]) if is_array else ""
        text += (ARRAYS if is_array else SIMPLE).replace("$T", name).replace("$N", kind).replace("$K", count)
    return text + STRUCT


@cache
def module_of(device: Any) -> Any:
    return spy.Module.load_from_source(device, "strides_property", source())


@dataclass(frozen=True)
class Plan:
    """What decides the kernels of a call."""

    function: str  # "mul" or "out"
    rank: int
    x_rank: int
    w_rank: int
    family: str  # of containers: "torch", or "mixed"
    result: str  # "given", "numpy", "tensor"


def draw_plan(kind: str, mode: str, number: int) -> Plan:
    rng = random.Random(f"{SEED}:{kind}:{mode}:{number}")
    rank = rng.choice((1, 1, 2, 3))
    families = ["mixed", "mixed", "torch"] if HAS_TORCH and kind != "struct" else ["mixed"]
    family = rng.choice(families)
    functions = ("mul",) if family == "torch" and mode != "call" else ("mul", "out")
    result = rng.choice(("given", "given", "numpy", "tensor") if mode == "call" and kind in BLOCKS else ("given",))
    return Plan(
        rng.choice(functions), rank, rng.choice((rank, rank, rank - 1)), rng.choice((rank, 0, rank - 1)), family, result
    )


class Caller:
    """Draws the arguments of one call and knows what they should hold after it."""

    def __init__(self, device: Any, kind: str, mode: str, plan: Plan, seed: str) -> None:
        self.device, self.kind, self.mode, self.plan = device, kind, mode, plan
        self.rng = random.Random(seed)
        self.numbers = np.random.default_rng(self.rng.getrandbits(32))
        self.kinds = random.Random(f"{kind}:{mode}:{plan}")  # of containers: they decide the kernel
        small = self.rng.random() < 0.5
        self.sizes = tuple(1 if small else self.rng.choice(SIZES) for _ in range(plan.rank))
        self.memories: list[tuple[str, Memory]] = []

    def lead(self, rank: int) -> tuple[int, ...]:
        own = self.sizes[len(self.sizes) - rank :]
        return tuple(1 if self.rng.random() < 0.2 else size for size in own)

    def memory(self, name: str, lead: tuple[int, ...], field: str, kind: str, read_only: bool) -> Memory:
        shape = (*lead, *FIELDS[self.kind][field])
        signs = [1, 1] if kind == "torch" else [1, 1, -1]
        layout = draw_layout(self.rng, shape, signs + [0] * read_only)
        content = self.numbers.integers(-3, 4, layout.total).astype(np.float32)
        memory = Memory(self.device, kind, layout, content)
        self.memories.append((f"{name}.{field}", memory))
        return memory

    def container(self) -> str:
        if self.plan.family == "torch":
            return "torch"
        return "tensor" if self.mode != "call" else self.kinds.choice(("numpy", "tensor"))

    def value(self, name: str, lead: tuple[int, ...], reads: bool, grads: str = "") -> dict[str, dict[str, Any]]:
        """For each field its memories: the primal, and those of gradients read ("r") and written ("w")."""
        found = {}
        for field in FIELDS[self.kind]:
            kind = self.container()
            parts = {"": self.memory(name, lead, field, kind, reads)}
            for use in grads:
                parts[use] = self.memory(f"{name} gradient {use}", lead, field, kind, use == "r")
            found[field] = parts
        return found

    def argument(self, value: dict[str, dict[str, Any]]) -> Any:
        made = {field: self._field(parts) for field, parts in value.items()}
        return made[""] if "" in made else made

    def _field(self, parts: dict[str, Memory]) -> Any:
        primal = parts[""].argument
        if len(parts) == 1:
            return primal
        if self.plan.family == "torch":
            return spy.diff_pair(primal, parts["r" if "r" in parts else "w"].argument)
        grads = [parts[use].argument if use in parts else None for use in "rw"]
        return primal.with_grads(*grads)

    def check(self) -> None:
        for name, memory in self.memories:
            memory.check(name)


def spread(array: np.ndarray, lead: int, call: tuple[int, ...]) -> np.ndarray:
    """The values that each point of the call sees."""
    inner = array.shape[lead:]
    return np.broadcast_to(array.reshape((*(1,) * (len(call) - lead), *array.shape)), (*call, *inner))


def gathered(array: np.ndarray, shape: tuple[int, ...], call: int) -> np.ndarray:
    """The sum of what all points of the call add to an argument."""
    lead = len(shape) - (array.ndim - call)
    array = array.sum(axis=tuple(range(call - lead)))
    ones = tuple(d for d in range(lead) if shape[d] == 1)
    return array.sum(axis=ones, keepdims=True)


def run_case(device: Any, kind: str, mode: str, number: int, case: int) -> None:
    plan = draw_plan(kind, mode, number)
    caller = Caller(device, kind, mode, plan, f"{SEED}:{kind}:{mode}:{number}:{case}")
    uses = {"call": ("", "", ""), "bwds": ("w", "r", "rw"), "fwds": ("r", "w", "rw")}[mode]
    leads = caller.lead(plan.x_rank), caller.lead(plan.w_rank)
    call = caller.sizes if plan.function == "out" or plan.result == "given" else np.broadcast_shapes(*leads)
    x, w = (caller.value(name, lead, True, uses[0]) for name, lead in zip("xw", leads, strict=True))
    outputs = {"y": caller.value("y", call, False, uses[1])} if plan.function == "out" or plan.result == "given" else {}
    if plan.function == "out":
        outputs["z"] = caller.value("z", call, False, uses[2])
    function = getattr(module_of(device), f"{plan.function}_{kind}")
    function = getattr(function, mode) if mode != "call" else function
    values = [caller.argument(value) for value in (x, w)]
    if plan.function == "out":
        result = function(*values, *(caller.argument(value) for value in outputs.values()))
    else:
        result = function(*values, _result=caller.argument(outputs["y"]) if outputs else plan.result)
    for field in FIELDS[kind]:
        fields = {name: value[field] for name, value in (("x", x), ("w", w), *outputs.items())}
        made = expect(mode, fields, call, (plan.x_rank, plan.w_rank))
        if not outputs:
            result = result.to_numpy() if isinstance(result, spy.Tensor) else result
            result = result.numpy() if not isinstance(result, np.ndarray) else result
            np.testing.assert_array_equal(result, made)
    caller.check()


def expect(
    mode: str, fields: dict[str, dict[str, Memory]], call: tuple[int, ...], ranks: tuple[int, int]
) -> np.ndarray:
    """Writes what should be there into the expected memory of one field of all arguments; gives the product."""

    def seen(name: str, use: str = "") -> np.ndarray:
        values = fields[name][use].values
        return spread(values, {"x": ranks[0], "w": ranks[1]}.get(name, len(call)), call)

    product = seen("x") * seen("w")
    if mode == "bwds":
        seed = seen("y", "r")
        grads = {"x": seed * seen("w"), "w": seed * seen("x")}
        if "z" in fields:
            grads["x"] = grads["x"] + seen("z", "r")
            fields["z"]["w"].values[...] += seen("z", "r")
        for name, grad in grads.items():
            target = fields[name]["w"].values
            target += gathered(grad, target.shape, len(call))
        return product
    if mode == "fwds":
        fields["y"]["w"].values[...] = seen("x", "r") * seen("w") + seen("x") * seen("w", "r")
        if "z" in fields:
            fields["z"]["w"].values[...] = seen("z", "r") + seen("x", "r")
    if "y" in fields:
        fields["y"][""].values[...] = product
    if "z" in fields:
        fields["z"][""].values[...] += seen("x")
    return product


def in_gate(case: tuple[str, str]) -> bool:
    """All kinds of element forward and backward but those of one number, which are drawn as "float" is; tangents of two."""
    kind, mode = case
    return kind in ("float", "struct") or (mode != "fwds" and kind not in ("float1", "single"))


@pytest.mark.parametrize(("kind", "mode"), gate(itertools.product([*BLOCKS, "struct"], ["call", "bwds", "fwds"]), in_gate))
def test_strides(device: Any, kind: str, mode: str) -> None:
    for case in range(CASES):
        number = case % PLANS
        try:
            run_case(device, kind, mode, number, case)
        except Exception as error:
            shown = f"run_case(device, {kind!r}, {mode!r}, {number}, {case}): {draw_plan(kind, mode, number)}"
            raise AssertionError(f"{shown}\n{error}") from error
