"""What tests of ray tracing share: one module of shaders, builds of structures, and the rays of an 8 x 8 picture.

The ray of pixel (x, y) starts at ((x + 0.5) / 4 - 1, (y + 0.5) / 4 - 1, 1) and goes along (0, 0, -1), t from 0 to 2.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import slangpy as spy

RAYS = """
RayDesc ray_of(uint2 p)
{
    RayDesc ray;
    ray.Origin = float3((float2(p) + 0.5) / 4 - 1, 1);
    ray.Direction = float3(0, 0, -1);
    ray.TMin = 0;
    ray.TMax = 2;
    return ray;
}
"""

QUERIES = (
    RAYS
    + """
// Triangles: barycentrics, t, and instance id + 16 * instance index + 256 * geometry + 4096 * primitive. Boxes: t,
// primitive, instance id, -2. Nothing: -1 everywhere.
float4 found(uint2 p, RaytracingAccelerationStructure tlas)
{
    RayQuery<RAY_FLAG_NONE> query;
    query.TraceRayInline(tlas, RAY_FLAG_NONE, 0xff, ray_of(p));
    while (query.Proceed())
    {
        if (query.CandidateType() == CANDIDATE_PROCEDURAL_PRIMITIVE)
            query.CommitProceduralPrimitiveHit(1.25);
        else if (query.CandidateTriangleBarycentrics().x < 0.5)
            query.CommitNonOpaqueTriangleHit();
    }
    if (query.CommittedStatus() == COMMITTED_NOTHING)
        return float4(-1);
    if (query.CommittedStatus() == COMMITTED_PROCEDURAL_PRIMITIVE_HIT)
        return float4(query.CommittedRayT(), query.CommittedPrimitiveIndex(), query.CommittedInstanceID(), -2);
    uint ids = query.CommittedInstanceID() + 16 * query.CommittedInstanceIndex() +
        256 * query.CommittedGeometryIndex() + 4096 * query.CommittedPrimitiveIndex();
    return float4(query.CommittedTriangleBarycentrics(), query.CommittedRayT(), ids);
}

struct Scene { RaytracingAccelerationStructure tlas; float scale; }
float4 found_in(uint2 p, Scene scene) { return found(p, scene.tlas) * scene.scale; }
void into(uint2 p, RaytracingAccelerationStructure tlas, out float4 result) { result = found(p, tlas); }
float without(float x) { return x + 1; }

float4 found_by(uint2 p, RaytracingAccelerationStructure.Handle tlas) { return found(p, tlas); }

RaytracingAccelerationStructure global_tlas;
[shader("compute")] [numthreads(8, 8, 1)]
void query(uint3 at : SV_DispatchThreadID, uniform RWStructuredBuffer<float4> result, uniform float scale)
{
    result[at.y * 8 + at.x] = found(at.xy, global_tlas) * scale;
}
[shader("compute")] [numthreads(8, 8, 1)]
void query_own(uint3 at : SV_DispatchThreadID, uniform RWStructuredBuffer<float4> result,
               uniform RaytracingAccelerationStructure tlas)
{
    result[at.y * 8 + at.x] = found(at.xy, tlas);
}
"""
)

TRIANGLE = np.array([[-1, -1, 0], [1, -1, 0], [-1, 1, 0]], np.float32)
HITS = ["########", "#######.", "######..", "#####...", "####....", "###.....", "##......", "#......."]
OPAQUE = spy.AccelerationStructureGeometryFlags.opaque
BOTTOM, TOP = spy.AccelerationStructureKind.bottom_level, spy.AccelerationStructureKind.top_level
BUILD, COPY = spy.AccelerationStructureBuildFlags, spy.AccelerationStructureCopyMode


def needs(device: spy.Device, *features: str) -> spy.Device:
    """The device, unless it lacks a feature: then the test is skipped, or fails where SLANGPY_TEST_REQUIRE_RAYS says so."""
    for name in features:
        if not device.has_feature(spy.Feature[name]):
            assert not os.environ.get("SLANGPY_TEST_REQUIRE_RAYS"), f"{device.info.adapter_name} lacks {name}"
            pytest.skip(f"{device.info.adapter_name} lacks {name}")
    return device


def input_buffer(device: spy.Device, data: npt.NDArray[Any]) -> spy.Buffer:
    usage = spy.BufferUsage.acceleration_structure_build_input | spy.BufferUsage.copy_destination
    return device.create_buffer(data=data, usage=usage)


def triangles(device: spy.Device, vertices: npt.NDArray[Any] = TRIANGLE, indices: Any = None, **fields: Any) -> Any:
    """The input of triangles; opaque where nothing else is said."""
    desc: dict[str, Any] = {
        "vertex_format": spy.Format.rgb32_float, "vertex_count": len(vertices), "vertex_stride": 12, "flags": OPAQUE
    }  # fmt: skip
    if len(vertices):
        desc["vertex_buffers"] = [input_buffer(device, np.ascontiguousarray(vertices, np.float32))]
    if indices is not None:
        narrow = np.asarray(indices).dtype == np.uint16
        desc["index_buffer"] = input_buffer(device, np.asarray(indices))
        desc["index_format"] = spy.IndexFormat.uint16 if narrow else spy.IndexFormat.uint32
        desc["index_count"] = np.asarray(indices).size
    return spy.AccelerationStructureBuildInputTriangles({**desc, **fields})


def boxes(device: spy.Device, data: npt.NDArray[Any], **fields: Any) -> Any:
    desc = {"aabb_buffers": [input_buffer(device, np.asarray(data, np.float32))], "primitive_count": len(data)}
    return spy.AccelerationStructureBuildInputProceduralPrimitives({**desc, **fields})


def record_build(
    encoder: spy.CommandEncoder, inputs: Sequence[Any], kind: Any = BOTTOM, flags: Any = BUILD.none, queries: Any = ()
) -> spy.AccelerationStructure:
    device = encoder.device
    desc = spy.AccelerationStructureBuildDesc({"inputs": inputs, "flags": flags})
    sizes = device.get_acceleration_structure_sizes(desc)
    scratch = device.create_buffer(size=sizes.scratch_size, usage=spy.BufferUsage.unordered_access)
    out = device.create_acceleration_structure(kind=kind, size=sizes.acceleration_structure_size)
    encoder.build_acceleration_structure(desc=desc, dst=out, src=None, scratch_buffer=scratch, queries=queries)
    return out


def submit(device: spy.Device, *calls: tuple[Any, ...]) -> None:
    """Records calls of the encoder's methods, each as name and arguments, and submits."""
    encoder = device.create_command_encoder()
    for name, *arguments in calls:
        getattr(encoder, name)(*arguments)
    device.submit_command_buffer(encoder.finish())


def build(device: spy.Device, inputs: Sequence[Any], kind: Any = BOTTOM, flags: Any = BUILD.none) -> spy.AccelerationStructure:
    encoder = device.create_command_encoder()
    out = record_build(encoder, inputs, kind, flags)
    device.submit_command_buffer(encoder.finish())
    return out


def instance(structure: Any, **fields: Any) -> dict[str, Any]:
    handle = structure.handle if isinstance(structure, spy.AccelerationStructure) else structure
    return {"instance_mask": 0xFF, "acceleration_structure": handle, **fields}


def instance_list(device: spy.Device, *instances: dict[str, Any]) -> spy.AccelerationStructureInstanceList:
    out = device.create_acceleration_structure_instance_list(len(instances))
    if instances:
        out.write(0, list(instances))
    return out


def scene(device: spy.Device, *instances: Any, flags: Any = BUILD.none) -> spy.AccelerationStructure:
    """A top level structure of structures or instances."""
    descs = [i if isinstance(i, dict) else instance(i) for i in instances]
    return build(device, [instance_list(device, *descs).build_input_instances()], TOP, flags)


def moved(x: float, y: float, scale: float = 1.0) -> list[list[float]]:
    return [[scale, 0, 0, x], [0, scale, 0, y], [0, 0, scale, 0]]


@cache
def query_module(device: spy.Device) -> spy.Module:
    return spy.Module(device.load_module_from_source("tracing_queries", QUERIES))


@cache
def query_kernel(device: spy.Device, name: str = "query") -> Any:
    code = device.load_module_from_source("tracing_queries", QUERIES)
    return device.create_compute_kernel(device.link_program([code], [code.entry_point(name)]))


def result_buffer(device: spy.Device, count: int = 64) -> spy.Buffer:
    usage = spy.BufferUsage.unordered_access | spy.BufferUsage.copy_destination
    return device.create_buffer(element_count=count, struct_size=16, usage=usage)


def found(device: spy.Device, tlas: Any) -> npt.NDArray[Any]:
    """(8, 8, 4): what a ray query finds, row y first."""
    result = result_buffer(device)
    query_kernel(device).dispatch([8, 8, 1], vars={"global_tlas": tlas}, result=result, scale=1.0)
    return result.to_numpy().view(np.float32).reshape(8, 8, 4)


def picture(values: npt.NDArray[Any]) -> list[str]:
    """Rows of '#' where something was hit."""
    return ["".join("." if pixel[0] == -1 and pixel[1] == -1 else "#" for pixel in row) for row in values]
