"""Prints what the structure of the code is measured by, longest first, and fails where a limit is passed.

    python tools/structure.py [--top 15] [--limits]

Functions: lines from `def` or the signature to the end (Python 40, C++ 60). Classes: methods (25) and fields (20);
methods that a C++ base class asks for (`override`) are counted there. Files: lines (500). Imports inside functions, and
cycles of modules of the package, are listed whole. With --limits only what passes a limit is printed, and the exit status
is 1 where there is any. What is excepted, and why, stands in EXCEPTED.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
EXTENSIONS = ("slangpy._native", "slangpy._slang")
"""Modules of the package that are built: nothing of them imports Python modules when it is loaded."""
LIMITS = {"python function": 40, "c++ function": 60, "methods": 25, "fields": 20, "lines": 500}
_USERS = "users hold it: its methods are the API"
EXCEPTED: dict[tuple[str, str], str] = {
    **{
        ("methods", f"slangpy/{path}"): _USERS
        for path in (
            "tensor/__init__.py:Tensor", "device/device.py:Device", "function.py:FunctionNode", "module.py:Module",
            "images/bitmap.py:Bitmap", "struct.py:Struct", "reflection/__init__.py:SlangProgramLayout",
        )
    },
    ("methods", "src/native/device/device.h:Device"): "the contract of backends",
    ("methods", "slangpy/compiler/text/lanes/expressions.py:Expressions"): "one for each kind of expression",
    ("methods", "src/native/vulkan/recorder.h:VulkanRecorder"): "one for each command",
    ("methods", "src/native/device/encoder.h:CommandEncoder"): "one for each command",
    ("fields", "src/native/vulkan/context.h:VulkanFeatures"): "one for each of Vulkan's structures",
    ("methods", "src/native/slang/syntax/tree.h:Tree"): "what rules ask of a source",
    ("methods", "src/native/slang/syntax/grammar.h:Parser"): "one for each rule of the grammar",
    ("fields", "src/native/cuda/api.h:CUDA_MEMCPY3D"): "the driver's own struct",
    ("fields", "src/native/device/types.h:DeviceLimits"): "one field for each limit",
    ("fields", "slangpy/config.py:Config"): "one field for each setting",
    ("fields", "src/native/slang/session.h:SessionOptions"): "one field for each of Slang's options",
    ("import", "slangpy/function.py:__call__"): "torch.compile reads this method; importing it imports torch",
}  # fmt: skip
"""What may pass a limit: (limit, file and name), and the reason."""


@dataclass(frozen=True, order=True)
class Measure:
    """One thing and how large it is."""

    size: int
    what: str
    name: str
    place: str

    @property
    def reason(self) -> str | None:
        """Why it may pass its limit."""
        return EXCEPTED.get((self.what, f"{self.place.rpartition(':')[0]}:{self.name}"))


def python_files() -> list[Path]:
    return sorted((ROOT / "slangpy").rglob("*.py"))


def native_files() -> list[Path]:
    found = (ROOT / "src" / "native").rglob("*")
    return sorted(path for path in found if path.suffix in (".cpp", ".h"))


def place(path: Path, line: int) -> str:
    return f"{path.relative_to(ROOT)}:{line}"


# --- Python
def measure_python(path: Path) -> Iterator[Measure]:
    tree = ast.parse(path.read_text("utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            yield Measure(lines, "python function", node.name, place(path, node.lineno))
        elif isinstance(node, ast.ClassDef):
            methods = [n for n in node.body if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef))]
            yield Measure(len(methods), "methods", node.name, place(path, node.lineno))
            yield Measure(len(class_fields(node)), "fields", node.name, place(path, node.lineno))


def class_fields(node: ast.ClassDef) -> set[str]:
    """Names declared in the body of a record, and set on `self` by any method."""
    enum = any("Enum" in ast.unparse(base) or "Flag" in ast.unparse(base) for base in node.bases)
    names = (
        set()
        if enum
        else {n.target.id for n in node.body if isinstance(n, ast.AnnAssign) and isinstance(n.target, ast.Name)}
    )
    for child in ast.walk(node):
        if isinstance(child, ast.Attribute) and isinstance(child.ctx, ast.Store):
            if isinstance(child.value, ast.Name) and child.value.id == "self":
                names.add(child.attr)
    return names


def local_imports(path: Path) -> list[str]:
    """Imports inside functions."""
    found = []
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            for child in ast.walk(node):
                if isinstance(child, (ast.Import, ast.ImportFrom)):
                    at = place(path, child.lineno)
                    if ("import", f"{at.rpartition(':')[0]}:{node.name}") not in EXCEPTED:
                        found.append(f"{at}: {ast.unparse(child)} (in {node.name})")
    return list(dict.fromkeys(found))


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported_modules(path: Path, known: set[str], everywhere: bool = False) -> set[str]:
    """Modules of the package that a module imports when it is loaded; with `everywhere` also inside functions and for
    type checkers."""
    package = module_name(path).split(".")
    if path.name != "__init__.py":
        package = package[:-1]
    found = set()
    tree = ast.parse(path.read_text("utf-8"))
    for node in ast.walk(tree) if everywhere else top_level(tree.body):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            origin = ".".join([*base, *([node.module] if node.module else [])])
            for alias in node.names:
                child = f"{origin}.{alias.name}"
                found.add(child if child in known or child in EXTENSIONS else origin)
    return {name for name in found if (name in known or name in EXTENSIONS) and name != module_name(path)}


def top_level(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements that run when a module is loaded; what type checkers alone read is left out."""
    for node in body:
        if isinstance(node, ast.If):
            if "TYPE_CHECKING" not in ast.unparse(node.test):
                yield from top_level(node.body)
            yield from top_level(node.orelse)
        elif isinstance(node, ast.Try):
            yield from top_level([*node.body, *(s for handler in node.handlers for s in handler.body), *node.orelse])
        else:
            yield node


def cycles(graph: dict[str, set[str]]) -> list[list[str]]:
    """Groups of modules that import each other (Tarjan's strongly connected components)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    groups: list[list[str]] = []

    def visit(name: str) -> None:
        index[name] = low[name] = len(index)
        stack.append(name)
        for other in sorted(graph.get(name, ())):
            if other not in index:
                visit(other)
                low[name] = min(low[name], low[other])
            elif other in stack:
                low[name] = min(low[name], index[other])
        if low[name] == index[name]:
            group = stack[stack.index(name) :]
            del stack[stack.index(name) :]
            if len(group) > 1:
                groups.append(sorted(group))

    for name in sorted(graph):
        if name not in index:
            visit(name)
    return groups


# --- C++
def without_text(text: str) -> str:
    """The source with comments and literals blanked, line ends kept."""
    pattern = r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\''
    return re.sub(pattern, lambda m: re.sub(r"[^\n]", " ", m.group()), text, flags=re.DOTALL)


_FUNCTION = re.compile(r"\)\s*(const|noexcept|override|final|->\s*[\w:<>*&\s]+|:\s*[\w:]+[({].*)?\s*$", re.DOTALL)
_CLASS = re.compile(r"\b(class|struct)\s+(\w+)[^;={()]*$")
_CONTROL = re.compile(r"\b(if|for|while|switch|catch)\s*(constexpr\s*)?\($")


def measure_native(path: Path) -> Iterator[Measure]:
    text = without_text(path.read_text("utf-8"))
    opened: list[tuple[str, str, int]] = []  # kind, name, position
    last = 0
    for match in re.finditer(r"[{};]", text):
        at = match.start()
        if match.group() == "{":
            head = text[last:at].strip()
            opened.append((*head_kind(head, opened), at))
        elif match.group() == "}" and opened:
            kind, name, begin = opened.pop()
            line = text.count("\n", 0, begin) + 1
            if kind == "function":
                yield Measure(text.count("\n", begin, at) + 1, "c++ function", name, place(path, line))
            elif kind == "class":
                methods, fields = class_members(text[begin + 1 : at])
                yield Measure(methods, "methods", name, place(path, line))
                yield Measure(fields, "fields", name, place(path, line))
        last = at + 1


def head_kind(head: str, opened: list[tuple[str, str, int]]) -> tuple[str, str]:
    """What a brace opens, told by the text before it."""
    if any(kind == "function" for kind, _, _ in opened):
        return "block", ""
    found = _CLASS.search(head)
    if found and re.search(r"\benum\s*$", head[: found.start()]):
        return "block", ""
    if found and ")" not in head[found.start() :]:
        return "class", found.group(2)
    name = re.search(r"([\w:~]+(?:\s*(?:==|<<|\(\)|\[\]))?)\s*\(", head)
    if name and _FUNCTION.search(head) and not re.search(r"=\s*$", head):
        return "function", name.group(1)
    return "block", ""


def class_members(body: str) -> tuple[int, int]:
    """Methods and fields declared directly in a class."""
    depth, flat = 0, []
    for letter in body:
        if letter == "}":
            depth -= 1
            flat.append("{};" if depth == 0 else "")
        elif letter == "{":
            depth += 1
        elif depth == 0:
            flat.append(letter)
    methods = fields = 0
    for statement in "".join(flat).split(";"):
        words = re.sub(r"^\s*((public|private|protected)\s*:\s*)+", "", statement.strip())
        words = re.sub(r"<[^<>]*>", "", re.sub(r"<[^<>]*>", "", words)).replace("{}", " {}").strip()
        if not words or re.match(r"(using|friend|enum|class|struct|typedef|template|static constexpr)\b", words):
            continue
        if "(" in words.split("=")[0]:
            methods += not re.search(r"\boverride\b", words)
        elif " " in words:
            fields += 1 + words.split("{")[0].count(",")
    return methods, fields


def measure_lines(path: Path) -> Measure:
    return Measure(path.read_text("utf-8").count("\n"), "lines", path.name, place(path, 1))


def all_measures() -> list[Measure]:
    found = [m for path in python_files() for m in measure_python(path)]
    found += [m for path in native_files() for m in measure_native(path)]
    return found + [measure_lines(path) for path in (*python_files(), *native_files())]


def print_measures(measures: list[Measure], top: int, limits: bool) -> int:
    """Returns how many pass their limit."""
    beyond = 0
    for what, limit in LIMITS.items():
        found = sorted((m for m in measures if m.what == what), reverse=True)
        over = [m for m in found if m.size > limit and m.reason is None]
        beyond += len(over)
        excepted = sum(m.size > limit and m.reason is not None for m in found)
        print(f"\n{what}: {len(found)}, {len(over)} above {limit}, {excepted} excepted")
        for measure in over if limits else found[: max(top, 0)]:
            print(f"  {measure.size:4} {measure.name:32} {measure.place}  {measure.reason or ''}".rstrip())
    return beyond


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--top", type=int, default=15, help="how many of each to print")
    parser.add_argument("--limits", action="store_true", help="print what passes a limit, and fail where there is any")
    options = parser.parse_args()
    beyond = print_measures(all_measures(), options.top, options.limits)
    known = {module_name(path) for path in python_files()}
    groups = cycles({module_name(path): imported_modules(path, known) for path in python_files()})
    inside = [line for path in python_files() for line in local_imports(path)]
    print(f"\nimport cycles: {len(groups)}", *(f"  {', '.join(group)}" for group in groups), sep="\n")
    print(f"\nimports inside functions: {len(inside)}", *(f"  {line}" for line in inside), sep="\n")
    return int(options.limits and bool(beyond or groups or inside))


if __name__ == "__main__":
    sys.exit(main())
