"""Draws a second, beside wgpu on the same driver: small triangles in one pass, each with its own colour, or all alike.

    python benchmarks/draw_calls.py [--draws 1000] [--rounds 100] [--output results.json]

The same triangles of 4 pixels on a target of 256 x 256 rgba8. A pass is recorded and run anew each time: "recorded" is the
time until the command buffer is finished, "run" that of submission and of the wait for the GPU. A colour for each draw is
a cursor write here; for wgpu it is a dynamic offset into a buffer that is written at once before, or a write of push
constants. The picture of each is compared before anything is timed. All take turns; the least of the rounds counts, as
other programs on the machine can only add to it.
`VK_DRIVER_FILES` chooses the driver. Needs `pip install wgpu`.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import wgpu  # pyright: ignore[reportMissingImports]
import wgpu.backends.wgpu_native  # pyright: ignore[reportMissingImports]

import slangpy as spy

SIZE = 256
CORNERS = ((0, 0), (4, 0), (0, 4))  # pixels from the upper left corner
SLANG = """
uniform float4 tint;
[shader("vertex")] float4 vs(uint i : SV_VertexID) : SV_Position
{ return float4(i == 1 ? -0.96875 : -1, i == 2 ? 0.96875 : 1, 0, 1); }
[shader("fragment")] float4 fs() : SV_Target { return tint; }
"""
PUSHED = SLANG.replace("uniform float4 tint;", "").replace("fs()", "fs(uniform float4 tint)")
WGSL = """
DECLARATION
@vertex fn vs(@builtin(vertex_index) i : u32) -> @builtin(position) vec4f
{ return vec4f(select(-1.0, -0.96875, i == 1), select(1.0, 0.96875, i == 2), 0, 1); }
@fragment fn fs() -> @location(0) vec4f { return tint; }
"""


@dataclass(frozen=True)
class Case:
    """`record` gives what `run` submits and waits for; `read` gives the picture."""

    record: Callable[[], Any]
    run: Callable[[Any], None]
    read: Callable[[], npt.NDArray[np.uint8]]


def colours(draws: int) -> list[tuple[float, float, float, float]]:
    return [(i % 256 / 255, i // 256 % 256 / 255, 0.5, 1.0) for i in range(draws)]


def ours(device: spy.Device, source: str, draws: int, change: bool) -> Case:
    module = device.load_module_from_source(f"draw_calls_{len(source)}", source)
    program = device.link_program([module], [module.entry_point("vs"), module.entry_point("fs")])
    usage = spy.TextureUsage.render_target | spy.TextureUsage.shader_resource
    target = device.create_texture(format=spy.Format.rgba8_unorm, width=SIZE, height=SIZE, usage=usage)
    pipeline = device.create_render_pipeline(program, targets=[{"format": target.format}])
    values = colours(draws)

    def record() -> spy.CommandBuffer:
        encoder = device.create_command_encoder()
        with encoder.begin_render_pass(color_attachments=[{"view": target}]) as render_pass:
            cursor = spy.ShaderCursor(render_pass.bind_pipeline(pipeline))
            if source is PUSHED:
                cursor = cursor.find_entry_point(1)
            cursor.tint = values[-1]
            if change:
                for value in values:
                    cursor.tint = value
                    render_pass.draw(vertex_count=3)
            else:
                for _ in values:
                    render_pass.draw(vertex_count=3)
        return encoder.finish()

    def run(commands: spy.CommandBuffer) -> None:
        device.submit_command_buffer(commands)
        device.wait()

    return Case(record, run, target.to_numpy)


class Wgpu:
    """One way of wgpu to give each draw its colour: "offset" or "push"."""

    def __init__(self, device: Any, way: str, draws: int) -> None:
        self.device, self.way, self.values = device, way, colours(draws)
        self.packed = [np.array(value, np.float32) for value in self.values]
        declarations = {
            "offset": "@group(0) @binding(0) var<uniform> tint : vec4f;",
            "push": "var<immediate> tint : vec4f;",
        }
        module = device.create_shader_module(code=WGSL.replace("DECLARATION", declarations[way]))
        entry = {
            "binding": 0,
            "visibility": wgpu.ShaderStage.FRAGMENT,
            "buffer": {"type": "uniform", "has_dynamic_offset": True, "min_binding_size": 16},
        }
        if way == "offset":
            group_layout = device.create_bind_group_layout(entries=[entry])
            layout = device.create_pipeline_layout(bind_group_layouts=[group_layout])
            self.buffer = device.create_buffer(
                size=256 * draws, usage=wgpu.BufferUsage.UNIFORM | wgpu.BufferUsage.COPY_DST
            )
            resource = {"buffer": self.buffer, "offset": 0, "size": 16}
            self.group = device.create_bind_group(
                layout=group_layout, entries=[{"binding": 0, "resource": resource}]
            )
        else:
            layout = device.create_pipeline_layout(bind_group_layouts=[], immediate_size=16)
        usage = wgpu.TextureUsage.RENDER_ATTACHMENT | wgpu.TextureUsage.COPY_SRC
        self.target = device.create_texture(size=(SIZE, SIZE, 1), format="rgba8unorm", usage=usage)
        self.view = self.target.create_view()
        self.pipeline = device.create_render_pipeline(
            layout=layout,
            vertex={"module": module, "entry_point": "vs", "buffers": []},
            primitive={"topology": "triangle-list"},
            fragment={"module": module, "entry_point": "fs", "targets": [{"format": "rgba8unorm"}]},
        )

    def set(self, render_pass: Any, i: int) -> None:
        if self.way == "offset":
            render_pass.set_bind_group(0, self.group, [256 * i])
        else:
            render_pass.set_immediates(0, self.packed[i], 0, 16)

    def record(self, change: bool) -> Any:
        if self.way == "offset":
            rows = np.zeros((len(self.values), 64), np.float32)
            rows[:, :4] = self.values
            self.device.queue.write_buffer(self.buffer, 0, rows)
        encoder = self.device.create_command_encoder()
        attachment = {"view": self.view, "clear_value": (0, 0, 0, 0), "load_op": "clear", "store_op": "store"}
        render_pass = encoder.begin_render_pass(color_attachments=[attachment])
        render_pass.set_pipeline(self.pipeline)
        self.set(render_pass, len(self.values) - 1)
        for i in range(len(self.values)):
            if change:
                self.set(render_pass, i)
            render_pass.draw(3)
        render_pass.end()
        return encoder.finish()

    def run(self, commands: Any) -> None:
        self.device.queue.submit([commands])
        self.device._poll_wait()

    def read(self) -> npt.NDArray[np.uint8]:
        layout = {"offset": 0, "bytes_per_row": 4 * SIZE, "rows_per_image": SIZE}
        data = self.device.queue.read_texture({"texture": self.target}, layout, (SIZE, SIZE, 1))
        return np.frombuffer(data, np.uint8).reshape(SIZE, SIZE, 4)

    def case(self, change: bool) -> Case:
        return Case(lambda: self.record(change), self.run, self.read)


def peers(draws: int) -> dict[str, Case]:
    """Of wgpu, by label; on Vulkan, whatever else it finds."""
    adapters = [a for a in wgpu.gpu.enumerate_adapters_sync() if a.info["backend_type"] == "Vulkan"]
    features = ["immediates"]
    device = adapters[0].request_device_sync(required_features=features, required_limits={"max-immediate-size": 16})
    offset, push = Wgpu(device, "offset", draws), Wgpu(device, "push", draws)
    return {
        "wgpu, no change": offset.case(False),
        "wgpu, dynamic offset": offset.case(True),
        "wgpu, push constants": push.case(True),
    }


def check(cases: dict[str, Case], draws: int) -> None:
    """All draw the last colour into the first pixels, and nothing elsewhere."""
    expected = np.round(np.array(colours(draws)[-1]) * 255).astype(int)
    for label, case in cases.items():
        case.run(case.record())
        image = case.read()
        assert np.abs(image[0, 0].astype(int) - expected).max() <= 1, (label, image[0, 0], expected)
        assert not image[4:].any() and not image[:, 4:].any(), label
        assert 6 <= int((image[..., 3] > 0).sum()) <= 10, label  # with or without its edge


def measure(cases: dict[str, Case], draws: int, rounds: int) -> dict[str, dict[str, float]]:
    """Microseconds a draw: the least of `rounds` turns, and the median of the processor's time, all threads together."""
    times: dict[str, list[tuple[float, float, float, float]]] = {label: [] for label in cases}
    for _ in range(rounds):
        for label, case in cases.items():
            work, start = time.process_time(), time.perf_counter()
            commands = case.record()
            recorded = time.perf_counter()
            case.run(commands)
            end = time.perf_counter()
            times[label].append((recorded - start, end - recorded, end - start, time.process_time() - work))
    found = {}
    for label, rows in times.items():
        recorded, run, total, work = (np.array(column) / draws * 1e6 for column in zip(*rows, strict=True))
        found[label] = {
            "recorded": float(recorded.min()),
            "run": float(run.min()),
            "both": float(total.min()),
            "processor": float(np.median(work)),
        }
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    device = spy.create_device(type=spy.DeviceType.vulkan)
    cases = {
        "slangpy, no change": ours(device, SLANG, options.draws, False),
        "slangpy, uniform": ours(device, SLANG, options.draws, True),
        "slangpy, push constants": ours(device, PUSHED, options.draws, True),
        **peers(options.draws),
    }
    check(cases, options.draws)
    found = measure(cases, options.draws, options.rounds)
    print(f"{device.info.adapter_name}, {options.draws} draws, microseconds a draw")
    for label, figures in found.items():
        line = "  ".join(f"{name} {value:6.2f}" for name, value in figures.items())
        print(f"{label:26} {line}  {1e6 / figures['both']:8.0f} draws a second")
    if options.output:
        record = {
            "script": f"python benchmarks/draw_calls.py --draws {options.draws}",
            "machine": f"{device.info.adapter_name}, {platform.machine()}",
            "wgpu": wgpu.__version__,
            "microseconds a draw": {
                label: {name: round(value, 2) for name, value in figures.items()} for label, figures in found.items()
            },
        }
        options.output.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
