"""Keys written by hand: what native code would say of arguments, and calls planned from that without any device."""

from __future__ import annotations

from functools import cache
from typing import Any

from golden.code_only import CodeOnly  # tests/golden

import slangpy as spy
from slangpy.plan.planner import Planned, Request, make_plan
from slangpy.plan.records import Argument, Value
from slangpy.run.plans import request_of

SOURCE = """
import slangpy;
struct Light { float3 color; float power; }
interface IShape { float area(); }
[Differentiable] float poly(float a, float b, float x) { return a * x * x + b * x; }
[Differentiable] float3 shade(float3 normal, float amount) { return normal * amount; }
[Differentiable] void split(float x, out float low, inout float high) { low = x * 0.5; high = high + x; }
[Differentiable] float half_known(no_diff float a, float x) { return a * x; }
[Differentiable] float gather(ITensor<float, 1> values, int index) { return values[index] * 2.0; }
float plain(float x) { return x; }
float lit(Light light, float x) { return light.power * x; }
float over(float x) { return x; }
float over(float3 v) { return v.x; }
float over(int n) { return n; }
T generic<T : __BuiltinArithmeticType>(T x) { return x + x; }
int place(int2 cell) { return cell.x; }
float looked(Tensor<float, 1> values, int i) { return values[i]; }
float shaped(IShape shape) { return shape.area(); }
float buffered(StructuredBuffer<float> values, int i) { return values[i]; }
float with_default(float x, float scale = 2) { return x * scale; }
"""


@cache
def module(target: str = "spirv") -> spy.Module:
    return spy.Module.load_from_source(CodeOnly(target), f"plan_{target}", SOURCE)


def number(kind: str = "float") -> tuple[str, str, dict[str, Any]]:
    return kind, kind, {"scalar": kind}


def array(*shape: int, scalar: str = "float", writable: bool = True) -> tuple[str, str, dict[str, Any]]:
    return "array", "numpy.ndarray", {"scalar": scalar, "shape": shape, "writable": writable}


def tensor(*shape: int, type_name: str = "float", grads: bool = False) -> tuple[str, str, dict[str, Any]]:
    details = {
        "dtype": module().layout.require_type_by_name(type_name), "type_name": type_name, "shape": shape,
        "writable": True, "grad_in": grads, "grad_out": grads, "shared_grad": grads,
    }  # fmt: skip
    return "tensor", "Tensor", {**details, **({"grad_in_type": type_name, "grad_out_type": type_name} if grads else {})}


def numbers(*shape: int) -> tuple[str, str, dict[str, Any]]:
    return "list", "list", {"scalar": "float", "shape": shape, "rows": 0, "cols": 0}


def grid(*shape: int) -> tuple[str, str, dict[str, Any]]:
    return "generator", "GridArg", {"generator": "grid", "dims": len(shape), "shape": shape}


class Leaves:
    """Numbers leaves in the order of a call, as the walk over values does."""

    def __init__(self) -> None:
        self._next = 0

    def value(self, given: Any) -> Value:
        leaf = self._next
        if isinstance(given, dict):
            self._next += 1
            return Value("dict", "dict", {}, leaf, tuple((name, self.value(child)) for name, child in given.items()))
        if isinstance(given, list):  # a reference to what is in it
            return Value("value_ref", "ValueRef", {}, leaf, (("value", self.value(given[0])),))
        kind, name, details = given
        self._next += 1
        return Value(kind, name.rsplit(".", 1)[-1], details, leaf)


def arguments(*given: Any, **named: Any) -> tuple[Argument, ...]:
    leaves, found = Leaves(), []
    for name, value in [*((None, v) for v in given), *named.items()]:
        found.append(Argument(name, leaves.value(value), len(found)))
    return tuple(found)


def request(node: Any, *given: Any, mode: str = "auto", **named: Any) -> Request:
    return request_of(node, arguments(*given, **named), mode)


def plan(node: Any, *given: Any, mode: str = "auto", **named: Any) -> Planned:
    """All stages before code generation."""
    return make_plan(request(node, *given, mode=mode, **named))
