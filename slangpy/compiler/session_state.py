"""What is known of a compiler session beside what Slang knows of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary, WeakSet


@dataclass(eq=False)
class SessionState:
    """One session's; it lives as long."""

    library_parts: list[str] = field(default_factory=list)
    """The parts of our library, as they were loaded."""
    sources: dict[str, str] = field(default_factory=dict)
    """Texts that were given as modules, by their names."""
    failed_sources: set[tuple[str, str]] = field(default_factory=set)
    """Names and digests of those that did not compile."""
    failed_paths: set[Path] = field(default_factory=set)
    users: WeakSet[Any] = field(default_factory=WeakSet)
    """The modules in use."""
    uses: int = 0
    """Modules there have ever been."""


_states: WeakKeyDictionary[Any, SessionState] = WeakKeyDictionary()


def state_of(session: Any) -> SessionState:
    known = _states.get(session)
    return known if known is not None else _states.setdefault(session, SessionState())
