"""What editors and notebooks show of functions and types: signatures, comments of the source, names for completion."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .compiler.modules.facts import TextFacts
from .compiler.modules.loaded import declared_names
from .plan.declared import declared, generic_parameters, members_of
from .plan.resolve.target import Target, parameters_of
from .reflection import SlangType

if TYPE_CHECKING:
    from .function import FunctionCore, FunctionNode
    from .struct import Struct

_KEYWORD = inspect.Parameter.KEYWORD_ONLY


class OfInstance:
    """An attribute of instances that classes have in another form, as `__doc__`, or not at all, as `__signature__`."""

    def __init__(self, name: str, of_class: Any = None) -> None:
        self._name, self._of_class = name, of_class

    def __get__(self, instance: Any, owner: type) -> Any:
        if instance is not None:
            return getattr(instance, self._name)()
        if self._of_class is None:
            raise AttributeError(self._name)
        return self._of_class


# --- declarations


def _declarations(core: FunctionCore) -> list[Any]:
    """Where the source declares a function: one entry for each overload."""
    owner = core.struct.full_name.split("<")[0].split(".") if core.struct is not None else []
    return declared(core.module, [*owner, core.name])


def _text(core: FunctionCore, path: str) -> str:
    text = core.module.session.text_of(path)
    if text is not None:
        return str(text)
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def plain_comment(comments: list[str]) -> str:
    """The text of the last run of `///` lines, or of the last `/** */`; empty: there is none."""
    if comments and comments[-1].startswith(("/**", "/*!")):
        found = [line.strip() for line in comments[-1][3:].removesuffix("*/").splitlines()]
        found = [line.removeprefix("*") for line in found]
    else:
        start = len(comments)
        while start and comments[start - 1].startswith("///"):
            start -= 1
        found = [text[3:] for text in comments[start:]]
    return inspect.cleandoc("\n".join(text[1:] if text.startswith(" ") else text for text in found)).strip()


def _comment(core: FunctionCore) -> str:
    for decl in _declarations(core):
        path, line, column = decl.location or ("", 0, 0)
        text = plain_comment(TextFacts(_text(core, path)).comments_above(line, column)) if line > 0 else ""
        if text:
            return text
    return ""


# --- functions


def _target(core: FunctionCore) -> Target:
    layout = core.module.layout
    reflection = layout.reflect_method(core.struct, core.name) if core.struct is not None and core.is_open else None
    return core.target() if reflection is None else Target(layout, core.name, reflection, core.struct, False, core.module)


@dataclass(frozen=True)
class Overload:
    """A function as it is declared."""

    parameters: list[inspect.Parameter]
    """Annotated with their types by Slang's names; `io` in front of `out` and `inout`."""
    result: str
    generic: str
    """`<T : IFloat>`; empty for what is no generic."""
    types: tuple[SlangType, ...]
    """Of the parameters."""
    result_type: SlangType | None
    """None for constructors."""


def overloads_of(core: FunctionCore) -> list[Overload]:
    """Parameters and return type of each overload."""
    target = _target(core)
    found: list[Overload] = []
    for overload in target.overloads:
        defaults = {p.name: _default(p) for p in overload.parameters if p.has_default}
        parameters = []
        declared_parameters = parameters_of(target, overload)
        for parameter in declared_parameters:
            io = "" if parameter.io == "in" else f"{parameter.io} "
            default = defaults.get(parameter.name, inspect.Parameter.empty)
            parameters.append(
                inspect.Parameter(
                    parameter.name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=default,
                    annotation=f"{io}{parameter.type.full_name}",
                )
            )  # fmt: skip
        result = getattr(overload, "return_type", None)
        generic = overload.generic if target.struct is None or overload.name == getattr(overload.generic, "name", "") else None
        types = tuple(parameter.type for parameter in declared_parameters)
        name = result.full_name if result is not None else core.name
        returned = target.layout.wrap(result) if result is not None else None
        found.append(Overload(parameters, name, generic_parameters(generic), types, returned))
    return found


def _default(parameter: Any) -> Any:
    """A parameter's default value; `...` where it is no plain number."""
    for value in (parameter.default_int, parameter.default_float):
        if value is not None:
            return value
    return ...


def signature_of(node: FunctionNode) -> inspect.Signature:
    """The parameters by the names and types of Slang; of overloaded functions only that they take values."""
    overloads = overloads_of(node.core)
    if len(overloads) != 1:
        anything = [inspect.Parameter("args", inspect.Parameter.VAR_POSITIONAL)]
        return inspect.Signature([*anything, inspect.Parameter("kwargs", inspect.Parameter.VAR_KEYWORD)])
    parameters, result = overloads[0].parameters, overloads[0].result
    if node._bound is not None:
        parameters = parameters[1:]
    if any(p.default is inspect.Parameter.empty for p in _after_default(parameters)):
        parameters = [p.replace(default=inspect.Parameter.empty) for p in parameters]
    returns = "None" if node.options.bwds else result
    if result != "void" and all(p.name != "_result" for p in parameters):
        parameters = [*parameters, inspect.Parameter("_result", _KEYWORD, default=None)]
    return inspect.Signature(parameters, return_annotation=returns)


def _after_default(parameters: list[inspect.Parameter]) -> list[inspect.Parameter]:
    given = [p.default is not inspect.Parameter.empty for p in parameters]
    return parameters[given.index(True) :] if True in given else []


def documentation_of(node: FunctionNode) -> str:
    """The declarations in Slang's words and the comment above the function."""
    return "\n".join(declarations_of(node)) + (f"\n\n{comment}" if (comment := _comment(node.core)) else "")


def description_of(node: FunctionNode) -> str:
    """The function with its modifiers, as one would write it."""
    options = node.options
    text = node.label
    maps = [_entry(e) for e in options.map_args] + [f"{name}={_entry(e)}" for name, e in options.map_kwargs]
    text += f".map({', '.join(maps)})" if maps else ""
    for kind, value, *_ in node._globals:
        text += f".{kind}({', '.join(value) if isinstance(value, dict) else '...'})"
    if options.constants:
        text += f".constants({', '.join(f'{name}={_constant(value)}' for name, value in options.constants)})"
    if options.return_type is not None:
        text += f".return_type({getattr(options.return_type, '__name__', repr(options.return_type))})"
    for name in ("call_group_shape", "thread_group_size"):
        value = getattr(options, name)
        text += f".{name}({value})" if value is not None else ""
    if options.convert != node.module.options["convert"]:
        text += f".convert({options.convert!r})"
    return text + (".bwds" if options.bwds else ".fwds" if options.fwds else "")


def _constant(value: Any) -> Any:
    """A constant as its key has it: (kind, numbers)."""
    return value[1][0] if len(value[1]) == 1 else value[1]


def _entry(entry: Any) -> str:
    return "None" if entry is None else repr(entry[1])


# --- modules


def listing_of(module: Any) -> list[str]:
    """The functions and types of a module, one a line as Slang declares them; methods stand below their type, indented."""
    lines = []
    for name in dict.fromkeys(declared_names(module.device_module)):
        found = None if name.startswith("_spy_") else module._look_up(name)
        if found is not None:
            lines += declarations_of(found) if hasattr(found, "core") else _type_lines(name, found)
    return lines


def declarations_of(node: FunctionNode) -> list[str]:
    """One line for each overload."""
    name = node.core.name.replace("$init", "constructor")
    return [declared_as(overload, name) for overload in overloads_of(node.core)]


def declared_as(overload: Overload, name: str) -> str:
    """A function as Slang declares it."""
    parameters = ", ".join(f"{p.annotation} {p.name}" for p in overload.parameters)
    return f"{overload.result} {name}{overload.generic}({parameters})"


def _type_lines(name: str, struct: Struct) -> list[str]:
    if struct.type.kind == "enum":
        return [f"enum {name} {{ {', '.join(struct.type.type_reflection.enum_names)} }}"]
    fields = " ".join(f"{field.type.full_name} {key};" for key, field in struct.fields.items())
    methods = [found for child in names_in(struct) if hasattr(found := struct.try_get_child(child), "core")]
    if struct.type.kind == "interface":
        return [f"interface {name}", *(f"    {line}" for node in methods for line in declarations_of(node))]
    generic = generic_parameters(struct.type.type_reflection.generic) if struct.is_generic else ""
    return [f"struct {name}{generic} {{ {fields} }}", *(f"    {line}" for node in methods for line in declarations_of(node))]


# --- types


def names_in(struct: Struct) -> list[str]:
    """Methods and nested types that the source declares, in extensions too."""
    path, kinds = struct.full_name.split("<")[0].split("."), ("func", "struct", "generic")
    own = [child for decl in declared(struct.module, path) for child in members_of(decl)]
    extensions = [decl for decl in members_of(struct.module.device_module.module_decl) if not decl.name]
    added = [child for decl in extensions for child in members_of(decl)]  # Slang does not say to which type
    names = {child.name for child in own if child.kind.name in kinds}
    names |= {child.name for child in added if child.kind.name in kinds and _is_method(struct, child.name)}
    return sorted(name for name in names if name and "$" not in name and not name.startswith("_spy_"))  # not ours


def _is_method(struct: Struct, name: str) -> bool:
    return "$" not in name and struct._find_method(name) is not None
