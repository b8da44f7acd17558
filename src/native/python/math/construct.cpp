// Numbers and sequences from Python into components; the constructors.
#include "python/math/object.h"

#include "values/writer.h"

#include <cstring>

namespace spy::math {

std::string summary(PyObject* object)
{
    std::string name = nb::cast<std::string>(nb::borrow(reinterpret_cast<PyObject*>(Py_TYPE(object))).attr("__name__"));
    nb::object text = nb::steal(PyObject_Repr(object));
    if (!text.is_valid()) {
        PyErr_Clear();
        return name;
    }
    std::string repr = nb::cast<std::string>(text);
    if (repr.size() > 60)
        repr = repr.substr(0, 57) + "...";
    return name + " " + repr;
}

void set_python_error() noexcept
{
    try {
        throw;
    } catch (nb::python_error& error) {
        error.restore();
    } catch (const Error& error) {
        PyObject* type = PyExc_RuntimeError;
        switch (error.kind()) {
        case ErrorKind::value: type = PyExc_ValueError; break;
        case ErrorKind::type: type = PyExc_TypeError; break;
        case ErrorKind::index: type = PyExc_IndexError; break;
        case ErrorKind::overflow: type = PyExc_OverflowError; break;
        case ErrorKind::memory: type = PyExc_MemoryError; break;
        case ErrorKind::not_implemented: type = PyExc_NotImplementedError; break;
        default: break;
        }
        PyErr_SetString(type, error.what());
    } catch (const std::exception& error) {
        PyErr_SetString(PyExc_RuntimeError, error.what());
    }
}

namespace {

bool is_plain_number(PyObject* object) { return PyFloat_Check(object) || PyLong_Check(object); }

/// numpy scalars, 0-d arrays and tensors say what they are through item(); arrays of more dimensions are no numbers.
nb::object item_of_array(PyObject* object, const nb::object& ndim)
{
    if (!PyLong_Check(ndim.ptr()) || PyLong_AsLong(ndim.ptr()) != 0)
        return {};
    nb::object item = nb::steal(PyObject_CallMethod(object, "item", nullptr));
    if (!item.is_valid())
        throw nb::python_error();
    if (is_plain_number(item.ptr()))
        return item;
    if (PyComplex_Check(item.ptr()) || !PyNumber_Check(item.ptr()))
        return {};
    PyObject* number = PyNumber_Float(item.ptr()); // numpy.longdouble
    if (!number)
        throw nb::python_error();
    return nb::steal(number);
}

} // namespace

nb::object to_number(PyObject* object)
{
    if (is_plain_number(object))
        return nb::borrow(object);
    if (const MathTypeInfo* info = info_of(object))
        return info->is_scalar ? load_number(info->scalar, math_data(object)) : nb::object();
    if (!PyNumber_Check(object) || PyComplex_Check(object))
        return {};
    nb::object ndim = nb::steal(PyObject_GetAttrString(object, "ndim"));
    if (ndim.is_valid())
        return item_of_array(object, ndim);
    PyErr_Clear();
    if (PySequence_Check(object))
        return {};
    PyObject* number = PyIndex_Check(object) ? PyNumber_Index(object) : PyNumber_Float(object);
    if (!number)
        throw nb::python_error();
    return nb::steal(number);
}

namespace {

[[noreturn]] void fail_range(ScalarType scalar, PyObject* value, std::string_view where)
{
    const ScalarInfo& info = scalar_info(scalar);
    const int bits = info.size * 8;
    const std::string range = info.is_signed ? cat("-2^", bits - 1, " to 2^", bits - 1, "-1")
                                             : cat("0 to 2^", bits, "-1");
    const std::string text = nb::cast<std::string>(nb::str(nb::handle(value)));
    fail(ErrorKind::overflow, where, ": ", text, " does not fit ", info.slang_name, " (", range, ")");
}

template <typename T>
void put(void* packed, T value)
{
    std::memcpy(packed, &value, sizeof value);
}

void store_integer(ScalarType scalar, void* packed, PyObject* value, std::string_view where)
{
    if (scalar == ScalarType::uint64) {
        const unsigned long long whole = PyLong_AsUnsignedLongLong(value);
        if (PyErr_Occurred()) {
            PyErr_Clear();
            fail_range(scalar, value, where);
        }
        return put(packed, uint64_t(whole));
    }
    int overflow = 0;
    const long long whole = PyLong_AsLongLongAndOverflow(value, &overflow);
    const bool fits = scalar == ScalarType::int64 ||
        (scalar == ScalarType::int32 ? whole == int32_t(whole) : whole == uint32_t(whole));
    if (overflow || !fits)
        fail_range(scalar, value, where);
    if (scalar == ScalarType::int64)
        put(packed, int64_t(whole));
    else
        put(packed, uint32_t(whole));
}

void store_real(ScalarType scalar, void* packed, PyObject* value, std::string_view where)
{
    if (PyLong_Check(value) && scalar == ScalarType::float32) {
        // One rounding: through double there would be two.
        int overflow = 0;
        const long long whole = PyLong_AsLongLongAndOverflow(value, &overflow);
        if (!overflow)
            return put(packed, float(whole));
    }
    const double real = PyFloat_AsDouble(value);
    if (real == -1.0 && PyErr_Occurred())
        throw nb::python_error();
    if (scalar == ScalarType::float16)
        put(packed, float16_from_double(real));
    else if (scalar == ScalarType::float32)
        put(packed, float(real));
    else
        put(packed, real);
    if (became_infinite(scalar, static_cast<const uint8_t*>(packed), Number::from_real(real)))
        tell_infinite(scalar, ValuePath{nullptr, where, 0});
}

} // namespace

void store_number(ScalarType scalar, void* packed, PyObject* value, std::string_view where)
{
    nb::object number = to_number(value);
    if (!number.is_valid())
        fail_type(where, ": expected a number, got ", summary(value));
    const Kind kind = kind_of(scalar);
    if (kind == Kind::real)
        return store_real(scalar, packed, number.ptr(), where);
    if (PyFloat_Check(number.ptr()))
        fail_type(where, ": expected ", kind == Kind::integer ? "an integer" : "a bool or an integer", ", got ",
                  summary(value), kind == Kind::integer ? "; convert it with int(...) first" : "; compare it first");
    if (kind == Kind::boolean)
        return put(packed, PyObject_IsTrue(number.ptr()) == 1);
    store_integer(scalar, packed, number.ptr(), where);
}

bool is_sequence(PyObject* object)
{
    if (const MathTypeInfo* info = info_of(object))
        return !info->is_scalar;
    if (PyUnicode_Check(object) || PyBytes_Check(object) || PyByteArray_Check(object) || PyDict_Check(object))
        return false;
    if (!PySequence_Check(object) && !nb::hasattr(nb::handle(object), "ndim")) // torch tensors are no sequences to C
        return false;
    if (PyObject_Size(object) >= 0)
        return true;
    PyErr_Clear(); // arrays of rank 0 look like sequences and have no length
    return false;
}

bool is_operand_sequence(PyObject* object)
{
    if (PyList_Check(object) || PyTuple_Check(object))
        return true;
    return PyObject_CheckBuffer(object) && is_sequence(object);
}

namespace {

nb::object items_of(PyObject* value, std::string_view where)
{
    // Before anything is read: a sequence may be endless in practice.
    if (const Py_ssize_t size = PyObject_Size(value); size > max_count)
        fail_type(where, ": expected at most ", max_count, " numbers, got ", size);
    PyObject* items = PySequence_Tuple(value);
    if (!items)
        throw nb::python_error();
    return nb::steal(items);
}

void convert_numbers(PyObject* items, const MathTypeInfo& info, unsigned char* out, std::string_view where)
{
    const size_t step = scalar_info(info.scalar).size;
    for (int i = 0; i < info.count; ++i)
        store_number(info.scalar, out + size_t(i) * step, PyTuple_GetItem(items, i), where);
}

/// Same component count, other scalar or other class.
void convert_components(const MathTypeInfo& from, const void* data, const MathTypeInfo& info, unsigned char* out,
                        std::string_view where)
{
    const size_t in_step = scalar_info(from.scalar).size, out_step = scalar_info(info.scalar).size;
    for (int i = 0; i < info.count; ++i) {
        nb::object number = load_number(from.scalar, static_cast<const unsigned char*>(data) + size_t(i) * in_step);
        store_number(info.scalar, out + size_t(i) * out_step, number.ptr(), where);
    }
}

void convert_into(PyObject* value, const MathTypeInfo& info, unsigned char* out, std::string_view where)
{
    if (const MathTypeInfo* from = info_of(value); from && from->count == info.count && !from->is_scalar) {
        // A flat vector fills a matrix row by row; a matrix is no vector.
        if (same_shape(*from, info) || !from->is_matrix)
            return convert_components(*from, math_data(value), info, out, where);
    }
    if (!is_sequence(value))
        fail_type(where, ": expected a sequence of ", int(info.count), " numbers, got ", summary(value));
    nb::object items = items_of(value, where);
    const Py_ssize_t n = PyTuple_Size(items.ptr());
    if (n == info.count && (n == 0 || !info.is_matrix || !is_sequence(PyTuple_GetItem(items.ptr(), 0))))
        return convert_numbers(items.ptr(), info, out, where);
    if (!info.is_matrix)
        fail_type(where, ": expected ", int(info.count), info.count == 1 ? " number, got " : " numbers, got ", n);
    if (n != info.rows)
        fail_type(where, ": expected ", int(info.count), " numbers or ", int(info.rows), " rows of ", int(info.cols),
                  ", got ", n, " elements");
    const MathTypeInfo& row = *math_vector_type(info.scalar, info.cols);
    for (int r = 0; r < info.rows; ++r)
        convert_into(PyTuple_GetItem(items.ptr(), r), row, out + size_t(r) * row.size, where);
}

} // namespace

} // namespace spy::math

namespace spy {

using namespace math;

void convert_math(PyObject* value, const MathTypeInfo& info, void* packed, std::string_view where)
{
    if (info_of(value) == &info) {
        std::memcpy(packed, math_data(value), info.size);
        return;
    }
    // Through a copy, so that a failure half-way leaves the target as it was.
    Packed whole;
    convert_into(value, info, whole.bytes, where);
    std::memcpy(packed, whole.bytes, info.size);
}

} // namespace spy

namespace spy::math {

namespace {

constexpr std::string_view component_names = "xyzw";

/// The components that constructor arguments add up to, as objects.
class Parts {
public:
    Parts(const MathTypeInfo& info) : m_info(info) { }

    /// At the component `at`; returns the one after.
    int put(PyObject* part, int at)
    {
        nb::object number = to_number(part);
        if (number.is_valid()) {
            put_one(std::move(number), at);
            return at + 1;
        }
        if (!is_sequence(part))
            fail_type(m_info.name, ": expected numbers and vectors, got ", summary(part));
        nb::object items = items_of(part, m_info.name);
        for (Py_ssize_t i = 0; i < PyTuple_Size(items.ptr()); ++i)
            put_one(nb::borrow(PyTuple_GetItem(items.ptr(), i)), at++);
        return at;
    }

    int given() const { return m_given; }

    void store_into(unsigned char* out) const
    {
        const size_t step = scalar_info(m_info.scalar).size;
        for (int i = 0; i < m_info.count; ++i)
            store_number(m_info.scalar, out + size_t(i) * step, m_values[i].ptr(), m_info.name);
    }

private:
    void put_one(nb::object value, int at)
    {
        ++m_given;
        if (at < m_info.count) {
            if (m_values[at].is_valid())
                fail_type(m_info.name, ": component '", component_names[size_t(at)], "' is given twice");
            m_values[at] = std::move(value);
        }
    }

    const MathTypeInfo& m_info;
    nb::object m_values[4];
    int m_given = 0;
};

/// float3(x=1, yz=v): a keyword names one component or several in a row.
void put_keywords(Parts& parts, const MathTypeInfo& info, PyObject* kwargs)
{
    PyObject *key, *value;
    for (Py_ssize_t position = 0; PyDict_Next(kwargs, &position, &key, &value);) {
        const std::string name = nb::cast<std::string>(nb::handle(key));
        const size_t at = component_names.substr(0, info.cols).find(name);
        if (at == std::string_view::npos || name.empty())
            fail_type(info.name, ": unknown keyword '", name, "', expected component names out of '",
                      component_names.substr(0, info.cols), "'");
        const int end = parts.put(value, int(at));
        if (end != int(at + name.size()))
            fail_type(info.name, ": keyword '", name, "' needs ", name.size(), " components, got ", summary(value));
    }
}

void construct_vector(const MathTypeInfo& info, unsigned char* out, PyObject* args, PyObject* kwargs)
{
    const Py_ssize_t n = PyTuple_Size(args);
    const bool keywords = kwargs && PyDict_Size(kwargs) > 0;
    if (n == 1 && !keywords) {
        PyObject* value = PyTuple_GetItem(args, 0);
        if (info_of(value) == &info) {
            std::memcpy(out, math_data(value), info.size);
            return;
        }
        nb::object number = info.is_quat ? nb::object() : to_number(value);
        if (!number.is_valid())
            return convert_math(value, info, out, info.name);
        store_number(info.scalar, out, number.ptr(), info.name);
        const size_t step = scalar_info(info.scalar).size;
        for (int i = 1; i < info.count; ++i)
            std::memcpy(out + size_t(i) * step, out, step);
        return;
    }
    Parts parts(info);
    int at = 0;
    for (Py_ssize_t i = 0; i < n; ++i)
        at = parts.put(PyTuple_GetItem(args, i), at);
    if (keywords)
        put_keywords(parts, info, kwargs);
    if (parts.given() != info.count)
        fail_type(info.name, ": expected ", info.is_quat ? "" : "0, 1 or ", int(info.count), " components, got ",
                  parts.given());
    parts.store_into(out);
}

void set_identity(const MathTypeInfo& info, unsigned char* out)
{
    Lanes lanes{};
    for (int i = 0; i < std::min(info.rows, info.cols); ++i) {
        if (kind_of(info) == Kind::real)
            lanes.real[i * info.cols + i] = 1.0;
        else
            lanes.whole[i * info.cols + i] = 1;
    }
    store(info, out, lanes);
}

/// Keeps the overlap; what is missing comes from the identity.
void resize_matrix(const MathTypeInfo& from, const unsigned char* data, const MathTypeInfo& info, unsigned char* out)
{
    set_identity(info, out);
    const size_t in_step = scalar_info(from.scalar).size, out_step = scalar_info(info.scalar).size;
    for (int r = 0; r < std::min(from.rows, info.rows); ++r)
        for (int c = 0; c < std::min(from.cols, info.cols); ++c) {
            nb::object number = load_number(from.scalar, data + size_t(r * from.cols + c) * in_step);
            store_number(info.scalar, out + size_t(r * info.cols + c) * out_step, number.ptr(), info.name);
        }
}

void construct_matrix(const MathTypeInfo& info, unsigned char* out, PyObject* args)
{
    const Py_ssize_t n = PyTuple_Size(args);
    if (n == 0)
        return set_identity(info, out);
    if (n > 1)
        return convert_math(args, info, out, info.name);
    PyObject* value = PyTuple_GetItem(args, 0);
    if (const MathTypeInfo* from = info_of(value); from && from->is_matrix)
        return resize_matrix(*from, static_cast<const unsigned char*>(math_data(value)), info, out);
    if (to_number(value).is_valid())
        fail_type(info.name, ": one number does not make a matrix; for a multiple of the identity use ", info.name,
                  "() * s");
    convert_math(value, info, out, info.name);
}

} // namespace

int construct(PyObject* self, PyObject* args, PyObject* kwargs)
{
    return guard(-1, [&] {
        const MathTypeInfo& info = *info_of(self);
        Packed packed{};
        if ((info.is_matrix || info.is_scalar) && kwargs && PyDict_Size(kwargs) > 0)
            fail_type(info.name, ": takes no keyword arguments");
        if (info.is_matrix) {
            construct_matrix(info, packed.bytes, args);
        } else if (PyTuple_Size(args) == 0 && !(kwargs && PyDict_Size(kwargs) > 0)) {
            const Quaternion identity = Quaternion::identity();
            if (info.is_quat)
                std::memcpy(packed.bytes, &identity, sizeof identity);
        } else if (info.is_scalar) {
            if (PyTuple_Size(args) != 1)
                fail_type(info.name, ": expected one number, got ", PyTuple_Size(args), " arguments");
            store_number(info.scalar, packed.bytes, PyTuple_GetItem(args, 0), info.name);
        } else {
            construct_vector(info, packed.bytes, args, kwargs);
        }
        std::memcpy(math_data(self), packed.bytes, info.size);
        return 0;
    });
}

} // namespace spy::math
