"""Which lanes have a value of a variable that was declared without one: others get what is easiest."""

from __future__ import annotations

from dataclasses import dataclass, field

from .tree import Expr, Stmt
from .varying import root


@dataclass
class Given:
    """Of the function that is being written."""

    path: tuple[str, ...] = ()
    """The masks of the branches around what is being written."""
    asked: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Of masks of branches: the mask around the branch, and how a variable is set for lanes of that which come to the branch."""
    paths: dict[str, tuple[str, ...] | None] = field(default_factory=dict)
    """By variable: the branches that all lanes have taken that have a value by now; None where no lane has."""

    def enter(self, mask: str) -> None:
        self.path = (*self.path, mask)

    def leave(self) -> None:
        self.path = self.path[:-1]

    def forget_pointed(self, s: Stmt) -> None:
        for e in s.expressions():
            for part in e.walk():
                if part.kind == "unary" and part.text == "&":
                    self.paths.pop(root(part).text, None)

    def first(self, place: Expr) -> tuple[bool, bool]:
        """Of a variable that gets a value here: whether it has none for lanes that are elsewhere, and whether it has none for lanes
        that did not come to the branch."""
        name = root(place).text
        if place.kind != "name" or name not in self.paths:
            self.paths.pop(name, None)
            return False, False
        had, here = self.paths[name], self.path
        if had is None or had[: len(here)] == here:
            self.paths[name] = here
            return True, False
        common = next((k for k, (a, b) in enumerate(zip(had, here, strict=False)) if a != b), min(len(had), len(here)))
        self.paths[name] = here[:common]
        return False, common + 1 == len(here)
