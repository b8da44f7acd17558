"""bwds with torch tensors and diff_pair; the bridge functions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch_support import device_of, template_of  # noqa: E402

import slangpy as spy  # noqa: E402
from slangpy import torchintegration  # noqa: E402


@pytest.fixture(params=["c table", "python"], autouse=True)
def bridge(request: pytest.FixtureRequest) -> Any:
    spy.set_torch_bridge_python_fallback(request.param == "python")
    yield request.param
    spy.set_torch_bridge_python_fallback(False)


@pytest.fixture
def x(where: str) -> Any:
    return torch.tensor([1.0, 2, 3, 4], device=where)


class TestBwds:
    def test_documented(self, module: Any, x: Any) -> None:
        g = torch.zeros_like(x)
        module.polynomial.bwds(2, 8, -1, spy.diff_pair(x, g), _result=spy.diff_pair(None, torch.ones_like(x)))
        assert g.tolist() == [12, 16, 20, 24]

    def test_accumulates(self, module: Any, where: str, x: Any) -> None:
        g, p = torch.ones_like(x), spy.diff_pair(torch.full((1,), 2.0, device=where), torch.zeros(1, device=where))
        for _ in range(2):
            module.polynomial.bwds(p, 8, -1, spy.diff_pair(x, g), _result=spy.diff_pair(None, torch.ones_like(x)))
        assert g.tolist() == [25, 33, 41, 49] and p.grad.tolist() == [60]

    def test_builds_no_graph(self, module: Any, x: Any) -> None:
        k = torch.ones(4, device=x.device, requires_grad=True)
        g = torch.zeros_like(x)
        module.polynomial.bwds(k, 8, -1, spy.diff_pair(x, g), _result=spy.diff_pair(None, torch.ones_like(x)))
        assert g.tolist() == [10, 12, 14, 16] and k.grad is None and not g.requires_grad

    def test_strides(self, module: Any, where: str) -> None:
        x, g = torch.rand(4, 3, device=where).T, torch.zeros(3, 8, device=where)[:, ::2]
        seed = torch.ones(1, 4, device=where).expand(3, 4)
        module.polynomial.bwds(2, 8, -1, spy.diff_pair(x, g), _result=spy.diff_pair(None, seed))
        torch.testing.assert_close(g, 4 * x + 8)

    def test_outputs(self, module: Any, x: Any) -> None:
        g = torch.zeros_like(x)
        seed = spy.diff_pair(None, torch.ones_like(x))
        module.split.bwds(spy.diff_pair(x, g), seed, seed)
        assert g.tolist() == [5, 16, 33, 56]

    def test_wide_gradients_of_half(self, where: str) -> None:
        x = torch.tensor([1.0, 2], dtype=torch.float16, device=where)
        g = torch.zeros(2, device=where)
        template_of(where, "half").poly.bwds(
            2, 8, -1, spy.diff_pair(x, g), _result=spy.diff_pair(None, torch.ones_like(x))
        )
        assert g.tolist() == [12, 16]

    def test_errors(self, module: Any, x: Any) -> None:
        seed = spy.diff_pair(None, torch.ones_like(x))
        with pytest.raises(ValueError, match="primal"):
            module.polynomial.bwds(2, 8, -1, spy.diff_pair(None, torch.zeros_like(x)), _result=seed)
        with pytest.raises(ValueError, match="without primal and grad"):
            module.polynomial.bwds(2, 8, -1, spy.diff_pair(), _result=seed)
        pair = spy.diff_pair(x, torch.zeros_like(x))
        pair.grad = torch.zeros(5, device=x.device)
        with pytest.raises(ValueError, match=r"shape \[5\]"):
            module.polynomial.bwds(2, 8, -1, pair, _result=seed)


class TestPair:
    def test_checks(self) -> None:
        with pytest.raises(ValueError, match=r"\(3,\).*\(4,\)"):
            spy.diff_pair(torch.zeros(3), torch.zeros(4))
        with pytest.raises(ValueError, match="float32.*float64"):
            spy.diff_pair(torch.zeros(3), torch.zeros(3, dtype=torch.float64))
        spy.diff_pair(torch.zeros(3, dtype=torch.bfloat16), torch.zeros(3))

    def test_properties(self) -> None:
        pair = spy.diff_pair(torch.zeros(3), None, index=2, is_input=False)
        assert (pair.index, pair.is_input, pair.grad) == (2, False, None)
        assert "primal=Tensor" in repr(pair) and "grad=None" in repr(pair)
        pair.clear_tensors()
        assert pair.primal is None and "primal=None" in repr(pair)

    def test_names(self) -> None:
        assert torchintegration.diff_pair is spy.diff_pair
        assert spy.is_torch_bridge_available()
        assert spy.is_torch_tensor(torch.zeros(1)) and not spy.is_torch_tensor([1])

    def test_fallback(self, bridge: str) -> None:
        assert spy.is_torch_bridge_using_fallback() == (bridge == "python")
        assert bool(spy.get_torch_bridge_fallback_reason()) == (
            bridge == "python" or not hasattr(torch.Tensor, "__dlpack_c_exchange_api__")
        )


class TestBuffers:
    def test_round_trip(self, where: str) -> None:
        device = device_of(where)
        buffer = device.create_buffer(size=64, usage=spy.BufferUsage.unordered_access | spy.BufferUsage.shader_resource)
        source, target = torch.arange(8.0, device=where), torch.zeros(8, device=where)
        spy.copy_torch_tensor_to_buffer(source, buffer)
        version = target._version
        spy.copy_buffer_to_torch_tensor(buffer, target)
        assert torch.equal(source, target) and target._version > version

    def test_strides(self, where: str) -> None:
        device = device_of(where)
        buffer = device.create_buffer(size=48, usage=spy.BufferUsage.unordered_access | spy.BufferUsage.shader_resource)
        source = torch.arange(12.0, device=where).reshape(3, 4).T
        target = torch.zeros(6, 4, device=where)[::2].T
        spy.copy_torch_tensor_to_buffer(source, buffer)
        assert np.array_equal(buffer.to_numpy().view(np.float32), source.cpu().numpy().reshape(-1))
        spy.copy_buffer_to_torch_tensor(buffer, target)
        assert torch.equal(source, target)

    def test_errors(self, where: str) -> None:
        buffer = device_of(where).create_buffer(size=16, usage=spy.BufferUsage.unordered_access)
        with pytest.raises(ValueError, match="80 bytes, the buffer 16"):
            spy.copy_torch_tensor_to_buffer(torch.zeros(20, device=where), buffer)
        with pytest.raises(TypeError, match=r"torch\.Tensor"):
            spy.copy_torch_tensor_to_buffer([1], buffer)
        with pytest.raises(TypeError, match="copy_torch_tensor_to_buffer: expected a Buffer, got int"):
            spy.copy_torch_tensor_to_buffer(torch.zeros(2, device=where), 3)
        with pytest.raises(TypeError, match="copy_buffer_to_torch_tensor: expected a Buffer, got Tensor"):
            spy.copy_buffer_to_torch_tensor(torch.zeros(2), torch.zeros(2, device=where))


class TestDevice:
    def test_automatic(self) -> None:
        device = spy.create_torch_device()
        expected = spy.DeviceType.cuda if torch.cuda.is_available() else spy.DeviceType.cpu
        assert device.info.type == expected
        device.close()

    def test_torch_device(self, module: Any, where: str) -> None:
        found = module.device.torch_device
        assert isinstance(found, torch.device) and torch.empty(1, device=where).device == found
        assert torch.device(module.polynomial(2, 8, -1, torch.ones(2, device=found)).device) == found

    def test_cpu_takes_no_other_device(self) -> None:
        spy.create_torch_device(type=spy.DeviceType.cpu, torch_device="cpu").close()
        with pytest.raises(ValueError, match="torch_device is cuda:1"):
            spy.create_torch_device(type=spy.DeviceType.cpu, torch_device="cuda:1")
        with pytest.raises(ValueError, match="torch_device is cuda:0"):
            spy.create_torch_device(type=spy.DeviceType.cpu, torch_device=0)
        for wrong, error in ((1.5, TypeError), (True, TypeError), ("banana", ValueError), (-1, ValueError)):
            with pytest.raises(error, match=f"'torch_device' is an index.*got {wrong!r}"):
                spy.create_torch_device(torch_device=wrong)

    def test_vulkan_is_the_gpu_of_torch(self) -> None:
        if not spy.Device.enumerate_adapters(spy.DeviceType.vulkan):
            pytest.skip("no Vulkan device here")
        if not torch.cuda.is_available():
            device = spy.create_torch_device(type=spy.DeviceType.vulkan)
            assert device.torch_device == torch.device("cpu")
            with pytest.raises(ValueError, match="torch_device is cuda:0"):
                spy.create_torch_device(type=spy.DeviceType.vulkan, torch_device="cuda:0")
            return
        try:
            device = spy.create_torch_device(type=spy.DeviceType.vulkan)
        except RuntimeError as error:
            assert torch.cuda.get_device_name() in str(error)
        else:
            assert device.info.adapter_name == torch.cuda.get_device_name()

    def test_no_cuda(self) -> None:
        if torch.cuda.is_available():
            pytest.skip("torch has a CUDA device")
        with pytest.raises(RuntimeError, match="create_torch_device: CUDA was asked for"):
            spy.create_torch_device(type=spy.DeviceType.cuda)

    def test_current_device_stays(self) -> None:
        if not torch.cuda.is_available():
            pytest.skip("torch has no CUDA device")
        before = torch.cuda.current_device()
        last = torch.cuda.device_count() - 1
        device = spy.create_torch_device(type=spy.DeviceType.cuda, torch_device=f"cuda:{last}")
        assert torch.cuda.current_device() == before
        x = torch.ones(3, device=f"cuda:{last}")
        module = spy.Module.load_from_source(device, "other_gpu", "float twice(float x) { return 2 * x; }")
        assert module.twice(x).tolist() == [2, 2, 2] and torch.cuda.current_device() == before


def test_pairs_belong_to_backward_calls(module: Any, x: Any) -> None:
    for args, kwargs in ((2, 8, -1, spy.diff_pair(x, None)), {}), ((2, 8, -1), {"x": spy.diff_pair(x, None)}):
        with pytest.raises(TypeError, match=r"argument x: diff_pair belongs to \.bwds"):
            module.polynomial(*args, **kwargs)
