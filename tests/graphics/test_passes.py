"""What passes do beside drawing pixels: values, storage, order, timestamps, meshes, layers."""

from __future__ import annotations

import numpy as np
import pytest
from drawing import (
    BLACK,
    FORMAT,
    TRIANGLE,
    WHITE,
    Draw,
    depth_texture,
    picture,
    pipeline,
    position_layout,
    program,
    record,
    render,
    strip,
    texture,
)

import slangpy as spy

pytestmark = pytest.mark.draws

FULL = ["########"] * 8


def test_values_written_between_draws(drawer: spy.Device) -> None:
    """A write after a draw changes later draws only."""
    target, one = texture(drawer), pipeline(drawer, "fullscreen")
    encoder = drawer.create_command_encoder()
    with encoder.begin_render_pass(color_attachments=[{"view": target}]) as render_pass:
        cursor = spy.ShaderCursor(render_pass.bind_pipeline(one))
        for column in range(8):
            cursor.tint = (column, 0, 0, 1)
            render_pass.set_render_state(scissor_rects=[(spy.ScissorRect(column, 0, column + 1, 8))])
            render_pass.draw(vertex_count=3)
    drawer.submit_command_buffer(encoder.finish())
    assert (target.to_numpy()[..., 0] == np.arange(8)).all()


def test_storage_writes(drawer: spy.Device) -> None:
    usage = spy.BufferUsage.unordered_access | spy.BufferUsage.shader_resource
    counts = drawer.create_buffer(data=np.zeros(4, np.uint32), usage=usage)
    places = texture(drawer, spy.Format.r32_float, spy.TextureUsage.unordered_access, data=np.zeros((8, 8), np.float32))
    target = texture(drawer)
    render(drawer, target, Draw(pipeline(drawer, fragment="counting"), {"counts": counts, "places": places}))
    assert counts.to_numpy().view(np.uint32)[0] == 28
    assert places.to_numpy()[7].tolist() == [0.5, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 0]


def test_uniforms_of_entry_points(drawer: spy.Device) -> None:
    """Both stages have some of their own: each gets its own."""
    target, one = texture(drawer), pipeline(drawer, "own", "own_color")
    encoder = drawer.create_command_encoder()
    with encoder.begin_render_pass(color_attachments=[{"view": target}]) as render_pass:
        cursor = spy.ShaderCursor(render_pass.bind_pipeline(one))
        render_pass.set_render_state(vertex_buffers=[strip(drawer)])
        for column, offset in enumerate((0.0, 1.0)):
            cursor.find_entry_point(0).offset = (offset, offset)
            cursor.find_entry_point(1).k = 2.0 + column
            cursor.find_entry_point(1).c = (1, 2, 3, 4)
            render_pass.draw(vertex_count=3)
    drawer.submit_command_buffer(encoder.finish())
    image = target.to_numpy()
    assert (
        image[7, 0].tolist() == [2, 4, 6, 8]
        and image[3, 4].tolist() == [3, 6, 9, 12]
        and image[7, 7].tolist() == [0] * 4
    )


def test_uniforms_of_one_entry_point(drawer: spy.Device) -> None:
    target, one = texture(drawer), pipeline(drawer, "own")
    encoder = drawer.create_command_encoder()
    with encoder.begin_render_pass(color_attachments=[{"view": target}]) as render_pass:
        cursor = spy.ShaderCursor(render_pass.bind_pipeline(one))
        cursor.tint = WHITE
        render_pass.set_render_state(vertex_buffers=[strip(drawer)])
        for offset in ((0.0, 1.0), (1.0, 0.0)):
            cursor.find_entry_point(0).offset = offset
            render_pass.draw(vertex_count=3)
    drawer.submit_command_buffer(encoder.finish())
    assert picture(target.to_numpy()) == ["####....", "#####...", "######..", "#######."] + ["....####"] * 4


ORDERED = """
[shader("compute")] [numthreads(8, 1, 1)]
void place(uint3 i : SV_DispatchThreadID, uniform RWStructuredBuffer<float2> corners, uniform float size)
{ if (i.x < 3) corners[i.x] = float2(i.x == 1 ? size : -1, i.x == 2 ? size : -1); }
[shader("compute")] [numthreads(8, 8, 1)]
void sum(uint3 i : SV_DispatchThreadID, uniform Texture2D<float4> drawn, uniform RWStructuredBuffer<uint> total)
{ if (drawn[i.xy].w != 0) InterlockedAdd(total[0], 1); }
"""


def test_order_with_kernels(drawer: spy.Device) -> None:
    """Kernels write vertices, a pass draws them, kernels read what it drew: in one command buffer, again and again."""
    code = drawer.load_module_from_source("ordered", ORDERED)
    place, total_of = (
        drawer.create_compute_kernel(drawer.link_program([code], [code.entry_point(n)])) for n in ("place", "sum")
    )
    usage = spy.BufferUsage.unordered_access | spy.BufferUsage.vertex_buffer
    corners = drawer.create_buffer(size=24, struct_size=8, usage=usage)
    totals = [drawer.create_buffer(size=4, struct_size=4, usage=spy.BufferUsage.unordered_access) for _ in range(6)]
    target, one = texture(drawer), pipeline(drawer)
    encoder = drawer.create_command_encoder()
    for i, total in enumerate(totals):
        place.dispatch([3, 1, 1], command_encoder=encoder, corners=corners, size=1.0 if i % 2 else 3.0)
        record(
            drawer, encoder, {"color_attachments": [{"view": target}]}, [Draw(one, state={"vertex_buffers": [corners]})]
        )
        total_of.dispatch([8, 8, 1], command_encoder=encoder, drawn=target, total=total)
    drawer.submit_command_buffer(encoder.finish())
    assert [int(total.to_numpy().view(np.uint32)[0]) for total in totals] == [64, 28] * 3


LAYERED = """
struct Vertex { float4 p : SV_Position; uint layer : SV_RenderTargetArrayIndex; }
[shader("vertex")] Vertex vs(uint i : SV_VertexID, uint instance : SV_InstanceID)
{ return { float4(i == 1 ? 3 : -1, i == 2 ? 3 : -1, 0, 1), instance }; }
[shader("fragment")] float4 fs(uint layer : SV_RenderTargetArrayIndex) : SV_Target { return float4(layer + 1, 0, 0, 1); }
"""


def test_layered(drawer: spy.Device) -> None:
    """The vertex shader chooses the layer of each instance."""
    array = drawer.create_texture(
        type=spy.TextureType.texture_2d_array, format=FORMAT, width=4, height=4, array_length=3,
        usage=spy.TextureUsage.render_target,
    )  # fmt: skip
    code = drawer.load_module_from_source("layered", LAYERED)
    linked = drawer.link_program([code], [code.entry_point("vs"), code.entry_point("fs")])
    one = drawer.create_render_pipeline(linked, targets=[{"format": FORMAT}])
    encoder = drawer.create_command_encoder()
    with encoder.begin_render_pass(color_attachments=[{"view": array, "clear_value": (9, 9, 9, 9)}]) as render_pass:
        render_pass.bind_pipeline(one)
        render_pass.draw(vertex_count=3, instance_count=2)
    drawer.submit_command_buffer(encoder.finish())
    assert [array.to_numpy(layer)[..., 0].tolist() for layer in range(3)] == [[[x] * 4] * 4 for x in (1.0, 2.0, 9.0)]


def test_attachment_then_texture_then_attachment(drawer: spy.Device) -> None:
    """What a pass drew is sampled by the next, in one command buffer and with no barrier by hand."""
    first, second = texture(drawer), texture(drawer)
    encoder = drawer.create_command_encoder()
    for _ in range(3):
        with encoder.begin_render_pass(color_attachments=[{"view": first}]) as render_pass:
            cursor = spy.ShaderCursor(render_pass.bind_pipeline(pipeline(drawer)))
            cursor.scale, cursor.tint = (1, 1), (5, 6, 7, 8)
            render_pass.set_render_state(vertex_buffers=[strip(drawer)])
            render_pass.draw(vertex_count=3)
        with encoder.begin_render_pass(color_attachments=[{"view": second}]) as render_pass:
            cursor = spy.ShaderCursor(render_pass.bind_pipeline(pipeline(drawer, "fullscreen", "reading")))
            cursor.picture = first
            render_pass.draw(vertex_count=3)
    drawer.submit_command_buffer(encoder.finish())
    assert (second.to_numpy() == first.to_numpy()).all() and picture(second.to_numpy()) == TRIANGLE


def test_read_only_depth_is_read(drawer: spy.Device) -> None:
    depth, target = depth_texture(drawer), texture(drawer)
    encoder = drawer.create_command_encoder()
    encoder.clear_texture_depth_stencil(depth, depth_value=0.5)
    tested = {"format": spy.Format.d32_float, "depth_test_enable": True, "depth_write_enable": False}
    one = pipeline(drawer, "fullscreen", "reading", depth_stencil=tested)
    desc = {
        "color_attachments": [{"view": target}],
        "depth_stencil_attachment": {"view": depth, "depth_read_only": True},
    }
    with encoder.begin_render_pass(desc) as render_pass:
        cursor = spy.ShaderCursor(render_pass.bind_pipeline(one))
        cursor.z = 0.25
        cursor.picture = depth
        render_pass.draw(vertex_count=3)
    drawer.submit_command_buffer(encoder.finish())
    assert (target.to_numpy()[..., 0] == 0.5).all() and (depth.to_numpy() == 0.5).all()


def test_clear_depth_stencil(drawer: spy.Device) -> None:
    depth = depth_texture(drawer, spy.Format.d16_unorm)
    encoder = drawer.create_command_encoder()
    encoder.clear_texture_depth_stencil(depth, range={}, clear_depth=True, depth_value=1.0)
    drawer.submit_command_buffer(encoder.finish())
    assert (depth.to_numpy() == 65535).all()


def test_timestamps_and_markers(drawer: spy.Device) -> None:
    target, pool = texture(drawer), drawer.create_query_pool(type=spy.QueryType.timestamp, count=2)
    encoder = drawer.create_command_encoder()
    with encoder.begin_render_pass(color_attachments=[{"view": target}]) as render_pass:
        render_pass.push_debug_group("group", (1, 0, 0))
        render_pass.write_timestamp(pool, 0)
        spy.ShaderCursor(render_pass.bind_pipeline(pipeline(drawer, "fullscreen"))).tint = WHITE
        render_pass.draw(vertex_count=3)
        render_pass.insert_debug_marker("here")
        render_pass.write_timestamp(pool, 1)
        render_pass.pop_debug_group()
    drawer.submit_command_buffer(encoder.finish())
    begin, end = pool.get_results(0, 2)
    assert 0 < begin <= end and picture(target.to_numpy()) == FULL


def test_loads_and_empty_pass(drawer: spy.Device) -> None:
    target = texture(drawer)
    render(drawer, {"color_attachments": [{"view": target, "clear_value": (1, 2, 3, 4)}]})
    render(drawer, {"color_attachments": [{"view": target, "load_op": spy.LoadOp.load, "clear_value": BLACK}]})
    assert (target.to_numpy() == (1, 2, 3, 4)).all()


def test_root_object(drawer: spy.Device) -> None:
    """One made beforehand serves as the pass's own."""
    target, one = texture(drawer), pipeline(drawer)
    root = drawer.create_root_shader_object(program(drawer, "vs", "fs"))
    cursor = spy.ShaderCursor(root)
    cursor.scale, cursor.tint = (1, 1), (4, 3, 2, 1)
    encoder = drawer.create_command_encoder()
    with encoder.begin_render_pass(color_attachments=[{"view": target}]) as render_pass:
        assert render_pass.bind_pipeline(one, root) is root
        render_pass.set_render_state(vertex_buffers=[strip(drawer)])
        render_pass.draw(vertex_count=3)
    drawer.submit_command_buffer(encoder.finish())
    assert target.to_numpy()[7, 0].tolist() == [4, 3, 2, 1]


MESH = """
struct Vertex { float4 p : SV_Position; }
[shader("mesh")] [outputtopology("triangle")] [numthreads(1, 1, 1)]
void ms(uint3 group : SV_GroupID, out vertices Vertex v[4], out indices uint3 t[2])
{
    SetMeshOutputCounts(4, 2);
    for (uint i = 0; i < 4; ++i)
        v[i].p = float4(float2(i & 1, i >> 1) * 0.5 - 0.5 + group.x * 0.5 * float2(1, 0), 0, 1);
    t[0] = uint3(0, 1, 2); t[1] = uint3(1, 3, 2);
}
[shader("fragment")] float4 fs() : SV_Target { return float4(1, 1, 1, 1); }
"""


def test_mesh(drawer: spy.Device) -> None:
    if not drawer.has_feature(spy.Feature.mesh_shader):
        with pytest.raises(NotImplementedError, match="mesh_shader"):
            drawer.create_command_encoder().begin_render_pass(
                color_attachments=[{"view": texture(drawer)}]
            ).draw_mesh_tasks([1, 1, 1])
        return
    code = drawer.load_module_from_source("meshes", MESH)
    linked = drawer.link_program([code], [code.entry_point("ms"), code.entry_point("fs")])
    target = texture(drawer)
    one = drawer.create_render_pipeline(linked, targets=[{"format": FORMAT}])
    encoder = drawer.create_command_encoder()
    with encoder.begin_render_pass(color_attachments=[{"view": target}]) as render_pass:
        render_pass.bind_pipeline(one)
        with pytest.raises(ValueError, match="mesh"):
            render_pass.draw(vertex_count=3)
        render_pass.draw_mesh_tasks([2, 1, 1])
    drawer.submit_command_buffer(encoder.finish())
    assert picture(target.to_numpy()) == ["........"] * 4 + ["..####.."] * 2 + ["........"] * 2


def test_layout_is_kept(drawer: spy.Device) -> None:
    layout = position_layout(drawer)
    element = layout.desc.input_elements[0]
    assert (element.semantic_name, element.format) == ("POSITION", spy.Format.rg32_float)
    assert layout.desc.vertex_streams[0].stride == 8
