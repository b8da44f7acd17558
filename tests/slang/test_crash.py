"""Sources on which Slang 2026.12 ends its process while it reads them: refused, or an exception."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import slangpy as spy

CHILD = Path(__file__).with_name("crash_child.py")


def run(what: str, folder: Path) -> subprocess.CompletedProcess[str]:
    assert spy.__file__
    path = os.pathsep.join([str(Path(spy.__file__).parent.parent), os.environ.get("PYTHONPATH", "")])
    return subprocess.run(
        [sys.executable, str(CHILD), what, str(folder)],
        env={**os.environ, "PYTHONPATH": path, "SLANGPY_CACHE_DIR": str(folder / "cache")},
        capture_output=True,
        text=True,
        timeout=300,
    )


@pytest.mark.parametrize("what", ["accessors", "contained", "meanwhile"])
def test_the_process_lives_on(what: str, tmp_path: Path) -> None:
    done = run(what, tmp_path)
    assert done.returncode == 0 and done.stdout.endswith("done\n"), done.stderr


def test_other_faults_end_the_process(tmp_path: Path) -> None:
    done = run("others", tmp_path)
    assert done.returncode == -signal.SIGSEGV and done.stdout == "now\n", done.stderr
    assert done.stderr.count("Fatal Python error: Segmentation fault") == 1


@pytest.mark.needs_kernels
@pytest.mark.parametrize(
    "source",
    [
        "struct S { float x; __subscript(int i) -> float { [Differentiable] get { return x * x; } } }",
        "struct S { float x; property float y { [ForceInline] get { return x; } }\n"
        "[Differentiable] float square() { return x * x; }\n__subscript(int i) -> float { [Differentiable] get { return square(); } } }",
        "struct S { float x; property float y { get { [MaxIters(2)] for (int i = 0; i < 2; i++) {} return x; } }\n"
        "__subscript(int i) -> float { [Differentiable] get { float property = x; { [ForceUnroll] for (int k = 0; k < 1; k++) {} } "
        "return property * x; } } }",
    ],
)
def test_what_may_have_derivatives_keeps_them(device: spy.Device, source: str) -> None:
    name = "kept_" + str(abs(hash(source)))
    source = source.replace("struct S", "struct S : IDifferentiable")
    f = "[Differentiable] float f(float a) { S s; s.x = a; return s[0]; }"
    module = spy.Module.load_from_source(device, name, f"{source}\n{f}")
    x = spy.Tensor.from_numpy(device, np.array([1, -2, 3], np.float32)).with_grads()
    y = module.f(x).with_grads()
    y.grad.copy_from_numpy(np.ones(3, np.float32))
    module.f.bwds(x, _result=y)
    assert y.to_numpy().tolist() == [1, 4, 9] and x.grad.to_numpy().tolist() == [2, -4, 6]
