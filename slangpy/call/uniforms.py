"""Globals of a module, written at each dispatch by `set` and `write`."""

from __future__ import annotations

from typing import Any

from .. import _native


def write_globals(node: Any, view: Any) -> Any:
    """A ShaderObject over the kernel's program with every `set` and `write` of the node applied, in chain order."""
    kernel = next(iter(view.variants.values()))["built"]
    root = _native.ShaderObject(node.module.device, kernel.layout)
    cursor = _native.ShaderCursor(root)
    for kind, value, args, kwargs in node._globals:
        if kind == "write":
            value(cursor, *args, **kwargs)
            continue
        values: Any = value(node) if callable(value) else value
        for name, item in values.items():
            if not cursor.has_field(name):
                known = [field["name"] for field in kernel.layout.globals.fields] if kernel.layout.globals else []
                raise ValueError(f"{node.label}: no global named '{name}'; there are: {', '.join(known) or 'none'}")
            cursor[name] = item
    return root
