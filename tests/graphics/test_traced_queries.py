"""Acceleration structures as ray queries see them: the numbers are exact, whatever device traces."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest
from tracing import (
    BUILD,
    COPY,
    HITS,
    QUERIES,
    TOP,
    TRIANGLE,
    boxes,
    build,
    found,
    input_buffer,
    instance,
    instance_list,
    moved,
    needs,
    picture,
    query_kernel,
    query_module,
    record_build,
    result_buffer,
    scene,
    submit,
    triangles,
)

import slangpy as spy

pytestmark = pytest.mark.traces
MISSES = ["........"] * 8


@pytest.fixture
def tracer(device: spy.Device) -> spy.Device:
    return needs(device, "acceleration_structure", "ray_query")


HANDED_ON = """
typealias Query = RayQuery<RAY_FLAG_NONE>;
struct Both { Query query; float t; }
void start(inout Query query, RaytracingAccelerationStructure scene)
{
    RayDesc ray = { float3(-0.5, -0.5, 1), 0, float3(0, 0, -1), 10 };
    query.TraceRayInline(scene, RAY_FLAG_NONE, 0xff, ray);
    query.Proceed();
}
Query made(RaytracingAccelerationStructure scene) { Query query; start(query, scene); return query; }
float t(inout Query query) { return query.CommittedStatus() == COMMITTED_TRIANGLE_HIT ? query.CommittedRayT() : -1; }
float by_inout(RaytracingAccelerationStructure scene) { Query query; start(query, scene); return t(query); }
float result(RaytracingAccelerationStructure scene) { Query query = made(scene); return t(query); }
float copy(RaytracingAccelerationStructure scene) { Query a; start(a, scene); Query b = a; return t(b); }
float element(RaytracingAccelerationStructure scene) { Query q[2]; start(q[1], scene); return t(q[1]); }
float forgotten(RaytracingAccelerationStructure scene) { Query query; return t(query); }
float field(RaytracingAccelerationStructure scene) { Both both; start(both.query, scene); return t(both.query); }
"""


def test_queries_that_are_handed_on(tracer: spy.Device) -> None:
    """Slang drops assignments of queries."""
    module = spy.Module.load_from_source(tracer, "queries_handed_on", HANDED_ON)
    top = scene(tracer, build(tracer, [triangles(tracer)]))
    assert module.by_inout(top) == 1
    for name in ("result", "copy", "element", "forgotten", "field"):
        with pytest.raises(RuntimeError, match=f"{name}' reads a RayQuery that TraceRayInline has not started.*inout parameter"):
            getattr(module, name)(top)


@pytest.mark.parametrize("indices", [None, np.array([0, 1, 2], np.uint32), np.array([0, 1, 2], np.uint16)])
def test_triangle(tracer: spy.Device, indices: Any) -> None:
    hits = found(tracer, scene(tracer, build(tracer, [triangles(tracer, indices=indices)])))
    assert picture(hits) == HITS and sum(row.count("#") for row in HITS) == 36
    assert hits[0, 0].tolist() == [0.0625, 0.0625, 1, 0] and hits[0, 6].tolist() == [0.8125, 0.0625, 1, 0]


def test_indices_pick_vertices_and_number_primitives(tracer: spy.Device) -> None:
    vertices = np.array([[9, 9, 9], [-1, -1, 0], [1, -1, 0], [-1, 1, 0], [1, 1, 0]], np.float32)
    indices = np.array([0, 1, 2, 1, 2, 3, 2, 4, 3], np.uint32)
    inputs = triangles(tracer, vertices, indices)
    inputs.index_buffer = spy.BufferOffsetPair(inputs.index_buffer, 12)
    inputs.index_count = 6
    hits = found(tracer, scene(tracer, build(tracer, [inputs])))
    assert picture(hits) == ["########"] * 8
    assert hits[0, 0, 3] == 0 and hits[7, 7, 3] == 4096


def test_transform_formats_and_strides(tracer: spy.Device) -> None:
    shift = input_buffer(tracer, np.array(moved(2, 0), np.float32))
    assert picture(found(tracer, scene(tracer, build(tracer, [triangles(tracer, pre_transform_buffer=shift)])))) == MISSES
    wide = np.zeros((3, 5), np.float32)
    wide[:, 1:4] = TRIANGLE
    inputs = triangles(tracer, vertex_stride=20, vertex_buffers=[{"buffer": input_buffer(tracer, wide), "offset": 4}])
    assert picture(found(tracer, scene(tracer, build(tracer, [inputs])))) == HITS
    for format, data in (
        (spy.Format.rgba32_float, np.c_[TRIANGLE, np.ones(3)].astype(np.float32)),
        (spy.Format.rg32_float, np.ascontiguousarray(TRIANGLE[:, :2])),
        (spy.Format.rgba16_float, np.c_[TRIANGLE, np.ones(3)].astype(np.float16)),
        (spy.Format.rg16_float, TRIANGLE[:, :2].astype(np.float16)),
        (spy.Format.rgba16_snorm, (np.c_[TRIANGLE, np.ones(3)] * 32767).astype(np.int16)),
    ):
        inputs = triangles(tracer, vertex_format=format, vertex_stride=0, vertex_buffers=[input_buffer(tracer, data)])
        assert picture(found(tracer, scene(tracer, build(tracer, [inputs])))) == HITS, format


def test_geometries_of_one_structure(tracer: spy.Device) -> None:
    right = TRIANGLE + np.array([1, 1, 0], np.float32)
    hits = found(tracer, scene(tracer, build(tracer, [triangles(tracer), triangles(tracer, right)])))
    assert hits[0, 0, 3] == 0 and hits[5, 5, 3] == 256


def test_instances(tracer: spy.Device) -> None:
    blas = build(tracer, [triangles(tracer)])
    tlas = scene(
        tracer,
        instance(blas, transform=moved(-0.5, -0.5, 0.5), instance_id=5),
        instance(blas, transform=moved(0.5, 0.5, 0.5), instance_id=6),
    )
    hits = found(tracer, tlas)
    assert hits[0, 0].tolist() == [0.125, 0.125, 1, 5] and hits[4, 4].tolist() == [0.125, 0.125, 1, 6 + 16]
    assert picture(found(tracer, scene(tracer, instance(blas, instance_mask=0)))) == MISSES


def test_not_opaque(tracer: spy.Device) -> None:
    asked = build(tracer, [triangles(tracer, flags=spy.AccelerationStructureGeometryFlags.none)])
    narrow = [row[:4] + "...." for row in HITS]
    assert picture(found(tracer, scene(tracer, asked))) == narrow
    flags = spy.AccelerationStructureInstanceFlags
    assert picture(found(tracer, scene(tracer, instance(asked, flags=flags.force_opaque)))) == HITS
    opaque = build(tracer, [triangles(tracer)])
    assert picture(found(tracer, scene(tracer, instance(opaque, flags=flags.no_opaque)))) == narrow


def test_boxes(tracer: spy.Device) -> None:
    two = np.array([[-1, -1, -1, 0, 0, 0], [0, 0, -1, 1, 1, 0]])
    hits = found(tracer, scene(tracer, build(tracer, [boxes(tracer, two)])))
    assert hits[0, 0].tolist() == [1.25, 0, 0, -2] and hits[7, 7].tolist() == [1.25, 1, 0, -2]
    assert hits[7, 0].tolist() == [-1, -1, -1, -1]
    padded = np.zeros((2, 8), np.float32)
    padded[:, 2:] = two
    inputs = boxes(tracer, two, aabb_stride=32, aabb_buffers=[{"buffer": input_buffer(tracer, padded), "offset": 8}])
    assert np.array_equal(found(tracer, scene(tracer, build(tracer, [inputs]))), hits)


def test_sizes_zero_one_many(tracer: spy.Device) -> None:
    empty = build(tracer, [triangles(tracer, np.zeros((0, 3)))])
    assert picture(found(tracer, scene(tracer, empty))) == MISSES
    assert picture(found(tracer, scene(tracer))) == MISSES
    with_empty = scene(tracer, empty, build(tracer, [triangles(tracer)]))
    assert picture(found(tracer, with_empty)) == HITS
    # A quad a pixel, in the order of the pixels: each ray meets one triangle of its own quad.
    x, y = np.meshgrid(np.arange(8), np.arange(8))
    corner = np.stack([x, y], -1).reshape(-1, 1, 2) + np.array([[0, 0], [1, 0], [0, 1], [1, 0], [1, 1], [0, 1]])
    vertices = np.zeros((64 * 6, 3), np.float32)
    vertices[:, :2] = corner.reshape(-1, 2) / 4 - 1
    many = np.tile(vertices, (20, 1))
    many[:, 2] = np.repeat(-np.arange(20) / 32, 64 * 6)  # behind one another
    hits = found(tracer, scene(tracer, build(tracer, [triangles(tracer, many)])))
    pixel = np.arange(64).reshape(8, 8)
    assert np.all(hits[..., 2] == 1) and np.array_equal(hits[..., 3] // 4096 // 2, pixel)


@pytest.mark.parametrize("into_another", [False, True])
def test_refit(tracer: spy.Device, into_another: bool) -> None:
    inputs = triangles(tracer)
    blas = build(tracer, [inputs], flags=BUILD.allow_update)
    instances = instance_list(tracer, instance(blas)).build_input_instances()
    assert picture(found(tracer, build(tracer, [instances], TOP))) == HITS
    inputs.vertex_buffers[0].copy_from_numpy(TRIANGLE + np.array([2, 0, 0], np.float32))
    desc = spy.AccelerationStructureBuildDesc(
        {"inputs": [inputs], "flags": BUILD.allow_update, "mode": spy.AccelerationStructureBuildMode.update}
    )
    sizes = tracer.get_acceleration_structure_sizes(desc)
    scratch = tracer.create_buffer(size=sizes.update_scratch_size, usage=spy.BufferUsage.unordered_access)
    target = tracer.create_acceleration_structure(size=sizes.acceleration_structure_size) if into_another else blas
    submit(tracer, ("build_acceleration_structure", desc, target, blas, scratch))
    assert picture(found(tracer, scene(tracer, target))) == MISSES


def test_compaction_and_clone(tracer: spy.Device) -> None:
    pool = tracer.create_query_pool(spy.QueryType.acceleration_structure_compacted_size, 3)
    query = {"query_type": pool.type, "query_pool": pool, "first_query_index": 1}
    encoder = tracer.create_command_encoder()
    blas = record_build(encoder, [triangles(tracer)], flags=BUILD.allow_compaction, queries=[query])
    tracer.submit_command_buffer(encoder.finish())
    size = pool.get_result(1)
    assert 0 < size <= blas.desc.size
    compact = tracer.create_acceleration_structure(size=size)
    clone = tracer.create_acceleration_structure(size=blas.desc.size)
    submit(
        tracer,
        ("copy_acceleration_structure", compact, blas, COPY.compact),
        ("copy_acceleration_structure", clone, blas, COPY.clone),
    )
    del blas
    for copy in (compact, clone):
        assert picture(found(tracer, scene(tracer, copy))) == HITS
    tlas = scene(tracer, clone)
    del copy, clone
    cloned = tracer.create_acceleration_structure(size=tlas.desc.size)
    submit(tracer, ("copy_acceleration_structure", cloned, tlas, COPY.clone))
    del tlas
    gc.collect()
    assert picture(found(tracer, cloned)) == HITS


def test_queries_afterwards(tracer: spy.Device) -> None:
    both = [build(tracer, [triangles(tracer)], flags=BUILD.allow_compaction) for _ in range(2)]
    pool = tracer.create_query_pool(spy.QueryType.acceleration_structure_compacted_size, 2)
    with pytest.raises(RuntimeError):
        pool.get_result(0)
    submit(tracer, ("query_acceleration_structure_properties", both, [{"query_type": pool.type, "query_pool": pool}]))
    sizes = pool.get_results(0, 2)
    assert sizes[0] == sizes[1] and 0 < sizes[0] <= both[0].desc.size
    current = tracer.create_query_pool(spy.QueryType.acceleration_structure_current_size, 1)
    submit(
        tracer,
        ("query_acceleration_structure_properties", both[:1], [{"query_type": current.type, "query_pool": current}]),
    )
    assert 0 < current.get_result(0) <= both[0].desc.size


def test_cursors_vars_and_entry_points(tracer: spy.Device) -> None:
    tlas = scene(tracer, build(tracer, [triangles(tracer)]))
    result = result_buffer(tracer)
    query_kernel(tracer, "query_own").dispatch([8, 8, 1], result=result, tlas=tlas)
    assert picture(result.to_numpy().view(np.float32).reshape(8, 8, 4)) == HITS
    kernel = query_kernel(tracer)
    root = tracer.create_root_shader_object(kernel.program)
    cursor = spy.ShaderCursor(root)
    cursor.global_tlas = tlas
    entry = cursor.find_entry_point(0)
    entry.result, entry.scale = result, 2.0
    encoder = tracer.create_command_encoder()
    with encoder.begin_compute_pass() as compute_pass:
        compute_pass.bind_pipeline(kernel.pipeline, root)
        compute_pass.dispatch([8, 8, 1])
    tracer.submit_command_buffer(encoder.finish())
    assert result.to_numpy().view(np.float32).reshape(8, 8, 4)[0, 0].tolist() == [0.125, 0.125, 2, 0]


BLOCKS = """
struct Blocked { RaytracingAccelerationStructure tlas; float scale; };
ParameterBlock<Blocked> block;
ConstantBuffer<Blocked> constants;
RaytracingAccelerationStructure many[3];
[shader("compute")] [numthreads(8, 8, 1)]
void query_blocks(uint3 at : SV_DispatchThreadID, uniform RWStructuredBuffer<float4> result)
{
    result[at.y * 8 + at.x] = found(at.xy, block.tlas) * block.scale + found(at.xy, constants.tlas) * constants.scale +
        found(at.xy, many[2]);
}
"""


def test_blocks_arrays_and_none(tracer: spy.Device) -> None:
    code = tracer.load_module_from_source("tracing_blocks", QUERIES + BLOCKS)
    kernel = tracer.create_compute_kernel(tracer.link_program([code], [code.entry_point("query_blocks")]))
    tlas, empty, result = scene(tracer, build(tracer, [triangles(tracer)])), scene(tracer), result_buffer(tracer)
    variables = {
        "block": {"tlas": tlas, "scale": 2.0}, "constants": {"tlas": tlas, "scale": 1.0}, "many": [empty, empty, tlas]
    }  # fmt: skip
    kernel.dispatch([8, 8, 1], vars=variables, result=result)
    hits = result.to_numpy().view(np.float32).reshape(8, 8, 4)
    assert hits[0, 0].tolist() == [0.25, 0.25, 4, 0] and hits[7, 7].tolist() == [-4] * 4
    try:  # where the driver binds nothing, nothing is hit
        assert picture(found(tracer, None)) == MISSES
    except ValueError as error:
        assert "'global_tlas' is None" in str(error)


def test_functional_arguments(tracer: spy.Device) -> None:
    module = query_module(tracer)
    tlas = scene(tracer, build(tracer, [triangles(tracer)]))
    expected = found(tracer, tlas)
    pixels = np.stack(np.meshgrid(np.arange(8), np.arange(8)), -1).astype(np.uint32)
    places = spy.Tensor.from_numpy(tracer, pixels)
    flat = spy.Tensor.empty(tracer, (8, 8), "float4")
    module.found(places, tlas, _result=flat)
    assert np.array_equal(flat.to_numpy(), expected)
    assert np.array_equal(module.found(spy.grid((8, 8)), tlas, _result="numpy"), expected)
    for struct in ({"tlas": tlas, "scale": 2.0}, {"tlas": tlas, "scale": 0.5}):
        got = module.found_in(places, struct, _result="numpy")
        assert np.array_equal(got, expected * struct["scale"])
    module.into(places, tlas, flat)
    assert np.array_equal(flat.to_numpy(), expected)
    assert module.found(spy.uint2(0, 0), tlas) == spy.float4(0.0625, 0.0625, 1, 0)


def test_functional_errors(tracer: spy.Device) -> None:
    module = query_module(tracer)
    tlas = scene(tracer, build(tracer, [triangles(tracer)]))
    with pytest.raises(Exception, match="AccelerationStructure binds to a RaytracingAccelerationStructure"):
        module.without(tlas)
    with pytest.raises(Exception, match="RaytracingAccelerationStructure"):
        module.found(spy.uint2(0, 0), 3)
    with pytest.raises(Exception, match="RaytracingAccelerationStructure"):  # it is never spread over a call
        module.found(spy.uint2(0, 0), [tlas, tlas])
    empty = tracer.create_acceleration_structure(size=1024, label="mine")
    with pytest.raises(ValueError, match="'mine'.* which was never built"):
        module.found(spy.uint2(0, 0), empty)
    with pytest.raises(ValueError, match="built from triangles or boxes"):
        module.found(spy.uint2(0, 0), build(tracer, [triangles(tracer)]))


HANDLES = (
    QUERIES
    + """
struct Place { uint k; RaytracingAccelerationStructure.Handle tlas; }
StructuredBuffer<Place> places;
[shader("compute")] [numthreads(8, 8, 1)]
void by_handles(uint3 at : SV_DispatchThreadID, uniform RWStructuredBuffer<float4> result,
                uniform RaytracingAccelerationStructure.Handle own)
{
    // What lies in a buffer in the upper half, what is a parameter in the lower.
    result[at.y * 8 + at.x] = at.y < 4 ? found(at.xy, places[places[0].k].tlas) : found(at.xy, own);
}
"""
)


def test_handles(tracer: spy.Device) -> None:
    """By a cursor, in a buffer, and as an argument of a call."""
    needs(tracer, "bindless")
    blas = build(tracer, [triangles(tracer)])
    whole, half = scene(tracer, blas), scene(tracer, instance(blas, transform=moved(-0.5, -0.5, 0.5)))
    expected = [found(tracer, structure) for structure in (whole, half)]
    assert not np.array_equal(*expected)
    handle = half.descriptor_handle
    assert handle == half.descriptor_handle != whole.descriptor_handle and handle
    assert handle.type is spy.DescriptorHandleType.acceleration_structure
    code = tracer.load_module_from_source("tracing_handles", HANDLES)
    program = tracer.link_program([code], [code.entry_point("by_handles")])
    layout = next(p.type_layout for p in program.layout.parameters if p.name == "places")
    places = tracer.create_buffer(element_count=2, resource_type_layout=layout, usage=spy.BufferUsage.shader_resource)
    cursor = spy.BufferCursor(layout, places)
    cursor[0] = {"k": 1, "tlas": whole.descriptor_handle}
    cursor[1] = {"k": 0, "tlas": handle}
    cursor.apply()
    assert cursor[1].tlas.read() == handle
    result, kernel = result_buffer(tracer), tracer.create_compute_kernel(program)
    kernel.dispatch([8, 8, 1], vars={"places": places}, result=result, own=whole.descriptor_handle)
    got = result.to_numpy().view(np.float32).reshape(8, 8, 4)
    assert np.array_equal(got[:4], expected[1][:4]) and np.array_equal(got[4:], expected[0][4:])
    calls = query_module(tracer)
    for structure, own in zip((whole, half), expected, strict=True):
        assert np.array_equal(calls.found_by(spy.grid((8, 8)), structure.descriptor_handle, _result="numpy"), own)
    with pytest.raises(ValueError, match="takes a handle of type acceleration_structure, got one of type rw_buffer"):
        calls.found_by(spy.uint2(0, 0), result.descriptor_handle_rw)
    del half, structure
    gc.collect()
    assert not handle
    with pytest.raises(ValueError, match="what this DescriptorHandle names is gone"):
        calls.found_by(spy.uint2(0, 0), handle)


def test_builds_that_nobody_submitted(tracer: spy.Device) -> None:
    """Recorded is not built: what would walk through the structure is refused until its build was submitted."""
    instances = instance_list(tracer, instance(build(tracer, [triangles(tracer)])))
    builder, user = tracer.create_command_encoder(), tracer.create_command_encoder()
    tlas = record_build(builder, [instances.build_input_instances()], TOP)
    with pytest.raises(ValueError, match="'tlas' is .*recorded but not submitted; submit it first"):
        query_module(tracer).found(spy.uint2(0, 0), tlas)
    result = result_buffer(tracer)
    query_kernel(tracer, "query_own").dispatch([8, 8, 1], command_encoder=user, result=result, tlas=tlas)
    build_it, use_it = builder.finish(), user.finish()
    with pytest.raises(ValueError, match="a command uses .*recorded but not submitted"):
        tracer.submit_command_buffer(use_it)
    with pytest.raises(ValueError, match="recorded but not submitted"):
        tracer.submit_command_buffers([use_it, build_it])
    tracer.submit_command_buffers([build_it, use_it])
    assert picture(result.to_numpy().view(np.float32).reshape(8, 8, 4)) == HITS


def test_structures_live_as_long_as_needed(tracer: spy.Device) -> None:
    inputs = triangles(tracer)
    blas = build(tracer, [inputs])
    handle = blas.handle
    del inputs, blas
    gc.collect()
    instances = instance_list(tracer, instance(handle))
    tlas = build(tracer, [instances.build_input_instances()], TOP)
    del handle, instances
    gc.collect()
    junk = [tracer.create_buffer(data=np.full(4096, 0xFF, np.uint8)) for _ in range(64)]
    assert picture(found(tracer, tlas)) == HITS
    del junk
    # Recorded, and all but the command buffer is gone.
    encoder = tracer.create_command_encoder()
    blas = record_build(encoder, [triangles(tracer)])
    late = record_build(encoder, [instance_list(tracer, instance(blas)).build_input_instances()], TOP)
    commands = encoder.finish()
    del encoder, blas
    gc.collect()
    tracer.submit_command_buffer(commands)
    del commands
    gc.collect()
    assert picture(found(tracer, late)) == HITS


def test_a_list_changes_after_it_was_recorded(tracer: spy.Device) -> None:
    blas = build(tracer, [triangles(tracer)])
    instances = instance_list(tracer, instance(blas))
    encoder = tracer.create_command_encoder()
    tlas = record_build(encoder, [instances.build_input_instances()], TOP)
    instances.write(0, instance(blas, instance_mask=0))
    instances.buffer()
    tracer.submit_command_buffer(encoder.finish())
    assert picture(found(tracer, tlas)) == HITS
    assert picture(found(tracer, build(tracer, [instances.build_input_instances()], TOP))) == MISSES


def test_built_and_traced_in_one_submission(tracer: spy.Device) -> None:
    encoder = tracer.create_command_encoder()
    blas = record_build(encoder, [triangles(tracer)])
    tlas = record_build(encoder, [instance_list(tracer, instance(blas)).build_input_instances()], TOP)
    result = result_buffer(tracer)
    query_kernel(tracer).dispatch([8, 8, 1], vars={"global_tlas": tlas}, command_encoder=encoder, result=result, scale=1.0)
    tracer.submit_command_buffer(encoder.finish())
    assert picture(result.to_numpy().view(np.float32).reshape(8, 8, 4)) == HITS


@pytest.mark.nightly
def test_a_thousand_builds_in_flat_memory(tracer: spy.Device) -> None:
    def used() -> int:
        tracer.wait_for_idle()
        return sum(heap.total_allocated for heap in tracer.report_heaps())

    tlas = scene(tracer, build(tracer, [triangles(tracer)]))
    before = 0
    for i in range(1000):
        blas = build(tracer, [triangles(tracer)])
        tlas = scene(tracer, blas, blas)
        if i % 100 == 50:
            assert picture(found(tracer, tlas)) == HITS
        if i == 100:
            before = used()
    assert used() <= before * 1.1 + (1 << 16)
