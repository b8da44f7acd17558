"""Generated CUDA compiles for several architectures, without a GPU, wherever NVRTC is installed."""

from __future__ import annotations

import os

import numpy as np
import pytest
from tiers import gate

import slangpy as spy
from slangpy.testing import CudaCodegen, nvrtc_available

SOURCE = """
import slangpy;
[Differentiable] float polynomial(float a, float b, float c, float x) { return a * x * x + b * x + c; }
[Differentiable] float3 scale(float3 v, float s) { return v * s; }
struct Particle { float3 position; float mass; int id; }
Particle make(float m) { Particle p; p.position = float3(m, m + 1, m + 2); p.mass = m; p.id = int(m); return p; }
float read(Particle p) { return p.position.y * p.mass; }
float sum4(float a[4]) { return a[0] + a[1] + a[2] + a[3]; }
float2x3 twice(float2x3 m) { return 2 * m; }
void split(float a, out float b, inout float c) { b = 2 * a; c += a; }
uint hashed(uint h) { return h; }
float random(float2 r) { return r.x + r.y; }
int2 place(int2 c) { return c; }
double wide(double x) { return x * 2; }
int8_t small(int8_t a, uint8_t b, int16_t c, uint16_t d)
{
    return max(abs(a), int8_t(min(b, uint8_t(3)))) + int8_t(min(abs(c), int16_t(d))) + int8_t(max(d, uint16_t(2)));
}
[Differentiable] float gather(int i, ITensor<float, 1> x) { return x[i] * x[i]; }
int tile(float x) { return CallShapeInfo::get_call_group_id().shape[0]; }
float total<let D : int>(ITensor<float, D> x) { return x.shape[0]; }
float viewed(TensorView<float> x) { float old; x.InterlockedAdd(1, 2.0, old); x[1, 2] += old; return x[uint2(1, 2)] + x.stride(0); }
int viewed_integers(TensorView<int> x)
{
    int old;
    x.InterlockedMax(0, 3, old);
    x.InterlockedExchange(1, 3, old);
    x.InterlockedCompareExchange(2, 1, 3);
    return old;
}
[Differentiable] float diff_viewed(float k, DiffTensorView<float> x) { x.store(1, k); return x.load(0) * k; }
[Differentiable] half halves(half3 a, half x) { return a.x * x + a.y; }
struct Own
{
    float v; int w;
    static void atomicAdd(RWByteAddressBuffer buf, uint addr, Own value)
    {
        float old;
        buf.InterlockedAddF32(addr, value.v, old);
        buf.InterlockedAdd(addr + 4, value.w);
    }
};
void add_own(Own* x, Own v) { Own.atomicAdd(x, 1, v); }
BFloat16 narrow(BFloat16 x) { return BFloat16(2 * float(x)); }
float narrow_total(Tensor<BFloat16, 1> x) { return float(x[0]) + float(x[1]); }
float3 packed(Tensor<float3, 1> x, RWTensor<float4, 1> y) { y[0] = 1; return x[1]; }
float viewed_vectors(TensorView<float3> x) { x[1] = 2; return x[0].y; }
half open<let N : int>(half v[N]) { return v[N - 1]; }
struct Sign<let W : bool> { float a; float get() { return W ? a : -a; } }
float signed(Sign<false> s) { return s.get(); }
struct Scene { float a; StructuredBuffer<float> table; Texture2D<float4> map; float get() { return a; } }
float left_out(Scene s) { Scene t = s; return t.get(); }
FloatE4M3 narrower(FloatE5M2 x) { return FloatE4M3(float(x)); }
"""

pytestmark = pytest.mark.skipif(
    not nvrtc_available() and not os.environ.get("SLANGPY_TEST_REQUIRE_NVRTC"), reason="NVRTC is not installed"
)
F = np.float32


def narrow_zeros(dtype: str) -> spy.Tensor:
    return spy.Tensor.zeros(spy.Device(type=spy.DeviceType.null), (4,), dtype)


@pytest.fixture(scope="module", params=["sm_75"])
def module(request: pytest.FixtureRequest) -> spy.Module:
    return CudaCodegen(request.param).load_from_source("codegen", SOURCE)


CALLS = {
    "scalars": lambda m: (m.polynomial, (2, 8, -1, 3.0), {}),
    "numpy": lambda m: (m.polynomial, (2, 8, -1, np.zeros(5, F)), {}),
    "numpy_result": lambda m: (m.polynomial, (2, 8, -1, np.zeros((5, 4), F)), {"_result": np.zeros((5, 4), F)}),
    "vectors in arrays": lambda m: (m.packed, (np.zeros((5, 3), F), np.zeros((2, 4), F)), {}),
    "views of vectors": lambda m: (m.viewed_vectors, (np.zeros((5, 3), F),), {}),
    "open sizes": lambda m: (m.open, (np.zeros((2, 3), np.float16),), {}),
    "bools in generics": lambda m: (m.signed, ({"a": np.zeros(3, F)},), {}),
    "left out": lambda m: (m.left_out, ({"a": np.zeros(3, F)},), {}),
    "broadcast": lambda m: (m.polynomial, (np.zeros((5, 1), F), 8, -1, np.zeros(4, F)), {}),
    "mapped": lambda m: (m.polynomial.map(x=(1, 0)), (), {"a": 1, "b": 2, "c": 3, "x": np.zeros((2, 3), F)}),
    "vector": lambda m: (m.scale, (np.zeros((5, 3), F), 2.0), {}),
    "struct_result": lambda m: (m.make, (np.zeros(5, F),), {}),
    "struct_dict": lambda m: (m.read, ({"position": np.zeros((5, 3), F), "mass": 1.0, "id": 3},), {}),
    "array": lambda m: (m.sum4, (np.zeros((5, 4), F),), {}),
    "matrix": lambda m: (m.twice, (np.zeros((5, 2, 3), F),), {}),
    "outputs": lambda m: (m.split, (np.zeros(5, F), np.zeros(5, F), np.zeros(5, F)), {}),
    "reference": lambda m: (m.split, (1.0, spy.floatRef(), spy.floatRef()), {}),
    "wang_hash": lambda m: (m.hashed, (spy.wang_hash(),), {"_result": np.zeros(4, np.uint32)}),
    "rand_float": lambda m: (m.random, (spy.rand_float(),), {"_result": np.zeros(4, F)}),
    "grid": lambda m: (m.place, (spy.grid((4, 5)),), {}),
    "call_id": lambda m: (m.place, (spy.call_id(),), {"_result": np.zeros((4, 5, 2), np.int32)}),
    "small_integers": lambda m: (m.small, (1, 2, np.zeros(5, np.int16), 4), {}),
    "double": lambda m: (m.wide, (np.zeros(5),), {}),
    "gather": lambda m: (m.gather, (spy.grid((4,)), np.zeros(4, F)), {}),
    "generic_tensor": lambda m: (m.total, (np.zeros((4, 5), F),), {}),
    "list_of_arrays": lambda m: (m.polynomial, (2, 8, -1, [np.zeros(5, F), np.zeros(5, F)]), {}),
    "list_of_rows": lambda m: (m.gather, ([0, 1], [np.zeros(4, F), np.zeros(4, F)]), {}),
    "list_of_generators": lambda m: (m.polynomial, (2, 8, -1, [spy.rand_float(), spy.rand_float(seed=2)]), {}),
    "groups": lambda m: (m.scale.call_group_shape((2, 3)), (np.zeros((5, 4, 3), F), 2.0), {}),
    "groups_place": lambda m: (m.tile.call_group_shape((2,)), (np.zeros((5, 4), F),), {}),
    "groups_bwds": lambda m: (
        m.polynomial.call_group_shape((2, 2)).bwds,
        (spy.diffPair(2.0), 8, -1, np.zeros((4, 4), F), spy.diffPair(0.0, 1.0)),
        {},
    ),
    "view": lambda m: (m.viewed, (np.zeros((3, 4), F),), {}),
    "view_integers": lambda m: (m.viewed_integers, (np.zeros(4, np.int32),), {}),
    "diff_view": lambda m: (m.diff_viewed, (2.0, np.zeros(4, F)), {}),
    "bfloat16": lambda m: (m.narrow, (narrow_zeros("BFloat16"),), {"_result": "numpy"}),
    "bfloat16_list": lambda m: (m.narrow, ([1.0, 2.5],), {"_result": narrow_zeros("BFloat16")}),
    "bfloat16_tensor": lambda m: (m.narrow_total, (narrow_zeros("BFloat16"),), {}),
    "float8": lambda m: (m.narrower, (narrow_zeros("FloatE5M2"),), {"_result": narrow_zeros("FloatE4M3")}),
    "own_addition": lambda m: (m.add_own, (0, {"v": 1.0, "w": 2}), {}),
    "bwds_halves": lambda m: (
        m.halves.bwds,
        (spy.diffPair(spy.float16_t3(1)), np.zeros(4, np.float16), spy.diffPair(spy.float16_t(0), spy.float16_t(1))),
        {},
    ),
    "bwds_pair": lambda m: (m.polynomial.bwds, (spy.diffPair(2.0), 8, -1, np.zeros(4, F), spy.diffPair(0.0, 1.0)), {}),
}


@pytest.mark.parametrize("count", [2, 3, 4])
def test_vectors_of_int8(module: spy.Module, count: int) -> None:
    """Literals beside int8_t must not make CUDA's constructors ambiguous."""
    text = f"vector<int8_t,{count}> made(float x) {{ return vector<int8_t,{count}>({'int8_t(x), ' * (count - 1)}int8_t(1)); }}"
    own = module.device.load_from_source(f"int8_vectors_{count}", text)
    assert module.device.build(own.made, 1.0).pipeline[:4] == b"\x7fELF"


REPEATED = (
    "numpy", "vectors in arrays", "left out", "mapped", "vector", "struct_result", "matrix", "reference", "rand_float", "call_id",
    "double", "generic_tensor", "list_of_rows", "groups_place", "view_integers", "bfloat16_list", "bwds_pair",
)  # fmt: skip
"""Calls whose emitted parts those of the others have."""


@pytest.mark.parametrize("name", gate(CALLS, lambda name: name not in REPEATED))
def test_kernel_compiles(module: spy.Module, name: str) -> None:
    function, args, kwargs = CALLS[name](module)
    view = module.device.build(function, *args, **kwargs)
    assert view.pipeline[:4] == b"\x7fELF"
    assert "_spy_main" in view.code


def test_recursion_is_named(module: spy.Module) -> None:
    text = "int even(int n) { return n == 0 ? 1 : odd(n - 1); }\nint odd(int n)\n{\n    return n == 0 ? 0 : even(n - 1);\n}\n"
    own = module.device.load_from_source("codegen_recursion", text)
    with pytest.raises(spy.KernelGenException, match=r"'even' \(line 1\), 'odd' \(line 2\) call each other, .* write a loop"):
        module.device.build(own.even, 3)


def test_aligned_rows_compile(module: spy.Module) -> None:
    """Kernels that tell the compiler where rows of tensors begin."""
    source = """
float total(int i, Tensor<float, 2> x)
{
    float s = 0;
    for (int k = 0; k < x.shape[1]; k++)
        s += x[i, k];
    return s;
}
"""
    own = module.device.load_from_source("rows", "import slangpy;" + source)
    view = module.device.build(own.total, np.zeros(4, np.int32), np.zeros((4, 16), F))
    assert view.pipeline[:4] == b"\x7fELF" and "a1.aligned()" in view.code and "a1_inner[0] & -4" in view.code
    odd = module.device.build(own.total, np.zeros(4, np.int32), np.zeros((4, 17), F))
    assert "aligned()" not in odd.kernels.source(1 << 61)


def test_variables_of_threads(module: spy.Module) -> None:
    """A module that writes static variables has kernels of one invocation a thread, which still sum in groups."""
    text = """
static float kept = 0;
[Differentiable] float scaled(float x, float w) { kept += 1; return w * x * x; }
"""
    own = module.device.load_from_source("thread_variables", text)
    x = np.zeros(5, F)
    forward = module.device.build(own.scaled, x, 2.0)
    assert forward.pipeline[:4] == b"\x7fELF" and "_k < " not in forward.code
    backward = module.device.build(own.scaled.bwds, x, spy.diffPair(2.0), spy.diffPair(0.0, 1.0))
    assert backward.pipeline[:4] == b"\x7fELF"
    assert "_spy_group_sum(" in backward.code and "_stride" not in backward.code
    constant = module.device.load_from_source("thread_constants", "static const float K = 2; float f(float x) { return K * x; }")
    assert "_k < " in module.device.build(constant.f, x).code


def test_whole_elements(module: spy.Module) -> None:
    """Arrays of scalars are read and written whole, and vectors are added at once."""
    text = """
import slangpy;
half[16] fan(float x[32]) { half r[16]; for (int k = 0; k < 16; k++) r[k] = half(x[k] * x[k + 16]); return r; }
[Differentiable] float4 pick(no_diff int i, DiffTensor<float4, 1> t) { return t[i]; }
"""
    own = module.device.load_from_source("whole_elements", text)
    view = module.device.build(own.fan, np.zeros((4, 32), F), _result=np.zeros((4, 16), np.float16))
    assert view.pipeline[:4] == b"\x7fELF"
    assert ".cast<float[32]>().read(0)" in view.code and ".cast<half[16]>().write(0, " in view.code
    cpu = spy.create_device(type=spy.DeviceType.cpu)
    table, result = (spy.Tensor.zeros(cpu, (5,), "float4").with_grads(zero=True) for _ in range(2))
    assert module.device.build(own.pick.bwds, np.zeros(5, np.int32), table, _result=result).pipeline[:4] == b"\x7fELF"
