"""Makes pictures of docs/images that are of panels: of the viewer and of the widgets. No window and no display is needed.

    python tools/gallery_pictures.py [FOLDER]

Needs Vulkan and the extra `ui`. The default folder is docs/images.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import slangpy as spy
from slangpy.tools.view import Viewer

ROOT = Path(__file__).resolve().parents[1]
FRAMES = 3
"""ImGui knows sizes of windows only after the first."""


def draw(device: spy.Device, path: Path, size: tuple[int, int], record: Callable[[spy.Texture, Any], None]) -> None:
    target = device.create_texture(
        format=spy.Format.rgba8_unorm_srgb, width=size[0], height=size[1],
        usage=spy.TextureUsage.render_target | spy.TextureUsage.shader_resource | spy.TextureUsage.copy_source,
    )  # fmt: skip
    for _ in range(FRAMES):
        encoder = device.create_command_encoder()
        record(target, encoder)
        device.submit_command_buffer(encoder.finish())
    spy.save_image(path, target)
    print(path)


def draw_viewer(device: spy.Device, path: Path) -> None:
    viewer = Viewer(device, str(ROOT / "examples" / "14_view" / "rings.slang"))
    viewer.set({"tint": spy.float3(0.25, 0.6, 1)})
    draw(device, path, (640, 400), lambda target, encoder: viewer.draw(target, encoder, 1.0, (210.0, 230.0)))


def draw_widgets(device: spy.Device, path: Path) -> None:
    context = spy.ui.Context(device)
    panel = spy.ui.Window(context.screen, "widgets", position=(10, 10), size=(380, 310))
    spy.ui.Text(panel, "A text, and values that the user changes:")
    spy.ui.SliderFloat(panel, "slider", value=0.3, min=0, max=1)
    spy.ui.SliderInt3(panel, "of three", value=(2, 5, 8), min=0, max=10)
    spy.ui.DragFloat2(panel, "drag", value=(1.5, -2))
    spy.ui.InputInt(panel, "input", value=7)
    spy.ui.InputText(panel, "text", value="words")
    spy.ui.CheckBox(panel, "check", value=True)
    spy.ui.ComboBox(panel, "combo", value=1, items=["one", "two", "three"])
    group = spy.ui.Group(panel, "a group")
    spy.ui.ProgressBar(group, 0.6)
    spy.ui.Button(group, "press")

    def record(target: spy.Texture, encoder: Any) -> None:
        context.begin_frame(target.width, target.height)
        encoder.clear_texture_float(target, clear_value=(0.02, 0.05, 0.08, 1))
        context.end_frame(target, encoder)

    draw(device, path, (400, 330), record)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "docs" / "images")
    folder = parser.parse_args().folder
    device = spy.create_device("vulkan")
    draw_viewer(device, folder / "viewer.png")
    draw_widgets(device, folder / "widgets.png")


if __name__ == "__main__":
    main()
