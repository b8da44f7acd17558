"""Many invocations at once, for C++ code of kernels with loops that end at different times for different invocations.

A C++ compiler makes vector instructions of the loop over invocations unless such a loop stands in it. Here the function that
has it is written again for `SPY_LANES` invocations (slangpy/slang/lanes_cpp.h): numbers that differ by invocation become lanes,
a branch is run by the lanes that take it, and a loop runs while a lane is left in it. What is the same for all lanes stays as
it was. Emitted code is regular: one statement a line, no side effects inside of expressions, and one form of loop. What is not
of that form leaves the kernel as it is, and so does what is not known here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ....base.folders import LIBRARY_PATH
from ..host import END_OF_PRELUDE, KERNEL
from .functions import Function, LaneFunction, Program, lane_type
from .statements import TYPE, Unfit, arguments_of, closing, tokens_of

_MAIN = re.compile(r"^static void __spy_main\([^\n]*\)\n\{\n(.*?)^\}\n", re.MULTILINE | re.DOTALL)


@cache
def lanes_header() -> bytes:
    return (LIBRARY_PATH / "lanes_cpp.h").read_bytes().replace(b"#pragma once\n", b"", 1)


@cache
def lanes_inputs() -> bytes:
    """All that decides what `with_lanes` makes of kernels; part of what names them in the disk cache."""
    files = sorted(Path(__file__).parent.glob("*.py"))
    return lanes_header() + b"".join(file.read_bytes() for file in files)


def with_lanes(code: bytes) -> bytes | None:
    """Code whose loop over invocations takes many at a time; None where it stays as it is."""
    at = code.rfind(END_OF_PRELUDE)
    split = code.find(KERNEL, at)
    begin = at + len(END_OF_PRELUDE) if split < 0 else split + len(KERNEL)
    if at < 0:
        return None
    text = code[begin:].decode()
    main = _MAIN.search(text)
    if b"_spy_wrap" in code[begin:] or main is None or "for(;;)" not in text[: main.start()]:
        return None
    try:
        functions, loop = _with_main(text[: main.start()], main[1])
    except Unfit:
        return None
    made = text[: main.start(1)] + loop + text[main.end(1) :]
    made = made[: main.start()] + functions + made[main.start() :]
    head = code[:begin] if split < 0 else code[:split]
    return head + lanes_header() + KERNEL + made.encode()


_DECLARED = re.compile(rf" *({TYPE}|\w+_\d+) +(\w+)(?: =|;)")
_ASSIGNED = re.compile(r" *(\w+)(?:\.\w+|\[[^][]*\])* = ")
_LOOP = re.compile(
    r"    int64_t (_i_\d+) = (\w+);\n    for\(;;\)\n    \{\n        if\(\1 < (\w+)\)\n        \{\n        \}\n        else\n        \{\n"
    r"            break;\n        \}\n(.*)        \1 = \1 \+ 1LL;\n    \}\n    return;\n",
    re.DOTALL,
)


@dataclass(frozen=True)
class Split:
    """The statements of one invocation around the call that many make together."""

    before: list[str]
    after: list[str]
    function: LaneFunction
    arguments: list[tuple[str, ...]]
    varying: tuple[bool, ...]
    kept: list[tuple[str, str]]
    """(type, name) of variables from before that are used after."""


def _with_main(functions: str, main: str) -> tuple[str, str]:
    """The functions for lanes, and the body of the entry point."""
    loop = _LOOP.search(main)
    if loop is None:
        raise Unfit("the loop over invocations")
    index, first, last, body = loop.groups()
    lines = body.splitlines()
    if any(not line.startswith("        ") or line.startswith("         ") or not line.endswith(";") for line in lines):
        raise Unfit("a statement with others in it")
    program = Program(functions)
    split = _split(program, lines, index)
    if not program.calls_are_pure("\n".join(split.before)) or not _is_local(split.before):
        raise Unfit("a store before the call")
    if any(not program.is_pure(name) for name, _ in program.made):
        raise Unfit("a store in what is called")
    return "".join(program.texts), main[: loop.start()] + "\n".join(_chunks(split, index, first, last)) + "\n"


def _is_local(lines: list[str]) -> bool:
    """Whether statements set nothing but variables that they declare."""
    known = {m[2] for line in lines if (m := _DECLARED.match(line))}
    return all(_DECLARED.match(line) or ((m := _ASSIGNED.match(line)) and m[1] in known) for line in lines)


def _split(program: Program, lines: list[str], index: str) -> Split:
    declared = {m[2] for line in lines if (m := _DECLARED.match(line))}
    outer = LaneFunction(program, Function("", "", (), ""), (), "", varying={index, *declared})
    calls = ((n, m) for n, line in enumerate(lines) for m in re.finditer(r"\b(\w+_\d+)\(", line))
    for place, match in calls:
        if match[1] not in program.functions:
            continue
        tokens = tokens_of(lines[place][match.start() :])
        end = closing(tokens, 1)
        arguments = arguments_of(tuple(tokens[2:end]))
        varying = tuple(outer.is_varying(a) for a in arguments)
        if not any(varying) or any(v and "&" in a for v, a in zip(varying, arguments, strict=True)):
            continue
        program.texts.clear()
        program.made.clear()
        made = program.lanes(match[1], varying)
        if made is not None and made.is_divergent:
            before = lines[:place]
            rest = f"{lines[place][: match.start()]}_spy_get(_found, _l) {' '.join(tokens[end + 1 :])}"
            after = [rest, *lines[place + 1 :]]
            known = [(m[1], m[2]) for line in before if (m := _DECLARED.match(line))]
            kept = [(t, n) for t, n in known if any(re.search(rf"\b{n}\b", line) for line in after)]
            return Split(before, after, made, arguments, varying, kept)
    raise Unfit("no loop that differs")


def _chunks(split: Split, index: str, first: str, last: str) -> list[str]:
    """The loop over as many invocations as there are lanes."""
    types = [type for type, _ in split.function.function.parameters]
    lanes = [n for n, v in enumerate(split.varying) if v]
    given = ["" if v else " ".join(a) for v, a in zip(split.varying, split.arguments, strict=True)]
    each = ["for (int _l = 0; _l < _n; _l++)", "{", f"const int64_t {index} = _begin + _l;"]
    call = ", ".join(a or f"_given{n}" for n, a in enumerate(given))
    return [
        f"for (int64_t _begin = {first}; _begin < {last}; _begin += SPY_LANES)",
        "{",
        f"const int _n = {last} - _begin < SPY_LANES ? int({last} - _begin) : SPY_LANES;",
        *(f"{type} {name}_kept[SPY_LANES];" for type, name in split.kept),
        *(f"{lane_type(types[n])} _given{n}{{}};" for n in lanes),
        *each,
        *split.before,
        *(f"_spy_put(_given{n}, _l, {' '.join(split.arguments[n])});" for n in lanes),
        *(f"{name}_kept[_l] = {name};" for _, name in split.kept),
        "}",
        f"const auto _found = {split.function.name}(_spy_first_lanes(_n), {call});",
        *each,
        *(f"{type} {name} = {name}_kept[_l];" for type, name in split.kept),
        *split.after,
        "}",
        "}",
        "return;",
    ]
