"""Pipelines live through changes of their sources."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from drawing import FORMAT, draws_on, texture

import slangpy as spy

SOURCE = """
uniform float4 tint;
[shader("vertex")] float4 vs(uint i : SV_VertexID) : SV_Position
{{ return float4(i == 1 ? 3 : -1, i == 2 ? 3 : -1, 0, 1); }}
[shader("fragment")] float4 fs() : SV_Target {{ return tint * {factor}; }}
"""


def write(path: Path, factor: str) -> None:
    path.write_text(SOURCE.format(factor=factor))
    later = time.time_ns() + 10_000_000 * (1 + len(factor))
    os.utime(path, ns=(later, later))


@pytest.mark.draws
def test_hot_reload(device_type: spy.DeviceType, tmp_path: Path) -> None:
    device = draws_on(spy.Device(type=device_type, enable_hot_reload=True))
    path = tmp_path / "reloaded.slang"
    write(path, "2")
    program = device.load_program(str(path), ["vs", "fs"])
    early = device.create_render_pipeline(program, targets=[{"format": FORMAT}])
    late = device.create_render_pipeline(program, targets=[{"format": FORMAT}], defer_target_compilation=True)
    target = texture(device)

    def drawn(pipeline: spy.RenderPipeline) -> float:
        encoder = device.create_command_encoder()
        with encoder.begin_render_pass(color_attachments=[{"view": target}]) as render_pass:
            spy.ShaderCursor(render_pass.bind_pipeline(pipeline)).tint = (1, 1, 1, 1)
            render_pass.draw(vertex_count=3)
        device.submit_command_buffer(encoder.finish())
        return float(target.to_numpy()[0, 0, 0])

    kernels = device._kernel_counts[1]
    assert drawn(early) == 2 and device._kernel_counts[1] == kernels
    assert drawn(late) == 2 and device._kernel_counts[1] == kernels + 1
    events = []
    device.register_shader_hot_reload_callback(events.append)
    write(path, "30")
    device.hot_reload_check()
    assert len(events) == 1 and drawn(early) == 30 and drawn(late) == 30
    write(path, "no_such_name")
    device.hot_reload_check()
    assert drawn(early) == 30  # what does not compile changes nothing
    device.close()


@pytest.mark.draws
def test_deferred_descriptions_are_checked_at_once(drawer: spy.Device) -> None:
    code = drawer.load_module_from_source(
        "deferred", '[shader("vertex")] float4 vs(float2 p : POSITION) : SV_Position { return float4(p, 0, 1); }'
    )
    program = drawer.link_program([code], [code.entry_point("vs")])
    with pytest.raises(ValueError, match="POSITION0"):
        drawer.create_render_pipeline(
            program, depth_stencil={"format": spy.Format.d32_float}, defer_target_compilation=True
        )
