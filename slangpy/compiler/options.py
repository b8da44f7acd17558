"""What compilers are told for a device, and the keys of all of it."""

from __future__ import annotations

import os
from typing import Any

from ..config import config
from .cache import digest
from .session import SlangCompilerOptions, SlangFloatingPointMode, SlangOptimizationLevel
from .text.prelude import prelude_key


def session_options(device: Any) -> dict[str, Any]:
    """The device's compiler options, with what functional calls take for those it leaves open."""
    options = SlangCompilerOptions.given(device.desc.compiler_options)
    options.setdefault(
        "optimization", SlangOptimizationLevel.high
    )  # level 1 gives SPIR-V that fails validation (Slang 2026.12)
    options.setdefault("disable_warnings", ["41012"])
    return options


def device_key(device: Any) -> str:
    """What of a device decides generated code: target, compiler, driver."""
    known = device._state.code_key
    if known is None:
        target = device.compile_target
        known = digest(
            target.format, target.profile, repr(sorted(target.capabilities)), repr(sorted(dict(target.defines).items())),
            device.compiler_fingerprint, prelude_key(target.format), repr(sorted(target_options(device).items())),
            options_key(device),
        )  # fmt: skip
        device._state.code_key = known
    return known


def options_key(device: Any) -> str:
    """What else a compiler session is told, and what Slang reads from the environment; without the include path."""
    options = SlangCompilerOptions.of(device.desc.compiler_options)
    values = {**vars(options), "include_paths": None, "defines": sorted(dict(options.defines).items())}
    environment = sorted(item for item in os.environ.items() if item[0].startswith("SLANG_"))
    return digest(repr(sorted(values.items())), repr(environment), config.rewrites)


def target_options(device: Any) -> dict[str, Any]:
    """What the downstream compiler is told, after the device's `compiler_options`. Sums and products are rounded one by
    one (the same bits on all devices) unless these ask for fast arithmetic."""
    options = SlangCompilerOptions.of(device.desc.compiler_options)
    mode = options.floating_point_mode
    lanes = {"lanes": config.cpu_lanes and options.cpu_lanes} if device.compile_target.format == "cpp" else {}
    return {
        **lanes,
        "float_mode": "uncontracted" if mode == SlangFloatingPointMode.default else mode.name,
        "optimization": int(options.optimization),
        "debug_info": int(options.debug_info) != 0,
        "downstream_args": list(options.downstream_args),
    }
