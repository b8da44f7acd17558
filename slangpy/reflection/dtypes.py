"""Every way to name an element type, as a SlangType with its layout on a device.

Scalars are known without the compiler. All other names go through reflection; the layouts of built-in types are kept
on disk, so that a process that only meets types met before never starts the compiler.
"""

from __future__ import annotations

import difflib
import re
import weakref
from collections.abc import Callable
from typing import Any, ClassVar, Protocol

import numpy as np

from .. import _native
from ..base.optional import find_package
from ..base.scalars import BY_DTYPE, SCALARS, own_name
from . import BufferLayout, SlangProgramLayout, SlangType

__all__ = [
    "DeviceTypes",
    "device_types",
    "numpy_scalar",
    "open_generic",
    "resolve_dtype",
    "scalar_name_of_numpy",
    "scalar_name_of_torch",
    "structured_dtype",
    "structured_parts",
]

_GRID = re.compile(r"^(\w+?)([1-4])(?:x([1-4]))?$")
_ARRAY = re.compile(r"^(.*?)((?:\[\d+\])+)$")
_NUMPY = re.compile(r"^(?:u?int(?:8|16|32|64)|float(?:16|32|64)|[<>=|]?(?:[iu][1248]|f[248]|b1|[?]))$")
_BUILT_IN = re.compile(r"^(?:vector<\w+,\d>|matrix<\w+,\d,\d>|\w+)(?:\[\d+\])*$")


def _canonical(name: str) -> str:
    """`float3` and the like as Slang's full name; other names unchanged."""
    text = name.strip()
    array = _ARRAY.match(text)
    if array:
        return _canonical(array.group(1)) + array.group(2)
    if own_name(text) in SCALARS:
        return own_name(text)
    found = _GRID.match(text)
    scalar = own_name(found.group(1)) if found else ""
    if not found or scalar not in SCALARS:
        return text
    first, second = found.group(2), found.group(3)
    return f"vector<{scalar},{first}>" if second is None else f"matrix<{scalar},{first},{second}>"


def _is_built_in(name: str) -> bool:
    base = re.split(r"[<\[]", name, maxsplit=1)
    scalar = re.match(r"(?:vector|matrix)<(\w+)", name)
    return bool(_BUILT_IN.match(name)) and (scalar.group(1) if scalar else base[0]) in SCALARS


class TypedDevice(Protocol):
    """A device, as far as its types go."""

    @property
    def compile_target(self) -> _native.CompileTarget: ...
    @property
    def _state(self) -> Any: ...


class DeviceTypes(SlangProgramLayout):
    """The built-in types of one device. Made by `device_types`."""

    empty_program: ClassVar[Callable[[Any], Any]]
    """Asks the compiler for the layout of an empty module: `compiler/device_types.py`, which gives it, stands above."""
    stored_layout: ClassVar[Callable[[Any, str], Any]]
    """Layout of a built-in type of these by its full name, from disk or the compiler; None where there is no such type."""

    def __init__(self, device: TypedDevice) -> None:
        super().__init__(self._load)
        self._get_device = weakref.ref(device)  # which holds these
        self._program: Any = None
        self._known: dict[str, SlangType] = {}
        self._bool_bytes = 4 if device.compile_target.format in ("spirv", "spirv-asm", "hlsl") else 1

    @property
    def device(self) -> TypedDevice:
        device = self._get_device()
        if device is None:
            raise RuntimeError("the device of this type was dropped; keep the device as long as its types")
        return device

    def _load(self) -> Any:
        """An empty module, loaded when reflection is first needed."""
        if self._program is None:
            self._program = DeviceTypes.empty_program(self.device)
        return self._program

    def find(self, name: str) -> SlangType | None:
        """The type of this name; None when there is none."""
        known = self._known.get(name)
        if known is not None:
            return known
        full_name = _canonical(name)
        layout = _native._scalar_layout(full_name, self._bool_bytes)
        if layout is None and _is_built_in(full_name):
            layout = DeviceTypes.stored_layout(self, full_name)
        if layout is not None:
            found = self._known.get(layout.full_name) or SlangType(layout.full_name, layout, self)
        else:
            reflected = self.find_type_by_name(full_name)
            if reflected is None:
                return None
            found = reflected
        self._known[name] = self._known[found.full_name] = found
        return found


def device_types(device: TypedDevice) -> DeviceTypes:
    """The built-in types of a device."""
    if device._state.types is None:
        device._state.types = DeviceTypes(device)
    return device._state.types


def scalar_name_of_numpy(dtype: np.dtype[Any]) -> str | None:
    """Slang's name of a NumPy scalar dtype; None for those that Slang has no type for."""
    kind = {"b": "bool", "i": "int", "u": "uint", "f": "float"}.get(dtype.kind)
    if kind is None:
        return BY_DTYPE.get(dtype.name)  # ml_dtypes: kind V
    return BY_DTYPE.get("bool" if kind == "bool" else f"{kind}{8 * dtype.itemsize}")


def scalar_name_of_torch(dtype: Any) -> str | None:
    """Slang's name of a torch dtype; None for those that Slang has no type for."""
    return BY_DTYPE.get(str(dtype).removeprefix("torch."))


def numpy_scalar(scalar: str) -> np.dtype[Any]:
    """NumPy dtype of the host side of a Slang scalar; BFloat16 is `ml_dtypes.bfloat16` where that is installed."""
    if scalar == "BFloat16":
        ml_dtypes = find_package("ml_dtypes")
        if ml_dtypes is not None:
            return np.dtype(ml_dtypes.bfloat16)
    return np.dtype(SCALARS[scalar].numpy)


def _is_torch_dtype(value: Any) -> bool:
    return type(value).__module__ == "torch" and type(value).__name__ == "dtype"


def _name_of(dtype: Any) -> str | None:
    """The Slang name that a str, a Python, NumPy or torch type stands for; None for other objects."""
    if isinstance(dtype, str):
        return dtype
    if dtype is float or dtype is int or dtype is bool:
        return dtype.__name__
    if isinstance(dtype, np.dtype) or (isinstance(dtype, type) and issubclass(dtype, np.generic)):
        plain = np.dtype(dtype)
        name = scalar_name_of_numpy(plain)
        if name is None:
            raise ValueError(
                f"dtype: NumPy's {plain} has no Slang type; use a bool, int, uint or float dtype, or a Slang type"
            )
        return name
    if _is_torch_dtype(dtype):
        name = scalar_name_of_torch(dtype)
        if name is None:
            raise ValueError(f"dtype: {dtype} has no Slang type; use a bool, int, uint or float dtype")
        return name
    if dtype is _native.math.quatf:
        return "float4"
    if isinstance(dtype, type) and dtype.__module__.startswith("slangpy") and _is_built_in(_canonical(dtype.__name__)):
        return dtype.__name__
    return None


def _program_of(program_layout: Any) -> Any:
    """A SlangProgramLayout from one, from a Module, or from the compiler's program layout."""
    layout = program_layout
    if not hasattr(layout, "find_type_by_name"):
        layout = getattr(program_layout, "layout", None)
    if not hasattr(layout, "find_type_by_name"):
        raise TypeError(
            f"program_layout: expected a Module or a program layout, got {type(program_layout).__name__}; "
            "pass module.layout"
        )
    if isinstance(layout, SlangProgramLayout):
        return layout
    return SlangProgramLayout(lambda: layout)


def _find(device: TypedDevice, name: str, program_layout: Any) -> SlangType:
    types = device_types(device)
    found = types._known.get(name)
    if found is None and (program_layout is None or _is_built_in(_canonical(name))):
        found = types.find(name)
    if found is None and program_layout is not None:
        found = _program_of(program_layout).find_type_by_name(name)
    if found is None and _NUMPY.match(name):
        dtype = np.dtype(name)
        if not dtype.isnative:
            raise ValueError(f"dtype: '{name}' has the other byte order than this machine; use '{dtype.newbyteorder('=').str}'")
        return _find(device, scalar_name_of_numpy(dtype) or "", program_layout)
    if found is None:
        where = "is no built-in type" if program_layout is None else "does not exist in the given program"
        near = difflib.get_close_matches(name, SCALARS, 1)
        raise ValueError(
            f"dtype: type '{name}' {where}{f'; did you mean {near[0]}?' if near else ''}; "
            "for a type of a module pass module.<name>, or program_layout=module.layout"
        )
    return found


def resolve_dtype(device: Any, dtype: Any, program_layout: Any = None) -> SlangType:
    """The SlangType that `dtype` stands for on `device`.

    dtype: a Slang type name, a SlangType or Struct, a reflected type or layout, a Python type (`float`, `int`, `bool`,
    `slangpy.float3`, ...), a NumPy or torch dtype. User types given by name need `program_layout`, a module or its
    layout. ValueError for unknown names and for None, TypeError for other objects.
    """
    if dtype is None:
        raise ValueError("Element type (dtype) must be specified, such as 'float', np.float32 or module.S")
    inner = dtype if isinstance(dtype, SlangType) else getattr(dtype, "type", None)
    if isinstance(inner, SlangType):
        # Built-in types have one layout per device, whatever module the object came from.
        built_in = _is_built_in(inner.full_name)
        return device_types(device).find(inner.full_name) or inner if built_in else _without_open_arguments(inner)
    name = _name_of(dtype)
    if name is not None:
        return _without_open_arguments(_find(device, name, program_layout))
    return _from_reflection(device, dtype, program_layout)


def _without_open_arguments(found: SlangType) -> SlangType:
    if "<" in found.full_name and found.is_generic:
        raise ValueError(f"dtype: {open_generic(found.full_name)}")
    return found


def open_generic(full_name: str) -> str:
    """What to say of a generic type that is named without its arguments."""
    base = full_name.partition("<")[0]
    return f"'{base}' is generic: name its arguments, such as {base}<float>"


def _from_reflection(device: TypedDevice, dtype: Any, program_layout: Any) -> SlangType:
    if isinstance(dtype, BufferLayout):
        dtype = dtype.reflection
    layout: Any = dtype if isinstance(dtype, _native.TypeLayout) else getattr(dtype, "plain", None)
    if isinstance(layout, _native.TypeLayout):
        reflection: Any = getattr(dtype, "type", None)
        source = None if program_layout is None else _program_of(program_layout)
        return SlangType(layout.full_name, layout, source or device_types(device), reflection)
    name = getattr(dtype, "full_name", None)
    if isinstance(name, str) and hasattr(dtype, "kind"):
        return _find(device, name, program_layout)
    inner: Any = getattr(dtype, "type_layout", None)  # of reflection cursors
    if inner is not None:
        return _from_reflection(device, inner, program_layout)
    raise TypeError(
        f"dtype: expected a Slang type name, a type of a module, or a Python, NumPy or torch type, got {dtype!r}"
    )


# --- NumPy layouts of structs


def _padded(dtype: np.dtype[Any], step: int) -> np.dtype[Any]:
    if dtype.itemsize == step:
        return dtype
    return np.dtype({"names": ["value"], "formats": [dtype], "offsets": [0], "itemsize": step})


def _field_dtype(layout: Any) -> np.dtype[Any]:
    kind = layout.kind.name
    if kind == "struct":
        return structured_dtype(layout)
    if kind == "array":
        return np.dtype((_padded(_field_dtype(layout.element), layout.element_stride), (layout.element_count,)))
    format = _native._element_format(layout)
    if format is None:
        return np.dtype((np.void, layout.size))
    scalar, scalar_bytes, shape = format
    base = np.dtype("uint32") if scalar == "bool" and scalar_bytes == 4 else numpy_scalar(scalar)
    if kind == "matrix" and layout.element_stride != shape[1] * base.itemsize and layout.row_major:
        return np.dtype((_padded(np.dtype((base, shape[1:])), layout.element_stride), shape[:1]))
    dtype = np.dtype((base, shape))
    return dtype if dtype.itemsize <= layout.size else np.dtype((np.void, layout.size))


def structured_parts(layout: Any) -> tuple[np.dtype[Any], tuple[int, ...]]:
    """dtype and trailing shape of structs, and of arrays of structs."""
    shape: list[int] = []
    step = layout.stride
    while layout.kind.name == "array":
        shape.append(layout.element_count)
        step, layout = layout.element_stride, layout.element
    return _padded(_field_dtype(layout), step), tuple(shape)


def structured_dtype(layout: Any) -> np.dtype[Any]:
    """Structured dtype of a struct: the offsets of `layout`, its stride as item size, four-byte bools as uint32."""
    fields = layout.fields
    return np.dtype(
        {
            "names": [field["name"] for field in fields],
            "formats": [_field_dtype(field["type"]) for field in fields],
            "offsets": [field["offset"] for field in fields],
            "itemsize": layout.stride,
        }
    )
