#pragma once
// Arguments of the element-wise functions, brought to one class.
#include "python/math/object.h"

#include <initializer_list>

namespace spy::math {

/// Up to four arguments of one call. Numbers widen to the vector they meet; ints meet floats as floats; a sequence
/// counts as the vector that another argument is.
class Operands {
public:
    Operands(const char* function, std::initializer_list<nb::handle> values);

    const MathTypeInfo& type() const { return *m_type; }
    /// From here on components are floats: integers become float (numbers) or floatN.
    void make_real();
    /// Fails unless `condition`; `expected` completes "math.f: expected ...".
    void require(bool condition, const char* expected) const;
    [[noreturn]] void fail_arguments(const char* expected) const;

    /// Components of argument `i`, converted to the common type.
    Lanes lanes(size_t i) const;
    nb::object result(const Lanes& lanes) const { return make_result(*m_type, lanes); }
    /// The common class with another scalar (bools of a comparison, bits of a float).
    nb::object result_as(ScalarType scalar, const Lanes& lanes) const;

private:
    const char* m_function;
    const MathTypeInfo* m_type = nullptr;
    nb::handle m_values[4];
    nb::object m_numbers[4]; ///< valid where the argument is a number
    size_t m_count = 0;
};

inline nb::object make_quat(const Quat<double>& q)
{
    return make_result(*math_quat_type(), Lanes{.real = {q.x, q.y, q.z, q.w}});
}

} // namespace spy::math
