"""Overloads that differ in sizes, generic sizes from generators, lists of objects."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from calls_support import array, plain, source, tensor, tensor_of

import slangpy as spy
from slangpy.errors import KernelGenException, ResolveException, ShapeError

pytestmark = [pytest.mark.needs_kernels, pytest.mark.one]

SOURCE = """
import slangpy;
int flat<let D : int>(int idx[D]) { int r = 0; for (int i = 0; i < D; i++) r = r * 10 + idx[i]; return r; }
int flat_vector<let D : int>(vector<int, D> idx) { int r = 0; for (int i = 0; i < D; i++) r = r * 10 + idx[i]; return r; }
float at<let D : int>(int idx[D], ITensor<float, D> t) { return t[idx]; }
float at_vector<let D : int>(ITensor<float, D> t, vector<int, D> idx) { return t[idx]; }
int which(float x) { return 1; }
int which(float3 x) { return 3; }
int arrays(float x) { return 1; }
int arrays(float x[4]) { return 4; }
int grids(float x) { return 1; }
int grids(float2 x) { return 2; }
int grids(float2x2 x) { return 22; }
int numbers(int x) { return 1; }
int numbers(float x) { return 2; }
int widths(int64_t x) { return 64; }
int widths(double x) { return 1; }
int pairs(float3 a, float b) { return 31; }
int pairs(float a, float3 b) { return 13; }
interface IShape { float area(); }
struct Square : IShape { float side; float area() { return side * side; } }
struct Disc : IShape { float radius; float area() { return 3 * radius * radius; } }
int general(Square s) { return 1; }
int general(IShape s) { return 2; }
int generic(Square s) { return 1; }
int generic<T : IShape>(T s) { return 2; }
int both<T : IShape>(T s) { return 1; }
int both(IShape s) { return 2; }
struct P { float x; float3 v; float mul(float a) { return a * x + v.y; } }
float gs(P p) { return p.x + p.v.y; }
float g2(P p[2]) { return p[0].x * 10 + p[1].x; }
float add(float a, float b) { return a + b; }
float take(RWTensor<float, 1> t[4], int k, int i) { float r = t[k][i]; t[k][i] = r + 100; return r; }
float read2(Tensor<float, 2> t[2], int k) { return t[k][0, 1]; }
float read_any(ITensor<float, 1> t[2], int k) { return t[k][1]; }
float buffers(StructuredBuffer<float> b[2], int k) { return b[k][1]; }
float pointers(float* p[2], int k) { return p[k][1]; }
"""


@pytest.fixture
def module(device: Any) -> Any:
    return source(device, "spec_ranking", SOURCE)


# --- generic sizes from generators


def test_a_grid_gives_an_array_its_size(module: Any, device: Any) -> None:
    assert plain(module.flat(spy.grid((2, 3)))) == [[0, 1, 2], [10, 11, 12]]
    assert plain(module.flat(spy.grid((3,)))) == [0, 1, 2]
    assert module.flat(spy.grid((2, 2, 2)), _result="numpy")[1, 0, 1] == 101
    assert plain(module.at(spy.grid((2, 3)), tensor(device, 2, 3))) == [[0, 1, 2], [3, 4, 5]]
    assert plain(module.at_vector(tensor(device, 2, 3), spy.grid((2, 2), offset=(0, 1)))) == [[1, 2], [4, 5]]


def test_a_grid_gives_a_vector_its_size(module: Any) -> None:
    assert plain(module.flat_vector(spy.grid((2, 3)))) == [[0, 10, 20], [1, 11, 21]]


def test_the_call_gives_call_id_its_size(module: Any, device: Any) -> None:
    assert plain(module.flat(spy.call_id(), _result=np.zeros((2, 3), np.int32))) == [[0, 1, 2], [10, 11, 12]]
    assert plain(module.flat(spy.call_id(), _result=np.zeros(3, np.int32))) == [0, 1, 2]
    assert plain(module.at(spy.call_id(), tensor(device, 2, 3), _result=np.zeros((2, 3), np.float32))) == [
        [0, 1, 2],
        [3, 4, 5],
    ]
    with pytest.raises(ValueError, match="Could not find suitable"):
        module.at(spy.call_id(), tensor(device, 2, 3), _result=np.zeros(3, np.float32))


# --- ranking


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("numbers", 1, 1), ("numbers", 1.0, 2), ("numbers", True, 1), ("widths", 7.5, 1),
        ("which", 1.0, 1), ("which", spy.float3(1), 3), ("which", [1.0, 2.0, 3.0], 3), ("which", [1, 2, 3], 3),
        ("grids", spy.float2x2(), 22), ("grids", spy.float2(), 2),
        ("general", {"_type": "Square", "side": 1.0}, 1), ("general", {"_type": "Disc"}, 2),
        ("generic", {"_type": "Square", "side": 1.0}, 1), ("generic", {"_type": "Disc"}, 2),
        ("both", {"_type": "Disc"}, 1),
    ],
)  # fmt: skip
def test_the_better_overload(module: Any, name: str, value: Any, expected: int) -> None:
    assert module[name](value) == expected


@pytest.mark.parametrize(
    ("name", "shape", "expected", "rank"),
    [
        ("which", (3,), 3, 0), ("which", (2, 3), 3, 1), ("which", (4,), 1, 1), ("which", (2, 4), 1, 2), ("which", (3, 1), 1, 2),
        ("arrays", (4,), 4, 0), ("arrays", (2, 4), 4, 1), ("arrays", (2, 5), 1, 2),
        ("grids", (2, 2), 22, 0), ("grids", (5, 2, 2), 22, 1), ("grids", (5, 2), 2, 1), ("grids", (5, 3), 1, 2),
    ],
)  # fmt: skip
def test_sizes_choose_the_overload_that_takes_most(
    module: Any, device: Any, name: str, shape: tuple[int, ...], expected: int, rank: int
) -> None:
    for value in (tensor(device, *shape), array(*shape), array(*shape).tolist()):
        found = np.asarray(module[name](value, _result="numpy"))
        assert found.shape == shape[:rank] and (found == expected).all()


def test_sizes_are_in_the_key_where_they_decide(module: Any, device: Any) -> None:
    one = module.which.debug_build_call_data(tensor(device, 5, 3))
    assert module.which.debug_build_call_data(tensor(device, 5, 3)) is one
    assert module.which.debug_build_call_data(tensor(device, 5, 4)) is not one
    same = module.add.debug_build_call_data(tensor(device, 5, 3), 1)
    assert module.add.debug_build_call_data(tensor(device, 7, 9), 1) is same


def test_overloads_that_are_better_in_one_argument_each(module: Any, device: Any) -> None:
    assert module.pairs(spy.float3(1), 1.0) == 31
    assert module.pairs(1.0, spy.float3(1)) == 13
    with pytest.raises(ResolveException, match=r"(?s)Ambiguous call.*pairs\(in vector<float,3> a, in float b\)"):
        module.pairs(tensor(device, 2, 3), tensor(device, 2, 3))


# --- lists of objects


class Holder:
    def __init__(self, value: Any) -> None:
        self.value, self.asked = value, 0

    def get_this(self) -> Any:
        self.asked += 1
        return self.value


@pytest.mark.parametrize(
    ("values", "expected"),
    [([1.0, 2.0], [11, 12]), ([1, 2.5], [11, 12.5]), ([spy.float2(1, 2), spy.float2(3, 4)], [[11, 12], [13, 14]])],
)
def test_objects_that_stand_for_numbers_and_vectors(module: Any, values: Any, expected: Any) -> None:
    holders = [Holder(value) for value in values]
    assert plain(module.add(holders, 10)) == expected
    assert [h.asked for h in holders] == [1, 1]
    assert plain(module.add([holders, holders], 10)) == [expected, expected]
    assert plain(module.add([holders[0], values[1]], 10)) == expected
    assert module.which([Holder(1.0), Holder(2.0), Holder(3.0)]) == 3


def test_instances_in_lists(module: Any, device: Any) -> None:
    values = [spy.InstanceList(module.P, {"x": float(i), "v": spy.float3(1, 2, 3)}) for i in range(3)]
    assert plain(module.gs(values)) == [2, 3, 4]
    assert module.g2(values[:2]) == 1
    assert plain(module.P.mul(values, 10.0)) == [2, 12, 22]
    assert plain(module.gs([Holder({"x": 1.0}), Holder({"x": 2.0})])) == [1, 2]


# --- arrays of resources


def test_arrays_of_tensors(module: Any, device: Any) -> None:
    tensors = [tensor_of(device, [10 * k, 10 * k + 1, 10 * k + 2]) for k in range(4)]
    assert plain(module.take(tensors, [0, 1, 2, 3], 2)) == [2, 12, 22, 32]
    assert [plain(t)[2] for t in tensors] == [102, 112, 122, 132]
    assert plain(module.read2([tensor(device, 2, 2), tensor(device, 3, 3)], [0, 1])) == [1, 1]
    assert plain(module.read_any(tuple(tensors[:2]), [0, 1])) == [1, 11]
    arrays = [array(3) + 10 * k for k in range(4)]
    assert plain(module.take(arrays, [0, 1, 2, 3], 1)) == [1, 11, 21, 31]
    assert [a[1] for a in arrays] == [101, 111, 121, 131]


def test_arrays_of_buffers_and_pointers(module: Any, device: Any) -> None:
    one, two = tensor(device, 2), tensor_of(device, [5.0, 6.0])
    assert plain(module.buffers([one.storage, two], [0, 1])) == [1, 6]
    assert plain(module.pointers([one, two.storage.device_address], [0, 1])) == [1, 6]


def test_arrays_of_the_wrong_length_or_kind(module: Any, device: Any) -> None:
    with pytest.raises(ResolveException, match="it has 3 elements, the parameter takes 4"):
        module.take([tensor(device, 3)] * 3, 0, 0)
    with pytest.raises(ShapeError, match="dimension"):
        module.read2([tensor(device, 2), tensor(device, 2)], 0)
    with pytest.raises(ResolveException, match="int"):
        module.take([tensor(device, 3, dtype=np.int32)] * 4, 0, 0)


WIDTHS = """
int cell(int2 v) { return v.x * 10 + v.y; }
int cell(int3 v) { return v.x * 100 + v.y * 10 + v.z; }
int sign(uint2 v) { return 2; }
int sign(int2 v) { return 1; }
int count(uint v) { return 2; }
int count(int v) { return 1; }
float noise(float v) { return 1; }
float noise(float2 v) { return 2; }
float noise(half2 v) { return 3; }
struct Near { float x; }
struct Far { float x; float y; }
int reach(Near a) { return 1; }
int reach(Far a) { return 2; }
int part(float2 v) { return 2; }
int part(float3 v) { return 3; }
int part(float4 v) { return 4; }
float most(float a, float b) { return 2; }
float most(float a, float b, float c = 3) { return 3; }
"""


@pytest.fixture
def widths(device: Any) -> Any:
    return source(device, "spec_overload_widths", WIDTHS)


def test_generators_choose_the_overload_of_their_size(widths: Any) -> None:
    assert plain(widths.cell(spy.grid((2, 3)), _result="numpy")) == [[0, 10, 20], [1, 11, 21]]
    assert widths.cell(spy.grid((1, 1, 2)), _result="numpy").tolist() == [[[0, 100]]]
    assert plain(widths.sign(spy.grid((2, 1)), _result="numpy")) == [[1], [1]]
    assert plain(widths.count(range(3), _result="numpy")) == [1, 1, 1]
    assert (widths.sign(spy.wang_hash(dim=2)), widths.noise(spy.rand_float(dim=2)), widths.noise(spy.rand_float(dim=1))) == (2, 2, 1)
    with pytest.raises(KernelGenException, match=r"(?s)cell\(vector<int,3> v\): Could not find suitable.*cell\(vector<int,2> v\)"):
        widths.cell(spy.grid((1, 2, 3, 4)))


def test_dicts_choose_the_overload_whose_fields_they_have(widths: Any) -> None:
    assert (widths.reach({"x": 1.0}), widths.reach({"x": 1.0, "y": 2.0})) == (1, 2)
    assert [widths.part(dict(zip("xyzw", range(n), strict=False))) for n in (2, 3, 4)] == [2, 3, 4]
    assert plain(widths.reach([{"x": 1.0, "y": 2.0}] * 2, _result="numpy")) == [2, 2]
    with pytest.raises(KernelGenException, match=r"(?s)Near has no field 'z'.*Far has no field 'z'|Far has no.*Near has no"):
        widths.reach({"x": 1.0, "z": 2.0})


def test_ambiguous_overloads_show_what_was_left_out(widths: Any) -> None:
    with pytest.raises(ResolveException, match=r"(?s)Ambiguous call.*float c = \.\.\."):
        widths.most(1.0, 2.0)
