"""compare(): one call on several devices, and where their results differ."""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .. import _native
from ..device.opening import create_device
from ..function import FunctionCore, FunctionNode
from ..module import Module
from ..tensor import Tensor


@dataclass(frozen=True)
class Difference:
    """How one result of a device, or one argument that it wrote, differs from that of the first device."""

    device: str
    name: str
    """`result`, or the argument, with the path to the part: `result["x"]`."""
    count: int
    """Numbers beyond the tolerances, of `size`."""
    size: int
    largest_absolute: float
    largest_relative: float
    index: tuple[int, ...]
    """Where the absolute difference is largest; of complete arrays, the last index of vectors included."""
    expected: Any
    found: Any
    """The numbers there: of the first device, and of this one."""
    ulps: int | None
    """Floats that lie between these two numbers, plus one; None for integers and where one is not finite."""

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"

    def __str__(self) -> str:
        ulps = "" if self.ulps is None else f", {self.ulps} ulps"
        at = "".join(f"[{i}]" for i in self.index)
        return (
            f"{self.device}: {self.name}{at} is {self.found}, not {self.expected}: "
            f"absolute {self.largest_absolute:.3g}{ulps}, largest relative {self.largest_relative:.3g}; "
            f"{self.count} of {self.size} beyond the tolerances"
        )


@dataclass
class ComparisonReport:
    """What `compare` found. True when every number is within the tolerances; printed, it shows each difference."""

    function: str
    devices: list[str]
    """The first is what the others are compared with."""
    rtol: float
    atol: float
    differences: list[Difference] = field(default_factory=list)
    """One for each device and result that is not equal bit by bit, those within the tolerances included."""

    @property
    def ok(self) -> bool:
        """Whether all devices agree."""
        return not any(d.count for d in self.differences)

    def __bool__(self) -> bool:
        return self.ok

    def __str__(self) -> str:
        head = f"{self.function} on {', '.join(self.devices)}: "
        if not self.differences:
            return head + "equal"
        state = "equal within the tolerances" if self.ok else "different"
        return "\n  ".join([head + f"{state} (rtol {self.rtol:g}, atol {self.atol:g})", *map(str, self.differences)])


def compare(
    function: FunctionNode,
    /,
    *args: Any,
    devices: Sequence[Any] | None = None,
    rtol: float = 1e-5,
    atol: float = 1e-6,
    show: bool = True,
    **kwargs: Any,
) -> ComparisonReport:
    """Runs one call on several devices and prints where they differ.

    args, kwargs: as for the call. Arrays and `Tensor`s are copied for each device, so that none of them is written.
    devices: Devices, types or names, the reference first; by default the function's device and the CPU.
    rtol, atol: a number differs when it is more than `atol + rtol * |number of the first device|` off.
    show: print the report. It is returned as well.

    Raises TypeError for arguments that cannot be brought to another device (textures, buffers, pointers).
    """
    if not isinstance(function, FunctionNode):
        raise TypeError(f"compare: 'function' must be a function of a module, got {type(function).__name__}")
    opened: list[Any] = []
    try:
        used = _open(function, devices, opened)
        names = _names(used)
        report = ComparisonReport(function.label, names, rtol, atol)
        first: dict[str, np.ndarray] = {}
        for device, name in zip(used, names, strict=True):
            found = dict(_run(function, device, args, kwargs))
            first = first or found
            report.differences += _differences(name, first, found, rtol, atol)
    finally:
        for device in opened:
            device.close()
    if show:
        print(report)
    return report


def _open(function: FunctionNode, devices: Sequence[Any] | None, opened: list[Any]) -> list[Any]:
    """The devices to use; those that had to be opened are noted in `opened`."""
    own = function.module.device
    wanted = [own, _native.DeviceType.cpu] if devices is None else list(devices)
    used: list[Any] = []
    for item in wanted:
        if isinstance(item, str):
            if item.lower() not in _native.DeviceType.__members__:
                raise ValueError(
                    f"compare: 'devices' has {item!r}; types are {', '.join(_native.DeviceType.__members__)}"
                )
            item = _native.DeviceType[item.lower()]
        if isinstance(item, _native.DeviceType):
            if item is own.info.type:
                item = own
            else:
                item = create_device(item)
                opened.append(item)
        elif not isinstance(item, _native.Device):
            raise TypeError(f"compare: 'devices' takes Devices, types and names, got {type(item).__name__}")
        if item not in used:
            used.append(item)
    if len(used) < 2:
        raise ValueError(f"compare: '{function.label}' would run on {len(used)} device; name two or more in 'devices'")
    return used


def _names(devices: list[Any]) -> list[str]:
    types = [device.info.type.name for device in devices]
    return [f"{name} {i}" if types.count(name) > 1 else name for i, name in enumerate(types)]


# --- the call on another device


def _module_on(module: Module, device: Any) -> Module:
    if module.device is device:
        return module
    if module.link:
        raise ValueError(
            f"compare: module '{module._stem}' has linked modules, which cannot be loaded on another device"
        )
    path, source = module._path, module._source
    if path is None and not source:
        raise ValueError(
            f"compare: module '{module._stem}' was made from a compiled module; load it with Module.load_from_file or "
            "load_from_source"
        )
    if path is not None:
        return Module.load_from_file(device, path, module.options)
    return Module.load_from_source(device, module._stem, source, module.options)


def _function_on(function: FunctionNode, device: Any) -> FunctionNode:
    module, core = _module_on(function.module, device), function.core
    struct = None if core.struct is None else module.layout.require_type_by_name(core.struct.full_name)
    node = FunctionNode.__new__(FunctionNode)
    other = FunctionCore(module, core.name, struct, core.is_constructor)
    node._setup(module, other, function.options, None, function._globals, function._bound, 0)
    return node


def _argument_on(value: Any, module: Module, name: str) -> Any:
    """A copy of an argument for the module's device."""
    if isinstance(value, Tensor):
        type_ = module.layout.require_type_by_name(value.dtype.full_name)
        copy = Tensor.empty(module.device, tuple(value.shape), type_)
        copy.copy_from_numpy(value.to_numpy())
        return copy
    if isinstance(value, np.ndarray):
        return value.copy()
    if isinstance(value, Mapping):
        return {key: _argument_on(item, module, f"{name}[{key!r}]") for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_argument_on(item, module, f"{name}[{i}]") for i, item in enumerate(value))
    if isinstance(value, (_native.Texture, _native.TextureView, _native.Buffer, _native.Sampler, _native.AccelerationStructure)):
        raise TypeError(f"compare: '{name}' is a {type(value).__name__} of one device; pass a Tensor or an array")
    clone = getattr(value, "clone", None)  # of torch tensors
    return clone() if callable(clone) else value


def _run(
    function: FunctionNode, device: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Iterator[tuple[str, np.ndarray]]:
    """The numbers of the result and of all arguments after the call, by name."""
    node = _function_on(function, device)
    given = [_argument_on(value, node.module, f"argument {i}") for i, value in enumerate(args)]
    named = {key: _argument_on(value, node.module, f"argument '{key}'") for key, value in kwargs.items()}
    result = node(*given, **named)
    yield from _numbers(result, "result")
    for i, value in enumerate(given):
        yield from _numbers(value, f"argument {i}")
    for key, value in named.items():
        yield from _numbers(value, f"argument '{key}'")


def _numbers(value: Any, name: str) -> Iterator[tuple[str, np.ndarray]]:
    if value is None or isinstance(value, str):
        return
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _numbers(item, f"{name}[{key!r}]")
    elif isinstance(value, Tensor) or hasattr(value, "to_numpy"):
        yield name, np.asarray(value.to_numpy())
    elif isinstance(value, (list, tuple)):
        for i, item in enumerate(value):
            yield from _numbers(item, f"{name}[{i}]")
    elif hasattr(value, "detach"):
        yield name, value.detach().cpu().numpy()
    elif hasattr(value, "primal"):
        yield from _numbers(value.primal, f"{name}.primal")
        yield from _numbers(value.grad, f"{name}.grad")
    elif hasattr(value, "value"):
        yield from _numbers(value.value, name)
    else:
        array = np.asarray(value)
        if array.dtype.kind in "biuf":
            yield name, array


# --- differences


def _differences(
    device: str, first: dict[str, np.ndarray], found: dict[str, np.ndarray], rtol: float, atol: float
) -> Iterator[Difference]:
    for name, expected in first.items():
        other = found[name]
        if expected.dtype.names is not None:
            for part in expected.dtype.names:
                yield from _differences(
                    device, {f"{name}.{part}": expected[part]}, {f"{name}.{part}": other[part]}, rtol, atol
                )
        elif not np.array_equal(expected, other, equal_nan=expected.dtype.kind == "f"):
            yield _difference(device, name, expected, other, rtol, atol)


def _difference(
    device: str, name: str, expected: np.ndarray, found: np.ndarray, rtol: float, atol: float
) -> Difference:
    a, b = expected.astype(np.float64), found.astype(np.float64)
    with np.errstate(all="ignore"):
        off = np.abs(a - b)
        off[(a == b) | (np.isnan(a) & np.isnan(b))] = 0
        off[np.isnan(off)] = np.inf
        limit = np.where(np.isfinite(a), atol + rtol * np.abs(a), 0)
        relative = np.where(off > 0, off / np.abs(a), 0)
    index = np.unravel_index(int(np.argmax(off)), off.shape)
    here, there = expected[index], found[index]
    return Difference(
        device, name, int((off > limit).sum()), off.size, float(off[index]), float(np.nanmax(relative)),
        tuple(int(i) for i in index), here.item(), there.item(), _ulps(here, there),
    )  # fmt: skip


def _ulps(a: Any, b: Any) -> int | None:
    if a.dtype.kind != "f" or not (np.isfinite(a) and np.isfinite(b)):
        return None
    bits = {2: np.int16, 4: np.int32, 8: np.int64}[a.dtype.itemsize]
    low = int(np.iinfo(bits).min)

    def place(x: Any) -> int:
        """Where a float stands in the order of all floats."""
        n = int(x.view(bits))
        return n if n >= 0 else low - n

    return abs(place(a) - place(b.astype(a.dtype)))
