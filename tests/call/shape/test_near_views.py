"""Variants of GPU kernels with offsets in 32 bits, each beside the plain one; and many vectors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import slangpy as spy

pytestmark = [
    pytest.mark.needs_kernels,
    pytest.mark.elsewhere(
        "shape3", "32", "test_one_plan_serves_both", "test_gradients_that_are_indexed", "31",
        "test_vectors_that_begin_anywhere",
    ),
]  # fmt: skip

NEAR = 1 << 61  # of VariantKey in src/native/call/plan/plan.h
MANY = 1 << 18
SOURCE = """
import slangpy;
float around(int2 at, Tensor<float, 2> x)
{
    int2 p = at.yx, n = int2(x.shape[0], x.shape[1]) - 1;
    return x[max(p.x - 1, 0), p.y] + 2 * x[min(p.x + 1, n.x), p.y] + 3 * x[p.x, max(p.y - 1, 0)] + 4 * x[p.x, min(p.y + 1, n.y)];
}
void put(int2 at, float v, RWTensor<float, 2> x) { x[at.y, at.x] = x[at.y, at.x] + v; }
[Differentiable] float picked(int i, IDiffTensor<float, 1> x) { return x[i] * x[i]; }
int step(Tensor<float, 2> x) { return x.strides[1]; }
T row_sum<T : __BuiltinArithmeticType>(int i, Tensor<T, 2> x)
{
    T s = T(0);
    for (int k = 0; k < x.shape[1]; k++)
        s = s + x[i, k];
    return s;
}
float row_sum_f(int i, Tensor<float, 2> x) { return row_sum<float>(i, x); }
half row_sum_h(int i, Tensor<half, 2> x) { return row_sum<half>(i, x); }
uint16_t row_sum_u(int i, Tensor<uint16_t, 2> x) { return row_sum<uint16_t>(i, x); }
int64_t row_sum_l(int i, Tensor<int64_t, 2> x) { return row_sum<int64_t>(i, x); }
void add_rows(int i, Tensor<float, 2> x, RWTensor<float, 2> y) { for (int k = 0; k < x.shape[1]; k++) y[i, k] += x[i, k]; }
float3 mixed(float3 v, float s, float2 w) { return v * s + w.xyx; }
void turned(inout float3 v, out float2 w) { w = v.zx; v = v.zxy; }
double2 wide(double2 x, float s) { return x * s; }
half3 narrow(half3 x) { return x + half(1); }
int4 whole(int4 x) { return x.wzyx; }
float3 of_array(float a[3]) { return float3(a[0], a[1], a[2]); }
"""
F = np.float32


@pytest.fixture
def module(device: spy.Device) -> spy.Module:
    return spy.Module.load_from_source(device, "near_views", SOURCE)


def is_gpu(device: spy.Device) -> bool:
    return device.info.type is not spy.DeviceType.cpu


def variants(function: Any, *args: Any, **named: Any) -> set[int]:
    return set(function.debug_build_call_data(*args, **named).kernels.variants)


def tensor(module: spy.Module, values: np.ndarray, dtype: str | None = None) -> spy.Tensor:
    return spy.Tensor.from_numpy(module.device, values, target_slang_dtype=dtype)


VIEWS = {
    "rows": (lambda m, a: tensor(m, a), True),
    "transposed": (lambda m, a: tensor(m, a.T.copy()).permute(1, 0), False),
    "every other": (lambda m, a: tensor(m, np.repeat(a, 2, axis=1))[:, ::2], False),
    "every other row": (lambda m, a: tensor(m, np.repeat(a, 2, axis=0))[::2], True),
    "backwards": (lambda m, a: tensor(m, a[:, ::-1].copy())[:, ::-1], False),
    "upside down": (lambda m, a: tensor(m, a[::-1].copy())[::-1], True),
    "inside": (lambda m, a: tensor(m, np.pad(a, 3))[3:-3, 3:-3], True),
}


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("shape", [(1, 1), (1, 31), (33, 1), (33, 31)])
def test_tensors_that_are_indexed(device: spy.Device, module: spy.Module, view: str, shape: tuple[int, int]) -> None:
    values = np.random.default_rng().random(shape, F)
    make, near = VIEWS[view]
    x, grid = make(module, values), spy.grid(shape)
    padded = np.pad(values.astype(np.float64), 1, mode="edge")
    expected = padded[:-2, 1:-1] + 2 * padded[2:, 1:-1] + 3 * padded[1:-1, :-2] + 4 * padded[1:-1, 2:]
    np.testing.assert_allclose(module.around(grid, x, _result="numpy"), expected, rtol=1e-5)
    found = variants(module.around, grid, x, _result="numpy")
    assert any(key & NEAR for key in found) or not (near and is_gpu(device))
    assert module.step(x) == x.strides[1]
    module.put(grid, 2.0, x)
    np.testing.assert_allclose(x.to_numpy(), values + F(2), rtol=1e-6)


ROWS = {
    "aligned": lambda x: x[:, :16],
    "short": lambda x: x[:, :13],  # rows that begin aligned and end anywhere
    "shifted": lambda x: x[:, 1:],
    "one": lambda x: x[5:6, :3],
    "reversed": lambda x: x[::-1, :16],
    "every third": lambda x: x[::3, 4:20],
}


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("width", [20, 32, 33])
def test_rows_that_may_be_aligned(module: spy.Module, rows: str, width: int) -> None:
    """CUDA's compiler joins loads of neighbours where the kernel says that rows are aligned."""
    values = np.random.default_rng().integers(0, 9, (37, width))
    for name, scalar in (("f", F), ("h", np.float16), ("u", np.uint16), ("l", np.int64)):
        x, expected = ROWS[rows](tensor(module, values.astype(scalar))), ROWS[rows](values)
        result = getattr(module, f"row_sum_{name}")(spy.grid(expected.shape[:1]), x, _result="numpy")
        np.testing.assert_array_equal(result, expected.sum(1))
    x, y = ROWS[rows](tensor(module, values.astype(F))), ROWS[rows](tensor(module, values.astype(F)))
    module.add_rows(spy.grid(expected.shape[:1]), x, y)
    np.testing.assert_array_equal(y.to_numpy(), 2 * ROWS[rows](values))


def test_one_plan_serves_both(device: spy.Device, module: spy.Module) -> None:
    """Tensors of the same type that lie differently, in turn; also in a prepared call."""
    values = np.random.default_rng().random((33, 33), F)
    near, far = tensor(module, values), tensor(module, values.T.copy()).permute(1, 0)
    out, grid = tensor(module, np.zeros((33, 33), F)), spy.grid((33, 33))
    expected = module.around(grid, near, _result="numpy")
    for x in (far, near, far):
        np.testing.assert_array_equal(module.around(grid, x, _result="numpy"), expected)
    keys = variants(module.around, grid, near, _result="numpy")
    assert {bool(key & NEAR) for key in keys} == ({True, False} if is_gpu(device) else {False})
    prepared = module.around.prepare(grid, near, _result=out)
    for x in (far, near):
        out.storage.copy_from_numpy(np.full((33, 33), np.nan, F))
        prepared(x=x)
        np.testing.assert_array_equal(out.to_numpy(), expected)


def test_gradients_that_are_indexed(module: spy.Module) -> None:
    rng = np.random.default_rng()
    values, index, seeds = rng.random(33, F), rng.integers(0, 33, 1003, np.int32), rng.random(1003, F)
    gradient = tensor(module, np.zeros(66, F))[::-2]
    x = tensor(module, values).with_grads(grad_out=gradient)
    y = tensor(module, np.zeros(1003, F)).with_grads(grad_in=tensor(module, seeds))
    module.picked.bwds(tensor(module, index), x, _result=y)
    expected = 2 * values * np.bincount(index, weights=seeds.astype(np.float64), minlength=33)
    np.testing.assert_allclose(gradient.to_numpy(), expected, rtol=1e-4)


@pytest.mark.parametrize("count", [0, 1, 31, 1000003])
def test_many_vectors(module: spy.Module, count: int) -> None:
    rng = np.random.default_rng()
    v, s, w = rng.random((count, 3), F), rng.random(count, F), rng.random((count, 2), F)
    expected = v.astype(np.float64) * s[:, None] + w[:, [0, 1, 0]]
    whole = tensor(module, v, "float3"), tensor(module, s), tensor(module, w, "float2")
    parts = tensor(module, v), tensor(module, s), tensor(module, w)
    for arguments in (whole, parts):
        np.testing.assert_allclose(module.mixed(*arguments).to_numpy(), expected, rtol=1e-5)
        given = tensor(module, np.full((count, 3), np.nan, F), "float3")
        module.mixed(*arguments, _result=given)
        np.testing.assert_allclose(given.to_numpy(), expected, rtol=1e-5)
    changed, out = tensor(module, v, "float3"), tensor(module, np.full((count, 2), np.nan, F), "float2")
    module.turned(changed, out)
    np.testing.assert_array_equal(changed.to_numpy(), v[:, [2, 0, 1]])
    np.testing.assert_array_equal(out.to_numpy(), v[:, [2, 0]])


def test_vectors_that_begin_anywhere(module: spy.Module) -> None:
    """Addresses that are no multiple of 16, gaps between rows, and one row for all."""
    values = np.random.default_rng().random((MANY + 5, 3), F)
    memory = tensor(module, values, "float3")
    np.testing.assert_array_equal(module.mixed(memory[1:], 1.0, spy.float2(0)).to_numpy(), values[1:])
    gaps = tensor(module, np.pad(values, ((0, 0), (0, 1))))[:, :3]
    np.testing.assert_array_equal(module.mixed(gaps, 1.0, spy.float2(0)).to_numpy(), values)
    row = memory[:1].broadcast_to((MANY + 5,))
    np.testing.assert_array_equal(module.mixed(row, 1.0, memory_of_twos(module)).to_numpy(), np.tile(values[0] + 2, (MANY + 5, 1)))


def memory_of_twos(module: spy.Module) -> spy.Tensor:
    return tensor(module, np.full((MANY + 5, 2), 2, F), "float2")


@pytest.mark.parametrize(
    ("name", "dtype", "scalar", "size"),
    [("whole", "int4", np.int32, 4), ("narrow", "half3", np.float16, 3), ("of_array", "float[3]", F, 3), ("wide", "double2", np.float64, 2)],
)
def test_other_elements(device: spy.Device, module: spy.Module, name: str, dtype: str, scalar: Any, size: int) -> None:
    if dtype == "double2" and device.info.type is spy.DeviceType.d3d12:
        pytest.skip("functions of double")
    values = np.random.default_rng().integers(0, 100, (MANY + 3, size)).astype(scalar)
    x = tensor(module, values, dtype)
    result = module.wide(x, 2.0) if name == "wide" else getattr(module, name)(x)
    expected = {"whole": values[:, ::-1], "narrow": values + 1, "of_array": values, "wide": values * 2}[name]
    np.testing.assert_array_equal(result.to_numpy(), expected)
