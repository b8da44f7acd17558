"""Block-compressed textures: decoded by every device alike, and as Pillow does it."""

from __future__ import annotations

import numpy as np
import pytest

import slangpy as spy

pytestmark = [
    pytest.mark.needs_kernels,
    pytest.mark.elsewhere(
        "bc1_unorm", "bc5_snorm", "bc6h_ufloat", "bc7_unorm_srgb", "test_sizes_mips_and_copies",
        "test_blocks_that_change", "test_functions_over_texels",
    ),
]  # fmt: skip

F = spy.Format

FORMATS = (
    "bc1_unorm", "bc1_unorm_srgb", "bc2_unorm", "bc2_unorm_srgb", "bc3_unorm", "bc3_unorm_srgb", "bc4_unorm", "bc4_snorm",
    "bc5_unorm", "bc5_snorm", "bc6h_ufloat", "bc6h_sfloat", "bc7_unorm", "bc7_unorm_srgb",
)  # fmt: skip
BC6H_MODES = (0, 1, 2, 6, 10, 14, 18, 22, 26, 30, 3, 7, 11, 15, 19)  # the last is reserved

SOURCE = """
Texture2D<float4> texture;
Texture2D<float4> plain;
SamplerState sampler;
RWStructuredBuffer<float4> result;
uint width, mip;
float2 scale;
[shader("compute")] [numthreads(16, 1, 1)] void load(uint3 id : SV_DispatchThreadID)
{
    result[id.x] = texture.Load(int3(id.x % width, id.x / width, mip));
}
[shader("compute")] [numthreads(16, 1, 1)] void sample(uint3 id : SV_DispatchThreadID)
{
    float2 at = float2(id.x % width, id.x / width) * scale;
    result[2 * id.x] = texture.SampleLevel(sampler, at, 0);
    result[2 * id.x + 1] = plain.SampleLevel(sampler, at, 0);
}
"""


def blocks_of(name: str, count: int, seed: int = 7) -> np.ndarray:
    """Random blocks. Those of BC6H and BC7 go through all modes."""
    size = spy.get_format_info(F[name]).bytes_per_block
    blocks = np.random.default_rng(seed).integers(0, 256, (count, size), dtype=np.uint8)
    each = np.arange(count)
    if name.startswith("bc7"):
        mode = each % 8
        blocks[:, 0] = (blocks[:, 0].astype(int) << (mode + 1) | 1 << mode) & 255
    if name.startswith("bc6h"):
        mode = np.asarray(BC6H_MODES)[each % len(BC6H_MODES)]
        kept = np.where(mode < 2, 0xFC, 0xE0)
        blocks[:, 0] = blocks[:, 0] & kept | mode
    return blocks


def texture_of(device: spy.Device, name: str, width: int, height: int, **fields) -> spy.Texture:
    if not device.get_format_support(F[name]) & spy.FormatSupport.shader_sample:
        pytest.skip(f"{name} is not there")
    return device.create_texture(
        width=width, height=height, format=F[name], usage=spy.TextureUsage.shader_resource, **fields
    )


def upload(texture: spy.Texture, blocks: np.ndarray, layer: int = 0, mip: int = 0) -> None:
    encoder = texture.device.create_command_encoder()
    encoder.upload_texture_data(texture, layer, mip, np.ascontiguousarray(blocks))
    texture.device.submit_command_buffer(encoder.finish())


def run(device: spy.Device, entry: str, width: int, height: int, per_thread: int = 1, **values) -> np.ndarray:
    threads = width * height
    result = device.create_buffer(
        element_count=(threads + 15) // 16 * 16 * per_thread, struct_size=16, usage=spy.BufferUsage.unordered_access
    )
    module = device.load_module_from_source("compressed", SOURCE)
    kernel = device.create_compute_kernel(device.link_program([module], [module.entry_point(entry)]))
    kernel.dispatch(thread_count=[threads, 1, 1], vars={"width": width, "result": result, **values})
    return result.to_numpy().view(np.float32).reshape(-1, 4)[: threads * per_thread]


def loaded(device: spy.Device, texture: spy.Texture, width: int, height: int, mip: int = 0) -> np.ndarray:
    return run(device, "load", width, height, texture=texture, mip=mip).reshape(height, width, 4)


def decoded(device: spy.Device, name: str, blocks: np.ndarray, columns: int) -> np.ndarray:
    rows = len(blocks) // columns
    texture = texture_of(device, name, columns * 4, rows * 4)
    upload(texture, blocks)
    return loaded(device, texture, columns * 4, rows * 4)


def by_pillow(name: str, blocks: np.ndarray, columns: int) -> np.ndarray:
    image = pytest.importorskip("PIL.Image")
    size = (columns * 4, len(blocks) // columns * 4)
    number = int(name[2])
    mode = {4: "L", 5: "RGB", 6: "RGB"}.get(number, "RGBA")
    kind = {"bc5_snorm": "BC5S", "bc6h_ufloat": "BC6H", "bc6h_sfloat": "BC6HS"}.get(name, "")
    texels = np.asarray(image.frombytes(mode, size, blocks.tobytes(), "bcn", (number, kind))).astype(np.float64)
    return texels.reshape(*texels.shape[:2], -1)


def tolerance(device: spy.Device, name: str) -> float:
    """BC6H and BC7 are made of whole numbers. Of the others, decoders round end points and what is between them. Chips
    are allowed 1 / 255 and 3 % of the distance between end points by Direct3D's specification (11.3, 19.5.1), and use it."""
    is_snorm = name.endswith("snorm")
    if device.info.type != spy.DeviceType.vulkan or "llvmpipe" in device.info.adapter_name:
        return 4 / 255 if name.endswith("srgb") else 2.01 / (127 if is_snorm else 255)
    steepest = 2.275 if name.endswith("srgb") else 1  # of the curve from sRGB to linear light
    return steepest * (1 / 127 + 0.06 if is_snorm else 1 / 255 + 0.03)


def to_linear(values: np.ndarray) -> np.ndarray:
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


@pytest.mark.parametrize("name", FORMATS)
def test_blocks_as_pillow_decodes_them(device: spy.Device, name: str) -> None:
    if name in ("bc4_snorm", "bc6h_sfloat"):
        pytest.skip("Pillow has no BC4 with sign, and takes BC6H with sign for another number than GPUs do")
    blocks = blocks_of(name, 240)
    got = decoded(device, name, blocks, 24).astype(np.float64)
    expected = by_pillow(name, blocks, 24)
    channels = {"bc4": 1, "bc5": 2, "bc6": 3}.get(name[:3], 4)
    got, expected = got[..., :channels], expected[..., :channels]
    if name == "bc5_snorm":  # Pillow moves it to 0 .. 255
        expected = np.maximum((expected - 128) / 127, -1)
    else:
        expected = expected / 255
    if name.startswith("bc6"):  # Pillow clips it
        got = np.clip(got, 0, 1)
    if name.endswith("srgb"):
        expected[..., :3] = to_linear(expected[..., :3])
    exact = name.startswith("bc7") and device.info.type != spy.DeviceType.vulkan
    assert np.abs(got - expected).max() <= (1e-6 if exact else tolerance(device, name))


@pytest.mark.parametrize("name", FORMATS)
def test_blocks_as_the_cpu_decodes_them(device: spy.Device, device_type: spy.DeviceType, name: str) -> None:
    if device_type == spy.DeviceType.cpu:
        pytest.skip("compared with itself")
    blocks = blocks_of(name, 480, seed=11)
    got = decoded(device, name, blocks, 16)
    with spy.Device(type=spy.DeviceType.cpu) as cpu:
        expected = decoded(cpu, name, blocks, 16)
    exact = name.startswith(("bc6h", "bc7")) and not name.endswith("srgb")
    assert np.allclose(got, expected, rtol=1e-6 * exact, atol=1e-6 if exact else tolerance(device, name), equal_nan=True)


def test_values_worked_out_by_hand(device: spy.Device) -> None:
    near = max(0.004, tolerance(device, "bc1_unorm"))
    # white and black; texel t has index t % 4
    colors = np.array([[0xFF, 0xFF, 0, 0, 0b11100100, 0b11100100, 0b11100100, 0b11100100]], np.uint8)
    row = decoded(device, "bc1_unorm", colors, 1)[2]
    assert np.allclose(
        row, [[1, 1, 1, 1], [0, 0, 0, 1], [2 / 3, 2 / 3, 2 / 3, 1], [1 / 3, 1 / 3, 1 / 3, 1]], atol=near
    )
    swapped = np.concatenate([colors[:, 2:4], colors[:, :2], colors[:, 4:]], axis=1)
    row = decoded(device, "bc1_unorm", swapped, 1)[3]
    assert np.allclose(row, [[0, 0, 0, 1], [1, 1, 1, 1], [0.5, 0.5, 0.5, 1], [0, 0, 0, 0]], atol=near)
    # -127 / 127 and 1 as end points, with the two constants; 3 bits a texel
    bits = sum((t % 8) << (3 * t) for t in range(16))
    block = np.frombuffer(bytes([0x81, 0x7F]) + bits.to_bytes(6, "little"), np.uint8)[None]
    values = decoded(device, "bc4_snorm", block, 1)[:2, :, 0].reshape(-1)
    assert np.allclose(values, [-1, 1, -0.6, -0.2, 0.2, 0.6, -1, 1], atol=max(1.6 / 127, tolerance(device, "bc4_snorm")))


def test_sizes_mips_and_copies(device: spy.Device, device_type: spy.DeviceType) -> None:
    """13 x 7 texels are 4 x 2 blocks, and its mip of 6 x 3 texels 2 x 1."""
    large, small = blocks_of("bc3_unorm", 8), blocks_of("bc3_unorm", 2, seed=8)
    texture = texture_of(device, "bc3_unorm", 13, 7, mip_count=2)
    upload(texture, large)
    upload(texture, small, mip=1)
    whole = decoded(device, "bc3_unorm", large, 4)
    assert np.array_equal(loaded(device, texture, 13, 7), whole[:7, :13])
    part = decoded(device, "bc3_unorm", small, 2)
    assert np.array_equal(loaded(device, texture, 6, 3, mip=1), part[:3, :6])

    copy = texture_of(device, "bc3_unorm", 16, 8)
    encoder = device.create_command_encoder()
    encoder.upload_texture_data(copy, 0, 0, large[::-1].copy())
    encoder.copy_texture(copy, 0, 0, (4, 4, 0), texture, 0, 0, (0, 0, 0), (8, 4, 1))
    buffer = device.create_buffer(size=1024)
    encoder.copy_texture_to_buffer(buffer, 0, 512, 256, copy, 0, 0)
    device.submit_command_buffer(encoder.finish())
    expected = large[::-1].reshape(2, 4, 16).copy()
    expected[1, 1:3] = large[:2]
    rows = buffer.to_numpy().view(np.uint8)[:512].reshape(2, 256)[:, :64]
    assert np.array_equal(rows.reshape(2, 4, 16), expected)
    assert np.array_equal(loaded(device, copy, 16, 8), decoded(device, "bc3_unorm", expected.reshape(-1, 16), 4))


@pytest.mark.parametrize("name", ("bc1_unorm", "bc5_snorm", "bc6h_ufloat", "bc7_unorm_srgb"))
def test_sampled_as_the_decoded_texels_are(device: spy.Device, device_type: spy.DeviceType, name: str) -> None:
    blocks = blocks_of(name, 12)
    texture = texture_of(device, name, 16, 12)
    upload(texture, blocks)
    texels = loaded(device, texture, 16, 12)
    plain = device.create_texture(
        width=16, height=12, format=F.rgba32_float, usage=spy.TextureUsage.shader_resource, data=texels
    )
    sampler = device.create_sampler(address_u=spy.TextureAddressingMode.mirror_repeat)
    values = run(
        device, "sample", 37, 29, 2, texture=texture, plain=plain, sampler=sampler, scale=spy.float2(0.057, 0.031)
    )
    assert np.ptp(values) > 0.5
    close = 1e-6 if device_type == spy.DeviceType.cpu else 0.02
    assert np.allclose(values[0::2], values[1::2], rtol=close, atol=close)


def test_blocks_that_change(device: spy.Device) -> None:
    """What a thread has decoded is not taken for what is there now."""
    texture = texture_of(device, "bc4_unorm", 4, 4)
    for value in (10, 200, 10):
        upload(texture, np.array([[value, value, 0, 0, 0, 0, 0, 0]], np.uint8))
        assert np.allclose(loaded(device, texture, 4, 4)[..., 0], value / 255, atol=1e-3)


def test_functions_over_texels(device: spy.Device) -> None:
    texture = texture_of(device, "bc1_unorm", 8, 8)
    blocks = blocks_of("bc1_unorm", 4)
    upload(texture, blocks)
    module = spy.Module.load_from_source(device, "over_blocks", "float4 twice(float4 v) { return v * 2; }")
    got = module.twice(texture, _result="numpy")
    assert np.allclose(got, 2 * decoded(device, "bc1_unorm", blocks, 2), atol=1e-6)


def test_what_compressed_textures_refuse(device: spy.Device) -> None:
    with pytest.raises(ValueError, match="bc7_unorm does not support usage"):
        device.create_texture(
            width=4, height=4, format=F.bc7_unorm, usage=spy.TextureUsage.shader_resource | spy.TextureUsage.unordered_access
        )  # fmt: skip
    texture = texture_of(device, "bc1_unorm", 8, 8)
    with pytest.raises(ValueError, match="compressed format"):
        device.create_command_encoder().clear_texture_float(texture)
    with pytest.raises(ValueError, match="multiple of the 4 x 4 blocks"):
        device.create_command_encoder().upload_texture_data(texture, (1, 0, 0), (4, 4, 1), {}, [np.zeros(8, np.uint8)])
