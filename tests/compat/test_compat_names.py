"""Every public name of shader-slang/slangpy works, or says what to use instead."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from typing import Any

import pytest

import slangpy as spy
from slangpy import compat

pytestmark = pytest.mark.one

TOOL = Path(__file__).resolve().parents[2] / "tools" / "name_table.py"


def test_no_name_is_absent() -> None:
    tool = runpy.run_path(str(TOOL))
    absent = [
        f"{owner}.{name}"
        for owner, names in tool["public_names"]().items()
        for name in names
        if tool["state"](owner, name) == "absent"
    ]
    assert absent == []


@pytest.mark.parametrize("name", sorted(compat.CLASSES))
def test_classes_refuse(name: str) -> None:
    with pytest.raises(NotImplementedError, match=rf"slangpy\.{name} is not implemented; "):
        getattr(spy, name)()
    with pytest.raises(NotImplementedError, match=rf"slangpy\.{name}\.member is not implemented; "):
        getattr(spy, name).member


def test_modules_refuse() -> None:
    for name in compat.MODULES:
        with pytest.raises(NotImplementedError, match="is not implemented; "):
            getattr(spy, name).member


def test_members_refuse(device: spy.Device) -> None:
    objects: dict[str, Any] = {"Device": device, "CommandEncoder": device.create_command_encoder()}
    for owner, names in compat.METHODS.items():
        for name in names:
            with pytest.raises(NotImplementedError):
                getattr(objects[owner], name)()


def test_clock_and_platform_and_keys() -> None:
    start = spy.Timer.now()
    assert spy.Timer.delta_ns(start, start + 1500) == 1500 and spy.Timer.delta_us(start, start + 1500) == 1.5
    assert spy.Timer.delta_ms(0, 2_000_000) == 2.0 and spy.Timer.delta_s(0, 3_000_000_000) == 3.0
    assert spy.platform.page_size >= 4096 and spy.platform.executable_path == Path(sys.executable)
    assert spy.platform.home_directory == Path.home() and spy.platform.runtime_directory.name == "slangpy"
    stats = spy.platform.memory_stats()
    assert stats.peak_rss >= stats.rss > 0
    assert (spy.KeyCode.a, spy.KeyCode.escape, spy.KeyCode.f12, spy.KeyCode.right_super) == (65, 256, 286, 311)
    assert str(spy.KeyCode.f12) == "KeyCode.f12"


def test_callbacks_may_be_unregistered_twice(device: spy.Device) -> None:
    number = device.register_command_recording_submitted_callback(lambda event: None)
    for _ in range(2):
        device.unregister_command_recording_submitted_callback(number)
    device.unregister_command_recording_discarded_callback(12345)
    encoder = device.create_command_encoder()
    queue, recording = encoder.queue, encoder.recording_id
    buffer = encoder.finish()
    assert buffer.queue == queue and buffer.recording_id == recording
