"""Python functions as targets of XLA's foreign function interface: arrays on the host are used where they lie.

XLA's structs are those of `xla/ffi/api/c_api.h`, which jaxlib brings and keeps stable. `jax.pure_callback` does the same
with a copy of each array.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from ctypes import POINTER, c_char_p, c_int, c_int64, c_size_t, c_uint32, c_void_p
from typing import Any

import jax
import numpy as np

NAME = "slangpy_call"
_METADATA, _EXECUTE, _UNKNOWN_ERROR = 1, 3, 2
_DTYPES = {
    1: "bool", 2: "int8", 3: "int16", 4: "int32", 5: "int64", 6: "uint8", 7: "uint16", 8: "uint32", 9: "uint64",
    10: "float16", 11: "float32", 12: "float64", 16: "bfloat16",
}  # fmt: skip


class _Struct(ctypes.Structure):
    """Each begins with its size and a list of extensions."""

    _fields_ = [("struct_size", c_size_t), ("extensions", c_void_p)]


class _Version(_Struct):
    _fields_ = [("major", c_int), ("minor", c_int)]


class _Metadata(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("version", _Version), ("traits", c_uint32)]


class _Extension(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("type", c_int), ("next", c_void_p), ("metadata", POINTER(_Metadata))]


class _ErrorArguments(_Struct):
    _fields_ = [("message", c_char_p), ("code", c_int)]


class _Api(_Struct):
    _fields_ = [
        ("version", _Version), ("internal", c_void_p),
        ("create_error", ctypes.CFUNCTYPE(c_void_p, POINTER(_ErrorArguments))),
    ]  # fmt: skip


class _Buffer(_Struct):
    _fields_ = [("dtype", c_int), ("data", c_void_p), ("rank", c_int64), ("dims", POINTER(c_int64))]


class _Buffers(_Struct):
    _fields_ = [("size", c_int64), ("types", c_void_p), ("items", POINTER(POINTER(_Buffer)))]


class _Scalar(ctypes.Structure):
    _fields_ = [("dtype", c_int), ("value", POINTER(c_int64))]


class _Attributes(_Struct):
    _fields_ = [("size", c_int64), ("types", c_void_p), ("names", c_void_p), ("items", POINTER(POINTER(_Scalar)))]


class _Frame(_Struct):
    _fields_ = [
        ("api", POINTER(_Api)), ("context", c_void_p), ("stage", c_int), ("args", _Buffers), ("rets", _Buffers),
        ("attributes", _Attributes),
    ]  # fmt: skip


class _Memory:
    def __init__(self, data: int, shape: tuple[int, ...], dtype: np.dtype, read_only: bool) -> None:
        self.__array_interface__ = {
            "data": (data, read_only), "shape": shape, "typestr": f"|V{dtype.itemsize}", "version": 3,
        }  # fmt: skip


def _array(buffer: _Buffer, read_only: bool) -> np.ndarray:
    """The memory of a buffer, for as long as the call lasts."""
    shape = tuple(buffer.dims[i] for i in range(buffer.rank))
    dtype = np.dtype(getattr(jax.numpy, _DTYPES[buffer.dtype]))
    if not buffer.data or 0 in shape:
        return np.zeros(shape, dtype)
    return np.asarray(_Memory(buffer.data, shape, dtype, read_only)).view(dtype)


Task = Callable[[Sequence[np.ndarray], Sequence[np.ndarray]], None]
_tasks: list[Task] = []
"""By the number that compiled programs hold. XLA does not say when the last of them is dropped, so tasks stay."""


def _run(frame: _Frame) -> None:
    args = [_array(frame.args.items[i].contents, True) for i in range(frame.args.size)]
    outputs = [_array(frame.rets.items[i].contents, False) for i in range(frame.rets.size)]
    _tasks[frame.attributes.items[0].contents.value[0]](args, outputs)


def _handle(pointer: Any) -> int | None:
    """What XLA calls: once to ask for the version, then in each stage; an error is given back as an object of XLA's."""
    frame = pointer.contents
    if frame.extensions:
        extension = ctypes.cast(frame.extensions, POINTER(_Extension)).contents
        if extension.type == _METADATA:
            version = extension.metadata.contents.version
            version.major, version.minor = (frame.api.contents.version.major, frame.api.contents.version.minor)
            return None
    if frame.stage != _EXECUTE:
        return None
    try:
        _run(frame)
    except BaseException as error:  # nothing may pass through XLA's own code
        text = f"{type(error).__name__}: {error}".encode()
        given = _ErrorArguments(ctypes.sizeof(_ErrorArguments), None, text, _UNKNOWN_ERROR)
        return frame.api.contents.create_error(ctypes.byref(given))
    return None


_handler = ctypes.CFUNCTYPE(c_void_p, POINTER(_Frame))(_handle)
_registered = False


def available() -> bool:
    """Whether this JAX has the interface; it is registered with the first question."""
    global _registered
    if not hasattr(jax, "ffi"):  # before 0.5
        return False
    if not _registered:
        jax.ffi.register_ffi_target(NAME, jax.ffi.pycapsule(_handler), platform="cpu")
        _registered = True
    return True


def add_task(task: Task) -> int:
    _tasks.append(task)
    return len(_tasks) - 1


def call(task: int, result: Any, *arrays: Any) -> Any:
    """Runs a task within a JAX program on the CPU: it reads arrays and fills those of `result`'s shapes."""
    return jax.ffi.ffi_call(NAME, result, vmap_method="sequential")(*arrays, task=np.int64(task))
