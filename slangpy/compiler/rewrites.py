"""What is changed in Slang sources before the compiler reads them, because it would compile them wrongly."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..base import libslang
from ..base.folders import LIBRARY
from ..config import config


@dataclass(frozen=True)
class Rule:
    """One fault of Slang's, and the change that avoids it."""

    name: str
    fault: str
    issue: str
    """Of shader-slang, or a minimal case."""
    since: str
    until: str
    """The versions of Slang that have the fault: from `since`, before `until`; empty: all that are known."""
    stage: str
    """"reshape": other statements; "annotate": operations put around values."""


@dataclass(frozen=True)
class SourceEdit:
    """Bytes [new_begin, new_end) of the new text (UTF-8) stand in place of [begin, end) of the source."""

    begin: int
    end: int
    new_begin: int
    new_end: int
    rules: tuple[str, ...]


@dataclass(frozen=True)
class Rewritten:
    """A source as Slang gets to see it."""

    source: str
    text: str
    edits: tuple[SourceEdit, ...]
    rules: tuple[str, ...]
    """Names of the rules that changed something; "library" is what brings in the package's own Slang library."""


def rules() -> tuple[Rule, ...]:
    """All rules, in the order in which they are applied."""
    return tuple(Rule(*row) for row in libslang.rewrite_rules())


def define_lines(defines: Mapping[str, str]) -> str:
    """Macros of a session as the lines of a source."""
    return "".join(f"#define {name} {value}\n" for name, value in defines.items())


def rewrite_file(
    path: str | os.PathLike[str],
    include_paths: Sequence[str | os.PathLike[str]] = (),
    setting: str | None = None,
    for_cpu: bool = True,
    defines: Mapping[str, str] | None = None,
) -> Rewritten:
    """A file with the files that it imports at hand.

    setting: what SLANGPY_REWRITES may say; None is what it says. ValueError where it names no rule.
    for_cpu: also import what only code for CPU devices needs. defines: macros of the session.
    """
    source = Path(path).read_text("utf-8-sig")
    folders = [LIBRARY, *(os.path.abspath(folder) for folder in include_paths)]
    setting = config.rewrites if setting is None else setting
    lines = define_lines(defines or {})
    text, edits, names = libslang.rewrite(source, os.path.abspath(path), folders, [LIBRARY], setting, for_cpu, lines)
    places = tuple(
        SourceEdit(begin, end, new_begin, new_end, tuple(by)) for begin, end, new_begin, new_end, by in edits
    )
    return Rewritten(source, text.decode("utf-8"), places, tuple(names))
