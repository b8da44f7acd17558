"""Frame time of showing a 1920 x 1080 texture in a window, beside wgpu with glfw (rendercanvas) on the same driver.

    xvfb-run -s "-screen 0 1920x1080x24" python benchmarks/present.py [--frames 100] [--rounds 10] [--peer] [--output results.json]

Both draw the same texture of rgba8_unorm into each image and present without waiting for the screen. Each runs in a process
of its own, and both take turns. Of a round, the median frame and the processor's time for a frame count, all threads of the
process together (a driver in software draws with them; the X server is not in it); the ratio is the median of those of the
rounds, in which both had the same company on the machine. Needs a display, glfw, and for --peer wgpu and rendercanvas.
`VK_DRIVER_FILES` chooses the driver.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

WIDTH, HEIGHT = 1920, 1080
WARM = 20


@dataclass(frozen=True)
class Round:
    """Milliseconds for a frame: the median of the clock, and the mean of the processor. driver: that drew it."""

    clock: float
    processor: float
    driver: str


def picture() -> Any:
    y, x = np.mgrid[0:HEIGHT, 0:WIDTH]
    return np.stack([x % 256, y % 256, (x + y) % 256, np.full_like(x, 255)], -1).astype(np.uint8)


def report(frame: Callable[[], None], wait: Callable[[], Any], count: int, driver: str) -> NoReturn:
    """Prints a round, and ends the process: how either closes its window is not measured."""
    for _ in range(WARM):
        frame()
    wait()
    times, work = [], time.process_time()
    for _ in range(count):
        start = time.perf_counter()
        frame()
        times.append(time.perf_counter() - start)
    wait()
    work = time.process_time() - work
    print(json.dumps(asdict(Round(1000 * statistics.median(times), 1000 * work / count, driver))), flush=True)
    os._exit(0)


def ours(count: int) -> NoReturn:
    import slangpy as spy

    device = spy.Device(type=spy.DeviceType.vulkan)
    window = spy.Window(WIDTH, HEIGHT, "ours")
    surface = device.create_surface(window)
    surface.configure(width=window.width, height=window.height, vsync=False)
    texture = device.create_texture(
        format=spy.Format.rgba8_unorm, width=WIDTH, height=HEIGHT, usage=spy.TextureUsage.shader_resource, data=picture()
    )

    def frame() -> None:
        window.process_events()
        image = surface.acquire_next_image()
        if image is None:
            raise RuntimeError("the window has another size than was asked for")
        encoder = device.create_command_encoder()
        encoder.blit(image, texture)
        device.submit_command_buffer(encoder.finish())
        surface.present()

    report(frame, device.wait, count, device.info.adapter_name)


SHADER = """
@group(0) @binding(0) var picture: texture_2d<f32>;
@group(0) @binding(1) var linear: sampler;
@vertex fn vertex_main(@builtin(vertex_index) i: u32) -> @builtin(position) vec4<f32> {
    return vec4<f32>(select(-1.0, 3.0, i == 1u), select(-1.0, 3.0, i == 2u), 0.0, 1.0);
}
@fragment fn fragment_main(@builtin(position) at: vec4<f32>) -> @location(0) vec4<f32> {
    return textureSample(picture, linear, at.xy / vec2<f32>(1920.0, 1080.0));
}
"""


def peer(count: int) -> NoReturn:
    import wgpu
    from rendercanvas.glfw import RenderCanvas

    adapter = wgpu.gpu.request_adapter_sync(power_preference="high-performance", force_fallback_adapter=False)
    device = adapter.request_device_sync()
    canvas = RenderCanvas(size=(WIDTH, HEIGHT), title="wgpu", update_mode="manual", vsync=False)
    context = canvas.get_context("wgpu")
    format = context.get_preferred_format(adapter)
    context.configure(device=device, format=format)
    usage = wgpu.TextureUsage.TEXTURE_BINDING | wgpu.TextureUsage.COPY_DST
    texture = device.create_texture(size=(WIDTH, HEIGHT, 1), format="rgba8unorm", usage=usage)
    device.queue.write_texture({"texture": texture}, picture(), {"bytes_per_row": WIDTH * 4}, (WIDTH, HEIGHT, 1))
    shader = device.create_shader_module(code=SHADER)
    pipeline = device.create_render_pipeline(
        layout="auto",
        vertex={"module": shader, "entry_point": "vertex_main"},
        fragment={"module": shader, "entry_point": "fragment_main", "targets": [{"format": format}]},
        primitive={"topology": "triangle-list"},
    )
    sampler = device.create_sampler(mag_filter="linear", min_filter="linear")
    bound = device.create_bind_group(
        layout=pipeline.get_bind_group_layout(0),
        entries=[{"binding": 0, "resource": texture.create_view()}, {"binding": 1, "resource": sampler}],
    )

    def draw() -> None:
        view = context.get_current_texture().create_view()
        encoder = device.create_command_encoder()
        render_pass = encoder.begin_render_pass(
            color_attachments=[{"view": view, "load_op": "clear", "store_op": "store", "clear_value": (0, 0, 0, 1)}]
        )
        render_pass.set_pipeline(pipeline)
        render_pass.set_bind_group(0, bound)
        render_pass.draw(3)
        render_pass.end()
        device.queue.submit([encoder.finish()])

    canvas.request_draw(draw)

    def frame() -> None:
        canvas._process_events()
        canvas.force_draw()

    end = time.monotonic() + 10
    while canvas.get_physical_size() != (WIDTH, HEIGHT) and time.monotonic() < end:
        canvas._process_events()
    if canvas.get_physical_size() != (WIDTH, HEIGHT):
        raise RuntimeError(f"the window of wgpu has {canvas.get_physical_size()} pixels")
    report(frame, device._poll_wait, count, adapter.info["description"])


def run(name: str, count: int) -> Round:
    """In a process of its own."""
    done = subprocess.run(
        [sys.executable, __file__, "--one", name, "--frames", str(count)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{name} failed:\n{done.stderr}")
    return Round(**json.loads(done.stdout.splitlines()[-1]))


def table(found: dict[str, list[Round]]) -> dict[str, Any]:
    """Medians over the rounds: of what each took, and of the ratios of each round."""
    rows: dict[str, Any] = {"rounds": len(found["ours"])}
    for kind in ("clock", "processor"):
        numbers = {name: [getattr(item, kind) for item in rounds] for name, rounds in found.items()}
        row = {name: round(statistics.median(values), 3) for name, values in numbers.items()}
        if "peer" in numbers:
            ratios = sorted(own / other for own, other in zip(numbers["ours"], numbers["peer"], strict=True))
            row |= {"ratio": round(statistics.median(ratios), 3), "ratios from": round(ratios[0], 3), "to": round(ratios[-1], 3)}
        rows[f"{kind}, ms a frame"] = row
    return rows | {"drivers": {name: rounds[0].driver for name, rounds in found.items()}}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--frames", type=int, default=100, help="of each round")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--peer", action="store_true", help="wgpu, too")
    parser.add_argument("--output", type=Path)
    parser.add_argument("--one", choices=("ours", "peer"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        {"ours": ours, "peer": peer}[options.one](options.frames)
    names = ["ours", "peer"] if options.peer else ["ours"]
    found: dict[str, list[Round]] = {name: [] for name in names}
    for _ in range(options.rounds):
        for name in names:
            found[name].append(run(name, options.frames))
    rows = {
        "script": f"python benchmarks/present.py --frames {options.frames} --rounds {options.rounds}",
        "machine": f"{os.cpu_count()} cores ({platform.machine()}), load average {os.getloadavg()[2]:.1f}",
        **table(found),
    }
    text = json.dumps(rows, indent=1)
    print(text)
    if options.output:
        options.output.write_text(text + "\n")


if __name__ == "__main__":
    main()
