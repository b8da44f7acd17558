"""The snippets of the pages named here run as written, one after the other, and print what the pages say; those of Slang
load. Pictures that they save are those in docs/images."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import slangpy as spy

DOCS = Path(__file__).parents[2] / "docs"
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)


def check_pictures(folder: Path) -> None:
    """Pictures in the folder beside those of docs/images that have their names, which the pages show."""
    for made in folder.glob("*.png") if find_spec("OpenImageIO") else ():
        shown = DOCS / "images" / made.name
        if shown.exists():
            pixels, expected = (np.asarray(spy.Bitmap(path)).astype(int) for path in (made, shown))
            assert pixels.shape == expected.shape and abs(pixels - expected).max() <= 2, made.name


def same(printed: str, shown: str) -> bool:
    """Whether two words agree, numbers in the digits that all machines agree on."""
    try:
        return float(printed) == pytest.approx(float(shown), rel=1e-3, abs=1e-4)
    except ValueError:
        return printed == shown


PAGES = {
    "gradients": None,
    **{f"{folder}/{path.stem}": None for folder in ("guide", "reference") for path in sorted((DOCS / folder).glob("*.md"))},
    "handles": None,
    "images": "OpenImageIO",
    "index": None,
    "jax": "jax",
    "kernels": None,
    "migrating-from-slangtorch": "torch",
    "migrating-from-triton": "torch",
    "migrating-from-warp": None,
    "ray-tracing-pipelines": "ray_query",
    "rays": None,
    "rendering": "vulkan",
    "torch-op": "torch",
}
"""And the package, type of device or feature of vulkan devices without which a page cannot run."""


@pytest.mark.parametrize("name", list(PAGES))
def test_page(name: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = PAGES[name]
    if package in ("vulkan", "ray_query"):
        if not spy.Device.enumerate_adapters(spy.DeviceType.vulkan):
            pytest.skip("no vulkan device here")
        if package != "vulkan" and not spy.Device(type=spy.DeviceType.vulkan).has_feature(spy.Feature[package]):
            pytest.skip(f"the vulkan device lacks {package}")
    elif package:
        pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)  # pages may write files
    names: dict[str, object] = {}
    printed = ""
    for number, (language, text) in enumerate(FENCE.findall((DOCS / f"{name}.md").read_text(encoding="utf-8")), 1):
        if language == "python":
            exec(compile(text, f"{name}.md (snippet {number})", "exec"), names)
            printed = capsys.readouterr().out.replace(", device='cuda:0'", "")  # pages show the CPU's
        elif language == "slang":
            spy.Module.load_from_source(spy.create_device(type="cpu"), re.sub(r"\W", "_", f"page_{name}_{number}"), text)
        elif language != "sh":
            assert language == "text"
            assert all(same(*words) for words in zip(printed.split(), text.split(), strict=True)), printed
    check_pictures(tmp_path)
