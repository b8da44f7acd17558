"""Textures bound whole, in gradients, and on the device that has none."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from calls_support import array, load, tensor
from texture_support import READ, WRITE, F, T, filled, made, random_texels

import slangpy as spy

pytestmark = pytest.mark.needs_kernels

Resolve = spy.ResolveException


@pytest.fixture
def m(device: Any) -> Any:
    return load(device, "textures")


# --- whole textures


def test_whole_textures(device: Any, m: Any) -> None:
    texture, data = filled(device, T.texture_2d, (3, 4))
    at = spy.grid((3, 4))
    np.testing.assert_array_equal(m.fetch(at, texture, _result="numpy"), data[0])
    np.testing.assert_array_equal(m.fetch_float(at, texture, _result="numpy"), data[0, ..., 0])  # fewer components
    np.testing.assert_array_equal(m.fetch_any(at, texture, _result="numpy"), data[0])
    values = random_texels(F.rgba32_float, (3, 4, 4), 8)
    m.store(at, values, texture)
    np.testing.assert_array_equal(texture.to_numpy(), values)
    m.store_any(at, spy.Tensor.from_numpy(device, values[::-1].copy(), target_slang_dtype="float4"), texture)
    np.testing.assert_array_equal(texture.to_numpy(), values[::-1])
    volume, texels = filled(device, T.texture_3d, (2, 3, 4))
    np.testing.assert_array_equal(m.fetch_3d(spy.grid((2, 3, 4)), volume, _result="numpy"), texels[0])
    line, texels = filled(device, T.texture_1d, (5,))
    np.testing.assert_array_equal(m.fetch_1d(spy.grid((5,)), line, _result="numpy"), texels[0])


@pytest.mark.parametrize("format_", [F.rgba32_float, F.rgba8_unorm, F.rgba16_float], ids=lambda f: f.name)
def test_whole_textures_of_other_formats_are_read_and_written(device: Any, m: Any, format_: Any) -> None:
    texture = made(device, T.texture_2d, format_, (3, 4))
    m.twice4(np.full((1, 1, 4), 0.125, np.float32), _result=texture)
    if device.type is spy.DeviceType.cuda and format_ is not F.rgba32_float:
        with pytest.raises((ValueError, NotImplementedError), match=format_.name):
            m.increment(spy.grid((3, 4)), texture)  # surfaces hold bare bits
        return
    m.increment(spy.grid((3, 4)), texture)
    np.testing.assert_allclose(m.any_vector(texture, _result="numpy"), 0.5, atol=3e-3)


def test_writable_textures_of_small_texels(device: Any, m: Any) -> None:
    texture = made(device, T.texture_2d, F.rgba16_float, (3, 4))
    m.store_half(spy.grid((3, 4)), spy.float4(1, 0.5, -2, 4), texture)
    np.testing.assert_array_equal(texture.to_numpy(), np.broadcast_to([1, 0.5, -2, 4], (3, 4, 4)))
    if not device.has_feature(spy.Feature.int16):
        return
    small = made(device, T.texture_2d, F.r8_uint, (3, 4))
    m.store_u8(spy.grid((3, 4)), array(3, 4, dtype=np.uint32), small)
    np.testing.assert_array_equal(small.to_numpy(), array(3, 4))


def test_arrays_of_writable_textures(device: Any, m: Any) -> None:
    for formats in ((F.rgba32_float, F.rgba32_float), (F.rgba32_float, F.rgba16_float)):
        two = [made(device, T.texture_2d, format_, (3, 4)) for format_ in formats]
        if device.type is spy.DeviceType.cuda and formats[1] is F.rgba16_float:
            with pytest.raises(ValueError, match="rgba16_float"):  # surfaces hold bare bits
                m.store_both(spy.grid((3, 4)), two)
            continue
        m.store_both(spy.grid((3, 4)), two)
        np.testing.assert_array_equal(two[0].to_numpy(), 0.5)
        np.testing.assert_array_equal(two[1].to_numpy(), 1)


def test_whole_views(device: Any, m: Any) -> None:
    texture, data = filled(device, T.texture_2d_array, (3, 4), array_length=3, mip_count=2)
    np.testing.assert_array_equal(m.fetch_array(spy.grid((3, 3, 4)), texture, _result="numpy"), data)
    one = texture.create_view(layer=2, layer_count=1)
    np.testing.assert_array_equal(m.fetch(spy.grid((3, 4)), one, _result="numpy"), data[2])
    with pytest.raises(Resolve, match="cannot be bound to a"):
        m.fetch(spy.grid((3, 4)), texture)
    assert m.size_of(texture.create_view(layer=0, layer_count=1, mip=1)) == spy.uint2(2, 1)
    assert m.size_of_array(texture) == spy.uint3(4, 3, 3)
    assert m.size_of_array(texture.create_view(mip=1)) == spy.uint3(2, 1, 3)
    assert m.size_of_array(texture.create_view(layer=1, layer_count=2)) == spy.uint3(4, 3, 2)


def test_arrays_structs_and_samplers(device: Any, m: Any) -> None:
    three = [filled(device, T.texture_2d, (3, 4), seed=k) for k in range(3)]
    which = np.array([[0], [1], [2]], np.int32)
    got = m.pick(spy.grid((3, 4)), which, [t for t, _ in three], _result="numpy")
    np.testing.assert_array_equal(got, np.stack([data[0, k] for k, (_, data) in enumerate(three)]))
    with pytest.raises(Resolve, match="2 elements, the parameter takes 3"):
        m.pick(spy.grid((3, 4)), 0, [t for t, _ in three][:2])
    texture, data = filled(device, T.texture_2d, (2, 2))
    edge = spy.TextureAddressingMode.clamp_to_edge
    sampler = device.create_sampler(address_u=edge, address_v=edge)
    middle = data[0].astype(np.float64).mean(axis=(0, 1))
    np.testing.assert_allclose(
        m.sample(spy.float2(0.5), texture, sampler, _result="numpy"), middle, rtol=1e-4, atol=1e-5
    )
    material = {"albedo": texture, "smp": sampler, "gain": 2.0}
    got = m.shade_material(np.full((5, 2), 0.5, np.float32), material, _result="numpy")
    np.testing.assert_allclose(got, np.broadcast_to(2 * middle, (5, 4)), rtol=1e-4, atol=1e-5)
    with pytest.raises(Resolve, match="SamplerState"):
        m.sample(spy.float2(0.5), sampler, texture)
    cube = made(device, T.texture_cube, F.rgba32_float, (2, 2), READ)
    for face in range(6):
        cube.copy_from_numpy(np.full((2, 2, 4), face, np.float32), layer=face)
    axes = np.array([[1, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0], [0, 0, 1], [0, 0, -1]], np.float32)
    np.testing.assert_array_equal(m.fetch_cube(axes, cube, sampler, _result="numpy")[:, 0], range(6))


def test_structs_with_arrays_of_textures(device: Any, m: Any) -> None:
    two = [filled(device, T.texture_2d, (3, 4), seed=k) for k in range(2)]
    layers, gain = [t for t, _ in two], np.arange(4, dtype=np.float32)
    got = m.blend(spy.grid((3, 4)), {"layers": layers, "gain": gain}, _result="numpy")
    expected = (two[0][1][0].astype(np.float64) + 10 * two[1][1][0]) * gain[:, None]
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-4)
    with pytest.raises(Resolve, match="field 'layers' is a resource, which has no default"):
        m.blend(spy.grid((3, 4)), {"gain": 1.0})
    with pytest.raises(Resolve, match="declare the array of resources with a size"):
        m.unsized(spy.int2(0), layers)


WRONG = [
    ("fetch", T.texture_3d, F.rgba32_float, READ, "cannot be bound to a"),
    ("fetch", T.texture_1d, F.rgba32_float, READ, "cannot be bound to a"),
    ("fetch", T.texture_2d, F.rgba32_uint, READ, "texels of rgba32_uint are vector<uint,4>, expected vector<float,4>"),
    ("fetch_uint", T.texture_2d, F.r32_sint, READ, "texels of r32_sint are int, expected uint"),
    ("fetch_int", T.texture_2d, F.r32_uint, READ, "texels of r32_uint are uint, expected int"),
    ("fetch_int", T.texture_2d, F.r8_unorm, READ, "texels of r8_unorm are float, expected int"),
    ("fetch", T.texture_2d, F.rgba32_float, WRITE, "lacks TextureUsage.shader_resource"),
    ("fetch_ms", T.texture_2d, F.rgba32_float, READ, "cannot be bound to a"),
]


@pytest.mark.parametrize(("name", "type_", "format_", "usage", "text"), WRONG)
def test_whole_textures_that_do_not_fit(
    device: Any, m: Any, name: str, type_: Any, format_: Any, usage: Any, text: str
) -> None:
    texture = made(device, type_, format_, {T.texture_1d: (4,), T.texture_3d: (2, 4, 4)}.get(type_, (4, 4)), usage)
    with pytest.raises(Resolve, match=re.escape(text)) as error:
        m[name](spy.grid((4, 4)), texture)
    assert f"textures::{name}" in str(error.value) and f"Texture<{type_.name[8:]}, {format_.name}>" in str(error.value)


def test_whole_textures_for_writing_need_the_usage(device: Any, m: Any) -> None:
    texture = made(device, T.texture_2d, F.rgba32_float, (4, 4), READ)
    with pytest.raises(Resolve, match=re.escape("lacks TextureUsage.unordered_access")):
        m.store(spy.grid((4, 4)), spy.float4(1), texture)


def test_textures_of_another_device(device: Any, m: Any) -> None:
    other = spy.Device(type=device.type, enable_hot_reload=False)
    try:
        texture, _ = filled(other, T.texture_2d, (3, 4))
        sampler, buffer = other.create_sampler(), other.create_buffer(size=16, usage=spy.BufferUsage.unordered_access)
        own, _ = filled(device, T.texture_2d, (3, 4))
        for call in (
            lambda: m.twice4(texture),
            lambda: m.fetch(spy.grid((3, 4)), texture.create_view(mip=0)),
            lambda: m.twice4(own, _result=texture),
            lambda: m.sample(spy.float2(0), own, sampler),
            lambda: m.at(buffer, 0),
        ):
            with pytest.raises(ValueError, match="another device"):
                call()
    finally:
        other.close()


def test_explain_shows_textures(device: Any, m: Any) -> None:
    texture, _ = filled(device, T.texture_2d_array, (3, 4), array_length=2)
    lines = spy.explain(m.twice4, texture.create_view(mip=0)).splitlines()
    row = next(line for line in lines if line.startswith("v "))
    assert re.split(r"  +", row) == [
        "v", "TextureView<2d_array, rgba32_float> [2, 3, 4]", "in vector<float,4>", "vector<float,4>", "3", "[0, 1, 2]",
    ]  # fmt: skip


# --- gradients


def test_a_texture_is_a_constant_of_gradients(device: Any, m: Any) -> None:
    texture, data = filled(device, T.texture_2d, (3, 4))
    w = tensor(device, 4).with_grads()
    seeds = np.random.default_rng(6).random((3, 4)).astype(np.float32)
    result = m.weighted(texture, w).with_grads()
    result.grad.copy_from_numpy(seeds)
    m.weighted.bwds(texture, w, _result=result)
    t, x = data[0].astype(np.float64), np.arange(4, dtype=np.float64)
    expected = (seeds * (2 * x * t[..., 0] + t[..., 1])).sum(axis=0)
    np.testing.assert_allclose(w.grad.to_numpy(), expected, rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(texture.to_numpy(), data[0])
    w.grad.clear()
    m.looked_up.bwds(spy.grid((3, 4)), texture, w, _result=result)
    np.testing.assert_allclose(w.grad.to_numpy(), (seeds * 2 * x * t[..., 0]).sum(axis=0), rtol=1e-4, atol=1e-4)
    with pytest.raises(spy.ResolveException, match="_result has no gradient"):
        m.weighted.bwds(texture, w, _result=made(device, T.texture_2d, F.r32_float, (3, 4)))


def test_torch_tensors_beside_textures(device: Any, m: Any) -> None:
    torch = pytest.importorskip("torch")
    texture, data = filled(device, T.texture_2d, (3, 4))
    where = "cuda" if device.type is spy.DeviceType.cuda else "cpu"
    w = torch.arange(4.0, device=where).requires_grad_()
    t, x = data[0].astype(np.float64), np.arange(4, dtype=np.float64)
    result = m.weighted(texture, w)
    assert isinstance(result, torch.Tensor)
    expected = x * x * t[..., 0] + x * t[..., 1]
    np.testing.assert_allclose(result.detach().cpu().numpy(), expected, rtol=1e-4, atol=1e-4)
    result.sum().backward()
    np.testing.assert_allclose(w.grad.cpu().numpy(), (2 * x * t[..., 0] + t[..., 1]).sum(axis=0), rtol=1e-4, atol=1e-4)
    made_of = m.weighted(texture, w.detach(), _result="texture")
    np.testing.assert_allclose(made_of.to_numpy(), expected, rtol=1e-4, atol=1e-4)
    with pytest.raises(RuntimeError, match="requires grad"):
        m.weighted(texture, w, _result="texture")


# --- the null device


def test_the_null_device_plans_calls_with_textures() -> None:
    """Nothing runs there, but calls are bound, shaped and recorded."""
    device = spy.Device(type=spy.DeviceType.null, enable_hot_reload=False)
    try:
        m = load(device, "textures")
        texture = made(device, T.texture_2d, F.rgba8_unorm, (30, 40))
        result = m.twice4(texture, _result="texture")
        assert (result.width, result.height, result.format) == (40, 30, F.rgba32_float)
        m.add1(texture.create_view(mip=0))
        m.fetch(spy.grid((30, 40)), texture)
        launches = device._take_launches()
        assert [launch["kernel"] for launch in launches] == [
            f"calls_textures::{n}" for n in ("twice4", "add1", "fetch")
        ]
        assert [launch["slot_count"] for launch in launches] == [2, 1, 1]
        with pytest.raises(spy.ShapeError, match="Shape mismatch"):
            m.weigh(texture, array(7))
    finally:
        device.close()
