"""Devices: opening and closing, the current device, callbacks, and the way to the program layer."""

from slangpy._native import ALL_LAYERS, ALL_MIPS
from slangpy.compiler.modules.reload import ShaderHotReloadEvent
from slangpy.device.commands import CommandRecordingEvent
from slangpy.device.cuda import get_cuda_current_context_native_handles
from slangpy.device.current import (
    compose_modules,
    create_acceleration_structure,
    create_acceleration_structure_instance_list,
    create_buffer,
    create_command_encoder,
    create_compute_kernel,
    create_compute_pipeline,
    create_coop_vec_matrix_desc,
    create_fence,
    create_input_layout,
    create_query_pool,
    create_ray_tracing_pipeline,
    create_render_pipeline,
    create_root_shader_object,
    create_sampler,
    create_shader_object,
    create_shader_table,
    create_slang_session,
    create_surface,
    create_texture,
    current_device,
    link_program,
    load_module,
    load_module_from_source,
    load_program,
    pop_current_device,
    push_current_device,
)
from slangpy.device.device import Device
from slangpy.device.memory import MemoryUsage
from slangpy.device.opening import SHADER_PATH, create_device
from slangpy.device.profile import Profile, ProfileEvent, ProfileRow
from slangpy.device.reports import ShaderCacheStats
from slangpy.device.surface import WindowHandle

__all__ = [
    "ALL_LAYERS",
    "ALL_MIPS",
    "SHADER_PATH",
    "CommandRecordingEvent",
    "Device",
    "MemoryUsage",
    "Profile",
    "ProfileEvent",
    "ProfileRow",
    "ShaderCacheStats",
    "ShaderHotReloadEvent",
    "WindowHandle",
    "compose_modules",
    "create_acceleration_structure",
    "create_acceleration_structure_instance_list",
    "create_buffer",
    "create_command_encoder",
    "create_compute_kernel",
    "create_compute_pipeline",
    "create_coop_vec_matrix_desc",
    "create_device",
    "create_fence",
    "create_input_layout",
    "create_query_pool",
    "create_ray_tracing_pipeline",
    "create_render_pipeline",
    "create_root_shader_object",
    "create_sampler",
    "create_shader_object",
    "create_shader_table",
    "create_slang_session",
    "create_surface",
    "create_texture",
    "current_device",
    "get_cuda_current_context_native_handles",
    "link_program",
    "load_module",
    "load_module_from_source",
    "load_program",
    "pop_current_device",
    "push_current_device",
]
