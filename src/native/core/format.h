#pragma once
// The one table of scalar types: size, Slang name, NumPy name, DLPack code.
#include <dlpack/dlpack.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace spy {

enum class ScalarType : uint8_t {
    none,
    void_,
    bool_,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
    float16,
    float32,
    float64,
    bfloat16,
    float8_e4m3,
    float8_e5m2,
    count_
};

struct ScalarInfo {
    ScalarType type;
    std::string_view slang_name; ///< canonical name in Slang
    std::string_view numpy_name; ///< dtype name; raw storage for the types NumPy lacks
    uint8_t size;                ///< bytes in host memory (a device's bool may differ: reflection tells)
    uint8_t dlpack_code;         ///< DLDataTypeCode
    bool is_float;
    bool is_integer;
    bool is_signed;
};

inline constexpr ScalarInfo scalar_table[] = {
    {ScalarType::none, "", "", 0, 0, false, false, false},
    {ScalarType::void_, "void", "", 0, 0, false, false, false},
    {ScalarType::bool_, "bool", "bool", 1, kDLBool, false, false, false},
    {ScalarType::int8, "int8_t", "int8", 1, kDLInt, false, true, true},
    {ScalarType::int16, "int16_t", "int16", 2, kDLInt, false, true, true},
    {ScalarType::int32, "int", "int32", 4, kDLInt, false, true, true},
    {ScalarType::int64, "int64_t", "int64", 8, kDLInt, false, true, true},
    {ScalarType::uint8, "uint8_t", "uint8", 1, kDLUInt, false, true, false},
    {ScalarType::uint16, "uint16_t", "uint16", 2, kDLUInt, false, true, false},
    {ScalarType::uint32, "uint", "uint32", 4, kDLUInt, false, true, false},
    {ScalarType::uint64, "uint64_t", "uint64", 8, kDLUInt, false, true, false},
    {ScalarType::float16, "half", "float16", 2, kDLFloat, true, false, true},
    {ScalarType::float32, "float", "float32", 4, kDLFloat, true, false, true},
    {ScalarType::float64, "double", "float64", 8, kDLFloat, true, false, true},
    {ScalarType::bfloat16, "BFloat16", "uint16", 2, kDLBfloat, true, false, true},
    {ScalarType::float8_e4m3, "FloatE4M3", "uint8", 1, kDLFloat8_e4m3fn, true, false, true},
    {ScalarType::float8_e5m2, "FloatE5M2", "uint8", 1, kDLFloat8_e5m2, true, false, true},
};

inline constexpr const ScalarInfo& scalar_info(ScalarType type) { return scalar_table[size_t(type)]; }

/// none when the pair is unknown.
inline constexpr ScalarType scalar_from_dlpack(uint8_t code, uint8_t bits)
{
    for (const ScalarInfo& info : scalar_table)
        if (info.size && info.dlpack_code == code && info.size * 8 == bits)
            return info.type;
    return ScalarType::none;
}

inline constexpr ScalarType scalar_from_slang_name(std::string_view name)
{
    for (const ScalarInfo& info : scalar_table)
        if (!info.slang_name.empty() && info.slang_name == name)
            return info.type;
    if (name == "int32_t")
        return ScalarType::int32;
    if (name == "uint32_t")
        return ScalarType::uint32;
    if (name == "float16_t")
        return ScalarType::float16;
    if (name == "float32_t")
        return ScalarType::float32;
    if (name == "float64_t")
        return ScalarType::float64;
    if (name == "intptr_t")
        return ScalarType::int64;
    if (name == "uintptr_t" || name == "size_t")
        return ScalarType::uint64;
    return ScalarType::none;
}

} // namespace spy
