"""`AtomicTensor.add` for every element type; `load_once`, `load_uniform` and `sample` with their gradients."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from gradcheck import check, same, seeded, tensor, with_grad
from tiers import gate

import slangpy as spy

pytestmark = [
    pytest.mark.needs_kernels,
    pytest.mark.elsewhere(
        "test_add", "int64_t", "test_add_struct", "half", "test_load_uniform_of_vectors_and_structs", "test_own_addition_by_address"
    ),
]
TYPES = (
    "int", "uint", "int64_t", "uint64_t", "half", "half2", "half3", "half4", "float", "float3", "double", "double2",
    "int3", "float2x2", "half3x2", "double2x2", "float[3]", "int64_t[2]", "half[3]", "uint2[2]",
)  # fmt: skip
SCALARS = ("half", "float", "double")
SOURCE = "\n".join([
    "struct Part { half h; half2 pair; float3 v; };",
    "struct Whole { Part parts[2]; double d; int64_t i; uint2 u; };",
    *(f"void add_{i}(int i, AtomicTensor<{t}, 1> x, {t} v) {{ x.add(i % 2, v); }}" for i, t in enumerate((*TYPES, "Whole"))),
    f"void add_all(int i, {', '.join(f'AtomicTensor<{t}, 1> x{k}' for k, t in enumerate(TYPES))}, "
    f"{', '.join(f'{t} v{k}' for k, t in enumerate(TYPES))})",
    f"{{ {' '.join(f'x{k}.add(i % 2, v{k});' for k in range(len(TYPES)))} }}",
    *(
        f"""
[Differentiable] {t} once_{i}(int i, DiffTensor<{t}, 1> x) {{ return x.load_once(i) * x.load_once(i + 3); }}
[Differentiable] {t} once_interface_{i}(int i, ITensor<{t}, 1> x) {{ return x.load_once(i) * x.load_once(i + 3); }}
[Differentiable] {t} uniform_{i}(int i, DiffTensor<{t}, 1> x) {{ return x.load_uniform(1) * x.load_uniform(1) * {t}(i); }}
[Differentiable] {t} sampled_{i}(float2 uv, ITensor<{t}, 2> x) {{ return x.sample(uv); }}
[Differentiable] vector<{t}, 2> sampled2_{i}(float2 uv, DiffTensor<vector<{t}, 2>, 2> x) {{ return x.sample(uv); }}"""
        for i, t in enumerate(SCALARS)
    ),
    "[Differentiable] float3 uniform_vector(int i, ITensor<float3, 1> x) { return x.load_uniform(0) * i; }",
    "struct Ray : IDifferentiable { float t; float2 uv; };",
    "[Differentiable] float uniform_struct(int i, ITensor<Ray, 1> x) { Ray r = x.load_uniform(0); return r.t * r.uv.y * i; }",
    "[Differentiable] void uniform_in_place(int i, RWDiffTensor<float, 1> x) { x[i + 1] = x.load_uniform(0) * i; }",
])  # fmt: skip


@cache
def load(device: Any) -> Any:
    return spy.Module.load_from_source(device, "atomic_additions", SOURCE)


@pytest.fixture
def m(device: Any) -> Any:
    return load(device)


def test_add(device, m):
    """All types in one kernel; 64-bit integers and structs have others of their own below."""
    tensors = [spy.Tensor.zeros(device, (2,), name) for name in TYPES]
    ones = [spy.Tensor.full(device, (1,), 1, name) for name in TYPES]
    m.add_all(spy.grid((1001,)), *tensors, *ones)
    for name, x in zip(TYPES, tensors, strict=True):
        got = x.to_numpy()
        assert (got[0] == 501).all() and (got[1] == 500).all(), name


@pytest.mark.parametrize("name", ["int64_t", "uint64_t"])
def test_add_carries_into_the_high_word(device, m, name):
    dtype = {"int64_t": np.int64, "uint64_t": np.uint64}[name]
    x = spy.Tensor.from_numpy(device, np.array([0, 2**40], dtype))
    m[f"add_{TYPES.index(name)}"](spy.grid((1000,)), x, spy.Tensor.from_numpy(device, np.array([2**31], dtype)))
    assert x.to_numpy().tolist() == [500 * 2**31, 2**40 + 500 * 2**31]


def test_add_struct(device, m):
    x, v = spy.Tensor.zeros(device, (2,), m.Whole), spy.Tensor.zeros(device, (1,), m.Whole)
    cursor = v.cursor()
    part = {"h": 1.0, "pair": (1.0, 2.0), "v": (1.0, 2.0, 3.0)}
    cursor[0].write({"parts": [part, part], "d": 1.5, "i": -(2**40), "u": (1, 2)})
    cursor.apply()
    m[f"add_{len(TYPES)}"](spy.grid((1000,)), x, v)
    got = x.cursor()[1].read()
    for one in got["parts"]:
        assert [one["h"], *one["pair"], *one["v"]] == [500, 500, 1000, 500, 1000, 1500]
    assert (got["d"], got["i"], [*got["u"]]) == (750, -500 * 2**40, [500, 1000])


@pytest.mark.parametrize(
    ("name", "form"),
    gate(
        [(name, form) for name in SCALARS for form in ("once", "once_interface")],
        lambda case: case in (("half", "once"), ("float", "once_interface"), ("double", "once")),
    ),
)
def test_load_once(device, m, name, form):
    x, y = with_grad(device, [1, 2, 3, 4, 5, 6], name), seeded(device, [1, 2, 3], name)
    x.grad.copy_from_numpy(np.full(6, 100, x.grad.to_numpy().dtype))
    m[f"{form}_{SCALARS.index(name)}"].bwds(spy.grid((3,)), x, _result=y)
    same(x.grad, [4, 10, 18, 1, 4, 9])  # stored, not added


@pytest.mark.parametrize("count", [5, 64, 300])
@pytest.mark.parametrize("name", SCALARS)
def test_load_uniform(device, m, name, count):
    x, seed = with_grad(device, [7, 2], name), np.random.default_rng(3).integers(0, 3, count) / 16
    m[f"uniform_{SCALARS.index(name)}"].bwds(spy.grid((count,)), x, _result=seeded(device, seed, name))
    total = float(2 * 2 * np.sum(np.arange(count) * seed))
    check(x.grad, [0, total], 1e-3 if name == "half" else 1e-6)


def test_load_uniform_of_vectors_and_structs(device, m):
    x, seed = with_grad(device, [[1, 2, 3]], element="float3"), np.random.default_rng(3).random((300, 3))
    m.uniform_vector.bwds(spy.grid((300,)), x, _result=seeded(device, seed, element="float3"))
    check(x.grad, [np.arange(300) @ seed])
    rays = spy.Tensor.zeros(device, (1,), m.Ray)
    cursor = rays.cursor()
    cursor[0].write({"t": 2.0, "uv": (3.0, 5.0)})
    cursor.apply()
    rays = rays.with_grads()
    m.uniform_struct.bwds(spy.grid((100,)), rays, _result=seeded(device, np.ones(100)))
    got = rays.grad.cursor()[0].read()
    assert [got["t"], *got["uv"]] == [5 * 4950, 0, 2 * 4950]


def test_load_uniform_in_place(device, m):
    x = tensor(device, [3.0] + [0] * 40)
    x = x.with_grads(tensor(device, [0.0] + [1] * 40), tensor(device, [0.0] * 41))
    m.uniform_in_place.bwds(spy.grid((40,)), x)
    same(x.grad_out, [780.0] + [0] * 40)


@pytest.mark.parametrize("name", gate(SCALARS, lambda name: name != "double"))
def test_sample(device, m, name):
    """Weights of the four neighbours; the last row and column are clamped."""
    image = np.arange(12).reshape(3, 4)
    uv = np.array([[0.5, 0.5], [0.1, 0.2], [0.95, 0.9], [0.0, 0.0]], np.float32)
    x, seed = with_grad(device, image, name), np.array([1, 2, 4, 8])
    uvs = spy.Tensor.from_numpy(device, uv, target_slang_dtype="float2")
    k = SCALARS.index(name)
    m[f"sampled_{k}"].bwds(uvs, x, _result=seeded(device, seed, name))
    expected = np.zeros((3, 4))
    for (u, v), s in zip(uv.astype(np.float64), seed, strict=True):
        px, py = u * 4, v * 3
        for dy, wy in ((0, 1 - py % 1), (1, py % 1)):
            for dx, wx in ((0, 1 - px % 1), (1, px % 1)):
                expected[min(int(py) + dy, 2), min(int(px) + dx, 3)] += s * wy * wx
    check(x.grad, expected, 2e-3 if name == "half" else 1e-6)
    assert float(m[f"sampled_{k}"](spy.float2(0.5, 0.5), x)) == 8
    both = with_grad(device, np.stack([image, 10 * image], -1), name, f"{name}2")
    m[f"sampled2_{k}"].bwds(uvs, both, _result=seeded(device, np.stack([seed, -seed], -1), name, f"{name}2"))
    check(both.grad.to_numpy()[..., 1], -expected, 2e-3 if name == "half" else 1e-6)


OWN = """
struct NAME CONFORMS
{
    float v; int w; POINTER
    static void atomicAdd(RWByteAddressBuffer buf, uint addr, NAME value)
    {
        buf.InterlockedAddF32(addr, value.v);
        if (value.w > 0) { buf.InterlockedAdd(addr + 4, 2 * value.w); }
    }
};
struct OuterNAME { NAME inner; float2 z; };
"""
BY_POINTER = """
    static void atomicAdd(This* buf, uint element, This value) { float.atomicAdd(&buf[element].v, 0, value.v * 10); }
"""
OWN_FORMS = {
    "Plain": ("", ""), "Conforms": (": IAtomicAddable", ""), "Both": ("", BY_POINTER),
    "BothConforms": (": IAtomicAddable", BY_POINTER),
}  # fmt: skip


def test_own_addition_by_address(device):
    """A struct may add through RWByteAddressBuffer; a form that takes a pointer goes first."""
    source = "import slangpy;" + "".join(
        OWN.replace("NAME", name).replace("CONFORMS", conforms).replace("POINTER", pointer)
        for name, (conforms, pointer) in OWN_FORMS.items()
    )
    numbered = list(enumerate(OWN_FORMS))
    values = ", ".join(f"{name} v{i}" for i, name in numbered)
    tensors = ", ".join(f"AtomicTensor<{name}, 1> x{i}" for i, name in numbered)
    outers = ", ".join(f"AtomicTensor<Outer{name}, 1> x{i}" for i, name in numbered)
    added = " ".join(f"x{i}.add(0, v{i});" for i, _ in numbered)
    nested = " ".join(
        f"Outer{name} o{i}; o{i}.inner = v{i}; o{i}.z = float2(1, 2); x{i}.add(1, o{i});" for i, name in numbered
    )
    source += f"void add_own(int i, {tensors}, {values}) {{ {added} }}\n"
    source += f"void add_outer(int i, {outers}, {values}) {{ {nested} }}"
    m = spy.Module.load_from_source(device, "own_addition", source)
    given = [{"v": 1.0, "w": 3}] * len(OWN_FORMS)
    own = [spy.Tensor.zeros(device, (2,), m[name]) for name in OWN_FORMS]
    m.add_own(spy.grid((10,)), *own, *given)
    outer = [spy.Tensor.zeros(device, (2,), m[f"Outer{name}"]) for name in OWN_FORMS]
    m.add_outer(spy.grid((10,)), *outer, *given)
    for (name, (_, pointer)), x, y in zip(OWN_FORMS.items(), own, outer, strict=True):
        expected = {"v": 100.0, "w": 0} if pointer else {"v": 10.0, "w": 60}
        assert x.cursor()[0].read() == expected, name
        read = y.cursor()[1].read()
        assert read["inner"] == expected and read["z"] == spy.float2(10, 20), name


def test_gradients_added_by_address(device):
    """Named G, as the generic parameters of the library are."""
    m = spy.Module.load_from_source(
        device, "gradients_by_address",
        """
        import slangpy;
        struct G : IDifferentiable
        {
            float3 o; float k;
            static void atomicAdd(RWByteAddressBuffer buf, uint addr, G value)
            {
                float3.atomicAdd(buf, addr, value.o);
                float before;
                buf.InterlockedAddF32(addr + 12, value.k + 1, before);
            }
        };
        [Differentiable] float f(int i, ITensor<G, 1> x) { G g = x[i % 2]; return g.o.x * g.k; }
        """,
    )  # fmt: skip
    x = spy.Tensor.zeros(device, (2,), m.G)
    x.copy_from_numpy(np.array([1, 2, 3, 4, 5, 6, 7, 8], np.float32).view(np.uint8))
    x, result = x.with_grads(), spy.Tensor.zeros(device, (10,), "float").with_grads()
    result.grad.copy_from_numpy(np.ones(10, np.float32))
    m.f.bwds(spy.grid((10,)), x, _result=result)
    read = [x.grad.cursor()[i].read() for i in range(2)]
    assert [(g["o"].x, g["o"].y, g["k"]) for g in read] == [(20, 0, 10), (40, 0, 30)]
