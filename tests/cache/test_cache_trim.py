"""The disk cache keeps to its size, whoever writes, and sweeps up after killed processes."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from slangpy.compiler.cache import DiskCache
from slangpy.config import config

LIMIT = 1 << 20
SMALL = 1 << 19

CHILD = """
import sys
from pathlib import Path
from slangpy.compiler.cache import DiskCache
cache = DiskCache(Path(sys.argv[1]), int(sys.argv[2]))
for number in sys.argv[3:]:
    cache.write_bytes("kernel", number, b"x" * 9_000)
"""


@pytest.fixture
def base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(config, "cache_enabled", True)
    return tmp_path / "cache"


def used(base: Path) -> int:
    """Bytes of blocks that the entries take."""
    paths = [path for path in base.rglob("*") if path.is_file()]
    return sum((path.stat().st_size + 4095) // 4096 * 4096 for path in paths)


def age(path: Path, seconds: float) -> None:
    then = time.time() - seconds
    os.utime(path, (then, then))


def test_short_processes_keep_the_limit(base: Path) -> None:
    """Each writes less than what makes a process trim by itself."""
    for first in range(0, 90, 6):
        numbers = [str(first + i) for i in range(6)]
        subprocess.run([sys.executable, "-c", CHILD, str(base), str(SMALL), *numbers], check=True, timeout=120)
        assert used(base) <= SMALL
    assert used(base) > SMALL // 2
    assert (base / "v2" / "kernel" / "89").exists() and not (base / "v2" / "kernel" / "0").exists()


@pytest.mark.parametrize("size", [1, 4000, 5000, 100_000])
def test_new_objects_keep_the_limit(base: Path, size: int) -> None:
    for number in range(3 * LIMIT // max(size, 4096)):
        DiskCache(base, LIMIT).write_bytes("kernel", str(number), b"x" * size)
        assert used(base) <= LIMIT


def test_threads_keep_the_limit(base: Path) -> None:
    cache = DiskCache(base, LIMIT)

    def write(thread: int) -> None:
        for number in range(60):
            cache.write_bytes("kernel", f"{thread}_{number}", b"x" * 20_000)

    threads = [threading.Thread(target=write, args=(i,)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert used(base) <= LIMIT


def test_what_was_used_stays(base: Path) -> None:
    cache = DiskCache(base, LIMIT)
    cache.write_bytes("kernel", "kept", b"x" * 10_000)
    old = time.time() - 5000
    os.utime(base / "v2" / "kernel" / "kept", (old, old))
    for number in range(10):
        cache.write_bytes("kernel", f"old{number}", b"x" * 10_000)
        os.utime(base / "v2" / "kernel" / f"old{number}", (old + 10, old + 10))
    assert cache.read_bytes("kernel", "kept") is not None
    for number in range(70):
        cache.write_bytes("kernel", f"new{number}", b"x" * 10_000)
    names = {path.name for path in (base / "v2" / "kernel").iterdir()}
    assert "kept" in names and "old0" not in names


def test_entry_of_another_format_goes(base: Path) -> None:
    other = base / "v1" / "kernel" / "ab" / "abc"
    other.parent.mkdir(parents=True)
    other.write_bytes(b"x" * LIMIT)
    os.utime(other, (1, 1))
    (base / "unrelated").write_bytes(b"x")
    DiskCache(base, LIMIT).write_bytes("kernel", "new", b"x")
    assert not other.exists() and (base / "unrelated").exists()


def test_temporary_files_of_killed_processes_go(base: Path) -> None:
    cache = DiskCache(base, LIMIT)
    cache.write_bytes("kernel", "a", b"x")
    old, new = base / "v2" / "kernel" / ".new-old", base / "v2" / "kernel" / ".new-now"
    for path in (old, new):
        path.write_bytes(b"half")
    age(old, 7200)
    cache.trim()
    assert not old.exists() and new.exists() and cache.read_bytes("kernel", "a") == b"x"


def test_trims_once_a_day(base: Path) -> None:
    """A cache that is hardly written to is looked at, too."""
    cache = DiskCache(base, LIMIT)
    cache.write_bytes("kernel", "a", b"x")
    old = base / "v2" / "kernel" / ".new-old"
    old.write_bytes(b"half")
    os.utime(old, (1, 1))
    cache.write_bytes("kernel", "b", b"x")
    assert old.exists()
    age(base / "v2" / ".trim", 100_000)
    cache.write_bytes("kernel", "c", b"x")
    assert not old.exists()
