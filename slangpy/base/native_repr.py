"""repr() of native objects that have none of their own: the class and its fields, one on a line."""

from __future__ import annotations

from typing import Any

_FIELDS = {
    "Attribute": ("name", "argument_count"),
    "BufferOffsetPair": ("buffer", "offset"),
    "BufferRange": ("offset", "size"),
    "ComputePassEncoder": (),
    "DeclReflection": ("kind", "name", "child_count"),
    "EntryPointLayout": ("name", "stage", "compute_thread_group_size", "parameters"),
    "GenericReflection": ("name",),
    "ProgramLayout": ("parameters", "entry_points"),
    "ShaderProgram": ("entry_point_names", "modules"),
    "SlangSession": ("device",),
    "TypeLayoutReflection": ("kind", "name", "size", "stride", "alignment", "fields"),
    "VariableLayoutReflection": ("name", "offset", "type_layout"),
}


def _short(value: Any) -> str:
    """A value on one line: objects by class and name."""
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_short(item) for item in value) + "]"
    text = repr(value)
    if "\n" not in text:
        return text
    name = getattr(value, "name", None) or getattr(value, "label", None)
    return f"{type(value).__name__}({name!r})" if name else f"{type(value).__name__}(...)"


def native_repr(value: Any) -> str:
    """Fields that cannot be read (a closed device, code that was reloaded) say why."""
    lines = [type(value).__name__ + "("]
    for name in _FIELDS.get(type(value).__name__, ()):
        try:
            text = _short(getattr(value, name))
        except (RuntimeError, AttributeError, ValueError) as error:
            text = f"<{error}>"
        lines.append(f"  {name} = {text},")
    return "\n".join([*lines, ")"])
