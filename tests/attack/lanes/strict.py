"""Kernels for lanes wherever they can have them, also where that is not worth it, and without a way back to one that has none."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from slangpy.compiler.text.lanes import with_lanes
from slangpy.compiler.text.short import short_text

PROGRAM = re.compile(rb"[^(]* (?:s_\w+?_)?p_(\d+)_\d+_lanes_\d+\(")
"""How the function of a program for lanes begins, after `static`: that of its value, gradient or tangent."""


def strict_compiler(taken: Callable[[str, bytes], None]) -> Callable[..., bytes]:
    """In place of `compile_kernel`. taken: hears the label and the code of each kernel that has lanes."""

    def compile(device: Any, text: bytes, entry_point: str, label: str, lanes: bool = False, **options: Any) -> bytes:
        made = with_lanes(text, for_all=True) if lanes else None
        if made is not None:
            taken(label, made)
        return device.compile(short_text(made or text) or made or text, entry_point, label=label, **options)

    return compile


def programs_with_lanes(code: bytes) -> tuple[set[int], set[int]]:
    """The numbers of programs whose function has lanes, and of those with a loop that lanes leave one by one."""
    functions = ((PROGRAM.match(function), function) for function in code.split(b"\nstatic "))
    found = [(int(match[1]), b"_n % 8 == 0" in function) for match, function in functions if match]
    return {number for number, _ in found}, {number for number, has_loop in found if has_loop}
