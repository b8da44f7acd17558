"""Vectors, matrices and quaternions, and functions of them.

The classes are also in the package itself (`slangpy.float3`). Matrices are row-major and vectors are columns. Functions
work component by component on numbers and vectors unless their docstring says otherwise, and compute in double.
"""

from .. import _native
from .float16 import extend as _extend

__all__ = [name for name in vars(_native.math) if not name.startswith("_")]  # pyright: ignore[reportUnsupportedDunderAll]

globals().update({name: getattr(_native.math, name) for name in __all__})
_extend(_native.math.float16_t)
