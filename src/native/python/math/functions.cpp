// Element-wise functions of numbers and vectors, from tables.
#include "math/functions.h"
#include "python/math/operands.h"

#include <bit>
#include <cstring>

namespace spy::math {

// ---- operands ------------------------------------------------------------------------------------------------------

namespace {

// ---- float functions -----------------------------------------------------------------------------------------------

struct UnaryFunction {
    const char* name;
    double (*function)(double);
    const char* doc;
};

// Lambdas pick the double overloads of <cmath>.
#define SPY_FN(f) [](double x) -> double { return f(x); }
constexpr UnaryFunction unary_functions[] = {
    {"acos", SPY_FN(std::acos), "Arc cosine in radians, 0 to pi; NaN outside [-1, 1]."},
    {"asin", SPY_FN(std::asin), "Arc sine in radians, -pi/2 to pi/2; NaN outside [-1, 1]."},
    {"atan", SPY_FN(std::atan), "Arc tangent in radians, -pi/2 to pi/2."},
    {"ceil", SPY_FN(std::ceil), "Smallest whole number that is not less than x."},
    {"cos", SPY_FN(std::cos), "Cosine of x radians."},
    {"cosh", SPY_FN(std::cosh), "Hyperbolic cosine."},
    {"degrees", SPY_FN(degrees), "Radians to degrees."},
    {"exp", SPY_FN(std::exp), "e to the power x."},
    {"exp2", SPY_FN(std::exp2), "2 to the power x."},
    {"floor", SPY_FN(std::floor), "Largest whole number that is not greater than x."},
    {"frac", SPY_FN(frac), "x - floor(x), in [0, 1)."},
    {"log", SPY_FN(std::log), "Natural logarithm; -inf at 0, NaN below."},
    {"log10", SPY_FN(std::log10), "Logarithm to base 10."},
    {"log2", SPY_FN(std::log2), "Logarithm to base 2."},
    {"radians", SPY_FN(radians), "Degrees to radians."},
    {"rcp", SPY_FN(rcp), "1 / x."},
    {"round", SPY_FN(std::round), "Nearest whole number, halves away from zero."},
    {"rsqrt", SPY_FN(rsqrt), "1 / sqrt(x)."},
    {"saturate", SPY_FN(saturate), "x limited to [0, 1]."},
    {"sin", SPY_FN(std::sin), "Sine of x radians."},
    {"sinh", SPY_FN(std::sinh), "Hyperbolic sine."},
    {"sqrt", SPY_FN(std::sqrt), "Square root; NaN below 0."},
    {"tan", SPY_FN(std::tan), "Tangent of x radians."},
    {"tanh", SPY_FN(std::tanh), "Hyperbolic tangent."},
    {"trunc", SPY_FN(std::trunc), "Whole part of x, towards zero."},
};

struct Predicate {
    const char* name;
    bool (*function)(double);
    const char* doc;
};
constexpr Predicate predicates[] = {
    {"isfinite", [](double x) { return std::isfinite(x); }, "Neither infinite nor NaN; a bool or a bool vector."},
    {"isinf", [](double x) { return std::isinf(x); }, "Infinite; a bool or a bool vector."},
    {"isnan", [](double x) { return std::isnan(x); }, "Not a number; a bool or a bool vector."},
};

struct BinaryFunction {
    const char* name;
    double (*function)(double, double);
    const char *first, *second;
    const char* doc;
};
#define SPY_FN2(f) [](double a, double b) -> double { return f(a, b); }
constexpr BinaryFunction binary_functions[] = {
    {"atan2", SPY_FN2(std::atan2), "y", "x", "Angle of the point (x, y) in radians, -pi to pi."},
    {"fmod", SPY_FN2(std::fmod), "x", "y", "Remainder of x / y with the sign of x."},
    {"pow", SPY_FN2(std::pow), "x", "y", "x to the power y."},
    {"step", SPY_FN2(step), "x", "y", "1 where x >= y, else 0."},
};

struct TernaryFunction {
    const char* name;
    double (*function)(double, double, double);
    const char *first, *second, *third;
    const char* doc;
};
constexpr TernaryFunction ternary_functions[] = {
    {"smoothstep", smoothstep, "min", "max", "x", "t * t * (3 - 2 t) with t = saturate((x - min) / (max - min))."},
};

nb::object call_unary(const UnaryFunction& entry, nb::handle x)
{
    Operands operands(entry.name, {x});
    operands.require(!operands.type().is_quat, "a number or a vector");
    operands.make_real();
    Lanes lanes = operands.lanes(0);
    for (int i = 0; i < operands.type().count; ++i)
        lanes.real[i] = entry.function(lanes.real[i]);
    return operands.result(lanes);
}

nb::object call_predicate(const Predicate& entry, nb::handle x)
{
    Operands operands(entry.name, {x});
    operands.make_real();
    const Lanes lanes = operands.lanes(0);
    Lanes result;
    for (int i = 0; i < operands.type().count; ++i)
        result.whole[i] = entry.function(lanes.real[i]);
    return operands.result_as(ScalarType::bool_, result);
}

nb::object call_binary(const BinaryFunction& entry, nb::handle a, nb::handle b)
{
    Operands operands(entry.name, {a, b});
    operands.require(!operands.type().is_quat, "numbers or vectors");
    operands.make_real();
    Lanes x = operands.lanes(0);
    const Lanes y = operands.lanes(1);
    for (int i = 0; i < operands.type().count; ++i)
        x.real[i] = entry.function(x.real[i], y.real[i]);
    return operands.result(x);
}

nb::object call_ternary(const char* name, double (*function)(double, double, double), nb::handle a, nb::handle b,
                        nb::handle c)
{
    Operands operands(name, {a, b, c});
    operands.make_real();
    Lanes x = operands.lanes(0);
    const Lanes y = operands.lanes(1), z = operands.lanes(2);
    for (int i = 0; i < operands.type().count; ++i)
        x.real[i] = function(x.real[i], y.real[i], z.real[i]);
    return operands.result(x);
}

/// Quaternions blend by a number; everything else component by component.
nb::object call_lerp(nb::handle a, nb::handle b, nb::handle t)
{
    const MathTypeInfo* info = info_of(a.ptr());
    if (info && info->is_quat && info_of(t.ptr()) && !info_of(t.ptr())->is_scalar)
        fail_type("math.lerp: quaternions blend by one number; got ", summary(t.ptr()));
    return call_ternary("lerp", lerp, a, b, t);
}

// ---- functions of floats and integers ------------------------------------------------------------------------------

bool less(const MathTypeInfo& type, int64_t a, int64_t b)
{
    return is_unsigned(type) ? uint64_t(a) < uint64_t(b) : a < b;
}

nb::object call_abs(nb::handle x)
{
    Operands operands("abs", {x});
    operands.require(kind_of(operands.type()) != Kind::boolean && !operands.type().is_quat,
                     "a number or a vector of numbers");
    Lanes lanes = operands.lanes(0);
    for (int i = 0; i < operands.type().count; ++i) {
        if (kind_of(operands.type()) == Kind::real)
            lanes.real[i] = std::fabs(lanes.real[i]);
        else if (less(operands.type(), lanes.whole[i], 0))
            lanes.whole[i] = int64_t(0 - uint64_t(lanes.whole[i]));
    }
    return operands.result(lanes);
}

nb::object call_sign(nb::handle x)
{
    Operands operands("sign", {x});
    operands.require(kind_of(operands.type()) != Kind::boolean && !operands.type().is_quat,
                     "a number or a vector of numbers");
    Lanes lanes = operands.lanes(0);
    for (int i = 0; i < operands.type().count; ++i) {
        if (kind_of(operands.type()) == Kind::real)
            lanes.real[i] = sign(lanes.real[i]);
        else
            lanes.whole[i] = less(operands.type(), lanes.whole[i], 0) ? -1 : lanes.whole[i] != 0;
    }
    return operands.result(lanes);
}

/// min, max and clamp: each bound in turn, keeping the number where the other side is NaN.
nb::object call_bounds(const char* name, nb::handle x, nb::handle low, nb::handle high)
{
    Operands operands = low.is_valid() && high.is_valid() ? Operands(name, {x, low, high})
                                                          : Operands(name, {x, low.is_valid() ? low : high});
    const MathTypeInfo& type = operands.type();
    operands.require(kind_of(type) != Kind::boolean && !type.is_quat, "numbers or vectors of numbers");
    Lanes lanes = operands.lanes(0);
    for (size_t bound = 0; bound < 2; ++bound) {
        const bool lower = bound == 0;
        if (!(lower ? low : high).is_valid())
            continue;
        const Lanes limit = operands.lanes(lower || !low.is_valid() ? 1 : 2);
        for (int i = 0; i < type.count; ++i) {
            if (kind_of(type) == Kind::real)
                lanes.real[i] = lower ? std::fmax(lanes.real[i], limit.real[i])
                                      : std::fmin(lanes.real[i], limit.real[i]);
            else if (lower ? less(type, lanes.whole[i], limit.whole[i]) : less(type, limit.whole[i], lanes.whole[i]))
                lanes.whole[i] = limit.whole[i];
        }
    }
    return operands.result(lanes);
}

nb::object call_select(nb::handle condition, nb::handle a, nb::handle b)
{
    Operands chooser("select", {condition});
    chooser.require(kind_of(chooser.type()) == Kind::boolean, "a bool or a bool vector as condition");
    const Lanes choice = chooser.lanes(0);
    Operands operands("select", {a, b});
    if (chooser.type().is_scalar)
        return operands.result(operands.lanes(choice.whole[0] ? 0 : 1));

    const MathTypeInfo* type = &operands.type();
    Lanes x = operands.lanes(0), y = operands.lanes(1);
    if (type->is_scalar) {
        // Numbers widen to the condition; Python's become float and int vectors.
        const ScalarType scalar = type == &python_float ? ScalarType::float32
            : type == &python_int                       ? ScalarType::int32
                                                        : type->scalar;
        type = with_scalar(chooser.type(), scalar);
        Packed packed;
        for (Lanes* side : {&x, &y}) {
            nb::handle value = side == &x ? a : b;
            store_number(scalar, packed.bytes, value.ptr(), "math.select");
            for (int i = 1; i < type->count; ++i)
                std::memcpy(packed.bytes + size_t(i) * scalar_info(scalar).size, packed.bytes,
                            scalar_info(scalar).size);
            load(*type, packed.bytes, *side);
        }
    }
    operands.require(same_shape(*type, chooser.type()), "a condition of the same size as the values");
    for (int i = 0; i < type->count; ++i)
        if (!choice.whole[i])
            x.whole[i] = y.whole[i]; // the bits of either member of the union
    return make_result(*type, x);
}

// ---- tests ---------------------------------------------------------------------------------------------------------

int count_true(const char* name, nb::handle x, int& total)
{
    Operands operands(name, {x});
    const Lanes lanes = operands.lanes(0);
    int count = 0;
    total = operands.type().count;
    for (int i = 0; i < total; ++i)
        count += kind_of(operands.type()) == Kind::real ? lanes.real[i] != 0.0 : lanes.whole[i] != 0;
    return count;
}

enum class Relation : uint8_t { eq, ne, lt, le, gt, ge };
struct RelationEntry {
    const char* name;
    Relation relation;
    const char* doc;
};
constexpr RelationEntry relations[] = {
    {"eq", Relation::eq, "a == b, component by component; a bool or a bool vector."},
    {"ne", Relation::ne, "a != b, component by component; a bool or a bool vector."},
    {"lt", Relation::lt, "a < b, component by component; a bool or a bool vector."},
    {"le", Relation::le, "a <= b, component by component; a bool or a bool vector."},
    {"gt", Relation::gt, "a > b, component by component; a bool or a bool vector."},
    {"ge", Relation::ge, "a >= b, component by component; a bool or a bool vector."},
};

template <typename T>
bool relate(Relation relation, T a, T b)
{
    switch (relation) {
    case Relation::eq: return a == b;
    case Relation::ne: return a != b;
    case Relation::lt: return a < b;
    case Relation::le: return a <= b;
    case Relation::gt: return a > b;
    default: return a >= b;
    }
}

nb::object call_relation(const RelationEntry& entry, nb::handle a, nb::handle b)
{
    Operands operands(entry.name, {a, b});
    const MathTypeInfo& type = operands.type();
    operands.require(!type.is_quat, "numbers or vectors");
    const Lanes x = operands.lanes(0), y = operands.lanes(1);
    Lanes result;
    for (int i = 0; i < type.count; ++i) {
        if (kind_of(type) == Kind::real)
            result.whole[i] = relate(entry.relation, x.real[i], y.real[i]);
        else if (is_unsigned(type))
            result.whole[i] = relate(entry.relation, uint64_t(x.whole[i]), uint64_t(y.whole[i]));
        else
            result.whole[i] = relate(entry.relation, x.whole[i], y.whole[i]);
    }
    return operands.result_as(ScalarType::bool_, result);
}

// ---- bits ----------------------------------------------------------------------------------------------------------

enum class Bits : uint8_t { float32, int32, uint32, half };
struct BitsEntry {
    const char* name;
    Bits to;
    bool from_half; ///< the source is half, or its 16 bits in an integer
    bool value;     ///< converts the half to float, or back
    const char* doc;
};
constexpr BitsEntry bit_functions[] = {
    {"asfloat", Bits::float32, false, false, "The float32 with the 32 bits of x, an int or uint."},
    {"asint", Bits::int32, false, false, "The 32 bits of x, a float32 or uint, as an int."},
    {"asuint", Bits::uint32, false, false, "The 32 bits of x, a float32 or int, as a uint."},
    {"asfloat16", Bits::half, true, false, "The float16_t with the 16 bits of x, an integer from 0 to 65535."},
    {"asuint16", Bits::uint32, true, false, "The 16 bits of x, a float16_t, as an integer."},
    {"f16tof32", Bits::float32, true, true, "The value of the half with the 16 bits of x, an integer from 0 to 65535."},
    {"f32tof16", Bits::uint32, false, true, "The 16 bits of the half nearest to x."},
};

/// The 32 (or 16) bits of component `i`.
uint32_t source_bits(const BitsEntry& entry, const Operands& operands, const Lanes& lanes, int i)
{
    const MathTypeInfo& type = operands.type();
    if (kind_of(type) == Kind::real)
        return entry.from_half ? float16_from_double(lanes.real[i]).bits
                               : std::bit_cast<uint32_t>(float(lanes.real[i]));
    const int64_t low = entry.from_half ? 0 : INT32_MIN, high = entry.from_half ? 65535 : int64_t(UINT32_MAX);
    if (lanes.whole[i] < low || lanes.whole[i] > high)
        fail(ErrorKind::overflow, "math.", entry.name, ": ", lanes.whole[i], " does not fit ",
             entry.from_half ? 16 : 32, " bits");
    return uint32_t(lanes.whole[i]);
}

nb::object call_bits(const BitsEntry& entry, nb::handle x)
{
    Operands operands(entry.name, {x});
    const MathTypeInfo& type = operands.type();
    const Kind kind = kind_of(type);
    // A float number stands for a float32, or for a half where one is wanted.
    const bool real = kind == Kind::real &&
        (type.is_scalar || type.scalar == (entry.from_half ? ScalarType::float16 : ScalarType::float32) ||
         (entry.value && type.scalar != ScalarType::float64));
    const bool whole = kind == Kind::integer && (type.is_scalar || scalar_info(type.scalar).size == 4);
    const bool to_float = entry.to == Bits::float32 || entry.to == Bits::half;
    const bool wants_real = !to_float, wants_whole = to_float || (!entry.from_half && !entry.value);
    const char* expected = to_float ? "an integer or an int or uint vector"
        : wants_whole               ? "a number or a float, int or uint vector"
                                    : "a float or a float vector";
    operands.require(!type.is_matrix && !type.is_quat && ((real && wants_real) || (whole && wants_whole)), expected);
    const Lanes lanes = operands.lanes(0);
    Lanes result;
    for (int i = 0; i < type.count; ++i) {
        if (entry.value && wants_real) {
            result.whole[i] = float16_from_double(lanes.real[i]).bits;
            continue;
        }
        const uint32_t bits = source_bits(entry, operands, lanes, i);
        if (entry.to == Bits::half || entry.value)
            result.real[i] = float16_to_float({uint16_t(bits)});
        else if (entry.to == Bits::float32)
            result.real[i] = std::bit_cast<float>(bits);
        else
            result.whole[i] = entry.to == Bits::int32 ? int64_t(int32_t(bits)) : int64_t(bits);
    }
    constexpr ScalarType scalars[] = {ScalarType::float32, ScalarType::int32, ScalarType::uint32, ScalarType::float16};
    return operands.result_as(scalars[int(entry.to)], result);
}

void bind_tests(nb::module_& m)
{
    m.def(
        "any",
        [](nb::handle x) {
            int total;
            return count_true("any", x, total) > 0;
        },
        operand("x"), "Whether any component is true (not 0).");
    m.def(
        "all",
        [](nb::handle x) {
            int total;
            return count_true("all", x, total) == total;
        },
        operand("x"), "Whether all components are true (not 0).");
    m.def(
        "none",
        [](nb::handle x) {
            int total;
            return count_true("none", x, total) == 0;
        },
        operand("x"), "Whether no component is true (not 0).");
    for (const RelationEntry& entry : relations)
        m.def(
            entry.name, [&entry](nb::handle a, nb::handle b) { return call_relation(entry, a, b); }, operand("a"),
            operand("b"), entry.doc);
    for (const BitsEntry& entry : bit_functions)
        m.def(entry.name, [&entry](nb::handle x) { return call_bits(entry, x); }, operand("x"), entry.doc);
}

} // namespace

void bind_math_functions(nb::module_& m)
{
    for (const UnaryFunction& entry : unary_functions)
        m.def(entry.name, [&entry](nb::handle x) { return call_unary(entry, x); }, operand("x"), entry.doc);
    for (const Predicate& entry : predicates)
        m.def(entry.name, [&entry](nb::handle x) { return call_predicate(entry, x); }, operand("x"), entry.doc);
    for (const BinaryFunction& entry : binary_functions)
        m.def(
            entry.name, [&entry](nb::handle a, nb::handle b) { return call_binary(entry, a, b); }, operand(entry.first),
            operand(entry.second), entry.doc);
    for (const TernaryFunction& entry : ternary_functions)
        m.def(
            entry.name,
            [&entry](nb::handle a, nb::handle b, nb::handle c) {
                return call_ternary(entry.name, entry.function, a, b, c);
            },
            operand(entry.first), operand(entry.second), operand(entry.third), entry.doc);
    m.def("lerp", call_lerp, operand("x"), operand("y"), operand("s"),
          "x + (y - x) * s, for quaternions too (not normalized).");
    m.def("abs", call_abs, operand("x"), "Absolute value; the smallest integer of a type stays as it is.");
    m.def("sign", call_sign, operand("x"), "-1, 0 or 1, in the type of x.");
    m.def(
        "min", [](nb::handle x, nb::handle y) { return call_bounds("min", x, {}, y); }, operand("x"), operand("y"),
        "The smaller one, component by component; the number where the other is NaN.");
    m.def(
        "max", [](nb::handle x, nb::handle y) { return call_bounds("max", x, y, {}); }, operand("x"), operand("y"),
        "The larger one, component by component; the number where the other is NaN.");
    m.def(
        "clamp", [](nb::handle x, nb::handle low, nb::handle high) { return call_bounds("clamp", x, low, high); },
        operand("x"), operand("min"), operand("max"), "min(max(x, min), max).");
    m.def("select", call_select, operand("condition"), operand("a"), operand("b"),
          "a where the condition (a bool or a bool vector) is true, b where it is not.");
    bind_tests(m);
}

} // namespace spy::math
