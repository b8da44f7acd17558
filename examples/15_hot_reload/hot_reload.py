"""A picture whose code may be edited while it is shown: Escape or the close button ends it.

    python hot_reload.py [--device vulkan|cpu|cuda] [--frames N] [--file OTHER.slang]

Save paint.slang with other numbers, and the next frame shows them; save an error, and its text stands over the last good
picture. Needs `pip install slangpy[window,ui]` and a display. --frames: ends after so many.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import slangpy as spy


class Painting(spy.AppWindow):
    def __init__(self, app: spy.App, file: Path, frames: int) -> None:
        super().__init__(app, 640, 400, title=file.name)
        self.module = spy.Module.load_from_file(app.device, file)
        self.start = time.perf_counter()
        self.count, self.frames = 0, frames
        self.picture: spy.Texture | None = None

    def render(self, render_context: spy.RenderContext) -> None:
        image, picture = render_context.surface_texture, self.picture
        if picture is None or (picture.width, picture.height) != (image.width, image.height):
            picture = self.picture = self.device.create_texture(
                format=spy.Format.rgba32_float, width=image.width, height=image.height,
                usage=spy.TextureUsage.shader_resource | spy.TextureUsage.unordered_access,
            )  # fmt: skip
        size, seconds = spy.float2(image.width, image.height), time.perf_counter() - self.start
        self.module.paint(pixel=spy.call_id(), size=size, time=seconds, _result=picture)
        render_context.command_encoder.blit(image, picture)
        self.count += 1
        if self.count == self.frames:
            self.app.terminate()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--device", choices=("vulkan", "cpu", "cuda"), default="vulkan")
    parser.add_argument("--frames", type=int, default=0)
    parser.add_argument("--file", type=Path, default=Path(__file__).with_name("paint.slang"))
    options = parser.parse_args()
    app = spy.App(spy.create_device(options.device))
    window = Painting(app, options.file, options.frames)
    app.run()
    print(f"{window.count} frames")


if __name__ == "__main__":
    main()
