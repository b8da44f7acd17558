"""What the callbacks about recorded commands are given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from slangpy._native import CommandBuffer

if TYPE_CHECKING:
    from slangpy.device.device import Device


@dataclass(frozen=True)
class CommandRecordingEvent:
    """What the callbacks about command buffers are given. `submit_id` is 0 for discarded ones."""

    device: Device
    id: int
    command_buffer: CommandBuffer | None
    submit_id: int
