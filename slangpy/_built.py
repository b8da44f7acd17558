"""Says what is wrong when Python finds the source of this package in place of the built one."""

from __future__ import annotations

from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

_folder = Path(__file__).resolve().parent
if not any((_folder / f"_native{suffix}").exists() for suffix in EXTENSION_SUFFIXES):
    raise ImportError(
        f"slangpy was found in {_folder}, which holds its source without the compiled part. "
        "Run Python in another folder to use the installed package; to install this one: pip install ."
    )
