"""The table of rules in docs/gradients.md is today's."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

TOOL = Path(__file__).resolve().parents[2] / "tools" / "rules_table.py"
pytestmark = pytest.mark.null


def test_the_table_is_current() -> None:
    spec = importlib.util.spec_from_file_location("rules_table", TOOL)
    assert spec is not None and spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    text = tool.PAGE.read_text("utf-8")
    assert tool.with_table(text) == text, "run: python tools/rules_table.py"
