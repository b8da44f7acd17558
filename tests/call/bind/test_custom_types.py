"""Classes that users register with marshalls."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from calls_support import source

import slangpy as spy
from slangpy.bindings import PYTHON_SIGNATURES, PYTHON_TYPES, Marshall

pytestmark = [pytest.mark.needs_kernels, pytest.mark.one]

SOURCE = """
import slangpy;
struct RampGen
{
    float start;
    float step;
    void __slangpy_load(ContextND<1> ctx, out float v) { v = start + step * ctx.call_id[0]; }
    void __slangpy_load(ContextND<0> ctx, out float v) { v = start; }
    void __slangpy_load(ContextND<2> ctx, out float v) { v = start + step * (10 * ctx.call_id[0] + ctx.call_id[1]); }
}
struct Sink
{
    float* data;
    void __slangpy_load(ContextND<1> ctx, out float v) { v = data[ctx.call_id[0]]; }
    void __slangpy_store(ContextND<1> ctx, float v) { data[ctx.call_id[0]] = v; }
}
struct Pair { float a; float b; }
float twice(float x) { return 2 * x; }
float add(float x, float y) { return x + y; }
float sum(Pair p) { return p.a + 10 * p.b; }
float only_int(int x) { return float(x); }
void put(float x, out float y) { y = x + 1; }
void grow(inout float y) { y += 1; }
[Differentiable] float square(no_diff float s, float x) { return s * x * x; }
T same<T : IFloat>(T x) { return x; }
"""


class Ramp:
    def __init__(self, start: float, step: float, *count: int) -> None:
        self.start, self.step, self.count = start, step, count


class RampMarshall(Marshall):
    def __init__(self, layout: Any, value: Any) -> None:
        super().__init__(layout)
        self.slang_type = layout.find_type_by_name("RampGen")
        self.rank = len(value.count) if isinstance(value, Ramp) else 0

    def get_shape(self, value: Ramp) -> Any:
        return spy.Shape(value.count)

    def resolve_types(self, context: Any, bound: Any) -> Any:
        wanted = bound.full_name in ("float", "T")
        return [context.layout.find_type_by_name("float")] if wanted else None

    def resolve_dimensionality(self, context: Any, binding: Any, target: Any) -> int:
        return self.rank

    def gen_calldata(self, cgb: Any, context: Any, binding: Any) -> None:
        binding.gen_calldata_type_name(cgb, "RampGen")

    def create_calldata(self, context: Any, binding: Any, value: Ramp) -> dict[str, Any]:
        return {"start": value.start, "step": value.step}


class Store:
    """Writable: values in a tensor."""

    def __init__(self, tensor: spy.Tensor) -> None:
        self.tensor, self.calls = tensor, 0


class StoreMarshall(Marshall):
    is_writable = True

    def __init__(self, layout: Any, value: Store) -> None:
        super().__init__(layout)
        self.slang_type = layout.find_type_by_name("Sink")

    def get_shape(self, value: Store) -> Any:
        return value.tensor.shape

    def resolve_type(self, context: Any, bound: Any) -> Any:
        return bound if bound.full_name == "float" else None

    def resolve_dimensionality(self, context: Any, binding: Any, target: Any) -> int:
        return 1

    def create_calldata(self, context: Any, binding: Any, value: Store) -> dict[str, Any]:
        return {"data": value.tensor}

    def read_calldata(self, context: Any, binding: Any, value: Store, data: Any) -> None:
        assert data["data"] is value.tensor
        value.calls += 1


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    PYTHON_TYPES[Ramp] = lambda layout, value: RampMarshall(layout, value)
    PYTHON_SIGNATURES[Ramp] = lambda value: str(len(value.count))
    PYTHON_TYPES[Store] = StoreMarshall
    yield
    PYTHON_TYPES.clear()
    PYTHON_SIGNATURES.clear()


@pytest.fixture
def module(device: Any) -> spy.Module:
    return source(device, "custom_types", SOURCE)


def test_value_of_a_registered_class(module: Any) -> None:
    found = module.twice(Ramp(1.0, 0.5, 4), _result="numpy")
    assert found.tolist() == [2, 3, 4, 5]
    assert module.twice(Ramp(0.0, 1.0, 6), _result="numpy").tolist() == [0, 2, 4, 6, 8, 10]


def test_rank_by_signature(module: Any) -> None:
    assert module.twice(Ramp(3.0, 1.0)) == 6
    found = module.twice(Ramp(1.0, 1.0, 2, 3), _result="numpy")
    assert found.tolist() == [[2, 4, 6], [22, 24, 26]]
    assert module.twice(Ramp(1.0, 0.5, 2), _result="numpy").tolist() == [2, 3]


def test_shapes_align_spread_and_map(module: Any) -> None:
    x = np.array([[0.0], [100.0]], np.float32) + np.zeros((1, 3), np.float32)
    found = module.add(Ramp(1.0, 1.0, 3), x, _result="numpy")
    assert found.tolist() == [[1, 2, 3], [101, 102, 103]]
    found = module.add(Ramp(5.0, 1.0, 1), x, _result="numpy")
    assert found.tolist() == [[5, 5, 5], [105, 105, 105]]
    found = module.add.map((0,), (0, 1))(Ramp(1.0, 1.0, 2), x, _result="numpy")
    assert found.tolist() == [[1, 1, 1], [102, 102, 102]]
    with pytest.raises(spy.ShapeError, match=r"(?s)Shape mismatch for y.*x \[4\], y \[2, 3\]"):
        module.add(Ramp(1.0, 1.0, 4), x)


def test_in_dicts_and_generics(module: Any) -> None:
    found = module.sum({"a": Ramp(1.0, 1.0, 3), "b": 2.0}, _result="numpy")
    assert found.tolist() == [21, 22, 23]
    assert module.same(Ramp(1.0, 1.0, 3), _result="numpy").tolist() == [1, 2, 3]


def test_backward_call_takes_it_as_a_constant(device: Any, module: Any) -> None:
    x = spy.Tensor.from_numpy(device, np.array([1, 2, 3], np.float32)).with_grads()
    seed = spy.Tensor.from_numpy(device, np.ones(3, np.float32)).with_grads()
    seed.grad.copy_from_numpy(np.ones(3, np.float32))
    module.square.bwds(Ramp(1.0, 1.0, 3), x, _result=seed)
    assert x.grad.to_numpy().tolist() == [2, 8, 18]


def test_written_values(device: Any, module: Any) -> None:
    store = Store(spy.Tensor.from_numpy(device, np.zeros(3, np.float32)))
    module.put(Ramp(1.0, 1.0, 3), store)
    assert store.tensor.to_numpy().tolist() == [2, 3, 4]
    module.grow(store)
    assert store.tensor.to_numpy().tolist() == [3, 4, 5]
    assert store.calls == 2
    assert module.twice(store, _result="numpy").tolist() == [6, 8, 10]
    assert store.calls == 2, "only written values are read back"


def test_refusals(module: Any) -> None:
    with pytest.raises(spy.ResolveException, match="Ramp does not match slang type int"):
        module.only_int(Ramp(1.0, 1.0, 3))
    with pytest.raises(spy.ResolveException, match="is_writable of RampMarshall is False"):
        module.put(1.0, Ramp(1.0, 1.0, 3))
    with pytest.raises(NotImplementedError, match="RampMarshall does not make results: override create_output"):
        module.twice(1.0, _result=Ramp)
    with pytest.raises(ValueError, match="Unsupported type set"):
        spy.bindings.get_or_create_type(module.layout, set)


def test_wrong_marshalls(module: Any) -> None:
    class Unknown(RampMarshall):
        def gen_calldata(self, cgb: Any, context: Any, binding: Any) -> None:
            binding.gen_calldata_type_name(cgb, "NoSuchType")

    class Unstored(RampMarshall):
        def create_calldata(self, context: Any, binding: Any, value: Ramp) -> dict[str, Any]:
            return {"start": value.start, "stop": value.step}

    class Growing(RampMarshall):
        def get_shape(self, value: Ramp) -> Any:
            return ()

    for marshall, error, text in (
        (Unknown, spy.BoundVariableException, "could not find type 'NoSuchType'"),
        (Unstored, Exception, "stop"),
        (Growing, ValueError, "resolve_dimensionality said 1"),
        (lambda layout, value: 3, TypeError, "must return a slangpy.bindings.Marshall"),
    ):
        PYTHON_TYPES[Ramp] = marshall
        with pytest.raises(error, match=text):
            module.twice(Ramp(1.0, 0.5, 4))
    with pytest.raises(TypeError, match="must be a class"):
        PYTHON_TYPES["Ramp"] = RampMarshall  # pyright: ignore[reportArgumentType]


def test_removed_and_equal_names(module: Any) -> None:
    other = type("Ramp", (), {"get_this": lambda self: 21.0})
    assert module.twice(Ramp(1.0, 0.5, 1), _result="numpy").tolist() == [2]
    assert module.twice(other()) == 42
    del PYTHON_TYPES[Ramp]
    with pytest.raises(spy.BoundVariableException, match="Unsupported type Ramp"):
        module.twice(Ramp(1.0, 0.5, 4))


def test_plans_keep_no_values(module: Any) -> None:
    value = Ramp(1.0, 0.25, 2)
    seen = weakref.ref(value)
    module.twice(value, _result="numpy")
    del value
    gc.collect()
    assert seen() is None


def test_calls_inside_marshalls(module: Any) -> None:
    class Nested(RampMarshall):
        def create_calldata(self, context: Any, binding: Any, value: Ramp) -> dict[str, Any]:
            assert tuple(context.call_shape) == (3,) and binding.path == "x"
            start = module.add(module.add(1.0, 2.0), module.twice(value.start))
            return {"start": start, "step": value.step}

    PYTHON_TYPES[Ramp] = Nested
    found = module.add(Ramp(1.0, 1.0, 3), np.array([0, 0, 10], np.float32), _result="numpy")
    assert found.tolist() == [5, 6, 17]


def test_errors_of_marshalls_reach_the_caller(module: Any) -> None:
    class Failing(RampMarshall):
        def create_calldata(self, context: Any, binding: Any, value: Ramp) -> dict[str, Any]:
            raise KeyError("no such ramp")

    PYTHON_TYPES[Ramp] = Failing
    with pytest.raises(KeyError, match="no such ramp"):
        module.twice(Ramp(1.0, 0.5, 4))


def test_appended_calls(device: Any, module: Any) -> None:
    out = spy.Tensor.from_numpy(device, np.zeros(3, np.float32))
    encoder = device.create_command_encoder()
    module.twice(Ramp(1.0, 1.0, 3), _result=out, _append_to=encoder)
    with pytest.raises(ValueError, match="read back"):
        module.put(1.0, Store(out), _append_to=encoder)
    device.submit_command_buffer(encoder.finish())
    assert out.to_numpy().tolist() == [2, 4, 6]
