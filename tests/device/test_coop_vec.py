"""Matrices of cooperative vectors: sizes, descriptions, conversions on the host; what devices without the feature say."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import slangpy as spy

Layout, Type = spy.CoopVecMatrixLayout, spy.DataType
PLAIN = (Layout.row_major, Layout.column_major)
OPTIMAL = (Layout.inferencing_optimal, Layout.training_optimal)
MISSING = r"does not have the feature 'cooperative_vector', which vulkan devices have whose driver has VK_NV_cooperative_vector"


def needs_feature(device: spy.Device) -> Any:
    if device.has_feature(spy.Feature.cooperative_vector):
        pytest.skip("the device has the feature")
    return pytest.raises(NotImplementedError, match=MISSING)


def memory(matrix: np.ndarray, layout: spy.CoopVecMatrixLayout, line: int = 0) -> bytes:
    """What a matrix is in memory, with `line` elements from one row or column to the next."""
    rows = matrix if layout == Layout.row_major else matrix.T
    wide = np.zeros((rows.shape[0], max(line, rows.shape[1])), matrix.dtype)
    wide[:, : rows.shape[1]] = rows
    return wide.tobytes()


@pytest.mark.parametrize("layout", PLAIN)
def test_sizes(device: spy.Device, layout: spy.CoopVecMatrixLayout) -> None:
    size = device.get_coop_vec_matrix_size
    assert size(4, 8, layout, Type.float32) == 128
    assert size(8, 16, layout, Type.float8_e4m3) == size(8, 16, layout, Type.float8_e5m2) == 128
    bits = {"int8": 1, "uint8": 1, "int16": 2, "uint16": 2, "float16": 2, "int32": 4, "uint32": 4, "int64": 8, "uint64": 8, "float64": 8}
    assert {name: size(3, 5, layout, Type[name]) for name in bits} == {name: 15 * each for name, each in bits.items()}
    lines = 3 if layout == Layout.row_major else 5
    assert size(3, 5, layout, Type.float16, 16) == size(rows=3, cols=5, layout=layout, element_type=Type.float16, row_col_stride=16) == 16 * lines
    with device:
        assert spy.get_coop_vec_matrix_size(4, 8, layout, Type.float32) == 128


def test_descriptions(device: spy.Device) -> None:
    rows = device.create_coop_vec_matrix_desc(3, 5, Layout.row_major, Type.float16)
    columns = device.create_coop_vec_matrix_desc(3, 5, layout=Layout.column_major, element_type=Type.float32, offset=64, row_col_stride=16)
    values = [[getattr(desc, name) for name in "rows cols element_type layout size offset row_col_stride".split()] for desc in (rows, columns)]
    assert values[0] == [3, 5, Type.float16, Layout.row_major, 30, 0, 10]
    assert values[1] == [3, 5, Type.float32, Layout.column_major, 80, 64, 16]
    assert device.create_coop_vec_matrix_desc(3, 5, Layout.column_major, Type.int8).row_col_stride == 3
    assert spy.CoopVecMatrixDesc({"rows": 2, "cols": 3}, offset=4).cols == 3
    assert "rows = 3" in repr(rows)
    with device:
        assert spy.create_coop_vec_matrix_desc(3, 5, Layout.row_major, Type.float16).size == 30


@pytest.mark.parametrize("layout", OPTIMAL)
def test_layouts_of_drivers(device: spy.Device, layout: spy.CoopVecMatrixLayout) -> None:
    if device.has_feature(spy.Feature.cooperative_vector):
        desc = device.create_coop_vec_matrix_desc(8, 16, layout, Type.float16)
        assert desc.size >= 8 * 16 * 2 and desc.row_col_stride == 0
        matrix = np.arange(128, dtype=np.float16).reshape(8, 16)
        kept, back = np.zeros(desc.size, np.uint8), np.zeros_like(matrix)
        device.convert_coop_vec_matrix(kept, matrix, dst_layout=layout)
        device.convert_coop_vec_matrix(back, kept, src_layout=layout)
        assert np.array_equal(back, matrix)
        return
    with pytest.raises(NotImplementedError, match=f"get_coop_vec_matrix_size: .*{MISSING}.*; row_major and column_major work on every device"):
        device.get_coop_vec_matrix_size(4, 8, layout, Type.float16)
    with pytest.raises(NotImplementedError, match=f"create_coop_vec_matrix_desc: .*{MISSING}"):
        device.create_coop_vec_matrix_desc(4, 8, layout, Type.float16)
    with pytest.raises(NotImplementedError, match=f"convert_coop_vec_matrix .*{MISSING}"):
        device.convert_coop_vec_matrix(np.zeros(256, np.uint8), np.zeros((4, 8), np.float16), dst_layout=layout)


@pytest.mark.parametrize("dtype", ["float16", "float32", "int8", "uint64"])
def test_arrays(device: spy.Device, dtype: str) -> None:
    matrix = np.arange(35).reshape(5, 7).astype(dtype)
    convert = device.convert_coop_vec_matrix
    # The layout is that of the memory.
    columns = np.zeros((5, 7), dtype, order="F")
    convert(columns, matrix)
    assert np.array_equal(columns, matrix) and columns.tobytes("A") == matrix.T.tobytes()
    back = np.zeros_like(matrix)
    convert(back, columns)
    assert np.array_equal(back, matrix)
    # The shape stays: the memory is the transpose's.
    turned = np.zeros((5, 7), dtype)
    convert(turned, matrix, Layout.column_major)
    assert turned.shape == (5, 7) and np.array_equal(turned.reshape(7, 5), matrix.T)
    convert(dst=back, src=turned, dst_layout=Layout.row_major, src_layout=Layout.column_major)
    assert np.array_equal(back, matrix)
    # One of one dimension holds the bytes, or the elements.
    for flat in (np.zeros(matrix.nbytes, np.uint8), np.zeros(matrix.size, dtype)):
        convert(flat, matrix, dst_layout=Layout.column_major)
        assert flat.tobytes() == matrix.T.tobytes()
        back[:] = 0
        convert(back, flat, src_layout=Layout.column_major)
        assert np.array_equal(back, matrix)
    # Into its own memory.
    convert(matrix, matrix, dst_layout=Layout.column_major)
    assert np.array_equal(matrix.reshape(7, 5).T, back)


@pytest.mark.parametrize("to", PLAIN)
@pytest.mark.parametrize("source", PLAIN)
def test_bytes(device: spy.Device, to: spy.CoopVecMatrixLayout, source: spy.CoopVecMatrixLayout) -> None:
    matrix = np.arange(15, dtype=np.float32).reshape(3, 5)
    src_desc = device.create_coop_vec_matrix_desc(3, 5, source, Type.float32, offset=4, row_col_stride=28)
    dst_desc = device.create_coop_vec_matrix_desc(3, 5, to, Type.float32, offset=8, row_col_stride=24)
    src = bytes(4) + memory(matrix, source, 7)
    expected = bytes(8) + memory(matrix, to, 6) + b"end"
    for names in ("dst_desc", "src_desc"), ("dst_descs", "src_descs"):
        dst = bytearray(len(expected) - 3) + b"end"
        device.convert_coop_vec_matrix(dst=dst, src=src, **dict(zip(names, (dst_desc, src_desc), strict=True)))
        assert bytes(dst) == expected
    as_dicts = [{name: getattr(desc, name) for name in "rows cols element_type layout offset row_col_stride".split()} for desc in (dst_desc, src_desc)]
    dst = bytearray(len(expected) - 3) + b"end"
    device.convert_coop_vec_matrix(dst, as_dicts[0], src, as_dicts[1])
    assert bytes(dst) == expected
    # Many, of which one turns the other way.
    both = bytearray(2 * 60)
    descs = [device.create_coop_vec_matrix_desc(*sizes, layout, Type.float32, offset=offset)
             for sizes, layout, offset in (((3, 5), to, 0), ((5, 3), source, 60), ((3, 5), source, 0), ((5, 3), to, 60))]  # fmt: skip
    device.convert_coop_vec_matrices(both, descs[:2], memory(matrix, source) + memory(matrix.T, to), descs[2:])
    assert bytes(both) == memory(matrix, to) + memory(matrix.T, source)
    device.convert_coop_vec_matrices(both, [], b"", [])


@pytest.mark.one
def test_wrong_descriptions(device: spy.Device) -> None:
    size, row = device.get_coop_vec_matrix_size, Layout.row_major
    for element in (Type.bool, Type.void, Type.none, Type.bfloat16):
        with pytest.raises(ValueError, match="get_coop_vec_matrix_size: element_type is .*; matrices are of float16"):
            size(4, 8, row, element)
    with pytest.raises(ValueError, match="rows and cols must be at least 1, got 0 x 8"):
        size(0, 8, row, Type.float16)
    with pytest.raises((ValueError, TypeError), match="rows"):
        size(-1, 8, row, Type.float16)
    for stride in (14, 17):
        with pytest.raises(ValueError, match=f"row_col_stride is {stride}; a row takes 16 bytes"):
            size(4, 8, row, Type.float16, stride)
    with pytest.raises(ValueError, match="too large"):
        size(2**32 - 1, 2**32 - 1, row, Type.float64)
    with pytest.raises(TypeError, match="CoopVecMatrixLayout such as slangpy.CoopVecMatrixLayout.row_major, got 'row_mayor'"):
        size(4, 8, "row_mayor", Type.float16)


@pytest.mark.one
@pytest.mark.parametrize(
    ("dst", "src", "error", "text"),
    [
        (np.zeros(8, np.uint8), np.zeros(8, np.uint8), ValueError, "At least one of src or dst must be a 2D array"),
        (np.zeros((2, 3), "f2"), np.zeros((3, 2), "f2"), ValueError, "one shape, got (2, 3) and (3, 2)"),
        (np.zeros((2, 3), bool), np.zeros((2, 3), bool), TypeError, "got bool"),
        (np.zeros((2, 3), "V2"), np.zeros((2, 3), "V2"), TypeError, "got |V2"),
        (np.zeros((2, 3), ">f4"), np.zeros((2, 3), ">f4"), TypeError, "got >f4"),
        (np.zeros((2, 3, 1), "f2"), np.zeros((2, 3), "f2"), ValueError, "1 or 2 dimensions, got shape (2, 3, 1)"),
        (np.zeros((2, 6), "f2")[:, ::2], np.zeros((2, 3), "f2"), ValueError, "dst: the array's memory has gaps"),
        (np.broadcast_to(np.zeros(1, "f2"), (1, 1)), np.zeros((1, 1), "f2"), ValueError, "dst cannot be written to"),
        (np.zeros(11, np.uint8), np.zeros((2, 3), "f2"), ValueError, "takes 12 bytes from offset 0 on, but there are 11"),
        (np.zeros((0, 3), "f2"), np.zeros((0, 3), "f2"), ValueError, "at least 1, got 0 x 3"),
        ([[1.0]], np.zeros((1, 1)), TypeError, "dst: expected a NumPy array, got list"),
    ],
)  # fmt: skip
def test_wrong_arrays(device: spy.Device, dst: Any, src: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=re.escape(text)) as info:
        device.convert_coop_vec_matrix(dst, src)
    assert str(info.value).startswith("convert_coop_vec_matrix")


@pytest.mark.one
def test_wrong_bytes(device: spy.Device) -> None:
    desc = device.create_coop_vec_matrix_desc(2, 3, Layout.row_major, Type.float16)
    other = device.create_coop_vec_matrix_desc(3, 2, Layout.row_major, Type.float16)
    wide = device.create_coop_vec_matrix_desc(2, 3, Layout.row_major, Type.float32)
    convert: Any = device.convert_coop_vec_matrix
    with pytest.raises(ValueError, match="'dst_desc' is of 2 x 3, the source of 3 x 2"):
        convert(bytearray(12), desc, bytes(12), other)
    with needs_feature(device):
        convert(bytearray(12), desc, bytes(24), wide)
    with pytest.raises(ValueError, match="'src_desc': the matrix takes 12 bytes from offset 0 on, but there are 11"):
        convert(bytearray(12), desc, bytes(11), desc)
    with pytest.raises(TypeError, match="'dst': expected a bytearray"):
        convert(bytes(12), desc, bytes(12), desc)
    with pytest.raises(TypeError, match="src_desc missing"):
        convert(bytearray(12), desc, bytes(12))
    with pytest.raises(TypeError, match="'layout' is unknown or given twice"):
        convert(bytearray(12), desc, bytes(12), desc, layout=1)
    with pytest.raises(ValueError, match="1 dst_descs for 2 src_descs"):
        device.convert_coop_vec_matrices(bytearray(12), [desc], bytes(24), [desc, desc])
    with pytest.raises(TypeError, match=r"unknown field 'columns'; known fields: rows, cols"):
        convert(bytearray(12), {"columns": 3}, bytes(12), desc)


def test_commands(device: spy.Device) -> None:
    desc = device.create_coop_vec_matrix_desc(2, 3, Layout.row_major, Type.float16)
    encoder = device.create_command_encoder()
    buffers = [device.create_buffer(size=64, usage=spy.BufferUsage.shader_resource | spy.BufferUsage.unordered_access) for _ in range(2)]
    with needs_feature(device):
        encoder.convert_coop_vec_matrix(buffers[0], desc, buffers[1], desc)
    with needs_feature(device):
        encoder.convert_coop_vec_matrix(dst=buffers[0], dst_descs=desc, src=buffers[1], src_descs=desc)
    with needs_feature(device):
        encoder.convert_coop_vec_matrices(buffers[0], [desc], buffers[1], [desc])
    with pytest.raises(TypeError, match="'dst'.*Buffer"):
        encoder.convert_coop_vec_matrix(bytearray(12), desc, buffers[1], desc)  # type: ignore[arg-type]


def test_after_close() -> None:
    device = spy.create_device(type=spy.DeviceType.null)
    device.close()
    with pytest.raises(RuntimeError, match="device is closed"):
        device.get_coop_vec_matrix_size(2, 3, Layout.row_major, Type.float16)


SOURCE = """
import slangpy;
void layer(int i, ByteAddressBuffer weights, RWTensor<float, 2> y)
{
    CoopVec<half, 5> x;
    for (int k = 0; k < 5; k++)
        x[k] = half(i + k);
    const let product = coopVecMatMulAdd<half, 3, 5>(
        x, CoopVecComponentType.Float16, weights, 0, CoopVecComponentType.Float16, weights, 64, CoopVecComponentType.Float16,
        CoopVecMatrixLayout.RowMajor, false, 16);
    for (int n = 0; n < 3; n++)
        y[i, n] = product[n];
}
"""


@pytest.mark.needs_kernels
def test_kernels(device: spy.Device) -> None:
    """Plain code on the CPU; on Vulkan the driver's, or an error that names what is missing."""
    if device.info.type == spy.DeviceType.d3d12:
        pytest.skip("not there")
    module = spy.Module.load_from_source(device, "coop_vec_layer", SOURCE)
    matrix, bias = np.arange(15, dtype=np.float16).reshape(3, 5), np.arange(3, dtype=np.float16)
    # Vulkan wants rows at multiples of 16 bytes, matrices and biases at multiples of 64
    packed = np.zeros(35, np.float16)
    packed[:24].reshape(3, 8)[:, :5] = matrix
    packed[32:] = bias
    weights = device.create_buffer(data=np.append(packed, np.float16(0)), usage=spy.BufferUsage.shader_resource)
    y = spy.Tensor.zeros(device, (4, 3), "float")
    if device.info.type == spy.DeviceType.vulkan and not device.has_feature(spy.Feature.cooperative_vector):
        with pytest.raises(NotImplementedError, match="uses cooperative vectors .*CooperativeVectorNV.*cannot run; use a device that has it"):
            module.layer(spy.grid((4,)), weights, y)
        return
    module.layer(spy.grid((4,)), weights, y)
    expected = [matrix.astype(float) @ (i + np.arange(5.0)) + bias for i in range(4)]
    assert np.array_equal(y.to_numpy(), expected)
