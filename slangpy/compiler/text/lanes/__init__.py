"""Many invocations at once, for C++ code of kernels with loops that end at different times for different invocations.

A C++ compiler makes vector instructions of the loop over invocations unless such a loop stands in it. Here the function that
has it is written again for `SPY_LANES` invocations (slangpy/slang/lanes_cpp.h): numbers that differ by invocation become lanes,
a branch is run by the lanes that take it, and a loop runs while a lane is left in it. What is the same for all lanes stays as
it was, and what lanes cannot compute at once is computed for one after the other.

    tokens, parser -> tree      what Slang emitted, as statements and expressions
    counters, flags             loops whose counter is the same for all lanes in a turn; numbers of two values as bools
    conditions, branches        what branches say by bools as expressions; branches that ask the same as one
    facts, varying, weights     what functions write; what differs by lane; what is computed in any case
    lifetimes, given            how long variables are needed; which lanes have a value of them
    expressions, functions      the functions for lanes; structs of lanes
    entry                       the loop over invocations around them

What the parser does not know leaves the kernel as it is.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from ....base.folders import LIBRARY_PATH
from ..host import END_OF_PRELUDE, KERNEL
from .entry import Entry, find_loop
from .expressions import MATH_PREFIX, Cost
from .functions import Program
from .parser import parse_unit
from .tokens import Unfit

_WIDE_FOR_SINGLE = 8
"""So many operations of all lanes at once make up for one that is done for one lane after the other, in loops."""
_WIDE_FOR_READ = 26
"""And so many for a number read at a place that differs by lane: from 0.6 times as fast at 24 over 1.2 at 30 to 2 to 5 above."""
_WIDE_FOR_ELEMENT = 4
"""And for an element of a local array at such a place: 2 times as fast at 7 to 10, 0.6 with a read beside it."""
_MOST_WIDE, _MOST_SINGLE = 400, 24
"""Of all operations in a function: what compilers take about a second for, at 2 to 3 ms for each of some 50."""


_IF = "#if SPY_HAS_LANES\n"
_ALWAYS = b"\n#define SPY_LANES_ALWAYS\n"


@cache
def _header(name: str) -> bytes:
    return (LIBRARY_PATH / name).read_bytes().replace(b"#pragma once\n", b"", 1)


def _headers_for(made: bytes) -> bytes:
    """What functions for lanes need in front of them."""
    math = _header("lanes_math_cpp.h") if MATH_PREFIX.encode() in made else b""
    return _header("lanes_cpp.h") + math + (_header("lanes_textures_cpp.h") if b"Texture2D" in made else b"")


@cache
def lanes_inputs() -> bytes:
    """All that decides what `with_lanes` makes of kernels; part of what names them in the disk cache."""
    files = sorted(Path(__file__).parent.glob("*.py"))
    headers = b"".join(_header(f"lanes{part}_cpp.h") for part in ("", "_math", "_textures"))
    return headers + b"".join(file.read_bytes() for file in files)


def with_lanes(code: bytes, for_all: bool = False) -> bytes | None:
    """Code whose loop over invocations takes many at a time; None where it stays as it is.

    for_all: also where it is not worth it. The compiler decides in the end (`SPY_HAS_LANES`).
    """
    at = code.rfind(END_OF_PRELUDE)
    split = code.find(KERNEL, at)
    begin = at + len(END_OF_PRELUDE) if split < 0 else split + len(KERNEL)
    main = code.find(b"__spy_main(", begin)
    has_loops = b"for(;;)" in code[begin:main]  # in functions: others than the one over invocations pay nothing
    if at < 0 or code.count(b"for(;;)", begin) < 2 or not (has_loops or for_all):
        return None
    try:
        made = _rewritten(code[begin:].decode(), for_all).encode()
    except (Unfit, RecursionError):  # expressions may be nested as deep as a user's loops were written out
        return None
    head = code[:begin] if split < 0 else code[:split]
    return head + _ALWAYS * for_all + _headers_for(made) + KERNEL + made


def _rewritten(text: str, for_all: bool) -> str:
    unit = parse_unit(text)
    program = Program(unit)
    loop = find_loop(unit)
    entry = Entry(program, loop)
    entry.cut(for_all)
    if not for_all and not _is_worth_it(entry):
        raise Unfit("too little for all lanes at once")
    functions = program.text([segment.function for segment in entry.segments if segment.function])
    functions = f"{_IF}{functions}#endif\n"
    made = f"\n{_IF}{entry.text()}#else\n{text[loop.begin : loop.end]}\n#endif\n"
    at = text.rindex("static", 0, text.index("__spy_main("))
    return text[:at] + functions + text[at : loop.begin] + made + text[loop.end :]


def _is_worth_it(entry: Entry) -> bool:
    """benchmarks/cpu_divergent.py has what these numbers were measured with."""
    functions = [segment.function for segment in entry.segments if segment.function]
    cost = Cost()
    for f in functions:
        cost.add(f.loops, 1)
    is_small = all(f.whole.wide <= _MOST_WIDE and f.whole.apart <= _MOST_SINGLE for f in functions)
    others = _WIDE_FOR_SINGLE * cost.single + _WIDE_FOR_READ * cost.reads + _WIDE_FOR_ELEMENT * cost.elements
    return is_small and cost.wide >= max(4, others)
