"""Statistics of the kernel cache, compilation reports, and two threads at once."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
from device_kernels import RW, kernel

import slangpy as spy
from slangpy.compiler.cache import cache

pytestmark = pytest.mark.needs_kernels

ADD = """
[shader("compute")] [numthreads(64, 1, 1)]
void main(uint3 tid : SV_DispatchThreadID, RWStructuredBuffer<uint> y, uniform uint by, uniform uint n) {{
    if (tid.x < n) y[tid.x] += by + {tag} - {tag};
}}"""


def run_once(device: spy.Device, source: str) -> None:
    y = device.create_buffer(data=np.zeros(3, np.uint32), struct_size=4, usage=RW)
    kernel(device, source).dispatch([3, 1, 1], y=y, by=2, n=3)
    assert y.to_numpy().view(np.uint32).tolist() == [2, 2, 2]


def test_cache_statistics(device_type: spy.DeviceType, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from slangpy.config import config

    if not config.cache_enabled:
        pytest.skip("the cache is off")
    monkeypatch.setattr(cache, "_folder", tmp_path)
    seen = []
    for _ in range(2):
        device = spy.Device(type=device_type, enable_hot_reload=False)
        before = device.shader_cache_stats
        assert (before.hit_count, before.miss_count) == (0, 0)
        run_once(device, ADD.format(tag=4242))
        stats = device.shader_cache_stats
        seen.append((stats.entry_count, stats.hit_count, stats.miss_count))
        device.close()
        with pytest.raises(RuntimeError, match="closed"):
            _ = device.shader_cache_stats
    assert seen == [(1, 0, 1), (1, 1, 0)]


def test_compilation_reports(device_type: spy.DeviceType, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "_folder", tmp_path)
    for cached in (False, True):
        device = spy.Device(type=device_type, enable_compilation_reports=True, enable_hot_reload=False)
        assert device.get_compilation_reports() == []
        run_once(device, ADD.format(tag=777))
        module = spy.Module.load_from_source(device, "reported", "float inc(float x) { return x + 1; }")
        assert module.inc(1.0) == 2.0
        reports = device.get_compilation_reports()
        assert len(reports) == 2
        assert reports[0]["label"] == "main"
        assert "reported::inc" in reports[1]["label"]
        for report in reports:
            (entry,), (pipeline,) = report["entry_point_reports"], report["pipeline_reports"]
            assert entry["is_cached"] == pipeline["is_cached"] == cached
            assert entry["cache_size"] > 0
            assert 0 <= report["create_pipeline_time"] < 60
            assert (report["compile_downstream_time"] > 0) == (not cached)
        assert reports[0]["compile_slang_time"] > 0
        device.close()


def test_reports_must_be_asked_for(device: spy.Device) -> None:
    with pytest.raises(RuntimeError, match="enable_compilation_reports"):
        device.get_compilation_reports()


@pytest.mark.parametrize("shared", [False, True])
def test_two_threads(device_type: spy.DeviceType, shared: bool) -> None:
    """1000 dispatches in each of two threads, on one device or on one each."""
    count = 2 if not shared else 1
    devices = [spy.Device(type=device_type, compiler_options={}, enable_hot_reload=False) for _ in range(count)]
    kernels = [kernel(device, ADD.format(tag=1)) for device in devices]
    results: dict[int, Any] = {}

    def work(index: int) -> None:
        device, add = devices[index % count], kernels[index % count]
        y = device.create_buffer(data=np.arange(200, dtype=np.uint32), struct_size=4, usage=RW)
        for i in range(1000):
            add.dispatch([200, 1, 1], y=y, by=i % 7 + index, n=200)
            if i % 250 == 0:
                y.to_numpy()
        results[index] = y.to_numpy().view(np.uint32)

    threads = [threading.Thread(target=work, args=(index,)) for index in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    total = sum(i % 7 for i in range(1000))
    for index in range(2):
        assert np.array_equal(results[index], np.arange(200) + total + 1000 * index)
    for device in devices:
        device.close()


def test_caches_of_a_device(device_type: spy.DeviceType, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """`shader_cache_path` and `module_cache_path` redirect, `shader_cache_size` bounds; relative paths lie below the data folder."""
    if device_type is spy.DeviceType.null:
        pytest.skip("compiles nothing")
    monkeypatch.setattr(cache, "_folder", tmp_path / "common")
    monkeypatch.setattr(spy.config.config, "data_dir", tmp_path / "data")

    def files(folder: Any) -> list[Any]:
        return [path for path in folder.rglob("[!.]*") if path.is_file()]  # without what counts the cache

    where = {"shader_cache_path": "shaders", "module_cache_path": tmp_path / "modules"}
    for count in (0, 1):
        device = spy.Device(type=device_type, enable_hot_reload=False, **where)
        run_once(device, ADD.format(tag=99))
        module = spy.Module.load_from_source(device, "redirected", "float inc(float x) { return x + 1; }")
        assert module.inc(1.0) == 2.0
        stats = device.shader_cache_stats
        assert (stats.entry_count, stats.hit_count, stats.miss_count) == (2, 2 * count, 2 * (1 - count))
        device.close()
    assert len(files(tmp_path / "data" / "shaders")) == 3  # two kernels and a plan
    assert files(tmp_path / "modules") and not files(tmp_path / "common")

    small = spy.Device(
        type=device_type, shader_cache_path=tmp_path / "small", shader_cache_size=60_000, enable_hot_reload=False
    )
    for tag in range(8 if device_type is spy.DeviceType.cpu else 30):
        run_once(small, ADD.format(tag=tag))
    assert sum(path.stat().st_size for path in files(tmp_path / "small")) <= 60_000 * 9 // 8 + 40_000
    small.close()


def test_unusable_cache_folder(device_type: spy.DeviceType, tmp_path: Any, caplog: pytest.LogCaptureFixture) -> None:
    """A warning, never an error."""
    if device_type is spy.DeviceType.null:
        pytest.skip("compiles nothing")
    blocked = tmp_path / "file"
    blocked.write_text("no folder")
    device = spy.Device(type=device_type, shader_cache_path=blocked, enable_hot_reload=False)
    run_once(device, ADD.format(tag=100))
    assert "cannot be used" in caplog.text
    device.close()
