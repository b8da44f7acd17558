"""Runs a program on all rows at once: masks say which rows take a branch, are still in a loop, or have returned."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from ..nodes import Function, Node, Program
from .functions import FUNCTIONS, REDUCTIONS, dot
from .numbers import Array, Numbers, Value, blend
from .types import base, element, is_array, is_matrix, is_struct, like, shape

AXES = {name: at for names in ("xyzw", "rgba") for at, name in enumerate(names)}
LONGEST = 200  # turns of a loop


class TooLong(Exception):
    """A loop takes more turns than the comparison is worth."""


class NoResult(Exception):
    """A function ends without a return: shrinking tries such programs."""


@dataclass
class Frame:
    """One call of a function."""

    vars: dict[str, Value]
    result: Value | None = None
    returned: Array = field(default_factory=lambda: np.zeros(0, bool))
    broken: list[Array] = field(default_factory=list)  # of each loop or switch around
    continued: list[Array] = field(default_factory=list)


class Machine:
    def __init__(self, program: Program, lanes: int, flush: bool = False):
        self.program = program
        self.numbers = Numbers(lanes, flush)
        self.functions = {(function.owner, function.name): function for function in program.all_functions()}
        self.globals = {table.name: self._table(table) for table in getattr(program, "constants", [])}
        self.made: dict[tuple[str, str], Function] = {}  # of generic functions
        self.frame = Frame({})

    @property
    def mask(self) -> Array:
        return self.numbers.mask

    @mask.setter
    def mask(self, value: Array) -> None:
        self.numbers.mask = value

    def run(self, inputs: dict[str, Value]) -> tuple[Value, Array]:
        """The result, and which rows are lost."""
        self.numbers.lost[:] = False
        self.mask = np.ones(self.numbers.lanes, bool)
        main = self.program.main
        with np.errstate(all="ignore"):
            value, _ = self.call(main, [inputs[param.name].copy() for param in main.params])
        return value, self.numbers.lost.copy()

    def _table(self, table: object) -> Value:
        self.frame = Frame({})
        return self.evaluate(table.value)  # type: ignore[attr-defined]

    # ---- calls

    def call(self, function: Function, args: list[Value], this: Value | None = None) -> tuple[Value, dict[str, Value]]:
        """What it returns, and its parameters (and `this`) afterwards. A generic one takes its types from the arguments."""
        if function.generic:
            function = self.specialized(function, args[0].ty)
        outer, mask = self.frame, self.mask
        self.frame = Frame({param.name: arg for param, arg in zip(function.params, args, strict=True)})
        self.frame.returned = np.zeros(self.numbers.lanes, bool)
        if this is not None:
            self.frame.vars["this"] = this
        self.mask = mask.copy()
        self.statement(function.body)
        if function.ret != "void" and self.mask.any():
            raise NoResult(function.name)
        value, after = self.frame.result, self.frame.vars
        self.frame, self.mask = outer, mask
        return value if value is not None else self.zero(function.ret), after

    def specialized(self, function: Function, ty: str) -> Function:
        key = (function.name, ty)
        if key not in self.made:
            body = function.body.copy()
            for node in body.walk():
                node.ty = ty if node.ty == "T" else node.ty
            self.made[key] = replace(function, body=body, ret=ty, generic="")
        return self.made[key]

    def zero(self, ty: str) -> Value:
        """What stands for the result where no row calls."""
        if ty == "void":
            return Value(ty)
        if is_struct(ty):
            return Value(ty, kids=[self.zero(kind) for _, kind, _ in self.program.struct(ty).fields])
        return self.numbers.constant(ty, 0)

    def _call_node(self, node: Node) -> Value:
        function = self.functions["", node.text]
        places = node.kids
        value, after = self.call(function, [self.evaluate(kid).copy() for kid in places])
        for param, place in zip(function.params, places, strict=True):
            if param.way != "in":
                self.store(place, after[param.name])
        return value

    def _method(self, node: Node) -> Value:
        this = self.evaluate(node.kids[0])
        function = self.functions[this.ty, node.text]
        value, after = self.call(function, [self.evaluate(kid).copy() for kid in node.kids[1:]], this.copy())
        if function.mutating:
            self.store(node.kids[0], after["this"])
        return value

    # ---- statements

    def statement(self, node: Node) -> None:
        if not self.mask.any():
            return
        getattr(self, f"_do_{node.op}")(node)

    def _do_block(self, node: Node) -> None:
        for kid in node.kids:
            self.statement(kid)

    def _do_decl(self, node: Node) -> None:
        value = self.evaluate(node.kids[0])
        old = self.frame.vars.get(node.text)
        self.frame.vars[node.text] = blend(self.mask, value, old) if old is not None else value.copy()

    def _do_assign(self, node: Node) -> None:
        place, given = node.kids
        value = self.evaluate(given)
        if node.text != "=":
            value = self.numbers.binary(node.text[:-1], self.evaluate(place), value, place.ty)
        self.store(place, value)

    def _do_step(self, node: Node) -> None:
        self.evaluate(node)

    def _do_xcall(self, node: Node) -> None:
        value = self._call_node(Node("ucall", node.kids[1:], text=node.text))
        if node.kids[0].op != "empty":
            self.store(node.kids[0], value)

    def _do_mutcall(self, node: Node) -> None:
        self._method(node)

    def _do_if(self, node: Node) -> None:
        test = self.evaluate(node.kids[0]).a
        mask = self.mask
        self.mask = mask & test
        self.statement(node.kids[1])
        yes = self.mask
        self.mask = mask & ~test
        if len(node.kids) > 2:
            self.statement(node.kids[2])
        self.mask = self.mask | yes

    def _do_switch(self, node: Node) -> None:
        chosen = self.evaluate(node.kids[0]).a
        mask, rest = self.mask, self.mask.copy()
        self.frame.broken.append(np.zeros(self.numbers.lanes, bool))
        after = np.zeros(self.numbers.lanes, bool)
        for at, case in enumerate(node.kids[1:]):
            last = at == len(node.kids) - 2 and node.note == "default"
            self.mask = rest if last else rest & (chosen == at)
            rest = rest & ~self.mask
            self.statement(case)
            after |= self.mask
        self.mask = (after | rest | self.frame.broken.pop()) & mask

    def _do_for(self, node: Node) -> None:
        init, test, step, body = node.kids
        if init.op != "empty":
            self.statement(init)
        self._loop(test, body, step, False)

    def _do_while(self, node: Node) -> None:
        self._loop(node.kids[0], node.kids[1], None, False)

    def _do_do(self, node: Node) -> None:
        self._loop(node.kids[0], node.kids[1], None, True)

    def _loop(self, test: Node, body: Node, step: Node | None, first: bool) -> None:
        frame, lanes = self.frame, self.numbers.lanes
        frame.broken.append(np.zeros(lanes, bool))
        frame.continued.append(np.zeros(lanes, bool))
        done = np.zeros(lanes, bool)
        for turn in range(LONGEST):
            if not (first and turn == 0) and test.op != "empty":
                go = self.evaluate(test).a
                done |= self.mask & ~go
                self.mask = self.mask & go
            if not self.mask.any():
                break
            self.statement(body)
            self.mask = self.mask | frame.continued[-1]
            frame.continued[-1] = np.zeros(lanes, bool)
            if step is not None and step.op != "empty":
                self.statement(step)
        else:
            raise TooLong
        frame.continued.pop()
        self.mask = self.mask | done | frame.broken.pop()

    def _do_break(self, node: Node) -> None:
        self.frame.broken[-1] = self.frame.broken[-1] | self.mask
        self.mask = np.zeros_like(self.mask)

    def _do_continue(self, node: Node) -> None:
        self.frame.continued[-1] = self.frame.continued[-1] | self.mask
        self.mask = np.zeros_like(self.mask)

    def _do_return(self, node: Node) -> None:
        frame = self.frame
        if node.kids:
            value = self.evaluate(node.kids[0])
            frame.result = value.copy() if frame.result is None else blend(self.mask, value, frame.result)
        frame.returned = frame.returned | self.mask
        self.mask = np.zeros_like(self.mask)

    # ---- places

    def store(self, place: Node, value: Value) -> None:
        """Of the rows of the mask."""
        if place.op == "var":
            self.frame.vars[place.text] = blend(self.mask, value, self.frame.vars[place.text])
            return
        parent = self.evaluate(place.kids[0]).copy()
        if place.op == "field":
            parent.kids[self._place_of(parent, place.text)] = value
        elif place.op == "comp":
            at = [AXES[name] for name in place.text]
            value = (
                value
                if len(at) > 1
                else Value(value.ty, value.a[:, None], None if value.e is None else value.e[:, None])
            )
            parent.a[:, at] = value.a
            if parent.e is not None and value.e is not None:
                parent.e[:, at] = value.e
        else:
            lanes, at = np.arange(self.numbers.lanes), self._lane_index(place)
            parent.a[lanes, at] = value.a
            if parent.e is not None and value.e is not None:
                parent.e[lanes, at] = value.e
        self.store(place.kids[0], parent)

    def _place_of(self, value: Value, name: str) -> int:
        return [field[0] for field in self.program.struct(value.ty).fields].index(name)

    def _lane_index(self, node: Node) -> Array:
        at = self.evaluate(node.kids[1]).a
        size = shape(node.kids[0].ty)[0]
        bad = (at < 0) | (at >= size)
        self.numbers.lose(bad)
        return np.where(bad, 0, at).astype(np.int64)

    # ---- expressions

    def evaluate(self, node: Node) -> Value:
        return getattr(self, f"_{node.op}")(node)

    def _const(self, node: Node) -> Value:
        number: object = (
            node.text == "true" if node.ty == "b" else float(node.text) if base(node.ty).kind == "f" else int(node.text)
        )
        return self.numbers.constant(node.ty, number)

    def _var(self, node: Node) -> Value:
        return self.frame.vars[node.text] if node.text in self.frame.vars else self.globals[node.text]

    def _bin(self, node: Node) -> Value:
        left, right = (self.evaluate(kid) for kid in node.kids)
        return self.numbers.binary(node.text, left, right, node.ty)

    def _cmp(self, node: Node) -> Value:
        left, right = (self.evaluate(kid) for kid in node.kids)
        return self.numbers.compare(node.text, left, right, node.ty)

    def _logic(self, node: Node) -> Value:
        left = self.evaluate(node.kids[0]).a
        mask = self.mask
        self.mask = mask & (left if node.text == "&&" else ~left)
        right = self.evaluate(node.kids[1]).a if self.mask.any() else left
        self.mask = mask
        return Value("b", left & right if node.text == "&&" else left | right)

    def _tern(self, node: Node) -> Value:
        test = self.evaluate(node.kids[0])
        mask = self.mask
        if is_struct(node.ty) or test.a.ndim > 1:
            sides = [self.evaluate(kid) for kid in node.kids[1:]]
        else:
            sides = []
            for kid, taken in zip(node.kids[1:], (test.a, ~test.a), strict=True):
                self.mask = mask & taken
                sides.append(self.evaluate(kid))
            self.mask = mask
        if is_struct(node.ty):
            return blend(test.a, *sides)
        return self.numbers.chosen(test, *sides, node.ty)

    def _select(self, node: Node) -> Value:
        test, yes, no = (self.evaluate(kid) for kid in node.kids)
        return self.numbers.chosen(test, yes, no, node.ty)

    def _neg(self, node: Node) -> Value:
        x = self.evaluate(node.kids[0])
        return Value(x.ty, -x.a, None if x.e is None else self.numbers.about(x))

    def _inv(self, node: Node) -> Value:
        x = self.evaluate(node.kids[0])
        return Value(x.ty, ~x.a)

    def _not(self, node: Node) -> Value:
        return self._inv(node)

    def _step(self, node: Node) -> Value:
        place = node.kids[0]
        old = self.evaluate(place).copy()
        new = self.numbers.binary(node.text[0], old, self.numbers.constant(base(place.ty).name, 1), place.ty)
        self.store(place, new)
        return old if node.note == "post" else new

    def _cast(self, node: Node) -> Value:
        return self.numbers.cast(self.evaluate(node.kids[0]), base(node.ty).name)

    def _bits(self, node: Node) -> Value:
        return self.numbers.bits(self.evaluate(node.kids[0]), base(node.ty).name)

    def _fn(self, node: Node) -> Value:
        args = [self.evaluate(kid) for kid in node.kids]
        if node.text in REDUCTIONS:
            return REDUCTIONS[node.text](self.numbers, *args)
        widest = max((kid.ty for kid in node.kids), key=lambda ty: int(np.prod(shape(ty))))
        return FUNCTIONS[node.text].apply(self.numbers, *[self.numbers.spread(arg, widest) for arg in args])

    def _ucall(self, node: Node) -> Value:
        return self._call_node(node)

    def _mcall(self, node: Node) -> Value:
        return self._method(node)

    def _field(self, node: Node) -> Value:
        value = self.evaluate(node.kids[0])
        return value.kids[self._place_of(value, node.text)]

    def _comp(self, node: Node) -> Value:
        x = self.evaluate(node.kids[0])
        at = [AXES[name] for name in node.text]
        pick = at if len(at) > 1 else at[0]
        return Value(node.ty, x.a[:, pick], None if x.e is None else x.e[:, pick])

    def _index(self, node: Node) -> Value:
        x, at, lanes = self.evaluate(node.kids[0]), self._lane_index(node), np.arange(self.numbers.lanes)
        return Value(element(x.ty), x.a[lanes, at], None if x.e is None else x.e[lanes, at])

    def _make(self, node: Node) -> Value:
        """From scalars, vectors and, for matrices, rows."""
        parts = [self.evaluate(kid) for kid in node.kids]
        size = (self.numbers.lanes, *shape(node.ty))
        if len(parts) == 1 and parts[0].a.ndim == 1:
            return self.numbers.spread(parts[0], node.ty)
        flat = [part.a.reshape(self.numbers.lanes, -1) for part in parts]
        made = Value(node.ty, np.concatenate(flat, 1).reshape(size))
        if base(node.ty).kind == "f":
            made.e = np.concatenate(
                [part.e.reshape(self.numbers.lanes, -1) for part in parts if part.e is not None], 1
            ).reshape(size)
        return made

    def _braces(self, node: Node) -> Value:
        parts = [self.evaluate(kid) for kid in node.kids]
        if is_array(node.ty):
            errors = [part.e for part in parts if part.e is not None]
            return Value(node.ty, np.stack([part.a for part in parts], 1), np.stack(errors, 1) if errors else None)
        return Value(node.ty, kids=[part.copy() for part in parts])

    def _mul(self, node: Node) -> Value:
        left, right = (self.evaluate(kid) for kid in node.kids)
        rows = [self._row(left, at) for at in range(left.a.shape[1])] if is_matrix(left.ty) else [left]
        columns = [self._row(_turned(right), at) for at in range(right.a.shape[2])] if is_matrix(right.ty) else [right]
        cells = [dot(self.numbers, row, column) for row in rows for column in columns]
        size = (self.numbers.lanes, *shape(node.ty))
        errors = [cell.e for cell in cells if cell.e is not None]
        return Value(
            node.ty,
            np.stack([cell.a for cell in cells], 1).reshape(size),
            np.stack(errors, 1).reshape(size) if errors else None,
        )

    def _row(self, x: Value, at: int) -> Value:
        return Value(like(base(x.ty).name, f":{x.a.shape[2]}"), x.a[:, at], None if x.e is None else x.e[:, at])

    def _dot(self, node: Node) -> Value:
        return dot(self.numbers, *(self.evaluate(kid) for kid in node.kids))

    def _transpose(self, node: Node) -> Value:
        return _turned(self.evaluate(node.kids[0]))


def _turned(x: Value) -> Value:
    rows, columns = shape(x.ty)
    e = None if x.e is None else np.swapaxes(x.e, 1, 2)
    return Value(f"{base(x.ty).name}:{columns}x{rows}", np.swapaxes(x.a, 1, 2), e)
