"""Writes what only the built modules can tell: the precompiled Slang library and the type stubs.

    python package_files.py --modules DIR --source DIR --output DIR [--stubs] [--library]

DIR of the modules holds _native and _slang, DIR of the source the package's Python and Slang files. The package is
imported without its __init__, so that nothing but the standard library (and nanobind, for stubs) must be installed.
"""

from __future__ import annotations

import argparse
import enum
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
    """`slang/slangpy_core.slang-module.bin`: 64 hex characters that say what it was made from, then the module's IR; the
    same for the other parts of our library, and for HLSL; and what Slang writes in front of kernels in C++."""
    library = importlib.import_module("slangpy.compiler.library")
    for format in ("cpp", "hlsl"):
        made: dict[str, bytes] = {}
        for part in (library.CORE, *library.PARTS):
            made[part] = library.compile_library(format, part, made.get)
        blobs = {library.compiled_name(format, part): blob for part, blob in made.items()}
        for name, blob in blobs.items():
            target = output / "slang" / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(library.library_key(format).encode("ascii") + blob)
            print(f"{target}: {len(blob) // 1024} KiB")
    prelude = output / "slang" / "slangpy-prelude.bin"
    prelude.write_bytes(library.library_key().encode("ascii") + library.compile_prelude())


DECLARATION = re.compile(r"^\s*(?:def )?\w+(?:\(|: ).*$", re.M)
BOUNDARY = re.compile(r"^.*\benum\.FlagBoundary\b.*\n", re.M)


BARE = {
    "dict": "dict[Any, Any]",
    "tuple": "tuple[Any, ...]",
    "Callable": "Callable[..., Any]",
    "os.PathLike": "os.PathLike[str]",
    **{name: f"{name}[Any]" for name in ("list", "Sequence", "Iterator", "Iterable")},
}
"""Strict checkers call a generic type without arguments unknown, and all that has to do with it."""
GENERIC = re.compile(r"(?<=[|:>,\[] )(" + "|".join(map(re.escape, BARE)) + r")(?![\w\[(.=])")


def _typed(declaration: str) -> str:
    return GENERIC.sub(lambda found: BARE[found[1]], re.sub(r"\bobject\b", "Any", declaration))


def loosen(stub: str) -> str:
    """`object`, which is what a binding says of values made in Python, becomes Any: callers know more than it.

    The boundary of flags is left out, because Python 3.10 has none. Vectors and matrices, whose home is the package,
    are described in math/__init__.pyi.
    """
    stub = stub.replace("\nfrom slangpy import (", "\nfrom slangpy.math import (")
    stub = stub.replace("\n    __str__ = __repr__\n", "\n")  # enumerations: it says nothing of it
    text = DECLARATION.sub(lambda line: _typed(line[0]), BOUNDARY.sub("", stub))
    if text == stub or re.search(r"^from typing import .*\bAny\b", text, re.M):
        return text
    return f"from typing import Any\n\n{text}"


def with_aliases(stub: str, module: types.ModuleType) -> str:
    """The stub with what classes call by names of their own, such as `TypeReflection.Kind`, which stubgen leaves out."""
    for name, owner in vars(module).items():
        if not isinstance(owner, type) or issubclass(owner, enum.Enum):
            continue
        lines = [
            f"    {alias} = {other.__module__}.{other.__qualname__}\n"
            for alias, other in vars(owner).items()
            if isinstance(other, type) and not other.__qualname__.startswith(f"{name}.")
        ]
        header = re.search(rf"^class {name}\b.*?:\n(?:    \"\"\".*?\"\"\"\n\n?)?", stub, re.MULTILINE | re.DOTALL)
        if lines and header:
            stub = stub[: header.end()] + "".join(lines) + "\n" + stub[header.end() :]
    return stub


def write_stub(name: str, output: Path) -> None:
    stubgen = importlib.import_module("nanobind.stubgen")
    module = importlib.import_module(f"slangpy.{name}")
    has_children = any(isinstance(value, types.ModuleType) for value in vars(module).values())
    target = output / name / "__init__.pyi" if has_children else output / f"{name}.pyi"
    target.parent.mkdir(parents=True, exist_ok=True)
    generator = stubgen.StubGen(module, recursive=has_children, include_private=True, output_file=target)
    generator.put(module)
    target.write_text(loosen(with_aliases(generator.get(), module)), encoding="utf-8")
    for child in target.parent.glob("*.pyi") if has_children else ():
        if child != target:
            child.write_text(loosen(child.read_text(encoding="utf-8")), encoding="utf-8")
    print(target)


def write_older_paths(output: Path) -> None:
    """Stubs of the modules that slangpy/compat.py makes, for type checkers."""
    compat = importlib.import_module("slangpy.compat")
    for path in compat.PATHS:
        names = sorted(compat.older_names(path).items())
        lines = [f"from {home} import {name} as {own}" for own, (home, name) in names]
        children = [p.rpartition(".")[2] for p in compat.PATHS if p.rpartition(".")[0] == path]
        lines += [f"from . import {child} as {child}" for child in children]
        target = output.joinpath(*path.split("."))
        target = target / "__init__.pyi" if children else target.with_suffix(".pyi")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text("\n".join(lines) + "\n", encoding="utf-8")


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
        write_older_paths(options.output)


if __name__ == "__main__":
    main()
