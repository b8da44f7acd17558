"""A cache built in one place and used in another: folders, user and HOME differ, the package and the machine do not."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import slangpy as spy
from slangpy.compiler.cache import DiskCache
from slangpy.config import config

PROGRAM = """
import functools, json, os, sys
import numpy as np
import slangpy as spy
from slangpy.base import libslang
from slangpy.plan import compile as compile_stage
here = os.path.dirname(os.path.abspath(__file__))
device = spy.Device(type=sys.argv[1], compiler_options={"include_paths": [os.path.join(here, "shared")]}, enable_hot_reload=False)
module = spy.Module.load_from_file(device, os.path.join(here, "shaders", "main.slang"))
text = spy.Module.load_from_source(device, "made_of_text", "import common;\\nfloat g(float x) { return x + common(); }")
linked = spy.Module.load_from_source(device, "linking", "float h(float x) { return -x; }", link=[module])
x = np.arange(4, dtype=np.float32)
calls = [functools.partial(f, x, _result="numpy") for f in (module.f, text.g, linked.h)]
if sys.argv[2:] == ["precompile"]:
    assert spy.precompile(calls) == 3
    values = None
else:
    values = [call().tolist() for call in calls]
loaded = os.path.exists("/proc/self/maps") and "libslang" in open("/proc/self/maps").read()
print(json.dumps({"values": values, "builds": compile_stage.builds, "compiler": loaded}))
"""

FILES = {
    "app.py": PROGRAM,
    "shaders/main.slang": "import near;\nimport common;\nfloat f(float x) { return near(x) + common(); }",
    "shaders/near.slang": "float near(float x) { return 2 * x; }",
    "shared/common.slang": "float common() { return 1; }",
}
VALUES = [[1, 3, 5, 7], [1, 2, 3, 4], [0, -1, -2, -3]]


def write(folder: Path, **changes: str) -> Path:
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def run(device_type: Any, program: Path, cache: Path, *arguments: str, cwd: Path | None = None, **environment: str) -> Any:
    variables = {**os.environ, "SLANGPY_CACHE_DIR": str(cache), **environment}
    variables.pop("SLANGPY_DISABLE_CACHE", None)
    done = subprocess.run(
        [sys.executable, str(program / "app.py"), device_type.name, *arguments],
        cwd=cwd or program, env=variables, capture_output=True, text=True, timeout=200,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def export(cache: Path, folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "slangpy", "cache", "export", str(folder)],
        env={**os.environ, "SLANGPY_CACHE_DIR": str(cache)}, capture_output=True, text=True, timeout=100,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def right(device_type: Any, values: Any) -> bool:
    return device_type == spy.DeviceType.null or values == VALUES


def test_built_here_used_there(device_type: Any, tmp_path: Path) -> None:
    """As a container image does it: built in one folder, run in another by a process that may not write its cache."""
    build = write(tmp_path / "a" / "build")
    built = run(device_type, build, tmp_path / "a" / "cache", "precompile")
    assert built["builds"] == 3
    shipped = tmp_path / "opt" / "cache"
    assert "entries" in export(tmp_path / "a" / "cache", shipped)
    app = tmp_path / "opt" / "app"
    shutil.copytree(build, app)
    shutil.rmtree(tmp_path / "a")
    files = [path for path in shipped.rglob("*") if path.is_file()]
    assert files and {path.parent.name for path in files} >= {"plan", "kernel", "module"}
    for path in files:
        assert str(tmp_path).encode() not in path.read_bytes(), path
    home = tmp_path / "home"
    home.mkdir(0o700)
    for cwd in (app, home):
        own = tmp_path / f"own of {cwd.name}"
        result = run(
            device_type, app, own, cwd=cwd, HOME=str(home), SLANGPY_SHIPPED_CACHE=str(shipped),
            SLANGPY_TEST_COMPILE_FAULT="crash",
        )  # fmt: skip
        assert right(device_type, result["values"])
        # the text's imports begin at the working folder, where nothing of their names lies either
        assert result["builds"] == 0 and not result["compiler"], (cwd, result)
        assert not [p for p in own.rglob("*") if p.is_file() and p.parent.name in ("kernel", "plan")]


@pytest.mark.one
def test_the_whole_cache_moves(device_type: Any, tmp_path: Path) -> None:
    build = write(tmp_path / "build")
    run(device_type, build, tmp_path / "cache")
    shutil.move(build, tmp_path / "app")
    shutil.move(tmp_path / "cache", tmp_path / "moved")
    result = run(device_type, tmp_path / "app", tmp_path / "moved")
    assert right(device_type, result["values"]) and result["builds"] == 0 and not result["compiler"]


CHANGES = {
    "another text": ("shaders/near.slang", "float near(float x) { return 3 * x; }", [[1, 4, 7, 10], *VALUES[1:]]),
    "another file of the include path": (
        "shared/common.slang", "float common() { return 5; }", [[5, 7, 9, 11], [5, 6, 7, 8], VALUES[2]],
    ),
    "a file that comes first": ("shaders/common.slang", "float common() { return 7; }", [[7, 9, 11, 13], *VALUES[1:]]),
}  # fmt: skip


@pytest.mark.needs_kernels
@pytest.mark.one
def test_other_sources_there(device_type: Any, tmp_path: Path) -> None:
    """What lies beside the moved program decides, not what lay beside the one that filled the cache."""
    build = write(tmp_path / "build")
    assert run(device_type, build, tmp_path / "cache")["values"] == VALUES
    apps = {}
    for change, (name, text, expected) in CHANGES.items():
        apps[change] = shutil.copytree(build, tmp_path / change)
        (apps[change] / name).write_text(text)
        assert run(device_type, apps[change], tmp_path / "cache")["values"] == expected, change
    # programs of one text do not take turns in building
    again = run(device_type, build, tmp_path / "cache")
    assert again["values"] == VALUES and again["builds"] == 0
    for change, app in apps.items():
        again = run(device_type, app, tmp_path / "cache")
        assert again["values"] == CHANGES[change][2] and again["builds"] == 0, change


@pytest.mark.needs_kernels
@pytest.mark.one
@pytest.mark.parametrize("how", ["above", "link"])
def test_what_does_not_move_is_looked_up_again(device_type: Any, tmp_path: Path, how: str) -> None:
    """Imports that lead out of the program's folders, and symbolic links, are good for one place only."""
    for name, factor in (("build", 2), ("opt", 3)):
        program = write(tmp_path / name / "app")
        (tmp_path / name / "outside.slang").write_text(f"float near(float x) {{ return {factor} * x; }}")
        if how == "link":
            (program / "shaders" / "near.slang").unlink()
            (program / "shaders" / "near.slang").symlink_to(tmp_path / name / "outside.slang")
        else:
            main = program / "shaders" / "main.slang"
            main.write_text(main.read_text().replace("import near;", 'import "../../outside";'))
    first = run(device_type, tmp_path / "build" / "app", tmp_path / "cache")
    second = run(device_type, tmp_path / "opt" / "app", tmp_path / "cache")
    assert first["values"][0] == [1, 3, 5, 7] and second["values"][0] == [1, 4, 7, 10]


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can make files of others")
def test_trust(tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    """A shipped cache of root is read by others, one that others could have written by nobody."""
    source = DiskCache(tmp_path / "own")
    source.write("plan", "a" * 64, 5)
    folder = tmp_path / "shipped"
    from_export = subprocess.run(
        [sys.executable, "-m", "slangpy", "cache", "export", str(folder)],
        env={**os.environ, "SLANGPY_CACHE_DIR": str(tmp_path / "own")}, capture_output=True, timeout=100,
    )  # fmt: skip
    assert from_export.returncode == 0
    monkeypatch.setattr(config, "shipped_cache", folder)
    monkeypatch.setattr(os, "geteuid", lambda: 12345)  # files and folders here are root's
    assert DiskCache(tmp_path / "nothing").read("plan", "a" * 64) == 5
    monkeypatch.undo()
    other = tmp_path / "foreign"
    shutil.copytree(folder, other)
    os.chown(next((other / "v2" / "plan").iterdir()), 12345, -1)
    monkeypatch.setattr(config, "shipped_cache", other)
    assert DiskCache(tmp_path / "nothing").read("plan", "a" * 64) is None
    assert "not used" in caplog.text


def test_folder_of_a_shipped_cache(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(ValueError, match="absolute path"):
        spy.config.set_shipped_cache("cache")
    before = config.shipped_cache
    try:
        spy.config.set_shipped_cache(tmp_path / "missing")
        assert DiskCache(tmp_path / "own").read("plan", "b" * 64) is None
        assert "there is no folder" in caplog.text and not (tmp_path / "missing").exists()
    finally:
        config.shipped_cache = before
