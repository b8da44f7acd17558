"""Kernels of networks for CUDA compile, without a GPU, wherever NVRTC is installed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import slangpy as spy
from slangpy import neural
from slangpy.neural.kernels import _compute_capability, module_of, uses_matrices
from slangpy.testing import CudaCodegen, nvrtc_available

pytestmark = [pytest.mark.needs_kernels, pytest.mark.nightly, pytest.mark.skipif(not nvrtc_available(), reason="NVRTC is not installed")]


@pytest.mark.parametrize("dtype", ["float", "half"])
def test_kernels(device: spy.Device, dtype: str) -> None:
    cuda = CudaCodegen("sm_90")
    network = neural.Network(device, 3, 3, width=16, encoding=neural.HashGrid(2, 2, 6), dtype=dtype)
    module = module_of(cuda, network.shape)  # type: ignore[arg-type]
    assert uses_matrices(cuda, network.shape) == (dtype == "half")  # type: ignore[arg-type]
    x = spy.Tensor.from_numpy(device, np.zeros((5, 3), np.float32 if dtype == "float" else np.float16))
    for function, given in ((module.forward, (x, x, 5, 1)), (module.backward, (vars(network._batch(x, 5)),))):
        view = cuda.build(function, spy.grid((5,)), network._plain(), *given)
        assert view.pipeline[:4] == b"\x7fELF"


@pytest.mark.parametrize(
    ("change", "uses"), [({}, True), ({"dtype": "float"}, False), ({"width": 24}, False), ({"hidden_layers": 8}, False)]
)
def test_what_matrix_cores_do(device: spy.Device, change: dict[str, Any], uses: bool) -> None:
    shape = neural.Network(device, 32, 3, **{"width": 64, "hidden_layers": 4, "dtype": "half", **change}).shape
    assert uses_matrices(CudaCodegen("sm_80"), shape) == uses  # type: ignore[arg-type]
    assert not uses_matrices(CudaCodegen("sm_75"), shape)  # type: ignore[arg-type]
    on_cuda = device.type is spy.DeviceType.cuda
    assert uses_matrices(device, shape) == (uses and on_cuda and _compute_capability(device) >= 80)
