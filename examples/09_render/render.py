"""Renders a lit torus: indexed triangles made by NumPy, depth, a texture with mips, four samples a pixel. No torch.

    python render.py [--device vulkan|d3d12] [--size 512] [--out .]

Works without a GPU, on Mesa's lavapipe.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

import slangpy as spy

SAMPLES = 4
COLOR, DEPTH = spy.Format.rgba8_unorm_srgb, spy.Format.d32_float
Floats = npt.NDArray[np.float32]


def torus(around: int, across: int) -> tuple[Floats, npt.NDArray[np.uint32]]:
    """Vertices (n, 8): position, normal, texture coordinates; and the indices of triangles, (m, 3), front faces outside."""
    u, v = np.meshgrid(np.linspace(0, 1, around + 1), np.linspace(0, 1, across + 1), indexing="ij")
    a, b = 2 * np.pi * u, 2 * np.pi * v
    normal = np.stack([np.cos(a) * np.cos(b), np.sin(b), np.sin(a) * np.cos(b)], -1)
    ring = np.stack([np.cos(a), 0 * a, np.sin(a)], -1)
    vertices = np.concatenate([ring + 0.42 * normal, normal, np.stack([16 * u, 6 * v], -1)], -1)
    first = (np.arange(around)[:, None] * (across + 1) + np.arange(across)).reshape(-1)
    right, up = first + across + 1, first + 1
    triangles = np.stack([first, up, right, up, right + 1, right], -1).reshape(-1, 3)
    return vertices.reshape(-1, 8).astype(np.float32), triangles.astype(np.uint32)


def camera(eye: Floats) -> Floats:
    """From world to clip space, looking at the origin; column vectors."""
    forward = -eye / np.linalg.norm(eye)
    right = np.cross(forward, (0.0, 1.0, 0.0))
    right /= np.linalg.norm(right)
    view = np.eye(4)
    view[:3, :3] = [right, np.cross(right, forward), -forward]
    view[:3, 3] = -view[:3, :3] @ eye
    near, far, zoom = 0.1, 20.0, 1.9
    projection = np.diag([zoom, zoom, -far / (far - near), 0.0])
    projection[2, 3], projection[3, 2] = -near * far / (far - near), -1.0
    return (projection @ view).astype(np.float32)


def checkered(device: spy.Device, size: int = 64) -> spy.Texture:
    """Four by four texels of each colour, with all mips."""
    y, x = np.mgrid[0:size, 0:size] // (size // 2)
    colors = np.array([(235, 150, 60, 255), (30, 60, 95, 255)], np.uint8)
    usage = spy.TextureUsage.shader_resource | spy.TextureUsage.render_target
    texture = device.create_texture(
        format=COLOR, width=size, height=size, mip_count=spy.ALL_MIPS, usage=usage, data=colors[(x + y) % 2]
    )
    encoder = device.create_command_encoder()
    encoder.generate_mips(texture)
    device.submit_command_buffer(encoder.finish())
    return texture


@dataclass(frozen=True)
class Scene:
    """What both draws need: pipelines, the mesh, its texture."""

    sky: spy.RenderPipeline
    torus: spy.RenderPipeline
    vertices: spy.Buffer
    indices: spy.Buffer
    index_count: int
    checkers: spy.Texture
    sampler: spy.Sampler


def load(device: spy.Device) -> Scene:
    module = device.load_module(str(Path(__file__).with_name("torus.slang")))
    vertices, triangles = torus(128, 48)
    names = (("POSITION", spy.Format.rgb32_float, 0), ("NORMAL", spy.Format.rgb32_float, 12))
    elements = [
        {"semantic_name": name, "format": format, "offset": offset}
        for name, format, offset in (*names, ("TEXCOORD", spy.Format.rg32_float, 24))
    ]
    layout = device.create_input_layout(elements, [{"stride": 32}])

    def pipeline(name: str, layout: spy.InputLayout | None, cull: spy.CullMode) -> spy.RenderPipeline:
        entries = [module.entry_point(f"{name}_vertex"), module.entry_point(f"{name}_fragment")]
        return device.create_render_pipeline(
            device.link_program([module], entries),
            layout,
            targets=[{"format": COLOR}],
            depth_stencil={"format": DEPTH, "depth_test_enable": True, "depth_func": spy.ComparisonFunc.less_equal},
            rasterizer={"cull_mode": cull},
            multisample={"sample_count": SAMPLES},
        )

    return Scene(
        pipeline("sky", None, spy.CullMode.none),
        pipeline("torus", layout, spy.CullMode.back),
        device.create_buffer(data=vertices, usage=spy.BufferUsage.vertex_buffer),
        device.create_buffer(data=triangles, usage=spy.BufferUsage.index_buffer),
        triangles.size,
        checkered(device),
        device.create_sampler(max_anisotropy=8),
    )


def render(device: spy.Device, scene: Scene, size: int) -> spy.Texture:
    """One pass with two draws; its samples are averaged into the texture that is returned."""
    attachment = {"width": size, "height": size, "type": spy.TextureType.texture_2d_ms, "sample_count": SAMPLES}
    color = device.create_texture(format=COLOR, usage=spy.TextureUsage.render_target, **attachment)
    depth = device.create_texture(format=DEPTH, usage=spy.TextureUsage.depth_stencil, **attachment)
    usage = spy.TextureUsage.render_target | spy.TextureUsage.resolve_destination | spy.TextureUsage.shader_resource
    picture = device.create_texture(format=COLOR, width=size, height=size, usage=usage)
    eye = np.array([0.0, 2.1, 2.6], np.float32)
    light = np.array([0.4, 0.8, 0.3], np.float32)

    encoder = device.create_command_encoder()
    with encoder.begin_render_pass(
        color_attachments=[{"view": color, "resolve_target": picture, "store_op": spy.StoreOp.dont_care}],
        depth_stencil_attachment={"view": depth, "depth_store_op": spy.StoreOp.dont_care},
    ) as render_pass:
        cursor = spy.ShaderCursor(render_pass.bind_pipeline(scene.torus))
        cursor.to_clip = camera(eye)
        cursor.eye = eye
        cursor.to_light = light / np.linalg.norm(light)
        cursor.checkers = scene.checkers
        cursor["smooth"] = scene.sampler
        render_pass.set_render_state(vertex_buffers=[scene.vertices], index_buffer=scene.indices)
        render_pass.draw_indexed(vertex_count=scene.index_count)
        render_pass.bind_pipeline(scene.sky)  # last, where the torus is not
        render_pass.draw(vertex_count=3)
    device.submit_command_buffer(encoder.finish())
    return picture


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="vulkan", choices=("vulkan", "d3d12"))
    parser.add_argument("--size", type=int, default=512, help="width and height")
    parser.add_argument("--out", type=Path, default=Path())
    options = parser.parse_args()
    device = spy.create_device(type=spy.DeviceType[options.device])
    picture = render(device, load(device), options.size)
    spy.save_image(options.out / "torus.png", picture)
    print(f"{options.size} x {options.size} pixels on {device.info.adapter_name}: saved {options.out / 'torus.png'}")


if __name__ == "__main__":
    main()
