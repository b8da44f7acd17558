// Arguments of functions of numbers, vectors and matrices.
#include "math/functions.h"
#include "python/math/operands.h"

#include <bit>
#include <cstring>

namespace spy::math {

namespace {

const MathTypeInfo& number_type(PyObject* number)
{
    return PyFloat_Check(number) ? python_float : PyBool_Check(number) ? python_bool : python_int;
}

} // namespace

Operands::Operands(const char* function, std::initializer_list<nb::handle> values) : m_function(function)
{
    bool sequences = false;
    for (nb::handle value : values) {
        const size_t i = m_count++;
        m_values[i] = value;
        const MathTypeInfo* info = info_of(value.ptr());
        if (!info) {
            m_numbers[i] = to_number(value.ptr());
            if (!m_numbers[i].is_valid()) {
                sequences = true;
                continue;
            }
            info = &number_type(m_numbers[i].ptr());
        }
        if (m_type && !(info = common_type(*m_type, *info)))
            fail_arguments("arguments of the same size whose components mix");
        m_type = info;
    }
    if (!m_type || (sequences && m_type->is_scalar))
        fail_arguments("a number or a vector (NumPy has functions of arrays)");
}

void Operands::fail_arguments(const char* expected) const
{
    std::string got;
    for (size_t i = 0; i < m_count; ++i)
        got += (i ? ", " : "") + summary(m_values[i].ptr());
    fail_type("math.", m_function, ": expected ", expected, "; got ", got);
}

void Operands::require(bool condition, const char* expected) const
{
    if (!condition)
        fail_arguments(expected);
}

void Operands::make_real()
{
    require(kind_of(*m_type) != Kind::boolean || m_type == &python_bool, "numbers, not bools");
    if (kind_of(*m_type) != Kind::real)
        m_type = with_scalar(*m_type, m_type->is_scalar ? ScalarType::float64 : ScalarType::float32);
    require(m_type != nullptr, "a class that exists for floats");
}

Lanes Operands::lanes(size_t i) const
{
    const MathTypeInfo& type = *m_type;
    PyObject* value = m_values[i].ptr();
    const MathTypeInfo* info = info_of(value);
    const std::string where = cat("math.", m_function);
    Lanes out;
    Packed packed;
    if (info == &type) {
        load(type, math_data(value), out);
        return out;
    }
    if (m_numbers[i].is_valid() || (info && info->is_scalar)) {
        store_number(type.scalar, packed.bytes, value, where);
        const size_t step = scalar_info(type.scalar).size;
        for (int c = 1; c < type.count; ++c)
            std::memcpy(packed.bytes + size_t(c) * step, packed.bytes, step);
    } else {
        convert_math(value, type, packed.bytes, where);
    }
    load(type, packed.bytes, out);
    return out;
}

nb::object Operands::result_as(ScalarType scalar, const Lanes& lanes) const
{
    const MathTypeInfo* info = with_scalar(*m_type, scalar);
    require(info, "a class that exists for the result");
    return make_result(*info, lanes);
}

} // namespace spy::math
