"""Copies and pickles of functions, modules, types, tensors, generators and packed values."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from calls_support import source

import slangpy as spy

pytestmark = pytest.mark.one

SOURCE = """
struct Pair { float x; int2 n; float total() { return x + n.x + n.y; } }
float scaled;
[Differentiable] float square(float x) { return x * x; }
float times(float x, float k) { return x * k * scaled; }
float of_pair(Pair p) { return p.x + p.n.x; }
"""


@pytest.fixture
def m(device: spy.Device) -> Any:
    return source(device, "copied", SOURCE)


def runs(device: spy.Device) -> bool:
    return device.info.type is not spy.DeviceType.null


def test_copies_of_handles_are_themselves(m: Any, device: spy.Device) -> None:
    for thing in (device, m, m.square, m.square.bwds, m.Pair, m.square.map((0,)), spy.grid((3,)), spy.pack(m, 2.0)):
        assert copy.copy(thing) is thing
        assert copy.deepcopy([thing])[0] is thing


def test_methods_of_copied_instances_are_their_own(m: Any) -> None:
    instances = spy.InstanceList(m.Pair, {"x": np.ones(3, np.float32), "n": np.zeros((3, 2), np.int32)})
    assert instances.total._bound is instances
    for copied in (copy.copy(instances), copy.deepcopy(instances)):
        assert copied.total._bound is copied
    instances.total = 1  # an attribute of the user's
    assert copy.copy(instances).total == 1


def test_what_maps_alike_is_kept(m: Any) -> None:
    square = m.square
    assert square.map((0,)) is square.map((0,)) and square.map(x=(0,)) is square.map(x=(0,))
    assert square.map((0,)) is not square.map((1,)) and square.map((0,)) is not square.map(x=(0,))
    with pytest.raises(ValueError, match="holds call dimensions"):
        square.map((0.0,))
    first = square.map((0,))
    for dim in range(1, 40):
        square.map((dim,))
    assert len(square._mapped) <= 16 and square.map((0,)) is not first


def test_copies_of_tensors(m: Any, device: spy.Device) -> None:
    values = np.arange(66, dtype=np.float32).reshape(33, 2)
    tensor = spy.Tensor.from_numpy(device, values).with_grads()
    view, deep = copy.copy(tensor), copy.deepcopy(tensor)
    assert view.storage is tensor.storage and view.grad is tensor.grad
    assert deep.grad_in is deep.grad_out and deep.grad is not tensor.grad
    tensor.copy_from_numpy(values + 1)
    if runs(device):
        assert (view.to_numpy() == values + 1).all() and (deep.to_numpy() == values).all()
    strided = copy.deepcopy(tensor[::-2])
    assert strided.is_contiguous() and tuple(strided.shape) == (17, 2)


@pytest.mark.parametrize("shape", [(0,), (1,), (31,), (3, 0, 2), (33, 5)])
def test_tensors_travel(m: Any, device: spy.Device, shape: tuple[int, ...]) -> None:
    values = np.random.default_rng(1).normal(size=shape).astype(np.float32)
    tensor = spy.Tensor.from_numpy(device, values).with_grads()
    again = pickle.loads(pickle.dumps(tensor[::-1] if shape[0] else tensor))
    assert again.device is device and tuple(again.shape) == shape and again.grad_out is not None
    if runs(device):
        assert (again.to_numpy() == values[::-1]).all()


@pytest.mark.parametrize("dtype", ["half", "double", "int64_t", "uint8_t", "bool", "float3", "float2x3", "int16_t"])
def test_element_types_travel(device: spy.Device, dtype: str) -> None:
    try:
        tensor = spy.Tensor.zeros(device, (3, 5), dtype)
    except (RuntimeError, ValueError) as error:
        pytest.skip(f"{dtype}: {error}")
    if runs(device):
        ones = np.ones(tensor.to_numpy().shape, tensor.to_numpy().dtype)
        tensor.copy_from_numpy(ones)
    again = pickle.loads(pickle.dumps(tensor))
    assert again.dtype == tensor.dtype and (again.to_numpy() == tensor.to_numpy()).all()


@pytest.mark.needs_kernels
def test_tensors_of_structs_travel(m: Any, device: spy.Device) -> None:
    tensor = spy.Tensor.zeros(device, (3,), m.Pair)
    cursor = tensor.cursor()
    for i in range(3):
        cursor[i].write({"x": i + 0.5, "n": spy.int2(i, 7)})
    cursor.apply()
    again = pickle.loads(pickle.dumps(tensor))
    assert m.of_pair(again, _result="numpy").tolist() == [0.5, 2.5, 4.5]
    assert m.Pair.total(again, _result="numpy").tolist() == [7.5, 9.5, 11.5]


@pytest.mark.needs_kernels
def test_functions_travel_with_their_modifiers(m: Any, device: spy.Device) -> None:
    x = spy.Tensor.from_numpy(device, np.arange(3, dtype=np.float32))
    function = m.times.map((0,), (1,)).set(scaled=2.0)
    again = pickle.loads(pickle.dumps(function))
    expected = np.arange(3)[:, None] * np.array([1, 10]) * 2
    k = np.array([1, 10], np.float32)
    assert (again(x, k, _result="numpy") == expected).all()
    assert again.module.device is device, "the device of this process is used again"
    assert pickle.loads(pickle.dumps(m.square.return_type("numpy")))(x).tolist() == [0, 1, 4]
    instance = spy.InstanceList(m.Pair, {"x": 1.0, "n": spy.int2(2, 3)})
    assert pickle.loads(pickle.dumps(instance.total))() == 6.0
    pair = spy.diffPair(3.0)
    pickle.loads(pickle.dumps(m.square.bwds))(pair, _result=spy.diffPair(0.0, 1.0))
    assert pair.grad == 6.0


@pytest.mark.needs_kernels
def test_values_travel(m: Any, device: spy.Device) -> None:
    x = np.arange(4, dtype=np.float32)
    for value in (spy.grid((4,), offset=(1,), stride=(-2,)), spy.rand_float(seed=3), spy.wang_hash(seed=2), spy.thread_id()):
        again = pickle.loads(pickle.dumps(value))
        assert repr(again) == repr(value)
    packed = pickle.loads(pickle.dumps(spy.pack(m, x)))
    assert (m.square(packed, _result="numpy") == x * x).all()


def test_each_of_several_alike_devices_is_found(device: spy.Device) -> None:
    options = spy.SlangCompilerOptions.given(device.desc.compiler_options)
    other = spy.Device(type=device.info.type, compiler_options=options)
    for one in (device, other):
        again = pickle.loads(pickle.dumps(spy.Tensor.zeros(one, (3,), "float")))
        assert again.device is one
    written = pickle.dumps(other)
    other.close()
    assert pickle.loads(written) is not other, "it is closed: another one takes its place"


CHILD = """
import pickle, sys
import numpy as np
import slangpy as spy
function, tensor, pair, opened = pickle.load(open(sys.argv[1], "rb"))
assert tensor.device is function.module.device is pair.device
assert (tensor.to_numpy() == np.arange(33, dtype=np.float32)).all()
print(function(tensor, _result="numpy").sum(), pair.dtype.full_name, len(spy.Device.get_created_devices()))
"""


@pytest.mark.needs_kernels
def test_another_process(device: spy.Device, tmp_path: Path) -> None:
    """Where no device is open yet; from a file, which is there, and from text."""
    (tmp_path / "kept.slang").write_text(SOURCE)
    for module in (source(device, "travels", SOURCE), spy.Module.load_from_file(device, tmp_path / "kept.slang")):
        tensor = spy.Tensor.from_numpy(device, np.arange(33, dtype=np.float32))
        file = tmp_path / "things.pickle"
        with file.open("wb") as stream:
            pickle.dump((module.square, tensor, spy.Tensor.zeros(device, (2,), module.Pair), device), stream)
        done = subprocess.run([sys.executable, "-c", CHILD, str(file)], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert done.stdout.split() == ["11440.0", "Pair", "1"]


def test_what_cannot_travel(device: spy.Device) -> None:
    wrapped = spy.Module(device.load_module_from_source("wrapped_by_hand", "int f() { return 1; }"))
    with pytest.raises(pickle.PicklingError, match=r"wrapped_by_hand.*Module\.load_from_file"):
        pickle.dumps(wrapped.f)
    module = source(device, "short_lived", SOURCE)
    tensor = spy.Tensor.zeros(device, (2,), module.Pair)
    copied = copy.deepcopy(tensor)
    assert copied.dtype.full_name == "Pair"


def test_references_and_pairs_are_copied(m: Any) -> None:
    reference, pair = spy.floatRef(2.0), spy.DiffPair(np.float32([1, 2]), np.float32([3, 4]), False)
    for copied in (copy.copy, copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value))):
        other = copied(reference)
        assert other.value == 2.0
        other.value = 5.0
        assert reference.value == 2.0
        twin = copied(pair)
        assert twin.primal.tolist() == [1, 2] and twin.grad.tolist() == [3, 4] and twin.needs_grad is False
        twin.grad = None
        assert pair.grad.tolist() == [3, 4]
