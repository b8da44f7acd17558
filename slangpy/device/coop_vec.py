"""Matrices of cooperative vectors on the host: `Device.convert_coop_vec_matrix` and `convert_coop_vec_matrices`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, cast, overload

import numpy as np

from slangpy import _native
from slangpy._native import CoopVecMatrixDesc, CoopVecMatrixLayout, ScalarType
from slangpy.base.own_names import own_names
from slangpy.errors import NativeTypeError, NativeValueError

if TYPE_CHECKING:
    from typing import TypeAlias

    Array: TypeAlias = np.ndarray[tuple[int, ...], np.dtype[np.generic]]
    Desc: TypeAlias = CoopVecMatrixDesc | Mapping[str, object]
    Writable: TypeAlias = bytearray | memoryview | Array
    Readable: TypeAlias = bytes | bytearray | memoryview | Array

_CALL = "convert_coop_vec_matrix"
_ELEMENT_TYPES = {
    "float16": ScalarType.float16, "float32": ScalarType.float32, "float64": ScalarType.float64,
    "float8_e4m3fn": ScalarType.float8_e4m3, "float8_e5m2": ScalarType.float8_e5m2,
    "int8": ScalarType.int8, "int16": ScalarType.int16, "int32": ScalarType.int32, "int64": ScalarType.int64,
    "uint8": ScalarType.uint8, "uint16": ScalarType.uint16, "uint32": ScalarType.uint32, "uint64": ScalarType.uint64,
}  # fmt: skip
"""By name of NumPy's dtype; those of eight bits and less than a float are those of ml_dtypes."""
_ONE, _MANY = ("dst", "dst_desc", "src", "src_desc"), ("dst", "dst_descs", "src", "src_descs")
_ARRAYS = ("dst", "src", "dst_layout", "src_layout")


@own_names
class CoopVecMatrices(_native.Device):
    """The conversions of a device."""

    @overload
    def convert_coop_vec_matrix(
        self, dst: Array, src: Array, dst_layout: CoopVecMatrixLayout | None = None, src_layout: CoopVecMatrixLayout | None = None
    ) -> None: ...
    @overload
    def convert_coop_vec_matrix(self, dst: Writable, dst_desc: Desc, src: Readable, src_desc: Desc) -> None: ...
    @overload
    def convert_coop_vec_matrix(self, dst: Writable, *, dst_descs: Desc, src: Readable, src_descs: Desc) -> None: ...
    def convert_coop_vec_matrix(self, *args: object, **kwargs: object) -> None:
        """convert_coop_vec_matrix(dst, src, dst_layout=None, src_layout=None): NumPy arrays.
        convert_coop_vec_matrix(dst, dst_desc, src, src_desc): bytes, such as a bytearray.

        Writes a matrix to memory of the host in another layout. A layout that is left out is that of the array's memory: C order
        row_major, Fortran order column_major. At least one array has two dimensions, (rows, cols), and says what the elements
        are; one of one dimension holds the bytes. The shape of dst stays, so a C array that is given column_major gets the
        memory of the transpose.

        TypeError, ValueError for arrays that do not fit; NotImplementedError for the optimal layouts, and for other
        element types, where the device lacks the feature cooperative_vector.
        """
        names = {"dst_desc": "dst_desc", "dst_descs": "dst_desc", "src_desc": "src_desc", "src_descs": "src_desc"}
        if names.keys() & kwargs.keys() or (len(args) > 1 and isinstance(args[1], (CoopVecMatrixDesc, Mapping))):
            given = _bound(_CALL, _ONE, args, {names.get(name, name): value for name, value in kwargs.items()}, 4)
            dst, dst_desc, src, src_desc = (given[name] for name in _ONE)
            self._convert_coop_vec_matrices(_CALL, dst, [dst_desc], src, [src_desc])
            return
        given = _bound(_CALL, _ARRAYS, args, kwargs, 2)
        self._convert_arrays(*(given.get(name) for name in _ARRAYS))

    def convert_coop_vec_matrices(
        self, dst: Writable, dst_descs: Sequence[Desc], src: Readable, src_descs: Sequence[Desc]
    ) -> None:
        """Several matrices in memory of the host, each as `convert_coop_vec_matrix` does with descriptions."""
        self._convert_coop_vec_matrices("convert_coop_vec_matrices", dst, dst_descs, src, src_descs)

    def _convert_arrays(self, dst: object, src: object, dst_layout: object, src_layout: object) -> None:
        to, source = _checked_array("dst", dst), _checked_array("src", src)
        if to.ndim != 2 and source.ndim != 2:
            raise NativeValueError(
                f"{_CALL}: At least one of src or dst must be a 2D array, got shapes {to.shape} and {source.shape}"
            )
        if to.ndim == source.ndim and to.shape != source.shape:
            raise NativeValueError(f"{_CALL}: dst and src must have one shape, got {to.shape} and {source.shape}")
        if not to.flags.writeable:
            raise NativeValueError(f"{_CALL}: dst cannot be written to; copy it")
        rows, cols = (to if to.ndim == 2 else source).shape
        descs = [
            CoopVecMatrixDesc(
                rows=rows, cols=cols, element_type=_element_type(name, array, other), layout=_layout(name, array, layout)
            )
            for name, array, other, layout in (("dst", to, source, dst_layout), ("src", source, to, src_layout))
        ]
        # ravel of memory without gaps is a view
        views = [array.ravel(order="K").view(np.uint8) for array in (to, source)]
        self._convert_coop_vec_matrices(_CALL, views[0], descs[:1], views[1], descs[1:])


def _bound(
    call: str, names: Sequence[str], args: Sequence[object], kwargs: Mapping[str, object], needed: int
) -> dict[str, object]:
    given = dict(zip(names, args, strict=False))
    unknown = [name for name in kwargs if name not in names or name in given]
    if len(args) > len(names) or unknown:
        what = f"{unknown[0]!r} is unknown or given twice" if unknown else f"{len(args)} positional arguments"
        raise TypeError(f"{call}: expected {', '.join(names)}, got {what}")
    given.update(kwargs)
    if missing := [name for name in names[:needed] if name not in given]:
        raise TypeError(f"{call}: {', '.join(missing)} missing; it takes {', '.join(names)}")
    return given


def _checked_array(name: str, value: object) -> Array:
    if not isinstance(value, np.ndarray):
        raise NativeTypeError(
            f"{_CALL}: {name}: expected a NumPy array, got {type(value).__name__}; of bytes, say with dst_desc and src_desc what they hold"
        )
    if value.ndim not in (1, 2):
        raise NativeValueError(f"{_CALL}: {name}: expected an array of 1 or 2 dimensions, got shape {value.shape}")
    if not (value.flags.c_contiguous or value.flags.f_contiguous):
        raise NativeValueError(f"{_CALL}: {name}: the array's memory has gaps; give a copy, or bytes and a row_col_stride")
    return cast("Array", value)


def _element_type(name: str, array: Array, other: Array) -> ScalarType:
    """That of a matrix; bytes are of the type of the other."""
    holds_bytes = array.ndim == 1 and array.dtype.itemsize == 1 and array.dtype.kind in "ui"
    dtype = other.dtype if holds_bytes else array.dtype
    found = _ELEMENT_TYPES.get(dtype.name)
    if found is None or not dtype.isnative:
        raise NativeTypeError(f"{_CALL}: {name}: matrices are of {', '.join(_ELEMENT_TYPES)}, got {dtype}")
    return found


def _layout(name: str, array: Array, given: object) -> CoopVecMatrixLayout:
    if given is None:
        return CoopVecMatrixLayout.row_major if array.flags.c_contiguous else CoopVecMatrixLayout.column_major
    if not isinstance(given, CoopVecMatrixLayout):
        raise NativeTypeError(f"{_CALL}: {name}_layout: expected a CoopVecMatrixLayout, got {given!r}")
    return given


__all__ = ["CoopVecMatrices"]
