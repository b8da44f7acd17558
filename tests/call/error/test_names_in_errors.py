"""What errors call things: the user's parameter, which of two equal devices, and what to write instead."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pytest

import slangpy as spy
from slangpy.plan import store

pytestmark = [pytest.mark.needs_kernels, pytest.mark.one]

SOURCE = """
import slangpy;
float first(ITensor<float3, 1> points) { return points[0].x; }
float fill(RWBuffer<float> typed_values, int i) { typed_values[i] = i; return 1; }
float pick(Tensor<float, 1> x, int i) { return x[i]; }
[shader("compute")] [numthreads(1, 1, 1)]
void raw(uint3 thread : SV_DispatchThreadID, uniform RWTensor<float, 1> written) { written[int(thread.x)] = 1; }
"""


@pytest.fixture
def module(device: spy.Device) -> spy.Module:
    return spy.Module.load_from_source(device, "names_in_errors", SOURCE)


def raw_kernel(device: spy.Device) -> Any:
    module = device.load_module_from_source("names_in_errors_raw", SOURCE)
    return device.create_compute_kernel(device.link_program([module], [module.entry_point("raw")]))


@pytest.mark.parametrize("kind", ["numpy", "torch", "tensor"])
def test_floats_for_a_tensor_of_vectors(device: spy.Device, module: spy.Module, kind: str) -> None:
    array = np.arange(15, dtype=np.float32).reshape(5, 3)
    value: Any = array
    makes = "Tensor.from_numpy(device, array, target_slang_dtype='float3')"
    made = spy.Tensor.from_numpy(device, array, target_slang_dtype="float3")
    if kind == "torch":
        torch = pytest.importorskip("torch")
        value, makes = torch.from_numpy(array), "Tensor.from_torch(device, tensor, dtype='float3')"
        made = spy.Tensor.from_torch(device, value, dtype="float3")
    elif kind == "tensor":
        value, makes = spy.Tensor.from_numpy(device, array), "a Tensor of float3"
    with pytest.raises(ValueError) as caught:
        module.first(value)
    assert f"declare the parameter as ITensor<float, 2>, or pass {makes}, whose last" in str(caught.value)
    assert module.first(made) == 0  # what it says works


def test_other_elements_get_the_other_advice(module: spy.Module) -> None:
    for array in (np.zeros((5, 3), np.int32), np.zeros(3, np.float32)):
        with pytest.raises(ValueError, match="convert the container, or take elements as parameters"):
            module.first(array)


def test_a_buffer_without_a_format(device: spy.Device, module: spy.Module) -> None:
    if device.type not in (spy.DeviceType.cpu, spy.DeviceType.vulkan):
        pytest.skip("typed buffers need no format here, or there are none")
    buffer = device.create_buffer(size=64, usage=spy.BufferUsage.unordered_access)
    with pytest.raises(ValueError, match="::fill: parameter 'typed_values' takes a buffer that was created with a format"):
        module.fill(buffer, 1)


@pytest.mark.filterwarnings("ignore:nanobind")
def test_a_tensor_that_was_never_initialised(device: spy.Device) -> None:
    with pytest.raises(TypeError, match="^written: this Tensor was never initialised"):
        raw_kernel(device).dispatch(thread_count=[4, 1, 1], written=spy.Tensor.__new__(spy.Tensor))


def test_two_devices_of_one_name() -> None:
    ours, theirs = spy.Device(type=spy.DeviceType.cpu), spy.Device(type=spy.DeviceType.cpu)
    both = "both are CPU devices.*made by two calls of create_device"
    x = spy.Tensor.zeros(theirs, (4,), "float")
    module = spy.Module.load_from_source(ours, "names_in_errors_two", SOURCE)
    with pytest.raises(ValueError, match=f"argument x is on another device.*{both}"):
        module.pick(x, 1)
    with pytest.raises(ValueError, match=f"'written._data'.*belongs to another device.*{both}"):
        raw_kernel(ours).dispatch(thread_count=[4, 1, 1], written=x)
    foreign = theirs.load_module_from_source("foreign", SOURCE)
    with pytest.raises(ValueError, match=f"belongs to another device.*{both}"):
        ours.create_compute_kernel(theirs.link_program([foreign], [foreign.entry_point("raw")]))


def test_a_device_that_is_closed_meanwhile(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is no fault of the plan on disk."""
    source = "float stored_by_one(float x) { return x * 2; }"
    device = spy.Device(type=spy.DeviceType.cpu)
    assert spy.Module.load_from_source(device, "stored_plan_closed", source).stored_by_one(2) == 4
    device = spy.Device(type=spy.DeviceType.cpu)
    module = spy.Module.load_from_source(device, "stored_plan_closed", source)
    decode = store._decode

    def closing(*arguments: Any) -> Any:
        device.close()  # as another thread may
        return decode(*arguments)

    monkeypatch.setattr(store, "_decode", closing)
    with caplog.at_level(logging.WARNING, "slangpy"), pytest.raises(RuntimeError, match="closed"):
        module.stored_by_one(2)
    assert device.is_closed and "unusable" not in caplog.text
