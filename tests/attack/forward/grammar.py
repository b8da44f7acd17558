"""Random forward programs. SWITCHES names what can be left out; FAULTS says why the short run of the gate leaves some out."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from ..nodes import Function, Node, Param, Struct
from .expressions import Expressions, Scope, Var, const, int_const, var
from .functions import FUNCTIONS
from .inputs import INPUTS, Constant, ForwardProgram
from .types import SCALARS, base, element, is_array, is_matrix, is_scalar, is_struct, is_vector, shape

TYPES = {
    "int8": ("i8", "u8"),
    "int16": ("i16", "u16"),
    "int64": ("i64", "u64"),
    "half": ("f16",),
    "float": ("f32",),
    "double": ("f64",),
}

SWITCHES = {
    **{name: f"the types {' and '.join(SCALARS[t].slang for t in types)}" for name, types in TYPES.items()},
    "unsigned": "unsigned integers",
    "vector": "vectors",
    "matrix": "matrices",
    "int_matrix": "matrices of integers that are not 32 bits wide",
    "matrix_mul": "products of matrices",
    "struct": "structs",
    "method": "methods of structs",
    "mutating": "[mutating] methods",
    "array": "arrays",
    "index": "indexes that are no constants",
    "swizzle": "components of vectors, and vectors of them",
    "mixed": "scalars beside vectors",
    "function": "helper functions",
    "inout": "inout and out parameters",
    "generic": "generic functions",
    "if": "if statements",
    "loop": "loops",
    "while": "while and do-while loops",
    "leave": "break and continue",
    "switch": "switch statements",
    "return": "return before the end",
    "compound": "compound assignment",
    "increment": "++ and --",
    "ternary": "c ? a : b",
    "select": "select()",
    "implicit": "values of narrower types in declarations and assignments",
    "promote": "operands of narrower types",
    "cast": "casts",
    "bit_cast": "bit_cast, asuint and the like",
    "bitops": "& | ^ ~",
    "shift": "<< and >>",
    "divide": "/ and %",
    "negated": "unsigned integers with a minus",
    "constant": "static const values of the module",
    "constant_choice": "static const values with functions, ternaries and select()",
    "compare_u64": "< and the like of uint64_t",
    "dot": "dot()",
    "special": "infinities, NaN and subnormal numbers as input",
    **{name: f"{name}()" for name in FUNCTIONS},
    "mad_int": "mad() of integers",
    **{f"{name}_narrow": f"{name}() of 8 and 16 bits" for name in ("countbits", "reversebits", "firstbithigh", "firstbitlow")},
    "firstbithigh_64": "firstbithigh() of 64 bits",
}


PLAIN = ("bitops", "shift", "divide", "vector")  # what constants always may have


@dataclass
class Flow:
    """Where a statement stands."""

    depth: int = 0
    loop: bool = False  # break and continue are possible
    result: str = ""  # type that return gives; empty: no return here


@dataclass
class Grammar(Expressions):
    """Draws one program from a seed."""

    seed: int
    without: frozenset[str] = frozenset()
    rng: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self.rng = random.Random(self.seed)
        self.count = 0
        self.left = self.rng.choice((3, 6, 6, 10, 16))  # statements to draw yet
        # Most programs use few constructs, so that what fails is small and one fault does not hide all others.
        self.used = {name for name in SWITCHES if name not in self.without and self.rng.random() < 0.55}
        left_out = {ty for name, types in TYPES.items() if name in self.without for ty in types}
        names = [
            ty
            for ty, row in SCALARS.items()
            if ty not in left_out and ty != "b" and not (row.kind == "u" and "unsigned" in self.without)
        ]
        self.scalars = ["b", *self.rng.sample(names, min(len(names), self.rng.choice((1, 2, 2, 3, 4))))]
        self.program = ForwardProgram(self.seed, Function("p@", [], "i32", Node("block")), [], [], [], [], [], [])
        self.callable = []

    def on(self, name: str, chance: float = 1.0) -> bool:
        return name in self.used and self.rng.random() < chance

    def fresh(self, stem: str) -> str:
        self.count += 1
        return f"{stem}{self.count}"

    def type(self, arrays: bool = False, structs: bool = False) -> str:
        """Any type of the program's scalars."""
        rng, name = self.rng, self.rng.choice(self.scalars)
        roll = rng.random()
        if roll < 0.3 and "vector" in self.used:
            return f"{name}:{rng.choice((2, 3, 4))}"
        if (
            0.3 <= roll < 0.4
            and "matrix" in self.used
            and name != "b"
            and (SCALARS[name].kind == "f" or SCALARS[name].bits == 32 or "int_matrix" in self.used)
        ):
            return f"{name}:{rng.choice((2, 3))}x{rng.choice((2, 3))}"
        if 0.4 <= roll < 0.5 and arrays and "array" in self.used:
            inner = f"{name}:2" if self.on("vector", 0.3) else name
            return f"{inner}[{rng.choice((2, 3, 4))}]"
        if 0.5 <= roll < 0.65 and structs and self.program.structs:
            return rng.choice(self.program.structs).name
        return name

    # ---- a program

    def draw(self) -> ForwardProgram:
        if self.on("constant"):
            for _ in range(self.rng.choice((1, 2))):
                self._draw_constant()
        for _ in range(self.rng.choice((1, 1, 2)) if self.on("struct") else 0):
            self._draw_struct()
        if self.on("generic"):
            self._draw_generic()
        for _ in range(self.rng.choice((0, 1, 1, 2)) if "function" in self.used else 0):
            self._draw_helper()
        self._draw_main()
        return self.program

    def _draw_constant(self) -> None:
        ty = self.type(arrays=True)
        if is_matrix(ty):
            return
        used = self.used
        # These are no compile-time constants to Slang.
        self.used = used - {"select", "and", "or"} if self.on("constant_choice") else used & set(PLAIN)
        value = self.expression(Scope([]), ty, 2 if is_array(ty) else 3)
        self.used = used
        self.program.constants.append(Constant(self.fresh("K") + "@", ty, value))

    def globals(self) -> list[Var]:
        return [Var(constant.name, constant.ty) for constant in self.program.constants]

    def _draw_struct(self) -> None:
        fields = [
            (f"g{at}", self.type(arrays=True, structs=True), False) for at in range(self.rng.choice((1, 2, 3, 4)))
        ]
        struct = Struct(self.fresh("S") + "@", fields)
        self.program.structs.append(struct)
        this = Var("this", struct.name)
        if self.on("method"):
            ret, ty = self.type(), self.type()
            body = self.block(Scope([this, Var("x", ty, True), *self.globals()]), Flow(1, result=ret), 1, ret)
            self._add(Function(self.fresh("act"), [Param("x", ty)], ret, body, "", struct.name))
        if self.on("mutating"):
            ty = self.type()
            body = self.block(Scope([Var("this", struct.name, True), Var("x", ty, True), *self.globals()]), Flow(1), 2)
            self._add(Function(self.fresh("bump"), [Param("x", ty)], "void", body, "", struct.name, True))

    def _draw_generic(self) -> None:
        names = [f"t{at}" for at in range(self.rng.choice((1, 2, 3)))]
        at = self.fresh("x")
        kids = [Node("decl", [self.generic(names, 2)], "T", at)]
        if self.on("if", 0.5):
            test = Node("cmp", [var(at, "T"), var(names[0], "T")], "b", self.rng.choice(("<", ">=", "==")))
            kids.append(Node("if", [test, Node("block", [Node("return", [self.generic(names, 1)])])]))
        kids.append(Node("return", [self.generic([*names, at], 2)]))
        self._add(Function(self.fresh("gen") + "@", [Param(name, "T") for name in names], "T", Node("block", kids),
                           "<T : __BuiltinArithmeticType>"))  # fmt: skip

    def generic(self, names: list[str], depth: int) -> Node:
        if depth <= 0 or self.rng.random() < 0.2:
            return var(self.rng.choice(names), "T")
        return Node(
            "bin", [self.generic(names, depth - 1), self.generic(names, depth - 1)], "T", self.rng.choice("+-*")
        )

    def _add(self, function: Function) -> None:
        self.program.functions.append(function)
        self.callable.append(function)

    def _draw_helper(self) -> None:
        rng = self.rng
        params = []
        for at in range(rng.choice((1, 2, 3))):
            way = rng.choice(("inout", "out")) if self.on("inout", 0.5) else "in"
            params.append(Param(f"y{at}", self.type(arrays=True, structs=True), way))
        scope = Scope([*(Var(p.name, p.ty, True) for p in params), *self.globals()])
        outs = [p for p in params if p.way == "out"]
        given = scope.hidden(*[p.name for p in outs])
        first: list[Node] = []
        for p in outs:
            value = self.passed(given, p.ty, first)
            first.append(Node("assign", [var(p.name, p.ty), value], text="="))
        ret = self.type(structs=True)
        body = self.block(scope, Flow(0, result=ret), rng.choice((0, 1, 2, 3)), ret)
        body.kids[:0] = first
        self._add(Function(self.fresh("f") + "@", params, ret, body))

    def _draw_main(self) -> None:
        rng = self.rng
        fits = [
            name for name, ty in INPUTS.items() if not is_struct(ty) and base(ty).name in self.scalars and self._has(ty)
        ]
        others = [name for name, ty in INPUTS.items() if not is_struct(ty) and self._has(ty) and self._allowed(ty)]
        names = {*rng.sample(fits, min(len(fits), rng.choice((2, 3, 4, 5))))}
        if self.on("cast", 0.5):
            names.add(rng.choice(others))
        if self.on("struct", 0.3) and all(self._allowed(kind) for _, kind, _ in self.program.struct("In").fields):
            names.add("s")
        params = [Param(name, ty, "in") for name, ty in INPUTS.items() if name in names]
        writable = rng.random() < 0.5
        scope = Scope([*(Var(p.name, p.ty, writable) for p in params), *self.globals()])
        main = self.program.main
        main.params = params
        main.ret = self._result()
        main.body = self.block(scope, Flow(0, result=main.ret), rng.choice((0, 1, 2, 3, 5)), main.ret)

    def _result(self) -> str:
        """The type of the result: often a struct of several, so that little of the program is dead."""
        if "struct" not in self.used or self.rng.random() < 0.5:
            return self.type()
        fields = [(f"r{at}", self.type(arrays=True, structs=True), False) for at in range(self.rng.choice((2, 3, 4)))]
        self.program.structs.append(Struct("R@", fields))
        return "R@"

    def _has(self, ty: str) -> bool:
        kind = "vector" if is_vector(ty) else "matrix" if is_matrix(ty) else "array" if is_array(ty) else ""
        return not kind or kind in self.used

    def _allowed(self, ty: str) -> bool:
        row = base(ty)
        out = any(row.name in types for name, types in TYPES.items() if name in self.without)
        return not out and not (row.kind == "u" and "unsigned" in self.without)

    # ---- statements

    def block(self, scope: Scope, flow: Flow, count: int, ret: str = "") -> Node:
        """`count` statements, and with `ret` a return of that type."""
        scope = Scope(list(scope.vars))
        kids: list[Node] = []
        for _ in range(count):
            kids += self.statement(scope, flow)
        if ret:
            kids += self.returned(scope, ret)
        return Node("block", kids)

    def returned(self, scope: Scope, ret: str) -> list[Node]:
        if ret == "R@":
            before: list[Node] = []
            kids = [
                self.leaf(scope, ty, 1) or self.passed(scope, ty, before, 2)
                for _, ty, _ in self.program.struct(ret).fields
            ]
            name = self.fresh("x")
            return [*before, Node("decl", [Node("braces", kids, ret)], ret, name), Node("return", [var(name, ret)])]
        if is_struct(ret) or is_array(ret):
            name = self.fresh("x")
            return [Node("decl", [self.aggregate(scope, ret, 3)], ret, name), Node("return", [var(name, ret)])]
        return [Node("return", [self.expression(scope, ret, 3)])]

    def statement(self, scope: Scope, flow: Flow) -> list[Node]:
        self.left -= 1
        rng = self.rng
        choices = ["decl"] * 3 + ["assign"] * 4
        choices += ["step"] * (2 * ("increment" in self.used)) + ["xcall"] * (3 * any(f.written for f in self.callable))
        choices += ["mutcall"] * (2 * any(f.mutating for f in self.callable))
        if self.left > 0 and flow.depth < 3:
            choices += (
                ["if"] * (2 * ("if" in self.used))
                + ["loop"] * (2 * ("loop" in self.used))
                + ["switch"] * ("switch" in self.used)
            )
        if flow.loop and "leave" in self.used:
            choices += ["leave"]
        if flow.result and flow.depth and "return" in self.used:
            choices += ["return"]
        made: list[Node] | None = getattr(self, f"_{rng.choice(choices)}")(scope, flow)
        return made if made is not None else self._decl(scope, flow)

    def _decl(self, scope: Scope, flow: Flow) -> list[Node]:
        ty = self.type(arrays=True, structs=True)
        name = self.fresh("x")
        value = self.stepped(scope, ty) or self.implicit(scope, ty) or self.expression(scope, ty, 2)
        node = Node("decl", [value], ty, name)
        scope.vars.append(Var(name, ty, True))
        return [node]

    def implicit(self, scope: Scope, ty: str) -> Node | None:
        if is_struct(ty) or is_array(ty) or is_matrix(ty) or not self.on("implicit", 0.3):
            return None
        return self.narrower(scope, ty, 2)

    def stepped(self, scope: Scope, ty: str) -> Node | None:
        """A variable with ++ or --, beside others: in which order they are evaluated is not said."""
        places = [v for v in scope.vars if v.ty == ty and v.writable]
        if not places or not is_scalar(ty) or base(ty).kind == "b" or not self.on("increment", 0.4):
            return None
        chosen = self.rng.choice(places)
        node = Node("step", [var(chosen.name, ty)], ty, self.rng.choice(("++", "--")), self.rng.choice(("pre", "post")))
        return (
            node
            if self.rng.random() < 0.5
            else Node("bin", [node, self.expression(scope.hidden(chosen.name), ty, 1)], ty, self.rng.choice("+-*"))
        )

    def place(self, scope: Scope) -> Node | None:
        """Something that can be assigned to."""
        writable = [v for v in scope.vars if v.writable]
        if not writable:
            return None
        chosen = self.rng.choice(writable)
        node = var(chosen.name, chosen.ty)
        for _ in range(3):
            if is_scalar(node.ty) or (self.rng.random() < 0.4 and not is_struct(node.ty) and not is_array(node.ty)):
                break
            if is_struct(node.ty):
                name, kind, _ = self.rng.choice(self.program.struct(node.ty).fields)
                node = Node("field", [node], kind, name)
            elif is_vector(node.ty) and self.rng.random() < 0.6:
                names = self.rng.sample("xyzw"[: shape(node.ty)[0]], self.rng.choice((1, 2)))
                return Node(
                    "comp", [node], base(node.ty).name + (f":{len(names)}" if len(names) > 1 else ""), "".join(names)
                )
            else:
                node = Node("index", [node, self.index(scope, shape(node.ty)[0])], element(node.ty))
        return node if not is_array(node.ty) else None

    def _assign(self, scope: Scope, flow: Flow) -> list[Node] | None:
        place = self.place(scope)
        if place is None or is_struct(place.ty):
            return None
        row, rng = base(place.ty), self.rng
        if row.kind == "b" or not self.on("compound", 0.5):
            return [
                Node("assign", [place, self.implicit(scope, place.ty) or self.expression(scope, place.ty, 2)], text="=")
            ]
        operators = ["+=", "-=", "*="] + ["&=", "|=", "^="] * (
            row.kind != "f" and "bitops" in self.used and not is_matrix(place.ty)
        )
        operators += ["/=", "%="] * (row.kind != "f" and "divide" in self.used and not is_matrix(place.ty))
        operators += ["<<=", ">>="] * (row.kind != "f" and "shift" in self.used and not is_matrix(place.ty))
        operator = rng.choice(operators)
        if operator in ("/=", "%="):
            value = self.divisor(scope, place.ty, 1)
        elif operator in ("<<=", ">>="):
            value = self.amount(scope, place.ty, 1)
        else:
            value = self.operand(scope, place.ty, 2)
        return [Node("assign", [place, value], text=operator)]

    def _step(self, scope: Scope, flow: Flow) -> list[Node] | None:
        place = self.place(scope)
        if place is None or is_struct(place.ty) or not is_scalar(place.ty) or base(place.ty).kind == "b":
            return None
        return [Node("step", [place], place.ty, self.rng.choice(("++", "--")), self.rng.choice(("pre", "post")))]

    def _if(self, scope: Scope, flow: Flow) -> list[Node]:
        inner = Flow(flow.depth + 1, flow.loop, flow.result)
        kids = [self.truth(scope, "b", 2), self.block(scope, inner, self.rng.choice((1, 2)))]
        if self.rng.random() < 0.5:
            kids.append(self.block(scope, inner, self.rng.choice((1, 2))))
        return [Node("if", kids)]

    def _switch(self, scope: Scope, flow: Flow) -> list[Node]:
        inner = Flow(flow.depth + 1, False, flow.result)
        names = [name for name in ("i32", "u32") if name in self.scalars]
        count = self.rng.choice((2, 3, 4))
        if names:
            ty = self.rng.choice(names)
            test = Node("bin", [self.expression(scope, ty, 1), const(ty, 3)], ty, "&")
        else:
            test = Node(
                "tern",
                [self.truth(scope, "b", 1), int_const(self.rng.randrange(4)), int_const(self.rng.randrange(4))],
                "i32",
            )
        cases = [self.block(scope, inner, 1) for _ in range(count)]
        return [Node("switch", [test, *cases], note=self.rng.choice(("default", "")))]

    def bound(self, scope: Scope) -> Node:
        bound = int_const(self.rng.choice((1, 2, 3, 4)))
        given = [v for v in scope.vars if v.ty == "i32"]
        if given and self.rng.random() < 0.5:
            bound = Node("bin", [var(self.rng.choice(given).name, "i32"), int_const(3)], "i32", "&")
        return bound

    def _loop(self, scope: Scope, flow: Flow) -> list[Node]:
        rng = self.rng
        at = self.fresh("i")
        inner = Flow(flow.depth + 1, "leave" in self.used, flow.result)
        bound = self.bound(scope)
        if bound.op != "const":
            before = self.fresh("n")
            first = [Node("decl", [bound], "i32", before)]
            bound = var(before, "i32")
        else:
            first = []
        body = self.block(scope.plus(Var(at, "i32")), inner, rng.choice((1, 2)))
        start, test = Node("decl", [int_const(0)], "i32", at), Node("cmp", [var(at, "i32"), bound], "b", "<")
        step = Node("step", [var(at, "i32")], "i32", "++", rng.choice(("pre", "post")))
        if self.on("while", 0.4):
            body.kids.insert(0, step)
            return [*first, start, Node(rng.choice(("while", "do")), [test, body])]
        note = (
            "[ForceUnroll]"
            if bound.op == "const"
            and rng.random() < 0.2
            and not any(k.op in ("break", "continue", "return") for k in body.walk())
            else ""
        )
        return [*first, Node("for", [start, test, step, body], note=note)]

    def _leave(self, scope: Scope, flow: Flow) -> list[Node]:
        return [Node("if", [self.truth(scope, "b", 1), Node("block", [Node(self.rng.choice(("break", "continue")))])])]

    def _return(self, scope: Scope, flow: Flow) -> list[Node]:
        return [Node("if", [self.truth(scope, "b", 1), Node("block", self.returned(scope, flow.result))])]

    # ---- calls as statements

    def _xcall(self, scope: Scope, flow: Flow) -> list[Node]:
        function = self.rng.choice([f for f in self.callable if f.written])
        before, args, taken = [], [], set()
        for param in function.params:
            if param.way == "in":
                args.append(None)
                continue
            places = [v for v in scope.vars if v.ty == param.ty and v.writable and v.name not in taken]
            if not places:
                name = self.fresh("x")
                before.append(Node("decl", [self.expression(scope, param.ty, 2)], param.ty, name))
                scope.vars.append(Var(name, param.ty, True))
                places = [scope.vars[-1]]
            chosen = self.rng.choice(places)
            taken.add(chosen.name)
            args.append(var(chosen.name, param.ty))
        apart = scope.hidden(*taken)
        kids = [arg or self.passed(apart, param.ty, before) for arg, param in zip(args, function.params, strict=True)]
        name = self.fresh("x")
        call = Node("decl", [Node("ucall", kids, function.ret, function.name)], function.ret, name)
        scope.vars.append(Var(name, function.ret, True))
        return [*before, call]

    def passed(self, scope: Scope, ty: str, before: list[Node], depth: int = 1) -> Node:
        """An argument; arrays and structs have a variable of their own."""
        node = self.expression(scope, ty, depth)
        if node.op != "braces":
            return node
        name = self.fresh("x")
        before.append(Node("decl", [node], ty, name))
        return var(name, ty)

    def _mutcall(self, scope: Scope, flow: Flow) -> list[Node] | None:
        function = self.rng.choice([f for f in self.callable if f.mutating])
        objects = [v for v in scope.vars if v.ty == function.owner and v.writable and v.name != "this"]
        if not objects:
            return None
        chosen = self.rng.choice(objects)
        args = self.arguments(scope.hidden(chosen.name), function)
        return None if args is None else [Node("mutcall", [var(chosen.name, chosen.ty), *args], text=function.name)]


# What Slang 2026.12 gets wrong itself: few batches of the long run draw these; the short run of the gate draws none.
FAULTS: dict[str, str] = {
    "compare_u64": "3ull >= 0xC000000000000000ull: constants of uint64_t are compared as signed ones",
    "constant_choice": "static const int K = a < b ? 1 : 2, max() and the like: SPIR-V ends with 'Unhandled global inst'",
    "firstbitlow_narrow": "SPIR-V that is not valid: FindILsb gives 32 bits of 8 or 16; drivers seen are right with it",
    "countbits_narrow": "countbits(int8_t(-1)) is 32: SPIR-V counts what extends the sign",
}
KNOWN = frozenset(FAULTS)
GATE_WITHOUT = frozenset(FAULTS)
