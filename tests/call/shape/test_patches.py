"""Kernels whose threads handle several invocations: patches of two dimensions of the call, and functions that pick
elements. Both are for large calls; here small ones go that way, too."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import slangpy as spy
from slangpy.compiler.modules.facts import may_loop
from slangpy.plan.emit import variants

pytestmark = [
    pytest.mark.needs_kernels,
    pytest.mark.elsewhere(
        "shape1", "shape4", "order1", "order3", "test_reversed_and_strided", "test_a_batch_that_is_broadcast",
        "test_vectors", "test_outputs", "257", "1024", "test_large_calls_go_that_way", "test_recorded_and_prepared",
        "test_checked_indices",
    ),
]  # fmt: skip

PATCH, CROSSED, SEVERAL = 15 << 55, 1 << 59, 4  # of VariantKey in src/native/call/plan/plan.h
SOURCE = """
import slangpy;
float same(float x) { return x; }
float mixed(float x, float y, int z) { return 100 * x + 10 * y + z; }
float3 turned(float3 v, float s) { return v.zxy * s; }
double wide(double x, half y, bool z) { return z ? x + y : x - y; }
int narrow(int16_t x) { return 3 * x; }
void outputs(float x, inout float y, out float z) { z = x - y; y = x + 2 * y; }
float noise(float x, uint n) { return x + (n & 7); }
int ids(int i, int x) { return i - x; }
int placed(int3 at, int x) { return at.z * 10000 + at.y * 100 + at.x - x; }
float around(int2 at, Tensor<float, 2> x)
{
    int2 p = at.yx, n = int2(x.shape[0], x.shape[1]) - 1;
    return x[max(p.x - 1, 0), p.y] + 2 * x[min(p.x + 1, n.x), p.y] + 3 * x[p.x, max(p.y - 1, 0)] + 4 * x[p.x, min(p.y + 1, n.y)];
}
float picked(Tensor<float, 1> x, int i) { return x[i]; }
float looped(int i, Tensor<float, 2> x)
{
    float s = 0;
    for (int k = 0; k < x.shape[1]; k++)
        s += x[i % int(x.shape[0]), k];
    return s;
}
float scaled(Tensor<float, 1> table, float x, int i) { return table[i] * x; }
float part(Tensor<float, 1> row, int i) { return row[i % int(row.shape[0])]; }
float of_four(Tensor<float, 1> a, Tensor<float, 1> b, Tensor<float, 1> c, Tensor<float, 1> d, int i) { return a[i] + b[i] + c[i] + d[i]; }
void several(float x, bool z, out float3 v, out float a[2], inout bool b)
{
    v = x + float3(0, 1, 2);
    a = { x, -x };
    b = !b;
}
struct Pair { float low, high; }
Pair pair(float x) { return { -x, 2 * x }; }
void put(int2 at, float v, RWTensor<float, 2> x) { x[at.y, at.x] = x[at.y, at.x] + v; }
"""
F = np.float32


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(variants, "PATCH_LEAST", 1)
    monkeypatch.setattr(variants, "PICKS_LEAST", 1)
    monkeypatch.setattr(variants, "_MANY_TENSORS", 1)


@pytest.fixture
def module(device: spy.Device) -> spy.Module:
    return spy.Module.load_from_source(device, "patches", SOURCE)


def has_forms(device: spy.Device) -> bool:
    return device.info.type in (spy.DeviceType.cuda, spy.DeviceType.vulkan)


def keys(function: Any, *args: Any, **named: Any) -> list[int]:
    return list(function.debug_build_call_data(*args, **named).kernels.variants)


def numbers(*shape: int, dtype: Any = F) -> np.ndarray:
    return np.random.default_rng(sum(shape)).integers(-50, 50, shape).astype(dtype)


def permuted(device: spy.Device, values: np.ndarray, order: tuple[int, ...], dtype: str | None = None) -> spy.Tensor:
    """A tensor of these values whose memory has their dimensions in another order."""
    back = tuple(np.argsort(order))
    return spy.Tensor.from_numpy(device, np.ascontiguousarray(values.transpose(order)), target_slang_dtype=dtype).permute(*back)


def expect_key(device: spy.Device, found: list[int], shape: tuple[int, ...], *, x: int, y: int, crossed: bool) -> None:
    """x, y: dimensions of the patch, counted from the last. Patches that are mostly outside of the call are not used."""
    across, along = (32, 32) if crossed else (128, 8)
    columns, rows = shape[-1 - x], shape[-1 - y]
    is_used = 2 * columns * rows >= -(-columns // across) * across * -(-rows // along) * along
    if has_forms(device) and is_used:
        assert any((key & PATCH) >> 55 == (x | y << 2) and bool(key & CROSSED) == crossed for key in found)


@pytest.mark.parametrize("shape", [(32, 32), (31, 33), (33, 70), (64, 40), (100, 257)])
def test_transposed(device: spy.Device, module: spy.Module, shape: tuple[int, int]):
    values = numbers(*shape)
    x, y = permuted(device, values, (1, 0)), spy.Tensor.from_numpy(device, np.full(shape, np.nan, F))
    module.same(x, _result=y)
    np.testing.assert_array_equal(y.to_numpy(), values)
    expect_key(device, keys(module.same, x, _result=y), shape, x=0, y=1, crossed=True)
    np.testing.assert_array_equal(module.same(x).to_numpy(), values)
    np.testing.assert_array_equal(module.same(x, _result="numpy"), values)


@pytest.mark.parametrize("shape", [(0, 33), (1, 1), (1, 40), (40, 1), (3, 5), (31, 1), (2, 100)])
def test_few(device: spy.Device, module: spy.Module, shape: tuple[int, int]):
    values = numbers(*shape)
    np.testing.assert_array_equal(module.same(permuted(device, values, (1, 0))).to_numpy(), values)
    at = spy.grid(shape)
    if values.size:
        table = spy.Tensor.from_numpy(device, values)
        np.testing.assert_array_equal(module.around(at, table).to_numpy(), stencil(values))


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_three_dimensions(device: spy.Device, module: spy.Module, order: tuple[int, ...]):
    values = numbers(33, 36, 41)
    for given in itertools.permutations(range(3)):
        x, y = permuted(device, values, order), permuted(device, np.full(values.shape, np.nan, F), given)
        module.same(x, _result=y)
        np.testing.assert_array_equal(y.to_numpy(), values)


@pytest.mark.parametrize("order", [(3, 1, 0, 2), (0, 1, 3, 2), (2, 3, 1, 0), (1, 3, 2, 0)])
def test_four_dimensions(device: spy.Device, module: spy.Module, order: tuple[int, ...]):
    values = numbers(33, 3, 35, 34)
    np.testing.assert_array_equal(module.same(permuted(device, values, order)).to_numpy(), values)
    y = permuted(device, np.full(values.shape, np.nan, F), order)
    module.same(spy.Tensor.from_numpy(device, values), _result=y)
    np.testing.assert_array_equal(y.to_numpy(), values)


def test_results_that_are_transposed(device: spy.Device, module: spy.Module):
    values = numbers(70, 45)
    x, y = spy.Tensor.from_numpy(device, values), permuted(device, np.full(values.shape, np.nan, F), (1, 0))
    module.same(x, _result=y)
    np.testing.assert_array_equal(y.to_numpy(), values)
    expect_key(device, keys(module.same, x, _result=y), (70, 45), x=1, y=0, crossed=True)
    both = permuted(device, values, (1, 0))
    y = permuted(device, np.full(values.shape, np.nan, F), (1, 0))
    module.same(both, _result=y)
    np.testing.assert_array_equal(y.to_numpy(), values)


def test_reversed_and_strided(device: spy.Device, module: spy.Module):
    values = numbers(90, 70)
    x = permuted(device, values, (1, 0))
    for view, expected in (
        (x[::-1], values[::-1]), (x[:, ::-1], values[:, ::-1]), (x[::2, ::-1], values[::2, ::-1]), (x[5:80, 1:], values[5:80, 1:]),
        (x[::-1, ::2], values[::-1, ::2]),
    ):  # fmt: skip
        np.testing.assert_array_equal(module.same(view).to_numpy(), expected)
        y = spy.Tensor.from_numpy(device, np.full(expected.shape[::-1], np.nan, F)).permute(1, 0)[::-1]
        module.same(view, _result=y)
        np.testing.assert_array_equal(y.to_numpy(), expected)


def test_several_arguments(device: spy.Device, module: spy.Module):
    a, b, c = numbers(40, 50), numbers(40, 50), numbers(40, 50, dtype=np.int32)
    x, y, z = permuted(device, a, (1, 0)), spy.Tensor.from_numpy(device, b), permuted(device, c, (1, 0))
    np.testing.assert_array_equal(module.mixed(x, y, z).to_numpy(), 100 * a + 10 * b + c)
    column, row = spy.Tensor.from_numpy(device, b[:, :1]), spy.Tensor.from_numpy(device, b[0])
    np.testing.assert_array_equal(module.mixed(x, column, z).to_numpy(), 100 * a + 10 * b[:, :1] + c)
    np.testing.assert_array_equal(module.mixed(x, row, 3).to_numpy(), 100 * a + 10 * b[0] + 3)
    np.testing.assert_array_equal(module.mixed(x, x, spy.Tensor.from_numpy(device, c)).to_numpy(), 110 * a + c)


def test_a_batch_that_is_broadcast(device: spy.Device, module: spy.Module):
    a, b = numbers(1, 40, 50), numbers(3, 40, 50)
    x = spy.Tensor.from_numpy(device, np.ascontiguousarray(a.transpose(2, 1, 0))).permute(2, 1, 0)
    found = module.mixed(x, spy.Tensor.from_numpy(device, b), 1)
    np.testing.assert_array_equal(found.to_numpy(), 100 * a + 10 * b + 1)


def test_vectors(device: spy.Device, module: spy.Module):
    values, factors = numbers(45, 37, 3), numbers(45, 37)
    expected = values[..., [2, 0, 1]] * factors[..., None]
    for dtype in (None, "float3"):
        v = spy.Tensor.from_numpy(device, values.transpose(1, 0, 2).copy(), target_slang_dtype=dtype)
        v = v.permute(1, 0, 2) if len(v.shape) == 3 else v.permute(1, 0)
        found = module.turned(v, spy.Tensor.from_numpy(device, factors))
        np.testing.assert_array_equal(found.to_numpy().reshape(expected.shape), expected)
        found = module.turned(v, permuted(device, factors, (1, 0)))
        np.testing.assert_array_equal(found.to_numpy().reshape(expected.shape), expected)


def test_other_types(device: spy.Device, module: spy.Module):
    x, y, z = numbers(40, 41, dtype=np.float64), numbers(40, 41, dtype=np.float16), numbers(40, 41) > 0
    found = module.wide(permuted(device, x, (1, 0)), permuted(device, y, (1, 0)), permuted(device, z, (1, 0)))
    np.testing.assert_array_equal(found.to_numpy(), np.where(z, x + y, x - y))
    small = numbers(40, 41, dtype=np.int16)
    np.testing.assert_array_equal(module.narrow(permuted(device, small, (1, 0))).to_numpy(), 3 * small)


def test_outputs(device: spy.Device, module: spy.Module):
    a, b = numbers(50, 40), numbers(50, 40)
    for orders in itertools.product([(0, 1), (1, 0)], repeat=3):
        x, y = permuted(device, a, orders[0]), permuted(device, b, orders[1])
        z = permuted(device, np.full(a.shape, np.nan, F), orders[2])
        module.outputs(x, y, z)
        np.testing.assert_array_equal(y.to_numpy(), a + 2 * b)
        np.testing.assert_array_equal(z.to_numpy(), a - b)


def test_in_place(device: spy.Device, module: spy.Module):
    values = numbers(64, 64)
    x = permuted(device, values, (1, 0))
    module.mixed(x, x, 2, _result=x)
    np.testing.assert_array_equal(x.to_numpy(), 110 * values + 2)
    flipped = spy.Tensor.from_numpy(device, values)
    module.same(flipped.permute(1, 0), _result=flipped)
    np.testing.assert_array_equal(flipped.to_numpy(), values.T)


def test_generators(device: spy.Device, module: spy.Module):
    values = numbers(40, 50, dtype=np.int32)
    x = permuted(device, values, (1, 0))
    ids = np.arange(2000, dtype=np.int32).reshape(40, 50)
    np.testing.assert_array_equal(module.ids(spy.thread_id(), x).to_numpy(), ids - values)
    plain = module.noise(spy.Tensor.from_numpy(device, values.astype(F)), spy.wang_hash()).to_numpy()
    np.testing.assert_array_equal(module.noise(permuted(device, values.astype(F), (1, 0)), spy.wang_hash()).to_numpy(), plain)
    cube = numbers(34, 3, 35, dtype=np.int32)
    at = np.indices(cube.shape)
    expected = at[0] * 10000 + at[1] * 100 + at[2] - cube
    for order in itertools.permutations(range(3)):
        given = permuted(device, cube, order)
        np.testing.assert_array_equal(module.placed(spy.grid(cube.shape), given).to_numpy(), expected)
        np.testing.assert_array_equal(module.placed(spy.call_id(), given).to_numpy(), expected)


def stencil(x: np.ndarray) -> np.ndarray:
    p = np.pad(x, 1, mode="edge")
    return p[:-2, 1:-1] + 2 * p[2:, 1:-1] + 3 * p[1:-1, :-2] + 4 * p[1:-1, 2:]


@pytest.mark.parametrize("shape", [(8, 128), (7, 127), (9, 200), (33, 256), (5, 513)])
def test_stencil(device: spy.Device, module: spy.Module, shape: tuple[int, int]):
    values = numbers(*shape)
    x, y, at = spy.Tensor.from_numpy(device, values), spy.Tensor.from_numpy(device, np.full(shape, np.nan, F)), spy.grid(shape)
    module.around(at, x, _result=y)
    np.testing.assert_array_equal(y.to_numpy(), stencil(values))
    expect_key(device, keys(module.around, at, x, _result=y), shape, x=0, y=1, crossed=False)
    np.testing.assert_array_equal(module.around(at, x[::-1, ::-1]).to_numpy(), stencil(values[::-1, ::-1]))
    turned = permuted(device, np.full(shape, np.nan, F), (1, 0))
    module.around(at, x, _result=turned)
    np.testing.assert_array_equal(turned.to_numpy(), stencil(values))
    stepped = module.around(spy.grid((shape[0] // 2, shape[1]), stride=(2, 1)), x).to_numpy()
    np.testing.assert_array_equal(stepped, stencil(values)[: shape[0] // 2 * 2 : 2])


@pytest.mark.parametrize("count", [0, 1, 31, 255, 257, 1023, 1024, 1025, 5000])
def test_gather(device: spy.Device, module: spy.Module, count: int):
    table, index = numbers(1000), np.random.default_rng(count).integers(0, 1000, count, np.int32)
    x, i = spy.Tensor.from_numpy(device, table), spy.Tensor.from_numpy(device, index)
    np.testing.assert_array_equal(module.picked(x, i).to_numpy(), table[index])
    np.testing.assert_array_equal(module.picked(x, i[::-1]).to_numpy(), table[index[::-1]])
    factors = numbers(count)
    np.testing.assert_array_equal(module.scaled(x, factors, i).to_numpy(), table[index] * factors)
    if count and has_forms(device):
        assert all(key & SEVERAL for key in keys(module.picked, x, i))
    rows = numbers(70, 9)
    found = module.looped(spy.grid((count,)), spy.Tensor.from_numpy(device, rows)).to_numpy()
    np.testing.assert_array_equal(found, rows.sum(1)[np.arange(count) % 70])


def test_parts_of_tensors(device: spy.Device, module: spy.Module):
    """Each invocation has a tensor of its own."""
    rows, index = numbers(300, 7), np.random.default_rng(1).integers(0, 7, (40, 300), np.int32)
    x, i = spy.Tensor.from_numpy(device, rows), spy.Tensor.from_numpy(device, index)
    expected = rows[np.arange(300)[None], index]
    np.testing.assert_array_equal(module.part.map(row=(1,), i=(0, 1))(x, i).to_numpy(), expected)
    np.testing.assert_array_equal(module.part.map(row=(1,), i=(0, 1))(x, permuted(device, index, (1, 0))).to_numpy(), expected)


def test_functions_that_write(device: spy.Device, module: spy.Module):
    values, more = numbers(40, 130), numbers(40, 130)
    x = spy.Tensor.from_numpy(device, values)
    module.put(spy.grid(values.shape), permuted(device, more, (1, 0)), x)
    np.testing.assert_array_equal(x.to_numpy(), values + more)


def test_large_calls_go_that_way(device: spy.Device, module: spy.Module, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(variants, "PATCH_LEAST", 5000)
    monkeypatch.setattr(variants, "PICKS_LEAST", 5000)
    function = spy.Module.load_from_source(device, "patches_by_size", SOURCE).around
    for shape, several in (((16, 128), False), ((64, 128), True)):
        values = numbers(*shape)
        call = spy.grid(shape), spy.Tensor.from_numpy(device, values)
        np.testing.assert_array_equal(function(*call).to_numpy(), stencil(values))
        assert any(key & PATCH for key in keys(function, *call)) == (several and has_forms(device))


def test_recorded_and_prepared(device: spy.Device, module: spy.Module):
    values = numbers(70, 45)
    x, y = permuted(device, values, (1, 0)), spy.Tensor.from_numpy(device, np.full(values.shape, np.nan, F))
    encoder = device.create_command_encoder()
    module.same.append_to(encoder, x, _result=y)
    device.submit_command_buffer(encoder.finish())
    np.testing.assert_array_equal(y.to_numpy(), values)
    y.storage.copy_from_numpy(np.full(values.shape, np.nan, F))
    prepared = module.same.prepare(x, _result=y)
    prepared()
    np.testing.assert_array_equal(y.to_numpy(), values)
    other = permuted(device, 2 * values, (1, 0))
    prepared(x=other)
    np.testing.assert_array_equal(y.to_numpy(), 2 * values)


def test_prepared_calls_take_other_orders(device: spy.Device, module: spy.Module):
    """Along which dimensions views lie may change from launch to launch, as it could before there were patches."""
    shape = (33, 36, 41)
    y = spy.Tensor.from_numpy(device, np.full(shape, np.nan, F))
    orders = [(0, 2, 1), (2, 0, 1), (2, 1, 0)]
    prepared = module.mixed.prepare(permuted(device, numbers(*shape), orders[0]), permuted(device, numbers(*shape), orders[1]), 1, _result=y)
    for first, second in itertools.product(orders, repeat=2):
        a, b = np.random.default_rng(len(orders)).integers(-50, 50, (2, *shape)).astype(F)
        prepared(x=permuted(device, a, first), y=permuted(device, b, second))
        np.testing.assert_array_equal(y.to_numpy(), 100 * a + 10 * b + 1)


def test_outputs_of_several_numbers(device: spy.Device, module: spy.Module):
    shape = (40, 50)
    values, flags = numbers(*shape), numbers(*shape) > 0
    for order in ((0, 1), (1, 0)):
        x, z = permuted(device, values, (1, 0)), permuted(device, flags, order)
        v = permuted(device, np.full((*shape, 3), np.nan, F), (*order, 2))
        a = permuted(device, np.full((*shape, 2), np.nan, F), (2, *order))
        b = permuted(device, ~flags, order)
        module.several(x, z, v, a, b)
        np.testing.assert_array_equal(v.to_numpy(), values[..., None] + np.arange(3))
        np.testing.assert_array_equal(a.to_numpy(), np.stack([values, -values], -1))
        np.testing.assert_array_equal(b.to_numpy(), flags)
    found = module.pair(permuted(device, values, (1, 0))).storage.to_numpy().view(F)[: 2 * values.size]
    np.testing.assert_array_equal(found.reshape(*shape, 2), np.stack([-values, 2 * values], -1))


@pytest.mark.parametrize("name", ["shares", "counts"])
def test_functions_that_see_threads(device: spy.Device, name: str):
    """Each invocation has a thread of its own where the function could tell."""
    if device.info.type == spy.DeviceType.cpu:
        pytest.skip("a thread of the CPU has a block of invocations")
    sources = {
        "shares": """import slangpy;
            groupshared int kept[256];
            int shares(int t, int at, Tensor<int, 1> x)
            {
                kept[t % 256] = x[at];
                GroupMemoryBarrierWithGroupSync();
                return kept[255 - t % 256];
            }""",
        "counts": """import slangpy;
            static int calls = 0;
            int counts(int t, int at, Tensor<int, 1> x) { calls++; return calls * x[at]; }""",
    }
    values = np.random.default_rng(3).integers(1, 99, 4096, np.int32)
    function = spy.Module.load_from_source(device, f"patches_{name}", sources[name])[name]
    x, at = spy.Tensor.from_numpy(device, values), spy.Tensor.from_numpy(device, np.arange(4096, dtype=np.int32))
    expected = values.reshape(-1, 256)[:, ::-1].reshape(-1) if name == "shares" else values
    np.testing.assert_array_equal(function(spy.thread_id(), at, x).to_numpy(), expected)
    assert not any(key & (PATCH | SEVERAL) for key in keys(function, spy.thread_id(), at, x))


def test_checked_indices(device: spy.Device, monkeypatch: pytest.MonkeyPatch):
    spy.set_check_bounds(True)
    try:
        module = spy.Module.load_from_source(device, "patches_checked", SOURCE)
        table = spy.Tensor.from_numpy(device, numbers(100))
        index = np.arange(40 * 130, dtype=np.int32).reshape(40, 130) % 100
        i = permuted(device, index, (1, 0))
        np.testing.assert_array_equal(module.picked(table, i).to_numpy(), numbers(100)[index])
        index[39, 129] = 100
        with pytest.raises(IndexError):
            module.picked(table, permuted(device, index, (1, 0)))
    finally:
        spy.set_check_bounds(False)


def test_few_tensors_are_picked_from_by_one_thread_each(device: spy.Device, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(variants, "_MANY_TENSORS", 4)
    module = spy.Module.load_from_source(device, "patches_few", SOURCE)
    values, index = numbers(100), np.random.default_rng(5).integers(0, 100, 2000, np.int32)
    x, i = spy.Tensor.from_numpy(device, values), spy.Tensor.from_numpy(device, index)
    np.testing.assert_array_equal(module.picked(x, i).to_numpy(), values[index])
    assert not any(key & SEVERAL for key in keys(module.picked, x, i))
    np.testing.assert_array_equal(module.of_four(x, x, x, x, i).to_numpy(), 4 * values[index])
    assert not has_forms(device) or all(key & SEVERAL for key in keys(module.of_four, x, x, x, x, i))


@pytest.mark.parametrize(
    ("name", "expected"),
    {"plain": False, "unrolled": False, "looped": True, "tight": True, "calls": True, "method": True, "other": False}.items(),
)
def test_functions_with_loops_are_told_apart(device: spy.Device, name: str, expected: bool) -> None:
    """Several of their invocations in one thread are slower than one."""
    source = """
        float plain(int i, Tensor<float, 1> x) { return x[i] + x[i + 1]; } // for (;;)
        float unrolled(int i, Tensor<float, 1> x) { float s = 0; [ForceUnroll]  for (int k = 0; k < 4; k++) s += x[k]; return s; }
        float looped(int i, Tensor<float, 1> x) { float s = 0; [MaxIters(4)] for (int k = 0; k < i; k++) s += x[k]; return s; }
        float tight(int i, Tensor<float, 1> x) {do{i--;}while(i>0); return x[0]; }
        float calls(int i, Tensor<float, 1> x) { return looped(i, x); }
        struct Walker
        {
            int i;
            float method(Tensor<float, 1> x) { int k = i; while (k > 0) k--; return x[k]; }
            float other(Tensor<float, 1> x) { return x[i]; }
        }
    """
    module = spy.Module.load_from_source(device, "patches_loops", source)
    assert may_loop(module, name) is expected and may_loop(module, "missing")
