// Numbers from Python objects, and host arrays.
#include "python/bindings.h"

#include "python/cursor_math.h"
#include "python/value_writer.h"

namespace spy {

std::string ValuePath::str() const
{
    std::string text = parent ? parent->str() : std::string();
    if (name.empty())
        return parent ? cat(text, "[", index, "]") : text;
    if (!text.empty())
        text += ".";
    return text.append(name);
}

void fail_at(const ValuePath& path, ErrorKind kind, const std::string& message)
{
    const std::string place = path.str();
    throw Error(kind, place.empty() ? message : cat(place, ": ", message));
}

std::string short_repr(PyObject* value)
{
    constexpr size_t limit = 80;
    nb::object text = nb::steal(PyObject_Repr(value));
    if (!text.is_valid()) {
        PyErr_Clear(); // int too large for decimal text, or a broken __repr__
        return cat("<", type_name(value), ">");
    }
    Py_ssize_t size = 0;
    const char* data = PyUnicode_AsUTF8AndSize(text.ptr(), &size);
    if (!data) {
        PyErr_Clear();
        return cat("<", type_name(value), ">");
    }
    if (size_t(size) <= limit)
        return std::string(data, size_t(size));
    size_t cut = limit;
    while (cut > 0 && (uint8_t(data[cut]) & 0xC0) == 0x80)
        --cut; // not inside a character
    return std::string(data, cut) + "...";
}

const NumpyTypes& numpy_types()
{
    static const NumpyTypes types = [] {
        nb::module_ numpy = nb::module_::import_("numpy");
        const auto get = [&](const char* name) { return numpy.attr(name).inc_ref().ptr(); };
        return NumpyTypes{get("generic"), get("bool_"), get("integer"), get("floating"), get("ndarray"),
                          get("asarray")};
    }();
    return types;
}

namespace {

bool is_kind(PyObject* value, PyObject* type)
{
    return PyType_IsSubtype(Py_TYPE(value), reinterpret_cast<PyTypeObject*>(type)) != 0;
}

[[noreturn]] void raise_python()
{
    throw nb::python_error();
}

bool number_from_int(PyObject* value, Number& number)
{
    int overflow = 0;
    const long long narrow = PyLong_AsLongLongAndOverflow(value, &overflow);
    if (narrow == -1 && PyErr_Occurred())
        raise_python();
    if (!overflow) {
        number = Number::from_int(narrow);
        return true;
    }
    if (overflow > 0) {
        const unsigned long long wide = PyLong_AsUnsignedLongLong(value);
        if (!PyErr_Occurred()) {
            number = Number::from_uint(wide);
            return true;
        }
        PyErr_Clear();
    }
    double nearest = PyLong_AsDouble(value);
    if (PyErr_Occurred()) {
        PyErr_Clear(); // beyond the range of double
        nearest = overflow > 0 ? HUGE_VAL : -HUGE_VAL;
    }
    number = Number::from_huge(nearest);
    return true;
}

bool number_from_float(PyObject* value, Number& number)
{
    const double real = PyFloat_AsDouble(value);
    if (real == -1.0 && PyErr_Occurred())
        raise_python();
    number = Number::from_real(real);
    return true;
}

bool number_from_numpy(PyObject* value, Number& number)
{
    const NumpyTypes& types = numpy_types();
    if (is_kind(value, types.bool_)) {
        number = Number::from_bool(PyObject_IsTrue(value) == 1);
        return true;
    }
    if (is_kind(value, types.integer)) {
        nb::object integer = nb::steal(PyNumber_Index(value));
        if (!integer.is_valid())
            raise_python();
        return number_from_int(integer.ptr(), number);
    }
    return is_kind(value, types.floating) && number_from_float(value, number);
}

PyObject* enum_type()
{
    static PyObject* type = nb::module_::import_("enum").attr("Enum").inc_ref().ptr();
    return type;
}

} // namespace

bool number_from_python(PyObject* value, Number& number)
{
    if (PyBool_Check(value)) {
        number = Number::from_bool(value == Py_True);
        return true;
    }
    if (PyLong_Check(value))
        return number_from_int(value, number);
    if (PyFloat_Check(value))
        return number_from_float(value, number);
    if (is_kind(value, numpy_types().generic))
        return number_from_numpy(value, number);
    if (scalar_from_math(value, number))
        return true;
    if (is_kind(value, enum_type())) {
        nb::object inner = nb::borrow(value).attr("value");
        return !is_kind(inner.ptr(), enum_type()) && number_from_python(inner.ptr(), number);
    }
    // Arrays without dimensions, torch's too.
    const nb::object rank = nb::getattr(nb::handle(value), "ndim", nb::none());
    if (PyLong_Check(rank.ptr()) && nb::cast<int64_t>(rank) == 0 && nb::hasattr(value, "__array__")) {
        const nb::object array = nb::borrow(numpy_types().asarray)(nb::handle(value));
        return number_from_numpy(nb::object(array[nb::tuple()]).ptr(), number);
    }
    return false;
}

void fail_number(StoreResult result, std::string_view type_name_text, ScalarType target, PyObject* value,
                 const ValuePath& path)
{
    const std::string given = short_repr(value);
    switch (result) {
    case StoreResult::out_of_range: {
        const ScalarInfo& info = scalar_info(target);
        if (info.is_float)
            fail_at(path, ErrorKind::value, cat(given, " cannot be represented exactly as ", type_name_text));
        const int bits = info.size * 8;
        std::string range = info.is_signed ? cat(-int64_t(uint64_t(1) << (bits - 2)) * 2, " to ",
                                                 int64_t((uint64_t(1) << (bits - 1)) - 1))
                                           : cat("0 to ", ~uint64_t(0) >> (64 - bits));
        fail_at(path, ErrorKind::overflow, cat(given, " is out of range for ", type_name_text, " (", range, ")"));
    }
    case StoreResult::fraction:
        fail_at(path, ErrorKind::value,
                cat(given, " is not an integer and cannot be written to ", type_name_text,
                    path.refuses_floats() ? "; write an int" : "; round it first or make the parameter a float"));
    default:
        fail_at(path, ErrorKind::type,
                cat("expected ", target == ScalarType::bool_ ? "a bool or int" : "a number", " for ", type_name_text,
                    ", got ", given, " (", type_name(value), ")"));
    }
}

void write_scalar_slow(ScalarType target, uint32_t bool_bytes, uint8_t* dst, PyObject* value, const ValuePath& path)
{
    Number number;
    StoreResult result = StoreResult::wrong_kind;
    if (number_from_python(value, number)) {
        if (number.kind == Number::Kind::huge && !std::isfinite(number.f) && scalar_info(target).is_float)
            fail_at(path, ErrorKind::overflow, cat(short_repr(value), " is too large for ",
                                                   scalar_info(target).slang_name));
        const bool refused = number.kind == Number::Kind::real && target != ScalarType::bool_
                             && !scalar_info(target).is_float && path.refuses_floats();
        result = refused ? StoreResult::fraction : store_number(target, bool_bytes, dst, number);
    }
    if (result != StoreResult::ok)
        fail_number(result, scalar_info(target).slang_name, target, value, path);
}

// --- host arrays

namespace {

ScalarType scalar_from_format(const char* format, Py_ssize_t item_size, bool& swapped)
{
    if (!format)
        return item_size == 1 ? ScalarType::uint8 : ScalarType::none;
    swapped = *format == '>' || *format == '!'; // hosts are little-endian
    if (std::strchr("<>=@!", *format))
        ++format;
    if (!format[0] || format[1])
        return ScalarType::none;
    const auto bits = uint8_t(item_size * 8);
    if (*format == '?')
        return ScalarType::bool_;
    if (std::strchr("bhilqn", *format))
        return scalar_from_dlpack(0, bits);
    if (std::strchr("BHILQN", *format))
        return scalar_from_dlpack(1, bits);
    return std::strchr("efd", *format) ? scalar_from_dlpack(2, bits) : ScalarType::none;
}

} // namespace

HostArray::~HostArray()
{
    if (m_open)
        PyBuffer_Release(&m_view);
}

bool HostArray::acquire(PyObject* value)
{
    if (!PyObject_CheckBuffer(value))
        return false;
    if (PyObject_GetBuffer(value, &m_view, PyBUF_FULL_RO) != 0) {
        PyErr_Clear(); // NumPy refuses dtypes that have no format text
        return false;
    }
    m_open = true;
    return true;
}

bool HostArray::open(PyObject* value)
{
    if (PyUnicode_Check(value) || PyList_Check(value) || PyTuple_Check(value) || PyDict_Check(value))
        return false;
    nb::object array = nb::borrow(value);
    if (!acquire(value)) {
        const bool is_array = is_kind(value, numpy_types().ndarray);
        if (is_array && nb::cast<int64_t>(array.attr("dtype").attr("itemsize")) <= 2
            && nb::cast<std::string_view>(nb::str(array.attr("dtype").attr("name"))).find("float") != size_t(-1)) {
            // ml_dtypes: the raw bits, which is how NumPy holds them for us
            const bool one_byte = nb::cast<int64_t>(array.attr("dtype").attr("itemsize")) == 1;
            array = array.attr("view")(one_byte ? "uint8" : "uint16");
        } else if (!is_array && nb::hasattr(value, "__array__") && !nb::isinstance<nb::type_object>(array)) {
            array = nb::borrow(numpy_types().asarray)(array);
        } else {
            return false;
        }
        if (!acquire(array.ptr()))
            return false;
    }
    bool swapped = false;
    m_scalar = scalar_from_format(m_view.format, m_view.itemsize, swapped);
    if (swapped && m_view.itemsize > 1 && m_scalar != ScalarType::none) {
        PyBuffer_Release(&m_view);
        m_open = false;
        array = nb::borrow(numpy_types().asarray)(array);
        array = array.attr("astype")(array.attr("dtype").attr("newbyteorder")("="));
        if (!acquire(array.ptr()))
            return false;
    }
    return true;
}

bool HostArray::is_contiguous() const
{
    return PyBuffer_IsContiguous(&m_view, 'C') != 0;
}

std::string HostArray::dtype_text() const
{
    if (m_scalar != ScalarType::none)
        return std::string(scalar_info(m_scalar).numpy_name);
    return cat("dtype with format '", m_view.format ? m_view.format : "", "'");
}

std::string HostArray::shape_text(int first_axis) const
{
    std::string text = "(";
    for (int axis = first_axis; axis < rank(); ++axis)
        text += cat(axis > first_axis ? ", " : "", size(axis));
    return text + (rank() - first_axis == 1 ? ",)" : ")");
}

PythonOwner::~PythonOwner()
{
    if (!Py_IsInitialized())
        return; // the object went with the interpreter
    GilAcquire guard;
    Py_DECREF(m_object);
}

} // namespace spy
