"""What is called: a function, its parameters, and the arguments placed on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ...base import libslang
from ...reflection import SlangProgramLayout, SlangType
from ..bind import Context
from ..bind.base import TENSOR
from ..records import Argument, Options


@dataclass(frozen=True)
class Target:
    """A function by name, and the struct it belongs to."""

    layout: SlangProgramLayout
    name: str
    reflection: Any
    struct: SlangType | None = None
    is_constructor: bool = False
    module: Any = None
    member_wise: bool = False
    """Whether the constructors are Slang's own: a parameter for each field, zero where the field states no default."""

    @property
    def overloads(self) -> list[Any]:
        """The functions of that name. One that is also Slang's own (`linear`) is overloaded with what is no function."""
        found = self.reflection.overloads if self.reflection.is_overloaded else [self.reflection]
        return [overload for overload in found if overload is not None]

    def may_differentiate(self, function: Any) -> bool:
        """Whether a function is marked so. Slang's own are not (their derivatives stand beside them): the compiler tells."""
        if function.has_modifier(libslang.ModifierID.differentiable):
            return True
        return self.struct is None and self.module is not None and self.is_slangs_own

    @property
    def is_slangs_own(self) -> bool:
        """Whether the name is one of Slang's core module, that the user's modules do not declare."""
        name = self.name.partition("<")[0].partition("::")[0].strip()
        return name not in self.module._compiled.declared_names

    def context(self, options: Options, writable: bool = False) -> Context:
        return Context(
            self.layout, options.convert or "none", writable, module=self.module, function=self.name,
            derives=options.bwds or options.fwds,
        )  # fmt: skip


class Declared(NamedTuple):
    """A parameter as the function declares it."""

    name: str
    type: SlangType
    io: str  # in, out, inout
    no_diff: bool
    has_default: bool


class MemberWise:
    """The constructor that Slang gives structs without `__init`: one parameter per field, all with defaults."""

    generic = None
    is_overloaded = False
    return_type = None

    def __init__(self, parameters: list[Any]) -> None:
        self.overloads: list[Any] = []
        self.name = "__init"
        self.parameters = parameters

    def has_modifier(self, modifier: Any) -> bool:
        del modifier
        return False


def parameters_of(target: Target, function: Any) -> list[Declared]:
    """Each parameter, `this` first."""
    m = libslang.ModifierID
    found: list[Declared] = []
    if target.struct is not None and not target.is_constructor and not function.has_modifier(m.static):
        io = "inout" if function.has_modifier(m.mutating) else "in"
        found.append(Declared("this", target.struct, io, False, False))
    for parameter in function.parameters:
        if parameter.has_modifier(m.inout):
            io = "inout"
        elif parameter.has_modifier(m.out):
            io = "out"
        else:
            io = "in"
        type_ = target.layout.wrap(parameter.type)
        assert type_ is not None
        name = "_result_" if parameter.name == "_result" else parameter.name  # given by position only
        found.append(Declared(name, type_, io, _is_no_diff(parameter, type_), parameter.has_default))
    return found


def stores_argument(target: Target, argument: str) -> bool:
    """Whether an argument, by its name or position, may be a result or go to an out or inout parameter."""
    if argument == "_result":
        return True
    for overload in target.overloads:
        known = parameters_of(target, overload)
        if argument.isdigit():
            known = known[int(argument) : int(argument) + 1] or known
        if any(p.io != "in" for p in known if argument.isdigit() or p.name == argument):
            return True
    return False


def _is_no_diff(parameter: Any, type_: SlangType) -> bool:
    """Whether a parameter is declared no_diff. Slang itself marks all of tensor type; their sources say it otherwise."""
    if TENSOR.match(type_.full_name) and hasattr(parameter, "user_attributes"):
        return any(attribute.name == "_nd_" for attribute in parameter.user_attributes)
    return parameter.has_modifier(libslang.ModifierID.nodiff)


def mentions_generic(type_: SlangType) -> bool:
    """Whether a type is left open: a type parameter, an interface, or made of one."""
    reflection = type_.type_reflection
    kind = reflection.kind.name.rstrip("_")
    if kind in ("generic_type_parameter", "interface", "none"):
        return True
    if kind in ("vector", "matrix", "array"):
        count_known = (
            reflection.element_count > 0 if kind != "matrix" else min(reflection.row_count, reflection.col_count) > 0
        )
        element = reflection.element_type
        if not count_known or element is None:
            return True
        return mentions_generic(SlangType(element.full_name, source=type_.program, reflection=element))
    if kind in ("struct", "resource", "pointer") and "<" in type_.full_name:
        return type_.program.find_reflection(type_.full_name) is None
    return bool(reflection.is_generic)


def accepted(target: Target, arguments: tuple[Argument, ...]) -> list[str]:
    """What stands in each argument's place in the declarations, for messages: one text for all overloads, or empty."""
    overloads = [parameters_of(target, overload) for overload in target.overloads]
    positions = iter(range(len(arguments)))
    texts = []
    for argument in arguments:
        if argument.name is None:
            at = next(positions)
            found = [f"{p[at].io} {p[at].type.full_name} {p[at].name}" for p in overloads if at < len(p)]
        else:
            found = [f"{p.io} {p.type.full_name}" for listed in overloads for p in listed if p.name == argument.name]
        unique = list(dict.fromkeys(found))
        texts.append(" | ".join(unique[:4] + ["..."] * (len(unique) > 4)))
    return texts


def _said_of_this(parameters: Sequence[Any]) -> str:
    """For methods: what their first argument is."""
    is_method = bool(parameters) and parameters[0].name == "this"
    return f"; the first argument of a method is 'this', a value of {parameters[0].type.full_name}" if is_method else ""


def place(
    target: Target, function: Any, arguments: tuple[Argument, ...], options: Options
) -> tuple[dict[str, Argument], Argument | None, str]:
    """Arguments by parameter name, `_result`, or the reason why they cannot be placed."""
    parameters = parameters_of(target, function)
    names = [p.name for p in parameters]
    placed: dict[str, Argument] = {}
    result: Argument | None = None
    positional = [a for a in arguments if a.name is None]
    returns = (function.return_type is not None and function.return_type.full_name != "void") or target.is_constructor
    if options.bwds and returns and len(positional) == len(names) + 1 - sum(a.name in names for a in arguments):
        if not any(a.name == "_result" for a in arguments):
            result = positional.pop()
    if len(positional) > len(names):
        return {}, None, f"Too many arguments: expected {len(names)}, got {len(positional)}"
    for name, argument in zip(names, positional, strict=False):
        placed[name] = argument
    for argument in arguments:
        if argument.name is None:
            continue
        if argument.name == "_result":
            result = argument
        elif argument.name not in names:
            return {}, None, f"No parameter named '{argument.name}'; the parameters are {', '.join(names) or 'none'}"
        elif argument.name in placed:
            return {}, None, f"Parameter '{argument.name}' specified multiple times"
        else:
            placed[argument.name] = argument
    missing = [p.name for p in parameters if p.name not in placed and not p.has_default]
    if missing:
        outputs = [p.name for p in parameters if p.io == "out"]
        takes = "; it is an output: pass spy.ValueRef(), or an array where the call runs over arrays"
        return {}, None, f"Parameter '{missing[0]}' not specified{takes if missing[0] in outputs else _said_of_this(parameters)}"
    return placed, result, ""
