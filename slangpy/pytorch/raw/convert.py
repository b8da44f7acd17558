"""Python values as the bytes of kernel parameters."""

from __future__ import annotations

import dataclasses
import operator
import struct
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from slangpy import _native
from slangpy.errors import TensorError
from slangpy.pytorch.raw.access import ViewAccess
from slangpy.pytorch.raw.tensors import TensorInfo, read_tensor, summary, torch_module
from slangpy.pytorch.raw.types import SCALARS, KernelType, field_names
from slangpy.pytorch.raw.views import NeedsWide, check_view, pack_diff_view, pack_view

Sink = Callable[[tuple[str, int], bool], tuple[int, Any]]


class Packing:
    """One call's arguments on their way to bytes: the device that all tensors share, and what must stay alive."""

    __slots__ = ("_first", "_make_sink", "_views", "derivative", "device", "keep", "label")

    def __init__(
        self, label: str, derivative: str, make_sink: Sink, views: Iterable[tuple[str, ViewAccess]] = ()
    ) -> None:
        self.label = label
        self.derivative = derivative  # "", "fwd" or "bwd"
        self.device: tuple[str, int] | None = None
        self.keep: list[tuple[Any, str]] = []  # with names for messages
        self._first: tuple[str, Any] = ("", None)
        self._make_sink = make_sink
        self._views = dict(views)

    def access(self, path: str) -> ViewAccess:
        """What the kernel does with the view of a path."""
        return self._views.get(path, ViewAccess())

    def where(self, path: str) -> str:
        return f"{self.label}: {path}"

    def use(self, info: TensorInfo, path: str) -> None:
        """Notes a tensor; all must lie on one device."""
        if self.device is None:
            self.device = info.device
            self._first = (path, info.value)
        elif self.device != info.device:
            first, value = self._first
            raise TensorError(
                f"{self.label}: the tensors lie on different devices: {first} is {summary(value)}, {path} is "
                f"{summary(info.value)}; move them to one device"
            )
        self.keep.append((info.value, self.where(path)))

    def sink(self, device: tuple[str, int], fresh: bool) -> int:
        """Address of 16 bytes that a kernel may write to without harm; zeroed for this call where `fresh`."""
        address, owner = self._make_sink(device, fresh)
        self.keep.append((owner, ""))
        return address

    def pack(self, type_: KernelType, value: Any, path: str, out: bytearray, at: int) -> None:
        try:
            _PACKERS[type_.kind](type_, value, self, path, out, at)
        except NeedsWide:
            raise
        except Exception as error:
            own = type(error).__module__.partition(".")[0] not in ("builtins", "slangpy", "torch", "numpy")
            if own or str(error).startswith((f"{self.label}: ", f"`{self.label}`: ")):
                raise  # of a user's class, or named already
            raise _named_kind(error)(f"{self.where(path)}: {error}") from error


def _named_kind(error: Exception) -> type[Exception]:
    """What is raised for an exception that a value's own methods raised, with the parameter's name before its text."""
    kinds = (NotImplementedError, OverflowError, RuntimeError, ValueError, MemoryError)
    return next((kind for kind in kinds if isinstance(error, kind)), TypeError)


# --- numbers

_LIMITS = {name: ((-(1 << 8 * size - 1), (1 << 8 * size - 1) - 1) if name[0] == "i" else (0, (1 << 8 * size) - 1))
           for name, size in SCALARS.items() if name.startswith(("int", "uint"))}  # fmt: skip


def _element(value: Any, call: Packing, path: str) -> Any:
    """A 0-d tensor as its number; other values as they are."""
    if hasattr(value, "__index__") and not hasattr(value, "ndim"):
        return value
    if getattr(value, "ndim", None) == 0 and hasattr(value, "item"):
        return value.item()
    if hasattr(value, "shape") and getattr(value, "ndim", 0):
        raise TypeError(f"{call.where(path)}: expected a number, got {summary(value)}")
    return value


def to_number(scalar: str, value: Any, call: Packing, path: str) -> Any:
    """The value as what `struct` takes for the scalar. TypeError for what does not fit."""
    value = _element(value, call, path)
    limits = _LIMITS.get(scalar)
    if limits is not None:
        if isinstance(value, (float, str)) or not hasattr(value, "__index__"):
            raise TypeError(f"{call.where(path)}: expected an integer for {scalar}, got {summary(value)}")
        number = operator.index(value)
        if not limits[0] <= number <= limits[1]:
            name = {"int": "int32_t", "uint": "uint32_t"}.get(scalar, scalar)
            raise TypeError(f"{call.where(path)}: {number} does not fit {name} ({limits[0]} to {limits[1]})")
        return number
    if scalar == "bool":
        if isinstance(value, bool) or (
            not isinstance(value, float) and hasattr(value, "__index__") and operator.index(value) in (0, 1)
        ):
            return bool(value)
        if type(value).__name__ in ("bool_", "bool"):
            return bool(value)
        raise TypeError(f"{call.where(path)}: expected a bool, got {summary(value)}")
    if isinstance(value, (str, bytes)) or not (hasattr(value, "__float__") or hasattr(value, "__index__")):
        raise TypeError(f"{call.where(path)}: expected a number for {scalar}, got {summary(value)}")
    try:
        return float(value) if hasattr(value, "__float__") else float(operator.index(value))
    except OverflowError:
        raise TypeError(f"{call.where(path)}: {summary(value)} is more than any {scalar} can be") from None


def put_number(scalar: str, number: Any, out: bytearray, at: int, where: str = "") -> None:
    """Rounded to nearest; beyond the type's range a float becomes infinite, as a conversion does, with a warning."""
    stored = None if scalar.startswith("FloatE") else _native._number_bytes(scalar, number, where)
    if stored is None:
        raise TypeError(f"{scalar} values can be passed in tensors only")
    out[at : at + len(stored)] = stored


def _pack_scalar(type_: KernelType, value: Any, call: Packing, path: str, out: bytearray, at: int) -> None:
    put_number(type_.scalar, to_number(type_.scalar, value, call, path), out, at, call.where(path))


def _pack_vector(type_: KernelType, value: Any, call: Packing, path: str, out: bytearray, at: int) -> None:
    values = _sequence(type_, value, type_.count, call, path, TypeError)
    step = SCALARS[type_.scalar]
    for i, item in enumerate(values):
        put_number(type_.scalar, to_number(type_.scalar, item, call, f"{path}[{i}]"), out, at + i * step, call.where(path))


def _pack_matrix(type_: KernelType, value: Any, call: Packing, path: str, out: bytearray, at: int) -> None:
    rows = _sequence(type_, value, type_.count, call, path, TypeError)
    step, row_bytes = SCALARS[type_.scalar], type_.size // type_.count
    for i, row in enumerate(rows):
        for j, item in enumerate(_sequence(type_, row, type_.columns, call, f"{path}[{i}]", TypeError)):
            number = to_number(type_.scalar, item, call, f"{path}[{i}][{j}]")
            put_number(type_.scalar, number, out, at + i * row_bytes + j * step, call.where(path))


def _sequence(type_: KernelType, value: Any, count: int, call: Packing, path: str, error: type[Exception]) -> list[Any]:
    if hasattr(value, "tolist") and getattr(value, "ndim", 0):
        value = value.tolist()
    if hasattr(value, "__len__") and not isinstance(value, (tuple, list, str, bytes, Mapping, set)):
        value = tuple(value)  # slangpy.float3 and the like
    if not isinstance(value, (tuple, list)):
        raise TypeError(
            f"{call.where(path)}: expected a tuple or list of {count} for {type_.name}, got {summary(value)}"
        )
    if len(value) != count:
        raise error(f"{call.where(path)}: expected {count} values for {type_.name}, got {len(value)}")
    return list(value)


# --- aggregates


def _pack_array(type_: KernelType, value: Any, call: Packing, path: str, out: bytearray, at: int) -> None:
    element = type_.element
    assert element is not None
    for i, item in enumerate(_sequence(type_, value, type_.count, call, path, ValueError)):
        call.pack(element, item, f"{path}[{i}]", out, at + i * element.size)


def fields_of(type_: KernelType, value: Any, where: str) -> list[Any]:
    """The values of a struct's fields, in its order; those of empty fields may be missing."""
    names = [name for name, _, _ in type_.fields]
    needed = [name for name, inner, _ in type_.fields if inner.kind != "empty"]
    listed = ", ".join(names)
    python = dict(zip(names, field_names(names), strict=True))
    if isinstance(value, Mapping):
        found = {}
        for key, item in value.items():
            name = key if key in names else next((n for n in names if python[n] == key), None)
            if name is None:
                raise TypeError(f"{where}: {type_.name} has no field '{key}'; its fields are {listed}")
            found[name] = item
        missing = [name for name in needed if name not in found]
        if missing:
            raise TypeError(f"{where}: {type_.name} lacks a value for '{missing[0]}'; its fields are {listed}")
        return [found.get(name) for name in names]
    if isinstance(value, tuple):
        if len(value) == len(names):
            return list(value)
        if len(value) == len(needed):
            rest = iter(value)
            return [next(rest) if name in needed else None for name in names]
        raise TypeError(f"{where}: {type_.name} has {len(names)} fields ({listed}), got {len(value)} values")
    if not isinstance(value, (list, str, int, float)) and value is not None:
        found = {n: getattr(value, p) for n in names if hasattr(value, p := n) or hasattr(value, p := python[n])}
        missing = [n for n in needed if n not in found]
        if missing and dataclasses.is_dataclass(value):
            raise TypeError(
                f"{where}: {type(value).__name__} has no '{missing[0]}'; the fields of {type_.name} are {listed}"
            )
        if not missing:
            return [found.get(n) for n in names]
    raise ValueError(
        f"{where}: expected a {type_.name} (a tuple of its fields, a dict, its namedtuple or a dataclass: {listed}), "
        f"got {summary(value)}"
    )


def _pack_struct(type_: KernelType, value: Any, call: Packing, path: str, out: bytearray, at: int) -> None:
    values = fields_of(type_, value, call.where(path))
    for (name, inner, offset), item in zip(type_.fields, values, strict=True):
        if inner.kind != "empty":
            call.pack(inner, item, f"{path}.{name}", out, at + offset)


def _ends_in_bool(type_: KernelType) -> bool:
    """Whether a tuple of a value and a bool may be the struct itself."""
    return type_.kind in ("struct", "tuple") and len(type_.fields) == 2 and type_.fields[1][1].scalar == "bool"


def _pack_optional(type_: KernelType, value: Any, call: Packing, path: str, out: bytearray, at: int) -> None:
    (_, inner, _), (_, _, has_at) = type_.fields
    has = value is not None
    if isinstance(value, tuple) and len(value) == 2 and isinstance(value[1], bool) and not _ends_in_bool(inner):
        value, has = value
    if has:
        call.pack(inner, value, f"{path}.value", out, at)
    out[at + has_at] = has


def _pack_tuple(type_: KernelType, value: Any, call: Packing, path: str, out: bytearray, at: int) -> None:
    items = _sequence(type_, value, len(type_.fields), call, path, TypeError)
    for i, ((_, inner, offset), item) in enumerate(zip(type_.fields, items, strict=True)):
        if inner.kind != "empty":
            call.pack(inner, item, f"{path}[{i}]", out, at + offset)


def _pack_pointer(type_: KernelType, value: Any, call: Packing, path: str, out: bytearray, at: int) -> None:
    if isinstance(value, int) and not isinstance(value, bool):
        if not 0 <= value < 1 << 64:
            raise TypeError(f"{call.where(path)}: {value} is not an address, which is a number of 64 bits")
        struct.pack_into("Q", out, at, value)
        return
    where = call.where(path)
    info = read_tensor(value, where)
    if info is None:
        raise TypeError(f"{where}: expected an address or a contiguous tensor for {type_.name}, got {summary(value)}")
    call.use(info, path)
    element = type_.element
    assert element is not None
    if element.kind in ("scalar", "vector", "matrix"):
        check_view(KernelType("view", type_.name, element=element), info, where)
    expected = 1
    for size, stride in zip(reversed(info.shape), reversed(info.strides), strict=True):
        if size > 1 and stride != expected:
            raise TensorError(
                f"{where}: a pointer needs a contiguous tensor, got {summary(value)}; pass tensor.contiguous()"
            )
        expected *= size
    struct.pack_into("Q", out, at, info.address)


def _pack_view(type_: KernelType, value: Any, call: Packing, path: str, out: bytearray, at: int) -> None:
    pack_view(type_, value, call, path, out, at)


def _pack_nothing(type_: KernelType, value: Any, call: Packing, path: str, out: bytearray, at: int) -> None:
    del type_, value, call, path, out, at


_PACKERS: dict[str, Callable[[KernelType, Any, Packing, str, bytearray, int], None]] = {
    "scalar": _pack_scalar,
    "enum": _pack_scalar,
    "vector": _pack_vector,
    "matrix": _pack_matrix,
    "array": _pack_array,
    "struct": _pack_struct,
    "view": _pack_view,
    "diff_view": pack_diff_view,
    "optional": _pack_optional,
    "tuple": _pack_tuple,
    "pointer": _pack_pointer,
    "empty": _pack_nothing,
}

__all__ = ["Packing", "fields_of", "put_number", "to_number", "torch_module"]
