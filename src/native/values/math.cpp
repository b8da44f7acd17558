// The table of the math classes, and new instances of them.
#include "values/math.h"

#include "core/error.h"
#include "math/half.h"

#include <cstring>

namespace spy {

namespace {

constexpr size_t max_types = 96;
constexpr size_t hash_size = 256; // a power of two, under half full

struct Registry {
    MathTypeInfo infos[max_types];
    size_t count = 0;
    const MathTypeInfo* buckets[hash_size] = {};
    const MathTypeInfo* vectors[size_t(ScalarType::count_)][5] = {};
    const MathTypeInfo* matrices[size_t(ScalarType::count_)][5][5] = {};
    const MathTypeInfo* quat = nullptr;
};
Registry registry;

size_t bucket_of(const PyTypeObject* type)
{
    const auto bits = reinterpret_cast<uintptr_t>(type);
    return ((bits >> 4) ^ (bits >> 12)) & (hash_size - 1);
}

template <typename T, typename Out, typename Convert>
void each(const void* packed, int count, Out* out, Convert convert)
{
    for (int i = 0; i < count; ++i) {
        T value;
        std::memcpy(&value, static_cast<const unsigned char*>(packed) + size_t(i) * sizeof(T), sizeof(T));
        out[i] = convert(value);
    }
}

} // namespace

const MathTypeInfo& register_math_type(const MathTypeInfo& info)
{
    if (registry.count == max_types)
        fail_runtime("the table of math types is full");
    MathTypeInfo& entry = registry.infos[registry.count++] = info;
    size_t bucket = bucket_of(entry.type);
    while (registry.buckets[bucket])
        bucket = (bucket + 1) & (hash_size - 1);
    registry.buckets[bucket] = &entry;
    if (info.is_quat)
        registry.quat = &entry;
    else if (info.is_matrix)
        registry.matrices[size_t(info.scalar)][info.rows][info.cols] = &entry;
    else if (!info.is_scalar)
        registry.vectors[size_t(info.scalar)][info.cols] = &entry;
    return entry;
}

const MathTypeInfo* find_math_type(PyTypeObject* type) noexcept
{
    size_t bucket = bucket_of(type);
    while (const MathTypeInfo* info = registry.buckets[bucket]) {
        if (info->type == type)
            return info;
        bucket = (bucket + 1) & (hash_size - 1);
    }
    return nullptr;
}

const MathTypeInfo* find_math_base(PyTypeObject* type) noexcept
{
    for (; type; type = reinterpret_cast<PyTypeObject*>(PyType_GetSlot(type, Py_tp_base))) {
        if (const MathTypeInfo* info = find_math_type(type))
            return info;
        if (!(PyType_GetFlags(type) & Py_TPFLAGS_HEAPTYPE))
            return nullptr; // classes derived in Python are heap types all the way to ours
    }
    return nullptr;
}

const MathTypeInfo* math_vector_type(ScalarType scalar, int count) noexcept
{
    return count >= 1 && count <= 4 ? registry.vectors[size_t(scalar)][count] : nullptr;
}

const MathTypeInfo* math_matrix_type(ScalarType scalar, int rows, int cols) noexcept
{
    const bool in_range = rows >= 2 && rows <= 4 && cols >= 2 && cols <= 4;
    return in_range ? registry.matrices[size_t(scalar)][rows][cols] : nullptr;
}

const MathTypeInfo* math_quat_type() noexcept { return registry.quat; }

nb::object new_math(const MathTypeInfo& info, const void* packed)
{
    PyObject* object = PyType_GenericAlloc(info.type, 0);
    if (!object)
        throw nb::python_error();
    std::memcpy(math_data(object), packed, info.size);
    return nb::steal(object);
}

namespace {

/// Components of the types that have no class of their own, widened to one that has.
ScalarType widen_components(ScalarType scalar, const void* packed, int count, void* out)
{
    auto* f = static_cast<float*>(out);
    auto* i = static_cast<int32_t*>(out);
    auto widen = [](auto v) { return int32_t(v); };
    switch (scalar) {
    case ScalarType::float16: each<Float16>(packed, count, f, float16_to_float); return ScalarType::float32;
    case ScalarType::bfloat16: each<uint16_t>(packed, count, f, bfloat16_to_float); return ScalarType::float32;
    case ScalarType::float8_e4m3: each<uint8_t>(packed, count, f, float8_e4m3_to_float); return ScalarType::float32;
    case ScalarType::float8_e5m2: each<uint8_t>(packed, count, f, float8_e5m2_to_float); return ScalarType::float32;
    case ScalarType::int8: each<int8_t>(packed, count, i, widen); return ScalarType::int32;
    case ScalarType::int16: each<int16_t>(packed, count, i, widen); return ScalarType::int32;
    case ScalarType::uint8: each<uint8_t>(packed, count, i, widen); return ScalarType::uint32;
    case ScalarType::uint16: each<uint16_t>(packed, count, i, widen); return ScalarType::uint32;
    default: std::memcpy(out, packed, size_t(count) * scalar_info(scalar).size); return scalar;
    }
}

} // namespace

nb::object make_math_value(ScalarType scalar, int rows, int cols, bool is_matrix, const void* packed)
{
    if (rows < 1 || cols < 1 || rows > 4 || cols > 4 || (!is_matrix && rows != 1))
        fail_value("a vector has 1 to 4 components and a matrix 1 to 4 rows and columns, not ", rows, " x ", cols);
    alignas(8) unsigned char wide[16 * 8];
    const ScalarType held = widen_components(scalar, packed, rows * cols, wide);
    const MathTypeInfo* info = is_matrix ? math_matrix_type(held, rows, cols) : math_vector_type(held, cols);
    if (info)
        return new_math(*info, wide);
    const MathTypeInfo* row = math_vector_type(held, cols);
    if (!row)
        fail_value("no Python vector class for components of type ", scalar_info(scalar).slang_name);
    nb::list list;
    for (int r = 0; r < rows; ++r)
        list.append(new_math(*row, wide + r * row->size));
    return list;
}

} // namespace spy
