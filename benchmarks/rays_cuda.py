"""The queries of rays.py as a CUDA kernel by hand (rays_cuda.cu), over the hierarchy of a scene of one mesh."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import slangpy as spy
from slangpy import _native, rays

SOURCE = Path(__file__).with_suffix(".cu").read_bytes()
GROUP = 128
_MAJOR, _MINOR = 75, 76
"""Numbers of the driver's attributes: the compute capability."""


class Driver:
    """The CUDA driver, in the context of a device."""

    def __init__(self, device: spy.Device) -> None:
        self._cuda = ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
        device.set_cuda_context_current()
        number, major, minor = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
        self._call("cuCtxGetDevice", ctypes.byref(number))
        self._call("cuDeviceGetAttribute", ctypes.byref(major), _MAJOR, number)
        self._call("cuDeviceGetAttribute", ctypes.byref(minor), _MINOR, number)
        self.arch = f"sm_{major.value}{minor.value}"

    def function(self, name: str) -> ctypes.c_void_p:
        code = _native.cuda_compile(SOURCE, name, self.arch)
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        self._call("cuModuleLoadData", ctypes.byref(module), code)
        self._call("cuModuleGetFunction", ctypes.byref(function), module, name.encode())
        return function

    def launch(self, function: ctypes.c_void_p, groups: int, arguments: Any) -> None:
        self._call("cuLaunchKernel", function, groups, 1, 1, GROUP, 1, 1, 0, None, arguments, None)

    def wait(self) -> None:
        self._call("cuCtxSynchronize")

    def _call(self, name: str, *arguments: Any) -> None:
        status = getattr(self._cuda, name)(*arguments)
        if status != 0:
            raise RuntimeError(f"{name} returned {status}")


def make(device: spy.Device, scene: rays.Scene) -> Callable[..., Any]:
    """What prepares calls (see Tracer in rays.py)."""
    driver = Driver(device)
    kernels = [driver.function(name) for name in ("closest", "occluded")]
    tables = [scene.get_this()[name] for name in ("nodes", "primitives")]

    def prepare(origins: np.ndarray[Any, Any], directions: np.ndarray[Any, Any], any_hit: bool) -> Any:
        parts = [spy.Tensor.from_numpy(device, part.reshape(-1)) for part in (origins, directions)]
        found = spy.Tensor.empty(device, (len(origins),), "int")
        values = [ctypes.c_uint64(t.storage.device_address) for t in (*tables, *parts, found)]
        count = ctypes.c_int(len(origins))
        arguments = (ctypes.c_void_p * 6)(*(ctypes.addressof(value) for value in (*values, count)))
        device.wait()

        def run(keep: Any = (values, count, parts)) -> None:
            driver.launch(kernels[any_hit], -(-len(origins) // GROUP), arguments)
            driver.wait()

        return run, found.to_numpy

    return prepare
