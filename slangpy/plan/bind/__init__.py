"""How Python values meet Slang types: one file per family of values.

`bind(value, type, context)` says how a described value is passed where one invocation receives `type`. It raises
`NoMatch` with the reason, or `RankTooSmall` when only the dimensions are missing.
"""

from __future__ import annotations

from . import aggregate, array, custom, diffpair, generator, names, resource, scalar, tensor
from .base import Context, NoMatch, RankTooSmall, bind, candidates

__all__ = ["Context", "NoMatch", "RankTooSmall", "bind", "candidates"]

del aggregate, array, custom, diffpair, generator, names, resource, scalar, tensor
