"""Slang's own TensorView and DiffTensorView in functions: no import, fields of structs, users' extensions, torch's leaves."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from gradcheck import same, tensor, with_grad

import slangpy as spy
from slangpy.compiler.modules.facts import TextFacts
from slangpy.testing import CudaCodegen, nvrtc_available

pytestmark = pytest.mark.needs_kernels

SOURCE = """
struct Camera { float gain; TensorView<float> table; int n; }
struct Params { DiffTensorView exposure; DiffTensorView<float> gamma; float bias; }
__generic<T : __BuiltinFloatingPointType, A : IDiffTensorWrapper>
extension DiffTensorView<T, A>
{
    [BackwardDerivative(loadUniform_bwd)]
    T loadUniform(uint i) { return primal.load(i); }
    void loadUniform_bwd(uint i, T.Differential d)
    {
        T sum = WaveActiveSum(reinterpret<T, T.Differential>(d));
        if (WaveIsFirstLane())
            diff.load_backward<T>(i, sum);
    }
}
float lookup(int i, Camera c) { return c.gain * c.table[i % c.n]; }
void put(int i, Camera c) { c.table[i] = c.gain; }
[Differentiable] float expose(float x, DiffTensorView<float> p) { return x * p.loadUniform(0) + p.loadUniform(1); }
[Differentiable] float whole(int i, DiffTensorView x) { return x[i] * x[i]; }
[Differentiable] float fields(float x, Params p) { return x * p.exposure[0] + p.gamma[1] * x * x + p.bias; }
[Differentiable] void squares(int i, DiffTensorView<float, AtomicAdd> x, DiffTensorView y) { y[i] = x[i] * x[i]; }
[AutoPyBindCUDA] [CudaKernel] [Differentiable] void square(DiffTensorView input, DiffTensorView output)
{
    uint3 at = cudaThreadIdx() + cudaBlockIdx() * cudaBlockDim();
    if (at.x >= input.size(0)) return;
    output[at.x] = input[at.x] * input[at.x];
}
"""


@pytest.fixture
def m(device):
    return spy.Module.load_from_source(device, "core_views", SOURCE)


def test_fields_of_structs(device, m):
    table = np.arange(5, dtype=np.float32)
    camera = {"gain": 2.0, "table": table, "n": 3}
    same(m.lookup(spy.grid((5,)), camera, _result="numpy"), [0, 2, 4, 0, 2])
    m.put(spy.grid((2,)), {**camera, "table": (out := tensor(device, np.zeros(3)))})
    same(out, [2, 2, 0])
    exposure, gamma, x = with_grad(device, [2, 1]), with_grad(device, [2, 1]), with_grad(device, np.arange(4))
    params = {"exposure": exposure, "gamma": gamma, "bias": 0.5}
    same(m.fields(x, params, _result="numpy"), [0.5, 3.5, 8.5, 15.5])
    seed = tensor(device, np.ones(4))
    m.fields.bwds(x, params, _result=tensor(device, np.zeros(4)).with_grads(grad_in=seed))
    same(x.grad, [2, 4, 6, 8])
    same(exposure.grad, [6, 0])
    same(gamma.grad, [0, 14])


def on_device(torch, device, values):
    place = device.torch_device if device.info.type is spy.DeviceType.cuda else "cpu"
    return torch.tensor(values, dtype=torch.float32, device=place, requires_grad=True)


def test_leaves_of_torch(device, m):
    """Views that a function only reads are inputs of it: no in-place operation, and gradients come back."""
    torch = pytest.importorskip("torch")
    x, a, g = (on_device(torch, device, v) for v in ([0, 1, 2, 3], [2, 1], [2, 1]))
    m.fields(x, {"exposure": a, "gamma": g, "bias": 0.5}).sum().backward()
    assert (x.grad.tolist(), a.grad.tolist(), g.grad.tolist()) == ([2, 4, 6, 8], [6, 0], [0, 14])
    y = m.whole(spy.grid((4,)), x.exp())  # exp keeps its result, which must not count as changed
    y.sum().backward()
    expected = x.detach().double()
    assert torch.allclose(x.grad.double() - torch.tensor([2.0, 4, 6, 8]).to(x), 2 * (2 * expected).exp(), rtol=1e-5)
    out = torch.zeros(4, device=x.device)
    before = out._version, x._version
    m.squares(spy.grid((4,)), x, out)
    assert out.tolist() == [0, 1, 4, 9] and (out._version > before[0], x._version) == (True, before[1])


def test_extension_with_sums_over_a_wave(device, m):
    torch = pytest.importorskip("torch")
    x, p = on_device(torch, device, np.arange(100)), on_device(torch, device, [2, 3])
    y = m.expose(x, p)
    y.sum().backward()
    assert y.tolist() == [2 * i + 3 for i in range(100)]
    assert x.grad.tolist() == [2] * 100 and p.grad.tolist() == [4950, 100]


@pytest.mark.skipif(not nvrtc_available(), reason="NVRTC is not installed")
def test_cuda_code():
    torch = pytest.importorskip("torch")
    m = CudaCodegen("sm_80").load_from_source("core_views", SOURCE)
    x, y, p = (spy.diff_pair(torch.ones(2), torch.zeros(2)) for _ in range(3))
    camera = {"gain": 2.0, "table": np.zeros(3, np.float32), "n": 3}
    for function, args in (
        (m.lookup, (spy.grid((4,)), camera)),
        (m.fields.bwds, (x, {"exposure": y, "gamma": p, "bias": 0.5}, spy.diff_pair(None, torch.ones(2)))),
        (m.expose.bwds, (x, p, spy.diff_pair(None, torch.ones(2)))),
    ):
        view = m.device.build(function, *args)
        assert view.pipeline[:4] == b"\x7fELF"


def test_host_functions_need_slangs_view(device):
    source = """
[CudaKernel] void k(TensorView<float> x) { x[0] = 1; }
[TorchEntryPoint] void run(TorchTensor<float> x) { let one = uint3(1, 1, 1); __dispatch_kernel(k, one, one)(x); }
float first(TensorView<float> x) { return x[0]; }
"""
    m = spy.Module.load_from_source(device, "views_of_host_functions", source)
    with pytest.raises(
        spy.ResolveException, match=r"host functions \(\[TorchEntryPoint\]\); put those into another file"
    ):
        m.first(np.zeros(2, np.float32))


def test_who_writes():
    found = TextFacts("""
float a(TensorView<float> x, int i) { return x[i] + x.load(i) * x.size(0) + x[x.size(0) - 1] + (x[i] == 1 ? 0 : 1); }
void b(TensorView<float> x) { x[0] = 1; }
void c(TensorView<float> x) { /* no */ x[0] += 1; }
void d(TensorView<float2> x) { x[0].y = 1; }
void e(TensorView<float> x) { x.store(0, 1); }
void f(TensorView<int> x) { int o; x.InterlockedAdd(0, 1, o); }
float g(DiffTensorView x, int i) { return a(x.primal, i); }
float h(DiffTensorView x, int i) { float z = a(other(1, 2), 3); return g(x, i) + x.primal[0]; }
void i(DiffTensorView x) { b(x.primal); }
void j(DiffTensorView x) { x.primal[0] = 1; }
float k(TensorView<float> x, int n) { return n == 0 ? x[0] : k(x, n - 1); }
void l(TensorView<float> x) { let y = x; y[0] = 1; }
void m(TensorView<float> x) { ++x[0]; }
float n(DiffTensorView x) { return x.loadTwice(0); }
void o(DiffTensorView x) { x.clear(0); }
float p(TensorView<float> x) { return unknown(x); }
#define SET(v) w[0] = v
void q(TensorView<float> w) { SET(3); }
void r(TensorView<float> x) { s(x); } // each calls the other
void s(TensorView<float> x) { r(x); x[0] = 1; }
extension<T, A> DiffTensorView<T, A>
{
    T loadTwice(uint i) { return primal.load(i) * 2; }
    void clear(uint i) { primal[i] = 0; }
}
struct S { TensorView<float> t; float get(int i) { return t[i]; } void set() { this.t[0] = 1; } }
float t1(S s) { return s.t[0] + s.get(1); }
void t2(S s) { s.set(); }
void t3(S s) { s.t[1] = 2; }
float t4(S s) { return t1(s); }
""")
    assert [name for name in "abcdefghijklmnopqrs" if not found.writes_view(name, 0, ())] == ["a", "g", "h", "k", "n"]
    assert [name for name in ("t1", "t2", "t3", "t4") if not found.writes_view(name, 0, ("t",))] == ["t1", "t4"]
    assert found.writes_view("absent", 0, ()) and found.writes_view("a", 5, ())


IN_PLACE = """
[Differentiable] void cube(int i, DiffTensorView x, DiffTensorView y) { y[i] = x[i] * x[i] * x[i]; }
[Differentiable] void square(int i, DiffTensorView x) { x[i] = x[i] * x[i]; }
"""


@pytest.mark.parametrize("kind", ["tensor", "numpy", "torch"])
def test_products_and_checks(device: spy.Device, kind: str) -> None:
    """A view has one gradient, which is read and added to: spy.vjp, spy.check_gradients and the check of first runs."""
    if kind == "torch":
        torch = pytest.importorskip("torch")
    module = spy.Module.load_from_source(device, "in_place_views", IN_PLACE)
    place = device.torch_device if device.info.type is spy.DeviceType.cuda else "cpu"

    def given(values: np.ndarray) -> object:
        return (
            tensor(device, values)
            if kind == "tensor"
            else torch.from_numpy(values).to(place)
            if kind == "torch"
            else values
        )

    def host(value: Any) -> np.ndarray:
        return np.asarray(value.cpu() if kind == "torch" else value)

    x, seeds = np.arange(1, 5, dtype=np.float32), np.array([1, -2, 3, 0.5], np.float32)
    y, cotangents, at = np.zeros(4, np.float32), given(seeds.copy()), spy.grid((4,))
    _, gradients = spy.vjp(module.cube, (at, given(x), given(y)), cotangents)
    assert host(gradients[1]).tolist() == (3 * x * x * seeds).tolist() and not host(gradients[2]).any()
    made, gradients = spy.vjp(module.square, (at, given(x.copy())), cotangents)
    assert host(made).tolist() == (x * x).tolist()
    assert host(gradients[1]).tolist() == (2 * x * seeds).tolist()
    assert host(cotangents).tolist() == seeds.tolist()  # read, not consumed
    if kind != "numpy":
        spy.check_gradients(module.cube, at, given(x), given(y))
        spy.check_gradients(module.square, at, given(x))


def test_first_run_is_checked(device: spy.Device) -> None:
    module = spy.Module.load_from_source(device, "checked_views", IN_PLACE.replace("cube", "third"))
    x, y = (tensor(device, np.arange(1, 4, dtype=np.float32)).with_grads() for _ in range(2))
    y.grad.copy_from_numpy(np.ones(3, np.float32))
    before, device.check_gradients = device.check_gradients, True
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            module.third.bwds(spy.grid((3,)), x, y)
    finally:
        device.check_gradients = before
    assert x.grad.to_numpy().tolist() == [3, 12, 27]
