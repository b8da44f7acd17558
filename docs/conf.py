"""The documentation site: `sphinx-build -W docs build/docs`. Pictures of the gallery are made by the examples."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import slangpy

DOCS = Path(__file__).parent
EXAMPLES = DOCS.parent / "examples"

project = "slangpy"
author = "the slangpy developers"
release = version = slangpy.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode"]
exclude_patterns = ["gallery"]
html_theme = "furo"
html_title = f"slangpy {release}"
html_static_path: list[str] = []
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]
autodoc_member_order = "bysource"
autodoc_typehints = "none"
autodoc_preserve_defaults = True  # flags have no repr that autodoc knows
autodoc_class_signature = "separated"
highlight_language = "python"
default_role = "code"  # docstrings use single backticks for code
copyright = author
# Text blocks show output; links to sources of the repository are no pages of the site.
suppress_warnings = ["myst.xref_missing", "misc.highlighting_failure"]

PICTURES = {
    "polynomial.png": ["01_polynomial/polynomial.py", "--device", "cpu", "--plot", "{folder}/polynomial.png"],
    "splatting.png": ["05_torch_splatting/torch_splatting.py", "--out", "{folder}"],
    "mlp.png": ["06_torch_mlp/torch_mlp.py", "--out", "{folder}"],
    "torus.png": ["09_render/render.py", "--out", "{folder}"],
    "fit_mesh.png": ["10_fit_mesh/fit_mesh.py", "--out", "{folder}"],
    "path_tracer.png": ["11_path_tracer/path_tracer.py", "--device", "cpu", "--out", "{folder}"],
    "neural_image.png": ["16_neural_image/neural_image.py", "--out", "{folder}"],
    "fit_relief.png": ["12_fit_relief/fit_relief.py", "--out", "{folder}"],
}
"""Of the gallery, by the example that makes each. Those of torch are left out where it is not installed."""
OF_TORCH = ("splatting.png", "mlp.png", "fit_relief.png")
DRAWN = ("torus.png", "fit_mesh.png")
"""These need Vulkan (and torch); elsewhere the pictures of `docs/images` stand in."""


def can_draw() -> bool:
    return bool(slangpy.Device.enumerate_adapters(slangpy.DeviceType.vulkan)) and bool(importlib.util.find_spec("torch"))


def make_pictures(app: Any) -> None:
    folder = DOCS / "gallery"
    folder.mkdir(exist_ok=True)
    for name, (script, *arguments) in PICTURES.items():
        if (folder / name).exists() or (name in OF_TORCH and importlib.util.find_spec("torch") is None):
            continue
        if name in DRAWN and not can_draw():
            shutil.copy(DOCS / "images" / name, folder / name)
            continue
        given = [argument.format(folder=folder) for argument in arguments]
        subprocess.run([sys.executable, str(EXAMPLES / script), *given], check=True, stdout=subprocess.DEVNULL)


def setup(app: Any) -> None:
    app.connect("builder-inited", make_pictures)
