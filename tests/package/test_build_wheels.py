"""The script that makes wheels, as far as it needs no compiler, and the files that call it."""

from __future__ import annotations

import importlib.util
import sys
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("build_wheels", ROOT / "tools" / "build_wheels.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules["build_wheels"] = module
    spec.loader.exec_module(module)
    return module


def test_interpreters(script: ModuleType, tmp_path: Path) -> None:
    here = f"cp3{sys.version_info.minor}"
    assert script.identify(sys.executable) == (here, sys.executable)
    assert script.interpreters([sys.executable, sys.executable]) == [(here, sys.executable)]
    assert here in [one.tag for one in script.interpreters([])]
    assert script.identify(str(tmp_path / "python3")) is None
    old = tmp_path / "python3.9"
    old.write_text("#!/bin/sh\necho cpython 3 9\n")
    old.chmod(0o755)
    assert script.identify(str(old)) is None
    with pytest.raises(SystemExit, match=r"python3\.9 is no CPython 3\.10 or later"):
        script.interpreters([str(old)])


def test_size(script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Slang's own libraries do not count."""
    wheel = tmp_path / "slangpy.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("slangpy/_native.so", bytes(3000))
        archive.writestr("slangpy/lib/libslang-compiler.so.0", bytes(50_000))
        archive.writestr("slangpy/lib/slang-standard-module-1/neural.slang-module", bytes(50_000))
    monkeypatch.setattr(script, "LARGEST", 5000)
    assert script.check_size(wheel) == "0.0 MB, and 0.1 MB of Slang"
    monkeypatch.setattr(script, "LARGEST", 2000)
    with pytest.raises(SystemExit, match="at most 2000 are meant"):
        script.check_size(wheel)


def test_failing_command_shows_what_it_printed(script: ModuleType) -> None:
    with pytest.raises(SystemExit, match="(?s)the reason.*failed: .*python"):
        script.run(sys.executable, "-c", "import sys; print('the reason'); sys.exit(3)")


@pytest.mark.parametrize("path", [".github/workflows/wheels.yml", "packaging/conda/recipe.yaml", ".ci/run"])
def test_callers_use_options_that_exist(path: str, script: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [line for line in (ROOT / path).read_text(encoding="utf-8").splitlines() if "build_wheels.py" in line]
    called = [line.split("build_wheels.py", 1)[1].split() for line in lines if not line.lstrip().startswith("#")]
    assert called
    sys_argv, sys.argv = sys.argv, ["build_wheels.py", "--help"]
    try:
        with pytest.raises(SystemExit):
            script.main()
    finally:
        sys.argv = sys_argv
    known = capsys.readouterr().out
    assert all(word in known for words in called for word in words if word.startswith("--"))
