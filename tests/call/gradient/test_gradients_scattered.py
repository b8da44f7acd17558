"""Gradients that many invocations add to at places of their choice: exact sums, whatever the threads do."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import slangpy as spy

pytestmark = pytest.mark.needs_kernels

SOURCE = """
[Differentiable] float gather(IDiffTensor<float, 1> x, no_diff int i) { return x[i]; }
[Differentiable] float twice(IDiffTensor<float, 1> x, IDiffTensor<float, 1> y, no_diff int i) { return 2 * x[i] + y[i]; }
[Differentiable] float2 gather2(IDiffTensor<float2, 1> x, no_diff int i) { return x[i]; }
[Differentiable] float4 gather4(IDiffTensor<float4, 1> x, no_diff int i) { return x[i]; }
[Differentiable] float3 gather3(IDiffTensor<float3, 1> x, no_diff int i) { return x[i]; }
[Differentiable] half gather_half(IDiffTensor<half, 1> x, no_diff int i) { return x[i]; }
[Differentiable] float stencil(IDiffTensor<float, 2> x, no_diff int2 at)
{
    float sum = 0;
    [ForceUnroll] for (int k = -1; k < 2; k++) sum += x[clamp(at.y + k, 0, 299), at.x] * (k + 2);
    return sum;
}
"""
COUNT = 400_000  # enough for several threads


def module_of(device: spy.Device) -> spy.Module:
    return spy.Module.load_from_source(device, "scattered", SOURCE)


def tensor(device: spy.Device, values: Any) -> spy.Tensor:
    return spy.Tensor.from_numpy(device, np.ascontiguousarray(values))


def seeded(device: spy.Device, seeds: np.ndarray, **kind: Any) -> spy.Tensor:
    """A result whose gradient is `seeds`."""
    y = spy.Tensor.from_numpy(device, np.zeros_like(seeds), **kind)
    return y.with_grads(grad_in=spy.Tensor.from_numpy(device, seeds, **kind))


def sums(index: np.ndarray, seeds: np.ndarray, count: int) -> np.ndarray:
    return np.bincount(index, weights=seeds.astype(np.float64), minlength=count)


@pytest.mark.parametrize("targets", [1, 7, 4096, COUNT // 4, 4 * COUNT])
def test_gather(device: spy.Device, targets: int) -> None:
    rng = np.random.default_rng()
    index, seeds = rng.integers(0, targets, COUNT, np.int32), rng.random(COUNT, np.float32)
    before = rng.random(targets, np.float32)
    grad = tensor(device, before)
    x = tensor(device, np.zeros(targets, np.float32)).with_grads(grad_in=grad, grad_out=grad)
    i, y = tensor(device, index), seeded(device, seeds)
    gather = module_of(device).gather.bwds
    expected = sums(index, seeds, targets)
    for calls in (1, 2, 3):
        gather(x, i, _result=y)
        np.testing.assert_allclose(x.grad.to_numpy(), before + calls * expected, rtol=1e-3, atol=1e-4)
    prepared = gather.prepare(x, i, _result=y)
    prepared()
    other = tensor(device, np.zeros(targets, np.float32)).with_grads(zero=True)
    prepared(x=other)
    np.testing.assert_allclose(x.grad.to_numpy(), before + 4 * expected, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(other.grad.to_numpy(), expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(("dtype", "scalar"), [("float", np.float32), ("double", np.float64)])
@pytest.mark.parametrize(("count", "targets"), [(COUNT, 33), (COUNT, 4096), (1000, 33)])
def test_copies_where_many_threads_meet(device: spy.Device, count: int, targets: int, dtype: str, scalar: Any) -> None:
    """Kernels of GPUs add to copies of small gradients, where that is worth a second kernel."""
    if dtype == "double" and device.info.type == spy.DeviceType.d3d12:
        pytest.skip("functions of double")
    rng = np.random.default_rng()
    index, seeds = rng.integers(0, targets, count, np.int32), rng.random(count).astype(scalar)
    before = rng.random(targets).astype(scalar)
    grad = tensor(device, before)
    x = tensor(device, np.zeros(targets, scalar)).with_grads(grad_out=grad)
    i, y = tensor(device, index), seeded(device, seeds)
    source = SOURCE.replace("float gather(IDiffTensor<float", f"{dtype} gather(IDiffTensor<{dtype}")
    module = spy.Module.load_from_source(device, f"meeting_{dtype}_{count}_{targets}", source)
    for calls in (1, 2):
        module.gather.bwds(x, i, _result=y)
        expected = before + calls * sums(index, seeds, targets)
        np.testing.assert_allclose(grad.to_numpy(), expected, rtol=1e-4 if dtype == "float" else 1e-13)
    kernels = module.gather.bwds.debug_build_call_data(x, i, _result=y).kernels.variants
    has_addresses = device.info.type in (spy.DeviceType.cuda, spy.DeviceType.vulkan)
    assert any(key >> 62 == 1 for key in kernels) == (has_addresses and (count, targets) == (COUNT, 33))
    recorded = device.create_command_encoder()
    module.gather.bwds(x, i, _result=y, _append_to=recorded)
    device.submit_command_buffer(recorded.finish())
    expected = before + 3 * sums(index, seeds, targets)
    np.testing.assert_allclose(grad.to_numpy(), expected, rtol=1e-4 if dtype == "float" else 1e-13)


def test_memory_between_elements_stays(device: spy.Device) -> None:
    """A gradient with gaps, in reverse: what lies between its elements is another's."""
    rng = np.random.default_rng()
    index, seeds = rng.integers(0, 100, COUNT, np.int32), rng.random(COUNT, np.float32)
    memory = tensor(device, np.full(302, -3.0, np.float32))
    view = memory[1:301][::-3]
    assert view.shape == (100,)
    x = tensor(device, np.zeros(100, np.float32)).with_grads(grad_in=view, grad_out=view)
    module_of(device).gather.bwds(x, tensor(device, index), _result=seeded(device, seeds))
    found = memory.to_numpy()
    np.testing.assert_allclose(found[1:301][::-3], sums(index, seeds, 100) - 3, rtol=1e-4)
    rest = np.ones(302, bool)
    rest[np.arange(302)[1:301][::-3]] = False
    assert (found[rest] == -3).all()


def test_one_gradient_of_two_arguments(device: spy.Device) -> None:
    rng = np.random.default_rng()
    index, seeds = rng.integers(0, 50, COUNT, np.int32), rng.random(COUNT, np.float32)
    grad = tensor(device, np.zeros(60, np.float32))
    x = tensor(device, np.zeros(50, np.float32)).with_grads(grad_in=grad[0:50], grad_out=grad[0:50])
    y = tensor(device, np.zeros(50, np.float32)).with_grads(grad_in=grad[10:60], grad_out=grad[10:60])
    module_of(device).twice.bwds(x, y, tensor(device, index), _result=seeded(device, seeds))
    expected = np.zeros(60)
    expected[:50] += 2 * sums(index, seeds, 50)
    expected[10:] += sums(index, seeds, 50)
    np.testing.assert_allclose(grad.to_numpy(), expected, rtol=1e-4)


def test_vectors_halves_and_stencils(device: spy.Device) -> None:
    rng = np.random.default_rng()
    index, seeds = rng.integers(0, 11, COUNT, np.int32), rng.random((COUNT, 4), np.float32)
    module = module_of(device)
    for size, gather in ((2, module.gather2), (3, module.gather3), (4, module.gather4)):
        x = spy.Tensor.from_numpy(device, np.zeros((11, size), np.float32), target_slang_dtype=f"float{size}").with_grads(zero=True)
        y = seeded(device, np.ascontiguousarray(seeds[:, :size]), target_slang_dtype=f"float{size}")
        gather.bwds(x, tensor(device, index), _result=y)
        expected = np.stack([sums(index, seeds[:, k], 11) for k in range(size)], 1)
        np.testing.assert_allclose(x.grad.to_numpy(), expected, rtol=1e-4)
    image = tensor(device, np.zeros((300, 300), np.float32)).with_grads(zero=True)
    weights = rng.random((300, 300), np.float32)
    module.stencil.bwds(image, spy.grid((300, 300)), _result=seeded(device, weights))
    wanted = np.zeros((300, 300))
    rows, columns = np.mgrid[0:300, 0:300]
    for k in (-1, 0, 1):
        # grid() gives (row, column) as (y, x) in this order: the first call dimension is at.y
        np.add.at(wanted, (np.clip(rows + k, 0, 299), columns), weights * (k + 2.0))
    np.testing.assert_allclose(image.grad.to_numpy(), wanted, rtol=1e-4, atol=1e-5)
    if device.has_feature(spy.Feature.half):
        few, small = index[:2000], rng.random(2000, np.float32).astype(np.float16)
        z = tensor(device, np.zeros(11, np.float16)).with_grads(zero=True)
        module.gather_half.bwds(z, tensor(device, few), _result=seeded(device, small))
        np.testing.assert_allclose(z.grad.to_numpy(), sums(few, small, 11), rtol=2e-3)


def test_deterministic_sums_stay_equal(device_type: spy.DeviceType) -> None:
    device = spy.create_device(type=device_type)
    device.deterministic = True
    rng = np.random.default_rng()
    index, seeds = rng.integers(0, 64, COUNT, np.int32), rng.standard_normal(COUNT, np.float32)
    i, y = tensor(device, index), seeded(device, seeds)
    found = []
    for _ in range(3):
        x = tensor(device, np.zeros(64, np.float32)).with_grads(zero=True)
        module_of(device).gather.bwds(x, i, _result=y)
        found.append(x.grad.to_numpy())
    assert (found[0] == found[1]).all()
    assert (found[0] == found[2]).all()
    np.testing.assert_allclose(found[0], sums(index, seeds, 64), rtol=1e-4, atol=1e-2)
    device.close()


def test_calls_of_two_threads_add_to_one_gradient(device: spy.Device) -> None:
    rng = np.random.default_rng()
    index, seeds = rng.integers(0, 5, COUNT, np.int32), rng.random(COUNT, np.float32)
    x = tensor(device, np.zeros(5, np.float32)).with_grads(zero=True)
    i, y = tensor(device, index), seeded(device, seeds)
    gather = module_of(device).gather.bwds
    gather(x, i, _result=y)
    with ThreadPoolExecutor(3) as threads:
        for done in [threads.submit(gather, x, i, _result=y) for _ in range(12)]:
            done.result()
    np.testing.assert_allclose(x.grad.to_numpy(), 13 * sums(index, seeds, 5), rtol=1e-3)
