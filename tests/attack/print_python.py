"""Python text of programs, run by reference.py on numbers or on torch tensors.

N() is around each arithmetic operation (the reference may add noise there), D() around each decision on floats.
Vectors, matrices, arrays and structs are lists, copied where Slang copies.
"""

from __future__ import annotations

from .nodes import Custom, Function, Node, Program

AXES = {name: at for names in ("xyzw", "rgba") for at, name in enumerate(names)}


class Printer:
    def __init__(self, program: Program):
        self.program = program
        self.function = program.main

    def text(self) -> str:
        lines: list[str] = []
        for name, values in self.program.tables:
            lines.append(f"{_name(name)} = {[float(v) for v in values]!r}")
        for custom in self.program.customs:
            lines += _custom(custom)
        for function in self.program.all_functions():
            lines += self._function(function)
        return "\n".join(lines) + "\n"

    def _function(self, function: Function) -> list[str]:
        self.function = function
        names = ["this"] * bool(function.owner) + [param.name for param in function.params]
        name = _name(function.name)
        lines = [f"def {name if not function.owner else f'{_name(function.owner)}__{name}'}({', '.join(names)}):"]
        for param in function.params:
            if param.no_diff and param.ty != "i":
                lines.append(f"    {param.name} = detach({param.name})")
            if param.way == "out":
                lines.append(f"    del {param.name}")  # it has no value yet
        if function.generic == "<let N : int>":
            lines.append("    _N = len(x)")
        lines += self.statement(function.body, "    ")
        return [*lines, "    " + self._return("None")]

    def _return(self, value: str) -> str:
        out = ["this"] * self.function.mutating + [param.name for param in self.function.written]
        value = f"cp({value})" if out else value  # it may be one of them
        return f"return ({value}, {', '.join(out)})" if out else f"return {value}"

    def expression(self, node: Node) -> str:
        kids = [self.expression(kid) for kid in node.kids]
        match node.op:
            case "const":
                return {"true": "True", "false": "False"}.get(node.text, node.text)
            case "var":
                return "_N" if node.text == "N" else _name(node.text)
            case "bin":
                if node.ty == "i":
                    return f"({kids[0]} {'//' if node.text == '/' else node.text} {kids[1]})"
                if node.ty == "f" or node.ty == "T":
                    return f"N({kids[0]} {node.text} {kids[1]})"
                return f"each({node.text!r}, {kids[0]}, {kids[1]})"
            case "neg":
                return f"(-{kids[0]})" if node.ty in ("f", "i", "T") else f"each('-', 0.0, {kids[0]})"
            case "cmp":
                test = f"{kids[0]} {node.text} {kids[1]}"
                return f"({test})" if node.kids[0].ty == "i" else f"D({test})"
            case "logic":
                return f"({kids[0]} {'and' if node.text == '&&' else 'or'} {kids[1]})"
            case "not":
                return f"(not {kids[0]})"
            case "fn":
                return f"{node.text}_({', '.join(kids)})"
            case "ucall":
                return f"{_name(node.text)}({', '.join(f'cp({kid})' for kid in kids)})"
            case "mcall":
                return f"method({kids[0]}, {node.text!r})(cp({kids[0]}), {', '.join(f'cp({kid})' for kid in kids[1:])})"
            case "field":
                return f"{kids[0]}[{self._place(node)}]"
            case "comp":
                return f"{kids[0]}[{AXES[node.text]}]" if len(node.text) == 1 else f"swizzle({kids[0]}, {node.text!r})"
            case "index" | "load":
                names = kids if node.op == "index" else [node.text, *kids]
                return names[0] + "".join(f"[{kid}]" for kid in names[1:])
            case "make":
                return f"make({node.ty!r}, {', '.join(kids)})"
            case "braces":
                tag = _name(node.ty) if node.ty.endswith("@") or node.ty == "In" else ""
                return f"record({tag!r}, [{', '.join(f'cp({kid})' for kid in kids)}])"
            case "tern":
                return f"({kids[1]} if {kids[0]} else {kids[2]})"
            case "detach":
                return f"detach({kids[0]})"
            case "tofloat":
                return f"float({kids[0]})"
            case "cast":
                return kids[0]
        raise ValueError(node.op)

    def _place(self, node: Node) -> int:
        names = [name for name, _, _ in self.program.struct(node.kids[0].ty).fields]
        return names.index(node.text)

    def _no_diff(self, node: Node) -> bool:
        if node.op == "field":
            return self.program.struct(node.kids[0].ty).fields[self._place(node)][2]
        return False

    def statement(self, node: Node, pad: str) -> list[str]:
        inner = pad + "    "
        match node.op:
            case "block":
                return [line for kid in node.kids for line in self.statement(kid, pad)] or [pad + "pass"]
            case "decl":
                return [f"{pad}{node.text} = cp({self.expression(node.kids[0])})"]
            case "assign":
                return [pad + self._assign(node)]
            case "if":
                lines = [f"{pad}if {self.expression(node.kids[0])}:", *self.statement(node.kids[1], inner)]
                return lines + ([pad + "else:", *self.statement(node.kids[2], inner)] if len(node.kids) > 2 else [])
            case "for" | "while" | "do":
                return self._loop(node, pad)
            case "break" | "continue":
                return [pad + node.op]
            case "return":
                return [pad + self._return(self.expression(node.kids[0]) if node.kids else "None")]
            case "switch":
                return self._switch(node, pad)
            case "xcall":
                called = next(function for function in self.program.functions if function.name == node.text)
                args = ", ".join(f"cp({self.expression(kid)})" for kid in node.kids[1:])
                places = [self.expression(kid) for kid, param in zip(node.kids[1:], called.params, strict=True)
                          if param.way in ("inout", "out")]  # fmt: skip
                value = "_" if node.kids[0].op == "empty" else self.expression(node.kids[0])
                return [f"{pad}{', '.join([value, *places])} = {_name(node.text)}({args})"]
            case "mutcall":
                place = self.expression(node.kids[0])
                args = ", ".join(f"cp({self.expression(kid)})" for kid in node.kids[1:])
                return [f"{pad}_, {place} = method({place}, {node.text!r})(cp({place}), {args})"]
        raise ValueError(node.op)

    def _assign(self, node: Node) -> str:
        left, right = node.kids
        value = self.expression(right)
        if node.text != "=":
            operator = node.text[:-1]
            place = self.expression(left)
            if left.ty == "i":
                value = f"{place} {operator} {value}"
            else:
                value = f"N({place} {operator} {value})" if left.ty == "f" else f"each({operator!r}, {place}, {value})"
        if self._no_diff(left):
            value = f"detach({value})"
        if left.op == "comp" and len(left.text) > 1:
            return f"put({self.expression(left.kids[0])}, {left.text!r}, {value})"
        return f"{self.expression(left)} = cp({value})"

    def _loop(self, node: Node, pad: str) -> list[str]:
        inner, first = pad + "    ", f"first{len(pad)}"
        if node.op == "while":
            return [f"{pad}while {self.expression(node.kids[0])}:", f"{inner}tick()", *self.statement(node.kids[1], inner)]
        lines = [f"{pad}{first} = True"]
        if node.op == "do":
            lines += [f"{pad}while {first} or {self.expression(node.kids[0])}:", f"{inner}tick()", f"{inner}{first} = False"]
            return lines + self.statement(node.kids[1], inner)
        init, condition, step, body = node.kids
        if init.op != "empty":
            lines += self.statement(init, pad)
        lines += [f"{pad}while True:", f"{inner}tick()"]
        if step.op != "empty":
            lines += [f"{inner}if not {first}:", *self.statement(step, inner + "    ")]
        lines.append(f"{inner}{first} = False")
        if condition.op != "empty":
            lines.append(f"{inner}if not {self.expression(condition)}: break")
        return lines + self.statement(body, inner)

    def _switch(self, node: Node, pad: str) -> list[str]:
        cases = node.kids[1:]
        leaves = any(_breaks(case) for case in cases)
        lines = [f"{pad}_case = {self.expression(node.kids[0])}"]
        if leaves:
            lines, pad = [*lines, f"{pad}while True:"], pad + "    "
        for at, case in enumerate(cases):
            last = at == len(cases) - 1 and node.note == "default"
            lines.append(f"{pad}else:" if last else f"{pad}{'if' if at == 0 else 'elif'} _case == {at}:")
            lines += self.statement(case, pad + "    ")
        return [*lines, f"{pad}break"] if leaves else lines


def _breaks(node: Node) -> bool:
    """Whether a break in a case leaves the switch."""
    if node.op in ("for", "while", "do", "switch"):
        return False
    return node.op == "break" or any(_breaks(kid) for kid in node.kids)


def _name(name: str) -> str:
    return name.replace("@", "_")


def _custom(custom: Custom) -> list[str]:
    names = ("x", "y")[: custom.arity]
    pairs = ", ".join(f"({n}, lambda: {d})" for n, d in zip(names, custom.by, strict=True))
    return [f"def {_name(custom.name)}({', '.join(names)}):", f"    return custom(lambda: {custom.value}, {pairs})"]
