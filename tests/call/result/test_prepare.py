"""f.prepare(...): calls that only launch, with arguments replaced by name."""

from __future__ import annotations

import gc
import threading
import weakref
from typing import Any

import numpy as np
import pytest

import slangpy as spy

pytestmark = pytest.mark.needs_kernels

SOURCE = """
struct Params { float a; float b; };
float add(float a, float b) { return a + b; }
float line(Params p, float x) { return p.a * x + p.b; }
float3 shift(float3 v, float s) { return v + s; }
[Differentiable] float square(float x, float s) { return s * x * x; }
float pick(Tensor<float, 1> t, int i) { return t[i]; }
float total(Tensor<float, 1> t) { float sum = 0; for (int i = 0; i < t.shape[0]; i++) sum += t[i]; return sum; }
void scale(inout float x, float s) { x *= s; }
void store(float x, out float y) { y = x + 1; }
float sum4(float v[4], float x) { return v[0] + v[1] + v[2] + v[3] + x; }
float at(int2 p) { return p.x + 10 * p.y; }
float offset;
float moved(float x) { return x + offset; }
"""


def module_of(device: spy.Device) -> spy.Module:
    return spy.Module.load_from_source(device, "prepared", SOURCE)


def tensor(device: spy.Device, values: Any, dtype: Any = np.float32) -> spy.Tensor:
    return spy.Tensor.from_numpy(device, np.ascontiguousarray(values, dtype=dtype))


def random(*shape: int) -> np.ndarray:
    return np.random.default_rng().standard_normal(shape, dtype=np.float32)


def test_launches_with_what_memory_holds(device: spy.Device) -> None:
    a, b = random(1000), random(1000)
    x = tensor(device, a)
    prepared = module_of(device).add.prepare(x, tensor(device, b))
    assert prepared.shape == (1000,)
    assert prepared.device is device
    assert prepared.function.name == "add"
    first = prepared()
    np.testing.assert_allclose(first.to_numpy(), a.astype(np.float64) + b, rtol=1e-6)
    x.copy_from_numpy(b)
    again = prepared()
    assert again is first
    np.testing.assert_allclose(first.to_numpy(), 2.0 * b, rtol=1e-6)
    for text in ("prepared::add", device.info.type.name, "1000"):
        assert text in repr(prepared)


def test_pointers_and_numbers_by_name(device: spy.Device) -> None:
    a, b, c = random(3, 5), random(3, 5), random(3, 5)
    prepared = module_of(device).add.prepare(tensor(device, a), 2.0)
    np.testing.assert_allclose(prepared(a=tensor(device, b), b=3.0).to_numpy(), b.astype(np.float64) + 3, rtol=1e-6)
    prepared.set(a=tensor(device, c))
    np.testing.assert_allclose(prepared(b=-1).to_numpy(), c.astype(np.float64) - 1, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(prepared().to_numpy(), c.astype(np.float64) - 1, rtol=1e-6, atol=1e-6)


def test_fields_by_path(device: spy.Device) -> None:
    x, b = random(7), random(7)
    prepared = module_of(device).line.prepare({"a": 2.0, "b": tensor(device, b)}, x=tensor(device, x))
    assert prepared.names == ["p", "p.a", "p.b", "x"]
    np.testing.assert_allclose(prepared().to_numpy(), 2.0 * x + b, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(prepared(**{"p.a": 3.0}).to_numpy(), 3.0 * x + b, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(prepared(**{"p.b": tensor(device, x)}).to_numpy(), 4.0 * x, rtol=1e-5, atol=1e-6)
    whole = prepared(p={"a": 1.0, "b": tensor(device, b)})
    np.testing.assert_allclose(whole.to_numpy(), x.astype(np.float64) + b, rtol=1e-5, atol=1e-6)
    with pytest.raises(ValueError, match=r"got both p and p\.a"):
        prepared.set(p={"a": 1.0, "b": tensor(device, b)}, **{"p.a": 2.0})


def test_what_is_refused_changes_nothing(device: spy.Device) -> None:
    a = random(4)
    prepared = module_of(device).add.prepare(tensor(device, a), 1.0)
    halves = tensor(device, a, np.float16)
    columns = spy.Tensor.from_numpy(device, np.ones((4, 2), np.float32))[:, 0]
    for error, pattern, values in [
        (ValueError, r"prepared::add: set: argument a: expected .*float.*\[4\], got .*\[5\].*prepare the call again",
         {"a": tensor(device, np.ones(5))}),
        (TypeError, r"argument a: expected a Tensor of float.*got a Tensor of half", {"a": halves}),
        (TypeError, r"argument a: expected a Tensor of float.*got a float", {"a": 2.0}),
        (TypeError, r"argument b: expected a float, got a str", {"b": "2"}),
        (ValueError, r"argument a: expected strides of the same kind", {"a": columns}),
        (TypeError, r"no argument 'c' of the prepared call; it has a, b", {"c": 1.0}),
        (TypeError, r"argument a: expected", {"b": 5.0, "a": None}),
    ]:  # fmt: skip
        with pytest.raises(error, match=pattern):
            prepared(**values)
    with pytest.raises(TypeError, match="arguments by name, got 1 by position"):
        prepared(1.0)
    np.testing.assert_allclose(prepared().to_numpy(), a.astype(np.float64) + 1, rtol=1e-6)


def test_another_alignment(device: spy.Device) -> None:
    a = random(4099)
    x = tensor(device, a)
    prepared = module_of(device).add.prepare(x[0:4096], 1.0)
    for start in (0, 1, 3, 2, 0):
        moved = prepared(a=x[start : start + 4096]).to_numpy()
        np.testing.assert_allclose(moved, a[start : start + 4096].astype(np.float64) + 1, rtol=1e-6, atol=1e-6)


def test_numbers_come_back_each_time(device: spy.Device) -> None:
    module = module_of(device)
    prepared = module.add.prepare(1.5, 2.0)
    assert (prepared(), prepared(a=2.5), prepared(b=1)) == (3.5, 4.5, 3.5)
    values = random(100)
    total = module.total.prepare(tensor(device, values))
    assert total() == pytest.approx(float(values.astype(np.float64).sum()), rel=1e-4, abs=1e-4)


def test_a_given_result(device: spy.Device) -> None:
    a, first, second = random(6), tensor(device, np.zeros(6)), tensor(device, np.zeros(6))
    prepared = module_of(device).add.prepare(tensor(device, a), 1.0, _result=first)
    assert prepared() is first
    np.testing.assert_allclose(first.to_numpy(), a.astype(np.float64) + 1, rtol=1e-6)
    assert prepared(_result=second, b=2.0) is second
    np.testing.assert_allclose(second.to_numpy(), a.astype(np.float64) + 2, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(first.to_numpy(), a.astype(np.float64) + 1, rtol=1e-6)


def test_the_result_is_no_input(device: spy.Device) -> None:
    prepared = module_of(device).add.prepare(tensor(device, random(4)), 1.0)
    with pytest.raises(ValueError, match="argument a shares memory with the result of the prepared call"):
        prepared(a=prepared())


def test_outputs_and_inout(device: spy.Device) -> None:
    module = module_of(device)
    a = random(9)
    x, y = tensor(device, a), tensor(device, np.zeros(9))
    scale = module.scale.prepare(x, 2.0)
    assert scale() is None
    scale(s=0.5)
    scale()
    np.testing.assert_allclose(x.to_numpy(), 0.5 * a, rtol=1e-6)
    store = module.store.prepare(x, y)
    store()
    np.testing.assert_allclose(y.to_numpy(), 0.5 * a + 1, rtol=1e-6)
    with pytest.raises(NotImplementedError, match="prepare: argument y is a ValueRef.* pass a Tensor"):
        module.store.prepare(1.0, spy.floatRef(1.0))
    seeded = tensor(device, [1.0]).with_grads()
    with pytest.raises(NotImplementedError, match="prepare: argument s is a DiffPair.* pass a Tensor"):
        module.square.bwds.prepare(1.0, spy.floatDiffPair(1.0), _result=seeded)


def test_numpy_arrays(device: spy.Device) -> None:
    module = module_of(device)
    a = random(5)
    if device.info.type != spy.DeviceType.cpu:
        with pytest.raises(NotImplementedError, match="argument a is a NumPy array that is copied"):
            module.add.prepare(a, 1.0)
        return
    prepared = module.add.prepare(a, 1.0, _result="numpy")
    expected = a.astype(np.float64)
    np.testing.assert_allclose(prepared(), expected + 1, rtol=1e-6)
    a *= 2
    np.testing.assert_allclose(prepared(), 2 * expected + 1, rtol=1e-6)
    scale = module.scale.prepare(a, 0.5)
    scale()
    np.testing.assert_allclose(a, expected, rtol=1e-6)
    with pytest.raises(NotImplementedError, match="swapped byte order"):
        module.add.prepare(a.astype(">f4"), 1.0)
    with pytest.raises(NotImplementedError, match="overlap, and one of them would be copied"):
        module.store.prepare(a[:-1], a[1:])


def test_lists_vectors_and_generators(device: spy.Device) -> None:
    module = module_of(device)
    prepared = module.sum4.prepare([1.0, 2.0, 3.0, 4.0], tensor(device, [0.5, 1.5]))
    np.testing.assert_allclose(prepared().to_numpy(), [10.5, 11.5])
    np.testing.assert_allclose(prepared(v=[0.0, 1.0, 0.0, 0.0]).to_numpy(), [1.5, 2.5])
    shift = module.shift.prepare(spy.float3(1, 2, 3), tensor(device, [1.0, 2.0]))
    np.testing.assert_allclose(shift(v=spy.float3(0, 1, 0)).to_numpy(), [[1, 2, 1], [2, 3, 2]])
    rows = module.add.prepare([1.0, 2.0, 3.0], 1.0)
    np.testing.assert_allclose(rows().to_numpy(), [2, 3, 4])
    np.testing.assert_allclose(rows(a=[4.0, 5.0, 6.0], b=2.0).to_numpy(), [6, 7, 8])
    with pytest.raises(ValueError, match=r"argument a: expected a list of float with shape \[3\]"):
        rows.set(a=[1.0])
    grid = module.at.prepare(spy.grid((2, 3)))
    np.testing.assert_array_equal(grid().to_numpy(), [[0, 1, 2], [10, 11, 12]])
    with pytest.raises(ValueError, match="argument p: expected"):
        grid(p=spy.grid((3, 3)))


def test_whole_tensors_and_indices(device: spy.Device) -> None:
    values, indices = random(50), np.random.default_rng().integers(0, 50, 20, dtype=np.int32)
    prepared = module_of(device).pick.prepare(tensor(device, values), tensor(device, indices, np.int32))
    np.testing.assert_array_equal(prepared().to_numpy(), values[indices])
    other = random(50)
    np.testing.assert_array_equal(prepared(t=tensor(device, other)).to_numpy(), other[indices])


def test_map_and_globals(device: spy.Device) -> None:
    module = module_of(device)
    a, b = random(3), random(4)
    outer = module.add.map((0,), (1,)).prepare(tensor(device, a), tensor(device, b))
    np.testing.assert_allclose(outer().to_numpy(), a[:, None].astype(np.float64) + b, rtol=1e-5, atol=1e-6)
    asked = []
    moved = module.moved.set(lambda _: asked.append(1) or {"offset": 5.0}).prepare(tensor(device, a))
    for _ in range(3):
        np.testing.assert_allclose(moved().to_numpy(), a.astype(np.float64) + 5, rtol=1e-5)
    assert len(asked) == 1
    np.testing.assert_allclose(moved(x=tensor(device, -a)).to_numpy(), 5 - a.astype(np.float64), rtol=1e-5)


def test_gradients(device: spy.Device) -> None:
    square = module_of(device).square
    a, b, seed = random(300), random(300), random(300)
    x, y = tensor(device, a).with_grads(zero=True), tensor(device, b).with_grads(zero=True)
    out = tensor(device, np.zeros(300)).with_grads(tensor(device, seed))
    backward = square.bwds.prepare(x, 3.0, _result=out)
    backward()
    backward()
    np.testing.assert_allclose(x.grad.to_numpy(), 12.0 * a * seed, rtol=1e-4, atol=1e-5)
    backward(x=y, s=1.0)
    np.testing.assert_allclose(y.grad.to_numpy(), 2.0 * b * seed, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(x.grad.to_numpy(), 12.0 * a * seed, rtol=1e-4, atol=1e-5)
    tangent = tensor(device, a).with_grads(tensor(device, seed))
    forward = square.fwds.prepare(tangent, 2.0)
    dual = forward()
    np.testing.assert_allclose(dual.to_numpy(), 2.0 * a * a, rtol=1e-4)
    np.testing.assert_allclose(dual.grad.to_numpy(), 4.0 * a * seed, rtol=1e-4, atol=1e-5)


def test_gradients_that_were_replaced(device: spy.Device) -> None:
    x = tensor(device, random(8)).with_grads(zero=True)
    out = tensor(device, np.zeros(8)).with_grads(tensor(device, np.ones(8)))
    backward = module_of(device).square.bwds.prepare(x, 3.0, _result=out)
    x.grad_out = None
    with pytest.raises(ValueError, match="the gradients of argument x are others than when the call was prepared"):
        backward.set(_result=out)


def test_sums_of_one_value(device: spy.Device) -> None:
    a = random(5000)
    s = tensor(device, [1.0]).with_grads(zero=True)
    x = tensor(device, a)
    out = tensor(device, np.zeros(5000)).with_grads(tensor(device, np.ones(5000)))
    backward = module_of(device).square.bwds.prepare(x, s, _result=out)
    for count in (1, 2, 3):
        backward()
        expected = count * (a.astype(np.float64) ** 2).sum()
        np.testing.assert_allclose(s.grad.to_numpy(), [expected], rtol=1e-5)


def test_deterministic_sums(device_type: spy.DeviceType) -> None:
    device = spy.create_device(type=device_type)
    device.deterministic = True
    a = random(3000)
    s = tensor(device, [1.0]).with_grads(zero=True)
    out = tensor(device, np.zeros(3000)).with_grads(tensor(device, np.ones(3000)))
    backward = module_of(device).square.bwds.prepare(tensor(device, a), s, _result=out)
    found = []
    for _ in range(3):
        s.grad.clear()
        backward()
        found.append(float(s.grad.to_numpy()[0]))
    assert len(set(found)) == 1
    assert found[0] == pytest.approx(float((a.astype(np.float64) ** 2).sum()), rel=1e-6)
    device.close()


def test_empty_calls(device: spy.Device) -> None:
    prepared = module_of(device).add.prepare(spy.Tensor.zeros(device, (0,), "float"), 1.0)
    assert prepared.shape == (0,)
    assert prepared().to_numpy().shape == (0,)
    assert prepared(b=3.0).to_numpy().shape == (0,)


def test_recording_is_refused(device: spy.Device) -> None:
    with pytest.raises(NotImplementedError, match="_append_to is for one call"):
        module_of(device).add.prepare(1.0, 2.0, _append_to=device.create_command_encoder())


def test_closed_devices(device_type: spy.DeviceType) -> None:
    device = spy.create_device(type=device_type)
    prepared = module_of(device).add.prepare(tensor(device, random(4)), 1.0)
    prepared()
    device.close()
    for use in (prepared, lambda: prepared.set(b=2.0), lambda: prepared(b=2.0)):
        with pytest.raises(RuntimeError, match="prepared::add: .*closed"):
            use()


def test_arguments_live_as_long_as_they_are_used(device: spy.Device) -> None:
    x, y = tensor(device, random(4)), tensor(device, random(4))
    kept, other = weakref.ref(x), weakref.ref(y)
    prepared = module_of(device).add.prepare(x, 1.0)
    del x
    gc.collect()
    assert kept() is not None
    prepared.set(a=y)
    del y
    gc.collect()
    assert kept() is None
    assert other() is not None
    del prepared
    gc.collect()
    assert other() is None


def test_cycles_are_collected(device: spy.Device) -> None:
    x = tensor(device, random(4))
    owner: Any = type("Owner", (), {})()
    owner.prepared = module_of(device).add.prepare(x, 1.0)
    owner.prepared._owner = owner
    gone = weakref.ref(owner)
    del owner
    gc.collect()
    assert gone() is None


def test_several_threads(device: spy.Device) -> None:
    count, values = 20000, random(20000)
    inputs = [tensor(device, values + k) for k in range(2)]
    prepared = module_of(device).add.prepare(inputs[0], 1.0)
    failed: list[BaseException] = []

    def work(k: int) -> None:
        try:
            for _ in range(100):
                prepared(a=inputs[k], b=1.0 - k) # both give the same sum
        except RuntimeError as error:
            if "another thread is setting" not in str(error):
                failed.append(error)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    found = prepared(a=inputs[1], b=0.0).to_numpy()
    np.testing.assert_allclose(found, values.astype(np.float64) + 1, rtol=1e-5, atol=1e-5)
    assert found.shape == (count,)
