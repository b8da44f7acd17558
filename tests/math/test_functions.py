"""Element-wise functions against numpy in float64."""

import math

import numpy as np
import pytest

import slangpy as spy

m = spy.math
RNG = np.random.default_rng(4)
HALF_UP = lambda x: np.copysign(np.floor(np.abs(x) + 0.5), x)  # noqa: E731

UNARY = {  # name: (reference, low, high)
    "abs": (np.abs, -9, 9),
    "acos": (np.arccos, -1, 1),
    "asin": (np.arcsin, -1, 1),
    "atan": (np.arctan, -9, 9),
    "ceil": (np.ceil, -9, 9),
    "cos": (np.cos, -9, 9),
    "cosh": (np.cosh, -5, 5),
    "degrees": (np.degrees, -9, 9),
    "exp": (np.exp, -5, 5),
    "exp2": (np.exp2, -5, 5),
    "floor": (np.floor, -9, 9),
    "frac": (lambda x: x - np.floor(x), -9, 9),
    "log": (np.log, 0.01, 9),
    "log10": (np.log10, 0.01, 9),
    "log2": (np.log2, 0.01, 9),
    "radians": (np.radians, -200, 200),
    "rcp": (lambda x: 1 / x, 0.1, 9),
    "round": (HALF_UP, -9, 9),
    "rsqrt": (lambda x: 1 / np.sqrt(x), 0.1, 9),
    "saturate": (lambda x: np.clip(x, 0, 1), -2, 2),
    "sign": (np.sign, -9, 9),
    "sin": (np.sin, -9, 9),
    "sinh": (np.sinh, -5, 5),
    "sqrt": (np.sqrt, 0, 9),
    "tan": (np.tan, -1.5, 1.5),
    "tanh": (np.tanh, -3, 3),
    "trunc": (np.trunc, -9, 9),
}
BINARY = {
    "atan2": (np.arctan2, -9, 9),
    "fmod": (np.fmod, -9, 9),
    "pow": (np.power, 0.1, 3),
    "step": (lambda x, y: (x >= y).astype(float), -9, 9),
    "min": (np.minimum, -9, 9),
    "max": (np.maximum, -9, 9),
}
RELATIVE = {"float16_t": 2**-11, "float": 2**-24, "double": 1e-14}
DTYPES = {"float16_t": np.float16, "float": np.float32, "double": np.float64}


def rounded(expected, dtype):
    return np.asarray(expected, np.float64).astype(dtype).astype(np.float64)


@pytest.mark.parametrize("name", UNARY)
def test_unary(name):
    reference, low, high = UNARY[name]
    function = getattr(m, name)
    for scalar, dtype in DTYPES.items():
        for n in range(1, 5):
            cls = getattr(spy, f"{scalar}{n}")
            for _ in range(10):
                x = RNG.uniform(low, high, n).astype(dtype)
                got = function(cls(x))
                assert type(got) is cls
                expected = np.atleast_1d(reference(x.astype(np.float64)))
                expected = rounded(expected, dtype)
                np.testing.assert_allclose(list(got), expected, rtol=2.1 * RELATIVE[scalar], atol=1e-300)
    x = float(RNG.uniform(low, high))
    got = function(x)
    assert type(got) is float
    np.testing.assert_allclose(got, reference(x), rtol=1e-14)
    half = function(spy.float16_t(x))
    assert type(half) is spy.float16_t
    np.testing.assert_allclose(float(half), rounded(reference(float(np.float16(x))), np.float16), rtol=2**-10)


@pytest.mark.parametrize("name", BINARY)
def test_binary(name):
    reference, low, high = BINARY[name]
    function = getattr(m, name)
    for scalar, dtype in DTYPES.items():
        for n in range(1, 5):
            cls = getattr(spy, f"{scalar}{n}")
            for _ in range(10):
                x, y = RNG.uniform(low, high, (2, n)).astype(dtype)
                wide = reference(x.astype(np.float64), y.astype(np.float64))
                got = function(cls(x), cls(y))
                np.testing.assert_allclose(list(got), rounded(wide, dtype), rtol=2.1 * RELATIVE[scalar])
                s = float(y[0])
                wide = reference(x.astype(np.float64), s)
                np.testing.assert_allclose(list(function(cls(x), s)), rounded(wide, dtype), rtol=2.1 * RELATIVE[scalar])
                wide = reference(np.float64(s), x.astype(np.float64))
                np.testing.assert_allclose(list(function(s, cls(x))), rounded(wide, dtype), rtol=2.1 * RELATIVE[scalar])
    x, y = RNG.uniform(low, high, 2)
    np.testing.assert_allclose(function(float(x), float(y)), reference(np.float64(x), np.float64(y)), rtol=1e-14)


def test_three_arguments():
    for _ in range(20):
        a, b, t = (RNG.uniform(-2, 2, 3).astype(np.float32) for _ in range(3))
        va, vb, vt = spy.float3(a), spy.float3(b), spy.float3(t)
        a, b, t = a.astype(float), b.astype(float), t.astype(float)
        np.testing.assert_allclose(list(m.lerp(va, vb, vt)), a + (b - a) * t, rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(list(m.lerp(va, vb, 0.25)), a + (b - a) * 0.25, rtol=1e-6, atol=1e-6)
        low, high = np.minimum(a, b), np.maximum(a, b)
        got = m.clamp(vt, spy.float3(low), spy.float3(high))
        np.testing.assert_allclose(list(got), np.clip(t, low, high), rtol=1e-6)
        u = np.clip((t - low) / (high - low), 0, 1)
        got = m.smoothstep(spy.float3(low), spy.float3(high), vt)
        np.testing.assert_allclose(list(got), u * u * (3 - 2 * u), rtol=2e-5, atol=1e-6)
    assert m.lerp(2.0, 4.0, 0.5) == 3.0 and m.clamp(5, 1, 3) == 3 and m.clamp(-5, 1, 3) == 1
    assert m.smoothstep(0.0, 1.0, 0.5) == 0.5 and m.smoothstep(0, 1, 2) == 1


def test_worked_numbers():
    assert [m.round(x) for x in (0.5, 1.5, 2.5, -0.5, -2.5)] == [1, 2, 3, -1, -3]
    assert m.fmod(-7.5, 2) == -1.5 and m.fmod(7.5, -2) == 1.5
    assert m.step(2.0, 1.0) == 1 and m.step(1.0, 2.0) == 0 and m.step(1.0, 1.0) == 1
    assert m.frac(-0.25) == 0.75 and m.saturate(float("nan")) == 0
    assert m.atan2(1.0, -1.0) == pytest.approx(3 * math.pi / 4)


def test_integers():
    a, b = spy.int3(-5, 2, 7), spy.int3(3, 2, -1)
    assert repr(m.min(a, b)) == "{-5, 2, -1}" and repr(m.max(a, b)) == "{3, 2, 7}" and repr(m.abs(a)) == "{5, 2, 7}"
    assert repr(m.sign(a)) == "{-1, 1, 1}" and repr(m.clamp(a, -1, 3)) == "{-1, 2, 3}"
    assert type(m.max(a, 1)) is spy.int3 and type(m.max(3, 4)) is int and type(m.abs(-3)) is int
    assert repr(m.max(spy.uint2(2**32 - 1, 1), 5)) == "{4294967295, 5}"
    assert m.min(spy.uint64_t1(2**64 - 1), spy.uint64_t1(1)) == spy.uint64_t1(1)
    assert m.abs(spy.int1(-(2**31))) == spy.int1(-(2**31))
    assert m.sign(-0.5) == -1 and m.sign(0) == 0
    with pytest.raises(TypeError):
        m.max(a, 1.5)
    got = m.sqrt(spy.int2(4, 9))
    assert type(got) is spy.float2 and list(got) == [2, 3]


def test_nan_bounds_and_classes():
    nan, inf = float("nan"), float("inf")
    assert m.min(nan, 1.0) == 1 and m.max(1.0, nan) == 1
    v = spy.float3(nan, inf, 1)
    assert list(m.isnan(v)) == [True, False, False] and list(m.isinf(v)) == [False, True, False]
    assert list(m.isfinite(v)) == [False, False, True] and type(m.isnan(v)) is spy.bool3
    assert m.isnan(nan) is True and m.isinf(1.0) is False and m.isfinite(3) is True


def test_select():
    c = spy.bool3(True, False, True)
    assert list(m.select(c, spy.float3(1, 2, 3), spy.float3(4, 5, 6))) == [1, 5, 3]
    got = m.select(c, spy.uint3(1, 2, 3), 9)
    assert type(got) is spy.uint3 and list(got) == [1, 9, 3]
    assert type(m.select(c, 1.5, 2)) is spy.float3 and list(m.select(c, 1.5, 2)) == [1.5, 2, 1.5]
    assert type(m.select(c, 1, 2)) is spy.int3
    assert m.select(True, 1, 2) == 1 and m.select(False, spy.int2(1), spy.int2(2)) == spy.int2(2)
    assert list(m.select(c, c, spy.bool3(False))) == [True, False, True]
    with pytest.raises(TypeError, match="condition"):
        m.select(spy.float3(1), 1, 2)
    with pytest.raises(TypeError, match="same size"):
        m.select(c, spy.float2(), spy.float2())


def test_tests():
    for bits in range(16):
        values = [bool(bits >> i & 1) for i in range(4)]
        v = spy.bool4(values)
        assert m.any(v) is any(values) and m.all(v) is all(values) and m.none(v) is not any(values)
    assert m.any(spy.float2(0, 0.5)) is True and m.all(spy.int2(1, 0)) is False and m.none(False) is True


@pytest.mark.parametrize(
    ("name", "ufunc"),
    [
        ("eq", "equal"),
        ("ne", "not_equal"),
        ("lt", "less"),
        ("le", "less_equal"),
        ("gt", "greater"),
        ("ge", "greater_equal"),
    ],
)
def test_relations(name, ufunc):
    function, reference = getattr(m, name), getattr(np, ufunc)
    a, b = [1, 2, 3, float("nan")], [2, 2, 1, float("nan")]
    got = function(spy.float4(a), spy.float4(b))
    assert type(got) is spy.bool4 and list(got) == list(reference(a, b))
    assert list(function(spy.int3(1, 2, 3), 2)) == list(reference([1, 2, 3], 2))
    assert list(function(2, spy.int3(1, 2, 3))) == list(reference(2, [1, 2, 3]))
    assert list(function(spy.float3(1, 2, 3), (1, 3, 2))) == list(reference([1, 2, 3], [1, 3, 2]))
    big = [2**64 - 1, 1]
    expected = reference(np.array(big, np.uint64), np.uint64(1))
    assert list(function(spy.uint64_t2(big), spy.uint64_t2(1))) == list(expected)
    assert type(function(1, 2)) is bool and function(1, 2) == reference(1, 2)
    assert type(function(spy.float2x2(), spy.float2x2())) is spy.bool2x2


def test_bits():
    numbers = [0.1, -2.5, 3e38, float("inf")]
    as32 = np.array(numbers, np.float32)
    assert list(m.asuint(spy.float4(numbers))) == list(as32.view(np.uint32))
    assert list(m.asint(spy.float4(numbers))) == list(as32.view(np.int32))
    assert m.asfloat(m.asuint(spy.float4(numbers))) == spy.float4(numbers) == m.asfloat(m.asint(spy.float4(numbers)))
    assert m.asuint(1.0) == 0x3F800000 and m.asint(-1.0) == -0x40800000
    assert m.asfloat(0x40490FDB) == float(np.float32(np.pi))
    assert m.asfloat(-0x80000000) == 0 and math.copysign(1, m.asfloat(-0x80000000)) == -1
    assert m.asuint(spy.int2(-1, 1)) == spy.uint2(2**32 - 1, 1) and m.asint(spy.uint2(2**32 - 1, 1)) == spy.int2(-1, 1)
    halves = np.array([0.1, -2.5, 60000, np.inf], np.float16)
    bits = halves.view(np.uint16).tolist()
    assert list(m.f32tof16(spy.float4(0.1, -2.5, 60000, float("inf")))) == bits
    assert type(m.f32tof16(spy.float4())) is spy.uint4 and type(m.f16tof32(spy.uint4())) is spy.float4
    assert list(m.f16tof32(spy.uint4(bits))) == [float(h) for h in halves]
    assert list(m.asuint16(spy.half4(0.1, -2.5, 60000, float("inf")))) == bits
    assert m.asfloat16(spy.uint4(bits)) == spy.half4(*map(float, halves)) and type(m.asfloat16(0x3C00)) is spy.float16_t
    assert m.asuint16(spy.float16_t(1)) == 0x3C00 and m.f32tof16(1.0) == 0x3C00 and m.f16tof32(0x3C00) == 1.0
    for call in (lambda: m.asfloat(2**32), lambda: m.asfloat16(65536), lambda: m.f16tof32(-1)):
        with pytest.raises(OverflowError):
            call()
    for call in (
        lambda: m.asfloat(1.0),
        lambda: m.f16tof32(1.0),
        lambda: m.asuint(spy.double2()),
        lambda: m.asuint(spy.bool2()),
    ):
        with pytest.raises(TypeError, match=r"math\.\w+: expected"):
            call()


def test_geometry():
    for scalar, tolerance in (("float", 1e-6), ("double", 1e-14)):
        for n in range(1, 5):
            a, b = RNG.uniform(-2, 2, (2, n))
            va, vb = getattr(spy, f"{scalar}{n}")(a), getattr(spy, f"{scalar}{n}")(b)
            a, b = np.array(list(va)), np.array(list(vb))
            assert m.dot(va, vb) == pytest.approx(a @ b, rel=tolerance, abs=tolerance)
            assert m.length(va) == pytest.approx(np.linalg.norm(a), rel=tolerance)
            np.testing.assert_allclose(list(m.normalize(va)), a / np.linalg.norm(a), rtol=tolerance)
            normal = b / np.linalg.norm(b)
            got = m.reflect(va, getattr(spy, f"{scalar}{n}")(normal))
            np.testing.assert_allclose(list(got), a - 2 * (a @ normal) * normal, rtol=tolerance, atol=tolerance)
        a, b = RNG.uniform(-2, 2, (2, 3)).astype(np.float32)
        got = m.cross(getattr(spy, f"{scalar}3")(a), getattr(spy, f"{scalar}3")(b))
        np.testing.assert_allclose(list(got), np.cross(a.astype(float), b.astype(float)), rtol=1e-6, atol=1e-6)
    assert m.dot(spy.int3(1, 2, 3), spy.int3(4, 5, 6)) == 32 and type(m.dot(spy.int3(1), spy.int3(1))) is int
    assert m.dot(spy.int1(2**16), spy.int1(2**16)) == 0
    assert m.dot(spy.float3(1, 2, 3), (1, 1, 1)) == 6
    assert all(math.isnan(x) for x in m.normalize(spy.float2(0)))
    with pytest.raises(TypeError, match="3 components"):
        m.cross(spy.float2(), spy.float2())


def test_refusals_name_the_function():
    for call, name in [
        (lambda: m.sin("x"), "sin"),
        (lambda: m.sin([1, 2]), "sin"),
        (lambda: m.sin(np.zeros(3)), "sin"),
        (lambda: m.sin(spy.quatf()), "sin"),
        (lambda: m.sin(spy.bool2()), "sin"),
        (lambda: m.max(spy.float2(), spy.float3()), "max"),
        (lambda: m.lerp(1, 2, None), "lerp"),
        (lambda: m.length(1.0), "length"),
        (lambda: m.dot(1, 2), "dot"),
        (lambda: m.any("x"), "any"),
    ]:
        with pytest.raises(TypeError, match=rf"math\.{name}: expected .*got"):
            call()


def test_every_function_has_a_docstring():
    names = [name for name in dir(m) if not name.startswith("_")]
    assert len(names) > 150
    for name in names:
        assert getattr(m, name).__doc__, name
