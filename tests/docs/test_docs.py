"""The documents show what the code does."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from slangpy import Device, DeviceType

TOOLS = Path(__file__).parents[2] / "tools"


@pytest.mark.skipif(not Device.enumerate_adapters(DeviceType.vulkan), reason="the page shows Vulkan kernels")
def test_generated_code_is_current(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(TOOLS))
    monkeypatch.delitem(sys.modules, "update_docs", raising=False)
    import update_docs

    current = update_docs.PAGE.read_text(encoding="utf-8")
    assert update_docs.page(update_docs.generated()) == current, "run: python tools/update_docs.py"
