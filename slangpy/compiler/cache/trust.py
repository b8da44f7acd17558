"""Whom the disk cache trusts. What lies in it is run, so nobody else may have put it there (SECURITY.md).

Windows is left out: owners and modes say nothing there, and the folders of a profile keep other users out by
themselves.
"""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

if sys.platform != "win32":
    import grp
    import pwd

POSIX = os.name == "posix"
_FOLDER = sum(getattr(os, name, 0) for name in ("O_DIRECTORY", "O_NOFOLLOW", "O_CLOEXEC"))
_FILE = sum(getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY"))
_MOST_LINKS = 40


class Untrusted(Exception):
    """What is wrong with a file or folder, as a sentence that begins with its path."""


def open_file(path: str | os.PathLike[str], shared: bool) -> tuple[int, os.stat_result]:
    """Descriptor of a file to read, and its status: taken once open, so that nothing can take its place meanwhile.

    shared: root may own it as well. Raises Untrusted, and OSError when it cannot be opened.
    """
    try:
        handle = os.open(path, os.O_RDONLY | _FILE)
    except OSError as error:
        if os.path.islink(path):
            raise Untrusted(f"{os.fspath(path)} is a symbolic link") from error
        raise
    try:
        info = os.fstat(handle)
        if not stat.S_ISREG(info.st_mode):
            raise Untrusted(f"{os.fspath(path)} is no regular file")
        _check_own(path, info, shared)
        return handle, info
    except BaseException:
        os.close(handle)
        raise


def check_folder(path: str | os.PathLike[str], shared: bool) -> None:
    """Raises Untrusted unless the folder is the user's and only theirs to write. Others lose the right to read it.

    shared: root may own it as well, and others may read. OSError when there is no such folder.
    """
    if not POSIX:
        if not os.path.isdir(path):
            raise NotADirectoryError(f"{os.fspath(path)} is no folder")
        return
    if os.path.islink(path):
        raise Untrusted(f"{os.fspath(path)} is a symbolic link")
    handle = os.open(path, os.O_RDONLY | _FOLDER)
    try:
        info = os.fstat(handle)
        _check_own(path, info, shared)
        if info.st_mode & 0o077 and not shared and info.st_mode & 0o200:
            os.fchmod(handle, 0o700)
    finally:
        os.close(handle)


def _check_own(path: str | os.PathLike[str], info: os.stat_result, shared: bool) -> None:
    if not POSIX:
        return
    if info.st_uid != os.geteuid() and not (shared and info.st_uid == 0):
        raise Untrusted(f"{os.fspath(path)} belongs to {_user(info.st_uid)}, not to {_user(os.geteuid())}")
    if info.st_mode & 0o022:
        raise Untrusted(f"{os.fspath(path)} can be written by {_writers(info)}")


def check_way(path: str | os.PathLike[str]) -> None:
    """Raises Untrusted when another user could put something else in the place of `path`: by owning, or being allowed
    to write, a folder on the way to it, links on the way included. What does not exist yet is left out."""
    if not os.path.isabs(path):
        raise Untrusted(f"{os.fspath(path)} is no absolute path")
    if not POSIX:
        return
    parts = list(reversed(Path(path).parts[1:]))
    current, links = "/", 0
    _check_on_way(current, os.lstat(current))
    while parts:
        name = parts.pop()
        if name == "..":
            current = os.path.dirname(current)
            continue
        step = os.path.join(current, name)
        try:
            info = os.lstat(step)
        except FileNotFoundError:
            return
        _check_on_way(step, info)
        if not stat.S_ISLNK(info.st_mode):
            current = step
            continue
        links += 1
        if links > _MOST_LINKS:
            raise Untrusted(f"{os.fspath(path)} leads through too many symbolic links")
        target = os.readlink(step)
        current = "/" if os.path.isabs(target) else current
        parts += reversed([part for part in target.split("/") if part not in ("", ".")])


def _check_on_way(path: str, info: os.stat_result) -> None:
    if info.st_uid not in (0, os.geteuid()) and not _is_hosts(info.st_uid):
        raise Untrusted(f"{path} belongs to {_user(info.st_uid)}, not to {_user(os.geteuid())} or root")
    if stat.S_ISLNK(info.st_mode) or not info.st_mode & 0o022 or info.st_mode & stat.S_ISVTX:
        return
    if info.st_mode & 0o002 or not _is_private(info.st_gid):
        raise Untrusted(f"{path} can be written by {_writers(info)}")


def _is_hosts(uid: int) -> bool:
    """Whether a user is what a container shows of its host's root: `nobody`, while most users have no number here."""
    try:
        overflow = int(Path("/proc/sys/kernel/overflowuid").read_text())
        users = Path("/proc/self/uid_map").read_text().split()
    except (OSError, ValueError):
        return False
    return uid == overflow and users != ["0", "0", "4294967295"]


def _is_private(gid: int) -> bool:
    """Whether a group is the user's own, as many systems make one for each user."""
    try:
        me, group = pwd.getpwuid(os.geteuid()), grp.getgrgid(gid)
    except KeyError:
        return False
    return me.pw_gid == gid and group.gr_name == me.pw_name and set(group.gr_mem) <= {me.pw_name}


def _user(uid: int) -> str:
    try:
        return f"the user '{pwd.getpwuid(uid).pw_name}'"
    except KeyError:
        return f"the user {uid}"


def _writers(info: os.stat_result) -> str:
    return "everybody" if info.st_mode & 0o002 else "its group"
