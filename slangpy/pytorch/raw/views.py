"""Tensors as TensorView and DiffTensorView parameters: what may be one, and its 56 bytes."""

from __future__ import annotations

import struct
from typing import Any

from slangpy.errors import TensorError
from slangpy.pytorch.raw.tensors import DTYPES, TensorInfo, read_tensor, summary
from slangpy.pytorch.raw.types import WIDE_VIEW_BYTES, KernelType, alignment

MAX_RANK = 5
_VIEW = struct.Struct("<Q5I5II")
_WIDE_VIEW = struct.Struct("<Q5Q5II")
_ZERO5 = (0, 0, 0, 0, 0)
_SIGNED = {"uint": "int", "uint64_t": "int64_t"}
"""Views that a tensor of the signed type serves as well: torch computes little with the unsigned ones."""
_TORCH = {scalar: name for name, scalar in DTYPES.items()}
_LIMIT = 1 << 32


class NeedsWide(Exception):
    """A tensor whose strides need more than the 32 bits that views have for them."""


def pack_view(type_: KernelType, value: Any, call: Any, path: str, out: bytearray, at: int) -> TensorInfo:
    """Writes the view of a tensor; TensorError for what cannot be one."""
    where = call.where(path)
    info = read_tensor(value, where)
    if info is None:
        raise TensorError(f"{where}: expected a tensor for {type_.name}, got {summary(value)}")
    call.use(info, path)
    strides = check_view(type_, info, where, shared=call.derivative in call.access(path).reads)
    put_view(type_, out, at, info.address if 0 not in info.shape else 0, strides, info.shape)
    return info


def put_view(
    type_: KernelType, out: bytearray, at: int, address: int, strides: tuple[int, ...], sizes: tuple[int, ...]
) -> None:
    """strides: bytes."""
    rank = len(sizes)
    rest = _ZERO5[rank:]
    wide = type_.size == WIDE_VIEW_BYTES
    if not wide and max(strides, default=0) >= _LIMIT:
        raise NeedsWide
    (_WIDE_VIEW if wide else _VIEW).pack_into(out, at, address, *strides, *rest, *sizes, *rest, rank)


def is_broadcast(info: TensorInfo) -> bool:
    """Whether several indices lead to one element."""
    return 0 not in info.shape and any(n > 1 and not s for n, s in zip(info.shape, info.strides, strict=True))


def check_view(type_: KernelType, info: TensorInfo, where: str, shared: bool = False) -> tuple[int, ...]:
    """The strides in bytes of a tensor that fits. shared: several indices may lead to one element, since all only read."""
    element = type_.element
    assert element is not None
    if element.kind not in ("scalar", "enum", "vector", "matrix"):
        raise TensorError(f"{where}: views of {element.name} cannot be made from tensors; use one view for each field")
    scalar, shape, strides, item = element.scalar, info.shape, info.strides, info.item
    if info.scalar != scalar and _SIGNED.get(scalar) != info.scalar:
        name = _TORCH[scalar]
        raise TensorError(
            f"{where}: expected {name} for {type_.name}, got {summary(info.value)}; convert it with .to(torch.{name})"
        )
    rank = len(shape)
    if rank > MAX_RANK:
        raise TensorError(
            f"{where}: {summary(info.value)} has {rank} dimensions, a view at most {MAX_RANK}; reshape it"
        )
    if 0 not in shape:
        if not shared and is_broadcast(info):
            raise TensorError(f"{where}: {summary(info.value)} is broadcast (a stride is 0), and the kernel may write to it; "
                              "pass tensor.contiguous()")  # fmt: skip
        if any(size > 1 and stride < 0 for size, stride in zip(shape, strides, strict=True)):
            raise TensorError(f"{where}: {summary(info.value)} has a negative stride; pass tensor.contiguous()")
    align = item
    if element.kind != "scalar" and element.kind != "enum":
        align = _check_element(type_, element, info, where)
    bytes_ = tuple([stride * item for stride in strides])
    if 0 not in shape:
        _check_bytes(type_, info, bytes_, align, where)
    if max(shape, default=0) >= _LIMIT:
        raise TensorError(
            f"{where}: {summary(info.value)} has a size of 2^32 or more, which a view cannot hold; reshape it"
        )
    leads = [size > 1 and 0 not in shape for size in shape]  # strides that lead nowhere may be anything
    return tuple([b if 0 <= b < _LIMIT or leads[k] else 0 for k, b in enumerate(bytes_)])


def _check_bytes(type_: KernelType, info: TensorInfo, strides: tuple[int, ...], align: int, where: str) -> None:
    if info.address % align:
        raise TensorError(f"{where}: the data of {summary(info.value)} is not aligned to the {align} bytes of "
                          f"{type_.name}; pass tensor.clone()")  # fmt: skip
    inner = 0 if type_.element.kind in ("scalar", "enum") else 1 if type_.element.kind == "vector" else 2  # type: ignore[union-attr]
    for axis, (size, stride) in enumerate(zip(info.shape, strides, strict=True)):
        if axis < len(strides) - inner and size > 1 and stride % align:
            raise TensorError(f"{where}: stride {stride} bytes of {summary(info.value)} is no multiple of the {align} "
                              f"bytes that {type_.name} is aligned to; pass tensor.contiguous()")  # fmt: skip


def _check_element(type_: KernelType, element: KernelType, info: TensorInfo, where: str) -> int:
    """Vectors and matrices lie in the last dimensions, without gaps. Their alignment."""
    shape, strides = info.shape, info.strides
    inner = (element.count,) if element.kind == "vector" else (element.count, element.columns)
    if shape[len(shape) - len(inner) :] != inner or len(shape) < len(inner):
        raise TensorError(f"{where}: the last dimensions of a {type_.name} are {inner}, got {summary(info.value)}")
    wanted = (1,) if len(inner) == 1 else (inner[1], 1)
    if any(size > 1 and s != w for size, s, w in zip(inner, strides[len(strides) - len(inner) :], wanted, strict=True)):
        raise TensorError(f"{where}: the elements of {type_.name} do not lie side by side in {summary(info.value)}; "
                          "pass tensor.contiguous()")  # fmt: skip
    return alignment(element.scalar, inner[-1])


# --- DiffTensorView


def pack_diff_view(type_: KernelType, value: Any, call: Any, path: str, out: bytearray, at: int) -> None:
    """A tensor, `(tensor,)`, `(tensor, gradient)` or `(tensor, None)`."""
    (_, primal, _), (_, wrapper, wrapper_at) = type_.fields
    given, gradient, discards = _parts(type_, value, call, path)
    info = pack_view(primal, given, call, path, out, at)
    at += wrapper_at
    if gradient is None:
        if call.derivative and not discards:
            raise ValueError(
                f"`{call.label}`: `{path}` has no gradient tensor; pass `(tensor, torch.zeros_like(tensor))`, or "
                "`(tensor, None)` to discard it"
            )
        _pack_missing(wrapper, info, call, path, out, at)
    elif wrapper.short_name == "AtomicAdd":
        pack_gradient(wrapper.fields[0][1], gradient, info, call, path, out, at)
    else:
        _pack_wrapper(wrapper, gradient, call, path, out, at)


def _parts(type_: KernelType, value: Any, call: Any, path: str) -> tuple[Any, Any, bool]:
    if isinstance(value, tuple) and len(value) in (1, 2):
        named = hasattr(value, "_fields")  # DiffTensorView(t) has None for "not given"
        gradient = value[1] if len(value) == 2 else None
        return value[0], gradient, len(value) == 2 and gradient is None and not named
    if isinstance(value, (tuple, list, dict)) or read_tensor(value, call.where(path)) is None:
        raise ValueError(
            f"{call.where(path)}: expected a tensor, (tensor,), (tensor, gradient) or (tensor, None) for a DiffTensorView, "
            f"got {summary(value)}"
        )
    return value, None, False


def pack_gradient(
    type_: KernelType, gradient: Any, primal: TensorInfo, call: Any, path: str, out: bytearray, at: int
) -> None:
    access = call.access(path)
    path = f"{path}.grad"
    where = call.where(path)
    info = read_tensor(gradient, where)
    if info is None:
        raise TensorError(f"{where}: expected a tensor for {type_.name}, got {summary(gradient)}")
    if info.shape != primal.shape:
        raise TensorError(
            f"{where}: the gradient has the shape {info.shape}, its tensor {primal.shape}; they must be equal"
        )
    if is_broadcast(info) and call.derivative in access.consumes and hasattr(gradient, "contiguous"):
        info = read_tensor(gradient.contiguous(), where)  # y.sum() gives such; what is consumed is nobody's any more
        assert info is not None
    call.use(info, path)
    strides = check_view(type_, info, where, shared=call.derivative in access.reads_gradient)
    put_view(type_, out, at, info.address if 0 not in info.shape else 0, strides, info.shape)


def _pack_missing(wrapper: KernelType, primal: TensorInfo, call: Any, path: str, out: bytearray, at: int) -> None:
    """Every view of the wrapper becomes one that stays in bounds: all indices lead to 16 bytes of its own in a derivative,
    and to nothing else otherwise."""
    shape = primal.shape if call.derivative else ()
    for offset, view in _views_in(wrapper, at):
        slot = call.sink(primal.device, fresh=bool(call.derivative))
        put_view(view, out, offset, slot, _ZERO5[: len(shape)], shape)


def _views_in(type_: KernelType, at: int) -> list[tuple[int, KernelType]]:
    if type_.kind == "view":
        return [(at, type_)]
    found = []
    for _, inner, offset in type_.fields:
        found += _views_in(inner, at + offset)
    return found


def _pack_wrapper(wrapper: KernelType, gradient: Any, call: Any, path: str, out: bytearray, at: int) -> None:
    """A user's own wrapper: its struct, or one tensor when it has exactly one view."""
    views = _views_in(wrapper, 0)
    if read_tensor(gradient, call.where(path)) is not None:
        if len(views) != 1:
            raise ValueError(
                f"{call.where(path)}: the gradient of {wrapper.name} is a struct with {len(views)} views; pass such a "
                "struct, not one tensor"
            )
        pack_view(views[0][1], gradient, call, f"{path}.grad", out, at + views[0][0])
        return
    call.pack(wrapper, gradient, f"{path}.grad", out, at)
