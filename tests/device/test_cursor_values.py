"""Values written to and read from typed memory."""

import enum
import struct

import numpy as np
import pytest
from cursor_layouts import TARGETS, Layouts

import slangpy as spy
from slangpy import _native


@pytest.fixture(params=TARGETS)
def layouts(request):
    return Layouts(request.param)


def write(layouts, layout, value):
    cursor = layouts.cursor(layout)
    cursor[0] = value
    return cursor


def round_trip(layouts, layout, value):
    return write(layouts, layout, value)[0].read()


# --- numbers


@pytest.mark.parametrize(
    "name, low, high",
    [(f"{sign}int{bits}_t", 0 if sign else -(1 << bits - 1), (1 << bits - (0 if sign else 1)) - 1)
     for bits in (8, 16, 64) for sign in ("", "u")] + [("int", -(1 << 31), (1 << 31) - 1), ("uint", 0, (1 << 32) - 1)],
)  # fmt: skip
def test_integers_are_exact_and_range_checked(layouts, name, low, high):
    layout = layouts.scalar(name)
    for value in (low, high, 1, True, np.int8(1), np.uint64(high)):
        assert round_trip(layouts, layout, value) == value
    for value in (low - 1, high + 1, 10**30, -(10**5000)):
        with pytest.raises(OverflowError, match="out of range for " + name) as raised:
            write(layouts, layout, value)
        assert isinstance(raised.value, ValueError) and isinstance(raised.value, RuntimeError)
    for value in (2.0, np.float64(3), 1.5, float("nan"), float("inf"), np.float32(0.5)):
        with pytest.raises(ValueError, match="not an integer"):
            write(layouts, layout, value)
    for value in ("1", None, 1j, [1], b"1"):
        with pytest.raises(TypeError, match="expected a number"):
            write(layouts, layout, value)


@pytest.mark.parametrize("value, stored", [(True, 1), (False, 0), (3, 1), (0, 0), (np.bool_(True), 1), (2**70, 1)])
def test_bool_is_stored_as_the_target_stores_it(layouts, value, stored):
    cursor = write(layouts, layouts.scalar("bool"), value)
    size = 4 if layouts.target == "vulkan" else 1
    assert cursor.to_numpy().tobytes() == stored.to_bytes(size, "little")
    assert cursor[0].read() is bool(stored)


def test_float_for_bool_is_refused(layouts):
    with pytest.raises(TypeError, match=r"a bool or int for bool, got 1.0"):
        write(layouts, layouts.scalar("bool"), 1.0)


@pytest.mark.parametrize("value", [0.1, 3, True, np.float32(0.25), np.float16(2.5), np.float64(1e300), np.int16(-4)])
def test_floats_round_to_nearest(layouts, value):
    with np.errstate(over="ignore"):
        expected = np.float32(value)
    assert round_trip(layouts, layouts.scalar("float"), value) == expected
    assert round_trip(layouts, layouts.scalar("double"), value) == float(value)


def test_int_to_float_rounds_once(layouts):
    value = (1 << 60) + (1 << 36) + 1  # through double it would round to even and then down
    assert round_trip(layouts, layouts.scalar("float"), value) == np.float32(np.int64(value))
    with pytest.raises(OverflowError, match="too large"):
        write(layouts, layouts.scalar("double"), 10**400)


def test_half_rounds_to_nearest_even_for_every_bit_pattern(layouts):
    layout = layouts.scalar("half")
    cursor = layouts.cursor(layout, 65536)
    every = np.arange(65536, dtype=np.uint16)
    cursor.copy_from_numpy(every)
    values = every.view(np.float16).astype(np.float64)
    read = np.array([cursor[i].read() for i in range(65536)])
    np.testing.assert_array_equal(read, values)
    rng = np.random.default_rng(1)
    samples = np.concatenate([
        rng.normal(size=500) * 10.0 ** rng.integers(-9, 6, size=500),
        (values[1:1000] + values[:999]) / 2,  # ties
        [65504.0, 65519.9, 65520.0, -65520.0, 1e300, 5.9e-8, 2.9e-8, 2.99e-8, 0.0, -0.0],
    ])  # fmt: skip
    with np.errstate(over="ignore"):
        expected = samples.astype(np.float16)
    for value, bits in zip(samples, expected.view(np.uint16), strict=True):
        assert write(layouts, layout, float(value)).to_numpy().view(np.uint16)[0] == bits, value


class Level(enum.IntEnum):
    low = 1


class Ratio(enum.Enum):
    half = 0.5


def test_enums_and_zero_dimensional_arrays(layouts):
    assert round_trip(layouts, layouts.scalar("int"), Level.low) == 1
    assert round_trip(layouts, layouts.scalar("float"), Ratio.half) == 0.5
    assert round_trip(layouts, layouts.scalar("float"), np.array(2.5)) == 2.5
    assert round_trip(layouts, layouts.scalar("float"), spy.float16_t(1.5)) == 1.5


# --- vectors and matrices


@pytest.mark.parametrize(
    "value", [(1, 2, 3), [1.0, 2.0, 3.0], np.array([1, 2, 3], np.float32), range(1, 4), spy.float3(1, 2, 3),
              spy.int3(1, 2, 3), np.arange(1, 7, dtype=np.float32)[::2] * 0 + np.array([1, 2, 3], np.float32)]
)  # fmt: skip
def test_vectors(layouts, value):
    cursor = write(layouts, layouts.vector("float", 3), value)
    assert cursor.to_numpy().view(np.float32).tolist() == [1, 2, 3]
    assert cursor[0].read() == spy.float3(1, 2, 3)
    assert cursor[0][1].read() == 2 and cursor[0].z.read() == 3


def test_bool_vectors(layouts):
    cursor = write(layouts, layouts.vector("bool", 3), [True, False, 2])
    assert cursor.size == (12 if layouts.target == "vulkan" else 3)
    assert cursor[0].read() == spy.bool3(True, False, True)
    cursor[0] = np.array([False, True, False])
    assert cursor[0].read() == spy.bool3(False, True, False)
    cursor[0] = spy.bool3(True, True, False)
    assert cursor[0].read() == spy.bool3(True, True, False)


def test_vectors_convert_only_without_loss(layouts):
    assert round_trip(layouts, layouts.vector("int", 2), spy.float2(1, 2)) == spy.int2(1, 2)
    with pytest.raises(ValueError, match="exactly"):
        write(layouts, layouts.vector("half", 2), spy.float2(0.1, 0))
    with pytest.raises(ValueError, match="exactly"):
        write(layouts, layouts.vector("float", 2), spy.int2(2**24 + 1, 0))
    with pytest.raises(OverflowError):
        write(layouts, layouts.vector("uint", 2), spy.int2(-1, 0))


def test_vectors_of_narrow_integers_read_as_wide_ones(layouts):
    assert round_trip(layouts, layouts.vector("uint8_t", 3), [1, 2, 255]) == spy.uint3(1, 2, 255)
    assert round_trip(layouts, layouts.vector("int16_t", 2), spy.int2(-1, 2)) == spy.int2(-1, 2)
    assert round_trip(layouts, layouts.vector("half", 3), [0.5, 1, 2]) == spy.float3(0.5, 1, 2)


@pytest.mark.parametrize("value", [(1, 2), [1, 2, 3, 4], np.zeros(2, np.float32), spy.float2(0)])
def test_wrong_dimension(layouts, value):
    cursor = layouts.cursor(layouts.struct("S", a=layouts.scalar("int"), b=layouts.vector("float", 3)))
    outer = layouts.cursor(layouts.struct("O", s=cursor.element_type_layout))
    with pytest.raises(ValueError, match=r"^s\.b: sequence has wrong dimension\."):
        outer[0].write({"s": {"b": value}})


@pytest.mark.parametrize("row_major", [True, False])
def test_matrices(layouts, row_major):
    layout = layouts.matrix("float", 2, 3, row_major)
    expected = np.arange(6, dtype=np.float32).reshape(2, 3)
    for value in (expected, expected.tolist(), np.asfortranarray(expected), spy.float2x3(expected), ([0, 1, 2], spy.float3(3, 4, 5))):  # fmt: skip
        cursor = write(layouts, layout, value)
        raw = cursor.to_numpy().view(np.float32)
        np.testing.assert_array_equal(raw, expected.ravel() if row_major else expected.T.ravel())
        np.testing.assert_array_equal(cursor[0].read().to_numpy(), expected)
        assert cursor[0][1].read() == spy.float3(3, 4, 5)
        assert cursor[0][1][2].read() == 5
    cursor[0][1] = (7, 8, 9)
    assert cursor[0][1].read() == spy.float3(7, 8, 9)
    with pytest.raises(ValueError, match=r"expected \(2, 3\) for float2x3, got \(3, 2\)"):
        write(layouts, layout, expected.T)
    with pytest.raises(ValueError, match=r"sequence has wrong dimension. Expected 2 rows"):
        write(layouts, layout, [[1, 2, 3]])
    with pytest.raises(TypeError, match="a matrix or an array"):
        write(layouts, layout, 1.0)


def test_int_and_bool_matrices(layouts):
    value = np.array([[1, 0], [0, 1]], np.int32)
    assert write(layouts, layouts.matrix("int", 2, 2), value).to_numpy().view(np.int32).tolist() == [1, 0, 0, 1]
    cursor = write(layouts, layouts.matrix("bool", 2, 2), value.astype(bool))
    assert cursor.size == (16 if layouts.target == "vulkan" else 4)
    assert [[cursor[0][i][j].read() for j in range(2)] for i in range(2)] == [[True, False], [False, True]]


# --- arrays


def test_arrays(layouts):
    layout = layouts.array(layouts.scalar("int"), 3)
    for value in ([1, 2, 3], (1, 2, 3), np.array([1, 2, 3], np.int32), np.array([1, 2, 3], np.uint32)):
        assert round_trip(layouts, layout, value) == [1, 2, 3]
    with pytest.raises(ValueError, match="sequence is the wrong length"):
        write(layouts, layout, [1, 2])
    with pytest.raises(ValueError, match="sequence is the wrong length"):
        write(layouts, layout, np.zeros(4, np.int32))
    with pytest.raises(OverflowError, match=r"^\[1\]: 4294967296 is out of range"):
        write(layouts, layout, [0, 2**32, 0])


def test_arrays_take_arrays_with_the_elements_axes(layouts):
    data = np.arange(8, dtype=np.float32).reshape(4, 2)
    cursor = write(layouts, layouts.array(layouts.vector("float", 2), 4), data)
    assert cursor[0].read() == [spy.float2(*row) for row in data.tolist()]
    bools = np.array([[True, False, True]] * 2)
    cursor = write(layouts, layouts.array(layouts.array(layouts.scalar("bool"), 3), 2), bools)
    assert cursor[0].read() == bools.tolist()
    structs = layouts.array(layouts.struct("P", x=layouts.scalar("int")), 2)
    assert round_trip(layouts, structs, [{"x": 1}, {"x": 2}]) == [{"x": 1}, {"x": 2}]


@pytest.mark.parametrize("dtype", [np.float64, np.float16, np.int32, np.uint8, np.complex64, np.bool_])
def test_dtype_mismatch_names_path_expected_and_given(layouts, dtype):
    layout = layouts.struct("S", a=layouts.array(layouts.scalar("float"), 2))
    with pytest.raises(TypeError, match=r"^a: expected an array of float32 for float\[2\], got "):
        write(layouts, layout, {"a": np.zeros(2, dtype)})


def test_swapped_byte_order_is_converted(layouts):
    assert round_trip(layouts, layouts.array(layouts.scalar("int"), 2), np.array([1, 2], ">i4")) == [1, 2]


# --- structs and pointers


def test_structs_from_dicts(layouts):
    cursor = layouts.cursor(layouts.material(), 2)
    assert cursor.element_stride == 24 and len(cursor) == 2
    cursor[1].write({"albedo": (1, 2, 3), "id": 11, "w": [0.0, 0.0], "_type": "Mat"})
    cursor[1].w[0] = 4.0
    cursor[1].write({"id": np.int64(12)})  # the rest keeps its value
    assert cursor[1].read() == {"albedo": spy.float3(1, 2, 3), "id": 12, "w": [4.0, 0.0]}
    assert cursor[-1]["id"].read() == 12 and cursor[0].id.read() == 0
    with pytest.raises(ValueError, match=r"Mat has no field 'color'. Fields: albedo, id, w"):
        cursor[0].write({"color": 1})
    with pytest.raises(TypeError, match="keys must be field names, got 3"):
        cursor[0].write({3: 1})


class Stands:
    def __init__(self, value):
        self.value = value
        self.asked = 0

    def get_this(self):
        self.asked += 1
        return self if self.value is None else self.value


def test_get_this_is_asked_once(layouts):
    layout = layouts.struct("S", x=layouts.scalar("int"), v=layouts.vector("float", 2))
    inner = Stands((1, 2))
    outer = Stands({"x": Stands(5), "v": inner})
    assert round_trip(layouts, layout, outer) == {"x": 5, "v": spy.float2(1, 2)}
    assert outer.asked == inner.asked == 1
    with pytest.raises(TypeError, match="Expected dict"):
        write(layouts, layout, Stands(None))
    with pytest.raises(TypeError, match="Expected dict for S, got 3"):
        write(layouts, layout, 3)


def test_errors_name_the_full_path(layouts):
    light = layouts.struct("Light", tint=layouts.vector("float", 3), id=layouts.scalar("int8_t"))
    scene = layouts.struct("Scene", light=light, lights=layouts.array(light, 2))
    cursor = layouts.cursor(scene)
    with pytest.raises(TypeError, match=r"^light\.tint: expected a sequence of 3 numbers for float3, got 'red'"):
        cursor[0].light.tint = "red"
    with pytest.raises(OverflowError, match=r"^light\.id: 300 is out of range for int8_t \(-128 to 127\)"):
        cursor[0].write({"light": {"id": 300}})
    with pytest.raises(ValueError, match=r"^lights\[1\]\.id: 1\.5 is not an integer"):
        cursor[0].lights[1].id = 1.5
    with pytest.raises(TypeError, match=r"^lights\[0\]\.tint\[2\]: expected a number for float, got None"):
        cursor[0].write({"lights": [{"tint": [0, 0, None]}, {}]})


class HasAddress:
    device_address = 4096


def test_pointers(layouts):
    layout = layouts.pointer()
    for value, stored in ((0, 0), (2**64 - 1, 2**64 - 1), (np.uint64(7), 7), (HasAddress(), 4096), (None, 0)):
        assert round_trip(layouts, layout, value) == stored
    for value in (-1, 2**64):
        with pytest.raises(OverflowError, match="out of range for pointer"):
            write(layouts, layout, value)
    with pytest.raises(TypeError, match="an int address, a Buffer or a Tensor"):
        write(layouts, layout, "x")


def test_tensor_structs_take_uniforms(layouts):
    fields = {"_data": layouts.pointer(), "_shape": layouts.array(layouts.scalar("uint"), 2),
              "_strides": layouts.array(layouts.scalar("int"), 2)}  # fmt: skip
    tensor = layouts.struct("RWTensor", **fields)
    diff = layouts.struct("DiffTensor", _primal=tensor, _grad_out=tensor)

    class FakeTensor:
        grad_out = None

        def __init__(self, address):
            self.address = address

        def uniforms(self):
            return {"_data": self.address, "_shape": (2, 3), "_strides": (3, 1), "_offset": 0}

    value = FakeTensor(64)
    expected = {"_data": 64, "_shape": [2, 3], "_strides": [3, 1]}
    assert round_trip(layouts, tensor, value) == expected
    value.grad_out = FakeTensor(128)
    assert round_trip(layouts, diff, value) == {"_primal": expected, "_grad_out": expected | {"_data": 128}}


# --- TensorView


def test_tensor_view(layouts):
    layout = _native._make_type_layout(
        kind="struct", name="TensorView", full_name="TensorView<float>", size=56, alignment=8
    )
    data = np.zeros((4, 6), np.float32)[::2]
    cursor = write(layouts, layout, data)
    address, *numbers = struct.unpack("<Q11I", cursor.to_numpy().tobytes()[:52])
    assert address == data.ctypes.data
    assert numbers == [48, 4, 0, 0, 0, 2, 6, 0, 0, 0, 2]
    with pytest.raises(TypeError, match="expected an array of float32"):
        write(layouts, layout, data.astype(np.float64))
    with pytest.raises(ValueError, match="at most 5 dimensions"):
        write(layouts, layout, np.zeros((1,) * 6, np.float32))


def view_layout(element):
    return _native._make_type_layout(
        kind="struct", name="TensorView", full_name=f"TensorView<{element}>", size=56, alignment=8
    )


def test_vectors_of_a_tensor_view_lie_side_by_side(layouts):
    for element, last in (("vector<float,2>", (2,)), ("vector<float, 3>", (3,)), ("matrix<float,2,3>", (2, 3))):
        layout = view_layout(element)
        for shape in ((4, *last), last, (0,), (2, 4, *last)):
            write(layouts, layout, np.zeros(shape, np.float32))
        for wrong in (np.zeros(12, np.float32), np.zeros((4, *last[:-1], 7), np.float32), np.zeros(last[::-1], np.float32).T):
            if wrong.shape[-len(last) :] != last or not wrong.flags.c_contiguous:
                with pytest.raises(ValueError, match="side by side, got an array of shape"):
                    write(layouts, layout, wrong)


def test_tensor_views_of_read_only_memory_are_refused(layouts):
    layout = view_layout("float")
    held = np.zeros(4, np.float32)
    held.flags.writeable = False
    for value in (held, np.broadcast_to(np.float32(1), (3,)), memoryview(b"12345678").cast("f")):
        with pytest.raises(ValueError, match="read-only, and kernels may write"):
            write(layouts, layout, value)
    write(layouts, layout, held[:0])


def test_tensor_views_of_torch_tensors(layouts):
    torch = pytest.importorskip("torch")
    layout = view_layout("float")
    tensor = torch.ones(3, requires_grad=True)
    assert struct.unpack("<Q", write(layouts, layout, tensor).to_numpy().tobytes()[:8])[0] == tensor.data_ptr()
    freed = torch.zeros(3)
    freed.untyped_storage().resize_(0)
    with pytest.raises(RuntimeError, match="has 0 bytes, but its elements need 12"):
        write(layouts, layout, freed)
    with pytest.raises(RuntimeError, match="has 0 bytes, but its elements need 12"):
        write(layouts, layouts.array(layouts.scalar("float"), 3), freed)
    with pytest.raises(ValueError, match="resolve_neg"):
        write(layouts, layout, torch._neg_view(torch.ones(3)))
    for value in (freed, [freed], {"a": [freed]}):  # torch's repr() of it reads its memory
        with pytest.raises(TypeError, match="expected a number for int, got (Tensor of shape|<list>|<dict>)"):
            write(layouts, layouts.scalar("int"), value)


# --- everything together


def random_value(layouts, rng, depth):
    """A layout with a value for it and what reading must give."""
    choice = rng.integers(0, 6 if depth else 3)
    if choice == 0:
        name = rng.choice(["bool", "int8_t", "uint16_t", "int", "uint64_t"])
        value = int(rng.integers(0, 2 if name == "bool" else 100))
        return layouts.scalar(name), value, value
    if choice == 1:
        value = float(np.float16(rng.normal()))
        return layouts.scalar(rng.choice(["half", "float", "double"])), value, value
    if choice == 2:
        values = rng.integers(-50, 50, size=rng.integers(2, 5)).tolist()
        return layouts.vector("int", len(values)), values, getattr(spy, f"int{len(values)}")(*values)
    if choice == 3:
        layout, value, expected = random_value(layouts, rng, depth - 1)
        count = int(rng.integers(1, 4))
        return layouts.array(layout, count), [value] * count, [expected] * count
    parts = {f"f{i}": random_value(layouts, rng, depth - 1) for i in range(rng.integers(1, 5))}
    layout = layouts.struct("S", **{name: part[0] for name, part in parts.items()})
    return layout, {n: part[1] for n, part in parts.items()}, {n: part[2] for n, part in parts.items()}


@pytest.mark.parametrize("seed", range(30))
def test_nested_values_round_trip(layouts, seed):
    layout, value, expected = random_value(layouts, np.random.default_rng(seed), 3)
    cursor = layouts.cursor(layout, 3)
    cursor[1] = value
    before = [cursor[0].read(), cursor[2].read()]
    assert cursor[1].read() == expected
    assert not cursor.to_numpy()[: cursor.element_stride].any() and before[0] == before[1]
