"""Tables of the pages that scripts write are today's."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

TOOLS = Path(__file__).resolve().parents[2] / "tools"
pytestmark = pytest.mark.null


@pytest.mark.parametrize("name", ["rules_table", "performance_table", "gallery_table"])
def test_the_table_is_current(name: str) -> None:
    spec = importlib.util.spec_from_file_location(name, TOOLS / f"{name}.py")
    assert spec is not None and spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    text = tool.PAGE.read_text("utf-8")
    assert tool.with_table(text) == text, f"run: python tools/{name}.py"
