"""The programs of the published tutorial, and the options of loadModule that they use."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import slangpy as spy

torch = pytest.importorskip("torch")

BOX = """
float pixel(TensorView<float> image, TensorView<float> imageGrad, uint2 at) { return image[at]; }
[BackwardDerivativeOf(pixel)]
void pixel_bwd(TensorView<float> image, TensorView<float> imageGrad, uint2 at, float d) { float old; imageGrad.InterlockedAdd(at, d, old); }
[Differentiable] float mean3x3(TensorView<float> image, TensorView<float> imageGrad, uint2 at)
{
    int w = image.size(0), h = image.size(1), count = 0;
    float sum = 0;
    for (int dx = -1; dx <= 1; dx++)
        for (int dy = -1; dy <= 1; dy++)
        {
            int x = at.x + dx, y = at.y + dy;
            if (x < 0 || x >= w || y < 0 || y >= h) continue;
            sum += pixel(image, imageGrad, uint2(x, y));
            count++;
        }
    return sum / count;
}
[AutoPyBindCUDA] [CudaKernel] void boxFilter(TensorView<float> input, TensorView<float> output)
{ uint2 i = (cudaBlockIdx() * cudaBlockDim() + cudaThreadIdx()).xy; if (i.x < input.size(0) && i.y < input.size(1)) output[i] = mean3x3(input, input, i); }
[AutoPyBindCUDA] [CudaKernel] void boxFilter_bwd(TensorView<float> input, TensorView<float> outGrad, TensorView<float> inGrad)
{ uint2 i = (cudaBlockIdx() * cudaBlockDim() + cudaThreadIdx()).xy; if (i.x < input.size(0) && i.y < input.size(1)) bwd_diff(mean3x3)(input, inGrad, i, outGrad[i]); }
"""


def box_gradient(d: np.ndarray) -> np.ndarray:
    """Of the mean over the neighbours there are, with NumPy in float64."""
    w, h = d.shape
    out = np.zeros((w, h))
    for x in range(w):
        for y in range(h):
            xs, ys = slice(max(x - 1, 0), x + 2), slice(max(y - 1, 0), y + 2)
            out[xs, ys] += d[x, y] / out[xs, ys].size
    return out


def test_box_filter(load: Any, place: str) -> None:
    m = load(BOX)
    x = torch.arange(16.0, device=place).reshape(4, 4)
    y = torch.zeros_like(x)
    m.boxFilter(input=x, output=y).launchRaw((16, 16, 1), (1, 1, 1))
    expected = [[2.5, 3, 4, 4.5], [4.5, 5, 6, 6.5], [8.5, 9, 10, 10.5], [10.5, 11, 12, 12.5]]
    assert np.abs(y.cpu().numpy() - expected).max() < 1e-6
    g = torch.zeros_like(x)
    m.boxFilter_bwd(input=x, outGrad=torch.ones_like(x), inGrad=g).launchRaw((16, 16, 1), (1, 1, 1))
    c, e, i = 25 / 36, 35 / 36, 49 / 36
    assert np.abs(g.cpu().numpy() - [[c, e, e, c], [e, i, i, e], [e, i, i, e], [c, e, e, c]]).max() < 1e-6


def test_box_filter_of_random_numbers(load: Any, place: str) -> None:
    m = load(BOX)
    d = np.random.default_rng(1).standard_normal((37, 53))
    x = torch.zeros(37, 53, device=place)
    g = torch.zeros_like(x)
    gradient = torch.tensor(d, dtype=torch.float32, device=place)
    m.boxFilter_bwd(input=x, outGrad=gradient, inGrad=g).launch(x.shape, block=(16, 16, 1))
    error = np.abs(g.cpu().numpy() - box_gradient(gradient.cpu().numpy().astype(np.float64))).max()
    assert error < (1e-6 if place == "cuda" else 4e-7)


TRACE = """
float3 trace<let N : int>(float3 p, float3 d) { for (int i = 0; i < N; i++) p += (length(p) - 1.0) * d; return p; }
[AutoPyBindCUDA] [CudaKernel] void run(TensorView<float> y) { y[0] = trace<STEPS>(float3(0.5, 0, -3), float3(0, 0, 1)).z; }
"""


def test_one_file_with_several_defines(load: Any, place: str) -> None:
    found = {n: load(TRACE, defines={"STEPS": n}) for n in (1, 2, 3, 20)}
    for n, expected in {1: -0.9586186, 2: -0.8774389, 3: -0.8675385, 20: -0.8660254}.items():
        y = torch.zeros(1, device=place)
        found[n].run(y).launchRaw(1, 1)
        assert abs(y.item() - expected) < 1e-5
    assert load(TRACE, defines={"STEPS": 2}) is found[2]
    with pytest.raises(RuntimeError, match=r"undefined identifier\n *--> .*kernels_\w+\.slang:3:76"):
        load(TRACE)
    assert load(TRACE, defines={"STEPS": 3}) is found[3]


DIVISIONS = """
[AutoPyBindCUDA] [CudaKernel] void run(TensorView<int> a, TensorView<int> b, TensorView<int> y)
{ uint i = cudaThreadIdx().x; y[i] = a[i] / b[i] + a[i] % b[i] * 10 + (int2(a[i]) / int2(1, b[i])).y * 100; }
"""


@pytest.mark.filterwarnings("ignore:.*divided by zero")
def test_divisions_without_a_result(load: Any) -> None:
    a = torch.tensor([7, -7, -(2**31), 9], dtype=torch.int32)
    b = torch.tensor([0, 2, -1, -1], dtype=torch.int32)
    y = torch.zeros_like(a)
    load(DIVISIONS).run(a, b, y).launchRaw((4, 1, 1), (1, 1, 1))
    assert y.tolist() == [0, -3 - 10 - 300, -(2**31), -9 - 900]


FACTOR = "[AutoPyBindCUDA] [CudaKernel] void run(TensorView<float> y) { y[0] = FACTOR; }\n"


def result(m: Any) -> float:
    y = torch.zeros(1)
    m.run(y).launchRaw(1, 1)
    return y.item()


def test_changes_are_noticed(tmp_path: Path) -> None:
    path = tmp_path / "a b\u00e9" / "own.slang"
    path.parent.mkdir()
    path.write_text("#define FACTOR 2.0\n" + FACTOR, "utf-8")
    first = spy.loadModule(path)
    assert result(first) == 2 and spy.loadModule(str(path)) is first
    path.write_text("#define FACTOR 3.0\n" + FACTOR, "utf-8")
    assert result(spy.loadModule(path)) == 3 and result(first) == 2
    assert sorted(p.name for p in path.parent.iterdir()) == ["own.slang"]


def test_changes_of_imported_and_included_files(tmp_path: Path) -> None:
    for folder, value in (("one", 4), ("two", 5)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "factors.slang").write_text(f"static const float factor = {value};\n")
    path = tmp_path / "own.slang"
    path.write_text("import factors;\n#define FACTOR factor\n" + FACTOR)
    one = spy.loadModule(path, includePaths=[tmp_path / "one"])
    two = spy.loadModule(path, includePaths=[tmp_path / "two", tmp_path / "one"])
    assert (result(one), result(two)) == (4, 5)
    (tmp_path / "one" / "factors.slang").write_text("static const float factor = 6;\n")
    assert result(spy.loadModule(path, includePaths=[tmp_path / "one"])) == 6
    (tmp_path / "factors.slang").write_text("static const float factor = 7;\n")  # the file's own folder comes first
    assert result(spy.loadModule(path, includePaths=[tmp_path / "one"])) == 7


def test_autograd_function(load: Any, place: str) -> None:
    m = load("""
[AutoPyBindCUDA] [CudaKernel] [Differentiable] void scale(DiffTensorView x, no_diff float k, DiffTensorView w, DiffTensorView y)
{
    uint3 i = cudaThreadIdx() + cudaBlockIdx() * cudaBlockDim();
    if (i.x < y.size(0) && i.y < y.size(1)) y[i.xy] = k * sin(x[i.xy]) * w[i.y];
}
""")
    f = spy.autograd_function(m.scale.fwd, m.scale.bwd)
    g = spy.autograd_function(m.scale, block=(8, 4, 1), grid=lambda a: (-(-a["x"].shape[0] // 8), -(-a["x"].shape[1] // 4), 1),
                              outputs={"y": lambda a: a["x"].shape})  # fmt: skip
    rng = np.random.default_rng(2)
    xs, ws = rng.standard_normal((33, 7)).astype(np.float32), rng.standard_normal(7).astype(np.float32)
    x64 = torch.tensor(xs, dtype=torch.float64, requires_grad=True)
    w64 = torch.tensor(ws, dtype=torch.float64, requires_grad=True)
    (2.5 * x64.sin() * w64).square().sum().backward()
    for call in (f, g):
        x = torch.tensor(xs, device=place, requires_grad=True)
        w = torch.tensor(ws, device=place, requires_grad=True)
        call(x, 2.5, w=w).square().sum().backward()
        assert np.abs(x.grad.cpu().numpy() - x64.grad.numpy()).max() < 1e-4
        assert np.abs(w.grad.cpu().numpy() - w64.grad.numpy()).max() < 1e-3
    frozen = torch.tensor(ws, device=place)
    x = torch.tensor(xs, device=place, requires_grad=True)
    f(x=x, k=1.0, w=frozen).sum().backward()
    assert np.abs(x.grad.cpu().numpy() - np.cos(xs) * ws).max() < 1e-5
    with pytest.raises(TypeError, match=r"'backward' must be scale\.bwd"):
        spy.autograd_function(m.scale, m.scale.fwd)
    with pytest.raises(ValueError, match="'z' is no argument"):
        f(x, 1.0, w=w, z=3)
