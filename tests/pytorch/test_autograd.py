"""Slang calls as nodes of torch's graph."""

from __future__ import annotations

import gc
import threading
import weakref
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch_support import check, device_of, polynomial  # noqa: E402

import slangpy as spy  # noqa: E402

pytestmark = pytest.mark.usefixtures("bridge")


def leaf(values: Any, where: str, **options: Any) -> Any:
    return torch.tensor(values, device=where, requires_grad=True, dtype=torch.float32, **options)


@pytest.fixture
def x(where: str) -> Any:
    return leaf([1.0, 2, 3, 4], where)


class TestGraphs:
    def test_documented_page(self, module: Any, x: Any) -> None:
        result = module.polynomial(a=2, b=8, c=-1, x=x)
        assert result.tolist() == [9, 23, 41, 63] and result.requires_grad and "grad_fn" in repr(result)
        result.backward(torch.ones_like(result))
        assert x.grad.tolist() == [12, 16, 20, 24]

    def test_broadcast_parameter(self, module: Any, where: str, x: Any) -> None:
        p = leaf([2.0], where)
        module.polynomial(a=p, b=8, c=-1, x=x).sum().backward()
        assert p.grad.tolist() == [30] and x.grad.tolist() == [12, 16, 20, 24]

    def test_expanded_input(self, module: Any, where: str) -> None:
        base = leaf([[1.0], [2.0]], where)
        module.polynomial(2, 8, -1, base.expand(2, 5)).sum().backward()
        assert base.grad.tolist() == [[60.0], [80.0]]

    def test_one_tensor_twice(self, module: Any, x: Any) -> None:
        module.add(x, x).sum().backward()
        assert x.grad.tolist() == [2, 2, 2, 2]

    def test_only_what_is_asked_for(self, module: Any, where: str, x: Any) -> None:
        p = leaf([2.0], where)
        y = module.polynomial(p, 8, -1, x).sum()
        (g,) = torch.autograd.grad(y, [x], retain_graph=True)
        assert g.tolist() == [12, 16, 20, 24]
        (g,) = torch.autograd.grad(y, [p], retain_graph=True)
        assert g.tolist() == [30] and p.grad is None and x.grad is None
        frozen = x.detach()
        module.polynomial(p, 8, -1, frozen).sum().backward()
        assert frozen.grad is None and p.grad.tolist() == [30]

    def test_unused(self, module: Any, where: str, x: Any) -> None:
        other = leaf([1.0], where)
        y = module.polynomial(2, 8, -1, x).sum()
        assert torch.autograd.grad(y, [x, other], allow_unused=True)[1] is None

    def test_retain_and_again(self, module: Any, x: Any) -> None:
        y = module.polynomial(2, 8, -1, x)
        y.backward(torch.ones_like(y), retain_graph=True)
        y.backward(torch.ones_like(y))
        assert x.grad.tolist() == [24, 32, 40, 48]
        with pytest.raises(RuntimeError, match="second time"):
            y.backward(torch.ones_like(y))

    def test_saved_tensors_are_checked(self, module: Any, x: Any) -> None:
        v = x * 1
        y = module.polynomial(2, 8, -1, v)
        v.add_(1)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y.sum().backward()

    def test_written_by_another_call(self, module: Any, x: Any) -> None:
        v = x * 1
        y = module.polynomial(2, 8, -1, v)
        module.scale(2.0, v)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y.sum().backward()

    def test_differentiable_twice(self, module: Any, x: Any) -> None:
        y = module.polynomial(2, 8, -1, x).sum()
        (g,) = torch.autograd.grad(y, [x], create_graph=True)
        assert g.tolist() == [12, 16, 20, 24]
        (h,) = torch.autograd.grad(g.sum(), [x], create_graph=True)
        assert h.tolist() == [4, 4, 4, 4]
        with pytest.raises(RuntimeError, match="third derivatives"):
            h.sum().backward()

    def test_missing_output_gradients(self, module: Any, where: str, x: Any) -> None:
        square, cube = torch.empty(4, device=where), torch.empty(4, device=where)
        module.split(x, square, cube)
        assert square.requires_grad and cube.requires_grad
        (g,) = torch.autograd.grad(cube.sum(), [x], retain_graph=True)
        assert g.tolist() == [3, 12, 27, 48]
        (square.sum() + cube.sum()).backward()
        assert x.grad.tolist() == [5, 16, 33, 56]

    def test_returned_and_written(self, module: Any, where: str, x: Any) -> None:
        cube = torch.empty(4, device=where)
        square = module.both(x, cube)
        (square + 2 * cube).sum().backward()
        assert x.grad.tolist() == [8, 28, 60, 104]
        cube = torch.empty(4, device=where)
        (g,) = torch.autograd.grad((module.both(x, cube) * 0 + cube).sum(), [x])
        assert g.tolist() == [3, 12, 27, 48]

    def test_vectors(self, module: Any, where: str) -> None:
        for make in (lambda t: t, lambda t: t.T.contiguous().T, lambda t: torch.cat([t, t], 1)[:, :3]):
            v = torch.rand(6, 3, device=where, requires_grad=True)
            seed = torch.rand(6, 3, device=where)
            (g,) = torch.autograd.grad(module.normalise(make(v)), [v], seed)
            (expected,) = torch.autograd.grad(make(v) / make(v).norm(dim=-1, keepdim=True), [v], seed)
            check(g, expected)

    def test_whole_and_gathered(self, module: Any, where: str, x: Any) -> None:
        at = torch.tensor([0, 0, 3], dtype=torch.int32, device=where)
        module.gather(spy.call_id(), at, x)  # spread over nothing: one element
        y = module.gather(spy.grid((3,)), at, x)
        y.sum().backward()
        assert x.grad.tolist() == [4, 0, 0, 8]
        rows = torch.rand(5, 4, device=where, requires_grad=True)
        module.total(rows).sum().backward()
        torch.testing.assert_close(rows.grad, 2 * rows.detach())

    def test_deterministic_mode(self, module: Any, where: str, x: Any) -> None:
        torch.use_deterministic_algorithms(True)
        at = torch.arange(3000, dtype=torch.int32, device=where) % 4
        seed = torch.randn(3000, device=where) * 10 ** torch.randint(-4, 5, (3000,), device=where)
        first, *rest = (torch.autograd.grad(module.gather(spy.grid((3000,)), at, x), [x], seed)[0] for _ in range(20))
        assert all(torch.equal(first, other) for other in rest)
        expected = torch.zeros(4, dtype=torch.float64, device=where).index_add(0, at, 2 * seed.double())
        check(first, (expected * x.detach()).float())
        single, *others = (
            torch.autograd.grad(module.polynomial(x[:1], 0.0, 0.0, seed), [x], seed)[0] for _ in range(20)
        )
        assert all(torch.equal(single, other) for other in others)

    def test_containers(self, module: Any, where: str, x: Any) -> None:
        power = leaf(2.0, where)
        scene = {"first": {"n": x, "l": x * 2, "rough": 1.0}, "light": {"power": power, "colour": 3.0}}
        y = module.render(scene, x)
        torch.testing.assert_close(y, 2 * x**3 + 6)
        y.sum().backward()
        torch.testing.assert_close(x.grad, 6 * x.detach() ** 2)
        assert power.grad.item() == 12

    def test_lists(self, module: Any, where: str) -> None:
        surfaces = [{"n": leaf(2.0, where), "l": leaf(3.0, where), "rough": 1.0} for _ in range(2)]
        with pytest.raises(NotImplementedError, match=r"requires grad.*torch\.stack"):
            module.shade(surfaces)  # rather than a graph that is cut
        with torch.no_grad():
            assert module.shade(surfaces).tolist() == [6, 6]
        stacked = {"n": torch.stack([s["n"] for s in surfaces]), "l": 3.0, "rough": 1.0}
        module.shade(stacked).sum().backward()
        assert [s["n"].grad.item() for s in surfaces] == [3, 3]

    def test_get_this(self, module: Any, x: Any) -> None:
        class Holder:
            def get_this(self) -> Any:
                return {"n": x, "l": x, "rough": 1.0}

        module.shade(Holder()).sum().backward()
        assert x.grad.tolist() == [2, 4, 6, 8]

    def test_numpy_is_copied(self, module: Any, x: Any) -> None:
        k = np.ones(4, np.float32)
        y = module.polynomial(k, 8, -1, x)
        k[:] = 100
        y.sum().backward()
        assert x.grad.tolist() == [10, 12, 14, 16]

    def test_spy_gradients(self, module: Any, where: str, x: Any) -> None:
        other = spy.Tensor.from_numpy(device_of(where), np.ones(4, np.float32)).with_grads()
        module.polynomial(other, 8, -1, x).sum().backward()
        assert x.grad.tolist() == [10, 12, 14, 16] and other.grad.to_numpy().tolist() == [1, 4, 9, 16]

    def test_bfloat16(self, module: Any, where: str) -> None:
        x = torch.tensor([1.0, 2, 3, 4], dtype=torch.bfloat16, device=where, requires_grad=True)
        p = torch.ones(1, dtype=torch.bfloat16, device=where, requires_grad=True)
        with pytest.raises(ValueError, match="does not match slang type"):
            module.polynomial(p, 8, -1, x)
        y = module.polynomial.convert("safe")(p, 8, -1, x)
        y.sum().backward()
        assert y.dtype == torch.float32 and p.grad.dtype == x.grad.dtype == torch.bfloat16
        assert p.grad.tolist() == [30] and x.grad.tolist() == [10, 12, 14, 16]

    def test_sixteen_bit_sum(self, where: str) -> None:
        from torch_support import template_of

        a = torch.ones(1, dtype=torch.float16, device=where, requires_grad=True)
        x = torch.full((4096,), 0.5, dtype=torch.float16, device=where)
        template_of(where, "half").poly(a, 0, 0, x).backward(torch.ones(4096, dtype=torch.float16, device=where))
        assert a.grad.dtype == torch.float16 and a.grad.item() == 1024


class TestNoGraph:
    def test_modes(self, module: Any, x: Any) -> None:
        with torch.no_grad():
            assert not module.polynomial(2, 8, -1, x).requires_grad
        assert module.polynomial(2, 8, -1, x).requires_grad
        assert not module.polynomial(2, 8, -1, x.detach()).requires_grad

    def test_constants_of_the_function(self, module: Any, where: str, x: Any) -> None:
        k = leaf([2.0], where)
        y = module.detached(k, x)
        y.sum().backward()
        assert k.grad is None and x.grad.tolist() == [4, 8, 12, 16]
        assert not module.detached(k, x.detach()).requires_grad
        held = leaf([1.0, 2, 3, 4], where)
        y = module.concrete(spy.grid((4,)), held, x)
        y.sum().backward()
        assert held.grad is None and x.grad.tolist() == [5, 10, 15, 20]

    def test_integers(self, module: Any, where: str, x: Any) -> None:
        assert not module.floor_of(x).requires_grad
        n = torch.tensor([1, 2, 3, 4], dtype=torch.int32, device=where)
        module.mixed(x, n).sum().backward()
        assert x.grad.tolist() == [2, 8, 18, 32]

    def test_not_differentiable(self, module: Any, x: Any) -> None:
        y = module.plain(x)
        assert y.tolist() == [1, 4, 9, 16]
        with pytest.raises(Exception, match="Could not call function 'plain': Function is not differentiable"):
            y.sum().backward()

    @pytest.mark.parametrize("form", ["numpy", "tensor"])
    def test_other_results_are_refused(self, module: Any, x: Any, form: str) -> None:
        with pytest.raises(RuntimeError, match=r"detach\(\).*no_grad"):
            module.polynomial(2, 8, -1, x, _result=form)
        with pytest.raises(RuntimeError, match=r"detach\(\).*no_grad"):
            module.lamp(x)
        with torch.no_grad():
            module.polynomial(2, 8, -1, x, _result=form)


class TestWritten:
    def test_documented_result(self, module: Any, x: Any) -> None:
        y, z = torch.empty(4, device=x.device), torch.empty(4, device=x.device)
        assert module.polynomial(2, 8, -1, x, _result=y) is y
        module.poly_out(2, 8, -1, x, z)
        (y + z).sum().backward()
        assert x.grad.tolist() == [24, 32, 40, 48]

    def test_leaf_as_output(self, module: Any, x: Any) -> None:
        y = torch.zeros(4, device=x.device, requires_grad=True)
        module.polynomial(2, 8, -1, x, _result=y)
        assert not y.is_leaf and y.tolist() == [9, 23, 41, 63]
        y.sum().backward()
        assert x.grad.tolist() == [12, 16, 20, 24]

    def test_previous_value_gets_no_gradient(self, module: Any, where: str, x: Any) -> None:
        old = leaf([1.0, 1, 1, 1], where)
        for source in (x, x.detach()):
            y = old * 3
            module.polynomial(2, 8, -1, source, _result=y)
            (g,) = torch.autograd.grad(y.sum(), [old], allow_unused=True) if y.requires_grad else (None,)
            assert g is None or not g.any()

    def test_no_grad_write(self, module: Any, x: Any) -> None:
        y = torch.empty(4, device=x.device)
        with torch.no_grad():
            module.polynomial(2, 8, -1, x, _result=y)
        assert not y.requires_grad and y._version == 1

    def test_view_as_output(self, module: Any, where: str, x: Any) -> None:
        w = leaf(np.ones((2, 4)).tolist(), where)
        base = w * 2
        module.polynomial(2, 8, -1, x, _result=base[1])
        assert base[1].tolist() == [9, 23, 41, 63]
        base.sum().backward()
        assert x.grad.tolist() == [12, 16, 20, 24] and w.grad.tolist() == [[2] * 4, [0] * 4]

    def test_inout_worked_example(self, module: Any, where: str) -> None:
        x = leaf([1.0, 2, 3], where)
        v = x * 1
        version = v._version
        module.scale(2.0, v)
        assert v.tolist() == [2, 8, 18] and "SlangFunction" in type(v.grad_fn).__name__ and v._version > version
        v.sum().backward()
        assert x.grad.tolist() == [4, 8, 12]

    def test_inout_of_constants(self, module: Any, where: str) -> None:
        k = leaf([2.0], where)
        v = torch.tensor([1.0, 2, 3], device=where)
        module.scale(k, v)
        assert v.requires_grad
        v.sum().backward()
        assert k.grad.tolist() == [14]

    def test_inout_twice(self, module: Any, where: str) -> None:
        x = leaf([1.0, 2, 3], where)
        v = x * 1
        module.scale(1.0, v)
        module.scale(1.0, v)
        v.sum().backward()
        assert x.grad.tolist() == [4, 32, 108]

    def test_inout_of_a_view(self, module: Any, where: str) -> None:
        x = leaf([[1.0, 2], [3, 4]], where)
        base = x * 1
        module.scale(1.0, base[:, 0])
        base.sum().backward()
        assert base.tolist() == [[1, 2], [9, 4]] and x.grad.tolist() == [[2, 1], [6, 1]]

    def test_inout_of_a_leaf(self, module: Any, x: Any) -> None:
        with pytest.raises(RuntimeError, match="argument v: a leaf Variable that requires grad is being used in an in-"):
            module.scale(2.0, x)
        assert x.tolist() == [1, 2, 3, 4]
        with torch.no_grad():
            module.scale(2.0, x)
        assert x.tolist() == [2, 8, 18, 32]

    def test_whole_tensors(self, module: Any, where: str, x: Any) -> None:
        y = torch.empty(4, device=where)
        module.whole(spy.grid((4,)), x, y)
        y.sum().backward()
        assert y.tolist() == [1, 4, 9, 16] and x.grad.tolist() == [2, 4, 6, 8]
        z = torch.zeros(4, device=where, requires_grad=True)
        module.whole(spy.grid((4,)), x, z)
        assert not z.is_leaf

    def test_whole_in_place(self, module: Any, where: str, x: Any) -> None:
        v = x * 1
        module.square_it(spy.grid((4,)), v)
        v.sum().backward()
        assert v.tolist() == [1, 4, 9, 16] and x.grad.tolist() == [2, 4, 6, 8]

    def test_source_is_target(self, module: Any, where: str, x: Any) -> None:
        v = x * 1
        module.polynomial(2, 8, -1, v, _result=v)
        assert v.tolist() == [9, 23, 41, 63]
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            v.sum().backward()


class TestTorchWays:
    def test_hooks(self, module: Any, x: Any) -> None:
        seen = []
        x.register_hook(lambda g: seen.append(g.clone()))
        y = module.polynomial(2, 8, -1, x)
        y.register_hook(lambda g: g * 2)
        y.sum().backward()
        assert seen[0].tolist() == [24, 32, 40, 48]

    def test_saved_tensor_hooks(self, module: Any, x: Any) -> None:
        packed = []
        with torch.autograd.graph.saved_tensors_hooks(lambda t: packed.append(t) or t, lambda t: t):
            y = module.polynomial(2, 8, -1, x)
        y.sum().backward()
        assert len(packed) == 1 and x.grad.tolist() == [12, 16, 20, 24]

    @pytest.mark.parametrize("reentrant", [True, False])
    def test_checkpoint(self, module: Any, x: Any, reentrant: bool) -> None:
        from torch.utils.checkpoint import checkpoint

        y = checkpoint(lambda t: module.polynomial(2, 8, -1, t), x, use_reentrant=reentrant)
        y.sum().backward()
        assert x.grad.tolist() == [12, 16, 20, 24]

    def test_parameters_train(self, module: Any, where: str) -> None:
        w = torch.nn.Parameter(torch.tensor([0.5], device=where))
        b = torch.nn.Parameter(torch.zeros(1, device=where))
        x = torch.linspace(-1, 1, 100, device=where)
        target = 3 * x * x + 2 * x
        optimiser = torch.optim.Adam([w, b], lr=0.05)
        for _ in range(400):
            optimiser.zero_grad()
            loss = ((module.polynomial(a=w, b=b, c=0, x=x) - target) ** 2).mean()
            loss.backward()
            optimiser.step()
        assert w.item() == pytest.approx(3, abs=0.05) and b.item() == pytest.approx(2, abs=0.02) and x.grad is None

    def test_subclass(self, module: Any, x: Any) -> None:
        class Marked(torch.Tensor):
            pass

        y = module.polynomial(2, 8, -1, x.as_subclass(Marked))
        assert type(y) is torch.Tensor
        y.sum().backward()
        assert x.grad.tolist() == [12, 16, 20, 24]

    def test_autocast_is_ignored(self, module: Any, where: str, x: Any) -> None:
        with torch.autocast(where, dtype=torch.bfloat16):
            y = module.polynomial(2, 8, -1, x)
        assert y.dtype == torch.float32

    def test_inference_tensors(self, module: Any, where: str, x: Any) -> None:
        with torch.inference_mode():
            k = torch.ones(1, device=where)
        with pytest.raises(RuntimeError, match="[Ii]nference tensors"):
            module.polynomial(k, 8, -1, x)

    def test_anomaly_mode(self, module: Any, x: Any) -> None:
        with torch.autograd.detect_anomaly(check_nan=True):
            module.polynomial(2, 8, -1, x).sum().backward()
        assert x.grad.tolist() == [12, 16, 20, 24]

    def test_hand_written_function(self, module: Any, x: Any) -> None:
        class Poly(torch.autograd.Function):
            @staticmethod
            def forward(ctx: Any, x: Any) -> Any:
                ctx.save_for_backward(x)
                return module.polynomial(2, 8, -1, x)

            @staticmethod
            def backward(ctx: Any, g: Any) -> Any:
                (x,) = ctx.saved_tensors
                gx = torch.zeros_like(x)
                pair = spy.diff_pair(None, g.contiguous())
                module.polynomial.bwds(2, 8, -1, spy.diff_pair(x, gx), _result=pair)
                return gx

        Poly.apply(x).sum().backward()
        assert x.grad.tolist() == [12, 16, 20, 24]

    def test_threads(self, module: Any, where: str) -> None:
        failures: list[BaseException] = []

        def work(k: float) -> None:
            try:
                for _ in range(50):
                    x = leaf([1.0, 2, 3, 4], where)
                    module.polynomial(k, 8, -1, x).sum().backward()
                    assert x.grad.tolist() == [2 * k * v + 8 for v in (1, 2, 3, 4)]
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=work, args=(k,)) for k in (1, 2, 3, 4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failures

    def test_streams(self, where: str, module: Any) -> None:
        if where != "cuda":
            pytest.skip("CPU tensors have no streams")
        stream = torch.cuda.Stream()
        x = torch.rand(1 << 20, device="cuda", requires_grad=True)
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            v = x
            for _ in range(20):
                v = module.polynomial(0.1, 0.5, 0.1, v)
            v.sum().backward()
        torch.cuda.current_stream().wait_stream(stream)
        expected = x.detach().clone().requires_grad_(True)
        w = expected
        for _ in range(20):
            w = 0.1 * w * w + 0.5 * w + 0.1
        w.sum().backward()
        torch.testing.assert_close(x.grad, expected.grad)


class TestMemory:
    def test_nothing_is_kept(self, module: Any, where: str) -> None:
        x = leaf([1.0, 2, 3, 4], where)
        gc.disable()
        try:
            v = x * 1
            target = torch.empty(4, device=where)
            refs = [weakref.ref(v), weakref.ref(target)]
            y = module.polynomial(2, 8, -1, v)
            module.polynomial(2, 8, -1, v, _result=target)
            module.scale(2.0, w := v * 1)
            refs += [weakref.ref(y), weakref.ref(w)]
            (y + target + w).sum().backward()
            del v, target, y, w
            assert [r() for r in refs] == [None] * 4
        finally:
            gc.enable()

    def test_flat(self, module: Any, where: str) -> None:
        import resource

        x = torch.rand(4096, device=where, requires_grad=True)
        out = torch.empty(4096, device=where)

        def step() -> None:
            y = module.polynomial(2, 8, -1, x)
            y.backward(out)
            x.grad = None

        def used() -> int:
            if where == "cuda":
                return torch.cuda.memory_allocated()
            return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

        gc.disable()
        try:
            for _ in range(500):
                step()
            before = used()
            for _ in range(10_000):
                step()
            assert used() - before <= (0 if where == "cuda" else 8 << 20)
        finally:
            gc.enable()


def test_formula_matches(module: Any, x: Any) -> None:
    check(module.polynomial(2, 8, -1, x).detach(), polynomial(2, x).detach())
