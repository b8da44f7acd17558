"""torch tensors as arguments and results: where they are found, dtypes, views, forms of result, errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch_support import device_of, module_of  # noqa: E402

import slangpy as spy  # noqa: E402

pytestmark = pytest.mark.usefixtures("bridge")


def rows(where: str) -> Any:
    return torch.tensor([1.0, 2, 3, 4], device=where)


class TestResults:
    def test_documented_values(self, module: Any, where: str) -> None:
        y = module.polynomial(a=2, b=8, c=-1, x=rows(where))
        assert type(y) is torch.Tensor and y.device.type == where and y.tolist() == [9, 23, 41, 63]
        assert not y.requires_grad

    def test_zero_dimensions(self, module: Any, where: str) -> None:
        y = module.polynomial(2, 8, -1, torch.tensor(3.0, device=where))
        assert y.shape == () and y.item() == 41
        assert module.normalise(torch.tensor([3.0, 0, 4], device=where)).tolist() == pytest.approx([0.6, 0, 0.8])

    def test_broadcast(self, module: Any, where: str) -> None:
        x, b = torch.rand(2, 1, device=where), torch.rand(3, device=where)
        torch.testing.assert_close(module.polynomial(2, b, -1, x), 2 * x * x + b * x - 1)

    def test_element_shapes_and_dtypes(self, module: Any, where: str) -> None:
        x = rows(where)
        assert module.spread(x).shape == (4, 3, 2)
        assert module.spread(x)[1].tolist() == [[2, 1], [2, 3], [4, 5]]
        assert module.floor_of(x + 0.5).dtype == torch.int32
        for name, dtype, values in [
            ("wide", torch.int64, [2**40, -1]), ("next", torch.uint8, [3, 9]), ("invert", torch.bool, [True, False]),
        ]:  # fmt: skip
            given = torch.tensor(values, dtype=dtype, device=where)
            result = getattr(module, name)(given)
            expected = ~given if dtype == torch.bool else given + 1
            assert result.dtype == dtype and result.tolist() == expected.tolist()

    def test_result_forms(self, module: Any, where: str) -> None:
        x = rows(where)
        y = torch.empty_like(x)
        assert module.polynomial(2, 8, -1, x, _result=y) is y and y.tolist() == [9, 23, 41, 63]
        assert isinstance(module.polynomial(2, 8, -1, x, _result="numpy"), np.ndarray)
        assert isinstance(module.polynomial(2, 8, -1, x, _result="tensor"), spy.Tensor)
        assert isinstance(module.polynomial.return_type(torch.Tensor)(2, 8, -1, x), torch.Tensor)
        assert isinstance(module.polynomial.return_type(np.ndarray)(2, 8, -1, x), np.ndarray)
        target = spy.Tensor.empty(device_of(where), (4,), "float")
        assert module.polynomial(2, 8, -1, x, _result=target) is target
        assert target.to_numpy().tolist() == [9, 23, 41, 63]
        assert isinstance(module.lamp(x), spy.Tensor) and isinstance(module.lamp(x[0]), dict)

    def test_torch_result_without_a_torch_argument(self, module: Any, where: str) -> None:
        result = module.polynomial.return_type(torch.Tensor)(2, 8, -1, np.ones(3, np.float32))
        assert result.tolist() == [9, 9, 9] and result.device.type == where and not result.requires_grad

    def test_empty(self, module: Any, where: str) -> None:
        y = module.polynomial(2, 8, -1, torch.empty(0, 3, device=where))
        assert y.shape == (0, 3) and y.dtype == torch.float32

    def test_inference_mode(self, module: Any, where: str) -> None:
        with torch.inference_mode():
            assert module.polynomial(2, 8, -1, rows(where)).is_inference()


class TestViews:
    def test_rows_in_any_strides(self, module: Any, where: str) -> None:
        wide = torch.rand(5, 4, device=where)
        cases = [wide[:, :3].contiguous(), torch.rand(3, 5, device=where).T, wide[:, :3],
                 torch.rand(5, 1, device=where).expand(5, 3), wide[::2, :3], wide.flip(0)[:, 1:]]  # fmt: skip
        for v in cases:
            torch.testing.assert_close(module.normalise(v), v / v.norm(dim=-1, keepdim=True))

    def test_channels_last(self, module: Any, where: str) -> None:
        x = torch.rand(2, 3, 4, 5, device=where).to(memory_format=torch.channels_last)
        torch.testing.assert_close(module.polynomial(2, 8, -1, x), 2 * x * x + 8 * x - 1)

    def test_lazy_negation(self, module: Any, where: str) -> None:
        x = torch.randn(4, dtype=torch.complex64, device=where).conj().imag
        assert x.is_neg()
        torch.testing.assert_close(module.polynomial(2, 8, -1, x), (2 * x * x + 8 * x - 1).resolve_neg())

    def test_written_view(self, module: Any, where: str) -> None:
        base = torch.zeros(4, 4, device=where)
        module.add_to(rows(where), 1, base[:, 1])
        assert base[:, 1].tolist() == [2, 3, 4, 5] and base.sum() == 14

    def test_unaligned(self, module: Any, where: str) -> None:
        x = torch.rand(1001, device=where)
        for start in range(1, 5):
            v = x[start:]
            torch.testing.assert_close(module.polynomial(2, 8, -1, v), 2 * v * v + 8 * v - 1)


class TestContainers:
    def test_nested(self, module: Any, where: str) -> None:
        x = rows(where)
        surface = {"n": x, "l": x + 1, "rough": 0.5}
        torch.testing.assert_close(module.shade(surface), x * (x + 1) * 0.5)
        scene = {"first": surface, "light": {"power": x, "colour": 2.0}}
        torch.testing.assert_close(module.render(scene, x), x * (x + 1) * x + 2 * x)

    def test_mixed(self, module: Any, where: str) -> None:
        x = rows(where)
        assert module.add(x, np.ones(4, np.float32)).tolist() == [2, 3, 4, 5]
        ones = spy.Tensor.from_numpy(device_of(where), np.ones(4, np.float32))
        target = spy.Tensor.zeros(device_of(where), (4,), "float")
        assert module.add(ones, x).tolist() == [2, 3, 4, 5]
        module.add_to(x, ones, target)
        assert target.to_numpy().tolist() == [2, 3, 4, 5]

    def test_get_this(self, module: Any, where: str) -> None:
        class Holder:
            def __init__(self, value: Any) -> None:
                self.value = value

            def get_this(self) -> Any:
                return {"n": self.value, "l": self.value, "rough": 1.0}

        assert module.shade(Holder(rows(where))).tolist() == [1, 4, 9, 16]

    def test_subclasses(self, module: Any, where: str) -> None:
        class Marked(torch.Tensor):
            pass

        x = rows(where)
        for given in (torch.nn.Parameter(x, requires_grad=False), x.as_subclass(Marked)):
            y = module.polynomial(2, 8, -1, given)
            assert type(y) is torch.Tensor and y.tolist() == [9, 23, 41, 63]

    def test_instances(self, module: Any, where: str) -> None:
        x = rows(where)
        surfaces = spy.InstanceList(module.Surface, {"n": x, "l": x, "rough": torch.ones(4, device=where)})
        assert module.shade(surfaces).tolist() == [1, 4, 9, 16]

    def test_appended(self, module: Any, where: str) -> None:
        device = device_of(where)
        encoder = device.create_command_encoder()
        y = torch.zeros(4, device=where)
        module.polynomial.append_to(encoder, 2, 8, -1, rows(where), _result=y)
        with pytest.warns(RuntimeWarning, match="no_grad"):
            module.add_to.append_to(encoder, rows(where).requires_grad_(True), 1, torch.zeros(4, device=where))
        device.submit_command_buffer(encoder.finish())
        device.wait()
        assert y.tolist() == [9, 23, 41, 63]

    def test_uniforms(self, module: Any, where: str) -> None:
        assert module.amplified.set(gain=3.0)(rows(where)).tolist() == [3, 12, 27, 48]
        for given in (torch.tensor(3.0), {"gain": torch.tensor(3.0)}):
            y = (module.amplified.set(given) if isinstance(given, dict) else module.amplified.set(gain=given))(np.float32([1, 2]))
            assert type(y) is torch.Tensor and y.device.type == where and y.tolist() == [3, 12]
        assert isinstance(module.amplified.set(gain=torch.tensor(3.0))(2.0, _result="numpy"), np.ndarray)

    def test_tensors_as_uniforms(self, where: str) -> None:
        m = spy.Module.load_from_source(device_of(where), "tensors_as_uniforms", """
            import slangpy;
            struct Both { Tensor<float, 1> t; float k; };
            Tensor<int, 2> table; StructuredBuffer<float> row; uniform Both both; ParameterBlock<Both> block; RWTensor<float, 1> kept;
            float sum(float a) { return a * table[1, 0] + row[1] + both.t[1] * both.k + block.t[0]; }
            void keep(float a) { kept[1] = a; }
            """)  # fmt: skip
        table, x = torch.arange(6, dtype=torch.int32, device=where).reshape(2, 3), rows(where)
        for both in (x, x.repeat_interleave(2)[::2], x.cpu().numpy()):
            f = m.sum.set(table=table, row=x, both={"t": both, "k": 5}, block={"t": both, "k": 0})
            assert f(2.0).tolist() == 19 and f.set(table=table.mT.contiguous().mT)(x).tolist() == [16, 19, 22, 25]
        before = x._version
        m.keep.set(kept=x)(7.0)
        assert x.tolist() == [1, 7, 3, 4] and x._version > before
        with pytest.raises(ValueError, match=r"takes elements of int, got float"):
            m.sum.set(table=x, row=x, both={"t": x, "k": 1}, block={"t": x, "k": 0})(1.0)
        with pytest.raises(ValueError, match=r"global 'kept' of type RWTensor<float, 1> is written.*an array is lost"):
            m.keep.set(kept=np.zeros(2, np.float32))(1.0)


class TestWrites:
    def test_versions(self, module: Any, where: str) -> None:
        x, y = rows(where), torch.empty(4, device=where)
        before, untouched = y._version, x._version
        module.add_to(x, 1, y)
        module.polynomial(2, 8, -1, x, _result=y)
        assert y._version == before + 2 and x._version == untouched

    def test_int_in_place(self, module: Any, where: str) -> None:
        n = torch.arange(4, dtype=torch.int32, device=where)
        module.count(n)
        assert n.tolist() == [1, 2, 3, 4]

    def test_overlap(self, module: Any, where: str) -> None:
        x = rows(where)
        with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
            module.add_to(x, 1, torch.zeros(1, device=where).expand(4))
        base = torch.zeros(8, device=where)
        with pytest.raises(RuntimeError, match="refer to a single memory location"):
            module.add_to(base[:4], 1, base[2:6])
        module.add_to(x, 1, x)
        assert x.tolist() == [2, 3, 4, 5]


class TestErrors:
    @pytest.mark.parametrize(
        ("make", "kind", "text"),
        [
            (lambda w: torch.zeros(3, dtype=torch.complex64, device=w), TypeError, "Unsupported torch dtype torch.complex64"),
            (lambda w: torch.eye(3, device=w).to_sparse(), TypeError, "Unsupported torch layout torch.sparse_coo"),
            (lambda w: torch.empty(3, device="meta"), TypeError, "meta"),
            (lambda w: torch.zeros(3, dtype=torch.float64, device=w), ValueError, "does not match slang type"),
            (lambda w: torch.zeros(3, dtype=torch.int32, device=w), ValueError, "does not match slang type"),
        ],
    )  # fmt: skip
    def test_refused(self, module: Any, where: str, make: Any, kind: type[Exception], text: str) -> None:
        with pytest.raises(kind, match=text) as error:
            module.polynomial(a=2, b=8, c=-1, x=make(where))
        assert "polynomial" in str(error.value) and "x" in str(error.value)

    def test_nested_and_fake(self, module: Any) -> None:
        from torch._subclasses import FakeTensorMode

        nested = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged)
        with FakeTensorMode():
            fake = torch.empty(3)
        for given in (nested, fake):
            with pytest.raises(TypeError, match="Unsupported torch"):
                module.polynomial(2, 8, -1, given)
        with pytest.raises(NotImplementedError, match=r"torch\.autograd"):
            torch.func.vmap(lambda x: module.polynomial(2, 8, -1, x))(torch.ones(3))

    def test_wrong_device(self) -> None:
        if not torch.cuda.is_available():
            pytest.skip("torch has no CUDA device")
        with pytest.raises(ValueError, match=r"CUDA.*x\.cuda\(\)"):
            module_of("cuda").polynomial(2, 8, -1, torch.ones(3))
        with pytest.raises(ValueError, match=r"cuda:0.*cpu.*x\.cpu\(\)"):
            module_of("cpu").polynomial(2, 8, -1, torch.ones(3, device="cuda"))

    def test_number_beside_cuda_tensors(self) -> None:
        if not torch.cuda.is_available():
            pytest.skip("torch has no CUDA device")
        a = torch.tensor(2.0, requires_grad=True)
        x = torch.arange(4.0, device="cuda", requires_grad=True)
        y = module_of("cuda").polynomial(a, 8, -1, x)
        y.sum().backward()
        assert a.grad is not None and a.grad.device.type == "cpu" and a.grad.item() == 14

    def test_shapes(self, module: Any, where: str) -> None:
        with pytest.raises(ValueError, match="Shape mismatch"):
            module.add(torch.ones(3, device=where), torch.ones(4, device=where))
        with pytest.raises(ValueError, match="normalise"):
            module.normalise(torch.ones(2, 4, device=where))


class TestVulkan:
    """CPU tensors on a device that cannot read them: copies."""

    @pytest.fixture
    def vulkan(self) -> Any:
        if not spy.Device.enumerate_adapters(spy.DeviceType.vulkan):
            pytest.skip("no Vulkan device here")
        return module_of("vulkan")

    def test_calls(self, vulkan: Any) -> None:
        x = torch.rand(5, 4)
        torch.testing.assert_close(vulkan.polynomial(2, 8, -1, x), 2 * x * x + 8 * x - 1)
        y = torch.zeros(4, 5).T
        vulkan.add_to(x, 1, y)
        torch.testing.assert_close(y, x + 1)
        torch.testing.assert_close(vulkan.normalise(x[:, 1:]), x[:, 1:] / x[:, 1:].norm(dim=-1, keepdim=True))

    def test_autograd(self, vulkan: Any) -> None:
        p, x = torch.tensor([2.0], requires_grad=True), torch.tensor([1.0, 2, 3, 4], requires_grad=True)
        vulkan.polynomial(p, 8, -1, x).sum().backward()
        assert p.grad.tolist() == [30] and x.grad.tolist() == [12, 16, 20, 24]
        v = x * 1
        vulkan.scale(2.0, v)
        (g,) = torch.autograd.grad(v.sum(), [x])
        assert g.tolist() == [4, 8, 12, 16]


BUFFERS = """
float item(StructuredBuffer<float> b, int i) { return b[i]; }
void put(RWStructuredBuffer<float> b, int i, float v) { b[i] = v; }
float raw(ByteAddressBuffer b, int i) { return b.Load<float>(i * 4); }
"""


def test_host_tensors_for_buffer_parameters(where: str) -> None:
    if where != "cpu":
        pytest.skip("buffer parameters take tensors in host memory")
    module = spy.Module.load_from_source(device_of(where), "torch_buffers", BUFFERS)
    values = torch.arange(8.0)
    assert module.item(values, [0, 3]).tolist() == [0, 3]
    assert module.item(values[::2], [0, 3]).tolist() == [0, 6]  # packed for the call
    assert module.raw(values, 2).item() == 2
    version = values._version
    module.put(values, [1, 5], [10.0, 50.0])
    assert values.tolist() == [0, 10, 2, 3, 4, 50, 6, 7] and values._version > version
    module.put(values[::2], 1, -1.0)
    assert values.tolist() == [0, 10, -1, 3, 4, 50, 6, 7]
    with pytest.raises(spy.ResolveException, match="element type double"):
        module.item(values.double(), 0)
