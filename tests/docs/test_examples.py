"""The examples run to their end and get the numbers they promise, as a user would start them."""

from __future__ import annotations

import json
import math
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from slangpy._native import DeviceType

pytestmark = pytest.mark.needs_kernels
EXAMPLES = Path(__file__).parents[2] / "examples"


def run(script: str, *arguments: str, folder: Path) -> str:
    command = [sys.executable, str(EXAMPLES / script), *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.one
def test_polynomial(device_type: DeviceType, tmp_path: Path) -> None:
    plot = tmp_path / "plot.png"
    output = run("01_polynomial/polynomial.py", "--device", device_type.name, "--plot", str(plot), folder=tmp_path)
    assert output.splitlines()[-2:] == ["[ 9. 23. 41. 63.]", "[12. 16. 20. 24.]"]
    assert plot.exists() or "no plot" in output


def test_linear_layer(device_type: DeviceType, tmp_path: Path) -> None:
    output = run("02_linear_layer/linear_layer.py", "--device", device_type.name, "--steps", "60", folder=tmp_path)
    losses = [tuple(map(float, line.split()[1:])) for line in output.splitlines()[2:] if re.match(r" *\d+ ", line)]
    assert len(losses) >= 4
    for ours, expected in losses:
        assert ours == pytest.approx(expected, rel=1e-3)
    assert losses[-1][0] < losses[0][0] / 2
    assert float(output.split()[-1]) < 1e-4


def test_mipmaps(device_type: DeviceType, tmp_path: Path) -> None:
    arguments = ("--device", device_type.name, "--size", "128")
    lines = run("06_mipmaps/mipmaps.py", *arguments, folder=tmp_path).splitlines()
    mean, coarsest, mapped = ([float(v) for v in re.findall(r"[\d.]+", line.split(":")[1])] for line in lines[-3:])
    assert (tmp_path / "mipmaps.png").exists()
    assert coarsest == pytest.approx(mean, abs=2e-3) and len(mean) == 4
    assert mapped == pytest.approx([206, 206, 51, 255], abs=1)


NOTEBOOKS = sorted((EXAMPLES / "03_notebook").glob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_is_stored_executed(path: Path) -> None:
    cells = [cell for cell in json.loads(path.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    assert any("image/png" in output.get("data", {}) for cell in cells for output in cell["outputs"])
    assert path.stat().st_size < 200_000


def test_notebooks(tmp_path: Path) -> None:
    """Runs the cells, one notebook after the other in one process, and compares what they print with what is stored."""
    pytest.importorskip("IPython")
    pytest.importorskip("matplotlib")
    command = [sys.executable, str(EXAMPLES.parent / "tools" / "execute_notebook.py"), "--check", *map(str, NOTEBOOKS)]
    environment = {**os.environ, "SLANGPY_DEVICE_TYPE_OVERRIDE": "cpu"}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr.count(" cells\n") == len(NOTEBOOKS)


def test_tile_splatting(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    output = run("07_tile_splatting/tile_splatting.py", "--steps", "10", folder=tmp_path)
    assert (tmp_path / "tile_splatting.png").exists()
    errors = [float(line.split()[-1]) for line in output.splitlines() if "error" in line]
    assert len(errors) == 5 and max(errors) < 2e-4, output
    first, last = (float(line.split()[-1]) for line in output.splitlines() if "loss" in line)
    assert last < first / 2


@pytest.mark.one
def test_path_tracer(device_type: DeviceType, tmp_path: Path) -> None:
    arguments = ("--device", device_type.name, "--size", "40", "--samples", "4", "--out", str(tmp_path))
    output = run("11_path_tracer/path_tracer.py", *arguments, folder=tmp_path)
    brightness = float(next(line for line in output.splitlines() if line.startswith("mean brightness")).split()[-1])
    assert brightness == pytest.approx(0.246, abs=0.02)  # what many samples give
    assert (tmp_path / "path_tracer.png").stat().st_size > 1000


@pytest.mark.one
def test_fit_relief(device_type: DeviceType, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    arguments = ("--device", device_type.name, "--size", "96", "--steps", "40", "--vertices", "32", "--out", str(tmp_path))
    output = run("12_fit_relief/fit_relief.py", *arguments, folder=tmp_path)
    steps = [line.split() for line in output.splitlines() if line.startswith("step")]
    losses, heights = ([float(words[place]) for words in steps] for place in (5, -1))
    assert losses[-1] < losses[0] / 10 and heights[-1] < heights[0] / 2


@pytest.mark.one
def test_neural_image(device_type: DeviceType, tmp_path: Path) -> None:
    """The same network by both loops."""
    pytest.importorskip("torch")
    arguments = ("--device", device_type.name, "--size", "32", "--steps", "51", "--samples", "512", "--out", str(tmp_path))
    output = run("18_neural_image/neural_image.py", *arguments, folder=tmp_path)
    losses = [float(line.split()[-1]) for line in output.splitlines() if " step " in line]
    assert len(losses) == 4 and losses[1] < losses[0] / 5 and losses[1] == pytest.approx(losses[3], rel=0.05)
    assert (tmp_path / "neural_image.png").is_file()


@pytest.mark.one
def test_neural_texture(device_type: DeviceType, tmp_path: Path) -> None:
    """As halves, and by a function, the network gives what it had learnt."""
    arguments = ("--device", device_type.name, "--size", "48", "--steps", "120", "--samples", "512", "--loop", "own", "--out", str(tmp_path))
    output = run("19_neural_texture/neural_texture.py", *arguments, folder=tmp_path)
    lines = {line.split()[0]: line.split() for line in output.splitlines()}
    loss, network, lit = float(lines["own"][-1]), float(lines["network:"][4]), float(lines["network:"][9])
    assert network > 22 and network == pytest.approx(-10 * math.log10(loss), abs=1) and lit > 18
    assert (tmp_path / "neural_texture.png").stat().st_size > 1000
