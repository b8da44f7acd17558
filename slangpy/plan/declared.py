"""Declarations of a module by name, as the compiler holds them."""

from __future__ import annotations

import difflib
from typing import Any

from ..compiler.modules.loaded import declared_names


def members_of(decl: Any) -> list[Any]:
    """What is declared inside of a declaration; of a generic, inside of what it is a generic of."""
    return (decl._inner or decl).children


def declared(module: Any, path: list[str]) -> list[Any]:
    """What a module declares by a path of names, in generics too."""
    return declared_in(module.device_module, path)


def declared_in(slang_module: Any, path: list[str]) -> list[Any]:
    """The same of a module of the compiler."""
    found = [slang_module.module_decl]
    for name in path:
        found = [child for decl in found for child in members_of(decl) if child.name == name]
    return found


def enum_values(module: Any, full_name: str) -> list[str]:
    """The names of an enum's values, in order; none where the module and what it is linked with do not declare it."""
    path = full_name.replace("::", ".").split(".")
    modules = module._compiled.modules if module is not None else ()
    for decl in (decl for slang_module in modules for decl in declared_in(slang_module, path)):
        names = [child.name for child in members_of(decl) if child.name and "$" not in child.name]
        if decl.kind.name == "enum" and names:
            return names
    return []


def outer_names(module: Any, name: str) -> list[str]:
    """Where a module declares something of that name in a namespace or type: `outer.name`."""
    top = members_of(module.device_module.module_decl)
    kinds = ("namespace", "struct")
    outers = [decl for decl in top if decl.name and decl.kind.name in kinds]
    return [f"{outer.name}.{name}" for outer in outers if any(child.name == name for child in members_of(outer))]


def missing_name(module: Any, name: str) -> str:
    """What to say where a module has no function or type of a name."""
    names, head = declared_names(module.device_module), f"Module '{module._stem}' has no function or type named '{name}'"
    if name in names:  # a namespace, a constant or a variable
        return (
            f"{head}, which is a namespace, a variable or a constant; "
            f"what is in a namespace is reached as module['{name}.function'], a variable is set by "
            f"function.set({{'{name}': value}}), a constant by function.constants({{'{name}': value}})"
        )
    if inner := outer_names(module, name):
        return f"{head} outside of others; write module['{inner[0]}']"
    close = difflib.get_close_matches(name, names, 3)
    return f"{head}; did you mean {', '.join(close)}?" if close else head
