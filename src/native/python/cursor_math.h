#pragma once
// What the cursors need of the math types: their numbers, and new ones from packed bytes.
#include "device/value_io.h"
#include "python/math_bindings.h"

#include <nanobind/nanobind.h>

namespace spy {

/// float16_t; false for everything else.
inline bool scalar_from_math(PyObject* value, Number& number)
{
    const MathTypeInfo* info = find_math_type(Py_TYPE(value));
    if (!info || !info->is_scalar)
        return false;
    number = load_number(info->scalar, 1, static_cast<const uint8_t*>(math_data(value)));
    return true;
}

} // namespace spy
