"""The null device records launches and runs nothing."""

from __future__ import annotations

import pytest

import slangpy as spy
from slangpy import _native


def test_records() -> None:
    device = spy.Device(type=spy.DeviceType.null)
    layout = _native._make_program_layout(
        entry_point_name="f", scope_sizes=[8, 16], slots=[{"kind": "structured_buffer", "path": "y", "writable": True}]
    )
    assert device.compile("text", "f") == b"text"
    kernel = device.create_kernel(b"text", layout, "module::f")
    usage = spy.BufferUsage.shader_resource | spy.BufferUsage.unordered_access
    y = device.create_buffer(size=16, usage=usage)
    device.launch(kernel, [4, 2, 1], [b"12345678", bytes(16)], [y])
    device.launch(kernel, [0, 2, 1], [])
    assert device._take_launches() == [
        {"kernel": "module::f", "group_count": (4, 2, 1), "scope_sizes": [8, 16], "slot_count": 1}
    ]
    assert device._take_launches() == []
    with pytest.raises(ValueError, match="another device"):
        other = spy.Device(type=spy.DeviceType.null)
        other.launch(kernel, [1, 1, 1], [])
    other.close()
    device.close()


def test_only_null_records() -> None:
    device = spy.Device(type=spy.DeviceType.cpu)
    with pytest.raises(TypeError, match="null"):
        device._take_launches()
    device.close()
