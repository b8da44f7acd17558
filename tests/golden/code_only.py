"""Enough of a device to plan calls and write their kernels: for any target, on any machine, without compiling them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import slangpy as spy
from slangpy.device.state import DeviceState
from slangpy.plan.planner import decode
from slangpy.run.plans import PlanView, request_of
from slangpy.run.results import result_mode


class CodeOnly:
    """A device of which only the target is known."""

    plans_for_others = True  # structs of the arguments are laid out as on their own device

    def __init__(self, format: str, capabilities: tuple[str, ...] = ()) -> None:
        names = {"cpp": "__TARGET_CPU__", "cuda": "__TARGET_CUDA__", "spirv": "__TARGET_VULKAN__"}
        self.compile_target = SimpleNamespace(
            format=format, profile="spirv_1_5" if format == "spirv" else "", capabilities=list(capabilities),
            defines={names[format]: "1"},
        )  # fmt: skip
        kind = {"cpp": spy.DeviceType.cpu, "cuda": spy.DeviceType.cuda, "spirv": spy.DeviceType.vulkan}[format]
        self.info = SimpleNamespace(
            type=kind, api_name=kind.name, limits=SimpleNamespace(max_compute_threads_per_group=1024)
        )
        self.compiler_fingerprint = "none"
        self.supported_shader_model = spy.ShaderModel.sm_6_0
        self.desc = spy.DeviceDesc(enable_hot_reload=False)
        self._state = DeviceState()

    def get_format_support(self, format: Any) -> Any:
        """All formats are stored to."""
        del format
        return spy.FormatSupport.shader_uav_store

    def _expect_compile(self, beginning: bytes, **options: Any) -> None:
        """No kernel is compiled."""
        del beginning, options

    def has_feature(self, feature: Any) -> bool:
        del feature
        return True


def plan_of(function: Any, arguments: tuple[Any, ...], named: dict[str, Any], deterministic: bool = False) -> PlanView:
    """The plan of a call, as far as it needs no compiled kernel."""
    description = function._describe(*arguments, **named)
    given = named.get("_result")
    planned = decode(description)
    if function.options.second:  # only torch asks for those
        for argument in planned:
            if argument.value.kind == "tensor":
                argument.value.details["torch"] = True
    mode = result_mode(given if isinstance(given, (str, type)) else None, function, planned)
    return PlanView(request_of(function, planned, mode, deterministic=deterministic))
