// Errors, the base of shared objects, and what argument parsing shares.
#include "python/bindings.h"

#include "python/fields.h"
#include "core/interrupt.h"
#include "core/warning.h"
#include "core/python_names.h"
#include "python/math/bindings.h"
#include "values/writer.h"

#include <algorithm>
#include <cstring>

namespace spy {

namespace {

/// A class of slangpy.errors, or its base where the native module is used on its own.
nb::object own_class(const char* name, PyObject* base)
{
    try {
        return nb::module_::import_(in_python::errors).attr(name);
    } catch (nb::python_error&) {
        return nb::borrow(base);
    }
}

nb::object exception_class(ErrorKind kind)
{
    switch (kind) {
    case ErrorKind::value: return own_class("NativeValueError", PyExc_ValueError);
    case ErrorKind::type: return own_class("NativeTypeError", PyExc_TypeError);
    case ErrorKind::index: return own_class("NativeIndexError", PyExc_IndexError);
    case ErrorKind::key: return own_class("NameNotFoundError", PyExc_KeyError);
    case ErrorKind::memory: return nb::borrow(PyExc_MemoryError);
    case ErrorKind::overflow: return own_class("NativeOverflowError", PyExc_OverflowError);
    case ErrorKind::not_implemented: return nb::borrow(PyExc_NotImplementedError);
    case ErrorKind::timeout: return nb::borrow(PyExc_TimeoutError);
    case ErrorKind::slang_compile: return own_class("SlangCompileError", PyExc_RuntimeError);
    case ErrorKind::runtime: break;
    }
    return nb::borrow(PyExc_RuntimeError);
}

/// On a thread that waits: lets Ctrl-C through.
void poll_signals()
{
    if (interpreter_ends())
        fail_runtime("the interpreter ends"); // nobody hears: the thread gives up its locks and sleeps
    GilAcquire gil;
    if (gil.is_valid() && PyErr_CheckSignals() != 0)
        throw nb::python_error();
}

void run_unlocked(const std::function<void()>& body)
{
    if (!Py_IsInitialized() || !PyGILState_Check())
        return body();
    GilRelease release;
    body();
}

/// A RuntimeWarning, where there is an interpreter to hear it.
void show_warning(const std::string& text)
{
    GilAcquire gil;
    if (gil.is_valid() && PyErr_WarnEx(PyExc_RuntimeWarning, text.c_str(), 1) < 0)
        throw nb::python_error();
}

void set_error(const Error& error)
{
    // Diagnostics quote source files, which need not be UTF-8.
    nb::object text = nb::steal(PyUnicode_DecodeUTF8(error.what(), Py_ssize_t(strlen(error.what())), "replace"));
    PyErr_SetObject(exception_class(error.kind()).ptr(), text.ptr());
}

void set_cast_error()
{
    PyErr_SetString(PyExc_TypeError,
                    "an object is of another type than is needed here, or was never made: its __init__ did not run");
}

} // namespace

void install_wait_hooks()
{
    set_wait_hooks({poll_signals, run_unlocked});
    set_warning_sink(show_warning);
}

void register_error_translator()
{
    nb::register_exception_translator([](const std::exception_ptr& pointer, void*) {
        try {
            std::rethrow_exception(pointer);
        } catch (const Error& error) {
            set_error(error);
        } catch (const std::bad_cast&) {
            set_cast_error();
        }
    });
}

void set_error_in_flight() noexcept
{
    try {
        throw;
    } catch (nb::python_error& error) {
        error.restore();
    } catch (const Error& error) {
        set_error(error);
    } catch (const nb::builtin_exception& error) {
        PyErr_SetString(error.type() == nb::exception_type::type_error ? PyExc_TypeError : PyExc_RuntimeError,
                        error.what());
    } catch (const std::bad_alloc&) {
        PyErr_NoMemory();
    } catch (const std::bad_cast&) {
        set_cast_error();
    } catch (const std::exception& error) {
        PyErr_SetString(PyExc_RuntimeError, error.what());
    }
    hide_own_frames();
}

std::string short_text(nb::handle value) { return short_repr(value.ptr()); }

void fail_field(const char* what, nb::handle value, const char* expected)
{
    if (expected)
        fail(ErrorKind::type, what, ": expected ", expected, ", got ", short_text(value), " (", class_name(value), ")");
    fail(ErrorKind::type, what, ": cannot use ", short_text(value), " (", class_name(value), ")");
}

nb::object enum_from(nb::handle value, const char* what, nb::handle type)
{
    const std::string name = nb::cast<std::string>(type.attr("__name__"));
    std::string expected = cat("a ", name);
    if (PyUnicode_Check(value.ptr())) {
        const nb::object members = type.attr("__members__");
        if (PySequence_Contains(members.ptr(), value.ptr()) == 1)
            return members[value];
        if (nb::object flags = in_python::joined_flags.get()(type, value); !flags.is_none())
            return flags;
        for (nb::handle member : nb::list(in_python::near_members.get()(type, value)))
            expected += cat(" such as slangpy.", name, ".", nb::cast<std::string>(member));
    }
    fail_field(what, value, expected.c_str());
}

uint64_t uint_from(nb::handle value, const char* what, uint64_t most)
{
    nb::object index = nb::steal(PyNumber_Index(value.ptr()));
    if (!index.is_valid()) {
        PyErr_Clear();
        fail_field(what, value, "an int");
    }
    const unsigned long long number = PyLong_AsUnsignedLongLong(index.ptr());
    if (PyErr_Occurred() || number > most) {
        PyErr_Clear();
        fail_value(what, ": ", short_text(index), " is out of range; expected 0 to ", most);
    }
    return number;
}

void read_uints(nb::handle value, const char* what, uint64_t* out, size_t count, bool pad, uint64_t fill)
{
    std::fill_n(out, count, fill);
    if (pad && PyIndex_Check(value.ptr()) && !PySequence_Check(value.ptr())) {
        out[0] = uint_from(value, what, ~0ull);
        return;
    }
    nb::object items = nb::steal(PySequence_List(value.ptr()));
    if (!items.is_valid()) {
        PyErr_Clear();
        fail_field(what, value, cat("a sequence of ", count, " ints").c_str());
    }
    const size_t given = nb::len(items);
    if (given > count || (given < count && !pad) || given == 0)
        fail_value(what, ": expected ", count, " ints, got ", short_text(value));
    for (size_t i = 0; i < given; ++i)
        out[i] = uint_from(items[i], what, ~0ull);
}

std::array<float, 4> floats_from(nb::handle value, const char* what, size_t count)
{
    std::array<float, 4> out{};
    nb::object items = nb::steal(PySequence_List(value.ptr()));
    if (!items.is_valid() || nb::len(items) != count) {
        PyErr_Clear();
        fail_field(what, value, cat("a sequence of ", count, " floats").c_str());
    }
    for (size_t i = 0; i < count; ++i) {
        const double number = PyFloat_AsDouble(nb::object(items[i]).ptr());
        if (PyErr_Occurred()) {
            PyErr_Clear();
            fail_field(what, value, cat("a sequence of ", count, " floats").c_str());
        }
        out[i] = float(number);
    }
    return out;
}

nb::object uints_to_python(const uint32_t* values, size_t count)
{
    return make_math_value(ScalarType::uint32, 1, int(count), false, values);
}

void bind_slang_layouts(nb::module_& m); // python/slang/layouts.cpp
void bind_imports(nb::module_& m);       // python/imports.cpp

void bind_core(nb::module_& m)
{
    nb::class_<Object>(m, "Object", nb::intrusive_ptr<Object>([](Object* object, PyObject* self) noexcept {
                           object->set_self_py(self);
                       }),
                       "Base of the objects that native code and Python share.");
    bind_slang_layouts(m);
    bind_imports(m);
    bind_frames(m);
}

} // namespace spy
