"""Contents of tensors to and from the host and other libraries."""

from __future__ import annotations

import numpy as np
import pytest

import slangpy as spy
from slangpy import BufferUsage, DeviceType, Tensor


def on_host(device):
    return device.type in (DeviceType.cpu, DeviceType.null)


def exports(device):
    """Whether tensors go out without a copy."""
    return on_host(device) or device.type == DeviceType.cuda


def arange(device, *shape, dtype=np.float32):
    array = np.arange(int(np.prod(shape)), dtype=dtype).reshape(shape)
    return Tensor.from_numpy(device, array), array


# --- NumPy


def test_to_numpy_of_sparse_views(device):
    """Views whose parts lie far apart are fetched part by part."""
    tensor, array = arange(device, 40, 50000)
    for index in (np.s_[::13, 7], np.s_[:, ::49999], np.s_[::-20, 5:9], np.s_[1:2, 3:4], np.s_[:, 3]):
        np.testing.assert_array_equal(tensor[index].to_numpy(), array[index])
        tensor[index] = array[index] + 1
        array[index] += 1
    np.testing.assert_array_equal(tensor.to_numpy(), array)


def test_result_is_fresh_and_contiguous(device):
    tensor, array = arange(device, 3, 4)
    result = tensor.T.to_numpy()
    assert result.flags.c_contiguous and result.flags.writeable
    result[...] = -1
    np.testing.assert_array_equal(tensor.to_numpy(), array)


@pytest.mark.parametrize("size", [1, 3, 31, 33, 1000003])
def test_copy_from_numpy(device, size):
    tensor = Tensor.zeros(device, size, "float")
    array = np.random.default_rng(1).standard_normal(size).astype(np.float32)
    tensor.copy_from_numpy(array)
    np.testing.assert_array_equal(tensor.to_numpy(), array)


def test_copy_fills_a_prefix(device):
    tensor, array = arange(device, 3, 4)
    tensor[1:].copy_from_numpy(np.full(5, -1, np.float32))
    array.reshape(-1)[4:9] = -1
    np.testing.assert_array_equal(tensor.to_numpy(), array)
    tensor.copy_from_numpy(np.empty(0, np.float32))
    single = spy.Tensor.from_numpy(device, np.zeros((), np.float32))
    single.copy_from_numpy(single.to_numpy() + np.float32(2))  # NumPy makes scalars of arrays without dimensions
    assert single.to_numpy() == 2
    tensor.copy_from_numpy(np.ones((2, 2, 3), np.float32))
    assert tensor.to_numpy().min() == 1


def test_copy_of_vectors(device):
    pytest.importorskip("slangpy._slang")
    tensor = Tensor.full(device, (4,), 9, "float3")
    tensor.copy_from_numpy(np.arange(7, dtype=np.float32))
    assert tensor.tolist() == [[0, 1, 2], [3, 4, 5], [6, 9, 9], [9, 9, 9]]
    tensor.copy_from_numpy(np.arange(8, dtype=np.float32).reshape(4, 2))
    assert tensor.tolist() == [[0, 1, 0], [2, 3, 0], [4, 5, 0], [6, 7, 0]]
    flags = Tensor.zeros(device, (2,), "bool3")
    flags.copy_from_numpy(np.array([[1, 0, 1], [0, 1, 1]], bool))
    assert flags.tolist() == [[True, False, True], [False, True, True]]
    assert flags[:, None].permute(1, 0).to_numpy().shape == (1, 2, 3)


def test_copy_converts_only_what_is_safe(device):
    tensor = Tensor.zeros(device, 4, "float")
    tensor.copy_from_numpy(np.array([0.1, 1e300, -2, 3]))
    assert tensor.to_numpy()[0] == np.float32(0.1) and np.isinf(tensor.to_numpy()[1])
    tensor.copy_from_numpy(np.arange(16, dtype=np.uint8))
    assert tensor.to_numpy().tobytes() == bytes(range(16))
    half = Tensor.zeros(device, 2, "half")
    half.copy_from_numpy(np.array([0.1, 70000], np.float32))
    np.testing.assert_array_equal(half.to_numpy(), np.array([0.1, np.inf], np.float16))
    unsigned = Tensor.zeros(device, 2, "uint")
    unsigned.copy_from_numpy(np.array([-1, 5], np.int32))
    assert unsigned.tolist() == [2**32 - 1, 5]
    for array in (np.zeros(4, np.int32), np.zeros(4, np.uint8), np.zeros(4, np.float16), np.zeros(4, np.complex64)):
        with pytest.raises(TypeError, match=rf"{array.dtype}.*float"):
            tensor.copy_from_numpy(array)
    with pytest.raises(TypeError, match="int32"):
        unsigned.copy_from_numpy(np.zeros(2, np.int64))
    with pytest.raises(TypeError, match="list"):
        tensor.copy_from_numpy([1, 2, 3])


def test_copy_refuses(device):
    tensor, array = arange(device, 3, 4)
    with pytest.raises(ValueError, match="Destination tensor must be contiguous"):
        tensor.T.copy_from_numpy(array)
    with pytest.raises(ValueError, match="Source Numpy array must be contiguous"):
        tensor.copy_from_numpy(array[:, ::2])
    with pytest.raises(ValueError, match="Numpy array is larger than the tensor"):
        tensor[:1].copy_from_numpy(array)
    with pytest.raises(ValueError, match="Numpy array is larger than the tensor"):
        tensor.copy_from_numpy(np.zeros(13, np.float32))
    np.testing.assert_array_equal(tensor.to_numpy(), array)


def test_storage_can_be_written_directly(device):
    tensor = Tensor.zeros(device, 4, float)
    tensor.storage.copy_from_numpy(np.ones(4, np.float32))
    assert tensor.tolist() == [1] * 4


def test_array_protocol(device):
    tensor, array = arange(device, 3, 4)
    np.testing.assert_array_equal(np.asarray(tensor[::-1]), array[::-1])
    assert np.asarray(tensor, dtype=np.float64).dtype == np.float64
    if on_host(device):
        shared = tensor.__array__(copy=False)
        shared[0, 0] = 99
        assert tensor[0, 0].item() == 99
        with pytest.raises(ValueError, match="without a copy"):
            tensor.__array__(np.float64, copy=False)
    else:
        with pytest.raises(ValueError, match="without a copy"):
            tensor.__array__(copy=False)


def test_item_and_lists(device):
    pytest.importorskip("slangpy._slang")
    import slangpy as spy

    assert Tensor.full(device, (1, 1), 3, "int").item() == 3
    assert Tensor.full(device, 1, True, bool).item() is True
    assert Tensor.full(device, 1, (1, 2, 3), "float3").item() == spy.float3(1, 2, 3)
    assert Tensor.from_numpy(device, np.array([[1, 2]], np.int8)).tolist() == [[1, 2]]
    with pytest.raises(ValueError, match="6 elements"):
        Tensor.zeros(device, (2, 3), float).item()


# --- clear, cursor


@pytest.mark.parametrize("dtype", [np.uint8, np.float16, np.float32, np.float64, np.bool_])
@pytest.mark.parametrize(
    "index", [np.s_[...], np.s_[1:], np.s_[:, 1:3], np.s_[::-2, 1], np.s_[1:2, 3:], np.s_[:0]], ids=repr
)
def test_clear_touches_only_the_view(device, dtype, index):
    array = np.ones((5, 7), dtype)
    for record in (False, True):
        tensor, expected = Tensor.from_numpy(device, array), array.copy()
        expected[index] = 0
        if record:
            encoder = device.create_command_encoder()
            tensor[index].clear(command_encoder=encoder)
            np.testing.assert_array_equal(tensor.to_numpy(), array)
            device.submit_command_buffer(encoder.finish())
        else:
            tensor[index].clear()
        np.testing.assert_array_equal(tensor.to_numpy(), expected)


def test_clear_of_many_parts(device):
    tensor = Tensor.ones(device, (5000, 3), "float")
    tensor[:, 1].clear()
    np.testing.assert_array_equal(tensor.to_numpy(), np.tile(np.float32([1, 0, 1]), (5000, 1)))


def test_cursor(device):
    tensor, array = arange(device, 4, 3)
    cursor = tensor[1:].cursor(2, 3)
    assert len(cursor) == 3 and [cursor[i].read() for i in range(3)] == [5, 6, 7]
    cursor[0].write(50)
    cursor.apply()
    array[1, 2] = 50
    np.testing.assert_array_equal(tensor.to_numpy(), array)
    with pytest.raises(RuntimeError, match="contiguous"):
        tensor.T.cursor()
    for arguments in ((0, 13), (13,), (-1,), (5, 8), (0, -1)):
        with pytest.raises(IndexError, match="cursor"):
            tensor.cursor(*arguments)
    assert set(tensor.uniforms()) == {"_data", "_shape", "_strides", "_offset"}


# --- text


def test_repr(device):
    tensor = Tensor.from_numpy(device, np.arange(4, dtype=np.float32).reshape(2, 2))
    name = device.type.name
    assert repr(tensor) == (
        f"Tensor([[0., 1.], [2., 3.]], dtype=float, shape=[2, 2], device={name}, has_grad_in=false, has_grad_out=false)"
    )
    assert "has_grad_in=true, has_grad_out=true" in repr(tensor.with_grads())
    assert str(tensor) == "[[0. 1.]\n [2. 3.]]"


@pytest.mark.parametrize("shape", [(2000,), (300, 400), (7, 6, 300), (1001, 1), (3, 0), (2, 2000, 2)])
def test_large_tensors_are_summarised_as_numpy_does(device, shape):
    tensor, array = arange(device, *shape)
    assert str(tensor) == str(array)
    assert " ".join(np.array2string(array, separator=", ").split()) in " ".join(repr(tensor).split())


# --- DLPack and torch


def test_dlpack_export(device):
    tensor, array = arange(device, 4, 6)
    if not exports(device):
        with pytest.raises(BufferError, match="to_numpy"):
            tensor.__dlpack__()
        with pytest.raises(BufferError):
            tensor.__dlpack_device__()
        return
    if device.type == DeviceType.cuda:
        assert tensor.__dlpack_device__() == (2, 0)
        torch = pytest.importorskip("torch")
        for view, expected in ((tensor, array), (tensor[1:, ::2], array[1:, ::2]), (tensor[:0], array[:0])):
            shared = torch.from_dlpack(view)
            np.testing.assert_array_equal(shared.cpu().numpy(), expected)
        torch.from_dlpack(tensor).mul_(2)
        np.testing.assert_array_equal(tensor.to_numpy(), 2 * array)
        return
    assert tensor.__dlpack_device__() == (1, 0)
    for view, expected in ((tensor, array), (tensor[1:, ::2], array[1:, ::2]), (tensor[:0], array[:0])):
        np.testing.assert_array_equal(np.from_dlpack(view), expected)
    shared = np.from_dlpack(tensor)
    tensor[0, 0] = 42
    assert shared[0, 0] == 42
    copied = np.from_dlpack(tensor) if not hasattr(np, "unstack") else np.from_dlpack(tensor, copy=True)
    del tensor
    assert shared[0, 0] == 42 and copied[0, 0] == 42
    with pytest.raises(BufferError, match="device"):
        Tensor.zeros(device, 1, float).__dlpack__(dl_device=(2, 0))


def test_dlpack_refuses_structs(device):
    pytest.importorskip("slangpy._slang")
    import slangpy as spy

    if not on_host(device):
        pytest.skip("exports nothing")
    module = spy.Module.load_from_source(device, "dlpack_struct", "struct S { float a; int b; };")
    tensor = Tensor.zeros(device, 3, module.S)
    with pytest.raises(BufferError, match="S"):
        tensor.__dlpack__()
    vectors = Tensor.full(device, 2, (1, 2, 3), "float3")
    assert np.from_dlpack(vectors).tolist() == [[1, 2, 3]] * 2


@pytest.mark.parametrize("index", [np.s_[...], np.s_[::2, 1:], np.s_[::-1], np.s_[:0]], ids=repr)
@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.bool_, np.float16])
def test_from_dlpack(device, index, dtype):
    array = np.arange(24).reshape(4, 6).astype(dtype)
    tensor = Tensor.from_dlpack(device, array[index])
    np.testing.assert_array_equal(tensor.to_numpy(), array[index])
    assert tensor.shape == array[index].shape
    if on_host(device) and array[index].size:
        tensor[...] = 0
        assert not array[index].any()
    array = np.zeros((4, 6), dtype)
    array.flags.writeable = False
    copied = Tensor.from_dlpack(device, array[index])
    copied[...] = 1
    np.testing.assert_array_equal(copied.to_numpy(), np.ones_like(array[index]))
    assert not array.any()


def test_from_dlpack_keeps_the_source_alive(device):
    array = np.arange(100000, dtype=np.float32)
    tensor = Tensor.from_dlpack(device, array)[1:]
    del array
    junk = [np.full(100000, -1, np.float32) for _ in range(4)]
    np.testing.assert_array_equal(tensor.to_numpy(), np.arange(1, 100000, dtype=np.float32))
    assert junk
    encoder = device.create_command_encoder()
    tensor.clear(encoder)
    device.submit_command_buffer(encoder.finish())
    assert not tensor.to_numpy().any()


def test_from_dlpack_refuses(device):
    with pytest.raises(TypeError, match="from_dlpack"):
        Tensor.from_dlpack(device, 3)
    with pytest.raises(TypeError, match="no Slang type"):
        Tensor.from_dlpack(device, np.zeros(3, np.complex64))


def test_from_dlpack_capsule(device):
    array = np.arange(6, dtype=np.float32)
    assert Tensor.from_dlpack(device, array.__dlpack__()).tolist() == list(range(6))
    tensor = Tensor.from_dlpack(device, array)
    if on_host(device):
        np.testing.assert_array_equal(Tensor.from_dlpack(device, tensor[::2]).to_numpy(), array[::2])


def test_cuda_array_interface(device):
    assert hasattr(Tensor.zeros(device, 3, float), "__cuda_array_interface__") == (device.type == DeviceType.cuda)


def test_torch(device):
    torch = pytest.importorskip("torch")
    for dtype in (torch.float32, torch.int64, torch.uint8, torch.bool, torch.float16, torch.float64):
        source = torch.arange(12).reshape(3, 4).to(dtype)
        for part in (source, source.T, source[:, ::2], source[:0]):
            tensor = Tensor.from_torch(device, part)
            np.testing.assert_array_equal(tensor.to_numpy(), part.numpy())
    source = torch.arange(12, dtype=torch.float32, requires_grad=True)
    tensor = Tensor.from_torch(device, source)
    target = Tensor.zeros(device, 14, float)
    target.copy_from_torch(source)
    assert target.tolist() == [*range(12), 0, 0]
    with pytest.raises(ValueError, match="Tensor is larger than"):
        Tensor.zeros(device, 3, float).copy_from_torch(source)
    with pytest.raises(ValueError, match="Destination tensor must be contiguous"):
        target[::2].copy_from_torch(source[:7])
    with pytest.raises(TypeError, match=r"torch\.Tensor"):
        target.copy_from_torch(np.zeros(3))
    if not exports(device):
        with pytest.raises(RuntimeError, match="to_numpy"):
            tensor.to_torch()
        return
    shared = tensor.to_torch()
    shared[3] = -1
    assert tensor[3].item() == -1 and shared.dtype == torch.float32
    np.testing.assert_array_equal(tensor[::-1].to_torch().cpu().numpy(), tensor[::-1].to_numpy())
    if device.type == DeviceType.cuda:
        source = source.detach().cuda()
    adopted = Tensor.from_dlpack(device, source.detach())
    adopted[0] = 50
    assert source.detach()[0] == 50


def test_torch_bfloat16(device):
    torch = pytest.importorskip("torch")
    source = torch.tensor([1.0, -2.5, 3e38], dtype=torch.bfloat16)
    tensor = Tensor.from_torch(device, source)
    assert tensor.dtype.full_name == "BFloat16"
    assert tensor.to_numpy().view(np.uint16).tolist() == source.view(torch.uint16).tolist()
    assert Tensor.from_dlpack(device, source).to_numpy().view(np.uint16).tolist() == source.view(torch.uint16).tolist()
    if on_host(device):
        assert torch.equal(tensor.to_torch(), source)


def test_from_torch_with_a_dtype(device):
    torch = pytest.importorskip("torch")
    pytest.importorskip("slangpy._slang")
    source = torch.arange(12, dtype=torch.float32).reshape(4, 3)
    assert Tensor.from_torch(device, source, "float3").shape == (4,)
    with pytest.raises(ValueError, match="float"):
        Tensor.from_torch(device, source, "float2")


# --- images


def test_load_from_image(device, tmp_path):
    image = pytest.importorskip("PIL.Image")
    pytest.importorskip("OpenImageIO")
    rng = np.random.default_rng(2)
    for mode, channels in (("L", 1), ("LA", 2), ("RGB", 3), ("RGBA", 4)):
        pytest.importorskip("slangpy._slang")
        array = rng.integers(0, 256, (3, 5) if channels == 1 else (3, 5, channels), dtype=np.uint8)
        path = tmp_path / f"{mode}.png"
        image.fromarray(array, mode).save(path)
        tensor = Tensor.load_from_image(device, path)
        assert tensor.shape == (3, 5) and tensor.dtype.shape == (() if channels == 1 else (channels,))
        np.testing.assert_allclose(tensor.to_numpy(), array / 255, rtol=1e-6)
        changed = Tensor.load_from_image(device, path, flip_y=True, scale=2, offset=-1)
        np.testing.assert_allclose(changed.to_numpy(), array[::-1] / 255 * 2 - 1, atol=1e-6)
        assert Tensor.load_from_image(device, path, grayscale=True).dtype.full_name == "float"


def test_load_from_image_without_a_library(device, monkeypatch, tmp_path):
    import sys

    path = tmp_path / "x.png"
    with pytest.raises(FileNotFoundError, match=r"load_from_image: .*x\.png: no such image file"):
        Tensor.load_from_image(device, path)
    path.write_bytes(b"\x89PNG")
    monkeypatch.setitem(sys.modules, "OpenImageIO", None)
    with pytest.raises(ImportError, match=r"pip install slangpy\[images\]"):
        Tensor.load_from_image(device, path)


def test_other_memory_types(device):
    from slangpy import MemoryType

    tensor = Tensor.from_numpy(
        device, np.arange(5, dtype=np.float32), usage=BufferUsage.shader_resource, memory_type=MemoryType.upload
    )
    assert tensor.memory_type == MemoryType.upload


@pytest.mark.needs_kernels
def test_reversed_views_are_exported_as_copies(device):
    """torch.from_dlpack ends the process when it is handed negative strides."""
    if device.info.type is spy.DeviceType.vulkan:
        pytest.skip("no pointers to share")
    tensor = Tensor.from_numpy(device, np.arange(12, dtype=np.float32).reshape(3, 4))
    for view in (tensor[::-1], tensor[:, ::-2], tensor[::-1, ::-1]):
        with pytest.raises(BufferError):
            view.__dlpack__(copy=False)
        if device.info.type is spy.DeviceType.cpu:
            exported = np.from_dlpack(view)
            assert exported.tolist() == view.to_numpy().tolist()
    if device.info.type is spy.DeviceType.cpu:
        np.from_dlpack(tensor[1:])[0, 0] = 99
        assert tensor.to_numpy()[1, 0] == 99


@pytest.mark.needs_kernels
def test_reversed_views_through_torch(device):
    torch = pytest.importorskip("torch")
    if device.info.type is not spy.DeviceType.cpu:
        pytest.skip("host memory")
    tensor = Tensor.from_numpy(device, np.arange(12, dtype=np.float32).reshape(3, 4))
    assert torch.from_dlpack(tensor[::-1]).tolist() == tensor.to_numpy()[::-1].tolist()


@pytest.mark.needs_kernels
def test_assignment_of_dicts_to_structs(device):
    module = spy.Module.load_from_source(device, "tensor_dicts", "struct Item { float a; int b; float2 c; };")
    tensor = Tensor.zeros(device, (3,), module.Item)
    tensor[1] = {"a": 1.5, "b": 2, "c": (3.0, 4.0)}
    tensor[2:] = {"b": 7}
    read = [tensor.cursor()[i].read() for i in range(3)]
    assert [(r["a"], r["b"], r["c"].y) for r in read] == [(0, 0, 0), (1.5, 2, 4), (0, 7, 0)]
    with pytest.raises(Exception, match="nosuch"):
        tensor[0] = {"nosuch": 1}


@pytest.mark.needs_kernels
def test_torch_rows_that_do_not_fit_a_struct(device):
    torch = pytest.importorskip("torch")
    module = spy.Module.load_from_source(device, "tensor_rows", "struct Row { float a; float b; float c; };")
    with pytest.raises(ValueError, match=r"4 scalars, 16 bytes.*3 scalars, 12 bytes"):
        Tensor.from_torch(device, torch.zeros(2, 4), dtype=module.Row)
