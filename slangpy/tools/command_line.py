"""`python -m slangpy`: what there is on this machine, the disk cache, and work on Slang files."""

from __future__ import annotations

import argparse
import importlib
import io
import os
import platform
import shutil
import sys
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import slangpy as spy

from ..base import libslang
from ..compiler.cache import cache
from ..compiler.cache.export import export
from ..compiler.modules.files import load_path
from ..compiler.options import session_options
from ..compiler.session import create_session
from ..config import config
from ..inspection import listing_of
from .arguments import check as check_arguments, told
from .rewriting import named_defines, rewrite
from .stubs import stubs_of

TYPES = [t for t in spy.DeviceType if t is not spy.DeviceType.automatic]
PACKAGES = ("numpy", "torch", "OpenImageIO", "ziglang")


def _mib(size: int) -> str:
    return f"{size / 2**20:.1f} MiB"


def _open(name: str, include: Sequence[str] = ()) -> spy.Device:
    return spy.create_device(type=name, include_paths=[os.path.abspath(path) for path in include])


# --- what there is


def _version_of(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def info(options: argparse.Namespace) -> int:
    """Versions, devices, tools, folders and settings."""
    print(f"slangpy    {spy.__version__} ({Path(spy.__file__).parent})")
    print(f"Slang      {libslang.version()}")
    print(f"Python     {platform.python_version()} on {platform.platform()}")
    for package in PACKAGES:
        print(f"{package:10} {_version_of(package)}")
    compiler = config.cxx or shutil.which("c++") or shutil.which("g++") or shutil.which("clang++") or "none found"
    print(f"C++        {compiler}")
    print(f"cache      {cache.folder}{'' if config.cache_enabled else ' (switched off)'}")
    settings = {name: value for name, value in sorted(os.environ.items()) if name.startswith("SLANGPY_")}
    for name, value in settings.items():
        print(f"{name}={value}")
    print()
    return devices(options)


def devices(options: argparse.Namespace) -> int:
    """Each type of device with its adapters, or why it cannot be opened."""
    del options
    for kind in TYPES:
        try:
            device = spy.Device(type=kind)
        except (RuntimeError, NotImplementedError) as error:
            reason = str(error).splitlines()[0].removesuffix("; tried:")
            print(f"{kind.name:8} not here: {reason}")
            continue
        names = [adapter.name for adapter in spy.Device.enumerate_adapters(kind)] or [device.info.adapter_name]
        print(f"{kind.name:8} {', '.join(names)}")
        device.close()
    return 0


# --- the disk cache


def _files(folder: Path) -> list[Path]:
    return [Path(parent) / name for parent, _, names in os.walk(folder) for name in names if not name.startswith(".")]


def cache_info(options: argparse.Namespace) -> int:
    """Folder, size and entries of the disk cache."""
    del options
    folder = cache.folder
    files = _files(folder)
    print(f"folder   {folder}{'' if folder.is_dir() else ' (not there)'}")
    print(f"size     {_mib(sum(f.stat().st_size for f in files))} of {_mib(cache.size)}")
    for kind in sorted({f.relative_to(folder).parts[0] for f in files}):
        own = _files(folder / kind)
        print(f"{kind:8} {len(own)} entries, {_mib(sum(f.stat().st_size for f in own))}")
    return 0


def cache_prune(options: argparse.Namespace) -> int:
    """Removes what was used least recently until the cache is within its size."""
    before = sum(f.stat().st_size for f in _files(cache.folder))
    if cache.folder.exists():
        cache.trim()
    after = sum(f.stat().st_size for f in _files(cache.folder))
    print(f"{_mib(before - after)} removed, {_mib(after)} left in {cache.folder}")
    return cache_info(options) if options.verbose else 0


def cache_clear(options: argparse.Namespace) -> int:
    """Removes all entries."""
    del options
    files = _files(cache.folder)
    for kind in {f.relative_to(cache.folder).parts[0] for f in files}:
        cache.remove(kind)
    print(f"{len(files)} entries removed from {cache.folder}")
    return 0


def cache_export(options: argparse.Namespace) -> int:
    """Copies what holds on other machines into a folder that can be shipped, for SLANGPY_SHIPPED_CACHE."""
    count, size = export(cache, Path(options.folder))
    print(f"{count} entries, {_mib(size)} in {options.folder}")
    return 0


# --- Slang files


def _load(options: argparse.Namespace) -> Any:
    device = _open(options.device, options.include)
    return spy.Module.load_from_file(device, os.path.abspath(options.file), defines=named_defines(options.define))


def check(options: argparse.Namespace) -> int:
    """Compiles the file and prints its declarations; the exit status is 1 where it does not compile."""
    module = _load(options)
    for line in listing_of(module):
        print(line)
    for entry_point in module.device_module.entry_points:
        print(f"entry point {entry_point.name} ({entry_point.stage.name})")
    return 0


def _assembly(module: Any, defines: dict[str, str]) -> Any:
    """The module again, in a session that gives SPIR-V as text."""
    given = session_options(module.device)
    given["defines"] = {**given.get("defines", {}), **defines}
    session = create_session(module.device, given, format="spirv-asm")
    return load_path(session, module._path)


def _no_entry_point(options: argparse.Namespace, names: list[str]) -> str:
    if names:
        return f"{options.file} has no entry point {options.entry}; it has: {', '.join(names)}"
    return (
        f"{options.file} has no entry point; one is marked, as in "
        '[shader("compute")] [numthreads(32, 1, 1)] void main(uint3 id : SV_DispatchThreadID) {}. '
        "Functions that Python calls need none: `check` lists them"
    )


def compile_file(options: argparse.Namespace) -> int:
    """Code of the file's entry points for a device, written into a folder (-o) or to stdout: SPIR-V as text on a terminal,
    as bytes into a pipe or file."""
    module = _load(options)
    found = module.device_module.entry_points
    points = [p for p in found if options.entry is None or p.name == options.entry]
    if not points:
        raise ValueError(_no_entry_point(options, [p.name for p in found]))
    folder = Path(options.output) if options.output else None
    source = module.device_module
    as_text = options.text or (folder is None and sys.stdout.isatty())
    if as_text and module.device.compile_target.format == "spirv":
        source = _assembly(module, named_defines(options.define))
        points = [source.entry_point(point.name) for point in points]
    program = source.session.link_program([source], points)
    for index, point in enumerate(points):
        code = program.code(index)
        if folder is None:
            sys.stdout.buffer.write(code)
            continue
        if folder.exists() and not folder.is_dir():
            raise NotADirectoryError(f"-o {folder} is a file; expected a folder, which is made where it is not there")
        folder.mkdir(parents=True, exist_ok=True)
        form = f"{module.device.compile_target.format}{'-asm' if source is not module.device_module else ''}"
        target = folder / f"{Path(options.file).stem}.{point.name}.{form}"
        target.write_bytes(code)
        print(f"{target}: {len(code)} bytes")
    return 0


def stubs(options: argparse.Namespace) -> int:
    """A `.pyi` with the functions and types of the file, so that editors complete them."""
    path = Path(options.output or Path(options.file).with_suffix(".pyi"))
    path.write_text(stubs_of(_load(options)), encoding="utf-8")
    print(path)
    return 0


def view(options: argparse.Namespace) -> int:
    """Shows a function of a pixel, `float4 f(uint2 pixel, ...)`, in a window with a slider for each parameter."""
    return importlib.import_module("slangpy.tools.view.command").run(options)


# --- the command line


def parser() -> argparse.ArgumentParser:
    main_parser = argparse.ArgumentParser(prog="python -m slangpy", description=__doc__)
    main_parser.set_defaults(run=lambda options: main_parser.print_help(), command="slangpy")
    main_parser.add_argument("--version", action="version", version=f"slangpy {spy.__version__}")
    commands = main_parser.add_subparsers(metavar="COMMAND")

    def add(to: Any, name: str, function: Any) -> argparse.ArgumentParser:
        command = to.add_parser(name, help=function.__doc__, description=function.__doc__)
        command.set_defaults(run=function, command=command.prog.removeprefix(main_parser.prog).strip())
        return command

    add(commands, "info", info)
    add(commands, "devices", devices)
    inner = commands.add_parser("cache", help="The disk cache.").add_subparsers(required=True, metavar="COMMAND")
    add(inner, "info", cache_info)
    add(inner, "prune", cache_prune).add_argument("-v", "--verbose", action="store_true", help="say what is left")
    add(inner, "clear", cache_clear)
    add(inner, "export", cache_export).add_argument("folder", metavar="FOLDER", help="made where it is not there")
    for name, function in (("compile", compile_file), ("check", check), ("stubs", stubs)):
        command = add(commands, name, function)
        command.add_argument("file", metavar="FILE", help="a .slang file")
        command.add_argument("-d", "--device", default="cpu", help="type of device to compile for (cpu)")
        command.add_argument("-I", "--include", action="append", default=[], help="folder to search for imports")
        command.add_argument("-D", "--define", action="append", default=[], help="NAME or NAME=VALUE")
        if name != "check":
            command.add_argument("-o", "--output", help="file, of `compile` a folder")
        if name == "compile":
            command.add_argument("-e", "--entry", help="one entry point (all)")
            command.add_argument("-t", "--text", action="store_true", help="SPIR-V as text, wherever it goes")
    _add_view(add(commands, "view", view))
    command = add(commands, "rewrite", rewrite)
    command.add_argument("file", metavar="FILE", nargs="?", help="a .slang file")
    command.add_argument("--rules", action="store_true", help="print the table of rules")
    command.add_argument("-d", "--device", default="cpu", help="type of device that it is for (cpu)")
    command.add_argument("-I", "--include", action="append", default=[], help="folder to search for imports")
    command.add_argument("-D", "--define", action="append", default=[], help="NAME or NAME=VALUE")
    return main_parser


def _add_view(command: argparse.ArgumentParser) -> None:
    command.add_argument("file", metavar="FILE", help="a .slang file")
    command.add_argument("-d", "--device", help="type of device to run on (vulkan; with --save the best there is)")
    command.add_argument("-I", "--include", action="append", default=[], help="folder to search for imports")
    command.add_argument("-f", "--function", help="where the file has several functions of a pixel")
    command.add_argument("--size", default="640x480", help="WIDTHxHEIGHT in pixels (640x480)")
    command.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a parameter; of vectors 1,2,3")
    command.add_argument("--save", metavar="FILE", help="write the picture, and open no window")


def main(arguments: Sequence[str] | None = None) -> int:
    """0: done; 1: it failed, with a message on stderr; 2: the command line is wrong; 130: Ctrl-C."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # names of files in letters that the terminal does not have
    options = parser().parse_args(arguments)
    try:
        check_arguments(options)
        code = options.run(options) or 0
        sys.stdout.flush()
    except BrokenPipeError:  # who reads has enough, as `| head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        return 130
    except (spy.SlangCompileError, ImportError, RuntimeError, ValueError, OSError) as error:
        print(told(options.command, error), file=sys.stderr)
        return 1
    return code
