"""Host functions as Python: the statements of the text that `reader` reads.

Aggregates (vectors, matrices, arrays, structs) are lists, copied where C++ copies; integers wrap, floats are rounded to
their type after each operation. `rt` in the result is the call (runtime.py).
"""

from __future__ import annotations

from slangpy.pytorch.raw.entry_points.expressions import Expressions, copied, is_aggregate, own_name
from slangpy.pytorch.raw.entry_points.reader import (
    Function,
    Reader,
    Source,
    Token,
    Type,
    Untranslatable,
    read_source,
)


def translate(text: str) -> tuple[str, dict[str, str], dict[str, str]]:
    """Python source, exported name -> function in it, and function -> why it could not be translated."""
    source = read_source(text)
    pieces, failed = [], {}
    for function in source.functions.values():
        try:
            pieces.append(Writer(source, function).write())
        except Untranslatable as error:
            failed[function.name] = str(error)
    for symbol in source.exports.values():
        if symbol not in source.functions:
            failed.setdefault(symbol, "its declaration")
    return "\n".join(pieces), source.exports, failed


class Writer(Expressions):
    """One function."""

    def __init__(self, source: Source, function: Function) -> None:
        self._source = source
        self._function = function
        self._in = Reader(list(function.body), source.structs)
        self._types: dict[str, Type] = {name: _as_passed(type_) for type_, name in function.parameters}
        self._boxed = {name for type_, name in function.parameters if self._is_boxed(name, type_)}
        self._lines: list[str] = []
        self._depth = 1
        self._loops = 0  # `continue` belongs to the innermost

    def write(self) -> str:
        names = ", ".join(["rt", *(name for _, name in self._function.parameters)])
        self._lines.append(f"def {own_name(self._function.name)}({names}):")
        if not self._function.body:
            self._put("pass")
        self._constants(self._function.body)
        for name in sorted(self._boxed):
            self._put(f"{name} = [{name}]")
        while self._in.peek():
            self._statement()
        return "\n".join(self._lines) + "\n"

    def _constants(self, tokens: list[Token]) -> None:
        """Constants of the file that these tokens name, as variables."""
        for name in dict.fromkeys(token.text for token in tokens if token.text in self._source.constants):
            if name in self._types:
                continue
            type_, given = self._source.constants[name]
            self._constants(given)
            body, self._in = self._in, Reader(list(given), self._source.structs)
            value = self._braces(type_) if self._in.peek() == "{" else copied(self._expression())
            self._in = body
            self._types[name] = type_
            self._put(f"{name} = {value}")

    def _is_boxed(self, name: str, type_: Type) -> bool:
        """Whether the address of a variable that is no list is an argument of a call."""
        body = [token.text for token in self._function.body]
        return not is_aggregate(type_) and any(
            body[at : at + 2] == ["&", name] and body[at - 1] in ("(", ",") and body[at + 2] in (",", ")")
            for at in range(1, len(body) - 2)
        )

    def _put(self, line: str) -> None:
        self._lines.append("    " * self._depth + line)

    # --- statements
    def _block(self) -> None:
        """The statements of `{ }` or a single one, one level deeper."""
        self._depth += 1
        before = len(self._lines)
        if self._in.take("{"):
            while not self._in.take("}"):
                self._statement()
        else:
            self._statement()
        if len(self._lines) == before:
            self._put("pass")
        self._depth -= 1

    def _statement(self) -> None:
        read = self._in
        word = read.peek()
        if word == "{":
            read.next()
            while not read.take("}"):
                self._statement()
        elif word == ";":
            read.next()
        elif word == "if":
            self._if()
        elif word == "for":
            self._for()
        elif word == "switch":
            self._switch()
        elif word in ("break", "continue"):
            self._put(read.next())
            read.expect(";")
        elif word == "return":
            read.next()
            self._put("return" if read.peek() == ";" else f"return {self._expression()[0]}")
            read.expect(";")
        elif read.is_type() and not self._is_cast():
            self._declaration()
        else:
            self._assignment()
            read.expect(";")

    def _is_cast(self) -> bool:
        """`float(x)` at the beginning of a statement is no declaration."""
        return self._in.peek(1) == "("

    def _if(self) -> None:
        read = self._in
        read.next()
        read.expect("(")
        condition = self._expression()[0]
        read.expect(")")
        self._put(f"if {condition}:")
        self._block()
        if read.take("else"):
            self._put("else:")
            self._block()

    def _for(self) -> None:
        read = self._in
        read.next()
        read.expect("(")
        if not (read.take(";") and read.take(";") and read.take(")")):
            raise Untranslatable("a for loop with a header")
        self._put("while True:")
        self._block()

    def _switch(self) -> None:
        """As if and elif: a `continue` inside belongs to the loop around. A `break` before a case's end needs a loop."""
        read = self._in
        read.next()
        read.expect("(")
        value = self._expression()[0]
        read.expect(")")
        read.expect("{")
        name = f"_switch{len(self._lines)}"
        self._put(f"{name} = {value}")
        branches: list[tuple[list[str], bool, list[str]]] = []
        goes_on: list[bool] = []
        while not read.take("}"):
            labels, default = [], False
            while read.peek() in ("case", "default"):
                if read.next() == "default":
                    default = True
                else:
                    labels.append(self._expression()[0])
                read.expect(":")
            lines, into_next = self._case()
            branches.append((labels, default, lines))
            goes_on.append(into_next)
        for at in range(len(branches) - 2, -1, -1):
            if goes_on[at]:
                branches[at][2].extend(branches[at + 1][2])
        early = any(_leaves(lines, "break") for _, _, lines in branches)
        if early and any(_leaves(lines, "continue") for _, _, lines in branches):
            raise Untranslatable("a case with a continue, and with a break other than at its end,")
        if early:
            self._put("while True:")  # left at its end, or before
        self._branches(name, branches, "    " * early)

    def _branches(self, name: str, branches: list[tuple[list[str], bool, list[str]]], indent: str) -> None:
        word = "if"
        for labels, default, lines in sorted(branches, key=lambda b: b[1]):
            test = f"{word} {name} in ({', '.join(labels)},):" if not default else "else:" if word == "elif" else "if True:"
            self._put(indent + test)
            self._lines += [indent + line for line in lines]
            word = "elif"
        if indent:
            self._put(indent + "break")

    def _case(self) -> tuple[list[str], bool]:
        """The lines of a case, and whether it goes on into the next; its own `break` at the end is dropped."""
        outer, self._lines = self._lines, []
        self._depth += 1
        braces = self._in.take("{")
        last = ""
        while self._in.peek() not in ("}", "case", "default"):
            last = self._in.peek()
            self._statement()
        if braces:
            self._in.expect("}")
            if self._in.peek() == "break":
                last = self._in.next()
                self._in.expect(";")
                self._put("break")
        if last == "break":
            self._lines.pop()
        if not self._lines:
            self._put("pass")
        self._depth -= 1
        lines, self._lines = self._lines, outer
        return lines, last not in ("break", "continue", "return")

    def _declaration(self) -> None:
        read = self._in
        type_ = read.type()
        while True:
            name = read.next()
            if not read.take("="):
                value = self._zero(type_)
            elif read.peek() == "{":
                value = self._braces(type_)
            else:
                value = copied(self._expression())
            self._types[name] = type_
            if self._is_boxed(name, type_):
                self._boxed.add(name)
                value = f"[{value}]"
            self._put(f"{name} = {value}")
            if not read.take(","):
                break
        read.expect(";")

    def _assignment(self) -> None:
        through = self._in.peek() == "*"
        text, type_ = self._expression()
        if not self._in.take("="):
            self._put(text)
            return
        value = self._expression()
        if type_ == ("ptr", ("void",)) and value[1][0] == "ref":
            value = self._pointed_to(value)  # an argument of a kernel
        where = f"{text}[:]" if through and is_aggregate(type_) else text
        self._put(f"{where} = {copied(value)}")


def _leaves(lines: list[str], word: str) -> bool:
    """Whether a `break` or `continue` is none of a loop in these lines."""
    loops: list[int] = []
    for line in lines:
        indent = len(line) - len(line.lstrip())
        while loops and indent <= loops[-1]:
            loops.pop()
        if line.strip() == "while True:":
            loops.append(indent)
        elif line.strip() == word and not loops:
            return True
    return False


def _as_passed(type_: Type) -> Type:
    """A parameter's type: pointers to what is no list are references."""
    return ("ref", type_[1]) if type_[0] == "ptr" and not is_aggregate(type_[1]) and type_[1] != ("void",) else type_


__all__ = ["own_name", "translate"]
