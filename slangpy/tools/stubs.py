"""Stubs of Slang modules: classes by which editors and type checkers know a module's functions and types."""

from __future__ import annotations

import keyword
import re
from typing import Any

from ..compiler.modules.loaded import declared_names
from ..function import FunctionNode
from ..inspection import names_in, overloads_of
from ..struct import Struct

HEAD = '''"""{file}, for type checkers. Made by `python -m slangpy stubs`.

    if TYPE_CHECKING:
        from {stem} import {name}
    module = cast("{name}", slangpy.Module.load_from_file(device, "{file}"))
"""

from typing import Any, overload

import slangpy
'''


def _class_name(name: str) -> str:
    return "".join(part[:1].upper() + part[1:] for part in re.split(r"\W|_", name) if part) or "Module"


def _valid(name: str) -> bool:
    return name.isidentifier() and not keyword.iskeyword(name)


def _call(parameters: list[Any], result: str, bound: bool) -> str:
    """One `__call__` of a function; types of Slang stand in comments, because a call takes what converts to them."""
    parts = ["self"]
    shown = parameters[1:] if bound else parameters
    named = all(_valid(p.name) for p in shown)
    for p in shown:
        default = " = ..." if p.default is not p.empty else ""
        parts.append(f"{p.name if named else f'_{len(parts)}'}: Any{default}")
    if not named:
        parts.append("/")
    parts += ["*", "_result: Any = ..."] if result != "void" else []
    return f"def __call__({', '.join(parts)}) -> Any: ..."


def _function(name: str, node: FunctionNode, indent: str) -> list[str]:
    overloads = overloads_of(node.core)
    lines = [f"{indent}class _{name}(slangpy.FunctionNode):  # type: ignore[misc]"]
    for parameters, result in overloads:
        listed = ", ".join(f"{p.annotation} {p.name}" for p in parameters)
        lines.append(f"{indent}    # {result} {name}({listed})")
        if len(overloads) > 1:
            lines.append(f"{indent}    @overload")
        lines.append(f"{indent}    {_call(parameters, result, False)}  # type: ignore[override]")
    return [*lines, f"{indent}{name}: _{name}"]


def _struct(name: str, struct: Struct) -> list[str]:
    lines = [f"    class _{name}(slangpy.Struct):"]
    fields = " ".join(f"{field.type.full_name} {key};" for key, field in struct.fields.items())
    lines.append(f"        # struct {name} {{ {fields} }}")
    for child in names_in(struct):
        found = struct.try_get_child(child)
        if isinstance(found, FunctionNode) and _valid(child):
            lines += _function(child, found, "        ")
    lines.append("        def __call__(self, *args: Any, **kwargs: Any) -> Any: ...")
    return [*lines, f"    {name}: _{name}"]


def stubs_of(module: Any) -> str:
    """Text of a `.pyi` for a module."""
    file = module._path.name if module._path is not None else module._stem
    name = _class_name(module._stem)
    lines = [HEAD.format(file=file, stem=module._stem, name=name), "", f"class {name}(slangpy.Module):"]
    count = len(lines)
    for member in dict.fromkeys(declared_names(module._compiled.main)):
        if not _valid(member) or member.startswith("_spy_"):
            continue
        try:
            found = module[member]
        except AttributeError:  # a constant or a variable
            continue
        lines += _function(member, found, "    ") if isinstance(found, FunctionNode) else _struct(member, found)
    if len(lines) == count:
        lines.append("    ...")
    return "\n".join(lines) + "\n"


__all__ = ["stubs_of"]
