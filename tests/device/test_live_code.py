"""`LiveCode`: sources that are edited while a program runs."""

from __future__ import annotations

from pathlib import Path

import pytest

import slangpy as spy
from slangpy.device.live import LiveCode

pytestmark = pytest.mark.one


def test_edits_while_a_program_runs(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "edited.slang"
    path.write_text("int f(int x) { return x + 1; }")
    device = spy.create_device(spy.DeviceType.cpu, include_paths=[tmp_path])
    try:
        module = spy.Module.load_from_file(device, "edited.slang")
        live = LiveCode(device)
        seen: list[int] = []

        def step(text: str = "") -> tuple[bool, bool, int]:
            if text:
                path.write_text(text)
            return live.refresh(), live.attempt(lambda: seen.append(module.f(1))), seen[-1]

        assert step() == (False, True, 2) and live.error == ""
        assert step("int f(int x) { return x + 2; }") == (True, True, 3) and live.reloads == 1
        assert step("int f(int x) { return x +") == (False, True, 3)
        assert "edited.slang:1:26" in live.error and step() == (False, True, 3)
        assert step("int g(int x) { return x + 2; }") == (True, False, 3)
        assert live.error == "Module 'edited' has no function or type named 'f'"
        assert step() == (False, False, 3)
        assert [record.message.split(":")[0] for record in caplog.records] == [
            "hot reload failed, the old code keeps running", "the code that was reloaded fails",
        ]  # fmt: skip
        assert step("int f(int x) { return x + 3; }") == (True, True, 4) and live.error == ""
        with pytest.raises(ZeroDivisionError):  # no fault of new code
            live.attempt(lambda: 1 // 0)
    finally:
        device.close()
    with pytest.raises(TypeError, match="LiveCode: 'device' must be a Device, got 3"):
        LiveCode(3)
