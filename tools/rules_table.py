"""Writes the table of rewriting rules into docs/compiler-faults.md, between its markers.

python tools/rules_table.py
"""

from __future__ import annotations

from pathlib import Path

from slangpy.compiler.rewrites import Rule, rules

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "compiler-faults.md"
BEGIN, END = "<!-- rules: written by tools/rules_table.py -->", "<!-- end of rules -->"
HEAD = ["| rule | what Slang does without it | case or issue |", "|---|---|---|"]


def _case(rule: Rule) -> str:
    if rule.issue.startswith("shader-slang#"):
        number = rule.issue.removeprefix("shader-slang#")
        return f"[shader-slang issue {number}](https://github.com/shader-slang/slang/issues/{number})"
    return f"`{rule.issue}`"


def _versions(rule: Rule) -> str:
    """The versions that have the fault; nothing where all that are known have it."""
    if not rule.until:
        return f" (from Slang {rule.since} on)" if rule.since else ""
    return f" (Slang {rule.since or 'of any version'} to before {rule.until})"


def with_table(text: str) -> str:
    """The page with the rows of today's table."""
    rows = [f"| `{rule.name}` | {rule.fault} | {_case(rule)}{_versions(rule)} |" for rule in rules()]
    before, rest = text.split(BEGIN, 1)
    after = rest.split(END, 1)[1]
    table = "\n".join([*HEAD, *rows])
    return f"{before}{BEGIN}\n\n{table}\n\n{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(with_table(PAGE.read_text("utf-8")), "utf-8")
