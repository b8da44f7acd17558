// The walk over single values: numbers, vectors and matrices, generators.
#include "values/walk/walk.h"

namespace spy {

nb::object walk_number(Walk& w, PyObject* value, ValueKind kind, ScalarType scalar, char code)
{
    w.put(code);
    Leaf& leaf = w.add_leaf(kind, value);
    leaf.scalar = scalar;
    if (!w.describes)
        return w.plain(value);
    nb::dict details;
    details["scalar"] = std::string(scalar_info(scalar).slang_name);
    return w.described(value, kind, details, w.last_leaf());
}

nb::object walk_integer(Walk& w, PyObject* value)
{
    char code = int_class(value);
    ScalarType scalar = code == 'i' ? ScalarType::int32 : code == 'l' ? ScalarType::int64 : ScalarType::uint64;
    return walk_number(w, value, ValueKind::integer, scalar, code);
}

/// Scalars of ml_dtypes: floats that neither C nor NumPy has.
static bool is_narrow_float(PyObject* value)
{
    const std::string name = nb::cast<std::string>(nb::handle(value).attr("dtype").attr("name"));
    return name == "bfloat16" || name.starts_with("float8_");
}

nb::object walk_numpy_scalar(Walk& w, PyObject* value)
{
    ScalarType scalar = numpy_scalar_type(value);
    if (scalar == ScalarType::none && is_narrow_float(value))
        return walk_number(w, w.hold(nb::steal(PyNumber_Float(value))), ValueKind::floating, ScalarType::float32, 'f');
    if (scalar == ScalarType::none)
        return walk_unsupported(w, value, "");
    if (scalar == ScalarType::float64)
        return walk_number(w, value, ValueKind::floating, ScalarType::float32, 'f');
    if (scalar == ScalarType::int64)
        return walk_integer(w, w.hold(nb::steal(PyNumber_Long(value))));
    w.put('s');
    return walk_number(w, value, ValueKind::scalar, scalar, char(scalar));
}

nb::object walk_math(Walk& w, PyObject* value, const MathTypeInfo& info)
{
    ValueKind kind = info.is_matrix ? ValueKind::matrix : ValueKind::vector;
    if (info.is_scalar) { // float16_t
        w.put('s');
        return walk_number(w, value, ValueKind::scalar, info.scalar, char(info.scalar));
    }
    w.put(info.is_matrix ? 'm' : 'v');
    w.put(char(info.scalar));
    w.put(char(info.rows * 16 + info.cols));
    Leaf& leaf = w.add_leaf(kind, value);
    leaf.scalar = info.scalar;
    leaf.rows = info.is_matrix ? info.rows : 1;
    leaf.cols = info.cols;
    if (!w.describes)
        return w.plain(value);
    nb::dict details;
    details["scalar"] = std::string(scalar_info(info.scalar).slang_name);
    details["rows"] = leaf.rows;
    details["cols"] = leaf.cols;
    return w.described(value, kind, details, w.last_leaf());
}

nb::object walk_range(Walk& w, PyObject* value)
{
    nb::handle handle(value);
    auto generator = std::make_unique<Generator>();
    generator->kind = GeneratorKind::range;
    generator->dims = 1;
    const Py_ssize_t length = PyObject_Size(value);
    if (length < 0)
        PyErr_Clear();
    int64_t start = 0, step = 0;
    if (length < 0 || !nb::try_cast(handle.attr("start"), start) || !nb::try_cast(handle.attr("step"), step))
        throw Error(ErrorKind::overflow, cat("argument ", w.argument, ": a range with numbers beyond 64 bits"));
    generator->shape.push_back(length);
    generator->offset.push_back(start);
    generator->stride.push_back(step);
    PyObject* held = w.hold(nb::cast(generator.release(), nb::rv_policy::take_ownership));
    return w.instead(value, walk_generator(w, held, nb::cast<Generator*>(nb::handle(held))));
}

nb::object walk_generator(Walk& w, PyObject* value, Generator* generator)
{
    w.put('g');
    w.put(char(generator->kind));
    w.put(char(generator->kind == GeneratorKind::grid ? int64_t(generator->shape.size()) : generator->dims));
    w.put(char(generator->warmup > 0));
    Leaf& leaf = w.add_leaf(ValueKind::generator, value);
    if (generator->kind == GeneratorKind::grid || generator->kind == GeneratorKind::range)
        leaf.shape = generator->shape;
    if (!w.describes)
        return w.plain(value);
    static const char* const names[] = {"range", "grid", "call_id", "thread_id", "wang_hash", "rand_float"};
    nb::dict details;
    details["generator"] = names[size_t(generator->kind)];
    details["dims"] = generator->dims;
    details["shape"] = to_tuple(leaf.shape);
    return w.described(value, ValueKind::generator, details, w.last_leaf());
}

char int_class(PyObject* value)
{
    int overflow = 0;
    long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
    if (overflow == 0 && !(number == -1 && PyErr_Occurred()))
        return number >= INT32_MIN && number <= INT32_MAX ? 'i' : 'l';
    PyErr_Clear();
    if (overflow > 0) {
        PyLong_AsUnsignedLongLong(value);
        if (!PyErr_Occurred())
            return 'u';
        PyErr_Clear();
    }
    return 'o';
}

ScalarType numpy_scalar_type(PyObject* value)
{
    nb::object dtype = nb::getattr(nb::handle(value), "dtype");
    std::string name = nb::cast<std::string>(dtype.attr("name"));
    for (const ScalarInfo& info : scalar_table)
        if (info.size && info.numpy_name == name && info.type != ScalarType::bfloat16)
            return info.type;
    return ScalarType::none;
}

} // namespace spy
