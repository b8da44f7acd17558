"""Public classes, methods and functions say what they are for: in `help()`, editors and the stubs."""

from __future__ import annotations

import enum
import re
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

import slangpy as spy
from slangpy import _native

pytestmark = pytest.mark.null

_SIGNATURES = re.compile(r"^(\d+\. ``)?\w+\(.*\)( -> .*)?$|^Overloaded function\.$")
"""Lines that nanobind writes by itself."""


def says_nothing(member: Any) -> bool:
    lines = [line.strip() for line in (getattr(member, "__doc__", None) or "").splitlines()]
    return not any(line and not _SIGNATURES.match(line) for line in lines)


def members(owner: type, path: str) -> Iterator[tuple[str, Any]]:
    for name, member in vars(owner).items():
        if name.startswith("_") or (isinstance(owner, enum.EnumMeta) and not isinstance(member, type)):
            continue
        if isinstance(member, type):
            yield from classes(member, f"{path}.{name}")
        elif callable(member) or isinstance(member, (classmethod, staticmethod)):
            yield f"{path}.{name}", member


def classes(owner: type, path: str) -> Iterator[tuple[str, Any]]:
    yield path, owner
    yield from members(owner, path)


def compiled() -> list[ModuleType]:
    import slangpy._slang

    return [_native, slangpy._slang]


def test_native_members() -> None:
    silent = []
    for module in compiled():
        for name, found in vars(module).items():
            if name.startswith("_") or not callable(found):
                continue
            listed = classes(found, name) if isinstance(found, type) else [(name, found)]
            silent += [path for path, member in listed if says_nothing(member)]
    assert not silent, silent


def test_classes_of_the_package() -> None:
    public = {found for name in dir(spy) if not name.startswith("_") and isinstance(found := getattr(spy, name), type)}
    own = [found for found in public if found.__module__.startswith("slangpy.") and "_native" not in found.__module__]
    assert len(own) > 40
    assert not [found.__name__ for found in own if not (found.__doc__ or "").strip()]
