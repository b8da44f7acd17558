"""`RandFloatArg` by its older path."""

from ..generators import RandFloatArg as RandFloatArg, rand_float as rand_float

__all__ = ["RandFloatArg", "rand_float"]
