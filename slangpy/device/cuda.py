"""The CUDA context of a thread."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from slangpy import _native
from slangpy._native import DeviceType, NativeHandle, NativeHandleType

_DRIVER = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"


def get_cuda_current_context_native_handles() -> list[NativeHandle]:
    """CUDA device and context of the calling thread; RuntimeError when there is none."""
    try:
        cuda = ctypes.CDLL(_DRIVER)
    except OSError:
        raise RuntimeError("No current CUDA context found. The CUDA driver is not installed.") from None
    context, device = ctypes.c_void_p(), ctypes.c_int()
    if cuda.cuCtxGetCurrent(ctypes.byref(context)) != 0 or not context.value:
        raise RuntimeError('No current CUDA context found. Make one first, for instance with torch.zeros(1, device="cuda")')
    cuda.cuCtxGetDevice(ctypes.byref(device))
    return [
        NativeHandle(NativeHandleType.CUdevice, device.value),
        NativeHandle(NativeHandleType.CUcontext, context.value),
    ]


@contextmanager
def context_scope(device: _native.Device) -> Iterator[None]:
    """Makes the CUDA context of `device` current inside `with`; no effect off CUDA."""
    if device.type is not DeviceType.cuda:
        yield
        return
    cuda = ctypes.CDLL(_DRIVER)
    before = ctypes.c_void_p()
    cuda.cuCtxGetCurrent(ctypes.byref(before))
    device.set_cuda_context_current()
    try:
        yield
    finally:
        cuda.cuCtxSetCurrent(before)
