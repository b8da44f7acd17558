"""Results: every return type, at rank 0 and above, as value, Tensor and array, into instances."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from calls_support import array, plain, source, tensor, tensor_of

import slangpy as spy
from slangpy.errors import ResolveException

pytestmark = [
    pytest.mark.needs_kernels,
    pytest.mark.elsewhere(
        "test_scalars", "test_matrices", "test_structs", "test_pointers_and_enums", "test_instances_of_vectors",
        "test_numpy_results_are_not_uploaded_but_arguments_are_kept", "test_results_of_large_calls_are_ordered",
    ),
]  # fmt: skip

SCALARS = {
    "bool": "bool", "int8_t": "int8", "int16_t": "int16", "int": "int32", "int64_t": "int64", "uint8_t": "uint8",
    "uint16_t": "uint16", "uint": "uint32", "uint64_t": "uint64", "half": "float16", "float": "float32", "double": "float64",
}  # fmt: skip
SOURCE = "".join(
    f"{t} one_{t}(float x) {{ return {t}(x); }} vector<{t},3> three_{t}(float x) {{ return vector<{t},3>({t}(x), {t}(x), {t}(1)); }}\n"
    for t in SCALARS
)
SOURCE += """
enum Level : int { low, high = 7 }
struct In { int2 a; bool b; }
struct Out { float x; In inner; float list[2]; }
float2x3 matrix_of(float x) { return float2x3(x, 1, 2, 3, 4, 5); }
int2x2 int_matrix(float x) { return int2x2(int(x), 1, 2, 3); }
float[2] array_of(float x) { return { x, x + 1 }; }
int2[2] vectors_of(float x) { return { int2(int(x), 1), int2(2, 3) }; }
Out struct_of(float x) { Out o; o.x = x; o.inner.a = int2(int(x), 2); o.inner.b = x > 0; o.list[0] = x; o.list[1] = 5; return o; }
Level enum_of(float x) { return x > 0 ? Level.high : Level.low; }
float* pointer_of(float* p, float x) { return p + int(x); }
void nothing(float x) {}
float add(float a, float b) { return a + b; }
float3 spread(float x) { return float3(x, x + 1, x + 2); }
StructuredBuffer<float> buffer_of(StructuredBuffer<float> b) { return b; }
"""


@pytest.fixture
def m(device: Any) -> Any:
    return source(device, "spec_results", SOURCE)


def _has(device: Any, scalar: str) -> bool:
    feature = {
        "half": "half",
        "double": "double",
        "int16_t": "int16",
        "uint16_t": "int16",
        "int64_t": "int64",
        "uint64_t": "int64",
    }
    return scalar not in feature or device.has_feature(spy.Feature[feature[scalar]])


@pytest.mark.parametrize("scalar", SCALARS)
def test_scalars(m: Any, device: Any, scalar: str) -> None:
    if not _has(device, scalar):
        pytest.skip(f"no {scalar} on this device")
    found = m[f"one_{scalar}"](1.0)
    kind = bool if scalar == "bool" else float if scalar in ("half", "float", "double") else int
    assert type(found) is kind and found == 1
    host = m[f"one_{scalar}"](np.array([0, 1, 1], np.float32), _result="numpy")
    assert host.dtype == np.dtype(SCALARS[scalar]) and host.tolist() == [0, 1, 1]
    made = m[f"one_{scalar}"](np.array([[0, 1]], np.float32))
    assert isinstance(made, spy.Tensor) and made.dtype.full_name == scalar and tuple(made.shape) == (1, 2)
    assert made.to_numpy().tolist() == [[0, 1]]


@pytest.mark.parametrize("scalar", SCALARS)
def test_vectors(m: Any, device: Any, scalar: str) -> None:
    if not _has(device, scalar):
        pytest.skip(f"no {scalar} on this device")
    names = {"half": "float3", "int8_t": "int3", "int16_t": "int3", "uint8_t": "uint3", "uint16_t": "uint3"}
    found = m[f"three_{scalar}"](1.0)
    assert type(found).__name__ == names.get(scalar, f"{scalar}3") and list(found) == [1, 1, 1]
    host = m[f"three_{scalar}"](np.array([0, 1], np.float32), _result="numpy")
    assert host.dtype == np.dtype(SCALARS[scalar]) and host.tolist() == [[0, 0, 1], [1, 1, 1]]
    whole = m[f"three_{scalar}"](1.0, _result="numpy")
    assert whole.shape == (3,) and whole.tolist() == [1, 1, 1]


def test_matrices(m: Any) -> None:
    assert type(m.matrix_of(7.0)) is spy.float2x3 and plain(m.matrix_of(7.0)) == [[7, 1, 2], [3, 4, 5]]
    assert plain(m.int_matrix(7.0)) == [[7, 1], [2, 3]]
    host = m.matrix_of(array(2), _result="numpy")
    assert host.shape == (2, 2, 3) and host[1].tolist() == [[1, 1, 2], [3, 4, 5]]


def test_arrays(m: Any) -> None:
    assert m.array_of(3.0) == [3, 4] and type(m.array_of(3.0)) is list
    assert plain(m.vectors_of(3.0)) == [[3, 1], [2, 3]]
    assert m.array_of(array(2), _result="numpy").tolist() == [[0, 1], [1, 2]]
    assert m.vectors_of(array(2), _result="numpy").shape == (2, 2, 2)
    assert m.array_of(3.0, _result="numpy").tolist() == [3, 4]
    assert m.array_of(array(2)).dtype.full_name == "float[2]"


def test_structs(m: Any) -> None:
    found = m.struct_of(3.0)
    assert type(found) is dict and plain(found) == {"x": 3.0, "inner": {"a": [3, 2], "b": True}, "list": [3.0, 5.0]}
    host = m.struct_of(array(3), _result="numpy")
    assert host.dtype.names == ("x", "inner", "list") and host["x"].tolist() == [0, 1, 2]
    assert host["inner"]["a"].tolist() == [[0, 2], [1, 2], [2, 2]] and host["list"].tolist() == [[0, 5], [1, 5], [2, 5]]
    made = m.struct_of(array(3))
    assert isinstance(made, spy.Tensor) and made.dtype.full_name == "Out"


def test_pointers_and_enums(m: Any, device: Any) -> None:
    assert m.enum_of(1.0) == 7 and m.enum_of(-1.0) == 0
    assert m.enum_of(array(2), _result="numpy").tolist() == [0, 7]
    t = tensor(device, 4)
    address = t.storage.device_address
    assert m.pointer_of(t, 3.0) == address + 12
    host = m.pointer_of(t, array(2), _result="numpy")
    assert host.dtype == np.uint64 and host.tolist() == [address, address + 4]


@pytest.mark.parametrize("given", ["numpy", np.ndarray, "tensor", spy.Tensor, None])
def test_void_functions_ignore_text_and_classes(m: Any, given: Any) -> None:
    assert m.nothing(1.0, _result=given) is None
    assert m.nothing.return_type(given)(array(2)) is None


def test_void_functions_refuse_instances(m: Any, device: Any) -> None:
    with pytest.raises(ResolveException, match="returns nothing"):
        m.nothing(array(2), _result=tensor(device, 2))


def test_rank_zero(m: Any) -> None:
    made = m.add(1.0, 2.0, _result="tensor")
    assert isinstance(made, spy.Tensor) and tuple(made.shape) == () and made.item() == 3
    assert isinstance(m.add(1.0, 2.0, _result=spy.Tensor), spy.Tensor)
    host = m.add(1.0, 2.0, _result=np.ndarray)
    assert isinstance(host, np.ndarray) and host.shape == () and host == 3
    assert m.spread(1.0, _result="numpy").tolist() == [1, 2, 3]
    assert m.add(np.array(1.0, np.float32), 2.0) == 3.0  # a 0-d array: a Python value


def test_return_type_and_result(m: Any, device: Any) -> None:
    node = m.add.return_type("numpy")
    assert isinstance(node(array(2), 1), np.ndarray)
    assert isinstance(node(array(2), 1, _result="tensor"), spy.Tensor)
    assert isinstance(node.return_type(spy.Tensor)(array(2), 1), spy.Tensor)
    assert isinstance(node(array(2), 1, _result=None), np.ndarray)  # None: not given
    out = tensor(device, 2)
    assert node(array(2), 1, _result=out) is out
    with pytest.raises(ValueError, match="Unknown return type 'list'"):
        m.add(1, 2, _result="list")
    with pytest.raises(ValueError, match="Unknown return type"):
        m.add.return_type(dict)(1, 2)


@pytest.mark.parametrize(
    "make",
    [
        lambda d: np.zeros((2, 3), np.float32), lambda d: np.zeros((3, 2), np.float32).T,
        lambda d: np.zeros((4, 6), np.float32)[::2, ::-2], lambda d: spy.Tensor.zeros(d, (2, 3), dtype="float"),
        lambda d: spy.Tensor.zeros(d, (3, 2), dtype="float").permute(1, 0),
        lambda d: spy.Tensor.zeros(d, (4, 3), dtype="float")[1:3],
    ],
)  # fmt: skip
def test_instances_are_filled_and_returned(m: Any, device: Any, make: Any) -> None:
    out = make(device)
    assert m.add(array(2, 3), 1, _result=out) is out
    assert plain(out) == (array(2, 3) + 1).tolist()


def test_instances_of_vectors(m: Any, device: Any) -> None:
    for out in (
        spy.Tensor.zeros(device, (2, 3), dtype="float"), spy.Tensor.zeros(device, (2,), dtype="float3"),
        np.zeros((2, 3), np.float32),
    ):  # fmt: skip
        assert m.spread(array(2), _result=out) is out
        assert plain(out) == [[0, 1, 2], [1, 2, 3]]


def test_references_and_pairs(m: Any) -> None:
    ref, pair = spy.floatRef(), spy.diffPair(0.0, 1.0)
    assert m.add(1.0, 2.0, _result=ref) == 3.0 and ref.value == 3.0
    m.add(1.0, 2.0, _result=pair)
    assert pair.primal == 3.0 and pair.grad == 1.0
    any_kind = spy.ValueRef(None)
    assert plain(m.spread(1.0, _result=any_kind)) == [1, 2, 3] and plain(any_kind.value) == [1, 2, 3]


def test_structs_field_by_field(m: Any, device: Any) -> None:
    xs, lists = spy.Tensor.zeros(device, (3,), dtype="float"), np.zeros((3, 2), np.float32)
    out = {"x": xs, "list": lists}  # `inner` is dropped
    assert m.struct_of(array(3), _result=out) is out
    assert plain(xs) == [0, 1, 2] and lists.tolist() == [[0, 5], [1, 5], [2, 5]]
    instances = spy.InstanceTensor(m.Out, (3,))
    m.struct_of(array(3), _result=instances)
    assert instances.tensor.cursor()[2].read()["x"] == 2
    soa = spy.InstanceList(m.Out, {"x": xs})
    m.struct_of(array(3) + 5, _result=soa)
    assert plain(soa.x) == [5, 6, 7]


def test_the_result_takes_part_in_the_shape(m: Any, device: Any) -> None:
    out = tensor(device, 2, 3)
    m.add(tensor(device, 3), 1, _result=out)
    assert plain(out) == [[1, 2, 3], [1, 2, 3]]
    with pytest.raises(ValueError, match="_result"):
        m.add(tensor(device, 3), 1, _result=tensor(device, 4))
    with pytest.raises(ResolveException, match="_result"):  # one number into a vector
        m.add(1.0, 2.0, _result=spy.Tensor.zeros(device, (2,), "float2"))
    with pytest.raises(ResolveException, match="read-only"):
        frozen = np.zeros(2, np.float32)
        frozen.flags.writeable = False
        m.add(array(2), 2.0, _result=frozen)


@pytest.mark.parametrize("value", [3.0, [1.0, 2.0], spy.float3(), spy.rand_float()])
def test_values_that_cannot_hold_a_result(m: Any, value: Any) -> None:
    with pytest.raises(ResolveException, match="_result"):
        m.add(1.0, 2.0, _result=value)


def test_numpy_results_are_not_uploaded_but_arguments_are_kept(m: Any) -> None:
    host = np.full(3, np.nan, np.float32)
    m.add(array(3), 1, _result=host)
    assert host.tolist() == [1, 2, 3]
    given = array(3)
    m.add(given, 1)
    assert given.tolist() == [0, 1, 2]


def test_resources_cannot_be_returned(m: Any, device: Any) -> None:
    with pytest.raises(ResolveException, match="cannot return"):
        m.buffer_of(tensor(device, 3))


def test_results_of_large_calls_are_ordered(m: Any, device: Any) -> None:
    x = tensor_of(device, np.zeros(1 << 16))
    for _ in range(10):
        x = m.add(x, 1)
    assert (x.to_numpy() == 10).all()


OPAQUE = """
struct Held { float k; Optional<float> maybe; };
Optional<float> maybe(float x) { return x; }
Tuple<float, int> two(float x) { return makeTuple(x, 1); }
DifferentialPair<float> pair(float x) { return diffPair(x, 2 * x); }
DifferentialPair<float>[2] pairs(float x) { return { diffPair(x, x), diffPair(x, x) }; }
Held held(float x) { Held h; h.k = x; h.maybe = x; return h; }
void out_maybe(float x, out Optional<float> y) { y = x; }
"""


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("maybe", "'maybe' returns Optional<float>, which"), ("two", "'two' returns Tuple<float, int>, which"),
        ("pair", "'pair' returns DifferentialPair<float>, which"), ("held", "'held' returns Held, with Optional<float> in it, which"),
        ("pairs", r"'pairs' returns DifferentialPair<float>[2], with DifferentialPair<float> in it, which"),
    ],
)  # fmt: skip
def test_results_that_the_host_cannot_read(device: Any, name: str, text: str) -> None:
    m = source(device, "opaque_results", OPAQUE)
    for given in (2.0, tensor(device, 3)):
        for result in ({}, {"_result": "numpy"}, {"_result": "tensor"}):
            with pytest.raises(ResolveException) as raised:
                m[name](given, **result)
            assert text in str(raised.value) and "use a struct with its parts as fields" in str(raised.value)


def test_outputs_that_the_host_cannot_read(device: Any) -> None:
    m = source(device, "opaque_results", OPAQUE)
    with pytest.raises(ResolveException, match="y: .* Optional<float> .the host cannot read"):
        m.out_maybe(1.0, spy.ValueRef(None))
    own = source(device, "own_optional", "struct Conditional { float a; };\nConditional f(float x) { return { x }; }")
    assert own.f(2.0) == {"a": 2.0}


ARRAYS = """
struct P { int a; half2 h; }
enum K : int { small = 1, large = -200 }
P[2] pair(int k) { P p[2]; for (int i = 0; i < 2; i++) { p[i].a = k + i; p[i].h = half2(half(k), half(i)); } return p; }
P[2][3] grid(int k) { P p[3][2]; for (int i = 0; i < 6; i++) { p[i / 2][i % 2].a = i + k; p[i / 2][i % 2].h = half2(1); } return p; }
K[2] kinds(int x) { K r[2]; r[0] = K.small; r[1] = K(x); return r; }
int sum(P p[2]) { return p[0].a * 10 + p[1].a; }
T at<T>(Ptr<T> p, int i) { return p[i]; }
"""


def test_arrays_of_structs_and_enums(device: Any) -> None:
    m = source(device, "spec_results_arrays", ARRAYS)
    ks = np.array([1, 7], np.int32)
    found = m.pair(ks, _result="numpy")
    assert found.shape == (2, 2) and found["a"].tolist() == [[1, 2], [7, 8]]
    assert found["h"].tolist() == [[[1, 0], [1, 1]], [[7, 0], [7, 1]]]
    assert m.pair(3, _result="numpy")["a"].tolist() == [3, 4]
    assert m.grid(ks, _result="numpy")["a"].tolist() == (ks[:, None, None] + np.arange(6).reshape(3, 2)).tolist()
    made = m.pair(ks)
    assert made.to_numpy(structured=True)["a"].tolist() == [[1, 2], [7, 8]]
    assert made[::-1].to_numpy(structured=True)["a"].tolist() == [[7, 8], [1, 2]]
    assert made.to_numpy().shape == (2, made.dtype.element_layout.stride)
    assert "(8, [7., 1.])" in str(made)
    again = spy.Tensor.from_numpy(device, found, target_slang_dtype=made.dtype)
    assert again.shape == (2,) and plain(m.sum(again)) == [12, 78]
    again.copy_from_numpy(np.ascontiguousarray(found[::-1]))
    assert plain(m.sum(again)) == [78, 12]
    again[1] = found[1]
    assert plain(m.sum(again)) == [78, 78]
    empty = m.pair(ks[:0], _result="numpy")
    assert empty.shape == (0, 2) and empty.dtype == found.dtype
    kinds = m.kinds(np.array([3, -200], np.int32), _result="numpy")
    assert kinds.dtype == np.int32 and kinds.tolist() == [[1, 3], [1, -200]]
    with pytest.raises(ValueError, match="does not match"):
        spy.Tensor.from_numpy(device, found["h"], target_slang_dtype=made.dtype)


def test_a_tensor_tells_the_type_of_a_generic_pointer(device: Any) -> None:
    if device.info.type == spy.DeviceType.d3d12:
        pytest.skip("no pointers")
    m = source(device, "spec_results_arrays", ARRAYS)
    assert m.at(tensor(device, 4, dtype=np.int16), 2) == 2
    assert m.at(spy.Tensor.from_numpy(device, array(2, 3), target_slang_dtype="float3"), 1) == spy.float3(3, 4, 5)
    with pytest.raises(ResolveException, match="told by a Tensor"):
        m.at(array(3), 1)
