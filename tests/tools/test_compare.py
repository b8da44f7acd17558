"""compare(): one call on several devices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import slangpy as spy

pytestmark = pytest.mark.needs_kernels

SOURCE = """
#if defined(__TARGET_CPU__)
static const float off = 0;
#else
static const float off = 1;
#endif
float same(float x) { return 2 * x; }
float other(float x) { return x == 3 ? 2 * x + off * 0.001 : 2 * x; }
void written(float x, out float y, inout int n) { y = x + off; n += 1; }
"""


@pytest.fixture
def module(device: Any) -> Any:
    if device.info.type is not spy.DeviceType.vulkan:
        pytest.skip("compares Vulkan with the CPU")
    return spy.Module.load_from_source(device, "compared", SOURCE)


def test_equal(module: Any, capsys: pytest.CaptureFixture[str]) -> None:
    report = spy.compare(module.same, np.arange(5, dtype=np.float32), devices=["cpu", "vulkan"])
    assert report and report.ok and report.differences == []
    assert capsys.readouterr().out == "compared::same on cpu, vulkan: equal\n"


def test_different(module: Any) -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    report = spy.compare(module.other, x, devices=["cpu", "vulkan"], show=False)
    assert not report
    (difference,) = report.differences
    assert (difference.device, difference.name, difference.index) == ("vulkan", "result", (1, 0))
    assert (difference.count, difference.size, difference.expected) == (1, 6, 6.0)
    assert difference.found == np.float32(6.001)
    assert difference.largest_absolute == pytest.approx(0.001, rel=1e-3)
    assert difference.largest_relative == pytest.approx(0.001 / 6, rel=1e-3)
    assert difference.ulps == round((np.float64(np.float32(6.001)) - 6) / np.spacing(np.float32(6)))
    assert "result[1][0] is 6.00" in str(report) and "1 of 6 beyond the tolerances" in str(report)
    assert spy.compare(module.other, x, devices=["cpu", "vulkan"], show=False, rtol=1e-3).ok


def test_written_arguments(module: Any) -> None:
    y, n = spy.Tensor.zeros(module.device, (4,), "float"), np.arange(4, dtype=np.int32)
    report = spy.compare(module.written, x=np.ones(4, np.float32), y=y, n=n, devices=["vulkan", "cpu"], show=False)
    assert [(d.device, d.name, d.expected, d.found) for d in report.differences] == [("cpu", "argument 'y'", 2.0, 1.0)]
    assert n.tolist() == [0, 1, 2, 3] and not y.to_numpy().any()  # copies were written


def test_bad_arguments(module: Any) -> None:
    with pytest.raises(TypeError, match="'function' must be a function of a module"):
        spy.compare(len, 1.0)
    with pytest.raises(ValueError, match="name two or more"):
        spy.compare(module.same, 1.0, devices=[module.device])
    with pytest.raises(ValueError, match="'devices' has 'abacus'"):
        spy.compare(module.same, 1.0, devices=["abacus", "cpu"])
    texture = module.device.create_texture(width=2, height=2, format=spy.Format.r32_float)
    with pytest.raises(TypeError, match="'argument 0' is a Texture"):
        spy.compare(module.same, texture, devices=["cpu", "vulkan"])
