"""BFloat16 containers read as float with `convert`: stored in 16 bits, summed in float32, rounded once."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from gradcheck import seeded, tensor

import slangpy as spy

pytestmark = [pytest.mark.needs_kernels, pytest.mark.one]
SOURCE = """
[Differentiable] float product(float a, float x) { return a * x; }
[Differentiable] float3 vectors(float3 v, float s) { return v * s; }
[Differentiable] double wide(double x) { return x * x; }
[Differentiable] void square(inout float x) { x = x * x; }
float quarter(float x) { return x / 4; }
float of_bfloat(BFloat16 x) { return float(x); }
float of_eight_bits(FloatE4M3 x) { return float(x); }
"""


@cache
def load(device: Any) -> Any:
    return spy.Module.load_from_source(device, "bfloat16_containers", SOURCE)


@pytest.fixture
def m(device: Any) -> Any:
    return load(device)


def rounded(values: Any) -> np.ndarray:
    """float32 values rounded to bfloat16, ties to even, as float64."""
    bits = np.asarray(values, np.float32).view(np.uint32).astype(np.uint64)
    kept = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16) << 16
    return kept.astype(np.uint32).view(np.float32).astype(np.float64)


def raw_bits(values: Any) -> np.ndarray:
    return (np.asarray(values, np.float32).view(np.uint32) >> 16).astype(np.uint16)


def bf16(device: Any, values: Any) -> Any:
    bits = raw_bits(values)
    result = spy.Tensor.empty(device, bits.shape, "BFloat16")
    result.copy_from_numpy(bits)
    return result


def read(t: Any) -> np.ndarray:
    return (t.to_numpy().view(np.uint16).astype(np.uint32) << 16).view(np.float32).astype(np.float64)


def test_needs_convert(device, m):
    with pytest.raises(ValueError, match="BFloat16.*does not match slang type float"):
        m.quarter(bf16(device, [1, 2]))


@pytest.mark.parametrize("mode", ["safe", "any"])
def test_read(device, m, mode):
    x = bf16(device, [1, -2.5, 3e38, 0])
    np.testing.assert_array_equal(m.quarter.convert(mode)(x, _result="numpy"), read(x) / 4)
    assert m.wide.convert(mode)(x[:2], _result="numpy").tolist() == [1, 6.25]


def test_stores_are_rounded_to_even(device, m):
    values = np.random.default_rng(4).standard_normal(1001).astype(np.float32) * 3
    values[:4] = [4 * 1.00390625, 4 * 1.01171875, np.inf, np.nan]
    y = bf16(device, np.zeros(1001))
    with pytest.raises(ValueError, match="BFloat16"):
        m.quarter.convert("safe")(tensor(device, values), _result=y)
    m.quarter.convert("any")(tensor(device, values), _result=y)
    np.testing.assert_array_equal(read(y), rounded(values / 4))


@pytest.mark.parametrize("deterministic", [False, True])
def test_gradients(device, m, deterministic):
    f, n = m.product.convert("safe"), 3000
    x = np.random.default_rng(5).random((n, 3), np.float32)
    device.deterministic = deterministic
    try:
        a = bf16(device, [1, 2, 3]).with_grads()
        assert a.grad.dtype.full_name == "BFloat16"
        a.grad.copy_from_numpy((np.full(3, 64, np.float32).view(np.uint32) >> 16).astype(np.uint16))
        xs = bf16(device, rounded(x)).with_grads()
        f.bwds(a, xs, _result=seeded(device, np.full((n, 3), 0.1)))
        total = np.float32(0.1) * rounded(x).astype(np.float32)
        got, want = read(a.grad), rounded(64 + np.sum(total.astype(np.float64), axis=0))
        np.testing.assert_allclose(got, want, rtol=1 / 128 if not deterministic else 0)
        np.testing.assert_array_equal(read(xs.grad), rounded(np.float32(0.1) * np.float32([1, 2, 3]) * np.ones((n, 1))))
        scalar = bf16(device, [2]).with_grads()
        f.bwds(scalar, tensor(device, np.ones(n)), _result=seeded(device, np.full(n, 0.1)))
        assert read(scalar.grad).tolist() == rounded([np.float32(0.1) * n]).tolist()
    finally:
        device.deterministic = False


def test_float_gradients_and_vectors(device, m):
    a = bf16(device, [1, 2]).with_grads(grad_out=tensor(device, [0, 0]))
    m.product.convert("safe").bwds(
        a, tensor(device, np.full((100, 2), 0.125)), _result=seeded(device, np.ones((100, 2)))
    )
    assert a.grad.to_numpy().tolist() == [12.5, 12.5]
    v = bf16(device, np.arange(6).reshape(2, 3)).with_grads()
    m.vectors.convert("safe").bwds(v, 2.0, _result=seeded(device, np.ones((2, 3)), element="float3"))
    assert read(v.grad).tolist() == [[2] * 3] * 2


def test_in_place(device, m):
    x = bf16(device, [1.5, 3])
    x = x.with_grads(grad_in=bf16(device, [1, 2]), grad_out=bf16(device, [0, 0]))
    m.square.convert("any").bwds(x)
    assert read(x.grad_out).tolist() == [3, 12]
    m.square.convert("any")(x)
    assert read(x).tolist() == [2.25, 9]


def test_parameters_of_the_type_itself(device, m):
    kinds = (spy.DeviceType.cpu, spy.DeviceType.cuda)
    if device.info.type in kinds or device.has_feature(spy.Feature.bfloat16):
        assert m.of_bfloat(bf16(device, [1, 2.5]), _result="numpy").tolist() == [1, 2.5]
        return
    with pytest.raises(NotImplementedError, match=r"of_bfloat.*BFloat16.*declare .*float.*convert"):
        m.of_bfloat(bf16(device, [1, 2.5]))


def test_floats_of_8_bits(device, m):
    x = spy.Tensor.empty(device, (2,), "FloatE4M3")
    x.copy_from_numpy(np.array([0x38, 0x42], np.uint8))
    kinds = (spy.DeviceType.cpu, spy.DeviceType.cuda)
    if device.info.type in kinds or device.has_feature(spy.Feature.float8):
        assert m.of_eight_bits(x, _result="numpy").tolist() == [1, 2.5]
        return
    with pytest.raises(NotImplementedError, match=r"x is a FloatE4M3, but the device lacks the feature float8; declare float"):
        m.of_eight_bits(x)


def test_vectors_on_the_cpu():
    """What stands for the type there is a struct, of which Slang makes no vectors: wherever there are some, the error says so."""
    device = spy.Device(type=spy.DeviceType.cpu)
    inside = spy.Module.load_from_source(
        device,
        "bfloat16_inside",
        """
        struct Pair { vector<BFloat16, 2> x; float y; };
        float of_field(Pair pair) { return pair.y + float(pair.x.y); }
        float inside(float2 x) { vector<BFloat16, 2> v = vector<BFloat16, 2>(x); return float(v.y); }
        float quarters(matrix<FloatE4M3, 2, 2> x) { return float(x[0][1]); }
        float of_vector(vector<BFloat16, 3> v) { return float(v.x); }
        float beside(BFloat16 x) { return float(x); }
        """,
    )
    assert inside.beside(1.5) == 1.5
    for call in (
        lambda: inside.of_field({"x": [1, 2], "y": 2}),
        lambda: inside.inside(spy.float2(1, 2)),
    ):
        with pytest.raises(NotImplementedError, match=r"bfloat16_inside::\w+ uses a type .* vectors .* BFloat16 .* use an array"):
            call()
    with pytest.raises(NotImplementedError, match=r"v is a vector<BFloat16,3>.* declare vector<float,3> there.* \.convert"):
        inside.of_vector([1, 2, 3])
    with pytest.raises(NotImplementedError, match=r"x is a matrix<FloatE4M3,2,2>.* declare matrix<float,2,2> there"):
        inside.quarters([[1, 2], [3, 4]])
    device.close()


def test_programs_without_the_library_of_calls():
    device = spy.Device(type=spy.DeviceType.cpu)
    raw = device.load_module_from_source(
        "bfloat16_raw",
        """
        struct Scale { BFloat16 a; float b; BFloat16 c[2]; };
        BFloat16 offset;
        ConstantBuffer<Scale> scale;
        groupshared BFloat16 shared[32];
        [shader("compute")]
        [numthreads(32, 1, 1)]
        void reversed(uint3 t : SV_DispatchThreadID, uniform RWStructuredBuffer<BFloat16> o, uniform RWByteAddressBuffer bytes)
        {
            shared[t.x] = o[t.x];
            GroupMemoryBarrierWithGroupSync();
            o[t.x] = BFloat16(float(shared[31 - t.x]) * float(scale.c[1]) + float(scale.a) + float(offset));
            if (t.x == 0)
                bytes.Store<BFloat16>(2, BFloat16(2 * float(bytes.Load<BFloat16>(0))));
        }
        """,
    )
    kernel = device.create_compute_kernel(device.link_program([raw], [raw.entry_point("reversed")]))
    values = np.arange(32, dtype=np.float32) / 4
    usage = spy.BufferUsage.unordered_access
    o = device.create_buffer(data=raw_bits(values), struct_size=2, element_count=32, usage=usage)
    pair = device.create_buffer(data=raw_bits([1.5, 0]), usage=usage)
    settings = {"offset": 0.5, "scale": {"a": 1, "b": 0, "c": [0, 2]}}
    kernel.dispatch([32, 1, 1], vars=settings, o=o, bytes=pair)
    np.testing.assert_array_equal(o.to_numpy().view(np.uint16), raw_bits(values[::-1] * 2 + 1.5))
    np.testing.assert_array_equal(pair.to_numpy().view(np.uint16), raw_bits([1.5, 3]))
    device.close()
