"""The disk cache across processes: what is compiled, when the compiler is loaded, and what damage does."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tiers import gate

from slangpy._native import DeviceType
from slangpy.compiler.cache import DiskCache

pytestmark = [pytest.mark.needs_kernels, pytest.mark.one]

SOURCE = "float polynomial(float a, float b, float c, float x) { return a * x * x + b * x + c; }"

FIRST_CALL = f"""
import json, sys, time
start = time.perf_counter()
import slangpy as spy
import numpy as np
imported = time.perf_counter()
device = spy.create_device(type=spy.DeviceType[sys.argv[1]])
x = np.arange(1, 5, dtype=np.float32)
opened = time.perf_counter()
module = spy.Module.load_from_source(device, "cached", "{SOURCE}")
y = module.polynomial(a=2, b=8, c=-1, x=x, _result="numpy")
done = time.perf_counter()
from slangpy.plan import compile as compile_stage
maps = open("/proc/self/maps").read()
print(json.dumps(dict(
    values=y.tolist(), builds=compile_stage.builds, libslang="libslang" in maps,
    after_import_ms=(done - imported) * 1e3, after_device_ms=(done - opened) * 1e3,
)))
"""


def start(folder: Path, cache: Path, device: DeviceType, **environment: str) -> subprocess.Popen[str]:
    script = folder / "first_call.py"
    if not script.exists():
        script.write_text(FIRST_CALL, encoding="utf-8")
    variables = {**os.environ, "SLANGPY_CACHE_DIR": str(cache), **environment}
    variables.pop("SLANGPY_DISABLE_CACHE", None)
    return subprocess.Popen(
        [sys.executable, str(script), device.name], cwd=folder, env=variables, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def finish(process: subprocess.Popen[str]) -> dict[str, Any]:
    output, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    result = json.loads(output.splitlines()[-1])
    assert result["values"] == [9, 23, 41, 63]
    return {**result, "errors": errors}


def run(folder: Path, cache: Path, device: DeviceType, **environment: str) -> dict[str, Any]:
    return finish(start(folder, cache, device, **environment))


def entries(cache: Path, kind: str) -> list[Path]:
    return [path for path in cache.rglob("*") if path.is_file() and kind in path.relative_to(cache).parts]


def test_second_process_needs_no_compiler(device_type: DeviceType, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    cold = run(tmp_path, cache, device_type)
    assert cold["builds"] == 1 and cold["libslang"]
    warm = [run(tmp_path, cache, device_type) for _ in range(3)]
    assert all(result["builds"] == 0 and not result["libslang"] for result in warm)
    # The best of three: other work on the machine must not decide. Opening a GPU driver is not ours to time.
    figure = "after_import_ms" if device_type == DeviceType.cpu else "after_device_ms"
    assert min(result[figure] for result in warm) < 50


def test_eight_processes_at_once(device_type: DeviceType, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    processes = [start(tmp_path, cache, device_type) for _ in range(8)]
    for process in processes:
        assert "cache" not in finish(process)["errors"]
    assert not list(cache.rglob(".new-*"))
    assert run(tmp_path, cache, device_type)["builds"] == 0


@pytest.mark.parametrize("delay", gate([0.15, 0.3, 0.5], lambda delay: delay == 0.3))
def test_killed_process(device_type: DeviceType, tmp_path: Path, delay: float) -> None:
    """Whatever a killed process leaves, the next one gets the right result and a working cache."""
    cache = tmp_path / "cache"
    process = start(tmp_path, cache, device_type)
    time.sleep(delay)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    run(tmp_path, cache, device_type)
    assert run(tmp_path, cache, device_type)["builds"] == 0


@pytest.fixture(scope="module")
def filled(device_type: DeviceType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache that a process has filled, to be copied."""
    folder = tmp_path_factory.mktemp("filled")
    run(folder, folder / "cache", device_type)
    return folder / "cache"


DAMAGES = [(kind, damage) for kind in ("plan", "kernel", "manifest") for damage in ("flipped", "cut", "empty")]


def in_gate(case: tuple[str, str]) -> bool:
    """Each kind of entry with each of its bytes there but one wrong, and each way to be too short."""
    return case[1] == "flipped" or case in (("plan", "empty"), ("kernel", "cut"))


@pytest.mark.parametrize(("kind", "damage"), gate(DAMAGES, in_gate))
def test_damaged_entry_is_built_anew(
    device_type: DeviceType, tmp_path: Path, filled: Path, kind: str, damage: str
) -> None:
    cache = shutil.copytree(filled, tmp_path / "cache")
    damaged = entries(cache, kind)
    assert damaged
    for path in damaged:
        data = bytearray(path.read_bytes())
        if damage == "flipped":
            data[len(data) // 2] ^= 0xFF
        path.write_bytes({"flipped": bytes(data), "cut": bytes(data[: len(data) // 2]), "empty": b""}[damage])
    result = run(tmp_path, cache, device_type)
    assert "damaged" in result["errors"]
    assert run(tmp_path, cache, device_type)["builds"] == 0


@pytest.mark.parametrize("where", ["file/cache", "/proc/nothing", "/proc/nothing/below", "long" * 100])
def test_folders_that_nobody_can_make(tmp_path: Path, caplog: pytest.LogCaptureFixture, where: str) -> None:
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    cache = DiskCache(tmp_path / where)
    for _ in range(2):
        cache.write("kind", "key", 1)
        assert cache.read("kind", "key") is None
    assert sum("SLANGPY_CACHE_DIR" in record.getMessage() for record in caplog.records) == 1


def test_unusable_folder_is_one_warning(device_type: DeviceType, tmp_path: Path) -> None:
    """A path below a file, say, can be made by nobody, not even by root."""
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    result = run(tmp_path, tmp_path / "file" / "cache", device_type)
    assert result["builds"] == 1
    assert result["errors"].count("SLANGPY_CACHE_DIR") == 1


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_read_only_folder_still_serves(device_type: DeviceType, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    run(tmp_path, cache, device_type)
    folders = [cache, *(path for path in cache.rglob("*") if path.is_dir())]
    for folder in folders:
        folder.chmod(0o555)  # the user's own, so it is trusted
    try:
        assert run(tmp_path, cache, device_type)["builds"] == 0
    finally:
        for folder in folders:
            folder.chmod(0o755)


def test_a_removed_working_folder(device_type: DeviceType, tmp_path: Path) -> None:
    """Relative paths lead nowhere then; all else works, from the cache too."""
    (tmp_path / "gone").mkdir()
    script = "import os, sys; os.chdir(sys.argv[2]); os.rmdir(sys.argv[2])\n" + FIRST_CALL.replace(
        "print(json", """
path = sys.argv[3] + "/by_path.slang"
assert spy.Module.load_from_file(device, path).half_of(3.0) == 1.5
try:
    spy.Module.load_from_file(device, "by_path.slang")
except Exception as error:
    assert "no such file" in str(error), error
print(json""")  # fmt: skip
    (tmp_path / "by_path.slang").write_text("float half_of(float x) { return x / 2; }", encoding="utf-8")
    for builds in (1, 0):
        (tmp_path / "gone").mkdir(exist_ok=True)
        command = [sys.executable, "-c", script, device_type.name, str(tmp_path / "gone"), str(tmp_path)]
        variables = {**os.environ, "SLANGPY_CACHE_DIR": str(tmp_path / "cache")}
        done = subprocess.run(command, cwd=tmp_path, env=variables, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        result = json.loads(done.stdout.splitlines()[-1])
        assert result["values"] == [9, 23, 41, 63] and result["builds"] == 2 * builds


def test_disabled_cache_writes_nothing(device_type: DeviceType, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    script = tmp_path / "first_call.py"
    script.write_text(FIRST_CALL, encoding="utf-8")
    variables = {**os.environ, "SLANGPY_CACHE_DIR": str(cache), "SLANGPY_DISABLE_CACHE": "1"}
    command = [sys.executable, str(script), device_type.name]
    done = subprocess.run(command, cwd=tmp_path, env=variables, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert not [path for path in cache.rglob("*") if path.is_file()] if cache.exists() else True


def test_another_source_is_another_entry(device_type: DeviceType, tmp_path: Path) -> None:
    """The key holds the contents of the source, not the module's name."""
    cache = tmp_path / "cache"
    run(tmp_path, cache, device_type)
    script = tmp_path / "first_call.py"
    script.write_text(FIRST_CALL.replace("+ c;", "+ c + 0;"), encoding="utf-8")
    result = run(tmp_path, cache, device_type)
    assert result["libslang"]
