"""Backward kernels compile for CUDA, in all their forms, wherever NVRTC is installed; none runs."""

from __future__ import annotations

import os

import pytest
from gradcheck import SOURCE, load, seeded, tensor, with_grad
from tiers import gate

import slangpy as spy
from slangpy.plan.specification import Sums
from slangpy.testing import CudaCodegen, nvrtc_available

pytestmark = pytest.mark.skipif(
    not nvrtc_available() and "nvrtc" not in os.environ.get("SLANGPY_TEST_REQUIRE", ""), reason="NVRTC is not installed"
)
FLAT, GENERAL, LINEAR, UNIFORM, PERIODIC = 1, 0, 1, 2, 3


@pytest.fixture(scope="module")
def cpu() -> spy.Device:
    return spy.create_device(type=spy.DeviceType.cpu)


@pytest.fixture(scope="module", params=["sm_75"])
def module(request: pytest.FixtureRequest) -> spy.Module:
    return CudaCodegen(request.param).load_from_source("gradients_cuda", SOURCE.read_text())


def variant(*classes: int, flat: bool = False) -> int:
    """The key of src/native/call/plan/plan.h."""
    return FLAT * flat | sum(access << (3 + 2 * i) for i, access in enumerate(classes))


def struct(device, m, name, shape):
    return spy.Tensor.zeros(device, shape, load(device)[name]).with_grads()


GRID = [[0.0] * 3] * 5
CALLS = {
    "owned": (lambda d, m: (m.power, (with_grad(d, GRID), 1.0, seeded(d, GRID))), variant(LINEAR, LINEAR, flat=True)),
    "scattered": (lambda d, m: (m.power, (with_grad(d, GRID), 1.0, seeded(d, GRID))), variant(GENERAL, LINEAR)),
    "reduced": (lambda d, m: (m.power, (with_grad(d, [1]), 1.0, seeded(d, GRID))), variant(UNIFORM, LINEAR, flat=True)),
    "periodic": (lambda d, m: (m.power, (with_grad(d, [1] * 3), 1.0, seeded(d, GRID))), variant(PERIODIC, LINEAR)),
    "pair": (lambda d, m: (m.power, (spy.diffPair(1.0), 1.0, seeded(d, GRID))), variant(LINEAR, flat=True)),
    "half": (lambda d, m: (m.polynomial_f16, (with_grad(d, [1], "half"), 0, 0, 1, seeded(d, [1] * 9, "half"))), variant(UNIFORM, LINEAR)),
    "double": (lambda d, m: (m.polynomial_f64, (with_grad(d, [1] * 3, "double"), 0, 0, 1, seeded(d, GRID, "double"))), variant(PERIODIC, LINEAR)),
    "bfloat16": (lambda d, m: (m.polynomial.convert("safe"), (spy.Tensor.zeros(d, (5, 3), "BFloat16").with_grads(), 0, 0, 1, seeded(d, GRID))), variant(LINEAR, LINEAR)),
    "bfloat16_scattered": (lambda d, m: (m.polynomial.convert("safe"), (spy.Tensor.zeros(d, (5, 3), "BFloat16").with_grads(), 0, 0, 1, seeded(d, GRID))), variant(GENERAL, LINEAR)),
    "half_gathered": (lambda d, m: (m.half_struct, (spy.grid((4,)), struct(d, m, "HalfPair", (4,)), seeded(d, [1] * 4))), variant()),
    "matrix": (lambda d, m: (m.transform, (with_grad(d, [[[0] * 3] * 3] * 5), spy.float3(1), seeded(d, GRID))), variant(UNIFORM, LINEAR)),
    "struct": (lambda d, m: (m.weigh, (struct(d, m, "Bundle", (3,)), seeded(d, GRID))), variant(PERIODIC, LINEAR)),
    "struct_scattered": (lambda d, m: (m.weigh, (struct(d, m, "Bundle", (3,)), seeded(d, GRID))), variant(GENERAL, LINEAR)),
    "struct_gathered": (lambda d, m: (m.of_bundle, (spy.grid((3,)), struct(d, m, "Bundle", (3,)), seeded(d, [1] * 3))), variant()),
    "own_addition": (lambda d, m: (m.of_counted, (spy.grid((3,)), struct(d, m, "Counted", (3,)), seeded(d, [1] * 3))), variant()),
    "linear": (lambda d, m: (m.linear, (spy.grid((2,)), with_grad(d, [[1, 2], [3, 4]]), with_grad(d, [1, 2]), with_grad(d, [1, 2]), seeded(d, [1, 2]))), variant()),
    "in_place": (lambda d, m: (m.square_it, (spy.grid((4,)), tensor(d, [1] * 4).with_grads(tensor(d, [1] * 4), tensor(d, [1] * 4)))), variant()),
    "custom": (lambda d, m: (m.smoothstep_of, (spy.grid((4,)), with_grad(d, [1] * 4), seeded(d, [1] * 4))), variant()),
    "wide_half": (lambda d, m: (m.of_half, (spy.grid((4,)), tensor(d, [1] * 4, "half").with_grads(grad_out=tensor(d, [1] * 4)), seeded(d, [1] * 4, "half"))), variant()),
}  # fmt: skip


SUMMED_IN_GATE = ("scattered", "reduced", "pair", "bfloat16", "half_gathered", "struct")
"""Of each kind of sum, and of each kind of element."""
UNORDERED_IN_GATE = (
    "owned", "reduced", "periodic", "half", "double", "bfloat16_scattered", "matrix", "struct_scattered", "struct_gathered",
    "own_addition", "in_place", "wide_half",
)  # fmt: skip
"""Each form of kernel, with the elements that the others leave out; "linear" is built above."""


def test_checked_indices_compile(cpu, module):
    make, key = CALLS["linear"]
    function, arguments = make(cpu, module)
    spy.set_check_bounds(True)
    try:
        view = module.device.build(function.bwds, *arguments)
        built = view.kernels.build(key).built
    finally:
        spy.set_check_bounds(False)
    assert "_spy_check_bounds = true" in built.source
    assert built.kernel[:4] == b"\x7fELF"


def test_copies_of_small_gradients_compile(cpu, module):
    function, arguments = CALLS["linear"][0](cpu, module)
    view = module.device.build(function.bwds, *arguments)
    assert view.spec.can_privatize
    for key in (1 << 62, 1 << 62 | 1 << 63, 1 << 62 | 1 << 63 | 1):  # the adding kernel; sums of floats, of doubles
        assert view.kernels.build(key).built.kernel[:4] == b"\x7fELF"


@pytest.mark.parametrize("name", gate([n for n in CALLS if n != "own_addition"], lambda name: name in SUMMED_IN_GATE))
def test_deterministic_kernels_compile(cpu, module, name):
    make, key = CALLS[name]
    function, arguments = make(cpu, module)
    module.device.deterministic = True
    try:
        view = module.device.build(function.bwds, *arguments)
    finally:
        module.device.deterministic = False
    assert view.kernels.build(key).built.kernel[:4] == b"\x7fELF"
    summed = [i for i, leaf in enumerate(view.spec.leaves) if getattr(leaf.kind, "sums", Sums()).ratio]
    assert summed
    for leaf in summed:
        assert view.kernels.build(1 << 63 | leaf).built.kernel[:4] == b"\x7fELF"


@pytest.mark.parametrize("name", gate(CALLS, lambda name: name in UNORDERED_IN_GATE))
def test_kernel_compiles(cpu, module, name):
    make, key = CALLS[name]
    function, arguments = make(cpu, module)
    view = module.device.build(function.bwds, *arguments)
    built = view.kernels.build(key).built
    assert built.kernel[:4] == b"\x7fELF"
    assert "bwd_diff(_spy_function)" in built.source
    if name in ("reduced", "pair", "matrix", "half"):
        assert "_spy_group_sum(" in built.source
        assert "return;" not in built.source
    assert ("_spy_period_sum(" in built.source) == (key & 0b11000 == 0b11000)
