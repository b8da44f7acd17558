"""The many ways in which one value can be passed to a call: containers, layouts, ranks."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from grammar import Block, Scalar, Struct, Type

import slangpy as spy

MATH = {"float": "float", "int": "int", "uint": "uint", "bool": "bool", "half": "float16_t", "double": "double",
        "int64_t": "int64_t", "uint64_t": "uint64_t"}  # fmt: skip
XYZW = "xyzw"
LAYOUTS = ("sliced", "reversed", "transposed", "broadcast", "swapped", "frozen")


@dataclass(frozen=True)
class Slot:
    """How one value is passed: as what, with how many of the call's dimensions, which of them of size 1."""

    kind: str
    rank: int = 0
    ones: tuple[bool, ...] = ()
    strided: bool = False
    fields: tuple[tuple[str, Slot], ...] = ()

    def lead(self, sizes: tuple[int, ...]) -> tuple[int, ...]:
        own = sizes[len(sizes) - self.rank :]
        return tuple(1 if one else size for size, one in zip(own, self.ones, strict=True))

    def leads(self, sizes: tuple[int, ...]) -> list[tuple[int, ...]]:
        """Sizes of all containers in it."""
        if self.fields:
            return [lead for _, slot in self.fields for lead in slot.leads(sizes)]
        return [self.lead(sizes)]

    def has_lists(self) -> bool:
        return any(s.has_lists() for _, s in self.fields) or (
            self.rank > 0 and self.kind in ("list", "vectors", "dicts")
        )


# --- which slots there are


def draw_input(rng: random.Random, type_: Type, most: int) -> Slot:
    if isinstance(type_, Struct):
        kind = rng.choice(("dict", "dict", "dict", "typed", "dicts" if most else "dict"))
        if kind == "dict":
            return Slot("dict", fields=tuple((name, draw_input(rng, inner, most)) for name, inner in type_.fields))
        rank = 1 if kind == "dicts" else rng.randint(0, most)
        return _ranked(rng, kind, rank)
    rank = rng.choice((0, most, most, rng.randint(0, most)))
    if isinstance(type_, Scalar):
        zero, more = (
            ("number", "number", "scalar", "numpy", "tensor", "ref"),
            ("list", "numpy", "numpy", "tensor", "tensor"),
        )
    elif type_.form == "vector":
        if rng.random() < 0.15:
            parts = tuple((XYZW[i], draw_input(rng, type_.scalar, most)) for i in range(type_.shape[0]))
            return Slot("dict", fields=parts)
        zero, more = (
            ("list", "numpy", "tensor", "typed", "widened", "ref"),
            ("numpy", "tensor", "typed", "typed", "vectors"),
        )
        if type_.scalar.name in MATH:
            zero += ("math", "math", "math")
    elif type_.form == "matrix":
        zero, more = ("math", "list", "numpy", "tensor", "typed"), ("numpy", "tensor", "typed")
    else:
        zero, more = ("list", "numpy", "tensor", "typed"), ("numpy", "tensor", "list", "typed")
    kind = rng.choice(zero if rank == 0 else more)
    if kind == "vectors":
        rank, kind = 1, "vectors" if isinstance(type_, Block) and type_.scalar.name in MATH else "numpy"
    return _ranked(rng, kind, rank)


def _ranked(rng: random.Random, kind: str, rank: int) -> Slot:
    ones = tuple(rng.random() < 0.15 for _ in range(rank))
    return Slot(kind, rank, ones, rank > 0 and rng.random() < 0.5)


def draw_output(rng: random.Random, type_: Type, rank: int) -> Slot:
    """A place to write to; it has all dimensions of the call."""
    kinds = ["typed"] if isinstance(type_, Struct) else ["numpy", "tensor"]
    if isinstance(type_, Struct):
        kinds.append("dict")
    elif isinstance(type_, Block):
        kinds.append("typed")
    if rank == 0:
        kinds += ["ref", "ref"]
    kind = rng.choice(kinds)
    if kind == "dict":
        assert isinstance(type_, Struct)
        return Slot("dict", fields=tuple((name, draw_output(rng, inner, rank)) for name, inner in type_.fields))
    return Slot(kind, rank, (False,) * rank, rank > 0 and rng.random() < 0.4)


# --- values in them


def draw_values(rng: np.random.Generator, type_: Type, lead: tuple[int, ...]) -> Any:
    """Random values of a type within its limits."""
    if isinstance(type_, Struct):
        return {name: draw_values(rng, inner, lead) for name, inner in type_.fields}
    scalar = type_.scalar
    low = -scalar.limit if scalar.kind in "fi" else 0
    units = rng.integers(low, scalar.limit, (*lead, *type_.shape), endpoint=True)
    return np.asarray(units / 2.0**scalar.fraction if scalar.kind == "f" else units).astype(scalar.dtype)


def _laid_out(array: np.ndarray, layout: str, rank: int, is_numpy: bool, writes: bool) -> np.ndarray:
    """The same values with other strides; `broadcast` makes those along the first dimension equal."""
    if array.ndim == 0 or layout == "plain":
        return array.copy()
    if layout == "reversed":
        return array[::-1].copy()[::-1]
    if layout == "transposed":
        return np.moveaxis(np.moveaxis(array, 0, rank - 1).copy(), rank - 1, 0)
    if layout == "broadcast" and not writes and array.shape[0] > 0:
        return np.broadcast_to(array[:1].copy(), array.shape)
    if layout == "swapped" and is_numpy and not writes:
        return array.astype(array.dtype.newbyteorder())
    if layout == "frozen" and is_numpy and not writes:
        frozen = array.copy()
        frozen.flags.writeable = False
        return frozen
    return np.repeat(array, 2, axis=0)[::2]


class Passer:
    """Makes arguments for the slots of one case, and reads what was written to them."""

    def __init__(self, device: Any, module: Any, sizes: tuple[int, ...], layout: str, seed: int) -> None:
        self.device, self.module, self.sizes, self.layout = device, module, sizes, layout
        self.rng = np.random.default_rng(seed)

    def make(self, slot: Slot, type_: Any, writes: bool = False) -> tuple[Any, Any]:
        """(argument, its values as an array or dict of arrays with the slot's dimensions in front)."""
        if slot.kind == "dict":
            types = dict(type_.fields) if isinstance(type_, Struct) else {name: type_.scalar for name, _ in slot.fields}
            made = {name: self.make(inner, types[name], writes) for name, inner in slot.fields}
            argument = {name: pair[0] for name, pair in made.items()}
            return argument, {name: pair[1] for name, pair in made.items()}
        values = draw_values(self.rng, type_, slot.lead(self.sizes))
        if slot.kind in ("numpy", "tensor", "typed"):
            return self._container(slot, type_, values, writes)
        return self._host(slot.kind, type_, values)

    def _host(self, kind: str, type_: Any, values: Any) -> tuple[Any, Any]:
        if kind == "ref":
            return spy.ValueRef(plain(type_, values)), values
        if kind == "scalar":
            return values[()], values
        if kind == "widened":
            values = np.full_like(values, values.flat[0])
            return values.flat[0].item(), values
        if kind == "math":
            return math_value(type_, values), values
        if kind == "vectors":
            return [math_value(type_, row) for row in values], values
        if kind == "dicts":
            return [plain(type_, pick(values, i)) for i in range(len(next(flat(values))))], values
        return values.tolist(), values  # number, list

    def _container(self, slot: Slot, type_: Any, values: Any, writes: bool) -> tuple[Any, Any]:
        layout = self.layout if slot.strided else "plain"
        if isinstance(type_, Struct):
            values = self._structured(type_, values, slot.lead(self.sizes))
            if slot.strided and layout in ("swapped", "frozen"):
                layout = "sliced"
        if slot.kind == "numpy":
            array = _laid_out(values, layout, slot.rank, True, writes)
            return array, array.astype(array.dtype.newbyteorder("="))
        array = _laid_out(values, layout, slot.rank, False, writes)
        tensor = self._tensor(slot, type_, array, layout if not (writes and layout == "broadcast") else "sliced")
        return tensor, (unpack(type_, array) if isinstance(type_, Struct) else np.array(array))

    def _tensor(self, slot: Slot, type_: Any, array: np.ndarray, layout: str) -> Any:
        name = type_.name if slot.kind == "typed" else None

        def upload(content: np.ndarray) -> Any:
            if name is None:
                return spy.Tensor.from_numpy(self.device, content)
            element = self.module[name] if isinstance(type_, Struct) else name
            return spy.Tensor.from_numpy(self.device, np.array(content, order="C"), target_slang_dtype=element)

        rank = slot.rank
        if layout == "plain" or rank == 0 or array.shape[0] == 0:
            return upload(array)
        if layout == "reversed":
            return upload(array[::-1])[::-1]
        if layout == "transposed":
            order = [*range(1, rank), 0]
            tensor = upload(np.moveaxis(array, 0, rank - 1))
            back = [order.index(i) for i in range(rank)]
            return tensor.permute(*back, *range(rank, tensor.ndim))
        if layout == "broadcast":
            return upload(array[:1]).broadcast_to(tuple(array.shape[: len(upload(array[:1]).shape)]))
        return upload(np.repeat(array, 2, axis=0))[::2]

    def _structured(self, type_: Struct, values: Any, lead: tuple[int, ...]) -> np.ndarray:
        dtype = spy.Tensor.zeros(self.device, (1,), dtype=self.module[type_.name]).to_numpy(structured=True).dtype
        array = np.zeros(lead, dtype)
        store(array, values)
        return array

    def read(self, slot: Slot, type_: Any, argument: Any) -> Any:
        """What an output holds after the call, in the form of `grammar.blank`."""
        if slot.kind == "dict":
            return {name: self.read(inner, dict(type_.fields)[name], argument[name]) for name, inner in slot.fields}
        return unpack(type_, argument.value if slot.kind == "ref" else argument)


def flat(values: Any) -> Iterator[np.ndarray]:
    if isinstance(values, dict):
        for inner in values.values():
            yield from flat(inner)
    else:
        yield values


def pick(values: Any, index: int) -> Any:
    return {k: pick(v, index) for k, v in values.items()} if isinstance(values, dict) else values[index]


def store(array: np.ndarray, values: dict[str, Any]) -> None:
    for name, inner in values.items():
        if isinstance(inner, dict):
            store(array[name], inner)
        else:
            array[name] = inner


def math_value(type_: Any, values: np.ndarray) -> Any:
    """The spy.math class of a vector or matrix type."""
    name = MATH[type_.scalar.name] + "x".join(map(str, type_.shape))
    return getattr(spy, name)(values.reshape(-1).tolist())


def plain(type_: Any, values: Any) -> Any:
    """Python numbers, vectors, lists and dicts."""
    if isinstance(type_, Struct):
        return {name: plain(inner, values[name]) for name, inner in type_.fields}
    if isinstance(type_, Block) and type_.form != "array" and type_.scalar.name in MATH:
        return math_value(type_, values)
    return values.tolist()


def unpack(type_: Any, value: Any) -> Any:
    """A result in any form as an array, or as a dict of arrays for structs."""
    if isinstance(value, spy.Tensor):
        value = value.to_numpy(structured=True) if isinstance(type_, Struct) else value.to_numpy()
    if isinstance(type_, Struct):
        return {name: unpack(inner, value[name]) for name, inner in type_.fields}
    if isinstance(value, np.ndarray):
        return value
    return np.array(_listed(value), dtype=type_.scalar.dtype)


def _listed(value: Any) -> Any:
    if isinstance(value, (bool, int, float)):
        return value
    return (
        [_listed(item) for item in value] if hasattr(value, "__len__") or hasattr(value, "__iter__") else float(value)
    )


def spread(type_: Any, values: Any, slot: Slot, call: tuple[int, ...]) -> Any:
    """Values as every point of the call sees them."""
    if slot.kind == "dict":
        if isinstance(type_, Struct):
            return {name: spread(dict(type_.fields)[name], values[name], inner, call) for name, inner in slot.fields}
        parts = [spread(type_.scalar, values[name], inner, call) for name, inner in slot.fields]
        return np.stack(parts, axis=-1)
    if isinstance(type_, Struct):
        return {name: spread(inner, values[name], slot, call) for name, inner in type_.fields}
    lead = values.shape[: values.ndim - len(type_.shape)]
    padded = values.reshape((*(1,) * (len(call) - len(lead)), *values.shape))
    return np.broadcast_to(padded, (*call, *type_.shape))
