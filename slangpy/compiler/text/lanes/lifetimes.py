"""Which variables nobody looks at after a loop: lanes that have left it need not keep theirs."""

from __future__ import annotations

from dataclasses import dataclass, field

from .tree import Stmt


def own_variables(parameters: list[str], body: tuple[Stmt, ...]) -> dict[int, frozenset[str]]:
    """By the identity of loops: variables from around them that only they use from there on, and that begin anew where a loop
    around them has its next turn. Of loops without `continue`: lanes come back from that."""
    walk = _Walk(dict.fromkeys(parameters, 0))
    walk.block(body, 0)
    return {
        loop.id: frozenset(n for n, last in walk.last.items() if loop.begin < last <= loop.end and walk.homes.get(n) == loop.around)
        for loop in walk.loops if not loop.comes_back
    }  # fmt: skip


@dataclass
class _Loop:
    id: int
    around: int
    begin: int
    end: int
    comes_back: bool


@dataclass
class _Walk:
    """homes: the loop that a variable is declared in, 0 outside of loops. last: the statement that names it last."""

    homes: dict[str, int]
    last: dict[str, int] = field(default_factory=dict)
    loops: list[_Loop] = field(default_factory=list)
    at: int = 0

    def block(self, body: tuple[Stmt, ...], around: int) -> None:
        for s in body:
            self.at += 1
            begin = self.at
            if s.kind == "declare":
                self.homes[s.name] = around
            for e in s.expressions():
                self.last |= {part.text: begin for part in e.walk() if part.kind == "name"}
            for part in s.parts():
                self.block(part, id(s) if s.kind == "loop" else around)
            if s.kind == "loop":
                self.loops.append(_Loop(id(s), around, begin, self.at, _continues(s.body)))


def _continues(body: tuple[Stmt, ...]) -> bool:
    return any(s.kind == "continue" or (s.kind != "loop" and any(_continues(part) for part in s.parts())) for s in body)
