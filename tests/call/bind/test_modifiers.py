"""Modifiers of functions: globals, constants, preludes, conformances, options, encoders, thread counts."""

from __future__ import annotations

import enum
from typing import Any

import numpy as np
import pytest
from calls_support import FOLDER, array, load, plain, source, tensor

import slangpy as spy
from slangpy import float3
from slangpy.compiler.cache import cache, cache_of
from slangpy.plan import compile as stage

pytestmark = [pytest.mark.needs_kernels, pytest.mark.one]


@pytest.fixture
def m(device: Any) -> spy.Module:
    return load(device, "modifiers")


# --- set, write


def test_set_and_constants(m: spy.Module) -> None:
    f = m.lit.set({"light": {"power": 3.0, "tint": float3(1, 2, 3)}})
    assert f(2.0) == 8.0
    assert f.constants({"STEPS": 4})(2.0) == 26.0
    assert f.set(light={"power": 1.0})(2.0) == 4.0
    assert plain(f(array(3))) == [2, 5, 8]


def test_unset_globals_are_zero(m: spy.Module) -> None:
    assert m.use_gain(3.0) == 0.0
    assert m.lit(2.0) == 0.0


def test_set_kinds(m: spy.Module, device: Any) -> None:
    assert m.use_gain.set(gain=2)(3.0) == 6.0
    assert m.use_gain.set(gain=np.float32(2))(3.0) == 6.0
    assert m.use_gain.set({"gain": 2.0}).set(gain=5.0)(3.0) == 15.0
    assert m.use_offsets.set(offsets=[[1, 0, 0, 0], [0, 0, 0, 2]])(3.0) == 6.0
    assert m.use_offsets.set(offsets=np.array([[1, 0, 0, 0], [0, 0, 0, 2]], np.float32))(3.0) == 6.0
    assert m.use_flag.set(flag=True)(3.0) == 3.0
    table = device.create_buffer(data=np.array([5, 6, 7], np.float32), usage=spy.BufferUsage.shader_resource)
    assert plain(m.use_table.set(table=table)([0, 2])) == [5, 7]


def test_set_function_is_asked_each_time(m: spy.Module) -> None:
    asked: list[int] = []

    def values(context: Any) -> dict[str, Any]:
        asked.append(1)
        return {"gain": float(len(asked))}

    f = m.use_gain.set(values)
    assert [f(10.0), f(10.0)] == [10.0, 20.0] and len(asked) == 2


def test_write(m: spy.Module) -> None:
    def fill(cursor: Any, value: float, *, factor: float = 1.0) -> None:
        cursor["gain"] = value * factor

    assert m.use_gain.write(fill, 2.0)(3.0) == 6.0
    assert m.use_gain.write(fill, 2.0, factor=4.0)(3.0) == 24.0
    assert m.use_gain.write(fill, 2.0).set(gain=7.0)(1.0) == 7.0
    assert m.use_gain.set(gain=7.0).write(fill, 2.0)(1.0) == 2.0


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda f: f.set(), "Set requires"), (lambda f: f.set(3), "Set requires"), (lambda f: f.set({}, {}), "Set accepts"),
        (lambda f: f.set({"gain": 1}, gain=2), "Set accepts"), (lambda f: f.write(3), "callable"),
        (lambda f: f.set(nope=1)(1.0), "no global named 'nope'"), (lambda f: f.set(lambda c: 3)(1.0), "must return a dict"),
    ],
)  # fmt: skip
def test_wrong_globals(m: spy.Module, call: Any, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        call(m.use_gain)
    assert m.use_gain.set(gain=1)(2.0) == 2.0


def test_wrong_global_values(m: spy.Module) -> None:
    with pytest.raises((TypeError, ValueError)):
        m.use_gain.set(gain="x")(1.0)
    with pytest.raises((TypeError, ValueError, AttributeError, KeyError), match="nope"):
        m.lit.set(light={"nope": 1.0})(1.0)


def test_setting_values_rebuilds_nothing(m: spy.Module) -> None:
    m.use_gain.set(gain=1)(1.0)
    before = stage.builds
    for value in range(5):
        assert m.use_gain.set(gain=value)(1.0) == value
    assert stage.builds == before


# --- constants, prelude, link, conformances


def test_constants(m: spy.Module) -> None:
    f = m.constants
    assert f(1.0) == 4.0
    assert f.constants({"SCALE": 3.0})(1.0) == 5.0
    assert f.constants({"SCALE": 3.0}).constants({"NEGATE": True})(1.0) == -1.0
    assert f.constants({"SCALE": 3.0}).constants({"SCALE": 4.0})(1.0) == 6.0
    assert f.constants({"WEIGHTS": float3(0, 7, 0)})(1.0) == 9.0
    assert f.constants({"SCALE": np.float32(0.5)})(1.0) == 2.5
    assert f.constants({"SCALE": 5})(1.0) == 7.0
    assert f(1.0) == 4.0


def test_constants_are_cached_per_set_of_values(m: spy.Module) -> None:
    for value in (11.0, 12.0):
        m.constants.constants({"SCALE": value})(1.0)
    before = stage.builds
    for value in (11.0, 12.0, 11.0):
        assert m.constants.constants({"SCALE": value})(1.0) == value + 2
    assert stage.builds == before


@pytest.mark.parametrize(
    ("constants", "kind", "text"),
    [
        ({"SCALE": "x"}, spy.KernelGenException, "must be an int, float or bool"),
        ({"SCALE": None}, spy.KernelGenException, "SCALE"),
        ({"NOPE": 3}, ValueError, "NOPE"),
        ({"STEPS": 1.5}, ValueError, "STEPS"),
        ({"STEPS": 2**40}, (ValueError, OverflowError), "STEPS"),
        (3, ValueError, "dict"),
    ],
)  # fmt: skip
def test_wrong_constants(m: spy.Module, constants: Any, kind: Any, text: str) -> None:
    with pytest.raises(kind, match=text):
        m.constants.constants(constants)(1.0)
    assert m.constants(1.0) == 4.0


def test_linked_constants(device: Any) -> None:
    linked = spy.Module.load_from_file(device, FOLDER / "calls_linked.slang")
    module = spy.Module.load_from_file(device, FOLDER / "calls_modifiers.slang", link=[linked])
    assert module.lit.set(light={"power": 1.0})(2.0) == 20.0
    assert repr(module) == "Module(name='calls_modifiers', linked_modules=1)"


def test_linked_source(device: Any) -> None:
    linked = source(device, "calls_link_text", "export static const int STEPS = 7;")
    module = spy.Module.load_from_file(device, FOLDER / "calls_modifiers.slang", link=[linked.device_module])
    assert module.lit.set(light={"power": 1.0})(2.0) == 14.0


def test_prelude(m: spy.Module) -> None:
    assert m.chosen() == 4.0
    assert m.chosen.prelude("export struct Chosen : IThing = Five;")() == 5.0
    assert (
        m.chosen.prelude("struct Six : IThing { float get() { return 6; } }\r\n").prelude(
            "export struct Chosen : IThing = Six;"
        )()
        == 6.0
    )
    with pytest.raises(ValueError):
        m.chosen.prelude("this is no Slang")()
    assert m.chosen() == 4.0


def test_type_conformances(m: spy.Module) -> None:
    f = m.dynamic
    assert f.type_conformances([spy.TypeConformance("IV", "A10", 0)])(0) == 15
    both = f.type_conformances([("IV", "A10", 0), ("IV", "A20", 1)])
    assert plain(both([0, 1])) == [15, 25]
    chained = f.type_conformances([("IV", "A10", 0)]).type_conformances([("IV", "A20", 1)])
    assert plain(chained([0, 1])) == [15, 25]
    with pytest.raises(ValueError, match="Nope"):
        f.type_conformances([("IV", "Nope")])(0)
    with pytest.raises(ValueError):
        f.type_conformances(["IV"])


# --- options


def test_strict_broadcasting(device: Any) -> None:
    module = spy.Module.load_from_file(device, FOLDER / "calls_modifiers.slang", options={"strict_broadcasting": True})
    assert plain(module.add(array(2, 3), 1.0)) == [[1, 2, 3], [4, 5, 6]]
    assert plain(module.add(array(2, 3), array(2, 1))) == [[0, 1, 2], [4, 5, 6]]
    assert plain(module.add.map((0,))(array(2), array(2, 3))) == [[0, 1, 2], [4, 5, 6]]
    with pytest.raises(ValueError, match="Strict broadcasting is enabled") as caught:
        module.add(array(2, 3), array(3))
    assert "argument b has 1 dimensions and the call has 2" in str(caught.value)
    with pytest.raises(ValueError, match="Strict broadcasting is enabled"):
        module.add(array(3), 1.0, _result=np.zeros((2, 3), np.float32))


def test_convert(device: Any, m: spy.Module) -> None:
    ints = np.array([1, 2, 3], np.int8)
    with pytest.raises(spy.ResolveException, match="convert"):
        m.add(ints, 1.0)
    assert plain(m.add.convert()(ints, 1.0)) == [2, 3, 4]
    assert plain(m.add.convert("safe")(np.array([0.5, 2], np.float16), 1.0)) == [1.5, 3]
    with pytest.raises(spy.ResolveException):
        m.add.convert("safe")(np.array([1.5, 2]), 1.0)
    assert plain(m.add.convert("any")(np.array([1.5, 2]), 1.0)) == [2.5, 3]
    module = spy.Module.load_from_file(device, FOLDER / "calls_modifiers.slang", options={"convert": "any"})
    out = np.zeros(2, np.int32)
    module.add(np.array([1.5, 2]), 1.0, _result=out)
    assert out.tolist() == [2, 3]
    with pytest.raises(ValueError, match="convert"):
        m.add.convert("maybe")


def test_unknown_option(device: Any) -> None:
    with pytest.raises(ValueError, match="unknown module option 'strict'"):
        spy.Module.load_from_file(device, FOLDER / "calls_modifiers.slang", options={"strict": True})
    with pytest.raises(ValueError, match="convert"):
        spy.Module.load_from_file(device, FOLDER / "calls_modifiers.slang", options={"convert": "perhaps"})


# --- append_to


def test_append_to(m: spy.Module, device: Any) -> None:
    out = tensor(device, 3)
    encoder = device.create_command_encoder()
    assert m.add.append_to(encoder, array(3), 10.0, _result=out) is None
    assert m.add(out, 100.0, _result=out, _append_to=encoder) is None
    assert plain(out) == [0, 1, 2]  # nothing has run
    device.submit_command_buffer(encoder.finish())
    assert plain(out) == [110, 111, 112]


def test_append_to_discards_results(m: spy.Module, device: Any) -> None:
    encoder = device.create_command_encoder()
    assert m.noop.append_to(encoder) is None
    assert m.add.append_to(encoder, tensor(device, 3), 1.0) is None
    device.submit_command_buffer(encoder.finish())
    device.wait()


def test_append_to_errors(m: spy.Module, device: Any) -> None:
    encoder = device.create_command_encoder()
    with pytest.raises(ValueError, match="Expected _append_to to be a CommandEncoder, got int"):
        m.add(1.0, 2.0, _append_to=3)
    with pytest.raises(ValueError, match="read back"):
        m.out_value(array(3), np.zeros(3, np.float32), _append_to=encoder)
    with pytest.raises(ValueError, match="read back"):
        m.out_value(1.0, spy.floatRef(), _append_to=encoder)
    assert m.add(1.0, 2.0, _append_to=None) == 3.0
    encoder.finish()
    with pytest.raises((ValueError, RuntimeError), match="finished"):
        m.add.append_to(encoder, tensor(device, 3), 1.0)
    assert m.add(1.0, 2.0) == 3.0


# --- thread counts and groups


@pytest.mark.parametrize("count", [1, 31, 256, 257, 5000])
def test_thread_count(m: spy.Module, device: Any, count: int) -> None:
    counter = tensor(device, 1, dtype=np.int32)
    m.count(counter, _thread_count=count)
    assert plain(counter) == [count]


@pytest.mark.parametrize("count", [0, -1, 2.5, "x", True])
def test_wrong_thread_count(m: spy.Module, device: Any, count: Any) -> None:
    with pytest.raises(ValueError, match="_thread_count"):
        m.count(tensor(device, 1, dtype=np.int32), _thread_count=count)


def test_thread_count_of_a_vectorised_call(m: spy.Module) -> None:
    with pytest.raises(ValueError, match="_thread_count") as caught:
        m.add(array(3), 1.0, _thread_count=4)
    assert "rank is 1" in str(caught.value)


def test_thread_group_size(m: spy.Module, device: Any) -> None:
    for size in ((32, 1, 1), (8, 8, 1), spy.uint3(64, 1, 1)):
        assert plain(m.add.thread_group_size(size)(array(300), 1.0)) == list(range(1, 301))
    for wrong in ((0, 1, 1), (1024, 2, 1), (32, 1)):
        with pytest.raises(ValueError, match="thread_group_size"):
            m.add.thread_group_size(wrong)


# --- nodes


def test_nodes_are_immutable_and_chain(m: spy.Module) -> None:
    node = m.add
    mapped = node.map((1,), (0,))
    assert mapped is not node and mapped.parent is node and mapped.root is node and node.name == "add"
    assert plain(mapped(array(2), array(3))) == [[0, 1], [1, 2], [2, 3]]
    assert plain(node(array(2), array(2))) == [0, 2]
    assert plain(mapped.map((0,), (1,))(array(2), array(3))) == [[0, 1, 2], [1, 2, 3]]
    chained = m.constants.constants({"SCALE": 1.0}).constants({"NEGATE": True}).map((0,)).return_type("numpy")
    assert chained.map((0,)).constants({"SCALE": 2.0})(array(2)).tolist() == [2, 0]


def test_equal_nodes_share_plans(m: spy.Module) -> None:
    m.add.map((0,))(array(2), 1.0)
    before = stage.builds
    plans = {id(m.add.map((0,)).debug_build_call_data(array(n), 1.0)) for n in (2, 3, 4)}
    assert len(plans) == 1 and stage.builds == before


def test_bwds_twice(m: spy.Module) -> None:
    with pytest.raises(ValueError, match="bwds"):
        m.add.bwds.bwds


def test_wrong_stream(m: spy.Module) -> None:
    with pytest.raises(ValueError, match="Expected a CUDA stream handle"):
        m.add.cuda_stream(spy.NativeHandle())


def test_explain(m: spy.Module) -> None:
    text = spy.explain(m.add, array(3), 2.0)
    for part in ("calls_modifiers::add", "ndarray<float> [3]", "in float", "_spy_main"):
        assert part in text
    view = m.add.debug_build_call_data(array(2, 3), 1.0)
    assert view.call_dimensionality == 2 and "_spy_main" in view.code


class Text(str):
    pass


class Text_(str, enum.Enum):
    numpy = "numpy"


class Number(enum.IntEnum):
    zero = 0
    three = 3


@pytest.mark.needs_kernels
def test_options_of_classes_of_the_users_own(device: Any, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Plans hold plain values, and are found on disk by them: np.str_ was kept as bytes, others could not be kept."""
    monkeypatch.setattr(cache, "_folder", tmp_path)
    x = array(3)
    expected = (x + 1).tolist()
    calls = {
        "result": lambda f: f(x, 1.0, _result=Text("numpy")),
        "enum": lambda f: f(x, 1.0, _result=Text_.numpy),
        "np.str_": lambda f: f(x, 1.0, _result=np.str_("numpy")),
        "return_type": lambda f: f.return_type(Text("numpy"))(x, 1.0),
        "map": lambda f: f.map((Number.zero,))(x, 1.0, _result="numpy"),
        "group": lambda f: f.call_group_shape((Number.three,))(x, 1.0, _result="numpy"),
    }
    for name, call in calls.items():
        for _ in range(2):  # the second module finds the plan on disk
            module = spy.Module.load_from_source(device, f"options_{len(name)}", "float add(float a, float b) { return a + b; }")
            got = call(module.add)
            assert isinstance(got, np.ndarray) and got.tolist() == expected, name
        cache_of(device).remove("plan")
