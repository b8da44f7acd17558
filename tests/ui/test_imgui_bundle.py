"""`slangpy.ui.imgui_bundle`: user interfaces written with imgui-bundle itself."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from panel import USAGE, box

import slangpy as spy
from slangpy import ui
from slangpy.ui import imgui_bundle as bundle

imgui: Any = pytest.importorskip("imgui_bundle").imgui
pytestmark = pytest.mark.draws
WIDTH, HEIGHT = 128, 96


@pytest.fixture
def drawn(drawer: spy.Device) -> Any:
    """draws(what) -> picture: frames in which `what()` calls ImGui."""
    context = ui.Context(drawer)
    bundle.create_imgui_context(WIDTH, HEIGHT)
    target = drawer.create_texture(format=spy.Format.rgba8_unorm, width=WIDTH, height=HEIGHT, usage=USAGE)

    def draw(what: Any, count: int = 3, view: bool = False) -> Any:
        for _ in range(count):
            bundle.begin_frame(WIDTH, HEIGHT)
            what()
            imgui.render()
            encoder = drawer.create_command_encoder()
            encoder.clear_texture_float(target, clear_value=(0, 0, 0, 1))
            draw.new = bundle.sync_draw_data_textures(drawer, context, imgui.get_draw_data())
            where = target.create_view() if view else target
            bundle.render_imgui_draw_data(context, imgui.get_draw_data(), where, encoder)
            drawer.submit_command_buffer(encoder.finish())
        return target.to_numpy()

    draw.context = context
    return draw


def a_window() -> None:
    imgui.set_next_window_pos(imgui.ImVec2(10, 10))
    imgui.set_next_window_size(imgui.ImVec2(100, 60))
    imgui.begin("x")
    imgui.text("text")
    imgui.end()


def test_pixels(drawn: Any) -> None:
    drawn(a_window, count=1)
    assert len(drawn.new) == 1 and isinstance(drawn.new[0], spy.Texture)
    image = drawn(a_window, count=2)
    assert drawn.new == [] and box(image) == (10, 109, 10, 69)
    np.testing.assert_array_equal(drawn(a_window, view=True), image)


def test_pictures(drawn: Any, drawer: spy.Device) -> None:
    """Textures of ours, of bytes, of bytes with the curve of sRGB and of floats, are shown as they look."""
    colors = np.zeros((2, 2, 4), np.uint8)
    colors[...] = [[(255, 0, 0, 255), (0, 255, 0, 255)], [(0, 0, 255, 255), (188, 137, 255, 255)]]
    light = np.array([[(1, 0, 0, 1), (0, 1, 0, 1)], [(0, 0, 1, 1), (0.5028, 0.2502, 1, 1)]], np.float32)
    read = spy.TextureUsage.shader_resource
    for format, data in (("rgba8_unorm", colors), ("rgba8_unorm_srgb", colors), ("rgba32_float", light)):
        texture = drawer.create_texture(format=spy.Format[format], width=2, height=2, usage=read, data=data)

        def show(texture: spy.Texture = texture) -> None:
            at = imgui.ImVec2(20, 10), imgui.ImVec2(60, 50)
            imgui.get_background_draw_list().add_image(bundle.texture_ref(texture), *at)

        image = drawn(show)
        assert box(image) == (20, 59, 10, 49)
        found = image[np.ix_([12, 47], [22, 57])]
        assert np.abs(found.astype(int) - colors).max() <= 1, (format, found)


def test_events(drawn: Any) -> None:
    clicks = []

    def button() -> None:
        imgui.set_next_window_pos(imgui.ImVec2(0, 0))
        imgui.set_next_window_size(imgui.ImVec2(100, 90))
        imgui.begin("x")
        if imgui.button("press", imgui.ImVec2(60, 30)):
            clicks.append(1)
        imgui.end()

    drawn(button)
    kinds = spy.MouseEventType
    for type, name in ((kinds.move, "unknown"), (kinds.button_down, "unknown"), (kinds.button_down, "left"), (kinds.button_up, "left")):
        event = spy.MouseEvent(type, spy.float2(30, 40), button=spy.MouseButton[name])
        bundle.handle_mouse_event(event)
        drawn(button, count=1)
    assert clicks == [1]
    assert bundle.handle_mouse_event(spy.MouseEvent(kinds.scroll, spy.float2(30, 40), scroll=spy.float2(0, 1))) is True
    assert bundle.handle_keyboard_event(spy.KeyboardEvent(key=spy.KeyCode.world_1)) in (True, False)


def test_events_of_others(drawn: Any) -> None:
    """Known by their methods."""
    event = SimpleNamespace(
        pos=(5, 6), button=SimpleNamespace(name="x1"), is_scroll=lambda: False, is_button_down=lambda: True,
        is_button_up=lambda: False,
    )  # fmt: skip
    assert bundle.handle_mouse_event(event) in (True, False)


class Vector:
    """As ImGui's."""

    def __init__(self, data: np.ndarray[Any, Any], item_bytes: int) -> None:
        self.data, self.item_bytes = np.ascontiguousarray(data), item_bytes

    def size(self) -> int:
        return self.data.nbytes // self.item_bytes

    def data_address(self) -> int:
        return self.data.ctypes.data


def made_by_hand(indices: list[int], texture: int, **more: Any) -> Any:
    vertices = np.zeros(3, np.dtype([("pos", "f4", 2), ("uv", "f4", 2), ("color", "u4")]))
    vertices["pos"] = [(0, 0), (WIDTH, 0), (0, HEIGHT)]
    vertices["color"] = 0xFF0000FF
    kind = {2: np.uint16, 4: np.uint32}[imgui.INDEX_SIZE]
    command = SimpleNamespace(
        clip_rect=imgui.ImVec4(0, 0, WIDTH, HEIGHT), elem_count=3, idx_offset=0, vtx_offset=0, get_tex_id=lambda: texture
    )
    commands = SimpleNamespace(
        vtx_buffer=Vector(vertices, 20), idx_buffer=Vector(np.array(indices, kind), imgui.INDEX_SIZE), cmd_buffer=[command]
    )
    return SimpleNamespace(
        display_pos=imgui.ImVec2(0, 0), display_size=imgui.ImVec2(WIDTH, HEIGHT), framebuffer_scale=imgui.ImVec2(1, 1),
        cmd_lists=[commands], textures=[], **more,
    )  # fmt: skip


def white(device: spy.Device) -> spy.Texture:
    data = np.full((1, 1, 4), 255, np.uint8)
    return device.create_texture(
        format=spy.Format.rgba8_unorm, width=1, height=1, usage=spy.TextureUsage.shader_resource, data=data
    )


def test_draw_data_made_by_hand(drawer: spy.Device) -> None:
    """A triangle over the upper left half, to the pixel; 0xFF0000FF is red."""
    context = ui.Context(drawer)
    picture = white(drawer)
    number = bundle.texture_ref(picture).get_tex_id()
    target = drawer.create_texture(format=spy.Format.rgba8_unorm, width=WIDTH, height=HEIGHT, usage=USAGE)
    encoder = drawer.create_command_encoder()
    encoder.clear_texture_float(target, clear_value=(0, 0, 0, 0))
    bundle.render_imgui_draw_data(context, made_by_hand([0, 1, 2], number), target, encoder)
    drawer.submit_command_buffer(encoder.finish())
    y, x = np.mgrid[0:HEIGHT, 0:WIDTH] + 0.5
    expected = (x / WIDTH + y / HEIGHT < 1)[..., None] * np.array([255, 0, 0, 255])
    np.testing.assert_array_equal(target.to_numpy(), expected)


def test_errors(drawer: spy.Device) -> None:
    context = ui.Context(drawer)
    picture = white(drawer)
    number = bundle.texture_ref(picture).get_tex_id()
    target = drawer.create_texture(format=spy.Format.rgba8_unorm, width=WIDTH, height=HEIGHT, usage=USAGE)

    def draw(data: Any) -> None:
        bundle.render_imgui_draw_data(context, data, target, drawer.create_command_encoder())

    with pytest.raises(RuntimeError, match="references out-of-bounds vertex"):
        draw(made_by_hand([0, 1, 3], number))
    with pytest.raises(RuntimeError, match="references out-of-bounds vertex"):
        draw(made_by_hand([0, 1], number))
    with pytest.raises(ValueError, match="names the texture 123456, which is not known"):
        draw(made_by_hand([0, 1, 2], 123456))
    sync = bundle.sync_draw_data_textures
    with pytest.raises(TypeError, match="draw_data must expose a 'textures' iterable"):
        sync(drawer, context, object())
    with pytest.raises(TypeError, match="draw_data.textures elements must expose the imgui texture interface"):
        sync(drawer, context, SimpleNamespace(textures=[3]))
    odd = SimpleNamespace(
        status=imgui.ImTextureStatus.want_create, width=1, height=1, bytes_per_pixel=3, get_pixels_array=lambda: b"abc",
        set_tex_id=lambda number: None, set_status=lambda status: None,
    )  # fmt: skip
    with pytest.raises(ValueError, match="3 bytes per pixel; 1 and 4 can be drawn"):
        sync(drawer, context, SimpleNamespace(textures=[odd]))
    with pytest.raises(TypeError, match="'ui_context' must be a ui.Context, got 3"):
        sync(drawer, 3, made_by_hand([0, 1, 2], number))  # pyright: ignore[reportArgumentType]
    with pytest.raises(TypeError, match="texture_ref: expected a Texture, got 3"):
        bundle.texture_ref(3)  # pyright: ignore[reportArgumentType]
    with pytest.raises(TypeError, match="expected a Texture or a TextureView, got 3"):
        context.render_draw_data(made_by_hand([0, 1, 2], number), 3, None)  # pyright: ignore[reportArgumentType]


def test_textures_come_and_go(drawer: spy.Device) -> None:
    """As ImGui asks: made, filled anew, given up; of one byte per pixel, which is alpha."""
    context = ui.Context(drawer)
    pixels = np.array([0, 128, 255, 64], np.uint8)
    state: dict[str, Any] = {"id": 0}
    item = SimpleNamespace(
        status=imgui.ImTextureStatus.want_create, width=2, height=2, bytes_per_pixel=1, get_pixels_array=lambda: pixels,
        get_tex_id=lambda: state["id"],
    )  # fmt: skip
    item.set_tex_id = lambda number: state.update(id=number)
    item.set_status = lambda status: setattr(item, "status", status)
    data = SimpleNamespace(textures=[item])
    made = bundle.sync_draw_data_textures(drawer, context, data)
    assert len(made) == 1 and item.status == imgui.ImTextureStatus.ok and state["id"] > 0
    np.testing.assert_array_equal(made[0].to_numpy(), [[0, 128], [255, 64]])
    pixels[0] = 7
    item.status = imgui.ImTextureStatus.want_updates
    assert bundle.sync_draw_data_textures(drawer, context, data) == []
    assert made[0].to_numpy()[0, 0] == 7
    item.status = imgui.ImTextureStatus.want_destroy
    assert bundle.sync_draw_data_textures(drawer, context, data) == []
    assert item.status == imgui.ImTextureStatus.destroyed and state["id"] == 0


def test_memory_is_read_in_place() -> None:
    data = np.arange(4, dtype=np.uint16)
    vector = Vector(data, 2)
    assert (ctypes.c_uint16 * vector.size()).from_address(vector.data_address())[3] == 3
