"""What a device tells about its kernels: times of compilation, the disk cache."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from slangpy.compiler.cache import cache_of
from slangpy.compiler.reports import Built

if TYPE_CHECKING:
    from slangpy.device.device import Device


@dataclass(frozen=True)
class ShaderCacheStats:
    """`entry_count` kernels lie in the disk cache; the counts of hits and misses are those of one device object."""

    entry_count: int
    hit_count: int
    miss_count: int


def shader_cache_stats(device: Device) -> ShaderCacheStats:
    """Kernels in the disk cache, and how many of this device's came from it or had to be compiled."""
    compiled, created = device._kernel_counts
    return ShaderCacheStats(
        entry_count=cache_of(device).count("kernel"), hit_count=max(created - compiled, 0), miss_count=compiled
    )


def _merged(builds: list[Built], label: str, alive: bool) -> dict[str, Any]:
    """The report on one program: totals, and one entry for each entry point and each pipeline."""
    slang = sum(build.time("front_end", "code_generation") for build in builds)
    downstream = sum(build.time("downstream") for build in builds)
    pipeline = sum(build.time("pipeline") for build in builds)
    return {
        "label": label, "alive": alive, "create_time": sum(sum(build.seconds.values()) for build in builds),
        "compile_time": slang + downstream, "compile_slang_time": slang, "compile_downstream_time": downstream,
        "create_pipeline_time": pipeline, "entry_point_reports": [_entry_point(build) for build in builds],
        "pipeline_reports": [_pipeline(build) for build in builds if build.ended],
    }  # fmt: skip


def _entry_point(build: Built) -> dict[str, Any]:
    steps = ("front_end", "code_generation", "downstream", "cache_read")
    seconds = build.time(*steps)
    return {
        "name": build.entry_point, "start_time": build.started, "end_time": build.started + int(seconds * 1e9),
        "create_time": seconds, "compile_time": build.time("front_end", "code_generation", "downstream"),
        "compile_slang_time": build.time("front_end", "code_generation"),
        "compile_downstream_time": build.time("downstream"), "is_cached": build.is_cached, "cache_size": build.size,
    }  # fmt: skip


def _pipeline(build: Built) -> dict[str, Any]:
    seconds = build.time("pipeline")
    return {
        "type": "compute", "start_time": build.ended - int(seconds * 1e9), "end_time": build.ended,
        "create_time": seconds, "is_cached": build.is_cached, "cache_size": build.size,
    }  # fmt: skip


def all_reports(device: Device) -> list[dict[str, Any]]:
    """`Device.get_compilation_reports`."""
    groups: dict[int, list[Built]] = {}
    for build in _builds(device):
        groups.setdefault(id(build.program) if build.program is not None else id(build), []).append(build)
    return [_merged(builds, builds[0].label, _is_alive(builds[0])) for builds in groups.values()]


def _builds(device: Device) -> list[Built]:
    if device.is_closed:
        raise RuntimeError("device is closed")
    if not device.desc.enable_compilation_reports:
        raise RuntimeError("get_compilation_reports: open the device with enable_compilation_reports=True")
    return list(device._state.reports)


def _is_alive(build: Built) -> bool:
    return build.program is None or build.program() is not None


def program_report(program: Any) -> dict[str, Any]:
    """`ShaderProgram.get_compilation_report`: zeros before anything was compiled."""
    own = [build for build in _builds(program.device) if build.program is not None and build.program() is program]
    names = list(program.entry_point_names)
    return _merged(own, own[0].label if own else names[0] if names else "", True)
