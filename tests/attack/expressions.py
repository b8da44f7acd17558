"""Random expressions of each type, from the variables that a scope has."""

from __future__ import annotations

import random
from dataclasses import dataclass

from .nodes import Function, Node, Param, Program, is_array, is_matrix, is_vector, vector_size

UNARY = ("sin", "cos", "tanh", "sin", "tanh", "abs", "frac", "saturate", "atan", "exp_", "sqrt_", "log_", "rsqrt_", "pow_", "square")


@dataclass
class Var:
    name: str
    ty: str
    writable: bool = False
    no_diff: bool = False


@dataclass
class Scope:
    vars: list[Var]

    def has(self, name: str) -> bool:
        return any(v.name == name for v in self.vars)

    def plus(self, *more: Var) -> Scope:
        return Scope([*self.vars, *more])

    def hidden(self, *names: str) -> Scope:
        return Scope([v for v in self.vars if v.name not in names])


def const(value: int) -> Node:
    return Node("const", [], "i", str(value))


def number(value: float) -> Node:
    return Node("const", [], "f", repr(float(value)))


def boolean(value: bool) -> Node:
    return Node("const", [], "b", "true" if value else "false")


def var(name: str, ty: str) -> Node:
    return Node("var", [], ty, name)


def fn(name: str, *args: Node) -> Node:
    return Node("fn", list(args), args[0].ty, name)


def op(operator: str, left: Node, right: Node, ty: str = "") -> Node:
    return Node("bin", [left, right], ty or left.ty, operator)


def is_runtime(index: Node) -> bool:
    return any(node.op == "var" for node in index.walk())


class Expressions:
    """The half of the grammar that draws expressions."""

    rng: random.Random
    program: Program
    callable: list[Function]
    used: set[str]
    by_index: bool  # elements of variables are read and stored by run-time indices; False: by constants; both with mixed_index

    def on(self, name: str, chance: float = 1.0) -> bool:
        raise NotImplementedError

    def expression(self, scope: Scope, ty: str, depth: int) -> Node:
        if ty == "f":
            return self.scalar(scope, depth)
        if ty == "i":
            return self.integer(scope, depth)
        if is_vector(ty):
            return self.vector(scope, ty, depth)
        if is_matrix(ty):
            return self.matrix(scope, ty, depth)
        return self.initial(scope, ty)

    # ---- scalars

    def literal(self) -> Node:
        return number(round(self.rng.uniform(-1.5, 1.5), 2) or 0.25)

    def scalar(self, scope: Scope, depth: int) -> Node:
        rng = self.rng
        if depth <= 0 or rng.random() < 0.15:
            return self.leaf(scope)
        choice = rng.random()
        if choice < 0.42:
            return op(rng.choice("++-**"), self.scalar(scope, depth - 1), self.scalar(scope, depth - 1))
        if choice < 0.62:
            return self.unary(self.scalar(scope, depth - 1))
        if choice < 0.68:
            return fn(rng.choice(("min", "max")), self.scalar(scope, depth - 1), self.scalar(scope, depth - 1))
        if choice < 0.74:
            return Node("tern", [self.condition(scope), self.scalar(scope, depth - 1), self.scalar(scope, depth - 1)], "f")
        if choice < 0.78:
            return Node("neg", [self.scalar(scope, depth - 1)], "f")
        if choice < 0.83:
            return self.division(scope, depth)
        if choice < 0.88:
            return self.of_vectors(scope, depth)
        if choice < 0.90 and "detach" in self.used:
            return Node("detach", [self.scalar(scope, depth - 1)], "f")
        return self.call(scope, "f", depth) or self.leaf(scope)

    def division(self, scope: Scope, depth: int) -> Node:
        below = self.scalar(scope, depth - 1)
        return op("/", self.scalar(scope, depth - 1), op("+", number(1.25), op("*", below, below.copy())))

    def of_vectors(self, scope: Scope, depth: int) -> Node:
        ty = self.rng.choice(("v2", "v3", "v3", "v4"))
        left, right = self.vector(scope, ty, depth - 1), self.vector(scope, ty, depth - 1)
        choice = self.rng.random()
        if choice < 0.6:
            return Node("fn", [left, right], "f", "dot")
        if choice < 0.8:
            return Node("fn", [op("+", op("*", left, left.copy()), number(0.5), ty)], "f", "length")
        return Node("fn", [Node("fn", [left], ty, "sin"), op("*", right, number(0.2), ty)], "f", "distance")

    def unary(self, inner: Node) -> Node:
        name, ty = self.rng.choice(UNARY), inner.ty
        square = op("*", inner, inner.copy(), ty)
        match name:
            case "exp_":
                return Node("fn", [Node("neg", [square], ty)], ty, "exp")
            case "sqrt_" | "rsqrt_" | "log_":
                base = op("+", square, number(0.75), ty)
                return Node("fn", [base], ty, name[:-1])
            case "pow_":
                if ty != "f":
                    return fn("cos", inner)
                return fn("pow", op("+", number(1.5), fn("sin", inner)), number(self.rng.choice((0.5, 1.7, 2.0, 3.0, -1.0))))
            case "square":
                return square
        return fn(name, inner)

    def squash(self, value: Node) -> Node:
        if value.ty == "f" or value.ty[0] == "v":
            return fn(self.rng.choice(("sin", "tanh")), value)
        return value

    def leaf(self, scope: Scope) -> Node:
        choices = [v for v in scope.vars if v.ty not in ("i", "vN", "aN", "T")]
        floats = [v for v in choices if v.ty == "f"]
        roll = self.rng.random()
        if roll < 0.12 or not choices:
            return self.literal()
        if roll < 0.2:
            return Node("tofloat", [self.integer(scope, 0)], "f")
        if roll < 0.25 and self.program.tables and "table" in self.used:
            name, values = self.program.tables[0]
            return Node("index", [var(name, f"a{len(values)}"), self.index(scope, len(values), loads=True)], "f")
        if roll < 0.6 and floats:
            return var(self.rng.choice(floats[-6:]).name, "f")
        return self.scalar_of(self.rng.choice(choices), scope)

    def scalar_of(self, chosen: Var, scope: Scope) -> Node:
        """A float that depends on a variable of any type."""
        node = var(chosen.name, chosen.ty)
        ty = chosen.ty
        if ty == "f":
            return node
        if ty == "b":
            return Node("tern", [node, number(0.3), number(-0.2)], "f")
        if ty == "A":
            return Node("mcall", [node, self.scalar(scope.hidden(chosen.name), 0)], "f", "act")
        return self.scalar_in(node, scope)

    def scalar_in(self, node: Node, scope: Scope) -> Node:
        ty = node.ty
        if ty == "f":
            return node
        if is_vector(ty):
            size = vector_size(ty)
            if self.rng.random() < 0.75:
                return Node("comp", [node], "f", "xyzw"[self.rng.randrange(size)])
            return Node("index", [node, self.index(scope, size)], "f")
        if is_matrix(ty):
            at = [self.index(scope, int(ty[1])), self.index(scope, int(ty[2]))]
            if "matrix_index" not in self.used:
                at = [const(len(scope.vars) % int(size)) if is_runtime(i) else i for i, size in zip(at, ty[1:], strict=True)]
            return Node("index", [Node("index", [node, at[0]], f"v{ty[2]}"), at[1]], "f")
        if is_array(ty):
            at = self.index(scope, int(ty[1]))
            if self.by_index and "mixed_index" not in self.used and not is_runtime(at):
                ints = [v for v in scope.vars if v.ty == "i"]
                if not ints:
                    return number(0.5)
                at = op("%", var(ints[-1].name, "i"), const(int(ty[1])))
            return Node("index", [node, at], "f")
        if ty in ("t1", "t2"):
            return self.load(node.text, scope)
        if ty == "i":
            return Node("tofloat", [node], "f")
        struct = self.program.struct(ty)
        name, kind, _ = self.rng.choice(struct.fields)
        note = "bare" if node.text == "this" and self.rng.random() < 0.6 else ""
        return self.scalar_in(Node("field", [node], kind, name, note), scope)

    def load(self, name: str, scope: Scope) -> Node:
        sizes = (5,) if name == "t" or name.startswith("y") else (3, 4)
        kids = [self.index(scope, size, loads=True) for size in sizes]
        return Node("load", kids, "f", name, self.rng.choice(("[]", "load")))

    def index(self, scope: Scope, size: int, loads: bool = False) -> Node:
        ints = [v for v in scope.vars if v.ty == "i"]
        if not ints or self.rng.random() < 0.35 or not (loads or self.by_index or "mixed_index" in self.used):
            return const(self.rng.randrange(size))
        at: Node = var(self.rng.choice(ints[-3:]).name, "i")
        if loads and self.rng.random() < 0.5:  # a neighbour
            at = op("+", at, const(self.rng.choice((1, 2, size - 1))))
        return op("%", at, const(size))

    def integer(self, scope: Scope, depth: int) -> Node:
        ints = [v for v in scope.vars if v.ty == "i"]
        if not ints or self.rng.random() < 0.2:
            return const(self.rng.randrange(4))
        one: Node = var(self.rng.choice(ints).name, "i")
        if depth > 0 and self.rng.random() < 0.6:
            return op(self.rng.choice("+*"), one, self.integer(scope, depth - 1))
        return one

    def condition(self, scope: Scope) -> Node:
        rng = self.rng
        roll = rng.random()
        if roll < 0.15:
            parts = [self.comparison(scope), self.comparison(scope)]
            return Node("logic", parts, "b", rng.choice(("&&", "||")))
        if roll < 0.22:
            return Node("not", [self.comparison(scope)], "b")
        return self.comparison(scope)

    def comparison(self, scope: Scope) -> Node:
        ints = [v for v in scope.vars if v.ty == "i"]
        if ints and self.rng.random() < 0.45:
            left = op("%", op("+", var(self.rng.choice(ints).name, "i"), self.integer(scope, 0)), const(self.rng.choice((2, 3))))
            return Node("cmp", [left, const(self.rng.randrange(2))], "b", self.rng.choice(("==", "!=", ">", "<=")))
        return Node("cmp", [self.scalar(scope, 1), self.literal()], "b", self.rng.choice(("<", ">")))

    # ---- vectors and matrices

    def vector(self, scope: Scope, ty: str, depth: int) -> Node:
        rng, size = self.rng, vector_size(ty)
        if depth <= 0 or rng.random() < 0.2:
            return self.vector_leaf(scope, ty)
        roll = rng.random()
        if roll < 0.35:
            return op(rng.choice("+-*"), self.vector(scope, ty, depth - 1), self.vector(scope, ty, depth - 1), ty)
        if roll < 0.5:
            return op("*", self.scalar(scope, depth - 1), self.vector(scope, ty, depth - 1), ty)
        if roll < 0.65:
            return fn(rng.choice(("sin", "tanh", "cos", "abs")), self.vector(scope, ty, depth - 1))
        if roll < 0.73 and size < 4:
            square = f"m{size}{size}"
            factors = [self.matrix(scope, square, depth - 1), self.vector(scope, ty, depth - 1)]
            return Node("fn", factors if rng.random() < 0.6 else factors[::-1], ty, "mul")
        if roll < 0.78 and size == 3:
            return Node("fn", [self.vector(scope, ty, depth - 1), self.vector(scope, ty, depth - 1)], ty, "cross")
        if roll < 0.84:
            parts = [self.vector(scope, ty, depth - 1) for _ in range(2)]
            return Node("fn", [*parts, Node("cast", [self.scalar(scope, 0)], ty)], ty, "lerp")
        if roll < 0.88:
            return Node("neg", [self.vector(scope, ty, depth - 1)], ty)
        return self.call(scope, ty, depth) or self.vector_leaf(scope, ty)

    def vector_leaf(self, scope: Scope, ty: str) -> Node:
        size = vector_size(ty)
        same = [v for v in scope.vars if v.ty == ty]
        longer = [v for v in scope.vars if is_vector(v.ty) and v.ty != "vN" and vector_size(v.ty) >= 2]
        roll = self.rng.random()
        if same and roll < 0.5:
            return var(self.rng.choice(same).name, ty)
        if longer and roll < 0.7:
            chosen = self.rng.choice(longer)
            text = "".join(self.rng.choice("xyzw"[: vector_size(chosen.ty)]) for _ in range(size))
            return Node("comp", [var(chosen.name, chosen.ty)], ty, text)
        plain = scope if "no_diff_vector" in self.used else Scope([v for v in scope.vars if not v.no_diff and v.ty != "i"])
        return Node("make", [self.scalar(plain, 0) for _ in range(size)], ty)

    def matrix(self, scope: Scope, ty: str, depth: int) -> Node:
        same = [v for v in scope.vars if v.ty == ty]
        if same and self.rng.random() < 0.6:
            node: Node = var(self.rng.choice(same).name, ty)
            return Node("fn", [node], ty, "transpose") if ty[1] == ty[2] and self.rng.random() < 0.3 else node
        if depth > 0 and self.rng.random() < 0.5:
            left, right = self.matrix(scope, ty, depth - 1), self.matrix(scope, ty, depth - 1)
            if self.rng.random() < 0.4:
                return Node("fn", [left, right], ty, "mul")
            return op(self.rng.choice("+-*"), left, right, ty)
        plain = scope if "no_diff_vector" in self.used else Scope([v for v in scope.vars if not v.no_diff and v.ty != "i"])
        if self.rng.random() < 0.4:
            return Node("make", [self.vector(plain, f"v{ty[2]}", 0) for _ in range(int(ty[1]))], ty)
        return Node("make", [self.scalar(plain, 0) for _ in range(int(ty[1]) * int(ty[2]))], ty)

    # ---- values of other types, places, calls

    def initial(self, scope: Scope, ty: str) -> Node:
        """What a variable of the type is declared with."""
        if ty in ("f", "i") or is_vector(ty) or is_matrix(ty):
            return self.expression(scope, ty, 2)
        same = [v for v in scope.vars if v.ty == ty]
        if same and self.rng.random() < 0.4:
            return var(self.rng.choice(same).name, ty)
        if is_array(ty):
            return Node("braces", [self.scalar(scope, 1) for _ in range(int(ty[1]))], ty)
        kids = [(self.initial(scope, kind), no_diff) for _, kind, no_diff in self.program.struct(ty).fields]
        return Node("braces", [Node("detach", [kid], kid.ty) if no_diff else kid for kid, no_diff in kids], ty)

    def zero(self, ty: str) -> Node:
        return number(0) if ty == "f" else Node("make", [number(0) for _ in range(vector_size(ty))], ty)

    def place(self, scope: Scope) -> Node | None:
        """Something that can be assigned to."""
        writable = [v for v in scope.vars if v.writable and not v.no_diff and v.ty not in ("b", "A", "aN", "vN", "T")]
        if not writable:
            return None
        chosen = self.rng.choice(writable)
        node, ty = var(chosen.name, chosen.ty), chosen.ty
        if ty in ("f", "i"):
            return node
        place = self.part(scope, node)
        if place.op == "const":  # an array, and no run-time index to reach an element by
            return None
        if self.by_index and "mixed_index" not in self.used:
            for inner in place.walk():
                if inner.op == "comp" or (inner.op == "index" and not is_runtime(inner.kids[1])):
                    return node if is_vector(ty) else None
        return place

    def part(self, scope: Scope, node: Node) -> Node:
        """All of a vector, or one element or component of a variable."""
        ty = node.ty
        if is_vector(ty):
            roll = self.rng.random()
            if roll < 0.4:
                return node
            if roll < 0.55 and vector_size(ty) > 2:
                return Node("comp", [node], "v2", self.rng.choice(("xz", "yx", "zy")))
            if roll < 0.75:
                return Node("comp", [node], "f", "xyzw"[self.rng.randrange(vector_size(ty))])
            return Node("index", [node, self.index(scope, vector_size(ty))], "f")
        place = self.scalar_in(node, scope)
        if "matrix_store" not in self.used and any(is_matrix(part.ty) for part in place.walk()):
            for part in place.walk():
                if part.op == "index":
                    part.kids[1] = const(self.rng.randrange(2))
        return place

    def argument(self, scope: Scope, param: Param) -> Node | None:
        if param.ty in ("t1", "t2"):
            same = [v for v in scope.vars if v.ty == param.ty]
            return var(self.rng.choice(same).name, param.ty) if same else None
        if param.ty == "A":
            names = {struct.name for struct in self.program.structs if struct.interface}
            same = [v for v in scope.vars if v.ty in names and v.name != "this"]
            return var(self.rng.choice(same).name, same[0].ty) if same else None
        if is_array(param.ty):
            same = [v for v in scope.vars if v.ty == param.ty]
            return var(self.rng.choice(same).name, param.ty) if same else None
        return self.expression(scope, param.ty, 1)

    def call(self, scope: Scope, ty: str, depth: int) -> Node | None:
        """A call of a function of the program or of a method."""
        options: list[Node] = []
        if ty == "f":
            for custom in self.program.customs:
                options.append(Node("ucall", [self.scalar(scope, depth - 1) for _ in range(custom.arity)], "f", custom.name))
            owners = {function.owner for function in self.program.functions if function.name == "act"}
            for v in scope.vars:
                if (v.ty in owners and v.name != "this") or v.ty == "A":
                    options.append(Node("mcall", [var(v.name, v.ty), self.scalar(scope.hidden(v.name), 0)], "f", "act"))
        for function in self.callable:
            if not function.written:
                made = self.call_of(function, scope, ty)
                options += [made] if made else []
        if not options:
            return None
        chosen = self.rng.choice(options)
        if chosen.op == "ucall" and self.on("no_diff_call", 0.15):
            return Node("detach", [chosen], ty, note="call")
        return chosen

    def call_of(self, function: Function, scope: Scope, ty: str) -> Node | None:
        if function.ret == "T":
            if ty != "f":
                return None
            return Node("ucall", [self.scalar(scope, 1)], "f", function.name, self.rng.choice(("<float>", "")))
        if function.ret != ty:
            return None
        first = function.params[0].ty
        if first in ("vN", "aN"):
            same = [v for v in scope.vars if (is_vector(v.ty) if first == "vN" else is_array(v.ty)) and v.ty[1] != "N"]
            if not same:
                return None
            chosen = self.rng.choice(same)
            return Node("ucall", [var(chosen.name, chosen.ty), self.scalar(scope, 1)], "f", function.name, f"<{chosen.ty[1]}>")
        args = [self.argument(scope, param) for param in function.params]
        if any(arg is None for arg in args):
            return None
        return Node("ucall", [arg for arg in args if arg is not None], ty, function.name)

    def generic_expression(self, name: str, depth: int) -> Node:
        if depth <= 0:
            return var(name, "T") if self.rng.random() < 0.7 else Node("cast", [self.literal()], "T")
        roll = self.rng.random()
        if roll < 0.7:
            return op(self.rng.choice("+-*"), self.generic_expression(name, depth - 1), self.generic_expression(name, depth - 1), "T")
        return Node("fn", [self.generic_expression(name, depth - 1)], "T", "sin")
