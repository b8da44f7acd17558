"""ShaderObject and ShaderCursor over layouts made by hand."""

import struct

import numpy as np
import pytest
from cursor_layouts import Layouts, resource

import slangpy as spy
from slangpy import _native


@pytest.fixture(scope="module")
def device():
    return spy.create_device(type=spy.DeviceType.null)


L = Layouts("cpu")
RW = spy.BufferUsage.shader_resource | spy.BufferUsage.unordered_access


def structure(name, fields, size=0, **counts):
    entries = [dict(zip(("name", "type", "offset", "slot", "scope"), field, strict=False)) for field in fields]
    return _native._make_type_layout(kind="struct", name=name, size=size, fields=entries, **counts)


def block(element, kind="constant_buffer"):
    return _native._make_type_layout(
        kind=kind, name=kind, element=element, slot_count=element_slots[element.name],
        scope_count=1 + element_scopes[element.name],
    )  # fmt: skip


# Light { float3 tint; int id; Texture2D map; }     Scene { float gain; ConstantBuffer<Light> light; Sampler s; }
buffer_type = resource("StructuredBuffer<float>")
rw_buffer_type = resource("RWStructuredBuffer<float>", access="read_write")
texture_type = resource("Texture2D<float4>", "texture_2d", scalar="float")
sampler_type = resource("SamplerState", "none", kind="sampler_state")
element_slots = {"Light": 1, "Scene": 2}
element_scopes = {"Light": 0, "Scene": 1}
light = structure("Light", [("tint", L.vector("float", 3), 0), ("id", L.scalar("int"), 12), ("map", texture_type)],
                  size=16, slot_count=1)  # fmt: skip
scene = structure("Scene", [("gain", L.scalar("float"), 0), ("light", block(light)), ("s", sampler_type, 0, 1)],
                  size=4, slot_count=2, scope_count=1)  # fmt: skip


def program():
    """globals: float gain; ParameterBlock<Scene> scene; ConstantBuffer<Light> sun; RWStructuredBuffer<float> data;
    entry point: uniform int n; StructuredBuffer<float> x[2]; float* p"""
    global_struct = structure(
        "", [("gain", L.scalar("float"), 0), ("scene", block(scene, "parameter_block"), 0, 0, 0),
             ("sun", block(light), 0, 2, 2), ("data", rw_buffer_type, 0, 3)],
        size=4, slot_count=4, scope_count=3,
    )  # fmt: skip
    pair = _native._make_type_layout(kind="array", name="x", full_name="StructuredBuffer<float>[2]",
                                     element=buffer_type, element_count=2, slot_count=2)  # fmt: skip
    entry = structure("", [("n", L.scalar("int"), 0), ("x", pair, 0, 0), ("p", L.pointer(), 8)], size=16, slot_count=2)
    paths = [("texture", "scene.light.map"), ("sampler", "scene.s"), ("texture", "sun.map"),
             ("structured_buffer", "data"), ("structured_buffer", "x[0]"), ("structured_buffer", "x[1]")]  # fmt: skip
    return _native._make_program_layout(
        globals=global_struct, entry_point=entry, entry_point_slot=4, nested_scope=2, entry_point_nested_scope=5,
        scope_sizes=[4, 16, 4, 16, 16], slots=[{"kind": k, "path": p} for k, p in paths], entry_point_name="main",
    )  # fmt: skip


@pytest.fixture
def root(device):
    return spy.ShaderObject(device, program())


def scope(root, index, code):
    return struct.unpack(code, root._scope_bytes(index)[: struct.calcsize(code)])


def test_uniforms_land_in_their_scopes(root):
    cursor = spy.ShaderCursor(root)
    cursor.gain = 2.0
    cursor["scene"] = {"gain": 3.0, "light": {"tint": (1, 2, 3), "id": 4}}
    cursor.sun.tint[1] = 5.0
    cursor.sun["id"] = 6
    entry = cursor.find_entry_point(0)
    entry.n = 100
    entry.p = 4096
    assert scope(root, 0, "f") == (2.0,)
    assert scope(root, 1, "i4xQ") == (100, 4096)
    assert scope(root, 2, "f") == (3.0,)
    assert scope(root, 3, "3fi") == (1, 2, 3, 4)
    assert scope(root, 4, "3fi") == (0, 5, 0, 6)


def test_resources_land_in_their_slots(device, root):
    cursor = spy.ShaderCursor(root)
    x = [device.create_buffer(size=16, usage=spy.BufferUsage.shader_resource) for _ in range(2)]
    y = device.create_buffer(size=16, usage=RW)
    texture = device.create_texture(
        width=4, height=4, format=spy.Format.rgba32_float, usage=spy.TextureUsage.shader_resource
    )
    sampler = device.create_sampler()
    with pytest.raises(RuntimeError, match=r"parameter 'scene\.light\.map' of 'main' was never set: assign a texture"):
        root.check_bound()
    cursor.scene.write({"light": {"map": texture}, "s": sampler})
    cursor.sun.map = None
    cursor.data = y
    cursor.find_entry_point(0).x = [*x[:1], None]
    cursor.find_entry_point(0).x[1] = x[1]
    root.check_bound()
    assert root._slots() == [texture, sampler, None, y, *x]
    assert cursor.data._offset.binding_range_index == 3


def test_usage_is_checked(device, root):
    cursor = spy.ShaderCursor(root)
    plain = device.create_buffer(size=16, usage=spy.BufferUsage.copy_source)
    readable = device.create_buffer(size=16, usage=spy.BufferUsage.shader_resource)
    with pytest.raises(ValueError, match=r"^data: a buffer for RWStr.* BufferUsage\.unordered_access"):
        cursor.data = readable
    with pytest.raises(ValueError, match=r"^x\[0\]: .*BufferUsage\.shader_resource or BufferUsage\.unordered_access"):
        cursor.find_entry_point(0).x[0] = plain
    cursor.find_entry_point(0).x[0] = device.create_buffer(size=16, usage=spy.BufferUsage.unordered_access)
    with pytest.raises(TypeError, match=r"^scene\.s: expected a Sampler or None for SamplerState, got "):
        cursor.scene.s = readable
    with pytest.raises(TypeError, match=r"^sun\.map: expected a 2D texture or None"):
        cursor.sun.map = 3


def test_texture_shape_and_texel_kind_are_checked(device, root):
    cursor = spy.ShaderCursor(root)
    read = spy.TextureUsage.shader_resource
    volume = device.create_texture(type=spy.TextureType.texture_3d, format=spy.Format.r32_float, usage=read)
    with pytest.raises(ValueError, match=r"expected a 2D texture for .*got a TextureType.texture_3d"):
        cursor.sun.map = volume
    with pytest.raises(ValueError, match="texels of format rgba8_uint cannot be seen as float"):
        cursor.sun.map = device.create_texture(format=spy.Format.rgba8_uint, usage=read)
    with pytest.raises(ValueError, match=r"TextureUsage.shader_resource"):
        cursor.sun.map = device.create_texture(format=spy.Format.r32_float, usage=spy.TextureUsage.copy_source)


class FakeTensor:
    def __init__(self, buffer, contiguous=True, offset=0):
        self.storage = buffer
        self.offset = offset
        self.contiguous = contiguous
        self.device_address = 64

    def is_contiguous(self):
        return self.contiguous


def test_contiguous_tensors_serve_as_buffers(device, root):
    cursor = spy.ShaderCursor(root)
    buffer = device.create_buffer(size=16, usage=RW)
    cursor.data = FakeTensor(buffer)
    assert root._slots()[3] is buffer
    for tensor in (FakeTensor(buffer, contiguous=False), FakeTensor(buffer, offset=1)):
        with pytest.raises(ValueError, match="must be contiguous and start at offset 0"):
            cursor.data = tensor
    cursor.find_entry_point(0).p = FakeTensor(buffer)
    assert scope(root, 1, "8xQ") == (64,)
    with pytest.raises(ValueError, match="contiguous"):
        cursor.find_entry_point(0).p = FakeTensor(buffer, contiguous=False)


def test_parameter_blocks_take_shader_objects(device, root):
    cursor = spy.ShaderCursor(root)
    content = spy.ShaderObject(device, scene)
    inside = spy.ShaderCursor(content)
    inside.gain = 7.0
    inside.light.id = 8
    inside.light.map = None
    cursor.scene = content
    assert scope(root, 2, "f") == (7.0,) and scope(root, 3, "12xi") == (8,)
    inside.gain = 9.0  # the block is shared, not copied
    cursor.scene.light.id = 10
    assert scope(root, 2, "f") == (9.0,)
    assert inside._offset.uniform_offset == 0 and scope(content, 1, "12xi") == (10,)
    with pytest.raises(RuntimeError, match=r"parameter 'scene\.s'"):
        root.check_bound()

    class Packed:
        shader_object = content

    spy.ShaderCursor(spy.ShaderObject(device, program())).scene = Packed()
    with pytest.raises(TypeError, match="expected a shader object for Scene, got one for Light"):
        cursor.scene = spy.ShaderObject(device, light)


def test_navigation(root):
    cursor = spy.ShaderCursor(root)
    assert cursor.is_valid() and cursor.has_field("gain") and not cursor.has_field("zz")
    assert cursor.find_field_index("sun") == 2 and cursor.find_field_index("zz") == -1
    cursor.get_field_by_index(0).write(1.5)
    assert scope(root, 0, "f") == (1.5,)
    assert not cursor.find_field("zz").is_valid() and not cursor.get_field_by_index(9).is_valid()
    assert not cursor.find_entry_point(1).is_valid()
    x = cursor.find_entry_point(0).x
    assert x.has_element(1) and not x.has_element(2)
    for kind in (KeyError, ValueError):  # it is both
        with pytest.raises(kind, match=r'^Field "zz" not found.'):
            cursor["zz"]
    with pytest.raises(IndexError, match=r"Element 9 not found."):
        x[9]
    with pytest.raises(AttributeError, match=r"Scene> has no field 'zz'|Fields: gain, light, s"):
        cursor.scene.zz = 1
    with pytest.raises(AttributeError, match="Fields: gain, scene, sun, data"):
        _ = cursor.zz
    assert {"gain", "scene", "write"} <= set(dir(cursor))
    assert cursor.sun.dereference().is_valid() and cursor.sun.id._offset.uniform_offset == 12
    assert "sun" in repr(cursor.sun)


def test_raw_data_and_reinterpret(root):
    cursor = spy.ShaderCursor(root)
    cursor.sun.set_data(np.array([1, 2, 3, 4], np.float32))
    assert scope(root, 4, "4f") == (1, 2, 3, 4)
    with pytest.raises(ValueError, match="larger than the buffer"):
        cursor.sun.set_data(np.zeros(5, np.float32))
    cursor.sun.reinterpret(L.vector("float", 4)).write((5, 6, 7, 8))
    assert scope(root, 4, "4f") == (5, 6, 7, 8)
    with pytest.raises(ValueError, match="larger"):
        cursor.gain.reinterpret(L.vector("float", 4))


def test_unknown_names_are_reported(root):
    cursor = spy.ShaderCursor(root)
    assert cursor._write_known({"gain": 4.0, "zz": 1, "yy": 2}) == ["zz", "yy"]
    assert scope(root, 0, "f") == (4.0,)
