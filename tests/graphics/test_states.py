"""What pipelines and formats offer beside the usual: logic operations, two sources of one target, several viewports, samples;
depth and stencil read on the host; times of passes. What a device lacks is refused by name."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from drawing import FORMAT, STRIP, Draw, count, depth_texture, draws_on, pipeline, render, texture, vertex_buffer

import slangpy as spy

pytestmark = pytest.mark.draws
SOURCE = """
uniform float4 tint;
struct Both { [[vk::location(0)]] float4 color : SV_Target0; [[vk::location(0), vk::index(1)]] float4 factor : SV_Target1; }
[shader("vertex")] float4 all(uint i : SV_VertexID) : SV_Position { return float4(i == 1 ? 3 : -1, i == 2 ? 3 : -1, 0.25, 1); }
[shader("fragment")] uint4 bits() : SV_Target { return uint4(12, 10, 3, 255); }
[shader("fragment")] float4 flat() : SV_Target { return tint; }
[shader("fragment")] Both both() { Both b; b.color = tint; b.factor = float4(0.5, 0.25, 0, 1); return b; }
"""
PLACED = """
struct Placed { float4 at : SV_Position; uint viewport : SV_ViewportArrayIndex; }
[shader("vertex")] Placed placed(uint i : SV_VertexID, uint instance : SV_InstanceID)
{ Placed p; p.at = float4(i == 1 ? 3 : -1, i == 2 ? 3 : -1, 0, 1); p.viewport = instance; return p; }
[shader("fragment")] float4 white() : SV_Target { return 1; }
"""


def made(device: spy.Device, source: str, vertex: str, fragment: str, **fields: Any) -> spy.RenderPipeline:
    code = device.load_module_from_source(f"states_{vertex}", source)
    linked = device.link_program([code], [code.entry_point(vertex), code.entry_point(fragment)])
    return device.create_render_pipeline(linked, **fields)


def drawn(device: spy.Device, target: spy.Texture, used: spy.RenderPipeline, clear: tuple[float, ...], **state: Any) -> Any:
    encoder = device.create_command_encoder()
    attachment = {"view": target, "load_op": spy.LoadOp.clear, "clear_value": clear}
    with encoder.begin_render_pass({"color_attachments": [attachment]}) as render_pass:
        cursor = spy.ShaderCursor(render_pass.bind_pipeline(used))
        if cursor.has_field("tint"):
            cursor["tint"] = (1.0, 0.5, 0.25, 0.5)
        render_pass.set_render_state(state)
        render_pass.draw({"vertex_count": 3, "instance_count": 2})
    device.submit_command_buffer(encoder.finish())
    return target.to_numpy()


@pytest.mark.parametrize(
    ("operation", "expected"),
    [("xor", lambda s, d: s ^ d), ("and_", lambda s, d: s & d), ("invert", lambda s, d: ~d & 255), ("copy", lambda s, d: s)],
)
def test_logic_operations(device: spy.Device, operation: str, expected: Any) -> None:
    draws_on(device)
    format = spy.Format.rgba8_uint
    used = made(device, SOURCE, "all", "bits", targets=[{"format": format, "logic_op": spy.LogicOp[operation]}])
    image = drawn(device, texture(device, format), used, (5, 6, 7, 8))
    source, before = np.array([12, 10, 3, 255]), np.array([5, 6, 7, 8])
    assert (image == expected(source, expected(source, before))).all()  # two instances are drawn, one after the other


def test_two_sources_of_one_target(device: spy.Device) -> None:
    draws_on(device)
    if device.info.type is not spy.DeviceType.vulkan:
        pytest.skip("the second source is written as Vulkan has it")
    factor = {"src_factor": spy.BlendFactor.one, "dst_factor": spy.BlendFactor.secondary_src_color}
    target = {"format": FORMAT, "enable_blend": True, "color": factor, "alpha": factor}
    used = made(device, SOURCE, "all", "both", targets=[target])
    image = drawn(device, texture(device), used, (0.5, 1, 1, 0))
    tint, factors, before = np.array([1, 0.5, 0.25, 0.5]), np.array([0.5, 0.25, 0, 1]), np.array([0.5, 1, 1, 0])
    for _ in range(2):
        before = tint + factors * before
    assert np.allclose(image, before)


def test_several_viewports(device: spy.Device) -> None:
    draws_on(device)
    viewports = [{"width": 4, "height": 8}, {"x": 4, "y": 4, "width": 4, "height": 2}]
    try:
        used = made(device, PLACED, "placed", "white", targets=[{"format": FORMAT}])
    except NotImplementedError as error:
        assert "ViewportArrayIndex" in str(error) or "viewport" in str(error).lower(), error  # by name
        return
    image = drawn(device, texture(device), used, (0, 0, 0, 0), viewports=viewports)
    expected = np.zeros((8, 8), bool)
    expected[:, :4] = expected[4:6, 4:] = True
    assert (image[..., 0] == expected).all()


def test_formats_with_samples(device: spy.Device) -> None:
    """What `multisampling` says of a format is what creating a target of four samples does."""
    draws_on(device)
    assert spy.FormatSupport.multisampling.value == 1 << 15
    for format in (spy.Format.rgba8_unorm, spy.Format.rgba32_float, spy.Format.r32_uint, spy.Format.d32_float, spy.Format.bc1_unorm, spy.Format.rgb9e5_ufloat):
        says = bool(device.get_format_support(format) & spy.FormatSupport.multisampling)
        usage = spy.TextureUsage.depth_stencil if format is spy.Format.d32_float else spy.TextureUsage.render_target
        try:
            device.create_texture(type=spy.TextureType.texture_2d_ms, format=format, width=8, height=8, sample_count=4, usage=usage)
            is_so = True
        except (ValueError, RuntimeError):
            is_so = False
        assert says == is_so, format
    assert device.get_format_support(spy.Format.rgba8_unorm) & spy.FormatSupport.multisampling


def test_depth_and_stencil_on_the_host(device: spy.Device) -> None:
    draws_on(device)
    both = depth_texture(device, spy.Format.d32_float_s8_uint)
    attachment = {"view": both, "depth_clear_value": 0.75, "stencil_load_op": spy.LoadOp.clear, "stencil_clear_value": 7}
    state = {"format": both.format, "depth_test_enable": True, "depth_write_enable": True, "depth_func": spy.ComparisonFunc.less}
    used = pipeline(device, fragment=None, depth_stencil=state)
    render(device, {"depth_stencil_attachment": attachment}, Draw(used, {"z": 0.25}))
    texels = both.to_numpy().reshape(8, 8, 8)
    depth, stencil = texels[..., :4].copy().view(np.float32)[..., 0], texels[..., 4]
    assert count(depth == 0.25) == 28 and count(depth == 0.75) == 36 and (stencil == 7).all() and not texels[..., 5:].any()
    written = np.zeros((8, 8, 8), np.uint8)
    written[..., :4] = np.linspace(0, 1, 64, dtype=np.float32).reshape(8, 8, 1).view(np.uint8)
    written[..., 4] = np.arange(64).reshape(8, 8)
    both.copy_from_numpy(written.reshape(-1))
    assert (both.to_numpy().reshape(8, 8, 8) == written).all()


def test_times_of_passes(device: spy.Device) -> None:
    draws_on(device)
    target, used = texture(device), pipeline(device, label="the triangle")
    with device.profile() as profile:
        render(device, target, Draw(used))
        render(device, target, Draw(used), Draw(pipeline(device)))
        render(device, target)
    events = [(event.name, event.shape) for event in profile.events]
    assert events == [("the triangle", (8, 8, 1)), ("render_pass", (8, 8, 1)), ("render_pass", (8, 8, 1))]
    assert all(event.duration >= 0 for event in profile.events)


def test_numbers_of_the_wrong_size(device: spy.Device) -> None:
    draws_on(device)
    target, used = texture(device), pipeline(device)
    wide = vertex_buffer(device, np.array(STRIP, np.float64))
    with pytest.raises(TypeError, match=r"draw: vertex_buffers\[0\]: .*float64 .* read as rg32_float; fill it with data.astype\(np.float32\)"):
        render(device, target, Draw(used, state={"vertex_buffers": [wide]}))
    indices = device.create_buffer(data=np.array([0, 1, 2]), usage=spy.BufferUsage.index_buffer)
    with pytest.raises(TypeError, match=r"set_render_state 'index_buffer': .*int64 .* uint32 indices.*astype\(np.uint32\)"):
        render(device, target, Draw(used, state={"index_buffer": indices}, call=("draw_indexed", {"vertex_count": 3})))


def test_what_is_not_there(device: spy.Device) -> None:
    draws_on(device)
    color = {"src_factor": spy.BlendFactor.blend_color}
    with pytest.raises(NotImplementedError, match="blend_color"):
        pipeline(device, targets=[{"format": FORMAT, "enable_blend": True, "color": color}])
    with pytest.raises(NotImplementedError, match="patch_list"):
        pipeline(device, primitive_topology=spy.PrimitiveTopology.patch_list)
