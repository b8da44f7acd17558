"""Constructors: every accepted form, every refusal."""

import numpy as np
import pytest

import slangpy as spy

SCALARS = ["bool", "int", "uint", "int64_t", "uint64_t", "float16_t", "float", "double"]
MATRIX_SCALARS = ["bool", "int", "uint", "float16_t", "float", "double"]
NUMPY = {
    "bool": np.bool_,
    "int": np.int32,
    "uint": np.uint32,
    "int64_t": np.int64,
    "uint64_t": np.uint64,
    "float16_t": np.float16,
    "float": np.float32,
    "double": np.float64,
}
VECTORS = [(s, n) for s in SCALARS for n in range(1, 5)]
MATRICES = [(s, r, c) for s in MATRIX_SCALARS for r in range(2, 5) for c in range(2, 5)]


def cls(name: str) -> type:
    assert getattr(spy, name) is getattr(spy.math, name)
    return getattr(spy, name)


@pytest.mark.parametrize(("scalar", "n"), VECTORS)
def test_every_vector_class(scalar, n):
    vector = cls(f"{scalar}{n}")
    numbers = [1, 0, 1, 1][:n]
    assert vector.__name__ == f"{scalar}{n}" and vector.__module__ == "slangpy"
    assert list(vector()) == [0] * n
    assert list(vector(1)) == [1] * n
    assert list(vector(*numbers)) == numbers
    for source in (numbers, tuple(numbers), np.array(numbers, NUMPY[scalar]), vector(*numbers)):
        assert list(vector(source)) == numbers
    value = vector(*numbers)
    assert value.shape == (n,) and len(value) == n
    kind = {"b": bool, "i": int, "u": int, "f": float}[np.dtype(NUMPY[scalar]).kind]
    assert value.element_type is kind
    assert all(type(x) is kind for x in value)
    assert np.asarray(value).dtype == NUMPY[scalar]


@pytest.mark.parametrize(("scalar", "rows", "cols"), MATRICES)
def test_every_matrix_class(scalar, rows, cols):
    matrix = cls(f"{scalar}{rows}x{cols}")
    dtype = NUMPY[scalar]
    expected = np.arange(rows * cols).reshape(rows, cols).astype(dtype)
    flat = expected.reshape(-1).tolist()
    for source in (flat, tuple(flat), expected.reshape(-1), expected, expected.tolist(), np.asfortranarray(expected)):
        np.testing.assert_array_equal(matrix(source).to_numpy(), expected)
    np.testing.assert_array_equal(matrix(*expected.tolist()).to_numpy(), expected)
    np.testing.assert_array_equal(matrix(*flat).to_numpy(), expected)
    np.testing.assert_array_equal(matrix(matrix(flat)).to_numpy(), expected)
    np.testing.assert_array_equal(matrix().to_numpy(), np.eye(rows, cols))
    np.testing.assert_array_equal(matrix.identity().to_numpy(), np.eye(rows, cols))
    np.testing.assert_array_equal(matrix.zeros().to_numpy(), np.zeros((rows, cols)))
    assert matrix(flat).to_numpy().dtype == dtype
    assert matrix().shape == (rows, cols) and len(matrix()) == rows
    rows_of_vectors = [cls(f"{scalar}{cols}")(row.tolist()) for row in expected]
    np.testing.assert_array_equal(matrix(rows_of_vectors).to_numpy(), expected)


def test_parts():
    v2, v3 = spy.float2(1, 2), spy.float3(3, 4, 5)
    assert list(spy.float3(v2, 9)) == [1, 2, 9]
    assert list(spy.float3(9, v2)) == [9, 1, 2]
    assert list(spy.float4(v2, v2)) == [1, 2, 1, 2]
    assert list(spy.float4(v3, 9)) == [3, 4, 5, 9]
    assert list(spy.float4(9, v3)) == [9, 3, 4, 5]
    assert list(spy.float4(v2, 8, 9)) == [1, 2, 8, 9]
    assert list(spy.float4(8, v2, 9)) == [8, 1, 2, 9]
    assert list(spy.float4(8, 9, v2)) == [8, 9, 1, 2]
    assert list(spy.int4(spy.uint2(1, 2), spy.int2(-3, 4))) == [1, 2, -3, 4]
    assert list(spy.float3(spy.int3(1, 2, 3))) == [1, 2, 3]
    assert list(spy.float3(spy.bool3(True, False, True))) == [1, 0, 1]
    assert list(spy.int3(spy.uint3(1, 2, 3))) == [1, 2, 3]
    assert list(spy.double3(spy.float3(0.1))) == [float(np.float32(0.1))] * 3
    assert list(spy.float3(range(3))) == [0, 1, 2]


def test_keywords():
    assert list(spy.float3(x=1, y=2, z=3)) == [1, 2, 3]
    assert list(spy.float3(z=3, x=1, y=2)) == [1, 2, 3]
    assert list(spy.float4(1, yzw=spy.float3(2, 3, 4))) == [1, 2, 3, 4]
    assert list(spy.quatf(x=1, y=2, z=3, w=4)) == [1, 2, 3, 4]
    with pytest.raises(TypeError, match="unknown keyword 'w'"):
        spy.float3(x=1, y=2, w=3)
    with pytest.raises(TypeError, match="given twice"):
        spy.float3(1, 2, x=3)
    with pytest.raises(TypeError, match="'xy' needs 2"):
        spy.float3(xy=1, z=2)


@pytest.mark.parametrize(
    "make",
    [
        lambda: spy.float3(1, 2),
        lambda: spy.float3(1, 2, 3, 4),
        lambda: spy.float3([1, 2]),
        lambda: spy.float3(range(10**12)),
        lambda: spy.float4x4(range(17)),
        lambda: spy.float3(spy.float2()),
        lambda: spy.float3(spy.float4()),
        lambda: spy.float3(spy.float2(), spy.float2()),
        lambda: spy.float3([[1], [2], [3]]),
        lambda: spy.float3(np.zeros((3, 3))),
        lambda: spy.float3("123"),
        lambda: spy.float3(b"123"),
        lambda: spy.float3({1: 2, 2: 3, 3: 4}),
        lambda: spy.float3({1, 2, 3}),
        lambda: spy.float3(None),
        lambda: spy.float3(1, 2, None),
        lambda: spy.float3(1j),
        lambda: spy.float3(np.complex64(1)),
        lambda: spy.float2x2(1.0),
        lambda: spy.float2x2(1, 2, 3),
        lambda: spy.float2x2([1, 2, 3]),
        lambda: spy.float2x2([[1, 2, 3], [4, 5, 6]]),
        lambda: spy.float2x3(np.zeros((3, 2))),
        lambda: spy.quatf(1),
        lambda: spy.quatf(1, 2, 3),
        lambda: spy.float16_t(1, 2),
        lambda: spy.float16_t("1"),
    ],
)
def test_wrong_counts_and_kinds(make):
    with pytest.raises(TypeError, match=r"float\dx?\d?|quatf|float16_t"):
        make()


@pytest.mark.parametrize("name", ["int3", "uint3", "int64_t3", "uint64_t3", "int2x2"])
@pytest.mark.parametrize("value", [1.0, 1.5, np.float32(2), spy.float16_t(2), float("nan")])
def test_integers_refuse_floats(name, value):
    count = 4 if "x" in name else 3
    with pytest.raises(TypeError, match="expected an integer, got"):
        cls(name)([value] * count)


@pytest.mark.parametrize(
    ("name", "low", "high"),
    [
        ("int2", -(2**31), 2**31 - 1),
        ("uint2", 0, 2**32 - 1),
        ("int64_t2", -(2**63), 2**63 - 1),
        ("uint64_t2", 0, 2**64 - 1),
    ],
)
def test_integer_limits(name, low, high):
    assert list(cls(name)(low, high)) == [low, high]
    for value in (low - 1, high + 1, 10**30, -(10**30)):
        with pytest.raises(OverflowError, match="does not fit"):
            cls(name)(value)
    if low:
        with pytest.raises(OverflowError):
            cls(name)(np.uint64(2**63 + 5))


def test_bools():
    assert list(spy.bool3(2, 0, -1)) == [True, False, True]
    assert list(spy.bool2(np.bool_(True), np.array(False))) == [True, False]
    with pytest.raises(TypeError, match="bool"):
        spy.bool2(1.0)


def test_floats_round_once():
    rng = np.random.default_rng(1)
    for value in [0.1, 1e300, -1e300, 1e-46, 16777217, *rng.normal(size=50) * 1e10]:
        with np.errstate(over="ignore"):
            assert list(spy.float2(value)) == [float(np.float32(value))] * 2
            assert list(spy.float16_t2(value)) == [float(np.float16(value))] * 2
    # a double rounding through float64 would give 2^60
    assert spy.float1(2**60 + 2**36 + 1).x == float(2**60 + 2**37)
    assert list(spy.double2(0.1)) == [0.1, 0.1]
    with pytest.raises(OverflowError):
        spy.float2(10**400)


def test_number_like_objects():
    class Index:
        def __index__(self):
            return 7

    class Real:
        def __float__(self):
            return 2.5

    assert list(spy.int2(Index(), np.int8(3))) == [7, 3]
    assert list(spy.float2(Real(), np.array(1.5))) == [2.5, 1.5]
    assert list(spy.float2(np.float16(0.5), np.longdouble(0.25))) == [0.5, 0.25]
    with pytest.raises(TypeError):
        spy.int2(Real())


def test_matrix_to_other_sizes():
    m = spy.float3x3(range(1, 10))
    wide = np.eye(3, 4)
    wide[:, :3] = np.arange(1, 10).reshape(3, 3)
    np.testing.assert_array_equal(spy.float3x4(m).to_numpy(), wide)
    tall = np.eye(4)
    tall[:3] = wide
    np.testing.assert_array_equal(spy.float4x4(spy.float3x4(m)).to_numpy(), tall)
    np.testing.assert_array_equal(spy.float3x4(spy.float4x4(range(16))).to_numpy(), np.arange(16).reshape(4, 4)[:3])
    np.testing.assert_array_equal(spy.float3x3(spy.float3x4(m)).to_numpy(), m.to_numpy())
    np.testing.assert_array_equal(spy.double2x2(m).to_numpy(), [[1, 2], [4, 5]])


def test_quaternion():
    assert list(spy.quatf()) == [0, 0, 0, 1] == list(spy.quatf.identity())
    assert list(spy.quatf(1, 2, 3, 4)) == [1, 2, 3, 4]
    assert list(spy.quatf(spy.float3(1, 2, 3), 4)) == [1, 2, 3, 4]
    assert list(spy.quatf([1, 2, 3, 4])) == [1, 2, 3, 4]
    assert spy.quatf().shape == (4,) and spy.quatf().element_type is float


def test_aliases():
    assert spy.half is spy.float16_t
    for n in range(1, 5):
        assert getattr(spy, f"half{n}") is getattr(spy, f"float16_t{n}")


def test_subclasses():
    class Point(spy.float3):
        def __init__(self, name):
            super().__init__(1, 2, 3)
            self.name = name

    p = Point("p")
    assert p.name == "p" and list(p) == [1, 2, 3] and p + 1 == spy.float3(2, 3, 4)
    assert p == spy.float3(1, 2, 3)
