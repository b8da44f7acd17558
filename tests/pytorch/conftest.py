"""Fixtures of the torch tests; they need torch, except test_absent.py."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture(params=["cpu", "cuda"])
def where(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A torch device whose tensors a slangpy device takes in place."""
    torch = pytest.importorskip("torch")
    asked = os.environ.get("SLANGPY_TEST_DEVICES", "")
    if asked and request.param not in asked.split(","):
        pytest.skip(f"SLANGPY_TEST_DEVICES is {asked}")
    if request.param == "cuda" and not torch.cuda.is_available():
        pytest.skip("torch has no CUDA device")
    enabled = torch.are_deterministic_algorithms_enabled
    before = enabled()
    torch.use_deterministic_algorithms(True, warn_only=True)  # memory that nobody has written holds NaN
    # backward calls would be deterministic too; the tests that want that turn warn_only off
    monkeypatch.setattr(
        torch, "are_deterministic_algorithms_enabled",
        lambda: enabled() and not torch.is_deterministic_algorithms_warn_only_enabled(),
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*does not have a deterministic implementation")
        yield request.param
    torch.use_deterministic_algorithms(before)


@pytest.fixture(params=["c table", "python"])
def bridge(request: pytest.FixtureRequest) -> Iterator[str]:
    """Both ways of reading tensors: torch's C interface and Python attributes."""
    import slangpy as spy

    spy.set_torch_bridge_python_fallback(request.param == "python")
    yield request.param
    spy.set_torch_bridge_python_fallback(False)


@pytest.fixture
def module(where: str) -> Any:
    from torch_support import module_of

    return module_of(where)
