"""Tensors of every kind are read alike through torch's own library and through Python, and what cannot be read is told in
one way, without a word on stderr."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import slangpy as spy

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.needs_kernels, pytest.mark.usefixtures("bridge")]

SOURCE = """
[Differentiable] float twice(float a) { return 2 * a; }
void store(float a, out float b) { b = a; }
void add_to(float a, inout float b) { b += a; }
"""
TYPES = {
    "float32": "float", "float64": "double", "float16": "half", "int8": "int8_t", "int16": "int16_t", "int32": "int",
    "int64": "int64_t", "uint8": "uint8_t", "uint16": "uint16_t", "uint32": "uint", "uint64": "uint64_t", "bool": "bool",
}  # fmt: skip
SOURCE += "".join(f"{slang} same_{dtype}({slang} a) {{ return a; }}\n" for dtype, slang in TYPES.items())


class Derived(torch.Tensor):
    """A subclass is read in a longer way."""


@pytest.fixture
def module() -> Any:
    return spy.Module.load_from_source(spy.create_torch_device(type=spy.DeviceType.cpu), "reading", SOURCE)


def tensors() -> dict[str, Any]:
    values = torch.arange(33 * 31, dtype=torch.float32)
    table = values.reshape(33, 31)
    return {
        "plain": values, "table": table, "transposed": table.t(), "every third": values[::3], "part": values[7:40],
        "broadcast": values[:5].expand(4, 5), "number": torch.tensor(3.5), "one": values[:1], "none": values[:0],
        "none of two": table[:, :0], "Parameter": torch.nn.Parameter(values.clone()),
        "subclass": values.clone().as_subclass(Derived), "negated": torch._neg_view(values), "gradient": values.clone().requires_grad_(),
        "inference": torch.inference_mode()(lambda: values + 1)(), "diagonal": torch.diagonal(table[:31]),
    }  # fmt: skip


@pytest.mark.parametrize("name", list(tensors()))
def test_layouts(module: Any, name: str) -> None:
    tensor = tensors()[name]
    with torch.no_grad():
        expected = 2 * tensor.detach().to(torch.float64).numpy()
        for _ in range(3):  # the later calls take over what the first worked out
            got = module.twice(tensor)
            if expected.ndim:
                assert type(got) is torch.Tensor and got.shape == tensor.shape and got.is_contiguous()
                assert got.dtype == torch.float32 and not got.requires_grad
                got = got.numpy()
            assert np.array_equal(np.asarray(got), expected)


@pytest.mark.parametrize("dtype", list(TYPES))
def test_element_types(module: Any, dtype: str) -> None:
    values = torch.tensor([0, 1, 1, 0, 1], dtype=torch.uint8).to(getattr(torch, dtype))
    for tensor in (values, values[1:4], values.reshape(1, 5)):
        got = getattr(module, f"same_{dtype}")(tensor)
        assert got.dtype == tensor.dtype and got.shape == tensor.shape
        assert np.array_equal(got.numpy(), tensor.numpy())


@pytest.mark.parametrize("name", ["plain", "part", "transposed", "subclass"])
def test_changes_are_counted(module: Any, name: str) -> None:
    tensor = tensors()[name]
    for function in (module.store, module.add_to):
        for _ in range(3):
            before = tensor._version
            function(1.0, tensor)
            assert tensor._version == before + 1
    saved = torch.ones(5, requires_grad=True)
    product = saved * (other := torch.ones(5))
    module.store(2.0, other)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        product.sum().backward()


def test_inference_tensors_are_not_written_outside(module: Any) -> None:
    with torch.inference_mode():
        tensor = torch.ones(5)
        module.store(2.0, tensor)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="Inplace update to inference tensor outside InferenceMode"):
            module.store(3.0, tensor)
    assert tensor.tolist() == [2.0] * 5


def test_gradients_follow_the_mode(module: Any) -> None:
    x = torch.ones(5, requires_grad=True)
    assert module.twice(x).requires_grad
    with torch.no_grad():
        assert not module.twice(x).requires_grad
        with torch.enable_grad():
            assert module.twice(x).requires_grad
    assert not module.twice(x.detach()).requires_grad
    module.twice(x).sum().backward()
    assert x.grad is not None and x.grad.tolist() == [2.0] * 5


def test_results_are_let_go(module: Any) -> None:
    import gc
    import weakref

    x = torch.ones(5)
    results = [weakref.ref(module.twice(x)) for _ in range(5)]
    gc.collect()
    assert all(result() is None for result in results)


def test_what_cannot_be_read(module: Any, capfd: pytest.CaptureFixture[str]) -> None:
    x = torch.ones(5)
    module.twice(x)
    for wrong, error in {
        "sparse": (x.to_sparse(), TypeError), "complex": (x.to(torch.complex64), TypeError), "meta": (x.to("meta"), TypeError),
    }.values():  # fmt: skip
        with pytest.raises(error):
            module.twice(wrong)
    for transform in (torch.func.vmap(module.twice), torch.func.grad(lambda a: module.twice(a).sum())):
        with pytest.raises((NotImplementedError, TypeError)):
            transform(x)
    assert module.twice(x).tolist() == [2.0] * 5
    assert "aoti" not in capfd.readouterr().err
