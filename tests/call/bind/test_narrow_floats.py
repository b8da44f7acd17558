"""Parameters, results, fields and values of BFloat16 and of the floats of 8 bits, bit for bit as `ml_dtypes` has them."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from typing import Any

import numpy as np
import pytest

import slangpy as spy

ml_dtypes = pytest.importorskip("ml_dtypes")
BF16 = np.dtype(ml_dtypes.bfloat16)
pytestmark = pytest.mark.needs_kernels
SIZES = [0, 1, 31, 33]
SOURCE = """
struct Pair { BFloat16 x; float y; BFloat16 z[3]; };
struct Box
{
    BFloat16 value;
    float get() { return float(value); }
    [mutating] void set(BFloat16 v) { value = v; }
};
float read(BFloat16 x) { return float(x); }
BFloat16 rounded(float x) { return BFloat16(x); }
BFloat16 twice(BFloat16 x) { return BFloat16(2 * float(x)); }
BFloat16 same(BFloat16 x) { return x; }
float added(BFloat16 x, BFloat16 y) { return float(x) + float(y); }
void put(float x, out BFloat16 y) { y = BFloat16(x); }
void tripled(inout BFloat16 y) { y = BFloat16(3 * float(y)); }
float of_pair(Pair p) { return float(p.x) + p.y + float(p.z[2]); }
Pair pair(float x) { return { BFloat16(x), x, { BFloat16(x), BFloat16(2 * x), BFloat16(3 * x) } }; }
float of_three(BFloat16 x[3]) { return float(x[0]) + 10 * float(x[1]) + 100 * float(x[2]); }
BFloat16[2] two(float x) { BFloat16 r[2] = { BFloat16(x), BFloat16(-x) }; return r; }
float total(Tensor<BFloat16, 1> t) { float sum = 0; for (uint i = 0; i < t.shape[0]; i++) sum += float(t[i]); return sum; }
void fill(RWTensor<BFloat16, 2> t, float v) { t[1, 2] = BFloat16(v); }
float of_interface(ITensor<BFloat16, 1> t, int i) { return float(t[i]); }
float of_buffer(StructuredBuffer<BFloat16> b, int i) { return float(b[i]); }
void to_buffer(RWStructuredBuffer<BFloat16> b, int i, float x) { b[i] = BFloat16(x); }
float of_pointer(BFloat16* p, int i) { return float(p[i]); }
T first<T>(Tensor<T, 1> t) { return t[0]; }
T generic<T>(T x) { return x; }
[Differentiable] float weighted(float x, no_diff BFloat16 w) { return x * x * float(w); }
"""
CONVERSIONS = """
typealias Narrow = BFloat16;
static const Narrow HALF = Narrow(0.5);
BFloat16 of_half(half x) { return BFloat16(x); }
BFloat16 of_double(double x) { return BFloat16(x); }
BFloat16 of_int(int x) { return BFloat16(x); }
BFloat16 of_uint(uint x) { return (BFloat16)x; }
BFloat16 of_int64(int64_t x) { return BFloat16(x); }
BFloat16 of_uint64(uint64_t x) { return BFloat16(x); }
BFloat16 of_bool(bool x) { return BFloat16(x); }
half to_half(BFloat16 x) { return half(x); }
double to_double(BFloat16 x) { return (double)x; }
float3 to_float3(BFloat16 x) { return float3(x); }
uint16_t bits(BFloat16 x) { return bit_cast<uint16_t>(x); }
BFloat16 of_bits(uint16_t x) { return bit_cast<BFloat16>(x); }
float constant() { return float(HALF); }
Narrow chosen(bool c, Narrow x, Narrow y) { return c ? x : y; }
float which(float x) { return 1; }
float which(BFloat16 x) { return 2; }
bool is_narrow<T>(T x) { return T is BFloat16; }
uint size() { return sizeof(BFloat16); }
"""


@cache
def load(device: Any, source: str) -> Any:
    return spy.Module.load_from_source(device, f"narrow_floats_{'read' in source}", source)


def skip_without(device: Any) -> None:
    kinds = (spy.DeviceType.cpu, spy.DeviceType.cuda)
    if device.info.type not in kinds and not device.has_feature(spy.Feature.bfloat16):
        pytest.skip("the device lacks the feature bfloat16")


@pytest.fixture
def m(device: Any) -> Any:
    skip_without(device)
    return load(device, SOURCE)


@pytest.fixture
def conversions(device: Any) -> Any:
    skip_without(device)
    return load(device, CONVERSIONS)


def floats(values: Any) -> np.ndarray:
    return np.array(values, np.float32)


def special() -> np.ndarray:
    """Values that round up, down and to even, with infinities, NaN, zeros and denormals."""
    fixed = [1, 1.00390625, 1.01171875, 1.0039063, np.inf, -np.inf, np.nan, 0.0, -0.0, 1e-40, -3e-41, 4.6e-41, 3.4e38]
    rest = np.random.default_rng(3).integers(0, 1 << 32, 5000, np.uint32).view(np.float32)
    return np.concatenate([floats(fixed), rest])


def check(got: Any, expected: np.ndarray) -> None:
    """The same bits, but that one NaN is as good as another."""
    got = np.asarray(got)
    assert got.dtype == expected.dtype == BF16 and got.shape == expected.shape
    both_nan = np.isnan(got.astype(np.float32)) & np.isnan(expected.astype(np.float32))
    np.testing.assert_array_equal(
        np.where(both_nan, 0, got.view(np.uint16)), np.where(both_nan, 0, expected.view(np.uint16))
    )


def narrowed(values: Any) -> np.ndarray:
    with np.errstate(all="ignore"):
        return np.asarray(values).astype(BF16)


def tensor(device: Any, values: Any) -> Any:
    return spy.Tensor.from_numpy(device, narrowed(values))


# --- elements


def test_numbers(m):
    assert m.read(1.00390625) == 1  # rounded to even
    assert m.read(3) == 3 and m.read(True) == 1 and m.read(BF16.type(2.5)) == 2.5
    assert m.rounded(1.1) == 1.1015625
    assert m.read(1e39) == np.inf and np.isnan(m.read(float("nan")))
    with pytest.raises(ValueError, match="Unsupported type str"):
        m.read("x")


def test_special_values(device, m):
    values = special()
    check(m.rounded(values, _result="numpy"), narrowed(values))
    check(m.rounded(values, _result="tensor").to_numpy(), narrowed(values))
    np.testing.assert_array_equal(m.read(tensor(device, values), _result="numpy"), narrowed(values).astype(np.float32))


@pytest.mark.parametrize("size", SIZES)
def test_sizes(device, m, size):
    x = narrowed(np.linspace(-2, 3, size))
    check(m.twice(x, _result="numpy"), narrowed(2 * x.astype(np.float32)))
    check(m.twice(tensor(device, x), _result="tensor").to_numpy(), narrowed(2 * x.astype(np.float32)))
    out = spy.Tensor.empty(device, (size,), "BFloat16")
    m.put(x.astype(np.float32), out)
    check(out.to_numpy(), x)
    m.tripled(out)
    check(out.to_numpy(), narrowed(3 * x.astype(np.float32)))


def test_strided_and_broadcast(device, m):
    x, y = narrowed(np.arange(33 * 31).reshape(33, 31)), narrowed(np.arange(31) / 8)
    expected = x.astype(np.float32) + y.astype(np.float32)
    np.testing.assert_array_equal(m.added(x, y, _result="numpy"), expected)
    np.testing.assert_array_equal(m.added(x.T, y.reshape(31, 1), _result="numpy"), expected.T)
    np.testing.assert_array_equal(m.added(x[::2, ::-1], 1.5, _result="numpy"), x[::2, ::-1].astype(np.float32) + 1.5)
    np.testing.assert_array_equal(
        m.added(tensor(device, x)[1:, ::3], tensor(device, y)[::3], _result="numpy"), expected[1:, ::3]
    )
    np.testing.assert_array_equal(
        m.added.map((0,), (1,))(y, y, _result="numpy"), y.astype(np.float32)[:, None] + y.astype(np.float32)
    )


def test_all_bits_pass(device, m):
    bits = np.arange(1 << 16, dtype=np.uint16)
    got = m.same(bits.view(BF16), _result="numpy")
    check(got, bits.view(BF16))
    if device.info.type == spy.DeviceType.cpu:
        np.testing.assert_array_equal(got.view(np.uint16), bits)  # those of NaN, too


def test_lists_and_references(device, m):
    assert m.read([1, 2.5, 1.00390625], _result="numpy").tolist() == [1, 2.5, 1]
    assert m.read([[1, 2], [3, 4]], _result="numpy").tolist() == [[1, 2], [3, 4]]
    reference = spy.ValueRef(BF16.type(0))
    m.put(1.1, reference)
    assert reference.value == 1.1015625


def test_convert(m):
    values = special()
    with pytest.raises(ValueError, match="float.* does not match slang type BFloat16"):
        m.read(values)
    np.testing.assert_array_equal(m.read.convert("any")(values, _result="numpy"), narrowed(values).astype(np.float32))


def test_in_place_through_convert(device, m):
    y = tensor(device, special())
    expected = narrowed(y.to_numpy().astype(np.float32))
    m.rounded.convert("safe")(y, _result=y)
    check(y.to_numpy(), expected)


# --- structs, arrays, containers


def test_structs(device, m):
    assert m.of_pair({"x": 1.00390625, "y": 2, "z": [1, 2, 3.5]}) == 6.5
    xs = narrowed(np.arange(31) / 4)
    got = m.of_pair({"x": xs, "y": np.float32(2), "z": [1, 2, 3.5]}, _result="numpy")
    np.testing.assert_array_equal(got, xs.astype(np.float32) + 5.5)
    dicts = [{"x": 1.5, "y": 2, "z": [0, 0, 1]}, {"x": 2.5, "y": 2, "z": [0, 0, 2]}]
    assert m.of_pair(dicts, _result="numpy").tolist() == [4.5, 6.5]
    assert m.pair(1.1) == {"x": 1.1015625, "y": np.float32(1.1), "z": [1.1015625, 2.203125, 3.296875]}
    boxes = spy.InstanceList(m.Box, {"value": tensor(device, [0, 0])})
    boxes.set(narrowed([1.1, 2]))
    assert boxes.get(_result="numpy").tolist() == [1.1015625, 2]


def test_struct_results(device, m):
    values = special()[:100]
    got = m.pair(values, _result="numpy")
    assert got.dtype["x"] == BF16 and got.dtype["z"].base == BF16
    check(np.ascontiguousarray(got["x"]), narrowed(values))
    check(np.ascontiguousarray(got["z"][:, 0]), narrowed(values))
    pairs = m.pair(values, _result="tensor")
    expected = got["x"].astype(np.float32) + got["y"] + got["z"][:, 2].astype(np.float32)
    np.testing.assert_array_equal(m.of_pair(pairs, _result="numpy"), expected)


def test_arrays(m):
    assert m.of_three([1, 2, 3]) == 321
    assert m.of_three(narrowed([[1, 2, 3], [4, 5, 6]]), _result="numpy").tolist() == [321, 654]
    assert m.two(1.1) == [1.1015625, -1.1015625]
    check(m.two(floats([1.1, 2]), _result="numpy"), narrowed([[1.1, -1.1], [2, -2]]))


def test_whole_tensors(device, m):
    x = narrowed(np.arange(33) / 8)
    assert m.total(tensor(device, x)) == m.total(x) == x.astype(np.float32).sum()
    assert m.total(tensor(device, x)[::2]) == x[::2].astype(np.float32).sum()
    t = spy.Tensor.zeros(device, (3, 4), "BFloat16")
    m.fill(t, 1.1)
    expected = narrowed(np.zeros((3, 4)))
    expected[1, 2] = 1.1
    check(t.to_numpy(), expected)
    assert m.of_interface(tensor(device, x), np.arange(3, dtype=np.int32), _result="numpy").tolist() == [0, 0.125, 0.25]


def test_generics(device, m):
    x = tensor(device, [1.5, 2.5])
    assert m.first(x) == 1.5
    check(m.generic.map((0,))(x, _result="numpy"), narrowed([1.5, 2.5]))
    check(m["generic<BFloat16>"](x, _result="numpy"), narrowed([1.5, 2.5]))


def test_generics_of_a_module_that_does_not_name_the_type(device):
    skip_without(device)
    own = spy.Module.load_from_source(
        device, "narrow_unnamed", "T first<T>(Tensor<T, 1> t) { return t[0]; } T[2] both<T>(T x) { return { x, x }; }"
    )
    assert own.first(tensor(device, [1.5, 2.5])) == 1.5
    assert own["both<BFloat16>"](1.1) == [1.1015625, 1.1015625]


def test_globals_and_constants(device):
    skip_without(device)
    own = spy.Module.load_from_source(
        device,
        "narrow_globals",
        """
        extern static const BFloat16 FACTOR = BFloat16(2.0);
        static const BFloat16 TABLE[2] = { BFloat16(1.5), BFloat16(2.5) };
        BFloat16 offset;
        float f(int i) { return float(TABLE[i]) * float(FACTOR) + float(offset); }
        """,
    )
    assert own.f.set({"offset": 0.5})(1) == 5.5
    assert own.f.set({"offset": 0.5}).constants({"FACTOR": 1.1})(0) == 1.5 * 1.1015625 + 0.5


def test_buffers_and_pointers(device, m):
    usage = spy.BufferUsage.shader_resource | spy.BufferUsage.unordered_access
    data = narrowed([1, 2, 3.5, 4])
    buffer = device.create_buffer(element_count=4, struct_size=2, data=data.view(np.uint16), usage=usage)
    assert m.of_buffer(buffer, 2) == m.of_pointer(buffer, 2) == 3.5
    m.to_buffer(buffer, np.array([0, 3], np.int32), floats([1.1, 7]))
    check(buffer.to_numpy().view(BF16), narrowed([1.1, 2, 3.5, 7]))


def test_gradients_of_floats_beside(device, m):
    """The type itself has no derivative; what is computed with it has."""
    x = spy.Tensor.from_numpy(device, floats([1, 2, 3])).with_grads(zero=True)
    ones = spy.Tensor.from_numpy(device, np.ones(3, np.float32))
    seeded = spy.Tensor.empty(device, (3,), "float").with_grads(grad_in=ones)
    m.weighted.bwds(x, narrowed([1, 0.5, 0.25]), _result=seeded)
    assert x.grad.to_numpy().tolist() == [2, 2, 1.5]


def test_reflection(device, m):
    type_ = m.layout.find_type_by_name("BFloat16")
    assert (type_.kind, type_.scalar, type_.differentiable, type_.buffer_layout.size) == (
        "scalar",
        "BFloat16",
        False,
        2,
    )
    assert type_.type_reflection.kind == spy.TypeReflection.Kind.scalar
    assert type_.type_reflection.scalar_type == spy.TypeReflection.ScalarType.bfloat16
    assert list(type_.type_reflection.fields) == []
    fields = m.layout.find_type_by_name("Pair").fields
    assert [f.type.full_name for f in fields.values()] == ["BFloat16", "float", "BFloat16[3]"]


# --- conversions that programs write


def test_conversions_of_floats(conversions):
    halves = np.arange(1 << 16, dtype=np.uint16)
    check(
        conversions.of_half(halves.view(np.float16), _result="numpy"),
        narrowed(halves.view(np.float16).astype(np.float32)),
    )
    with np.errstate(all="ignore"):
        expected = halves.view(BF16).astype(np.float32).astype(np.float16)
    np.testing.assert_array_equal(conversions.to_half(halves.view(BF16), _result="numpy"), expected)
    np.testing.assert_array_equal(
        conversions.to_double(halves.view(BF16), _result="numpy"), halves.view(BF16).astype(np.float64)
    )
    assert conversions.to_float3(narrowed([1.5]), _result="numpy").tolist() == [[1.5] * 3]


def test_doubles_round_once(conversions):
    """A double just above a tie of BFloat16 is, as a float, the tie: rounded twice, it goes down."""
    up, down = 1.00390625 * (1 + 1e-12), 1.01171875 * (1 - 1e-12)
    values = np.array([up, -up, down, -down, 1.00390625, 1e300, -1e300, 1e-300, 3.396e38, np.inf, np.nan, 4.6e-41])
    expected = [
        1.0078125,
        -1.0078125,
        1.0078125,
        -1.0078125,
        1,
        np.inf,
        -np.inf,
        0,
        3.3895313892515355e38,
        np.inf,
        np.nan,
        9.183549615799121e-41,
    ]
    got = conversions.of_double(values, _result="numpy").astype(np.float64)
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize(
    ("name", "dtype"), [("of_int", "int32"), ("of_uint", "uint32"), ("of_int64", "int64"), ("of_uint64", "uint64")]
)
def test_integers_round_once(device, conversions, name, dtype):
    if name != "of_int" and device.info.type != spy.DeviceType.cpu:
        pytest.skip("Slang 2026.12 converts these by way of float or int")
    info = np.iinfo(dtype)
    values = [0, 1, 257, 258, 259, 65535, int(info.max), int(info.min)]
    for shift in range(1, info.bits - 9):  # ties, and what lies beside them
        values += [(257 << shift) + step for step in (-1, 0, 1)] + [(259 << shift) + step for step in (-1, 0, 1)]
    values += [-v for v in values if info.min < 0 and v > info.min]
    got = getattr(conversions, name)(np.array(values, dtype), _result="numpy").astype(np.float64)
    assert [int(v) for v in got] == [to_eight_bits(v) for v in values]


def to_eight_bits(value: int) -> int:
    """An integer with the eight leading bits that a BFloat16 has, rounded to nearest even."""
    drop = max(abs(value).bit_length() - 8, 0)
    size, rest = abs(value) >> drop, abs(value) & ((1 << drop) - 1)
    up = drop and (2 * rest > 1 << drop or (2 * rest == 1 << drop and size % 2))
    return ((size + bool(up)) << drop) * (-1 if value < 0 else 1)


def test_other_forms(conversions):
    bits = np.arange(1 << 16, dtype=np.uint16)
    numbers = bits[~np.isnan(bits.view(BF16).astype(np.float32))]
    np.testing.assert_array_equal(conversions.bits(numbers.view(BF16), _result="numpy"), numbers)
    check(conversions.of_bits(bits, _result="numpy"), bits.view(BF16))
    assert conversions.of_bool(True) == 1 and conversions.constant() == 0.5
    assert conversions.chosen(True, 1.5, 2.5) == 1.5 and conversions.chosen(False, 1.5, 2.5) == 2.5
    assert conversions.which(narrowed([1.0]), _result="numpy").tolist() == [2]
    assert conversions["is_narrow<BFloat16>"](1.5) and not conversions["is_narrow<float>"](1.5)
    assert conversions.size() == 2


# --- users' own types of the name


def test_own_types_of_the_name(device):
    struct = spy.Module.load_from_source(
        device,
        "narrow_own",
        """
        struct BFloat16 { float v; float2 w; };
        float f(BFloat16 x) { return x.v + x.w.y; }
        BFloat16 g(float x) { return { x, float2(x, 2 * x) }; }
        """,
    )
    assert struct.f({"v": 1, "w": [2, 3]}) == 4
    assert struct.g(floats([1, 2]), _result="numpy")["w"].tolist() == [[1, 2], [2, 4]]
    for number, declared in enumerate(("typedef uint16_t BFloat16;", "typealias BFloat16 = half;")):
        named = spy.Module.load_from_source(
            device, f"narrow_named_{number}", declared + " float f(BFloat16 x) { return float(x) + 1; }"
        )
        assert named.f(3) == 4


def test_sources_without_the_name_stay(device):
    """Comments and other words with the name in them import nothing."""
    plain = spy.Module.load_from_source(
        device, "narrow_plain", "// BFloat16\nfloat f(float MyBFloat16x) { return MyBFloat16x; }"
    )
    assert plain.f(2.0) == 2
    assert not any("slangpy_narrow" in str(path) for path in plain.device_module.dependencies)


# --- floats of 8 bits, and what stays absent

EIGHT_BITS = """
float of_e4m3(FloatE4M3 x) { return float(x); }
float of_e5m2(FloatE5M2 x) { return float(x); }
FloatE4M3 to_e4m3(float x) { return FloatE4M3(x); }
FloatE5M2 to_e5m2(float x) { return FloatE5M2(x); }
FloatE5M2 double_to_e5m2(double x) { return FloatE5M2(x); }
FloatE4M3 across(FloatE5M2 x) { return FloatE4M3(BFloat16(x)); }
"""


@pytest.fixture
def eight(device: Any) -> Any:
    if device.info.type not in (spy.DeviceType.cpu, spy.DeviceType.cuda):
        pytest.skip("floats of 8 bits: cpu and cuda")
    return spy.Module.load_from_source(device, "narrow_eight_bits", EIGHT_BITS)


def raw(device: Any, name: str, bits: Any) -> Any:
    t = spy.Tensor.empty(device, np.shape(bits), name)
    t.copy_from_numpy(np.asarray(bits, np.uint8))
    return t


@pytest.mark.parametrize(("name", "dtype"), [("E4M3", "float8_e4m3fn"), ("E5M2", "float8_e5m2")])
def test_eight_bits_are_read(device, eight, name, dtype):
    bits = np.arange(256, dtype=np.uint8)
    got = getattr(eight, f"of_{name.lower()}")(raw(device, f"Float{name}", bits), _result="numpy")
    np.testing.assert_array_equal(got, bits.view(getattr(ml_dtypes, dtype)).astype(np.float32))


@pytest.mark.parametrize(("name", "dtype", "largest"), [("e4m3", "float8_e4m3fn", 448), ("e5m2", "float8_e5m2", 57344)])
def test_eight_bits_are_rounded(device, eight, name, dtype, largest):
    """As `ml_dtypes` rounds, but that what is too large becomes the largest, as CUDA has it."""
    rng = np.random.default_rng(9)
    values = (rng.standard_normal(20000) * np.exp(rng.uniform(-16, 12, 20000))).astype(np.float32)
    values = np.concatenate(
        [special(), values, floats([0.0009765625, 0.0029296875, 464, 465, 61440, 2e-6, 7.6293945e-06])]
    )
    got = getattr(eight, f"to_{name}")(values, _result="tensor").to_numpy().view(getattr(ml_dtypes, dtype))
    expected = np.clip(values, -largest, largest).astype(getattr(ml_dtypes, dtype))
    np.testing.assert_array_equal(got.astype(np.float32), expected.astype(np.float32))


def test_eight_bits_from_each_other(device, eight):
    tie = 1.125 * (1 + 1e-12)  # a float is the tie
    got = eight.double_to_e5m2(np.array([tie, 1.125]), _result="tensor").to_numpy().view(ml_dtypes.float8_e5m2)
    assert got.astype(float).tolist() == [1.25, 1]
    bits = np.arange(0x40, dtype=np.uint8)
    got = eight.across(raw(device, "FloatE5M2", bits), _result="tensor").to_numpy().view(ml_dtypes.float8_e4m3fn)
    expected = bits.view(ml_dtypes.float8_e5m2).astype(ml_dtypes.float8_e4m3fn)
    np.testing.assert_array_equal(got.astype(np.float32), expected.astype(np.float32))


# --- other processes, torch

CHILD = """
import sys
import numpy as np
import slangpy as spy
device = spy.Device(type=spy.DeviceType.cpu)
m = spy.Module.load_from_source(device, "narrow_again", '''
struct Pair { BFloat16 x; float y; };
Pair pair(float x) { return { BFloat16(x), x }; }
BFloat16 rounded(float x) { return BFloat16(x); }
''')
x = np.float32([1.1, 2])
print(m.rounded(x, _result="numpy").dtype, m.pair(x, _result="numpy").dtype["x"], m.rounded(x, _result="tensor").dtype.kind)
print("compiler" if "slangpy._slang" in sys.modules else "none")
"""


def test_results_of_later_processes(tmp_path, monkeypatch):
    """Plans on disk know the dtype that NumPy has no text for, without a compiler."""
    monkeypatch.setenv("SLANGPY_CACHE_DIR", str(tmp_path))
    said = []
    for _ in range(2):
        done = subprocess.run([sys.executable, "-c", CHILD], capture_output=True, text=True, check=True)
        said.append(done.stdout.split())
    assert said == [["bfloat16", "bfloat16", "scalar", "compiler"], ["bfloat16", "bfloat16", "scalar", "none"]]


def test_torch(device, m):
    torch = pytest.importorskip("torch")
    if device.info.type not in (spy.DeviceType.cpu, spy.DeviceType.cuda):
        pytest.skip("torch tensors without copies: cpu and cuda")
    where = "cuda" if device.info.type == spy.DeviceType.cuda else "cpu"
    x = torch.linspace(-2, 3, 31, device=where).to(torch.bfloat16)
    assert torch.equal(m.twice(x), 2 * x) and m.twice(x).dtype == torch.bfloat16
    y = torch.zeros(4, 31, dtype=torch.bfloat16, device=where)
    m.put(x.float(), y[1])
    m.put(x.float(), y.T[:, 2])
    assert torch.equal(y[1], x) and torch.equal(y[2], x) and not y[0].any()
    assert torch.equal(m.rounded(x.float() * 1.001), (x.float() * 1.001).to(torch.bfloat16))
    assert m.total(x).item() == pytest.approx(x.float().sum().item(), rel=1e-6)
    assert m.twice(torch.tensor(1.5, dtype=torch.bfloat16, device=where)).item() == 3
