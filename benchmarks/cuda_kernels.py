"""The same work as some programs of `python -m benchmarks`, written in CUDA by hand for its arrays alone, launched by CuPy.

What a kernel for one layout and one size can do: sizes are constants, rows are contiguous, threads share what they can.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

SOURCE = r"""
extern "C" {
__global__ void row_sum(const float4* __restrict__ x, float* __restrict__ y, int count)
{
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= count) return;
    float s = 0;
#pragma unroll
    for (int k = 0; k < 4; k++) {
        float4 v = x[4 * i + k];
        s = s + v.x + v.y + v.z + v.w;
    }
    y[i] = s;
}
__global__ void indirect_sum(const float* __restrict__ x, const int* __restrict__ index, float* __restrict__ y, int width)
{
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= width) return;
    const float* at = x + index[i];
    float v[16], s = 0;
#pragma unroll
    for (int k = 0; k < 16; k++)
        v[k] = at[(long long)k * width];
#pragma unroll
    for (int k = 0; k < 16; k++)
        s += v[k];
    y[i] = s;
}
__global__ void gather(const float* __restrict__ x, const int4* __restrict__ index, float4* __restrict__ y, int count)
{
    int i = blockIdx.x * 256 + threadIdx.x;
    if (4 * i >= count) return;
    int4 p = index[i];
    y[i] = make_float4(x[p.x], x[p.y], x[p.z], x[p.w]);
}
__global__ void stencil(const float* __restrict__ x, float* __restrict__ y, int side)
{
    int column = blockIdx.x * 256 + threadIdx.x, row = blockIdx.y * 4;
    if (column >= side) return;
    int left = max(column - 1, 0), right = min(column + 1, side - 1);
    float above = x[max(row - 1, 0) * side + column], here = x[row * side + column];
#pragma unroll
    for (int k = 0; k < 4; k++) {
        if (row + k >= side) return;
        const float* line = x + (row + k) * side;
        float below = x[min(row + k + 1, side - 1) * side + column];
        y[(row + k) * side + column] = 0.25f * (above + below + line[left] + line[right]);
        above = here;
        here = below;
    }
}
__global__ void transpose(const float* __restrict__ x, float* __restrict__ y, int side)
{
    __shared__ float tile[32][33];
    int column = blockIdx.x * 32 + threadIdx.x, row = blockIdx.y * 32 + threadIdx.y;
    for (int k = 0; k < 32; k += 8)
        if (column < side && row + k < side)
            tile[threadIdx.y + k][threadIdx.x] = x[(row + k) * side + column];
    __syncthreads();
    column = blockIdx.y * 32 + threadIdx.x, row = blockIdx.x * 32 + threadIdx.y;
    for (int k = 0; k < 32; k += 8)
        if (column < side && row + k < side)
            y[(row + k) * side + column] = tile[threadIdx.x][threadIdx.y + k];
}
__global__ void copy(const float4* __restrict__ x, float4* __restrict__ y, int count)
{
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i < count) y[i] = x[i];
}
}
"""


class CudaKernels:
    """`cupy`: the package. Each method gives a call that launches its kernel; results go where nobody looks."""

    def __init__(self, cupy: Any) -> None:
        self.cupy = cupy
        self.module = cupy.RawModule(code=SOURCE, options=("--std=c++17",))

    def _launch(self, name: str, groups: tuple[int, ...], threads: tuple[int, ...], *arguments: Any) -> Callable[[], None]:
        kernel = self.module.get_function(name)
        return lambda: kernel(groups, threads, arguments)

    def _size(self, number: int) -> Any:
        return self.cupy.int32(number)

    def row_sum(self, x: Any) -> Callable[[], None]:
        count = x.shape[0]
        assert x.shape[1] == 16
        y = self.cupy.empty(count, x.dtype)
        return self._launch("row_sum", (-(-count // 256),), (256,), x, y, self._size(count))

    def indirect_sum(self, x: Any, index: Any) -> Callable[[], None]:
        width = x.shape[1]
        assert x.shape[0] == 16
        y = self.cupy.empty(width, x.dtype)
        return self._launch("indirect_sum", (-(-width // 256),), (256,), x, index, y, self._size(width))

    def gather(self, x: Any, index: Any) -> Callable[[], None]:
        assert x.size % 4 == 0
        y = self.cupy.empty_like(x)
        return self._launch("gather", (-(-x.size // 1024),), (256,), x, index, y, self._size(x.size))

    def stencil(self, x: Any) -> Callable[[], None]:
        side = x.shape[0]
        y = self.cupy.empty_like(x)
        return self._launch("stencil", (-(-side // 256), -(-side // 4)), (256,), x, y, self._size(side))

    def transpose(self, x: Any) -> Callable[[], None]:
        side = x.shape[0]
        y = self.cupy.empty_like(x)
        groups = -(-side // 32)
        return self._launch("transpose", (groups, groups), (32, 8), x, y, self._size(side))

    def copy(self, x: Any) -> Callable[[], None]:
        assert x.size % 4 == 0
        y = self.cupy.empty_like(x)
        return self._launch("copy", (-(-x.size // 1024),), (256,), x, y, self._size(x.size // 4))


__all__ = ["CudaKernels"]
