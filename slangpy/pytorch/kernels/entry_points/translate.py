"""Host functions as Python: the statements of the text that `reader` reads.

Aggregates (vectors, matrices, arrays, structs) are lists, copied where C++ copies; integers wrap, floats are rounded to
their type after each operation. `rt` in the result is the call (runtime.py).
"""

from __future__ import annotations

from slangpy.pytorch.kernels.entry_points.expressions import Expressions, copied, own_name
from slangpy.pytorch.kernels.entry_points.reader import Function, Reader, Source, Type, Untranslatable, read_source


def translate(text: str) -> tuple[str, dict[str, str], dict[str, str]]:
    """Python source, exported name -> function in it, and function -> why it could not be translated."""
    source = read_source(text)
    pieces, failed = [], {}
    for function in source.functions.values():
        try:
            pieces.append(Writer(source, function).write())
        except Untranslatable as error:
            failed[function.name] = str(error)
    return "\n".join(pieces), source.exports, failed


class Writer(Expressions):
    """One function."""

    def __init__(self, source: Source, function: Function) -> None:
        self._source = source
        self._function = function
        self._in = Reader(list(function.body), source.structs)
        self._types: dict[str, Type] = {name: type_ for type_, name in function.parameters}
        self._lines: list[str] = []
        self._depth = 1
        self._loops = 0  # `continue` belongs to the innermost

    def write(self) -> str:
        names = ", ".join(["rt", *(name for _, name in self._function.parameters)])
        self._lines.append(f"def {own_name(self._function.name)}({names}):")
        if not self._function.body:
            self._put("pass")
        while self._in.peek():
            self._statement()
        return "\n".join(self._lines) + "\n"

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
        """As if and elif: a `continue` inside belongs to the loop around."""
        read = self._in
        read.next()
        read.expect("(")
        value = self._expression()[0]
        read.expect(")")
        read.expect("{")
        name = f"_switch{len(self._lines)}"
        self._put(f"{name} = {value}")
        branches: list[tuple[list[str], bool, list[str]]] = []
        while not read.take("}"):
            labels, default = [], False
            while read.peek() in ("case", "default"):
                if read.next() == "default":
                    default = True
                else:
                    labels.append(self._expression()[0])
                read.expect(":")
            branches.append((labels, default, self._case()))
        word = "if"
        for labels, _, lines in [b for b in branches if not b[1]]:
            self._put(f"{word} {name} in ({', '.join(labels)},):")
            self._lines += lines
            word = "elif"
        for _, _, lines in [b for b in branches if b[1]]:
            self._put("else:" if word == "elif" else "if True:")
            self._lines += lines

    def _case(self) -> list[str]:
        """The lines of a case; its own `break` at the end is dropped."""
        outer, self._lines = self._lines, []
        self._depth += 1
        braces = self._in.take("{")
        last = ""
        while self._in.peek() not in ("}", "case", "default"):
            last = self._in.peek()
            before = len(self._lines)
            self._statement()
            if last in ("if", "for", "switch", "{") and any(line.strip() == "break" for line in self._lines[before:]):
                raise Untranslatable("a break inside of a case, other than at its end")
        if braces:
            self._in.expect("}")
            if self._in.peek() == "break":
                last = self._in.next()
                self._in.expect(";")
                self._put("break")
        if last == "break":
            self._lines.pop()
        elif last not in ("continue", "return") and self._in.peek() != "}":
            raise Untranslatable("a case that goes on into the next")
        if not self._lines:
            self._put("pass")
        self._depth -= 1
        lines, self._lines = self._lines, outer
        return lines

    def _declaration(self) -> None:
        read = self._in
        type_ = read.type()
        while True:
            name = read.next()
            self._types[name] = type_
            if not read.take("="):
                self._put(f"{name} = {self._zero(type_)}")
            elif read.peek() == "{":
                self._put(f"{name} = {self._braces(type_)}")
            else:
                self._put(f"{name} = {copied(self._expression())}")
            if not read.take(","):
                break
        read.expect(";")

    def _assignment(self) -> None:
        place = self._expression()
        if not self._in.take("="):
            self._put(place[0])
            return
        self._put(f"{place[0]} = {copied(self._expression())}")


__all__ = ["own_name", "translate"]
