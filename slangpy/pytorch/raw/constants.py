"""Whole numbers, numbers and truth values that declarations give as text: values of enum members, defaults of parameters."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping
from typing import Any

_SUFFIX = re.compile(r"\b(0[xX][0-9a-fA-F]+|0[bB][01]+|\d+)[uUlL]+\b")
_FLOAT_SUFFIX = re.compile(r"(?<![\w.])((?:\d+\.\d*|\.\d+|\d+)(?:[eE][+-]?\d+)?)(?:hf|lf|[fFhH])\b")
_NOT = re.compile(r"!(?!=)")
_CASTS = ("int", "uint", "int8_t", "int16_t", "int32_t", "int64_t", "uint8_t", "uint16_t", "uint32_t", "uint64_t")


class _NotConstant(Exception):
    """What only the compiler can tell."""


def _divided(a: Any, b: Any) -> Any:
    if isinstance(a, float) or isinstance(b, float):
        return a / b
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _remainder(a: Any, b: Any) -> Any:
    return a - b * _divided(a, b)


_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: _divided, ast.Mod: _remainder,
    ast.LShift: operator.lshift, ast.RShift: operator.rshift, ast.BitOr: operator.or_, ast.BitAnd: operator.and_,
    ast.BitXor: operator.xor,
}  # fmt: skip
_UNARY: dict[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.USub: operator.neg, ast.UAdd: operator.pos, ast.Invert: operator.invert, ast.Not: operator.not_,
}  # fmt: skip


def constant(text: str, known: Mapping[str, Any]) -> Any:
    """The value of a Slang expression of literals, operators and these names; None for any other."""
    text = _FLOAT_SUFFIX.sub(r"\1", _SUFFIX.sub(r"\1", text.strip().replace("::", ".")))
    names = {"true": True, "false": False, **known}
    try:
        return _value(ast.parse(_NOT.sub(" not ", text).strip(), mode="eval").body, names)
    except (_NotConstant, SyntaxError, ValueError, TypeError, ArithmeticError):
        return None


def _value(node: ast.expr, names: Mapping[str, Any]) -> Any:
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
        return node.value
    if isinstance(node, (ast.Name, ast.Attribute)) and ast.unparse(node) in names:
        return names[ast.unparse(node)]
    if isinstance(node, ast.UnaryOp):
        return _UNARY[type(node.op)](_value(node.operand, names))
    if isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
        left, right = _value(node.left, names), _value(node.right, names)
        if isinstance(node.op, ast.LShift) and not 0 <= right < 64:
            raise _NotConstant
        return _BINARY[type(node.op)](left, right)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _CASTS and len(node.args) == 1:
        return int(_value(node.args[0], names))
    raise _NotConstant


__all__ = ["constant"]
