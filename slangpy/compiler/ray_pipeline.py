"""Programs of ray-tracing entry points in executable form."""

from __future__ import annotations

from typing import Any

from .. import _native
from .kernel import compile_stages

__all__ = ["check_payloads", "compile_pipeline"]


def compile_pipeline(
    device: Any, program: Any, desc: _native.RayTracingPipelineDesc, layout: Any, label: str
) -> tuple[_native.CompiledRayTracingPipeline, _native.UsedParameters]:
    """The native pipeline, and what its code uses of the parameters."""
    code, used = compile_stages(device, program, layout, label)
    return device._create_ray_tracing_pipeline(desc, layout, code, label), used


def check_payloads(call: str, program: Any, desc: _native.RayTracingPipelineDesc) -> None:
    """ValueError where a payload or attributes of the program are larger than what was stated."""
    for name, stage, (payload, attributes) in program.ray_sizes():
        for what, field, size in (
            ("payload", "max_ray_payload_size", payload),
            ("attributes", "max_attribute_size", attributes),
        ):
            stated = getattr(desc, field)
            if size > stated:
                raise ValueError(
                    f"{call}: the {what} of '{name}' ({stage}) take {size} bytes, but {field} is {stated}"
                )
