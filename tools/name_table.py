"""The table of names in docs/migrating-from-slangpy.md: what of the public names of shader-slang/slangpy works here.

    python tools/name_table.py [--write]

The names are in tools/public_names.txt. Without --write the counts are printed. The exit status is 1 where a name is absent.
"""

from __future__ import annotations

import argparse
import importlib
import re
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import slangpy
from slangpy import compat

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "migrating-from-slangpy.md"
BEGIN, END = "<!-- names: begin -->", "<!-- names: end -->"


def public_names() -> dict[str, list[str]]:
    """Names by their owner."""
    found: dict[str, list[str]] = {}
    for line in (ROOT / "tools" / "public_names.txt").read_text("utf-8").splitlines():
        if line and not line.startswith("#"):
            owner, _, names = line.partition(": ")
            found.setdefault(owner, []).extend(names.split())
    return found


def _owner(name: str) -> Any:
    if name == "slangpy":
        return slangpy
    return getattr(slangpy, name)


def state(owner: str, name: str) -> str:
    """"works", "refuses" (NotImplementedError) or "absent"."""
    table = compat.METHODS.get(owner, {})
    if owner == "slangpy" and (name in compat.CLASSES or name in compat.MODULES):
        return "refuses"
    if name in table:
        return "refuses"
    if owner == "slangpy":
        try:
            getattr(slangpy, name)
        except AttributeError:
            return "works" if _is_module(name) else "absent"
        except ImportError:
            return "works"  # once the package is installed that the message names
        return "works"
    cls = _owner(owner)
    return "works" if hasattr(cls, name) or name in getattr(cls, "__annotations__", {}) else "absent"


def _is_module(name: str) -> bool:
    try:
        importlib.import_module(f"slangpy.{name}")
    except ImportError:
        return False
    return True


def table() -> tuple[str, Counter[str]]:
    """The rows, and how many names are in each state."""
    total: Counter[str] = Counter()
    rows = ["| of | works | refuses | absent | those that are not there |", "|---|---|---|---|---|"]
    for owner, names in public_names().items():
        states = {name: state(owner, name) for name in names}
        counts = Counter(states.values())
        total += counts
        lacking = ", ".join(f"`{name}`" for name, found in states.items() if found != "works")
        rows.append(f"| `{owner}` | {counts['works']} | {counts['refuses']} | {counts['absent']} | {lacking} |")
    rows.append(f"| all | {total['works']} | {total['refuses']} | {total['absent']} | |")
    return "\n".join(rows), total


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="put the table into docs/migrating-from-slangpy.md")
    rows, total = table()
    if parser.parse_args().write:
        text = PAGE.read_text("utf-8")
        block = f"{BEGIN}\n{rows}\n{END}"
        pattern = re.compile(re.escape(BEGIN) + ".*?" + re.escape(END), re.DOTALL)
        PAGE.write_text(pattern.sub(lambda _: block, text) if BEGIN in text else f"{text.rstrip()}\n\n{block}\n", "utf-8")
    print(", ".join(f"{name}: {total[name]}" for name in ("works", "refuses", "absent")))
    for owner, names in public_names().items():
        for name in names:
            if state(owner, name) == "absent":
                print(f"absent: {owner}.{name}")
    return 1 if total["absent"] else 0


if __name__ == "__main__":
    sys.exit(main())
