"""Structs: constructors, methods, nested types, names, and Python objects that stand for instances."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from calls_support import array, load, plain, source, tensor, tensor_of

import slangpy as spy
from slangpy import float2, float3

pytestmark = [
    pytest.mark.needs_kernels,
    pytest.mark.elsewhere(
        "test_methods", "test_mutating_methods", "test_struct_values", "test_nested_structs", "test_instance_list",
        "test_modules_may_share_names_of_structs",
    ),
]  # fmt: skip


@pytest.fixture
def m(device: Any) -> spy.Module:
    return load(device, "structs")


# --- constructors


def test_constructor(m: spy.Module, device: Any) -> None:
    assert plain(m.Dot(float2(1, 2), float2(3, 4))) == {"p": [1, 2], "v": [3, 4]}
    assert plain(m.Dot(p=float2(1, 2), v=float2(3, 4))) == {"p": [1, 2], "v": [3, 4]}
    made = m.Dot(tensor(device, 3, 2), float2(3, 4))
    assert isinstance(made, spy.Tensor) and made.shape == (3,) and made.dtype.full_name == "Dot"
    assert plain(m.Dot.scaled(made, 2)) == [0, 4, 8]


def test_constructor_overloads(m: spy.Module) -> None:
    assert plain(m.Counter()) == {"value": 41}
    assert plain(m.Counter(5)) == {"value": 5}
    assert plain(m.Counter.get(m.Counter([1, 2]))) == [1, 2]


def test_memberwise_constructor(m: spy.Module, device: Any) -> None:
    assert plain(m.Pod(1.0, 2, float3(3, 4, 5))) == {"x": 1, "n": 2, "v": [3, 4, 5]}
    assert plain(m.Pod(x=1.0, n=2, v=float3(3, 4, 5))) == {"x": 1, "n": 2, "v": [3, 4, 5]}
    assert plain(m.sum_pod(m.Pod(tensor(device, 3), 2, float3(1)))) == [5, 6, 7]


def test_memberwise_constructor_by_name(device: spy.Device) -> None:
    text = (
        "struct Inner { float q; }\n"
        "struct Some { float a; int b = 4; bool c; float2 v; Inner i; float3 w = float3(1, 2, 3); float last; }\n"
    )
    m = source(device, "structs_by_name", text)
    assert plain(m.Some(v=[1, 2])) == {
        "a": 0, "b": 4, "c": False, "v": [1, 2], "i": {"q": 0}, "w": [1, 2, 3], "last": 0,
    }  # fmt: skip
    assert plain(m.Some(i={"q": 5.0}, b=7))["i"] == {"q": 5}
    with pytest.raises(spy.ResolveException, match="'w' not specified, and its default value cannot be read"):
        m.Some(last=1.0)
    # a constructor of the user's may look like Slang's, but its defaults are not those of the fields
    own = "struct Own { float2 p; float q; __init(float2 p = float2(1, 2), float q = 3) { this.p = p; this.q = q; } }\n"
    m = source(device, "structs_by_name_own", own)
    assert plain(m.Own()) == {"p": [1, 2], "q": 3}
    with pytest.raises(spy.ResolveException, match="'p' not specified, and its default value cannot be read"):
        m.Own(q=1.0)


def test_default_value(m: spy.Module) -> None:
    assert plain(m.Pod()) == {"x": 0, "n": 0, "v": [0, 0, 0]}
    assert plain(m.Defaults()) == {"x": 2.5, "n": 7}


def test_explicit_init_name(m: spy.Module) -> None:
    assert plain(m.Counter["__init"](5)) == {"value": 5}


def test_constructor_of_a_generic(m: spy.Module) -> None:
    struct = m["Gen<float,2>"]
    assert plain(struct([1.0, 2.0])) == {"values": [1, 2]}
    assert plain(struct.first({"values": [5.0, 6.0]})) == 5.0


def test_modules_may_share_names_of_structs(device: spy.Device) -> None:
    one = source(
        device,
        "structs_shared_one",
        "struct Shared<T, let N : int> { T values[N]; T last() { return values[N - 1]; } }\n"
        "struct Spot { float a; }\nfloat at(Spot s) { return s.a; }",
    )
    two = source(
        device,
        "structs_shared_two",
        "struct Shared<T, let N : int> { T more; T values[N]; T last() { return more; } }\n"
        "struct Spot { float b; float a; }\nfloat at(Spot s) { return s.a + 10 * s.b; }",
    )
    assert plain(one["Shared<float,2>"]([1.0, 2.0])) == {"values": [1, 2]}
    assert plain(two["Shared<float,2>"](3.0, [1.0, 2.0])) == {"more": 3, "values": [1, 2]}
    assert plain(one["Shared<int,3>"]([1, 2, 3])) == {"values": [1, 2, 3]}
    assert plain(one["Shared<float,2>"].last({"values": [5.0, 6.0]})) == 6.0
    assert plain(two["Shared<float,2>"].last({"more": 4.0, "values": [5.0, 6.0]})) == 4.0
    first, second = one.Spot(array(3)), two.Spot(1.0, array(3))
    for _ in range(2):  # tensors of one module's struct never reach kernels of the other's
        assert plain(one.at(first)) == [0, 1, 2] and plain(two.at(second)) == [10, 11, 12]
        with pytest.raises(spy.ResolveException, match="another struct Spot"):
            one.at(second)
        with pytest.raises(spy.ResolveException, match="another struct Spot"):
            two.at(first)
    same = source(device, "structs_shared_three", "struct Spot { float a; }\nfloat at(Spot s) { return 2 * s.a; }")
    assert plain(same.at(first)) == [0, 2, 4]


def test_too_many_constructor_arguments(m: spy.Module) -> None:
    with pytest.raises(spy.ResolveException, match="Pod"):
        m.Pod(1, 2, float3(1), 4)


# --- methods


def test_methods(m: spy.Module, device: Any) -> None:
    assert m.Dot.speed({"p": float2(0), "v": float2(3, 4)}) == 5.0
    assert m.Dot.speed(_this={"v": float2(3, 4)}) == 5.0
    assert plain(m.Dot.scaled({"p": tensor(device, 3, 2)}, 2)) == [0, 4, 8]
    assert plain(m.Dot.scaled(s=2, _this={"p": tensor(device, 3, 2)})) == [0, 4, 8]
    spread = m.Dot.scaled.map(_this={"p": (1,)}, s=(0,))
    assert plain(spread(s=tensor(device, 2), _this={"p": tensor(device, 3, 2)})) == [[0, 0, 0], [0, 2, 4]]
    assert m.Dot["speed"]({"v": float2(3, 4)}) == 5.0


def test_method_overloads(m: spy.Module) -> None:
    assert m.Dot.over({}, 1) == 1
    assert m.Dot.over({}, 1.0) == 2


def test_static_methods(m: spy.Module, device: Any) -> None:
    assert m.Dot.half_of(5.0) == 2.5
    assert plain(m.Dot.half_of(tensor(device, 3))) == [0, 0.5, 1]
    dots = spy.InstanceList(m.Dot, {"p": spy.float2(1, 2), "v": tensor(device, 3, 2)})
    assert dots.half_of(5.0) == 2.5 and plain(dots.half_of([1, 2])) == [0.5, 1]


def test_mutating_methods(m: spy.Module, device: Any) -> None:
    dots = m.Dot(np.zeros((3, 2), np.float32), array(3, 2))
    m.Dot.step(dots, 2.0)
    assert plain(m.Dot.scaled(dots, 1)) == [0, 4, 8]
    soa = {"p": tensor(device, 3, 2), "v": float2(1, 0)}
    m.Dot.step(soa, 1.0)
    assert plain(soa["p"]) == [[1, 1], [3, 3], [5, 5]]
    assert soa["v"] == float2(1, 0)
    one = spy.ValueRef({"_type": "Counter", "value": 3})
    assert m.Counter.next(one) == 4
    assert one.value["value"] == 4
    m.Counter.add({"value": 3}, 1)  # what would be written to a plain dict is dropped


def test_bind(m: spy.Module) -> None:
    speed = m.Dot.speed.bind({"v": float2(3, 4)})
    assert speed() == 5.0
    assert m.Dot.speed.bind({"v": float2(3, 4)}).bind({"v": float2(6, 8)})() == 10.0
    assert m.Dot.scaled.bind({"p": float2(2, 0)})(s=3.0) == 6.0


def test_this_missing(m: spy.Module) -> None:
    with pytest.raises(spy.ResolveException, match="'this' not specified"):
        m.Dot.speed()
    with pytest.raises(spy.ResolveException):
        m.Dot.speed(3.0)


# --- struct values


def test_struct_values(m: spy.Module, device: Any) -> None:
    assert plain(m.make_pod(2.0)) == {"x": 2, "n": 3, "v": [2, 4, 6]}
    pods = m.make_pod(tensor(device, 2))
    assert plain(m.sum_pod(pods)) == [1, 9]
    m.grow(pods, 2.0)
    assert plain(m.sum_pod(pods)) == [1, 16]
    out = {"x": np.zeros(2, np.float32), "v": np.zeros((2, 3), np.float32)}
    m.fill(out, array(2))
    assert out["x"].tolist() == [0, 1] and out["v"].tolist() == [[0, 0, 0], [1, 2, 3]]
    result = {"x": tensor(device, 2), "n": np.zeros(2, np.int32)}
    assert m.make_pod(array(2), _result=result) is result
    assert plain(result) == {"x": [0, 1], "n": [1, 2]}
    ref = spy.ValueRef({"_type": "Pod"})
    m.fill(ref, 3.0)
    assert plain(ref.value) == {"x": 3, "n": 4, "v": [3, 6, 9]}


def test_structured_numpy_result(m: spy.Module) -> None:
    pods = m.make_pod(array(3), _result="numpy")
    assert pods.dtype.names == ("x", "n", "v")
    assert pods["x"].tolist() == [0, 1, 2] and pods["n"].tolist() == [1, 2, 3]
    assert pods["v"].tolist() == [[0, 0, 0], [1, 2, 3], [2, 4, 6]]


def test_nested_structs(m: spy.Module, device: Any) -> None:
    assert plain(m.make_outer(2.0)) == {"inner": {"a": 2.0}}
    assert plain(m.get_outer({"inner": {"a": tensor(device, 3)}})) == [0, 1, 2]
    assert plain(m.get_outer([{"inner": {"a": 1.0}}, {"inner": {"a": 2.0}}])) == [1, 2]
    assert m.Outer.Inner.twice({"a": 3.0}) == 6.0


# --- names


def test_type_names(m: spy.Module) -> None:
    assert m["Outer::Inner"].full_name == "Outer.Inner"
    assert m.Outer.Inner.full_name == "Outer.Inner"
    assert m.Color.full_name == "vector<float,4>"
    assert m.PodAlias.full_name == "Pod"
    assert m["Gen<float,3>"].full_name.replace(" ", "") == "Gen<float,3>"
    assert m.Gen.is_generic
    for name, full in {
        "float": "float", "float3": "vector<float,3>", "uint2": "vector<uint,2>", "half3": "vector<half,3>", "double": "double",
        "uint64_t": "uint64_t", "float3x4": "matrix<float,3,4>", "vector<float,3>": "vector<float,3>", "float[4]": "float[4]",
        "float2[4]": "vector<float,2>[4]", "Tensor<float,2>": "Tensor<float, 2>",
    }.items():  # fmt: skip
        assert m[name].full_name == full
    for name in ("StructuredBuffer<float>", "Texture2D<float4>", "Ptr<float>", "float*", "Kind", "INamed"):
        assert isinstance(m[name], spy.Struct)
    assert m.require_struct("Pod").name == "Pod"
    assert m.find_struct("Nope") is None
    with pytest.raises(ValueError, match="Could not find struct 'Nope'"):
        m.require_struct("Nope")


def test_function_names(m: spy.Module) -> None:
    assert m.sum_pod is m.sum_pod and m["sum_pod"] is m.sum_pod
    assert m["deep::er::f"](2.0) == 6.0
    assert m.find_function("nope") is None
    with pytest.raises(ValueError, match="Could not find function 'nope'"):
        m.require_function("nope")
    assert m.find_function_in_struct("Dot", "speed").name == "speed"
    assert m.find_function_in_struct(m.Dot, "speed")({"v": float2(3, 4)}) == 5.0
    assert m.find_function_in_struct("Dot", "nope") is None


@pytest.mark.parametrize("name", ["nope", "hidden_global", "deep"])
def test_no_such_name(m: spy.Module, name: str) -> None:
    with pytest.raises(AttributeError, match=f"Module 'calls_structs' has no function or type named '{name}'"):
        m[name]


def test_struct_attributes(m: spy.Module) -> None:
    pod = m.Pod
    assert list(pod.fields) == ["x", "n", "v"] and pod.fields["v"].type.full_name == "vector<float,3>"
    assert pod.as_struct() is pod and m.float3.shape == (3,) and m.float3.element_type.full_name == "float"
    with pytest.raises(ValueError, match="Cannot convert a struct to a function"):
        pod.as_func()
    with pytest.raises(ValueError, match="Cannot convert a function to a struct"):
        m.sum_pod.as_struct()
    with pytest.raises(AttributeError, match="Struct 'Pod' has no method or sub-type named 'nope'"):
        pod.nope
    assert pod.try_get_child("nope") is None


def test_item_access_sees_slang_names_only(device: Any) -> None:
    module = source(
        device, "calls_hiding", "float name(float x) { return x + 1; }\nstruct S { float name() { return 2; } }"
    )
    assert module["name"](1.0) == 2.0
    assert module.name == "calls_hiding"
    assert module.S["name"]({}) == 2.0


# --- instances


def test_instance_tensor(m: spy.Module) -> None:
    dots = spy.InstanceTensor(m.Dot, shape=(3,))
    dots.construct(p=float2(0), v=float2(3, 4))
    dots.step(0.5)
    assert plain(dots.speed()) == [5, 5, 5]
    assert plain(dots.tensor.cursor()[2].read()) == {"p": [1.5, 2], "v": [3, 4]}
    assert dots.shape == (3,)
    assert dots.to_numpy().shape == (3, 16)


def test_instance_list(m: spy.Module, device: Any) -> None:
    soa = spy.InstanceList(m.Dot, {"p": tensor(device, 3, 2), "v": float2(1, 0)})
    soa.step(1.0)
    assert plain(soa.p) == [[1, 1], [3, 3], [5, 5]]
    assert soa.v == float2(1, 0)
    soa.v = float2(0, 2)
    soa.step(1.0)
    assert plain(soa.p) == [[1, 3], [3, 5], [5, 7]]
    assert plain(soa.scaled.map(s=(0,))(s=tensor_of(device, [1, 2, 3]))) == [1, 6, 15]
    with pytest.raises(AttributeError, match="no field or method named 'nope'"):
        soa.nope
    with pytest.raises(ValueError, match="has no field 'q'"):
        spy.InstanceList(m.Dot, {"q": 1})


def test_instance_subclass(m: spy.Module) -> None:
    class Swarm(spy.InstanceList):
        def __init__(self) -> None:
            super().__init__(m.Dot, {"p": np.zeros((2, 2), np.float32), "v": float2(1, 2)})
            self.age = 0

        def tick(self) -> None:
            self.step(1.0)
            self.age += 1

    swarm = Swarm()
    swarm.tick()
    assert swarm.age == 1 and swarm.p.tolist() == [[1, 2], [1, 2]]


def test_get_this_is_asked_once(m: spy.Module) -> None:
    class Holder:
        def __init__(self) -> None:
            self.asked, self.updated = 0, []
            self.data: Any = {"_type": "Counter", "value": np.array([1, 2], np.int32)}

        def get_this(self) -> Any:
            self.asked += 1
            return self.data

        def update_this(self, value: Any) -> None:
            self.updated.append(value)

    holder = Holder()
    for count in (1, 2, 3):  # the first call plans, the others do not
        assert plain(m.Counter.next(holder)) == [1 + count, 2 + count]
        assert holder.asked == count
        assert len(holder.updated) == count and holder.updated[-1] is holder.data
    holders = [Holder(), Holder()]
    holders[0].data = {"value": 5}
    holders[1].data = {"value": 6}
    assert plain(m.Counter.get(holders)) == [5, 6]
    assert [h.asked for h in holders] == [1, 1]


def test_nested_get_this(m: spy.Module, device: Any) -> None:
    class Field:
        def get_this(self) -> Any:
            return tensor(device, 3)

    class Whole:
        def get_this(self) -> Any:
            return {"inner": {"a": Field()}}

    assert plain(m.get_outer(Whole())) == [0, 1, 2]


def test_get_this_returning_itself(m: spy.Module) -> None:
    class Loop:
        def get_this(self) -> Any:
            return self

    with pytest.raises(spy.BoundVariableException, match="returned the object itself"):
        m.sum_pod(Loop())


def test_errors_of_get_this_are_passed_on(m: spy.Module) -> None:
    class Broken:
        def get_this(self) -> Any:
            raise LookupError("not today")

    with pytest.raises(LookupError, match="not today"):
        m.sum_pod(Broken())
    assert m.sum_pod({"x": 1}) == 1.0
