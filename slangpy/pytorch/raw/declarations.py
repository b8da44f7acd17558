"""What the user's files declare, those that they import included: functions in namespaces, enums, defaults of parameters."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from slangpy.base.folders import LIBRARY
from slangpy.compiler.generated import import_statement
from slangpy.errors import CompileError
from slangpy.pytorch.raw.constants import constant
from slangpy.pytorch.raw.scan import closing

COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_GENERIC = re.compile(r"<[^<>]*>")
_SCOPES = ("namespace", "unsupported")  # the parts of a module that `__include` adds are of no kind of their own


class Declarations:
    """Of a module and its imports. `sources`: the texts of the files, by path."""

    def __init__(self, session: Any, module: Any, sources: Mapping[str, str]) -> None:
        self._session = session
        self._module = module
        self._sources = sources
        others = [session.load_module(name) for name in session.loaded_names if name != module.name]
        self._others = [m for m in others if not m.path.startswith(LIBRARY) and not m.path.endswith(".slang-module")]
        self._own: dict[str, list[Any]] = {}
        self._imported: dict[str, list[Any]] = {}
        self.generic: set[str] = set()
        """Names of generic functions and types."""
        self._visit(module.module_decl, self._own)
        for other in self._others:
            self._visit(other.module_decl, self._imported)

    def _visit(self, decl: Any, found: dict[str, list[Any]]) -> None:
        for child in decl.children:
            kind = child.kind.name
            if kind in _SCOPES:
                self._visit(child, found)
            elif kind == "func":
                found.setdefault(child.name, []).append(child)
            elif kind == "generic":
                self.generic.add(child.name)

    def _declared(self, name: str) -> list[Any]:
        return self._own.get(name) or self._imported.get(name, [])

    def find(self, name: str) -> tuple[Any, tuple[str, int]]:
        """The function of a name, in namespaces, too, and where it is declared."""
        found = self._module.layout.find_function_by_name(name)
        decls = self._declared(name)
        if decls and (found is None or (found.is_overloaded and len(decls) == 1)):
            found = decls[0].as_function() if len(decls) == 1 or found is None else found  # others are Slang's own
        place = decls[0].location if len(decls) == 1 else ("", 0, 0)
        return found, (place[0], place[1])

    def defaults(self, name: str) -> dict[str, str]:
        """Parameter -> the text of its default value, for a function that is declared once."""
        decls = self._declared(name)
        if len(decls) != 1:
            return {}
        path, line, _ = decls[0].location
        lines = self._sources.get(path, "").split("\n")
        text = COMMENT.sub("", "\n".join(lines[max(line - 1, 0) :]))
        found = re.search(rf"\b{name}\s*\(", text)
        if found is None:
            return {}
        values = {}
        for given in re.finditer(r"(\w+)(?:\s*\[[^\]]*\])*\s*=(?!=)", text[found.end() : closing(text, found.end() - 1)]):
            values[given.group(1)] = _expression(text, found.end() + given.end())
        return values

    # --- enums

    def enum_cases(self, name: str) -> tuple[tuple[str, int], ...]:
        """Members of an enum and their values."""
        path = _GENERIC.sub("", name).replace("::", ".").split(".")
        decl = next(filter(None, (_inside(m.module_decl, path) for m in (self._module, *self._others))), None)
        if decl is None:
            return ()
        names = []
        for child in decl.children:
            if not child.name:
                break  # the enum's own type, after the members
            if not child.name.startswith("$"):
                names.append(child.name)
        told = self._told(path[-1], names)
        if len(told) < len(names):
            told = self._probed(name, names) or told
        return tuple((case, told[case]) for case in names if case in told)

    def _told(self, name: str, cases: list[str]) -> dict[str, int]:
        """As the text says, where it gives literals and expressions of them."""
        pattern = re.compile(r"\benum\s+(?:class\s+)?" + re.escape(name) + r"\b\s*(?::\s*\w+\s*)?\{([^}]*)\}")
        for text in self._sources.values():
            found = pattern.search(COMMENT.sub("", text))
            if found is None:
                continue
            values: dict[str, Any] = {}
            last = -1
            for item in filter(None, (part.strip() for part in found.group(1).split(","))):
                case, _, value = (part.strip() for part in item.partition("="))
                number = constant(value, {**values, **{f"{name}.{k}": v for k, v in values.items()}}) if value else last + 1
                if not isinstance(number, int):
                    return values
                values[case] = last = int(number)
            return values if list(values) == cases else {}
        return {}

    def _probed(self, name: str, cases: list[str]) -> dict[str, int]:
        """As the compiler computes them: constants of a module of our own, which sees what is not internal."""
        imports = "".join(f"{import_statement(m.name)}\n" for m in (self._module, *self._others))
        lines = [f"static const int64_t _spy_case_{i} = int64_t({name}.{case});\n" for i, case in enumerate(cases)]
        try:
            probe = self._session.load_module_from_source("_spy_enum_" + re.sub(r"\W", "_", name), imports + "".join(lines))
        except CompileError:
            return {}
        found = {c.name: c.as_variable().default_int for c in probe.module_decl.children if c.kind.name == "variable"}
        values = {case: found.get(f"_spy_case_{i}") for i, case in enumerate(cases)}
        return {case: value for case, value in values.items() if value is not None}


def _expression(text: str, begin: int) -> str:
    """Up to the comma or bracket that ends it."""
    depth = 0
    for at in range(begin, len(text)):
        depth += (text[at] in "([{") - (text[at] in ")]}")
        if depth < 0 or (depth == 0 and text[at] == ","):
            return text[begin:at].strip()
    return ""


def _inside(decl: Any, path: list[str]) -> Any:
    """The enum that a path of names leads to."""
    for child in _scopes(decl):
        if child.name == path[0]:
            if len(path) == 1 and child.kind.name == "enum":
                return child
            if len(path) > 1 and (found := _inside(child, path[1:])) is not None:
                return found
    return None


def _scopes(decl: Any) -> Iterator[Any]:
    for child in decl.children:
        yield child
        if child.kind.name in ("unsupported", "generic"):
            yield from _scopes(child)


__all__ = ["COMMENT", "Declarations"]
