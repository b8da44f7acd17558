"""Slang calls recorded into CUDA graphs: values and gradients of replays, and what a capture refuses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("torch has no CUDA device", allow_module_level=True)

from torch_support import device_of, module_of  # noqa: E402

import slangpy as spy  # noqa: E402

SOURCE = """
[Differentiable] float polynomial(float a, float b, float c, float x) { return a * x * x + b * x + c; }
[Differentiable] float cubed(float x) { return x * x * x; }
uniform float gain;
[Differentiable] float amplified(float x) { return gain * x; }
"""


@pytest.fixture
def module() -> Any:
    return module_of("cuda")


def fresh(name: str) -> Any:
    """A module none of whose kernels is built yet."""
    return spy.Module.load_from_source(device_of("cuda"), f"cuda_graphs_{name}", SOURCE)


def warm(work: Callable[[], Any]) -> None:
    """Runs `work` on a side stream, as torch asks for before a capture."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            work()
    torch.cuda.current_stream().wait_stream(stream)


def leaf(*values: float) -> Any:
    return torch.tensor(values, dtype=torch.float32, device="cuda", requires_grad=True)


class TestReplays:
    def test_forward(self, module: Any) -> None:
        x = torch.tensor([1.0, 2, 3, 4], device="cuda")
        warm(lambda: module.polynomial(2, 8, -1, x))
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = module.polynomial(2, 8, -1, x)
        for k in (1.0, 5.0):
            x.fill_(k)
            graph.replay()
            assert y.tolist() == [2 * k * k + 8 * k - 1] * 4

    def test_forward_and_backward(self, module: Any) -> None:
        x, p = leaf(1, 2, 3, 4), leaf(2)
        seed = torch.tensor([1.0, 2, 3, 4], device="cuda")

        def work() -> Any:
            x.grad = p.grad = None
            y = module.polynomial(p, 8, -1, x)
            y.backward(seed)
            return y

        warm(work)
        x.grad = p.grad = None
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = work()
        x.data.fill_(1.0)
        for _ in range(2):  # gradients are written anew, not added to
            graph.replay()
            assert y.tolist() == [9] * 4 and x.grad.tolist() == [12, 24, 36, 48] and p.grad.tolist() == [10]

    def test_written_tensors(self, module: Any) -> None:
        x = leaf(1, 2, 3)
        out = torch.empty(3, device="cuda")

        def work() -> Any:
            x.grad = None
            v = x * 1
            module.scale(2.0, v)
            y = module.polynomial(1, 0, 0, v, _result=out.detach())
            y.sum().backward()
            return y

        warm(work)
        graph = torch.cuda.CUDAGraph()
        x.grad = None
        with torch.cuda.graph(graph):
            work()
        x.data.copy_(torch.tensor([1.0, 0.5, 2.0]))
        graph.replay()
        expected = x.detach().clone().requires_grad_(True)
        value = (2 * expected * expected) ** 2
        value.sum().backward()
        torch.testing.assert_close(out, value.detach())
        torch.testing.assert_close(x.grad, expected.grad)

    def test_large_reduction(self, module: Any) -> None:
        p = leaf(0.5)
        x = torch.rand(1 << 20, device="cuda")

        def work() -> None:
            p.grad = None
            module.polynomial(p, 8, -1, x).sum().backward()

        warm(work)
        graph = torch.cuda.CUDAGraph()
        p.grad = None
        with torch.cuda.graph(graph):
            work()
        for _ in range(3):
            x.copy_(torch.rand(1 << 20, device="cuda"))
            graph.replay()
            torch.testing.assert_close(p.grad, (x.double() ** 2).sum().float().reshape(1), rtol=1e-5, atol=0)

    def test_training_step(self, module: Any) -> None:
        w = torch.nn.Parameter(torch.tensor([0.5], device="cuda"))
        b = torch.nn.Parameter(torch.zeros(1, device="cuda"))
        x = torch.linspace(-1, 1, 1000, device="cuda")
        target = 3 * x * x + 2 * x
        optimiser = torch.optim.Adam([w, b], lr=0.05, capturable=True)

        def step() -> None:
            optimiser.zero_grad(set_to_none=True)
            loss = ((module.polynomial(a=w, b=b, c=0, x=x) - target) ** 2).mean()
            loss.backward()
            optimiser.step()

        warm(step)
        graph = torch.cuda.CUDAGraph()
        optimiser.zero_grad(set_to_none=True)
        with torch.cuda.graph(graph):
            step()
        for _ in range(400):
            graph.replay()
        assert w.item() == pytest.approx(3, abs=0.05) and b.item() == pytest.approx(2, abs=0.02)

    def test_make_graphed_callables(self, module: Any) -> None:
        class Layer(torch.nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.a = torch.nn.Parameter(torch.tensor([2.0], device="cuda"))

            def forward(self, x: Any) -> Any:
                return module.polynomial(self.a, 8, -1, x)

        layer = Layer()
        graphed = torch.cuda.make_graphed_callables(layer, (leaf(1, 2, 3, 4),))
        x = leaf(4, 3, 2, 1)
        y = graphed(x)
        y.sum().backward()
        assert y.tolist() == [63, 41, 23, 9] and x.grad.tolist() == [24, 20, 16, 12]
        assert layer.a.grad.tolist() == [30]

    def test_spy_tensors_beside(self, module: Any) -> None:
        device = device_of("cuda")
        ones = spy.Tensor.from_numpy(device, np.ones(4, np.float32))
        target = spy.Tensor.zeros(device, (4,), "float")
        x = torch.zeros(4, device="cuda")
        warm(lambda: module.add_to(x, ones, target))
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            module.add_to(x, ones, target)
        x.fill_(5)
        graph.replay()
        torch.cuda.synchronize()
        assert target.to_numpy().tolist() == [6] * 4

    def test_own_stream(self, module: Any) -> None:
        x = torch.tensor([1.0, 2], device="cuda")
        y = torch.empty(2, device="cuda")
        stream = torch.cuda.Stream()
        handle = spy.NativeHandle.from_cuda_stream(stream.cuda_stream)
        function = module.polynomial.cuda_stream(handle)
        torch.cuda.synchronize()
        function(2, 8, -1, x, _result=y)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            function(2, 8, -1, x, _result=y)
        y.zero_()
        graph.replay()
        assert y.tolist() == [9, 23]


class TestRefused:
    """What cannot be recorded is said so, and the capture goes on."""

    def refused(self, text: str, call: Callable[[], Any]) -> None:
        x = torch.ones(2, device="cuda")
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            with pytest.raises(RuntimeError, match=text):
                call()
            y = x + 1
        graph.replay()
        assert y.tolist() == [2, 2]

    def test_first_call(self) -> None:
        cold = fresh("first").polynomial
        x = torch.ones(4, device="cuda")
        self.refused("call polynomial once before capturing", lambda: cold(2, 8, -1, x))
        assert cold(2, 8, -1, x).tolist() == [9] * 4

    def test_first_backward(self) -> None:
        half = fresh("backward").cubed
        x = leaf(1, 2)
        with torch.no_grad():
            half(x)
        self.refused(
            "call cubed once before capturing, with its backward pass", lambda: half(x).backward(torch.ones_like(x))
        )
        half(x).sum().backward()
        assert x.grad.tolist() == [3, 12]

    def test_numpy_arguments(self, module: Any) -> None:
        x, k = torch.ones(4, device="cuda"), np.ones(4, np.float32)
        module.polynomial(k, 8, -1, x)
        self.refused("argument a is copied from the host", lambda: module.polynomial(k, 8, -1, x))

    def test_host_results(self, module: Any) -> None:
        x = torch.ones(4, device="cuda")
        module.polynomial(2, 8, -1, x, _result="numpy")
        self.refused("the result is copied to the host", lambda: module.polynomial(2, 8, -1, x, _result="numpy"))

    def test_cpu_numbers(self, module: Any) -> None:
        x, a = torch.ones(4, device="cuda"), torch.tensor(2.0)
        assert module.polynomial(a, 8, -1, x).tolist() == [9] * 4
        self.refused("argument a is a CPU tensor", lambda: module.polynomial(a, 8, -1, x))

    def test_globals(self) -> None:
        function = fresh("globals").amplified.set(gain=3.0)
        x = torch.ones(4, device="cuda")
        assert function(x).tolist() == [3] * 4
        self.refused("cannot be recorded into a CUDA graph", lambda: function(x))
