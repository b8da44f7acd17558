"""What slangpy offers beside torch: devices that share its memory, `diff_pair`, copies between tensors and buffers.

Importing this module does not import torch; its functions do.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _native
from .._native import DeviceType, is_torch_bridge_using_fallback, set_torch_bridge_python_fallback
from ..base.folders import path_list
from ..base.keywords import checked_keywords
from ..base.optional import torch_for
from ..device import SHADER_PATH, Device
from ..device.device import device_type
from ..errors import NativeValueError
from ..run import torch_side

if TYPE_CHECKING:
    from .autograd import diff_pair as diff_pair


def _torch(what: str) -> Any:
    return torch_for(f"slangpy.{what}")


def __getattr__(name: str) -> Any:  # torch is imported when it is asked for
    if name == "diff_pair":
        _torch(name)
        return importlib.import_module(".autograd", __package__).diff_pair
    raise AttributeError(f"module 'slangpy.pytorch.integration' has no attribute '{name}'")


def _pair(primal: Any, tangent: Any) -> Any:
    return __getattr__("diff_pair")(primal, tangent)


torch_side.give(
    torch_side.TorchSide(
        records_gradients=lambda: _torch("is_grad_enabled").is_grad_enabled(),
        empty=lambda device: _torch("Tensor").empty(0, device=device.torch_device),
        note_written=lambda tensor: _torch("autograd").autograd.graph.increment_version(tensor),
        pair=_pair,
    )
)


def is_torch_bridge_available() -> bool:
    """Whether torch can be imported."""
    try:
        _torch("is_torch_bridge_available")
    except ImportError:
        return False
    return True


def get_torch_bridge_fallback_reason() -> str:
    """Why tensors are read through Python attributes; empty when they are read through torch's C interface."""
    if is_torch_bridge_using_fallback():
        return "set_torch_bridge_python_fallback(True) was called"
    try:
        torch = _torch("get_torch_bridge_fallback_reason")
    except ImportError as error:
        return str(error)
    if not hasattr(torch.Tensor, "__dlpack_c_exchange_api__"):
        return f"torch {torch.__version__} has no DLPack C exchange interface"
    return ""


def is_torch_tensor(value: Any) -> bool:
    """Whether `value` is a torch tensor (subclasses too). Does not import torch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def _bytes_of(torch: Any, tensor: Any, buffer: Any, what: str) -> Any:
    if not isinstance(tensor, torch.Tensor):
        raise TypeError(f"{what}: expected a torch.Tensor, got {type(tensor).__name__}")
    if not isinstance(buffer, _native.Buffer):
        raise TypeError(f"{what}: expected a Buffer, got {type(buffer).__name__}; of a Tensor pass its storage")
    info = buffer.device.info
    if tensor.device.type == "cpu" and buffer.device.torch_device.type != "cpu":
        raise RuntimeError(
            f"{what}: expected a CUDA tensor for a buffer on a {info.type.name} device, got one on the CPU; pass .cuda()"
        )
    if tensor.nbytes > buffer.size:
        raise NativeValueError(
            f"{what}: Buffer is too small: the tensor has {tensor.nbytes} bytes, the buffer {buffer.size}"
        )
    _native._check_torch_storage(tensor, what)
    return tensor.detach().contiguous().reshape(-1).view(torch.uint8)


def _shared_bytes(torch: Any, buffer: Any, size: int, tensor: Any) -> Any:
    """The buffer's first bytes as a torch tensor over the same memory; None where torch cannot reach it."""
    device = buffer.device
    if device.info.type.name not in ("cpu", "cuda"):
        if not device.supports_cuda_interop or not buffer.desc.usage & _native.BufferUsage.shared:
            return None
        shared = buffer.to_torch()[:size]
        device.sync_to_device(torch.cuda.current_stream(shared.device).cuda_stream)  # after the device's work
        return shared
    if tensor.device.type == "cuda":
        torch.cuda.current_stream(tensor.device)  # the copy runs there; to_torch orders it after the device's work
    return buffer.to_torch(torch.uint8)[:size]


def copy_torch_tensor_to_buffer(tensor: Any, buffer: Any) -> None:
    """Copies the elements of a tensor, in order and without gaps, to the start of a buffer, on torch's current stream.

    ValueError when the tensor is larger than the buffer; RuntimeError for CPU tensors where the device takes CUDA tensors.
    """
    torch = _torch("copy_torch_tensor_to_buffer")
    source = _bytes_of(torch, tensor, buffer, "copy_torch_tensor_to_buffer")
    if source.numel() == 0:
        return
    target = _shared_bytes(torch, buffer, source.numel(), tensor)
    if target is None:
        buffer.copy_from_numpy(source.cpu().numpy())
        return
    target.copy_(source)
    if target.device.type == "cuda":
        buffer.device.sync_to_cuda(torch.cuda.current_stream(target.device).cuda_stream)


def copy_buffer_to_torch_tensor(buffer: Any, tensor: Any) -> None:
    """Fills a tensor with the first bytes of a buffer, on torch's current stream.

    ValueError when the tensor is larger than the buffer; RuntimeError for CPU tensors where the device takes CUDA tensors.
    """
    torch = _torch("copy_buffer_to_torch_tensor")
    target = _bytes_of(torch, tensor, buffer, "copy_buffer_to_torch_tensor")  # a copy, where the tensor has gaps
    if target.numel() == 0:
        return
    source = _shared_bytes(torch, buffer, target.numel(), tensor)
    if source is None:
        source = torch.from_numpy(np.frombuffer(buffer.to_numpy().tobytes(), np.uint8).copy())[: target.numel()]
    target.copy_(source)
    if not tensor.is_contiguous():
        tensor.detach().copy_(target.view(tensor.dtype).view(tensor.shape))
    torch.autograd.graph.increment_version(tensor)


@checked_keywords
def create_torch_device(
    type: Any = None,
    torch_device: Any = None,
    enable_debug_layers: bool = False,
    include_paths: Any = (),
    enable_print: bool = False,
    enable_hot_reload: bool = True,
    enable_compilation_reports: bool = False,
    label: str = "",
) -> Device:
    """A device whose memory torch shares: CUDA where torch has it, else the CPU.

    A Vulkan device is opened with CUDA interop: tensors are copied on torch's stream.

    torch_device selects the GPU: int, "cuda:1" or torch.device; None is torch's current one. Vulkan and D3D12 open the
    same GPU where torch has CUDA. The caller's current CUDA device stays as it is. ImportError without torch;
    RuntimeError when `type` is CUDA and torch has none, or when no adapter is that GPU; ValueError for a torch_device
    that `type` cannot serve.
    """
    torch = _torch("create_torch_device")
    type = DeviceType.automatic if type is None else device_type(type) if isinstance(type, str) else type
    if type == DeviceType.automatic:
        type = DeviceType.cuda if torch.cuda.is_available() else DeviceType.cpu
    return Device(
        type=type,
        enable_debug_layers=enable_debug_layers,
        compiler_options={"include_paths": [SHADER_PATH, *path_list(include_paths, "create_torch_device")]},
        enable_print=enable_print,
        enable_hot_reload=enable_hot_reload,
        enable_compilation_reports=enable_compilation_reports,
        label=label,
        **_adapter_of(torch, torch_device, type),
    )


def _adapter_of(torch: Any, torch_device: Any, type: Any) -> dict[str, Any]:
    """The adapter that a device must open for torch to reach its memory."""
    if type == DeviceType.cuda:
        return {"adapter_luid": _cuda_adapter(torch, torch_device).luid}
    if type == DeviceType.cpu or (torch_device is not None and not torch.cuda.is_available()):
        _check_cpu(torch, torch_device, type)
    elif torch.cuda.is_available():
        return {"adapter_luid": _graphics_adapter(type, _cuda_adapter(torch, torch_device)), "enable_cuda_interop": True}
    return {}


def _check_cpu(torch: Any, torch_device: Any, type: Any) -> None:
    found = torch.device("cpu") if torch_device is None else _named_device(torch, torch_device)
    if found.type != "cpu":
        raise ValueError(
            f"create_torch_device: torch_device is {found}, but a {type.name} device takes CPU tensors here"
        )


def _graphics_adapter(type: Any, gpu: Any) -> Any:
    adapters = _native.Device.enumerate_adapters(type)
    for adapter in adapters:
        if list(adapter.luid) == list(gpu.luid):
            return adapter.luid
    names = ", ".join(adapter.name for adapter in adapters) or "none"
    raise RuntimeError(
        f"create_torch_device: no {type.name} adapter is torch's GPU {gpu.name}; the adapters are: {names}. "
        f"Open one of them with create_device(type=DeviceType.{type.name})"
    )


def _cuda_adapter(torch: Any, torch_device: Any) -> Any:
    if not torch.cuda.is_available():
        built = torch.version.cuda
        cause = f"it is built for CUDA {built}, but finds no GPU" if built else "it is built without CUDA"
        raise RuntimeError(
            f"create_torch_device: CUDA was asked for, but torch {torch.__version__} has no CUDA device ({cause}); "
            "use type=DeviceType.cpu"
        )
    index = torch.cuda.current_device() if torch_device is None else _cuda_index(torch, torch_device)
    if index >= torch.cuda.device_count():
        raise ValueError(f"create_torch_device: there is no cuda:{index}; torch finds {torch.cuda.device_count()} CUDA devices")
    torch.zeros(1, device=f"cuda:{index}")  # makes torch's context, which the device then shares
    adapters = _native.Device.enumerate_adapters(_native.DeviceType.cuda)
    if index >= len(adapters):
        raise ValueError(f"create_torch_device: there is no cuda:{index}; {len(adapters)} CUDA devices exist")
    return adapters[index]


def _named_device(torch: Any, torch_device: Any) -> Any:
    """The torch.device of an index of a GPU, a name or a torch.device."""
    form = "is an index, a name such as 'cuda:1' or a torch.device"
    if isinstance(torch_device, bool) or not isinstance(torch_device, (int, str, torch.device)):
        raise TypeError(f"create_torch_device: 'torch_device' {form}, got {torch_device!r}")
    try:
        return torch.device("cuda", torch_device) if isinstance(torch_device, int) else torch.device(torch_device)
    except RuntimeError as error:
        raise ValueError(f"create_torch_device: 'torch_device' {form}, got {torch_device!r}: {error}") from None


def _cuda_index(torch: Any, torch_device: Any) -> int:
    found = _named_device(torch, torch_device)
    if found.type != "cuda":
        raise ValueError(f"create_torch_device: torch_device is {found}, but type is cuda")
    return torch.cuda.current_device() if found.index is None else found.index


__all__ = [
    "copy_buffer_to_torch_tensor",
    "copy_torch_tensor_to_buffer",
    "create_torch_device",
    "diff_pair",
    "get_torch_bridge_fallback_reason",
    "is_torch_bridge_available",
    "is_torch_bridge_using_fallback",
    "is_torch_tensor",
    "set_torch_bridge_python_fallback",
]
