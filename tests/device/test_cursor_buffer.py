"""BufferCursor: loading, applying, whole columns, navigation."""

import numpy as np
import pytest
from cursor_layouts import TARGETS, Layouts

import slangpy as spy


@pytest.fixture(scope="module")
def device():
    return spy.create_device(type=spy.DeviceType.null)


@pytest.fixture(params=TARGETS)
def layouts(request):
    return Layouts(request.param)


RW = spy.BufferUsage.shader_resource | spy.BufferUsage.unordered_access


def test_structured_host_access(device, layouts):
    layout = layouts.material()
    buffer = device.create_buffer(size=48, usage=RW)
    cursor = spy.BufferCursor(layout, buffer)
    assert not cursor.is_loaded and len(cursor) == 2 and cursor.resource is buffer
    for i in range(2):
        cursor[i].write({"albedo": (1, 2, 3), "id": 10 + i, "w": [0.0, 0.0]})
    cursor[1].w[0] = 4.0
    assert spy.BufferCursor(layout, buffer)[1].id.read() == 0  # nothing is uploaded before apply()
    cursor.apply()
    read = spy.BufferCursor(layout, buffer)[1].read()
    assert read == {"albedo": spy.float3(1, 2, 3), "id": 11, "w": [4.0, 0.0]}


def test_sizes_and_ranges(device, layouts):
    layout = layouts.material()
    buffer = device.create_buffer(size=24 * 5 + 7, usage=RW)
    cursor = spy.BufferCursor(layout, buffer)
    assert (cursor.element_count, cursor.element_size, cursor.element_stride, cursor.size) == (5, 24, 24, 120)
    part = spy.BufferCursor(layout, buffer, 48, 24)
    part[0].id = 7
    part.apply()
    assert [c.id.read() for c in spy.BufferCursor(layout, buffer)] == [0, 7, 0, 0, 0]
    for size, offset in ((128, 0), (24, 120), (0, 128)):
        with pytest.raises(ValueError, match="outside the buffer of 127 bytes"):
            spy.BufferCursor(layout, buffer, size, offset)


def test_loading(device, layouts):
    layout = layouts.array(layouts.scalar("int"), 2)
    buffer = device.create_buffer(size=16, usage=RW)
    spy.BufferCursor(layout, buffer).apply()  # nothing written: nothing uploaded
    first = spy.BufferCursor(layout, buffer)
    first[0] = [1, 2]
    first[1] = [3, 4]
    first.apply()
    keep = spy.BufferCursor(layout, buffer)
    keep[0][1] = 9
    keep.apply()
    first.load()
    assert [e.read() for e in first] == [[1, 9], [3, 4]]
    blind = spy.BufferCursor(layout, buffer, load_before_write=False)
    blind[0][0] = 5
    assert blind[0].read() == [5, 0]  # a read does not wipe what was written
    blind.apply()
    first.load()
    assert [e.read() for e in first] == [[5, 0], [0, 0]]


def test_indices(layouts):
    cursor = layouts.cursor(layouts.scalar("int"), 3)
    cursor[-1] = 5
    assert cursor[2].read() == 5 and cursor.find_element(2).read() == 5
    assert not cursor.find_element(99).is_valid() and not cursor.find_element(-99).is_valid()
    for index in (3, -4):
        with pytest.raises(IndexError, match=f"Element {index} not found"):
            cursor[index]
    assert [element.read() for element in cursor] == [0, 0, 5]


def test_navigation(layouts):
    cursor = layouts.cursor(layouts.material())
    element = cursor[0]
    assert element.has_field("albedo") and not element.has_field("zz")
    assert element.w.has_element(1) and not element.w.has_element(2) and not element.has_element(0)
    assert not element.find_field("zz").is_valid() and not element.w.find_element(9).is_valid()
    with pytest.raises(KeyError, match=r'Field "zz" not found.'):
        element["zz"]
    with pytest.raises(IndexError, match=r"Element 9 not found."):
        element.w[9]
    with pytest.raises(AttributeError, match=r"Mat has no field 'zz'. Fields: albedo, id, w"):
        _ = element.zz
    with pytest.raises(AttributeError, match="Fields: albedo, id, w"):
        element.zz = 1
    with pytest.raises(RuntimeError, match="the cursor is invalid"):
        element.find_field("zz").write(1)
    assert {"albedo", "id", "w", "read", "write"} <= set(dir(element))
    element.id = 3
    assert "Mat" in repr(element) and "'id': 3" in repr(element)
    assert "invalid" in repr(element.find_field("zz"))


def test_elements_keep_the_cursor_alive(layouts):
    element = layouts.cursor(layouts.material(), 100)[99].albedo
    element.write((1, 2, 3))
    assert element.read() == spy.float3(1, 2, 3)


def test_raw_bytes(layouts):
    cursor = layouts.cursor(layouts.material(), 2)
    data = np.arange(48, dtype=np.uint8)
    cursor.copy_from_numpy(data)
    np.testing.assert_array_equal(cursor.to_numpy(), data)
    assert cursor.to_numpy().dtype == np.uint8
    cursor.copy_from_numpy(np.zeros(3, np.float32))
    assert cursor[0].albedo.read() == spy.float3(0, 0, 0)
    with pytest.raises(ValueError, match=r"numpy array is larger than the buffer \(400 > 48\)"):
        cursor.copy_from_numpy(np.zeros(100, np.float32))
    with pytest.raises(ValueError, match="contiguous"):
        cursor.copy_from_numpy(np.zeros(20, np.uint8)[::2])
    cursor[1].id.set_data(np.array([77], np.int32))
    assert cursor[1].id.read() == 77
    with pytest.raises(ValueError, match="larger than the buffer"):
        cursor[1].id.set_data(np.zeros(2, np.int32))
    assert cursor[1].id.reinterpret(layouts.scalar("uint")).read() == 77
    with pytest.raises(ValueError, match="beyond the buffer"):
        cursor[1].w[1].reinterpret(layouts.vector("float", 4))


@pytest.mark.parametrize("unchecked", [True, False])
def test_write_from_numpy(layouts, unchecked):
    inner = layouts.struct("In", k=layouts.scalar("int"), on=layouts.scalar("bool"))
    layout = layouts.struct("S", v=layouts.vector("float", 3), m=layouts.matrix("float", 2, 2), inner=inner)
    cursor = layouts.cursor(layout, 3)
    v = np.arange(9, dtype=np.float32).reshape(3, 3)
    data = {"v": v, "m": np.arange(12, dtype=np.float32).reshape(3, 2, 2)[:, ::-1],
            "inner": {"k": np.array([1, 2, 3], np.int32), "on": np.array([True, False, True])}}  # fmt: skip
    cursor.write_from_numpy(data, unchecked_copy=unchecked)
    for i, element in enumerate(cursor):
        assert element.v.read() == spy.float3(*v[i].tolist())
        np.testing.assert_array_equal([[element.m[r][c].read() for c in range(2)] for r in range(2)], data["m"][i])
        assert element.inner.read() == {"k": i + 1, "on": i != 1}
    with pytest.raises(ValueError, match=r"^v: First dimension of ndarray \(2\) does not match the size of dest"):
        cursor.write_from_numpy({"v": v[:2]}, unchecked)
    with pytest.raises(ValueError, match="S has no field 'zz'"):
        cursor.write_from_numpy({"zz": v}, unchecked)
    with pytest.raises(TypeError, match="expected a NumPy array or a dict"):
        cursor.write_from_numpy(3, unchecked)


def test_write_from_numpy_checks(layouts):
    cursor = layouts.cursor(layouts.vector("float", 2), 3)
    cursor.write_from_numpy(np.ones((3, 2), np.float32))
    cursor.write_from_numpy(np.zeros((3, 2), np.int32))  # raw bytes
    with pytest.raises(TypeError, match="expected an array of float32 for float2, got int32"):
        cursor.write_from_numpy(np.zeros((3, 2), np.int32), unchecked_copy=False)
    with pytest.raises(ValueError, match=r"one entry of shape \(2,\) .* got entries of shape \(3,\)"):
        cursor.write_from_numpy(np.zeros((3, 3), np.float32), unchecked_copy=False)
    with pytest.raises(ValueError, match="rows of the array have 16 bytes, float2 has 8"):
        cursor.write_from_numpy(np.zeros((3, 2), np.float64))


def test_write_from_structured_array(layouts):
    layout = layouts.struct("S", x=layouts.scalar("float"), n=layouts.scalar("int"))
    cursor = layouts.cursor(layout, 2)
    data = np.array([(1.5, 2), (2.5, 3)], dtype=[("x", np.float32), ("n", np.int32)])
    for unchecked in (True, False):
        cursor.write_from_numpy(data, unchecked)
        assert [e.read() for e in cursor] == [{"x": 1.5, "n": 2}, {"x": 2.5, "n": 3}]


def test_memory_types(device, layouts):
    layout = layouts.scalar("int")
    upload = device.create_buffer(size=4, usage=spy.BufferUsage.none, memory_type=spy.MemoryType.upload)
    with pytest.raises(RuntimeError, match="Cannot read data from buffer with memory type 'upload'"):
        spy.BufferCursor(layout, upload)[0].read()
    read_back = device.create_buffer(size=4, usage=spy.BufferUsage.none, memory_type=spy.MemoryType.read_back)
    cursor = spy.BufferCursor(layout, read_back)
    cursor[0] = 1
    with pytest.raises(RuntimeError, match="Cannot write data to buffer with memory type 'read_back'"):
        cursor.apply()


def test_resources_do_not_fit_in_buffers(layouts):
    from cursor_layouts import resource

    layout = layouts.struct("S", x=layouts.scalar("int"), t=resource("Texture2D", "texture_2d"))
    with pytest.raises(ValueError, match="t: Texture2D is a resource and cannot be stored in buffer memory"):
        layouts.cursor(layout)[0].write({"t": None})
    with pytest.raises(ValueError, match="has no bytes in a buffer"):
        layouts.cursor(resource("Texture2D", "texture_2d"))
    with pytest.raises(TypeError, match="expected a type layout"):
        layouts.cursor("float")
