"""Plain layouts: the table of value layouts, and bindings compared with what Slang emits."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import pytest

PACKED = {  # size, alignment with scalar layout: Vulkan, D3D12 buffers
    "bool": (4, 4), "bool2": (8, 4), "bool3": (12, 4), "bool4": (16, 4),
    "float2": (8, 4), "float3": (12, 4), "float4": (16, 4),
    "half2": (4, 2), "half3": (6, 2), "half4": (8, 2),
    "double2": (16, 8), "double3": (24, 8), "double4": (32, 8), "vector<int64_t,2>": (16, 8),
    "vector<uint8_t,3>": (3, 1), "vector<uint8_t,4>": (4, 1),
    "float2x2": (16, 4), "float2x3": (24, 4), "float3x3": (36, 4), "float3x4": (48, 4), "float4x4": (64, 4),
    "half3x3": (18, 2),
}  # fmt: skip
CPU = {**PACKED, "bool": (1, 1), "bool2": (2, 1), "bool3": (3, 1), "bool4": (4, 1)}
CUDA = {
    **CPU, "bool2": (2, 2), "bool4": (4, 4), "float2": (8, 8), "float4": (16, 16), "half2": (4, 4), "half3": (8, 4),
    "half4": (8, 4), "double2": (16, 16), "double4": (32, 16), "vector<int64_t,2>": (16, 16),
    "vector<uint8_t,4>": (4, 4), "float2x2": (16, 8), "float3x4": (48, 16), "float4x4": (64, 16), "half3x3": (24, 4),
}  # fmt: skip
STRUCTS = """
struct A { float x; float3 v; }
struct B { float x; float4 v; }
struct C { half h; float2 v; double d; int8_t c; }
struct D { bool b; bool3 t; int i; }
struct I { uint64_t a; int b; }
struct J { I i; float f; }
struct Node { float value; Node* next; }
"""
OFFSETS = {  # offsets, stride
    "spirv": {
        "A": ([0, 4], 16),
        "B": ([0, 4], 20),
        "C": ([0, 4, 16, 24], 32),
        "D": ([0, 4, 16], 20),
        "J": ([0, 12], 16),
    },
    "cpp": {"A": ([0, 4], 16), "B": ([0, 4], 20), "C": ([0, 4, 16, 24], 32), "D": ([0, 1, 4], 8), "J": ([0, 16], 24)},
    "cuda": {"A": ([0, 4], 16), "B": ([0, 16], 32), "C": ([0, 8, 16, 24], 32), "D": ([0, 1, 4], 8), "J": ([0, 16], 24)},
}
OFFSETS["hlsl"] = OFFSETS["spirv"]
FORMATS = {"spirv": PACKED, "hlsl": PACKED, "cpp": CPU, "cuda": CUDA}


@pytest.mark.parametrize("code_format", FORMATS)
def test_value_layouts(new_session: Callable[..., Any], code_format: str) -> None:
    layout = new_session(code_format).load_module_from_source("m", STRUCTS).layout
    for name, (size, alignment) in FORMATS[code_format].items():
        element = layout.element_layout(layout.find_type_by_name(name))
        assert (name, element.size, element.alignment) == (name, size, alignment)
        assert element.stride == -(-size // alignment) * alignment
    for name, (offsets, stride) in OFFSETS[code_format].items():
        element = layout.element_layout(layout.find_type_by_name(name))
        assert (name, [item["offset"] for item in element.fields], element.stride) == (name, offsets, stride)


def test_padded_rows(new_session: Callable[..., Any]) -> None:
    layout = new_session("cuda").load_module_from_source("m", STRUCTS).layout
    half = layout.element_layout(layout.find_type_by_name("half3x3"))
    assert half.element_stride == 8 and half.row_major and (half.rows, half.cols) == (3, 3)
    array = layout.element_layout(layout.find_type_by_name("half3[2]"))
    assert array.element_stride == 8 and array.element_count == 2 and array.element.cols == 3


def test_pointers_to_themselves(new_session: Callable[..., Any]) -> None:
    layout = new_session("cuda").load_module_from_source("m", STRUCTS).layout
    node = layout.element_layout(layout.find_type_by_name("Node"))
    pointer = node.fields[1]["type"]
    assert (node.size, pointer.kind.name, pointer.size) == (16, "pointer", 8)
    inner = pointer.element
    assert inner.full_name == "Node" and inner.size == 16 and inner.fields[1]["type"].element is None


def test_buffer_views(new_session: Callable[..., Any]) -> None:
    layout = (
        new_session("spirv").load_module_from_source("m", "struct Mat { float3 albedo; int id; float w[2]; }").layout
    )
    buffer = layout.get_type_layout(layout.find_type_by_name("StructuredBuffer<Mat>"))
    element = buffer.element_type_layout
    assert element.stride == 24 and [item.offset for item in element.fields] == [0, 12, 16]
    assert element.plain.size == 24 and element.plain.fields[2]["type"].element_count == 2
    assert layout.get_type_layout(layout.find_type_by_name("float")).element_type_layout is None


PROGRAM = """
struct Inner { float q; float4x4 m; StructuredBuffer<int> sb; }
struct Mat { float3 albedo; int id; Texture2D<float4> tex; float w[2]; }
struct Light {
    float power; float3 tint; RWStructuredBuffer<float> sink; ConstantBuffer<Inner> inner; Texture2D<float4> a[2];
}
struct Row { float3 v; float f; }
uniform float gain;
uniform float3x4 gm;
ConstantBuffer<Inner> cb;
ParameterBlock<Light> light;
Texture2D<float4> texs[3];
SamplerState samp;
uniform Mat mats[2];
RWTexture2D<float4> rw;
ParameterBlock<Inner> pb2;
[shader("compute")] [numthreads(8, 8, 1)]
void go(uint3 tid : SV_DispatchThreadID, uniform float a, uniform float3 b, StructuredBuffer<Row> x,
        RWStructuredBuffer<float> y, uniform double d, uniform uint n, uniform bool3 flags) {
    float4 r = texs[tid.x % 3].SampleLevel(samp, 0, 0);
    r += light.a[1].SampleLevel(samp, 0, 0) + light.a[0].SampleLevel(samp, 0, 0);
    r += mats[0].tex.SampleLevel(samp, 0, 0) * mats[0].w[1] + mats[1].tex.SampleLevel(samp, 0, 0) * mats[1].id;
    r.xyz += mul(gm, r) * gain + b * a + light.tint * light.power;
    r.x += cb.q * cb.m[2][3] + cb.sb[0] + light.inner.q + light.inner.sb[1] * light.inner.m[0][0];
    r.y += x[0].f + float(d) + pb2.q + pb2.m[0][1] + pb2.sb[3];
    if (tid.x < n && flags.y) { y[tid.x] = r.x; light.sink[tid.x] = r.y; rw[tid.xy] = r; }
}
"""


def link(session: Any) -> Any:
    module = session.load_module_from_source("m", PROGRAM)
    return session.link([module], [module.entry_point("go")])


def read_spirv(code: bytes) -> tuple[dict[str, tuple[int, int]], dict[tuple[str, str], int]]:
    """Name -> (set, binding) and (struct, member) -> byte offset, from the decorations of a module."""
    words = struct.unpack(f"<{len(code) // 4}I", code)

    def text(part: Any) -> str:
        return struct.pack(f"<{len(part)}I", *part).split(b"\0")[0].decode()

    names: dict[int, str] = {}
    members: dict[tuple[int, int], str] = {}
    decorations: dict[int, dict[int, int]] = {}
    offsets: dict[tuple[int, int], int] = {}
    at = 5
    while at < len(words):
        count, opcode = words[at] >> 16, words[at] & 0xFFFF
        args: Any = words[at + 1 : at + count]
        if opcode == 5:
            names[args[0]] = text(args[1:])
        elif opcode == 6:
            members[args[0], args[1]] = text(args[2:])
        elif opcode == 71:
            decorations.setdefault(args[0], {})[args[1]] = args[2] if len(args) > 2 else 0
        elif opcode == 72 and args[2] == 35:
            offsets[args[0], args[1]] = args[3]
        at += count
    bound = {names[key]: (value[34], value[33]) for key, value in decorations.items() if 33 in value and 34 in value}
    return bound, {(names[key[0]], members[key]): value for key, value in offsets.items() if key in members}


def test_spirv_bindings(new_session: Callable[..., Any]) -> None:
    program = link(new_session("spirv"))
    layout = program.binding_layout()
    bound, offsets = read_spirv(program.code())
    prefixes = {"mats": "globalParams.", "x": "entryPointParams.", "y": "entryPointParams."}
    for slot in layout.slots:
        path = slot["path"].replace("[0]", "").replace("[1]", "").replace("[2]", "")
        name = prefixes.get(path.split(".")[0], "") + path
        assert (name, bound[name]) == (name, (slot["set"], slot["binding"]))
    assert [s["array_index"] for s in layout.slots if s["path"].startswith(("texs", "mats"))] == [0, 1, 2, 0, 1]
    for scope in layout.scopes:
        if not scope["push_constant"]:
            name = scope["path"] or "globalParams"
            assert (name, bound[name]) == (name, (scope["set"], scope["binding"]))
    for type_name, fields in (("GlobalParams", layout.globals.fields), ("EntryPointParams", layout.entry_point.fields)):
        for field in fields:
            if field["type"].size:
                key = (f"{type_name}_natural", field["name"])
                assert (key, offsets[key]) == (key, field["offset"])
    assert layout.scopes[1]["push_constant"] and layout.scopes[1]["size"] == 40


def test_hlsl_registers(new_session: Callable[..., Any]) -> None:
    program = link(new_session("hlsl"))
    text, layout = program.code().decode(), program.binding_layout()
    slots = {slot["path"]: slot for slot in layout.slots}
    for path, name, letter in (
        ("texs[0]", "texs_0[int(3)]", "t"), ("light.a[0]", "light_a_0[int(2)]", "t"), ("rw", "rw_0", "u"),
        ("light.inner.sb", "light_inner_sb_0", "t"), ("pb2.sb", "pb2_sb_0", "t"), ("samp", "samp_0", "s"),
        ("mats[0].tex", "globalParams_mats_tex_0[int(2)]", "t"), ("y", "entryPointParams_y_0", "u"),
    ):  # fmt: skip
        slot = slots[path]
        space = f", space{slot['set']}" if slot["set"] else ""
        assert f" {name} : register({letter}{slot['binding']}{space});" in text
    assert slots["texs[2]"]["binding"] == slots["texs[0]"]["binding"] + 2
    for scope in layout.scopes[2:]:
        space = f", space{scope['set']}" if scope["set"] else ""
        assert f"cbuffer {scope['path'].replace('.', '_')}_0 : register(b{scope['binding']}{space})" in text


@pytest.mark.parametrize("code_format", ["cpp", "cuda"])
def test_pointer_targets(new_session: Callable[..., Any], code_format: str) -> None:
    layout = link(new_session(code_format)).binding_layout()
    assert [(s["path"], s["parent"]) for s in layout.scopes[2:]] == [
        ("cb", 0), ("light", 0), ("light.inner", 3), ("pb2", 0),
    ]  # fmt: skip
    globals_ = {field["name"]: field for field in layout.globals.fields}
    for scope in layout.scopes[2:]:
        if scope["parent"] == 0:
            assert scope["parent_offset"] == globals_[scope["path"]]["offset"]
            assert scope["size"] == globals_[scope["path"]]["type"].element.size
    parameters = {field["name"]: field for field in layout.entry_point.fields}
    slots = {slot["path"]: slot for slot in layout.slots}
    assert "tid" not in parameters and (slots["x"]["scope"], slots["x"]["offset"]) == (1, parameters["x"]["offset"])
    assert slots["x"]["element_stride"] == 16 and slots["x"]["size"] == 16
    stride = globals_["mats"]["type"].element_stride
    assert slots["mats[1].tex"]["offset"] - slots["mats[0].tex"]["offset"] == stride
    for slot in layout.slots:
        assert slot["offset"] + slot["size"] <= layout.scopes[slot["scope"]]["size"]


@pytest.mark.parametrize("code_format", FORMATS)
def test_counting_of_slots_and_scopes(new_session: Callable[..., Any], code_format: str) -> None:
    """Adding slots and scopes up along a path gives the index into the flat lists."""
    layout = link(new_session(code_format)).binding_layout()
    seen: list[tuple[int, str]] = []

    def walk(kind: Any, path: str, slot: int, scope_base: int) -> None:
        if kind.kind.name == "struct":
            for field in kind.fields:
                walk(
                    field["type"],
                    f"{path}.{field['name']}".lstrip("."),
                    slot + field["slot"],
                    scope_base + field["scope"],
                )
        elif kind.kind.name == "array" and kind.slot_count:
            for i in range(kind.element_count):
                walk(
                    kind.element,
                    f"{path}[{i}]",
                    slot + i * kind.element.slot_count,
                    scope_base + i * kind.element.scope_count,
                )
        elif kind.kind.name in ("constant_buffer", "parameter_block"):
            assert layout.scopes[scope_base]["path"] == path
            walk(kind.element, path, slot, scope_base + 1)
        elif kind.slot_count:
            seen.append((slot, path))

    walk(layout.globals, "", 0, layout.nested_scope)
    walk(layout.entry_point, "", layout.entry_point_slot, layout.entry_point_nested_scope)
    assert seen == [(index, slot["path"]) for index, slot in enumerate(layout.slots)]


@pytest.mark.parametrize("code_format", FORMATS)
def test_binary_form(new_session: Callable[..., Any], code_format: str) -> None:
    layout = link(new_session(code_format)).binding_layout()
    data = layout.serialize()
    copy = type(layout).deserialize(data)
    assert copy.serialize() == data and copy.scopes == layout.scopes and copy.slots == layout.slots
    element = layout.globals
    assert type(element).deserialize(element.serialize()).serialize() == element.serialize()
    for cut in range(0, len(data), 7):
        with pytest.raises(RuntimeError, match="corrupt"):
            type(layout).deserialize(data[:cut])
    with pytest.raises(RuntimeError, match="corrupt"):
        type(layout).deserialize(data + b"\0")


def test_corrupt_bytes_never_crash(new_session: Callable[..., Any]) -> None:
    layout = link(new_session("cuda")).binding_layout()
    data = layout.serialize()
    for at in range(len(data)):
        for value in (0, 0x7F, 0xFF):
            broken = data[:at] + bytes([value]) + data[at + 1 :]
            try:
                copy = type(layout).deserialize(broken)
                slots, scopes = copy.slots, copy.scopes
            except (RuntimeError, UnicodeDecodeError):
                continue
            for slot in slots:
                assert slot["offset"] + slot["size"] <= scopes[slot["scope"]]["size"]


def test_reflection_cursor(new_session: Callable[..., Any]) -> None:
    cursor = link(new_session("spirv")).reflection
    assert cursor.light.inner.sb.type.full_name == "StructuredBuffer<int>"
    assert cursor["mats"][1]["albedo"].type_layout.size == 12
    assert cursor.go.a.type.full_name == "float" and cursor.find_entry_point(0).has_field("n")
    assert not cursor.find_field("zz").is_valid() and not cursor.has_element(0)
    assert cursor.mats.has_element(1) and not cursor.mats.has_element(2)
    with pytest.raises(ValueError, match='Field "zz" not found.'):
        cursor["zz"]
    with pytest.raises(IndexError, match="Element 9 not found."):
        cursor.mats[9]
    with pytest.raises(AttributeError, match="there are: gain"):
        cursor.zz
    assert "light" in dir(cursor) and "power" in repr(cursor.light)
