"""Values that are made inside the kernel: range, grid, call_id, thread_id, wang_hash, rand_float."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from calls_support import load, plain, source, tensor

import slangpy as spy

pytestmark = [
    pytest.mark.needs_kernels,
    pytest.mark.elsewhere(
        "test_call_id", "test_thread_id", "test_wang_hash", "test_rand_float",
        "test_the_numbers_of_grids_and_ids_fit_their_type",
    ),
]  # fmt: skip


@pytest.fixture
def m(device: Any) -> spy.Module:
    return load(device, "values")


def ints(*shape: int, dtype: Any = np.int32) -> np.ndarray:
    return np.full(shape, -7, dtype)


# --- range and grid


@pytest.mark.parametrize(
    "values",
    [range(5), range(2, 7), range(0, 10, 3), range(10, 0, -3), range(0), range(3, 1), range(-4, 4, 2), range(7, 8)],
    ids=str,
)
def test_range(m: spy.Module, values: range) -> None:
    assert plain(m.take_int(values)) == list(values)
    assert plain(m.take_int64(values)) == list(values)


def test_range_is_refused_where_it_does_not_fit(m: spy.Module) -> None:
    with pytest.raises(spy.ResolveException, match="range makes integers"):
        m.take_float(range(3))
    with pytest.raises(spy.ResolveException):
        m.take_int2(range(3))


def test_grid_into_vectors_and_arrays(m: spy.Module) -> None:
    at = m.take_int2(spy.grid((2, 3)), _result="numpy")
    assert at.tolist() == [[[0, 0], [1, 0], [2, 0]], [[0, 1], [1, 1], [2, 1]]]
    at = m.take_array2(spy.grid((2, 3)), _result="numpy")
    assert at.tolist() == [[[0, 0], [0, 1], [0, 2]], [[1, 0], [1, 1], [1, 2]]]
    assert plain(m.take_int(spy.grid((3,)))) == [0, 1, 2]
    assert m.take_int3(spy.grid((2, 3, 4)), _result="numpy")[1, 2, 3].tolist() == [3, 2, 1]
    assert plain(m.take_uint2(spy.grid((1, 2)))) == [[[0, 0], [1, 0]]]


def test_grid_offset_and_stride(m: spy.Module) -> None:
    grid = spy.grid((2, 3), offset=(10, 20), stride=(2, 5))
    assert plain(m.take_int2(grid)) == [[[20, 10], [25, 10], [30, 10]], [[20, 12], [25, 12], [30, 12]]]
    assert plain(m.take_array2(grid)) == [[[10, 20], [10, 25], [10, 30]], [[12, 20], [12, 25], [12, 30]]]
    assert plain(m.take_int(spy.grid((4,), offset=(5,), stride=(-2,)))) == [5, 3, 1, -1]
    assert plain(m.take_int(spy.grid((2,), offset=(-5,), stride=(0,)))) == [-5, -5]
    assert (grid.shape, grid.offset, grid.stride, grid.dims) == ((2, 3), (10, 20), (2, 5), 2)


def test_grid_sizes_from_the_call(m: spy.Module, device: Any) -> None:
    out = ints(2, 3, 2)
    m.take_int2(spy.grid((-1, 3)), _result=out)
    assert out[1, 2].tolist() == [2, 1]
    assert plain(m.take_int2(spy.grid(2))) == [[[0, 0]]]
    out = ints(2, 4, 2)
    m.take_int2(spy.grid(2), _result=out)
    assert out[1, 3].tolist() == [3, 1]


def test_grid_errors(m: spy.Module) -> None:
    with pytest.raises(ValueError, match="Could not find suitable conversion"):
        m.take_int2(spy.grid((2, 3, 4)))
    with pytest.raises(ValueError, match="as many entries as shape"):
        spy.grid((2, 3), offset=(1,))
    with pytest.raises(spy.ResolveException):
        m.take_float(spy.grid((3,)))
    with pytest.raises(ValueError):
        spy.grid(0)


# --- call_id, thread_id


def test_call_id(m: spy.Module) -> None:
    out = ints(2, 3, 2)
    m.take_int2(spy.call_id(), _result=out)
    assert out.tolist() == [[[0, 0], [1, 0], [2, 0]], [[0, 1], [1, 1], [2, 1]]]
    m.take_array2(spy.call_id(), _result=out)
    assert out.tolist() == [[[0, 0], [0, 1], [0, 2]], [[1, 0], [1, 1], [1, 2]]]
    line = ints(3)
    m.take_int(spy.call_id(), _result=line)
    assert line.tolist() == [0, 1, 2]
    longer = ints(2, 3, 3)
    m.take_int3(spy.call_id(), _result=longer)
    assert longer[1, 2].tolist() == [2, 1, 0]
    assert plain(m.take_int2(spy.call_id((2, 3)))) == plain(m.take_int2(spy.grid((2, 3))))
    assert m.take_int(spy.call_id()) == 0
    shallow = ints(4, 4, 2)
    m.take_int2(spy.call_id(2), _result=shallow)
    assert shallow[3, 1].tolist() == [1, 3]


def test_call_id_of_the_wrong_size(m: spy.Module) -> None:
    with pytest.raises(ValueError, match="Could not find suitable"):
        m.take_int2(spy.call_id(3), _result=ints(2, 2, 2))
    with pytest.raises(ValueError, match="Could not find suitable"):
        m.take_int(spy.call_id(), _result=ints(2, 2))
    with pytest.raises(ValueError, match="Could not find suitable"):
        m.take_int2(spy.call_id(), _result=ints(2, 2, 2, 2))


def test_thread_id(m: spy.Module) -> None:
    out = np.zeros((2, 3, 3), np.uint32)
    m.take_uint3(spy.thread_id(), _result=out)
    assert out[..., 0].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert not out[..., 1:].any()
    line = ints(5)
    m.take_int(spy.thread_id(), _result=line)
    assert line.tolist() == [0, 1, 2, 3, 4]


# --- hashes


def test_host_hash() -> None:
    from slangpy.generators import calc_wang_hash

    assert [calc_wang_hash(s) for s in (0, 1, 2640457667)] == [3232319850, 663891101, 2803707863]
    assert calc_wang_hash(-1) == calc_wang_hash(2**32 - 1)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, [3515661851, 3898497923, 745088982]),
        ({"seed": 0, "hash_seed": False}, [3232319850, 663891101, 3329832309]),
        ({"seed": 1, "warmup": 2}, [1187481389, 3738538342, 1147335461]),
    ],
)
def test_wang_hash(m: spy.Module, options: dict[str, Any], expected: list[int]) -> None:
    out = np.zeros(3, np.uint32)
    m.take_uint(spy.wang_hash(**options), _result=out)
    assert out.tolist() == expected
    signed = ints(3)
    m.take_int(spy.wang_hash(**options), _result=signed)
    assert signed.view(np.uint32).tolist() == expected


def test_wang_hash_vectors(m: spy.Module) -> None:
    out = np.zeros((2, 3), np.uint32)
    m.take_uint3(spy.wang_hash(), _result=out)
    assert out.tolist() == [[3515661851, 3007036452, 4177427426], [2464474706, 2478776405, 2367242091]]
    out = np.zeros((2, 4), np.uint32)
    m.take_uint4(spy.wang_hash(), _result=out)
    assert out[0, :3].tolist() == [3515661851, 3007036452, 4177427426]
    wide = np.zeros(3, np.uint64)
    m.take_uint64(spy.wang_hash(), _result=wide)
    assert wide.tolist() == [3515661851, 3898497923, 745088982]
    with pytest.raises(ValueError, match="Could not find suitable"):
        m.take_uint2(spy.wang_hash(dim=3))


def test_wang_hash_in_two_dimensions_counts_row_major(m: spy.Module) -> None:
    flat, square = np.zeros(6, np.uint32), np.zeros((2, 3), np.uint32)
    m.take_uint(spy.wang_hash(seed=5), _result=flat)
    m.take_uint(spy.wang_hash(seed=5), _result=square)
    assert square.reshape(-1).tolist() == flat.tolist()


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, [0.09955156, 0.7371677, 0.8215282]),
        ({"seed": 7}, [0.41373837, 0.77618504, 0.45672834]),
        ({"seed": 7, "warmup": 3, "hash_seed": False}, [0.82033587, 0.4817605, 0.7516135]),
    ],
)
def test_rand_float(m: spy.Module, options: dict[str, Any], expected: list[float]) -> None:
    out = np.zeros(3, np.float32)
    m.take_float(spy.rand_float(**options), _result=out)
    np.testing.assert_array_equal(out, np.array(expected, np.float32))
    wide = np.zeros(3, np.float64)
    m.take_double(spy.rand_float(**options), _result=wide)
    np.testing.assert_allclose(wide, expected, rtol=1e-7)
    narrow = np.zeros(3, np.float16)
    m.take_half(spy.rand_float(**options), _result=narrow)
    np.testing.assert_allclose(narrow, expected, rtol=1e-3)


def test_rand_float_vectors_and_bounds(m: spy.Module) -> None:
    out = np.zeros((2, 2), np.float32)
    m.take_float2(spy.rand_float(0, 10), _result=out)
    np.testing.assert_allclose(out, [[0.9955156, 4.666791], [8.215282, 5.3307414]], rtol=2e-7)
    out = np.zeros((1000, 4), np.float32)
    m.take_float4(spy.rand_float(-2, 3), _result=out)
    assert out.min() >= -2 and out.max() < 3 and len(np.unique(out)) > 3900
    with pytest.raises(spy.ResolveException, match="rand_float makes floats"):
        m.take_int(spy.rand_float())
    with pytest.raises(ValueError, match="Could not find suitable"):
        m.take_float3(spy.rand_float(dim=2))


def test_constructors_have_seed_zero(m: spy.Module) -> None:
    a, b = np.zeros(3, np.uint32), np.zeros(3, np.uint32)
    m.take_uint(spy.WangHashArg(), _result=a)
    m.take_uint(spy.wang_hash(seed=0), _result=b)
    assert a.tolist() == b.tolist()
    m.take_uint(spy.wang_hash(seed=-1), _result=a)
    m.take_uint(spy.wang_hash(seed=2**32 - 1), _result=b)
    assert a.tolist() == b.tolist()


def test_generators_inside_dicts_and_generics(m: spy.Module, device: Any) -> None:
    value = {"x": tensor(device, 2, 3), "at": spy.call_id()}
    assert plain(m.take_item(value)) == [[0, 11, 22], [103, 114, 125]]
    assert plain(m.take_any(spy.grid((1, 2)))) == [[[0, 0], [1, 0]]]
    assert m.take_any(spy.rand_float(dim=2)).element_type is float
    assert isinstance(m.take_float(spy.rand_float()), float)


def test_seeds_and_offsets_do_not_rebuild(m: spy.Module) -> None:
    from slangpy.plan import compile as stage

    out = np.zeros(3, np.float32)
    m.take_float(spy.rand_float(seed=1), _result=out)
    before = stage.builds
    for seed in range(2, 6):
        m.take_float(spy.rand_float(0, seed, seed=seed), _result=out)
    assert stage.builds == before


@pytest.mark.parametrize("generator", ["thread_id", "wang_hash", "rand_float"])
def test_generators_that_make_no_arrays(device: Any, generator: str) -> None:
    module = source(
        device, "generator_arrays", "int a2(int v[2]) { return v[0]; } float f2(float v[2]) { return v[0]; }"
    )
    function = module.f2 if generator == "rand_float" else module.a2
    with pytest.raises(ValueError, match=rf"{generator}.*(float|int)\[2\]"):
        function(getattr(spy, generator)())


def test_the_numbers_of_a_range_fit_their_type(m: spy.Module, device: Any) -> None:
    module = source(device, "range_limits", "uint8_t small(uint8_t v) { return v; } uint plain(uint v) { return v; }")
    assert plain(module.small(range(250, 256))) == list(range(250, 256))
    assert plain(module.small(range(255, -1, -255))) == [255, 0]
    for values in (range(300), range(-1, 3), range(2, -3, -1)):
        with pytest.raises(OverflowError, match="out of range for uint8_t"):
            module.small(values)
    with pytest.raises(OverflowError):
        module.plain(range(2**63 - 2, 2**63 + 5))
    assert plain(module.small(range(300, 300))) == []


def test_the_numbers_of_grids_and_ids_fit_their_type(device: Any) -> None:
    module = source(
        device,
        "grid_limits",
        "int8_t small(int8_t v) { return v; }\nuint plain(uint v) { return v; }\nint2 at(int2 v) { return v; }\n"
        "int add(int8_t v, int x) { return v + x; }",
    )
    assert plain(module.small(spy.grid((128,))))[-1] == 127 and plain(module.small(spy.grid((0,), offset=(300,)))) == []
    assert plain(module.plain(spy.grid((2,), offset=(2**32 - 2,)))) == [2**32 - 2, 2**32 - 1]
    for grid in (spy.grid((129,)), spy.grid((2,), offset=(-129,)), spy.grid((3,), stride=(-100,))):
        with pytest.raises(OverflowError, match="v: -?[0-9]+ is out of range for int8_t"):
            module.small(grid)
    with pytest.raises(OverflowError, match="200 is out of range"):
        module.add(spy.grid((-1,)), tensor(device, 201, dtype=np.int32))  # as many as the other argument has
    with pytest.raises(OverflowError, match="v: -1 is out of range for uint"):
        module.plain(spy.grid((2,), offset=(-1,)))
    with pytest.raises(OverflowError):
        module.at(spy.grid((2, 2), offset=(0, 2**40)))
    with pytest.raises(OverflowError, match="64 bits"):
        module.at(spy.grid((2, 2), stride=(1, 2**63 - 1), offset=(0, 5)))
    for made in (spy.call_id(), spy.thread_id()):
        assert module.small(made, _result=np.zeros(128, np.int8))[-1] == 127
        with pytest.raises(OverflowError, match="299 is out of range for int8_t"):
            module.small(made, _result=np.zeros(300, np.int8))


def test_one_number_is_broadcast(m: spy.Module, device: Any) -> None:
    module = source(
        device, "one_number", "int add(int a, int b) { return a + b; }\nint2 at(int2 p, int b) { return p + b; }"
    )
    b = tensor(device, 3, dtype=np.int32)
    assert plain(module.add(range(5, 6), b)) == [5, 6, 7] == plain(module.add([5], b))
    assert plain(module.add(spy.grid((1,), offset=(5,)), b)) == [5, 6, 7]
    found = module.at(spy.grid((1, 3)), tensor(device, 2, 1, dtype=np.int32), _result="numpy")
    assert found.tolist() == [[[0, 0], [1, 0], [2, 0]], [[1, 1], [2, 1], [3, 1]]]
    assert plain(module.add(spy.grid((-1,)), b)) == [0, 2, 4]


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: spy.grid(None), TypeError, "grid: a number of dimensions must be an integer, got None"),
        (lambda: spy.grid("ab"), TypeError, "grid shape must be an int or a sequence of ints, got 'ab'"),
        (lambda: spy.grid((2, "a")), TypeError, "an entry of grid shape must be an integer, got 'a'"),
        (lambda: spy.grid((2.5,)), TypeError, "an entry of grid shape must be an integer, got 2.5"),
        (lambda: spy.grid((2,), offset=(0.5,)), TypeError, "an entry of grid offset must be an integer, got 0.5"),
        (lambda: spy.call_id(0), ValueError, "call_id: dims must be from 1 to 32, or -1"),
        (lambda: spy.thread_id(2.0), TypeError, "thread_id: dims must be an integer, got 2.0"),
        (lambda: spy.wang_hash(dim=-2), ValueError, "wang_hash: dim must be from 1 to 32, or -1"),
        (lambda: spy.wang_hash(warmup=-1), ValueError, "wang_hash: warmup: expected 0 to 4294967295, got -1"),
        (lambda: spy.wang_hash(seed=1.5), TypeError, "wang_hash: seed: expected an int, got 1.5"),
        (lambda: spy.rand_float("1"), TypeError, "rand_float: min: expected a number, got '1'"),
        (lambda: spy.rand_float(warmup=None), TypeError, "rand_float: warmup: expected an int, got None"),
    ],
)
def test_what_no_generator_is_made_from(make: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error) as raised:
        make()
    assert text in str(raised.value)


def test_integers_of_numpy_make_generators(m: spy.Module) -> None:
    offset: Any = np.array([1, 2])
    seed: Any = np.uint32(7)
    grid = spy.grid((np.int64(2), np.uint8(3)), offset=offset)
    assert grid.shape == (2, 3) and grid.offset == (1, 2) and spy.grid(np.int32(2)).shape == (-1, -1)
    assert m.take_uint(spy.wang_hash(seed=seed)) == m.take_uint(spy.wang_hash(seed=7))
