"""Lists of dicts that hold resources, addresses or containers, and lists for tensor and buffer parameters:
one struct for each invocation, arrays of structs, temporaries."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from calls_support import array, plain, source, tensor

import slangpy as spy
from slangpy.errors import KernelGenException, ResolveException

pytestmark = [
    pytest.mark.needs_kernels,
    pytest.mark.elsewhere(
        "31", "test_buffers_of_a_list_are_written_each_at_its_place", "test_addresses_in_lists",
        "test_tensors_in_an_array_of_structs", "test_textures_in_a_list_of_dicts",
    ),
]  # fmt: skip

SOURCE = """
import slangpy;
struct S { float x; float3 v; }
float gs(S s) { return s.x + s.v.y; }
float both(S s[2]) { return s[0].x + 10 * s[1].v.y; }
float grid(S s[2][3]) { return s[0][2].x + 10 * s[1][0].x; }
struct In { float a; float2 b[2]; }
struct Nest { In i; int k; In arr[2]; }
float nest(Nest n) { return n.i.a + n.i.b[1].y + n.k + n.arr[1].a + n.arr[1].b[0].x; }
struct B { StructuredBuffer<float> b; int k; }
float at(B s, int i) { return s.b[i] * s.k; }
float two(B s[2], int i) { return s[0].b[i] * s[0].k + s[1].b[i] * s[1].k; }
struct W { RWStructuredBuffer<float> b; StructuredBuffer<float> from; }
void copy(W s, int i) { s.b[i] = s.from[i]; }
void copy_two(W s[2], int i) { s[0].b[i] = s[1].from[i]; s[1].b[i] = s[0].from[i]; }
struct P { float* p; float k; }
float point(P s, int i) { return s.p[i] * s.k; }
float points(P s[2], int i) { return s[0].p[i] * 10 + s[1].p[i]; }
float read(float* p, int i) { return p[i]; }
float reads(float* p[2], int i) { return p[0][i] * 10 + p[1][i]; }
struct T { Tensor<float, 1> t; float k; }
float tat(T s, int i) { return s.t[i] * s.k; }
float ttwo(T s[2], int i) { return s[0].t[i] * s[0].k + s[1].t[i] * s[1].k; }
struct Deep { T in[2]; float z; }
float deep(Deep d, int i) { return d.in[0].t[i] * 10 + d.in[1].t[i] * d.in[1].k + d.z; }
struct Written { RWTensor<float, 1> t; }
void fill(Written s[2], int i) { s[0].t[i] = 1; s[1].t[i] = 2; }
struct Tex { Texture2D<float4> t; float k; }
float texel(Tex s, int i) { return s.t.Load(int3(i, 0, 0)).x * s.k; }
float3 third(StructuredBuffer<float3> b, int i) { return b[i]; }
float entry(StructuredBuffer<S> b, int i) { return b[i].x + b[i].v.y; }
float3 vector_at(Tensor<float3, 1> t, int i) { return t[i]; }
float struct_at(Tensor<S, 1> t, int i) { return t[i].x + t[i].v.y; }
float4 matrix_row(Tensor<float2x2, 1> t, int i) { let m = t[i]; return float4(m[0], m[1]); }
float raw(ByteAddressBuffer b, int i) { return b.Load<float>(i * 4); }
float3 f3(float3 a) { return a; }
float2x2 m22(float2x2 a) { return a; }
float sum4(float a[4]) { return a[0] + a[1] + a[2] + a[3]; }
"""
USAGE = spy.BufferUsage.shader_resource | spy.BufferUsage.unordered_access


@pytest.fixture
def module(device: Any) -> Any:
    return source(device, "spec_struct_lists", SOURCE)


def buffer(device: Any, offset: int = 0) -> Any:
    return device.create_buffer(data=array(4) + offset, usage=USAGE, struct_size=4)


def struct(x: float) -> dict[str, Any]:
    return {"x": x, "v": spy.float3(1, 2, 3)}


def content(buffer: Any) -> list[float]:
    return buffer.to_numpy().view(np.float32).tolist()


@pytest.mark.parametrize("length", [1, 2, 3, 31])
def test_buffers_in_a_list_of_dicts(module: Any, device: Any, length: int) -> None:
    structs = [{"b": buffer(device, k), "k": 2} for k in range(length)]
    np.testing.assert_array_equal(module.at(structs, 1, _result="numpy"), 2.0 * (np.arange(length) + 1))
    kinds = [{"b": tensor(device, 4), "k": 1}, {"b": array(4) + 10, "k": 1}]
    assert plain(module.at(kinds, 3)) == [3, 13]
    np.testing.assert_array_equal(
        module.at.map((0,), (1,))(structs, [0, 1, 2, 3], _result="numpy"),
        2 * (np.arange(length)[:, None] + np.arange(4)),
    )


def test_buffers_of_a_list_are_written_each_at_its_place(module: Any, device: Any) -> None:
    targets = [buffer(device), buffer(device)]
    structs = [{"b": targets[0], "from": buffer(device, 10)}, {"b": targets[1], "from": buffer(device, 20)}]
    module.copy(structs, [0, 3])
    assert [content(t) for t in targets] == [[10, 1, 2, 3], [0, 1, 2, 23]]
    module.copy_two(structs, 1)
    assert [content(t) for t in targets] == [[10, 21, 2, 3], [0, 11, 2, 23]]
    read_only = device.create_buffer(data=array(4), usage=spy.BufferUsage.shader_resource)
    with pytest.raises(ResolveException, match="read-only"):
        module.copy([{"b": read_only, "from": read_only}], 0)


def test_buffers_in_an_array_of_structs(module: Any, device: Any) -> None:
    structs = [{"b": buffer(device), "k": 2}, {"b": buffer(device, 10), "k": 3}]
    assert module.two(structs, 1) == 35
    assert plain(module.two(structs, [0, 1])) == [30, 35]
    assert plain(module.two([{**structs[0], "k": 1}, {**structs[1], "k": 1}], [0, 1, 2])) == [10, 12, 14]
    with pytest.raises(ResolveException, match="takes 2"):
        module.two(structs * 2, 1)
    with pytest.raises(ResolveException, match="field 'b' is a resource"):
        module.two([{"k": 1}, {"k": 2}], 1)


def test_addresses_in_lists(module: Any, device: Any) -> None:
    first, second = buffer(device), buffer(device, 10)
    assert plain(module.point([{"p": first, "k": 2}, {"p": second, "k": 3}], 1)) == [2, 33]
    addresses = [first.device_address, second.device_address]
    assert plain(module.point([{"p": a, "k": 1} for a in addresses], 1)) == [1, 11]
    assert plain(module.point([{"p": addresses[0], "k": 1}, {"p": second, "k": 1}], 2)) == [2, 12]
    assert module.points([{"p": first}, {"p": second}], 1) == 21
    assert plain(module.points([{"p": a} for a in addresses], [0, 1])) == [10, 21]
    assert plain(module.read(addresses, 3)) == [3, 13]
    assert plain(module.read([first, second], [[0], [3]])) == [[0, 10], [3, 13]]
    assert module.reads(addresses, 1) == 21
    assert plain(module.reads([addresses, addresses[::-1]], 1)) == [21, 111]
    assert module.reads([first, second], 1) == 21


def test_tensors_in_an_array_of_structs(module: Any, device: Any) -> None:
    structs = [{"t": tensor(device, 4), "k": 2.0}, {"t": array(6) + 10, "k": 3.0}]
    assert plain(module.tat(structs, 1)) == [2, 33]
    assert plain(module.ttwo(structs, [0, 1, 2, 3])) == [30, 35, 40, 45]
    written = [{"t": tensor(device, 3)}, {"t": np.zeros(3, np.float32)}]
    module.fill(written, [0, 2])
    assert plain(written[0]["t"]) == [1, 1, 1] and written[1]["t"].tolist() == [2, 0, 2]
    parts = [{"t": tensor(device, 4)}, {"t": tensor(device, 4), "k": 2.0}]
    with pytest.raises(Exception, match="equal fields"):
        module.deep({"in": parts}, 1)
    parts[0]["k"] = 0.0
    assert plain(module.deep({"in": parts, "z": [0.0, 100.0]}, 1)) == [12, 112]
    assert module.deep({"in": [{"t": tensor(device, 4)}, {"t": tensor(device, 4)}]}, 1) == 10  # k and z are zero


def test_lists_of_arrays_of_structs(module: Any, device: Any) -> None:
    assert plain(module.both([[struct(1.0), struct(5.0)], [struct(2.0), struct(6.0)]])) == [21, 22]
    assert module.both([struct(1.0), struct(2.0)]) == 21
    rows = [[struct(float(3 * r + c)) for c in range(3)] for r in range(2)]
    assert module.grid(rows) == 32
    assert plain(module.grid([rows, rows[::-1]])) == [32, 5]
    one = {
        "i": {"a": 1.0, "b": [spy.float2(1, 2), spy.float2(3, 4)]},
        "k": 2,
        "arr": [{"a": 1.0, "b": [[1, 2], [3, 4]]}, {"a": 10.0, "b": [[100, 2], [3, 4]]}],
    }
    assert module.nest(one) == 117
    assert plain(module.nest([one, {**one, "k": 3}, one])) == [117, 118, 117]
    assert plain(module.nest({**one, "k": np.arange(3, dtype=np.int32)})) == [115, 116, 117]
    with pytest.raises(ResolveException, match="takes 2"):
        module.both([[struct(1.0)] * 3])
    with pytest.raises(KernelGenException, match="has no field 'w'"):
        module.both([[{"w": 1}] * 2])


def test_lists_for_buffers_and_tensors_of_vectors_and_structs(module: Any, device: Any) -> None:
    vectors = [[1, 2, 3], [4, 5, 6]]
    assert module.third(vectors, 1) == spy.float3(4, 5, 6)
    assert module.third([spy.float3(1, 2, 3), spy.float3(4, 5, 6)], 1) == spy.float3(4, 5, 6)
    assert module.vector_at(vectors, 0) == spy.float3(1, 2, 3)
    assert plain(module.vector_at([vectors, vectors[::-1]], 0)) == [[1, 2, 3], [4, 5, 6]]
    assert plain(module.entry([struct(1.0), struct(2.0)], [0, 1])) == [3, 4]
    assert plain(module.struct_at(({"_type": "S", **struct(1.0)}, {"_type": "S", **struct(2.0)}), [1, 0])) == [4, 3]
    assert plain(module.struct_at([[{"x": 1}, {"x": 2}], [{"x": 3}, {"x": 4}]], 1)) == [2, 4]
    assert module.matrix_row([[[1, 2], [3, 4]]], 0) == spy.float4(1, 2, 3, 4)
    assert module.matrix_row([spy.float2x2(1, 2, 3, 4)], 0) == spy.float4(1, 2, 3, 4)
    assert module.raw([1.0, 2.5], 1) == 2.5
    packed = spy.pack(module, vectors)
    assert module.vector_at(packed, 1) == module.third(packed, 1) == spy.float3(4, 5, 6)
    with pytest.raises(ResolveException, match="trailing shape"):
        module.third([[1, 2], [3, 4]], 0)
    with pytest.raises(ResolveException, match="does not match"):
        module.third([spy.int3(1)], 0)
    with pytest.raises(ResolveException, match="no field|does not match|_type"):
        module.struct_at([{"_type": "In", "a": 1}], 0)
    with pytest.raises(KernelGenException, match="has no field 'w'"):
        module.struct_at([{"w": 1}], 0)


def test_an_empty_list_takes_any_element_type(module: Any) -> None:
    assert module.f3([], _result="numpy").shape == (0, 3)
    assert module.m22([], _result="numpy").shape == (0, 2, 2)
    assert plain(module.gs([])) == plain(module.sum4(())) == []
    assert module.f3([[], []], _result="numpy").shape == (2, 0, 3)
    assert plain(module.vector_at([], [])) == []


def test_textures_in_a_list_of_dicts(module: Any, device: Any) -> None:
    if device.info.type == spy.DeviceType.cpu:
        pytest.skip("no textures on the CPU")
    formats = {"type": spy.TextureType.texture_2d, "format": spy.Format.rgba32_float, "width": 4, "height": 1}
    texels = [np.repeat((array(4) + 10 * k)[None, :, None], 4, 2) for k in range(3)]
    textures = [device.create_texture(**formats, usage=spy.TextureUsage.shader_resource, data=t) for t in texels]
    assert plain(module.texel([{"t": t, "k": 2.0} for t in textures], 1)) == [2, 22, 42]


def test_more_buffers_than_the_device_binds_are_an_error(module: Any, device: Any) -> None:
    structs = [{"b": buffer(device, k), "k": 1} for k in range(40)]
    try:
        found = module.at(structs, 1, _result="numpy")
    except ValueError as error:
        assert "takes" in str(error) and "buffers" in str(error) and "allows" in str(error)
        return
    np.testing.assert_array_equal(found, np.arange(40) + 1.0)
