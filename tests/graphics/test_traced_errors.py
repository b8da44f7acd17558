"""Bad input of acceleration structures: each mistake is an error at the call, which names the field."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tracing import (
    BOTTOM,
    BUILD,
    COPY,
    OPAQUE,
    TOP,
    TRIANGLE,
    boxes,
    build,
    input_buffer,
    instance,
    instance_list,
    moved,
    needs,
    record_build,
    scene,
    triangles,
)

import slangpy as spy

pytestmark = pytest.mark.traces(records=True)
Desc = spy.AccelerationStructureBuildDesc


@pytest.fixture
def builder(device: spy.Device) -> spy.Device:
    """A device that builds, or the null device, which records."""
    return needs(device, "acceleration_structure")


def refuses(call: Callable[[], Any], kind: type[Exception], *words: str) -> None:
    with pytest.raises(kind) as caught:
        call()
    for word in words:
        assert word in str(caught.value), str(caught.value)


def test_inputs(builder: spy.Device) -> None:
    def sizes(*inputs: Any, **fields: Any) -> Callable[[], Any]:
        return lambda: builder.get_acceleration_structure_sizes(Desc({"inputs": inputs, **fields}))

    refuses(sizes(), ValueError, "inputs must not be empty")
    refuses(sizes(triangles(builder, vertex_format=spy.Format.rgba8_unorm)), ValueError, "inputs[0]", "rgba8_unorm")
    refuses(sizes(triangles(builder, vertex_format=spy.Format.undefined)), ValueError, "undefined", "rgb32_float")
    refuses(sizes(triangles(builder, vertex_stride=8)), ValueError, "vertex_stride is 8", "12 bytes")
    refuses(sizes(triangles(builder, vertex_stride=14)), ValueError, "vertex_stride is 14", "multiple of 4")
    refuses(sizes(triangles(builder, vertex_count=4)), ValueError, "vertex_count", "multiple of 3")
    refuses(sizes(triangles(builder, index_count=3)), ValueError, "there is no index_buffer")
    indexed = triangles(builder, indices=np.zeros(3, np.uint32), index_count=2)
    refuses(sizes(indexed), ValueError, "index_count", "multiple of 3")
    box = boxes(builder, np.zeros((1, 6)))
    refuses(sizes(triangles(builder), box), ValueError, "inputs[1] is of another kind")
    refuses(sizes(boxes(builder, np.zeros((1, 6)), aabb_stride=20)), ValueError, "aabb_stride is 20")
    refuses(sizes(triangles(builder), motion_options={"key_count": 2}), NotImplementedError, "motion")
    refuses(sizes(triangles(builder), flags=BUILD.prefer_fast_trace | BUILD.prefer_fast_build), ValueError, "choose one")
    refuses(lambda: Desc({"inputs": [3]}), TypeError, "inputs", "AccelerationStructureBuildInputTriangles")
    refuses(lambda: Desc({"input": []}), TypeError, "unknown field 'input'", "inputs")
    both = [input_buffer(builder, TRIANGLE)] * 2
    refuses(sizes(triangles(builder, vertex_buffers=both)), NotImplementedError, "vertex_buffers", "motion")
    good = builder.get_acceleration_structure_sizes({"inputs": [triangles(builder)]})
    assert min(good.acceleration_structure_size, good.scratch_size, good.update_scratch_size) > 0


def recorder(device: spy.Device, inputs: list[Any], **changes: Any) -> Callable[[], Any]:
    """A build with one thing changed."""

    def call() -> None:
        desc = Desc({"inputs": inputs, "flags": changes.pop("flags", BUILD.none), "mode": changes.pop("mode", Mode.build)})
        arguments: dict[str, Any] = {"dst": device.create_acceleration_structure(size=1 << 16), "src": None}
        arguments["scratch_buffer"] = device.create_buffer(size=1 << 16, usage=spy.BufferUsage.unordered_access)
        device.create_command_encoder().build_acceleration_structure(desc, **{**arguments, **changes})

    return call


Mode = spy.AccelerationStructureBuildMode


def test_buffers(builder: spy.Device) -> None:
    short = input_buffer(builder, TRIANGLE[:2])
    refuses(recorder(builder, [triangles(builder, vertex_buffers=[short])]), IndexError, "vertex_buffers[0]", "36")
    refuses(recorder(builder, [triangles(builder, vertex_buffers=[])]), ValueError, "vertex_buffers is empty")
    usage = builder.create_buffer(data=TRIANGLE, usage=spy.BufferUsage.vertex_buffer)
    refuses(
        recorder(builder, [triangles(builder, vertex_buffers=[usage])]), ValueError, "acceleration_structure_build_input"
    )
    odd = [{"buffer": input_buffer(builder, np.zeros((4, 3), np.float32)), "offset": 2}]
    refuses(recorder(builder, [triangles(builder, vertex_buffers=odd)]), ValueError, "offset (2)", "multiple of 4")
    wrong = triangles(builder, indices=np.zeros(3, np.uint32), index_count=6)
    refuses(recorder(builder, [wrong]), IndexError, "index_buffer", "24")
    transform = {"buffer": input_buffer(builder, np.zeros(16, np.float32)), "offset": 8}
    refuses(recorder(builder, [triangles(builder, pre_transform_buffer=transform)]), ValueError, "multiple of 16")
    refuses(recorder(builder, [boxes(builder, np.zeros((1, 6)), primitive_count=2)]), IndexError, "aabb_buffers[0]")
    other = spy.Device(type=spy.DeviceType.null)
    foreign = triangles(builder, vertex_buffers=[input_buffer(other, TRIANGLE)])
    refuses(recorder(builder, [foreign]), ValueError, "vertex_buffers[0]", "another device")


def test_targets_and_scratch(builder: spy.Device) -> None:
    inputs = [triangles(builder)]
    tiny = builder.create_acceleration_structure(size=1)
    refuses(recorder(builder, inputs, dst=tiny), ValueError, "'dst'", "too small", "get_acceleration_structure_sizes")
    top = builder.create_acceleration_structure(kind=TOP, size=1 << 16)
    refuses(recorder(builder, inputs, dst=top), ValueError, "top_level", "no instances")
    little = builder.create_buffer(size=1, usage=spy.BufferUsage.unordered_access)
    refuses(recorder(builder, inputs, scratch_buffer=little), ValueError, "scratch_buffer", "too few")
    read_only = builder.create_buffer(size=1 << 16, usage=spy.BufferUsage.shader_resource)
    refuses(recorder(builder, inputs, scratch_buffer=read_only), ValueError, "unordered_access")
    refuses(recorder(builder, inputs, scratch_buffer=None), TypeError, "scratch_buffer")
    refuses(recorder(builder, inputs, dst=None), TypeError, "dst")
    refuses(recorder(builder, inputs, dst=3), TypeError, "dst", "AccelerationStructure")
    refuses(lambda: builder.create_acceleration_structure(size=0), ValueError, "'size' must be at least 1")
    refuses(lambda: builder.create_acceleration_structure(size=64, kinds=1), TypeError, "unknown field 'kinds'")


def test_updates(builder: spy.Device) -> None:
    inputs = [triangles(builder)]
    fixed, free = build(builder, inputs), build(builder, inputs, flags=BUILD.allow_update)
    update: dict[str, Any] = {"mode": Mode.update, "flags": BUILD.allow_update}
    refuses(recorder(builder, inputs, **update), ValueError, "'src' is None")
    refuses(recorder(builder, inputs, src=fixed, **update), ValueError, "without AccelerationStructureBuildFlags.allow_update")
    refuses(recorder(builder, inputs, src=free, mode=Mode.update), ValueError, "flags of the build")
    refuses(recorder(builder, inputs * 2, src=free, **update), ValueError, "differ")
    refuses(recorder(builder, inputs, src=free), ValueError, "'src' is for mode")
    fresh = builder.create_acceleration_structure(size=1 << 16)
    refuses(recorder(builder, inputs, src=fresh, **update), ValueError, "never built")


def test_copies_and_queries(builder: spy.Device) -> None:
    plain = build(builder, [triangles(builder)])
    loose = build(builder, [triangles(builder)], flags=BUILD.allow_compaction)
    fresh = builder.create_acceleration_structure(size=1 << 16)
    tiny = builder.create_acceleration_structure(size=1)
    encoder = builder.create_command_encoder()
    copy, query = encoder.copy_acceleration_structure, encoder.query_acceleration_structure_properties
    refuses(lambda: copy(fresh, fresh, COPY.clone), ValueError, "'src'", "never built")
    refuses(lambda: copy(plain, plain, COPY.clone), ValueError, "same structure")
    refuses(lambda: copy(tiny, plain, COPY.clone), ValueError, "too small")
    refuses(lambda: copy(fresh, plain, COPY.compact), ValueError, "allow_compaction")
    refuses(lambda: copy(tiny, loose, COPY.compact), ValueError, "compacted size nobody has asked for")
    top = builder.create_acceleration_structure(kind=TOP, size=1 << 16)
    refuses(lambda: copy(top, plain, COPY.clone), ValueError, "top_level")
    pool = builder.create_query_pool(spy.QueryType.acceleration_structure_compacted_size, 1)
    ask = {"query_type": pool.type, "query_pool": pool}
    refuses(lambda: query([plain], [ask]), ValueError, "allow_compaction")
    refuses(lambda: query([fresh], [ask]), ValueError, "never built")
    refuses(lambda: query([loose, loose], [ask]), IndexError, "2 results", "pool of 1")
    refuses(lambda: query([loose], [{**ask, "first_query_index": 1}]), IndexError, "pool of 1")
    refuses(lambda: query([loose], [{**ask, "query_type": spy.QueryType.timestamp}]), ValueError, "query_type")
    refuses(lambda: encoder.write_timestamp(pool, 0), ValueError, "QueryType.timestamp")


def test_instances(builder: spy.Device) -> None:
    blas = build(builder, [triangles(builder)])
    instances = instance_list(builder, instance(blas), instance(blas))
    assert instances.size == len(instances) == 2 and instances.instance_stride == 64
    refuses(lambda: instances.write(2, instance(blas)), IndexError, "index 2", "2 instances")
    refuses(lambda: instances.write(1, [instance(blas)] * 2), IndexError, "index 2")
    refuses(lambda: instances.write(0, instance(blas, instance_id=1 << 24)), ValueError, "instance_id", "24 bits")
    refuses(lambda: instances.write(0, instance(blas, instance_mask=256)), ValueError, "instance_mask", "8 bits")
    far = {"instance_contribution_to_hit_group_index": 1 << 24}
    refuses(lambda: instances.write(0, instance(blas, **far)), ValueError, "hit_group_index", "24 bits")
    refuses(lambda: instances.write(0, {"acceleration_structure": 3}), TypeError, "acceleration_structure")
    refuses(lambda: instances.write(0, {"transform": [1, 2, 3]}), Exception, "transform")
    refuses(lambda: instances.write(0, {"mask": 1}), TypeError, "unknown field 'mask'", "instance_mask")
    instances.resize(3)
    assert instances.size == 3
    instances.resize(1)
    fresh = builder.create_acceleration_structure(size=1 << 12)
    unbuilt = instance_list(builder, instance(fresh)).build_input_instances()
    refuses(recorder(builder, [unbuilt]), ValueError, "never built")
    tlas = scene(builder, blas)
    refuses(lambda: instances.write(0, instance(tlas)), ValueError, "top_level")
    refuses(recorder(builder, [instances.build_input_instances()] * 2), ValueError, "2 inputs of instances")
    strided = instances.build_input_instances()
    strided.instance_stride = 80
    refuses(recorder(builder, [strided]), ValueError, "instance_stride is 80", "64")
    beyond = instances.build_input_instances()
    beyond.instance_count = 2
    refuses(recorder(builder, [beyond]), IndexError, "instance_buffer")
    bottom = builder.create_acceleration_structure(kind=BOTTOM, size=1 << 16)
    refuses(recorder(builder, [instances.build_input_instances()], dst=bottom), ValueError, "bottom_level")


def test_handles(builder: spy.Device) -> None:
    needs(builder, "bindless")
    fresh, blas = builder.create_acceleration_structure(size=1 << 12), build(builder, [triangles(builder)])
    refuses(lambda: fresh.descriptor_handle, ValueError, "AccelerationStructure.descriptor_handle", "never built")
    refuses(lambda: blas.descriptor_handle, ValueError, "built from triangles or boxes")
    recorded = record_build(
        builder.create_command_encoder(), [instance_list(builder, instance(blas)).build_input_instances()], TOP
    )
    refuses(lambda: recorded.descriptor_handle, ValueError, "its build was not submitted")
    whole = scene(builder, blas)  # handles are false without what they name
    assert whole.descriptor_handle


def test_builds_that_nobody_submitted(builder: spy.Device) -> None:
    """Instances, copies and sizes of a structure wait for its build."""
    recording, later = builder.create_command_encoder(), builder.create_command_encoder()
    blas = record_build(recording, [triangles(builder)])
    record_build(later, [instance_list(builder, instance(blas)).build_input_instances()], TOP)
    using = later.finish()
    refuses(lambda: builder.submit_command_buffer(using), ValueError, "recorded but not submitted")
    copy = builder.create_command_encoder()
    copy.copy_acceleration_structure(builder.create_acceleration_structure(size=blas.size), blas, COPY.clone)
    copying = copy.finish()
    refuses(lambda: builder.submit_command_buffer(copying), ValueError, "recorded but not submitted")
    builder.submit_command_buffer(recording.finish())
    builder.submit_command_buffers([using, copying])


def test_passes_and_other_devices(builder: spy.Device) -> None:
    inputs = [triangles(builder)]
    encoder = builder.create_command_encoder()
    with encoder.begin_compute_pass():
        refuses(lambda: record_build(encoder, inputs), RuntimeError, "compute pass", "open")
    other = spy.Device(type=spy.DeviceType.null)
    foreign = build(other, [triangles(other)])
    refuses(recorder(builder, inputs, dst=foreign), ValueError, "another device")
    refuses(lambda: instance_list(builder, instance(foreign)), ValueError, "another device")


@pytest.mark.null
def test_null_records() -> None:
    device = spy.Device(type=spy.DeviceType.null)
    blas = build(device, [triangles(device), triangles(device, flags=OPAQUE)], flags=BUILD.allow_update)
    scene(device, blas, blas, blas)
    clone = device.create_acceleration_structure(size=blas.desc.size, label="c")
    encoder = device.create_command_encoder()
    encoder.copy_acceleration_structure(clone, blas, COPY.clone)
    device.submit_command_buffer(encoder.finish())
    assert device._take_ray_commands() == [("build", [1, 1]), ("build", [3]), ("clone", [1, 1])]
    assert "label = 'c'" in repr(clone) and clone.desc.label == "c"


@pytest.mark.null
def test_records_of_instances_are_what_builds_read() -> None:
    desc = spy.AccelerationStructureInstanceDesc(
        transform=moved(1, 2, 3),
        instance_id=5,
        instance_mask=0xF0,
        instance_contribution_to_hit_group_index=7,
        flags=spy.AccelerationStructureInstanceFlags.force_opaque,
    )
    record = desc.to_numpy()
    assert record.dtype == np.uint8 and record.shape == (64,)
    assert np.array_equal(record[:48].view(np.float32), [3, 0, 0, 1, 0, 3, 0, 2, 0, 0, 3, 0])
    assert record[48:].view(np.uint32).tolist() == [5 | 0xF0 << 24, 7 | 4 << 24, 0, 0]
    assert isinstance(desc.transform, spy.float3x4)
    assert spy.AccelerationStructureInstanceDesc().to_numpy()[:48].view(np.float32).tolist() == [
        1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0,
    ]  # fmt: skip


@pytest.mark.null
@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("AccelerationStructureKind", "unknown bottom_level top_level"),
        ("AccelerationStructureBuildMode", "build update"),
        ("AccelerationStructureCopyMode", "clone compact"),
        ("QueryType", "timestamp acceleration_structure_compacted_size acceleration_structure_current_size"),
    ],
)
def test_enums(name: str, values: str) -> None:
    enum = getattr(spy, name)
    assert [enum[value].value for value in values.split()] == list(range(len(values.split())))


@pytest.mark.null
def test_flags() -> None:
    assert BUILD.minimize_memory.value == 16 and BUILD.allow_update.value == 1
    assert spy.AccelerationStructureGeometryFlags.no_duplicate_any_hit_invocation.value == 2
    assert spy.AccelerationStructureInstanceFlags.no_opaque.value == 8
    assert spy.RayTracingPipelineFlags.enable_linear_swept_spheres.value == 8


@pytest.mark.one
def test_devices_without_say_who_has_it() -> None:
    device = spy.Device(type=spy.DeviceType.cpu)
    assert not device.has_feature(spy.Feature.acceleration_structure)
    for call in (
        lambda: device.create_acceleration_structure(size=64),
        lambda: device.get_acceleration_structure_sizes(inputs=[]),
        lambda: device.create_acceleration_structure_instance_list(1),
        lambda: device.create_query_pool(spy.QueryType.acceleration_structure_compacted_size, 1),
        lambda: device.create_command_encoder().begin_ray_tracing_pass(),
    ):
        refuses(call, NotImplementedError, "vulkan", "slangpy.rays")
