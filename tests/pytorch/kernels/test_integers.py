"""Integers of all widths in kernels of `loadModule` have the values that NumPy gives them."""

from __future__ import annotations

from typing import Any

import integer_forms as forms
import numpy as np
import pytest

torch = pytest.importorskip("torch")

KERNEL = """
[AutoPyBindCUDA] [CudaKernel] void run(TensorView<T> a, TensorView<T> b, TensorView<int64_t> out)
{
    uint i = (cudaBlockIdx() * cudaBlockDim() + cudaThreadIdx()).x;
    if (i >= a.size(0)) return;
    let r = all(a[i], b[i]);
    for (int k = 0; k < out.size(1); k++)
        out[i, k] = r[k];
}
"""


@pytest.mark.parametrize("name", ["int8_t", "int16_t", "int", "int64_t", "uint8_t"])
def test_as_numpy_has_them(load: Any, place: str, name: str) -> None:
    chosen = forms.forms(name, matrices=True, cuda=place == "cuda")
    a, b = forms.values(name)
    out = torch.zeros(len(a), len(chosen), dtype=torch.int64, device=place)
    module = load(forms.source(name, chosen) + KERNEL)
    tensors = [torch.from_numpy(x).to(place) for x in (a, b)]
    module.run(a=tensors[0], b=tensors[1], out=out).launchRaw(blockSize=(32, 1, 1), gridSize=(-(-len(a) // 32), 1, 1))
    assert forms.differences(out.cpu().numpy(), forms.expected(name, chosen, a, b), chosen, a, b) == []


def test_rounding_takes_the_even_number(load: Any, place: str) -> None:
    source = """
    [AutoPyBindCUDA] [CudaKernel] void run(TensorView<float> x, TensorView<float> out)
    {
        uint i = cudaThreadIdx().x;
        out[i, 0] = round(x[i]);
        out[i, 1] = float(round(half(x[i])));
        out[i, 2] = float(round(double(x[i])));
        out[i, 3] = f16tof32(f32tof16(x[i]));
    }
    """
    values = [0.5, 1.5, 2.5, -0.5, -2.5, 3.25, 4.5, 3e-8, -4.4e-8, 2049.0, 2051.0, 1e-7]
    x = torch.tensor(values, device=place)
    out = torch.zeros(len(x), 4, device=place)
    load(source).run(x=x, out=out).launchRaw(blockSize=(len(x), 1, 1), gridSize=(1, 1, 1))
    numbers = np.array(values, np.float32)
    halves = numbers.astype(np.float16)
    expected = [np.rint(numbers), np.rint(halves), np.rint(numbers), halves]
    np.testing.assert_array_equal(out.cpu().numpy(), np.stack([x.astype(np.float32) for x in expected], 1))
