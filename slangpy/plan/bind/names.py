"""Values that few parameters take: text, which names a value of an enum, and None, which only an Optional takes."""

from __future__ import annotations

from typing import Any

from ...reflection import SlangType
from ..records import Binding, Value
from ..slang_text import slang_name
from .base import Context, NoMatch, no_match, register


def _bind_text(value: Value, type_: SlangType, context: Context) -> Binding:
    text = value.details.get("text")
    if text is None or type_.kind != "enum":
        raise no_match(value, type_)
    known = type_.type_reflection.enum_names
    if text not in known:
        raise NoMatch(f"enum {type_.full_name} has no value '{text}'; its values are {', '.join(known)}")
    return Binding("literal", value, type_.full_name, type_, stored=f"{slang_name(type_.full_name)}.{text}", cost=(1, 0))


def _bind_none(value: Value, type_: SlangType, context: Context) -> Binding:
    del context
    raise no_match(value, type_)


def _nothing(value: Value, pattern: Any, context: Context) -> list[SlangType]:
    del value, pattern, context
    return []


register(("unsupported",), _bind_text, _nothing)
register(("none",), _bind_none, _nothing)
