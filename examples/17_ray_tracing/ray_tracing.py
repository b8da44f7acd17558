"""Spheres on a floor by a ray-tracing pipeline: every stage of it, recursion, shadows, holes. Needs no torch.

    python ray_tracing.py [--size 640x400] [--samples 4] [--out .]

Runs where Vulkan has ray-tracing pipelines: on most GPUs of the last years, and without one on Mesa's lavapipe from 25.0 on.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import slangpy as spy

STAGES = (
    "camera", "sky", "bright", "floor_hit", "tiles", "sphere", "sphere_hit", "slots", "slots_of_shadow",
)  # fmt: skip
FURTHEST = 4
"""As in the shader: how often a ray mirrors."""


def random_spheres(count: int = 90) -> tuple[np.ndarray, np.ndarray]:
    """(n, 4): centres and radii of spheres that stand on the floor and do not meet; (n, 4): their colours and mirroring."""
    rng = np.random.default_rng(11)
    spheres: list[np.ndarray] = [np.array([0, 1.1, 0, 1.1]), np.array([2.4, 0.8, 0.9, 0.8]), np.array([-2.1, 0.7, 1.3, 0.7])]
    for _ in range(100 * count):
        radius, x, z = rng.uniform(0.15, 0.4), *rng.uniform(-7, 7, 2)
        ball = np.array([x, radius, z, radius])
        if len(spheres) < count and all(np.linalg.norm(ball[:3] - s[:3]) > radius + s[3] + 0.05 for s in spheres):
            spheres.append(ball)
    hue = 2 * np.pi * (rng.random(len(spheres))[:, None] + np.array([0, 1 / 3, 2 / 3]))
    mirrors = np.where(rng.random(len(spheres)) < 0.35, 0.6, 0.03)
    colors = np.concatenate([0.5 + 0.4 * np.cos(hue), mirrors[:, None]], 1)
    colors[:3] = [[0.95, 0.95, 0.95, 0.85], [0.9, 0.45, 0.15, 0.1], [0.2, 0.6, 0.9, 0.25]]
    return np.array(spheres, np.float32), colors.astype(np.float32)


def needs_tracing(device: spy.Device) -> None:
    if not (device.has_feature(spy.Feature.ray_tracing) and device.has_feature(spy.Feature.acceleration_structure)):
        raise SystemExit(
            f"{device.info.adapter_name} has no ray-tracing pipelines; Mesa's lavapipe has them from 25.0 on. "
            "examples/11_path_tracer traces rays on every device"
        )


def structure(device: spy.Device, encoder: spy.CommandEncoder, inputs: Any) -> spy.AccelerationStructure:
    desc = spy.AccelerationStructureBuildDesc(inputs=inputs)
    sizes = device.get_acceleration_structure_sizes(desc)
    scratch = device.create_buffer(size=sizes.scratch_size, usage=spy.BufferUsage.unordered_access)
    made = device.create_acceleration_structure(size=sizes.acceleration_structure_size)
    encoder.build_acceleration_structure(desc, dst=made, scratch_buffer=scratch)
    return made


def build(device: spy.Device, spheres: np.ndarray) -> spy.AccelerationStructure:
    """Two instances: the floor, whose hit groups come first, and the boxes of the spheres, whose groups come after."""
    usage = spy.BufferUsage.acceleration_structure_build_input
    corners = np.float32([[-60, 0, -60], [60, 0, -60], [60, 0, 60], [-60, 0, -60], [60, 0, 60], [-60, 0, 60]])
    centres, radii = spheres[:, :3], spheres[:, 3:]
    boxes = np.concatenate([centres - radii, centres + radii], 1).astype(np.float32)
    triangles = spy.AccelerationStructureBuildInputTriangles(
        vertex_buffers=[device.create_buffer(data=corners, usage=usage)], vertex_format=spy.Format.rgb32_float,
        vertex_count=len(corners), vertex_stride=12, flags=spy.AccelerationStructureGeometryFlags.opaque,
    )  # fmt: skip
    balls = spy.AccelerationStructureBuildInputProceduralPrimitives(
        aabb_buffers=[device.create_buffer(data=boxes, usage=usage)], aabb_stride=24, primitive_count=len(boxes)
    )
    instances = device.create_acceleration_structure_instance_list(2)
    with device.create_command_encoder() as encoder:
        for index, geometry in enumerate((triangles, balls)):
            below = structure(device, encoder, [geometry])
            instances.write(index, {
                "instance_mask": 0xFF, "acceleration_structure": below.handle,
                "instance_contribution_to_hit_group_index": 2 * index,
            })  # fmt: skip
        return structure(device, encoder, [instances.build_input_instances()])


@dataclass(frozen=True)
class Tracer:
    pipeline: spy.RayTracingPipeline
    table: spy.ShaderTable


def load(device: spy.Device) -> Tracer:
    """Hit groups go in pairs: of the rays that see, of those that look for the light."""
    code = device.load_module(str(Path(__file__).with_name("spheres.slang")))
    program = device.link_program([code], [code.entry_point(name) for name in STAGES])
    groups = {
        "floor": {"closest_hit_entry_point": "floor_hit"},
        "floor_shadow": {},
        "sphere": {"closest_hit_entry_point": "sphere_hit", "any_hit_entry_point": "slots", "intersection_entry_point": "sphere"},
        "sphere_shadow": {"any_hit_entry_point": "slots_of_shadow", "intersection_entry_point": "sphere"},
    }
    pipeline = device.create_ray_tracing_pipeline(
        program, [{"hit_group_name": name, **group} for name, group in groups.items()],
        max_recursion=FURTHEST + 1, max_ray_payload_size=20, max_attribute_size=12,
    )  # fmt: skip
    table = device.create_shader_table(
        program, ray_gen_entry_points=["camera"], miss_entry_points=["sky", "bright"],
        hit_group_names=list(groups), callable_entry_points=["tiles"],
    )  # fmt: skip
    return Tracer(pipeline, table)


def render(device: spy.Device, width: int, height: int, samples: int) -> spy.Texture:
    """rgba16_float, linear."""
    spheres, colors = random_spheres()
    scene, tracer = build(device, spheres), load(device)
    usage = spy.TextureUsage.unordered_access | spy.TextureUsage.shader_resource | spy.TextureUsage.copy_source
    picture = device.create_texture(format=spy.Format.rgba16_float, width=width, height=height, usage=usage)
    eye, target = np.array([3.4, 2.6, 7.2]), np.array([0.2, 0.7, 0])
    forward = (target - eye) / np.linalg.norm(target - eye)
    right = np.cross(forward, (0, 1, 0))
    right /= np.linalg.norm(right)
    zoom, light = 0.42, np.array([-0.7, 0.55, -0.1])
    encoder = device.create_command_encoder()
    with encoder.begin_ray_tracing_pass() as ray_pass:
        cursor = spy.ShaderCursor(ray_pass.bind_pipeline(tracer.pipeline, tracer.table))
        cursor.scene, cursor.picture, cursor.samples = scene, picture, samples
        cursor.spheres = device.create_buffer(data=spheres, struct_size=16, usage=spy.BufferUsage.shader_resource)
        cursor.colors = device.create_buffer(data=colors, struct_size=16, usage=spy.BufferUsage.shader_resource)
        directions = {
            "eye": eye, "forward": forward, "right": right * zoom * width / height, "up": np.cross(right, forward) * zoom,
            "to_light": light / np.linalg.norm(light),
        }  # fmt: skip
        for name, direction in directions.items():
            cursor[name] = direction.astype(np.float32)
        ray_pass.dispatch_rays(0, [width, height, 1])
    device.submit_command_buffer(encoder.finish())
    return picture


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="vulkan", choices=("vulkan",))
    parser.add_argument("--size", default="640x400", help="WIDTHxHEIGHT")
    parser.add_argument("--samples", type=int, default=4, help="of each pixel")
    parser.add_argument("--out", type=Path, default=Path())
    options = parser.parse_args()
    width, height = (int(text) for text in options.size.split("x"))
    device = spy.create_device(type=spy.DeviceType[options.device])
    needs_tracing(device)
    picture = render(device, width, height, options.samples)
    spy.save_image(options.out / "spheres.png", picture)
    print(f"{width} x {height} pixels on {device.info.adapter_name}: saved {options.out / 'spheres.png'}")


if __name__ == "__main__":
    main()
