"""Random pipelines against the rasteriser of `rasterizer.py`: formats, blending, depth, samples, topologies."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from drawing import program, vertex_buffer
from rasterizer import (
    COMPARE,
    GRID,
    TARGETS,
    Array,
    Blend,
    Canvas,
    State,
    Target,
    draw_point,
    draw_triangle,
    from_srgb,
    has_ties,
    to_srgb,
)

import slangpy as spy

SIZE = (13, 9)
FACTORS = (
    "zero", "one", "src_color", "inv_src_color", "src_alpha", "inv_src_alpha", "dest_alpha", "inv_dest_alpha", "dest_color",
    "inv_dest_color", "src_alpha_saturate",
)  # fmt: skip
OPS = ("add", "subtract", "reverse_subtract", "min", "max")


@dataclass(frozen=True)
class Case:
    """What is drawn. corners (n, 2) in 1/64 pixel, colors (n, 4), one z for each of the draws."""

    target: Target
    sample_count: int
    topology: str
    state: State
    clear: tuple[float, ...]
    corners: Array
    colors: Array
    order: tuple[int, ...]
    is_indexed: bool
    depths: tuple[float, ...]
    tints: tuple[tuple[float, ...], ...]


def triangles(case: Case) -> list[tuple[int, int, int, bool]]:
    """Corners of each triangle, and whether its winding is turned."""
    order = case.order
    if case.topology == "triangle_list":
        return [(order[i], order[i + 1], order[i + 2], False) for i in range(0, len(order) - 2, 3)]
    return [(order[i], order[i + 1], order[i + 2], i % 2 == 1) for i in range(len(order) - 2)]


def random_case(rng: np.random.Generator) -> Case:
    def pick(items: Any) -> Any:
        return items[int(rng.integers(len(items)))]

    target = pick(TARGETS)
    blend = None
    if rng.random() < 0.7:
        blend = Blend((pick(FACTORS), pick(FACTORS), pick(OPS)), (pick(FACTORS[:-1]), pick(FACTORS[:-1]), pick(OPS)))
    width, height = SIZE
    left, top = int(rng.integers(4)), int(rng.integers(4))
    state = State(
        blend=blend,
        write_mask=int(rng.integers(1, 16)) if rng.random() < 0.4 else 15,
        depth_func=pick([None, *COMPARE]),
        depth_write=bool(rng.random() < 0.7),
        cull=pick(["none", "none", "front", "back"]),
        front=pick(["counter_clockwise", "clockwise"]),
        scissor=None
        if rng.random() < 0.6
        else (left, top, width - int(rng.integers(3)), height - int(rng.integers(3))),
    )
    topology = pick(["triangle_list", "triangle_list", "triangle_strip", "point_list"])
    sample_count, is_indexed = pick([1, 4]), bool(rng.random() < 0.5)
    while True:  # until no sample lies on an edge
        # Inside the target: where edges are clipped, devices round the new corners.
        corners = np.stack([rng.integers(0, extent * GRID, 6) // 2 * 2 + 1 for extent in SIZE], -1)
        order = tuple(int(i) for i in rng.permutation(6)) if is_indexed else tuple(range(6))
        case = Case(
            target, sample_count, topology, state, tuple(rng.integers(0, 5, 4) / 4), corners,
            rng.integers(0, 9, (6, 4)) / 8, order, is_indexed, tuple(rng.integers(1, 8, 2) / 8),
            tuple(tuple(rng.integers(1, 5, 4) / 4) for _ in range(2)),
        )  # fmt: skip
        if sample_count > 1 and state.scissor is not None:
            # Mesa's llvmpipe lets samples of the row above a rectangle through.
            case = replace(case, state=replace(state, scissor=None))
        if topology == "point_list" or not any(
            has_ties(canvas_of(case), corners[list(t[:3])]) for t in triangles(case)
        ):
            return case


def canvas_of(case: Case) -> Canvas:
    return Canvas(case.target, SIZE, case.sample_count, case.clear)


def expected(case: Case) -> tuple[Array, Array]:
    canvas = canvas_of(case)
    for z, tint in zip(case.depths, case.tints, strict=True):
        colors = case.colors * tint
        if case.topology == "point_list":
            for i in case.order:
                draw_point(canvas, case.state, case.corners[i], colors[i], z)
            continue
        for a, b, c, flips in triangles(case):
            draw_triangle(canvas, case.state, case.corners[[a, b, c]], colors[[a, b, c]], z, flips)
    return canvas.resolved() if case.sample_count > 1 else canvas.colors[:, :, 0], canvas.depths


def aspect(names: tuple[str, str, str]) -> dict[str, Any]:
    first, second, op = names
    return {"src_factor": spy.BlendFactor[first], "dst_factor": spy.BlendFactor[second], "op": spy.BlendOp[op]}


def pipeline_of(device: spy.Device, case: Case) -> spy.RenderPipeline:
    target: dict[str, Any] = {
        "format": spy.Format[case.target.name], "write_mask": spy.RenderTargetWriteMask(case.state.write_mask),
    }  # fmt: skip
    if case.state.blend is not None:
        target |= {
            "enable_blend": True,
            "color": aspect(case.state.blend.color),
            "alpha": aspect(case.state.blend.alpha),
        }
    depth: dict[str, Any] = {"format": spy.Format.d32_float}
    if case.state.depth_func is not None:
        depth |= {
            "depth_test_enable": True, "depth_func": spy.ComparisonFunc[case.state.depth_func],
            "depth_write_enable": case.state.depth_write,
        }  # fmt: skip
    layout = device.create_input_layout(
        [
            {"semantic_name": "COLOR", "format": spy.Format.rgba32_float, "offset": 8},
            {"semantic_name": "POSITION", "format": spy.Format.rg32_float},
        ],
        [{"stride": 24}],
    )
    return device.create_render_pipeline(
        program(device, "painted", "interpolated"), layout, spy.PrimitiveTopology[case.topology], [target], depth,
        {"cull_mode": spy.CullMode[case.state.cull], "front_face": spy.FrontFaceMode[case.state.front]},
        {"sample_count": case.sample_count},
    )  # fmt: skip


def drawn(device: spy.Device, case: Case) -> tuple[Array, Array | None]:
    width, height = SIZE
    format, many = spy.Format[case.target.name], case.sample_count > 1
    type = spy.TextureType.texture_2d_ms if many else spy.TextureType.texture_2d
    size = {"type": type, "width": width, "height": height, "sample_count": case.sample_count}
    image = device.create_texture(format=format, usage=spy.TextureUsage.render_target, **size)
    depth = device.create_texture(format=spy.Format.d32_float, usage=spy.TextureUsage.depth_stencil, **size)
    result = image
    if many:
        result = device.create_texture(
            format=format, width=width, height=height, usage=spy.TextureUsage.resolve_destination
        )
    clip = case.corners / GRID / (width, height) * (2, -2) + (-1, 1)
    vertices = np.concatenate([clip, case.colors], axis=1).astype(np.float32)
    indices = device.create_buffer(data=np.array(case.order, np.uint32), usage=spy.BufferUsage.index_buffer)
    state: dict[str, Any] = {"vertex_buffers": [vertex_buffer(device, vertices)], "index_buffer": indices}
    if case.state.scissor is not None:
        state["scissor_rects"] = [spy.ScissorRect(*case.state.scissor)]
    attachment: dict[str, Any] = {"view": image, "clear_value": case.clear}
    if many:
        attachment["resolve_target"] = result
    encoder = device.create_command_encoder()
    with encoder.begin_render_pass([attachment], {"view": depth}) as render_pass:
        cursor = spy.ShaderCursor(render_pass.bind_pipeline(pipeline_of(device, case)))
        render_pass.set_render_state(state)
        for z, tint in zip(case.depths, case.tints, strict=True):
            cursor.z, cursor.tint = z, tint
            (render_pass.draw_indexed if case.is_indexed else render_pass.draw)(vertex_count=6)
    device.submit_command_buffer(encoder.finish())
    return result.to_numpy(), None if many else depth.to_numpy()


def check(device: spy.Device, seed: int) -> None:
    case = random_case(np.random.default_rng(seed))
    support = device.get_format_support(spy.Format[case.target.name])
    if case.state.blend is not None and not support & spy.FormatSupport.blendable:
        return
    image, depths = drawn(device, case)
    wanted, wanted_depths = expected(case)
    wanted = wanted[..., : case.target.channels]
    if case.target.is_normalized:
        if case.target.kind == "srgb":
            wanted = np.concatenate([to_srgb(wanted[..., :3]), wanted[..., 3:]], axis=-1)
        got, tolerance = image.reshape(wanted.shape).astype(np.float64) / 255, 3.1 / 255
        if case.target.name == "bgra8_unorm":
            got = got[..., [2, 1, 0, 3]]
    else:
        got = image.reshape(wanted.shape).astype(np.float64)
        tolerance = 2e-5 if case.target.kind == "float32" else 6e-3
    error = np.abs(got - wanted)
    if case.target.kind == "srgb":  # dark codes are close to each other
        error = np.minimum(error, np.abs(from_srgb(got) - from_srgb(wanted)))
    worst = error.max()
    assert worst <= tolerance * max(1, np.abs(wanted).max()), f"seed {seed}: {worst} in {case}"
    if depths is not None:
        assert (depths == wanted_depths[:, :, 0]).all(), f"seed {seed}: depths of {case}"


@pytest.mark.draws
@pytest.mark.parametrize("first", range(0, 24, 6))
def test_random_pipelines(drawer: spy.Device, first: int) -> None:
    for seed in range(first, first + 6):
        check(drawer, seed)


@pytest.mark.draws
@pytest.mark.nightly
@pytest.mark.parametrize("first", range(100, 300, 20))
def test_more_random_pipelines(drawer: spy.Device, first: int) -> None:
    for seed in range(first, first + 20):
        check(drawer, seed)
