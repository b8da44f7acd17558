"""Descriptor handles: resources that kernels reach by a number, without their being bound.

Vulkan devices need descriptor indexing; without it, and on Direct3D 12, handles are refused (test_devices_without).
SLANGPY_TEST_REQUIRE_HANDLES=1 makes it a failure that the device under test has none.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import slangpy as spy
from slangpy.testing import CudaCodegen, nvrtc_available

SOURCE = """
struct Info { DescriptorHandle<StructuredBuffer<float>> b; Texture2D<float>.Handle t; SamplerState.Handle s; int k; };
StructuredBuffer<Info> infos;
StructuredBuffer<Sampler2D<float>.Handle> combined;
StructuredBuffer<RWStructuredBuffer<uint>.Handle> written;
RWStructuredBuffer<float> o;
uniform ByteAddressBuffer.Handle bytes;
uniform Texture2D<float>.Handle image;
uniform RWTexture2D<float>.Handle image_rw;
uniform Info given[2];

[shader("compute")] [numthreads(1, 1, 1)] void sample_each(uint3 i : SV_DispatchThreadID)
{
    Info x = infos[i.x];
    o[i.x] = nonuniform(x.t).SampleLevel(nonuniform(x.s), float2(0.5), 0);
}
[shader("compute")] [numthreads(1, 1, 1)] void sample_combined(uint3 i : SV_DispatchThreadID)
{
    o[i.x] = nonuniform(combined[i.x]).SampleLevel(float2(0.5), 0);
}
[shader("compute")] [numthreads(1, 1, 1)] void read_each(uint3 i : SV_DispatchThreadID)
{
    Info x = infos[i.x];
    o[i.x] = nonuniform(x.b)[x.k];
}
[shader("compute")] [numthreads(1, 1, 1)] void write_each(uint3 i : SV_DispatchThreadID)
{
    for (uint j = 0; j < 3; ++j)
        nonuniform(written[i.x])[j] = 100 * i.x + j;
}
[shader("compute")] [numthreads(1, 1, 1)] void uniforms(
    uniform StructuredBuffer<float>.Handle own, uniform ConstantBuffer<Info> block)
{
    image_rw[uint2(1, 0)] = 7;
    o[0] = own[1] + image.Load(int3(1, 0, 0));
    o[1] = bytes.Load<float>(8);
    o[2] = given[0].b[given[0].k] + given[1].b[given[1].k];
    o[3] = block.b[block.k] + block.t.SampleLevel(block.s, float2(0.25, 0.5), 0);
}
[shader("compute")] [numthreads(1, 1, 1)] void read_image() { o[0] = image.Load(int3(0, 0, 0)); }
"""

READ = spy.BufferUsage.shader_resource
BOTH = spy.BufferUsage.shader_resource | spy.BufferUsage.unordered_access
SAMPLED = spy.TextureUsage.shader_resource


@dataclass
class Handles:
    """A device with kernels that use handles."""

    device: spy.Device
    module: Any

    def program(self, name: str) -> Any:
        return self.device.link_program([self.module], [self.module.entry_point(name)])

    def run(self, name: str, count: int = 1, size: int = 8, **vars: Any) -> np.ndarray:
        out = self.device.create_buffer(data=np.full(size, -1, np.float32), usage=BOTH)
        kernel = self.device.create_compute_kernel(self.program(name))
        kernel.dispatch([count, 1, 1], vars={"o": out, **vars})
        return out.to_numpy().view(np.float32)

    def structs(self, name: str, values: list[Any]) -> spy.Buffer:
        """Elements of the global `name`, written through a BufferCursor."""
        layout = self.layout(name)
        buffer = self.device.create_buffer(element_count=len(values), resource_type_layout=layout, usage=READ)
        cursor = spy.BufferCursor(layout, buffer)
        for i, value in enumerate(values):
            cursor[i] = value
        cursor.apply()
        return buffer

    def layout(self, name: str) -> Any:
        """Of a structured buffer among the globals."""
        return next(p.type_layout for p in self.program("sample_each").layout.parameters if p.name == name)

    def floats(self, *numbers: float, usage: spy.BufferUsage = BOTH) -> spy.Buffer:
        return self.device.create_buffer(data=np.array(numbers, np.float32), struct_size=4, usage=usage)

    def texture(self, *numbers: float, usage: spy.TextureUsage = SAMPLED, **fields: Any) -> spy.Texture:
        return self.device.create_texture(
            format=spy.Format.r32_float, width=len(numbers), height=1, usage=usage,
            data=np.array([numbers], np.float32), **fields,
        )  # fmt: skip


@pytest.fixture(scope="module")
def cache() -> Iterator[dict[Any, Handles]]:
    made: dict[Any, Handles] = {}
    yield made


@pytest.fixture
def handles(device: spy.Device, cache: dict[Any, Handles]) -> Handles:
    if not device.has_feature(spy.Feature.bindless):
        (pytest.fail if os.environ.get("SLANGPY_TEST_REQUIRE_HANDLES") == "1" else pytest.skip)("no descriptor handles here")
    if device not in cache:
        cache[device] = Handles(device, device.load_module_from_source("handles", SOURCE))
    return cache[device]


WRAP = spy.TextureAddressingMode.wrap


def filters(device: spy.Device) -> list[spy.Sampler]:
    return [
        device.create_sampler(min_filter=f, mag_filter=f, mip_filter=f, address_u=WRAP, address_v=WRAP)
        for f in (spy.TextureFilteringMode.linear, spy.TextureFilteringMode.point)
    ]


EXPECTED = [0.5, 2.0, 2.5, 4.0, 4.5, 6.0, 6.5, 8.0]


@pytest.mark.needs_kernels
@pytest.mark.parametrize("combined", [False, True], ids=["apart", "combined"])
def test_textures(handles: Handles, combined: bool) -> None:
    """Eight textures [i, i + 1] at their middle: the mean, or the right texel."""
    samplers = filters(handles.device)
    textures = [handles.texture(i, i + 1) for i in range(8)]
    views = [t.create_view(sampler=samplers[i % 2]) for i, t in enumerate(textures)]
    if combined:
        values = [v.descriptor_handle_combined for v in views]
        found = handles.run("sample_combined", 8, combined=handles.structs("combined", values))
    else:  # on CUDA, samplers are parts of textures
        values = [{"t": v.descriptor_handle_ro, "s": samplers[i % 2].descriptor_handle} for i, v in enumerate(views)]
        found = handles.run("sample_each", 8, infos=handles.structs("infos", values))
    assert found.tolist() == EXPECTED


@pytest.mark.needs_kernels
def test_buffers(handles: Handles) -> None:
    buffers = [handles.floats(*range(10 * i, 10 * i + 4), usage=READ) for i in range(6)]
    values = [{"b": b.descriptor_handle_ro, "k": i % 4} for i, b in enumerate(buffers)]
    found = handles.run("read_each", 6, infos=handles.structs("infos", values))
    assert found[:6].tolist() == [0, 11, 22, 33, 40, 51]


@pytest.mark.needs_kernels
def test_written_buffers(handles: Handles) -> None:
    buffers = [handles.device.create_buffer(size=12, struct_size=4, usage=BOTH) for _ in range(3)]
    handles.run("write_each", 3, written=handles.structs("written", [b.descriptor_handle_rw for b in buffers]))
    for i, buffer in enumerate(buffers):
        assert buffer.to_numpy().view(np.uint32).tolist() == [100 * i, 100 * i + 1, 100 * i + 2]


@pytest.mark.needs_kernels
def test_uniforms(handles: Handles) -> None:
    """In the globals, in an array of structs, in an entry point's parameters, in a constant buffer."""
    device = handles.device
    point = device.create_sampler(min_filter=spy.TextureFilteringMode.point, mag_filter=spy.TextureFilteringMode.point)
    image = handles.texture(1, 2, 3, usage=SAMPLED | spy.TextureUsage.unordered_access)
    buffers = [handles.floats(10, 20, 30), handles.floats(400, 500, 600)]
    out = device.create_buffer(data=np.zeros(4, np.float32), usage=BOTH)
    view = image.create_view(sampler=point)
    info = {"t": view.descriptor_handle_ro, "s": point.descriptor_handle}
    encoder = device.create_command_encoder()
    with encoder.begin_compute_pass() as compute_pass:
        root = compute_pass.bind_pipeline(device.create_compute_pipeline(handles.program("uniforms")))
        cursor = spy.ShaderCursor(root)
        cursor.o, cursor.bytes = out, buffers[0].descriptor_handle_ro
        cursor.image, cursor.image_rw = image.descriptor_handle_ro, image.descriptor_handle_rw
        for i, buffer in enumerate(buffers):
            cursor.given[i].b, cursor.given[i].k = buffer.descriptor_handle_ro, i
        own = cursor.find_entry_point(0)
        own.own = buffers[1].descriptor_handle_ro
        own.block = {"b": buffers[0].descriptor_handle_rw, "k": 2, **info}
        compute_pass.dispatch([1, 1, 1])
    device.submit_command_buffer(encoder.finish())
    assert out.to_numpy().view(np.float32)[1:].tolist() == [30, 510, 31]
    assert image.to_numpy()[0].tolist() == [1, 7, 3]


def test_layout(handles: Handles) -> None:
    """Eight bytes each on Vulkan, in scalar layout; elsewhere they are what the resource is there."""
    if handles.device.info.type is not spy.DeviceType.vulkan:
        pytest.skip("layouts of other targets are Slang's own")
    layout = handles.layout("infos").element_type_layout
    assert [f.offset for f in layout.fields] == [0, 8, 16, 24] and layout.stride == 28


def test_the_same_again(handles: Handles) -> None:
    """One handle for each object and type."""
    buffer, texture = handles.floats(1), handles.texture(1)
    handle = buffer.descriptor_handle_ro
    assert handle == buffer.descriptor_handle_ro and hash(handle) == hash(buffer.descriptor_handle_ro)
    assert handle != handles.floats(2).descriptor_handle_ro != handle
    assert handle.type is spy.DescriptorHandleType.buffer and handle.value == buffer.descriptor_handle_ro.value
    assert repr(handle) == f"DescriptorHandle(type=buffer, value=0x{handle.value:08x})" and handle
    assert buffer.descriptor_handle_rw.type is spy.DescriptorHandleType.rw_buffer
    assert texture.descriptor_handle_ro.type is spy.DescriptorHandleType.texture
    none = texture.descriptor_handle_combined
    assert not none and none.type is spy.DescriptorHandleType.undefined and texture.descriptor_handle_ro
    sampler = handles.device.create_sampler()
    assert sampler.descriptor_handle.type is spy.DescriptorHandleType.sampler
    sampled = handles.texture(1, sampler=sampler).descriptor_handle_combined
    assert not sampled and sampled.type is spy.DescriptorHandleType.combined_texture_sampler  # its texture is gone
    del buffer
    gc.collect()
    assert not handle


@pytest.mark.needs_kernels
def test_read_back(handles: Handles) -> None:
    """What a BufferCursor reads is the handle that was written."""
    buffer, sampler = handles.floats(1, 2), handles.device.create_sampler()
    structs = handles.structs("infos", [{"b": buffer.descriptor_handle_ro, "s": sampler.descriptor_handle, "k": 5}])
    layout = handles.layout("infos").element_type_layout
    cursor = spy.BufferCursor(layout, structs)
    assert cursor[0].b.read() == buffer.descriptor_handle_ro
    found = cursor[0].read()
    assert (found["b"], found["s"], found["k"]) == (buffer.descriptor_handle_ro, sampler.descriptor_handle, 5)
    assert not found["t"]
    del buffer, found
    gc.collect()
    assert not cursor[0].b.read()


# --- lifetimes


@pytest.mark.needs_kernels
def test_places_are_used_again(handles: Handles) -> None:
    """Ten times as many handles as there are places, in kernels that may still run when the next ones are made."""
    device = spy.Device(type=handles.device.info.type, bindless_options={"texture_count": 8, "buffer_count": 8})
    own = Handles(device, device.load_module_from_source("handles", SOURCE))
    sampler = device.create_sampler()
    for i in range(20):
        textures = [own.texture(i + j, i + j) for j in range(4)]
        values = [{"t": t.descriptor_handle_ro, "s": sampler.descriptor_handle} for t in textures]
        assert own.run("sample_each", 4, infos=own.structs("infos", values))[:4].tolist() == [i + j for j in range(4)]
    device.close()


@pytest.mark.needs_kernels
def test_a_texture_that_is_gone_reads_as_null(handles: Handles) -> None:
    if handles.device.info.type is spy.DeviceType.cuda:
        pytest.skip("CUDA's texture objects must not be used when they are gone")
    texture, sampler = handles.texture(5, 5), handles.device.create_sampler()
    infos = handles.structs("infos", [{"t": texture.descriptor_handle_ro, "s": sampler.descriptor_handle}])
    assert handles.run("sample_each", infos=infos)[0] == 5
    handles.device.wait_for_idle()
    del texture
    gc.collect()
    assert handles.run("sample_each", infos=infos)[0] == 0


@pytest.mark.needs_kernels
def test_work_in_flight(handles: Handles) -> None:
    """An object may go as soon as the work that uses it was submitted."""
    device, sampler = handles.device, handles.device.create_sampler()
    kernel = device.create_compute_kernel(handles.program("sample_each"))
    outs = []
    for i in range(10):
        texture = handles.texture(i, i)
        infos = handles.structs("infos", [{"t": texture.descriptor_handle_ro, "s": sampler.descriptor_handle}])
        outs.append(device.create_buffer(size=4, struct_size=4, usage=BOTH))
        kernel.dispatch([1, 1, 1], vars={"o": outs[-1], "infos": infos})
        del texture, infos
    assert [float(out.to_numpy().view(np.float32)[0]) for out in outs] == list(range(10))


# --- errors


def test_usage(handles: Handles) -> None:
    device = handles.device
    read_only = handles.floats(1, usage=READ)
    with pytest.raises(ValueError, match=r"Buffer.descriptor_handle_rw: .*unordered_access; it has shader_resource"):
        _ = read_only.descriptor_handle_rw
    vertices = handles.floats(1, usage=spy.BufferUsage.vertex_buffer)
    with pytest.raises(ValueError, match="Buffer.descriptor_handle_ro: .*shader_resource or BufferUsage"):
        _ = vertices.descriptor_handle_ro
    texture = handles.texture(1)
    for owner in (texture, texture.create_view()):
        with pytest.raises(ValueError, match=rf"{type(owner).__name__}.descriptor_handle_rw: .*TextureUsage.unordered_acc"):
            _ = owner.descriptor_handle_rw
    stored = device.create_texture(
        format=spy.Format.r32_float, width=1, height=1, usage=spy.TextureUsage.unordered_access
    )
    for name in ("descriptor_handle_ro", "descriptor_handle_combined"):
        with pytest.raises(ValueError, match=rf"Texture.{name}: .*TextureUsage.shader_resource"):
            getattr(stored, name)
    if device.info.type is not spy.DeviceType.vulkan:
        return
    colors = device.create_texture(
        format=spy.Format.rgba8_unorm, width=1, height=1, usage=SAMPLED | spy.TextureUsage.unordered_access
    )
    view = colors.create_view(format=spy.Format.rgba8_unorm_srgb)
    if not device.get_format_support(view.format) & spy.FormatSupport.shader_uav_store:
        with pytest.raises(ValueError, match="kernels do not store rgba8_unorm_srgb"):
            _ = view.descriptor_handle_rw
    assert view.descriptor_handle_ro and colors.descriptor_handle_rw


def test_wrong_values(handles: Handles) -> None:
    layout, buffer, texture = handles.layout("infos").element_type_layout, handles.floats(1), handles.texture(1)
    cursor = spy.BufferCursor(layout, handles.device.create_buffer(size=256, usage=READ))
    with pytest.raises(ValueError, match=r"t: DescriptorHandle<Texture2D<float>> takes a handle of type texture, got .*buffer"):
        cursor[0].t = buffer.descriptor_handle_ro
    with pytest.raises(ValueError, match="b: .*takes a handle of type buffer, got one of type texture"):
        cursor[0] = {"b": texture.descriptor_handle_ro}
    with pytest.raises(ValueError, match=r"t: this DescriptorHandle is not valid.*create_view\(sampler=...\)"):
        cursor[0].t = texture.descriptor_handle_combined
    for value in (buffer, 3, (0, 0), None):
        with pytest.raises(TypeError, match="b: expected a DescriptorHandle for DescriptorHandle<StructuredBuffer<float"):
            cursor[0].b = value
    gone = handles.floats(2).descriptor_handle_ro
    gc.collect()
    with pytest.raises(ValueError, match="b: what this DescriptorHandle names is gone"):
        cursor[0].b = gone
    other = spy.Device(type=spy.DeviceType.null)
    theirs = other.create_buffer(size=16, usage=READ)
    with pytest.raises(ValueError, match="b: the DescriptorHandle belongs to another device"):
        cursor[0].b = theirs.descriptor_handle_ro
    cursor[0].b = buffer.descriptor_handle_rw  # what may be written may be read


@pytest.mark.needs_kernels
def test_a_readonly_handle_is_not_written_to(handles: Handles) -> None:
    buffer = handles.device.create_buffer(size=256, usage=READ)
    cursor = spy.BufferCursor(handles.layout("written"), buffer)
    with pytest.raises(ValueError, match="takes a handle of type rw_buffer, got one of type buffer"):
        cursor[0] = handles.floats(1).descriptor_handle_ro


@pytest.mark.null
def test_capacities() -> None:
    """Once all are taken, there is no other until one goes."""
    options = spy.BindlessDesc(buffer_count=2, texture_count=1, sampler_count=1)
    device = spy.Device(type=spy.DeviceType.null, bindless_options=options)
    assert device.desc.bindless_options.texture_count == 1
    assert device.desc.bindless_options.acceleration_structure_count == 128
    kept = [device.create_buffer(size=4, usage=BOTH) for _ in range(3)]
    assert [kept[0].descriptor_handle_ro.value, kept[1].descriptor_handle_rw.value] == [0, 1]
    with pytest.raises(MemoryError, match=r"all 2 buffer handles are in use \(bindless_options.buffer_count\)"):
        _ = kept[2].descriptor_handle_ro
    assert kept[0].descriptor_handle_ro.value == 0
    del kept[0]
    gc.collect()
    assert kept[1].descriptor_handle_ro.value == 0
    texture = device.create_texture(format=spy.Format.r32_float, width=1, height=1, usage=SAMPLED)
    assert texture.descriptor_handle_ro.value == 0
    with pytest.raises(MemoryError, match=r"all 1 texture handles are in use \(bindless_options.texture_count\)"):
        _ = texture.create_view().descriptor_handle_ro
    samplers = [device.create_sampler() for _ in range(2)]
    assert samplers[0].descriptor_handle.value == 0
    with pytest.raises(MemoryError, match=r"all 1 sampler handles are in use \(bindless_options.sampler_count\)"):
        _ = samplers[1].descriptor_handle
    with pytest.raises(TypeError, match="unknown field 'textures'; known fields: buffer_count, texture_count"):
        spy.Device(type=spy.DeviceType.null, bindless_options={"textures": 1})


@pytest.mark.needs_kernels
def test_devices_without(device: spy.Device) -> None:
    if device.has_feature(spy.Feature.bindless):
        pytest.skip("the device has descriptor handles")
    buffer = device.create_buffer(size=16, usage=READ)
    with pytest.raises(NotImplementedError, match="Buffer.descriptor_handle_ro needs the feature 'bindless'"):
        _ = buffer.descriptor_handle_ro
    module = device.load_module_from_source("handles_refused", SOURCE)
    program = device.link_program([module], [module.entry_point("read_image")])
    with pytest.raises(NotImplementedError, match="uses descriptor handles, which .* has not"):
        device.create_compute_kernel(program).dispatch([1, 1, 1])


# --- functional calls

CALLS = """
struct Scene { Texture2D<float>.Handle albedo; SamplerState.Handle filter; float scale; }
float albedo(Scene scene, float x) { return scene.scale * scene.albedo.SampleLevel(scene.filter, float2(x, 0.5), 0); }
float third(DescriptorHandle<StructuredBuffer<float>> values, int i) { return values[i]; }
float filtered(Sampler2D<float>.Handle image, float x) { return image.SampleLevel(float2(x, 0.5), 0); }
float texel(Texture2D<float>.Handle image, int x) { return image.Load(int3(x, 0, 0)); }
void store(RWStructuredBuffer<float>.Handle values, int i) { values[i] = i * i; }
"""


@pytest.mark.null
@pytest.mark.skipif(not nvrtc_available(), reason="NVRTC is not installed")
def test_cuda_code() -> None:
    """Where there is no GPU: NVRTC takes the code of calls with handles, which are what the resources are there."""
    device = spy.Device(type=spy.DeviceType.null)
    own = Handles(device, None)
    values, written, sampler = own.floats(1), own.floats(1), device.create_sampler()
    texture = own.texture(1, sampler=sampler)
    generator = CudaCodegen("sm_80")
    module = generator.load_from_source("handle_calls_cuda", CALLS)
    scene = {"albedo": texture.descriptor_handle_ro, "filter": sampler.descriptor_handle, "scale": 1.0}
    for name, *given in (
        ("third", values.descriptor_handle_ro, 0), ("texel", texture.descriptor_handle_ro, 0), ("albedo", scene, 0.5),
        ("filtered", texture.descriptor_handle_combined, 0.5), ("store", written.descriptor_handle_rw, 0),
    ):  # fmt: skip
        generator.build(module[name], *given)


@pytest.fixture
def calls(handles: Handles, cache: dict[Any, Any]) -> Any:
    key = (handles.device, "calls")
    if key not in cache:
        cache[key] = spy.Module(handles.device.load_module_from_source("handle_calls", CALLS))
    return cache[key]


@pytest.mark.needs_kernels
def test_arguments(handles: Handles, calls: Any) -> None:
    """A handle is one for all invocations, in a dict or by itself."""
    point = handles.device.create_sampler(
        min_filter=spy.TextureFilteringMode.point, mag_filter=spy.TextureFilteringMode.point
    )
    texture, values = handles.texture(1, 2, 3, 4), handles.floats(5, 6, 7)
    view = texture.create_view(sampler=point)
    index = np.arange(3, dtype=np.int32)
    assert calls.third(values.descriptor_handle_ro, index, _result="numpy").tolist() == [5, 6, 7]
    other = handles.floats(8, 9, 10)
    assert calls.third(values=other.descriptor_handle_ro, i=index, _result="numpy").tolist() == [8, 9, 10]
    assert calls.texel(texture.descriptor_handle_ro, index, _result="numpy").tolist() == [1, 2, 3]
    scene = {"albedo": view.descriptor_handle_ro, "filter": point.descriptor_handle, "scale": 10.0}
    at = np.array([0.1, 0.4, 0.6, 0.9], np.float32)
    assert calls.albedo(scene, at, _result="numpy").tolist() == [10, 20, 30, 40]
    assert calls.filtered(view.descriptor_handle_combined, at, _result="numpy").tolist() == [1, 2, 3, 4]
    written = handles.device.create_buffer(size=12, struct_size=4, usage=BOTH)
    calls.store(written.descriptor_handle_rw, index)
    assert written.to_numpy().view(np.float32).tolist() == [0, 1, 4]


@pytest.mark.needs_kernels
def test_wrong_arguments(handles: Handles, calls: Any) -> None:
    texture = handles.texture(1)
    with pytest.raises(ValueError, match="a DescriptorHandle binds to a DescriptorHandle<T>"):
        calls.texel(texture.descriptor_handle_ro, texture.descriptor_handle_ro)
    with pytest.raises(ValueError, match="takes a handle of type buffer, got one of type texture"):
        calls.third(texture.descriptor_handle_ro, 0)
    with pytest.raises(ValueError, match="image: this DescriptorHandle is not valid"):
        calls.texel(texture.descriptor_handle_combined, 0)


# --- drawing

DRAWING = """
[shader("vertex")] float4 corner(uint id : SV_VertexID) : SV_Position { return float4(float2((id << 1) & 2, id & 2) * 2 - 1, 0, 1); }
[shader("fragment")] float4 paint(float4 at : SV_Position, uniform Texture2D<float>.Handle image) : SV_Target
{
    return image.Load(int3(int(at.x), 0, 0));
}
"""


@pytest.mark.needs_kernels
@pytest.mark.draws
def test_fragments(handles: Handles) -> None:
    device = handles.device
    module = device.load_module_from_source("handles_drawing", DRAWING)
    program = device.link_program([module], [module.entry_point("corner"), module.entry_point("paint")])
    target = device.create_texture(
        format=spy.Format.r32_float, width=3, height=1, usage=spy.TextureUsage.render_target | SAMPLED
    )
    pipeline = device.create_render_pipeline(program, targets=[{"format": target.format}])
    images = [handles.texture(1, 2, 3), handles.texture(4, 5, 6)]
    encoder = device.create_command_encoder()
    with encoder.begin_render_pass([{"view": target}]) as render_pass:
        cursor = spy.ShaderCursor(render_pass.bind_pipeline(pipeline))
        for image, columns in zip(images, ((0, 3), (1, 2)), strict=True):
            cursor.find_entry_point(1).image = image.descriptor_handle_ro
            rect = spy.ScissorRect({"min_x": columns[0], "max_x": columns[1], "max_y": 1})
            render_pass.set_render_state({"scissor_rects": [rect]})
            render_pass.draw({"vertex_count": 3})
    device.submit_command_buffer(encoder.finish())
    assert target.to_numpy()[0].tolist() == [1, 5, 3]
