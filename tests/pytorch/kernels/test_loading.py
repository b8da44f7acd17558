"""loadModule's files and caches: headers, imports, several processes, a killed one, folders that nothing can be written to."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

import torch

import slangpy
from slangpy.errors import SlangWarning

FACTOR = """
float factor()
{
    __requirePrelude("#include \\"outer.cuh\\"");
    __intrinsic_asm "(spy_factor)";
}
[AutoPyBindCUDA] [CudaKernel] void scale(TensorView<float> x) { x[cudaThreadIdx().x] *= factor(); }
"""


def test_headers(tmp_path: Path) -> None:
    """Files named by __requirePrelude, and what they include, count like those that Slang reads."""
    (tmp_path / "inc").mkdir()
    (tmp_path / "scale.slang").write_text(FACTOR)
    (tmp_path / "outer.cuh").write_text('#pragma once\n#include "inner.cuh"\n')
    inner = tmp_path / "inc" / "inner.cuh"
    for value in (3, 5):
        inner.write_text(f"#define spy_factor {value}.0f\n")
        x = torch.ones(2)
        m = slangpy.loadModule(tmp_path / "scale.slang", includePaths=[tmp_path / "inc"])
        m.scale(x).launchRaw(2, 1)
        assert x.tolist() == [value, value]
    assert slangpy.loadModule(tmp_path / "scale.slang", includePaths=[tmp_path / "inc"]) is m


METHODS = """
[AutoPyBindCUDA] [CudaKernel] void fill(TensorView<float> x, TensorView<int> y, TensorView<float3> v, TensorView<int> sizes)
{
    x.fillValue(2.5);
    y.fillZero();
    v.fillValue(float3(1, 2, 3));
    sizes[0] = x.dim(0); sizes[1] = x.dim(1);
}
[AutoPyBindCUDA] [CudaKernel] void zero(TensorView<float3> v) { v.fillZero(); }
"""


def test_methods_of_the_tutorial(load: Any, place: str) -> None:
    m = load(METHODS)
    whole, y = torch.zeros(4, 6, device=place), torch.ones(2, 1, 3, dtype=torch.int32, device=place)
    v, sizes = torch.zeros(2, 2, 3, device=place), torch.zeros(2, dtype=torch.int32, device=place)
    m.fill(whole[1:, ::2], y, v, sizes).launchRaw(1, 1)
    expected = torch.zeros(4, 6)
    expected[1:, ::2] = 2.5
    assert torch.equal(whole.cpu(), expected) and not y.any()
    assert v.tolist() == [[[1, 2, 3]] * 2] * 2 and sizes.tolist() == [3, 3]
    m.zero(v[0]).launchRaw(1, 1)
    assert v.tolist() == [[[0, 0, 0]] * 2, [[1, 2, 3]] * 2]


def test_kernels_of_other_modules(tmp_path: Path) -> None:
    """Those of imported files are attributes, too; unusable ones are named at each load."""
    (tmp_path / "other.slang").write_text(
        "[AutoPyBindCUDA] [CudaKernel] void one(TensorView<float> x) { x[0] = 1; }\n"
        "[AutoPyBindCUDA] [CudaKernel] void any<T>(TensorView<T> x) { }\n"
    )
    (tmp_path / "main.slang").write_text(
        "import other;\n[AutoPyBindCUDA] [CudaKernel] void two(TensorView<float> x) { x[0] += 2; }\n"
    )
    for _ in range(2):
        with pytest.warns(SlangWarning, match=r"any"):
            m = slangpy.loadModule(tmp_path / "main.slang")
        slangpy.clearSessionShaderCache()
    x = torch.zeros(1)
    m.one(x).launchRaw(1, 1)
    m.two(x).launchRaw(1, 1)
    assert x.item() == 3 and {"one", "two"} <= set(dir(m))


WIDE = """
[AutoPyBindCUDA] [CudaKernel] void last(TensorView<uint8_t> x, TensorView<int> y)
{ uint i = x.size(0) - 1, j = x.size(1) - 1; x[i, j] += 7; y[0] = x[uint2(i, j)] + *x.data_ptr_at(uint2(i, j)); }
"""


def test_beyond_four_gib(load: Any) -> None:
    """Offsets are 64 bits wide. The memory is not touched but for one page, so it costs nothing."""
    try:
        x = torch.empty(70000, 70000, dtype=torch.uint8)
    except RuntimeError:
        pytest.skip("no room for the addresses")
    y = torch.zeros(1, dtype=torch.int32)
    x[-1, -1] = 1
    load(WIDE).last(x, y).launchRaw(1, 1)
    assert x[-1, -1].item() == 8 and y.item() == 16


CHILD = """
import sys, torch, slangpy
print("begins", flush=True)
m = slangpy.loadModule(sys.argv[1])
x = torch.arange(3.0)
m.square(x, x).launchRaw(3, 1)
print(x.tolist(), flush=True)
"""
SQUARE = """
[AutoPyBindCUDA] [CudaKernel] void square(TensorView<float> x, TensorView<float> y)
{ uint i = cudaThreadIdx().x; if (i < x.size(0)) y[i] = x[i] * x[i]; }
"""


def start(path: Path, cache: Path) -> subprocess.Popen[str]:
    environment = {**os.environ, "SLANGPY_CACHE_DIR": str(cache)}
    command = [sys.executable, "-W", "ignore", "-c", CHILD, str(path)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)


def ends_well(child: subprocess.Popen[str]) -> None:
    out, err = child.communicate(timeout=200)
    assert child.returncode == 0 and out.split("\n")[-2] == "[0.0, 1.0, 4.0]", err


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="ends processes as Unix does")
def test_processes_that_share_a_cache(tmp_path: Path) -> None:
    """One is killed while it compiles; then three load at once, one of them without a cache folder, from a folder with blanks
    that nothing is left in."""
    folder, cache = tmp_path / "källa med blanks", tmp_path / "cache"
    folder.mkdir()
    path = folder / "a square.slang"
    path.write_text(SQUARE)
    folder.chmod(0o500)
    killed = start(path, cache)
    assert killed.stdout is not None and killed.stdout.readline() == "begins\n"
    killed.kill()
    killed.communicate(timeout=60)
    (tmp_path / "no folder").write_text("a file")
    children = [start(path, place) for place in (cache, cache, tmp_path / "no folder")]
    for child in children:
        ends_well(child)
    assert [p.name for p in folder.iterdir()] == ["a square.slang"]
    folder.chmod(0o700)
