"""Fetches the Slang compiler from one pinned wheel and prints the folder that holds include/ and lib/.

The wheel is a zip archive that carries a release of Slang for Linux; only Slang's own headers, libraries and standard
modules are taken from it. It is checked against a fixed SHA-256 and the result is kept in the user's cache folder.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

REQUIREMENT = "slangpy==0.43.1"
WHEEL_SHA256 = "965dbbd1d907c90e17027945780146a67c66baf766f3d0b8af3f52ea2c4a8eb9"
PLATFORM = "manylinux_2_34_x86_64"
HEADERS = re.compile(r"(?:^|/)include/(slang(?!-rhi)[\w.-]*\.h)$")
STANDARD_MODULES = re.compile(r"(?:^|/)(slang-standard-module-[\w.-]*/slang/[\w-]+\.slang-module)$")
LIBRARIES = re.compile(r"(?:^|/)(libslang-(?:compiler|glslang|glsl-module)[\w.-]*\.so[\w.]*)$")


def cache_folder() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(base) / "slangpy" / "build" / f"slang-{WHEEL_SHA256[:12]}"


def download(folder: str) -> Path:
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--dest", folder]
    command += ["--python-version", "3.11", "--implementation", "cp", "--abi", "cp311", "--platform", PLATFORM]
    subprocess.run([*command, "--quiet", "--disable-pip-version-check", REQUIREMENT], check=True, stdout=sys.stderr)
    wheel = next(Path(folder).glob("*.whl"))
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    if digest != WHEEL_SHA256:
        raise SystemExit(f"{wheel.name}: SHA-256 is {digest}, expected {WHEEL_SHA256}")
    return wheel


def unpack(wheel: Path, target: Path) -> None:
    """Takes the headers and libraries; libraries are stored as in a release: the real file and its short name."""
    (target / "include").mkdir(parents=True)
    (target / "lib").mkdir()
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            for pattern, folder in ((HEADERS, "include"), (LIBRARIES, "lib"), (STANDARD_MODULES, "lib")):
                if match := pattern.search(name):
                    path = target / folder / match[1]
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_bytes(archive.read(name))
    compilers = list((target / "lib").glob("libslang-compiler.so*"))
    if not compilers or not (target / "include" / "slang.h").exists():
        raise SystemExit(f"{wheel.name} does not hold slang.h and libslang-compiler")
    versioned = max(compilers, key=lambda path: len(path.name))
    short = target / "lib" / "libslang-compiler.so"
    if not short.exists():
        short.symlink_to(versioned.name)


def is_complete(folder: Path) -> bool:
    return (folder / "include" / "slang.h").exists() and any((folder / "lib").glob("slang-standard-module-*"))


def main() -> None:
    target = cache_folder()
    if not is_complete(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        staging = Path(tempfile.mkdtemp(dir=target.parent))
        try:
            unpack(download(str(staging)), staging / "slang")
            try:
                if target.exists():  # by an older build, which took fewer files
                    target.rename(staging / "old")
                (staging / "slang").rename(target)
            except OSError:  # another build was faster
                if not is_complete(target):
                    raise
        finally:
            shutil.rmtree(staging, ignore_errors=True)
    print(target)


if __name__ == "__main__":
    main()
