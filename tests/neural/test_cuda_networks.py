"""Kernels of networks for CUDA compile, without a GPU, wherever NVRTC is installed."""

from __future__ import annotations

import numpy as np
import pytest

import slangpy as spy
from slangpy import neural
from slangpy.neural.kernels import module_of
from slangpy.testing import CudaCodegen, nvrtc_available

pytestmark = [pytest.mark.needs_kernels, pytest.mark.nightly, pytest.mark.skipif(not nvrtc_available(), reason="NVRTC is not installed")]


@pytest.mark.parametrize("dtype", ["float", "half"])
def test_kernels(device: spy.Device, dtype: str) -> None:
    cuda = CudaCodegen("sm_90")
    network = neural.Network(device, 3, 3, width=16, encoding=neural.HashGrid(2, 2, 6), dtype=dtype)
    module = module_of(cuda, network.shape)  # type: ignore[arg-type]
    x = spy.Tensor.from_numpy(device, np.zeros((5, 3), np.float32 if dtype == "float" else np.float16))
    batch = network._batch(x, 5)
    for function in (module.forward, module.backward):
        view = cuda.build(function, spy.grid((5,)), network._plain(), vars(batch))
        assert view.pipeline[:4] == b"\x7fELF"
