"""Ray-tracing pipelines: each stage, shader tables, recursion; the numbers are exact. Errors of pipelines and tables."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from tracing import (
    HITS,
    RAYS,
    boxes,
    build,
    instance,
    moved,
    needs,
    result_buffer,
    scene,
    triangles,
)

import slangpy as spy

pytestmark = pytest.mark.traces

SOURCE = (
    RAYS
    + """
RaytracingAccelerationStructure tlas;
RWStructuredBuffer<float4> result;
uniform float scale;

struct Payload { float4 color; }
struct Called { float4 value; }
struct Pair { float2 ab; }

void put(float4 color) { uint3 at = DispatchRaysIndex(); result[at.y * DispatchRaysDimensions().x + at.x] = color; }
float4 traced(uint miss)
{
    Payload payload;
    payload.color = float4(7);
    TraceRay(tlas, RAY_FLAG_NONE, 0xff, 0, 0, miss, ray_of(DispatchRaysIndex().xy), payload);
    return payload.color;
}

[shader("raygeneration")] void first() { put(traced(0) * scale); }
[shader("raygen")] void second() { put(traced(1)); }
[shader("raygeneration")] void own(uniform float k, uniform float4 shift) { put(traced(0) * k + shift); }
[shader("raygeneration")] void calls()
{
    Called called;
    called.value = float4(0);
    CallShader(1, called);
    put(called.value);
}
[shader("raygeneration")] void nothing() { put(float4(DispatchRaysIndex(), DispatchRaysDimensions().y)); }

[shader("miss")] void magenta(inout Payload payload) { payload.color = float4(1, 0, 1, 0); }
[shader("miss")] void green(inout Payload payload) { payload.color = float4(0, 1, 0, 0); }
[shader("miss")] void again(inout Payload payload)
{
    RayDesc ray = ray_of(DispatchRaysIndex().xy);
    ray.Origin.xy = float2(-0.5, -0.5);
    TraceRay(tlas, RAY_FLAG_NONE, 0xff, 0, 0, 0, ray, payload);
    payload.color.w = 9;
}

[shader("closesthit")] void hit(inout Payload payload, BuiltInTriangleIntersectionAttributes a)
{ payload.color = float4(a.barycentrics, RayTCurrent(), InstanceID() + 16 * InstanceIndex()); }
[shader("closesthit")] void hit2(inout Payload payload, BuiltInTriangleIntersectionAttributes a)
{ payload.color = float4(-a.barycentrics, RayTCurrent(), InstanceID()); }
[shader("anyhit")] void half(inout Payload payload, BuiltInTriangleIntersectionAttributes a)
{ if (a.barycentrics.x >= 0.5) IgnoreHit(); }
[shader("intersection")] void box()
{
    Pair pair;
    pair.ab = float2(3, 4);
    ReportHit(1.25, 5, pair);
}
[shader("closesthit")] void hit_box(inout Payload payload, Pair pair)
{ payload.color = float4(pair.ab, RayTCurrent(), HitKind() + 16 * PrimitiveIndex()); }
[shader("callable")] void never(inout Called called) { called.value = float4(-9); }
[shader("callable")] void place(inout Called called)
{ called.value = float4(DispatchRaysIndex().xy, DispatchRaysDimensions().xy); }
"""
)
HIT = {"hit_group_name": "hg", "closest_hit_entry_point": "hit"}
MAGENTA = [1, 0, 1, 0]


@pytest.fixture
def tracer(device: spy.Device) -> spy.Device:
    return needs(device, "acceleration_structure", "ray_tracing")


@cache
def program(device: spy.Device, *names: str) -> Any:
    code = device.load_module_from_source("tracing_pipelines", SOURCE)
    return device.link_program([code], [code.entry_point(name) for name in names])


def pipeline(device: spy.Device, *names: str, hit_groups: Any = (), **fields: Any) -> spy.RayTracingPipeline:
    """Of the shared shaders."""
    sizes = {"max_recursion": 1, "max_ray_payload_size": 16, **fields}
    return device.create_ray_tracing_pipeline(program(device, *names), hit_groups, **sizes)


def table(pipeline: spy.RayTracingPipeline, generation: Any = ("first",), miss: Any = (), hit: Any = (), called: Any = ()) -> Any:
    return pipeline.device.create_shader_table(
        program=pipeline.program, ray_gen_entry_points=list(generation), miss_entry_points=list(miss),
        hit_group_names=list(hit), callable_entry_points=list(called),
    )  # fmt: skip


def rays(
    pipeline: spy.RayTracingPipeline, shaders: Any, tlas: Any = None, index: int = 0, size: Any = (8, 8, 1),
    own: dict[str, Any] | None = None,
) -> npt.NDArray[Any]:  # fmt: skip
    """(8, 8, 4): what a dispatch has put, row y first."""
    device = pipeline.device
    result = result_buffer(device)
    encoder = device.create_command_encoder()
    with encoder.begin_ray_tracing_pass() as ray_pass:
        cursor = spy.ShaderCursor(ray_pass.bind_pipeline(pipeline, shaders))
        cursor.result, cursor.scale = result, 1.0
        if tlas is not None:
            cursor.tlas = tlas
        for name, value in (own or {}).items():
            cursor.find_entry_point(0)[name] = value
        ray_pass.dispatch_rays(index, size)
    device.submit_command_buffer(encoder.finish())
    return result.to_numpy().view(np.float32).reshape(8, 8, 4)


def picture(values: npt.NDArray[Any]) -> list[str]:
    """Rows of '.' where the miss shader has been."""
    return ["".join("." if pixel.tolist() == MAGENTA else "#" for pixel in row) for row in values]


def flat(device: spy.Device) -> spy.AccelerationStructure:
    return scene(device, build(device, [triangles(device)]))


def test_triangle(tracer: spy.Device) -> None:
    made = pipeline(tracer, "first", "magenta", "hit", hit_groups=[HIT])
    hits = rays(made, table(made, miss=["magenta"], hit=["hg"]), flat(tracer))
    assert picture(hits) == HITS
    assert hits[0, 0].tolist() == [0.0625, 0.0625, 1, 0] and hits[0, 6].tolist() == [0.8125, 0.0625, 1, 0]
    assert hits[7, 7].tolist() == MAGENTA


def test_tables_choose_shaders(tracer: spy.Device) -> None:
    made = pipeline(tracer, "first", "second", "magenta", "green", "hit", hit_groups=[HIT])
    shaders, tlas = table(made, ["first", "second"], ["magenta", "green"], ["hg"]), flat(tracer)
    for index, color in enumerate((MAGENTA, [0, 1, 0, 0])):
        hits = rays(made, shaders, tlas, index)
        assert hits[7, 7].tolist() == color and hits[0, 0].tolist() == [0.0625, 0.0625, 1, 0]
    swapped = table(made, ["second", "", "first"], ["green", "magenta"], ["hg"])
    assert rays(made, swapped, tlas, 0)[7, 7].tolist() == MAGENTA
    assert rays(made, swapped, tlas, 2)[7, 7].tolist() == [0, 1, 0, 0]


def test_records_without_a_shader(tracer: spy.Device) -> None:
    made = pipeline(tracer, "first", "magenta", "hit", hit_groups=[HIT])
    hits = rays(made, table(made, miss=[""], hit=["hg"]), flat(tracer))
    assert hits[7, 7].tolist() == [7, 7, 7, 7] and hits[0, 0].tolist() == [0.0625, 0.0625, 1, 0]
    hits = rays(made, table(made, miss=["magenta"], hit=[""]), flat(tracer))
    assert hits[7, 7].tolist() == MAGENTA and hits[0, 0].tolist() == [7, 7, 7, 7]
    assert rays(made, table(made, miss=["magenta"]), flat(tracer))[0, 0].tolist() == [7, 7, 7, 7]


def test_instances_choose_hit_groups(tracer: spy.Device) -> None:
    both = [HIT, {"hit_group_name": "hg2", "closest_hit_entry_point": "hit2"}]
    made = pipeline(tracer, "first", "magenta", "hit", "hit2", hit_groups=both)
    blas = build(tracer, [triangles(tracer)])
    tlas = scene(
        tracer,
        instance(blas, transform=moved(-0.5, -0.5, 0.5), instance_id=5),
        instance(blas, transform=moved(0.5, 0.5, 0.5), instance_id=6, instance_contribution_to_hit_group_index=1),
    )
    hits = rays(made, table(made, miss=["magenta"], hit=["hg", "hg2"]), tlas)
    assert hits[0, 0].tolist() == [0.125, 0.125, 1, 5] and hits[4, 4].tolist() == [-0.125, -0.125, 1, 6]
    with pytest.raises(ValueError, match="'tlas' has instance_contribution_to_hit_group_index 1.* has 1 hit groups"):
        rays(made, table(made, miss=["magenta"], hit=["hg"]), tlas)


def test_any_hit(tracer: spy.Device) -> None:
    made = pipeline(tracer, "first", "magenta", "hit", "half", hit_groups=[{**HIT, "any_hit_entry_point": "half"}])
    asked = build(tracer, [triangles(tracer, flags=spy.AccelerationStructureGeometryFlags.none)])
    shaders = table(made, miss=["magenta"], hit=["hg"])
    assert picture(rays(made, shaders, scene(tracer, asked))) == [row[:4] + "...." for row in HITS]
    assert picture(rays(made, shaders, flat(tracer))) == HITS


def test_intersection(tracer: spy.Device) -> None:
    group = spy.HitGroupDesc(hit_group_name="b", closest_hit_entry_point="hit_box", intersection_entry_point="box")
    made = pipeline(tracer, "first", "magenta", "hit_box", "box", hit_groups=[group])
    two = np.array([[-1, -1, -1, 0, 0, 0], [0, 0, -1, 1, 1, 0]])
    hits = rays(made, table(made, miss=["magenta"], hit=["b"]), scene(tracer, build(tracer, [boxes(tracer, two)])))
    assert hits[0, 0].tolist() == [3, 4, 1.25, 5] and hits[7, 7].tolist() == [3, 4, 1.25, 5 + 16]
    assert hits[7, 0].tolist() == MAGENTA


def test_callable(tracer: spy.Device) -> None:
    made = pipeline(tracer, "calls", "never", "place", max_recursion=0)
    hits = rays(made, table(made, ["calls"], called=["never", "place"]))
    assert hits[3, 5].tolist() == [5, 3, 8, 8]


def test_recursion(tracer: spy.Device) -> None:
    made = pipeline(tracer, "first", "again", "hit", hit_groups=[HIT], max_recursion=2)
    hits = rays(made, table(made, miss=["again"], hit=["hg"]), flat(tracer))
    assert hits[0, 0].tolist() == [0.0625, 0.0625, 1, 0] and hits[7, 7].tolist() == [0.25, 0.25, 1, 9]


def test_parameters_and_sizes(tracer: spy.Device) -> None:
    made = pipeline(tracer, "own", "magenta", "hit", hit_groups=[HIT])
    shaders, tlas = table(made, ["own"], ["magenta"], ["hg"]), flat(tracer)
    hits = rays(made, shaders, tlas, own={"k": 2.0, "shift": (1, 2, 3, 4)})
    assert hits[7, 7].tolist() == [3, 2, 5, 4] and hits[0, 0].tolist() == [1.125, 2.125, 5, 4]
    bare = pipeline(tracer, "nothing", max_recursion=0)
    shaders = table(bare, ["nothing"])
    assert rays(bare, shaders, size=(5, 3, 1)).reshape(-1, 4)[:15].tolist() == [[x, y, 0, 3] for y in range(3) for x in range(5)]
    assert not rays(bare, shaders, size=(5, 0, 1)).any()
    assert rays(bare, shaders, size=4).reshape(-1, 4)[:4].tolist() == [[x, 0, 0, 1] for x in range(4)]


def test_a_root_object_and_several_dispatches(tracer: spy.Device) -> None:
    made = pipeline(tracer, "first", "magenta", "hit", hit_groups=[HIT], defer_target_compilation=True, label="mine")
    assert made.label == "mine" and "mine" in repr(made) and made.desc.max_recursion == 1
    shaders, results = table(made, miss=["magenta"], hit=["hg"]), [result_buffer(tracer) for _ in range(3)]
    root = tracer.create_root_shader_object(made.program)
    cursor = spy.ShaderCursor(root)
    cursor.tlas = flat(tracer)
    encoder = tracer.create_command_encoder()
    with encoder.begin_ray_tracing_pass() as ray_pass:
        ray_pass.push_debug_group("rays")
        assert ray_pass.bind_pipeline(made, shaders, root) is root
        for scale, result in enumerate(results, 1):
            cursor.result, cursor.scale = result, scale
            ray_pass.dispatch_rays(0, [8, 8, 1])
        ray_pass.pop_debug_group()
    tracer.submit_command_buffer(encoder.finish())
    values = [result.to_numpy().view(np.float32).reshape(8, 8, 4)[7, 7].tolist() for result in results]
    assert values == [[1, 0, 1, 0], [2, 0, 2, 0], [3, 0, 3, 0]]
    assert made.native_handle.value


def refuses(call: Callable[[], Any], kind: type[Exception], *words: str) -> None:
    with pytest.raises(kind) as caught:
        call()
    for word in words:
        assert word in str(caught.value), str(caught.value)


def test_pipeline_errors(tracer: spy.Device) -> None:
    def make(*names: str, **fields: Any) -> Callable[[], Any]:
        return lambda: pipeline(tracer, *names, **fields)

    names = ("first", "magenta", "hit")
    refuses(make(*names, hit_groups=[{**HIT, "closest_hit_entry_point": "nope"}]), ValueError, '"nope" not found', "'hit'")
    refuses(make(*names, hit_groups=[{**HIT, "any_hit_entry_point": "hit"}]), ValueError, "'hit' is a closest_hit")
    refuses(make(*names, hit_groups=[{"closest_hit_entry_point": "hit"}]), ValueError, "hit_groups[0]", "hit_group_name")
    refuses(make(*names, hit_groups=[HIT, HIT]), ValueError, "hit_groups[1]", "'hg'")
    refuses(make("magenta", "hit"), ValueError, "no ray generation")
    refuses(make(*names, max_recursion=0), ValueError, "'first'", "TraceRay", "at least 1")
    refuses(make("first", "again"), ValueError, "'again'", "at least 2")
    refuses(make(*names, max_recursion=1000), ValueError, "'max_recursion' is 1000")
    refuses(make(*names, max_attribute_size=1000), ValueError, "'max_attribute_size' is 1000")
    refuses(make(*names, max_ray_payload_size=12), ValueError, "payload of 'magenta'", "16 bytes", "is 12")
    flags = spy.RayTracingPipelineFlags.enable_spheres
    refuses(make(*names, flags=flags), NotImplementedError, "spheres")
    refuses(make(*names, hit_group=[]), TypeError, "unknown field 'hit_group'", "hit_groups")
    refuses(lambda: tracer.create_ray_tracing_pipeline(3, []), TypeError, "program")
    code = tracer.load_module_from_source(
        "tracing_mixed",
        """[shader("compute")] [numthreads(1, 1, 1)] void work() {}
        struct P { float x; };
        [shader("raygeneration")] void go() {}
        [shader("miss")] void owns(inout P p, uniform float k) { p.x = k; }""",
    )
    mixed = tracer.link_program([code], [code.entry_point("go"), code.entry_point("work")])
    refuses(lambda: tracer.create_ray_tracing_pipeline(mixed, []), ValueError, "'work' is a compute")
    owner = tracer.link_program([code], [code.entry_point("go"), code.entry_point("owns")])
    refuses(
        lambda: tracer.create_ray_tracing_pipeline(owner, [], max_ray_payload_size=4), NotImplementedError, "'owns'", "global"
    )
    alone = tracer.link_program([code], [code.entry_point("go")])
    refuses(lambda: tracer.create_compute_kernel(alone).dispatch(1), ValueError, "create_ray_tracing_pipeline")


def test_table_and_dispatch_errors(tracer: spy.Device) -> None:
    made = pipeline(tracer, "first", "magenta", "hit", hit_groups=[HIT])
    refuses(lambda: table(made, ["nope"]), ValueError, "ray_gen_entry_points[0]", '"nope" not found', "'first'")
    refuses(lambda: table(made, miss=["first"]), ValueError, "miss_entry_points[0]", "'first' is a ray_generation")
    good, tlas = table(made, miss=["magenta"], hit=["hg"]), flat(tracer)
    refuses(lambda: rays(made, table(made, hit=["nope"]), tlas), ValueError, "hit group 'nope'", "'hg'")
    refuses(lambda: rays(made, good, tlas, 1), ValueError, "ray_gen_shader_index is 1", "has 1")
    refuses(lambda: rays(made, table(made, [""]), tlas), ValueError, "empty name")
    refuses(lambda: rays(made, good, tlas, size=(1 << 20, 1 << 20, 1)), ValueError, "dispatch parts")
    refuses(lambda: rays(made, good), RuntimeError, "tlas")
    refuses(lambda: rays(made, good, build(tracer, [triangles(tracer)])), ValueError, "'tlas'", "triangles or boxes")
    refuses(lambda: rays(made, good, 3), TypeError, "tlas", "AccelerationStructure")
    encoder = tracer.create_command_encoder()
    ray_pass = encoder.begin_ray_tracing_pass()
    refuses(lambda: ray_pass.dispatch_rays(0, [1, 1, 1]), RuntimeError, "no pipeline is bound")
    refuses(lambda: ray_pass.bind_pipeline(good, good), TypeError, "RayTracingPipeline")
    refuses(lambda: ray_pass.bind_pipeline(made, made), TypeError, "shader_table")
    refuses(encoder.begin_compute_pass, RuntimeError, "ray-tracing pass", "open")
    refuses(encoder.finish, RuntimeError, "ray-tracing pass", "open")
    ray_pass.end()
    refuses(lambda: ray_pass.bind_pipeline(made, good), RuntimeError, "has ended")
    assert "ShaderTable" in repr(good)


def test_tables_of_other_programs(tracer: spy.Device) -> None:
    """A table fits the pipelines of its program, whatever their hit groups; not those of another, even if its names fit."""
    names, tlas = ("first", "magenta", "hit", "hit2"), flat(tracer)
    one = pipeline(tracer, *names, hit_groups=[HIT], label="one")
    other = pipeline(tracer, *names, hit_groups=[{"hit_group_name": "hg", "closest_hit_entry_point": "hit2"}])
    shaders = table(one, miss=["magenta"], hit=["hg"])
    assert (rays(other, shaders, tlas)[..., :2] == -rays(one, shaders, tlas)[..., :2]).sum() > 8
    code = tracer.load_module_from_source("tracing_pipelines", SOURCE)
    for linked in (names, ("magenta", "first", "green", "hit")):
        foreign = tracer.link_program([code], [code.entry_point(name) for name in linked])
        wrong = tracer.create_shader_table(foreign, ["first"], ["magenta"], ["hg"])
        quoted = ", ".join(f"'{name}'" for name in linked)
        refuses(
            lambda wrong=wrong: rays(one, wrong, tlas), ValueError, "bind_pipeline 'shader_table'", f"entry points {quoted},",
            "pipeline 'one' of another program, with 'first', 'magenta', 'hit', 'hit2'", "create_shader_table(pipeline.program",
        )  # fmt: skip
    assert rays(one, shaders, tlas)[..., 2].max() > 0  # as before


@pytest.mark.null
def test_null_records_rays() -> None:
    device = spy.Device(type=spy.DeviceType.null)
    layout = spy._native._make_program_layout(entry_point_name="go", stages=["ray_generation"], scope_sizes=[0, 0])
    desc = spy.RayTracingPipelineDesc(max_recursion=1)
    made = device._create_ray_tracing_pipeline(desc, layout, [b""], "p")
    shaders = device._create_shader_table(spy.ShaderTableDesc(ray_gen_entry_points=["go"]), layout)
    encoder = device.create_command_encoder()
    with encoder.begin_ray_tracing_pass() as ray_pass:
        ray_pass.bind_pipeline(made, shaders)
        ray_pass.dispatch_rays(0, [4, 3, 2])
        ray_pass.dispatch_rays(0, [4, 0, 2])
    device.submit_command_buffer(encoder.finish())
    assert device._take_ray_commands() == [("rays", [4, 3, 2])]


# --- functional calls

CALLS = (
    RAYS
    + """
struct Payload { float3 color; }
float3 trace(int2 tid, RaytracingAccelerationStructure tlas)
{
    Payload payload;
    payload.color = float3(7);
    TraceRay(tlas, RAY_FLAG_NONE, 0xff, 0, 0, 0, ray_of(uint2(tid)), payload);
    return payload.color;
}
[shader("miss")] void miss(inout Payload payload) { payload.color = float3(1, 0, 1); }
[shader("miss")] void other(inout Payload payload) { payload.color = float3(0, 1, 0); }
[shader("closesthit")] void ch(inout Payload payload, BuiltInTriangleIntersectionAttributes a)
{ payload.color = float3(a.barycentrics, InstanceID()); }
[shader("closesthit")] void ch2(inout Payload payload, BuiltInTriangleIntersectionAttributes a)
{ payload.color = float3(a.barycentrics, -1); }
"""
)
CH = {"hit_group_name": "hg", "closest_hit_entry_point": "ch"}


@cache
def calls(device: spy.Device) -> spy.Module:
    return spy.Module(device.load_module_from_source("tracing_calls", CALLS))


def test_functional_call(tracer: spy.Device) -> None:
    module, tlas = calls(tracer), flat(tracer)
    traced = module.trace.ray_tracing(
        hit_groups=[CH], miss_entry_points=["miss"], max_recursion=1, max_ray_payload_size=12
    )
    colors = spy.Tensor.empty(tracer, (8, 8), "float3")
    traced(tid=spy.call_id(), tlas=tlas, _result=colors)
    image = colors.to_numpy()
    assert image[0, 0].tolist() == [0.0625, 0.0625, 0] and image[7, 7].tolist() == [1, 0, 1]
    hits = ["".join("." if pixel.tolist() == [1, 0, 1] else "#" for pixel in row) for row in image]
    assert hits == HITS
    assert np.array_equal(traced(spy.call_id(), tlas, _result=spy.Tensor.empty(tracer, (8, 8), "float3")).to_numpy(), image)
    assert traced(spy.int2(7, 7), tlas) == spy.float3(1, 0, 1)
    large = spy.Tensor.empty(tracer, (300, 301), "float3")  # more than a group's threads, and no multiple
    traced(tid=spy.call_id(), tlas=tlas, _result=large)
    assert np.array_equal(large.to_numpy()[:8, :8], image) and np.all(large.to_numpy()[8:] == [1, 0, 1])


def test_functional_keys(tracer: spy.Device) -> None:
    """Every field is part of the key: no call takes the pipeline of another."""
    module, tlas = calls(tracer), flat(tracer)
    good: dict[str, Any] = {"hit_groups": [CH], "miss_entry_points": ["miss"]}
    corners = np.array([[0, 0], [7, 7]], np.int32)

    def colors(**changes: Any) -> list[list[float]]:
        return module.trace.ray_tracing(**{**good, **changes})(corners, tlas, _result="numpy").tolist()

    first = [[0.0625, 0.0625, 0], [1, 0, 1]]
    assert colors() == first
    assert colors(miss_entry_points=["other"]) == [first[0], [0, 1, 0]]
    assert colors(hit_groups=[{**CH, "closest_hit_entry_point": "ch2"}])[0] == [0.0625, 0.0625, -1]
    two = [CH, {"hit_group_name": "hg2", "closest_hit_entry_point": "ch2"}]
    assert colors(hit_groups=two, hit_group_names=["hg2", "hg"])[0] == [0.0625, 0.0625, -1]
    assert colors(hit_groups=[]) == [[7, 7, 7], [1, 0, 1]]
    assert colors() == first
    with pytest.raises(ValueError, match='Entry point "nope" not found'):
        colors(miss_entry_points=["nope"])
    with pytest.raises(ValueError, match='Entry point "nope" not found'):
        colors(hit_groups=[{**CH, "any_hit_entry_point": "nope"}])
    with pytest.raises(ValueError, match="'nope', which is none of hit_groups"):
        colors(hit_group_names=["nope"])
    with pytest.raises(ValueError, match="payload.* 12 bytes, but max_ray_payload_size is 8"):
        colors(max_ray_payload_size=8)
    with pytest.raises(ValueError, match="'max_recursion' of at least 1, got 0"):
        colors(max_recursion=0)
    with pytest.raises(TypeError, match="'miss_entry_points' must be a list"):
        colors(miss_entry_points="miss")
    with pytest.raises(NotImplementedError, match="bwds"):
        _ = module.trace.ray_tracing(**good).bwds
    with pytest.raises(NotImplementedError, match="derivatives"):
        module.trace.bwds.ray_tracing(**good)
    with pytest.raises(Exception, match="use .ray_tracing"):
        module.trace(corners, tlas, _result="numpy")


def test_functional_modifiers(tracer: spy.Device) -> None:
    module, tlas = calls(tracer), flat(tracer)
    traced = module.trace.map(tid=(0,)).ray_tracing(hit_groups=[CH], miss_entry_points=["miss"])
    corners = np.array([[0, 0], [7, 7]], np.int32)
    expected = [[0.0625, 0.0625, 0], [1, 0, 1]]
    assert traced(corners, tlas, _result="numpy").tolist() == expected
    out = spy.Tensor.empty(tracer, (2,), "float3")
    encoder = tracer.create_command_encoder()
    module.trace.ray_tracing(hit_groups=[CH], miss_entry_points=["miss"]).append_to(encoder, corners, tlas, _result=out)
    tracer.submit_command_buffer(encoder.finish())
    assert out.to_numpy().tolist() == expected
    contributing = scene(
        tracer, instance(build(tracer, [triangles(tracer)]), instance_contribution_to_hit_group_index=3)
    )
    with pytest.raises(ValueError, match="instance_contribution_to_hit_group_index 3"):
        traced(corners, contributing, _result="numpy")
