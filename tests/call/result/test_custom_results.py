"""Registered classes as results, reduce_type, and classes that write themselves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from calls_support import array, plain, source, tensor

import slangpy as spy
from slangpy.bindings import PYTHON_SIGNATURES, PYTHON_TYPES, Marshall, ReturnContext, register_write_to_cursor_type
from slangpy.errors import BoundVariableException, ResolveException

pytestmark = [pytest.mark.needs_kernels, pytest.mark.one]

SOURCE = """
import slangpy;
struct Sink<T, let D : int>
{
    T* data;
    int sizes[4];
    void __slangpy_store(ContextND<D> ctx, T v)
    {
        int at = 0;
        for (int k = 0; k < D; k++)
            at = at * sizes[k] + ctx.call_id[k];
        data[at] = v;
    }
}
struct Source1 { float* data; void __slangpy_load(ContextND<1> ctx, out float3 v)
    { v = float3(data[3 * ctx.call_id[0]], data[3 * ctx.call_id[0] + 1], data[3 * ctx.call_id[0] + 2]); } }
struct Box { float3 low; float3 high; int ids[2]; float volume() { float3 d = high - low; return d.x * d.y * d.z * ids[1]; } }
struct Cube { float3 low; float3 high; int ids[2]; }
interface ISolid { float volume(); }
struct Ball : ISolid { float radius; float volume() { return radius * radius * radius; } }
float twice(float x) { return 2 * x; }
float3 shift(float3 v, float s) { return v + s; }
int whole(float x) { return int(x); }
void nothing(float x) {}
float volume_of(Box b) { return b.volume(); }
float side(Cube c) { return c.high.x - c.low.x; }
float scaled(Box b, float s) { return b.volume() * s; }
float volume_any(ISolid s) { return s.volume(); }
float volume_generic<T : ISolid>(T s) { return s.volume(); }
float first<T>(T v) { return 1; }
T sum3<T : IArithmetic>(T a, T b) { return a + b; }
"""


class Table:
    """A result class: data in a tensor, with the times that it was asked."""

    def __init__(self, tensor: spy.Tensor) -> None:
        self.tensor = tensor
        self.reads = 0


class TableMarshall(Marshall):
    is_writable = True

    def __init__(self, layout: Any, value: Any) -> None:
        super().__init__(layout)
        self.of = value.slang_type.full_name if isinstance(value, ReturnContext) else "float"
        self.context = value
        self.slang_type = layout.find_type_by_name(self.of)

    def resolve_types(self, context: Any, bound: Any) -> Any:
        return [bound] if bound.full_name in ("float", "vector<float,3>") else None

    def gen_calldata(self, cgb: Any, context: Any, binding: Any) -> None:
        binding.gen_calldata_type_name(cgb, f"Sink<{self.of}, {binding.call_dimensionality}>")

    def create_output(self, context: Any, binding: Any) -> Any:
        shape = tuple(context.call_shape) or (1,)
        return Table(spy.Tensor.zeros(context.device, shape, dtype=self.of))

    def create_calldata(self, context: Any, binding: Any, value: Table) -> dict[str, Any]:
        sizes = [*context.call_shape, 1, 1, 1, 1][:4]
        return {"data": value.tensor, "sizes": sizes}

    def read_calldata(self, context: Any, binding: Any, value: Table, data: Any) -> None:
        value.reads += 1

    def read_output(self, context: Any, binding: Any, data: Table) -> Any:
        return data


class Sum(Table):
    """Registered on its own: the call returns the sum of the table."""


class SumMarshall(TableMarshall):
    def read_output(self, context: Any, binding: Any, data: Table) -> float:
        return float(data.tensor.to_numpy().sum())


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    PYTHON_TYPES[Table] = TableMarshall
    PYTHON_TYPES[Sum] = SumMarshall
    yield
    PYTHON_TYPES.clear()
    PYTHON_SIGNATURES.clear()


@pytest.fixture
def module(device: Any) -> Any:
    return source(device, "custom_results", SOURCE)


@pytest.mark.parametrize("shape", [(), (4,), (2, 3), (2, 1, 3)])
def test_a_registered_class_is_a_result(module: Any, shape: tuple[int, ...]) -> None:
    x = array(*shape) if shape else 3.0
    for found in (module.twice(x, _result=Table), module.twice.return_type(Table)(x)):
        assert type(found) is Table and found.reads == 1
        np.testing.assert_array_equal(found.tensor.to_numpy(), np.asarray(x).reshape(shape or (1,)) * 2)


def test_the_factory_learns_the_type_of_the_result(module: Any, device: Any) -> None:
    found = module.shift(tensor(device, 2, 3), 10.0, _result=Table)
    assert found.tensor.dtype.full_name == "vector<float,3>"
    assert found.tensor.to_numpy().tolist() == [[10, 11, 12], [13, 14, 15]]


def test_read_output_decides_what_is_returned(module: Any) -> None:
    assert module.twice(array(5), _result=Sum) == 20.0
    assert module.twice(array(5), _result=Sum) == 20.0  # the known plan
    assert module.twice(array(0), _result=Sum) == 0.0


def test_an_instance_and_text_beat_the_class(module: Any, device: Any) -> None:
    node = module.twice.return_type(Table)
    assert node(array(3), _result="numpy").tolist() == [0, 2, 4]
    out = spy.Tensor.zeros(device, (3,), dtype="float")
    assert node(array(3), _result=out) is out
    table = Table(out)
    PYTHON_TYPES[Table] = lambda layout, value: _Instance(layout, value)
    module.shift.map((0,))
    assert module.twice(array(3), _result=table) is table


class _Instance(TableMarshall):
    def get_shape(self, value: Table) -> Any:
        return value.tensor.shape

    def resolve_dimensionality(self, context: Any, binding: Any, target: Any) -> int:
        return 1


def test_classes_of_one_name_have_plans_of_their_own(module: Any) -> None:
    other = type("Table", (Sum,), {})
    assert isinstance(module.twice(array(2), _result=Table), Table)
    assert module.twice(array(2), _result=other) == 2.0


def test_classes_on_void_functions_are_ignored(module: Any) -> None:
    assert module.nothing(array(2), _result=Table) is None


def test_classes_that_do_not_take_the_type(module: Any) -> None:
    with pytest.raises(BoundVariableException, match=r"Table does not match slang type int"):
        module.whole(array(2), _result=Table)
    with pytest.raises(ValueError, match="Unknown return type 'Plain'"):
        module.twice(array(2), _result=type("Plain", (), {}))


def test_results_of_classes_are_not_recorded(module: Any, device: Any) -> None:
    encoder = device.create_command_encoder()
    with pytest.raises(ValueError, match="read back"):
        module.twice(array(2), _result=Table, _append_to=encoder)


# --- reduce_type


class Points:
    """Rows of three floats."""

    def __init__(self, tensor: spy.Tensor) -> None:
        self.tensor = tensor


class PointsMarshall(Marshall):
    def __init__(self, layout: Any, value: Any) -> None:
        super().__init__(layout)
        self.slang_type = layout.find_type_by_name("float3[4]")

    def get_shape(self, value: Points) -> Any:
        return value.tensor.shape[:1]

    def resolve_types(self, context: Any, bound: Any) -> Any:
        return [context.layout.find_type_by_name("float3")]

    def resolve_dimensionality(self, context: Any, binding: Any, target: Any) -> int:
        return 1

    def gen_calldata(self, cgb: Any, context: Any, binding: Any) -> None:
        binding.gen_calldata_type_name(cgb, "Source1")

    def create_calldata(self, context: Any, binding: Any, value: Points) -> dict[str, Any]:
        return {"data": value.tensor}


def test_map_asks_what_is_left_of_a_value(module: Any, device: Any) -> None:
    asked: list[int] = []

    class Asked(PointsMarshall):
        def resolve_types(self, context: Any, bound: Any) -> Any:
            return [bound] if bound.full_name == "vector<float,3>" else None

        def reduce_type(self, context: Any, dims: int) -> Any:
            asked.append(dims)
            return super().reduce_type(context, dims)

    PYTHON_TYPES[Points] = Asked
    points = Points(tensor(device, 4, 3))
    node = module.sum3.map((0,), ())
    assert plain(node(points, spy.float3(1, 2, 3))) == [[1 + 3 * i, 3 + 3 * i, 5 + 3 * i] for i in range(4)]
    assert asked and set(asked) == {1}


# --- has_derivative


GRADIENTS = """
import slangpy;
struct Weights
{
    float* data;
    RWTensor<float, 1> sums;
    [BackwardDerivative(load_bwd)] void __slangpy_load(ContextND<1> ctx, out float v) { v = data[ctx.call_id[0]]; }
    void load_bwd(ContextND<1> ctx, float d) { sums[ctx.call_id[0]] = sums[ctx.call_id[0]] + d; }
}
[Differentiable] float product(float w, float x) { return w * w * x; }
struct Pair : IDifferentiable { float a; float b; }
[Differentiable] float field(Pair p, float x) { return p.a * x; }
"""


class Weights:
    def __init__(self, data: spy.Tensor, sums: spy.Tensor) -> None:
        self.data, self.sums = data, sums


class WeightsMarshall(Marshall):
    has_derivative = True

    def __init__(self, layout: Any, value: Any) -> None:
        super().__init__(layout)
        self.slang_type = layout.find_type_by_name("Weights")

    def get_shape(self, value: Weights) -> Any:
        return value.data.shape

    def resolve_types(self, context: Any, bound: Any) -> Any:
        return [bound] if bound.full_name == "float" else None

    def resolve_dimensionality(self, context: Any, binding: Any, target: Any) -> int:
        return 1

    def create_calldata(self, context: Any, binding: Any, value: Weights) -> dict[str, Any]:
        return {"data": value.data, "sums": value.sums}


def test_the_derivative_of_a_load_takes_the_gradient(device: Any) -> None:
    module = source(device, "custom_gradients", GRADIENTS)
    PYTHON_TYPES[Weights] = WeightsMarshall
    weights = Weights(tensor(device, 4), spy.Tensor.zeros(device, (4,), dtype="float"))
    x, out = tensor(device, 4).with_grads(), tensor(device, 4).with_grads()
    out.grad.copy_from_numpy(np.array([1, 2, 3, 4], np.float32))
    assert plain(module.product(weights, x)) == [0, 1, 8, 27]
    module.product.bwds(weights, x, _result=out)
    w = np.arange(4)
    np.testing.assert_allclose(weights.sums.to_numpy(), np.array([1, 2, 3, 4]) * 2 * w * w)
    np.testing.assert_allclose(x.grad.to_numpy(), np.array([1, 2, 3, 4]) * w * w)
    with pytest.raises(NotImplementedError, match="whole input parameters only"):
        module.field.bwds({"a": weights, "b": 1.0}, x, _result=out)


# --- classes that write themselves


class Crate:
    def __init__(self, low: float, high: float, count: int) -> None:
        self.low, self.high, self.count = low, high, count

    def write_to_cursor(self, cursor: Any) -> None:
        cursor.low = spy.float3(self.low)
        cursor["high"].write([self.high] * 3)
        cursor.ids[1] = self.count


def test_a_class_that_writes_itself(module: Any) -> None:
    register_write_to_cursor_type(Crate, "Box")
    assert module.volume_of(Crate(1.0, 3.0, 5)) == 40.0
    assert module.volume_of(Crate(1.0, 2.0, 5)) == 5.0
    assert plain(module.scaled(Crate(1.0, 3.0, 1), [1, 2])) == [8, 16]
    assert module.Box.volume(Crate(0.0, 2.0, 2)) == 16.0
    with pytest.raises(ResolveException, match="Crate does not match slang type Cube"):
        module.side(Crate(1.0, 3.0, 5))
    with pytest.raises(ResolveException, match="Crate does not match slang type float"):
        module.twice(Crate(1.0, 3.0, 5))


def test_other_types_that_are_accepted(module: Any) -> None:
    register_write_to_cursor_type(Crate, "Box", accepted_type_regex="Cu.*")
    assert module.side(Crate(1.0, 3.0, 5)) == 2.0
    assert module.volume_of(Crate(1.0, 3.0, 5)) == 40.0


def test_it_stands_for_its_type_behind_interfaces(module: Any) -> None:
    class Sphere:
        def write_to_cursor(self, cursor: Any) -> None:
            cursor.write({"radius": 2.0})

    register_write_to_cursor_type(Sphere, "Ball")
    assert module.volume_any(Sphere()) == 8.0
    assert module.volume_generic(Sphere()) == 8.0


def test_the_signature_belongs_to_the_key(module: Any) -> None:
    register_write_to_cursor_type(Crate, "Box", signature=lambda crate: str(crate.count))
    plans = [module.volume_of.debug_build_call_data(Crate(1.0, 2.0, n)) for n in (1, 1, 2)]
    assert plans[0] is plans[1] and plans[0] is not plans[2]


def test_types_of_modules_that_are_imported_by_the_kernel(device: Any) -> None:
    spy.Module.load_from_source(device, "custom_results_types", "struct Far { int n; }")
    user = spy.Module.load_from_source(
        device, "custom_results_user", "import custom_results_types; int far(Far f) { return f.n; }"
    )

    class Distance:
        def write_to_cursor(self, cursor: Any) -> None:
            cursor.n = 7

    register_write_to_cursor_type(Distance, "Far", imports=["custom_results_types"])
    node = user.far
    assert "import custom_results_types;" in node.debug_build_call_data(Distance()).code
    assert node(Distance()) == 7


def test_cursors_take_such_objects_everywhere(module: Any, device: Any) -> None:
    t = spy.Tensor.zeros(device, (2,), dtype=module.Box)
    cursor = t.cursor()
    cursor[1].write(Crate(1.0, 3.0, 5))
    cursor.apply()
    assert plain(module.volume_of(t)) == [0, 40]


def test_a_kept_cursor_does_no_harm(module: Any) -> None:
    kept: list[Any] = []

    class Keeper(Crate):
        def write_to_cursor(self, cursor: Any) -> None:
            super().write_to_cursor(cursor)
            kept.append(cursor)

    register_write_to_cursor_type(Keeper, "Box")
    assert module.volume_of(Keeper(1.0, 3.0, 5)) == 40.0
    kept[0].low = spy.float3(9)
    assert module.volume_of(Keeper(1.0, 2.0, 5)) == 5.0


def test_wrong_registrations(module: Any) -> None:
    register_write_to_cursor_type(Crate, "Box")
    with pytest.raises(ValueError, match="Crate is already registered"):
        register_write_to_cursor_type(Crate, "Box")
    with pytest.raises(ValueError, match="already registered"):
        register_write_to_cursor_type(Table, "Box")
    with pytest.raises(TypeError, match="write_to_cursor"):
        register_write_to_cursor_type(int, "int")
    with pytest.raises(TypeError, match="must be a class"):
        register_write_to_cursor_type("Crate", "Box")  # pyright: ignore[reportArgumentType]

    class Wrong(Crate):
        def write_to_cursor(self, cursor: Any) -> None:
            cursor.wide = 1

    PYTHON_TYPES.pop(Crate)
    register_write_to_cursor_type(Wrong, "Box")
    with pytest.raises(AttributeError, match="wide"):
        module.volume_of(Wrong(1.0, 2.0, 3))
