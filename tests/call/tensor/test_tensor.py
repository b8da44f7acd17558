"""Making tensors, their dtypes and properties."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import slangpy as spy
from slangpy import BufferUsage, MemoryType, Shape, Tensor
from slangpy.reflection.dtypes import resolve_dtype, structured_dtype
from slangpy.tensor import TensorDesc

SCALARS = {
    "bool": np.bool_, "int8_t": np.int8, "int16_t": np.int16, "int": np.int32, "int64_t": np.int64,
    "uint8_t": np.uint8, "uint16_t": np.uint16, "uint": np.uint32, "uint64_t": np.uint64,
    "half": np.float16, "float": np.float32, "double": np.float64,
}  # fmt: skip
SIZES = [0, 1, 31, 33, 1000003]

SOURCE = """
struct Ray : IDifferentiable { float t; float2 uv; };
struct Mixed { bool b; int3 i; half h[3]; float2x3 m; Ray ray; };
enum class Color { red, green };
"""


@pytest.fixture
def module(device):
    pytest.importorskip("slangpy._slang")
    return spy.Module.load_from_source(device, "tensor_types", SOURCE)


def values(dtype, shape, seed=0):
    generator = np.random.default_rng(seed)
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return generator.integers(0, 2, shape).astype(bool)
    if dtype.kind == "f":
        return generator.standard_normal(shape).astype(dtype)
    bounds = np.iinfo(dtype)
    return generator.integers(bounds.min, bounds.max, shape, dtype=dtype, endpoint=True)


@pytest.mark.parametrize("name", SCALARS)
@pytest.mark.parametrize("size", SIZES)
def test_scalars_go_there_and_back(device, name, size):
    array = values(SCALARS[name], size)
    tensor = Tensor.from_numpy(device, array)
    assert tensor.dtype.full_name == name
    assert tensor.shape == (size,)
    result = tensor.to_numpy()
    assert result.dtype == array.dtype
    np.testing.assert_array_equal(result, array)


def test_from_numpy_takes_any_strides(device):
    base = np.arange(2 * 6 * 5, dtype=np.int32).reshape(2, 6, 5)
    arrays = [
        base[:, ::2, 1:4], base[::-1, :, ::-2], base.T, np.broadcast_to(base[0, 0], (3, 5)), np.asfortranarray(base),
        np.int32(7), base[:, :0], base.astype(">i4"),
    ]  # fmt: skip
    for array in map(np.asarray, arrays):
        tensor = Tensor.from_numpy(device, array)
        assert tensor.shape == array.shape
        assert tensor.is_contiguous()
        np.testing.assert_array_equal(tensor.to_numpy(), array)


def test_from_numpy_refuses_what_has_no_slang_type(device):
    with pytest.raises(TypeError, match="complex64"):
        Tensor.from_numpy(device, np.zeros(2, np.complex64))
    with pytest.raises(TypeError, match="no Slang type"):
        Tensor.from_numpy(device, np.array(["a"]))
    with pytest.raises(ValueError, match="target_slang_dtype"):
        Tensor.from_numpy(device, np.zeros(2, [("x", "f4")]))


def test_numpy_is_deprecated(device):
    with pytest.warns(DeprecationWarning, match=r"deprecated.*from_numpy"):
        tensor = Tensor.numpy(device, np.ones(3, np.float32))
    assert tensor.tolist() == [1, 1, 1]


@pytest.mark.parametrize("shape", [(4,), [2, 3], Shape(2, 3), 5, (0,), (3, 0, 2), np.int64(3)])
def test_shapes(device, shape):
    tensor = Tensor.empty(device, shape, "float")
    assert tensor.shape == (shape if not isinstance(shape, (int, np.integer)) else (int(shape),))
    assert tensor.to_numpy().shape == tuple(tensor.shape)


def test_refused_shapes(device):
    for make in (Tensor.empty, Tensor.zeros, Tensor.ones):
        with pytest.raises(ValueError, match="zero dimensions"):
            make(device, (), "float")
        with pytest.raises(ValueError, match=r"Element type \(dtype\) must be specified"):
            make(device, (2,))
    with pytest.raises(ValueError, match="negative"):
        Tensor.empty(device, (2, -1), "float")
    with pytest.raises(TypeError, match="shape"):
        Tensor.empty(device, "ab", "float")
    with pytest.raises(TypeError, match="Device"):
        Tensor.empty(3, (2,), "float")


@pytest.mark.parametrize("name", SCALARS)
@pytest.mark.parametrize("size", [1, 3, 31, 257])
def test_filled(device, name, size):
    dtype = SCALARS[name]
    np.testing.assert_array_equal(Tensor.zeros(device, size, name).to_numpy(), np.zeros(size, dtype))
    np.testing.assert_array_equal(Tensor.ones(device, size, name).to_numpy(), np.ones(size, dtype))
    value = True if name == "bool" else 5
    tensor = Tensor.full(device, (size, 2), value, name)
    np.testing.assert_array_equal(tensor.to_numpy(), np.full((size, 2), value, dtype))


def test_full_of_vectors_and_refused_values(device):
    pytest.importorskip("slangpy._slang")
    assert Tensor.full(device, 2, 3, "float3").tolist() == [[3, 3, 3]] * 2
    assert Tensor.full(device, 2, (1, 2, 3), spy.float3).tolist() == [[1, 2, 3]] * 2
    assert Tensor.ones(device, 2, "half3x3").to_numpy().tolist() == [np.ones((3, 3)).tolist()] * 2
    assert Tensor.full(device, 1, -(2**40) - 1, "int64_t").item() == -(2**40) - 1
    with pytest.raises(ValueError, match="float"):
        Tensor.full(device, 2, (1, 2), "float3")
    with pytest.raises(TypeError, match="int"):
        Tensor.full(device, 2, 1.5, "int")
    with pytest.raises(OverflowError, match="uint8_t"):
        Tensor.full(device, 2, 256, "uint8_t")


def test_filling_structs(device, module):
    assert not Tensor.zeros(device, 3, module.Mixed).to_numpy().any()
    with pytest.raises(TypeError, match="Ray"):
        Tensor.ones(device, 3, module.Ray)


def test_like(device):
    source = Tensor.full(device, (3, 4), 2, "int", usage=BufferUsage.shader_resource)[:, ::2]
    for make, expected in ((Tensor.empty_like, None), (Tensor.zeros_like, 0), (Tensor.ones_like, 1)):
        made = make(source)
        assert made.shape == [3, 2] and made.strides == [2, 1] and made.offset == 0
        assert made.usage == source.usage and made.memory_type == source.memory_type
        assert made.dtype == source.dtype and made.storage is not source.storage
        assert expected is None or (made.to_numpy() == expected).all()


# --- dtypes


@pytest.mark.parametrize(
    "form, name",
    [
        ("float", "float"), ("half", "half"), ("int32_t", "int"), ("float64_t", "double"), (float, "float"),
        (int, "int"), (bool, "bool"), (np.float32, "float"), (np.dtype("u2"), "uint16_t"), (np.dtype(">f8"), "double"),
    ],
)  # fmt: skip
def test_scalar_dtype_forms(device, form, name):
    assert resolve_dtype(device, form).full_name == name


@pytest.mark.parametrize(
    "form, name, shape",
    [
        ("float3", "vector<float,3>", (3,)), ("vector<int,2>", "vector<int,2>", (2,)),
        ("float2x3", "matrix<float,2,3>", (2, 3)), ("float[4]", "float[4]", (4,)),
        ("float2[3]", "vector<float,2>[3]", (3, 2)), ("int[2][3]", "int[2][3]", (3, 2)),
        ("uint8_t4", "vector<uint8_t,4>", (4,)),
    ],
)  # fmt: skip
def test_compound_dtype_forms(device, form, name, shape):
    pytest.importorskip("slangpy._slang")
    tensor = Tensor.zeros(device, (2,), form)
    assert (tensor.dtype.full_name, tensor.dtype.shape) == (name, shape)
    array = values(tensor.to_numpy().dtype, (2, *shape))
    np.testing.assert_array_equal(Tensor.from_numpy(device, array, target_slang_dtype=form).to_numpy(), array)


def test_vector_classes_as_dtype(device):
    pytest.importorskip("slangpy._slang")
    assert resolve_dtype(device, spy.float3).full_name == "vector<float,3>"
    assert resolve_dtype(device, spy.float2x3).full_name == "matrix<float,2,3>"


def test_torch_dtypes(device):
    torch = pytest.importorskip("torch")
    for dtype, name in ((torch.float32, "float"), (torch.bfloat16, "BFloat16"), (torch.uint8, "uint8_t")):
        assert resolve_dtype(device, dtype).full_name == name
    with pytest.raises(ValueError, match="complex64"):
        resolve_dtype(device, torch.complex64)


def test_module_types_as_dtype(device, module):
    assert Tensor(device, element_type=module.float, shape=(4,)).dtype.full_name == "float"
    for form in (module.Ray, module.Ray.type, module.layout.find_type_by_name("Ray")):
        assert Tensor.zeros(device, 2, form).dtype.full_name == "Ray"
    reflection = module.Ray.type_reflection
    for program in (module, module.layout, module.layout.native):
        assert Tensor.zeros(device, 2, "Ray", program_layout=program).dtype.full_name == "Ray"
        assert Tensor.zeros(device, 2, reflection, program_layout=program).dtype.full_name == "Ray"
    layout = module.layout.native.get_type_layout(module.layout.native.find_type_by_name("float3"))
    assert Tensor.zeros(device, 2, layout).dtype.full_name == "vector<float,3>"


def test_enum_elements_are_integers(device, module):
    tensor = Tensor.from_numpy(device, np.array([1, 0], np.int32), target_slang_dtype=module.Color)
    assert tensor.to_numpy().tolist() == [1, 0]


def test_unknown_dtypes(device, module):
    with pytest.raises(ValueError, match="NoSuchType"):
        Tensor.empty(device, 2, "NoSuchType")
    with pytest.raises(ValueError, match=r"Ray.*program_layout"):
        Tensor.empty(device, 2, "Ray")
    with pytest.raises(ValueError, match="Nope"):
        Tensor.empty(device, 2, "Nope", program_layout=module)
    with pytest.raises(TypeError, match="dtype"):
        Tensor.empty(device, 2, object())
    with pytest.raises(ValueError, match="complex"):
        Tensor.empty(device, 2, np.complex64)


@pytest.mark.parametrize("name", ["float[]", "float[0]", "Texture2D<float>", "StructuredBuffer<float>", "void"])
def test_types_that_cannot_be_stored(device, name):
    pytest.importorskip("slangpy._slang")
    with pytest.raises(ValueError, match=r"Tensor: elements of type"):
        Tensor.zeros(device, 2, name)


def test_target_dtype_mismatch(device):
    pytest.importorskip("slangpy._slang")
    with pytest.raises(ValueError, match=r"\[2\].*\[3\]"):
        Tensor.from_numpy(device, np.zeros((4, 2), np.float32), target_slang_dtype="float3")
    with pytest.raises(ValueError, match=r"\[3\]"):
        Tensor.from_numpy(device, np.float32(1), target_slang_dtype="float3")
    with pytest.raises(TypeError, match="int32"):
        Tensor.from_numpy(device, np.zeros((4, 3), np.int32), target_slang_dtype="float3")
    assert Tensor.from_numpy(device, np.ones((4, 3)), target_slang_dtype="float3").to_numpy().dtype == np.float32


def test_structs(device, module):
    layout = module.Mixed.type.element_layout
    dtype = structured_dtype(layout)
    assert dtype.itemsize == layout.stride == module.Mixed.buffer_layout.stride
    array = np.zeros((2, 3), dtype)
    array["i"] = np.arange(18).reshape(2, 3, 3)
    array["h"] = 0.5
    array["m"][1, 2] = [[1, 2, 3], [4, 5, 6]]
    array["ray"]["uv"] = 7
    array["b"][0, 1] = 1
    tensor = Tensor.from_numpy(device, array, target_slang_dtype=module.Mixed)
    assert tensor.shape == [2, 3]
    assert tensor.to_numpy().shape == (2, 3, layout.stride)
    np.testing.assert_array_equal(tensor.to_numpy(structured=True), array)
    np.testing.assert_array_equal(tensor[:, ::-1].to_numpy(structured=True), array[:, ::-1])
    element = tensor[1, 2].item()
    assert (
        element["m"] == spy.float2x3(1, 2, 3, 4, 5, 6)
        and element["h"] == [0.5] * 3
        and element["ray"]["uv"] == spy.float2(7, 7)
    )
    assert tensor[0].tolist()[1]["b"] is True
    np.testing.assert_array_equal(
        Tensor.from_numpy(device, array[:, ::2], target_slang_dtype=module.Mixed).to_numpy(structured=True),
        array[:, ::2],
    )
    with pytest.raises(ValueError, match="does not match"):
        Tensor.from_numpy(device, np.zeros(3, [("x", "f4")]), target_slang_dtype=module.Mixed)
    with pytest.raises(ValueError, match="does not match"):
        Tensor.from_numpy(device, np.zeros(3, [("x", "f4")]), target_slang_dtype="float3")


def test_structs_from_scalars(device, module):
    stride = module.Ray.buffer_layout.stride
    tensor = Tensor.from_numpy(
        device, np.arange(2 * stride // 4, dtype=np.float32).reshape(2, -1), target_slang_dtype=module.Ray
    )
    assert tensor[1].item()["t"] == stride // 4


def test_padding_is_added_and_removed(device):
    """As CUDA lays out half3: eight bytes."""
    half = spy._native._scalar_layout("half", 1)
    layout = spy._native._make_type_layout(
        kind="vector", name="vector<half,3>", scalar="half", rows=1, cols=3, size=6, stride=8, alignment=4,
        element_stride=2, element=half,
    )  # fmt: skip
    storage = device.create_buffer(size=5 * 8, usage=BufferUsage.unordered_access)
    tensor = Tensor(
        TensorDesc(dtype=spy.reflection.SlangType("vector<half,3>", layout), element_layout=layout, shape=(5,)), storage
    )
    array = values(np.float16, (5, 3))
    tensor.copy_from_numpy(array)
    np.testing.assert_array_equal(tensor.to_numpy(), array)
    np.testing.assert_array_equal(tensor[::-2].to_numpy(), array[::-2])
    raw = storage.to_numpy().view(np.float16).reshape(5, 4)
    np.testing.assert_array_equal(raw[:, :3], array)


# --- constructors and properties


def test_wrapping_a_buffer(device):
    storage = device.create_buffer(data=np.arange(12, dtype=np.float32), usage=BufferUsage.unordered_access)
    tensor = Tensor(storage, "float", (2, 3), (4, 1), 1)
    assert tensor.storage is storage and tensor.memory is storage and tensor.device is device
    assert (tensor.ndim, tensor.element_count, tensor.nbytes, tensor.offset) == (2, 6, 24, 1)
    assert tensor.element_type is tensor.dtype
    np.testing.assert_array_equal(tensor.to_numpy(), [[1, 2, 3], [5, 6, 7]])
    whole = Tensor(TensorDesc(dtype=float, shape=(12,)), storage)
    assert whole.tolist() == list(range(12))
    for arguments in (((13,),), ((3, 5),), ((2,), (12,)), ((1,), (1,), 12), ((2**40, 2**40),)):
        with pytest.raises((ValueError, OverflowError)):
            Tensor(storage, "float", *arguments)
    with pytest.raises(ValueError, match="negative"):
        Tensor(storage, "float", (1,), (1,), -1)
    with pytest.raises(ValueError, match=r"Shape dimensions \(2\) must match stride dimensions \(1\)"):
        Tensor(storage, "float", (2, 2), (1,))
    with pytest.raises(TypeError, match="first argument"):
        Tensor(np.zeros(3), "float", (3,))


def test_older_spelling(device):
    for tensor in (
        Tensor(device, "float", (2, 3)),
        Tensor(device, dtype=float, shape=[2, 3]),
        Tensor(device=device, element_type="float", shape=(2, 3)),
    ):
        assert tensor.shape == (2, 3) and tensor.dtype.full_name == "float"
        assert tensor.usage & BufferUsage.unordered_access and tensor.memory_type == MemoryType.device_local


def test_shape_prints_like_a_list(device):
    tensor = Tensor.empty(device, (3, 4), "float")
    assert str(tensor.shape) == "[3, 4]" and tensor.shape == (3, 4) and tensor.shape == [3, 4]
    assert tensor.strides == [4, 1] and isinstance(tensor.strides, Shape)
    assert tensor.dtype.buffer_layout.stride == 4 and tensor.dtype.differentiable
    assert Tensor.empty(device, 1, "int").dtype.derivative is None


def test_scalars_need_no_compiler(tmp_path):
    import subprocess
    import sys

    text = (
        "import sys, numpy as np, slangpy as spy\n"
        "d = spy.create_device(type=spy.DeviceType.cpu)\n"
        "t = spy.Tensor.zeros(d, (3,), 'float').with_grads()\n"
        "spy.Tensor.from_numpy(d, np.ones(3, bool)).to_numpy()\n"
        "assert 'slangpy._slang' not in sys.modules\n"
    )
    shared = {"SLANGPY_CACHE_DIR": str(tmp_path), "SLANGPY_CACHE_SHARED": "1"}  # where nothing starts it ahead of need
    subprocess.run([sys.executable, "-c", text], check=True, env={**__import__("os").environ, **shared})


def test_from_result_is_a_plain_tensor(device):
    storage = device.create_buffer(data=np.arange(6, dtype=np.float32), usage=BufferUsage.unordered_access)
    tensor = Tensor._from_result(storage, resolve_dtype(device, float), (2, 3))
    assert type(tensor) is Tensor and tensor.grad_in is None and tensor.grad_out is None
    assert tensor.to_numpy().tolist() == [[0, 1, 2], [3, 4, 5]]


def test_closed_device(fresh_device):
    tensor = Tensor.zeros(fresh_device, 3, "float")
    fresh_device.close()
    assert repr(tensor).startswith("Tensor(dtype=float, shape=[3], device=")
    assert str(tensor) == repr(tensor)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for use in (tensor.to_numpy, tensor.clear, tensor.copy, lambda: tensor.cursor()[0].read()):
            with pytest.raises(RuntimeError, match="closed"):
                use()


def test_usage_is_what_was_asked(device):
    """Every buffer can be copied; that is no part of what a tensor was asked to be."""
    default = BufferUsage.shader_resource | BufferUsage.unordered_access
    assert Tensor.empty(device, 3, "float").usage == default
    assert Tensor.zeros(device, 3, "float").with_grads().grad.usage == default
    assert (
        Tensor.from_numpy(device, np.zeros(3, np.float32), usage=BufferUsage.shader_resource).usage
        == BufferUsage.shader_resource
    )
    asked = default | BufferUsage.copy_source
    tensor = Tensor.empty(device, 3, "float", usage=asked)
    assert tensor.usage == asked and Tensor.empty_like(tensor[1:]).usage == asked
    assert tensor.storage.desc.usage == asked


def test_point_to_other_memory(device):
    if device.info.type is not spy.DeviceType.vulkan:
        pytest.skip("one kind of memory")
    tensor = Tensor.zeros(device, 3, "float")
    with pytest.raises(ValueError, match="Memory type of existing and new tensor view must match"):
        tensor.point_to(Tensor.empty(device, 3, "float", memory_type=MemoryType.read_back))
