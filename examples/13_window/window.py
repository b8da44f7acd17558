"""Waves around the mouse, in a window with a panel of sliders: Escape or the close button ends it.

    python window.py [--device vulkan|cpu|cuda] [--frames N] [--save picture.png]

Needs `pip install slangpy[window,ui]` and a display (`xvfb-run` will do). Devices that do not draw show the waves without the
panel. --frames: ends after so many. --save: writes the last picture.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import slangpy as spy

SIZE = 640, 400


def make_panel(device: spy.Device) -> tuple[Any, Any, Any]:
    """A context with a window, and its two widgets."""
    context = spy.ui.Context(device)
    panel = spy.ui.Window(context.screen, "waves", position=(10, 10), size=(250, 110))
    spacing = spy.ui.SliderFloat(panel, "spacing", value=40, min=10, max=200)
    speed = spy.ui.SliderFloat(panel, "speed", value=1, min=0, max=5)
    return context, spacing, speed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--device", choices=("vulkan", "cpu", "cuda"), default="vulkan")
    parser.add_argument("--frames", type=int, default=0)
    parser.add_argument("--save", type=Path)
    options = parser.parse_args()

    device = spy.create_device(options.device, include_paths=[Path(__file__).parent])
    module = spy.Module.load_from_file(device, "ripples.slang")
    window = spy.Window(*SIZE, title="ripples")
    surface = device.create_surface(window)
    surface.configure(width=window.width, height=window.height)
    context, spacing, speed = (
        make_panel(device) if device.has_feature(spy.Feature.rasterization) else (None, None, None)
    )
    center = [SIZE[0] / 2, SIZE[1] / 2]
    picture: spy.Texture | None = None

    def on_key(event: spy.KeyboardEvent) -> None:
        if context is not None and context.handle_keyboard_event(event):
            return
        if event.is_key_press() and event.key == spy.KeyCode.escape:
            window.close()

    def on_mouse(event: spy.MouseEvent) -> None:
        if context is not None and context.handle_mouse_event(event):
            return
        center[:] = event.pos.x, event.pos.y

    window.on_resize = lambda width, height: surface.configure(width=width, height=height)
    window.on_keyboard_event = on_key
    window.on_mouse_event = on_mouse
    start, count = time.perf_counter(), 0
    while not window.should_close() and (not options.frames or count < options.frames):
        window.process_events()
        image = surface.acquire_next_image()
        if image is None:  # the window has just changed its size, or is minimised
            continue
        if picture is None or (picture.width, picture.height) != (image.width, image.height):
            picture = device.create_texture(
                format=spy.Format.rgba32_float, width=image.width, height=image.height,
                usage=spy.TextureUsage.shader_resource | spy.TextureUsage.unordered_access,
            )  # fmt: skip
        seconds = (time.perf_counter() - start) * (speed.value if speed else 1)
        module.ripple(
            pixel=spy.call_id(), center=spy.float2(*center), spacing=spacing.value if spacing else 40.0, time=seconds,
            tint=spy.float3(0.2, 0.6, 1), _result=picture,
        )  # fmt: skip
        encoder = device.create_command_encoder()
        encoder.blit(image, picture)
        if context is not None:
            context.begin_frame(image.width, image.height, window)
            context.end_frame(image, encoder)
        device.submit_command_buffer(encoder.finish())
        if options.save and count + 1 == options.frames:
            spy.save_image(options.save, image.to_numpy()[..., [2, 1, 0]])
        del image
        surface.present()
        count += 1
    print(f"{count} frames, {1000 * (time.perf_counter() - start) / max(1, count):.1f} ms each")


if __name__ == "__main__":
    main()
