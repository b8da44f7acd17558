"""Integer divisions without a result: on the CPU device 0 and one warning, as in NumPy; elsewhere any number. Never the end
of the process."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from device_kernels import RW, kernel

import slangpy as spy

pytestmark = pytest.mark.needs_kernels

TYPES = {"int8_t": np.int8, "int16_t": np.int16, "int": np.int32, "int64_t": np.int64}
TYPES |= {"uint8_t": np.uint8, "uint16_t": np.uint16, "uint": np.uint32, "uint64_t": np.uint64}


@pytest.mark.filterwarnings("ignore:.*divided by zero")
@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("operation", ["/", "%"])
def test_against_numpy(device: spy.Device, name: str, operation: str) -> None:
    if device.type is not spy.DeviceType.cpu and TYPES[name]().itemsize != 4:
        pytest.skip("not every device has this type")
    source = f"{name} f({name} a, {name} b) {{ return a {operation} b; }}"
    f = spy.Module.load_from_source(device, f"division_{name}_{'/%'.index(operation)}", source).f
    info = np.iinfo(TYPES[name])
    rng = np.random.default_rng()
    a = rng.integers(info.min, info.max, 1003, TYPES[name], endpoint=True)
    b = rng.integers(max(info.min, -5), 5, 1003, TYPES[name])
    a[::7] = info.min
    with np.errstate(all="ignore"):
        # C rounds towards zero, NumPy's integers downwards.
        quotient = np.where(b == 0, 0, np.trunc(a.astype(np.longdouble) / np.where(b == 0, 1, b)))
        quotient = np.where((a == info.min) & (b.astype(np.int64) == -1), a, quotient.astype(TYPES[name]))
        expected = quotient if operation == "/" else a - quotient * b
        expected = np.where(b == 0, 0, expected).astype(TYPES[name])
    got = f(a, b, _result="numpy")
    sure = np.ones_like(b, bool) if device.type is spy.DeviceType.cpu else (b != 0) & (a != info.min)
    if operation == "%" and device.type is not spy.DeviceType.cpu:
        sure &= (a.astype(np.int64) >= 0) & (b.astype(np.int64) > 0)  # Vulkan leaves the rest open
    np.testing.assert_array_equal(got[sure], expected[sure])


def test_one_warning_for_a_kernel() -> None:
    device = spy.Device(type="cpu")
    module = spy.Module.load_from_source(device, "division_told", "int3 f(int3 a, int b) { return a / b; }")
    with pytest.warns(RuntimeWarning, match="division_told::f: an integer was divided by zero: the result is 0"):
        assert list(module.f(spy.int3(1, 2, 3), 0)) == [0, 0, 0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert list(module.f(spy.int3(1, 2, 3), 0)) == [0, 0, 0]
        assert list(module.f(spy.int3(4, 5, 6), 2)) == [2, 2, 3]


@pytest.mark.filterwarnings("ignore:.*divided by zero")
def test_what_follows_a_division_is_decided_by_its_operands() -> None:
    """A C++ compiler may conclude from a division that nothing is zero."""
    source = "int f(int a, int b) { int q = a / b; return b == 0 ? -1 : q; } int g(int a, int b) { return select(b != 0, a % b, a); }"
    module = spy.Module.load_from_source(spy.Device(type="cpu"), "division_checked", source)
    a, b = np.array([7, 8, 9], np.int32), np.array([0, 2, 0], np.int32)
    assert module.f(a, b, _result="numpy").tolist() == [-1, 4, -1]
    assert module.g(a, b, _result="numpy").tolist() == [7, 0, 9]


@pytest.mark.filterwarnings("ignore:.*divided by zero")
def test_in_groups_and_loops(device: spy.Device) -> None:
    """Kernels whose threads wait for each other run on stacks of their own."""
    if device.type is not spy.DeviceType.cpu:
        pytest.skip("division by zero has a result on the cpu device alone")
    source = """
    groupshared int shared[33];
    [shader("compute")] [numthreads(33, 1, 1)]
    void main(uint3 id : SV_DispatchThreadID, uint i : SV_GroupIndex, RWStructuredBuffer<int> data)
    {
        shared[i] = data[id.x];
        GroupMemoryBarrierWithGroupSync();
        int sum = 0;
        for (int k = -2; k < 3; k++) sum += 60 / (shared[32 - i] * k);
        data[id.x] = sum + int(id.x) / shared[i];
    }"""
    values = np.arange(66, dtype=np.int32) % 33 - 16
    buffer = device.create_buffer(data=values, usage=RW, struct_size=4)
    kernel(device, source).dispatch([66, 1, 1], data=buffer)
    own, other = values.astype(int), values.reshape(2, 33)[:, ::-1].reshape(-1).astype(int)

    def divide(x: int, y: int) -> int:
        return int(x / y) if y else 0

    pairs = zip(other, own, strict=True)
    expected = [sum(divide(60, o * k) for k in range(-2, 3)) + divide(i, v) for i, (o, v) in enumerate(pairs)]
    assert buffer.to_numpy().view(np.int32).tolist() == expected
