"""The scalar types of Slang: the table of src/native/core/format.h, which is the only one."""

from __future__ import annotations

from dataclasses import dataclass

from .. import _native

_TORCH_NAMES = {"BFloat16": "bfloat16", "FloatE4M3": "float8_e4m3fn", "FloatE5M2": "float8_e5m2"}
"""Where torch's name is not NumPy's, because NumPy has no such type."""


@dataclass(frozen=True)
class Scalar:
    """One scalar type. `size`: bytes in host memory; `numpy`: name of the dtype, of raw storage where NumPy has none."""

    name: str
    numpy: str
    size: int
    is_float: bool
    is_integer: bool
    is_signed: bool

    @property
    def is_narrow(self) -> bool:
        """A float that memory holds and kernels convert."""
        return self.name in _TORCH_NAMES

    @property
    def torch(self) -> str:
        """Name of the dtype in torch."""
        return _TORCH_NAMES.get(self.name, self.numpy)


SCALARS: dict[str, Scalar] = {row[0]: Scalar(*row) for row in _native._scalar_table()}
"""By Slang's own name."""
INTEGERS = tuple(s.name for s in SCALARS.values() if s.is_integer)
FLOATS = tuple(s.name for s in SCALARS.values() if s.is_float and not s.is_narrow)
SIZES = {s.name: s.size for s in SCALARS.values() if not s.is_narrow}
"""Of the types that kernels compute with."""
NARROW_SIZES = {s.name: s.size for s in SCALARS.values() if s.is_narrow}
"""Of floats that memory holds and kernels convert."""
BY_DTYPE: dict[str, str] = {s.torch: s.name for s in SCALARS.values()}
"""Slang's name by the name of a dtype of NumPy or torch."""


def own_name(name: str) -> str:
    """Slang's own name for `int32_t`, `size_t` and the like; other names as they are."""
    return _native._scalar_name(name) or name


__all__ = ["BY_DTYPE", "FLOATS", "INTEGERS", "NARROW_SIZES", "SCALARS", "SIZES", "Scalar", "own_name"]
