"""The CUDA kernel that benchmarks/rays.py compares with: NVRTC takes it, and, run on the host, it finds what scenes find."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ray_scenes import rays_at, soup
from test_hits import trace

import slangpy as spy
from slangpy import _native, rays
from slangpy.testing import nvrtc_available

pytestmark = [pytest.mark.needs_kernels, pytest.mark.one]
SOURCE = Path(__file__).parents[2] / "benchmarks" / "rays_cuda.cu"
HOST = """
#include <cmath>
#include <cstring>
#define __global__
#define __device__
struct float4 { float x, y, z, w; };
static struct { int x; } blockIdx, threadIdx, blockDim = { 128 };
static unsigned __float_as_uint(float v) { unsigned bits; std::memcpy(&bits, &v, 4); return bits; }
#include "SOURCE"
#define RUN(name)                                                                                                          \\
    extern "C" void run_##name(const float4* nodes, const float4* triangles, const float* o, const float* d, int* found, int count) \\
    {                                                                                                                      \\
        for (blockIdx.x = 0; blockIdx.x * 128 < count; blockIdx.x++)                                                       \\
            for (threadIdx.x = 0; threadIdx.x < 128; threadIdx.x++)                                                        \\
                name(nodes, triangles, o, d, found, count);                                                                \\
    }
RUN(closest)
RUN(occluded)
"""


@pytest.mark.skipif(not nvrtc_available(), reason="NVRTC is not installed")
def test_nvrtc_compiles_it():
    for name in ("closest", "occluded"):
        assert _native.cuda_compile(SOURCE.read_bytes(), name, "sm_90")[:4] == b"\x7fELF"


@pytest.mark.skipif(shutil.which("c++") is None, reason="there is no compiler named c++")
def test_it_finds_the_same(device: spy.Device, tmp_path: Path):
    source, library = tmp_path / "host.cpp", tmp_path / "host.so"
    source.write_text(HOST.replace("SOURCE", str(SOURCE)), "utf-8")
    subprocess.run(["c++", "-O1", "-shared", "-fPIC", "-w", "-o", str(library), str(source)], check=True)
    kernels = ctypes.CDLL(str(library))
    points, triangles = soup(2000, seed=6)
    scene = rays.Scene(device, rays.Mesh(points, triangles))
    origins, directions = (np.ascontiguousarray(part[4::8]) for part in rays_at(points, triangles, 8000))  # at no edges
    expected = trace(scene, origins, directions)["primitive"]
    tables = [scene.get_this()[name].to_numpy() for name in ("nodes", "primitives")]

    def found_by(name: str) -> np.ndarray[Any, Any]:
        found = np.full(1003, -7, np.int32)
        arrays = [array.ctypes.data_as(ctypes.c_void_p) for array in (*tables, origins, directions, found)]
        getattr(kernels, name)(*arrays, 1000)
        assert (found[1000:] == -7).all()
        return found[:1000]

    assert 0.05 < (expected >= 0).mean() < 0.95
    assert (found_by("run_closest") == expected).all()
    assert (found_by("run_occluded") == (expected >= 0)).all()
