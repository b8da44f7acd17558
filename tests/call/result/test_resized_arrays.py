"""Memory that was taken away between the moment it was bound and the one it is used: refused, never read."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from calls_support import source

import slangpy as spy

pytestmark = pytest.mark.needs_kernels

SOURCE = """
float twice(float x) { return x * 2; }
void add(inout float x, float y) { x += y; }
float total(Tensor<float, 1> t) { float s = 0; for (int i = 0; i < 3; i++) s += t[i]; return s; }
"""
GONE = "the NumPy array was resized"


@pytest.fixture
def m(device: Any) -> Any:
    return source(device, "resized_arrays", SOURCE)


@pytest.fixture
def host(device: Any) -> None:
    if device.info.type is not spy.DeviceType.cpu:
        pytest.skip("copies arrays")


def taken(size: int) -> list[np.ndarray]:
    """Grows to another place, and what was there before is overwritten."""
    return [np.full(size, -7, np.float32) for _ in range(8)]


@pytest.mark.parametrize("size", [0, 2, 100_000], ids=["empty", "smaller", "larger"])
@pytest.mark.parametrize("part", [False, True], ids=["whole", "view"])
@pytest.mark.usefixtures("host")
def test_prepared_calls(m: Any, size: int, part: bool) -> None:
    x = np.ones(1001, np.float32)
    out = np.zeros(999 if part else 1001, np.float32)
    step = m.twice.prepare(x=x[2:] if part else x, _result=out)
    step()
    assert out.tolist() == [2] * len(out)
    x.resize(size, refcheck=False)
    kept = taken(1001)
    with pytest.raises(RuntimeError, match=f"twice: argument x: {GONE}"):
        step()
    step.set(x=np.full(len(out), 3, np.float32))
    step()
    assert out.tolist() == [6] * len(out)
    del kept


@pytest.mark.usefixtures("host")
def test_prepared_outputs_and_results(m: Any) -> None:
    x, y = np.zeros(1001, np.float32), np.ones(1001, np.float32)
    step = m.add.prepare(x, y)
    step()
    x.resize(5, refcheck=False)
    with pytest.raises(RuntimeError, match=f"add: argument x: {GONE}"):
        step()
    made = m.twice.prepare(y, _result="numpy")
    result = made()
    result.resize(100_000, refcheck=False)
    with pytest.raises(RuntimeError, match=f"twice: the result: {GONE}"):
        made()
    whole = m.total.prepare(y)
    assert whole() == 3
    y.resize(1, refcheck=False)
    with pytest.raises(RuntimeError, match=f"total: argument t: {GONE}"):
        whole()


@pytest.mark.usefixtures("host")
def test_tensors_over_an_array(m: Any, device: Any) -> None:
    x = np.ones(1001, np.float32)
    tensor = spy.Tensor.from_dlpack(device, x)
    assert m.total(tensor) == 3
    x.resize(100_000, refcheck=False)
    for use in (
        lambda: m.total(tensor),
        lambda: m.twice(tensor),
        lambda: tensor.to_numpy(),
        lambda: tensor.device_address,
    ):
        with pytest.raises(RuntimeError, match=GONE):
            use()


def test_calls_see_arrays_as_they_are(m: Any) -> None:
    """What is bound anew at each call may have any size by then."""
    x = np.ones(1001, np.float32)
    for size in (1001, 5, 70_000):
        x.resize(size, refcheck=False)
        x[:] = 1
        got = m.twice(x, _result="numpy")
        assert got.shape == (size,) and (got == 2).all()


def test_prepared_calls_over_what_was_closed(m: Any, device_type: spy.DeviceType) -> None:
    """A device of its own: closing it takes the memory of the prepared call."""
    device = spy.create_device(device_type)
    module = source(device, "resized_closed", SOURCE)
    x = spy.Tensor.from_numpy(device, np.ones(5, np.float32))
    step = module.twice.prepare(x)
    assert step().to_numpy().tolist() == [2] * 5
    device.close()
    with pytest.raises(RuntimeError, match="closed"):
        step()


def test_prepared_calls_over_tensors_that_point_elsewhere(m: Any, device: Any) -> None:
    """The launch keeps what it was made with."""
    x = spy.Tensor.from_numpy(device, np.ones(1001, np.float32))
    other = spy.Tensor.from_numpy(device, np.full(1001, 5, np.float32))
    step = m.twice.prepare(x)
    x.point_to(other)
    kept = [spy.Tensor.from_numpy(device, np.full(1001, -7, np.float32)) for _ in range(4)]
    assert step().to_numpy().tolist() in ([2] * 1001, [10] * 1001)
    del kept
