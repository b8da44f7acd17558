"""References: ValueRef and DiffPair, host values that a call may write."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ...reflection import SlangType
from ..records import Binding, Value
from .aggregate import type_of_dict
from .base import Context, NoMatch, bind, candidates, no_match, register, split_element
from .temporary import math_shape

_PAIR = "DifferentialPair<"
_RETURNED = {"half": "float", "int8_t": "int", "int16_t": "int", "uint8_t": "uint", "uint16_t": "uint"}
"""Components of the Python vectors and matrices that calls return for types of these components."""


def _bind(value: Value, type_: SlangType, context: Context) -> Binding:
    if type_.full_name.startswith(_PAIR):
        return _bind_pair(value, type_, context)
    inner = value.fields[0][1]
    if -1 in split_element(type_)[1]:
        raise no_match(value, type_, "a reference does not say its size; declare the parameter with one")
    if inner.kind == "none" or (inner.kind == "list" and 0 in inner.shape):
        return Binding("reference", value, type_.full_name, type_, stored=type_.full_name)
    if inner.kind == "dict":
        declared = type_of_dict(inner, context)
        if type_.kind != "struct" or (declared is not None and declared.full_name != type_.full_name):
            raise no_match(value, type_)
        return Binding("reference", value, type_.full_name, type_, stored=type_.full_name)
    if inner.kind in ("tensor", "array"):
        raise no_match(value, type_, "a reference holds numbers, vectors, matrices, lists or dicts")
    if inner.kind in ("vector", "matrix") and _was_returned(inner, type_):
        return Binding("reference", value, type_.full_name, type_, stored=type_.full_name)
    bound = bind(inner, type_, Context(context.layout, context.convert))
    if bound.dims:
        raise NoMatch(f"{value.summary()} holding {inner.summary()} does not match slang type {type_.full_name}")
    return Binding("reference", value, type_.full_name, type_, stored=type_.full_name, cost=bound.cost)


def _was_returned(held: Value, type_: SlangType) -> bool:
    """Whether a reference holds what an earlier call stored for the same type: a float3 for a half3."""
    element, sizes = split_element(type_)
    fits = type_.kind == held.kind and sizes == list(math_shape(held))
    return fits and _RETURNED.get(element.full_name) == held.details["scalar"]


def _bind_pair(value: Value, type_: SlangType, context: Context) -> Binding:
    """Both halves of a pair: the parameter is a `DifferentialPair<T>`, each half is bound as a T."""
    element = context.find(type_.full_name[len(_PAIR) : -1].strip())
    if value.kind != "diff_pair" or element is None:
        raise no_match(value, type_, "pass a spy.diffPair(primal, gradient)")
    bound = _bind(value, element, context)
    return replace(bound, type_name=type_.full_name, type=type_, pair=True)


def _candidates(value: Value, pattern: Any, context: Context) -> list[SlangType]:
    return candidates(value.fields[0][1], pattern, context)


register(("value_ref", "diff_pair"), _bind, _candidates)
