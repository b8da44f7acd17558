"""What it takes to compute statements for all lanes, whether they need it or not."""

from __future__ import annotations

from .counters import is_counter
from .tree import NUMBERS, Expr, Stmt, arguments_of, is_native, is_vector
from .varying import BEHIND, Analysis

DIRECT = frozenset(
    "F32_min F32_max I32_min I32_max U32_min U32_max F32_sqrt F32_floor F32_ceil F32_trunc F32_abs F32_frac".split()
)
"""Functions with a form for lanes; others are called for one lane after the other."""
COMPARISONS = ("<", ">", "<=", ">=", "==", "!=")
HEAVY = 1 << 16
"""The weight of what is only done for lanes that need it."""
_DIVISION = 4
"""That of a division."""


def weight_of(body: tuple[Stmt, ...], analysis: Analysis) -> int:
    """Operations of all lanes at once."""
    total = 0
    for s in body:
        if s.kind == "if":
            total += 2 + weight_of(s.body, analysis) + weight_of(s.other, analysis)
        elif s.kind in ("break", "continue"):
            total += 1
        elif s.kind == "declare":
            total += 0 if is_native(s.type) else HEAVY
        elif s.kind == "assign" and s.place is not None and s.place.kind == "name" and analysis.shape(s.place) != BEHIND:
            total += 1
        else:
            return HEAVY
        total += 0 if s.value is None else _weight(s.value, analysis)
        if total >= HEAVY:
            return HEAVY
    return total


def _weight(e: Expr, analysis: Analysis) -> int:
    inner = sum(_weight(kid, analysis) for kid in e.kids)
    if e.kind in ("name", "literal"):
        return 0 if e.kind == "literal" or analysis.shape(e) != BEHIND else HEAVY
    if e.kind == "member":
        return inner if e.by != "->" else 0 if e.kids[0].kind == "name" else HEAVY
    if e.kind == "index":
        is_row = e.kids[1].kind == "name" and is_counter(e.kids[1].text) and analysis.is_stored(e.kids[0])
        return inner if is_row and analysis.types.of(e.kids[0]).startswith("FixedArray<") else HEAVY
    type = analysis.types.of(e)
    others = () if e.text in COMPARISONS else e.kids
    if not is_native(type) or any(analysis.types.of(kid) not in (type, "bool") for kid in others):
        return HEAVY
    parts = int(arguments_of(type)[1]) if is_vector(type) else 1
    return inner + parts * (_DIVISION if e.text == "/" else 1) if _fits(e, type) else HEAVY


def _fits(e: Expr, type: str) -> bool:
    """Whether lanes compute it at once, without a place that may not be there or a number that may be 0."""
    if e.kind == "unary":
        return e.text in ("-", "!", "~")
    if e.kind == "binary":
        return type in NUMBERS[:2] if e.text == "/" else not e.by and e.text in ("+", "-", "*", "&", "|", "^", "&&", "||", *COMPARISONS)
    return e.kind == "choice" or (e.kind == "call" and (e.text in DIRECT or e.text in ("_slang_select", type)))
