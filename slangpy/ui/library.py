"""The way to Dear ImGui: the package imgui-bundle, imported when a context is made."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from ..base.optional import find_package
from .textures import TEXTURES


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


_blocks: list[Any] = []
"""What becomes current again at the end of each open block of `current`, the outermost first."""
_left: deque[Any] = deque()
"""Contexts that nobody holds. They are destroyed when no block is open: a block must not end with one that is gone, into whose
memory ImGui would write its counters."""


@contextmanager
def current(imgui: Any, context: Any = None) -> Iterator[None]:
    """Makes a context current (None: leaves that to the block), and the one before, if there was one, afterwards."""
    before = imgui.get_current_context()
    _blocks.append(before)
    try:
        if context is not None:
            imgui.set_current_context(context)
        yield
    finally:
        if before is not None:  # else ours stays: ImGui takes no "none"
            imgui.set_current_context(before)
        _blocks.pop()
        _destroy_left(imgui)


def leave(imgui: Any, context: Any) -> None:
    """Destroys a context that nobody will use any more, now or soon: collections of garbage run anywhere."""
    _left.append(context)
    _destroy_left(imgui)


def _destroy_left(imgui: Any) -> None:
    while _left and not _blocks:
        context = _left.popleft()
        with current(imgui, context):
            for texture in imgui.get_platform_io().textures:
                TEXTURES.forget(texture.get_tex_id())
        imgui.destroy_context(context)


__all__ = ["current", "leave", "load_imgui", "set_up"]
