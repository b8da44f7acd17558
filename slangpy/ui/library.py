"""The way to Dear ImGui: the package imgui-bundle, imported when a context is made."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from ..base.optional import find_package


@cache
def load_imgui() -> Any:
    """Its module `imgui`; ImportError says what to install."""
    bundle = find_package("imgui_bundle")
    if bundle is None:
        raise ImportError("slangpy.ui needs imgui-bundle: pip install slangpy[ui]")
    return bundle.imgui


def set_up(imgui: Any, width: float, height: float) -> None:
    """Of the current context: what our renderer and style need."""
    io = imgui.get_io()
    io.set_ini_filename("")
    io.display_size = imgui.ImVec2(width, height)
    io.backend_flags |= imgui.BackendFlags_.renderer_has_textures.value
    io.backend_flags |= imgui.BackendFlags_.renderer_has_vtx_offset.value
    io.config_flags |= imgui.ConfigFlags_.docking_enable.value | imgui.ConfigFlags_.nav_enable_keyboard.value
    imgui.style_colors_dark()
    style = imgui.get_style()
    for name in ("window", "child", "frame", "popup", "scrollbar", "grab", "tab"):
        setattr(style, f"{name}_rounding", 7.0)


@contextmanager
def current(imgui: Any, context: Any) -> Iterator[None]:
    """Makes a context current, and the one before, if there was one, afterwards."""
    before = imgui.get_current_context()
    imgui.set_current_context(context)
    try:
        yield
    finally:
        if before is not None:  # else ours stays: ImGui takes no "none"
            imgui.set_current_context(before)


__all__ = ["current", "load_imgui", "set_up"]
