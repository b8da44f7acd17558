"""Makes the pictures of the gallery, by the examples and by panels, and keeps what they took. No window, no display is needed.

    python tools/gallery_pictures.py [--only torus,widgets] [--folder docs/images]

Needs Vulkan (with ray-tracing pipelines for the spheres), torch, matplotlib and the extra `ui`; for the notebook, what
gallery_notebook.py says. The seconds go to
benchmarks/results/gallery.json: of the processor, for the
whole program, compiling included. `python tools/gallery_table.py` then puts them on the page.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gallery_notebook import Missing, draw_notebook

import slangpy as spy
from slangpy.tools.view import Viewer

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "gallery.json"
EXAMPLES = {
    "polynomial": ("polynomial.py", "--device", "cpu", "--plot", "polynomial.png"),
    "splatting": ("torch_splatting.py", "--compare", "0"),
    "mlp": ("torch_mlp.py",),
    "torus": ("render.py",),
    "fit_mesh": ("fit_mesh.py",),
    "path_tracer": ("path_tracer.py", "--device", "cpu", "--size", "384", "--samples", "128"),
    "fit_relief": ("fit_relief.py",),
    "spheres": ("ray_tracing.py",),
    "neural_image": ("neural_image.py",),
    "rings": ("-m", "slangpy", "view", "rings.slang", "-d", "cpu", "--size", "384x384", "--set", "tint=0.25,0.6,1", "--save", "rings.png"),
}
"""The arguments of Python that make each picture; files are looked for in the folders of examples."""
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


def draw_viewer(path: Path) -> None:
    device = spy.create_device("vulkan")
    viewer = Viewer(device, str(ROOT / "examples" / "14_view" / "rings.slang"))
    viewer.set({"tint": spy.float3(0.25, 0.6, 1)})
    draw(device, path, (640, 400), lambda target, encoder: viewer.draw(target, encoder, 1.0, (210.0, 230.0)))


def draw_widgets(path: Path) -> None:
    device = spy.create_device("vulkan")
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


def run_example(name: str, folder: Path) -> float:
    """Seconds of the processor."""
    words = [str(next((ROOT / "examples").glob(f"*/{word}"), word)) for word in EXAMPLES[name]]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with tempfile.TemporaryDirectory() as work:
        subprocess.run([sys.executable, *words], check=True, stdout=subprocess.DEVNULL, cwd=work)
        (folder / f"{name}.png").write_bytes((Path(work) / f"{name}.png").read_bytes())
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(folder / f"{name}.png")
    return round(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, 1)


def keep(seconds: dict[str, float]) -> None:
    """Replaces the figures of these pictures."""
    record = json.loads(RESULTS.read_text("utf-8")) if RESULTS.exists() else {"programs": {}}
    for name, took in seconds.items():
        record["programs"][name] = {"command": "python " + " ".join(EXAMPLES[name]), "processor_seconds": took}
    RESULTS.write_text(json.dumps(record, indent=1) + "\n", "utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=ROOT / "docs" / "images")
    parser.add_argument("--only", default="", help="names of pictures, by comma")
    options = parser.parse_args()
    panels: dict[str, Callable[[Path], None]] = {"viewer": draw_viewer, "widgets": draw_widgets, "notebook": draw_notebook}
    wanted = [name for name in options.only.split(",") if name] or [*EXAMPLES, *panels]
    unknown = sorted({*wanted} - {*EXAMPLES, *panels})
    if unknown:
        parser.error(f"no such picture: {', '.join(unknown)}; there are: {', '.join([*EXAMPLES, *panels])}")
    keep({name: run_example(name, options.folder) for name in wanted if name in EXAMPLES})
    for name in wanted:
        if name in panels:
            try:
                panels[name](options.folder / f"{name}.png")
            except Missing as missing:
                parser.error(str(missing))


if __name__ == "__main__":
    main()
