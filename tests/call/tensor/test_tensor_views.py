"""Views, indexing and gradients of tensors."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import slangpy as spy
from slangpy import BufferUsage, Tensor


def arange(device, *shape):
    array = np.arange(int(np.prod(shape)), dtype=np.float32).reshape(shape)
    return Tensor.from_numpy(device, array), array


INDICES = [
    2, -1, np.int32(1), slice(None), slice(4, None), slice(None, None, 2), slice(None, None, -1), slice(8, 1, -3),
    slice(5, 2), ..., None, (2, slice(4, None)), (..., 1), (slice(None, None, 2), ..., 3), (None, 0, ..., None),
    (slice(-3, None), slice(None, None, -2), 0, ..., slice(1, 4, 2)), (0, 1, 2, 1), (), (..., slice(100, None)),
    (1, ..., None, 2),
]  # fmt: skip


@pytest.mark.parametrize("index", INDICES, ids=repr)
def test_indexing_is_numpys(device, index):
    tensor, array = arange(device, 10, 8, 5, 3, 5)
    view, expected = tensor[index], array[index]
    assert view.shape == expected.shape
    assert view.storage is tensor.storage
    np.testing.assert_array_equal(view.to_numpy(), expected)
    if expected.size:
        again = view[..., ::-1]
        np.testing.assert_array_equal(again.to_numpy(), expected[..., ::-1])


def test_the_listed_offsets(device):
    tensor, array = arange(device, 10, 8, 5, 3, 5)
    assert tensor[2, 4:].shape == (4, 5, 3, 5) and tensor[2, 4:].offset == 1500
    assert tensor[..., 1].shape == (10, 8, 5, 3)
    assert tensor[::2, ..., 3].shape == (5, 8, 5, 3)
    full = tensor[1, 2, 3, 1, 4]
    assert full.shape == (1,) and full.item() == array[1, 2, 3, 1, 4]
    assert tensor[None].strides[0] == 0


def test_refused_indices(device):
    tensor, _ = arange(device, 3, 4)
    for index in (3, -4, (0, 4)):
        with pytest.raises(IndexError, match="out of range"):
            tensor[index]
    with pytest.raises(IndexError, match="Too many indices for tensor of dimension 2"):
        tensor[0, 0, 0]
    with pytest.raises(IndexError, match="ellipsis"):
        tensor[..., ...]
    for index in ("x", [0, 1], np.array([True, False, True]), True, 1.0):
        with pytest.raises(
            TypeError, match=r"Illegal argument at dimension 0: Allowed are int, slice, \.\.\., or None; found"
        ):
            tensor[index]
    with pytest.raises(TypeError, match="dimension 1"):
        tensor[0, "x"]
    with pytest.raises(ValueError, match="step"):
        tensor[::0]


def test_iteration_and_len(device):
    tensor, array = arange(device, 3, 4)
    assert len(tensor) == 3
    assert [row.tolist() for row in tensor] == array.tolist()
    assert [float(x) for x in tensor[0]] == [0, 1, 2, 3]
    scalar = Tensor.from_numpy(device, np.float32(2.5))
    assert scalar.shape == () and float(scalar) == 2.5 and int(scalar) == 2 and scalar[...].item() == 2.5
    with pytest.raises(TypeError):
        len(scalar)
    with pytest.raises(TypeError):
        iter(scalar)
    with pytest.raises(ValueError, match="ambiguous"):
        bool(tensor)


def test_view(device):
    tensor, array = arange(device, 3, 4)
    np.testing.assert_array_equal(tensor.view((2, 2), (4, 1), 5).to_numpy(), [[5, 6], [9, 10]])
    np.testing.assert_array_equal(tensor.view((6, 2)).to_numpy(), array.reshape(6, 2))
    np.testing.assert_array_equal(tensor[1:].view((2,), (), 1).to_numpy(), [5, 6])
    np.testing.assert_array_equal(tensor[1:].view(4, (), -4).to_numpy(), [0, 1, 2, 3])
    np.testing.assert_array_equal(tensor.view((2, 2), (0, 1)).to_numpy(), [[0, 1], [0, 1]])
    with pytest.raises(ValueError, match=r"Shape dimensions \(2\) must match stride dimensions \(1\)"):
        tensor.view((2, 2), (1,))
    with pytest.raises(ValueError, match="Strides must be positive"):
        tensor.view((2,), (-1,), 4)
    with pytest.raises(ValueError, match="Tensor view offset is negative"):
        tensor.view((2,), (1,), -1)
    with pytest.raises(TypeError, match="strides"):
        tensor.view((2,), "ab")
    for arguments in (((13,),), ((2,), (12,)), ((4,), (), 9)):
        with pytest.raises(ValueError, match="outside its buffer"):
            tensor.view(*arguments)


VIEWS = [
    ((2, 3), (), 0), ((2, 3), (3, 1), 6), ((2, 3), (1, 2), 1), ((), (), 5), ((0, 3), (), 12), ((4,), (0,), 11), ((12,), (1,), 0),
    ((12,), (1,), 1), ((1 << 62, 4), (), 0), ((3,), (1 << 63,), 0), ((-1, 3), (), 0), ((2, 3), (1,), 0), ((3,), (-1,), 5), ((3,), (), -1),
    ((3,), (), 1 << 63), ((3.0,), (), 0), ((True, 3), (), True), (("a",), (), 0), ((3,), (None,), 0), ((3,), (), 1.0), (3, None, 2),
    ((1,) * 33, (), 0), ((np.int64(2), 3), (np.int32(3), 1), np.int64(2)), (np.array([2, 2]), (), 0),
]  # fmt: skip


@pytest.mark.parametrize("arguments", VIEWS, ids=repr)
def test_views_by_plain_tuples_are_those_of_all_else(device, arguments):
    """Plain tuples are read in one step, all else in another, which takes them too."""
    tensor = arange(device, 12)[0][2:]

    def made(view):
        try:
            found = view(*arguments)
            return tuple(found.shape), tuple(found.strides), found.offset, found.to_numpy().tolist()
        except Exception as error:
            return type(error), str(error)

    assert made(tensor.view) == made(tensor._view_checked)


def test_reshape(device):
    tensor, array = arange(device, 3, 4)
    for shape in ((12,), (2, -1), (-1,), (2, 3, 2)):
        np.testing.assert_array_equal(tensor.reshape(*shape).to_numpy(), array.reshape(shape))
        np.testing.assert_array_equal(tensor.reshape(shape).to_numpy(), array.reshape(shape))
    assert tensor[0, 0].reshape().shape == ()
    assert Tensor.empty(device, (0, 3), "int").reshape(0).shape == (0,)
    with pytest.raises(ValueError, match="do not fit"):
        tensor.reshape(5, -1)
    with pytest.raises(ValueError, match="-1"):
        tensor.reshape(-1, -1)
    with pytest.raises(RuntimeError, match="contiguous"):
        tensor.T.reshape(12)


def test_broadcast_to(device):
    tensor, array = arange(device, 3, 1)
    for shape in ((3, 1), (3, 4), (2, 3, 4), (2, 3, 1)):
        np.testing.assert_array_equal(tensor.broadcast_to(shape).to_numpy(), np.broadcast_to(array, shape))
    assert tensor.broadcast_to((5, 3, 2)).strides == (0, 1, 0)
    with pytest.raises(ValueError, match="Broadcast shape must be larger than tensor shape"):
        tensor.broadcast_to((3,))
    big = Tensor.empty(device, (32, 2), "float")
    with pytest.raises(ValueError, match="Current dimension 32 at index 0 must be equal to new dimension 16 or 1"):
        big.broadcast_to((16, 2))


def test_permute(device):
    tensor, array = arange(device, 2, 3, 4)
    np.testing.assert_array_equal(tensor.permute(2, 0, 1).to_numpy(), array.transpose(2, 0, 1))
    np.testing.assert_array_equal(tensor.permute((0, -1, 1)).to_numpy(), array.transpose(0, 2, 1))
    np.testing.assert_array_equal(tensor.T.to_numpy(), array.T)
    with pytest.raises(ValueError, match="permute"):
        tensor.permute(0, 0, 1)


def test_contiguity(device):
    tensor, array = arange(device, 4, 6)
    assert tensor.is_contiguous() and tensor[1:3].is_contiguous() and tensor.contiguous() is tensor
    assert tensor[:, :0].is_contiguous() and tensor[:1].T.is_contiguous()
    for view, expected in ((tensor[:, 1:3], array[:, 1:3]), (tensor.T, array.T), (tensor[::-1], array[::-1])):
        assert not view.is_contiguous()
        packed = view.contiguous()
        assert packed.is_contiguous() and packed.offset == 0 and packed.storage is not tensor.storage
        np.testing.assert_array_equal(packed.to_numpy(), expected)
    copied = tensor[1:].copy()
    np.testing.assert_array_equal(copied.to_numpy(), array[1:])
    tensor[...] = 0
    np.testing.assert_array_equal(copied.to_numpy(), array[1:])


def test_views_keep_the_storage_alive(device):
    tensor, array = arange(device, 1000)
    view = tensor[10:20]
    del tensor
    gc.collect()
    np.testing.assert_array_equal(view.to_numpy(), array[10:20])


def test_point_to(device):
    tensor, array = arange(device, 4, 3)
    alias = tensor[0]
    alias.point_to(tensor.with_grads()[2])
    np.testing.assert_array_equal(alias.to_numpy(), array[2])
    assert alias.offset == 6 and alias.grad.offset == 6
    with pytest.raises(ValueError, match="Shape of existing and new tensor view must match"):
        alias.point_to(tensor)
    with pytest.raises(ValueError, match="Element size of new and existing data type must match"):
        alias.point_to(Tensor.empty(device, 3, "double"))
    with pytest.raises(ValueError, match="Usage"):
        alias.point_to(Tensor.empty(device, 3, "float", usage=BufferUsage.shader_resource))
    alias.point_to(Tensor.full(device, 3, 7, "int"))
    assert alias.dtype.full_name == "float" and alias.to_numpy().view(np.int32).tolist() == [7, 7, 7]
    with pytest.raises(TypeError, match="point_to"):
        alias.point_to(3)


def test_assignment(device):
    tensor, array = arange(device, 5, 6)
    steps = [
        (np.s_[1, 2], 100), (np.s_[::2, 1::2], -1.5), (np.s_[0], np.arange(6)),
        (np.s_[:, 3], np.full(5, 9, np.float64)),
        (np.s_[::-1, 0], [1, 2, 3, 4, 5]), (np.s_[1:3], array[3:].copy()), (np.s_[4, :0], 3), (..., np.float16(2)),
    ]  # fmt: skip
    for index, value in steps:
        tensor[index] = value
        array[index] = value
        np.testing.assert_array_equal(tensor.to_numpy(), array)
    tensor[:2] = tensor[3:].T[0, 1]
    tensor[0] = Tensor.from_numpy(device, np.arange(6, dtype=np.int32))
    assert tensor[0].tolist() == [0, 1, 2, 3, 4, 5]
    with pytest.raises(ValueError, match="broadcast"):
        tensor[0] = np.zeros(5)
    with pytest.raises(TypeError):
        tensor[0] = "text"
    integers = Tensor.zeros(device, 3, "int")
    with pytest.raises(TypeError, match="int"):
        integers[0] = 1.5
    with pytest.raises(OverflowError):
        integers[0] = 2**31
    flags = Tensor.zeros(device, 3, bool)
    flags[1:] = True
    assert flags.tolist() == [False, True, True]


# --- gradients


def test_with_grads(device):
    tensor, _ = arange(device, 2, 3)
    assert tensor.grad_in is None and tensor.grad_out is None
    with pytest.raises(RuntimeError, match=r"Tensor has no grad\."):
        _ = tensor.grad
    for zero in (None, True):
        made = tensor[:, ::2].with_grads(zero=zero)
        assert made.grad_in is made.grad_out is made.grad
        assert made.grad.shape == (2, 2) and made.grad.strides == (2, 1) and made.grad.offset == 0
        assert not made.grad.to_numpy().any()
    assert tensor.grad_in is None
    assert tensor.with_grads(zero=False).grad.shape == (2, 3)
    assert made.detach().grad_in is None


def test_given_gradients(device):
    tensor, _ = arange(device, 4)
    ones, twos = Tensor.ones(device, 4, float), Tensor.full(device, 4, 2, float)
    made = tensor.with_grads(grad_in=ones, grad_out=twos)
    assert made.grad_in is ones and made.grad_out is twos and made.grad is twos
    assert ones.tolist() == [1] * 4
    only = tensor.with_grads(grad_in=ones)
    assert only.grad_out is None and only.grad is ones
    tensor.with_grads(grad_in=ones, grad_out=twos, zero=True)
    assert ones.tolist() == [0] * 4 and twos.tolist() == [0] * 4
    tensor.grad_out = ones
    assert tensor.grad is ones
    tensor.grad_out = None
    assert tensor.grad_out is None
    direct = Tensor(tensor.storage, "float", (4,), grad_out=ones)
    assert direct.grad is ones


def test_refused_gradients(device):
    tensor, _ = arange(device, 4)
    with pytest.raises(RuntimeError, match="No derivative type found for int"):
        Tensor.zeros(device, 2, "int").with_grads()
    wrong = Tensor.zeros(device, 4, "int")
    message = "Invalid element type of {} gradient for tensor of type float: Expected float, received int"
    with pytest.raises(ValueError, match=message.format("output")):
        tensor.with_grads(grad_out=wrong)
    with pytest.raises(ValueError, match=message.format("input")):
        tensor.grad_in = wrong
    with pytest.raises(ValueError, match=r"\[4\].*\[5\]"):
        tensor.with_grads(grad_in=Tensor.zeros(device, 5, float))
    with pytest.raises(TypeError, match="gradient"):
        tensor.grad_in = np.zeros(4)
    half = Tensor.zeros(device, 4, "half")
    assert half.with_grads().grad.dtype.full_name == "half"
    assert half.with_grads(grad_out=Tensor.zeros(device, 4, "float")).grad.dtype.full_name == "float"


def test_gradients_of_another_device(device, device_type):
    other = spy.Device(type=spy.DeviceType.null)
    with pytest.raises(ValueError, match="device"):
        Tensor.zeros(device, 4, float).with_grads(grad_in=Tensor.zeros(other, 4, float))
    other.close()


VIEWS = {
    "slice": lambda t: t[2:, ::2], "reversed": lambda t: t[::-1],
    "new axis": lambda t: t[None, 1], "view": lambda t: t.view((3,), (), 4),
    "reshape": lambda t: t.reshape(-1),
    "broadcast": lambda t: t.broadcast_to((2, 4, 6)), "permute": lambda t: t.permute(1, 0),
}  # fmt: skip


@pytest.mark.parametrize("name", VIEWS)
def test_views_carry_the_same_view_of_gradients(device, name):
    tensor, array = arange(device, 4, 6)
    tensor = tensor.with_grads(
        grad_in=Tensor.from_numpy(device, array + 100), grad_out=Tensor.from_numpy(device, array + 200)
    )
    view = VIEWS[name](tensor)
    np.testing.assert_array_equal(view.grad_in.to_numpy(), view.to_numpy() + 100)
    np.testing.assert_array_equal(view.grad_out.to_numpy(), view.to_numpy() + 200)
    shared = VIEWS[name](arange(device, 4, 6)[0].with_grads())
    assert shared.grad_in is shared.grad_out and shared.grad.shape == shared.shape


def test_gradients_of_other_strides(device):
    tensor, array = arange(device, 4, 6)
    columns = tensor[:, 1:3].with_grads(grad_out=Tensor.from_numpy(device, array[:, 1:3] + 5))
    np.testing.assert_array_equal(columns[::2].grad.to_numpy(), columns[::2].to_numpy() + 5)
    with pytest.raises(RuntimeError, match="detach"):
        columns.view((2,))
    assert columns.detach().view((2,), (1,)).shape == (2,)


def test_gradient_cycles_are_collected(device):
    gc.collect()
    before = len(device._live_objects())
    tensor, _ = arange(device, 4)
    tensor.grad_in = tensor.with_grads()
    tensor.grad_in.grad_in = tensor
    assert len(device._live_objects()) > before
    del tensor
    gc.collect()
    assert len(device._live_objects()) == before


@pytest.mark.null
def test_views_of_gradient_cycles_end():
    """An error, where a view of a gradient would have one of its own without end; nothing crashes."""
    device = spy.Device(type=spy.DeviceType.null)
    alone = Tensor.zeros(device, (4,), "float")
    alone.grad_in = alone
    one, other = (Tensor.zeros(device, (4,), "float") for _ in range(2))
    one.grad_in, other.grad_in = other, one
    for tensor in (alone, one):
        for view in (lambda t: t[1:3], lambda t: t[-1], list, lambda t: t.reshape((2, 2)), lambda t: t.broadcast_to((2, 4)), lambda t: t.T):
            with pytest.raises(RecursionError):
                view(tensor)
        assert tensor.detach()[1:3].shape == (2,)
