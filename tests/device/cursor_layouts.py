"""Layouts made by hand, so that cursors can be tested without a compiler.

Sizes and alignments follow the targets: bool takes 4 bytes on Vulkan and 1 elsewhere; CUDA aligns float2 to 8 and
float4 to 16 bytes.
"""

from __future__ import annotations

from typing import Any

from slangpy import _native

TARGETS = ("cpu", "vulkan", "cuda")
SIZES = {
    "bool": 1, "int8_t": 1, "uint8_t": 1, "int16_t": 2, "uint16_t": 2, "half": 2, "int": 4, "uint": 4, "float": 4,
    "int64_t": 8, "uint64_t": 8, "double": 8,
}  # fmt: skip


def _align(offset: int, alignment: int) -> int:
    return (offset + alignment - 1) // alignment * alignment


class Layouts:
    """Builds the layouts of one target."""

    def __init__(self, target: str) -> None:
        self.target = target

    def scalar(self, name: str) -> Any:
        size = 4 if name == "bool" and self.target == "vulkan" else SIZES[name]
        return _native._make_type_layout(
            kind="scalar", name=name, scalar=name, rows=1, cols=1, size=size, alignment=size
        )

    def vector(self, name: str, count: int) -> Any:
        element = self.scalar(name)
        wide = self.target == "cuda" and count in (2, 4)
        alignment = min(element.size * count, 16) if wide else element.size
        size = element.size * count
        return _native._make_type_layout(
            kind="vector", name="vector", full_name=f"vector<{name},{count}>", scalar=name, rows=1, cols=count,
            size=size, stride=_align(size, alignment), alignment=alignment, element=element,
            element_stride=element.size,
        )  # fmt: skip

    def matrix(self, name: str, rows: int, cols: int, row_major: bool = True) -> Any:
        item = self.scalar(name).size
        return _native._make_type_layout(
            kind="matrix", name="matrix", full_name=f"matrix<{name},{rows},{cols}>", scalar=name, rows=rows, cols=cols,
            size=item * rows * cols, alignment=item, row_major=row_major,
            element_stride=item * (cols if row_major else rows),
        )  # fmt: skip

    def array(self, element: Any, count: int) -> Any:
        return _native._make_type_layout(
            kind="array", name="", full_name=f"{element.full_name}[{count}]", size=element.stride * count,
            alignment=element.alignment, element=element, element_stride=element.stride, element_count=count,
        )  # fmt: skip

    def pointer(self) -> Any:
        return _native._make_type_layout(kind="pointer", name="Ptr", full_name="Ptr<float>", size=8, alignment=8)

    def struct(self, name: str, **fields: Any) -> Any:
        entries, offset, alignment = [], 0, 1
        for field, layout in fields.items():
            offset = _align(offset, layout.alignment)
            entries.append({"name": field, "type": layout, "offset": offset})
            offset += layout.size
            alignment = max(alignment, layout.alignment)
        return _native._make_type_layout(
            kind="struct", name=name, size=offset, stride=_align(offset, alignment), alignment=alignment, fields=entries
        )

    def material(self) -> Any:
        """struct Mat { float3 albedo; int id; float w[2]; }"""
        return self.struct(
            "Mat", albedo=self.vector("float", 3), id=self.scalar("int"), w=self.array(self.scalar("float"), 2)
        )

    def cursor(self, layout: Any, count: int = 1) -> Any:
        return _native.BufferCursor(_native.DeviceType.cpu, layout, count)


def resource(
    name: str, shape: str = "structured_buffer", access: str = "read", kind: str = "resource", **extra: Any
) -> Any:
    """A parameter that takes one slot and no bytes."""
    return _native._make_type_layout(
        kind=kind, name=name, resource_shape=shape, resource_access=access, slot_count=1, **extra
    )
