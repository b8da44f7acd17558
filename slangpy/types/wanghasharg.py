"""`WangHashArg` by its older path, and the hash on the host."""

from typing import Any

import numpy as np

from ..generators import WangHashArg as WangHashArg, calc_wang_hash as calc_wang_hash, wang_hash as wang_hash

__all__ = ["WangHashArg", "calc_wang_hash", "calc_wang_hash_numpy", "wang_hash"]


def calc_wang_hash_numpy(seeds: Any) -> "np.ndarray[Any, np.dtype[np.uint32]]":
    """The hash of each integer of an array (taken modulo 2^32), as uint32 of the same shape."""
    values = np.asarray(seeds)
    if values.dtype.kind not in "iu":
        raise TypeError(f"calc_wang_hash_numpy: expected an array of integers, got dtype {values.dtype}")
    # 64-bit arithmetic wraps modulo 2^64, so the low 32 bits are right
    state = values.astype(np.uint64) & np.uint64(0xFFFFFFFF)
    mask = np.uint64(0xFFFFFFFF)
    state = (state ^ np.uint64(61)) ^ (state >> np.uint64(16))
    state = (state * np.uint64(9)) & mask
    state ^= state >> np.uint64(4)
    state = (state * np.uint64(0x27D4EB2D)) & mask
    return (state ^ (state >> np.uint64(15))).astype(np.uint32)
