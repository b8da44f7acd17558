"""Kernels that run as ray generation shaders: `FunctionNode.ray_tracing`."""

from __future__ import annotations

from typing import Any

from .. import _native
from ..compiler.ray_pipeline import check_payloads, compile_pipeline
from .records import RayTracing

__all__ = ["make_ray_kernel", "ray_entry_points"]


def ray_entry_points(program: Any, label: str, rays: RayTracing) -> list[Any]:
    """The entry points that the rays reach, of the function's module. ValueError for names that it has not."""
    program.device._require_ray_tracing(f"{label}.ray_tracing")
    if program.device.compile_target.format != "spirv":
        raise NotImplementedError(f"{label}.ray_tracing: runs on vulkan devices, not on {program.device.info.api_name}")
    known = {entry.name: entry for module in program.modules for entry in module.entry_points}
    for name in rays.entry_points:
        if name not in known:
            names = ", ".join(known) or "none"
            raise ValueError(f'{label}.ray_tracing: Entry point "{name}" not found in the module; it has {names}')
    return [known[name] for name in rays.entry_points]


def make_ray_kernel(
    device: Any, linked: Any, layout: Any, rays: RayTracing, label: str
) -> tuple[Any, tuple[int, ...]]:
    """A kernel whose launches trace rays, and the slots of global resources that it uses."""
    desc = _native.RayTracingPipelineDesc(
        hit_groups=[_native.HitGroupDesc(*group) for group in rays.hit_groups],
        max_recursion=rays.max_recursion,
        max_ray_payload_size=rays.max_ray_payload_size,
        max_attribute_size=rays.max_attribute_size,
        flags=_native.RayTracingPipelineFlags(rays.flags),
    )
    device._check_ray_tracing_pipeline(desc, layout)
    check_payloads(f"{label}.ray_tracing", linked, desc)
    pipeline, used = compile_pipeline(device, linked, desc, layout, label)
    table = device._create_shader_table(
        _native.ShaderTableDesc(
            ray_gen_entry_points=[layout.entry_points[0]["name"]],
            miss_entry_points=list(rays.miss_entry_points),
            hit_group_names=list(rays.hit_group_names),
            callable_entry_points=list(rays.callable_entry_points),
        ),
        layout,
    )
    kernel = device.create_kernel(b"", layout, label, rays=pipeline, table=table)
    slots = range(len(layout.slots)) if used.slots is None else used.slots
    return kernel, tuple(slot for slot in slots if slot < layout.entry_point_slot)
