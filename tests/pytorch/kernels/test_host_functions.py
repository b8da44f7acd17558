"""[TorchEntryPoint] functions: results, gradients through kernels they launch, C++'s arithmetic, and errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

SQUARE = """
uint2 cell() { return (cudaBlockIdx() * cudaBlockDim() + cudaThreadIdx()).xy; }
[BackwardDifferentiable] float sq(float x) { return x * x; }
[CudaKernel] void fwd_kernel(TensorView<float> x, TensorView<float> y)
{
    uint2 i = cell();
    if (i.x < x.size(0) && i.y < x.size(1)) y[i] = sq(x[i]);
}
[CudaKernel] void bwd_kernel(TensorView<float> x, TensorView<float> dy, TensorView<float> dx)
{
    uint2 i = cell();
    if (i.x >= x.size(0) || i.y >= x.size(1)) return;
    DifferentialPair<float> p = diffPair(x[i]);
    bwd_diff(sq)(p, dy[i]);
    dx[i] = p.d;
}
[TorchEntryPoint] TorchTensor<float> square_fwd(TorchTensor<float> x)
{
    var y = TorchTensor<float>.alloc(x.size(0), x.size(1));
    let block = uint3(16, 16, 1);
    let grid = uint3((x.size(0) + 15) / 16, (x.size(1) + 15) / 16, 1);
    __dispatch_kernel(fwd_kernel, grid, block)(x, y);
    return y;
}
[TorchEntryPoint] TorchTensor<float> square_bwd(TorchTensor<float> x, TorchTensor<float> dy)
{
    var dx = TorchTensor<float>.zerosLike(x);
    let block = uint3(16, 16, 1);
    let grid = uint3((x.size(0) + 15) / 16, (x.size(1) + 15) / 16, 1);
    __dispatch_kernel(bwd_kernel, grid, block)(x, dy, dx);
    return dx;
}
[AutoPyBindCUDA] [CudaKernel] void both(TensorView<float> x, TensorView<uint> y) { y[0] = uint(x[0]); }
[shader("compute")] [numthreads(32, 1, 1)] void entry(uint3 id : SV_DispatchThreadID, uniform RWStructuredBuffer<float> b) { b[id.x] = 1; }
float ordinary(float x) { return 2 * x; }
"""


def test_through_autograd(load: Any, place: str) -> None:
    m = load(SQUARE)

    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return m.square_fwd(x)

        @staticmethod
        def backward(ctx: Any, gradient: Any) -> Any:  # type: ignore[override]
            return m.square_bwd(ctx.saved_tensors[0], gradient.contiguous())

    x = torch.tensor([[3.0, 4.0], [0.0, 1.0]], device=place, requires_grad=True)
    y = Square.apply(x)
    y.sum().backward()
    assert y.tolist() == [[9, 16], [0, 1]] and x.grad.tolist() == [[6, 8], [0, 2]]
    assert y.device.type == place
    large = torch.randn(100, 37, device=place)
    assert torch.equal(m.square_fwd(x=large), large * large)


def test_one_file_in_both_apis(load: Any, place: str) -> None:
    m = load(SQUARE)
    y = torch.zeros(1, dtype=torch.int32, device=place)
    m.both(torch.tensor([7.5], device=place), y).launchRaw(1, 1)
    assert y.item() == 7 and "entry" not in dir(m)


VALUES = """
struct R { TorchTensor<float> t[3]; float v; }
enum Mode { A, B = 5 }
struct P { float3 c; int n; float2x3 m; Mode mode; }
struct Nested { P p[2]; TorchTensor<float> t; }
[CudaKernel] void fill(TensorView<float> y, P p, float3 v, float k[2], uint n, DiffTensorView<float> d)
{ uint i = cudaThreadIdx().x; if (i < y.size(0)) y[i] = p.c.y + v.z + k[1] + n + p.m[1][2] + d.primal[0]; }
[TorchEntryPoint] R many(TorchTensor<float> x, float v)
{
    R r;
    for (int i = 0; i < 3; i++) { r.t[i] = TorchTensor<float>.emptyLike(x); r.t[i].fillValue(i * v); }
    r.v = v * 2;
    return r;
}
[TorchEntryPoint] void nothing() { }
[CudaHost] uint hash(uint a) { uint h = 2166136261; for (uint i = 0; i < a; i++) { if (i == 3) continue; h ^= i; h *= 16777619; } return h; }
[TorchEntryPoint] uint fnv(uint n) { return hash(n); }
[TorchEntryPoint] int choose(int x, bool b, Mode m)
{
    int total = 0; int i = 0;
    while (i < x)
    {
        i++;
        switch (i % 4) { case 0: continue; case 1: total += 1; break; case 2: case 3: total += 10; break; default: total += 100; }
        total += 1000;
    }
    return b ? total : -total + int(m) + (x / 2) + (-7 / 2) + (-7 % 3);
}
[TorchEntryPoint] float3 vectors(float3 a, float2x3 m, float k[4], Nested n)
{
    float3 r = a;
    float3 copy = r;
    r.y += mul(m, a).y;
    r.x = k[2] + sin(k[1]) + n.p[1].c.z + copy.y;
    r.z = max(r.z, n.p[0].n);
    return r * 2 + float3(n.p[0].m[1][0]);
}
[TorchEntryPoint] TorchTensor<float> launches(TorchTensor<float> x, P p, float3 v)
{
    var y = TorchTensor<float>.alloc(x.size(0));
    let block = uint3(32, 1, 1);
    let grid = uint3(1, 1, 1);
    float k[2] = { 1, 2 };
    var g = TorchTensor<float>.zerosLike(x);
    DiffTensorView<float> d; d.primal = x; d.diff.diff = g;
    __dispatch_kernel(fill, grid, block)(y, p, v, k, x.dims() + x.stride(0), d);
    syncTorchCudaStream();
    return y;
}
[TorchEntryPoint] TorchTensor<float3> of_vectors(TorchTensor<float3> x) { let y = TorchTensor<float3>.alloc(4, 2); y.fillValue(float3(1, 2, 3)); return y; }
[TorchEntryPoint] Nested back(Nested n) { n.p[0].n += 1; return n; }
[TorchEntryPoint] double mixed(double a, int64_t b, uint64_t c, half h, int8_t s, uint8_t u)
{ return a + b + c + float(h) + s + u + (b >> 2) + (c << 3) + (~b & 7) + (b > 3 ? 1.0 : 0.0); }
[TorchEntryPoint] float rounds(float a, float b) { if (b < 0) return -1.0f / 0.0f; return a * b; }
"""
P = {"c": (1, 2, 3), "n": 4, "m": ((1, 2, 3), (4, 5, 6)), "mode": 5}


def test_aggregates_come_as_tuples(load: Any, place: str) -> None:
    m = load(VALUES)
    x = torch.ones(2, 2, device=place)
    tensors, v = m.many(x, 1.5)
    assert type(tensors) is tuple and [t[0, 0].item() for t in tensors] == [0, 1.5, 3] and v == 3
    assert m.nothing() is None
    given = {"p": (P, m.P(**{**P, "n": 9})), "t": x}
    (first, second), t = m.back(given)
    assert first == ((1, 2, 3), 5, ((1, 2, 3), (4, 5, 6)), 5) and second[1] == 9 and t is x


def test_numbers_are_those_of_cpp(load: Any) -> None:
    m = load(VALUES)
    assert m.fnv(7) == 604709583
    for x in (0, 5, 9):
        total = sum(0 if i % 4 == 0 else 1001 if i % 4 == 1 else 1010 for i in range(1, x + 1))
        assert m.choose(x, True, 5) == total and m.choose(x, False, m.Mode.B) == -total + 5 + x // 2 - 3 - 1
    expected = 1.5 + 100 + 2**40 + 0.5 - 3 + 200 + 25 + 2**43 + (~100 & 7) + 1
    assert m.mixed(1.5, 100, 2**40, 0.5, -3, 200) == expected
    assert m.rounds(0.1, -3.0) == -float("inf")
    assert m.rounds(0.1, 3.0) == np.float32(0.1) * np.float32(3)


def test_vectors_and_matrices(load: Any) -> None:
    m = load(VALUES)
    n = {"p": (P, P), "t": torch.ones(1)}
    x, y, z = m.vectors((1, 2, 3), P["m"], (1, 2, 3, 4), n)
    assert abs(x - ((3 + np.sin(2) + 3 + 2) * 2 + 4)) < 1e-5 and (y, z) == ((2 + 32) * 2 + 4, 12)


def test_structs_reach_kernels(load: Any, place: str) -> None:
    m = load(VALUES)
    y = m.launches(torch.arange(3.0, device=place) + 1, P, (7, 8, 9))
    assert y.tolist() == [2 + 9 + 2 + 2 + 6 + 1] * 3
    vectors = m.of_vectors(torch.zeros(1, 3, device=place))
    assert vectors.shape == (4, 2, 3) and vectors[3, 1].tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    "call, error, text",
    [
        (lambda m: m.fnv(-1), TypeError, "fnv: n: -1 does not fit uint32_t"),
        (lambda m: m.fnv(1.0), TypeError, "fnv: n: expected an integer"),
        (lambda m: m.fnv(), ValueError, "'n' is missing"),
        (lambda m: m.fnv(1, n=2), ValueError, "given twice"),
        (lambda m: m.fnv(1, 2), ValueError, "takes 1 arguments"),
        (lambda m: m.many(3, 1.0), RuntimeError, "many: x: expected a tensor"),
        (lambda m: m.vectors((1, 2), P["m"], (1, 2, 3, 4), {}), TypeError, "vectors: a: expected a tuple or list of 3"),
        (lambda m: m.back({"p": (P,), "t": torch.ones(1)}), ValueError, r"back: n\.p: expected a tuple or list of 2"),
        (lambda m: m.launches(torch.ones(3, dtype=torch.float64), P, (1, 2, 3)), RuntimeError, "float32.*float64"),
    ],
)
def test_errors(load: Any, call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call(load(VALUES))
