"""Encodings: what stands between a network's inputs and its first layer."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..base.typed import integer, number

_LARGEST_TABLE = 1 << 28


@dataclass(frozen=True)
class Encoding:
    """The inputs as they are."""

    def features(self, inputs: int) -> int:
        """How many features there are of so many inputs. ValueError where the encoding has none for that number."""
        return inputs

    def type_name(self, inputs: int, dtype: str) -> str:
        """The Slang type."""
        del dtype
        return f"neural::Identity<{inputs}>"

    def table_size(self, inputs: int) -> int:
        """How many numbers the encoding learns."""
        del inputs
        return 0

    def levels(self, inputs: int) -> np.ndarray[Any, Any] | None:
        """(levels, 3) int32 of a grid: cells along each axis, first entry in the table, entries."""
        del inputs
        return None


@dataclass(frozen=True)
class Frequency(Encoding):
    """sin(2^k pi x) and cos(2^k pi x) for k from 0 to `count - 1`, for each input: 2 * count features of each.

    Mildenhall et al., NeRF: Representing Scenes as Neural Radiance Fields for View Synthesis, 2020, equation 4.
    """

    count: int = 6

    def __post_init__(self) -> None:
        integer("Frequency: count", self.count, 1, 24)

    def features(self, inputs: int) -> int:
        return 2 * self.count * inputs

    def type_name(self, inputs: int, dtype: str) -> str:
        return f"neural::Frequency<{inputs}, {self.count}, {self.features(inputs)}>"


@dataclass(frozen=True)
class HashGrid(Encoding):
    """Grids of features over [0, 1]^2 or [0, 1]^3, from coarse to fine, of which fine ones share a table by hash.

    levels_count: how many grids. per_level: features of each corner. log2_entries: each grid has at most 2^log2_entries
    corners of its own. coarsest: cells along each axis of the first grid; level l has floor(coarsest * growth^l).

    Mueller et al., Instant Neural Graphics Primitives with a Multiresolution Hash Encoding, 2022, section 3.
    """

    levels_count: int = 8
    per_level: int = 2
    log2_entries: int = 14
    coarsest: int = 16
    growth: float = 1.5

    def __post_init__(self) -> None:
        integer("HashGrid: levels_count", self.levels_count, 1, 32)
        integer("HashGrid: per_level", self.per_level, 1, 8)
        integer("HashGrid: log2_entries", self.log2_entries, 1, 26)
        integer("HashGrid: coarsest", self.coarsest, 1, 1 << 20)
        if not 1 <= number("HashGrid: growth", self.growth) <= 4:
            raise ValueError(f"HashGrid: growth: expected 1 to 4, got {self.growth}")
        if self.coarsest * self.growth ** (self.levels_count - 1) > 1 << 20:
            raise ValueError(
                f"HashGrid: the finest level would have {self.coarsest * self.growth ** (self.levels_count - 1):.3g} cells "
                f"along each axis; at most {1 << 20} are possible: lower growth or levels_count"
            )

    def features(self, inputs: int) -> int:
        if inputs not in (2, 3):
            raise ValueError(f"HashGrid: inputs: a grid has 2 or 3 dimensions, got {inputs}")
        return self.levels_count * self.per_level

    def type_name(self, inputs: int, dtype: str) -> str:
        count, per_level = self.levels_count, self.per_level
        return f"neural::HashGrid<{dtype}, {inputs}, {count}, {per_level}, {count * per_level}>"

    def levels(self, inputs: int) -> np.ndarray[Any, Any]:
        rows, first = [], 0
        for level in range(self.levels_count):
            cells = math.floor(self.coarsest * self.growth**level + 1e-9)
            entries = min((cells + 1) ** inputs, 1 << self.log2_entries)
            rows.append((cells, first, entries))
            first += entries
        return np.array(rows, np.int32)

    def table_size(self, inputs: int) -> int:
        size = int(self.levels(inputs)[:, 2].astype(np.int64).sum()) * self.per_level
        if size > _LARGEST_TABLE:
            raise ValueError(f"HashGrid: a table of {size} numbers; at most {_LARGEST_TABLE} are possible: lower log2_entries")
        return size
