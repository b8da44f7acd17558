"""CPU tensors on devices that copy them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import slangpy as spy

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.needs_kernels

SOURCE = """
bool positive(float x) { return x > 0; }
bool2 both(float2 x) { return x > 0; }
int64_t wide(int x) { return int64_t(x) << 33; }
int16_t narrow(int x) { return int16_t(x); }
"""


def test_results_by_type(device: Any) -> None:
    """Elements take the size that torch gives them, whatever the device stores."""
    if device.info.type is spy.DeviceType.cuda:
        pytest.skip("takes CUDA tensors")
    m = spy.Module.load_from_source(device, "torch_results_by_type", SOURCE)
    x = torch.randn(100_001)
    assert torch.equal(m.positive(x), x > 0)
    pairs = torch.randn(5001, 2)
    assert torch.equal(m.both(pairs), pairs > 0)
    i = torch.arange(-500, 501, dtype=torch.int32)
    assert torch.equal(m.wide(i), i.long() << 33)
    assert torch.equal(m.narrow(i), i.short())


RULES = """
import slangpy;
[Differentiable] float polynomial(float a, float b, float c, float x) { return a * x * x + b * x + c; }
[Differentiable] void poly_out(float a, float b, float c, float x, out float y) { y = a * x * x + b * x + c; }
float plain(float x) { return x; }
float3 rows(float3 v) { return v; }
float whole(ITensor<float, 1> x) { return x[0]; }
"""


@pytest.fixture
def rules(device: Any) -> Any:
    if device.info.type is spy.DeviceType.cuda:
        pytest.skip("takes CUDA tensors")
    return spy.Module.load_from_source(device, "torch_rules_of_copies", RULES)


def test_partial_overlap(rules: Any) -> None:
    base = torch.rand(8)
    with pytest.raises(RuntimeError, match="single memory location"):
        rules.poly_out(2, 8, -1, base[:4], base[2:6])
    with pytest.raises(RuntimeError, match="single memory location"):
        rules.poly_out(2, 8, -1, base[2:6], base[:4])
    before = base[:4].clone()
    rules.poly_out(2, 8, -1, base[:4], base[:4])
    torch.testing.assert_close(base[:4], 2 * before * before + 8 * before - 1)


def test_inference_tensors_as_outputs(rules: Any) -> None:
    """As in torch: they are written in inference mode only, with or without a graph."""
    with torch.inference_mode():
        y = torch.zeros(4)
        rules.poly_out(2, 8, -1, torch.ones(4), y)
    assert y.is_inference()
    for x in (torch.ones(4), torch.ones(4, requires_grad=True)):
        with pytest.raises(RuntimeError, match="Inplace update to inference tensor outside InferenceMode"):
            rules.poly_out(2, 8, -1, x, y)
        with pytest.raises(RuntimeError, match="Inplace update to inference tensor outside InferenceMode"):
            rules.polynomial(2, 8, -1, x, _result=y)


def test_torch_result_without_torch_arguments(rules: Any) -> None:
    import numpy as np

    x = np.arange(1, 5, dtype=np.float32)
    for function in (rules.polynomial.return_type(torch.Tensor), rules.polynomial):
        result = function(2, 8, -1, x, **({} if function is not rules.polynomial else {"_result": torch.Tensor}))
        assert type(result) is torch.Tensor and result.device == rules.device.torch_device
        assert result.tolist() == [9, 23, 41, 63]


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16, torch.int32])
def test_dtype_errors_name_the_cast(rules: Any, dtype: Any) -> None:
    with pytest.raises(spy.ResolveException, match=r"does not match slang type float.*pass x\.float\(\)"):
        rules.plain(torch.zeros(3, dtype=dtype))
    with pytest.raises(spy.ResolveException, match=r"pass x\.float\(\)"):
        rules.whole(x=torch.zeros(3, dtype=dtype))


def test_errors_name_the_parameter(rules: Any) -> None:
    for tensor, text in (
        (torch.zeros(3, dtype=torch.complex64), "argument x: Unsupported torch dtype torch.complex64"),
        (torch.zeros(3).to_sparse(), "argument x: Unsupported torch layout torch.sparse_coo"),
        (torch.zeros(3, device="meta"), "argument x: Unsupported torch device meta"),
    ):
        with pytest.raises(TypeError, match=text):
            rules.polynomial(2, 8, -1, tensor)
        with pytest.raises(TypeError, match=text):
            rules.polynomial(a=2, b=8, c=-1, x=tensor)


def test_last_dimension_that_does_not_fit(rules: Any) -> None:
    with pytest.raises(spy.ShapeError, match=r"v of shape \[3, 4\] does not match slang type vector<float,3>.*4"):
        rules.rows(torch.zeros(3, 4))


def test_appended_outputs(rules: Any) -> None:
    if rules.device.info.type is not spy.DeviceType.vulkan:
        pytest.skip("recorded in place")
    encoder = rules.device.create_command_encoder()
    with pytest.raises(ValueError, match="argument y is a torch tensor that would have to be read back"):
        rules.poly_out(2, 8, -1, torch.ones(4), torch.zeros(4), _append_to=encoder)


DERIVED = """
[Differentiable] float wave(float x, float y) { return x * x * x * y + sin(y * x); }
[Differentiable] float sum_of_powers(float x)
{
    float s = 0;
    [MaxIters(8)] for (int i = 0; i < 4; i++) s = s * x + x;
    return s;
}
"""


@pytest.fixture
def derived(device: Any) -> Any:
    if device.info.type is spy.DeviceType.cuda:
        pytest.skip("takes CUDA tensors")
    return spy.Module.load_from_source(device, "torch_derived_copies", DERIVED)


def wave(x: Any, y: Any) -> Any:
    return x**3 * y + torch.sin(y * x)


def test_second_derivatives(derived: Any) -> None:
    def mixed(function: Any, x: Any, y: Any) -> Any:
        by_x, by_y = torch.autograd.grad(function(x, y).sum(), (x, y), create_graph=True)
        return torch.autograd.grad((by_x * by_x).sum() + by_y.sum(), x)[0]

    x, y = torch.linspace(0.1, 1, 5, requires_grad=True), torch.linspace(1, 2, 5, requires_grad=True)
    expected = mixed(wave, x.detach().double().requires_grad_(), y.detach().double().requires_grad_())
    torch.testing.assert_close(mixed(derived.wave, x, y).double(), expected, rtol=1e-5, atol=1e-4)

    (by_x,) = torch.autograd.grad(derived.sum_of_powers(x).sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(by_x.sum(), x)
    torch.testing.assert_close(second, 2 + 6 * x.detach() + 12 * x.detach() ** 2)


def test_compiled_and_exported(derived: Any) -> None:
    class Model(torch.nn.Module):
        def forward(self, x: Any, y: Any) -> Any:
            return derived.wave(x, y)

    x, y = torch.linspace(0.1, 1, 5), torch.linspace(1, 2, 5)
    compiled = torch.compile(lambda x, y: derived.wave(x, y) * 2, backend="aot_eager")
    leaf, other = x.clone().requires_grad_(), x.clone().requires_grad_()
    compiled(leaf, y).sum().backward()
    (wave(other, y) * 2).sum().backward()
    torch.testing.assert_close(leaf.grad, other.grad)
    torch.testing.assert_close(compiled(x, y), wave(x, y) * 2)
    torch.testing.assert_close(torch.export.export(Model(), (x, y)).module()(x, y), wave(x, y))


def test_bfloat16_read_as_float(derived: Any) -> None:
    x = torch.linspace(0, 1, 5).bfloat16()
    torch.testing.assert_close(derived.wave.convert("safe")(x, 1.0), wave(x.float(), torch.tensor(1.0)))


def test_copies_to_buffers_and_back(device: Any) -> None:
    """Devices that take CPU tensors copy them."""
    if device.info.type == spy.DeviceType.cuda:
        pytest.skip("takes tensors in CUDA memory")
    buffer = device.create_buffer(size=48, usage=spy.BufferUsage.unordered_access)
    source, target = torch.arange(12.0).reshape(3, 4).T, torch.zeros(6, 4)[::2].T
    spy.copy_torch_tensor_to_buffer(source, buffer)
    version = target._version
    spy.copy_buffer_to_torch_tensor(buffer, target)
    assert torch.equal(source, target) and target._version > version
    assert buffer.to_numpy().view(np.float32).tolist() == source.reshape(-1).tolist()
