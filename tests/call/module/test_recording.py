"""Recording, raw dispatch, link time and keys, modifiers, conversion and bindings."""

from __future__ import annotations

import gc
import warnings
from typing import Any

import numpy as np
import pytest
from calls_support import array, plain, source, tensor

import slangpy as spy
from slangpy.errors import KernelGenException, ResolveException
from slangpy.plan import compile as compile_stage

pytestmark = [
    pytest.mark.needs_kernels,
    pytest.mark.elsewhere(
        "test_constants_of_every_kind", "test_thread_group_sizes", "test_recorded_calls_run_when_submitted",
        "test_recorded_backward_calls", "test_recorded_again", "test_recorded_beside_plain_calls", "test_recorded_calls_read_nothing_back",
        "test_dispatch_counts_are_rounded_up_to_groups", "test_dispatch_takes_structs_pointers_and_two_dimensions",
        "test_dispatch_is_recorded", "test_link_time_constants",
    ),
]  # fmt: skip

SOURCE = """
import slangpy;
struct Light { float power; float3 tint; }
ParameterBlock<Light> light;
extern static const int STEPS = 1;
extern static const float SCALE = 1.0;
extern static const bool FLIP = false;
extern static const float3 AXIS = float3(1, 2, 3);
float lit(float x) { return x * light.power * STEPS + light.tint.y; }
float scaled(float x) { return (FLIP ? -x : x) * SCALE + dot(AXIS, float3(1)); }
void fill(uint3 dispatchThreadID, float s, RWTensor<float, 1> o) { if (dispatchThreadID.x < o.shape[0]) o[dispatchThreadID.x] = dispatchThreadID.x * s; }
void count(uint dispatchThreadID, RWStructuredBuffer<uint> o) { if (dispatchThreadID < 64) o[dispatchThreadID] += 1; }
void plane(uint2 dispatchThreadID, Light l, float* p, RWTensor<float, 2> o) { if (all(dispatchThreadID < o.shape_of())) o[dispatchThreadID.y, dispatchThreadID.x] = l.power + p[dispatchThreadID.x]; }
float add(float a, float b) { return a + b; }
float3 scale(float3 v, float s) { return v * s; }
double wide(double x) { return x; }
void store(float x, out double y) { y = x; }
float narrow(float x) { return x; }
int to_int(int x) { return x; }
[Differentiable] float poly(float a, float x) { return a * x * x; }
float twice(float x) { return 2 * x; }
interface IV { int value(); }
struct A10 : IV { int n; int value() { return 10; } }
struct A20 : IV { int n; int value() { return 20; } }
int open() { A10 a; a.n = 0; IV v = createDynamicObject<IV>(0, a); return v.value(); }
""".replace(
    "if (all(dispatchThreadID < o.shape_of())) ",
    "if (dispatchThreadID.x < o.shape[1] && dispatchThreadID.y < o.shape[0]) ",
)


@pytest.fixture
def m(device: Any) -> Any:
    return source(device, "spec_commands", SOURCE)


# --- 2.1


def test_the_worked_case_of_modifiers(m: Any) -> None:
    f = m.lit.set({"light": {"power": 3.0, "tint": spy.float3(1, 2, 3)}})
    assert f(2.0) == 8.0
    assert f.constants({"STEPS": 4})(2.0) == 26.0
    assert f.set(light={"power": 1.0})(2.0) == 4.0
    assert f(2.0) == 8.0


def test_constants_of_every_kind(m: Any) -> None:
    assert m.scaled(2.0) == 8.0
    assert m.scaled.constants({"SCALE": 2.5, "FLIP": True})(2.0) == 1.0
    assert m.scaled.constants({"SCALE": np.float64(2.5)}).constants({"FLIP": np.bool_(True)})(2.0) == 1.0
    assert m.scaled.constants({"SCALE": 3}).constants({"SCALE": 2})(2.0) == 10.0
    assert m.scaled.constants({"AXIS": spy.float3(0, 0, 1)})(2.0) == 3.0


def test_modifiers_in_any_order_and_number(m: Any, device: Any) -> None:
    f = m.lit.constants({"STEPS": 2}).set(light={"power": 1.0}).thread_group_size((32, 1, 1)).constants({"STEPS": 4})
    f = (
        f.prelude("")
        .map((0,))
        .return_type("numpy")
        .convert("safe")
        .prelude("")
        .set(light={"power": 2.0})
        .call_group_shape((2,))
    )
    assert f(array(3)).tolist() == [0, 8, 16]
    order: list[str] = []
    node = (
        m.lit.write(lambda c: order.append("first"))
        .set(light={"power": 1.0})
        .write(lambda c, n: order.append(n), "second")
    )
    node(1.0)
    assert order == ["first", "second"]


@pytest.mark.parametrize("arguments", [((), {}), ((1,), {}), (({}, {}), {}), (({"a": 1},), {"b": 2})])
def test_set_takes_one_form(m: Any, arguments: Any) -> None:
    args, kwargs = arguments
    with pytest.raises(ValueError, match=r"Set (requires|accepts)"):
        m.lit.set(*args, **kwargs)


def test_chaining_in_a_loop_builds_one_plan(m: Any) -> None:
    m.add.map((0,))(array(4), 1)
    builds = compile_stage.builds
    plans = {id(m.add.map((0,)).debug_build_call_data(array(n + 1), 1)) for n in range(5)}
    assert len(plans) == 1 and compile_stage.builds == builds


def test_thread_group_sizes(m: Any, device: Any) -> None:
    data = m.add.thread_group_size((8, 4, 1)).debug_build_call_data(array(5), 1)
    assert "numthreads(32, 1, 1)" in data.code or device.info.type == spy.DeviceType.cpu
    for size in ((64, 1, 1), spy.uint3(8, 2, 1), [1, 1, 1]):
        assert plain(m.add.thread_group_size(size)(array(70), 1)) == list(range(1, 71))
    for wrong in ((0, 1, 1), (2048, 1, 1), (1, 2)):
        with pytest.raises(ValueError, match="thread_group_size"):
            m.add.thread_group_size(wrong)


def test_prelude(m: Any) -> None:
    node = m.twice.prelude("// one\r\n").prelude("// two\n")
    code = node.debug_build_call_data(1.0).code
    assert code.index("// one\n") < code.index("// two") and "\r" not in code
    assert node(2.0) == 4.0


# --- 7.1


def test_recorded_calls_run_when_submitted(m: Any, device: Any) -> None:
    out, x = spy.Tensor.zeros(device, (3,), dtype="float"), tensor(device, 3)
    encoder = device.create_command_encoder()
    assert m.add.append_to(encoder, x, 1.0, _result=out) is None
    assert m.add(out, 10.0, _result=out, _append_to=encoder) is None
    assert m.add(x, 1.0, _append_to=encoder) is None  # the value is discarded
    assert plain(out) == [0, 0, 0]
    device.submit_command_buffer(encoder.finish())
    assert plain(out) == [11, 12, 13]
    with pytest.raises(RuntimeError, match="finished"):
        m.add.append_to(encoder, x, 1.0, _result=out)


def test_recorded_again(m: Any, device: Any) -> None:
    """Calls with memory that earlier ones had: from the third on, what those worked out is taken. The commands keep it."""
    x = np.arange(33, dtype=np.float32)
    given, out = spy.Tensor.from_numpy(device, x), spy.Tensor.from_numpy(device, np.full(33, np.nan, np.float32))
    for k in range(6):  # of the commands, only the last stay
        encoder = device.create_command_encoder()
        m.add.append_to(encoder, given, float(k), _result=out)
        commands = encoder.finish()
        assert np.isnan(out.to_numpy()).all()
    del given, encoder
    gc.collect()
    others = [spy.Tensor.from_numpy(device, np.full(33, -1.0, np.float32)) for _ in range(8)]
    for _ in range(2):
        device.submit_command_buffer(commands)
        np.testing.assert_array_equal(out.to_numpy(), x + 5)
    assert all((other.to_numpy() == -1).all() for other in others)


def test_recorded_beside_plain_calls(device: Any) -> None:
    """Of the same arguments: what a plain call works out for itself is not a recorded one's, and the other way round."""
    text = "[Differentiable] float pick(IDiffTensor<float, 1> x, no_diff int i) { return x[i]; }"
    module = spy.Module.load_from_source(device, "recorded_beside_plain", text)
    rng = np.random.default_rng()
    index, seeds = rng.integers(0, 7, 4001, np.int32), rng.random(4001, np.float32)
    x, i = spy.Tensor.from_numpy(device, np.zeros(7, np.float32)).with_grads(zero=True), spy.Tensor.from_numpy(device, index)
    y = spy.Tensor.from_numpy(device, np.zeros(4001, np.float32)).with_grads(grad_in=spy.Tensor.from_numpy(device, seeds))
    once = np.bincount(index, weights=seeds.astype(np.float64), minlength=7)
    for count in range(1, 9):
        if count in (2, 3, 4, 7):
            encoder = device.create_command_encoder()
            module.pick.bwds.append_to(encoder, x, i, _result=y)
            device.submit_command_buffer(encoder.finish())
        else:
            module.pick.bwds(x, i, _result=y)
        np.testing.assert_allclose(x.grad.to_numpy(), count * once, rtol=1e-4)


def test_the_encoder_is_given_once(m: Any, device: Any) -> None:
    encoder, out = device.create_command_encoder(), spy.Tensor.from_numpy(device, np.zeros(3, np.float32))
    with pytest.raises(TypeError, match=r"add: append_to takes the encoder first, and _append_to is another one"):
        m.add.append_to(encoder, out, 1.0, _result=out, _append_to=device.create_command_encoder())
    for wrong in (None, 1, out):
        with pytest.raises(TypeError, match="append_to takes a CommandEncoder first"):
            m.add.append_to(wrong, out, 1.0, _result=out)
        with pytest.raises(TypeError, match="submit: expected a CommandBuffer, got"):
            device.submit_command_buffer(wrong)
    with pytest.raises(TypeError, match=r"got a CommandEncoder; submit what its finish\(\) returns"):
        device.submit_command_buffer(encoder)


def test_classes_of_functions_record_in_their_own_way(m: Any, device: Any) -> None:
    seen: list[dict[str, Any]] = []

    class Mine(type(m.add)):
        def __call__(self, *args: Any, **kwargs: Any) -> Any:
            seen.append(kwargs)
            return super().__call__(*args, **kwargs)

    mine, out = m.add.map((0,), (0,)), spy.Tensor.from_numpy(device, np.zeros(3, np.float32))
    mine.__class__ = Mine
    encoder = device.create_command_encoder()
    mine.append_to(encoder, array(3), out, _result=out)
    device.submit_command_buffer(encoder.finish())
    assert [kwargs["_append_to"] for kwargs in seen] == [encoder] and plain(out) == [0, 1, 2]


def test_recorded_backward_calls(m: Any, device: Any) -> None:
    x, out = tensor(device, 3).with_grads(), tensor(device, 3).with_grads()
    out.grad.copy_from_numpy(np.ones(3, np.float32))
    encoder = device.create_command_encoder()
    m.poly.bwds.append_to(encoder, 2.0, x, _result=out)
    assert plain(x.grad) == [0, 0, 0]
    device.submit_command_buffer(encoder.finish())
    assert plain(x.grad) == [0, 4, 8]


@pytest.mark.parametrize("case", ["numpy", "reference", "pair"])
def test_recorded_calls_read_nothing_back(m: Any, device: Any, case: str) -> None:
    encoder = device.create_command_encoder()
    with pytest.raises(ValueError, match=r"read back"):
        if case == "numpy":
            m.add.append_to(encoder, tensor(device, 3), 1.0, _result=np.zeros(3, np.float32))
        elif case == "reference":
            m.add.append_to(encoder, 1.0, 1.0, _result=spy.floatRef())
        else:
            out = tensor(device, 3).with_grads()
            m.poly.bwds.append_to(encoder, spy.diffPair(2.0), tensor(device, 3), _result=out)


# --- 7.2


def test_dispatch_of_the_worked_case(m: Any, device: Any) -> None:
    for threads in (spy.uint3(10, 1, 1), 10, (10,), (10, 1), [10, 1, 1], 1000):
        out = spy.Tensor.zeros(device, (10,), dtype="float")
        m.fill.dispatch(threads, s=2.0, o=out)
        assert plain(out) == list(range(0, 20, 2))


def test_dispatch_counts_are_rounded_up_to_groups(m: Any, device: Any) -> None:
    for size, threads, expected in (((32, 1, 1), 33, 64), ((16, 1, 1), 33, 48), (None, 1, 32)):
        out = spy.Tensor.zeros(device, (64,), dtype="uint")
        node = m.count if size is None else m.count.thread_group_size(size)
        node.dispatch(threads, o=out)
        assert int(out.to_numpy().sum()) == expected


def test_dispatch_takes_structs_pointers_and_two_dimensions(m: Any, device: Any) -> None:
    out, p = spy.Tensor.zeros(device, (2, 3), dtype="float"), tensor(device, 3)
    m.plane.dispatch((3, 2), l={"power": 10.0}, p=p.storage.device_address, o=out)
    assert plain(out) == [[10, 11, 12], [10, 11, 12]]


def test_dispatch_warns_of_unknown_names(m: Any, device: Any) -> None:
    out = spy.Tensor.zeros(device, (4,), dtype="float")
    with pytest.warns(RuntimeWarning, match="no parameter 'q'"):
        m.fill.dispatch(4, s=1.0, o=out, q=3)
    assert plain(out) == [0, 1, 2, 3]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        m.fill.dispatch(4, s=1.0, o=out)


def test_dispatch_is_recorded(m: Any, device: Any) -> None:
    out = spy.Tensor.zeros(device, (4,), dtype="float")
    encoder = device.create_command_encoder()
    m.fill.dispatch(4, command_encoder=encoder, s=3.0, o=out)
    assert plain(out) == [0, 0, 0, 0]
    device.submit_command_buffer(encoder.finish())
    assert plain(out) == [0, 3, 6, 9]


# --- 7.4


def test_link_time_constants(device: Any) -> None:
    text = "extern static const int N = 1; int n(int x) { return x * N; }"
    other = source(device, "spec_link_values", "export static const int N = 10;")
    assert source(device, "spec_link_a", text).n(2) == 2
    assert source(device, "spec_link_b", text, link=[other]).n(2) == 20


def test_modules_of_the_device_are_linked(device: Any, tmp_path: Any) -> None:
    """1.2: a link may be a SlangModule, from a file or from text, beside modules, in any order."""
    text = "extern static const int N = 1; extern static const int M = 1; int n(int x) { return x * N + M; }"
    (tmp_path / "spec_link_of_file.slang").write_text("export static const int N = 5;")
    mine = source(device, "spec_link_m", "export static const int M = 100;")
    of_text = device.load_module_from_source("spec_link_of_text", "export static const int N = 7; int six() { return 6; }")
    of_file = device.load_module(str(tmp_path / "spec_link_of_file.slang"))
    apart = device.create_slang_session({}).load_module_from_source("spec_link_apart", "export static const int N = 9;")
    assert source(device, "spec_link_c", text, link=[of_text]).n(2) == 15
    assert source(device, "spec_link_d", text, link=[of_file]).n(2) == 11
    assert source(device, "spec_link_e", text, link=[apart]).n(2) == 19
    both = source(device, "spec_link_f", text, link=[of_text, mine])
    assert both.n(2) == 114 and both.six() == 6
    assert source(device, "spec_link_g", text, link=[mine, of_text]).n(2) == 114
    assert spy.Module(of_text).six() == 6


def test_link_time_types(device: Any) -> None:
    thing = "interface IThing { int go(); } "
    text = thing + "extern struct K : IThing; int go() { K k; return k.go(); }"
    module = source(device, "spec_link_types", text)
    node = module.go.prelude("struct Mine : IThing { int go() { return 42; } };\nexport struct K : IThing = Mine;")
    assert node() == 42


def test_type_conformances(m: Any) -> None:
    assert m.open.type_conformances([spy.TypeConformance("IV", "A10")])() == 10
    assert m.open.type_conformances([("IV", "A10", 0), ("IV", "A20", 1)])() == 10


# --- 3.9


@pytest.mark.parametrize(
    ("name", "dtype", "safe"),
    [("narrow", np.int8, True), ("narrow", np.float16, True), ("narrow", np.int32, False), ("narrow", np.float64, False),
     ("wide", np.int32, True), ("wide", np.float32, True), ("wide", np.int64, False), ("to_int", np.int16, True),
     ("to_int", np.uint16, True), ("to_int", np.uint32, False), ("to_int", np.float32, False), ("narrow", np.bool_, True)],
)  # fmt: skip
def test_conversion_of_containers(m: Any, device: Any, name: str, dtype: Any, safe: bool) -> None:
    data = np.array([0, 1, 1], dtype)
    with pytest.raises(ResolveException, match="convert"):
        m[name](data)
    assert plain(m[name].convert("any")(data)) == [0, 1, 1]
    if safe:
        assert plain(m[name].convert()(data)) == [0, 1, 1]
    else:
        with pytest.raises(ResolveException):
            m[name].convert("safe")(data)


def test_conversion_by_option_and_of_outputs(device: Any) -> None:
    text = "float half_of(float x) { return x / 2; } void store(float x, out double y) { y = x; }"
    module = source(device, "spec_convert", text, options={"convert": "any"})
    out = np.zeros(3, np.int32)
    assert plain(module.half_of(np.array([2, 4, 6]))) == [1, 2, 3]
    module.half_of(array(3) * 4, _result=out)
    assert out.tolist() == [0, 2, 4]
    with pytest.raises(ValueError, match="unknown module option 'konvert'"):
        source(device, "spec_convert2", text, options={"konvert": "any"})
    with pytest.raises(ValueError, match="convert"):
        source(device, "spec_convert3", text, options={"convert": "all"})
    for wrong in ({"options": {"strict_broadcasting": "no"}}, {"options": [1]}, {"link": 3}):
        with pytest.raises(TypeError, match="strict_broadcasting|list of modules"):
            source(device, "spec_convert4", text, **wrong)
    with pytest.raises(TypeError, match=r"'device' must be a Device.*create_device"):
        source(None, "spec_convert5", text)


def test_stores_that_are_legal_without_conversion(m: Any, device: Any) -> None:
    wide = np.zeros(3)
    m.narrow(array(3), _result=wide)
    assert wide.tolist() == [0, 1, 2]
    unsigned = np.zeros(2, np.uint32)
    m.to_int([1, -1], _result=unsigned)
    assert unsigned.tolist() == [1, 2**32 - 1]
    narrow = np.zeros(3, np.float16)
    m.narrow(array(3) / 2, _result=narrow)
    assert narrow.tolist() == [0, 0.5, 1]


# --- 7.5


def test_what_the_key_holds(m: Any, device: Any) -> None:
    def plan(*args: Any, **kwargs: Any) -> Any:
        return m.add.debug_build_call_data(*args, **kwargs)

    base = plan(array(3), 1.0)
    assert plan(array(5)[::2], 2.0) is base and plan(np.broadcast_to(array(1), (4,)).copy(), 7.0) is base
    assert plan(array(3), 1) is not base and plan(array(3), True) is not plan(array(3), 1)
    assert plan(array(2, 3), 1.0) is not base and plan(tensor(device, 3), 1.0) is not base
    assert plan(tensor(device, 3), 1.0) is not plan(tensor(device, 3).with_grads(), 1.0)
    assert plan(a=array(3), b=1.0) is plan(a=array(4), b=2.0)
    ordered = m.lit.set(light={"power": 1.0}), m.lit.set(light={"power": 2.0})
    assert ordered[0].debug_build_call_data(1.0) is ordered[1].debug_build_call_data(1.0)


def test_field_order_does_not_count(device: Any) -> None:
    module = source(device, "spec_fields", "struct P { float x; float y; }; float f(P p) { return p.x - p.y; }")
    one = module.f.debug_build_call_data({"x": 1.0, "y": 2.0})
    assert module.f.debug_build_call_data({"y": 2.0, "x": 1.0}) is one
    assert module.f({"y": 2.0, "x": 1.0}) == -1.0


def test_group_shapes_are_checked_when_planned(m: Any) -> None:
    with pytest.raises(KernelGenException, match="cannot have more dimensions than call_shape"):
        m.add.call_group_shape((1, 1))(array(3), 1.0)
