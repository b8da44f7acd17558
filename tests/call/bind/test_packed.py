"""pack: values that are written once and shared by calls."""

from __future__ import annotations

import enum
from typing import Any

import numpy as np
import pytest
from calls_support import array, plain, source, tensor

import slangpy as spy
from slangpy.errors import BoundVariableException, ResolveException

SOURCE = """
struct Inner { int2 at; bool on; }
struct S { float x; float3 v; int n[3]; Inner inner; float2x2 m; }
float gs(S s) { return s.x + s.v.y + s.n[2] + s.inner.at.y + (s.inner.on ? 100 : 0) + s.m[1][0]; }
interface IShape { float area(); }
struct Square : IShape { float side; float area() { return side * side; } }
float area_of(IShape s) { return s.area(); }
float area_generic<T : IShape>(T s) { return s.area(); }
struct Counter { int n; [mutating] void step() { n += 1; } int twice() { return 2 * n; } }
float add(float a, float b) { return a + b; }
int iadd(int a, int b) { return a + b; }
float dot3(float3 a, float3 b) { return dot(a, b); }
float2x3 twice(float2x3 m) { return 2 * m; }
float sum4(float a[4]) { return a[0] + a[1] + a[2] + a[3]; }
float row(Tensor<float, 1> r) { float t = 0; for (int i = 0; i < r.shape[0]; i++) t += r[i]; return t; }
void fill(RWTensor<float, 1> t) { t[0] = 1; }
float first(StructuredBuffer<float> b) { return b[0] + b[1]; }
struct View { Tensor<float, 1> data; float scale; }
float through(View v, int i) { return v.data[i] * v.scale; }
struct Light { float power; float3 tint; }
ParameterBlock<Light> light;
float lit(float x) { return x * light.power + light.tint.y; }
[Differentiable] float square(float x) { return x * x; }
"""
pytestmark = pytest.mark.needs_kernels
S_VALUE = {
    "_type": "S", "x": 1.5, "v": spy.float3(1, 2, 3), "n": [1, 2, 3], "m": spy.float2x2(1, 2, 30, 4),
    "inner": {"at": spy.int2(5, 6), "on": True},
}  # fmt: skip
S_RESULT = 1.5 + 2 + 3 + 6 + 100 + 30


@pytest.fixture
def module(device: Any) -> Any:
    return source(device, "packed", SOURCE)


def test_a_struct(module: Any) -> None:
    packed = spy.pack(module, S_VALUE)
    assert module.gs(packed) == module.gs(S_VALUE) == S_RESULT
    assert module.gs(packed) == S_RESULT


def test_numbers_vectors_and_matrices(module: Any) -> None:
    assert module.add(spy.pack(module, 2.5), 1) == 3.5
    assert module.iadd(spy.pack(module, 2), spy.pack(module, np.int64(5))) == 7
    assert module.add(spy.pack(module, 2), spy.pack(module, True)) == 3.0
    assert module.dot3(spy.pack(module, spy.float3(1, 2, 3)), spy.float3(1)) == 6.0
    assert plain(module.add(spy.pack(module, spy.float3(1, 2, 3)), 1)) == [2, 3, 4]
    assert plain(module.twice(spy.pack(module, spy.float2x3(0, 1, 2, 3, 4, 5)))) == [[0, 2, 4], [6, 8, 10]]


class Level(enum.Enum):
    low = 3


def test_numbers_convert_as_they_do_unpacked(module: Any) -> None:
    assert module.iadd(spy.pack(module, Level.low), 1) == 4
    with pytest.raises(ValueError):
        module.iadd(spy.pack(module, 1.5), 1)
    with pytest.raises(OverflowError):
        module.iadd(spy.pack(module, 2**40), 1)


def test_lists_bind_whole_or_spread(module: Any) -> None:
    packed = spy.pack(module, [1, 2, 3, 4])
    assert module.sum4(packed) == 10.0
    assert plain(module.add(packed, 0.5)) == [1.5, 2.5, 3.5, 4.5]
    assert plain(module.iadd(packed, 1)) == [2, 3, 4, 5]
    assert plain(module.add(spy.pack(module, [[1, 2], [3, 4]]), 1)) == [[2, 3], [4, 5]]
    assert module.first(spy.pack(module, [2.0, 5.0])) == 7.0
    assert plain(module.dot3(spy.pack(module, [spy.float3(1), spy.float3(2)]), spy.float3(1, 2, 3))) == [6, 12]


def test_lists_are_written_once(module: Any) -> None:
    packed = spy.pack(module, list(range(1000)))
    for _ in range(3):
        np.testing.assert_array_equal(module.add(packed, 1, _result="numpy"), np.arange(1000) + 1)
    assert packed._uploads == 1  # for the parameter's float
    module.iadd(packed, 1)
    assert packed._uploads == 2


def test_a_list_of_structs_vectorises(module: Any) -> None:
    values = [{**S_VALUE, "x": float(i)} for i in range(4)]
    found = module.gs(spy.pack(module, values))
    assert plain(found) == [S_RESULT - 1.5 + i for i in range(4)]
    nested = module.gs(spy.pack(module, [values[:2], values[2:]]))
    assert np.array(plain(nested)).shape == (2, 2)


def test_fields_vectorise_one_by_one(module: Any, device: Any) -> None:
    packed = spy.pack(module, {**S_VALUE, "x": [1.0, 2.0], "v": tensor(device, 3, 1, 3)})
    rest = S_RESULT - 1.5 - 2
    assert plain(module.gs(packed)) == [[rest + x + v for x in (1, 2)] for v in (1, 4, 7)]


def test_missing_fields_are_zero(module: Any) -> None:
    assert module.gs(spy.pack(module, {"_type": "S", "x": 2.0})) == 2.0
    assert module.gs(spy.pack(module, {"_type": module.S})) == 0.0


def test_interfaces_and_generics(module: Any) -> None:
    packed = spy.pack(module, {"_type": "Square", "side": 3.0})
    assert module.area_of(packed) == 9.0
    assert module.area_generic(packed) == 9.0
    assert plain(module.area_of(spy.pack(module, [{"_type": "Square", "side": i} for i in (1.0, 2.0)]))) == [1, 4]


def test_later_changes_are_not_seen(module: Any) -> None:
    value = {"_type": "S", "x": 1.0, "v": spy.float3(1, 2, 3)}
    numbers, vector, host = [1.0, 2.0], spy.float3(1), array(3)
    packs = [spy.pack(module, v) for v in (value, numbers, vector, host)]
    value["x"] = 9.0
    value["v"].y = 9.0
    numbers[0] = vector.x = 9.0
    host[:] = 9
    assert module.gs(packs[0]) == 3.0
    assert plain(module.add(packs[1], 0)) == [1, 2]
    assert plain(module.add(packs[2], 0)) == [1, 1, 1]
    assert plain(module.add(packs[3], 0)) == [0, 1, 2]


def test_tensors_are_references(module: Any, device: Any) -> None:
    t = tensor(device, 3)
    packed, view = spy.pack(module, t), spy.pack(module, {"_type": "View", "data": t, "scale": 2.0})
    assert module.row(packed) == 3.0 and module.through(view, 2) == 4.0
    t.copy_from_numpy(np.array([1, 2, 5], np.float32))
    assert plain(module.add(packed, 1)) == [2, 3, 6]
    assert module.row(packed) == 8.0 and module.through(view, 2) == 10.0


def test_arrays_are_uploaded_once(module: Any) -> None:
    packed = spy.pack(module, array(2, 3))
    assert plain(module.add(packed, 1)) == [[1, 2, 3], [4, 5, 6]]
    assert plain(module.row(packed)) == [3, 12]
    assert plain(module.dot3(packed, spy.float3(1))) == [3, 12]
    flags = spy.pack(module, np.array([True, False]))
    with pytest.raises(ResolveException):
        module.add(flags, 1)


def test_objects_are_asked_when_packed(module: Any) -> None:
    class Holder:
        asked = 0

        def get_this(self) -> Any:
            self.asked += 1
            return {"_type": "S", "x": 4.0}

        def update_this(self, value: Any) -> None:
            raise AssertionError("a packed value is not written")

    holder = Holder()
    packed = spy.pack(module, holder)
    assert [module.gs(packed) for _ in range(3)] == [4.0] * 3 and holder.asked == 1


def test_instances_pack(module: Any, device: Any) -> None:
    shapes = spy.InstanceList(module.Square, {"side": tensor(device, 3)})
    assert plain(module.area_of(shapes.pack())) == [0, 1, 4]
    solid = spy.InstanceTensor(module.Square, (2,), spy.Tensor.zeros(device, (2,), dtype=module.Square))
    assert plain(module.area_of(solid.pack())) == [0, 0]


def test_this_may_be_packed(module: Any) -> None:
    packed = spy.pack(module, {"_type": "Counter", "n": 3})
    assert module.Counter.twice(packed) == 6
    assert module.Counter.twice(_this=packed) == 6
    assert module.Counter.twice.bind(packed)() == 6


def test_packing_twice_gives_the_same(module: Any) -> None:
    packed = spy.pack(module, 1.0)
    assert spy.pack(module, packed) is packed


def test_attributes(module: Any) -> None:
    packed = spy.pack(module, S_VALUE)
    assert packed.python_object is S_VALUE
    assert packed.python.slang_type.full_name == "S" and tuple(packed.python.get_shape(None)) == ()
    assert spy.pack(module, [S_VALUE] * 4).python.concrete_shape == (4,)
    assert isinstance(packed.shader_object, spy.ShaderObject)
    with pytest.raises(TypeError, match="no shader object"):
        spy.pack(module, [1, 2]).shader_object


def test_a_packed_value_fills_a_parameter_block(module: Any) -> None:
    packed = spy.pack(module, {"_type": "Light", "power": 3.0, "tint": spy.float3(1, 2, 3)})
    node = module.lit.set({"light": packed})
    assert node(2.0) == 8.0
    assert plain(node([1.0, 2.0])) == [5, 8]


def test_a_packed_value_is_read_only(module: Any, device: Any) -> None:
    with pytest.raises(ResolveException, match="read-only"):
        module.fill(spy.pack(module, tensor(device, 2)))
    with pytest.raises(ResolveException, match="read-only"):
        module.Counter.step(spy.pack(module, {"_type": "Counter", "n": 3}))
    with pytest.raises(ResolveException, match="_result"):
        module.add(1.0, 2.0, _result=spy.pack(module, 1.0))


def test_a_packed_value_gets_no_gradient(module: Any, device: Any) -> None:
    x, out = tensor(device, 3).with_grads(), tensor(device, 3).with_grads()
    with pytest.warns(RuntimeWarning, match="no argument has storage"):
        module.square.bwds(spy.pack(module, x), _result=out)
    assert plain(x.grad) == [0, 0, 0]


@pytest.mark.parametrize(
    "wrap", [lambda p: {"x": p}, lambda p: [p, p], lambda p: {"v": {"x": p}}, lambda p: spy.ValueRef(p)]
)
def test_a_packed_value_stands_at_the_top(module: Any, wrap: Any) -> None:
    with pytest.raises(BoundVariableException, match="must be a top level argument"):
        module.gs(wrap(spy.pack(module, 1.0)))
    with pytest.raises(BoundVariableException, match="must be a top level argument"):
        spy.pack(module, [spy.pack(module, 1.0)])


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        ({"x": 1.0}, ValueError, "_type"),
        ([{"x": 1.0}], ValueError, "_type"),
        ({"_type": "Nope"}, BoundVariableException, "Could not find type 'Nope'"),
        ({"_type": "S", "w": 1}, ValueError, "has no field 'w'"),
        ({"_type": "S", 3: 1}, BoundVariableException, "is not a string"),
        ("text", BoundVariableException, "Unsupported type str"),
        (None, BoundVariableException, "Unsupported type NoneType"),
        ({"_type": "S", "x": object()}, BoundVariableException, "value.x: Unsupported type object"),
        (1j, BoundVariableException, "Unsupported type complex"),
        ({"_type": "S", "n": [1, 2, 2**40]}, OverflowError, "n"),
    ],
)  # fmt: skip
def test_what_cannot_be_packed(module: Any, value: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        spy.pack(module, value)


def test_equal_kinds_share_a_plan(module: Any) -> None:
    one, two = (spy.pack(module, {**S_VALUE, "x": x}) for x in (1.0, 2.0))
    assert module.gs.debug_build_call_data(one) is module.gs.debug_build_call_data(two)
    short, long = spy.pack(module, [1.0, 2.0]), spy.pack(module, [1.0] * 9)
    assert module.add.debug_build_call_data(short, 1) is module.add.debug_build_call_data(long, 1)


def test_a_recorded_call_keeps_the_packed_value(module: Any, device: Any) -> None:
    out = spy.Tensor.zeros(device, (3,), dtype="float")
    encoder = device.create_command_encoder()
    module.add.append_to(encoder, spy.pack(module, [1, 2, 3]), 1.0, _result=out)
    device.submit_command_buffer(encoder.finish())
    assert plain(out) == [2, 3, 4]


def test_lists_of_structs_inside_of_a_struct_need_no_type(device: Any) -> None:
    text = "struct In { int k[2]; }\nstruct Out { In n[2]; float x; }\nfloat of(Out o) { return o.n[1].k[0] * 10 + o.x; }"
    m = source(device, "packed_lists", text)
    value = {"_type": "Out", "n": [{"k": [1, 2]}, {"k": [3, 4]}], "x": 0.5}
    assert m.of(spy.pack(m, value)) == m.of(value) == 30.5
    with pytest.raises(ValueError, match=r"value\[0\] is a dict without '_type'"):
        spy.pack(m, [{"x": 1.0}])
