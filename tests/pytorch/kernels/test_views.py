"""Tensors as views: every element type, shapes and strides, and what cannot be a view."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import slangpy as spy
from slangpy.errors import TensorError

torch = pytest.importorskip("torch")

SOURCE = """
#define VIEW(T) [AutoPyBindCUDA] [CudaKernel] void v_##T(TensorView<T> x, TensorView<T> y) \\
{ uint i = cudaThreadIdx().x; if (i < x.size(0)) y[i] = x[i] * x[i]; }
VIEW(half) VIEW(float) VIEW(double) VIEW(int8_t) VIEW(uint8_t) VIEW(int16_t) VIEW(uint16_t)
VIEW(int) VIEW(uint) VIEW(int64_t) VIEW(uint64_t)
[AutoPyBindCUDA] [CudaKernel] void v_BFloat16(TensorView<BFloat16> x, TensorView<BFloat16> y)
{ uint i = cudaThreadIdx().x; if (i < x.size(0)) { float v = float(x[i]); y[i] = BFloat16(v * v); } }
[AutoPyBindCUDA] [CudaKernel] void flip(TensorView<bool> x, TensorView<bool> y) { y[0] = !x[0]; }
[AutoPyBindCUDA] [CudaKernel] void copy2(TensorView<float> x, TensorView<float> y)
{ uint2 i = cudaThreadIdx().xy; if (i.x < x.size(0) && i.y < x.size(1)) y[i] = x[i.x, i.y]; }
[AutoPyBindCUDA] [CudaKernel] void info(TensorView<float> x, TensorView<int> y)
{ y[0] = x.dims(); for (int i = 0; i < 5; i++) { y[1 + i] = x.size(i); y[6 + i] = x.stride(i); } }
[AutoPyBindCUDA] [CudaKernel] void five(TensorView<float> x, TensorView<float> y)
{ y[0] = x[1, 0, 1, 0, 1]; y[1] = x.load(1, 1, 1, 1, 0); x.store(0, 0, 0, 0, 0, 7.0); y[2] = x.data_ptr_at(0)[0] + *x.data_ptr(); }
[AutoPyBindCUDA] [CudaKernel] void vectors(TensorView<float3> a, TensorView<float4> b, TensorView<float2x2> m, TensorView<float> y)
{ y[0] = a[1].z; y[1] = b[1].w; y[2] = m[1][1][0]; y[3] = a.dims(); a[0] = float3(1, 2, 3); }
[AutoPyBindCUDA] [CudaKernel] void first(TensorView<float> x) { x[0] = 3; }
"""
TYPES = {
    "half": torch.float16, "BFloat16": torch.bfloat16, "float": torch.float32, "double": torch.float64, "int8_t": torch.int8,
    "uint8_t": torch.uint8, "int16_t": torch.int16, "uint16_t": torch.uint16, "int": torch.int32, "uint": torch.uint32,
    "int64_t": torch.int64, "uint64_t": torch.uint64,
}  # fmt: skip


@pytest.mark.parametrize("name", TYPES)
def test_element_types(load: Any, place: str, name: str) -> None:
    kernel = getattr(load(SOURCE), f"v_{name}")
    x = torch.tensor([1, 2, 3, 4]).to(TYPES[name]).to(place)
    y = torch.zeros_like(x)
    kernel(x, y).launchRaw(4, 1)
    assert y.tolist() == [1, 4, 9, 16]
    other = torch.float64 if TYPES[name] is not torch.float64 else torch.float32
    with pytest.raises(TensorError, match=rf"v_{name}: x: expected .*got {str(other)[6:]} .*convert it with \.to\(torch\."):
        kernel(x.to(other), y)


def test_signed_tensors_serve_unsigned_views(load: Any, place: str) -> None:
    m = load(SOURCE)
    for name, dtype in (("uint", torch.int32), ("uint64_t", torch.int64)):
        x = torch.tensor([5, 6], dtype=dtype, device=place)
        getattr(m, f"v_{name}")(x, x).launchRaw(2, 1)
        assert x.tolist() == [25, 36]
    with pytest.raises(TensorError):
        m.v_int(torch.zeros(1, dtype=torch.uint32, device=place), torch.zeros(1, dtype=torch.int32, device=place))


def test_bool(load: Any, place: str) -> None:
    x, y = torch.tensor([True], device=place), torch.tensor([True], device=place)
    load(SOURCE).flip(x, y).launchRaw(1, 1)
    assert not y.item()


def test_strides(load: Any, place: str) -> None:
    m = load(SOURCE)
    base = torch.arange(48.0, device=place).reshape(6, 8)
    for x in (base, base.T, base[1:4, 2:7], base[::2, ::3], base.reshape(2, 3, 8)[:, 1]):
        y = torch.zeros(x.shape, device=place)
        m.copy2(x, y).launchRaw((16, 16, 1), 1)
        assert torch.equal(x, y)
    found = torch.zeros(11, dtype=torch.int32, device=place)
    m.info(base.reshape(2, 3, 8).transpose(0, 2), found).launchRaw(1, 1)
    assert found.tolist() == [3, 8, 3, 2, 0, 0, 4, 32, 96, 0, 0]


def test_five_dimensions_and_none(load: Any, place: str) -> None:
    m = load(SOURCE)
    x = torch.arange(32.0, device=place).reshape(2, 2, 2, 2, 2)
    y = torch.zeros(3, device=place)
    m.five(x, y).launchRaw(1, 1)
    assert y.tolist() == [21, 30, 14]
    scalar = torch.zeros((), device=place)
    m.first(scalar).launchRaw(1, 1)
    assert scalar.item() == 3
    base = torch.zeros(2, device=place)
    far = base.as_strided((1, 2), (1 << 40, 1))  # a stride that is never taken
    m.copy2(far, y[:2].reshape(1, 2)).launchRaw((2, 2, 1), 1)
    assert y.tolist() == [0, 0, 14]
    if place == "cpu":
        apart = np.lib.stride_tricks.as_strided(np.zeros(2, np.float32), (2, 1), (1 << 32, 4))  # its second row is never touched
        m.first(apart).launchRaw(1, 1)
        assert apart[0, 0] == 3
    for shape in ((0,), (10, 0)):
        m.info(torch.zeros(shape, device=place), found := torch.zeros(11, dtype=torch.int32, device=place)).launchRaw(1, 1)
        assert found.tolist()[: len(shape) + 1] == [len(shape), *shape]


def test_vectors_and_matrices(load: Any, place: str) -> None:
    m = load(SOURCE)
    a, b = torch.arange(6.0, device=place).reshape(2, 3), torch.arange(8.0, device=place).reshape(2, 4)
    q, y = torch.arange(8.0, device=place).reshape(2, 2, 2), torch.zeros(4, device=place)
    m.vectors(a, b, q, y).launchRaw(1, 1)
    assert y.tolist() == [5, 7, 6, 2] and a[0].tolist() == [1, 2, 3]
    wide = torch.arange(20.0, device=place).reshape(2, 10)
    m.vectors(wide[:, 2:5], b, q, y).launchRaw(1, 1)
    assert y[0].item() == 14
    for wrong, text in (
        ((torch.zeros(2, 4, device=place), b, q), r"a: the last dimensions of a TensorView<vector<float,3>> are \(3,\)"),
        ((torch.zeros(3, 2, device=place).T, b, q), "a: the elements of .* do not lie side by side"),
        ((a, torch.zeros(9, device=place)[1:].reshape(2, 4), q), "b: the data of .* is not aligned to the 16 bytes"),
        ((a, torch.zeros(2, 6, device=place)[:, :4], q), "b: stride 24 bytes .* no multiple of the 16"),
        ((a, b, torch.zeros(2, 2, 3, device=place)[..., :2]), "m: the elements of .* side by side"),
    ):
        with pytest.raises(TensorError, match=text):
            m.vectors(*wrong, y)


@pytest.mark.parametrize(
    "make, text",
    [
        (lambda: torch.zeros(1).expand(4), r"is broadcast \(a stride is 0\), and the kernel may write to it; pass tensor\.contiguous\(\)"),
        (lambda: torch.zeros((1,) * 6), "6 dimensions, a view at most 5"),
        (lambda: torch.zeros(4).to_sparse(), r"sparse_coo tensor; pass tensor\.to_dense\(\)"),
        (lambda: torch.zeros(4, device="meta"), "meta"),
        (lambda: torch.zeros(4, dtype=torch.complex64).imag, r"expected|negation|first"),
        (lambda: torch._neg_view(torch.zeros(4)), "lazy conjugation or negation"),
        (lambda: np.zeros(4, np.float32)[::-1], "negative stride"),
        (lambda: np.broadcast_to(np.float32(1), (4,)), "read-only"),
        (lambda: np.zeros(4, ">f4"), "byte-swapped"),
        (lambda: [1.0, 2.0], r"expected a tensor for TensorView<float>, got list"),
        (lambda: None, "expected a tensor"),
    ],
)
def test_what_is_no_view(load: Any, make: Any, text: str) -> None:
    value = make()
    if isinstance(value, torch.Tensor) and value.layout is torch.strided and text.startswith("expected|"):
        load(SOURCE).first(value).launchRaw(1, 1)  # strided storage of a complex tensor is a tensor like any other
        assert value[0].item() == 3
        return
    with pytest.raises(TensorError, match=text):
        load(SOURCE).first(value)


def test_other_kinds_of_tensors(load: Any) -> None:
    m = load(SOURCE)
    array = np.zeros(3, np.float32)
    m.first(array).launchRaw(1, 1)
    device = spy.create_device(spy.DeviceType.cpu)
    tensor = spy.Tensor.zeros(device, (3,), "float")
    m.first(tensor).launchRaw(1, 1)
    assert array.tolist() == [3, 0, 0] and tensor.to_numpy().tolist() == [3, 0, 0]
    leaf = torch.zeros(3, requires_grad=True)
    m.first(leaf).launchRaw(1, 1)
    assert leaf.tolist() == [3, 0, 0]


def test_launches(load: Any, place: str) -> None:
    m = load(SOURCE)
    x = torch.arange(4.0, device=place)
    y = torch.zeros(4, device=place)
    ready = m.v_float(x, y)
    ready.launchRaw(4, 1)
    x += 1
    ready.launchTotal((8, 1, 1), 4)
    assert y.tolist() == [1, 4, 9, 16]
    ready.launchRaw([4], (0, 1, 1))  # nothing
    ready.autoLaunch(4)
    for block, grid, text in (
        (0, 1, "'blockSize' must be one to three ints of at least 1"),
        ((1, 2, 3, 4), 1, "'blockSize' must be"),
        ((1.5, 1, 1), 1, "'blockSize' must be"),
        ((1025, 1, 1), 1, r".* has 1025 threads"),
        ((1, 1, 65), 1, r".* has 65 threads"),
        (1, (1, 65536, 1), "'gridSize' .* is more than"),
        (1, -1, "'gridSize' must be"),
    ):
        with pytest.raises(ValueError, match=f"v_float: {text}"):
            ready.launchRaw(block, grid)
    with pytest.warns(RuntimeWarning, match="v_float: called, but never launched"):
        m.v_float(x, y)


def test_names_and_table(load: Any) -> None:
    m = load(SOURCE)
    assert "v_half" in dir(m) and "DiffTensorView" in dir(m) and not any(n.startswith("_") for n in dir(m))
    assert "copy2" in repr(m) and "TensorView<float>" in repr(m)
    assert (m.copy2.__doc__ or "").startswith("copy2(x: TensorView<float>, y: TensorView<float>)\n\n/")
    with pytest.raises(AttributeError, match="has no 'copy'; did you mean 'copy2'"):
        m.copy
    import inspect

    assert list(inspect.signature(m.copy2).parameters) == ["x", "y"]
