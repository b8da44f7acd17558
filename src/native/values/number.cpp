// Numbers from Python objects.
#include "values/nb.h"

#include "core/class_name.h"
#include "core/warning.h"
#include "values/classes.h"
#include "values/math.h"
#include "values/torch.h"
#include "values/writer.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace spy {

std::string ValuePath::str() const
{
    std::string text = parent ? parent->str() : std::string();
    if (name.empty())
        return parent ? cat(text, "[", index, "]") : text;
    if (!text.empty())
        text += '.';
    return text.append(name);
}

void fail_at(const ValuePath& path, ErrorKind kind, const std::string& message)
{
    const std::string place = path.str();
    throw Error(kind, place.empty() ? message : cat(place, ": ", message));
}

namespace {

/// Whether a value is or holds a torch tensor, whose repr() reads its memory: on a GPU that waits, and where its
/// storage was freed it ends the process. No more than `budget` values are looked at.
bool holds_torch(PyObject* value, int& budget)
{
    if (class_of(value).value_class == ValueClass::torch)
        return true;
    if (--budget < 0 || !(PyList_Check(value) || PyTuple_Check(value) || PyDict_Check(value)))
        return false;
    const nb::object items = nb::steal(PyDict_Check(value) ? PyDict_Values(value) : PySequence_Tuple(value));
    if (!items.is_valid()) {
        PyErr_Clear(); // a subclass whose iteration raises
        return true;
    }
    PyObject** first = PySequence_Fast_ITEMS(items.ptr());
    return std::any_of(first, first + PySequence_Fast_GET_SIZE(items.ptr()),
                       [&](PyObject* item) { return holds_torch(item, budget); });
}

std::string array_text(PyObject* tensor)
{
    try {
        const nb::handle handle(tensor);
        return cat(type_name(tensor), " of shape ", nb::repr(nb::tuple(handle.attr("shape"))).c_str(), ", ",
                   nb::repr(handle.attr("dtype")).c_str());
    } catch (nb::python_error&) { // nested tensors have no shape
        return cat("<", type_name(tensor), ">");
    }
}

} // namespace

std::string short_repr(PyObject* value)
{
    constexpr size_t limit = 80;
    int budget = 1000;
    if (holds_torch(value, budget))
        return class_of(value).value_class == ValueClass::torch ? array_text(value) : cat("<", type_name(value), ">");
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
    const std::string_view whole(data, size_t(size));
    if (whole.size() <= limit && whole.find('\n') == whole.npos)
        return std::string(whole);
    if (nb::hasattr(value, "shape") && nb::hasattr(value, "dtype"))
        return array_text(value);
    size_t cut = std::min(limit, whole.find('\n'));
    while (cut > 0 && (uint8_t(data[cut]) & 0xC0) == 0x80)
        --cut; // not inside a character
    return std::string(data, cut) + "...";
}

const NumpyTypes& numpy_types()
{
    static const NumpyTypes types = [] {
        nb::module_ numpy = nb::module_::import_("numpy");
        const auto get = [&](const char* name) { return numpy.attr(name).inc_ref().ptr(); };
        return NumpyTypes{get("generic"),  get("bool_"),   get("integer"),
                          get("floating"), get("ndarray"), get("asarray")};
    }();
    return types;
}

namespace {

/// float16_t; false for everything else.
bool number_from_math(PyObject* value, Number& number)
{
    const MathTypeInfo* info = find_math_type(Py_TYPE(value));
    if (!info || !info->is_scalar)
        return false;
    number = load_number(info->scalar, 1, static_cast<const uint8_t*>(math_data(value)));
    return true;
}

[[noreturn]] void raise_python() { throw nb::python_error(); }

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

bool number_at(PyObject* value, Number& number, const ValuePath& path)
{
    try {
        return number_from_python(value, number);
    } catch (const Error& error) {
        fail_at(path, error.kind(), error.what());
    }
}

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
    if (number_from_math(value, number))
        return true;
    if (is_kind(value, enum_type())) {
        nb::object inner = nb::borrow(value).attr("value");
        return !is_kind(inner.ptr(), enum_type()) && number_from_python(inner.ptr(), number);
    }
    // Arrays without dimensions, torch's too.
    const nb::object rank = nb::getattr(nb::handle(value), "ndim", nb::none());
    if (PyLong_Check(rank.ptr()) && nb::cast<int64_t>(rank) == 0 && nb::hasattr(value, "__array__")) {
        if (class_of(value).value_class == ValueClass::torch) {
            TorchTensor memory; // freed, and NumPy would read it
            read_torch_memory(value, memory);
        }
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
        std::string range = info.is_signed
            ? cat(-int64_t(uint64_t(1) << (bits - 2)) * 2, " to ", int64_t((uint64_t(1) << (bits - 1)) - 1))
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

void tell_infinite(ScalarType target, const ValuePath& path)
{
    const ValuePath* whole = &path; // one text for all numbers of a list
    while (whole->parent)
        whole = whole->parent;
    const std::string place = whole->str();
    warn(cat(place, place.empty() ? "" : ": ", "a number is beyond the range of ", scalar_info(target).slang_name,
             " and becomes infinite"));
}

void write_scalar_slow(ScalarType target, uint32_t bool_bytes, uint8_t* dst, PyObject* value, const ValuePath& path)
{
    Number number;
    StoreResult result = StoreResult::wrong_kind;
    if (number_at(value, number, path)) {
        if (number.kind == Number::Kind::huge && !std::isfinite(number.f) && scalar_info(target).is_float)
            fail_at(path, ErrorKind::overflow,
                    cat(short_repr(value), " is too large for ", scalar_info(target).slang_name));
        const bool refused = number.kind == Number::Kind::real && target != ScalarType::bool_ &&
            !scalar_info(target).is_float && path.refuses_floats();
        result = refused ? StoreResult::fraction : store_number(target, bool_bytes, dst, number);
    }
    if (result != StoreResult::ok)
        fail_number(result, scalar_info(target).slang_name, target, value, path);
    if (became_infinite(target, dst, number))
        tell_infinite(target, path);
}

PythonOwner::~PythonOwner()
{
    if (!Py_IsInitialized())
        return; // the object went with the interpreter
    GilAcquire guard;
    Py_DECREF(m_object);
}

} // namespace spy
