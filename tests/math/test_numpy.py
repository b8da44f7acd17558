"""Arrays out of the values, and float16_t."""

import math

import numpy as np
import pytest

import slangpy as spy

DTYPES = {
    "bool": np.bool_,
    "int": np.int32,
    "uint": np.uint32,
    "int64_t": np.int64,
    "uint64_t": np.uint64,
    "float16_t": np.float16,
    "float": np.float32,
    "double": np.float64,
}


@pytest.mark.parametrize("scalar", DTYPES)
def test_dtypes(scalar):
    v = getattr(spy, f"{scalar}3")(1, 0, 1)
    for a in (np.array(v), np.asarray(v), v.to_numpy(), v.__array__()):
        assert a.dtype == DTYPES[scalar] and a.dtype.char == np.dtype(DTYPES[scalar]).char
        assert a.shape == (3,) and a.tolist() == [1, 0, 1]
    if hasattr(spy, f"{scalar}2x3"):
        m = getattr(spy, f"{scalar}2x3")([1, 0, 1, 0, 1, 1])
        for a in (np.array(m), np.asarray(m), m.to_numpy(), np.from_dlpack(m)):
            assert a.dtype == DTYPES[scalar] and a.tolist() == [[1, 0, 1], [0, 1, 1]]
    assert np.array([v, v]).shape == (2, 3) and np.stack([v, v]).dtype == DTYPES[scalar]


def test_array_arguments():
    v = spy.float3(1, 2, 3)
    assert np.array(v, dtype=np.float64).dtype == np.float64
    assert np.asarray(v, dtype=np.int32).tolist() == [1, 2, 3]
    assert v.__array__(np.float64).dtype == np.float64 and v.__array__(dtype=np.float16, copy=True).dtype == np.float16
    shared = v.__array__(copy=False)
    shared[0] = 9
    assert v.x == 9
    for copied in (v.to_numpy(), v.__array__(copy=True), np.array(v)):
        copied[1] = 7
        assert v.y == 2
    with pytest.raises(ValueError, match="copy"):
        v.__array__(np.float64, copy=False)
    assert float(np.sum(v)) == 14 and np.dot(v, v) == 94


def test_shared_array_outlives_the_value():
    a = np.asarray(spy.double3(1, 2, 3) * 2)
    for _ in range(1000):
        spy.double3(7)
    assert a.tolist() == [2, 4, 6]


def test_buffer_protocol():
    view = memoryview(spy.float2x3(range(6)))
    assert view.shape == (2, 3) and view.strides == (12, 4) and view.format == "f"
    assert view.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert bytes(spy.int2(1, 2)) == np.array([1, 2], np.int32).tobytes()
    assert np.frombuffer(spy.float2x2(), np.float32).tolist() == [1, 0, 0, 1]


def test_dlpack():
    m = spy.float2x3(range(6))
    assert m.__dlpack_device__() == (1, 0)
    assert np.from_dlpack(m).tolist() == [[0, 1, 2], [3, 4, 5]]
    assert np.from_dlpack(spy.float3(1, 2, 3)).tolist() == [1, 2, 3]
    torch = pytest.importorskip("torch")
    t = torch.from_dlpack(m)
    assert t.dtype == torch.float32 and t.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert list(spy.float3(torch.tensor([1.0, 2, 3]))) == [1, 2, 3]
    assert list(spy.float2(torch.tensor(1.5), 2)) == [1.5, 2]


def test_half_conversions_are_exact():
    """All 65536 halves out, and doubles around every rounding boundary in."""
    bits = np.arange(65536, dtype=np.uint16)
    for start in range(0, 65536, 4096):
        for b in bits[start : start + 4096 : 7]:
            h = b.view(np.float16)
            got = spy.math.f16tof32(int(b))
            assert got == float(h) or (math.isnan(got) and np.isnan(h))
    finite = bits[:0x7C00].view(np.float16).astype(np.float64)
    for low, high in zip(finite[:-1:13], finite[1::13], strict=True):
        middle = (low + high) / 2
        for value in (low, middle, np.nextafter(middle, 0), np.nextafter(middle, 1e9)):
            for sign in (1, -1):
                expected = int(np.float16(sign * value).view(np.uint16))
                assert spy.math.asuint16(spy.float16_t(float(sign * value))) == expected
    for value in (65504, 65519.99999, 65520, 1e10, -1e10, float("inf"), 2.0**-25, 2.0**-25 * 1.0000001, 5e-324, -0.0):
        with np.errstate(over="ignore"):
            assert spy.math.asuint16(spy.float16_t(value)) == int(np.float16(value).view(np.uint16)), value
    assert math.isnan(spy.float16_t(float("nan")))


def test_float16_arithmetic():
    rng = np.random.default_rng(6)
    for _ in range(200):
        a, b = rng.uniform(-4, 4, 2).astype(np.float16)
        x, y = spy.float16_t(a), spy.float16_t(float(b))
        for op in ("__add__", "__sub__", "__mul__", "__truediv__"):
            got = getattr(x, op)(y)
            assert type(got) is spy.float16_t and float(got) == float(getattr(a, op)(b))
        assert (x < y) is bool(a < b) and (x == y) is bool(a == b)
    h = spy.float16_t(1.5)
    assert float(h) == 1.5 and int(h) == 1 and bool(h) and not spy.float16_t(0) and not spy.float16_t(-0.0)
    assert h + 1 == 2.5 and 1 + h == 2.5 and h * 2.0 == 3 and 3 / h == 2 and -h == -1.5 and abs(-h) == h
    assert h == 1.5 and h != 1 and h < 2 and h > 1 and hash(h) == hash(1.5) and h // 1 == 1
    assert repr(h) == "1.5" and repr(spy.float16_t(0.1)) == "0.1" and f"{float(h):.2f}" == "1.50"
    assert np.asarray(h).dtype == np.float16 and np.asarray(h).shape == ()
    assert spy.float3(h) == spy.float3(1.5) and spy.float3(1) * h == spy.float3(1.5)
    with pytest.raises(TypeError):
        h + "a"
    with pytest.raises(TypeError):
        len(h)
