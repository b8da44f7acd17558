"""precompile and benchmark."""

from __future__ import annotations

import functools
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from calls_support import source

import slangpy as spy

SOURCE = """
[Differentiable] float square(float a, float x) { return a * x * x; }
void count(RWTensor<int, 1> t) { t[0] = t[0] + 1; }
"""
pytestmark = [pytest.mark.needs_kernels, pytest.mark.one]


@pytest.fixture
def m(device: spy.Device) -> Any:
    return source(device, "measured", "import slangpy;\n" + SOURCE)


def test_precompile_runs_nothing(m: Any, device: spy.Device) -> None:
    counter = spy.Tensor.zeros(device, (1,), "int")
    x = np.ones(3, np.float32)
    assert spy.precompile([(m.count, counter), functools.partial(m.square, 2.0, x=x, _result="numpy")]) == 2
    assert counter.to_numpy().tolist() == [0]
    assert m.square(2.0, x=x, _result="numpy").tolist() == [2, 2, 2]


CHILD = """
import functools, sys
import numpy as np
import slangpy as spy
from slangpy.plan import compile as stage
device = spy.create_device(sys.argv[1])
m = spy.Module.load_from_source(device, "ahead", "[Differentiable] float square(float a, float x) { return a * x * x; }")
x, pair = np.arange(5, dtype=np.float32), spy.diffPair(3.0)
calls = [(m.square, 2.0, x), functools.partial(m.square.bwds, 2.0, pair, _result=spy.diffPair(0.0, 1.0))]
if sys.argv[2] == "precompile":
    spy.precompile(calls)
    assert pair.grad == 0
else:
    m.square(2.0, x), calls[1]()
    assert pair.grad == 12
print(stage.builds)
"""


def test_what_is_precompiled_is_found_by_other_processes(device: spy.Device, tmp_path: Path) -> None:
    counts = []
    for what in ("precompile", "call"):
        command = [sys.executable, "-c", CHILD, device.info.type.name, what]
        environment = {**os.environ, "SLANGPY_CACHE_DIR": str(tmp_path / "cache")}
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
        assert done.returncode == 0, done.stderr
        counts.append(int(done.stdout))
    assert counts == [2, 0]


def test_precompile_errors(m: Any) -> None:
    with pytest.raises(TypeError, match=r"expected functools\.partial\(f, \.\.\.\) or a tuple"):
        spy.precompile([m.square])
    with pytest.raises(TypeError, match="a function of a module, got builtin"):
        spy.precompile([(print, 1)])
    with pytest.raises(spy.ResolveException, match="measured::square: .*'a' not specified"):
        spy.precompile([(m.square,)])


def test_benchmark(m: Any, device: spy.Device) -> None:
    x = spy.Tensor.from_numpy(device, np.random.default_rng(1).random(100003, np.float32))
    y = spy.Tensor.zeros(device, (100003,), "float")
    report = spy.benchmark(m.square, 2.0, x, _result=y, seconds=0.1)
    assert report.bytes == 2 * 4 * 100003 and report.calls >= 3
    assert 0 < report.seconds < 1 and 0 < report.host_seconds <= report.seconds
    assert report.bandwidth == pytest.approx(report.bytes / report.seconds)
    assert report.share == pytest.approx(report.bandwidth / report.copy_bandwidth) and report.share > 0
    assert "measured::square" in str(report) and "GB/s" in str(report)
    page = report._repr_html_()
    assert page.startswith("<table>") and all(f"<td>{value}</td>" in page for _, value in report.rows)
    assert 0 <= report.overhead < 1 and (report.device_seconds > 0) == (device.info.type != spy.DeviceType.null)
    np.testing.assert_allclose(y.to_numpy(), 2 * x.to_numpy() ** 2, rtol=1e-6)
    alone = spy.benchmark(m.square, 2.0, 3.0, seconds=0.02)
    assert alone.bytes == 0 and math.isnan(alone.share) and "of a copy" not in str(alone)
    kept = np.zeros(7, np.float32)
    assert spy.benchmark(m.square, kept, [1.0] * 7, seconds=0.02, _result="numpy").bytes == 2 * 28


def test_benchmark_errors(m: Any) -> None:
    with pytest.raises(ValueError, match="'seconds' must be more than 0, got 0"):
        spy.benchmark(m.square, 1.0, 2.0, seconds=0)
    with pytest.raises(TypeError, match="expected a function of a module, got function"):
        spy.benchmark(lambda x: x, 1.0)  # type: ignore[arg-type]
    with pytest.raises(spy.ResolveException, match="measured::square"):
        spy.benchmark(m.square, 1.0)
