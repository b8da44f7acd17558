"""Raw dispatch: kernels without vectorisation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from calls_support import array, load, plain, tensor

import slangpy as spy

pytestmark = pytest.mark.needs_kernels


@pytest.fixture
def m(device: Any) -> spy.Module:
    return load(device, "dispatch")


@pytest.mark.parametrize("threads", [spy.uint3(10, 1, 1), 10, (10,), [10, 1], 64], ids=str)
def test_fill(m: spy.Module, device: Any, threads: Any) -> None:
    out = tensor(device, 10)
    m.fill.dispatch(threads, s=2.0, o=out)
    assert plain(out) == [2 * i for i in range(10)]


def test_views(m: spy.Module, device: Any) -> None:
    out = tensor(device, 20)
    m.fill.dispatch(10, s=2.0, o=out[5:15])
    assert plain(out)[4:16] == [4, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 15]
    m.fill.dispatch(10, s=1.0, o=out[::2])
    assert plain(out)[:6:2] == [0, 1, 2]


def test_buffers(m: spy.Module, device: Any) -> None:
    out = tensor(device, 5, dtype=np.int32)
    m.fill_buffer.dispatch(5, count=5, o=out, **{"from": tensor(device, 5, dtype=np.int32)})
    assert plain(out) == [1, 2, 3, 4, 5]
    m.fill_buffer.dispatch(5, count=3, o=out.storage, **{"from": array(5, dtype=np.int32) + 10})
    assert plain(out) == [11, 12, 13, 4, 5]


def test_two_dimensions(m: spy.Module, device: Any) -> None:
    out = tensor(device, 2, 3, dtype=np.int32)
    m.fill_square.thread_group_size((4, 4, 1)).dispatch((3, 2), o=out)
    assert plain(out) == [[0, 1, 2], [10, 11, 12]]


def test_structs_pointers_and_globals(m: spy.Module, device: Any) -> None:
    out, ints = tensor(device, 3), tensor(device, 3, dtype=np.int32)
    arguments = {"s": {"a": 1.5, "b": spy.int2(3, 4)}, "p": ints.storage.device_address, "o": out}
    m.settings.dispatch(1, vars={"bias": 10.0}, **arguments)
    assert plain(out) == [11.5, 4, 1]
    m.settings.set(bias=20.0).dispatch(1, **arguments)
    assert plain(out)[0] == 21.5
    m.settings.set(bias=20.0).dispatch(1, vars={"bias": 30.0}, **arguments)
    assert plain(out)[0] == 31.5
    m.settings.write(lambda cursor: cursor.__setitem__("bias", 40.0)).dispatch(1, **arguments)
    assert plain(out)[0] == 41.5


def test_numpy_is_uploaded_for_reading(m: spy.Module, device: Any) -> None:
    out = tensor(device, 3)
    m.read_tensor.dispatch(3, t=array(3), o=out)
    assert plain(out) == [0, 2, 4]
    with pytest.raises(ValueError, match="parameter 'o'"):
        m.read_tensor.dispatch(3, t=array(3), o=array(3))


def test_entry_point(m: spy.Module, device: Any) -> None:
    out = tensor(device, 10, dtype=np.int32)
    m.entry.dispatch(10, count=10, o=out)
    assert plain(out) == [3 * i for i in range(10)]
    m.entry.constants({"K": 5}).dispatch(10, count=10, o=out)
    assert plain(out) == [5 * i for i in range(10)]
    with pytest.raises(ValueError, match="thread_group_size"):
        m.entry.thread_group_size((32, 1, 1)).dispatch(10, count=10, o=out)
    with pytest.raises(ValueError, match=r"is an entry point: run it with \.dispatch"):
        m.entry(1)


def test_recorded(m: spy.Module, device: Any) -> None:
    out = tensor(device, 4)
    encoder = device.create_command_encoder()
    m.fill.dispatch(4, command_encoder=encoder, s=3.0, o=out)
    assert plain(out) == [0, 1, 2, 3]
    device.submit_command_buffer(encoder.finish())
    assert plain(out) == [0, 3, 6, 9]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("returns", "return value"), ("outs", "out or inout"), ("unnamed", "dispatchThreadID"),
        ("no_id", "first parameter must be a thread id"), ("no_parameters", "first parameter must be a thread id"),
        ("many", "overloaded"),
    ],
)  # fmt: skip
def test_rules(m: spy.Module, name: str, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        m[name].dispatch(1)


def test_wrong_arguments(m: spy.Module, device: Any) -> None:
    out = tensor(device, 4)
    with pytest.raises(ValueError, match="type methods"):
        m.Owner.method.dispatch(1)
    with pytest.raises(ValueError, match="needs a value for parameter 's'"):
        m.fill.dispatch(4, o=out)
    with pytest.warns(RuntimeWarning, match="no parameter 'extra'"):
        m.fill.dispatch(4, s=1.0, o=out, extra=3)
    with pytest.raises(ValueError, match="no global named 'nope'"):
        m.fill.dispatch(4, vars={"nope": 1}, s=1.0, o=out)
    for threads in (-1, (1, 2, 3, 4), ()):
        with pytest.raises(ValueError, match="thread_count"):
            m.fill.dispatch(threads, s=1.0, o=out)
    with pytest.raises((TypeError, ValueError)):
        m.fill.dispatch(4, s="x", o=out)
    with pytest.raises((TypeError, ValueError)):
        m.fill.dispatch(4, s=1.0, o=3)
    m.fill.dispatch(0, s=1.0, o=out)
    assert plain(out) == [0, 1, 2, 3]


def test_only_what_the_kernel_uses_must_be_set(device: Any) -> None:
    module = spy.Module.load_from_source(
        device,
        "unused_globals",
        """struct Scene { StructuredBuffer<float> unused; Texture2D<float> picture; float k; };
        ParameterBlock<Scene> scene; StructuredBuffer<float> other;
        void scale(uint dispatchThreadID, RWStructuredBuffer<float> o) { o[dispatchThreadID] *= scene.k; }
        void add(uint dispatchThreadID, RWStructuredBuffer<float> o) { o[dispatchThreadID] += other[0]; }""",
    )
    out = tensor(device, 32)
    module.scale.dispatch(32, vars={"scene": {"k": 2.0}}, o=out)
    assert plain(out) == [2 * i for i in range(32)]
    with pytest.raises(RuntimeError, match="'other' of .* was never set"):
        module.add.dispatch(32, o=out)
