"""GPU kernels split flat indices by multiplication, and threads of strided calls handle several elements: quotients, odd
shapes, and what is read and written by every stride."""

from __future__ import annotations

import numpy as np
import pytest

import slangpy as spy

pytestmark = [
    pytest.mark.needs_kernels,
    pytest.mark.elsewhere(
        "test_quotients", "(257, 4, 3)",
    ),
]  # fmt: skip

SOURCE = """
import slangpy;
float same(float x) { return x; }
uint quotient(uint n, uint64_t divisor) { return _spy_quotient(n, divisor); }
"""
SHAPES = [
    (3, 5), (1, 7), (7, 1), (2, 3, 5), (31, 33, 7), (1, 1, 1, 3), (4, 1, 5, 1, 2), (90, 90, 9), (1000003, 3), (3, 1000003),
    (2, 65537, 5), (5, 3, 2, 3, 4, 2), (0, 3), (1, 1),
]  # fmt: skip


def divisor(size: int) -> int:
    """As divisor_of() in src/native/call/stages/write/write.cpp."""
    shift = (size - 1).bit_length()
    multiplier = ((((1 << shift) - size) << 32) // size) + 1
    assert multiplier < 1 << 32
    return shift << 32 | multiplier


def test_quotients(device: spy.Device) -> None:
    rng = np.random.default_rng()
    powers = 2 ** np.arange(1, 31, dtype=np.int64)
    sizes = np.concatenate([np.arange(1, 200), rng.integers(1, 2**31, 20000), powers, powers - 1, powers + 1, [2**31]])
    n = rng.integers(0, 2**31, len(sizes))
    n[::3] = n[::3] // sizes[::3] * sizes[::3]  # the first number of a quotient, and the last of the one before
    n[1::3] = np.maximum(n[1::3] // sizes[1::3] * sizes[1::3] - 1, 0)
    n[2::7] = 2**31 - 1
    module = spy.Module.load_from_source(device, "divisors", SOURCE)
    divisors = np.array([divisor(int(size)) for size in sizes], np.uint64)
    got = module.quotient(n.astype(np.uint32), divisors, _result="numpy")
    np.testing.assert_array_equal(got, n // sizes)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_odd_shapes(device: spy.Device, shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng()
    values = rng.standard_normal(shape, dtype=np.float32)
    axes = tuple(int(axis) for axis in rng.permutation(len(shape)))
    x = spy.Tensor.from_numpy(device, values).permute(*axes)
    module = spy.Module.load_from_source(device, "divisors", SOURCE)
    np.testing.assert_array_equal(module.same(x, _result="numpy"), values.transpose(axes))


TYPES = {
    "float": np.float32,
    "half": np.float16,
    "int8_t": np.int8,
    "uint16_t": np.uint16,
    "double": np.float64,
    "int64_t": np.int64,
}


@pytest.mark.parametrize("type_", TYPES)
@pytest.mark.parametrize("shape", [(3, 5), (33, 31), (257, 4, 3), (1, 2049)], ids=str)
def test_strided_outputs(device: spy.Device, type_: str, shape: tuple[int, ...]) -> None:
    needs = {"double": spy.Feature.double, "half": spy.Feature.half}
    if type_ in needs and not device.has_feature(needs[type_]):
        pytest.skip(f"no {type_} on this device")
    rng = np.random.default_rng()
    dtype = TYPES[type_]
    x, y = (rng.integers(0, 9, (*shape[:-1], 2 * shape[-1])).astype(dtype) for _ in range(2))
    z = np.zeros_like(x)
    module = spy.Module.load_from_source(
        device,
        f"strided_{type_}",
        f"void mix(inout {type_} x, {type_} y, out {type_} z) {{ z = x; x = {type_}(x + y); }}",
    )
    tensors = [spy.Tensor.from_numpy(device, values) for values in (x, y, z)]
    a, b, c = (t[..., ::2] for t in tensors)
    module.mix(a, b[..., ::-1], c)
    expected, copied = x.copy(), z.copy()
    expected[..., ::2] = x[..., ::2] + y[..., ::2][..., ::-1]
    copied[..., ::2] = x[..., ::2]
    np.testing.assert_array_equal(tensors[0].to_numpy(), expected)
    np.testing.assert_array_equal(tensors[1].to_numpy(), y)
    np.testing.assert_array_equal(tensors[2].to_numpy(), copied)
