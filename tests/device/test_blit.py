"""`blit` and `generate_mips` beside NumPy in double: worked pixels, all formats, odd sizes, parts of textures, errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from texel_model import decode, limits, scaled

import slangpy as spy
from slangpy.compiler.code import target_code
from slangpy.compiler.session import create_session
from slangpy.tools.testing import CudaCodegen, nvrtc_available

F, T, U = spy.Format, spy.TextureType, spy.TextureUsage
LINEAR, POINT = spy.TextureFilteringMode.linear, spy.TextureFilteringMode.point
READ = U.shader_resource
Array = np.ndarray[Any, Any]


def destinations() -> list[spy.Format]:
    """Formats of plain texels of up to 32 bits a channel."""
    infos = [spy.get_format_info(item) for item in F if item != F.undefined]
    return [
        info.format for info in infos
        if not info.is_compressed and not info.is_depth and "64" not in info.name and info.format != F.rgb9e5_ufloat
    ]  # fmt: skip


def usage_of(device: spy.Device, format: spy.Format) -> Any:
    """A usage with which a texture of this format can be written here."""
    support = device.get_format_support(format)
    if support & spy.FormatSupport.render_target:
        return U.render_target
    if support & spy.FormatSupport.shader_uav_store:
        return U.unordered_access
    return U.render_target if device.info.type is spy.DeviceType.cpu else None


def made(device: spy.Device, format: spy.Format, size: tuple[int, ...], usage: Any, **more: Any) -> spy.Texture:
    names = ("width", "height", "depth")
    return device.create_texture(
        format=format, usage=usage, **dict(zip(names, reversed(size), strict=False)), **more
    )  # fmt: skip


def filled(
    device: spy.Device, format: spy.Format, size: tuple[int, ...], seed: int = 0, usage: Any = READ, **more: Any
) -> tuple[Any, Array]:  # fmt: skip
    """A texture of random texels, and what they are: (*size, 4)."""
    texture = made(device, format, size, usage, **more)
    generator = np.random.default_rng(seed)
    stored = texture.to_numpy()
    info = spy.get_format_info(format)
    if stored.dtype.kind == "f":
        texels = (generator.random(stored.shape) * 1.5 - 0.25).astype(stored.dtype)
    else:
        texels = np.frombuffer(generator.bytes(stored.nbytes), stored.dtype).reshape(stored.shape).copy()
    if info.name == "r11g11b10_float":
        texels &= 0x77  # neither NaN nor infinite
        texels[3::4] &= 0x7B
    texture.copy_from_numpy(texels)
    return texture, decode(format, texels).reshape(*size, 4)


def run(device: spy.Device, record: Any) -> None:
    encoder = device.create_command_encoder()
    record(encoder)
    device.submit_command_buffer(encoder.finish())


def slack_of(source: spy.Texture) -> float:
    """How far from the curve of sRGB a device may read: half a step of the bytes, which is widest in light where the curve
    is steepest, at 1."""
    exact = source.device.info.type is spy.DeviceType.cpu or not source.format.name.endswith("_srgb")
    return 0.0 if exact else 0.5 / 255 * 2.4 / 1.055


def assert_holds(
    texture: spy.Texture, expected: Array, slack: float = 0.0, layer: int = 0, mip: int = 0, what: str = ""
) -> None:  # fmt: skip
    """Integers exactly, numbers as near as the format has them to what is within `slack` of those expected."""
    stored = texture.to_numpy(layer=layer, mip=mip)
    flat = expected.reshape(-1, 4)
    if expected.dtype.kind == "i":
        assert np.array_equal(decode(texture.format, stored), flat), what
        return
    wanted, close = limits(texture.format, flat)
    if texture.format.name.endswith("_srgb") and texture.device.has_feature(spy.Feature.rasterization):
        close = close + 0.2 / 255  # what is drawn is rounded by the device, which may be off by more than half a step
    low, high = (limits(texture.format, flat + change)[0] for change in (-slack, slack))
    found = decode(texture.format, stored, curve=False)
    off = np.maximum(low - found, found - high) - close
    worst = np.unravel_index(off.argmax(), off.shape)
    assert off.max() <= 0, f"{what} {texture.format.name} at {worst}: {off.max()} too far from {wanted[worst]}"


@pytest.mark.needs_kernels
@pytest.mark.parametrize("usage", [U.render_target, U.unordered_access])
def test_worked_pixels(device: spy.Device, usage: Any) -> None:
    source = made(device, F.r32_float, (2, 2), READ, data=np.array([[0, 4], [8, 12]], np.float32))
    twice, between = made(device, F.r32_float, (4, 4), usage), made(device, F.r32_float, (4, 4), usage)
    mips = made(device, F.r32_float, (4, 4), READ | usage, mip_count=3)
    mips.copy_from_numpy(4 * np.arange(16, dtype=np.float32).reshape(4, 4))

    def record(encoder: Any) -> None:
        encoder.blit(twice, source, POINT)
        encoder.blit(between, source)
        encoder.generate_mips(mips)

    run(device, record)
    assert twice.to_numpy().tolist() == [[0, 0, 4, 4], [0, 0, 4, 4], [8, 8, 12, 12], [8, 8, 12, 12]]
    assert between.to_numpy().tolist() == [[0, 1, 3, 4], [2, 3, 5, 6], [6, 7, 9, 10], [8, 9, 11, 12]]
    assert mips.to_numpy(mip=1).tolist() == [[10, 18], [42, 50]] and mips.to_numpy(mip=2).tolist() == [[30]]


@pytest.mark.needs_kernels
def test_every_format(device: spy.Device) -> None:
    """To each format from several: decoded and encoded, one channel or four, scaled up and down."""
    sources = {
        "float": [F.rgba32_float, F.rgba8_unorm_srgb, F.bgra8_unorm, F.r16_float, F.rg8_snorm, F.r11g11b10_float],
        "uint": [F.rgba32_uint, F.r8_uint, F.rgb10a2_uint],
        "sint": [F.rgba32_sint, F.rg16_sint],
    }
    texels: dict[str, list[Any]] = {}
    for kind, formats in sources.items():
        able = [item for item in formats if device.get_format_support(item) & spy.FormatSupport.shader_load]
        texels[kind] = [filled(device, item, (7, 13), seed) for seed, item in enumerate(able)]
    checks = []
    encoder = device.create_command_encoder()
    for number, format in enumerate(destinations()):
        usage = usage_of(device, format)
        kind = spy.get_format_info(format).type.name
        for step in range(0 if usage is None else 2):
            among = texels[kind if kind in sources else "float"]
            source, values = among[(number + step) % len(among)]
            size, filter = ((9, 5), POINT) if step else ((4, 31), LINEAR)
            target = made(device, format, size, usage)
            encoder.blit(target, source, filter)
            checks.append((target, values, size, filter, source))
    device.submit_command_buffer(encoder.finish())
    assert len({target.format for target, *_ in checks}) >= (15 if device.info.type is spy.DeviceType.cuda else 36)
    for target, values, size, filter, source in checks:
        nearest = filter is POINT or values.dtype.kind == "i"
        expected = scaled(values, size, nearest)
        assert_holds(
            target, cut(target.format, expected), slack_of(source), what=f"{source.format.name}, {filter.name}"
        )


def cut(format: spy.Format, values: Array) -> Array:
    """Integers in the range of the channels of a format; missing ones as they are read."""
    if values.dtype.kind != "i":
        return values
    info = spy.get_format_info(format)
    result = np.zeros_like(values)
    result[..., 3] = 1
    for channel, bits in enumerate(info.channel_bit_count[: info.channel_count]):
        low = -(2 ** (bits - 1)) if info.type.name == "sint" else 0
        result[..., channel] = np.clip(values[..., channel], low, low + 2**bits - 1)
    return result


@pytest.mark.needs_kernels
def test_ends_of_ranges(device: spy.Device) -> None:
    """Of floats without sign, of halves and of bytes; and the byte that is no channel."""
    values = np.array([1e6, np.inf, -1, -np.inf, np.nan, 3e-5, 2e-6, 65024, 64512, 1.015625], np.float32)
    source = made(device, F.rgba32_float, (1, len(values)), READ, data=np.repeat(values[None, :, None], 4, 2))
    formats = [F.r11g11b10_float, F.rgba16_float, F.rgba8_unorm, F.rgba8_snorm, F.bgrx8_unorm]
    able = [item for item in formats if usage_of(device, item) is not None]
    targets = {item: made(device, item, (1, len(values)), usage_of(device, item)) for item in able}

    def record(encoder: Any) -> None:
        for target in targets.values():
            encoder.blit(target, source)

    run(device, record)
    if F.r11g11b10_float in able:
        assert_packed_floats(decode(F.r11g11b10_float, targets[F.r11g11b10_float].to_numpy()))
    halves = targets[F.rgba16_float].to_numpy()[0, :, 0].astype(np.float64)
    assert np.isnan(halves[4]) and halves[1:4].tolist() == [np.inf, -1, -np.inf] and halves[0] in (65504, np.inf)
    assert targets[F.rgba8_unorm].to_numpy()[0, [0, 1, 2, 3], 3].tolist() == [255, 255, 0, 0]
    assert targets[F.rgba8_snorm].to_numpy()[0, [0, 1, 2, 3], 3].tolist() == [127, 127, -127, -127]
    assert F.bgrx8_unorm not in able or (targets[F.bgrx8_unorm].to_numpy()[..., 3] == 255).all()


def assert_packed_floats(packed: Array) -> None:
    largest, tiny = (65024, 64512), 2.0**-14
    for channel, bits in enumerate((6, 6, 5)):
        top = largest[bits == 5]
        expected = np.array([top, np.inf, 0, 0, np.nan, 3e-5, 2e-6, top, 64512, 1.015625])
        steps = (
            np.floor(expected[5:7] / tiny * 2**bits) * tiny / 2**bits
        )  # rounded towards zero, below 2^-14 by one step
        expected[5:7] = steps
        expected[9] = 1.015625 if bits == 6 else 1
        assert np.array_equal(packed[:, channel], expected, equal_nan=True), packed[:, channel]


@pytest.mark.needs_kernels
def test_random_blits(device: spy.Device) -> None:
    """Sizes from one texel on, single rows and columns, both filters."""
    sizes = [(1, 1), (31, 33), (1, 40), (17, 1), (2, 2), (64, 48), (5, 128)]
    formats = [F.rgba8_unorm_srgb, F.rgba32_float, F.rg16_float, F.r8_unorm, F.bgra8_unorm_srgb, F.rgba16_unorm]
    formats = [format for format in formats if usage_of(device, format) is not None]
    generator = np.random.default_rng(7)
    checks = []
    encoder = device.create_command_encoder()
    for number in range(60):
        origin, to = (formats[i] for i in generator.integers(0, len(formats), 2))
        size, wanted = (sizes[i] for i in generator.integers(0, len(sizes), 2))
        source, values = filled(device, origin, size, number)
        target = made(device, to, wanted, usage_of(device, to))
        filter = POINT if number % 3 == 0 else LINEAR
        encoder.blit(target, source, filter)
        checks.append(
            (target, scaled(values, wanted, filter is POINT), slack_of(source), f"{number}: {size} to {wanted}")
        )
    device.submit_command_buffer(encoder.finish())
    for target, expected, slack, what in checks:
        assert_holds(target, expected, slack, what=what)


@pytest.mark.needs_kernels
def test_views(device: spy.Device) -> None:
    """The first layer and mip of a view; its format where it has one of its own."""
    source = made(device, F.rgba32_float, (4, 6), READ, type=T.texture_2d_array, array_length=3, mip_count=2)
    pixels = np.random.default_rng(3).random((2, 3, 4)).astype(np.float32)
    source.copy_from_numpy(pixels, layer=2, mip=1)
    usage = usage_of(device, F.rgba8_unorm_srgb)
    target = made(
        device, F.rgba8_unorm_srgb, (8, 8), READ | usage, type=T.texture_2d_array, array_length=2, mip_count=2
    )
    for layer in range(2):
        for mip in range(2):
            target.copy_from_numpy(np.full((8 >> mip, 8 >> mip, 4), 9, np.uint8), layer=layer, mip=mip)
    plain = target.create_view(format=F.rgba8_unorm, layer=0, layer_count=1, mip=0, mip_count=1)
    back = made(device, F.rgba32_float, (8, 8), U.unordered_access)

    def record(encoder: Any) -> None:
        part = source.create_view(layer=2, layer_count=1, mip=1, mip_count=1)
        encoder.blit(target.create_view(layer=1, mip=1), part)
        encoder.blit(plain, part, POINT)
        encoder.blit(back, plain)

    run(device, record)
    expected = pixels.astype(np.float64)
    assert_holds(target, scaled(expected, (4, 4)), layer=1, mip=1)
    stored = np.rint(scaled(expected, (8, 8), True) * 255)
    assert np.abs(target.to_numpy() - stored).max() <= 1 and np.mean(target.to_numpy() != stored) < 0.01
    assert np.allclose(back.to_numpy(), target.to_numpy() / 255, atol=1e-6)
    assert np.all(target.to_numpy(layer=1) == 9) and np.all(target.to_numpy(layer=0, mip=1) == 9)


@pytest.mark.needs_kernels
@pytest.mark.parametrize("kind", [T.texture_1d, T.texture_3d])
def test_other_dimensions(device: spy.Device, kind: spy.TextureType) -> None:
    sizes = {T.texture_1d: ((7,), (17,)), T.texture_3d: ((3, 4, 5), (4, 9, 2))}[kind]
    for format in (F.rgba32_float, F.rgba16_sint):
        source, values = filled(device, format, sizes[0], type=kind)
        target = made(device, format, sizes[1], U.unordered_access, type=kind)
        run(device, lambda encoder, target=target, source=source: encoder.blit(target, source))
        assert_holds(target, scaled(values, sizes[1], values.dtype.kind == "i"))


@pytest.mark.needs_kernels
def test_depth_and_compressed_sources(device: spy.Device) -> None:
    """They are read as numbers like others; nothing writes them."""
    support = device.get_format_support
    checked = 0
    for format in (F.d32_float, F.d16_unorm, F.bc1_unorm):
        if not support(format) & spy.FormatSupport.shader_load:
            continue
        size = (4, 8)
        source = made(device, format, size, READ)
        generator = np.random.default_rng(5)
        stored = source.to_numpy()
        target = made(device, F.rgba32_float, (3, 5), U.unordered_access)
        if format is F.bc1_unorm:
            blocks = np.zeros((2, 8), np.uint8)
            blocks[:, :4] = [0x00, 0xF8, 0xE0, 0x07]  # red for index 0
            source.copy_from_numpy(blocks.reshape(stored.shape))
            expected = np.tile([1.0, 0, 0, 1], (3, 5, 1))
        else:
            texels = generator.random(stored.shape)
            texels = (texels * 65535).astype(stored.dtype) if stored.dtype.kind == "u" else texels.astype(stored.dtype)
            source.copy_from_numpy(texels)
            expected = scaled(decode(format, texels).reshape(*size, 4), (3, 5))
        run(device, lambda encoder, target=target, source=source: encoder.blit(target, source))
        channels = 1 if format is not F.bc1_unorm else 4
        assert np.abs(target.to_numpy() - expected)[..., :channels].max() < 1e-5, format.name
        checked += 1
    assert checked


@pytest.mark.needs_kernels
@pytest.mark.parametrize(
    "format", [F.rgba32_float, F.rgba8_unorm_srgb, F.rg16_float, F.r8_unorm, F.rgba16_snorm, F.bgra8_unorm_srgb]
)
def test_mips_of_odd_sizes(device: spy.Device, format: spy.Format) -> None:
    """Each level from the one above as it is stored: means of two where a size is even, else by linear interpolation."""
    usage = usage_of(device, format)
    if usage is None:
        pytest.skip(f"no textures of format {format.name} that are written")
    for size in ((7, 13), (33, 31), (1, 5), (8, 8), (1, 1)):
        texture, above = filled(device, format, size, usage=READ | usage, mip_count=max(size).bit_length())
        run(device, lambda encoder, texture=texture: encoder.generate_mips(texture))
        for mip in range(1, texture.mip_count):
            level = (max(1, size[0] >> mip), max(1, size[1] >> mip))
            assert_holds(texture, scaled(above, level), slack_of(texture), mip=mip, what=str(size))
            above = decode(format, texture.to_numpy(mip=mip)).reshape(*level, 4)


@pytest.mark.needs_kernels
@pytest.mark.one
def test_more_threads_than_a_row_of_groups(device: spy.Device) -> None:
    source, values = filled(device, F.r32_float, (3, 5))
    target = made(device, F.r32_float, (1031, 1033), U.unordered_access)
    run(device, lambda encoder: encoder.blit(target, source))
    assert np.abs(target.to_numpy() - scaled(values, (1031, 1033))[..., 0]).max() < 1e-5


@pytest.mark.null
@pytest.mark.skipif(not nvrtc_available(), reason="no NVRTC")
def test_code_for_cuda() -> None:
    """NVRTC takes the kernels of all classes of formats; nothing runs."""
    target: Any = CudaCodegen("sm_80")
    session: Any = create_session(target)
    module = session.load_module("slangpy_resample")
    for name in ("of_2d_float", "of_2d_uint"):
        program = session.link_program([module], [module.entry_point(name)])
        assert target.compile(target_code(target, program, 0, name), program.entry_point_names[0])


@pytest.mark.null
def test_errors() -> None:
    device = spy.Device(type=spy.DeviceType.null)
    other = spy.Device(type=spy.DeviceType.null)
    encoder = device.create_command_encoder()
    good = made(device, F.rgba32_float, (4, 4), READ | U.unordered_access, mip_count=2)
    integers = made(device, F.rgba8_uint, (4, 4), READ | U.unordered_access, mip_count=2)
    signed = made(device, F.rgba8_sint, (4, 4), READ | U.unordered_access)
    cases: list[tuple[Any, Any, type[Exception], str]] = [
        (3, good, TypeError, "blit: 'dst' must be a Texture or a TextureView, got 3"),
        (good, None, TypeError, "blit: 'src' must be a Texture or a TextureView, got None"),
        (integers, good, ValueError, "'src' is of format rgba32_float and 'dst' of rgba8_uint; integers go to integers"),
        (good, integers, ValueError, "'src' is of format rgba8_uint and 'dst' of rgba32_float"),
        (signed, integers, ValueError, "integers of the same kind"),
        (made(device, F.rgba32_float, (4, 4), READ), good, ValueError, "'dst' must be made with TextureUsage.render_target or"),
        (good, made(device, F.rgba32_float, (4, 4), U.render_target), ValueError, "TextureUsage.shader_resource; its usage is render_target"),
        (made(other, F.rgba32_float, (4, 4), READ | U.unordered_access), good, ValueError, "'dst' belongs to another device"),
        (made(device, F.rgba32_float, (4, 4, 4), U.unordered_access, type=T.texture_3d), good, ValueError, "dimensions must agree"),
        (made(device, F.bc1_unorm, (4, 4), READ), good, ValueError, "'dst' is of format bc1_unorm, whose texels cannot be written"),
        (made(device, F.d32_float, (4, 4), READ), good, ValueError, "'dst' is of format d32_float, whose"),
        (made(device, F.rgb9e5_ufloat, (4, 4), READ), good, ValueError, "'dst' is of format rgb9e5_ufloat, whose"),
        (made(device, F.r64_uint, (4, 4), READ), integers, ValueError, "'dst' is of format r64_uint, whose"),
    ]  # fmt: skip
    for dst, src, kind, message in cases:
        with pytest.raises(kind, match=message):
            encoder.blit(dst, src)
    with pytest.raises(TypeError, match="blit 'filter': expected a TextureFilteringMode such as linear, got 'line'"):
        encoder.blit(good, good, "line")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="generate_mips: 'texture' must be a Texture"):
        encoder.generate_mips(good.create_view())  # type: ignore[arg-type]
    for layer in (1, -1):
        with pytest.raises(IndexError, match=f"'layer' must be less than 1, got {layer}"):
            encoder.generate_mips(good, layer)
    with pytest.raises(ValueError, match="format rgba8_uint, whose integers have no means"):
        encoder.generate_mips(integers)
    for usage, needed in ((READ, "render_target or"), (U.unordered_access, "shader_resource;")):
        with pytest.raises(ValueError, match=f"generate_mips: 'texture' must be made with TextureUsage.{needed}"):
            encoder.generate_mips(made(device, F.rgba32_float, (4, 4), usage, mip_count=2))
    assert encoder.finish().command_count == 0
