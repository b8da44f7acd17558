"""Declarations of a module by name, as the compiler holds them."""

from __future__ import annotations

import difflib
from typing import Any

from ..base import libslang
from ..base.scalars import SCALARS
from ..compiler.modules.loaded import declared_names
from ..reflection.kinds import generic_arguments


def members_of(decl: Any) -> list[Any]:
    """Declarations inside of a declaration; of a generic, those inside of the declaration that it makes generic."""
    return (decl._inner or decl).children


def declared(module: Any, path: list[str]) -> list[Any]:
    """What a module declares by a path of names, in generics too."""
    found = [module.device_module.module_decl]
    for name in path:
        found = [child for decl in found for child in members_of(decl) if child.name == name]
    return found


def generic_parameters(generic: Any) -> str:
    """The parameters of a generic as its source declares them, `<T : IFloat, let N>`; empty for what is none."""
    if generic is None:
        return ""
    types = []
    for name in generic.type_parameters:
        constraints = [constraint.full_name for constraint in generic.constraints(name)]
        types.append(f"{name} : {' & '.join(constraints)}" if constraints else name)
    return f"<{', '.join([*types, *(f'let {name}' for name in generic.value_parameters)])}>"


def conforming_types(module: Any, constraints: list[Any]) -> list[str]:
    """Types that conform to all of the interfaces: of Slang's own float and int, then of the module's."""
    program = module.layout.native
    found = []
    for name in ("float", "int", *declared_names(module.device_module)):
        type_ = program.find_type_by_name(name)
        if type_ is None or type_.is_generic or type_.kind.name.rstrip("_") not in ("scalar", "struct"):
            continue
        if all(program.is_sub_type(type_, constraint) for constraint in constraints):
            found.append(name)
    return found


def stated_generic(module: Any, name: str, generic: Any, owner: str = "") -> str:
    """How a generic is looked up with arguments that its constraints allow: module['cast<float>']. `owner`: the struct that
    has the method."""
    arguments = []
    for parameter in generic.type_parameters:
        fitting = conforming_types(module, generic.constraints(parameter)) if module is not None else []
        arguments.append(fitting[0] if fitting else parameter)
    place = f"module['{owner}']" if owner else "module"
    name = "__init" if name == "$init" else name
    return f"{place}['{name}<{', '.join([*arguments, *('4' for _ in generic.value_parameters)])}>']"


def own_functions(target: Any) -> list[Any]:
    """The functions of a target's name that the user's modules declare outside of types, where Slang has some of that name."""
    if target.struct is not None or target.module is None or target.is_slangs_own:
        return []
    return [
        decl.as_function()
        for module in target.module._compiled.modules
        for decl in members_of(module.module_decl)
        if decl.name == target.name and decl.kind.name == "func"
    ]


def outer_names(module: Any, name: str) -> list[str]:
    """Where a module declares something of that name in a namespace or type: `outer.name`."""
    top = members_of(module.device_module.module_decl)
    kinds = ("namespace", "struct")
    outers = [decl for decl in top if decl.name and decl.kind.name in kinds]
    return [f"{outer.name}.{name}" for outer in outers if any(child.name == name for child in members_of(outer))]


def missing_name(module: Any, name: str) -> str:
    """What to say where a module has no function or type of a name."""
    names, head = declared_names(module.device_module), f"Module '{module._stem}' has no function or type named '{name}'"
    if name in names:  # a namespace, a constant or a variable
        return (
            f"{head}, which is a namespace, a variable or a constant; "
            f"what is in a namespace is reached as module['{name}.function'], a variable is set by "
            f"function.set({{'{name}': value}}), a constant by function.constants({{'{name}': value}})"
        )
    if why := _wrong_arguments(module, name, names):
        return f"{head}: {why}"
    if inner := outer_names(module, name):
        return f"{head} outside of others; write module['{inner[0]}']"
    close = difflib.get_close_matches(name, names, 3)
    return f"{head}; did you mean {', '.join(close)}?" if close else head


def instead_of_setting(module: Any, name: str) -> str:
    """What sets a name of a module's source, which assigning an attribute does not; empty where the source has none near."""
    names = declared_names(module.device_module)
    meant = [name] if name in names else difflib.get_close_matches(name, names, 1)
    if not meant:
        return ""
    start, found = "" if meant[0] == name else f"did you mean '{meant[0]}'? ", declared(module, meant)[0]
    variable = found.as_variable() if found.kind.name == "variable" else None
    if variable is None:
        return f"{start}'{meant[0]}' is a {_KIND_WORDS.get(found.kind.name, 'declaration')} of the source, which is changed there"
    has = {word for word in ("static", "const", "extern") if variable.has_modifier(libslang.ModifierID[word])}
    if "extern" in has:
        return f"{start}'{meant[0]}' is a constant: pass it by function.constants({{'{meant[0]}': value}})(...)"
    if has:
        return (
            f"{start}'{meant[0]}' is {' '.join(word for word in ('static', 'const') if word in has)}: its value is in the source; "
            "a global without 'static' is passed by function.set, an 'extern static const' by function.constants"
        )
    return (
        f"{start}'{meant[0]}' is a global of the source, which calls are given: "
        f"function.set({{'{meant[0]}': value}})(...), also kept as f = function.set(...); or make it a parameter"
    )


_KIND_WORDS = {"func": "function", "generic": "generic", "struct": "type", "enum": "type", "namespace": "namespace"}


def _wrong_arguments(module: Any, name: str, names: list[str]) -> str:
    """Why a generic of the module cannot be had with the arguments in a name; empty where the name is another's."""
    base, _, rest = name.partition("<")
    if base.strip() not in names or not rest.endswith(">"):
        return ""
    base, program = base.strip(), module.layout.native
    found = program.find_function_by_name(base)
    open_type = None if found is not None else program.find_type_by_name(base)
    generic = getattr(found if found is not None else open_type, "generic", None)
    if generic is None:
        return f"'{base}' is no generic, or has overloads; write module['{base}']"
    declared_text = base + generic_parameters(generic)
    arguments = generic_arguments(name) or []
    count = len(generic.type_parameters) + len(generic.value_parameters)
    if len(arguments) != count:
        return f"{declared_text} takes {count} argument{'s' * (count != 1)}, got {len(arguments)}"
    for parameter, argument in zip(generic.type_parameters, arguments, strict=False):
        type_ = program.find_type_by_name(argument)
        if type_ is None:
            close = difflib.get_close_matches(argument, [*names, *SCALARS], 1)
            return f"there is no type '{argument}'" + (f"; did you mean {close[0]}?" if close else "")
        for constraint in generic.constraints(parameter):
            if not program.is_sub_type(type_, constraint):
                advice = stated_generic(module, base, generic)
                return f"{argument} does not conform to {constraint.full_name}, as {declared_text} demands; for instance {advice}"
    return ""
