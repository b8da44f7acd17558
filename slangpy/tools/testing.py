"""Helpers for tests of code that uses slangpy: code generation for devices that the machine does not have."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from .. import _native
from ..compiler.session import ShaderModel
from ..device.backends import configure_cuda
from ..device.state import DeviceState
from ..module import Module
from ..plan.planner import decode
from ..run.plans import PlanView, request_of
from ..run.results import result_mode_of


class _Target:
    """Enough of a device to generate code for it."""

    def __init__(self, format: str, defines: dict[str, str]) -> None:
        self.format = format
        self.profile = ""
        self.capabilities: list[str] = []
        self.defines = defines


class CudaCodegen:
    """Generates CUDA kernels and compiles them with NVRTC; runs nothing and needs no GPU.

    arch: "sm_75", "sm_80", "sm_90", ... Calls are planned with arguments of any open device.
    """

    plans_for_others = True  # structs of the arguments are laid out as on their own device

    def __init__(self, arch: str, include_paths: tuple[str, ...] = ()) -> None:
        configure_cuda()
        self.arch = arch
        self.info = SimpleNamespace(type=_native.DeviceType.cuda, limits=SimpleNamespace(max_compute_threads_per_group=1024))
        self.compile_target = _Target("cuda", {"__TARGET_CUDA__": "1"})
        self.compiler_fingerprint = f"nvrtc {arch}"
        self.supported_shader_model = ShaderModel.sm_6_0
        self.deterministic = False
        self.desc = _native.DeviceDesc(compiler_options={"include_paths": list(include_paths)}, enable_hot_reload=False)
        self._state = DeviceState()

    def compile(self, source: bytes, entry_point_name: str, *, label: str = "", **options: Any) -> bytes:
        """CUDA source to a cubin."""
        del options
        return _native.cuda_compile(source, entry_point_name, self.arch, label)

    def get_format_support(self, format: Any) -> Any:
        """What CUDA does with a format, as far as results depend on it."""
        stores = _native.get_format_info(format).channel_count in (1, 2, 4)
        return _native.FormatSupport.shader_uav_store if stores else _native.FormatSupport.none

    def create_kernel(self, code: bytes, layout: Any, label: str = "") -> bytes:
        del layout, label
        return code

    def plan(self, function: Any, *args: Any, **kwargs: Any) -> PlanView:
        """Plans `function` (of a module loaded on this object) for these arguments; `.code` is the text of its kernel."""
        description = function._describe(*args, **kwargs)
        mode = result_mode_of(kwargs.get("_result") if isinstance(kwargs.get("_result"), (str, type)) else None,
                              function.options.return_type)  # fmt: skip
        deterministic = self.deterministic and function.options.bwds
        return PlanView(request_of(function, decode(description), mode, deterministic=deterministic))

    def build(self, function: Any, *args: Any, **kwargs: Any) -> PlanView:
        """The same, with its kernel compiled."""
        view = self.plan(function, *args, **kwargs)
        view.build_spec()
        view.kernels.build_likely()
        return view

    def load_from_source(self, name: str, source: str) -> Module:
        return Module.load_from_source(self, name, source)


def nvrtc_available() -> bool:
    """Whether NVRTC can be opened here."""
    if not hasattr(_native, "cuda_compile"):
        return False
    configure_cuda()
    try:
        _native.cuda_compile(b'extern "C" __global__ void k() {}', "k", "sm_80")
    except RuntimeError:
        return False
    return True


__all__ = ["CudaCodegen", "nvrtc_available"]
