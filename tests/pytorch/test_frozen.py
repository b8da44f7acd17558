"""Tensors of which only some require grad, for every family of tensor parameters; 16-bit gradients; tensors of no elements."""

from __future__ import annotations

import itertools
from functools import cache
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from tiers import gate  # noqa: E402
from torch_support import DTYPES, TOLERANCE, device_of  # noqa: E402

import slangpy as spy  # noqa: E402

READERS = ("DiffTensor<T, 1>", "IDiffTensor<T, 1>", "ITensor<T, 1>", "DiffTensorView<T>")
SOURCE = """
import "slangpy";
[Differentiable] float plain(int i, ITensor<float, 1> w, Tensor<float, 1> x) { return w[i] * x[i]; }
[Differentiable] float by_value(float w, float x) { return w * w * x; }
[Differentiable] void by_out(float w, float x, out float y) { y = w * w * x; }
[Differentiable] void by_inout(float w, inout float x) { x = w * w * x; }
"""
for number, (first, second) in enumerate(itertools.product(READERS, READERS)):
    SOURCE += f"[Differentiable] T read{number}(int i, {first} w, {second} x) {{ return w[i] * x[i] * x[i]; }}\n"
for number, (read, written) in enumerate(itertools.product(READERS[:3], ("WDiffTensor<T, 1>", "IWTensor<T, 1>"))):
    SOURCE += f"[Differentiable] void write{number}(int i, {read} w, {read} x, {written} y) {{ y[i] = w[i] * x[i] * x[i]; }}\n"
for number, (read, both) in enumerate(
    itertools.product(READERS[:3], ("RWDiffTensor<T, 1>", "IRWTensor<T, 1>", "DiffTensorView<T>"))
):
    SOURCE += f"[Differentiable] void change{number}(int i, {read} w, {both} y) {{ y[i] = w[i] * y[i] * y[i]; }}\n"


@cache
def module_on(where: str, scalar: str) -> Any:
    source = SOURCE.replace("<T", f"<{scalar}").replace("] T ", f"] {scalar} ")
    if where == "vulkan":
        source = "\n".join(line for line in source.splitlines() if "TensorView" not in line)
    return spy.Module.load_from_source(device_of(where), f"torch_frozen_{scalar}", source)


def places(where: str) -> Any:
    if where == "vulkan" and not spy.Device.enumerate_adapters(spy.DeviceType.vulkan):
        pytest.skip("no Vulkan device here")
    return "cpu" if where == "vulkan" else where


def values(seed: int, scalar: str, device: Any, requires_grad: bool) -> Any:
    drawn = torch.rand(33, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) + 0.5
    return drawn.to(DTYPES[scalar]).to(device).requires_grad_(requires_grad)


def check(actual: Any, expected: Any, tolerance: Any = None) -> None:
    if not expected.requires_grad:
        assert actual.grad is None
        return
    tolerance = 2 * TOLERANCE[actual.dtype if tolerance is None else tolerance]
    assert actual.grad.dtype == actual.dtype
    torch.testing.assert_close(actual.grad.double(), expected.grad, rtol=tolerance, atol=tolerance)


def run(function: Any, device: Any, scalar: str, frozen: tuple[bool, ...], write: str, view: bool) -> None:
    """Gradients of a call against those of the formula in torch, for inputs that partly require grad.

    view: the gradient of a DiffTensorView is float, whatever its elements are.
    """
    ours = [values(k, scalar, device, not fixed) for k, fixed in enumerate(frozen)]
    theirs = [t.detach().double().requires_grad_(t.requires_grad) for t in ours]
    used = [t * 1 for t in ours] if write == "view" else ours
    index = spy.grid((33,))
    if write == "write":
        result = torch.zeros(33, dtype=DTYPES[scalar], device=device)
        function(index, *used, result)
    elif write == "change":
        result = used[-1] * 1
        function(index, *used[:-1], result)
    else:
        result = function(index, *used)
    expected = formula(*theirs)
    assert result.requires_grad == expected.requires_grad
    if expected.requires_grad:
        result.backward(torch.ones_like(result))
        expected.sum().backward()
    for own, other in zip(ours, theirs, strict=True):
        check(own, other, torch.float32 if view and scalar == "double" else None)


WITHOUT_VIEWS = [first * 4 + first for first in range(3)] + [1, 8]
"""Numbers of `read`: each family as both parameters, and two pairs of different ones."""
MASKS = [(False, False), (False, True), (True, False), (True, True)]
KINDS = [("cpu", "half"), ("cpu", "double"), ("cuda", "float"), ("cuda", "half"), ("vulkan", "float")]
VIEWS = 3
READ = [("cpu", "float", pair) for pair in itertools.product(range(4), range(4))] + [
    (*kind, pair)
    for kind in KINDS
    for pair in [(0, 0), (2, 0), (3, 3)]
    if VIEWS not in pair or (kind[0] != "vulkan" and kind[1] != "double")
]
WRITTEN = [("cpu", "float", number) for number in range(6)] + [(*kind, number) for kind in KINDS for number in (0, 3)]
CHANGED = [("cpu", "float", number) for number in range(9)] + [
    (*kind, number) for kind in KINDS for number in (0, 2, 4) if kind[0] != "vulkan" or number != 2
]


def in_gate(case: tuple[str, str, Any]) -> bool:
    """Of all pairs of families in float: each beside its own, and two of those of different ones."""
    on, scalar, which = case
    if (on, scalar) != ("cpu", "float"):
        return on != "cpu" or which in ((0, 0), (3, 3), 0, 2)
    if isinstance(which, tuple):
        return which[1] == which[0] or which in ((0, 1), (2, 3))
    return which in FORMS_IN_GATE


FORMS_IN_GATE = (0, 3, 4, 8)
"""Numbers of `write` and `change`: each family that is read, and each that is written."""


def formula(w: Any, x: Any) -> Any:
    return w * x * x


@pytest.fixture
def on(request: pytest.FixtureRequest) -> str:
    if request.param == "cuda" and not torch.cuda.is_available():
        pytest.skip("torch has no CUDA device")
    return request.param


class TestFrozen:
    @pytest.mark.parametrize(("on", "scalar", "pair"), gate(READ, in_gate), indirect=["on"])
    def test_read(self, on: str, scalar: str, pair: tuple[int, int]) -> None:
        function = getattr(module_on(on, scalar), f"read{pair[0] * 4 + pair[1]}")
        for frozen in MASKS if scalar == "float" and pair in ((0, 0), (1, 2), (3, 3)) else MASKS[1:3]:
            run(function, places(on), scalar, frozen, "view" if VIEWS in pair else "", VIEWS in pair)

    @pytest.mark.parametrize(("on", "scalar", "number"), gate(WRITTEN, in_gate), indirect=["on"])
    def test_written(self, on: str, scalar: str, number: int) -> None:
        function = getattr(module_on(on, scalar), f"write{number}")
        for frozen in MASKS[:3] if number == 0 else MASKS[1:3]:
            run(function, places(on), scalar, frozen, "write", False)

    @pytest.mark.parametrize(("on", "scalar", "number"), gate(CHANGED, in_gate), indirect=["on"])
    def test_changed(self, on: str, scalar: str, number: int) -> None:
        function = getattr(module_on(on, scalar), f"change{number}")
        for frozen in MASKS[:3] if number == 0 else MASKS[1:3]:
            run(function, places(on), scalar, frozen, "change", number % 3 == 2)

    def test_modes(self, where: str) -> None:
        module = module_on(where, "float")
        w, x = values(0, "float", where, True), values(1, "float", where, False)
        for index in WITHOUT_VIEWS:
            call = getattr(module, f"read{index}")
            for fixed in (w.detach(), torch.nn.Parameter(w.detach().clone(), requires_grad=False)):
                assert not call(spy.grid((33,)), fixed, x).requires_grad
            with torch.no_grad():
                assert not call(spy.grid((33,)), w, x).requires_grad
            with torch.inference_mode():
                assert call(spy.grid((33,)), w, x).is_inference()

    def test_other_constants(self, where: str) -> None:
        """Arrays and slangpy Tensors without gradients are constants, too."""
        module, x = module_on(where, "float"), values(1, "float", where, True)
        w = np.linspace(1, 2, 33, dtype=np.float32)
        for constant in (w, spy.Tensor.from_numpy(device_of(where), w)):
            for index in WITHOUT_VIEWS:
                (g,) = torch.autograd.grad(getattr(module, f"read{index}")(spy.grid((33,)), constant, x).sum(), [x])
                torch.testing.assert_close(g.cpu(), torch.from_numpy(w) * 2 * x.detach().cpu())

    def test_tensors_of_ours_still_need_theirs(self, where: str) -> None:
        module, device = module_on(where, "float"), device_of(where)
        w, x = (spy.Tensor.from_numpy(device, np.ones(3, np.float32)) for _ in range(2))
        seed = spy.Tensor.from_numpy(device, np.ones(3, np.float32)).with_grads()
        with pytest.raises(ValueError, match=r"requires a tensor with an associated output gradient; attach one"):
            module.read0.bwds(spy.grid((3,)), w.with_grads(), x, _result=seed)

    def test_view_of_a_leaf(self, where: str) -> None:
        """One that is only read is an input; doubles keep theirs as doubles."""
        for scalar in ("float", "double"):
            w = values(0, scalar, where, True)
            module_on(where, scalar).read15(spy.grid((33,)), w, w.detach()).sum().backward()
            torch.testing.assert_close(w.grad, w.detach() ** 2)

    @pytest.mark.parametrize("name", gate(["float32", "float16"], lambda name: name == "float32"))
    def test_by_hand(self, where: str, name: str) -> None:
        """A float32 gradient of a 16-bit tensor, as `diff_pair` allows, and one of its own type."""
        module = module_on(where, "half")
        w, x = values(0, "half", where, False), values(1, "half", where, False)
        for index in WITHOUT_VIEWS:
            grads = [torch.zeros(33, dtype=getattr(torch, name), device=where) for _ in range(2)]
            seed = spy.diff_pair(None, torch.ones(33, dtype=torch.float16, device=where))
            pairs = [spy.diff_pair(t, g) for t, g in zip((w, x), grads, strict=True)]
            getattr(module, f"read{index}").bwds(spy.grid((33,)), *pairs, _result=seed)
            torch.testing.assert_close(grads[0].double(), (x * x).double(), rtol=4e-3, atol=4e-3)
            torch.testing.assert_close(grads[1].double(), (2 * w * x).double(), rtol=4e-3, atol=4e-3)

    def test_negated_primal_by_hand(self, where: str) -> None:
        x = torch.tensor([1 + 2j, 2 + 3j], device=where).conj().imag
        assert x.is_neg()
        g = torch.zeros(2, device=where)
        call = module_on(where, "float").by_value.bwds
        call(spy.diff_pair(x, g), 1.0, _result=spy.diff_pair(None, torch.ones(2, device=where)))
        assert g.tolist() == [-4, -6]

    def test_bfloat16(self, where: str) -> None:
        w = values(0, "float", where, True)
        x = values(1, "float", where, False).to(torch.bfloat16)
        for fixed in (x, x.clone().requires_grad_(True)):
            y = module_on(where, "float").read0.convert("safe")(spy.grid((33,)), w, fixed)
            y.sum().backward()
            torch.testing.assert_close(w.grad, fixed.detach().float() ** 2)
            w.grad = None
            if fixed.requires_grad:
                assert fixed.grad.dtype == torch.bfloat16
                torch.testing.assert_close(fixed.grad, (2 * w * fixed).detach().bfloat16(), rtol=1e-2, atol=1e-2)


SHAPES = [(0,), (0, 4), (4, 0), (0, 0), (2, 0, 3)]


class TestNoElements:
    """NumPy gives empty arrays strides of any kind; torch takes them over."""

    @pytest.mark.parametrize("shape", gate([(shape,) for shape in SHAPES], lambda case: case[0] in ((0,), (2, 0, 3))))
    def test_all_places(self, where: str, shape: tuple[int, ...]) -> None:
        def empty(requires_grad: bool = False) -> Any:
            for made in (np.zeros(shape, np.float32), np.zeros((*shape, 2), np.float32)[..., 0]):
                yield torch.from_numpy(made).to(where).requires_grad_(requires_grad)

        module = module_on(where, "float")
        for w, x, y in itertools.product(empty(), empty(), empty()):
            assert module.by_value(w, x).shape == shape and module.by_value(w, x, _result=y) is y
            module.by_out(w, x, y)
            module.by_inout(w, y)
            module.by_out(w, w, w)  # the same view several times
        for w, x, y in itertools.product(empty(True), empty(), empty()):
            module.by_out(w, x, y)
            (g,) = torch.autograd.grad(y.sum(), [w])
            assert g.shape == shape
        for w, x, g in itertools.product(empty(), empty(), empty()):
            module.by_value.bwds(spy.diff_pair(w, g), spy.diff_pair(x, g.clone()), _result=spy.diff_pair(None, x))
        for w, seed in itertools.product(empty(True), empty()):
            module.by_value(w, 2.0).backward(seed)
            assert w.grad.shape == shape

    def test_beside_others(self, where: str) -> None:
        base = torch.arange(6, device=where, dtype=torch.float32)
        module = module_on(where, "float")
        module.by_inout(base[3:3], base[1:5][:0])  # no element of one memory is shared
        one = torch.ones(1, device=where)
        module.by_out(one, one, base[2:2])
        assert base.tolist() == [0, 1, 2, 3, 4, 5]

    def test_expanded_is_still_refused(self, where: str) -> None:
        y = torch.zeros(1, device=where).expand(3)
        with pytest.raises(RuntimeError, match="single memory location"):
            module_on(where, "float").by_out(torch.ones(3, device=where), 1.0, y)
