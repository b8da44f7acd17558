"""Globals of a module, written at each dispatch by `set` and `write`."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from .. import _native
from ..compiler.text.tensors_used import Place, is_unset, path_of
from ..tensor import Tensor
from ..tensor.parts import torch_stream
from .snapshots import frozen, has_this, is_torch
from .torch_side import torch_side

_TAKES_TENSORS = re.compile(
    r"(?:I?(?P<writes>RW|W|Atomic)?(?:Diff|Primal)?Tensor|(?P<writes_buffer>RW)?(?P<buffer>StructuredBuffer))<(?P<element>.*)>"
)
"""Types of globals that a Tensor may be given for."""
_BLOCKS = ("parameter_block", "constant_buffer")


def put(node: Any, cursor: Any, name: str, layout: Any, value: Any) -> None:
    """Writes one value; tensors go into parameters of tensor type as views, elsewhere as their buffer."""
    if _requires_grad(value):
        _refuse_gradient(node, name)
    value = _with_tensors(node, name, layout, value)
    if isinstance(value, Tensor):
        if value.device is not node.module.device:
            raise ValueError(
                f"{node.label}: '{name}' is a tensor on another device than the module's "
                f"{node.module.device.info.api_name} device"
            )
        names = {field["name"] for field in layout.fields}
        if {"_data", "_shape"} <= names or "_primal" in names:
            _put_view(cursor[name], layout, value, node, name)
            return
        if not value.is_contiguous() or value.offset:
            raise ValueError(f"{node.label}: tensor '{name}' must be contiguous with offset 0 to be bound as a buffer")
        value = value.storage
    try:
        cursor[name] = value
    except (TypeError, ValueError, ArithmeticError, RuntimeError) as error:
        if len(error.args) == 1:
            error.args = (f"{node.label}: {error}",)
        raise


def _with_tensors(node: Any, path: str, layout: Any, value: Any) -> Any:
    """A value with Tensors in place of the arrays and torch tensors that tensor types and buffers are given."""
    if layout is None:
        return value
    if isinstance(value, dict):
        inner = getattr(layout, "element", None) if layout.kind.name in _BLOCKS else layout
        fields = {field["name"]: field["type"] for field in getattr(inner, "fields", ())}
        return {key: _with_tensors(node, f"{path}.{key}", fields.get(key), item) for key, item in value.items()}
    found = _TAKES_TENSORS.fullmatch(layout.full_name)
    tensor: Any = value if is_torch(value) else None
    if found is None or (tensor is None and not isinstance(value, np.ndarray)):
        return value
    device = node.module.device
    writes, shares = found["writes"] or found["writes_buffer"], tensor is not None and _shares_memory(device, tensor)
    if writes and not shares:
        raise ValueError(
            f"{node.label}: global '{path}' of type {layout.full_name} is written, and what is written to a copy of "
            f"{'an array' if tensor is None else 'a torch tensor'} is lost; pass a slangpy Tensor"
        )
    if tensor is None:
        made = Tensor.from_numpy(device, value)
    elif shares:
        if tensor.is_cuda:
            device.sync_to_cuda(torch_stream(tensor))
        if writes:
            torch_side().note_written(tensor)
        made = Tensor.from_dlpack(device, tensor.detach())
    else:
        made = Tensor.from_torch(device, tensor.detach())
    if found["buffer"] and found["element"].strip() != made.dtype.full_name:
        raise ValueError(
            f"{node.label}: global '{path}' of type {layout.full_name} takes elements of {found['element'].strip()}, got "
            f"{made.dtype.full_name}"
        )
    return made


def _shares_memory(device: Any, tensor: Any) -> bool:
    """Whether kernels of a device may use the memory of a torch tensor."""
    return device.info.type.name == tensor.device.type and tensor.device.type in ("cpu", "cuda")


def result_beside(given: Any) -> str | None:
    """The kind of result of calls with globals: torch tensors where one of these is a torch tensor, or holds one."""
    return "torch" if any(map(is_torch, _inside(given))) else None


def _requires_grad(value: Any) -> bool:
    """Whether a value is a torch tensor that requires grad, or has one inside its dicts and lists."""
    return any(getattr(item, "requires_grad", False) is True for item in _inside(value))


def _inside(value: Any) -> Iterator[Any]:
    """What stands in nested dicts, lists and tuples; each of them is looked into once, as they may hold themselves."""
    seen: set[int] = set()
    left = [value]
    while left:
        item = left.pop()
        if not isinstance(item, (dict, list, tuple)):
            yield item
        elif id(item) not in seen:
            seen.add(id(item))
            left += item.values() if isinstance(item, dict) else item


def _refuse_gradient(node: Any, name: str) -> None:
    """A torch tensor that requires grad, where no gradient flows."""
    if torch_side().records_gradients():
        raise RuntimeError(
            f"{node.label}: global '{name}' was given a tensor that requires grad, but gradients do not reach globals; make "
            "it a parameter of the function, or pass tensor.detach()"
        )


def _put_view(cursor: Any, layout: Any, tensor: Any, node: Any, path: str) -> None:
    """A tensor into a struct of our Slang library (slang/tensor.slang, difftensor.slang)."""
    fields = {field["name"]: field["type"] for field in layout.fields}
    if "_primal" in fields:
        _put_view(cursor["_primal"], fields["_primal"], tensor, node, path)
        for role, grad in (("_grad_in", tensor.grad_in), ("_grad_out", tensor.grad_out)):
            if role in fields and grad is not None:
                _put_view(cursor[role], fields[role], grad, node, f"{path}.{role}")
        return
    element = layout.full_name.partition("<")[2].rpartition(",")[0].strip()
    if element.replace(" ", "") != tensor.dtype.full_name.replace(" ", ""):
        raise ValueError(
            f"{node.label}: '{path}' of type {layout.full_name} takes elements of {element}, got {tensor.dtype.full_name}"
        )
    rank = int(layout.full_name.rpartition(",")[2].strip(" >"))
    if rank != len(tensor.shape):
        raise ValueError(f"{node.label}: '{path}' of type {layout.full_name} has {rank} dimensions, got {tensor.shape}")
    if node.module.device.compile_target.format == "hlsl":  # addresses are numbers there
        cursor["_data"]["_ptr"]["_address"] = tensor.storage.device_address
    else:
        cursor["_data"]["_ptr"] = tensor.storage
    cursor["_offset"] = tensor.offset
    cursor["_shape"] = list(tensor.shape)
    cursor["_strides"] = list(tensor.strides)


def warn_of_unset(node: Any, read: tuple[tuple[str, tuple[str, ...]], ...]) -> None:
    """For globals, and fields of those that are structs, that a function reads and `set` gives no value. What functions
    given to `set` or `write` do is not known."""
    given: dict[str, Any] = {}
    for kind, value, _, _ in node._globals:
        if kind == "write" or callable(value):
            return
        for name, item in value.items():
            both = isinstance(item, dict) and isinstance(given.get(name), dict)
            given[name] = {**given[name], **item} if both else item
    lacking = [name for name, _ in read if name not in given]
    for name, fields in read:
        if isinstance(given.get(name), dict):
            lacking += [f"{name}.{field}" for field in fields if field not in given[name]]
    if lacking:
        were = "was" if len(lacking) == 1 else "were"
        warnings.warn(
            f"{node.label}: {', '.join(lacking)} {were} never set: the function reads zeros there; give values with .set()",
            RuntimeWarning,
            stacklevel=4,
        )


def write_globals(node: Any, view: Any) -> Any:
    """A ShaderObject over the kernel's program with every `set` and `write` of the node applied, in chain order."""
    layout = view.kernels.first.layout
    root = _native.ShaderObject(node.module.device, layout)
    cursor = _native.ShaderCursor(root)
    apply_globals(node, cursor, layout)
    for place in view.spec.notes.tensors if node.module.device.info.type.name != "null" else ():
        if is_unset(cursor, place):
            raise_unset_tensor(node.label, layout, place)
    unset = root._first_unbound(view.kernels.used_globals)
    if unset >= 0:
        raise_unset(node.label, layout, unset)
    return root


def raise_unset_tensor(label: str, layout: Any, place: Place) -> None:
    """RuntimeError for a tensor in a global that a function names and nobody set: its address would be null."""
    _raise_unset(label, layout, path_of(place))


def raise_unset(label: str, layout: Any, slot: int) -> None:
    """RuntimeError for a global resource that a kernel uses and nobody set."""
    _raise_unset(label, layout, layout.slots[slot]["path"])


def _raise_unset(label: str, layout: Any, path: str) -> None:
    name = path.replace("[", ".").split(".")[0]
    known = {field["name"]: field["type"].full_name for field in layout.globals.fields}
    raise RuntimeError(
        f"{label}: global '{path}' ({known.get(name, 'resource')}) was never set; give it with .set({{'{name}': ...}})"
    )


def apply_globals(node: Any, cursor: Any, layout: Any) -> None:
    """Applies every `set` and `write` of the node to a cursor on the program's globals."""
    for kind, value, args, kwargs in node._globals:
        if kind == "write":
            value(cursor, *args, **kwargs)
            continue
        write_named(node, cursor, _values(node, value), layout)


def write_named(node: Any, cursor: Any, values: dict[str, Any], layout: Any) -> None:
    """Writes globals by name. Raises ValueError for names that the program does not have."""
    known = {field["name"]: field["type"] for field in layout.globals.fields} if layout.globals else {}
    for name, item in values.items():
        if name not in known:
            raise ValueError(f"{node.label}: no global named '{name}'; there are: {', '.join(known) or 'none'}")
        put(node, cursor, name, known[name], item)


def _values(node: Any, value: Any) -> dict[str, Any]:
    values: Any = value(node) if callable(value) else value
    if not isinstance(values, dict):
        raise ValueError(f"{node.label}: the function given to set must return a dict, got {type(values).__name__}")
    return values


def asks(value: Any) -> bool:
    """Whether what was given to `set` is asked at each dispatch: a function, or an object with get_this() inside it."""
    return callable(value) or has_this(value) or any(has_this(item) for item in _inside(value))


def answered(node: Any, value: Any) -> dict[str, Any]:
    """What `set` was given, with the answers in place of what is asked."""

    def special(item: Any) -> Any:
        return frozen(item.get_this(), special) if has_this(item) else None

    return frozen(_values(node, value), special)
