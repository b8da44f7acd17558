"""What only the Direct3D 12 device does in its own way: memory without pointers. Numbers against NumPy."""

from __future__ import annotations

import os

import numpy as np
import pytest

import slangpy as spy

SOURCE = """
import slangpy;
[Differentiable] float polynomial(float a, float b, float c, float x) { return a * x * x + b * x + c; }
void scale(inout float x, float k) { x *= k; }
struct Particle { float3 position; float mass; }
Particle move(Particle p, float3 by) { p.position += by; p.mass *= 2; return p; }
[Differentiable] float row(uint i, ITensor<float, 2> weights, ITensor<float, 1> input)
{
    float sum = 0;
    for (uint k = 0; k < 5; k++)
        sum += weights[i, k] * input[k];
    return sum;
}
half twice(half x, half k) { return x * k; }
double root(double x) { return sqrt(x); }
float read(float* p, int i) { return p[i]; }
int count(int x, double y, int64_t z) { return x + int(y) + int(z >> 33); }
"""


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory):
    if not spy.Device.enumerate_adapters(spy.DeviceType.d3d12):
        if "d3d12" in os.environ.get("SLANGPY_TEST_REQUIRE", ""):
            pytest.fail("no d3d12 device here")
        pytest.skip("no d3d12 device here")
    path = tmp_path_factory.mktemp("d3d12") / "programs.slang"
    path.write_text(SOURCE)
    device = spy.Device(type=spy.DeviceType.d3d12, enable_hot_reload=False)
    yield spy.Module.load_from_file(device, str(path))
    device.close()


def test_polynomial_of_any_size_and_stride(module):
    x = np.linspace(-2, 3, 1009, dtype=np.float32)
    expected = 2 * x.astype(np.float64) ** 2 + 8 * x - 1
    np.testing.assert_allclose(module.polynomial(2, 8, -1, x, _result="numpy"), expected, rtol=1e-6, atol=1e-6)
    tensor = spy.Tensor.from_numpy(module.device, x)
    part = tensor[5:1000:7]
    np.testing.assert_allclose(
        module.polynomial(2, 8, -1, part, _result="numpy"), expected[5:1000:7], rtol=1e-6, atol=1e-6
    )
    back = tensor[::-1]
    np.testing.assert_allclose(module.polynomial(2, 8, -1, back, _result="numpy"), expected[::-1], rtol=1e-6, atol=1e-6)


def test_one_buffer_bound_twice_and_overlapping_views(module):
    x = np.arange(64, dtype=np.float32)
    tensor = spy.Tensor.from_numpy(module.device, x)
    both = module.polynomial(tensor, tensor, tensor, tensor, _result="numpy")
    np.testing.assert_allclose(both, x.astype(np.float64) ** 3 + x.astype(np.float64) ** 2 + x, rtol=1e-6)
    shifted = module.polynomial(tensor[1:], tensor[:-1], 0, 2, _result="numpy")
    np.testing.assert_allclose(shifted, 4 * x[1:] + 2 * x[:-1])


def test_written_in_place_and_structs(module):
    tensor = spy.Tensor.from_numpy(module.device, np.arange(37, dtype=np.float32))
    module.scale(tensor[3:30:2], 3)
    expected = np.arange(37, dtype=np.float32)
    expected[3:30:2] *= 3
    np.testing.assert_array_equal(tensor.to_numpy(), expected)
    moved = module.move({"position": [1.0, 2.0, 3.0], "mass": 4.0}, spy.float3(0.5, 0, -1))
    assert moved["mass"] == 8 and list(moved["position"]) == [1.5, 2, 2]


def test_integers_and_doubles(module):
    x = np.arange(-5, 20, dtype=np.int32)
    y = np.linspace(0, 9, 25)
    z = (np.arange(25, dtype=np.int64) << 35) + 7
    np.testing.assert_array_equal(module.count(x, y, z, _result="numpy"), x + y.astype(np.int32) + (z >> 33))


def test_halves_are_rounded_as_numpy_does(module):
    with np.errstate(over="ignore"):
        x = (np.random.default_rng(0).standard_normal(1001) * np.logspace(-8, 5, 1001)).astype(np.float16)
        expected = (x.astype(np.float64) * 1.5).astype(np.float16)
    result = module.twice(x, np.float16(1.5), _result="numpy")
    np.testing.assert_array_equal(result.view(np.uint16), expected.view(np.uint16))


def test_what_hlsl_has_not_is_named(module):
    with pytest.raises(NotImplementedError, match=r"root uses sqrt .* devices that can: cpu, cuda, vulkan"):
        module.root(2.0)
    buffer = module.device.create_buffer(size=64)
    with pytest.raises(NotImplementedError, match=r"read uses pointers.* devices that can: cpu, cuda, vulkan"):
        module.read(buffer.device_address, 1)


def test_gradients(module):
    rng = np.random.default_rng(1)
    x = spy.Tensor.from_numpy(module.device, rng.standard_normal(501).astype(np.float32)).with_grads()
    a = spy.Tensor.from_numpy(module.device, np.array([2], dtype=np.float32)).with_grads()
    out = spy.Tensor.from_numpy(module.device, np.zeros(501, np.float32)).with_grads()
    out.grad_in.copy_from_numpy(np.ones(501, np.float32))
    module.polynomial.bwds(a=a, b=8, c=-1, x=x, _result=out)
    values = x.to_numpy().astype(np.float64)
    np.testing.assert_allclose(x.grad_out.to_numpy(), 4 * values + 8, rtol=1e-5)
    np.testing.assert_allclose(a.grad_out.to_numpy(), [(values**2).sum()], rtol=1e-5)


def test_linear_layer(module):
    rng = np.random.default_rng(2)
    weights, values = rng.standard_normal((7, 5)).astype(np.float32), rng.standard_normal(5).astype(np.float32)
    w = spy.Tensor.from_numpy(module.device, weights).with_grads()
    v = spy.Tensor.from_numpy(module.device, values).with_grads()
    rows = spy.grid((7,))
    result = module.row(rows, w, v, _result="tensor")
    np.testing.assert_allclose(result.to_numpy(), weights @ values, rtol=1e-5, atol=1e-6)
    result = result.with_grads()
    result.grad_in.copy_from_numpy(np.arange(7, dtype=np.float32))
    module.row.bwds(rows, w, v, _result=result)
    np.testing.assert_allclose(w.grad_out.to_numpy(), np.outer(np.arange(7), values), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(v.grad_out.to_numpy(), weights.T @ np.arange(7), rtol=1e-5, atol=1e-5)


def test_missing_debug_layer_is_told(module, caplog):
    with spy.Device(type=spy.DeviceType.d3d12, enable_debug_layers=True) as device:
        missing = spy._native._missing_layer(device.info.type)
        module = spy.Module.load_from_source(device, "layered", "float twice(float x) { return 2 * x; }")
        assert module.twice(4.0) == 8
    assert spy._native._missing_layer(spy.DeviceType.cpu) == ""
    assert f"enable_debug_layers has no effect: {missing}" in caplog.text if missing else "no effect" not in caplog.text
