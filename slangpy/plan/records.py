"""The frozen records that the planning stages hand to each other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True)
class Value:
    """One argument as the key describes it: kind, class, dtype, rank. `leaf` numbers values without fields."""

    kind: str
    python_type: str
    details: dict[str, Any]
    leaf: int
    fields: tuple[tuple[str | None, Value], ...] = ()

    @staticmethod
    def decode(data: tuple[Any, ...]) -> Value:
        kind, python_type, details, leaf, fields = data
        if kind == "torch":  # a container like any other; only reading it differs
            kind, python_type, details = "array", "torch.Tensor", {**details, "torch": True}
        children = tuple((name, Value.decode(child)) for name, child in fields)
        name = python_type if "torch" in details else python_type.rsplit(".", 1)[-1]
        return Value(kind, name, details, leaf, children)

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.details.get("shape", ()))

    def walk(self) -> Iterator[Value]:
        """The value and all that it is made of."""
        yield self
        for _, child in self.fields:
            yield from child.walk()

    def summary(self) -> str:
        """Short text for messages: class, dtype and shape, never contents."""
        details = self.details
        if details.get("packed"):
            return f"PackedArg of {replace(self, details={**details, 'packed': False}).summary()}"
        text = self.python_type
        if self.kind == "tensor":
            return f"{text}<{details['type_name']}> {list(self.shape)}"
        if self.kind == "array":
            return f"{text}<{details['scalar']}> {list(self.shape)}"
        if self.kind == "list" and self.details.get("items"):
            return f"{text}[" + ", ".join(child.summary() for _, child in self.fields) + "]"
        if self.kind == "list":
            return f"{text} {list(self.shape)}"
        if self.kind == "generator":
            return str(self.details["generator"])
        if self.kind == "dict" and "list_length" in self.details:
            return f"list of {self.details['list_length']} dict{{" + ", ".join(str(n) for n, _ in self.fields) + "}"
        if self.kind == "buffer":
            return f"{text}[rw={details['writable']}]"
        if self.kind in ("texture", "texture_view"):
            kind = details["texture_type"].removeprefix("texture_")
            return f"{text}<{kind}, {details['format']}> {list(self.shape)}"
        if self.kind == "dict":
            return "dict{" + ", ".join(str(name) for name, _ in self.fields) + "}"
        return text


@dataclass(frozen=True)
class Argument:
    """A value with the name it was passed by (None: by position)."""

    name: str | None
    value: Value
    position: int


@dataclass(frozen=True)
class RayTracing:
    """The shaders that the rays of a call reach, by the names of their entry points; see FunctionNode.ray_tracing."""

    hit_groups: tuple[tuple[str, str, str, str], ...]
    """Name, closest hit, any hit, intersection."""
    miss_entry_points: tuple[str, ...]
    hit_group_names: tuple[str, ...]
    callable_entry_points: tuple[str, ...]
    max_recursion: int
    max_ray_payload_size: int
    max_attribute_size: int
    flags: int

    @property
    def entry_points(self) -> tuple[str, ...]:
        """All that are named, each once."""
        hits = [name for group in self.hit_groups for name in group[1:]]
        return tuple(dict.fromkeys(filter(None, (*self.miss_entry_points, *hits, *self.callable_entry_points))))


@dataclass(frozen=True)
class Options:
    """What decides a call's kernel besides its arguments: the modifiers that belong to the key."""

    map_args: tuple[Any, ...] = ()
    map_kwargs: tuple[tuple[str, Any], ...] = ()
    constants: tuple[tuple[str, Any], ...] = ()
    preludes: tuple[str, ...] = ()
    conformances: tuple[tuple[str, str, int], ...] = ()
    return_type: Any = None
    bwds: bool = False
    fwds: bool = False
    second: bool = False
    """With bwds: the gradient of what a backward call gives, see second_order."""
    call_group_shape: tuple[int, ...] | None = None
    thread_group_size: tuple[int, int, int] | None = None
    convert: str | None = None
    deterministic: bool = False
    check_bounds: bool = False
    rays: RayTracing | None = None
    """The call runs as a ray generation shader."""


@dataclass(frozen=True)
class Binding:
    """How one value meets one Slang type.

    `kind` names the kind of leaf (plan/kinds/), or is "struct" for parts that are bound one by one (fields by name,
    elements of an array as "[0]", "[1]", ...). The first `dims` dimensions of the value are spread over the call; `inner`
    are the demanded sizes of the consumed ones (-1: any).
    """

    kind: str
    value: Value | None
    type_name: str
    type: Any
    dims: int = 0
    inner: tuple[int, ...] = ()
    stored: str = ""  # Slang type of one stored element; literals: the text that is written into the kernel
    fields: tuple[tuple[str, Binding], ...] = ()
    cost: tuple[int, int] = (0, 0)
    rank: int = -1  # tensors: rank of the parameter
    widen: bool = False  # a number for a vector
    view: str = ""  # a TensorView or DiffTensorView: the name of its type; the rest says what it is made from
    vectors: int = 0  # of a TensorView: how many scalars lie side by side as a vector; 1: its own elements
    packs: int = 0  # of a Tensor of vectors over an array of scalars: how many there are in a vector
    pair: bool = False  # a DiffPair for a DifferentialPair<T>; `stored` is T

    array_type: str = ""  # resources: the array of resources that this is an element of
    lifted: int = 0  # arrays of structs: dimensions of the array, which the types of the fields have in front
    marshall: Any = None  # custom: the marshall of a registered class, and the text it adds to the kernel
    code: Any = None

    def leaves(self) -> list[Binding]:
        if self.kind != "struct":
            return [self]
        return [leaf for _, child in self.fields for leaf in child.leaves()]


@dataclass(frozen=True)
class Parameter:
    """One parameter of the resolved function, with what is bound to it."""

    name: str
    type: Any
    type_name: str
    io: str  # "in", "out", "inout", "return"
    no_diff: bool
    binding: Binding
    argument: Argument | None
    is_this: bool = False
    generality: int = 0  # 1: the declared type mentions a type parameter, 2: it is an interface


@dataclass(frozen=True)
class Resolved:
    """The function that a call means, with every argument bound."""

    function: Any
    call_name: str
    parameters: tuple[Parameter, ...]
    return_type: Any
    return_type_name: str
    kind: str = "function"  # "function", "method", "static", "constructor"
    struct_name: str = ""
    differentiable: bool = False


@dataclass(frozen=True)
class Placed:
    """A leaf with its place in the call: which call dimension each of its dimensions goes to.

    Elements of an array of resources share one kernel parameter: `ident` of the first, `element` counts them.
    """

    path: str
    binding: Binding
    map: tuple[int, ...]
    reads: bool
    writes: bool
    io: str
    leaf: int
    ident: str
    element: int = 0
    held: bool = False  # a resource inside of an array of structs, which the kernel has as a parameter of its own
    addressed: bool = False  # a tensor whose address the function may take: it has to be contiguous

    @property
    def parameter(self) -> str:
        """Name of the parameter that the leaf is a part of."""
        return self.path.split(".", 1)[0].split("[", 1)[0]


@dataclass(frozen=True)
class Vectorized:
    resolved: Resolved
    call_rank: int
    placed: tuple[Placed, ...]
    result_mode: str
    result: Placed | None
    size_dependent: bool = False
    shape_dependent: bool = False  # sizes of containers belong to the key as well as those of lists
    tile: tuple[int, ...] = ()  # shape of the call groups, in all dimensions of the call; empty without groups
    positions: bool = False  # the function may ask CallShapeInfo where it is
    sees_threads: bool = False  # and which invocations share its group
    whole: int = 0  # threads of a group that all run the function to its end, as its waves work together (whole_groups.py)
    statics: bool = False  # and may write variables that live as long as its thread
    may_loop: bool = False  # the function may have loops (GPUs: looked at where it picks elements of tensors)


@dataclass(frozen=True)
class Derivative:
    """What a backward or forward-mode call does with the gradient (forward: the tangent) of one leaf."""

    grad_type: str = ""
    """Type of one element where the gradient goes."""
    seed: str = ""  # "", "view", "value": where the incoming gradient or tangent is read
    target: str = ""  # "", "view", "reference" (a gradient for a DiffPair), "pair" (its primal and its tangent)
    seed_view: str = "gi"  # of containers: which gradient is read, grad_in or grad_out
    target_view: str = "go"
    seed_type: str = ""
    """Type of one element where the incoming gradient is read, for containers."""
    forward: bool = False
    by_load: bool = False  # registered classes: the derivative of their own load takes the gradient
    sums: Any = None  # sums.Sums: summed beside the gradient's memory where invocations share elements

    @property
    def views(self) -> tuple[str, ...]:
        """The gradients of a container that a kernel takes."""
        read = (self.seed_view,) if self.seed == "view" else ()
        return tuple(dict.fromkeys((*read, *((self.target_view,) if self.target == "view" else ()))))

    def view_type(self, view: str) -> str:
        """Type of one element of one of `views`."""
        return self.seed_type if self.seed == "view" and view == self.seed_view else self.grad_type
