"""Pickles of what lives on a device. A pickle says how each thing is made: the type and options of a device, the text or
file of a module, the name and modifiers of a function, the data of a tensor."""

from __future__ import annotations

import copyreg
import os
import pickle
import secrets
from collections.abc import Callable
from typing import Any

import numpy as np

from .._native import (
    BufferUsage,
    DeviceType,
    DiffPair,
    MemoryType,
    ValueRef,
)
from ..base.folders import LIBRARY
from ..compiler.modules.reload import modules_of
from ..compiler.session import SlangCompilerOptions
from ..device import Device, current
from ..function import FunctionCore, FunctionNode
from ..module import Module
from ..packed import PackedArg, pack
from ..reflection import SlangType
from ..reflection.dtypes import resolve_dtype
from ..struct import Struct
from ..tensor import Tensor

_opened: list[Device] = []
"""Devices that unpickling opened: they live as long as the process."""
_PROCESS = secrets.token_hex(8)


# --- devices


def _compiler_options(device: Device) -> dict[str, Any]:
    """What its modules are compiled with, without the folder of this package, which lies elsewhere on other machines."""
    options = SlangCompilerOptions.given(device.desc.compiler_options)
    paths = [os.path.abspath(p) for p in map(os.fspath, options.get("include_paths", ())) if p != os.fspath(LIBRARY)]
    return {**options, "include_paths": paths}


def _reduce_device(device: Device) -> Any:
    if device.is_closed:
        raise pickle.PicklingError(f"{device!r} is closed and cannot be pickled")
    type_name, options = device.info.type.name, _compiler_options(device)
    alike = [known for known in Device.get_created_devices() if known is not device and not known.is_closed]
    if any(known.info.type == device.info.type and _compiler_options(known) == options for known in alike):
        return find_device, (type_name, options, _here(device))
    return find_device, (type_name, options)  # without what differs from run to run


def _here(device: Device) -> str:
    """What only this process, and no child of it, says of a device."""
    return f"{_PROCESS}:{os.getpid()}:{id(device):x}"


def find_device(type_name: str, options: dict[str, Any], here: str = "") -> Device:
    """The device itself where the process that pickled it has several alike. Elsewhere an open device of this type with
    these compiler options, the current one first; else a new one."""
    kind = DeviceType[type_name]
    candidates = [current.top(), *_opened, *Device.get_created_devices()]
    candidates.sort(key=lambda known: known is None or _here(known) != here)
    for known in candidates:
        if known is None or known.is_closed or known.info.type != kind:
            continue
        if _compiler_options(known) == options:
            return known
    paths = [os.fspath(LIBRARY), *options["include_paths"]]
    device = Device(type=kind, compiler_options={**options, "include_paths": paths})
    _opened.append(device)
    return device


# --- code


def _reduce_module(module: Module) -> Any:
    path, source = module._path, module._source
    if path is None and not source:
        raise pickle.PicklingError(
            f"Module '{module.name}' cannot be pickled: it wraps a module that device.load_module() gave; make it with "
            "Module.load_from_file or Module.load_from_source"
        )
    where = os.fspath(path.absolute()) if path is not None else module._stem
    return make_module, (module.device, where, source, module.options, module.link, module._defines, module.name)


def make_module(
    device: Device,
    where: str,
    source: str,
    options: dict[str, Any],
    link: list[Any],
    defines: dict[str, str],
    name: str = "",
) -> Module:
    """The module as this process has it already, else loaded anew. name: as the user gave it."""
    given = (options, defines, [id(m) for m in link])
    for module in modules_of(device):
        same = module._source == source and (module.options, module._defines, [id(m) for m in module.link]) == given
        place = os.fspath(module._path.absolute()) if module._path is not None else module._stem
        if same and where == place and name in ("", module.name):
            return module
    if source:
        return Module.load_from_source(device, where, source, options, link, defines)
    module = Module.load_from_file(device, where, options, link, defines)
    module.name = name or module._stem
    return module


def _reduce_struct(struct: Struct) -> Any:
    return make_struct, (struct.module, struct.full_name)


def make_struct(module: Module, name: str) -> Struct:
    return Struct(module, module.layout.require_type_by_name(name))


def _reduce_function(node: FunctionNode) -> Any:
    if node._stream:
        raise pickle.PicklingError(f"{node.label}: a function on a CUDA stream cannot be pickled; pickle it without")
    core = node.core
    owner = core.struct.full_name if core.struct is not None else None
    return make_function, (
        node.module, core.name, owner, core.is_constructor, node.options, node._globals, node._bound,
    )  # fmt: skip


def make_function(
    module: Module, name: str, owner: str | None, is_constructor: bool, options: Any, values: Any, bound: Any
) -> FunctionNode:
    struct = module.layout.require_type_by_name(owner) if owner is not None else None
    root = FunctionCore(module, name, struct, is_constructor).node()
    return root._with(globals_=values, bound=bound, **vars(options))


def _reduce_packed(packed: PackedArg) -> Any:
    return pack, (packed.module, packed.python_object)


# --- values that calls write: a copy is written apart from its original


def _reduce_reference(reference: ValueRef) -> Any:
    return type(reference), (reference.value,)


def _reduce_pair(pair: DiffPair) -> Any:
    return type(pair), (pair.primal, pair.grad, pair.needs_grad)


# --- tensors


def _element_type(tensor: Tensor) -> str | Struct:
    """The name of its element type, or a struct of the module that declares it."""
    dtype = tensor.dtype
    try:
        if resolve_dtype(tensor.device, dtype.full_name) == dtype:
            return dtype.full_name
    except (ValueError, TypeError, RuntimeError):
        pass  # of a module: found below
    for module in modules_of(tensor.device):
        if module.layout is dtype._source:
            return Struct(module, dtype)
    raise pickle.PicklingError(
        f"a Tensor of {dtype.full_name} cannot be pickled: the module that declares {dtype.full_name} is gone"
    )


def _reduce_tensor(tensor: Tensor) -> Any:
    element = _element_type(tensor)
    return make_tensor, (
        tensor.device, element, tuple(tensor.shape), tensor.to_numpy(), tensor.usage.value, tensor.memory_type.name,
        tensor.grad_in, tensor.grad_out,
    )  # fmt: skip


def make_tensor(
    device: Device, element: str | Struct, shape: tuple[int, ...], values: np.ndarray[Any, Any],
    usage: int, memory_type: str, grad_in: Tensor | None, grad_out: Tensor | None,
) -> Tensor:  # fmt: skip
    """A row-major tensor of these values."""
    dtype: str | SlangType = element if isinstance(element, str) else element.type
    tensor = Tensor.empty(device, shape, dtype, BufferUsage(usage), MemoryType[memory_type])
    if values.size:
        tensor.copy_from_numpy(values)
    if grad_in is None and grad_out is None:
        return tensor
    return tensor.with_grads(grad_in, grad_out)


REDUCERS: dict[type, Callable[[Any], Any]] = {
    Device: _reduce_device,
    Module: _reduce_module,
    Struct: _reduce_struct,
    FunctionNode: _reduce_function,
    PackedArg: _reduce_packed,
    ValueRef: _reduce_reference,
    DiffPair: _reduce_pair,
    Tensor: _reduce_tensor,
}
for _class, _reduce in REDUCERS.items():
    copyreg.pickle(_class, _reduce)
