#pragma once
// How messages name the class of a Python object.
#include "core/error.h"

#include <nanobind/nanobind.h>

#include <string_view>

namespace spy {

/// Python 3.12 and newer have the module in front of the names of native classes; users know them without.
inline const char* class_name(nanobind::handle object)
{
    constexpr std::string_view own = "slangpy._native.";
    const char* const name = Py_TYPE(object.ptr())->tp_name;
    return std::string_view(name).starts_with(own) ? name + own.size() : name;
}

/// For objects that are no more than allocated: an __init__() of a subclass left out the class's.
[[noreturn]] inline void fail_unmade(nanobind::handle self)
{
    const char* const name = class_name(self);
    fail(ErrorKind::type, name, ": __init__() of this object never ran; call super().__init__(...) in ", name,
         ".__init__()");
}

/// The T that `object` should hold, for functions whose `self` nanobind does not check.
template <typename T>
T& instance_of(nanobind::handle object, const char* expected)
{
    if (!nanobind::isinstance<T>(object))
        fail(ErrorKind::type, "expected ", expected, ", got a ", class_name(object));
    if (!nanobind::inst_ready(object))
        fail_unmade(object);
    return *nanobind::inst_ptr<T>(object);
}

inline bool is_kind(PyObject* value, PyObject* type)
{
    return PyType_IsSubtype(Py_TYPE(value), reinterpret_cast<PyTypeObject*>(type)) != 0;
}

} // namespace spy
