"""Slang calls inside torch.compile and torch.export: the same values and gradients as eager, and no more compilations."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from tiers import gate  # noqa: E402
from torch_support import device_of, module_of, polynomial  # noqa: E402

import slangpy as spy  # noqa: E402
from slangpy.plan.records import Argument, Value  # noqa: E402
from slangpy.plan.specification import LeafSpec, ResourceSpec, ValueSpec  # noqa: E402
from slangpy.pytorch.compile.traced_calls import _leaves  # noqa: E402

BACKENDS = ["eager", "aot_eager", "inductor"]
INDICES = spy.grid((3,))


@pytest.fixture(params=["cpu", "cuda"])
def where(request: pytest.FixtureRequest) -> str:
    """As in conftest.py, without torch's deterministic mode: the tracer watches it."""
    if request.param == "cuda" and not torch.cuda.is_available():
        pytest.skip("torch has no CUDA device")
    return request.param


@pytest.fixture(autouse=True)
def fresh_compiler(module: Any) -> Any:
    for name in ("polynomial", "poly_out", "scale", "split", "both", "normalise", "mixed", "detached", "add", "add_to", "plain",
                 "floor_of", "render", "lamp", "square_it", "gather"):  # fmt: skip
        getattr(module, name)  # a traced call needs a function that was looked up before
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def rand(where: str, *shape: int, grad: bool = True) -> Any:
    return (torch.rand(shape, device=where) + 0.5).requires_grad_(grad)


# --- functions: each takes the module and differentiable inputs, and gives a tensor or several


def returned(m: Any, a: Any, x: Any) -> Any:
    return torch.sin(m.polynomial(a=a, b=8, c=-1.5, x=x * 2))


def rows(m: Any, v: Any) -> Any:
    return m.normalise(v.T) * 3


def written(m: Any, x: Any) -> Any:
    y, z = torch.empty_like(x), torch.empty_like(x)
    m.poly_out(2, 8, -1, x, y)
    assert m.polynomial(1.5, 0, 0, y, _result=z) is z
    return y + z * 0.01


def in_place(m: Any, k: Any, x: Any) -> Any:
    v = x * 1
    m.scale(k, v)
    m.scale(2.0, v)
    return v


def nested(m: Any, x: Any, power: Any) -> Any:
    surface = {"n": x, "l": x + 1, "rough": 0.5}
    return m.render({"first": surface, "light": {"power": power, "colour": 2.0}}, x)


def gathered(m: Any, x: Any) -> Any:
    at = torch.tensor([0, 0, 3], dtype=torch.int32, device=x.device)
    return m.gather(INDICES, at, x)


def several(m: Any, x: Any) -> Any:
    cube, square = torch.empty_like(x), torch.empty_like(x)
    first = m.both(x, cube)
    m.split(x, square, torch.empty_like(x))
    return first + 2 * cube, square


def elements_kept(m: Any, x: Any) -> Any:
    v = x * 1
    m.square_it(INDICES, v)
    return v


def mixed_types(m: Any, x: Any) -> Any:
    n = m.floor_of(x * 3)
    return m.mixed(x, n) + m.detached(x.detach(), x)


def at_once(m: Any, a: Any, k: Any, x: Any) -> Any:
    """What inductor makes of several outputs, of writes and of views, in one graph."""
    first, square = several(m, x)
    v = torch.stack([x, x * 2, x * 3])
    return returned(m, a, x) + written(m, x) + first, square, in_place(m, k, v), rows(m, v)


CASES: dict[str, tuple[Callable[..., Any], tuple[tuple[int, ...], ...]]] = {
    "returned": (returned, ((1,), (4,))), "rows": (rows, ((3, 5),)), "written": (written, ((4,),)),
    "in place": (in_place, ((), (2, 3))), "nested": (nested, ((4,), ())), "gathered": (gathered, ((5,),)),
    "several": (several, ((4,),)), "elements kept": (elements_kept, ((5,),)), "mixed types": (mixed_types, ((4,),)),
    "at once": (at_once, ((1,), (), (4,))),
}  # fmt: skip


def in_gate(case: tuple[str, str]) -> bool:
    """aot_eager does what eager does and more; inductor adds what it makes of writes, of several outputs and of views."""
    name, backend = case
    return backend == {"returned": "eager", "at once": "inductor"}.get(name, "aot_eager")


def outcome(function: Callable[..., Any], inputs: list[Any]) -> list[Any]:
    """Outputs and gradients."""
    own = [t.detach().clone().requires_grad_(True) for t in inputs]
    given = function(*own)
    outputs = list(given) if isinstance(given, tuple) else [given]
    sum((o * (i + 1)).sum() for i, o in enumerate(outputs)).backward()
    return [*[o.detach() for o in outputs], *[t.grad for t in own]]


class TestCompile:
    @pytest.mark.parametrize(("name", "backend"), gate(itertools.product(CASES, BACKENDS), in_gate))
    def test_like_eager(self, module: Any, where: str, name: str, backend: str) -> None:
        function, shapes = CASES[name]
        inputs = [rand(where, *shape) for shape in shapes]
        expected = outcome(lambda *t: function(module, *t), inputs)
        compiled = torch.compile(lambda *t: function(module, *t), fullgraph=True, backend=backend)
        for actual, wanted in zip(outcome(compiled, inputs), expected, strict=True):
            torch.testing.assert_close(actual, wanted)

    @pytest.mark.parametrize("backend", gate(BACKENDS, lambda backend: backend == "aot_eager"))
    def test_documented_example(self, module: Any, where: str, backend: str) -> None:
        f = module.polynomial

        @torch.compile(fullgraph=True, dynamic=True, backend=backend)
        def step(x: Any, k: float) -> Any:
            return torch.sin(f(a=k, b=8, c=-1, x=x)).sum()

        for i, (size, k) in enumerate([(10, 2.0), (20, 3.0), (31, 4.5)]):
            x = rand(where, size)
            with torch._dynamo.config.patch(error_on_recompile=i > 0):
                y = step(x, k)
                y.backward()
            own = x.detach().clone().requires_grad_(True)
            expected = torch.sin(polynomial(k, own)).sum()
            expected.backward()
            torch.testing.assert_close(y, expected)
            torch.testing.assert_close(x.grad, own.grad, rtol=1e-4, atol=1e-4)

    @pytest.mark.nightly
    def test_reduce_overhead(self, module: Any, where: str) -> None:
        compiled = torch.compile(lambda x: module.polynomial(2, 8, -1, x), fullgraph=True, mode="reduce-overhead")
        for _ in range(4):
            x = rand(where, 16)
            y = compiled(x)
            torch.testing.assert_close(y.detach(), polynomial(2, x).detach())
            y.sum().backward()
            torch.testing.assert_close(x.grad, 4 * x.detach() + 8)

    def test_ints_do_not_recompile(self, module: Any, where: str) -> None:
        compiled = torch.compile(
            lambda x, n: module.polynomial(n, 8, -1, x), fullgraph=True, dynamic=True, backend="aot_eager"
        )
        for n in (3, 5, 7):
            with torch._dynamo.config.patch(error_on_recompile=n > 3):
                x = rand(where, n + 4, grad=False)
                torch.testing.assert_close(compiled(x, n), polynomial(n, x))

    @pytest.mark.parametrize("backend", gate(BACKENDS[1:], lambda backend: backend == "aot_eager"))
    def test_in_place_without_gradients(self, module: Any, where: str, backend: str) -> None:
        def function(x: Any, v: Any) -> Any:
            y = torch.empty_like(x)
            module.add_to(x, 1, y)
            module.scale(2.0, v)
            return module.both(y, v)

        x, v = rand(where, 4, grad=False), rand(where, 4, grad=False)
        own = v.clone()
        expected = function(x, own)
        version = v._version
        actual = torch.compile(function, fullgraph=True, backend=backend)(x, v)
        torch.testing.assert_close(actual, expected)
        torch.testing.assert_close(v, own)
        assert v._version > version

    def test_no_grad_inside(self, module: Any, where: str) -> None:
        @torch.compile(fullgraph=True, backend="aot_eager")
        def function(x: Any) -> Any:
            with torch.no_grad():
                frozen = module.polynomial(2, 8, -1, x)
            return module.polynomial(frozen, 0, 0, x)

        x = rand(where, 4)
        y = function(x)
        y.sum().backward()
        torch.testing.assert_close(x.grad, (2 * polynomial(2, x) * x).detach())

    def test_bound_and_modified(self, module: Any, where: str) -> None:
        x = rand(where, 2, 3, grad=False)
        swapped = module.polynomial.map(a=(1,), x=(0, 1))
        a = torch.rand(3, device=where)
        compiled = torch.compile(lambda a, x: swapped(a, 8, -1, x), fullgraph=True, backend="aot_eager")
        torch.testing.assert_close(compiled(a, x), a * x * x + 8 * x - 1)

    def test_generator_made_inside(self, module: Any, where: str) -> None:
        x = rand(where, 4)
        at = torch.tensor([0, 3], dtype=torch.int32, device=where)
        compiled = torch.compile(lambda x: module.gather(spy.grid((2,)), at, x), fullgraph=True, backend="aot_eager")
        torch.testing.assert_close(compiled(x), x[[0, 3]] ** 2)

    def test_another_object_is_another_graph(self, module: Any, where: str) -> None:
        @torch.compile(fullgraph=True, backend="eager")
        def function(indices: Any, x: Any) -> Any:
            return module.gather(indices, torch.arange(4, dtype=torch.int32, device=where), x)

        x = rand(where, 4, grad=False)
        assert function(spy.grid((4,)), x).shape == (4,)
        torch.testing.assert_close(function(spy.grid((4,), offset=(3,), stride=(-1,)), x), x.flip(0) ** 2)

    def test_training(self, module: Any, where: str) -> None:
        w = torch.nn.Parameter(torch.tensor([0.5], device=where))
        b = torch.nn.Parameter(torch.zeros(1, device=where))
        x = torch.linspace(-1, 1, 100, device=where)
        target = 3 * x * x + 2 * x
        optimiser = torch.optim.Adam([w, b], lr=0.05)
        loss_of = torch.compile(
            lambda: ((module.polynomial(a=w, b=b, c=0, x=x) - target) ** 2).mean(), fullgraph=True, backend="aot_eager"
        )
        for _ in range(300):
            optimiser.zero_grad()
            loss_of().backward()
            optimiser.step()
        assert w.item() == pytest.approx(3, abs=0.05) and b.item() == pytest.approx(2, abs=0.02)

    def test_eager_calls_use_no_operator(self, module: Any, where: str) -> None:
        from torch.utils._python_dispatch import TorchDispatchMode

        seen: list[str] = []

        class Watch(TorchDispatchMode):
            def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
                del types
                seen.append(str(func))
                return func(*args, **(kwargs or {}))

        x = rand(where, 4)
        with Watch():
            module.polynomial(2, 8, -1, x).sum().backward()
        assert not [name for name in seen if "slangpy" in name] and seen


class TestRefused:
    @pytest.mark.parametrize(
        ("call", "text"),
        [
            (lambda m, x, t: m.add(x, t), "slangpy.Tensor cannot be an argument inside torch.compile"),
            (lambda m, x, t: m.polynomial(2, 8, -1, x, _result="numpy"), "the result of this call is no torch tensor"),
            (lambda m, x, t: m.polynomial(2, 8, -1, x, _result="tensor"), "the result of this call is no torch tensor"),
            (lambda m, x, t: m.lamp(x), "the result of this call is no torch tensor"),
            (lambda m, x, t: m.add(x, np.ones(4, np.float32)), "NumPy array cannot be an argument"),
        ],
    )
    def test_graph_break_says_why(self, module: Any, where: str, call: Any, text: str) -> None:
        tensor = spy.Tensor.from_numpy(device_of(where), np.ones(4, np.float32))
        x = rand(where, 4, grad=False)
        with pytest.raises(torch._dynamo.exc.Unsupported, match=text):
            torch.compile(lambda: call(module, x, tensor), fullgraph=True, backend="eager")()
        torch._dynamo.reset()
        expected = call(module, x, tensor)
        broken = torch.compile(lambda: call(module, x, tensor), backend="eager")()  # runs, in parts
        assert type(broken) is type(expected)

    def test_shape_errors_while_tracing(self, module: Any, where: str) -> None:
        ran = []

        def backend(graph: Any, inputs: Any) -> Any:
            ran.append(graph)
            return graph

        with pytest.raises(Exception, match=r"Shape mismatch for y between value \(5\) and call \(4\)"):
            torch.compile(module.add.call, fullgraph=True, backend=backend)(rand(where, 4), rand(where, 5))
        with pytest.raises(Exception, match="the parameter takes 3"):
            torch.compile(lambda v: module.normalise(v), fullgraph=True, backend=backend)(rand(where, 5, 2))
        assert not ran

    def test_unfit_dtype(self, module: Any, where: str) -> None:
        with pytest.raises(Exception, match="does not match slang type"):
            torch.compile(lambda x: module.polynomial(2, 8, -1, x), fullgraph=True, backend="eager")(
                torch.ones(4, dtype=torch.int64, device=where)
            )

    @pytest.mark.parametrize(
        "function", [lambda m, x: m.polynomial(2.0, 8.0, -1.0, x), lambda m, x: in_place(m, 1.0, x)]
    )
    def test_second_derivatives(self, module: Any, where: str, function: Any) -> None:
        x = rand(where, 5)
        y = torch.compile(lambda x: function(module, x), backend="eager")(x)
        (first,) = torch.autograd.grad(y.sum(), [x], create_graph=True)
        with pytest.raises(RuntimeError, match="no autograd formula was registered"):
            torch.autograd.grad(first.sum(), [x], allow_unused=True)

    def test_vectors_that_change(self, module: Any, where: str) -> None:
        """Forward and backward pass of a traced call run at different times: they never read different vectors."""
        k, x = spy.float3(3, 4, 0), rand(where, 3)
        function = module.weighed
        compiled = torch.compile(lambda x: function(k, x), backend="eager")
        y = compiled(x)
        torch.testing.assert_close(torch.autograd.grad(y.sum(), [x], retain_graph=True)[0], 50 * x.detach())
        k.x = 50
        for use in (lambda: y.sum().backward(), lambda: compiled(x)):
            with pytest.raises(RuntimeError, match="float3 was changed after torch.compile had traced"):
                use()
        torch._dynamo.reset()
        torch.testing.assert_close(compiled(x).detach(), 2516 * x.detach() ** 2)

    @pytest.mark.parametrize("change", [lambda t: t.double(), lambda t: t.half(), lambda t: t[:2], lambda t: t[:1]])
    def test_saved_tensors_that_differ(self, module: Any, where: str, change: Any) -> None:
        x = rand(where, 5)
        compiled = torch.compile(lambda x: module.polynomial(2.0, 8.0, -1.0, x), backend="eager")
        with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: change(t) if t.dim() else t):
            y = compiled(x)
        with pytest.raises(RuntimeError, match="a saved tensor is .*but the forward pass had"):
            y.sum().backward()

    def test_not_differentiable(self, module: Any, where: str) -> None:
        x = rand(where, 4)
        y = torch.compile(lambda x: module.plain(x), fullgraph=True, backend="aot_eager")(x)
        assert y.tolist() == (x * x).tolist()
        with pytest.raises(Exception, match="Could not call function 'plain': Function is not differentiable"):
            y.sum().backward()


class TestExport:
    @pytest.mark.parametrize("strict", [False, True])
    def test_values(self, module: Any, where: str, strict: bool) -> None:
        class Model(torch.nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.a = torch.nn.Parameter(torch.tensor([2.0], device=where))

            def forward(self, x: Any) -> Any:
                return torch.relu(module.polynomial(self.a, 8, -1.25, x))

        size = torch.export.Dim("size", min=2, max=100)
        with torch.no_grad():
            program = torch.export.export(
                Model(), (rand(where, 5, grad=False),), dynamic_shapes=({0: size},), strict=strict
            )
            assert any("slangpy.call" in str(node.target) for node in program.graph.nodes)
            for n in (5, 9):
                x = rand(where, n, grad=False)
                torch.testing.assert_close(program.module()(x), torch.relu(2 * x * x + 8 * x - 1.25))


# --- the operators


def traced(function: Callable[..., Any], inputs: list[Any]) -> list[tuple[Any, tuple[Any, ...]]]:
    """The calls of our operators in a function, with their arguments."""
    found: list[tuple[Any, tuple[Any, ...]]] = []

    class Recorder(torch.fx.Interpreter):
        def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
            if "slangpy" in str(target):
                found.append((getattr(target, "default", target), args))
            return super().call_function(target, args, kwargs)

    torch.compile(function, fullgraph=True, backend=lambda graph, _: Recorder(graph).run)(*inputs)
    assert found
    return found


def leaves_of(args: tuple[Any, ...], grad: bool) -> tuple[Any, ...]:
    """Arguments of an operator as leaves."""

    def own(value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return [own(v) for v in value]
        if isinstance(value, torch.Tensor):
            return value.detach().clone().requires_grad_(grad and value.dtype == torch.float32)
        return value

    return tuple(own(a) for a in args)


@pytest.mark.parametrize(
    "name", gate(["returned", "rows", "nested", "in place", "several", "gathered"], lambda name: name in ("nested", "in place", "several"))
)
def test_opcheck(module: Any, where: str, name: str) -> None:
    function, shapes = CASES[name]
    calls = traced(lambda *t: function(module, *t), [rand(where, *shape) for shape in shapes])
    for operator, args in calls:
        torch.library.opcheck(operator, leaves_of(args, True))


def test_opcheck_backward(module: Any, where: str) -> None:
    function, shapes = CASES["returned"]
    found: list[tuple[Any, tuple[Any, ...]]] = []

    def call(*inputs: Any) -> Any:
        return function(module, *inputs)

    from torch.utils._python_dispatch import TorchDispatchMode

    class Watch(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            del types
            if "call_backward" in str(func):
                found.append((func, args))
            return func(*args, **(kwargs or {}))

    y = torch.compile(call, fullgraph=True, backend="eager")(*[rand(where, *shape) for shape in shapes])
    with Watch():
        y.sum().backward()
    ((operator, args),) = found
    torch.library.opcheck(operator, leaves_of(args, False))


def test_opcheck_in_place(module: Any, where: str) -> None:
    def function(x: Any, v: Any) -> Any:
        return module.polynomial(2, 8, -1, x, _result=v)

    ((operator, args),) = traced(function, [rand(where, 4, grad=False), rand(where, 4, grad=False)])
    assert "call_" in str(operator) and any(
        a.alias_info is not None and a.alias_info.is_write for a in operator._schema.arguments
    )
    torch.library.opcheck(operator, leaves_of(args, False))


def test_keys_tell_functions_apart(where: str) -> None:
    """Equal text on one device is one key; another text under the same names is not."""
    from slangpy.pytorch import compile as torchcompile

    def key(source: str, name: str) -> str:
        function = spy.Module.load_from_source(device_of(where), name, source).twice
        facts = torchcompile._register(
            id(function), (None, (("tensor",),), ()), ((torch.float32, 1, torch.device(where)),)
        )
        return facts.split(";")[0]

    one, two = "float twice(float x) { return 2 * x; }", "float3 twice(float x) { return float3(2 * x); }"
    assert key(one, "compile_keys") != key(two, "compile_keys")
    assert key(one, "compile_keys") == key(one, "compile_keys")
    assert module_of(where) is module_of(where)


def test_every_leaf_that_is_spread_counts() -> None:
    """Also of kinds of leaves that tracing does not name: their sizes make the call's."""
    known = (LeafSpec(ValueSpec(None), "a"), LeafSpec(ResourceSpec(0), "x", map=(1,)))
    values = (Value("float", "float", {}, 0), Value("texture", "Texture", {"shape": (5,)}, 1))
    view = SimpleNamespace(spec=SimpleNamespace(leaves=known))
    found = _leaves(view, [Argument(None, value, i) for i, value in enumerate(values)], 0)
    assert found is not None and [(leaf.name, leaf.map, leaf.sizes) for leaf in found] == [("x", (1,), (5,))]


def test_what_is_not_traced_runs_outside(module: Any, where: str) -> None:
    """Recorded calls and views of our tensors: the graph breaks there, and what they were bound to is not lost."""
    device = module.device
    encoder, out = device.create_command_encoder(), torch.zeros(4, device=where)
    whole, part = spy.Tensor.from_numpy(device, np.arange(8, dtype=np.float32)), spy.Tensor.empty(device, (4,), "float")

    def mixed(x: Any) -> Any:
        y = x * 2
        module.add.append_to(encoder, y, 1.0, _result=out)
        module.add(whole.view((4,), (2,), 1), 1.0, _result=part)
        return y + 1

    x = rand(where, 4, grad=False)
    result = torch.compile(mixed, backend="eager")(x)
    device.submit_command_buffer(encoder.finish())
    torch.testing.assert_close(result, 2 * x + 1)
    torch.testing.assert_close(out, 2 * x + 1)
    assert part.to_numpy().tolist() == [2, 4, 6, 8]
