"""Gradients of gradients: torch's `create_graph` through Slang calls, against the same formulas in torch."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from tiers import gate  # noqa: E402
from torch_support import HERE, device_of  # noqa: E402

import slangpy as spy  # noqa: E402

FULL, ONE = (3, 2), (1,)
V3, M2 = (4, 3), (3, 2, 2)


def helper(x: Any, y: Any) -> Any:
    return torch.where(x > y, x * x * y, y * y * x)


def repeat(step: Callable[[Any], Any], s: Any, count: int) -> Any:
    for _ in range(count):
        s = step(s)
    return s


def until(x: Any, y: Any) -> Any:
    s = x
    for _ in range(8):
        s = torch.where(s > 2, s, s * (1 + y))
    return s * x


def calls(x: Any, y: Any) -> Any:
    s = helper(x, helper(y, x))
    s = s * s * x
    return s * s * y + s * s * s


def weights(w: Any, x: Any) -> Any:
    s = torch.zeros_like(x)
    for k in range(4):
        s = s * x + w[..., k] * w[..., k]
    return s


def energy(v: Any, m: Any) -> Any:
    return ((m @ v[..., None])[..., 0] * v).sum(-1) * torch.linalg.det(m)


def turn(v: Any, w: Any) -> Any:
    return torch.linalg.cross(*torch.broadcast_tensors(v, w)) * (v * w).sum(-1, keepdim=True)


CASES: dict[str, tuple[Callable[..., Any], tuple[tuple[int, ...], ...]]] = {
    "cubic": (lambda a, b, x: a * x**3 + torch.sin(b * x), (ONE, (3, 1), FULL)),
    "ratio": (lambda x, y: x / (y * y + 1), (FULL, (2,))),
    "waves": (lambda x, y: torch.exp(x * y) * torch.cos(x) + torch.log(x) * torch.sqrt(y) + x**y + torch.tanh(y), (FULL, ())),
    "choose": (lambda x, y: torch.where(x > 0.9, x * x * y, y * y * x), (FULL, FULL)),
    "pick": (lambda x, y: torch.where(x > y, x * x * y, y * y), (FULL, FULL)),
    "series": (lambda x, y: repeat(lambda s: s * y + x * s * s, x, 3), (FULL, (2,))),
    "unrolled": (lambda x, y: repeat(lambda s: s * y + x, x, 3) ** 2, (FULL, FULL)),
    "until": (until, (FULL, FULL)),
    "nested_loops": (lambda x, y: repeat(lambda s: s * y + x, x, 6) ** 2, (FULL, ONE)),
    "turn": (turn, (V3, (3,))),
    "unit": (lambda v: v / v.norm(dim=-1, keepdim=True), (V3,)),
    "energy": (energy, ((3, 2), M2)),
    "square": (lambda m: m @ m, (M2,)),
    "calls": (calls, (FULL, FULL)),
    "weights": (weights, ((3, 4), (3,))),
    "last": (lambda w: w[..., 0] * w[..., 1] * w[..., 2] + w[..., 3] ** 3, ((3, 4),)),
    "fixed": (lambda x, k: x * x * k.detach() + x * (x * x).detach(), (FULL, ())),
    "generics": (lambda k, x: k * x**4 + k * k * x, (FULL, FULL)),
    "network": (lambda w, x: (w[:3] * torch.tanh(w[3:] * x[..., None] + w[:3])).sum(-1), ((6,), (5,))),
}  # fmt: skip


SCALARS = ("waves", "choose", "pick", "unrolled", "until", "nested_loops", "calls", "generics")
CASES["scalars"] = (
    lambda x, y: sum(weight * CASES[name][0](x, y) for weight, name in enumerate(SCALARS, 1)),
    (FULL, FULL),
)
ELSEWHERE = ("ratio", "network", "cubic", "last", "square", "turn", "unit", *SCALARS)
"""In the gate, other tests here take the second derivatives of the first two, "scalars" has the last eight at once, and the
others are like "series", "weights" and "energy"."""


@cache
def functions(where: str) -> Any:
    return spy.Module.load_from_file(device_of(where), HERE / "torch_double_backward.slang")


def inputs(shapes: tuple[tuple[int, ...], ...], where: str = "cpu", dtype: Any = torch.float64) -> list[Any]:
    generator = torch.Generator().manual_seed(5)
    return [
        (torch.rand(s, generator=generator, dtype=torch.float64) + 0.5).to(where, dtype).requires_grad_(True)
        for s in shapes
    ]


def second(function: Callable[..., Any], values: list[Any]) -> list[Any]:
    """Derivatives of a function of the gradients, by the inputs and by the gradient of the result."""
    y = function(*values)
    w = torch.linspace(0.5, 1.5, max(y.numel(), 1), dtype=y.dtype, device=y.device)[: y.numel()].reshape(y.shape)
    w = w.requires_grad_()
    wanted = [v for v in values if v.requires_grad]
    grads = torch.autograd.grad(y, wanted, w, create_graph=True, allow_unused=True)
    weighted = [(g * (k + 1) * torch.cos(g.detach())).sum() for k, g in enumerate(grads) if g is not None]
    found = torch.autograd.grad(sum(weighted), [*wanted, w], allow_unused=True)
    return [g for g in grads if g is not None] + [
        torch.zeros_like(v) if f is None else f for f, v in zip(found, [*wanted, w], strict=True)
    ]


def compare(actual: list[Any], expected: list[Any], tolerance: float = 1e-10) -> None:
    assert len(actual) == len(expected)
    for a, e in zip(actual, expected, strict=True):
        assert a.shape == e.shape and a.dtype == e.dtype
        torch.testing.assert_close(a, e, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", gate(CASES, lambda name: name not in ELSEWHERE))
def test_as_torch(where: str, name: str) -> None:
    reference, shapes = CASES[name]
    values = inputs(shapes, where)
    if name == "fixed":
        values[1].requires_grad_(False)
    compare(second(getattr(functions(where), name), values), second(reference, values))


def sphere_distance(c: Any, r: Any, p: Any) -> Any:
    return (((p - c) ** 2).sum(-1).sqrt() - r * r) * 2


def test_struct(where: str) -> None:
    """Structs as dicts of tensors, with fields that have no derivative, and methods."""
    m = functions(where)
    values = inputs(((4, 3), (4,), (3,)), where)

    def of(function: Any) -> Callable[..., Any]:
        return lambda c, r, p: function({"center": c, "radius": r, "scale": 2.0, "id": 3}, p)

    compare(second(of(m.distance), values), second(lambda c, r, p: sphere_distance(c, r, p) ** 2 + 3, values))

    def shrunk(c: Any, r: Any, p: Any) -> Any:
        x, y = p[0], p[1]
        return sphere_distance(c * x * y, r * x * x * y * y, p)

    compare(second(of(m.shrunk), values), second(shrunk, values))


@pytest.mark.nightly
def test_method(where: str) -> None:
    m = functions(where)
    values = inputs(((4, 3), (4,), (4, 3)), where)

    def call(c: Any, r: Any, p: Any) -> Any:
        return m.Sphere.distance({"center": c, "radius": r, "scale": 2.0, "id": 3}, p)

    compare(second(call, values), second(sphere_distance, values))


NARROW = """
[Differentiable] T bent(T x, T y) { return x * x * x * y; }
[Differentiable] float widened(T x, float y) { return float(x) * float(x) * y; }
"""


@pytest.mark.parametrize("scalar", gate(["half", "float"], lambda scalar: scalar == "half"))
def test_precision(where: str, scalar: str) -> None:
    """Gradients of 16-bit inputs are rounded once; sums over a broadcast dimension are not made in 16 bits."""
    m = spy.Module.load_from_source(device_of(where), f"twice_{scalar}", NARROW.replace("T ", scalar + " "))
    dtype = {"half": torch.float16, "float": torch.float32}[scalar]
    values = inputs(((33,), ONE), where, dtype)
    wide = [v.detach().double().requires_grad_() for v in values]
    tolerance = 2e-2 if scalar == "half" else 1e-5
    expected = [e.to(dtype) for e in second(lambda x, y: x**3 * y, wide)]
    torch.testing.assert_close(second(m.bent, values), expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(
    "shape", gate([((0,),), ((1,),), ((1, 1),), ((31,),), ((33, 2),)], lambda case: case[0] == (0,)), ids=str
)
def test_sizes(where: str, shape: tuple[int, ...]) -> None:
    """No elements, one, odd numbers; the second input is broadcast."""
    values = inputs((shape, shape[-1:]), where)
    compare(second(functions(where).ratio, values), second(CASES["ratio"][0], values))


def test_strides(where: str) -> None:
    """Inputs, and gradients that come in, of any strides."""
    base, other = inputs(((8, 6), (4, 3)), where)
    m = functions(where)

    def both(function: Callable[..., Any]) -> list[Any]:
        def call(x: Any, y: Any) -> Any:
            return function(x[::2, 1::2], y.flip(0)).T.contiguous().T

        return second(call, [base, other])

    compare(both(m.ratio), both(CASES["ratio"][0]))
    x = other[:, :1].expand(4, 3)
    y = m.ratio(x, 2.0)
    (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)  # an expanded seed
    (h,) = torch.autograd.grad(g.sum(), other, allow_unused=True)  # an expanded cotangent
    assert h is not None and torch.equal(h, torch.zeros_like(h))


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["cubic", "series", "weights"])
def test_gradgradcheck(where: str, name: str) -> None:
    function = getattr(functions(where), name)
    assert torch.autograd.gradgradcheck(function, inputs(CASES[name][1], where))


def test_pruned(where: str) -> None:
    """Only one input requires grad, and only one gradient is differentiated."""
    x, y = inputs((FULL, (2,)), where)
    m, reference = functions(where), CASES["ratio"][0]
    for needs in ([True, False], [False, True]):
        values = [v.detach().requires_grad_(need) for v, need in zip((x, y), needs, strict=True)]
        compare(second(m.ratio, values), second(reference, values))
    for wanted in (x, y):  # the gradient by one input is a function of both
        found = []
        for function in (m.ratio, reference):
            (g,) = torch.autograd.grad(function(x, y).sum(), wanted, create_graph=True)
            twice = torch.autograd.grad((g * g.detach()).sum(), (x, y), allow_unused=True)
            found.append([torch.zeros_like(v) if t is None else t for t, v in zip(twice, (x, y), strict=True)])
        compare(*found)


def test_hessian_vector_product(where: str) -> None:
    (x,) = inputs(((7,),), where)
    direction = torch.linspace(-1, 1, 7, dtype=torch.float64, device=where)
    m = functions(where)

    def coupled(v: Any) -> Any:
        return (m.ratio(v, v.roll(1)) * v).sum()

    def reference(v: Any) -> Any:
        return (v / (v.roll(1) ** 2 + 1) * v).sum()

    _, actual = torch.autograd.functional.vhp(coupled, x, direction)
    _, expected = torch.autograd.functional.vhp(reference, x, direction)
    compare([actual], [expected])
    hessian = torch.autograd.functional.hessian(coupled, x)
    compare([hessian], [torch.autograd.functional.hessian(reference, x)])


def train(critic: Callable[[Any, Any], Any], where: str) -> list[float]:
    """Steps of a critic whose gradient by its input is pulled to the length 1."""
    generator = torch.Generator().manual_seed(3)
    w = (torch.rand(6, generator=generator, dtype=torch.float64) - 0.5).to(where).requires_grad_()
    samples = torch.rand(17, generator=generator, dtype=torch.float64).to(where)
    optimizer = torch.optim.SGD([w], lr=0.1)
    losses = []
    for _ in range(5):
        x = samples.clone().requires_grad_()
        value = critic(w, x)
        (slope,) = torch.autograd.grad(value.sum(), x, create_graph=True)
        loss = value.mean() + 10 * ((slope.abs() - 1) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return [*losses, *w.tolist()]


def test_gradient_penalty(where: str) -> None:
    actual, expected = train(functions(where).network, where), train(CASES["network"][0], where)
    assert actual == pytest.approx(expected, rel=1e-9)
    assert actual[4] < actual[0]


def test_physics_informed(where: str) -> None:
    """The loss holds the derivative of a network by its input: u' = -u, u(0) = 1."""

    def losses(network: Callable[[Any, Any], Any]) -> list[float]:
        w = torch.linspace(-0.8, 0.9, 6, dtype=torch.float64, device=where).requires_grad_()
        optimizer = torch.optim.Adam([w], lr=0.05)
        found = []
        for _ in range(30):
            x = torch.linspace(0, 1, 9, dtype=torch.float64, device=where).requires_grad_()
            u = network(w, x)
            (slope,) = torch.autograd.grad(u, x, torch.ones_like(u), create_graph=True)
            loss = ((slope + u) ** 2).mean() + (u[0] - 1) ** 2
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            found.append(loss.item())
        return found

    actual, expected = losses(functions(where).network), losses(CASES["network"][0])
    assert actual == pytest.approx(expected, rel=1e-7) and actual[-1] < 0.2 * actual[0]


REFUSED = {
    "calls_own": ("custom derivative", ((4,),)),
    "total": ("indexes its parameter 'row'", ((5,), (4,))),
    "large": ("parameter 'w'", ((2, 300),)),
    "of_field": ("the Slang compiler", ((4,), (4,))),
    "of_sincos": ("the Slang compiler", ((4,),)),
}


@pytest.mark.parametrize("name", gate(REFUSED, lambda name: name != "of_sincos"))
def test_refused(where: str, name: str) -> None:
    """What has no second derivative says so by name; gradients stay right."""
    text, shapes = REFUSED[name]
    values = inputs(shapes, where)
    function = getattr(functions(where), name)
    y = function.map(None, (0,))(*values) if name == "total" else function(*values)
    plain = torch.autograd.grad(y.sum(), values, retain_graph=True)
    grads = torch.autograd.grad(y.sum(), values, create_graph=True)
    compare(list(grads), list(plain))
    assert grads[-1].requires_grad
    with pytest.raises(NotImplementedError, match=f"(?s){name}.*create_graph.*{text}"):
        grads[-1].sum().backward()


@pytest.mark.parametrize("name", ["out_of", "grow"])
def test_written(where: str, name: str) -> None:
    """Functions that write their parameters are refused as before."""
    x, y = inputs((FULL, FULL), where)
    out = torch.empty_like(x) if name == "out_of" else x * 1
    getattr(functions(where), name)(*((x, out) if name == "out_of" else (out, y)))
    (g,) = torch.autograd.grad(out.sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="differentiate twice"):
        g.sum().backward()


def test_own_gradients(where: str) -> None:
    """slangpy's objects with gradients are constants beside torch tensors; forward mode would read their gradients."""
    (x,) = inputs((FULL,), where)
    y = functions(where).ratio(x, spy.diffPair(2.0, 5.0))
    (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    with pytest.raises(NotImplementedError, match="ratio.*DiffPair.*keep a gradient"):
        torch.autograd.grad(g.sum(), x, allow_unused=True)


def test_third(where: str) -> None:
    """Third derivatives are refused whatever they start from."""
    x, y = inputs((FULL, (2,)), where)
    (g,) = torch.autograd.grad(functions(where).ratio(x, y).sum(), x, create_graph=True)
    (h,) = torch.autograd.grad(g.sum(), y, create_graph=True)
    assert h.requires_grad
    for wanted in (x, y):
        with pytest.raises(RuntimeError, match="third derivatives"):
            torch.autograd.grad(h.sum(), wanted, retain_graph=True)


def test_compiled() -> None:
    """A traced call has no second derivative; torch says so."""
    f = functions("cpu").ratio
    step = torch.compile(lambda x: f(x, 2.0).sum(), backend="aot_eager", fullgraph=True)
    (x,) = inputs(((4,),))
    with pytest.raises(RuntimeError, match="double backward|twice"):
        (g,) = torch.autograd.grad(step(x), x, create_graph=True)
        g.sum().backward()


def test_files_that_change(tmp_path: Path) -> None:
    """The process that compiles keeps the session of a module, but not that of one whose imports were edited."""
    power, curve = tmp_path / "power.slang", tmp_path / "curve.slang"
    text = "[Differentiable] double power(double x) { return x * x; }"
    power.write_text(text)
    curve.write_text("import power;\n[Differentiable] double curve(double a, double x) { return a * a * power(x); }")
    device = spy.create_device(type=spy.DeviceType.cpu, include_paths=[tmp_path])
    module = spy.Module.load_from_file(device, "curve.slang")
    values = inputs(((4,), (4,)))
    compare(second(module.curve, values), second(lambda a, x: a * a * x * x, values))
    power.write_text(text.replace("x * x", "x * x * x"))
    compare(second(module.curve, values), second(lambda a, x: a * a * x**3, values))


def test_copied() -> None:
    """A device that copies torch's tensors."""
    device = device_of("vulkan")
    m = spy.Module.load_from_source(
        device, "twice_copied", "[Differentiable] float bent(float a, float3 v) { return a * a * v.x * v.x * v.y; }"
    )
    values = inputs((ONE, (5, 3)), dtype=torch.float32)
    compare(second(m.bent, values), second(lambda a, v: a * a * v[:, 0] ** 2 * v[:, 1], values), 1e-5)
