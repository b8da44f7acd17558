"""Functions with several arrays that are indexed at run time, in one kernel: each array keeps its own memory."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import slangpy as spy
from slangpy import _native
from slangpy.config import config
from slangpy.testing import CudaCodegen, nvrtc_available

pytestmark = pytest.mark.needs_kernels
SOURCE = """
float first(float b, float c, float m, float h[4], int n)
{
    float x[2] = { b * c, max(b, -0.57f) };
    x[n % 2] += tanh(tanh(0.62f));
    x[n % 2] *= 0.5f * sin(m);
    return ((n + n) % 3 != 0 ? 1.39f : h[n % 4]) - m + c - b;
}
float second(float a, float3 v, float h[4], float c, int n)
{
    v += tanh(abs(v) * v);
    v[n % 3] -= sin(0.98f);
    return a + h[n % 4] + (((n + n) % 3 == 1 || (n + 1) % 3 > 0) ? 2.0f : a) - c - v.x - h[n % 4];
}
float third(float a, float b, float3 v, float h[4], float c, int n)
{
    v[n % 3] -= sin(0.22f * (2 - c));
    h[n % 4] -= sin(v[2] + 0.02f / (1.25f + a * a));
    return min(a, b) - h[n % 4] + v.x;
}
float3 all_three(float a, float b, float3 v, float m, float h[4], float c, int n)
{
    return float3(first(b, c, m, h, n), second(a, v, h, c, n), third(a, b, v, h, c, n));
}
"""


def arguments() -> dict[str, Any]:
    rng = np.random.default_rng(7)
    rows = 35
    shapes = {"a": (rows,), "b": (rows,), "v": (rows, 3), "m": (rows,), "h": (rows, 4), "c": (rows,)}
    given: dict[str, Any] = {name: rng.uniform(-1.5, 1.5, shape).astype(np.float32) for name, shape in shapes.items()}
    return given | {"n": (np.arange(rows) % 7).astype(np.int32)}


def expected(a: Any, b: Any, v: Any, m: Any, h: Any, c: Any, n: Any) -> list[float]:
    """One row, in float64."""
    first = (1.39 if (n + n) % 3 else h[n % 4]) - m + c - b
    w = v + np.tanh(np.abs(v) * v)
    w[n % 3] -= np.sin(0.98)
    second = a + (2.0 if (n + n) % 3 == 1 or (n + 1) % 3 > 0 else a) - c - w[0]
    w = v.copy()
    w[n % 3] -= np.sin(0.22 * (2 - c))
    third = min(a, b) - (h[n % 4] - np.sin(w[2] + 0.02 / (1.25 + a * a))) + w[0]
    return [first, second, third]


def test_values(device: spy.Device):
    given = arguments()
    got = spy.Module.load_from_source(device, "local_arrays", SOURCE).all_three(**given, _result="numpy")
    wide = {name: array.astype(np.float64) if name != "n" else array for name, array in given.items()}
    want = [expected(**{name: array[i].copy() for name, array in wide.items()}) for i in range(len(given["n"]))]
    np.testing.assert_allclose(got, want, rtol=2e-4, atol=2e-4)


@pytest.fixture
def ptx_of(monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """The PTX of a call, compiled anew."""
    if not nvrtc_available():
        pytest.skip("needs NVRTC")
    texts: list[bytes] = []
    compile_ = CudaCodegen.compile
    monkeypatch.setattr(
        CudaCodegen, "compile",
        lambda self, source, name, **options: [texts.append(source), compile_(self, source, name, **options)][1],
    )  # fmt: skip
    monkeypatch.setattr(config, "cache_enabled", False)

    def built(name: str, source: str, function: str, **given: Any) -> str:
        generator = CudaCodegen("sm_80")
        generator.build(getattr(generator.load_from_source(name, source), function), **given, _result="numpy")
        return _native.cuda_compile(texts[-1], "_spy_main", "compute_80", name).decode()

    return built


def test_cuda_code_has_a_place_for_each_array(ptx_of: Callable[..., str]):
    """NVRTC 12.8 to 13.0 gave `x` the place of `h`, which is read after it. Vectors are no arrays: they stay in registers."""
    found = re.search(r"__local_depot0\[(\d+)\]", ptx_of("local_arrays_cuda", SOURCE, "all_three", **arguments()))
    sizes = {"h": 16, "x": 8, "the table of sin": 28}
    assert found is None or int(found.group(1)) >= sum(sizes.values())


SHARED = """
import slangpy;
groupshared float4 shared_rows[2];
groupshared float4 shared_row;
[numthreads(32, 1, 1)]
float written(int i, float x, float h[4])
{
    float4 own = float4(x);
    own[i & 3] = h[i & 3];
    shared_row[i & 3] = x;
    shared_rows[i & 1][i & 3] = x;
    GroupMemoryBarrierWithGroupSync();
    return dot(own, shared_row) + shared_rows[1].x;
}
"""


def test_components_in_groupshared_memory_are_written_alone(ptx_of: Callable[..., str]):
    """The others are those of other threads. Of a vector of the thread's own, no component lies in memory."""
    n = np.zeros(5, np.int32)
    ptx = ptx_of("local_arrays_shared", SHARED, "written", i=n, x=np.zeros(5, np.float32), h=np.zeros((5, 4), np.float32))
    stores = re.findall(r"st\.(?:shared\.)?(?:v\d\.)?[fbu]32\s+\[", ptx)
    assert len(re.findall(r"st\.(?:shared\.)?(?:v\d\.)", ptx)) == 0 and len(stores) == 2, ptx
