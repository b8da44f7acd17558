"""Components, indices, slices, text, hash, copies."""

import copy
import itertools
import pickle

import numpy as np
import pytest

import slangpy as spy

VALUES = [
    spy.float3(0.1, -2.5, 1e20),
    spy.double4(0.1, 2, 3, -0.0),
    spy.int2(-5, 2**31 - 1),
    spy.uint64_t2(2**64 - 1, 0),
    spy.bool3(True, False, True),
    spy.half3(0.1, 2, 65504),
    spy.float1(3),
    spy.float2x3(range(6)),
    spy.bool4x4([i % 3 == 0 for i in range(16)]),
    spy.float16_t2x2(0.1, 0.2, 0.3, 0.4),
    spy.quatf(1, 2, 3, 4),
    spy.float16_t(0.1),
]


def test_components():
    v = spy.float4(1, 2, 3, 4)
    assert (v.x, v.y, v.z, v.w) == (1, 2, 3, 4) == (v.r, v.g, v.b, v.a)
    v.x, v.w, v.g = 10, 40, 20
    assert list(v) == [10, 20, 3, 40]
    v.xz = spy.float2(7, 8)
    assert list(v) == [7, 20, 8, 40]
    with pytest.raises(TypeError, match=r"float4\.x: expected a number"):
        v.x = "a"
    with pytest.raises(TypeError):
        v.xy = (1, 2, 3)
    with pytest.raises(AttributeError, match="twice"):
        v.xx = (1, 2)
    with pytest.raises(AttributeError):
        del v.x
    with pytest.raises(AttributeError):
        v.foo = 1
    assert list(v) == [7, 20, 8, 40]
    i = spy.int2(1, 2)
    with pytest.raises(TypeError):
        i.x = 1.5
    with pytest.raises(OverflowError, match=r"int2\.y"):
        i.y = 2**31
    assert list(i) == [1, 2]


def test_all_swizzles():
    numbers = {n: [10 * (i + 1) for i in range(n)] for n in range(1, 5)}
    for n, letters in itertools.product(range(1, 5), ("xyzw", "rgba")):
        v = getattr(spy, f"int{n}")(numbers[n])
        for size in range(1, 5):
            for names in itertools.product(range(4), repeat=size):
                swizzle = "".join(letters[i] for i in names)
                if max(names) >= n:
                    assert not hasattr(v, swizzle)
                    continue
                got = getattr(v, swizzle)
                expected = [numbers[n][i] for i in names]
                if size == 1:
                    assert type(got) is int and got == expected[0]
                else:
                    assert type(got) is getattr(spy, f"int{size}") and list(got) == expected
    assert not hasattr(spy.int4(), "xg") and not hasattr(spy.int4(), "xyzwx")
    assert spy.quatf(1, 2, 3, 4).xyz == spy.float3(1, 2, 3)


def test_vector_indices():
    v = spy.float3(1, 2, 3)
    assert [v[i] for i in range(-3, 3)] == [1, 2, 3, 1, 2, 3]
    assert v[np.int64(1)] == 2
    for i in (3, -4, 10**30):
        with pytest.raises(IndexError):
            v[i]
        with pytest.raises(IndexError):
            v[i] = 1
    with pytest.raises(TypeError):
        v["x"]
    v[-1] = 9
    assert list(v) == [1, 2, 9]
    with pytest.raises(TypeError):
        del v[0]
    assert 2 in v and 5 not in v


def test_vector_slices():
    numbers = [1, 2, 3, 4]
    v = spy.int4(numbers)
    ends = [None, -5, -2, 0, 1, 3, 9]
    for start, stop, step in itertools.product(ends, ends, [None, 1, 2, -1, -3]):
        expected = numbers[start:stop:step]
        if expected:
            got = v[start:stop:step]
            assert type(got) is getattr(spy, f"int{len(expected)}") and list(got) == expected
        else:
            with pytest.raises(IndexError):
                v[start:stop:step]
    v[1:3] = (7, 8)
    assert list(v) == [1, 7, 8, 4]
    v[::-2] = spy.int2(5, 6)
    assert list(v) == [1, 6, 8, 5]
    with pytest.raises(TypeError):
        v[:2] = 1


def test_matrix_indices():
    a = np.arange(12.0).reshape(3, 4)
    m = spy.float3x4(a)
    for i in range(-3, 3):
        assert type(m[i]) is spy.float4 and list(m[i]) == list(a[i]) == list(m.get_row(i))
        for j in range(-4, 4):
            assert m[i, j] == a[i, j]
    for j in range(-4, 4):
        assert type(m.get_col(j)) is spy.float3 and list(m.get_col(j)) == list(a[:, j])
    np.testing.assert_array_equal(np.asarray(m[1:]), a[1:])
    np.testing.assert_array_equal(np.asarray(m[::2, 1:3]), a[::2, 1:3])
    assert list(m[1:, 2]) == list(a[1:, 2]) and list(m[1, 1:]) == list(a[1, 1:])
    for bad in (3, -4, (0, 4), (3, 0), (0, 0, 0), ()):
        with pytest.raises(IndexError):
            m[bad]
    with pytest.raises(IndexError):
        m.get_col(4)
    with pytest.raises(IndexError, match="2 to 4"):
        m[0:1]
    assert [list(row) for row in m] == a.tolist()


def test_matrix_writes():
    a = np.arange(6.0).reshape(2, 3)
    m = spy.float2x3(a)
    m[0] = (7, 8, 9)
    a[0] = (7, 8, 9)
    m[1, 2] = -1
    a[1, 2] = -1
    m.set_row(-1, spy.float3(1, 2, 3))
    a[-1] = (1, 2, 3)
    m.set_col(1, [5, 6])
    a[:, 1] = (5, 6)
    m[:, 0] = (3, 4)
    a[:, 0] = (3, 4)
    np.testing.assert_array_equal(m.to_numpy(), a)
    for bad in (lambda: m.set_row(0, (1, 2)), lambda: m.set_col(0, (1, 2, 3)), lambda: m.set_row(0, 1.0)):
        with pytest.raises(TypeError):
            bad()
    with pytest.raises(IndexError):
        m.set_row(2, (1, 2, 3))
    np.testing.assert_array_equal(m.to_numpy(), a)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (spy.float3(1, 2, 3), "{1, 2, 3}"),
        (spy.float3(0.1, 1e10, -0.5), "{0.1, 1e+10, -0.5}"),
        (spy.float2(1 / 3, 1e-5), "{0.33333334, 1e-05}"),
        (spy.float2(123456, 0.0001), "{123456, 0.0001}"),
        (spy.float3(float("nan"), float("inf"), float("-inf")), "{nan, inf, -inf}"),
        (spy.float1(-0.0), "{-0}"),
        (spy.double2(1 / 3, 1e15), "{0.3333333333333333, 1000000000000000}"),
        (spy.half3(0.1, 65504, 1 / 3), "{0.1, 65504, 0.3333}"),
        (spy.bool2(True, False), "{true, false}"),
        (spy.int2(-7, 7), "{-7, 7}"),
        (spy.uint64_t1(2**64 - 1), "{18446744073709551615}"),
        (spy.float2x3(range(6)), "{{0, 1, 2}, {3, 4, 5}}"),
        (spy.bool2x2(), "{{true, false}, {false, true}}"),
        (spy.quatf(), "{0, 0, 0, 1}"),
        (spy.float16_t(1.5), "1.5"),
        (spy.float16_t(2), "2.0"),
        (spy.float16_t(float("inf")), "inf"),
    ],
)
def test_repr(value, text):
    assert repr(value) == str(value) == text


def test_repr_digits_read_back():
    rng = np.random.default_rng(2)
    bits = rng.integers(0, 2**32, size=2000, dtype=np.uint32)
    for x in bits.view(np.float32)[np.isfinite(bits.view(np.float32))]:
        digits = repr(spy.float1(float(x)))[1:-1]
        assert np.float32(float(digits)) == x
        assert len(digits.split("e")[0].strip("-0.").replace(".", "")) <= len(
            np.format_float_scientific(x, trim="-").split("e")[0].strip("-").replace(".", "")
        )
    for x in np.arange(0x7C00, dtype=np.uint16).view(np.float16):
        assert np.float16(float(repr(spy.half1(float(x)))[1:-1])) == x


def test_hash_follows_equality():
    assert hash(spy.float3(1, 2, 3)) == hash(spy.int3(1, 2, 3)) == hash((1, 2, 3))
    assert hash(spy.float2x2(1, 2, 3, 4)) == hash(((1, 2), (3, 4)))
    assert len({spy.float3(1), spy.float3(1), spy.float3(2)}) == 2
    assert {spy.int2(1, 2): "a"}[spy.int2(1, 2)] == "a"
    assert hash(spy.float16_t(0.5)) == hash(0.5)


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_copies(value):
    for made in [
        copy.copy(value),
        copy.deepcopy(value),
        type(value)(value),
        *(pickle.loads(pickle.dumps(value, protocol)) for protocol in range(pickle.HIGHEST_PROTOCOL + 1)),
    ]:
        assert type(made) is type(value) and made == value and made is not value
        assert bytes(memoryview(made)) == bytes(memoryview(value))


def test_value_semantics():
    a = spy.float3(1, 2, 3)
    b = spy.float3(a)
    b.x = 9
    row = spy.float2x2().get_row(0)
    row.x = 5
    assert a.x == 1 and row.x == 5
    m = spy.float2x2()
    m[0].x = 5
    assert m[0, 0] == 1


def test_pickle_of_subclass(monkeypatch):
    import sys

    module = sys.modules[__name__]
    point = type("Point", (spy.float3,), {"__module__": __name__, "__qualname__": "Point"})
    monkeypatch.setattr(module, "Point", point, raising=False)
    p = point(1, 2, 3)
    p.name = "p"
    q = pickle.loads(pickle.dumps(p))
    assert type(q) is point and q.name == "p" and q == p
