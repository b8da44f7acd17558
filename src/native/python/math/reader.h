#pragma once
// Arguments of functions that compute in double.
#include "math/transform.h"
#include "python/math/operands.h"

namespace spy::math {

/// Reads arguments as doubles and remembers which float type the result has.
class Reader {
public:
    explicit Reader(const char* function) : m_function(function) { }

    double number(nb::handle value, const char* name)
    {
        double result;
        store_number(ScalarType::float64, &result, value.ptr(), where(name));
        return result;
    }

    template <int N>
    Vector<double, N> vector(nb::handle value, const char* name)
    {
        Vector<double, N> result;
        read(value, *math_vector_type(ScalarType::float64, N), result.data, name);
        return result;
    }

    /// Unit length; a zero vector has no direction.
    double3 direction(nb::handle value, const char* name)
    {
        const double3 v = vector<3>(value, name);
        if (dot(v, v) == 0.0)
            fail_value(where(name), ": a vector of length 0 has no direction");
        return spy::normalize(v);
    }

    template <int R, int C>
    Matrix<double, R, C> matrix(nb::handle value, const char* name)
    {
        Matrix<double, R, C> result;
        read(value, *math_matrix_type(ScalarType::float64, R, C), result.data, name);
        return result;
    }

    Quat<double> quat(nb::handle value, const char* name) const
    {
        const MathTypeInfo* info = info_of(value.ptr());
        if (!info || !info->is_quat)
            fail_type(where(name), ": expected a quatf, got ", summary(value.ptr()));
        double q[4];
        load_as_real(*info, math_data(value.ptr()), q);
        return {q[0], q[1], q[2], q[3]};
    }

    Handedness handedness(nb::handle value) const
    {
        if (nb::isinstance<Handedness>(value))
            return nb::cast<Handedness>(value);
        if (nb::isinstance<nb::str>(value)) {
            const std::string text = nb::cast<std::string>(value);
            if (text == "right" || text == "right_handed")
                return Handedness::right_handed;
            if (text == "left" || text == "left_handed")
                return Handedness::left_handed;
        }
        fail_value(where("handedness"),
                   ": expected Handedness.right_handed, Handedness.left_handed, \"right\" or \"left\", got ",
                   summary(value.ptr()));
    }

    std::string where(const char* name) const { return cat("math.", m_function, "(", name, ")"); }

    template <int N>
    nb::object result(const Vector<double, N>& v) const
    {
        return store_result(*math_vector_type(scalar(), N), v.data);
    }
    template <int R, int C>
    nb::object result(const Matrix<double, R, C>& m) const
    {
        return store_result(*math_matrix_type(scalar(), R, C), m[0]);
    }

private:
    ScalarType scalar() const { return m_scalar == ScalarType::none ? ScalarType::float32 : m_scalar; }

    static nb::object store_result(const MathTypeInfo& info, const double* data)
    {
        Lanes lanes;
        std::copy_n(data, info.count, lanes.real);
        return make_result(info, lanes);
    }

    void read(nb::handle value, const MathTypeInfo& type, void* out, const char* name)
    {
        convert_math(value.ptr(), type, out, where(name));
        const MathTypeInfo* info = info_of(value.ptr());
        if (info && kind_of(*info) == Kind::real)
            m_scalar = m_scalar == ScalarType::none ? info->scalar : promote(m_scalar, info->scalar);
    }

    const char* m_function;
    ScalarType m_scalar = ScalarType::none;
};

} // namespace spy::math
