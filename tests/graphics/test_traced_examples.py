"""The example of ray-tracing pipelines, as a user would start it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tracing import needs

import slangpy as spy

pytestmark = pytest.mark.traces
SCRIPT = Path(__file__).parents[2] / "examples" / "17_ray_tracing" / "ray_tracing.py"


def test_spheres(device: spy.Device, tmp_path: Path) -> None:
    pytest.importorskip("OpenImageIO")
    needs(device, "acceleration_structure", "ray_tracing")
    command = [sys.executable, str(SCRIPT), "--size", "160x100", "--out", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    pixels = np.asarray(spy.Bitmap(str(tmp_path / "spheres.png"))).astype(int)[..., :3]
    assert pixels.shape == (100, 160, 3)
    sky, mirror, orange, shadow = pixels[3, 80], pixels[33, 78], pixels[55, 108], pixels[68, 128]
    assert sky.min() > 190
    assert mirror[2] > mirror[0] + 30  # the sky in it
    assert orange[0] > orange[2] + 40
    assert shadow.max() < 140  # of the orange one, on the floor
    slots = pixels[40:60, 30:50].max(-1)
    assert slots.min() < 110 and slots.max() > 180  # what any-hit shaders leave away
