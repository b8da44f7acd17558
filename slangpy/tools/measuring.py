"""What calls cost: kernels made ahead of their first call, and times beside the device's own bandwidth."""

from __future__ import annotations

import functools
import html
import math
import statistics
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._native import BufferUsage, DeviceType
from ..function import FunctionNode
from ..tensor import Tensor


def precompile(calls: Iterable[Any]) -> int:
    """Plans calls and compiles their kernels without running them; what is made is kept on disk as by the calls.

    calls: `functools.partial(f, ...)` or tuples `(f, *args)`, with values as calls take them (what counts is their types,
    ranks and layouts, not their contents). Returns how many there were. Errors are those of the calls.
    """
    count = 0
    for call in calls:
        if isinstance(call, functools.partial):
            function, args, kwargs = call.func, call.args, call.keywords
        elif isinstance(call, tuple) and call:
            function, args, kwargs = call[0], call[1:], {}
        else:
            raise TypeError(f"precompile: expected functools.partial(f, ...) or a tuple (f, *args), got {call!r}")
        if not isinstance(function, FunctionNode):
            raise TypeError(f"precompile: expected a function of a module, got {type(function).__name__}")
        function._build(*args, **kwargs)
        count += 1
    return count


@dataclass(frozen=True)
class Benchmark:
    """Times of one call, medians in seconds. True bandwidths depend on caches: measure with the sizes that matter."""

    function: str
    device: str
    calls: int
    seconds: float
    """From call to call, the device's work included."""
    host_seconds: float
    """Until the call returns; on the CPU device that is when its work is done."""
    device_seconds: float
    """Of the call's kernels and copies, by the device's clock (`device.profile()`); 0 on the null device."""
    overhead: float
    """Until a call returns that finds the device idle, without the kernels where these run meanwhile (CPU device)."""
    bytes: int
    """Of all tensors and arrays among the arguments and of the result, each counted once."""
    copy_bandwidth: float
    """Bytes per second, read and written, of the device's own copy of as many bytes."""

    @property
    def bandwidth(self) -> float:
        """Bytes per second."""
        return self.bytes / self.seconds

    @property
    def share(self) -> float:
        """Of the bandwidth of the copy; nan where nothing is moved."""
        return self.bandwidth / self.copy_bandwidth if self.copy_bandwidth else math.nan

    @property
    def rows(self) -> list[tuple[str, str]]:
        """What is printed: names and values with units."""
        rows = [
            ("time", _time(self.seconds)),
            ("host", _time(self.host_seconds)),
            ("kernels", _time(self.device_seconds)),
            ("overhead", _time(self.overhead)),
            ("moved", f"{self.bytes / 1e6:.6g} MB, {self.bandwidth / 1e9:.4g} GB/s"),
        ]
        if self.copy_bandwidth:
            rows.append(("of a copy", f"{self.share:.2f} ({self.copy_bandwidth / 1e9:.4g} GB/s)"))
        return rows

    @property
    def _title(self) -> str:
        return f"{self.function} on {self.device}, {self.calls} calls"

    def __str__(self) -> str:
        return "\n".join([self._title, *(f"  {name:10}  {value}" for name, value in self.rows)])

    def _repr_html_(self) -> str:
        rows = "".join(f"<tr><th>{html.escape(name)}</th><td>{html.escape(value)}</td></tr>" for name, value in self.rows)
        return f"<table><caption>{html.escape(self._title)}</caption><tbody>{rows}</tbody></table>"


def _time(seconds: float) -> str:
    return f"{seconds * 1e6:.4g} us" if seconds < 1e-3 else f"{seconds * 1e3:.4g} ms"


def benchmark(function: FunctionNode, /, *args: Any, seconds: float = 0.5, **kwargs: Any) -> Benchmark:
    """Runs a call again and again for about `seconds`, after one call that compiles and warms up.

    Arguments that the function writes are written each time. With arguments on the host, what is measured includes
    their way to the device; pass Tensors and `_result` to measure kernels.
    """
    if not isinstance(function, FunctionNode):
        raise TypeError(f"benchmark: expected a function of a module, got {type(function).__name__}")
    if not seconds > 0:
        raise ValueError(f"benchmark: 'seconds' must be more than 0, got {seconds}")
    device = function.module.device
    result = function(*args, **kwargs)
    device.wait()
    returned = isinstance(kwargs.get("_result"), (str, type, type(None)))  # else it stands among the arguments
    moved = sum(_sizes([*args, *kwargs.values(), *([result] if returned else [])]))
    call = functools.partial(function, *args, **kwargs)
    calls, whole, host = _measure(device, call, seconds)
    kernels, overhead = _apart(device, call, seconds / 4)
    copied = _copy_bandwidth(device, moved, seconds / 4) if moved else 0.0
    return Benchmark(function.label, device.info.adapter_name, calls, whole, host, kernels, overhead, moved, copied)


def _sizes(values: Iterable[Any]) -> Iterable[int]:
    for value in values:
        if isinstance(value, Tensor):
            yield value.element_count * value.layout.stride
        elif isinstance(value, np.ndarray) or (hasattr(value, "nbytes") and hasattr(value, "shape")):
            yield int(value.nbytes)
        elif isinstance(value, Mapping):
            yield from _sizes(value.values())
        elif isinstance(value, (list, tuple)):
            yield from _sizes(value)


def _measure(device: Any, call: Callable[[], Any], seconds: float) -> tuple[int, float, float]:
    """Number of calls, and the median over batches of the time from call to call and until a call returns."""
    start = time.perf_counter()
    call()
    device.wait()
    once = max(time.perf_counter() - start, 1e-7)
    batch = max(1, min(10000, int(seconds / 10 / once)))
    whole: list[float] = []
    host: list[float] = []
    end = time.perf_counter() + seconds
    while len(whole) < 3 or time.perf_counter() < end:
        start = time.perf_counter()
        for _ in range(batch):
            call()
        returned = time.perf_counter()
        device.wait()
        whole.append((time.perf_counter() - start) / batch)
        host.append((returned - start) / batch)
    return batch * len(whole), statistics.median(whole), statistics.median(host)


def _apart(device: Any, call: Callable[[], Any], seconds: float) -> tuple[float, float]:
    """Median time of a call's kernels, and of what a call that finds the device idle takes beside kernels that it waits for."""
    kernels: list[float] = []
    returned: list[float] = []
    end = time.perf_counter() + seconds
    while len(kernels) < 3 or (len(kernels) < 100 and time.perf_counter() < end):
        device.wait()
        start = time.perf_counter()
        call()
        returned.append(time.perf_counter() - start)
        with device.profile() as profile:
            call()
        kernels.append(sum(event.duration for event in profile.events))
    median = statistics.median(kernels)
    waits = median if device.info.type == DeviceType.cpu else 0.0
    return median, max(statistics.median(returned) - waits, 0.0)


def _copy_bandwidth(device: Any, moved: int, seconds: float) -> float:
    """Of a copy that moves this many bytes: half are read, half are written."""
    size = max(moved // 2 // 16 * 16, 16)
    usage = BufferUsage.copy_source | BufferUsage.copy_destination
    source, target = (device.create_buffer(size=size, usage=usage) for _ in range(2))
    source.copy_from_numpy(np.random.default_rng(0).integers(0, 256, size, np.uint8))

    def copy() -> None:
        encoder = device.create_command_encoder()
        encoder.copy_buffer(target, 0, source, 0, size)
        device.submit_command_buffer(encoder.finish())

    return 2 * size / _measure(device, copy, seconds)[1]


__all__ = ["Benchmark", "benchmark", "precompile"]
