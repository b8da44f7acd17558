"""Writes what only the built modules can tell: the precompiled Slang library and the type stubs.

    python package_files.py --modules DIR --source DIR --output DIR [--stubs] [--library]

DIR of the modules holds _native and _slang, DIR of the source the package's Python and Slang files. The package is
imported without its __init__, so that nothing but the standard library (and nanobind, for stubs) must be installed.
"""

from __future__ import annotations

import argparse
import importlib
import re
import sys
import types
from pathlib import Path


def import_parts(modules: Path, source: Path) -> None:
    """Makes `slangpy.x` importable from both folders, without running the package's own __init__."""
    package = types.ModuleType("slangpy")
    package.__path__ = [str(modules), str(source)]
    found = re.search(r'^__version__ = "(.*)"', (source / "__init__.py").read_text(encoding="utf-8"), re.M)
    if found is None:
        raise SystemExit(f'{source / "__init__.py"} has no line __version__ = "..."')
    package.__version__ = found[1]  # type: ignore[attr-defined]
    sys.modules["slangpy"] = package


def write_library(output: Path) -> None:
    """`slang/slangpy.slang-module.bin`: 64 hex characters that say what it was made from, then the module's IR.

    The IR is the same for every target; any target's session can make it.
    """
    compile_stage = importlib.import_module("slangpy.call.compile")
    compiler = importlib.import_module("slangpy._slang")
    folder = compile_stage._LIBRARY
    session = compiler.SlangSession({"format": "cpp"}, {"include_paths": [str(folder)], "library_paths": [str(folder)]})
    blob = session.load_module("slangpy").serialize()
    key = compile_stage.digest(compile_stage.library_hash(), str(compiler.version()))
    target = output / "slang" / "slangpy.slang-module.bin"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(key.encode("ascii") + blob)
    print(f"{target}: {len(blob) // 1024} KiB")


DECLARATION = re.compile(r"^\s*(?:def )?\w+(?:\(|: ).*$", re.M)
BOUNDARY = re.compile(r"^.*\benum\.FlagBoundary\b.*\n", re.M)


def loosen(stub: str) -> str:
    """`object`, which is what a binding says of values made in Python, becomes Any: callers know more than it.

    The boundary of flags is left out, because Python 3.10 has none. Vectors and matrices, whose home is the package,
    are described in math.pyi.
    """
    stub = stub.replace("\nfrom slangpy import (", "\nfrom slangpy.math import (")
    text = DECLARATION.sub(lambda line: re.sub(r"\bobject\b", "Any", line[0]), BOUNDARY.sub("", stub))
    if text == stub or re.search(r"^from typing import .*\bAny\b", text, re.M):
        return text
    return f"from typing import Any\n\n{text}"


def write_stub(name: str, output: Path) -> None:
    stubgen = importlib.import_module("nanobind.stubgen")
    module = importlib.import_module(f"slangpy.{name}")
    has_children = any(isinstance(value, types.ModuleType) for value in vars(module).values())
    target = output / name / "__init__.pyi" if has_children else output / f"{name}.pyi"
    target.parent.mkdir(parents=True, exist_ok=True)
    generator = stubgen.StubGen(module, recursive=has_children, include_private=True, output_file=target)
    generator.put(module)
    target.write_text(loosen(generator.get()), encoding="utf-8")
    for child in target.parent.glob("*.pyi") if has_children else ():
        if child != target:
            child.write_text(loosen(child.read_text(encoding="utf-8")), encoding="utf-8")
    print(target)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("modules", "source", "output"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--stubs", action="store_true")
    parser.add_argument("--library", action="store_true")
    options = parser.parse_args()
    sys.dont_write_bytecode = True
    import_parts(options.modules, options.source)
    if options.library:
        write_library(options.output)
    if options.stubs:
        for name in ("_native", "_slang"):
            write_stub(name, options.output)


if __name__ == "__main__":
    main()
