// Arithmetic and comparison: one implementation for all classes, on components in the widest type of their kind.
#include "python/math/object.h"

#include <cmath>
#include <cstring>

namespace spy::math {

namespace {

enum class Op : uint8_t { add, sub, mul, div, floordiv, mod, shl, shr, bit_and, bit_or, bit_xor };
constexpr const char* op_text[] = {"+", "-", "*", "/", "//", "%", "<<", ">>", "&", "|", "^"};
enum class Unary : uint8_t { plus, minus, absolute, invert };
constexpr const char* unary_text[] = {"+", "-", "abs", "~"};

std::string name_of(PyObject* object)
{
    if (const MathTypeInfo* info = info_of(object))
        return info->name;
    return nb::cast<std::string>(nb::borrow(reinterpret_cast<PyObject*>(Py_TYPE(object))).attr("__name__"));
}

std::string operation(PyObject* a, PyObject* b, const char* op) { return cat(name_of(a), " ", op, " ", name_of(b)); }

// ---- operands ------------------------------------------------------------------------------------------------------

/// The class whose arithmetic an operation uses; null if the other operand has to do it (Python's NotImplemented).
const MathTypeInfo* operation_type(PyObject* a, PyObject* b, const char* op)
{
    const MathTypeInfo *ia = info_of(a), *ib = info_of(b);
    if (ia == ib)
        return ia;
    if (ia && ib) {
        const MathTypeInfo* type = common_type(*ia, *ib);
        if (!type)
            fail_type(operation(a, b, op),
                      same_shape(*ia, *ib)
                          ? ": the components do not mix; convert one side to the type of the other first"
                          : *op == '*' && ia->is_matrix != ib->is_matrix
                          ? ": * goes component by component; the product of a matrix and a vector is a @ b"
                          : ": the sizes differ");
        return type;
    }
    const MathTypeInfo* type = ia ? ia : ib;
    PyObject* other = ia ? b : a;
    if (PyFloat_Check(other) || PyLong_Check(other))
        return type;
    const int size = type->is_matrix ? type->rows : type->cols;
    if (!type->is_scalar && !type->is_quat && is_operand_sequence(other) && PySequence_Size(other) == size) {
        // A larger array broadcasts the vector itself, so it is left to that array.
        nb::object ndim = nb::getattr(nb::handle(other), "ndim", nb::none());
        return ndim.is_none() || PyLong_AsLong(ndim.ptr()) == (type->is_matrix ? 2 : 1) ? type : nullptr;
    }
    if (PyErr_Occurred())
        PyErr_Clear(); // it has no length, so it is no sequence
    return !PyList_Check(other) && !PyTuple_Check(other) && to_number(other).is_valid() ? type : nullptr;
}

void load_operand(PyObject* operand, const MathTypeInfo& type, std::string_view where, Lanes& out)
{
    const MathTypeInfo* info = info_of(operand);
    if (info == &type)
        return load(type, math_data(operand), out);
    Packed packed;
    if (info && !info->is_scalar && kind_of(*info) != Kind::real) {
        // Integers go into floats and wider integers as they are.
        if (kind_of(type) == Kind::real)
            load_as_real(*info, math_data(operand), out.real);
        else
            load(*info, math_data(operand), out);
        store(type, packed.bytes, out);
        return load(type, packed.bytes, out);
    }
    if (is_sequence(operand)) {
        convert_math(operand, type, packed.bytes, where);
        return load(type, packed.bytes, out);
    }
    store_number(type.scalar, packed.bytes, operand, where);
    for (int i = 1; i < type.count; ++i)
        std::memcpy(packed.bytes + size_t(i) * scalar_info(type.scalar).size, packed.bytes,
                    scalar_info(type.scalar).size);
    load(type, packed.bytes, out);
}

// ---- element-wise --------------------------------------------------------------------------------------------------

double apply_real(Op op, double a, double b)
{
    switch (op) {
    case Op::add: return a + b;
    case Op::sub: return a - b;
    case Op::mul: return a * b;
    case Op::div: return a / b;
    default: return std::floor(a / b);
    }
}

[[noreturn]] void fail_zero(const std::string& where, int component)
{
    raise(PyExc_ZeroDivisionError, cat(where, ": division by zero in component ", component));
}

int64_t shift(Op op, int64_t a, int64_t amount, bool is_unsigned_type, int bits)
{
    if (uint64_t(amount) >= uint64_t(bits))
        return op == Op::shr && !is_unsigned_type && a < 0 ? -1 : 0;
    if (op == Op::shl)
        return int64_t(uint64_t(a) << amount);
    return is_unsigned_type ? int64_t(uint64_t(a) >> amount) : a >> amount;
}

/// Quotient towards zero (floordiv: towards -inf) and remainder with the sign of the dividend; b is not 0.
template <typename T>
int64_t divide(Op op, T a, T b)
{
    if constexpr (std::is_signed_v<T>)
        if (b == -1) // the one quotient that overflows wraps
            return op == Op::mod ? 0 : int64_t(0 - uint64_t(a));
    if (op == Op::mod)
        return int64_t(a % b);
    const T quotient = a / b;
    if constexpr (std::is_signed_v<T>)
        if (op == Op::floordiv && a % b != 0 && (a < 0) != (b < 0))
            return int64_t(quotient - 1);
    return int64_t(quotient);
}

int64_t apply_integer(Op op, int64_t a, int64_t b, const MathTypeInfo& type)
{
    const auto ua = uint64_t(a), ub = uint64_t(b);
    switch (op) {
    case Op::add: return int64_t(ua + ub);
    case Op::sub: return int64_t(ua - ub);
    case Op::mul: return int64_t(ua * ub);
    case Op::bit_and: return a & b;
    case Op::bit_or: return a | b;
    case Op::bit_xor: return a ^ b;
    default: return is_unsigned(type) ? divide<uint64_t>(op, ua, ub) : divide<int64_t>(op, a, b);
    }
}

bool supports(const MathTypeInfo& type, Op op)
{
    switch (kind_of(type)) {
    case Kind::real: return op <= Op::floordiv;
    case Kind::integer: return true;
    case Kind::boolean: return op >= Op::bit_and;
    }
    return false;
}

template <typename Where>
void apply(Op op, const MathTypeInfo& type, const Lanes& a, const Lanes& b, Lanes& out, Where where)
{
    if (kind_of(type) == Kind::real) {
        for (int i = 0; i < type.count; ++i)
            out.real[i] = apply_real(op, a.real[i], b.real[i]);
        return;
    }
    const bool divides = op == Op::div || op == Op::floordiv || op == Op::mod;
    const int bits = scalar_info(type.scalar).size * 8;
    for (int i = 0; i < type.count; ++i) {
        if (divides && b.whole[i] == 0)
            fail_zero(where(), i);
        if (op == Op::shl || op == Op::shr) {
            if (b.whole[i] < 0 && !is_unsigned(type))
                fail_value(where(), ": negative shift count ", b.whole[i]);
            out.whole[i] = shift(op, a.whole[i], b.whole[i], is_unsigned(type), bits);
        } else
            out.whole[i] = apply_integer(op, a.whole[i], b.whole[i], type);
    }
}

/// Quaternions add, and scale by numbers; their product is math.mul.
void check_quaternions(Op op, PyObject* a, PyObject* b)
{
    const MathTypeInfo *ia = info_of(a), *ib = info_of(b);
    const bool qa = ia && ia->is_quat, qb = ib && ib->is_quat;
    const bool allowed = op == Op::add || op == Op::sub ? qa && qb
        : op == Op::mul                                 ? qa != qb
                                                        : op == Op::div && qa && !qb;
    if (!allowed)
        fail_type(operation(a, b, op_text[int(op)]),
                  ": quaternions support q + q, q - q, q * number and q / number; use math.mul for products");
}

nb::object binary(Op op, PyObject* a, PyObject* b)
{
    const char* text = op_text[int(op)];
    const MathTypeInfo* type = operation_type(a, b, text);
    if (!type)
        return nb::borrow(Py_NotImplemented);
    if (type->is_quat)
        check_quaternions(op, a, b);
    if (!supports(*type, op))
        fail_type(operation(a, b, text), ": not defined for components of type ", scalar_info(type->scalar).slang_name);
    auto where = [&] { return operation(a, b, text); };
    Lanes left, right, result;
    try {
        load_operand(a, *type, "", left);
        load_operand(b, *type, "", right);
    } catch (const Error& error) {
        throw Error(error.kind(), where() + error.what()); // the text is only made when it is needed
    }
    apply(op, *type, left, right, result, where);
    return make_result(*type, result);
}

template <Op op>
PyObject* binary_slot(PyObject* a, PyObject* b)
{
    return guard<PyObject*>(nullptr, [&] { return binary(op, a, b).release().ptr(); });
}

/// Changes `self` itself, unless the result is of another class.
template <Op op>
PyObject* inplace_slot(PyObject* self, PyObject* other)
{
    return guard<PyObject*>(nullptr, [&] {
        nb::object result = binary(op, self, other);
        const MathTypeInfo* info = info_of(self);
        if (info_of(result.ptr()) != info || info->is_scalar)
            return result.release().ptr();
        std::memcpy(math_data(self), math_data(result.ptr()), info->size);
        return Py_NewRef(self);
    });
}

template <Unary op>
PyObject* unary_slot(PyObject* self)
{
    return guard<PyObject*>(nullptr, [&] {
        const MathTypeInfo& type = *info_of(self);
        const Kind kind = kind_of(type);
        if (op == Unary::invert ? kind == Kind::real : kind == Kind::boolean)
            fail_type(unary_text[int(op)], " ", type.name, ": not defined for components of type ",
                      scalar_info(type.scalar).slang_name);
        if (op == Unary::absolute && type.is_quat)
            fail_type("abs quatf: use math.length");
        Lanes lanes;
        load(type, math_data(self), lanes);
        for (int i = 0; i < type.count; ++i) {
            if (kind == Kind::real)
                lanes.real[i] = op == Unary::minus ? -lanes.real[i]
                    : op == Unary::absolute        ? std::fabs(lanes.real[i])
                                                   : lanes.real[i];
            else if (op == Unary::invert)
                lanes.whole[i] = kind == Kind::boolean ? !lanes.whole[i] : ~lanes.whole[i];
            else if (op == Unary::minus || (op == Unary::absolute && !is_unsigned(type) && lanes.whole[i] < 0))
                lanes.whole[i] = int64_t(0 - uint64_t(lanes.whole[i]));
        }
        return make_result(type, lanes).release().ptr();
    });
}

// ---- products ------------------------------------------------------------------------------------------------------

template <typename T>
void product(const T* a, const T* b, T* out, int rows, int inner, int cols)
{
    for (int r = 0; r < rows; ++r)
        for (int c = 0; c < cols; ++c) {
            T sum = 0;
            for (int k = 0; k < inner; ++k)
                sum += a[r * inner + k] * b[k * cols + c];
            out[r * cols + c] = sum;
        }
}

PyObject* matmul_slot(PyObject* a, PyObject* b)
{
    return guard<PyObject*>(nullptr, [&] {
        const MathTypeInfo *ia = info_of(a), *ib = info_of(b);
        if (!ia || !ib)
            return Py_NewRef(Py_NotImplemented);
        return multiply(a, b, "@").release().ptr();
    });
}

// ---- comparison ----------------------------------------------------------------------------------------------------

/// -1, 0, 1 or 2 (unordered, from NaN) at the first difference.
int compare_lanes(const MathTypeInfo& type, const Lanes& a, const Lanes& b)
{
    for (int i = 0; i < type.count; ++i) {
        if (kind_of(type) == Kind::real) {
            if (a.real[i] != b.real[i])
                return a.real[i] < b.real[i] ? -1 : a.real[i] > b.real[i] ? 1 : 2;
        } else if (a.whole[i] != b.whole[i]) {
            return (is_unsigned(type) ? uint64_t(a.whole[i]) < uint64_t(b.whole[i]) : a.whole[i] < b.whole[i]) ? -1 : 1;
        }
    }
    return 0;
}

bool holds(int order, int op)
{
    switch (op) {
    case Py_EQ: return order == 0;
    case Py_NE: return order != 0;
    case Py_LT: return order == -1;
    case Py_LE: return order == -1 || order == 0;
    case Py_GT: return order == 1;
    default: return order == 1 || order == 0;
    }
}

/// Order of self and other; false where they do not compare.
bool compare(PyObject* self, PyObject* other, int& order)
{
    const MathTypeInfo& info = *info_of(self);
    const MathTypeInfo* with = info_of(other);
    Lanes a, b;
    if (info.is_scalar) {
        nb::object number = to_number(other);
        if (!number.is_valid())
            return false;
        nb::object mine = load_number(info.scalar, math_data(self));
        const int equal = PyObject_RichCompareBool(mine.ptr(), number.ptr(), Py_EQ);
        const int less = PyObject_RichCompareBool(mine.ptr(), number.ptr(), Py_LT);
        const int greater = PyObject_RichCompareBool(mine.ptr(), number.ptr(), Py_GT);
        order = equal == 1 ? 0 : less == 1 ? -1 : greater == 1 ? 1 : 2;
        return true;
    }
    const MathTypeInfo* type = &info;
    if (with) {
        if (!same_shape(info, *with))
            return false;
        type = common_type(info, *with);
        if (!type) {
            // int against uint: by value, exact in double up to 53 bits; 64-bit ones go through Python's integers.
            nb::object x = nb::steal(PySequence_Tuple(self)), y = nb::steal(PySequence_Tuple(other));
            const int equal = PyObject_RichCompareBool(x.ptr(), y.ptr(), Py_EQ);
            order = equal == 1 ? 0 : PyObject_RichCompareBool(x.ptr(), y.ptr(), Py_LT) == 1 ? -1 : 1;
            return true;
        }
    } else if (!is_operand_sequence(other)) {
        return false;
    }
    load_operand(self, *type, info.name, a);
    load_operand(other, *type, info.name, b);
    order = compare_lanes(*type, a, b);
    return true;
}

bool is_numpy_scalar(PyObject* value)
{
    return !info_of(value) && !PyFloat_Check(value) && PyObject_HasAttrString(value, "dtype") &&
        !PySequence_Check(value);
}

PyObject* compare_slot(PyObject* self, PyObject* other, int op)
{
    return guard<PyObject*>(nullptr, [&] {
        int order = 2;
        bool comparable = false;
        // A sequence that does not convert is simply different.
        const int status = guard(-1, [&] {
            comparable = compare(self, other, order);
            return 0;
        });
        if (status < 0) {
            if (!PyErr_ExceptionMatches(PyExc_TypeError) && !PyErr_ExceptionMatches(PyExc_OverflowError))
                throw nb::python_error();
            PyErr_Clear();
        }
        if (!comparable && (op == Py_EQ || op == Py_NE) && is_numpy_scalar(other)) {
            // NumPy leaves the comparison to us; it is one of arrays
            nb::object array = nb::module_::import_("numpy").attr("asarray")(nb::handle(self));
            return PyObject_RichCompare(array.ptr(), other, op);
        }
        return comparable ? PyBool_FromLong(holds(order, op)) : Py_NewRef(Py_NotImplemented);
    });
}

// ---- float16_t -----------------------------------------------------------------------------------------------------

PyObject* half_to_float(PyObject* self)
{
    return guard<PyObject*>(nullptr, [&] { return load_number(ScalarType::float16, math_data(self)).release().ptr(); });
}

PyObject* half_to_int(PyObject* self)
{
    return guard<PyObject*>(nullptr,
                            [&] { return PyNumber_Long(load_number(ScalarType::float16, math_data(self)).ptr()); });
}

int half_is_true(PyObject* self) { return (static_cast<const uint16_t*>(math_data(self))[0] & 0x7fff) != 0; }

template <typename Fn>
PyType_Slot slot(int id, Fn* function)
{
    return {id, reinterpret_cast<void*>(function)};
}

} // namespace

nb::object multiply(PyObject* a, PyObject* b, const char* function)
{
    const MathTypeInfo &ia = *info_of(a), &ib = *info_of(b);
    const std::string where = operation(a, b, function);
    // Vectors are columns on the right and rows on the left.
    const int rows = ia.rows, inner_a = ia.cols;
    const int inner_b = ib.is_matrix ? ib.rows : ib.cols, cols = ib.is_matrix ? ib.cols : 1;
    if ((!ia.is_matrix && !ib.is_matrix) || ia.is_quat || ib.is_quat || ia.is_scalar || ib.is_scalar)
        fail_type(where, ": needs two matrices, or a matrix and a vector");
    if (inner_a != inner_b)
        fail_type(where, ": the sizes do not fit, ", ia.is_matrix ? "columns" : "components", " on the left (", inner_a,
                  ") and ", ib.is_matrix ? "rows" : "components", " on the right (", inner_b, ") must be equal");
    const ScalarType scalar = promote(ia.scalar, ib.scalar);
    if (scalar == ScalarType::none || kind_of(scalar) == Kind::boolean)
        fail_type(where, ": no product for these component types; convert one side first");
    const MathTypeInfo& type = ia.is_matrix && ib.is_matrix ? *math_matrix_type(scalar, rows, cols)
                                                            : *math_vector_type(scalar, ia.is_matrix ? rows : cols);
    Lanes left, right, result;
    if (kind_of(scalar) == Kind::real) {
        load_as_real(ia, math_data(a), left.real);
        load_as_real(ib, math_data(b), right.real);
        product(left.real, right.real, result.real, rows, inner_a, cols);
    } else {
        load(ia, math_data(a), left);
        load(ib, math_data(b), right);
        // Unsigned, so that overflow wraps.
        product(reinterpret_cast<uint64_t*>(left.whole), reinterpret_cast<uint64_t*>(right.whole),
                reinterpret_cast<uint64_t*>(result.whole), rows, inner_a, cols);
    }
    return make_result(type, result);
}

std::span<const PyType_Slot> operator_slots()
{
    static const PyType_Slot slots[] = {
        slot(Py_nb_add, binary_slot<Op::add>),
        slot(Py_nb_subtract, binary_slot<Op::sub>),
        slot(Py_nb_multiply, binary_slot<Op::mul>),
        slot(Py_nb_true_divide, binary_slot<Op::div>),
        slot(Py_nb_floor_divide, binary_slot<Op::floordiv>),
        slot(Py_nb_remainder, binary_slot<Op::mod>),
        slot(Py_nb_lshift, binary_slot<Op::shl>),
        slot(Py_nb_rshift, binary_slot<Op::shr>),
        slot(Py_nb_and, binary_slot<Op::bit_and>),
        slot(Py_nb_or, binary_slot<Op::bit_or>),
        slot(Py_nb_xor, binary_slot<Op::bit_xor>),
        slot(Py_nb_inplace_add, inplace_slot<Op::add>),
        slot(Py_nb_inplace_subtract, inplace_slot<Op::sub>),
        slot(Py_nb_inplace_multiply, inplace_slot<Op::mul>),
        slot(Py_nb_inplace_true_divide, inplace_slot<Op::div>),
        slot(Py_nb_inplace_floor_divide, inplace_slot<Op::floordiv>),
        slot(Py_nb_inplace_remainder, inplace_slot<Op::mod>),
        slot(Py_nb_inplace_lshift, inplace_slot<Op::shl>),
        slot(Py_nb_inplace_rshift, inplace_slot<Op::shr>),
        slot(Py_nb_inplace_and, inplace_slot<Op::bit_and>),
        slot(Py_nb_inplace_or, inplace_slot<Op::bit_or>),
        slot(Py_nb_inplace_xor, inplace_slot<Op::bit_xor>),
        slot(Py_nb_positive, unary_slot<Unary::plus>),
        slot(Py_nb_negative, unary_slot<Unary::minus>),
        slot(Py_nb_absolute, unary_slot<Unary::absolute>),
        slot(Py_nb_invert, unary_slot<Unary::invert>),
        slot(Py_nb_matrix_multiply, matmul_slot),
        slot(Py_tp_richcompare, compare_slot),
    };
    return slots;
}

std::span<const PyType_Slot> scalar_slots()
{
    static const PyType_Slot slots[] = {
        slot(Py_nb_float, half_to_float),
        slot(Py_nb_int, half_to_int),
        slot(Py_nb_bool, half_is_true),
    };
    return slots;
}

} // namespace spy::math
