"""Slang's own module `neural` in calls: found by the sources' imports, with gradients."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import slangpy as spy
from slangpy.testing import CudaCodegen, nvrtc_available

pytestmark = pytest.mark.needs_kernels

LAYER = """
import slangpy;
import neural;

typealias In = InlineVector<float, 5>;
typealias Out = InlineVector<float, 3>;

[Differentiable]
Out layer(DiffTensor<float, 2> weights, DiffTensor<float, 1> bias, In x)
{
    Out y = Out();
    for (int row = 0; row < 3; row++)
    {
        float sum = bias[row];
        for (int column = 0; column < 5; column++)
            sum += weights[row, column] * x[column];
        y[row] = sum;
    }
    return LeakyReLU<float>(0.1).eval<Out>(y);
}

[Differentiable]
float[3] apply(DiffTensor<float, 2> weights, DiffTensor<float, 1> bias, float x[5])
{
    In input = In();
    for (int i = 0; i < 5; i++)
        input[i] = x[i];
    const Out y = layer(weights, bias, input);
    float result[3];
    for (int i = 0; i < 3; i++)
        result[i] = y[i];
    return result;
}
"""
PLAIN = "float twice(float x) { return 2 * x; }"


def arrays() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    random = np.random.default_rng(3)
    shapes = ((3, 5), (3,), (33, 5), (33, 3))
    weights, bias, x, seed = (random.normal(size=shape).astype(np.float32) for shape in shapes)
    return weights, bias, x, seed


def test_gradients(device: spy.Device) -> None:
    module = spy.Module.load_from_source(device, "slang_neural_layer", LAYER)
    weights, bias, x, seed = arrays()
    tensors = [spy.Tensor.from_numpy(device, value).with_grads(zero=True) for value in (weights, bias, x)]
    result = spy.Tensor.from_numpy(device, np.zeros((33, 3), np.float32)).with_grads(zero=True)
    module.apply(*tensors, _result=result)
    before = x.astype(np.float64) @ weights.T.astype(np.float64) + bias
    np.testing.assert_allclose(result.to_numpy(), np.where(before > 0, before, 0.1 * before), rtol=1e-5, atol=1e-6)
    result.grad.copy_from_numpy(seed)
    module.apply.bwds(*tensors, _result=result)
    inner = seed * np.where(before > 0, 1, 0.1)
    for tensor, expected in zip(tensors, (inner.T @ x, inner.sum(0), inner @ weights), strict=True):
        np.testing.assert_allclose(tensor.grad.to_numpy(), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.nightly
def test_torch(device: spy.Device) -> None:
    torch = pytest.importorskip("torch")
    module = spy.Module.load_from_source(device, "slang_neural_layer", LAYER)
    place = "cuda" if device.type is spy.DeviceType.cuda else "cpu"
    *values, seed = (torch.from_numpy(value).to(place) for value in arrays())
    ours = [value.clone().requires_grad_() for value in values]
    theirs = [value.double().requires_grad_() for value in values]
    y = module.apply(*ours)
    (y * seed).sum().backward()
    expected = torch.nn.functional.leaky_relu(theirs[2] @ theirs[0].T + theirs[1], 0.1)
    (expected * seed).sum().backward()
    torch.testing.assert_close(y.double(), expected, rtol=1e-5, atol=1e-6)
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one.grad.double(), other.grad, rtol=1e-5, atol=1e-5)


@pytest.mark.one
def test_through_imports(tmp_path: Path, device: spy.Device) -> None:
    """Through a file and through a module made of text; what does not import it keeps its session, without the option."""
    (tmp_path / "own_layers.slang").write_text('import "slang/neural";\nfloat relu(float x) { return ReLU<float>().eval(InlineVector<float, 2>(x))[1]; }')
    own = spy.Device(type=device.type, compiler_options={"include_paths": [tmp_path]})
    try:
        plain = spy.Module.load_from_source(own, "nothing_neural", PLAIN)
        assert plain.twice(2.0) == 4 and not plain.session.experimental
        layers = spy.Module.load_from_source(own, "neural_by_file", "import own_layers;\nfloat f(float x) { return relu(x); }")
        np.testing.assert_array_equal(layers.f(np.float32([-1, 2]), _result="numpy"), [0, 2])
        spy.Module.load_from_source(own, "neural_text", "import slang.neural;\nstatic const float half_of_it = 0.5;")
        by_text = spy.Module.load_from_source(own, "neural_by_text", "import neural_text;\nfloat f(float x) { return half_of_it * x; }")
        assert by_text.f(3.0) == 1.5
        assert not plain.session.experimental and layers.session.experimental and by_text.session.experimental
        assert plain.twice(3.0) == 6
    finally:
        own.close()


@pytest.mark.one
def test_a_file_of_this_name(tmp_path: Path, device: spy.Device) -> None:
    """A user's own neural.slang is no experiment."""
    (tmp_path / "neural.slang").write_text("float own(float x) { return x + 1; }")
    (tmp_path / "user.slang").write_text("import neural;\nfloat f(float x) { return own(x); }")
    session = device.create_slang_session()
    loaded = session.load_module(str(tmp_path / "user.slang"))
    assert loaded.name == "user" and not session.experimental


@pytest.mark.one
@pytest.mark.skipif(not nvrtc_available(), reason="NVRTC is not installed")
def test_cuda_code(device: spy.Device) -> None:
    cuda = CudaCodegen("sm_90")
    module = cuda.load_from_source("slang_neural_layer", LAYER)
    weights, bias, x, _ = arrays()
    tensors = [spy.Tensor.from_numpy(device, value).with_grads() for value in (weights, bias, x)]
    result = spy.Tensor.zeros(device, (33, 3), "float").with_grads()
    view = cuda.build(module.apply.bwds, *tensors, _result=result)
    assert view.pipeline[:4] == b"\x7fELF"
