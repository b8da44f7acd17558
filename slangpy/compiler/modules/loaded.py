"""Modules as the compiler has them: their sessions, what they are linked with, and the layout over all of it."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any

from ...base.census import collect
from ...errors import SlangWarning
from ...reflection import SlangType
from ..cache import digest
from ..expected import expect_kernel
from ..generated import import_statement, library_parts
from ..library import load_library
from ..options import session_options
from ..session import create_session
from ..session_state import state_of

_MOST_DROPPED = 32
_numbers = itertools.count()
_OPTIONS = {"strict_broadcasting": False, "convert": "none", "defer_target_compilation": True}


class KernelStore:
    """Kernels of one module by generated source."""

    def __init__(self, device: Any) -> None:
        self.device = device
        self.kernels: dict[Any, Any] = {}


class LoadedModule:
    """What the compiler made of a module: its session, the composed modules, and their layout. `number`: no other one of this
    process has it, nor has this module once it is loaded again."""

    def __init__(self, device: Any, main: Any, linked: list[Any], store: KernelStore) -> None:
        self.device = device
        self.number = next(_numbers)
        self.main = main
        self.session = main.session
        self.generation = main.session.generation
        self.modules = [main, *linked]
        self.kernels = store.kernels
        self.import_names = [m.name for m in [main, *linked]]
        self.library_names = library_parts(self.modules)
        self._layout: Any = None
        state = state_of(self.session)
        state.users.add(self)
        state.uses += 1

    @property
    def layout(self) -> Any:
        """Native layout over the module, our library and all linked modules."""
        if self._layout is None:
            load_library(self.session)
            imports = [*self.library_names, *self.import_names]
            name = "_spy_scope_" + digest(*imports)[:16]
            text = "\n".join(f"__exported {import_statement(n)}" for n in imports)
            scope = self.session.load_module_from_source(name, text, f"{name} (generated)")
            self._scope = scope
            self._layout = scope.layout
        return self._layout

    @cached_property
    def declared_names(self) -> frozenset[str]:
        """What the modules declare outside of types and functions."""
        return frozenset(name for module in self.modules for name in declared_names(module))

    def find_element_layout(self, type_: SlangType) -> Any:
        return self.layout.element_layout(type_.type_reflection)


def checked_options(options: Any) -> dict[str, Any]:
    """The options of a module, with defaults for those it does not give."""
    if options is not None and not isinstance(options, Mapping):
        raise TypeError(f"module options are a dict, {{'strict_broadcasting': True}}, got {type(options).__name__}")
    given = dict(options or {})
    unknown = sorted(set(given) - set(_OPTIONS))
    if unknown:
        raise ValueError(f"unknown module option {unknown[0]!r}; the options are {', '.join(sorted(_OPTIONS))}")
    merged = {**_OPTIONS, **given}
    for name, default in _OPTIONS.items():
        if isinstance(default, bool) and merged[name] not in (True, False):
            raise TypeError(f"option {name} must be True or False, got {merged[name]!r}")
    if merged["convert"] not in ("none", "safe", "any"):
        raise ValueError(f"option convert must be 'none', 'safe' or 'any', got {merged['convert']!r}")
    return merged


def checked_links(name: str, link: Any) -> list[Any]:
    """What a module is linked with, as a list. TypeError for what is no module."""
    if isinstance(link, (str, bytes)) or hasattr(type(link), "_compiled"):
        link = [link]  # one in place of a list: what it is says the check
    if link is not None and not isinstance(link, Iterable):
        raise TypeError(f"Module '{name}': 'link' takes a list of modules, got {link!r}")
    for item in link or ():
        if not hasattr(type(item), "_compiled") and not hasattr(item, "session"):
            raise TypeError(
                f"Module '{name}': 'link' takes modules, got {item!r}; load it first: link=[Module.load_from_file(device, path)]"
            )
    return list(link or ())


def check_defines(defines: Mapping[str, Any] | None, link: Any) -> dict[str, str]:
    defines = {} if defines is None else defines
    if not isinstance(defines, Mapping) or not all(isinstance(name, str) for name in defines):
        raise TypeError(f"'defines' must be a dict of names and values, got {defines!r}")
    if defines and any(not hasattr(type(item), "_compiled") for item in link or ()):
        raise ValueError(
            "'defines' cannot be combined with modules of device.load_module() in 'link'; link what Module.load_from_file() "
            "or Module.load_from_source() gives"
        )
    values = {name: str(int(value) if isinstance(value, bool) else value) for name, value in defines.items()}
    for item in link or ():
        if hasattr(type(item), "_compiled") and item._defines != values:
            raise ValueError(
                f"linked modules must have the same defines, but '{item.name}' has {item._defines} and this module has "
                f"{values}; load both with the same 'defines'"
            )
    return values


def foreign_links(link: Any) -> list[Any]:
    """Those that no other session has; a Module is loaded where it is needed."""
    return [item for item in link if not hasattr(type(item), "_compiled")]  # asking the module itself would compile it


def session_for(device: Any, link: Any, defines: dict[str, str]) -> Any:
    """The compiler session for a new module: its own, where it has macros of its own; that of what it is linked
    with; else one of the device's."""
    if defines:
        return new_session(device, defines)
    modules = [item for item in link if hasattr(type(item), "_compiled")]
    foreign = foreign_links(link)
    if foreign:
        return foreign[0].session
    if modules:
        return modules[0]._compiled.main.session
    state = device._state
    session = state.functional_session
    if session is None:
        session = state.functional_session = new_session(device)
    elif _is_worn(session):
        session = state.functional_session = new_session(device)
        collect()  # the modules that were dropped last would keep the old one
    return session


def _is_worn(session: Any) -> bool:
    """Whether a session holds more modules that were dropped than modules in use: Slang keeps all that it has loaded, a
    few MiB for each with its kernels, until the session goes. Those in use keep theirs."""
    living = len(state_of(session).users)
    return state_of(session).uses - living >= max(_MOST_DROPPED, living)


def new_session(device: Any, defines: dict[str, str] | None = None) -> Any:
    """A compiler session with the device's options, more macros, and the core of our library loaded."""
    options = session_options(device)
    if defines:
        options["defines"] = {**options.get("defines", {}), **defines}
    session = create_session(device, options, held_by_device=True)
    expect_kernel(device)
    load_library(session)
    return session


def declared_names(module: Any) -> list[str]:
    """The names that a Slang module's text declares outside of types and functions.

    Modules read precompiled, and those whose derivatives were asked for, also hold the compiler's own: `$__syn_...`."""
    return [child.name for child in module.module_decl.children if child.name and "$" not in child.name]


def public_members(kind: type) -> frozenset[str]:
    """The attributes that objects of a class have of their own."""
    return frozenset(name for name in (*dir(kind), *kind.__annotations__) if not name.startswith("_"))


def hidden_names(module: Any, own: frozenset[str], of_structs: frozenset[str]) -> list[str]:
    """What a Slang module declares under a name that its Python object, or that of the struct around it, has itself."""
    found = [name for name in dict.fromkeys(callable_names(module)) if name in own]
    for struct in module.module_decl.children:
        if struct.kind.name == "struct" and struct.name:
            inner = [child.name for child in struct.children if child.kind.name in ("func", "struct", "enum")]
            found += [f"{struct.name}.{name}" for name in dict.fromkeys(inner) if name in of_structs]
    return found


def warn_of_hidden(stem: str, names: Iterable[str], stacklevel: int) -> None:
    """For names that attribute access does not reach."""
    for name in names:
        owner, _, member = name.rpartition(".")
        place = f"{stem}.{owner}" if owner else stem
        warnings.warn(
            f"Module '{stem}' declares '{name}', but {place}.{member} is an attribute of its Python object: call it as "
            f"{place}['{member}'](...), or rename it",
            SlangWarning,
            stacklevel=stacklevel + 1,
        )


def callable_names(module: Any) -> list[str]:
    """Those of `declared_names` that are functions or types; `unsupported` are interfaces and aliases."""
    kinds = ("func", "generic", "struct", "enum", "unsupported")
    declared = module.module_decl.children
    return [child.name for child in declared if child.name and "$" not in child.name and child.kind.name in kinds]
