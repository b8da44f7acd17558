"""Calls whose memory lies where it lay before take over what an earlier call worked out (src/native/call/stages/repeat.h)."""

from __future__ import annotations

import gc
import sys
import threading

import numpy as np
import pytest

import slangpy as spy

SOURCE = """
[Differentiable] float scale(float x, float a) { return a * x; }
float shifted(float x, inout float total, float a) { total += a; return x + total; }
[Differentiable] float read(DiffTensor<float, 1> x, int i) { return 2 * x[i]; }
"""


@pytest.fixture
def module(device):
    if device.info.type == spy.DeviceType.null:
        pytest.skip("runs no kernel")
    return spy.Module.load_from_source(device, "repeated_calls", SOURCE)


def test_numbers_and_contents_are_those_of_each_call(device, module):
    x, y = (spy.Tensor.empty(device, (33,), "float") for _ in range(2))
    for i in range(8):
        values = np.random.default_rng(i).standard_normal(33).astype(np.float32)
        x.copy_from_numpy(values)
        module.scale(x, float(i), _result=y)
        np.testing.assert_allclose(y.to_numpy(), values * np.float32(i), rtol=1e-6)
        np.testing.assert_allclose(module.scale(x, float(i), _result="numpy"), values * np.float32(i), rtol=1e-6)


def test_arguments_take_turns(device, module):
    values = np.random.default_rng(0).standard_normal((6, 31)).astype(np.float32)
    tensors = [spy.Tensor.from_numpy(device, row) for row in values]
    outputs = [spy.Tensor.empty(device, (31,), "float") for _ in values]
    for i in np.random.default_rng(1).integers(0, 6, 60):
        module.scale(tensors[i], float(i + 1), _result=outputs[i])
        np.testing.assert_allclose(outputs[i].to_numpy(), values[i] * np.float32(i + 1), rtol=1e-6)
    wide = spy.Tensor.empty(device, (31,), "float")
    for i in range(6):  # a result of the last call is read by the next
        module.scale(tensors[i], 3.0, _result=wide)
        module.scale(wide, 2.0, _result=wide)
        np.testing.assert_allclose(wide.to_numpy(), values[i] * 6, rtol=1e-6)


def test_shapes_change_in_place(device, module):
    array = np.arange(1, 13, dtype=np.float32)
    out = np.empty(12, np.float32)
    for _ in range(3):
        module.scale(array, 2.0, _result=out)
        np.testing.assert_array_equal(out, array * 2)
        view, target = array[::2], np.empty(6, np.float32)
        module.scale(view, 3.0, _result=target)
        np.testing.assert_array_equal(target, view * 3)
        module.scale(array[:6], 3.0, _result=target)
        np.testing.assert_array_equal(target, array[:6] * 3)


def test_overlap_is_seen_each_time(device, module):
    for _ in range(4):
        base = spy.Tensor.from_numpy(device, np.arange(9, dtype=np.float32))
        for _ in range(4):
            before = base.to_numpy()
            module.scale(base[:8], 2.0, _result=base[1:])
            np.testing.assert_array_equal(base.to_numpy(), np.concatenate([before[:1], before[:8] * 2]))


def test_gradients_add_up(device, module):
    x = spy.Tensor.from_numpy(device, np.arange(33, dtype=np.float32)).with_grads()
    y = spy.Tensor.empty(device, (33,), "float").with_grads()
    y.grad.copy_from_numpy(np.ones(33, np.float32))
    for i in range(1, 6):
        module.scale.bwds(x, 3.0, _result=y)
        np.testing.assert_allclose(x.grad.to_numpy(), np.full(33, 3.0 * i))
    a = spy.diffPair(2.0)
    for i in range(5):
        x.copy_from_numpy(np.full(33, i, np.float32))
        module.scale.bwds(x, a, _result=y)
        assert a.grad == pytest.approx(33 * i)
        a.grad = 0.0
    index = np.zeros(33, np.int32)
    x.grad.clear()
    for i in range(1, 5):
        module.read.bwds(x, index, _result=y)
        assert x.grad.to_numpy()[0] == 66 * i


def test_references_are_read_and_written_each_time(device, module):
    total = spy.ValueRef(1.0)
    for i in range(5):
        assert module.shifted(10.0, total, 1.0) == 12.0 + i
        assert total.value == 2.0 + i


def test_memory_is_not_kept(device, module):
    x, y = (spy.Tensor.from_numpy(device, np.ones(1000, np.float32)) for _ in range(2))
    for _ in range(5):
        module.scale(x, 2.0, _result=y)
    device.wait_for_idle()
    storage = x.storage
    before = sys.getrefcount(storage)
    del x
    gc.collect()
    assert sys.getrefcount(storage) <= before


def test_threads_repeat_calls_of_their_own(device, module):
    failures = []

    def work(number: int) -> None:
        x = spy.Tensor.from_numpy(device, np.full(100, number, np.float32))
        y = spy.Tensor.empty(device, (100,), "float")
        for i in range(50):
            module.scale(x, float(i), _result=y)
            if not (y.to_numpy() == number * i).all():
                failures.append((number, i))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_another_device_is_refused_still(device, module):
    x, y = (spy.Tensor.from_numpy(device, np.ones(5, np.float32)) for _ in range(2))
    for _ in range(4):
        module.scale(x, 2.0, _result=y)
    other = spy.create_device(type=device.info.type)
    try:
        foreign = spy.Tensor.from_numpy(other, np.ones(5, np.float32))
        with pytest.raises(Exception, match="device"):
            module.scale(foreign, 2.0, _result=y)
    finally:
        other.close()
