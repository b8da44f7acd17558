"""Models that hold Slang functions are copied, saved, and handed to workers."""

from __future__ import annotations

import copy
import io
from typing import Any

import numpy as np
import pytest

import slangpy as spy

torch = pytest.importorskip("torch")

SOURCE = "[Differentiable] float wave(float k, float x) { return sin(k * x); }"


class Wave(torch.nn.Module):
    def __init__(self, device: Any) -> None:
        super().__init__()
        self.k = torch.nn.Parameter(torch.tensor([2.0]))
        self.wave = spy.Module.load_from_source(device, "saved_model", SOURCE).wave

    def forward(self, x: Any) -> Any:
        return self.wave(self.k, x)


@pytest.fixture
def model() -> Any:
    return Wave(spy.create_torch_device(type=spy.DeviceType.cpu, torch_device=torch.device("cpu")))


def check(model: Any) -> None:
    x = torch.linspace(-1, 1, 33)
    model.zero_grad()
    model(x).sum().backward()
    k = model.k.detach().double().requires_grad_()
    torch.sin(k * x.double()).sum().backward()
    torch.testing.assert_close(model.k.grad.double(), k.grad, rtol=1e-5, atol=1e-5)


def test_a_model_is_copied(model: Any) -> None:
    other = copy.deepcopy(model)
    assert other.k is not model.k and other.wave is model.wave
    with torch.no_grad():
        other.k.fill_(3.0)
    check(model)
    check(other)


def test_a_model_is_saved(model: Any) -> None:
    file = io.BytesIO()
    torch.save(model, file)
    file.seek(0)
    other = torch.load(file, weights_only=False)
    check(other)
    assert other.wave.module.device is model.wave.module.device


class Squares(torch.utils.data.Dataset):
    """Made in the main process; its function and tensor travel to workers that are started anew."""

    def __init__(self, function: Any, tensor: Any) -> None:
        self.function, self.tensor = function, tensor

    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> Any:
        return torch.from_numpy(self.function(float(index), self.tensor, _result="numpy"))


def test_workers_of_a_loader(model: Any) -> None:
    tensor = spy.Tensor.from_numpy(model.wave.module.device, np.arange(3, dtype=np.float32))
    loader = torch.utils.data.DataLoader(
        Squares(model.wave, tensor), batch_size=2, num_workers=1, multiprocessing_context="spawn"
    )
    batches = torch.cat(list(loader)).double()
    expected = torch.sin(torch.arange(4.0).double()[:, None] * torch.arange(3.0).double())
    torch.testing.assert_close(batches, expected, rtol=1e-5, atol=1e-5)
