"""Buffers, textures and samplers: bound whole."""

from __future__ import annotations

from typing import Any

from ..call.ir import Binding, Value
from ..reflection import SlangType
from .base import Context, no_match, register


def _bind_buffer(value: Value, type_: SlangType, context: Context) -> Binding:
    name = type_.full_name
    if type_.kind == "pointer":
        return Binding("pointer", value, name, type_, stored=name)
    if type_.kind == "resource" and "Buffer" in name.split("<")[0]:
        if name.startswith("RW") and not value.details["writable"]:
            raise no_match(value, type_, "the buffer lacks BufferUsage.unordered_access")
        return Binding("resource", value, name, type_, stored=name)
    raise no_match(value, type_, "a Buffer is bound whole; use a Tensor to vectorise over its elements")


def _bind_texture(value: Value, type_: SlangType, context: Context) -> Binding:
    name = type_.full_name
    if type_.kind == "resource" and "Texture" in name.split("<")[0]:
        return Binding("resource", value, name, type_, stored=name)
    raise no_match(value, type_, "texel access by vectorisation is not available yet; pass it to a texture parameter")


def _bind_sampler(value: Value, type_: SlangType, context: Context) -> Binding:
    if type_.kind == "sampler_state":
        return Binding("resource", value, type_.full_name, type_, stored=type_.full_name)
    raise no_match(value, type_)


def _whole(value: Value, pattern: Any, context: Context) -> list[SlangType]:
    return []


register(("buffer",), _bind_buffer, _whole)
register(("texture", "texture_view"), _bind_texture, _whole)
register(("sampler",), _bind_sampler, _whole)
