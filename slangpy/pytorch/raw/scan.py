"""The text that Slang emits for a module of kernels: which kernels are in it, and what NVRTC and C++ need changed."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

_KERNEL = re.compile(r"^__global__ void (\w+)\(", re.MULTILINE)
_FUNCTION = re.compile(
    r'^(?:extern "C" )?(?:__device__ |__global__ |__host__ |static |inline )+[^\n;={}]*?\b(\w+)\([^;{}]*\)\n\{',
    re.MULTILINE,
)
_USES_GLOBALS = re.compile(r"\b(?:SLANG_globalParams|globalParams_\d+)\b")
_GLOBALS = re.compile(r'^extern "C" __constant__ [^;{]*;\n', re.MULTILINE)
_EXTERN = re.compile(r'^extern "C" \{\n(.*?^\}\n)\s*^\}\n', re.MULTILINE | re.DOTALL)
_LINE = re.compile(r"^#line[^\n]*\n", re.MULTILINE)
_WORD = re.compile(r"\b[A-Za-z_]\w*\b")
_TEMPORARY = re.compile(r"\b_S\d+\b")
_BALLOT = re.compile(r"^[ \t]*uint (_S\d+) = __ballot_sync\(\w+, \(*_S\d+\)*\);\n", re.MULTILINE)
_PREFIX = "__kernel__"

BARRIERS = re.compile(r"\b(?:__sync\w+|__shfl\w*|__ballot_sync|__any_sync|__all_sync|__match_\w+|__activemask|_wave[A-Z]\w*|"
                      r"_getLaneId|_getLaneLtMask|_getActiveMask|warpSize)\b")  # fmt: skip
"""What needs all threads of a block or a warp."""
_BEYOND = re.compile(r"\b(?:(?:tex|surf)[123]D\w*|texCubemap\w*|asm|StructuredBuffer|RWStructuredBuffer|ByteAddressBuffer|"
                     r"RWByteAddressBuffer|__nv_fp8\w*|clock64|optix\w+|Slang_CUDA_WMMA|_slang_waveRotate|"
                     r"_slang_waveClustered\w*|__reduce_\w+)\b")  # fmt: skip
"""What the host cannot do."""


@dataclass(frozen=True)
class EmittedKernel:
    """One `__global__` function. `name`: in Slang; `symbol`: in the text; `parts`: "", "fwd" or "bwd"."""

    name: str
    symbol: str
    derivative: str
    bound: bool  # marked for Python with [AutoPyBindCUDA]
    parameters: tuple[tuple[str, str], ...]  # type and name as emitted


def split_commas(text: str) -> list[str]:
    """Parameters or generic arguments at the top level: `FixedArray<float, 4>  a_0` has a comma of its own."""
    parts, depth, begin = [], 0, 0
    for at, character in enumerate(text):
        depth += (character in "<([") - (character in ">)]")
        if character == "," and depth == 0:
            parts.append(text[begin:at].strip())
            begin = at + 1
    last = text[begin:].strip()
    return [*parts, last] if last else parts


def closing(text: str, begin: int, brackets: str = "()") -> int:
    """Where the bracket at `begin` closes."""
    depth = 0
    for at in range(begin, len(text)):
        depth += (text[at] == brackets[0]) - (text[at] == brackets[1])
        if depth == 0:
            return at
    return len(text)


def find_kernels(program: str) -> list[EmittedKernel]:
    """In the order in which the text has them."""
    plain = _LINE.sub("", program)
    kernels = []
    for found in _KERNEL.finditer(plain):
        symbol = found.group(1)
        end = closing(plain, found.end() - 1)
        parameters = []
        for part in split_commas(plain[found.end() : end]):
            at = re.search(r"\w+$", part)
            parameters.append((part[: at.start()].strip(), at.group()) if at else (part, ""))
        name, derivative = symbol, ""
        if symbol.startswith(_PREFIX):
            name = symbol[len(_PREFIX) :]
            for ending in ("fwd", "bwd"):
                if name.endswith(f"_{ending}_diff"):
                    name, derivative = name[: -len(ending) - 6], ending
        kernels.append(EmittedKernel(name, symbol, derivative, symbol.startswith(_PREFIX), tuple(parameters)))
    return kernels


def functions(program: str) -> dict[str, tuple[int, int]]:
    """Name -> where its definition begins and ends. Overloads do not occur: Slang numbers all names."""
    found = {}
    for match in _FUNCTION.finditer(program):
        found[match.group(1)] = (match.start(), closing(program, match.end() - 1, "{}") + 1)
    return found


def used_by(program: str, symbols: set[str]) -> set[str]:
    """The functions that these call, directly or not, themselves included."""
    places = functions(program)
    todo, seen = [s for s in symbols if s in places], set(symbols)
    while todo:
        begin, end = places[todo.pop()]
        for word in set(_WORD.findall(program[begin:end])):
            if word in places and word not in seen:
                seen.add(word)
                todo.append(word)
    return seen


def only(program: str, symbols: set[str]) -> str:
    """The program with these kernels and the functions that they use."""
    program = without_linkage(program)
    places = functions(program)
    kept = used_by(program, symbols)
    pieces, at = [], 0
    for name, (begin, end) in sorted(places.items(), key=lambda item: item[1]):
        if name not in kept:
            pieces.append(program[at:begin])
            at = end
    return "".join(pieces) + program[at:]


def without_linkage(program: str) -> str:
    """Without `extern "C" { }`: kernels are found by names that we give them."""
    return _EXTERN.sub(r"\1", program)


def without_globals(program: str) -> str:
    """Without the block of global parameters: kernels that use it cannot be called."""
    return _GLOBALS.sub("", program)


def mended(program: str) -> str:
    """What no compiler takes as Slang 2026.12 emits it: a pointer made from the reference that load() returns, and tables
    that would be filled at run time."""
    program = re.sub(r"^(\s*[\w<>, ]+? \* \w+ = )\((\(\w[^;\n]*\)\.load<)", r"\1&(\2", program, flags=re.MULTILINE)
    return program.replace("__device__ static const FixedArray", "__device__ static constexpr FixedArray")


def without_idle_ballots(program: str) -> str:
    """Without the votes before branches whose outcome nothing reads. Those after branches, with `true` and `false`, stay: the
    lanes of the other branch wait for them."""
    uses = Counter(_TEMPORARY.findall(program))
    return _BALLOT.sub(lambda found: found.group() if uses[found.group(1)] > 1 else "", program)


def beyond_host(program: str, symbol: str) -> str:
    """The first thing in a kernel that the host cannot do; empty when there is none."""
    places = functions(program)
    for name in sorted(used_by(program, {symbol})):
        if name in places:
            found = _BEYOND.search(program, *places[name])
            if found:
                return found.group()
    return ""


def needs_fibers(program: str, symbol: str) -> bool:
    places = functions(program)
    return any(BARRIERS.search(program, *places[name]) for name in used_by(program, {symbol}) if name in places)


def trouble(program: str, kernel: EmittedKernel) -> str:
    """Why a kernel cannot be called, from its text alone."""
    if any(
        type_.rstrip().endswith("*") and name.startswith("KernelContext") for type_, name in kernel.parameters
    ) or any(type_.startswith("KernelContext") for type_, _ in kernel.parameters):
        return "it uses a mutable static variable of the module; make it static const, groupshared or a parameter"
    places = functions(program)
    for name in used_by(program, {kernel.symbol}):
        if name in places and _USES_GLOBALS.search(program, *places[name]):
            return "it uses a global uniform or buffer; pass it as a kernel parameter"
    return ""
