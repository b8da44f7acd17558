"""Expressions of host functions as Python: each gives its text and its C++ type."""

from __future__ import annotations

from slangpy.pytorch.raw.entry_points.reader import INTEGERS, SCALARS, Reader, Source, Type, Untranslatable

_LEVELS = (
    ("||",),
    ("&&",),
    ("|",),
    ("^",),
    ("&",),
    ("==", "!="),
    ("<", ">", "<=", ">="),
    ("<<", ">>"),
    ("+", "-"),
    ("*", "/", "%"),
)
_COMPARISONS = ("==", "!=", "<", ">", "<=", ">=")
_COMPONENTS = "xyzw"
_AGGREGATES = ("Vector", "Matrix", "FixedArray", "struct")
_NARROW = {"float": "f32", "half": "f16", "double": "float"}
Expression = tuple[str, Type]
"""Python text and C++ type. A pointer to a list is the list; one to anything else is ("ref", type): a list and an index."""


def own_name(function: str) -> str:
    """Of a translated function: users may call theirs `copy`, as the names of the runtime are."""
    return f"user_{function}"


def wrapped(type_: Type, text: str) -> str:
    """A result of arithmetic as a value of a scalar type."""
    name = str(type_[0])
    if name in INTEGERS:
        bits, signed = INTEGERS[name]
        if text.isdecimal() and int(text) < 1 << bits - 1:
            return text
        return f"wrap({text}, {bits})" if signed else f"({text} & {(1 << bits) - 1})"
    return f"{_NARROW[name]}({text})" if name in _NARROW else f"bool({text})"


def copied(value: Expression) -> str:
    """What an aggregate is when it is assigned or passed."""
    text, type_ = value
    return f"copy({text})" if type_[0] in _AGGREGATES and not text.startswith(("[", "make(")) else text


def is_aggregate(type_: Type) -> bool:
    return type_[0] in _AGGREGATES


def reference(text: str) -> str:
    """The address of an element: the list that it is in, and its index. Empty for what is no element."""
    depth = 0
    for at in range(len(text) - 1, -1, -1):
        depth += (text[at] == "]") - (text[at] == "[")
        if depth == 0:
            return f"({text[:at]}, {text[at + 1 : -1]})" if text[at] == "[" and at else ""
    return ""


def _element(type_: Type) -> Type:
    """Of what `[]` gives an element of."""
    if type_[0] == "Matrix":
        return ("Vector", type_[1], type_[3])
    return type_[1] if len(type_) > 1 and type_[0] != "struct" else ("any",)


class Calls:
    """Calls and the values that they give: needs `_expression`, `_arguments` and `_copied` of `Expressions`."""

    _in: Reader
    _source: Source

    def _expression(self) -> Expression:
        raise NotImplementedError

    def _arguments(self) -> list[Expression]:
        raise NotImplementedError

    def _call(self, name: str) -> Expression:
        read = self._in
        if name == "std::get":
            read.expect("<")
            index = read.number()
            read.expect(">")
            ((text, type_),) = self._arguments()
            inner = type_[1:] if type_[0] == "tuple" else (("any",),)
            return f"{text}[{index}]", inner[min(index, len(inner) - 1)]
        if name == "std::make_tuple":
            parts = self._arguments()
            return "(" + "".join(f"{copied(p)}, " for p in parts) + ")", ("tuple", *(p[1] for p in parts))
        if name in ("torch::empty", "torch::empty_like"):
            return self._new_tensor(name)
        if name == "AT_CUDA_CHECK":
            return self._check()
        if name == "make_tensor_view":
            read.expect("(")
            tensor = self._expression()[0]
            read.expect(",")
            label = read.next()
            while not read.take(")"):
                read.next()
            return f"rt.view({tensor}, {label})", ("view",)
        if name in self._source.functions:
            function = self._source.functions[name]
            parts = [copied(p) for p in self._arguments()]
            return f"{own_name(name)}({', '.join(['rt', *parts])})", function.returns
        if name == "slang_bit_cast":
            read.expect("<")
            target = read.type()
            read.expect(">")
            ((text, type_),) = self._arguments()
            return f"bits({text}, {type_[0]!r}, {target[0]!r})", target
        return self._intrinsic(name)

    def _intrinsic(self, name: str) -> Expression:
        prefix, _, function = name.partition("_")
        scalars = {
            "F32": "float",
            "F64": "double",
            "F16": "half",
            "I32": "int32_t",
            "U32": "uint32_t",
            "I64": "int64_t",
            "U64": "uint64_t",
        }
        if name == "_slang_vector_get_element":
            vector, index = self._arguments()
            return f"{vector[0]}[{index[0]}]", vector[1][1]
        if name == "_slang_select":
            condition, yes, no = self._arguments()
            return f"select({condition[0]}, {yes[0]}, {no[0]})", yes[1]
        if prefix not in scalars:
            raise Untranslatable(f"the function '{name}'")
        parts = self._arguments()
        type_: Type = (scalars[prefix],)
        listed = ", ".join(text for text, _ in parts)
        if function in ("isnan", "isinf", "isfinite"):
            return f"math_{function}({listed})", ("bool",)
        if function.startswith("as"):
            target: Type = ({"asuint": "uint32_t", "asint": "int32_t", "asfloat": "float"}.get(function, ""),)
            if not target[0]:
                raise Untranslatable(f"the function '{name}'")
            return f"bits({listed}, {type_[0]!r}, {target[0]!r})", target
        if function == "sign":
            return f"math_sign({listed})", ("int32_t",)
        return wrapped(type_, f"math_{function}({listed})"), type_

    def _new_tensor(self, name: str) -> Expression:
        read = self._in
        read.expect("(")
        if name == "torch::empty":
            read.expect("{")
            sizes = []
            while not read.take("}"):
                sizes.append(self._expression()[0])
                read.take(",")
            first = f"({''.join(size + ', ' for size in sizes)})"
        else:
            first = self._expression()[0]
        kinds, depth = [], 1
        while depth:
            word = read.next()
            depth += (word == "(") - (word == ")")
            if word.startswith("torch::k") and word != "torch::kCUDA":
                kinds.append(word.removeprefix("torch::"))
        if not kinds:
            raise Untranslatable("a new tensor without element type")
        method = "empty" if name == "torch::empty" else "empty_like"
        return f"rt.{method}({first}, {kinds[-1]!r})", ("tensor",)

    def _check(self) -> Expression:
        read = self._in
        read.expect("(")
        name = read.next()
        if name == "cudaStreamSynchronize":
            read.group("(", ")")
            read.expect(")")
            return "rt.synchronize()", ("void",)
        if name != "cudaLaunchKernel":
            raise Untranslatable(f"the function '{name}'")
        read.expect("(")
        inner = read.group("(", ")")  # (const void*)
        kernel = read.group("(", ")")
        if [t.text for t in inner][-1:] != ["*"] or len(kernel) != 1:
            raise Untranslatable("a launch of something that is not a kernel")
        read.expect(",")
        sizes = []
        for _ in range(2):
            read.expect("slang_bit_cast")
            read.group("<", ">")
            sizes.append(self._arguments()[0][0])
            read.expect(",")
        read.expect("&")
        arguments = self._postfix_name()
        depth = 2
        while depth:
            word = read.next()
            depth += (word == "(") - (word == ")")
        return f"rt.launch({kernel[0].text!r}, {sizes[0]}, {sizes[1]}, {arguments})", ("void",)

    def _postfix_name(self) -> str:
        """`args[int(0)]`: the array that begins there."""
        name = self._in.next()
        self._in.group("[", "]")
        return name


class Expressions(Calls):
    """What stands in a statement."""

    _types: dict[str, Type]
    _boxed: set[str]
    """Variables that are no lists and whose address is passed: each is a list of one."""

    def _zero(self, type_: Type) -> str:
        name = type_[0]
        if name == "Vector" or name == "FixedArray":
            return f"[{self._zero(type_[1])} for _ in range({type_[2]})]"
        if name == "Matrix":
            return f"[[{self._zero(type_[1])}] * {type_[3]} for _ in range({type_[2]})]"
        if name == "struct":
            return "[" + ", ".join(self._zero(t) for _, t in self._source.structs[str(type_[1])]) + "]"
        return {"float": "0.0", "double": "0.0", "half": "0.0", "bool": "False"}.get(
            str(name), "0" if name in INTEGERS else "None"
        )

    def _braces(self, type_: Type) -> str:
        read = self._in
        read.expect("{")
        if type_[0] == "struct":
            inner = [t for _, t in self._source.structs[str(type_[1])]]
        else:
            inner = [type_[1]] * int(type_[2])
        parts = []
        for part in inner:
            if read.peek() == "}":
                parts.append(self._zero(part))
                continue
            parts.append(self._braces(part) if read.peek() == "{" else copied(self._expression()))
            read.take(",")
        read.expect("}")
        return "[" + ", ".join(parts) + "]"

    # --- expressions
    def _expression(self) -> Expression:
        condition = self._binary(0)
        if not self._in.take("?"):
            return condition
        yes = self._expression()
        self._in.expect(":")
        no = self._expression()
        return f"({yes[0]} if {condition[0]} else {no[0]})", yes[1]

    def _binary(self, level: int) -> Expression:
        if level == len(_LEVELS):
            return self._unary()
        left = self._binary(level + 1)
        while True:
            sign = self._sign(level)
            if not sign:
                return left
            left = self._operation(sign, left, self._binary(level + 1))

    def _sign(self, level: int) -> str:
        read = self._in
        sign = read.peek()
        if sign == ">" and read.peek(1) == ">":  # one sign: the reader parts them for the sake of types
            if _LEVELS[level] != ("<<", ">>"):
                return ""
            read.next()
            sign = ">>"
        elif sign not in _LEVELS[level]:
            return ""
        read.next()
        return sign

    def _operation(self, sign: str, left: Expression, right: Expression) -> Expression:
        a, b, type_ = left[0], right[0], left[1]
        if type_[0] in ("Vector", "Matrix"):
            inner: Type = type_[1]
            text, result = self._scalar_operation(sign, "a", "b", inner)
            shape = (type_[0], result, *type_[2:])
            return f"each(lambda a, b: {text}, {a}, {b})", shape
        text, result = self._scalar_operation(sign, a, b, type_)
        return text, result

    @staticmethod
    def _scalar_operation(sign: str, a: str, b: str, type_: Type) -> Expression:
        if sign in ("&&", "||"):
            return f"({a} {'and' if sign == '&&' else 'or'} {b})", ("bool",)
        if sign in _COMPARISONS:
            return f"({a} {sign} {b})", ("bool",)
        name = str(type_[0])
        if sign == "/":
            return (wrapped(type_, f"idiv({a}, {b})") if name in INTEGERS else wrapped(type_, f"fdiv({a}, {b})")), type_
        if sign == "%":
            return (wrapped(type_, f"irem({a}, {b})") if name in INTEGERS else wrapped(type_, f"fmod({a}, {b})")), type_
        if sign in ("<<", ">>"):
            return wrapped(type_, f"({a} {sign} ({b} & {INTEGERS[name][0] - 1}))"), type_
        if name in ("ptr", "tensor", "view", "struct"):
            raise Untranslatable(f"'{sign}' of {name}")
        return wrapped(type_, f"({a} {sign} {b})"), type_

    def _unary(self) -> Expression:
        read = self._in
        sign = read.peek()
        if sign in ("-", "~", "!") and read.kind() == "sign":
            read.next()
            text, type_ = self._unary()
            if type_[0] in ("Vector", "Matrix"):
                inner: Type = type_[1]
                return f"each(lambda a, _: {self._negated(sign, 'a', inner)}, {text}, {text})", type_
            return self._negated(sign, text, type_), ("bool",) if sign == "!" else type_
        if sign == "&":
            read.next()
            text, type_ = self._unary()
            place = "" if is_aggregate(type_) else reference(text)
            return (place, ("ref", type_)) if place else (text, ("ptr", type_))
        if sign == "*":
            read.next()
            return self._pointed_to(self._unary())
        if sign == "(" and self._is_type_in_brackets():
            return self._cast()
        return self._postfix()

    @staticmethod
    def _pointed_to(pointer: Expression) -> Expression:
        text, type_ = pointer
        if type_[0] == "ref":
            return f"{text}[0][{text}[1]]", type_[1]
        if type_[0] != "ptr":
            raise Untranslatable(f"'*' of {type_[0]}")
        return text, type_[1]

    @staticmethod
    def _negated(sign: str, text: str, type_: Type) -> str:
        return f"(not {text})" if sign == "!" else wrapped(type_, f"({sign}{text})")

    def _is_type_in_brackets(self) -> bool:
        read = self._in
        read.at += 1
        begin = read.at
        try:
            if not read.is_type():
                return False
            read.type()
            return read.peek() == ")"
        except Untranslatable:
            return False
        finally:
            read.at = begin - 1

    def _cast(self) -> Expression:
        read = self._in
        read.next()
        type_ = read.type()
        read.expect(")")
        return self._converted(type_, [self._unary()])

    def _converted(self, type_: Type, parts: list[Expression]) -> Expression:
        """`T(parts)`, and `(T)part`."""
        name = str(type_[0])
        if name in INTEGERS:
            whole = parts[0][0] if parts[0][1][0] in INTEGERS else f"int({parts[0][0]})"
            return wrapped(type_, whole), type_
        if name in SCALARS:
            return wrapped(type_, f"float({parts[0][0]})" if name == "double" else parts[0][0]), type_
        if name in ("Vector", "Matrix"):
            inner: Type = type_[1]
            sizes = ", ".join(str(n) for n in type_[2:])
            listed = ", ".join(text for text, _ in parts)
            return f"make(lambda a: {self._converted(inner, [('a', ('any',))])[0]}, ({listed},), {sizes})", type_
        if name == "ptr":
            return parts[0][0], type_
        raise Untranslatable(f"a conversion to {name}")

    def _arguments(self) -> list[Expression]:
        read = self._in
        read.expect("(")
        parts = []
        while not read.take(")"):
            parts.append(self._expression())
            read.take(",")
        return parts

    def _postfix(self) -> Expression:
        value = self._primary()
        read = self._in
        while read.peek() in ("[", ".", "->"):
            if read.next() == "[":
                index = self._expression()[0]
                read.expect("]")
                value = (f"{value[0]}[{index}]", _element(value[1]))
            else:
                value = self._member(value)
        return value

    def _member(self, value: Expression) -> Expression:
        read = self._in
        text, type_ = value
        name = read.next()
        if type_[0] == "ptr":
            type_ = type_[1]
        if type_[0] == "tensor":
            return self._tensor_member(text, name)
        if type_[0] == "Vector" and name in _COMPONENTS:
            return f"{text}[{_COMPONENTS.index(name)}]", type_[1]
        if type_[0] == "Matrix" and name == "rows":
            return text, ("FixedArray", ("Vector", type_[1], type_[3]), type_[2])
        if type_[0] == "struct":
            for at, (field, inner) in enumerate(self._source.structs[str(type_[1])]):
                if field == name:
                    return f"{text}[{at}]", inner
        raise Untranslatable(f"'.{name}' of {type_[0]}")

    def _tensor_member(self, text: str, name: str) -> Expression:
        read = self._in
        if name == "data_ptr":
            read.group("<", ">")
            self._arguments()
            return f"rt.data_ptr({text})", ("uint64_t",)
        parts = self._arguments()
        if name in ("size", "stride"):
            return f"rt.{name}({text}, {parts[0][0]})", ("uint32_t",)
        if name == "dims":
            return f"rt.dims({text})", ("uint32_t",)
        if name == "zero_":
            return f"rt.fill({text}, 0)", ("tensor",)
        if name == "fill_":
            return f"rt.fill({text}, {parts[0][0]})", ("tensor",)
        raise Untranslatable(f"TorchTensor.{name}")

    def _primary(self) -> Expression:
        read = self._in
        kind, text = read.kind(), read.peek()
        if kind == "number":
            return self._literal(read.next())
        if text == "(":
            read.next()
            value = self._expression()
            read.expect(")")
            return value
        if text in ("true", "false"):
            read.next()
            return text.capitalize(), ("bool",)
        if text in ("SLANG_INFINITY", "INFINITY", "NAN"):
            read.next()
            return "NAN" if text == "NAN" else "INFINITY", ("float",)
        if kind != "name":
            raise Untranslatable(f"'{text}'")
        if read.is_type():
            type_ = read.type()
            if read.peek() == "{":
                return self._braces(type_), type_
            return self._converted(type_, self._arguments())
        read.next()
        if text in self._types and read.peek() != "(":
            return (f"{text}[0]" if text in self._boxed else text), self._types[text]
        if text in self._source.variables:
            raise Untranslatable(f"the variable '{text.rpartition('_')[0]}', which is not constant,")
        return self._call(text)

    @staticmethod
    def _literal(text: str) -> Expression:
        if text[:2].lower() == "0x" or not any(c in text for c in ".eEfF"):
            digits = text.rstrip("uUlL")
            unsigned, long = "u" in text.lower(), "l" in text.lower()[len(digits) :]
            return str(int(digits, 0)), (
                ("uint64_t" if unsigned else "int64_t") if long else ("uint32_t" if unsigned else "int32_t"),
            )
        return repr(float(text.rstrip("fFlL"))), ("float" if text[-1] in "fF" else "double",)
