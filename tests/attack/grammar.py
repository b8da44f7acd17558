"""Random programs. Values stay bounded: what is fed back in a loop goes through sin or tanh.

SWITCHES names the constructs that can be left out; FAULTS says why the short run of the gate leaves some out.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from .expressions import Expressions, Scope, Var, boolean, const, number, var
from .nodes import Custom, Function, Node, Param, Program, Struct

SWITCHES = {
    "while": "while and do-while loops",
    "while_break": "break out of a while or do-while loop",
    "while_flag": "a loop condition of a counter and a bool that the body clears (i < n && go)",
    "while_float": "a loop condition of a counter and a float that the body changes (i < n && x < 1)",
    "endless": "for (;;) and while (true), left by break",
    "do": "do-while loops",
    "loop_return": "return inside of a loop",
    "no_diff_vector": "no_diff values in vector constructors",
    "no_diff_call": "no_diff in front of a call",
    "mutating": "[mutating] methods",
    "inout": "inout and out parameters of helper functions",
    "interface": "interfaces with generic functions",
    "generic": "generic functions",
    "custom": "derivatives written by hand",
    "switch": "switch statements",
    "struct": "structs",
    "array": "arrays",
    "tensor": "loads from tensors",
    "table": "static const arrays",
    "detach": "detach()",
    "mixed_index": "elements of one variable by a run-time index and by a constant one",
    "matrix_index": "elements of matrices read by run-time indices",
    "matrix_store": "stores to elements of matrices by an index that is no constant",
}

LONG = "long"
"""What --without has, too: the fifth of the programs that may have functions of 20 statements, and takes half of the time."""

CUSTOMS = (
    Custom("", 1, "sin(x)", ("1.5 * cos(x)",)),
    Custom("", 2, "sin(x) * y", ("cos(x) * y * 0.5", "sin(x) + 0.25")),
    Custom("", 2, "tanh(x + y)", ("1.0 - tanh(x + y) * tanh(x + y)", "0.7 * cos(y)")),
    Custom("", 1, "x * x * 0.5", ("x * 0.9 + 0.1",)),
)


@dataclass
class Flow:
    """Where a statement stands."""

    depth: int = 0
    loop: str = ""  # kind of the loop around it
    switch: bool = False  # nearest breakable is a switch
    result: str = ""  # type that return gives; empty: no return here
    functions: bool = True


@dataclass
class Grammar(Expressions):
    """Draws one program from a seed."""

    seed: int
    without: frozenset[str] = frozenset()
    rng: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self.rng = random.Random(self.seed)
        self.count = 0
        self.left = min(self.rng.choice((4, 8, 8, 12, 20)), 12 if LONG in self.without else 20)  # statements to draw yet
        self.program = Program(self.seed, Function("p@", [], "f", Node("block")), [], [], [], [], [])
        self.callable: list[Function] = []
        self.by_index = self.rng.random() < 0.5
        # Most programs use few constructs, so that what fails is small and one fault does not hide all others.
        self.used = {name for name in SWITCHES if name not in self.without and self.rng.random() < 0.55}

    def on(self, name: str, chance: float = 1.0) -> bool:
        return name in self.used and self.rng.random() < chance

    def fresh(self, stem: str) -> str:
        self.count += 1
        return f"{stem}{self.count}"

    # ---- a program

    def draw(self) -> Program:
        if self.on("table", 0.6):
            self.program.tables.append(("K@", [round(self.rng.uniform(-1, 1), 3) for _ in range(self.rng.choice((2, 3, 5)))]))
        if self.on("custom", 0.7):
            custom = self.rng.choice(CUSTOMS)
            self.program.customs.append(Custom(self.fresh("c") + "@", custom.arity, custom.value, custom.by))
        if self.on("struct"):
            self._draw_structs()
        for _ in range(self.rng.choice((0, 1, 1, 2))):
            self._draw_helper()
        if self.on("generic", 0.8):
            self._draw_generic()
        self._draw_main()
        return self.program

    def _draw_structs(self) -> None:
        interface = "I@" if self.on("interface", 0.8) else ""
        if interface:
            self.program.interfaces.append(interface)
        for _ in range(2 if interface else 1):
            types = [self.rng.choice(("f", "f", "v2", "v3", "a3" if "array" in self.used else "f")) for _ in range(self.rng.choice((1, 2, 3)))]
            fields = [("k", "f", False)] + [(f"g{at}", ty, False) for at, ty in enumerate(types)]
            if self.rng.random() < 0.25:
                fields.append(("u", "f", True))
            struct = Struct(self.fresh("S") + "@", fields, interface)
            self.program.structs.append(struct)
            self._draw_method(struct, "act", False)
            if self.on("mutating", 0.7):
                self._draw_method(struct, "bump", True)
        if interface:
            scope = Scope([Var("q", "A"), Var("x", "f", True)])
            body = self.block(scope, Flow(1, result="f"), 2, "f")
            function = Function(self.fresh("use") + "@", [Param("q", "A"), Param("x", "f")], "f", body, f"<A : {interface}>")
            self.program.functions.append(function)
            self.callable.append(function)

    def _draw_method(self, struct: Struct, name: str, mutating: bool) -> None:
        this = Var("this", struct.name, mutating)
        scope = Scope([this, Var("x", "f", True)])
        body = self.block(scope, Flow(1, result="" if mutating else "f"), 3 if mutating else 1, "" if mutating else "f")
        self.program.functions.append(Function(name, [Param("x", "f")], "void" if mutating else "f", body, "", struct.name, mutating))

    def _draw_helper(self) -> None:
        rng = self.rng
        params = [Param("x", "f")]
        for at in range(rng.choice((0, 1, 2))):
            ty = rng.choice(("f", "v2", "v3", "i", "m22" if rng.random() < 0.4 else "f", "a3" if "array" in self.used else "f",
                             "t1" if "tensor" in self.used else "f"))  # fmt: skip
            way = rng.choice(("inout", "out")) if ty in ("f", "v2", "v3", "a3") and self.on("inout", 0.6) else "in"
            params.append(Param(f"y{at}", ty, "inout" if ty == "a3" and way == "out" else way, ty == "f" and way == "in" and rng.random() < 0.2))
        scope = Scope([Var(p.name, p.ty, p.way != "in" or p.ty in ("f", "v2", "v3"), p.no_diff) for p in params])
        outs = [p for p in params if p.way == "out"]
        given = scope.hidden(*[p.name for p in outs])
        first = [Node("assign", [var(p.name, p.ty), self.expression(given, p.ty, 1)], text="=") for p in outs]
        ret = rng.choice(("f", "f", "v2"))
        body = self.block(scope, Flow(0, result=ret), rng.choice((1, 2, 3)), ret)
        body.kids[:0] = first
        function = Function(self.fresh("f") + "@", params, ret, body)
        self.program.functions.append(function)
        self.callable.append(function)

    def _draw_generic(self) -> None:
        kind = self.rng.choice(("T", "vN", "aN"))
        name = self.fresh("gen") + "@"
        if kind == "T":
            scope = Scope([Var("x", "T")])
            body = Node("block", [Node("return", [self.generic_expression("x", 3)])])
            function = Function(name, [Param("x", "T")], "T", body, "<T : __BuiltinFloatingPointType>")
        else:
            scope = Scope([Var("x", kind), Var("z", "f", True)])
            at = self.fresh("i")
            inner = scope.plus(Var(at, "i"))
            element = Node("index", [var("x", kind), var(at, "i")], "f")
            feed = Node("fn", [Node("bin", [element, self.expression(inner, "f", 1)], "f", "+")], "f", "sin")
            loop = self.counted(at, Node("var", [], "i", "N"), Node("block", [Node("assign", [var("z", "f"), feed], text="+=")]))
            loop.note = "[ForceUnroll]"
            function = Function(name, [Param("x", kind), Param("z", "f")], "f", Node("block", [loop, Node("return", [var("z", "f")])]),
                                "<let N : int>")  # fmt: skip
        self.program.functions.append(function)
        self.callable.append(function)

    def _draw_main(self) -> None:
        rng = self.rng
        names = {"a", *rng.sample(["b", "v", "m", "s", "c", "n"], rng.choice((2, 3, 4, 6)))}
        names |= {"h"} if self.on("array", 0.6) else set()
        names |= {name for name in ("t", "w") if self.on("tensor", 0.7)}
        types = {"a": "f", "b": "f", "v": "v3", "m": "m22", "h": "a4", "s": "In", "c": "f", "n": "i", "t": "t1", "w": "t2"}
        params = [Param(name, ty, "main", name == "c") for name, ty in types.items() if name in names]
        writable = ("a", "b", "v", "m", "h") if rng.random() < 0.5 else ()
        scope = Scope([Var(p.name, p.ty, p.name in writable, p.no_diff) for p in params])
        main = self.program.main
        main.params = params
        main.body = self.block(scope, Flow(0, result="f"), rng.choice((3, 4, 5, 7)), "f")

    # ---- statements

    def block(self, scope: Scope, flow: Flow, count: int, ret: str = "") -> Node:
        """`count` statements, and with `ret` a return of that type that uses what there is."""
        scope = Scope(list(scope.vars))
        kids: list[Node] = []
        for _ in range(count):
            kids += self.statement(scope, flow)
        if ret:
            kids.append(Node("return", [self.total(scope, ret)]))
        return Node("block", kids)

    def total(self, scope: Scope, ret: str) -> Node:
        """A sum of many of the variables, so that few statements are dead."""
        parts = [self.expression(scope, ret, 2)]
        if ret == "f":
            own = [v for v in scope.vars if v.name not in ("t", "w") and v.ty != "i"]
            for v in self.rng.sample(own, min(len(own), 4)):
                parts.append(self.scalar_of(v, scope))
        result = parts[0]
        for part in parts[1:]:
            result = Node("bin", [result, part], ret, self.rng.choice("++-"))
        return result

    def statement(self, scope: Scope, flow: Flow) -> list[Node]:
        rng = self.rng
        self.left -= 1
        if self.left < 0:
            return self.assignment(scope)
        choices = ["decl"] * 4 + ["assign"] * 4 + ["if"] * 2
        if flow.depth < 3:
            choices += ["loop"] * (3 if flow.depth < 2 else 1)
            choices += ["switch"] * (2 if "switch" in self.used and not flow.switch else 0)
        choices += ["xcall"] * (3 if self.callable_written() else 0) + ["mutcall"] * (2 if "mutating" in self.used else 0)
        if flow.loop:
            choices += ["leave"] * 2
        if flow.result and flow.depth and (not flow.loop or "loop_return" in self.used):
            choices.append("return")
        match rng.choice(choices):
            case "decl":
                return [self.declaration(scope)]
            case "assign":
                return self.assignment(scope)
            case "if":
                return [self.if_statement(scope, flow)]
            case "loop":
                return self.loop(scope, flow)
            case "switch":
                return [self.switch(scope, flow)]
            case "xcall":
                return self.written_call(scope)
            case "mutcall":
                return self.mutating_call(scope)
            case "leave":
                return [self.leave(scope, flow)]
            case _:
                done = Node("block", [Node("return", [self.expression(scope, flow.result, 2)])])
                return [Node("if", [self.condition(scope), done])]

    def declaration(self, scope: Scope) -> Node:
        rng = self.rng
        types = ["f", "f", "f", "v2", "v3", "v4", "m22", "m33", "i"] + ["a3", "a2", "a5"] * ("array" in self.used)
        types += [rng.choice(self.program.structs).name, "In"] if self.program.structs else ["f"]
        ty = rng.choice(types)
        name = self.fresh("x")
        value = self.initial(scope, ty)
        scope.vars.append(Var(name, ty, True))
        return Node("decl", [value], ty, name)

    def assignment(self, scope: Scope) -> list[Node]:
        place = self.place(scope)
        if place is None:
            return [self.declaration(scope)]
        ty = place.ty
        if ty == "i":
            total = Node("bin", [self.expression(scope, "i", 1), self.expression(scope, "i", 1)], "i", "+")
            return [Node("assign", [place, Node("bin", [total, const(5)], "i", "%")], text="=")]
        if self.plain_field(place):
            return [Node("assign", [place, Node("detach", [self.squash(self.expression(scope, ty, 1))], ty)], text="=")]
        operator = self.rng.choice(("=", "=", "+=", "-=", "*=")) if ty == "f" or ty[0] == "v" else "="
        value = self.squash(self.expression(scope, ty, 2))
        if operator == "*=":
            value = self.expression(scope, ty, 1)
            value = Node("bin", [number(0.5), self.squash(value)], ty, "*")
        return [Node("assign", [place, value], text=operator)]

    def plain_field(self, place: Node) -> bool:
        """Whether a place is a no_diff field, which takes detached values only."""
        if place.op != "field":
            return False
        return any(name == place.text and no_diff for name, _, no_diff in self.program.struct(place.kids[0].ty).fields)

    def if_statement(self, scope: Scope, flow: Flow) -> Node:
        inner = Flow(flow.depth + 1, flow.loop, flow.switch, flow.result)
        kids = [self.condition(scope), self.block(scope, inner, self.rng.choice((1, 1, 2)))]
        if self.rng.random() < 0.5:
            kids.append(self.block(scope, inner, self.rng.choice((1, 2))))
        return Node("if", kids)

    def switch(self, scope: Scope, flow: Flow) -> Node:
        count = self.rng.choice((2, 3, 4))
        value = self.expression(scope, "i", 1)
        if value.op == "const":
            return self.if_statement(scope, flow)
        choice = Node("bin", [value, const(count)], "i", "%")
        inner = Flow(flow.depth + 1, flow.loop and "switch", True, flow.result)
        cases = [self.block(scope, inner, self.rng.choice((1, 1, 2))) for _ in range(count)]
        return Node("switch", [choice, *cases], note=self.rng.choice(("default", "default", "")))

    def leave(self, scope: Scope, flow: Flow) -> Node:
        """A conditional break or continue."""
        word = self.rng.choice(("break", "continue"))
        if flow.switch:  # Python's text of a switch can have the one or the other
            word = "continue"
        if flow.loop in ("while", "do") and "while_break" not in self.used:
            word = "continue"
        if flow.loop == "endless":
            word = "break"
        return Node("if", [self.condition(scope), Node("block", [Node(word)])])

    # ---- loops

    def counted(self, at: str, bound: Node, body: Node) -> Node:
        start = Node("decl", [const(0)], "i", at)
        step = Node("assign", [var(at, "i"), const(1)], text="+=")
        return Node("for", [start, Node("cmp", [var(at, "i"), bound], "b", "<"), step, body])

    def bound(self, scope: Scope, flow: Flow) -> tuple[Node, int]:
        """How often a loop runs: an expression, and the most that it can be."""
        if scope.has("n") and self.rng.random() < 0.6:
            return var("n", "i"), 6
        count = self.rng.choice((1, 2, 3, 4)) if flow.depth < 2 else self.rng.choice((1, 2, 3))
        return const(count), count

    def loop(self, scope: Scope, flow: Flow) -> list[Node]:
        rng = self.rng
        bound, most = self.bound(scope, flow)
        kinds = ["for"] * 5 + ["while"] * 3 * ("while" in self.used) + ["do"] * 2 * ("do" in self.used) + ["endless"] * 2 * ("endless" in self.used)
        kind = rng.choice(kinds)
        at = self.fresh("i")
        note = f"[MaxIters({most + rng.choice((0, 0, 0, 1, 3)) + (kind in ('do', 'endless'))})]"
        inner_scope = scope.plus(Var(at, "i"))
        body = self.block(inner_scope, Flow(flow.depth + 1, kind, False, flow.result), rng.choice((1, 2, 2, 3)))
        before, extra = self.extra_condition(scope, kind, body)
        counter = var(at, "i")
        test = Node("cmp", [counter, bound], "b", "<")
        test = Node("logic", [test, extra], "b", "&&") if extra else test
        count = Node("assign", [counter, const(1)], text="+=")
        start = Node("decl", [const(0)], "i", at)
        if kind == "for":
            return [*before, self.for_loop(start, test, count, body, bound, note)]
        if kind == "endless":
            leave = Node("if", [Node("not", [test], "b"), Node("block", [Node("break")])])
            body.kids = [leave, count, *body.kids]
            always = boolean(True)
            loop = Node("while", [always, body], note=note) if rng.random() < 0.5 and "while" in self.used else Node(
                "for", [Node("empty"), Node("empty"), Node("empty"), body], note=note)  # fmt: skip
            return [*before, start, loop]
        if _continues(body) or rng.random() < 0.5:
            body.kids.insert(0, count)
        else:
            body.kids.append(count)
        return [*before, start, Node(kind, [test, body], note=note)]

    def for_loop(self, start: Node, test: Node, step: Node, body: Node, bound: Node, note: str) -> Node:
        if test.op == "cmp" and bound.op == "const" and self.rng.random() < 0.5 and not _leaves(body):
            note = self.rng.choice(("[ForceUnroll]", "[MaxIters(8)]"))
        elif test.op == "cmp" and self.rng.random() < 0.2:  # downwards
            start = Node("decl", [bound.copy()], "i", start.text)
            test = Node("cmp", [test.kids[0], const(0)], "b", ">")
            step = Node("assign", [step.kids[0], const(1)], text="-=")
        return Node("for", [start, test, step, body], note=note)

    def extra_condition(self, scope: Scope, kind: str, body: Node) -> tuple[list[Node], Node | None]:
        """A second condition of a loop, with the declaration that it needs."""
        if self.on("while_flag", 0.3):
            name = self.fresh("go")
            clear = Node("if", [self.condition(scope), Node("block", [Node("assign", [var(name, "b"), boolean(False)], text="=")])])
            body.kids.insert(self.rng.randint(0, len(body.kids)), clear)
            return [Node("decl", [boolean(True)], "b", name)], var(name, "b")
        floats = [v for v in scope.vars if v.ty == "f" and v.writable]
        if floats and self.on("while_float", 0.3):
            chosen = self.rng.choice(floats)
            return [], Node("cmp", [var(chosen.name, "f"), number(round(self.rng.uniform(0.3, 1.5), 2))], "b", "<")
        return [], None

    # ---- calls as statements

    def callable_written(self) -> list[Function]:
        return [function for function in self.callable if function.written]

    def written_call(self, scope: Scope) -> list[Node]:
        function = self.rng.choice(self.callable_written())
        before: list[Node] = []
        written: dict[str, Node] = {}
        taken: set[str] = set()
        for param in function.written:
            places = [v for v in scope.vars if v.ty == param.ty and v.writable and v.name not in taken and not v.no_diff]
            if not places:
                name = self.fresh("x")
                before.append(Node("decl", [self.initial(scope, param.ty)], param.ty, name))
                scope.vars.append(Var(name, param.ty, True))
                places = [scope.vars[-1]]
            place = self.rng.choice(places)
            taken.add(place.name)
            written[param.name] = var(place.name, place.ty)
        apart = scope.hidden(*taken)  # the other arguments do not alias what is written
        args = [written[p.name] if p.way != "in" else self.argument(apart, p) for p in function.params]
        if any(arg is None for arg in args):
            return [*before, self.declaration(scope)]
        name = self.fresh("x")
        before.append(Node("decl", [self.zero(function.ret)], function.ret, name))
        scope.vars.append(Var(name, function.ret, True))
        kept = [arg for arg in args if arg is not None]
        return [*before, Node("xcall", [var(name, function.ret), *kept], text=function.name)]

    def mutating_call(self, scope: Scope) -> list[Node]:
        names = {function.owner for function in self.program.functions if function.mutating}
        objects = [v for v in scope.vars if v.ty in names and v.writable and v.name != "this"]
        if not objects:
            return self.assignment(scope)
        chosen = self.rng.choice(objects)
        return [Node("mutcall", [var(chosen.name, chosen.ty), self.expression(scope, "f", 1)], text="bump")]


def _continues(node: Node) -> bool:
    if node.op in ("for", "while", "do"):
        return False
    return node.op == "continue" or any(_continues(kid) for kid in node.kids)


def _leaves(node: Node) -> bool:
    return any(kid.op in ("break", "continue", "return") for kid in node.walk())

# What Slang 2026.12 gets wrong itself, or got wrong until loops were rewritten for it: most batches of the long run draw
# none of these, so that one fault does not hide others; the short run of the gate draws none at all.
FAULTS = {
    "while": "while loops with break had a wrong reverse derivative; they are rewritten as for loops now",
    "do": "as while",
    "endless": "as while",
    "while_flag": "while (i < n && go) ended the process inside libslang; rewritten now",
    "no_diff_vector": "no_diff values in vector constructors: internal compiler error in forward mode; rewritten now",
    "mixed_index": "q = v[n % 3]; v.x += sin(a); return q * a + v.x: the reverse derivative by v loses the share of q where "
    "n % 3 is 0, in silence; for arrays and matrices already return v[n % 3] + sin(v[0])",
    "matrix_index": "return m[n % 2][n % 2] + sin(m[0][1]): the reverse derivative by m loses the share of the first, in silence",
    "matrix_store": "m[n % 2][n % 2] = ...: the reverse derivative was code that no C++ compiler takes, an internal error for "
    "SPIR-V; rewritten now",
}
MENDED = frozenset({"while", "do", "endless", "while_flag", "no_diff_vector", "matrix_store"})  # the long run draws these everywhere
KNOWN = frozenset(FAULTS) - MENDED
GATE_WITHOUT = frozenset(FAULTS)

__all__ = ["FAULTS", "GATE_WITHOUT", "KNOWN", "SWITCHES", "Grammar"]
