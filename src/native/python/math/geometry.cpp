// Functions of whole vectors, matrices and quaternions, by the classes they are called with.
#include "math/transform.h"
#include "python/math/operands.h"

namespace spy::math {

namespace {

double sum_of_products(const MathTypeInfo& type, const Lanes& a, const Lanes& b)
{
    double sum = 0;
    for (int i = 0; i < type.count; ++i)
        sum += a.real[i] * b.real[i];
    return sum;
}

bool is_list_of_components(const MathTypeInfo& type) { return !type.is_matrix && !type.is_scalar; }

nb::object call_dot(nb::handle a, nb::handle b)
{
    Operands operands("dot", {a, b});
    const MathTypeInfo& type = operands.type();
    operands.require(is_list_of_components(type) && kind_of(type) != Kind::boolean, "two vectors of numbers");
    if (kind_of(type) == Kind::integer) {
        const Lanes x = operands.lanes(0), y = operands.lanes(1);
        uint64_t sum = 0;
        for (int i = 0; i < type.count; ++i)
            sum += uint64_t(x.whole[i]) * uint64_t(y.whole[i]);
        // Through the component type, so that overflow wraps as it does there.
        const MathTypeInfo one{nullptr, "", type.scalar, 1, 1, false, false, true, 1, 8};
        Lanes lanes;
        lanes.whole[0] = int64_t(sum);
        return make_result(one, lanes);
    }
    return nb::float_(sum_of_products(type, operands.lanes(0), operands.lanes(1)));
}

Quat<double> quat_from_lanes(const Lanes& lanes)
{
    return {lanes.real[0], lanes.real[1], lanes.real[2], lanes.real[3]};
}

nb::object call_cross(nb::handle a, nb::handle b)
{
    Operands operands("cross", {a, b});
    const MathTypeInfo& type = operands.type();
    if (type.is_quat)
        return make_quat(mul(quat_from_lanes(operands.lanes(0)), quat_from_lanes(operands.lanes(1))));
    operands.require(is_list_of_components(type) && type.count == 3, "two vectors of 3 components");
    operands.make_real();
    const Lanes x = operands.lanes(0), y = operands.lanes(1);
    const double3 c = cross(double3{{x.real[0], x.real[1], x.real[2]}}, double3{{y.real[0], y.real[1], y.real[2]}});
    return operands.result(Lanes{.real = {c[0], c[1], c[2]}});
}

double length_of(Operands& operands)
{
    operands.require(is_list_of_components(operands.type()), "a vector or quaternion");
    operands.make_real();
    const Lanes x = operands.lanes(0);
    return std::sqrt(sum_of_products(operands.type(), x, x));
}

nb::object call_length(nb::handle v)
{
    Operands operands("length", {v});
    return nb::float_(length_of(operands));
}

nb::object call_normalize(nb::handle v)
{
    Operands operands("normalize", {v});
    const double length = length_of(operands);
    Lanes x = operands.lanes(0);
    for (int i = 0; i < operands.type().count; ++i)
        x.real[i] /= length;
    return operands.result(x);
}

nb::object call_reflect(nb::handle i, nb::handle n)
{
    Operands operands("reflect", {i, n});
    operands.require(is_list_of_components(operands.type()) && !operands.type().is_quat, "two vectors");
    operands.make_real();
    Lanes x = operands.lanes(0);
    const Lanes y = operands.lanes(1);
    const double twice = 2 * sum_of_products(operands.type(), x, y);
    for (int k = 0; k < operands.type().count; ++k)
        x.real[k] -= twice * y.real[k];
    return operands.result(x);
}

// ---- mul -----------------------------------------------------------------------------------------------------------

nb::object call_mul(nb::handle a, nb::handle b)
{
    const MathTypeInfo *ia = info_of(a.ptr()), *ib = info_of(b.ptr());
    if (ia && ia->is_quat && ib && ib->is_quat) {
        Operands operands("mul", {a, b});
        return make_quat(mul(quat_from_lanes(operands.lanes(0)), quat_from_lanes(operands.lanes(1))));
    }
    if (ia && ia->is_quat) {
        double3 v;
        Operands q("mul", {a});
        const MathTypeInfo& vector = *math_vector_type(ScalarType::float64, 3);
        if (!is_sequence(b.ptr()) || PySequence_Size(b.ptr()) != 3)
            fail_type("math.mul: a quaternion multiplies a quaternion or a vector of 3 components; got ",
                      summary(b.ptr()));
        convert_math(b.ptr(), vector, v.data, "math.mul");
        v = rotate(quat_from_lanes(q.lanes(0)), v);
        const MathTypeInfo* result = ib && kind_of(*ib) == Kind::real ? ib : math_vector_type(ScalarType::float32, 3);
        return make_result(*result, Lanes{.real = {v[0], v[1], v[2]}});
    }
    const bool number_a = !ia || ia->is_scalar, number_b = !ib || ib->is_scalar;
    if (number_a != number_b && (number_a ? to_number(a.ptr()) : to_number(b.ptr())).is_valid()) {
        PyObject* scaled = PyNumber_Multiply(a.ptr(), b.ptr());
        if (!scaled)
            throw nb::python_error();
        return nb::steal(scaled);
    }
    if (!ia || !ib)
        fail_type("math.mul: expected matrices, vectors or quaternions; got ", summary(a.ptr()), ", ",
                  summary(b.ptr()));
    return multiply(a.ptr(), b.ptr(), "mul");
}

// ---- matrices ------------------------------------------------------------------------------------------------------

const MathTypeInfo& matrix_info(const char* function, nb::handle m, bool square)
{
    const MathTypeInfo* info = info_of(m.ptr());
    if (!info || !info->is_matrix || (square && info->rows != info->cols))
        fail_type("math.", function, ": expected a ", square ? "square " : "", "matrix; got ", summary(m.ptr()));
    return *info;
}

nb::object call_transpose(nb::handle m)
{
    const MathTypeInfo& info = matrix_info("transpose", m, false);
    Lanes in, out;
    load(info, math_data(m.ptr()), in);
    for (int r = 0; r < info.rows; ++r)
        for (int c = 0; c < info.cols; ++c)
            out.whole[c * info.rows + r] = in.whole[r * info.cols + c]; // the bits of either member of the union
    return make_result(*math_matrix_type(info.scalar, info.cols, info.rows), out);
}

nb::object call_determinant(nb::handle m)
{
    const MathTypeInfo& info = matrix_info("determinant", m, true);
    double work[max_count];
    load_as_real(info, math_data(m.ptr()), work);
    return nb::float_(eliminate(work, info.rows, nullptr));
}

/// Quaternions have inverses too: the conjugate over the squared length.
nb::object call_inverse(nb::handle m)
{
    const MathTypeInfo* given = info_of(m.ptr());
    if (given && given->is_quat) {
        Operands operands("inverse", {m});
        const Quat<double> q = quat_from_lanes(operands.lanes(0));
        if (dot(q, q) == 0.0)
            fail_value("math.inverse: a quaternion of length 0 has no inverse");
        return make_quat(scaled(conjugate(q), 1 / dot(q, q)));
    }
    const MathTypeInfo& info = matrix_info("inverse", m, true);
    double work[max_count];
    Lanes inverse;
    load_as_real(info, math_data(m.ptr()), work);
    if (eliminate(work, info.rows, inverse.real) == 0.0)
        fail_value("math.inverse: the matrix is singular, its determinant is 0: ", summary(m.ptr()));
    const ScalarType scalar = kind_of(info) == Kind::real ? info.scalar : ScalarType::float32;
    return make_result(*math_matrix_type(scalar, info.rows, info.cols), inverse);
}

nb::object call_conjugate(nb::handle q)
{
    Operands operands("conjugate", {q});
    operands.require(operands.type().is_quat, "a quaternion");
    return make_quat(conjugate(quat_from_lanes(operands.lanes(0))));
}

} // namespace

void bind_math_geometry(nb::module_& m)
{
    m.def("dot", call_dot, operand("a"), operand("b"), "Sum of the products of components; vectors or quaternions.");
    m.def("cross", call_cross, operand("a"), operand("b"),
          "Cross product of two vectors of 3 components; of quaternions the Hamilton product.");
    m.def("length", call_length, operand("v"), "Euclidean length of a vector or quaternion.");
    m.def("normalize", call_normalize, operand("v"), "v / length(v), for vectors and quaternions; length 0 gives NaN.");
    m.def("reflect", call_reflect, operand("i"), operand("n"),
          "i - 2 dot(n, i) n: the direction i mirrored at the plane with unit normal n.");
    m.def("mul", call_mul, operand("a"), operand("b"),
          "Matrix product. mul(M, v) takes v as a column, mul(v, M) as a row; mul(q, v) rotates v by the unit "
          "quaternion q, "
          "mul(q, r) is the rotation r followed by q; a number scales.");
    m.def("transpose", call_transpose, operand("m"), "Rows become columns: R x C to C x R.");
    m.def("determinant", call_determinant, operand("m"), "Determinant of a square matrix.");
    m.def("inverse", call_inverse, operand("m"),
          "Inverse of a square matrix or of a quaternion. ValueError where there is none (determinant or length 0).");
    m.def("conjugate", call_conjugate, operand("q"), "{-x, -y, -z, w}.");
}

} // namespace spy::math
