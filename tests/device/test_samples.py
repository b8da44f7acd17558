"""Textures of several samples: written, read by the number of the sample, copied, and averaged by a kernel."""

from __future__ import annotations

import numpy as np
import pytest

import slangpy as spy

pytestmark = pytest.mark.needs_kernels

F = spy.Format
T = spy.TextureType

SOURCE = """
RWTexture2DMS<float4, 4> written;
RWTexture2DMSArray<uint2, 4> layers;
Texture2DMS<float4, 4> texture;
Texture2DMSArray<uint2, 4> whole;
RWStructuredBuffer<float4> result;

[shader("compute")] [numthreads(4, 2, 1)] void fill(uint3 id : SV_DispatchThreadID)
{
    for (int s = 0; s < 4; s++) {
        written[id.xy, s] = float4(id.x, id.y, s, 1);
        written[id.xy, s].w = written.Load(int2(id.xy), s).z * 10;
    }
}
[shader("compute")] [numthreads(4, 2, 1)] void fill_layers(uint3 id : SV_DispatchThreadID)
{
    for (int s = 0; s < 4; s++)
        layers[id, s] = uint2(id.x + 100 * id.y, id.z * 10 + s);
}
[shader("compute")] [numthreads(4, 2, 1)] void read(uint3 id : SV_DispatchThreadID)
{
    for (int s = 0; s < 4 && id.x < 5 && id.y < 3; s++)
        result[(id.y * 5 + id.x) * 4 + s] = texture.Load(int2(id.xy), s);
}
[shader("compute")] [numthreads(1, 1, 1)] void shifted(uint3 id : SV_DispatchThreadID)
{
    result[0] = texture.Load(int2(1, 1), 3, int2(2, -1));
    result[1] = texture[uint2(4, 2), 1];
    uint width, height, samples, count;
    texture.GetDimensions(width, height, samples);
    result[2] = float4(width, height, samples, 0);
    whole.GetDimensions(width, height, count, samples);
    result[3] = float4(width, height, count, samples);
    result[4] = float4(whole.Load(int3(3, 1, 2), 1), 0, 0);
}
[shader("compute")] [numthreads(1, 1, 1)] void outside(uint3 id : SV_DispatchThreadID)
{
    written[uint2(77, 0), 0] = 5;
    written[uint2(0, 0), 9] = 5;
    result[0] = written.Load(int2(-1, 0), 0) + written.Load(int2(0, 0), 4);
}
float4 resolve(Texture2DMS<float4, 4> t, int2 at)
{
    float4 sum = 0;
    for (int s = 0; s < 4; s++)
        sum += t.Load(at, s);
    return sum / 4;
}
"""
USAGE = spy.TextureUsage.shader_resource | spy.TextureUsage.unordered_access


@pytest.fixture
def sampled(device: spy.Device, device_type: spy.DeviceType) -> spy.Device:
    if device_type in (spy.DeviceType.cuda, spy.DeviceType.d3d12):
        pytest.skip("no textures of several samples, or none that kernels write")
    return device


def dispatch(device: spy.Device, entry: str, threads: list[int], **values) -> np.ndarray:
    result = device.create_buffer(element_count=80, struct_size=16, usage=spy.BufferUsage.unordered_access)
    module = device.load_module_from_source("samples", SOURCE)
    kernel = device.create_compute_kernel(device.link_program([module], [module.entry_point(entry)]))
    kernel.dispatch(thread_count=threads, vars={"result": result, **values} if entry[:4] != "fill" else values)
    return result.to_numpy().view(np.float32).reshape(-1, 4)


def four_samples(device: spy.Device, **fields) -> spy.Texture:
    return device.create_texture(
        type=T.texture_2d_ms, width=5, height=3, sample_count=4, format=F.rgba32_float, usage=USAGE, **fields
    )


def expected() -> np.ndarray:
    values = np.zeros((3, 5, 4, 4), np.float32)
    values[..., 0] = np.arange(5)[None, :, None]
    values[..., 1] = np.arange(3)[:, None, None]
    values[..., 2] = np.arange(4)
    values[..., 3] = values[..., 2] * 10
    return values


def test_samples_written_read_and_copied(sampled: spy.Device) -> None:
    texture, copy = four_samples(sampled), four_samples(sampled)
    dispatch(sampled, "fill", [5, 3, 1], written=texture)
    got = dispatch(sampled, "read", [5, 3, 1], texture=texture)[:60]
    assert np.array_equal(got.reshape(3, 5, 4, 4), expected())
    encoder = sampled.create_command_encoder()
    encoder.copy_texture(copy, 0, 0, (0, 0, 0), texture, 0, 0, (0, 0, 0))
    sampled.submit_command_buffer(encoder.finish())
    got = dispatch(sampled, "read", [5, 3, 1], texture=copy)[:60]
    assert np.array_equal(got.reshape(3, 5, 4, 4), expected())


def test_offsets_sizes_and_layers(sampled: spy.Device) -> None:
    texture = four_samples(sampled)
    layers = sampled.create_texture(
        type=T.texture_2d_ms_array, width=4, height=2, array_length=3, sample_count=4, format=F.rg32_uint, usage=USAGE
    )
    dispatch(sampled, "fill", [5, 3, 1], written=texture)
    dispatch(sampled, "fill_layers", [4, 2, 3], layers=layers)
    got = dispatch(sampled, "shifted", [1, 1, 1], texture=texture, whole=layers)
    want = expected()
    assert np.array_equal(got[0], want[0, 3, 3]) and np.array_equal(got[1], want[2, 4, 1])
    assert got[2].tolist() == [5, 3, 4, 0] and got[3].tolist() == [4, 2, 3, 4]
    assert got[4].tolist() == [103, 21, 0, 0]


def test_cleared(sampled: spy.Device) -> None:
    texture = four_samples(sampled)
    encoder = sampled.create_command_encoder()
    encoder.clear_texture_float(texture, clear_value=(1, 2, 3, 4))
    sampled.submit_command_buffer(encoder.finish())
    got = dispatch(sampled, "read", [5, 3, 1], texture=texture)[:60]
    assert np.array_equal(got, np.tile(np.array([1, 2, 3, 4], np.float32), (60, 1)))


def test_resolved_by_a_function(sampled: spy.Device) -> None:
    texture = four_samples(sampled)
    dispatch(sampled, "fill", [5, 3, 1], written=texture)
    module = spy.Module(sampled.load_module_from_source("samples", SOURCE))
    got = module.resolve(texture, spy.grid((3, 5)), _result="numpy")
    assert np.array_equal(got, expected().mean(2))


def test_places_outside(device: spy.Device, device_type: spy.DeviceType) -> None:
    if device_type != spy.DeviceType.cpu:
        pytest.skip("what GPUs do there is theirs")
    texture = four_samples(device)
    dispatch(device, "fill", [5, 3, 1], written=texture)
    assert dispatch(device, "outside", [1, 1, 1], written=texture)[0].tolist() == [0, 0, 0, 0]
    got = dispatch(device, "read", [5, 3, 1], texture=texture)[:60]
    assert np.array_equal(got.reshape(3, 5, 4, 4), expected())


def test_standard_places_of_samples(device: spy.Device, device_type: spy.DeviceType) -> None:
    if device_type != spy.DeviceType.cpu:
        pytest.skip("SPIR-V has no such instruction")
    source = "float2 place(Texture2DMS<float, 4> t, int s) { return t.GetSamplePosition(s); }"
    texture = device.create_texture(
        type=T.texture_2d_ms, width=2, height=2, sample_count=4, format=F.r32_float, usage=USAGE
    )
    module = spy.Module.load_from_source(device, "places", source)
    got = module.place(texture, np.arange(4, dtype=np.int32), _result="numpy")
    assert np.array_equal(got, [[-0.125, -0.375], [0.375, -0.125], [-0.375, 0.125], [0.125, 0.375]])


def test_what_samples_refuse(sampled: spy.Device) -> None:
    texture = four_samples(sampled)
    with pytest.raises(ValueError, match="multisample textures cannot be copied to or from memory.*4 samples"):
        texture.to_numpy()
    with pytest.raises(ValueError, match="multisample textures cannot be copied to or from memory"):
        texture.copy_from_numpy(np.zeros((3, 5, 4), np.float32))
    plain = sampled.create_texture(width=5, height=3, format=F.rgba32_float, usage=USAGE)
    with pytest.raises(ValueError, match="from a texture of 4 samples to one of 1"):
        sampled.create_command_encoder().copy_texture(plain, 0, 0, (0, 0, 0), texture, 0, 0, (0, 0, 0))
