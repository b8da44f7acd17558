"""Arrays of open sizes: `half[N]` takes N from the last dimension of what is passed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from calls_support import plain, source

import slangpy as spy

pytestmark = [pytest.mark.needs_kernels, pytest.mark.one]

SOURCE = """
half halves<let N : int>(half v[N]) { half s = 0; for (int i = 0; i < N; i++) s += v[i]; return s; }
int ints<let N : int>(int v[N]) { int s = N * 100; for (int i = 0; i < N; i++) s += v[i]; return s; }
int grid<let R : int, let C : int>(int v[R][C]) { int s = R * 100 + C * 10; for (int i = 0; i < C; i++) s += v[R - 1][i]; return s; }
int rows<let R : int>(int v[R][2]) { int s = R * 100; for (int i = 0; i < R; i++) s += v[i][1]; return s; }
float floats<let N : int>(float v[N]) { return v[N - 1]; }
"""
KINDS = ["numpy", "tensor", "torch"]


def given(device: Any, values: np.ndarray, kind: str) -> Any:
    if kind == "torch":
        torch = pytest.importorskip("torch")
        return torch.from_numpy(values).to(device.torch_device if device.info.type is spy.DeviceType.cuda else "cpu")
    return values if kind == "numpy" else spy.Tensor.from_numpy(device, values)


@pytest.mark.parametrize("kind", KINDS)
def test_sizes_of_the_last_dimensions(device: Any, kind: str) -> None:
    m = source(device, "open_sizes", SOURCE)
    for n in (3, 5):  # a kernel for each
        values = np.arange(2 * n, dtype=np.float16).reshape(2, n)
        assert plain(m.halves(given(device, values, kind), _result="numpy")) == values.sum(1).tolist()
        whole = np.arange(n, dtype=np.int32)
        assert np.asarray(m.ints(given(device, whole, kind), _result="numpy")).item() == 100 * n + whole.sum()
    values = np.arange(24, dtype=np.int32).reshape(2, 3, 4)
    expected = (300 + 40 + values[:, -1].sum(-1)).tolist()
    assert plain(m.grid(given(device, values, kind), _result="numpy")) == expected
    pairs = np.arange(12, dtype=np.int32).reshape(2, 3, 2)
    assert plain(m.rows(given(device, pairs, kind), _result="numpy")) == (300 + pairs[:, :, 1].sum(-1)).tolist()
    with pytest.raises(spy.ResolveException):
        m.rows(given(device, np.zeros((3, 3), np.int32), kind))
    with pytest.raises(spy.ResolveException, match="name the type with"):
        m.floats(given(device, np.zeros(3, np.float32), kind))
    assert np.asarray(m.floats.map("float[3]")(given(device, np.arange(3, dtype=np.float32), kind), _result="numpy")).item() == 2
