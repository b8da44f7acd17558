#pragma once
// Shared by the math_*.cpp files: unpacking components, numbers from Python, the parts of the classes.
#include "core/error.h"
#include "python/math/bindings.h"

#include <span>
#include <string>

namespace spy::math {

enum class Kind : uint8_t { boolean, integer, real };

constexpr Kind kind_of(ScalarType scalar)
{
    return scalar == ScalarType::bool_ ? Kind::boolean : scalar_info(scalar).is_float ? Kind::real : Kind::integer;
}
inline Kind kind_of(const MathTypeInfo& info) { return kind_of(info.scalar); }
inline bool is_unsigned(const MathTypeInfo& info) { return !scalar_info(info.scalar).is_signed; }
inline bool same_shape(const MathTypeInfo& a, const MathTypeInfo& b)
{
    return a.rows == b.rows && a.cols == b.cols && a.is_matrix == b.is_matrix && a.is_quat == b.is_quat &&
        a.is_scalar == b.is_scalar;
}

/// Stand-ins for Python's own numbers, so that functions treat numbers and vectors alike.
extern const MathTypeInfo python_bool, python_int, python_float;
extern const MathTypeInfo* float16_info;

constexpr int max_count = 16;
constexpr int max_bytes = 128;

/// Components in the widest type of their kind: reals in `real`, integers and bools in `whole` (unsigned ones by bits).
struct Lanes {
    union {
        double real[max_count];
        int64_t whole[max_count];
    };
};
struct Packed {
    alignas(8) unsigned char bytes[max_bytes];
};

inline unsigned char* bytes_of(PyObject* self) { return static_cast<unsigned char*>(math_data(self)); }
inline size_t step_of(const MathTypeInfo& info) { return scalar_info(info.scalar).size; }
inline const MathTypeInfo* info_of(PyObject* object) noexcept { return find_math_base(Py_TYPE(object)); }

void load(const MathTypeInfo& info, const void* packed, Lanes& out);
void load_as_real(const MathTypeInfo& info, const void* packed, double* out);
/// Integers wrap to the width of the type.
void store(const MathTypeInfo& info, void* packed, const Lanes& in);

/// A Python bool, int or float with the value of `object` (numpy scalars, 0-d arrays, float16_t, ...); null if it is
/// none.
nb::object to_number(PyObject* object);
/// One component from a Python number, by the rules of the constructors.
void store_number(ScalarType scalar, void* packed, PyObject* value, std::string_view where);
nb::object load_number(ScalarType scalar, const void* packed);
/// Instances of this info: an object of the class, or a Python number for the stand-ins.
nb::object make_result(const MathTypeInfo& info, const void* packed);
nb::object make_result(const MathTypeInfo& info, const Lanes& lanes);

/// What operators accept as a sequence: list, tuple, vectors, host arrays.
bool is_operand_sequence(PyObject* object);
/// Text, sets and mappings are none.
bool is_sequence(PyObject* object);
/// "list [1, 2]", shortened, for error texts.
std::string summary(PyObject* object);

/// none when the two do not mix (int with uint).
ScalarType promote(ScalarType a, ScalarType b);
/// The class with the shape of `shape` and the given scalar; null when there is none.
const MathTypeInfo* with_scalar(const MathTypeInfo& shape, ScalarType scalar);
/// The class both convert to in an operation; numbers take the type of what they meet. Null when they do not mix.
const MathTypeInfo* common_type(const MathTypeInfo& a, const MathTypeInfo& b);

void append_real(std::string& text, double value, ScalarType scalar);

[[noreturn]] inline void raise(PyObject* exception, const std::string& text)
{
    PyErr_SetString(exception, text.c_str());
    throw nb::python_error();
}
template <typename... Args>
[[noreturn]] void fail_type(const Args&... args)
{
    fail(ErrorKind::type, args...);
}

/// Turns the exception in flight into a Python error.
void set_python_error() noexcept;

/// The border of every function that Python calls through a slot.
template <typename R, typename Fn>
R guard(R failure, Fn&& fn) noexcept
{
    try {
        return fn();
    } catch (...) {
        set_python_error();
        return failure;
    }
}

// The parts that create_class puts together.
int construct(PyObject* self, PyObject* args, PyObject* kwargs); // construct.cpp
extern PyMethodDef common_methods[];                             // access.cpp
extern PyMethodDef matrix_methods[], quat_methods[];
extern PyGetSetDef vector_getset[], // w z y x ...: a shorter vector starts further in
    matrix_getset[];
std::span<const PyType_Slot> export_slots(); // export.cpp: text, hash, buffer
PyObject* to_numpy(PyObject* self, PyObject*);
PyObject* to_array(PyObject* self, PyObject* args, PyObject* kwargs);
PyObject* to_dlpack(PyObject* self, PyObject* args, PyObject* kwargs);
PyObject* dlpack_device(PyObject*, PyObject*);
PyObject* reduce(PyObject* self, PyObject*);
std::span<const PyType_Slot> element_slots();  // what float16_t lacks: len, [], swizzles
std::span<const PyType_Slot> operator_slots(); // operators.cpp
std::span<const PyType_Slot> scalar_slots();   // float(), int(), bool() of float16_t

/// An argument of a bound function that checks its values itself, None too.
inline auto operand(const char* name) { return nb::arg(name).none(); }

void bind_math_functions(nb::module_& m);                            // functions.cpp
void bind_math_geometry(nb::module_& m);                             // geometry.cpp
void bind_math_transforms(nb::module_& m);                           // transforms.cpp
nb::object multiply(PyObject* a, PyObject* b, const char* function); // matrix product

} // namespace spy::math
