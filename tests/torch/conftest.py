"""Fixtures of the torch tests; they need torch, except test_absent.py."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.fixture(params=["cpu", "cuda"])
def where(request: pytest.FixtureRequest) -> str:
    """A torch device whose tensors a slangpy device takes in place."""
    torch = pytest.importorskip("torch")
    if request.param == "cuda" and not torch.cuda.is_available():
        pytest.skip("torch has no CUDA device")
    return request.param


@pytest.fixture
def module(where: str) -> Any:
    from torch_support import module_of

    return module_of(where)
