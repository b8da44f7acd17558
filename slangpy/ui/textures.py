"""Textures by the numbers that ImGui knows them by."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any, cast

import numpy as np

from .._native import Format, Texture, TextureUsage

_FORMATS = {1: Format.r8_unorm, 4: Format.rgba8_unorm}
"""By bytes per pixel."""
_INTERFACE = ("status", "width", "height", "bytes_per_pixel", "get_pixels_array", "set_tex_id", "set_status")
_PATIENCE = 16
"""Pictures that a texture of a user's stays known without being drawn."""


class TextureTable:
    """Those of ImGui's own (fonts) stay until it gives them up; those of users as long as they are drawn."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._own: dict[int, Texture] = {}
        self._users: dict[int, tuple[Texture, int]] = {}
        self._pictures = 0

    def add_own(self, texture: Texture) -> int:
        number = next(self._numbers)
        self._own[number] = texture
        return number

    def number_of(self, texture: Texture) -> int:
        """Of a user's texture."""
        for number, (known, _) in self._users.items():
            if known is texture:
                self._users[number] = (texture, self._pictures)
                return number
        number = next(self._numbers)
        self._users[number] = (texture, self._pictures)
        return number

    def find(self, number: int) -> Texture:
        if number in self._own:
            return self._own[number]
        if number not in self._users:
            raise ValueError(
                f"draw_data names the texture {number}, which is not known; make references with texture_ref(texture) in each "
                "frame, and call sync_draw_data_textures(...) before drawing"
            )
        texture = self._users[number][0]
        self._users[number] = (texture, self._pictures)
        return texture

    def forget(self, number: int) -> None:
        self._own.pop(number, None)

    def end_picture(self) -> None:
        self._pictures += 1
        for number, (_, used) in list(self._users.items()):
            if self._pictures - used > _PATIENCE:
                del self._users[number]


TEXTURES = TextureTable()
"""Of the process: a reference does not say which context will draw it."""


def sync_textures(device: Any, status: Any, draw_data: Any) -> list[Texture]:
    """Makes, fills and drops the textures that ImGui asks for; those that are new. status: the class ImTextureStatus."""
    wanted = getattr(draw_data, "textures", None)
    if not isinstance(wanted, Iterable):
        raise TypeError(f"draw_data must expose a 'textures' iterable, got {draw_data!r}")
    made: list[Texture] = []
    for item in cast("Iterable[Any]", wanted):
        if not all(hasattr(item, name) for name in _INTERFACE):
            raise TypeError(f"draw_data.textures elements must expose the imgui texture interface, got {item!r}")
        if item.status == status.want_create:
            texture = _created(device, item)
            item.set_tex_id(TEXTURES.add_own(texture))
            made.append(texture)
        elif item.status == status.want_updates:
            TEXTURES.find(item.get_tex_id()).copy_from_numpy(_pixels(item))
        elif item.status == status.want_destroy:
            TEXTURES.forget(item.get_tex_id())
            item.set_tex_id(0)
            item.set_status(status.destroyed)
            continue
        else:
            continue
        item.set_status(status.ok)
    return made


def _pixels(item: Any) -> Any:
    """(height, width) or (height, width, 4)."""
    channels = item.bytes_per_pixel
    shape = (item.height, item.width) if channels == 1 else (item.height, item.width, channels)
    return np.asarray(item.get_pixels_array(), np.uint8).reshape(shape)


def _created(device: Any, item: Any) -> Texture:
    format = _FORMATS.get(item.bytes_per_pixel)
    if format is None:
        raise ValueError(f"a texture of ImGui has {item.bytes_per_pixel} bytes per pixel; 1 and 4 can be drawn")
    return device.create_texture(
        format=format, width=item.width, height=item.height, usage=TextureUsage.shader_resource, data=_pixels(item),
        label="texture of ImGui",
    )  # fmt: skip


__all__ = ["TEXTURES", "TextureTable", "sync_textures"]
