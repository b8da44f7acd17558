"""Directions of imports and includes: what stands below never imports what stands above, and nothing goes in circles."""

from __future__ import annotations

import ast
import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "slangpy"
NATIVE = ROOT / "src" / "native"

ROOT_MODULES = {
    **dict.fromkeys(("_native", "_slang", "config", "errors", "generators"), "base"),
    **dict.fromkeys(("function", "instance", "module", "struct"), "public"),
    **dict.fromkeys(("", "__main__", "_built", "compat", "typing"), "package"),
}
"""The rows of BELOW that modules without a folder belong to; "" is the package itself."""
BUILT = {"_native", "_slang", "_built"}
"""Modules that the build makes: a fresh clone lacks them."""
BELOW = {
    "base": set(),
    "math": {"base"},
    "reflection": {"base"},
    "bindings": {"base", "reflection"},
    "images": {"base"},
    "window": {"base", "compiler", "device", "images", "ui"},
    "compiler": {"base", "reflection"},
    "plan": {"base", "reflection", "bindings", "compiler"},
    "graphics": {"base", "compiler"},
    "ui": {"base", "compiler"},
    "device": {"base", "reflection", "compiler", "graphics"},
    "tensor": {"base", "reflection", "compiler", "device", "images"},
    "values": {"base", "reflection", "bindings", "tensor"},
    "run": {"base", "reflection", "bindings", "compiler", "plan", "tensor"},
    "pytorch": {"base", "reflection", "bindings", "compiler", "plan", "tensor", "device", "run"},
    "public": {"base", "reflection", "bindings", "compiler", "plan", "tensor", "device", "values", "run", "pytorch"},
    "derivatives": {"base", "reflection", "compiler", "plan", "tensor", "device", "values", "run", "pytorch", "public"},
    "rays": {"base", "tensor", "device", "public"},
    "neural": {"base", "tensor", "device", "public"},
    "jax": {"base", "plan", "tensor", "values", "public"},
    "tools": {
        "base", "reflection", "compiler", "plan", "tensor", "device", "values", "run", "images", "ui", "window", "public",
        "package",
    },
    "package": None,  # gathers everything
}
"""What each folder may import besides itself."""
EXPRESSIONS = {
    **dict.fromkeys((f"plan/bind/{name}.py" for name in ("base", "resource", "tensor", "views")), "names of types"),
    **dict.fromkeys((f"plan/{name}.py" for name in ("constants", "device_types", "layout", "textures")), "names of types"),
    "plan/resolve/__init__.py": "names of types",
    "plan/slang_text.py": "names of types, and the kernel's own names in what was emitted",
    "plan/compile.py": "what the compiler says",
    "plan/derive/second_order.py": "paths of values",
}
"""The files of `plan` and `compiler/modules` with regular expressions, and what these match: never what users wrote."""
NO_LOCAL_IMPORTS = ("plan", "run", "compiler", "reflection")

INCLUDES = {
    "core": set(),
    "math": {"core"},
    "slang": {"core"},
    "device": {"core", "math"},
    "null": {"core", "math", "device"},
    "cpu": {"core", "math", "device"},
    "cuda": {"core", "math", "device"},
    "vulkan": {"core", "math", "device"},
    "d3d12": {"core", "math", "device"},
    "values": {"core", "math", "device", "slang"},
    "call": {"core", "math", "device", "slang", "values"},
    "worker": {"core", "slang"},
    "python": None,  # binds everything
}
"""What files of each native folder may include besides their own."""


def load_structure() -> ModuleType:
    """tools/structure.py, which knows what imports what."""
    spec = importlib.util.spec_from_file_location("structure", ROOT / "tools" / "structure.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["structure"] = module  # dataclasses look there
    spec.loader.exec_module(module)
    return module


structure = load_structure()
FILES = structure.python_files()
KNOWN = {structure.module_name(path) for path in FILES}


def folder_of(module: str) -> str:
    """The row of BELOW that a module belongs to."""
    name = module.split(".")[1] if "." in module else ""
    return ROOT_MODULES.get(name, name)


def test_every_folder_is_ranked():
    folders = {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists()}
    assert folders | set(ROOT_MODULES.values()) == set(BELOW)
    modules = {path.stem for path in PACKAGE.iterdir() if path.suffix == ".py"} | BUILT
    assert modules - {"__init__"} == set(ROOT_MODULES) - {""}
    native = {path.name for path in NATIVE.iterdir() if path.is_dir()}
    assert native <= set(INCLUDES)


@pytest.mark.parametrize("folder", [name for name, below in BELOW.items() if below is not None])
def test_imports_go_down(folder: str):
    wrong = []
    for path in FILES:
        module = structure.module_name(path)
        if folder_of(module) != folder:
            continue
        for other in structure.imported_modules(path, KNOWN, everywhere=True):
            below = BELOW[folder] | {folder}
            if folder_of(other) not in below:
                wrong.append(f"{module} imports {other}")
    assert not wrong, "\n".join(wrong)


def test_no_import_cycles():
    graph = {structure.module_name(path): structure.imported_modules(path, KNOWN) for path in FILES}
    assert structure.cycles(graph) == []


def test_no_imports_inside_functions():
    wrong = [
        line for path in FILES for line in structure.local_imports(path)
        if path.relative_to(PACKAGE).parts[0] in NO_LOCAL_IMPORTS
    ]  # fmt: skip
    assert not wrong, "\n".join(wrong)


def test_cycles_are_found():
    assert structure.cycles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == [["a", "b", "c"]]


def test_local_imports_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    file = tmp_path / "x.py"
    file.write_text("import os\ndef f():\n    if os:\n        import sys\n        return sys\n")
    monkeypatch.setattr(structure, "ROOT", tmp_path)
    assert len(structure.local_imports(file)) == 1


def test_import_is_light():
    """Neither torch nor the compiler is loaded by `import slangpy`."""
    code = "import slangpy, sys; print([n for n in ('torch', 'slangpy._slang') if n in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


_INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)


def included_folders(path: Path) -> set[str]:
    """Native folders other than its own that a file includes from."""
    own = path.relative_to(NATIVE).parts[0]
    found = set()
    for name in _INCLUDE.findall(path.read_text("utf-8")):
        if "/" not in name:
            continue
        target = (path.parent / name).resolve()
        parts = target.relative_to(NATIVE).parts if target.exists() and NATIVE in target.parents else Path(name).parts
        if parts[0] in INCLUDES:
            found.add(parts[0])
    return found - {own}


@pytest.mark.parametrize("folder", [name for name, below in INCLUDES.items() if below is not None])
def test_includes_go_down(folder: str):
    wrong = []
    for path in sorted((NATIVE / folder).rglob("*")):
        if path.suffix in (".cpp", ".h"):
            above = included_folders(path) - INCLUDES[folder]
            wrong += [f"{path.relative_to(ROOT)} includes {other}" for other in sorted(above)]
    assert not wrong, "\n".join(wrong)


def test_slang_text_is_asked_of_the_parser():
    """Regular expressions in `plan` and `compiler/modules` match the names and texts of EXPRESSIONS, and no sources."""
    folders = (PACKAGE / "plan", PACKAGE / "compiler" / "modules")
    users = {
        path.relative_to(PACKAGE).as_posix()
        for folder in folders for path in folder.rglob("*.py")
        if any(
            (isinstance(node, ast.Import) and any(name.name == "re" for name in node.names))
            or (isinstance(node, ast.ImportFrom) and node.module == "re")
            for node in ast.walk(ast.parse(path.read_text("utf-8")))
        )
    }  # fmt: skip
    assert users == set(EXPRESSIONS), "what sources say is asked of compiler/modules/facts.py"


def test_statements_are_read():
    """The reader of imports sees plain, relative and extension modules, and leaves out what type checkers read."""
    path = PACKAGE / "compiler" / "session.py"
    assert {"slangpy.base.libslang", "slangpy.base.folders"} <= structure.imported_modules(path, KNOWN)
    assert ast.parse(path.read_text("utf-8")).body
