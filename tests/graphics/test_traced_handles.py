"""Structures that change, or go, while handles of them lie in a buffer that kernels read."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest
from tracing import (
    BOTTOM,
    BUILD,
    COPY,
    HITS,
    QUERIES,
    TOP,
    TRIANGLE,
    build,
    instance,
    instance_list,
    moved,
    needs,
    picture,
    result_buffer,
    scene,
    submit,
    triangles,
)

import slangpy as spy

pytestmark = pytest.mark.traces
MISSES = ["........"] * 8
ASIDE = np.array([4, 0, 0], np.float32)
SHADER = (
    QUERIES
    + """
StructuredBuffer<RaytracingAccelerationStructure.Handle> handles;
[shader("compute")] [numthreads(8, 8, 1)]
void by_buffer(uint3 at : SV_DispatchThreadID, uniform RWStructuredBuffer<float4> result, uniform uint which)
{
    result[at.y * 8 + at.x] = found(at.xy, handles[which]);
}
"""
)


class Kernel:
    """Sees what handles in a buffer name."""

    def __init__(self, device: spy.Device, *structures: spy.AccelerationStructure) -> None:
        self.device = device
        code = device.load_module_from_source("handles_of_structures", SHADER)
        program = device.link_program([code], [code.entry_point("by_buffer")])
        self._kernel = device.create_compute_kernel(program)
        layout = next(p.type_layout for p in program.layout.parameters if p.name == "handles")
        usage = spy.BufferUsage.shader_resource
        self._buffer = device.create_buffer(element_count=len(structures), resource_type_layout=layout, usage=usage)
        self.cursor = spy.BufferCursor(layout, self._buffer)
        for i, structure in enumerate(structures):
            self.cursor[i] = structure.descriptor_handle
        self.cursor.apply()

    def start(self, which: int) -> spy.Buffer:
        result = result_buffer(self.device)
        self._kernel.dispatch([8, 8, 1], vars={"handles": self._buffer}, result=result, which=which)
        return result

    def sees(self, which: int = 0) -> list[str]:
        return seen(self.start(which))


def seen(result: spy.Buffer) -> list[str]:
    return picture(result.to_numpy().view(np.float32).reshape(8, 8, 4))


@pytest.fixture
def tracer(device: spy.Device) -> spy.Device:
    return needs(device, "acceleration_structure", "ray_query", "bindless")


def record(device: spy.Device, inputs: list[Any], dst: Any, src: Any, flags: Any, mode: Any) -> None:
    desc = spy.AccelerationStructureBuildDesc({"inputs": inputs, "flags": flags, "mode": mode})
    sizes = device.get_acceleration_structure_sizes(desc)
    size = max(sizes.scratch_size, sizes.update_scratch_size)
    scratch = device.create_buffer(size=size, usage=spy.BufferUsage.unordered_access)
    submit(device, ("build_acceleration_structure", desc, dst, src, scratch))


def test_what_changes_is_seen(tracer: spy.Device) -> None:
    """A handle names the structure, whatever is built into it; no handle is written again."""
    mode = spy.AccelerationStructureBuildMode
    far = instance(build(tracer, [triangles(tracer, TRIANGLE + ASIDE)]))
    flags = BUILD.allow_update
    blas = build(tracer, [triangles(tracer)], BOTTOM, flags)
    instances = instance_list(tracer, instance(blas))
    tlas = build(tracer, [instances.build_input_instances()], TOP, flags)
    handle = tlas.descriptor_handle
    kernel = Kernel(tracer, scene(tracer, far), tlas)
    assert kernel.sees(1) == HITS and kernel.sees(0) == MISSES

    instances.write(0, instance(blas, transform=moved(4, 0)))
    record(tracer, [instances.build_input_instances()], tlas, tlas, flags, mode.update)
    assert kernel.sees(1) == MISSES
    instances.write(0, instance(blas, transform=moved(0, 0)))
    record(tracer, [instances.build_input_instances()], tlas, None, flags, mode.build)
    assert kernel.sees(1) == HITS

    # The structure below, refitted in place: seen once the one above is built anew around it.
    record(tracer, [triangles(tracer, TRIANGLE + ASIDE)], blas, blas, flags, mode.update)
    record(tracer, [instances.build_input_instances()], tlas, tlas, flags, mode.update)
    assert kernel.sees(1) == MISSES and handle == tlas.descriptor_handle and handle

    results = []  # nobody waits between kernels and builds
    for x in (0, 4, 0, 4):
        instances.write(0, instance(blas, transform=moved(x - 4, 0)))
        record(tracer, [instances.build_input_instances()], tlas, None, flags, mode.build)
        results.append(kernel.start(1))
    assert [seen(result) for result in results] == [HITS, MISSES, HITS, MISSES]


def test_it_stays_one_of_instances(tracer: spy.Device) -> None:
    instances = instance_list(tracer, instance(build(tracer, [triangles(tracer)])))
    tlas = build(tracer, [instances.build_input_instances()], spy.AccelerationStructureKind.unknown)
    kernel = Kernel(tracer, tlas)
    with pytest.raises(ValueError, match="build_acceleration_structure 'dst': .* has a descriptor handle"):
        record(tracer, [triangles(tracer)], tlas, None, BUILD.none, spy.AccelerationStructureBuildMode.build)
    with pytest.raises(ValueError, match="copy_acceleration_structure 'dst': .* has a descriptor handle"):
        submit(tracer, ("copy_acceleration_structure", tlas, build(tracer, [triangles(tracer)]), COPY.clone))
    assert kernel.sees() == HITS


def test_a_structure_that_goes_while_a_kernel_runs(tracer: spy.Device) -> None:
    """Its memory stays until the work that was submitted before is done; then its handle names nothing."""
    for _ in range(5):
        tlas = scene(tracer, build(tracer, [triangles(tracer)]))
        kernel, handle = Kernel(tracer, tlas), tlas.descriptor_handle
        results = [kernel.start(0) for _ in range(3)]
        del tlas
        gc.collect()
        assert not handle
        others = [scene(tracer, build(tracer, [triangles(tracer, TRIANGLE + ASIDE)])) for _ in range(2)]
        assert [seen(result) for result in results] == [HITS] * 3 and others


def test_handles_of_what_is_gone(tracer: spy.Device) -> None:
    """They are written nowhere."""
    whole, gone = (scene(tracer, build(tracer, [triangles(tracer)])) for _ in range(2))
    kernel, handle = Kernel(tracer, whole), gone.descriptor_handle
    del gone
    gc.collect()
    with pytest.raises(ValueError, match="what this DescriptorHandle names is gone"):
        kernel.cursor[0] = handle
    kernel.cursor.apply()
    assert kernel.sees() == HITS
