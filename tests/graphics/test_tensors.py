"""Tensors in passes: vertices and indices that lie in them, pictures that go into textures and back in one encoder."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from drawing import STRIP, TRIANGLE, Draw, count, picture, pipeline, render, texture

import slangpy as spy

BUFFER = spy.BufferUsage.shader_resource | spy.BufferUsage.unordered_access
TEXTURE = spy.TextureUsage.shader_resource | spy.TextureUsage.unordered_access


def vertices(device: spy.Device, data: Any, *dtype: str) -> spy.Tensor:
    return spy.Tensor.from_numpy(device, data, BUFFER | spy.BufferUsage.vertex_buffer, target_slang_dtype=next(iter(dtype), None))


def indices(device: spy.Device, data: Any) -> spy.Tensor:
    return spy.Tensor.from_numpy(device, data, BUFFER | spy.BufferUsage.index_buffer)


@pytest.mark.draws
def test_vertices(drawer: spy.Device) -> None:
    """Of vectors and of scalars; a slice starts where it starts. A call writes them, the pass reads them."""
    corners, target = np.array(STRIP, np.float32), texture(drawer)
    for tensor in (vertices(drawer, corners), vertices(drawer, corners, "float2")):
        render(drawer, target, Draw(pipeline(drawer), state={"vertex_buffers": [tensor]}))
        assert picture(target.to_numpy()) == TRIANGLE
        render(drawer, target, Draw(pipeline(drawer), state={"vertex_buffers": [tensor[1:]]}))
        assert count(target.to_numpy()) == 36
    wide = vertices(drawer, np.concatenate([corners * 7, corners, corners * 9], 1))
    layout = drawer.create_input_layout(
        [{"semantic_name": "POSITION", "format": spy.Format.rg32_float}], [{"stride": 24}]
    )
    render(drawer, target, Draw(pipeline(drawer, input_layout=layout), state={"vertex_buffers": [wide[:, 2:4]]}))
    assert picture(target.to_numpy()) == TRIANGLE

    module = spy.Module.load_from_source(drawer, "half_of_it", "float2 half_of_it(float2 p) { return p * 0.5; }")
    made = spy.Tensor.empty(drawer, (4,), "float2", usage=BUFFER | spy.BufferUsage.vertex_buffer)
    module.half_of_it(corners, _result=made)
    strip = pipeline(drawer, primitive_topology=spy.PrimitiveTopology.triangle_strip)
    render(drawer, target, Draw(strip, state={"vertex_buffers": [made]}, call=("draw", {"vertex_count": 4})))
    assert picture(target.to_numpy()) == ["........"] * 2 + ["..####.."] * 4 + ["........"] * 2


@pytest.mark.draws
@pytest.mark.parametrize("dtype", [np.uint16, np.int32])
def test_indices(drawer: spy.Device, dtype: Any) -> None:
    target, corners = texture(drawer), vertices(drawer, np.array(STRIP, np.float32))
    faces = indices(drawer, np.array([[0, 1, 2], [1, 3, 2]], dtype))
    format = spy.IndexFormat.uint16 if dtype is np.uint16 else spy.IndexFormat.uint32
    state = {"vertex_buffers": [corners], "index_format": format}
    for part, covered in ((faces, 64), (faces[:1], 28), (faces[1:], 36)):
        draw = {"vertex_count": 3 * len(part)}
        state["index_buffer"] = part
        render(drawer, target, Draw(pipeline(drawer), state=state, call=("draw_indexed", draw)))
        assert count(target.to_numpy()) == covered
    with pytest.raises(IndexError, match="index_buffer has 6 bytes|index_buffer has 12 bytes"):
        state["index_buffer"] = faces[:1]
        render(drawer, target, Draw(pipeline(drawer), state=state, call=("draw_indexed", {"vertex_count": 4})))


@pytest.mark.draws
def test_what_does_not_fit(drawer: spy.Device) -> None:
    target, corners = texture(drawer), np.array(STRIP, np.float32)
    tensor = vertices(drawer, corners)
    plain = spy.Tensor.from_numpy(drawer, corners)
    faces = indices(drawer, np.array([0, 1, 2], np.uint16))
    wrong: list[tuple[Any, type[Exception], str]] = [
        ({"vertex_buffers": [plain]}, ValueError, "created without the usage flag vertex_buffer"),
        ({"vertex_buffers": [tensor[::2]]}, ValueError, r"16 bytes from one vertex to the next.*has stride 8"),
        ({"vertex_buffers": [tensor[::-1]]}, ValueError, r"vertex_buffers'.*be adjacent in memory; use contiguous"),
        ({"vertex_buffers": [tensor.permute(1, 0)]}, ValueError, "one index of the first dimension leaves"),
        ({"vertex_buffers": [tensor[:2]]}, IndexError, r"vertex_buffers\[0\] has 16 bytes .* record 2"),
        ({"vertex_buffers": [tensor[:0]]}, ValueError, "has no elements"),
        ({"vertex_buffers": [corners]}, TypeError, "expected a Buffer, a Tensor, .*Tensor.from_torch"),
        ({"index_buffer": faces}, ValueError, r"indices of 16 bits.*IndexFormat.uint16"),
        ({"index_buffer": tensor}, ValueError, "indices are integers of 16 or 32 bits"),
        (
            {"index_buffer": faces[::2], "index_format": spy.IndexFormat.uint16},
            ValueError,
            "indices must be adjacent in memory",
        ),
    ]
    for state, error, words in wrong:
        with pytest.raises(error, match=words):
            render(drawer, target, Draw(pipeline(drawer), state=state))


@pytest.mark.parametrize("scalar", ["float", "half"])
def test_pictures(device: spy.Device, scalar: str) -> None:
    """Tensor, texture, tensor: one encoder, odd sizes, a row with a gap, a mip of a layer."""
    dtype, bits = (np.float32, 32) if scalar == "float" else (np.float16, 16)
    rng = np.random.default_rng(3)
    for channels, name in ((1, "r"), (2, "rg"), (4, "rgba")):
        data = rng.random((5, 7, channels)).astype(dtype)
        scalars = spy.Tensor.from_numpy(device, data)
        vectors = scalar if channels == 1 else f"{scalar}{channels}"
        elements = spy.Tensor.from_numpy(device, data, target_slang_dtype=vectors if channels > 1 else None)
        format = spy.Format[f"{name}{bits}_float"]
        small = {"format": format, "usage": TEXTURE, "width": 5, "height": 3}
        whole = device.create_texture(format=format, width=7, height=5, usage=TEXTURE)
        part = device.create_texture(**small)
        array = {"type": spy.TextureType.texture_2d_array, "array_length": 2, "mip_count": 2}
        layers = device.create_texture(**{**small, **array, "width": 14, "height": 10})
        results = [spy.Tensor.empty(device, shape, scalar) for shape in ((5, 7, channels), (3, 5, channels))]
        last = spy.Tensor.empty(device, (5, 7) if channels > 1 else (5, 7, 1), vectors)
        encoder = device.create_command_encoder()
        encoder.copy_tensor_to_texture(whole, elements)
        encoder.copy_texture_to_tensor(results[0], whole)
        encoder.copy_tensor_to_texture(part, scalars[1:4, 2:])
        encoder.copy_texture_to_tensor(results[1], part)
        encoder.copy_tensor_to_texture(layers, results[0], layer=1, mip=1)
        encoder.copy_texture_to_tensor(last, layers, layer=1, mip=1)
        device.submit_command_buffer(encoder.finish())
        assert np.array_equal(results[0].to_numpy(), data)
        assert np.array_equal(results[1].to_numpy(), data[1:4, 2:])
        assert np.array_equal(last.to_numpy().reshape(data.shape), data)


@pytest.mark.needs_kernels
def test_three_channels(device: spy.Device) -> None:
    """No texture has them: a call in the same encoder adds the alpha, and takes it away."""
    source = "float4 opaque(float3 c) { return float4(c, 1); } float3 color(float4 c) { return c.rgb; }"
    module = spy.Module.load_from_source(device, "three_channels", source)
    data = np.random.default_rng(4).random((5, 7, 3), np.float32)
    given = spy.Tensor.from_numpy(device, data, target_slang_dtype="float3")
    four, back = (spy.Tensor.empty(device, (5, 7), dtype) for dtype in ("float4", "float3"))
    target = device.create_texture(format=spy.Format.rgba32_float, width=7, height=5, usage=TEXTURE)
    encoder = device.create_command_encoder()
    module.opaque.append_to(encoder, given, _result=four)
    encoder.copy_tensor_to_texture(target, four)
    encoder.copy_texture_to_tensor(four, target)
    module.color.append_to(encoder, four, _result=back)
    device.submit_command_buffer(encoder.finish())
    assert np.array_equal(back.to_numpy(), data) and (target.to_numpy()[..., 3] == 1).all()


def test_pictures_that_do_not_fit(device: spy.Device) -> None:
    target = device.create_texture(format=spy.Format.rg32_float, width=7, height=5, usage=TEXTURE)
    volume = device.create_texture(
        type=spy.TextureType.texture_3d, format=spy.Format.rg32_float, width=7, height=5, depth=2, usage=TEXTURE
    )
    fits = spy.Tensor.zeros(device, (5, 7, 2), "float")
    takes = r"takes shape \[5, 7\] of float2, or \[5, 7, 2\] of float; got a Tensor of "
    wrong: list[tuple[Any, Any, dict[str, int], type[Exception], str]] = [
        (target, spy.Tensor.zeros(device, (7, 5, 2), "float"), {}, ValueError, takes + r"float, shape \[7, 5, 2\]"),
        (target, spy.Tensor.zeros(device, (5, 7, 3), "float"), {}, ValueError, takes),
        (target, spy.Tensor.zeros(device, (5, 7, 2), "half"), {}, ValueError, takes + "half"),
        (target, spy.Tensor.zeros(device, (5, 7), "int2"), {}, ValueError, takes),
        (target, spy.Tensor.zeros(device, (5, 14, 2), "float")[:, ::2], {}, ValueError, "texels of a row must be adjacent"),
        (target, fits[::-1], {}, ValueError, "use contiguous"),
        (target, fits, {"mip": 1}, IndexError, "'mip' must be less than 1, got 1"),
        (target, fits, {"layer": 1}, IndexError, "layer"),
        (volume, fits, {}, NotImplementedError, "is no plane.*copy_buffer_to_texture"),
        (target, np.zeros((5, 7, 2), np.float32), {}, TypeError, "expected a Tensor .*from_torch"),
    ]
    encoder = device.create_command_encoder()
    for texture_, tensor, places, error, words in wrong:
        with pytest.raises(error, match=words):
            encoder.copy_tensor_to_texture(texture_, tensor, **places)
        with pytest.raises(error, match=words):
            encoder.copy_texture_to_tensor(tensor, texture_, **places)
    device.submit_command_buffer(encoder.finish())


@pytest.mark.draws
def test_draws_that_share_their_resources(drawer: spy.Device) -> None:
    """Values and textures that change between the draws of a pass, each alone and both."""
    red, green = (
        texture(drawer, data=np.full((8, 8, 4), color, np.float32)) for color in ((1, 0, 0, 1), (0, 1, 0, 1))
    )
    target = texture(drawer)
    reading = pipeline(drawer, "fullscreen", "reading")
    plain = pipeline(drawer, "fullscreen", "fs")
    columns = [
        (reading, {"picture": red}), (reading, {"picture": red, "z": 0.5}), (plain, {"tint": (0, 0, 1, 1)}),
        (plain, {"tint": (1, 1, 0, 1)}), (reading, {"picture": green}), (reading, {"picture": red}),
        (reading, {"picture": green, "z": 0.25}), (plain, {"tint": (1, 0, 1, 1)}),
    ]  # fmt: skip
    draws = [
        Draw(made, values, {"scissor_rects": [{"min_x": x, "max_x": x + 1, "max_y": 8}]})
        for x, (made, values) in enumerate(columns)
    ]
    render(drawer, target, *draws)
    seen = target.to_numpy()[3, :, :3].astype(int).tolist()
    assert seen == [[1, 0, 0], [1, 0, 0], [0, 0, 1], [1, 1, 0], [0, 1, 0], [1, 0, 0], [0, 1, 0], [1, 0, 1]]
