// The classes as text, tuples, hashes, pickles and arrays.
#include "python/math/object.h"

#include <charconv>
#include <cstring>

namespace spy::math {

namespace {

/// Shortest digits that give the same half back; whole numbers in full, 65504 rather than 65500.
std::string half_digits(double value)
{
    char buffer[32];
    for (int precision = 0; value != std::trunc(value) && precision < 5; ++precision) {
        const auto end = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific, precision)
                             .ptr;
        double parsed = 0;
        std::from_chars(buffer, end, parsed);
        if (float16_from_double(parsed) == float16_from_double(value))
            return {buffer, end};
    }
    return {buffer, std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific).ptr};
}

} // namespace

/// Shortest digits that give the value back; plain notation up to the precision of the type, else an exponent.
void append_real(std::string& text, double value, ScalarType scalar)
{
    if (!std::isfinite(value)) {
        text += std::isnan(value) ? "nan" : value < 0 ? "-inf" : "inf";
        return;
    }
    char buffer[32];
    std::string digits;
    if (scalar == ScalarType::float16)
        digits = half_digits(value);
    else if (scalar == ScalarType::float32)
        digits.assign(buffer,
                      std::to_chars(buffer, buffer + sizeof buffer, float(value), std::chars_format::scientific).ptr);
    else
        digits.assign(buffer, std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific).ptr);

    const size_t e = digits.find('e');
    const int exponent = std::stoi(digits.substr(e + 1));
    if (exponent < -4 || exponent >= (scalar == ScalarType::float64 ? 16 : 7)) {
        text += digits;
        return;
    }
    std::string mantissa;
    for (char c : digits.substr(0, e))
        if (c >= '0' && c <= '9')
            mantissa += c;
    if (value < 0 || std::signbit(value))
        text += '-';
    if (exponent < 0)
        text += "0." + std::string(size_t(-exponent - 1), '0') + mantissa;
    else if (mantissa.size() <= size_t(exponent) + 1)
        text += mantissa + std::string(size_t(exponent) + 1 - mantissa.size(), '0');
    else
        text += mantissa.substr(0, size_t(exponent) + 1) + "." + mantissa.substr(size_t(exponent) + 1);
}

namespace {

// ---- text, hash, copies --------------------------------------------------------------------------------------------

void append_component(std::string& text, const MathTypeInfo& info, const unsigned char* data)
{
    if (kind_of(info) == Kind::boolean)
        text += *data ? "true" : "false";
    else if (kind_of(info) == Kind::integer)
        text += nb::cast<std::string>(nb::str(load_number(info.scalar, data)));
    else
        append_real(text, PyFloat_AsDouble(load_number(info.scalar, data).ptr()), info.scalar);
}

PyObject* to_text(PyObject* self)
{
    return guard<PyObject*>(nullptr, [&] {
        const MathTypeInfo& info = *info_of(self);
        const unsigned char* data = bytes_of(self);
        std::string text;
        if (info.is_scalar) {
            append_component(text, info, data);
            if (text.find_first_of(".en") == std::string::npos)
                text += ".0"; // as Python writes floats
            return PyUnicode_FromStringAndSize(text.data(), Py_ssize_t(text.size()));
        }
        for (int r = 0; r < info.rows; ++r) {
            text += r ? ", {" : "{";
            for (int c = 0; c < info.cols; ++c, data += step_of(info)) {
                text += c ? ", " : "";
                append_component(text, info, data);
            }
            text += '}';
        }
        if (info.is_matrix)
            text = "{" + text + "}";
        return PyUnicode_FromStringAndSize(text.data(), Py_ssize_t(text.size()));
    });
}

/// Components as a tuple; matrices as a tuple of rows where `nested`.
nb::object to_tuple(PyObject* self, bool nested)
{
    const MathTypeInfo& info = *info_of(self);
    const unsigned char* data = bytes_of(self);
    nb::list all;
    for (int r = 0; r < info.rows; ++r) {
        nb::list row;
        for (int c = 0; c < info.cols; ++c, data += step_of(info))
            (nested ? row : all).append(load_number(info.scalar, data));
        if (nested)
            all.append(nb::tuple(row));
    }
    return nb::tuple(all);
}

/// Equal to the hash of the tuple with the same numbers, because the two compare equal.
Py_hash_t hash(PyObject* self)
{
    return guard<Py_hash_t>(-1, [&] {
        const MathTypeInfo& info = *info_of(self);
        if (info.is_scalar)
            return PyObject_Hash(load_number(info.scalar, bytes_of(self)).ptr());
        return PyObject_Hash(to_tuple(self, info.is_matrix).ptr());
    });
}

} // namespace

PyObject* reduce(PyObject* self, PyObject*)
{
    return guard<PyObject*>(nullptr, [&] {
        nb::object arguments = to_tuple(self, false);
        if (info_of(self)->is_matrix)
            arguments = nb::make_tuple(arguments);
        nb::object type = nb::borrow(reinterpret_cast<PyObject*>(Py_TYPE(self)));
        nb::object state = nb::getattr(nb::handle(self), "__dict__", nb::none()); // derived classes may have one
        return nb::make_tuple(type, arguments, state).release().ptr();
    });
}

namespace {

// ---- numpy ---------------------------------------------------------------------------------------------------------

const char* buffer_format(ScalarType scalar)
{
    switch (scalar) {
    case ScalarType::bool_: return "?";
    case ScalarType::int32: return "i";
    case ScalarType::uint32: return "I";
    case ScalarType::int64: return sizeof(long) == 8 ? "l" : "q"; // the letter of numpy's int64
    case ScalarType::uint64: return sizeof(long) == 8 ? "L" : "Q";
    case ScalarType::float16: return "e";
    case ScalarType::float64: return "d";
    default: return "f";
    }
}

/// Shape and strides, which must outlive the view.
struct Extent {
    Py_ssize_t shape[2], strides[2];
};

const Extent& extent_of(const MathTypeInfo& info)
{
    static Extent table[2][9][5][5]; // matrix or not, component size, rows, columns
    Extent& extent = table[info.is_matrix][step_of(info)][info.rows][info.cols];
    const Py_ssize_t step = Py_ssize_t(step_of(info));
    if (info.is_matrix)
        extent = {{info.rows, info.cols}, {info.cols * step, step}};
    else
        extent = {{info.cols, 1}, {step, step}};
    return extent;
}

int get_buffer(PyObject* self, Py_buffer* view, int flags)
{
    const MathTypeInfo& info = *info_of(self);
    const Extent& extent = extent_of(info);
    view->buf = math_data(self);
    view->obj = Py_NewRef(self);
    view->len = info.size;
    view->itemsize = Py_ssize_t(step_of(info));
    view->readonly = 0;
    view->ndim = info.is_scalar ? 0 : info.is_matrix && (flags & PyBUF_ND) == PyBUF_ND ? 2 : 1;
    view->format = (flags & PyBUF_FORMAT) == PyBUF_FORMAT ? const_cast<char*>(buffer_format(info.scalar)) : nullptr;
    view->shape = view->ndim && (flags & PyBUF_ND) == PyBUF_ND ? const_cast<Py_ssize_t*>(extent.shape) : nullptr;
    view->strides = view->ndim && (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? const_cast<Py_ssize_t*>(extent.strides)
                                                                           : nullptr;
    view->suboffsets = nullptr;
    view->internal = nullptr;
    return 0;
}

/// An array on the components themselves.
nb::object numpy_view(PyObject* self)
{
    PyObject* memory = PyMemoryView_FromObject(self);
    if (!memory)
        throw nb::python_error();
    return nb::module_::import_("numpy").attr("asarray")(nb::steal(memory));
}

} // namespace

PyObject* to_numpy(PyObject* self, PyObject*)
{
    return guard<PyObject*>(nullptr, [&] { return numpy_view(self).attr("copy")().release().ptr(); });
}

PyObject* to_array(PyObject* self, PyObject* args, PyObject* kwargs)
{
    return guard<PyObject*>(nullptr, [&]() -> PyObject* {
        static const char* names[] = {"dtype", "copy", nullptr};
        PyObject *dtype = Py_None, *copy = Py_None;
        if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|OO:__array__", const_cast<char**>(names), &dtype, &copy))
            return nullptr;
        nb::object view = numpy_view(self);
        nb::object array = dtype == Py_None ? view : view.attr("astype")(nb::handle(dtype), nb::arg("copy") = false);
        const bool shared = array.is(view);
        if (copy == Py_False && !shared)
            fail_value(info_of(self)->name, ".__array__: another dtype needs a copy, but copy=False");
        if (copy != Py_None && PyObject_IsTrue(copy) == 1 && shared)
            array = array.attr("copy")();
        return array.release().ptr();
    });
}

PyObject* to_dlpack(PyObject* self, PyObject* args, PyObject* kwargs)
{
    return guard<PyObject*>(nullptr, [&]() -> PyObject* {
        nb::object method = numpy_view(self).attr("__dlpack__");
        return PyObject_Call(method.ptr(), args, kwargs);
    });
}

PyObject* dlpack_device(PyObject*, PyObject*) { return Py_BuildValue("(ii)", 1, 0); }

std::span<const PyType_Slot> export_slots()
{
    static const PyType_Slot slots[] = {
        {Py_tp_repr, reinterpret_cast<void*>(to_text)},
        {Py_tp_hash, reinterpret_cast<void*>(hash)},
        {Py_bf_getbuffer, reinterpret_cast<void*>(get_buffer)},
    };
    return slots;
}

} // namespace spy::math
