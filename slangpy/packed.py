"""Values that are written once and shared by many calls."""

from __future__ import annotations

import copy
import enum
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _native
from .base.own_names import own_names
from .base.shared import Shared
from .bindings.marshall import Marshall
from .bindings.typeregistry import PYTHON_TYPES
from .errors import BoundVariableException
from .reflection.dtypes import _canonical, open_generic
from .tensor import Tensor

if TYPE_CHECKING:
    from .module import Module
    from .reflection import SlangType

_RESOURCES = (
    _native.Buffer,
    _native.Texture,
    _native.TextureView,
    _native.Sampler,
    _native.AccelerationStructure,
    _native.DescriptorHandle,
)


class PackedMarshall(Marshall):
    """What a packed value is for the planner: its Slang type, and the dimensions that it adds to a call."""

    def __init__(self, layout: Any, slang_type: SlangType | None, shape: tuple[int, ...]) -> None:
        super().__init__(layout)
        self.slang_type = slang_type
        self.concrete_shape = shape


@own_names
class PackedArg(_native.PackedArg, Shared):
    """A value that calls take as an argument again and again. Made by `pack`.

    It holds what the value was when it was packed (Tensors by reference) and binds as that value does, read-only.
    """

    module: Module
    python_object: Any
    """The value that was packed."""

    def __init__(self, module: Module, python_object: Any) -> None:
        self.module = module
        self.python_object = python_object
        self._frozen = _freeze(module, python_object, "value")
        super().__init__(_stored(module, self._frozen))
        self._block: Any = None

    @property
    def python(self) -> PackedMarshall:
        """The marshall of the value."""
        type_, shape = _type_of(self.module, self._value)
        return PackedMarshall(self.module.layout, type_, shape)

    @property
    def shader_object(self) -> Any:
        """The value as the contents of a parameter block, written once. TypeError for values without a Slang type."""
        if self._block is None:
            type_, shape = _type_of(self.module, self._value)
            if type_ is None or shape:
                raise TypeError(
                    f"{self!r} has no shader object: only a value of one Slang type fills a parameter block"
                )
            block = _native.ShaderObject(self.module.device, self.module._compiled.find_element_layout(type_))
            cursor = _native.ShaderCursor(block)
            fields = self._frozen.items() if isinstance(self._frozen, dict) else ()
            if not isinstance(self._frozen, dict):
                cursor.write(self._frozen)
            for name, value in fields:
                if name != "_type":
                    cursor[name] = value
            self._block = block
        return self._block

    def __repr__(self) -> str:
        return f"PackedArg({type(self.python_object).__name__})"


def pack(module: Module, value: Any) -> PackedArg:
    """Writes `value` once; calls that are given the result only refer to what was written.

    value: a number, vector, matrix, list, dict with `_type`, Tensor (by reference), array, or an object with get_this().
    The result binds as the value would, whole or vectorised; it is read-only and stands at the top level of a call only.
    Raises ValueError for dicts without `_type` and for values that no call takes.
    """
    if isinstance(value, PackedArg):
        return value
    try:
        return PackedArg(module, value)
    except RecursionError:
        raise ValueError(f"pack: this {type(value).__name__} contains itself or is nested too deeply") from None


# --- snapshots


def _freeze(module: Any, value: Any, path: str) -> Any:
    """A copy of `value` that later changes do not reach, its arrays on the device."""
    if isinstance(value, _native.PackedArg):
        raise BoundVariableException(
            f"pack: {path}: a PackedArg must be a top level argument; pack the value as a whole"
        )
    if isinstance(value, dict):
        return _freeze_dict(module, value, path)
    if isinstance(value, (list, tuple)):
        return [_freeze(module, item, f"{path}[{index}]") for index, item in enumerate(value)]
    if isinstance(value, Tensor):
        return value.detach()
    if isinstance(value, np.ndarray):
        return Tensor.from_numpy(module.device, value)
    if _is_torch(value):
        return value.detach()
    if any(base in PYTHON_TYPES for base in type(value).__mro__):
        return value
    if hasattr(value, "get_this") and not isinstance(value, type):
        return _freeze(module, value.get_this(), path)
    if isinstance(value, (bool, int, float, np.generic, range, _native.Generator, *_RESOURCES)):
        return value
    if hasattr(value, "element_type") or isinstance(value, _native.float16_t):
        return copy.copy(value)  # vectors and matrices can be written to
    return _freeze_other(module, value, path)


def _freeze_other(module: Any, value: Any, path: str) -> Any:
    if isinstance(value, enum.Enum):
        return _freeze(module, value.value, path)
    foreign = ("__array_interface__", "__cuda_array_interface__", "__dlpack__")
    _native._refuse_masked(value)
    if not isinstance(value, (str, bytes, type)) and any(hasattr(value, name) for name in foreign):
        from_dlpack = not hasattr(value, "__array_interface__") and hasattr(value, "__dlpack__")
        return (
            Tensor.from_dlpack(module.device, value)
            if from_dlpack
            else Tensor.from_numpy(module.device, np.array(value))
        )
    if not isinstance(value, (str, bytes, type, set, frozenset)):
        try:
            return Tensor.from_numpy(module.device, np.array(memoryview(value)))
        except TypeError:
            pass
    raise BoundVariableException(
        f"pack: {path}: Unsupported type {type(value).__name__}; pack takes numbers, vectors, matrices, lists, dicts with "
        "_type, arrays and Tensors"
    )


def _freeze_dict(module: Any, value: dict[Any, Any], path: str) -> dict[str, Any]:
    is_field = "." in path  # of a dict, whose struct tells the type
    if "_type" not in value and not is_field:
        raise ValueError(f"pack: {path} is a dict without '_type'; name its Slang type: {{'_type': 'Name', ...}}")
    unknown = [key for key in value if not isinstance(key, str)]
    if unknown:
        raise BoundVariableException(
            f"pack: {path}: Unsupported type dict with the key {unknown[0]!r}, which is not a string; use the names of the struct's fields"
        )
    frozen = {key: item if key == "_type" else _freeze(module, item, f"{path}.{key}") for key, item in value.items()}
    if "_type" in value:
        _check_fields(_declared(module, value["_type"], path), frozen, path)
    return frozen


def _check_fields(type_: SlangType, value: dict[str, Any], path: str) -> None:
    if type_.kind != "struct":
        return
    for key in value:
        if key != "_type" and key not in type_.fields:
            raise ValueError(
                f"pack: {path}: struct {type_.full_name} has no field '{key}'; its fields are {list(type_.fields)}"
            )


def _declared(module: Any, wanted: Any, path: str) -> SlangType:
    name = wanted if isinstance(wanted, str) else getattr(wanted, "full_name", str(wanted))
    found = module.layout.find_type_by_name(name)
    if getattr(found or wanted, "is_generic", False):
        raise BoundVariableException(f"pack: {path}: _type {open_generic(name)}")
    if found is None:
        raise BoundVariableException(f"pack: {path}: Could not find type '{name}' in module '{module._stem}'")
    return found


def _is_torch(value: Any) -> bool:
    return any(base.__module__ == "torch" and base.__name__ == "Tensor" for base in type(value).__mro__)


# --- structs in device memory


def _stored(module: Any, value: Any) -> Any:
    """The value as calls bind it: structs of plain values are Tensors of the struct, so that nothing is written again."""
    type_, shape = _struct_of(module, value)
    if type_ is None or any(size == 0 for size in shape):
        return value
    tensor = Tensor.zeros(module.device, shape or (1,), dtype=type_)
    cursor = tensor.cursor()
    for index, item in enumerate(_flat(value)):
        cursor[index].write({key: part for key, part in item.items() if key != "_type"})
    cursor.apply()
    return tensor.reshape(shape)


def _flat(value: Any) -> list[dict[str, Any]]:
    return [inner for item in value for inner in _flat(item)] if isinstance(value, list) else [value]


def _struct_of(module: Any, value: Any) -> tuple[Any, tuple[int, ...]]:
    """Struct type and container shape of a dict, or of nested lists of dicts, that fit in memory as they are."""
    if isinstance(value, list):
        found = [_struct_of(module, item) for item in value]
        if not found or any(type_ is None for type_, _ in found):
            return None, ()
        if len({(type_.full_name, shape) for type_, shape in found}) > 1:
            return None, ()
        return found[0][0], (len(value), *found[0][1])
    if not isinstance(value, dict) or "_type" not in value:
        return None, ()
    type_ = _declared(module, value["_type"], "value")
    return (type_, ()) if type_.kind == "struct" and _fits(value, type_) else (None, ())


def _fits(value: Any, type_: SlangType) -> bool:
    """Whether `value` is one value of `type_`, to be stored without a call's rules (spreading, widening)."""
    kind = type_.kind
    if kind == "scalar":
        return isinstance(value, (bool, int, float, np.generic, _native.float16_t))
    if kind == "enum":
        return isinstance(value, int)
    if kind == "struct":
        fields = type_.fields
        given = {key: item for key, item in value.items() if key != "_type"} if isinstance(value, dict) else None
        missing = [] if given is None else [f for name, f in fields.items() if name not in given]
        return (
            given is not None
            and all(name in fields and _fits(item, fields[name].type) for name, item in given.items())
            and all(_is_storable(field.type) for field in missing)
        )
    if kind in ("vector", "matrix") and not isinstance(value, (list, dict)):
        return _math_name(value) == type_.full_name
    element = type_.element_type
    if kind in ("vector", "array") and isinstance(value, list) and element is not None:
        return len(value) == type_.shape[0] and all(_fits(item, element) for item in value)
    return False


def _is_storable(type_: SlangType) -> bool:
    """Whether a value of a type is made of numbers alone."""
    if type_.kind == "struct":
        return all(_is_storable(field.type) for field in type_.fields.values())
    if type_.kind == "array" and type_.element_type is not None:
        return type_.shape[0] > 0 and _is_storable(type_.element_type)
    return type_.kind in ("scalar", "vector", "matrix", "enum")


def _math_name(value: Any) -> str:
    """Slang type of a vector or matrix; empty for other values."""
    name = type(value).__name__
    return _canonical("float4" if name == "quatf" else name) if hasattr(value, "element_type") else ""


def _type_of(module: Any, value: Any) -> tuple[SlangType | None, tuple[int, ...]]:
    """Slang type and container shape of a stored value."""
    find = module.layout.find_type_by_name
    if isinstance(value, Tensor):
        return find(value.dtype.full_name), tuple(value.shape)
    if isinstance(value, bool):
        return find("bool"), ()
    if isinstance(value, (int, float)):
        return find(type(value).__name__), ()
    if isinstance(value, dict) and "_type" in value:
        return _declared(module, value["_type"], "value"), ()
    if isinstance(value, list):
        return (_type_of(module, value[0])[0] if value else None), (len(value),)
    return (find(_math_name(value)) if _math_name(value) else None), ()


__all__ = ["PackedArg", "pack"]
