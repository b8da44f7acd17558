"""Raw dispatch of a function or entry point of a module (spec/calls.md 7.2)."""

from __future__ import annotations

from typing import Any

from .. import _native
from ..cache import digest


def dispatch(node: Any, thread_count: Any, vars: dict[str, Any], encoder: Any, arguments: dict[str, Any]) -> None:
    """Runs `node` with one thread per `thread_count`, rounded up to whole groups."""
    from ..kernel import ComputeKernel

    program = _program(node)
    kernel = ComputeKernel(node.module.device, program)
    values = dict(vars)
    for kind, value, _, _ in node._globals:
        if kind == "set":
            given: Any = value(node) if callable(value) else value
            values = {**given, **values}
    kernel.dispatch(thread_count, vars=values, command_encoder=encoder, **arguments)


def _program(node: Any) -> Any:
    module = node.module
    loaded = module.loaded
    key = ("raw", node.core.identity, node.options)
    known = loaded.kernels.get(key)
    if known is not None:
        return known
    names = {entry.name for entry in loaded.main.entry_points}
    if node.name in names:
        if node.options.thread_group_size is not None:
            raise ValueError(f"{node.label}: thread_group_size cannot be set for an entry point")
        program = loaded.session.link(loaded.modules, [loaded.main.entry_point(node.name)])
    else:
        program = _wrap(node, loaded)
    loaded.kernels[key] = program
    return program


def _wrap(node: Any, loaded: Any) -> Any:
    target = node.core.target()
    function = target.reflection
    _check(node, target, function)
    size = node.options.thread_group_size or (32, 1, 1)
    parameters = list(function.parameters)
    rest = parameters[1:]
    uniforms = "".join(f", uniform {p.type.full_name} {p.name}" for p in rest)
    first = parameters[0].type.full_name
    swizzle = {"uint": ".x", "vector<uint,2>": ".xy"}.get(first, "")
    call = ", ".join([f"_spy_id{swizzle}", *(p.name for p in rest)])
    lines = [f"import {name};" for name in ["slangpy", *loaded.import_names]]
    lines += [*node.options.preludes]
    lines += [f"export static const {kind} {name} = {text};" for name, (kind, text) in node.options.constants]
    lines += [
        '[shader("compute")]',
        f"[numthreads({size[0]}, {size[1]}, {size[2]})]",
        f"void _spy_main(uint3 _spy_id : SV_DispatchThreadID{uniforms}) {{ {node.name}({call}); }}",
    ]
    source = "\n".join(lines)
    name = "_spy_raw_" + digest(source)[:24]
    generated = loaded.session.load_module_from_source(name, source, f"{node.label} (generated)")
    return loaded.session.link([generated, *loaded.modules], [generated.entry_point("_spy_main")])


def _check(node: Any, target: Any, function: Any) -> None:
    from .. import _slang

    m = _slang.ModifierID
    label = node.label
    if target.struct is not None:
        raise ValueError(f"{label}: type methods cannot be dispatched; dispatch a function that calls the method")
    if function.is_overloaded:
        raise ValueError(f"{label}: the function is overloaded; dispatch needs exactly one function of that name")
    if function.return_type is not None and function.return_type.full_name != "void":
        raise ValueError(f"{label}: a dispatched function cannot have a return value")
    if any(p.has_modifier(m.out) or p.has_modifier(m.inout) for p in function.parameters):
        raise ValueError(f"{label}: a dispatched function cannot have out or inout parameters; use RW resources")
    parameters = list(function.parameters)
    if not parameters or parameters[0].type.full_name not in ("uint", "vector<uint,2>", "vector<uint,3>"):
        raise ValueError(f"{label}: the first parameter must be a thread id: uint, uint2 or uint3 dispatchThreadID")
    if parameters[0].name != "dispatchThreadID":
        raise ValueError(f"{label}: the first parameter must be named dispatchThreadID, got {parameters[0].name}")


__all__ = ["dispatch", "_native"]
