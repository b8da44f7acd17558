// Python values into laid-out bytes.
#include "values/nb.h"

#include "device/cursor.h"
#include "device/resource.h"
#include "values/classes.h"
#include "values/math.h"
#include "values/writer.h"
#include "core/python_names.h"

namespace spy {
namespace {

/// What a writer says about a value: written, or not a kind of value that it knows.
enum class Outcome { written, unknown };

void store_checked(const TypeLayout& layout, ScalarType scalar, uint32_t bytes, uint8_t* dst, const Number& number,
                   PyObject* value, const ValuePath& path)
{
    const StoreResult result = store_number_exact(scalar, bytes, dst, number);
    if (result != StoreResult::ok)
        fail_number(result, type_text(layout), scalar, value, path);
}

/// spy vectors and matrices: numbers that the target can hold exactly.
void write_math(const TypeLayout& layout, uint8_t* dst, const MathTypeInfo& info, PyObject* value,
                const ValuePath& path)
{
    ScalarGrid grid;
    scalar_grid(layout, grid);
    const auto* src = static_cast<const uint8_t*>(math_data(value));
    const int64_t item = scalar_info(info.scalar).size;
    const int64_t rows = grid.rank == 2 ? grid.shape[0] : 1, cols = grid.shape[grid.rank - 1];
    const int64_t row_step = grid.rank == 2 ? grid.stride[0] : 0, col_step = grid.stride[grid.rank - 1];
    const bool same = info.scalar == layout.scalar && grid.scalar_bytes == item;
    for (int64_t row = 0; row < rows; ++row) {
        for (int64_t col = 0; col < cols; ++col, src += item) {
            uint8_t* to = dst + row * row_step + col * col_step;
            if (same)
                std::memcpy(to, src, size_t(item));
            else
                store_checked(layout, layout.scalar, grid.scalar_bytes, to, load_number(info.scalar, 1, src), value,
                              path);
        }
    }
}

std::string wrong_length(const char* text, const TypeLayout& layout, int64_t expected, int64_t got)
{
    return cat(text, " Expected ", expected, " for ", type_text(layout), ", got ", got, ".");
}

/// Arrays with the buffer protocol: the shape must be the grid's, the bits the target's.
void write_array(const TypeLayout& layout, const ScalarGrid& grid, uint8_t* dst, const HostArray& array,
                 const ValuePath& path)
{
    if (!same_bits(array.scalar(), grid.scalar))
        fail_at(path, ErrorKind::type,
                cat("expected an array of ", scalar_info(grid.scalar).numpy_name, " for ", type_text(layout), ", got ",
                    array.dtype_text(), "; convert it with astype()"));
    bool matches = array.rank() == int(grid.rank);
    for (uint32_t axis = 0; matches && axis < grid.rank; ++axis)
        matches = array.size(int(axis)) == grid.shape[axis];
    if (!matches) {
        if (layout.kind == TypeKind::vector && array.rank() == 1)
            fail_at(path, ErrorKind::value,
                    wrong_length("sequence has wrong dimension.", layout, grid.shape[0], array.size(0)));
        if (layout.kind == TypeKind::array && array.rank() == 1 && grid.rank == 1)
            fail_at(path, ErrorKind::value,
                    wrong_length("sequence is the wrong length.", layout, grid.shape[0], array.size(0)));
        fail_at(path, ErrorKind::value,
                cat("array has the wrong shape: expected ", grid.shape_text(), " for ", type_text(layout), ", got ",
                    array.shape_text()));
    }
    int64_t strides[ScalarGrid::max_rank];
    for (uint32_t axis = 0; axis < grid.rank; ++axis)
        strides[axis] = array.stride(int(axis));
    write_grid(grid, dst, array.data(), strides);
}

bool is_plain_sequence(PyObject* value) { return PyList_Check(value) || PyTuple_Check(value); }

/// Lists and tuples as they are, other sequences (range, Shape, deque) as lists; invalid for the rest.
nb::object as_sequence(PyObject* value)
{
    if (is_plain_sequence(value))
        return nb::borrow(value);
    if (!PySequence_Check(value) || PyDict_Check(value) || PyUnicode_Check(value) || PyBytes_Check(value) ||
        !nb::hasattr(value, "__len__"))
        return {};
    nb::object list = nb::steal(PySequence_List(value));
    if (!list.is_valid())
        PyErr_Clear();
    return list;
}

Py_ssize_t sequence_size(PyObject* sequence)
{
    return PyList_Check(sequence) ? PyList_Size(sequence) : PyTuple_Size(sequence);
}

nb::object sequence_item(PyObject* sequence, Py_ssize_t index)
{
    PyObject* item = PyList_Check(sequence) ? PyList_GetItem(sequence, index) : PyTuple_GetItem(sequence, index);
    if (!item)
        throw nb::python_error();
    return nb::borrow(item);
}

void write_numbers(const TypeLayout& layout, uint8_t* dst, PyObject* sequence, const ValuePath& path)
{
    const Py_ssize_t size = sequence_size(sequence);
    if (size != Py_ssize_t(layout.cols))
        fail_at(path, ErrorKind::value, wrong_length("sequence has wrong dimension.", layout, layout.cols, size));
    const uint64_t step = element_step(layout);
    const uint32_t bytes = scalar_bytes(layout);
    for (Py_ssize_t i = 0; i < size; ++i)
        write_scalar(layout.scalar, bytes, dst + uint64_t(i) * step, sequence_item(sequence, i).ptr(),
                     ValuePath{&path, {}, i});
}

bool open_at(HostArray& array, PyObject* value, const ValuePath& path)
{
    try {
        return array.open(value);
    } catch (const Error& error) {
        fail_at(path, error.kind(), error.what());
    } catch (const nb::python_error& error) {
        const ValueClass kind = class_of(value).value_class;
        if (kind != ValueClass::tensor && kind != ValueClass::buffer && kind != ValueClass::texture)
            throw; // a user's own
        fail_at(path, ErrorKind::runtime, nb::str(error.value()).c_str());
    }
}

/// Whether the value is an array, which is then written.
bool write_host_array(const TypeLayout& layout, uint8_t* dst, PyObject* value, const ValuePath& path)
{
    HostArray array;
    if (!open_at(array, value, path))
        return false;
    ScalarGrid grid;
    scalar_grid(layout, grid);
    write_array(layout, grid, dst, array, path);
    return true;
}

Outcome write_vector(const TypeLayout& layout, uint8_t* dst, PyObject* value, const ValuePath& path)
{
    if (is_plain_sequence(value)) {
        write_numbers(layout, dst, value, path);
        return Outcome::written;
    }
    if (const MathTypeInfo* info = find_math_type(Py_TYPE(value))) {
        if (info->is_matrix || info->is_scalar)
            return Outcome::unknown;
        if (info->count != layout.cols)
            fail_at(path, ErrorKind::value,
                    wrong_length("sequence has wrong dimension.", layout, layout.cols, info->count));
        write_math(layout, dst, *info, value, path);
        return Outcome::written;
    }
    if (write_host_array(layout, dst, value, path))
        return Outcome::written;
    nb::object sequence = as_sequence(value);
    if (!sequence.is_valid())
        return Outcome::unknown;
    write_numbers(layout, dst, sequence.ptr(), path);
    return Outcome::written;
}

Outcome write_vector(const TypeLayout& layout, const Place& place, PyObject* value, const ValuePath& path)
{
    if (write_vector(layout, place.bytes, value, path) == Outcome::written)
        return Outcome::written;
    return write_element_handle(layout, place, value, path) ? Outcome::written : Outcome::unknown;
}

Outcome write_matrix(const TypeLayout& layout, uint8_t* dst, PyObject* value, const ValuePath& path)
{
    if (const MathTypeInfo* info = find_math_type(Py_TYPE(value))) {
        if (!info->is_matrix)
            return Outcome::unknown;
        if (info->rows != layout.rows || info->cols != layout.cols)
            fail_at(path, ErrorKind::value,
                    cat("matrix has the wrong shape: expected ", layout.rows, "x", layout.cols, ", got ",
                        int(info->rows), "x", int(info->cols)));
        write_math(layout, dst, *info, value, path);
        return Outcome::written;
    }
    if (write_host_array(layout, dst, value, path))
        return Outcome::written;
    nb::object rows = as_sequence(value);
    if (!rows.is_valid())
        return Outcome::unknown;
    const Py_ssize_t size = sequence_size(rows.ptr());
    if (size != Py_ssize_t(layout.rows))
        fail_at(path, ErrorKind::value,
                cat("sequence has wrong dimension. Expected ", layout.rows, " rows for ", type_text(layout), ", got ",
                    size, "."));
    const ref<TypeLayout> row = element_layout(layout);
    for (Py_ssize_t i = 0; i < size; ++i) {
        const ValuePath row_path{&path, {}, i};
        nb::object item = sequence_item(rows.ptr(), i);
        if (write_vector(*row, dst + uint64_t(i) * element_step(layout), item.ptr(), row_path) == Outcome::unknown)
            fail_at(row_path, ErrorKind::type,
                    cat("expected a sequence of ", layout.cols, " numbers, got ", short_repr(item.ptr()), " (",
                        type_name(item.ptr()), ")"));
    }
    return Outcome::written;
}

Outcome write_elements(const TypeLayout& layout, const Place& place, PyObject* value, const ValuePath& path)
{
    ScalarGrid grid;
    HostArray array;
    const bool is_list = is_plain_sequence(value);
    if (!is_list && !find_math_type(Py_TYPE(value)) && scalar_grid(layout, grid) && open_at(array, value, path)) {
        write_array(layout, grid, place.bytes, array, path);
        return Outcome::written;
    }
    nb::object sequence = as_sequence(value);
    if (!sequence.is_valid())
        return Outcome::unknown;
    const Py_ssize_t size = sequence_size(sequence.ptr());
    if (layout.element_count < 0)
        fail_at(path, ErrorKind::not_implemented,
                cat("an unbounded array (", type_text(layout), ") cannot be written; give it a size in the shader"));
    if (size != Py_ssize_t(layout.element_count))
        fail_at(path, ErrorKind::value,
                wrong_length("sequence is the wrong length.", layout, layout.element_count, size));
    const TypeLayout& element = *layout.element;
    const bool scalars = element.kind == TypeKind::scalar;
    for (Py_ssize_t i = 0; i < size; ++i) {
        const ValuePath item_path{&path, {}, i};
        nb::object item = sequence_item(sequence.ptr(), i);
        const Place at = place.element(layout, i);
        if (scalars)
            write_scalar(element.scalar, scalar_bytes(element), at.bytes, item.ptr(), item_path);
        else
            write_at(element, at, item.ptr(), item_path);
    }
    return Outcome::written;
}

// --- structs

std::string_view key_text(PyObject* key, const ValuePath& path)
{
    Py_ssize_t size = 0;
    const char* text = PyUnicode_Check(key) ? PyUnicode_AsUTF8AndSize(key, &size) : nullptr;
    if (!text) {
        PyErr_Clear();
        fail_at(path, ErrorKind::type, cat("dict keys must be field names, got ", short_repr(key)));
    }
    return {text, size_t(size)};
}

bool is_tensor_struct(const TypeLayout& layout)
{
    return layout.find_field("_primal") || layout.find_field("_data") || layout.find_field("_shape");
}

/// Memory that a kernel reaches by pointer is in no slot, so its device is checked here and not at the launch.
void check_owner(const Place& place, const Object* owner, const ValuePath& path)
{
    const auto* buffer = dynamic_cast<const Buffer*>(owner);
    if (buffer && place.object && place.object->device())
        check_same_device(place.object->device(), buffer, cat("'", path.str(), "'").c_str());
}

/// The fields that a struct for tensors has, from Tensor.uniforms().
void write_tensor(const TypeLayout& layout, const Place& place, PyObject* tensor, const ValuePath& path)
{
    if (const FieldLayout* primal = layout.find_field("_primal")) {
        write_at(*primal->type, place.field(*primal), tensor, ValuePath{&path, primal->name, 0});
        constexpr std::pair<const char*, const char*> grads[] = {{"_grad_in", "grad_in"}, {"_grad_out", "grad_out"}};
        for (const auto& [field_name, attribute_name] : grads) {
            const FieldLayout* field = layout.find_field(field_name);
            nb::object grad = attribute(tensor, attribute_name);
            if (field && !grad.is_none())
                write_at(*field->type, place.field(*field), grad.ptr(), ValuePath{&path, field->name, 0});
        }
        return;
    }
    if (nb::inst_check(tensor) && !nb::inst_ready(tensor))
        fail_at(path, ErrorKind::type,
                cat("this ", class_name(tensor), " was never initialised (a subclass without super().__init__()?)"));
    nb::object uniforms = nb::handle(tensor).attr(in_python::uniforms.name)();
    if (!PyDict_Check(uniforms.ptr()))
        fail_at(path, ErrorKind::type, "uniforms() did not return a dict");
    std::vector<std::string> not_in_struct; // what other kinds of tensors need, such as pointers to gradients
    write_dict(layout, place, uniforms.ptr(), path, &not_in_struct);
    nb::object storage = attribute(tensor, "storage"); // kept alive itself: the Tensor may get another one later
    if (nb::isinstance<Buffer>(storage)) {
        check_owner(place, nb::cast<Buffer*>(storage), path);
        keep_at(place, ref<Object>(nb::cast<Buffer*>(storage)));
    } else
        keep_at(place, ref<Object>(new PythonOwner(tensor)));
}

Outcome write_pointer(const TypeLayout& layout, const Place& place, PyObject* value, const ValuePath& path);

Outcome write_struct(const TypeLayout& layout, const Place& place, PyObject* value, const ValuePath& path)
{
    if (std::string_view(layout.full_name).starts_with("_spy_Ptr<")) // where there are no pointers (memory_hlsl.slang)
        if (const FieldLayout* address = layout.find_field("_address"); address && !PyDict_Check(value))
            return write_pointer(*address->type, place.field(*address), value, path);
    if (PyDict_Check(value)) {
        write_dict(layout, place, value, path);
        return Outcome::written;
    }
    if (std::string_view(layout.full_name).starts_with("TensorView") && write_tensor_view(layout, place, value, path))
        return Outcome::written;
    if (std::string_view(layout.full_name).starts_with("_spy_Storage<")) { // what our tensors keep their address in
        const FieldLayout* pointer = layout.find_field("_ptr");
        if (pointer && !nb::hasattr(value, in_python::uniforms.name)) {
            write_at(*pointer->type, place.field(*pointer), value, path);
            return Outcome::written;
        }
    }
    if (is_tensor_struct(layout) && nb::hasattr(value, in_python::uniforms.name)) {
        write_tensor(layout, place, value, path);
        return Outcome::written;
    }
    return Outcome::unknown;
}

/// An object that fills a cursor by itself. It may keep the cursor, so instead of plain memory it gets a copy.
bool write_by_method(const TypeLayout& layout, const Place& place, PyObject* value, const ValuePath& path)
{
    nb::object method = attribute(value, "write_to_cursor");
    if (method.is_none())
        return false;
    ref<TypeLayout> type(const_cast<TypeLayout*>(&layout));
    if (place.object) {
        method(ShaderCursor(ref<ShaderObject>(place.object), type, place, path.str()));
        return true;
    }
    ref<BufferCursor> copy(new BufferCursor(type, 1));
    method(BufferElementCursor(copy, type, 0, path.str()));
    std::memcpy(place.bytes, copy->read(0), layout.size);
    return true;
}

/// ConstantBuffer and ParameterBlock: their contents, or an object that stands in for them.
Outcome write_block(const TypeLayout& layout, const Place& place, PyObject* value, const ValuePath& path)
{
    nb::object object = nb::borrow(value);
    if (!nb::isinstance<ShaderObject>(object))
        object = attribute(value, "shader_object"); // packed arguments
    if (nb::isinstance<ShaderObject>(object)) {
        auto* block = nb::cast<ShaderObject*>(object);
        if (layout.element && block->type()->full_name != layout.element->full_name)
            fail_at(path, ErrorKind::type,
                    cat("expected a shader object for ", type_text(*layout.element), ", got one for ",
                        type_text(*block->type())));
        if (!place.object)
            fail_at(path, ErrorKind::value, "a parameter block cannot lie in buffer memory");
        if (block->device()->backend() != place.object->device()->backend())
            fail_at(path, ErrorKind::value,
                    cat("the shader object belongs to ",
                        other_device(*block->device(), *place.object->device(), "it is assigned to")));
        place.object->set_block(place.nested_scope, place.slot, block);
        return Outcome::written;
    }
    if (!layout.element)
        return Outcome::unknown;
    write_at(*layout.element, place.enter_block(*layout.element), value, path);
    return Outcome::written;
}

Outcome write_pointer(const TypeLayout& layout, const Place& place, PyObject* value, const ValuePath& path)
{
    uint64_t address = 0;
    ref<Object> owner;
    if (!pointer_from_python(value, address, owner, path))
        return Outcome::unknown;
    if (const auto* buffer = dynamic_cast<const Buffer*>(owner.get()))
        check_content(*buffer, layout, path);
    check_owner(place, owner.get(), path);
    store_raw<uint64_t>(place.bytes, address);
    keep_at(place, std::move(owner));
    return Outcome::written;
}

Outcome write_kind(const TypeLayout& layout, const Place& place, PyObject* value, const ValuePath& path)
{
    switch (layout.kind) {
    case TypeKind::vector: return write_vector(layout, place, value, path);
    case TypeKind::matrix: return write_matrix(layout, place.bytes, value, path);
    case TypeKind::array: return write_elements(layout, place, value, path);
    case TypeKind::struct_: return write_struct(layout, place, value, path);
    case TypeKind::constant_buffer:
    case TypeKind::parameter_block: return write_block(layout, place, value, path);
    case TypeKind::pointer: return write_pointer(layout, place, value, path);
    case TypeKind::descriptor_handle:
        return write_handle(layout, place, value, path) ? Outcome::written : Outcome::unknown;
    case TypeKind::resource:
    case TypeKind::sampler_state:
    case TypeKind::texture_buffer:
    case TypeKind::shader_storage_buffer:
        return write_resource(layout, place, value, path) ? Outcome::written : Outcome::unknown;
    default:
        fail_at(path, ErrorKind::not_implemented,
                cat("parameters of type ", type_text(layout), " cannot be written; use a concrete type"));
    }
}

std::string expectation(const TypeLayout& layout)
{
    switch (layout.kind) {
    case TypeKind::vector: return cat("a sequence of ", layout.cols, " numbers for ", type_text(layout));
    case TypeKind::matrix:
        return cat("a matrix or an array of shape (", layout.rows, ", ", layout.cols, ") for ", type_text(layout));
    case TypeKind::array: return cat("a list, tuple or array for ", type_text(layout));
    case TypeKind::descriptor_handle: return cat("a DescriptorHandle for ", type_text(layout));
    case TypeKind::pointer: return "an int address, a Buffer or a Tensor";
    case TypeKind::sampler_state: return "a Sampler or None";
    default: return type_text(layout);
    }
}

} // namespace

void write_at(const TypeLayout& layout, const Place& place, PyObject* value, const ValuePath& path)
{
    if (layout.kind == TypeKind::scalar || layout.kind == TypeKind::enum_) {
        Number probe;
        if (PyLong_CheckExact(value) || PyFloat_CheckExact(value) || number_at(value, probe, path) ||
            !nb::hasattr(value, "get_this"))
            return write_scalar(layout.scalar, scalar_bytes(layout), place.bytes, value, path);
    } else if (write_kind(layout, place, value, path) == Outcome::written) {
        return;
    }
    if (write_by_method(layout, place, value, path))
        return;
    // Objects that stand for another value are asked once.
    nb::object stand_in = attribute(value, "get_this");
    nb::object actual = nb::borrow(value);
    if (!stand_in.is_none()) {
        actual = stand_in();
        const bool is_scalar = layout.kind == TypeKind::scalar || layout.kind == TypeKind::enum_;
        if (is_scalar)
            return write_scalar(layout.scalar, scalar_bytes(layout), place.bytes, actual.ptr(), path);
        if (write_kind(layout, place, actual.ptr(), path) == Outcome::written)
            return;
    }
    const std::string got = cat(short_repr(actual.ptr()), " (", type_name(actual.ptr()), ")");
    if (layout.kind == TypeKind::struct_)
        fail_at(path, ErrorKind::type, cat("Expected dict for ", type_text(layout), ", got ", got));
    fail_at(path, ErrorKind::type, cat("expected ", expectation(layout), ", got ", got));
}

void write_dict(const TypeLayout& layout, const Place& place, PyObject* dict, const ValuePath& path,
                std::vector<std::string>* unknown)
{
    PyObject *key_pointer = nullptr, *value_pointer = nullptr;
    Py_ssize_t position = 0;
    while (PyDict_Next(dict, &position, &key_pointer, &value_pointer)) {
        const nb::object key = nb::borrow(key_pointer), value = nb::borrow(value_pointer);
        const std::string_view name = key_text(key.ptr(), path);
        const FieldLayout* field = layout.find_field(name);
        if (field) {
            write_at(*field->type, place.field(*field), value.ptr(), ValuePath{&path, field->name, 0});
        } else if (name == "_type") {
            continue;
        } else if (unknown) {
            unknown->emplace_back(name);
        } else {
            fail_at(path, ErrorKind::value,
                    cat(type_text(layout), " has no field '", name, "'. Fields: ", field_list(layout)));
        }
    }
}

void keep_at(const Place& place, ref<Object> owner)
{
    if (place.object)
        place.object->keep(place.bytes, std::move(owner));
    else if (place.keep_alive && owner)
        place.keep_alive->push_back(std::move(owner));
}

} // namespace spy
