"""Buffers and pointers as arguments of calls, line by line."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from calls_support import array, load, tensor_of, typed

import slangpy as spy

pytestmark = pytest.mark.needs_kernels

U = spy.BufferUsage
Resolve, Shape = spy.ResolveException, spy.ShapeError


@pytest.fixture
def m(device: Any) -> Any:
    return load(device, "textures")


def buffer(device: Any, values: Any, usage: Any = U.shader_resource | U.unordered_access, dtype: Any = np.int32) -> Any:
    data = np.array(values, dtype)
    made = device.create_buffer(size=data.nbytes, usage=usage)
    made.copy_from_numpy(data)
    return made


def ints(made: Any) -> list[int]:
    return made.to_numpy().view(np.int32).tolist()


def test_structured_buffers(device: Any, m: Any) -> None:
    b = buffer(device, [5, 6, 7, 8])
    assert m.at(b, 2) == 7
    assert m.at(b, np.array([3, 0], np.int32), _result="numpy").tolist() == [8, 5]  # whole, for every invocation
    m.set_at(b, np.array([0, 3], np.int32), np.array([-1, -2], np.int32))
    assert ints(b) == [-1, 6, 7, -2]
    triples = buffer(device, range(12))
    assert m.of_triple(triples, range(4), _result="numpy").tolist() == [2, 5, 8, 11]


def test_byte_address_buffers(device: Any, m: Any) -> None:
    b = buffer(device, [5, 6, 7, 8])
    assert m.at_bytes(b, 3) == 8
    m.set_bytes(b, 1, 99)
    assert ints(b) == [5, 99, 7, 8]


def test_usage_decides_what_a_buffer_binds_to(device: Any, m: Any) -> None:
    read_only, write_only = buffer(device, [1, 2], U.shader_resource), buffer(device, [1, 2], U.unordered_access)
    neither = buffer(device, [1, 2], U.copy_source)
    assert m.at(read_only, 1) == 2 and m.at(write_only, 1) == 2 and m.at_bytes(read_only, 1) == 2
    for call in (lambda: m.set_at(read_only, 0, 1), lambda: m.set_bytes(read_only, 0, 1)):
        with pytest.raises(Resolve, match=re.escape("Buffer[rw=False] does not match slang type RW")) as error:
            call()
        assert "BufferUsage.unordered_access" in str(error.value)
    for call in (lambda: m.at(neither, 0), lambda: m.at_bytes(neither, 0)):
        with pytest.raises(Resolve, match=re.escape("BufferUsage.shader_resource or BufferUsage.unordered_access")):
            call()
    with pytest.raises(Resolve, match=re.escape("BufferUsage.unordered_access")):
        m.set_at(neither, 0, 1)


def test_sizes_are_whole_elements(device: Any, m: Any) -> None:
    with pytest.raises(ValueError, match=r"argument b has 20 bytes, which is no multiple of the 12 bytes"):
        m.of_triple(buffer(device, range(5)), 0)
    assert m.of_triple(buffer(device, range(6)), 1) == 5
    assert m.at_bytes(buffer(device, range(5)), 4) == 4


def test_buffers_are_never_vectorised(device: Any, m: Any) -> None:
    b = buffer(device, [1, 2, 3, 4])
    for function in (m.same_i1, m.twice4):
        with pytest.raises(Resolve, match="use a Tensor to vectorise over its elements"):
            function(b)
    with pytest.raises(Resolve):  # nothing tells the element type
        m.at_any(b, 0)
    assert m.at_any(tensor_of(device, [3, 4], np.int32), 1) == 4


def test_typed_containers_as_buffers(device: Any, m: Any) -> None:
    t = tensor_of(device, [5, 6, 7], np.int32)
    assert m.at(t, 1) == 6
    assert m.at(np.array([5, 6, 7], np.int32), 2) == 7
    m.set_at(t, 0, 9)
    assert t.to_numpy().tolist() == [9, 6, 7]
    host = np.array([1, 2, 3], np.int32)
    m.set_at(host, 1, 7)
    assert host.tolist() == [1, 7, 3]
    with pytest.raises(Resolve, match="element type float, expected int"):
        m.at(array(3), 0)
    for part in (t[1:], tensor_of(device, [[1, 2], [3, 4]], np.int32)[:, 0]):
        with pytest.raises(ValueError, match="must be contiguous with offset 0"):
            m.at(part, 0)
    read_only = spy.Tensor.from_numpy(device, np.array([1], np.int32), usage=U.shader_resource)
    with pytest.raises(Resolve, match="read-only"):
        m.set_at(read_only, 0, 1)


# --- pointers


@pytest.fixture
def pointers(device: Any) -> None:
    if not device.has_feature(spy.Feature.pointer):
        pytest.skip("no pointers")


@pytest.mark.usefixtures("pointers")
def test_pointers_from_addresses_buffers_and_tensors(device: Any, m: Any) -> None:
    b = buffer(device, [5, 6, 7, 8])
    t = tensor_of(device, [50, 60, 70], np.int32)
    assert m.follow(b.device_address, 2) == 7
    assert m.follow(b.device_address + 4, 2) == 8
    assert m.follow(b, 3) == 8
    assert m.follow(t, 1) == 60
    assert m.follow(t[1:], 1) == 70  # the address is that of its first element
    assert m.follow(b, range(4), _result="numpy").tolist() == [5, 6, 7, 8]
    m.set_through(t, 2, -1)
    assert t.to_numpy().tolist() == [50, 60, -1]
    with pytest.raises(ValueError, match="contiguous"):
        m.follow(tensor_of(device, [[1, 2], [3, 4]], np.int32)[:, 0], 0)
    with pytest.raises(Resolve):
        m.follow(tensor_of(device, [1.0, 2.0]), 0)


@pytest.mark.usefixtures("pointers")
def test_one_pointer_per_invocation(device: Any, m: Any) -> None:
    b = buffer(device, [5, 6, 7, 8])
    addresses = b.device_address + 4 * np.array([3, 1, 0], np.uint64)
    assert m.follow_ptr(addresses, _result="numpy").tolist() == [8, 6, 5]
    assert m.follow_ptr(tensor_of(device, addresses, np.uint64), _result="numpy").tolist() == [8, 6, 5]
    typed_pointers = typed(device, addresses, m["Ptr<int>"], np.uint64)
    assert m.follow_ptr(typed_pointers, _result="numpy").tolist() == [8, 6, 5]
    assert m.address(b.device_address) == b.device_address
    assert m.address(addresses, _result="numpy").tolist() == addresses.tolist()


@pytest.mark.usefixtures("pointers")
def test_pointer_results_are_ints(device: Any, m: Any) -> None:
    b = buffer(device, [5, 6, 7, 8])
    moved = m.moved(b, 2)
    assert isinstance(moved, int) and moved == b.device_address + 8
    many = m.moved(b, np.array([0, 3], np.int32), _result="numpy")
    assert many.dtype == np.uint64 and many.tolist() == [b.device_address, b.device_address + 12]
    assert m.follow(moved, 0) == 7


@pytest.mark.usefixtures("pointers")
def test_addresses_are_checked(device: Any, m: Any) -> None:
    for bad in (-1, 2**64):
        with pytest.raises((OverflowError, ValueError), match="p"):
            m.follow(bad, 0)
    with pytest.raises((TypeError, Resolve, ValueError)):
        m.follow(1.5, 0)
    with pytest.raises((TypeError, Resolve, ValueError)):
        m.follow(np.array([1, 2], np.int32), 0)


def test_enum_results_are_their_integers(m: Any) -> None:
    assert m.level(1) == 7
    many = m.level(np.array([0, 1], np.int32), _result="numpy")
    assert many.dtype == np.uint8 and many.tolist() == [1, 7]
