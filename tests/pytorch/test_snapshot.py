"""What a backward pass reads is what the forward pass read, whatever happens to the arguments in between."""

from __future__ import annotations

import array
import ctypes
import enum
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from tiers import gate

torch = pytest.importorskip("torch")

from torch_support import device_of  # noqa: E402

import slangpy as spy  # noqa: E402

SOURCE = """
import "slangpy";
struct Pair : IDifferentiable { float a; float b; };
[Differentiable] float scalar(float k, float x) { return k * k * x * x; }
[Differentiable] float vector(float3 k, float x) { return dot(k, k) * x * x; }
[Differentiable] float matrix(float2x2 k, float x) { return (k[0][0] + k[1][1]) * (k[0][0] + k[1][1]) * x * x; }
[Differentiable] float fields(Pair k, float x) { return (k.a + k.b) * (k.a + k.b) * x * x; }
[Differentiable] float listed(float k[3], float x) { return (k[0] + k[1] + k[2]) * (k[0] + k[1] + k[2]) * x * x; }
[Differentiable] float changes(inout float k, float x) { float y = k * k * x * x; k = 1000; return y; }
[Differentiable] void changes_too(inout float k, inout float x) { x = k * k * x * x; k = 1000; }
[Differentiable] void splits(float x, out float k, out float y) { k = x * x; y = x * x * x; }
[Differentiable] float changes_whole(int i, IRWTensor<float, 1> k, float x)
{
    float v = k[i];
    k[i] = 1000;
    return v * v * x * x;
}
uniform float gain;
struct Globals { float p; float3 q; }
uniform Globals both;
uniform float row[3];
[Differentiable] float with_gain(float x) { return gain * gain * x * x; }
[Differentiable] float with_struct(float x) { return (both.p + both.q.x) * (both.p + both.q.x) * x * x; }
[Differentiable] float with_row(float x) { return row[0] * row[0] * x * x; }
"""


@cache
def module_on(where: str) -> Any:
    return spy.Module.load_from_source(device_of(where), "torch_snapshot", SOURCE)


@pytest.fixture
def module(where: str) -> Any:
    return module_on(where)


class Exporter:
    def __init__(self) -> None:
        self.array = np.float32([2, 3, 4])

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.array.__dlpack_device__()


class WithInterface:
    def __init__(self) -> None:
        self.array = np.float32([2, 3, 4])

    @property
    def __array_interface__(self) -> Any:
        return self.array.__array_interface__


class Holder:
    def __init__(self, value: Any) -> None:
        self.value, self.asked = value, 0

    def get_this(self) -> Any:
        self.asked += 1
        return self.value


class Mode(enum.Enum):
    three = 3.0


def assign(target: Any, name: Any, value: Any) -> Callable[[], None]:
    def change() -> None:
        if isinstance(name, str):
            setattr(target, name, value)
        else:
            target[name] = value

    return change


def numbers() -> tuple[Any, Any]:
    a = array.array("f", [2, 3, 4])
    return a, assign(a, 0, 50)


def view() -> tuple[Any, Any]:
    data = bytearray(np.float32([2, 3, 4]).tobytes())
    return memoryview(data).cast("f"), lambda: data.__setitem__(slice(0, 4), np.float32(50).tobytes())


def ctypes_array() -> tuple[Any, Any]:
    a = (ctypes.c_float * 3)(2, 3, 4)
    return a, assign(a, 0, 50)


def numpy_view() -> tuple[Any, Any]:
    base = np.float32([4, 0, 3, 0, 2])
    return base[::-2], lambda: base.fill(50)


def swapped() -> tuple[Any, Any]:
    a = np.float32([2, 3, 4]).astype(">f4")
    return a, lambda: a.fill(50)


def foreign(kind: type) -> tuple[Any, Any]:
    value = kind()
    return value, lambda: value.array.fill(50)


def vector() -> tuple[Any, Any]:
    k = spy.float3(2, 3, 4)
    return k, assign(k, "x", 50)


def matrix() -> tuple[Any, Any]:
    k = spy.float2x2(1, 2, 3, 4)
    return k, lambda: k.__setitem__(0, spy.float2(50, 50))


def reference() -> tuple[Any, Any]:
    k = spy.floatRef(3)
    return k, assign(k, "value", 50.0)


def reference_to_a_vector() -> tuple[Any, Any]:
    inner = spy.float3(2, 3, 4)
    return spy.ValueRef(inner), assign(inner, "x", 50)


def pair() -> tuple[Any, Any]:
    k = spy.diffPair(3.0, 0.0)
    return k, assign(k, "primal", 50.0)


def fields() -> tuple[Any, Any]:
    k: dict[str, Any] = {"a": np.float32([2, 3, 4]), "b": spy.floatRef(1)}

    def change() -> None:
        k["a"][:] = 50
        k["b"] = 7

    return k, change


def rows() -> tuple[Any, Any]:
    k = [2.0, 3.0, 4.0]
    return k, assign(k, 0, 50.0)


def vectors() -> tuple[Any, Any]:
    k = [spy.float3(2, 3, 4), spy.float3(1, 1, 1), spy.float3(5, 0, 1)]
    return k, assign(k[0], "x", 50)


def held() -> tuple[Any, Any]:
    k = Holder(3.0)
    return k, assign(k, "value", 50.0)


def held_array() -> tuple[Any, Any]:
    k = Holder({"a": np.float32([2, 3, 4]), "b": 1.0})
    return k, lambda: k.value["a"].fill(50)


def instances() -> tuple[Any, Any]:
    k = spy.InstanceList(module_on("cpu").Pair, {"a": np.float32([2, 3, 4]), "b": 1.0})
    return k, lambda: k.a.fill(50)


def packed() -> tuple[Any, Any]:
    a = np.float32([2, 3, 4])
    return spy.pack(module_on("cpu"), a), lambda: a.fill(50)


VALUES: dict[str, tuple[str, Callable[[], tuple[Any, Any]]]] = {
    "number": ("scalar", lambda: (3.0, lambda: None)),
    "enumeration": ("scalar", lambda: (Mode.three, lambda: None)),
    "numpy": ("scalar", numpy_view),
    "swapped numpy": ("scalar", swapped),
    "numpy number": ("scalar", lambda: (a := np.array(3, np.float32), lambda: a.fill(50))),
    "array": ("scalar", numbers),
    "memoryview": ("scalar", view),
    "ctypes": ("scalar", ctypes_array),
    "array interface": ("scalar", lambda: foreign(WithInterface)),
    "dlpack": ("scalar", lambda: foreign(Exporter)),
    "vector": ("vector", vector),
    "matrix": ("matrix", matrix),
    "reference": ("scalar", reference),
    "reference to a vector": ("vector", reference_to_a_vector),
    "pair": ("scalar", pair),
    "dict": ("fields", fields),
    "list": ("listed", rows),
    "list spread": ("scalar", rows),
    "list of vectors": ("vector", vectors),
    "get_this": ("scalar", held),
    "get_this of a dict": ("fields", held_array),
    "instances": ("fields", instances),
    "packed": ("scalar", packed),
}


def gradient(call: Callable[[Any], Any], where: str, change: Callable[[], Any] = lambda: None) -> list[float]:
    x = torch.tensor([1.0, 2, 3], device=where, requires_grad=True)
    y = call(x)
    change()
    y.sum().backward()
    return x.grad.tolist()


class TestArguments:
    @pytest.mark.parametrize("name", VALUES)
    def test_unchanged(self, module: Any, where: str, name: str) -> None:
        """Changed in between or not, torch's own gradient of y = x * x * (what the call made of 1) is the result."""
        if where != "cpu" and name in ("instances", "packed"):
            pytest.skip("made for the CPU device")
        function, make = VALUES[name]
        for _ in range(2):
            value, change = make()
            call = getattr(module, function)
            with torch.no_grad():
                factor = call(value, torch.ones(3, device=where))
            value, change = make()
            assert (
                gradient(lambda x, call=call, value=value: call(value, x), where, change)
                == (2 * factor.cpu() * torch.tensor([1.0, 2, 3])).tolist()
            )

    @pytest.mark.parametrize("name", gate(VALUES, lambda name: name in ("number", "numpy", "memoryview", "vector", "pair", "dict", "packed")))
    def test_beside_what_is_written(self, module: Any, where: str, name: str) -> None:
        if where != "cpu" and name in ("instances", "packed"):
            pytest.skip("made for the CPU device")
        function, make = VALUES[name]
        call = getattr(module, function)

        def written(value: Any, x: Any) -> Any:
            y = torch.empty(3, device=where)
            call(value, x, _result=y)
            return y

        with torch.no_grad():
            factor = written(make()[0], torch.ones(3, device=where))
        value, change = make()
        assert (
            gradient(lambda x: written(value, x), where, change)
            == (2 * factor.cpu() * torch.tensor([1.0, 2, 3])).tolist()
        )

    def test_objects_are_asked_once(self, module: Any, where: str) -> None:
        for value, function in ((3.0, "scalar"), ({"a": 1.0, "b": 2.0}, "fields")):
            for result in ({}, {"_result": torch.empty(3, device=where)}):
                holder = Holder(value)
                x = torch.ones(3, device=where, requires_grad=True)
                y = getattr(module, function)(holder, x, **result)
                assert holder.asked == 1
                y.sum().backward()
                assert holder.asked == 1

    def test_answers_that_differ(self, module: Any, where: str) -> None:
        """Each answer is used where it was given, also of an object that stands in two places."""
        answers = iter([2.0, 5.0, 7.0, 11.0])

        class Counter:
            def get_this(self) -> float:
                return next(answers)

        counter = Counter()
        assert gradient(lambda x: module.fields({"b": counter, "a": counter}, x), where) == [98, 196, 294]
        assert gradient(lambda x: module.fields([{"b": counter, "a": counter}], x), where) == [648, 1296, 1944]

    def test_pairs_still_get_gradients(self, module: Any, where: str) -> None:
        pair = spy.diffPair(3.0, 0.0)
        x = torch.tensor([1.0, 2, 3], device=where, requires_grad=True)
        y = module.scalar(pair, x)
        pair.primal = 50.0
        y.sum().backward()
        assert pair.grad == pytest.approx(2 * 3 * 14) and pair.primal == 50

    def test_retained(self, module: Any, where: str) -> None:
        k, x = spy.float3(1, 2, 3), torch.ones(3, device=where, requires_grad=True)
        y = module.vector(k, x).sum()
        for number in range(3):
            k.x = 10.0 * number
            assert torch.autograd.grad(y, [x], retain_graph=True)[0].tolist() == [28, 28, 28]


class TestChangedByTheCall:
    """An inout argument beside torch's tensors: its old value is what was read."""

    def makers(self, where: str) -> list[Callable[[], Any]]:
        three = np.float32([3, 3, 3])
        return [three.copy, lambda: spy.Tensor.from_numpy(device_of(where), three)]

    def test_returned(self, module: Any, where: str) -> None:
        for make in self.makers(where):
            k, whole = make(), make()
            assert gradient(lambda x, k=k: module.changes(k, x), where) == [18, 36, 54]
            assert gradient(lambda x, k=whole: module.changes_whole(spy.grid((3,)), k, x), where) == [18, 36, 54]
            assert np.asarray(k).tolist() == np.asarray(whole).tolist() == [1000, 1000, 1000]

    def test_references(self, module: Any, where: str) -> None:
        k, x = spy.floatRef(3.0), torch.tensor(2.0, device=where, requires_grad=True)
        module.changes(k, x).backward()
        assert x.grad.item() == 36 and k.value == 1000

    def test_beside_what_is_written(self, module: Any, where: str) -> None:
        def run(k: Any, x: Any) -> Any:
            v = x * 1
            module.changes_too(k, v)
            return v

        for make in self.makers(where):
            k = make()
            assert gradient(lambda x, k=k: run(k, x), where) == [18, 36, 54]
            assert np.asarray(k).tolist() == [1000, 1000, 1000]

    def test_results_on_the_host(self, module: Any, where: str) -> None:
        """What a call writes beside a tensor of the graph reaches its owner."""
        for make in self.makers(where):
            k, y = make(), torch.empty(3, device=where)
            x = torch.tensor([1.0, 2, 3], device=where, requires_grad=True)
            module.splits(x, k, y)
            assert np.asarray(k).tolist() == [1, 4, 9]
            y.sum().backward()
            assert x.grad.tolist() == [3, 12, 27]


class TestFunctions:
    """A function with globals is immutable."""

    def changed(self, function: Any, where: str, change: Callable[[], None]) -> None:
        ones = torch.ones(3, device=where)
        before = function(ones).tolist(), gradient(function, where)
        assert gradient(function, where, change) == before[1]
        assert (function(ones).tolist(), gradient(function, where)) == before

    def test_dicts(self, module: Any, where: str) -> None:
        gains: dict[str, Any] = {"gain": 2.0}
        self.changed(module.with_gain.set(gains), where, lambda: gains.update(gain=50.0))
        nested = {"both": {"p": 2.0, "q": spy.float3(1, 2, 3)}}
        self.changed(module.with_struct.set(nested), where, lambda: nested["both"].update(p=50.0))
        self.changed(module.with_struct.set(nested), where, assign(nested["both"]["q"], "x", 50))
        for row in ([1.0, 2.0, 3.0], np.float32([1, 2, 3])):
            rows = {"row": row}
            self.changed(module.with_row.set(rows), where, assign(row, 0, 50.0))
            self.changed(module.with_row.set(**rows), where, assign(row, 0, 70.0))

    def test_functions_are_asked_once(self, module: Any, where: str) -> None:
        asked: list[float] = []
        gain = [2.0]

        def gains(node: Any) -> dict[str, Any]:
            asked.append(gain[0])
            return {"gain": gain[0]}

        function = module.with_gain.set(gains)
        assert gradient(function, where, assign(gain, 0, 5.0)) == [8, 16, 24]
        assert asked == [2.0] and gradient(function, where) == [50, 100, 150] and asked == [2.0, 5.0]

    def test_objects_are_asked_once(self, module: Any, where: str) -> None:
        holder = Holder(2.0)
        function = module.with_gain.set(gain=holder)
        assert gradient(function, where, assign(holder, "value", 5.0)) == [8, 16, 24]
        assert holder.asked == 1 and gradient(function, where) == [50, 100, 150]

    def test_other_modifiers(self, module: Any, where: str) -> None:
        dims = {"a": (0,), "b": ()}
        function = module.fields.map(k=dims)
        dims.clear()
        assert gradient(lambda x: function({"a": np.float32([2, 3, 4]), "b": 1.0}, x), where) == [18, 64, 150]

    def test_gradients_do_not_reach_globals(self, module: Any, where: str) -> None:
        gain = torch.tensor(2.0, requires_grad=True)
        function, x = module.with_gain.set(gain=gain), torch.ones(3, device=where)
        with pytest.raises(RuntimeError, match=r"global 'gain'.*requires grad.*detach"):
            function(x)
        with torch.no_grad():
            assert function(x).tolist() == [4, 4, 4]
        for value in ({"p": gain, "q": spy.float3(1, 2, 3)}, {"p": 2.0, "q": [1.0, gain, 3.0]}):
            with pytest.raises(RuntimeError, match=r"global 'both'.*requires grad.*detach"):
                module.with_struct.set(both=value)(x)
