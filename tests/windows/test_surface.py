"""`Surface`: what is presented is on the screen, whatever the window's size does."""

from __future__ import annotations

import gc
import os
import random
import subprocess
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from screen import Screen, wait_until

import slangpy as spy

pytestmark = pytest.mark.needs_kernels
COLORS = np.array([[(1, 0, 0, 1), (0, 1, 0, 1)], [(0, 0, 1, 1), (0.5, 0.25, 1, 1)]], np.float32)
SHOWN = [[(255, 0, 0), (0, 255, 0)], [(0, 0, 255), (188, 137, 255)]]
"""The same as sRGB."""
POINT = spy.TextureFilteringMode.point


@pytest.fixture
def surface(shower: spy.Device, window: spy.Window) -> spy.Surface:
    """Of the window, as large as this."""
    surface = shower.create_surface(window)
    surface.configure(width=window.width, height=window.height)
    return surface


def colors(device: spy.Device) -> spy.Texture:
    return device.create_texture(
        format=spy.Format.rgba32_float, width=2, height=2, usage=spy.TextureUsage.shader_resource, data=COLORS
    )


def show(surface: spy.Surface, texture: spy.Texture) -> None:
    """One frame."""
    image = surface.acquire_next_image()
    assert image is not None
    encoder = surface.device.create_command_encoder()
    encoder.blit(image, texture, POINT)
    encoder.set_texture_state(image, spy.ResourceState.present)
    surface.device.submit_command_buffer(encoder.finish())
    del image
    surface.present()


def corners(screen: Screen, x: int, y: int, width: int, height: int) -> npt.NDArray[np.uint8]:
    return screen.pixels()[np.ix_([y, y + height - 1], [x, x + width - 1])]


def close_to(found: npt.NDArray[Any], expected: Any) -> bool:
    """To one step: devices round what they encode as sRGB."""
    return bool(np.abs(found.astype(int) - expected).max() <= 1)


def is_shown(screen: Screen, x: int, y: int, width: int, height: int, expected: Any = SHOWN) -> bool:
    """Whether the screen shows the colours in the corners of the rectangle."""
    return wait_until(lambda: close_to(corners(screen, x, y, width, height), expected))


def test_pixels_of_the_screen(screen: Screen, surface: spy.Surface) -> None:
    """Four colours, each over a quarter of the window, to the pixel."""
    texture = colors(surface.device)
    for _ in range(5):
        show(surface, texture)
    assert is_shown(screen, 60, 40, 200, 120)
    expected = np.zeros((122, 202, 3), np.uint8)
    expected[1:-1, 1:-1] = np.repeat(np.repeat(np.array(SHOWN, np.uint8), 60, 0), 100, 1)
    assert close_to(screen.pixels()[39:161, 59:261], expected)


def test_info_and_config(surface: spy.Surface, window: spy.Window) -> None:
    info = surface.info
    assert info.formats == [spy.Format.bgra8_unorm_srgb, spy.Format.bgra8_unorm]
    assert info.preferred_format == spy.Format.bgra8_unorm_srgb
    asked = spy.TextureUsage.render_target | spy.TextureUsage.present | spy.TextureUsage.copy_destination
    assert info.supported_usage & asked == asked
    if surface.device.type is spy.DeviceType.vulkan:
        assert info.supported_usage == asked
    config = surface.config
    assert config is not None
    assert (config.width, config.height, config.format, config.vsync) == (200, 120, info.preferred_format, True)
    assert config.usage == info.supported_usage and config.desired_image_count >= 2
    surface.configure(spy.SurfaceConfig(format=spy.Format.bgra8_unorm, width=200, height=120, vsync=False))
    config = surface.config
    assert config is not None and (config.format, config.vsync) == (spy.Format.bgra8_unorm, False)
    surface.configure(200, 120, spy.Format.bgra8_unorm, vsync=False)
    config = surface.config
    assert config is not None and (config.width, config.height, config.vsync) == (200, 120, False)
    assert config.format is spy.Format.bgra8_unorm
    for arguments, text in (((200, 120, 3), "'format': expected a Format"), ((1,) * 7, "takes at most 6 arguments")):
        with pytest.raises(TypeError, match=text):
            surface.configure(*arguments)
    with pytest.raises(TypeError, match="'width': given twice"):
        surface.configure(200, width=200)  # type: ignore[call-overload]
    image = surface.acquire_next_image()
    assert image is not None and (image.width, image.height, image.format) == (200, 120, spy.Format.bgra8_unorm)
    surface.present()
    surface.unconfigure()
    assert surface.config is None and "config = None" in repr(surface)
    assert "preferred_format = bgra8_unorm_srgb" in repr(info)


def test_linear_format_and_clearing(screen: Screen, surface: spy.Surface) -> None:
    surface.configure({"width": 200, "height": 120, "format": spy.Format.bgra8_unorm})
    image = surface.acquire_next_image()
    assert image is not None
    encoder = surface.device.create_command_encoder()
    encoder.clear_texture_float(image, clear_value=(0.2, 0.4, 0.6, 1.0))
    surface.device.submit_command_buffer(encoder.finish())
    pixel = [51, 102, 153]
    np.testing.assert_array_equal(image.to_numpy()[5, 7], [*pixel[::-1], 255])
    surface.present()
    assert is_shown(screen, 60, 40, 200, 120, [[pixel] * 2] * 2)


def test_images_end_with_present(surface: spy.Surface) -> None:
    texture = colors(surface.device)
    image = surface.acquire_next_image()
    assert image is not None
    view = image.create_view()
    surface.present()
    encoder = surface.device.create_command_encoder()
    over = "the image of a surface may not be used after present"
    with pytest.raises(RuntimeError, match=over):
        encoder.clear_texture_float(image)
    with pytest.raises(RuntimeError, match=over):
        image.to_numpy()
    with pytest.raises((RuntimeError, ValueError), match=f"{over}|'dst' must be made with"):
        encoder.blit(view, texture)
    image = surface.acquire_next_image()
    assert image is not None
    surface.configure(width=200, height=120)  # takes it away
    with pytest.raises(RuntimeError, match=over):
        image.to_numpy()
    show(surface, texture)


@pytest.mark.parametrize(
    "use, error, text",
    [
        (lambda s: (s.unconfigure(), s.acquire_next_image()), RuntimeError, "Surface is not configured"),
        (lambda s: (s.unconfigure(), s.present()), RuntimeError, "Surface is not configured"),
        (
            lambda s: (s.acquire_next_image(), s.acquire_next_image()), RuntimeError,
            "Image already acquired. Image needs to be presented before acquiring a new one.",
        ),
        (lambda s: s.present(), RuntimeError, "No image was acquired. Call acquire_next_image"),
        (lambda s: s.configure(width=0, height=5), ValueError, "Surface.configure: the size is 0 x 5; both must be"),
        (lambda s: s.configure(5), ValueError, "Surface.configure: the size is 5 x 0; both must be"),
        (lambda s: s.configure(widht=5), TypeError, "unknown field 'widht'; known fields: format, usage, width, height"),
        (lambda s: s.configure(width=9, height=9, desired_image_count=0), ValueError, "must be at least 1"),
        (
            lambda s: s.configure(width=9, height=9, format=spy.Format.rgba32_float), ValueError,
            "does not take rgba32_float; it takes bgra8_unorm_srgb, bgra8_unorm",
        ),
    ],
)  # fmt: skip
def test_errors(surface: spy.Surface, use: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        use(surface)


def test_errors_of_creation(shower: spy.Device) -> None:
    with pytest.raises(TypeError, match="create_surface: expected a Window or a WindowHandle, got 3"):
        shower.create_surface(3)
    with pytest.raises(ValueError, match="WindowHandle.xdisplay is null"):
        shower.create_surface(spy.WindowHandle(0, 1))
    with pytest.raises(TypeError, match="WindowHandle 'xwindow': expected an int, got 'x'"):
        shower.create_surface(spy.WindowHandle(1, "x"))  # pyright: ignore[reportArgumentType]


WITHOUT = [name for name in ("null", "d3d12") if spy.Device.enumerate_adapters(spy.DeviceType[name])]


@pytest.mark.parametrize("name", WITHOUT)
def test_devices_without_surfaces(screen: Screen, window: spy.Window, name: str) -> None:
    kind = spy.DeviceType[name]
    with spy.Device(type=kind) as device:
        with pytest.raises(NotImplementedError, match=f"{name} devices have no surfaces .*; use a vulkan device"):
            device.create_surface(window)
        device.close()


@pytest.mark.draws
def test_usage_that_images_cannot_have(surface: spy.Surface) -> None:
    with pytest.raises(ValueError, match="'usage': .*unordered_access in the format bgra8_unorm_srgb; render into a texture"):
        surface.configure(width=9, height=9, usage=spy.TextureUsage.unordered_access)
    assert surface.config is None


def test_feature(shower: spy.Device) -> None:
    assert shower.has_feature(spy.Feature.surface) == (shower.type is spy.DeviceType.vulkan)


def test_resizing(screen: Screen, surface: spy.Surface, window: spy.Window) -> None:
    """Images of another size than the window's are not handed out."""
    texture = colors(surface.device)
    show(surface, texture)
    window.resize(310, 90)
    window.process_events()
    assert surface.acquire_next_image() is None
    assert surface.acquire_next_image() is None
    surface.configure(width=window.width, height=window.height)
    assert surface.config is not None and (surface.config.width, surface.config.height) == (310, 90)
    show(surface, texture)
    assert is_shown(screen, 60, 40, 310, 90)


def frames_of_random_sizes(surface: spy.Surface, window: spy.Window, screen: Screen, count: int, seed: int) -> None:
    sizes = random.Random(seed)
    texture = colors(surface.device)
    window.on_resize = lambda width, height: surface.configure(width=width, height=height)
    for i in range(count):
        size = (sizes.randint(2, 900), sizes.randint(2, 600))
        window.resize(*size)
        shown = 0
        while shown < 2:
            window.process_events()
            image = surface.acquire_next_image()
            if image is None:
                continue
            encoder = surface.device.create_command_encoder()
            encoder.blit(image, texture, POINT)
            surface.device.submit_command_buffer(encoder.finish())
            surface.present()  # while `image` is held, as samples do
            shown += 1
        if i % 10 == 0:
            assert is_shown(screen, 60, 40, *size)
    window.on_resize = None


def test_many_sizes(screen: Screen, surface: spy.Surface, window: spy.Window) -> None:
    frames_of_random_sizes(surface, window, screen, 20, 1)


def resident() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.nightly
def test_memory_stays_flat(screen: Screen, surface: spy.Surface, window: spy.Window) -> None:
    frames_of_random_sizes(surface, window, screen, 60, 2)
    gc.collect()
    before = resident()
    frames_of_random_sizes(surface, window, screen, 200, 3)
    gc.collect()
    assert resident() - before < 16 << 20


def test_two_windows(screen: Screen, surface: spy.Surface) -> None:
    """Their frames overlap."""
    device = surface.device
    other = spy.Window(100, 80, "the other")
    other.position = (700, 300)
    there = device.create_surface(other)
    there.configure(width=100, height=80)
    texture = colors(device)
    swapped = device.create_texture(
        format=spy.Format.rgba32_float, width=2, height=2, usage=spy.TextureUsage.shader_resource, data=COLORS[::-1].copy()
    )
    for _ in range(4):
        images = surface.acquire_next_image(), there.acquire_next_image()
        encoder = device.create_command_encoder()
        for image, source in zip(images, (texture, swapped), strict=True):
            assert image is not None
            encoder.blit(image, source, POINT)
        device.submit_command_buffer(encoder.finish())
        there.present()
        surface.present()
    assert is_shown(screen, 60, 40, 200, 120)
    assert is_shown(screen, 700, 300, 100, 80, SHOWN[::-1])


def test_surfaces_keep_their_window(screen: Screen, shower: spy.Device) -> None:
    window = spy.Window(50, 50)
    surface = shower.create_surface(window)
    window.process_events()
    del window
    gc.collect()
    surface.configure(width=50, height=50)
    show(surface, colors(shower))
    del surface
    gc.collect()
    spy.Window(32, 32).process_events()  # the window is gone, and the server has nothing to complain of


def test_windows_that_their_surfaces_know(screen: Screen, shower: spy.Device) -> None:
    """A cycle of window, callback and surface, as most programs have it, is collected while frames are on their way."""
    for i in range(3):
        window = spy.Window(60, 60, f"round {i}")
        surface = shower.create_surface(window)
        surface.configure(width=60, height=60)
        window.on_resize = lambda width, height, surface=surface: surface.configure(width=width, height=height)
        window.process_events()
        show(surface, colors(shower))
        show(surface, colors(shower))
        del window, surface
        gc.collect()
    other = spy.Window(32, 32)
    other.process_events()
    with pytest.raises(subprocess.CalledProcessError):
        screen.do("search", "--onlyvisible", "--name", "^round")


def test_windows_of_others(screen: Screen, shower: spy.Device, glfw: Any) -> None:
    """By the handles that their library gives."""
    window = spy.Window(90, 70)
    window.position = (20, 500)
    window.process_events()
    surface = shower.create_surface(spy.WindowHandle(glfw.get_x11_display(), glfw.get_x11_window(window._handle)))
    surface.configure(width=90, height=70)
    show(surface, colors(shower))
    assert is_shown(screen, 20, 500, 90, 70)
    surface.unconfigure()


def test_closed_devices(screen: Screen, fresh_device: spy.Device) -> None:
    if fresh_device.type is spy.DeviceType.d3d12:
        pytest.skip("d3d12 devices have no surfaces on this system")
    window = spy.Window(50, 50)
    surface = fresh_device.create_surface(window)
    assert spy.current_device() is fresh_device
    window.process_events()
    surface.configure(width=50, height=50)
    image = surface.acquire_next_image()
    assert image is not None
    fresh_device.close()
    for use in (surface.present, surface.acquire_next_image, surface.unconfigure, image.to_numpy):
        with pytest.raises(RuntimeError, match="closed"):
            use()
    del surface, image
    gc.collect()
    window.process_events()


@pytest.mark.draws
def test_drawing_into_images(screen: Screen, surface: spy.Surface) -> None:
    """A pass that clears, and reads back; views of another format are refused."""
    image = surface.acquire_next_image()
    assert image is not None
    encoder = surface.device.create_command_encoder()
    with encoder.begin_render_pass(color_attachments=[{"view": image, "clear_value": (0.5, 0.25, 1, 1)}]):
        pass
    surface.device.submit_command_buffer(encoder.finish())
    assert image.to_numpy()[3, 3].tolist() == [255, 137, 188, 255]
    with pytest.raises(ValueError, match="images of a surface are viewed in their own format, bgra8_unorm_srgb"):
        image.create_view(format=spy.Format.bgra8_unorm)
    view = image.create_view()
    surface.present()
    assert is_shown(screen, 60, 40, 200, 120, [[(188, 137, 255)] * 2] * 2)
    encoder = surface.device.create_command_encoder()
    with pytest.raises(RuntimeError, match="may not be used after present"):
        encoder.begin_render_pass(color_attachments=[{"view": view}])
