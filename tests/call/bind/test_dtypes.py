"""The dtype table and cursors over elements."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from calls_support import array, plain, source, tensor

import slangpy as spy

pytestmark = [
    pytest.mark.needs_kernels,
    pytest.mark.elsewhere(
        "test_a_row_of_the_table", "test_cursors_and_arrays", "test_cursors_read_and_write",
        "test_bfloat16_through_dlpack", "test_matrices_of_integers",
    ),
]  # fmt: skip

TABLE = {
    "bool": ("bool_", (6, 8)), "int8_t": ("int8", (0, 8)), "int16_t": ("int16", (0, 16)), "int": ("int32", (0, 32)),
    "int64_t": ("int64", (0, 64)), "uint8_t": ("uint8", (1, 8)), "uint16_t": ("uint16", (1, 16)), "uint": ("uint32", (1, 32)),
    "uint64_t": ("uint64", (1, 64)), "half": ("float16", (2, 16)), "float": ("float32", (2, 32)), "double": ("float64", (2, 64)),
}  # fmt: skip
ALIASES = {"int32_t": "int", "uint32_t": "uint", "float16_t": "half", "float32_t": "float", "float64_t": "double"}
NEEDS = {
    "half": "half",
    "double": "double",
    "int16_t": "int16",
    "uint16_t": "int16",
    "int64_t": "int64",
    "uint64_t": "int64",
}
SOURCE = "".join(
    f"{t} id_{t}({t} x) {{ return x; }} {t} sum_{t}({t} x[2]) {{ return {t}(x[0] + x[1]); }}\n"
    for t in TABLE
    if t != "bool"
)
SOURCE += "bool id_bool(bool x) { return x; } bool sum_bool(bool x[2]) { return x[0] || x[1]; }\n"
SOURCE += """
struct In { int a; half h; };
struct Dot { float2 p; float2 v; int n[2]; In inner; bool on; float2x2 m; };
float px(Dot d) { return d.p.x + 10 * d.v.y + 100 * d.n[1] + 1000 * d.inner.a + (d.on ? 1e5 : 0) + d.m[1][0]; }
"""


@pytest.fixture
def m(device: Any) -> Any:
    return source(device, "spec_dtypes", SOURCE)


def _skip(device: Any, scalar: str) -> None:
    if scalar in NEEDS and not device.has_feature(spy.Feature[NEEDS[scalar]]):
        pytest.skip(f"no {scalar} on this device")


@pytest.mark.parametrize("scalar", TABLE)
def test_a_row_of_the_table(m: Any, device: Any, scalar: str) -> None:
    _skip(device, scalar)
    dtype = np.dtype(TABLE[scalar][0])
    data = np.array([[1, 0], [1, 1]], dtype)
    for value in (data, spy.Tensor.from_numpy(device, data), data.tolist()):
        found = m[f"id_{scalar}"](value, _result="numpy")
        assert found.dtype == dtype and found.tolist() == data.tolist()
        assert m[f"sum_{scalar}"](value, _result="numpy").tolist() == (data[:, 0] + data[:, 1]).tolist()
    made = m[f"id_{scalar}"](data)
    assert made.dtype.full_name == scalar and made.dtype.buffer_layout.stride == (
        4 if scalar == "bool" and _wide(device) else dtype.itemsize
    )
    result = m[f"id_{scalar}"](data[0, 0])
    assert type(result) is type(data[0, 0].item()) and result == data[0, 0]


def _wide(device: Any) -> bool:
    return device.info.type in (spy.DeviceType.vulkan, spy.DeviceType.d3d12)


@pytest.mark.parametrize("scalar", TABLE)
def test_dlpack(device: Any, scalar: str) -> None:
    _skip(device, scalar)
    data = np.arange(6).reshape(2, 3).astype(TABLE[scalar][0])
    t = spy.Tensor.from_numpy(device, data)
    if _wide(device):
        with pytest.raises(BufferError, match="copy it with to_numpy"):
            np.from_dlpack(t)
    elif device.type is spy.DeviceType.cuda:
        torch = pytest.importorskip("torch")
        np.testing.assert_array_equal(torch.from_dlpack(t).cpu().numpy(), data)
    elif scalar != "bool":
        np.testing.assert_array_equal(np.from_dlpack(t), data)
    back = spy.Tensor.from_dlpack(device, data)
    assert back.dtype.full_name == scalar and back.to_numpy().tolist() == data.tolist()


@pytest.mark.parametrize(("name", "full_name"), ALIASES.items())
def test_other_names(device: Any, name: str, full_name: str) -> None:
    _skip(device, full_name)
    assert spy.Tensor.zeros(device, (2,), dtype=name).dtype.full_name == full_name


@pytest.mark.parametrize(
    ("given", "full_name"),
    [(float, "float"), (int, "int"), (bool, "bool"), (np.float32, "float"), (np.int8, "int8_t"), (np.dtype("uint16"), "uint16_t"),
     (spy.float3, "vector<float,3>"), (spy.float16_t, "half"), (spy.float2x3, "matrix<float,2,3>"), (spy.quatf, "vector<float,4>"), ("float3", "vector<float,3>"),
     ("float[4]", "float[4]"), ("uint", "uint")],
)  # fmt: skip
def test_what_names_a_type(device: Any, given: Any, full_name: str) -> None:
    assert spy.Tensor.zeros(device, (2,), dtype=given).dtype.full_name == full_name


def test_structs_name_types(m: Any, device: Any) -> None:
    for given in (m.Dot, m.Dot.type, m.layout.find_type_by_name("Dot")):
        assert spy.Tensor.zeros(device, (2,), dtype=given).dtype.full_name == "Dot"


# --- 18


def test_cursors_read_and_write(m: Any, device: Any) -> None:
    t = spy.Tensor.zeros(device, (4,), dtype=m.Dot)
    c = t.cursor()
    assert len(c) == 4 == c.element_count and c.element_stride >= c.element_size and c.size == 4 * c.element_stride
    c[0].p = spy.float2(7, 8)
    c[1].write({"v": [1, 2], "n": [3, 4], "inner": {"a": 5, "h": 0.5}, "on": True, "m": spy.float2x2(1, 2, 3, 4)})
    c[-1]["n"][1] = 9
    assert plain(t.to_numpy()) == plain(np.zeros_like(t.to_numpy()))  # nothing before apply
    c.apply()
    read = t.cursor()[1].read()
    assert plain(read) == {
        "p": [0, 0],
        "v": [1, 2],
        "n": [3, 4],
        "inner": {"a": 5, "h": 0.5},
        "on": True,
        "m": [[1, 2], [3, 4]],
    }
    assert type(read["inner"]["h"]) is float
    assert plain(m.px(t)) == [7, 20 + 400 + 5000 + 1e5 + 3, 0, 900]
    assert plain(t.cursor()[0].p.read()) == [7, 8] and t.cursor()[3].n[1].read() == 9


def test_cursors_over_a_part(m: Any, device: Any) -> None:
    t = tensor(device, 6)
    c = t.cursor(2, 3)
    assert [c[i].read() for i in range(3)] == [2, 3, 4]
    c[0].write(20)
    c.apply()
    assert plain(t) == [0, 1, 20, 3, 4, 5]


def test_cursors_and_arrays(m: Any, device: Any) -> None:
    t = spy.Tensor.zeros(device, (3,), dtype=m.Dot)
    c = t.cursor()
    c.write_from_numpy({"p": array(3, 2), "inner": {"a": np.arange(3, dtype=np.int32)}})
    c.apply()
    assert [plain(t.cursor()[i].read()["p"]) for i in range(3)] == [[0, 1], [2, 3], [4, 5]]
    assert [t.cursor()[i].inner.a.read() for i in range(3)] == [0, 1, 2]
    raw = t.cursor().to_numpy()
    assert raw.dtype == np.uint8 and raw.ndim == 1
    other = spy.Tensor.zeros(device, (3,), dtype=m.Dot)
    d = other.cursor()
    d.copy_from_numpy(raw)
    d.apply()
    assert (other.to_numpy() == t.to_numpy()).all()


@pytest.mark.parametrize(
    ("act", "error"),
    [
        (lambda c: c[3], IndexError), (lambda c: c[-4], IndexError), (lambda c: c[0].nope, AttributeError), (lambda c: c[0]["nope"], KeyError),
        (lambda c: c[0].write({"nope": 1}), ValueError), (lambda c: c[0].n.write([1, 2, 3]), ValueError),
        (lambda c: c[0].n.write([1.5, 2]), ValueError), (lambda c: c[0].inner.a.write(2**40), OverflowError),
        (lambda c: c[0].p.write("x"), TypeError), (lambda c: c[0].write(3), TypeError),
    ],
)  # fmt: skip
def test_what_cursors_refuse(m: Any, device: Any, act: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        act(spy.Tensor.zeros(device, (3,), dtype=m.Dot).cursor())


def test_errors_name_the_path(m: Any, device: Any) -> None:
    c = spy.Tensor.zeros(device, (3,), dtype=m.Dot).cursor()
    with pytest.raises(ValueError, match=r"inner\.a"):
        c[0].write({"inner": {"a": 1.5}})
    with pytest.raises(AttributeError, match="inner"):
        c[0].iner
    assert c[0].has_field("p") and not c[0].has_field("nope") and c[0].n.has_element(1) and not c[0].n.has_element(2)
    assert not c[0].find_field("nope").is_valid()


class Exporter:
    """An array of another library, which speaks DLPack only."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def __dlpack__(self, **arguments: Any) -> Any:
        return self.array.__dlpack__(**arguments)

    def __dlpack_device__(self) -> Any:
        return self.array.__dlpack_device__()


NARROW = """
import slangpy;
float take(float a) { return a; }
void give(out float a, float b) { a = b; }
float row(Tensor<float, 1> t) { float s = 0; for (int i = 0; i < t.shape[0]; i++) s += t[i]; return s; }
"""


def test_bfloat16_through_dlpack(device: Any) -> None:
    torch = pytest.importorskip("torch")
    module = source(device, "spec_narrow", NARROW)
    values = torch.tensor([1.5, 2, -3, 0.25], dtype=torch.bfloat16)
    assert module.take.convert()(Exporter(values), _result="numpy").tolist() == [1.5, 2, -3, 0.25]
    assert plain(module.take.convert()(Exporter(values[::2]))) == [1.5, -3]
    with pytest.raises(spy.ResolveException, match="BFloat16"):
        module.take(Exporter(values))
    module.give.convert("any")(Exporter(values), array(4) + 0.5)
    assert values.float().tolist() == [0.5, 1.5, 2.5, 3.5]
    with pytest.raises(spy.BoundVariableException, match="Unsupported type"):
        module.take(Exporter(torch.zeros(2, dtype=torch.complex64)))


def test_arrays_of_ml_dtypes(device: Any) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    module = source(device, "spec_narrow", NARROW)
    values = np.array([[1.5, 2, -3], [4, 5, 6]], ml_dtypes.bfloat16)
    np.testing.assert_array_equal(module.take.convert()(values[:, ::-2], _result="numpy"), [[-3, 1.5], [6, 4]])
    assert module.take(values[0, 0]) == 1.5  # a number, which converts
    module.give.convert("any")(values[0], array(3))
    assert values[0].astype(np.float32).tolist() == [0, 1, 2]
    with pytest.raises(spy.ResolveException, match="FloatE4M3"):
        module.take(np.zeros(2, ml_dtypes.float8_e4m3fn))
    with pytest.raises(spy.BoundVariableException, match="Unsupported type"):
        module.take(np.zeros(2, ml_dtypes.int4))


POINTER_SIZED = """
intptr_t next(intptr_t a) { return a + 1; }
uintptr_t same(uintptr_t a) { return a; }
size_t count(size_t a) { return a; }
"""


def test_integers_as_wide_as_a_pointer(device: Any) -> None:
    module = source(device, "spec_pointer_sized", POINTER_SIZED)
    if device.info.type == spy.DeviceType.vulkan:  # Slang has no SPIR-V for them
        with pytest.raises(RuntimeError, match="a is of type intptr_t.*declare it as int64_t.*cpu"):
            module.next(1)
        with pytest.raises(RuntimeError, match="uintptr_t"):
            module.count(np.zeros(2, np.uint64))
        return
    assert module.next(-5) == -4
    assert module.same(2**64 - 1) == 2**64 - 1 and module.count(5) == 5
    found = module.next(np.array([1, -2]), _result="numpy")
    assert found.dtype == np.int64 and found.tolist() == [2, -1]
    found = module.same(np.array([1, 2], np.uint64), _result="numpy")
    assert found.dtype == np.uint64 and found.tolist() == [1, 2]
    assert plain(module.next([1, 2])) == plain(module.next(spy.Tensor.from_numpy(device, np.array([1, 2])))) == [2, 3]
    with pytest.raises(OverflowError):
        module.same(-1)
    with pytest.raises(spy.ResolveException):
        module.next(np.zeros(2, np.int32))


CONVERTED = """
float2 f2(float2 a) { return a; }
int2 i2(int2 a) { return a; }
double d1(double a) { return a; }
double2x2 dm(double2x2 a) { return a; }
int chosen(float2 a) { return 1; }
int chosen(double2 a) { return 2; }
"""


def test_vectors_and_matrices_convert_when_they_are_told_to(device: Any) -> None:
    module = source(device, "spec_converted_vectors", CONVERTED)
    halves = spy.float16_t2(1.5, 2)
    with pytest.raises(spy.ResolveException, match="components are half, expected float; convert="):
        module.f2(halves)
    assert module.f2.convert()(halves) == spy.float2(1.5, 2)
    assert plain(module.f2.convert()([halves, halves])) == [[1.5, 2], [1.5, 2]]
    assert plain(module.d1.convert()(spy.int2(1, -2))) == [1, -2]
    assert module.dm.convert()(spy.float2x2(1, 2, 3, 4)) == spy.double2x2(1, 2, 3, 4)
    assert plain(module.d1.convert()(spy.float2x2(1, 2, 3, 4))) == [[1, 2], [3, 4]]
    with pytest.raises(spy.ResolveException):
        module.f2.convert("safe")(spy.int2(1, 2))
    assert module.f2.convert("any")(spy.int2(1, 2)) == spy.float2(1, 2)
    assert module.i2.convert("any")(spy.float2(1.7, -2.7)) == spy.int2(1, -2)
    assert plain(module.i2.convert("any")([spy.float2(1.7, -2.7)])) == [[1, -2]]
    assert module.chosen.convert()(spy.float2(1, 2)) == 1 and module.chosen.convert()(spy.double2(1, 2)) == 2


@pytest.mark.parametrize("scalar", ["int8_t", "uint16_t", "int64_t"])
def test_matrices_of_integers(device: Any, device_type: Any, scalar: str) -> None:
    """Slang makes no valid SPIR-V of those that are not of 32 bits."""
    text = f"{scalar} pick(matrix<{scalar}, 2, 3> m) {{ return m[1][0]; }}\nint pick_int(int2x3 m) {{ return m[1][0]; }}"
    m = source(device, f"matrices_{scalar}", text)
    values = np.arange(6, dtype=scalar.removesuffix("_t")).reshape(2, 3)
    assert m.pick_int(values.astype(np.int32)) == 3
    if device_type is spy.DeviceType.vulkan:
        with pytest.raises(RuntimeError, match=r"pick' uses a matrix of \d+-bit integers.*use a matrix of int or uint"):
            m.pick(values)
    elif device_type is not spy.DeviceType.d3d12:
        assert m.pick(values) == 3
