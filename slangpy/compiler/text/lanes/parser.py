"""A parser of the C++ code that Slang emits: one statement for each effect, and one form of loop. What it does not know is no
error of the code: `Unfit` says that it stays as it is."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise

from .branches import with_fewer_branches
from .conditions import with_conditions
from .counters import with_counters
from .flags import with_flags
from .tokens import Token, Unfit, closing, tokens_of
from .tree import Case, Expr, Function, Stmt, Struct

_SCALARS = frozenset(
    "void bool char int uint float double half size_t int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t".split()
)
_SAME = {"int": "int32_t", "uint": "uint32_t"}
_TEMPLATES = frozenset({"Vector", "Matrix", "FixedArray"})
_LEVELS = (
    ("||",), ("&&",), ("|",), ("^",), ("&",), ("==", "!="), ("<", ">", "<=", ">="), ("<<", ">>"), ("+", "-"), ("*", "/", "%"),
)  # fmt: skip
_LEVEL = {operator: level for level, operators in enumerate(_LEVELS) for operator in operators}
_BETWEEN = frozenset({"_spy_by", "_spy_wrap"})
_LEFT_ALONE = frozenset({"goto", "while", "do", "case", "default", "else", "asm", "const", "static"})


def _is_texture(name: str) -> bool:
    return name.startswith(("Texture", "RWTexture", "Sampler"))


class Parser:
    """Reads tokens from a place on. types: the names of structs."""

    def __init__(self, tokens: list[Token], types: frozenset[str], at: int, end: int) -> None:
        self.tokens = tokens
        self.types = types
        self.at = at
        self.end = end

    def peek(self, ahead: int = 0) -> str:
        at = self.at + ahead
        return self.tokens[at].text if at < self.end else ""

    def take(self) -> Token:
        if self.at >= self.end:
            raise Unfit("the end")
        self.at += 1
        return self.tokens[self.at - 1]

    def expect(self, *texts: str) -> None:
        for text in texts:
            if self.take().text != text:
                raise Unfit(text)

    # --- types

    def is_type(self, ahead: int = 0) -> bool:
        name = self.peek(ahead)
        return name in _SCALARS or name in self.types or name in _TEMPLATES or _is_texture(name)

    def type(self) -> str:
        if not self.is_type():
            raise Unfit(self.peek())
        name = self.take().text
        name = _SAME.get(name, name)
        if self.peek() == "<":
            self.take()
            arguments = []
            while self.peek() != ">":
                arguments.append(self.take().text if self.peek()[:1].isdigit() else self.type())
                if self.peek() == ",":
                    self.take()
            self.take()
            name += f"<{', '.join(arguments)}>"
        while self.peek() == "*":
            self.take()
            name += "*"
        return name

    # --- expressions

    def expression(self, level: int = 0) -> Expr:
        """level: operators that bind less are left to the caller."""
        left = self._unary()
        while (binds := _LEVEL.get(operator := self._operator(), -1)) >= level:
            self.at += len(operator) if operator == ">>" else 1
            by = ""
            if self.peek() in _BETWEEN:
                by = self.take().text
                self.expect(*(operator if operator == ">>" else (operator,)))
            left = Expr("binary", operator, (left, self.expression(binds + 1)), by)
        if level == 0 and self.peek() == "?":
            self.take()
            yes = self.expression()
            self.expect(":")
            left = Expr("choice", "?", (left, yes, self.expression()))
        return left

    def _operator(self) -> str:
        first = self.peek()
        if first == ">" and self.peek(1) == ">" and self.tokens[self.at].end == self.tokens[self.at + 1].at:
            return ">>"
        return first

    def _unary(self) -> Expr:
        if self.peek() in ("-", "+", "!", "~", "*", "&"):
            operator = self.take().text
            kid = self._unary()
            if operator == "*" and kid.kind == "unary" and kid.text == "&":
                return kid.kids[0]
            return Expr("unary", operator, (kid,))
        if self.peek() == "(" and self.is_type(1):
            before = self.at
            self.take()
            try:
                type = self.type()
                self.expect(")")
                return Expr("cast", type, (self._unary(),))
            except Unfit:
                self.at = before
        return self._postfix(self._primary())

    def _primary(self) -> Expr:
        token = self.tokens[self.at] if self.at < self.end else None
        if token is None or token.kind == "string":
            raise Unfit("an expression")
        if token.kind == "number":
            return Expr("literal", self.take().text)
        if token.text == "(":
            self.take()
            inner = self.expression()
            self.expect(")")
            return inner
        if token.text == "{":
            return Expr("braces", "", self._list("{", "}"))
        if token.kind != "name" or token.text in _LEFT_ALONE:
            raise Unfit(token.text)
        if self.is_type():
            type = self.type()
            opening = self.peek()
            if opening not in ("(", "{"):
                raise Unfit(type)
            return Expr("call", type, self._list(opening, ")" if opening == "(" else "}"), "{" if opening == "{" else "")
        name = self.take().text
        if name in ("true", "false", "nullptr"):
            return Expr("literal", name)
        if name == "slang_bit_cast" and self.peek() == "<":
            self.take()
            name += f"<{self.type()}>"
            self.expect(">")
        if self.peek() == "(":
            return Expr("call", name, self._list("(", ")"))
        return Expr("name", name)

    def _list(self, opening: str, close: str) -> tuple[Expr, ...]:
        self.expect(opening)
        found = []
        while self.peek() != close:
            found.append(self.expression())
            if self.peek() == ",":
                self.take()
            elif self.peek() != close:
                raise Unfit(self.peek())
        self.take()
        return tuple(found)

    def _postfix(self, e: Expr) -> Expr:
        while self.peek() in (".", "->", "["):
            sign = self.take().text
            if sign == "[":
                e = Expr("index", "", (e, self.expression()))
                self.expect("]")
                continue
            name = self.take().text
            if sign == "->" and e.kind == "unary" and e.text == "&":
                e, sign = e.kids[0], "."
            if self.peek() == "(":
                if sign != ".":
                    raise Unfit(name)
                e = Expr("call", f".{name}", (e, *self._list("(", ")")))
            else:
                e = Expr("member", name, (e,), sign)
        return e

    # --- statements

    def block(self) -> tuple[Stmt, ...]:
        """The statements up to where this parser ends, or a bracket closes."""
        found: list[Stmt] = []
        while self.at < self.end and self.peek() not in ("}", "case", "default"):
            if self.peek() == "{":
                found += self._braced()
            else:
                found.append(self.statement())
        return tuple(found)

    def _braced(self) -> tuple[Stmt, ...]:
        self.expect("{")
        body = self.block()
        self.expect("}")
        return body

    def statement(self) -> Stmt:
        first = self.peek()
        if first == "if":
            self.take()
            self.expect("(")
            condition = self.expression()
            self.expect(")")
            body, other = self._braced(), ()
            if self.peek() == "else":
                self.take()
                other = self._braced()
            return Stmt("if", value=condition, body=body, other=other)
        if first == "for":
            self.expect("for", "(", ";", ";", ")")
            return Stmt("loop", body=self._braced())
        if first == "switch":
            return self._switch()
        made = self._simple(first)
        self.expect(";")
        return made

    def _simple(self, first: str) -> Stmt:
        if first in ("break", "continue"):
            self.take()
            return Stmt(first)
        if first == "return":
            self.take()
            return Stmt("return", value=None if self.peek() == ";" else self.expression())
        if self.is_type():
            before = self.at
            type = self.type()
            if self.at < self.end and self.tokens[self.at].kind == "name":
                return self._declaration(type)
            self.at = before
        place = self.expression()
        if self.peek() != "=":
            return Stmt("call", value=place)
        self.take()
        return Stmt("assign", place=place, value=self.expression())

    def _declaration(self, type: str) -> Stmt:
        name = self.take().text
        if self.peek() != "=":
            return Stmt("declare", type, name)
        self.take()
        return Stmt("declare", type, name, value=self.expression())

    def _switch(self) -> Stmt:
        self.expect("switch", "(")
        value = self.expression()
        self.expect(")", "{")
        cases: list[Case] = []
        while self.peek() != "}":
            labels, is_default = [], False
            while self.peek() in ("case", "default"):
                if self.take().text == "case":
                    labels.append(self.expression())
                else:
                    is_default = True
                self.expect(":")
            body = self.block()
            if not body or not _ends(body):
                raise Unfit("a case that goes on into the next")
            cases.append(Case(tuple(labels), is_default, body[:-1] if body[-1].kind == "break" else body))
        self.take()
        return Stmt("switch", value=value, cases=tuple(cases))


def _ends(body: tuple[Stmt, ...]) -> bool:
    """Whether control never goes on after a block."""
    last = body[-1] if body else None
    if last is None:
        return False
    return last.kind in ("break", "continue", "return") or (last.kind == "if" and _ends(last.body) and _ends(last.other))


@dataclass
class Unit:
    """All of a kernel's code that was understood."""

    tokens: list[Token]
    structs: dict[str, Struct] = field(default_factory=dict)
    functions: dict[str, Function] = field(default_factory=dict)
    types: frozenset[str] = frozenset()
    bodies: dict[str, tuple[Stmt, ...]] = field(default_factory=dict)

    def body(self, name: str) -> tuple[Stmt, ...]:
        if name not in self.bodies:
            begin, end = self.functions[name].body
            parser = Parser(self.tokens, self.types, begin, end)
            body = parser.block()
            if parser.at != end:
                raise Unfit("a statement")
            self.bodies[name] = with_counters(with_fewer_branches(with_conditions(with_flags(body))))
        return self.bodies[name]


def parse_unit(text: str) -> Unit:
    """Structs and functions; the bodies of functions are read when they are asked for."""
    unit = Unit(tokens_of(text))
    tokens = unit.tokens
    names = (b.text for a, b in pairwise(tokens) if a.text == "struct" and b.kind == "name")
    unit.types = frozenset(names)
    at = 0
    while at < len(tokens):
        end = _item_end(tokens, at)
        with suppress(Unfit):  # it has no name here, so what uses it is left alone
            _item(unit, at, end)
        at = end
    return unit


def _item_end(tokens: list[Token], at: int) -> int:
    """The place after the declaration or function that begins at `at`."""
    while at < len(tokens) and tokens[at].text != ";":
        if tokens[at].text in ("(", "[", "{"):
            is_body = tokens[at].text == "{"
            at = closing(tokens, at)
            if is_body and (at + 1 == len(tokens) or tokens[at + 1].text not in (";", ",", "=")):
                return at + 1
        at += 1
    return at + 1


def _item(unit: Unit, at: int, end: int) -> None:
    parser = Parser(unit.tokens, unit.types, at, min(end, len(unit.tokens)))
    if parser.peek() == "struct":
        parser.take()
        name = parser.take().text
        parser.expect("{")
        fields = []
        while parser.peek() != "}":
            fields.append((parser.type(), parser.take().text))
            parser.expect(";")
        unit.structs[name] = Struct(name, tuple(fields))
        return
    while parser.peek() in ("static", "inline", "__attribute__"):
        if parser.take().text == "__attribute__":
            parser.at = closing(unit.tokens, parser.at) + 1
    result, name = parser.type(), parser.take().text
    parser.expect("(")
    parameters = []
    while parser.peek() != ")":
        parameters.append((parser.type(), parser.take().text))
        if parser.peek() == ",":
            parser.take()
    parser.expect(")", "{")
    unit.functions[name] = Function(name, result, tuple(parameters), (parser.at, parser.end - 1))
