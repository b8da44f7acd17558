"""Slang's `WaveTangledVector` in calls: groups run whole, and what lies beyond the end of a call is left alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import slangpy as spy
from slangpy.testing import CudaCodegen, nvrtc_available

pytestmark = pytest.mark.needs_kernels

LAYER = """
import slangpy;
import neural;
import slangpy.addresses;

static const int LANES = 32, WAVES = %d, INPUTS = 19, OUTPUTS = 5;
typealias Memory = SharedMemorySize<float, TargetEnum.CUDA, ExecutionMode.Training, LANES, WAVES, INPUTS, OUTPUTS>;
typealias Vector<int N> = WaveTangledVector<float, Memory, N, LANES, WAVES>;
typealias Address = PointerAddress<float>;

[Differentiable]
float[OUTPUTS] apply(DiffTensor<float, 2> weights, DiffTensor<float, 1> bias, float x[INPUTS], float scale)
{
    Vector<INPUTS> input = Vector<INPUTS>();
    for (int i = 0; i < INPUTS; i++)
        input[i] = x[i];
    const Vector<OUTPUTS> y = input.linearTransform<Address, LinearLayout, Vector<OUTPUTS>>(addressOf(weights), addressOf(bias));
    float result[OUTPUTS];
    for (int i = 0; i < OUTPUTS; i++)
        result[i] = scale * y[i];
    return result;
}

float twice(float x) { return 2 * x; }
"""
NETWORK = """
import slangpy;
import neural;
import slangpy.addresses;

typealias Memory = SharedMemorySize<float, TargetEnum.CUDA, ExecutionMode.Training, 32, 1, 12, 32, 32, 3>;
typealias In = WaveTangledVector<float, Memory, 12, 32, 1>;
typealias Hidden = WaveTangledVector<float, Memory, 32, 32, 1>;
typealias Out = WaveTangledVector<float, Memory, 3, 32, 1>;
typealias Address = PointerAddress<float>;
typealias First = FFLayer<float, In, Hidden, LinearLayout, TanhActivation<float>, true>;
typealias Second = FFLayer<float, Hidden, Hidden, LinearLayout, TanhActivation<float>, true>;
typealias Third = FFLayer<float, Hidden, Out, LinearLayout, IdentityActivation<float>, true>;

[Differentiable]
float[3] evaluate(float x[12], DiffTensor<float, 1> parameters)
{
    In input = In();
    for (int i = 0; i < 12; i++)
        input[i] = x[i];
    const Address first = addressOf(parameters);
    const Address second = first.getOffset(First.ParameterCount);
    const Address third = second.getOffset(Second.ParameterCount);
    const Hidden h0 = First().eval<Address>(input, first);
    const Hidden h1 = Second().eval<Address>(h0, second);
    const Out y = Third().eval<Address>(h1, third);
    float result[3];
    for (int i = 0; i < 3; i++)
        result[i] = y[i];
    return result;
}
"""
SHAPES = ((32, 12), (32,), (32, 32), (32,), (3, 32), (3,))
"""Of weights and biases, in the order in which `parameters` has them."""


def can(device: spy.Device) -> bool:
    return device.type is spy.DeviceType.cuda or device.has_feature(spy.Feature.cooperative_matrix)


@pytest.fixture
def capable(device: spy.Device) -> spy.Device:
    if not can(device):
        pytest.skip("no matrix products of waves")
    return device


def layer(device: Any, waves: int = 1) -> Any:
    return spy.Module.load_from_source(device, f"wave_layer_{waves}", LAYER % waves)


def halves(random: np.random.Generator, *shape: int) -> np.ndarray:
    """Numbers whose products a matrix core, which multiplies halves, has exactly."""
    return random.integers(-16, 17, shape).astype(np.float32) / 8


def arrays(count: int) -> tuple[np.ndarray, ...]:
    random = np.random.default_rng(count)
    return tuple(halves(random, *shape) for shape in ((5, 19), (5,), (count, 19), (count, 5)))


@pytest.mark.parametrize("waves", [1, 4])
@pytest.mark.parametrize("count", [1, 31, 33, 1000, 4097])
def test_values(capable: spy.Device, count: int, waves: int) -> None:
    weights, bias, x, _ = arrays(count)
    result = layer(capable, waves).apply(spy.Tensor.from_numpy(capable, weights), spy.Tensor.from_numpy(capable, bias), x, 0.5, _result="numpy")
    np.testing.assert_allclose(result, 0.5 * (x.astype(np.float64) @ weights.T + bias), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("count", [1, 31, 33, 1000, 4097])
def test_gradients(capable: spy.Device, count: int) -> None:
    module = layer(capable)
    weights, bias, x, seed = arrays(count)
    kept = halves(np.random.default_rng(7), count + 70, 5)  # what lies behind the result must stay
    whole = spy.Tensor.from_numpy(capable, kept)
    result = whole[:count]
    tensors = [spy.Tensor.from_numpy(capable, value).with_grads(zero=True) for value in (weights, bias)]
    behind = spy.Tensor.zeros(capable, (count + 70, 19), "float")
    inputs = spy.Tensor.from_numpy(capable, x).with_grads(behind[:count], behind[:count])
    module.apply(*tensors, inputs, 0.5, _result=result)
    expected = 0.5 * (x.astype(np.float64) @ weights.T + bias)
    np.testing.assert_allclose(result.to_numpy(), expected, rtol=1e-6, atol=1e-6)
    np.testing.assert_array_equal(whole.to_numpy()[count:], kept[count:])

    output = spy.Tensor.zeros(capable, (count, 5), "float").with_grads(zero=True)
    output.grad.copy_from_numpy(seed)
    for times in (1, 2):  # gradients add up
        module.apply.bwds(*tensors, inputs, 0.5, _result=output)
        inner = 0.5 * times * seed.astype(np.float64)
        for tensor, gradient in zip(tensors, (inner.T @ x, inner.sum(0)), strict=True):
            np.testing.assert_allclose(tensor.grad.to_numpy(), gradient, rtol=1e-5, atol=1e-3)
        np.testing.assert_allclose(behind.to_numpy()[:count], inner @ weights, rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(behind.to_numpy()[count:], 0)


def test_gradient_that_groups_sum(capable: spy.Device) -> None:
    """Of a number that all invocations share, over two dimensions of the call."""
    module = layer(capable)
    weights, bias, x, seed = arrays(37 * 9)
    tensors = [spy.Tensor.from_numpy(capable, value).with_grads(zero=True) for value in (weights, bias, x.reshape(37, 9, 19))]
    scale = spy.DiffPair(0.5, 0.0)
    output = spy.Tensor.zeros(capable, (37, 9, 5), "float").with_grads(zero=True)
    output.grad.copy_from_numpy(seed.reshape(37, 9, 5))
    module.apply.bwds(*tensors, scale, _result=output)
    y = x.astype(np.float64) @ weights.T + bias
    assert scale.grad == pytest.approx((seed * y).sum(), rel=1e-5, abs=1e-2)
    np.testing.assert_allclose(tensors[0].grad.to_numpy(), 0.5 * seed.T @ x, rtol=1e-5, atol=1e-3)
    np.testing.assert_allclose(tensors[2].grad.to_numpy().reshape(-1, 19), 0.5 * seed @ weights, rtol=1e-5, atol=1e-5)


def test_no_invocations(capable: spy.Device) -> None:
    weights, bias, _, _ = arrays(1)
    tensors = [spy.Tensor.from_numpy(capable, value) for value in (weights, bias)]
    assert layer(capable).apply(*tensors, np.zeros((0, 19), np.float32), 1.0, _result="numpy").shape == (0, 5)


@pytest.mark.parametrize("count", [1, 33, 1000, 4097])
def test_torch(capable: spy.Device, count: int) -> None:
    """Three of Slang's own layers; their inputs are rounded to halves."""
    torch = pytest.importorskip("torch")
    module = spy.Module.load_from_source(capable, "wave_network", NETWORK)
    place = "cuda" if capable.type is spy.DeviceType.cuda else "cpu"
    random = np.random.default_rng(count)
    parameters = np.concatenate([halves(random, *shape).reshape(-1) / 4 for shape in SHAPES])
    seed = torch.from_numpy(halves(random, count, 3)).to(place)
    ours = [torch.from_numpy(value).to(place).requires_grad_() for value in (halves(random, count, 12), parameters)]
    theirs = [value.detach().double().requires_grad_() for value in ours]
    y = module.evaluate(*ours)
    (y * seed).sum().backward()
    parts = theirs[1].split([int(np.prod(shape)) for shape in SHAPES])
    w0, b0, w1, b1, w2, b2 = (part.reshape(shape) for part, shape in zip(parts, SHAPES, strict=True))
    hidden = theirs[0]
    for weights, bias in ((w0, b0), (w1, b1)):
        hidden = torch.tanh(hidden @ weights.T + bias)
    expected = hidden @ w2.T + b2
    (expected * seed).sum().backward()
    for one, other in [(y, expected), *((one.grad, other.grad) for one, other in zip(ours, theirs, strict=True))]:
        largest = other.abs().max().item()
        torch.testing.assert_close(one.double(), other, rtol=4e-3, atol=4e-3 * largest)


def test_refused_by_devices(device: spy.Device) -> None:
    if can(device):
        pytest.skip("this device multiplies matrices by waves")
    module = layer(device)
    weights, bias, x, _ = arrays(3)
    with pytest.raises(NotImplementedError, match="WaveTangledVector cannot run on this device.*InlineVector"):
        module.apply(spy.Tensor.from_numpy(device, weights), spy.Tensor.from_numpy(device, bias), x, 1.0)
    np.testing.assert_array_equal(module.twice(np.float32([1, 2]), _result="numpy"), [2, 4])


def test_strides(capable: spy.Device) -> None:
    module = layer(capable)
    weights, bias, x, _ = arrays(33)
    tensors = [spy.Tensor.from_numpy(capable, value) for value in (bias, x)]
    for flawed in (np.repeat(weights, 2, 0), np.repeat(weights, 2, 1)):
        step = flawed.shape[0] // 5
        flawed = spy.Tensor.from_numpy(capable, flawed)[::step, :: 3 - step]
        np.testing.assert_array_equal(flawed.to_numpy(), weights)
        with pytest.raises(ValueError, match="takes the address of its numbers.*contiguous copy"):
            module.apply(flawed, *tensors, 1.0)


GROUPS = """
import slangpy;

// The rules of Slang's type without its matrices: all threads of a group meet in `sum`.
groupshared float _parts[LANES * WAVES];
static const int LANES = %d, WAVES = 3;
struct WaveTangledVector<T, Memory, int N, int Lanes, int Waves>
{
    static float sum(float x)
    {
        const uint at = spirv_asm { result:$$uint = OpLoad builtin(LocalInvocationIndex:uint); };
        _parts[at] = x;
        GroupMemoryBarrierWithGroupSync();
        float sum = 0;
        for (int i = 0; i < Lanes * Waves; i++)
            sum += _parts[i];
        GroupMemoryBarrierWithGroupSync();
        return sum;
    }
}
typealias Meeting = WaveTangledVector<float, int, 1, LANES, WAVES>;

[BackwardDerivative(met_backward)] float met(float x) { return x * Meeting.sum(1); }
void met_backward(inout DifferentialPair<float> x, float dy) { x = diffPair(x.p, dy * Meeting.sum(1)); }
[Differentiable] float meet(DiffTensor<float, 1> weight, float x, float factor) { return factor * met(weight[0] * x); }
[Differentiable] void meet_out(DiffTensor<float, 1> weight, float x, out float y) { y = met(weight[0] * x); }
[Differentiable] void meet_into(RWTensor<float, 1> to, float x) { to[0] = met(x); }
float twice(float x) { return 2 * x; }
"""


@pytest.fixture
def meeting(device: spy.Device, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Where there are no matrix cores: a module whose groups run whole for the same reason."""
    if device.type is not spy.DeviceType.vulkan:
        pytest.skip("for Vulkan's drivers")
    for check in ("_check_device", "_check_waves"):
        monkeypatch.setattr(f"slangpy.plan.whole_groups.{check}", lambda *_: None)
    lanes = device.info.limits.min_wave_size
    return spy.Module.load_from_source(device, "meeting_groups", GROUPS % lanes), 3 * lanes


@pytest.mark.parametrize("shape", [(1,), (31,), (33,), (7, 9), (4097,)])
def test_all_threads_meet(device: spy.Device, meeting: Any, shape: tuple[int, ...]) -> None:
    module, threads = meeting
    random = np.random.default_rng(5)
    x, seed = (random.integers(-8, 9, shape).astype(np.float32) for _ in range(2))
    kept = np.full((shape[0] + 300, *shape[1:]), 7, np.float32)
    whole = spy.Tensor.from_numpy(device, kept)
    weight, inputs = (spy.Tensor.from_numpy(device, value).with_grads(zero=True) for value in (np.float32([0.5]), x))
    module.meet(weight, inputs, 2.0, _result=whole[: shape[0]])
    np.testing.assert_array_equal(whole.to_numpy()[: shape[0]], threads * x)
    np.testing.assert_array_equal(whole.to_numpy()[shape[0] :], 7)
    y = spy.Tensor.zeros(device, shape, "float").with_grads(zero=True)
    module.meet_out(weight, inputs, y)
    np.testing.assert_array_equal(y.to_numpy(), threads * 0.5 * x)
    y.grad.copy_from_numpy(seed)
    factor = spy.DiffPair(2.0, 0.0)
    module.meet.bwds(weight, inputs, factor, _result=y)
    np.testing.assert_array_equal(inputs.grad.to_numpy(), threads * seed)
    np.testing.assert_array_equal(weight.grad.to_numpy(), [2.0 * threads * (seed * x).sum()])
    assert factor.grad == 0.5 * threads * (seed * x).sum()


def test_frozen_weights(meeting: Any) -> None:
    """Slang's backward functions add to the gradients of all weights."""
    torch = pytest.importorskip("torch")
    module, threads = meeting
    weight, x = torch.ones(1), torch.ones(9, requires_grad=True)
    y = module.meet(weight, x, 1.0)
    torch.testing.assert_close(y, torch.full((9,), float(threads)))
    with pytest.raises(ValueError, match="weight.*has none; attach one with with_grads"):
        y.sum().backward()
    module.meet(weight.requires_grad_(), x, 1.0).sum().backward()
    assert weight.grad.item() == 9 * threads and x.grad.tolist() == [threads] * 9


def test_calls_that_do_not_meet(device: spy.Device, meeting: Any) -> None:
    module, _ = meeting
    assert "_inside" in module.meet.debug_build_call_data(np.float32([1]), np.float32([1]), 1.0).code
    assert "_inside" not in module.twice.debug_build_call_data(np.float32([1])).code
    weight = spy.Tensor.from_numpy(device, np.float32([0.5, 1, 2]))
    x, y = np.ones(3, np.float32), spy.Tensor.zeros(device, (3,), "float").with_grads(zero=True)
    with pytest.raises(ValueError, match="takes the address of its numbers.*contiguous copy"):
        module.meet(weight[::2], x, 1.0)
    with pytest.raises(spy.ResolveException, match="weight.*attach one with with_grads"):
        module.meet.bwds(weight, spy.Tensor.from_numpy(device, x).with_grads(zero=True), 1.0, _result=y)
    with pytest.raises(NotImplementedError, match="each invocation has a DiffTensor.*InlineVector"):
        module.meet.map(weight=(0,))(spy.Tensor.zeros(device, (3, 1), "float"), x, 1.0)
    with pytest.raises(NotImplementedError, match="call_group_shape.*InlineVector"):
        module.meet.call_group_shape((8,))(weight, x, 1.0)
    with pytest.raises(NotImplementedError, match="write no tensors themselves.*InlineVector"):
        module.meet_into(spy.Tensor.zeros(device, (1,), "float"), x)
    with pytest.raises(spy.KernelGenException, match="3 waves of"):
        module.meet.thread_group_size((1024, 1, 1))(weight, x, 1.0)


@pytest.mark.one
@pytest.mark.skipif(not nvrtc_available(), reason="NVRTC is not installed")
@pytest.mark.parametrize(("name", "threads"), [("layer", 128), ("network", 32)])
def test_cuda_code(device: spy.Device, name: str, threads: int) -> None:
    cuda = CudaCodegen("sm_90")
    if name == "layer":
        module = layer(cuda, 4)
        arguments = [spy.Tensor.from_numpy(device, value).with_grads() for value in arrays(33)[:3]]
        function, outputs = module.apply, 5
        arguments.append(spy.DiffPair(0.5, 0.0))
    else:
        module = cuda.load_from_source("wave_network", NETWORK)
        arguments = [spy.Tensor.zeros(device, shape, "float").with_grads() for shape in ((33, 12), (12 * 32 + 32 + 32 * 32 + 32 + 3 * 32 + 3,))]
        function, outputs = module.evaluate, 3
    result = spy.Tensor.zeros(device, (33, outputs), "float").with_grads()
    if threads > 32:
        with pytest.raises(NotImplementedError, match="has 4 waves here.*Write 1 for its last parameter"):
            cuda.build(function.bwds, *arguments, _result=result)
    for call in (function, function.bwds)[: 2 if threads == 32 else 1]:
        view = cuda.build(call, *arguments, _result=result)
        assert f"[numthreads({threads}, 1, 1)]" in view.kernels.code and "return;" not in view.kernels.code
        assert view.pipeline[:4] == b"\x7fELF"
    with pytest.raises(NotImplementedError, match="no forward-mode derivatives.*InlineVector"):
        cuda.build(function.fwds, *arguments, _result=result)
    cuda.deterministic = True
    with pytest.raises(NotImplementedError, match="in any order.*InlineVector"):
        cuda.build(function.bwds, *arguments, _result=result)
    cuda.deterministic, cuda.compiler_fingerprint = False, "nvrtc 12.4 sm_90"
    with pytest.raises(NotImplementedError, match="NVRTC 12.4 is older than 12.5.*InlineVector"):
        cuda.build(function, *arguments, _result=None)


SIZES = """
import slangpy;
import neural;
import slangpy.addresses;
#define NUMBER 2
static const int WAVES = 4;
typealias Memory = SharedMemorySize<float, TargetEnum.CUDA, ExecutionMode.Inference, 32, 2, 8, 8>;
typealias Plain = WaveTangledVector<float, Memory, 8, 32, 2>;
typealias Macro = WaveTangledVector<float, Memory, 8, 32, NUMBER>;
typealias Four<int N> = WaveTangledVector<float, Memory, N, 32, WAVES / 2 * 2>;
struct Generic<int W> { typealias Of = WaveTangledVector<float, Memory, 8, 32, W>; static float first(float x) { return Of(x)[0]; } }
float plain(float x) { return Plain(x)[0]; }
float macro(float x) { return Macro(x)[0]; }
float four(float x) { return Four<8>(x)[0]; }
float by_call(float x) { return four(x); }
float generic(float x) { return Generic<2>.first(x); }
float both(float x) { return plain(x) + four(x); }
float other(float x) { return 2 * x; }
"""


@pytest.mark.one
@pytest.mark.skipif(not nvrtc_available(), reason="NVRTC is not installed")
def test_sizes_of_groups() -> None:
    cuda = CudaCodegen("sm_90")
    module = cuda.load_from_source("wave_sizes", SIZES)
    x = np.zeros(3, np.float32)

    def threads(name: str, **options: Any) -> int:
        function = getattr(module, name)
        code = cuda.plan(function.thread_group_size(options["size"]) if options else function, x, _result="numpy").code
        return int(code.partition("[numthreads(")[2].partition(",")[0])

    assert [threads(name) for name in ("plain", "macro", "four", "by_call", "other")] == [64, 64, 128, 128, 256]
    with pytest.raises(spy.KernelGenException, match="one number of waves.*2 of 32 threads and 4 of 32 threads"):
        threads("both")
    with pytest.raises(spy.KernelGenException, match="how many waves WaveTangledVector has here is not known.*thread_group_size"):
        threads("generic")
    assert threads("generic", size=(64, 1, 1)) == 64
