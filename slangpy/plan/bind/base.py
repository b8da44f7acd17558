"""The families of values by the kinds of their values, and what they share."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ...base.scalars import (
    BY_DTYPE,
    FLOATS,
    INTEGERS,
    SIZES,
)
from ...reflection import SlangProgramLayout, SlangType
from ..records import Binding, Value
from ..slang_text import slang_name

TENSOR = re.compile(r"^(I?)(RW|W|Atomic|)(Diff|)Tensor<(.*), ?(\d+)>$")
TENSOR_NAME = re.compile(r"^I?(?:RW|W|Atomic|)(?:Diff|Primal|)Tensor$")


def fixed_size(name: str) -> str:
    """The integer type that memory holds for one as wide as a pointer; other names as they are."""
    return {"intptr_t": "int64_t", "uintptr_t": "uint64_t"}.get(name, name)


class NoMatch(Exception):
    """A value does not fit a type; the text says why."""


class RankTooSmall(NoMatch):
    """A value has fewer dimensions than the parameter consumes."""


class WrongSize(RankTooSmall):
    """The dimensions that the parameter consumes have other sizes; reported alike."""


@dataclass
class Context:
    """What a family may ask while binding one argument."""

    layout: SlangProgramLayout
    convert: str = "none"
    writable: bool = False
    reads: bool = True
    size_dependent: bool = False
    shape_dependent: bool = False  # on the sizes of containers as well as of lists
    module: Any = None
    function: str = ""
    derives: bool = False  # for bwds or fwds
    list_dims: int = 0  # inside a list of dicts: dimensions that belong to the list, which no parameter consumes

    def find(self, name: str) -> SlangType | None:
        return self.layout.find_type_by_name(name)


Bind = Callable[[Value, SlangType, Context], Binding]
Candidates = Callable[[Value, Any, Context], list[SlangType]]
_FAMILIES: dict[str, tuple[Bind, Candidates]] = {}


def register(kinds: tuple[str, ...], bind_: Bind, candidates_: Candidates) -> None:
    for kind in kinds:
        _FAMILIES[kind] = (bind_, candidates_)


def bind(value: Value, type_: SlangType, context: Context) -> Binding:
    """How `value` is passed where one invocation receives `type_`."""
    inner = optional_of(type_)
    if inner is not None:
        return _bind_optional(value, type_, inner, context)
    if value.kind not in _FAMILIES:
        raise NoMatch(f"{value.summary()} does not match slang type {type_.full_name}")
    return _FAMILIES[value.kind][0](value, type_, context)


def optional_of(type_: SlangType) -> SlangType | None:
    """T of Optional<T>; None for other types."""
    name = type_.full_name
    if not name.startswith("Optional<") or not name.endswith(">"):
        return None
    return type_.program.find_type_by_name(name[len("Optional<") : -1].strip())


def _bind_optional(value: Value, type_: SlangType, inner: SlangType, context: Context) -> Binding:
    """None, or a value of the inner type, which Slang converts at the call."""
    if context.derives:
        raise no_match(value, type_, "derivatives of functions with an Optional among their arguments are not available")
    if context.writable or not context.reads:
        raise no_match(value, type_, "the host cannot read an Optional that a function writes")
    if value.kind == "none":
        return Binding("literal", value, type_.full_name, type_, stored=f"{slang_name(type_.full_name)}(none)")
    return bind(value, inner, context)


def candidates(value: Value, pattern: Any, context: Context) -> list[SlangType]:
    """Concrete types that a parameter whose declared type `pattern` is generic may become for `value`."""
    if value.kind not in _FAMILIES:
        return []
    return [t for t in _FAMILIES[value.kind][1](value, pattern, context) if t is not None]


def close_names(name: str, context: Context) -> list[str]:
    """Type names of the module that resemble one that does not exist."""
    known = {type_.full_name for type_ in context.layout} | set(SIZES)
    if context.module is not None:
        known |= {child.name for child in context.module._compiled.main.module_decl.children if child.name}
    return difflib.get_close_matches(name, sorted(known), 3)


def enum_storage(type_: SlangType) -> str:
    """The integer type that holds the values of an enum."""
    layout = type_.element_layout
    tag = getattr(layout.scalar, "name", "") if layout.scalar is not None else ""
    return BY_DTYPE.get(tag, {1: "int8_t", 2: "int16_t", 4: "int", 8: "int64_t"}[layout.size])


def structured_element(name: str) -> str:
    """Element type in the name of a structured buffer type; empty for other types."""
    base, _, rest = name.partition("<")
    if not base.endswith("StructuredBuffer"):
        return ""
    return rest[:-1].split(", DefaultDataLayout")[0].split(",DefaultDataLayout")[0].strip()


def tensor_candidates(element: str, shape: tuple[int, ...], pattern: Any, context: Context) -> list[SlangType]:
    """A generic tensor parameter for a container: its element type, and its rank unless the parameter states one."""
    base, _, rest = pattern.full_name.partition("<")
    stated, _, rank_text = rest.rstrip(">").rpartition(",")
    rank = int(rank_text) if rank_text.strip().isdigit() else len(shape)
    if context.find(stated.strip()) is not None and stated.strip().replace(" ", "") != element.replace(" ", ""):
        element = stated.strip()  # the parameter states its element type; binding reports the difference
    found = context.find(f"{base}<{element}, {rank}>")
    return [found] if found is not None else []


def no_match(value: Value, type_: SlangType, hint: str = "") -> NoMatch:
    text, hint = f"{value.summary()} does not match slang type {display(type_)}", hint or _hint_of(value, type_)
    return NoMatch(text + (f" ({hint})" if hint else ""))


def _hint_of(value: Value, type_: SlangType) -> str:
    """What to pass for a type that only few values fit; empty for all others."""
    if type_.kind == "sampler_state":
        return "make one with device.create_sampler()"
    if type_.kind == "pointer":
        return "pass a Buffer, a Tensor, or an address as an int"
    tensor = TENSOR.match(type_.full_name)
    if tensor and value.kind in ("bool", "int", "float", "scalar"):
        return f"pass an array or a Tensor with {tensor.group(5)} dimensions or more"
    if type_.kind == "struct" and value.kind in ("bool", "int", "float", "scalar", "vector", "list", "array") and type_.fields:
        return f"pass a dict of its fields: {{{', '.join(f'{name!r}: ...' for name in type_.fields)}}}"
    return ""


def display(type_: SlangType) -> str:
    return type_.full_name


def split_element(type_: SlangType) -> tuple[SlangType, list[int]]:
    """The scalar (or struct, ...) inside vectors, matrices and arrays, and the sizes around it."""
    sizes: list[int] = []
    while type_.kind in ("vector", "matrix", "array") and type_.element_type is not None:
        if type_.kind == "matrix":
            sizes.extend(type_.shape)
            return SlangType(type_.scalar, source=type_.program), sizes
        sizes.append(type_.shape[0])
        type_ = type_.element_type
    return type_, sizes


def with_sizes(type_: SlangType, sizes: tuple[int, ...], context: Context) -> SlangType:
    """An array type of unknown sizes with those of a value."""
    context.size_dependent = True
    own: list[int] = []
    while type_.kind == "array" and type_.element_type is not None:
        own.append(type_.shape[0] if type_.shape[0] >= 0 else sizes[len(own)])
        type_ = type_.element_type
    return context.layout.require_type_by_name(type_.full_name + "".join(f"[{size}]" for size in reversed(own)))


def strip_to(type_: SlangType, element: str) -> list[int] | None:
    """Sizes that must be stripped from `type_` to reach `element`; None when it is not inside."""
    sizes: list[int] = []
    while type_.full_name != element:
        if type_.kind == "matrix" and type_.scalar == element:
            return sizes + list(type_.shape)
        inner = type_.element_type if type_.kind in ("vector", "array") else None  # matrices are read by scalars only
        if inner is None:
            return None
        sizes.append(type_.shape[0])
        type_ = inner
    return sizes


def number_cost(source: str, target: str) -> int:
    """0 exact, 1 widening, 2 any other conversion of a number."""
    if source == target:
        return 0
    if source == "bool":
        return 1 if target in INTEGERS else 2
    if source in INTEGERS and target in INTEGERS + FLOATS:
        wide = target in FLOATS or (SIZES[target] >= SIZES[source] and target.startswith("u") <= source.startswith("u"))
        return 1 if wide else 2
    if source in FLOATS and target in FLOATS:
        return 1 if SIZES[target] >= SIZES[source] else 2
    return 2


def converts(source: str, target: str, mode: str) -> bool:
    """Whether container elements of one scalar type may be read as another under `convert`."""
    if mode == "none":
        return False
    if source == "BFloat16":  # has the range of float
        return target in ("float", "double") or (mode == "any" and target in SIZES)
    if target == "BFloat16":
        return mode == "any" and source in SIZES
    if source not in SIZES or target not in SIZES:
        return False
    if mode == "any":
        return True
    if source == "bool":
        return True
    if source in INTEGERS and target in INTEGERS:
        if source.startswith("u") == target.startswith("u"):
            return SIZES[target] >= SIZES[source]
        return source.startswith("u") and SIZES[target] > SIZES[source]
    if source in INTEGERS and target in FLOATS:
        return SIZES[source] * 8 <= {"half": 11, "float": 24, "double": 53}[target]
    return source in FLOATS and target in FLOATS and SIZES[target] >= SIZES[source]


def converts_whole(source: SlangType, target: SlangType, context: Context) -> bool:
    """Whether values convert as a whole: scalars, and vectors and matrices of one size."""
    if source.kind != target.kind or source.kind not in ("scalar", "vector", "matrix") or source.shape != target.shape:
        return False
    return converts(source.scalar, target.scalar, context.convert)


def stores(source: str, element: str, context: Context) -> bool:
    """Whether an output may be stored in elements of another type without `convert`: nothing is lost."""
    if not context.writable or context.reads:
        return False
    if source in INTEGERS and element in INTEGERS and SIZES[source] == SIZES[element]:
        return True
    return converts(source, element, "safe")


def pattern_kind(pattern: Any) -> str:
    return pattern.kind.name.rstrip("_")
