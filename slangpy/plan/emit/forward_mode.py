"""Forward mode: Slang's fwd_diff around the call, tangents read before, written after."""

from __future__ import annotations

from ..derive.gradients import NONE
from ..records import Derivative, Parameter, Placed
from ..slang_text import indent, slang_name
from ..trampoline import Kernel
from ..trampoline.elements import offset_of, strided, transfer
from ..trampoline.variant import UNIFORM
from .forward import argument_value, call_expression, named_type, store_parameter
from .result import store_result


def emit_forward_mode(kernel: Kernel) -> list[str]:
    """Fills the kernel's body around fwd_diff; returns the differentiable wrapper of the user's function."""
    resolved = kernel.facts.plan.resolved
    parameters = [p for p in resolved.parameters if p.io != "return"]
    signature: list[str] = []
    before: list[str] = []
    arguments = [_dual_parameter(kernel, p, signature, before) for p in parameters]
    call = call_expression(kernel, [f"_p_{p.name}" for p in parameters])
    dual = f"fwd_diff(_spy_function)({', '.join(arguments)});"
    returns = resolved.return_type_name != "void"
    has_tangent = returns and bool(resolved.return_type.differentiable)
    kernel.body.append(f"let {'_dual' if has_tangent else '_r'} = {dual}" if returns else dual)
    if has_tangent:
        kernel.body.append("let _r = _dual.p;")
    for parameter in parameters:
        if parameter.io != "in":
            _store_dual(kernel, parameter)
    store_result(kernel)
    if has_tangent:
        _store_result_tangent(kernel)
    statement = f"return {call};" if returns else f"{call};"
    return [
        "[ForwardDifferentiable]", f"{slang_name(resolved.return_type_name)} _spy_function({', '.join(signature)})", "{",
        *indent(before), f"    {statement}", "}",
    ]  # fmt: skip


def _is_dual(kernel: Kernel, parameter: Parameter) -> bool:
    """Whether a parameter is passed with a tangent. Inputs that nobody gave one are constants."""
    if parameter.no_diff or parameter.binding.rank >= 0 or not parameter.binding.type.differentiable:
        return False
    return parameter.io != "in" or any(_grad(kernel, p).seed for p in _values(kernel, parameter))


def _values(kernel: Kernel, parameter: Parameter) -> list[Placed]:
    """The leaves of a parameter without whole tensors, which carry their tangents themselves."""
    return [p for p in kernel.facts.leaves.get(parameter.name, []) if p.binding.rank < 0]


def _grad(kernel: Kernel, placed: Placed) -> Derivative:
    return kernel.facts.grads.get(placed.ident, NONE)


def _dual_parameter(kernel: Kernel, parameter: Parameter, signature: list[str], before: list[str]) -> str:
    """Adds a parameter to the wrapper; gives what fwd_diff is passed for it."""
    binding = parameter.binding
    name, kind = f"_p_{parameter.name}", slang_name(binding.type_name)
    is_whole = binding.rank >= 0 or binding.kind == "resource"
    io = "" if is_whole else {"in": "", "out": "out ", "inout": "inout "}[parameter.io]
    if not _is_dual(kernel, parameter):
        constant = "no_diff " if binding.type.differentiable else ""
        signature.append(f"{constant}{io}{kind} {name}")
        return _plain_argument(kernel, parameter, is_whole)
    signature.append(f"{io}{kind} {name}")
    pair = f"_d_{parameter.name}"
    if parameter.io == "out":
        kernel.body.append(f"DifferentialPair<{kind}> {pair};")
        return pair
    value, tangent = argument_value(kernel, parameter), _tangent_of(kernel, parameter)
    kernel.body.append(f"DifferentialPair<{kind}> {pair} = DifferentialPair<{kind}>({value}, {tangent});")
    return pair


def _plain_argument(kernel: Kernel, parameter: Parameter, is_whole: bool) -> str:
    value = "" if parameter.io == "out" and not is_whole else argument_value(kernel, parameter)
    if parameter.io == "in" or is_whole:
        return value
    var = f"_x_{parameter.name}"
    kernel.body.append(f"{slang_name(parameter.binding.type_name)} {var}{f' = {value}' if value else ''};")
    return var


def _tangent_of(kernel: Kernel, parameter: Parameter) -> str:
    """A variable with the tangent of an input; zero where none is attached."""
    kind, var = named_type(kernel, parameter), f"_t_{parameter.name}"
    leaves = _values(kernel, parameter)
    hoists = all(_is_constant(kernel, placed) for placed in leaves)
    lines = kernel.hoisted if hoists else kernel.body
    lines.append(f"{kind}.Differential {var} = {kind}.dzero();")
    for placed in leaves:
        grad = _grad(kernel, placed)
        target = var + placed.path[len(parameter.name) :]
        if grad.seed == "value":
            lines.append(f"{target} = _call.{placed.ident}_seed;")
        elif grad.seed == "view":
            _read_tangent(kernel, placed, grad, target, lines)
    return var


def _is_constant(kernel: Kernel, placed: Placed) -> bool:
    """Whether the tangent of a leaf is the same in every invocation."""
    grad = _grad(kernel, placed)
    if grad.target or placed.writes:
        return False
    return grad.seed != "view" or kernel.access_of(placed) == UNIFORM or not placed.map


def _read_tangent(kernel: Kernel, placed: Placed, grad: Derivative, target: str, lines: list[str]) -> None:
    view = f"{placed.ident}_{grad.seed_view}"
    derivative = placed.binding.type.derivative
    assert derivative is not None
    lines.append(f"int64_t _o_{view} = {offset_of(kernel, placed, view)};")
    lines.append(f"_spy_T_{placed.ident}.Differential _g_{placed.ident};")
    transfer(kernel, placed, view, f"_g_{placed.ident}", derivative, f"_o_{view}", 0, lines, grad.seed_type, load=True)
    lines.append(f"{target} = _g_{placed.ident};")


def _store_dual(kernel: Kernel, parameter: Parameter) -> None:
    """Stores a written parameter, and its tangent where there is memory for it."""
    if parameter.binding.rank >= 0 or parameter.binding.kind == "resource":
        return
    if not _is_dual(kernel, parameter):
        store_parameter(kernel, parameter, f"_x_{parameter.name}")
        return
    pair = f"_d_{parameter.name}"
    store_parameter(kernel, parameter, f"{pair}.p")
    _store_tangents(kernel, _values(kernel, parameter), f"{pair}.d", len(parameter.name))


def _store_tangents(kernel: Kernel, leaves: list[Placed], value: str, skip: int) -> None:
    for placed in leaves:
        grad, path = _grad(kernel, placed), placed.path[skip:]
        if grad.target == "pair":
            kernel.body.append(f"_call.{placed.ident}_tangent.write(0, {value}{path});")
        elif grad.target == "view":
            _write_tangent(kernel, placed, grad, value + path)


def _write_tangent(kernel: Kernel, placed: Placed, grad: Derivative, value: str) -> None:
    view, var = f"{placed.ident}_{grad.target_view}", f"_w_{placed.ident}"
    derivative = placed.binding.type.derivative
    assert derivative is not None
    at = f"_at_{view}"
    kernel.body.append(f"_spy_T_{placed.ident}.Differential {var} = {value};")
    kernel.body.append(f"int64_t {at} = {offset_of(kernel, placed, view)};")
    transfer(kernel, placed, view, var, derivative, at, 0, kernel.body, grad.grad_type, load=False)


def _store_result_tangent(kernel: Kernel) -> None:
    mode = kernel.facts.plan.result_mode
    if mode == "leaf":
        _store_tangents(kernel, kernel.facts.leaves.get("_result", []), "_dual.d", len("_result"))
    elif mode == "value":
        kernel.body.append("_call._out_tangent.write(0, _dual.d);")
    elif kernel.facts.variant.flat:
        kernel.body.append("_call._out_tangent.write(int64_t(_i), _dual.d);")
    else:
        at = strided(kernel, "_out_lead", tuple(range(kernel.facts.rank))) if kernel.facts.rank else "0"
        kernel.body.append(f"_call._out_tangent.write({at}, _dual.d);")
