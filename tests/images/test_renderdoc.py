"""`renderdoc` and `crashpad`: without RenderDoc, and in a process that has loaded a stand-in for it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import slangpy as spy

pytestmark = pytest.mark.null

CAPTURE = """
import ctypes, sys
import slangpy as spy
device = spy.create_device(type=spy.DeviceType.null)
print(spy.renderdoc.is_available())
ctypes.CDLL(sys.argv[1])
print(spy.renderdoc.is_available(), spy.renderdoc.is_frame_capturing(), spy.renderdoc.end_frame_capture())
print(spy.renderdoc.start_frame_capture(device), spy.renderdoc.is_frame_capturing())
print(spy.renderdoc.end_frame_capture(), spy.renderdoc.is_frame_capturing())
"""


def test_without_renderdoc() -> None:
    device = spy.create_device(type=spy.DeviceType.null)
    assert spy.renderdoc.is_available() is False and spy.renderdoc.start_frame_capture(device) is False
    assert spy.renderdoc.start_frame_capture(device=device, window=None) is False
    assert spy.renderdoc.is_frame_capturing() is False and spy.renderdoc.end_frame_capture() is False
    with pytest.raises(TypeError, match="start_frame_capture: 'device' must be a Device, got 3"):
        spy.renderdoc.start_frame_capture(3)  # type: ignore[arg-type]


@pytest.mark.skipif(sys.platform == "win32" or not shutil.which("cc"), reason="makes a library with cc")
def test_with_a_stand_in(tmp_path: Path) -> None:
    library = tmp_path / "librenderdoc.so"
    source = Path(__file__).with_name("renderdoc_stand_in.c")
    named = "-Wl,-soname,librenderdoc.so"
    subprocess.run(["cc", "-shared", "-fPIC", named, "-o", str(library), str(source)], check=True, timeout=60)
    done = subprocess.run(
        [sys.executable, "-c", CAPTURE, str(library)], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.stdout.split("\n")[:4] == ["False", "True False False", "True True", "True False"], done.stderr


def test_crashpad() -> None:
    assert spy.crashpad.is_supported() is False
    with pytest.raises(NotImplementedError, match=r"use faulthandler\.enable\(\)"):
        spy.crashpad.start_handler("handler", database="", annotations={"a": "b"})


def test_what_may_be_called() -> None:
    platform = spy.platform
    assert platform.display_scale_factor() == platform.display_scale_factor == 1.0
    assert platform.executable_name() == platform.executable_path().name
    for folder in ("executable_directory", "home_directory", "runtime_directory", "app_data_directory"):
        value = getattr(platform, folder)
        assert value() == value and type(value()) is type(Path())
