"""The driver's acceleration structures over a scene, for ray queries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import _native
from ..device.device import Device
from ..tensor import Tensor
from .hierarchy import Given, Kind
from .shapes import Instance

_FLAGS = _native.AccelerationStructureBuildFlags.prefer_fast_trace
_UPDATABLE = _native.AccelerationStructureBuildFlags.prefer_fast_trace | _native.AccelerationStructureBuildFlags.allow_update
_OPAQUE = _native.AccelerationStructureGeometryFlags.opaque
_BITS = 0xFF
"""Of a driver's masks."""


def check(device: Device, instances: Sequence[Instance]) -> None:
    """NotImplementedError where the device has no ray queries, ValueError for instances that its structures cannot hold."""
    if not device.has_feature(_native.Feature.ray_query):
        raise NotImplementedError(
            f"Scene: hardware=True: {device.info.adapter_name} ({device.info.api_name}) has no ray queries (feature ray_query); "
            "leave it out: the scene's own hierarchy gives the same hits"
        )
    for number, instance in enumerate(instances):
        if instance.mask != 0xFFFFFFFF and instance.mask > _BITS:
            raise ValueError(
                f"Scene: instances[{number}]: mask {instance.mask:#x}: with hardware=True masks have 8 bits, or all 32 set"
            )


def build_shape(
    device: Device, given: Given, updatable: bool, old: _native.AccelerationStructure | None = None
) -> _native.AccelerationStructure:
    """A structure over primitives, in their order. old: that of the same primitives elsewhere, which is updated."""
    if given.kind is Kind.triangles:
        return build(device, _native.AccelerationStructureBuildInputTriangles(_triangles(device, given)), updatable, old)
    data = given.points.to_numpy().astype(np.float64)
    boxes = data.reshape(-1, 2, 3) if given.kind is Kind.boxes else data[:, None, :3] + data[:, None, 3:] * [[-1], [1]]
    pad = 2e-6 * np.abs(boxes).max()  # rays meet primitives with rounding errors
    boxes = boxes + [[-pad], [pad]]
    buffer = device.create_buffer(data=np.ascontiguousarray(boxes, np.float32), usage=_usage())
    desc = {"aabb_buffers": [buffer], "aabb_stride": 24, "primitive_count": given.count, "flags": _OPAQUE}
    return build(device, _native.AccelerationStructureBuildInputProceduralPrimitives(desc), updatable, old)


def build_top(
    device: Device,
    shapes: Sequence[_native.AccelerationStructure],
    instances: Sequence[Instance],
    matrices: Sequence[np.ndarray[Any, Any]],
    old: _native.AccelerationStructure | None = None,
) -> _native.AccelerationStructure:
    """The structure over instances; shapes: that of each. old: that of the same instances elsewhere, which is updated."""
    listed = device.create_acceleration_structure_instance_list(len(instances))
    listed.write(0, [
        {
            "acceleration_structure": shape, "transform": matrix[:3].tolist(), "instance_mask": instance.mask & _BITS,
            "flags": _native.AccelerationStructureInstanceFlags.triangle_facing_cull_disable,
        }
        for shape, instance, matrix in zip(shapes, instances, matrices, strict=True)
    ])  # fmt: skip
    return build(device, listed.build_input_instances(), updatable=True, old=old)


def _triangles(device: Device, given: Given) -> dict[str, Any]:
    points, rows = (_packed(device, tensor) for tensor in (given.points, given.triangles))
    return {
        "vertex_buffers": [points], "vertex_format": _native.Format.rgb32_float, "vertex_count": given.points.shape[0],
        "vertex_stride": 12, "index_buffer": rows, "index_format": _native.IndexFormat.uint32, "index_count": 3 * given.count,
        "flags": _OPAQUE,
    }  # fmt: skip


def _usage() -> Any:
    return _native.BufferUsage.acceleration_structure_build_input | _native.BufferUsage.copy_destination


def _packed(device: Device, tensor: Tensor) -> _native.Buffer:
    """A copy without gaps that builds may read."""
    copy = Tensor.empty(
        device, tensor.shape, tensor.dtype, usage=_usage() | _native.BufferUsage.shader_resource | _native.BufferUsage.unordered_access
    )
    copy[:] = tensor
    return copy.storage


def build(
    device: Device, geometry: Any, updatable: bool = False, old: _native.AccelerationStructure | None = None
) -> _native.AccelerationStructure:
    """A structure over one build input, or `old` updated to it; the work is submitted."""
    mode = _native.AccelerationStructureBuildMode.update if old else _native.AccelerationStructureBuildMode.build
    desc = _native.AccelerationStructureBuildDesc(
        {"inputs": [geometry], "flags": _UPDATABLE if updatable else _FLAGS, "mode": mode}
    )
    sizes = device.get_acceleration_structure_sizes(desc)
    size = sizes.update_scratch_size if old else sizes.scratch_size
    scratch = device.create_buffer(size=size, usage=_native.BufferUsage.unordered_access)
    made = old or device.create_acceleration_structure(size=sizes.acceleration_structure_size)
    encoder = device.create_command_encoder()
    encoder.build_acceleration_structure(desc=desc, dst=made, src=old, scratch_buffer=scratch)
    device.submit_command_buffer(encoder.finish())
    return made
