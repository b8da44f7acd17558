"""Draws what Dear ImGui made, with one pipeline for each format of target."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._native import (
    BlendFactor,
    BufferUsage,
    CommandEncoder,
    Format,
    FormatType,
    IndexFormat,
    LoadOp,
    ScissorRect,
    ShaderCursor,
    Texture,
    TextureAddressingMode,
    TextureUsage,
    TextureView,
    get_format_info,
)
from ..compiler.session import create_session
from .textures import TEXTURES

VERTEX_BYTES = 20
_LEAST_BYTES = 1 << 16
_BLEND = {
    "enable_blend": True,
    "color": {"src_factor": BlendFactor.src_alpha, "dst_factor": BlendFactor.inv_src_alpha},
    "alpha": {"src_factor": BlendFactor.one, "dst_factor": BlendFactor.inv_src_alpha},
}
_ELEMENTS = (
    {"semantic_name": "POSITION", "format": Format.rg32_float},
    {"semantic_name": "TEXCOORD", "format": Format.rg32_float, "offset": 8},
    {"semantic_name": "COLOR", "format": Format.rgba8_unorm, "offset": 16},
)


@dataclass(frozen=True)
class _Batch:
    """One draw: where its indices and vertices begin, its clip rectangle (x0, y0, x1, y1) and the number of its texture."""

    count: int
    first_index: int
    first_vertex: int
    clip: tuple[float, float, float, float]
    texture: int


class Renderer:
    """Of one device."""

    def __init__(self, device: Any) -> None:
        device._require_feature("rasterization", "ui.Context")
        self._device = device
        session: Any = create_session(device, held_by_device=True)
        module = session.load_module("slangpy_ui")
        self._program = session.link_program([module], [module.entry_point("corner"), module.entry_point("pixel")])
        self._layout = device.create_input_layout(list(_ELEMENTS), [{"stride": VERTEX_BYTES}])
        edge = TextureAddressingMode.clamp_to_edge
        self._sampler = device.create_sampler(address_u=edge, address_v=edge)
        self._pipelines: dict[Format, Any] = {}
        self._buffers: dict[BufferUsage, Any] = {}

    def check(self, function: str, target: Any, encoder: Any) -> None:
        """Before a frame is ended for it."""
        if not isinstance(target, (Texture, TextureView)):
            raise TypeError(f"{function} 'target': expected a Texture or a TextureView, got {target!r}")
        if not isinstance(encoder, CommandEncoder):
            raise TypeError(f"{function} 'command_encoder': expected a CommandEncoder, got {encoder!r}")
        texture = target if isinstance(target, Texture) else target.texture
        for name, own in (("target", texture.device), ("command_encoder", encoder.device)):
            if own is not self._device:
                raise ValueError(f"{function} '{name}': it belongs to another device; expected {self._device!r}")
        if not texture.desc.usage & TextureUsage.render_target:
            raise ValueError(f"{function} 'target': expected a texture with the usage render_target, got {texture.desc.usage}")

    def draw(self, draw_data: Any, index_bytes: int, target: Texture | TextureView, encoder: Any) -> None:
        """Over what the target holds. index_bytes: 2 or 4."""
        view = target.create_view(mip_count=1, layer_count=1) if isinstance(target, Texture) else target
        format = view.texture.format if view.format == Format.undefined else view.format
        vertices, indices, batches = _gather(draw_data, index_bytes)
        if not batches:
            return
        mip = view.subresource_range.mip
        size = (view.texture.get_mip_width(mip), view.texture.get_mip_height(mip))
        state = {
            "vertex_buffers": [self._upload(encoder, BufferUsage.vertex_buffer, vertices)],
            "index_buffer": self._upload(encoder, BufferUsage.index_buffer, indices),
            "index_format": IndexFormat.uint16 if index_bytes == 2 else IndexFormat.uint32,
        }
        with encoder.begin_render_pass(color_attachments=[{"view": view, "load_op": LoadOp.load}]) as render_pass:
            bound: int | None = None
            for batch in batches:
                rect = _scissor(batch.clip, draw_data, size)
                if rect is None:
                    continue
                if batch.texture != bound:
                    bound = batch.texture
                    root = render_pass.bind_pipeline(self._pipeline(format))
                    self._bind(ShaderCursor(root), draw_data, format, TEXTURES.find(bound))
                render_pass.set_render_state(scissor_rects=[rect], **state)
                render_pass.draw_indexed(
                    vertex_count=batch.count, start_index_location=batch.first_index,
                    start_vertex_location=batch.first_vertex,
                )  # fmt: skip
        TEXTURES.end_picture()

    def _pipeline(self, format: Format) -> Any:
        if format not in self._pipelines:
            self._pipelines[format] = self._device.create_render_pipeline(
                self._program, self._layout, targets=[{"format": format, **_BLEND}], label="ImGui"
            )
        return self._pipelines[format]

    def _bind(self, cursor: Any, draw_data: Any, format: Format, texture: Texture) -> None:
        position, size = draw_data.display_pos, draw_data.display_size
        own = get_format_info(texture.format)
        view = {
            "scale": (2 / size.x, -2 / size.y),
            "offset": (-1 - 2 * position.x / size.x, 1 + 2 * position.y / size.y),
            "is_linear": int(get_format_info(format).type == FormatType.unorm_srgb),
            "is_alpha": int(own.name == "r8_unorm" and texture.label == "texture of ImGui"),
            "is_light": int(own.type in (FormatType.unorm_srgb, FormatType.float)),
        }
        for stage in range(2):
            cursor.find_entry_point(stage)["view"] = view
        fragment = cursor.find_entry_point(1)
        fragment["picture"] = texture
        fragment["linear"] = self._sampler

    def _upload(self, encoder: Any, usage: BufferUsage, data: Any) -> Any:
        """The buffer of this usage, grown where it must be; draws of earlier pictures come before the upload."""
        buffer = self._buffers.get(usage)
        if buffer is None or buffer.size < data.nbytes:
            size = max(_LEAST_BYTES, 2 * data.nbytes)
            buffer = self._buffers[usage] = self._device.create_buffer(
                size=size, usage=usage | BufferUsage.copy_destination
            )
        encoder.upload_buffer_data(buffer, 0, data)
        return buffer


def _gather(draw_data: Any, index_bytes: int) -> tuple[Any, Any, list[_Batch]]:
    """All lists of triangles one after the other."""
    kind = np.uint16 if index_bytes == 2 else np.uint32
    vertices: list[Any] = []
    indices: list[Any] = []
    batches: list[_Batch] = []
    first_vertex = first_index = 0
    for commands in draw_data.cmd_lists:
        own = _memory(commands.vtx_buffer, VERTEX_BYTES, np.uint8)
        count = len(own) // VERTEX_BYTES
        places = _memory(commands.idx_buffer, index_bytes, kind)
        for command in commands.cmd_buffer:
            if not command.elem_count:
                continue
            used = places[command.idx_offset : command.idx_offset + command.elem_count]
            is_whole = min(command.idx_offset, command.vtx_offset) >= 0 and len(used) == command.elem_count
            if not is_whole or int(used.max()) + command.vtx_offset >= count:
                raise RuntimeError(
                    f"a draw command references out-of-bounds vertex or index: its list has {count} vertices and "
                    f"{len(places)} indices"
                )
            clip = command.clip_rect
            batches.append(
                _Batch(
                    command.elem_count, first_index + command.idx_offset, first_vertex + command.vtx_offset,
                    (clip.x, clip.y, clip.z, clip.w), _texture_of(command),
                )
            )  # fmt: skip
        vertices.append(own)
        indices.append(places)
        first_vertex += count
        first_index += len(places)
    if not batches:
        return None, None, []
    every = np.concatenate(indices)
    if every.nbytes % 4:  # uploads are of whole words
        every = np.append(every, kind(0))
    return np.concatenate(vertices), every, batches


def _texture_of(command: Any) -> int:
    return int(command.get_tex_id() if hasattr(command, "get_tex_id") else command.texture_id)


def _memory(vector: Any, item_bytes: int, kind: Any) -> Any:
    """What a vector of ImGui holds, in place."""
    size = vector.size() * item_bytes
    if not size:
        return np.empty(0, kind)
    return np.frombuffer((ctypes.c_ubyte * size).from_address(vector.data_address()), kind)


def _scissor(clip: tuple[float, ...], draw_data: Any, size: tuple[int, int]) -> ScissorRect | None:
    """In pixels of the target; None where nothing is left."""
    position, scale = draw_data.display_pos, draw_data.framebuffer_scale
    x0, x1 = ((x - position.x) * scale.x for x in (clip[0], clip[2]))
    y0, y1 = ((y - position.y) * scale.y for y in (clip[1], clip[3]))
    left, top = max(0, int(x0)), max(0, int(y0))
    right, bottom = min(size[0], int(np.ceil(x1))), min(size[1], int(np.ceil(y1)))
    if left >= right or top >= bottom:
        return None
    return ScissorRect(min_x=left, min_y=top, max_x=right, max_y=bottom)


__all__ = ["Renderer"]
