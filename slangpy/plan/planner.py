"""Key to plan, pure: each stage takes the record of the one before. What is built of it stands in kernels."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from ..compiler.modules.facts import (
    asks_position,
    has_statics,
    may_loop,
    may_name,
    pack_functions,
    reached_words,
    sees_threads,
    unread_functions,
    writes_view,
)
from ..errors import BoundVariableException, KernelGenException, ResolveException, ShapeError
from .addresses import check_resource_outputs, keepers
from .bind.custom import with_class
from .derive.backward_check import lost_share_warnings
from .derive.forward_check import check_forward, hides_derivatives
from .derive.forward_mode import has_tangent, tangents
from .derive.gradients import derivatives, has_storage, lacks_seed, lost_gradients
from .derive.second_order import second_derivatives
from .device_types import check_narrow_floats, check_pointer_sized
from .emit.groups import tile_shape
from .explain import table
from .records import Argument, Binding, Derivative, Options, Placed, Resolved, Value, Vectorized
from .resolve import resolve
from .resolve.outputs import check_torch_outputs
from .resolve.target import Target, accepted
from .textures import result_format
from .vectorize import check_map_count, vectorize
from .whole_groups import addressed, check_whole_gradients, whole_group


def decode(description: list[Any]) -> tuple[Argument, ...]:
    """The arguments as native code describes them."""
    return tuple(Argument(name, Value.decode(data), i) for i, (name, data) in enumerate(description))


@dataclass(frozen=True)
class Request:
    """A call as its key says it: what decides the plan. `result_class`: with result mode "custom"."""

    module: Any
    function: Any
    label: str
    options: Options
    arguments: tuple[Argument, ...]
    result_mode: str
    result_class: Any = None

    @property
    def call_mode(self) -> str:
        return "bwds" if self.options.bwds else "fwds" if self.options.fwds else "prim"

    @property
    def kernel_label(self) -> str:
        """What profiles show."""
        return self.label if self.call_mode == "prim" else f"{self.label}.{self.call_mode}"

    @property
    def on_cpu(self) -> bool:
        return self.module.device.compile_target.format == "cpp"


@dataclass(frozen=True)
class Planned:
    """What the stages before code generation decided. `result_format`: of a texture result; `keeps`: see ResultSpec."""

    vectorized: Vectorized
    derivatives: dict[str, Derivative]
    result_format: str = ""
    keeps: tuple[int, ...] = ()

    @property
    def resolved(self) -> Resolved:
        return self.vectorized.resolved


def make_plan(request: Request) -> Planned:
    """Runs the stages up to code generation; needs the compiler. Errors name the function and how arguments are bound."""
    target = request.function.target()
    try:
        resolved, sized, shaped = _resolved(request, target)
        vectorized = _vectorized(request, resolved, sized, shaped)
        form = result_format(vectorized, request.module.device) if vectorized.result_mode == "texture" else ""
        keeps = keepers(vectorized, request.module)
        return Planned(vectorized, _derivatives(request, vectorized), form, keeps)
    except (ResolveException, BoundVariableException, ShapeError, KernelGenException, NotImplementedError) as error:
        accepts = accepted(target, request.arguments)
        raise type(error)(f"{request.label}: {error}\n{table(request.arguments, None, accepts=accepts)}") from None


def _resolved(request: Request, target: Target) -> tuple[Resolved, bool, bool]:
    module, options = request.module, request.options
    resolved, sized, shaped = resolve(target, request.arguments, options)
    if options.fwds:
        types = tuple(p.type_name for p in resolved.parameters if p.io != "return" and not p.is_this)
        check_forward(module, resolved.call_name, types)
    check_resource_outputs(target.name, resolved)
    check_narrow_floats(resolved, module)
    check_pointer_sized(resolved, module.device, request.label)
    check_map_count(options, resolved, sum(a.name is None for a in request.arguments))
    return resolved, sized, shaped


def _vectorized(request: Request, resolved: Resolved, sized: bool, shaped: bool) -> Vectorized:
    module, options = request.module, request.options
    strict = bool(module.options.get("strict_broadcasting", False))
    check_torch_outputs(resolved, options)
    plan = vectorize(resolved, options, strict, request.result_mode, sized)
    if plan.result_mode == "custom":
        plan = with_class(plan, request.result_class, request.function.target().context(options))
    limit = min(module.device.info.limits.max_compute_threads_per_group or 1024, 1024)
    plan = _read_views(plan, module)
    tile = tile_shape(options.call_group_shape, plan.call_rank, limit)
    added = [*options.preludes, *(line for p in plan.placed if p.binding.code is not None for line in p.binding.code.lines)]
    asks, sees = (words(module, added) for words in (asks_position, sees_threads))
    asked = request.on_cpu or any(p.binding.rank >= 0 for p in plan.placed)
    loops = asked and may_loop(module, resolved.call_name.rpartition(".")[2])
    statics = has_statics(module, added)
    whole = whole_group(request, plan, limit)
    plan = addressed(plan) if whole else plan
    return replace(
        plan, tile=tile, shape_dependent=shaped, positions=asks, sees_threads=sees, may_loop=loops, statics=statics, whole=whole
    )


def _read_views(plan: Vectorized, module: Any) -> Vectorized:
    """Views that the function only reads are inputs, whatever their type allows."""
    names = [p.name for p in plan.resolved.parameters if p.io != "return" and not p.is_this]

    def only_read(placed: Placed) -> bool:
        path = placed.path.split(".")
        if not (placed.binding.view and placed.writes and path[0] in names) or "[" in placed.path:
            return False
        return not writes_view(module, plan.resolved.call_name, names.index(path[0]), tuple(path[1:]))

    placed = tuple(replace(p, writes=False) if only_read(p) else p for p in plan.placed)
    return replace(plan, placed=placed)


def _derivatives(request: Request, plan: Vectorized) -> dict[str, Derivative]:
    options = request.options
    if options.second:
        return second_derivatives(plan, request.module, options.deterministic)
    if options.bwds:
        grads = derivatives(plan, options.deterministic)
        if plan.whole:
            check_whole_gradients(plan, grads)
        return grads
    return tangents(plan) if options.fwds else {}


def _wants_gradient(value: Value | None) -> bool:
    """Whether a value has memory for a gradient."""
    return value is not None and bool(value.details.get("needs_grad" if value.kind == "diff_pair" else "grad_out"))


_PLAIN = [f"{access}{kind}" for access in ("", "W", "RW") for kind in ("Tensor", "PrimalTensor")]


def _hides_gradient(placed: Any) -> bool:
    """Whether a value with a gradient is bound to a tensor type that has none."""
    return placed.binding.type.full_name.partition("<")[0] in _PLAIN and _wants_gradient(placed.binding.value)


def lacks_storage(request: Request, planned: Planned) -> bool:
    """Whether a derivative is asked for, but no argument has memory that takes part."""
    if request.options.fwds:
        return not has_tangent(planned.derivatives)
    return request.options.bwds and not has_storage(planned.derivatives)


def dropped_outputs(request: Request, planned: Planned) -> tuple[str, ...]:
    """What to tell of outputs that go nowhere: plain values are legal in their place."""
    kinds = {"out": "output", "inout": "inout parameter"}
    return tuple(
        f"{request.label}: {parameter.name} is an {kinds[parameter.io]}, and the {parameter.argument.value.summary()} passed for it "
        "cannot receive it: what the function writes there is dropped; pass a Tensor, a NumPy array or, for one value, a slangpy.ValueRef"
        for parameter in planned.resolved.parameters
        if parameter.io in kinds and parameter.argument is not None and not request.options.bwds
        if not any(placed.writes for placed in planned.vectorized.placed if placed.parameter == parameter.name)
    )


def missing_fields(request: Request, planned: Planned) -> list[str]:
    """What to tell of dicts that lack some fields of their struct, which are zero then. `{}` asks for that."""
    texts = []
    for parameter in planned.resolved.parameters:
        if parameter.io not in ("in", "inout"):
            continue
        for path, names in _unnamed_fields(parameter.name, parameter.binding):
            texts.append(
                f"{request.label}: {path} is a dict without {', '.join(names)}: the function reads zeros there; add what is "
                "missing, as 0 where that is meant"
            )
    return texts


def _unnamed_fields(path: str, binding: Binding) -> list[tuple[str, list[str]]]:
    """Each dict in a binding that names some of its struct's fields and not others, with those."""
    found: list[tuple[str, list[str]]] = []
    given = dict(binding.fields)
    if binding.kind == "struct" and given and binding.value is not None and binding.value.kind == "dict":
        values = {n: f for n, f in getattr(binding.type, "fields", {}).items() if f.type.kind not in ("resource", "sampler_state")}
        lacking = [name for name in values if name not in given]
        if lacking and not binding.lifted and binding.type.kind == "struct":
            found.append((path, lacking))
    for name, child in binding.fields:
        found += _unnamed_fields(f"{path}{'' if name.startswith('[') else '.'}{name}", child)
    return found


def silent_prints(request: Request, planned: Planned) -> list[str]:
    """What to tell of functions that print on a device that shows nothing of it. CUDA has a printf of its own."""
    module = request.module
    if getattr(getattr(module.device, "desc", None), "enable_print", True):
        return []
    if not may_name(module, "print", "printf"):
        return []
    ours = may_name(module, "slangpy_print", "sgl")
    names = [n for n in ("print", "printf") if ours or (n == "printf" and module.device.compile_target.format != "cuda")]
    used = reached_words(module, planned.resolved.call_name.rpartition(".")[2].partition("<")[0])
    return [
        f"{request.label}: {name}() shows nothing on this device; create it with enable_print=True, or take the call out"
        for name in names
        if name in used and name not in module._compiled.declared_names
    ]


def _without_storage(request: Request, planned: Planned, call: str) -> list[str]:
    """What to tell of a call none of whose arguments takes a gradient, or has a tangent."""
    missing = "has a tangent" if request.options.fwds else "has storage for a gradient"
    return [
        f"{call}: no gradient reaches {placed.path}: a {placed.binding.type.full_name} has no place for one; declare it "
        f"I{placed.binding.type.full_name.replace('Primal', '')}"
        for placed in planned.vectorized.placed
        if _hides_gradient(placed)
    ] or [f"{call}: no argument {missing}; attach one with with_grads() or a DiffPair"]


def warnings_of(request: Request, planned: Planned) -> tuple[str, ...]:
    """What to tell of outputs and derivatives that are lost or zero: at each process's first call with the plan."""
    texts, call = [*dropped_outputs(request, planned), *missing_fields(request, planned)], f"{request.label}.{request.call_mode}"
    texts += silent_prints(request, planned)
    if lacks_storage(request, planned):
        texts += _without_storage(request, planned, call)
    if request.options.fwds and hides_derivatives(request.module):
        texts.append(
            f"{call}: a module that it uses is there in binary form only, so nobody knows whether Slang takes tangents in it for "
            "zero, as it does after functions that have a custom backward derivative and no forward one"
        )
    if request.options.bwds or request.options.fwds:
        texts += [
            f"{call}: '{name}' (line {line}) takes a pack of parameters, `expand each T`, and Slang takes derivatives of what is in it "
            "for zero; write a function for each number of parameters, or pass an array"
            for name, line in pack_functions(request.module, planned.resolved.call_name)
        ]
    if request.options.bwds:
        texts += [
            f"{call}: no gradient reaches {placed.path}, because struct {name} is not differentiable; declare it "
            f"`struct {name} : IDifferentiable`"
            for placed, name in lost_gradients(planned.vectorized, request.module)
            if _wants_gradient(placed.binding.value)
        ]
        if lacks_seed(planned.vectorized, planned.derivatives):
            texts.append(
                f"{call}: _result has no gradient to read, so all gradients are zero; attach one with with_grads() or "
                "pass a DiffPair"
            )
        texts += [
            f"{call}: '{name}' (line {line}) holds what is not understood, a macro or `#if` that cuts through statements perhaps, so "
            "what Slang differentiates wrongly is not mended in it. Write it out, or set SLANGPY_CHECK_GRADIENTS=1 to check the "
            "numbers; see docs/compiler-faults.md"
            for name, line in unread_functions(request.module, planned.resolved.call_name)
        ]
        texts += lost_share_warnings(request.module, planned.resolved.call_name, request.label)
    return tuple(texts)


__all__ = ["Planned", "Request", "decode", "lacks_storage", "make_plan", "warnings_of"]
