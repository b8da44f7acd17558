"""What happens to tensors between and around the passes: a Slang product must do what torch.mul does there.

Each scenario takes the operation, and gives values or raises; both operations must give the same, or raise the same type.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.needs_kernels

import slangpy as spy  # noqa: E402  (after torch is known to be there)

SOURCE = """
[Differentiable] float product(float a, float b) { return a * b; }
struct Pair : IDifferentiable { float a; float b; }
[Differentiable] float of_pair(Pair pair) { return pair.a * pair.b; }
"""
Operation = Callable[..., Any]
Scenario = Callable[[Operation, str], Any]
SCENARIOS: dict[str, Scenario] = {}


def scenario(function: Scenario) -> Scenario:
    SCENARIOS[function.__name__] = function
    return function


def leaf(where: str) -> Any:
    return torch.tensor([1.0, 2.0, 3.0], device=where, requires_grad=True)


def between(change: Callable[[Any, Any], Any]) -> Scenario:
    """x * k; then `change(x, k)`; then the backward pass."""

    def run(op: Operation, where: str) -> Any:
        x, k = leaf(where), torch.full((3,), 4.0, device=where)
        y = op(x, k)
        change(x, k)
        y.sum().backward()
        return x.grad

    return run


def both_in_the_graph(op: Operation, where: str) -> Any:
    x, k = leaf(where), leaf(where)
    y = op(x, k)
    with torch.no_grad():
        x.add_(1)
    y.sum().backward()
    return x.grad


SCENARIOS |= {
    "set_ of another size": between(lambda x, k: k.set_(torch.ones(2, device=k.device))),
    "set_ of the same size": between(lambda x, k: k.set_(torch.ones(3, device=k.device))),
    "data of the same size": between(lambda x, k: setattr(k, "data", torch.full((3,), 5.0, device=k.device))),
    "resize_as_": between(lambda x, k: k.resize_as_(torch.ones(7, device=k.device))),
    "a constant changed in place": between(lambda x, k: k.add_(1)), "the leaf changed in place": both_in_the_graph,
    "swapped tensors": between(lambda x, k: torch.utils.swap_tensors(k, torch.full((3,), 9.0, device=k.device))),
}  # fmt: skip


@scenario
def retained(op: Operation, where: str) -> Any:
    x = leaf(where)
    y = op(x, x).sum()
    return [torch.autograd.grad(y, x, retain_graph=True)[0] for _ in range(3)]


@scenario
def retained_no_more(op: Operation, where: str) -> Any:
    x = leaf(where)
    y = op(x, x).sum()
    torch.autograd.grad(y, x)
    return torch.autograd.grad(y, x)


def hooked(hook: Callable[[Any], Any]) -> Scenario:
    def run(op: Operation, where: str) -> Any:
        x = leaf(where)
        y = op(x, x)
        z = y * 1
        y.register_hook(hook)
        z.sum().backward()
        return x.grad

    return run


SCENARIOS |= {
    "a hook gives another dtype": hooked(lambda g: g.double()), "a hook gives another shape": hooked(lambda g: g.sum()),
    "a hook gives an expanded one": hooked(lambda g: torch.ones((), device=g.device).expand(3)),
    "a hook gives one on meta": hooked(lambda g: g.to("meta")), "a hook works in place": hooked(lambda g: g.mul_(2)),
}  # fmt: skip


@scenario
def prehook_without_a_gradient(op: Operation, where: str) -> Any:
    x = leaf(where)
    y = op(x, x)
    y.grad_fn.register_prehook(lambda grads: (None,))
    (y * 1).sum().backward()
    return x.grad


class Severed(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, a: Any, b: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        return a + b

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        return None, g


@scenario
def a_function_gives_no_gradient(op: Operation, where: str) -> Any:
    x, other = leaf(where), leaf(where)
    Severed.apply(op(x, x), op(other, other)).sum().backward()
    return [x.grad, other.grad]


@scenario
def swapped_parameters(op: Operation, where: str) -> Any:
    p, q = (torch.nn.Parameter(torch.full((3,), v, device=where)) for v in (1.0, 4.0))
    found = [op(p, 2.0).detach() for _ in range(3)]
    torch.utils.swap_tensors(p, q)
    y = op(p, 2.0)
    y.sum().backward()
    return [*found, y.detach(), p.grad, q.grad]


@scenario
def functional_call(op: Operation, where: str) -> Any:
    class Layer(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w = torch.nn.Parameter(torch.ones(3, device=where))

        def forward(self, x: Any) -> Any:
            return op(self.w, x)

    layer, w = Layer(), torch.full((3,), 7.0, device=where, requires_grad=True)
    y = torch.func.functional_call(layer, {"w": w}, (leaf(where).detach(),))
    y.sum().backward()
    return [y.detach(), w.grad, layer.w.grad]


@scenario
def data_of_other_sizes(op: Operation, where: str) -> Any:
    x, found = torch.ones(3, device=where), []
    for other in (torch.ones(3), torch.ones(5) * 3, torch.ones(2, 4).T, torch.tensor(6.0), torch.ones(0)):
        x.data = other.to(where)
        found += [op(x, 2.0) for _ in range(3)]
    return found


@scenario
def inference_result_in_a_graph(op: Operation, where: str) -> Any:
    with torch.inference_mode():
        y = op(torch.ones(3, device=where), 2.0)
    return op(y, leaf(where))


@scenario
def inference_result_without_a_graph(op: Operation, where: str) -> Any:
    x = leaf(where)
    with torch.inference_mode():
        y = op(x, x)
    return [y, y.is_inference(), y.requires_grad, op(y, 2.0)]


@scenario
def negated_views(op: Operation, where: str) -> Any:
    c = torch.tensor([1 + 2j, 3 - 4j], device=where, requires_grad=True)
    op(c.conj().imag, torch.tensor([2.0, 3.0], device=where)).sum().backward()
    return torch.view_as_real(c.grad)


@scenario
def jacobian(op: Operation, where: str) -> Any:
    return torch.autograd.functional.jacobian(lambda x: op(x, x), torch.ones(3, device=where))


@scenario
def saved_on_cpu_and_checkpointed(op: Operation, where: str) -> Any:
    x = leaf(where)
    with torch.autograd.graph.save_on_cpu():
        y = op(x, x)
    z = torch.utils.checkpoint.checkpoint(lambda a: op(a, y), x, use_reentrant=False)
    z.sum().backward()
    return x.grad


@scenario
def backward_on_another_thread(op: Operation, where: str) -> Any:
    x = leaf(where)
    y = op(x, x).sum()
    thread = threading.Thread(target=y.backward)
    thread.start()
    thread.join()
    return x.grad


@scenario
def without_elements(op: Operation, where: str) -> Any:
    x = torch.ones(0, device=where, requires_grad=True)
    y = op(x, x)
    y.sum().backward()
    return [y.detach(), x.grad]


def outcome(run: Callable[[], Any]) -> Any:
    try:
        found = run()
    except Exception as error:
        return RuntimeError if isinstance(error, RuntimeError) else type(error)
    return [
        item.tolist() if isinstance(item, torch.Tensor) else item
        for item in (found if isinstance(found, list) else [found])
    ]


@pytest.mark.usefixtures("bridge")
@pytest.mark.parametrize("road", ["plain", "struct"])
def test_like_torch(where: str, road: str) -> None:
    device = spy.create_torch_device(type=spy.DeviceType[where])
    module = spy.Module.load_from_source(device, "like_torch", SOURCE)
    op: Operation = module.product if road == "plain" else lambda a, b: module.of_pair({"a": a, "b": b})
    wrong = {}
    for name, run in SCENARIOS.items():
        expected = outcome(lambda run=run: run(torch.mul, where))
        found = outcome(lambda run=run: run(op, where))
        if found != expected:
            wrong[name] = (found, expected)
    assert not wrong
