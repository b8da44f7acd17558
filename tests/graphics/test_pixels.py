"""Pixels of a triangle and what is said of it: each row is exact, whatever device draws it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from drawing import (
    FORMAT,
    STRIP,
    TRIANGLE,
    Draw,
    count,
    depth_texture,
    picture,
    pipeline,
    render,
    texture,
    vertex_buffer,
)

import slangpy as spy

pytestmark = pytest.mark.draws

FULL = ["########"] * 8


def indices(device: spy.Device, values: list[int], dtype: Any = np.uint32) -> spy.Buffer:
    return device.create_buffer(data=np.array(values, dtype), usage=spy.BufferUsage.index_buffer)


def test_triangle(drawer: spy.Device) -> None:
    target = texture(drawer)
    whole = {"viewports": [spy.Viewport.from_size(8, 8)], "scissor_rects": [spy.ScissorRect.from_size(8, 8)]}
    tint = {"tint": (1, 0.5, 0.25, 1)}
    for state in (whole, {}):  # with nothing said, the whole target is meant
        render(drawer, target, Draw(pipeline(drawer), tint, state))
        image = target.to_numpy()
        assert picture(image) == TRIANGLE
        assert image[7, 0].tolist() == [1, 0.5, 0.25, 1] and image[0, 0].tolist() == [0, 0, 0, 0]
    assert sum(row.count("#") for row in TRIANGLE) == 28


def test_positions_and_numbers(drawer: spy.Device) -> None:
    target = texture(drawer)
    both = pipeline(drawer, fragment="positions", primitive_topology=spy.PrimitiveTopology.triangle_strip)
    render(drawer, target, Draw(both, {"z": 0.25}, call=("draw", {"vertex_count": 4})))
    image = target.to_numpy()
    assert image[2, 3].tolist() == [3.5, 2.5, 0.25, 1] and picture(image) == FULL
    numbers = pipeline(drawer, fragment="numbers", primitive_topology=spy.PrimitiveTopology.triangle_strip)
    render(drawer, target, Draw(numbers, call=("draw", {"vertex_count": 4})))
    ids = target.to_numpy()[..., 0]
    assert (ids == 0).sum() == 28 and (ids == 1).sum() == 36


@pytest.mark.parametrize("dtype", [np.uint16, np.uint32])
def test_indexed(drawer: spy.Device, dtype: Any) -> None:
    target, two = texture(drawer), pipeline(drawer)
    format = spy.IndexFormat.uint16 if dtype is np.uint16 else spy.IndexFormat.uint32
    state = {"index_buffer": indices(drawer, [0, 1, 2, 1, 3, 2], dtype), "index_format": format}
    render(drawer, target, Draw(two, state=state, call=("draw_indexed", {"vertex_count": 6})))
    assert count(target.to_numpy()) == 64
    second = {"vertex_count": 3, "start_index_location": 3}
    render(drawer, target, Draw(two, state=state, call=("draw_indexed", second)))
    assert count(target.to_numpy()) == 36
    shifted = spy.BufferOffsetPair(state["index_buffer"], 3 * np.dtype(dtype).itemsize)
    if shifted.offset % 4 == 0:
        later = {**state, "index_buffer": shifted}
        render(drawer, target, Draw(two, state=later, call=("draw_indexed", {"vertex_count": 3})))
        assert count(target.to_numpy()) == 36
    added = {"vertex_count": 3, "start_vertex_location": 1}
    render(drawer, target, Draw(two, state=state, call=("draw_indexed", added)))
    assert count(target.to_numpy()) == 36


def test_fullscreen_without_vertices(drawer: spy.Device) -> None:
    target = texture(drawer)
    render(drawer, target, Draw(pipeline(drawer, "fullscreen", input_layout=None), state={"vertex_buffers": []}))
    assert picture(target.to_numpy()) == FULL


def instanced(device: spy.Device, rate: int) -> spy.RenderPipeline:
    layout = device.create_input_layout(
        [
            {"semantic_name": "shift", "semantic_index": 1, "format": spy.Format.rg32_float, "buffer_slot_index": 1},
            {"semantic_name": "Position", "format": spy.Format.rg32_float},
        ],
        [{"stride": 8}, {"stride": 8, "slot_class": spy.InputSlotClass.per_instance, "instance_data_step_rate": rate}],
    )
    return pipeline(device, "shifted", input_layout=layout, primitive_topology=spy.PrimitiveTopology.triangle_strip)


def test_instances(drawer: spy.Device) -> None:
    quad = vertex_buffer(drawer, np.array([(-1, -1), (0, -1), (-1, 0), (0, 0)], np.float32))
    shifts = vertex_buffer(drawer, np.array([(0, 0), (1, 1)], np.float32))
    state = {"vertex_buffers": [quad, shifts]}
    target = texture(drawer)
    for rate in (1, 0):
        call = {"vertex_count": 4, "instance_count": 2}
        render(drawer, target, Draw(instanced(drawer, rate), state=state, call=("draw", call)))
        assert picture(target.to_numpy()) == ["....####"] * 4 + ["####...."] * 4
    later = {"vertex_count": 4, "start_instance_location": 1}
    render(drawer, target, Draw(instanced(drawer, 1), state=state, call=("draw", later)))
    assert picture(target.to_numpy()) == ["....####"] * 4 + ["........"] * 4


def test_step_rate(drawer: spy.Device) -> None:
    """A record for every second of four instances."""
    column = vertex_buffer(drawer, np.array([(-1, -1), (-0.75, -1), (-1, 1), (-0.75, 1)], np.float32))
    shifts = vertex_buffer(drawer, np.array([(0, 0), (0.5, 0)], np.float32))
    target = texture(drawer)
    call = ("draw", {"vertex_count": 4, "instance_count": 4})
    render(drawer, target, Draw(instanced(drawer, 2), state={"vertex_buffers": [column, shifts]}, call=call))
    assert picture(target.to_numpy()) == ["#.#....."] * 8


def test_indirect(drawer: spy.Device) -> None:
    usage = spy.BufferUsage.indirect_argument
    records = drawer.create_buffer(data=np.array([3, 1, 0, 0, 3, 1, 1, 0], np.uint32), usage=usage)
    one = drawer.create_buffer(data=np.array([9, 1], np.uint32), usage=usage)
    target, single = texture(drawer), pipeline(drawer)
    second = spy.BufferOffsetPair(records, 16)
    for arguments, expected in (
        ((1, records), 28), ((2, records), 64), ((1, second), 36), ((2, records, {"buffer": one, "offset": 4}), 28),
        ((1, {"buffer": records, "offset": 16}, one), 36), ((0, records), 0),
    ):  # fmt: skip
        render(drawer, target, Draw(single, call=("draw_indirect", *arguments)))
        assert count(target.to_numpy()) == expected
    state = {"index_buffer": indices(drawer, [0, 1, 2, 0, 1, 2])}
    indexed = drawer.create_buffer(data=np.array([3, 1, 0, 0, 0, 3, 1, 3, 1, 0], np.uint32), usage=usage)
    for arguments, expected in (
        ((1, indexed), 28),
        ((2, indexed), 64),
        ((2, indexed, (spy.BufferOffsetPair(one, 4))), 28),
    ):
        render(drawer, target, Draw(single, state=state, call=("draw_indexed_indirect", *arguments)))
        assert count(target.to_numpy()) == expected


def test_culling(drawer: spy.Device) -> None:
    target = texture(drawer)
    for cull, front, expected in (
        ("front", "counter_clockwise", 0), ("back", "counter_clockwise", 28), ("front", "clockwise", 28), ("back", "clockwise", 0),
    ):  # fmt: skip
        raster = {"cull_mode": spy.CullMode[cull], "front_face": spy.FrontFaceMode[front]}
        render(drawer, target, Draw(pipeline(drawer, rasterizer=raster)))
        assert count(target.to_numpy()) == expected
    both = pipeline(
        drawer, primitive_topology=spy.PrimitiveTopology.triangle_strip, rasterizer={"cull_mode": spy.CullMode.back}
    )
    render(drawer, target, Draw(both, call=("draw", {"vertex_count": 4})))
    assert count(target.to_numpy()) == 64


def test_wireframe_lines_points(drawer: spy.Device) -> None:
    target = texture(drawer)
    wire = pipeline(drawer, rasterizer={"fill_mode": spy.FillMode.wireframe})
    render(drawer, target, Draw(wire, {"scale": (0.75, 0.75)}))
    rows = picture(target.to_numpy())
    ideal = ["........", "##......", "#.#.....", "#..#....", "#...#...", "#....#..", "#######.", "........"]
    differing = sum(a != b for row, other in zip(rows, ideal, strict=True) for a, b in zip(row, other, strict=True))
    assert differing <= 4, rows  # APIs leave the ends of lines to the driver
    lines = pipeline(drawer, primitive_topology=spy.PrimitiveTopology.line_list)
    render(drawer, target, Draw(lines, {"scale": (0.6, 0.6)}, call=("draw", {"vertex_count": 4})))
    assert [row for row, text in enumerate(picture(target.to_numpy())) if "#" in text] == [1, 6]
    assert all(text[2:6] == "####" for text in (picture(target.to_numpy())[1], picture(target.to_numpy())[6]))
    points = pipeline(drawer, primitive_topology=spy.PrimitiveTopology.point_list)
    render(drawer, target, Draw(points, {"scale": (0.6, 0.6)}, call=("draw", {"vertex_count": 4})))
    drawn = np.argwhere(target.to_numpy()[..., 3]).tolist()
    assert drawn == [[1, 1], [1, 6], [6, 1], [6, 6]]


def test_depth(drawer: spy.Device) -> None:
    target, depth = texture(drawer), depth_texture(drawer)
    tested = pipeline(
        drawer,
        primitive_topology=spy.PrimitiveTopology.triangle_strip,
        depth_stencil={"format": spy.Format.d32_float, "depth_test_enable": True},
    )
    quad = ("draw", {"vertex_count": 4})
    near = Draw(tested, {"z": 0.25, "scale": (0.5, 0.5), "tint": (1, 0, 0, 1)}, call=quad)
    far = Draw(tested, {"z": 0.75, "tint": (0, 1, 0, 1)}, call=quad)
    render(drawer, {"color_attachments": [{"view": target}], "depth_stencil_attachment": {"view": depth}}, near)
    render(
        drawer,
        {
            "color_attachments": [{"view": target, "load_op": spy.LoadOp.load}],
            "depth_stencil_attachment": {"view": depth, "depth_load_op": spy.LoadOp.load},
        },
        far,
    )
    centre = np.zeros((8, 8), bool)
    centre[2:6, 2:6] = True
    image, depths = target.to_numpy(), depth.to_numpy()
    assert depths.shape == (8, 8) and depths.dtype == np.float32
    assert (image[centre] == (1, 0, 0, 1)).all() and (image[~centre] == (0, 1, 0, 1)).all()
    assert (depths[centre] == 0.25).all() and (depths[~centre] == 0.75).all()


def test_depth_without_writes_and_always(drawer: spy.Device) -> None:
    target, depth = texture(drawer), depth_texture(drawer)
    desc = {
        "color_attachments": [{"view": target}],
        "depth_stencil_attachment": {"view": depth, "depth_clear_value": 0.5},
    }
    for fields, drawn, left in (
        ({"depth_test_enable": True, "depth_write_enable": False}, 28, 0.5),
        ({"depth_test_enable": True, "depth_func": spy.ComparisonFunc.greater}, 0, 0.5),
        ({"depth_test_enable": True, "depth_func": spy.ComparisonFunc.always}, 28, 0.25),
        ({"depth_test_enable": False}, 28, 0.5),
    ):
        one = pipeline(drawer, depth_stencil={"format": spy.Format.d32_float, **fields})
        render(drawer, desc, Draw(one, {"z": 0.25}))
        assert count(target.to_numpy()) == drawn and depth.to_numpy()[7, 0] == left and depth.to_numpy()[0, 7] == 0.5


def test_depth_only_and_depth_range(drawer: spy.Device) -> None:
    depth = depth_texture(drawer)
    only = pipeline(drawer, fragment=None, depth_stencil={"format": spy.Format.d32_float, "depth_test_enable": True})
    render(drawer, {"depth_stencil_attachment": {"view": depth}}, Draw(only, {"z": 0.5}))
    assert (
        picture(depth.to_numpy() == 0.5) == TRIANGLE
        and (depth.to_numpy() != 0.5).sum() == (depth.to_numpy() == 1).sum()
    )
    state = {"viewports": [{"width": 8, "height": 8, "min_depth": 0.5, "max_depth": 1}]}
    render(drawer, {"depth_stencil_attachment": {"view": depth}}, Draw(only, {"z": 0.5}, state))
    assert picture(depth.to_numpy() == 0.75) == TRIANGLE


def test_stencil_test(drawer: spy.Device) -> None:
    target = texture(drawer)
    depth = depth_texture(drawer, spy.Format.d32_float_s8_uint)
    equal = {"stencil_func": spy.ComparisonFunc.equal}
    both = pipeline(
        drawer,
        primitive_topology=spy.PrimitiveTopology.triangle_strip,
        depth_stencil={
            "format": spy.Format.d32_float_s8_uint, "stencil_enable": True, "front_face": equal, "back_face": equal,
        },
    )  # fmt: skip
    desc = {
        "color_attachments": [{"view": target}],
        "depth_stencil_attachment": {"view": depth, "stencil_clear_value": 3},
    }
    for reference, expected in ((3, 64), (4, 0)):
        render(drawer, desc, Draw(both, state={"stencil_ref": reference}, call=("draw", {"vertex_count": 4})))
        assert count(target.to_numpy()) == expected


STENCIL_RESULTS = {
    "keep": (5, 255, 0), "zero": (0, 0, 0), "replace": (9, 9, 9), "increment_saturate": (6, 255, 1),
    "decrement_saturate": (4, 254, 0), "invert": (250, 0, 255), "increment_wrap": (6, 0, 1), "decrement_wrap": (4, 254, 255),
}  # fmt: skip


@pytest.mark.parametrize("name", STENCIL_RESULTS)
def test_stencil_operations(drawer: spy.Device, name: str) -> None:
    """Each operation on 5, 255 and 0, with the reference 9; what is left is found by tests for equality."""
    target = texture(drawer)
    depth = depth_texture(drawer, spy.Format.d32_float_s8_uint)
    format = spy.Format.d32_float_s8_uint
    face = {"stencil_pass_op": spy.StencilOp[name]}
    writing = pipeline(
        drawer, depth_stencil={"format": format, "stencil_enable": True, "front_face": face, "back_face": face}
    )
    equal = {"stencil_func": spy.ComparisonFunc.equal}
    asking = pipeline(
        drawer, depth_stencil={"format": format, "stencil_enable": True, "front_face": equal, "back_face": equal}
    )
    for start, left in zip((5, 255, 0), STENCIL_RESULTS[name], strict=True):
        clear = {"view": depth, "stencil_clear_value": start}
        color = {"view": target}
        render(
            drawer,
            {"color_attachments": [color], "depth_stencil_attachment": clear},
            Draw(writing, state={"stencil_ref": 9}),
        )
        load = {"view": depth, "stencil_load_op": spy.LoadOp.load, "depth_load_op": spy.LoadOp.load}
        render(
            drawer,
            {"color_attachments": [color], "depth_stencil_attachment": load},
            Draw(asking, state={"stencil_ref": left}),
        )
        assert count(target.to_numpy()) == 28


def test_write_mask(drawer: spy.Device) -> None:
    format = spy.Format.rgba8_unorm
    target = texture(drawer, format)
    green = pipeline(drawer, "fullscreen", targets=[{"format": format, "write_mask": spy.RenderTargetWriteMask.green}])
    desc = {"color_attachments": [{"view": target, "clear_value": (0, 0, 1, 1)}]}
    render(drawer, desc, Draw(green))
    assert (target.to_numpy() == (0, 255, 255, 255)).all()


def blended(device: spy.Device, format: spy.Format, color: Any, alpha: Any, tint: Any, clear: Any) -> list[float]:
    target = texture(device, format)
    one = pipeline(
        device, "fullscreen", targets=[{"format": format, "enable_blend": True, "color": color, "alpha": alpha}]
    )
    render(device, {"color_attachments": [{"view": target, "clear_value": clear}]}, Draw(one, {"tint": tint}))
    image = target.to_numpy()
    assert (image == image[0, 0]).all()
    return image[0, 0].tolist()


def test_blending(drawer: spy.Device) -> None:
    factor, op = spy.BlendFactor, spy.BlendOp
    over = {"src_factor": factor.src_alpha, "dst_factor": factor.inv_src_alpha}
    texel = blended(drawer, spy.Format.rgba8_unorm, over, {}, (1, 0, 0, 0.5), (0, 0, 1, 1))
    assert np.abs(np.array(texel) - (128, 0, 127, 128)).max() <= 1
    back = {"src_factor": factor.one, "dst_factor": factor.one, "op": op.reverse_subtract}
    most = {"src_factor": factor.one, "dst_factor": factor.one, "op": op.max}
    texel = blended(drawer, FORMAT, back, most, (0.25, 0.25, 0.25, 0.5), (1, 1, 1, 0.75))
    assert texel == [0.75, 0.75, 0.75, 0.75]


def test_samples(drawer: spy.Device) -> None:
    many = drawer.create_texture(
        type=spy.TextureType.texture_2d_ms, format=FORMAT, width=8, height=8, sample_count=4,
        usage=spy.TextureUsage.render_target,
    )  # fmt: skip
    resolved = texture(drawer, usage=spy.TextureUsage.resolve_destination | spy.TextureUsage.shader_resource)
    one = pipeline(drawer, multisample={"sample_count": 4})
    desc = {"color_attachments": [{"view": many, "resolve_target": resolved, "store_op": spy.StoreOp.dont_care}]}
    render(drawer, desc, Draw(one))
    image = resolved.to_numpy()[..., 0]
    expected = np.array([[1 if x == "#" else 0 for x in row] for row in TRIANGLE], np.float32)
    for i in range(8):
        expected[i, i] = 0.5
    assert (image == expected).all()
    half = pipeline(drawer, multisample={"sample_count": 4, "sample_mask": 3})
    render(drawer, desc, Draw(half))
    assert set(np.unique(resolved.to_numpy())) <= {0, 0.25, 0.5} and resolved.to_numpy()[7, 0, 0] == 0.5


def test_alpha_to_coverage(drawer: spy.Device) -> None:
    many = drawer.create_texture(
        type=spy.TextureType.texture_2d_ms, format=FORMAT, width=8, height=8, sample_count=4,
        usage=spy.TextureUsage.render_target,
    )  # fmt: skip
    resolved = texture(drawer, usage=spy.TextureUsage.resolve_destination)
    one = pipeline(drawer, "fullscreen", multisample={"sample_count": 4, "alpha_to_coverage_enable": True})
    desc = {"color_attachments": [{"view": many, "resolve_target": resolved}]}
    for alpha, red in ((0.0, 0.0), (0.5, 0.5), (1.0, 1.0)):
        render(drawer, desc, Draw(one, {"tint": (1, 1, 1, alpha)}))
        assert resolved.to_numpy()[..., 0].mean() == red


def test_two_draws(drawer: spy.Device) -> None:
    target, one = texture(drawer), pipeline(drawer, "fullscreen")
    red = Draw(one, {"tint": (1, 0, 0, 1)}, {"scissor_rects": [{"max_x": 4, "max_y": 8}]})
    green = Draw(one, {"tint": (0, 1, 0, 1)}, {"viewports": [{"x": 4, "y": 2, "width": 4, "height": 4}]})
    for draws in ((red, green), (green, red)):
        render(drawer, target, *draws)
        image = target.to_numpy()
        assert picture(image[..., :1]) == ["####...."] * 8
        assert picture(image[..., 1:2]) == ["........"] * 2 + ["....####"] * 4 + ["........"] * 2


def test_integer_target(drawer: spy.Device) -> None:
    format = spy.Format.rgba32_uint
    target = texture(drawer, format)
    one = pipeline(drawer, fragment="whole", targets=[{"format": format}])
    render(drawer, {"color_attachments": [{"view": target, "clear_value": (1, 2.9, 3, 4)}]}, Draw(one))
    image = target.to_numpy()
    assert image[7, 0].tolist() == [7, 8, 9, 10] and image[0, 0].tolist() == [1, 2, 3, 4]


def test_layers_and_mips(drawer: spy.Device) -> None:
    array = drawer.create_texture(
        type=spy.TextureType.texture_2d_array, format=FORMAT, width=16, height=16, array_length=3, mip_count=3,
        usage=spy.TextureUsage.render_target,
    )  # fmt: skip
    encoder = drawer.create_command_encoder()
    encoder.clear_texture_float(array, clear_value=0.0)
    drawer.submit_command_buffer(encoder.finish())
    view = array.create_view(layer=1, layer_count=1, mip=1, mip_count=1)
    render(drawer, {"color_attachments": [{"view": view}]}, Draw(pipeline(drawer)))
    for layer in range(3):
        for mip in range(3):
            drawn = count(array.to_numpy(layer, mip))
            assert drawn == (28 if (layer, mip) == (1, 1) else 0)
    render(drawer, {"color_attachments": [{"view": view, "clear_value": (1, 2, 3, 4)}]})
    assert (
        (array.to_numpy(1, 1) == (1, 2, 3, 4)).all()
        and not array.to_numpy(0, 1).any()
        and not array.to_numpy(1, 0).any()
    )


def test_several_targets(drawer: spy.Device) -> None:
    first, second = texture(drawer), texture(drawer, spy.Format.rgba16_float)
    one = pipeline(drawer, fragment="two", targets=[{"format": FORMAT}, {"format": spy.Format.rgba16_float}])
    desc = {"color_attachments": [{"view": first}, {"view": second, "clear_value": (9, 9, 9, 0)}]}
    render(drawer, desc, Draw(one, {"tint": (1, 2, 3, 4)}))
    assert picture(first.to_numpy()) == TRIANGLE and picture(second.to_numpy()) == TRIANGLE
    assert first.to_numpy()[7, 0].tolist() == [1, 2, 3, 4] and second.to_numpy()[7, 0].tolist() == [6, 4, 2, 8]
    assert second.to_numpy()[0, 0].tolist() == [9, 9, 9, 0]


def test_clear_of_srgb(drawer: spy.Device) -> None:
    target = texture(drawer, spy.Format.rgba8_unorm_srgb)
    render(drawer, {"color_attachments": [{"view": target, "clear_value": (0.5, 0.25, 1, 0.5)}]})
    assert (target.to_numpy() == (188, 137, 255, 128)).all()


def test_element_formats(drawer: spy.Device) -> None:
    """Channels that an element lacks read 0, 0, 0, 1; bytes are normalized; order and case do not matter."""
    data = np.zeros(3, np.dtype([("c", np.uint8, 4), ("p", np.float32, 2)]))
    data["c"] = (128, 255, 0, 255)
    data["p"] = STRIP[:3]
    layout = drawer.create_input_layout(
        [
            {"semantic_name": "position", "format": spy.Format.rg32_float, "offset": 4},
            {"semantic_name": "COLOR", "format": spy.Format.rgba8_unorm},
        ],
        [{"stride": 12}],
    )
    target = texture(drawer)
    one = pipeline(drawer, "colored", "interpolated", input_layout=layout)
    render(drawer, target, Draw(one, state={"vertex_buffers": [vertex_buffer(drawer, data)]}))
    image = target.to_numpy()
    assert picture(image) == TRIANGLE and np.abs(image[7, 0] - (128 / 255, 1, 0, 1)).max() < 1e-6
