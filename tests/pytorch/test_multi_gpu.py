"""Several GPUs: one process each (torchrun), and several device objects in one process."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch_support import HERE  # noqa: E402

import slangpy as spy  # noqa: E402

two_gpus = pytest.mark.skipif(torch.cuda.device_count() < 2, reason="fewer than two GPUs")


@pytest.mark.parametrize("kind", ["cpu", pytest.param("cuda", marks=two_gpus)])
def test_data_parallel(kind: str) -> None:
    if not torch.distributed.is_available():
        pytest.skip("this torch has no torch.distributed")
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2"]
    done = subprocess.run(
        [*command, str(HERE / "data_parallel.py"), kind], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert sorted(line for line in done.stdout.splitlines() if line.startswith("rank")) == [
        f"rank {rank} of 2 on {'cpu' if kind == 'cpu' else f'cuda:{rank}'}: gradients agree" for rank in range(2)
    ]


@two_gpus
class TestOneProcess:
    @pytest.fixture
    def modules(self) -> Any:
        source = "[Differentiable] float square(float x) { return x * x; }"
        devices = [spy.create_torch_device(type=spy.DeviceType.cuda, torch_device=i) for i in range(2)]
        return [spy.Module.load_from_source(device, "one_process", source) for device in devices]

    def test_each_takes_its_tensors(self, modules: Any) -> None:
        before = torch.cuda.current_device()
        for i, module in enumerate(modules):
            assert module.device.torch_device == torch.device("cuda", i)
            x = torch.tensor([1.0, 2, 3], device=f"cuda:{i}", requires_grad=True)
            y = module.square(x)
            y.sum().backward()
            assert y.device == x.device and y.tolist() == [1, 4, 9] and x.grad.tolist() == [2, 4, 6]
            assert torch.cuda.current_device() == before

    def test_other_gpu_is_refused(self, modules: Any) -> None:
        with pytest.raises(ValueError, match=r"argument x is on cuda:0 but the module's device is cuda:1"):
            modules[1].square(torch.ones(3, device="cuda:0"))
        with pytest.raises(ValueError, match=r"argument x is on cuda:1 but the module's device is cuda:0"):
            modules[0].square(torch.ones(3, device="cuda:1"))

    def test_current_device_of_create(self) -> None:
        with torch.cuda.device(1):
            assert spy.create_torch_device().torch_device == torch.device("cuda", 1)
            assert torch.cuda.current_device() == 1
