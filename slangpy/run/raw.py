"""Raw dispatch of a function or entry point of a module."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np

from .. import _native
from ..base import libslang
from ..compiler.cache import digest
from ..compiler.generated import import_statement, with_whole
from ..compiler.kernel import ComputePipeline, _thread_count
from ..compiler.library import load_library
from ..compiler.modules.reload import source_changed
from ..plan.bind.base import TENSOR
from ..plan.constants import render_constants
from ..plan.slang_text import slang_name
from ..tensor import Tensor
from .globals import apply_globals, put, write_named

_OF_GROUPS = (
    ". The number of a group is known to entry points only: write [shader(\"compute\")] [numthreads(32, 1, 1)] in front of the "
    "function and `: SV_GroupID` after that parameter, and the device gives it"
)


def dispatch(node: Any, thread_count: Any, vars: Any, encoder: Any, arguments: dict[str, Any]) -> None:
    """Runs `node` with one thread per `thread_count`, rounded up to whole groups."""
    if vars is not None and not isinstance(vars, Mapping):
        raise TypeError(
            f"{node.label}: dispatch takes arguments by name, as in dispatch(thread_count, {_an_argument(node)}=...); "
            f"after the thread count it got a {type(vars).__name__}, where a dict of the module's globals may stand"
        )
    threads = _thread_count(thread_count)
    source_changed(node.module.device)
    pipeline = _pipeline(node)
    layout = pipeline.layout
    root = _native.ShaderObject(node.module.device, layout)
    cursor = _native.ShaderCursor(root)
    apply_globals(node, cursor, layout)
    if vars:
        write_named(node, cursor, dict(vars), layout)
    keep = _write_arguments(node, cursor.find_entry_point(0), layout, arguments)
    root._check_used(pipeline.used, True)
    if 0 in threads:
        return
    if encoder is None:
        stream = _native.NativeHandle()
        if node._stream:
            stream = _native.NativeHandle(_native.NativeHandleType.CUstream, node._stream)
        root._dispatch(pipeline.compiled(), threads, stream)
    else:
        if node._stream:
            raise ValueError(
                f"{node.label}: Cannot specify a CUDA stream when appending to a command encoder; give the stream to "
                "submit_command_buffer()"
            )
        with encoder.begin_compute_pass() as compute_pass:
            compute_pass.bind_pipeline(pipeline.compiled(), root)
            compute_pass.dispatch(threads)
    del keep


def _declared_names(node: Any) -> list[str]:
    """The parameters of the function as its source has them."""
    reflection = node.core.target().reflection
    return [] if reflection is None or reflection.is_overloaded else [p.name for p in reflection.parameters]


def _an_argument(node: Any) -> str:
    """The name of the first parameter that a dispatch has to give; a stand-in where there is none."""
    fields = _pipeline(node).layout.entry_point.fields
    return fields[0]["name"] if fields else "name"


def _write_arguments(node: Any, cursor: Any, layout: Any, arguments: dict[str, Any]) -> list[Any]:
    """Writes the parameters by name; returns temporaries that must live until the launch."""
    fields = {field["name"]: field["type"] for field in layout.entry_point.fields}
    missing = [name for name in fields if name not in arguments]
    if missing:
        raise ValueError(
            f"{node.label}: dispatch needs a value for parameter '{missing[0]}'; the parameters are {', '.join(fields)}"
            f"{_OF_GROUPS if 'group' in missing[0].lower() else ''}"
        )
    keep: list[Any] = []
    for name, value in arguments.items():
        if name not in fields:
            known = ", ".join(fields) or "none"
            given = "that is given by the device: leave it out; " if name in _declared_names(node) else ""
            warnings.warn(
                f"{node.label}: dispatch has no parameter '{name}'; {given}the parameters are {known}",
                RuntimeWarning,
                stacklevel=4,
            )
            continue
        put(node, cursor, name, fields[name], _plain(node, name, value, fields[name], keep))
    return keep


def _plain(node: Any, name: str, value: Any, layout: Any, keep: list[Any]) -> Any:
    """NumPy arrays as temporary tensors, for parameters that only read."""
    type_name = layout.full_name
    tensor = TENSOR.match(type_name)
    if not isinstance(value, np.ndarray) or not (tensor or "Buffer" in type_name.split("<")[0]):
        return value
    if type_name.startswith("RW") or (tensor and tensor.group(2)):
        raise ValueError(
            f"{node.label}: parameter '{name}' of type {type_name} is written; pass a Tensor instead of a NumPy array"
        )
    uploaded = Tensor.from_numpy(node.module.device, value)
    keep.append(uploaded)
    return uploaded


def _pipeline(node: Any) -> Any:
    loaded = node.module._compiled
    key = ("raw", node.core.identity, node.options)
    known = loaded.kernels.get(key)
    if known is None:
        program = _program(node, loaded)
        known = loaded.kernels[key] = ComputePipeline(node.module.device, program, defer_target_compilation=True)
    return known


def _program(node: Any, loaded: Any) -> Any:
    conformances = list(node.options.conformances) or None
    entry_points = {entry.name: entry for entry in loaded.main.entry_points}
    if node.name not in entry_points:
        generated = _generate(node, loaded, _wrapper(node))
        return loaded.session.link([generated, *loaded.modules], [generated.entry_point("_spy_main")], conformances)
    if node.options.thread_group_size is not None:
        raise ValueError(f"{node.label}: thread_group_size cannot be set for an entry point: it states its own")
    modules = list(loaded.modules)
    if node.options.constants or node.options.preludes:
        modules.insert(0, _generate(node, loaded, []))
    return loaded.session.link(modules, [loaded.main.entry_point(node.name)], conformances)


def _generate(node: Any, loaded: Any, kernel: list[str]) -> Any:
    library = with_whole(loaded.library_names) if node.options.preludes else loaded.library_names
    lines = [import_statement(name) for name in [*library, *loaded.import_names]]
    lines += node.options.preludes
    lines += render_constants(loaded, node.label, node.options.constants)
    source = "\n".join([*lines, *kernel]) + "\n"
    load_library(loaded.session, source)
    name = "_spy_raw_" + digest(source)[:24]
    return loaded.session.load_module_from_source(name, source, f"{node.label} ({name})")


def _wrapper(node: Any) -> list[str]:
    """An entry point that calls the function with the thread's index."""
    target = node.core.target()
    function = target.reflection
    _check(node, target, function)
    size = node.options.thread_group_size or (32, 1, 1)
    first, *rest = function.parameters
    uniforms = "".join(f", uniform {slang_name(p.type.full_name)} {p.name}" for p in rest)
    swizzle = {"uint": ".x", "vector<uint,2>": ".xy"}.get(first.type.full_name, "")
    call = ", ".join([f"_spy_id{swizzle}", *(p.name for p in rest)])
    return [
        '[shader("compute")]',
        f"[numthreads({size[0]}, {size[1]}, {size[2]})]",
        f"void _spy_main(uint3 _spy_id : SV_DispatchThreadID{uniforms}) {{ ::{node.name}({call}); }}",
    ]


def _check(node: Any, target: Any, function: Any) -> None:
    m = libslang.ModifierID
    label = node.label
    if target.struct is not None:
        raise ValueError(f"{label}: type methods cannot be dispatched; dispatch a function that calls the method")
    if function.is_overloaded:
        raise ValueError(f"{label}: the function is overloaded; dispatch needs exactly one function of that name")
    if function.return_type is not None and function.return_type.full_name != "void":
        raise ValueError(
            f"{label}: a dispatched function cannot have a return value: call it, {node.name}(...), or let it write into "
            "an RW parameter"
        )
    if any(p.has_modifier(m.out) or p.has_modifier(m.inout) for p in function.parameters):
        raise ValueError(f"{label}: a dispatched function cannot have out or inout parameters; use RW resources")
    parameters = list(function.parameters)
    if not parameters or parameters[0].type.full_name not in ("uint", "vector<uint,2>", "vector<uint,3>"):
        raise ValueError(f"{label}: the first parameter must be a thread id: uint, uint2 or uint3 dispatchThreadID")
    if parameters[0].name != "dispatchThreadID":
        raise ValueError(f"{label}: the first parameter must be named dispatchThreadID, got {parameters[0].name}")


__all__ = ["dispatch"]
