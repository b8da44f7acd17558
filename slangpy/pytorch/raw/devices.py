"""The devices that kernels run on, and kernels in executable form: through the caches and compilers of all other kernels."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

from slangpy import _native
from slangpy.base.locks import new_rlock
from slangpy.compiler.executable import cached_executable, executable_key
from slangpy.compiler.package_files import library_hash, planner_hash
from slangpy.device import Device
from slangpy.device.current import stack
from slangpy.errors import CompileError
from slangpy.pytorch.raw import host
from slangpy.pytorch.raw.cuda import cuda_layout, cuda_options, cuda_text
from slangpy.pytorch.raw.options import LoadOptions
from slangpy.pytorch.raw.program import KernelRecord, ModuleRecord
from slangpy.pytorch.raw.scan import EmittedKernel, beyond_host
from slangpy.pytorch.raw.tensors import torch_module

KIND = "kernel_code"
"""Of compiled kernels in the disk cache."""
SMALL = 4000
"""Lines of a program up to which all its kernels are compiled at once."""
_DeviceKey = tuple[str, int]
_Chosen = list[tuple[KernelRecord, EmittedKernel]]
_devices: dict[_DeviceKey, Any] = {}
_lock = new_rlock()


def device_of(key: _DeviceKey) -> Any:
    """The device for tensors of a place; opened at the first use, and not made the current one."""
    found = _devices.get(key)
    if found is None or found.is_closed:
        with _lock:
            found = _devices.get(key)
            if found is None or found.is_closed:
                found = _devices[key] = _open(key)
    return found


def _open(key: _DeviceKey) -> Any:
    opened = stack()
    before = list(opened)
    try:
        if key[0] == "cpu":
            return Device(type=_native.DeviceType.cpu, label="loadModule")
        adapters = Device.enumerate_adapters(_native.DeviceType.cuda)
        if key[1] >= len(adapters):
            raise ValueError(f"there is no cuda:{key[1]}; {len(adapters)} CUDA devices exist")
        torch = torch_module()
        if torch is not None:
            torch.zeros(1, device=f"cuda:{key[1]}")  # makes torch's context, which the device then shares
        return Device(type=_native.DeviceType.cuda, adapter_luid=adapters[key[1]].luid, label="loadModule")
    finally:
        opened[:] = before


class Programs:
    """The kernels of one module, compiled for the devices that have asked for them."""

    def __init__(self, record: ModuleRecord, options: LoadOptions, log: Any) -> None:
        self.record = record
        self.options = options
        self._log = log
        self._kernels: dict[tuple[_DeviceKey, str, bool], Any] = {}
        self._lock = new_rlock()
        self._apart = False  # whether each kernel is compiled for itself, since one of them does not compile

    def kernel(self, key: _DeviceKey, record: KernelRecord, derivative: str, wide: bool = False) -> Any:
        """The native kernel; compiled, or taken from disk, at the first use. wide: the record is a wide one."""
        emitted = next((e for e in record.emitted if e.derivative == derivative), None)
        if emitted is None:
            raise ValueError(f"`{record.name}` has no {'backward' if derivative == 'bwd' else 'forward'} derivative: mark it "
                             "[Differentiable]")  # fmt: skip
        device = device_of(key)
        name = (key, emitted.symbol, wide)
        found = self._kernels.get(name)
        if found is not None and found[0] is device:
            return found[1]
        with self._lock:
            found = self._kernels.get(name)
            if found is None or found[0] is not device:
                if _is_capturing(key):
                    raise RuntimeError(f"{record.name}: the kernel would be compiled while a CUDA graph is being recorded; call "
                                       "m.compile() before")  # fmt: skip
                self._build(key, device, record, emitted, wide)
                found = self._kernels[name]
        return found[1]

    def _build(
        self, key: _DeviceKey, device: Any, record: KernelRecord, emitted: EmittedKernel, wide: bool
    ) -> None:
        program = self.record.program
        if key[0] == "cpu":
            beyond = beyond_host(program, emitted.symbol)
            if beyond:
                raise NotImplementedError(
                    f"{record.name} uses {beyond}, which the CPU cannot run; run it on CUDA: pass tensors.cuda()"
                )
        chosen = [(record, emitted)]
        if program.count("\n") < SMALL and not (self._apart or wide or self.options.checks_bounds):  # checks name their kernel
            chosen = [
                (r, e)
                for r in self.record.kernels
                for e in r.emitted
                if not r.trouble and (key[0] != "cpu" or not beyond_host(program, e.symbol))
            ]
        build = self._build_host if key[0] == "cpu" else self._build_cuda
        try:
            build(key, device, chosen, wide)
        except CompileError:
            if len(chosen) == 1:
                raise
            self._apart = True  # the fault may be another kernel's
            build(key, device, [(record, emitted)], wide)

    def _build_host(self, key: _DeviceKey, device: Any, chosen: _Chosen, wide: bool) -> None:
        def text() -> bytes:
            return host.host_program(self.record.program, [(e, r.places) for r, e in chosen], wide).encode()

        folders = [f"-I{path}" for path in self.options.search_paths]
        options = {"float_mode": "default", "downstream_args": [*host.FLAGS, *folders]}
        code = self._code(device, text, chosen, options, wide)
        for record, emitted in chosen:
            layout = _native._make_program_layout(
                entry_point_name=host.exported(emitted), scope_sizes=[0, host.HEADER_BYTES + record.size]
            )
            self._kernels[key, emitted.symbol, wide] = (device, device.create_kernel(code, layout, emitted.symbol))

    def _build_cuda(self, key: _DeviceKey, device: Any, chosen: _Chosen, wide: bool) -> None:
        symbols = [e.symbol for _, e in chosen]
        checked = _label(*chosen[0]) if self.options.checks_bounds else ""
        code = self._code(
            device, lambda: cuda_text(self.record, symbols, checked, wide), chosen, cuda_options(self.options), wide
        )
        for record, emitted in chosen:
            kernel = device.create_kernel(code, cuda_layout(record, emitted), _label(record, emitted))
            self._kernels[key, emitted.symbol, wide] = (device, kernel)

    def _code(
        self, device: Any, text: Callable[[], bytes], chosen: _Chosen, options: dict[str, Any], wide: bool
    ) -> bytes:
        names = ", ".join(_label(record, emitted) for record, emitted in chosen)
        symbols = " ".join(emitted.symbol for _, emitted in chosen)
        ours = (planner_hash(), library_hash())  # our headers are around the program
        key = executable_key(device, options, self.record.program, symbols, self.record.headers, *ours, *["wide"] * wide)
        start = time.perf_counter()

        def compile() -> bytes:
            try:
                return device.compile(text(), symbols.split(" ")[0], label=chosen[0][0].name, **options)
            except CompileError:
                raise
            except RuntimeError as error:
                raise CompileError(f"{names}: {error}") from None

        made = cached_executable(device, key, names, compile, KIND)
        seconds = time.perf_counter() - start
        if made.is_new:
            self._log(f"{names}: {device.info.api_name}, {seconds * 1e3:.0f} ms")
        else:
            self._log(f"{names}: compiled code from the cache")
        if made.is_new and seconds > 2 and sys.stderr.isatty():
            print(f"[slangpy] compiled {names} in {seconds:.1f} s", file=sys.stderr)
        return made.code


def _label(record: KernelRecord, emitted: EmittedKernel) -> str:
    return f"{record.name}.{emitted.derivative}" if emitted.derivative else record.name


def _is_capturing(key: _DeviceKey) -> bool:
    torch = torch_module()
    return key[0] == "cuda" and torch is not None and torch.cuda.is_current_stream_capturing()
