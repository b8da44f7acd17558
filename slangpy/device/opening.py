"""Opening the best device there is."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any

from slangpy._native import DeviceType, NativeHandle
from slangpy.base.folders import LIBRARY, path_list
from slangpy.base.keywords import checked_keywords
from slangpy.config import config
from slangpy.device.device import Device, device_type

SHADER_PATH = LIBRARY
"""Folder of the Slang library that comes with the package."""


@checked_keywords
def create_device(
    type: DeviceType | str = DeviceType.automatic,
    enable_debug_layers: bool = False,
    adapter_luid: Sequence[int] | None = None,
    include_paths: Sequence[str | os.PathLike[str]] | str | os.PathLike[str] = (),
    enable_cuda_interop: bool = False,
    enable_print: bool = False,
    enable_hot_reload: bool = True,
    enable_compilation_reports: bool = False,
    existing_device_handles: Sequence[NativeHandle] | None = None,
    bindless_options: Any = None,
    label: str = "",
) -> Device:
    """Opens a device: the best there is for `automatic` (CUDA, D3D12, Vulkan on hardware, CPU). Names do for types: "cpu".

    The package's Slang folder and then `include_paths` are searched for modules. The environment variable
    SLANGPY_DEVICE_TYPE_OVERRIDE, a name of `DeviceType`, replaces `type`. RuntimeError says what is missing when a type
    given cannot be opened.
    """
    _reload_before_cells()
    override = config.device_type_override
    if override in DeviceType.__members__:
        type = DeviceType[override]
    type = device_type(type) if isinstance(type, str) else type
    return Device(
        type=type,
        enable_debug_layers=enable_debug_layers,
        adapter_luid=adapter_luid,
        compiler_options={"include_paths": [SHADER_PATH, *path_list(include_paths, "create_device")]},
        enable_cuda_interop=enable_cuda_interop,
        enable_print=enable_print,
        enable_hot_reload=enable_hot_reload,
        enable_compilation_reports=enable_compilation_reports,
        existing_device_handles=existing_device_handles,
        bindless_options=bindless_options,
        label=label,
    )


_in_notebook = False


def _reload_before_cells() -> None:
    """In a notebook kernel: changed modules are replaced before each cell runs."""
    global _in_notebook
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None and not _in_notebook else None
    if shell is None or not hasattr(shell, "kernel"):
        return
    _in_notebook = True

    def check(*_: Any) -> None:
        for device in Device.get_created_devices():
            if not device.is_closed:
                device.hot_reload_check()

    shell.events.register("pre_run_cell", check)
