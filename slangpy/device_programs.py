"""Methods of `Device` that lead to the program layer. `slangpy.device` hands them on."""

from __future__ import annotations

from typing import Any

from slangpy._native import Device


def _torch_device(device: Device) -> Any:
    try:
        import torch  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise ImportError(f"Device.torch_device needs torch: pip install torch ({error})") from None
    if device.supports_cuda_interop:
        return torch.device("cuda", device._cuda_index)
    return torch.device("cpu")  # graphics devices without CUDA copy


def _slang_session(device: Device) -> Any:
    if device.is_closed:
        raise RuntimeError("device is closed")
    state = device.__dict__
    if "_state_session" not in state:
        desc = device.desc
        state["_state_session"] = _new_session(device, desc.compiler_options, True, desc.module_cache_path, True)
    return state["_state_session"]


def _new_session(
    device: Device, options: Any, add_default_include_paths: bool, cache_path: Any, held_by_device: bool = False
) -> Any:
    from slangpy import session

    return session.create_session(device, options, add_default_include_paths, cache_path, held_by_device)


def _create_slang_session(
    device: Device, compiler_options: Any = None, add_default_include_paths: bool = True, cache_path: Any = None
) -> Any:
    if device.is_closed:
        raise RuntimeError("device is closed")
    return _new_session(device, compiler_options, add_default_include_paths, cache_path)


def _load_module(device: Device, name: str) -> Any:
    return device.slang_session.load_module(name)


def _load_module_from_source(device: Device, name: str, source: str, path: Any = None) -> Any:
    return device.slang_session.load_module_from_source(name, source, path)


def _compose_modules(device: Device, name: str, modules: Any, type_conformances: Any = ()) -> Any:
    return device.slang_session.compose_modules(name, modules, type_conformances)


def _link_program(device: Device, modules: Any, entry_points: Any, link_options: Any = None) -> Any:
    return device.slang_session.link_program(modules, entry_points, link_options)


def _load_program(
    device: Device, module_name: str, entry_point_names: Any, additional_source: Any = None, link_options: Any = None
) -> Any:
    return device.slang_session.load_program(module_name, entry_point_names, additional_source, link_options)


def _create_compute_pipeline(
    device: Device, program: Any, defer_target_compilation: bool = False, label: str | None = None
) -> Any:
    from slangpy import kernel

    return kernel.create_compute_pipeline(device, program, defer_target_compilation, label)


def _create_compute_kernel(device: Device, program: Any) -> Any:
    from slangpy import kernel

    return kernel.create_compute_kernel(device, program)


def _create_root_shader_object(device: Device, program: Any) -> Any:
    from slangpy import kernel

    return kernel.create_root_shader_object(device, program)


def _create_shader_object(device: Device, type_layout: Any) -> Any:
    from slangpy import kernel

    return kernel.create_shader_object(device, type_layout)
