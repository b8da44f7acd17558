"""Backward calls: Slang's bwd_diff around the call, seeds read before, gradients added after."""

from __future__ import annotations

from ..derive.accumulate import parts_of
from ..derive.gradients import NONE
from ..kinds.custom import custom_context
from ..records import Derivative, Parameter, Placed
from ..slang_text import indent, slang_name
from ..trampoline import Kernel
from ..trampoline.elements import offset_of, transfer
from ..trampoline.variant import LINEAR
from .forward import argument_value, call_expression, named_type
from .groups import within
from .sums import reduce, reduces, sum_runs


def emit_backward(kernel: Kernel) -> list[str]:
    """Fills the kernel's body around bwd_diff; returns the differentiable wrapper of the user's function."""
    resolved = kernel.facts.plan.resolved
    signature: list[str] = []
    before: list[str] = []
    arguments: list[str] = []
    for parameter in resolved.parameters:
        if parameter.io != "return":
            arguments += _backward_parameter(kernel, parameter, signature, before)
    call = call_expression(kernel, [f"_p_{p.name}" for p in resolved.parameters if p.io != "return"])
    result = next((p for p in resolved.parameters if p.io == "return"), None)
    kind = "void"
    statement = f"{call};"
    if result is not None and result.type.differentiable:
        kind, statement = slang_name(resolved.return_type_name), f"return {call};"
        arguments.append(seed_of(kernel, result))
    elif resolved.return_type_name != "void":
        statement = f"let _unused = {call};"
    kernel.body.append(f"bwd_diff(_spy_function)({', '.join(arguments)});")
    kernel.called = len(kernel.body)
    for parameter in resolved.parameters:
        if parameter.io in ("in", "inout") and wants_gradient(kernel, parameter):
            accumulate(kernel, parameter)
    return [
        "[Differentiable]", f"{kind} _spy_function({', '.join(signature)})", "{", *indent(before),
        f"    {statement}", "}",
    ]  # fmt: skip


def wants_gradient(kernel: Kernel, parameter: Parameter) -> bool:
    """Whether a parameter is differentiated as a value. Inputs that nobody keeps a gradient of are constants."""
    leaves = kernel.facts.leaves.get(parameter.name, [])
    if parameter.no_diff or not parameter.binding.type.differentiable or _is_tensor(kernel, parameter):
        return False
    values = [kernel.facts.grads.get(p.ident, NONE) for p in leaves if p.binding.rank < 0]
    return parameter.io != "in" or any(grad.target for grad in values)


def _is_tensor(kernel: Kernel, parameter: Parameter) -> bool:
    return parameter.binding.rank >= 0


def _backward_parameter(kernel: Kernel, parameter: Parameter, signature: list[str], before: list[str]) -> list[str]:
    """Adds a parameter to the wrapper; gives what bwd_diff is passed for it (nothing: a local of the wrapper)."""
    name, kind = f"_p_{parameter.name}", slang_name(parameter.binding.type_name)
    leaves = kernel.facts.leaves.get(parameter.name, [])
    if leaves and kernel.facts.grads.get(leaves[0].ident, NONE).by_load:
        return _load_inside(kernel, leaves[0], name, signature, before)
    if not wants_gradient(kernel, parameter):
        if parameter.io == "out" and not _is_tensor(kernel, parameter):
            before.append(f"{kind} {name};")
            return []
        prefix = "no_diff " if parameter.binding.type.differentiable else ""
        if parameter.io == "inout" and not _is_tensor(kernel, parameter):
            signature.append(f"{prefix}{kind} {name}_in")
            before.append(f"{kind} {name} = {name}_in;")
        else:
            signature.append(f"{prefix}{kind} {name}")
        return [argument_value(kernel, parameter)]
    signature.append({"in": "", "out": "out ", "inout": "inout "}[parameter.io] + f"{kind} {name}")
    if parameter.io == "out":
        return [seed_of(kernel, parameter)]
    primal, pair = f"_x_{parameter.name}", f"_d_{parameter.name}"
    kernel.body.append(f"{kind} {primal} = {argument_value(kernel, parameter)};")
    seed = f", {seed_of(kernel, parameter)}" if parameter.io == "inout" else ""
    kernel.body.append(f"DifferentialPair<{kind}> {pair} = diffPair({primal}{seed});")
    return [pair]


def _load_inside(kernel: Kernel, placed: Placed, name: str, signature: list[str], before: list[str]) -> list[str]:
    """A value of a registered class is loaded by the wrapper: Slang calls the derivative of its load."""
    stored, ident = slang_name(placed.binding.stored), placed.ident
    signature += [f"no_diff {stored} {name}_data", f"no_diff _spy_Context<{len(placed.map)}> {name}_context"]
    before += [f"_spy_T_{ident} {name};", f"{name}_data.__slangpy_load({name}_context, {name});"]
    custom_context(kernel, placed)
    return [f"_call.{ident}", f"_x_{ident}"]


def seed_of(kernel: Kernel, parameter: Parameter) -> str:
    """A variable with the incoming gradient of an output; zero where none is attached."""
    kind = named_type(kernel, parameter)
    var = f"_s_{parameter.name.lstrip('_')}"
    kernel.body.append(f"{kind}.Differential {var} = {kind}.dzero();")
    begin = len(kernel.body)
    for placed in kernel.facts.leaves.get(parameter.name, []):
        grad = kernel.facts.grads.get(placed.ident, NONE)
        target = var + placed.path[len(parameter.name) :]
        if grad.seed == "value":
            kernel.body.append(f"{target} = _call.{placed.ident}_seed;")
        elif grad.seed == "view":
            _read_seed(kernel, placed, grad, target)
    if kernel.facts.plan.whole:
        within(kernel, begin)
    return var


def _read_seed(kernel: Kernel, placed: Placed, grad: Derivative, target: str) -> None:
    view = f"{placed.ident}_gi"
    derivative = placed.binding.type.derivative
    assert derivative is not None
    if not placed.binding.inner and grad.seed_type == derivative.full_name:
        kernel.body.append(f"{target} = _call.{view}.read({offset_of(kernel, placed, view)});")
        return
    kernel.body.append(f"int64_t _o_{view} = {offset_of(kernel, placed, view)};")
    kernel.body.append(f"_spy_T_{placed.ident}.Differential _g_{view};")
    transfer(kernel, placed, view, f"_g_{view}", derivative, f"_o_{view}", 0, kernel.body, grad.seed_type, load=True)
    kernel.body.append(f"{target} = _g_{view};")


def accumulate(kernel: Kernel, parameter: Parameter) -> None:
    """Adds the gradients of a parameter to memory."""
    for placed in kernel.facts.leaves.get(parameter.name, []):
        grad = kernel.facts.grads.get(placed.ident, NONE)
        if grad.target and placed.binding.rank < 0:
            path = placed.path[len(parameter.name) :]
            _accumulate_leaf(kernel, placed, grad, f"_d_{parameter.name}.d{path}")


def _accumulate_leaf(kernel: Kernel, placed: Placed, grad: Derivative, value: str) -> None:
    derivative = placed.binding.type.derivative
    assert derivative is not None
    view = f"{placed.ident}_out" if grad.target == "reference" else f"{placed.ident}_go"
    if reduces(placed, grad, kernel.facts.variant):
        reduce(kernel, placed, grad, view, derivative, value)
        return
    kernel.body.append(f"let _g_{view} = {value};")
    if grad.target == "reference":
        kernel.body.append(f"_spy_atomic_add<{slang_name(derivative.full_name)}>(_call.{view}, _g_{view});")
        return
    kernel.body.append(f"int64_t _o_{view} = {offset_of(kernel, placed, view)};")
    owned = bool(placed.map) and kernel.access_of(placed) == LINEAR
    if owned and placed.binding.value is not None and placed.binding.value.details.get("fresh"):
        transfer(
            kernel, placed, view, f"_g_{view}", derivative, f"_o_{view}", 0, kernel.body, grad.grad_type, load=False
        )
        return
    if owned and not placed.binding.inner and grad.grad_type == derivative.full_name:
        kernel.body.append(f"_spy_add<_spy_T_{placed.ident}>(_call.{view}.at(_o_{view}), _g_{view});")
        return
    if kernel.facts.variant.cpu and not owned and parts_of(derivative) is not None:
        sum_runs(kernel, placed, grad, view, derivative)
        return
    add = "plain" if owned else "near" if _adds_by_wave(kernel, grad.grad_type) else "atomic"
    transfer(
        kernel,
        placed,
        view,
        f"_g_{view}",
        derivative,
        f"_o_{view}",
        0,
        kernel.body,
        grad.grad_type,
        load=False,
        add=add,
    )


def _adds_by_wave(kernel: Kernel, stored: str) -> bool:
    """Whether lanes that meet in one element may be summed first."""
    return (
        not kernel.facts.variant.cpu
        and not kernel.facts.options.deterministic
        and (stored == "float" or stored.startswith("vector<float,"))
    )
