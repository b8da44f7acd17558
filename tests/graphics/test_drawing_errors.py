"""Bad input: each mistake is an error at the call, which names the pass's attachment, the semantic or the field."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from drawing import DRAWN, FORMAT, depth_texture, module, pipeline, position_layout, program, strip, texture

import slangpy as spy

pytestmark = pytest.mark.draws


def refuses(call: Callable[[], Any], kind: type[Exception], *words: str) -> None:
    with pytest.raises(kind) as caught:
        call()
    for word in words:
        assert word in str(caught.value)


# --- pipelines


def layout_of(device: spy.Device, elements: list[dict[str, Any]], *strides: int) -> spy.InputLayout:
    return device.create_input_layout(elements, [{"stride": stride} for stride in strides])


def test_input_layouts(drawer: spy.Device) -> None:
    rg, position = spy.Format.rg32_float, {"semantic_name": "POSITION", "format": spy.Format.rg32_float}

    def make(elements: list[dict[str, Any]], *strides: int) -> Callable[[], Any]:
        return lambda: pipeline(drawer, input_layout=layout_of(drawer, elements, *strides))

    refuses(
        make([{"semantic_name": "FOO", "format": rg}], 8), ValueError,
        "vertex input 'POSITION0' of 'vs' is not in the input layout; it has FOO0",
    )  # fmt: skip
    refuses(make([{**position, "semantic_index": 1}], 8), ValueError, "POSITION0", "POSITION1")
    refuses(lambda: pipeline(drawer, input_layout=None), ValueError, "POSITION0", "none was given")
    refuses(make([{**position, "buffer_slot_index": 1}], 8), ValueError, "POSITION0", "stream 1")
    refuses(make([position], 4), ValueError, "POSITION0", "stride of 4")
    refuses(make([{**position, "offset": 4}], 8), ValueError, "POSITION0", "stride of 8")
    refuses(make([{"semantic_name": "POSITION"}], 8), ValueError, "POSITION0", "format")
    refuses(make([{**position, "format": spy.Format.bc1_unorm}], 8), ValueError, "POSITION0", "bc1_unorm")
    refuses(make([{**position, "format": spy.Format.rg32_uint}], 8), ValueError, "POSITION0", "rg32_uint", "float")
    refuses(make([position, position], 8), ValueError, "two elements", "POSITION0")
    refuses(make([{"format": rg}], 8), ValueError, "semantic_name")
    wrong = drawer.create_input_layout([position], [{"stride": 8, "instance_data_step_rate": 1}])
    refuses(lambda: pipeline(drawer, input_layout=wrong), ValueError, "vertex_streams[0]", "per_instance")


def test_programs(drawer: spy.Device) -> None:
    code = drawer.load_module_from_source(
        "mixed",
        """[shader("compute")] [numthreads(1, 1, 1)] void work() {}
        [shader("vertex")] float4 v1() : SV_Position { return float4(0); }
        [shader("vertex")] float4 v2() : SV_Position { return float4(0); }
        [shader("pixel")] float4 f1() : SV_Target { return float4(0); }""",
    )

    def make(*names: str) -> Callable[[], Any]:
        linked = drawer.link_program([code], [code.entry_point(name) for name in names])
        return lambda: drawer.create_render_pipeline(linked, targets=[{"format": FORMAT}])

    refuses(make("work"), ValueError, "'work'", "compute")
    refuses(make("v1", "f1", "work"), ValueError, "'work'", "compute")
    refuses(make("v1", "v2", "f1"), ValueError, "two vertex", "'v2'")
    refuses(make("f1"), ValueError, "vertex or mesh")
    refuses(make("v1"), ValueError, "fragment", "targets[0]")
    make("v1", "f1")()
    refuses(lambda: drawer.create_render_pipeline(code), TypeError, "program")
    refuses(lambda: drawer.create_render_pipeline(None), TypeError, "program")
    refuses(
        lambda: drawer.create_compute_pipeline(program(drawer, "vs", "fs")), ValueError, "vertex", "render pipeline"
    )


def test_targets(drawer: spy.Device) -> None:
    def make(**fields: Any) -> Callable[[], Any]:
        return lambda: pipeline(drawer, **fields)

    refuses(make(targets=[{"format": FORMAT}, {}]), ValueError, "targets[1]", "format")
    refuses(make(targets=[{"format": spy.Format.d32_float}]), ValueError, "targets[0]", "d32_float", "depth_stencil")
    refuses(make(targets=[{"format": spy.Format.bc1_unorm}]), ValueError, "targets[0]", "bc1_unorm")
    refuses(
        make(targets=[{"format": spy.Format.rgba32_uint, "enable_blend": True}]),
        ValueError,
        "targets[0]",
        "rgba32_uint",
    )
    refuses(make(targets=[{"format": FORMAT}] * 9), ValueError, "9", "8")
    refuses(make(targets=[], depth_stencil=None), ValueError, "writes nothing")
    depth = {"depth_test_enable": True}
    refuses(make(depth_stencil=depth), ValueError, "depth_stencil", "depth_test_enable", "format")
    refuses(make(depth_stencil={**depth, "format": FORMAT}), ValueError, "depth_stencil", "rgba32_float")
    stencil = {"stencil_enable": True, "format": spy.Format.d32_float}
    refuses(make(depth_stencil=stencil), ValueError, "stencil_enable", "d32_float")
    refuses(make(multisample={"sample_count": 3}), ValueError, "sample_count", "3")
    refuses(make(multisample={"sample_count": 64}), ValueError, "sample_count", "64")
    color = {"src_factor": spy.BlendFactor.blend_color}
    blended = [{"format": FORMAT, "enable_blend": True, "color": color}]
    refuses(make(targets=blended), NotImplementedError, "blend_color")
    patches = spy.PrimitiveTopology.patch_list
    refuses(make(primitive_topology=patches), NotImplementedError, "patch_list")


def test_unknown_fields(drawer: spy.Device) -> None:
    refuses(lambda: pipeline(drawer, targets=[{"form": 1}]), TypeError, "'form'", "format, enable_blend")
    refuses(lambda: pipeline(drawer, rasterizer={"cull": 1}), TypeError, "'cull'", "cull_mode")
    refuses(lambda: pipeline(drawer, rasterizer={"cull_mode": 1}), TypeError, "cull_mode", "CullMode")
    refuses(
        lambda: pipeline(drawer, topology=1), TypeError, "create_render_pipeline", "'topology'", "primitive_topology"
    )
    encoder = drawer.create_command_encoder()
    refuses(
        lambda: encoder.begin_render_pass({"color": []}), TypeError, "begin_render_pass", "'color'", "color_attachments"
    )
    refuses(
        lambda: encoder.begin_render_pass(color_attachments=[{"texture": 1}]),
        TypeError,
        "color_attachments'[0]",
        "'texture'",
    )
    refuses(lambda: encoder.begin_render_pass(color_attachments=[{"view": 1}]), TypeError, "'view'", "TextureView")
    encoder.finish()


# --- passes


def test_attachments(drawer: spy.Device) -> None:
    encoder = drawer.create_command_encoder()

    def begin(colors: list[Any], depth: Any = None) -> Callable[[], Any]:
        return lambda: encoder.begin_render_pass(color_attachments=colors, depth_stencil_attachment=depth)

    target, depth = texture(drawer), depth_texture(drawer)
    refuses(begin([]), ValueError, "no attachment")
    refuses(begin([{}]), TypeError, "color_attachments[0]", "view")
    unused = texture(drawer, usage=spy.TextureUsage.shader_resource)
    refuses(begin([{"view": target}, {"view": unused}]), ValueError, "color_attachments[1]", "render_target")
    refuses(begin([{"view": depth}]), ValueError, "color_attachments[0]", "render_target")
    refuses(begin([], {"view": target}), ValueError, "depth_stencil_attachment", "depth_stencil")
    small = texture(drawer, size=4)
    refuses(begin([{"view": target}, {"view": small}]), ValueError, "color_attachments[1]", "4 x 4", "8 x 8")
    refuses(begin([{"view": target}], {"view": depth_texture(drawer, size=16)}), ValueError, "16 x 16")
    refuses(begin([{"view": target}, {"view": target}]), ValueError, "color_attachments[1]", "color_attachments[0]")
    mips = texture(drawer, mip_count=2)
    refuses(begin([{"view": mips.create_view()}]), ValueError, "color_attachments[0]", "2 mips")
    begin([{"view": mips}])().end()
    flat = drawer.create_texture(
        type=spy.TextureType.texture_3d, format=FORMAT, width=8, height=8, depth=2, usage=DRAWN
    )
    refuses(begin([{"view": flat}]), ValueError, "texture_3d")
    refuses(begin([{"view": texture(drawer)} for _ in range(9)]), ValueError, "9", "8")
    refuses(begin([], {"view": depth, "depth_clear_value": 2.0}), ValueError, "depth_clear_value", "2")
    refuses(begin([], {"view": depth, "stencil_clear_value": 256}), ValueError, "stencil_clear_value")
    other = spy.Device(type=spy.DeviceType.null)
    refuses(begin([{"view": texture(other)}]), ValueError, "another device")
    other.close()


def test_resolve_targets(drawer: spy.Device) -> None:
    encoder = drawer.create_command_encoder()

    def many(format: spy.Format = FORMAT, size: int = 8) -> spy.Texture:
        return drawer.create_texture(
            type=spy.TextureType.texture_2d_ms, format=format, width=size, height=size, sample_count=4, usage=DRAWN
        )

    def begin(view: Any, target: Any) -> Callable[[], Any]:
        return lambda: encoder.begin_render_pass(color_attachments=[{"view": view, "resolve_target": target}])

    where, usage = "color_attachments[0]'.resolve_target", spy.TextureUsage.resolve_destination
    refuses(begin(many(), texture(drawer)), ValueError, where, "resolve_destination")
    refuses(begin(texture(drawer), texture(drawer, usage=usage)), ValueError, where, "one sample")
    refuses(begin(many(), texture(drawer, usage=usage, size=4)), ValueError, where, "4 x 4")
    refuses(begin(many(), texture(drawer, spy.Format.rgba16_float, usage)), ValueError, where, "rgba16_float")
    integers = spy.Format.rgba32_uint
    refuses(begin(many(integers), texture(drawer, integers, usage)), ValueError, where, "rgba32_uint")
    refuses(
        lambda: encoder.begin_render_pass(color_attachments=[{"view": many()}, {"view": texture(drawer)}]),
        ValueError, "color_attachments[1]", "4 samples", "1 sample",
    )  # fmt: skip


def test_order_of_calls(drawer: spy.Device) -> None:
    encoder = drawer.create_command_encoder()
    render_pass = encoder.begin_render_pass(color_attachments=[{"view": texture(drawer)}])
    for call in (
        lambda: encoder.begin_render_pass(color_attachments=[{"view": texture(drawer)}]),
        encoder.begin_compute_pass, encoder.finish, encoder.global_barrier,
        lambda: encoder.clear_texture_float(texture(drawer)),
    ):  # fmt: skip
        refuses(call, RuntimeError, "a render pass is open")
    refuses(lambda: render_pass.draw(vertex_count=3), RuntimeError, "draw", "no pipeline")
    refuses(lambda: render_pass.pop_debug_group(), RuntimeError, "pop_debug_group")
    render_pass.push_debug_group("open")
    refuses(render_pass.end, RuntimeError, "debug group")
    render_pass.pop_debug_group()
    render_pass.end()
    render_pass.end()
    for call in (
        lambda: render_pass.draw(vertex_count=3), lambda: render_pass.set_render_state(),
        lambda: render_pass.bind_pipeline(pipeline(drawer)), lambda: render_pass.push_debug_group("late"),
    ):  # fmt: skip
        refuses(call, RuntimeError, "has ended")
    encoder.finish()
    refuses(lambda: encoder.begin_render_pass(color_attachments=[{"view": texture(drawer)}]), RuntimeError, "finish")


def test_after_an_exception(drawer: spy.Device) -> None:
    """The pass is closed, whatever was open in it, and the exception goes on."""
    encoder = drawer.create_command_encoder()
    with (
        pytest.raises(KeyError),
        encoder.begin_render_pass(color_attachments=[{"view": texture(drawer)}]) as render_pass,
    ):
        render_pass.push_debug_group("open")
        raise KeyError("mine")
    drawer.submit_command_buffer(encoder.finish())


# --- draws


@pytest.fixture
def render_pass(drawer: spy.Device) -> spy.RenderPassEncoder:
    return drawer.create_command_encoder().begin_render_pass(color_attachments=[{"view": texture(drawer)}])


def bound(drawer: spy.Device, render_pass: spy.RenderPassEncoder, **fields: Any) -> spy.ShaderCursor:
    return spy.ShaderCursor(render_pass.bind_pipeline(pipeline(drawer, **fields)))


def test_draws_that_do_not_fit_the_pass(drawer: spy.Device, render_pass: spy.RenderPassEncoder) -> None:
    state = {"vertex_buffers": [strip(drawer)]}
    render_pass.set_render_state(state)
    for fields, words in (
        ({"targets": [{"format": FORMAT}] * 2}, ("2 targets", "1 color_attachments")),
        ({"targets": [{"format": spy.Format.rgba16_float}]}, ("rgba16_float", "targets[0]", "rgba32_float")),
        ({"multisample": {"sample_count": 4}}, ("4 samples", "1")),
        ({"depth_stencil": {"format": spy.Format.d32_float}}, ("d32_float", "no depth_stencil_attachment")),
    ):
        bound(drawer, render_pass, **fields)
        refuses(lambda: render_pass.draw(vertex_count=3), ValueError, "draw: pipeline 'vs, fs'", *words)
    depth = depth_texture(drawer)
    encoder = drawer.create_command_encoder()
    attachment = {"view": depth, "depth_read_only": True}
    other = encoder.begin_render_pass(
        color_attachments=[{"view": texture(drawer)}], depth_stencil_attachment=attachment
    )
    bound(drawer, other)
    refuses(lambda: other.draw(vertex_count=3), ValueError, "no depth_stencil format", "d32_float")
    bound(drawer, other, depth_stencil={"format": spy.Format.d32_float, "depth_test_enable": True})
    refuses(lambda: other.draw(vertex_count=3), ValueError, "depth_read_only")


def test_buffers(drawer: spy.Device, render_pass: spy.RenderPassEncoder) -> None:
    bound(drawer, render_pass)
    refuses(lambda: render_pass.draw(vertex_count=3), ValueError, "vertex stream 0 has no buffer", "POSITION0")
    plain = drawer.create_buffer(size=64, usage=spy.BufferUsage.shader_resource)
    refuses(
        lambda: render_pass.set_render_state(vertex_buffers=[plain]), ValueError, "vertex_buffers[0]", "vertex_buffer"
    )
    refuses(
        lambda: render_pass.set_render_state(index_buffer=plain), ValueError, "index_buffer", "usage flag index_buffer"
    )
    refuses(
        lambda: render_pass.set_render_state({"vertex_buffers": [1]}), TypeError, "vertex_buffers", "BufferOffsetPair"
    )
    far = spy.BufferOffsetPair(strip(drawer), 33)
    refuses(lambda: render_pass.set_render_state(vertex_buffers=[far]), IndexError, "vertex_buffers[0]", "33")
    render_pass.set_render_state(vertex_buffers=[strip(drawer)])
    refuses(lambda: render_pass.draw(vertex_count=5), IndexError, "vertex_buffers[0]", "32 bytes", "40")
    refuses(lambda: render_pass.draw(vertex_count=3, start_vertex_location=2), IndexError, "vertex_buffers[0]")
    refuses(lambda: render_pass.draw_indexed(vertex_count=3), ValueError, "draw_indexed", "no index buffer")
    indices = drawer.create_buffer(data=np.arange(3, dtype=np.uint16), usage=spy.BufferUsage.index_buffer)
    state = {"vertex_buffers": [strip(drawer)], "index_buffer": indices}
    render_pass.set_render_state(state)
    refuses(lambda: render_pass.draw_indexed(vertex_count=3), IndexError, "index_buffer", "6 bytes", "12")
    refuses(
        lambda: render_pass.set_render_state({**state, "index_buffer": spy.BufferOffsetPair(indices, 2)}),
        ValueError, "index_buffer", "multiple of 4",
    )  # fmt: skip
    render_pass.draw(vertex_count=0)
    render_pass.draw(vertex_count=99, instance_count=0)
    refuses(lambda: render_pass.draw(vertex_count=-1), ValueError, "vertex_count")


def test_indirect(drawer: spy.Device, render_pass: spy.RenderPassEncoder) -> None:
    records = drawer.create_buffer(size=32, usage=spy.BufferUsage.indirect_argument)
    refuses(lambda: render_pass.draw_indirect(1, records), RuntimeError, "no pipeline")
    bound(drawer, render_pass)
    render_pass.set_render_state(vertex_buffers=[strip(drawer)])
    refuses(lambda: render_pass.draw_indirect(1, strip(drawer)), ValueError, "arg_buffer", "indirect_argument")
    refuses(lambda: render_pass.draw_indirect(3, records), IndexError, "arg_buffer")
    refuses(lambda: render_pass.draw_indirect(1, spy.BufferOffsetPair(records, 2)), ValueError, "multiple of 4")
    refuses(
        lambda: render_pass.draw_indirect(1, records, strip(drawer)), ValueError, "count_buffer", "indirect_argument"
    )
    refuses(lambda: render_pass.draw_indirect(1, None), TypeError, "arg_buffer")
    refuses(lambda: render_pass.draw_indexed_indirect(1, records), ValueError, "no index buffer")


def test_state(drawer: spy.Device, render_pass: spy.RenderPassEncoder) -> None:
    def state(**fields: Any) -> Callable[[], Any]:
        return lambda: render_pass.set_render_state(**fields)

    refuses(state(viewports=[{"width": 8}]), ValueError, "viewports[0]", "height")
    refuses(state(viewports=[{"width": 8, "height": 8, "max_depth": 2}]), ValueError, "viewports[0]", "max_depth 2")
    refuses(state(viewports=[{"width": float("nan"), "height": 8}]), ValueError, "viewports[0]")
    refuses(state(viewports=[spy.Viewport.from_size(8, 8)] * 17), ValueError, "17", "16")
    refuses(state(scissor_rects=[{"min_x": 4, "max_x": 2}]), ValueError, "scissor_rects[0]")
    refuses(state(scissor_rects=[{"min_x": -1}]), ValueError, "min_x")
    refuses(state(stencil_ref=256), ValueError, "stencil_ref", "256")
    refuses(state(viewport=1), TypeError, "'viewport'", "viewports")


def test_arguments(drawer: spy.Device, render_pass: spy.RenderPassEncoder) -> None:
    cursor = bound(drawer, render_pass, vertex="fullscreen", fragment="reading")
    refuses(lambda: render_pass.draw(vertex_count=3), RuntimeError, "'picture'", "never set")
    unread = texture(drawer, usage=spy.TextureUsage.render_target)
    refuses(lambda: setattr(cursor, "picture", unread), ValueError, "picture", "shader_resource")
    cursor.picture = texture(drawer)
    render_pass.draw(vertex_count=3)
    refuses(lambda: render_pass.bind_pipeline(1), TypeError, "RenderPipeline")  # pyright: ignore[reportArgumentType]
    code = module(drawer)
    root = drawer.create_root_shader_object(
        drawer.link_program([code], [code.entry_point("own"), code.entry_point("own_color")])
    )
    refuses(lambda: render_pass.bind_pipeline(pipeline(drawer), root), ValueError, "another program")


def test_reading_what_is_drawn(drawer: spy.Device) -> None:
    target, depth = texture(drawer, mip_count=2), depth_texture(drawer)
    encoder = drawer.create_command_encoder()
    view = target.create_view(mip=0, mip_count=1)
    desc = {"color_attachments": [{"view": view}], "depth_stencil_attachment": {"view": depth}}
    with encoder.begin_render_pass(desc) as render_pass:
        format = {"format": spy.Format.d32_float}
        cursor = bound(drawer, render_pass, vertex="fullscreen", fragment="reading", depth_stencil=format)
        cursor.picture = target
        refuses(lambda: render_pass.draw(vertex_count=3), ValueError, "'picture'", "color_attachments[0]")
        cursor.picture = depth
        refuses(lambda: render_pass.draw(vertex_count=3), ValueError, "'picture'", "depth_read_only")
        cursor.picture = target.create_view(mip=1, mip_count=1)  # another part of it
        render_pass.draw(vertex_count=3)


def test_clear_of_depth(drawer: spy.Device) -> None:
    encoder = drawer.create_command_encoder()

    def clear(item: spy.Texture, **fields: Any) -> Callable[[], Any]:
        return lambda: encoder.clear_texture_depth_stencil(item, **fields)

    refuses(clear(texture(drawer)), ValueError, "rgba32_float", "colour")
    refuses(clear(depth_texture(drawer), depth_value=1.5), ValueError, "depth_value")
    refuses(clear(depth_texture(drawer), clear_depth=False), ValueError, "nothing to clear")
    refuses(clear(depth_texture(drawer), range={"mip": 1}), IndexError, "mip")
    unused = texture(drawer, spy.Format.d32_float, spy.TextureUsage.shader_resource)
    refuses(clear(unused), ValueError, "depth_stencil")


def test_layouts_of_one_device(drawer: spy.Device) -> None:
    refuses(lambda: drawer.create_input_layout(vertex_streams=[{"size": 1}]), TypeError, "'size'", "stride")
    refuses(lambda: pipeline(drawer, input_layout={"input_elements": []}), TypeError, "input_layout", "InputLayout")
    assert position_layout(drawer).device is drawer
