"""Arithmetic and comparison, against numpy and Python's integers."""

import operator
import random

import numpy as np
import pytest

import slangpy as spy

RNG = np.random.default_rng(3)
PICK = random.Random(3)
FLOATS = {"float16_t": np.float16, "float": np.float32, "double": np.float64}
INTS = {"int": np.int32, "uint": np.uint32, "int64_t": np.int64, "uint64_t": np.uint64}
ARITHMETIC = {"add": operator.add, "sub": operator.sub, "mul": operator.mul, "truediv": operator.truediv}


def trunc_div(a: int, b: int) -> int:
    q = abs(a) // abs(b)
    return q if (a < 0) == (b < 0) else -q


def wrapped(value: int, dtype) -> int:
    bits = np.dtype(dtype).itemsize * 8
    value &= 2**bits - 1
    return value - 2**bits if np.dtype(dtype).kind == "i" and value >= 2 ** (bits - 1) else value


@pytest.mark.parametrize("op", ARITHMETIC)
@pytest.mark.parametrize("scalar", FLOATS)
@pytest.mark.parametrize("shape", ["1", "2", "3", "4", "2x3", "4x4"])
def test_float_arithmetic(scalar, shape, op):
    cls, dtype, fn = getattr(spy, scalar + shape), FLOATS[scalar], ARITHMETIC[op]
    size = tuple(int(n) for n in shape.split("x"))
    for _ in range(20):
        a = RNG.uniform(-3, 3, size).astype(dtype)
        b = RNG.uniform(0.5, 3, size).astype(dtype)
        s = float(RNG.uniform(0.5, 3))
        # numpy in the type itself rounds each operation once, as does ours
        np.testing.assert_array_equal(fn(cls(a), cls(b)).to_numpy(), fn(a, b))
        np.testing.assert_array_equal(fn(cls(a), s).to_numpy(), fn(a, dtype(s)))
        np.testing.assert_array_equal(fn(s, cls(b)).to_numpy(), fn(dtype(s), b))
        np.testing.assert_array_equal(fn(cls(a), b.tolist()).to_numpy(), fn(a, b))
        np.testing.assert_array_equal(fn(a.tolist(), cls(b)).to_numpy(), fn(a, b))
        got = fn(cls(a), cls(b))
        assert type(got) is cls
        np.testing.assert_array_equal((cls(a) // cls(b)).to_numpy(), np.floor(a.astype(float) / b.astype(float)))


@pytest.mark.parametrize("scalar", INTS)
def test_integer_arithmetic(scalar):
    dtype = INTS[scalar]
    info = np.iinfo(dtype)
    cls = getattr(spy, scalar + "4")
    special = [0, 1, int(info.min), int(info.max), int(info.max) // 2, 3] + ([-1, -7] if info.min else [7])
    for _ in range(200):
        small = range(-50 if info.min else 0, 50)
        a, b = PICK.choices(PICK.choice([special, small]), k=4), PICK.choices(special, k=4)
        va, vb = cls(a), cls(b)
        for name in ("add", "sub", "mul", "and_", "or_", "xor"):
            fn = getattr(operator, name)
            assert list(fn(va, vb)) == [wrapped(fn(x, y), dtype) for x, y in zip(a, b, strict=True)]
        assert list(-va) == [wrapped(-x, dtype) for x in a]
        assert list(abs(va)) == [wrapped(abs(x), dtype) for x in a]
        assert list(~va) == [wrapped(~x, dtype) for x in a]
        assert list(+va) == a
        if 0 in b:
            for fn in (operator.truediv, operator.mod, operator.floordiv):
                with pytest.raises(ZeroDivisionError, match="division by zero in component"):
                    fn(va, vb)
        else:
            assert list(va / vb) == [wrapped(trunc_div(x, y), dtype) for x, y in zip(a, b, strict=True)]
            assert list(va % vb) == [wrapped(x - trunc_div(x, y) * y, dtype) for x, y in zip(a, b, strict=True)]
            assert list(va // vb) == [wrapped(x // y, dtype) for x, y in zip(a, b, strict=True)]
        for shift in (0, 1, 5, 31, 32, 63, 64, 100):
            assert list(va << shift) == [wrapped(x << shift, dtype) for x in a]
            assert list(va >> shift) == [x >> shift for x in a]


def test_worked_integers():
    assert repr(spy.int3(-7) / 2) == "{-3, -3, -3}"
    assert repr(spy.int3(-7) % 4) == "{-3, -3, -3}"
    assert list(2 - spy.int2(3, 1)) == [-1, 1] and list(7 / spy.int2(2, -2)) == [3, -3]
    assert list(1 << spy.int2(3, 4)) == [8, 16]
    with pytest.raises(ValueError, match="negative shift"):
        spy.int2(1) << -1
    with pytest.raises(OverflowError):
        spy.uint2(1) + -1
    with pytest.raises(OverflowError):
        spy.int2(1) + 2**31


def test_float_division_by_zero_is_ieee():
    assert list(spy.float3(1, -1, 0) / 0)[:2] == [np.inf, -np.inf]
    assert np.isnan(spy.float3(1, -1, 0) / spy.float3(0))[2]


def test_mixed_types():
    f = spy.float3(1.5, 2.5, 3.5)
    for other in (spy.int3(1, 2, 3), (1, 2, 3), [1, 2, 3], np.array([1, 2, 3]), spy.uint3(1, 2, 3), spy.bool3(1, 1, 1)):
        numbers = [float(x) for x in other]
        left, right = f + other, other - f
        assert type(left) is spy.float3 and list(left) == [x + y for x, y in zip(f, numbers, strict=True)]
        if isinstance(other, np.ndarray):
            assert isinstance(right, np.ndarray)
        else:
            assert type(right) is spy.float3
        assert list(right) == [y - x for x, y in zip(f, numbers, strict=True)]
    assert type(spy.half3(1) + f) is spy.float3 and type(f + spy.double3(1)) is spy.double3
    assert type(spy.int3(1) + spy.int64_t3(1)) is spy.int64_t3
    assert type(spy.uint3(1) + spy.uint64_t3(1)) is spy.uint64_t3
    assert type(spy.int3(1) + spy.half3(1)) is spy.half3
    for a, b in [(spy.int3(), spy.uint3()), (spy.int64_t3(), spy.uint64_t3())]:
        with pytest.raises(TypeError, match="do not mix; convert"):
            a + b
    for a, b in [(spy.float3(), spy.float2()), (spy.float2x2(), spy.float4()), (spy.float2x3(), spy.float3x2())]:
        with pytest.raises(TypeError, match="sizes differ"):
            a + b


@pytest.mark.parametrize(
    "expression",
    [
        *("f + 'a'", "f + None", "f + (1, 2)", "f + {1, 2, 3}", "f + 1j", "f % 2", "f & f", "f << 1", "~f", "f @ f"),
        *("i + 1.5", "1.5 * i", "i + [1.5, 1, 1]", "b + b", "b * 2", "-b", "abs(b)", "b @ m", "f ** 2"),
        *("m @ 2", "m + f", "m @ spy.float2(1)", "q * q", "q + 1", "q * f", "1 / q", "q @ q", "abs(q)"),
    ],
)
def test_refused(expression):
    names = {"f": spy.float3(1), "i": spy.int3(1), "b": spy.bool3(1), "m": spy.float2x3(), "q": spy.quatf(), "spy": spy}
    with pytest.raises(TypeError):
        eval(expression, names)


def test_numpy_operands():
    v = spy.float3(1, 2, 3)
    for number in (np.float32(2), np.float64(2), np.int32(2), np.float16(2), np.array(2.0)):
        assert list(v * number) == [2, 4, 6] and type(v * number) is spy.float3
        if not isinstance(number, np.ndarray):
            assert type(number * v) is spy.float3, type(number)
        assert list(number * v) == [2, 4, 6]
    rows = np.arange(6.0).reshape(2, 3)
    for got in (rows * v, v * rows):
        assert isinstance(got, np.ndarray)
        np.testing.assert_array_equal(got, rows * np.array([1.0, 2, 3]))
    m = spy.float2x3(range(6))
    np.testing.assert_array_equal((m + rows).to_numpy(), 2 * rows)


def test_in_place():
    v = alias = spy.float3(1, 2, 3)
    v += 1
    v *= spy.float3(2)
    v -= (1, 1, 1)
    v /= 2
    assert v is alias and list(v) == [1.5, 2.5, 3.5]
    i = alias = spy.int3(13)
    i <<= 2
    i |= 1
    i ^= 3
    i &= 0xFF
    i >>= 1
    i %= 16
    i //= 2
    assert i is alias and list(i) == [(((((13 << 2) | 1) ^ 3) & 0xFF) >> 1) % 16 // 2] * 3
    i += spy.float3(0.5)
    assert type(i) is spy.float3
    m = alias = spy.float2x2()
    m *= 3
    assert m is alias and m == spy.float2x2([3, 0, 0, 3])
    with pytest.raises(TypeError):
        v += "a"
    broken = spy.int2(1, 1)
    with pytest.raises(ZeroDivisionError):
        broken /= spy.int2(1, 0)
    assert list(broken) == [1, 1]


def test_bools():
    a, b = spy.bool4(1, 1, 0, 0), spy.bool4(1, 0, 1, 0)
    assert list(a & b) == [1, 0, 0, 0] and list(a | b) == [1, 1, 1, 0] and list(a ^ b) == [0, 1, 1, 0]
    assert list(~a) == [0, 0, 1, 1] and list(a & True) == [1, 1, 0, 0] and type(~a) is spy.bool4


@pytest.mark.parametrize("scalar", ["int", "uint", "float16_t", "float", "double"])
def test_matrix_products(scalar):
    for r in range(2, 5):
        for k in range(2, 5):
            a = RNG.integers(0, 9, (r, k)).astype(float)
            v, w = RNG.integers(0, 9, k).astype(float), RNG.integers(0, 9, r).astype(float)
            whole = (lambda x: x.astype(int)) if "int" in scalar else (lambda x: x)
            ma = getattr(spy, f"{scalar}{r}x{k}")(whole(a))
            got = ma @ getattr(spy, f"{scalar}{k}")(whole(v))
            assert type(got) is getattr(spy, f"{scalar}{r}") and list(got) == list(a @ v)
            got = getattr(spy, f"{scalar}{r}")(whole(w)) @ ma
            assert type(got) is getattr(spy, f"{scalar}{k}") and list(got) == list(w @ a)
            for c in range(2, 5):
                b = RNG.integers(0, 9, (k, c)).astype(float)
                got = ma @ getattr(spy, f"{scalar}{k}x{c}")(whole(b))
                assert type(got) is getattr(spy, f"{scalar}{r}x{c}")
                np.testing.assert_array_equal(got.to_numpy(), a @ b)
    m = spy.float2x2(1, 2, 3, 4)
    m @= spy.float2x2(0, 1, 1, 0)
    assert m == spy.float2x2(2, 1, 4, 3)
    with pytest.raises(TypeError, match="sizes do not fit"):
        spy.float2x3() @ spy.float2x3()


def test_quaternion_operators():
    q, r = spy.quatf(1, 2, 3, 4), spy.quatf(4, 3, 2, 1)
    assert list(q + r) == [5, 5, 5, 5] and list(q - r) == [-3, -1, 1, 3] and list(-q) == [-1, -2, -3, -4]
    assert list(q * 2) == list(2 * q) == [2, 4, 6, 8] and list(q / 2) == [0.5, 1, 1.5, 2]
    assert type(q + r) is spy.quatf and q == (1, 2, 3, 4) and q != r
    with pytest.raises(TypeError, match=r"math\.mul"):
        q * r


def test_equality():
    v = spy.float3(1, 2, 3)
    for same in (
        spy.float3(1, 2, 3),
        (1, 2, 3),
        [1, 2, 3],
        np.array([1, 2, 3], np.float32),
        spy.int3(1, 2, 3),
        spy.double3(1, 2, 3),
    ):
        assert (v == same) is True and (v != same) is False
        if not isinstance(same, np.ndarray):
            assert (same == v) is True
    for other in (
        spy.float3(1, 2, 4),
        (1, 2),
        (1, 2, 3, 4),
        1,
        None,
        "abc",
        spy.float2(1, 2),
        spy.float4(1, 2, 3, 0),
        {},
        (1, 2, "3"),
    ):
        assert (v == other) is False and (v != other) is True
    assert spy.float3(0.1) == (0.1, 0.1, 0.1)
    assert spy.float1(float("nan")) != spy.float1(float("nan"))
    assert spy.float2x2() == [[1, 0], [0, 1]] and spy.float2x2() != spy.float2x2.zeros()
    assert spy.int2(-1, 0) != spy.uint2(2**32 - 1, 0) and spy.int2(1, 2) == spy.uint2(1, 2)
    assert spy.int64_t1(2**53 + 1) != spy.int64_t1(2**53)
    assert spy.int2(1, 2) != (1.5, 2) and spy.uint2(1, 2) != (-1, 2)


def test_order_is_lexicographic():
    values = [(1, 2, 3), (1, 2, 4), (1, 3, 0), (2, 0, 0), (1, 2, 3)]
    for a in values:
        for b in values:
            for op in (operator.lt, operator.le, operator.gt, operator.ge):
                assert op(spy.int3(a), spy.int3(b)) is op(a, b)
                assert op(spy.float3(a), spy.float3(b)) is op(a, b)
                assert op(spy.float3(a), b) is op(a, b)
    assert sorted(spy.int3(v) for v in values) == [spy.int3(v) for v in sorted(values)]
    nan = spy.float2(float("nan"), 0)
    assert not (nan < spy.float2()) and not (nan >= spy.float2())
    assert spy.uint64_t1(2**64 - 1) > spy.uint64_t1(1)
    with pytest.raises(TypeError):
        operator.lt(spy.float3(), spy.float2())
    with pytest.raises(TypeError):
        operator.lt(spy.float3(), 1)


def test_halves_calculate_as_floats_do() -> None:
    half = spy.float16_t(2.5)
    assert half**2 == 6.25 and 2**half == float(np.float16(2**2.5)) and isinstance(half**2, spy.float16_t)
    assert half % 2 == 0.5 and 7 % half == 2 and divmod(half, 2) == (1, 0.5)
    assert round(half) == 2 and isinstance(round(half), int) and round(spy.float16_t(1.26), 1) == spy.float16_t(1.3)
    assert f"{half:.2f}" == "2.50" and f"{half}" == "2.5"
    with pytest.raises(TypeError):
        half % "a"
    with pytest.raises(ZeroDivisionError):
        half % 0
