"""Gradients of arguments that many invocations share: summed by threads, blocks and groups before they are added."""

from __future__ import annotations

from collections.abc import Mapping

from ...reflection import SlangType
from ..derive.accumulate import Part, byte_offsets, has_half, parts_of, sum_type
from ..derive.sums import own_addition
from ..records import Derivative, Placed, Vectorized
from ..slang_text import indent, slang_name
from ..trampoline import Kernel
from ..trampoline.elements import strided, transfer
from ..trampoline.variant import LINEAR, MAX_PERIOD, PERIODIC, UNIFORM, VariantTraits

MAX_GROUPS = 1024
"""Groups of a GPU kernel that ends in a reduction: each thread strides over the call and each group adds once."""


def reduces(placed: Placed, grad: Derivative, variant: VariantTraits) -> bool:
    """Whether the gradient of a leaf is summed over the invocations before it is added to memory."""
    if not grad.target or grad.forward or placed.binding.rank >= 0:
        return False
    access = UNIFORM if grad.target == "reference" or not placed.map else variant.classes.get(placed.ident, UNIFORM)
    if access not in (UNIFORM, PERIODIC):
        return False
    derivative = placed.binding.type.derivative
    return derivative is not None and parts_of(derivative) is not None


def gradient_class(placed: Placed, grad: Derivative, variant: VariantTraits) -> str:
    """What `explain` says of a leaf: where its gradient comes from, and how what invocations add meets."""
    words = ["read"] if grad.seed else []
    if not grad.target:
        pass
    elif grad.forward:
        words.append("written")
    elif placed.binding.rank >= 0:
        words.append("scattered")
    elif reduces(placed, grad, variant):
        words.append("reduced")
    elif grad.target == "view" and placed.map and variant.classes.get(placed.ident) == LINEAR:
        words.append("direct")
    else:
        words.append("scattered")
    return ", ".join(words)


def group_limit(plan: Vectorized, grads: Mapping[str, Derivative], variant: VariantTraits) -> int:
    """Most groups (CPU: blocks) that a kernel of this variant may be launched with; 0: no limit, as where a thread of a
    GPU has one invocation, which finds the variables of its thread as they begin."""
    if plan.statics and not variant.cpu:
        return 0
    reduced = _reduced(plan, grads, variant)
    if any(_rounds(placed, grads[placed.ident]) for placed in reduced):
        return 1
    return MAX_GROUPS if reduced and not variant.cpu else 0


def sums_in_groups(plan: Vectorized, grads: Mapping[str, Derivative], variant: VariantTraits) -> bool:
    """Whether the groups of a GPU kernel end in a reduction, to which all their threads must come."""
    return not variant.cpu and bool(_reduced(plan, grads, variant))


def _reduced(plan: Vectorized, grads: Mapping[str, Derivative], variant: VariantTraits) -> list[Placed]:
    return [p for p in plan.placed if p.ident in grads and reduces(p, grads[p.ident], variant)]


def _rounds(placed: Placed, grad: Derivative) -> bool:
    """Whether each group's sum is rounded to half precision, as that of a struct is which cannot be added by parts."""
    derivative = placed.binding.type.derivative
    return not derivative.scalar and has_half(derivative) and not _by_parts(placed, grad)


def _by_parts(placed: Placed, grad: Derivative) -> bool:
    """Whether the sum of a struct with halves is added to memory part by part, the halves as float."""
    derivative = placed.binding.type.derivative
    stored = grad.target == "view" and grad.grad_type == derivative.full_name and not placed.binding.inner
    return stored and not derivative.scalar and has_half(derivative) and not own_addition(derivative)


def sum_runs(kernel: Kernel, placed: Placed, grad: Derivative, view: str, derivative: SlangType) -> None:
    """Neighbouring invocations that add to one element (a broadcast last dimension) are summed first."""
    summed = sum_type(derivative)
    kind, at, flushed = slang_name(summed.full_name), f"_at_{view}", f"_total_{view}"
    flush = [f"{kind} {flushed};"]
    clear: list[str] = []
    sums: list[str] = []
    kernel.hoisted += [f"int64_t {at} = 0;", f"bool _open_{view} = false;"]
    for number, part in enumerate(parts_of(summed) or ()):
        name, wide = f"_sum_{view}_{number}", part.widened("double")
        kernel.hoisted.append(f"{wide} {name} = {wide}(0.0);")
        flush.append(f"{flushed}{part.path} = {slang_name(part.type.full_name)}({name});")
        clear.append(f"{name} = {wide}(0.0);")
        sums.append(f"{name} += {wide}(_g_{view}{part.path});")
    transfer(kernel, placed, view, flushed, summed, at, 0, flush, grad.grad_type, load=False, add="summed")
    flush = [f"if (_open_{view})", "{", *indent(flush), "}"]
    kernel.body += [
        f"if (!_open_{view} || _o_{view} != {at})", "{", *indent(flush), f"    {at} = _o_{view};",
        f"    _open_{view} = true;", *indent(clear), "}", *sums,
    ]  # fmt: skip
    kernel.after += flush


def reduce(kernel: Kernel, placed: Placed, grad: Derivative, view: str, derivative: SlangType, value: str) -> None:
    """A broadcast argument: summed by each thread (CPU: block) and group, then added once."""
    summed = sum_type(derivative)
    parts = parts_of(summed)
    assert parts is not None
    kind, total = slang_name(summed.full_name), f"_total_{view}"
    periodic = grad.target != "reference" and bool(placed.map) and kernel.access_of(placed) == PERIODIC
    by_parts = _by_parts(placed, grad)
    lines = [] if by_parts else [f"{kind} {total};"]
    for number, part in enumerate(parts):
        name = f"_sum_{view}" + (f"_{number}" if part.path else "")
        _sum_part(kernel, part, name, value, periodic)
        to = f"let {total}_{number}" if by_parts else f"{total}{part.path}"
        type_name = _sum_name(part) if by_parts else slang_name(part.type.full_name)
        lines.append(f"{to} = {type_name}({_summed(kernel, name, periodic)});")
    add: list[str] = []
    if grad.target == "reference":
        name, stored = ("_spy_add_summed" if summed is not derivative else "_spy_atomic_add"), derivative.full_name
        add.append(f"{name}<{slang_name(stored)}>(_call.{view}, {total});")
    else:
        offset = strided(kernel, view + "_lead", placed.map, "_e") if periodic else "int64_t(0)"
        if by_parts:
            add += _add_parts(kernel, f"{kernel.base_of(view)}.{view}.at({offset})", derivative, total)
        else:
            transfer(kernel, placed, view, total, summed, offset, 0, add, grad.grad_type, load=False, add="summed")
    if periodic and kernel.facts.variant.cpu:
        head = "for (int64_t _residue = 0; _residue < _call._period; _residue++)"
        kernel.after += [head, "{", *indent(_split_residue(kernel) + lines + add), "}"]
    elif kernel.facts.variant.cpu:
        kernel.after += ["{", *indent(lines + add), "}"]
    elif periodic:
        kernel.after += [*lines, "if (_thread < uint(_call._period))", "{", *indent(_split_residue(kernel) + add), "}"]
    else:
        kernel.after += [*lines, "if (_thread == 0)", "{", *indent(add), "}"]


def _add_parts(kernel: Kernel, storage: str, type_: SlangType, total: str) -> list[str]:
    """Atomic additions of the sums `total`_0, ... to the parts of one stored element."""
    lines: list[str] = []
    for number, (part, offset) in enumerate(zip(parts_of(type_) or (), byte_offsets(type_), strict=True)):
        kind = slang_name(part.type.full_name)
        call = "_spy_add_summed" if part.type.scalar == "half" else "_spy_atomic_add"
        lines.append(f"{call}<{kind}>({storage}.part<{kind}>({offset}), {total}_{number});")
    return lines


def _summed(kernel: Kernel, name: str, periodic: bool) -> str:
    size = kernel.facts.variant.group_size
    if periodic:
        whole = f"_spy_period_sum({name}, _thread, {size}, uint(_call._period))"
        return f"{name}[_residue]" if kernel.facts.variant.cpu else whole
    return name if kernel.facts.variant.cpu else f"_spy_group_sum({name}, _thread, {size})"


def _split_residue(kernel: Kernel) -> list[str]:
    """Call indices _e0 ... of the first invocation that adds to the same elements."""
    number = "_group.x"
    if kernel.facts.plan.statics:  # a group for every so many invocations: there may be rows of groups
        number = "(int64_t(_group.x) + int64_t(_group.y) * _call._block)"
    thread = f"({number} * {kernel.facts.variant.group_size} + _thread) % uint(_call._period)"
    lines = [f"int64_t _rest = {'_residue' if kernel.facts.variant.cpu else thread};"]
    for dim in range(kernel.facts.plan.call_rank - 1, 0, -1):
        lines += [f"int64_t _e{dim} = _rest % _call._shape[{dim}];", f"_rest = _rest / _call._shape[{dim}];"]
    return [*lines, "int64_t _e0 = _rest;"]


def _sum_part(kernel: Kernel, part: Part, name: str, value: str, periodic: bool) -> None:
    scalar = "double" if kernel.facts.variant.cpu or part.type.scalar == "double" else "float"
    wide = part.widened(scalar)
    target = name
    if periodic and kernel.facts.variant.cpu:  # the elements change from one invocation to the next: one sum for each
        last = kernel.facts.plan.call_rank - 1
        row = f"int64_t _row_residue = _i % _call._period - _c{last};"
        if row not in kernel.row:
            kernel.row.append(row)
        target = f"{name}[int(_row_residue + _c{last})]"
        kernel.hoisted.append(f"{wide} {name}[{MAX_PERIOD}];")
        kernel.hoisted.append(f"for (int _k = 0; _k < int(_call._period); _k++) {name}[_k] = {wide}({scalar}(0));")
    else:
        kernel.hoisted.append(f"{wide} {name} = {'0' if wide == scalar else f'{wide}({scalar}(0))'};")
    kernel.body.append(f"{target} += {wide}({value}{part.path});")


def _sum_name(part: Part) -> str:
    return part.widened("double" if part.type.scalar == "double" else "float")
