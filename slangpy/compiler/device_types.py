"""The compiler's part of a device's built-in types: their reflection, and their layouts on disk."""

from __future__ import annotations

from typing import Any

from .. import _native
from ..reflection.dtypes import DeviceTypes
from .cache import cache_of, digest
from .package_files import library_hash, planner_hash
from .session import create_session


def _empty_program(device: Any) -> Any:
    """Layout of an empty module."""
    return create_session(device, held_by_device=True).load_module_from_source("_spy_types", "").layout


def _stored_layout(types: DeviceTypes, full_name: str) -> Any:
    """Layout of a built-in type from the disk cache, else from the compiler."""
    target = types.device.compile_target
    key = digest("element layout", library_hash(), planner_hash(), target.format, target.profile, full_name)
    cache = cache_of(types.device, "module_cache")
    stored = cache.read_bytes("layout", key)
    if stored is not None:
        return _native.TypeLayout.deserialize(stored)
    reflection = types.find_reflection(full_name)
    if reflection is None:
        return None
    layout = types.find_element_layout(reflection)
    cache.write_bytes("layout", key, layout.serialize())
    return layout


DeviceTypes.empty_program = staticmethod(_empty_program)
DeviceTypes.stored_layout = staticmethod(_stored_layout)
