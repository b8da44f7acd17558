"""Commands over the parts of textures, hints, and options that reach the compiler."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from device_kernels import RW, TEXTURE_RW

import slangpy as spy


@pytest.fixture
def textured(device: spy.Device) -> spy.Device:
    return device


def part(layer: int, mip: int) -> spy.SubresourceRange:
    return spy.SubresourceRange(layer=layer, layer_count=1, mip=mip, mip_count=1)


def layered(device: spy.Device, format: str = "r32_float") -> Any:
    return device.create_texture(
        type=spy.TextureType.texture_2d_array, width=8, height=4, array_length=2, mip_count=2, format=spy.Format[format],
        usage=TEXTURE_RW,
    )  # fmt: skip


def full(value: float, mip: int, dtype: Any = np.float32) -> np.ndarray:
    return np.full((4 >> mip, 8 >> mip), value, dtype)


def run(device: spy.Device, record: Any) -> None:
    encoder = device.create_command_encoder()
    record(encoder)
    device.submit_command_buffer(encoder.finish())


def test_uploads(textured: spy.Device) -> None:
    """All subresources, one, and a box of one."""
    texture = layered(textured)
    box = full(1, 0)
    box[1:3, 2:6] = 7

    def record(encoder: Any) -> None:
        encoder.upload_texture_data(texture, [full(1, 0), full(2, 1), full(3, 0), full(4, 1)])  # layers, then mips
        encoder.upload_texture_data(texture, 1, 0, full(9, 0))
        encoder.upload_texture_data(texture, (2, 1, 0), (4, 2, 1), part(0, 0), [np.full((2, 4), 7, np.float32)])

    run(textured, record)
    assert np.array_equal(texture.to_numpy(0, 0), box)
    assert np.array_equal(texture.to_numpy(0, 1), full(2, 1))
    assert np.array_equal(texture.to_numpy(1, 0), full(9, 0))
    assert np.array_equal(texture.to_numpy(1, 1), full(4, 1))
    run(textured, lambda encoder: encoder.upload_texture_data(texture, part(1, 1), [full(6, 1)]))
    assert np.array_equal(texture.to_numpy(1, 1), full(6, 1))
    encoder = textured.create_command_encoder()
    with pytest.raises(ValueError, match=r"got 3 subresources, expected .* = 4"):
        encoder.upload_texture_data(texture, [full(1, 0), full(2, 1), full(3, 0)])
    with pytest.raises(ValueError, match="dtype|size|bytes"):
        encoder.upload_texture_data(texture, 0, 0, full(1, 1))


@pytest.mark.parametrize(
    ("format", "name", "value", "expected"),
    [
        ("r32_float", "float", 1.5, 1.5),
        ("r16_float", "float", 0.1, np.float16(0.1)),
        ("r8_unorm", "float", 0.5, 128),
        ("r8_snorm", "float", -1.0, -127),
        ("r32_uint", "uint", 2**32 - 2, 2**32 - 2),
        ("r16_uint", "uint", 65535, 65535),
        ("r32_sint", "sint", -5, -5),
        ("r8_sint", "sint", -128, -128),
    ],
)
def test_clears(textured: spy.Device, format: str, name: str, value: Any, expected: Any) -> None:
    texture = layered(textured, format)
    clear = f"clear_texture_{name}"
    run(textured, lambda encoder: getattr(encoder, clear)(texture))
    run(textured, lambda encoder: getattr(encoder, clear)(texture, part(1, 0), value))
    for layer, mip in ((0, 0), (0, 1), (1, 1)):
        assert not texture.to_numpy(layer, mip).any()
    got = texture.to_numpy(1, 0)
    # a half of 255 steps may be rounded either way
    assert (np.abs(got.astype(np.float64) - expected) <= 1).all() if "unorm" in format else (got == expected).all()


@pytest.mark.parametrize("format, texel", [("bgra8_unorm", [51, 128, 255, 64]), ("bgra8_unorm_srgb", [124, 188, 255, 64]), ("rgba8_unorm_srgb", [255, 188, 124, 64])])
def test_clearing_goes_by_the_order_and_curve_of_the_format(textured: spy.Device, format: str, texel: list[int]) -> None:
    if textured.type is spy.DeviceType.cuda and not textured.get_format_support(spy.Format[format]) & spy.FormatSupport.shader_load:
        pytest.skip("CUDA has no textures of this format")
    usage = spy.TextureUsage.render_target | spy.TextureUsage.shader_resource
    texture = textured.create_texture(format=spy.Format[format], width=3, height=2, usage=usage)
    run(textured, lambda encoder: encoder.clear_texture_float(texture, clear_value=(1, 0.5, 0.2, 0.25)))
    assert np.abs(texture.to_numpy().astype(int) - texel).max() <= 1


def test_copies_between_parts(textured: spy.Device) -> None:
    texture, other = layered(textured), layered(textured)
    buffer = textured.create_buffer(size=512, usage=RW)
    ramp = np.arange(32, dtype=np.float32).reshape(4, 8)

    def record(encoder: Any) -> None:
        encoder.upload_texture_data(texture, [ramp, full(2, 1), full(3, 0), full(4, 1)])
        encoder.set_texture_state(texture, spy.ResourceState.copy_source)
        encoder.set_texture_state(texture, part(0, 0), spy.ResourceState.general)
        encoder.set_buffer_state(buffer, spy.ResourceState.copy_destination)
        encoder.clear_texture_float(other)
        encoder.copy_texture(other, 1, 0, (1, 1, 0), texture, 0, 0, (2, 0, 0), (4, 2, 1))
        encoder.copy_texture(other, 0, 1, (0, 0, 0), texture, 1, 1, (0, 0, 0))  # as much as fits
        encoder.copy_texture(other, part(1, 1), (0, 0, 0), texture, part(0, 1), (0, 0, 0))
        encoder.copy_texture_to_buffer(buffer, 128, 256, 64, texture, 0, 0)  # rows 64 bytes apart
        encoder.global_barrier()
        encoder.copy_buffer_to_texture(other, 0, 0, (4, 2, 0), buffer, 128, 256, 64, (4, 2, 1))

    run(textured, record)
    expected = np.zeros((4, 8), np.float32)
    expected[1:3, 1:5] = ramp[0:2, 2:6]
    assert np.array_equal(other.to_numpy(1, 0), expected)
    assert np.array_equal(other.to_numpy(0, 1), full(4, 1)) and np.array_equal(other.to_numpy(1, 1), full(2, 1))
    rows = buffer.to_numpy()[128 : 128 + 256].view(np.float32).reshape(4, 16)
    assert np.array_equal(rows[:, :8], ramp)
    expected[:] = 0
    expected[2:, 4:] = ramp[:2, :4]
    assert np.array_equal(other.to_numpy(0, 0), expected)


@pytest.mark.needs_kernels
@pytest.mark.parametrize("where", ["session", "link"])
def test_precise_arithmetic(device: spy.Device, where: str) -> None:
    """`precise` rounds after the product and after the sum."""
    source = """[shader("compute")] [numthreads(64, 1, 1)]
    void main(uint3 t : SV_DispatchThreadID, StructuredBuffer<float> x, RWStructuredBuffer<float> y) { y[t.x] = x[t.x] * x[t.x + 64] + x[t.x + 128]; }"""
    precise = spy.SlangFloatingPointMode.precise
    options = {"floating_point_mode": precise} if where == "session" else {}
    session = device.create_slang_session(options)
    module = session.load_module_from_source("precise_arithmetic", source)
    link = None if where == "session" else spy.SlangLinkOptions(floating_point_mode=precise)
    program = session.link_program([module], [module.entry_point("main")], link)
    a, b = np.random.default_rng(1).random((2, 64), np.float32) + 1
    data = np.concatenate([a, b, -(a * b)])  # a fused sum leaves the product's rounding error
    y = device.create_buffer(size=256, struct_size=4, usage=RW)
    x = device.create_buffer(data=data, struct_size=4, usage=RW)
    device.create_compute_kernel(program).dispatch([64, 1, 1], x=x, y=y)
    assert not y.to_numpy().view(np.float32).any()


def test_hashed_strings(device: spy.Device) -> None:
    source = """[shader("compute")] [numthreads(1, 1, 1)]
    void main(RWStructuredBuffer<int> r) { r[0] = getStringHash("one"); r[1] = getStringHash("two"); }"""
    module = device.load_module_from_source("hashed_strings", source)
    program = device.link_program([module], [module.entry_point("main")])
    assert sorted(entry.string if hasattr(entry, "string") else entry for entry in program.layout.hashed_strings) == [
        "one",
        "two",
    ]


@pytest.mark.needs_kernels
def test_options_of_calls(device_type: spy.DeviceType) -> None:
    """A device's compiler options hold for functional calls too, and their kernels are kept apart."""
    flag = {spy.DeviceType.cpu: "-DANSWER=42", spy.DeviceType.cuda: "-DANSWER=42"}.get(device_type)
    if flag is None:
        pytest.skip("no downstream compiler takes arguments")
    source = """int answer() { __target_switch { case cpp: __intrinsic_asm "(ANSWER)"; case cuda: __intrinsic_asm "(ANSWER)"; default: return 0; } }
    int get(int x) { return x + answer(); }"""
    for value in (42, 43):
        options = {"downstream_args": [flag.replace("42", str(value))], "optimization": spy.SlangOptimizationLevel.none}
        device = spy.Device(type=device_type, compiler_options=options, enable_hot_reload=False)
        assert spy.Module.load_from_source(device, "options_of_calls", source).get(1) == 1 + value
        device.close()
