"""The torch examples run to their end and get the numbers they promise."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

EXAMPLES = Path(__file__).parent.parent.parent / "examples"


def run(script: str, *arguments: str, folder: Path) -> list[str]:
    command = [sys.executable, str(EXAMPLES / script), *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


def test_polynomial(where: str, tmp_path: Path) -> None:
    lines = run("04_torch_polynomial/torch_polynomial.py", "--device", where, "--steps", "300", folder=tmp_path)
    assert lines[0].endswith("[9.0, 23.0, 41.0, 63.0]") and lines[1].endswith("[12.0, 16.0, 20.0, 24.0]")
    assert lines[-1].startswith("found 3.00")


def test_splatting(where: str, tmp_path: Path) -> None:
    lines = run(
        "05_torch_splatting/torch_splatting.py", "--device", where, "--steps", "60", "--size", "24", "--blobs", "16",
        folder=tmp_path,
    )  # fmt: skip
    errors = [float(line.split()[-1]) for line in lines if line.startswith("step")]
    assert errors[-1] < errors[0] / 5
    slang, plain = [float(line.split()[2].rstrip(",")) for line in lines if line.startswith(("Slang:", "torch:"))]
    assert slang == pytest.approx(plain, rel=0.2)  # one formula, one start
    assert (tmp_path / "splatting.png").exists()


def test_network(where: str, tmp_path: Path) -> None:
    lines = run("16_torch_mlp/torch_mlp.py", "--device", where, "--steps", "60", "--size", "32", folder=tmp_path)
    assert float(lines[0].split()[-1]) < 1e-4
    errors = [float(line.split()[-1]) for line in lines if line.startswith("step")]
    assert errors[-1] < errors[0] / 10
    assert (tmp_path / "mlp.png").exists()


def test_image_pipeline(where: str, tmp_path: Path) -> None:
    lines = run("08_image_pipeline/image_pipeline.py", "--device", where, "--pixels", "700", folder=tmp_path)
    assert [line.split(":")[0] for line in lines] == ["slangpy.Module", "slangpy.loadModule"]
    for line in lines:
        result, gradients = (float(word.rstrip(",")) for word in line.split() if word[0].isdigit())
        assert result <= 1e-5 and gradients <= 1e-4
