"""Generated kernels are what is kept in kernels/; `python -m tests.golden` rewrites those files."""

from __future__ import annotations

from pathlib import Path

import pytest

from .cases import KERNELS, all_files, text_of

FILES = all_files()


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_kernel_is_the_kept_one(path: Path):
    assert path.exists(), "run python -m tests.golden, and read what it writes"
    assert text_of(*FILES[path]) == path.read_text("utf-8")


def test_no_file_is_left_over():
    assert set(KERNELS.rglob("*.slang")) == set(FILES)
