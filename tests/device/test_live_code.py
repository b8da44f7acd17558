"""`LiveCode`: sources that are edited while a program runs."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest

import slangpy as spy
from slangpy.device.live import LiveCode

pytestmark = pytest.mark.one


def test_errors_of_several_sources(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Of modules and of users' sessions: each stays until its own source is mended, is said once, and ends with its owner."""
    names = ("called", "first", "second")
    paths = {name: tmp_path / f"{name}.slang" for name in names}
    good = "RWStructuredBuffer<int> out; [shader(\"compute\")] [numthreads(1, 1, 1)] void main() { out[0] = %s; }"
    for path in paths.values():
        path.write_text(good % 1)
    with spy.Device(type=spy.DeviceType.null, compiler_options={"include_paths": [tmp_path]}) as device:
        module = spy.Module.load_from_file(device, "called.slang")
        sessions = {name: device.create_slang_session({"include_paths": [tmp_path]}) for name in names[1:]}
        kernels = {
            name: device.create_compute_kernel(session.load_program(name, ["main"])) for name, session in sessions.items()
        }
        live = LiveCode(device)

        def broken(name: str = "", text: str = "") -> list[str]:
            if name:
                paths[name].write_text(text)
                live.refresh()
            return [name for name in names if f"'{name}_gone'" in live.error]

        for name in names:
            assert broken(name, good % f"{name}_gone") == [*names[: names.index(name) + 1]]
        assert broken("first", good % 1) == ["called", "second"]  # as it was read
        assert broken("called", good % 2) == ["second"]
        assert broken("first", good % "first_gone") == ["first", "second"]
        del sessions["second"], kernels["second"]
        gc.collect()
        assert broken() == ["first"]
        assert broken("first", good % 2) == [] and live.error == ""
        assert [record.message.count("_gone'") for record in caplog.records] == [1] * 4
        assert module.name == "called.slang"  # held until now


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
