"""What tests of raw kernels share."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import slangpy as spy

RW = spy.BufferUsage.shader_resource | spy.BufferUsage.unordered_access
TEXTURE_RW = spy.TextureUsage.shader_resource | spy.TextureUsage.unordered_access
ON_GPU = (spy.DeviceType.vulkan, spy.DeviceType.cuda, spy.DeviceType.d3d12)


def kernel(device: spy.Device, source: str, name: str = "main") -> Any:
    """A kernel for one entry point; equal sources share a module."""
    module = device.load_module_from_source(f"test_{abs(hash(source)):x}", source)
    return device.create_compute_kernel(device.link_program([module], [module.entry_point(name)]))


def in_process(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs code in a Python of its own; `environment` is added to this one's."""
    import os

    result = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return result
