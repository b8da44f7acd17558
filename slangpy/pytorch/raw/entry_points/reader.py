"""Reads the part of C++ in which Slang writes host functions: tokens, types, and what a file declares.

Slang's "torch-binding" target is the only one that has host functions. Its text is regular: what is not in this grammar
is reported with the function that it stands in (docs/slangtorch.md, "Host functions").
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

_TOKEN = re.compile(
    r"\s+|//[^\n]*|#[^\n]*"
    r'|(?P<text>"(?:[^"\\]|\\.)*")'
    r"|(?P<number>0[xX][0-9a-fA-F]+[uUlL]*|(?:\d+\.\d*|\.\d+|\d+)(?:[eE][-+]?\d+)?[fFuUlL]*)"
    r"|(?P<name>[A-Za-z_]\w*(?:::[A-Za-z_]\w*)*)"
    r"|(?P<sign><<=|>>=|->|<<|>=|<=|==|!=|&&|\|\||[-+*/%&|^]=|[-+*/%&|^~!<>=?:;,.(){}\[\]])"
)
INTEGERS = {"int8_t": (8, True), "uint8_t": (8, False), "int16_t": (16, True), "uint16_t": (16, False), "int32_t": (32, True),
            "uint32_t": (32, False), "int64_t": (64, True), "uint64_t": (64, False)}  # fmt: skip
SCALARS = {**dict.fromkeys(INTEGERS), "float": None, "double": None, "half": None, "bool": None}
ALIASES = {"int": "int32_t", "uint": "uint32_t", "uchar": "uint8_t", "char": "int8_t", "short": "int16_t", "ushort": "uint16_t",
           "longlong": "int64_t", "ulonglong": "uint64_t", "unsigned": "uint32_t", "size_t": "uint64_t"}  # fmt: skip

Type = tuple[Any, ...]
"""("float",), ("Vector", T, N), ("Matrix", T, R, C), ("FixedArray", T, N), ("struct", name), ("tuple", T...), ("tensor",),
("view",), ("ptr", T), ("void",)."""


class Untranslatable(Exception):
    """A construct that is not in the grammar."""


@dataclass(frozen=True)
class Token:
    kind: str
    text: str


@dataclass
class Function:
    name: str
    returns: Type
    parameters: list[tuple[Type, str]]
    body: list[Token]
    position: int = 0


@dataclass
class Source:
    structs: dict[str, list[tuple[str, Type]]] = field(default_factory=dict)
    functions: dict[str, Function] = field(default_factory=dict)
    kernels: set[str] = field(default_factory=set)
    exports: dict[str, str] = field(default_factory=dict)  # name in Python -> function
    constants: dict[str, tuple[Type, list[Token]]] = field(default_factory=dict)  # type and initialiser
    variables: set[str] = field(default_factory=set)  # of the file, and not constant


def tokens_of(text: str) -> list[Token]:
    found, at = [], 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise Untranslatable(f"the character {text[at]!r}")
        if match.lastgroup:
            found.append(Token(match.lastgroup, match.group()))
        at = match.end()
    return found


class Reader:
    """A place in a list of tokens."""

    def __init__(self, tokens: list[Token], structs: dict[str, list[tuple[str, Type]]]) -> None:
        self.tokens = tokens
        self.structs = structs
        self.at = 0

    def peek(self, ahead: int = 0) -> str:
        return self.tokens[self.at + ahead].text if self.at + ahead < len(self.tokens) else ""

    def kind(self) -> str:
        return self.tokens[self.at].kind if self.at < len(self.tokens) else ""

    def next(self) -> str:
        text = self.peek()
        self.at += 1
        return text

    def take(self, text: str) -> bool:
        if self.peek() == text:
            self.at += 1
            return True
        return False

    def expect(self, text: str) -> None:
        if not self.take(text):
            near = " ".join(t.text for t in self.tokens[max(0, self.at - 4) : self.at + 4])
            raise Untranslatable(f"'{self.peek()}' where '{text}' was expected, in: {near}")

    def group(self, opening: str, closing: str) -> list[Token]:
        """The tokens between brackets."""
        self.expect(opening)
        begin, depth = self.at, 1
        while depth:
            text = self.next()
            if not text:
                raise Untranslatable(f"'{opening}' that is not closed")
            depth += (text == opening) - (text == closing)
        return self.tokens[begin : self.at - 1]

    # --- types
    def number(self) -> int:
        """A literal, possibly as `int(3)`."""
        if self.take("int"):
            self.expect("(")
            value = self.number()
            self.expect(")")
            return value
        return int(self.next().rstrip("uUlL"), 0)

    def is_type(self) -> bool:
        text = self.peek()
        return (text in SCALARS or text in ALIASES or text in self.structs
                or text in ("Vector", "Matrix", "FixedArray", "std::tuple", "torch::Tensor", "TensorView", "void"))  # fmt: skip

    def type(self) -> Type:
        text = self.next()
        text = ALIASES.get(text, text)
        result: Type
        if text in SCALARS or text == "void":
            result = (text,)
        elif text in self.structs:
            result = ("struct", text)
        elif text == "torch::Tensor":
            result = ("tensor",)
        elif text == "TensorView":
            result = ("view",)
        elif text in ("Vector", "Matrix", "FixedArray", "std::tuple"):
            result = self._generic(text)
        else:
            raise Untranslatable(f"the type '{text}'")
        while self.take("*"):
            result = ("ptr", result)
        return result

    def _generic(self, name: str) -> Type:
        self.expect("<")
        parts: list[Any] = [name.removeprefix("std::")]
        while True:
            parts.append(
                self.number()
                if self.kind() == "number" or (self.peek() == "int" and self.peek(1) == "(")
                else self.type()
            )
            if not self.take(","):
                break
        if self.peek() == ">>":  # two closing brackets in one token
            self.tokens[self.at] = Token("sign", ">")
        else:
            self.expect(">")
        return tuple(parts)


_DEFINED = re.compile(r'm\.def\("(\w+)", &(\w+)')


def read_source(text: str) -> Source:
    source = Source()
    source.exports = dict(_DEFINED.findall(text))
    body = text[: text.find("PYBIND11_MODULE")] if "PYBIND11_MODULE" in text else text
    reader = Reader(
        [Token(t.kind, t.text) for t in tokens_of(body.replace(">>", "> >") if "<" in body else body)], source.structs
    )
    while reader.peek():
        if reader.take("struct"):
            _read_struct(reader, source)
            continue
        words = []
        while reader.peek() in ("static", "SLANG_PRELUDE_EXPORT", "inline", "const"):
            words.append(reader.next())
        try:
            _read_declaration(reader, source, "const" in words)
        except Untranslatable:  # who uses it says so
            _skip_declaration(reader)
    return source


def _skip_declaration(reader: Reader) -> None:
    while reader.peek() not in ("", ";", "{"):
        reader.next()
    if reader.peek() == "{":
        reader.group("{", "}")
    reader.take(";")


def _read_struct(reader: Reader, source: Source) -> None:
    name = reader.next()
    if reader.take(";"):
        return
    source.structs[name] = fields = []
    reader.expect("{")
    while not reader.take("}"):
        type_ = reader.type()
        fields.append((reader.next(), type_))
        reader.expect(";")
    reader.expect(";")


def _read_declaration(reader: Reader, source: Source, const: bool) -> None:
    returns = reader.type()
    name = reader.next()
    if reader.peek() in ("=", ";"):
        begin = reader.at + 1
        while not reader.take(";"):
            reader.next()
        if const:
            source.constants[name] = (returns, reader.tokens[begin : reader.at - 1])
        else:
            source.variables.add(name)
        return
    reader.expect("(")
    parameters = []
    while not reader.take(")"):
        type_ = reader.type()
        parameters.append((type_, reader.next()))
        reader.take(",")
    if reader.take(";"):
        source.kernels.add(name)
        return
    source.functions[name] = Function(name, returns, parameters, reader.group("{", "}"))
