// Components by name and by index; the method tables.
#include "python/math/object.h"

#include <cstring>

namespace spy::math {

namespace {

const MathTypeInfo& vector_of(const MathTypeInfo& info, int count) { return *math_vector_type(info.scalar, count); }

// ---- names ---------------------------------------------------------------------------------------------------------

/// Component indices of a swizzle like "zyx" or "bgr"; 0 when `name` is none for this class.
int parse_swizzle(const MathTypeInfo& info, std::string_view name, int* indices)
{
    if (info.is_matrix || info.is_scalar || name.empty() || name.size() > 4)
        return 0;
    for (const std::string_view set : {std::string_view("xyzw"), std::string_view("rgba")}) {
        size_t n = 0;
        for (; n < name.size(); ++n) {
            const size_t index = set.substr(0, info.cols).find(name[n]);
            if (index == std::string_view::npos)
                break;
            indices[n] = int(index);
        }
        if (n == name.size())
            return int(n);
    }
    return 0;
}

std::string_view utf8(PyObject* name)
{
    Py_ssize_t size = 0;
    const char* text = PyUnicode_AsUTF8AndSize(name, &size);
    if (!text)
        throw nb::python_error();
    return {text, size_t(size)};
}

PyObject* get_attribute(PyObject* self, PyObject* name)
{
    return guard<PyObject*>(nullptr, [&]() -> PyObject* {
        const MathTypeInfo& info = *info_of(self);
        int indices[4];
        const int n = parse_swizzle(info, utf8(name), indices);
        const size_t step = step_of(info);
        if (n == 0)
            return PyObject_GenericGetAttr(self, name);
        if (n == 1)
            return load_number(info.scalar, bytes_of(self) + size_t(indices[0]) * step).release().ptr();
        Packed packed;
        for (int i = 0; i < n; ++i)
            std::memcpy(packed.bytes + size_t(i) * step, bytes_of(self) + size_t(indices[i]) * step, step);
        return new_math(vector_of(info, n), packed.bytes).release().ptr();
    });
}

int set_attribute(PyObject* self, PyObject* name, PyObject* value)
{
    return guard(-1, [&] {
        const MathTypeInfo& info = *info_of(self);
        int indices[4];
        const std::string_view text = utf8(name);
        const int n = parse_swizzle(info, text, indices);
        if (n == 0)
            return PyObject_GenericSetAttr(self, name, value);
        const std::string where = cat(info.name, ".", text);
        if (!value)
            raise(PyExc_AttributeError, where + ": components cannot be deleted");
        Packed packed;
        const size_t step = step_of(info);
        if (n == 1)
            store_number(info.scalar, packed.bytes, value, where);
        else
            convert_math(value, vector_of(info, n), packed.bytes, where);
        for (int i = 0; i < n; ++i)
            for (int j = i + 1; j < n; ++j)
                if (indices[i] == indices[j])
                    raise(PyExc_AttributeError, where + ": a component that is named twice cannot be assigned");
        for (int i = 0; i < n; ++i)
            std::memcpy(bytes_of(self) + size_t(indices[i]) * step, packed.bytes + size_t(i) * step, step);
        return 0;
    });
}

// Reads and writes go through the swizzles; these entries are for help() and dir().
PyObject* get_component(PyObject* self, void* index)
{
    return guard<PyObject*>(nullptr, [&] {
        const MathTypeInfo& info = *info_of(self);
        return load_number(info.scalar, bytes_of(self) + reinterpret_cast<size_t>(index) * step_of(info))
            .release()
            .ptr();
    });
}

PyObject* get_shape(PyObject* self, void*)
{
    const MathTypeInfo& info = *info_of(self);
    if (info.is_scalar)
        return PyTuple_New(0);
    return info.is_matrix ? Py_BuildValue("(ii)", int(info.rows), int(info.cols))
                          : Py_BuildValue("(i)", int(info.cols));
}

PyObject* get_element_type(PyObject* self, void*)
{
    const Kind kind = kind_of(*info_of(self));
    PyTypeObject* type = kind == Kind::boolean ? &PyBool_Type : kind == Kind::integer ? &PyLong_Type : &PyFloat_Type;
    return Py_NewRef(reinterpret_cast<PyObject*>(type));
}

// ---- indices -------------------------------------------------------------------------------------------------------

int checked_index(PyObject* key, int size, const MathTypeInfo& info, const char* what)
{
    const Py_ssize_t index = PyNumber_AsSsize_t(key, PyExc_IndexError);
    if (index == -1 && PyErr_Occurred())
        throw nb::python_error();
    if (index < -size || index >= size)
        fail(ErrorKind::index, info.name, ": index ", index, " is out of range, it has ", size, " ", what);
    return int(index < 0 ? index + size : index);
}

struct Range {
    Py_ssize_t start, step;
    int count;
};

/// An index is a range of one.
Range checked_range(PyObject* key, int size, const MathTypeInfo& info, const char* what)
{
    if (!PySlice_Check(key))
        return {checked_index(key, size, info, what), 1, 1};
    Py_ssize_t start, stop, step;
    if (PySlice_Unpack(key, &start, &stop, &step) < 0)
        throw nb::python_error();
    const Py_ssize_t count = PySlice_AdjustIndices(size, &start, &stop, step);
    if (count == 0)
        fail(ErrorKind::index, info.name, ": the slice selects none of the ", size, " ", what);
    return {start, step, int(count)};
}

/// What a key selects: a grid of components, and whether each axis was an index (drops out of the result) or a slice.
struct Selection {
    Range rows, cols;
    bool row_index, col_index;
    int count() const { return rows.count * cols.count; }
};

Selection select(const MathTypeInfo& info, PyObject* key)
{
    if (!info.is_matrix)
        return {{0, 1, 1}, checked_range(key, info.cols, info, "components"), true, !PySlice_Check(key)};
    PyObject *row = key, *col = nullptr;
    if (PyTuple_Check(key)) {
        if (PyTuple_Size(key) != 2)
            fail(ErrorKind::index, info.name, ": takes one or two indices, got ", PyTuple_Size(key));
        row = PyTuple_GetItem(key, 0);
        col = PyTuple_GetItem(key, 1);
    }
    const Range all{0, 1, info.cols};
    return {checked_range(row, info.rows, info, "rows"), col ? checked_range(col, info.cols, info, "columns") : all,
            !PySlice_Check(row), col && !PySlice_Check(col)};
}

template <typename Fn>
void for_selected(const MathTypeInfo& info, const Selection& at, Fn fn)
{
    for (int r = 0; r < at.rows.count; ++r)
        for (int c = 0; c < at.cols.count; ++c)
            fn(size_t((at.rows.start + r * at.rows.step) * info.cols + at.cols.start + c * at.cols.step),
               size_t(r * at.cols.count + c));
}

/// The class of a selection that is no single component.
const MathTypeInfo& selected_type(const MathTypeInfo& info, const Selection& at)
{
    if (at.row_index || at.col_index)
        return vector_of(info, at.count());
    if (at.rows.count < 2 || at.cols.count < 2)
        fail(ErrorKind::index, info.name, ": the slices select ", at.rows.count, " x ", at.cols.count,
             ", but a matrix has 2 to 4 rows and columns; use an index for the other axis to get a vector");
    return *math_matrix_type(info.scalar, at.rows.count, at.cols.count);
}

nb::object get_selected(PyObject* self, const MathTypeInfo& info, const Selection& at)
{
    const size_t step = step_of(info);
    Packed packed;
    for_selected(info, at, [&](size_t from, size_t to) {
        std::memcpy(packed.bytes + to * step, bytes_of(self) + from * step, step);
    });
    if (at.row_index && at.col_index)
        return load_number(info.scalar, packed.bytes);
    return new_math(selected_type(info, at), packed.bytes);
}

void set_selected(PyObject* self, const MathTypeInfo& info, const Selection& at, PyObject* value)
{
    const size_t step = step_of(info);
    const std::string where = cat(info.name, "[...]");
    if (!value)
        fail_type(where, ": components cannot be deleted");
    Packed packed;
    if (at.row_index && at.col_index)
        store_number(info.scalar, packed.bytes, value, where);
    else
        convert_math(value, selected_type(info, at), packed.bytes, where);
    for_selected(info, at, [&](size_t to, size_t from) {
        std::memcpy(bytes_of(self) + to * step, packed.bytes + from * step, step);
    });
}

PyObject* get_subscript(PyObject* self, PyObject* key)
{
    return guard<PyObject*>(nullptr, [&] {
        const MathTypeInfo& info = *info_of(self);
        return get_selected(self, info, select(info, key)).release().ptr();
    });
}

int set_subscript(PyObject* self, PyObject* key, PyObject* value)
{
    return guard(-1, [&] {
        const MathTypeInfo& info = *info_of(self);
        set_selected(self, info, select(info, key), value);
        return 0;
    });
}

Py_ssize_t get_length(PyObject* self)
{
    const MathTypeInfo& info = *info_of(self);
    return info.is_matrix ? info.rows : info.cols;
}

/// The i-th component or row; for the sequence protocol, which has made negative indices positive.
PyObject* get_item(PyObject* self, Py_ssize_t index)
{
    const MathTypeInfo& info = *info_of(self);
    if (index < 0 || index >= get_length(self)) {
        PyErr_Format(PyExc_IndexError, "%s: index %zd is out of range", info.name, index);
        return nullptr;
    }
    return guard<PyObject*>(nullptr, [&] {
        const unsigned char* data = bytes_of(self);
        if (!info.is_matrix)
            return load_number(info.scalar, data + size_t(index) * step_of(info)).release().ptr();
        const MathTypeInfo& row = vector_of(info, info.cols);
        return new_math(row, data + size_t(index) * row.size).release().ptr();
    });
}

Selection line(const MathTypeInfo& info, PyObject* index, bool column)
{
    const int at = checked_index(index, column ? info.cols : info.rows, info, column ? "columns" : "rows");
    if (column)
        return {{0, 1, info.rows}, {at, 1, 1}, false, true};
    return {{at, 1, 1}, {0, 1, info.cols}, true, false};
}

template <bool column>
PyObject* get_line(PyObject* self, PyObject* index)
{
    return guard<PyObject*>(nullptr, [&] {
        const MathTypeInfo& info = *info_of(self);
        return get_selected(self, info, line(info, index, column)).release().ptr();
    });
}

template <bool column>
PyObject* set_line(PyObject* self, PyObject* args)
{
    return guard<PyObject*>(nullptr, [&]() -> PyObject* {
        PyObject *index, *value;
        if (!PyArg_ParseTuple(args, column ? "OO:set_col" : "OO:set_row", &index, &value))
            return nullptr;
        const MathTypeInfo& info = *info_of(self);
        set_selected(self, info, line(info, index, column), value);
        Py_RETURN_NONE;
    });
}

// ---- matrices ------------------------------------------------------------------------------------------------------

template <bool identity>
PyObject* make_matrix(PyObject* type, PyObject*)
{
    PyObject* matrix = PyObject_CallNoArgs(type);
    if (matrix && !identity) {
        const MathTypeInfo& info = *info_of(matrix);
        std::memset(math_data(matrix), 0, info.size);
    }
    return matrix;
}

template <typename Fn>
PyCFunction method(Fn* function)
{
    return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

} // namespace

#define SPY_COMMON_METHODS                                                                                             \
    {"to_numpy", method(to_numpy), METH_NOARGS, "A new array of the same dtype and shape."},                           \
        {"__array__", method(to_array), METH_VARARGS | METH_KEYWORDS,                                                  \
         "__array__(dtype=None, copy=None): shares memory where it can."},                                             \
        {"__dlpack__", method(to_dlpack), METH_VARARGS | METH_KEYWORDS,                                                \
         "DLPack capsule on the components, which stay shared."},                                                      \
        {"__dlpack_device__", method(dlpack_device), METH_NOARGS, "(1, 0): host memory."},                             \
        {"__reduce__", method(reduce), METH_NOARGS, "For pickle and copy."}

PyMethodDef common_methods[] = {SPY_COMMON_METHODS, {nullptr, nullptr, 0, nullptr}};
PyMethodDef matrix_methods[] = {
    SPY_COMMON_METHODS,
    {"get_row", method(get_line<false>), METH_O, "Row i, a vector; negative i counts from the end."},
    {"get_col", method(get_line<true>), METH_O, "Column i, a vector; negative i counts from the end."},
    {"set_row", method(set_line<false>), METH_VARARGS, "set_row(i, v): v is a vector or sequence of as many numbers."},
    {"set_col", method(set_line<true>), METH_VARARGS, "set_col(i, v): v is a vector or sequence of as many numbers."},
    {"zeros", method(make_matrix<false>), METH_NOARGS | METH_CLASS, "All components 0."},
    {"identity", method(make_matrix<true>), METH_NOARGS | METH_CLASS,
     "Ones on the diagonal, also of rectangular matrices."},
    {nullptr, nullptr, 0, nullptr},
};

PyMethodDef quat_methods[] = {
    SPY_COMMON_METHODS,
    {"identity", method(make_matrix<true>), METH_NOARGS | METH_CLASS, "{0, 0, 0, 1}, the rotation by 0."},
    {nullptr, nullptr, 0, nullptr},
};

#define SPY_COMPONENT(name, index)                                                                                     \
    {name, get_component, nullptr, "Component " #index ", settable.", reinterpret_cast<void*>(size_t(index))}
#define SPY_ATTRIBUTES                                                                                                 \
    {"shape", get_shape, nullptr, "Sizes as a tuple.", nullptr},                                                       \
        {"element_type", get_element_type, nullptr, "The Python type of a component: float, int or bool.", nullptr},   \
    {                                                                                                                  \
        nullptr, nullptr, nullptr, nullptr, nullptr                                                                    \
    }

PyGetSetDef vector_getset[] = {SPY_COMPONENT("w", 3), SPY_COMPONENT("z", 2), SPY_COMPONENT("y", 1),
                               SPY_COMPONENT("x", 0), SPY_ATTRIBUTES};
PyGetSetDef matrix_getset[] = {SPY_ATTRIBUTES};

std::span<const PyType_Slot> element_slots()
{
    static const PyType_Slot slots[] = {
        {Py_tp_getattro, reinterpret_cast<void*>(get_attribute)},
        {Py_tp_setattro, reinterpret_cast<void*>(set_attribute)},
        {Py_mp_length, reinterpret_cast<void*>(get_length)},
        {Py_mp_subscript, reinterpret_cast<void*>(get_subscript)},
        {Py_mp_ass_subscript, reinterpret_cast<void*>(set_subscript)},
        {Py_sq_length, reinterpret_cast<void*>(get_length)},
        {Py_sq_item, reinterpret_cast<void*>(get_item)},
    };
    return slots;
}

} // namespace spy::math
