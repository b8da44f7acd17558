"""Resources that were never set: an error at the draw and at the dispatch of rays, whatever they are and wherever they stand."""

from __future__ import annotations

import numpy as np
import pytest
from drawing import FORMAT, texture
from tracing import build, needs, scene, triangles
from unset import GLOBALS, PARAMETERS, SOURCE, give, give_globals, message

import slangpy as spy

DRAWN = (
    SOURCE
    + """
[shader("vertex")] float4 vertex_main(uint i : SV_VertexID) : SV_Position
{ return float4(i == 1 ? 3 : -1, i == 2 ? 3 : -1, constant.weights[0] * 0.5, 1); }
[shader("fragment")] float4 fragment_main(
    uniform StructuredBuffer<float> given, uniform Tensor<float, 1> tensor, uniform Layer own
) : SV_Target { return everything(0) + given[0] + tensor[0] + one(own); }
"""
)

TRACED = (
    SOURCE
    + """
RaytracingAccelerationStructure tlas;
RWTexture2D<float4> result;
struct Payload { float value; }
[shader("raygeneration")]
void generate(uniform StructuredBuffer<float> given, uniform Tensor<float, 1> tensor, uniform Layer own)
{
    RayDesc ray = { float3(0, 0, 1), 0, float3(0, 0, -1), 2 };
    Payload payload = { given[0] + tensor[0] + one(own) };
    TraceRay(tlas, RAY_FLAG_NONE, 0xff, 0, 0, 0, ray, payload);
    result[uint2(0)] = payload.value;
}
[shader("miss")] void missed(inout Payload payload) { payload.value += everything(0); }
"""
)


@pytest.mark.draws
def test_unset_resources_of_draws(drawer: spy.Device) -> None:
    """Those of either stage."""
    module = drawer.load_module_from_source("unset_drawn", DRAWN)
    program = drawer.link_program([module], [module.entry_point("vertex_main"), module.entry_point("fragment_main")])
    pipeline = drawer.create_render_pipeline(program, targets=[{"format": FORMAT}])
    target = texture(drawer, size=1)

    def run(left_out: str) -> None:
        encoder = drawer.create_command_encoder()
        with encoder.begin_render_pass({"color_attachments": [{"view": target}]}) as render_pass:
            root = render_pass.bind_pipeline(pipeline)
            give_globals(drawer, root, left_out)
            give(drawer, spy.ShaderCursor(root).find_entry_point(1), PARAMETERS, left_out)
            render_pass.draw({"vertex_count": 3})
        drawer.submit_command_buffer(encoder.finish())

    for path, kind in (GLOBALS | PARAMETERS).items():
        if kind == "tensor" and drawer.info.type == spy.DeviceType.null:  # addresses are null there
            continue
        with pytest.raises(RuntimeError, match=message(path, kind)):
            run(path)
    run("")
    if drawer.info.type != spy.DeviceType.null:
        np.testing.assert_array_equal(target.to_numpy(), np.full((1, 1, 4), 28, np.float32))


@pytest.mark.traces
def test_unset_resources_of_rays(device: spy.Device) -> None:
    """Those of ray generation, which are in its record, and those that only a miss shader reads."""
    needs(device, "ray_tracing")
    module = device.load_module_from_source("unset_traced", TRACED)
    program = device.link_program([module], [module.entry_point("generate"), module.entry_point("missed")])
    pipeline = device.create_ray_tracing_pipeline(program, [], max_recursion=1, max_ray_payload_size=4)
    table = device.create_shader_table(program, ["generate"], ["missed"])
    usage = spy.TextureUsage.unordered_access
    result = device.create_texture(format=FORMAT, width=1, height=1, usage=usage)
    tlas = scene(device, build(device, [triangles(device, np.full((3, 3), 5.0))]))

    def run(left_out: str) -> None:
        encoder = device.create_command_encoder()
        with encoder.begin_ray_tracing_pass() as ray_pass:
            root = ray_pass.bind_pipeline(pipeline, table)
            give_globals(device, root, left_out)
            cursor = spy.ShaderCursor(root)
            cursor.result = result
            if left_out != "tlas":
                cursor.tlas = tlas
            give(device, cursor.find_entry_point(0), PARAMETERS, left_out)
            ray_pass.dispatch_rays(0, [1, 1, 1])
        device.submit_command_buffer(encoder.finish())

    for path, kind in (GLOBALS | PARAMETERS | {"tlas": "acceleration structure"}).items():
        if kind == "tensor" and device.info.type == spy.DeviceType.null:
            continue
        with pytest.raises(RuntimeError, match=message(path, kind)):
            run(path)
    run("")
    if device.info.type != spy.DeviceType.null:
        np.testing.assert_array_equal(result.to_numpy(), np.full((1, 1, 4), 28, np.float32))
