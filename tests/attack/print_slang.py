"""Slang text of programs."""

from __future__ import annotations

from .nodes import INPUTS, Custom, Function, Node, Param, Program, Struct, is_array, is_matrix, is_vector

NAMES = {"f": "float", "i": "int", "b": "bool", "void": "void", "vN": "vector<float, N>", "T": "T", "A": "A",
         "t1": "ITensor<float, 1>", "t2": "ITensor<float, 2>"}  # fmt: skip
PARAMS = {param.slang.split()[-1].split("[")[0]: param.slang for param in INPUTS if param.slang}


def type_name(ty: str) -> str:
    if ty in NAMES:
        return NAMES[ty]
    if is_vector(ty):
        return f"float{ty[1]}"
    if is_matrix(ty):
        return f"float{ty[1]}x{ty[2]}"
    return f"float[{ty[1]}]" if is_array(ty) else ty


def declared(ty: str, name: str) -> str:
    return f"float {name}[{ty[1]}]" if is_array(ty) else f"{type_name(ty)} {name}"


def param_text(param: Param) -> str:
    words = ["no_diff"] * param.no_diff + [param.way] * (param.way != "in")
    return " ".join([*words, declared(param.ty, param.name)])


def literal(value: float) -> str:
    text = f"{value:.9g}"
    text = (text if "." in text or "e" in text else text + ".0") + "f"
    return f"({text})" if value < 0 else text


def expression(node: Node) -> str:
    kids = [expression(kid) for kid in node.kids]
    match node.op:
        case "const":
            return literal(float(node.text)) if node.ty == "f" else node.text
        case "var":
            return node.text
        case "bin" | "cmp" | "logic":
            return f"({kids[0]} {node.text} {kids[1]})"
        case "neg" | "not":
            return f"({'-' if node.op == 'neg' else '!'}{kids[0]})"
        case "fn" | "ucall":
            return f"{node.text}{node.note}({', '.join(kids)})"
        case "mcall":
            return f"{kids[0]}.{node.text}({', '.join(kids[1:])})"
        case "field" | "comp":
            return node.text if kids[0] == "this" and node.note == "bare" else f"{kids[0]}.{node.text}"
        case "index":
            return f"{kids[0]}[{kids[1]}]"
        case "load":
            return f"{node.text}[{', '.join(kids)}]" if node.note == "[]" else f"{node.text}.load({', '.join(kids)})"
        case "make":
            return f"{type_name(node.ty)}({', '.join(kids)})"
        case "braces":
            return "{ " + ", ".join(kids) + " }"
        case "tern":
            return f"({kids[0]} ? {kids[1]} : {kids[2]})"
        case "detach":
            return f"(no_diff {kids[0]})" if node.note == "call" else f"detach({kids[0]})"
        case "tofloat":
            return f"float({kids[0]})"
        case "cast":
            return f"{type_name(node.ty)}({kids[0]})"
    raise ValueError(node.op)


class Statements:
    """Statements, as all grammars have them; what the words of types and expressions are is left to each."""

    def declared(self, ty: str, name: str) -> str:
        raise NotImplementedError

    def expression(self, node: Node) -> str:
        raise NotImplementedError

    def statement(self, node: Node, pad: str) -> list[str]:
        inner = pad + "    "
        match node.op:
            case "block":
                return [pad + "{", *(line for kid in node.kids for line in self.statement(kid, inner)), pad + "}"]
            case "decl":
                return [f"{pad}{self.declared(node.ty, node.text)} = {self.expression(node.kids[0])};"]
            case "assign":
                return [f"{pad}{self.expression(node.kids[0])} {node.text} {self.expression(node.kids[1])};"]
            case "if":
                lines = [f"{pad}if ({self.expression(node.kids[0])})", *self.statement(node.kids[1], pad)]
                return lines + ([pad + "else", *self.statement(node.kids[2], pad)] if len(node.kids) > 2 else [])
            case "for":
                init, condition, step, body = node.kids
                start = self.statement(init, "")[0][:-1] if init.op != "empty" else ""
                next_ = self.statement(step, "")[0][:-1] if step.op != "empty" else ""
                test = "" if condition.op == "empty" else self.expression(condition)
                return [f"{pad}{node.note} for ({start}; {test}; {next_})", *self.statement(body, pad)]
            case "while":
                return [f"{pad}{node.note} while ({self.expression(node.kids[0])})", *self.statement(node.kids[1], pad)]
            case "do":
                return [f"{pad}{node.note} do", *self.statement(node.kids[1], pad), f"{pad}while ({self.expression(node.kids[0])});"]
            case "break" | "continue":
                return [f"{pad}{node.op};"]
            case "return":
                return [f"{pad}return {self.expression(node.kids[0])};" if node.kids else pad + "return;"]
            case "switch":
                return self._switch(node, pad)
            case "xcall":
                call = f"{node.text}({', '.join(self.expression(kid) for kid in node.kids[1:])})"
                return [f"{pad}{call};" if node.kids[0].op == "empty" else f"{pad}{self.expression(node.kids[0])} = {call};"]
            case "step":
                return [f"{pad}{self.expression(node)};"]
            case "mutcall":
                return [f"{pad}{self.expression(node.kids[0])}.{node.text}({', '.join(self.expression(kid) for kid in node.kids[1:])});"]
        raise ValueError(node.op)

    def _switch(self, node: Node, pad: str) -> list[str]:
        lines = [f"{pad}switch ({self.expression(node.kids[0])})", pad + "{"]
        cases = node.kids[1:]
        for at, case in enumerate(cases):
            lines.append(pad + ("default:" if at == len(cases) - 1 and node.note == "default" else f"case {at}:"))
            lines += self.statement(case, pad + "    ")
            lines.append(pad + "    break;")
        return [*lines, pad + "}"]


class Floats(Statements):
    def declared(self, ty: str, name: str) -> str:
        return declared(ty, name)

    def expression(self, node: Node) -> str:
        return expression(node)


statement = Floats().statement


def function_text(function: Function, pad: str = "") -> list[str]:
    marks = "[Differentiable] " + ("[mutating] " if function.mutating else "")
    params = ", ".join(_main_param(param) for param in function.params)
    head = f"{pad}{marks}{type_name(function.ret)} {function.name}{function.generic}({params})"
    return [head, *statement(function.body, pad)]


def _main_param(param: Param) -> str:
    return PARAMS[param.name] if param.way == "main" else param_text(param)


def _struct(struct: Struct, program: Program) -> list[str]:
    lines = [f"struct {struct.name} : {struct.interface or 'IDifferentiable'}", "{"]
    lines += [f"    {'no_diff ' * no_diff}{declared(ty, name)};" for name, ty, no_diff in struct.fields]
    for function in program.functions:
        if function.owner == struct.name:
            lines += function_text(function, "    ")
    return [*lines, "}"]


def _custom(custom: Custom) -> list[str]:
    names = ("x", "y")[: custom.arity]
    pairs = [f"inout DifferentialPair<float> p{name}" for name in names]
    reads = " ".join(f"float {name} = p{name}.p;" for name in names)
    stores = " ".join(f"p{n} = diffPair({n}, ({d}) * g);" for n, d in zip(names, custom.by, strict=True))
    tangent = " + ".join(f"({d}) * p{n}.d" for n, d in zip(names, custom.by, strict=True))
    taken = ", ".join(f"DifferentialPair<float> p{name}" for name in names)
    return [
        f"[BackwardDerivative(bwd_{custom.name})] [ForwardDerivative(fwd_{custom.name})]",
        f"float {custom.name}({', '.join(f'float {name}' for name in names)}) {{ return {custom.value}; }}",
        f"void bwd_{custom.name}({', '.join(pairs)}, float g) {{ {reads} {stores} }}",
        f"DifferentialPair<float> fwd_{custom.name}({taken}) {{ {reads} return diffPair({custom.value}, {tangent}); }}",
    ]


def program_text(program: Program, number: int | str) -> str:
    lines: list[str] = []
    for name, values in program.tables:
        lines.append(f"static const float {name}[{len(values)}] = {{ {', '.join(literal(v) for v in values)} }};")
    for name in program.interfaces:
        lines.append(f"interface {name} : IDifferentiable {{ [Differentiable] float act(float x); }}")
    for custom in program.customs:
        lines += _custom(custom)
    for struct in program.structs:
        lines += _struct(struct, program)
    for function in program.all_functions():
        if not function.owner:
            lines += function_text(function)
    return "\n".join(lines).replace("@", f"_{number}") + "\n"


HEAD = "import slangpy;\nstruct In : IDifferentiable { float p; float2 q; }\n"


def batch_text(programs: list[Program], mode: str) -> str:
    """One function that calls all programs. `mode` says how their results leave it: return, out, store or inout."""
    count = len(programs)
    params = [param.slang for param in INPUTS if param.slang]
    target = {"out": f"out float r[{count}]", "store": "IWTensor<float, 1> r", "inout": f"inout float r[{count}]"}
    params += [target[mode]] if mode in target else []
    lines = [f"    float r[{count}];"] if mode == "return" else []
    for k, program in enumerate(programs):
        call = f"{program.main.name.replace('@', f'_{k}')}({', '.join(param.name for param in program.main.params)})"
        add = " + 0.5f * sin(r[{k}])" if mode == "inout" else ""
        lines.append(f"    r.store({k}, {call});" if mode == "store" else f"    r[{k}] = {call}{add.format(k=k)};")
    if mode == "return":
        lines.append("    return r;")
    result = f"float[{count}]" if mode == "return" else "void"
    parts = [program_text(program, k) for k, program in enumerate(programs)]
    head = f"[Differentiable] {result} batch({', '.join(params)})"
    return HEAD + "".join(parts) + "\n".join([head, "{", *lines, "}"]) + "\n"
