"""Kernels of the CPU device by other compilers than GCC, where they are installed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

PROGRAM = """
import numpy as np
import slangpy as spy
SOURCE = '''
float waves(float a, float x) { return a * sin(x) + exp(-x) + pow(x + 1, 1.5f); }
float4 sampled(float2 at, Texture2D<float4> image, SamplerState s) { return image.SampleLevel(s, at, 0); }
groupshared float shared_values[64];
[shader("compute")] [numthreads(64, 1, 1)]
void backwards(uint3 at: SV_DispatchThreadID, uint i: SV_GroupIndex, RWStructuredBuffer<float> values)
{
    shared_values[i] = values[at.x];
    GroupMemoryBarrierWithGroupSync();
    values[at.x] = shared_values[63 - i];
}
'''
device = spy.Device(type="cpu")
module = spy.Module.load_from_source(device, "compilers", SOURCE)
x = np.linspace(0, 3, 1 << 16, dtype=np.float32)
wide = x.astype(np.float64)
np.testing.assert_allclose(module.waves(2, x, _result="numpy"), 2 * np.sin(wide) + np.exp(-wide) + (wide + 1) ** 1.5, 2e-6)
pixels = np.random.default_rng(1).random((16, 16, 4), np.float32)
image = device.create_texture(format=spy.Format.rgba32_float, width=16, height=16,
                              usage=spy.TextureUsage.shader_resource, data=pixels)
between = module.sampled(np.full((1, 2), 8 / 16, np.float32), image, device.create_sampler(), _result="numpy")
np.testing.assert_allclose(between[0], pixels[7:9, 7:9].mean((0, 1)), 1e-6)
raw = device.load_module_from_source("compilers_raw", SOURCE)
kernel = device.create_compute_kernel(device.link_program([raw], [raw.entry_point("backwards")]))
values = np.arange(128, dtype=np.float32)
usage = spy.BufferUsage.shader_resource | spy.BufferUsage.unordered_access
buffer = device.create_buffer(struct_size=4, usage=usage, data=values)
kernel.dispatch([128, 1, 1], values=buffer)
assert (buffer.to_numpy().view(np.float32) == values.reshape(2, 64)[:, ::-1].ravel()).all()
print(device.compiler_fingerprint)
"""


def run(cxx: str, folder: Path) -> str:
    environment = {**os.environ, "CXX": cxx, "SLANGPY_CACHE_DIR": str(folder), "SLANGPY_PROGRESS": "0"}
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.skipif(shutil.which("clang++") is None, reason="no clang++")
def test_clang_calls_vector_functions(tmp_path: Path) -> None:
    told = run("clang++", tmp_path)
    assert "clang" in told
    if "-fveclib=libmvec" in told:  # glibc on x86-64
        kernels = [path.read_bytes() for path in (tmp_path).glob("*/kernel/*")]
        assert any(b"_ZGV" in code and b"_sinf" in code for code in kernels)


@pytest.mark.skipif(find_spec("ziglang") is None, reason="no ziglang")
def test_ziglang(tmp_path: Path) -> None:
    assert "ziglang" in run(f"{sys.executable} -m ziglang c++", tmp_path)
