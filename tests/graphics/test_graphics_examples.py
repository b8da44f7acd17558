"""The examples that draw run to their end, as a user would start them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import slangpy as spy

pytestmark = pytest.mark.draws
EXAMPLES = Path(__file__).parents[2] / "examples"


def run(script: str, device: spy.Device, folder: Path, *arguments: str) -> list[str]:
    command = [sys.executable, str(EXAMPLES / script), "--device", device.info.type.name, "--out", str(folder), *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


def test_torus(drawer: spy.Device, tmp_path: Path) -> None:
    pytest.importorskip("OpenImageIO")
    run("09_render/render.py", drawer, tmp_path, "--size", "96")
    image = np.asarray(spy.Bitmap(str(tmp_path / "torus.png"))).astype(int)[..., :3]
    assert image.shape == (96, 96, 3)
    sky, hole = image[4, 48], image[48, 48]
    assert sky[2] > sky[0] and hole[2] > hole[0]  # both blue: the torus has a hole
    red, _, blue = image[60:90].reshape(-1, 3).T
    orange, dark = (red > blue + 60).mean(), (blue > red + 30).mean()
    assert 0.2 < orange < 0.5 and 0.1 < dark < 0.3  # its squares, in front
    steps = np.abs(np.diff(image[:, 20:76], axis=1)).max(-1)
    assert (steps > 8).mean() > 0.05  # which have edges


def test_fit_mesh(drawer: spy.Device, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("OpenImageIO")
    lines = run("10_fit_mesh/fit_mesh.py", drawer, tmp_path, "--size", "128", "--steps", "40")
    steps = [line.split() for line in lines if line.startswith("step")]
    losses, differences = ([float(words[place]) for words in steps] for place in (5, -1))
    assert len(steps) == 3 and max(differences) < 1e-4
    assert losses[-1] < losses[0] / 8
    before, target, after = np.split(np.asarray(spy.Bitmap(str(tmp_path / "fit_mesh.png"))).astype(float), 3, axis=1)
    assert before.shape == (128, 128, 3)
    assert np.abs(after - target).mean() < np.abs(before - target).mean() / 2
