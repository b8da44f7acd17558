"""Gradients of a broad set of functions against torch's autograd in float64, on every device."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiers import gate

import slangpy as spy

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.needs_kernels, pytest.mark.one]

SOURCE = Path(__file__).parent / "test_gradients_torch60.slang"
N = 257
"""Invocations of most cases: odd, and more than one group."""


@dataclass(frozen=True)
class X:
    """A tensor of random numbers in [lo, hi]; with a gradient unless `grad` is off."""

    shape: tuple[int, ...]
    lo: float = -1.0
    hi: float = 1.0
    element: str = "float"
    grad: bool = True


@dataclass(frozen=True)
class Ints:
    """Integers as a tensor: by value or as an index table."""

    values: tuple[int, ...]


@dataclass(frozen=True)
class Out:
    """A tensor that the function writes; its gradient is the seed."""

    shape: tuple[int, ...]
    element: str = "float"


@dataclass(frozen=True)
class InOut:
    """Read and written in place: one gradient of each kind."""

    shape: tuple[int, ...]
    lo: float = -1.0
    hi: float = 1.0


@dataclass(frozen=True)
class Structs:
    """A tensor of structs, filled and read field by field."""

    name: str
    fields: tuple[tuple[str, X], ...]


def grid(*shape: int) -> Any:
    return spy.grid(shape)


@dataclass(frozen=True)
class Case:
    """A function, its arguments, and what it computes from them in torch (inputs with gradients and constants only).

    `result` is the element type of the returned value, empty where outputs are arguments.
    """

    arguments: tuple[Any, ...]
    reference: Callable[..., Any]
    result: str = "float"
    function: str = ""
    method: str = ""
    error: float = 1e-5
    """Of the result. Vulkan lets drivers approximate asin and acos to 4096 units in the last place."""


def V(lo: float = -1.0, hi: float = 1.0, n: int = N) -> X:
    return X((n,), lo, hi)


def F3(lo: float = -1.0, hi: float = 1.0) -> X:
    return X((N, 3), lo, hi, "float3")


def M(rows: int, cols: int, lo: float = -1.0, hi: float = 1.0) -> X:
    return X((N, rows, cols), lo, hi, f"float{rows}x{cols}")


def dot(a: Any, b: Any) -> Any:
    return (a * b).sum(-1)


def unit(v: Any) -> Any:
    return v / v.norm(dim=-1, keepdim=True)


def cross(a: Any, b: Any) -> Any:
    return torch.linalg.cross(a, b)


def where(condition: Any, a: Any, b: Any) -> Any:
    return torch.where(condition, a, b)


def lengths(n: int, limit: int) -> tuple[int, ...]:
    return tuple(i % (limit + 1) for i in range(n))


def _smoothstep(lo: Any, hi: Any, x: Any) -> Any:
    t = ((x - lo) / (hi - lo)).clamp(0, 1)
    return t * t * (3 - 2 * t) * x


def _refract(v: Any, n: Any, eta: Any) -> Any:
    v, n = unit(v), unit(n)
    c = dot(n, v)
    k = 1 - eta * eta * (1 - c * c)
    bent = eta[:, None] * v - (eta * c + k.clamp(min=1e-30).sqrt())[:, None] * n
    return where((k > 0)[:, None], bent, torch.zeros_like(bent))


def _shuffle(v: Any) -> Any:
    x, y, z, w = v.unbind(-1)
    r = [w * x, z * x + z, y * y, x * y]
    return torch.stack([r[0] * y, r[1], r[2] * w, r[3]], -1)


def _rotate(q: Any, v: Any) -> Any:
    t = 2 * cross(q[:, :3], v)
    return v + q[:, 3:] * t + cross(q[:, :3], t)


def _complex(z: Any, c: Any) -> Any:
    return torch.stack([z[:, 0] ** 2 - z[:, 1] ** 2, 2 * z[:, 0] * z[:, 1]], -1) + c * z


def _tone(color: Any, gain: Any) -> Any:
    luma = dot(color, torch.tensor([0.2126, 0.7152, 0.0722], dtype=torch.float64))[:, None]
    return color * gain[:, None] / (1 + luma) + luma


def _prefix(a: Any) -> Any:
    p = [a[:, 0]]
    for i in range(1, 4):
        p.append(p[-1] * a[:, i] + a[:, 0])
    return p[3] + p[1] * p[2]


def _spread(x: Any, y: Any) -> Any:
    r0 = x * y
    r1 = x + r0
    return torch.stack([r0, r1, r1 * r0], -1)


def _newton(a: Any) -> Any:
    x = a
    for _ in range(6):
        x = 0.5 * (x + a / x)
    return x * a


def _recurrence(a: Any, b: Any, n: Any) -> Any:
    u, v = a, b
    for i in range(12):
        w = 0.5 * u * v + b
        u, v = where(n > i, v, u), where(n > i, w, v)
    return v


def _pieces(x: Any, y: Any) -> Any:
    middle = where(y > 0, torch.sin(x) * y * x, x**3)
    return where(x < -0.5, x * y * x, where(x < 0.5, middle, y / x * x))


def _chosen(which: Any, x: Any, y: Any) -> Any:
    rest = where(which == 2, torch.sin(x * y), x / (1 + y * y))
    return where(which == 0, x * y, where(which == 1, torch.exp(x) - y, rest))


def _escape(x: Any, c: Any) -> Any:
    z = x
    for _ in range(6):
        z = where(z.abs() > 2, z, z.clamp(-2, 2) ** 2 + c)
    return z


def _nested(x: Any, y: Any, n: Any) -> Any:
    s = torch.zeros_like(x)
    for i in range(5):
        for k in range(i + 1):
            s = where(n > i, s + x * y * s * 0.1 + x * k + y * i, s)
    return s


def _skipping(x: Any, n: Any) -> Any:
    s = x
    for i in range(10):
        if i % 3 != 1:
            s = where(n > i, s * x + i, s)
    return s


def _sphere(s: Any, p: Any) -> Any:
    return (p - s["center"]).norm(dim=-1) - s["radius"] ** 2


def _scene(s: Any, p: Any) -> Any:
    k = s["blend"]
    return -torch.log(torch.exp(-k * _sphere(s["ball"], p)) + torch.exp(-k * _sphere(s["other"], p))) / k


def _turn(line: Any, by: Any) -> Any:
    slope = line["slope"] * by
    return {"slope": slope, "offset": line["offset"] + slope}


def _steep(x: Any, k: Any) -> Any:
    step = (x > 0).double()
    soft = torch.sigmoid(k * x)
    return (step + soft - soft.detach()) * x


def _laplace(x: Any, k: Any) -> Any:
    left, right = torch.cat([x[:1], x[:-1]]), torch.cat([x[1:], x[-1:]])
    return x + k * (left - 2 * x + right) * x


def _plus(x: Any) -> Any:
    p = torch.nn.functional.pad(x[None, None], (1, 1, 1, 1), mode="replicate")[0, 0]
    return (p[1:-1, :-2] + p[1:-1, 2:] + p[:-2, 1:-1] + p[2:, 1:-1]) * x - 4 * x * x


def _composite(s: Any) -> Any:
    at = torch.arange(65, dtype=torch.float64) * float(np.float32(0.1))
    total, through = torch.zeros(65, 3, dtype=torch.float64), torch.ones(65, dtype=torch.float64)
    for i in range(7):
        alpha = s["opacity"][i] * torch.exp(-0.5 * ((at - s["mean"][i]) / s["width"][i]) ** 2)
        total = total + s["color"][i] * (alpha * through)[:, None]
        through = through * (1 - alpha)
    return total


def _force(x: Any, mass: Any) -> Any:
    d = x[None] - x[:, None]
    pairs = mass[None] * mass[:, None] / (dot(d, d) + 0.1)
    return (pairs * (1 - torch.eye(len(x), dtype=torch.float64))).sum(1)


def _bilinear(uv: Any, image: Any) -> Any:
    h, w = image.shape[:2]
    p = uv * torch.tensor([w, h], dtype=torch.float64)
    x0, y0 = p[:, 0].detach().long().clamp(0, w - 1), p[:, 1].detach().long().clamp(0, h - 1)
    x1, y1 = (x0 + 1).clamp(max=w - 1), (y0 + 1).clamp(max=h - 1)
    u, v = p[:, 0] - p[:, 0].detach().floor(), p[:, 1] - p[:, 1].detach().floor()
    if image.ndim == 3:
        u, v = u[:, None], v[:, None]
    top = image[y0, x0] * (1 - u) + image[y0, x1] * u
    return top * (1 - v) + (image[y1, x0] * (1 - u) + image[y1, x1] * u) * v


def _mlp(x: Any, hidden: Any, last: Any) -> Any:
    h = x @ hidden.T
    return torch.tanh(torch.maximum(0.1 * h, h) @ last[:5] + last[5])


def _grid2(g: Any) -> Any:
    i, k = torch.meshgrid(torch.arange(3), torch.arange(3), indexing="ij")
    return g["cells"][i, k] * g["cells"][k % 3, i % 3] * g["scale"]


TABLE = tuple((7 * i * i) % 23 for i in range(23))
ORDER = tuple((5 * i + 3) % 21 for i in range(21))
TOKENS = tuple((i * i) % 11 for i in range(N))
SPHERE = {"center": F3(2, 3), "radius": V()}
SPLATS = (
    ("mean", X((7,), 0, 6)), ("width", X((7,), 0.5, 2)), ("opacity", X((7,), 0.2, 0.8)), ("color", X((7, 3), 0, 1)),
)  # fmt: skip

CASES: dict[str, Case] = {
    "mul_add": Case((V(), V()), lambda a, b: a * b + a - b * b),
    "quotient": Case((V(), V(0.5, 2)), lambda a, b: a / b + 1 / (a * a + b)),
    "trig": Case((V(), V()), lambda a, b: torch.sin(a) * torch.cos(b) + torch.tan(a * b)),
    "arcs": Case((V(-0.9, 0.9),), lambda a: torch.asin(a) + torch.acos(a * a) + torch.atan(3 * a), error=1e-3),
    "angle": Case((V(), V(0.2, 1)), lambda y, x: torch.atan2(y, x) * x),
    "hyperbolic": Case((V(),), lambda a: torch.sinh(a) + torch.cosh(a) * torch.tanh(a)),
    "exponentials": Case((V(), V()), lambda a, b: torch.exp(a) + torch.exp2(b) * a),
    "logarithms": Case((V(0.2, 3), V(0.2, 3)), lambda a, b: torch.log(a) + torch.log2(b) * torch.log10(a)),
    "powers": Case((V(0.2, 3), V(0.2, 3)), lambda a, b: a**b + b**2.5),
    "roots": Case((V(0.2, 3), V(0.2, 3)), lambda a, b: a**0.5 + b**-0.5 + a * (a * b) ** 0.5),
    "bounds": Case(
        (V(), V()), lambda a, b: a.abs() * torch.minimum(a, b) + torch.maximum(a, b) + (a * b).clamp(-0.5, 0.5)
    ),
    "mixing": Case((V(), V(), V()), lambda a, b, t: (a + (b - a) * t) * t),
    "smooth_step": Case((V(-1, -0.5), V(0.5, 1), V()), _smoothstep),
    "fractions": Case((V(0.05, 0.95),), lambda a: a * a + a * a),
    "softplus": Case((V(-3, 3),), lambda a: torch.nn.functional.softplus(a) + torch.sigmoid(a)),
    "normal_density": Case(
        (V(), V(), V(0.5, 2)),
        lambda x, m, s: torch.exp(-0.5 * ((x - m) / s) ** 2) / (s * np.sqrt(2 * np.pi)),
    ),
    "fused": Case((V(), V(), V()), lambda a, b, c: (a * b + c) * (b * c + a)),
    "unit": Case((F3(0.2, 1),), lambda v: unit(v) * v[:, :1], "float3"),
    "mirror": Case((F3(), F3(0.2, 1)), lambda v, n: v - 2 * dot(v, unit(n))[:, None] * unit(n), "float3"),
    "bend": Case((F3(0.2, 1), F3(-1, -0.2), V(0.6, 0.8)), _refract, "float3"),
    "crossing": Case((F3(), F3()), lambda a, b: cross(a, b) + a * dot(a, b)[:, None], "float3"),
    "spans": Case((F3(0.2, 1), F3(-1, -0.2)), lambda a, b: a.norm(dim=-1) * (a - b).norm(dim=-1)),
    "apply": Case((M(3, 3), F3()), lambda m, v: (m @ v[..., None])[..., 0] + (v[:, None] @ m)[:, 0], "float3"),
    "product": Case((M(2, 3), M(3, 2)), lambda a, b: a @ b, "float2x2"),
    "volume": Case((M(3, 3),), torch.linalg.det),
    "flipped": Case((M(2, 3),), lambda m: m.mT * m[:, 1:, 2:], "float3x2"),
    "shuffle": Case((X((N, 4), element="float4"),), _shuffle, "float4"),
    "rotate": Case((X((N, 4), element="float4"), F3()), _rotate, "float3"),
    "complex_square": Case((X((N, 2), element="float2"), X((N, 2), element="float2")), _complex, "float2"),
    "tone": Case((F3(0, 1), V()), _tone, "float3"),
    "outer": Case((F3(), F3()), lambda a, b: a[:, :, None] * b[:, None, :], "float3x3"),
    "horner": Case((X((6,)), V()), lambda c, x: sum(c[i] * x**i for i in range(6))),
    "prefix": Case((X((N, 4)),), _prefix),
    "spread_out": Case((V(), V()), _spread, "float[3]"),
    "newton_root": Case((V(0.5, 3),), _newton),
    "recurrence": Case((V(), V(), Ints(lengths(N, 12))), _recurrence),
    "leaky": Case((V(), V(n=1)), lambda x, slope: where(x > 0, x * x, slope * x)),
    "pieces": Case((V(), V()), _pieces),
    "chosen": Case((Ints(lengths(N, 3)), V(), V()), _chosen),
    "escape": Case((V(), V(-0.7, 0.7)), _escape),
    "nested": Case((V(), V(), Ints(lengths(N, 5))), _nested),
    "skipping": Case((V(), Ints(lengths(N, 10))), _skipping),
    "sphere_distance": Case((SPHERE, F3()), _sphere),
    "scene_distance": Case(({"ball": SPHERE, "other": SPHERE, "blend": V(1, 2)}, F3()), _scene),
    "line_at": Case(
        ({"slope": V(), "offset": V(n=1)}, V()), lambda s, x: s["slope"] * x + s["offset"] ** 2, method="Line.at"
    ),
    "line_turn": Case(({"slope": InOut((N,)), "offset": InOut((N,))}, V()), _turn, "", method="Line.turn"),
    "line_through": Case(
        (V(-2, -1), V(), V(1, 2), V(), V()),
        lambda x0, y0, x1, y1, x: y0 + (y1 - y0) / (x1 - x0) * (x - x0),
        method="Line.through",
    ),
    "generic_scalar": Case((V(), V()), lambda a, b: a * a * b + b),
    "generic_vector": Case(
        (X((N, 4), element="float4"), X((N, 4), element="float4")), lambda a, b: (a * b * b.flip(-1)).sum(-1)
    ),
    "area_of_box": Case(
        ({"_type": "Box", "w": V(), "h": V()}, V()),
        lambda s, k: s["w"] * s["h"] * k**3,
        function="area_of",
    ),
    "area_of_disc": Case(({"_type": "Disc", "r": V()}, V()), lambda s, k: 3 * s["r"] ** 2 * k**2, function="area_of"),
    "grow": Case((InOut((N,)), V()), lambda x, by: x * x * by, ""),
    "polar": Case((V(0.2, 1), V(), Out((N,)), Out((N,))), lambda x, y: ((x * x + y * y) ** 0.5, torch.atan2(y, x)), ""),
    "uses_steep": Case((V(), V(n=1)), _steep),
    "row_norm": Case((X((13, 29)),), lambda x: x.norm(dim=-1)),
    "log_sum_exp": Case((X((13, 29), -3, 3),), lambda x: torch.logsumexp(x, -1)),
    "variance": Case((X((13, 29)),), lambda x: x.var(-1)),
    "picked": Case((grid(23), Ints(TABLE), X((23,))), lambda at, x: x[at] * x + x[at]),
    "embedding": Case((Ints(TOKENS), X((11, 3), element="float3"), V()), lambda at, t, s: t[at] * s[:, None], "float3"),
    "laplace": Case((grid(N), X((N,)), X((1,))), _laplace),
    "plus_stencil": Case((grid(17, 31), X((17, 31))), _plus),
    "convolve": Case(
        (grid(15, 29), X((17, 31)), X((3, 3)), Out((15, 29))),
        lambda x, w: torch.nn.functional.conv2d(x[None, None], w[None, None])[0, 0],
        "",
    ),
    "layer": Case((grid(7), X((7, 13)), X((7,)), X((13,)), Out((7,))), lambda w, b, x: w @ x + b, ""),
    "matmul": Case((Ints(tuple(range(5))), Ints(tuple(range(9))), X((5, 11)), X((11, 9))), lambda i, k, a, b: a @ b),
    "two_places": Case(
        (grid(21), Ints(ORDER), X((21,)), Out((42,))),
        lambda order, x: (
            torch.zeros(42, dtype=torch.float64).index_put((order,), x * x).index_put((order + 21,), x * x.flip(0))
        ),
        "",
    ),
    "running_product": Case((X((9, 13)), Out((9, 13))), lambda x: torch.cumprod(x, -1), ""),
    "in_place": Case((grid(N), InOut((N,)), X((1,))), lambda x, k: x * x * k, ""),
    "composite": Case((grid(65), Structs("Splat", SPLATS)), _composite, "float3"),
    "force": Case((grid(13), X((13, 2), element="float2"), X((13,), 0.5, 2)), _force),
    "texel": Case((X((N, 2), 0.01, 0.99, "float2"), X((7, 9))), lambda uv, t: _bilinear(uv, t) ** 2),
    "bilinear": Case((X((N, 2), 0.01, 0.99, "float2"), X((7, 9, 3), element="float3")), _bilinear, "float3"),
    "mlp": Case((X((N, 2), element="float2"), X((5, 2)), X((6,))), _mlp),
    "grid_value": Case(
        ({"cells": X((3, 3)), "scale": X((1,))}, Ints((0, 1, 2)), Ints((0, 1, 2))),
        lambda g, i, k: _grid2(g),
        method="Grid2.value",
    ),
    "any_tensor": Case((grid(N), X((N,))), lambda x: x * x[0]),
    "any_rank": Case((grid(3, 5, 7), X((3, 5, 7))), lambda x: x**3),
}
MAPS = {
    "matmul": ((0,), (1,)), "grid_value": ({}, (0,), (1,)),
}  # fmt: skip


class Sides:
    """One case on both sides: arguments for the device, leaves for torch, and how to read the gradients."""

    def __init__(self, device: Any, module: Any, name: str) -> None:
        self.device, self.module = device, module
        self.random = np.random.default_rng(sum(map(ord, name)))
        self.leaves: list[tuple[Any, Callable[[], np.ndarray]]] = []
        self.seeds: list[Callable[[np.ndarray], None]] = []

    def numbers(self, shape: tuple[int, ...], lo: float, hi: float) -> np.ndarray:
        return self.random.uniform(lo, hi, shape).astype(np.float32)

    def tensor(self, values: np.ndarray, element: str) -> Any:
        return spy.Tensor.from_numpy(self.device, values, target_slang_dtype=None if element == "float" else element)

    def leaf(self, values: np.ndarray, read: Callable[[], np.ndarray]) -> Any:
        twin = torch.tensor(values, dtype=torch.float64, requires_grad=True)
        self.leaves.append((twin, read))
        return twin

    def make(self, spec: Any) -> tuple[Any, Any]:
        """The argument of the call, and torch's (None: the reference does not take it)."""
        if isinstance(spec, dict):
            pairs = {k: (v, v) if isinstance(v, str) else self.make(v) for k, v in spec.items()}
            return {k: p[0] for k, p in pairs.items()}, {k: p[1] for k, p in pairs.items()}
        if isinstance(spec, Ints):
            values = np.array(spec.values, np.int32)
            return spy.Tensor.from_numpy(self.device, values), torch.tensor(spec.values)
        if isinstance(spec, Out):
            argument = spy.Tensor.zeros(self.device, self.lead(spec.shape, spec.element), spec.element).with_grads()
            self.seeds.append(lambda seed: argument.grad.copy_from_numpy(seed))
            return argument, None
        if isinstance(spec, Structs):
            return self.structs(spec)
        if isinstance(spec, (X, InOut)):
            return self.plain(spec)
        return spec, None

    @staticmethod
    def lead(shape: tuple[int, ...], element: str) -> tuple[int, ...]:
        return shape[: len(shape) - (element[-1].isdigit() + ("x" in element))] if element != "float" else shape

    def plain(self, spec: Any) -> tuple[Any, Any]:
        values = self.numbers(spec.shape, spec.lo, spec.hi)
        argument = self.tensor(values, getattr(spec, "element", "float"))
        if isinstance(spec, InOut):
            argument = argument.with_grads(spy.Tensor.zeros_like(argument), spy.Tensor.zeros_like(argument))
            self.seeds.append(lambda seed: argument.grad_in.copy_from_numpy(seed))
            return argument, self.leaf(values, lambda: argument.grad_out.to_numpy())
        if not spec.grad:
            return argument, torch.tensor(values, dtype=torch.float64)
        argument = argument.with_grads()
        return argument, self.leaf(values, lambda: argument.grad.to_numpy())

    def structs(self, spec: Structs) -> tuple[Any, Any]:
        columns = {name: self.numbers(x.shape, x.lo, x.hi) for name, x in spec.fields}
        count = len(next(iter(columns.values())))
        argument = spy.Tensor.zeros(self.device, (count,), self.module[spec.name]).with_grads()
        cursor = argument.cursor()
        for i in range(count):
            cursor[i].write({k: v[i].tolist() if v.ndim == 1 else tuple(v[i].tolist()) for k, v in columns.items()})
        cursor.apply()

        def read(name: str) -> np.ndarray:
            cursor = argument.grad.cursor()
            values = [cursor[i].read()[name] for i in range(count)]
            return np.array([[v.x, v.y, v.z] if hasattr(v, "x") else v for v in values], np.float32)

        return argument, {k: self.leaf(v, lambda k=k: read(k)) for k, v in columns.items()}


@cache
def load(device: Any) -> Any:
    return spy.Module.load_from_file(device, str(SOURCE))


def flatten(outputs: Any) -> list[Any]:
    if isinstance(outputs, dict):
        return list(outputs.values())
    return list(outputs) if isinstance(outputs, tuple) else [outputs]


def compare(got: np.ndarray, expected: Any, what: str, error: float = 1e-5) -> None:
    """Of each element or, where terms cancel, of the largest."""
    want = np.zeros(got.shape) if expected is None else expected.numpy()
    scale = float(np.max(np.abs(want), initial=1e-6))
    np.testing.assert_allclose(got, want, rtol=error, atol=error * scale, err_msg=what)


def test_count():
    assert len(CASES) >= 60 and set(REPEATED) < set(CASES)


REPEATED = (
    "mul_add", "quotient", "arcs", "hyperbolic", "exponentials", "roots", "mixing", "smooth_step", "fractions", "normal_density",
    "fused", "unit", "bend", "spans", "volume", "flipped", "complex_square", "tone", "horner", "newton_root", "leaky", "chosen",
    "escape", "sphere_distance", "generic_scalar", "area_of_disc", "row_norm", "variance", "embedding", "plus_stencil", "layer",
    "running_product", "any_tensor", "texel", "mlp", "line_at",
)  # fmt: skip
"""Formulas of other numbers in the same kinds of parameters and of code as the cases that the gate runs."""


@pytest.mark.parametrize("name", gate(CASES, lambda name: name not in REPEATED))
def test_gradients(device, name):
    case, module = CASES[name], load(device)
    sides = Sides(device, module, name)
    made = [sides.make(spec) for spec in case.arguments]
    outputs = flatten(case.reference(*(twin for _, twin in made if twin is not None)))
    seeds = [sides.numbers(tuple(out.shape), -1, 1) for out in outputs]
    expected = torch.autograd.grad(
        outputs, [twin for twin, _ in sides.leaves], [torch.tensor(s, dtype=torch.float64) for s in seeds],
        allow_unused=True,
    )  # fmt: skip
    function = module
    for part in (case.method or case.function or name).split("."):
        function = function[part] if function is module else getattr(function, part)
    if name in MAPS:
        function = function.map(*MAPS[name])
    arguments = [argument for argument, _ in made]
    keywords: dict[str, Any] = {}
    if case.result:
        result = function(*arguments, _result="tensor")
        compare(result.to_numpy(), outputs[0].detach(), f"{name}: result", case.error)
        keywords["_result"] = result = result.with_grads()
        result.grad.copy_from_numpy(seeds[0])
    else:
        for fill, seed in zip(sides.seeds, seeds, strict=True):
            fill(seed)
    function.bwds(*arguments, **keywords)
    for number, ((_, read), want) in enumerate(zip(sides.leaves, expected, strict=True)):
        compare(read(), want, f"{name}: gradient {number}")
