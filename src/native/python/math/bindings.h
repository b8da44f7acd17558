#pragma once
// The math classes for the other bindings: creation, conversion, and spy::float3 and the like in signatures.
#include "math/matrix.h"
#include "math/quaternion.h"
#include "values/math.h"

#include <string_view>

namespace spy {

/// Creates the classes, adds them to `m`, and the functions to its submodule `math`.
void bind_math(nb::module_& m);

/// Any sequence, vector or matrix of the right size into packed components, with the constructors' number rules.
/// `where` starts the error text: "int3", "light.tint". Throws spy::Error or nb::python_error.
void convert_math(PyObject* value, const MathTypeInfo& info, void* packed, std::string_view where);

template <typename T>
inline constexpr ScalarType scalar_type_of = ScalarType::none;
template <>
inline constexpr ScalarType scalar_type_of<bool> = ScalarType::bool_;
template <>
inline constexpr ScalarType scalar_type_of<int32_t> = ScalarType::int32;
template <>
inline constexpr ScalarType scalar_type_of<uint32_t> = ScalarType::uint32;
template <>
inline constexpr ScalarType scalar_type_of<int64_t> = ScalarType::int64;
template <>
inline constexpr ScalarType scalar_type_of<uint64_t> = ScalarType::uint64;
template <>
inline constexpr ScalarType scalar_type_of<Float16> = ScalarType::float16;
template <>
inline constexpr ScalarType scalar_type_of<float> = ScalarType::float32;
template <>
inline constexpr ScalarType scalar_type_of<double> = ScalarType::float64;

} // namespace spy

namespace nanobind::detail {

/// So that bound functions may take and return spy::float3 and the like; sequences convert where nanobind allows it.
template <typename Value_>
struct spy_math_caster {
    static constexpr int rows = [] {
        if constexpr (requires { Value_::rows; })
            return Value_::rows;
        else
            return 1;
    }();
    static constexpr int cols = [] {
        if constexpr (requires { Value_::cols; })
            return Value_::cols;
        else
            return Value_::size;
    }();
    static const spy::MathTypeInfo& info()
    {
        constexpr auto scalar = spy::scalar_type_of<typename Value_::Element>;
        if constexpr (requires { Value_::rows; })
            return *spy::math_matrix_type(scalar, rows, cols);
        else
            return *spy::math_vector_type(scalar, cols);
    }
    static constexpr auto scalar_name()
    {
        using T = typename Value_::Element;
        if constexpr (std::is_same_v<T, bool>)
            return const_name("slangpy.bool");
        else if constexpr (std::is_same_v<T, int32_t>)
            return const_name("slangpy.int");
        else if constexpr (std::is_same_v<T, uint32_t>)
            return const_name("slangpy.uint");
        else if constexpr (std::is_same_v<T, int64_t>)
            return const_name("slangpy.int64_t");
        else if constexpr (std::is_same_v<T, uint64_t>)
            return const_name("slangpy.uint64_t");
        else if constexpr (std::is_same_v<T, spy::Float16>)
            return const_name("slangpy.float16_t");
        else if constexpr (std::is_same_v<T, float>)
            return const_name("slangpy.float");
        else
            return const_name("slangpy.double");
    }
    static constexpr auto class_name()
    {
        if constexpr (requires { Value_::rows; })
            return scalar_name() + const_name<size_t(rows)>() + const_name("x") + const_name<size_t(cols)>();
        else
            return scalar_name() + const_name<size_t(cols)>();
    }
    NB_TYPE_CASTER(Value_, class_name())

    template <typename Policy>
    static handle from_cpp(const Value_& v, Policy, cleanup_list*) noexcept
    {
        return spy::new_math(info(), &v).release();
    }
};

template <typename T, int N>
struct type_caster<spy::Vector<T, N>> : spy_math_caster<spy::Vector<T, N>> { };
template <typename T, int R, int C>
struct type_caster<spy::Matrix<T, R, C>> : spy_math_caster<spy::Matrix<T, R, C>> { };

} // namespace nanobind::detail
