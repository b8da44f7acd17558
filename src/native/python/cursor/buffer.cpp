// BufferCursor and BufferElementCursor for Python.
#include "python/bindings.h"

#include "python/cursor/bindings.h"
#include "python/members.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

namespace spy {
namespace {

void load(BufferCursor& cursor)
{
    GilRelease release;
    cursor.load();
}

void apply(BufferCursor& cursor)
{
    GilRelease release;
    cursor.apply();
}

const uint8_t* read_bytes(BufferCursor& cursor, uint64_t offset)
{
    if (!cursor.is_loaded())
        load(cursor);
    return cursor.read(offset);
}

uint8_t* write_bytes(BufferCursor& cursor, uint64_t offset)
{
    GilRelease release; // may load
    return cursor.write(offset);
}

// --- elements

/// Null for memory of the host.
const Device* device_of(const BufferElementCursor& cursor)
{
    const Buffer* buffer = cursor.owner()->resource();
    return buffer ? buffer->device() : nullptr;
}

nb::object read_element(const BufferElementCursor& cursor)
{
    check_valid(cursor, "BufferElementCursor.read");
    return read_value(*cursor.layout(), read_bytes(*cursor.owner(), cursor.offset()), device_of(cursor));
}

void write_element(const BufferElementCursor& cursor, nb::handle value)
{
    check_valid(cursor, "BufferElementCursor.write");
    uint8_t* bytes = write_bytes(*cursor.owner(), cursor.offset());
    write_value(*cursor.layout(), bytes, value.ptr(), ValuePath{nullptr, cursor.path(), 0, true}, nullptr,
                device_of(cursor));
}

void set_element_data(const BufferElementCursor& cursor, nb::handle data)
{
    check_valid(cursor, "BufferElementCursor.set_data");
    HostArray array;
    const auto bytes = raw_bytes(array, data, cursor.layout()->size, "BufferElementCursor.set_data");
    std::memcpy(write_bytes(*cursor.owner(), cursor.offset()), bytes.data(), bytes.size());
}

std::string element_repr(const BufferElementCursor& cursor)
{
    if (!cursor.is_valid())
        return "BufferElementCursor(invalid)";
    const nb::object value = read_element(cursor);
    return cat("BufferElementCursor(type=", type_text(*cursor.layout()), ", value=", nb::repr(value).c_str(), ")");
}

BufferElementCursor element_at(ref<BufferCursor> cursor, int64_t index)
{
    const auto count = int64_t(cursor->element_count());
    const int64_t from_start = index < 0 ? index + count : index;
    if (from_start < 0 || from_start >= count)
        fail(ErrorKind::index, "Element ", index, " not found. The buffer has ", count, " elements.");
    ref<TypeLayout> layout = cursor->element_layout();
    const uint64_t offset = uint64_t(from_start) * cursor->element_stride();
    return {std::move(cursor), std::move(layout), offset, ""};
}

// --- whole columns

struct Columns {
    BufferCursor* cursor;
    bool unchecked;

    void write(const TypeLayout& layout, uint64_t offset, nb::handle data, const ValuePath& path) const;

private:
    void write_fields(const TypeLayout& layout, uint64_t offset, nb::handle data, nb::handle names,
                      const ValuePath& path) const;
    void write_raw(const TypeLayout& layout, uint64_t offset, nb::handle data, HostArray& array,
                   const ValuePath& path) const;
    void write_scalars(const TypeLayout& layout, const ScalarGrid& grid, uint64_t offset, HostArray& array,
                       const ValuePath& path) const;
    uint8_t* row(uint64_t offset, int64_t index) const
    {
        return write_bytes(*cursor, offset + uint64_t(index) * cursor->element_stride());
    }
};

void Columns::write_fields(const TypeLayout& layout, uint64_t offset, nb::handle data, nb::handle names,
                           const ValuePath& path) const
{
    for (nb::handle key : nb::borrow(names)) {
        std::string name;
        if (!nb::try_cast(key, name))
            fail_at(path, ErrorKind::type, cat("names of fields are str, got ", short_repr(key.ptr())));
        const FieldLayout* field = layout.find_field(name);
        if (!field && name == "_type")
            continue;
        if (!field)
            fail_at(path, ErrorKind::value,
                    cat(type_text(layout), " has no field '", name, "'. Fields: ", field_list(layout)));
        write(*field->type, offset + field->offset, nb::object(data[key]), ValuePath{&path, field->name, 0});
    }
}

void Columns::write_raw(const TypeLayout& layout, uint64_t offset, nb::handle data, HostArray& array,
                        const ValuePath& path) const
{
    const int64_t rows = array.size(0);
    const uint64_t row_bytes = rows ? uint64_t(array.nbytes() / rows) : 0;
    const uint64_t room = offset == 0 && layout.size == cursor->element_layout()->size ? cursor->element_stride()
                                                                                       : layout.size;
    if (row_bytes > room)
        fail_at(path, ErrorKind::value,
                cat("rows of the array have ", row_bytes, " bytes, ", type_text(layout), " has ", room, " (dtype ",
                    array.dtype_text(), ")"));
    HostArray packed;
    const HostArray* source = &array;
    if (!array.is_contiguous()) {
        nb::object copy = nb::module_::import_("numpy").attr("ascontiguousarray")(data);
        packed.open(copy.ptr());
        source = &packed;
    }
    for (int64_t i = 0; i < rows; ++i)
        std::memcpy(row(offset, i), source->data() + uint64_t(i) * row_bytes, row_bytes);
}

void Columns::write_scalars(const TypeLayout& layout, const ScalarGrid& grid, uint64_t offset, HostArray& array,
                            const ValuePath& path) const
{
    if (!same_bits(array.scalar(), grid.scalar))
        fail_at(path, ErrorKind::type,
                cat("expected an array of ", scalar_info(grid.scalar).numpy_name, " for ", type_text(layout), ", got ",
                    array.dtype_text(), "; convert it with astype()"));
    int64_t strides[ScalarGrid::max_rank] = {};
    bool matches = array.rank() == int(grid.rank) + 1;
    for (uint32_t axis = 0; matches && axis < grid.rank; ++axis) {
        matches = array.size(int(axis) + 1) == grid.shape[axis];
        strides[axis] = array.stride(int(axis) + 1);
    }
    if (!matches)
        fail_at(path, ErrorKind::value,
                cat("array has the wrong shape: expected one entry of shape ", grid.shape_text(), " for each element (",
                    type_text(layout), "), got entries of shape ", array.shape_text(1)));
    for (int64_t i = 0; i < array.size(0); ++i)
        write_grid(grid, row(offset, i), array.data() + i * array.stride(0), strides);
}

void Columns::write(const TypeLayout& layout, uint64_t offset, nb::handle data, const ValuePath& path) const
{
    if (PyDict_Check(data.ptr()))
        return write_fields(layout, offset, data, nb::list(data.attr("keys")()), path);
    HostArray array;
    if (!array.open(data.ptr()) || array.rank() < 1)
        fail_at(path, ErrorKind::type,
                cat("expected a NumPy array or a dict of arrays per field, got ", type_name(data.ptr())));
    const int64_t count = int64_t(cursor->element_count());
    if (array.size(0) != count)
        fail_at(path, ErrorKind::value,
                cat("First dimension of ndarray (", array.size(0), ") does not match the size of destination buffer (",
                    count, ")"));
    ScalarGrid grid;
    const bool scalars = scalar_grid(layout, grid);
    // NumPy's bool has one byte, the device's may have four: raw rows would be wrong.
    const bool convert_bool = scalars && grid.scalar == ScalarType::bool_ && array.scalar() == ScalarType::bool_;
    if (unchecked && !convert_bool)
        return write_raw(layout, offset, data, array, path);
    if (scalars)
        return write_scalars(layout, grid, offset, array, path);
    nb::object dtype = nb::getattr(data, "dtype", nb::none());
    nb::object names = dtype.is_none() ? nb::object(nb::none()) : nb::object(dtype.attr("names"));
    if (names.is_none())
        fail_at(path, ErrorKind::type, cat("pass a dict of arrays per field for ", type_text(layout)));
    write_fields(layout, offset, data, names, path);
}

void write_from_numpy(BufferCursor& cursor, nb::handle data, bool unchecked_copy)
{
    Columns{&cursor, unchecked_copy}.write(*cursor.element_layout(), 0, data, ValuePath{nullptr, "", 0, true});
}

nb::object to_numpy(BufferCursor& cursor)
{
    const size_t size = cursor.size();
    const uint8_t* bytes = read_bytes(cursor, 0);
    auto* copy = new uint8_t[size ? size : 1];
    nb::capsule owner(copy, [](void* p) noexcept { delete[] static_cast<uint8_t*>(p); });
    std::memcpy(copy, bytes, size);
    return nb::cast(nb::ndarray<nb::numpy, uint8_t, nb::ndim<1>>(copy, {size}, owner));
}

void copy_from_numpy(BufferCursor& cursor, nb::handle data)
{
    HostArray array;
    const auto bytes = raw_bytes(array, data, cursor.size(), "BufferCursor.copy_from_numpy");
    std::memcpy(write_bytes(cursor, 0), bytes.data(), bytes.size());
}

/// Remembers the reflection object of the element type that `layout` is or leads to.
void remember_source(BufferCursor& cursor, nb::handle layout)
{
    nb::object source = nb::borrow(layout);
    for (int depth = 0; depth < 4 && !source.is_none(); ++depth) {
        nb::object plain = nb::getattr(source, "plain", nb::none());
        if (nb::isinstance<TypeLayout>(plain) && nb::isinstance<Object>(source) &&
            nb::cast<TypeLayout*>(plain)->full_name == cursor.element_layout()->full_name) {
            cursor.set_source(nb::cast<Object*>(source));
            return;
        }
        nb::object inner = nb::getattr(source, "type_layout", nb::none());
        source = inner.is_none() ? nb::getattr(source, "element_type_layout", nb::none()) : inner;
    }
}

/// The compiler's layout where the cursor was made from one, or was told by its tensor how to find it.
nb::object element_type_layout(nb::handle self)
{
    BufferCursor& cursor = *nb::cast<BufferCursor*>(self);
    if (cursor.source())
        return nb::cast(cursor.source());
    const nb::object reflect = nb::getattr(self, "_reflect", nb::none());
    return reflect.is_none() ? nb::cast(cursor.element_layout()) : nb::object(reflect());
}

/// The layout itself where there is no reflection.
nb::object element_type(nb::handle self)
{
    nb::object layout = element_type_layout(self);
    return nb::getattr(layout, "type", layout);
}

void bind_element(nb::module_& m)
{
    using C = BufferElementCursor;
    nb::class_<C>(m, "BufferElementCursor",
                  "An element of a BufferCursor or a part of it. Writes stay on the host until BufferCursor.apply().")
        .def("is_valid", &C::is_valid,
             "Whether it stands at a value; find_field and find_element give cursors that do not.")
        .def("find_field", &C::find_field, nb::arg("name"), "Invalid cursor when there is none.")
        .def("find_element", &C::find_element, nb::arg("index"), "Invalid cursor when there is none.")
        .def(
            "has_field", [](const C& c, std::string_view n) { return c.find_field(n).is_valid(); }, nb::arg("name"),
            "Whether there is a field of this name.")
        .def(
            "has_element", [](const C& c, int64_t i) { return c.find_element(i).is_valid(); }, nb::arg("index"),
            "Whether there is an element with this index.")
        .def(
            "reinterpret",
            [](const C& c, nb::handle layout) {
                return c.reinterpret(layout_from_python(layout, "BufferElementCursor.reinterpret"));
            },
            nb::arg("layout"), "A cursor at the same bytes that sees them as another type layout.")
        .def("read", &read_element, "int, float, bool, spy vector or matrix, list, dict; pointers as int.")
        .def(
            "write", &write_element, nb::arg("value").none(),
            "Writes a number, vector, matrix, list, dict or array, as the type takes it. Errors name the field's path.")
        .def("set_data", &set_element_data, nb::arg("data"), "Copies the raw bytes of a contiguous array.")
        .def_prop_ro("_offset", &C::offset)
        .def_prop_ro("_type_layout", [](const C& c) { return c.layout(); })
        .def("__getattr__",
             [](const C& c, std::string_view name) { return attribute_field(c, "BufferElementCursor", name); })
        .def(
            "__setattr__",
            [](const C& c, std::string_view name, nb::handle value) {
                write_element(attribute_field(c, "BufferElementCursor", name), value);
            },
            nb::arg("name"), nb::arg("value").none())
        .def("__getitem__", [](const C& c, std::string_view name) { return item_field(c, name); })
        .def("__getitem__", [](const C& c, int64_t index) { return item_element(c, index); })
        .def(
            "__setitem__",
            [](const C& c, std::string_view name, nb::handle v) { write_element(item_field(c, name), v); },
            nb::arg("name"), nb::arg("value").none())
        .def(
            "__setitem__", [](const C& c, int64_t i, nb::handle v) { write_element(item_element(c, i), v); },
            nb::arg("index"), nb::arg("value").none())
        .def("__dir__", &dir_with_fields<C>)
        .def("__repr__", &element_repr);
}

using BufferCursorClass = nb::class_<BufferCursor, Object>;

void bind_buffer_elements(BufferCursorClass& cls)
{
    using C = BufferCursor;
    cls.def_prop_ro("element_count", &C::element_count)
        .def_prop_ro("element_size", [](const C& c) { return c.element_layout()->size; })
        .def_prop_ro("element_stride", &C::element_stride)
        .def_prop_ro("size", &C::size)
        .def_prop_ro("element_type_layout", &element_type_layout)
        .def_prop_ro("element_type", &element_type)
        .def_prop_ro("resource", &C::resource)
        .def_prop_ro("is_loaded", &C::is_loaded)
        .def("load", &load, "Fetches the elements; what was written and not applied is lost.")
        .def("apply", &apply, "Uploads the elements when any were written.")
        .def("to_numpy", &to_numpy, "All elements as bytes: uint8, 1-D, with padding.")
        .def("copy_from_numpy", &copy_from_numpy, nb::arg("data"), "Raw bytes; a prefix is fine.")
        .def("write_from_numpy", &write_from_numpy, nb::arg("data"), nb::arg("unchecked_copy") = true,
             "An array, or a dict of arrays per field; the first axis is the element. unchecked_copy copies the raw "
             "bytes of each row, otherwise dtypes and shapes are checked and bool is converted.")
        .def(
            "find_element",
            [](ref<C> c, int64_t i) {
                const auto count = int64_t(c->element_count());
                return i < -count || i >= count ? BufferElementCursor() : element_at(std::move(c), i);
            },
            nb::arg("index"), "Invalid cursor when there is none.")
        .def("__len__", &C::element_count)
        .def("__getitem__", &element_at)
        .def(
            "__setitem__",
            [](ref<C> c, int64_t i, nb::handle value) { write_element(element_at(std::move(c), i), value); },
            nb::arg("index"), nb::arg("value").none())
        .def("__repr__", [](const C& c) {
            return cat("BufferCursor(type=", type_text(*c.element_layout()), ", element_count=", c.element_count(),
                       ", element_stride=", c.element_stride(), ", is_loaded=", c.is_loaded() ? "true" : "false", ")");
        });
}

} // namespace

void bind_buffer_cursor(nb::module_& m)
{
    bind_element(m);
    using C = BufferCursor;
    BufferCursorClass cls(m, "BufferCursor", nb::dynamic_attr(), // ._reflect
                          "Elements of a buffer on the host: `cursor[i].field = value`, then apply(). Loads on the "
                          "first read, and before the first write unless load_before_write is False (elements that "
                          "are not written are then zero after apply()).");
    cls.def(
           "__init__",
           [](C* self, nb::handle layout, ref<Buffer> buffer, bool load_before_write) {
               new (self)
                   C(layout_from_python(layout, "BufferCursor"), std::move(buffer), UINT64_MAX, 0, load_before_write);
               remember_source(*self, layout);
           },
           nb::arg("element_layout"), nb::arg("buffer_resource"), nb::arg("load_before_write") = true)
        .def(
            "__init__",
            [](C* self, nb::handle layout, ref<Buffer> buffer, uint64_t size, uint64_t offset, bool load_first) {
                new (self) C(layout_from_python(layout, "BufferCursor"), std::move(buffer), size, offset, load_first);
                remember_source(*self, layout);
            },
            nb::arg("element_layout"), nb::arg("buffer_resource"), nb::arg("size"), nb::arg("offset"),
            nb::arg("load_before_write") = true)
        .def(
            "__init__",
            [](C* self, Member<"BufferCursor 'device_type'", DeviceType> type, nb::handle layout,
               uint64_t element_count) {
                (void)DeviceType(type);
                // the layout already is the device type's
                new (self) C(layout_from_python(layout, "BufferCursor"), element_count);
                remember_source(*self, layout);
            },
            nb::arg("device_type"), nb::arg("element_layout"), nb::arg("element_count"));
    bind_buffer_elements(cls);
}

} // namespace spy
