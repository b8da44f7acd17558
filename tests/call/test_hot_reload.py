"""Changed sources take effect before the next call (spec/calls.md 1.6)."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

import slangpy as spy

pytestmark = pytest.mark.needs_kernels


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "dep.slang").write_text("float k(float x) { return x * 2; }")
    (tmp_path / "main.slang").write_text("import dep;\nfloat f(float x) { return k(x) + 1; }")
    return tmp_path


def open_module(device_type: spy.DeviceType, folder: Path) -> spy.Module:
    device = spy.create_device(device_type, include_paths=[folder])
    return spy.Module.load_from_file(device, "main.slang")


def test_edits_change_the_next_call(device_type: spy.DeviceType, folder: Path) -> None:
    module = open_module(device_type, folder)
    f = module.f
    assert f(1.0) == 3.0
    (folder / "dep.slang").write_text("float k(float x) { return x * 3; }")
    assert f(1.0) == 4.0
    (folder / "main.slang").write_text("import dep;\nfloat f(float x) { return k(x) + 10; }")
    assert f(1.0) == 13.0
    assert module.f(2.0) == 16.0
    module.device.close()


def test_source_that_does_not_compile_keeps_the_old_code(
    device_type: spy.DeviceType, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    module = open_module(device_type, folder)
    assert module.f(1.0) == 3.0
    (folder / "main.slang").write_text("import dep;\nfloat f(float x) { return k(x) + ; }")
    with caplog.at_level(logging.ERROR, logger="slangpy"):
        assert module.f(1.0) == 3.0
        assert module.f(1.0) == 3.0
    assert len([r for r in caplog.records if "main.slang" in r.getMessage()]) == 1
    (folder / "main.slang").write_text("import dep;\nfloat f(float x) { return k(x) + 100; }")
    assert module.f(1.0) == 102.0
    module.device.close()


def test_callback_and_explicit_check(device_type: spy.DeviceType, folder: Path) -> None:
    module = open_module(device_type, folder)
    device = module.device
    seen: list[object] = []
    number = device.register_shader_hot_reload_callback(seen.append)
    assert module.f(1.0) == 3.0
    (folder / "dep.slang").write_text("float k(float x) { return x * 5; }")
    device.hot_reload_check()
    assert len(seen) == 1
    assert module.f(1.0) == 6.0
    device.unregister_shader_hot_reload_callback(number)
    device.close()


def test_new_functions_and_signatures_appear(device_type: spy.DeviceType, folder: Path) -> None:
    module = open_module(device_type, folder)
    assert module.f(1.0) == 3.0
    (folder / "main.slang").write_text(
        "import dep;\nfloat f(float x, float y) { return k(x) + y; }\nint g() { return 7; }"
    )
    assert module.f(1.0, 2.0) == 4.0
    assert module.g() == 7
    module.device.close()


def test_off_means_off(device_type: spy.DeviceType, folder: Path) -> None:
    device = spy.create_device(device_type, include_paths=[folder], enable_hot_reload=False)
    module = spy.Module.load_from_file(device, "main.slang")
    assert module.f(1.0) == 3.0
    (folder / "dep.slang").write_text("float k(float x) { return x * 3; }")
    assert module.f(1.0) == 3.0
    device.close()
