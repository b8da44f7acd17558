"""Values that are made inside the kernel: range, grid, call_id, thread_id, wang_hash, rand_float."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from calls_support import load, plain, source, tensor

import slangpy as spy

pytestmark = pytest.mark.needs_kernels


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
