"""Directions of imports and includes: what stands below never imports what stands above, and nothing goes in circles."""

from __future__ import annotations

import ast
import importlib.util
import io
import re
import subprocess
import sys
import tokenize
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "slangpy"
NATIVE = ROOT / "src" / "native"

ROOT_MODULES = {
    **dict.fromkeys(("_native", "_slang", "config", "errors", "generators"), "base"),
    **dict.fromkeys(("function", "inspection", "instance", "module", "packed", "struct"), "public"),
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
    "plan/resolve/generic.py": "names of types",
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


# --- from native code to Python
PYTHON_NAMES = NATIVE / "core" / "python_names.h"
_ROW = re.compile(r"constexpr Python(?:Name|Attribute) (\w+)\{([^}]*)\};")
_ASKED = re.compile(
    r"(?:\battr\(|\b(?:get|has)attr\([^\"\n]*,\s*|AttrString\([^\"\n]*,\s*|CallMethod\(\w+,\s*|InternFromString\()\s*"
    r"\"(\w+)\""
)
FOREIGN = {
    "Python": "__dataclass_fields__ __dict__ __fspath__ __iter__ __len__ __members__ __name__ __qualname__ co_filename copy dir f_code fields fset "
    "getLogger get_close_matches info index item items keys modules register set size start step tb_frame tb_next text "
    "toreadonly update value warning Enum offset",
    "NumPy and DLPack": "__array__ __array_interface__ __array_priority__ __cuda_array_interface__ __dlpack__ "
    "__dlpack_c_exchange_api__ __dlpack_device__ asarray ascontiguousarray astype copyto dtype empty flags float format from_dlpack "
    "hasobject is_masked isnative itemsize kind name names nbytes ndarray ndim newbyteorder shape view writeable",
    "torch": "Parameter Tensor _C _cdata _current_level _neg_view _version are_deterministic_algorithms_enabled autograd "
    "bool compiler copy_ cuda cuda_stream current_stream data_ptr detach device element_size graph increment_version int16 "
    "is_compiling is_functorch_wrapped_tensor is_grad_enabled is_inference is_inference_mode_enabled is_leaf is_neg layout "
    "materialize_grads narrow nn ones requires_grad resolve_neg storage_offset stride t tangent to type unpack_dual untyped_storage "
    "zero_ zeros",
    "classes of users": "get_this slangpy_signature update_this",
    "native classes": "ALL_LAYERS ALL_MIPS AUTO Kind LogLevel ResourceAccess ResourceShape ScalarType Session TIMEOUT_INFINITE "
    "element_type_layout finish float16_t full_name half is_type plain submit_command_buffer to_torch type_layout uint3 warn",
    "fields of arguments and of what is kept": "_get_device _mapped _reflect _result _this call id interface_name label module "
    "options to_dict type_name",
}
"""What native files ask of objects by text, by whose it is. All else of ours stands in PYTHON_NAMES."""


def python_names() -> dict[str, list[str]]:
    """The rows of the table: module, class where there is one, and name."""
    text = PYTHON_NAMES.read_text("utf-8").replace("{errors,", '{"slangpy.errors",')
    return {name: re.findall(r'"([^"]+)"', row) for name, row in _ROW.findall(text)}


def declared_in(body: list[ast.stmt]) -> set[str]:
    found = set()
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found.add(node.target.id)
        elif isinstance(node, ast.Assign):
            found |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return found


def test_names_that_native_code_asks_for_exist():
    by_module = {structure.module_name(path): path for path in FILES}
    wrong = []
    for module, *owner, name in python_names().values():
        body = ast.parse(by_module[module].read_text("utf-8")).body if module in by_module else []
        for part in owner:
            body = next((node.body for node in body if isinstance(node, ast.ClassDef) and node.name == part), [])
        if name not in declared_in(body):
            wrong.append(".".join([module, *owner, name]))
    assert not wrong, wrong


def test_native_code_asks_by_the_table():
    rows, used, wrong = python_names(), set(), []
    foreign = {word for words in FOREIGN.values() for word in words.split()}
    assert len(rows) > 50
    for path in structure.native_files():
        if path == PYTHON_NAMES:
            continue
        text = path.read_text("utf-8")
        used |= set(re.findall(r"\bin_python::(\w+)", text))
        wrong += [f'{path.relative_to(ROOT)}: "{name}"' for name in _ASKED.findall(text) if name not in foreign]
        wrong += [
            f"{path.relative_to(ROOT)} imports {name}"
            for name in re.findall(r'import_\("(slangpy[\w.]*)"\)', text) if name != "slangpy._native"
        ]  # fmt: skip
    assert not wrong, "name it in core/python_names.h:\n" + "\n".join(wrong)
    assert set(rows) | {"errors"} == used, "rows that nobody uses, or names without one"
    assert {row[0].split(".")[1] for row in rows.values()} <= set(BELOW) | set(ROOT_MODULES)


# --- files say what they are, and name files that exist
_PATH = re.compile(r"(?<![\w./<>{}*-])(?:[\w.-]+/)+[\w-]+\.(?:cpp|h|py|slang|md|sh|toml|txt|cmake)(?![\w/])")
_ELSEWHERE = {"nanobind/nanobind.h", "xla/ffi/api/c_api.h", "a/b.slang"}
"""Files of other projects, and one of an example."""


def comments_of(path: Path) -> list[str]:
    text = path.read_text("utf-8")
    if path.suffix != ".py":
        return re.findall(r"//[^\n]*|/\*.*?\*/", text, re.DOTALL)
    found = [token.string for token in tokenize.generate_tokens(io.StringIO(text).readline) if token.type == tokenize.COMMENT]
    bodies = [getattr(node, "body", None) for node in ast.walk(ast.parse(text))]
    docs = [node.value for body in bodies if isinstance(body, list) for node in body if isinstance(node, ast.Expr)]
    return found + [doc.value for doc in docs if isinstance(doc, ast.Constant) and isinstance(doc.value, str)]


def test_paths_in_comments_exist():
    """A comment names a file by the end of its path, a folder at least."""
    folders = ("slangpy", "src", "tests", "tools", "docs", "cmake", "benchmarks", "examples", "third_party", "packaging")
    known = [f"/{path.relative_to(ROOT).as_posix()}" for folder in folders for path in (ROOT / folder).rglob("*.*")]
    ends = {path[at:] for path in known for at, sign in enumerate(path) if sign == "/"}
    sources = [*FILES, *structure.native_files(), *(PACKAGE / "slang").rglob("*.slang"), *(PACKAGE / "slang").rglob("*.h"), *(ROOT / "tools").glob("*.py")]
    missing = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in sources for comment in comments_of(path) for name in _PATH.findall(comment)
        if f"/{name}" not in ends and name not in _ELSEWHERE
    ]  # fmt: skip
    assert not missing, "\n".join(missing)


def test_native_files_say_what_they_are():
    """In their first line, or in that of their own header, which they include first."""
    silent = []
    for path in structure.native_files():
        lines = path.read_text("utf-8").splitlines()
        if path.suffix == ".cpp" and not lines[0].startswith("//"):
            header = path.with_suffix(".h")
            own = f'#include "{path.relative_to(NATIVE).with_suffix(".h").as_posix()}"'
            if lines[0].split(" //")[0] != own or not header.read_text("utf-8").splitlines()[1].startswith("//"):
                silent.append(path.relative_to(ROOT).as_posix())
    assert not silent, "\n".join(silent)
