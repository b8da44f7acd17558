"""What a vertex shader hands to a fragment shader is found by its semantic, in any order; some of it may be left unread."""

from __future__ import annotations

from typing import Any

import pytest
from drawing import FORMAT, texture

import slangpy as spy

SOURCE = """
struct Varyings
{
    float4 pos : SV_Position; float2 uv : TEXCOORD; float2 more : TEXCOORD1; nointerpolation uint kind : KIND;
    float4 color : COLOR; float third[3] : THIRD;
};
[shader("vertex")] Varyings many(uint id : SV_VertexID)
{
    float4 p = float4(float2((id << 1) & 2, id & 2) * 2 - 1, 0, 1);
    return { p, p.xy * float2(0.5, -0.5) + 0.5, float2(3, 4), 2, float4(5, 6, 7, 8), { 11, 12, 13 } };
}
[shader("vertex")] void written(uint id : SV_VertexID, out float4 c : COLOR, out nointerpolation uint k : KIND,
                                out float2 m : TEXCOORD1, out float4 p : SV_Position)
{
    p = float4(float2((id << 1) & 2, id & 2) * 2 - 1, 0, 1); c = float4(1, 2, 3, 8); k = 2; m = float2(0, 4);
}
[shader("fragment")] float4 reordered(float4 c : COLOR, uint k : KIND, float2 m : texcoord1, float4 at : SV_Position)
    : SV_Target { return float4(c.w, k, m.y, at.x); }
[shader("fragment")] float4 tail(float third[3] : THIRD, bool front : SV_IsFrontFace, float2 m : TEXCOORD1) : SV_Target
{ return float4(third[0], third[2], front ? 1 : 0, m.x); }
[shader("fragment")] float4 looped(float2 m : TEXCOORD1, uint k : KIND) : SV_Target
{
    float a = m.x, b = m.y;
    for (uint i = 0; i < k + 1; ++i) { float t = a; a = b; b = t; }
    return float4(a, b, k, 0);
}
[shader("fragment")] float4 narrow(float2 c : COLOR) : SV_Target { return c.xyxy; }
[shader("fragment")] float4 unknown(float2 m : NORMAL) : SV_Target { return m.xyxy; }
[shader("fragment")] float4 wide(float4 m : TEXCOORD1) : SV_Target { return m; }
[shader("fragment")] float4 other(int k : KIND) : SV_Target { return k; }
"""


pytestmark = pytest.mark.draws


def pipeline(device: spy.Device, vertex: str, fragment: str) -> spy.RenderPipeline:
    module = device.load_module_from_source("varyings", SOURCE)
    program = device.link_program([module], [module.entry_point(vertex), module.entry_point(fragment)])
    return device.create_render_pipeline(program, targets=[{"format": FORMAT}])


@pytest.mark.parametrize(
    ("vertex", "fragment", "value"),
    [
        ("many", "reordered", (8, 2, 4, 3.5)),
        ("written", "reordered", (8, 2, 4, 3.5)),
        ("many", "tail", (11, 13, 1, 3)),
        ("many", "looped", (4, 3, 2, 0)),
        ("many", "narrow", (5, 6, 5, 6)),
    ],
)
def test_by_semantic(drawer: spy.Device, vertex: str, fragment: str, value: tuple[float, ...]) -> None:
    target = texture(drawer)
    encoder = drawer.create_command_encoder()
    with encoder.begin_render_pass({"color_attachments": [{"view": target}]}) as render_pass:
        render_pass.bind_pipeline(pipeline(drawer, vertex, fragment))
        render_pass.draw({"vertex_count": 3})
    drawer.submit_command_buffer(encoder.finish())
    assert target.to_numpy()[2, 3].tolist() == list(value)


@pytest.mark.parametrize(
    ("fragment", "message"),
    [
        ("unknown", r"fragment input 'NORMAL0' of '.*' is no output of '.*', which writes TEXCOORD0, TEXCOORD1, KIND0,"),
        ("wide", r"fragment input 'TEXCOORD1' of '.*' is 4 x float, but '.*' writes 2 x float"),
        ("other", r"fragment input 'KIND0' of '.*' is 1 x int, but '.*' writes 1 x uint"),
    ],
)
def test_refused(drawer: spy.Device, fragment: str, message: Any) -> None:
    with pytest.raises(ValueError, match=message):
        pipeline(drawer, "many", fragment)
