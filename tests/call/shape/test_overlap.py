"""Arguments that share memory with one that is written: what is read is read before."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import slangpy as spy

pytestmark = pytest.mark.needs_kernels

N = 3001
"""Elements: several blocks of the CPU, several groups elsewhere."""
SOURCE = """
import slangpy;
[Differentiable] float twice(float x) { return 2 * x; }
[Differentiable] float times(float x, float y) { return x * y; }
float of_bits(uint x) { return float(x & 255); }
float take(int i, Tensor<float, 1> x) { return x[x.shape[0] - 1 - i]; }
void both(float x, out float y, out float z) { y = x; z = -x; }
void more(float x, inout float y) { y = y + x; }
struct Pair { float a; float b; }
Pair swapped(Pair p) { return Pair(p.b, p.a); }
"""


@pytest.fixture
def m(device: Any) -> Any:
    return spy.Module.load_from_source(device, "overlap_calls", SOURCE)


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(7).integers(-50, 50, shape).astype(np.float32)


def wrapped(device: Any, kind: str, base: np.ndarray) -> Any:
    return spy.Tensor.from_numpy(device, base) if kind == "tensor" else base.copy()


def host(value: Any) -> np.ndarray:
    return value.to_numpy() if isinstance(value, spy.Tensor) else value


KINDS = pytest.mark.parametrize("kind", ["numpy", "tensor"])


@KINDS
def test_shifts_and_reversals(device: Any, m: Any, kind: str) -> None:
    base = numbers(N)
    for source, target in (
        (np.s_[:-1], np.s_[1:]), (np.s_[1:], np.s_[:-1]), (np.s_[::-1], np.s_[:]), (np.s_[:1501], np.s_[::2]),
    ):  # fmt: skip
        memory = wrapped(device, kind, base)
        m.twice(memory[source], _result=memory[target])
        expected = base.copy()
        np.multiply(expected[source], 2, out=expected[target])
        np.testing.assert_array_equal(host(memory), expected)


@KINDS
def test_transposes(device: Any, m: Any, kind: str) -> None:
    base = numbers(71, 71)
    memory = wrapped(device, kind, base)
    m.times(memory.T, 3.0, _result=memory)
    np.testing.assert_array_equal(host(memory), base.T * 3)
    memory = wrapped(device, kind, base)
    m.more.map((0, 1), (1, 0))(memory, memory)  # one view, whose elements meet others
    np.testing.assert_array_equal(host(memory), base + base.T)


def test_another_dtype_over_one_buffer(device: Any, m: Any) -> None:
    base = np.arange(N, dtype=np.uint32) * 7
    expected = (base & 255).astype(np.float32)
    m.of_bits(base, _result=base.view(np.float32))
    np.testing.assert_array_equal(base.view(np.float32), expected)


@KINDS
def test_a_whole_tensor_beside_an_output(device: Any, m: Any, kind: str) -> None:
    base = numbers(N)
    memory = wrapped(device, kind, base)
    m.take(spy.grid((N - 1,)), memory[1:], _result=memory[:-1])
    np.testing.assert_array_equal(host(memory), np.append(base[:0:-1], base[-1]))


@KINDS
def test_fields_that_change_places(device: Any, m: Any, kind: str) -> None:
    base = numbers(N, 2)
    memory = wrapped(device, kind, base)
    parts = {"a": memory[:, 0], "b": memory[:, 1]}
    m.swapped(parts, _result=parts)
    np.testing.assert_array_equal(host(memory), base[:, ::-1])


def test_two_outputs_of_numpy(m: Any) -> None:
    """As np.divmod(a, b, out=(x, y)): the last one is written last."""
    base, x = np.zeros(N, np.float32), np.arange(N - 1, dtype=np.float32)
    m.both(x, base[1:], base[:-1])
    np.testing.assert_array_equal(base, np.append(-x, x[-1]))
    m.both(x, base[:-1], base[1:])
    np.testing.assert_array_equal(base, np.append(x[:1], -x))


def test_two_outputs_of_tensors(device: Any, m: Any) -> None:
    memory = spy.Tensor.zeros(device, (N,), "float")
    with pytest.raises(ValueError, match=r"argument [yz] and argument [yz] are both written and overlap"):
        m.both(numbers(N - 1), memory[1:], memory[:-1])
    m.both(1, memory[::2][:1500], memory[1::2])  # beside each other
    np.testing.assert_array_equal(memory.to_numpy()[:3000], np.tile([1, -1], 1500))


@pytest.mark.parametrize("steps", [(0,), (4, 4), (8, 4), (-4, 4), (12, 0)])
def test_outputs_that_overlap_themselves(m: Any, steps: tuple[int, ...]) -> None:
    base = np.zeros(64, np.float32)
    for order in ("=", ">"):
        out = np.lib.stride_tricks.as_strided(
            base[32:].view(np.dtype(np.float32).newbyteorder(order)), (3,) * len(steps), steps
        )
        with pytest.raises(
            ValueError, match=r"argument _result of shape \[.*is written, but some of its elements share memory"
        ):
            m.twice(np.ones(out.shape, np.float32), _result=out)
    assert not base.any()


def test_tensors_that_overlap_themselves(device: Any, m: Any) -> None:
    base = spy.Tensor.zeros(device, (64,), "float")
    for out in (base[:1].broadcast_to((8,)), base.view((4, 4), (2, 1)), base.view((3, 4), (3, 2))[:, ::-1]):
        with pytest.raises(ValueError, match="some of its elements share memory"):
            m.twice(np.ones(tuple(out.shape), np.float32), _result=out)
    m.twice(np.ones((4, 2), np.float32), _result=base.view((4, 2), (3, 2)))  # a comb between the teeth of a comb
    assert np.flatnonzero(base.to_numpy()).tolist() == [0, 2, 3, 5, 6, 8, 9, 11]


def test_gradients(device: Any, m: Any) -> None:
    """A gradient that is read lies under one that is added to; two that are added to may meet."""
    x, seed = numbers(N - 1), numbers(N)
    memory = spy.Tensor.from_numpy(device, seed)
    primal = spy.Tensor.from_numpy(device, x)
    m.twice.bwds(primal.with_grads(grad_out=memory[1:]), _result=primal.with_grads(grad_in=memory[:-1]))
    np.testing.assert_array_equal(memory.to_numpy(), np.append(seed[:1], seed[1:] + 2 * seed[:-1]))
    memory = spy.Tensor.zeros(device, (N,), "float")
    one = spy.Tensor.from_numpy(device, np.ones(N - 1, np.float32))
    m.times.bwds(
        primal.with_grads(grad_out=memory[1:]),
        one.with_grads(grad_out=memory[:-1]),
        _result=one.with_grads(grad_in=one),
    )
    np.testing.assert_array_equal(memory.to_numpy(), np.append(0, np.ones(N - 1)) + np.append(x, 0))


def test_tangents(device: Any, m: Any) -> None:
    values = numbers(N)
    memory, primal = (spy.Tensor.from_numpy(device, values) for _ in range(2))
    y = spy.Tensor.zeros(device, (N - 1,), "float")
    m.twice.fwds(primal[1:].with_grads(grad_in=memory[1:]), _result=y.with_grads(grad_out=memory[:-1]))
    np.testing.assert_array_equal(memory.to_numpy(), np.append(2 * values[1:], values[-1]))


def test_numpy_beside_torch(device: Any, m: Any) -> None:
    torch = pytest.importorskip("torch")
    if device.info.type is spy.DeviceType.cuda:
        pytest.skip("takes no CPU tensors, and CUDA tensors share no memory with NumPy")
    base = numbers(N)
    memory = base.copy()
    m.times(torch.from_numpy(memory[:-1]), 2.0, _result=memory[1:])
    np.testing.assert_array_equal(memory[1:], 2 * base[:-1])
    memory = base.copy()
    m.times(memory[:-1], 2.0, _result=torch.from_numpy(memory[1:]))
    np.testing.assert_array_equal(memory[1:], 2 * base[:-1])


def test_recorded(device: Any, m: Any) -> None:
    """The copy is made when the commands run."""
    memory = spy.Tensor.zeros(device, (N,), "float")
    encoder = device.create_command_encoder()
    m.twice(memory[:-1], _result=memory[1:], _append_to=encoder)
    m.twice(memory[:-1], _result=memory[1:], _append_to=encoder)
    memory.copy_from_numpy(numbers(N))
    device.submit_command_buffer(encoder.finish())
    expected = numbers(N)
    for _ in range(2):
        expected[1:] = 2 * expected[:-1]
    np.testing.assert_array_equal(memory.to_numpy(), expected)
