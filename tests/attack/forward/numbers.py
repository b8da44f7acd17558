"""Arithmetic on NumPy arrays of exactly the width of the type, one element for each invocation.

Floats carry a bound of how far a device may be from them: devices may round otherwise, contract, compute half in float and,
if `flush` is set, take subnormal numbers for 0. What such a difference would decide (a comparison, a cast to integers), and
what the languages leave undefined, marks the invocation as lost: it is not compared.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from .types import Scalar, base, is_struct, like, shape

Array = np.ndarray


@dataclass
class Value:
    """`a`: (lanes, *shape of the type); `e`: the bound in float64, of floats alone; `kids`: the fields of a struct."""

    ty: str
    a: Array = field(default_factory=lambda: np.empty(0))
    e: Array | None = None
    kids: list[Value] = field(default_factory=list)

    def copy(self) -> Value:
        if self.kids:
            return Value(self.ty, kids=[kid.copy() for kid in self.kids])
        return Value(self.ty, self.a.copy(), None if self.e is None else self.e.copy())


def wide(row: Scalar, a: Array) -> Array:
    """Exact for sums and products of two numbers of the type, or nearly so."""
    return a.astype(np.float64 if row.bits < 64 else np.longdouble)


class Numbers:
    """Operations of `lanes` invocations; `mask` says which of them take part in what is evaluated now."""

    def __init__(self, lanes: int, flush: bool = False):
        self.lanes = lanes
        self.flush = flush
        self.mask = np.ones(lanes, bool)
        self.lost = np.zeros(lanes, bool)

    def lose(self, where: Array) -> None:
        where = np.asarray(where)
        if where.ndim > 1:
            where = where.reshape(len(where), -1).any(1)
        self.lost |= where & self.mask

    def constant(self, ty: str, number: object) -> Value:
        row = base(ty)
        a = np.full((self.lanes, *shape(ty)), number, row.dtype)
        return Value(ty, a, np.zeros(a.shape) if row.kind == "f" else None)

    def spread(self, x: Value, ty: str) -> Value:
        """A scalar for each element of a vector or matrix."""
        want = (self.lanes, *shape(ty))
        if x.a.shape == want:
            return x
        a, e = (
            None if part is None else np.broadcast_to(part.reshape(self.lanes, *[1] * (len(want) - 1)), want)
            for part in (x.a, x.e)
        )
        assert a is not None
        return Value(ty, a, e)

    # ---- what floats become

    def about(self, x: Value) -> Array:
        """The bound of an operand: one that is subnormal may count as 0."""
        assert x.e is not None
        if not self.flush:
            return x.e
        size = np.abs(x.a.astype(np.float64))
        return x.e + np.where(size < base(x.ty).tiny, size, 0)

    def rounded(self, ty: str, exact: Array, e: Array, nonfinite: Array, units: float = 2.0) -> Value:
        """`nonfinite`: where an operand is an infinity or a NaN already."""
        row = base(ty)
        a = exact.astype(row.dtype)
        size = np.abs(exact).astype(np.float64)
        back = a.astype(exact.dtype) == exact
        e = e + np.where(back, 0, units * row.unit * np.maximum(size, row.tiny))
        if self.flush:
            e = e + np.where((size < row.tiny) & (size > 0), row.tiny, 0)
        bad = ~np.isfinite(a)
        self.lose(bad & (~nonfinite | (e > 0)))
        self.lose(~nonfinite & (size + e > row.largest))
        return Value(ty, a, np.where(bad, 0, e))

    def binary(self, op: str, x: Value, y: Value, ty: str) -> Value:
        x, y = self.spread(x, ty), self.spread(y, ty)
        row = base(ty)
        with np.errstate(all="ignore"):
            if row.kind == "f":
                return self._float(op, x, y, ty)
            return Value(ty, self._integer(op, x.a, y.a, row).astype(row.dtype))

    def _integer(self, op: str, a: Array, b: Array, row: Scalar) -> Array:
        match op:
            case "+":
                return a + b
            case "-":
                return a - b
            case "*":
                return a * b
            case "&":
                return a & b
            case "|":
                return a | b
            case "^":
                return a ^ b
            case "<<" | ">>":
                self.lose((b < 0) | (b >= row.bits))
                b = b & np.array(row.bits - 1, row.dtype)
                return a << b if op == "<<" else a >> b
        self.lose(b == 0)
        if row.kind == "i":
            self.lose((a == row.low) & (b == -1))
        b = np.where(b == 0, np.array(1, row.dtype), b)
        quotient = a // b
        quotient = quotient + ((quotient * b != a) & ((a < 0) != (b < 0))).astype(row.dtype)  # toward 0
        return quotient if op == "/" else a - quotient * b

    def _float(self, op: str, x: Value, y: Value, ty: str) -> Value:
        row = base(ty)
        a, b = wide(row, x.a), wide(row, y.a)
        ea, eb = self.about(x), self.about(y)
        odd = ~np.isfinite(x.a) | ~np.isfinite(y.a)
        if self.flush:  # Vulkan drivers may reckon without infinities
            self.lose(odd)
        size_a, size_b = np.abs(np.where(odd, 0, a)).astype(float), np.abs(np.where(odd, 1, b)).astype(float)
        if op in "+-*":
            exact = a + b if op == "+" else a - b if op == "-" else a * b
            self.lose(np.isnan(exact))  # Slang takes x - x for 0
            slack = size_a * eb + size_b * ea + ea * eb if op == "*" else ea + eb
            if self.flush:  # they may also put sums and products in another order
                slack = slack + 2 * row.unit * (size_a * size_b if op == "*" else size_a + size_b)
            return self.rounded(ty, exact, slack, odd)
        match op:
            case "/":
                self.lose(odd)
                self.lose(size_b <= eb)
                self.lose((size_b < 4 * row.tiny) | (size_b > row.largest / 8))
                least = np.where(size_b > eb, size_b - eb, 1)
                quotient = a / np.where(b == 0, 1, b)
                slack = (ea + np.abs(np.where(odd, 0, quotient)).astype(float) * eb) / least
                made = self.rounded(ty, quotient, slack, odd, 8)
                return Value(ty, made.a, self.inexact(made) if self.flush else made.e)
        return self._remainder(x, y, a, b, ea + eb)

    def inexact(self, x: Value) -> Array:
        """Of operations that devices may get wrong by some units even where the result is exact."""
        assert x.e is not None
        size = np.abs(np.where(np.isfinite(x.a), x.a, 0).astype(float))
        return np.maximum(x.e, 8 * base(x.ty).unit * size)

    def _remainder(self, x: Value, y: Value, a: Array, b: Array, e: Array) -> Value:
        row = base(x.ty)
        self.lose(~np.isfinite(x.a) | ~np.isfinite(y.a) | (np.abs(b) < 4 * row.tiny))
        b = np.where(np.abs(b) < 4 * row.tiny, 1, b)
        quotient = np.where(np.isfinite(a / b), a / b, 0.5).astype(np.float64)
        slack = 16 * row.unit * (np.abs(quotient) + 1) + e * (1 + np.abs(quotient)) / np.abs(b).astype(float)
        clear = np.trunc(quotient - slack) == np.trunc(quotient + slack)
        exact = np.zeros_like(clear) if self.flush else (e == 0)
        self.lose(~clear & ~exact)
        error = np.where(exact, 0, e * (1 + np.abs(quotient)) + 8 * row.unit * np.abs(a).astype(float))
        return self.rounded(x.ty, np.fmod(a, b), error, np.zeros_like(clear))

    # ---- comparisons

    def compare(self, op: str, x: Value, y: Value, ty: str) -> Value:
        """`ty`: bool, or a vector of bool."""
        row = base(x.ty)
        of = like(row.name, ty)
        x, y = self.spread(x, of), self.spread(y, of)
        with np.errstate(all="ignore"):
            if row.kind == "f":
                e = self.about(x) + self.about(y)
                self.lose((e > 0) & (np.abs(wide(row, x.a) - wide(row, y.a)) <= e))
            functions = {
                "<": np.less,
                "<=": np.less_equal,
                ">": np.greater,
                ">=": np.greater_equal,
                "==": np.equal,
                "!=": np.not_equal,
            }
            return Value(ty, functions[op](x.a, y.a))

    def chosen(self, c: Value, x: Value, y: Value, ty: str) -> Value:
        """Element by element x where c, else y."""
        x, y = self.spread(x, ty), self.spread(y, ty)
        where = c.a.reshape(c.a.shape + (1,) * (x.a.ndim - c.a.ndim))
        return Value(ty, np.where(where, x.a, y.a), None if x.e is None else np.where(where, x.e, y.e))  # type: ignore[arg-type]

    # ---- casts

    def cast(self, x: Value, name: str) -> Value:
        old, new, ty = base(x.ty), base(name), like(name, x.ty)
        with np.errstate(all="ignore"):
            if old.kind == "f" and new.kind == "f":
                if old is new:
                    return x
                odd = ~np.isfinite(x.a)
                self.lose(odd & (self.about(x) > 0))
                return self.rounded(ty, x.a.astype(np.longdouble), self.about(x), odd)
            if old.kind == "f":
                return Value(ty, self._whole(x, new))
            if new.kind == "f":
                exact = x.a.astype(np.longdouble)
                return self.rounded(ty, exact, np.zeros(exact.shape), np.zeros(exact.shape, bool))
            return Value(ty, x.a != 0 if new.kind == "b" else x.a.astype(new.dtype))

    def _whole(self, x: Value, new: Scalar) -> Array:
        e = self.about(x)
        a = x.a.astype(np.longdouble)
        if new.kind == "b":
            self.lose((e > 0) & (np.abs(a) <= e))
            return x.a != 0
        fits = (a - e > new.low - 1) & (a + e < new.high + 1) & np.isfinite(a)
        self.lose(~fits)
        a = np.where(fits, a, 0)
        self.lose(np.trunc(a - e) != np.trunc(a + e))
        whole = np.trunc(a)
        return whole.astype(np.int64 if new.kind == "i" else np.uint64).astype(new.dtype)

    def bits(self, x: Value, name: str) -> Value:
        """The same bits as another type of the same width."""
        old, new, ty = base(x.ty), base(name), like(name, x.ty)
        if old.kind == "f":
            self.lose((self.about(x) > 0) | np.isnan(x.a))
        a = np.ascontiguousarray(x.a).view(new.dtype)
        if new.kind == "f":
            self.lose(np.isnan(a))  # which NaN it is may change
        return Value(ty, a, np.zeros(a.shape) if new.kind == "f" else None)


def blend(mask: Array, new: Value, old: Value) -> Value:
    """new where the mask is set."""
    if is_struct(old.ty):
        return Value(old.ty, kids=[blend(mask, one, two) for one, two in zip(new.kids, old.kids, strict=True)])
    where = mask.reshape(mask.shape + (1,) * (old.a.ndim - 1))
    return Value(old.ty, np.where(where, new.a, old.a), None if old.e is None else np.where(where, new.e, old.e))  # type: ignore[arg-type]
