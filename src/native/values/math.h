#pragma once
// The Python classes float3, int4x4, quatf, ... as values. python/math creates them.
//
// All of them are one object layout: the Python header, then the packed components (row by row). So a value is read by
// a look at its type and a memcpy; there is no C++ class per Python class.
#include "core/format.h"
#include "values/nb.h"

namespace spy {

struct MathTypeInfo {
    PyTypeObject* type;
    const char* name;  ///< "float3"
    ScalarType scalar; ///< of the packed components
    uint8_t rows;      ///< 1 for everything that is not a matrix
    uint8_t cols;      ///< vectors: component count; quatf: 4; float16_t: 1
    bool is_matrix;
    bool is_quat;
    bool is_scalar; ///< float16_t (a float1 is a vector)
    uint8_t count;  ///< rows * cols
    uint8_t size;   ///< packed bytes
};

/// Adds a class that was created; `info.type` is set. What is returned lives as long as the process.
const MathTypeInfo& register_math_type(const MathTypeInfo& info);

/// Null unless `type` is exactly one of the classes. A few nanoseconds; no Python call.
const MathTypeInfo* find_math_type(PyTypeObject* type) noexcept;
/// Also finds classes that Python code derived from them.
const MathTypeInfo* find_math_base(PyTypeObject* type) noexcept;

const MathTypeInfo* math_vector_type(ScalarType scalar, int count) noexcept;
const MathTypeInfo* math_matrix_type(ScalarType scalar, int rows, int cols) noexcept;
const MathTypeInfo* math_quat_type() noexcept;

/// The packed components of an instance (of a derived class too).
inline void* math_data(PyObject* object) { return reinterpret_cast<unsigned char*>(object) + sizeof(PyObject); }
inline const void* math_data(const PyObject* object)
{
    return reinterpret_cast<const unsigned char*>(object) + sizeof(PyObject);
}

/// A new instance with these packed components.
nb::object new_math(const MathTypeInfo& info, const void* packed);

/// The Python value of a Slang vector (rows = 1) or matrix, from packed components: small floats become float,
/// 8 and 16-bit integers int and uint. Matrices without a class (1 row or column, 64-bit integers) become lists of
/// rows.
nb::object make_math_value(ScalarType scalar, int rows, int cols, bool is_matrix, const void* packed);

} // namespace spy
