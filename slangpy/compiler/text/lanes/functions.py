"""Functions of a kernel, written for many invocations at once."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass, field

from .statements import IS_TYPE, NAME, Statement, Unfit, arguments_of, closing, parse, tokens_of

_FUNCTION = re.compile(r"^static ([^\n(=;]+?) *\b(\w+_\d+)\(([^\n]*)\)\n\{\n(.*?)^\}\n", re.MULTILINE | re.DOTALL)
_OPERATORS = frozenset("+ - * % < > <= >= == != && || ! ~ & | ^ << >> ,".split())
_DIRECT = frozenset(
    "F32_min F32_max I32_min I32_max U32_min U32_max F32_sqrt F32_floor F32_ceil F32_trunc F32_abs".split()
)
"""Functions with a form for lanes; others are called for one lane after the other."""
_ELEMENT = "_slang_vector_get_element"


_CALLED = re.compile(r"([A-Za-z_]\w*)(?:<[\w*]+>)?\(")
_PURE = re.compile(
    r"(?:[FIU](?:32|64)_(?!frexp|modf)\w+|_slang_(?:vector_get_element|select)|slang_bit_cast|if|for|float|double|u?int(?:32_t|64_t)?|int|bool)\Z"
)
"""What functions that only read may call besides their like."""
_WRITES = re.compile(r"^ *(?:[*(]|\w+->|(?!return|if|for|else)\w+\()", re.MULTILINE)
"""A statement that stores through a pointer, or is a call."""



@dataclass(frozen=True)
class Function:
    name: str
    result: str
    parameters: tuple[tuple[str, str], ...]
    """(type, name)"""
    text: str


def lane_type(type: str) -> str:
    if not IS_TYPE.match(type):
        raise Unfit(type)
    if type.startswith("Vector<"):
        element, count = type[7:-1].split(", ")
        return f"Vector<_spy_lanes<{element}>, {count}>"
    return f"_spy_lanes<{type}>"


class Program:
    """The functions of a kernel, and those that were written for lanes so far."""

    def __init__(self, text: str) -> None:
        self.functions: dict[str, Function] = {}
        for result, name, parameters, body in _FUNCTION.findall(text):
            split = [p.rsplit(" ", 1) for p in re.split(r",\s*(?![^<]*>)", parameters) if p]
            self.functions[name] = Function(name, result.strip(), tuple((t.strip(), n) for t, n in split), body)
        self.made: dict[tuple[str, tuple[bool, ...]], LaneFunction | None] = {}
        self.pure: dict[str, bool] = {}
        self.texts: list[str] = []

    def is_pure(self, name: str) -> bool:
        """Whether a function only reads: how often and when it is called decides nothing."""
        if name not in self.pure:
            self.pure[name] = True  # of a function that calls itself
            text = self.functions[name].text
            self.pure[name] = not _WRITES.search(text) and self.calls_are_pure(text)
        return self.pure[name]

    def calls_are_pure(self, text: str) -> bool:
        return all(self.is_pure(n) if n in self.functions else _PURE.match(n) for n in _CALLED.findall(text))

    def lanes(self, name: str, varying: tuple[bool, ...]) -> LaneFunction | None:
        """The function for lanes, where `varying` says which of its parameters are; None where it is called lane by lane."""
        key = (name, varying)
        if key not in self.made:
            self.made[key] = None  # of a function that calls itself
            try:
                made = LaneFunction(self, self.functions[name], varying, f"{name}_lanes_{len(self.made)}")
                self.texts.append(made.write())
                self.made[key] = made
            except Unfit:
                pass
        return self.made[key]


@dataclass
class _Loop:
    mask: str
    is_varying: bool


@dataclass
class LaneFunction:
    """One function for lanes, and what is known of it."""

    program: Program
    function: Function
    varying_parameters: tuple[bool, ...]
    name: str
    is_divergent: bool = False
    """Whether a loop in it, or in what it calls, ends at different times."""
    varying: set[str] = field(default_factory=set)
    homes: dict[str, str] = field(default_factory=dict)
    """Where a variable was declared: the mask that stood there."""
    loops: dict[int, bool] = field(default_factory=dict)
    """By the identity of the statement: whether lanes leave it one by one."""
    masks: int = 0
    around: list[_Loop] = field(default_factory=list)

    # --- what differs by lane

    def is_varying(self, tokens: tuple[str, ...]) -> bool:
        return any(
            t in self.varying and (i == 0 or tokens[i - 1] not in (".", "->")) for i, t in enumerate(tokens)
        )

    def analyse(self, body: tuple[Statement, ...]) -> None:
        while True:
            before = (len(self.varying), sum(self.loops.values()))
            self._mark(body, (), {name: () for _, name in self.function.parameters})
            if before == (len(self.varying), sum(self.loops.values())):
                return

    def _mark(self, body: tuple[Statement, ...], regions: tuple[int, ...], homes: dict[str, tuple[int, ...]]) -> None:
        for s in body:
            if s.kind == "declare":
                homes[s.name] = regions
            if s.kind in ("declare", "assign"):
                if s.name not in homes:
                    raise Unfit("a variable from outside")
                if self.is_varying(s.value) or self.is_varying(s.left) or homes[s.name] != regions:
                    self.varying.add(s.name)
            elif s.kind == "if":
                inner = (*regions, id(s)) if self.is_varying(s.value) else regions
                self._mark(s.body, inner, homes)
                self._mark(s.other, inner, homes)
            elif s.kind == "loop":
                self.loops[id(s)] = self._leaves(s.body, False, 0)
                self._mark(s.body, (*regions, id(s)) if self.loops[id(s)] else regions, homes)

    def _leaves(self, body: tuple[Statement, ...], diverged: bool, depth: int) -> bool:
        """Whether lanes leave a loop with this body one by one."""
        for s in body:
            if s.kind == "return" or (s.kind in ("break", "continue") and diverged and depth == 0):
                return True
            if s.kind == "if":
                inner = diverged or self.is_varying(s.value)
                if self._leaves(s.body, inner, depth) or self._leaves(s.other, inner, depth):
                    return True
            elif s.kind == "loop" and self._leaves(s.body, diverged, depth + 1):
                return True
        return False

    # --- expressions

    def expression(self, tokens: tuple[str, ...], mask: str) -> str:
        if not self.is_varying(tokens):
            return self._same(tokens)
        out: list[str] = []
        at = 0
        while at < len(tokens):
            token = tokens[at]
            following = tokens[at + 1] if at + 1 < len(tokens) else ""
            is_first = at == 0 or tokens[at - 1] in _OPERATORS or tokens[at - 1] in "/("
            if token == "(":
                at = self._group(tokens, at, mask, out)
            elif (NAME.match(token) or IS_TYPE.match(token)) and following == "(":
                end = closing(tokens, at + 1)
                out.append(self._call(token, arguments_of(tokens[at + 2 : end]), mask))
                at = end + 1
            elif token == "[":
                end = closing(tokens, at)
                if self.is_varying(tokens[at:end]):
                    raise Unfit("an index that differs")
                out.append(self._same(tokens[at : end + 1]))
                at = end + 1
            elif token in "/%" and tokens[at + 1 : at + 3] == ("_spy_by", token):
                out.append(f"{token} _spy_over{{{mask}}} {token}")
                at += 3
            elif token == ".":
                out[-1] += "." + following
                at += 2
            elif (token in ("*", "&") and is_first) or not (
                token in _OPERATORS or token == "/" or NAME.match(token) or token[0].isdigit() or token[0] == "."
            ):
                raise Unfit(token)
            else:
                out.append(token)
                at += 1
        return " ".join(out)

    def _same(self, tokens: tuple[str, ...]) -> str:
        """What is the same for all lanes is written as it was."""
        if any(t == "&" and following in self.homes for t, following in itertools.pairwise(tokens)) and "(" in tokens:
            raise Unfit("an address")
        return " ".join(tokens)

    def _group(self, tokens: tuple[str, ...], at: int, mask: str, out: list[str]) -> int:
        """A cast or a bracket; returns where it ends."""
        end = closing(tokens, at)
        inner = tokens[at + 1 : end]
        if len(inner) == 1 and IS_TYPE.match(inner[0]):
            operand = end + 1
            while operand < len(tokens) and (tokens[operand] in _OPERATORS and tokens[operand] in "-!"):
                operand += 1
            if operand < len(tokens) and tokens[operand] != "(":
                operand += 1
            while operand < len(tokens) and tokens[operand] in "([.":
                operand = operand + 2 if tokens[operand] == "." else closing(tokens, operand) + 1
            is_varying = self.is_varying(tokens[end + 1 : operand])
            out.append(f"({lane_type(inner[0]) if is_varying else inner[0]})")
        else:
            out.append(f"({self.expression(inner, mask)})")
        return end + 1

    def _call(self, name: str, arguments: list[tuple[str, ...]], mask: str) -> str:
        varying = tuple(self.is_varying(a) for a in arguments)
        if not any(varying):
            return f"{name}({', '.join(' '.join(a) for a in arguments)})"
        given = ", ".join(self.expression(a, mask) for a in arguments)
        if IS_TYPE.match(name):
            return f"{lane_type(name)}({given})"
        if name == _ELEMENT:
            if varying[1]:
                raise Unfit("an index that differs")
            return f"{name}({given})"
        if name == "_slang_select":
            return f"_spy_select({given})"
        if name in _DIRECT:
            kind = {"F": "float", "I": "int32_t", "U": "uint32_t"}[name[0]]
            given = ", ".join(
                self.expression(a, mask) if v else f"_spy_lanes<{kind}>({' '.join(a)})"
                for a, v in zip(arguments, varying, strict=True)
            )
            return f"{name}({given})"
        if name in self.program.functions:
            called = self.program.lanes(name, varying)
            if called is not None:
                self.is_divergent |= called.is_divergent
                return f"{called.name}({mask}, {given})"
            function = self.program.functions[name]
            lane_type(function.result)
            if any(v and not IS_TYPE.match(t) for (t, _), v in zip(function.parameters, varying, strict=True)):
                raise Unfit("a parameter that differs")
        elif not re.match(r"[FIU](?:32|64)_\w+\Z", name):
            raise Unfit(name)
        return f"_spy_each({mask}, [&](const auto&... x) {{ return {name}(x...); }}, {given})"

    # --- statements

    def write(self) -> str:
        body = parse(tokens_of(self.function.text))
        for (type, name), varying in zip(self.function.parameters, self.varying_parameters, strict=True):
            if varying:
                lane_type(type)
                self.varying.add(name)
        self.analyse(body)
        self.is_divergent = any(self.loops.values())
        for _, name in self.function.parameters:
            self.homes[name] = "_m"
        parameters = ", ".join(
            f"{lane_type(t)} {n}" if v else f"{t} {n}"
            for (t, n), v in zip(self.function.parameters, self.varying_parameters, strict=True)
        )
        result = lane_type(self.function.result)
        lines = [f"static {result} {self.name}(_spy_mask _m, {parameters})", "{"]
        lines += [f"{result} _r{{}};", "_spy_mask _gone(false);"]
        lines += [*self._block(body, "_m", "return _r;"), "return _r;", "}"]
        return "\n".join(lines) + "\n"

    def _mask(self) -> str:
        self.masks += 1
        return f"_m{self.masks}"

    def _block(self, body: tuple[Statement, ...], mask: str, end: str) -> list[str]:
        """end: the statement that goes where this mask ends."""
        lines: list[str] = []
        for s in body:
            if s.kind == "declare":
                lines.append(self._declaration(s, mask))
            elif s.kind == "assign":
                lines.append(self._assignment(s, mask))
            elif s.kind == "if":
                lines += self._branch(s, mask, end)
            elif s.kind == "loop":
                lines += self._loop(s, mask, end)
            elif s.kind == "return":
                lines.append(f"_spy_set({mask}, _r, {self.expression(s.value, mask)});")
                lines += [f"_gone = _gone | {mask};", f"{mask} = _spy_mask(false);"]
            elif s.kind in ("break", "continue"):
                lines += self._leave(s.kind, mask)
            elif self.is_varying(s.value):
                raise Unfit("a statement that differs")
            elif s.value:
                raise Unfit("a statement with an effect")
        return lines

    def _declaration(self, s: Statement, mask: str) -> str:
        self.homes[s.name] = mask
        type = lane_type(s.type) if s.name in self.varying else s.type
        if not s.value:
            return f"{type} {s.name}{{}};"
        return f"{type} {s.name} = {type}({self.expression(s.value, mask)});"

    def _assignment(self, s: Statement, mask: str) -> str:
        value = self.expression(s.value, mask)
        if s.name not in self.varying:
            return f"{' '.join(s.left)} = {value};"
        if self.is_varying(s.left[1:]):
            raise Unfit("an index that differs")
        left = "".join(s.left)
        if self.homes[s.name] == mask:  # lanes that are gone from here never look again
            return f"{left} = {value};"
        return f"_spy_set({mask}, {left}, {value});"

    def _leave(self, kind: str, mask: str) -> list[str]:
        loop = self.around[-1]
        if not loop.is_varying:
            return [f"{kind};"]
        lines = [f"{loop.mask}_on = {loop.mask}_on | {mask};"] if kind == "continue" else []
        return [*lines, f"{mask} = _spy_mask(false);"]

    _around: list[_Loop] = field(default_factory=list)

    def _branch(self, s: Statement, mask: str, end: str) -> list[str]:
        leaves = self._may_leave(s.body + s.other, 0)
        if not self.is_varying(s.value):
            lines = [f"if ({self._same(s.value)})", "{", *self._block(s.body, mask, end), "}"]
            if s.other:
                lines += ["else", "{", *self._block(s.other, mask, end), "}"]
            return [*lines, f"if (!_spy_any({mask})) {end}"] if leaves else lines
        first, second = self._mask(), self._mask()
        lines = [f"const _spy_mask {first}_if = {self.expression(s.value, mask)};"]
        lines += [f"_spy_mask {first} = {mask} & {first}_if;", f"_spy_mask {second} = {mask} & !{first}_if;"]
        for name, body in ((first, s.body), (second, s.other)):
            if body:
                lines += [f"if (_spy_any({name})) do", "{", *self._block(body, name, "break;"), "} while (false);"]
        return [*lines, f"{mask} = {first} | {second};", f"if (!_spy_any({mask})) {end}"] if leaves else lines

    def _may_leave(self, body: tuple[Statement, ...], depth: int) -> bool:
        """Whether lanes may leave the block around: by a return, or out of a loop around it."""
        for s in body:
            if s.kind == "return" or (s.kind in ("break", "continue") and depth == 0 and self.around[-1].is_varying):
                return True
            if self._may_leave(s.body + s.other, depth + (s.kind == "loop")):
                return True
        return False

    def _loop(self, s: Statement, mask: str, end: str) -> list[str]:
        loop = _Loop(self._mask(), self.loops[id(s)])
        self.around.append(loop)
        if not loop.is_varying:
            lines = ["for (;;)", "{", *self._block(s.body, mask, ""), "}"]
        else:
            lines = [f"_spy_mask {loop.mask} = {mask};", f"while (_spy_any({loop.mask}))", "{", f"_spy_mask {loop.mask}_on(false);"]
            lines += ["do {", *self._block(s.body, loop.mask, "break;"), "} while (false);"]
            lines += [f"{loop.mask} = {loop.mask} | {loop.mask}_on;", "}"]
            if self._may_leave(s.body, 1):
                lines += [f"{mask} = {mask} & !_gone;", f"if (!_spy_any({mask})) {end}"]
        self.around.pop()
        return lines
