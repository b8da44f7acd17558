"""Every type of parameter from every accepted form, and what is refused."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

import torch

from slangpy.errors import SlangWarning

LAYOUT = """
enum Mode { One = 1, Two = 2 }
enum SmallEnum8 : uint8_t { P, Q, R }
struct In { half h; float3 v; bool b; bool2 b2; double d; int8_t c; uint16_t s; half3 hv; float2x3 m; int64_t q; };
struct Nest { float a; In i[2]; TensorView<float> t; uint8_t k; DiffTensorView dt; Mode m; SmallEnum8 e; };
[AutoPyBindCUDA] [CudaKernel] void back(Nest n, TensorView<double> y)
{
    uint at = 0;
    y[at++] = n.a;
    for (int j = 0; j < 2; j++)
    {
        y[at++] = n.i[j].h;
        for (int k = 0; k < 3; k++) y[at++] = n.i[j].v[k];
        y[at++] = n.i[j].b ? 1 : 0;
        y[at++] = n.i[j].b2.x ? 1 : 0;
        y[at++] = n.i[j].b2.y ? 1 : 0;
        y[at++] = n.i[j].d;
        y[at++] = n.i[j].c;
        y[at++] = n.i[j].s;
        for (int k = 0; k < 3; k++) y[at++] = n.i[j].hv[k];
        for (int r = 0; r < 2; r++) for (int c = 0; c < 3; c++) y[at++] = n.i[j].m[r][c];
        y[at++] = double(n.i[j].q);
    }
    y[at++] = n.t[0]; y[at++] = n.k; y[at++] = n.dt.primal[0]; y[at++] = int(n.m); y[at++] = int(n.e);
}
"""


def inner(base: float) -> dict[str, Any]:
    return {
        "h": base + 0.5, "v": (base, base + 1, base + 2), "b": True, "b2": (False, True), "d": base + 0.1, "c": -3,
        "s": 65535, "hv": [base, base + 1, base + 2], "m": ((1, 2, 3), (4, 5, base)), "q": -(2**40),
    }  # fmt: skip


def flat(value: Any) -> list[float]:
    if isinstance(value, dict):
        return [x for item in value.values() for x in flat(item)]
    return [x for item in value for x in flat(item)] if isinstance(value, (tuple, list)) else [float(value)]


def test_layout_of_nested_structs(load: Any, place: str) -> None:
    m = load(LAYOUT)
    from slangpy.pytorch.raw.types import KernelType

    nest: KernelType = m.back._record.parameters[0].type
    assert [offset for _, _, offset in nest.fields] == [0, 8, 168, 224, 232, 344, 348] and nest.size == 352
    array = nest.fields[1][1].element
    assert array is not None and [offset for _, _, offset in array.fields] == [0, 4, 16, 17, 24, 32, 34, 36, 44, 72]
    assert array.size == 80
    t = torch.tensor([9.0], device=place)
    y = torch.zeros(64, dtype=torch.float64, device=place)
    given = {"a": 0.25, "i": (inner(1), inner(10)), "t": t, "k": 200, "dt": t, "m": m.Mode.Two, "e": 2}
    m.back(n=given, y=y).launchRaw(1, 1)
    expected = [0.25, *flat(inner(1)), *flat(inner(10)), 9, 200, 9, 2, 2]
    assert y.tolist()[: len(expected)] == expected


STRUCTS = """
struct AB { TensorView<float> A; TensorView<float> B; }
[AutoPyBindCUDA] [CudaKernel] void product(AB s, TensorView<float> y)
{
    uint2 i = cudaThreadIdx().xy;
    if (i.x < y.size(0) && i.y < y.size(1)) y[i] = s.A[i] * s.B[i];
}
struct Words { float lambda; int n; }
struct Nothing {}
[AutoPyBindCUDA] [CudaKernel] void word(Words w, Nothing nothing, float lambda, TensorView<float> y)
{ y[0] = w.lambda + w.n + lambda; }
[AutoPyBindCUDA] [CudaKernel] void arrays(DiffTensorView d[2], AB s[2], int2 pairs[2], TensorView<float> y)
{ y[0] = d[0].primal[0] * d[1].primal[1] + s[1].A[0, 0] + s[0].B[1, 1]; y[1] = pairs[1].x * 10 + pairs[0].y; }
[AutoPyBindCUDA] [CudaKernel] void maybe(Optional<int> o, Tuple<float, int> t, float* p, TensorView<float> y)
{ y[0] = o.hasValue ? o.value : -1; y[1] = t._0 * t._1; y[2] = p[1]; }
"""


@dataclasses.dataclass
class Pair:
    A: Any
    B: Any


def test_structs_in_all_forms(load: Any, place: str) -> None:
    m = load(STRUCTS)
    a = torch.tensor([[1.0, 2], [3, 4]], device=place)
    b = a * 10
    for form in ((a, b), {"A": a, "B": b}, m.AB(a, b), m.AB(B=b, A=a), Pair(a, b)):
        y = torch.zeros(2, 2, device=place)
        m.product(s=form, y=y).launchRaw((2, 2, 1), (1, 1, 1))
        assert y.tolist() == [[10, 40], [90, 160]]
    y = torch.zeros(2, 2, device=place)
    for wrong, error, text in (
        ((a,), TypeError, r"product: s: AB has 2 fields \(A, B\), got 1 values"),
        ({"A": a}, TypeError, r"lacks a value for 'B'"),
        ({"A": a, "B": b, "C": b}, TypeError, r"no field 'C'"),
        ([a, b], ValueError, r"expected a AB"),
        (3, ValueError, r"expected a AB"),
    ):
        with pytest.raises(error, match=text):
            m.product(s=wrong, y=y)


def test_keywords_of_python(load: Any, place: str) -> None:
    m = load(STRUCTS)
    y = torch.zeros(1, device=place)
    assert m.Words._fields == ("lambda_", "n")
    m.word(w=m.Words(1.5, 2), nothing=(), y=y, **{"lambda": 4}).launchRaw(1, 1)
    assert y.item() == 7.5
    m.word(w={"lambda": 1.5, "n": 3}, lambda_=4, y=y).launchRaw(1, 1)
    assert y.item() == 8.5


def test_arrays_at_top_level(load: Any, place: str) -> None:
    m = load(STRUCTS)
    t = torch.tensor([2.0, 3.0], device=place)
    q = torch.tensor([[1.0, 2], [3, 4]], device=place)
    y = torch.zeros(2, device=place)
    m.arrays(d=[t, (t, None)], s=((q, q), {"A": q + 10, "B": q}), pairs=((1, 2), (3, 4)), y=y).launchRaw(1, 1)
    assert y.tolist() == [6 + 11 + 4, 32]
    m.arrays([t, t], [(q, q), (q, q)], np.array([[1, 5], [3, 4]]), y).launchRaw(1, 1)
    assert y[1].item() == 35
    with pytest.raises(ValueError, match=r"arrays: d: expected 2 values"):
        m.arrays(d=[t], s=((q, q), (q, q)), pairs=((1, 2), (3, 4)), y=y)


def test_optional_tuple_pointer(load: Any, place: str) -> None:
    m = load(STRUCTS)
    t, y = torch.tensor([2.0, 3.0], device=place), torch.zeros(3, device=place)
    for given, found in ((None, -1), (5, 5), ((6, True), 6), ((6, False), -1)):
        m.maybe(o=given, t=(1.5, 4), p=t, y=y).launchRaw(1, 1)
        assert y.tolist() == [found, 6, 3]
    m.maybe(o=None, t=[1, 2], p=t.data_ptr(), y=y).launchRaw(1, 1)
    assert y.tolist() == [-1, 2, 3]
    with pytest.raises(RuntimeError, match="contiguous"):
        m.maybe(o=None, t=(1, 2), p=torch.zeros(4, 4, device=place)[:, 0], y=y)


TUPLES = """
struct V { float a; float2 b; }
struct M { float a; float4 v; Tuple<float, float2> t; }
[AutoPyBindCUDA] [CudaKernel] void tuples(uint8_t u, Tuple<float, V> p, M m, Optional<Tuple<float, float4>> o, Tuple<bool, bool4, half> q,
    Tuple<int16_t, vector<int16_t, 3>, uint8_t2> r, Tuple<float, float2x2, float3x3> s, Tuple<float, float2>[2] a, Tuple<M, double2> n,
    Tuple<int, TensorView<float>, Optional<float3>> w, uint8_t last, TensorView<double> y)
{
    y[0] = u; y[1] = p._0; y[2] = p._1.a; y[3] = p._1.b.y; y[4] = m.v.w; y[5] = m.t._1.y; y[6] = o.value._1.w; y[7] = q._1.w ? 1 : 0;
    y[8] = q._2; y[9] = r._1.z; y[10] = r._2.y; y[11] = s._1[1][0]; y[12] = s._2[2][1]; y[13] = a[1]._1.x; y[14] = n._0.t._1.x;
    y[15] = n._1.y; y[16] = w._1[1]; y[17] = w._2.value.z; y[18] = last;
}
[AutoPyBindCUDA] [CudaKernel] void odd(Tuple<half, half3> t, TensorView<float> y) { y[0] = t._1.z; }
"""


def test_tuples_lie_as_cuda_lays_them_out(load: Any, place: str) -> None:
    """Slang leaves what is in a tuple as it is, where it makes arrays of the vectors in structs."""
    with pytest.warns(SlangWarning, match="odd: its parameter 't'"):
        m = load(f"{TUPLES}\n// on {place}\n")  # a module that is loaded already does not warn again
    y = torch.zeros(19, dtype=torch.float64, device=place)
    t = torch.tensor([7.0, 8.0], device=place)
    s = (1, ((1, 2), (3, 4)), ((1, 2, 3), (4, 5, 6), (7, 9, 8)))
    m.tuples(1, (2, (3, (4, 5))), (6, (7, 8, 9, 10), (11, (12, 13))), (14, (15, 16, 17, 18)), (True, (0, 0, 0, 1), 0.5),
             (19, (20, 21, -22), (23, 24)), s, ((0, (1, 2)), (3, (25, 5))), ((1, (2, 3, 4, 5), (6, (26, 8))), (9, 27)),
             (1, t, (1, 2, 28)), 29, y).launchRaw(1, 1)  # fmt: skip
    assert y.tolist() == [1, 2, 3, 5, 10, 13, 18, 1, 0.5, -22, 24, 3, 9, 25, 26, 27, 8, 28, 29]


SCALARS = """
#define SCALAR(T) [AutoPyBindCUDA] [CudaKernel] void s_##T(T v, TensorView<T> y) { y[0] = v; }
SCALAR(int8_t) SCALAR(uint8_t) SCALAR(int16_t) SCALAR(uint16_t) SCALAR(int) SCALAR(uint) SCALAR(int64_t) SCALAR(uint64_t)
SCALAR(half) SCALAR(float) SCALAR(double) SCALAR(bool)
[AutoPyBindCUDA] [CudaKernel] void defaults(TensorView<float> y, float a = 2.5, int b = 3) { y[0] = a; y[1] = b; }
[AutoPyBindCUDA] [CudaKernel] void vectors(float3 v, int2 n, bool2 b, TensorView<float> y)
{ y[0] = v.x; y[1] = v.y; y[2] = v.z; y[3] = n.x; y[4] = n.y; y[5] = b.x ? 1 : 0; y[6] = b.y ? 1 : 0; }
#define MATRIX(R, C) [AutoPyBindCUDA] [CudaKernel] void m_##R##C(float##R##x##C m, TensorView<float> y) \\
{ for (int i = 0; i < R; i++) for (int j = 0; j < C; j++) y[i * C + j] = m[i][j]; }
MATRIX(3, 3) MATRIX(2, 3) MATRIX(3, 2) MATRIX(4, 4)
"""
INTEGERS = {"int8_t": torch.int8, "uint8_t": torch.uint8, "int16_t": torch.int16, "uint16_t": torch.uint16,
            "int": torch.int32, "uint": torch.uint32, "int64_t": torch.int64, "uint64_t": torch.uint64}  # fmt: skip


@pytest.mark.parametrize("name", INTEGERS)
def test_integers(load: Any, place: str, name: str) -> None:
    kernel = getattr(load(SCALARS), f"s_{name}")
    info = torch.iinfo(INTEGERS[name])
    for value in (0, 1, info.min, info.max, np.int8(7), torch.tensor(5)):
        y = torch.zeros(1, dtype=INTEGERS[name], device=place)
        kernel(v=value, y=y).launchRaw(1, 1)
        assert y.item() == int(value)
    for wrong in (info.min - 1, info.max + 1, 2.0, "1", None, torch.ones(2), torch.tensor(1.5)):
        with pytest.raises(TypeError, match=rf"s_{name}: v: "):
            kernel(v=wrong, y=y)


@pytest.mark.parametrize("name", ["half", "float", "double"])
def test_floats(load: Any, place: str, name: str) -> None:
    kernel = getattr(load(SCALARS), f"s_{name}")
    dtype = {"half": torch.float16, "float": torch.float32, "double": torch.float64}[name]
    for value in (0.1, 3, -2.5, 1e300, float("inf"), np.float32(0.3), torch.tensor(7), torch.tensor(0.7)):
        y = torch.zeros(1, dtype=dtype, device=place)
        kernel(v=value, y=y).launchRaw(1, 1)
        assert y.item() == torch.tensor(float(value), dtype=torch.float64).to(dtype).item()
    for wrong in ("1", None, [1.0], torch.ones(3)):
        with pytest.raises(TypeError, match=rf"s_{name}: v: "):
            kernel(v=wrong, y=y)


def test_bools(load: Any, place: str) -> None:
    m = load(SCALARS)
    y = torch.zeros(1, dtype=torch.bool, device=place)
    for value in (True, False, 1, 0, np.bool_(True), torch.tensor(True)):
        m.s_bool(v=value, y=y).launchRaw(1, 1)
        assert y.item() is bool(value)
    for wrong in (2, 1.0, "x", None):
        with pytest.raises(TypeError, match="s_bool: v: expected a bool"):
            m.s_bool(v=wrong, y=y)


def test_vectors(load: Any, place: str) -> None:
    m = load(SCALARS)
    y = torch.zeros(7, device=place)
    for v in ((1, 2, 3), [1, 2, 3], np.array([1, 2, 3]), torch.tensor([1.0, 2, 3])):
        m.vectors(v=v, n=(4, 5), b=(True, 0), y=y).launchRaw(1, 1)
        assert y.tolist() == [1, 2, 3, 4, 5, 1, 0]
    for wrong in ((1, 2), (1, 2, 3, 4), 1, torch.ones(4), ("a", 1, 2)):
        with pytest.raises(TypeError, match=r"vectors: v"):
            m.vectors(v=wrong, n=(4, 5), b=(True, False), y=y)
    with pytest.raises(TypeError, match=r"vectors: n\[1\]"):
        m.vectors(v=(1, 2, 3), n=(4, 5.5), b=(True, False), y=y)


@pytest.mark.parametrize("shape", [(3, 3), (2, 3), (3, 2), (4, 4)])
def test_matrices(load: Any, place: str, shape: tuple[int, int]) -> None:
    kernel = getattr(load(SCALARS), f"m_{shape[0]}{shape[1]}")
    values = np.arange(1, 1 + shape[0] * shape[1], dtype=np.float32)
    y = torch.zeros(values.size, device=place)
    array = values.reshape(shape)
    for given in (tuple(map(tuple, array.tolist())), array.tolist(), array, torch.from_numpy(array)):
        kernel(m=given, y=y.zero_()).launchRaw(1, 1)
        assert y.tolist() == values.tolist()
    for wrong in (array.T[: shape[1] - 1], values.tolist(), 1.0):
        with pytest.raises(TypeError, match=r": m"):
            kernel(m=wrong, y=y)


def test_defaults(load: Any, place: str) -> None:
    m = load(SCALARS)
    y = torch.zeros(2, device=place)
    m.defaults(y).launchRaw(1, 1)
    assert y.tolist() == [2.5, 3]
    m.defaults(y, b=4).launchRaw(1, 1)
    assert y.tolist() == [2.5, 4]


def test_names_of_arguments(load: Any, place: str) -> None:
    m = load(SCALARS)
    y = torch.zeros(7, device=place)
    for args, kwargs, text in (
        ((1,), {}, "'y' is missing; its parameters are v, y"),
        ((), {"v": 1, "z": 2, "y": y}, "no parameter 'z'"),
        ((1,), {"v": 1, "y": y}, "'v' is given twice"),
        ((1, y, 3), {}, "takes 2 arguments"),
    ):
        with pytest.raises(ValueError, match=text):
            m.s_float(*args, **kwargs)
