"""Stubs of Slang modules: classes by which editors and type checkers know a module's functions and types."""

from __future__ import annotations

import dataclasses
import inspect
import keyword
import re
from typing import Any

from slangpy import _native

from ..base.scalars import FLOATS, INTEGERS
from ..compiler.modules.loaded import declared_names
from ..function import FunctionNode
from ..inspection import Overload, declared_as, names_in, overloads_of
from ..plan import textures
from ..plan.bind.base import TENSOR, optional_of
from ..reflection import SlangType
from ..struct import Struct

HEAD = '''"""{file}, for type checkers. Made by `python -m slangpy stubs`.

    if TYPE_CHECKING:
        from {stem} import {name}
    module = cast("{name}", slangpy.Module.load_from_file(device, "{file}"))
"""
# pyright: reportOverlappingOverload=false, reportIncompatibleMethodOverride=false
# mypy: disable-error-code="overload-overlap, override"

from typing import Any, Literal, TypeVar, overload

import numpy as np
import slangpy
from slangpy.typing import *

_Result = TypeVar("_Result", bound=ResultMemory)
'''


def _class_name(name: str) -> str:
    return "".join(part[:1].upper() + part[1:] for part in re.split(r"\W|_", name) if part) or "Module"


def _valid(name: str) -> bool:
    return name.isidentifier() and not keyword.iskeyword(name)


# --- types


def _accepted(type_: SlangType) -> str:
    """What an argument for a type may be, as slangpy.typing names it; in front of it the class of slangpy for that type."""
    kind, name = type_.kind, type_.full_name
    if TENSOR.match(name):
        return "TensorValue"
    if kind in ("scalar", "vector"):
        family = {"bool": "Bool"}.get(type_.scalar, "Float" if type_.scalar in FLOATS else "Int" if type_.scalar in INTEGERS else "")
        own = _own_class(type_)
        text = f"{family}{'Vector' if kind == 'vector' else 'Value'}" if family else "AnyValue"
        return f"slangpy.{own} | {text}" if own else text
    if kind == "matrix":
        own = _own_class(type_)
        return f"slangpy.{own} | ArrayValue" if own else "ArrayValue"
    if kind == "resource":
        return "TextureValue" if textures.parse(name) else "StructureValue" if name.endswith("Structure") else "BufferValue"
    if name.startswith("DescriptorHandle<"):
        return "HandleValue"
    if inner := optional_of(type_):
        return f"{_accepted(inner)} | None"
    known = {
        "array": "ArrayValue", "struct": "StructValue", "enum": "EnumValue", "sampler_state": "SamplerValue", "pointer": "PointerValue"
    }  # fmt: skip
    return known.get(kind, "AnyValue")


def _own_class(type_: SlangType) -> str:
    """slangpy's class of a vector or matrix; empty where there is none."""
    sizes = "x".join(map(str, type_.shape))
    name = f"{ {'half': 'float16_t'}.get(type_.scalar, type_.scalar) }{sizes}"
    return name if sizes and hasattr(_native, name) else ""


def _plain(type_: SlangType) -> str:
    """A single value of a type, which makes no dimension of a call; empty where none is certain to be one."""
    numbers = {"bool": "bool | int"}.get(type_.scalar, "float" if type_.scalar in FLOATS else "int")
    if type_.kind == "scalar":
        return numbers
    if type_.kind == "vector" and _own_class(type_):
        return f"slangpy.{_own_class(type_)} | {numbers}"
    return f"slangpy.{_own_class(type_)}" if type_.kind == "matrix" and _own_class(type_) else ""


def _returned(type_: SlangType) -> str:
    """The Python value of a single result."""
    if type_.kind == "scalar":
        return "bool" if type_.scalar == "bool" else "float" if type_.scalar in FLOATS else "int"
    if type_.kind in ("vector", "matrix"):
        own = _own_class(type_)
        narrow = {"half": "float", "int8_t": "int", "int16_t": "int", "uint8_t": "uint", "uint16_t": "uint"}.get(type_.scalar)
        return f"slangpy.{narrow}{type_.shape[0]}" if narrow and type_.kind == "vector" else f"slangpy.{own}" if own else "Any"
    return {"struct": "dict[str, Any]", "array": "list[Any]", "enum": "int", "pointer": "int"}.get(type_.kind, "Any")


# --- functions


def _calls(overload: Overload, bound: bool) -> list[str]:
    """The forms of `__call__` that a type checker tells apart by the arguments and `_result`, the special ones first."""
    shown = list(zip(overload.parameters, overload.types, strict=True))[1 if bound else 0 :]
    general = [_written(p, type_) for p, type_ in shown]
    result = overload.result_type
    if overload.result == "void":
        return [_call(shown, general, None, "None")]
    forms = [("Literal['numpy']", "np.ndarray[Any, Any]"), ("Literal['tensor']", "slangpy.Tensor"), ("_Result | type[_Result]", "_Result")]
    found = [_call(shown, general, form, returns) for form, returns in forms]
    plain = [_plain(type_) if "out" not in str(p.annotation).split()[0] else "" for p, type_ in shown]
    if all(plain) and result is not None:
        found.insert(0, _call(shown, plain, "None = ...", _returned(result)))
        if shown and all(type_.kind == "scalar" for _, type_ in shown):
            own = [f"{text} | slangpy.Tensor | np.ndarray[Any, Any]" for text in plain]
            found.append(_call(shown, own, "None = ...", "slangpy.Tensor"))
    return [*found, _call(shown, general, "ResultValue | None = ...", "Any")]


def _written(parameter: inspect.Parameter, type_: SlangType) -> str:
    """What is accepted for a parameter, which may be written."""
    return "Output" if str(parameter.annotation).split()[0] in ("out", "inout") else _accepted(type_)


def _call(shown: list[tuple[inspect.Parameter, SlangType]], types: list[str], form: str | None, returns: str) -> str:
    parts = ["self"]
    named = all(_valid(p.name) and p.name != "self" for p, _ in shown)
    for (p, _), accepted in zip(shown, types, strict=True):
        default = " = ..." if p.default is not p.empty else ""
        parts.append(f"{p.name if named else f'_{len(parts)}'}: {accepted}{default}")
    if not named:
        parts.append("/")
    parts += ["*", f"_result: {form}"] if form is not None else []
    return f"def __call__({', '.join(parts)}) -> {returns}: ..."


def _function(name: str, node: FunctionNode, indent: str) -> list[str]:
    overloads = overloads_of(node.core)
    lines = [f"{indent}class _{name}(slangpy.FunctionNode):  # type: ignore[misc]"]
    lines += _listed([(declared_as(o, name), call) for o in overloads for call in _calls(o, False)], indent + "    ")
    return [*lines, f"{indent}{name}: _{name}"]


def _listed(calls: list[tuple[str, str]], indent: str) -> list[str]:
    """Calls, each group below the declaration that it is of."""
    lines, shown = [], ""
    for declaration, call in calls:
        lines += [f"{indent}# {declaration}"] if declaration != shown else []
        lines += [f"{indent}@overload"] if len(calls) > 1 else []
        lines.append(f"{indent}{call}  # type: ignore[override]")
        shown = declaration
    return lines


def _constructor(struct: Struct) -> list[str]:
    """Its calls: of a struct with constructors of its own, or a value for each field."""
    if struct.type.kind != "struct" or struct.is_generic:
        return ["        def __call__(self, /, *args: Any, **kwargs: Any) -> Any: ..."]
    overloads = [dataclasses.replace(o, result_type=struct.type) for o in overloads_of(struct._constructor().core)]
    return _listed([(declared_as(o, struct.full_name), call) for o in overloads for call in _calls(o, False)], "        ")


def _struct(name: str, struct: Struct) -> list[str]:
    lines = [f"    class _{name}(slangpy.Struct):"]
    fields = " ".join(f"{field.type.full_name} {key};" for key, field in struct.fields.items())
    lines.append(f"        # struct {name} {{ {fields} }}")
    for child in names_in(struct):
        found = struct.try_get_child(child)
        if isinstance(found, FunctionNode) and _valid(child):
            lines += _function(child, found, "        ")
    lines += _constructor(struct)
    return [*lines, f"    {name}: _{name}"]


def stubs_of(module: Any) -> str:
    """Text of a `.pyi` for a module."""
    file = module._path.name if module._path is not None else module._stem
    name = _class_name(module._stem)
    lines = [HEAD.format(file=file, stem=module._stem, name=name), "", f"class {name}(slangpy.Module):"]
    count = len(lines)
    for member in dict.fromkeys(declared_names(module._compiled.main)):
        if not _valid(member) or member.startswith("_spy_"):
            continue
        try:
            found = module[member]
        except AttributeError:  # a constant or a variable
            continue
        lines += _function(member, found, "    ") if isinstance(found, FunctionNode) else _struct(member, found)
    if len(lines) == count:
        lines.append("    ...")
    return "\n".join(lines) + "\n"


__all__ = ["stubs_of"]
