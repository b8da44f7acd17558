"""Views of tensors over 4 GiB: sizes fit into 32 bits, offsets in bytes do not."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

SOURCE = """
[AutoPyBindCUDA] [CudaKernel] void corners(TensorView<float> x, TensorView<float> y)
{
    uint t = cudaThreadIdx().x;
    uint2 at = uint2((t & 1) * (x.size(0) - 1), (t >> 1) * (x.size(1) - 1));
    x[at] = t + 1;
    x.InterlockedAdd(at, 10.0f, y[t]);
    y[t] += 100 * x.load(at.x, at.y) + (x.data_ptr_at(at)[0] == x[at.x, at.y] ? 1000 : 0);
}
[AutoPyBindCUDA] [CudaKernel] void ends(TensorView<float> x, TensorView<float> y)
{
    uint i = cudaThreadIdx().x * (x.size(0) - 1);
    y[cudaThreadIdx().x] = x[i];
    x.store(i, 5.0f + cudaThreadIdx().x);
}
[AutoPyBindCUDA] [CudaKernel] [Differentiable] void squares(DiffTensorView x, DiffTensorView y)
{
    uint t = cudaThreadIdx().x;
    float v = x.load(uint2((t & 1) * (x.size(0) - 1), (t >> 1) * (x.size(1) - 1)));
    y.storeOnce(t, v * v);
}
"""
ROWS, COLUMNS = 40001, 32771  # 5.2 GB; on a CPU only the pages that are touched take memory


def corners(x: Any) -> list[float]:
    return [float(x[row, column]) for column in (0, -1) for row in (0, -1)]


@pytest.fixture
def large(place: str) -> Any:
    if place == "cuda" and torch.cuda.mem_get_info()[0] < 14 << 30:
        pytest.skip("needs 14 GiB of free GPU memory")
    yield lambda *sizes: torch.empty(*sizes, device=place)
    if place == "cuda":
        torch.cuda.empty_cache()


def test_two_dimensions(load: Any, place: str, large: Any) -> None:
    x, y = large(ROWS, COLUMNS), torch.zeros(4, device=place)
    load(SOURCE).corners(x, y).launchRaw((4, 1, 1), (1, 1, 1))
    assert corners(x) == [11, 12, 13, 14]
    assert y.tolist() == [2101, 2202, 2303, 2404]


def test_columns_of_a_transposed_one(load: Any, place: str, large: Any) -> None:
    x, y = large(COLUMNS, ROWS).T, torch.zeros(4, device=place)
    load(SOURCE).corners(x, y).launchRaw((4, 1, 1), (1, 1, 1))
    assert corners(x) == [11, 12, 13, 14]
    assert y.tolist() == [2101, 2202, 2303, 2404]


def test_one_dimension(load: Any, place: str, large: Any) -> None:
    x, y = large(ROWS * COLUMNS), torch.zeros(2, device=place)
    x[0], x[-1] = 3, 4
    load(SOURCE).ends(x, y).launchRaw((2, 1, 1), (1, 1, 1))
    assert y.tolist() == [3, 4] and (float(x[0]), float(x[-1])) == (5, 6)


def test_gradients(load: Any, place: str, large: Any) -> None:
    x, g = large(ROWS, COLUMNS), large(ROWS, COLUMNS)
    y, seed = torch.zeros(4, device=place), torch.ones(4, device=place)
    for i, (row, column) in enumerate((row, column) for column in (0, -1) for row in (0, -1)):
        x[row, column], g[row, column] = i + 1, 0.5
    load(SOURCE).squares.bwd((x, g), (y, seed)).launchRaw((4, 1, 1), (1, 1, 1))
    assert corners(g) == [2.5, 4.5, 6.5, 8.5]


WIDE = """
struct Pair { float a; TensorView<uint8_t> v[2]; int b; }
[AutoPyBindCUDA] [CudaKernel] void apart(uint8_t first, Pair p, TensorView<uint8_t> x, float last, TensorView<int> y)
{
    y[0] = x[1, 3]; y[1] = *x.data_ptr_at(uint2(1, 4)); y[2] = x.size(1);
    y[3] = first; y[4] = int(p.a + last) + p.b; y[5] = p.v[0][2] * p.v[1][1];
    x[uint2(1, 3)] = 7;
    x.store(1, 5, 9);
}
[AutoPyBindCUDA] [CudaKernel] [Differentiable] void products(DiffTensorView x, DiffTensorView y) { y[0] = x[1, 2] * x[1, 3]; }
"""
STRIDE = 2**32 + 64


def test_strides_of_more_than_32_bits(load: Any, place: str, large: Any) -> None:
    m = load(WIDE)
    x = large(STRIDE // 4 + 64).view(torch.uint8).as_strided((2, 16), (STRIDE, 1))
    x[1, 3], x[1, 4] = 5, 6
    u, y = torch.arange(3, dtype=torch.uint8, device=place), torch.zeros(6, dtype=torch.int32, device=place)
    pair = {"a": 1, "v": (u, u), "b": 4}
    m.apart(first=100, p=pair, x=x, last=2.0, y=y).launchRaw(1, 1)
    assert y.tolist() == [5, 6, 16, 100, 7, 2] and (x[1, 3].item(), x[1, 5].item()) == (7, 9)
    small = torch.arange(32, dtype=torch.uint8, device=place).view(2, 16)  # the usual kernel is there, too
    m.apart(100, pair, small, 2.0, y).launchRaw(1, 1)
    assert y.tolist() == [19, 20, 16, 100, 7, 2]


def test_gradients_of_strides_of_more_than_32_bits(load: Any, place: str, large: Any) -> None:
    x = large(STRIDE // 4 + 64).as_strided((2, 4), (STRIDE // 4, 1))
    x[1, 2], x[1, 3] = 3, 5
    g, y = torch.zeros(2, 4, device=place), torch.zeros(1, device=place)
    load(WIDE).products.bwd((x, g), (y, torch.ones(1, device=place))).launchRaw(1, 1)
    assert y.item() == 15 and g.tolist() == [[0] * 4, [0, 0, 5, 3]]
    load(WIDE).products.bwd((x, None), (y, torch.ones(1, device=place))).launchRaw(1, 1)
    load(WIDE).products(x, y.zero_()).launchRaw(1, 1)
    assert y.item() == 15
