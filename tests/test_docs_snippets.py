"""The snippets of the guide and of the pages on gradients and JAX run as written, one after the other, and print what they say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parent.parent / "docs"
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)


def same(printed: str, shown: str) -> bool:
    """Whether two words agree, numbers in the digits that all machines agree on."""
    try:
        return float(printed) == pytest.approx(float(shown), rel=1e-3, abs=1e-4)
    except ValueError:
        return printed == shown


@pytest.mark.parametrize("name", ["gradients", "guide", "jax"])
def test_page(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    if name == "jax":
        pytest.importorskip("jax")
    names: dict[str, object] = {}
    printed = ""
    for number, (language, text) in enumerate(FENCE.findall((DOCS / f"{name}.md").read_text(encoding="utf-8")), 1):
        if language == "python":
            exec(compile(text, f"{name}.md (snippet {number})", "exec"), names)
            printed = capsys.readouterr().out
        else:
            assert language == "text"
            assert all(same(*words) for words in zip(printed.split(), text.split(), strict=True)), printed
