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
            return m.square_bwd(ctx.saved_tensors[0], gradient)

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


OUTPUTS = """
struct P { int a; int b[2]; [mutating] int bump(int d) { a += d; return a; } }
void fill(inout P p, out int k) { p.b[0] = 5; k = p.a * 10; }
void whole(out float3 v, out P p, inout float2x2 m)
{
    v = float3(1, 2, 3);
    p.a = 1; p.b[0] = 2; p.b[1] = 3;
    m = m * 2;
    m[0][1] = 9;
}
void swap(inout int a, inout int b) { int t = a; a = b; b = t; }
void deep(inout int a, out float f) { fill_in(a, f); }
void fill_in(inout int a, out float f) { a *= 3; f = a * 0.5; }
void element(inout int x[3], int i, out float f) { x[i] = i * 7; f = x[i]; }
[TorchEntryPoint] int everything(int a)
{
    P p; p.a = a; p.b[1] = 3;
    int k;
    fill(p, k);                                // k = 10 a
    P q; float3 v; float2x2 m = float2x2(1, 2, 3, 4);
    whole(v, q, m);
    swap(p.b[0], p.b[1]);                      // p.b = 3, 5
    int x[3] = { 1, 2, 3 };
    float f, g;
    element(x, 1, f);
    swap(x[0], x[2]);                          // x = 3, 7, 1
    swap(a, k);
    deep(x[2], g);                             // x[2] = 3, g = 1.5
    for (int i = 0; i < 2; i++) { int w; fill(q, w); k += w; }
    return k * 1000000 + p.b[0] * 100000 + int(v.y) * 10000 + q.b[0] * 1000 + int(m[0][1]) * 100 + int(f + g * 2) + a + p.bump(3) + x[2];
}
[CudaKernel] void store(TensorView<float> y, float s, int2 v, P p) { y[0] = s + v.y + p.a; }
[TorchEntryPoint] TorchTensor<float> launched(float s)
{
    var y = TorchTensor<float>.alloc(1);
    let one = uint3(1, 1, 1);
    P p; p.a = 4;
    int k; float f;
    fill(p, k);
    fill_in(k, f);
    __dispatch_kernel(store, one, one)(y, s * 2 + k + f, int2(1, 2), p);
    return y;
}
[TorchEntryPoint] int choose(int k)
{
    int r = 0;
    for (int i = 0; i < 5; i++)
    {
        switch (k + i)
        {
        case 0: r += 1;
        case 1: r += 2; break;
        case 2: if (i == 1) continue; r += 4; break;
        case 3: return r * 100;
        case 5: for (int j = 0; j < 9; j++) { if (j == 3) break; r += j; } if (r > 20) break; r += 50; break;
        default: r += 8;
        }
        r += 1000;
    }
    return r;
}
"""


def chosen(k: int) -> int:
    r = 0
    for i in range(5):
        value = k + i
        if value == 2 and i == 1:
            continue
        if value == 3:
            return r * 100
        if value == 5:
            r += 3
            r += 0 if r > 20 else 50
        else:
            r += {0: 3, 1: 2, 2: 4}.get(value, 8)
        r += 1000
    return r


def test_outputs_of_helpers(load: Any) -> None:
    """`out` and `inout` reach the caller's variables, elements and whole structs."""
    m = load(OUTPUTS)
    k, a = 4, 40  # swapped
    expected = (k + 20) * 1000000 + 3 * 100000 + 20000 + 5000 + 900 + (7 + 3) + a + 7 + 3
    assert m.everything(4) == expected


def test_outputs_become_arguments_of_kernels(load: Any) -> None:
    assert load(OUTPUTS).launched(1.5).tolist() == [3 + 120 + 60 + 2 + 4]


def test_cases_that_go_on_or_end_early(load: Any) -> None:
    m = load(OUTPUTS)
    assert [m.choose(k) for k in range(-5, 8)] == [chosen(k) for k in range(-5, 8)]


CONSTANTS = """
static const int digits[4] = { 3, 1, 4, 1 };
static const float table[2][2] = { { 1, 2 }, { 3, 4 } };
struct Q { int a; float b; }
static const Q parts[2] = { { 1, 2.5 }, { 3, 4.5 } };
static int counter = 3;
int digit(int i) { return digits[i & 3]; }
[TorchEntryPoint] float sum(int i) { return digit(i) * 10 + table[i & 1][1] + parts[i & 1].b; }
[TorchEntryPoint] int counts(int i) { counter += i; return counter; }
[TorchEntryPoint] int next(int i) { return i + 1; }
"""


def test_constants_of_the_file(load: Any) -> None:
    m = load(CONSTANTS)
    assert [m.sum(i) for i in range(4)] == [30 + 2 + 2.5, 10 + 4 + 4.5, 40 + 2 + 2.5, 10 + 4 + 4.5] and m.next(1) == 2
    with pytest.raises(RuntimeError, match="counts: the host function cannot run: the variable 'counter', which is not constant"):
        m.counts(1)


BESIDE_METHODS = """
struct Empty {}
[PyExport("Net")] struct NetImpl { float w; }
[AutoPyBindCUDA] [CudaKernel] void sizes(Empty e, NetImpl n, TensorView<float> a, TensorView<float> y) { y[0] = a.dim(0) + n.w; }
[CudaKernel] void fill(TensorView<float> y, float v) { y.fillValue(v); }
[TorchEntryPoint] TorchTensor<float> filled(TorchTensor<float> x, float v)
{
    var y = TorchTensor<float>.emptyLike(x);
    let one = uint3(1);
    __dispatch_kernel(fill, one, one)(y, v);
    return y;
}
"""


def test_beside_methods_of_views_that_are_ours(load: Any) -> None:
    """dim() and fillValue() come from a module that the loader imports, for the text of host functions, too."""
    m = load(BESIDE_METHODS)
    y = torch.zeros(2, 3)
    assert m.filled(y, 2.5).tolist() == [[2.5] * 3] * 2
    out = torch.zeros(1)
    m.sizes(None, m.Net(0.5), torch.ones(1).expand(4), out).launchRaw((1, 1, 1), (1, 1, 1))  # dim() only reads
    assert out.tolist() == [4.5]
    assert dir(m) == ["DiffTensorView", "Empty", "Net", "fill", "filled", "sizes"]
    assert [line.split()[0] for line in repr(m).splitlines()[1:]] == dir(m)
    with pytest.raises(ValueError, match="fill: 'threads'"):
        m.fill(y, 1.0).launch(None)
