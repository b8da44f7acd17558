"""Buffers, samplers and acceleration structures, bound whole; textures, bound whole or texel by texel."""

from __future__ import annotations

import re
from typing import Any

from ..._native import _content_misfit
from ...base.scalars import INTEGERS, SIZES
from ...reflection import SlangType
from .. import textures
from ..records import Binding, Value
from .base import Context, NoMatch, converts, no_match, pattern_kind, register, stores, structured_element

_USAGE = "create it with BufferUsage.shader_resource or BufferUsage.unordered_access"


def _bind_buffer(value: Value, type_: SlangType, context: Context) -> Binding:
    name = type_.full_name
    if type_.kind == "pointer":
        _check_content(value, type_, type_.element_type)
        return Binding("pointer", value, name, type_, stored=name)
    if type_.kind == "resource" and "Buffer" in name.split("<")[0]:
        if name.startswith("RW") and not value.details["writable"]:
            raise no_match(value, type_, "it is read-only: create it with BufferUsage.unordered_access")
        if not value.details["readable"]:
            raise no_match(value, type_, f"the buffer cannot be bound: {_USAGE}")
        element = context.find(structured_element(name)) if structured_element(name) else None
        _check_content(value, type_, element)
        return Binding("resource", value, name, type_, stored=element.full_name if element else name)
    raise no_match(value, type_, "a Buffer is bound whole; use a Tensor to vectorise over its elements")


def _check_content(value: Value, type_: SlangType, element: SlangType | None) -> None:
    """The numbers that the host filled the buffer with, where their size is known, against the element type."""
    if value.details["content"] and element is not None:
        why = _content_misfit(value.details["content"], element.element_layout)
        if why:
            raise no_match(value, type_, why)


def _bind_sampler(value: Value, type_: SlangType, context: Context) -> Binding:
    if type_.kind == "sampler_state":
        return Binding("resource", value, type_.full_name, type_, stored=type_.full_name)
    raise no_match(value, type_, "a Sampler binds to a SamplerState")


def _bind_handle(value: Value, type_: SlangType, context: Context) -> Binding:
    """What the handle names is checked where it is written: handles of one call may differ in it."""
    del context
    if type_.full_name.startswith("DescriptorHandle<"):
        return Binding("handle", value, type_.full_name, type_, stored=type_.full_name)
    raise no_match(value, type_, "a DescriptorHandle binds to a DescriptorHandle<T>")


def _bind_acceleration_structure(value: Value, type_: SlangType, context: Context) -> Binding:
    if type_.full_name != "RaytracingAccelerationStructure":
        raise no_match(value, type_, "an AccelerationStructure binds to a RaytracingAccelerationStructure")
    if context.writable:
        raise no_match(value, type_, "kernels only read it; take it as an `in` parameter")
    return Binding("resource", value, type_.full_name, type_, stored=type_.full_name)


# --- textures


def _bind_texture(value: Value, type_: SlangType, context: Context) -> Binding:
    if value.details["stencil"]:
        raise no_match(value, type_, "kernels do not see stencil values; pass the texture, or a view of its depth")
    found = textures.parse(type_.full_name) if type_.kind == "resource" else None
    if found is not None:
        return _bind_whole(value, type_, found, context)
    return _bind_texels(value, type_, context)


def _check_storable(value: Value, type_: SlangType, context: Context) -> None:
    """A view may have a format that the device reads but does not store (sRGB)."""
    device = getattr(context.module, "device", None)
    if device is not None and not textures.storable(device, value.details["format"]):
        raise no_match(value, type_, f"this device does not store {value.details['format']}; view it in another format")


def _shape_fits(value: Value, wanted: str) -> bool:
    """Whether a texture can be seen with the shape of a parameter (a view of one layer also without layers)."""
    own = textures.shape_of(value.details["texture_type"])
    single = value.details["single_layer"]
    also = {
        "1D": ("1DArray",), "2D": ("2DArray",), "1DArray": ("1D",) if single else (),
        "2DArray": ("2D",) if single else (), "Cube": ("2DArray", "CubeArray", *(("2D",) if single else ())),
        "CubeArray": ("2DArray", "Cube", *(("2D",) if single else ())), "2DMS": ("2DMSArray",),
        "2DMSArray": ("2DMS",) if single else (),
    }  # fmt: skip
    return wanted == own or wanted in also.get(own, ())


def _check_bits(value: Value, type_: SlangType, wanted: textures.TextureType, context: Context) -> None:
    """CUDA's surfaces hold bare bits: Slang's loads and stores there move the parameter's texels as they are."""
    target = getattr(getattr(context.module, "device", None), "compile_target", None)
    if target is None or target.format != "cuda" or not textures.texels_differ(value.details["format"], wanted.element):
        return
    format_name = value.details["format"]
    raise no_match(
        value, type_,
        f"a cuda device does not convert texels of {format_name} in RWTextures: declare the texels that it stores, use a "
        f"format of {wanted.element}, or write through an out parameter or _result, which converts",
    )  # fmt: skip


def _bind_whole(value: Value, type_: SlangType, wanted: textures.TextureType, context: Context) -> Binding:
    details = value.details
    if not _shape_fits(value, wanted.shape):
        advice = "" if details["single_layer"] else "; pass a texture of that type, or a view of one layer"
        raise no_match(value, type_, f"a {details['texture_type']} cannot be bound to a {wanted.base}{advice}")
    if wanted.access not in ("", "RW"):
        raise no_match(value, type_, "only Texture and RWTexture parameters can be bound")
    if wanted.writable and not details["writable"]:
        raise no_match(value, type_, "it is read-only: the texture lacks TextureUsage.unordered_access; create it with that usage")
    if wanted.writable:
        _check_storable(value, type_, context)
        _check_bits(value, type_, wanted, context)
    if not wanted.writable and not details["readable"]:
        raise no_match(value, type_, "the texture lacks TextureUsage.shader_resource; create it with that usage")
    scalar = re.sub(r"^vector<(\w+), ?\d+>$", r"\1", wanted.element)
    own = textures.texel_of(details["format"])
    if scalar in SIZES and textures.kind_of(scalar) != textures.kind_of(own.scalar):
        advice = f"declare {wanted.base}<{own.name}>, or use a format of {textures.kind_of(scalar)} texels"
        raise no_match(value, type_, f"texels of {details['format']} are {own.name}, expected {wanted.element}: {advice}")
    return Binding("resource", value, type_.full_name, type_, stored=type_.full_name)


def _bind_texels(value: Value, type_: SlangType, context: Context) -> Binding:
    details, texel = value.details, textures.texel_of(value.details["format"])
    if "_ms" in details["texture_type"]:
        raise no_match(value, type_, "a multisampled texture binds to a Texture2DMS parameter only")
    count = {"scalar": 1, "vector": type_.shape[0] if type_.kind == "vector" else 0}.get(type_.kind, 0)
    if count != texel.channels:
        raise no_match(value, type_, f"texels of {details['format']} are {texel.name}")
    _check_element(value, type_, texel, context)
    _check_access(value, type_, context)
    dims = len(value.shape)
    return Binding("texel", value, type_.full_name, type_, dims, (), texel.name, cost=(0, 1))


def _check_element(value: Value, type_: SlangType, texel: textures.Texel, context: Context) -> None:
    if type_.scalar == texel.scalar or converts(texel.scalar, type_.scalar, context.convert):
        return
    if stores(type_.scalar, texel.scalar, context):
        return
    hint = '; convert="safe" or "any" converts them' if texel.scalar in (*INTEGERS, "float") else ""
    raise no_match(value, type_, f"texels of {value.details['format']} are {texel.name}{hint}")


def _check_access(value: Value, type_: SlangType, context: Context) -> None:
    details = value.details
    if context.writable and "cube" in details["texture_type"]:
        raise NoMatch(
            f"{value.summary()} does not match slang type {type_.full_name}: the texels of a cube are read only; "
            "write to a view of a 2-D array, or bind the cube to a RWTexture2DArray parameter"
        )
    if context.writable and not details["writable"]:
        raise NoMatch(
            f"{value.summary()} does not match slang type {type_.full_name}: Cannot write to read-only texture: create "
            "it with TextureUsage.unordered_access"
        )
    if not details["readable"] and not details["writable"]:
        raise no_match(value, type_, "the texture lacks TextureUsage.shader_resource; create it with that usage")
    if context.writable or not details["readable"]:
        _check_storable(value, type_, context)
    if not details["readable"] and "cube" in details["texture_type"]:
        raise no_match(value, type_, "the texels of a cube are read with TextureUsage.shader_resource")


def _texture_candidates(value: Value, pattern: Any, context: Context) -> list[SlangType]:
    """Texels for vectors and scalars; the whole texture for texture parameters; both where anything fits."""
    texel = textures.texel_of(value.details["format"])
    kind, name = pattern_kind(pattern), pattern.full_name
    vector = f"vector<{texel.scalar},{texel.channels}>"
    found = textures.parse(name)
    if found is not None:
        names = [f"{found.base}<{vector if found.element.startswith('vector<') else texel.name}>"]
    elif kind == "vector":
        names = [vector]
    elif kind in ("generic_type_parameter", "interface", "none"):
        own = textures.shape_of(value.details["texture_type"])
        names = [texel.name, f"{'Texture' if value.details['readable'] else 'RWTexture'}{own}<{texel.name}>"]
    else:
        names = []
    return [type_ for type_ in map(context.find, names) if type_ is not None]


def _whole(value: Value, pattern: Any, context: Context) -> list[SlangType]:
    return []


register(("buffer",), _bind_buffer, _whole)
register(("texture", "texture_view"), _bind_texture, _texture_candidates)
register(("sampler",), _bind_sampler, _whole)
register(("descriptor_handle",), _bind_handle, _whole)
register(("acceleration_structure",), _bind_acceleration_structure, _whole)
