"""What loops hand from one iteration to the next, in calls whose elements leave the loop at different times."""

from __future__ import annotations

import numpy as np
import pytest

import slangpy as spy

pytestmark = pytest.mark.needs_kernels
TYPES = {"float2": (2,), "float3": (3,), "int2": (2,), "float2x2": (2, 2), "float2[3]": (3, 2)}


def source(name: str, type_name: str, body: str) -> str:
    scalar, _, size = type_name.partition("[")
    array = f"[{size}" if size else ""
    return f"""
    struct {name}_pair {{ {scalar} now{array}; {scalar} last{array}; }}
    {name}_pair {name}({scalar} a{array}, {scalar} b{array}, int n)
    {{
        {scalar} now{array} = a; {scalar} last{array} = b;
        for (int i = 0; i < n; i++) {{ {body} }}
        return {{ now, last }};
    }}"""


@pytest.mark.parametrize("type_name", list(TYPES))
def test_old_and_new(device, type_name):
    scalar, _, size = type_name.partition("[")
    array = f"[{size}" if size else ""
    swap = f"{scalar} t{array} = now; now = last; last = t;"
    module = spy.Module.load_from_source(device, "loops", source("swap", type_name, swap))
    rng = np.random.default_rng(1)
    n = rng.integers(0, 7, 1001).astype(np.int32)
    kind = np.int32 if scalar.startswith("int") else np.float32
    a, b = ((100 * rng.normal(size=(len(n), *TYPES[type_name]))).astype(kind) for _ in range(2))
    got = module.swap(a, b, n, _result="numpy")
    odd = (n % 2 == 1).reshape(-1, *[1] * (a.ndim - 1))
    np.testing.assert_array_equal(got["now"], np.where(odd, b, a))
    np.testing.assert_array_equal(got["last"], np.where(odd, a, b))


@pytest.mark.parametrize("leave", ["", "if (i >= n) break;"])
def test_fibonacci(device, leave):
    body = f"{leave} float3 sum = now + last; last = now; now = sum;"
    text = source("fibonacci", "float3", body)
    text = text.replace("i < n", "i < 20") if leave else text
    module = spy.Module.load_from_source(device, "loops", text)
    n = np.arange(333, dtype=np.int32) % 13
    a = np.ones((333, 3), np.float32) * [1, 2, 3]
    got = module.fibonacci(a.astype(np.float32), np.zeros((333, 3), np.float32), n, _result="numpy")
    numbers = [0, 1]
    for _ in range(14):
        numbers.append(numbers[-1] + numbers[-2])
    np.testing.assert_array_equal(got["now"], np.array(numbers)[n + 1][:, None] * a)
    np.testing.assert_array_equal(got["last"], np.array(numbers)[n][:, None] * a)
