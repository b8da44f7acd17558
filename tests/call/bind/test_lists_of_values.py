"""Lists: of containers, of dicts with containers, nested; sizes on top of those of the elements."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
from calls_support import array, plain, source, tensor, tensor_of

import slangpy as spy
from slangpy.errors import BoundVariableException, ResolveException, ShapeError

try:
    import torch
except ImportError:
    torch = None

pytestmark = [
    pytest.mark.needs_kernels,
    pytest.mark.elsewhere(
        "test_entries_are_read_through_their_strides", "test_entries_of_writable_tensor_parameters_are_written",
        "test_structs_with_tensors", "test_recorded_calls", "test_empty_lists",
    ),
]  # fmt: skip

SOURCE = """
import slangpy;
float add(float a, float b) { return a + b; }
float dot3(float3 a, float3 b) { return dot(a, b); }
float row(Tensor<float, 1> r) { float t = 0; for (int i = 0; i < r.shape[0]; i++) t += r[i]; return t; }
float any_row(ITensor<float, 1> r, int i) { return r[i]; }
void scale(RWTensor<float, 1> r, float s) { for (int i = 0; i < r.shape[0]; i++) r[i] = r[i] * s; }
struct V { Tensor<float, 1> t; float s; }
float at(V v, int i) { return v.t[i] * v.s; }
struct Inner { float2 w; int n; }
struct P { float x; float3 v; Inner inner; }
float gs(P p) { return p.x + p.v.y + 10 * p.inner.w.y + 100 * p.inner.n; }
bool flip(bool b) { return !b; }
struct S { float x; }
float sx(S s) { return s.x; }
int whole(int i) { return i; }
float sum4(float a[4]) { return a[0] + a[1] + a[2] + a[3]; }
"""


@pytest.fixture
def module(device: Any) -> Any:
    return source(device, "spec_lists", SOURCE)


def test_a_list_of_tensors_has_a_dimension_of_its_own(module: Any, device: Any) -> None:
    one, two = tensor(device, 3), tensor_of(device, [10, 20, 30])
    assert plain(module.add([one, two], 1)) == [[1, 2, 3], [11, 21, 31]]
    assert plain(module.add([one, two], one)) == [[0, 2, 4], [10, 21, 32]]
    assert plain(module.dot3([one, two], spy.float3(1))) == [3, 60]
    assert plain(module.row([one, two])) == [3, 60]
    assert plain(module.add((one, two), [[100], [200]])) == [[100, 101, 102], [210, 220, 230]]


def test_entries_are_read_through_their_strides(module: Any, device: Any) -> None:
    base = tensor(device, 4, 3)
    views = [base.permute(1, 0), tensor(device, 3, 4), base.reshape(12)[:4].broadcast_to((3, 4))]
    expected = [v.to_numpy() + 1 for v in views]
    np.testing.assert_array_equal(module.add(views, 1, _result="numpy"), expected)
    np.testing.assert_array_equal(module.row(views, _result="numpy"), [v.to_numpy().sum(1) for v in views])


def test_arrays_and_nested_lists(module: Any, device: Any) -> None:
    host = [array(3), array(3)[::-1], (array(6) * 2)[::2]]
    np.testing.assert_array_equal(module.add(host, 1, _result="numpy"), np.array(host) + 1)
    np.testing.assert_array_equal(module.row(host, _result="numpy"), np.array(host).sum(1))
    nested = [[tensor(device, 2), tensor(device, 2)], [array(2) + 5, array(2)]]
    with pytest.raises(ResolveException, match=r"does not bind|does not match|element"):
        module.sx(nested)
    nested = [[array(2), array(2) + 1], [array(2) + 5, array(2)]]
    np.testing.assert_array_equal(module.add(nested, 1, _result="numpy"), np.array(nested) + 1)
    flags = [np.array([True, False]), np.array([False, False])]
    assert module.flip(flags, _result="numpy").tolist() == [[False, True], [True, True]]


def test_entries_of_tensor_parameters_may_differ_in_size(module: Any, device: Any) -> None:
    assert plain(module.row([tensor(device, 3), tensor(device, 5), array(2)[:0]])) == [3, 10, 0]
    assert plain(module.row([tensor(device, 3), tensor(device, 5)])) == [3, 10]
    assert plain(module.any_row([tensor(device, 3), tensor(device, 5)], [2, 4])) == [2, 4]


def test_entries_of_writable_tensor_parameters_are_written(module: Any, device: Any) -> None:
    tensors = [tensor(device, 3), tensor(device, 2)]
    module.scale(tensors, [10.0, 100.0])
    assert [plain(t) for t in tensors] == [[0, 10, 20], [0, 100]]
    arrays = [array(3), array(2)]
    module.scale(arrays, 2.0)
    assert [a.tolist() for a in arrays] == [[0, 2, 4], [0, 2]]


def test_structs_with_tensors(module: Any, device: Any) -> None:
    one, two = tensor(device, 3), tensor_of(device, [5, 6, 7, 8])
    values = [{"t": one, "s": 2.0}, {"t": two, "s": 3.0}]
    assert plain(module.at(values, 2)) == [4, 21]
    assert plain(module.at(values, [[0], [1]])) == [[0, 15], [2, 18]]
    assert plain(module.at([values, values], 1)) == [[2, 18], [2, 18]]
    packed = spy.pack(module, [{"_type": "V", **v} for v in values])
    assert plain(module.at(packed, 2)) == [4, 21]


def test_fields_with_containers_have_the_list_in_front(module: Any, device: Any) -> None:
    inner = {"w": spy.float2(0, 1), "n": 1}
    values = [{"x": tensor(device, 3), "v": spy.float3(1, 2, 3), "inner": inner},
              {"x": tensor_of(device, [5, 6, 7]), "v": spy.float3(4, 5, 6), "inner": {**inner, "n": 2}}]  # fmt: skip
    expected = [[112, 113, 114], [220, 221, 222]]
    assert plain(module.gs(values)) == expected
    assert plain(module.gs(values + values[:1])) == [*expected, expected[0]]
    assert plain(module.gs([{**v, "x": plain(v["x"])} for v in values])) == expected


def test_as_many_dicts_as_a_vector_has_components(module: Any) -> None:
    """Three dicts are three calls, whatever the sizes of their fields; numbers are widened to vectors."""
    assert plain(module.gs([{"x": 1.0, "v": float(i)} for i in range(3)])) == [1, 2, 3]
    assert plain(module.gs([{"inner": {"w": float(i)}} for i in range(2)])) == [0, 10]
    assert plain(module.gs([{"v": [i, i, i]} for i in range(3)])) == [0, 1, 2]


def test_the_length_builds_nothing_new(module: Any, device: Any) -> None:
    def code(count: int) -> Any:
        return module.add.debug_build_call_data([tensor(device, 3)] * count, 1).pipeline

    assert code(2) is code(5)
    short, long = (module.add.debug_build_call_data([1.0] * n, 1) for n in (2, 7))
    assert short is long


def test_recorded_calls(module: Any, device: Any) -> None:
    out = spy.Tensor.zeros(device, (2, 3), dtype="float")
    encoder = device.create_command_encoder()
    module.add.append_to(encoder, [tensor(device, 3), tensor(device, 3)], 1.0, _result=out)
    device.submit_command_buffer(encoder.finish())
    assert plain(out) == [[1, 2, 3], [1, 2, 3]]


def test_kinds_of_numbers(module: Any) -> None:
    assert plain(module.add([True, 2], 0.5)) == [1.5, 2.5]
    assert plain(module.add([1, 2.5], 1)) == [2, 3.5]
    assert plain(module.flip([True, False])) == [False, True]
    with pytest.raises(ResolveException):
        module.flip([1.0, 2.0])


def test_empty_lists(module: Any) -> None:
    assert module.add([], 1, _result="numpy").shape == (0,)
    assert module.add([[], []], 1, _result="numpy").shape == (2, 0)


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        ([[1, 2], [3]], BoundVariableException, "equal lengths"),
        ([1, [2]], BoundVariableException, "equal lengths"),
        ([{"x": 1.0}, {"y": 1.0}], BoundVariableException, "equal fields"),
        ([{"x": 1.0}, 2.0], BoundVariableException, "one kind"),
        ([spy.float2(), spy.float3()], BoundVariableException, "one kind"),
        ([{"x": 1.0, "_type": "S"}, {"x": 1.0, "_type": "P"}], BoundVariableException, "_type"),
        ([{"x": [1.0]}, {"x": [1.0, 2.0]}], BoundVariableException, "equal lengths"),
        (["a", "b"], BoundVariableException, "Unsupported type str"),
    ],
)
def test_lists_that_do_not_agree(module: Any, value: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        module.sx(value)


def test_what_dicts_of_a_list_may_be(module: Any) -> None:
    """Order of fields, subclasses of dict, list and tuple, objects that stand for dicts, equal types by name or Struct."""

    class Own(dict):
        pass

    class Rows(list):
        pass

    class This:
        def __init__(self, value: Any) -> None:
            self.value = value

        def get_this(self) -> Any:
            return self.value

    expected = [[1.0, 2.0], [3.0, 4.0]]
    one, two, three, four = ({"x": float(i)} for i in range(1, 5))
    for rows in (
        [[one, two], [three, four]], ([one, two], (three, four)), [Rows([one, two]), [Own(three), four]],
        [This([one, This(two)]), (This(This(three)), four)], Rows([This(Own(one)), two]),
    ):  # fmt: skip
        found = plain(module.sx(rows))
        assert found == (expected if len(found[:1]) and isinstance(found[0], list) else expected[0])
    typed = [{"_type": "S", "x": 1.0}, {"x": 2.0, "_type": module.S}]
    assert plain(module.sx(typed)) == [1.0, 2.0]
    for odd in ([{"x": 1.0, 2: 1.0}] * 2, [{"x": 1.0}, {"x": 1.0, 2: 1.0}], [{"x": 1.0, "_type": 3}] * 2):
        with pytest.raises((BoundVariableException, ResolveException)):
            module.sx(odd)


def test_warm_calls_walk_lists_natively(module: Any, device: Any) -> None:
    """No Python code runs for them."""
    tensors = [tensor(device, 3) for _ in range(16)]
    dicts = [{"x": float(i), "v": spy.float3(i), "inner": {"w": spy.float2(0, i), "n": i}} for i in range(16)]
    out, outs = tensor(device, 16), tensor(device, 16, 4)
    calls = [
        lambda: module.row(tensors, _result=out), lambda: module.gs(dicts, _result=out),
        lambda: module.add([[1.0] * 4] * 16, 1.0, _result=outs),
    ]  # fmt: skip
    if torch is not None and device.info.type is spy.DeviceType.cpu:
        shared = [torch.ones(3) for _ in range(16)]
        calls.append(lambda: module.row(shared, _result=out))
    ran: list[str] = []

    def note(frame: Any, event: str, argument: Any) -> None:
        if event == "call" and frame.f_code.co_name != "<lambda>":
            ran.append(f"{frame.f_code.co_filename}:{frame.f_code.co_name}")

    for call in calls:
        call()
        call()
        sys.setprofile(note)
        try:
            call()
        finally:
            sys.setprofile(None)
        assert ran == []


def test_containers_that_do_not_agree(module: Any, device: Any) -> None:
    with pytest.raises(ShapeError, match="mismatch"):
        module.add([tensor(device, 3), tensor(device, 4)], 1)
    with pytest.raises(ResolveException, match=r"element \[1\]"):
        module.add([tensor(device, 3), tensor(device, 3, dtype=np.int32)], 1)
    with pytest.raises(ResolveException, match=r"element \[1\] does not bind as element \[0\]"):
        module.add([tensor(device, 3), tensor(device, 3, 3)], 1)
    with pytest.raises(ResolveException, match="bound whole"):
        module.add([tensor(device, 3).storage], 1)


def test_generators_in_lists_and_in_listed_dicts(module: Any) -> None:
    """Each entry has a generator of its own; its numbers are those of the invocation's index in the whole call."""
    one, two = spy.rand_float(seed=3), spy.rand_float(1, 2, seed=4)
    out = np.zeros((2, 3), np.float32)
    expected = np.stack([module.add(g, 0.0, _result=out.copy())[k] for k, g in enumerate((one, two))])
    np.testing.assert_array_equal(module.add([[one], [two]], 0.0, _result=out), expected)
    values = [{"x": one, "v": spy.float3(0, 10, 0)}, {"x": two, "v": spy.float3(0, 20, 0)}]
    alone = [module.add(g, 0.0, _result=np.zeros(2, np.float32))[k] for k, g in enumerate((one, two))]
    np.testing.assert_array_equal(
        module.gs(values, _result="numpy"), np.array(alone, np.float32) + np.float32([10, 20])
    )
    assert plain(module.sx([{"x": spy.rand_float(seed=1)}])) == [module.sx({"x": spy.rand_float(seed=1)})]
    with pytest.raises(ResolveException, match="generators with a shape"):
        module.whole([range(2), range(2)])
    at = module.whole([spy.call_id(), spy.call_id(), spy.thread_id()], _result="numpy")
    assert at.tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match="Could not find suitable"):
        module.whole([spy.call_id(), spy.call_id()], _result=np.zeros((3, 2), np.int32))


UNSIZED = """
import slangpy;
float digits(float a[]) { return a[0] * 10 + a[1]; }
int whole_digits(int a[]) { return a[0] * 10 + a[1]; }
float corner(float3 a[]) { return a[0].x * 10 + a[1].y; }
float pairs(float a[][2]) { return a[0][0] * 10 + a[1][1]; }
struct S { float x; };
float structs(S s[]) { return s[0].x * 10 + s[1].x; }
"""


def test_arrays_without_a_size_take_that_of_the_list(device: Any) -> None:
    module = source(device, "spec_unsized", UNSIZED)
    assert module.digits([1, 2]) == module.digits([1, 2, 3, 4]) == 12
    assert module.whole_digits((3, 4)) == 34
    assert plain(module.digits([[1, 2], [3, 4]])) == [12, 34]
    assert module.corner([[1, 2, 3], [4, 5, 6]]) == module.corner([spy.float3(1, 2, 3), spy.float3(4, 5, 6)]) == 15
    assert module.pairs([[1, 2], [3, 4]]) == module.pairs([[1, 2], [3, 4], [5, 6]]) == 14
    assert module.structs([{"x": 1}, {"x": 2}]) == 12
    values = spy.Tensor.from_numpy(device, array(2, 4))
    assert plain(module.digits(spy.Tensor.zeros(device, (3,), "float[4]"))) == [0, 0, 0]
    with pytest.raises((ResolveException, ShapeError)):
        module.digits(values)


GENERIC = """
T last<T : __BuiltinFloatingPointType>(vector<T, 2> a[4]) { return a[3].y; }
float sizes<T : __BuiltinFloatingPointType, let N : int, let M : int>(vector<T, N> a[M]) { return N * 10 + M; }
T corner<T : __BuiltinFloatingPointType>(matrix<T, 2, 2> a[3]) { return a[2][1][0]; }
"""


def test_arrays_of_generic_vectors_and_matrices(device: Any) -> None:
    module = source(device, "spec_generic_arrays", GENERIC)
    assert module.last([[1.0, 2.0]] * 4) == module.last([spy.float2(1, 2)] * 4) == 2
    assert module.last(tensor(device, 4, 2)) == 7
    assert plain(module.last(tensor(device, 3, 4, 2))) == [7, 15, 23]
    assert plain(module.last(spy.Tensor.zeros(device, (2,), "float2[4]"))) == [0, 0]
    assert module.sizes([[1.0, 2.0, 3.0]] * 4) == 34 and module.sizes([spy.float3(1)] * 5) == 35
    assert module.corner([[[1.0, 2.0], [3.0, 4.0]]] * 3) == 3 and module.corner(tensor(device, 3, 2, 2)) == 10
    for wrong in ([[1.0, 2.0, 3.0]] * 4, [[1.0, 2.0]] * 3):
        with pytest.raises((ResolveException, ShapeError)):
            module.last(wrong)
    with pytest.raises(ResolveException):
        module.sizes(tensor(device, 4, 2))  # how many components?
