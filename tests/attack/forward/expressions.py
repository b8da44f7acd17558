"""Random expressions of all scalar types. What the languages leave undefined is kept out here where it is cheap to do so (a shift
by more than the width, a division by 0); numbers.py leaves out the rest."""

from __future__ import annotations

import random

import numpy as np

from ..expressions import Scope, Var, var
from ..nodes import Function, Node, Program
from .functions import FUNCTIONS
from .types import (
    FLOATS,
    INTEGERS,
    SCALARS,
    base,
    element,
    is_array,
    is_matrix,
    is_scalar,
    is_struct,
    is_vector,
    like,
    shape,
    slang_name,
)

EDGES = {"i": (0, 1, -1, 2, 7), "u": (0, 1, 2, 3, 255)}


def const(ty: str, value: object) -> Node:
    return Node("const", [], ty, str(value).lower() if ty == "b" else str(value))


def int_const(value: int) -> Node:
    return const("i32", value)


class Expressions:
    """The part of the grammar that draws expressions."""

    rng: random.Random
    program: Program
    used: set[str]
    scalars: list[str]  # types that the program works with
    callable: list[Function]

    def on(self, name: str, chance: float = 1.0) -> bool:
        raise NotImplementedError

    # ---- leaves

    def literal(self, name: str) -> Node:
        row, rng = SCALARS[name], self.rng
        if row.kind == "b":
            return const("b", rng.random() < 0.5)
        if row.kind == "f":
            value = row.dtype.type(rng.choice((0, 1, -1, 0.5, 2, 3, -2.5, 0.1, 1 / 3, 100, rng.uniform(-4, 4))))
            return const(name, repr(float(value)))
        near = rng.choice((row.low, row.high, row.high - 1, row.high // 2 + 1, row.low // 2))
        far = rng.randint(row.low, row.high)
        made = const(name, rng.choice((*EDGES[row.kind], near, near, far)))
        made.note = "hex" if rng.random() < 0.2 and int(made.text) >= 0 else ""
        return made

    def leaf(self, scope: Scope, ty: str, chance: float = 0.85) -> Node | None:
        """A variable of the type, or a part of one."""
        options = [part for v in scope.vars for part in self.parts(scope, var(v.name, v.ty), ty, 0)]
        if not options or self.rng.random() > chance:
            return None
        if self.rng.random() < 0.5:  # rather what was declared last, so that little is dead
            options = options[-4:]
        return self.rng.choice(options)

    def parts(self, scope: Scope, node: Node, ty: str, depth: int) -> list[Node]:
        own = node.ty
        if own == ty:
            return [node]
        if depth > 2:
            return []
        if is_struct(own):
            fields = self.program.struct(own).fields
            return [
                part
                for name, kind, _ in fields
                for part in self.parts(scope, Node("field", [node], kind, name), ty, depth + 1)
            ]
        if own.split(":")[0].split("[")[0] != ty.split(":")[0].split("[")[0]:
            return []
        if is_vector(own) and (is_scalar(ty) or is_vector(ty)) and "swizzle" in self.used:
            wanted = shape(ty)[0] if is_vector(ty) else 1
            names = "".join(self.rng.choice("xyzw"[: shape(own)[0]]) for _ in range(wanted))
            return [Node("comp", [node], ty, names)]
        if is_scalar(own):
            return []
        inner = element(own)
        if inner == ty or is_matrix(own):
            return self.parts(scope, Node("index", [node, self.index(scope, shape(own)[0])], inner), ty, depth + 1)
        return []

    def index(self, scope: Scope, size: int) -> Node:
        """In the range of an array: a constant, a loop counter, or anything brought into it."""
        if self.rng.random() < 0.5 or not self.on("index"):
            return int_const(self.rng.randrange(size))
        names = [name for name in ("i32", "u32") if name in self.scalars]
        given = [v for v in scope.vars if v.ty in names]
        if not given:
            return int_const(self.rng.randrange(size))
        chosen = self.rng.choice(given)
        mask = Node(
            "bin", [var(chosen.name, chosen.ty), const(chosen.ty, (1 << (size.bit_length() - 1)) - 1)], chosen.ty, "&"
        )
        if size & (size - 1) == 0 or chosen.ty != "u32":
            return mask
        return Node("bin", [var(chosen.name, chosen.ty), const(chosen.ty, size)], chosen.ty, "%")

    # ---- expressions of a type

    def expression(self, scope: Scope, ty: str, depth: int) -> Node:
        if is_struct(ty) or is_array(ty):
            return self.aggregate(scope, ty, depth)
        if depth <= 0:
            return self.leaf(scope, ty) or self.filled(scope, ty, 0)
        choices = ["leaf", "bin", "bin", "bin", "un", "fn", "cast", "tern", "call"]
        if is_scalar(ty):
            choices += ["bits", "select"]
        else:
            choices += ["make", "make", "select", "mul"]
        if is_matrix(ty):
            choices += ["mul", "transpose"]
        for _ in range(4):
            made: Node | None = getattr(self, f"draw_{self.rng.choice(choices)}")(scope, ty, depth - 1)
            if made is not None:
                return made
        return self.leaf(scope, ty, 1) or self.filled(scope, ty, depth - 1)

    def filled(self, scope: Scope, ty: str, depth: int) -> Node:
        """From scalars."""
        if is_scalar(ty):
            return self.literal(ty)
        count = int(np.prod(shape(ty)))
        if self.rng.random() < 0.2 and not is_matrix(ty):
            return Node("make", [self.expression(scope, base(ty).name, depth)], ty)
        return Node("make", [self.expression(scope, base(ty).name, depth - 1) for _ in range(count)], ty)

    def aggregate(self, scope: Scope, ty: str, depth: int) -> Node:
        same = [v for v in scope.vars if v.ty == ty]
        if same and self.rng.random() < 0.4:
            return var(self.rng.choice(same).name, ty)
        if is_array(ty):
            return Node("braces", [self.expression(scope, element(ty), depth - 1) for _ in range(shape(ty)[0])], ty)
        kinds = [kind for _, kind, _ in self.program.struct(ty).fields]
        return Node("braces", [self.expression(scope, kind, depth - 1) for kind in kinds], ty)

    def other(self, kinds: str = "iuf") -> str:
        """One of the program's scalar types."""
        return self.rng.choice([name for name in self.scalars if SCALARS[name].kind in kinds] or ["i32"])

    def draw_leaf(self, scope: Scope, ty: str, depth: int) -> Node | None:
        return self.leaf(scope, ty)

    def draw_bin(self, scope: Scope, ty: str, depth: int) -> Node | None:
        row, rng = base(ty), self.rng
        if row.kind == "b":
            return self.truth(scope, ty, depth)
        left = self.operand(scope, ty, depth)
        if row.kind == "f":
            operator = (
                rng.choice("+-*" if is_matrix(ty) else "+-*+-*/%") if "divide" in self.used else rng.choice("+-*")
            )
            if operator in "/%":
                return Node("bin", [left, self.positive(scope, ty, depth)], ty, operator)
            return self.scaled(left, self.operand(scope, ty, depth), ty, operator)
        operators = (
            ["+", "-", "*"] * 2 + ["&", "|", "^"] * ("bitops" in self.used) + ["/", "%"] * ("divide" in self.used)
        )
        operators += ["<<", ">>"] * ("shift" in self.used)
        operator = rng.choice(operators)
        if is_matrix(ty) and operator not in ("+", "-", "*"):
            return None
        if operator in ("/", "%"):
            return Node("bin", [left, self.divisor(scope, ty, depth)], ty, operator)
        if operator in ("<<", ">>"):
            return Node("bin", [left, self.amount(scope, ty, depth)], ty, operator)
        if not is_matrix(ty) and self.on("promote", 0.15) and (narrow := self.narrower(scope, ty, depth)):
            return Node("bin", [narrow, self.expression(scope, ty, depth)], ty, operator)
        return self.scaled(left, self.operand(scope, ty, depth), ty, operator)

    def scaled(self, left: Node, right: Node, ty: str, operator: str) -> Node:
        if not is_scalar(ty) and is_scalar(left.ty) and is_scalar(right.ty):
            left = (
                Node("make", [left], ty)
                if not is_matrix(ty)
                else Node("make", [left.copy() for _ in range(int(np.prod(shape(ty))))], ty)
            )
        return Node("bin", [left, right], ty, operator)

    def operand(self, scope: Scope, ty: str, depth: int) -> Node:
        """Of a vector now and then a scalar."""
        if not is_scalar(ty) and "mixed" in self.used and self.rng.random() < 0.2:
            return self.expression(scope, base(ty).name, depth)
        return self.expression(scope, ty, depth)

    def narrower(self, scope: Scope, ty: str, depth: int) -> Node | None:
        """A value of a type that becomes `ty` without a cast."""
        row = base(ty)
        names = [
            n
            for n in self.scalars
            if SCALARS[n].bits < row.bits and SCALARS[n].kind in {"i": "iu", "u": "u", "f": "f", "b": ""}[row.kind]
        ]
        if not names:
            return None
        return Node("cast", [self.expression(scope, like(self.rng.choice(names), ty), depth)], ty, note="implicit")

    def divisor(self, scope: Scope, ty: str, depth: int) -> Node:
        row, rng = base(ty), self.rng

        def plain(value: int) -> Node:
            return self.all_of(const(row.name, value), ty)

        roll = rng.random()
        if roll < 0.4:
            return plain(
                rng.choice((1, 2, 3, 7, 10, 64, row.high, *((-2, -3, -7, row.low) if row.kind == "i" else ())))
            )
        some = self.expression(scope, ty, depth)
        if row.kind == "u" and roll < 0.7:
            return Node("bin", [some, plain(1)], ty, "|")
        low = Node("bin", [some, plain(rng.choice((1, 7, 15)))], ty, "&")
        if row.kind == "i" and roll > 0.8:
            return Node("bin", [plain(-2), low], ty, "-")
        return Node("bin", [low, plain(rng.choice((1, 3)))], ty, "+")

    def amount(self, scope: Scope, ty: str, depth: int) -> Node:
        row = base(ty)
        if self.rng.random() < 0.4:
            return self.all_of(const(row.name, self.rng.choice((0, 1, 3, row.bits // 2, row.bits - 1))), ty)
        return Node("bin", [self.expression(scope, ty, depth), self.all_of(const(row.name, row.bits - 1), ty)], ty, "&")

    def all_of(self, node: Node, ty: str) -> Node:
        return node if is_scalar(ty) else Node("make", [node], ty)

    def positive(self, scope: Scope, ty: str, depth: int) -> Node:
        row = base(ty)
        if self.rng.random() < 0.3:
            return self.all_of(const(row.name, self.rng.choice((2.0, 0.5, 3.0, -4.0))), ty)
        size = Node("fn", [self.expression(scope, ty, depth)], ty, "abs")
        return Node("bin", [size, self.all_of(const(row.name, 0.5), ty)], ty, "+")

    # ---- bools

    def truth(self, scope: Scope, ty: str, depth: int) -> Node:
        rng = self.rng
        if is_scalar(ty) and depth > 0 and rng.random() < 0.3:
            return Node(
                "logic",
                [self.expression(scope, "b", depth - 1), self.expression(scope, "b", depth - 1)],
                "b",
                rng.choice(("&&", "||")),
            )
        vectors = [v.ty for v in scope.vars if is_vector(v.ty)]
        if is_scalar(ty) and vectors and "vector" in self.used and rng.random() < 0.25:
            of = rng.choice(vectors)
            inner = (
                self.truth(scope, like("b", of), depth - 1)
                if rng.random() < 0.7
                else self.expression(scope, of, depth - 1)
            )
            return Node("fn", [inner], "b", rng.choice(("any", "all")))
        if depth > 0 and rng.random() < 0.15:
            made = self.draw_fn(scope, ty, depth - 1)
            if made is not None:
                return made
        name = self.other()
        of = like(name, ty)
        operator = rng.choice(("<", "<=", ">", ">=", "==", "!="))
        if name == "u64" and "compare_u64" not in self.used:
            operator = rng.choice(("==", "!="))
        left = self.narrower(scope, of, depth) if self.on("promote", 0.15) else None
        return Node("cmp", [left or self.expression(scope, of, depth), self.expression(scope, of, depth)], ty, operator)

    # ---- the rest

    def draw_un(self, scope: Scope, ty: str, depth: int) -> Node | None:
        kind = base(ty).kind
        inner = self.expression(scope, ty, depth)
        if kind == "b":
            return Node("not", [inner], ty)
        if kind == "f" or is_matrix(ty) or self.rng.random() < 0.5 or "bitops" not in self.used:
            return Node("neg", [inner], ty) if kind != "u" or self.on("negated") else None
        return Node("inv", [inner], ty)

    def draw_fn(self, scope: Scope, ty: str, depth: int) -> Node | None:
        row = base(ty)
        if is_matrix(ty):
            return None
        options = []
        for name, function in FUNCTIONS.items():
            if name not in self.used or (function.gives or row.name) != row.name:
                continue
            names = function.names or [
                n for n in (self.scalars if function.gives else [row.name]) if SCALARS[n].kind in function.kinds
            ]
            options += [
                (name, of) for of in names if SCALARS[of].kind in function.kinds and (function.gives or of == row.name)
            ]
        options = [(name, of) for name, of in options if of in self.scalars]
        if "dot" in self.used and is_scalar(ty) and row.kind in "iuf" and row.name != "b" and self.on("vector"):
            options.append(("dot", row.name))
        if not options:
            return None
        name, of = self.rng.choice(options)
        if name == "dot":
            wide = f"{of}:{self.rng.choice((2, 3, 4))}"
            return Node("dot", [self.expression(scope, wide, depth), self.expression(scope, wide, depth)], ty)
        if name == "clamp":
            return self.clamped(self.expression(scope, ty, depth), ty)
        function = FUNCTIONS[name]
        return Node(
            "fn",
            [self.expression(scope, like(of, ty), depth) for _ in range(function.arity)],
            ty,
            function.text or name,
        )

    def clamped(self, node: Node, ty: str) -> Node:
        row = base(ty)
        low, high = (-100, 100) if row.kind != "u" else (3, 200)
        ends = [float(low), float(high)] if row.kind == "f" else [low, high]
        return Node("fn", [node, *(self.all_of(const(row.name, end), ty) for end in ends)], ty, "clamp")

    def draw_cast(self, scope: Scope, ty: str, depth: int) -> Node | None:
        row = base(ty)
        if "cast" not in self.used or is_matrix(ty):
            return None
        name = self.other("biuf")
        if name == row.name:
            return None
        of, old = like(name, ty), SCALARS[name]
        inner = self.expression(scope, of, depth)
        if old.kind == "f" and row.kind in "iu":
            inner = self.clamped(inner, of)
            if row.kind == "u":
                inner = Node("fn", [inner], of, "abs")
        elif old.kind in "iu" and row.name == "f16" and old.bits > 8 and self.rng.random() < 0.8:
            inner = Node("bin", [inner, self.all_of(const(name, 1023), of)], of, "&")
        return Node("cast", [inner], ty, note="c" if is_scalar(ty) and self.rng.random() < 0.3 else "")

    def draw_bits(self, scope: Scope, ty: str, depth: int) -> Node | None:
        row = base(ty)
        names = [name for name in self.scalars if SCALARS[name].bits == row.bits and name not in (row.name, "b")]
        if row.kind == "b" or not names or not self.on("bit_cast"):
            return None
        inner = self.expression(scope, like(self.rng.choice(names), ty), min(depth, 1))
        return Node("bits", [inner], ty, note=self.rng.choice(("", "", "cast")))

    def draw_tern(self, scope: Scope, ty: str, depth: int) -> Node | None:
        if not self.on("ternary"):
            return None
        return Node(
            "tern",
            [self.truth(scope, "b", depth), self.expression(scope, ty, depth), self.expression(scope, ty, depth)],
            ty,
        )

    def draw_select(self, scope: Scope, ty: str, depth: int) -> Node | None:
        if is_matrix(ty) or not self.on("select"):
            return None
        test = self.truth(scope, like("b", ty), depth)
        return Node("select", [test, self.expression(scope, ty, depth), self.expression(scope, ty, depth)], ty)

    def draw_make(self, scope: Scope, ty: str, depth: int) -> Node | None:
        name, sizes = base(ty).name, shape(ty)
        if is_matrix(ty) and self.rng.random() < 0.5:
            return Node("make", [self.expression(scope, f"{name}:{sizes[1]}", depth - 1) for _ in range(sizes[0])], ty)
        if is_vector(ty) and sizes[0] > 2 and self.rng.random() < 0.4:
            rest = f"{name}:{sizes[0] - 1}" if sizes[0] > 2 else name
            parts = [self.expression(scope, rest, depth - 1), self.expression(scope, name, depth - 1)]
            return Node("make", parts[:: self.rng.choice((1, -1))], ty)
        return self.filled(scope, ty, depth)

    def has_matrices(self, name: str) -> bool:
        row = SCALARS[name]
        return row.kind == "f" or (row.kind != "b" and (row.bits == 32 or "int_matrix" in self.used))

    def draw_mul(self, scope: Scope, ty: str, depth: int) -> Node | None:
        """Of matrices, or of a vector and a matrix."""
        name, sizes = base(ty).name, shape(ty)
        if not self.has_matrices(name) or not self.on("matrix_mul") or sizes[-1] > 3 or "matrix" not in self.used:
            return None
        inner = self.rng.choice((2, 3))
        left, right = (sizes[0], inner), (inner, sizes[-1])
        if is_matrix(ty):
            shapes = [f"{left[0]}x{left[1]}", f"{right[0]}x{right[1]}"]
        else:
            shapes = self.rng.choice(([f"{left[0]}x{left[1]}", f"{inner}"], [f"{inner}", f"{right[0]}x{right[1]}"]))
        return Node("mul", [self.expression(scope, f"{name}:{part}", depth - 1) for part in shapes], ty)

    def draw_transpose(self, scope: Scope, ty: str, depth: int) -> Node | None:
        name, (rows, columns) = base(ty).name, shape(ty)
        return Node("transpose", [self.expression(scope, f"{name}:{columns}x{rows}", depth)], ty)

    def draw_call(self, scope: Scope, ty: str, depth: int) -> Node | None:
        options = [
            f for f in self.callable if (f.ret == ty or (f.generic and is_scalar(ty) and ty != "b")) and not f.written
        ]
        if not options:
            return None
        function = self.rng.choice(options)
        if function.owner:
            owners = [v for v in scope.vars if v.ty == function.owner and v.name != "this"]
            if not owners or function.mutating:
                return None
            this = self.rng.choice(owners)
            args = self.arguments(scope, function)
            return None if args is None else Node("mcall", [var(this.name, this.ty), *args], ty, function.name)
        if function.generic:
            note = f"<{slang_name(ty)}>" if self.rng.random() < 0.5 else ""
            return Node("ucall", [self.expression(scope, ty, depth) for _ in function.params], ty, function.name, note)
        args = self.arguments(scope, function)
        return None if args is None else Node("ucall", args, ty, function.name)

    def arguments(self, scope: Scope, function: Function) -> list[Node] | None:
        """None where an array or struct that it takes is not there."""
        args = []
        for param in function.params:
            if is_struct(param.ty) or is_array(param.ty):
                same = [v for v in scope.vars if v.ty == param.ty]
                if not same:
                    return None
                args.append(var(self.rng.choice(same).name, param.ty))
            else:
                args.append(self.expression(scope, param.ty, 1))
        return args


__all__ = ["FLOATS", "INTEGERS", "Expressions", "Scope", "Var", "const", "int_const", "var"]
