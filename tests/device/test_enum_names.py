"""Members of enums by their names, where devices make things of fields."""

from __future__ import annotations

import enum
from typing import Any

import pytest

import slangpy as spy

CREATED: dict[str, tuple[Any, dict[str, tuple[str, Any]]]] = {
    "buffer": (
        lambda d, **fields: d.create_buffer(size=64, **fields).desc,
        {
            "format": ("rgba32_float", spy.Format.rgba32_float), "usage": ("unordered_access", spy.BufferUsage.unordered_access),
            "memory_type": ("device_local", spy.MemoryType.device_local),
            "default_state": ("shader_resource", spy.ResourceState.shader_resource),
        },
    ),
    "texture": (
        lambda d, **fields: d.create_texture(**{"width": 4, "height": 1, "format": "r32_float", "usage": "shader_resource"} | fields).desc,
        {
            "format": ("rgba8_unorm", spy.Format.rgba8_unorm), "usage": ("unordered_access", spy.TextureUsage.unordered_access),
            "memory_type": ("device_local", spy.MemoryType.device_local), "type": ("texture_1d", spy.TextureType.texture_1d),
        },
    ),
    "sampler": (
        lambda d, **fields: d.create_sampler(**fields).desc,
        {
            "min_filter": ("point", spy.TextureFilteringMode.point), "address_u": ("wrap", spy.TextureAddressingMode.wrap),
            "comparison_func": ("less", spy.ComparisonFunc.less),
        },
    ),
    "view": (
        lambda d, **fields: d.create_texture(width=4, height=4, format="rgba8_unorm", usage="shader_resource").create_view(**fields).desc,
        {"format": ("rgba8_unorm", spy.Format.rgba8_unorm), "aspect": ("all", spy.TextureAspect.all)},
    ),
}  # fmt: skip


@pytest.mark.parametrize(("what", "field"), [(what, field) for what, (_, fields) in CREATED.items() for field in fields])
def test_by_name(device: spy.Device, what: str, field: str) -> None:
    """As the member itself does; numbers, and names that are near or of other attributes, are told what is expected."""
    create, fields = CREATED[what]
    name, member = fields[field]
    by_name, by_member = (getattr(create(device, **{field: value}), field) for value in (name, member))
    assert by_name == by_member and type(by_name) is type(member)
    assert member in by_name if isinstance(member, enum.Flag) else member is by_name  # devices add flags for copies
    for wrong in (name + "x", name.upper() + "_"):
        with pytest.raises(TypeError, match=rf"'{field}': expected a {type(member).__name__}.*'{wrong}'"):
            create(device, **{field: wrong})
    with pytest.raises(TypeError, match=rf"{type(member).__name__} such as slangpy\.{type(member).__name__}\.{name}, got"):
        create(device, **{field: name + "x"})
    for wrong in ("name", "__class__", 1, b"point"):
        with pytest.raises(TypeError, match=rf"'{field}': expected a {type(member).__name__}, got"):
            create(device, **{field: wrong})


def test_elsewhere(device: spy.Device) -> None:
    """Fields of descriptors, by position, in a dict and set afterwards; tensors hand theirs on."""
    desc = spy.TextureDesc("texture_3d", "r8_unorm")
    assert (desc.type, desc.format) == (spy.TextureType.texture_3d, spy.Format.r8_unorm)
    desc.format = "rg32_float"  # type: ignore[assignment]
    assert desc.format is spy.Format.rg32_float
    with pytest.raises(TypeError, match="format: expected a Format"):
        desc.format = "rg33"  # type: ignore[assignment]
    assert device.create_buffer({"size": 4, "usage": "unordered_access"}).desc.usage == spy.BufferUsage.unordered_access
    assert device.create_query_pool("timestamp", 2).desc.type is spy.QueryType.timestamp
    tensor = spy.Tensor.zeros(device, (3,), "float", usage="unordered_access", memory_type="device_local")
    assert tensor.usage == spy.BufferUsage.unordered_access and tensor.memory_type is spy.MemoryType.device_local
    assert tensor.to_numpy().tolist() == [0, 0, 0] or device.info.type is spy.DeviceType.null
