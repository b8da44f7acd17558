"""Names that users give their functions, types, globals and parameters never meet those of generated kernels."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from calls_support import array, plain, source, tensor
from tiers import gate

import slangpy as spy
from slangpy.compiler.modules.loaded import declared_names

pytestmark = [pytest.mark.needs_kernels, pytest.mark.elsewhere("test_globals", "test_raw_kernels", "Tensor")]

# Slang's own names that kernels use, names of our library, and those that kernels declare themselves.
CORE = ["vector", "matrix", "min", "max"]
LIBRARY = ["Tensor", "ContextND", "call_data", "thread_id", "TensorView"]
KERNEL = [
    "_call", "_i", "_c0", "_group", "_thread", "_begin", "_w_a0", "_spy_T_a0", "_spy_main", "_spy_function", "a0",
]  # fmt: skip
NAMES = CORE + LIBRARY + KERNEL
OF_EACH = ["Tensor", "_call"]
STRUCT = """
struct NAME : IDifferentiable
{
    float v;
    float2 w;
    [Differentiable] float scaled(float y) { return v * y + w.y; }
    static float twice(float x) { return 2 * x; }
}
NAME moved(NAME a, float b) { NAME r = a; r.v += b; return r; }
"""


def of_each(*names: str) -> list[Any]:
    """One name of each kind in every way to call, and the others at once in test_all_names; the nightly run has each alone."""
    return gate(names, lambda name: name not in NAMES or name in OF_EACH)


@pytest.mark.one
def test_all_names(device: spy.Device) -> None:
    """Whatever meets is a compile error, or reads another number than was passed."""
    callable_names = [n for n in NAMES if n not in CORE]
    text = "".join(
        f"[Differentiable] float {n}(float a, float b) {{ return a * b + {i}; }}\n"
        for i, n in enumerate(callable_names)
    )
    m = source(device, "names_all_functions", text)
    for i, name in enumerate(callable_names):
        x, y = tensor(device, 3).with_grads(), tensor(device, 3).with_grads()
        y.grad.copy_from_numpy(np.ones(3, np.float32))
        m[name].bwds(x, 4.0, _result=y)
        assert plain(x.grad) == [4, 4, 4]
        if i % 4 == 0:
            assert plain(m[name](tensor(device, 5), 2.0)) == [i + 2 * k for k in range(5)]
    text = "".join(f"uniform float {n};\n" for n in NAMES)
    terms = " + ".join(f"{i + 1} * {n}" for i, n in enumerate(NAMES))
    m = source(device, "names_all_globals", f"{text}float f(float b) {{ return b + {terms}; }}")
    values = {n: float(2 * i + 1) for i, n in enumerate(NAMES)}
    total = sum((i + 1) * values[n] for i, n in enumerate(NAMES))
    assert plain(m.f.set(values)(tensor(device, 2, 3))) == (total + np.arange(6).reshape(2, 3)).tolist()
    parameters = ", ".join(f"float {n}" for n in NAMES)
    m = source(device, "names_all_parameters", f"float f({parameters}) {{ return {terms}; }}")
    assert m.f(**values) == total
    values["min"] = array(3)
    at = NAMES.index("min")
    assert plain(m.f(**values, _result="numpy")) == [total + (at + 1) * (k - (2 * at + 1)) for k in range(3)]


@pytest.mark.one
def test_all_names_of_structs(device: spy.Device) -> None:
    """Each as the type of a parameter of one function, and with a method; test_structs has some alone."""
    names = [n for n in NAMES if n != "min"]
    text = "\n".join(STRUCT.replace("NAME", n).replace(" moved(", f" moved_{i}(") for i, n in enumerate(names))
    parameters = ", ".join(f"{n} v{i}" for i, n in enumerate(names))
    scaled = " + ".join(f"{i + 1} * v{i}.scaled(y)" for i in range(len(names)))
    outs = ", ".join(f"out {n} r{i}" for i, n in enumerate(names))
    moved = " ".join(f"r{i} = moved_{i}(v{i}, y + {i});" for i in range(len(names)))
    text += f"""
[Differentiable] float all_scaled({parameters}, float y) {{ return {scaled}; }}
void all_moved({parameters}, float y, {outs}) {{ {moved} }}"""
    m = source(device, "names_all_structs", text)
    vs = [tensor(device, 3).with_grads() for _ in names]
    y = tensor(device, 3).with_grads()
    y.grad.copy_from_numpy(np.ones(3, np.float32))
    given = [{"v": v, "w": [1, 2]} for v in vs]
    m.all_scaled.bwds(*given, 5.0, _result=y)
    assert [plain(v.grad) for v in vs] == [[5 * (i + 1)] * 3 for i in range(len(names))]
    results = [{"v": tensor(device, 3), "w": spy.Tensor.zeros(device, (3,), "float2")} for _ in names]
    m.all_moved(*given, 2.0, *results)
    assert [plain(r["v"]) for r in results] == [[2 + i, 3 + i, 4 + i] for i in range(len(names))]


@pytest.mark.parametrize("name", of_each(*NAMES))
def test_globals(device: spy.Device, name: str) -> None:
    m = source(
        device, f"names_global_{name}", f"uniform float {name};\nfloat f(float a, float b) {{ return a + b + {name}; }}"
    )
    assert plain(m.f(tensor(device, 5), 2.0)) == [2, 3, 4, 5, 6]
    assert plain(m.f.set({name: 10.0})(tensor(device, 2, 3), tensor(device, 3))) == [[10, 12, 14], [13, 15, 17]]


@pytest.mark.parametrize("name", of_each(*[n for n in NAMES if n not in CORE]))
def test_functions(device: spy.Device, name: str) -> None:
    m = source(device, f"names_function_{name}", f"[Differentiable] float {name}(float a, float b) {{ return a * b; }}")
    f = m[name]
    assert f(3.0, 2.0) == 6.0
    assert plain(f(tensor(device, 5), 2.0)) == [0, 2, 4, 6, 8]
    x, y = tensor(device, 3).with_grads(), tensor(device, 3).with_grads()
    y.grad.copy_from_numpy(np.ones(3, np.float32))
    f.bwds(x, 4.0, _result=y)
    assert plain(x.grad) == [4, 4, 4]


@pytest.mark.one
@pytest.mark.parametrize("name", of_each(*NAMES, "_result", "_this", "_type", "_append_to", "_thread_count"))
def test_parameters(device: spy.Device, name: str) -> None:
    m = source(device, f"names_parameter_{name}", f"float f(float {name}, float b) {{ return {name} * 10 + b; }}")
    assert m.f(1.0, 2.0) == 12.0
    assert plain(m.f(tensor(device, 3), 2.0)) == [2, 12, 22]
    assert plain(m.f(array(3), 2.0, _result="numpy")) == [2, 12, 22]
    if name in NAMES:
        assert plain(m.f(**{name: array(3), "b": 1.0})) == [1, 11, 21]


@pytest.mark.parametrize("name", of_each(*[n for n in NAMES if n != "min"]))
def test_structs(device: spy.Device, name: str) -> None:
    m = source(device, f"names_struct_{name}", STRUCT.replace("NAME", name))
    assert plain(m.moved({"v": 1.0, "w": [1, 2]}, 2.0)) == {"v": 3, "w": [1, 2]}
    assert plain(m.moved({"_type": name, "v": 1.0, "w": [1, 2]}, 2.0)) == {"v": 3, "w": [1, 2]}
    moved = m.moved({"v": array(3), "w": [1, 2]}, 2.0)
    assert plain(m.moved(moved, 1.0, _result="numpy")["v"]) == [3, 4, 5]
    struct = m[name]
    assert plain(struct(1.0, [2, 3])) == {"v": 1, "w": [2, 3]}
    assert plain(struct.scaled(moved, 10.0)) == [22, 32, 42]
    assert plain(struct.twice(array(3))) == [0, 2, 4]
    v, y = tensor(device, 3).with_grads(), tensor(device, 3).with_grads()
    y.grad.copy_from_numpy(np.ones(3, np.float32))
    struct.scaled.bwds({"v": v, "w": [1, 2]}, 5.0, _result=y)
    assert plain(v.grad) == [5, 5, 5]


def test_raw_kernels(device: spy.Device) -> None:
    text = """
struct _spy_id { float v; }
void fill(uint3 dispatchThreadID, float fill, _spy_id s, RWTensor<float,1> o)
{
    if (dispatchThreadID.x < o.shape[0]) o[dispatchThreadID.x] = fill + s.v;
}
"""
    m = source(device, "names_raw", "import slangpy;" + text)
    out = spy.Tensor.zeros(device, (5,), "float")
    m.fill.dispatch((5, 1, 1), fill=2.0, s={"v": 0.5}, o=out)
    assert plain(out) == [2.5] * 5


@pytest.mark.one
@pytest.mark.parametrize("name", ["CallShapeInfo", "IAtomicAddable"])
def test_documented_types_cannot_be_declared_again(device: spy.Device, name: str) -> None:
    text = f"struct {name} {{ float v; }};"
    m = source(device, f"names_twice_{name}", f"{text}\nfloat f({name} a) {{ return a.v; }}")
    with pytest.raises(spy.ResolveException, match=f"'{name}' is declared by the module and by slangpy"):
        m.f({"v": 1.0})
    m = source(
        device, f"names_inside_{name}", f"namespace mine {{ {text} }}\nfloat f(mine::{name} a) {{ return a.v; }}"
    )
    assert m.f({"v": 1.0}) == 1.0


@cache
def library_names() -> list[str]:
    """Every name that our library declares outside of types. Those that begin with `_spy_` nobody else has."""
    device = spy.Device(type=spy.DeviceType.null, compiler_options={}, enable_hot_reload=False)
    module = spy.Module.load_from_source(device, "names_of_library", "import slangpy; float f(float x) { return x; }")
    library = [module.session.load_module(name) for name in ("slangpy", "slangpy_core")]
    names = sorted({name for part in library for name in declared_names(part)})
    device.close()
    inner = [n for n in names if n.startswith("_") and not n.startswith("_spy_")]
    assert inner == ["_nd_", "_nd_Attribute"] and len(names) > 100  # one attribute, which the rewriter writes
    # What kernels named before they had names of their own, and what users might still find in old texts.
    return [n for n in names if not n.startswith("_")] + [
        "TensorStorage",
        "DevicePtr",
        "_Gradient",
        "_PairParts",
        "_index",
    ]


def test_only_names_of_the_text_are_listed(device: spy.Device) -> None:
    """Slang adds declarations of its own, whose names nobody can write, where derivatives are made."""
    text = """
struct Pair : IDifferentiable { float a; [Differentiable] float times(float y) { return a * y; } }
[Differentiable] float square(float x) { return x * x; }
[Differentiable] T cube<T : __BuiltinFloatingPointType>(T x) { return x * x * x; }
"""
    m = source(device, "names_listed", text)
    x = spy.diffPair(3.0)
    m.square.bwds(x, spy.diffPair(0.0, 1.0))
    assert x.grad == 6.0
    assert [name for name in dir(m) if "$" in name] == [] and {"Pair", "square", "cube"} <= set(dir(m))
    assert sorted(declared_names(m._compiled.main)) == ["Pair", "cube", "square"]
    with pytest.raises(AttributeError, match="no function or type named '__syn_BackwardDiffMinimalContextType'$"):
        m["__syn_BackwardDiffMinimalContextType"]
    with pytest.raises(AttributeError, match="did you mean square"):
        m.sqare


def test_the_library_has_the_same_names_precompiled() -> None:
    device = spy.Device(type=spy.DeviceType.null, compiler_options={}, enable_hot_reload=False)
    text = device.create_slang_session().load_module("slangpy_core")
    blob = text.serialize()
    precompiled = device.create_slang_session().load_module_from_blob("slangpy_core", text.path, blob)
    assert any("$" in child.name for child in precompiled.module_decl.children)  # what makes the difference
    assert set(declared_names(text)) == set(declared_names(precompiled)) > {"Tensor", "TensorView"}
    device.close()


DECLARED = {
    "struct": "struct NAME { float v; };",
    "generic struct": "struct NAME<T> { T v; };",
    "generic struct with a size": "struct NAME<T, let N : int> { T v[N]; };",
    "function": "float NAME(float a, float b) { return a - b; }",
    "generic function": "T NAME<T>(T a, T b) { return a; }",
    "uniform": "uniform float NAME;",
    "constant": "static const float NAME = 3;",
    "namespace": "namespace NAME { float inner(float a) { return a; } }",
    "interface": "interface NAME { float inner(); };",
    "enum": "enum NAME { one, two };",
    "alias": "typealias NAME = float;",
}
KINDS_IN_GATE = ("generic struct with a size", "function", "uniform", "namespace", "alias")
"""What is looked up in each way: as a type with arguments, a call, a value, and what may stand for any of them."""
CALLS = """
struct Held : IDifferentiable { float p; float3 q; [Differentiable] float dot(float y) { return p * y + q.x; } }
[Differentiable] float product(float a, float b) { return a * b; }
float of_list(Held u, float2 w[2]) { return u.p + u.q.y + w[1].x; }
void copied(float a, out float b) { b = a; }
"""


@pytest.mark.one
@pytest.mark.parametrize("kind", gate(DECLARED, lambda kind: kind in KINDS_IN_GATE))
def test_every_name_of_the_library(device: spy.Device, kind: str) -> None:
    """All at once, as one kind of thing after the other, in a module that makes every kind of call."""
    names = library_names()
    text = "\n".join(DECLARED[kind].replace("NAME", name) for name in names)
    m = source(device, f"names_all_{kind.replace(' ', '_')}", text + CALLS)
    x, y = tensor(device, 5).with_grads(), tensor(device, 5).with_grads()
    assert plain(m.product(x, 2.0)) == [0, 2, 4, 6, 8]
    assert plain(m.product(tensor(device, 2, 3), tensor(device, 3))) == [[0, 1, 4], [0, 4, 10]]
    y.grad.copy_from_numpy(np.ones(5, np.float32))
    m.product.bwds(x, 3.0, _result=y)
    assert plain(x.grad) == [3] * 5
    weight = tensor(device, 1).with_grads()
    m.product.bwds(x, weight, _result=y)  # a sum over the call
    assert plain(weight.grad) == [10]
    held: dict[str, Any] = {"p": tensor(device, 3), "q": [1, 2, 3]}
    assert plain(m.of_list(held, [[1, 2], [3, 4]])) == [5, 6, 7]
    assert plain(m.Held.dot(held, 2.0)) == [1, 3, 5]
    pair = spy.diffPair(2.0)
    m.product.bwds(pair, 4.0, spy.diffPair(0.0, 1.0))
    assert pair.grad == 4.0
    out = tensor(device, 5)
    m.copied(x, out)
    assert plain(out) == [0, 1, 2, 3, 4]


@pytest.mark.one
@pytest.mark.parametrize("name", ["TensorStorage", "DevicePtr", "_Gradient", "_PairParts", "ContextND", "Box"])
def test_generic_structs_as_parameters(device: spy.Device, name: str) -> None:
    text = f"struct {name}<T> {{ T v; }};\nfloat f({name}<float> a, float b) {{ return a.v * b; }}"
    m = source(device, f"names_generic_{name}", text)
    assert plain(m.f({"v": 2.0}, tensor(device, 3))) == [0, 2, 4]
    assert plain(m.f({"v": tensor(device, 3)}, tensor(device, 3))) == [0, 1, 4]


@pytest.mark.one
@pytest.mark.parametrize("name", ["Tensor", "RWTensor", "ITensor", "PrimalTensor"])
def test_a_generic_like_one_of_the_library_is_refused_by_name(device: spy.Device, name: str) -> None:
    text = f"struct {name}<T, let D : int> {{ T v; }};\nfloat f({name}<float, 1> a, float b) {{ return a.v * b; }}"
    m = source(device, f"names_same_{name}", text)
    with pytest.raises(spy.ResolveException, match=f"'{name}' is declared by the module and by slangpy"):
        m.f({"v": 2.0}, tensor(device, 3))


@pytest.mark.one
def test_names_beyond_ascii(device: spy.Device) -> None:
    text = "float größe(float ö) { return ö * 2; }\nnamespace nö { float f(float x) { return x * 3; } }\n"
    m = source(device, "names_beyond", text + "struct Ö { float ä; float 值() { return ä + 1; } }\nfloat of(Ö s) { return s.ä; }")
    assert (m.größe(ö=2.0), m["größe"](2.0), m["nö::f"](2.0), m.of({"ä": 3.0})) == (4.0, 4.0, 6.0, 3.0)
    assert (m.Ö(1.0), m.Ö.值({"ä": 3.0})) == ({"ä": 1.0}, 4.0)
    assert m.find_function("grö\ufeffße") is None and m.find_struct("\ufeff") is None


@pytest.mark.one
def test_parameters_named_like_those_of_the_methods(device: spy.Device) -> None:
    names = ["self", "encoder", "function", "args", "kwargs", "options", "this_", "cls"]
    text = f"[Differentiable] float f({', '.join('float ' + n for n in names)}) {{ return self * 2 + encoder; }}\n"
    text += "struct S { float a; __init(float self, float cls) { a = self + cls; } float m(float self) { return a * self; } }\n"
    text += "void raw(uint3 dispatchThreadID, float self, RWStructuredBuffer<float> o) { if (dispatchThreadID.x == 0) o[0] = self; }"
    m = source(device, "names_of_methods", text)
    given: dict[str, Any] = dict.fromkeys(names, 3.0)
    assert [call(**given) for call in (m.f, m.f.call, m.f.map(**dict.fromkeys(names, ())))] == [9.0] * 3
    assert m.f.prepare(**given)() == 9.0
    out, encoder = spy.Tensor.zeros(device, (1,), "float"), device.create_command_encoder()
    m.f.append_to(encoder, **given, _result=out)
    device.submit_command_buffer(encoder.finish())
    assert out.to_numpy().tolist() == [9.0]
    assert "self" in spy.explain(m.f, **given) and "self" in m.f.explain(**given)
    assert "_call" in m.f.debug_build_call_data(**given).code
    given["self"] = pair = spy.diffPair(3.0)
    m.f.bwds(**given, _result=spy.diffPair(0.0, 1.0))
    assert pair.grad == 2.0
    assert (m.S(self=1.0, cls=2.0), m.S.m({"a": 2.0}, self=4.0)) == ({"a": 3.0}, 8.0)
    made = spy.InstanceTensor(m.S, (2,))
    made.construct(self=1.0, cls=2.0)
    assert made.m(self=2.0).to_numpy().tolist() == [6.0, 6.0]
    m.raw.dispatch(1, self=5.0, o=out)
    assert out.to_numpy().tolist() == [5.0]
