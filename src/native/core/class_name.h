#pragma once
// How messages name the class of a Python object.
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

inline bool is_kind(PyObject* value, PyObject* type)
{
    return PyType_IsSubtype(Py_TYPE(value), reinterpret_cast<PyTypeObject*>(type)) != 0;
}

} // namespace spy
