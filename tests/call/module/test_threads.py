"""Nodes, modules and devices may be used from several threads."""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import slangpy as spy
from slangpy.compiler.cache import cache
from slangpy.plan import compile as compile_stage

pytestmark = pytest.mark.needs_kernels

SOURCE = "float threaded(float a, float x) { return a * x + 1; }"


def run(count: int, work: Callable[[int], None]) -> None:
    errors: list[BaseException] = []

    def guarded(index: int) -> None:
        try:
            work(index)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def test_eight_threads_build_one_kernel(device: spy.Device, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Kernels on disk are found by their target code, whatever module they came from: a folder that another run has
    # filled would leave nothing to build.
    monkeypatch.setattr(cache, "_folder", tmp_path)
    module = spy.Module.load_from_source(device, "threads_one_build", SOURCE)
    x = np.random.default_rng().random(1003, dtype=np.float32)
    before = compile_stage.builds
    start = threading.Barrier(8)

    def work(index: int) -> None:
        start.wait()
        for _ in range(20):
            got = module.threaded(float(index), x, _result="numpy")
            np.testing.assert_allclose(got, index * x + 1, rtol=1e-6)

    run(8, work)
    assert compile_stage.builds == before + 1


def test_two_threads_with_a_device_each(device_type: spy.DeviceType) -> None:
    def work(index: int) -> None:
        device = spy.create_device(device_type)
        module = spy.Module.load_from_source(device, "threads_own_device", SOURCE)
        x = np.random.default_rng(index).random(257, dtype=np.float32)
        for i in range(1000):
            got = module.threaded(float(i), x, _result="numpy")
            np.testing.assert_allclose(got, i * x.astype(np.float64) + 1, rtol=1e-6)
        device.close()

    run(2, work)


@pytest.fixture
def many_switches() -> Iterator[None]:
    """Threads take turns as often as Python lets them."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.one
def test_eight_threads_load_call_edit_and_drop(
    device_type: spy.DeviceType, tmp_path: Path, many_switches: None
) -> None:
    path = tmp_path / "shared.slang"
    path.write_text("float shared(float x) { return x + 1; }")
    device = spy.create_device(device_type, include_paths=[tmp_path])
    spy.Module.load_from_source(device, "threads_common", "float common(float x) { return x * 3; }")
    ones = np.ones(5, np.float32)

    def work(index: int) -> None:
        for i in range(6):
            text = "import threads_common;\nstruct S { float a; float twice() { return a * 2; } }\n"
            module = spy.Module.load_from_source(
                device, f"threads_{index}_{i}", text + "float f(float x) { return common(x) + 2; }"
            )
            assert module.f(2.0 * i) == 6.0 * i + 2
            assert module.S.twice({"a": float(i)}) == 2.0 * i
            of_file = spy.Module.load_from_file(device, "shared.slang")
            got = of_file.shared(ones, _result="numpy")
            assert (got == got[0]).all() and 2 <= got[0] <= 100
            if index == 0:
                (tmp_path / "new").write_text(f"float shared(float x) {{ return x + {i + 2}; }}")
                (tmp_path / "new").replace(path)
                device.hot_reload_check()
            if index == 1:
                assert device in spy.Device.get_created_devices()
                other = spy.create_device(device_type)
                assert spy.current_device() is other
                del other
            if index == 2:
                gc.collect()
            list(module.layout)  # empty after a reload
            assert "f" in dir(module)

    run(8, work)
    device.close()
