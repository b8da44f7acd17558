"""Calls, values and gradients as programs written for shader-slang/slangpy use them."""

from __future__ import annotations

import math
import pickle
import re
from typing import Any

import numpy as np
import pytest

import slangpy as spy
from slangpy.bindings import PYTHON_TYPES, Marshall

pytestmark = pytest.mark.one

SOURCE = """
int whole(int x) { return x + 1; }
float half_of(float x) { return x * 0.5; }
float3 triple(float x) { return float3(x, x + 0.5, -x); }
void store(float x, out float y) { y = x; }
[Differentiable] float times(float a, float b) { return a * b; }
float plain(float a, float b) { return a * b; }
float2 pair(float x) { return float2(x, 2 * x); }
"""


@pytest.fixture
def m(device: spy.Device) -> spy.Module:
    return spy.Module.load_from_source(device, "compat_calls", SOURCE)


def runs(device: spy.Device) -> bool:
    return device.info.type is not spy.DeviceType.null


def floats(device: spy.Device, values: Any) -> spy.Tensor:
    return spy.Tensor.from_numpy(device, np.array(values, np.float32))


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [
        ("int", [-1, 0, 1]),
        ("half", [-1.75, 0.25, 1.5]),
        ("double", [-1.75, 0.25, 1.5]),
        ("uint", None),
        ("int8_t", [-1, 0, 1]),
    ],
)
def test_results_convert(m: spy.Module, device: spy.Device, dtype: str, expected: Any) -> None:
    if dtype == "half" and not device.has_feature(spy.Feature.half):
        pytest.skip("no half")
    result = spy.Tensor.zeros(device, (3,), dtype=dtype)
    m.half_of(floats(device, [-3.5, 0.5, 3.0]), _result=result)
    if runs(device) and expected is not None:
        assert result.to_numpy().tolist() == expected


def test_integer_results_convert_to_float(m: spy.Module, device: spy.Device) -> None:
    result = spy.Tensor.zeros(device, (2,), dtype="float")
    m.whole(spy.Tensor.from_numpy(device, np.array([1, 2], np.int32)), _result=result)
    if runs(device):
        assert result.to_numpy().tolist() == [2.0, 3.0]


@pytest.mark.parametrize("dtype", ["int3", "half3", "double3"])
def test_vector_results_convert(m: spy.Module, device: spy.Device, dtype: str) -> None:
    result = spy.Tensor.zeros(device, (2,), dtype=dtype)
    m.triple(floats(device, [1.75, -2.5]), _result=result)
    expected = np.array([[1.75, 2.25, -1.75], [-2.5, -2.0, 2.5]])
    if runs(device):
        assert result.to_numpy().tolist() == (np.trunc(expected) if dtype == "int3" else expected).tolist()


def test_results_convert_into_arrays(m: spy.Module, device: spy.Device) -> None:
    """NumPy arrays, and trailing dimensions of scalars."""
    array = np.zeros(2, np.int32)
    m.half_of(floats(device, [3.0, -5.0]), _result=array)
    rows = spy.Tensor.zeros(device, (2, 3), dtype="int")
    m.triple(floats(device, [1.75, -2.5]), _result=rows)
    if runs(device):
        assert array.tolist() == [1, -2] and rows.to_numpy().tolist() == [[1, 2, -1], [-2, -2, 2]]


def test_what_does_not_convert(m: spy.Module, device: spy.Device) -> None:
    """A scalar into vectors, and everything that is no result."""
    with pytest.raises(ValueError, match="does not match"):
        m.half_of(floats(device, [1.0]), _result=spy.Tensor.zeros(device, (1,), dtype="float2"))
    with pytest.raises(ValueError, match="does not match"):
        m.store(floats(device, [1.0]), spy.Tensor.zeros(device, (1,), dtype="int"))
    with pytest.raises(ValueError, match="does not match"):
        m.whole(floats(device, [1.0]))


def test_map_converts(m: spy.Module, device: spy.Device) -> None:
    values = floats(device, [0.5, 1.5])
    for mapped in (m.whole.map((0,)), m.whole.map(float), m.whole.map("float")):
        got = mapped(values)
        if runs(device):
            assert got.to_numpy().tolist() == [1, 2]


def test_backward_of_plain_values(m: spy.Module, device: spy.Device) -> None:
    assert m.times.bwds(2.0, 3.0, 1.0) is None
    assert m.times.bwds(2, 3, 6) is None
    a = spy.Tensor.zeros(device, (2,), dtype="float").with_grads()
    seeds = floats(device, [1.0, 1.0])
    with pytest.raises(spy.ResolveException, match="_result has no gradient to read"):
        m.times.bwds(a, 3.0, seeds)
    with pytest.warns(RuntimeWarning, match="no gradient to read"):
        assert m.times.bwds(a, 3.0, 1.0) is None
    if runs(device):
        assert a.grad_out.to_numpy().tolist() == [0.0, 0.0]


def test_backward_of_what_has_no_derivative(m: spy.Module) -> None:
    text = "Could not call function 'plain': Function is not differentiable"
    for arguments in ((1.0, 2.0, 3.0), (spy.float3(1), 2.0, 3.0), ("1.0", 2.0, 3.0), (1.0, {"a": object()}, 3.0)):
        with pytest.raises(ValueError, match=text):
            m.plain.bwds(*arguments)


NESTED = """
import slangpy;
[Differentiable] float layer(IDiffTensor<float, 2> w, float x[{cols}]) {{
    float s = 0;
    for (int r = 0; r < {rows}; r++) {{ float y = 0; for (int c = 0; c < {cols}; c++) y += w.load(r, c) * x[c]; s += y; }}
    return s;
}}
"""


@pytest.mark.needs_kernels
@pytest.mark.parametrize(("rows", "cols"), [(5, 8), (8, 5), (3, 4)])
def test_nested_loops_over_tensors(device: spy.Device, rows: int, cols: int) -> None:
    module = spy.Module.load_from_source(device, f"nested_{rows}_{cols}", NESTED.format(rows=rows, cols=cols))
    rng = np.random.default_rng(rows)
    w = rng.standard_normal((rows, cols)).astype(np.float32)
    x = rng.standard_normal(cols).astype(np.float32)
    weights = spy.Tensor.from_numpy(device, w).with_grads(zero=True)
    inputs = spy.Tensor.from_numpy(device, x).with_grads(zero=True)
    seed = spy.Tensor.from_numpy(device, np.array([1.0], np.float32))
    module.layer.bwds(weights, inputs, seed.with_grads(grad_in=seed))
    assert weights.grad_out.to_numpy() == pytest.approx(np.tile(x, (rows, 1)), abs=1e-6)
    assert inputs.grad_out.to_numpy() == pytest.approx(w.sum(0), abs=1e-5)


def test_map_of_none(m: spy.Module) -> None:
    for cls in (ValueError, NotImplementedError):
        with pytest.raises(cls, match="Explicit vectorization raised exception: NotImplementedError"):
            m.half_of.map(()).call(None)


def test_texts(m: spy.Module, device: spy.Device) -> None:
    structured = np.zeros(2, np.dtype([("x", np.float32)]))
    with pytest.raises(ValueError, match="Structured numpy dtype"):
        spy.Tensor.from_numpy(device, structured)
    module = spy.Module.load_from_source(device, "compat_texts", "float s(float3 v) { return v.x; }")
    with pytest.raises(RuntimeError, match="does not match the expected shape"):
        module.s(np.zeros((2, 4), np.float32))
    torch = pytest.importorskip("torch")
    if device.info.type is spy.DeviceType.cpu:
        with pytest.raises(ValueError, match="does not match expected shape"):
            module.s(torch.zeros(2, 4))


def test_storage_of_results(m: spy.Module, device: spy.Device) -> None:
    for count in (1, 3, 5):
        result = m.pair(floats(device, np.arange(count)))
        assert result.storage.size == count * 8
        if runs(device):
            assert result.storage.to_numpy().view(np.float32).size == 2 * count
            assert result.to_numpy()[-1].tolist() == [count - 1, 2 * count - 2]
    assert m.half_of(floats(device, [1.0])).storage.size == 4


class Zero:
    """Of no data: the kernel gets a struct without fields."""


class ZeroMarshall(Marshall):
    def __init__(self, layout: Any, value: Any) -> None:
        super().__init__(layout)
        del value
        self.slang_type = layout.find_type_by_name("float")
        self.concrete_shape = ()

    def gen_calldata(self, cgb: Any, context: Any, binding: Any) -> None:
        del context
        binding.gen_calldata_type_name(cgb, "ZeroStorage")


ZERO = """
import slangpy;
struct ZeroStorage {
    void __slangpy_load(ContextND<0> context, out float value) { value = 7; }
}
float twice(float x) { return 2 * x; }
"""


def test_marshall_without_data(device: spy.Device) -> None:
    """C9a"""
    PYTHON_TYPES[Zero] = ZeroMarshall
    try:
        module = spy.Module.load_from_source(device, "compat_zero", ZERO)
        got = module.twice(Zero())
        if runs(device):
            assert got == 14.0
    finally:
        del PYTHON_TYPES[Zero]


class Foo:
    seen: Any = None

    def __init__(self, context: Any = None) -> None:
        self.context = context


def test_return_context_knows_the_call(m: spy.Module, device: spy.Device) -> None:
    """C9b"""
    seen: list[int] = []

    def make(layout: Any, context: Any) -> Any:
        seen.append(context.bind_context.call_dimensionality)
        return ZeroMarshall(layout, context)

    PYTHON_TYPES[Foo] = make
    try:
        with pytest.raises(NotImplementedError, match="does not make results"):
            m.half_of.return_type(Foo)(spy.Tensor.zeros(device, (2, 3), dtype="float"))
    finally:
        del PYTHON_TYPES[Foo]
    assert seen == [2]


def test_vectors_against_numpy_scalars() -> None:
    for left, right in ((np.uint32(5), spy.uint1(5)), (spy.uint1(5), np.uint32(5))):
        assert isinstance(left == right, np.ndarray) and (left == right).tolist() == [True]
        assert (left != right).tolist() == [False]
    assert (np.float32(2) == spy.float3(2, 1, 2)).tolist() == [True, False, True]
    assert (spy.float3(2) == 2.0) is False and (spy.float3(1, 2, 3) == (1, 2, 3)) is True
    assert not math.isnan(float((np.float32(2) * spy.float3(1)).x))


def test_shapes() -> None:
    none = spy.Shape(None)
    assert len(none) == 0 and not none.valid and not none.concrete
    assert len(spy.Shape(())) == 0 and spy.Shape(()).valid


@pytest.mark.parametrize("count", [32, 33, 64, 65, 200])
def test_shapes_of_many_dimensions(count: int) -> None:
    """A shape may be longer than any container."""
    dims = tuple(range(2, count + 2))
    shape = spy.Shape(*dims)
    assert len(shape) == count and shape == dims and shape == spy.Shape(list(dims)) and shape != dims[:-1]
    assert shape.as_tuple() == dims and list(shape) == list(dims) and (shape[0], shape[-1]) == (2, count + 1)
    assert shape[1:].as_list() == list(dims[1:]) and hash(shape) == hash(spy.Shape(shape))
    assert (shape + (7, 8)).as_tuple() == (*dims, 7, 8) and ((7, 8) + shape).as_tuple() == (7, 8, *dims)
    assert (shape + shape).as_tuple() == dims + dims and pickle.loads(pickle.dumps(shape)) == shape
    assert repr(shape) == repr(list(dims)) and shape.valid and shape.concrete
    ones = spy.Shape((1,) * (count - 1) + (5,))
    assert ones.calc_contiguous_strides() == (5,) * (count - 1) + (1,)


def test_strides_beyond_64_bits() -> None:
    """A stride that no integer of 64 bits holds is no stride; the first size takes part in none."""
    assert spy.Shape(2**62, 2**40, 2**22).calc_contiguous_strides() == (2**62, 2**22, 1)
    for shape in (spy.Shape(2, 2**40, 2**40), spy.Shape(0, 2**63 - 1, 2)):
        with pytest.raises(OverflowError, match=re.escape(repr(shape))):
            shape.calc_contiguous_strides()


def test_containers_have_at_most_32_dimensions(device: spy.Device) -> None:
    """A longer shape is refused where something is made of it."""
    assert spy.Tensor.zeros(device, (1,) * 32, dtype="float").shape == (1,) * 32
    with pytest.raises(ValueError, match="at most 32 dimensions"):
        spy.Tensor.zeros(device, spy.Shape((1,) * 33), dtype="float")


def test_appended_calls_keep_no_arrays(device: spy.Device, m: spy.Module) -> None:
    """A NumPy result of a call that is only recorded would be lost."""
    values = spy.Tensor.zeros(device, (2,), dtype="float")
    for function, options in ((m.half_of, {"_result": "numpy"}), (m.half_of.return_type(np.ndarray), {})):
        with pytest.raises(ValueError, match="_result as a NumPy array would have to be read back on the host"):
            function.append_to(device.create_command_encoder(), values, **options)
