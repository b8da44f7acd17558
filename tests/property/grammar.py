"""Random Slang functions with a NumPy evaluation of each.

Bounds of every expression are tracked and kept so small that its value is exact in the type it is computed in: results
are compared bit by bit, with floats evaluated in float64 and integers in int64.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Scalar:
    name: str
    dtype: str
    kind: str  # f, i, u or b
    limit: int  # inputs are at most this, in units of 2^-fraction
    fraction: int  # binary digits after the point of inputs
    digits: int  # binary digits that are exact

    shape = ()

    @property
    def scalar(self) -> Scalar:
        return self


FLOAT, INT, UINT, BOOL = (
    Scalar("float", "f4", "f", 16, 2, 24), Scalar("int", "i4", "i", 50, 0, 31), Scalar("uint", "u4", "u", 100, 0, 32),
    Scalar("bool", "?", "b", 1, 0, 1),
)  # fmt: skip
SCALARS = (
    FLOAT, FLOAT, FLOAT, INT, INT, UINT, BOOL, Scalar("half", "f2", "f", 4, 0, 11), Scalar("double", "f8", "f", 1000, 5, 53),
    Scalar("int8_t", "i1", "i", 5, 0, 7), Scalar("uint8_t", "u1", "u", 9, 0, 8), Scalar("int16_t", "i2", "i", 50, 0, 15),
    Scalar("uint16_t", "u2", "u", 90, 0, 16), Scalar("int64_t", "i8", "i", 2**40, 0, 52), Scalar("uint64_t", "u8", "u", 2**40, 0, 52),
)  # fmt: skip


@dataclass(frozen=True)
class Block:
    """A vector, matrix or array of scalars."""

    form: str  # vector, matrix, array
    scalar: Scalar
    shape: tuple[int, ...]

    @property
    def name(self) -> str:
        if self.form == "array":
            return self.scalar.name + "".join(f"[{n}]" for n in reversed(self.shape))
        return f"{self.form}<{self.scalar.name},{','.join(map(str, self.shape))}>"


@dataclass(frozen=True)
class Struct:
    name: str
    fields: tuple[tuple[str, Any], ...]
    shape = ()

    @property
    def source(self) -> str:
        return f"struct {self.name} {{ " + " ".join(f"{t.name} {n};" for n, t in self.fields) + " }"


Type = Scalar | Block | Struct
INNER = Struct("Inner", (("k", INT), ("w", Block("vector", FLOAT, (2,)))))
STRUCTS = (
    INNER,
    Struct("Pair", (("x", FLOAT), ("n", INT))),
    Struct("Deep", (("inner", INNER), ("v", Block("vector", FLOAT, (3,))), ("flag", UINT))),
)


def places(type_: Type, text: str, path: tuple[Any, ...] = ()) -> Iterator[tuple[str, tuple[Any, ...], Scalar]]:
    """(Slang text, path of fields and indices, scalar) of every scalar inside a value."""
    if isinstance(type_, Struct):
        for name, inner in type_.fields:
            yield from places(inner, f"{text}.{name}", (*path, name))
    elif isinstance(type_, Block):
        for index in np.ndindex(type_.shape):
            yield text + "".join(f"[{i}]" for i in index), (*path, *index), type_.scalar
    else:
        yield text, path, type_


def component(value: Any, path: tuple[Any, ...]) -> np.ndarray:
    """One scalar of a value: structs are dicts; arrays have the call's dimensions in front."""
    names = [step for step in path if isinstance(step, str)]
    for name in names:
        value = value[name]
    return value[(..., *path[len(names) :])] if len(path) > len(names) else value


# --- expressions


@dataclass(frozen=True)
class Expression:
    text: str
    scalar: Scalar
    bound: int  # |value| <= bound, in units of 2^-fraction
    fraction: int
    value: Callable[[dict[str, Any]], np.ndarray] = field(repr=False)

    def fits(self) -> bool:
        return self.bound < 2**self.scalar.digits


def leaf(text: str, parameter: str, path: tuple[Any, ...], scalar: Scalar) -> Expression:
    def value(env: dict[str, Any]) -> np.ndarray:
        found = component(env[parameter], path)
        return found.astype(bool if scalar.kind == "b" else np.float64 if scalar.kind == "f" else np.int64)

    return Expression(text, scalar, scalar.limit, scalar.fraction, value)


class Grammar:
    def __init__(self, rng: random.Random, leaves: list[Expression]) -> None:
        self.rng, self.leaves = rng, leaves

    def make(self, scalar: Scalar, depth: int) -> Expression:
        """An expression of that type which is exact in it."""
        if depth > 0:
            for _ in range(4):
                made = self._boolean(depth) if scalar.kind == "b" else self._number(scalar, depth)
                if made is not None and made.fits():
                    return made
        return self._leaf(scalar)

    def _leaf(self, scalar: Scalar) -> Expression:
        own = [e for e in self.leaves if e.scalar == scalar]
        if own and self.rng.random() < 0.85:
            return self.rng.choice(own)
        casts = [c for c in (self._cast(scalar, e) for e in self.leaves) if c is not None and c.fits()]
        if casts and self.rng.random() < 0.85:
            return self.rng.choice(casts)
        number = self.rng.randint(0, min(scalar.limit, 3))
        text = ("true" if number else "false") if scalar.kind == "b" else f"{scalar.name}({number})"
        plain = bool(number) if scalar.kind == "b" else float(number) if scalar.kind == "f" else number
        return Expression(text, scalar, number, 0, lambda env: np.asarray(plain))

    def _cast(self, scalar: Scalar, given: Expression) -> Expression | None:
        """A conversion that loses nothing."""
        source = given.scalar
        if source == scalar or scalar.kind == "b" or (source.kind == "f" and scalar.kind != "f"):
            return None
        if scalar.kind == "u" and source.kind == "i":
            return None
        dtype = np.float64 if scalar.kind == "f" else np.int64
        return Expression(
            f"{scalar.name}({given.text})",
            scalar,
            given.bound,
            given.fraction,
            lambda env: given.value(env).astype(dtype),
        )

    def _number(self, scalar: Scalar, depth: int) -> Expression | None:
        a, b = self.make(scalar, depth - 1), self.make(scalar, depth - 1)
        step = self.rng.choice(("+", "+", "-", "*", "*", "min", "max", "abs", "neg", "?:", "&", "^"))
        if step == "?:":
            test = self._boolean(depth - 1)
            return self._join(scalar, f"({test.text} ? {a.text} : {b.text})", a, b, max,
                              lambda env: np.where(test.value(env), a.value(env), b.value(env)))  # fmt: skip
        if step in ("min", "max"):
            ufunc = np.minimum if step == "min" else np.maximum
            return self._join(
                scalar, f"{step}({a.text}, {b.text})", a, b, max, lambda env: ufunc(a.value(env), b.value(env))
            )
        if step in ("abs", "neg"):
            if scalar.kind == "u":
                return None
            text = f"abs({a.text})" if step == "abs" else f"-{a.text}"
            unary = np.abs if step == "abs" else np.negative
            return Expression(f"{scalar.name}({text})", scalar, a.bound, a.fraction, lambda env: unary(a.value(env)))
        if step in ("&", "^"):
            if scalar.kind != "u":
                return None
            bits = np.bitwise_and if step == "&" else np.bitwise_xor
            top = 2 ** max(a.bound.bit_length(), b.bound.bit_length()) - 1
            return Expression(f"{scalar.name}({a.text} {step} {b.text})", scalar, top, 0,
                              lambda env: bits(a.value(env), b.value(env)))  # fmt: skip
        return self._arithmetic(scalar, step, a, b)

    def _arithmetic(self, scalar: Scalar, step: str, a: Expression, b: Expression) -> Expression | None:
        text = f"{scalar.name}({a.text} {step} {b.text})"
        if step == "*":
            return Expression(text, scalar, a.bound * b.bound, a.fraction + b.fraction,
                              lambda env: a.value(env) * b.value(env))  # fmt: skip
        if step == "-" and scalar.kind == "u":
            return None
        ufunc = np.add if step == "+" else np.subtract
        return self._join(scalar, text, a, b, sum, lambda env: ufunc(a.value(env), b.value(env)))

    def _join(self, scalar: Scalar, text: str, a: Expression, b: Expression, merge: Any, value: Any) -> Expression:
        fraction = max(a.fraction, b.fraction)
        bounds = [e.bound << (fraction - e.fraction) for e in (a, b)]
        return Expression(text, scalar, merge(bounds), fraction, value)

    def _boolean(self, depth: int) -> Expression:
        if depth <= 0:
            return self._leaf(BOOL)
        step = self.rng.choice(("<", "<=", "==", "&&", "||", "!"))
        if step == "!":
            inner = self._boolean(depth - 1)
            return Expression(f"(!{inner.text})", BOOL, 1, 0, lambda env: ~inner.value(env))
        if step in ("&&", "||"):
            a, b = self._boolean(depth - 1), self._boolean(depth - 1)
            logic = np.logical_and if step == "&&" else np.logical_or
        else:
            scalar = self.rng.choice([e.scalar for e in self.leaves if e.scalar.kind != "b"] or [INT])
            a, b = self.make(scalar, depth - 1), self.make(scalar, depth - 1)
            logic = {"<": np.less, "<=": np.less_equal, "==": np.equal}[step]
        return Expression(f"({a.text} {step} {b.text})", BOOL, 1, 0, lambda env: logic(a.value(env), b.value(env)))


# --- functions


@dataclass(frozen=True)
class Parameter:
    name: str
    type: Any
    io: str  # in, out, inout


@dataclass(frozen=True)
class Function:
    name: str
    parameters: tuple[Parameter, ...]
    result: Any  # a type, or None
    source: str
    outputs: dict[str, list[tuple[tuple[Any, ...], Expression]]] = field(repr=False)

    def scalars(self) -> set[str]:
        """Names of all scalar types in it."""
        types = [p.type for p in self.parameters] + ([self.result] if self.result is not None else [])
        return {scalar.name for type_ in types for _, _, scalar in places(type_, "")}

    def evaluate(self, env: dict[str, Any], call_shape: tuple[int, ...]) -> dict[str, Any]:
        """Values of the outputs ("return" for the result), with the call's dimensions in front."""
        types = {p.name: p.type for p in self.parameters} | {"return": self.result}
        found: dict[str, Any] = {}
        for name, parts in self.outputs.items():
            found[name] = blank(types[name], call_shape)
            for path, expression in parts:
                component(found[name], path)[...] = expression.value(env)
        return found


def blank(type_: Type, lead: tuple[int, ...]) -> Any:
    """Zeros of a type, with dimensions in front."""
    if isinstance(type_, Struct):
        return {name: blank(inner, lead) for name, inner in type_.fields}
    return np.zeros((*lead, *type_.shape), type_.scalar.dtype)


def draw_type(rng: random.Random) -> Type:
    form = rng.choice(("scalar", "scalar", "scalar", "vector", "vector", "matrix", "array", "struct"))
    if form == "scalar":
        return rng.choice(SCALARS)
    if form == "struct":
        return rng.choice(STRUCTS)
    if form == "matrix":
        return Block("matrix", FLOAT, rng.choice(((2, 3), (3, 3), (4, 2))))
    if form == "vector":
        return Block("vector", rng.choice(SCALARS), (rng.choice((2, 3, 4)),))
    return Block("array", rng.choice((FLOAT, FLOAT, INT, UINT)), rng.choice(((2,), (3,), (5,), (2, 3))))


def draw_function(rng: random.Random, name: str) -> Function:
    parameters = []
    for i in range(rng.randint(1, 3)):
        io = rng.choice(("in", "in", "in", "in", "out", "inout")) if i else rng.choice(("in", "in", "in", "inout"))
        parameters.append(Parameter(f"p{i}", draw_type(rng), io))
    writes = any(p.io != "in" for p in parameters)
    result = None if writes and rng.random() < 0.5 else draw_type(rng)
    leaves = [
        leaf(text, p.name, path, scalar)
        for p in parameters
        if p.io != "out"
        for text, path, scalar in places(p.type, p.name)
    ]
    grammar = Grammar(rng, leaves)
    lines, stores = [], []
    outputs: dict[str, list[tuple[tuple[Any, ...], Expression]]] = {}
    for target, type_ in [(p.name, p.type) for p in parameters if p.io != "in"] + (
        [("return", result)] if result else []
    ):
        lines.append(f"    {type_.name} _{target};")
        outputs[target] = []
        for text, path, scalar in places(type_, f"_{target}"):
            expression = grammar.make(scalar, rng.randint(0, 3))
            lines.append(f"    {text} = {expression.text};")
            outputs[target].append((path, expression))
        stores.append("    return _return;" if target == "return" else f"    {target} = _{target};")
    head = ", ".join(f"{'' if p.io == 'in' else p.io + ' '}{p.type.name} {p.name}" for p in parameters)
    source = f"{result.name if result else 'void'} {name}({head})\n{{\n" + "\n".join(lines + stores) + "\n}\n"
    return Function(name, tuple(parameters), result, source, outputs)


def draw_functions(seed: int, count: int) -> list[Function]:
    return [draw_function(random.Random(f"{seed}:{i}"), f"drawn_{i}") for i in range(count)]


def module_source(functions: list[Function]) -> str:
    return "\n".join(s.source for s in STRUCTS) + "\n" + "\n".join(f.source for f in functions)
