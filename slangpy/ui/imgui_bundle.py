"""For user interfaces written with the package imgui-bundle: its frames, its events, and drawing with a `ui.Context`."""

from __future__ import annotations

from typing import Any

from .._native import Texture, TextureView
from ..base.typed import integer, number
from .context import Context
from .events import tell_keyboard, tell_mouse
from .library import load_imgui, set_up
from .textures import TEXTURES, sync_textures


def create_imgui_context(width: int, height: int) -> Any:
    """A context of ImGui for a display of so many pixels, which becomes the current one."""
    width, height = integer("create_imgui_context 'width'", width, 1), integer("create_imgui_context 'height'", height, 1)
    imgui = load_imgui()
    context = imgui.create_context()
    imgui.set_current_context(context)
    set_up(imgui, width, height)
    return context


def begin_frame(width: int, height: int, delta_time: float = 1 / 60) -> None:
    """Begins a frame of the current context. delta_time: seconds since the last."""
    size = integer("begin_frame 'width'", width, 1), integer("begin_frame 'height'", height, 1)
    step = float(number("begin_frame 'delta_time'", delta_time))
    imgui = load_imgui()
    io = imgui.get_io()
    io.display_size = imgui.ImVec2(*size)
    io.delta_time = max(step, 1e-6)
    imgui.new_frame()


def handle_keyboard_event(event: Any) -> bool:
    """Hands an event to the current context. True: ImGui wants it; Escape only while a text is edited or a list is open."""
    return tell_keyboard(event)


def handle_mouse_event(event: Any) -> bool:
    """Hands an event to the current context. True: ImGui wants the mouse."""
    return tell_mouse(event)


def texture_ref(texture: Texture) -> Any:
    """For `imgui.image` and its like, in the frame that is being made: the texture needs the usage shader_resource."""
    if not isinstance(texture, Texture):
        raise TypeError(f"texture_ref: expected a Texture, got {texture!r}")
    return load_imgui().ImTextureRef(TEXTURES.number_of(texture))


def sync_draw_data_textures(device: Any, ui_context: Context, draw_data: Any) -> list[Texture]:
    """Makes, fills and drops the textures that ImGui asks for (fonts); returns those that are new. TypeError for what is no
    draw data; ValueError for textures of other than 1 or 4 bytes per pixel."""
    _check_context("sync_draw_data_textures", ui_context)
    return sync_textures(device, load_imgui().ImTextureStatus, draw_data)


def render_imgui_draw_data(ui_context: Context, draw_data: Any, target: Texture | TextureView, encoder: Any) -> None:
    """Draws over what the target holds. ValueError for unknown textures; RuntimeError for indices beyond the vertices."""
    _check_context("render_imgui_draw_data", ui_context)
    ui_context.render_draw_data(draw_data, target, encoder)


def _check_context(function: str, context: Any) -> None:
    if not isinstance(context, Context):
        raise TypeError(f"{function}: 'ui_context' must be a ui.Context, got {context!r}")


__all__ = [
    "begin_frame", "create_imgui_context", "handle_keyboard_event", "handle_mouse_event", "render_imgui_draw_data",
    "sync_draw_data_textures", "texture_ref",
]  # fmt: skip
