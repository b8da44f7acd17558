"""Threads of a block together: shared memory, barriers, warp functions, atomics of every kind, and constructs that the
compiler emits in a form that needs mending."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

SOURCE = """
groupshared float cache[64];
[AutoPyBindCUDA] [CudaKernel] void total(TensorView<float> x, TensorView<float> sums)
{
    uint t = cudaThreadIdx().x, i = cudaBlockIdx().x * 64 + t;
    cache[t] = i < x.size(0) ? x[i] : 0;
    GroupMemoryBarrierWithGroupSync();
    for (uint n = 32; n > 0; n /= 2) { if (t < n) cache[t] += cache[t + n]; GroupMemoryBarrierWithGroupSync(); }
    if (t == 0) sums[cudaBlockIdx().x] = cache[0];
}
[AutoPyBindCUDA] [CudaKernel] void waves(TensorView<float> x, TensorView<float> y)
{
    uint t = cudaThreadIdx().x;
    float v = x[t];
    y[t, 0] = WaveActiveSum(v);
    y[t, 1] = WavePrefixSum(v);
    y[t, 2] = WaveActiveMax(v);
    y[t, 3] = WaveReadLaneFirst(v);
    y[t, 4] = WaveGetLaneIndex();
    float odd = 0;
    if (t % 2 == 1) odd = WaveActiveSum(v);
    y[t, 5] = odd;
    y[t, 6] = WaveReadLaneAt(v, 5);
    y[t, 7] = WaveActiveCountBits(v > 0);
    y[t, 8] = WaveActiveSum(float3(v, 2 * v, 1)).y;
}
static const float table[2][3] = { { 1, 2, 3 }, { 4, 5, 6 } };
static const float3 colors[2] = { float3(1, 2, 3), float3(4, 5, 6) };
[AutoPyBindCUDA] [CudaKernel] void places(TensorView<float3> v, TensorView<int> i)
{
    v[0].y = table[i[0]][2];
    v[1].xz = float2(7, 8);
    v[1][i[0]] += 1;
    v[2] = colors[i[0]];
}
static int counter = 3;
uniform float factor;
[AutoPyBindCUDA] [CudaKernel] void counts(TensorView<int> y) { counter++; y[0] = counter; }
[AutoPyBindCUDA] [CudaKernel] void uses_global(TensorView<float> y) { y[0] = factor; }
"""


def test_threads_with_large_arrays_wait_for_each_other(load: Any) -> None:
    """On the CPU each thread of a block has a stack of its own, as large as the kernel needs."""
    m = load("""
    groupshared float seen[64];
    [AutoPyBindCUDA] [CudaKernel] void far(TensorView<float> y)
    {
        uint t = cudaThreadIdx().x, i = cudaBlockIdx().x * 64 + t;
        float a[100000];
        for (int k = 0; k < 100000; k++) a[k] = float(i) + k;
        seen[t] = a[i * 7];
        GroupMemoryBarrierWithGroupSync();
        y[i] = seen[(t + 1) % 64] + a[i];
    }
    """)
    y = torch.zeros(192)
    m.far(y=y).launchRaw((64, 1, 1), (3, 1, 1))
    t = np.arange(192)
    neighbour = t // 64 * 64 + (t + 1) % 64
    np.testing.assert_array_equal(y.numpy(), 8 * neighbour + 2 * t)


def test_sum_in_shared_memory(load: Any, place: str) -> None:
    m = load(SOURCE)
    x = torch.rand(63995, device=place)
    sums = torch.zeros(1000, device=place)
    m.total(x=x, sums=sums).launchRaw((64, 1, 1), (1000, 1, 1))
    expected = np.add.reduceat(x.cpu().numpy().astype(np.float64), np.arange(0, 63995, 64))
    assert np.abs(sums.cpu().numpy() - expected).max() < 2e-5


def test_warp_functions(load: Any, place: str) -> None:
    m = load(SOURCE)
    v = np.random.default_rng(3).integers(-9, 9, 70).astype(np.float32)  # sums are exact; the last warp has 6 lanes
    y = torch.zeros(70, 9, device=place)
    m.waves(x=torch.tensor(v, device=place), y=y).launchRaw((70, 1, 1), (1, 1, 1))
    got = y.cpu().numpy()
    for first in range(0, 70, 32):
        w = v[first : first + 32]
        rows = got[first : first + 32]
        lanes = np.arange(len(w))
        assert (rows[:, 0] == w.sum()).all() and (rows[:, 1] == np.cumsum(w) - w).all()
        assert (rows[:, 2] == w.max()).all() and (rows[:, 3] == w[0]).all() and (rows[:, 4] == lanes).all()
        assert (rows[:, 5] == np.where(lanes % 2 == 1, w[1::2].sum(), 0)).all() and (rows[:, 6] == w[5]).all()
        assert (rows[:, 7] == (w > 0).sum()).all() and (rows[:, 8] == 2 * w.sum()).all()


DIVIDED = """
groupshared float shared_sums[32];
[AutoPyBindCUDA] [CudaKernel] void divided(TensorView<float> x, TensorView<float> y)
{
    uint t = cudaThreadIdx().x;
    if (t >= x.size(0)) return;
    float v = x[t];
    float sum = 0;
    if (t % 3 == 0) { sum = WaveActiveSum(v); if (WaveIsFirstLane()) y[t, 0] = sum; }
    else { sum = WaveActiveMin(v); if (WaveIsFirstLane()) y[t, 0] = -sum; }
    float rounds = 0;
    for (uint i = 0; i < t % 4; i++) rounds += WaveActiveSum(1.0f);
    y[t, 1] = rounds;
    y[t, 2] = WavePrefixProduct(v);
    y[t, 3] = WaveActiveBallot(v > 0).x;
    y[t, 4] = WaveActiveAllEqual(t / 32) ? 1 : 0;
    y[t, 5] = countbits(WaveMatch(int(v)).x);
    float2x2 m = float2x2(v, 1, 2, v);
    y[t, 6] = WaveActiveSum(m)[1][1];
    y[t, 7] = WaveActiveMax(float4(v, -v, 0, 1)).y;
}
[AutoPyBindCUDA] [CudaKernel] void by_warps(TensorView<float> x, TensorView<float> y)
{
    uint t = cudaThreadIdx().x;
    shared_sums[t / 32] = WaveActiveSum(x[t]);
    GroupMemoryBarrierWithGroupSync();
    float total = 0;
    for (uint i = 0; i < cudaBlockDim().x / 32; i++) total += shared_sums[i];
    y[t] = total;
}
[AutoPyBindCUDA] [CudaKernel] void never_ends(TensorView<float> x)
{
    if (cudaThreadIdx().x < 7) GroupMemoryBarrierWithGroupSync();
    x[0] = WaveActiveSum(x[0]);
    if (cudaThreadIdx().x >= 7) GroupMemoryBarrierWithGroupSync();
}
"""


def test_warps_in_branches(load: Any, place: str) -> None:
    m = load(DIVIDED)
    v = np.random.default_rng(5).integers(-3, 4, 75).astype(np.float32)  # 75 of 96 threads stay
    y = torch.zeros(75, 8, device=place)
    m.divided(x=torch.tensor(v, device=place), y=y).launchRaw((96, 1, 1), (1, 1, 1))
    got = y.cpu().numpy()
    for first in range(0, 75, 32):
        w, rows, t = v[first : first + 32], got[first : first + 32], np.arange(first, min(first + 32, 75))
        thirds = t % 3 == 0
        expected = np.zeros(len(w))
        expected[np.argmax(thirds)], expected[np.argmax(~thirds)] = w[thirds].sum(), -w[~thirds].min()
        np.testing.assert_array_equal(rows[:, 0], expected)
        in_round = [(t % 4 > i).sum() for i in range(3)]
        np.testing.assert_array_equal(rows[:, 1], [sum(in_round[: k % 4]) for k in t])
        np.testing.assert_array_equal(rows[:, 2], np.cumprod([1, *w[:-1]]))
        bits = sum(1 << i for i in range(len(w)) if w[i] > 0)
        np.testing.assert_array_equal(rows[:, 3], np.float32(bits))
        assert (rows[:, 4] == 1).all()
        np.testing.assert_array_equal(rows[:, 5], [(w == x).sum() for x in w])
        assert (rows[:, 6] == w.sum()).all() and (rows[:, 7] == (-w).max()).all()


def test_warps_and_barriers_together(load: Any, place: str) -> None:
    m = load(DIVIDED)
    for count in (256, 32, 1024, 64):
        x, y = torch.arange(float(count), device=place), torch.zeros(count, device=place)
        m.by_warps(x=x, y=y).launchRaw((count, 1, 1), (1, 1, 1))
        assert (y == (count - 1) * count / 2).all()


def test_threads_that_wait_for_ever(load: Any) -> None:
    m = load(DIVIDED)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="never_ends: the threads of a block wait for each other"):
            m.never_ends(torch.ones(1)).launchRaw((32, 1, 1), (1, 1, 1))
    y = torch.zeros(32)
    m.by_warps(x=torch.ones(32), y=y).launchRaw((32, 1, 1), (1, 1, 1))
    assert (y == 32).all()


def test_mended_text(load: Any, place: str) -> None:
    m = load(SOURCE)
    v = torch.zeros(3, 3, device=place)
    m.places(v=v, i=torch.tensor([1], dtype=torch.int32, device=place)).launchRaw(1, 1)
    assert v.tolist() == [[0, 6, 0], [7, 1, 8], [4, 5, 6]]


def test_kernels_that_cannot_be_called(load: Any) -> None:
    m = load(SOURCE)
    with pytest.raises(TypeError, match="counts cannot be called: it uses a mutable static variable.*static const"):
        m.counts(torch.zeros(1, dtype=torch.int32))
    with pytest.raises(TypeError, match="uses_global cannot be called: it uses a global uniform"):
        m.uses_global(torch.zeros(1))


ATOMICS = """
#define INTEGERS(T) [AutoPyBindCUDA] [CudaKernel] void i_##T(TensorView<T> y) \\
{ T old; T t = T(cudaThreadIdx().x + cudaBlockIdx().x * cudaBlockDim().x); \\
  y.InterlockedAdd(0, t, old); y.InterlockedMin(1, t, old); y.InterlockedMax(uint2(2, 0), t, old); \\
  y.InterlockedAnd(3, ~(T(1) << (t % 16)), old); y.InterlockedOr(4, T(1) << (t % 16), old); y.InterlockedXor(5, t, old); \\
  y.InterlockedExchange(6, T(7), old); y.InterlockedCompareExchange(7, T(3), T(9)); }
INTEGERS(int) INTEGERS(uint) INTEGERS(int64_t) INTEGERS(uint64_t)
[AutoPyBindCUDA] [CudaKernel] void floats(TensorView<float> f, TensorView<double> d, TensorView<half> h, TensorView<float3> v)
{
    float of; double od; half oh; float3 ov;
    f.InterlockedAdd(0, 1, of); d.InterlockedAdd(0, 1, od); v.InterlockedAdd(0, float3(1, 2, 3), ov);
    if (cudaBlockIdx().x < 10) h.InterlockedAdd(0, half(1), oh);
    f.InterlockedExchange(1, 5, of); f.InterlockedCompareExchange(2, 3, 9);
}
"""


@pytest.mark.parametrize("name", ["int", "uint", "int64_t", "uint64_t"])
def test_atomics_of_integers(load: Any, place: str, name: str) -> None:
    m = load(ATOMICS)
    dtype = torch.int32 if name in ("int", "uint") else torch.int64
    n = 100_000
    y = torch.tensor([0, n, 0, -1, 0, 0, 0, 3], dtype=dtype, device=place)
    getattr(m, f"i_{name}")(y.reshape(8, 1)[:, 0]).launchRaw(100, n // 100)
    ids = np.arange(n, dtype=np.int64)
    wrap = np.int32 if dtype is torch.int32 else np.int64
    total = np.array(ids.sum()).astype(wrap)
    assert y.tolist() == [total, 0, n - 1, wrap(-1) & ~wrap(0xFFFF), 0xFFFF, np.bitwise_xor.reduce(ids), 7, 9]


def test_atomics_of_floats(load: Any, place: str) -> None:
    m = load(ATOMICS)
    f, d = torch.tensor([0, 0, 3.0], device=place), torch.zeros(1, dtype=torch.float64, device=place)
    h, v = torch.zeros(1, dtype=torch.float16, device=place), torch.zeros(1, 3, device=place)
    m.floats(f, d, h, v).launchRaw(100, 1000)
    assert f.tolist() == [100000, 5, 9] and d.item() == 100000 and h.item() == 1000
    assert v.tolist() == [[100000, 200000, 300000]]
