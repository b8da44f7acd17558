"""torch tensors in and out, by the older path of `slangpy.pytorch.integration`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .pytorch import integration
from .pytorch.integration import (
    copy_buffer_to_torch_tensor as copy_buffer_to_torch_tensor,
    copy_torch_tensor_to_buffer as copy_torch_tensor_to_buffer,
    create_torch_device as create_torch_device,
    get_torch_bridge_fallback_reason as get_torch_bridge_fallback_reason,
    is_torch_bridge_available as is_torch_bridge_available,
    is_torch_bridge_using_fallback as is_torch_bridge_using_fallback,
    is_torch_tensor as is_torch_tensor,
    set_torch_bridge_python_fallback as set_torch_bridge_python_fallback,
)

if TYPE_CHECKING:
    from .pytorch.integration import diff_pair as diff_pair


def __getattr__(name: str) -> Any:  # `diff_pair` imports torch
    return getattr(integration, name)
