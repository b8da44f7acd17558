"""Stores to several components at once, in C++ and CUDA code of kernels.

Slang writes `v.yx = c` as `v.y = c.x; v.x = c.y;`, and the value of a constant `c` in place of its name, without brackets:
`v.y = a + b.x;`. No compiler takes that where `a` is a vector. Where it is a number, it means the same.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from .lanes.parser import Parser
from .lanes.tokens import Unfit, tokens_of
from .lanes.tree import Expr

_STORES = re.compile(rb"^( +[^\n;=]*(?:\.|->))[xyzw](\)*) = ([^\n;]+)\.x;\n(?=\1[xyzw]\2 = \3\.y;$)", re.MULTILINE)
_TYPES = frozenset(
    f"{name}{count}" for count in (2, 3, 4)
    for name in "bool char uchar short ushort int uint longlong ulonglong __half float double".split()
) | {"makeMatrix"}  # fmt: skip
"""What CUDA code has in place of C++ templates."""
_VECTOR = rf"(?:Vector<[\w, ]+>|{'|'.join(sorted(_TYPES))})"
_IS_VECTOR = re.compile(rf"(?:make_\w+|{_VECTOR})\Z")
_NUMBER = re.compile(r"(?:bool|u?int|float|double|half|__half|longlong|ulonglong|u?char|u?short|u?int(?:8|16|32|64)_t)\Z")


@cache
def store_inputs() -> bytes:
    """All that decides what is made of stores; part of what names kernels in the disk cache."""
    return Path(__file__).read_bytes()


def with_whole_stores(code: bytes) -> bytes:
    """Code of functions that Slang emitted, with brackets around vectors whose components are stored."""
    values = {found[3] for found in _STORES.finditer(code)}
    text = code.decode() if values else ""
    for value in values:
        if _is_cut(value.decode(), text):
            for name in (b"x", b"y", b"z", b"w"):
                code = code.replace(b" = %s.%s;" % (value, name), b" = (%s).%s;" % (value, name))
    return code


def _is_cut(value: str, code: str) -> bool:
    """Whether a component after `value` is one of its last operand, and the rest of it a vector."""
    tokens = tokens_of(f"{value} .x")  # the blank: numbers take in a dot that follows them
    parser = Parser(tokens, _TYPES, 0, len(tokens))
    try:
        part = parser.expression()
    except Unfit:
        return False
    if part.kind not in ("binary", "cast", "unary"):
        return False
    while part.kind in ("binary", "cast", "unary"):
        if part.kind != "unary" and _is_vector(part if part.kind == "cast" else part.kids[0], code):
            return True
        part = part.kids[-1]
    base = part.kids[0] if part.kind == "member" else part
    return base.kind == "literal" or (base.kind == "call" and _NUMBER.match(base.text) is not None)


def _is_vector(e: Expr, code: str) -> bool:
    """Whether it is certain that an expression is one."""
    if e.kind in ("unary", "binary"):
        return any(_is_vector(kid, code) for kid in e.kids)
    if e.kind in ("cast", "call") and _IS_VECTOR.match(e.text):
        return True
    if e.kind == "call" and e.text == "_slang_select":
        return _is_vector(e.kids[-1], code)
    if e.kind == "index":
        return e.kids[0].kind == "member" and e.kids[0].text == "rows"
    if e.kind not in ("name", "call", "member"):
        return False
    return re.search(rf"\b{_VECTOR}\s+\*?{re.escape(e.text)}\b", code) is not None  # as declared
