"""What is kept on disk is bound to all code of the package."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

import slangpy
from slangpy.compiler import package_files
from slangpy.compiler.cache import DiskCache
from slangpy.config import config

ROOT = Path(slangpy.__file__).resolve().parent


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the package that the hashes are made of, with a cache of its own."""
    copy = tmp_path / "slangpy"
    shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    (copy / "_native.so").write_bytes(b"native")
    monkeypatch.setattr(package_files, "PACKAGE", str(copy))
    monkeypatch.setattr(package_files, "LIBRARY", str(copy / "slang"))
    monkeypatch.setattr(package_files, "_known", {})
    monkeypatch.setattr(package_files, "cache", DiskCache(tmp_path / "cache"))
    monkeypatch.setattr(config, "cache_enabled", True)
    return copy


def hashes() -> tuple[str, str]:
    package_files._known.clear()
    return package_files.library_hash(), package_files.planner_hash()


def test_every_file_of_code_is_in_it(package: Path) -> None:
    before = hashes()
    names = list(package.rglob("*.py"))
    assert len(names) > 100
    for path in [*names[::10], package / "reflection" / "__init__.py", package / "compiler" / "text" / "prelude.py", package / "_native.so"]:
        info = path.stat()
        data = path.read_bytes()
        changed = data[:-1] + bytes([data[-1] ^ 1])
        path.write_bytes(changed)  # of the same size, and said to be as old
        os.utime(path, ns=(info.st_atime_ns, info.st_mtime_ns))
        assert hashes()[0] == before[0] and hashes()[1] != before[1], path
        path.write_bytes(data)
        assert hashes() == before
    (package / "plan" / "new_stage.py").write_text("")
    assert hashes()[1] != before[1]


def test_library_is_in_it(package: Path) -> None:
    for name in ("tensor.slang", "rays/traverse.slang"):
        before = hashes()
        with open(package / "slang" / name, "a") as file:
            file.write("// changed\n")
        assert hashes()[0] != before[0]


def test_same_without_a_cache(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = hashes()
    assert hashes() == before  # from disk
    monkeypatch.setattr(config, "cache_enabled", False)
    assert hashes() == before


def test_touching_files_changes_nothing(package: Path) -> None:
    """Another installation of the same code finds what the first has kept."""
    before = hashes()
    for path in package.rglob("*.py"):
        os.utime(path, (1, 1))
    assert hashes() == before


def test_without_native_stamps(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Platforms that have none look at the files through Python."""
    before = hashes()
    monkeypatch.setattr(package_files._native, "_folder_stamp", lambda *_: None)
    assert hashes() == before
    test_every_file_of_code_is_in_it(package)


def test_stamp_tells_all_files(package: Path) -> None:
    """The native look at the folder sees what Python's does, and every kind of change."""
    names = {os.fsencode(path) for path, *_ in package_files._files()}
    stamp = package_files._stamp()
    assert len(names) > 200 and all(name + b"\0" in stamp for name in names)
    assert package_files._stamp() == stamp
    other = package / "plan" / "other.slang"

    def write() -> None:
        other.write_text("// one")

    def rewrite() -> None:
        info = other.stat()
        other.write_text("// two")
        os.utime(other, ns=(info.st_atime_ns, info.st_mtime_ns))

    def replace() -> None:
        new = other.with_suffix(".new")
        shutil.copy2(other, new)
        new.replace(other)

    for change in (write, rewrite, replace, other.unlink):
        change()
        changed = package_files._stamp()
        assert changed != stamp, change
        stamp = changed
    (package / "plan" / "__pycache__").mkdir()
    (package / "plan" / "__pycache__" / "other.py").write_text("")
    (package / "plan" / "notes.txt").write_text("")
    assert package_files._stamp() == stamp  # no code


def test_what_is_remembered_beside_the_hashes(package: Path) -> None:
    made: list[str] = []

    def make() -> str:
        made.append(str(len(made)))
        return made[-1]

    def in_a_new_process() -> str:
        package_files._known.clear()
        return package_files.remembered("prelude test", make)

    assert [in_a_new_process() for _ in range(3)] == ["0", "0", "0"]
    file = package / "compiler" / "text" / "prelude.py"
    file.write_bytes(file.read_bytes().replace(b"a", b"b", 1))
    assert [in_a_new_process() for _ in range(2)] == ["1", "1"]
    hashes()
    assert in_a_new_process() == "1"


def test_an_edit_while_it_is_made_is_not_remembered(package: Path) -> None:
    file = package / "plan" / "__init__.py"

    def make() -> str:
        file.write_bytes(file.read_bytes() + b"# edited\n")
        return "of the old files"

    package_files.remembered("prelude test", make)
    package_files._known.clear()
    assert package_files.remembered("prelude test", lambda: "of the new files") == "of the new files"


@pytest.mark.usefixtures("package")
def test_nothing_is_remembered_without_a_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(config, "cache_enabled", False)
    for value in ("0", "1"):
        package_files._known.clear()
        assert package_files.remembered("prelude test", lambda value=value: value) == value
