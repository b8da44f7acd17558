// The classes: their creation, and how components go in and out.
#include "python/math/object.h"

#include <cstring>

namespace spy::math {

namespace {

constexpr ScalarType vector_scalars[] = {ScalarType::bool_,   ScalarType::int32,  ScalarType::uint32,
                                         ScalarType::int64,   ScalarType::uint64, ScalarType::float16,
                                         ScalarType::float32, ScalarType::float64};

std::string_view class_stem(ScalarType scalar)
{
    switch (scalar) {
    case ScalarType::float16: return "float16_t";
    case ScalarType::int64: return "int64_t";
    case ScalarType::uint64: return "uint64_t";
    default: return scalar_info(scalar).slang_name;
    }
}

PyObject* make_instance(PyTypeObject* type, PyObject*, PyObject*) { return PyType_GenericAlloc(type, 0); }

void destroy_instance(PyObject* self)
{
    PyTypeObject* type = Py_TYPE(self);
    reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

std::string class_doc(const MathTypeInfo& info)
{
    const std::string scalar(scalar_info(info.scalar).numpy_name);
    if (info.is_scalar)
        return "IEEE 754 half-precision number; arithmetic is done in wider floats and rounded once.";
    if (info.is_quat)
        return "Quaternion x i + y j + z k + w of float32; quatf() is the identity {0, 0, 0, 1}.";
    if (info.is_matrix)
        return cat(int(info.rows), " x ", int(info.cols), " matrix of ", scalar,
                   ", row by row. Without arguments the identity; from a ", "flat sequence of ", int(info.count),
                   " numbers, from ", int(info.rows), " rows, from an array or matrix.");
    return cat("Vector of ", int(info.cols), " ", scalar,
               ". Without arguments zeros; from one number for all components, from ", int(info.cols),
               " numbers, from shorter vectors in a row, or from a sequence.");
}

/// CPython keeps pointers into a class's names and texts.
const char* kept(std::string text) { return (new std::string(std::move(text)))->c_str(); }

PyTypeObject* new_class(const MathTypeInfo& info, const char* name, const char* doc)
{
    PyType_Slot slots[96];
    size_t n = 0;
    auto add = [&](int slot, const void* value) { slots[n++] = {slot, const_cast<void*>(value)}; };
    auto add_all = [&](std::span<const PyType_Slot> more) {
        for (const PyType_Slot& slot : more)
            slots[n++] = slot;
    };
    add(Py_tp_new, reinterpret_cast<void*>(make_instance));
    add(Py_tp_init, reinterpret_cast<void*>(construct));
    add(Py_tp_dealloc, reinterpret_cast<void*>(destroy_instance));
    add(Py_tp_doc, doc);
    add(Py_tp_methods, info.is_matrix ? matrix_methods : info.is_quat ? quat_methods : common_methods);
    add(Py_tp_getset, info.is_matrix || info.is_scalar ? matrix_getset : vector_getset + (4 - info.cols));
    add_all(export_slots());
    add_all(operator_slots());
    add_all(info.is_scalar ? scalar_slots() : element_slots());
    slots[n] = {0, nullptr};

    // Rounded so that the dict slot of a derived class is aligned.
    const int bytes = int((sizeof(PyObject) + info.size + 7) / 8 * 8);
    PyType_Spec spec{name, bytes, 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};
    PyObject* type = PyType_FromSpec(&spec);
    if (!type)
        throw nb::python_error();
    return reinterpret_cast<PyTypeObject*>(type); // lives as long as the process
}

void create_class(nb::module_& m, nb::module_& functions, MathTypeInfo info, const std::string& name)
{
    const char* full_name = kept("slangpy." + name);
    info.name = full_name + sizeof("slangpy.") - 1;
    info.count = uint8_t(info.rows * info.cols);
    info.size = uint8_t(info.count * scalar_info(info.scalar).size);
    info.type = new_class(info, full_name, kept(class_doc(info)));
    nb::handle type(reinterpret_cast<PyObject*>(info.type));
    // Above numpy scalars and below arrays: np.float32(2) * float3() is a float3, array * float3() an array.
    type.attr("__array_priority__") = nb::float_(-1.0);
    m.attr(info.name) = type;
    functions.attr(info.name) = type;
    const MathTypeInfo& entry = register_math_type(info);
    if (info.is_scalar)
        float16_info = &entry;
}

void create_classes(nb::module_& m, nb::module_& functions)
{
    create_class(m, functions, {nullptr, nullptr, ScalarType::float16, 1, 1, false, false, true, 0, 0}, "float16_t");
    create_class(m, functions, {nullptr, nullptr, ScalarType::float32, 1, 4, false, true, false, 0, 0}, "quatf");
    for (ScalarType scalar : vector_scalars) {
        for (uint8_t n = 1; n <= 4; ++n)
            create_class(m, functions, {nullptr, nullptr, scalar, 1, n, false, false, false, 0, 0},
                         cat(class_stem(scalar), int(n)));
        if (scalar == ScalarType::int64 || scalar == ScalarType::uint64)
            continue;
        for (uint8_t r = 2; r <= 4; ++r)
            for (uint8_t c = 2; c <= 4; ++c)
                create_class(m, functions, {nullptr, nullptr, scalar, r, c, true, false, false, 0, 0},
                             cat(class_stem(scalar), int(r), "x", int(c)));
    }
    for (nb::module_* module : {&m, &functions}) {
        module->attr("half") = m.attr("float16_t");
        for (int n = 1; n <= 4; ++n)
            module->attr(cat("half", n).c_str()) = m.attr(cat("float16_t", n).c_str());
    }
}

} // namespace

const MathTypeInfo python_bool{nullptr, "bool", ScalarType::bool_, 1, 1, false, false, true, 1, 1};
const MathTypeInfo python_int{nullptr, "int", ScalarType::int64, 1, 1, false, false, true, 1, 8};
const MathTypeInfo python_float{nullptr, "float", ScalarType::float64, 1, 1, false, false, true, 1, 8};
const MathTypeInfo* float16_info = nullptr;

namespace {

template <typename T, typename Out, typename Convert>
void each(const void* packed, int count, Out* out, Convert convert)
{
    for (int i = 0; i < count; ++i) {
        T value;
        std::memcpy(&value, static_cast<const unsigned char*>(packed) + size_t(i) * sizeof(T), sizeof(T));
        out[i] = convert(value);
    }
}

template <typename T, typename In, typename Convert>
void each_back(void* packed, int count, const In* in, Convert convert)
{
    for (int i = 0; i < count; ++i) {
        const T value = convert(in[i]);
        std::memcpy(static_cast<unsigned char*>(packed) + size_t(i) * sizeof(T), &value, sizeof(T));
    }
}

} // namespace

void load(const MathTypeInfo& info, const void* packed, Lanes& out)
{
    auto same = [](auto v) { return int64_t(v); };
    switch (info.scalar) {
    case ScalarType::bool_: return each<bool>(packed, info.count, out.whole, same);
    case ScalarType::int32: return each<int32_t>(packed, info.count, out.whole, same);
    case ScalarType::uint32: return each<uint32_t>(packed, info.count, out.whole, same);
    case ScalarType::int64:
    case ScalarType::uint64: return each<int64_t>(packed, info.count, out.whole, same);
    default: return load_as_real(info, packed, out.real);
    }
}

void load_as_real(const MathTypeInfo& info, const void* packed, double* out)
{
    auto widen = [](auto v) { return double(v); };
    switch (info.scalar) {
    case ScalarType::bool_: return each<bool>(packed, info.count, out, widen);
    case ScalarType::int32: return each<int32_t>(packed, info.count, out, widen);
    case ScalarType::uint32: return each<uint32_t>(packed, info.count, out, widen);
    case ScalarType::int64: return each<int64_t>(packed, info.count, out, widen);
    case ScalarType::uint64: return each<uint64_t>(packed, info.count, out, widen);
    case ScalarType::float16:
        return each<Float16>(packed, info.count, out, [](Float16 v) { return double(float16_to_float(v)); });
    case ScalarType::float32: return each<float>(packed, info.count, out, widen);
    case ScalarType::float64: return each<double>(packed, info.count, out, widen);
    default: fail_runtime("no math type has components of type ", scalar_info(info.scalar).slang_name);
    }
}

void store(const MathTypeInfo& info, void* packed, const Lanes& in)
{
    switch (info.scalar) {
    case ScalarType::bool_: return each_back<bool>(packed, info.count, in.whole, [](int64_t v) { return v != 0; });
    case ScalarType::int32:
    case ScalarType::uint32:
        return each_back<uint32_t>(packed, info.count, in.whole, [](int64_t v) { return uint32_t(v); });
    case ScalarType::int64:
    case ScalarType::uint64: return each_back<int64_t>(packed, info.count, in.whole, [](int64_t v) { return v; });
    case ScalarType::float16: return each_back<Float16>(packed, info.count, in.real, float16_from_double);
    case ScalarType::float32: return each_back<float>(packed, info.count, in.real, [](double v) { return float(v); });
    case ScalarType::float64: return each_back<double>(packed, info.count, in.real, [](double v) { return v; });
    default: fail_runtime("no math type has components of type ", scalar_info(info.scalar).slang_name);
    }
}

nb::object load_number(ScalarType scalar, const void* packed)
{
    const MathTypeInfo one{nullptr, "", scalar, 1, 1, false, false, true, 1, 8};
    Lanes lanes;
    load(one, packed, lanes);
    PyObject* number = nullptr;
    switch (kind_of(scalar)) {
    case Kind::boolean: number = PyBool_FromLong(lanes.whole[0] != 0); break;
    case Kind::real: number = PyFloat_FromDouble(lanes.real[0]); break;
    case Kind::integer:
        number = scalar == ScalarType::uint64 ? PyLong_FromUnsignedLongLong(uint64_t(lanes.whole[0]))
                                              : PyLong_FromLongLong(lanes.whole[0]);
    }
    if (!number)
        throw nb::python_error();
    return nb::steal(number);
}

nb::object make_result(const MathTypeInfo& info, const void* packed)
{
    return info.type ? new_math(info, packed) : load_number(info.scalar, packed);
}

nb::object make_result(const MathTypeInfo& info, const Lanes& lanes)
{
    Packed packed;
    store(info, packed.bytes, lanes);
    return make_result(info, packed.bytes);
}

ScalarType promote(ScalarType a, ScalarType b)
{
    if (a == b)
        return a;
    const Kind ka = kind_of(a), kb = kind_of(b);
    if (ka != kb)
        return ka > kb ? a : b;
    if (ka == Kind::real)
        return scalar_info(a).size > scalar_info(b).size ? a : b;
    const ScalarInfo &ia = scalar_info(a), &ib = scalar_info(b);
    const ScalarInfo& wide = ia.size >= ib.size ? ia : ib;
    const ScalarInfo& narrow = &wide == &ia ? ib : ia;
    const bool holds = wide.size > narrow.size && (wide.is_signed || !narrow.is_signed);
    return holds ? wide.type : ScalarType::none;
}

const MathTypeInfo* with_scalar(const MathTypeInfo& shape, ScalarType scalar)
{
    if (scalar == shape.scalar)
        return &shape;
    if (shape.is_quat)
        return nullptr;
    if (shape.is_scalar) {
        if (scalar == ScalarType::float16)
            return float16_info;
        return kind_of(scalar) == Kind::real   ? &python_float
            : kind_of(scalar) == Kind::integer ? &python_int
                                               : &python_bool;
    }
    return shape.is_matrix ? math_matrix_type(scalar, shape.rows, shape.cols) : math_vector_type(scalar, shape.cols);
}

const MathTypeInfo* common_type(const MathTypeInfo& a, const MathTypeInfo& b)
{
    if (a.is_scalar && b.is_scalar) {
        // A Python number gives way to float16_t, as it does to vectors.
        if (&a == float16_info || &b == float16_info)
            return float16_info;
        return with_scalar(a, promote(a.scalar, b.scalar));
    }
    if (a.is_scalar || b.is_scalar)
        return a.is_scalar ? &b : &a;
    if (!same_shape(a, b))
        return nullptr;
    const ScalarType scalar = promote(a.scalar, b.scalar);
    return scalar == ScalarType::none ? nullptr : with_scalar(a, scalar);
}

} // namespace spy::math

namespace spy {

using namespace math;

void bind_math(nb::module_& m)
{
    nb::module_ functions = m.def_submodule("math", "Vectors, matrices and quaternions, and functions of them.");
    create_classes(m, functions);
    bind_math_functions(functions);
    bind_math_geometry(functions);
    bind_math_transforms(functions);
}

} // namespace spy
