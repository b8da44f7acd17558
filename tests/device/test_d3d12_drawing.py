"""Rasterisation, as the Direct3D 12 device does it in its own way: states of textures that
are drawn into and read at once, depth beside stencil, descriptors that run out within a pass."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import slangpy as spy

SOURCE = """
uniform float4 tint; uniform float z;
struct Varyings { float4 pos : SV_Position; float2 uv : TEXCOORD; }
float4 corner(uint id) { return float4(float2((id << 1) & 2, id & 2) * 2 - 1, z, 1); }
[shader("vertex")] Varyings many(uint id : SV_VertexID)
{
    float4 p = corner(id);
    return { p, p.xy * float2(0.5, -0.5) + 0.5 };
}
[shader("vertex")] float4 bare(uint id : SV_VertexID) : SV_Position { return corner(id); }
[shader("vertex")] float4 placed(float2 p : POSITION) : SV_Position { return float4(p, z, 1); }
[shader("fragment")] float4 plain() : SV_Target { return tint; }
[shader("fragment")] uint4 bits() : SV_Target { return uint4(12, 10, 3, 255); }
Texture2D<float4> image; SamplerState filter; Texture2D<float> depths;
[shader("fragment")] float4 sampled(float2 uv : TEXCOORD) : SV_Target { return image.Sample(filter, uv) * tint; }
[shader("fragment")] float4 depth_of(float4 at : SV_Position) : SV_Target
{ return float4(depths[uint2(at.xy)], 0, 0, 1); }
RWByteAddressBuffer vertices;
[shader("compute")] [numthreads(1, 1, 1)] void write_corners()
{
    float v[6] = { -1, -1, 1, -1, -1, 1 };
    for (int i = 0; i < 6; ++i) vertices.Store<float>(i * 4, v[i]);
}
"""

FLOAT4 = spy.Format.rgba32_float
DRAWN = spy.TextureUsage.render_target | spy.TextureUsage.shader_resource
DEPTH = spy.TextureUsage.depth_stencil | spy.TextureUsage.shader_resource
Set = Callable[[spy.ShaderCursor], None]


class Drawing:
    """A device, its shaders, and passes of one draw."""

    def __init__(self, device: spy.Device) -> None:
        self.device = device
        self.module = device.load_module_from_source("d3d12_drawing", SOURCE)

    def program(self, *names: str) -> Any:
        return self.device.link_program([self.module], [self.module.entry_point(name) for name in names])

    def pipeline(self, vertex: str, fragment: str, format: spy.Format = FLOAT4, **fields: Any) -> spy.RenderPipeline:
        fields.setdefault("targets", [{"format": format}])
        if vertex == "placed":
            fields["input_layout"] = self.device.create_input_layout(
                [{"semantic_name": "POSITION", "format": spy.Format.rg32_float}], [{"stride": 8}]
            )
        return self.device.create_render_pipeline(self.program(vertex, fragment), **fields)

    def texture(self, format: spy.Format = FLOAT4, usage: Any = DRAWN, size: int = 8, **fields: Any) -> spy.Texture:
        return self.device.create_texture(format=format, width=size, height=size, usage=usage, **fields)

    def draw(
        self, target: Any, pipeline: spy.RenderPipeline, set: Set, depth: Any = None,
        state: dict[str, Any] | None = None, **attachment: Any,
    ) -> None:  # fmt: skip
        encoder = self.device.create_command_encoder()
        with encoder.begin_render_pass([{"view": target, **attachment}], depth) as render_pass:
            set(spy.ShaderCursor(render_pass.bind_pipeline(pipeline)))
            render_pass.set_render_state(state or {})
            render_pass.draw({"vertex_count": 3})
        self.device.submit_command_buffer(encoder.finish())


def constants(*tint: float, z: float = 0.5, **more: Any) -> Set:
    def set(cursor: spy.ShaderCursor) -> None:
        cursor.tint, cursor.z = tint, z
        for name, value in more.items():
            cursor[name] = value

    return set


@pytest.fixture(scope="module")
def drawing() -> Iterator[Drawing]:
    if not spy.Device.enumerate_adapters(spy.DeviceType.d3d12):
        if "d3d12" in os.environ.get("SLANGPY_TEST_REQUIRE", ""):
            pytest.fail("no d3d12 device here")
        pytest.skip("no d3d12 device here")
    device = spy.Device(type=spy.DeviceType.d3d12, enable_hot_reload=False)
    yield Drawing(device)
    device.close()


def test_depth_beside_stencil(drawing: Drawing) -> None:
    """Texels are read and written as 8 bytes; a clear of one, and a draw that writes one, leave the other."""
    width, height, rng = 37, 5, np.random.default_rng(7)
    texels = np.zeros((height, width, 8), np.uint8)
    texels[..., :4] = rng.random((height, width), np.float32).view(np.uint8).reshape(height, width, 4)
    texels[..., 4] = rng.integers(0, 256, (height, width))
    format = spy.Format.d32_float_s8_uint
    depth = drawing.device.create_texture(format=format, width=width, height=height, usage=DEPTH)
    depth.copy_from_numpy(texels.reshape(-1))

    def read() -> np.ndarray:
        return np.frombuffer(depth.to_numpy().tobytes(), np.uint8).reshape(height, width, 8)

    assert (read() == texels).all()
    encoder = drawing.device.create_command_encoder()
    encoder.clear_texture_depth_stencil(depth, clear_depth=False, stencil_value=7)
    drawing.device.submit_command_buffer(encoder.finish())
    texels[..., 4] = 7
    assert (read() == texels).all()
    adds = {"stencil_pass_op": spy.StencilOp.increment_saturate}
    pipeline = drawing.pipeline(
        "bare", "plain", depth_stencil={"format": format, "stencil_enable": True, "front_face": adds}
    )
    target = drawing.device.create_texture(format=FLOAT4, width=width, height=height, usage=DRAWN)
    load = {"view": depth, "depth_load_op": spy.LoadOp.load, "stencil_load_op": spy.LoadOp.load}
    drawing.draw(target, pipeline, constants(1, 1, 1, 1), load, {"scissor_rects": [spy.ScissorRect.from_size(3, 2)]})
    texels[:2, :3, 4] = 8
    assert (read() == texels).all()


@pytest.mark.parametrize(
    "format",
    ["r8_unorm", "rgba8_unorm", "rgba8_unorm_srgb", "bgra8_unorm_srgb", "rgba16_float", "rg32_float", "rgba16_unorm"],
)
def test_formats_that_are_resolved(drawing: Drawing, format: str) -> None:
    """The hypotenuse of a triangle covers two of the four samples: half of white, which sRGB encodes as 188."""
    kind = spy.Format[format]
    samples = drawing.texture(kind, spy.TextureUsage.render_target, type=spy.TextureType.texture_2d_ms, sample_count=4)
    target = drawing.texture(kind, spy.TextureUsage.resolve_destination)
    corners = np.array([-1, -1, 1, -1, -1, 1], np.float32)
    buffer = drawing.device.create_buffer(data=corners, usage=spy.BufferUsage.vertex_buffer)
    pipeline = drawing.pipeline("placed", "plain", kind, multisample={"sample_count": 4})
    drawing.draw(
        samples, pipeline, constants(1, 1, 1, 1), state={"vertex_buffers": [buffer]}, resolve_target=target.create_view({})
    )  # fmt: skip
    image = target.to_numpy().reshape(8, 8, -1)[..., 0].astype(np.float64)
    half = 188 / 255 if "srgb" in format else 0.5
    scale = 1.0 if "float" in format else np.iinfo(target.to_numpy().dtype).max
    expected = np.where(np.tri(8, k=-1), 1.0, np.where(np.eye(8), half, 0.0))
    np.testing.assert_allclose(image / scale, expected, atol=1.1 / 255)


def test_mips_from_mips_of_one_texture(drawing: Drawing) -> None:
    """Each pass draws into a mip and samples the one before, of the same texture."""
    data = np.random.default_rng(3).random((8, 8, 4), np.float32)
    texture = drawing.texture(mip_count=3)
    texture.copy_from_numpy(data)
    pipeline = drawing.pipeline("many", "sampled")
    linear = drawing.device.create_sampler(min_filter=spy.TextureFilteringMode.linear)
    views = [texture.create_view({"subresource_range": {"mip": mip, "mip_count": 1}}) for mip in range(3)]
    for mip in (1, 2):
        drawing.draw(views[mip], pipeline, constants(1, 1, 1, 1, image=views[mip - 1], filter=linear))
    first = data.reshape(4, 2, 4, 2, 4).mean((1, 3))
    np.testing.assert_allclose(texture.to_numpy(mip=1), first, atol=1e-6)
    np.testing.assert_allclose(texture.to_numpy(mip=2), first.reshape(2, 2, 2, 2, 4).mean((1, 3)), atol=1e-6)
    assert (texture.to_numpy() == data).all()


def test_depth_that_is_tested_and_read(drawing: Drawing) -> None:
    format = spy.Format.d32_float
    depth, target = drawing.texture(format, DEPTH), drawing.texture()
    tested = {"format": format, "depth_test_enable": True}
    near = drawing.pipeline("bare", "plain", depth_stencil=tested)
    reads = drawing.pipeline(
        "bare", "depth_of",
        depth_stencil={**tested, "depth_write_enable": False, "depth_func": spy.ComparisonFunc.greater},
    )  # fmt: skip
    left = {"viewports": [spy.Viewport(0, 0, 4, 8, 0, 1)]}
    drawing.draw(target, near, constants(0, 0, 0, 0, z=0.25), {"view": depth}, left)
    drawing.draw(target, reads, constants(0, 0, 0, 0, depths=depth), {"view": depth, "depth_read_only": True})
    assert target.to_numpy()[3, :, 0].tolist() == [0.25] * 4 + [0.0] * 4
    assert depth.to_numpy()[3].tolist() == [0.25] * 4 + [1.0] * 4


def test_descriptors_that_run_out_within_a_pass(drawing: Drawing) -> None:
    """2048 samplers are visible at once: what was recorded is submitted, and the pass goes on where it was."""
    size, rows = 64, 40
    target, image = drawing.texture(size=size), drawing.texture()
    image.copy_from_numpy(np.ones((8, 8, 4), np.float32))
    pipeline, point = drawing.pipeline("many", "sampled"), drawing.device.create_sampler()
    encoder = drawing.device.create_command_encoder()
    with encoder.begin_render_pass([{"view": target, "clear_value": (-1, -1, -1, -1)}]) as render_pass:
        cursor = spy.ShaderCursor(render_pass.bind_pipeline(pipeline))
        cursor.image, cursor.filter, cursor.z = image, point, 0.5
        for i in range(size * rows):
            x, y = i % size, i // size
            cursor.tint = (i, 1, 1, 1)
            render_pass.set_render_state({"scissor_rects": [spy.ScissorRect(x, y, x + 1, y + 1)]})
            render_pass.draw({"vertex_count": 3})
    drawing.device.submit_command_buffer(encoder.finish())
    result = target.to_numpy()[..., 0]
    assert (result[:rows].reshape(-1) == np.arange(size * rows)).all() and (result[rows:] == -1).all()


def test_vertices_that_a_kernel_writes_between_passes(drawing: Drawing) -> None:
    usage = spy.BufferUsage.vertex_buffer | spy.BufferUsage.unordered_access
    buffer = drawing.device.create_buffer(data=np.array([-1, -1, 3, -1, -1, 3], np.float32), usage=usage)
    kernel = drawing.device.create_compute_kernel(drawing.program("write_corners"))
    pipeline = drawing.pipeline("placed", "plain")
    targets = [drawing.texture(), drawing.texture()]
    encoder = drawing.device.create_command_encoder()
    for target in targets:
        with encoder.begin_render_pass([{"view": target}]) as render_pass:
            constants(1, 1, 1, 1)(spy.ShaderCursor(render_pass.bind_pipeline(pipeline)))
            render_pass.set_render_state({"vertex_buffers": [buffer]})
            render_pass.draw({"vertex_count": 3})
        kernel.dispatch((1, 1, 1), vars={"vertices": buffer}, command_encoder=encoder)
    drawing.device.submit_command_buffer(encoder.finish())
    assert [int(target.to_numpy()[..., 0].sum()) for target in targets] == [64, 28]


def test_logic_operations(drawing: Drawing) -> None:
    format = spy.Format.rgba8_uint
    target = drawing.texture(format)
    pipeline = drawing.pipeline("bare", "bits", targets=[{"format": format, "logic_op": spy.LogicOp.xor}])
    drawing.draw(target, pipeline, constants(0, 0, 0, 0), clear_value=(5, 6, 7, 8))
    assert target.to_numpy()[0, 0].tolist() == [12 ^ 5, 10 ^ 6, 3 ^ 7, 255 ^ 8]


def test_what_the_api_lacks(drawing: Drawing) -> None:
    with pytest.raises(NotImplementedError, match="alpha_to_one_enable is not supported by the Direct3D 12 device"):
        drawing.pipeline("bare", "plain", multisample={"alpha_to_one_enable": True})
