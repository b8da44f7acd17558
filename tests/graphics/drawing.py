"""What tests of rasterisation share: one module of shaders, the vertices of a triangle and a strip, a call that renders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import slangpy as spy

SOURCE = """
uniform float z;
uniform float4 tint;
uniform float2 scale;
RWStructuredBuffer<uint> counts;
RWTexture2D<float> places;
Texture2D<float4> picture;

[shader("vertex")] float4 vs(float2 p : POSITION) : SV_Position { return float4(p * scale, z, 1); }
[shader("fragment")] float4 fs() : SV_Target { return tint; }
[shader("vertex")] float4 fullscreen(uint i : SV_VertexID) : SV_Position
{ return float4(i == 1 ? 3 : -1, i == 2 ? 3 : -1, z, 1); }
[shader("fragment")] float4 numbers(uint id : SV_PrimitiveID) : SV_Target { return float4(id, 0, 0, 1); }
[shader("fragment")] float4 positions(float4 at : SV_Position) : SV_Target { return at; }
[shader("vertex")] float4 shifted(float2 p : POSITION, float2 shift : SHIFT1) : SV_Position
{ return float4(p + shift, z, 1); }
[shader("fragment")] float4 counting(float4 at : SV_Position) : SV_Target
{ uint old; InterlockedAdd(counts[0], 1, old); places[uint2(at.xy)] = at.x; return tint; }
[shader("fragment")] uint4 whole() : SV_Target { return uint4(7, 8, 9, 10); }
[shader("fragment")] float4 reading(float4 at : SV_Position) : SV_Target { return picture[uint2(at.xy)]; }

struct Two { float4 a : SV_Target0; float4 b : SV_Target1; }
[shader("fragment")] Two two() { Two t; t.a = tint; t.b = tint.bgra * 2; return t; }

struct Colored { float4 p : SV_Position; float4 c : COLOR; }
[shader("vertex")] Colored colored(float4 c : COLOR, float4 p : POSITION) { Colored v; v.p = float4(p.xy, z, p.w); v.c = c; return v; }
[shader("vertex")] Colored painted(float2 p : POSITION, float4 c : COLOR) { Colored v; v.p = float4(p, z, 1); v.c = c * tint; return v; }
[shader("fragment")] float4 interpolated(float4 c : COLOR) : SV_Target { return c; }

[shader("vertex")] float4 own(float2 p : POSITION, uniform float2 offset) : SV_Position { return float4(p + offset, 0, 1); }
[shader("fragment")] float4 own_color(uniform float k, uniform float4 c) : SV_Target { return c * k; }
"""

def draws_on(device: spy.Device) -> spy.Device:
    """The device, unless it has no rasterisation: then the test is skipped."""
    if not device.has_feature(spy.Feature.rasterization):
        pytest.skip(f"{device.info.adapter_name} does not rasterise")
    return device


TRIANGLE = ["........", "#.......", "##......", "###.....", "####....", "#####...", "######..", "#######."]
STRIP = [(-1, -1), (1, -1), (-1, 1), (1, 1)]
FORMAT = spy.Format.rgba32_float
BLACK = (0.0, 0.0, 0.0, 0.0)
WHITE = (1.0, 1.0, 1.0, 1.0)
DRAWN = spy.TextureUsage.render_target | spy.TextureUsage.shader_resource


@cache
def module(device: spy.Device) -> Any:
    return device.load_module_from_source("drawing", SOURCE)


@cache
def program(device: spy.Device, *names: str) -> Any:
    code = module(device)
    return device.link_program([code], [code.entry_point(name) for name in names])


@cache
def strip(device: spy.Device) -> spy.Buffer:
    """The vertices of STRIP; the first three are the triangle."""
    return vertex_buffer(device, np.array(STRIP, np.float32))


def vertex_buffer(device: spy.Device, data: npt.NDArray[Any], more: Any = spy.BufferUsage.none) -> spy.Buffer:
    return device.create_buffer(data=data, usage=spy.BufferUsage.vertex_buffer | more)


@cache
def position_layout(device: spy.Device) -> spy.InputLayout:
    return device.create_input_layout([{"semantic_name": "POSITION", "format": spy.Format.rg32_float}], [{"stride": 8}])


def texture(
    device: spy.Device, format: spy.Format = FORMAT, usage: Any = DRAWN, size: int = 8, **fields: Any
) -> spy.Texture:
    return device.create_texture(format=format, width=size, height=size, usage=usage, **fields)


def depth_texture(device: spy.Device, format: spy.Format = spy.Format.d32_float, **fields: Any) -> spy.Texture:
    return texture(device, format, spy.TextureUsage.depth_stencil | spy.TextureUsage.shader_resource, **fields)


def pipeline(device: spy.Device, vertex: str = "vs", fragment: str | None = "fs", **fields: Any) -> spy.RenderPipeline:
    """Of the shared shaders, with POSITION from one stream and one target of FORMAT where nothing else is said."""
    names = [vertex] if fragment is None else [vertex, fragment]
    if vertex in ("vs", "own"):
        fields.setdefault("input_layout", position_layout(device))
    if fragment is not None:
        fields.setdefault("targets", [{"format": FORMAT}])
    return device.create_render_pipeline(program(device, *names), **fields)


@dataclass(frozen=True)
class Draw:
    """One draw. `call`: method of the pass and its arguments."""

    pipeline: spy.RenderPipeline
    values: Mapping[str, Any] = field(default_factory=dict)
    state: Mapping[str, Any] = field(default_factory=dict)
    call: Sequence[Any] = ("draw", {"vertex_count": 3})


DEFAULTS = {"z": 0.0, "tint": WHITE, "scale": (1.0, 1.0)}


def record(device: spy.Device, encoder: spy.CommandEncoder, desc: dict[str, Any], draws: Sequence[Draw]) -> None:
    with encoder.begin_render_pass(desc) as render_pass:
        for draw in draws:
            cursor = spy.ShaderCursor(render_pass.bind_pipeline(draw.pipeline))
            for name, value in {**DEFAULTS, **draw.values}.items():
                cursor[name] = value
            render_pass.set_render_state({"vertex_buffers": [strip(device)], **draw.state})
            method, *arguments = draw.call
            getattr(render_pass, method)(*arguments)


def render(device: spy.Device, desc: dict[str, Any] | spy.Texture, *draws: Draw) -> None:
    """One pass into a texture, or as a description says."""
    if isinstance(desc, spy.Texture):
        desc = {"color_attachments": [{"view": desc}]}
    encoder = device.create_command_encoder()
    record(device, encoder, desc, draws)
    device.submit_command_buffer(encoder.finish())


def picture(image: npt.NDArray[Any]) -> list[str]:
    """Rows of '#' where alpha (or the only channel) is not 0."""
    values = image[..., -1] if image.ndim == 3 else image
    return ["".join("#" if x else "." for x in row) for row in values]


def count(image: npt.NDArray[Any]) -> int:
    return sum(row.count("#") for row in picture(image))
