"""`python -m slangpy view`: which functions it takes, and the picture that it saves."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import slangpy as spy
from slangpy.tools.command_line import main
from slangpy.tools.view.controls import choose, functions_of, parse_settings

SOURCE = """
import slangpy.view;
float4 plain(uint2 pixel, [Range(-2, 6)] float a, [Default(0.25)] float2 b, [Range(0, 4)] uint3 c, int n = 20, bool on = true)
{
    return float4(a + pixel.x, b, on ? float(n + c.x) : 0);
}
float3 all_given(float2 pixel, float time, int2 mouse, float2 resolution) { return float3(pixel / resolution, time + mouse.y); }
float grey(int2 pixel, float gain) { return gain * (pixel.x + 2 * pixel.y); }
struct Point { float x; }
float no_pixel(float x) { return x; }
float4 wide(uint3 pixel) { return 0; }
int2 whole(uint2 pixel) { return int2(pixel); }
float4 written(uint2 pixel, out float x) { x = 0; return 0; }
float4 of_struct(uint2 pixel, Point p) { return p.x; }
float4 of_texture(uint2 pixel, Texture2D<float4> image) { return image[pixel]; }
float4 late(uint2 pixel, int time) { return time; }
float4 reversed(uint2 pixel, [Range(2, 1)] float a) { return a; }
float4 outside(uint2 pixel, [Range(0, 1)] [Default(3)] float a) { return a; }
float4 below(uint2 pixel, [Range(-1, 1)] uint a) { return a; }
float4 far(uint2 pixel, [Range(0, 2e9)] int a) { return a; }
float4 twice(uint2 pixel) { return 0; }
float4 twice(uint2 pixel, float a) { return a; }
float4 left_open<T>(uint2 pixel, T a) { return 0; }
void nothing(uint2 pixel) {}
"""
WHY_NOT = {
    "no_pixel": "it has no parameter named pixel",
    "wide": "its pixel is uint3, not uint2, int2 or float2",
    "whole": "it returns int2, not float, float3 or float4",
    "written": "x is out",
    "of_struct": "p is Point, which no slider sets; bool, and float, int and uint with their vectors have one",
    "of_texture": "image is Texture2D<vector<float,4>>, which no slider sets; bool, and float, int and uint with their "
    "vectors have one",
    "late": "time, which the viewer sets, is int, not float",
    "reversed": "[Range(2, 1)] of a is no range from less to more",
    "outside": "the default 3 of a is outside of its [Range(0, 1)]",
    "below": "[Range(-1, 1)] of a, a uint, begins below 0",
    "far": "[Range(0, 2e+09)] of a is wider than sliders of integers reach, 1073741824",
    "twice": "it is overloaded (2 functions)",
    "nothing": "it returns void, not float, float3 or float4",
}


def test_functions_and_settings() -> None:
    with spy.Device(type=spy.DeviceType.null, compiler_options={"include_paths": [spy.device.SHADER_PATH]}) as device:
        found, others = functions_of(spy.Module.load_from_source(device, "several", SOURCE))
    assert [f.name for f in found] == ["plain", "all_given", "grey"]
    reasons = dict(line.split(": ", 1) for line in others)
    assert "left_open" in reasons and {name: reasons[name] for name in WHY_NOT} == WHY_NOT
    plain, given, grey = found
    ranges = [(c.name, c.type_name, c.low, c.high) for c in plain.controls]
    assert ranges == [
        ("a", "float", -2, 6), ("b", "float2", 0, 1), ("c", "uint3", 0, 4), ("n", "int", 0, 40), ("on", "bool", 0, 1)
    ]  # fmt: skip
    assert [c.default for c in plain.controls] == [2, spy.float2(0.25), spy.uint3(2), 20, False]
    assert [c.name for c in plain.controls if not c.is_known] == ["on"]  # `true` is not told
    assert [name for name, _ in given.given] == ["time", "mouse", "resolution"] and not given.controls
    assert (grey.controls[0].low, grey.controls[0].high, grey.controls[0].default) == (0, 1, 0.5)

    values = parse_settings(plain, ["a=-7.5", "b=1,2", "c=3", "n=-4", "on=false"])
    assert values == {"a": -7.5, "b": spy.float2(1, 2), "c": spy.uint3(3), "n": -4, "on": False}
    assert parse_settings(given, ["time=1.5", "mouse=3,4"]) == {"time": 1.5, "mouse": spy.int2(3, 4)}
    for function, setting, message in (
        (plain, "a", "--set a: expected name=value"),
        (grey, "loud=1", r"grey has no such parameter; it has: gain \(float\)$"),
        (plain, "b=1,2,3", "the parameter is float2; write it as 1,1"),
        (plain, "n=1.5", "the parameter is int;"),
        (plain, "n=1e300", "the parameter is int;"),
        (plain, "a=nan", "the parameter is float;"),
        (plain, "c=-1", "the parameter is uint3;"),
        (plain, "on=2", "write it as true or false"),
        (plain, "a=x", "--set a=x: the parameter is float"),
        (given, "resolution=3,4", "use --size"),
    ):
        with pytest.raises(ValueError, match=message):
            parse_settings(function, [setting])

    assert choose("f.slang", found, others, "grey") is grey and choose("f.slang", [grey], others, None) is grey
    for functions, name, message in (
        (found, None, "f.slang has several functions of a pixel: plain, all_given, grey; choose one with --function"),
        (found, "wide", r"wide: its pixel is uint3.*; functions of a pixel: plain, all_given, grey"),
        (found, "absent", "absent: there is no such function; functions of a pixel: plain"),
        ([], None, r"has no function of a pixel, as `float4 f\(uint2 pixel\)` is one:\n  no_pixel: it has no"),
    ):
        with pytest.raises(ValueError, match=message):
            choose("f.slang", functions, others, name)


@pytest.mark.one
@pytest.mark.needs_kernels
def test_saving(device_type: spy.DeviceType, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """All in one file, so that it compiles once."""
    pytest.importorskip("OpenImageIO")
    file = tmp_path / "several.slang"
    file.write_text(SOURCE)

    def save(*arguments: str) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
        picture = tmp_path / "picture.exr"
        assert main(["view", str(file), "--save", str(picture), "-d", device_type.name, "--size", "5x3", *arguments]) == 0
        assert f"5 x 3, {device_type.name}" in capsys.readouterr().out
        return np.asarray(spy.Bitmap(str(picture)))

    y, x = np.mgrid[0:3, 0:5]
    picture = save("-f", "plain", "--set", "a=1")
    assert np.array_equal(picture, np.stack([x + 1, 0 * x + 0.25, 0 * x + 0.25, 0 * x + 22], -1).astype(np.float32))
    picture = save("-f", "all_given", "--set", "time=1.5", "--set", "mouse=3,4")
    assert np.allclose(picture, np.stack([x / 5, y / 3, 0 * x + 5.5], -1), atol=1e-3)
    assert np.allclose(save("-f", "all_given")[..., 2], 1)  # time 0, the mouse in the middle
    assert np.array_equal(save("-f", "grey").squeeze(), 0.5 * (x + 2 * y))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["absent.slang"], "view: there is no file absent.slang"),
        (["there.slang", "--size", "640"], "view: --size 640: expected WIDTHxHEIGHT, each from 1 to 16384, as 640x480"),
        (["there.slang", "--size", "0x4"], "view: --size 0x4: expected"),
    ],
)
def test_wrong_arguments(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("there.slang").write_text("")
    assert main(["view", *arguments]) == 1
    assert message in capsys.readouterr().err


def test_without_a_display(tmp_path: Path) -> None:
    """In a process of its own: here a window may have found one before."""
    pytest.importorskip("glfw")
    pytest.importorskip("imgui_bundle")
    file = tmp_path / "f.slang"
    file.write_text("float4 f(uint2 pixel) { return 1; }")
    kept = {name: text for name, text in os.environ.items() if name not in ("DISPLAY", "WAYLAND_DISPLAY")}
    command = [sys.executable, "-m", "slangpy", "view", str(file)]
    done = subprocess.run(command, env=kept, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 1 and "no display was found" in done.stderr and "view --save picture.png" in done.stderr
