"""Programs as trees. A tree is printed as Slang (print_slang.py) and as Python (print_python.py).

Types are short names: f float, i int, b bool, v2 v3 v4 vectors, vN a vector of generic length, m22 m23 m33 matrices,
a3 an array of 3 floats, aN one of generic length, anything else the name of a struct.
Names of a program's own functions and structs end with @, which stands for the number of the program in its batch.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace


@dataclass
class Node:
    """An expression (with a type) or a statement (without)."""

    op: str
    kids: list[Node] = field(default_factory=list)
    ty: str = ""
    text: str = ""  # name, operator or literal
    note: str = ""  # attribute of a loop, form of a statement

    def walk(self) -> Iterator[Node]:
        yield self
        for kid in self.kids:
            yield from kid.walk()

    def copy(self) -> Node:
        return Node(self.op, [kid.copy() for kid in self.kids], self.ty, self.text, self.note)


@dataclass
class Param:
    name: str
    ty: str
    way: str = "in"  # in, inout, out
    no_diff: bool = False


@dataclass
class Function:
    name: str
    params: list[Param]
    ret: str
    body: Node
    generic: str = ""  # <let N : int> and the like
    owner: str = ""  # the struct of a method
    mutating: bool = False

    @property
    def written(self) -> list[Param]:
        return [param for param in self.params if param.way in ("inout", "out")]


@dataclass
class Struct:
    name: str
    fields: list[tuple[str, str, bool]]  # name, type, no_diff
    interface: str = ""


@dataclass
class Custom:
    """A function of one or two floats with derivatives of its own, which are not those of its value."""

    name: str
    arity: int
    value: str  # of x and y, as both languages write it
    by: tuple[str, ...]  # its derivatives, as both languages write them


@dataclass
class Program:
    """`main` is called with the inputs of the batch that it names; the others are what it calls."""

    seed: int
    main: Function
    functions: list[Function]
    structs: list[Struct]
    customs: list[Custom]
    interfaces: list[str]
    tables: list[tuple[str, list[float]]]  # static const arrays

    def copy(self) -> Program:
        def again(function: Function) -> Function:
            return replace(function, params=list(function.params), body=function.body.copy())

        return replace(self, main=again(self.main), functions=[again(f) for f in self.functions], structs=list(self.structs),
                       customs=list(self.customs), interfaces=list(self.interfaces), tables=list(self.tables))  # fmt: skip

    def all_functions(self) -> list[Function]:
        return [*self.functions, self.main]

    def nodes(self) -> Iterator[Node]:
        for function in self.all_functions():
            yield from function.body.walk()

    def struct(self, name: str) -> Struct:
        return next(struct for struct in [*self.structs, INPUT_STRUCT] if struct.name == name)


INPUT_STRUCT = Struct("In", [("p", "f", False), ("q", "v2", False)])


@dataclass(frozen=True)
class Input:
    name: str
    ty: str
    slang: str
    shape: tuple[int, ...]
    differentiable: bool = True


# What every batch takes. t and w are tensors that programs load from, one for each row of the call.
INPUTS = (
    Input("a", "f", "float a", ()),
    Input("b", "f", "float b", ()),
    Input("v", "v3", "float3 v", (3,)),
    Input("m", "m22", "float2x2 m", (2, 2)),
    Input("h", "a4", "float h[4]", (4,)),
    Input("s.p", "f", "", ()),
    Input("s.q", "v2", "In s", (2,)),
    Input("c", "f", "no_diff float c", (), differentiable=False),
    Input("n", "i", "int n", (), differentiable=False),
    Input("t", "t1", "ITensor<float, 1> t", (5,)),
    Input("w", "t2", "ITensor<float, 2> w", (3, 4)),
)


def vector_size(ty: str) -> int:
    return int(ty[1:])


def is_vector(ty: str) -> bool:
    return len(ty) == 2 and ty[0] == "v"


def is_array(ty: str) -> bool:
    return len(ty) == 2 and ty[0] == "a"


def is_matrix(ty: str) -> bool:
    return len(ty) == 3 and ty[0] == "m" and ty[1:].isdigit()
