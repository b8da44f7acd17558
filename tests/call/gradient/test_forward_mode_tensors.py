"""Forward mode through tensor parameters: every rank and index type, stores, in-place updates; CUDA code generation."""

from __future__ import annotations

import os
from functools import cache
from typing import Any

import numpy as np
import pytest
from gradcheck import SOURCE, check, load, same, tensor, with_grad
from tiers import gate

import slangpy as spy
from slangpy.testing import CudaCodegen, nvrtc_available

pytestmark = pytest.mark.one

RNG = np.random.default_rng(13)
INTEGERS = ["int", "uint", "int64_t", "uint64_t", "int16_t", "uint16_t", "int8_t", "uint8_t"]
on_devices = pytest.mark.needs_kernels


def source() -> str:
    """Functions of all ranks and index types: y = x * x at one element, by every form."""
    lines = ["import slangpy;"]
    for rank in range(9):
        index = ", ".join(f"i[{k}]" for k in range(rank))
        comma = ", " if rank else ""
        parameter = f"int i[{rank}], " if rank else ""
        lines += [
            f"[Differentiable] float rank{rank}({parameter}ITensor<float, {rank}> x, IWTensor<float, {rank}> y,"
            f" IWTensor<float, {rank}> z)",
            f"{{ float v = x[{index}] * x.load({index}); y[{index}] = v; z.store({index}{comma}3 * v); return v; }}",
        ]
    for kind in INTEGERS:
        lines += [
            f"[Differentiable] float of_{kind}(int at[2], ITensor<float, 2> x, IRWTensor<float, 2> y)",
            f"{{ {kind} r = {kind}(at[0]); {kind} c = {kind}(at[1]);"
            f" vector<{kind}, 2> v = vector<{kind}, 2>(c, r); {kind} a[2] = {{ r, c }};",
            "  float s = x[r, c] + 10 * x.load(r, c) + 100 * x[v] + 1000 * x.load(v) + x[a] * x.load(a);",
            "  y[r, c] = s; y.store(v, 2 * y[a]); y[v] = y[r, c] * 2; y.store(a, y.load(r, c)); return s; }",
        ]
    lines += [
        "struct Pose : IDifferentiable { float3 at; float turn; };",
        "[Differentiable] float of_pose(int i, ITensor<Pose, 1> p, IWTensor<Pose, 1> q)",
        "{ Pose a = p[i]; Pose b; b.at = a.at * a.turn; b.turn = dot(a.at, a.at); q[i] = b; return b.turn * a.turn; }",
        "[Differentiable] double of_double(int i, ITensor<double, 1> x) { return x[i] * x[i] * x[i]; }",
        "[Differentiable] float inner(int i, ITensor<float, 1> x, IWTensor<float, 1> y) { y[i] = 2 * x[i]; return x[i]; }",
        "[Differentiable] float passed_on(int i, IRWTensor<float, 1> x) { return inner(i, x, x) * x[i]; }",
        "[Differentiable] float constraint<X : ITensor<float, 1>>(int i, X x) { return x[i] * x[i]; }",
        "[Differentiable] float explicit_read(int i, DiffTensor<float, 1> x) { return x[i] * x.load(i); }",
        "[Differentiable] float once(int i, ITensor<float, 1> x) { return x.load_once(i) * x.load_uniform(i); }",
    ]
    return "\n".join(lines) + "\n"


def dual(device: Any, values: Any, tangent: Any, dtype: str = "float", element: Any = None) -> Any:
    return tensor(device, values, dtype, element).with_grads(grad_in=tensor(device, tangent, dtype, element))


@cache
def loaded(device: spy.Device) -> spy.Module:
    return spy.Module.load_from_source(device, "forward_mode_tensors", source())


@pytest.fixture
def own(device):
    return loaded(device)


@pytest.fixture
def m(device):
    return load(device)


@on_devices
@pytest.mark.parametrize("rank", gate(range(9), lambda rank: rank in (0, 1, 3, 8)))
def test_ranks(device, own, rank):
    shape = (3, 2, 2, 2, 1, 2, 2, 3)[:rank]
    x, d = RNG.standard_normal((2, *shape))
    y, z = with_grad(device, np.zeros(shape)), with_grad(device, np.zeros(shape))
    where = (spy.grid(shape),) if rank else ()
    r = own[f"rank{rank}"].fwds(*where, dual(device, x, d), y, z)
    if rank == 0:
        assert r.primal == pytest.approx(float(x * x))
        assert r.grad == pytest.approx(float(2 * x * d))
    else:
        check(r, x * x)
        check(r.grad, 2 * x * d)
    check(y, x * x)
    check(y.grad, 2 * x * d)
    check(z, 3 * x * x)
    check(z.grad, 6 * x * d)


@on_devices
@pytest.mark.parametrize("kind", gate(INTEGERS, lambda kind: kind in ("int", "uint64_t", "int8_t")))
def test_index_types(device, own, kind):
    x, d = RNG.standard_normal((2, 3, 4))
    y = with_grad(device, np.zeros((3, 4)))
    r = own[f"of_{kind}"].fwds(spy.grid((3, 4)), dual(device, x, d), y)
    value, tangent = 1111 * x + x * x, 1111 * d + 2 * x * d
    check(r, value)
    check(r.grad, tangent)
    check(y, 4 * value)
    check(y.grad, 4 * tangent)


@on_devices
def test_views_of_tensor_arguments(device, m):
    values, tangent = RNG.standard_normal((2, 8))
    x = dual(device, values, tangent)
    for view in (np.s_[4:], np.s_[::-2], np.s_[1:7:2]):
        y = m.sq.fwds(spy.grid((len(values[view]),)), x[view])
        check(y.grad, 2 * values[view] * tangent[view])
    one = dual(device, [3], [2]).broadcast_to((4,))
    same(m.sq.fwds(spy.grid((4,)), one).grad, [12, 12, 12, 12])
    same(x.grad, tangent.astype(np.float32))


@on_devices
def test_vectorised_over_leading_dimensions(device, m):
    y = m.total.fwds(dual(device, [[1, 2, 3], [4, 5, 6]], [[1, 0, 0], [0, 1, 10]]))
    same(y, [14, 77])
    same(y.grad, [2, 10 + 120])


@on_devices
def test_worked_functions(device, m):
    x, result = dual(device, [1, 2, 3, 4], [1, 0, 2, 0]), with_grad(device, [9, 9, 9, 9])
    for name in ("poly_tensors", "poly_plain_names"):
        m[name].fwds(spy.grid((4,)), 2, spy.diffPair(8.0), -1, x, result)
        same(result, [9, 23, 41, 63])
        same(result.grad, [12, 0, 40, 0])
    m.poly_tensors.fwds(spy.grid((4,)), spy.diffPair(2.0, 1.0), 8, -1, x.detach(), result)
    same(result.grad, [1, 4, 9, 16])
    w, b, v = (
        dual(device, [[1, 2, 3], [4, 5, 6]], np.ones((2, 3))),
        dual(device, [0.5, -0.5], [10, 20]),
        [1.0, 0.0, -1.0],
    )
    y = with_grad(device, [0, 0])
    m.linear.fwds(spy.grid((2,)), w, b, dual(device, v, [0, 1, 0]), y)
    same(y, [-1.5, -2.5])
    same(y.grad, [10 + 0 + 2, 20 + 0 + 5])
    m.linear.fwds(spy.grid((2,)), w.detach(), b, tensor(device, v), y.detach())  # nowhere to write the tangent
    same(y.grad, [12, 25])


@on_devices
def test_in_place(device, m):
    x = tensor(device, [1, 2, 3, 4]).with_grads()
    x.grad.copy_from_numpy(np.array([1, 10, 100, 0], np.float32))
    m.square_it.fwds(spy.grid((4,)), x)
    same(x, [1, 4, 9, 16])
    same(x.grad, [2, 40, 600, 0])
    m.halve.fwds(spy.grid((4,)), x)
    same(x.grad, [2, 160, 5400, 0])
    split = tensor(device, [1, 2]).with_grads(grad_in=tensor(device, [1, 1]), grad_out=tensor(device, [0, 0]))
    for function in (m.square_it, m.halve):
        with pytest.raises(RuntimeError, match=r"one tangent of a read-write tensor.*with_grads\(\)"):
            function.fwds(spy.grid((2,)), split)
    plain = tensor(device, [1, 2])
    with pytest.warns(RuntimeWarning, match="no argument has a tangent"):
        m.double_it.fwds(spy.grid((2,)), plain)
    same(plain, [2, 4])


@on_devices
def test_tensors_passed_on(device, own):
    x = tensor(device, [1, 2, 3]).with_grads()
    x.grad.copy_from_numpy(np.array([1, 10, 100], np.float32))
    y = own.passed_on.fwds(spy.grid((3,)), x)  # x = 2 x, then 2 x * 2 x
    same(x, [2, 4, 6])
    same(x.grad, [2, 20, 200])
    same(y, [4, 16, 36])
    same(y.grad, [8, 160, 2400])


@on_devices
def test_explicit_types_and_constraints(device, m, own):
    x = dual(device, [1, 2, 3], [1, 0, 2])
    for function in (own.constraint, own.explicit_read, own.once):
        y = function.fwds(spy.grid((3,)), x)
        same(y, [1, 4, 9])
        same(y.grad, [2, 0, 12])
    y = with_grad(device, [0, 0, 0])
    m.triple.fwds(spy.grid((3,)), x, y)
    same(y.grad, [3, 0, 6])
    m.triple.fwds(spy.grid((3,)), x, y.detach())
    same(own.explicit_read.fwds(spy.grid((3,)), x.detach(), _result="numpy")[1], [0, 0, 0])


@on_devices
def test_element_types(device, m, own):
    x, d = RNG.standard_normal((2, 5))
    check(own.of_double.fwds(spy.grid((5,)), dual(device, x, d, "double")).grad, 3 * x * x * d, 1e-14)
    h = tensor(device, [1, 2, 3], "half").with_grads(grad_in=tensor(device, [1, 0, 0.5]))  # float tangents of half
    same(m.of_half.fwds(spy.grid((3,)), h).grad, [2, 0, 3])
    v, dv = RNG.standard_normal((2, 4, 3))
    check(m.of_float3.fwds(spy.grid((4,)), dual(device, v, dv, element="float3")).grad, 2 * v * dv)
    a, da = RNG.standard_normal((2, 4, 2, 3))
    expected = da[:, 1, 1] * a[:, 0, 0] + a[:, 1, 1] * da[:, 0, 0]
    check(m.of_matrix.fwds(spy.grid((4,)), dual(device, a, da, element="float2x3")).grad, expected)
    expected = dv[:, 2] * v[:, 0] + v[:, 2] * dv[:, 0]
    check(m.of_array.fwds(spy.grid((4,)), dual(device, v, dv, element="float[3]")).grad, expected)


@on_devices
def test_structs(device, own):
    def poses(values):
        t = spy.Tensor.empty(device, (len(values),), own.Pose)
        c = t.cursor()
        for i, (at, turn) in enumerate(values):
            c[i].write({"at": at, "turn": turn})
        c.apply()
        return t

    p = poses([((1, 2, 3), 2), ((0, 1, 0), 3)]).with_grads(grad_in=poses([((1, 0, 0), 0), ((0, 0, 0), 1)]))
    q = poses([((0, 0, 0), 0)] * 2).with_grads()
    y = own.of_pose.fwds(spy.grid((2,)), p, q)
    same(y, [28, 3])
    same(y.grad, [4, 1])
    c = q.grad.cursor()
    assert [[*c[i].read()["at"], c[i].read()["turn"]] for i in range(2)] == [[2, 0, 0, 2], [0, 1, 0, 0]]


@on_devices
def test_struct_with_tensors(device, m):
    model = {"_type": "Model", "w": dual(device, [[1, 2], [3, 4]], [[1, 0], [0, 1]]), "bias": spy.diffPair(3.0, 10.0)}
    y = m.Model.row.fwds(model, spy.grid((2,)))
    same(y, [2 + 9, 12 + 9])
    same(y.grad, [2 + 60, 3 + 60])


@on_devices
def test_torch_tensors(device, m):
    torch = pytest.importorskip("torch")
    if device.info.type is spy.DeviceType.cuda:
        pytest.skip("tests/pytorch has the CUDA tensors")
    x = spy.diff_pair(torch.tensor([1.0, 2.0, 3.0]), torch.tensor([1.0, 0.0, 2.0]))
    assert m.sq.fwds(spy.grid((3,)), x).grad.tolist() == [2, 0, 12]
    y = spy.diff_pair(None, torch.zeros(3))
    m.poly_tensors.fwds(spy.grid((3,)), 2, 8, -1, x, y)
    assert y.grad.tolist() == [12, 0, 40]


# --- CUDA, without a GPU
CUDA = {
    **{f"rank{n}": lambda d, m, n=n: (m[f"rank{n}"], (*((spy.grid((2,) * n),) if n else ()), *[with_grad(d, np.ones((2,) * n))] * 3)) for n in range(9)},
    **{f"of_{k}": lambda d, m, k=k: (m[f"of_{k}"], (spy.grid((2, 2)), with_grad(d, np.ones((2, 2))), with_grad(d, np.ones((2, 2))))) for k in INTEGERS},
    "of_double": lambda d, m: (m.of_double, (spy.grid((2,)), with_grad(d, [1, 2], "double"))),
    "passed_on": lambda d, m: (m.passed_on, (spy.grid((2,)), with_grad(d, [1, 2]))),
    "explicit_read": lambda d, m: (m.explicit_read, (spy.grid((2,)), with_grad(d, [1, 2]))),
}  # fmt: skip
CUDA_IN_GATE = ("rank0", "rank8", "of_uint64_t", "of_int8_t", "passed_on", "owned", "half", "out", "inout", "matrix", "struct", "linear")
CUDA_VALUES = {
    "owned": lambda d, m: (m.power, (with_grad(d, [[1, 2]]), 1.0)),
    "broadcast": lambda d, m: (m.power, (with_grad(d, [1, 2]), with_grad(d, [[1], [2]]))),
    "pair": lambda d, m: (m.polynomial, (spy.diffPair(1.0), 2, 3, spy.diffPair(4.0))),
    "half": lambda d, m: (m.polynomial_f16, (with_grad(d, [1], "half"), 0, 0, 1)),
    "out": lambda d, m: (m.split, (with_grad(d, [1, 2]), with_grad(d, [0, 0]), spy.diffPair())),
    "inout": lambda d, m: (m.grow, (with_grad(d, [1, 2]), with_grad(d, [1, 2]))),
    "matrix": lambda d, m: (m.transform, (with_grad(d, np.ones((2, 3, 3))), spy.float3(1))),
    "struct": lambda d, m: (m.energy, ({"t": with_grad(d, [1, 2]), "uv": (1.0, 2.0)},)),
    "method": lambda d, m: (m.Quadratic.step, ({"a": spy.diffPair(1.0), "b": spy.diffPair(2.0)}, 3.0)),
    "linear": lambda d, m: (m.linear, (spy.grid((2,)), with_grad(d, [[1, 2], [3, 4]]), with_grad(d, [1, 2]), with_grad(d, [1, 2]), with_grad(d, [1, 2]))),
}  # fmt: skip


@pytest.fixture(scope="module")
def cpu() -> spy.Device:
    return spy.create_device(type=spy.DeviceType.cpu)


@pytest.fixture(scope="module")
def cuda_modules() -> tuple[Any, Any]:
    if not nvrtc_available() and "nvrtc" not in os.environ.get("SLANGPY_TEST_REQUIRE", ""):
        pytest.skip("NVRTC is not installed")
    codegen = CudaCodegen("sm_80")
    return codegen.load_from_source("fwds_tensors_cuda", source()), codegen.load_from_source(
        "fwds_cuda", SOURCE.read_text()
    )


@pytest.mark.parametrize("name", gate([*CUDA, *CUDA_VALUES], lambda name: name in CUDA_IN_GATE))
def test_cuda_kernel_compiles(cpu, cuda_modules, name):
    module = cuda_modules[name in CUDA_VALUES]
    function, arguments = {**CUDA, **CUDA_VALUES}[name](cpu, module)
    view = module.device.build(function.fwds, *arguments)
    general = view.kernels.build(0).built
    assert view.kernels.first.kernel[:4] == general.kernel[:4] == b"\x7fELF"
    assert "fwd_diff(_spy_function)" in general.source
