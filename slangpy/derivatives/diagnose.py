"""Why a derivative is wrong: the function is compiled again with one suspect changed, and its derivative compared."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from ..compiler.cache import digest
from ..compiler.modules.sources import texts_of
from ..errors import CallError, SlangCompileError
from ..function import FunctionCore
from .problem import Problem
from .report import GradientReport

MAX_SUSPECTS = 12
_MAX_ITERS = re.compile(r"\[\s*MaxIters\(\s*(\d+)\s*\)\s*\]")
_CUSTOM = re.compile(r"\[\s*(Backward|Forward)Derivative\(\s*([\w.:]+)\s*\)\s*\]")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:[^\"\\\n]|\\.)*\"", re.S)


def diagnose(
    problem: Problem, function: Any, report: GradientReport, pull: Callable[[Any], bool], push: Callable[[Any], bool]
) -> list[str]:
    """Notes on what makes the derivatives wrong, as far as a change of the module's own source tells."""
    kinds = {name for row in report.wrong for name in row.wrong}
    module = function.module
    text = _source(module)
    if not text:
        return []
    visible = _COMMENT.sub(lambda found: re.sub(r"[^\n]", " ", found.group()), text)
    notes: list[str] = []
    suspects = (_loops(visible) if "bwds" in kinds else []) + _custom(visible, kinds)
    for start, end, replacement, kind, note in suspects[:MAX_SUSPECTS]:
        changed = text[:start] + replacement + text[end:]
        try:
            node = _node_of(problem.node, changed)
            fixed = push(node) if kind == "fwds" else pull(node)
        except (CallError, SlangCompileError, RuntimeError):
            continue  # the change does not compile: it tells nothing
        if fixed:
            notes.append(note)
    if not notes and kinds == {"bwds"} and any(row.fwds is not None for row in report.wrong):
        notes.append("fwds is right where bwds is wrong: look for a custom backward derivative, or for a loop that takes more "
                     "trips than [MaxIters(n)] says, in what the module imports")  # fmt: skip
    return notes


def _source(module: Any) -> str:
    return next(iter(texts_of(module._compiled)), None) or ""


def _line(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1


_Suspect = tuple[int, int, str, str, str]


def _loops(text: str) -> list[_Suspect]:
    """Loops of which a backward call may have kept too few states."""
    found: list[_Suspect] = []
    for match in _MAX_ITERS.finditer(text):
        limit = int(match.group(1))
        larger = max(4 * limit, limit + 64)
        note = (
            f"line {_line(text, match.start())}: the loop takes more trips than [MaxIters({limit})] says; with "
            f"[MaxIters({larger})] bwds is right"
        )
        found.append((match.start(), match.end(), f"[MaxIters({larger})]", "bwds", note))
    return found


def _custom(text: str, kinds: set[str]) -> list[_Suspect]:
    """Custom derivatives; without one, Slang derives the function itself."""
    found: list[_Suspect] = []
    for match in _CUSTOM.finditer(text):
        kind = "bwds" if match.group(1) == "Backward" else "fwds"
        if kind not in kinds:
            continue
        what = "backward" if kind == "bwds" else "forward"
        note = (
            f"line {_line(text, match.start())}: the custom {what} derivative '{match.group(2)}' is wrong; without it, "
            f"{kind} is right"
        )
        found.append((match.start(), match.end(), "[Differentiable]", kind, note))
    return found


def _node_of(node: Any, text: str) -> Any:
    """The same function, with the same modifiers, in a module with another source."""
    module = node.module
    session = module._compiled.session
    name = f"{module._stem}_{digest(text)[:12]}"
    path = str(module._path.parent / f"{name}.slang") if module._path is not None else f"{name}.slang"
    other = type(module)(session.load_module_from_source(name, text, path), dict(module.options), module.link)
    core = node.core
    struct = None if core.struct is None else other.layout.require_type_by_name(core.struct.full_name)
    again = type(node).of(other, FunctionCore(other, core.name, struct, core.is_constructor))
    options = {name: getattr(node.options, name) for name in asdict(node.options)}
    return again._with(globals_=node._globals, **options)


__all__ = ["diagnose"]
