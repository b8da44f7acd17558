"""Frame time of showing a 1920 x 1080 texture in a window, beside wgpu with glfw (rendercanvas) on the same driver.

    python benchmarks/present.py [--frames 200] [--peer]

Both draw the same texture of rgba8_unorm into each image and present without waiting for the screen; rounds alternate, and
the median frame of each is taken over all rounds. Each runs in a process of its own. Needs a display (xvfb-run will do),
glfw, and for --peer wgpu and rendercanvas. The environment chooses the driver (VK_DRIVER_FILES).
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

WIDTH, HEIGHT = 1920, 1080
ROUNDS = 3
WARM = 20


def picture() -> Any:
    y, x = np.mgrid[0:HEIGHT, 0:WIDTH]
    return np.stack([x % 256, y % 256, (x + y) % 256, np.full_like(x, 255)], -1).astype(np.uint8)


def frames(frame: Callable[[], None], count: int) -> list[float]:
    """Seconds of each."""
    for _ in range(WARM):
        frame()
    times = []
    for _ in range(count):
        start = time.perf_counter()
        frame()
        times.append(time.perf_counter() - start)
    return times


def ours(count: int) -> list[float]:
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

    times = frames(frame, count)
    device.wait()
    return times


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


def peer(count: int) -> list[float]:
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
    return frames(frame, count)


def run(name: str, count: int) -> list[float]:
    """In a process of its own."""
    done = subprocess.run(
        [sys.executable, __file__, "--one", name, "--frames", str(count)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{name} failed:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--frames", type=int, default=200, help="of each round")
    parser.add_argument("--peer", action="store_true", help="wgpu, too")
    parser.add_argument("--one", choices=("ours", "peer"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps({"ours": ours, "peer": peer}[options.one](options.frames)), flush=True)
        os._exit(0)  # how either closes its window is not measured
    names = ["ours", "peer"] if options.peer else ["ours"]
    times: dict[str, list[float]] = {name: [] for name in names}
    for _ in range(ROUNDS):
        for name in names:
            times[name] += run(name, options.frames)
    medians = {name: statistics.median(values) for name, values in times.items()}
    for name, median in medians.items():
        print(f"{name:6} {1000 * median:8.2f} ms a frame")
    if options.peer:
        print(f"ratio  {medians['ours'] / medians['peer']:8.2f}")


if __name__ == "__main__":
    main()
