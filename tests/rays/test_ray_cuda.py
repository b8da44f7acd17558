"""Kernels of the hierarchy for CUDA compile, without a GPU, wherever NVRTC is installed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import test_gradients_of_hits
import test_hits
from ray_scenes import soup

import slangpy as spy
from slangpy import rays
from slangpy.base.folders import LIBRARY_PATH
from slangpy.compiler import target_code
from slangpy.plan.compile import start
from slangpy.run.plans import PlanView
from slangpy.testing import CudaCodegen, nvrtc_available

pytestmark = [pytest.mark.needs_kernels, pytest.mark.one, pytest.mark.skipif(not nvrtc_available(), reason="NVRTC is not installed")]
RAY = np.zeros((5, 3), np.float32)


def compiled(cuda: CudaCodegen, function: Any, *arguments: Any) -> PlanView:
    view = cuda.build(function, *arguments)
    assert view.pipeline[:4] == b"\x7fELF" and "_spy_main" in view.code
    return view


def atomic_adds(cuda: CudaCodegen, view: PlanView) -> int:
    """How often they stand in what Slang makes of the kernel. Its prelude, which is the same of all kernels, has some."""
    program, source = view.kernels.program, view.code
    return target_code(cuda, start(program, view.label, source).linked, 0, view.label, source).count(b"atomicAdd")


@pytest.fixture(scope="module")
def cuda() -> CudaCodegen:
    return CudaCodegen("sm_90")


def a_scene(device: spy.Device) -> rays.Scene:
    points = spy.Tensor.from_numpy(device, soup(8)[0]).with_grads()
    return rays.Scene(device, rays.Mesh(points), updatable=True)


def test_closest(device: spy.Device, cuda: CudaCodegen):
    module = cuda.load_from_source("rays_hits", test_hits.SOURCE)
    compiled(cuda, module.closest, RAY, RAY, a_scene(device), 0.0, 1.0, 1)


@pytest.mark.nightly
def test_other_kernels(device: spy.Device, cuda: CudaCodegen):
    scene = a_scene(device)
    module = cuda.load_from_source("rays_hits", test_hits.SOURCE)
    compiled(cuda, module.through_holes, RAY, RAY, scene, 3)
    builder = spy.Module.load_from_file(cuda, LIBRARY_PATH / "rays" / "build.slang")  # type: ignore[arg-type]
    compiled(cuda, builder.run, spy.grid((5,)), 0, scene._parts[0].tree.build)
    gradients = cuda.load_from_source("rays_gradients", test_gradients_of_hits.SOURCE)
    result = spy.Tensor.zeros(device, (5,), "float").with_grads()
    backward = compiled(cuda, gradients.seen.bwds, RAY, RAY, scene, np.zeros(9, np.float32), result)
    forward = compiled(cuda, gradients.seen, RAY, RAY, scene, np.zeros(9, np.float32))
    assert atomic_adds(cuda, backward) > atomic_adds(cuda, forward) > 0
