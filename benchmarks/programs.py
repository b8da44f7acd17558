"""The programs of `python -m benchmarks`: each a call of ours, its peers, and a check against NumPy float64."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import slangpy as spy

from . import find_package
from .cuda_kernels import CudaKernels

SOURCE = """
import slangpy;
struct Three { float a; float b; float c; };
[Differentiable] float polynomial(float x) { return 2 * x * x + 8 * x - 1; }
float same(float x) { return x; }
float3 same3(float3 v) { return v; }
Three same_struct(Three s) { return s; }
float row_sum(int i, Tensor<float, 2> x)
{
    float s = 0;
    for (int k = 0; k < x.shape[1]; k++)
        s += x[i, k];
    return s;
}
float indirect_sum(int i, Tensor<float, 2> x, Tensor<int, 1> index)
{
    float s = 0;
    for (int k = 0; k < x.shape[0]; k++)
        s += x[k, index[i]];
    return s;
}
float gather(Tensor<float, 1> x, int i) { return x[i]; }
[Differentiable] float gather_diff(IDiffTensor<float, 1> x, no_diff int i) { return x[i]; }
float stencil(int2 column_row, Tensor<float, 2> x)
{
    int2 p = column_row.yx; // a grid's first component is its last dimension
    int2 n = int2(x.shape[0], x.shape[1]) - 1;
    return 0.25f * (x[max(p.x - 1, 0), p.y] + x[min(p.x + 1, n.x), p.y]
        + x[p.x, max(p.y - 1, 0)] + x[p.x, min(p.y + 1, n.y)]);
}
[Differentiable] float iterated(float x)
{
    float y = x;
    [MaxIters(64)] for (int i = 0; i < 64; i++)
        y = 0.5f * y + x * y * (1 - y);
    return y;
}
float twenty(float a, float b, float c, float d, float e, float f, float g, float h, float i, float j, float k,
    float l, float m, float n, float o, float p, float q, float r, float s, float t)
{
    return a + b + c + d + e + f + g + h + i + j + k + l + m + n + o + p + q + r + s + t;
}
float sum_of_16(int i, Tensor<float, 1> a, Tensor<float, 1> b, Tensor<float, 1> c, Tensor<float, 1> d,
    Tensor<float, 1> e, Tensor<float, 1> f, Tensor<float, 1> g, Tensor<float, 1> h, Tensor<float, 1> j,
    Tensor<float, 1> k, Tensor<float, 1> l, Tensor<float, 1> m, Tensor<float, 1> n, Tensor<float, 1> o,
    Tensor<float, 1> p, Tensor<float, 1> q)
{
    return a[i] + b[i] + c[i] + d[i] + e[i] + f[i] + g[i] + h[i] + j[i] + k[i] + l[i] + m[i] + n[i] + o[i] + p[i] + q[i];
}
float two(float a, float b) { return a + b; }
"""


@dataclass
class Program:
    name: str
    bytes: int  # read and written by one call; 0 for calls of four elements
    calls: dict[str, Callable[[], Any]]  # ours is "slangpy"
    check: Callable[[], float]  # error of what "slangpy" computed, relative to the largest number
    notes: str = ""
    tolerance: float = 1e-4


@dataclass
class Bench:
    device: Any
    torch: Any  # None where it does not see the device
    cupy: Any
    count: int  # of elements
    rng: np.random.Generator = field(default_factory=np.random.default_rng)
    by_hand: CudaKernels | None = None  # kernels in CUDA, where CuPy is installed

    def __post_init__(self) -> None:
        if self.cupy:
            self.by_hand = CudaKernels(self.cupy)
        self.module = spy.Module.load_from_source(self.device, "benchmark_programs", SOURCE)

    def random(self, *shape: int) -> np.ndarray:
        return self.rng.random(shape, np.float32)

    def tensor(self, values: np.ndarray, dtype: str | None = None) -> Any:
        return spy.Tensor.from_numpy(self.device, values, target_slang_dtype=dtype)

    def poisoned(self, shape: tuple[int, ...], dtype: str = "float", width: int = 1) -> Any:
        values = np.full(shape + (width,) if width > 1 else shape, np.nan, np.float32)
        return self.tensor(values, dtype)

    def peer(self, values: np.ndarray) -> Any:
        """A torch tensor on this device."""
        return self.torch.from_numpy(values).to(self.torch_name)

    @property
    def torch_name(self) -> str:
        return self.device.info.type.name


def error_of(result: Any, expected: np.ndarray) -> float:
    got = np.asarray(result.to_numpy(), np.float64).reshape(expected.shape)
    if not np.isfinite(got).all():
        return float("inf")
    return float(np.abs(got - expected).max() / max(np.abs(expected).max(), 1e-30))


def elementwise(b: Bench) -> Program:
    values = b.random(b.count)
    x, y = b.tensor(values), b.poisoned((b.count,))
    calls: dict[str, Any] = {"slangpy": lambda: b.module.polynomial(x, _result=y)}
    if b.torch:
        u = b.peer(values)
        calls["torch"] = lambda: 2 * u * u + 8 * u - 1
        compiled = b.torch.compile(lambda v: 2 * v * v + 8 * v - 1)
        calls["torch.compile"] = lambda: compiled(u)
        kernels = find_package("benchmarks.triton_kernels") if b.torch_name == "cuda" else None
        if kernels:
            out = b.torch.empty_like(u)
            calls["triton"] = lambda: kernels.polynomial(u, out)
    if b.cupy:
        c = b.cupy.asarray(values)
        kernel = b.cupy.ElementwiseKernel("float32 x", "float32 y", "y = 2 * x * x + 8 * x - 1", "polynomial")
        target = b.cupy.empty_like(c)
        calls["cupy"] = lambda: kernel(c, target)
    wide = values.astype(np.float64)
    return Program("elementwise", 8 * b.count, calls, lambda: error_of(y, 2 * wide * wide + 8 * wide - 1))


def row_sums(b: Bench) -> Program:
    values = b.random(16, b.count // 16)
    x, y, rows = b.tensor(values.T.copy()), b.poisoned((b.count // 16,)), spy.grid((b.count // 16,))
    calls: dict[str, Any] = {"slangpy": lambda: b.module.row_sum(rows, x, _result=y)}
    if b.torch:
        u = b.peer(values.T.copy())
        calls["torch"] = lambda: u.sum(1)
    if b.by_hand:
        calls["CUDA"] = b.by_hand.row_sum(b.cupy.asarray(values.T.copy()))
    expected = values.astype(np.float64).sum(0)
    return Program("row sums of 16, x[i, k]", 4 * b.count + b.count // 4, calls, lambda: error_of(y, expected))


def indirect_sums(b: Bench) -> Program:
    width = b.count // 16
    values, index = b.random(16, width), b.rng.integers(0, width, width, np.int32)
    x, i, y, grid = b.tensor(values), b.tensor(index), b.poisoned((width,)), spy.grid((width,))
    calls: dict[str, Any] = {"slangpy": lambda: b.module.indirect_sum(grid, x, i, _result=y)}
    if b.torch:
        u, v = b.peer(values), b.peer(index)
        calls["torch"] = lambda: u[:, v].sum(0)
    if b.by_hand:
        calls["CUDA"] = b.by_hand.indirect_sum(b.cupy.asarray(values), b.cupy.asarray(index))
    expected = values.astype(np.float64)[:, index].sum(0)
    return Program(f"indirect sums over 16 rows of {width}", 4 * b.count + 8 * width, calls, lambda: error_of(y, expected))


def sixteen(b: Bench) -> Program:
    """Tensors of 2^20, whatever the others have: what other measurements of this took."""
    width = min(1 << 20, b.count)
    values, index = b.random(16, width), b.rng.integers(0, width, width, np.int32)
    tensors, i, y = [b.tensor(row) for row in values], b.tensor(index), b.poisoned((width,))
    calls: dict[str, Any] = {"slangpy": lambda: b.module.sum_of_16(i, *tensors, _result=y)}
    if b.torch:
        rows, v = [b.peer(row) for row in values], b.peer(index)
        calls["torch"] = lambda: sum(row[v] for row in rows)
        compiled = b.torch.compile(lambda rows, v: sum(row[v] for row in rows))
        calls["torch.compile"] = lambda: compiled(rows, v)
    if b.by_hand:
        calls["CUDA"] = b.by_hand.indirect_sum(b.cupy.asarray(values), b.cupy.asarray(index))
    expected = values.astype(np.float64)[:, index].sum(0)
    return Program(f"16 tensors of {width} at random indices", 72 * width, calls, lambda: error_of(y, expected))


def gathers(b: Bench) -> Program:
    values, index = b.random(b.count), b.rng.integers(0, b.count, b.count, np.int32)
    x, i, y = b.tensor(values), b.tensor(index), b.poisoned((b.count,))
    calls: dict[str, Any] = {"slangpy": lambda: b.module.gather(x, i, _result=y)}
    if b.torch:
        u, v = b.peer(values), b.peer(index)
        calls["torch"] = lambda: b.torch.index_select(u, 0, v)
    if b.cupy:
        c, d = b.cupy.asarray(values), b.cupy.asarray(index)
        calls["cupy"] = lambda: b.cupy.take(c, d)
        assert b.by_hand
        calls["CUDA"] = b.by_hand.gather(c, d)
    return Program("gather", 12 * b.count, calls, lambda: error_of(y, values[index].astype(np.float64)))


def stencils(b: Bench) -> Program:
    side = int(b.count**0.5)
    values = b.random(side, side)
    x, y, grid = b.tensor(values), b.poisoned((side, side)), spy.grid((side, side))
    calls: dict[str, Any] = {"slangpy": lambda: b.module.stencil(grid, x, _result=y)}

    def shifted(p: Any) -> Any:
        return 0.25 * (p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:])

    if b.torch:
        padded = b.peer(np.pad(values, 1, mode="edge"))
        calls["torch"] = lambda: shifted(padded)
        compiled = b.torch.compile(shifted)
        calls["torch.compile"] = lambda: compiled(padded)
    if b.by_hand:
        calls["CUDA"] = b.by_hand.stencil(b.cupy.asarray(values))
    expected = shifted(np.pad(values.astype(np.float64), 1, mode="edge"))
    return Program(
        "stencil of 4 neighbours", 8 * side * side, calls, lambda: error_of(y, expected), "torch: padded before"
    )


def layouts(b: Bench) -> dict[str, Callable[[Bench], Program]]:
    side, cube = int(b.count**0.5), max(int(b.count ** (1 / 4)), 2)
    views: dict[str, tuple[tuple[int, ...], Callable[[Any], Any], Callable[[Any], Any] | None]] = {
        "transposed 2-d": ((side, side), lambda t: t.permute(1, 0), None),
        "permuted 4-d": ((cube,) * 4, lambda t: t.permute(3, 1, 0, 2), None),
        "strided 2-d": ((side, 2 * side), lambda t: t[:, ::2], None),
        "reversed 2-d": ((side, side), lambda t: t[:, ::-1], lambda t: t.flip(1)),
        "broadcast 2-d": ((1, side), lambda t: t.broadcast_to((side, side)), None),
        "broadcast 3-d": ((cube * cube, 1, cube), lambda t: t.broadcast_to((cube * cube, cube, cube)), None),
    }
    return {
        name.replace(" ", "-"): lambda b, name=name, case=case: layout(b, name, *case) for name, case in views.items()
    }


def layout(b: Bench, name: str, shape: tuple[int, ...], view: Any, flip: Any) -> Program:
    values = b.random(*shape)
    x = view(b.tensor(values))
    target = tuple(x.shape)
    y = b.poisoned(target)
    calls: dict[str, Any] = {"slangpy": lambda: b.module.same(x, _result=y)}
    if b.torch:
        u, out = b.peer(values), b.torch.empty(target, device=b.torch_name)
        calls["torch"] = (lambda: flip(u)) if flip else (lambda: out.copy_(view(u)))
    if b.by_hand and name == "transposed 2-d":
        calls["CUDA"] = b.by_hand.transpose(b.cupy.asarray(values))
    double = b.tensor(values).to_numpy().astype(np.float64)
    expected = numpy_view(name, double, target)
    return Program(name, 8 * int(np.prod(target)), calls, lambda: error_of(y, expected))


def numpy_view(name: str, values: np.ndarray, target: tuple[int, ...]) -> np.ndarray:
    if name.startswith("broadcast"):
        return np.broadcast_to(values, target)
    if name == "permuted 4-d":
        return values.transpose(3, 1, 0, 2)
    return {"transposed 2-d": values.T, "strided 2-d": values[:, ::2], "reversed 2-d": values[:, ::-1]}[name]


def float3_rows(b: Bench) -> Program:
    count = b.count // 4
    values = b.random(count, 3)
    x, y = b.tensor(values, "float3"), b.poisoned((count,), "float3", 3)
    calls: dict[str, Any] = {"slangpy": lambda: b.module.same3(x, _result=y)}
    if b.by_hand:
        calls["CUDA"] = b.by_hand.copy(b.cupy.asarray(values))
    return Program(
        "float3, rows of 12 bytes", 24 * count, calls, lambda: error_of(y, values.astype(np.float64))
    )


def structs(b: Bench) -> Program:
    count = b.count // 4
    values = b.random(count, 3)
    x, y = (spy.Tensor.empty(b.device, (count,), b.module.Three) for _ in range(2))
    x.storage.copy_from_numpy(values)
    y.storage.copy_from_numpy(np.full_like(values, np.nan))

    def error() -> float:
        got = y.storage.to_numpy().view(np.float32)[: 3 * count].reshape(count, 3)
        return float(np.abs(got - values).max()) if np.isfinite(got).all() else float("inf")

    return Program("struct of 3 floats", 24 * count, {"slangpy": lambda: b.module.same_struct(x, _result=y)}, error)


def scattered(b: Bench, targets: int, name: str) -> Program:
    values, seeds = b.random(targets), b.random(b.count)
    index = b.rng.integers(0, targets, b.count, np.int32)
    x, i = b.tensor(values).with_grads(), b.tensor(index)
    y = b.poisoned((b.count,)).with_grads(grad_in=b.tensor(seeds))
    calls: dict[str, Any] = {"slangpy": lambda: b.module.gather_diff.bwds(x, i, _result=y)}
    if b.torch:
        grad, v, g = b.peer(np.zeros(targets, np.float32)), b.peer(index), b.peer(seeds)
        wide = v.long()
        calls["torch index_add_"] = lambda: grad.index_add_(0, v, g)
        calls["torch scatter_add_"] = lambda: grad.scatter_add_(0, wide, g)
    expected = np.bincount(index, weights=seeds.astype(np.float64), minlength=targets)
    tolerance = 1e-3 if targets < 1000 else 1e-4  # float32 sums of a million numbers each
    return Program(
        name, 8 * b.count, calls, lambda: error_of(x.grad, expected), "gradients are added to zeros", tolerance
    )


def loop(b: Bench) -> Program:
    count = b.count // 16
    values, seeds = b.random(count), b.random(count)
    x = b.tensor(values).with_grads()
    y = b.poisoned((count,)).with_grads(grad_in=b.tensor(seeds))
    state, slope = values.astype(np.float64), np.ones(count)
    for _ in range(64):
        slope = 0.5 * slope + state * (1 - state) + values * slope * (1 - 2 * state)
        state = 0.5 * state + values * state * (1 - state)
    calls: dict[str, Any] = {"slangpy": lambda: b.module.iterated.bwds(x, _result=y)}
    return Program("backward of a loop of 64 steps", 12 * count, calls, lambda: error_of(x.grad, slope * seeds))


def few(b: Bench, arguments: int) -> Program:
    columns = b.random(arguments, 4)
    tensors, y = [b.tensor(column) for column in columns], b.poisoned((4,))
    function = b.module.two if arguments == 2 else b.module.twenty
    calls: dict[str, Any] = {"slangpy": lambda: function(*tensors, _result=y)}
    if b.torch and arguments == 2:
        u, v = (b.peer(column) for column in columns)
        out = b.torch.empty_like(u)
        calls["torch"] = lambda: b.torch.add(u, v, out=out)
    expected = columns.astype(np.float64).sum(0)
    return Program(f"warm call, {arguments} Tensors of 4", 0, calls, lambda: error_of(y, expected))


def programs(b: Bench) -> dict[str, Callable[[Bench], Program]]:
    """All programs by the word that `--only` picks them by."""
    return {
        "elementwise": elementwise,
        "two": lambda b: few(b, 2),
        "twenty": lambda b: few(b, 20),
        "rows": row_sums,
        "indirect": indirect_sums,
        "sixteen": sixteen,
        "gather": gathers,
        "stencil": stencils,
        **layouts(b),
        "float3": float3_rows,
        "struct": structs,
        "scattered": lambda b: scattered(b, b.count // 4, "scattered gradients"),
        "meeting": lambda b: scattered(b, 64, "scattered gradients that meet in 64"),
        "loop": loop,
    }
