"""Arrays of structs whose fields are bound as arrays: paths with a "[*]" for each dimension of the array of structs."""

from __future__ import annotations

from ..reflection import SlangType
from .slang_text import indent


def indexed(path: str) -> str:
    """The path of an entry of a list: its last indices count the structs (`[*].b[1]` is `[1].b`)."""
    stars, steps = path.count("[*]"), []
    while stars and path.endswith("]") and not path.endswith("[*]"):
        path, _, index = path.rpartition("[")
        steps.insert(0, f"[{index}")
    for step in steps[:stars]:
        path = path.replace("[*]", step, 1)
    return path + "".join(steps[stars:])


def holder(parameter: str) -> str:
    """The parameter of the kernel that holds the resources of an array of structs, as such an array."""
    return f"_a_{parameter.lstrip('_')}"


def spread(path: str, value: str, type_: SlangType) -> list[str]:
    """Statements that assign an array of a field's values to that field of each struct."""
    count = path.count("[*]")
    for k in range(count):
        path = path.replace("[*]", f"[_e{k}]", 1)
        value += f"[_e{k}]"
    sizes: list[int] = []
    for _ in range(count):
        assert type_.element_type is not None
        sizes.append(type_.shape[0])
        type_ = type_.element_type
    lines = [f"{path} = {value};"]
    for k in reversed(range(count)):
        head = f"[ForceUnroll] for (int _e{k} = 0; _e{k} < {sizes[k]}; _e{k}++)"
        lines = [head, "{", *indent(lines), "}"]
    return lines
