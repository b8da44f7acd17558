"""Outputs hold an element for each invocation: smaller ones are refused with both shapes, whatever holds them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import slangpy as spy

pytestmark = pytest.mark.needs_kernels

SOURCE = """
import slangpy;
[Differentiable] float add(float a, float b) { return a + b; }
void split(float a, out float b) { b = 2 * a; }
void accumulate(float a, inout float b) { b += a; }
float3 spread(float a) { return float3(a, a + 1, a + 2); }
struct Pair { float x; float3 v; }
void pair(float a, out Pair p) { p.x = a; p.v = spread(a); }
float4 color(float a) { return float4(a, 0, 0, 1); }
void paint(float a, out float4 c) { c = color(a); }
void rows(float a, RWTensor<float, 1> t) { if (a == 1) t[0] = a; }
"""
RW = spy.TextureUsage.shader_resource | spy.TextureUsage.unordered_access


@pytest.fixture
def m(device: Any) -> Any:
    return spy.Module.load_from_source(device, "broadcast_outputs", SOURCE)


def tensor(device: Any, *shape: int) -> Any:
    made = spy.Tensor.zeros(device, shape or (1,), "float")
    return made if shape else made.reshape(())


def counted(device: Any, *shape: int) -> Any:
    return spy.Tensor.from_numpy(device, np.arange(int(np.prod(shape)), dtype=np.float32).reshape(shape))


def array(device: Any, *shape: int) -> Any:
    del device
    return np.zeros(shape, np.float32)


def strided(device: Any, *shape: int) -> Any:
    made = spy.Tensor.zeros(device, [2 * size for size in shape] or 2, "float")
    return made[tuple(slice(None, None, 2) for _ in shape)] if shape else made[1:].reshape(())


HOLDERS = [tensor, array, strided]
SMALL = [((3,), ()), ((3,), (1,)), ((2, 3), (3,)), ((2, 3), (1, 3)), ((2, 3), (2, 1)), ((2, 3), (1, 1)), ((2, 1), (3,))]
"""Shapes of an input and of an output; only what the call makes of both counts."""
CALLS: list[tuple[str, Callable[[Any, Any, Any], Any]]] = [
    ("_result", lambda m, x, out: m.add(x, 1, _result=out)),
    ("b", lambda m, x, out: m.split(x, out)),
    ("b", lambda m, x, out: m.accumulate(x, out)),
]


def refused(name: str, own: tuple[int, ...], call: tuple[int, ...]) -> Any:
    shapes = [re.escape(f"[{', '.join(map(str, shape))}]") for shape in (own, call)]
    text = rf"argument {re.escape(name)} of shape {shapes[0]} is written, .*whose shape is {shapes[1]}"
    return pytest.raises(ValueError, match=text)


@pytest.mark.parametrize("holder", HOLDERS, ids=lambda holder: holder.__name__)
@pytest.mark.parametrize("case", range(len(CALLS)), ids=["result", "out", "inout"])
def test_scalars(device: Any, m: Any, holder: Any, case: int) -> None:
    name, call = CALLS[case]
    for given, own in SMALL:
        x, out = counted(device, *given), holder(device, *own)
        shape = np.broadcast_shapes(given, own)
        with refused(name, own, shape):
            call(m, x, out)
        assert np.all(np.asarray(out) == 0)
        whole = holder(device, *shape)
        call(m, x, whole)
        base = np.broadcast_to(x.to_numpy(), shape)
        np.testing.assert_array_equal(np.asarray(whole), [base + 1, 2 * base, base][case])


def test_many_additions_to_one_element_are_refused(device: Any, m: Any) -> None:
    out = tensor(device, 1)
    with refused("b", (1,), (100_000,)):
        m.accumulate(tensor(device, 100_000), out)


def test_vectors(device: Any, m: Any) -> None:
    """Also of numbers, whose last dimension the function writes as a whole."""
    x = counted(device, 4, 5)
    for out, own in ((tensor(device, 5, 3), (5, 3)), (np.zeros((4, 1, 3), np.float32), (4, 1, 3)), (tensor(device, 3), (3,)),
                     (spy.Tensor.zeros(device, (5,), "float3"), (5,))):  # fmt: skip
        with refused("_result", own, (4, 5)):
            m.spread(x, _result=out)
    found = m.spread(x, _result=np.zeros((4, 5, 3), np.float32))
    np.testing.assert_array_equal(found, x.to_numpy()[..., None] + np.arange(3, dtype=np.float32))


def test_fields_of_dicts(device: Any, m: Any) -> None:
    x = counted(device, 4)
    for fields, name, own in (
        ({"x": tensor(device, 4), "v": tensor(device, 3)}, "p.v", (3,)),
        ({"x": tensor(device, 1), "v": tensor(device, 4, 3)}, "p.x", (1,)),
        ({"x": array(device, 4), "v": np.zeros((1, 3), np.float32)}, "p.v", (1, 3)),
    ):
        with refused(name, own, (4,)):
            m.pair(x, fields)
    fields = {"x": array(device, 4), "v": tensor(device, 4, 3)}
    m.pair(x, fields)
    np.testing.assert_array_equal(fields["x"], x.to_numpy())
    np.testing.assert_array_equal(fields["v"].to_numpy()[:, 2], x.to_numpy() + 2)


def test_structs(device: Any, m: Any) -> None:
    out = spy.Tensor.zeros(device, (1,), m.Pair)
    with refused("p", (1,), (4,)):
        m.pair(counted(device, 4), out)


def test_textures(device: Any, m: Any) -> None:
    x = counted(device, 4, 6)
    for width, height in ((6, 1), (1, 4), (1, 1)):
        texture = device.create_texture(width=width, height=height, format=spy.Format.rgba32_float, usage=RW)
        for name, call in (("_result", lambda t: m.color(x, _result=t)), ("c", lambda t: m.paint(x, t))):
            with refused(name, (height, width), (4, 6)):
                call(texture)
    texture = device.create_texture(width=6, height=4, format=spy.Format.rgba32_float, usage=RW)
    m.paint(x, texture)
    np.testing.assert_array_equal(texture.to_numpy()[..., 0], x.to_numpy())


def test_maps(device: Any, m: Any) -> None:
    """What counts are the call's dimensions that an output is mapped to."""
    a, b = counted(device, 2), counted(device, 3)
    outer = m.add.map(a=(0,), b=(1,), _result=(0,))
    with refused("_result", (2,), (2, 3)):
        outer(a=a, b=b, _result=tensor(device, 2))
    turned = tensor(device, 3, 2)
    m.add.map(a=(0,), b=(1,), _result=(1, 0))(a=a, b=b, _result=turned)
    np.testing.assert_array_equal(turned.to_numpy(), np.add.outer(np.arange(3.0), np.arange(2.0)))
    with refused("_result", (2,), (2, 3)):
        m.add.map(a=(0,), _result=(0,))(a=a, b=tensor(device, 2, 3), _result=tensor(device, 2))
    column = m.add.map(a=(0,), _result=(0,))(a=a, b=tensor(device, 2, 1), _result=tensor(device, 2))
    assert column.to_numpy().tolist() == [0, 1]


def test_forward_mode(device: Any, m: Any) -> None:
    x = counted(device, 4).with_grads()
    with refused("_result", (1,), (4,)):
        m.add.fwds(x, 1.0, _result=tensor(device, 1).with_grads())


def test_recorded_and_prepared_calls(device: Any, m: Any) -> None:
    x, out = counted(device, 4), tensor(device, 1)
    with refused("b", (1,), (4,)):
        m.split(x, out, _append_to=device.create_command_encoder())
    with refused("b", (1,), (4,)):
        m.split.prepare(x, out)


def test_what_invocations_may_share(device: Any, m: Any) -> None:
    """A reference has the value of some one invocation, and a tensor that the function indexes is its own matter; so are
    calls of one invocation, and gradients, which are sums."""
    x = counted(device, 3)
    reference = spy.floatRef()
    m.split(x, reference)
    assert reference.value in (0, 2, 4)
    whole = tensor(device, 5)
    m.rows(x, whole)
    assert whole.to_numpy().tolist() == [1, 0, 0, 0, 0]
    alone = tensor(device, 1)
    m.split(counted(device, 1, 1), alone.reshape((1, 1)))
    m.split(3.0, tensor(device))
    with refused("b", (1,), (1, 3)):
        m.split(counted(device, 1, 3), alone)
    weight, result = tensor(device, 1).with_grads(), tensor(device, 3).with_grads()
    result.grad.copy_from_numpy(np.ones(3, np.float32))
    m.add.bwds(weight, x, _result=result)
    assert weight.grad.to_numpy().tolist() == [3]
    m.split(counted(device, 0), tensor(device, 0))
