"""Calls in groups (`call_group_shape`): places, numbers, gradients, errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from calls_support import array, source, tensor

import slangpy as spy
from slangpy.errors import KernelGenException

SOURCE = """
import slangpy;
int at(int what, int dim)
{
    CallShapeInfo info = CallShapeInfo::get_call_id();
    if (what == 1) info = CallShapeInfo::get_call_group_id();
    if (what == 2) info = CallShapeInfo::get_call_group_thread_id();
    return dim < 0 ? info.dimensionality : info.shape[dim];
}
int place(int what, int dim, float x) { return at(what, dim); }
int lone(int what, int dim) { return at(what, dim); }
"""
PLAIN = """
[Differentiable] float poly(float a, float x) { return a * x * x + x; }
float add(float a, float b) { return a + b; }
uint index(uint i) { return i; }
float number(float r) { return r; }
int2 where(int2 i) { return i; }
"""
SHARED = """
groupshared float _sums[64];
float sum_of_group(float x, uint thread)
{
    _sums[thread % 4] = x;
    GroupMemoryBarrierWithGroupSync();
    float total = _sums[0] + _sums[1] + _sums[2] + _sums[3];
    GroupMemoryBarrierWithGroupSync();
    return total;
}
"""

SCAN = """
import slangpy;
groupshared float _row[SIZE];
groupshared uint _count;
int local(int dim) { return CallShapeInfo::get_call_group_thread_id().shape[dim]; }
// the sum of the elements of a row of the tile up to this one; doubled steps, each after a barrier
float scan_row(float x, float scale)
{
    int c = local(1), at = local(0) * WIDTH + c;
    _row[at] = x * scale;
    GroupMemoryBarrierWithGroupSync();
    for (int step = 1; step < WIDTH; step *= 2)
    {
        float before = c >= step ? _row[at - step] : 0;
        GroupMemoryBarrierWithGroupSync();
        _row[at] += before;
        GroupMemoryBarrierWithGroupSync();
    }
    return _row[at];
}
int count_positive(float x)
{
    if (local(0) == 0 && local(1) == 0) _count = 0;
    GroupMemoryBarrierWithGroupSync();
    InterlockedAdd(_count, uint(x > 0));
    GroupMemoryBarrierWithGroupSync();
    return int(_count);
}
// the neighbour to the left as it was before, whichever thread comes first
void shift(inout float x)
{
    int c = local(1), at = local(0) * WIDTH + c;
    _row[at] = x;
    AllMemoryBarrierWithGroupSync();
    x = c == 0 ? -1 : _row[at - 1];
}
"""

pytestmark = [
    pytest.mark.needs_kernels,
    pytest.mark.elsewhere(
        "test_the_place_of_the_worked_case", "test_the_place_is_known_to_backward_calls",
        "test_thread_ids_count_in_dispatch_order", "test_a_tile_runs_in_one_hardware_group",
        "test_threads_of_a_tile_wait_for_each_other", "test_edge_tiles_wait_for_the_threads_that_there_are",
        "test_recorded_calls_run_in_groups", "tile3",
    ),
]  # fmt: skip


def places(shape: tuple[int, ...], tile: tuple[int, ...], what: int, dim: int) -> np.ndarray:
    """What the function must be told, from the definition."""
    full = (1,) * (len(shape) - len(tile)) + tile
    at = np.indices(shape)[dim]
    return [at, at // full[dim], at % full[dim]][what]


@pytest.mark.parametrize(
    ("shape", "tile"),
    [
        ((3, 4), (2, 2)),
        ((3, 4), (3,)),
        ((5,), (2,)),
        ((5,), ()),
        ((3, 4), ()),
        ((2, 3, 5), (2, 1, 4)),
        ((2, 3, 5), (2, 2)),
    ],
)
def test_an_invocation_knows_its_place(device: Any, shape: tuple[int, ...], tile: tuple[int, ...]) -> None:
    module = source(device, "groups_places", SOURCE)
    node = module.place.call_group_shape(tile)
    x = np.zeros(shape, np.float32)
    for what in range(3):
        for dim in range(len(shape)):
            found = node(what, dim, x, _result="numpy")
            np.testing.assert_array_equal(found, places(shape, tile, what, dim))
        assert (node(what, -1, x, _result="numpy") == len(shape)).all()


def test_the_place_of_the_worked_case(device: Any) -> None:
    """Call (3,4) with groups (2,2): element (1,2) has group id (0,1), thread id (1,0)."""
    node = source(device, "groups_places", SOURCE).place.call_group_shape(spy.Shape(2, 2))
    x = np.zeros((3, 4), np.float32)
    assert [node(1, d, x, _result="numpy")[1, 2] for d in range(2)] == [0, 1]
    assert [node(2, d, x, _result="numpy")[1, 2] for d in range(2)] == [1, 0]


def test_a_call_without_dimensions_has_no_place(device: Any) -> None:
    module = source(device, "groups_places", SOURCE)
    assert [module.lone(what, -1) for what in range(3)] == [0, 0, 0]


def test_the_place_is_known_to_backward_calls(device: Any) -> None:
    text = """
    import slangpy;
    [Differentiable] float weighted(float x) { return x * float(CallShapeInfo::get_call_group_id().shape[0]); }
    """
    node = source(device, "groups_bwds", text).weighted.call_group_shape((2,))
    x, seed = tensor(device, 5).with_grads(), tensor(device, 5).with_grads()
    seed.grad.copy_from_numpy(np.ones(5, np.float32))
    node.bwds(x, _result=seed)
    np.testing.assert_array_equal(x.grad.to_numpy(), [0, 0, 1, 1, 2])


def test_thread_ids_count_in_dispatch_order(device: Any) -> None:
    node = source(device, "groups_plain", PLAIN).index.call_group_shape([2, 2])
    found = node(spy.thread_id(), _result=np.zeros((2, 4), np.uint32))
    assert found.tolist() == [[0, 1, 4, 5], [2, 3, 6, 7]]
    edges = node(spy.thread_id(), _result=np.zeros((3, 3), np.uint32))
    assert edges.tolist() == [[0, 1, 4], [2, 3, 6], [8, 9, 12]]


def test_random_numbers_and_positions_do_not_change(device: Any) -> None:
    module = source(device, "groups_plain", PLAIN)
    for call in (
        lambda f, **kw: f.number(spy.rand_float(seed=3), _result=np.zeros((5, 7), np.float32)),
        lambda f, **kw: f.where(spy.call_id(), _result=np.zeros((5, 7, 2), np.int32)),
        lambda f, **kw: f.where(spy.grid((5, 7), stride=(2, -1)), _result="numpy"),
        lambda f, **kw: f.index(spy.wang_hash(), _result=np.zeros((5, 7), np.uint32)),
    ):
        grouped = _Grouped(module, (2, 3))
        np.testing.assert_array_equal(call(grouped), call(module))


class _Grouped:
    def __init__(self, module: Any, tile: tuple[int, ...]) -> None:
        self.module, self.tile = module, tile

    def __getattr__(self, name: str) -> Any:
        return self.module[name].call_group_shape(self.tile)


@pytest.mark.parametrize("tile", [(1,), (3,), (4, 8), (1, 2, 3), (16, 16), (2, 1, 300)])
@pytest.mark.parametrize("shape", [(2, 3, 5), (1, 1, 1), (4, 33, 17), (3, 0, 2)])
def test_results_are_those_of_the_plain_call(device: Any, shape: tuple[int, ...], tile: tuple[int, ...]) -> None:
    module = source(device, "groups_plain", PLAIN)
    a, b = array(*shape), array(shape[1], 1) * 10
    node = module.add.call_group_shape(tile)
    np.testing.assert_array_equal(node(a, b, _result="numpy"), a + b)
    strided = np.asfortranarray(a)
    np.testing.assert_array_equal(node(strided, b, _result="numpy"), a + b)
    found = node.map(a=(2, 0, 1))(a, 1.0, _result="numpy") if a.size else np.empty(0)
    if a.size:
        np.testing.assert_array_equal(found, a.transpose(1, 2, 0) + 1)


@pytest.mark.parametrize("tile", [(2, 2), (5,), (3, 4)])
def test_gradients_are_those_of_the_plain_call(device: Any, tile: tuple[int, ...]) -> None:
    module = source(device, "groups_plain", PLAIN)
    rng = np.random.default_rng(5)
    x_host, seed_host = rng.standard_normal((7, 9)).astype(np.float32), rng.standard_normal((7, 9)).astype(np.float32)
    row_host = rng.standard_normal(9).astype(np.float32)

    def gradients(node: Any, a_host: Any) -> tuple[Any, Any]:
        x = spy.Tensor.from_numpy(device, x_host).with_grads()
        seed = spy.Tensor.from_numpy(device, x_host).with_grads()
        seed.grad.copy_from_numpy(seed_host)
        a = spy.diffPair(a_host) if isinstance(a_host, float) else spy.Tensor.from_numpy(device, a_host).with_grads()
        node.bwds(a, x, _result=seed)
        return (a.grad if isinstance(a_host, float) else a.grad.to_numpy()), x.grad.to_numpy()

    for a_host in (0.5, row_host):  # one sum over the call; one for each column
        found, found_x = gradients(module.poly.call_group_shape(tile), a_host)
        wide = seed_host.astype(np.float64) * x_host.astype(np.float64) ** 2
        expected = wide.sum() if isinstance(a_host, float) else wide.sum(0)
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(found_x, seed_host * (2 * a_host * x_host + 1), rtol=1e-5, atol=1e-6)


def test_a_tile_runs_in_one_hardware_group(device: Any) -> None:
    """Threads of a tile see each other's group-shared memory: each gets the sum over its tile."""
    node = source(device, "groups_shared", SHARED).sum_of_group.call_group_shape((2, 2))
    x = array(4, 6)
    found = node(x, spy.thread_id(), _result="numpy")
    sums = x.reshape(2, 2, 3, 2).sum((1, 3))
    np.testing.assert_array_equal(found, sums.repeat(2, 0).repeat(2, 1))


def scan(device: Any, tile: tuple[int, int]) -> spy.Module:
    text = SCAN.replace("SIZE", str(tile[0] * tile[1])).replace("WIDTH", str(tile[1]))
    return source(device, f"groups_scan_{tile[0]}_{tile[1]}", text)


@pytest.mark.parametrize(("shape", "tile"), [((6, 16), (2, 8)), ((64, 96), (4, 32)), ((3, 1024), (1, 256)), ((128, 4), (64, 4))])
def test_threads_of_a_tile_wait_for_each_other(device: Any, shape: tuple[int, int], tile: tuple[int, int]) -> None:
    module = scan(device, tile)
    host = np.random.default_rng(3).integers(-8, 9, shape).astype(np.float32)
    cells = host.reshape(shape[0] // tile[0], tile[0], shape[1] // tile[1], tile[1])
    for x in (host, np.asfortranarray(host), spy.Tensor.from_numpy(device, host)):
        found = module.scan_row.call_group_shape(tile)(x, 0.5, _result="numpy")
        np.testing.assert_array_equal(found, cells.cumsum(-1).reshape(shape) * 0.5)
        found = module.count_positive.call_group_shape(tile)(x, _result="numpy")
        counts = np.broadcast_to((cells > 0).sum((1, 3), keepdims=True), cells.shape)
        np.testing.assert_array_equal(found, counts.reshape(shape))
    written = spy.Tensor.from_numpy(device, host)
    module.shift.call_group_shape(tile)(written)
    expected = np.concatenate([np.full_like(cells[..., :1], -1), cells[..., :-1]], -1).reshape(shape)
    np.testing.assert_array_equal(written.to_numpy(), expected)
    call = module.scan_row.call_group_shape(tile).prepare(spy.Tensor.from_numpy(device, host), 2.0, _result="numpy")
    np.testing.assert_array_equal(call(), cells.cumsum(-1).reshape(shape) * 2)


def test_edge_tiles_wait_for_the_threads_that_there_are(device: Any) -> None:
    """Elsewhere than on the CPU, what lies outside of the call does not come to the barriers, which is undefined."""
    if device.info.type != spy.DeviceType.cpu:
        pytest.skip("barriers that some threads of a group do not reach are undefined")
    module, host = scan(device, (2, 8)), array(5, 21)
    found = module.scan_row.call_group_shape((2, 8))(host, 1.0, _result="numpy")
    np.testing.assert_array_equal(found, np.concatenate([host[:, i : i + 8].cumsum(1) for i in (0, 8, 16)], 1))


def test_gradients_in_a_module_with_barriers(device: Any) -> None:
    """Groups are threads then, on the CPU too: sums of broadcast arguments go over all of them."""
    text = SHARED + "[Differentiable] float scaled(float a, float x) { return a * x * x; }"
    node = source(device, "groups_gradients", text).scaled.call_group_shape((2, 4))
    rng = np.random.default_rng(11)
    x_host, seed_host = rng.standard_normal((7, 9)).astype(np.float32), rng.standard_normal((7, 9)).astype(np.float32)
    x, seed, a = spy.Tensor.from_numpy(device, x_host).with_grads(), tensor(device, 7, 9).with_grads(), spy.diffPair(1.5)
    seed.grad.copy_from_numpy(seed_host)
    node.bwds(a, x, _result=seed)
    wide = seed_host.astype(np.float64) * x_host.astype(np.float64)
    np.testing.assert_allclose(a.grad, (wide * x_host).sum(), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(x.grad.to_numpy(), 3 * wide, rtol=1e-5, atol=1e-6)


def test_recorded_calls_run_in_groups(device: Any) -> None:
    module = source(device, "groups_plain", PLAIN)
    out = spy.Tensor.zeros(device, (3, 5), dtype="float")
    encoder = device.create_command_encoder()
    module.add.call_group_shape((2, 2)).append_to(encoder, tensor(device, 3, 5), 1.0, _result=out)
    device.submit_command_buffer(encoder.finish())
    np.testing.assert_array_equal(out.to_numpy(), array(3, 5) + 1)


def test_groups_are_part_of_the_key(device: Any) -> None:
    module = source(device, "groups_plain", PLAIN)
    x = array(4, 4)
    one = module.add.call_group_shape((2, 2)).debug_build_call_data(x, 1.0)
    assert module.add.call_group_shape([2, 2]).debug_build_call_data(x, 1.0) is one
    other = module.add.call_group_shape((2, 3)).debug_build_call_data(x, 1.0)
    assert other.code != one.code
    assert device.info.type == spy.DeviceType.cpu or "numthreads(6" in other.code


def test_the_last_group_shape_wins(device: Any) -> None:
    node = source(device, "groups_plain", PLAIN).index.call_group_shape((2, 2)).call_group_shape(())
    assert node(spy.thread_id(), _result=np.zeros((2, 4), np.uint32)).tolist() == [[0, 1, 2, 3], [4, 5, 6, 7]]


@pytest.mark.parametrize(
    ("tile", "texts"),
    [
        ((1, 2, 2), ["call_group_shape dimensionality (3) must be <= call_shape dimensionality (2)",
                     "cannot have more dimensions than call_shape", "groups_plain::add"]),
        ((2, 0), ["call_group_shape[1] = 0", "must be >= 1"]),
        ((-1, 4), ["call_group_shape[0] = -1", "must be >= 1"]),
        ((64, 32), ["1024", "[64, 32]"]),
    ],
)  # fmt: skip
def test_impossible_groups(device: Any, tile: tuple[int, ...], texts: list[str]) -> None:
    node = source(device, "groups_plain", PLAIN).add.call_group_shape(tile)
    with pytest.raises(KernelGenException) as raised:
        node(array(4, 4), 1.0)
    assert all(text in str(raised.value) for text in texts), str(raised.value)


@pytest.mark.parametrize("shape", [4, "22", {2, 3}, (2.0, 2), (True, 2), None])
def test_group_shapes_are_ints(device: Any, shape: Any) -> None:
    with pytest.raises(ValueError, match="call_group_shape takes"):
        source(device, "groups_plain", PLAIN).add.call_group_shape(shape)
