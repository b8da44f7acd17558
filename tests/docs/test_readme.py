"""The README's snippets run as written, one after the other, and print what it says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)


def blocks() -> list[tuple[str, str]]:
    return FENCE.findall((ROOT / "README.md").read_text(encoding="utf-8"))


def test_snippets(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    snippets = [text for language, text in blocks() if language == "python"]
    assert len(snippets) >= 2
    exec(compile(snippets[0], "README.md (first snippet)", "exec"), names)
    expected = next(text for language, text in blocks() if language == "text")
    assert capsys.readouterr().out == expected
    for number, snippet in enumerate(snippets[1:], 2):
        exec(compile(snippet, f"README.md (snippet {number})", "exec"), names)


def test_first_snippet_is_short() -> None:
    first = next(text for language, text in blocks() if language == "python")
    assert sum(bool(line.strip()) for line in first.splitlines()) <= 20


def test_commands_name_files_that_exist() -> None:
    commands = [text for language, text in blocks() if language == "sh"]
    assert len(commands) == 2
    for path in re.findall(r"[\w/]+\.(?:sh|py)\b", "".join(commands)):
        assert (ROOT / path).is_file(), path


def test_links() -> None:
    for path in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        text = re.sub(r"^```.*?^```$", "", path.read_text(encoding="utf-8"), flags=re.M | re.S)
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", text):
            assert (path.parent / target).exists(), f"{path.name} links to {target}"
