"""The call itself: variables for its parameters, the call, and the stores of its outputs."""

from __future__ import annotations

from ..bind.views import view_argument
from ..kinds import KINDS
from ..records import Parameter, Placed
from ..slang_text import global_name, slang_name
from ..struct_arrays import holder, spread
from ..trampoline import Kernel
from .result import store_leaf, store_result
from .zeros import zero_missing


def emit_forward(kernel: Kernel) -> None:
    """Fills the kernel's body with a plain call."""
    arguments: list[tuple[Parameter, str]] = []
    for parameter in kernel.facts.plan.resolved.parameters:
        if parameter.io == "return":
            continue
        arguments.append((parameter, _argument(kernel, parameter)))
    call = call_expression(kernel, [name for _, name in arguments])
    returns = kernel.facts.plan.resolved.return_type_name != "void"
    kernel.body.append(f"{'let _r = ' if returns else ''}{call};")
    kernel.called = len(kernel.body)
    for parameter, name in arguments:
        if parameter.io != "in":
            store_parameter(kernel, parameter, name)
    store_result(kernel)


def _argument(kernel: Kernel, parameter: Parameter) -> str:
    """Declares the variable of one parameter and gives its name (or an expression for plain inputs)."""
    leaves = kernel.facts.leaves.get(parameter.name, [])
    var = f"_p_{parameter.name}"
    whole = len(leaves) == 1 and leaves[0].path == parameter.name
    if whole:
        placed = leaves[0]
        if parameter.io == "in" and not parameter.is_this:
            return leaf_value(kernel, placed)
        if placed.binding.rank >= 0 or placed.binding.kind == "resource":
            return leaf_value(kernel, placed)
        if parameter.io == "out":
            kernel.body.append(f"_spy_T_{placed.ident} {var};")
        else:
            value = leaf_value(kernel, placed)
            kernel.body.append(f"_spy_T_{placed.ident} {var} = {value};")
        return var
    if leaves and leaves[0].binding.array_type and leaves[0].path == parameter.name + "[0]":
        return leaves[0].ident  # an array of resources
    given = f" = {holder(parameter.name)}" if any(p.held for p in leaves) else ""
    kernel.body.append(f"{slang_name(parameter.type_name)} {var}{given};")
    if parameter.io != "out":
        kernel.body.extend(zero_missing(var, parameter.binding))
        for placed in leaves:
            if not placed.held:
                kernel.body += _fill(kernel, var, parameter, placed)
    return var


def _fill(kernel: Kernel, var: str, parameter: Parameter, placed: Placed) -> list[str]:
    """Statements that put the value of a leaf into its part of a parameter's variable."""
    if placed.element:
        return []  # assigned with the first element
    path = placed.path[len(parameter.name) :]
    value = view_argument(placed.binding, leaf_value(kernel, placed))
    if placed.binding.array_type:
        path = path.rpartition("[")[0]
    return spread(f"{var}{path}", value, placed.binding.type)


def argument_value(kernel: Kernel, parameter: Parameter) -> str:
    """Expression of a parameter's value."""
    leaves = kernel.facts.leaves.get(parameter.name, [])
    if len(leaves) == 1 and leaves[0].path == parameter.name:
        return leaf_value(kernel, leaves[0])
    return _argument(kernel, parameter)


def named_type(kernel: Kernel, parameter: Parameter) -> str:
    """A name of the parameter's type that `.Differential` may follow."""
    kind = slang_name(parameter.binding.type_name)
    if not kind.endswith("]"):
        return kind
    name = f"_spy_P_{parameter.name.lstrip('_')}"
    alias = f"typealias {name} = {kind};"
    if alias not in kernel.aliases:
        kernel.aliases.append(alias)
    return name


def call_expression(kernel: Kernel, names: list[str]) -> str:
    """The call of the user's function with the arguments `names`."""
    resolved = kernel.facts.plan.resolved
    parameters = [p for p in resolved.parameters if p.io != "return"]
    names = [view_argument(p.binding, n) for p, n in zip(parameters, names, strict=True)]
    if resolved.kind == "method":
        return f"{names[0]}.{resolved.call_name}({', '.join(names[1:])})"
    if resolved.kind == "static":
        return f"{slang_name(resolved.struct_name)}.{resolved.call_name}({', '.join(names)})"
    if resolved.kind == "constructor":
        is_struct = resolved.return_type is not None and resolved.return_type.kind == "struct"
        return f"{slang_name(resolved.struct_name)}({', '.join(names) or ('' if is_struct else '0')})"
    return f"{global_name(resolved.call_name)}({', '.join(names)})"


def store_parameter(kernel: Kernel, parameter: Parameter, var: str) -> None:
    """Stores what the call wrote into a parameter's variable."""
    for placed in kernel.facts.leaves.get(parameter.name, []):
        if placed.writes and placed.binding.rank < 0 and KINDS[placed.binding.kind].store is not None:
            store_leaf(kernel, placed, var + placed.path[len(parameter.name) :])


def leaf_value(kernel: Kernel, placed: Placed) -> str:
    """Expression of a leaf's primal."""
    return KINDS[placed.binding.kind].value(kernel, placed)


def declare(kernel: Kernel, placed: Placed) -> None:
    """Adds what is stored for a leaf."""
    if placed.held:
        _declare_holder(kernel, placed)
    elif not placed.element:  # others are declared with the first element
        kernel.aliases.append(f"typealias _spy_T_{placed.ident} = {slang_name(placed.binding.type_name)};")
        KINDS[placed.binding.kind].declare(kernel, placed)


def _declare_holder(kernel: Kernel, placed: Placed) -> None:
    """An array of structs with resources. Vulkan's drivers know no variables that those could be gathered in."""
    parameter = next(p for p in kernel.facts.plan.resolved.parameters if p.name == placed.parameter)
    line = f"uniform {slang_name(parameter.type_name)} {holder(parameter.name)}"
    if line not in kernel.extra:
        kernel.extra.append(line)
