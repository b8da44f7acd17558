"""Generated modules: what they are called and import, how they are loaded, and what their target code gets in front."""

from __future__ import annotations

from typing import Any

from ..base.folders import LIBRARY_PATH
from ..errors import SlangCompileError
from .cache import digest
from .library import CORE, PARTS, WHOLE


def import_statement(module_name: str) -> str:
    """`import` of a module that is known by an identifier or, the second file of one name, by its path."""
    if module_name.isidentifier() or module_name in PARTS:
        return f"import {module_name};"
    return f'import "{module_name.translate(_ESCAPES)}";'


def library_parts(modules: list[Any]) -> list[str]:
    """What generated modules import of our library: the whole where modules do, else the core; and the parts that they do."""
    parts = [part for part in PARTS if any(part.replace(".", "/") in module.imports for module in modules)]
    return parts if WHOLE in parts else [CORE, *parts]


def with_whole(names: list[str]) -> list[str]:
    """The same for modules that hold a user's text."""
    return [WHOLE, *(name for name in names if name not in (CORE, WHOLE))]


_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n", "\r": r"\r"})


def load_generated(program: Any, name: str, source: str) -> Any:
    """The generated module. Where it names types that the user's module imports without `__exported`, or needs extensions
    of types there, it imports them too; not before, because functions that the user's module does not see as its own would
    join its overloads."""
    try:
        return program.session.load_module_from_source(name, source, f"{name}.slang")
    except SlangCompileError as error:
        known = set(program.import_names)
        hidden = [
            other
            for module in program.modules
            for other in module.imports
            if other not in known and not (LIBRARY_PATH / f"{other}.slang").exists()
        ]
        is_unnamed = _UNNAMED in str(error)
        if not hidden or not (is_unnamed or any(code in str(error) for code in _NOT_EXTENDED)):
            raise
        source = "\n".join(import_statement(other) for other in dict.fromkeys(hidden)) + "\n" + source
        try:
            return program.session.load_module_from_source(f"{name}_i", source, f"{name}_i.slang")
        except SlangCompileError:
            if is_unnamed:
                raise
            raise error from None


_UNNAMED = "undefined identifier"
_NOT_EXTENDED = ("E38029", "E30019")
"""What Slang says of types without an interface that they have by an extension that a module does not import: as arguments
of generics, and in place of the interface."""


def generated_name(name: str, source: str, conformances: Any) -> str:
    """What the compiler knows a generated module by."""
    return "_spy_" + digest(source, name, repr(conformances))[:24]


def with_bounds(device: Any, source: str, code: bytes) -> bytes:
    """Target code with the checks of what backward derivatives index on the CPU."""
    backward = "bwd_diff(" in source or b"s_bwdProp" in code  # ours, or the user's own
    if backward and device.compile_target.format == "cpp":
        return (LIBRARY_PATH / "bounds_cpp.h").read_bytes() + b"\n" + code
    return code
