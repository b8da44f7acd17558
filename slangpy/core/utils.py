"""Devices and layouts, by their older path."""

from typing import Any

from ..device import create_device as create_device
from ..torchintegration import create_torch_device as create_torch_device

__all__ = ["create_device", "create_torch_device", "find_type_layout_for_buffer"]


def find_type_layout_for_buffer(program_layout: Any, slang_type: Any) -> Any:
    """Layout of one element of a buffer of `slang_type`: a type name, a `SlangType` or a `Struct` of `program_layout`."""
    if isinstance(slang_type, str):
        return program_layout.require_type_by_name(slang_type).element_layout
    type_ = getattr(slang_type, "struct", slang_type)
    if hasattr(type_, "element_layout"):
        return type_.element_layout
    return program_layout.find_element_layout(type_)
