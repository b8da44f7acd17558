"""What is refused, and in which words: options, launches, values; and what stands in the way of nobody."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import slangpy

torch = pytest.importorskip("torch")

SOURCE = """
struct Inner { float2 v; int n; };
[AutoPyBindCUDA] [CudaKernel] [Differentiable] void square(DiffTensorView x, DiffTensorView y) { y[0] = x[0] * x[0]; }
[CudaKernel] void plain(TensorView<float> y, float k, int n = 1) { y[0] = k * n; }
[CudaKernel] void maybe(Optional<Inner> a, TensorView<float> y) { y[0] = a.hasValue ? a.value.v.x : -1; }
[CudaKernel] void lerp(TensorView<float> y) { y[0] = 7; }
"""


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"verbose": "x"}, TypeError, "'verbose' must be a bool"),
        ({"cudaFastMath": None}, TypeError, "'cudaFastMath' must be a bool"),
        ({"defines": []}, TypeError, "'defines' must be a dict"),
        ({"defines": {"a b": 1}}, ValueError, "is not an identifier"),
        ({"defines": {"A": float("nan")}}, ValueError, "A the value nan"),
        ({"includePaths": "abc"}, TypeError, "'includePaths' must be a list"),
        ({"extraSlangFlags": ["-o"]}, ValueError, "has '-o'"),
        ({"extraSlangFlags": ["other.hlsl"]}, ValueError, "has 'other.hlsl'"),
        ({"extraSlangFlags": ["-no-such-flag"]}, ValueError, "unknown command-line option '-no-such-flag'"),
    ],
)
def test_options(load: Any, options: dict[str, Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        load(SOURCE, **options)


@pytest.mark.parametrize(
    ("value", "expected"),
    [(True, 1), (np.False_, 0), (None, 1), (3, 3), (np.int64(-4), -4), (0.1, 0.1), (np.float32(1.5), 1.5), ("2 + 3", 5)],
)
def test_defines(load: Any, value: Any, expected: float) -> None:
    y = torch.zeros(1, dtype=torch.float64)
    load("[CudaKernel] void f(TensorView<double> y) { y[0] = double(VALUE); }", defines={"VALUE": value}).f(y).launchRaw(1, 1)
    assert y.item() == pytest.approx(expected, rel=1e-7)


def test_launch_sizes(load: Any) -> None:
    launch = load(SOURCE).plain(torch.zeros(1), 1.0)
    for sizes, name in (((), "blockSize"), ((1,), "gridSize"), (((0, 1, 1), 1), "blockSize"), ((1, 1.5), "gridSize"),
                        ((None, 1), "blockSize"), ((1, "ab"), "gridSize"), ((1, (1, 1, 1, 1)), "gridSize")):  # fmt: skip
        with pytest.raises(ValueError, match=f"plain: '{name}' must be one to three ints"):
            launch.launchRaw(*sizes)
    with pytest.raises(TypeError, match="'stream' must be an int handle, a torch stream or None, got 'x'"):
        launch.launchRaw(1, 1, stream="x")
    launch.launchRaw(1, 1, stream=0)


@pytest.mark.parametrize("value", ["text", object(), 2.5, [1.0], {"value": 1}])
def test_what_is_no_pair(load: Any, value: Any) -> None:
    m = load(SOURCE)
    for kernel in (m.square, m.square.bwd):
        with pytest.raises(
            ValueError, match=r"x: expected a tensor, \(tensor,\), \(tensor, gradient\) or \(tensor, None\)"
        ):
            kernel(x=value, y=(torch.zeros(1), torch.zeros(1)))


def test_texts(load: Any) -> None:
    m = load(SOURCE)
    with pytest.raises(ValueError, match=r"`plain` has no backward derivative: mark it \[Differentiable\]"):
        m.plain.bwd(torch.zeros(1), 1.0)
    with pytest.raises(AttributeError, match=r"has no 'squares'; did you mean 'square'\? There are: DiffTensorView"):
        m.squares
    with pytest.raises(AttributeError, match=r"has no 'zzz'; there are: DiffTensorView"):
        m.zzz
    with pytest.raises(AttributeError, match=r"plain\.launchRaw: call the kernel .* first: plain\(y=\.\.\., k=...*launchRaw"):
        m.plain.launchRaw(1, 1)
    with pytest.raises(AttributeError, match="kernel 'plain' has no attribute 'zzz'"):
        m.plain.zzz
    with pytest.raises(TypeError, match="plain: k: .* is more than any float can be"):
        m.plain(torch.zeros(1), 10**400)


def test_optional_struct_with_its_flag(load: Any, place: str) -> None:
    m, y = load(SOURCE), torch.zeros(1, device=place)
    for value, expected in ((None, -1), (((3, 4), 5), 3), ((((3, 4), 5), True), 3), ((((3, 4), 5), False), -1)):
        m.maybe(value, y).launchRaw(1, 1)
        assert y.item() == expected


def test_name_of_a_function_of_slang(load: Any, place: str) -> None:
    y = torch.zeros(1, device=place)
    load(SOURCE).lerp(y).launchRaw(1, 1)
    assert y.item() == 7


def test_dlpack(load: Any) -> None:
    class Foreign:
        def __init__(self, tensor: Any) -> None:
            self.tensor = tensor

        def __dlpack__(self, **options: Any) -> Any:
            return self.tensor.__dlpack__(**options)

        def __dlpack_device__(self) -> Any:
            return self.tensor.__dlpack_device__()

    for y in (torch.zeros(1), np.zeros(1, np.float32)):
        load(SOURCE).plain(Foreign(y), 3.0).launchRaw(1, 1)
        assert y[0] == 3


def test_compiler_warnings(load: Any, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]) -> None:
    with caplog.at_level(logging.WARNING, "slangpy"), warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        load("[CudaKernel] void f(bool b, TensorView<float> y) { y[0] = b; y[1] = b; }")
    assert [w.category for w in found] == [slangpy.errors.SlangWarning]
    assert str(found[0].message).count("implicit conversion from 'bool' to 'float'") == 2
    assert not caplog.records and capfd.readouterr().err == ""


def test_kernel_named_like_a_derivative(load: Any) -> None:
    with pytest.warns(slangpy.errors.SlangWarning, match="cannot be called"):
        m = load("""
[AutoPyBindCUDA] [CudaKernel] [Differentiable] void k(DiffTensorView x) { x[0] = 1; }
[AutoPyBindCUDA] [CudaKernel] void k_bwd_diff(TensorView<float> x, float k) { x[0] = k; }
""")
    for name in ("k", "k_bwd_diff"):
        with pytest.raises(TypeError, match=f"{name} cannot be called: .*rename one"):
            getattr(m, name)(torch.zeros(1))


def test_cleared_caches_are_empty(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "cleared.slang"
    path.write_text("[CudaKernel] void cleared(TensorView<float> y) { y[0] = 11; }")
    said = []
    for forget in (lambda: None, slangpy.clearSessionShaderCache, slangpy.clearShaderCaches):
        forget()
        y = torch.zeros(1)
        slangpy.loadModule(path, verbose=True).cleared(y).launchRaw(1, 1)
        assert y.item() == 11
        said.append(capfd.readouterr().err)
    assert "from the cache" not in said[0] and "[slangpy] cleared.slang: Slang 20" in said[0]
    assert "front end" in said[0] and "emit" in said[0]
    assert "cached (" in said[1] and "compiled code from the cache" in said[1]
    assert "cached (" not in said[2] and "from the cache" not in said[2]


def test_headers_of_ours_are_in_the_keys(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "keyed.slang"
    path.write_text("[CudaKernel] void keyed(TensorView<float> y) { y[0] = 12; }")
    slangpy.loadModule(path).keyed(torch.zeros(1)).launchRaw(1, 1)
    for module in ("load", "devices"):
        monkeypatch.setattr(f"slangpy.pytorch.raw.{module}.library_hash", lambda: "another")
    slangpy.clearSessionShaderCache()
    slangpy.loadModule(path, verbose=True).keyed(torch.zeros(1)).launchRaw(1, 1)
    said = capfd.readouterr().err
    assert "Slang 20" in said and "from the cache" not in said


HOST = """
[TorchEntryPoint] TorchTensor<float> copy(TorchTensor<float> x) { return x; }
[TorchEntryPoint] float3 make(TorchTensor<float> x) { return float3(x.size(0), 1, 2) * 2; }
[TorchEntryPoint] float select(TorchTensor<float> rt) { let each = make(rt); return each.x; }
[TorchEntryPoint] int idiv(int a, int b) { return a / b; }
[CudaHost] float size_of(TorchTensor<float> x) { return x.size(0) + x.dims(); }
[TorchEntryPoint] float measured(TorchTensor<float> x) { return size_of(x); }
[TorchEntryPoint] float2 halves(float2 v) { return v / 2; }
[TorchEntryPoint] float summed(float a[2]) { return a[0] + a[1]; }
"""


def test_names_and_helpers_of_host_functions(load: Any, place: str) -> None:
    m, x = load(HOST), torch.zeros(3, device=place)
    assert m.copy(x) is x and m.make(x) == (6, 2, 4) and m.select(x) == 6 and m.idiv(-7, 2) == -3
    assert m.measured(x) == 4 and "size_of" not in dir(m)
    with pytest.raises(TypeError, match="halves: v: expected a tuple or list of 2"):
        m.halves((1, 2, 3))
    with pytest.raises(ValueError, match="summed: a: expected a tuple or list of 2"):
        m.summed((1, 2, 3))


def test_unsigned_host_tensors(load: Any) -> None:
    with pytest.raises(RuntimeError, match="has no TorchTensor<uint>; use TorchTensor<int>"):
        load("[TorchEntryPoint] TorchTensor<uint> f() { return TorchTensor<uint>.alloc(3); }")


ALONE = """
import sys, numpy as np, slangpy
m = slangpy.loadModule(sys.argv[1])
x = np.arange(6, dtype=np.float32)
y, pair, made = m.doubled(x), m.pair(x), m.made()
assert type(y) is np.ndarray and y.tolist() == [0, 2, 4, 6, 8, 10]
assert pair[0] is x and pair[1].tolist() == [0] * 6 and pair[2] == 1
assert made.dtype == np.int32 and made.tolist() == [[7, 7], [7, 7]]
gx, gy = np.zeros(6, np.float32), np.ones(6, np.float32)
m.double_kernel.bwd((x, gx), (y, gy)).launchRaw(6, 1)
assert gx.tolist() == [2] * 6 and gy.tolist() == [0] * 6
assert "torch" not in sys.modules
"""


def test_without_torch(tmp_path: Path) -> None:
    path = tmp_path / "alone.slang"
    path.write_text("""
[AutoPyBindCUDA] [CudaKernel] [Differentiable] void double_kernel(DiffTensorView x, DiffTensorView y)
{ uint i = cudaBlockIdx().x * cudaBlockDim().x + cudaThreadIdx().x; if (i < x.size(0)) y[i] = 2 * x[i]; }
[CudaKernel] void double_plain(TensorView<float> x, TensorView<float> y)
{ uint i = cudaBlockIdx().x * cudaBlockDim().x + cudaThreadIdx().x; if (i < x.size(0)) y[i] = 2 * x[i]; }
[TorchEntryPoint] TorchTensor<float> doubled(TorchTensor<float> x)
{
    var y = TorchTensor<float>.emptyLike(x);
    let block = uint3(4, 1, 1);
    let grid = uint3((x.size(0) + 3) / 4, 1, 1);
    __dispatch_kernel(double_plain, grid, block)(x, y);
    return y;
}
struct Pair { TorchTensor<float> a; TorchTensor<float> b; int n; };
[TorchEntryPoint] Pair pair(TorchTensor<float> x) { Pair p; p.a = x; p.b = TorchTensor<float>.zerosLike(x); p.n = int(x.stride(0)); return p; }
[TorchEntryPoint] TorchTensor<int> made() { var t = TorchTensor<int>.alloc(2, 2); t.fillValue(7); return t; }
""")
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}  # `made` asks for torch where there is a GPU
    subprocess.run([sys.executable, "-c", ALONE, str(path)], check=True, timeout=120, env=environment)


def test_what_a_value_raises_itself_names_the_parameter(tmp_path: Path) -> None:
    file = tmp_path / "raising.slang"
    file.write_text("[CudaKernel] void raising(TensorView<float> y, float3 v) {}\n")
    kernel = slangpy.loadModule(str(file)).raising
    device = slangpy.Device(type=slangpy.DeviceType.cpu, compiler_options={}, enable_hot_reload=False)
    closed = slangpy.Tensor.zeros(device, (3,), dtype="float")
    device.close()
    freed = torch.zeros(3)
    freed.untyped_storage().resize_(0)

    class Own(Exception):
        pass

    class Raising:
        def __len__(self) -> int:
            return 3

        def __iter__(self) -> Any:
            raise Own

    y = torch.zeros(3)
    for v in (np.float32(1), np.zeros((), np.float32), torch.zeros(()), torch.zeros(3, device="meta"), freed, [freed] * 3):
        with pytest.raises((TypeError, RuntimeError), match="raising: v"):
            kernel(y=y, v=v).launchRaw(blockSize=(1, 1, 1), gridSize=(1, 1, 1))
    for bad in (closed, closed.storage, freed, np.float32(1)):
        with pytest.raises((TypeError, RuntimeError), match="raising: y"):
            kernel(y=bad, v=(1, 2, 3)).launchRaw(blockSize=(1, 1, 1), gridSize=(1, 1, 1))
    with pytest.raises(Own):
        kernel(y=y, v=Raising()).launchRaw(blockSize=(1, 1, 1), gridSize=(1, 1, 1))
