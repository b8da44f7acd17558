"""Triton's half of `python -m benchmarks`; imported where triton is installed."""

from __future__ import annotations

from typing import Any

import triton  # pyright: ignore[reportMissingImports]
import triton.language as tl  # pyright: ignore[reportMissingImports]

BLOCK = 1024


@triton.jit
def polynomial_kernel(x_pointer, y_pointer, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_pointer + at, mask=at < count)
    tl.store(y_pointer + at, 2 * x * x + 8 * x - 1, mask=at < count)


def polynomial(x: Any, y: Any) -> None:
    polynomial_kernel[(triton.cdiv(x.numel(), BLOCK),)](x, y, x.numel(), BLOCK=BLOCK)
