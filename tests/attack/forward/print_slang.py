"""Slang text of forward programs."""

from __future__ import annotations

from ..nodes import Function, Node, Param, Struct
from ..print_slang import Statements
from .inputs import INPUT_STRUCT, INPUTS, ForwardProgram
from .types import base, declared, slang_name

AS = {"f32": "asfloat", "u32": "asuint", "i32": "asint", "f16": "asfloat16", "u16": "asuint16", "i16": "asint16"}


def literal(node: Node) -> str:
    """One that has the type of the constant, with the suffix for it where there is one."""
    row, text = base(node.ty), node.text
    if node.note == "hex":
        text = f"0x{int(text):X}"
    if row.kind == "b":
        return text
    if row.kind == "f":
        suffix = {16: "h", 32: "f", 64: "lf"}[row.bits]
        return f"({text}{suffix})" if text.startswith("-") else text + suffix
    if row.bits < 32:
        return f"{row.slang}({text})"
    suffix = ("" if row.bits == 32 else "ll") if row.kind == "i" else ("u" if row.bits == 32 else "ull")
    if int(node.text) == row.low and row.kind == "i":
        return f"({int(node.text) + 1}{suffix} - 1{suffix})"
    return f"({text}{suffix})" if text.startswith("-") else text + suffix


class Printer(Statements):
    def declared(self, ty: str, name: str) -> str:
        return declared(ty, name)

    def expression(self, node: Node) -> str:
        kids = [self.expression(kid) for kid in node.kids]
        match node.op:
            case "const":
                return literal(node)
            case "var":
                return node.text
            case "bin" | "cmp" | "logic":
                return f"({kids[0]} {node.text} {kids[1]})"
            case "neg" | "not" | "inv":
                return f"({ {'neg': '-', 'not': '!', 'inv': '~'}[node.op] }{kids[0]})"
            case "fn" | "ucall":
                return f"{node.text}{node.note}({', '.join(kids)})"
            case "mcall":
                return f"{kids[0]}.{node.text}({', '.join(kids[1:])})"
            case "field" | "comp":
                return f"{kids[0]}.{node.text}"
            case "index":
                return f"{kids[0]}[{kids[1]}]"
            case "cast" if node.note == "implicit":
                return kids[0]
            case "cast" if node.note == "c":
                return f"(({slang_name(node.ty)}){kids[0]})"
            case "make" | "cast":
                return f"{slang_name(node.ty)}({', '.join(kids)})"
            case "braces":
                return "{ " + ", ".join(kids) + " }"
            case "tern":
                return f"({kids[0]} ? {kids[1]} : {kids[2]})"
            case "select" | "mul" | "dot" | "transpose":
                return f"{node.op}({', '.join(kids)})"
            case "bits":
                name = base(node.ty).name
                return (
                    f"{AS[name]}({kids[0]})"
                    if name in AS and node.note != "cast"
                    else f"bit_cast<{slang_name(node.ty)}>({kids[0]})"
                )
            case "step":
                return f"({node.text}{kids[0]})" if node.note == "pre" else f"({kids[0]}{node.text})"
        raise ValueError(node.op)


PRINTER = Printer()


def _param(param: Param) -> str:
    return f"{param.way + ' ' if param.way != 'in' else ''}{declared(param.ty, param.name)}"


def _function(function: Function, pad: str = "") -> list[str]:
    head = f"{pad}{'[mutating] ' * function.mutating}{slang_name(function.ret)} {function.name}"
    return [
        f"{head}{function.generic}({', '.join(map(_param, function.params))})",
        *PRINTER.statement(function.body, pad),
    ]


def _struct(struct: Struct, functions: list[Function]) -> list[str]:
    lines = [f"struct {struct.name}", "{"]
    lines += [f"    {declared(ty, name)};" for name, ty, _ in struct.fields]
    for function in functions:
        if function.owner == struct.name:
            lines += _function(function, "    ")
    return [*lines, "}"]


def program_text(program: ForwardProgram, number: int | str) -> str:
    lines: list[str] = []
    for constant in program.constants:
        lines.append(f"static const {declared(constant.ty, constant.name)} = {PRINTER.expression(constant.value)};")
    for struct in program.structs:
        lines += _struct(struct, program.functions)
    for function in program.all_functions():
        if not function.owner:
            lines += _function(function)
    return "\n".join(lines).replace("@", f"_{number}") + "\n"


def named_inputs(programs: list[ForwardProgram]) -> list[str]:
    used = {param.name for program in programs for param in program.main.params}
    return [name for name in INPUTS if name in used]


def batch_text(programs: list[ForwardProgram]) -> str:
    """One function that calls all programs and gives the results of each in a parameter of its own."""
    names = named_inputs(programs)
    params = [declared(INPUTS[name], name) for name in names]
    params += [f"out {declared(program.main.ret, f'r{k}')}".replace("@", f"_{k}") for k, program in enumerate(programs)]
    calls = [
        f"    r{k} = p_{k}({', '.join(param.name for param in program.main.params)});"
        for k, program in enumerate(programs)
    ]
    head = ["import slangpy;", *(_struct(INPUT_STRUCT, []) if "s" in names else [])]
    texts = [program_text(program, k) for k, program in enumerate(programs)]
    body = [f"void batch({', '.join(params)})", "{", *calls, "}"]
    return "\n".join(head) + "\n" + "".join(texts) + "\n".join(body) + "\n"


__all__ = ["batch_text", "named_inputs", "program_text"]
