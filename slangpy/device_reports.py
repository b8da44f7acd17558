"""Methods of `Device` about hot reload, printing and reports. `slangpy.device` hands them on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from slangpy._native import Device
from slangpy.device_commands import _register, _unregister
from slangpy.log import log_info


@dataclass(frozen=True)
class ShaderCacheStats:
    """`entry_count` kernels lie in the disk cache; the counts of hits and misses are those of one device object."""

    entry_count: int
    hit_count: int
    miss_count: int


@dataclass(frozen=True)
class ShaderHotReloadEvent:
    """What the callbacks about hot reload are given, after changed modules have been replaced."""

    device: Device


def _reload_all_programs(device: Device) -> None:
    from slangpy.reload import reload_changed

    device.slang_session.reload()
    reload_changed(device, force=True)


def _hot_reload_check(device: Device) -> None:
    from slangpy.reload import reload_changed

    reload_changed(device)


def _set_hot_reload_delay(device: Device, delay_ms: int) -> None:
    # Checks cost one system call and wait for nothing, so there is no delay to keep; the value is only checked.
    if delay_ms < 0:
        raise ValueError(f"set_hot_reload_delay: expected milliseconds >= 0, got {delay_ms}")


def _register_shader_hot_reload_callback(device: Device, callback: Callable[[Any], Any]) -> int:
    state = device.__dict__
    state.setdefault("_state_reload_callbacks", {})
    return _register(device, "reload", callback)


def _unregister_shader_hot_reload_callback(device: Device, id: int) -> None:
    _unregister(device, "reload", id)


def _shader_cache_stats(device: Device) -> ShaderCacheStats:
    """Kernels in the disk cache, and how many of this device's came from it or had to be compiled."""
    if device.is_closed:
        raise RuntimeError("device is closed")
    from slangpy.cache import cache_of

    compiled, created = device._kernel_counts
    return ShaderCacheStats(
        entry_count=cache_of(device).count("kernel"), hit_count=max(created - compiled, 0), miss_count=compiled
    )


def _report_step(device: Device, step: str, label: str, seconds: float, size: int, hash: str = "") -> None:
    """Called by the native layer after each step of building a kernel, where compilation reports are enabled."""
    reports = device.__dict__.setdefault("_state_reports", [])
    last = next((report for report in reversed(reports) if report["label"] == label), None)
    if last is None or last["pipeline_time"] is not None:  # complete: this begins another kernel
        last = {
            "label": label, "type": "compute", "hash": "", "front_end_time": 0.0, "code_generation_time": 0.0,
            "downstream_time": 0.0, "cache_read_time": 0.0, "pipeline_time": None, "is_cached": True, "source_size": 0,
            "code_size": 0,
        }  # fmt: skip
        reports.append(last)
    if step == "pipeline":
        last["pipeline_time"] = seconds
        last["code_size"] = size
    else:
        last[f"{step}_time"] += seconds
        last["hash"] = hash or last["hash"]
        if step in ("code_generation", "downstream"):
            last["source_size"] = size
        last["is_cached"] = last["is_cached"] and step != "downstream"


def _get_compilation_reports(device: Device) -> list[dict[str, Any]]:
    """One dict for each kernel built since the device was opened, times in seconds and sizes in bytes.

    `hash` names the generated code; `is_cached`: the code came from the disk cache, in `cache_read_time`.
    """
    if device.is_closed:
        raise RuntimeError("device is closed")
    if not device.desc.enable_compilation_reports:
        raise RuntimeError("get_compilation_reports: open the device with enable_compilation_reports=True")
    return [dict(report) for report in device.__dict__.get("_state_reports", ())]


def _program_report(program: Any) -> list[dict[str, Any]]:
    """`ShaderProgram.get_compilation_report`: the reports of kernels made from the program's entry points."""
    from slangpy.cache import digest

    reports = _get_compilation_reports(program.device)
    hashes = {digest(program.code(index)) for index in range(len(program.entry_point_names))}
    return [report for report in reports if report["hash"] in hashes]


def _flush_print_to_string(device: Device) -> str:
    """What kernels have printed since the last flush; waits for them."""
    from slangpy.printing import flush

    return flush(device)


def _flush_print(device: Device) -> None:
    for line in _flush_print_to_string(device).splitlines():
        log_info(line)
