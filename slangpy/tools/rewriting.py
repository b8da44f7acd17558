"""`python -m slangpy rewrite`: what is changed in a Slang file before the compiler reads it."""

from __future__ import annotations

import argparse
import difflib
import re
from collections.abc import Iterator, Sequence

from ..compiler.rewrites import Rewritten, rewrite_file, rules
from .arguments import check_encoding

_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? ")


def _table() -> Iterator[str]:
    """The rules, a line each, with their faults."""
    known = rules()
    width = max(len(rule.name) for rule in known)
    for rule in known:
        versions = f"{rule.since or 'any'} to {rule.until or 'now'}"
        yield f"{rule.name:{width}}  {rule.stage:8}  {versions:10}  {rule.fault} ({rule.issue})"


def _names(made: Rewritten, first: int, last: int) -> list[str]:
    """The rules that changed lines first to last of the source, from 1."""
    source = made.source.encode("utf-8")
    count = len(source.splitlines())  # what follows the text goes with its last line
    found: list[str] = []
    for edit in made.edits:
        begin, end = (min(source.count(b"\n", 0, at) + 1, count) for at in (edit.begin, edit.end))
        if begin <= last and end >= first:
            found += [name for name in edit.rules if name not in found]
    return found


def diff(made: Rewritten, name: str) -> Iterator[str]:
    """The unified diff of a source and what Slang gets to see, with the rules after each `@@`."""
    lines = difflib.unified_diff(
        made.source.splitlines(),
        made.text.splitlines(),
        f"{name} (as written)",
        f"{name} (as Slang sees it)",
        lineterm="",
    )
    for line in lines:
        hunk = _HUNK.match(line)
        if hunk:
            first, count = int(hunk[1]), int(hunk[2] or 1)
            line = f"{line} {', '.join(_names(made, first, first + count - 1))}"
        yield line


def named_defines(given: Sequence[str]) -> dict[str, str]:
    """Macros written as NAME or NAME=VALUE."""
    pairs = [text.partition("=") for text in given]
    return {name: value or "1" for name, _, value in pairs}


def rewrite(options: argparse.Namespace) -> int:
    """What is changed in the file before Slang reads it, as a diff with the names of the rules (see SLANGPY_REWRITES)."""
    if options.rules:
        print("\n".join(_table()))
    if options.file is not None:
        check_encoding(options.file)
        defines = named_defines(options.define)
        made = rewrite_file(options.file, options.include, for_cpu=options.device == "cpu", defines=defines)
        for line in diff(made, options.file):
            print(line)
        print(f"rules that acted: {', '.join(made.rules) or 'none'}")
    elif not options.rules:
        raise ValueError("rewrite: name a file, or say --rules for the table of rules")
    return 0
