"""Pages about the code name files and functions that exist."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ENDINGS = (".cpp", ".h", ".py", ".slang", ".sh", ".md")


@cache
def files() -> dict[str, Path]:
    """By their path below the root."""
    folders = ("slangpy", "src", "tests", "tools", "docs", "benchmarks", "cmake", "examples")
    found = [path for folder in folders for path in (ROOT / folder).rglob("*") if path.suffix in ENDINGS]
    return {path.relative_to(ROOT).as_posix(): path for path in [*found, *ROOT.glob("*.md")]}


@cache
def code() -> str:
    return "\n".join(p.read_text("utf-8") for n, p in files().items() if n.startswith(("slangpy", "src", "tests", "tools")))


@pytest.mark.parametrize("page", ["how-a-call-works", "add-a-type", "add-a-backend"])
def test_names_exist(page: str) -> None:
    text = re.sub(r"```.*?```", "", (ROOT / "docs" / f"{page}.md").read_text("utf-8"), flags=re.DOTALL)
    missing = []
    for name in sorted(set(re.findall(r"`([^`\n]+)`", text))):
        if re.fullmatch(r"[\w./-]+/", name):
            known = any(f"/{file}".count(f"/{name}") for file in files()) or f'"{name[:-1]}"' in code()  # a folder of the cache
        elif re.fullmatch(r"(?!.*\.h/)[\w/-][\w./-]*\.\w+", name) and name.endswith(ENDINGS):
            known = any(f"/{file}".endswith(f"/{name}") for file in files())
        elif re.fullmatch(r"[A-Za-z_]\w+(\(\))?", name) and not name.startswith(("x_", "SPY_HAS_X")):
            known = name.removesuffix("()") in code()
        else:
            continue
        if not known:
            missing.append(name)
    assert not missing
