"""Where calls without tensors run."""

from __future__ import annotations

from slangpy import _native
from slangpy.device import Device
from slangpy.pytorch.raw.tensors import torch_module


def default_device() -> tuple[str, int]:
    """Where calls without tensors run: torch's current CUDA device, the first one, or the CPU."""
    torch = torch_module()
    if torch is not None:
        return ("cuda", torch.cuda.current_device()) if torch.cuda.is_available() else ("cpu", 0)
    try:
        adapters = Device.enumerate_adapters(_native.DeviceType.cuda)
    except RuntimeError:
        adapters = []
    return ("cuda", 0) if adapters else ("cpu", 0)
