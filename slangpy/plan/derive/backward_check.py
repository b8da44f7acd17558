"""Elements whose reverse derivative Slang 2026.12 loses in silence. Where one array, matrix or vector is read by a run-time
index and by another one, or changed at an element behind the read, the share of one read replaces that of the other where
both meet the same element. Such reads become calls before the compiler sees them (src/native/slang/rewrite/paths.cpp), and
here; what is left, by macros for example, is found by a scan without types, which warns.

Measured to be right, and not reported: a loop before the other read, a branch or conditional of its own for one of them, a
variable filled by elements, and `v.x` of a vector where nothing changes it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from .forward_check import closing, reached, survey_of

_BLOCK = re.compile(r"(?<![\w.])(for|while|if|else|switch|do)\b")
_UNROLLED = re.compile(r"\[\s*ForceUnroll\b[^\]]*\]\s*(?:\[[^\]]*\]\s*)*$")
_DECLARED = re.compile(
    r"(?<=[;{}(,])\s*((?:(?:in|out|inout|const|no_diff|static)\s+)*)"
    r"([A-Za-z_]\w*(?:<[^;{}()]*>)?(?:\[[^\]]*\])*)\s+(\w+)\s*((?:\[[^\]]*\])*)\s*(?=[=;,):])"
)
_COPIED = re.compile(r"=\s*([A-Za-z_]\w*)\s*;")
_CONSTANT = re.compile(r"\b(?:int|uint)\s+(\w+)\s*=\s*(?:\d+u?|[A-Z][A-Z0-9_]*)\s*;")
_WITH_ELEMENTS = re.compile(r"^(?:half|float|double)[234](?:x[234])?$|^(?:vector|matrix|Array)<")
_IN_MEMORY = re.compile(r"Tensor|Buffer|Ptr|Texture|\*|^(?:u?int|bool)(?:[\d\[]|_t|$)|^(?:return|else|case)$")
_COMMA = re.compile(r",(?![^<\[]*[>\]])")
_VECTOR = re.compile(r"^(?:float|half|double)[234]$|^vector<")


Definitions = dict[str, list[tuple[str, str]]]
"""Parameters and bodies of functions by name."""


@dataclass(frozen=True)
class _Block:
    start: int
    end: int
    kind: str
    """"loop", "unrolled" or "branch"."""


@dataclass(frozen=True)
class _Access:
    at: int
    text: str
    element: str
    """The text without the name; empty: all of it."""
    varies: bool
    """Whether its index is known at run time only."""
    kind: str
    """"read", "update" (read and stored), "store" of an element, or "whole" for a store of all."""


@dataclass(frozen=True)
class LostShare:
    function: str
    variable: str
    first: str
    second: str


def lost_share_warnings(module: Any, name: str, label: str) -> list[str]:
    """What to tell of function `name`, or of one that it calls, for each of the faulty pairs that it has."""
    return [
        f"{label}.bwds: '{found.function}' uses '{found.first}' and '{found.second}' of one value '{found.variable}'. "
        "Where both are the same element, Slang 2026.12 loses the share of one in the reverse derivative, without an "
        "error. Read the element with the run-time index in a separate function, '[Differentiable] T pick(V v, int i) "
        "{ return v[i]; }'; a copy of the variable does not help. SLANGPY_CHECK_GRADIENTS=1 checks the numbers; see "
        "'What stays faulty' in docs/gradients.md"
        for found in lost_shares(module, name)
    ]


def lost_shares(module: Any, name: str) -> list[LostShare]:
    """The faulty pairs in a function and in those that it calls and Slang differentiates; the first of each variable."""
    survey = survey_of(module)
    known = survey.__dict__.setdefault("_lost_shares", {})
    name = re.split(r"[.:]", name.split("<")[0])[-1]
    if name not in known:
        own = [function for function in reached(name, survey) if function not in survey.custom]
        known[name] = [
            found for function in own for definition in survey.definitions.get(function, ())
            for found in (*_scan(function, *definition, survey.definitions), *_by_macros(function, *definition, survey.indexing))
        ]  # fmt: skip
    return known[name]


def _scan(function: str, parameters: str, body: str, definitions: Definitions) -> Iterator[LostShare]:
    if "[" not in body:
        return
    blocks = _blocks(body)
    constants = _constants(body)
    given = list(_DECLARED.finditer(f"({parameters})"))
    local = list(_DECLARED.finditer(body))
    names = [declared[3] for declared in given + local]
    starts = {declared.start(3): declared for declared in local}
    copies = {m[3]: source[1] for m in local if (source := _COPIED.match(body, m.end()))}
    for declared in given + local:
        variable, kind = declared[3], declared[2].strip()
        if names.count(variable) > 1 or copies.get(variable) in names or not _has_elements(declared):
            continue  # of two of one name one hides the other; a copy counts with what it is a copy of
        same = [variable, *(m[3] for m in local if copies.get(m[3]) == variable)]
        vector = bool(_VECTOR.match(kind)) and not declared[4]
        pair = _pair(_accesses(same, body, constants, vector, starts, definitions), blocks)
        if pair:
            yield LostShare(function, variable, pair[0].text, pair[1].text)


def _by_macros(function: str, parameters: str, body: str, macros: dict[str, set[int]]) -> Iterator[LostShare]:
    """Elements that macros read, in loops, too: the compiler is not given calls for them."""
    used = [name for name in macros if re.search(rf"\b{name}\b", body)]
    if not used:
        return
    local = [*_DECLARED.finditer(f"({parameters})"), *_DECLARED.finditer(body)]
    variables = {declared[3] for declared in local if _has_elements(declared)}
    constants = _constants(body)
    reads: dict[str, dict[str, bool]] = {}
    for match in re.finditer(rf"(?<![\w.])({'|'.join(used)})\s*\(", body):
        end = closing(body, match.end() - 1, "(", ")")
        given = [argument.strip() for argument in body[match.end() : end - 1].split(",")]
        for at in macros[match[1]]:
            if at < len(given) and given[at] in variables:
                others = " ".join(argument for place, argument in enumerate(given) if place != at)
                reads.setdefault(given[at], {})[body[match.start() : end]] = _varies(others, constants)
    for variable, found in reads.items():
        if len(found) > 1 and any(found.values()):
            first, second = list(found)[:2]
            yield LostShare(function, variable, first, second)


def _has_elements(declared: re.Match[str]) -> bool:
    """Whether Slang keeps a declared variable, and its derivative, as a value with elements; tensors lie in memory."""
    kind, dimensions = declared[2].strip(), declared[4]
    if re.search(r"no_diff|static", declared[1]) or _IN_MEMORY.search(kind):
        return False
    return bool(dimensions or kind.endswith("]") or _WITH_ELEMENTS.match(kind))


def _pair(accesses: list[_Access], blocks: list[_Block]) -> tuple[_Access, _Access] | None:
    """Two accesses of which the first reads a value that came as a whole, not by elements."""
    reads: list[_Access] = []
    stored: set[str] = set()
    whole = True
    for access in accesses:
        if access.kind in ("read", "update") and access.element not in stored:
            for read in reads:
                if _may_meet(read, access) and _follows(read, access, blocks):
                    return read, access
        if access.kind == "whole":
            reads, stored, whole = [], set(), True
        elif access.kind != "read":
            whole = False
            stored.add(access.element)
        elif whole:
            reads.append(access)
    return None


def _accesses(
    names: list[str], body: str, constants: set[str], vector: bool, declared: dict[int, re.Match[str]], definitions: Definitions
) -> list[_Access]:
    """Reads and stores of a variable and its copies in the order in which they happen: stores end their statement."""
    found = []
    for match in re.finditer(rf"(?<![\w.])(?:{'|'.join(names)})\b", body):
        start = match.start()
        if start in declared:
            if match[0] == names[0]:
                given = re.compile(r"\s*=\s*[^{\s]").match(body, declared[start].end())
                found.append(_Access(start, match[0], "", False, "whole" if given else "store"))
            continue
        end, index = _indices(body, match.end())
        swizzle = re.compile(r"\.[xyzwrgba]\b").match(body, end) if vector and not index else None
        end = swizzle.end() if swizzle else end
        text = "".join(body[start:end].split())
        element = text[len(match[0]) :]
        kind, at = _kind(match[0], text, body, end)
        if kind == "read" and element:
            kind = _changed_by(body, start, end, definitions)
        if kind != "read" or (index and not _in_conditional(body, start)):
            found.append(_Access(at if kind != "read" else start, text, element, _varies(index, constants), kind))
    return sorted(found, key=lambda access: access.at)


def _kind(name: str, text: str, body: str, end: int) -> tuple[str, int]:
    """What an access that ends at a place does, and where its statement ends."""
    member = re.compile(r"\.\w+").match(body, end)
    after = member.end() if member else end
    until = body.find(";", after)
    if re.compile(r"\s*=(?!=)").match(body, after):
        return ("whole" if text == name and not member else "store"), until
    if not re.compile(r"\s*(?:[-+*/]=|\+\+|--)").match(body, after):
        return "read", until
    if text == name and not member:
        return "whole", until
    again = rf"(?<![\w.]){name}\b(?!\s*[.\[])|(?<![\w.]){re.escape(text)}(?!\w)"
    return ("update" if text != name and re.search(again, body[until:]) else "store"), until


def _changed_by(body: str, start: int, end: int, definitions: Definitions) -> str:
    """What happens to an element that is an argument by itself, or stands behind ++ or --."""
    before, after = body[:start].rstrip(), body[end:].lstrip()
    if before.endswith(("++", "--")):
        return "update"
    if not before.endswith(("(", ",")) or not after.startswith((")", ",")):
        return "read"
    depth, place, at = 1, 0, len(before)
    while depth > 0 and at > 0 and body[at - 1] not in ";{}":
        at -= 1
        depth += (body[at] in ")]") - (body[at] in "([")
        place += body[at] == "," and depth == 1
    called = re.search(r"(\w+)\s*(?:<[^;{}()]*>)?\s*$", body[:at])
    given = [_COMMA.split(parameters) for parameters, _ in definitions.get(called[1] if called else "", ())]
    words = {word for each in given if place < len(each) for word in re.findall(r"\b(?:out|inout)\b", each[place])}
    return "update" if "inout" in words else "store" if words else "read"


def _in_conditional(body: str, at: int) -> bool:
    """Whether a place is behind the `?` of its expression: only one of both sides runs."""
    depth = 0
    for position in range(at - 1, -1, -1):
        letter = body[position]
        depth += (letter == ")") - (letter == "(")
        if letter in ";{}":
            return False
        if letter == "?" and depth <= 0:
            return True
    return False


def _indices(body: str, at: int) -> tuple[int, str]:
    """Where `[i][j]` ends that starts at a place, and its text; empty: there is none."""
    start = at
    while (bracket := re.compile(r"\s*\[").match(body, at)) is not None:
        at = closing(body, bracket.end() - 1, "[", "]")
    return at, body[start:at]


def _varies(index: str, constants: set[str]) -> bool:
    words = set(re.findall(r"(?<![\w.])[A-Za-z_]\w*", index))
    return any(word not in constants and not word.isupper() for word in words - {"int", "uint"})


def _may_meet(read: _Access, access: _Access) -> bool:
    if not (read.varies or access.varies):
        return False
    for one, other in zip(read.element[1:-1].split("]["), access.element[1:-1].split("]["), strict=False):
        if one.isdigit() and other.isdigit() and one != other:
            return False
    return read.element != access.element or access.kind == "update"


def _follows(read: _Access, access: _Access, blocks: list[_Block]) -> bool:
    """Whether a read is outside loops, and the access in the same block, or a constant one in a loop right in it."""
    around = [b for b in blocks if b.start <= read.at < b.end]
    beyond = [b for b in blocks if b.start <= access.at < b.end and b not in around]
    if any(b.kind == "loop" or b.end <= access.at for b in around):
        return False
    return not beyond or (not access.varies and all(b.kind == "loop" for b in beyond))


def _blocks(body: str) -> list[_Block]:
    """Loops that are not unrolled, and branches."""
    found = []
    for match in _BLOCK.finditer(body):
        word = match[1]
        start = _head_end(body, match)
        if word in ("for", "while", "do") and _UNROLLED.search(body[: match.start()]):
            continue
        kind = "loop" if word in ("for", "while", "do") else "branch"
        found.append(_Block(start, _statement_end(body, start), kind))
    return found


def _head_end(body: str, keyword: re.Match[str]) -> int:
    bracket = re.compile(r"\s*\(").match(body, keyword.end())
    if keyword[1] in ("else", "do") or not bracket:
        return keyword.end()
    return closing(body, bracket.end() - 1, "(", ")")


def _statement_end(body: str, at: int) -> int:
    inner = re.compile(r"\s*(?:\[[^\]]*\]\s*)*(?:(\{)|(for|while|if|switch|do)\b)?").match(body, at)
    if inner and inner[1]:
        return closing(body, inner.start(1), "{", "}")
    if inner and inner[2]:
        keyword = _BLOCK.match(body, inner.start(2))
        end = _statement_end(body, _head_end(body, keyword)) if keyword else inner.end()
        other = re.compile(r"\s*else\b").match(body, end)
        return _statement_end(body, other.end()) if other else end
    return body.find(";", at) + 1 or len(body)


def _constants(body: str) -> set[str]:
    """Names that the compiler knows the value of: counters of unrolled loops, and numbers that nothing changes."""
    known = set()
    for match in re.finditer(r"\bfor\s*\(\s*(?:u?int|let|var)\s+(\w+)", body):
        if _UNROLLED.search(body[: match.start()]):
            known.add(match[1])
    for name in _CONSTANT.findall(body):
        if not re.search(rf"\b{name}\s*(?:[-+*/%]?=(?!=)|\+\+|--)", _CONSTANT.sub("", body)):
            known.add(name)
    return known


__all__ = ["LostShare", "lost_share_warnings", "lost_shares"]
