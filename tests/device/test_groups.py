"""Group-shared memory, barriers, waves and atomics, on every device, against NumPy."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from device_kernels import RW, kernel

import slangpy as spy
from slangpy.config import config
from slangpy.device.backends import configure_cpu

pytestmark = pytest.mark.needs_kernels

GROUPS = """
groupshared float sums[N];
groupshared float steps[N];
groupshared uint keys[M];
groupshared uint tally;

[shader("compute")]
[numthreads(N, 1, 1)]
void main(uint3 thread : SV_DispatchThreadID, uint i : SV_GroupIndex, uint3 local : SV_GroupThreadID, uint3 group : SV_GroupID,
          StructuredBuffer<float> x, RWStructuredBuffer<float> sum, RWStructuredBuffer<float> prefix,
          RWStructuredBuffer<uint> sorted, RWStructuredBuffer<uint> count)
{
    float own = x[thread.x];
    sums[i] = own;
    steps[local.x] = own;
    if (i == 0) tally = 0;
    for (uint k = i; k < M; k += N) keys[k] = k < N ? asuint(x[group.x * N + k]) : 0xffffffff;
    GroupMemoryBarrierWithGroupSync();
    InterlockedAdd(tally, uint(own < 0.5));
    for (uint n = N; n > 1; ) // reduction
    {
        uint half = (n + 1) / 2;
        if (i + half < n) sums[i] += sums[i + half];
        n = half;
        GroupMemoryBarrierWithGroupSync();
    }
    for (uint step = 1; step < N; step *= 2) // prefix sum
    {
        float add = i >= step ? steps[i - step] : 0;
        GroupMemoryBarrierWithGroupSync();
        steps[i] += add;
        GroupMemoryBarrierWithGroupSync();
    }
    for (uint width = 2; width <= M; width *= 2) // bitonic sort
        for (uint apart = width / 2; apart > 0; apart /= 2)
        {
            for (uint a = i; a < M; a += N)
            {
                uint b = a ^ apart;
                if (b > a && (keys[a] > keys[b]) == ((a & width) == 0))
                {
                    uint kept = keys[a];
                    keys[a] = keys[b];
                    keys[b] = kept;
                }
            }
            GroupMemoryBarrierWithGroupSync();
        }
    prefix[thread.x] = steps[i];
    sorted[thread.x] = keys[i];
    if (i == 0) { sum[group.x] = sums[0]; count[group.x] = tally; }
}
"""
PRODUCT = """
groupshared float left[H][T];
groupshared float right[T][T + 1];

[shader("compute")]
[numthreads(T, H, 1)]
void main(uint3 thread : SV_DispatchThreadID, uint3 local : SV_GroupThreadID, StructuredBuffer<float> a, StructuredBuffer<float> b,
          RWStructuredBuffer<float> c, uniform uint n)
{
    float sum = 0;
    for (uint k = 0; k < n; k += T)
    {
        left[local.y][local.x] = thread.y < n && k + local.x < n ? a[thread.y * n + k + local.x] : 0;
        for (uint row = local.y; row < T; row += H)
            right[row][local.x] = thread.x < n && k + row < n ? b[(k + row) * n + thread.x] : 0;
        GroupMemoryBarrierWithGroupSync();
        for (uint j = 0; j < T; j++) sum += left[local.y][j] * right[j][local.x];
        GroupMemoryBarrierWithGroupSync();
    }
    if (thread.x < n && thread.y < n) c[thread.y * n + thread.x] = sum;
}
"""
SINGLE = """
groupshared float ARRAY;

[shader("compute")]
[numthreads(64, 1, 1)]
void main(uint3 thread : SV_DispatchThreadID, uint i : SV_GroupIndex, RWStructuredBuffer<float> values)
{
    float own[64]; // of each thread
    own[i] = values[thread.x];
    own[63 - i] = own[i];
    for (uint turn = 0; turn < 64; turn++)
    {
        if (i == turn) SHARED = own[63 - i];
        GroupMemoryBarrierWithGroupSync();
        if (i == 63 - turn) values[thread.x] = READ;
        GroupMemoryBarrierWithGroupSync();
    }
}
"""
WAVES = """
struct Row { uint lanes, lane, first, before, low; float sum, largest, prefix, product, read, shared; uint match, any, all, bits; };

[shader("compute")]
[numthreads(64, 1, 1)]
void main(uint3 thread : SV_DispatchThreadID, StructuredBuffer<float> x, RWStructuredBuffer<Row> rows)
{
    Row row;
    float v = x[thread.x];
    row.lanes = WaveGetLaneCount();
    row.lane = WaveGetLaneIndex();
    row.sum = WaveActiveSum(v);
    row.largest = WaveActiveMax(float2(-v, v)).y;
    row.prefix = WavePrefixSum(v);
    row.product = WavePrefixProduct(1 + v);
    row.read = WaveReadLaneAt(v, 0);
    row.shared = WaveReadLaneFirst(v * 2);
    row.before = WavePrefixCountBits(v < 0.5);
    row.bits = WaveActiveCountBits(v < 0.5);
    row.any = uint(WaveActiveAnyTrue(v > 0.9));
    row.all = uint(WaveActiveAllTrue(v > 0.01));
    row.match = countbits(WaveMatch(uint(v * 4)).x) + countbits(WaveMatch(uint(v * 4)).y);
    row.first = uint(WaveIsFirstLane());
    row.low = 0;
    if (v < 0.5) row.low = WaveActiveSum(thread.x); // only some lanes take part
    rows[thread.x] = row;
}
"""
ROW = np.dtype(
    [(n, np.uint32) for n in ("lanes", "lane", "first", "before", "low")]
    + [(n, np.float32) for n in ("sum", "largest", "prefix", "product", "read", "shared")]
    + [(n, np.uint32) for n in ("match", "any", "all", "bits")]
)


def buffer(device: spy.Device, data: np.ndarray) -> spy.Buffer:
    return device.create_buffer(data=data, struct_size=data.dtype.itemsize, usage=RW)


def largest_group(device: spy.Device) -> int:
    return device.info.limits.max_compute_threads_per_group


@pytest.mark.parametrize("size", [1, 33, 256, 1024])
def test_reduce_scan_sort(device: spy.Device, size: int) -> None:
    if size > largest_group(device):
        pytest.skip("groups are smaller")
    padded = 1 << (size - 1).bit_length()
    source = GROUPS.replace("[M]", f"[{padded}]").replace(" M;", f" {padded};").replace("[N]", f"[{size}]")
    run = kernel(device, f"static const uint N = {size}, M = {padded};\n" + source)
    groups = 5
    x = np.random.default_rng(size).random((groups, size)).astype(np.float32)
    out = {n: buffer(device, np.zeros(groups, t)) for n, t in (("sum", np.float32), ("count", np.uint32))}
    out |= {n: buffer(device, np.zeros(x.size, t)) for n, t in (("prefix", np.float32), ("sorted", np.uint32))}
    run.dispatch(x.size, x=buffer(device, x.ravel()), **out)
    exact = x.astype(np.float64)
    np.testing.assert_allclose(out["sum"].to_numpy().view(np.float32), exact.sum(1), rtol=1e-5)
    np.testing.assert_allclose(out["prefix"].to_numpy().view(np.float32).reshape(x.shape), exact.cumsum(1), rtol=1e-5)
    np.testing.assert_array_equal(out["sorted"].to_numpy().view(np.float32).reshape(x.shape), np.sort(x, 1))
    np.testing.assert_array_equal(out["count"].to_numpy().view(np.uint32), (x < 0.5).sum(1))


@pytest.mark.parametrize(("width", "height"), [(1, 1), (33, 1), (16, 16), (32, 32)])
def test_tiled_product(device: spy.Device, width: int, height: int) -> None:
    """Groups of 1, 33, 256 and 1024 threads."""
    if width * height > largest_group(device):
        pytest.skip("groups are smaller")
    n, rng = 83, np.random.default_rng(2)
    a, b = rng.random((2, n, n)).astype(np.float32)
    c = buffer(device, np.zeros(n * n, np.float32))
    run = kernel(device, f"static const uint T = {width}, H = {height};\n" + PRODUCT)
    run.dispatch([n, n], a=buffer(device, a.ravel()), b=buffer(device, b.ravel()), c=c, n=n)
    expected = a.astype(np.float64) @ b.astype(np.float64)
    np.testing.assert_allclose(c.to_numpy().view(np.float32).reshape(n, n), expected, rtol=1e-5)


@pytest.mark.parametrize(("array", "written", "read"), [("kept[64]", "kept[i]", "kept[turn]"), ("kept", "kept", "kept")])
def test_one_shared_variable_alone(device: spy.Device, array: str, written: str, read: str) -> None:
    """Slang's C++ has nothing that tells such a one from a variable of the thread."""
    x = np.random.default_rng(6).random(128).astype(np.float32)
    values = buffer(device, x)
    kernel(device, SINGLE.replace("ARRAY", array).replace("SHARED", written).replace("READ", read)).dispatch(128, values=values)
    found = values.to_numpy().view(np.float32).reshape(2, 64)
    np.testing.assert_array_equal(found, x.reshape(2, 64)[:, ::-1])


def check_waves(device: spy.Device, lanes: int | None = None) -> None:
    x = np.random.default_rng(4).random(192).astype(np.float32)
    rows = buffer(device, np.zeros(x.size, ROW))
    matches = device.info.type is spy.DeviceType.cpu  # SPIR-V has it as an extension of NVIDIA alone
    source = WAVES if matches else re.sub("row.match = .*", "row.match = 0;", WAVES)
    kernel(device, source).dispatch(x.size, x=buffer(device, x), rows=rows)
    found = rows.to_numpy().view(ROW).ravel()
    size = int(found["lanes"][0])
    assert lanes in (None, size)
    limits = device.info.limits
    assert limits.min_wave_size <= size <= limits.max_wave_size
    wave = x.reshape(-1, size)
    index = np.arange(x.size, dtype=np.uint32).reshape(-1, size)
    below = wave < 0.5
    before = np.arange(size)[None, :, None] > np.arange(size)[None, None, :]
    quarters = (wave * 4).astype(np.uint32)
    exact = wave.astype(np.float64)
    expected: dict[str, Any] = {
        "lane": index % size, "sum": exact.sum(1, keepdims=True), "largest": wave.max(1, keepdims=True),
        "prefix": exact.cumsum(1) - exact, "product": np.where(before, 1 + exact[:, None, :], 1).prod(2),
        "read": wave[:, :1], "shared": 2 * wave[:, :1], "before": (below[:, None, :] & before).sum(2),
        "bits": below.sum(1, keepdims=True), "any": (wave > 0.9).any(1, keepdims=True),
        "all": (wave > 0.01).all(1, keepdims=True), "first": index % size == 0,
        "match": (quarters[:, None, :] == quarters[:, :, None]).sum(2) * matches,
        "low": np.where(below, (index * below).sum(1, keepdims=True), 0),
    }  # fmt: skip
    for name, value in expected.items():
        np.testing.assert_allclose(
            found[name].reshape(-1, size), np.broadcast_to(value, wave.shape), 1e-5, 1e-5, err_msg=name
        )


def test_waves(device: spy.Device) -> None:
    check_waves(device, 1 if device.info.type is spy.DeviceType.cpu else None)


def test_waves_of_32_lanes_on_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(config, "cpu_wave_lanes", 32)
        configure_cpu()
        device = spy.Device(type=spy.DeviceType.cpu)
    configure_cpu()
    check_waves(device, 32)
    device.close()


def test_wrong_number_of_lanes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(config, "cpu_wave_lanes", 8)
    with pytest.raises(ValueError, match=r"waves of 1 or 32 lanes \(SLANGPY_CPU_WAVE_LANES\), not of 8"):
        configure_cpu()


@pytest.mark.parametrize(("kind", "dtype"), [("uint", np.uint32), ("int", np.int32), ("uint64_t", np.uint64), ("int64_t", np.int64)])
@pytest.mark.parametrize("fetched", [False, True])
def test_atomics_with_literals(device: spy.Device, kind: str, dtype: type, fetched: bool) -> None:
    """`3` is an int, whatever the word is."""
    if np.dtype(dtype).itemsize == 8 and not device.has_feature(spy.Feature.atomic_int64):
        pytest.skip("no atomics of 64 bits")
    names = ["Add", "Min", "Max", "And", "Or", "Xor", "Exchange"]
    calls = " ".join(f"Interlocked{name}(y[{i}], 3{', before' * fetched});" for i, name in enumerate(names))
    source = (
        f'[shader("compute")] [numthreads(64, 1, 1)] void k(RWStructuredBuffer<{kind}> y) {{ {kind} before; {calls} }}'
    )
    loaded = device.load_module_from_source(f"literals_{kind}_{fetched}", source)
    kernel = device.create_compute_kernel(device.link_program([loaded], [loaded.entry_point("k")]))
    usage = spy.BufferUsage.shader_resource | spy.BufferUsage.unordered_access
    words = device.create_buffer(data=np.full(8, 6, dtype), struct_size=np.dtype(dtype).itemsize, usage=usage)
    kernel.dispatch([64, 1, 1], y=words)
    found = words.to_numpy().view(dtype)
    assert found.tolist() == [6 + 3 * 64, 3, 6, 6 & 3, 6 | 3, 6, 3, 6]
