"""What torch keeps of a call and gives back: saved tensors and their hooks, gradients, storage that is freed; and second
derivatives, which are right or refused on every road."""

from __future__ import annotations

import io
import itertools
import threading
from typing import Any

import pytest

torch = pytest.importorskip("torch")
from tiers import gate  # noqa: E402
from torch.autograd.graph import save_on_cpu, saved_tensors_hooks  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402

import slangpy as spy  # noqa: E402

ROADS = ["plain", "struct", "inout", "inout view", "out", "out view", "result", "whole", "whole in place"]
TWICE = ["plain", "struct"]
"""The roads with second derivatives: no tensor is written."""


def leaf(where: str, *values: float) -> Any:
    return torch.tensor(values or (1, 2, 3), dtype=torch.float32, device=where, requires_grad=True)


def squares(module: Any, road: str, k: Any, x: Any) -> Any:
    """k * x * x, by each road into the graph."""
    index = spy.grid((x.shape[0],))
    if road == "plain":
        return module.polynomial(k, 0.0, 0.0, x)
    if road == "struct":
        return module.shade({"n": k, "l": x, "rough": x})
    if road in ("inout", "inout view"):
        v = x * 1
        module.scale(k, v[:] if "view" in road else v)
        return v
    if road in ("out", "out view"):
        y = torch.empty(2, *x.shape, device=x.device) if "view" in road else torch.empty_like(x)
        module.poly_out(k, 0.0, 0.0, x, y[1] if "view" in road else y)
        return y[1] if "view" in road else y
    if road == "result":
        return module.polynomial(k, 0.0, 0.0, x, _result=torch.empty_like(x))
    y = torch.empty_like(x) if road == "whole" else x * 1
    module.whole(index, x, y) if road == "whole" else module.square_it(index, y)
    return k * y


def pickled(tensor: Any) -> bytes:
    stream = io.BytesIO()
    torch.save(tensor, stream)
    return stream.getvalue()


HOOKS = {
    "the same": (lambda t: t, lambda t: t),
    "copies": (lambda t: t.clone(), lambda t: t.clone()),
    "detached": (lambda t: t.detach(), lambda t: t),
    "numpy": (lambda t: (t.device, t.detach().cpu().numpy().copy()), lambda p: torch.from_numpy(p[1]).to(p[0])),
    "pickled": (pickled, lambda data: torch.load(io.BytesIO(data))),
    "other strides": (lambda t: t, lambda t: torch.stack([t, t, t], -1)[..., 1]),
    "one step back": (lambda t: t.flip(0), lambda t: t.flip(0)),
    "negated": (lambda t: t, lambda t: (-t)._neg_view()),
}
WRONG = {
    "double": lambda t: t.double(),
    "half": lambda t: t.half(),
    "fewer": lambda t: t[:2],
    "one": lambda t: t[:1],
    "none": lambda t: t[:0],
    "another rank": lambda t: t[None],
    "expanded": lambda t: t[:1].expand(300),
}


def in_gate(case: tuple[str, str]) -> bool:
    """Everything on one road, and one thing on every road."""
    name, road = case
    return road == "plain" or name in ("copies", "fewer")


class TestHooks:
    @pytest.mark.parametrize(("name", "road"), gate(itertools.product(HOOKS, ROADS), in_gate))
    def test_what_is_equal_is_taken(self, module: Any, where: str, name: str, road: str) -> None:
        pack, unpack = HOOKS[name]
        for _ in range(2):  # through Python, then natively
            k, x = leaf(where, 2, 3, 4), leaf(where)
            with saved_tensors_hooks(pack, unpack):
                y = squares(module, road, k, x)
            y.sum().backward()
            assert x.grad.tolist() == [4, 12, 24] and k.grad.tolist() == [1, 4, 9]

    @pytest.mark.parametrize(("name", "road"), gate(itertools.product(WRONG, ROADS), in_gate))
    def test_what_differs_is_refused(self, module: Any, where: str, name: str, road: str) -> None:
        factor = (
            (lambda: 2.0) if "whole" in road else (lambda: leaf(where, 2, 3, 4))
        )  # there it is torch that multiplies
        squares(module, road, factor(), leaf(where)).sum().backward()  # the native way is known
        x = leaf(where)
        with saved_tensors_hooks(lambda t: t, WRONG[name]):
            y = squares(module, road, factor(), x)
        with pytest.raises(RuntimeError, match=r"a saved tensor is .*but the forward pass had float \[3\] on"):
            y.sum().backward()
        assert x.grad is None

    def test_a_call_takes_its_own_tensors_only(self, module: Any, where: str) -> None:
        x = leaf(where)
        call = squares(module, "plain", 2.0, x).grad_fn.call
        for wrong in (None, 3, "x", (), (x, x), {}):
            with pytest.raises(TypeError, match="polynomial: the saved tensors of a call are a tuple of 1, got"):
                call.checked(wrong)
        assert call.checked([x]) == call.checked((x,)) == [x]

    def test_another_device(self, module: Any, where: str) -> None:
        with saved_tensors_hooks(lambda t: t, lambda t: t.to("meta")):
            y = squares(module, "plain", 2.0, leaf(where))
        with pytest.raises(TypeError, match="polynomial: a saved tensor: Unsupported torch device meta"):
            y.sum().backward()

    def test_offloading(self, module: Any, where: str) -> None:
        for road in ROADS:
            x = leaf(where)
            with save_on_cpu():
                y = squares(module, road, 2.0, x)
            y.sum().backward()
            assert x.grad.tolist() == [4, 8, 12]

    @pytest.mark.parametrize("reentrant", [True, False])
    def test_checkpoints(self, module: Any, where: str, reentrant: bool) -> None:
        for road in ROADS:
            k, x = leaf(where, 2, 3, 4), leaf(where)
            checkpoint(
                lambda k, x, road=road: squares(module, road, k, x), k, x, use_reentrant=reentrant
            ).sum().backward()
            assert x.grad.tolist() == [4, 12, 24] and k.grad.tolist() == [1, 4, 9]


@pytest.mark.usefixtures("bridge")
class TestReplaced:
    """Tensors that lose their memory between the passes, without torch's counters noticing."""

    @pytest.mark.parametrize("road", ["plain", "struct", "inout"])
    def test_data(self, module: Any, where: str, road: str) -> None:
        for other in (torch.ones(1), torch.ones(3).double(), torch.ones(3, 1), torch.ones(0)):
            k, x = torch.ones(3, device=where), leaf(where)
            y = squares(module, road, k, x)
            k.data = other.to(where)
            with pytest.raises(RuntimeError, match=r"a saved tensor is .*but the forward pass had float \[3\]"):
                y.sum().backward()

    @pytest.mark.parametrize("road", ["plain", "struct", "inout"])
    @pytest.mark.parametrize("left", [0, 40])
    def test_storage(self, module: Any, where: str, road: str, left: int) -> None:
        for first in (0, 1, 5):
            base = torch.ones(100_000 + first, device=where)
            k, x = base[first:], torch.ones(100_000, device=where, requires_grad=True)
            for _ in range(2):
                y = squares(module, road, k, x)
                y.sum().backward(retain_graph=True)
                x.grad = None
            base.untyped_storage().resize_(left)
            with pytest.raises(RuntimeError, match=r"the storage of this tensor has \d+ bytes, but its elements need"):
                y.sum().backward()
            if left == 0:
                with pytest.raises(RuntimeError, match=r"argument .*the storage of this tensor has 0 bytes"):
                    squares(module, road, k, x)

    def test_storage_that_is_back(self, module: Any, where: str) -> None:
        k, x = torch.full((1000,), 2.0, device=where), torch.ones(1000, device=where, requires_grad=True)
        y = squares(module, "plain", k, x)
        k.untyped_storage().resize_(0)
        k.untyped_storage().resize_(4000)
        with torch.no_grad():
            k.detach().data.fill_(2.0)
        y.sum().backward()
        assert x.grad.tolist() == [4.0] * 1000

    def test_resized(self, module: Any, where: str) -> None:
        for change in (
            lambda k: k.resize_(1),
            lambda k: k.resize_(100_000),
            lambda k: k.set_(torch.ones(2, device=where)),
        ):
            k, x = torch.ones(3, device=where), leaf(where)
            y = squares(module, "plain", k, x)
            change(k)
            with pytest.raises(RuntimeError, match="modified by an inplace operation"):
                y.sum().backward()


class TestGradients:
    """Gradients of a result as torch, or anybody, hands them to the node."""

    @pytest.mark.parametrize("road", ROADS)
    def test_layouts(self, module: Any, where: str, road: str) -> None:
        seeds = {
            "contiguous": torch.tensor([1.0, 2, 3]), "step": torch.arange(8.0)[2::2] / 2, "expanded": torch.ones(1).expand(3),
            "negated": torch.tensor([1 - 1j, 1 - 2j, 1 - 3j]).conj().imag,
        }  # fmt: skip
        for seed in seeds.values():
            for _ in range(2):
                x = leaf(where)
                squares(module, road, 2.0, x).backward(seed.to(where))
                assert torch.equal(x.grad, 4 * x.detach() * seed.to(where))

    @pytest.mark.parametrize(
        "wrong", [torch.ones(3).double(), torch.ones(3).half(), torch.ones(2), torch.ones(1), torch.ones(())]
    )
    def test_a_node_called_by_hand(self, module: Any, where: str, wrong: Any) -> None:
        for road in ("plain", "struct", "inout"):
            for _ in range(2):
                y = squares(module, road, 2.0, leaf(where))
                with pytest.raises(RuntimeError, match=r"gradient is .*but the forward pass had float \[3\]"):
                    y.grad_fn.apply(wrong.to(where))
                y.sum().backward()

    def test_sparse_and_batched(self, module: Any, where: str) -> None:
        y = squares(module, "plain", 2.0, leaf(where))
        with pytest.raises(TypeError, match=r"polynomial: .*torch\.sparse_coo.*to_dense"):
            y.backward(torch.ones(3, device=where).to_sparse())
        x = leaf(where)
        with pytest.raises((TypeError, NotImplementedError), match="polynomial: .*vmap"):
            torch.autograd.grad(
                squares(module, "plain", 2.0, x), [x], torch.eye(3, device=where), is_grads_batched=True
            )

    def test_hooks_that_replace(self, module: Any, where: str) -> None:
        for road in ROADS:
            x = leaf(where)
            y = squares(module, road, 2.0, x)
            y.register_hook(lambda g: g * 10)
            y.sum().backward()
            assert x.grad.tolist() == [40, 80, 120]

    def test_threads(self, module: Any, where: str) -> None:
        found: dict[int, Any] = {}

        def work(number: int) -> None:
            for _ in range(20):
                x = leaf(where)
                (squares(module, "plain", float(number), x) + squares(module, "inout", 1.0, x)).sum().backward()
                found[number] = x.grad.tolist()

        threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found == {n: [2.0 * (n + 1) * v for v in (1, 2, 3)] for n in range(6)}


def checked_second(road: str, total: Any, wanted: list[Any], expected: list[Any]) -> None:
    """The derivatives of a function of first gradients: as torch has them, or refused where the road has none."""
    assert total.requires_grad
    for allow_unused in (False, True):
        if road not in TWICE:
            with pytest.raises(RuntimeError, match="once_differentiable"):
                torch.autograd.grad(total, wanted, retain_graph=True, allow_unused=allow_unused)
            continue
        found = torch.autograd.grad(total, wanted, retain_graph=True, allow_unused=allow_unused)
        for actual, reference in zip(found, expected, strict=True):
            assert actual.dtype == torch.float32 and actual.shape == reference.shape
            torch.testing.assert_close(actual.double(), reference, rtol=1e-6, atol=0)


def formula(k: Any, x: Any) -> Any:
    return k * x * x


class TestTwice:
    """A second derivative is right or refused, whichever way is asked for it: it is never zero or absent in silence."""

    @pytest.mark.parametrize("road", ROADS)
    @pytest.mark.parametrize("wanted", ["x", "k", "both"])
    def test_by_inputs(self, module: Any, where: str, road: str, wanted: str) -> None:
        def gradients(function: Any, k: Any, x: Any) -> tuple[list[Any], Any]:
            inputs = {"x": [x], "k": [k], "both": [k, x]}[wanted]
            others = [t if any(t is i for i in inputs) else t.detach() for t in (k, x)]
            first = torch.autograd.grad(function(*others).sum(), inputs, create_graph=True)
            return inputs, sum((g * (i + 2)).sum() for i, g in enumerate(first))

        for _ in range(2):  # through Python, then natively
            k, x = leaf(where, 2, 3, 4), leaf(where)
            inputs, total = gradients(lambda k, x: squares(module, road, k, x), k, x)
            if "whole" in road and wanted == "k":
                continue  # there k is torch's own factor
            wide, reference = gradients(formula, *(t.detach().double().requires_grad_() for t in (k, x)))
            if wanted == "k":  # the function is linear in k, and x a constant: torch's graph ends there
                assert not reference.requires_grad
                expected = [torch.zeros_like(wide[0])]
            else:
                expected = torch.autograd.grad(reference, wide, retain_graph=True)
            checked_second(road, total, inputs, expected)
            if road in TWICE:
                total.backward()
                for i, e in zip(inputs, expected, strict=True):
                    torch.testing.assert_close(i.grad.double(), e, rtol=1e-6, atol=0)
            else:
                with pytest.raises(RuntimeError, match="once_differentiable"):
                    total.backward(retain_graph=True)

    @pytest.mark.parametrize("road", ROADS)
    def test_through_the_seed(self, module: Any, where: str, road: str) -> None:
        x, seed = leaf(where), leaf(where, 5, 6, 7)
        (g,) = torch.autograd.grad(squares(module, road, 2.0, x), [x], seed, create_graph=True)
        checked_second(road, (g * g.detach()).sum(), [seed], [g.detach().double() * 4 * x.detach().double()])

    @pytest.mark.parametrize("road", ROADS)
    def test_hessians(self, module: Any, where: str, road: str) -> None:
        x = leaf(where).detach()

        def hessian(function: Any, x: Any) -> Any:
            return torch.autograd.functional.hessian(lambda x: (function(x) * x).sum(), x)

        if road not in TWICE:
            with pytest.raises(RuntimeError, match="once_differentiable"):
                hessian(lambda x: squares(module, road, 2.0, x), x)
            return
        found = hessian(lambda x: squares(module, road, 2.0, x), x)
        reference = hessian(lambda x: formula(2.0, x), x.double())
        torch.testing.assert_close(found.double(), reference, rtol=1e-6, atol=0)
