"""What the other torch tests leave out: dtypes without arithmetic, elements that are never stored, refused modes."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch_support import device_of  # noqa: E402

import slangpy as spy  # noqa: E402

SOURCE = """
import "slangpy";
[Differentiable] float polynomial(float a, float b, float c, float x) { return a * x * x + b * x + c; }
[Differentiable] void poly_out(float x, out float y) { y = 3 * x; }
[Differentiable] void square_some(int i, IRWTensor<float, 1> data) { data[i] = data[i] * data[i]; }
[Differentiable] void square_once(int i, IRWTensor<float, 1> data)
{
    float v = data.load_once(i);
    data.store(i, v * v);
}
[Differentiable] void square_diff(int i, RWDiffTensor<float, 1> data) { data[i] = data[i] * data[i]; }
[Differentiable] void square_half(int i, IRWTensor<half, 1> data) { data[i] = data[i] * data[i]; }
[Differentiable] void twice_stored(int i, IRWTensor<float, 1> data)
{
    data[i] = data[i] * 3;
    data[i] = data[i] * data[i];
}
[Differentiable] void from_neighbour(int i, ITensor<float, 1> other, IRWTensor<float, 1> data) { data[i] = data[i] * other[i]; }
[Differentiable] void sometimes(inout float v) { if (v > 2) v = v * v; }
[Differentiable] void write_some(int i, ITensor<float, 1> x, IWTensor<float, 1> y) { y[i] = x[i] * x[i]; }
[Differentiable] float pick(float v[3]) { return v[0] * v[1] + v[2] * v[2]; }
uint16_t u16(uint16_t x) { return x + uint16_t(1); }
uint u32(uint x) { return x + 1; }
uint64_t u64(uint64_t x) { return x + 1; }
int8_t i8(int8_t x) { return x + int8_t(1); }
int16_t i16(int16_t x) { return x + int16_t(1); }
float3 vector(float x) { return float3(x); }
"""


@cache
def rules_on(where: str) -> Any:
    return spy.Module.load_from_source(device_of(where), "torch_rules", SOURCE)


@pytest.fixture
def rules(where: str) -> Any:
    return rules_on(where)


def leaf(where: str, *values: float, dtype: Any = torch.float32) -> Any:
    return torch.tensor(values, device=where, dtype=dtype, requires_grad=True)


class TestElementsNeverStored:
    """An in-place operation on some elements: the others pass their gradient through."""

    @pytest.mark.parametrize("name", ["square_some", "square_once", "square_diff"])
    def test_pass_gradient(self, rules: Any, where: str, name: str) -> None:
        x = leaf(where, 1, 2, 3, 4)
        v = x * 1
        getattr(rules, name)(spy.grid((2,)), v)
        weights = torch.tensor([1.0, 10, 100, 1000], device=where)
        (v * weights).sum().backward()
        assert v.tolist() == [1, 4, 3, 4] and x.grad.tolist() == [2, 40, 100, 1000]

    def test_half(self, rules: Any, where: str) -> None:
        x = leaf(where, 1, 2, 3, dtype=torch.float16)
        v = x * 1
        rules.square_half(spy.grid((2,)), v)
        v.sum().backward()
        assert x.grad.dtype == torch.float16 and x.grad.tolist() == [2, 4, 1]

    def test_stored_twice(self, rules: Any, where: str) -> None:
        x = leaf(where, 1, 2, 3)
        v = x * 1
        rules.twice_stored(spy.grid((2,)), v)
        v.sum().backward()
        expected = x.detach().clone().requires_grad_(True)
        torch.cat([9 * expected[:2] ** 2, expected[2:]]).sum().backward()
        assert v.tolist() == [9, 36, 3]
        torch.testing.assert_close(x.grad, expected.grad)

    def test_two_calls(self, rules: Any, where: str) -> None:
        x = leaf(where, 1, 2, 3, 4)
        v = x * 1
        rules.square_some(spy.grid((2,)), v)
        rules.square_some(spy.grid((1,), offset=(3,)), v)
        v.sum().backward()
        assert v.tolist() == [1, 4, 3, 16] and x.grad.tolist() == [2, 4, 1, 8]

    def test_only_the_other_wants_gradient(self, rules: Any, where: str) -> None:
        other = leaf(where, 2, 3, 5)
        data = torch.tensor([1.0, 2, 3], device=where)
        rules.from_neighbour(spy.grid((2,)), other, data)
        data.sum().backward()
        assert data.tolist() == [2, 6, 3] and other.grad.tolist() == [1, 2, 0]

    def test_by_value(self, rules: Any, where: str) -> None:
        x = leaf(where, 1, 2, 3, 4)
        v = x * 1
        rules.sometimes(v)
        v.sum().backward()
        assert v.tolist() == [1, 2, 9, 16] and x.grad.tolist() == [1, 1, 6, 8]

    def test_write_only_gets_none(self, rules: Any, where: str) -> None:
        x, old = leaf(where, 1, 2, 3), leaf(where, 1, 1, 1)
        y = old * 5
        rules.write_some(spy.grid((2,)), x, y)
        y.sum().backward()
        assert y.tolist() == [1, 4, 5] and x.grad.tolist() == [2, 4, 0] and (old.grad is None or not old.grad.any())

    @pytest.mark.parametrize("name", ["square_some", "square_diff"])
    def test_where_tensors_are_copied(self, name: str) -> None:
        if not spy.Device.enumerate_adapters(spy.DeviceType.vulkan):
            pytest.skip("no Vulkan device here")
        x = leaf("cpu", 1, 2, 3, 4)
        v = x * 1
        getattr(rules_on("vulkan"), name)(spy.grid((2,)), v)
        (v * torch.tensor([1.0, 10, 100, 1000])).sum().backward()
        assert v.tolist() == [1, 4, 3, 4] and x.grad.tolist() == [2, 40, 100, 1000]


class TestDtypes:
    @pytest.mark.parametrize(
        ("name", "dtype"),
        [("u16", torch.uint16), ("u32", torch.uint32), ("u64", torch.uint64), ("i8", torch.int8), ("i16", torch.int16)],
    )
    def test_integers(self, rules: Any, where: str, name: str, dtype: Any) -> None:
        y = getattr(rules, name)(torch.tensor([3, 9], dtype=dtype, device=where))
        assert y.dtype == dtype and y.tolist() == [4, 10]

    @pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2])
    def test_storage_floats_are_widened(self, rules: Any, where: str, dtype: Any) -> None:
        x = torch.tensor([1.0, 2, 3, 4], device=where).to(dtype)
        with pytest.raises(ValueError, match="does not match slang type"):
            rules.polynomial(2, 8, -1, x)
        y = rules.polynomial.convert("safe")(2, 8, -1, x)
        assert y.dtype == torch.float32 and y.tolist() == [9, 23, 41, 63]

    def test_refused(self, rules: Any, where: str) -> None:
        if where == "cpu":
            with pytest.raises(TypeError, match=r"Unsupported torch layout torch\._mkldnn"):
                rules.polynomial(2, 8, -1, torch.ones(3).to_mkldnn())
        with pytest.raises(TypeError, match=r"Unsupported torch layout torch\.sparse_csr"):
            rules.polynomial(2, 8, -1, torch.eye(3, device=where).to_sparse_csr())

    @pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.int32])
    def test_outputs_are_never_cast(self, rules: Any, where: str, dtype: Any) -> None:
        x = torch.ones(3, device=where)
        for call in (
            lambda y: rules.polynomial(2, 8, -1, x, _result=y), lambda y: rules.poly_out(x, y),
        ):  # fmt: skip
            with pytest.raises(ValueError, match="does not match slang type float"):
                call(torch.empty(3, dtype=dtype, device=where))

    def test_outputs_hold_every_element(self, rules: Any, where: str) -> None:
        x = torch.ones(4, device=where)
        for call in (
            lambda: rules.polynomial(2, 8, -1, x, _result=torch.empty(1, device=where)),
            lambda: rules.poly_out(x, torch.empty((), device=where)),
            lambda: rules.vector(x, _result=torch.empty(3, device=where)),
        ):
            with pytest.raises(ValueError, match="no element of its own for each invocation"):
                call()
        assert rules.polynomial(2, 8, -1, x[:1], _result=torch.empty(3, device=where)).tolist() == [9, 9, 9]


class TestModes:
    def test_forward_mode_is_refused(self, rules: Any, where: str) -> None:
        from torch.autograd import forward_ad

        with forward_ad.dual_level():
            x = torch.ones(3, device=where)
            assert rules.polynomial(2, 8, -1, x).tolist() == [9, 9, 9]
            with pytest.raises(NotImplementedError, match=r"torch\.autograd"):
                rules.polynomial(2, 8, -1, forward_ad.make_dual(x, x))

    def test_func_transforms_are_refused(self, rules: Any, where: str) -> None:
        x = torch.ones(3, device=where)
        for transform in (
            lambda: torch.func.grad(lambda t: rules.polynomial(2, 8, -1, t).sum())(x),
            lambda: torch.func.jvp(lambda t: rules.polynomial(2, 8, -1, t), (x,), (x,)),
        ):
            with pytest.raises(NotImplementedError, match=r"torch\.autograd"):
                transform()

    def test_negated_seed(self, rules: Any, where: str) -> None:
        seed = torch.randn(4, dtype=torch.complex64, device=where).conj().imag
        assert seed.is_neg()
        for _ in range(2):  # through Python, then natively
            x = leaf(where, 1, 2, 3, 4)
            rules.polynomial(2, 8, -1, x).backward(seed)
            torch.testing.assert_close(x.grad, ((4 * x.detach() + 8) * seed).resolve_neg())

    def test_jacobian(self, rules: Any, where: str) -> None:
        x = torch.tensor([1.0, 2], device=where)
        found = torch.autograd.functional.jacobian(lambda t: rules.polynomial(2, 8, -1, t), x)
        assert found.tolist() == [[12, 0], [0, 16]]

    def test_saved_on_cpu(self, rules: Any, where: str) -> None:
        x = leaf(where, 1, 2, 3, 4)
        with torch.autograd.graph.save_on_cpu():
            y = rules.polynomial(2, 8, -1, x)
        y.sum().backward()
        assert x.grad.tolist() == [12, 16, 20, 24]

    def test_lists_of_tensors(self, rules: Any, where: str) -> None:
        parts = [leaf(where, k).reshape(()) for k in (1.0, 2.0, 3.0)]
        for part in parts:
            part.retain_grad()
        rules.pick(parts).backward()
        assert [p.grad.item() for p in parts] == [2, 1, 6]

    def test_closed_device(self, where: str) -> None:
        device = spy.create_torch_device(type=spy.DeviceType[where])
        function = spy.Module.load_from_source(device, "torch_closed", SOURCE).polynomial
        x = leaf(where, 1, 2)
        y = function(2, 8, -1, x)
        device.close()
        for call in (lambda: function(2, 8, -1, x), lambda: y.sum().backward()):
            with pytest.raises(RuntimeError, match="device is closed"):
                call()

    def test_what_is_asked_for_changes(self, rules: Any, where: str) -> None:
        """One graph, backward passes for different inputs: native plans are kept for each set."""
        a, x = leaf(where, 2.0), leaf(where, 1, 2, 3, 4)
        y = rules.polynomial(a, 8, -1, x).sum()
        for _ in range(3):
            for wanted, expected in (
                ([a], [[30.0]]),
                ([x], [[12.0, 16, 20, 24]]),
                ([x, a], [[12.0, 16, 20, 24], [30.0]]),
            ):
                assert [g.tolist() for g in torch.autograd.grad(y, wanted, retain_graph=True)] == expected
