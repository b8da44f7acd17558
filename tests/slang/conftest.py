from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from slangpy import _slang

PROFILES = {"spirv": "spirv_1_5", "hlsl": "sm_6_6", "cpp": "", "cuda": ""}


@pytest.fixture
def new_session() -> Callable[..., Any]:
    """Makes a session for a code format; keywords are options."""

    def make(code_format: str = "cpp", **options: Any) -> Any:
        return _slang.SlangSession({"format": code_format, "profile": PROFILES[code_format]}, options)

    return make
