"""What needs no driver: the null device records passes, devices without rasterisation say who has it, descriptors."""

from __future__ import annotations

from typing import Any

import pytest
from drawing import FORMAT, texture

import slangpy as spy


def bare(device: spy.Device, label: str = "p") -> spy.CompiledRenderPipeline:
    """A pipeline of no code, as the null device takes it."""
    layout = spy._native._make_program_layout(
        entry_point_name="vs", stages=["vertex", "fragment"], scope_sizes=[16, 0, 0]
    )
    desc = spy.RenderPipelineDesc(targets=[{"format": FORMAT}])
    return device._create_render_pipeline(desc, layout, [b"", b""], label)


@pytest.mark.one
@pytest.mark.needs_kernels
def test_shaders_that_draw_are_not_compiled_to_cpp() -> None:
    """The null device says so before the compiler is asked, which would crash."""
    device = spy.Device(type=spy.DeviceType.null)
    module = device.load_module_from_source("drawn_by_nobody", """
        [shader("vertex")] float4 vs(uint i: SV_VertexID): SV_Position { return float4(i, 0, 0, 1); }
        [shader("fragment")] float4 fs(): SV_Target { return float4(1); }
    """)  # fmt: skip
    program = device.link_program([module], [module.entry_point("vs"), module.entry_point("fs")])
    with pytest.raises(NotImplementedError, match=r"vs: a null device neither draws .* vertex shaders; use a Vulkan"):
        device.create_render_pipeline(program=program, targets=[{"format": FORMAT}])
    later = device.create_render_pipeline(program=program, targets=[{"format": FORMAT}], defer_target_compilation=True)
    assert later.program is program


@pytest.mark.null
def test_null_records_complete_draws() -> None:
    device = spy.Device(type=spy.DeviceType.null)
    assert device.has_feature(spy.Feature.rasterization)
    encoder = device.create_command_encoder()
    with encoder.begin_render_pass(color_attachments=[{"view": texture(device)}]) as render_pass:
        render_pass.bind_pipeline(bare(device))
        render_pass.draw(vertex_count=3)
        render_pass.set_render_state(
            stencil_ref=7, viewports=[{"width": 4, "height": 4}], scissor_rects=[{"max_x": 99, "max_y": 2}]
        )
        render_pass.draw(vertex_count=6, instance_count=2)
        render_pass.draw(vertex_count=0)
    device.submit_command_buffer(encoder.finish())
    (recorded,) = device._take_passes()
    assert recorded["size"] == (8, 8) and recorded["sample_count"] == 1
    first, second = recorded["draws"]
    assert (first["viewports"][0].width, first["scissor_rects"][0].max_x) == (8, 8)  # the whole target
    assert (second["viewports"][0].width, second["scissor_rects"][0].max_x, second["scissor_rects"][0].max_y) == (
        4,
        8,
        2,
    )
    assert (second["stencil_ref"], second["arguments"].instance_count, second["kind"]) == (7, 2, "vertices")
    assert device._take_passes() == []
    device.close()


@pytest.mark.parametrize("name", ["cpu", "cuda"])
def test_devices_that_do_not_draw(name: str) -> None:
    if not spy.Device.enumerate_adapters(spy.DeviceType[name]):
        pytest.skip(f"no {name} device here")
    device = spy.Device(type=spy.DeviceType[name])
    assert not device.has_feature(spy.Feature.rasterization)
    target = texture(device)
    encoder = device.create_command_encoder()
    code = device.load_module_from_source("m", '[shader("vertex")] float4 vs() : SV_Position { return 0; }')
    linked = device.link_program([code], [code.entry_point("vs")])
    for call, what in (
        (lambda: encoder.begin_render_pass(color_attachments=[{"view": target}]), "begin_render_pass"),
        (lambda: device.create_render_pipeline(linked, targets=[{"format": FORMAT}]), "create_render_pipeline"),
        (lambda: device.create_input_layout([], []), "create_input_layout"),
        (lambda: encoder.clear_texture_depth_stencil(target), "clear_texture_depth_stencil"),
    ):
        with pytest.raises(NotImplementedError, match=rf"{what}.*rasterization.*vulkan or d3d12.*lavapipe"):
            call()
    device.close()


@pytest.mark.null
def test_descriptors_read_back() -> None:
    target = spy.ColorTargetDesc(format=FORMAT, color={"src_factor": spy.BlendFactor.src_alpha})
    assert target.color.src_factor is spy.BlendFactor.src_alpha and target.alpha.op is spy.BlendOp.add
    target.color.op = spy.BlendOp.max  # what is inside is no copy
    desc = spy.RenderPipelineDesc(
        {"targets": [target, {"format": FORMAT}], "rasterizer": {"cull_mode": spy.CullMode.back}}
    )
    assert desc.targets[0].color.op is spy.BlendOp.max and desc.targets[1].write_mask == spy.RenderTargetWriteMask.all
    desc.targets[1].enable_blend = True
    assert desc.targets[1].enable_blend and desc.rasterizer.cull_mode is spy.CullMode.back
    assert (desc.program, desc.input_layout, desc.depth_stencil, desc.label) == (None, None, None, None)
    desc.rasterizer = None
    assert desc.rasterizer is None
    depth = spy.DepthStencilDesc()
    assert (depth.depth_write_enable, depth.depth_func, depth.stencil_read_mask) == (
        True,
        spy.ComparisonFunc.less,
        0xFFFFFFFF,
    )
    assert depth.front_face.stencil_func is spy.ComparisonFunc.always
    state = spy.RenderState(viewports=[spy.Viewport.from_size(4, 2)], scissor_rects=[spy.ScissorRect(1, 2, 3, 4)])
    assert (state.viewports[0].height, state.scissor_rects[0].max_x, state.index_format) == (
        2,
        3,
        spy.IndexFormat.uint32,
    )
    attachment = spy.RenderPassDepthStencilAttachment()
    assert (attachment.depth_clear_value, attachment.depth_load_op) == (1.0, spy.LoadOp.clear)
    color = spy.RenderPassColorAttachment(clear_value=spy.float4(1, 2, 3, 4))  # pyright: ignore[reportArgumentType]
    assert color.clear_value == (1, 2, 3, 4) and "clear_value" in repr(color)
    native: Any = spy
    for bad in (
        lambda: native.ColorTargetDesc(formt=1),
        lambda: native.Viewport({"w": 1}),
        lambda: native.DrawArguments(count=1),
    ):
        with pytest.raises(TypeError, match="unknown field.*known fields"):
            bad()
    with pytest.raises(TypeError, match="Buffer"):
        native.BufferOffsetPair(1)


@pytest.mark.null
def test_enumerations() -> None:
    assert [op.value for op in spy.StencilOp] == list(range(8)) and spy.LogicOp.no_op.value == 0
    assert spy.PrimitiveTopology.patch_list.value == 5 and spy.BlendFactor.inv_secondary_src_alpha.value == 16
    assert spy.RenderTargetWriteMask.red | spy.RenderTargetWriteMask.alpha == spy.RenderTargetWriteMask(9)
    assert [op.name for op in spy.LoadOp] == ["load", "clear", "dont_care"]
