"""NumPy dtypes of Slang types, and the reverse."""

from __future__ import annotations

from typing import Any

import numpy as np

from .dtypes import numpy_scalar, resolve_dtype, structured_dtype


def find_type_layout_for_buffer(program_layout: Any, slang_type: Any) -> Any:
    """The compiler's layout of one element of a StructuredBuffer of `slang_type`.

    program_layout: `module.layout`, or the compiler's own as `module.device_module.layout`.
    slang_type: the name of a type, a `SlangType`, a `Struct` or the compiler's `TypeReflection`.
    """
    native = getattr(program_layout, "native", program_layout)
    type_ = getattr(slang_type, "struct", slang_type)
    name = type_ if isinstance(type_, str) else type_.full_name
    found = native.find_type_by_name(f"StructuredBuffer<{name}>")
    if found is None:
        raise ValueError(f"Could not find type '{name}'")
    return native.get_type_layout(found).element_type_layout

__all__ = ["find_type_layout_for_buffer", "numpy_to_slang", "slang_to_numpy"]


def slang_to_numpy(slang_type: Any) -> np.dtype[Any]:
    """The dtype of one element of a `SlangType` (or `Struct`): scalars, vectors, matrices and arrays give that of their
    scalar; structs a structured dtype with the offsets of a buffer. TypeError for what has none."""
    type_ = getattr(slang_type, "struct", slang_type)
    if not hasattr(type_, "full_name"):
        raise TypeError(f"slang_to_numpy: expected a Slang type, got {type(slang_type).__name__}")
    if type_.scalar:
        return numpy_scalar(type_.scalar)
    if type_.kind == "struct":
        return structured_dtype(type_.element_layout)
    raise TypeError(f"slang_to_numpy: {type_.full_name} has no NumPy dtype")


def numpy_to_slang(dtype: Any, device: Any, program_layout: Any = None) -> Any:
    """The `SlangType` on `device` of a NumPy dtype; `program_layout` also knows the types of a module."""
    return resolve_dtype(device, np.dtype(dtype), program_layout)
