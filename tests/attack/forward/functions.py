"""Slang's functions of numbers, on the arrays of numbers.py. FUNCTIONS says which types each takes and what it gives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .numbers import Array, Numbers, Value, wide
from .types import base, like

Apply = Callable[..., Value]


@dataclass(frozen=True)
class Function:
    arity: int
    kinds: str  # of the scalars that it takes: i u f
    apply: Apply  # of Numbers, the arguments
    gives: str = ""  # a scalar's name if it is not that of the arguments
    names: tuple[str, ...] = ()  # the only scalar types that it takes
    text: str = ""  # its name in Slang, if the switch has another


def _least(n: Numbers, x: Value, y: Value, less: bool = True) -> Value:
    pick = np.minimum if less else np.maximum
    if x.e is None or y.e is None:
        return Value(x.ty, pick(x.a, y.a))
    n.lose(np.isnan(x.a) | np.isnan(y.a))
    e = np.maximum(n.about(x), n.about(y))
    signs = (x.a == 0) & (y.a == 0) & (np.signbit(x.a) != np.signbit(y.a))  # -0 or 0
    return Value(x.ty, pick(x.a, y.a), np.where(signs, base(x.ty).tiny, e))


def _most(n: Numbers, x: Value, y: Value) -> Value:
    return _least(n, x, y, False)


def _clamp(n: Numbers, x: Value, low: Value, high: Value) -> Value:
    apart = 0 if low.e is None or high.e is None else n.about(low) + n.about(high)
    with np.errstate(all="ignore"):
        n.lose(
            ~(low.a <= high.a)
            | ((apart > 0) & (np.abs(high.a.astype(np.longdouble) - low.a.astype(np.longdouble)) <= apart))
        )
    return _least(n, _most(n, x, low), high)


def _saturate(n: Numbers, x: Value) -> Value:
    name = base(x.ty).name
    return _clamp(n, x, n.spread(n.constant(name, 0), x.ty), n.spread(n.constant(name, 1), x.ty))


def _abs(n: Numbers, x: Value) -> Value:
    if n.flush and base(x.ty).kind == "i":  # Vulkan drivers take what it gives for positive
        n.lose(x.a == base(x.ty).low)
    with np.errstate(all="ignore"):
        return Value(x.ty, np.abs(x.a), None if x.e is None else n.about(x))


def _sign(n: Numbers, x: Value) -> Value:
    if x.e is not None:
        n.lose(np.isnan(x.a) | ((n.about(x) > 0) & (np.abs(x.a) <= n.about(x))))
    return Value(like("i32", x.ty), (x.a > 0).astype(np.int32) - (x.a < 0).astype(np.int32))


def _to_whole(pick: Callable[[Array], Array]) -> Apply:
    def apply(n: Numbers, x: Value) -> Value:
        e = n.about(x)
        a = wide(base(x.ty), x.a)
        n.lose((e > 0) & ~(pick(a - e) == pick(a + e)))
        made = pick(x.a)
        zero = (made == 0) & (x.a != 0)  # its sign
        return Value(x.ty, made, np.where(zero, base(x.ty).tiny, 0.0))

    return apply


def _frac(n: Numbers, x: Value) -> Value:
    n.lose(~np.isfinite(x.a))
    with np.errstate(all="ignore"):
        whole = _to_whole(np.floor)(n, x)
        return n.binary("-", x, Value(x.ty, whole.a, np.zeros(x.a.shape)), x.ty)


def _fmod(n: Numbers, x: Value, y: Value) -> Value:
    return n.binary("%", x, y, x.ty)


def _mad(n: Numbers, x: Value, y: Value, z: Value) -> Value:
    return n.binary("+", n.binary("*", x, y, x.ty), z, x.ty)


def _sqrt(n: Numbers, x: Value) -> Value:
    assert x.e is not None
    e = n.about(x)
    row = base(x.ty)
    n.lose(~np.isfinite(x.a) | (x.a - e < 4 * row.tiny))
    safe = np.where(np.isfinite(x.a) & (x.a > 4 * row.tiny), wide(row, x.a), 1)
    root = np.sqrt(safe)
    made = n.rounded(x.ty, root, (e / root).astype(float), np.zeros(x.a.shape, bool), 8)
    return Value(x.ty, made.a, n.inexact(made))


def _isnan(n: Numbers, x: Value) -> Value:
    return Value(like("b", x.ty), np.isnan(x.a))


def _isinf(n: Numbers, x: Value) -> Value:
    return Value(like("b", x.ty), np.isinf(x.a))


def _isfinite(n: Numbers, x: Value) -> Value:
    return Value(like("b", x.ty), np.isfinite(x.a))


def _step(n: Numbers, edge: Value, x: Value) -> Value:
    n.lose(np.isnan(edge.a) | np.isnan(x.a))
    over = n.compare(">=", x, edge, like("b", x.ty))
    return Value(x.ty, over.a.astype(x.a.dtype), np.zeros(x.a.shape))


def _and(n: Numbers, x: Value, y: Value) -> Value:
    return Value(x.ty, x.a & y.a)


def _or(n: Numbers, x: Value, y: Value) -> Value:
    return Value(x.ty, x.a | y.a)


def _unsigned(x: Value) -> Array:
    return x.a.view(np.dtype(f"u{base(x.ty).bits // 8}"))


def _countbits(n: Numbers, x: Value) -> Value:
    bits = _unsigned(x).astype(np.uint64)
    return Value(like("u32", x.ty), sum((bits >> np.uint64(at)) & np.uint64(1) for at in range(64)).astype(np.uint32))  # type: ignore[union-attr]


def _reversebits(n: Numbers, x: Value) -> Value:
    width = base(x.ty).bits
    bits = _unsigned(x).astype(np.uint64)
    made = sum(((bits >> np.uint64(at)) & np.uint64(1)) << np.uint64(width - 1 - at) for at in range(width))
    return Value(x.ty, made.astype(f"u{width // 8}").view(x.a.dtype))  # type: ignore[union-attr]


def _first(high: bool) -> Apply:
    def apply(n: Numbers, x: Value) -> Value:
        row = base(x.ty)
        bits = _unsigned(x).astype(np.uint64)
        if high and row.kind == "i":  # of a negative number the highest 0
            flipped = (~_unsigned(x)).astype(np.uint64)
            bits = np.where(x.a < 0, flipped, bits)
        if row.bits < 32:
            n.lose(bits == 0)  # all bits of which type
        made = np.full(x.a.shape, 0xFFFFFFFF, np.uint32)
        for at in range(row.bits) if high else reversed(range(row.bits)):
            made = np.where((bits >> np.uint64(at)) & np.uint64(1) != 0, np.uint32(at), made)
        return Value(like("u32", x.ty), made)

    return apply


def _from_half(n: Numbers, x: Value) -> Value:
    low = Value(like("u16", x.ty), (x.a & np.uint32(0xFFFF)).astype(np.uint16))
    return n.cast(n.bits(low, "f16"), "f32")


def _to_half(n: Numbers, x: Value) -> Value:
    half = n.cast(x, "f16")
    bits = n.bits(half, "u16")
    return Value(like("u32", x.ty), bits.a.astype(np.uint32))


def _any(n: Numbers, x: Value) -> Value:
    return Value("b", (x.a if x.a.dtype == bool else n.cast(x, "b").a).any(1))


def _all(n: Numbers, x: Value) -> Value:
    return Value("b", (x.a if x.a.dtype == bool else n.cast(x, "b").a).all(1))


def dot(n: Numbers, x: Value, y: Value) -> Value:
    name = base(x.ty).name
    products = n.binary("*", x, y, x.ty)
    parts = [
        Value(name, products.a[:, at], None if products.e is None else products.e[:, at])
        for at in range(products.a.shape[1])
    ]
    total = parts[0]
    for part in parts[1:]:
        total = n.binary("+", total, part, name)
    if total.e is not None:  # in any order
        assert products.e is not None
        total.e = total.e + 4 * base(name).unit * np.abs(np.where(np.isfinite(products.a), products.a, 0)).astype(
            float
        ).sum(1)
    return total


WIDE = ("i32", "u32", "i64", "u64")
NARROW = ("i8", "u8", "i16", "u16")

FUNCTIONS = {
    "min": Function(2, "iuf", _least),
    "max": Function(2, "iuf", _most),
    "clamp": Function(3, "iuf", _clamp),
    "abs": Function(1, "if", _abs),
    "sign": Function(1, "if", _sign, "i32"),
    "mad": Function(3, "f", _mad),
    "mad_int": Function(3, "iu", _mad, text="mad"),
    "saturate": Function(1, "f", _saturate),
    "floor": Function(1, "f", _to_whole(np.floor)),
    "ceil": Function(1, "f", _to_whole(np.ceil)),
    "trunc": Function(1, "f", _to_whole(np.trunc)),
    "round": Function(1, "f", _to_whole(np.rint)),
    "frac": Function(1, "f", _frac),
    "fmod": Function(2, "f", _fmod),
    "sqrt": Function(1, "f", _sqrt),
    "isnan": Function(1, "f", _isnan, "b"),
    "isinf": Function(1, "f", _isinf, "b"),
    "countbits": Function(1, "iu", _countbits, "u32", WIDE),
    "countbits_narrow": Function(1, "iu", _countbits, "u32", NARROW, "countbits"),
    "reversebits": Function(1, "iu", _reversebits, "", WIDE),
    "reversebits_narrow": Function(1, "iu", _reversebits, "", NARROW, "reversebits"),
    "firstbithigh": Function(1, "iu", _first(True), "u32", ("u32", "i32")),
    "firstbithigh_64": Function(1, "iu", _first(True), "u32", ("u64", "i64"), "firstbithigh"),
    "firstbithigh_narrow": Function(1, "iu", _first(True), "u32", NARROW, "firstbithigh"),
    "firstbitlow": Function(1, "iu", _first(False), "u32", WIDE),
    "firstbitlow_narrow": Function(1, "iu", _first(False), "u32", NARROW, "firstbitlow"),
    "step": Function(2, "f", _step),
    "isfinite": Function(1, "f", _isfinite, "b"),
    "and": Function(2, "b", _and),
    "or": Function(2, "b", _or),
    "f16tof32": Function(1, "u", _from_half, "f32", ("u32",)),
    "f32tof16": Function(1, "f", _to_half, "u32", ("f32",)),
}
REDUCTIONS: dict[str, Apply] = {"any": _any, "all": _all}
