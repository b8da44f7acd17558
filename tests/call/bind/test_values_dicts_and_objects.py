"""Dicts, arrays of others, pointers, references, objects, dtypes, Shape."""

from __future__ import annotations

import array as stdlib_array
import ctypes
import enum
from typing import Any

import numpy as np
import pytest
from calls_support import array, plain, source, tensor

import slangpy as spy
from slangpy.core.enums import PrimType
from slangpy.errors import BoundVariableException, KernelGenException, ResolveException

pytestmark = [
    pytest.mark.needs_kernels,
    pytest.mark.elsewhere(
        "test_fields_each_by_its_own_rules", "test_pointers", "test_references", "test_instance_lists_are_filled",
        "test_arrays_that_another_argument_resizes",
    ),
]  # fmt: skip

SOURCE = """
import slangpy;
float add(float a, float b) { return a + b; }
int iadd(int a, int b) { return a + b; }
bool both(bool a, bool b) { return a && b; }
uint64_t big(uint64_t x) { return x; }
float sum4v(float4 v) { return v.x + 10 * v.y + 100 * v.z + 1000 * v.w; }
float3 widen(float3 v) { return v; }
struct In { float a; float b; }
struct P { float2 pos; float radius; int2 id; In inner; }
float read(P p) { return p.pos.x + 10 * p.pos.y + 100 * p.radius + 1000 * p.id.x + 10000 * p.id.y + p.inner.a + p.inner.b; }
void fill(int i, out P p) { p.pos = float2(i, i + 1); p.radius = 5; p.id = int2(7, 8); p.inner.a = 9; p.inner.b = 10; }
struct G<T> { T v; }
int generic(G<int> g) { return g.v; }
T untyped<T>(T x) { return x; }
int size_of<T>(T x) { return sizeof(T); }
enum Level { low, high = 7 }
int level(Level l) { return int(l); }
float at(float* p, int i) { return p[i]; }
void poke(float* p, int i, float x) { p[i] = x; }
void add_to(inout float x, float y) { x += y; }
struct Hit { float t; float3 n; bool on; }
void trace(float x, out Hit h) { h.t = x; h.n = float3(x); h.on = true; }
void fill_array(float x, out float a[3]) { a[0] = x; a[1] = x + 1; a[2] = x + 2; }
[Differentiable] float poly(float a, float x) { return a * x * x; }
struct Dot { float2 p; float2 v; __init(float2 p, float2 v) { this.p = p; this.v = v; }
             [mutating] void step(float dt) { p += v * dt; }   float speed() { return length(v); } }
"""


@pytest.fixture
def m(device: Any) -> Any:
    return source(device, "spec_misc", SOURCE)


class Level(enum.Enum):
    low = 0
    high = 7


class IntLevel(enum.IntEnum):
    high = 7


class Identifier(int):
    """A subclass is what its base is."""


# --- 2


def test_numbers_and_their_relatives(m: Any) -> None:
    assert m.iadd(Identifier(3), IntLevel.high) == 10 and m.iadd(Level.high, np.uint8(3)) == 10
    assert m.iadd(True, np.bool_(True)) == 2 and m.iadd(2.0, 3) == 5
    assert m.both(2, 1) is True and m.both(0, 1) is False and m.both(np.bool_(True), 1) is True
    assert m.add(2**40, 0.5) == np.float32(2.0**40) and m.big(2**64 - 1) == 2**64 - 1
    assert m.level(Level.high) == 7 and m.level(IntLevel.high) == 7 and m.level(7) == 7
    assert m.add(spy.float16_t(1.5), np.float16(0.25)) == 1.75
    assert m.add(1e300, 0.0) == float("inf")
    assert plain(m.widen(2)) == [2, 2, 2]


@pytest.mark.parametrize(
    ("value", "bytes_"), [(True, None), (3, 4), (2**40, 8), (2**63, 8), (1.5, 4), (np.float16(1), 2), (np.int8(1), 1)]
)
def test_default_types_of_generics(m: Any, value: Any, bytes_: int | None) -> None:
    if bytes_ is not None:
        assert m.size_of(value) == bytes_
    assert m.untyped(value) == value


@pytest.mark.parametrize(
    ("name", "arguments", "error", "text"),
    [
        ("iadd", (1.5, 1), ValueError, "1.5"), ("iadd", (2**40, 1), OverflowError, str(2**40)), ("big", (-1,), OverflowError, "-1"),
        ("both", (1.0, True), ResolveException, "float"), ("iadd", (2**70, 1), OverflowError, "a"),
        ("iadd", ("1", 1), BoundVariableException, "Unsupported type str"), ("iadd", (1j, 1), BoundVariableException, "complex"),
        ("iadd", (None, 1), BoundVariableException, "None"), ("iadd", ({1, 2}, 1), BoundVariableException, "Unsupported type set"),
        ("iadd", (object(), 1), BoundVariableException, "Unsupported type object"),
        ("iadd", (np.array(["a"]), 1), BoundVariableException, "Unsupported type ndarray"),
        ("iadd", (np.zeros(2, [("a", "i4")]), 1), BoundVariableException, "Structured numpy dtype"),
        ("iadd", (np.zeros(2, complex), 1), BoundVariableException, "complex128"),
        ("iadd", (b"12", 1), BoundVariableException, "Unsupported type bytes"),
        ("iadd", (spy.Tensor, 1), BoundVariableException, "Unsupported type"),
        ("iadd", (np.ndarray, 1), BoundVariableException, "Unsupported type"),
        ("at", (np.zeros(3, np.float32), 0), ResolveException, "pass a Tensor, a Buffer or a device address"),
    ],
)  # fmt: skip
def test_numbers_that_do_not_fit(m: Any, name: str, arguments: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error) as raised:
        m[name](*arguments)
    assert text in str(raised.value) and f"spec_misc::{name}" in str(raised.value)


# --- 5


def test_fields_each_by_its_own_rules(m: Any, device: Any) -> None:
    value = {"pos": tensor(device, 4, 2), "radius": 0.5, "id": spy.int2(1, 2)}
    pos = array(4, 2)
    expected = pos[:, 0] + 10 * pos[:, 1] + 50 + 1000 + 20000
    np.testing.assert_allclose(m.read(value, _result="numpy"), expected)
    grid = {"id": spy.grid((2, 3)), "inner": {"a": tensor(device, 3)}}
    found = m.read(grid, _result="numpy")
    y, x = np.indices((2, 3))
    np.testing.assert_allclose(found, 1000 * x + 10000 * y + np.arange(3))


def test_missing_fields_are_zero_and_dropped(m: Any, device: Any) -> None:
    assert m.read({}) == 0 and m.read({"inner": {}}) == 0 and m.read({"radius": 1}) == 100
    out = {"radius": spy.floatRef(), "inner": {"b": spy.Tensor.zeros(device, (3,), dtype="float")}, "pos": 4.0}
    m.fill([1, 2, 3], out)
    assert out["radius"].value == 5 and plain(out["inner"]["b"]) == [10, 10, 10] and out["pos"] == 4.0


def test_types_of_dicts(m: Any) -> None:
    assert m.generic({"_type": "G<int>", "v": 4}) == 4 and m.generic({"_type": m["G<int>"], "v": 4}) == 4
    assert m.generic({"v": 4}) == 4
    with pytest.raises(ResolveException, match=r"_type is G<float>"):
        m.generic({"_type": "G<float>", "v": 4})
    with pytest.raises(BoundVariableException, match=r"(?s)Could not find type 'Inn'.*did you mean In"):
        m.read({"inner": {"_type": "Inn"}})
    with pytest.raises(
        KernelGenException, match=r"has no field 'w'; its fields are \['pos', 'radius', 'id', 'inner'\]"
    ):
        m.read({"w": 1})


@pytest.mark.parametrize("names", ["xyzw", "rgba"])
def test_vectors_from_dicts(m: Any, device: Any, names: str) -> None:
    x, y, z, w = names
    assert m.sum4v({x: 1, y: 2, z: 3, w: 4.0}) == 4321
    assert plain(m.sum4v({x: 1, y: tensor(device, 3), z: 0, w: 1})) == [1001, 1011, 1021]
    assert m.sum4v({x: 1}) == 1
    assert plain(m.sum4v({x: 1.0, y: spy.rand_float(0, 1, 1), z: tensor(device, 3), w: 1.0})).__len__() == 3


# --- 6


class WithInterface:
    def __init__(self, data: np.ndarray) -> None:
        self.data = data

    @property
    def __array_interface__(self) -> Any:
        return self.data.__array_interface__


class OnTheObject:
    """As programs hand memory to NumPy: the attribute is this object's, not its class's."""

    def __init__(self, data: np.ndarray) -> None:
        self.data, self.__array_interface__ = data, data.__array_interface__


class WithDlpack:
    def __init__(self, data: np.ndarray) -> None:
        self.data = data

    def __dlpack__(self, **kwargs: Any) -> Any:
        return self.data.__dlpack__(**kwargs)

    def __dlpack_device__(self) -> Any:
        return self.data.__dlpack_device__()


@pytest.mark.parametrize(
    "make",
    [
        stdlib_array.array, None, WithInterface, OnTheObject, WithDlpack, memoryview,
        lambda d: (ctypes.c_float * 4)(*d),
    ],
)  # fmt: skip
def test_arrays_of_others(m: Any, make: Any) -> None:
    data = array(4)
    value = (
        stdlib_array.array("f", data.tolist()) if make is stdlib_array.array else data if make is None else make(data)
    )
    assert plain(m.add(value, 1)) == [1, 2, 3, 4]


def test_any_layout_and_byte_order(m: Any) -> None:
    base = array(4, 6)
    for a in (
        base.T,
        base[::2, ::-1],
        np.broadcast_to(base[0], (3, 6)),
        base.astype(">f4"),
        np.asfortranarray(base),
        base[1:1],
    ):
        np.testing.assert_array_equal(m.add(a, 1, _result="numpy"), np.asarray(a, np.float32) + 1)
    frozen = base.copy()
    frozen.flags.writeable = False
    np.testing.assert_array_equal(m.add(frozen, 1, _result="numpy"), base + 1)
    packed = np.zeros(5, dtype=[("a", "i1"), ("x", "f4")])
    packed["x"] = np.arange(5)
    np.testing.assert_array_equal(m.add(packed["x"], 1, _result="numpy"), np.arange(5) + 1)  # unaligned


def test_bool_and_int8_arrays_are_told_apart(m: Any) -> None:
    assert plain(m.both(np.array([True, False]), True)) == [True, False]
    with pytest.raises(ResolveException):
        m.both(np.array([1, 0], np.int8), True)


# --- 9: pointers


def test_pointers(m: Any, device: Any) -> None:
    t = tensor(device, 6)
    for given in (t, t.storage, t.storage.device_address, t[2:]):
        shift = 2 if given is not t and isinstance(given, spy.Tensor) else 0
        assert m.at(given, 1) == 1 + shift
    addresses = np.array([t.storage.device_address + 4 * i for i in range(3)], np.uint64)
    assert plain(m.at(addresses, 1)) == [1, 2, 3]
    m.poke(t, [0, 5], [10.0, 20.0])
    assert plain(t) == [10, 1, 2, 3, 4, 20]
    with pytest.raises(ValueError, match="contiguous"):
        m.at(t[::2], 1)
    with pytest.raises(ResolveException):
        m.at(tensor(device, 3, dtype=np.int32), 1)
    with pytest.raises(ResolveException, match="use a Tensor"):
        m.add(t.storage, 1)


# --- 10, 11


def test_references(m: Any) -> None:
    total = spy.floatRef(5.0)
    m.add_to(total, 2.0)
    assert total.value == 7.0
    count = spy.intRef(3)
    assert m.iadd(count, 1) == 4
    for hit in (spy.ValueRef({"_type": "Hit"}), spy.ValueRef({}), spy.ValueRef(None)):
        m.trace(2.0, hit)
        assert plain(hit.value) == {"t": 2.0, "n": [2, 2, 2], "on": True}
    for values in (spy.ValueRef([]), spy.ValueRef([0.0, 0.0, 0.0]), spy.ValueRef(None)):
        m.fill_array(1.0, values)
        assert values.value == [1, 2, 3]
    spread = spy.floatRef(1.0)
    m.add_to(spread, [1.0, 1.0])
    assert spread.value == 2.0
    assert "7.0" in repr(total)


def test_pairs() -> None:
    pair = spy.diffPair()
    assert pair.primal == 0.0 and pair.grad == 0.0 and pair.needs_grad
    assert spy.diffPair(spy.float3(1)).grad == spy.float3(0)
    assert spy.floatDiffPair().grad == 1.0 and spy.floatDiffPair(2.0).primal == 2.0
    pair.set(PrimType.primal, 3.0)
    pair.set(PrimType.derivative, 4.0)
    assert (pair.get(PrimType.primal), pair.get(PrimType.derivative)) == (3.0, 4.0)
    assert "3.0" in repr(pair) and "4.0" in repr(pair)


def test_pairs_in_forward_calls(m: Any) -> None:
    pair = spy.diffPair(3.0, 7.0)
    assert m.poly(2.0, pair) == 18.0 and pair.grad == 7.0
    m.add_to(pair, 1.0)
    assert pair.primal == 4.0


# --- 13


def test_instances_of_the_worked_case(m: Any, device: Any) -> None:
    dots = spy.InstanceTensor(m.Dot, shape=(3,))
    dots.construct(p=spy.float2(0), v=spy.float2(3, 4))
    dots.step(0.5)
    assert plain(dots.speed()) == [5, 5, 5]
    assert plain(dots.tensor.cursor()[2].read()) == {"p": [1.5, 2], "v": [3, 4]}
    assert tuple(dots.shape) == (3,) and dots.to_numpy().shape[0] == 3
    soa = spy.InstanceList(m.Dot, {"p": tensor(device, 3, 2), "v": spy.float2(1, 0)})
    soa.step(1.0)
    assert plain(soa.p) == [[1, 1], [3, 3], [5, 5]] and soa.v == spy.float2(1, 0)
    soa.v = spy.float2(0, 2)
    assert plain(soa.speed()) == [2, 2, 2]  # `this` has the dimension of its field p
    with pytest.raises(AttributeError, match="nope"):
        soa.nope
    soa.note = "mine"
    assert soa.note == "mine" and "note" not in soa.get_this()
    with pytest.raises(ValueError, match="has no field 'q'"):
        spy.InstanceList(m.Dot, {"q": 1})


def test_instance_lists_are_filled(m: Any, device: Any) -> None:
    dots = spy.InstanceList(m.Dot)
    assert dots.get_this() == {"_type": "Dot"}
    dots.p, dots.v = spy.Tensor.zeros(device, (2,), dtype="float2"), spy.Tensor.zeros(device, (2,), dtype="float2")
    dots.construct(spy.float2(1, 2), spy.float2(3, 4))
    assert plain(dots.p) == [[1, 2], [1, 2]] and plain(dots.speed()) == [5, 5]


def test_objects_with_get_this(m: Any, device: Any) -> None:
    class Asked:
        def __init__(self, value: Any) -> None:
            self.value, self.gets, self.updates = value, 0, []

        def get_this(self) -> Any:
            self.gets += 1
            return self.value

        def update_this(self, value: Any) -> None:
            self.updates.append(value)

    asked = Asked({"radius": Asked(2.0)})
    assert m.read(asked) == 200 and asked.gets == 1 and asked.updates == [asked.value]
    written = Asked(spy.floatRef(1.0))
    m.add_to(written, 2.0)
    assert written.value.value == 3.0 and written.updates[0] is written.value and written.gets == 1
    recorded = Asked(tensor(device, 2))
    encoder = device.create_command_encoder()
    m.add.append_to(encoder, recorded, 1.0, _result=tensor(device, 2))
    assert recorded.updates == []


# --- 19


def test_shape() -> None:
    shape = spy.Shape(2, 3)
    assert all(spy.Shape(given) == shape for given in ((2, 3), [2, 3], shape))
    assert (
        shape == (2, 3)
        and shape == [2, 3]
        and tuple(shape) == (2, 3)
        and len(shape) == 2
        and shape[0] == 2
        and shape[-1] == 3
    )
    assert shape.as_tuple() == (2, 3) and shape.as_list() == [2, 3] and repr(shape) == "[2, 3]"
    assert shape.valid and shape.concrete and hash(shape) == hash(spy.Shape(2, 3))
    assert shape + spy.Shape(4) == (2, 3, 4) and tuple(shape.calc_contiguous_strides()) == (3, 1)
    assert len(spy.Shape()) == 0 and spy.Shape().valid and not spy.Shape(2, -1).concrete
    invalid = spy.Shape(None)
    assert not invalid.valid and repr(invalid) == "[invalid]"
    assert spy.Shape(2**40)[0] == 2**40
    assert spy.slangpy.Shape is spy.Shape
    with pytest.raises(IndexError):
        shape[2]


KEPT = """
void halves(inout half3 v, float s) { v = v + half3(float3(s)); }
void bytes_(inout uint8_t3 v) { v = v + uint8_t3(1); }
void matrix_(out matrix<half, 2, 2> m) { m = matrix<half, 2, 2>(half(1), half(2), half(3), half(4)); }
float3 whole(float3 v) { return v; }
void grow(inout float3 v) { v = v + 1; }
void copy<T>(T x, out T y) { y = x; }
float total(float3 v[2]) { return v[0].x + 10 * v[0].z + 100 * v[1].y; }
"""


def test_references_take_what_calls_left_in_them(device: Any) -> None:
    """A half3 comes back as a float3, a uint8_t3 as a uint3."""
    m = source(device, "kept_references", KEPT)
    ref = spy.ValueRef([1, 2, 3])
    for expected in ([2, 3, 4], [3, 4, 5]):
        m.halves(ref, 1.0)
        assert type(ref.value) is spy.float3 and plain(ref.value) == expected
    ref = spy.ValueRef(spy.uint3(1, 2, 254))
    m.bytes_(ref)
    assert plain(ref.value) == [2, 3, 255]
    ref = spy.ValueRef(spy.uint3(1, 2, 256))
    with pytest.raises(OverflowError, match="256} is out of range for uint8_t3"):
        m.bytes_(ref)
    ref = spy.ValueRef(None)
    for _ in range(2):
        m.matrix_(ref)
        assert plain(ref.value) == [[1, 2], [3, 4]]
    with pytest.raises(ResolveException, match="its components are int, expected half"):
        m.halves(spy.ValueRef(spy.int3(1)), 1.0)


def test_numbers_in_references_are_widened(device: Any) -> None:
    m = source(device, "kept_references", KEPT)
    assert plain(m.whole(spy.ValueRef(2))) == [2, 2, 2] == plain(m.whole(spy.diffPair(2.0)))
    ref = spy.ValueRef(2.5)
    m.grow(ref)
    assert type(ref.value) is spy.float3 and plain(ref.value) == [3.5, 3.5, 3.5]


def test_empty_references_take_the_type_of_another_argument(device: Any) -> None:
    m = source(device, "kept_references", KEPT)
    for value in (2.5, 3, True):
        ref = spy.ValueRef(None)
        m.copy(value, ref)
        assert plain(ref.value) == plain(value)


def test_vectors_from_lists_of_dicts(device: Any) -> None:
    m = source(device, "kept_references", KEPT)
    values = [{"x": 1.0, "y": 2, "z": 3}, {"z": 6, "x": 4, "y": 5}]
    assert m.total(values) == 1 + 30 + 500
    assert plain(m.total([values, values])) == [531, 531]
    values[0]["x"] = tensor(device, 3)
    assert plain(m.total(values)) == [530, 531, 532]
    for value in ({"x": 1, "r": 2}, [{"x": 1, "r": 2}], [[{"g": 1, "y": 2}] * 2]):
        with pytest.raises(KernelGenException, match="component [xy] twice, as '[gr]' and as '[xy]'"):
            (m.total if isinstance(value, list) and isinstance(value[0], list) else m.whole)(value)


def test_arrays_that_another_argument_resizes(device):
    """get_this() of a later argument runs after the address of an earlier one was read."""
    m = spy.Module.load_from_source(device, "resized", "float add(float a, float b, float c) { return a + b + c; }")
    torch = pytest.importorskip("torch")
    place = device.torch_device or torch.device("cpu")

    class Resizes:
        def __init__(self, act):
            self.act = act

        def get_this(self):
            self.act()
            return 1.0

    def resize(array):
        array.resize(4096, refcheck=False)

    def free(tensor):
        tensor.untyped_storage().resize_(0)

    def move(tensor):
        tensor.set_(torch.zeros(5, device=place))

    for make, act in (
        (lambda: np.ones(5, np.float32), resize),
        (lambda: torch.ones(5, device=place), free),
        (lambda: torch.ones(5, device=place), move),
    ):
        held = make()
        with pytest.raises((ValueError, RuntimeError), match="resized::add: (an array among the arguments was moved|.*freed)"):
            m.add(held, Resizes(lambda held=held, act=act: act(held)), 2.0, _result="numpy")
        held = make()
        same = m.add(held, Resizes(lambda: None), held, _result="numpy")
        assert same.tolist() == [3] * 5
