"""Random Python values, good and bad, that a careless or unlucky program may pass to a call."""

from __future__ import annotations

import array
import collections
import dataclasses
import datetime
import decimal
import enum
import fractions
import random
import sys
import types
from collections.abc import Callable
from typing import Any

import numpy as np

import slangpy as spy


class Boom(Exception):
    """What user code inside of a value raises; it must come out of the call as it is."""


class RaisesAttributes:
    def __getattr__(self, name: str) -> Any:
        raise Boom(name)


class RaisesThis:
    def get_this(self) -> Any:
        raise Boom("get_this")


class RaisesLength(list):
    def __len__(self) -> int:
        raise Boom("len")


class RaisesIteration(list):
    def __iter__(self) -> Any:
        raise Boom("iter")


class RaisesTuple(tuple):
    def __iter__(self) -> Any:
        raise Boom("iter")


class RaisesArray:
    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise Boom("array")


class RaisesInterface:
    @property
    def __array_interface__(self) -> Any:
        raise Boom("interface")


class BadInterface:
    def __init__(self, interface: Any) -> None:
        self.__array_interface__ = interface


class RaisesDlpack:
    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any:
        raise Boom("dlpack")

    def __dlpack_device__(self) -> Any:
        return (1, 0)


class BadDlpack:
    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any:
        return 7

    def __dlpack_device__(self) -> Any:
        return (1, 0)


class RaisesNumber(float):
    def __float__(self) -> float:
        raise Boom("float")

    def __index__(self) -> int:
        raise Boom("index")


class RaisesInt(int):
    def __int__(self) -> int:
        raise Boom("int")

    def __index__(self) -> int:
        raise Boom("index")


class RaisesRepr:
    def __repr__(self) -> str:
        raise Boom("repr")


class RaisesRange:
    def __getitem__(self, index: int) -> Any:
        raise Boom("getitem")

    def __len__(self) -> int:
        return 3


class Answers:
    """An object whose get_this gives something else, and whose update_this may fail."""

    def __init__(self, value: Any, fails: bool = False) -> None:
        self.value, self.fails = value, fails

    def get_this(self) -> Any:
        return self.value

    def update_this(self, value: Any) -> None:
        if self.fails:
            raise Boom("update_this")


class AnswersItself:
    def get_this(self) -> Any:
        return self


class Mutates:
    """Changes the list or dict that it is in while the call reads it."""

    def __init__(self, target: Any) -> None:
        self.target = target

    def get_this(self) -> Any:
        self.target.clear()
        return 1.0


class Signs:
    def __init__(self, signature: Any) -> None:
        self.slangpy_signature = signature


class SubInt(int):
    pass


class SubFloat(float):
    pass


class SubList(list):
    pass


class SubDict(dict):
    pass


class SubStr(str):
    pass


class SubArray(np.ndarray):
    pass


class SubTensor(spy.Tensor):
    pass


class Numbers(enum.IntEnum):
    one = 1
    big = 2**40


class Odd(enum.Enum):
    text = "text"
    items = (1, 2)
    number = 1.5
    nothing = None
    inner = Numbers.one


@dataclasses.dataclass
class Record:
    x: float = 1.0


Pair = collections.namedtuple("Pair", "x y")

NUMBERS: tuple[Any, ...] = (
    0, 1, -1, 2, 7, 127, 128, 255, 256, -129, 2**15, 2**16, 2**31 - 1, 2**31, -(2**31) - 1, 2**32, 2**63 - 1, 2**63,
    2**64 - 1, 2**64, -(2**63), -(2**63) - 1, 10**30, -(10**400), True, False, 0.0, -0.0, 0.5, 1.5, 1e-45, 1e-320, 3e38,
    4e38, 1e308, float("inf"), float("-inf"), float("nan"), 1e19, -1e19, 2.0**53 + 2, 65504.0, 65520.0,
)  # fmt: skip
DTYPES = ("?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "g", "c8", "c16", "O", "S3", "U3", "M8[s]",
          "m8[s]", ">f4", ">i2", ">f8", "V8", [("x", "f4"), ("y", "i4")], [("w", "f4")])  # fmt: skip
SIZES = (0, 1, 1, 2, 3, 3, 4, 5, 7)
NAMES = ("x", "y", "z", "w", "r", "g", "b", "a", "pos", "mass", "inner", "k", "item", "n", "_type", "$type", "", "primal",
         "grad", "value", "_result", "a b", "x" * 300, "\ud800", "\0", "é", "pos.x", "[0]", "this")  # fmt: skip
TYPES = ("Body", "Inner", "Box<int2>", "Box<float>", "Disc", "Counter", "Mode", "IShape", "float", "float3", "int[4]", "",
         "Nope", "Box<", "Box<Box<Inner>>", "float*", "<", "\ud800", "Tensor<float,1>", "void", "Box", "vector<float,3>")  # fmt: skip


class Values:
    """Draws values with one random generator; the same seed draws the same."""

    def __init__(self, device: Any, module: Any, others: list[Any], dead: list[Any]) -> None:
        self.device, self.module, self.others, self.dead = device, module, others, dead
        self.rng = random.Random(0)
        self.made = ""
        self.made_stack: list[str] = []
        self.makers: list[Callable[[int], Any]] = [
            getattr(self, name) for name in dir(self) if name.startswith("make_")
        ]
        if "torch" not in sys.modules:
            self.makers.remove(self.make_torch)
        self.textures = self._textures()

    def draw(self, depth: int = 0) -> Any:
        """Any value; containers of values to a depth of three."""
        maker = self.rng.choice(self.makers if depth < 3 else [self.make_number])
        self.made_stack.append(maker.__name__[5:])
        return maker(depth)

    def choice(self, *options: Any) -> Any:
        return self.rng.choice(options)

    def size(self) -> int:
        return self.rng.choice(SIZES)

    def shape(self, most: int = 3) -> tuple[int, ...]:
        return tuple(self.size() for _ in range(self.rng.randint(0, most)))

    # --- numbers and math values
    def make_number(self, depth: int) -> Any:
        return self.rng.choice(NUMBERS)

    def make_number_like(self, depth: int) -> Any:
        number = self.rng.choice(NUMBERS)
        kind = self.choice(SubInt, SubFloat, fractions.Fraction, decimal.Decimal, complex, RaisesNumber, RaisesInt, str)
        try:
            return kind(number)
        except (ValueError, OverflowError):
            return kind(3)

    def make_enum(self, depth: int) -> Any:
        return self.choice(*Numbers, *Odd, spy.DeviceType.cpu)

    def make_numpy_scalar(self, depth: int) -> Any:
        array_ = self.array((), self.rng.choice(DTYPES))
        return array_[()]

    def make_math(self, depth: int) -> Any:
        return self.choice(
            spy.float1(1), spy.float2(1, 2), spy.float3(1, 2, 3), spy.float4(), spy.int2(1, 2), spy.int3(3), spy.uint4(1),
            spy.bool2(True), spy.bool3(True), spy.float16_t(1.5), spy.float16_t2(1), spy.double3(1), spy.int64_t2(2),
            spy.float2x3(), spy.float3x3(), spy.float4x4(), spy.quatf.identity(), spy.float3(float("nan"), 1e38, -0.0),
            spy.float3.__new__(spy.float3), spy.float2x3.__new__(spy.float2x3),
        )  # fmt: skip

    # --- text and things that are no values
    def make_text(self, depth: int) -> Any:
        return self.choice(
            "", "x", "1.5", "\ud800", b"", b"abcd", bytearray(b"abcdefgh"), SubStr("numpy"), "numpy", "tensor"
        )

    def make_thing(self, depth: int) -> Any:
        return self.choice(
            None, object(), Ellipsis, NotImplemented, type, int, float, spy.float3, spy.Tensor, np.ndarray, np.float32,
            lambda: 1, iter([1, 2]), (i for i in range(3)), {1, 2}, frozenset(), slice(3), types.SimpleNamespace(x=1),
            datetime.date(2020, 1, 1), Record(), Pair(1, 2.0), sys, np.random.default_rng(0), collections.deque([1, 2]),
            collections.OrderedDict(x=1.0), collections.UserDict(x=1.0), collections.UserList([1.0]), RaisesRepr(),
            self.module, self.module.add, self.module.Body, self.device, self.module.layout, self.module.add.map((0,)),
        )  # fmt: skip

    def make_evil(self, depth: int) -> Any:
        kind = self.choice(
            RaisesAttributes, RaisesThis, RaisesArray, RaisesInterface, RaisesDlpack, BadDlpack, RaisesRepr, RaisesRange,
            AnswersItself, RaisesLength, RaisesIteration, RaisesTuple,
        )  # fmt: skip
        if kind in (RaisesLength, RaisesIteration, RaisesTuple):
            return kind([self.draw(depth + 1)])
        return kind()

    def make_interface(self, depth: int) -> Any:
        base = self.array((3,), "f4").__array_interface__
        changes: Any = self.choice(
            {"shape": 3}, {"shape": (-1,)}, {"typestr": "q"}, {"typestr": 4}, {"data": None}, {"data": (0,)},
            {"version": "a"}, {"strides": (1, 2)}, {"shape": (2**62, 4)}, {},
        )  # fmt: skip
        return BadInterface(self.choice(None, 7, {}, {**base, **changes}))

    def make_answers(self, depth: int) -> Any:
        value = self.draw(depth + 1)
        return self.choice(
            Answers(value), Answers(value, True), Answers(Answers(value)), Answers([value, Answers(1.0)])
        )

    def make_mutating(self, depth: int) -> Any:
        items: list[Any] = [1.0] * self.rng.choice((0, 1, 3, 100))
        items.insert(self.rng.randint(0, len(items)), Mutates(items))
        if self.choice(True, False):
            return items
        fields: dict[str, Any] = {"pos": spy.float3(1), "mass": 1.0, "w": [1.0]}
        fields[self.choice("a", "inner", "x", "z")] = Mutates(fields)
        return fields

    def make_signed(self, depth: int) -> Any:
        return Signs(self.choice(None, "float", 7, "", "x" * 100, Boom))

    # --- lists and dicts
    def make_list(self, depth: int) -> Any:
        count = self.size()
        same = self.choice(True, False)
        first = self.draw(depth + 1)
        items = [first if same else self.draw(depth + 1) for _ in range(count)]
        return self.choice(list, tuple, SubList, collections.deque)(items) if self.choice(True, False) else items

    def make_numbers(self, depth: int) -> Any:
        shape, values = self.shape(4), NUMBERS if self.choice(True, False) else (1, 2, 3.5)

        def fill(sizes: tuple[int, ...]) -> Any:
            return [fill(sizes[1:]) for _ in range(sizes[0])] if sizes else self.rng.choice(values)

        made = fill(shape)
        if shape and self.choice(True, False, False):
            made = [*made, self.choice([], [1], 1, [[2]], made)]
        return made

    def make_dict(self, depth: int) -> Any:
        made: dict[Any, Any] = {}
        for _ in range(self.rng.randint(0, 4)):
            key = self.rng.choice(NAMES)
            made[key] = self.rng.choice(TYPES) if key == "_type" and self.rng.random() < 0.8 else self.draw(depth + 1)
        if self.rng.random() < 0.1:
            made[self.choice(1, None, (1, 2), b"x", 1.5, SubStr("x"))] = 1
        return SubDict(made) if self.rng.random() < 0.1 else made

    def make_struct(self, depth: int) -> Any:
        body: dict[str, Any] = {"pos": spy.float3(1), "mass": 1.0, "inner": {"w": 2.0, "k": 3}}
        place = body if self.choice(True, False) else body["inner"]
        place[self.choice(*place, "extra", "_type")] = self.draw(depth + 1)
        return (
            body
            if self.choice(True, False)
            else [body, {"pos": spy.float3(1), "mass": 1.0, "inner": {"w": 2.0, "k": 3}}]
        )

    def make_typed(self, depth: int) -> Any:
        return {"_type": self.rng.choice(TYPES), self.choice("item", "r", "n", "x"): self.draw(depth + 1)}

    def make_recursive(self, depth: int) -> Any:
        items: list[Any] = []
        items.append(items)
        fields: dict[str, Any] = {}
        fields["inner"] = fields
        mixed: dict[str, Any] = {"pos": [fields]}
        fields["x"] = mixed
        loop = Answers(None)
        loop.value = [loop] if self.choice(True, False) else {"x": loop}
        deep: Any = 1.0
        for _ in range(self.choice(10, 100, 2000)):
            deep = [deep] if self.choice(True, False) else {"inner": deep}
        return self.choice(items, (items, 1), fields, mixed, loop, [fields, fields], deep)

    # --- arrays
    def array(self, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
        count = int(np.prod(shape, dtype=np.int64))
        if dtype == "O":
            made = np.empty(count, object)
            made[:] = [self.rng.choice((1, 1.5, "x", None)) for _ in range(count)]
            return made.reshape(shape)
        base = np.arange(count) % 5
        return base.astype("u1").astype(dtype).reshape(shape) if isinstance(dtype, str) else np.zeros(shape, dtype)

    def strided(self, made: np.ndarray) -> np.ndarray:
        for _ in range(self.rng.randint(0, 2)):
            step = self.rng.randint(0, 7)
            if step == 0:
                made = made.T
            elif step == 1 and made.ndim:
                made = made[::-1]
            elif step == 2 and made.ndim:
                made = made[::2]
            elif step == 3 and made.ndim:
                made = made[..., None] if made.ndim < 6 else made
            elif step == 4:
                made = np.broadcast_to(made, (self.size(), *made.shape)) if made.ndim < 6 else made
            elif step == 5:
                made = made.view(SubArray)
            elif step == 6 and not made.dtype.hasobject:
                raw = np.zeros(made.nbytes + 1, np.uint8)[1:].view()
                shifted = raw.view("u1")[: made.nbytes].view(np.uint8)
                copy = np.ndarray(made.shape, made.dtype, shifted.data)
                copy[...] = made
                made = copy
            elif step == 7:
                made = made.copy()
                made.flags.writeable = False
        return made

    def make_array(self, depth: int) -> Any:
        return self.strided(self.array(self.shape(), self.rng.choice(DTYPES)))

    def make_float_array(self, depth: int) -> Any:
        return self.strided(self.array(self.shape(), self.choice("f4", "f4", "i4", "f8", "u1")))

    def make_odd_array(self, depth: int) -> Any:
        return self.choice(
            np.zeros((1,) * 32, np.float32), np.zeros((1,) * 33, np.float32) if np.__version__ >= "2" else np.zeros(1),
            np.ma.masked_array([1.0, 2.0], [True, False], dtype=np.float32), np.asmatrix([[1.0, 2.0]]),
            np.zeros(3, [("x", "f4")]).view(np.recarray), np.zeros((0, 2**40), np.float32),
            np.broadcast_to(np.float32(1), (2**31, 2**31)), np.broadcast_to(np.float32(1), (2**62,)),
            np.lib.stride_tricks.as_strided(np.zeros(9, np.float32), (3,), (-4,))[0:0], np.zeros((), np.float32),
            array.array("f", [1, 2, 3]), array.array("u", "abc"), memoryview(b"abcd"), released(), memoryview(b"abcd").cast("I"),
            np.zeros(4, np.float32).data, bytearray(8), np.zeros((2, 3), np.float32).flat, np.zeros(3, np.float32).__dlpack__(),
        )  # fmt: skip

    # --- the package's own objects
    def tensor(self, device: Any) -> Any:
        kind = self.choice("f4", "f4", "f4", "i4", "f2", "u8", "?", "float3", "Body")
        shape = self.shape()
        usage = spy.BufferUsage.shader_resource
        if self.rng.random() < 0.8:
            usage = usage | spy.BufferUsage.unordered_access
        if kind == "float3":
            return spy.Tensor.from_numpy(
                device, self.array((*shape, 3), "f4"), usage=usage, target_slang_dtype="float3"
            )
        if kind == "Body":
            return spy.Tensor.zeros(device, shape, dtype=self.module.Body)
        return spy.Tensor.from_numpy(device, self.array(shape, kind), usage=usage)

    def viewed(self, tensor: Any) -> Any:
        step = self.rng.randint(0, 5)
        if step == 0 and len(tensor.shape) >= 2:
            return tensor.T if hasattr(tensor, "T") else tensor
        if step == 1 and len(tensor.shape) and tensor.shape[0] > 1:
            return tensor[1:]
        if step == 2 and len(tensor.shape):
            return tensor.broadcast_to((self.size(), *tuple(tensor.shape)))
        return tensor

    def make_tensor(self, depth: int) -> Any:
        made = self.viewed(self.tensor(self.device))
        if self.rng.random() < 0.3:
            made = self.with_grads(made)
        return made

    def with_grads(self, made: Any) -> Any:
        other = spy.Tensor.from_numpy(self.device, self.array(tuple(made.shape), self.choice("f4", "f4", "i4")))
        attach: Any = self.choice({}, {"grad_in": other}, {"grad_out": other}, {"grad_in": other, "grad_out": other})
        try:
            return made.with_grads(**attach)
        except (ValueError, TypeError):
            return made

    def make_foreign_tensor(self, depth: int) -> Any:
        return self.choice(self.tensor(self.rng.choice(self.others)), self.rng.choice(self.dead))

    def make_raw_object(self, depth: int) -> Any:
        """Instances that were never initialised."""
        kind = self.choice(spy.Tensor, SubTensor, spy.ValueRef, spy.DiffPair, spy.Buffer, spy.Texture, spy.Sampler,
                           spy.Module, spy.FunctionNode, spy.Shape, spy.float4, spy.GridArg, spy.Device)  # fmt: skip
        return kind.__new__(kind)

    def make_buffer(self, depth: int) -> Any:
        usage = self.choice(
            spy.BufferUsage.shader_resource, spy.BufferUsage.shader_resource | spy.BufferUsage.unordered_access
        )
        return self.device.create_buffer(size=self.choice(4, 16, 24, 64), usage=usage)

    def _textures(self) -> list[Any]:
        made: list[Any] = [spy.Shape(1, 2)]
        if self.device.type in (spy.DeviceType.cpu,):
            return made
        texture = self.device.create_texture(
            width=4, height=4, format=spy.Format.rgba32_float,
            usage=spy.TextureUsage.shader_resource | spy.TextureUsage.unordered_access,
        )  # fmt: skip
        return [*made, texture, texture.create_view(), self.device.create_sampler()]

    def make_resource(self, depth: int) -> Any:
        return self.rng.choice([*self.textures, self.device.create_command_encoder()])

    def make_reference(self, depth: int) -> Any:
        value = self.draw(depth + 1)
        second = self.draw(depth + 1)
        return self.choice(
            spy.ValueRef(value), spy.ValueRef(spy.ValueRef(value)), spy.DiffPair(value, second), spy.DiffPair(1.0, second),
            spy.DiffPair(value, None), spy.DiffPair(None, second), spy.ValueRef(spy.DiffPair(value, 1.0)),
            spy.DiffPair(1.0, 0.0, needs_grad=False),
        )  # fmt: skip

    def make_recursive_reference(self, depth: int) -> Any:
        reference, pair = spy.ValueRef(0.0), spy.DiffPair(0.0, 0.0)
        reference.value = self.choice(reference, [reference], pair, {"x": reference})
        pair.primal = self.choice(pair, reference, [pair])
        return self.choice(reference, pair)

    def make_range(self, depth: int) -> Any:
        return self.choice(
            range(0),
            range(3),
            range(5, -5, -2),
            range(2**40, 2**40 + 3),
            range(2**62),
            range(-1, 10**30),
            range(10**30, 0),
        )

    def make_generator(self, depth: int) -> Any:
        odd = (-1, 0, 1, 2, 3, 5, 2**31, 2**62, -7)
        sizes = tuple(self.rng.choice(odd) for _ in range(self.rng.randint(0, 4)))
        try:
            return self.choice(
                lambda: spy.grid(sizes),
                lambda: spy.grid((2, 3), offset=sizes),
                lambda: spy.grid((2, 3), stride=sizes),
                lambda: spy.grid(self.rng.choice(odd)),
                lambda: spy.call_id(self.rng.choice(odd)),
                lambda: spy.call_id(sizes),
                lambda: spy.thread_id(self.rng.choice(odd)),
                lambda: spy.wang_hash(
                    self.rng.choice(odd), seed=self.rng.choice(NUMBERS), warmup=self.rng.choice((0, 3))
                ),
                lambda: spy.rand_float(self.rng.choice(NUMBERS), self.rng.choice(NUMBERS), self.rng.choice(odd)),
            )()
        except (ValueError, TypeError, OverflowError):
            return spy.thread_id()

    def make_packed(self, depth: int) -> Any:
        try:
            return spy.pack(self.module, self.draw(depth + 1))
        except (ValueError, TypeError):
            return 1

    def make_instances(self, depth: int) -> Any:
        try:
            return spy.InstanceList(
                self.module.Body, self.choice(None, {}, {"mass": 1.0}, {"mass": self.draw(depth + 1)})
            )
        except (ValueError, TypeError):
            return 1

    # --- torch
    def make_torch(self, depth: int) -> Any:
        torch = sys.modules["torch"]
        dtypes = (torch.float32, torch.float32, torch.float64, torch.int32, torch.bool, torch.float16, torch.bfloat16,
                  torch.complex64, torch.uint8, torch.int64)  # fmt: skip
        made = torch.ones(self.shape(), dtype=self.rng.choice(dtypes))
        step = self.rng.randint(0, 13)
        if step == 0:
            return made.t() if made.dim() == 2 else made
        if step == 1 and made.dim():
            return made[:, None].expand(made.shape[0], 3, *made.shape[1:])
        if step == 2 and made.is_floating_point():
            return made.requires_grad_()
        if step == 3:
            return made.to("meta")
        if step == 4:
            return made.to_sparse()
        if step == 5 and made.is_complex():
            return made.conj()
        if step == 6:
            return torch.nn.Parameter(torch.ones(3))
        if step == 7:
            return torch.quantize_per_tensor(torch.ones(3), 0.1, 10, torch.quint8)
        if step == 8:
            return spy.diff_pair(made, None) if made.is_floating_point() else made
        if step == 9 and made.is_floating_point():
            return (made.requires_grad_() * 2)[..., :1] if made.dim() else made
        if step == 10:
            return self.choice(torch.float32, torch.device("cpu"), torch.Size([1, 2]), torch.nn.Linear(1, 1), torch)
        if step == 11 and made.is_floating_point():
            return torch._neg_view(made)
        return made


def released() -> memoryview:
    view = memoryview(b"abcd")
    view.release()
    return view
