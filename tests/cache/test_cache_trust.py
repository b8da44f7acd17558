"""Whom the disk cache trusts: nothing is read that somebody else may have written, whatever way it came there."""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from slangpy.compiler.cache import DiskCache, _checksum
from slangpy.compiler.cache.trust import Untrusted, check_way
from slangpy.config import _default_cache_dir, config

pytestmark = pytest.mark.skipif(os.name != "posix", reason="owners and modes of POSIX")
needs_root = pytest.mark.skipif(os.name == "posix" and os.geteuid() != 0, reason="only root gives files away")

FOREIGN = 54321
KEY = "ab" * 32


@pytest.fixture
def base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(config, "cache_enabled", True)
    monkeypatch.setattr(config, "cache_shared", False)
    for folder in (tmp_path, *tmp_path.parents):  # reachable for the users that tests turn into
        if folder.stat().st_uid == os.geteuid() and folder != Path("/") and not folder.stat().st_mode & 0o001:
            folder.chmod(folder.stat().st_mode | 0o011)
    yield tmp_path / "cache"


def fill(base: Path) -> DiskCache:
    cache = DiskCache(base)
    cache.write_bytes("kernel", KEY, b"content")
    assert DiskCache(base).read_bytes("kernel", KEY) == b"content"
    return cache


def refused(base: Path, caplog: pytest.LogCaptureFixture) -> str:
    """The message of a cache that reads nothing, says so once, and lets go on."""
    caplog.clear()
    cache = DiskCache(base)
    with caplog.at_level(logging.WARNING, "slangpy"):
        for _ in range(3):
            assert cache.read_bytes("kernel", KEY) is None
    assert len(caplog.records) == 1
    return caplog.records[0].getMessage()


def test_folder_is_private(base: Path) -> None:
    old = os.umask(0)
    try:
        fill(base / "made" / "on the way")
    finally:
        os.umask(old)
    for path in (base, *base.rglob("*")):
        assert not path.stat().st_mode & 0o077, path


def test_folder_that_others_could_read_is_closed(base: Path) -> None:
    fill(base)
    (base / "v2").chmod(0o755)
    fill(base)
    assert (base / "v2").stat().st_mode & 0o777 == 0o700


def places(base: Path) -> dict[str, Path]:
    return {"above": base.parent, "base": base, "format": base / "v2", "kind": base / "v2" / "kernel",
            "entry": base / "v2" / "kernel" / KEY}  # fmt: skip


@pytest.mark.parametrize("place", ["above", "base", "format", "kind", "entry"])
@pytest.mark.parametrize("mode", [0o722, 0o702, 0o720, 0o777])
def test_writable_by_others_is_refused(
    base: Path, place: str, mode: int, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("slangpy.compiler.cache.trust._is_private", lambda gid: False)
    fill(base)
    path = places(base)[place]
    path.chmod(mode)
    message = refused(base, caplog)
    assert str(path) in message and ("everybody" in message) == bool(mode & 0o002)
    path.chmod(0o700)
    assert DiskCache(base).read_bytes("kernel", KEY) == b"content"


def test_sticky_folder_above_is_fine(base: Path) -> None:
    base.parent.chmod(0o1777)
    fill(base)


@pytest.mark.parametrize("place", ["base", "above"])
def test_group_of_the_user_alone_may_write_above(base: Path, place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("slangpy.compiler.cache.trust._is_private", lambda gid: True)
    fill(base)
    places(base)[place].chmod(0o770)
    fill(base)


@needs_root
@pytest.mark.parametrize("place", ["above", "base", "format", "kind", "entry"])
def test_owned_by_another_is_refused(base: Path, place: str, caplog: pytest.LogCaptureFixture) -> None:
    """Also what root meets that runs with somebody else's HOME."""
    fill(base)
    path = places(base)[place]
    os.chown(path, FOREIGN, FOREIGN)
    message = refused(base, caplog)
    assert str(path) in message and str(FOREIGN) in message
    os.chown(path, 0, 0)
    assert DiskCache(base).read_bytes("kernel", KEY) == b"content"


@needs_root
def test_root_makes_nothing_in_a_foreign_home(base: Path, caplog: pytest.LogCaptureFixture) -> None:
    home = base.parent / "home"
    home.mkdir()
    os.chown(home, FOREIGN, FOREIGN)
    DiskCache(home / ".cache" / "slangpy").write_bytes("kernel", KEY, b"content")
    assert not list(home.iterdir()) and "SLANGPY_CACHE_DIR" in caplog.text


@pytest.mark.parametrize("place", ["format", "kind", "entry"])
def test_links_inside_are_refused(base: Path, place: str, caplog: pytest.LogCaptureFixture) -> None:
    fill(base)
    path = places(base)[place]
    elsewhere = base.parent / "elsewhere"
    path.rename(elsewhere)
    path.symlink_to(elsewhere)
    assert "symbolic link" in refused(base, caplog)


def test_cache_may_be_moved_behind_a_link(base: Path) -> None:
    (base.parent / "large").mkdir()
    base.symlink_to(base.parent / "large")
    fill(base)
    assert (base.parent / "large" / "v2").is_dir()


@pytest.mark.parametrize("links", ["one", "two", "relative", "loop"])
def test_link_into_what_others_may_write_is_refused(base: Path, links: str, caplog: pytest.LogCaptureFixture) -> None:
    real, between = base.parent / "real", base.parent / "between"
    (real / "inner").mkdir(parents=True)
    fill(real / "inner")
    real.chmod(0o777)
    if links == "two":
        between.symlink_to(real)
    target = {"one": real / "inner", "two": between / "inner", "relative": Path("real", "..", "real", "inner"),
              "loop": base}[links]  # fmt: skip
    base.symlink_to(target)
    with pytest.raises(Untrusted, match="too many" if links == "loop" else "everybody"):
        check_way(base)
    refused(base, caplog)


@needs_root
def test_link_of_another_in_a_sticky_folder_is_refused(base: Path, caplog: pytest.LogCaptureFixture) -> None:
    fill(base.parent / "mine")
    base.parent.chmod(0o1777)
    base.symlink_to(base.parent / "mine")
    os.lchown(base, FOREIGN, FOREIGN)
    assert str(FOREIGN) in refused(base, caplog)


def test_relative_folder_is_refused(
    base: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.chdir(base.parent)
    monkeypatch.setenv("SLANGPY_CACHE_DIR", "cache")
    DiskCache(_default_cache_dir()).write_bytes("kernel", KEY, b"content")
    assert not base.exists() and "no absolute path" in caplog.text
    for name in ("SLANGPY_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv("SLANGPY_CACHE_DIR", raising=False)
        monkeypatch.setenv(name, "" if name == "SLANGPY_CACHE_DIR" else "here")
        monkeypatch.setenv("HOME", str(base.parent / "home"))
        assert str(base.parent / "home") in str(_default_cache_dir())
    monkeypatch.setenv("SLANGPY_CACHE_DIR", "~/mine")
    assert _default_cache_dir() == base.parent / "home" / "mine"


@pytest.mark.parametrize("kind", ["fifo", "folder", "device"])
def test_what_is_no_file_does_no_harm(base: Path, kind: str) -> None:
    fill(base)
    entry = places(base)["entry"]
    entry.unlink()
    if kind == "fifo":
        os.mkfifo(entry, 0o600)
    elif kind == "folder":
        entry.mkdir()
    else:
        entry.symlink_to("/dev/zero")
    cache = DiskCache(base)
    assert cache.read_bytes("kernel", KEY) is None
    cache.write_bytes("kernel", KEY, b"content")
    assert cache.read_bytes("kernel", KEY) == (b"content" if kind != "folder" else None)


def test_entry_under_another_name_is_damaged(base: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A right checksum does not make it the entry that was asked for."""
    fill(base)
    entry = places(base)["entry"]
    for other in (entry.with_name("cd" * 32), base / "v2" / "plan" / KEY):
        other.parent.mkdir(exist_ok=True)
        other.write_bytes(entry.read_bytes())
        assert DiskCache(base).read_bytes(other.parent.name, other.name) is None
        assert "damaged" in caplog.text


def test_every_flipped_byte_and_every_cut_is_seen(base: Path) -> None:
    cache = fill(base)
    entry = places(base)["entry"]
    data = entry.read_bytes()
    for at in range(len(data)):
        for broken in (data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :], data[:at]):
            entry.write_bytes(broken)
            assert cache.read_bytes("kernel", KEY) is None
    entry.write_bytes(data)
    assert cache.read_bytes("kernel", KEY) == b"content"


def as_user(uid: int, work: Callable[[], None]) -> None:
    """Runs `work` in a process of another user."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.setgroups([])
            os.setgid(uid)
            os.setuid(uid)
            work()
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0


@needs_root
def test_shared_cache_of_an_administrator(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Others read it only when told to, and only what root alone may write."""
    fill(base)
    for path in (base, *base.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)

    def look(expected: bytes | None, shared: bool) -> Callable[[], None]:
        def work() -> None:
            config.cache_shared = shared
            cache = DiskCache(base)
            assert cache.read_bytes("kernel", KEY) == expected
            cache.write_bytes("kernel", KEY, b"mine")
            assert cache.read_bytes("kernel", KEY) == expected

        return work

    as_user(FOREIGN, look(None, False))
    as_user(FOREIGN, look(b"content", True))
    for path in places(base).values():
        before = path.stat().st_mode & 0o7777
        if path != base.parent:
            path.chmod(before | 0o020)
            as_user(FOREIGN, look(None, True))
            path.chmod(before)
            os.chown(path, FOREIGN + 1, 0)
            as_user(FOREIGN, look(None, True))
            os.chown(path, 0, 0)
    as_user(FOREIGN, look(b"content", True))


FULL = """
import logging, resource, sys
logging.basicConfig()
from slangpy.compiler.cache import DiskCache
from pathlib import Path
cache = DiskCache(Path(sys.argv[1]))
cache.write_bytes("kernel", "small", b"x")
resource.setrlimit(resource.RLIMIT_FSIZE, (65536, 65536))
for i in range(5):
    cache.write_bytes("kernel", f"large{i}", b"x" * 100_000)
assert cache.read_bytes("kernel", "small") == b"x"
assert all(cache.read_bytes("kernel", f"large{i}") is None for i in range(5))
"""


def test_full_disk_is_one_warning_and_leaves_nothing(base: Path) -> None:
    done = subprocess.run([sys.executable, "-c", FULL, str(base)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("SLANGPY_CACHE_DIR") == 1
    assert [path.name for path in (base / "v2" / "kernel").iterdir()] == ["small"]


def write_for_ever(base: Path) -> None:
    cache = DiskCache(base, size=1 << 20)
    count = 0
    while True:
        count += 1
        cache.write_bytes("kernel", f"{count % 50:064d}", bytes([count % 256]) * (count * 997 % 100_000))


@pytest.mark.parametrize("number", range(8))
def test_killed_at_any_moment(base: Path, number: int) -> None:
    context = multiprocessing.get_context("fork")
    writers = [context.Process(target=write_for_ever, args=(base,)) for _ in range(2)]
    for writer in writers:
        writer.start()
    time.sleep(0.05 + 0.013 * number)
    for writer in writers:
        assert writer.pid is not None
        os.kill(writer.pid, signal.SIGKILL)
        writer.join()
    cache = DiskCache(base, size=1 << 20)
    for path in (base / "v2").glob("kernel/*"):
        if path.name.startswith("."):
            continue
        data = path.read_bytes()
        assert data[:32] == _checksum("kernel", path.name, data[32:]) and len(set(data[32:])) <= 1
        assert cache.read_bytes("kernel", path.name) == data[32:]
    cache.write_bytes("kernel", KEY, b"content")
    assert cache.read_bytes("kernel", KEY) == b"content"


def test_emptied_while_in_use(base: Path) -> None:
    import shutil

    cache = fill(base)
    shutil.rmtree(base)
    assert cache.read_bytes("kernel", KEY) is None
    cache.write_bytes("kernel", KEY, b"content")
    assert cache.read_bytes("kernel", KEY) == b"content"
